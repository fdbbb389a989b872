/** Direct graph manipulation: a `torch.relu` after every addition. */
import { init, symbolicTrace, type Tensor, torch } from "tracefx";

await init();

const traced = symbolicTrace((x: Tensor, y: Tensor): Tensor => torch.add(torch.add(x, y), 1));

for (const node of traced.graph.nodes) {
  if (node.target !== torch.add.target) continue;
  // Nodes made in the body are put after this node.
  traced.graph.insertingAfter(node, () => {
    const relu = traced.graph.callFunction(torch.relu, [node]);
    // All users of the addition use its relu instead, except the relu itself.
    node.replaceAllUsesWith(relu, { filter: (user) => user !== relu });
  });
}

traced.graph.lint();
traced.recompile();
console.log(`${traced.graph}`);
console.log(`${traced.forward(torch.tensor([-5, 1]), torch.tensor([1, 1]))}`);
