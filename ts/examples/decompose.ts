/** Proxies and retracing: operators are replaced by what they are made of, without editing a node by hand. */
import { F, Graph, GraphModule, init, nn, type Node, operator, Proxy, type Tensor, torch, Tracer } from "tracefx";

await init();

/** What each function is made of. */
const decompositions = new Map<string, (x: Tensor) => Tensor>([
  [F.relu.target, (x) => operator.mul(operator.gt(x, 0), x) as Tensor],
]);

/** Copies the graph of the model, with the functions above decomposed. */
function decompose(model: nn.Module, tracer = new Tracer()): GraphModule {
  const graph = tracer.trace(model);
  const decomposed = new Graph();
  const env = new Map<Node, Node>();
  const valueOf = (node: Node): Node => env.get(node) as Node;
  for (const node of graph.nodes) {
    const rule = node.op === "call_function" ? decompositions.get(node.target) : undefined;
    if (rule === undefined) {
      env.set(node, decomposed.nodeCopy(node, valueOf));
      continue;
    }
    // By wrapping the arguments in proxies, calling the rule adds its operators to the new graph.
    const [input] = node.args;
    const output = rule(new Proxy(valueOf(input as Node))) as Proxy;
    env.set(node, output.node);
  }
  return new GraphModule(model, decomposed);
}

class M extends nn.Module {
  override forward(x: Tensor): Tensor {
    return F.relu(torch.neg(x));
  }
}

const decomposed = decompose(new M());
console.log(`${decomposed.graph}`);
console.log(`${decomposed.forward(torch.tensor([-1.5, 2]))}`);
