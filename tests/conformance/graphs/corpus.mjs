/**
 * The encoding of recorded graphs: reads them, and writes ours in the same way.
 *
 * @module
 */
import {
  Complex,
  complex,
  device,
  DeviceArg,
  Dict,
  dtype,
  DTypeArg,
  Ellipsis,
  EllipsisType,
  Float,
  float,
  Graph,
  isNode,
  layout,
  LayoutArg,
  List,
  memoryFormat,
  MemoryFormatArg,
  op,
  OpArg,
  Slice,
  slice,
  tuple,
} from "tracefx";

/** @typedef {import("tracefx").Arg} Arg */
/** @typedef {import("tracefx").ArgInput} ArgInput */
/** @typedef {import("tracefx").Node} Node */

/**
 * A value in the encoding of the corpus.
 * @typedef {null | boolean | number | string | Encoded[] | { readonly [key: string]: Encoded }} Encoded
 */
/**
 * @typedef {{ name: string, op: import("tracefx").Opcode, target: string, args: Encoded[],
 *   kwargs: { readonly [key: string]: Encoded }, type?: string }} EncodedNode
 */
/** @typedef {{ nodes: EncodedNode[], users?: { readonly [name: string]: string[] } }} EncodedGraph */
/** @typedef {{ type: string, msg: string }} RecordedError */

/** A difference from what was recorded. */
export class Difference extends Error {}

/**
 * Throws where two values of JSON differ, and says where.
 * @type {(got: unknown, want: unknown, what: string) => void}
 */
export function same(got, want, what) {
  const found = differenceAt(got, want, what);
  if (found !== undefined) throw new Difference(found);
}

/** @type {(got: unknown, want: unknown, path: string) => string | undefined} */
function differenceAt(got, want, path) {
  if (Object.is(got, want)) return undefined;
  const isDeep = typeof got === "object" && typeof want === "object" && got !== null && want !== null;
  if (!isDeep || Array.isArray(got) !== Array.isArray(want)) return `${path}: ${shown(got)} instead of ${shown(want)}`;
  const ours = new Map(Object.entries(got));
  const theirs = Object.entries(want);
  for (const [key, value] of theirs) {
    const found = differenceAt(ours.get(key), value, `${path}.${key}`);
    if (found !== undefined) return found;
    ours.delete(key);
  }
  for (const [key, value] of ours) if (value !== undefined) return `${path}.${key}: ${shown(value)} that should not be`;
  return undefined;
}

/** @type {(value: unknown) => string} */
function shown(value) {
  return value === undefined ? "nothing" : (JSON.stringify(value)?.slice(0, 300) ?? String(value));
}

/**
 * The graph of a case. Nodes may use later ones, so that ill-formed graphs can be made too.
 * @type {(encoded: EncodedGraph) => Graph}
 */
export function build(encoded) {
  const graph = new Graph();
  /** @type {Map<string, Node>} */
  const nodes = new Map();
  /** @type {(name: string) => Node} */
  const find = (name) => /** @type {Node} */ (nodes.get(name));
  for (const it of encoded.nodes) {
    const node = graph.createNamedNode(it.op, it.target, [], {}, it.name);
    node.type = it.type;
    nodes.set(it.name, node);
  }
  for (const it of encoded.nodes) {
    const node = find(it.name);
    node.args = it.args.map((arg) => decode(arg, find));
    node.kwargs = new Map(Object.entries(it.kwargs).map(([key, arg]) => [key, decode(arg, find)]));
  }
  return graph;
}

/**
 * A recorded value as an argument.
 * @type {(value: Encoded, find: (name: string) => Node) => ArgInput}
 */
export function decode(value, find) {
  if (value === null || typeof value !== "object") return value;
  /** @type {(it: Encoded) => ArgInput} */
  const each = (it) => decode(it, find);
  if (Array.isArray(value)) return value.map(each);
  const [tag = "", body = null] = Object.entries(value)[0] ?? [];
  const items = /** @type {Encoded[]} */ (body);
  const text = /** @type {any} */ (body);
  switch (tag) {
    case "$n":
      return find(text);
    case "$t":
      return tuple(...items.map(each));
    case "$d":
      return new Map(/** @type {[string, Encoded][]} */ (items).map(([key, it]) => [key, each(it)]));
    case "$s": {
      const [start, stop, step] = items.map(each);
      return slice(start ?? null, stop ?? null, step ?? null);
    }
    case "$e":
      return Ellipsis;
    case "$f":
      return float(text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text));
    case "$c":
      return complex(Number(items[0]), Number(items[1]));
    case "$dtype":
      return dtype(text);
    case "$dev":
      return device(text);
    case "$layout":
      return layout(text);
    case "$mf":
      return memoryFormat(text);
    case "$fn":
      return op(text);
    default:
      throw new Error(`the corpus has a value of kind ${tag}`);
  }
}

/**
 * A graph in the encoding of the corpus, with users.
 * @type {(graph: Graph) => Required<EncodedGraph>}
 */
export function encode(graph) {
  const nodes = Array.from(graph.nodes, (it) => ({
    name: it.name,
    op: it.op,
    target: it.target,
    args: Array.from(it.args, encodeArg),
    kwargs: encodeKwargs(it.kwargs),
    ...(it.type === undefined ? {} : { type: it.type }),
  }));
  const users = Array.from(graph.nodes, (it) => [it.name, Array.from(it.users, (user) => user.name)]);
  return { nodes, users: Object.fromEntries(users) };
}

/** @type {(kwargs: import("tracefx").Kwargs) => { [key: string]: Encoded }} */
export function encodeKwargs(kwargs) {
  return Object.fromEntries(Object.entries(kwargs).map(([key, it]) => [key, encodeArg(it)]));
}

/** @type {(arg: Arg) => Encoded} */
export function encodeArg(arg) {
  if (arg === null || typeof arg === "boolean" || typeof arg === "string") return arg;
  if (typeof arg === "bigint") return { $int: arg.toString() };
  if (typeof arg === "number") return encodeNumber(arg);
  if (isNode(arg)) return { $n: arg.name };
  if (arg instanceof Float) return { $f: `${arg.value}.0` };
  if (arg instanceof Complex) return { $c: [arg.re, arg.im] };
  if (arg instanceof EllipsisType) return { $e: 1 };
  if (arg instanceof DTypeArg) return { $dtype: arg.name };
  if (arg instanceof DeviceArg) return { $dev: arg.toString() };
  if (arg instanceof LayoutArg) return { $layout: arg.name };
  if (arg instanceof MemoryFormatArg) return { $mf: arg.name };
  if (arg instanceof OpArg) return { $fn: arg.name };
  if (arg instanceof Slice) return { $s: [arg.start, arg.stop, arg.step].map(encodeArg) };
  if (arg instanceof Dict) return { $d: Array.from(arg, ([key, it]) => [key, encodeArg(it)]) };
  if (arg instanceof List) return Array.from(arg, encodeArg);
  return { $t: Array.from(arg, encodeArg) };
}

/** @type {(value: number) => Encoded} */
function encodeNumber(value) {
  if (Object.is(value, -0)) return { $f: "-0.0" };
  if (Number.isNaN(value)) return { $f: "nan" };
  if (!Number.isFinite(value)) return { $f: value > 0 ? "inf" : "-inf" };
  return value;
}
