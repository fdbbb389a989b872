/**
 * Calls with `out`: the result is written to tensors that are given for it.
 *
 * @module
 */
import { type OperatorRecorder, recordingOperators } from "../engine/recorder.ts";
import { nameResults } from "../base/results.ts";
import { areSame } from "../base/sizes.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { canCast } from "../torch/promotion.ts";
import { traceError } from "../record/stack.ts";

/**
 * Records a call without `out`, and a copy into each tensor of it, where PyTorch records an overload that writes. Tensors of
 * other sizes are refused, which PyTorch would resize, and those of a dtype that would lose a kind of number, as in PyTorch.
 */
export function writeOut(
  recorder: OperatorRecorder,
  name: string,
  args: readonly unknown[],
  { out, ...kwargs }: Readonly<Record<string, unknown>>,
): unknown {
  const targets = (Array.isArray(out) ? out : [out]) as Tensor[];
  const given = recorder.callOperator(name, args, kwargs);
  const results = (Array.isArray(given) ? given : [given]) as Tensor[];
  if (results.length !== targets.length) {
    throw traceError("SchemaMismatch", `${name} gives ${results.length} results, and out has ${targets.length}`, {
      help: "give one tensor for each result",
    });
  }
  for (const [at, target] of targets.entries()) {
    const result = results[at] as Tensor;
    if (!areSame(target.shape, result.shape)) {
      throw traceError("NotImplemented", `${name} with \`out\` of other sizes than the result is not exported`, {
        help: "make a tensor of the sizes of the result, or use the result",
      });
    }
    if (!recordingOperators(undefined, () => canCast(result.dtype, target.dtype))) {
      const what = `result type ${result.dtype} can't be cast to the desired output type ${target.dtype}`;
      throw traceError("DTypeMismatch", what, { help: "give `out` the dtype of the result" });
    }
    recorder.callOperator("aten.copy_", [target, result], {});
  }
  return Array.isArray(out) ? nameResults(name, targets) : targets[0];
}
