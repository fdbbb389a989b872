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

test("a mode that there is not is refused", async () => {
  const program = await open("digits_cnn");
  const error = await refusal(() => program.module({ mode: "eager" as never }));
  expect([error.code, error.message]).toEqual(["FX0702", expect.stringContaining("there is no mode eager")]);
});
