/**
 * The package in a page of Chromium, whose plans run on the GPU.
 *
 * @module
 */
import { readSafetensors, writeSafetensors } from "tracefx";
import { gpuPage } from "../browser/gpu.mjs";
import { errorOf } from "./native.mjs";
import { wasmEngine } from "./wasm.mjs";

/**
 * @param {string} [device] What plans run on.
 * @returns {Promise<import("./engine.mjs").Engine>}
 */
export async function browserEngine(device = "gpu") {
  const here = await wasmEngine();
  const { page, close } = await gpuPage();
  /** @type {(string | null)[]} */
  const steps = [];
  let file = "";
  await page.route("**/model.pt2", (route) => route.fulfill({ path: file }));
  await page.evaluate(async () => {
    const { probe } = /** @type {any} */ (globalThis);
    await probe.init();
    const { prototype } = probe.PlanOnGpu;
    const { run } = prototype;
    prototype.run = async function (/** @type {unknown[]} */ ...given) {
      const reasons = this.program.steps.map((/** @type {any} */ it) => it.work.cpu ?? null);
      /** @type {any} */ (globalThis).reasons.push(...reasons);
      await run.apply(this, given);
    };
  });
  return {
    ...here,
    async open(path, decompose, resave) {
      if (decompose || resave) throw new Error("the page opens programs as they are");
      file = path;
      return await here.open(path, false, false);
    },
    async define() {
      await here.define();
      await page.evaluate(async (module) => (await import(module)).defineOperators(), "/tests/conformance/library.mjs");
    },
    async start() {
      told(await page.evaluate(inPage.start, { device }));
    },
    steps: () => steps,
    async run(inputs) {
      /** @type {Map<string, import("tracefx").Tensor>} */
      const tensors = new Map();
      const sent = inputs.map((it, at) => {
        if (it.kind === "tensor") {
          tensors.set(`in${at}`, it.value);
          return { tensor: `in${at}` };
        }
        if (it.kind === "int" || it.kind === "float") return { kind: it.kind, value: String(it.value) };
        return { kind: "plain", value: it.value };
      });
      const data = Buffer.from(writeSafetensors(tensors)).toString("base64");
      const reply = told(await page.evaluate(inPage.run, { data, inputs: sent }));
      steps.push(...reply.reasons);
      const { tensors: found } = readSafetensors(new Uint8Array(Buffer.from(reply.results, "base64")));
      const outputs = reply.outputs.map((/** @type {any} */ it) => {
        if (it.tensor !== undefined) return found.get(it.tensor);
        return it.kind === "bigint" ? BigInt(it.value) : it.kind === "number" ? Number(it.value) : it.value;
      });
      return { outputs, inputs: inputs.map((_, at) => found.get(`input.${at}`)) };
    },
    async state(names) {
      const reply = told(await page.evaluate(inPage.state, { names }));
      return readSafetensors(new Uint8Array(Buffer.from(reply.results, "base64"))).tensors;
    },
    async close() {
      await here.close();
      await close();
    },
  };
}

/** What the page replies, or the error that it has caught. */
function told(/** @type {any} */ reply) {
  if (reply.error !== undefined) throw errorOf(reply.error);
  return reply;
}

/** What the page does; each function stands for itself, since it is sent there as text. */
const inPage = {
  /** @param {{ device: string }} options */
  async start({ device }) {
    const page = /** @type {any} */ (globalThis);
    const { probe } = page;
    try {
      page.module?.dispose();
      page.module = undefined;
      page.module = (await probe.load("/model.pt2")).module({ device });
      return {};
    } catch (error) {
      if (!(error instanceof probe.FxError)) throw error;
      const { kind: name, reason: message, node, op, notes, help } = /** @type {any} */ (error);
      return { error: { name, message, node, op, notes, help } };
    }
  },
  /** @param {{ data: string, inputs: any[] }} call */
  async run({ data, inputs }) {
    const page = /** @type {any} */ (globalThis);
    const { probe } = page;
    page.reasons = [];
    try {
      const { tensors } = probe.readSafetensors(Uint8Array.from(atob(data), (it) => it.charCodeAt(0)));
      const leaves = inputs.map((it) => {
        if ("tensor" in it) return tensors.get(it.tensor);
        if (it.kind === "float") return probe.float(Number(it.value));
        if (it.kind !== "int") return it.value;
        return Number.isSafeInteger(Number(it.value)) ? Number(it.value) : BigInt(it.value);
      });
      const given = await page.module.runFlatAsync(leaves);
      const results = new Map();
      const outputs = given.map((/** @type {any} */ it, /** @type {number} */ at) => {
        if (!(it instanceof probe.Tensor)) {
          return typeof it === "number" || typeof it === "bigint"
            ? { kind: typeof it, value: String(it) }
            : { value: it };
        }
        results.set(`out${at}`, it);
        return { tensor: `out${at}` };
      });
      leaves.forEach((it, at) => {
        if (it instanceof probe.Tensor) results.set(`input.${at}`, it);
      });
      let text = "";
      for (const byte of probe.writeSafetensors(results)) text += String.fromCharCode(byte);
      return { outputs, results: btoa(text), reasons: page.reasons };
    } catch (error) {
      if (!(error instanceof probe.FxError)) throw error;
      const { kind: name, reason: message, node, op, notes, help } = /** @type {any} */ (error);
      return { error: { name, message, node, op, notes, help } };
    }
  },
  /** @param {{ names: string[] }} asked */
  async state({ names }) {
    const page = /** @type {any} */ (globalThis);
    const found = new Map(names.map((name) => [name, page.module.getTensor(name)]));
    let text = "";
    for (const byte of page.probe.writeSafetensors(found)) text += String.fromCharCode(byte);
    return { results: btoa(text) };
  },
};
