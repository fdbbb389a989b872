/** Runs of programs node by node, and programs beside each other. */
import { beforeAll, describe, expect, it } from "vitest";
import {
  device,
  exportProgram,
  float,
  Graph,
  GraphModule,
  init,
  Module,
  nn,
  Tensor,
  tensor,
  torch,
  writeSafetensors,
} from "tracefx";
import { LayoutArg } from "../../src/base/values.ts";
import { SymExpr, TensorMeta } from "../../src/graph/val.ts";
import { compareModels, firstParting } from "../../src/explorer/diff.ts";
import { heatOf, measuredOf } from "../../src/explorer/measured.ts";
import { GraphModel, type Item } from "../../src/explorer/model.ts";
import { inputsOf, randomInputs } from "../../src/explorer/inputs.ts";
import { type NodeRun, profileProgram, type ProgramRun, runProgram, runPrograms } from "../../src/explorer/run.ts";
import { statisticsOf, statisticsOfElements } from "../../src/explorer/statistics.ts";
import { open, refusal } from "../export/fixtures.ts";

beforeAll(async () => {
  await init();
});

class Net extends Module {
  readonly linear = new nn.Linear(3, 3);
  readonly #last: (x: Tensor) => Tensor;

  constructor(last: (x: Tensor) => Tensor) {
    super();
    this.linear.weight = new nn.Parameter(torch.ones([3, 3]));
    this.linear.bias = new nn.Parameter(torch.zeros([3]));
    this.#last = last;
  }

  override forward(x: Tensor): Tensor {
    return this.#last(this.linear.forward(x).relu());
  }
}

class Scaled extends Module {
  override forward(x: Tensor, factor: number, _bias: Tensor | null): Tensor {
    return x.mul(factor);
  }
}

const exported = (last: (x: Tensor) => Tensor) =>
  exportProgram(new Net(last), [tensor([[1, 2, 3]], { dtype: "float32" })]);

const META = {
  dtype: "float32",
  storageOffset: 0,
  device: device("cpu"),
  layout: new LayoutArg("strided"),
  requiresGrad: false,
} as const;

/** A `.safetensors` file with one tensor. */
const file = (name: string) =>
  writeSafetensors(new Map([[name, tensor([[1, 1, 1]], { dtype: "float32" })]])).slice().buffer;

/** Two networks that end differently, and how they differ. */
const compared = (a: (x: Tensor) => Tensor, b: (x: Tensor) => Tensor) => {
  const [before, after] = [new GraphModel(exported(a)), new GraphModel(exported(b))];
  return { before, after, diff: compareModels(before, after) };
};

/** The differences by the names of nodes. */
const told = (model: GraphModel, differences: ReadonlyMap<number, string>) =>
  Object.fromEntries([...differences].map(([item, difference]) => [(model.items[item] as Item).id, difference]));

describe("statistics", () => {
  it("are those of the finite elements, and count the others", () => {
    const found = statisticsOfElements(Float32Array.of(0, 1, 2, 5, Number.NaN, Number.POSITIVE_INFINITY));
    expect(found).toMatchObject({ count: 6, min: 0, max: 5, mean: 2, nans: 1, infinities: 1, zeros: 1 });
    expect(found.deviation).toBeCloseTo(Math.sqrt(3.5));
    expect(found.histogram.reduce((a, b) => a + b, 0)).toBe(4);
    expect([found.histogram[0], found.histogram.at(-1)]).toEqual([1, 1]);
  });

  it("of nothing and of equal elements have no spread", () => {
    expect(statisticsOfElements(new Float32Array()).count).toBe(0);
    expect(statisticsOfElements(Float32Array.of(3, 3))).toMatchObject({ min: 3, max: 3, deviation: 0 });
  });
});

describe("a run", () => {
  it("counts elements in the precision that they have", () => {
    const program = exported((x) => {
      const wide = x.to("float64").mul(float(1e300));
      return torch.cat([wide.neg(), wide]).add(0);
    });
    const { statistics } = runProgram(program).get("add") as NodeRun;
    expect(statistics).toMatchObject({ infinities: 0, min: -6e300, max: 6e300, mean: 0 });
    expect((statistics?.deviation as number) / 1e300).toBeCloseTo(6);
    const ints = statisticsOf(tensor([2 ** 24 + 1, 2 ** 40 + 1], { dtype: "int64" }));
    expect(ints).toMatchObject({ min: 2 ** 24 + 1, max: 2 ** 40 + 1 });
  });

  it("counts the elements of a list at the node that gives it", () => {
    const program = exported((x) => x.sub(7).sqrt().split(2, 1)[0] as Tensor);
    const run = runProgram(program);
    expect(run.get("split")).toMatchObject({ value: "2 values", statistics: { count: 3, nans: 3 } });
    expect(run.get("split")?.sample.length).toBe(3);
  });

  it("tells of each node the time, the value and the statistics", () => {
    const program = exported((x) => x.mul(2));
    const run = runProgram(program);
    expect([...run.keys()]).toEqual(expect.arrayContaining(["x", "linear", "relu", "mul", "output"]));
    expect(run.get("mul")).toMatchObject({ value: "f32[1, 3]", statistics: { min: 12, max: 12, count: 3 } });
    const measured = measuredOf(new GraphModel(program), run);
    expect(measured.milliseconds).toBeGreaterThan(0);
    const model = new GraphModel(program);
    const heat = heatOf(model, measured, "nodes");
    expect([...heat.values()].every((share) => share >= 0 && share <= 1)).toBe(true);
  });

  it("is compiled to steps, whose nodes are hot by time, bytes or FLOPs", async () => {
    const program = await open("digits_cnn");
    const model = new GraphModel(program);
    const inputs = randomInputs(program);
    const measured = measuredOf(model, runProgram(program, inputs));
    const plan = profileProgram(program, inputs);
    for (const heat of ["plan", "bytes", "flops"] as const) {
      const shares = [...heatOf(model, measured, heat, plan)].map(([, share]) => share ** 2);
      expect(shares.reduce((a, b) => a + b, 0)).toBeCloseTo(1);
    }
    expect(
      heatOf(model, measured, "flops", plan).get(model.items.findIndex((item) => item.id === "output")),
    ).toBeUndefined();
    expect(profileProgram(program).steps.length).toBe(plan.steps.length);
  });

  it("finds the first node that gives a NaN, and the first infinity", () => {
    const program = exported((x) => x.sub(6).log().mul(0).add(1));
    const model = new GraphModel(program);
    const { firstInfinite, firstNan } = measuredOf(model, runProgram(program));
    expect((model.items[firstInfinite as number] as Item).id).toBe("log");
    expect((model.items[firstNan as number] as Item).id).toBe("mul");
  });

  it("leaves the state of the program as it is", async () => {
    const program = await open("conv_bn_relu_train");
    const before = [...program.buffers()].map((buffer) => buffer.toArray());
    runProgram(program, randomInputs(program));
    expect([...program.buffers()].map((buffer) => buffer.toArray())).toEqual(before);
  });

  it.each(["input_mutation__core", "view_alias_mutation"])(
    "and the profile of %s leave inputs as they are",
    async (name) => {
      const program = await open(name);
      const given = randomInputs(program);
      const examples = program.exampleInputs?.[0] ?? [];
      const tensors = [...given, ...examples.flat()].filter((value) => value instanceof Tensor);
      expect(tensors.length).toBeGreaterThan(1);
      const before = tensors.map((one) => one.toArray());
      runProgram(program, given);
      profileProgram(program, given);
      runProgram(program);
      profileProgram(program);
      expect(tensors.map((one) => one.toArray())).toEqual(before);
    },
  );

  it("takes random inputs of the sizes that the program has, the same for a seed", async () => {
    const program = await open("digits_cnn");
    const [image] = randomInputs(program, 1) as [Tensor];
    expect(image.shape).toEqual([4, 1, 8, 8]);
    expect((randomInputs(program, 1)[0] as Tensor).toArray()).toEqual(image.toArray());
    expect((randomInputs(program, 2)[0] as Tensor).toArray()).not.toEqual(image.toArray());
    expect(runProgram(program, [image]).size).toBeGreaterThan(10);
  });

  it("takes inputs of a file by name or by number, and refuses one without them", async () => {
    const program = exported((x) => x);
    for (const name of ["x", "in0"])
      expect((inputsOf(program, file(name))[0] as Tensor).toArray()).toEqual([[1, 1, 1]]);
    const withNumber = exportProgram(new Scaled(), [tensor([[1, 2, 3]], { dtype: "float32" }), 2, null]);
    const given = inputsOf(withNumber, file("in0"));
    expect(given.slice(1)).toEqual([2, null]);
    expect((await refusal(() => inputsOf(program, file("y")))).message).toContain("it has y");
  });
});

/** The largest elements of the input. */
const maxima = (runs: readonly ProgramRun[]) => runs.map((run) => run.get("x")?.statistics?.max);

/** A graph of two inputs of these sizes, and the exponential of one of them. */
const modelOf = (names: readonly string[], last = "x") => {
  const graph = new Graph();
  const [x, y] = ["x", "y"].map((name) => graph.placeholder(name));
  for (const [at, node] of [x, y].entries()) {
    const size = new SymExpr(`Symbol('${names[at]}', positive=True, integer=True)`);
    node?.meta.set("val", new TensorMeta({ ...META, sizes: [size], strides: [1] }));
  }
  const sum = graph.callFunction("torch.ops.aten.exp.default", [(last === "x" ? x : y) as never]);
  sum.meta.set("val", (last === "x" ? x : y)?.meta.get("val"));
  graph.output(sum);
  return new GraphModel(new GraphModule({}, graph));
};

describe("a comparison", () => {
  it("runs both programs on the inputs of the first, or else of the second", () => {
    const one = exported((x) => x);
    const other = exportProgram(new Net((x) => x), [tensor([[5, 5, 5]], { dtype: "float32" })]);
    expect(maxima(runPrograms(one, other))).toEqual([3, 3]);
    expect(maxima(runPrograms(other, one))).toEqual([5, 5]);
    one.exampleInputs = null;
    expect(maxima(runPrograms(one, other))).toEqual([5, 5]);
    expect(maxima(runPrograms(one, other, randomInputs(one)))[0]).toBeLessThan(3);
  });

  it("of a program with itself finds nothing", () => {
    const { before, after, diff } = compared(
      (x) => x.mul(2),
      (x) => x.mul(2),
    );
    expect([told(before, diff.before), told(after, diff.after)]).toEqual([{}, {}]);
  });

  it("tells what is added, removed and changed", () => {
    const { before, after, diff } = compared(
      (x) => x.mul(2).exp(),
      (x) => x.mul(3).tanh(),
    );
    expect(told(before, diff.before)).toEqual({ mul: "changed", exp: "removed", output: "changed" });
    expect(told(after, diff.after)).toEqual({ mul: "changed", tanh: "added", output: "changed" });
  });

  it.each<[string, (x: Tensor) => Tensor, (x: Tensor) => Tensor, string]>([
    ["the order of an input and a constant", (x) => torch.sub(x, 2), (x) => torch.sub(2, x), "sub"],
    ["the names of arguments", (x) => x.clamp({ min: 2 }), (x) => x.clamp({ max: 2 }), "clamp"],
    ["which input is given twice", (x) => torch.cat([x, x.exp(), x]), (x) => torch.cat([x, x.exp(), x.exp()]), "cat"],
  ])("tells %s", (_, a, b, changed) => {
    const { before, diff } = compared(a, b);
    expect(told(before, diff.before)[changed]).toBe("changed");
  });

  it("takes for no difference what symbols are called, but which of them it is", () => {
    const [before, renamed, joined] = [modelOf(["s0", "s1"]), modelOf(["s77", "s12"]), modelOf(["s5", "s5"])];
    expect(compareModels(before, renamed).before.size).toBe(0);
    expect(told(before, compareModels(before, joined).before)).toEqual({ y: "changed" });
    expect(told(before, compareModels(before, modelOf(["s0", "s1"], "y")).before)).toMatchObject({
      exp_default: "changed",
    });
  });

  it("matches equal nodes before those that have changed", () => {
    const { before, after, diff } = compared(
      (x) => x.mul(2).add(x.mul(3)),
      (x) => x.mul(3).add(x),
    );
    const names = [...diff.matches].map(([a, b]) => [before.items[a]?.id, after.items[b]?.id]);
    expect(names).toContainEqual(["mul_1", "mul"]);
    expect(told(before, diff.before)).toEqual({ mul: "removed", add: "changed" });
  });

  it("finds the first node whose values part", () => {
    const { before, after, diff } = compared(
      (x) => x.mul(2).exp(),
      (x) => x.mul(3).exp(),
    );
    const runs = [before, after].map(({ source }) => runProgram(source as ReturnType<typeof exported>));
    const parting = firstParting(before, runs[0] as never, after, runs[1] as never, diff, 1e-3);
    expect((before.items[parting?.item as number] as Item).id).toBe("mul");
    expect(parting?.distance).toBeCloseTo(1 / 3);
    expect(
      firstParting(before, runs[0] as never, before, runs[0] as never, compareModels(before, before), 0),
    ).toBeUndefined();
  });
});
