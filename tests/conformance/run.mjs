/**
 * Runs recorded PyTorch data of one kind through an engine and says what differs.
 *
 *     npm run -s conformance -- KIND DIR [--engine native|wasm|browser|ts|rust] [--device cpu|gpu] [--only NAME] [--report FILE.json] [--decompose] [--resave] [--resave-to FOLDER] [--record]
 *
 * The last line is `N passed, N failed, N skipped`. Skipped means that something is not implemented, by a typed error; a
 * wrong answer always counts as failed. The cases in which tracefx differs on purpose are listed with their reasons, and
 * counted for themselves.
 *
 * With `--decompose`, programs run in terms of core operators: what `run_decompositions` makes of them.
 *
 * With `--resave`, programs are saved as archives of PyTorch and opened again before they run; `--resave-to` keeps the
 * archives, for `tests/oracle/check_saved.py`. Models are always exported, decomposed, saved and opened again.
 *
 * With `--device gpu`, the native engine runs plans on the GPU, as `browser` does, the package in Chromium, and says how many steps of
 * all plans the CPU does, and why. Calls of operators run as programs of one call there.
 *
 * A run of a whole folder is compared with `counts.json`, of which no count may fall; `--record` writes those that rose.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { browserEngine } from "./browser.mjs";
import { callingByPrograms } from "./calls.mjs";
import { countsOf, fallOf, folderName, readCounts, recordCounts } from "./counts.mjs";
import { graphCases, rustGraphCases } from "./graphs.mjs";
import { modelCases } from "./models.mjs";
import { moduleCases } from "./modules.mjs";
import { nativeEngine } from "./native.mjs";
import { opCases } from "./ops.mjs";
import { programCases } from "./programs.mjs";
import { transformCases } from "./transforms.mjs";
import { wasmEngine } from "./wasm.mjs";

/** @typedef {import("./engine.mjs").Result} Result */
/** @typedef {import("./engine.mjs").Engine} Engine */

const USAGE =
  "usage: npm run -s conformance -- KIND DIR [--engine native|wasm|browser|ts|rust] [--device cpu|gpu] [--only NAME] [--report FILE.json] [--decompose] [--resave] [--resave-to FOLDER] [--record]";

/**
 * For each kind its cases, and the engines that it runs on, of which the first is the default.
 * @type {Record<string, { cases: (dir: string, only: string | undefined, engine: Engine, way: import("./engine.mjs").Way, name: string) => AsyncIterable<Result>, engines: string[] }>}
 */
const KINDS = {
  programs: { cases: programCases, engines: ["wasm", "native", "browser"] },
  ops: { cases: opCases, engines: ["wasm", "native", "browser"] },
  graphs: { cases: graphsOf, engines: ["ts", "rust"] },
  models: { cases: modelCases, engines: ["ts"] },
  modules: { cases: moduleCases, engines: ["ts"] },
  transforms: { cases: transformCases, engines: ["ts"] },
};

/** @type {(dir: string, only: string | undefined, engine: Engine, way: import("./engine.mjs").Way, name: string) => AsyncGenerator<Result>} */
async function* graphsOf(dir, only, _engine, _way, name) {
  yield* name === "rust" ? rustGraphCases(dir, only) : graphCases(dir, only);
}

/**
 * Programs run on an engine; graphs are a matter of the package itself, which starts the engine where it needs it, or of the
 * crates alone, which are a command of their own.
 * @type {Record<string, (device?: string) => Promise<Engine>>}
 */
const ENGINES = { native: nativeEngine, browser: browserEngine, wasm: wasmEngine, ts: wasmEngine, rust: wasmEngine };

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      engine: { type: "string" },
      device: { type: "string" },
      only: { type: "string" },
      report: { type: "string" },
      decompose: { type: "boolean", default: false },
      resave: { type: "boolean", default: false },
      "resave-to": { type: "string" },
      record: { type: "boolean", default: false },
    },
  });
  const [kind = "", dir] = positionals;
  const known = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (known === undefined || dir === undefined || positionals.length > 2) {
    throw new Error(`${USAGE}\nthe kinds are ${Object.keys(KINDS).join(", ")}`);
  }
  if (values.record && values.only !== undefined)
    throw new Error("--record counts a whole folder, and --only is given");
  const { cases, engines } = known;
  const name = values.engine ?? engines[0] ?? "";
  const start = engines.includes(name) ? ENGINES[name] : undefined;
  if (start === undefined) throw new Error(`${USAGE}\nthe engines for ${kind} are ${engines.join(", ")}`);

  const resaveTo = values["resave-to"] === undefined ? undefined : resolve(values["resave-to"]);
  const resave = values.resave || resaveTo !== undefined;
  if (resave && kind !== "programs" && !(kind === "models" && resaveTo !== undefined)) {
    throw new Error(`${USAGE}\nprograms are resaved; models are saved anyway, and --resave-to keeps them`);
  }
  const how = { decompose: values.decompose, resave, resaveTo };

  if (values.device !== undefined && name !== "native" && name !== "browser") {
    throw new Error(`${USAGE}\nthe native engine and the browser have devices`);
  }

  const started = await start(values.device);
  const isOnDevice = name === "browser" || (values.device !== undefined && values.device !== "cpu");
  const engine = kind === "ops" && isOnDevice ? await callingByPrograms(started) : started;
  /** @type {Result[]} */
  const results = [];
  try {
    for await (const result of cases(dir, values.only, engine, how, name)) {
      results.push(result);
      if (result.detail !== undefined) console.log(`${result.status}  ${result.name}: ${result.detail}`);
    }
  } finally {
    await engine.close();
  }
  const count = (/** @type {Result["status"]} */ status) => results.filter((it) => it.status === status).length;
  if (values.report !== undefined) {
    writeFileSync(values.report, `${JSON.stringify({ kind, engine: name, results }, undefined, 1)}\n`);
  }
  if (results.length === 0) throw new Error(`there is nothing of the kind ${kind} in ${dir}`);
  const steps = engine.steps?.() ?? [];
  if (steps.length > 0) printSteps(steps);
  if (count("differs") > 0) console.log(`${count("differs")} differ on purpose`);
  console.log(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
  process.exitCode = count("failed") > 0 ? 1 : 0;
  if (values.only !== undefined) return;
  const [folder, way] = [
    folderName(dir),
    [
      name,
      ...(values.device === undefined ? [] : [values.device]),
      ...(how.decompose ? ["decomposed"] : []),
      ...(resave ? ["resaved"] : []),
    ].join(", "),
  ];
  const found = countsOf(results);
  if (values.record) return recordCounts(folder, way, found);
  const before = readCounts()[folder]?.[way];
  const fall = before === undefined ? undefined : fallOf(before, found);
  if (fall !== undefined) {
    console.error(`counts.json: ${fall}`);
    process.exitCode = 1;
  } else if (before !== undefined && found.passed > before.passed) {
    console.error(`counts.json: ${found.passed} passed where ${before.passed} did before; --record keeps that`);
  }
}

/** Why the CPU does a step that reads and writes no tensor, such as an assertion of a size: nothing of it is a device's. */
const NUMBERS_ALONE = "numbers alone";

/** Says how many steps of all plans the CPU does in the place of a device, and why. */
function printSteps(/** @type {readonly (string | null)[]} */ reasons) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const it of reasons) if (it !== null) counts.set(it, (counts.get(it) ?? 0) + 1);
  for (const [reason, n] of [...counts].toSorted((a, b) => b[1] - a[1]))
    console.log(`${n} steps on the CPU: ${reason}`);
  const onCpu = reasons.filter((it) => it !== null && it !== NUMBERS_ALONE).length;
  const all = reasons.filter((it) => it !== NUMBERS_ALONE).length;
  const share = ((100 * onCpu) / all).toFixed(1);
  console.log(`${all} steps with tensors, ${all - onCpu} on the device, ${onCpu} on the CPU (${share} %)`);
}

main().catch((error) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
});
