/**
 * A plan on the GPU: its buffers, which stay from run to run, and its runs. Natively `crates/wgpu/src/run.rs` does the same.
 *
 * @module
 */
import { DTYPES } from "../../../bindings/dtypes.ts";
import type { Dispatch, Place, Program } from "../../../bindings/gpu.ts";
import type { FxError } from "../base/errors.ts";
import type { Gpu, Pipeline } from "./device.ts";
import type { Lowered } from "./lowering.ts";
import { contentOf, deviceBytes, forCpu, forDevice, GpuMemory, newBuffer, newStaging, placeBytes } from "./memory.ts";

/** The memory of the plan in the engine, and the steps that are done there. */
export interface PlanHost {
  /** A number that is another one after somebody wrote to a constant. */
  version(buffer: number): number;
  /** The first bytes of a buffer of the plan. */
  read(buffer: number, nBytes: number): Uint8Array;
  /** Writes the first bytes of a buffer of the plan. */
  write(buffer: number, bytes: Uint8Array): void;
  /** Is told that inputs which are on the device are about to be changed there. */
  changes(): void;
  /** Does the steps from one number to before another. */
  run(from: number, to: number): void;
  /** Is told how many steps are done, or begun; what it throws stops the run. */
  goesOn(done: number): void;
}

/** Inputs and results of a run that stay on the device, by buffers of the plan. */
export interface Resident {
  /** The memory of inputs, which has what the plan changes of them when the run has ended. */
  readonly inputs: ReadonlyMap<number, GpuMemory>;
  /** The results that do not come down. */
  readonly results: ReadonlySet<number>;
}

const NOTHING: Resident = { inputs: new Map(), results: new Set() };

/** A dispatch with what it is given. */
interface Ready {
  readonly pipeline: GPUComputePipeline;
  readonly group: GPUBindGroup;
  readonly workgroups: readonly [number, number, number];
}

/** What a run told the device, and what came of it. */
export interface RunCounts {
  dispatches: number;
  submissions: number;
  readbacks: number;
  bytesUp: number;
  bytesDown: number;
}

/** Commands that the device has not been told yet. */
class Commands {
  readonly #device: GPUDevice;
  readonly #counts: RunCounts;
  #encoder: GPUCommandEncoder | undefined;
  #pass: GPUComputePassEncoder | undefined;

  constructor(device: GPUDevice, counts: RunCounts) {
    this.#device = device;
    this.#counts = counts;
  }

  get encoder(): GPUCommandEncoder {
    this.#pass?.end();
    this.#pass = undefined;
    this.#encoder ??= this.#device.createCommandEncoder();
    return this.#encoder;
  }

  get pass(): GPUComputePassEncoder {
    this.#pass ??= this.encoder.beginComputePass();
    return this.#pass;
  }

  /** Copies the first bytes of a buffer to a place in another one. */
  copy(from: GPUBuffer, to: GPUBuffer, length: number, start = 0): void {
    this.encoder.copyBufferToBuffer(from, 0, to, start, length);
  }

  /** Tells the device, where there is anything to tell. */
  submit(): void {
    if (this.#encoder === undefined) return;
    const commands = this.encoder.finish();
    this.#encoder = undefined;
    this.#counts.submissions += 1;
    this.#device.queue.submit([commands]);
  }
}

/** A plan with the memory that a run takes on the device. One run at a time. */
export class PlanOnGpu {
  readonly gpu: Gpu;
  readonly program: Program;
  /** What the last run took. */
  counts: RunCounts = { dispatches: 0, submissions: 0, readbacks: 0, bytesUp: 0, bytesDown: 0 };
  readonly #lowered: Lowered;
  readonly #buffers: readonly GPUBuffer[];
  /** The dispatches of each step. */
  readonly #steps: readonly (readonly Ready[])[];
  /** The versions of the constants that are on the device. */
  readonly #versions = new Map<number, number>();
  /** The constants that runs have changed on the device alone. */
  readonly #ahead = new Set<number>();
  /** What is read of the device is copied here. */
  #staging: GPUBuffer | undefined;
  /** What the device refuses of what it was told. */
  #problems: Promise<FxError | undefined>[] = [];

  private constructor(gpu: Gpu, lowered: Lowered, buffers: readonly GPUBuffer[], steps: readonly (readonly Ready[])[]) {
    this.gpu = gpu;
    this.program = lowered.program;
    this.#lowered = lowered;
    this.#buffers = buffers;
    this.#steps = steps;
  }

  /** Makes a program ready: its modules are compiled, and its buffers made. */
  static async of(gpu: Gpu, lowered: Lowered): Promise<PlanOnGpu> {
    const { program } = lowered;
    const dispatches = program.steps.map(({ work }) => ("device" in work ? work.device : []));
    const pipelineOf = async (it: Dispatch) => {
      const bindings = it.bindings.map(({ is_written }) => (is_written ? "storage" : "read-only-storage"));
      return await gpu.pipeline(program.modules[it.module] as string, bindings);
    };
    const pipelines = await gpu.orLost(Promise.all(dispatches.map((it) => Promise.all(it.map(pipelineOf)))));
    const buffers: GPUBuffer[] = [];
    try {
      const [steps, problem] = gpu.watched(() => PlanOnGpu.#bound(gpu, program, dispatches, pipelines, buffers));
      const refused = await gpu.orLost(problem);
      if (refused !== undefined) throw refused;
      return new PlanOnGpu(gpu, lowered, buffers, steps);
    } catch (error) {
      for (const it of buffers) it.destroy();
      throw error;
    }
  }

  /** Makes the buffers, and gives the dispatches of each step what they need of them. */
  static #bound(
    gpu: Gpu,
    program: Program,
    dispatches: readonly (readonly Dispatch[])[],
    pipelines: readonly (readonly Pipeline[])[],
    buffers: GPUBuffer[],
  ): Ready[][] {
    const { device } = gpu;
    for (const size of program.buffers) buffers.push(newBuffer(device, size));
    return dispatches.map((all, step) =>
      all.map(({ bindings, workgroups }, at) => {
        const { pipeline, layout } = (pipelines[step] as Pipeline[])[at] as Pipeline;
        const entries = bindings.map((it, binding) => {
          return { binding, resource: { buffer: buffers[it.buffer] as GPUBuffer } };
        });
        return { pipeline, group: device.createBindGroup({ layout, entries }), workgroups };
      }),
    );
  }

  /** Gives the device's memory back. */
  dispose(): void {
    for (const it of this.#buffers) it.destroy();
    this.#staging?.destroy();
    this.#lowered.free();
  }

  /** Whether the device does all steps, so that the CPU has to see nothing of the inputs. */
  get isWhole(): boolean {
    return this.program.steps.every(({ work }) => "device" in work);
  }

  /** Whether the device has changes of constants that the engine does not know. */
  get isAhead(): boolean {
    return this.#ahead.size > 0;
  }

  /** Brings to the engine what it does not know yet. */
  async synchronize(host: PlanHost): Promise<void> {
    const buffers = [...this.#ahead];
    this.#problems = [];
    try {
      await this.#download(host, buffers, new Commands(this.gpu.device, this.counts), false);
    } catch (error) {
      this.#dropStaging();
      this.#dropConstants();
      throw error;
    }
    for (const buffer of buffers) this.#versions.set(buffer, host.version(buffer));
    this.#ahead.clear();
  }

  /** It may be mapped, or about to be. */
  #dropStaging(): void {
    this.#staging?.destroy();
    this.#staging = undefined;
  }

  /** Trusts nothing that the device has of constants. */
  #dropConstants(): void {
    this.#versions.clear();
    this.#ahead.clear();
  }

  /**
   * Runs the plan. What it gives is in the engine's memory then, and not before all that the device was told has succeeded. What it changes of
   * constants, and does not give, stays on the device where `keeps` says so and no step is the CPU's. After an error that is lost, unless the
   * run was stopped before the device was told anything. What is `resident` is on the device before and after a run of a plan that the device does
   * whole; it gives new memory with the results that are.
   */
  async run(host: PlanHost, keeps = false, resident = NOTHING): Promise<ReadonlyMap<number, GpuMemory>> {
    this.counts = { dispatches: 0, submissions: 0, readbacks: 0, bytesUp: 0, bytesDown: 0 };
    this.#problems = [];
    const results = new Map<number, GpuMemory>();
    try {
      await this.#run(host, keeps, resident, results);
      return results;
    } catch (error) {
      for (const it of results.values()) it.release();
      this.#dropStaging();
      // What was submitted may have changed some constants and not others.
      if (this.counts.submissions > 0) this.#dropConstants();
      throw error;
    }
  }

  async #run(host: PlanHost, keeps: boolean, resident: Resident, results: Map<number, GpuMemory>): Promise<void> {
    const { steps, constants, outputs, check_buffer } = this.program;
    const commands = new Commands(this.gpu.device, this.counts);
    const uploaded = new Map<number, number>();
    let at = 0;
    const isOnCpu = (step: number): boolean => "cpu" in (steps[step]?.work ?? {});
    this.#told(() => {
      for (const buffer of constants) {
        const version = host.version(buffer);
        if (this.#versions.get(buffer) === version) continue;
        // It counts when it is known to have arrived.
        this.#versions.delete(buffer);
        uploaded.set(buffer, version);
        this.#upload(host, buffer, commands, NOTHING);
      }
      // Not by a command, which what goes up first would have to wait for.
      if (check_buffer !== null) this.#write(check_buffer, new Uint8Array(12 * this.program.checks));
    });
    while (at < steps.length) {
      const first = at;
      // All that the device does until the CPU has to do something is told it at once.
      this.#told(() => {
        for (; at < steps.length && !isOnCpu(at); at++) {
          host.goesOn(at);
          this.#encode(host, at, commands, resident);
        }
      });
      if (at > first) continue;
      const { downloads } = steps[at] as (typeof steps)[number];
      if (downloads.length > 0) await this.#download(host, downloads, commands);
      while (at < steps.length && isOnCpu(at) && (at === first || steps[at]?.downloads.length === 0)) at++;
      host.run(first, at);
    }
    const kept = keeps ? this.program.kept : [];
    const stays = (it: number): boolean => resident.inputs.has(it) || resident.results.has(it);
    this.#told(() => {
      for (const it of resident.results) results.set(it, this.#copied(it, commands));
    });
    await this.#download(
      host,
      outputs.filter((it) => !kept.includes(it) && !stays(it)),
      commands,
    );
    // Only now is it known that the data has broken nothing.
    const changed = outputs.filter((it) => resident.inputs.has(it));
    if (changed.length > 0) {
      host.changes();
      this.#told(() => {
        for (const it of changed) this.#giveBack(it, resident, commands);
        commands.submit();
      });
      await this.#settled();
    }
    for (const [buffer, version] of uploaded) this.#versions.set(buffer, version);
    for (const buffer of constants) if (outputs.includes(buffer)) this.#versions.set(buffer, host.version(buffer));
    for (const buffer of kept) this.#ahead.add(buffer);
  }

  /** Tells the device something; what it refuses is asked before anything of the run is seen. */
  #told(body: () => void): void {
    const [, problem] = this.gpu.watched(body);
    this.#problems.push(problem);
  }

  /** New memory of the device with the elements of a buffer of the plan. */
  #copied(buffer: number, commands: Commands): GpuMemory {
    const { buffer: from, dtype, n_elements } = this.#place(buffer);
    const length = deviceBytes(dtype, n_elements);
    const res = new GpuMemory(this.gpu, newBuffer(this.gpu.device, length), dtype, n_elements);
    if (length > 0) commands.copy(this.#buffers[from] as GPUBuffer, res.buffer, length);
    return res;
  }

  /** Writes what the plan has changed of an input to its own memory. */
  #giveBack(buffer: number, { inputs }: Resident, commands: Commands): void {
    const place = this.#place(buffer);
    const { buffer: to } = inputs.get(buffer) as GpuMemory;
    if (place.n_elements > 0) commands.copy(this.#buffers[place.buffer] as GPUBuffer, to, placeBytes(place));
  }

  #encode(host: PlanHost, at: number, commands: Commands, resident: Resident): void {
    const { uploads, clears } = this.program.steps[at] as Program["steps"][number];
    for (const buffer of uploads) this.#upload(host, buffer, commands, resident);
    for (const buffer of clears) commands.encoder.clearBuffer(this.#buffers[this.#place(buffer).buffer] as GPUBuffer);
    for (const { pipeline, group, workgroups } of this.#steps[at] ?? []) {
      commands.pass.setPipeline(pipeline);
      commands.pass.setBindGroup(0, group);
      commands.pass.dispatchWorkgroups(...workgroups);
      this.counts.dispatches += 1;
    }
  }

  #upload(host: PlanHost, buffer: number, commands: Commands, { inputs }: Resident): void {
    const place = this.#place(buffer);
    if (place.n_elements === 0) return;
    const there = inputs.get(buffer);
    if (there !== undefined) {
      commands.copy(there.buffer, this.#buffers[place.buffer] as GPUBuffer, placeBytes(place));
      return;
    }
    const { size } = DTYPES[place.dtype];
    const bytes = host.read(buffer, place.n_elements * size);
    // What is written so comes before all that is submitted later.
    commands.submit();
    this.#write(place.buffer, place.is_packed ? inWords(bytes) : forDevice(bytes, place.dtype));
  }

  #write(buffer: number, bytes: Uint8Array): void {
    this.gpu.device.queue.writeBuffer(this.#buffers[buffer] as GPUBuffer, 0, bytes as Uint8Array<ArrayBuffer>);
    this.counts.bytesUp += bytes.byteLength;
  }

  /** Waits for what the device was told, refuses what the data has broken, and brings these buffers to the engine. */
  async #download(host: PlanHost, buffers: readonly number[], commands: Commands, isOfRun = true): Promise<void> {
    const { checks } = this.program;
    const check_buffer = isOfRun ? this.program.check_buffer : null;
    const parts = buffers.map((buffer) => ({ buffer, place: this.#place(buffer) }));
    const copies = parts.map(({ place }) => ({ from: place.buffer, length: placeBytes(place) }));
    if (check_buffer !== null) copies.unshift({ from: check_buffer, length: 12 * checks });
    const length = copies.reduce((sum, it) => sum + it.length, 0);
    let mapped: Promise<ArrayBuffer> | undefined;
    this.#told(() => {
      if (length > 0) mapped = this.#readBack(copies, length, commands);
      else commands.submit();
    });
    // What the device refuses says more than that it gives nothing.
    mapped?.catch(() => undefined);
    await this.#settled();
    if (mapped === undefined) return;
    const bytes = new Uint8Array(await this.gpu.orLost(mapped));
    let start = 0;
    if (check_buffer !== null) {
      start = 12 * checks;
      this.#lowered.check(new Uint32Array(bytes.buffer, 0, 3 * checks));
    }
    for (const { buffer, place } of parts) {
      const wide = bytes.subarray(start, start + placeBytes(place));
      start += wide.length;
      const { size } = DTYPES[place.dtype];
      const narrow = place.is_packed ? wide.subarray(0, place.n_elements * size) : forCpu(wide, place.dtype);
      if (wide.length > 0) host.write(buffer, narrow);
    }
  }

  /** Waits until it is known what the device refuses of what it was told, and throws that. */
  async #settled(): Promise<void> {
    const problems = await this.gpu.orLost(Promise.all(this.#problems));
    const problem = problems.find((it) => it !== undefined);
    if (problem !== undefined) throw problem;
    this.#problems = [];
  }

  /** Copies parts of the device's buffers, one behind the other, to where the CPU sees them. */
  #readBack(
    parts: readonly { from: number; length: number }[],
    length: number,
    commands: Commands,
  ): Promise<ArrayBuffer> {
    const { device } = this.gpu;
    if ((this.#staging?.size ?? 0) < length) {
      this.#staging?.destroy();
      this.#staging = newStaging(device, length);
    }
    const staging = this.#staging as GPUBuffer;
    let start = 0;
    for (const part of parts) {
      if (part.length === 0) continue;
      commands.copy(this.#buffers[part.from] as GPUBuffer, staging, part.length, start);
      start += part.length;
    }
    commands.submit();
    this.counts.readbacks += 1;
    this.counts.bytesDown += length;
    return contentOf(staging, length);
  }

  #place(buffer: number): Place {
    return this.program.places[buffer] as Place;
  }
}

/** Bytes with zeros behind them, up to the end of a word. */
function inWords(bytes: Uint8Array): Uint8Array {
  if (bytes.length % 4 === 0) return bytes;
  const res = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
  res.set(bytes);
  return res;
}
