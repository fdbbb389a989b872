/**
 * What a function takes: the names, defaults and kinds of its parameters.
 *
 * JavaScript has no `inspect.signature`, and the placeholders of a trace are named after the parameters, so the names
 * are read from the source.
 *
 * @module
 */
import type { ObjectPattern } from "acorn";
import type { ArgInput } from "../../graph/args.ts";
import { constantOf } from "./constants.ts";
import { type ParsedFunction, parseFunction, type Unparsed } from "./parse.ts";
import { bare, children, extent, type FunctionSyntax, isFunction, keyName, type Syntax } from "./syntax.ts";

/** The default of a parameter. */
export interface ParameterDefault {
  /** Its source text. */
  readonly source: string;
  /** Whether it is written out, so that `value` is what it stands for. */
  readonly isConstant: boolean;
  /** Its value; `undefined` where it says so. */
  readonly value?: ArgInput | undefined;
}

/** A property that an object pattern takes. */
export interface PatternProperty {
  /** Its key. */
  readonly key: string;
  /** What it is when it is not given. */
  readonly default?: ParameterDefault;
}

/** One parameter. */
export interface Parameter {
  /** Its name; a destructured parameter has the name that it would have by position, such as `arg0`. */
  readonly name: string;
  /** Whether it is one value, takes all the rest, or is destructured. */
  readonly kind: "positional" | "rest" | "pattern";
  /** The properties that an object pattern takes, where it names them all. */
  readonly properties?: readonly PatternProperty[];
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
  /** Whether it reads `arguments`. */
  readonly readsArguments: boolean;
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
  return { params, isAsync: node.async, isGenerator: node.generator, isMethod, readsArguments: readsArguments(node) };
}

/** Whether a function reads `arguments`, which arrow functions have from around them. */
export function readsArguments(node: FunctionSyntax): boolean {
  if (node.type === "ArrowFunctionExpression") return false;
  const reads = (it: Syntax): boolean => {
    if (it.type === "Identifier") return it.name === "arguments";
    if (isFunction(it) && it.type !== "ArrowFunctionExpression") return false;
    if (it.type === "MemberExpression" && !it.computed) return reads(it.object);
    return [...children(it)].some(reads);
  };
  return [...node.params, node.body].some(reads);
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
    default: {
      const properties = param.type === "ObjectPattern" ? propertiesOf(param, source) : undefined;
      return { name: `arg${index}`, kind: "pattern", ...(properties && { properties }) };
    }
  }
}

/** The properties of an object pattern; none are known where it takes the rest, or computes a key. */
function propertiesOf({ properties }: ObjectPattern, source: string): PatternProperty[] | undefined {
  const res: PatternProperty[] = [];
  for (const property of properties) {
    const key = property.type === "Property" ? keyName(property.key, property.computed) : undefined;
    if (key === undefined || property.type !== "Property") return undefined;
    const value = bare(property.value);
    res.push(value.type === "AssignmentPattern" ? { key, default: defaultOf(value.right, source) } : { key });
  }
  return res;
}

function defaultOf(node: Syntax, source: string): ParameterDefault {
  const text = source.slice(...extent(node));
  const constant = constantOf(node);
  return constant === undefined ? { source: text, isConstant: false } : { source: text, isConstant: true, ...constant };
}
