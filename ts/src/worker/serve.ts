/**
 * What runs in the worker: the engine, and the programs that were opened.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { init } from "../engine/engine.ts";
import { loadModule } from "../export/loadModule.ts";
import type { ProgramModule } from "../export/programModule.ts";
import { type Answer, pack, packError, type Packed, type Request, unpack } from "./messages.ts";
import { ownPort } from "./port.ts";

const port = ownPort<Answer, Request>();
const models = new Map<number, ProgramModule>();
/** What loads that go on are stopped by. */
const loads = new Map<number, AbortController>();

port.receive((request) => {
  const transfers: ArrayBuffer[] = [];
  answer(request, transfers).then(
    (value) => port.send({ id: request.id, is: "done", value }, transfers),
    (error: unknown) => port.send({ id: request.id, is: "failed", error: packError(error) }),
  );
});

async function answer(request: Request, transfers: ArrayBuffer[]): Promise<Packed | number | undefined> {
  const progress = (done: number, total: number | undefined): void =>
    port.send({ id: request.id, is: "progress", done, total });
  switch (request.do) {
    case "init":
      await init(request.wasm === undefined ? {} : { wasm: request.wasm });
      return undefined;
    case "load": {
      const stop = new AbortController();
      loads.set(request.id, stop);
      try {
        const watch = { signal: stop.signal, ...(request.progress ? { progress } : {}) };
        models.set(request.id, await loadModule(request.source, { ...request.options, ...watch }));
        return request.id;
      } finally {
        loads.delete(request.id);
      }
    }
    case "run":
      return await run(request, progress, transfers);
    case "abort":
      loads.get(request.id)?.abort();
      return undefined;
    case "dispose":
      models.get(request.model)?.dispose();
      models.delete(request.model);
      return undefined;
    default:
      return request satisfies never;
  }
}

/** Runs a program, and packs what it gives; nothing of it stays in the engine. */
async function run(
  { model, args, progress: isTold, stop }: Extract<Request, { readonly do: "run" }>,
  tell: (done: number, total: number) => void,
  transfers: ArrayBuffer[],
): Promise<Packed> {
  const module = models.get(model);
  if (module === undefined)
    throw fxError("Disposed", "the module was disposed", { help: "open it again: loadModule(source)" });
  const isWatched = isTold || stop !== undefined;
  const progress = (done: number, total: number): void => {
    if (stop !== undefined && Atomics.load(stop, 0) !== 0) throw new Error("the run was aborted");
    if (isTold) tell(done, total);
  };
  const result = await module.runAsync(args.map(unpack), isWatched ? { progress } : {});
  return pack(result, transfers, (tensor) => tensor.dispose());
}
