import { describe, expect, it } from "vitest";
import { restart } from "../../src/engine/engine.ts";
import { InputError, NotImplementedError, UsageError } from "../../src/base/errors.ts";
import { load } from "../../src/export/load.ts";
import { programOf } from "../../src/export/ofGraphModule.ts";
import { tuple } from "../../src/graph/args.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { tensor } from "../../src/tensor/construct.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { bytesOf, fixture, largestDifference, open, refusal, tensorsOf } from "./fixtures.ts";

const image = () => tensor(new Float32Array(64), { shape: [1, 1, 8, 8] });

describe("load", () => {
  it("opens a program from bytes, a path, a URL, a Blob and a Response", async () => {
    const bytes = bytesOf("digits_cnn/model.pt2");
    const text = bytesOf("digits_cnn/graph.txt");
    const path = fixture("digits_cnn/model.pt2");
    const sources = [bytes, bytes.buffer, path, new URL(`file://${path}`), new Blob([bytes]), new Response(bytes)];
    for (const source of sources) {
      expect(String((await load(source)).graph)).toBe(new TextDecoder().decode(text).trimEnd());
    }
  });

  it("refuses what it cannot read, and stops when it is told to", async () => {
    expect((await refusal(() => load("/no/such/file.pt2"))).code).toBe("FX0703");
    expect((await refusal(() => load(5 as never))).code).toBe("FX0702");
    expect((await refusal(() => load(new Uint8Array(), { limit: {} } as never))).code).toBe("FX0702");
    expect((await refusal(() => load(new Response("gone", { status: 404 })))).code).toBe("FX0703");
    const reason = new Error("enough");
    await expect(load(bytesOf("digits_cnn/model.pt2"), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  it("names the limit that a file runs into, and refuses a limit that there is not", async () => {
    const bytes = bytesOf("digits_cnn/model.pt2");
    const error = await refusal(() => load(bytes, { limits: { nodes: 5 } }));
    expect(error.code).toBe("FX0104");
    expect(error.message).toContain("nodes");
    expect((await refusal(() => load(bytes, { limits: { nods: 5 } }))).code).toBe("FX0702");
  });
});

describe("an exported program", () => {
  it("says what its inputs, outputs, state and constraints are", async () => {
    const program = await open("digits_cnn");
    const { graphSignature } = program;
    expect(graphSignature.userInputs).toEqual(["input"]);
    expect(graphSignature.inputsToParameters.get("p_0_weight")).toBe("0.weight");
    expect(graphSignature.userOutputs).toEqual(["linear_1"]);
    expect(program.stateDict.get("0.weight")?.shape).toEqual([12, 1, 3, 3]);
    expect(program.stateDict.get("1.num_batches_tracked")?.dtype).toBe("int64");
    expect([...program.namedParameters()].length).toBe(12);
    expect([...program.namedBuffers()].length).toBe(6);
    expect(program.rangeConstraints.get("s31")).toMatchObject({ min: 1, max: 1024 });
    expect(program.verifiers).toEqual(["TRAINING"]);
    expect(program.inspect()).toContain("aten.conv2d.default");
  });

  it("gives PyTorch's numbers, for every batch size", async () => {
    const program = await open("digits_cnn");
    using model = program.module();
    for (const suffix of ["", "_1", "_2"]) {
      const input = tensorsOf(`digits_cnn/inputs${suffix}.safetensors`).get("in0");
      const wanted = tensorsOf(`digits_cnn/expected${suffix}.safetensors`).get("out0") as Tensor;
      const logits = model(input) as Tensor;
      expect(logits.shape).toEqual(wanted.shape);
      expect(largestDifference(logits, wanted)).toBeLessThan(2.9e-5);
    }
  });

  it("takes and gives nested structures as they were exported", async () => {
    const program = await open("nested_io");
    const inputs = tensorsOf("nested_io/inputs.safetensors");
    const wanted = tensorsOf("nested_io/expected.safetensors");
    const [u, v0, v1, b0, b1, x, y] = Array.from({ length: 7 }, (_, at) => inputs.get(`in${at}`));
    const options = { scale: 2, flag: true, opts: { gain: inputs.get("in9") }, name: "fx" };
    using model = program.module();
    const result = model({ u, v: [v0, v1] }, tuple(b0, [b1]), { x, y }, options) as Record<string, unknown>;

    expect(Object.keys(result)).toEqual(["y", "l", "p", "t", "k", "od"]);
    const [first, pair] = result["l"] as [Tensor, [Tensor, null]];
    const { z, a } = result["od"] as Record<string, Tensor>;
    const point = result["p"] as { x: Tensor; y: Tensor };
    expect([pair[1], result["t"], result["k"]]).toEqual([null, [], 3]);
    const tensors = [result["y"] as Tensor, first, pair[0], undefined, point.x, point.y, undefined, z, a];
    for (const [at, got] of tensors.entries()) {
      if (got !== undefined) expect(largestDifference(got, wanted.get(`out${at}`) as Tensor)).toBeLessThan(1e-5);
    }
    expect((await refusal(() => model({ u, v: [v0] }, tuple(b0, [b1]), { x, y }, options))).message).toContain(
      "argument 0.v",
    );
    const error = await refusal(() => model([1, 2], 3));
    expect(error).toBeInstanceOf(InputError);
    expect(error.help).toContain("forward");
  });

  it("is edited in place, saved and loaded again", async () => {
    const program = await open("digits_cnn");
    const [dropout] = program.graph.findNodes({ op: "call_function", target: "torch.ops.aten.dropout.default" });
    if (dropout === undefined) throw new Error("the program has a dropout");
    dropout.replaceAllUsesWith(dropout.args[0] as never);
    program.graph.eraseNode(dropout);
    program.graph.lint();
    const biases = program.stateDict.get("12.bias") as Tensor;
    program.loadStateDict(new Map([["12.bias", tensor(biases.toFloat32Array().map((bias) => bias + 1))]]));

    const bytes = program.toFxg();
    const reloaded = await load(bytes);
    expect(String(reloaded.graph)).toBe(String(program.graph));
    expect(reloaded.toFxg()).toEqual(bytes);
    const input = tensorsOf("digits_cnn/inputs.safetensors").get("in0");
    const wanted = tensorsOf("digits_cnn/expected.safetensors").get("out0") as Tensor;
    using model = reloaded.module();
    const shifted = tensor(
      (model(input) as Tensor).toFloat32Array().map((logit) => logit - 1),
      { shape: [4, 10] },
    );
    expect(largestDifference(shifted, wanted)).toBeLessThan(2.9e-5);
  });

  it("keeps views and tied weights shared when it is saved", async () => {
    const program = await open("tied_and_views");
    expect((await load(program.toFxg())).toFxg()).toEqual(program.toFxg());
    expect(program.toFxg().byteLength).toBeLessThan(2 * bytesOf("tied_and_views/model.pt2").byteLength);
  });

  it("refuses state that does not fit, by name", async () => {
    const program = await open("digits_cnn");
    expect((await refusal(() => program.loadStateDict(new Map([["0.wieght", tensor([1])]])))).kind).toBe(
      "AttributeMissing",
    );
    expect((await refusal(() => program.loadStateDict(new Map([["0.bias", tensor([1])]])))).kind).toBe("InputShape");
  });

  it("refuses to run what is not implemented, naming it, and runs the next program", async () => {
    const program = await open("subclass_weight");
    expect(await refusal(() => program.module())).toBeInstanceOf(NotImplementedError);
    using model = (await open("digits_cnn")).module();
    expect(model(tensor(new Float32Array(64), { shape: [1, 1, 8, 8] }))).toBeInstanceOf(Tensor);
  });
});

describe("a module", () => {
  it("refuses wrong inputs by a typed error each, and goes on", async () => {
    using model = (await open("digits_cnn")).module();
    const cases: [unknown[], string][] = [
      [[], "FX0601"],
      [[image(), image()], "FX0601"],
      [[tensor(new Float64Array(64), { shape: [1, 1, 8, 8] })], "FX0602"],
      [[5], "FX0602"],
      [["text"], "FX0602"],
      [[[1, 2]], "FX0602"],
      [[tensor(new Float32Array(64), { shape: [1, 8, 8] })], "FX0603"],
      [[tensor(new Float32Array(49), { shape: [1, 1, 7, 7] })], "FX0603"],
      [[tensor(new Float32Array(1025 * 64), { shape: [1025, 1, 8, 8] })], "FX0603"],
    ];
    for (const [inputs, code] of cases) {
      const error = await refusal(() => model(...inputs));
      expect([error.code, error.message]).toEqual([code, error.message]);
      expect(model(image())).toBeInstanceOf(Tensor);
    }
  });

  it("is lost when the engine is made anew, and disposing it harms nothing", async () => {
    const program = await open("digits_cnn");
    const before = program.module();
    restart();
    expect((await refusal(() => before(image()))).message).toContain("made anew");
    using after = (await open("digits_cnn")).module();
    before.dispose();
    expect(after(image())).toBeInstanceOf(Tensor);
  });

  it("does not run after it was disposed", async () => {
    const model = (await open("digits_cnn")).module();
    model.dispose();
    model.dispose();
    expect(await refusal(() => model(image()))).toBeInstanceOf(UsageError);
  });

  it("answers calls that are made at the same time", async () => {
    using model = (await open("digits_cnn")).module();
    const calls = Array.from({ length: 8 }, async () => (model(image()) as Tensor).toFloat32Array());
    const [first, ...others] = await Promise.all(calls);
    for (const other of others) expect(other).toEqual(first);
  });
});

describe("a result that is a float", () => {
  it("is a number, also where it is whole", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    graph.output(tuple(graph.callFunction("torch.ops.aten.item.default", [x])));
    const gm = new GraphModule({}, graph);
    using module = programOf(gm).module();
    expect(module(tensor(2.5))).toEqual([2.5]);
    expect(module(tensor([2], { dtype: "float32" }))).toEqual([2]);
  });
});
