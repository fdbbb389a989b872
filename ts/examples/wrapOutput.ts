/** Puts an activation around the output of a module: by changing the graph, and by tracing a module around it. */
import { type GraphModule, init, nn, symbolicTrace, type Tensor, torch } from "tracefx";

await init();

class M extends nn.Module {
  override forward(x: Tensor, y: Tensor): Tensor {
    return torch.cat([x, y]);
  }
}

/** The functions by which an output may be wrapped. */
type Activation = "relu" | "gelu" | "tanh";

function wrapInActivation(m: nn.Module, activation: Activation): GraphModule {
  class WrapperModule extends nn.Module {
    module = m;
    override forward(x: Tensor, y: Tensor): Tensor {
      return this.module.call(x, y) as Tensor;
    }
  }
  // Tracing the wrapper traces through the module, so there is one flat graph.
  const traced = symbolicTrace(new WrapperModule());
  const output = traced.graph.outputNode();
  if (output === undefined) throw new Error("the graph has no output");
  const [value] = output.args;
  const wrapped = traced.graph.insertingBefore(output, () =>
    traced.graph.callFunction(activation === "gelu" ? "torch.nn.functional.gelu" : `torch.${activation}`, [
      value ?? null,
    ]),
  );
  output.args = [wrapped];
  traced.graph.lint();
  traced.recompile();
  return traced;
}

const [x, y] = [torch.tensor([-1.5, 2]), torch.tensor([0.5])];
const wrapped = wrapInActivation(new M(), "relu");
console.log(`${wrapped.graph}`);
console.log(`${wrapped.forward(x, y)}`);
