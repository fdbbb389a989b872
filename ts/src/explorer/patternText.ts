/**
 * Patterns and arguments as text: calls of operators, as the explorer names them, on names and literals. The text is parsed, and never
 * evaluated.
 *
 * @module
 */
import { type FxError, fxError } from "../base/errors.ts";
import { DTypeArg, Float } from "../base/values.ts";
import { type DType, DTYPES } from "../../../bindings/dtypes.ts";
import type { ArgInput } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";

/** Tokens: names with dots, numbers, texts, and signs. */
const TOKEN =
  /\s*(?:([A-Za-z_][\w.]*)|([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-inf\b)|'([^']*)'|"([^"]*)"|([()[\],=]))/y;

interface Token {
  readonly kind: "name" | "number" | "text" | "sign" | "end";
  readonly text: string;
  readonly at: number;
}

/** The full name of an operator that a text names: undefined where there is none. */
export type ResolveTarget = (name: string) => string | undefined;

/**
 * A pattern and what takes its place, as graphs with the same inputs: `relu(x)` and `clamp_min(x, 0)`. Names that are called are
 * operators, and the others are inputs.
 *
 * @example
 * ```ts
 * const [pattern, replacement] = parsePatterns("relu(neg(x))", "x", (name) => `torch.ops.aten.${name}.default`);
 * ```
 *
 * @throws `InvalidOption` where the text is no pattern, with the place.
 */
export function parsePatterns(pattern: string, replacement: string, resolve: ResolveTarget): [Graph, Graph] {
  const inputs = [...new Set(namesIn(pattern))];
  const graphs = [pattern, replacement].map((text) => {
    const graph = new Graph();
    const nodes = new Map(inputs.map((it) => [it, graph.placeholder(it)]));
    const parser = new Parser(text, {
      name: (name, at) => nodes.get(name) ?? refuse(text, at, `the pattern has no input \`${name}\``),
      call: (target, args, kwargs) => graph.callFunction(target, args, kwargs),
      resolve,
    });
    const value = parser.whole();
    graph.output(value);
    return graph;
  });
  const [first, second] = graphs as [Graph, Graph];
  if (first.nodes.every((it) => it.op !== "call_function")) throw refusal(pattern, 0, "a pattern has a call");
  return [first, second];
}

/**
 * An argument of a node as text: a literal, or the name of a node.
 *
 * @example
 * ```ts
 * parseArgument("[1, 2.0, None]", () => undefined); // [1, new Float(2), null]
 * ```
 */
export function parseArgument(text: string, nodeOf: (name: string) => Node | undefined): ArgInput {
  const parser = new Parser(text, {
    name: (name, at) => nodeOf(name) ?? refuse(text, at, `there is no node \`${name}\``),
    call: (_, __, ___, at) => refuse(text, at, "an argument has no calls"),
    resolve: (name) => name,
  });
  return parser.whole();
}

/** The names in a text that are not called, in order. */
function namesIn(text: string): string[] {
  const tokens = tokensOf(text);
  return tokens.flatMap(({ kind, text: name }, at) => {
    const next = tokens[at + 1]?.text;
    const isInput = kind === "name" && next !== "(" && next !== "=" && literalOf(name) === undefined;
    return isInput ? [name] : [];
  });
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; text.slice(at).trim() !== ""; at = TOKEN.lastIndex) {
    const match = TOKEN.exec(text);
    if (match === null) throw refusal(text, at, "this is no name, number, text or sign");
    const [whole, name, number, single, double, sign] = match;
    const place = at + whole.length - whole.trimStart().length;
    if (name !== undefined) tokens.push({ kind: "name", text: name, at: place });
    else if (number !== undefined) tokens.push({ kind: "number", text: number, at: place });
    else if (sign !== undefined) tokens.push({ kind: "sign", text: sign, at: place });
    else tokens.push({ kind: "text", text: single ?? double ?? "", at: place });
  }
  return [...tokens, { kind: "end", text: "", at: text.length }];
}

/** The value of a name that stands for one: `None`, `True`, `torch.float32`. */
function literalOf(name: string): ArgInput | undefined {
  if (name === "None") return null;
  if (name === "True" || name === "False") return name === "True";
  if (name === "inf" || name === "nan") return name === "inf" ? Number.POSITIVE_INFINITY : Number.NaN;
  const dtype = name.replace(/^torch\./, "");
  return dtype !== name && Object.hasOwn(DTYPES, dtype) ? new DTypeArg(dtype as DType) : undefined;
}

/** What names and calls are. */
interface Meaning {
  readonly name: (name: string, at: number) => ArgInput;
  readonly call: (target: string, args: ArgInput[], kwargs: Record<string, ArgInput>, at: number) => ArgInput;
  readonly resolve: ResolveTarget;
}

class Parser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  readonly #meaning: Meaning;
  #at = 0;

  constructor(text: string, meaning: Meaning) {
    this.#text = text;
    this.#tokens = tokensOf(text);
    this.#meaning = meaning;
  }

  whole(): ArgInput {
    const value = this.#value();
    const { kind, at } = this.#next();
    if (kind !== "end") throw refusal(this.#text, at, "expected the end");
    return value;
  }

  #value(): ArgInput {
    const { kind, text, at } = this.#next();
    switch (kind) {
      case "number":
        return numberOf(text);
      case "text":
        return text;
      case "name": {
        const literal = literalOf(text);
        if (literal !== undefined) return literal;
        if (!this.#takes("(")) return this.#meaning.name(text, at);
        const target = this.#meaning.resolve(text);
        if (target === undefined) throw refusal(this.#text, at, `there is no operator \`${text}\``);
        const { args, kwargs } = this.#list(")");
        return this.#meaning.call(target, args, kwargs, at);
      }
      case "sign":
      case "end":
        if (text === "[") return this.#list("]").args;
        throw refusal(this.#text, at, "expected a value");
    }
    return kind satisfies never;
  }

  /** Values up to a bracket, those with names apart. */
  #list(end: ")" | "]"): { readonly args: ArgInput[]; readonly kwargs: Record<string, ArgInput> } {
    const [args, kwargs]: [ArgInput[], [string, ArgInput][]] = [[], []];
    while (!this.#takes(end)) {
      const [{ kind, text: name }, sign] = [this.#tokens[this.#at] as Token, this.#tokens[this.#at + 1]];
      const isNamed = end === ")" && kind === "name" && sign?.text === "=";
      if (isNamed) this.#at += 2;
      const value = this.#value();
      if (isNamed) kwargs.push([name, value]);
      else args.push(value);
      if (this.#takes(end)) break;
      const { text, at } = this.#next();
      if (text !== ",") throw refusal(this.#text, at, `expected a comma or ${end}`);
    }
    return { args, kwargs: Object.fromEntries(kwargs) };
  }

  #next(): Token {
    const token = this.#tokens[this.#at] as Token;
    if (token.kind !== "end") this.#at++;
    return token;
  }

  /** Takes a sign if it is the next one. */
  #takes(sign: string): boolean {
    const { kind, text } = this.#tokens[this.#at] as Token;
    const isNext = kind === "sign" && text === sign;
    if (isNext) this.#at++;
    return isNext;
  }
}

/** A number as Python reads it: one with a point or an exponent is a float. */
function numberOf(text: string): ArgInput {
  if (text === "-inf") return Number.NEGATIVE_INFINITY;
  const number = Number(text);
  return /[.eE]/.test(text) && Number.isInteger(number) ? new Float(number) : number;
}

function refuse(text: string, at: number, why: string): never {
  throw refusal(text, at, why);
}

function refusal(text: string, at: number, why: string): FxError {
  return fxError("InvalidOption", `${why}, at character ${at + 1} of \`${text.trim()}\``, {
    help: "write calls of operators on names and literals, such as clamp_min(add.Tensor(x, y), 0)",
  });
}
