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
    const whole = this.attributes.get(path);
    if (whole !== undefined) return whole;
    for (let at = path.indexOf("."); at >= 0; at = path.indexOf(".", at + 1)) {
      const child = this.attributes.get(path.slice(0, at));
      if (child?.kind !== "module" || !(child.module instanceof GraphModule)) continue;
      const found = child.module.findAttribute(path.slice(at + 1));
      if (found !== undefined) return found;
    }
    return undefined;
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
}
