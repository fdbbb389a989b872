import { beforeAll, describe, expect, test } from "vitest";
import { init, Module, nn, Parameter, readSafetensors, tensor, torch, writeSafetensors } from "../../src/index.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

class Net extends Module {
  first = new nn.Linear(2, 3);
  norm = new nn.BatchNorm1d(3);
  scale = new Parameter(tensor([2.5]));
  constructor() {
    super();
    this.registerBuffer("seen", tensor([0.5]));
    this.registerBuffer("scratch", tensor([0.5]), { persistent: false });
  }
}

describe("a state dict", () => {
  test("has parameters, persistent buffers and then those of the sub-modules", () => {
    expect([...new Net().stateDict().keys()]).toEqual([
      "scale",
      "seen",
      "first.weight",
      "first.bias",
      "norm.weight",
      "norm.bias",
      "norm.running_mean",
      "norm.running_var",
      "norm.num_batches_tracked",
    ]);
    expect([...new nn.Linear(1, 1).stateDict({ prefix: "a.b." }).keys()]).toEqual(["a.b.weight", "a.b.bias"]);
  });

  test("has the tensors themselves", () => {
    const linear = new nn.Linear(1, 1);
    expect(linear.stateDict().get("weight")).toBe(linear.weight);
  });

  test("loads what another module has, by way of a file", () => {
    const [from, to] = [new Net(), new Net()];
    from.scale.mul_(2);
    const file = readSafetensors(writeSafetensors(from.stateDict()));
    expect(to.loadStateDict(file.tensors)).toEqual({ missingKeys: [], unexpectedKeys: [] });
    for (const [name, value] of from.stateDict()) expect(to.stateDict().get(name)?.data, name).toEqual(value.data);
  });

  test("is copied into the tensors that are there, in their dtype", () => {
    const linear = new nn.Linear(1, 1, { bias: false });
    const { weight } = linear;
    linear.loadStateDict({ weight: tensor([[3]]) });
    expect(linear.weight).toBe(weight);
    expect(weight.dtype).toBe("float32");
    expect(weight.toArray()).toEqual([[3]]);
  });

  test("is taken itself with assign", () => {
    const linear = new nn.Linear(1, 1, { bias: false });
    linear.requiresGrad_(false);
    const weight = tensor([[3]], { dtype: "float64" });
    linear.loadStateDict({ weight }, { assign: true });
    expect(linear.weight).toBeInstanceOf(Parameter);
    expect(linear.weight.dtype).toBe("float64");
    expect(linear.weight.requiresGrad).toBe(false);
    weight.fill_(4);
    expect(linear.weight.toArray()).toEqual([[4]]);
  });

  test("is refused in PyTorch's words, with all that is wrong, and nothing is loaded", () => {
    const linear = new nn.Linear(2, 1);
    const before = linear.weight.data;
    const error = thrown(() =>
      linear.loadStateDict({ weight: torch.ones([1, 3]), other: torch.ones([1]), "deep.er": torch.ones([1]) }),
    );
    expect(error.kind).toBe("StateMismatch");
    expect(error.reason).toBe(
      [
        "Error(s) in loading state_dict for Linear:",
        'Missing key(s) in state_dict: "bias". ',
        'Unexpected key(s) in state_dict: "other", "deep.er". ',
        "size mismatch for weight: copying a param with shape torch.Size([1, 3]) from checkpoint, the shape in current model is torch.Size([1, 2]).",
      ].join("\n\t"),
    );
    expect(linear.weight.data).toEqual(before);
  });

  test("that is not strict gives the names; sizes must fit all the same", () => {
    const linear = new nn.Linear(2, 1);
    const state = { weight: torch.ones([1, 2]), other: torch.ones([1]) };
    expect(linear.loadStateDict(state, { strict: false })).toEqual({
      missingKeys: ["bias"],
      unexpectedKeys: ["other"],
    });
    expect(linear.weight.toArray()).toEqual([[1, 1]]);
    const error = thrown(() => linear.loadStateDict({ bias: torch.ones([2]) }, { strict: false }));
    expect(error.kind).toBe("StateMismatch");
  });

  test("of something else than tensors is refused", () => {
    const linear = new nn.Linear(1, 1, { bias: false });
    expect(thrown(() => linear.loadStateDict({ weight: 3 })).reason).toContain("received number");
    expect(thrown(() => linear.loadStateDict(null as never)).kind).toBe("InputType");
    expect(thrown(() => linear.loadStateDict({}, { stric: false } as never)).kind).toBe("InvalidOption");
  });

  test("may have one element for a number, and lack the count of batches", () => {
    const norm = new nn.BatchNorm1d(1, { affine: false });
    norm.loadStateDict({ running_mean: tensor([2.5]), running_var: tensor([1.5]), num_batches_tracked: tensor([7]) });
    expect(norm.num_batches_tracked?.item()).toBe(7);
    norm.loadStateDict({ running_mean: tensor([2.5]), running_var: tensor([1.5]) });
    expect(norm.num_batches_tracked?.item()).toBe(7);
  });

  test("with statistics that an instance norm does not keep is explained", () => {
    const state = { running_mean: tensor([0.5]), running_var: tensor([0.5]) };
    const { reason } = thrown(() => new nn.InstanceNorm1d(1).loadStateDict(state));
    expect(reason).toContain('Unexpected running stats buffer(s) "running_mean" and "running_var" for InstanceNorm1d');
  });
});

describe("another dtype", () => {
  test("is that of all floats, and what is one stays one", () => {
    const net = new Net();
    Object.assign(net, { tied: net.scale });
    expect(net.to("float64")).toBe(net);
    expect(new Set([...net.stateDict().values()].map((it) => it.dtype))).toEqual(new Set(["float64", "int64"]));
    expect(Reflect.get(net, "tied")).toBe(net.scale);
    expect(net.half().scale.dtype).toBe("float16");
    expect(net.bfloat16().scale.dtype).toBe("bfloat16");
    expect(net.float().scale.item()).toBe(2.5);
    expect(net.double().getBuffer("scratch").dtype).toBe("float64");
    expect(thrown(() => net.to("int64")).reason).toContain("only accepts floating point");
    expect(net.to(torch.float16).scale.dtype).toBe("float16");
    expect(thrown(() => net.to(torch.int64)).reason).toContain("desired dtype=torch.int64");
    expect(new nn.Linear(2, 2, { dtype: torch.float64 }).weight.dtype).toBe("float64");
    expect(new nn.BatchNorm1d(2, { dtype: torch.float64 }).running_mean?.dtype).toBe("float64");
    expect(new nn.LSTM(2, 2, { dtype: torch.float64 }).getParameter("weight_ih_l0").dtype).toBe("float64");
    expect(nn.Transformer.generateSquareSubsequentMask(2, { dtype: torch.float64 }).dtype).toBe("float64");
  });
});

describe("a functional call", () => {
  test("has other tensors for its parameters, and the module its own afterwards", () => {
    const linear = new nn.Linear(2, 1);
    const { weight, bias } = linear;
    const res = nn.functionalCall(linear, { weight: torch.ones([1, 2]), bias: tensor([0.5]) }, [tensor([[1.5, 2]])]);
    expect(String(res)).toBe("tensor([[4.]])");
    expect(linear.weight).toBe(weight);
    expect(linear.bias).toBe(bias);
  });

  test("replaces what is tied, unless it is told not to", () => {
    const pair = new nn.Sequential(new nn.Linear(1, 1, { bias: false }), new nn.Linear(1, 1, { bias: false }));
    (pair[1] as nn.Linear).weight = (pair[0] as nn.Linear).weight;
    (pair[0] as nn.Linear).weight.fill_(2);
    const [three, x] = [tensor([[3.0]], { dtype: "float32" }), tensor([[1]], { dtype: "float32" })];
    expect(String(nn.functionalCall(pair, { "0.weight": three }, [x]))).toBe("tensor([[9.]])");
    const untied = nn.functionalCall(pair, { "0.weight": three }, [x], { tieWeights: false });
    expect(String(untied)).toBe("tensor([[6.]])");
    const two = { "0.weight": three, "1.weight": x };
    expect(thrown(() => nn.functionalCall(pair, two, [x])).kind).toBe("StateMismatch");
  });

  test("refuses unknown names, and with strict what is missing", () => {
    const linear = new nn.Linear(1, 1);
    const x = torch.ones([1, 1]);
    expect(thrown(() => nn.functionalCall(linear, { wait: x }, [x])).reason).toContain('Unexpected key(s): "wait"');
    const error = thrown(() => nn.functionalCall(linear, { weight: x }, [x], { strict: true }));
    expect(error.reason).toContain('Missing key(s): "bias"');
  });
});
