/**
 * Rewrites files as a loader of Node gets them: with the map that another loader, or a compiler, has given them already.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import remapping from "@jridgewell/remapping";
import { type ModuleFormat, rewrite, type Runtime } from "./rewrite.ts";

/** What the loader rewrites, and how. */
export interface LoaderOptions {
  /** Packages in `node_modules` that are rewritten too, by name. */
  readonly include: readonly string[];
  /** Whether the operators of JavaScript are recorded. */
  readonly operators: boolean;
}

/** The key under which CommonJS finds the calls: it cannot import them everywhere. */
export const CALLS: unique symbol = Symbol.for("tracefx.checked") as never;

/** Where rewritten files get the calls from: this copy of the package, whatever they could resolve themselves. */
const RUNTIME: Runtime = {
  specifier: new URL("../trace/checked.js", import.meta.url).href,
  expression: 'globalThis[Symbol.for("tracefx.checked")]',
};

/** The folder of this package. */
const OWN = new URL("..", import.meta.url).href;

/** The comment that says where the map of a file is. */
const MAP_COMMENT = /\n?\/\/[#@]\s*sourceMappingURL=(\S+)\s*$/;

/** Whether a file is one of the user's own: not of this package, and in `node_modules` only if it was asked for. */
export function isOwn(url: string, { include }: LoaderOptions): boolean {
  if (!url.startsWith("file:") || url.startsWith(OWN)) return false;
  const [folder] = url.split("/node_modules/").slice(1).slice(-1);
  return folder === undefined || include.some((name) => folder.startsWith(`${name}/`));
}

/**
 * The code of a file with every condition looked at; undefined where nothing is to be done. The lines stay, and the map at
 * the end leads back to what the user wrote.
 *
 * @throws SyntaxError for what is no JavaScript yet.
 */
export function rewriteLoaded(
  code: string,
  url: string,
  format: ModuleFormat,
  { operators }: LoaderOptions,
): string | undefined {
  const found = MAP_COMMENT.exec(code);
  const bare = found === null ? code : code.slice(0, found.index);
  const done = rewrite(bare, { id: url, operators, format, runtime: RUNTIME });
  if (done === undefined) return undefined;
  const before = found === null ? undefined : mapOf(found[1] as string, url);
  const map = before === undefined ? String(done.map) : String(remapping([String(done.map), before], () => null));
  return `${done.code}\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString("base64")}`;
}

/** The URL of a file that CommonJS knows by its path. */
export function urlOf(filename: string): string {
  return filename.startsWith("file:") ? filename : pathToFileURL(filename).href;
}

/** What the user is told of a file that cannot be read. */
export function leftAlone(url: string, error: SyntaxError): string {
  return `tracefx leaves ${fileURLToPath(url)} as it is: ${error.message}`;
}

/** The map that a comment names, with absolute sources; undefined where it is not there. */
function mapOf(address: string, url: string): string | undefined {
  try {
    const place = new URL(address, url);
    const text = place.protocol === "file:" ? readFileSync(place, "utf8") : dataOf(address);
    const map = JSON.parse(text) as { sources: string[]; sourceRoot?: string };
    const root = new URL(
      map.sourceRoot === undefined ? "." : `${map.sourceRoot}/`,
      place.protocol === "file:" ? place : url,
    );
    return JSON.stringify({ ...map, sourceRoot: "", sources: map.sources.map((it) => new URL(it, root).href) });
  } catch {
    // A map that is not there, or no map at all, is nobody's loss but that of columns.
    return undefined;
  }
}

function dataOf(address: string): string {
  const [head = "", data = ""] = address.split(/,(.*)/s);
  return head.endsWith(";base64") ? Buffer.from(data, "base64").toString("utf8") : decodeURIComponent(data);
}
