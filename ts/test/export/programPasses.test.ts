/** Passes over programs, verifiers of one's own, and which signatures are equal. */
import { beforeAll, describe, expect, test } from "vitest";
import {
  exportProgram,
  type ExportedProgram,
  GraphSignature,
  init,
  liftConstantsPass,
  moveToDevicePass,
  nn,
  registerVerifier,
  type Tensor,
  type TensorMeta,
  torch,
  Verifier,
} from "../../src/index.ts";
import { thrown } from "../thrown.ts";

beforeAll(async () => void (await init()));

class Net extends nn.Module {
  fc = new nn.Linear(4, 4);

  override forward(x: Tensor): Tensor {
    return this.fc.forward(x).add(torch.zeros(4)).to("cpu").relu();
  }
}

const program = (): ExportedProgram => exportProgram(new Net(), [torch.ones(2, 4)]);

describe("moveToDevicePass", () => {
  test("moves what nodes say of devices, and what is known of their values", () => {
    const before = program();
    const moved = moveToDevicePass(before, "cuda:1");
    expect(`${moved.graph}`).toContain("device: cuda:1");
    expect(`${moved.graph}`).not.toContain("cpu");
    expect(`${before.graph}`).toContain("device: cpu");
    const [x] = moved.graph.findNodes({ op: "placeholder", target: "x" });
    const val = x?.meta.get("val") as TensorMeta | undefined;
    expect(String(val?.device)).toBe("cuda:1");
    const back = moveToDevicePass(moved, { "cuda:1": "cpu", "cuda:2": "meta" });
    expect(`${back.graph}`).toBe(`${before.graph}`);
    const y = torch.rand(2, 4);
    expect(torch.equal(back.module()(y) as Tensor, before.module()(y) as Tensor)).toBe(true);
  });

  const types =
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone";
  const isNone = (name: string): string => `Expected one of ${types} device type at start of device string: ${name}`;
  test.each([
    ["foo", isNone("foo")],
    ["foo:1", isNone("foo:1")],
    ["CPU", isNone("CPU")],
    ["not a device", isNone("not a device")],
    ["", "Device string must not be empty"],
    ["cuda:x", "Invalid device string: 'cuda:x'"],
    ["cuda:-1", "Invalid device string: 'cuda:-1'"],
    ["cuda:01", "Invalid device string: 'cuda:01'"],
    ["cpu:", "Invalid device string: 'cpu:'"],
  ])("the name of no device is refused as torch.device refuses it: '%s'", (name, says) => {
    for (const location of [name, { cpu: name }]) {
      const { code, reason } = thrown(() => moveToDevicePass(program(), location));
      expect([code, reason]).toEqual(["FX0702", says]);
    }
  });
});

describe("liftConstantsPass", () => {
  test("makes inputs of tensors that the graph reads from the module", () => {
    const changed = program();
    const { graph, graphModule } = changed;
    graphModule.registerBuffer("folded", torch.full([4], 2));
    const [relu] = graph.findNodes({ op: "call_function", target: "torch.ops.aten.relu.default" });
    if (relu === undefined) throw new Error("there is a relu");
    const { val } = Object.fromEntries(relu.meta);
    graph.insertingBefore(relu, () => {
      const read = graph.getAttr("folded");
      const sum = graph.callFunction("torch.ops.aten.mul.Tensor", [relu.args[0] ?? null, read]);
      sum.meta.set("val", val);
      relu.updateArg(0, sum);
    });
    relu.meta.set("val", val);
    const lifted = liftConstantsPass(changed);
    lifted.validate();
    expect(lifted.graphSignature.liftedTensorConstants).toEqual(["folded"]);
    expect(lifted.graph.findNodes({ op: "get_attr" })).toEqual([]);
    const x = torch.rand(2, 4);
    const want = (program().module()(x) as Tensor).mul(0);
    expect((lifted.module()(x.mul(0)) as Tensor).shape).toEqual(want.shape);
  });
});

describe("verifiers of one's own", () => {
  class Edge extends Verifier {
    readonly dialect = "EDGE";

    override get base(): "TRAINING" {
      return "TRAINING";
    }

    override allowedOps(): string[] {
      return ["torch.ops.aten.linear.default", "torch.ops.aten.relu.default"];
    }
  }

  class Small extends nn.Module {
    fc = new nn.Linear(4, 4);

    override forward(x: Tensor): Tensor {
      return this.fc.forward(x).relu();
    }
  }

  test("hold programs that name their dialect", () => {
    registerVerifier(new Edge());
    const small = exportProgram(new Small(), [torch.ones(2, 4)]);
    const edge = small.update(small.graphModule, small.graphSignature, { verifiers: ["EDGE"] });
    expect([edge.dialect, edge.clone().dialect]).toEqual(["EDGE", "EDGE"]);
    edge.validate();
    const [linear] = edge.graph.findNodes({ op: "call_function", target: "torch.ops.aten.linear.default" });
    const [relu] = edge.graph.findNodes({ op: "call_function", target: "torch.ops.aten.relu.default" });
    if (linear === undefined || relu === undefined) throw new Error("both are there");
    relu.target = "torch.ops.aten.sin.default";
    relu.meta.set("val", linear.meta.get("val"));
    const { code, message } = thrown(() => edge.validate());
    expect([code, message]).toEqual(["FX0207", expect.stringContaining("'torch.ops.aten.sin.default' is not in")]);
    expect(message).toContain("%relu");
  });

  test("cannot take the place of the engine's", () => {
    const own = new (class extends Edge {
      override readonly dialect = "ATEN" as "EDGE";
    })();
    expect(thrown(() => registerVerifier(own)).message).toContain("cannot be replaced");
  });
});

test("signatures are equal that say the same", () => {
  const { graphSignature } = program();
  const other = graphSignature.clone();
  expect(graphSignature.equals(other)).toBe(true);
  other.replaceAllUses("relu", "relu_1");
  expect(graphSignature.equals(other)).toBe(false);
  expect(graphSignature.equals(new GraphSignature([], []))).toBe(false);
});
