/**
 * The hooks of the Node loader `tracefx/register`, as Node calls them while it loads modules.
 *
 * Versions of Node that cannot call them in the thread of the program load this file in one of its own.
 *
 * @module
 */
import * as nodeModule from "node:module";
import type { LoadFnOutput, LoadHook, LoadHookSync } from "node:module";
import { isOwn, leftAlone, type LoaderOptions, rewriteLoaded } from "./loadedFile.ts";
import type { ModuleFormat } from "./rewrite.ts";

/** What Node gives for a file, and what it is given in its place. */
type Loaded = LoadFnOutput;

/** Formats of Node, by what is left of them once types are taken away. */
const FORMATS: ReadonlyMap<unknown, ModuleFormat> = new Map<unknown, ModuleFormat>([
  ["module", "module"],
  ["module-typescript", "module"],
  ["commonjs", "commonjs"],
  ["commonjs-typescript", "commonjs"],
]);

let options: LoaderOptions = { include: [], operators: false };

/** Takes the options, in the thread of the loader. */
export function initialize(given: LoaderOptions): void {
  options = given;
}

/** The hook of a loader with a thread of its own. */
export const load: LoadHook = async (url, context, nextLoad) => rewritten(url, await nextLoad(url, context), options);

/** The hook of a loader in the thread of the program. */
export function loadSync(given: LoaderOptions): LoadHookSync {
  return (url, context, nextLoad) => rewritten(url, nextLoad(url, context), given);
}

function rewritten(url: string, loaded: Loaded, given: LoaderOptions): Loaded {
  const format = FORMATS.get(loaded.format);
  // What has no source here is CommonJS, which is rewritten where it is compiled.
  if (format === undefined || loaded.source === undefined || loaded.source === null || !isOwn(url, given))
    return loaded;
  const text = typeof loaded.source === "string" ? loaded.source : new TextDecoder().decode(loaded.source);
  try {
    const code = `${loaded.format}`.endsWith("-typescript") ? withoutTypes(text) : text;
    const source = rewriteLoaded(code, url, format, given);
    return source === undefined ? loaded : { ...loaded, format, source };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    process.emitWarning(leftAlone(url, error));
    return loaded;
  }
}

/** Node's own: types become spaces, so that nothing moves. */
function withoutTypes(code: string): string {
  const { stripTypeScriptTypes } = nodeModule as { stripTypeScriptTypes?: (code: string) => string };
  return stripTypeScriptTypes === undefined ? code : stripTypeScriptTypes(code);
}
