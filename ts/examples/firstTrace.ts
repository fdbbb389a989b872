/**
 * The first example of the torch.fx guide: a module, its graph, its code, and a run.
 *
 *     node ts/examples/firstTrace.ts
 */
import { float, init, nn, operator, symbolicTrace, type Tensor, torch } from "tracefx";

await init();
torch.manualSeed(0);

class MyModule extends nn.Module {
  param = new nn.Parameter(torch.rand(3, 4));
  linear = new nn.Linear(4, 5);

  override forward(x: Tensor): Tensor {
    return this.linear.forward(operator.add(x, this.param)).clamp({ min: float(0), max: float(1) });
  }
}

const module = new MyModule();

// Symbolic tracing frontend: captures the semantics of the module.
const traced = symbolicTrace(module);

// High-level intermediate representation: the graph.
console.log(`${traced.graph}`);

// Code generation: valid JavaScript.
console.log(traced.code);

// The traced module is a module: it runs, and gives what the module gives.
const x = torch.rand(3, 4);
console.log(torch.equal(traced.forward(x) as Tensor, module.forward(x)));
