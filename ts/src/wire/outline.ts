/**
 * Modules as passes of the engine see them: graphs, the names of classes, and tensors of which only the shape is told.
 *
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import { ATTRIBUTE, MAX_DEPTH } from "../../../bindings/wire.ts";
import { fxError } from "../base/errors.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import type { Attribute, Module } from "../nn/module.ts";
import { plainFieldsOf } from "../fx/fields.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { writeTensor } from "./meta.ts";
import { numberOf } from "./modules.ts";
import { DEFAULT_LIMITS } from "./options.ts";
import { SectionWriter } from "./sections.ts";
import type { WordWriter } from "./writer.ts";

export type TensorAttribute = Exclude<Attribute, { readonly kind: "module" }>;

/** Which nodes the engine is told of what was noted about them. */
export type Notes = boolean | "inputs";

/** A graph, or a module with one. */
export type Outlined = Graph | GraphModule;

/** What the numbers in outlines stand for. */
export class OutlineTable {
  /** Modules in the order in which they were told; a graph alone has none. */
  readonly modules: (Module | undefined)[] = [];
  /** Tensors, each once. */
  readonly tensors: TensorAttribute[] = [];
  /** The nodes of all graphs, in order. */
  readonly nodes: Node[] = [];
  /** The nodes of each graph. */
  readonly nodesOf = new Map<Graph, readonly Node[]>();
  readonly #ids = new Map<Tensor, number>();

  /** The outline of a module, whose parts get the next numbers. */
  outline(root: Outlined, notes: Notes): Bytes {
    const writer = new SectionWriter({ checksum: false, weights: false, names: true, notes });
    const modules: (Module | undefined)[] = [root instanceof GraphModule ? root : undefined];
    writer.section("MODS", (words) => this.#modules(words, writer, modules));
    const graphs = modules.map((it) => (it instanceof GraphModule ? it.graph : EMPTY));
    if (root instanceof Graph) graphs[0] = root;
    for (const [at, nodes] of writer.graphs(graphs).entries()) {
      this.nodesOf.set(graphs[at] as Graph, nodes);
      for (let place = 0; place < nodes.length; place++) this.nodes.push(nodes[place] as Node);
    }
    this.modules.push(...modules);
    return writer.finish();
  }

  /** Writes the modules, breadth first, and appends to the list those that others hold. */
  #modules(words: WordWriter, writer: SectionWriter, modules: (Module | undefined)[]): void {
    words.word(0);
    const depths = [0];
    // The list grows while it is walked.
    for (let at = 0; at < modules.length; at++) {
      const module = modules[at];
      const depth = depths[at] as number;
      writer.strings.write(words, module?.className ?? "GraphModule");
      const notes = module === undefined ? [] : notesOf(module);
      words.count(module?.attributes.size ?? 0);
      words.count(notes.length);
      for (const [name, attribute] of module?.attributes ?? []) {
        writer.strings.write(words, name);
        if (attribute.kind === "module") {
          if (depth + 1 >= MAX_DEPTH || modules.length >= DEFAULT_LIMITS.modules) {
            throw fxError("LimitExceeded", `modules are nested deeper than ${MAX_DEPTH} levels, or too many`);
          }
          words.tagged(ATTRIBUTE.MODULE, modules.push(attribute.module) - 1);
          depths.push(depth + 1);
        } else {
          words.tagged(ATTRIBUTE.FAKE, numberOf(attribute.kind));
          words.count(this.#idOf(attribute));
          writeTensor(words, writer.strings, writer.exprs, tensorVal(attribute.tensor));
        }
      }
      for (const [key, text] of notes) {
        writer.strings.write(words, key);
        writer.strings.write(words, text);
      }
    }
    words.patch(0, modules.length);
  }

  #idOf(attribute: TensorAttribute): number {
    let id = this.#ids.get(attribute.tensor);
    if (id === undefined) {
      id = this.tensors.push(attribute) - 1;
      this.#ids.set(attribute.tensor, id);
    }
    return id;
  }
}

const EMPTY = new Graph();

/** What passes may want to know of a module that has no graph. */
function notesOf(module: Module): [string, string][] {
  if (module instanceof GraphModule) return [];
  const { className, training } = module;
  const note = JSON.stringify({ class: className, fields: plainFieldsOf(module), training });
  return [["tracefx.module", note], ...(module.isImpure ? ([["is_impure", "true"]] as [string, string][]) : [])];
}
