/**
 * A loader for Node that does what the build plugin does, without a build: `node --import tracefx/register main.js`.
 *
 * It rewrites the modules of the program itself, of ES modules and CommonJS, so that whatever JavaScript decides about a
 * traced value is refused or recorded at its line, wherever it stands. What is in `node_modules` is left alone, but for the packages
 * that `TRACEFX_INCLUDE` names, with commas between them; `TRACEFX_OPERATORS=1` records the operators of JavaScript, too. Where types are taken away, by Node or by
 * another loader that was named before, their output is rewritten.
 *
 * @example
 * ```sh
 * node --import tracefx/register main.js
 * node --import tsx --import tracefx/register main.ts
 * TRACEFX_INCLUDE=@acme/layers TRACEFX_OPERATORS=1 node --import tracefx/register main.js
 * ```
 * @module
 */
import nodeModule from "node:module";
import { isAbsolute } from "node:path";
import { __tracefx } from "../trace/checked.ts";
import { setCheckedFiles } from "../base/position.ts";
import { CALLS, isOwn, leftAlone, type LoaderOptions, rewriteLoaded, urlOf } from "./loadedFile.ts";
import { loadSync } from "./loader.ts";
import type { ModuleFormat } from "./rewrite.ts";

/** How Node compiles a module of CommonJS; later versions say of which format it is. */
type Compile = (this: object, code: string, filename: string, ...rest: unknown[]) => unknown;

const { TRACEFX_INCLUDE = "", TRACEFX_OPERATORS = "" } = process.env;

const options: LoaderOptions = {
  include: TRACEFX_INCLUDE.split(",").flatMap((it) => (it.trim() === "" ? [] : [it.trim()])),
  operators: /^(?:1|true)$/.test(TRACEFX_OPERATORS),
};

Reflect.set(globalThis, CALLS, { __tracefx });
// What cannot be rewritten is warned of.
setCheckedFiles((file) => (file.startsWith("file:") || isAbsolute(file)) && isOwn(urlOf(file), options));

// Loaders with a thread of their own, such as tsx, give hooks of this thread what those do not take.
if (typeof nodeModule.registerHooks === "function" && !hasOtherLoaders()) {
  nodeModule.registerHooks({ load: loadSync(options) });
} else {
  nodeModule.register("./loader.js", import.meta.url, { data: options });
}

/** What `require` compiles is seen by no hook of every version, so it is looked at where it is compiled. */
const { prototype } = nodeModule as unknown as { readonly prototype: { _compile: Compile } };
const compile = prototype._compile;

prototype._compile = function (this: object, code: string, filename: string, ...rest: unknown[]): unknown {
  return Reflect.apply(compile, this, [rewrittenCode(code, filename, rest[0]), filename, ...rest]);
};

/** Whether anything else was named that Node loads before the program. */
function hasOtherLoaders(): boolean {
  const flags = [...process.execArgv, ...(process.env["NODE_OPTIONS"] ?? "").split(/\s+/)];
  const named = flags.flatMap((flag, at) => {
    const found = /^(?:--import|--require|-r|--(?:experimental-)?loader)(?:=(.*))?$/.exec(flag);
    return found === null ? [] : [found[1] ?? flags[at + 1] ?? ""];
  });
  return named.some((it) => !/\btracefx\/register\b|plugin\/register\.js/.test(it));
}

function rewrittenCode(code: string, filename: string, format: unknown): string {
  const url = urlOf(filename);
  if (!isOwn(url, options)) return code;
  // A file of which nobody says what it is, is CommonJS unless it does not read as that.
  const formats: ModuleFormat[] = format === "module" || format === "commonjs" ? [format] : ["commonjs", "module"];
  let refused: SyntaxError | undefined;
  for (const it of formats) {
    try {
      return rewriteLoaded(code, url, it, options) ?? code;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      refused = error;
    }
  }
  if (refused !== undefined) process.emitWarning(leftAlone(url, refused));
  return code;
}
