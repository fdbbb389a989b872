/** What programs are run on: given values that fit or are refused, and images, sounds and texts as tensors. */
import { beforeAll, describe, expect, it } from "vitest";
import { device, LayoutArg } from "../../src/base/values.ts";
import type { DType } from "../../../bindings/dtypes.ts";
import { Dim } from "../../src/export/dim.ts";
import { Graph } from "../../src/graph/graph.ts";
import { SymExpr, TensorMeta } from "../../src/graph/val.ts";
import { exportProgram, init, Module, type Tensor, tensor, torch } from "../../src/index.ts";
import { imagePlace, kindOfFile, tensorOfPixels, tensorOfSound, valueOfText } from "../../src/explorer/inputFiles.ts";
import { filledInputs, type InputSlot, inputSlots } from "../../src/explorer/inputs.ts";
import { refusal } from "../export/fixtures.ts";

beforeAll(async () => {
  await init();
});

class Scores extends Module {
  override forward(x: Tensor, ids: Tensor, y: Tensor): Tensor {
    return torch.cat([x, y]).sum().add(ids.sum());
  }
}

/** A program of two inputs that have the same number of rows, and of one of whole numbers. */
const program = () => {
  const rows = Dim("rows", { min: 2, max: 6 });
  const [x, y] = [torch.ones([3, 2]), torch.zeros([3, 2])];
  return exportProgram(
    new Scores(),
    [x, tensor([1, 2]), y],
    {},
    {
      dynamicShapes: [{ 0: rows }, null, { 0: rows }],
    },
  );
};

const S = new SymExpr("Symbol('s0', positive=True, integer=True)");

/** An input of these sizes. */
const slot = (sizes: readonly (number | SymExpr)[], dtype: DType = "float32"): InputSlot => {
  const node = new Graph().placeholder("x");
  const val = new TensorMeta({
    dtype,
    sizes,
    strides: sizes.map(() => 1),
    storageOffset: 0,
    device: device("cpu"),
    layout: new LayoutArg("strided"),
    requiresGrad: false,
  });
  return { name: "x", node, val, text: `${dtype}[${sizes.join(", ")}]`, constant: undefined };
};

describe("inputs", () => {
  it("are those that are given, and random ones of the same sizes", () => {
    const one = program();
    expect(inputSlots(one).map(({ name }) => name)).toEqual(["x", "ids", "y"]);
    const [x, ids, y] = filledInputs(one, new Map([["y", torch.ones([5, 2])]])) as [Tensor, Tensor, Tensor];
    expect([x.shape, ids.shape, y.toArray()]).toEqual([[5, 2], [2], [1, 2, 3, 4, 5].map(() => [1, 1])]);
  });

  it("of another width become those of the program", () => {
    const given = new Map([
      [
        "x",
        tensor(
          [
            [1, 2],
            [3, 4],
          ],
          { dtype: "float64" },
        ),
      ],
      ["ids", tensor([1, 0], { dtype: "uint8" })],
    ]);
    const inputs = filledInputs(program(), given) as Tensor[];
    expect(inputs.map(({ dtype }) => dtype)).toEqual(["float32", "int64", "float32"]);
  });

  it.each<[string, () => Record<string, Tensor>, string]>([
    ["the wrong rank", () => ({ x: tensor([1.5]) }), "it is f32[1]"],
    ["another size", () => ({ x: tensor([[1.5], [2.5]]) }), "it is f32[2, 1]"],
    ["a size out of its range", () => ({ x: torch.ones([7, 2]) }), "is 7, and may be 2 … 6"],
    [
      "sizes that differ",
      () => ({ x: torch.ones([2, 2]), y: torch.ones([3, 2]) }),
      "in another input, and 3 in this one",
    ],
    ["another kind of numbers", () => ({ ids: tensor([0.5, 1.5]) }), "got float32"],
    [
      "a number that the dtype does not have",
      () => ({ ids: tensor([2n ** 63n, 0n], { dtype: "uint64" }) }),
      "does not fit into int64",
    ],
    ["a name that no input has", () => ({ z: tensor([1]) }), "has no input `z`"],
  ])("with %s are refused", async (_, given, why) => {
    expect((await refusal(() => filledInputs(program(), new Map(Object.entries(given()))))).message).toContain(why);
  });
});

describe("a file", () => {
  it("is known by its name, or by what the host says of it", () => {
    const kinds = [
      ["a.npz", ""],
      ["a.NPY", ""],
      ["a.jpg", "image/jpeg"],
      ["a.wav", "audio/wav"],
      ["a.txt", ""],
    ].map(([name = "", type = ""]) => kindOfFile({ name, type }));
    expect(kinds).toEqual(["arrays", "array", "image", "sound", "text"]);
    expect(() => kindOfFile({ name: "a.exe", type: "" })).toThrow(/choose \.npy/);
  });
});

describe("an image", () => {
  const pixels = { width: 2, height: 1, data: [255, 0, 51, 255, 0, 255, 102, 255] };

  it("has its channels where the input has them", () => {
    const first = tensorOfPixels(pixels, slot([1, 3, 1, 2]), "bytes");
    expect(first.toArray()).toEqual([[[[255, 0]], [[0, 255]], [[51, 102]]]]);
    const last = tensorOfPixels(pixels, slot([1, 1, 2, 3], "uint8"), "unit");
    // A height of 1 in front is taken for a channel: rows and columns are the last two.
    expect(last.shape).toEqual([1, 1, 1, 2]);
    expect(imagePlace(slot([S, 8, 9, 3]))).toMatchObject({ outer: [1], channelsFirst: false, height: 8, width: 9 });
    expect(imagePlace(slot([S, 3, S, S]))).toMatchObject({ channels: 3, height: undefined, width: undefined });
    expect(tensorOfPixels(pixels, slot([2, 1, 3, 1, 2]), "bytes").shape).toEqual([2, 1, 3, 1, 2]);
  });

  it("of one channel is its brightness, as Pillow computes it", () => {
    // Image.new("RGB", (2, 1)) with these pixels, converted to "L".
    expect(tensorOfPixels(pixels, slot([1, 2]), "bytes").toArray()).toEqual([[82, 161]]);
  });

  it.each<[Parameters<typeof tensorOfPixels>[2], number]>([
    ["unit", 0.2],
    ["signed", -0.6],
    ["imagenet", (0.2 - 0.406) / 0.225],
    ["bytes", 51],
  ])("is scaled as is chosen: %s", (scale, wanted) => {
    expect(tensorOfPixels(pixels, slot([3, 1, 2]), scale).toFloat32Array()[4]).toBeCloseTo(wanted, 5);
  });

  it("is refused by an input that has no place for one", () => {
    expect(() => imagePlace(slot([5]))).toThrow(/two dimensions at least/);
    expect(() => imagePlace(slot([2, 7, 8, 9]))).toThrow(/no dimension of 1, 3 or 4 channels/);
  });
});

describe("a sound", () => {
  const sound = [Float32Array.of(1, 0, 0.5), Float32Array.of(0, 0, 0.5)];

  it("is cut, or followed by silence, and its channels are one or two", () => {
    expect(tensorOfSound(sound, slot([1, 2])).toArray()).toEqual([[0.5, 0]]);
    expect(tensorOfSound(sound, slot([S, S])).toArray()).toEqual([[0.5, 0, 0.5]]);
    expect(tensorOfSound(sound, slot([1, 2, 4])).toArray()).toEqual([
      [
        [1, 0, 0.5, 0],
        [0, 0, 0.5, 0],
      ],
    ]);
    expect(() => tensorOfSound(sound, slot([2], "int64"))).toThrow(/samples are floats/);
  });
});

describe("a text", () => {
  it("is its bytes, or the numbers that it consists of", () => {
    expect((valueOfText("hé", slot([1, 4], "int64")) as Tensor).toArray()).toEqual([
      [104n, 195n, 169n, 0n].map(Number),
    ]);
    expect((valueOfText("[[1, -2],\n [3.5, 1e1]]", slot([2, 2])) as Tensor).toArray()).toEqual([
      [1, -2],
      [3.5, 10],
    ]);
    expect((valueOfText("7 8 9", slot([1, S], "int64")) as Tensor).shape).toEqual([1, 3]);
    const floats = (valueOfText("nan -inf 1", slot([3])) as Tensor).toFloat32Array();
    expect([...floats]).toEqual([Number.NaN, Number.NEGATIVE_INFINITY, 1]);
    expect((valueOfText("nan", slot([3], "int64")) as Tensor).toArray()).toEqual([110, 97, 110]);
    expect(() => valueOfText("1 2 3", slot([2]))).toThrow(/3 numbers are too many/);
    expect(valueOfText("2.5", { ...slot([]), val: 1.5 })).toBe(2.5);
    expect(() => valueOfText("two", { ...slot([]), val: 1.5 })).toThrow(/is a number/);
  });
});
