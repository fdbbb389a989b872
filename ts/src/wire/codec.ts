/**
 * The tracefx byte format: what crosses to the engine, and the `.fxg` file. `docs/format.md` specifies the bytes.
 *
 * The engine writes the same bytes for the same graph, and whatever is read is written as it was. Malformed bytes are a
 * `WireError` that names the section and the byte.
 *
 * @module
 */
import type { SectionName } from "../bindings/wire.ts";
import { fxError } from "../errors.ts";
import type { Graph } from "../graph/graph.ts";
import type { GraphModule } from "../graph/module.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Cursor } from "./cursor.ts";
import { cursorsOf, FileWriter, hasUnknown, type Outline, readOutline } from "./file.ts";
import { readGraph, readNames, writeGraph, writeNames } from "./graph.ts";
import { readMeta, writeMeta } from "./meta.ts";
import { modulesOf, readModules, writeModules } from "./modules.ts";
import { DEFAULT_LIMITS, type EncodeOptions, type Limits } from "./options.ts";
import { Strings, StringWriter } from "./strings.ts";
import { Exprs, ExprWriter } from "./symbols.ts";
import { Tensors, TensorWriter } from "./tensors.ts";
import { WordWriter } from "./writer.ts";

/**
 * Writes a graph alone, without what its `get_attr` and `call_module` nodes refer to.
 *
 * @example
 * ```ts
 * const copy = decodeGraph(encodeGraph(graph));
 * ```
 */
export function encodeGraph(graph: Graph, options: EncodeOptions = {}): Uint8Array<ArrayBuffer> {
  const writer = new Writer(options);
  writer.graphs([graph]);
  return writer.finish();
}

/** Reads what {@link encodeGraph} wrote. */
export function decodeGraph(file: Uint8Array, limits: Limits = {}): Graph {
  const reader = new Reader(file, limits);
  reader.refuse("MODS", "it holds a module: read it with decodeModule");
  reader.refuse("TENS", "there is no module that they belong to");
  reader.refuse("DATA", "there are no tensors");
  const [graph] = reader.graphs(1);
  reader.finish();
  return graph as Graph;
}

/** Writes a module with its sub-modules and tensors. A tensor that stands in several places is written once. */
export function encodeModule(module: GraphModule, options: EncodeOptions = {}): Uint8Array<ArrayBuffer> {
  const writer = new Writer(options);
  writer.module(module);
  return writer.finish();
}

/** Reads what {@link encodeModule} wrote. `weights` are the storages that were left out, in the order of the file. */
export function decodeModule(
  file: Uint8Array,
  { weights = [], limits = {} }: { readonly weights?: readonly Uint8Array[]; readonly limits?: Limits } = {},
): GraphModule {
  const reader = new Reader(file, limits);
  const module = reader.module(weights);
  reader.finish();
  return module;
}

/** The tensors of a module, each once, in the order in which a file has their storages. */
export function tensorsOf(module: GraphModule): Tensor[] {
  const tensors = new TensorWriter();
  writeModules(new WordWriter(), new StringWriter(), tensors, modulesOf(module), { leafModules: "omit" });
  return tensors.storages();
}

/** A file that is being written: the sections that are done, and the tables that all of them refer to. */
class Writer {
  readonly #options: EncodeOptions;
  readonly #file = new FileWriter();
  readonly #strings = new StringWriter();
  readonly #exprs = new ExprWriter();
  readonly #tensors = new TensorWriter();

  constructor(options: EncodeOptions) {
    this.#options = options;
  }

  module(root: GraphModule): void {
    const modules = modulesOf(root);
    this.#section("MODS", (words) => writeModules(words, this.#strings, this.#tensors, modules, this.#options));
    this.graphs(modules.map((it) => it.graph));
  }

  graphs(graphs: readonly Graph[]): void {
    for (const graph of graphs) this.#section("GRPH", (words) => writeGraph(words, this.#strings, graph));
    if (this.#options.names ?? false) {
      this.#section("NAMS", (words) => {
        for (const graph of graphs) writeNames(words, this.#strings, graph);
      });
    }
    const words = new WordWriter();
    for (const graph of graphs) writeMeta(words, this.#strings, this.#exprs, graph);
    // Graphs without notes take a zero each; where no graph has any, the section is left out.
    if (words.words > graphs.length) this.#file.section("META", words.finish());
  }

  finish(): Uint8Array<ArrayBuffer> {
    const { checksum = true, weights = true } = this.#options;
    const index = this.#tensors.index();
    if (index !== undefined) {
      this.#file.section("TENS", index);
      if (weights) this.#file.section("DATA", ...this.#tensors.data());
    }
    const exprs = this.#exprs.finish();
    if (exprs !== undefined) this.#file.section("SYMS", exprs);
    this.#file.section("STRS", this.#strings.finish());
    return this.#file.finish(checksum);
  }

  #section(name: SectionName, write: (words: WordWriter) => void): void {
    const words = new WordWriter();
    write(words);
    this.#file.section(name, words.finish());
  }
}

/** A file that is being read. Sections are read in the order in which they were written. */
class Reader {
  readonly #file: Uint8Array;
  readonly #limits: Required<Limits>;
  readonly #outline: Outline;
  readonly #strings: Strings;
  readonly #exprs: Exprs;

  constructor(file: Uint8Array, limits: Limits) {
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    this.#file = file;
    this.#outline = readOutline(file, this.#limits.bytes);
    this.#strings = new Strings(this.#required("STRS"));
    this.#exprs = new Exprs(this.#section("SYMS"));
  }

  module(weights: readonly Uint8Array[]): GraphModule {
    const tensors = new Tensors(this.#section("TENS"), this.#section("DATA"), weights, this.#limits.copies);
    const cursor = this.#required("MODS", "a graph alone is read with decodeGraph");
    const modules = readModules(cursor, this.#strings, tensors, this.#limits.modules);
    for (const [at, graph] of this.graphs(modules.length).entries()) (modules[at] as GraphModule).graph = graph;
    return modules[0] as GraphModule;
  }

  graphs(count: number): Graph[] {
    const sections = cursorsOf(this.#file, this.#outline, "GRPH");
    if (sections.length !== count) {
      throw fxError("WireMalformed", `there are ${sections.length} graphs for ${count} modules`);
    }
    const graphs = sections.map((it) => readGraph(it, this.#strings, this.#limits.nodes));
    const names = this.#section("NAMS");
    if (names !== undefined) {
      for (const graph of graphs) readNames(names, this.#strings, graph);
      names.finish();
    }
    const meta = this.#section("META");
    if (meta !== undefined) {
      if (meta.rest <= 4 * count) throw meta.fail("the section is empty");
      for (const graph of graphs) readMeta(meta, this.#strings, this.#exprs, graph);
      meta.finish();
    }
    return graphs;
  }

  refuse(name: SectionName, why: string): void {
    const cursor = this.#section(name);
    if (cursor !== undefined) throw cursor.fail(why);
  }

  /** Refuses what nothing refers to, unless a section that is not known here may. */
  finish(): void {
    if (hasUnknown(this.#outline)) return;
    this.#exprs.finish();
    this.#strings.finish("STRS");
  }

  #section(name: SectionName): Cursor | undefined {
    return cursorsOf(this.#file, this.#outline, name).pop();
  }

  #required(name: SectionName, help?: string): Cursor {
    const cursor = this.#section(name);
    if (cursor !== undefined) return cursor;
    throw fxError("WireMalformed", `the section ${name} is missing`, help === undefined ? {} : { help });
  }
}
