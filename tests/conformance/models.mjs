/**
 * The kind `models`: the models of `ts/examples/models` with PyTorch's weights, recorded by `tests/oracle/gen_models.py`. Each is
 * exported with dynamic sizes. The program gives PyTorch's numbers for all recorded sizes, as it is, in terms of core
 * operators, and each of them saved and opened again; and it refuses the sizes that PyTorch refuses, in its words.
 *
 * @module
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Dim, exportProgram, FxError, init, load, NotImplementedError, save, saveTo, torch } from "tracefx";
import { difference, largestDifference } from "./compare.mjs";
import { readTensors } from "./programs.mjs";

/** @typedef {import("./engine.mjs").Result} Result */
/** @typedef {import("tracefx").ExportedProgram} ExportedProgram */
/** @typedef {import("tracefx").Tensor} Tensor */

/**
 * What was recorded of a model.
 * @typedef {object} Meta
 * @property {string} file The file of `ts/examples/models`.
 * @property {string} make The function of it that makes the model.
 * @property {Record<string, unknown>} options
 * @property {Record<string, { name: string, min: number, max: number }>} dynamic_shapes By dimension of the input.
 * @property {unknown[]} cases
 * @property {{ sizes: number[], torch_says: string }[]} rejects
 * @property {import("./compare.mjs").Tolerance[]} tolerance_per_output
 */

/** @typedef {(options: Record<string, unknown>) => import("tracefx").Module} Make */
/** @typedef {(file: string) => Promise<Record<string, unknown>>} Importer */

/**
 * @param {string} dir
 * @param {string | undefined} only
 * @param {unknown} _engine
 * @param {{ resaveTo?: string | undefined }} way
 * @param {unknown} _name
 * @param {Importer} importer Imports a file of `ts/examples/models`.
 * @returns {AsyncGenerator<Result>}
 */
export async function* modelCases(dir, only, _engine, { resaveTo }, _name, importer = transpiled) {
  await init();
  for (const name of readdirSync(dir).toSorted()) {
    const folder = join(dir, name);
    if (!existsSync(join(folder, "weights.safetensors")) || (only !== undefined && !name.includes(only))) continue;
    try {
      const out = resaveTo === undefined ? undefined : join(resaveTo, name);
      yield { name, status: "passed", detail: await runModel(folder, out, importer) };
    } catch (error) {
      const status = error instanceof NotImplementedError ? "skipped" : "failed";
      yield { name, status, detail: error instanceof Error ? error.message : String(error) };
    }
  }
}

/** @type {(folder: string, out: string | undefined, importer: Importer) => Promise<string>} */
async function runModel(folder, out, importer) {
  const meta = /** @type {Meta} */ (JSON.parse(readFileSync(join(folder, "meta.json"), "utf8")));
  const make = /** @type {Make} */ ((await importer(meta.file))[meta.make]);
  const model = make(meta.options).eval();
  model.loadStateDict(readTensors(join(folder, "weights.safetensors")));
  const calls = meta.cases.map((_, at) => callOf(folder, at));
  const dims = Object.entries(meta.dynamic_shapes).map(([dim, { name, ...range }]) => [dim, Dim(name, range)]);
  const dynamicShapes = { x: Object.fromEntries(dims) };
  const program = exportProgram(model, [calls[0]?.input], {}, { dynamicShapes });
  const core = program.runDecompositions();
  let largest = 0;
  for (const [way, it] of /** @type {const} */ ([
    ["exported", program],
    ["decomposed", core],
    ["saved", await resaved(program, out, "model.pt2")],
    ["decomposed and saved", await resaved(core, out, "decomposed.pt2")],
  ])) {
    const module = it.module();
    try {
      for (const { input, expected } of calls) {
        const output = /** @type {Tensor} */ (module(input));
        const problem = difference(output, expected, meta.tolerance_per_output[0] ?? { rtol: 0, atol: 0 });
        if (problem !== undefined) throw new Error(`${way}, an input of [${input.shape}]: ${problem}`);
        largest = Math.max(largest, largestDifference(output, expected));
        output.dispose();
      }
      for (const { sizes, torch_says: says } of meta.rejects) {
        const reason = refusal(() => module(torch.zeros(sizes)));
        if (reason?.toLowerCase().startsWith(says.toLowerCase()) !== true) {
          throw new Error(`${way}, an input of [${sizes}]: ${reason ?? "it is taken"}, instead of ${says}`);
        }
      }
    } finally {
      module.dispose();
    }
  }
  return `${calls.length} sizes, the largest error is ${largest.toExponential(1)}`;
}

/** @type {(folder: string, at: number) => { input: Tensor, expected: Tensor }} */
function callOf(folder, at) {
  const read = (/** @type {string} */ file, /** @type {string} */ name) => {
    const tensor = readTensors(join(folder, `${file}${at === 0 ? "" : `_${at}`}.safetensors`)).get(name);
    if (tensor === undefined) throw new Error(`there is no ${name} of call ${at}`);
    return tensor;
  };
  return { input: read("inputs", "in0"), expected: read("expected", "out0") };
}

/** The program as an archive says it, which is kept if a folder is named. @type {(program: ExportedProgram, out: string | undefined, name: string) => Promise<ExportedProgram>} */
async function resaved(program, out, name) {
  if (out === undefined) return load(save(program));
  mkdirSync(out, { recursive: true });
  await saveTo(program, join(out, name));
  return load(join(out, name));
}

/** Why a call is refused; nothing where it is not. @type {(run: () => unknown) => string | undefined} */
function refusal(run) {
  try {
    run();
    return undefined;
  } catch (error) {
    if (error instanceof FxError) return error.reason;
    throw error;
  }
}

/** Imports a file of the examples as JavaScript, since not every Node reads TypeScript. @type {Importer} */
async function transpiled(file) {
  const { transform } = await import("esbuild");
  const root = new URL("../../", import.meta.url);
  const source = readFileSync(new URL(`ts/examples/models/${file}`, root), "utf8");
  const { code } = await transform(source, { loader: "ts", format: "esm", target: "node20" });
  // Here `tracefx` is found as the runner finds it.
  const folder = new URL(".cache/models/", root);
  mkdirSync(folder, { recursive: true });
  const out = new URL(file.replace(/ts$/, "mjs"), folder);
  writeFileSync(out, code);
  return import(out.href);
}
