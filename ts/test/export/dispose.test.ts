import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { type ExportedProgram, exportProgram, init, load, Module, nn, save, type Tensor, torch } from "tracefx";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

class Net extends Module {
  readonly linear = new nn.Linear(3, 3);

  override forward(x: Tensor): Tensor {
    return this.linear.forward(x).relu();
  }
}

const x = (): Tensor => torch.ones([2, 3]);
const open = (): Promise<ExportedProgram> =>
  load(readFileSync(new URL("../../../tests/fixtures/programs/digits_cnn/model.pt2", import.meta.url)));

test("a program that was disposed of says so, however it is used, and as often as it is", async () => {
  const program = await open();
  const weights = [...program.parameters()];
  program.dispose();
  program.dispose();
  program[Symbol.dispose]();
  for (const use of [
    () => program.module(),
    () => program.graph,
    () => program.stateDict,
    () => program.runDecompositions(),
    () => save(program),
    () => `${program}`,
    () => program.clone(),
  ]) {
    expect(thrown(use)).toMatchObject({ kind: "Disposed", reason: "the program was disposed" });
  }
  expect(thrown(() => weights[0]?.toArray()).kind).toBe("Disposed");
});

test("`using` disposes of a program; its modules and programs made of it go on", async () => {
  let model: ReturnType<ExportedProgram["module"]>;
  let core: ExportedProgram;
  {
    using program = await open();
    model = program.module();
    core = program.runDecompositions();
  }
  const image = torch.zeros([1, 1, 8, 8]);
  expect(model(image)).toEqual(core.module()(image));
});

test("the example inputs that a program brought with it are given back, and those that it was given stay", async () => {
  const program = await open();
  const brought = program.exampleInputs?.[0][0] as Tensor;
  const given = torch.zeros([1, 1, 8, 8]);
  program.exampleInputs = [[given], {}];
  program.dispose();
  expect(thrown(() => brought.toArray()).kind).toBe("Disposed");
  expect(given.shape).toEqual([1, 1, 8, 8]);
  expect(given.toArray()).toHaveLength(1);
});

test("the tensors of the module that was exported stay", () => {
  const net = new Net();
  const program = exportProgram(net, [x()]);
  const expected = net.forward(x());
  program.dispose();
  expect(net.forward(x())).toEqual(expected);
});

test("a module that is disposed of while it runs ends the run, and is gone then", () => {
  const model = exportProgram(new Net(), [x()]).module();
  const expected = model(x());
  const progress = (): void => model.dispose();
  expect(model.runWith([x()], { progress })).toEqual(expected);
  expect(thrown(() => model(x())).kind).toBe("Disposed");
  const again = exportProgram(new Net(), [x()]).module();
  const failing = (): void => {
    again.dispose();
    throw new Error("enough");
  };
  expect(() => again.runWith([x()], { progress: failing })).toThrow("enough");
  expect(thrown(() => again(x())).kind).toBe("Disposed");
});

test("a program is disposed of in the progress of its module", () => {
  const program = exportProgram(new Net(), [x()]).runDecompositions();
  const model = program.module();
  const expected = model(x());
  expect(model.runWith([x()], { progress: () => program.dispose() })).toEqual(expected);
});
