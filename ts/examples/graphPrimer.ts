/** A quick primer on graphs: the nodes of a small module, printed as a table. */
import { init, nn, operator, symbolicTrace, type Tensor, torch } from "tracefx";

await init();

class MyModule extends nn.Module {
  param = new nn.Parameter(torch.rand(3, 4));
  linear = new nn.Linear(4, 5);

  override forward(x: Tensor): unknown {
    return torch.topk(torch.sum(this.linear.forward(operator.add(x, this.linear.weight)).relu(), { dim: -1 }), 3);
  }
}

const gm = symbolicTrace(new MyModule());
gm.graph.printTabular();
