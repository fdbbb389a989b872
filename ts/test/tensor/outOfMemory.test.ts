import { beforeAll, describe, expect, it } from "vitest";
import { init, tensor, type Tensor, torch, writeSafetensors } from "../../src/index.ts";
import { thrown } from "../thrown.ts";

beforeAll(async () => {
  await init();
});

/** Takes a quarter of the engine's memory. */
const large = (): Tensor => torch.zeros([2 ** 28]);

/** What results have room for beside something large, and not what it takes to compute them. */
function beside(_: Tensor, call: (x: Tensor) => unknown): unknown {
  return call(torch.zeros([2 ** 27]));
}

describe("memory that is not there is an error, and the engine goes on", () => {
  it.each<[string, () => unknown]>([
    ["sort", () => beside(large(), (x) => torch.sort(x, 0))],
    ["argsort", () => beside(large(), (x) => torch.argsort(x, 0))],
    ["topk", () => torch.topk(large(), 2)],
    ["kthvalue", () => torch.kthvalue(large(), 2)],
    ["cumsum", () => torch.cumsum(large(), 0)],
    ["logcumsumexp", () => torch.logcumsumexp(large(), 0)],
    ["median", () => torch.median(large())],
    ["median of a dimension", () => torch.median(large(), 0)],
    ["mode", () => torch.mode(large())],
    ["unique", () => torch.unique(large())],
    ["hann_window", () => torch.hannWindow(2 ** 28 + 2 ** 27)],
    ["writeSafetensors", () => writeSafetensors(Object.fromEntries(["a", "b", "c"].map((name) => [name, large()])))],
  ])("%s", (_, call) => {
    expect(thrown(call).code).toBe("FX0901");
    expect(torch.add(tensor([1]), 1).tolist()).toEqual([2]);
  });
});
