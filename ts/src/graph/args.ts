/**
 * Arguments: immutable trees whose leaves are Python values and nodes.
 *
 * A whole `number` is an int and any other a float; `float(1)` is the float 1.0; a `bigint` is always an int. An array is
 * a list and {@link tuple} makes a tuple; an object or `Map` is a dict with string keys; `null` is `None`. -0, NaN and the
 * infinities are floats.
 *
 * @module
 */
import { isObject } from "../base/objects.ts";
import { pass } from "../record/stack.ts";
import { checkFunction } from "../base/given.ts";
import { fxError } from "../base/errors.ts";
import type { Node } from "./node.ts";
import {
  Complex,
  DeviceArg,
  Dict,
  DTypeArg,
  EllipsisType,
  Float,
  LayoutArg,
  List,
  MemoryFormatArg,
  OpArg,
  Slice,
  Tuple,
  ValueTuple,
} from "../base/values.ts";

/**
 * An argument as a node holds it. An int that a `number` cannot hold exactly is a `bigint`, and a float is a `Float` only
 * where a `number` of the same value would be an int, or would lose bits.
 */
export type Arg =
  | null
  | boolean
  | number
  | bigint
  | string
  | Node
  | Float
  | Complex
  | EllipsisType
  | DTypeArg
  | DeviceArg
  | LayoutArg
  | MemoryFormatArg
  | OpArg
  | Slice
  | List
  | Tuple
  | Dict;

/** What may be given as an argument. */
export type ArgInput = Arg | readonly ArgInput[] | ReadonlyMap<string, ArgInput> | { readonly [key: string]: ArgInput };

/** Keyword arguments as a node holds them: a frozen object without a prototype. */
export type Kwargs = { readonly [name: string]: Arg };

/** What may be given as keyword arguments. */
export type KwargsInput = ReadonlyMap<string, ArgInput> | { readonly [name: string]: ArgInput };

/** What {@link Node} extends, so that arguments can be told from nodes without knowing what a node is. */
export abstract class NodeBase {
  abstract name: string;
}

/** Containers nested deeper than this are taken for containers that hold themselves. */
const MAX_DEPTH = 500;
const MIN_INT = -(2n ** 63n);
const MAX_INT = 2n ** 63n - 1n;

/**
 * A tuple: `tuple(a, b)` is Python's `(a, b)`, while `[a, b]` is a list. Of tensors and traced values, as a function that
 * is traced returns them, it makes a tuple of values, which can be no argument of a node by itself.
 */
export function tuple(...items: readonly ArgInput[]): Tuple;
export function tuple<T extends readonly unknown[]>(...items: T): ValueTuple<T[number]>;
export function tuple(...items: readonly unknown[]): Tuple | ValueTuple<unknown> {
  pass(tuple);
  return items.some(isRuntimeValue)
    ? ValueTuple.frozen(items)
    : Tuple.frozen((items as ArgInput[]).map((it) => freezeArg(it)));
}

/** A slice, with Python's reading of fewer arguments: `slice(stop)`, `slice(start, stop)`, `slice(start, stop, step)`. */
export function slice(stop: ArgInput): Slice;
export function slice(start: ArgInput, stop: ArgInput, step?: ArgInput): Slice;
export function slice(first: ArgInput, stop?: ArgInput, step: ArgInput = null): Slice {
  pass(slice);
  const [start, end] = stop === undefined ? [null, first] : [first, stop];
  return new Slice(slicePart(start), slicePart(end), slicePart(step));
}

/** A part of a slice; a traced one is replaced by its node when the slice becomes an argument. */
function slicePart(part: ArgInput): Arg {
  return isRuntimeValue(part) ? (part as unknown as Arg) : freezeArg(part);
}

/** Whether this is a value of a run or a trace, alone or in a container, and not a constant. */
function isRuntimeValue(value: unknown): boolean {
  if (typeof value === "function") return true;
  if (typeof value !== "object" || value === null || isFrozen(value) || value instanceof Float) return false;
  if (value instanceof ValueTuple) return true;
  if (Array.isArray(value)) return value.some(isRuntimeValue);
  if (value instanceof Map) return [...value.values()].some(isRuntimeValue);
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null ? Object.values(value).some(isRuntimeValue) : true;
}

/** Whether this argument is a node. */
export function isNode(arg: unknown): arg is Node {
  return arg instanceof NodeBase;
}

/**
 * Refuses what is no node, such as the name of one.
 *
 * @example
 * ```ts
 * checkNode("getTensorMeta", node);
 * ```
 */
export function checkNode(what: string, node: Node): void {
  if (isNode(node)) return;
  const help = 'find one in the graph: graph.findNodes({ op: "call_function" })';
  throw fxError("InvalidArgument", `${what} takes a Node`, { help });
}

/** A frozen copy of what was given, in the one form that a node holds. */
export function freezeArg(input: ArgInput, depth = 0): Arg {
  switch (typeof input) {
    case "string":
    case "boolean":
      return input;
    case "number":
      if (isInt(input) && !Number.isSafeInteger(input)) {
        throw fxError("GraphArgument", `the whole number ${input} is not exact`, {
          help: "write an int as a bigint, such as 2n ** 60n, and a float as float(1e300)",
        });
      }
      return input;
    case "bigint":
      return freezeInt(input);
    case "object":
      return freezeObject(input, depth);
    case "undefined":
    case "function":
    case "symbol":
      throw refused(kindOf(input));
  }
}

/** The frozen form of positional arguments. */
export function freezeArgs(input: readonly ArgInput[]): Tuple {
  if (input instanceof Tuple) return input;
  if (!Array.isArray(input)) throw fxError("GraphArgument", "args must be an array", { help: "write [x] for one" });
  return Tuple.frozen(input.map((it) => freezeArg(it)));
}

/** No keyword arguments. */
export const NO_KWARGS: Kwargs = Object.freeze(Object.create(null) as Record<string, Arg>);

/** The frozen form of keyword arguments. */
export function freezeKwargs(input: KwargsInput): Kwargs {
  if (input === NO_KWARGS) return NO_KWARGS;
  let res: Record<string, Arg> | undefined;
  for (const [name, value] of entriesOf(input, "kwargs")) {
    if (/^\d+$/.test(name)) throw fxError("GraphArgument", `\`${name}\` is not the name of a keyword argument`);
    res ??= Object.create(null) as Record<string, Arg>;
    res[name] = freezeArg(value);
  }
  return res === undefined ? NO_KWARGS : Object.freeze(res);
}

/** Calls `visit` for each node in the tree, in order of appearance; repeated nodes are visited again. */
export function forEachNode(arg: Arg, visit: (node: Node) => void): void {
  if (typeof arg !== "object" || arg === null) return;
  if (isNode(arg)) visit(arg);
  else if (arg instanceof Slice) for (const it of [arg.start, arg.stop, arg.step]) forEachNode(it, visit);
  else if (isSequence(arg)) for (let at = 0; at < arg.length; at++) forEachNode(arg[at] as Arg, visit);
  else if (arg instanceof Dict) for (const it of arg.values()) forEachNode(it, visit);
}

function isSequence(arg: object): arg is List | Tuple {
  return arg instanceof Tuple || arg instanceof List;
}

/** The distinct nodes in arguments, in order of first appearance, args before kwargs. */
export function inputNodes(args: Tuple, kwargs: Kwargs): readonly Node[] {
  // Most nodes are given nothing but one or two other nodes: then the arguments are the list.
  if (kwargs === NO_KWARGS && args.length < 3 && areDistinctNodes(args)) return args;
  const found: Node[] = [];
  const add = (node: Node): void => void found.push(node);
  forEachNode(args, add);
  for (const name of Object.keys(kwargs)) forEachNode(kwargs[name] as Arg, add);
  return found.length < 2 ? found : [...new Set(found)];
}

/** Whether these are nodes, of at most two none twice. */
function areDistinctNodes(args: readonly Arg[]): args is readonly Node[] {
  for (let at = 0; at < args.length; at++) if (!isNode(args[at])) return false;
  return args.length < 2 || args[0] !== args[1];
}

/**
 * The tree with each node replaced: `torch.fx.node.map_arg`.
 *
 * @example
 * ```ts
 * node.args = node.args.map((arg) => mapArg(arg, (it) => (it === old ? replacement : it)));
 * ```
 */
export function mapArg(arg: ArgInput, map: (node: Node) => ArgInput): Arg {
  return mapAggregate(arg, (leaf) => (isNode(leaf) ? map(leaf) : leaf));
}

/** The tree with each leaf replaced: `torch.fx.node.map_aggregate`. */
export function mapAggregate(arg: ArgInput, map: (leaf: Arg) => ArgInput): Arg {
  checkFunction("mapAggregate", "map", map);
  const each = (it: ArgInput): Arg => mapAggregate(it, map);
  if (arg instanceof Tuple) return Tuple.frozen(Array.from(arg, each));
  if (arg instanceof List) return List.frozen(Array.from(arg, each));
  if (arg instanceof Dict) return Dict.frozen(Array.from(arg, ([key, value]) => [key, each(value)] as const));
  if (arg instanceof Slice) return new Slice(each(arg.start), each(arg.stop), each(arg.step));
  // What is no argument of a node yet is frozen first, so that the nodes in plain arrays and objects are found.
  const frozen = freezeArg(arg);
  return Object.is(frozen, arg) ? freezeArg(map(frozen)) : each(frozen);
}

/** An argument as the value that a function gets: tuples, lists, dicts and slices of what stands for each node. */
export function argValue(arg: Arg, of: (node: Node) => unknown): unknown {
  if (typeof arg !== "object" || arg === null) return arg;
  if (isNode(arg)) return of(arg);
  const each = (it: Arg): unknown => argValue(it, of);
  if (arg instanceof Tuple) return ValueTuple.frozen(Array.from(arg, each));
  if (arg instanceof List) return Array.from(arg, each);
  if (arg instanceof Dict) return Object.fromEntries(Array.from(arg, ([key, it]) => [key, each(it)]));
  if (arg instanceof Slice) return new Slice(each(arg.start) as Arg, each(arg.stop) as Arg, each(arg.step) as Arg);
  return arg;
}

/** Positional arguments with each node replaced. */
export function mapArgs(args: Tuple, map: (node: Node) => ArgInput): Tuple {
  return mapArg(args, map) as Tuple;
}

/** Keyword arguments with each node replaced. */
export function mapKwargs(kwargs: Kwargs, map: (node: Node) => ArgInput): Kwargs {
  if (kwargs === NO_KWARGS) return NO_KWARGS;
  const res = Object.create(null) as Record<string, Arg>;
  for (const name of Object.keys(kwargs)) res[name] = mapArg(kwargs[name] as Arg, map);
  return Object.freeze(res);
}

/** Whether a number stands for an int. */
export function isInt(value: number): boolean {
  return Number.isInteger(value) && !Object.is(value, -0);
}

function freezeInt(value: bigint): number | bigint {
  if (value < MIN_INT || value > MAX_INT) {
    throw fxError("GraphArgument", `the int ${value} does not fit 64 bits`);
  }
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

function freezeObject(input: ArgInput & (object | null), depth: number): Arg {
  if (depth > MAX_DEPTH) {
    throw fxError("GraphArgument", `an argument is nested deeper than ${MAX_DEPTH} containers`, {
      help: "check that it does not hold itself",
    });
  }
  if (input instanceof Float) return isInt(input.value) || input.nanBits !== undefined ? input : input.value;
  if (input instanceof Slice) {
    for (const part of [input.start, input.stop, input.step]) freezeArg(part, depth + 1);
    return input;
  }
  if (isFrozen(input)) return input;
  if (input instanceof ValueTuple) throw refused("a tuple of tensors or traced values");
  if (Array.isArray(input)) return List.frozen(Array.from(input as ArgInput[], (it) => freezeArg(it, depth + 1)));
  const entries = entriesOf(input as KwargsInput, "an argument");
  return Dict.frozen(Array.from(entries, ([key, value]) => [key, freezeArg(value, depth + 1)] as const));
}

function isFrozen(input: unknown): input is Exclude<Arg, string | number | bigint | boolean | Float> {
  return (
    input === null ||
    isNode(input) ||
    input instanceof List ||
    input instanceof Tuple ||
    input instanceof Dict ||
    input instanceof Slice ||
    input instanceof Complex ||
    input instanceof EllipsisType ||
    input instanceof DTypeArg ||
    input instanceof DeviceArg ||
    input instanceof LayoutArg ||
    input instanceof MemoryFormatArg ||
    input instanceof OpArg
  );
}

function entriesOf(input: KwargsInput, what: string): Iterable<readonly [string, ArgInput]> {
  if (input instanceof Map) {
    for (const key of input.keys()) {
      if (typeof key !== "string")
        throw fxError("GraphArgument", `a key of ${what} is not a string but ${kindOf(key)}`);
    }
    return input;
  }
  const prototype: unknown = typeof input === "object" && input !== null ? Object.getPrototypeOf(input) : undefined;
  if (prototype === Object.prototype || prototype === null) return Object.entries(input);
  throw refused(kindOf(input));
}

function kindOf(value: unknown): string {
  if (!isObject(value)) return `a value of type ${typeof value}`;
  const { constructor } = value;
  return typeof constructor === "function" ? `an object of class ${constructor.name}` : "an object";
}

function refused(what: string) {
  return fxError("GraphArgument", `${what} cannot be an argument of a node`, {
    help: "give None as null; register a tensor as an attribute of the module and refer to it with graph.getAttr",
  });
}
