/** Tensors that stay on the GPU of a real browser between calls, whose work a processor does. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as tracefx from "../../ts/src/index.ts";
import { CANVASES, gpuPage } from "./gpu.mjs";
import type { counter } from "./gpuCounter.mjs";

declare const probe: typeof tracefx & { counter: typeof counter };

const PATIENCE = 120_000;

let host: Awaited<ReturnType<typeof gpuPage>>;
let page: Page;

beforeAll(async () => {
  host = await gpuPage(true, CANVASES);
  ({ page } = host);
  await page.evaluate(async () => {
    await probe.init();
    Object.assign(globalThis, {
      sinceLast: probe.counter(),
      /** A program of a function of tensors. */
      programOf: (forward: Forward, ...inputs: tracefx.Tensor[]) => {
        class Net extends probe.nn.Module {
          override forward(...given: tracefx.Tensor[]): unknown {
            return forward(...given);
          }
        }
        return probe.exportProgram(new Net(), inputs);
      },
      /** The buffers that are made from now on and not destroyed; those before may be collected at any time. */
      buffersFromNow: () => {
        const living = new Set<GPUBuffer>();
        const { createBuffer } = GPUDevice.prototype;
        GPUDevice.prototype.createBuffer = function (descriptor) {
          const made = createBuffer.call(this, descriptor);
          living.add(made);
          return made;
        };
        const { destroy } = GPUBuffer.prototype;
        GPUBuffer.prototype.destroy = function () {
          living.delete(this);
          destroy.call(this);
        };
        const stop = () => {
          [GPUDevice.prototype.createBuffer, GPUBuffer.prototype.destroy] = [createBuffer, destroy];
        };
        return { living, stop };
      },
      /** The bytes of the pixels that a canvas shows. */
      shown: (canvas: OffscreenCanvas | HTMLCanvasElement) => {
        const { width, height } = canvas;
        const copy = new OffscreenCanvas(width, height).getContext("2d");
        copy?.drawImage(canvas, 0, 0);
        return [...(copy?.getImageData(0, 0, width, height).data ?? [])];
      },
      refusal: async (body: () => unknown) => {
        try {
          await body();
          return "no error";
        } catch (error) {
          return (error as Error).message;
        }
      },
    });
  });
}, PATIENCE);

afterAll(async () => {
  await host?.close();
});

/** Pixels of these greys. */
const greys = (...values: number[]): number[] => values.flatMap((it) => [it, it, it, 255]);

/** One row of these colours, as a list of a batch. */
const inRow = (red: number[], green: number[], blue: number[]) => [[[red], [green], [blue]]];

type Forward = (...given: tracefx.Tensor[]) => unknown;
declare const sinceLast: ReturnType<typeof counter>;
declare const programOf: (forward: Forward, ...inputs: tracefx.Tensor[]) => tracefx.ExportedProgram;
declare const buffersFromNow: () => { readonly living: ReadonlySet<GPUBuffer>; stop(): void };
declare const shown: (canvas: OffscreenCanvas | HTMLCanvasElement) => number[];
declare const refusal: (body: () => unknown) => Promise<string>;

test(
  "goes from call to call without crossing, and is read when it is asked for",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      torch.manualSeed(0);
      const weight = torch.randn(16, 16).div(4);
      const start = torch.randn(4, 16);
      const program = programOf((x) => torch.tanh(x.matmul(weight)), start);
      const [cpu, gpu] = [program.module(), program.module({ device: "gpu" })];
      let [wanted, x] = [start, await start.to("gpu")];
      const counts = [];
      sinceLast();
      for (let round = 0; round < 5; round++) {
        wanted = cpu(wanted) as tracefx.Tensor;
        const before = x;
        x = (await gpu.runAsync([before], { outputs: "gpu" })) as tracefx.GpuTensor;
        before.dispose();
        counts.push(sinceLast());
      }
      const got = await x.cpu();
      const read = sinceLast();
      const far = Number(got.sub(wanted).abs().max().item());
      return {
        far,
        counts,
        read,
        shape: x.shape,
        device: String(x.device),
        text: String(x),
        ofResult: String(got.device),
      };
    });
    expect(found.far).toBeLessThan(1e-5);
    // The first run brings the weights.
    expect(found.counts[0]?.readbacks).toBe(0);
    for (const it of found.counts.slice(1)) {
      expect(it).toMatchObject({ submissions: 1, readbacks: 0, bytesUp: 0, bytesDown: 0 });
      // The input to where the plan has it, and the result from there.
      expect(it.bytesCopied).toBe(2 * 4 * 4 * 16);
    }
    expect(found.read).toMatchObject({ readbacks: 1, bytesDown: 4 * 4 * 16 });
    expect(found).toMatchObject({ shape: [4, 16], device: "gpu", text: "tensor(..., device='gpu', size=(4, 16))" });
    expect(found.ofResult).toBe("cpu");
  },
  PATIENCE,
);

test(
  "goes up and comes down with the same elements, of every dtype that a GPU has a place for",
  async () => {
    const found = await page.evaluate(async () => {
      const dtypes = [
        ...(["bool", "uint8", "int8", "int16", "int32", "int64"] as const),
        ...(["float16", "bfloat16", "float32", "float64", "complex64"] as const),
      ];
      const rows: Record<string, boolean> = {};
      for (const dtype of dtypes) {
        const x = probe
          .tensor([
            [0, 1, 2],
            [-3, 4, 100],
          ])
          .to(dtype === "uint8" ? "int16" : dtype)
          .to(dtype);
        const there = await x.to("gpu");
        const back = await there.cpu();
        rows[dtype] = String(back) === String(x) && there.nbytes === x.nbytes && back.dtype === dtype;
      }
      const empty = await (await probe.torch.zeros(0, 3).to("gpu")).cpu();
      const view = probe.torch.arange(12).reshape(3, 4).t();
      return {
        rows,
        empty: empty.shape,
        view: String(await (await view.to("gpu")).cpu()) === String(view),
        tooWide: await refusal(() => probe.torch.zeros(2, { dtype: "complex128" }).to("gpu")),
      };
    });
    expect(new Set(Object.values(found.rows))).toEqual(new Set([true]));
    expect(Object.keys(found.rows)).toHaveLength(11);
    expect(found.empty).toEqual([0, 3]);
    expect(found.view).toBe(true);
    expect(found.tooWide).toContain("complex128 elements have no place on a GPU");
  },
  PATIENCE,
);

test(
  "knows which result is which, and which is an input or looks at one",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const inputs = [
        torch.randn(3, 4),
        torch.tensor(true),
        torch.randn(2),
        torch.arange(6).reshape(2, 3),
        torch.zeros(0, 2),
      ];
      const program = programOf(
        (a, flag, b, n, none) => [
          b.mul(2),
          a,
          flag.logicalNot(),
          a.t(),
          n.add(1).t(),
          none,
          b.sum(),
          a.add(1),
          b.get(probe.slice(1, null)),
        ],
        ...inputs,
      );
      const wanted = (program.module()(...inputs) as tracefx.Tensor[]).map(String);
      const module = program.module({ device: "gpu" });
      const there = await Promise.all(inputs.map((it) => it.to("gpu")));
      const texts = async (given: readonly unknown[], outputs: "cpu" | "gpu") => {
        const results = (await module.runAsync(given, { outputs })) as tracefx.GpuTensor[];
        const devices = new Set(results.map((it) => String(it.device)));
        return { texts: await Promise.all(results.map(async (it) => String(await it.cpu()))), devices: [...devices] };
      };
      const mixed = inputs.map((it, at) => (at % 2 === 0 ? it : there[at]));
      const runs = [
        await texts(there, "gpu"),
        await texts(there, "cpu"),
        await texts(inputs, "gpu"),
        await texts(mixed, "gpu"),
        await texts(mixed, "cpu"),
      ];
      const [, same, , turned] = (await module.runAsync(there, { outputs: "gpu" })) as tracefx.GpuTensor[];
      const isShared = new Set([there[0], same, turned].map((it) => it?.buffer)).size === 1;
      return { wanted, runs, isShared, strides: turned?.stride() };
    });
    for (const [at, { texts, devices }] of found.runs.entries()) {
      expect(texts, `run ${at}`).toEqual(found.wanted);
      expect(devices).toEqual([at === 1 || at === 4 ? "cpu" : "gpu"]);
    }
    expect(found).toMatchObject({ isShared: true, strides: [1, 4] });
  },
  PATIENCE,
);

test(
  "has what a program writes to it, and keeps what it was where the data breaks a check",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const at = (position: number) => torch.tensor([position]);
      const [cache, row] = [torch.zeros(4, 2), torch.ones(1, 2)];
      const program = programOf((c, r, p) => c.indexCopy_(0, p, r).sum(0), cache, row, at(0));
      const filled = programOf((x, y) => [x.fill_(7), y.add(1)], torch.zeros(3), torch.zeros(3));
      const module = program.module({ device: "gpu" });
      const there = await cache.to("gpu");
      const sums = [];
      sinceLast();
      for (const position of [1, 3]) {
        const sum = (await module.runAsync([there, row, at(position)], { outputs: "gpu" })) as tracefx.GpuTensor;
        sums.push((await sum.cpu()).toArray());
      }
      const counts = sinceLast();
      const broken = await refusal(() => module.runAsync([there, row, at(9)], { outputs: "gpu" }));
      const [x, y] = await Promise.all([torch.zeros(3).to("gpu"), torch.zeros(3).to("gpu")]);
      await filled.module({ device: "gpu" }).runAsync([x, y]);
      // Written to under two names, which the CPU sees.
      const twice = programOf((a, b) => a.add_(1).add(b), torch.zeros(3), torch.zeros(3));
      const both = (await twice.module({ device: "gpu" }).runAsync([y, y], { outputs: "gpu" })) as tracefx.GpuTensor;
      return {
        sums,
        down: counts.bytesDown,
        broken,
        cache: (await there.cpu()).toArray(),
        x: (await x.cpu()).toArray(),
        y: (await y.cpu()).toArray(),
        both: (await both.cpu()).toArray(),
      };
    });
    expect(found.sums).toEqual([
      [1, 1],
      [2, 2],
    ]);
    // The sums and the checks, and not the cache.
    expect(found.down).toBeLessThan(2 * 32);
    expect(found.broken).toContain("out of");
    expect(found.cache).toEqual([
      [0, 0],
      [1, 1],
      [0, 0],
      [1, 1],
    ]);
    expect(found).toMatchObject({ x: [7, 7, 7], y: [1, 1, 1], both: [2, 2, 2] });
  },
  PATIENCE,
);

test(
  "goes beside a cache that stays on the device",
  async () => {
    const found = await page.evaluate(async () => {
      const { nn, torch } = probe;
      class Cached extends nn.Module {
        constructor() {
          super();
          this.registerBuffer("sum", torch.zeros(3));
        }
        override forward(x: tracefx.Tensor): tracefx.Tensor {
          return this.getBuffer("sum").add_(x).mul(2) as tracefx.Tensor;
        }
      }
      const x = torch.ones(3);
      const module = probe.exportProgram(new Cached(), [x]).module({ device: "gpu", state: "device" });
      let y = await x.to("gpu");
      const readbacks = [];
      sinceLast();
      for (let round = 0; round < 3; round++) {
        y = (await module.runAsync([y], { outputs: "gpu" })) as tracefx.GpuTensor;
        readbacks.push(sinceLast().readbacks);
      }
      await module.synchronize();
      return { readbacks, y: (await y.cpu()).toArray(), sum: module.getTensor("sum").toArray() };
    });
    // The sums are 1, 3 and 9.
    expect(found).toEqual({ readbacks: [0, 0, 0], y: [18, 18, 18], sum: [9, 9, 9] });
  },
  PATIENCE,
);

test(
  "comes down for steps of the CPU, and goes up again",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const x = torch.randn(4, 3);
      // What computes in float64 is the CPU's, and so is all of the last program.
      const mixed = programOf((a) => [a.mul(2), a.add_(1).double().sum(0).float().mul(3)], x.clone());
      const inPlace = programOf((a) => a.mul_(2).add(1), x.double());
      const whole = programOf((a) => a.mul(2), x.double());
      const [rows, nDispatches] = [[] as boolean[][], [] as number[]];
      for (const [program, input] of [
        [mixed, x],
        [inPlace, x.double()],
        [whole, x.double()],
      ] as const) {
        const [ofCpu, there] = [input.clone(), await input.to("gpu")];
        const wanted = [program.module()(ofCpu), ofCpu].flat() as tracefx.Tensor[];
        for (const device of ["gpu", "auto"] as const) {
          const given = device === "gpu" ? there : await input.to("gpu");
          sinceLast();
          const results = await program.module({ device }).runAsync([given], { outputs: "gpu" });
          nDispatches.push(sinceLast().dispatches);
          const got = await Promise.all(([results, given].flat() as tracefx.GpuTensor[]).map((it) => it.cpu()));
          rows.push(
            got.map((it, at) => it.dtype === wanted[at]?.dtype && torch.allclose(it, wanted[at] as tracefx.Tensor)),
          );
        }
      }
      return { rows, nDispatches };
    });
    expect(found.rows).toEqual([
      [true, true, true],
      [true, true, true],
      [true, true],
      [true, true],
      [true, true],
      [true, true],
    ]);
    expect(found.nDispatches.map((it) => it > 0)).toEqual([true, true, true, true, false, false]);
  },
  PATIENCE,
);

test(
  "is not changed twice where a run fails after it was changed, and the CPU may go on",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const weight = torch.ones(3);
      const program = programOf((a) => [a.add_(1), weight], torch.zeros(3));
      const module = program.module({ device: "auto" });
      const x = await torch.zeros(3).to("gpu");
      const values: unknown[] = [];
      const run = async () => {
        const refused = await refusal(() => module.runAsync([x], { outputs: "gpu" }));
        values.push([(await x.cpu()).toArray(), refused.slice(0, 6)]);
      };
      await run();
      // The result that is a weight goes up after the run.
      const { writeBuffer } = GPUQueue.prototype;
      GPUQueue.prototype.writeBuffer = () => {
        throw new Error("no more");
      };
      await run();
      GPUQueue.prototype.writeBuffer = writeBuffer;
      await run();
      return values;
    });
    expect(found).toEqual([
      [[1, 1, 1], "no err"],
      [[2, 2, 2], "FX0707"],
      [[3, 3, 3], "no err"],
    ]);
  },
  PATIENCE,
);

test(
  "is made of a buffer of the caller's, which stays the caller's, and gives its own",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const device = (await (await navigator.gpu.requestAdapter())?.requestDevice()) as GPUDevice;
      const [COPY_SRC, COPY_DST, STORAGE] = [4, 8, 128];
      const make = (words: Uint32Array | Float32Array, usage = COPY_SRC | COPY_DST | STORAGE) => {
        const buffer = device.createBuffer({ size: words.byteLength, usage, mappedAtCreation: true });
        new Uint8Array(buffer.getMappedRange()).set(new Uint8Array(words.buffer));
        buffer.unmap();
        return buffer;
      };
      const [numbers, flags] = [make(Float32Array.of(1, 2, 3, 4, 5, 6)), make(Uint32Array.of(1, 0, 1))];
      const x = await probe.tensorFromGpuBuffer(numbers, { device, dtype: "float32", shape: [2, 3] });
      const mask = await probe.tensorFromGpuBuffer(flags, { device, dtype: "bool", shape: [3] });
      const program = programOf((a, b) => torch.where(b, a, 0), torch.zeros(2, 3), torch.tensor([true, false, true]));
      const module = program.module({ device });
      sinceLast();
      const result = (await module.runAsync([x, mask], { outputs: "gpu" })) as tracefx.GpuTensor;
      const counts = sinceLast();
      // The caller's own commands see the result.
      const copy = device.createBuffer({ size: 24, usage: COPY_DST | 1 });
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(result.buffer as unknown as GPUBuffer, 0, copy, 0, 24);
      device.queue.submit([encoder.finish()]);
      await copy.mapAsync(1);
      const seen = [...new Float32Array(copy.getMappedRange())];
      const { destroy } = GPUBuffer.prototype;
      const destroyed: GPUBuffer[] = [];
      GPUBuffer.prototype.destroy = function () {
        destroyed.push(this);
        destroy.call(this);
      };
      for (const it of [x, mask, result]) it.dispose();
      const isGiven = [destroyed.length, destroyed[0] === undefined, destroyed.includes(numbers)];
      GPUBuffer.prototype.destroy = destroy;
      const options = { device, dtype: "float32", shape: [2, 3] } as const;
      const inPlace = programOf((a) => a.add_(1), torch.zeros(2, 3)).module({ device });
      const readOnly = await probe.tensorFromGpuBuffer(make(new Float32Array(6), COPY_SRC), options);
      // The CPU may write to it, as far as it knows, and does not.
      const onCpu = programOf((a) => torch.zeros(3).add_(a.double().sum(0)).add(1), torch.zeros(2, 3)).module({
        device,
      });
      return {
        seen,
        counts,
        isGiven,
        ofReadOnly: ((await onCpu.runAsync([readOnly])) as tracefx.Tensor).toArray(),
        refused: [
          await refusal(() => probe.tensorFromGpuBuffer(numbers, { ...options, shape: [3, 3] })),
          await refusal(() => probe.tensorFromGpuBuffer(make(new Float32Array(6), STORAGE), options)),
          await refusal(() => inPlace.runAsync([readOnly])),
          await refusal(() => program.module({ device: "gpu" }).runAsync([readOnly, torch.ones(3).bool()])),
        ],
      };
    });
    expect(found.seen).toEqual([1, 0, 3, 4, 0, 6]);
    expect(found.counts).toMatchObject({ readbacks: 0, bytesUp: 0, bytesDown: 0 });
    expect(found.isGiven).toEqual([1, false, false]);
    expect(found.ofReadOnly).toEqual([1, 1, 1]);
    expect(found.refused[0]).toContain("has 36 bytes on a GPU, not 24");
    expect(found.refused[1]).toContain("GPUBufferUsage.COPY_SRC");
    expect(found.refused[2]).toContain("GPUBufferUsage.COPY_DST");
    expect(found.refused[3]).toMatch(/the input 0 is on another GPU.*\n.*x\.cpu\(\)/u);
  },
  PATIENCE,
);

test(
  "is made of images, canvases and frames of videos, and an image that has no pixels is refused",
  async () => {
    const found = await page.evaluate(async () => {
      const pixels = Uint8ClampedArray.of(255, 0, 51, 255, 0, 102, 0, 255, 0, 0, 255, 255);
      const image = new ImageData(pixels, 3, 1);
      const canvas = new OffscreenCanvas(3, 1);
      canvas.getContext("2d")?.putImageData(image, 0, 0);
      const frame = new VideoFrame(canvas, { timestamp: 0 });
      const program = programOf((a) => a.mul(5).round(), probe.torch.zeros(1, 3, 1, 3));
      const module = program.module({ device: "gpu" });
      sinceLast();
      const rows = [];
      for (const source of [await createImageBitmap(image), canvas, frame]) {
        const there = await probe.tensorFromImage(source);
        const { bytesUp, bytesDown } = sinceLast();
        rows.push([there.shape, bytesUp + bytesDown, ((await module.runAsync([there])) as tracefx.Tensor).toArray()]);
        sinceLast();
        there.dispose();
      }
      frame.close();
      const device = (await (await navigator.gpu.requestAdapter())?.requestDevice()) as GPUDevice;
      const own = await probe.tensorFromImage(canvas, { device });
      return {
        rows,
        own: (await own.cpu()).shape,
        refused: [
          await refusal(() => probe.tensorFromImage({})),
          await refusal(() => probe.tensorFromImage(document.createElement("video"))),
          await refusal(() => probe.tensorFromImage(frame)),
          await refusal(() => probe.tensorFromImage({ width: 3, height: 1 } as object)),
        ],
      };
    });
    const colours = [[[[5, 0, 0]], [[0, 2, 0]], [[1, 0, 5]]]];
    expect(found.rows).toEqual(Array.from({ length: 3 }, () => [[1, 3, 1, 3], 0, colours]));
    expect(found.own).toEqual([1, 3, 1, 3]);
    for (const it of found.refused) expect(it).toMatch(/FX0304/u);
  },
  PATIENCE,
);

test(
  "is made of a texture of the caller's, of any format of fractions, where it is",
  async () => {
    const found = await page.evaluate(async () => {
      const adapter = (await navigator.gpu.requestAdapter()) as GPUAdapter;
      const device = await adapter.requestDevice();
      const [COPY_DST, TEXTURE_BINDING, RENDER_ATTACHMENT] = [2, 4, 16];
      const made = (format: GPUTextureFormat, more: Partial<GPUTextureDescriptor> = {}) =>
        device.createTexture({ size: [2, 1], format, usage: COPY_DST | TEXTURE_BINDING, ...more });
      /** Two pixels of a format. */
      const filled = (format: GPUTextureFormat, data: ArrayBufferView<ArrayBuffer>) => {
        const texture = made(format);
        device.queue.writeTexture({ texture }, data, {}, [2, 1]);
        return texture;
      };
      const textures = [
        filled("rgba8unorm", Uint8Array.of(255, 0, 51, 255, 0, 102, 0, 255)),
        filled("bgra8unorm", Uint8Array.of(51, 0, 255, 255, 0, 102, 0, 255)),
        filled("rgba8snorm", Int8Array.of(-127, 0, 127, 0, 127, 0, 0, 0)),
        // The bits of 1, 0.5, -2 and 0 as halves.
        filled("rgba16float", Uint16Array.of(0x3c00, 0x3800, 0xc000, 0, 0, 0x3c00, 0, 0)),
        // What cannot be filtered is read all the same.
        filled("rgba32float", Float32Array.of(0.25, 7, -3, 1, 0, 0, 0.5, 1)),
        filled("r8unorm", Uint8Array.of(255, 51)),
        made("rgba8unorm", { mipLevelCount: 2 }),
      ];
      const rows = [];
      sinceLast();
      for (const texture of textures) {
        const there = await probe.tensorFromImage(texture, { device });
        const { bytesUp, bytesDown } = sinceLast();
        rows.push([texture.format, bytesUp + bytesDown, (await there.cpu()).mul(20).round().div(4).toArray()]);
        sinceLast();
      }
      const destroyed = made("rgba8unorm");
      destroyed.destroy();
      const other = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      const lost = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      lost.destroy();
      await lost.lost;
      const wrong: Record<string, [GPUTexture, GPUDevice | "gpu" | undefined]> = {
        usage: [made("rgba8unorm", { usage: COPY_DST }), device],
        whole: [made("rgba8uint"), device],
        depth: [made("depth24plus", { usage: TEXTURE_BINDING }), device],
        layers: [made("rgba8unorm", { size: [2, 1, 3] }), device],
        volume: [made("rgba8unorm", { dimension: "3d", size: [2, 1, 1] }), device],
        samples: [made("rgba8unorm", { sampleCount: 4, usage: TEXTURE_BINDING | RENDER_ATTACHMENT }), device],
        destroyed: [destroyed, device],
        other: [textures[0] as GPUTexture, other],
        lost: [textures[0] as GPUTexture, lost],
        noDevice: [textures[0] as GPUTexture, undefined],
        ofModules: [textures[0] as GPUTexture, "gpu"],
      };
      const refused: Record<string, string> = {};
      for (const [name, [texture, on]] of Object.entries(wrong)) {
        const options = on === undefined ? {} : { device: on };
        refused[name] = await refusal(() => probe.tensorFromImage(texture, options));
      }
      // What was refused leaves the device as it was.
      const [first] = textures;
      const again = await (await probe.tensorFromImage(first as GPUTexture, { device })).cpu();
      return { rows, refused, again: again.shape };
    });
    expect(found.rows).toEqual([
      ["rgba8unorm", 0, inRow([5, 0], [0, 2], [1, 0])],
      ["bgra8unorm", 0, inRow([5, 0], [0, 2], [1, 0])],
      ["rgba8snorm", 0, inRow([-5, 5], [0, 0], [5, 0])],
      ["rgba16float", 0, inRow([5, 0], [2.5, 5], [-10, 0])],
      ["rgba32float", 0, inRow([1.25, 0], [35, 0], [-15, 2.5])],
      ["r8unorm", 0, inRow([5, 1], [0, 0], [0, 0])],
      ["rgba8unorm", 0, inRow([0, 0], [0, 0], [0, 0])],
    ]);
    const { lost, ...others } = found.refused;
    for (const [name, it] of Object.entries(others)) expect(it, name).toContain("FX0304");
    expect(others["usage"]).toContain("GPUTextureUsage.TEXTURE_BINDING");
    expect(others["whole"]).toContain("not rgba8uint");
    expect(others["depth"]).toContain("not depth24plus");
    for (const name of ["layers", "volume", "samples"]) expect(others[name]).toContain("one layer and one sample");
    for (const name of ["destroyed", "other"]) expect(others[name]).toContain("the texture is refused");
    for (const name of ["noDevice", "ofModules"]) expect(others[name]).toContain("options.device");
    expect(lost).toContain("FX0707");
    expect(found.again).toEqual([1, 3, 1, 2]);
  },
  PATIENCE,
);

test(
  "is drawn to canvases and textures without crossing, as a view too, and clamped",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const device = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      const of = async (values: number[], ...shape: number[]) =>
        await torch.tensor(values, { dtype: "float32" }).div(255).reshape(shape).to(device);
      const COLOURS = [255, 0, 51, 102, 0, 153, 0, 255, 7, 8, 9, 10, 30, 40, 50, 60, 70, 80];
      const picture = await of(COLOURS, 1, 3, 2, 3);
      const canvas = new OffscreenCanvas(9, 9);
      const element = document.createElement("canvas");
      const pictures: Record<string, number[]> = {};
      await probe.drawTensor(picture, canvas);
      sinceLast();
      await probe.drawTensor(picture, canvas);
      const counts = sinceLast();
      pictures["canvas"] = shown(canvas);
      const sizes = [canvas.width, canvas.height];
      await probe.drawTensor(picture, element);
      pictures["element"] = shown(element);
      // Views: turned over, a slice that begins later, one row for all, and planes that lie pixel by pixel.
      const input = await of([...Array(24).keys()], 2, 4, 3, 1);
      const views = programOf(
        (a) => [
          a.select(0, 1).narrow(0, 1, 3).transpose(1, 2),
          a.select(0, 0).select(0, 2),
          a.select(0, 0).narrow(0, 0, 1).expand(1, 3, 2),
          a.select(0, 1).narrow(0, 1, 3).permute(2, 1, 0),
          a.add(1),
        ],
        torch.zeros(2, 4, 3, 1),
      ).module({ device });
      const given = (await views.runAsync([input], { outputs: "gpu" })) as tracefx.GpuTensor[];
      for (const [at, it] of given.slice(0, 4).entries()) {
        await probe.drawTensor(it, canvas);
        pictures[`view ${at} ${it.shape.join()} ${it.stride().join()} from ${it.storageOffset()}`] = shown(canvas);
      }
      const areViews = given.slice(0, 4).every((it) => it.buffer === input.buffer);
      const grey = await torch.tensor([[-1, 0.2, 4]], { dtype: "float16" }).to(device);
      await probe.drawTensor(grey, canvas);
      pictures["clamped"] = shown(canvas);
      await probe.drawTensor(await of([255, 0, 0, 51], 4, 1, 1), canvas);
      // Half of a colour is seen with its alpha.
      pictures["alpha"] = shown(canvas);
      // A configuration of the caller's is kept, and one of another device is not.
      const own = new OffscreenCanvas(3, 2);
      const context = own.getContext("webgpu") as GPUCanvasContext;
      context.configure({ device, format: "rgba16float", alphaMode: "premultiplied" });
      await probe.drawTensor(picture, own);
      const kept = context.getConfiguration()?.format;
      pictures["own"] = shown(own);
      await probe.drawTensor(await picture.cpu().then((it) => it.to("gpu")), own);
      const isOther = context.getConfiguration()?.device !== device;
      pictures["other"] = shown(own);
      // Two at once, of which one keeps the configuration of the caller's and the other has none of use there.
      context.configure({ device, format: "rgba16float", alphaMode: "opaque" });
      const seen = await of([255, 0, 0, 51], 4, 1, 1);
      await Promise.all([probe.drawTensor(picture, own), probe.drawTensor(seen, own)]);
      return { pictures, counts, sizes, kept, isOther, areViews };
    });
    const planes = [
      [255, 0, 51, 102, 0, 153],
      [0, 255, 7, 8, 9, 10],
      [30, 40, 50, 60, 70, 80],
    ];
    const picture = (planes[0] as number[]).flatMap((_, at) => [...planes.map((it) => it[at] as number), 255]);
    expect(found.pictures).toEqual({
      canvas: picture,
      element: picture,
      "view 0 3,1,3 3,1,1 from 15": [15, 18, 21, 255, 16, 19, 22, 255, 17, 20, 23, 255],
      "view 1 3,1 1,1 from 6": greys(6, 7, 8),
      "view 2 1,3,2 3,1,0 from 0": greys(0, 0, 1, 1, 2, 2),
      "view 3 1,3,3 1,1,3 from 15": greys(15, 18, 21, 16, 19, 22, 17, 20, 23),
      clamped: greys(0, 51, 255),
      alpha: [255, 0, 0, 51],
      own: picture,
      other: picture,
    });
    // How the picture lies goes up, and nothing of it.
    expect(found.counts).toMatchObject({ submissions: 1, readbacks: 0, bytesUp: 20, bytesDown: 0, bytesCopied: 0 });
    expect(found).toMatchObject({ sizes: [3, 2], kept: "rgba16float", isOther: true, areViews: true });
  },
  PATIENCE,
);

test(
  "goes into a texture of the caller's and comes out of it as it was, in every format that can be drawn to",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const device = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      const [COPY_SRC, TEXTURE_BINDING, RENDER_ATTACHMENT] = [1, 4, 16];
      const made = (format: GPUTextureFormat, more: Partial<GPUTextureDescriptor> = {}) => {
        const usage = RENDER_ATTACHMENT | TEXTURE_BINDING | COPY_SRC;
        return device.createTexture({ size: [5, 2], format, usage, ...more });
      };
      torch.manualSeed(3);
      const colours = torch.rand(1, 3, 2, 5).mul(255).round().div(255);
      const x = await colours.to(device);
      const far: Record<string, number> = {};
      for (const format of [
        "rgba8unorm",
        "bgra8unorm",
        "rgba8unorm-srgb",
        "rgba16float",
        "rgba32float",
        "rgb10a2unorm",
      ] as const) {
        const texture = made(format);
        await probe.drawTensor(x, texture);
        const back = await probe.tensorFromImage(texture, { device });
        far[format] = Number((await back.cpu()).sub(colours).abs().max().item());
      }
      const red = made("r8unorm", { mipLevelCount: 2 });
      await probe.drawTensor(x, red);
      const ofRed = await probe.tensorFromImage(red, { device });
      const isRed = torch.allclose((await ofRed.cpu()).get(0).get(0), colours.get(0).get(0));
      // Alpha is beside the colours, which are not multiplied by it.
      const four = await torch.tensor([1, 0.2, 0, 0.4]).reshape(4, 1, 1).to(device);
      const straight = made("rgba8unorm", { size: [1, 1] });
      await probe.drawTensor(four, straight);
      const staging = device.createBuffer({ size: 256, usage: 9 });
      const encoder = device.createCommandEncoder();
      encoder.copyTextureToBuffer({ texture: straight }, { buffer: staging, bytesPerRow: 256 }, [1, 1]);
      device.queue.submit([encoder.finish()]);
      await staging.mapAsync(1);
      const pixel = [...new Uint8Array(staging.getMappedRange(0, 4))];
      return { far, isRed, pixel };
    });
    const { rgba16float: halves, "rgba8unorm-srgb": linear, rgb10a2unorm: tens, ...exact } = found.far;
    for (const [format, it] of Object.entries(exact)) expect(it, format).toBeLessThan(1e-6);
    expect(halves).toBeLessThan(2 ** -11);
    expect(tens).toBeLessThan(1 / 2046);
    expect(linear).toBeLessThan(1 / 128);
    expect(found.isRed).toBe(true);
    expect(found.pixel).toEqual([255, 51, 0, 102]);
  },
  PATIENCE,
);

test(
  "is refused as a picture where it is none, where the target is none, and when it is gone",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const device = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      const other = await ((await navigator.gpu.requestAdapter()) as GPUAdapter).requestDevice();
      const [COPY_SRC, STORAGE, TEXTURE_BINDING, RENDER_ATTACHMENT] = [4, 128, 4, 16];
      const made = (format: GPUTextureFormat, more: Partial<GPUTextureDescriptor> = {}, of = device) =>
        of.createTexture({ size: [2, 2], format, usage: RENDER_ATTACHMENT, ...more });
      const zeros = async (...shape: number[]) => await torch.zeros(shape).to(device);
      const x = await zeros(3, 2, 2);
      const canvas = new OffscreenCanvas(2, 2);
      const taken = new OffscreenCanvas(2, 2);
      taken.getContext("2d");
      const gone = document.createElement("canvas");
      gone.transferControlToOffscreen();
      const destroyed = made("rgba8unorm");
      destroyed.destroy();
      const disposed = await zeros(3, 2, 2);
      disposed.dispose();
      const buffer = device.createBuffer({ size: 48, usage: COPY_SRC });
      const unseen = await probe.tensorFromGpuBuffer(buffer, { device, dtype: "float32", shape: [3, 2, 2] });
      const lent = device.createBuffer({ size: 48, usage: COPY_SRC | STORAGE });
      const given = await probe.tensorFromGpuBuffer(lent, { device, dtype: "float32", shape: [3, 2, 2] });
      lent.destroy();
      const draw = (tensor: tracefx.GpuTensor, ...[target]: unknown[]) =>
        refusal(() => probe.drawTensor(tensor, (target ?? canvas) as OffscreenCanvas));
      const refused = {
        FX0602: [
          await draw(torch.zeros(3, 2, 2) as unknown as tracefx.GpuTensor),
          await draw(await torch.zeros(3, 2, 2).to("uint8").to(device)),
          await draw(await torch.zeros(3, 2, 2).double().to(device)),
          await draw(undefined as unknown as tracefx.GpuTensor),
        ],
        FX0603: [
          await draw(await zeros(2)),
          await draw(await zeros(2, 2, 2)),
          await draw(await zeros(2, 3, 2, 2)),
          await draw(await zeros(1, 1, 3, 2, 2)),
          await draw(await zeros(3, 0, 2)),
          await draw(x, made("rgba8unorm", { size: [3, 2] })),
        ],
        FX0304: [
          await draw(x, 5),
          await draw(x, {}),
          await draw(x, taken),
          await draw(x, gone),
          await draw(x, made("rgba8unorm", { usage: TEXTURE_BINDING })),
          await draw(x, made("rgba8uint")),
          await draw(x, made("depth24plus")),
          await draw(x, made("rgba8unorm", { size: [2, 2, 2] })),
          await draw(x, made("rgba8unorm", { sampleCount: 4 })),
          await draw(x, made("rgba8unorm", {}, other)),
          await draw(x, destroyed),
          await draw(unseen),
          await draw(given),
        ],
        FX0701: [await draw(disposed)],
      };
      // It is drawn though it was given up while what draws was compiled.
      const givenUp = await zeros(3, 2, 2);
      const { createRenderPipelineAsync } = GPUDevice.prototype;
      GPUDevice.prototype.createRenderPipelineAsync = function (descriptor) {
        givenUp.dispose();
        return createRenderPipelineAsync.call(this, descriptor);
      };
      const after = [await draw(givenUp, made("rgba16float")), givenUp.isDisposed];
      GPUDevice.prototype.createRenderPipelineAsync = createRenderPipelineAsync;
      const buffers = buffersFromNow();
      await probe.drawTensor(x, canvas);
      await draw(x, destroyed);
      const left = buffers.living.size;
      buffers.stop();
      device.destroy();
      await device.lost;
      const lost = await draw(x);
      return { refused, after, left, lost };
    });
    for (const [code, texts] of Object.entries(found.refused)) {
      for (const [at, it] of texts.entries()) expect(it, `${code} ${at}`).toContain(code);
    }
    expect(found.refused.FX0602[0]).toContain('await x.to("gpu")');
    expect(found.refused.FX0603[2]).toContain("[2, 3, 2, 2]");
    expect(found.refused.FX0304[2]).toContain("context of another kind");
    expect(found.refused.FX0304[4]).toContain("GPUTextureUsage.RENDER_ATTACHMENT");
    expect(found.refused.FX0304[11]).toContain("GPUBufferUsage.STORAGE");
    expect(found.refused.FX0304[12]).toContain("x.buffer");
    expect(found).toMatchObject({ after: ["no error", true], left: 0, lost: expect.stringContaining("FX0707") });
  },
  PATIENCE,
);

test(
  "is refused by the CPU, when it is disposed of, when it is of other sizes, and when its device is lost",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const program = programOf((a) => a.add(1), torch.zeros(3));
      const module = program.module({ device: "gpu" });
      const auto = program.module({ device: "auto" });
      const x = await torch.ones(3).to("gpu");
      const asTensor = x as unknown as tracefx.Tensor;
      const disposed = await torch.ones(3).to("gpu");
      disposed.dispose();
      const refused = {
        add: await refusal(() => torch.add(torch.ones(3), asTensor)),
        data: await refusal(() => asTensor.data),
        item: await refusal(() => asTensor.get(0).item()),
        save: await refusal(() => probe.writeSafetensors(new Map([["x", asTensor]]))),
        cpuModule: await refusal(() => program.module()(asTensor)),
        cpuOutputs: await refusal(() => program.module().runAsync([torch.ones(3)], { outputs: "gpu" })),
        disposed: await refusal(() => module.runAsync([disposed])),
        shape: await refusal(async () => await module.runAsync([await torch.ones(4).to("gpu")])),
        dtype: await refusal(async () => await module.runAsync([await torch.ones(3).long().to("gpu")])),
      };
      const device = (await (await navigator.gpu.requestAdapter())?.requestDevice()) as GPUDevice;
      const own = await torch.ones(3).to(device);
      const { requestAdapter } = GPU.prototype;
      GPU.prototype.requestAdapter = async () => null;
      device.destroy();
      await device.lost;
      const lost = [
        await refusal(() => own.cpu()),
        await refusal(() => program.module({ device }).runAsync([own])),
        await refusal(() => auto.runAsync([own])),
      ];
      GPU.prototype.requestAdapter = requestAdapter;
      return { refused, lost, after: ((await module.runAsync([x])) as tracefx.Tensor).toArray() };
    });
    for (const name of ["add", "data", "item", "save", "cpuModule"] as const) {
      expect(found.refused[name], name).toMatch(/FX0602.*the tensor is on the GPU.*\n.*await x\.cpu\(\)/su);
    }
    expect(found.refused.cpuOutputs).toContain("FX0702");
    expect(found.refused.disposed).toContain("FX0701");
    expect(found.refused.shape).toContain("FX0603");
    expect(found.refused.dtype).toContain("FX0602");
    for (const it of found.lost) expect(it).toMatch(/FX0707.*lost/u);
    expect(found.after).toEqual([2, 2, 2]);
  },
  PATIENCE,
);

test(
  "gives its memory back, and stays on the CPU with `auto` where there is no GPU",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const program = programOf((a) => [a.add(1), a.mul(2)], torch.zeros(3));
      const module = program.module({ device: "gpu" });
      const x = await torch.ones(3).to("gpu");
      for (const it of (await module.runAsync([x], { outputs: "gpu" })) as tracefx.GpuTensor[]) it.dispose();
      const buffers = buffersFromNow();
      for (let round = 0; round < 3; round++) {
        for (const it of (await module.runAsync([x], { outputs: "gpu" })) as tracefx.GpuTensor[]) {
          await it.cpu();
          it.dispose();
        }
      }
      const left = buffers.living.size;
      // The device refuses what a run tells it, and the run has nothing of the device afterwards.
      const { popErrorScope } = GPUDevice.prototype;
      GPUDevice.prototype.popErrorScope = async function () {
        await popErrorScope.call(this);
        return new GPUValidationError("no");
      };
      const refused = await refusal(() => module.runAsync([x], { outputs: "gpu" }));
      GPUDevice.prototype.popErrorScope = popErrorScope;
      const leftAfter = buffers.living.size;
      buffers.stop();
      return {
        left,
        refused,
        leftAfter,
        again: ((await module.runAsync([x])) as tracefx.Tensor[]).map((it) => it.toArray()),
      };
    });
    expect(found).toMatchObject({
      left: 0,
      leftAfter: 0,
      again: [
        [2, 2, 2],
        [2, 2, 2],
      ],
    });
    expect(found.refused).toContain("FX0901");
    const without = await gpuPage(false);
    try {
      const said = await without.page.evaluate(async () => {
        await probe.init();
        class Net extends probe.nn.Module {
          override forward(x: tracefx.Tensor): tracefx.Tensor {
            return x.add(1);
          }
        }
        const x = probe.torch.ones(2);
        const module = probe.exportProgram(new Net(), [x]).module({ device: "auto" });
        const result = (await module.runAsync([x], { outputs: "gpu" })) as tracefx.Tensor;
        const missing = await x.to("gpu").then(String, (it: Error) => it.message);
        return [String(result.device), result.toArray(), missing];
      });
      expect(said).toEqual(["cpu", [2, 2], expect.stringContaining("FX0706")]);
    } finally {
      await without.close();
    }
  },
  PATIENCE,
);

test(
  "has memory of its own where its elements are others on the device than those that it looks at",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const x = torch.tensor([1, -2, 0.5, 3], { dtype: "float16" });
      const bits = (dtype: string) => (a: tracefx.Tensor, b: tracefx.Tensor) => [
        torch.ops["aten"]?.["view"]?.["dtype"]?.(a, dtype) as tracefx.Tensor,
        b.add(1),
      ];
      const rows: boolean[] = [];
      for (const [input, dtype] of [
        [x, "int16"],
        [torch.tensor([1.5, -2]), "int32"],
        [torch.tensor([1, 2, 3, 4, 5, 6, 7, 8], { dtype: "uint8" }), "int32"],
      ] as const) {
        const program = programOf(bits(dtype), input, torch.ones(2));
        const [wanted] = program.module()(input, torch.ones(2)) as [tracefx.Tensor];
        const results = await program
          .module({ device: "gpu" })
          .runAsync([await input.to("gpu"), torch.ones(2)], { outputs: "gpu" });
        const [there] = results as [tracefx.GpuTensor];
        const next = programOf((a) => a.mul(2), wanted);
        const got = await next.module({ device: "gpu" }).runAsync([there]);
        rows.push(torch.equal(await there.cpu(), wanted), torch.equal(got as tracefx.Tensor, wanted.mul(2)));
      }
      return rows;
    });
    expect(found).toEqual(Array(6).fill(true));
  },
  PATIENCE,
);

test(
  "is refused beside another one of its buffer where a program writes, and is read though it was given up",
  async () => {
    const found = await page.evaluate(async () => {
      const { torch } = probe;
      const adds = programOf((a, b) => a.add_(1).mul(b), torch.zeros(3), torch.ones(3)).module({ device: "gpu" });
      const reads = programOf((a, b) => a.mul(b), torch.zeros(3), torch.ones(3)).module({ device: "gpu" });
      const x = await torch.tensor([1, 2, 3], { dtype: "float32" }).to("gpu");
      const gpu = (await navigator.gpu.requestAdapter()) as GPUAdapter;
      const device = await gpu.requestDevice();
      // `COPY_SRC` and `COPY_DST`.
      const usage = 4 | 8;
      const buffer = device.createBuffer({ size: 12, usage });
      const options = { device, dtype: "float32", shape: [3] } as const;
      const [one, other] = [
        await probe.tensorFromGpuBuffer(buffer, options),
        await probe.tensorFromGpuBuffer(buffer, options),
      ];
      const own = programOf((a, b) => a.add_(1).mul(b), torch.zeros(3), torch.ones(3)).module({ device });
      const promised = (await torch.tensor([4, 5, 6]).to("gpu")) as tracefx.GpuTensor;
      const read = promised.cpu();
      promised.dispose();
      return {
        twice: (await refusal(() => own.runAsync([one, other]))).split("\n")[0],
        same: ((await adds.runAsync([x, x])) as tracefx.Tensor).toArray(),
        square: ((await reads.runAsync([x, x])) as tracefx.Tensor).toArray(),
        read: (await read).toArray(),
      };
    });
    expect(found).toEqual({
      twice: "FX0602: the inputs 0 and 1 are of one buffer, and the program writes to inputs",
      same: [4, 9, 16],
      square: [4, 9, 16],
      read: [4, 5, 6],
    });
  },
  PATIENCE,
);
