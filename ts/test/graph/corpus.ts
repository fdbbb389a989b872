/** Reads the graphs that PyTorch recorded, and writes ours in the same encoding. */
import { readFileSync } from "node:fs";
import { type Arg, type ArgInput, isNode, type Kwargs, slice, tuple } from "../../src/graph/args.ts";
import { Graph } from "../../src/graph/graph.ts";
import type { Node, Opcode } from "../../src/graph/node.ts";
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
  layout,
  LayoutArg,
  List,
  memoryFormat,
  MemoryFormatArg,
  op,
  OpArg,
  Slice,
  type Tuple,
} from "../../src/graph/values.ts";

/** A value in the encoding of the corpus. */
export type Encoded = null | boolean | number | string | Encoded[] | { readonly [key: string]: Encoded };

export interface EncodedNode {
  readonly name: string;
  readonly op: Opcode;
  readonly target: string;
  readonly args: Encoded[];
  readonly kwargs: { readonly [key: string]: Encoded };
  readonly type?: string;
}

export interface EncodedGraph {
  readonly nodes: EncodedNode[];
  readonly users?: { readonly [name: string]: string[] };
}

/** The cases of one kind; `T` is what a line holds. */
export function cases<T>(kind: string): T[] {
  const text = readFileSync(new URL(`../../../tests/fixtures/graphs/${kind}.jsonl`, import.meta.url), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);
}

/** The graph of a case. Nodes may use later ones, so that ill-formed graphs can be made too. */
export function build(encoded: EncodedGraph): Graph {
  const graph = new Graph();
  const nodes = new Map<string, Node>();
  for (const it of encoded.nodes) {
    const node = graph.createNamedNode(it.op, it.target, [], {}, it.name);
    node.type = it.type;
    nodes.set(it.name, node);
  }
  for (const it of encoded.nodes) {
    const node = nodes.get(it.name) as Node;
    node.args = it.args.map((arg) => decode(arg, (name) => nodes.get(name) as Node));
    node.kwargs = new Map(
      Object.entries(it.kwargs).map(([key, arg]) => [key, decode(arg, (name) => nodes.get(name) as Node)]),
    );
  }
  return graph;
}

/** A recorded value as an argument. */
export function decode(value: Encoded, find: (name: string) => Node): ArgInput {
  if (value === null || typeof value !== "object") return value;
  const each = (it: Encoded): ArgInput => decode(it, find);
  if (Array.isArray(value)) return value.map(each);
  const [[tag, body] = ["", null]] = Object.entries(value);
  switch (tag) {
    case "$n":
      return find(body as string);
    case "$t":
      return tuple(...(body as Encoded[]).map(each));
    case "$d":
      return new Map((body as [string, Encoded][]).map(([key, it]) => [key, each(it)]));
    case "$s": {
      const [start, stop, step] = (body as [Encoded, Encoded, Encoded]).map(each) as [ArgInput, ArgInput, ArgInput];
      return slice(start, stop, step);
    }
    case "$e":
      return Ellipsis;
    case "$f":
      return float(body === "inf" ? Infinity : body === "-inf" ? -Infinity : Number(body));
    case "$c": {
      const [re, im] = body as [number, number];
      return complex(re, im);
    }
    case "$dtype":
      return dtype(body as Parameters<typeof dtype>[0]);
    case "$dev":
      return device(body as string);
    case "$layout":
      return layout(body as Parameters<typeof layout>[0]);
    case "$mf":
      return memoryFormat(body as Parameters<typeof memoryFormat>[0]);
    case "$fn":
      return op(body as string);
    default:
      throw new Error(`the corpus has a value of kind ${tag}`);
  }
}

/** A graph in the encoding of the corpus, with users. */
export function encode(graph: Graph): EncodedGraph {
  const nodes = Array.from(graph.nodes, (it) => ({
    name: it.name,
    op: it.op,
    target: it.target,
    args: Array.from(it.args, encodeArg),
    kwargs: encodeKwargs(it.kwargs),
    ...(it.type === undefined ? {} : { type: it.type }),
  }));
  const users = Object.fromEntries(
    Array.from(graph.nodes, (it) => [it.name, Array.from(it.users, (user) => user.name)]),
  );
  return { nodes, users };
}

function encodeKwargs(kwargs: Kwargs): { [key: string]: Encoded } {
  return Object.fromEntries(Object.entries(kwargs).map(([key, it]) => [key, encodeArg(it)]));
}

function encodeArg(arg: Arg): Encoded {
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
  return { $t: Array.from(arg satisfies Tuple, encodeArg) };
}

function encodeNumber(value: number): Encoded {
  if (Object.is(value, -0)) return { $f: "-0.0" };
  if (Number.isNaN(value)) return { $f: "nan" };
  if (!Number.isFinite(value)) return { $f: value > 0 ? "inf" : "-inf" };
  return value;
}
