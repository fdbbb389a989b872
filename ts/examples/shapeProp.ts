/** The interpreter pattern, by hand: shape propagation runs the graph and notes what each node gives. */
import { init, Interpreter, isNode, type Node, nn, symbolicTrace, Tensor, torch } from "tracefx";

await init();

/** Runs a graph and notes the shape and dtype of every tensor in its node. */
class ShapeNotes extends Interpreter {
  override runNode(node: Node): unknown {
    const value = super.runNode(node);
    if (value instanceof Tensor) {
      node.meta.set("shape", [...value.shape]);
      node.meta.set("dtype", value.dtype);
    }
    return value;
  }
}

class TwoLayerNet extends nn.Module {
  linear1: nn.Linear;
  linear2: nn.Linear;

  constructor(dIn: number, h: number, dOut: number) {
    super();
    this.linear1 = new nn.Linear(dIn, h);
    this.linear2 = new nn.Linear(h, dOut);
  }

  override forward(x: Tensor): Tensor {
    return this.linear2.forward(this.linear1.forward(x).clamp({ min: 0 }));
  }
}

const [n, dIn, h, dOut] = [64, 1000, 100, 10];
const gm = symbolicTrace(new TwoLayerNet(dIn, h, dOut));
const sample = torch.randn(n, dIn);
new ShapeNotes(gm).run(sample);

for (const node of gm.graph.nodes) {
  const shape = (node.meta.get("shape") as number[] | undefined)?.join(", ");
  console.log(node.name, node.meta.get("dtype"), `[${shape}]`, isNode(node.args[0]) ? `from ${node.args[0]}` : "");
}
