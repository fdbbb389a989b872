/**
 * Python's parameter lists: read from their text, and arguments put in their places as Python does.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { type Arg, freezeArg, tuple } from "../graph/args.ts";
import { dtype, float } from "../base/values.ts";
import type { CallArguments } from "../base/naming.ts";
import { suggestion } from "../base/given.ts";

/** How a parameter takes its argument; `rest` is Python's `*args` and `options` its `**kwargs`. */
export type ParameterKind = "positional" | "positional-or-keyword" | "keyword" | "rest" | "options";

/** A parameter. */
export interface Parameter {
  readonly name: string;
  readonly kind: ParameterKind;
  /** The value that it has where no argument is given; `undefined` where one must be. */
  readonly default: Arg | undefined;
}

/** A parameter list. */
export type Signature = readonly Parameter[];

/**
 * Reads a parameter list as `str(inspect.signature(f))` writes it. Defaults are constants: numbers, strings, `None`,
 * booleans, dtypes, and tuples and lists of them. Annotations have no place in it.
 *
 * @example
 * ```ts
 * parseSignature("(input, dim=None, *, eps=1e-05)").map((it) => it.name); // ["input", "dim", "eps"]
 * ```
 */
export function parseSignature(text: string): Signature {
  return new Reader(text).signature();
}

/**
 * The arguments in the order of the parameters, with the defaults of those that were not given; `undefined` counts as not
 * given. `*args` gets an array and `**kwargs` an object. What Python refuses is refused, in Python's words.
 *
 * @example
 * ```ts
 * bind(parseSignature("(input, inplace=False)"), "relu", { args: [x], kwargs: {} }); // [x, false]
 * ```
 */
export function bind(signature: Signature, name: string, { args, kwargs }: CallArguments): unknown[] {
  const places = signature.filter(isPositional);
  if (args.length > places.length && !signature.some((it) => it.kind === "rest")) {
    throw tooMany(name, places, args.length);
  }
  const unused = new Set(Object.keys(kwargs).filter((key) => kwargs[key] !== undefined));
  const missing: Parameter[] = [];
  const res = signature.map((parameter, at) => {
    if (parameter.kind === "rest") return args.slice(places.length);
    // It is the last parameter, so what is left is all its own.
    if (parameter.kind === "options") return Object.fromEntries([...unused].map((key) => [key, kwargs[key]]));
    const given = isPositional(parameter) ? args[at] : undefined;
    const isNamed = parameter.kind !== "positional" && unused.delete(parameter.name);
    if (isNamed && given !== undefined) {
      throw fxError("SchemaMismatch", `${name}() got multiple values for argument '${parameter.name}'`, {
        help: "give it by position or in the options, not both",
      });
    }
    const value = isNamed ? kwargs[parameter.name] : given === undefined ? parameter.default : given;
    if (value === undefined) missing.push(parameter);
    return value;
  });
  const [stray] = unused;
  if (stray !== undefined && signature.at(-1)?.kind !== "options") throw unknownName(name, stray, signature);
  if (missing.length > 0) throw missingArguments(name, missing);
  return res;
}

function isPositional({ kind }: Parameter): boolean {
  return kind === "positional" || kind === "positional-or-keyword";
}

function tooMany(name: string, places: readonly Parameter[], count: number): FxError {
  const required = places.filter((it) => it.default === undefined).length;
  const range = required === places.length ? `${required}` : `from ${required} to ${places.length}`;
  const plural = places.length === 1 ? "" : "s";
  const verb = count === 1 ? "was" : "were";
  return fxError("SchemaMismatch", `${name}() takes ${range} positional argument${plural} but ${count} ${verb} given`, {
    help: parametersOf(places),
  });
}

function unknownName(name: string, stray: string, signature: Signature): FxError {
  const named = signature.filter((it) => it.kind !== "positional");
  return fxError("InvalidOption", `${name}() got an unexpected keyword argument '${stray}'`, {
    help: `${suggestion(
      stray,
      named.map((it) => it.name),
    )}${parametersOf(named)}`,
  });
}

function missingArguments(name: string, missing: readonly Parameter[]): FxError {
  const names = missing.map((it) => `'${it.name}'`);
  const kind = missing.every((it) => it.kind === "keyword") ? "keyword-only" : "positional";
  const last = names.pop() as string;
  const list = names.length === 0 ? last : `${names.join(", ")}${names.length > 1 ? "," : ""} and ${last}`;
  const plural = missing.length === 1 ? "" : "s";
  return fxError("SchemaMismatch", `${name}() missing ${missing.length} required ${kind} argument${plural}: ${list}`);
}

function parametersOf(parameters: readonly Parameter[]): string {
  if (parameters.length === 0) return "it takes none";
  return `it takes ${parameters.map((it) => it.name).join(", ")}`;
}

/** A word, a string, a number or a sign of a parameter list. */
const TOKEN =
  /\s*(?:([A-Za-z_][\w.]*)|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(-?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)|(->|\*\*|[-()[\],=*/]))/iy;

class Reader {
  readonly #text: string;
  readonly #tokens: string[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    TOKEN.lastIndex = 0;
    const source = text.trimEnd();
    while (TOKEN.lastIndex < source.length) {
      const match = TOKEN.exec(source);
      if (match === null) throw this.#malformed();
      this.#tokens.push(match[0].trim());
    }
  }

  signature(): Signature {
    const res: Parameter[] = [];
    let kind: ParameterKind = "positional-or-keyword";
    this.#expect("(");
    while (this.#peek() !== ")") {
      if (this.#take("/")) {
        if (res.length === 0) throw this.#malformed();
        for (const [at, it] of res.entries()) res[at] = { ...it, kind: "positional" };
      } else if (this.#take("**")) {
        res.push({ name: this.#name(), kind: "options", default: undefined });
        break;
      } else if (this.#take("*")) {
        if (this.#peek() !== ",") res.push({ name: this.#name(), kind: "rest", default: undefined });
        kind = "keyword";
      } else {
        const name = this.#name();
        res.push({ name, kind, default: this.#take("=") ? this.#constant() : undefined });
      }
      if (!this.#take(",")) break;
    }
    this.#expect(")");
    if (this.#at < this.#tokens.length) throw this.#malformed();
    return res;
  }

  #constant(): Arg {
    if (this.#take("(")) return tuple(...this.#items(")"));
    if (this.#take("[")) return freezeArg(this.#items("]"));
    const token = this.#tokens[this.#at++] ?? "";
    switch (token) {
      case "None":
        return null;
      case "True":
        return true;
      case "False":
        return false;
      case "inf":
        return Number.POSITIVE_INFINITY;
      case "nan":
        return Number.NaN;
    }
    if (token === "-" && this.#take("inf")) return Number.NEGATIVE_INFINITY;
    if (/^['"]/.test(token)) return token.slice(1, -1).replace(/\\(.)/g, "$1");
    if (/^-?\d[\d_]*$/.test(token)) return freezeArg(BigInt(token.replaceAll("_", "")));
    if (/^-?[.\d]/.test(token)) return freezeArg(float(Number(token.replaceAll("_", ""))));
    const name = token.replace(/^torch\./, "");
    if (Object.hasOwn(DTYPES, name)) return dtype(name as DType);
    throw this.#malformed();
  }

  #items(end: string): Arg[] {
    const res: Arg[] = [];
    while (!this.#take(end)) {
      res.push(this.#constant());
      if (this.#take(",")) continue;
      this.#expect(end);
      break;
    }
    return res;
  }

  #name(): string {
    const name = this.#tokens[this.#at++] ?? "";
    if (!/^[A-Za-z_]\w*$/.test(name)) throw this.#malformed();
    return name;
  }

  #peek(): string | undefined {
    return this.#tokens[this.#at];
  }

  #take(token: string): boolean {
    if (this.#peek() !== token) return false;
    this.#at += 1;
    return true;
  }

  #expect(token: string): void {
    if (!this.#take(token)) throw this.#malformed();
  }

  #malformed(): FxError {
    return fxError("InvalidOption", `\`${this.#text}\` is not a parameter list`, {
      help: "write it as Python does, without annotations: (input, dim=None, *, eps=1e-05)",
    });
  }
}
