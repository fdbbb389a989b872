/**
 * Measures what programs take in memory: loaded, made ready and run, in a process of their own, as a multiple of the
 * file, which is the weights and a little. In WebAssembly it is the engine's memory and the process; natively, with a command that was built
 * (`cargo build --release -p tracefx-cli`), the process.
 *
 *     node scripts/memory.mjs [MEGABYTES | PROGRAM.pt2 …] [--from=path|bytes|http] [--native=target/release/tracefx]
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
    inputs: { type: "string", default: "" },
  },
  allowPositionals: true,
});
const [verb, path = "", size = ""] = positionals;

if (verb === "write") await write(path, Number(size));
else if (verb === "measure") await measure(path, options.from, options.inputs);
else await report(positionals.length === 0 ? ["400"] : positionals);

/** @param {string[]} programs */
async function report(programs) {
  const folder = mkdtempSync(join(tmpdir(), "tracefx-memory-"));
  try {
    for (const program of programs) {
      const isNumber = /^\d+$/.test(program);
      const file = isNumber ? join(folder, `chain-${program}MB.pt2`) : program;
      if (isNumber) step(["write", file, program]);
      const inputs = join(folder, "inputs.safetensors");
      step(["measure", file, `--from=${options.from}`, `--inputs=${inputs}`]);
      if (options.native !== undefined) await measureNative(options.native, file, inputs);
      if (isNumber) rmSync(file);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @param {string[]} words */
function step(words) {
  const { status } = spawnSync(process.execPath, ["--expose-gc", SELF, ...words], { stdio: "inherit" });
  if (status !== 0) throw new Error(`${words[0]} failed`);
}

/** @param {string} file @param {number} mega */
async function write(file, mega) {
  await init();
  const layers = Math.round(mega / ((4 * WIDTH * WIDTH) / 1e6));
  const net = new nn.Sequential(...Array.from({ length: layers }, () => new nn.Linear(WIDTH, WIDTH)));
  await saveTo(exportProgram(net, [torch.zeros(1, WIDTH)], {}, { verify: false }), file);
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
  // A file is its weights, tied ones once, and a little.
  const weights = statSync(file).size;
  const loaded = peak() - before;
  const inputs = inputsOf(program);
  writeFileSync(inputsFile, writeSafetensors(Object.fromEntries(inputs.map((it, at) => [`in${at}`, it]))));
  const model = program.module();
  const ready = peak() - before;
  model.runFlat(inputs);
  const ran = peak() - before;
  const of = (/** @type {number} */ bytes) => `${megabytes(bytes)} (${(bytes / weights).toFixed(2)})`;
  console.log(`${basename(file)}: ${megabytes(weights)}, from ${from}`);
  console.log(`  WebAssembly: loaded ${of(loaded)}, ready ${of(ready)}, run ${of(ran)} more than before`);
}

/** @param {string} command @param {string} file @param {string} inputs */
async function measureNative(command, file, inputs) {
  const child = spawn(command, ["run", file, "--inputs", inputs, "--outputs", `${inputs}.outputs`], {
    stdio: "inherit",
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
  const weights = statSync(file).size;
  console.log(`  native: ${megabytes(most)} at most (${(most / weights).toFixed(2)} of the file)`);
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
