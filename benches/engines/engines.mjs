/**
 * The engines that `bench.mjs` knows, by name.
 *
 * @module
 */
import { measureWith as inChromium } from "./chromium.mjs";
import { measure as native } from "./native.mjs";
import { measureWith as inNode } from "./node.mjs";
import { openNode, openWeb } from "./onnxruntime.mjs";
import { measureWith as rust } from "./rust.mjs";
import { open as openTfjs } from "./tfjs.mjs";
import { measureWith as torch } from "./torch.mjs";
import { open as openWasm } from "./wasm.mjs";

/**
 * What is measured: the files of the workload begin with `base`.
 *
 * @typedef {{ base: string, threads: number, seconds: number, peers: string, python: string, scratch: string }} Request
 * @typedef {import("./repeated.mjs").Timed & { memory: number | undefined }} Measured with the most memory of the process, in bytes
 * @typedef {(request: Request) => Promise<Measured>} Measure
 */

/** @type {Readonly<Record<string, Measure>>} */
export const ENGINES = {
  native,
  wasm: inNode(openWasm),
  "onnxruntime-node": inNode(openNode, true),
  "onnxruntime-web": inNode(openWeb, true),
  tfjs: inNode(openTfjs),
  "torch eager": torch("eager"),
  "torch.compile": torch("compile"),
  tract: rust("tract"),
  rten: rust("rten"),
  "wasm in Chromium": inChromium("wasm"),
  "onnxruntime-web in Chromium": inChromium("onnxruntime-web"),
  "tfjs in Chromium": inChromium("tfjs"),
};
