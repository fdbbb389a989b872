/** Programs that run by plans: what they give is what the interpreter gives. */
import { expect, test } from "vitest";
import { init, type Tensor, torch } from "../../src/index.ts";
import { open, refusal, tensorsOf } from "./fixtures.ts";

await init();

test("a plan gives what the interpreter gives, whatever sizes come in turn", async () => {
  const program = await open("digits_cnn");
  using interpreted = program.module({ mode: "interpret" });
  using planned = program.module({ mode: "plan", precision: "strict" });
  const images = tensorsOf("digits_cnn/inputs.safetensors").get("in0") as Tensor;
  for (const n of [1, 3, 1, 2, 3, 1]) {
    using image = torch.narrow(images, 0, 0, n) as Tensor;
    expect((planned(image) as Tensor).tolist()).toEqual((interpreted(image) as Tensor).tolist());
  }
});

test("results of earlier runs stay, and state goes on", async () => {
  const program = await open("conv_bn_relu_train");
  using interpreted = program.module({ mode: "interpret" });
  using planned = program.module({ mode: "plan", precision: "strict" });
  const [input] = [...tensorsOf("conv_bn_relu_train/inputs.safetensors").values()] as [Tensor];
  const results = [1, 2, 3].map(() => [planned(input), interpreted(input)] as [Tensor, Tensor]);
  for (const [given, expected] of results) expect(given.tolist()).toEqual(expected.tolist());
});

test.each(["cond_simple", "while_loop_hop", "unbacked_item"])("the data decides what %s does", async (name) => {
  const program = await open(name);
  using planned = program.module({ mode: "plan", precision: "strict" });
  using interpreted = program.module({ mode: "interpret" });
  const recorded = tensorsOf(`${name}/inputs.safetensors`);
  const inputs = [...recorded.keys()].toSorted().map((key) => recorded.get(key) as Tensor);
  for (let call = 0; call < 2; call++) expect(String(planned(...inputs))).toBe(String(interpreted(...inputs)));
});

test("a plan that is watched tells each step, stops, and runs again", async () => {
  const program = await open("digits_cnn");
  using planned = program.module({ mode: "plan", precision: "strict" });
  const image = torch.zeros(1, 1, 8, 8);
  const told: [number, number][] = [];
  planned.runWith([image], { progress: (done, all) => told.push([done, all]) });
  const all = told[0]?.[1] ?? 0;
  expect(all).toBeGreaterThan(5);
  expect(told).toEqual(Array.from({ length: all }, (_, at) => [at, all]));
  const controller = new AbortController();
  const progress = (done: number): void => {
    if (done === 3) controller.abort(new Error("enough"));
  };
  expect(() => planned.runWith([image], { signal: controller.signal, progress })).toThrow("enough");
  expect((planned(image) as Tensor).shape).toEqual([1, 10]);
});

test("results are written to tensors that there are", async () => {
  const program = await open("digits_cnn");
  using planned = program.module();
  const images = tensorsOf("digits_cnn/inputs.safetensors").get("in0") as Tensor;
  const logits = torch.empty(images.shape[0] as number, 10);
  expect(planned.runInto([images], [logits])).toBe(logits);
  expect(logits.tolist()).toEqual((planned(images) as Tensor).tolist());
  expect(planned.runFlatInto([images], [logits])).toEqual([logits]);
  const error = await refusal(() => planned.runInto([images], [torch.empty(1)]));
  expect([error.kind, error.reason]).toEqual(["InvalidArgument", expect.stringContaining("output 0")]);
});

test("a mode that there is not is refused", async () => {
  const program = await open("digits_cnn");
  const error = await refusal(() => program.module({ mode: "eager" as never }));
  expect([error.code, error.message]).toEqual(["FX0702", expect.stringContaining("there is no mode eager")]);
});

test("a plan tells its steps, and what they take", async () => {
  const program = await open("digits_cnn");
  using model = program.module();
  const image = torch.zeros(1, 1, 8, 8);
  const explained = model.explain([image]);
  expect(explained.steps.map((it) => it.step)).toEqual([
    "convolution",
    "pool",
    "convolution",
    "pool",
    "copy",
    "product",
    "product",
  ]);
  expect(explained.steps[0]).toMatchObject({ node: "relu", result: "f32[1, 8, 8, 12]", milliseconds: null });
  expect(String(explained)).toContain("7 steps");
  const profile = model.profile([image], { times: 3 });
  expect(profile.steps.map((it) => it.step)).toEqual(explained.steps.map((it) => it.step));
  for (const { milliseconds } of profile.steps) expect(milliseconds).toBeGreaterThanOrEqual(0);
  expect(JSON.parse(profile.chromeTrace).traceEvents).toHaveLength(7);
});

test("what is not planned is not explained, and a precision that there is not is refused", async () => {
  const program = await open("digits_cnn");
  using interpreted = program.module({ mode: "interpret" });
  const error = await refusal(() => program.module({ precision: "half" as never }));
  expect([error.code, error.message]).toEqual(["FX0702", expect.stringContaining("there is no precision half")]);
  const image = torch.zeros(1, 1, 8, 8);
  expect(interpreted.explain([image]).steps).toHaveLength(7);
  const untimed = await refusal(() => interpreted.profile([image]));
  expect([untimed.code, untimed.message]).toEqual(["FX0702", expect.stringContaining("has no steps to time")]);
});

test("without options a program runs by a plan whose last bits may differ", async () => {
  const program = await open("digits_cnn");
  using fast = program.module();
  using strict = program.module({ precision: "strict" });
  const images = tensorsOf("digits_cnn/inputs.safetensors").get("in0") as Tensor;
  const [a, b] = [fast(images) as Tensor, strict(images) as Tensor];
  expect(torch.allclose(a, b, 1e-5, 1e-5)).toBe(true);
});
