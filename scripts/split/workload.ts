/**
 * What the primary modules are for: programs are opened, looked at and run, by the engine and by the runtime. What these runs call stays
 * in the modules that a page downloads first; what editing and exporting calls is the engine's part `edit`, and the rest `rare`. A function in
 * another part than its caller is found all the same, so that this list decides what is downloaded when, and nothing else.
 *
 * `profile.mjs` bundles this file and runs it, with the modules, the folder that gets `engine.run`, `engine.edit` and
 * `runtime.run` (the numbers of the functions), and the folder of programs that PyTorch exported.
 *
 * @module
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { call } from "../../ts/src/engine/engine.ts";
import { loadModule } from "../../ts/src/export/loadModule.ts";
import { stateOfModule } from "../../ts/src/export/programModule.ts";
import * as tracefx from "../../ts/src/index.ts";
import { load as loadPlans } from "../../ts/src/runtime/runtime.ts";
import * as engineGlue from "../../ts/wasm/engine.js";
import * as runtimeGlue from "../../ts/wasm/runtime.js";
import { models, type Sample } from "./models.ts";

const { init, load, readSafetensors, restart, save, tensor, torch } = tracefx;
type Tensor = tracefx.Tensor;

const [engineFile, runtimeFile, out, fixtures] = process.argv.slice(2) as [string, string, string, string];

/** What the names of flags begin with (`xtask/split`). */
const FLAG = "called:";

type Glue = typeof engineGlue | typeof runtimeGlue;

/** The functions that were called, by their numbers: of the instance that there is, and of those before it. */
const calledOf = new Map<Glue, Set<string>>();

/** Notes which functions of an instance were called, and what asks for a part among them. */
function note(glue: Glue): ReadonlySet<string> {
  glue.set_parts({ load: () => {} } as never);
  glue.load_part(1);
  // There is an instance, which it gives.
  const exports: object = glue.initSync({ module: new Uint8Array() });
  const called = calledOf.get(glue) ?? new Set();
  for (const [name, flag] of Object.entries(exports))
    if (name.startsWith(FLAG) && (flag as WebAssembly.Global).value === 1) called.add(name.slice(FLAG.length));
  calledOf.set(glue, called);
  return called;
}

/** Writes which functions of a module were called. */
function record(glue: Glue, name: string): void {
  const called = note(glue);
  if (called.size === 0) throw new Error(`${name}: the module does not tell what was called`);
  writeFileSync(join(out, name), [...called].join("\n"));
  // oxlint-disable-next-line no-console -- the build says so
  console.log(`wasm: ${name}, ${called.size} functions`);
}

/** Programs that PyTorch exported, by their names. */
function recorded(chosen: RegExp): Sample[] {
  const names = readdirSync(fixtures).filter((it) => !it.startsWith("_") && chosen.test(it));
  const read = (name: string, file: string): Uint8Array => readFileSync(join(fixtures, name, file));
  return names.map((name) => ({ file: read(name, "model.pt2"), inputs: read(name, "inputs.safetensors") }));
}

/** The inputs of a program, in order. */
function inputsOf({ inputs }: Sample): Tensor[] {
  const { tensors } = readSafetensors(inputs);
  return [...tensors.keys()].toSorted().map((it) => tensors.get(it) as Tensor);
}

/** Does something that may be refused: that is a part of what is called, too. */
async function tried<T>(body: () => T): Promise<Awaited<T> | undefined> {
  try {
    return await body();
  } catch (error) {
    if (!(error instanceof tracefx.FxError)) throw error;
    return undefined;
  }
}

/** Opens a program, looks at it and runs it. */
async function run(sample: Sample): Promise<void> {
  const inputs = inputsOf(sample);
  const program = await tried(() => load(sample.file));
  if (program === undefined) return;
  String(program);
  program.graph.tabular();
  for (const precision of ["fast", "strict"] as const) {
    using module = await tried(() => program.module({ precision }));
    if (module === undefined) return;
    for (let time = 0; time < 2; time++) await tried(() => String(module(...inputs)));
    await tried(() => module.runAsync(inputs));
    await tried(() => module(...inputs.slice(1)));
    await tried(() => module(...inputs.map((it) => it.unsqueeze(0))));
  }
  await serve(sample);
}

/** Opens a program without its graph, watches its runs and reads its tensors: what a worker does (`ts/src/worker/serve.ts`). */
async function serve(sample: Sample): Promise<void> {
  const inputs = inputsOf(sample);
  using module = await tried(() => loadModule(sample.file));
  if (module === undefined) return;
  for (const name of stateOfModule(module).buffers) module.getTensor(name).dispose();
  const outputs = await tried(() => module.runAsync(inputs, { progress: () => {} }));
  if (outputs instanceof tracefx.Tensor) await tried(() => module.runInto(inputs, [outputs]));
  const stop = new AbortController();
  const reason = new Error("stopped");
  await loadModule(new Blob([new Uint8Array(sample.file)]), {
    signal: stop.signal,
    progress: () => stop.abort(reason),
  }).catch((error: unknown) => {
    if (error !== reason && !(error instanceof tracefx.FxError)) throw error;
  });
}

/** What a page does with tensors beside a model. */
async function compute(): Promise<void> {
  torch.manualSeed(torch.initialSeed());
  const x = tensor([1, 2, 3, 4, 5, 6], { dtype: "float32" }).reshape(2, 3);
  const words = tensor([1, 0, 1], { dtype: "int64" });
  for (const it of [
    torch.zeros(2, 3),
    torch.ones(2, 3),
    torch.arange(6),
    torch.full([2], 1.5),
    torch.randn(2, 3),
    words,
  ])
    String(it);
  String(x.add(1).mul(x).sub(x).div(2).relu().reshape(3, 2).t().contiguous());
  String(torch.softmax(x, -1).argmax(-1));
  for (const it of [x.sum(), x.mean(), x.max(), x.min(), x.exp(), x.sqrt(), x.sigmoid(), x.gt(2), x.eq(x)]) String(it);
  String(torch.cat([x, x]).unsqueeze(0).permute(0, 2, 1).squeeze(0).narrow(0, 0, 1));
  String(torch.stack([x, x]).transpose(0, 1));
  String(x.matmul(x.t()));
  for (const dtype of [torch.float16, torch.int32, torch.int64, torch.bool, torch.uint8]) String(x.to(dtype));
  for (const it of torch.topk(x, 2)) String(it);
  x.tolist();
  tracefx.engineVersion();
  await tried(() => x.matmul(x));
  for (const failure of ["panic", "refuse"]) await tried(() => call((engine) => engine.__test_failure(failure)));
}

/** What changes programs, makes them and saves them. */
async function edit(it: Sample): Promise<void> {
  const program = await tried(() => load(it.file));
  if (program === undefined) return;
  await tried(() => save(program));
  const core = await tried(() => program.runDecompositions());
  if (core !== undefined) await tried(() => save(core));
  await tried(() => program.toFxg());
}

/** Runs a program by the plans of its file. */
async function runPlans(sample: Sample): Promise<void> {
  const inputs = inputsOf(sample);
  const program = await tried(() => load(sample.file));
  const file = await tried(() => program?.module().compiledFile(inputs));
  if (file === undefined) return;
  using model = await loadPlans(file, { wasm: readFileSync(runtimeFile) });
  for (let time = 0; time < 2; time++) String(model(...inputs));
  await tried(() => model(...inputs.slice(1)));
  await tried(() => model(...inputs.map((it) => it.unsqueeze(0))));
}

await init({ wasm: readFileSync(engineFile), threads: 1 });
// What happens once, however often the engine is made anew.
note(engineGlue);
torch.manualSeed(0);
const made = await models();
// Training, linear algebra and what is made for tests are left out.
const programs = [...recorded(/^(?!custom_op|conv_bn|linalg|special|subclass)/), ...made];
restart();
for (const it of programs) await run(it);
// As on several threads, of which no other has time.
engineGlue.set_threads({ start: () => false } as never);
engineGlue.set_num_threads(2);
engineGlue.num_threads();
engineGlue.worker_stopped();
for (const it of programs) await run(it);
await compute();
record(engineGlue, "engine.run");
for (const it of programs) await edit(it);
await models();
record(engineGlue, "engine.edit");
for (const it of [...recorded(/^(digits|resnet)/), ...made]) await runPlans(it);
record(runtimeGlue, "runtime.run");
