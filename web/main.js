/**
 * The page: opens a program, shows its graph, and lets the digits program classify what is drawn.
 *
 * Everything that comes out of a file goes into the page as text, never as markup.
 *
 * @module
 */
import { FxError, load, readSafetensors, tensor } from "../ts/dist/index.js";
import { TracefxGraph } from "../ts/dist/explorer/explorer.js";
import { drawing } from "./drawing.js";

const DIGITS = new URL("../tests/fixtures/programs/digits_cnn/model.pt2", import.meta.url);
const IMAGES = new URL("../tests/fixtures/programs/_digits/test.safetensors", import.meta.url);

/** @type {<T extends HTMLElement>(id: string, type: new () => T) => T} */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

const status = element("status", HTMLParagraphElement);
const problem = element("problem", HTMLPreElement);
const digits = element("digits", HTMLElement);
const answer = element("answer", HTMLOutputElement);
const explorer = element("graph", TracefxGraph);

/** @type {import("../ts/dist/index.js").ProgramModule | undefined} */
let model;
/** @type {Promise<{ pixels: Float32Array, labels: Float32Array }> | undefined} */
let testImages;

const canvas = drawing(element("canvas", HTMLCanvasElement), (pixels) => {
  element("truth", HTMLParagraphElement).textContent = "";
  classify(pixels);
});

/** Opens a program and shows it; what was open before stays when the new one is refused. */
async function open(
  /** @type {import("../ts/dist/index.js").ProgramSource} */ source,
  /** @type {string} */ name,
  /** @type {boolean} */ isDigits,
) {
  status.textContent = `Opening ${name}…`;
  problem.hidden = true;
  try {
    const program = await load(source);
    await explorer.open(program);
    element("report", HTMLPreElement).textContent = program.inspect();
    model?.dispose();
    model = undefined;
    digits.hidden = !isDigits;
    if (isDigits) {
      model = program.module();
      canvas.clear();
    }
    status.textContent = `${name}: ${program.graph.nodes.length} nodes, written by torch ${program.torchVersion}.`;
  } catch (error) {
    if (!(error instanceof FxError)) throw error;
    status.textContent = `${name} was refused; the page shows what was open before.`;
    problem.textContent = `${error.name}: ${error.message}`;
    problem.hidden = false;
  }
}

/** Shows how a second program differs from the one that is open. */
async function compare(/** @type {File} */ file) {
  problem.hidden = true;
  try {
    await explorer.compare(file);
  } catch (error) {
    if (!(error instanceof FxError)) throw error;
    problem.textContent = `${error.name}: ${error.message}`;
    problem.hidden = false;
  }
}

/** Shows what the network says of an image of 8 by 8 pixels from 0 to 1; nothing of an empty one. */
function classify(/** @type {Float32Array} */ pixels) {
  if (model === undefined || pixels.every((it) => it === 0)) {
    answer.textContent = "–";
    element("scores", HTMLTableElement).replaceChildren();
    element("time", HTMLParagraphElement).textContent = "";
    return;
  }
  const start = performance.now();
  const image = tensor(pixels, { shape: [1, 1, 8, 8] });
  const logits = /** @type {import("../ts/dist/index.js").Tensor} */ (model(image));
  const scores = softmax(logits.toFloat32Array());
  logits.dispose();
  element("time", HTMLParagraphElement).textContent = `${(performance.now() - start).toFixed(2)} ms`;
  answer.textContent = String(scores.indexOf(Math.max(...scores)));
  showScores(scores);
}

function showScores(/** @type {number[]} */ scores) {
  const rows = scores.map((score, digit) => {
    const row = document.createElement("tr");
    const meter = Object.assign(document.createElement("meter"), { min: 0, max: 1, value: score });
    for (const content of [String(digit), meter, `${(100 * score).toFixed(1)} %`]) {
      const cell = document.createElement("td");
      cell.append(content);
      row.append(cell);
    }
    return row;
  });
  element("scores", HTMLTableElement).replaceChildren(...rows);
}

function softmax(/** @type {Float32Array} */ logits) {
  const most = Math.max(...logits);
  const powers = Array.from(logits, (it) => Math.exp(it - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((it) => it / sum);
}

async function pickTestImage() {
  testImages ??= fetchTestImages();
  const { pixels, labels } = await testImages;
  const at = Math.floor(Math.random() * labels.length);
  const image = pixels.slice(64 * at, 64 * at + 64).map((it) => it / 16);
  canvas.show(image);
  classify(image);
  element("truth", HTMLParagraphElement).textContent = `Test image ${at}: somebody wrote a ${labels[at]}.`;
}

async function fetchTestImages() {
  const { tensors } = readSafetensors(await (await fetch(IMAGES)).arrayBuffer());
  const read = (/** @type {string} */ name) => tensors.get(name)?.toFloat32Array() ?? new Float32Array();
  return { pixels: read("images"), labels: read("labels") };
}

const openFile = (/** @type {File | null | undefined} */ file) => file && open(file, file.name, false);
const openDigits = () => open(DIGITS, "the digits program", true);

const input = element("file", HTMLInputElement);
input.addEventListener("change", () => openFile(input.files?.[0]));
const other = element("other", HTMLInputElement);
other.addEventListener("change", () => other.files?.[0] && compare(other.files[0]));
element("reset", HTMLButtonElement).addEventListener("click", openDigits);
element("pick", HTMLButtonElement).addEventListener("click", pickTestImage);
element("clear", HTMLButtonElement).addEventListener("click", () => canvas.clear());
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dragging");
});
document.addEventListener("dragleave", () => document.body.classList.remove("dragging"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  openFile(event.dataTransfer?.files[0]);
});

await openDigits();
