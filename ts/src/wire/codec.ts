/**
 * The tracefx byte format: what crosses to the engine, and the `.fxg` file. `docs/format.md` specifies the bytes.
 *
 * The engine writes the same bytes for the same graph, and whatever is read is written as it was. Malformed bytes are a
 * `WireError` that names the section and the byte.
 *
 * This folder knows graphs and modules. Programs are `export/encoding`, and what is in a file besides is `save`'s.
 *
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import type { Graph } from "../graph/graph.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { EncodeOptions, Limits } from "./options.ts";
import { SectionReader, SectionWriter } from "./sections.ts";
import { hostLayout, type LayoutOf } from "../tensor/storageLayout.ts";
import type { ViewTensor } from "./tensors.ts";

/** A file, and the tensors whose storages it has or needs beside it: the first of each storage, in the order of the file. */
export interface Encoded {
  readonly bytes: Bytes;
  readonly storages: readonly Tensor[];
}

/**
 * Writes a graph alone, without what its `get_attr` and `call_module` nodes refer to.
 *
 * @example
 * ```ts
 * const copy = decodeGraph(encodeGraph(graph));
 * ```
 */
export function encodeGraph(graph: Graph, options: EncodeOptions = {}): Bytes {
  const writer = new SectionWriter(options);
  writer.graphs([graph]);
  return writer.finish();
}

/** Reads what {@link encodeGraph} wrote. */
export function decodeGraph(file: Uint8Array, limits: Limits = {}): Graph {
  const reader = new SectionReader(file, undefined, limits);
  reader.refuse("MODS", "it holds a module: read it with decodeModule");
  reader.refuse("SIGN", "there is no module that it belongs to");
  const [graph] = reader.graphs(1);
  reader.finish();
  return graph as Graph;
}

/** Writes a module with its sub-modules and tensors. Tensors that share a storage share it in the file, too. */
export function encodeModule(
  module: GraphModule,
  options: EncodeOptions = {},
  layoutOf: LayoutOf = hostLayout,
): Encoded {
  const writer = new SectionWriter(options, layoutOf);
  writer.module(module);
  return { bytes: writer.finish(), storages: writer.tensors.storages() };
}

/** Reads what {@link encodeModule} wrote. `viewOf` makes tensors of storages that are not in the file. */
export function decodeModule(file: Uint8Array, viewOf?: ViewTensor, limits: Limits = {}): GraphModule {
  const reader = new SectionReader(file, viewOf, limits);
  reader.refuse("SIGN", "it holds a program: read it with decodeProgram");
  const module = reader.module();
  reader.finish();
  return module;
}
