/** What graphs and nodes give, and what the compiler refuses. Nothing here runs. */
import { expectTypeOf } from "vitest";
import {
  type Arg,
  type GeneratedCode,
  type Graph,
  GraphModule,
  nn,
  type Node,
  type Opcode,
  symbolicTrace,
  type Tensor,
  torch,
} from "tracefx";

declare const graph: Graph;
declare const node: Node;
declare const x: Tensor;

export function results(): void {
  expectTypeOf(graph.placeholder("x")).toEqualTypeOf<Node>();
  expectTypeOf(graph.callFunction(torch.add, [node, 1], { alpha: 2 })).toEqualTypeOf<Node>();
  expectTypeOf(graph.callFunction("torch.ops.aten.add.Tensor", [node, [1, null]])).toEqualTypeOf<Node>();
  expectTypeOf(graph.output([node, { out: node }])).toEqualTypeOf<Node>();
  expectTypeOf([...graph.nodes]).toEqualTypeOf<Node[]>();
  expectTypeOf(graph.nodes.map((it) => it.name)).toEqualTypeOf<string[]>();
  expectTypeOf(graph.nodes.find((it) => it.op === "output")).toEqualTypeOf<Node | undefined>();
  expectTypeOf(node.target === torch.relu.target).toEqualTypeOf<boolean>();
  expectTypeOf(graph.lint()).toEqualTypeOf<void>();
  expectTypeOf(graph.eliminateDeadCode()).toEqualTypeOf<boolean>();
  expectTypeOf(node.op).toEqualTypeOf<Opcode>();
  expectTypeOf(node.args[0]).toEqualTypeOf<Arg | undefined>();
  expectTypeOf(node.users).toEqualTypeOf<ReadonlySet<Node>>();
  expectTypeOf(node.meta).toEqualTypeOf<Map<string, unknown>>();
  expectTypeOf(node.next).toEqualTypeOf<Node | undefined>();
  expectTypeOf(symbolicTrace(new nn.ReLU())).toEqualTypeOf<GraphModule>();
  expectTypeOf(symbolicTrace((a: Tensor, b: Tensor) => a.add(b))).toEqualTypeOf<GraphModule>();
  expectTypeOf(new GraphModule(new nn.Module(), graph).recompile()).toEqualTypeOf<GeneratedCode>();
  expectTypeOf<Opcode>().toEqualTypeOf<
    "placeholder" | "get_attr" | "call_function" | "call_method" | "call_module" | "output"
  >();
}

export function refused(): void {
  // @ts-expect-error a target is a name, and that of a function is `torch.relu.target`
  if (node.target === torch.relu) return;
  // @ts-expect-error names are in camel case
  graph.call_function("torch.relu", [node]);
  // @ts-expect-error as above
  void node.all_input_nodes;
  // @ts-expect-error a tensor is no argument of a node: it is an attribute of the module
  graph.callFunction(torch.add, [node, x]);
  // @ts-expect-error what is no function of the table has no name
  graph.callFunction((a: Tensor) => a, [node]);
  // @ts-expect-error the arguments are a list
  graph.callFunction(torch.relu, node);
  // @ts-expect-error undefined is no argument: it is null
  graph.output(undefined);
  // @ts-expect-error there is no such opcode
  node.op = "call";
  // @ts-expect-error users follow from arguments
  node.users = new Set<Node>();
  // @ts-expect-error users follow from arguments
  node.users.add(node);
  // @ts-expect-error a node stays in its graph
  node.graph = graph;
  // @ts-expect-error a number is nothing that can be traced
  symbolicTrace(3);
  // @ts-expect-error a graph is no module
  new GraphModule(graph, graph);
}
