/** Parts that are traced once and put together: each is a graph, and the whole is traced through them. */
import { F, init, nn, symbolicTrace, type Tensor, torch } from "tracefx";

await init();

/** A library of parts, traced: they are flat graphs, whatever they were written like. */
const primitives = {
  linearRelu: symbolicTrace((x: Tensor, weight: Tensor, bias: Tensor) => F.relu(F.linear(x, weight, bias))),
  residual: symbolicTrace((x: Tensor, y: Tensor) => torch.add(x, y)),
};

class Block extends nn.Module {
  weight = new nn.Parameter(torch.eye(3));
  bias = new nn.Parameter(torch.zeros(3));
  linearRelu = primitives.linearRelu;
  residual = primitives.residual;

  override forward(x: Tensor): Tensor {
    const hidden = this.linearRelu.forward(x, this.weight, this.bias);
    return this.residual.forward(x, hidden) as Tensor;
  }
}

// The parts are modules of their own, and no leaves: the trace goes through them.
const gm = symbolicTrace(new Block());
console.log(`${gm.graph}`);
console.log(`${gm.forward(torch.tensor([[1.5, -2, 3]]))}`);
