/**
 * The page: a small decoder-only language model that writes letter by letter, on the GPU or the CPU. Its weights are drawn from a seed, so
 * that what it writes is babble; what it computes is what a trained one does. Its cache of keys and values stays where it computes.
 *
 * @module
 */
import { exportProgram, F, FxError, init, nn, tensor, torch } from "../ts/dist/index.js";

const LETTERS = "abcdefghijklmnopqrstuvwxyz .,'\n-";
const [CONTEXT, FEATURES, HEADS, LAYERS] = [128, 64, 4, 2];

/** @typedef {import("../ts/dist/index.js").Tensor} Tensor */
/** @typedef {import("../ts/dist/index.js").ProgramModule} ProgramModule */

/** A layer, with the keys and values of the letters before. */
class Block extends nn.Module {
  before = new nn.LayerNorm(FEATURES);
  project = new nn.Linear(FEATURES, 3 * FEATURES);
  out = new nn.Linear(FEATURES, FEATURES);
  behind = new nn.LayerNorm(FEATURES);
  widen = new nn.Linear(FEATURES, 4 * FEATURES);
  narrow = new nn.Linear(4 * FEATURES, FEATURES);

  constructor() {
    super();
    for (const name of ["keys", "values"]) {
      this.registerBuffer(name, torch.zeros(1, HEADS, CONTEXT, FEATURES / HEADS));
    }
  }

  /** @override @param {Tensor} x @param {Tensor} at @param {Tensor} mask */
  forward(x, at, mask) {
    const [query, key, value] = this.project
      .forward(this.before.forward(x))
      .chunk(3, -1)
      .map((it) => it.reshape(1, 1, HEADS, FEATURES / HEADS).transpose(1, 2));
    const keys = this.getBuffer("keys").indexCopy_(2, at, /** @type {Tensor} */ (key));
    const values = this.getBuffer("values").indexCopy_(2, at, /** @type {Tensor} */ (value));
    const heads = F.scaledDotProductAttention(/** @type {Tensor} */ (query), keys, values, { attnMask: mask });
    const attended = x.add(this.out.forward(heads.transpose(1, 2).reshape(1, 1, FEATURES)));
    return attended.add(this.narrow.forward(F.gelu(this.widen.forward(this.behind.forward(attended)))));
  }
}

class Writer extends nn.Module {
  letters = new nn.Embedding(LETTERS.length, FEATURES);
  places = new nn.Embedding(CONTEXT, FEATURES);
  blocks = new nn.ModuleList(Array.from({ length: LAYERS }, () => new Block()));
  head = new nn.Linear(FEATURES, LETTERS.length);

  /** @override @param {Tensor} letter @param {Tensor} at */
  forward(letter, at) {
    const mask = torch.arange(CONTEXT).le(at).reshape(1, 1, 1, CONTEXT);
    let x = this.letters.forward(letter).add(this.places.forward(at));
    for (const block of this.blocks) x = /** @type {Block} */ (block).forward(x, at, mask);
    return this.head.forward(x);
  }
}

/** @type {<T extends HTMLElement>(id: string, type: new () => T) => T} */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

const status = element("status", HTMLParagraphElement);
const text = element("text", HTMLOutputElement);
const device = element("device", HTMLSelectElement);
const write = element("write", HTMLButtonElement);

/** Numbers from 0 to 1, the same each time. */
function chance(/** @type {number} */ seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A letter by the scores, where `drawn` falls. */
function pick(/** @type {Float32Array} */ scores, /** @type {number} */ drawn) {
  const most = Math.max(...scores);
  const powers = Array.from(scores, (it) => Math.exp(4 * (it - most)));
  let rest = drawn * powers.reduce((a, b) => a + b, 0);
  return Math.max(
    powers.findIndex((it) => (rest -= it) < 0),
    0,
  );
}

const position = (/** @type {number} */ at) => tensor([at], { dtype: "int64" });
const letter = (/** @type {number} */ at) => tensor([[at]], { dtype: "int64" });

async function start() {
  await init();
  torch.manualSeed(1);
  const program = exportProgram(new Writer().eval(), [letter(0), position(0)]);
  status.textContent = `${program.graph.nodes.length} nodes. Choose where it runs.`;
  write.disabled = false;

  write.addEventListener("click", async () => {
    const chosen = device.value === "gpu" ? "gpu" : "cpu";
    write.disabled = true;
    text.textContent = "";
    /** @type {ProgramModule | undefined} */
    let module;
    try {
      module = program.module({ device: chosen, state: "device" });
      const draw = chance(7);
      let [last, began] = [LETTERS.indexOf(" "), performance.now()];
      for (let at = 0; at < CONTEXT; at++) {
        const scores = /** @type {Tensor} */ (await module.runAsync([letter(last), position(at)]));
        last = pick(scores.toFloat32Array(), draw());
        scores.dispose();
        text.textContent += LETTERS[last] ?? "";
        // The first run compiles.
        if (at === 0) began = performance.now();
        const each = (performance.now() - began) / Math.max(at, 1);
        status.textContent = `letter ${at + 1} of ${CONTEXT} on the ${chosen.toUpperCase()}, ${each.toFixed(2)} ms each`;
        // The page shows what there is.
        if (chosen === "cpu" && at % 8 === 0) await new Promise((resolve) => setTimeout(resolve));
      }
    } catch (error) {
      if (!(error instanceof FxError)) throw error;
      status.textContent = error.message;
    } finally {
      module?.dispose();
      write.disabled = false;
    }
  });
}

await start();
