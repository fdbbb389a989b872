/**
 * The syntax tree of a function at run time, from `Function.prototype.toString()`.
 *
 * The text of a method (`forward(x) {…}`, `async *#parts() {…}`, `get [name]() {…}`) is no expression, so it is parsed as the
 * member of a class; what stands in front of it is on the same line, and is taken off the positions again.
 *
 * acorn does it because it is small, has no dependencies, runs in a browser under a strict content security policy, and
 * follows the language year by year.
 *
 * @module
 */
import { type Options, type Program, parse } from "acorn";
import { bare, extent, type FunctionSyntax, isFunction, type Syntax } from "./syntax.ts";

/** A function whose source was found. */
export interface ParsedFunction {
  /** The text that was parsed: the positions of the tree count in it. */
  readonly source: string;
  /** How many characters stand in front of the function's own text, on its first line. */
  readonly shift: number;
  /** The function. */
  readonly node: FunctionSyntax;
  /** Whether it was written as a member of a class or object, with `this` of its own. */
  readonly isMethod: boolean;
}

/** Why a function has no source. */
export type Unparsed = "native" | "class" | "unreadable";

/** A private method or function of a class: only the text of the class shows it. */
export interface PrivateFunction {
  /** Its name, with the `#`. */
  readonly name: string;
  readonly text: string;
}

/** A function whose source can be asked for. */
export type Readable = Function | PrivateFunction;

const OPTIONS: Options = {
  ecmaVersion: "latest",
  locations: true,
  allowAwaitOutsideFunction: true,
  allowReturnOutsideFunction: true,
  allowSuperOutsideMethod: true,
  checkPrivateFields: false,
  allowHashBang: true,
};

/**
 * The tree of a function.
 *
 * Built-in functions, bound functions and those of WebAssembly have no source, nor do functions whose text is not
 * JavaScript; a class is no function to trace.
 */
export function parseFunction(fn: Readable): ParsedFunction | Unparsed {
  const known = PARSED.get(fn);
  if (known !== undefined) return known;
  const parsed = parseText(typeof fn === "function" ? Function.prototype.toString.call(fn) : fn.text);
  PARSED.set(fn, parsed);
  return parsed;
}

const PARSED = new WeakMap<Readable, ParsedFunction | Unparsed>();

/** What begins as a method does, which is no expression: a name in front of parameters, a symbol, an accessor. */
const METHOD = /^(?:async\b(?!\s*\()|(?:get|set|static)\b)?\s*\*?\s*(?!(?:async|function)\b)[\w$#[]+[^=]*?\(/;

function parseText(text: string): ParsedFunction | Unparsed {
  if (/\{\s*\[native code\]\s*\}\s*$/.test(text)) return "native";
  if (/^class\b/.test(text)) return "class";
  const asMember = () => member(`(class extends Object {${text}})`, "(class extends Object {".length);
  const asExpression = () => expression(`(${text})`, 1);
  const [first, second] = METHOD.test(text) ? [asMember, asExpression] : [asExpression, asMember];
  return first() ?? second() ?? member(`({${text}})`, "({".length) ?? "unreadable";
}

/** The private methods of a class by name, and its private fields that are functions. */
export function privateFunctions(owner: Function): ReadonlyMap<string, PrivateFunction> {
  const known = PRIVATE.get(owner);
  if (known !== undefined) return known;
  const res = new Map<string, PrivateFunction>();
  PRIVATE.set(owner, res);
  const source = `(${Function.prototype.toString.call(owner)})`;
  const node = /#/.test(source) ? only(source) : undefined;
  if (node?.type !== "ClassExpression") return res;
  for (const it of node.body.body) {
    if (it.type === "StaticBlock" || it.key.type !== "PrivateIdentifier" || !it.value) continue;
    const { value } = it;
    const isMethod = it.type === "MethodDefinition" && it.kind === "method";
    if (!isMethod && (it.type !== "PropertyDefinition" || !isFunction(bare(value)))) continue;
    const name = `#${it.key.name}`;
    res.set(name, { name, text: source.slice(...extent(isMethod ? it : value)) });
  }
  return res;
}

const PRIVATE = new WeakMap<Function, ReadonlyMap<string, PrivateFunction>>();

function expression(source: string, shift: number): ParsedFunction | undefined {
  const node = only(source);
  return node !== undefined && isFunction(node) ? { source, shift, node, isMethod: false } : undefined;
}

function member(source: string, shift: number): ParsedFunction | undefined {
  const node = only(source);
  if (node === undefined) return undefined;
  const members = node.type === "ClassExpression" ? node.body.body : "properties" in node ? node.properties : [];
  const [first] = members;
  const value = first !== undefined && "value" in first ? first.value : undefined;
  if (members.length !== 1 || value === undefined || value === null || !isFunction(value)) return undefined;
  return { source, shift, node: value, isMethod: true };
}

/** The one expression that the source consists of. */
function only(source: string): Syntax | undefined {
  const statement = parseProgram(source)?.body;
  const [first] = statement ?? [];
  return statement?.length === 1 && first?.type === "ExpressionStatement" ? bare(first.expression) : undefined;
}

/** The statements of a text. Functions are strict code nearly always; those that are not (`with`, octal literals) are tried again as a script. */
export function parseProgram(source: string): Program | undefined {
  for (const sourceType of ["module", "script"] as const) {
    try {
      return parse(source, { ...OPTIONS, sourceType });
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return undefined;
}
