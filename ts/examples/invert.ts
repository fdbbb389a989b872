/** Inverts a function: walks its graph from the output to the input, and calls the inverse of each operator. */
import type { nn } from "tracefx";
import { Graph, GraphModule, init, type Node, symbolicTrace, type Tensor, torch } from "tracefx";

await init();

/** Functions and their inverses. */
const pairs: [string, string][] = [
  [torch.sin.target, torch.asin.target],
  [torch.cos.target, torch.acos.target],
  [torch.tan.target, torch.atan.target],
  [torch.exp.target, torch.log.target],
];
const inverses = new Map([...pairs, ...pairs.map(([fn, inverse]): [string, string] => [inverse, fn])]);

function invert(model: nn.Module | ((x: Tensor) => Tensor)): GraphModule {
  const traced = symbolicTrace(model);
  const graph = new Graph();
  const env = new Map<Node, Node>();
  for (const node of traced.graph.nodes.reversed()) {
    if (node.op === "call_function") {
      // The inverse of the node takes what the node gave, and gives what the node took.
      const inverse = inverses.get(node.target);
      if (inverse === undefined) throw new Error(`${node.target} has no inverse`);
      const [input] = node.args;
      env.set(input as Node, graph.callFunction(inverse, [env.get(node) as Node]));
    } else if (node.op === "output") {
      env.set(node.args[0] as Node, graph.placeholder("x"));
    } else if (node.op === "placeholder") {
      graph.output(env.get(node) as Node);
    }
  }
  graph.lint();
  return new GraphModule({}, graph);
}

const fn = (x: Tensor): Tensor => torch.exp(torch.tan(x));
const inverse = invert(fn);
console.log(`${inverse.graph}`);
const x = torch.tensor([0.25, -0.5, 1]);
console.log(torch.allclose(inverse.forward(fn(x)) as Tensor, x));
