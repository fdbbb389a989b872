/**
 * Symbolic expressions, read from the form in which PyTorch saves them: sympy's `srepr`.
 *
 * The engine is what computes with expressions. Here they are only looked at: to print a shape, and to find the nodes whose
 * values an expression is made of.
 *
 * @module
 */
import { fxError, type FxError } from "../base/errors.ts";
import type { SymExpr } from "./val.ts";

/** An expression: a function of others, a symbol, or a number. */
export type Expression =
  | { readonly kind: "call"; readonly name: string; readonly args: readonly Expression[]; readonly srepr: string }
  | { readonly kind: "symbol"; readonly name: string; readonly srepr: string }
  | { readonly kind: "number"; readonly text: string };

/** Expressions nested deeper than this are refused. */
const MAX_DEPTH = 200;

const TOKEN = /\s*(?:([A-Za-z_]\w*)|('(?:[^'\\]|\\.)*')|([-+]?\d[\d.e+-]*)|([(),=]))/y;

/** Names that stand for a number or a truth value. */
const CONSTANTS: ReadonlyMap<string, string> = new Map([
  ["true", "True"],
  ["false", "False"],
  ["oo", "oo"],
  ["pi", "pi"],
  ["E", "E"],
]);

/** Reads an expression. */
export function parseExpression({ srepr }: SymExpr): Expression {
  const reader = new Reader(srepr);
  const res = reader.expression(0);
  reader.end();
  return res;
}

/**
 * An expression as Python's `str` writes it.
 *
 * @example
 * ```ts
 * formatExpression(new SymExpr("Add(Mul(Integer(2), Symbol('s0')), Integer(-1))")); // "2*s0 - 1"
 * ```
 */
export function formatExpression(value: SymExpr): string {
  return write(parseExpression(value), 0);
}

/** Functions whose results are truth values. */
const ANSWERS: ReadonlySet<string> = new Set(["And", "Or", "Not"]);

/** Functions of numbers that may be floats, whose results are whole. */
const TO_WHOLE: ReadonlySet<string> = new Set(["TruncToInt", "FloorToInt", "CeilToInt", "RoundToInt"]);

/** Functions whose results are floats, whatever they are given. */
const TO_FLOAT = /^(?:(?:Int|Float)TrueDiv|FloatPow|ToFloat|TruncToFloat|RoundDecimal|OpaqueUnaryFn_\w+)$/;

/** What an expression is: a truth value, a whole number, or one that may have a fraction. */
export function kindOfExpression(value: SymExpr): "bool" | "int" | "float" {
  return kindOf(parseExpression(value));
}

function kindOf(expression: Expression): "bool" | "int" | "float" {
  switch (expression.kind) {
    case "symbol":
      // PyTorch's names for floats: `zf0` of an input, `zuf0` of an unbacked one.
      return /^zu?f\d/.test(expression.name) ? "float" : "int";
    case "number":
      if (expression.text === "True" || expression.text === "False") return "bool";
      return /^[-+]?\d+$/.test(expression.text) ? "int" : "float";
    case "call": {
      const { name, args } = expression;
      if (RELATIONS.has(name) || ANSWERS.has(name)) return "bool";
      if (TO_WHOLE.has(name)) return "int";
      if (TO_FLOAT.test(name)) return "float";
      // The condition of a choice says nothing of what is chosen.
      const kinds = (name === "Where" ? args.slice(1) : args).map(kindOf);
      return kinds.includes("float")
        ? "float"
        : kinds.length > 0 && kinds.every((it) => it === "bool")
          ? "bool"
          : "int";
    }
  }
}

/** A multiple of a symbol, plus a number. */
export interface Linear {
  readonly name: string;
  readonly factor: number;
  readonly offset: number;
}

/** What an expression of one symbol is, where it is a sum of a multiple of it and an int. */
export function linearOf(expression: Expression): Linear | undefined {
  if (expression.kind === "symbol") return { name: expression.name, factor: 1, offset: 0 };
  if (expression.kind === "number") return undefined;
  const numbers = expression.args.filter((it) => it.kind === "number");
  const [rest, ...others] = expression.args.filter((it) => it.kind !== "number");
  if (rest === undefined || others.length > 0 || numbers.length !== 1) return undefined;
  const number = Number(numbers[0]?.text);
  const inner = linearOf(rest);
  if (inner === undefined || !Number.isSafeInteger(number)) return undefined;
  const { name, factor, offset } = inner;
  if (expression.name === "Add") return { name, factor, offset: offset + number };
  return expression.name === "Mul" ? { name, factor: factor * number, offset: offset * number } : undefined;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  expression(depth: number): Expression {
    if (depth > MAX_DEPTH) throw this.#malformed();
    const from = this.#at;
    const srepr = (): string => this.#text.slice(from, this.#at).trim();
    const name = this.#token();
    if (!/^[A-Za-z_]/.test(name)) throw this.#malformed();
    if (this.#peek() !== "(") {
      const text = CONSTANTS.get(name);
      if (text === undefined) throw this.#malformed();
      return { kind: "number", text };
    }
    this.#token();
    if (name === "Symbol") return { kind: "symbol", name: this.#symbol(), srepr: srepr() };
    if (name === "Integer" || name === "Float" || name === "Rational") return { kind: "number", text: this.#number() };
    const args: Expression[] = [];
    while (this.#peek() !== ")") {
      if (args.length > 0) this.#expect(",");
      args.push(this.expression(depth + 1));
    }
    this.#token();
    return { kind: "call", name, args, srepr: srepr() };
  }

  end(): void {
    if (this.#text.slice(this.#at).trim() !== "") throw this.#malformed();
  }

  /** A name in quotes, and assumptions such as `positive=True`, to the closing parenthesis. */
  #symbol(): string {
    const name = this.#token();
    if (!name.startsWith("'")) throw this.#malformed();
    this.#skipOptions();
    return name.slice(1, -1);
  }

  /** `1`, `'1.5', precision=53` or `1, 2`, to the closing parenthesis. */
  #number(): string {
    const first = this.#token();
    const text = first.startsWith("'") ? first.slice(1, -1) : first;
    if (!/^[-+]?\d/.test(text)) throw this.#malformed();
    if (this.#peek() === ",") {
      const from = this.#at;
      this.#token();
      const second = this.#token();
      if (/^[-+]?\d/.test(second)) {
        this.#expect(")");
        return `${text}/${second}`;
      }
      this.#at = from;
    }
    this.#skipOptions();
    return text;
  }

  #skipOptions(): void {
    while (this.#peek() === ",") {
      this.#token();
      this.#token();
      this.#expect("=");
      this.#token();
    }
    this.#expect(")");
  }

  #expect(wanted: string): void {
    if (this.#token() !== wanted) throw this.#malformed();
  }

  #peek(): string {
    const at = this.#at;
    const token = this.#token();
    this.#at = at;
    return token;
  }

  #token(): string {
    TOKEN.lastIndex = this.#at;
    const match = TOKEN.exec(this.#text);
    if (match === null && this.#text.slice(this.#at).trim() === "") return "";
    if (match === null) throw this.#malformed();
    this.#at = TOKEN.lastIndex;
    return match[0].trim();
  }

  #malformed(): FxError {
    return fxError("ExpressionMalformed", `a symbolic expression is not understood at character ${this.#at}`, {
      notes: [this.#text.slice(0, 200)],
    });
  }
}

/** How tightly an expression binds: sums, products, powers, and what needs no parentheses. */
const [SUM, PRODUCT, POWER, ATOM] = [1, 2, 3, 4] as const;

const RELATIONS: ReadonlyMap<string, string> = new Map([
  ["Equality", "Eq"],
  ["Unequality", "Ne"],
  ["StrictLessThan", "<"],
  ["LessThan", "<="],
  ["StrictGreaterThan", ">"],
  ["GreaterThan", ">="],
]);

function write(expression: Expression, outer: number): string {
  if (expression.kind === "symbol") return expression.name;
  if (expression.kind === "number") {
    const isSigned = expression.text.startsWith("-") || expression.text.includes("/");
    return isSigned && outer > PRODUCT - 1 ? `(${expression.text})` : expression.text;
  }
  const [text, level] = writeCall(expression);
  return level < outer ? `(${text})` : text;
}

function writeCall({ name, args }: Expression & { kind: "call" }): readonly [text: string, level: number] {
  switch (name) {
    case "Add":
      return [args.map((it, at) => writeTerm(it, at)).join(""), SUM];
    case "Mul":
      return [writeProduct(args), PRODUCT];
    case "Pow":
      return [args.map((it) => write(it, ATOM)).join("**"), POWER];
    case "FloorDiv":
    case "CleanDiv":
      return [`(${args.map((it) => write(it, POWER)).join("//")})`, ATOM];
    default: {
      const relation = RELATIONS.get(name) ?? name;
      if (/^\w/.test(relation)) return [`${relation}(${args.map((it) => write(it, 0)).join(", ")})`, ATOM];
      return [args.map((it) => write(it, SUM)).join(` ${relation} `), 0];
    }
  }
}

/** A term of a sum with the sign before it. */
function writeTerm(term: Expression, at: number): string {
  const text = write(term, SUM).replace(/^\((-[\d.]+)\)/, "$1");
  if (at === 0) return text;
  return text.startsWith("-") ? ` - ${text.slice(1)}` : ` + ${text}`;
}

function writeProduct([first, ...rest]: readonly Expression[]): string {
  const factors = rest.map((it) => write(it, PRODUCT)).join("*");
  if (first === undefined) return "1";
  if (first.kind !== "number") return rest.length === 0 ? write(first, PRODUCT) : `${write(first, PRODUCT)}*${factors}`;
  return first.text === "-1" && rest.length > 0
    ? `-${factors}`
    : [first.text, factors].filter((it) => it !== "").join("*");
}
