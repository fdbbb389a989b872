/**
 * Who answers calls of operators in the place of the engine: a tracer that works with values.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";

/** An autocast as PyTorch's `_enter_autocast` takes it. */
export interface AutocastMode {
  readonly deviceType: string;
  readonly dtype: DType;
  readonly isEnabled: boolean;
  readonly isCacheEnabled: boolean;
}

/** Who answers calls of operators in the place of the engine: a tracer that works with values. */
export interface OperatorRecorder {
  callOperator(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown;
  /** Gradients flow from here on, or do not. */
  setGradEnabled?(isEnabled: boolean): void;
  /** Autocast begins; what is given back is called where it ends. */
  enterAutocast?(mode: AutocastMode): () => void;
}

/** Who answers calls of operators now. */
export function currentRecorder(): OperatorRecorder | undefined {
  return recorder;
}

let recorder: OperatorRecorder | undefined;

/** Runs `body`, in which `next` answers calls of operators; the engine does where it is undefined. */
export function recordingOperators<T>(next: OperatorRecorder | undefined, body: () => T): T {
  const outer = recorder;
  recorder = next;
  try {
    return body();
  } finally {
    recorder = outer;
  }
}
