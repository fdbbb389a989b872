/**
 * The adapter and its device: what they can do, what was compiled for them, and what they refuse.
 *
 * @module
 */
import { type ErrorDetails, fxError, FxError } from "../base/errors.ts";

/** What a device can do at most. */
export interface GpuLimits {
  /** Buffers of a module. */
  readonly bindings: number;
  /** Bytes of a buffer. */
  readonly bufferBytes: number;
  /** Workgroups in a dimension. */
  readonly workgroups: number;
  /** Whether it has numbers of 16 bits in registers and in buffers. */
  readonly hasF16: boolean;
  /** Whether invocations of a subgroup can add up what they have, and tell which subgroup they are of. */
  readonly hasSubgroups: boolean;
}

/** What a module has at one of its bindings. */
export type Binding = "storage" | "read-only-storage" | "texture";

/** A module that is compiled. */
export interface Pipeline<Of = GPUComputePipeline> {
  readonly pipeline: Of;
  readonly layout: GPUBindGroupLayout;
}

/** A pipeline that a device promised. */
export interface Asked<Of> {
  readonly layout: GPUBindGroupLayout;
  readonly made: Promise<Of>;
}

/** So many buffers of a module are asked for, where the adapter has them. */
const MAX_BINDINGS = 24;
/** What a device is asked for, where the adapter has it. */
const FEATURES: readonly GPUFeatureName[] = ["shader-f16", "subgroups"];
/** `GPUShaderStage.COMPUTE`: not every host has these tables under global names. */
const COMPUTE = 4;
/** What a device may find wrong, the innermost last. */
const FILTERS: readonly GPUErrorFilter[] = ["internal", "validation", "out-of-memory"];

const HELP = "open it again, or run on the CPU: program.module()";

/** A GPU, with what was compiled for it. */
export class Gpu {
  readonly device: GPUDevice;
  readonly limits: GpuLimits;
  readonly #pipelines = new Map<string, Promise<unknown>>();
  /** How those are told that the device is lost who wait for it. */
  readonly #waits = new Set<(error: FxError) => void>();
  #why: string | undefined;

  constructor(device: GPUDevice) {
    this.device = device;
    const { limits, features } = device;
    this.limits = {
      bindings: limits.maxStorageBuffersPerShaderStage,
      bufferBytes: Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize),
      workgroups: limits.maxComputeWorkgroupsPerDimension,
      hasF16: features.has("shader-f16"),
      hasSubgroups: features.has("subgroups") && hasLanguageFeature("subgroup_id"),
    };
    void device.lost.then(({ message, reason }) => {
      this.#why = `it was lost: ${message === "" ? reason : message}`;
      for (const refuse of this.#waits) refuse(this.failed(this.#why));
    });
  }

  /** Whether it does no more work. */
  get isLost(): boolean {
    return this.#why !== undefined;
  }

  /** Refuses a device that was lost. */
  checkNotLost(): void {
    if (this.#why !== undefined) throw this.failed(this.#why);
  }

  /** What the device promises; refused when it is lost before. */
  async orLost<T>(promised: Promise<T>): Promise<T> {
    // A race with a promise that lasts as long as the device would keep what was given as long.
    let refuse!: (error: FxError) => void;
    const lost = new Promise<never>((_, reject) => {
      refuse = reject;
    });
    this.#waits.add(refuse);
    if (this.#why !== undefined) refuse(this.failed(this.#why));
    try {
      return await Promise.race([promised, lost]);
    } finally {
      this.#waits.delete(refuse);
    }
  }

  /** The refusal of the device. */
  failed(why: string, details: ErrorDetails = {}): FxError {
    return fxError("DeviceFailed", `the GPU failed: ${why}`, { help: HELP, ...details });
  }

  /** What it threw, as a refusal. */
  refusal(thrown: unknown): FxError {
    if (thrown instanceof FxError) return thrown;
    return this.failed(thrown instanceof Error ? thrown.message : String(thrown), { cause: thrown });
  }

  /** Does something with the device at once, and gives what it refuses of that, later. */
  watched<T>(body: () => T): readonly [result: T, problem: Promise<FxError | undefined>] {
    const scopes: Promise<GPUError | null>[] = [];
    let problem: Promise<FxError | undefined>;
    let nEntered = 0;
    let result: T;
    try {
      for (const filter of FILTERS) {
        this.device.pushErrorScope(filter);
        nEntered += 1;
      }
      result = body();
    } finally {
      // Each scope is left, whatever became of the others; and somebody hears of it where the host refuses that.
      while (nEntered-- > 0) scopes.push(this.#left());
      problem = this.#problemOf(scopes);
    }
    return [result, problem];
  }

  /** Does something with the device, and waits until it is known that the device does not refuse it. */
  async told<T>(body: () => T): Promise<T> {
    try {
      const [result, problem] = this.watched(body);
      const refused = await this.orLost(problem);
      if (refused !== undefined) throw refused;
      return result;
    } catch (error) {
      throw this.refusal(error);
    }
  }

  /** Leaves a scope; it is no promise of its own that refuses where the host throws. */
  async #left(): Promise<GPUError | null> {
    return await this.device.popErrorScope();
  }

  async #problemOf(scopes: readonly Promise<GPUError | null>[]): Promise<FxError | undefined> {
    let answers: (GPUError | null)[];
    try {
      answers = await Promise.all(scopes);
    } catch (thrown) {
      return this.refusal(thrown);
    }
    const [memory, ...others] = answers;
    if (memory !== null && memory !== undefined) {
      return fxError("OutOfMemory", "the GPU has no memory left", {
        notes: [memory.message],
        help: "run on the CPU, or a smaller batch",
      });
    }
    const problem = others.find((it) => it !== null);
    return problem === undefined || problem === null ? undefined : this.failed(problem.message);
  }

  /** A module as a pipeline, compiled once. */
  pipeline(code: string, bindings: readonly Binding[]): Promise<Pipeline> {
    const { device } = this;
    return this.compiledOnce(`${bindings.join(" ")} ${code}`, () => {
      const entries = bindings.map((it, binding) => ({ binding, visibility: COMPUTE, ...layoutOf(it) }));
      const layout = device.createBindGroupLayout({ entries });
      const made = device.createComputePipelineAsync({
        layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
        compute: { module: device.createShaderModule({ code }), entryPoint: "main" },
      });
      return { layout, made };
    });
  }

  /** A pipeline that the device is asked for, once for a key. */
  compiledOnce<Of>(key: string, ask: () => Asked<Of>): Promise<Pipeline<Of>> {
    const known = (this.#pipelines.get(key) as Promise<Pipeline<Of>> | undefined) ?? this.#compiled(ask);
    this.#pipelines.set(key, known);
    known.catch(() => this.#pipelines.delete(key));
    return known;
  }

  async #compiled<Of>(ask: () => Asked<Of>): Promise<Pipeline<Of>> {
    const [{ layout, made }, problem] = this.watched(ask);
    // What it refuses is told by the scopes as well, in more words.
    const [pipeline, found] = await Promise.all([made.catch((error: unknown) => error as Error), problem]);
    if (found !== undefined) throw found;
    if (pipeline instanceof Error) throw this.failed(pipeline.message, { cause: pipeline });
    return { layout, pipeline };
  }
}

/** What a layout says of a binding. Of a texture, elements are read, and never what is between them: those of 32 bits have nothing there. */
function layoutOf(binding: Binding): Omit<GPUBindGroupLayoutEntry, "binding" | "visibility"> {
  return binding === "texture" ? { texture: { sampleType: "unfilterable-float" } } : { buffer: { type: binding } };
}

let opened: Promise<Gpu> | undefined;
const given = new WeakMap<GPUDevice, Gpu>();

/** The GPU of this host: that of the caller's device, or the one that is opened for all modules, again where it was lost. */
export async function gpuOf(device: GPUDevice | undefined): Promise<Gpu> {
  if (device !== undefined) {
    const gpu = given.get(device) ?? new Gpu(device);
    given.set(device, gpu);
    return gpu;
  }
  opened ??= opening();
  const seen = opened;
  const gpu = await seen;
  if (!gpu.isLost) return gpu;
  // Of those who see that it is lost, the first opens another one for all.
  if (opened === seen) opened = undefined;
  opened ??= opening();
  return await opened;
}

/** Opens the GPU for all modules; where that fails, the next one tries again. */
function opening(): Promise<Gpu> {
  const made = open();
  made.catch(() => {
    if (opened === made) opened = undefined;
  });
  return made;
}

/**
 * The GPU of the host that is opened; `otherwise` is what its caller may do without one.
 *
 * @throws `UsageError` `DeviceMissing` where there is none.
 */
export async function findAdapter(otherwise?: string): Promise<GPUAdapter> {
  const refusal = ({ why, cure, cause }: Missing): FxError => {
    const help = otherwise === undefined ? cure : `${cure}; or ${otherwise}`;
    return fxError("DeviceMissing", `there is no GPU: ${why}`, cause === undefined ? { help } : { help, cause });
  };
  const gpu = await entry();
  if ("why" in gpu) throw refusal(gpu);
  let adapter: GPUAdapter | null;
  try {
    adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  } catch (cause) {
    throw refusal({ why: "the host refuses to look for one", cure: cureOfHost(), cause });
  }
  if (adapter !== null) return adapter;
  throw refusal({ why: "the host has no adapter", cure: cureOfHost() });
}

async function open(): Promise<Gpu> {
  const adapter = await findAdapter('let the CPU do it where there is none: program.module({ device: "auto" })');
  const { limits } = adapter;
  try {
    const device = await adapter.requestDevice({
      requiredFeatures: FEATURES.filter((it) => adapter.features.has(it)),
      requiredLimits: {
        maxBufferSize: limits.maxBufferSize,
        maxStorageBufferBindingSize: limits.maxStorageBufferBindingSize,
        maxStorageBuffersPerShaderStage: Math.min(limits.maxStorageBuffersPerShaderStage, MAX_BINDINGS),
      },
    });
    return new Gpu(device);
  } catch (cause) {
    throw fxError("DeviceFailed", `the GPU failed: ${(cause as Error).message}`, { cause, help: HELP });
  }
}

/** Whether the shader language of the host has a feature, which no device tells: where there are two hosts, both. */
function hasLanguageFeature(name: string): boolean {
  const { navigator } = globalThis as { readonly navigator?: { readonly gpu?: GPU } };
  const hosts = [navigator?.gpu, loadedGpu].filter((it) => it !== undefined);
  return hosts.length > 0 && hosts.every((it) => it.wgslLanguageFeatures?.has(name) === true);
}

/** WebGPU of the host: a browser's, a worker's, or that of the package `webgpu`, where it is installed. */
async function entry(): Promise<GPU | Missing> {
  const { navigator } = globalThis as { readonly navigator?: { readonly gpu?: GPU } };
  if (navigator?.gpu !== undefined) return navigator.gpu;
  if (globalThis.process?.versions?.node === undefined) return { why: "the host has no WebGPU", cure: OF_BROWSERS };
  ofPackage ??= entryOfPackage();
  return await ofPackage;
}

/** WebGPU of the package. It is kept: where it is collected, its devices work on what it has given back, and the process dies. */
let ofPackage: Promise<GPU | Missing> | undefined;
/** WebGPU of the package, once it is loaded. */
let loadedGpu: GPU | undefined;

async function entryOfPackage(): Promise<GPU | Missing> {
  let loaded: { readonly create: (options: readonly string[]) => GPU } | undefined;
  try {
    // Bundlers are not to look for a package that is not there.
    const name = "webgpu";
    loaded = (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as typeof loaded & object;
    loadedGpu = loaded.create([]);
    return loadedGpu;
  } catch (cause) {
    ofPackage = undefined;
    if (loaded !== undefined) return { why: "the package webgpu does not start", cure: OF_PACKAGE, cause };
    const cure = "npm install webgpu, where tracefx is installed";
    return { why: "the package webgpu is not there, or does not load", cure, cause };
  }
}

/** What is missing on the way to a GPU. Callers share it, and each says for itself what it may do without one. */
interface Missing {
  readonly why: string;
  readonly cure: string;
  readonly cause?: unknown;
}

/** What a browser may lack. */
const OF_BROWSERS = "use a browser with WebGPU on a page that is served by https or from this machine";
/** What a machine may lack where the package is. */
const OF_PACKAGE = "install the driver of the GPU, which on Linux is one of Vulkan";

function cureOfHost(): string {
  return ofPackage === undefined ? OF_BROWSERS : OF_PACKAGE;
}
