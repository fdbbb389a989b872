/** The small runtime: files with saved plans give what the whole engine gives, and what it cannot run is refused. */
import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { Dim, exportProgram, init, nn, type ProgramModule, type Tensor, tensor, torch } from "../../src/index.ts";
import * as glue from "../../wasm/runtime.js";
import { load } from "../../src/runtime/runtime.ts";
import { fixture, open, refusal, tensorsOf } from "../export/fixtures.ts";

await init();
const wasm = readFileSync(new URL("../../wasm/runtime-simd.wasm", import.meta.url));

/** The recorded inputs of a program, in order. */
function inputsOf(name: string): Tensor[] {
  const recorded = tensorsOf(`${name}/inputs.safetensors`);
  return [...recorded.keys()].toSorted().map((key) => recorded.get(key) as Tensor);
}

/** A program as the engine runs it, and the file with a plan for its recorded inputs. */
async function compiled(name: string): Promise<{ module: ProgramModule; inputs: Tensor[]; file: Uint8Array }> {
  const inputs = inputsOf(name);
  const module = (await open(name)).module();
  return { module, inputs, file: module.compiledFile(inputs) };
}

test.each([
  "digits_cnn",
  "cond_simple",
  "while_loop_hop",
  "resnet_block_tiny",
  "tied_and_views",
  "view_alias_mutation",
])("%s gives what the engine gives", async (name) => {
  const { module, inputs, file } = await compiled(name);
  using model = await load(file, { wasm });
  for (let call = 0; call < 2; call++) expect(String(model(...inputs))).toBe(String(module(...inputs)));
});

test("there is a plan for each call that the file was compiled for, and no other", async () => {
  const module = (await open("digits_cnn")).module();
  const images = inputsOf("digits_cnn")[0] as Tensor;
  const calls = [1, 2].map((n) => [torch.narrow(images, 0, 0, n).contiguous() as Tensor]);
  using model = await load(module.compiledFile(...calls), { wasm });
  for (const call of calls) expect(String(model(...call))).toBe(String(module(...call)));
  const other = torch.narrow(images, 0, 0, 3) as Tensor;
  expect(await refusal(() => model(other))).toMatchObject({ kind: "InputShape" });
  expect((await refusal(() => model(other))).message).toMatch(
    /float32\[3, 1, 8, 8\].*float32\[1, 1, 8, 8\].* and .*\[2, 1/,
  );
  expect(String(model(...(calls[0] as Tensor[])))).toBe(String(module(...(calls[0] as Tensor[]))));
});

test("arrays stand for tensors", async () => {
  const { module, inputs, file } = await compiled("digits_cnn");
  using model = await load(file, { wasm });
  const [image] = inputs as [Tensor];
  const expected = String(module(image));
  expect(String(model(image.data))).toBe(expected);
  expect(String(model(image.tolist()))).toBe(expected);
  expect(await refusal(() => model("image"))).toMatchObject({ kind: "InputType" });
  expect(await refusal(() => model())).toMatchObject({ kind: "InputCount" });
});

test("what a call changes stays changed", async () => {
  const { module, inputs, file } = await compiled("conv_bn_relu_train");
  using model = await load(file, { wasm });
  for (let call = 0; call < 3; call++) expect(String(model(...inputs))).toBe(String(module(...inputs)));
});

/** Counts its calls, and adds the count. */
class Counting extends nn.Module {
  declare count: Tensor;

  constructor() {
    super();
    this.registerBuffer("first", torch.zeros(1));
    this.registerBuffer("count", torch.zeros(1));
  }

  override forward(x: Tensor): Tensor {
    this.count.add_(1);
    return x.add(this.count).add((this as unknown as { first: Tensor }).first);
  }
}

class Doubling extends nn.Module {
  override forward(x: Tensor): Tensor {
    return x.mul(2);
  }
}

class Changing extends nn.Module {
  override forward(x: Tensor, y: Tensor): Tensor {
    return x.add_(1).add(y);
  }
}

class Numbered extends nn.Module {
  override forward(x: Tensor, _n: number): Tensor {
    return x.add(1);
  }
}

test("plans of several sizes share the state that the program has, whatever was called before", async () => {
  const shapes = { dynamicShapes: [{ 0: Dim.AUTO }] };
  const module = exportProgram(new Counting(), [torch.zeros(3)], {}, shapes).module();
  module(torch.zeros(5));
  using model = await load(module.compiledFile([torch.zeros(2)], [torch.zeros(3)]), { wasm });
  const counts = [2, 3, 2].map((n) => (model(torch.zeros(n)) as Tensor).tolist());
  expect(counts).toEqual([
    [1, 1],
    [2, 2, 2],
    [3, 3],
  ]);
  // A typed array has the sizes of the plan that fits.
  expect((model(new Float32Array(3)) as Tensor).tolist()).toEqual([4, 4, 4]);
});

test("how the inputs lie that a file is made of does not matter", async () => {
  const program = exportProgram(new Doubling(), [torch.ones(3)]);
  const column = torch.ones(3, 2).select(1, 0) as Tensor;
  using model = await load(program.module().compiledFile([column]), { wasm });
  expect((model(column) as Tensor).tolist()).toEqual([2, 2, 2]);
});

test("inputs that a call changes are changed, and are alone in their memory", async () => {
  const program = exportProgram(new Changing(), [torch.zeros(3), torch.zeros(3)]);
  using model = await load(program.module().compiledFile([torch.zeros(3), torch.zeros(3)]), { wasm });
  const [x, y] = [tensor([1, 2, 3], { dtype: "float32" }), tensor([1, 1, 1], { dtype: "float32" })];
  expect((model(x, y) as Tensor).tolist()).toEqual([3, 4, 5]);
  expect(x.tolist()).toEqual([2, 3, 4]);
  expect(await refusal(() => model(x, x))).toMatchObject({ kind: "InputType" });
  expect(await refusal(() => model([1, 2, 3], y))).toMatchObject({ kind: "InputType" });
  expect(await refusal(() => model(torch.zeros(2, 3).select(0, 1), y))).toMatchObject({ kind: "InputType" });
  expect(x.tolist()).toEqual([2, 3, 4]);
});

test("after a trap the model is lost, and the next one runs", async () => {
  const { inputs, file } = await compiled("digits_cnn");
  const model = await load(file, { wasm });
  const trap = vi.spyOn(glue.Model.prototype, "run").mockImplementationOnce(() => {
    throw new WebAssembly.RuntimeError("unreachable");
  });
  expect(await refusal(() => model(...inputs))).toMatchObject({ kind: "Internal" });
  trap.mockRestore();
  expect(await refusal(() => model(...inputs))).toMatchObject({ kind: "Disposed" });
  model.dispose();
  using again = await load(file, { wasm });
  expect((again(...inputs) as Tensor).shape).toHaveLength(2);
});

test("a call that cannot have its part is refused, and the module is made anew", async () => {
  const { file, inputs } = await compiled("conv_bn_relu_train");
  const digits = await compiled("digits_cnn");
  vi.resetModules();
  const again = await import("../../src/runtime/runtime.ts");
  const rare = "file:///nowhere/part.wasm";
  const model = await again.load(file, { wasm, parts: { rare } });
  const given = (tensors: readonly Tensor[]): unknown[] =>
    tensors.map((it) => again.tensor(it.toArray() as number[], { dtype: it.dtype }));
  const call = (): unknown => model(...given(inputs));
  expect(call).toThrow(`FX0703: this call needs the part rare of the runtime, and ${rare} cannot be read`);
  expect(call).toThrow("FX0701");
  model.dispose();
  using next = await again.load(digits.file);
  expect(String(next(...given(digits.inputs)))).toBe(String(digits.module(...digits.inputs)));
});

test("numbers are exact", async () => {
  const program = exportProgram(new Numbered(), [torch.zeros(2), 3]);
  using model = await load(program.module().compiledFile([torch.zeros(2), 3]), { wasm });
  expect((model(torch.zeros(2), 3) as Tensor).tolist()).toEqual([1, 1]);
  expect(await refusal(() => model(torch.zeros(2), 2n ** 64n + 3n))).toMatchObject({ kind: "InputType" });
  expect(await refusal(() => model(torch.zeros(2), 4))).toMatchObject({ kind: "InputValue" });
  expect(await refusal(() => model(torch.zeros(3), 3))).toMatchObject({ kind: "InputShape" });
});

test("what is no source is refused by name", async () => {
  for (const it of [undefined, 42, {}]) {
    await expect(load(it as unknown as string, { wasm })).rejects.toThrow("load");
  }
});

test("a model that is disposed of is refused, and others go on", async () => {
  const { inputs, file } = await compiled("digits_cnn");
  const [first, second] = [await load(file, { wasm }), await load(file.slice().buffer as ArrayBuffer)];
  first.dispose();
  first.dispose();
  expect(await refusal(() => first(...inputs))).toMatchObject({ kind: "Disposed" });
  expect((second(...inputs) as Tensor).shape).toHaveLength(2);
});

test("files without plans and damaged files are refused, and the next one opens", async () => {
  const { inputs, file } = await compiled("digits_cnn");
  const refused = async (bytes: Uint8Array): Promise<unknown> => await load(bytes, { wasm }).catch((it: unknown) => it);
  expect(await refused(readFileSync(fixture("digits_cnn/model.pt2")))).toMatchObject({ kind: "WireMalformed" });
  const plain = readFileSync(new URL("../../../tests/golden/wire/args.fxg", import.meta.url));
  expect(await refused(plain)).toMatchObject({ kind: "NotImplemented" });
  expect(await refused(file.slice(0, -1))).toMatchObject({ kind: "WireMalformed" });
  expect(await refused(new Uint8Array(0))).toMatchObject({ kind: "WireMalformed" });
  for (let at = 40; at < file.length; at += Math.ceil(file.length / 50)) {
    const other = file.slice();
    other[at] = (other[at] as number) ^ 1;
    expect(await refused(other), `byte ${at}`).toMatchObject({ kind: "WireMalformed" });
  }
  using model = await load(file, { wasm });
  expect((model(...inputs) as Tensor).shape).toHaveLength(2);
});

test("a place that cannot be read is named", async () => {
  await expect(load("/nowhere/model.fxg", { wasm })).rejects.toMatchObject({ kind: "Io" });
  await expect(load("/nowhere/model.fxg", { wasm })).rejects.toThrow("/nowhere/model.fxg");
});

test("what the runtime has no kernel of is refused when the file is made", async () => {
  const module = (await open("special_values")).module();
  expect(await refusal(() => module.compiledFile(inputsOf("special_values")))).toMatchObject({
    kind: "NotImplemented",
  });
  expect((await refusal(() => module.compiledFile(inputsOf("special_values")))).message).toContain("aten.sort.default");
  expect(await refusal(() => module.compiledFile())).toMatchObject({ kind: "InputCount" });
  expect(tensor([1]).shape).toEqual([1]);
});
