import { describe, expect, test } from "vitest";
import { GraphError } from "../../src/errors.ts";
import { GraphModule } from "../../src/graph/module.ts";
import { Module } from "../../src/nn/module.ts";
import { build, cases, encode, type EncodedGraph } from "./corpus.ts";

interface Case {
  readonly name: string;
  readonly options: { readonly impure_targets?: string[]; readonly impure_ops?: string[] };
  readonly before: EncodedGraph;
  readonly modules?: { readonly [path: string]: { readonly impure?: boolean } };
  readonly after?: EncodedGraph;
  readonly changed?: boolean;
}

class Impure extends Module {
  override get isImpure(): boolean {
    return true;
  }
}

/** A graph here does not know the modules around it, so what PyTorch does not do to a called GraphModule is not a case. */
const NOT_APPLICABLE = new Set(["nested_graph_module_call_module"]);

describe("dead code as PyTorch eliminates it", () => {
  test.each(cases<Case>("dce").filter(({ name }) => !NOT_APPLICABLE.has(name)))(
    "$name",
    ({ options, before, modules = {}, after, changed }) => {
      const graph = build(before);
      const owner = GraphModule.ofGraph(graph);
      for (const [path, { impure = false }] of Object.entries(modules)) {
        owner.attributes.set(path, { kind: "module", module: impure ? new Impure() : new Module() });
      }
      const { impure_targets: targets, impure_ops: ops = ["placeholder", "output"] } = options;
      const eliminate = (): boolean =>
        graph.eliminateDeadCode((node) =>
          targets === undefined ? node.isImpure() : ops.includes(node.op) || targets.includes(node.target),
        );
      if (after === undefined) {
        expect(eliminate).toThrow(GraphError);
      } else {
        expect(eliminate()).toBe(changed);
        expect(encode(graph).nodes).toEqual(after.nodes);
      }
    },
  );

  test("is what happens without a predicate", () => {
    const graph = build({
      nodes: [
        { name: "x", op: "placeholder", target: "x", args: [], kwargs: {} },
        { name: "rand", op: "call_function", target: "torch.ops.aten.rand.default", args: [], kwargs: {} },
        { name: "neg", op: "call_function", target: "torch.neg", args: [{ $n: "x" }], kwargs: {} },
      ],
    });
    expect(graph.eliminateDeadCode()).toBe(true);
    expect(Array.from(graph.nodes, (node) => node.name)).toEqual(["x", "rand"]);
  });
});
