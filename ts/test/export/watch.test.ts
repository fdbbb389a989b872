/** Runs that are watched, and stopped. */
import { expect, test } from "vitest";
import { init, Interpreter, symbolicTrace, type Tensor, tensor, torch } from "../../src/index.ts";
import { open } from "./fixtures.ts";

await init();

test("a run tells how far it is, and a signal stops it before the next step", async () => {
  const program = await open("digits_cnn");
  using model = program.module();
  const image = torch.zeros(1, 1, 8, 8);
  const told: [number, number][] = [];
  const output = model.runWith([image], { progress: (done, all) => told.push([done, all]) }) as Tensor;
  expect(output.tolist()).toEqual((model(image) as Tensor).tolist());
  const all = told[0]?.[1] ?? 0;
  expect(all).toBeGreaterThan(5);
  expect(told).toEqual(Array.from({ length: all }, (_, at) => [at, all]));

  const controller = new AbortController();
  let last = 0;
  const progress = (done: number): void => {
    last = done;
    if (done === 5) controller.abort(new Error("enough"));
  };
  expect(() => model.runWith([image], { signal: controller.signal, progress })).toThrow("enough");
  expect(last).toBe(5);
  expect(() => model.runWith([image], { signal: AbortSignal.abort(new Error("before")) })).toThrow("before");
  // What progress throws arrives as it is, and the module goes on.
  const wrong = new TypeError("of the user");
  expect(() =>
    model.runWith([image], {
      progress: () => {
        throw wrong;
      },
    }),
  ).toThrow(wrong);
  expect((model(image) as Tensor).shape).toEqual([1, 10]);
});

test("an interpreter tells and stops too", () => {
  const gm = symbolicTrace((x: Tensor) => x.relu().neg().exp());
  const told: number[] = [];
  const interpreter = new Interpreter(gm);
  interpreter.runWith([tensor([1])], { progress: (done, all) => told.push(done, all) });
  expect(told).toEqual([0, 5, 1, 5, 2, 5, 3, 5, 4, 5]);
  const controller = new AbortController();
  const progress = (done: number): void => {
    if (done === 2) controller.abort(new Error("enough"));
  };
  expect(() => interpreter.runWith([tensor([1])], { signal: controller.signal, progress })).toThrow("enough");
  expect(interpreter.env.size).toBeLessThan(4);
});
