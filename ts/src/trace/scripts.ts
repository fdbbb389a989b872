/**
 * The text of the files whose functions are running.
 *
 * A frame of the stack says in which file it is, and at which line and column. Where the host has files, the text is read;
 * V8 keeps a hash of what it compiled, which tells whether it is the same. Where it is not, because a loader or a test runner has
 * changed it, the host's source maps lead to the text that the user wrote; where that is no JavaScript, or in no file, Node's inspector
 * gives what was compiled.
 *
 * @module
 */
import type { Debugger } from "node:inspector";
import type { Program } from "acorn";
import { builtinModule } from "../base/builtinModule.ts";
import { parseProgram } from "./analysis/parse.ts";
import { children, extent, type FunctionSyntax, isFunction, type Syntax } from "./analysis/syntax.ts";
import { type CallSite, mapped, writtenAt } from "../base/position.ts";

/** A function in its file. */
export interface WrittenFunction {
  readonly script: Script;
  readonly node: FunctionSyntax;
  /** The nodes around it, the outermost first. */
  readonly around: readonly Syntax[];
}

/** A place in a file. */
export interface ScriptPlace {
  readonly script: Script;
  readonly line: number;
  readonly column: number;
}

/** Longer files are bundles, of which a tree would take more time and memory than a trace should: half a second a megabyte, and 90 MB. */
const MAX_LENGTH = 500_000;

/** What the build plugin and the loader write into a file whose decisions they check. */
const CHECKED_CODE = /["']tracefx\/checked["']|\bSymbol\.for\("tracefx\.checked"\)|\btrace\/checked\.js["']/;

/** The text of a file, and what stands in it. */
export class Script {
  readonly file: string;
  readonly text: string;
  /** Whether every decision in it is checked when it is made. */
  readonly isChecked: boolean;
  #program: Program | "unreadable" | undefined;
  #lines: number[] | undefined;
  readonly #texts = new WeakMap<FunctionSyntax, string>();

  constructor(file: string, text: string) {
    this.file = file;
    this.text = text;
    this.isChecked = CHECKED_CODE.test(text);
  }

  /** What stands in the file; undefined where it is no JavaScript. */
  get program(): Program | undefined {
    this.#program ??= (this.text.length > MAX_LENGTH ? undefined : parseProgram(this.text)) ?? "unreadable";
    return this.#program === "unreadable" ? undefined : this.#program;
  }

  /** A place in it, as the user finds it. */
  at({ line, column }: { readonly line: number; readonly column: number }): string {
    return `${this.file}:${line}:${column}`;
  }

  /** The text of a function in it; the same string each time, which a set finds faster. */
  textOf(fn: FunctionSyntax): string {
    const known = this.#texts.get(fn) ?? this.text.slice(...extent(fn));
    this.#texts.set(fn, known);
    return known;
  }

  /** The innermost function around a place. */
  functionAt(line: number, column: number): WrittenFunction | undefined {
    const offset = this.#offsetOf(line, column);
    if (offset === undefined || this.program === undefined) return undefined;
    const path: Syntax[] = [this.program];
    for (let inner = within(this.program.body, offset); inner !== undefined; inner = within(children(inner), offset))
      path.push(inner);
    for (let at = path.length - 1; at >= 0; at--) {
      const node = path[at];
      if (node !== undefined && isFunction(node)) return { script: this, node, around: path.slice(0, at) };
    }
    return undefined;
  }

  /** The place of a character. */
  placeOf(offset: number): ScriptPlace {
    const lines = this.#lineStarts();
    let [first, last] = [0, lines.length - 1];
    while (first < last) {
      const middle = Math.ceil((first + last) / 2);
      if ((lines[middle] as number) <= offset) first = middle;
      else last = middle - 1;
    }
    return { script: this, line: first + 1, column: offset - (lines[first] as number) + 1 };
  }

  #lineStarts(): readonly number[] {
    this.#lines ??= [0, ...Array.from(this.text.matchAll(/\r\n|[\n\r\u2028\u2029]/g), (it) => it.index + it[0].length)];
    return this.#lines;
  }

  #offsetOf(line: number, column: number): number | undefined {
    const start = this.#lineStarts()[line - 1];
    return start === undefined ? undefined : start + column - 1;
  }
}

/** What the host compiled, whose places the user finds elsewhere. */
class CompiledScript extends Script {
  readonly #site: CallSite;
  readonly #line: number;
  readonly #column: number;

  /** The text of a site's script, which begins at a line and column, from 0, of what the host takes for its file. */
  constructor(site: CallSite, text: string, line: number, column: number) {
    super(site.getFileName() ?? "", text);
    this.#site = site;
    this.#line = line;
    this.#column = column;
  }

  override at({ line, column }: { readonly line: number; readonly column: number }): string {
    const [row, at] = [line + this.#line, line === 1 ? column + this.#column : column];
    return mapped(this.#site, row, at) ?? super.at({ line: row, column: at });
  }
}

function within(nodes: Iterable<Syntax>, offset: number): Syntax | undefined {
  for (const node of nodes) {
    const [start, end] = extent(node);
    if (start <= offset && offset < end) return node;
  }
  return undefined;
}

/** The place of a frame in a text that was read; undefined where the host cannot read it. */
export function placeOfSite(site: CallSite): ScriptPlace | undefined {
  const [file, line, column] = [site.getFileName() ?? "", site.getLineNumber(), site.getColumnNumber()];
  if (line === null || column === null) return undefined;
  const hash = site.getScriptHash?.() ?? "";
  const path = pathOf(file);
  const compiled = path === undefined ? undefined : readOnce(path, hash, compiledTexts);
  if (compiled !== undefined) return { script: compiled, line, column };
  const written = path === undefined ? undefined : writtenAt(site, line, column);
  const original = written && pathOf(written.file);
  const script = original === undefined ? undefined : readOnce(original, `for ${hash}`, writtenTexts);
  if (written !== undefined && script?.program !== undefined)
    return { script, line: written.line, column: written.column };
  const position = site.getPosition?.();
  return hash === "" || position === undefined ? undefined : inspectOnce(hash, site)?.placeOf(position);
}

/** What the inspector gave for each name and hash. */
const INSPECTED = new Map<string, Script | undefined>();

function inspectOnce(hash: string, site: CallSite): Script | undefined {
  const url = site.getFileName() ?? "";
  const key = `${hash} ${url}`;
  if (INSPECTED.has(key)) return INSPECTED.get(key);
  const found = inspected(hash, url);
  if (found === undefined) return undefined;
  const script =
    found === "missing" ? undefined : new CompiledScript(site, found.text, found.startLine, found.startColumn);
  if (INSPECTED.size >= MAX_FILES) INSPECTED.clear();
  INSPECTED.set(key, script);
  return script;
}

/** What Node compiled, by its hash and name; undefined where it does not say. Nothing but this runs while the inspector listens, so that nothing stops at it. */
function inspected(
  hash: string,
  url: string,
): (Debugger.ScriptParsedEventDataType & { readonly text: string }) | "missing" | undefined {
  const { Session } = builtinModule("node:inspector") ?? {};
  if (Session === undefined) return undefined;
  try {
    const session = new Session();
    session.connect();
    try {
      let found: Debugger.ScriptParsedEventDataType | undefined;
      let text: string | undefined;
      session.on("Debugger.scriptParsed", ({ params }) => {
        if (params.hash === hash && (found === undefined || params.url === url)) found = params;
      });
      session.post("Debugger.enable");
      if (found === undefined) return "missing";
      session.post("Debugger.getScriptSource", { scriptId: found.scriptId }, (_, result) => {
        text = result?.scriptSource;
      });
      return text === undefined ? "missing" : { ...found, text };
    } finally {
      session.disconnect();
    }
  } catch {
    // A host may have no inspector, or forbid it.
    return undefined;
  }
}

/** What was read of each file, by the hash of what was compiled; a file may change between two traces. */
const SCRIPTS = new Map<string, Map<string, Script | undefined>>();

/** How many files are kept. */
const MAX_FILES = 64;

function readOnce(path: string, key: string, read: (path: string, key: string) => string | undefined) {
  let scripts = SCRIPTS.get(path);
  if (scripts?.has(key)) return scripts.get(key);
  const text = read(path, key);
  const script = text === undefined ? undefined : new Script(path, text);
  if (scripts === undefined) {
    if (SCRIPTS.size >= MAX_FILES) SCRIPTS.clear();
    SCRIPTS.set(path, (scripts = new Map()));
  }
  scripts.set(key, script);
  return script;
}

/** The text of a file that is what was compiled: as it is, or without its types. */
function compiledTexts(path: string, hash: string): string | undefined {
  const text = textOf(path);
  if (text === undefined || hash === "" || hashOf(text) === hash) return hash === "" ? undefined : text;
  const script = withoutTypes(path, text);
  return script !== undefined && hashOf(script) === hash ? script : undefined;
}

/** The JavaScript of a file that somebody has changed before it was compiled: it has every function at its place. */
function writtenTexts(path: string): string | undefined {
  const text = textOf(path);
  return text !== undefined && /\.[cm]?tsx?$/.test(path) ? withoutTypes(path, text) : text;
}

function textOf(path: string): string | undefined {
  try {
    return builtinModule("node:fs")?.readFileSync(path, "utf8");
  } catch {
    // A name that a host gave to code that is in no file, or a file that nobody may read.
    return undefined;
  }
}

function hashOf(text: string): string | undefined {
  return builtinModule("node:crypto")?.createHash("sha256").update(text, "utf8").digest("hex");
}

/** Node's own: types become spaces, so that nothing moves. */
function withoutTypes(path: string, text: string): string | undefined {
  if (!/\.[cm]?ts$/.test(path)) return undefined;
  const { stripTypeScriptTypes } = builtinModule("node:module") ?? {};
  if (stripTypeScriptTypes === undefined) return undefined;
  try {
    return quietly(() => stripTypeScriptTypes(text));
  } catch {
    // What Node cannot take away, nobody runs in Node without a loader.
    return undefined;
  }
}

/** Runs something that warns that it is an experiment of the host's: a trace is no place to hear of it. */
function quietly<T>(run: () => T): T {
  const { process } = globalThis;
  if (process?.emitWarning === undefined) return run();
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return run();
  } finally {
    process.emitWarning = emitWarning;
  }
}

function pathOf(file: string): string | undefined {
  if (file.startsWith("file://")) return builtinModule("node:url")?.fileURLToPath(file);
  return /^(?:\/|[A-Za-z]:[\\/])/.test(file) ? file.replace(/\?.*$/, "") : undefined;
}
