import { beforeAll, describe, expect, test } from "vitest";
import { float, init, slice, symbolicTrace, type Tensor, tensor, torch } from "../../src/index.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

describe("typical calls", () => {
  // tsc checks the types of this file: a call that PyTorch takes and the signatures do not is an error there.
  test("of functions take options by name at any place", () => {
    const x: Tensor = torch.tensor([
      [1.5, -2],
      [3, 4],
    ]);
    expect(torch.add(x, 1, { alpha: 2 }).toArray()).toEqual([
      [3.5, 0],
      [5, 6],
    ]);
    expect(torch.sum(x, 1).toArray()).toEqual([-0.5, 7]);
    expect(torch.sum(x, { dim: 1, keepdim: true }).shape).toEqual([2, 1]);
    expect(torch.sum(x, [0, 1], { keepdim: true, dtype: "float64" }).dtype).toBe("float64");
    expect(torch.sum(x, 0, true).shape).toEqual([1, 2]);
    const [values, indices] = torch.max(x, 1);
    expect([values.toArray(), indices.toArray()]).toEqual([
      [1.5, 4],
      [0, 1],
    ]);
    expect(torch.max(x).item()).toBe(4);
    expect(torch.maximum(x, torch.zerosLike(x)).relu().toArray()).toEqual([
      [1.5, 0],
      [3, 4],
    ]);
    expect(torch.where(x.gt(0), x, 0).toArray()).toEqual([
      [1.5, 0],
      [3, 4],
    ]);
    expect(torch.cat([x, x], 1).shape).toEqual([2, 4]);
    expect(torch.cat([x, x], { dim: 1 }).shape).toEqual([2, 4]);
    expect(torch.stack([x, x]).shape).toEqual([2, 2, 2]);
    expect(torch.softmax(x, { dim: 1 }).sum(1).toArray()).toEqual([1, 1]);
    expect(torch.logSoftmax(x, 1, { dtype: torch.float64 }).dtype).toBe("float64");
    expect(torch.clamp(x, { min: 0 }).toArray()).toEqual([
      [1.5, 0],
      [3, 4],
    ]);
    expect(torch.clamp(x, null, 2).toArray()).toEqual([
      [1.5, -2],
      [2, 2],
    ]);
    expect(torch.div(x, 2, { roundingMode: "floor" }).toArray()).toEqual([
      [0, -1],
      [1, 2],
    ]);
    expect(torch.topk(x, 1, { dim: 1 })[0].toArray()).toEqual([[1.5], [4]]);
    expect(torch.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2), null, { stride: 2 }).toArray()).toEqual([
      [[[4]]],
    ]);
    expect(torch.special.softmax(torch.zeros(2), 0).toArray()).toEqual([0.5, 0.5]);
    expect(torch.linalg.vectorNorm(tensor([3, 4], { dtype: "float32" })).item()).toBe(5);
    expect(torch._C._nn.gelu(torch.zeros(1)).item()).toBe(0);
    const out = torch.empty(0);
    expect(torch.mul(x, 2, { out })).toBe(out);
    expect(torch.full([2], float(1)).dtype).toBe("float32");
  });

  test("of methods do so too, and take sizes one by one", () => {
    const x = torch.arange(6);
    expect(x.view(2, 3).shape).toEqual([2, 3]);
    expect(x.view([3, -1]).permute(1, 0).shape).toEqual([2, 3]);
    expect(x.view(torch.uint8).dtype).toBe("uint8");
    expect(x.reshape(2, 3).transpose(0, 1).contiguous().shape).toEqual([3, 2]);
    expect(x.float().mean().item()).toBe(2.5);
    expect(x.sum({ dim: 0, keepdim: true }).shape).toEqual([1]);
    expect(x.newZeros(2, 3).shape).toEqual([2, 3]);
    expect(x.newZeros(2, 3, { dtype: "float32" }).dtype).toBe("float32");
    expect(x.add_(1).mul_(2)).toBe(x);
    expect(x.view(2, 3).T.shape).toEqual([3, 2]);
    expect(x.split(4).map((it) => it.numel())).toEqual([4, 2]);
    expect(x.split([1, 5], { dim: 0 }).map((it) => it.numel())).toEqual([1, 5]);
    expect(x.unflatten(0, [2, 3]).shape).toEqual([2, 3]);
    expect(x.float().norm().item()).toBeCloseTo(Math.sqrt(4 + 16 + 36 + 64 + 100 + 144), 4);
    expect(x.view(2, 3).float().norm(1, { dim: 1 }).toArray()).toEqual([12, 30]);
    expect([x.equal(x.clone()), x.allclose(x), x.equal(torch.zerosLike(x))]).toEqual([true, true, false]);
    expect(x.get(slice(1, 3)).numel()).toBe(2);
  });

  test("that are wrong are refused by the types, and at run time", () => {
    const x = torch.ones(2);
    // @ts-expect-error -- there is no such option
    expect(thrown(() => torch.relu(x, { inplace: true })).reason).toBe(
      "relu() got an unexpected keyword argument 'inplace'",
    );
    // @ts-expect-error -- a string is no tensor
    expect(thrown(() => torch.add(x, "a")).reason).toBe("add(): argument 'other' (position 2) must be Tensor, not str");
    // @ts-expect-error -- numbers stand for tensors in few functions
    expect(thrown(() => torch.maximum(x, 1)).kind).toBe("SchemaMismatch");
    // @ts-expect-error -- a dimension is missing
    expect(thrown(() => torch.softmax(x)).reason).toContain('missing 1 required positional arguments: "dim"');
    // @ts-expect-error -- there is no such dtype
    expect(thrown(() => x.sum({ dtype: "float33" })).kind).toBe("SchemaMismatch");
    // @ts-expect-error -- there is no such function
    expect(torch.noSuchThing).toBeUndefined();
  });
});

describe("making tensors", () => {
  test("takes dtypes, devices and the wish for gradients", () => {
    expect(torch.zeros(2, 3).shape).toEqual([2, 3]);
    expect(torch.ones([2], { dtype: torch.int8 }).dtype).toBe("int8");
    expect(torch.empty(2, { dtype: "bool", device: "cpu", layout: torch.strided }).dtype).toBe("bool");
    expect(torch.zeros(1, { requiresGrad: true }).requiresGrad).toBe(true);
    expect(torch.tensor([1.5], { requiresGrad: true, dtype: torch.float64 }).toString()).toBe(
      "tensor([1.5000], dtype=torch.float64, requires_grad=True)",
    );
    expect(torch.linspace(0, 1, 3).toArray()).toEqual([0, 0.5, 1]);
    expect(torch.arange(1, 2, 0.5).toArray()).toEqual([1, 1.5]);
    expect(torch.eye(2).toArray()).toEqual([
      [1, 0],
      [0, 1],
    ]);
    expect(torch.fullLike(torch.zeros(2), 7).toArray()).toEqual([7, 7]);
    const x = torch.ones(1);
    expect(torch.asTensor(x)).toBe(x);
    expect(torch.asTensor(x, { dtype: "int64" }).dtype).toBe("int64");
    expect(torch.asTensor([1, 2]).dtype).toBe("int64");
  });

  test("refuses devices that are not there", () => {
    expect(thrown(() => torch.zeros(1, { device: "cuda" })).kind).toBe("NotImplemented");
  });
});

describe("random numbers", () => {
  test("are PyTorch's", () => {
    torch.manualSeed(0);
    expect(String(torch.rand(2))).toBe("tensor([0.4963, 0.7682])");
    torch.manualSeed(0);
    expect(String(torch.randn(3))).toBe("tensor([ 1.5410, -0.2934, -2.1788])");
    expect(torch.initialSeed()).toBe(0n);
    torch.manualSeed(-1);
    expect(torch.initialSeed()).toBe(2n ** 64n - 1n);
  });

  test("go on from a state", () => {
    const state = torch.getRngState();
    const first = torch.rand(4).toArray();
    torch.setRngState(state);
    expect(torch.rand(4).toArray()).toEqual(first);
    expect(torch.seed()).not.toBe(torch.seed());
  });

  test("take no seed that JavaScript cannot hold", () => {
    for (const seed of [1.5, 2 ** 60, Number.NaN, 2n ** 64n]) {
      expect(thrown(() => torch.manualSeed(seed)).kind).toBe("InvalidArgument");
    }
  });
});

const grid = (): Tensor => torch.arange(6).view(2, 3);

describe("functions that PyTorch writes in Python", () => {
  test("split, einsum and the like", () => {
    expect(torch.split(grid(), 2, 1).map((it) => it.shape)).toEqual([
      [2, 2],
      [2, 1],
    ]);
    expect(torch.split(grid(), [1, 2], { dim: 1 }).map((it) => it.shape)).toEqual([
      [2, 1],
      [2, 2],
    ]);
    expect(torch.einsum("ij,kj->ik", grid(), grid()).toArray()).toEqual([
      [5, 14],
      [14, 50],
    ]);
    expect(torch.einsum("ij->j", [grid()]).toArray()).toEqual([3, 5, 7]);
    expect(torch.tensordot(grid(), grid().T, 1).toArray()).toEqual([
      [5, 14],
      [14, 50],
    ]);
    expect(
      torch
        .tensordot(grid(), grid(), [
          [0, 1],
          [0, 1],
        ])
        .item(),
    ).toBe(55);
    expect(torch.meshgrid(torch.arange(2), torch.arange(3), { indexing: "xy" })[0]?.shape).toEqual([3, 2]);
    expect(torch.broadcastTensors(torch.zeros(2, 1), torch.zeros(3)).map((it) => it.shape)).toEqual([
      [2, 3],
      [2, 3],
    ]);
    expect(torch.blockDiag(torch.ones(1, 1), torch.ones(2, 1)).shape).toEqual([3, 2]);
    expect(torch.cartesianProd(torch.arange(2), torch.arange(2)).shape).toEqual([4, 2]);
    expect(torch.chainMatmul(torch.ones(2, 3), torch.ones(3, 1)).toArray()).toEqual([[3], [3]]);
    expect(torch.cdist(tensor([[0, 0.0]]).float(), tensor([[3, 4]]).float()).item()).toBe(5);
    expect(torch.norm(tensor([3, 4]).float(), 2).item()).toBe(5);
    expect(thrown(() => torch.norm(torch.ones(2, 2), "nuc" as "fro")).kind).toBe("NotImplemented");
    expect(thrown(() => torch.tensordot(grid(), grid(), -1)).kind).toBe("InvalidArgument");
  });

  test("unique gives what was asked for", () => {
    const values = tensor([3, 1, 3]);
    expect((torch.unique(values) as Tensor).toArray()).toEqual([1, 3]);
    const [sorted, inverse, counts] = torch.unique(values, { returnInverse: true, returnCounts: true }) as Tensor[];
    expect([sorted, inverse, counts].map((it) => it?.toArray())).toEqual([
      [1, 3],
      [1, 0, 1],
      [1, 2],
    ]);
    expect((torch.unique(grid(), { dim: 0 }) as Tensor).shape).toEqual([2, 3]);
    expect((values.uniqueConsecutive() as Tensor).toArray()).toEqual([3, 1, 3]);
    expect((torch.uniqueConsecutive(values, { returnCounts: true }) as Tensor[])[1]?.toArray()).toEqual([1, 1, 1]);
  });

  test("atleast_nd raises the rank", () => {
    expect(torch.atleast_1d(tensor(1)).shape).toEqual([1]);
    expect(torch.atleast_2d(tensor([1])).shape).toEqual([1, 1]);
    expect(torch.atleast_3d(tensor(1)).shape).toEqual([1, 1, 1]);
    expect(torch.atleast_3d(tensor([1, 2])).shape).toEqual([1, 2, 1]);
    expect(torch.atleast_3d(torch.ones(2, 3)).shape).toEqual([2, 3, 1]);
    expect(torch.atleast_1d(tensor(1), tensor([1])).map((it) => it.shape)).toEqual([[1], [1]]);
  });
});

describe("torch.ops", () => {
  test("has packets and overloads by name", () => {
    const x = torch.ones(2);
    expect((torch.ops.aten.add(x, 1) as Tensor).toArray()).toEqual([2, 2]);
    expect((torch.ops.aten.add.Tensor(x, x, { alpha: 2 }) as Tensor).toArray()).toEqual([3, 3]);
    expect((torch.ops.aten._softmax.default(x, 0, false) as Tensor).toArray()).toEqual([0.5, 0.5]);
    expect(torch.ops.aten.add).toBe(torch.ops.aten.add);
    expect(torch.ops.aten.add.Tensor.target).toBe("torch.ops.aten.add.Tensor");
    const loose = torch.ops.aten as unknown as Record<string, (...args: unknown[]) => unknown>;
    expect(thrown(() => loose["no_such_thing"]?.(x)).kind).toBe("NotImplemented");
  });
});

describe("recording", () => {
  test("names functions and methods as torch.fx does, and the graph runs", () => {
    const weight = torch.full([2], 3);
    const traced = symbolicTrace((x: Tensor) => {
      const a = torch.add(x, 1, { alpha: 2 }).logSoftmax(0);
      const b = torch.special.softmax(torch.split(a, 1)[0] as Tensor, 0);
      return torch.ops.aten.mul.Tensor(weight.add(b), x.sum({ dim: 0, keepdim: true }));
    });
    const text = String(traced.graph);
    for (const target of [
      "torch.add",
      "call_method[target=log_softmax]",
      "torch.functional.split",
      "torch._C._special.special_softmax",
      "torch.ops.aten.mul.Tensor",
      "call_method[target=add]",
      "call_method[target=sum]",
      "keepdim: True",
      "alpha: 2",
    ]) {
      expect(text).toContain(target);
    }
  });
});

const values = (): Tensor => torch.tensor([1.5, 2.5]);
const condition = (): Tensor => torch.tensor([true, false]);

describe("methods of a tensor that is not the operator's first argument", () => {
  test("where takes the condition first", () => {
    expect(values().where(condition(), -1).toArray()).toEqual([1.5, -1]);
    expect(values().where(condition(), torch.zeros(2)).toArray()).toEqual([1.5, 0]);
    expect(values().where(condition(), { other: -1 }).toArray()).toEqual([1.5, -1]);
  });

  test("polygamma takes the order first", () => {
    expect(values().polygamma(1).toArray()).toEqual(torch.polygamma(1, values()).toArray());
  });
});
