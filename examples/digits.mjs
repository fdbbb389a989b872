/**
 * A program that PyTorch wrote, opened, printed, edited, run on real images in WebAssembly and natively, checked against
 * PyTorch's own answers, and saved. `npm start` runs it.
 *
 * The program is a small convolutional network, trained in PyTorch on handwritten digits and saved with
 * `torch.export.save`. The images are 397 digits that it was not trained on.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { load, readSafetensors, Tensor, tensor, writeSafetensors } from "tracefx";
import { foldBatchNorms } from "./fold.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FIXTURES = join(ROOT, "tests/fixtures");
const OUT = join(ROOT, "examples/out");
const NATIVE = join(ROOT, `target/release/tracefx${process.platform === "win32" ? ".exe" : ""}`);
const REPEAT = 20;

/** How far float32 sums of this length may differ when they are added in another order: PyTorch's own error times four. */
const TOLERANCE = 3e-5;

const { images, labels } = readDigits();
const wanted = only(
  readSafetensors(readFileSync(join(FIXTURES, "programs/_digits/logits.safetensors"))).tensors,
  "logits",
);

heading("1. Open a program that PyTorch wrote");
const program = await load(join(FIXTURES, "programs/digits_cnn/model.pt2"));
console.log(`torch ${program.torchVersion} wrote it; opening it ran no code of the file\n`);
program.graph.printTabular();

heading("2. Edit it: fold the batch norms into the convolutions");
const before = logitsOf(program);
const folded = foldBatchNorms(program);
console.log(`${folded} batch norms folded; ${program.graph.nodes.length} nodes are left\n`);
program.graph.printTabular();

heading("3. Save it, and load it again");
mkdirSync(OUT, { recursive: true });
const file = join(OUT, "digits-folded.fxg");
writeFileSync(file, program.toFxg());
const reloaded = await load(file);
console.log(`${file}: ${readFileSync(file).byteLength} bytes`);
if (String(reloaded.graph) !== String(program.graph)) throw new Error("the reloaded graph differs");

heading(`4. Classify ${labels.length} real handwritten digits`);
const wasm = logitsOf(reloaded);
const wasmTime = fastestCall(reloaded);
const [native, nativeTime] = runNative(file);
const runs = /** @type {const} */ ([
  ["PyTorch's program, WebAssembly", before, undefined],
  ["edited, saved, loaded, WebAssembly", wasm, wasmTime],
  ["edited, saved, loaded, native", native, nativeTime],
]);
const header = ["", "accuracy", "largest difference from PyTorch", "time per image"];
const rows = runs.map(([name, logits, seconds]) => [
  name,
  `${((100 * correct(logits)) / labels.length).toFixed(2)} %`,
  largestDifference(logits, wanted).toExponential(2),
  seconds === undefined ? "" : `${((1e6 * seconds) / labels.length).toFixed(1)} µs`,
]);
printTable([header, ...rows]);

for (const [name, logits] of runs) {
  if (largestDifference(logits, wanted) > TOLERANCE) throw new Error(`${name}: the logits are not PyTorch's`);
}
if (largestDifference(logitsOf(program), wasm) !== 0) throw new Error("the reloaded program gives other answers");
console.log("\nThe saved program gives the same answers as the edited one, to the last bit.");

/** The test images as float32 from 0 to 1, as the program takes them, and what they show. */
function readDigits() {
  const { tensors } = readSafetensors(readFileSync(join(FIXTURES, "programs/_digits/test.safetensors")));
  const pixels = only(tensors, "images");
  const scaled = Float32Array.from(pixels.toFloat32Array(), (it) => it / 16);
  return {
    images: tensor(scaled, { shape: pixels.shape }),
    labels: Array.from(only(tensors, "labels").toFloat32Array()),
  };
}

function logitsOf(/** @type {import("tracefx").ExportedProgram} */ opened) {
  const model = opened.module();
  try {
    const logits = model(images);
    if (!(logits instanceof Tensor)) throw new Error("the program gives one tensor");
    return logits;
  } finally {
    model.dispose();
  }
}

/** The seconds that the fastest of some calls took. */
function fastestCall(/** @type {import("tracefx").ExportedProgram} */ opened) {
  const model = opened.module();
  let fastest = Number.POSITIVE_INFINITY;
  for (let i = 0; i < REPEAT; i++) {
    const start = performance.now();
    const logits = /** @type {Tensor} */ (model(images));
    fastest = Math.min(fastest, (performance.now() - start) / 1000);
    logits.dispose();
  }
  model.dispose();
  return fastest;
}

/** The same with the native command, on the same files. */
function runNative(/** @type {string} */ path) {
  const [inputs, outputs] = [join(OUT, "images.safetensors"), join(OUT, "logits.safetensors")];
  writeFileSync(inputs, writeSafetensors({ in0: images }));
  const args = ["run", path, "--inputs", inputs, "--outputs", outputs, "--repeat", String(REPEAT), "--json"];
  const { milliseconds } = JSON.parse(execFileSync(NATIVE, args, { encoding: "utf8" }));
  const logits = only(readSafetensors(readFileSync(outputs)).tensors, "out0");
  return /** @type {const} */ ([logits, milliseconds / 1000]);
}

function correct(/** @type {Tensor} */ logits) {
  const scores = logits.toFloat32Array();
  return labels.filter((label, at) => {
    const row = scores.subarray(10 * at, 10 * at + 10);
    return row.indexOf(Math.max(...row)) === label;
  }).length;
}

function largestDifference(/** @type {Tensor} */ a, /** @type {Tensor} */ b) {
  const [x, y] = [a.toFloat32Array(), b.toFloat32Array()];
  if (x.length !== y.length) return Number.POSITIVE_INFINITY;
  return x.reduce((most, it, at) => Math.max(most, Math.abs(it - (y[at] ?? Number.NaN))), 0);
}

function only(/** @type {Map<string, Tensor>} */ tensors, /** @type {string} */ name) {
  const found = tensors.get(name);
  if (found === undefined) throw new Error(`the file has no tensor ${name}`);
  return found;
}

function heading(/** @type {string} */ text) {
  console.log(`\n${text}\n${"─".repeat(text.length)}\n`);
}

function printTable(/** @type {string[][]} */ table) {
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const [first = "", ...others] of table) {
    const cells = others.map((cell, at) => cell.padStart(widths[at + 1] ?? 0));
    console.log([first.padEnd(widths[0] ?? 0), ...cells].join("   "));
  }
}
