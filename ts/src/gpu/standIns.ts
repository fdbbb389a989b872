/**
 * Tensors of the engine that stand where a call is given tensors on a device: the engine finds the plan by them.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import { host } from "./host.ts";
import type { GpuMemory } from "./memory.ts";
import { memoryOf, tensorOfBytes, viewOf } from "./tensor.ts";

/** So many bytes of the engine, of which the first one is this; they are made there, and nothing is copied. */
export function engineBytes(length: number, first = 0): Tensor {
  const res = tensorOfBytes(Uint8Array.of(first));
  host.resizeTensor(res, [length]);
  return res;
}

/**
 * The leaves of a call, in which tensors of the engine stand for those on a device. They lie as these do, and share memory where these do, so
 * that the engine sees whether one is written to under two names.
 */
export class StandIns implements Disposable {
  readonly leaves: readonly unknown[];
  readonly #memories: ReadonlyMap<GpuMemory, Tensor>;
  readonly #tensors: readonly Tensor[];
  /** The elements as they came from the device. */
  readonly #contents: ReadonlyMap<GpuMemory, Uint8Array>;

  private constructor(
    leaves: readonly unknown[],
    memories: ReadonlyMap<GpuMemory, Tensor>,
    contents: ReadonlyMap<GpuMemory, Uint8Array> = new Map(),
  ) {
    const tensors: Tensor[] = [];
    this.leaves = leaves.map((leaf) => {
      const memory = memoryOf(leaf);
      if (memory === undefined) return leaf;
      const made = host.viewOn(memories.get(memory) as Tensor, viewOf(leaf as Tensor));
      tensors.push(made);
      return made;
    });
    this.#memories = memories;
    this.#tensors = tensors;
    this.#contents = contents;
  }

  /** Without the elements: for plans whose steps are all the device's. */
  static empty(leaves: readonly unknown[]): StandIns {
    return new StandIns(leaves, new Map(memoriesOf(leaves).map((it) => [it, engineBytes(it.byteLength)])));
  }

  /** With the elements, which come from the device. */
  static async filled(leaves: readonly unknown[]): Promise<StandIns> {
    const memories = memoriesOf(leaves);
    const bytes = await Promise.all(memories.map((it) => it.bytes()));
    const contents = new Map(memories.map((it, at) => [it, bytes[at] as Uint8Array]));
    return new StandIns(leaves, new Map(Array.from(contents, ([it, all]) => [it, tensorOfBytes(all)])), contents);
  }

  /** Whether any tensor is on a device. */
  get isAny(): boolean {
    return this.#memories.size > 0;
  }

  /** The memory on the device that a result of the engine stands for; nothing where it has elements of its own. */
  memoryOf(result: Tensor): GpuMemory | undefined {
    const { storage } = host.layoutOf(result);
    for (const [memory, it] of this.#memories) if (host.layoutOf(it).storage === storage) return memory;
    return undefined;
  }

  /** Writes what a run on the CPU has changed back to the device. */
  async writeBack(): Promise<void> {
    const changed = Array.from(this.#contents).flatMap(([memory, before]) => {
      const now = this.#memories.get(memory)?.data as Uint8Array;
      return now.every((byte, at) => byte === before[at]) ? [] : [[memory, now] as const];
    });
    for (const [memory] of changed) memory.checkWritable("an input");
    for (const [memory, now] of changed) await memory.write(now);
  }

  [Symbol.dispose](): void {
    for (const it of [...this.#tensors, ...this.#memories.values()]) it.dispose();
  }
}

function memoriesOf(leaves: readonly unknown[]): GpuMemory[] {
  return [...new Set(leaves.map(memoryOf))].filter((it) => it !== undefined);
}
