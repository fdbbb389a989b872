/**
 * A sketch of post-training quantization: observers are put behind the nodes, calibrated by running, and then replaced by
 * rounding to eight bits with the scales that they found.
 */
import type { GraphModule } from "tracefx";
import { init, nn, symbolicTrace, type Tensor, torch } from "tracefx";

await init();
torch.manualSeed(0);

/** Sees what passes through, and passes it on. */
class MinMaxObserver extends nn.Module {
  min = Number.POSITIVE_INFINITY;
  max = Number.NEGATIVE_INFINITY;

  override forward(x: Tensor): Tensor {
    this.min = Math.min(this.min, x.min().item() as number);
    this.max = Math.max(this.max, x.max().item() as number);
    return x;
  }

  /** The step and the zero point of unsigned eight-bit integers for what was seen. */
  calculateQparams(): { scale: number; zeroPoint: number } {
    const [low, high] = [Math.min(this.min, 0), Math.max(this.max, 0)];
    const scale = (high - low) / 255 || 1;
    return { scale, zeroPoint: Math.round(-low / scale) };
  }
}

/** Rounds to what eight bits can hold. */
class FakeQuantize extends nn.Module {
  readonly scale: number;
  readonly zeroPoint: number;

  constructor({ scale, zeroPoint }: { scale: number; zeroPoint: number }) {
    super();
    this.scale = scale;
    this.zeroPoint = zeroPoint;
  }

  override forward(x: Tensor): Tensor {
    const steps = torch.round(torch.div(x, this.scale)).add(this.zeroPoint).clamp(0, 255);
    return steps.sub(this.zeroPoint).mul(this.scale);
  }
}

/** Puts an observer behind each input and each call of a module. */
function prepare(model: nn.Module): GraphModule {
  const gm = symbolicTrace(model);
  for (const node of gm.graph.nodes) {
    if (node.op !== "placeholder" && node.op !== "call_module") continue;
    if (node.target.endsWith("_observer")) continue;
    const name = `${node.name}_observer`;
    gm.addSubmodule(name, new MinMaxObserver());
    gm.graph.insertingAfter(node, () => {
      const observed = gm.graph.callModule(name, [node]);
      node.replaceAllUsesWith(observed, { filter: (user) => user !== observed });
    });
  }
  gm.graph.lint();
  gm.recompile();
  return gm;
}

/** Replaces each observer by the rounding that it found. */
function convert(gm: GraphModule): GraphModule {
  for (const [path, module] of gm.namedModules()) {
    if (module instanceof MinMaxObserver) gm.addSubmodule(path, new FakeQuantize(module.calculateQparams()));
  }
  gm.recompile();
  return gm;
}

class Net extends nn.Module {
  linear1 = new nn.Linear(8, 16);
  relu = new nn.ReLU();
  linear2 = new nn.Linear(16, 4);
  override forward(x: Tensor): Tensor {
    return this.linear2.forward(this.relu.forward(this.linear1.forward(x)));
  }
}

const model = new Net().eval();
const prepared = prepare(model);
console.log(`${prepared.graph}`);
for (let batch = 0; batch < 8; batch++) prepared.forward(torch.randn(16, 8));
const quantized = convert(prepared);

const x = torch.randn(16, 8);
const error = torch
  .sub(quantized.forward(x) as Tensor, model.forward(x))
  .abs()
  .max()
  .item() as number;
console.log("close to the model:", error < 0.05, "and not equal:", error > 0);
