/**
 * Graph modules as bytes: this folder decides what a file says beside the graph, whose bytes are `wire`'s.
 *
 * @module
 */
import { Module } from "../nn/module.ts";
import type { Bytes } from "../base/bytes.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { decodeModule, encodeModule } from "../wire/codec.ts";
import type { Limits } from "../wire/options.ts";
import { type ModuleClasses, recordOf, restore } from "./records.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

export type { ModuleClass, ModuleClasses } from "./records.ts";

/** How graph modules are saved and loaded. */
export interface SaveOptions {
  /** Classes of modules that are called as they are and are none of `torch.nn`'s, by name. */
  readonly classes?: ModuleClasses;
}

/** How graph modules are loaded. */
export interface LoadModuleOptions extends SaveOptions {
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
  checkOptions("saveGraphModule", options, ["classes"]);
  const { classes = {} } = options;
  return encodeModule(recordOf(module, classes)).bytes;
}

/** Reads what {@link saveGraphModule} wrote. A file has no code in it: it can do what its graph says, and nothing else. */
export function loadGraphModule(file: Uint8Array, options: LoadModuleOptions = {}): GraphModule {
  checkGiven("loadGraphModule", file instanceof Uint8Array, "the bytes of a file");
  checkOptions("loadGraphModule", options, ["classes", "limits"]);
  const { classes = {}, limits = {} } = options;
  return restore(decodeModule(file, undefined, limits), classes);
}
