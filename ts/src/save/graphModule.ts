/**
 * Graph modules as bytes: this folder decides what a file says beside the graph, whose bytes are `wire`'s.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { Node } from "../graph/node.ts";
import { Module } from "../nn/module.ts";
import type { Bytes } from "../base/bytes.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { decodeModule, encodeModule } from "../wire/codec.ts";
import type { Limits } from "../wire/options.ts";
import { type ModuleClasses, recordOf, restore } from "./records.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

export type { ModuleClass, ModuleClasses } from "./records.ts";

/** How graph modules are saved. */
export interface SaveOptions {
  /** Classes of modules that are called as they are and are none of `torch.nn`'s, by name. */
  readonly classes?: ModuleClasses;
  /** Which functions may be called, by qualified name; all of them by default. A graph that calls another one is refused. */
  readonly opsFilter?: (target: string) => boolean;
  /** Which notes of nodes are saved, by key; all that a file can hold by default. */
  readonly nodeMetadataKeyFilter?: (key: string) => boolean;
}

/** How graph modules are loaded. */
export interface LoadModuleOptions {
  /** The classes that the module was saved with. */
  readonly classes?: ModuleClasses;
  /** What is accepted of a file; more is refused. */
  readonly limits?: Limits;
}

/**
 * A graph module as an `.fxg` file: its graph with names, notes that are texts and what is known of the values; the graph
 * modules and the modules of `torch.nn` that it calls, with their tensors. In place of pickle's retracing the graph
 * itself is saved, so that loading gives the same nodes with the same names.
 *
 * @example
 * ```ts
 * await writeFile("model.fxg", saveGraphModule(gm));
 * const again = loadGraphModule(await readFile("model.fxg"));
 * ```
 */
export function saveGraphModule(module: GraphModule, options: SaveOptions = {}): Bytes {
  checkGiven("saveGraphModule", module instanceof Module, "a GraphModule", "symbolicTrace(module) makes one");
  checkOptions("saveGraphModule", options, ["classes", "opsFilter", "nodeMetadataKeyFilter"]);
  const { classes = {}, opsFilter, nodeMetadataKeyFilter } = options;
  if (opsFilter !== undefined) checkOperators(module, opsFilter);
  const save = (): Bytes => encodeModule(recordOf(module, classes)).bytes;
  return nodeMetadataKeyFilter === undefined ? save() : withNotes(module, nodeMetadataKeyFilter, save);
}

/** The nodes of all graphs of a module. */
function nodesOf(module: GraphModule): Node[] {
  return module.modules().flatMap((it) => (it instanceof GraphModule ? Array.from(it.graph.nodes) : []));
}

function checkOperators(module: GraphModule, isAllowed: (target: string) => boolean): void {
  for (const { op, target, name } of nodesOf(module)) {
    if (op !== "call_function" || isAllowed(target)) continue;
    throw fxError("InvalidArgument", `Unable to pickle non-standard op: ${target}`, { node: name });
  }
}

/** Runs `save` while nodes have the notes alone that are wanted. */
function withNotes<T>(module: GraphModule, isWanted: (key: string) => boolean, save: () => T): T {
  const before = nodesOf(module).map((node) => [node, [...node.meta]] as const);
  try {
    for (const [node, notes] of before) for (const [key] of notes) if (!isWanted(key)) node.meta.delete(key);
    return save();
  } finally {
    for (const [node, notes] of before) {
      // Their order is what the next file is written in.
      node.meta.clear();
      for (const [key, note] of notes) node.meta.set(key, note);
    }
  }
}

/** Reads what {@link saveGraphModule} wrote. A file has no code in it: it can do what its graph says, and nothing else. */
export function loadGraphModule(file: Uint8Array, options: LoadModuleOptions = {}): GraphModule {
  checkGiven("loadGraphModule", file instanceof Uint8Array, "the bytes of a file");
  checkOptions("loadGraphModule", options, ["classes", "limits"]);
  const { classes = {}, limits = {} } = options;
  return restore(decodeModule(file, undefined, limits), classes);
}
