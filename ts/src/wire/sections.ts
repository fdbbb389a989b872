/**
 * Which sections there are, and in which order they are written and read.
 *
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import type { SectionName } from "../../../bindings/wire.ts";
import { fxError } from "../base/errors.ts";
import type { Graph } from "../graph/graph.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import type { Cursor } from "./cursor.ts";
import { cursorsOf, FileWriter, hasUnknown, type Outline, readOutline } from "./file.ts";
import { readGraph, readNames, writeGraph, writeNames } from "./graph.ts";
import { readMeta, writeMeta } from "./meta.ts";
import { modulesOf, readModules, writeModules } from "./modules.ts";
import { DEFAULT_LIMITS, type EncodeOptions, type Limits } from "./options.ts";
import { Strings, StringWriter } from "./strings.ts";
import { Exprs, ExprWriter } from "./symbols.ts";
import { hostLayout, type LayoutOf } from "../tensor/storageLayout.ts";
import { Tensors, TensorWriter, type ViewTensor } from "./tensors.ts";
import { WordWriter } from "./writer.ts";

/** A file that is being written: the sections that are done, and the tables that all of them refer to. */
export class SectionWriter {
  readonly strings = new StringWriter();
  readonly exprs = new ExprWriter();
  readonly tensors: TensorWriter;
  readonly #options: EncodeOptions;
  readonly #file = new FileWriter();

  constructor(options: EncodeOptions, layoutOf: LayoutOf = hostLayout) {
    this.#options = options;
    this.tensors = new TensorWriter(layoutOf);
  }

  /** Adds a section. */
  section(name: SectionName, write: (words: WordWriter) => void): void {
    const words = new WordWriter();
    write(words);
    this.#file.section(name, words.finish());
  }

  module(root: GraphModule): void {
    const modules = modulesOf(root);
    this.section("MODS", (words) => writeModules(words, this.strings, this.tensors, modules, this.#options));
    this.graphs(modules.map((it) => it.graph));
  }

  /** Writes graphs, and gives the nodes of each. */
  graphs(graphs: readonly Graph[]): Node[][] {
    const nodes = graphs.map((it) => it.nodes.toArray());
    for (const it of nodes) this.section("GRPH", (words) => writeGraph(words, this.strings, it));
    this.#notes(graphs);
    return nodes;
  }

  #notes(graphs: readonly Graph[]): void {
    if (this.#options.names ?? false) {
      this.section("NAMS", (words) => {
        for (const graph of graphs) writeNames(words, this.strings, graph);
      });
    }
    const { notes = true } = this.#options;
    if (notes === false) return;
    const isTold = (node: Node): boolean => notes === true || node.op === "placeholder";
    const words = new WordWriter();
    for (const graph of graphs) writeMeta(words, this.strings, this.exprs, graph, isTold);
    // Graphs without notes take a zero each; where no graph has any, the section is left out.
    if (words.words > graphs.length) this.#file.section("META", words.finish());
  }

  finish(): Bytes {
    const { checksum = true, weights = true } = this.#options;
    const index = this.tensors.index();
    if (index !== undefined) {
      this.#file.section("TENS", index);
      if (weights) this.#file.section("DATA", ...this.tensors.data());
    }
    const exprs = this.exprs.finish();
    if (exprs !== undefined) this.#file.section("SYMS", exprs);
    this.#file.section("STRS", this.strings.finish());
    return this.#file.finish(checksum);
  }
}

/** A file that is being read. Sections are read in the order in which they were written. */
export class SectionReader {
  readonly #file: Uint8Array;
  readonly #limits: Required<Limits>;
  readonly #outline: Outline;
  readonly strings: Strings;
  readonly exprs: Exprs;
  readonly tensors: Tensors;

  constructor(file: Uint8Array, viewOf: ViewTensor | undefined, limits: Limits) {
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    this.#file = file;
    this.#outline = readOutline(file, this.#limits.bytes);
    this.strings = new Strings(this.required("STRS"));
    this.exprs = new Exprs(this.#section("SYMS"));
    this.tensors = new Tensors(this.#section("TENS"), this.#section("DATA"), viewOf, this.#limits.copies);
  }

  module(): GraphModule {
    const cursor = this.required("MODS", "a graph alone is read with decodeGraph");
    const modules = readModules(cursor, this.strings, this.tensors, this.#limits.modules);
    for (const [at, graph] of this.graphs(modules.length).entries()) (modules[at] as GraphModule).graph = graph;
    return modules[0] as GraphModule;
  }

  graphs(count: number): Graph[] {
    this.refuse("EDIT", "it holds the answer of a pass, which is no file");
    const sections = cursorsOf(this.#file, this.#outline, "GRPH");
    if (sections.length !== count) {
      throw fxError("WireMalformed", `there are ${sections.length} graphs for ${count} modules`);
    }
    const graphs = sections.map((it) => readGraph(it, this.strings, this.#limits.nodes));
    const names = this.#section("NAMS");
    if (names !== undefined) {
      for (const graph of graphs) readNames(names, this.strings, graph);
      names.finish();
    }
    const meta = this.#section("META");
    if (meta !== undefined) {
      if (meta.rest <= 4 * count) throw meta.fail("the section is empty");
      for (const graph of graphs) readMeta(meta, this.strings, this.exprs, graph);
      meta.finish();
    }
    return graphs;
  }

  /** Refuses a section that has no place in what is read. */
  refuse(name: SectionName, why: string): void {
    const cursor = this.#section(name);
    if (cursor !== undefined) throw cursor.fail(why);
  }

  /** Refuses what nothing refers to, unless a section that is not known here may. */
  finish(): void {
    if (hasUnknown(this.#outline)) return;
    this.tensors.finish();
    this.exprs.finish();
    this.strings.finish("STRS");
  }

  #section(name: SectionName): Cursor | undefined {
    return cursorsOf(this.#file, this.#outline, name).pop();
  }

  /** The section of a name that must be there. */
  required(name: SectionName, help?: string): Cursor {
    const cursor = this.#section(name);
    if (cursor !== undefined) return cursor;
    throw fxError("WireMalformed", `the section ${name} is missing`, help === undefined ? {} : { help });
  }
}
