/**
 * A graph and what its nodes refer to: `torch.fx.GraphModule`.
 *
 * @module
 */
import { fxError } from "../errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { Graph } from "./graph.ts";

/** A module that is called as it is, without a graph of its own. */
export interface LeafModule {
  forward(...inputs: never[]): unknown;
  /** Whether a call does something besides giving a value, so that it stays even where nothing uses the value. */
  readonly isImpure?: boolean;
}

/** Something that a module holds under a name. */
export type Attribute =
  | { readonly kind: "parameter" | "buffer" | "constant"; readonly tensor: Tensor }
  | { readonly kind: "module"; readonly module: GraphModule | LeafModule };

/**
 * A graph and the attributes that its `get_attr` and `call_module` nodes refer to.
 *
 * @example
 * ```ts
 * const gm = new GraphModule(graph);
 * gm.attributes.set("weight", { kind: "parameter", tensor: tensor([[1, 2], [3, 4]]) });
 * gm.graph.lint(gm);
 * ```
 */
export class GraphModule {
  /** The graph. */
  graph: Graph;
  /** The class name, as printed. */
  className: string;
  /** Attributes by name, in order; a dotted path walks through sub-modules. */
  readonly attributes = new Map<string, Attribute>();
  /** Free-form notes about the module. */
  readonly meta = new Map<string, unknown>();

  constructor(graph: Graph = new Graph(), className = "GraphModule") {
    this.graph = graph;
    this.className = className;
  }

  /** The attribute at a dotted path, if there is one. A name that itself has dots is found whole first. */
  findAttribute(path: string): Attribute | undefined {
    const [holder, name] = this.#holderOf(path) ?? [];
    return name === undefined ? undefined : holder?.attributes.get(name);
  }

  /** The attribute at a dotted path. */
  getAttribute(path: string): Attribute {
    const found = this.findAttribute(path);
    if (found !== undefined) return found;
    throw fxError("AttributeMissing", `the module has no attribute \`${path}\``, {
      help: "add it to the module before a node refers to it",
    });
  }

  /** The sub-module at a dotted path; the empty path is this module. */
  getSubmodule(path: string): GraphModule | LeafModule {
    if (path === "") return this;
    const found = this.getAttribute(path);
    if (found.kind === "module") return found.module;
    throw fxError("AttributeMissing", `\`${path}\` is a tensor, not a module`);
  }

  /** The tensor at a dotted path. */
  getTensor(path: string): Tensor {
    const found = this.getAttribute(path);
    if (found.kind !== "module") return found.tensor;
    throw fxError("AttributeMissing", `\`${path}\` is a module, not a tensor`);
  }

  /**
   * Puts a module at a dotted path, with empty modules above it where there are none. Returns `false`, as FX does, where
   * something on the way is a tensor or a leaf.
   */
  addSubmodule(path: string, module: GraphModule | LeafModule): boolean {
    const at = path.indexOf(".");
    if (at < 0) {
      this.attributes.set(path, { kind: "module", module });
      return true;
    }
    const name = path.slice(0, at);
    const existing = this.attributes.get(name) ?? { kind: "module", module: new GraphModule() };
    if (existing.kind !== "module" || !(existing.module instanceof GraphModule)) return false;
    this.attributes.set(name, existing);
    return existing.module.addSubmodule(path.slice(at + 1), module);
  }

  /** Removes the module at a dotted path; `false` where there is none. Nodes that refer to it are the caller's to mend. */
  deleteSubmodule(path: string): boolean {
    const [holder, name] = this.#holderOf(path) ?? [];
    if (holder === undefined || name === undefined || holder.attributes.get(name)?.kind !== "module") return false;
    return holder.attributes.delete(name);
  }

  /**
   * Removes the modules that no node of the graph refers to. Modules above a used one stay, modules inside a called one
   * too, and tensors are left alone.
   */
  deleteAllUnusedSubmodules(): void {
    const used = new Set<string>();
    const called = new Set<string>();
    for (const { op, target } of this.graph.nodes) {
      if (op !== "call_module" && op !== "get_attr") continue;
      for (const path of withParents(target)) used.add(path);
      if (op === "call_module") called.add(target);
    }
    for (const [holderPath, holder] of this.modules()) {
      for (const [name, { kind }] of holder.attributes) {
        const path = holderPath === "" ? name : `${holderPath}.${name}`;
        const isUsed = used.has(path) || withParents(path).some((it) => called.has(it));
        if (kind === "module" && !isUsed) holder.attributes.delete(name);
      }
    }
  }

  /** The modules with graphs and their dotted paths, this one first with an empty path, parents before children. */
  modules(): [path: string, module: GraphModule][] {
    const res: [string, GraphModule][] = [["", this]];
    for (const [path, module] of res) {
      for (const [name, attribute] of module.attributes) {
        if (attribute.kind !== "module" || !(attribute.module instanceof GraphModule)) continue;
        res.push([path === "" ? name : `${path}.${name}`, attribute.module]);
      }
    }
    return res;
  }

  /** The module that holds what is at a dotted path, and its name there. */
  #holderOf(path: string): [holder: GraphModule, name: string] | undefined {
    if (this.attributes.has(path)) return [this, path];
    for (let at = path.indexOf("."); at >= 0; at = path.indexOf(".", at + 1)) {
      const child = this.attributes.get(path.slice(0, at));
      if (child?.kind !== "module" || !(child.module instanceof GraphModule)) continue;
      const found = child.module.#holderOf(path.slice(at + 1));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** `a.b.c` with the paths above it: `a`, `a.b`, `a.b.c`. */
function withParents(path: string): string[] {
  const parts = path.split(".");
  return parts.map((_, at) => parts.slice(0, at + 1).join("."));
}
