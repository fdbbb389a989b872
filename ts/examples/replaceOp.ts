/** Replaces one operator by another: each `torch.add` becomes a `torch.mul`, and a method too. */
import type { Graph } from "tracefx";
import { GraphModule, init, nn, symbolicTrace, type Tensor, torch, Tracer } from "tracefx";

await init();

class M extends nn.Module {
  override forward(x: Tensor, y: Tensor): Tensor {
    return torch.add(x, y);
  }
}

function transform(m: nn.Module): GraphModule {
  const graph: Graph = new Tracer().trace(m);
  // A graph is an ordered list of nodes, and editing it is assigning to them.
  for (const node of graph.nodes) {
    if (node.op === "call_function" && node.target === torch.add.target) node.target = torch.mul.target;
  }
  // The graph is still well formed.
  graph.lint();
  return new GraphModule(m, graph);
}

const m = new M();
console.log(`${symbolicTrace(m).graph}`);
const changed = transform(m);
console.log(`${changed.graph}`);
const [x, y] = [torch.tensor([2.5, 3]), torch.tensor([4, 0.5])];
console.log(`${changed.forward(x, y)}`);

/** The same with the insertion point: an operator is put beside the old one, which then has no users. */
const traced = symbolicTrace(m);
for (const node of traced.graph.nodes) {
  if (node.target !== torch.add.target) continue;
  traced.graph.insertingAfter(node, () => {
    const replacement = traced.graph.callFunction(torch.bitwiseAnd, node.args, node.kwargs);
    node.replaceAllUsesWith(replacement);
  });
  traced.graph.eraseNode(node);
}
traced.recompile();
console.log(`${traced.forward(torch.tensor([6, 5]), torch.tensor([3, 4]))}`);
