/**
 * Counts what models tell WebGPU on tracefx and on onnxruntime-web, in a page of Chromium, and prints a table.
 *
 *     node benches/gpuCounts.mjs [--python python3] [--only digits,encoder6] [--engines tracefx,onnxruntime-web] [--minutes 20]
 *
 * It takes the package, a Chromium (`node scripts/bootstrap.mjs --with-tests`), and what `bench.mjs` takes for the models and the peer. The adapter is one of
 * software, whose times mean nothing: it counts, and compares with PyTorch's numbers. What is counted is all that the page tells WebGPU in the
 * second run, in which the weights are on the device and all is compiled. Inputs and results cross; caches of decoding stay on the device, here
 * as there. It fails where an engine is off or does not end in so many minutes, and where tracefx has more of something.
 *
 * @module
 */
import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gpuPage } from "../tests/browser/gpu.mjs";
import { installPeers, MODEL_FOLDER, makeModels, PEER_FOLDER, toleranceOf } from "./workloads.mjs";

const WORKLOADS = ["digits", "mobilenet_v2", "resnet50", "encoder6", "minilm", "gpt2", "gpt2_step64"];
const [OWN, PEER] = ["tracefx", "onnxruntime-web"];
const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** @typedef {import("../tests/browser/gpuCounter.mjs").Counts & { difference: number }} Found */

/** What is counted, by the name of its column. @type {Readonly<Record<string, (counts: Found) => number>>} */
const COLUMNS = {
  dispatches: ({ dispatches }) => dispatches,
  submissions: ({ submissions }) => submissions,
  "bytes moved": ({ bytesUp, bytesDown }) => bytesUp + bytesDown,
  up: ({ bytesUp }) => bytesUp,
  down: ({ bytesDown }) => bytesDown,
  "copied there": ({ bytesCopied }) => bytesCopied,
};
/** Of which of these tracefx is to have no more than the peer. */
const COMPARED = ["dispatches", "submissions", "bytes moved"];

const { values } = parseArgs({
  options: {
    python: { type: "string", default: "python3" },
    only: { type: "string", default: WORKLOADS.join() },
    engines: { type: "string", default: `${OWN},${PEER}` },
    minutes: { type: "string", default: "20" },
  },
});
const names = values.only.split(",");
makeModels(values.python, names);
installPeers(PEER);

const url = (/** @type {string} */ path) => `/${relative(ROOT, path).split(sep).join("/")}`;

console.log(`| workload | engine | ${Object.keys(COLUMNS).join(" | ")} | off by |`);
console.log(`|---|---|${"--:|".repeat(Object.keys(COLUMNS).length + 1)}`);
for (const name of names) {
  /** @type {Map<string, Found>} */
  const found = new Map();
  for (const engine of values.engines.split(",")) {
    try {
      const counts = await counted(engine, name);
      found.set(engine, counts);
      const cells = [
        name,
        engine,
        ...Object.values(COLUMNS).map((of) => of(counts).toLocaleString("en")),
        counts.difference.toExponential(1),
      ];
      console.log(`| ${cells.join(" | ")} |`);
      if (!(counts.difference <= toleranceOf(name))) throw new Error(`it is off by ${counts.difference}`);
    } catch (error) {
      const [why] = /** @type {Error} */ (error).message.split("\n");
      refuse(`${engine} in ${name}: ${why}`);
    }
  }
  const [own, peer] = [found.get(OWN), found.get(PEER)];
  if (own === undefined || peer === undefined) continue;
  for (const column of COMPARED) {
    const [ours, theirs] = [own, peer].map((it) => COLUMNS[column]?.(it) ?? Number.NaN);
    if (!(ours <= theirs)) refuse(`${name}: ${ours} ${column} instead of ${theirs}`);
  }
}

/** Says what is not as it is to be. */
function refuse(/** @type {string} */ why) {
  console.error(why);
  process.exitCode = 1;
}

/**
 * The counts of an engine in a page of its own.
 *
 * @param {string} engine
 * @param {string} name
 * @returns {Promise<Found>}
 */
async function counted(engine, name) {
  const { page, close } = await gpuPage();
  const minutes = Number(values.minutes);
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  try {
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`it did not end in ${minutes} minutes`)), 60_000 * minutes);
    });
    const request = {
      script: url(`${ROOT}benches/engines/gpuPage.mjs`),
      engine,
      base: url(`${MODEL_FOLDER}/${name}`),
      modules: url(`${PEER_FOLDER}/node_modules`),
    };
    const run = page.evaluate(async ({ script, ...given }) => (await import(script)).countInPage(given), request);
    return await Promise.race([run, late]);
  } finally {
    clearTimeout(timer);
    await close();
  }
}
