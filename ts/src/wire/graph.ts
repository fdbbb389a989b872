/**
 * `GRPH`: the nodes of one graph, in order. `NAMS`: the names that no node has any more.
 *
 * @module
 */
import { ARG, OPCODES } from "../../../bindings/wire.ts";
import { fxError, FxError } from "../base/errors.ts";
import { type Arg, isNode, NO_KWARGS } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { stateOf } from "../graph/nodeState.ts";
import { numbered, readArg, readEntries, writeArg } from "./arg.ts";
import type { Cursor } from "./cursor.ts";
import type { Strings, StringWriter } from "./strings.ts";
import { tagged, type WordWriter } from "./writer.ts";

/** The words of a node without arguments: head, target, name, type, and the numbers of args and kwargs. */
const MIN_NODE_WORDS = 6;

/** The largest suffix: FX's rules give suffixes below 2^127, and count on from there for as long as nodes are made. */
const MAX_SUFFIX = 2n ** 127n + 2n ** 64n;

const NO_KEYS: readonly string[] = [];

/** Writes the nodes of a graph. */
export function writeGraph(words: WordWriter, strings: StringWriter, nodes: readonly Node[]): void {
  let written = 0;
  const position = (input: Node): number => {
    const { place } = stateOf(input);
    if (place < written && nodes[place] === input) return place;
    throw fxError("GraphInvalid", `Argument '${input.name}' was used before it has been defined`, {
      help: "graph.lint says what else is wrong",
    });
  };
  words.count(nodes.length);
  const [first] = nodes;
  if (first === undefined) return;
  const { names } = first.graph;
  for (let at = 0; at < nodes.length; at++) {
    const node = nodes[at] as Node;
    const head = words.words;
    words.word(0);
    strings.write(words, node.target);
    strings.writeName(words, node.name, names);
    strings.writeOptional(words, node.type);
    const keys = node.kwargs === NO_KWARGS ? NO_KEYS : Object.keys(node.kwargs);
    words.count(node.args.length);
    words.count(keys.length);
    try {
      const { args } = node;
      for (let place = 0; place < args.length; place++) {
        const arg = args[place] as Arg;
        if (isNode(arg)) words.tagged(ARG.NODE, position(arg));
        else writeArg(words, strings, arg, 0, position);
      }
      for (const key of keys) {
        strings.write(words, key);
        writeArg(words, strings, node.kwargs[key] as Arg, 0, position);
      }
    } catch (error) {
      throw error instanceof FxError ? atNode(error, node.name) : error;
    }
    words.patch(head, tagged(OPCODES.indexOf(node.op), words.words - head));
    stateOf(node).place = at;
    written = at + 1;
  }
}

/** Reads a graph. */
export function readGraph(cursor: Cursor, strings: Strings, maxNodes: number): Graph {
  const count = cursor.count(MIN_NODE_WORDS, "nodes");
  if (count > maxNodes) throw cursor.exceeds(`the graph has ${count} nodes, and ${maxNodes} are allowed`);
  const graph = new Graph();
  const nodes: Node[] = [];
  for (let at = 0; at < count; at++) nodes.push(readNode(cursor, strings, graph, nodes));
  cursor.finish();
  return graph;
}

function readNode(cursor: Cursor, strings: Strings, graph: Graph, nodes: readonly Node[]): Node {
  const head = cursor.word();
  const op = numbered(cursor, OPCODES, head & 0xff, "opcode");
  const length = head >>> 8;
  if (length < MIN_NODE_WORDS) {
    throw cursor.fail(`a node takes at least ${MIN_NODE_WORDS} words, not ${length}`);
  }
  const record = cursor.split(length - 1);
  const target = strings.next(record);
  const name = strings.next(record);
  const type = strings.nextOptional(record);
  const [argCount, kwargCount] = [record.word(), record.word()];
  record.checkCount(argCount, 1, "arguments");
  record.checkCount(kwargCount, 2, "keyword arguments");
  const args: Arg[] = [];
  for (let at = 0; at < argCount; at++) args.push(readArg(record, strings, nodes, 0));
  const kwargs = readEntries(record, strings, nodes, kwargCount, 0);
  for (const key of kwargs.keys()) {
    if (/^[0-9]+$/.test(key)) throw record.fail(`\`${key}\` is not the name of a keyword argument`);
  }
  record.finish();
  if (graph.names.isUsed(name)) throw record.fail(`the name \`${name}\` is taken`);
  const node = graph.createNamedNode(op, target, args, kwargs, name);
  node.type = type;
  return node;
}

/** Writes the names of one graph that no node has any more, and the suffix that was given last for each base. */
export function writeNames(words: WordWriter, strings: StringWriter, graph: Graph): void {
  const erased = graph.names.size === graph.nodes.length ? [] : erasedNames(graph);
  words.count(erased.length);
  for (const name of erased) strings.write(words, name);
  const suffixes = Array.from(graph.names.suffixes()).filter(([, suffix]) => suffix > 0);
  suffixes.sort(([a], [b]) => compareText(a, b));
  words.count(suffixes.length);
  for (const [base, suffix] of suffixes) {
    strings.write(words, base);
    words.bits(BigInt.asUintN(64, BigInt(suffix)));
    words.bits(BigInt(suffix) >> 64n);
  }
}

function erasedNames(graph: Graph): string[] {
  const live = new Set(Array.from(graph.nodes, (it) => it.name));
  return Array.from(graph.names.used())
    .filter((it) => !live.has(it))
    .toSorted(compareText);
}

/** Reads the names of one graph that no node has any more. */
export function readNames(cursor: Cursor, strings: Strings, graph: Graph): void {
  const used: string[] = [];
  const names = cursor.count(1, "names");
  for (let at = 0; at < names; at++) {
    const name = strings.next(cursor);
    const last = used.at(-1);
    if (graph.names.isUsed(name) || (last !== undefined && compareText(last, name) >= 0)) {
      throw cursor.fail(`the name \`${name}\` is of a node, or out of order`);
    }
    used.push(name);
  }
  const suffixes: [string, number | bigint][] = [];
  const count = cursor.count(5, "suffixes");
  for (let at = 0; at < count; at++) {
    const base = strings.next(cursor);
    const suffix = readSuffix(cursor);
    const last = suffixes.at(-1)?.[0];
    if (suffix === 0 || suffix > MAX_SUFFIX || (last !== undefined && compareText(last, base) >= 0)) {
      throw cursor.fail(`the suffix ${suffix} of \`${base}\` is out of range or out of order`);
    }
    suffixes.push([base, suffix]);
  }
  graph.names.take(used, suffixes);
}

/** A suffix of 128 bits. */
export function readSuffix(cursor: Cursor): number | bigint {
  const suffix = cursor.bits() | (cursor.bits() << 64n);
  return suffix <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(suffix) : suffix;
}

/** The order of two strings by code points, which is the order of their bytes in UTF-8. */
function compareText(a: string, b: string): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)];
    // Half of a character beyond U+FFFF comes after every character below.
    if (x !== y) return isSurrogate(x) === isSurrogate(y) ? x - y : isSurrogate(x) ? 1 : -1;
  }
  return a.length - b.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

/** The same error, with the node where it happened. */
export function atNode(error: FxError, node: string): FxError {
  if (error.node !== undefined) return error;
  const { notes, help } = error;
  return fxError(error.kind, error.reason, { node, notes, ...(help === undefined ? {} : { help }) });
}
