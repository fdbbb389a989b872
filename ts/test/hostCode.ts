/**
 * Finds files of tests that can differ where the host evaluates no text, so that the list of them (`withoutEval.ts`) cannot
 * fall behind: each file is watched while it runs.
 */
import * as childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import * as workers from "node:worker_threads";
import { CAN_DIFFER } from "./withoutEval.ts";

type Callable = (...args: readonly unknown[]) => unknown;
/** A module of Node as `require` gives it; what ES modules import of it follows. */
type Library = { readonly default: Record<string, object> };

const STARTERS = ["exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync"];

/**
 * Watches a file of tests from now on, and gives what is to be called after them. That throws where the file is not listed and
 * makes code of text, or starts a process or a worker. Those on the list are not watched: what `eval` makes under a watch cannot
 * import, which webpack's loaders do.
 */
export function watchFile(file: string): () => void {
  const called = new Set<string>();
  if (!CAN_DIFFER.includes(file)) watchHostCode((name) => called.add(name));
  return () => {
    if (called.size === 0) return;
    const names = [...called].join(", ");
    throw new Error(
      `${file} calls ${names}, so that it can differ where no text is evaluated: list it in ts/test/withoutEval.ts`,
    );
  };
}

/** From now on, tells the name of each function that makes code of text, or starts a process or a worker, when it is called. */
function watchHostCode(tell: (name: string) => void): void {
  // Any function leads to the constructor of its kind, which is what evaluates.
  // oxlint-disable-next-line no-empty-function -- only their constructors are asked for
  for (const it of [() => {}, async () => {}, function* () {}, async function* () {}]) {
    const prototype = Object.getPrototypeOf(it) as { constructor: Callable };
    const original = prototype.constructor;
    const constructor = watched(original.name, original, tell);
    if (original === globalThis.Function) Object.defineProperty(globalThis, "Function", { value: constructor });
    Object.defineProperty(prototype, "constructor", { value: constructor });
  }
  // oxlint-disable-next-line no-eval -- it is watched, not called
  Object.defineProperty(globalThis, "eval", { value: watched("eval", globalThis.eval, tell) });

  const processes = (childProcess as unknown as Library).default;
  for (const name of STARTERS) processes[name] = watched(name, processes[name] as object, tell);
  const threads = (workers as unknown as Library).default;
  threads["Worker"] = watched("Worker", threads["Worker"] as object, tell);
  syncBuiltinESMExports();
}

function watched<T extends object>(name: string, original: T, tell: (name: string) => void): T {
  return new Proxy(original, {
    apply(target, self, args) {
      tell(name);
      return Reflect.apply(target as Callable, self, args);
    },
    construct(target, args, made) {
      tell(name);
      return Reflect.construct(target as Callable, args, made) as object;
    },
  });
}
