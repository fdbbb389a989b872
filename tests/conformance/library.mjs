/**
 * The custom operators that the recorded programs call: what `tests/oracle/gen_fixtures.py` defined them to compute.
 *
 * @module
 */
import { Graph, GraphModule, nn, programOf, torch, tuple } from "tracefx";

/**
 * An operator: its kernel and fake implementation for an engine that calls JavaScript, and the same as a graph for one that
 * does not.
 * @typedef {{ name: string, schema: string, kernel: (...args: any[]) => unknown, fake?: (...args: any[]) => unknown,
 *   body: (graph: Graph) => void }} OwnOperator
 */

/** @type {readonly OwnOperator[]} */
export const OWN_OPERATORS = [
  {
    name: "fxtest::scale_add",
    schema: '(Tensor x, Tensor y, float alpha=2.0, str names="n") -> Tensor',
    kernel: (x, y, alpha) => x.mul(alpha).add(y),
    fake: (x) => torch.emptyLike(x),
    body(graph) {
      const [x, y, alpha] = ["x", "y", "alpha", "names"].map((it) => graph.placeholder(it));
      const scaled = graph.callFunction("torch.ops.aten.mul.Tensor", [x, alpha]);
      graph.output(tuple(graph.callFunction("torch.ops.aten.add.Tensor", [scaled, y])));
    },
  },
  {
    name: "fxtest::accum_",
    schema: "(Tensor(a!) acc, Tensor x) -> ()",
    kernel: (acc, x) => void acc.add_(x),
    body(graph) {
      const [acc, x] = ["acc", "x"].map((it) => graph.placeholder(it));
      graph.callFunction("torch.ops.aten.add_.Tensor", [acc, x]);
      graph.output(tuple());
    },
  },
];

/** Defines the operators for the package. */
export function defineOperators() {
  for (const { name, schema, kernel, fake } of OWN_OPERATORS) {
    const operator = torch.library.customOp(name, kernel, { schema });
    if (fake !== undefined) operator.registerFake(fake);
  }
}

/** The content of an `.fxg` file with what an operator is made of. @param {OwnOperator} operator */
export function bodyFile({ body }) {
  const graph = new Graph();
  body(graph);
  return programOf(new GraphModule(new nn.Module(), graph)).toFxg();
}
