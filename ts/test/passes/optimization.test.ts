import { beforeAll, describe, expect, it } from "vitest";
import {
  extractAttrsForLowering,
  extractSubgraph,
  fuse,
  GraphModule,
  init,
  liftLoweringAttrsToNodes,
  type LoweringAttrs,
  Module,
  nn,
  optimizeForInference,
  removeDropout,
  symbolicTrace,
  type Tensor,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

class Model extends Module {
  readonly conv = new nn.Conv2d(2, 3, 3);
  readonly bn = new nn.BatchNorm2d(3);
  readonly drop = new nn.Dropout();
  readonly flat = new nn.Flatten();
  readonly linear = new nn.Linear(12, 4, { bias: false });
  readonly norm = new nn.BatchNorm1d(4);

  override forward(x: Tensor): Tensor {
    const images = this.drop.call(this.bn.call(this.conv.call(x)));
    return this.norm.call(this.linear.call(this.flat.call(images))) as Tensor;
  }
}

class CallsTwice extends Model {
  override forward(x: Tensor): Tensor {
    return torch.add(this.bn.call(this.conv.call(x)) as Tensor, this.conv.call(x) as Tensor);
  }
}

class ReadsWeights extends Model {
  override forward(x: Tensor): Tensor {
    return torch.mul(this.bn.call(this.conv.call(x)) as Tensor, torch.sum(this.conv.weight));
  }
}

function model(kind = Model): Model {
  const res = new kind();
  // Statistics that are not those of a new module, so that leaving them out shows.
  for (const bn of [res.bn, res.norm]) {
    bn.running_mean?.copy_(torch.rand(bn.running_mean.shape));
    bn.running_var?.copy_(torch.add(torch.rand(bn.running_var.shape), 0.5));
    bn.weight?.copy_(torch.rand(bn.weight.shape));
  }
  return res.eval();
}

const targets = (gm: GraphModule): string[] => [...gm.graph.nodes].map(({ target }) => target);

describe("fuse", () => {
  it("leaves a layer that is called twice, or whose weights are read", () => {
    for (const kind of [CallsTwice, ReadsWeights]) {
      const original = model(kind);
      const x = torch.rand([5, 2, 4, 4]);
      expect(torch.allclose(fuse(original).call(x) as Tensor, original.call(x) as Tensor)).toBe(true);
    }
  });

  it("takes batch normalizations into convolutions and linear layers, with the same numbers", () => {
    const original = model();
    const gm = fuse(original);
    expect(targets(gm)).toEqual(["x", "conv", "drop", "flat", "linear", "output"]);
    const x = torch.rand([5, 2, 4, 4]);
    const [got, want] = [gm.call(x) as Tensor, original.call(x) as Tensor];
    expect(torch.allclose(got, want, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
    expect(original.linear.bias).toBe(null);
    gm.graph.lint();
  });

  it("leaves a layer alone that something else uses, and one in training", () => {
    class Shared extends Module {
      readonly conv = new nn.Conv2d(2, 3, 3);
      readonly bn = new nn.BatchNorm2d(3);
      override forward(x: Tensor): Tensor {
        const y = this.conv.call(x) as Tensor;
        return torch.add(this.bn.call(y) as Tensor, y);
      }
    }
    expect(targets(fuse(new Shared().eval()))).toContain("bn");
    expect(() => fuse(new Model())).toThrow(/Fusion only for eval/);
  });
});

it("removes dropouts", () => {
  expect(targets(removeDropout(model()))).toEqual(["x", "conv", "bn", "flat", "linear", "norm", "output"]);
});

it("optimizes for inference", () => {
  const gm = optimizeForInference(model());
  expect(gm).toBeInstanceOf(GraphModule);
  expect(targets(gm as GraphModule)).toEqual(["x", "conv", "flat", "linear", "output"]);
  const kept = optimizeForInference(model(), { convBnFuse: false });
  expect(targets(kept as GraphModule)).toContain("bn");
});

it("extracts a part of a graph", () => {
  const original = model();
  const gm = symbolicTrace(original);
  const [x, conv, bn] = [...gm.graph.nodes];
  if (x === undefined || conv === undefined || bn === undefined) throw new Error("three nodes");
  const part = extractSubgraph(gm, [conv, bn], [x], [bn]);
  expect(targets(part)).toEqual(["x", "conv", "bn", "output"]);
  const input = torch.rand([1, 2, 4, 4]);
  const [got] = part.call(input) as [Tensor];
  expect(torch.equal(got, original.bn.call(original.conv.call(input)) as Tensor)).toBe(true);
});

it("notes what backends need to know of modules", () => {
  const gm = symbolicTrace(new nn.Sequential(new nn.Conv2d(3, 8, 3), new nn.ReLU()));
  liftLoweringAttrsToNodes(gm);
  const [, conv, relu] = [...gm.graph.nodes];
  const attrs = conv?.meta.get("attrs_for_lowering") as LoweringAttrs;
  expect(Object.keys(attrs)).toEqual(
    ["name", "weight", "bias", "kernel_size", "stride", "padding"].concat(["dilation", "groups", "padding_mode"]),
  );
  expect([
    attrs["name"],
    Array.from(attrs["stride"] as number[]),
    Number(attrs["groups"]),
    attrs["padding_mode"],
  ]).toEqual(["torch.nn.Conv2d", [1, 1], 1, "zeros"]);
  expect(relu?.meta.get("attrs_for_lowering")).toEqual({ name: "torch.nn.ReLU", inplace: false });
  expect(() => extractAttrsForLowering(new nn.Tanh())).toThrow(/not in the module_fetch_book/);
});
