/** Tensors that stay on the GPU of a real browser between calls, whose work a processor does. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as tracefx from "../../ts/src/index.ts";
import { count, gpuPage } from "./gpu.mjs";
import type { counter } from "./gpuCounter.mjs";
import type * as helpers from "./gpuHelpers.mjs";

declare const probe: typeof tracefx & { counter: typeof counter };

const PATIENCE = 120_000;

let host: Awaited<ReturnType<typeof gpuPage>>;
let page: Page;

beforeAll(async () => {
  host = await gpuPage();
  ({ page } = host);
  await count(page);
}, PATIENCE);

afterAll(async () => {
  await host?.close();
});

declare const programOf: typeof helpers.programOf;
declare const buffersFromNow: typeof helpers.buffersFromNow;
declare const refusal: typeof helpers.refusal;
declare const sinceLast: ReturnType<typeof counter>;

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
