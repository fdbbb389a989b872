/** Slices of values as pictures, and plans as graphs. */
import { beforeAll, describe, expect, it } from "vitest";
import { colourOf, firstSlice, placeOf, rangeOf, sliceOf } from "../../src/explorer/slices.ts";
import { stepHeat } from "../../src/explorer/measured.ts";
import { GraphModel } from "../../src/explorer/model.ts";
import { planGraph } from "../../src/explorer/planGraph.ts";
import { type NodeRun, profileProgram, runProgram, valueOf } from "../../src/explorer/run.ts";
import { detailsOf } from "../../src/explorer/details.ts";
import { init } from "../../src/index.ts";
import { open } from "../export/fixtures.ts";

beforeAll(async () => {
  await init();
});

const numbers = { shape: [2, 3, 4], data: Float32Array.from({ length: 24 }, (_, at) => at) };

describe("a slice", () => {
  it("is the last two dimensions at first, and any two that are chosen", () => {
    expect(firstSlice(numbers)).toEqual({ rows: 1, columns: 2, places: [0, 0, 0] });
    const chosen = { rows: 2, columns: 0, places: [0, 1, 0] };
    const slice = sliceOf(numbers, chosen);
    expect([slice.width, slice.height, slice.step, slice.min, slice.max]).toEqual([2, 4, 1, 4, 19]);
    expect([...slice.values]).toEqual([4, 16, 5, 17, 6, 18, 7, 19]);
    expect(placeOf(slice, chosen, 3)).toEqual([1, 1, 1]);
  });

  it("of a line is broken into rows, of which the last is not full", () => {
    const line = { shape: [10], data: Float32Array.from({ length: 10 }, (_, at) => at) };
    const chosen = firstSlice(line) as NonNullable<ReturnType<typeof firstSlice>>;
    const slice = sliceOf(line, chosen);
    expect([slice.width, slice.height, slice.values.length]).toEqual([8, 2, 10]);
    expect(placeOf(slice, chosen, 9)).toEqual([9]);
    expect(firstSlice({ shape: [], data: Float32Array.of(1) })).toBeUndefined();
    expect(firstSlice({ shape: [0, 3], data: new Float32Array() })).toBeUndefined();
  });

  it("takes one element in so many where they are very many, and tells the places of these", () => {
    const wide = { shape: [2000, 600], data: Float32Array.from({ length: 1_200_000 }, (_, at) => at) };
    const chosen = { rows: 0, columns: 1, places: [0, 0] };
    const slice = sliceOf(wide, chosen);
    expect([slice.width, slice.height, slice.step]).toEqual([150, 500, 4]);
    expect(placeOf(slice, chosen, 151)).toEqual([4, 4]);
    expect(slice.values[151]).toBe(4 * 600 + 4);
    const long = { shape: [4_000_000], data: new Float32Array(4_000_000).map((_, at) => at) };
    const line = { rows: -1, columns: 0, places: [0] };
    const broken = sliceOf(long, line);
    for (const at of [0, 1, broken.width, 5000]) expect(broken.values[at]).toBe(placeOf(broken, line, at)[0]);
  });

  it("has colours from the least to the greatest, around 0 where both signs are there, and others for what is not finite", () => {
    expect(rangeOf({ min: 1, max: 3 })).toEqual([1, 3]);
    expect(rangeOf({ min: -1, max: 3 })).toEqual([-3, 3]);
    expect(colourOf(0, [-3, 3])).toEqual([247, 247, 247]);
    expect([colourOf(1, [1, 3]), colourOf(3, [1, 3])]).toEqual([
      [68, 1, 84],
      [253, 231, 37],
    ]);
    expect(colourOf(Number.NaN, [1, 3])).toEqual([255, 0, 255]);
    expect(colourOf(Number.NEGATIVE_INFINITY, [1, 3])).toEqual([0, 0, 0]);
    const nothing = sliceOf(
      { shape: [1, 2], data: Float32Array.of(Number.NaN, Number.NaN) },
      { rows: 0, columns: 1, places: [0, 0] },
    );
    expect(nothing.min).toBeNaN();
  });

  it("is of the values of a run, or of one node by a run of its own", async () => {
    const program = await open("digits_cnn");
    const { elements } = runProgram(program).get("conv2d") as NodeRun;
    expect(elements).toMatchObject({ shape: [4, 12, 8, 8] });
    expect(valueOf(program, "conv2d")).toEqual(elements);
    expect(valueOf(program, "output")).toBeUndefined();
  });
});

describe("a plan", () => {
  it("is a graph of its steps, with the buffers that they give", async () => {
    const program = await open("resnet_block_tiny");
    const report = profileProgram(program);
    const plan = planGraph(program, report);
    plan.graph.lint();
    const model = new GraphModel(plan);
    const steps = plan.graph.nodes.filter(({ op }) => op === "call_function");
    expect(steps.map(({ target }) => target)).toEqual(report.steps.map(({ step }) => step));
    // A block's sum reads the convolution before it and what goes around the block.
    const inputs = Object.fromEntries(
      plan.graph.nodes.map((node) => [node.name, node.allInputNodes.map(({ name }) => name)]),
    );
    expect(inputs["relu__2"]).toEqual(expect.arrayContaining(["relu__1", "max_pool2d"]));
    expect(inputs["relu__2"]?.length).toBe(2);
    expect(inputs["output"]).toEqual(["linear"]);
    const at = model.items.findIndex(({ id }) => id === "max_pool2d");
    expect(model.value(at)).toBe("f32[2, 8, 8, 8]");
    const rows = detailsOf(model, at).flatMap((section) => section.rows.map(({ name }) => name));
    expect(rows).toEqual(expect.arrayContaining(["step", "in the plan", "bytes"]));
    const shares = [...stepHeat(model)].filter(([item]) => model.items[item]?.node !== undefined);
    expect(shares.reduce((sum, [, share]) => sum + share ** 2, 0)).toBeCloseTo(1);
  });
});
