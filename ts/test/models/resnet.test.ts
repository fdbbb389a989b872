/** ResNet-18 in TypeScript against PyTorch's, with the weights that PyTorch draws after the same seed. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import type { ResNet } from "../../examples/models/resnet.ts";
import { resnet18 } from "../../examples/models/resnet.ts";
import { init } from "../../src/engine/engine.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { torch } from "../../src/torch.ts";
import { symbolicTrace } from "../../src/trace/tracer.ts";

interface Recorded {
  readonly logits: number[];
  readonly weights: Record<string, [first: number[], sum: number]>;
}

const FIXTURES = new URL("../../../tests/fixtures/models/", import.meta.url);
const recorded = JSON.parse(readFileSync(new URL("resnet18.json", FIXTURES), "utf8")) as Recorded;

let model: ResNet;
let image: Tensor;

beforeAll(async () => {
  await init();
  torch.manualSeed(0);
  model = resnet18().eval();
  image = torch.sin(torch.arange(3 * 224 * 224, { dtype: "float32" }).mul(0.01)).reshape([1, 3, 224, 224]);
});

/** The largest difference of the logits, as a part of the largest logit. */
function error(logits: Tensor): number {
  const values = logits.toFloat32Array();
  const scale = Math.max(...recorded.logits.map(Math.abs));
  return Math.max(...recorded.logits.map((it, at) => Math.abs(it - (values[at] as number)))) / scale;
}

describe("ResNet-18", () => {
  test("draws PyTorch's weights", () => {
    const state = model.stateDict();
    expect([...state.keys()]).toEqual(Object.keys(recorded.weights));
    for (const [name, [first]] of Object.entries(recorded.weights)) {
      const values = (state.get(name) as Tensor).flatten().toFloat32Array();
      first.forEach((it, at) => expect(values[at], name).toBeCloseTo(it, 6));
    }
  });

  test("gives PyTorch's logits", () => {
    expect(error(model.forward(image))).toBeLessThan(1e-4);
  });

  test("has PyTorch's graph, which gives them too", () => {
    const gm = symbolicTrace(model);
    expect(`${gm.graph}\n`).toBe(readFileSync(new URL("resnet18.txt", FIXTURES), "utf8"));
    expect(error(gm.forward(image) as Tensor)).toBeLessThan(1e-4);
  });
});
