/** An operator of your own: computed by a function of JavaScript, traced, saved by name, and differentiated. */
import { differentiateOperator, init, programOf, symbolicTrace, type Tensor, torch } from "tracefx";

await init();

const softsign = torch.library
  .customOp("mylib::softsign", (x: Tensor) => x.div(x.abs().add(1)), { schema: "(Tensor x) -> Tensor" })
  // What it gives, without computing it.
  .registerFake((x: Tensor) => torch.emptyLike(x))
  // The way back: 1 / (1 + |x|)².
  .registerAutograd((ctx, grad: Tensor) => grad.div((ctx.savedTensors[0] as Tensor).abs().add(1).square()), {
    setupContext: (ctx, [x]) => ctx.saveForBackward(x as Tensor),
  });

const x = torch.tensor([-3, 0, 1], { dtype: torch.float32 });
console.log(`${softsign(x)}`);

// A graph calls it by name, and so does the file of a program.
const program = programOf(symbolicTrace((input: Tensor) => softsign(input)));
console.log(`${program.graph}`);
using run = program.module();
console.log(`${run(x)}`);

const [gradient] = differentiateOperator("mylib.softsign", [x], [torch.onesLike(x)]);
console.log(`${gradient}`);
