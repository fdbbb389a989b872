import { describe, expect, test } from "vitest";
import {
  F,
  float,
  FxError,
  init,
  isLoaded,
  Module,
  nn,
  symbolicTrace,
  tensor,
  type Tensor,
  torch,
} from "../../src/index.ts";

/** A refusal's kind and reason. */
function refusal(body: () => unknown): [string, string] {
  try {
    body();
  } catch (error) {
    if (error instanceof FxError) return [error.kind, error.reason];
    throw error;
  }
  return ["", "nothing was thrown"];
}

function make(...args: unknown[]): unknown {
  return Reflect.construct(nn.Linear, args);
}

/** The targets of the nodes of a traced module. */
function targets(module: Module): string[] {
  return [...symbolicTrace(module).graph.nodes].map((node) => node.target);
}

// The first test of the file: the engine is not loaded before it.
describe("before the engine is loaded", () => {
  test("modules are made, printed, copied and traced, and drawn in order afterwards", async () => {
    const early = new nn.Sequential(new nn.Linear(3, 4), new nn.BatchNorm1d(4));
    const linear = early[0] as nn.Linear;
    const encoder = new nn.TransformerEncoder(new nn.TransformerEncoderLayer(4, 2, 8), 1);
    expect(String(early)).toContain("(0): Linear(in_features=3, out_features=4, bias=True)");
    expect([...symbolicTrace(early).graph.nodes].map((node) => node.target)).toEqual(["input", "0", "1", "output"]);
    expect(refusal(() => linear.weight.data)).toEqual([
      "NotLoaded",
      "the parameters of a module are drawn by the engine, which is not loaded",
    ]);
    const loaded = new nn.Linear(1, 1, { bias: false });
    loaded.loadStateDict({ weight: tensor([[2.5]]) });
    await init();
    expect(linear.weight.toFloat32Array().every((it) => it !== 0 && Math.abs(it) <= 1 / Math.sqrt(3))).toBe(true);
    expect(early.getBuffer("1.running_var").toArray()).toEqual([1, 1, 1, 1]);
    expect(loaded.weight.item()).toBe(2.5);
    const [name] = encoder.stateDict().keys();
    expect(
      encoder
        .stateDict()
        .get(name as string)
        ?.toFloat32Array()
        .some((it) => it !== 0),
    ).toBe(true);
  });
});

describe("arguments of layers", () => {
  test("are positional as in Python, or named, or both", () => {
    const shown = "Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))";
    expect(String(new nn.Conv2d(3, 8, 3, 2, 1))).toBe(shown);
    expect(String(new nn.Conv2d(3, 8, 3, { stride: 2, padding: 1 }))).toBe(shown);
    expect(String(new nn.Conv2d(3, 8, { kernelSize: 3, stride: [2, 2], padding: 1 }))).toBe(shown);
    expect(String(new nn.Conv2d({ inChannels: 3, outChannels: 8, kernelSize: 3, stride: 2, padding: 1 }))).toBe(shown);
  });

  test("are refused by name where they are not known, missing, or there twice", () => {
    expect(refusal(() => make(1, 2, { bais: true }))).toEqual(["InvalidOption", "Linear has no option `bais`"]);
    expect(refusal(() => make(1))).toEqual(["InvalidOption", "Linear needs `outFeatures`"]);
    expect(refusal(() => make())).toEqual(["InvalidOption", "Linear needs `inFeatures` and `outFeatures`"]);
    expect(refusal(() => make(1, 2, { inFeatures: 3 }))[1]).toBe("Linear got two values for `inFeatures`");
    expect(refusal(() => make(1, 2, true, null, null, 7))[1]).toBe("Linear takes at most 5 arguments, not 6");
    expect(refusal(() => make(1, 2, { device: "cuda" }))[1]).toBe("Linear cannot be on the device cuda");
    expect(refusal(() => new nn.Conv2d(1, 1, [3, 3, 3]))[1]).toBe("kernelSize has 3 entries");
  });

  test("of forward may be named", () => {
    const attention = new nn.MultiheadAttention(4, 2);
    const x = torch.ones([3, 1, 4]);
    expect(attention.forward(x, x, x, { needWeights: false })[1]).toBeNull();
    expect(attention.forward(x, x, x, undefined, true)[1]?.shape).toEqual([1, 3, 3]);
    expect(new nn.Linear(4, 2).call({ input: x })).toMatchObject({ shape: [3, 1, 2] });
    expect(refusal(() => new nn.Linear(4, 2).call({ inputs: x }))[0]).toBe("InvalidOption");
  });

  test("of forward of a class of one's own are its own", () => {
    class Scaled extends nn.Linear {
      override forward(x: Tensor, options?: { scale: number }): Tensor {
        return super.forward(x).mul(options?.scale ?? 1);
      }
    }
    const scaled = new Scaled(1, 1, { bias: false });
    scaled.weight.fill_(3);
    expect(scaled.forward(torch.ones([1, 1]), { scale: 2 }).item()).toBe(6);
    class Named extends Module {
      static override readonly forwardSignature: string = "(x, scale=1)";
      override forward(x: Tensor, scale: number | { scale: number }): Tensor {
        return x.mul(scale as number);
      }
    }
    expect((new Named().call(tensor([2]), { scale: 3 }) as Tensor).toArray()).toEqual([6]);
  });
});

describe("traces of layers", () => {
  test("as roots are PyTorch's", () => {
    expect(targets(new nn.Linear(2, 3))).toEqual(["input", "weight", "bias", "torch._C._nn.linear", "output"]);
    expect(targets(new nn.Linear(2, 3, { bias: false }))).toEqual(["input", "weight", "torch._C._nn.linear", "output"]);
    expect(String(symbolicTrace(new nn.Conv2d(3, 8, 3, { padding: 1 })).graph)).toContain(
      "call_function[target=torch.conv2d](args = (%input_1, %weight, %bias, (1, 1), (1, 1), (1, 1), 1), kwargs = {})",
    );
    expect(String(symbolicTrace(new nn.ELU()).graph)).toContain(
      "call_function[target=torch.nn.functional.elu](args = (%input_1,), kwargs = {alpha: 1.0, inplace: False})",
    );
    expect(targets(new nn.Flatten())).toEqual(["input", "flatten", "output"]);
  });

  test("are leaves in other modules, but not where a class of one's own extends one", () => {
    class Own extends nn.ReLU {}
    class Net extends Module {
      relu = new nn.ReLU();
      own = new Own();
      override forward(x: Tensor): Tensor {
        return this.own.forward(this.relu.forward(x));
      }
    }
    expect(targets(new Net())).toEqual(["x", "relu", "torch.nn.functional.relu", "output"]);
    expect(nn.isBuiltinModule(new nn.ReLU())).toBe(true);
    expect(nn.isBuiltinModule(new Own())).toBe(false);
  });

  test("that depend on the shape of an input are refused", () => {
    expect(refusal(() => symbolicTrace(new nn.BatchNorm2d(3)))[0]).toBe("TraceControlFlow");
    expect(refusal(() => symbolicTrace(new nn.LSTM(3, 3)))[0]).toBe("TraceControlFlow");
  });
});

describe("layers", () => {
  test("that are random are the identity in evaluation, and follow the seed in training", () => {
    const dropout = new nn.Dropout(0.5);
    const x = torch.ones([20]);
    torch.manualSeed(1);
    const first = dropout.forward(x).data;
    torch.manualSeed(1);
    expect(dropout.forward(x).data).toEqual(first);
    expect(first).not.toEqual(x.data);
    expect(dropout.eval().forward(x).data).toEqual(x.data);
  });

  test("that work in place give their input back", () => {
    const x = tensor([-1.5, 2.5]);
    expect(new nn.ReLU({ inplace: true }).forward(x)).toBe(x);
    expect(x.toArray()).toEqual([0, 2.5]);
  });

  test("count batches in training, with an average of all where there is no momentum", () => {
    const norm = new nn.BatchNorm1d(1, { momentum: null, affine: false });
    norm.forward(tensor([[0.0], [2.0]], { dtype: "float32" }));
    norm.forward(tensor([[4.0], [6.0]], { dtype: "float32" }));
    expect(norm.num_batches_tracked?.item()).toBe(2);
    expect(norm.running_mean?.toArray()).toEqual([3]);
    norm.resetRunningStats();
    expect(norm.running_mean?.toArray()).toEqual([0]);
  });

  test("undo a pooling with its indices", () => {
    const x = tensor([[[1.5, 2.5, 4.5, 3.5]]]);
    const pooled = new nn.MaxPool1d(2, { returnIndices: true }).forward(x) as unknown as [Tensor, Tensor];
    expect(new nn.MaxUnpool1d(2).forward(...pooled).toArray()).toEqual([[[0, 2.5, 4.5, 0]]]);
  });

  test("take the size of the output of a transposed convolution", () => {
    const layer = new nn.ConvTranspose1d(1, 1, 3, { stride: 2 });
    const x = torch.ones([1, 1, 4]);
    expect(layer.forward(x).shape).toEqual([1, 1, 9]);
    expect(layer.forward(x, { outputSize: [10] }).shape).toEqual([1, 1, 10]);
    expect(refusal(() => layer.forward(x, [12]))[1]).toBe(
      "requested an output size of [12], but valid sizes range from [9] to [10] (for an input of torch.Size([4]))",
    );
  });

  test("take vectors for an embedding", () => {
    const rows = tensor([
      [1.5, 2.5],
      [3.5, 4.5],
    ]);
    const embedding = nn.Embedding.fromPretrained(rows);
    expect(embedding.weight.requiresGrad).toBe(false);
    expect(embedding.forward(tensor([1])).toArray()).toEqual([[3.5, 4.5]]);
    const bag = nn.EmbeddingBag.fromPretrained(rows, { mode: "sum", freeze: false });
    expect(bag.forward(tensor([[0, 1]])).toArray()).toEqual([[5, 7]]);
    expect(bag.weight.requiresGrad).toBe(true);
  });

  test("of an adaptive softmax agree with each other", () => {
    const layer = new nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], { divValue: float(2) });
    const x = torch.randn([6, 8]);
    const all = layer.logProb(x);
    const target = tensor([0, 1, 2, 4, 5, 9]);
    const { output, loss } = layer.forward(x, target);
    const wanted = all.gather(1, target.unsqueeze(1)).squeeze(1);
    expect(torch.allclose(output, wanted, { atol: 1e-5 })).toBe(true);
    expect(torch.allclose(loss, wanted.mean().neg(), { atol: 1e-5 })).toBe(true);
    expect(torch.allclose(all.exp().sum(1), torch.ones([6]), { atol: 1e-5 })).toBe(true);
    expect(torch.equal(layer.predict(x), all.argmax(1))).toBe(true);
    expect(refusal(() => layer.forward(x, tensor([0, 1, 2, 4, 5, 10])))[1]).toContain("[0, 9]");
  });

  test("of an encoder give zeros for padding in evaluation", () => {
    const layer = new nn.TransformerEncoderLayer(4, 2, 8, { batchFirst: true });
    const encoder = new nn.TransformerEncoder(layer, 1).eval();
    const padding = tensor([[false, false, true]]);
    const out = encoder.forward(torch.ones([1, 3, 4]), { srcKeyPaddingMask: padding });
    expect(out.select(1, 2).toArray()).toEqual([[0, 0, 0, 0]]);
    expect(encoder.train().forward(torch.ones([1, 3, 4]), { srcKeyPaddingMask: padding }).shape).toEqual([1, 3, 4]);
  });

  test("take a function or a module for an activation", () => {
    for (const activation of ["gelu", F.tanh, new nn.Tanh()] as const) {
      const layer = new nn.TransformerDecoderLayer(4, 2, 8, { activation });
      expect(layer.forward(torch.ones([2, 1, 4]), torch.ones([3, 1, 4])).shape).toEqual([2, 1, 4]);
    }
  });

  test("are not drawn where that is skipped", () => {
    const state = torch.getRngState().data;
    const net = nn.skipInit(() => new nn.Sequential(new nn.Linear(3, 3), new nn.BatchNorm1d(3)));
    expect(net.parameters().every((it) => it.toFloat32Array().every((value) => value === 0))).toBe(true);
    expect(torch.getRngState().data).toEqual(state);
    expect(isLoaded()).toBe(true);
  });
});

describe("modules", () => {
  test("are put at a path", () => {
    const net = new nn.Sequential(new nn.Sequential(new nn.ReLU()));
    const tanh = new nn.Tanh();
    net.setSubmodule("0.0", tanh);
    expect(net.getSubmodule("0.0")).toBe(tanh);
    net.setSubmodule("0.extra", tanh);
    expect(net.getSubmodule("0.extra")).toBe(tanh);
    expect(refusal(() => net.setSubmodule("0.none", tanh, { strict: true }))[0]).toBe("AttributeMissing");
    expect(refusal(() => net.setSubmodule("", tanh))[1]).toBe("Cannot set the submodule without a target name!");
    expect(refusal(() => new nn.Linear(1, 1).setSubmodule("weight", tanh))[1]).toBe("`weight` is not an nn.Module");
    net.registerModule("more", tanh);
    expect(net.getSubmodule("more")).toBe(tanh);
  });
});
