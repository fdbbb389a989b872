/**
 * What runs in the worker: the engine, and the programs that were opened.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { init, isStopped } from "../engine/engine.ts";
import { startThreadsBy } from "../engine/threads.ts";
import { loadModule } from "../export/loadModule.ts";
import { mayWrite, type ProgramModule, stateOfModule } from "../export/programModule.ts";
import { type Tensor, tensorBytes } from "../tensor/tensor.ts";
import { type Answer, pack, packError, type Request, type RunResult, unpack } from "./messages.ts";
import { ownPort } from "./port.ts";

/** A program that was opened. */
interface Model {
  readonly module: ProgramModule;
  /** The buffers that runs may change, as they are before the first; none once it is known that they were changed. */
  before: readonly (readonly [name: string, bytes: Uint8Array])[];
  hasChanged: boolean;
}

if (typeof Worker !== "undefined") {
  // Bundlers recognise this form, and build what it names.
  startThreadsBy((onError) => {
    const name = "tracefx thread";
    const thread = new Worker(new URL("../engine/thread.js", import.meta.url), { type: "module", name });
    thread.addEventListener("error", (event) => {
      // It is no error of this worker, which goes on alone.
      event.preventDefault();
      onError();
    });
    return thread;
  });
}

const port = ownPort<Answer, Request>();
const models = new Map<number, Model>();
/** What loads that go on are stopped by. */
const loads = new Map<number, AbortController>();

port.receive((request) => {
  const transfers: ArrayBuffer[] = [];
  answer(request, transfers)
    .then((value) => port.send({ id: request.id, is: "done", value }, transfers))
    .catch((error: unknown) =>
      port.send({ id: request.id, is: "failed", error: packError(error), isLast: isStopped() }),
    );
});

async function answer(request: Request, transfers: ArrayBuffer[]): Promise<number | RunResult | undefined> {
  const progress = (done: number, total: number | undefined): void =>
    port.send({ id: request.id, is: "progress", done, total });
  switch (request.do) {
    case "init":
      await init(request.options);
      return undefined;
    case "load": {
      const stop = new AbortController();
      loads.set(request.id, stop);
      try {
        const watch = { signal: stop.signal, ...(request.progress ? { progress } : {}) };
        const module = await loadModule(request.source, { ...request.options, ...watch });
        if (stop.signal.aborted) {
          module.dispose();
          stop.signal.throwIfAborted();
        }
        const { isChanged, buffers } = stateOfModule(module);
        const before = isChanged ? [] : buffers.map((name) => [name, stateBytes(module, name)] as const);
        models.set(request.id, { module, before, hasChanged: isChanged });
        return request.id;
      } finally {
        loads.delete(request.id);
      }
    }
    case "run":
      return await run(request, progress, transfers);
    case "abort":
      loads.get(request.id)?.abort();
      // A program that was opened before the request to stop came is nobody's.
      forget(request.id);
      return undefined;
    case "dispose":
      forget(request.model);
      return undefined;
    default:
      return request satisfies never;
  }
}

function forget(model: number): void {
  models.get(model)?.module.dispose();
  models.delete(model);
}

/** Runs a program, and packs what it gives and what it wrote to; nothing of it stays in the engine. */
async function run(
  { model, args, progress: isTold, stop }: Extract<Request, { readonly do: "run" }>,
  tell: (done: number, total: number) => void,
  transfers: ArrayBuffer[],
): Promise<RunResult> {
  const found = models.get(model);
  if (found === undefined)
    throw fxError("Disposed", "the module was disposed", { help: "open it again: loadModule(source)" });
  const { module } = found;
  const isWatched = isTold || stop !== undefined;
  const progress = (done: number, total: number): void => {
    if (stop !== undefined && Atomics.load(stop, 0) !== 0) throw new Error("the run was aborted");
    if (isTold) tell(done, total);
  };
  const inputs: (readonly [tensor: Tensor, before: Uint8Array])[] = [];
  try {
    const given = args.map((it) => unpack(it, (tensor, bytes) => inputs.push([tensor, bytes])));
    const result = await module.runAsync(given, isWatched ? { progress } : {});
    const written = mayWrite(module) ? changed(inputs) : [];
    for (const [, bytes] of written) transfers.push(bytes.buffer);
    const value = pack(result, transfers, (tensor) => tensor.dispose());
    return { value, written, hasChanged: hasChanged(found) };
  } finally {
    for (const [tensor] of inputs) tensor.dispose();
  }
}

/** The tensors that a run has written to, by their places. */
function changed(inputs: readonly (readonly [Tensor, Uint8Array])[]): RunResult["written"] {
  return inputs.flatMap(([tensor, before], at) => {
    const now = tensorBytes(tensor);
    return areSame(now, before) ? [] : [[at, now.slice()]];
  });
}

/** Whether runs have changed tensors of the program's own. */
function hasChanged(model: Model): boolean {
  model.hasChanged ||= model.before.some(([name, bytes]) => !areSame(stateBytes(model.module, name), bytes));
  if (model.hasChanged) model.before = [];
  return model.hasChanged;
}

function stateBytes(module: ProgramModule, name: string): Uint8Array {
  using state = module.getTensor(name);
  return tensorBytes(state).slice();
}

function areSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.every((it, at) => it === b[at]);
}
