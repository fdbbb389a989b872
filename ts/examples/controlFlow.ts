/** Limitations, and what to do: dynamic control flow is refused, static control flow is recorded as it goes. */
import { cond, F, FxError, init, nn, symbolicTrace, type Tensor, torch } from "tracefx";

await init();

// Dynamic control flow depends on a traced value.
const dynamic = (x: Tensor): Tensor => {
  if (torch.sum(x).gt(0)) return torch.relu(x);
  return torch.neg(x);
};
try {
  symbolicTrace(dynamic);
} catch (error) {
  if (!(error instanceof FxError)) throw error;
  console.log(error.kind);
}

// Static control flow depends on the module alone.
class MyModule extends nn.Module {
  linear = new nn.Linear(4, 4);
  readonly doActivation: boolean;

  constructor(doActivation = false) {
    super();
    this.doActivation = doActivation;
  }

  override forward(x: Tensor): Tensor {
    const y = this.linear.forward(x);
    return this.doActivation ? torch.relu(y) : y;
  }
}
console.log(`${symbolicTrace(new MyModule(false)).graph}`);
console.log(`${symbolicTrace(new MyModule(true)).graph}`);

// An argument that decides can be fixed.
const f = (x: Tensor, flag: boolean): Tensor => (flag ? x : torch.neg(x));
console.log(`${symbolicTrace(f, { concreteArgs: { flag: true } }).graph}`);

// Control flow that belongs in the graph is written with cond.
const inGraph = symbolicTrace((x: Tensor) =>
  cond(
    torch.gt(torch.sum(x), 0),
    (it: Tensor) => torch.relu(it),
    (it: Tensor) => torch.neg(it),
    [x],
  ),
);
console.log(`${inGraph.graph}`);
console.log(`${inGraph.forward(torch.tensor([-1.5, 1]))}`);

// A mode of the module is a constant of the trace, so it is passed as a value of the call.
const dropout = symbolicTrace((x: Tensor) => F.dropout(x, { training: true }));
console.log(`${dropout.graph}`);
