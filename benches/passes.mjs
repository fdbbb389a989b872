/**
 * Times passes natively, from TypeScript and in torch.fx, one after the other on one machine, and writes `benches/passes.md`.
 *
 *     npm run -s build -w ts && node benches/passes.mjs --python python3
 *
 * From TypeScript the time is of the whole call: encoding, the pass and the edit script. Natively `pass` is the pass alone and
 * `bytes` the same from bytes to bytes. Every graph is new to the engine when its clock starts.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { python: { type: "string", default: "python3" } } });
const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));
/** @type {(command: string, ...args: string[]) => Record<string, any>} */
const times = (command, ...args) =>
  JSON.parse(execFileSync(command, args, { encoding: "utf8", cwd: here(".."), stdio: ["ignore", "pipe", "inherit"] }));

const fx = times(values.python, here("passes.py"));
const native = times("cargo", "bench", "-q", "-p", "tracefx-engine", "--bench", "passes");
const own = times(process.execPath, here("passesMeasure.mjs"));

const ms = (/** @type {number | undefined} */ it) => (it === undefined ? "–" : it.toFixed(it < 10 ? 2 : 1));
const ratio = (/** @type {number | undefined} */ a, /** @type {number | undefined} */ b) =>
  a === undefined || b === undefined ? "–" : `${(a / b).toFixed(0)}×`;
const rows = Object.keys(own).map((key) => {
  const [name = "", n = ""] = key.split(/\/(?=\d+$)/);
  const { alone, whole } = native[key] ?? {};
  const cells = [
    name,
    n,
    ms(fx[key]),
    ms(alone),
    ratio(fx[key], alone),
    ms(whole),
    ms(own[key]),
    ratio(fx[key], own[key]),
  ];
  return `| ${cells.join(" | ")} |`;
});
const text = `# Passes beside torch.fx

Milliseconds, medians; written by \`node benches/passes.mjs\`. *pass* is the pass in Rust alone, *bytes* from bytes to bytes,
*TypeScript* a whole call through WebAssembly, encoding and edit script included (dead code and sorting are TypeScript's own).
Every graph is new when its clock starts, and the garbage of making it is collected before, on both sides. fake_tensor_prop tells
shapes alone, here as there; shape_prop computes numbers, here as there.

| pass | nodes | torch.fx | pass | faster | bytes | TypeScript | faster |
|---|--:|--:|--:|--:|--:|--:|--:|
${rows.join("\n")}
`;
writeFileSync(here("passes.md"), text);
console.log(text);
