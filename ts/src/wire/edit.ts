/**
 * `EDIT`: what became of a module in the engine, done to the module itself. Nodes that stay are the same objects, with all
 * that is noted about them; new ones get the notes of the node that they are from.
 *
 * @module
 */
import { ATTRIBUTE, EDIT, EDITED, OPCODES } from "../../../bindings/wire.ts";
import { fxError } from "../base/errors.ts";
import { type Arg, freezeKwargs, type Kwargs, mapArgs, mapKwargs, NO_KWARGS } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { copyNotes, type Node, noteVal, notesOf, orderUsers, setArguments } from "../graph/node.ts";
import type { Opcode } from "../base/opcode.ts";
import type { Val } from "../graph/val.ts";
import { Tuple } from "../base/values.ts";
import { deepCopy } from "../nn/deepCopy.ts";
import type { Attribute, Module } from "../nn/module.ts";
import { Parameter } from "../nn/parameter.ts";
import { numbered, readArg, readEntries } from "./arg.ts";
import type { Cursor } from "./cursor.ts";
import { readNames, readSuffix } from "./graph.ts";
import { readVal } from "./meta.ts";
import { noteOf } from "./notes.ts";
import { KINDS } from "./modules.ts";
import type { Outlined, OutlineTable, TensorAttribute } from "./outline.ts";
import { SectionReader } from "./sections.ts";
import type { ViewTensor } from "./tensors.ts";

/** How an edit script is applied. */
export interface ApplyOptions {
  /** What the numbers in the script stand for. */
  readonly table: OutlineTable;
  /** How many modules are the changed one's; those after them are of patterns and replacements, and are copied. */
  readonly ownModules: number;
  /** Whether the module is left as it is, and a new one made. */
  readonly derive: boolean;
  /** Makes tensors of new storages. */
  readonly viewOf: ViewTensor;
}

/** Applies an edit script to `root`, and gives the module that is changed or new. */
export function applyEdits(file: Uint8Array, root: Outlined, options: ApplyOptions): Outlined {
  const reader = new SectionReader(file, options.viewOf, {});
  const res = new Applier(reader, reader.required("EDIT"), options).apply(root);
  reader.finish();
  return res;
}

/** What is put into a module once all modules are there. */
interface Pending {
  readonly module: Module | undefined;
  readonly attributes: readonly (readonly [name: string, attribute: () => Attribute])[];
}

class Applier {
  readonly #reader: SectionReader;
  readonly #cursor: Cursor;
  readonly #options: ApplyOptions;
  readonly #modules: (Module | undefined)[] = [];
  /** The abstract values that were read, to be referred to. */
  readonly #vals: Val[] = [];
  /** The graphs that were done: one that stands in two places is edited once. */
  readonly #done = new Set<Graph>();

  constructor(reader: SectionReader, cursor: Cursor, options: ApplyOptions) {
    this.#reader = reader;
    this.#cursor = cursor;
    this.#options = options;
  }

  apply(root: Outlined): Outlined {
    const cursor = this.#cursor;
    const count = cursor.word();
    const pending: Pending[] = [];
    let res: Outlined = root;
    for (let at = 0; at < count; at++) {
      const host = cursor.word();
      const className = this.#reader.strings.next(cursor);
      const [attributes, notes] = [cursor.word(), cursor.word()];
      const named = Array.from({ length: attributes }, () => this.#attribute());
      const meta = Array.from({ length: notes }, () => [this.#text(), this.#text()] as const);
      const from = host === 0 ? undefined : at === 0 ? root : this.#options.table.modules[host - 1];
      const isKept = host > 0 && host <= this.#options.ownModules && !(at === 0 && this.#options.derive);
      if (at === 0) {
        res = this.#root(root, from, isKept, () => newModule(className, meta, root));
        this.#modules.push(res instanceof Graph ? undefined : res);
      } else {
        const made = this.#module(from as Module | undefined, isKept, () => newModule(className, meta));
        this.#modules.push(made);
      }
      pending.push({ module: this.#modules[at], attributes: named });
    }
    cursor.finish();
    for (const { module, attributes } of pending) if (module !== undefined) fill(module, attributes);
    return res;
  }

  /** The root: in place, or a new one. */
  #root(root: Outlined, from: unknown, isKept: boolean, make: () => GraphModule): Outlined {
    const own = root instanceof Graph ? root : root.graph;
    if (isKept) {
      this.#graph(own, own);
      return root;
    }
    const isNew = this.#options.derive;
    const res = isNew ? make() : root;
    const graph = new Graph();
    this.#graph(from === undefined ? undefined : own, graph);
    graph.setCodegen(own.codegen);
    if (res instanceof GraphModule) {
      res.graph = graph;
      return res;
    }
    throw fxError("Internal", "a graph without a module cannot be replaced as a whole");
  }

  #module(from: Module | undefined, isKept: boolean, make: () => GraphModule): Module {
    if (from !== undefined && !(from instanceof GraphModule)) {
      this.#graph(undefined, new Graph());
      return isKept ? from : deepCopy(from);
    }
    if (from !== undefined && isKept) {
      this.#graph(from.graph, from.graph);
      return from;
    }
    const res = make();
    res.graph = new Graph();
    this.#graph(from?.graph, res.graph);
    return res;
  }

  #text(): string {
    return this.#reader.strings.next(this.#cursor);
  }

  #attribute(): readonly [string, () => Attribute] {
    const cursor = this.#cursor;
    const name = this.#text();
    const word = cursor.word();
    const [tag, payload] = [word & 0xff, word >>> 8];
    if (tag === ATTRIBUTE.FAKE) {
      const { table } = this.#options;
      const found = table.tensors[payload] as TensorAttribute;
      return [name, () => found];
    }
    if (tag === ATTRIBUTE.MODULE) {
      return [name, () => ({ kind: "module", module: this.#modules[payload] as Module })];
    }
    const tensor = this.#reader.tensors.take(cursor, payload);
    const kind = numbered(cursor, KINDS, tag, "tensor");
    const made = { kind, tensor: kind === "parameter" ? new Parameter(tensor) : tensor };
    return [name, () => made];
  }

  /** Applies the steps to `graph`; they tell of `old`, which may be the same one, and of nothing where it is new. */
  #graph(old: Graph | undefined, graph: Graph): void {
    const isSame = old === graph;
    const before = old === undefined ? [] : (this.#options.table.nodesOf.get(old) ?? old.nodes.toArray());
    const steps = new Steps(this.#reader, this.#cursor, this.#vals, this.#options.table.nodes, graph, before, isSame);
    if (isSame && this.#done.has(graph)) steps.repeat();
    else steps.apply();
    this.#done.add(graph);
  }
}

/** What a node does, and its name. */
interface Call {
  readonly op: Opcode;
  readonly target: string;
  readonly name: string;
  readonly type: string | undefined;
}

type Arguments = readonly [args: Tuple, kwargs: Kwargs];

/** The steps of one graph. */
class Steps {
  readonly #reader: SectionReader;
  readonly #cursor: Cursor;
  readonly #vals: Val[];
  readonly #sources: readonly Node[];
  readonly #graph: Graph;
  readonly #before: readonly Node[];
  readonly #isSame: boolean;
  /** The nodes as they are to be, in order. */
  readonly #nodes: Node[] = [];
  /** The nodes that some step mentioned. */
  readonly #isMentioned: Uint8Array;
  /** In a new graph, the copies of nodes that are kept. */
  readonly #copies = new Map<Node, Node>();

  constructor(
    reader: SectionReader,
    cursor: Cursor,
    vals: Val[],
    sources: readonly Node[],
    graph: Graph,
    before: readonly Node[],
    isSame: boolean,
  ) {
    this.#reader = reader;
    this.#cursor = cursor;
    this.#vals = vals;
    this.#sources = sources;
    this.#graph = graph;
    this.#before = before;
    this.#isMentioned = new Uint8Array(before.length);
    this.#isSame = isSame;
  }

  apply(): void {
    const count = this.#cursor.word();
    let mentioned = 0;
    let isMoved = false;
    let next = 0;
    for (let step = 0; step < count; step++) {
      const word = this.#cursor.word();
      const [tag, payload] = [word & 0xff, word >>> 8];
      const place = this.#cursor.word();
      if (tag === EDIT.MAKE) {
        this.#make(payload, place);
        isMoved = true;
        continue;
      }
      const length = tag === EDIT.KEEP ? payload : 1;
      isMoved ||= place < next;
      next = place + length;
      mentioned += length;
      if (length === 1) this.#isMentioned[place] = 1;
      else this.#isMentioned.fill(1, place, next);
      if (tag === EDIT.KEEP) for (let at = place; at < next; at++) this.#keep(this.#before[at] as Node);
      else this.#change(payload, this.#before[place] as Node);
    }
    if (this.#isSame && mentioned < this.#before.length) this.#erase();
    if (isMoved && this.#isSame) this.#graph.reorder(this.#nodes);
    this.#users();
    this.#names();
  }

  /** Reads the steps of a graph that was done: a module that stands in two places is left alone, or refused. */
  repeat(): void {
    const steps = this.#cursor.word();
    if (steps > 1 || (steps === 1 && (this.#cursor.word() & 0xff) !== EDIT.KEEP)) {
      throw fxError("NotImplemented", "a module that stands in two places was changed by the pass", {
        help: "deepCopy the module, so that each place has its own",
      });
    }
    if (steps > 0) this.#cursor.word();
    this.#users();
    this.#names();
  }

  #keep(node: Node): void {
    if (this.#isSame) {
      this.#nodes.push(node);
      return;
    }
    const [args, kwargs] = this.#copied(node);
    const copy = this.#graph.createNamedNode(node.op, node.target, args, kwargs, node.name);
    copyNotes(node, copy);
    this.#copies.set(node, copy);
    this.#nodes.push(copy);
  }

  #change(flags: number, node: Node): void {
    const call = (flags & EDITED.CALL) === 0 ? node : this.#call();
    const args = (flags & EDITED.ARGS) === 0 ? undefined : this.#arguments();
    const target = this.#isSame ? node : this.#changedCopy(node, call, args ?? this.#copied(node));
    if (this.#isSame) {
      const val = call === node && args === undefined ? undefined : notesOf(node)?.get("val");
      if (node.op !== call.op || node.target !== call.target) this.#graph.setCall(node, call.op, call.target);
      if (node.name !== call.name) this.#graph.setName(node, call.name);
      if (args !== undefined) setArguments(node, ...args);
      // Setting arguments forgets what is known, which may be true all the same.
      if (val !== undefined) noteVal(node, val);
    }
    if ((flags & EDITED.FORGET) !== 0) notesOf(target)?.delete("val");
    target.type = call.type;
    this.#nodes.push(target);
    this.#notes(flags, target);
  }

  #changedCopy(node: Node, call: Call, args: Arguments): Node {
    const copy = this.#graph.createNamedNode(call.op, call.target, ...args, call.name);
    copyNotes(node, copy);
    this.#copies.set(node, copy);
    return copy;
  }

  #make(flags: number, origin: number): void {
    const call = this.#call();
    const node = this.#graph.createNamedNode(call.op, call.target, ...this.#arguments(), call.name);
    const source = origin === 0 ? undefined : this.#sources[origin - 1];
    if (source !== undefined) copyNotes(source, node);
    node.type = call.type;
    if (source !== undefined && (flags & EDITED.FORGET) !== 0) notesOf(node)?.delete("val");
    this.#nodes.push(node);
    this.#notes(flags, node);
  }

  #call(): Call {
    const [cursor, { strings }] = [this.#cursor, this.#reader];
    const op = numbered(cursor, OPCODES, cursor.word() & 0xff, "opcode");
    const [target, name, type] = [strings.next(cursor), strings.next(cursor), strings.nextOptional(cursor)];
    return { op, target, name, type };
  }

  #arguments(): Arguments {
    const [cursor, { strings }] = [this.#cursor, this.#reader];
    const [argCount, kwargCount] = [cursor.word(), cursor.word()];
    const args: Arg[] = [];
    for (let at = 0; at < argCount; at++) args.push(readArg(cursor, strings, this.#nodes, 0));
    const kwargs =
      kwargCount === 0 ? NO_KWARGS : freezeKwargs(readEntries(cursor, strings, this.#nodes, kwargCount, 0));
    return [Tuple.frozen(args), kwargs];
  }

  /** The arguments of a node of the old graph, in terms of the new one. */
  #copied(node: Node): Arguments {
    const copyOf = (it: Node): Node => this.#copies.get(it) as Node;
    return [mapArgs(node.args, copyOf), mapKwargs(node.kwargs, copyOf)];
  }

  #notes(flags: number, node: Node): void {
    if ((flags & EDITED.NOTES) === 0) return;
    const [cursor, { strings, exprs }] = [this.#cursor, this.#reader];
    const known = cursor.word();
    if (known === 0) notesOf(node)?.delete("val");
    else if (known > 1) noteVal(node, this.#vals[known - 2]);
    else {
      const val = readVal(cursor, strings, exprs, 0);
      this.#vals.push(val);
      noteVal(node, val);
    }
    const count = cursor.word();
    for (let entry = 0; entry < count; entry++) {
      const [key, text] = [strings.next(cursor), strings.next(cursor)];
      node.meta.set(key, noteOf(key, text));
    }
  }

  /** Erases what no step mentioned, users before what they use. */
  #erase(): void {
    this.#graph.eraseNodes(this.#before.filter((_, at) => this.#isMentioned[at] === 0));
  }

  #users(): void {
    const cursor = this.#cursor;
    const count = cursor.word();
    for (let entry = 0; entry < count; entry++) {
      const node = this.#nodes[cursor.word()] as Node;
      const users: Node[] = [];
      for (let left = cursor.word(); left > 0; left--) users.push(this.#nodes[cursor.word()] as Node);
      orderUsers(node, users);
    }
  }

  #names(): void {
    const [cursor, { strings }] = [this.#cursor, this.#reader];
    if (cursor.word() === 0) return readNames(cursor, strings, this.#graph);
    const from = (this.#before[0] ?? this.#nodes[0])?.graph.names;
    const names = this.#isSame || from === undefined ? this.#graph.names : from.clone();
    for (let left = cursor.word(); left > 0; left--) {
      const name = strings.next(cursor);
      const base = strings.nextOptional(cursor);
      names.follow(name, base, base === undefined ? 0 : readSuffix(cursor));
    }
    // A graph of its own has new nodes already, whose names are among those.
    if (!this.#isSame) this.#graph.setNames(names);
  }
}

function newModule(className: string, meta: readonly (readonly [string, string])[], like?: Outlined): GraphModule {
  const res = new GraphModule({}, undefined, className);
  if (like instanceof GraphModule) {
    res.training = like.training;
    for (const [key, value] of like.meta) res.meta.set(key, value);
  }
  for (const [key, text] of meta) res.meta.set(key, text);
  return res;
}

/** Gives a module these attributes, unless it has them already. */
function fill(module: Module, wanted: readonly (readonly [string, () => Attribute])[]): void {
  const attributes = wanted.map(([name, make]) => [name, make()] as const);
  const before = [...module.attributes];
  const isSame =
    before.length === attributes.length &&
    before.every(([name, it], at) => name === attributes[at]?.[0] && isSameAttribute(it, attributes[at][1]));
  if (isSame) return;
  module.attributes.clear();
  for (const [name, attribute] of attributes) module.attributes.set(name, attribute);
}

function isSameAttribute(a: Attribute, b: Attribute): boolean {
  if (a.kind === "module") return b.kind === "module" && a.module === b.module;
  return b.kind !== "module" && a.tensor === b.tensor;
}
