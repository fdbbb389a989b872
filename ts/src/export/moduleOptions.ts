/**
 * How a program is made ready to be called.
 *
 * @module
 */
import { PRECISIONS, RUN_MODES } from "../../../bindings/command.ts";
import { fxError } from "../base/errors.ts";
import { checkGiven, checkOptions } from "../base/given.ts";
import type { EngineProgram, EngineRunner } from "./engineProgram.ts";
import type { RunDevice, RunSettings } from "./programModule.ts";

/** How a program is made ready to be called. */
export interface ModuleOptions {
  /** Whether the guards of the program are checked; shapes and ranges always are. */
  readonly checkGuards?: boolean;
  /**
   * What one run may take: `loop_steps` of all its loops together, those within others included (1,048,576 by default), and
   * `milliseconds`, which are looked at before each node and each step of a loop (no limit by default).
   */
  readonly limits?: Readonly<Record<string, number>>;
  /**
   * How calls are run. `"plan"`, the default, compiles the program in the first call with inputs of these dtypes and shapes: it
   * joins operators to steps, finds memory for them and lays out constant weights, and keeps all of it for the next call; what cannot be planned is
   * interpreted. `"interpret"` runs node by node.
   */
  readonly mode?: (typeof RUN_MODES)[number];
  /**
   * What a plan may change in the numbers. `"fast"`, the default, may change the last bits of results: batch normalisations are
   * folded into the weights of convolutions, and sums have other orders. With `"strict"` a plan gives what `mode: "interpret"`
   * gives, to the bit.
   */
  readonly precision?: (typeof PRECISIONS)[number];
  /**
   * Who does the steps of plans: `"cpu"`, the default; `"gpu"`, by WebGPU, which may be a `GPUDevice` of the caller's; or `"auto"`, a GPU where there is one,
   * and else the CPU. A GPU's results come later: {@link ProgramModule.runAsync}. Steps that have no shader stay on the CPU. In Node, the package
   * `webgpu` has to be installed.
   */
  readonly device?: RunDevice;
  /**
   * Where what calls change of the program's own tensors is after a run on a GPU: in the engine's memory, the default, or with `"device"` on the device,
   * until {@link ProgramModule.synchronize} brings it: a key-value cache never crosses then. It does for plans with steps that are the CPU's.
   */
  readonly state?: "engine" | "device";
}

/** What the options of a module say to those who make and run it. */
export interface ModuleSettings {
  readonly run: RunSettings;
  /** What runs a program in the engine as the options say. */
  runner(program: EngineProgram): EngineRunner;
}

/** The names of the options that every call has, however the program was opened. */
export const CALL_OPTIONS = ["limits", "mode", "precision", "device", "state"] as const;

/** Reads the options of a module; `called` is the function that they were given to, for messages. */
export function moduleSettings(called: string, options: ModuleOptions): ModuleSettings {
  checkOptions(called, options, ["checkGuards", ...CALL_OPTIONS]);
  const { limits = {}, mode = RUN_MODES[0], precision = PRECISIONS[0], device = "cpu", state = "engine" } = options;
  checkDevice(device);
  checkGiven(called, state === "engine" || state === "device", 'options.state, "engine" or "device"');
  return {
    run: { milliseconds: limits["milliseconds"], device, keepsState: state === "device" },
    runner: (program) => program.runner(JSON.stringify(limits), mode, precision),
  };
}

function checkDevice(device: RunDevice): void {
  const isKnown = device === "cpu" || device === "gpu" || device === "auto";
  if (isKnown || (typeof device === "object" && "createComputePipelineAsync" in device)) return;
  throw fxError("InvalidOption", `there is no device ${String(device)}`, {
    help: 'a module runs on the device "cpu", "gpu" or "auto", or on a GPUDevice',
  });
}
