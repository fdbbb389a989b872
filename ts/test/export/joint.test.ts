/** Training graphs, as TypeScript derives and runs them. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { load, readSafetensors, type Tensor, TrainingModule } from "../../src/index.ts";
import { largestDifference, refusal } from "./fixtures.ts";

const FOLDER = new URL("../../../tests/fixtures/joint/", import.meta.url);
const read = (name: string): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(new URL(name, FOLDER)));
const metaOf = (name: string): { joint_loss_index: number; refused?: string } =>
  JSON.parse(new TextDecoder().decode(read(`${name}/meta.json`)));

const names = readdirSync(FOLDER, { withFileTypes: true }).filter((it) => it.isDirectory() && it.name !== "digits");
const refused = names.map((it) => it.name).filter((it) => it.startsWith("refused_"));
const derived = names.map((it) => it.name).filter((it) => !it.startsWith("refused_"));

describe("exportForwardBackward", () => {
  test.each(derived)("%s", async (name) => {
    const program = await load(read(`${name}/model.pt2`));
    const joint = program.exportForwardBackward({ jointLossIndex: metaOf(name).joint_loss_index });
    const { tensors: numbers } = readSafetensors(read(`${name}/numbers.safetensors`));
    const keys = (prefix: string): string[] => [...numbers.keys()].filter((key) => key.startsWith(prefix)).toSorted();
    using model = new TrainingModule(joint);
    const { loss, outputs, inputGradients } = model.forwardBackward(
      ...keys("in")
        .filter((it) => /^in\d/.test(it))
        .map((it) => numbers.get(it)),
    );
    const close = (got: Tensor | null | undefined, key: string): void => {
      const want = numbers.get(key) as Tensor;
      const scale = want.numel() === 0 ? 0 : Math.max(...want.toFloat32Array().map(Math.abs));
      expect(largestDifference(got as Tensor, want), key).toBeLessThan(2e-5 * scale + 1e-6);
    };
    const lossAt = keys("out").findIndex(
      (key) =>
        numbers.get(key)?.numel() === 1 &&
        largestDifference(loss, numbers.get(key) as Tensor) < 1e-4 * (1 + Math.abs(loss.item() as number)),
    );
    expect(lossAt).toBeGreaterThanOrEqual(0);
    expect(outputs.length).toBe(keys("out").length - 1);
    const parameters = new Map(model.namedParameters());
    for (const key of keys("grad.")) {
      const target = key.slice("grad.".length);
      close(parameters.get(target)?.grad ?? inputGradients.get(target), key);
    }
    expect(parameters.size + inputGradients.size).toBe(keys("grad.").length);
    const state = model.stateDict();
    for (const key of keys("buffer.")) close(state.get(key.slice("buffer.".length)), key);
  });

  test.each(refused)("%s", async (name) => {
    const program = await load(read(`${name}/model.pt2`));
    const { joint_loss_index: jointLossIndex, refused: says } = metaOf(name);
    const problem = await refusal(() => program.exportForwardBackward({ jointLossIndex }));
    expect(problem.message).toContain(says?.split("\n")[0]);
  });

  test("adds to the gradients that are there, and a step changes what the next one reads", async () => {
    const program = await load(read("mlp/model.pt2"));
    expect(() => new TrainingModule(program)).toThrow("no loss");
    const { tensors: numbers } = readSafetensors(read("mlp/numbers.safetensors"));
    const [x, t] = [numbers.get("in0"), numbers.get("in1")];
    using model = new TrainingModule(program.exportForwardBackward());
    const first = model.forwardBackward(x, t).loss.item() as number;
    model.forwardBackward(x, t);
    for (const [name, parameter] of model.namedParameters()) {
      const want = (numbers.get(`grad.${name}`) as Tensor).mul(2);
      expect(largestDifference(parameter.grad as Tensor, want)).toBeLessThan(1e-5);
      parameter.sub_(parameter.grad as Tensor);
    }
    expect(model.forwardBackward(x, t).loss.item()).toBeLessThan(first);
    // The program keeps its own weights.
    const again = new TrainingModule(program.exportForwardBackward()).forwardBackward(x, t).loss.item();
    expect(again).toBeCloseTo(first, 6);
  });

  test("refuses places that are none", async () => {
    const program = await load(read("mlp/model.pt2"));
    const problem = await refusal(() => program.exportForwardBackward({ jointLossIndex: -1 }));
    expect(problem.name).toContain("Error");
  });
});
