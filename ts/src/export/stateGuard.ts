/**
 * What a module holds, kept over an export: a program has no assignments, so what was assigned is told or undone.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { Graph } from "../graph/graph.ts";
import type { Attribute, Module } from "../nn/module.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { ExportTracer } from "./exportTracer.ts";

/** The tensors of one module as they were. */
interface Kept {
  readonly path: string;
  readonly module: Module;
  readonly attributes: ReadonlyMap<string, Attribute>;
  readonly properties: ReadonlyMap<string, unknown>;
}

/** Keeps what a module holds. */
export class StateGuard {
  readonly #kept: readonly Kept[];

  constructor(root: Module) {
    this.#kept = [...root.namedModules()].map(([path, module]) => ({
      path,
      module,
      attributes: new Map(module.attributes),
      properties: new Map(ownValues(module)),
    }));
  }

  /**
   * Buffers that were assigned get their new elements at the end of the graph; any other tensor that was is refused, as
   * PyTorch does.
   */
  checkAssignments(tracer: ExportTracer, graph: Graph): void {
    const assigned: string[] = [];
    for (const { path, module, attributes, properties } of this.#kept) {
      const fqn = (name: string): string => (path === "" ? name : `${path}.${name}`);
      for (const [name, before] of attributes) {
        const now = module.attributes.get(name);
        if (before.kind === "module" || now === undefined || now.kind === "module" || now.tensor === before.tensor)
          continue;
        if (before.kind === "buffer") {
          graph.insertingBefore(graph.outputNode(), () => copyInto(tracer, before.tensor, now.tensor));
        } else {
          assigned.push(fqn(name));
        }
      }
      for (const [name, before] of properties) {
        if (before instanceof Tensor && Reflect.get(module, name) !== before) assigned.push(fqn(name));
      }
    }
    if (assigned.length === 0) return;
    const what = assigned.map((it) => `self.${it}`).join(", ");
    const [noun, verb] = assigned.length === 1 ? ["attribute", "was"] : ["attributes", "were"];
    throw fxError("TraceUnsupported", `The tensor ${noun} ${what} ${verb} assigned during export`, {
      help: "Such attributes must be registered as buffers using the `registerBuffer` API",
    });
  }

  /** Puts everything back. */
  restore(): void {
    for (const { module, attributes, properties } of this.#kept) {
      for (const name of module.attributes.keys()) if (!attributes.has(name)) module.attributes.delete(name);
      for (const [name, attribute] of attributes) module.attributes.set(name, attribute);
      for (const [name] of ownValues(module)) if (!properties.has(name)) Reflect.deleteProperty(module, name);
      for (const [name, value] of properties) if (Reflect.get(module, name) !== value) Reflect.set(module, name, value);
    }
  }
}

/** Records that a buffer gets other elements. */
function copyInto(tracer: ExportTracer, buffer: Tensor, source: Tensor): void {
  const args = [tracer.createArg(buffer), tracer.createArg(source)];
  const node = tracer.createNode("call_function", "torch.ops.aten.copy_.default", args, {});
  for (const [key, value] of tracer.tracedOf(source).node.meta) node.meta.set(key, value);
}

function ownValues(module: Module): [string, unknown][] {
  return Object.entries(Object.getOwnPropertyDescriptors(module)).flatMap(([name, it]): [string, unknown][] =>
    name === "attributes" || !("value" in it) || it.writable !== true ? [] : [[name, it.value]],
  );
}
