/**
 * The text of the files whose functions are running.
 *
 * A frame of the stack says in which file it is, and at which line and column. Where the host has files, the text is read;
 * V8 keeps a hash of what it compiled, which tells whether it is the same. Where it is not, because a loader or a test runner has
 * changed it, the host's source maps lead to the text that the user wrote.
 *
 * @module
 */
import type { Program } from "acorn";
import { parseProgram } from "./analysis/parse.ts";
import { children, extent, type FunctionSyntax, isFunction, type Syntax } from "./analysis/syntax.ts";
import { type CallSite, writtenAt } from "./position.ts";

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

/** Longer files are bundles, of which a tree would take more memory than it is worth. */
const MAX_LENGTH = 4_000_000;

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

  #offsetOf(line: number, column: number): number | undefined {
    this.#lines ??= [0, ...Array.from(this.text.matchAll(/\r\n|[\n\r\u2028\u2029]/g), (it) => it.index + it[0].length)];
    const start = this.#lines[line - 1];
    return start === undefined ? undefined : start + column - 1;
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
  const path = pathOf(file);
  if (path === undefined || line === null || column === null) return undefined;
  const hash = site.getScriptHash?.() ?? "";
  const compiled = readOnce(path, hash, compiledTexts);
  if (compiled !== undefined) return { script: compiled, line, column };
  const written = writtenAt(site, line, column);
  const original = written && pathOf(written.file);
  if (written === undefined || original === undefined) return undefined;
  const script = readOnce(original, `for ${hash}`, writtenTexts);
  return script && { script, line: written.line, column: written.column };
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
    return builtin("node:fs")?.readFileSync(path, "utf8");
  } catch {
    // A name that a host gave to code that is in no file, or a file that nobody may read.
    return undefined;
  }
}

function hashOf(text: string): string | undefined {
  return builtin("node:crypto")?.createHash("sha256").update(text, "utf8").digest("hex");
}

/** Node's own: types become spaces, so that nothing moves. */
function withoutTypes(path: string, text: string): string | undefined {
  if (!/\.[cm]?ts$/.test(path)) return undefined;
  const { stripTypeScriptTypes } = builtin("node:module") ?? {};
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
  const { process } = globalThis as Host;
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
  if (file.startsWith("file://")) return builtin("node:url")?.fileURLToPath(file);
  return /^(?:\/|[A-Za-z]:[\\/])/.test(file) ? file.replace(/\?.*$/, "") : undefined;
}

/** The parts of Node that are used here. */
interface Builtins {
  "node:fs": { readFileSync(path: string, encoding: "utf8"): string };
  "node:url": { fileURLToPath(url: string): string };
  "node:module": { stripTypeScriptTypes?: (text: string) => string };
  "node:crypto": {
    createHash(name: "sha256"): { update(text: string, encoding: "utf8"): { digest(as: "hex"): string } };
  };
}

interface Host {
  readonly process?: {
    getBuiltinModule?: <Name extends keyof Builtins>(name: Name) => Builtins[Name] | undefined;
    emitWarning?: (...args: unknown[]) => void;
  };
}

function builtin<Name extends keyof Builtins>(name: Name): Builtins[Name] | undefined {
  return (globalThis as Host).process?.getBuiltinModule?.(name);
}
