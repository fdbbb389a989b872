import { beforeAll, describe, expect, test } from "vitest";
import { init, symbolicTrace, type Tensor, tensor, torch } from "../../src/index.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

/** What torch.fx records of the same calls. */
const RECORDED: readonly (readonly [call: (x: Tensor) => unknown, node: string])[] = [
  [(x) => torch.split(x, 2), "torch.functional.split](args = (%x, 2), kwargs = {dim: 0})"],
  [(x) => torch.split(x, 2, 1), "torch.functional.split](args = (%x, 2), kwargs = {dim: 1})"],
  [
    (x) => torch.norm(x),
    "torch.functional.norm](args = (%x,), kwargs = {p: fro, dim: None, keepdim: False, out: None, dtype: None})",
  ],
  [
    (x) => torch.norm(x, 2, { dim: 1 }),
    "torch.functional.norm](args = (%x,), kwargs = {p: 2, dim: 1, keepdim: False, out: None, dtype: None})",
  ],
  [
    (x) => torch.unique(x, { dim: 0 }),
    "torch.functional.unique](args = (%x,), kwargs = {sorted: True, return_inverse: False, return_counts: False, dim: 0})",
  ],
  [
    (x) => torch.uniqueConsecutive(x),
    "torch.functional.unique_consecutive](args = (%x,), kwargs = {return_inverse: False, return_counts: False, dim: None})",
  ],
  [(x) => torch.einsum("ij->i", x), "torch.functional.einsum](args = (ij->i, %x), kwargs = {})"],
  [(x) => torch.meshgrid(x, x), "torch.functional.meshgrid](args = (%x, %x), kwargs = {indexing: None})"],
  [(x) => torch.broadcastTensors(x, x), "torch.functional.broadcast_tensors](args = (%x, %x), kwargs = {})"],
  [(x) => torch.tensordot(x, x, 1), "torch.functional.tensordot](args = (%x, %x), kwargs = {dims: 1, out: None})"],
  [
    (x) => torch.cdist(x, x),
    "torch.functional.cdist](args = (%x, %x), kwargs = {p: 2.0, compute_mode: use_mm_for_euclid_dist_if_necessary})",
  ],
  [(x) => torch.lu(x), "torch.functional.lu](args = (%x,), kwargs = {pivot: True, get_infos: False, out: None})"],
  [
    (x) => torch.stft(x, 4),
    "torch.functional.stft](args = (%x, 4), kwargs = {hop_length: None, win_length: None, window: None, center: True, " +
      "pad_mode: reflect, normalized: False, onesided: None, return_complex: None, align_to_window: None})",
  ],
  [(x) => torch.resultType(x, 1), "torch.result_type](args = (%x, 1), kwargs = {})"],
  [(x) => torch.istft(x, 4), "torch.istft](args = (%x, 4), kwargs = {})"],
];

describe("functions that PyTorch writes in Python", () => {
  test.each(RECORDED)("%s is recorded as torch.fx records it", (call, node) => {
    const [, recorded] = [...symbolicTrace(call).graph.nodes];
    expect(recorded?.formatNode()).toContain(`call_function[target=${node}`);
  });

  test("run as they are recorded", () => {
    const x = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const gm = symbolicTrace(
      (input: Tensor) => torch.split(torch.cdist(input.float(), input.float()), 1, { dim: 1 })[1],
    );
    expect((gm.forward(x) as Tensor).toArray()).toEqual([[Math.fround(Math.sqrt(27))], [0]]);
  });

  test("factorise", () => {
    const A = tensor([
      [1, 2],
      [3, 4.5],
    ]);
    const [LU, pivots] = torch.lu(A) as [Tensor, Tensor];
    expect(LU.toArray()).toEqual([
      [3, 4.5],
      [Math.fround(1 / 3), 0.5],
    ]);
    expect(pivots.toArray()).toEqual([2, 2]);
    expect(A.lu({ getInfos: true })[2]?.toArray()).toBe(0);
    const out = [torch.empty(0), torch.empty(0, { dtype: "int32" })];
    expect(torch.lu(A, { out })).toEqual(out);
    expect(out[1]?.toArray()).toEqual([2, 2]);
    expect(thrown(() => torch.lu(A, { out: [A] })).message).toContain("expected tuple of 2 elements but got 1");
  });

  test("transform pieces of signals", () => {
    const x = tensor([1, 2, 3, 4, 5.5, 6], { dtype: "float64" });
    const all = torch.stft(x, 4, { hopLength: 2, center: false, returnComplex: true, window: torch.ones(4).double() });
    expect(all.shape).toEqual([3, 2]);
    expect(torch.viewAsReal(all).select(0, 0).toArray()).toEqual([
      [10, 0],
      [18.5, 0],
    ]);
    expect(x.stft(4, { returnComplex: true }).shape).toEqual([3, 7]);
    expect(thrown(() => torch.stft(x, 4)).message).toContain("return_complex");
  });
});

describe("dtypes of results", () => {
  test("are promoted as PyTorch promotes them", () => {
    expect(torch.promoteTypes(torch.int32, torch.float16)).toBe("float16");
    expect(torch.promoteTypes("uint8", "int8")).toBe("int16");
    expect(torch.promoteTypes("float16", "bfloat16")).toBe("float32");
    expect(torch.resultType(tensor([1, 2], { dtype: "int32" }), 1.5)).toBe("float32");
    expect(torch.resultType(2, tensor([1, 2], { dtype: "int8" }))).toBe("int8");
    expect(torch.resultType(tensor([1], { dtype: "float32" }), tensor(1, { dtype: "float64" }))).toBe("float32");
    expect(torch.canCast(torch.float64, torch.float16)).toBe(true);
    expect(torch.canCast("float32", "int64")).toBe(false);
  });
});
