/**
 * Measures what programs take in memory: loaded, made ready and run, in a process of their own. In WebAssembly it is the
 * engine's memory and the process; natively, with a command that was built (`cargo build --release -p tracefx-cli`), the
 * process. A program of a few numbers in another process tells what the engine takes for itself, and a multiple of the file,
 * which is the weights and a little, is what is more than that: (peak - engine) / file. `--beside` names another program for
 * that, such as one of the same graph with few weights: the graph, and the code that its operators are compiled to, count then as
 * the engine's.
 *
 *     node scripts/memory.mjs [MEGABYTES | PROGRAM.pt2 …] [--from=path|bytes|http] [--beside=PROGRAM.pt2]
 *         [--native=target/release/tracefx]
 *
 * A number writes a chain of linear layers with that many megabytes of weights to a temporary file; without one it is 400.
 * Runs take inputs of ones. `npm run build -w ts` makes the package that it measures.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { exportProgram, init, load, nn, saveTo, torch, writeSafetensors } from "../ts/dist/index.js";
import { serve } from "./serve.mjs";

const SELF = fileURLToPath(import.meta.url);
/** The rows and columns of a layer of a chain, which has 100 MB then. */
const WIDTH = 5000;

const { values: options, positionals } = parseArgs({
  options: {
    from: { type: "string", default: "path" },
    native: { type: "string" },
    beside: { type: "string" },
    inputs: { type: "string", default: "" },
  },
  allowPositionals: true,
});
const [verb, path = "", size = ""] = positionals;

if (verb === "write") await write(path, Number(size));
else if (verb === "measure") await measure(path, options.from, options.inputs);
else await report(positionals.length === 0 ? ["400"] : positionals);

/**
 * The peaks of a process, in bytes; natively there is one.
 *
 * @typedef {{ readonly loaded: number; readonly ready: number; readonly run: number }} Peaks
 * @typedef {{ readonly wasm: Peaks; readonly native: number | undefined }} Measured
 */

/** @param {string[]} programs */
async function report(programs) {
  const folder = mkdtempSync(join(tmpdir(), "tracefx-memory-"));
  try {
    const small = options.beside ?? join(folder, "small.pt2");
    if (options.beside === undefined) step(["write", small, "0"]);
    const engine = await measured(small, folder);
    const { loaded, ready, run } = engine.wasm;
    const native = engine.native === undefined ? "" : `; natively ${megabytes(engine.native)}`;
    console.log(
      `the engine with ${options.beside ?? "a program of a few numbers"}: ${[loaded, ready, run].map(megabytes).join(", ")}${native}`,
    );
    for (const program of programs) {
      const isNumber = /^\d+$/.test(program);
      const file = isNumber ? join(folder, `chain-${program}MB.pt2`) : program;
      if (isNumber) step(["write", file, program]);
      print(file, await measured(file, folder), engine);
      if (isNumber) rmSync(file);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @param {string} file @param {Measured} peaks @param {Measured} engine */
function print(file, peaks, engine) {
  // A file is its weights, tied ones once, and a little.
  const weights = statSync(file).size;
  const of = (/** @type {number} */ bytes, /** @type {number} */ without) =>
    `${megabytes(bytes)} (${((bytes - without) / weights).toFixed(2)})`;
  console.log(`${basename(file)}: ${megabytes(weights)}, from ${options.from}`);
  const { loaded, ready, run } = peaks.wasm;
  const [first, second, third] = [
    of(loaded, engine.wasm.loaded),
    of(ready, engine.wasm.ready),
    of(run, engine.wasm.run),
  ];
  console.log(`  WebAssembly: loaded ${first}, ready ${second}, run ${third} more than before`);
  if (peaks.native !== undefined) console.log(`  native: ${of(peaks.native, engine.native ?? 0)} at most`);
}

/** @param {string} file @param {string} folder @returns {Promise<Measured>} */
async function measured(file, folder) {
  const inputs = join(folder, "inputs.safetensors");
  const wasm = JSON.parse(step(["measure", file, `--from=${options.from}`, `--inputs=${inputs}`]));
  return { wasm, native: options.native === undefined ? undefined : await peakNatively(options.native, file, inputs) };
}

/** @param {string[]} words */
function step(words) {
  const { status, stdout } = spawnSync(process.execPath, ["--expose-gc", SELF, ...words], {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${words[0]} failed`);
  return stdout;
}

/** @param {string} file @param {number} mega */
async function write(file, mega) {
  await init();
  const layers = Math.round(mega / ((4 * WIDTH * WIDTH) / 1e6));
  const width = layers === 0 ? 4 : WIDTH;
  const net = new nn.Sequential(...Array.from({ length: Math.max(layers, 1) }, () => new nn.Linear(width, width)));
  await saveTo(exportProgram(net, [torch.zeros(1, width)], {}, { verify: false }), file);
}

/** @param {string} file @param {string} from @param {string} inputsFile */
async function measure(file, from, inputsFile) {
  await init();
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  const server = from === "http" ? await serve({ root: dirname(file) }) : undefined;
  const source = server === undefined ? file : `${server.url}${basename(file)}`;
  const program = await load(from === "bytes" ? readFileSync(file) : source);
  await server?.close();
  const loaded = peak() - before;
  const inputs = inputsOf(program);
  writeFileSync(inputsFile, writeSafetensors(Object.fromEntries(inputs.map((it, at) => [`in${at}`, it]))));
  const model = program.module();
  const ready = peak() - before;
  model.runFlat(inputs);
  console.log(JSON.stringify({ loaded, ready, run: peak() - before }));
}

/** @param {string} command @param {string} file @param {string} inputs */
async function peakNatively(command, file, inputs) {
  const child = spawn(command, ["run", file, "--inputs", inputs, "--outputs", `${inputs}.outputs`], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  let most = 0;
  const look = () => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      most = Math.max(most, Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024);
    } catch {
      // It has ended.
    }
  };
  const timer = setInterval(look, 2);
  const code = await new Promise((resolve) => child.on("exit", resolve));
  clearInterval(timer);
  if (code !== 0) throw new Error(`${command} failed`);
  return most;
}

/**
 * Inputs of ones of the sizes that the program was exported with.
 *
 * @param {import("../ts/dist/index.js").ExportedProgram} program
 */
function inputsOf({ graph, graphSignature }) {
  return graphSignature.userInputs.map((input) => {
    const val = /** @type {import("../ts/dist/index.js").TensorMeta | undefined} */ (
      graph.find(`${input}`)?.meta.get("val")
    );
    if (val === undefined) throw new Error(`the input ${input} is no tensor`);
    return torch.ones(val.sizes.map(Number), { dtype: val.dtype });
  });
}

function peak() {
  return process.resourceUsage().maxRSS * 1024;
}

/** @param {number} bytes */
function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}
