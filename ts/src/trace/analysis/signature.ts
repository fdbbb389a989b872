/**
 * What a function takes: the names, defaults and kinds of its parameters.
 *
 * JavaScript has no `inspect.signature`, and the placeholders of a trace are named after the parameters, so the names
 * are read from the source.
 *
 * @module
 */
import { type ParsedFunction, parseFunction, type Unparsed } from "./parse.ts";
import { bare, extent, isNullish, type Syntax } from "./syntax.ts";

/** A default value that is written out in the source. */
export type ConstantDefault = null | undefined | boolean | number | bigint | string;

/** The default of a parameter. */
export interface ParameterDefault {
  /** Its source text. */
  readonly source: string;
  /** Whether it is a literal, so that `value` is what it stands for. */
  readonly isConstant: boolean;
  /** The literal's value. */
  readonly value?: ConstantDefault;
}

/** One parameter. */
export interface Parameter {
  /** Its name; a destructured parameter has the name that it would have by position, such as `arg0`. */
  readonly name: string;
  /** Whether it is one value, takes all the rest, or is destructured. */
  readonly kind: "positional" | "rest" | "pattern";
  /** What it is when it is not given. */
  readonly default?: ParameterDefault;
}

/** What is known of a function from its source. */
export interface FunctionSignature {
  readonly params: readonly Parameter[];
  readonly isAsync: boolean;
  readonly isGenerator: boolean;
  /** Whether it was written as a member of a class or object. */
  readonly isMethod: boolean;
}

/**
 * The signature of a function, or why its source cannot be seen.
 *
 * @example
 * ```ts
 * functionSignature((x, scale = 2, ...rest) => x);
 * // { params: [{ name: "x", kind: "positional" }, { name: "scale", kind: "positional", default: … }, …], … }
 * ```
 */
export function functionSignature(fn: Function): FunctionSignature | Unparsed {
  const known = SIGNATURES.get(fn);
  if (known !== undefined) return known;
  const parsed = parseFunction(fn);
  const signature = typeof parsed === "string" ? parsed : signatureOf(parsed);
  SIGNATURES.set(fn, signature);
  return signature;
}

const SIGNATURES = new WeakMap<Function, FunctionSignature | Unparsed>();

/** The signature of a function that was parsed already. */
export function signatureOf({ node, source, isMethod }: ParsedFunction): FunctionSignature {
  const params = node.params.map((param, index) => parameter(param, index, source));
  return { params, isAsync: node.async, isGenerator: node.generator, isMethod };
}

/** One parameter of a function. */
export function parameter(param: Syntax, index: number, source: string): Parameter {
  switch (param.type) {
    case "AssignmentPattern":
      return { ...parameter(param.left, index, source), default: defaultOf(param.right, source) };
    case "RestElement":
      return { ...parameter(param.argument, index, source), kind: "rest" };
    case "Identifier":
      return { name: param.name, kind: "positional" };
    default:
      return { name: `arg${index}`, kind: "pattern" };
  }
}

function defaultOf(node: Syntax, source: string): ParameterDefault {
  const text = source.slice(...extent(node));
  const constant = constantOf(node);
  return constant === undefined ? { source: text, isConstant: false } : { source: text, isConstant: true, ...constant };
}

/** The value of a literal, with its sign. */
function constantOf(node: Syntax): { readonly value: ConstantDefault } | undefined {
  const it = bare(node);
  if (it.type === "Literal" && it.regex === undefined && !(it.value instanceof RegExp)) return { value: it.value };
  if (it.type === "TemplateLiteral" && it.expressions.length === 0) return { value: it.quasis[0]?.value.cooked ?? "" };
  if (it.type === "Identifier" && (it.name === "Infinity" || it.name === "NaN"))
    return { value: it.name === "NaN" ? Number.NaN : Number.POSITIVE_INFINITY };
  if (isNullish(it)) return { value: undefined };
  if (it.type !== "UnaryExpression" || (it.operator !== "-" && it.operator !== "+" && it.operator !== "!"))
    return undefined;
  const inner = constantOf(it.argument)?.value;
  if (it.operator === "!")
    return typeof inner === "number" || typeof inner === "boolean" ? { value: !inner } : undefined;
  if (typeof inner === "number") return { value: it.operator === "-" ? -inner : inner };
  return typeof inner === "bigint" && it.operator === "-" ? { value: -inner } : undefined;
}
