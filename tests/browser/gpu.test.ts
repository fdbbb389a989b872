/** Programs on the GPU of a real browser, whose work a processor does: PyTorch's numbers, one submission a run, and typed errors where it fails. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as tracefx from "../../ts/src/index.ts";
import type { PlanOnGpu, RunCounts } from "../../ts/src/gpu/plan.ts";
import { gpuPage } from "./gpu.mjs";
import type { counter } from "./gpuCounter.mjs";
import type * as helpers from "./gpuHelpers.mjs";

declare const probe: typeof tracefx & { PlanOnGpu: { prototype: PlanOnGpu }; counter: typeof counter };

const PATIENCE = 120_000;
const PROGRAMS = "/tests/fixtures/programs";
const FIXTURES = fileURLToPath(new URL("../fixtures/programs", import.meta.url));

let host: Awaited<ReturnType<typeof gpuPage>>;
let page: Page;

beforeAll(async () => {
  host = await gpuPage();
  ({ page } = host);
  await page.evaluate(async (programs) => {
    await probe.init();
    const file = async (path: string) => new Uint8Array(await (await fetch(`${programs}/${path}`)).arrayBuffer());
    const plans: PlanOnGpu[] = [];
    const { prototype } = probe.PlanOnGpu;
    const { run } = prototype;
    prototype.run = async function (...given) {
      plans.push(this);
      return await run.apply(this, given);
    };
    Object.assign(globalThis, {
      plans,
      tensors: async (path: string) => probe.readSafetensors(await file(path)).tensors,
      digits: await probe.load(`${programs}/digits_cnn/model.pt2`),
    });
  }, PROGRAMS);
}, PATIENCE);

afterAll(async () => {
  await host?.close();
});

declare const plans: PlanOnGpu[];
declare const digits: tracefx.ExportedProgram;
declare const refusal: typeof helpers.refusal;
declare const tensors: (path: string) => Promise<Map<string, tracefx.Tensor>>;

test(
  "gives PyTorch's numbers, with one submission and one readback a run, and keeps what it compiled",
  async () => {
    const found = await page.evaluate(async () => {
      const [inputs, expected] = [
        await tensors("digits_cnn/inputs.safetensors"),
        await tensors("digits_cnn/expected.safetensors"),
      ];
      const module = digits.module({ device: "gpu" });
      const sinceLast = probe.counter();
      const counts = [];
      const told = [];
      let far = 0;
      for (let round = 0; round < 3; round++) {
        const [output] = (await module.runFlatAsync([inputs.get("in0")])) as tracefx.Tensor[];
        told.push(sinceLast());
        const [got, want] = [output?.data, expected.get("out0")?.data] as Float32Array[];
        far = Math.max(far, ...Array.from(want as Float32Array, (it, at) => Math.abs(it - (got?.[at] ?? Number.NaN))));
        counts.push(plans.at(-1)?.counts);
      }
      module.dispose();
      return {
        far,
        counts,
        told,
        onCpu: plans.at(-1)?.program.steps.filter(({ work }) => "cpu" in work).length,
        same: new Set(plans.slice(-3)).size,
      };
    });
    expect(found.far).toBeLessThan(1e-4);
    expect(found.onCpu).toBe(0);
    expect(found.same).toBe(1);
    for (const it of found.counts) expect(it).toMatchObject({ submissions: 1, readbacks: 1 });
    // What it says of itself is what WebGPU was told.
    for (const [at, it] of found.told.entries()) expect(it).toMatchObject(found.counts[at] as RunCounts);
    // The weights stay.
    expect(found.counts[1]?.bytesUp).toBeLessThan(found.counts[0]?.bytesUp as number);
    expect(found.counts[2]?.bytesUp).toBe(found.counts[1]?.bytesUp);
  },
  PATIENCE,
);

test(
  "gives PyTorch's numbers for the recorded programs, whatever of them is the CPU's",
  async () => {
    const run = fileURLToPath(new URL("../conformance/run.mjs", import.meta.url));
    const args = [run, "programs", FIXTURES, "--engine", "browser", "--device", "gpu"];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    // A subclass of tensors is Python's.
    expect(stdout).toMatch(/\n29 passed, 0 failed, 1 skipped\n$/);
    const [, onDevice] = /(\d+) on the device/.exec(stdout) ?? [];
    expect(Number(onDevice)).toBeGreaterThan(200);
  },
  2 * PATIENCE,
);

test(
  "tells the device a network of attention and one of depthwise convolutions at once, each time",
  async () => {
    const found = await page.evaluate(async () => {
      const { nn, torch } = probe;
      torch.manualSeed(0);
      class Residual extends nn.Module {
        layers = new nn.Sequential(
          new nn.Conv2d(8, 32, 1),
          new nn.BatchNorm2d(32),
          new nn.ReLU6(),
          new nn.Conv2d(32, 32, 3, { padding: 1, groups: 32 }),
          new nn.ReLU6(),
          new nn.Conv2d(32, 8, 1),
        );
        override forward(x: tracefx.Tensor): tracefx.Tensor {
          return this.layers.forward(x).add(x) as tracefx.Tensor;
        }
      }
      const networks = [
        [new nn.TransformerEncoderLayer(16, 2, { dimFeedforward: 32, batchFirst: true }), torch.randn(2, 5, 16)],
        [new Residual(), torch.randn(1, 8, 12, 12)],
      ] as const;
      const rows = [];
      for (const [network, input] of networks) {
        const program = probe.exportProgram(network.eval(), [input]);
        const [cpu, gpu] = [program.module(), program.module({ device: "gpu" })];
        const wanted = (cpu(input) as tracefx.Tensor).data as Float32Array;
        for (let round = 0; round < 2; round++) {
          const got = ((await gpu.runAsync([input])) as tracefx.Tensor).data as Float32Array;
          const far = Math.max(...wanted.map((it, at) => Math.abs(it - (got[at] ?? Number.NaN))));
          rows.push({ far, ...plans.at(-1)?.counts });
        }
      }
      return rows;
    });
    expect(found).toHaveLength(4);
    for (const row of found) {
      expect(row).toMatchObject({ submissions: 1, readbacks: 1 });
      expect(row.far).toBeLessThan(1e-5);
    }
  },
  PATIENCE,
);

test(
  "refuses a position that is none in the words of the CPU, and goes on",
  async () => {
    const [onCpu, onGpu, after] = await page.evaluate(async () => {
      class Net extends probe.nn.Module {
        table = new probe.nn.Embedding(5, 3);
        override forward(x: tracefx.Tensor): tracefx.Tensor {
          return this.table.forward(x).mul(2);
        }
      }
      const at = (...values: number[]) => probe.tensor(values, { dtype: "int64" });
      const program = probe.exportProgram(new Net(), [at(1, 2)]);
      const [cpu, gpu] = [program.module(), program.module({ device: "gpu" })];
      const messages = [await refusal(() => cpu(at(1, 7))), await refusal(async () => await gpu.runAsync([at(1, 7)]))];
      const wanted = (cpu(at(4, 0)) as tracefx.Tensor).toArray();
      const given = ((await gpu.runAsync([at(4, 0)])) as tracefx.Tensor).toArray();
      return [...messages, JSON.stringify(given) === JSON.stringify(wanted)];
    });
    expect(onCpu).toContain("index out of range in self");
    expect(onGpu).toBe(onCpu);
    expect(after).toBe(true);
  },
  PATIENCE,
);

test(
  "lets runs follow each other, and the module and the engine go in between",
  async () => {
    const found = await page.evaluate(async () => {
      const image = (await tensors("digits_cnn/inputs.safetensors")).get("in0");
      const module = digits.module({ device: "gpu" });
      const runs = [1, 2, 3].map(async () => String((await module.runFlatAsync([image]))[0]));
      const alike = new Set(await Promise.all(runs)).size;
      const goesOn = module.runFlatAsync([image]).then(String, (error: tracefx.FxError) => error.kind);
      const next = refusal(async () => await module.runFlatAsync([image]));
      module.dispose();
      return { alike, ends: await goesOn, next: await next };
    });
    expect(found.alike).toBe(1);
    expect(found.ends).toMatch(/^(Disposed|tensor)/u);
    expect(found.next).toContain("FX0701");
  },
  PATIENCE,
);

test("is refused at once, and says how to wait", async () => {
  const message = await page.evaluate(async () => {
    const image = (await tensors("digits_cnn/inputs.safetensors")).get("in0");
    return await refusal(() => digits.module({ device: "gpu" })(image));
  });
  expect(message).toContain("await module.runAsync");
});

test(
  "keeps a cache on the device between runs, until it is asked for",
  async () => {
    const found = await page.evaluate(async () => {
      const { nn, torch } = probe;
      class Cached extends nn.Module {
        constructor() {
          super();
          this.registerBuffer("cache", torch.zeros(64, 8));
        }
        override forward(x: tracefx.Tensor, at: tracefx.Tensor): tracefx.Tensor {
          const cache = this.getBuffer("cache").indexCopy_(0, at, x);
          return cache.sum(0) as tracefx.Tensor;
        }
      }
      const at = (position: number) => probe.tensor([position], { dtype: "int64" });
      const [x, y] = [torch.randn(1, 8), torch.randn(1, 8)];
      const program = probe.exportProgram(new Cached(), [x, at(0)]);
      const cpu = program.module();
      const gpu = program.module({ device: "gpu", state: "device" });
      const areAlike = () =>
        new Set([cpu, gpu].map((it) => JSON.stringify(it.getTensor("cache").toArray()))).size === 1;
      const far: number[] = [];
      const down: (number | undefined)[] = [];
      for (const [input, position] of [
        [x, 3],
        [y, 5],
        [x, 7],
      ] as const) {
        const wanted = (cpu(input, at(position)) as tracefx.Tensor).data as Float32Array;
        const got = ((await gpu.runAsync([input, at(position)])) as tracefx.Tensor).data as Float32Array;
        far.push(Math.max(...wanted.map((it, place) => Math.abs(it - (got[place] ?? Number.NaN)))));
        down.push(plans.at(-1)?.counts.bytesDown);
      }
      const refused = await refusal(() => gpu.getTensor("cache"));
      await gpu.synchronize();
      const isSame = areAlike();
      await gpu.runAsync([y, at(9)]);
      plans.at(-1)?.gpu.device.destroy();
      const lost = await refusal(async () => await gpu.runAsync([y, at(11)]));
      const isAsBefore = areAlike();
      await gpu.runAsync([y, at(9)]);
      cpu(y, at(9));
      await gpu.synchronize();
      return { far, down, refused, isSame, lost, isAsBefore, isSameAgain: areAlike() };
    });
    expect(Math.max(...found.far)).toBeLessThan(1e-5);
    // The sums and the check of the position come down, and not the cache of 2,048 bytes.
    expect(Math.max(...found.down.map(Number))).toBeLessThan(100);
    expect(found.refused).toContain("await module.synchronize()");
    expect(found.lost).toMatch(/FX0707.*\n.*at the last synchronize\(\)/su);
    expect(found).toMatchObject({ isSame: true, isAsBefore: true, isSameAgain: true });
  },
  PATIENCE,
);

test(
  "opens the device again when it is lost, once, and leaves the work to the CPU where it may",
  async () => {
    const found = await page.evaluate(async () => {
      const image = (await tensors("digits_cnn/inputs.safetensors")).get("in0");
      const answer = async (module: tracefx.ProgramModule): Promise<unknown> => {
        try {
          return ((await module.runFlatAsync([image]))[0] as tracefx.Tensor).argmax(-1).toArray();
        } catch (error) {
          return (error as tracefx.FxError).kind;
        }
      };
      const gpu = digits.module({ device: "gpu" });
      const wanted = await answer(gpu);
      const first = plans.at(-1)?.gpu.device;
      first?.destroy();
      const again = await answer(gpu);
      const isOther = plans.at(-1)?.gpu.device !== first;
      // A device of the caller's is the caller's to open again.
      const adapter = await navigator.gpu.requestAdapter();
      const own = (await adapter?.requestDevice()) as GPUDevice;
      const ownModule = digits.module({ device: own });
      const withOwn = await answer(ownModule);
      own.destroy();
      const lost = await answer(ownModule);
      const request = GPU.prototype.requestAdapter;
      GPU.prototype.requestAdapter = async () => null;
      plans.at(-2)?.gpu.device.destroy();
      for (const it of new Set(plans.map((plan) => plan.gpu.device))) it.destroy();
      const [none, auto] = [await answer(gpu), await answer(digits.module({ device: "auto" }))];
      GPU.prototype.requestAdapter = request;
      return { wanted, again, isOther, withOwn, lost, none, auto, back: await answer(gpu) };
    });
    expect(found).toEqual({
      wanted: found.wanted,
      again: found.wanted,
      isOther: true,
      withOwn: found.wanted,
      lost: "DeviceFailed",
      none: "DeviceMissing",
      auto: found.wanted,
      back: found.wanted,
    });
    expect(found.wanted).toBeInstanceOf(Array);
  },
  PATIENCE,
);

test(
  "gives the right numbers or a typed error, whatever call of the device fails, and works afterwards",
  async () => {
    const found = await page.evaluate(async () => {
      const image = (await tensors("digits_cnn/inputs.safetensors")).get("in0");
      const adapter = await navigator.gpu.requestAdapter();
      let [calls, failsAt, isLoss] = [0, Number.POSITIVE_INFINITY, false];
      let device = (await adapter?.requestDevice()) as GPUDevice;
      /** What stands before a part of WebGPU, and counts the calls of it. */
      const before = <T extends object>(target: T): T =>
        new Proxy(target, {
          get(_, name) {
            const value: unknown = Reflect.get(target, name, target);
            if (name === "queue") return before(value as GPUQueue);
            if (typeof value !== "function") return value;
            return (...args: unknown[]) => {
              calls += 1;
              if (calls === failsAt) {
                if (isLoss) device.destroy();
                else throw new Error(`the call ${calls} of ${String(name)} fails`);
              }
              const result: unknown = Reflect.apply(value, target, args);
              const isRecorder = name === "createCommandEncoder" || name === "beginComputePass";
              return isRecorder ? before(result as object) : result;
            };
          },
        });
      const run = async (module: tracefx.ProgramModule): Promise<string> => {
        try {
          return JSON.stringify(((await module.runFlatAsync([image]))[0] as tracefx.Tensor).argmax(-1).toArray());
        } catch (error) {
          return error instanceof probe.FxError ? error.kind : `no typed error: ${String(error)}`;
        }
      };
      const wanted = JSON.stringify((digits.module().runFlat([image])[0] as tracefx.Tensor).argmax(-1).toArray());
      const kinds: Record<string, number> = {};
      const wrong: string[] = [];
      let [points, most] = [0, 0];
      for (const loss of [false, true]) {
        for (let n = 1; n <= 400 && points < (loss ? 200 : 120); n++) {
          if (loss) device = (await (await navigator.gpu.requestAdapter())?.requestDevice()) as GPUDevice;
          [isLoss, calls, failsAt] = [loss, 0, n];
          const module = digits.module({ device: before(device) });
          const first = await run(module);
          const reached = calls >= n;
          most = Math.max(most, calls);
          failsAt = Number.POSITIVE_INFINITY;
          const second = await run(module);
          module.dispose();
          if (!reached) {
            if (n === 1) wrong.push("nothing is called");
            n = Number.POSITIVE_INFINITY;
            continue;
          }
          points += 1;
          const isTold = first === "DeviceFailed" || first === "OutOfMemory" || first === wanted;
          if (!isTold) wrong.push(`${n}: ${first}`);
          if (second !== (loss ? "DeviceFailed" : wanted)) wrong.push(`after ${n}: ${second}`);
          kinds[first === wanted ? "right" : first] = (kinds[first === wanted ? "right" : first] ?? 0) + 1;
        }
      }
      return { wrong, kinds, points, most };
    });
    expect(found.wrong).toEqual([]);
    expect(found.points).toBeGreaterThanOrEqual(200);
  },
  // More than two hundred runs, of a busy machine's one processor.
  3 * PATIENCE,
);

test(
  "says that there is no GPU where there is none, and how to go on",
  async () => {
    const without = await gpuPage(false);
    try {
      const [said, isSame] = await without.page.evaluate(async (programs) => {
        await probe.init();
        const program = await probe.load(`${programs}/digits_cnn/model.pt2`);
        const bytes = new Uint8Array(await (await fetch(`${programs}/digits_cnn/inputs.safetensors`)).arrayBuffer());
        const image = probe.readSafetensors(bytes).tensors.get("in0");
        const message = await program
          .module({ device: "gpu" })
          .runFlatAsync([image])
          .then(String, (it: Error) => it.message);
        const [given] = await program.module({ device: "auto" }).runFlatAsync([image]);
        const [wanted] = program.module().runFlat([image]);
        return [message, String(given) === String(wanted)];
      }, PROGRAMS);
      expect(said).toMatch(/FX0706: there is no GPU.*\n {2}help: .*device: "auto"/u);
      expect(isSame).toBe(true);
    } finally {
      await without.close();
    }
  },
  PATIENCE,
);

/** Programs that write into a cache of their own, and what a fault of the device leaves of it. */
const CACHED = async () => {
  const { nn, torch } = probe;
  class Cached extends nn.Module {
    constructor() {
      super();
      this.registerBuffer("cache", torch.zeros(64, 8));
    }
    override forward(x: tracefx.Tensor, at: tracefx.Tensor): tracefx.Tensor {
      const cache = this.getBuffer("cache").indexCopy_(0, at, x);
      return cache.sum(0) as tracefx.Tensor;
    }
  }
  const at = (...positions: number[]) => probe.tensor(positions, { dtype: "int64" });
  const rows = probe.Dim("rows", { min: 2, max: 32 });
  const dynamicShapes = [{ 0: rows }, { 0: rows }];
  const program = probe.exportProgram(new Cached(), [torch.randn(3, 8), at(0, 1, 2)], {}, { dynamicShapes });
  /** A call of so many rows, from a position on. */
  const step = (n: number, from: number) => [torch.ones(n, 8).mul(from + 1), at(...Array(n).keys()).add(from)];
  Object.assign(globalThis, {
    cached: program,
    step,
    cacheOf: (module: tracefx.ProgramModule) => JSON.stringify(module.getTensor("cache").toArray()),
  });
};

interface Made {
  readonly prototype: { free(): void };
  of(...given: unknown[]): unknown;
}
declare const GpuProgram: Made;
declare const PlanParts: Made;
declare const cached: tracefx.ExportedProgram;
declare const step: (n: number, from: number) => tracefx.Tensor[];
declare const cacheOf: (module: tracefx.ProgramModule) => string;

test(
  "tells that a cache is lost where the CPU is to go on without the device",
  async () => {
    await page.evaluate(CACHED);
    const found = await page.evaluate(async () => {
      const module = cached.module({ device: "auto", state: "device" });
      await module.runAsync(step(3, 0));
      await module.runAsync(step(3, 3));
      const request = GPU.prototype.requestAdapter;
      GPU.prototype.requestAdapter = async () => null;
      const device = plans.at(-1)?.gpu.device;
      device?.destroy();
      await device?.lost;
      const third = await refusal(async () => await module.runAsync(step(3, 6)));
      const fourth = await refusal(() => module.runAsync(step(3, 6)));
      GPU.prototype.requestAdapter = request;
      return { third, fourth };
    });
    expect(found.third).toMatch(/FX0707.*\n.*at the last synchronize\(\)/su);
    expect(found.fourth).toBe("no error");
  },
  PATIENCE,
);

test(
  "brings a cache from the device before the CPU goes on with it, and takes it back",
  async () => {
    await page.evaluate(CACHED);
    const found = await page.evaluate(async () => {
      const [cpu, module] = [cached.module(), cached.module({ device: "auto", state: "device" })];
      await module.runAsync(step(3, 0));
      const isAhead = plans.at(-1)?.isAhead;
      const { createBuffer } = GPUDevice.prototype;
      GPUDevice.prototype.createBuffer = function (descriptor) {
        // `GPUBufferUsage.STORAGE`, of which types know no value.
        if ((descriptor.usage & 0x80) !== 0) throw new Error("no more");
        return createBuffer.call(this, descriptor);
      };
      await module.runAsync(step(5, 3));
      GPUDevice.prototype.createBuffer = createBuffer;
      await module.runAsync(step(3, 9));
      await module.synchronize();
      for (const args of [step(3, 0), step(5, 3), step(3, 9)]) cpu(...args);
      return { isAhead, isSame: cacheOf(module) === cacheOf(cpu) };
    });
    expect(found).toEqual({ isAhead: true, isSame: true });
  },
  PATIENCE,
);

test(
  "keeps a cache where a run is stopped before the device hears of it, and tells of one that the data has broken",
  async () => {
    await page.evaluate(CACHED);
    const found = await page.evaluate(async () => {
      const [cpu, module] = [cached.module(), cached.module({ device: "gpu", state: "device" })];
      await module.runAsync(step(3, 0));
      await module.runAsync(step(3, 3));
      const watch: tracefx.RunWatch = {
        progress() {
          throw new Error("enough");
        },
      };
      const stopped = await refusal(async () => await module.runAsync(step(3, 6), watch));
      await module.runAsync(step(3, 9));
      await module.synchronize();
      for (const args of [step(3, 0), step(3, 3), step(3, 9)]) cpu(...args);
      const isSame = cacheOf(module) === cacheOf(cpu);
      await module.runAsync(step(3, 12));
      const broken = await refusal(async () => await module.runAsync(step(3, 62)));
      return { stopped, isSame, broken, isAsBefore: cacheOf(module) === cacheOf(cpu) };
    });
    expect(found.stopped).toBe("enough");
    expect(found.broken).toMatch(/out of .*at the last synchronize\(\)/su);
    expect(found).toMatchObject({ isSame: true, isAsBefore: true });
  },
  PATIENCE,
);

test(
  "refuses to look at a module, or to call it at once, while a run was promised, and synchronizes behind it",
  async () => {
    await page.evaluate(CACHED);
    const found = await page.evaluate(async () => {
      const cpu = cached.module();
      cpu(...step(3, 0));
      const module = cached.module({ device: "auto", state: "device" });
      const run = module.runAsync(step(3, 0));
      const looks = [
        () => module(...step(3, 0)),
        () => module.getTensor("cache"),
        () => probe.exportProgram(module, step(3, 0)),
      ];
      const early = await Promise.all(looks.map(refusal));
      await module.synchronize();
      const isSame = cacheOf(module) === cacheOf(cpu);
      await run;
      return { early, isSame };
    });
    for (const it of found.early) expect(it).toContain("await module.runAsync");
    expect(found.isSame).toBe(true);
  },
  PATIENCE,
);

test(
  "goes on after the device has refused to give a cache",
  async () => {
    await page.evaluate(CACHED);
    const found = await page.evaluate(async () => {
      const device = (await (await navigator.gpu.requestAdapter())?.requestDevice()) as GPUDevice;
      const [cpu, module] = [cached.module(), cached.module({ device, state: "device" })];
      await module.runAsync(step(3, 0));
      const { popErrorScope } = GPUDevice.prototype;
      GPUDevice.prototype.popErrorScope = async function () {
        await popErrorScope.call(this);
        return new GPUValidationError("no");
      };
      // The memory is still mapped when the next run begins.
      const { mapAsync } = GPUBuffer.prototype;
      GPUBuffer.prototype.mapAsync = async function (...given) {
        await mapAsync.apply(this, given);
        await new Promise((resolve) => setTimeout(resolve, 500));
      };
      const refused = await refusal(() => module.synchronize());
      GPUDevice.prototype.popErrorScope = popErrorScope;
      GPUBuffer.prototype.mapAsync = mapAsync;
      await module.runAsync(step(3, 3));
      await module.synchronize();
      cpu(...step(3, 3));
      return { refused, isSame: cacheOf(module) === cacheOf(cpu) };
    });
    expect(found.refused).toContain("at the last synchronize()");
    expect(found.isSame).toBe(true);
  },
  PATIENCE,
);

test(
  "opens one device for all modules that see that theirs is lost, and tries again where that fails",
  async () => {
    const found = await page.evaluate(async () => {
      const image = (await tensors("digits_cnn/inputs.safetensors")).get("in0");
      const modules = [digits.module({ device: "gpu" }), digits.module({ device: "gpu" })];
      const run = async (at: number) => await refusal(async () => await modules[at]?.runFlatAsync([image]));
      const before = [await run(0), await run(1)];
      const { requestDevice } = GPUAdapter.prototype;
      let nOpened = 0;
      GPUAdapter.prototype.requestDevice = function (...given) {
        nOpened += 1;
        return requestDevice.apply(this, given);
      };
      const lost = plans.at(-1)?.gpu.device;
      lost?.destroy();
      await lost?.lost;
      const after = await Promise.all([run(0), run(1)]);
      GPUAdapter.prototype.requestDevice = requestDevice;
      const { requestAdapter } = GPU.prototype;
      GPU.prototype.requestAdapter = async () => null;
      plans.at(-1)?.gpu.device.destroy();
      await plans.at(-1)?.gpu.device.lost;
      const missing = await run(0);
      GPU.prototype.requestAdapter = requestAdapter;
      return { runs: [...before, ...after, await run(0)], nOpened, missing };
    });
    expect(found.runs).toEqual(Array(5).fill("no error"));
    expect(found.nOpened).toBe(1);
    expect(found.missing).toContain("FX0706");
  },
  PATIENCE,
);

test(
  "leaves the work to the CPU where the module that makes programs stops, and frees what came of it",
  async () => {
    await page.evaluate(CACHED);
    // Text, so that no bundler looks for the modules.
    await page.evaluate(`Promise.all(["gpu", "engine"].map((it) => import("/ts/wasm/" + it + ".js"))).then(
      ([{ GpuProgram }, { PlanParts }]) => void Object.assign(globalThis, { GpuProgram, PlanParts }),
    )`);
    const found = await page.evaluate(async () => {
      const image = (await tensors("digits_cnn/inputs.safetensors")).get("in0");
      const freed: Record<string, number> = {};
      for (const [name, { prototype }] of Object.entries({ GpuProgram, PlanParts })) {
        const { free } = prototype;
        freed[name] = 0;
        prototype.free = function () {
          freed[name] = (freed[name] ?? 0) + 1;
          free.call(this);
        };
      }
      const [kept, checked] = [digits.module({ device: "gpu" }), cached.module({ device: "gpu" })];
      await checked.runAsync(step(3, 0));
      const [first] = await kept.runFlatAsync([image]);
      const { of } = GpuProgram;
      GpuProgram.of = () => {
        throw new WebAssembly.RuntimeError("unreachable");
      };
      const refused = await refusal(async () => await digits.module({ device: "gpu" }).runFlatAsync([image]));
      const auto = await digits.module({ device: "auto" }).runFlatAsync([image]);
      const afterTraps = { ...freed };
      GpuProgram.of = of;
      const again = String((await kept.runFlatAsync([image]))[0]);
      const broken = await refusal(() => checked.runAsync(step(3, 62)));
      // Nothing of this is the device's.
      class Doubled extends probe.nn.Module {
        override forward(x: tracefx.Tensor): tracefx.Tensor {
          return x.mul(2) as tracefx.Tensor;
        }
      }
      const x = probe.torch.ones(4, { dtype: "float64" });
      const nFreed = freed["GpuProgram"] ?? 0;
      await probe.exportProgram(new Doubled(), [x]).module({ device: "gpu" }).runAsync([x]);
      return {
        refused,
        isAlike: new Set([first, auto[0]].map((it) => String((it as tracefx.Tensor).argmax(-1)))).size === 1,
        afterTraps,
        isSame: again === String(first),
        broken,
        nProgramsFreed: (freed["GpuProgram"] ?? 0) - nFreed,
      };
    });
    expect(found.refused).toMatch(/FX0707.*unreachable.*report it/su);
    // Each of two modules tried it twice.
    expect(found.afterTraps).toEqual({ GpuProgram: 0, PlanParts: 4 });
    expect(found.broken).toContain("out of");
    expect(found).toMatchObject({ isAlike: true, isSame: true, nProgramsFreed: 1 });
  },
  PATIENCE,
);
