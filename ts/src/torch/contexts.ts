/**
 * PyTorch's contexts: `torch.no_grad`, `torch.enable_grad`, `torch.set_grad_enabled` and `torch.autocast`.
 *
 * A context is a function of what runs in it, or, without one, something that is disposed of: what `using` does at the end of
 * a block. Symbolic tracing does not see them, as in FX; an export makes graphs of what runs in them.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import { areGradientsEnabled, autocastOf, enterAutocast, setGradients } from "../engine/modes.ts";
import type { AutocastMode } from "../engine/recorder.ts";
import { fxError } from "../base/errors.ts";
import { DTypeArg } from "../base/values.ts";
import { checkOptions } from "../base/given.ts";
import { defineFunction } from "../functions/table.ts";

/** A context that was entered. Disposing of it leaves it. */
export interface Context {
  [Symbol.dispose](): void;
}

/** How `torch.autocast` casts. */
export interface AutocastOptions {
  /** The narrow dtype; on the CPU `bfloat16`, which is the default, or `float16`. */
  readonly dtype?: DType | DTypeArg;
  /** Whether anything is cast at all: without it, a part of a larger context is left out. */
  readonly enabled?: boolean;
  /** Whether PyTorch may keep what it has cast. Here nothing is kept; an export notes it. */
  readonly cacheEnabled?: boolean;
}

/**
 * Runs a function without gradients: `torch.no_grad`. Eager operators compute none anyway; an export makes a graph of what the
 * function does, and training programs let no gradient through it.
 *
 * @example
 * ```ts
 * const y = torch.noGrad(() => this.teacher.forward(x));
 *
 * using _off = torch.noGrad(); // up to the end of the block
 * ```
 */
export function noGrad(): Context;
export function noGrad<T>(fn: () => T): T;
export function noGrad<T>(fn?: () => T): T | Context {
  return within(() => gradients(false), "noGrad", fn);
}

/**
 * Runs a function with gradients, within `torch.noGrad`: `torch.enable_grad`.
 *
 * @example
 * ```ts
 * torch.noGrad(() => torch.enableGrad(() => torch.isGradEnabled())); // true
 * ```
 */
export function enableGrad(): Context;
export function enableGrad<T>(fn: () => T): T;
export function enableGrad<T>(fn?: () => T): T | Context {
  return within(() => gradients(true), "enableGrad", fn);
}

/**
 * Lets gradients flow or not: `torch.set_grad_enabled`. Without a function it holds from here on, until what it gives is
 * disposed of.
 *
 * @example
 * ```ts
 * const y = torch.setGradEnabled(this.training, () => this.layer.forward(x));
 * torch.setGradEnabled(false);
 * ```
 */
export function setGradEnabled(mode: boolean): Context;
export function setGradEnabled<T>(mode: boolean, fn: () => T): T;
export function setGradEnabled<T>(mode: boolean, fn?: () => T): T | Context {
  if (typeof mode !== "boolean") throw fxError("InvalidOption", "setGradEnabled takes true or false");
  const enter = (): (() => void) => {
    const leave = gradients(mode);
    // PyTorch's is set when it is made and again when it is entered, and an export shows that.
    if (fn !== undefined) setGradients(mode);
    return leave;
  };
  return within(enter, "setGradEnabled", fn);
}

/**
 * Whether gradients flow: `torch.is_grad_enabled`.
 *
 * @example
 * ```ts
 * torch.noGrad(() => torch.isGradEnabled()); // false
 * ```
 */
export function isGradEnabled(): boolean {
  return areGradientsEnabled();
}

/**
 * Runs a function with products in a narrow dtype, and with what loses by that in float32: `torch.autocast`. Which operator
 * casts to what is PyTorch's choice for the CPU; autocast for other devices changes nothing here.
 *
 * @example
 * ```ts
 * const y = torch.autocast("cpu", { dtype: "bfloat16" }, () => model.call(x));
 * using _narrow = torch.autocast("cpu");
 * ```
 */
export function autocast(deviceType: string, options?: AutocastOptions): Context;
export function autocast<T>(deviceType: string, fn: () => T): T;
export function autocast<T>(deviceType: string, options: AutocastOptions, fn: () => T): T;
export function autocast<T>(
  deviceType: string,
  first: AutocastOptions | (() => T) = {},
  second?: () => T,
): T | Context {
  const [options, fn] = typeof first === "function" ? [{}, first] : [first, second];
  const mode = modeOf(deviceType, options);
  return within(() => enterAutocast(mode), "autocast", fn);
}

/**
 * Whether autocast casts on a kind of device: `torch.is_autocast_enabled`.
 *
 * @example
 * ```ts
 * torch.autocast("cpu", () => torch.isAutocastEnabled("cpu")); // true
 * ```
 */
export function isAutocastEnabled(deviceType = "cuda"): boolean {
  return autocastOf(deviceType)?.isEnabled ?? false;
}

/**
 * The dtype that autocast casts to on a kind of device: `torch.get_autocast_dtype`.
 *
 * @example
 * ```ts
 * torch.getAutocastDtype("cpu"); // torch.bfloat16
 * ```
 */
export function getAutocastDtype(deviceType: string): DTypeArg {
  return new DTypeArg(autocastOf(deviceType)?.dtype ?? defaultDtype(deviceType));
}

/** What graphs before autograd hold: it says what holds from here on. */
defineFunction("torch._C._set_grad_enabled", (isEnabled: boolean) => void setGradients(isEnabled), {
  signature: "(arg, /)",
});

function gradients(isEnabled: boolean): () => void {
  const before = areGradientsEnabled();
  setGradients(isEnabled);
  return () => setGradients(before);
}

/** Enters a context, and leaves it after the function; or gives what leaves it. */
function within<T>(enter: () => () => void, name: string, fn: (() => T) | undefined): T | Context {
  if (fn !== undefined && typeof fn !== "function") {
    throw fxError("InvalidOption", `${name} takes a function of what runs in it`);
  }
  const leave = enter();
  if (fn === undefined) {
    let isLeft = false;
    return {
      [Symbol.dispose]() {
        if (!isLeft) leave();
        isLeft = true;
      },
    };
  }
  try {
    const result = fn();
    if (!(result instanceof Promise)) return result;
  } finally {
    leave();
  }
  throw fxError(
    "InvalidOption",
    `what runs in ${name} must be synchronous: the context holds until the function returns`,
    {
      help: "await outside of it",
    },
  );
}

function modeOf(deviceType: unknown, options: AutocastOptions): AutocastMode {
  checkOptions("autocast", options, ["dtype", "enabled", "cacheEnabled"]);
  const { dtype, enabled = true, cacheEnabled = false } = options;
  if (typeof deviceType !== "string") {
    throw fxError("InvalidOption", `Expected \`device_type\` of type \`str\`, got: \`${typeof deviceType}\``, {
      help: 'autocast("cpu", () => …)',
    });
  }
  const name = dtype instanceof DTypeArg ? dtype.name : (dtype ?? defaultDtype(deviceType));
  if (deviceType === "cpu" && enabled && name !== "bfloat16" && name !== "float16") {
    throw fxError("InvalidOption", `In CPU autocast, but the target dtype is not supported: ${name}`, {
      help: "CPU Autocast only supports dtype of torch.bfloat16, torch.float16 currently.",
    });
  }
  return { deviceType, dtype: name, isEnabled: enabled, isCacheEnabled: cacheEnabled };
}

/** PyTorch's defaults. */
function defaultDtype(deviceType: string): DType {
  return deviceType === "cpu" ? "bfloat16" : "float16";
}
