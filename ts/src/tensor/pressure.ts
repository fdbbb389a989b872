/**
 * Tells the garbage collector of memory that it does not see.
 *
 * A tensor in the engine's memory is a small object to JavaScript's collector, which has no reason to run while four
 * gigabytes of them are left behind. Two things make it run:
 *
 * - Where the host lets us (Node), a collection is asked for when much memory was taken since the last one, and what it
 *   found is given back at once. That serves a loop that never awaits, too: `FinalizationRegistry` calls back between
 *   tasks only, and a `WeakRef` keeps what it saw until the end of the job, so that the references are cleared as the end
 *   of a job clears them, by an evaluation with microtasks of its own.
 * - Elsewhere (browsers), and on GPUs, whose memory is none of the engine's, each tensor holds an `ArrayBuffer` of its
 *   size that nobody ever touches. It takes addresses and no memory, and counts: the collector runs as if the elements
 *   were in it. What it found comes back between tasks.
 *
 * Memory is given back at {@link relieve} alone, where no handle is on its way to the engine.
 *
 * @module
 */
import { builtinModule } from "../base/builtinModule.ts";
import type { SharedStorage, TensorStorage } from "./storage.ts";

/** The bytes that are taken before a collection is worth its time. */
const STEP = 2 ** 28;

/** Smaller tensors have no buffer beside them. */
const LEAST = 2 ** 16;

/** Memory that is to be given back when its owner is gone. */
interface Held {
  readonly owner: WeakRef<SharedStorage>;
  readonly byteLength: number;
}

const held = new Map<TensorStorage, Held>();
/** Buffers that count in the place of elements that the collector does not see. */
const weights = new WeakMap<SharedStorage, ArrayBuffer>();

let total = 0;
/** At how many bytes the next collection is due. */
let due = STEP;
/** What collects at once: undefined before it was needed, null where the host has none. */
let collector: (() => void) | undefined | null = hasModules() ? undefined : null;

/** Notes that `owner` holds memory that the collector does not see. */
export function hold(owner: SharedStorage, storage: TensorStorage): void {
  const { byteLength } = storage;
  if (byteLength < LEAST) return;
  if (collector === null || storage.device !== undefined) {
    weigh(owner, byteLength);
    return;
  }
  held.set(storage, { owner: new WeakRef(owner), byteLength });
  total += byteLength;
}

/** Notes that the memory was given back. */
export function release(owner: SharedStorage | undefined, storage: TensorStorage): void {
  if (owner !== undefined) weights.delete(owner);
  const it = held.get(storage);
  if (it === undefined) return;
  held.delete(storage);
  total -= it.byteLength;
}

/** Collects where much memory was taken, and gives back what nobody holds. No handle may be on its way to the engine. */
export function relieve(free: (storage: TensorStorage) => void): void {
  if (total < due || collector === null) return;
  collector ??= collectorOfHost();
  if (collector === null) {
    // From here on, the collector is told by buffers.
    for (const [storage, { owner, byteLength }] of held) {
      const living = owner.deref();
      if (living !== undefined) weigh(living, byteLength);
      release(undefined, storage);
    }
    return;
  }
  collector();
  for (const [storage, { owner }] of held) {
    if (owner.deref() !== undefined) continue;
    release(undefined, storage);
    free(storage);
  }
  // What is in use is not looked at again before half as much came on top of it.
  due = total + Math.max(STEP, total / 2);
  if (due > LIMIT) due = total + Math.max(STEP / 4, (LIMIT - total) / 2);
}

/** The bytes that WebAssembly has for everything. */
const LIMIT = 3.5 * 2 ** 30;

function weigh(owner: SharedStorage, byteLength: number): void {
  try {
    weights.set(owner, new ArrayBuffer(byteLength));
  } catch {
    // There is no room for it, so that the collector has run already.
  }
}

/** Whether the host may have what {@link collectorOfHost} needs. */
function hasModules(): boolean {
  return builtinModule("node:vm") !== undefined;
}

/** What collects at once, if this host has it: null where it has not. */
function collectorOfHost(): (() => void) | null {
  try {
    const [vm, v8] = [builtinModule("node:vm"), builtinModule("node:v8")];
    if (vm === undefined || v8 === undefined) return null;
    const job = vm.createContext({}, { microtaskMode: "afterEvaluate" });
    v8.setFlagsFromString("--expose-gc");
    const gc = vm.runInNewContext("gc") as () => void;
    v8.setFlagsFromString("--no-expose-gc");
    const collect = (): void => {
      // The end of an evaluation that has microtasks of its own is the end of a job to references.
      vm.runInContext("0", job);
      gc();
    };
    return isEffective(collect) ? collect : null;
  } catch {
    return null;
  }
}

/** Whether what nothing refers to is gone after this. */
function isEffective(collect: () => void): boolean {
  const refs = Array.from({ length: 4 }, () => new WeakRef({ made: Date }));
  collect();
  return refs.some((it) => it.deref() === undefined);
}
