/**
 * Relaxed SIMD, of the package as it is built. Programs run in a Node of their own: that of Node 20 is behind a flag.
 */
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { fixture } from "../export/fixtures.ts";

const PACKAGE = new URL("../../", import.meta.url);
const IS_BEHIND_FLAG = Number.parseInt(process.versions.node, 10) < 22;

/** What programs begin with: a model of products alone, and the bits that it gives. */
const begin = (root: URL): string => `
  import { readFileSync } from "node:fs";
  import { exportProgram, init, initSync, load as open, nn, restart, torch } from ${JSON.stringify(new URL("dist/index.js", root).href)};
  const file = (name) => readFileSync(new URL("wasm/" + name, ${JSON.stringify(root.href)}));
  const bitsOf = ({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
  const network = () => {
    torch.manualSeed(1);
    const layers = new nn.Sequential(new nn.Conv2d(3, 16, 3), new nn.ReLU(), new nn.Flatten(), new nn.Linear(16 * 14 * 14, 40)).eval();
    const image = torch.randn(2, 3, 16, 16);
    return { layers, image, program: exportProgram(layers, [image]) };
  };
  const run = (options = {}) => {
    const { image, program } = network();
    return bitsOf(program.module(options)(image));
  };
  const refusal = async (body) => {
    try {
      await body();
    } catch (error) {
      return error.code + ": " + error.reason;
    }
  };
  // What this processor makes of f32x4.relaxed_madd (1 + 2^-23, 1 - 2^-23, -1): the exact product of the first two is no float32.
  const isFused = () => new WebAssembly.Instance(new WebAssembly.Module(Buffer.from("AGFzbQEAAAABCAFgA319fQF9AwIBAAcFAQFmAAAKFgEUACAA/RMgAf0TIAL9E/2FAv0fAAs=", "base64"))).exports.f(1 + 2 ** -23, 1 - 2 ** -23, -1) !== 0;
`;

const folder = mkdtempSync(join(tmpdir(), "tracefx-relaxed-"));
let files = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a program prints as JSON. */
async function said(program: string, { root = PACKAGE, flags = [] as string[] } = {}): Promise<unknown> {
  const file = join(folder, `${++files}.mjs`);
  writeFileSync(file, `${begin(root)}${program}`);
  // Elsewhere than in the repository, whose package is looked in, too.
  const { stdout } = await promisify(execFile)("node", [...flags, file], { timeout: 240_000, cwd: folder });
  return JSON.parse(stdout);
}

/** As on a host that has relaxed SIMD. */
const WITH = { flags: IS_BEHIND_FLAG ? ["--experimental-wasm-relaxed-simd"] : [] };

/** What runs of all kinds give in an engine with these options. */
const bits = (options: string): Promise<unknown> =>
  said(
    `await init(${options}); console.log(JSON.stringify({ isFused: isFused(), fast: run(), strict: run({ precision: "strict" }), interpreted: run({ mode: "interpret" }) }));`,
    WITH,
  );

describe("relaxed SIMD", { timeout: 240_000 }, () => {
  it("multiplies and adds at once in fast plans alone", async () => {
    const [chosen, relaxed, simd] = (await Promise.all(
      ["", '{ variant: "relaxed" }', '{ variant: "simd" }'].map(bits),
    )) as Record<string, unknown>[];
    expect(chosen).toEqual(relaxed);
    expect(relaxed?.["strict"]).toBe(simd?.["strict"]);
    expect(relaxed?.["interpreted"]).toBe(simd?.["interpreted"]);
    expect(relaxed?.["strict"]).toBe(relaxed?.["interpreted"]);
    // A processor that multiplies and adds in two steps gives the same bits.
    expect(relaxed?.["fast"] !== simd?.["fast"]).toBe(relaxed?.["isFused"]);
  });

  it("needs no part of what programs seldom call", async () => {
    const program = `
      const { Module } = WebAssembly;
      const lengths = [];
      WebAssembly.Module = new Proxy(Module, {
        construct(target, args) {
          lengths.push(args[0].byteLength);
          return new target(...args);
        },
      });
      await init();
      const digits = await open(readFileSync(${JSON.stringify(`${fixture("digits_cnn")}/model.pt2`)}));
      digits.module()(torch.zeros(4, 1, 8, 8));
      console.log(JSON.stringify(lengths));`;
    expect(await said(program, WITH)).toEqual([]);
  });

  it("is within the tolerance, and the same when the engine is made anew", async () => {
    const program = `
      await init();
      const { layers, image, program } = network();
      const want = layers.forward(image);
      const got = program.module()(image);
      const [isClose, first] = [torch.allclose(got, want, { rtol: 1.3e-6, atol: 1e-5 }), run()];
      restart();
      console.log(JSON.stringify([isClose, run() === first]));`;
    expect(await said(program, WITH)).toEqual([true, true]);
  });

  it("is given with a module that is given", async () => {
    const program = `
      initSync(file("engine-simd.wasm"), { relaxed: file("engine-relaxed.wasm") });
      console.log(JSON.stringify(run()));`;
    const plain = program.replace('{ relaxed: file("engine-relaxed.wasm") }', "{}");
    const [given, none, taken, left] = await Promise.all([
      said(program, WITH),
      said(plain, WITH),
      said("await init(); console.log(JSON.stringify(run()));", WITH),
      said('await init({ variant: "simd" }); console.log(JSON.stringify(run()));', WITH),
    ]);
    expect(given).toBe(taken);
    expect(none).toBe(left);
  });

  it("is done without where its file is missing", async () => {
    const root = pathToFileURL(`${join(folder, "package")}/`);
    for (const name of ["dist", "wasm", "package.json"])
      cpSync(fileURLToPath(new URL(name, PACKAGE)), fileURLToPath(new URL(name, root)), { recursive: true });
    rmSync(fileURLToPath(new URL("wasm/engine-relaxed.wasm", root)));
    const program = 'await init({ parts: "eager" }); console.log(JSON.stringify(run()));';
    const simd = await said('await init({ variant: "simd" }); console.log(JSON.stringify(run()));', WITH);
    expect(await said(program, { ...WITH, root })).toBe(simd);
    const asked =
      'console.log(JSON.stringify(await refusal(() => init({ parts: { relaxed: file("runtime-relaxed.wasm") } }))));';
    expect(await said(asked, WITH)).toBe("FX0703: the part relaxed does not fit the engine, which is of another build");
  });

  it("is chosen by name", async () => {
    const program = `
      const found = [await refusal(() => init({ variant: "scalar" })), await refusal(() => init({ variant: "relaxed" }))];
      console.log(JSON.stringify(found));`;
    const unknown = "FX0702: this host has no variant scalar";
    expect(await said(program, WITH)).toEqual([unknown, null]);
    if (IS_BEHIND_FLAG) {
      const refused = "FX0702: this host has no variant relaxed";
      expect(await said(program)).toEqual([unknown, refused]);
    }
  });

  it("is in the small runtime, too", async () => {
    const program = (options: string): string => `
      import { load, tensor } from ${JSON.stringify(new URL("dist/runtime/runtime.js", PACKAGE).href)};
      await init(${options});
      const { image, program } = network();
      const [fast, strict] = ["fast", "strict"].map((precision) => program.module({ precision }).compiledFile([image]));
      const same = tensor(image.data, { shape: image.shape });
      const given = [(await load(fast, ${options === "" ? "{}" : options}))(same), (await load(strict))(same)].map(bitsOf);
      console.log(JSON.stringify([given[0] === run(), given[1] === run({ precision: "strict" })]));`;
    expect(await said(program(""), WITH)).toEqual([true, true]);
    expect(await said(program('{ variant: "simd" }'), WITH)).toEqual([true, true]);
    const refused = `
      import { load } from ${JSON.stringify(new URL("dist/runtime/runtime.js", PACKAGE).href)};
      console.log(JSON.stringify(await refusal(() => load(new Uint8Array(), { variant: "scalar" }))));`;
    expect(await said(refused, WITH)).toBe("FX0702: this host has no variant scalar");
  });
});
