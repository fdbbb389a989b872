/**
 * Threads of the engine, of the package as it is built: a thread is loaded by its place. Programs run in a Node of their own, without the
 * compiler of Node 20 that makes wrong code of what threads wait by.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { fixture } from "../export/fixtures.ts";

const DIST = new URL("../../dist/", import.meta.url).href;
const WASM = new URL("../../wasm/", import.meta.url).href;

/** What a thread that has come is told to say. */
const PANICKED = "FX0902: the engine panicked: asked to panic";

/** What programs begin with. */
const BEGIN = `
  import { readFileSync } from "node:fs";
  import * as tracefx from ${JSON.stringify(`${DIST}index.js`)};
  import { call } from ${JSON.stringify(`${DIST}engine/engine.js`)};
  const { init, initSync, load, restart, tensor, torch } = tracefx;
  // A thread may take a while to come.
  const fail = (kind) => {
    for (;;) {
      try {
        call((engine) => engine.__test_failure("thread: " + kind));
      } catch (error) {
        if (error.reason !== "no other thread has come") throw error;
      }
    }
  };
  const refusal = (body) => {
    try {
      body();
    } catch (error) {
      return error.code + ": " + error.reason;
    }
  };
  const bitsOf = ({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
  const product = () => {
    torch.manualSeed(1);
    return tracefx.tidy(() => bitsOf(torch.randn(300, 400).matmul(torch.randn(400, 500))));
  };
`;

const folder = mkdtempSync(join(tmpdir(), "tracefx-threads-"));
let files = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a program prints as JSON, which ends by itself. */
async function said(program: string, env: Record<string, string> = {}): Promise<unknown> {
  const file = join(folder, `${++files}.mjs`);
  writeFileSync(file, `${BEGIN}${program}`);
  const args = ["--no-liftoff", "--wasm-lazy-compilation", file];
  const { stdout } = await promisify(execFile)("node", args, { timeout: 240_000, env: { ...process.env, ...env } });
  return JSON.parse(stdout);
}

describe.concurrent("threads of the engine", () => {
  it("give the same bits, however many there are", async () => {
    const result = await said(`
      const refused = [];
      for (const threads of [0, -1, 1.5, 257]) await init({ threads }).catch((error) => refused.push(error.code));
      await init({ threads: 4 });
      for (const n of [0, 1.5]) refused.push(refusal(() => torch.setNumThreads(n)));
      const counts = [];
      const bits = new Set();
      refused.push(refusal(() => fail("panic")));
      for (const n of [4, 3, 2, 1, 4]) {
        torch.setNumThreads(n);
        counts.push(torch.getNumThreads());
        bits.add(product());
      }
      console.log(JSON.stringify([counts, bits.size, refused]));`);
    const reason = "FX0702: setNumThreads expects a positive integer, 256 at most";
    expect(result).toEqual([[4, 3, 2, 1, 4], 1, [..."1234"].map(() => "FX0702").concat(reason, reason, PANICKED)]);
  });

  it("are one where nobody asks for more, or there can be no more", async () => {
    const modules = `
      const bytes = (name) => readFileSync(new URL(name, ${JSON.stringify(WASM)}));
      const compiled = new WebAssembly.Module(bytes("engine-simd.wasm"));
      const rare = new WebAssembly.Module(bytes("engine-rare.wasm"));`;
    const printed = `
      torch.setNumThreads(3);
      const { length } = product();
      console.log(JSON.stringify(length === 800_000 && torch.getNumThreads()));`;
    const programs: [string, number][] = [
      ["await init({ wasm: Promise.resolve(compiled), threads: 2 });", 1],
      ["await init({ parts: { rare }, threads: 2 });", 1],
      ["initSync(compiled);", 1],
      // The instance of a call that failed stays, and one that another call made.
      [
        'await init({ parts: { rare: bytes("runtime-rare.wasm") }, threads: 2 }).catch(() => {}); await init({ threads: 2 });',
        3,
      ],
      ['const begun = init(); initSync(bytes("engine-simd.wasm")); await begun;', 1],
      ['await init({ wasm: bytes("engine-simd.wasm"), parts: { rare: bytes("engine-rare.wasm") }, threads: 2 });', 3],
    ];
    const found = await Promise.all(
      programs.map(([program]) => said(`${modules}${program}${printed}`, { TRACEFX_NUM_THREADS: "2" })),
    );
    expect(found).toEqual(programs.map(([, n]) => n));
  });

  it("are as many as the environment says", async () => {
    const program = "await init(); console.log(JSON.stringify(torch.getNumThreads()));";
    expect(await said(program, { TRACEFX_NUM_THREADS: "3" })).toBe(3);
  });

  it("hand panics to who calls, and stop the engine where one traps, which is made anew with others", async () => {
    const result = await said(`
      await init({ threads: 2 });
      const before = product();
      const refused = { trap: new Set(), throw: new Set(), panic: new Set() };
      for (let n = 0; n < 8; n++) {
        for (const kind of ["trap", "throw"]) {
          refused[kind].add(refusal(() => fail(kind)));
          refused[kind].add(refusal(product));
          restart();
          for (let time = 0; time < 3; time++) refused.panic.add(refusal(() => fail("panic")));
          if (product() !== before || torch.getNumThreads() !== 2) throw new Error("not the same");
        }
      }
      console.log(JSON.stringify(Object.values(refused).map((it) => [...it])));`);
    const stopped = "FX0902: the engine stopped and its memory cannot be trusted any more";
    expect(result).toEqual([[stopped], [stopped], [PANICKED]]);
  });

  it("read the parts that their kernels are in", async () => {
    const result = await said(`
      await init({ threads: 2 });
      refusal(() => fail("panic"));
      const results = [2, 1].map((n) => {
        torch.setNumThreads(n);
        const x = torch.linspace(-0.99, 0.99, 500_000, { dtype: torch.float64 });
        return [torch.erfinv(x), torch.special.i1e(x), torch.special.ndtri(x.abs()), x.reshape(1000, 500).logcumsumexp(1)].map(bitsOf);
      });
      console.log(JSON.stringify(results[0].map((it, at) => it === results[1][at])));`);
    expect(result).toEqual([true, true, true, true]);
  });

  it("are ended where a part is missing, and are there again when the engine was made anew", async () => {
    const result = await said(`
      await init({ threads: 3, parts: { edit: "file:///nowhere", rare: "file:///nowhere" } });
      const ones = () => torch.ones(300, 400).matmul(torch.ones(400, 500)).max().item();
      const refused = [new Set(), new Set()];
      for (let n = 0; n < 8; n++) {
        ones();
        refused[0].add(refusal(() => torch.erfinv(torch.ones(500_000, { dtype: torch.float64 }).mul(0.5))).slice(0, 37));
        refused[1].add(refusal(ones));
        restart();
        if (ones() !== 400) throw new Error("not the same");
      }
      console.log(JSON.stringify(refused.map((it) => [...it])));`);
    const stopped = "FX0902: the engine stopped and its memory cannot be trusted any more";
    expect(result).toEqual([["FX0703: this call needs the part rare"], [stopped]]);
  });

  it("belong to the worker of the engine too, whose programs run as PyTorch did", async () => {
    const result = await said(`
      const { EngineWorker, tensor: made } = await import(${JSON.stringify(`${DIST}worker/engineWorker.js`)});
      const folder = ${JSON.stringify(fixture("digits_cnn"))};
      const read = (name) => tracefx.readSafetensors(readFileSync(folder + "/" + name)).tensors.values().next().value;
      const [input, expected] = [read("inputs.safetensors"), read("expected.safetensors").toFloat32Array()];
      const none = new EngineWorker({ threads: 0 });
      const refused = await none.loadModule(folder + "/model.pt2").catch((error) => error.reason);
      none.terminate();
      const engine = new EngineWorker({ threads: 3 });
      const model = await engine.loadModule(folder + "/model.pt2");
      const logits = await model.runAsync([made(input.toFloat32Array(), { shape: input.shape })]);
      const far = Math.max(...logits.toFloat32Array().map((it, at) => Math.abs(it - expected[at])));
      console.log(JSON.stringify([far < 1e-4, refused]));`);
    expect(result).toEqual([true, "threads of init expects a positive integer, 256 at most"]);
  });
});
