/**
 * A plan on the GPU: its buffers, which stay from run to run, and its runs. Natively `crates/wgpu/src/run.rs` does the same.
 *
 * @module
 */
import { DTYPES } from "../../../bindings/dtypes.ts";
import type { Dispatch, Place, Program } from "../../../bindings/gpu.ts";
import type { FxError } from "../base/errors.ts";
import type { Gpu, Pipeline } from "./device.ts";
import { type Lowered, narrowed, widened } from "./lowering.ts";

// `GPUBufferUsage` and `GPUMapMode`: not every host has these tables under global names.
const [MAP_READ, COPY_SRC, COPY_DST, STORAGE] = [1, 4, 8, 128];
const FOR_READING = 1;

/** The memory of the plan in the engine, and the steps that are done there. */
export interface PlanHost {
  /** A number that is another one after somebody wrote to a constant. */
  version(buffer: number): number;
  /** The first bytes of a buffer of the plan. */
  read(buffer: number, nBytes: number): Uint8Array;
  /** Writes the first bytes of a buffer of the plan. */
  write(buffer: number, bytes: Uint8Array): void;
  /** Does the steps from one number to before another. */
  run(from: number, to: number): void;
  /** Is told how many steps are done, or begun; what it throws stops the run. */
  goesOn(done: number): void;
}

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
      const flags = it.bindings.map((binding) => binding.is_written);
      return await gpu.pipeline(program.modules[it.module] as string, flags);
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
    const usage = (STORAGE as number) | (COPY_SRC as number) | (COPY_DST as number);
    for (const size of program.buffers) buffers.push(device.createBuffer({ size: Math.ceil(size / 4) * 4, usage }));
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
   * run was stopped before the device was told anything.
   */
  async run(host: PlanHost, keeps = false): Promise<void> {
    this.counts = { dispatches: 0, submissions: 0, readbacks: 0, bytesUp: 0, bytesDown: 0 };
    this.#problems = [];
    try {
      await this.#run(host, keeps);
    } catch (error) {
      this.#dropStaging();
      // What was submitted may have changed some constants and not others.
      if (this.counts.submissions > 0) this.#dropConstants();
      throw error;
    }
  }

  async #run(host: PlanHost, keeps: boolean): Promise<void> {
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
        this.#upload(host, buffer, commands);
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
          this.#encode(host, at, commands);
        }
      });
      if (at > first) continue;
      const { downloads } = steps[at] as (typeof steps)[number];
      if (downloads.length > 0) await this.#download(host, downloads, commands);
      while (at < steps.length && isOnCpu(at) && (at === first || steps[at]?.downloads.length === 0)) at++;
      host.run(first, at);
    }
    const kept = keeps ? this.program.kept : [];
    await this.#download(
      host,
      outputs.filter((it) => !kept.includes(it)),
      commands,
    );
    for (const [buffer, version] of uploaded) this.#versions.set(buffer, version);
    for (const buffer of constants) if (outputs.includes(buffer)) this.#versions.set(buffer, host.version(buffer));
    for (const buffer of kept) this.#ahead.add(buffer);
  }

  /** Tells the device something; what it refuses is asked before anything of the run is seen. */
  #told(body: () => void): void {
    const [, problem] = this.gpu.watched(body);
    this.#problems.push(problem);
  }

  #encode(host: PlanHost, at: number, commands: Commands): void {
    const { uploads, clears } = this.program.steps[at] as Program["steps"][number];
    for (const buffer of uploads) this.#upload(host, buffer, commands);
    for (const buffer of clears) commands.encoder.clearBuffer(this.#buffers[this.#place(buffer).buffer] as GPUBuffer);
    for (const { pipeline, group, workgroups } of this.#steps[at] ?? []) {
      commands.pass.setPipeline(pipeline);
      commands.pass.setBindGroup(0, group);
      commands.pass.dispatchWorkgroups(...workgroups);
      this.counts.dispatches += 1;
    }
  }

  #upload(host: PlanHost, buffer: number, commands: Commands): void {
    const place = this.#place(buffer);
    if (place.n_elements === 0) return;
    const { size } = DTYPES[place.dtype];
    const bytes = host.read(buffer, place.n_elements * size);
    // What is written so comes before all that is submitted later.
    commands.submit();
    this.#write(place.buffer, size < 4 ? widened(bytes, place.dtype) : bytes);
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
    const copies = parts.map(({ place }) => ({ from: place.buffer, length: bytesOf(place) }));
    if (check_buffer !== null) copies.unshift({ from: check_buffer, length: 12 * checks });
    const length = copies.reduce((sum, it) => sum + it.length, 0);
    let mapped: Promise<ArrayBuffer> | undefined;
    this.#told(() => {
      if (length > 0) mapped = this.#readBack(copies, length, commands);
      else commands.submit();
    });
    // What the device refuses says more than that it gives nothing.
    mapped?.catch(() => undefined);
    const problems = await this.gpu.orLost(Promise.all(this.#problems));
    const problem = problems.find((it) => it !== undefined);
    if (problem !== undefined) throw problem;
    this.#problems = [];
    if (mapped === undefined) return;
    const bytes = new Uint8Array(await this.gpu.orLost(mapped));
    let start = 0;
    if (check_buffer !== null) {
      start = 12 * checks;
      this.#lowered.check(new Uint32Array(bytes.buffer, 0, 3 * checks));
    }
    for (const { buffer, place } of parts) {
      const wide = bytes.subarray(start, start + bytesOf(place));
      start += wide.length;
      if (wide.length > 0) host.write(buffer, DTYPES[place.dtype].size < 4 ? narrowed(wide, place.dtype) : wide);
    }
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
      this.#staging = device.createBuffer({ size: length, usage: (MAP_READ as number) | (COPY_DST as number) });
    }
    const staging = this.#staging as GPUBuffer;
    let start = 0;
    for (const part of parts) {
      if (part.length === 0) continue;
      commands.encoder.copyBufferToBuffer(this.#buffers[part.from] as GPUBuffer, 0, staging, start, part.length);
      start += part.length;
    }
    commands.submit();
    this.counts.readbacks += 1;
    this.counts.bytesDown += length;
    const taken = async (): Promise<ArrayBuffer> => {
      const bytes = staging.getMappedRange(0, length).slice(0);
      staging.unmap();
      return bytes;
    };
    return staging.mapAsync(FOR_READING, 0, length).then(taken);
  }

  #place(buffer: number): Place {
    return this.program.places[buffer] as Place;
  }
}

/** The bytes that the elements take on the device. */
function bytesOf({ dtype, n_elements }: Place): number {
  return n_elements * (DTYPES[dtype].size === 8 ? 8 : 4);
}
