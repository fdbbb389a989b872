/**
 * What holds for all operators that are called from here on: whether gradients flow, and autocast.
 *
 * @module
 */
import { DTYPES } from "../../../bindings/dtypes.ts";
import { type AutocastMode, currentRecorder } from "./recorder.ts";

let gradients = true;
let autocasts: readonly AutocastMode[] = [];

/** Whether gradients flow. */
export function areGradientsEnabled(): boolean {
  return gradients;
}

/** Lets gradients flow, or not; an export records it. */
export function setGradients(isEnabled: boolean): void {
  gradients = isEnabled;
  currentRecorder()?.setGradEnabled?.(isEnabled);
}

/** The innermost autocast for a kind of device. */
export function autocastOf(deviceType: string): AutocastMode | undefined {
  return autocasts.findLast((it) => it.deviceType === deviceType);
}

/** The number of the dtype to which operators on the CPU cast now. */
export function autocastDtype(): number | undefined {
  const mode = autocasts.length === 0 ? undefined : autocastOf("cpu");
  return mode?.isEnabled === true ? DTYPES[mode.dtype].id : undefined;
}

/** Enters autocast, and gives what leaves it again; an export records both. */
export function enterAutocast(mode: AutocastMode): () => void {
  const outer = autocasts;
  autocasts = [...outer, mode];
  const exit = currentRecorder()?.enterAutocast?.(mode);
  return () => {
    autocasts = outer;
    exit?.();
  };
}

/** Runs `body` as outside of all modes: an export begins like this. */
export function withoutModes<T>(body: () => T): T {
  const outer = { gradients, autocasts };
  [gradients, autocasts] = [true, []];
  try {
    return body();
  } finally {
    ({ gradients, autocasts } = outer);
  }
}
