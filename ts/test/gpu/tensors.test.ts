/** Tensors on a device: what they say at once, what they refuse, and whose their memory is. */
import { inspect } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { beforeAll, describe, expect, test, vi } from "vitest";
import {
  drawTensor,
  exportProgram,
  init,
  nn,
  tensor,
  tensorFromGpuBuffer,
  tensorFromImage,
  torch,
} from "../../src/index.ts";
import { device, dtype } from "../../src/base/values.ts";
import { loadGpu } from "../../src/export/loadGpu.ts";
import { layoutOf, moveToEngine, viewOn } from "../../src/engine/tensors.ts";
import type { EngineValue } from "../../src/engine/values.ts";
import { outerBuffers } from "../../src/gpu/outer.ts";
import type { GivenCanvas, GivenGpuBuffer, GivenTexture, GpuTensor } from "../../src/tensor/gpuTensor.ts";
import { Tensor, tensorBytes } from "../../src/tensor/tensor.ts";
import { pack } from "../../src/worker/messages.ts";
import { open, refusal } from "../export/fixtures.ts";
import { thrown } from "../thrown.ts";
import { FakeBuffer, fakeDevice } from "./fakeDevice.ts";

beforeAll(async () => {
  await init();
  await loadGpu();
});

const asTensor = (it: GpuTensor): Tensor => it as unknown as Tensor;

describe("a tensor that went to a device", () => {
  test("says everything but its elements, and comes back", async () => {
    const fake = fakeDevice();
    const x = tensor([[1, 2, 3]], { dtype: "float16" });
    const there = await x.to(fake.device);
    expect([there.dtype, there.shape, there.stride(), there.nbytes]).toEqual(["float16", [1, 3], [3, 1], 6]);
    expect(there.device).toEqual(device("gpu"));
    expect([String(there), inspect(there)]).toEqual(
      Array(2).fill("tensor(..., device='gpu', size=(1, 3), dtype=torch.float16)"),
    );
    // Halves are floats of 32 bits there.
    expect([...new Float32Array(fake.buffers[0]?.bytes.buffer as ArrayBuffer)]).toEqual([1, 2, 3]);
    const back = await there.cpu();
    expect([String(back), String(back.device)]).toEqual([String(x), "cpu"]);
    expect(await there.to(fake.device)).toBe(there);
    expect(await there.to("gpu")).toBe(there);
    expect(String(await there.to("cpu"))).toBe(String(x));
    expect((await refusal(() => there.to("float64" as "cpu"))).help).toContain("(await x.cpu()).to");
  });

  test("is refused wherever the CPU would see its elements", async () => {
    const there = asTensor(await tensor([1.5, 2]).to(fakeDevice().device));
    const looks = [
      () => there.data,
      () => there.toArray(),
      () => there.toFloat32Array(),
      () => there.add(1),
      () => torch.add(tensor([1, 2]), there),
      () => there.get(0),
      () => there.clone(),
      () => tensorBytes(there),
    ];
    for (const look of looks) {
      const error = thrown(look);
      expect([error.kind, error.help], String(look)).toEqual(["InputType", expect.stringContaining("await x.cpu()")]);
    }
  });

  test("is read though it is given up before the device answers", async () => {
    const fake = fakeDevice();
    const there = await tensor([1, 2]).to(fake.device);
    const read = there.cpu();
    there.dispose();
    expect(fake.buffers[0]?.nDestroyed).toBe(0);
    expect((await read).toArray()).toEqual([1, 2]);
    expect(fake.buffers[0]?.nDestroyed).toBe(1);
  });

  test("is not promised where a trace would have the promise, or as another tensor is", async () => {
    class Net extends nn.Module {
      override forward(x: Tensor): unknown {
        return (x as unknown as GpuTensor).to("gpu");
      }
    }
    expect(thrown(() => exportProgram(new Net(), [tensor([1, 2])])).message).toContain("gpu");
    const there = await tensor([1]).to(fakeDevice().device);
    expect(thrown(() => tensor([1]).to(there.device)).help).toContain('await x.to("gpu")');
    expect((await refusal(() => there.to("cpu", ...(["float64"] as unknown as [])))).help).toContain(
      "(await x.cpu()).to",
    );
  });

  test("gives its memory back once, when it is disposed of", async () => {
    const fake = fakeDevice();
    const there = await tensor([1, 2]).to(fake.device);
    there.dispose();
    there.dispose();
    expect(fake.buffers.map((it) => it.nDestroyed)).toEqual([1]);
    expect((await refusal(() => there.cpu())).kind).toBe("Disposed");
    expect(inspect(there)).toContain("disposed");
  });

  test("gives it back when nobody has the tensor any more", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const fake = fakeDevice();
    const make = async (): Promise<void> => void (await tensor([1, 2]).to(fake.device));
    for (let round = 0; round < 10; round++) await make();
    const nDestroyed = (): number => fake.buffers.filter((it) => it.nDestroyed > 0).length;
    for (let round = 0; round < 50 && nDestroyed() < 8; round++) {
      collect();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    // The last ones may still lie on the stack.
    expect(nDestroyed()).toBeGreaterThanOrEqual(8);
  });

  test("is lost with its device", async () => {
    const fake = fakeDevice();
    const there = await tensor([1, 2]).to(fake.device);
    fake.lose();
    await new Promise((resolve) => setTimeout(resolve, 1));
    const error = await refusal(() => there.cpu());
    expect([error.kind, error.help]).toEqual(["DeviceFailed", expect.stringContaining('await x.to("gpu")')]);
    expect((await refusal(() => tensor([1]).to(fake.device))).kind).toBe("DeviceFailed");
  });

  test("is no parameter and no buffer of a module, which run on the CPU", async () => {
    const there = asTensor(await tensor([1, 2]).to(fakeDevice().device));
    for (const give of [
      () => new nn.Parameter(there),
      () => new nn.ParameterList([there]),
      () => new nn.Module().registerBuffer("seen", there),
    ]) {
      expect(thrown(give)).toMatchObject({
        kind: "InputType",
        help: expect.stringContaining("await x.cpu()") as string,
      });
    }
  });

  test("is refused by modules of the CPU", async () => {
    const there = await torch.zeros(4, 1, 8, 8).to(fakeDevice().device);
    using module = (await open("digits_cnn")).module();
    expect((await refusal(() => module(there))).help).toContain("await x.cpu()");
    expect((await refusal(() => module.runAsync([there]))).help).toContain("await x.cpu()");
    const error = await refusal(() => module.runAsync([torch.zeros(4, 1, 8, 8)], { outputs: "gpu" }));
    expect([error.kind, error.help]).toEqual(["InvalidOption", expect.stringContaining('device: "gpu"')]);
    const unknown = await refusal(() => module.runAsync([there], { outputs: "cuda" as "gpu" }));
    expect(unknown.reason).toContain('"cpu" or "gpu"');
  });
});

test("no message to a worker holds a tensor on a device", async () => {
  const there = await tensor([1, 2]).to(fakeDevice().device);
  const sent = thrown(() => pack([there], []));
  expect([sent.kind, sent.help]).toEqual(["InputType", expect.stringContaining("await x.cpu()")]);
});

test("what has no place on a device is refused, and so is a device that is none", async () => {
  const { device: given } = fakeDevice();
  expect((await refusal(() => torch.zeros(2, { dtype: "complex128" }).to(given))).kind).toBe("NotImplemented");
  expect(thrown(() => tensor([1]).to("cuda")).reason).toBe("there is no device cuda");
  expect(thrown(() => tensor([1]).to("gpu", "float32")).reason).toBe("there is no device gpu");
});

describe("a buffer of the caller's", () => {
  const [COPY_SRC, COPY_DST] = [4, 8];
  const made = (size: number, usage = COPY_SRC | COPY_DST) =>
    new FakeBuffer({ size, usage }) as unknown as GivenGpuBuffer;

  test("is a tensor without a copy, and is never destroyed", async () => {
    const fake = fakeDevice();
    const buffer = made(16) as unknown as FakeBuffer;
    buffer.bytes.set([1, 0, 0, 0, 0, 0, 0, 0, 1]);
    const options = { device: fake.device, dtype: dtype("bool"), shape: [2, 2] };
    const x = await tensorFromGpuBuffer(buffer as unknown as GivenGpuBuffer, options);
    expect(x.buffer).toBe(buffer);
    expect((await x.cpu()).toArray()).toEqual([
      [true, false],
      [true, false],
    ]);
    x.dispose();
    expect(buffer.nDestroyed).toBe(0);
    // What it was read by.
    expect(fake.buffers.map((it) => it.nDestroyed)).toEqual([1]);
  });

  test("is large enough, can be read, and is described", async () => {
    const options = { device: fakeDevice().device, dtype: "int64", shape: [2] } as const;
    const kinds = [
      await refusal(() => tensorFromGpuBuffer(made(15), options)),
      await refusal(() => tensorFromGpuBuffer(made(16, COPY_DST), options)),
      await refusal(() => tensorFromGpuBuffer({} as GivenGpuBuffer, options)),
      await refusal(() => tensorFromGpuBuffer(made(16), { ...options, device: {} as GPUDevice })),
      await refusal(() => tensorFromGpuBuffer(made(16), { ...options, dtype: "long" as "int64" })),
      await refusal(() => tensorFromGpuBuffer(made(16), { ...options, shape: [-1] })),
      await refusal(() => tensorFromGpuBuffer(made(32), { ...options, dtype: "complex128" })),
      await refusal(() => tensorFromGpuBuffer(made(16), { ...options, sizes: [2] } as typeof options)),
    ].map((it) => it.kind);
    expect(kinds).toEqual([
      "InputShape",
      "InvalidArgument",
      "InvalidArgument",
      "InvalidArgument",
      "InvalidArgument",
      "InputShape",
      "NotImplemented",
      "InvalidOption",
    ]);
  });
});

/** A device whose shaders see so many bytes of a buffer. */
function seeing(nBytes: number): GPUDevice {
  const limits = { maxBufferSize: 1024, maxStorageBufferBindingSize: nBytes };
  return Object.assign(fakeDevice().device, { limits: limits as GPUSupportedLimits });
}

describe("a picture", () => {
  /** `GPUBufferUsage.STORAGE` with those that all buffers of callers have. */
  const USAGE = 128 | 4 | 8;

  test("is no image where the host has none, and says what is taken there", async () => {
    const error = await refusal(() => tensorFromImage({ width: 2, height: 1 } as object));
    expect([error.kind, error.help]).toEqual(["NotImplemented", expect.stringContaining("tensorFromGpuBuffer")]);
  });

  test("that shaders do not see whole is refused before the device is asked", async () => {
    const given = seeing(44);
    const usage = 4;
    const flat = { dimension: "2d", depthOrArrayLayers: 1, sampleCount: 1 };
    const texture: GivenTexture = { ...flat, width: 2, height: 2, format: "rgba8unorm", usage, createView: () => flat };
    const buffer = new FakeBuffer({ size: 48, usage: USAGE }) as unknown as GivenGpuBuffer;
    const x = await tensorFromGpuBuffer(buffer, { device: given, dtype: "float32", shape: [3, 2, 2] });
    for (const ask of [() => tensorFromImage(texture, { device: given }), () => drawTensor(x, texture)]) {
      const error = await refusal(ask);
      expect([error.kind, error.reason]).toEqual(["LimitExceeded", expect.stringMatching(/has 48 bytes.*at most 44$/)]);
    }
  });

  test("leaves the canvas as it was where it is refused, and blames the buffer as well", async () => {
    vi.stubGlobal("navigator", { gpu: { getPreferredCanvasFormat: () => "bgra8unorm" } });
    const given = Object.assign(seeing(1024), {
      createBindGroupLayout: () => ({}),
      createPipelineLayout: () => ({}),
      createShaderModule: () => ({}),
      createRenderPipelineAsync: async () => await Promise.reject(new Error("no such format")),
    });
    const configure = vi.fn();
    const canvas = { width: 5, height: 5, getContext: () => ({ configure }) } satisfies GivenCanvas;
    const error = await refusal(async () => await drawTensor(await torch.ones(3, 2, 2).to(given), canvas));
    expect([error.kind, error.help]).toEqual(["InvalidArgument", expect.stringContaining("x.buffer")]);
    expect(error.reason).toContain("the tensor's buffer, or what is drawn to, is refused");
    expect([configure.mock.calls.length, canvas.width, canvas.height]).toEqual([0, 5, 5]);
    vi.unstubAllGlobals();
  });
});

/** So many bytes of the engine that are all this one. */
function bytes(length: number, byte: number): Tensor {
  const res = tensor(new Uint8Array(length).fill(byte));
  moveToEngine(res);
  return res;
}

/** A run without steps, as the engine has them, of a plan with these inputs and results; its results are in new memory. */
function emptyRun(of: { readonly inputs: readonly number[]; readonly results: readonly (number | Tensor | null)[] }) {
  const memories = new Map<number, Tensor>();
  let given: readonly unknown[] = [];
  return {
    begin(leaves: readonly unknown[]) {
      given = leaves;
      of.inputs.forEach((leaf, buffer) => {
        const like = leaves[leaf] as Tensor;
        const { byteLength } = layoutOf(like);
        memories.set(buffer, viewOn(like, { dtype: "uint8", shape: [byteLength], strides: [1], offset: 0 }));
      });
      // Memory of a run before may be used again, whatever it holds.
      for (const it of of.results) if (typeof it === "number") memories.set(it, bytes(4, memories.size & 1));
      return true;
    },
    read: (buffer: number) => tensorBytes(memories.get(buffer) as Tensor)[0] as number,
    write: (buffer: number, byte: number) => (memories.get(buffer) as Tensor).set(0, byte),
    end: (): EngineValue[] =>
      of.results.map((it) => {
        if (it === null) return given[0] instanceof Tensor ? given[0].view(-1) : null;
        const memory = typeof it === "number" ? (memories.get(it) as Tensor) : it;
        return viewOn(memory, { dtype: "uint8", shape: [2], strides: [2], offset: 1 });
      }),
  };
}

test("the buffers of a plan are found among inputs and results, whatever their order and number", () => {
  for (const n of [1, 2, 3, 7, 8, 30]) {
    const leaves = Array.from({ length: n }, (_, at) => (at % 4 === 3 ? 5 : torch.zeros(at + 1)));
    const tensors = leaves.flatMap((leaf, at) => (leaf instanceof Tensor ? [at] : [])).toReversed();
    const outputs = Array.from({ length: n }, (_, at) => tensors.length + ((at * 11) % n));
    const constant = torch.ones(3);
    moveToEngine(constant);
    const results = [...outputs, constant, null];
    const places = Array.from({ length: tensors.length + n }, () => ({ buffer: 0, dtype: "float32", n_elements: 1 }));
    // The last input is written whole, and does not go up.
    const uploads = tensors.map((_, buffer) => buffer).slice(0, -1);
    const program = {
      steps: [{ uploads, downloads: [], clears: [], work: { device: [] } }],
      outputs: places.map((_, buffer) => buffer).slice(tensors.length - 1),
      constants: [],
      places,
    };
    const found = outerBuffers(program as never, leaves, emptyRun({ inputs: tensors, results }));
    expect(
      [...found.inputs].toSorted(([a], [b]) => a - b),
      `${n} inputs`,
    ).toEqual(tensors.map((leaf, at) => [at, leaf]));
    expect(found.results, `${n} results`).toEqual([...outputs, undefined, undefined]);
  }
});
