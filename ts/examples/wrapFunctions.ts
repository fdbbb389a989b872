/** Functions that are not torch's: `wrap` makes a call of them one node. */
import { init, operator, symbolicTrace, type Tensor, torch, wrap } from "tracefx";

await init();

/** How many elements there are, as a number: control flow on it cannot be recorded, a call of the function can. */
const count = wrap(function count(x: Tensor): number {
  return x.numel() > 3 ? x.numel() : 3;
});

const normalize = (x: Tensor): Tensor => operator.truediv(x, torch.sqrt(torch.tensor(2))).mul(count(x));

const traced = symbolicTrace(normalize);
console.log(`${traced.graph}`);
console.log(`${traced.forward(torch.ones(4))}`);
