/**
 * Operators, called one at a time on the engine.
 *
 * @module
 */
import { fxError } from "../errors.ts";
import { Tensor } from "../tensor/tensor.ts";
import { call } from "./engine.ts";
import { moveToEngine, readerOf, updateTensor } from "./tensors.ts";
import { WordWriter } from "./words.ts";

/** The words of the call that is being written; a call is read before the next one begins. */
const writer = new WordWriter(moveToEngine);

/**
 * Calls an operator at once: `aten.add`, whose overload is found by the arguments as PyTorch's functions find it, or
 * `aten.add.Tensor`. Keyword arguments have PyTorch's names.
 *
 * Whole numbers are ints and other numbers floats, `float(1)` is the float 1.0, and an array is a list. One result is
 * given as it is, several as an array, none as null. What works in place, and what writes to `out`, gives back the very
 * tensor that it wrote to. Tensors in JavaScript's memory move to the engine's when they are first used.
 *
 * @example
 * ```ts
 * callOperator("aten.add", [x, y], { alpha: 2 });
 * callOperator("aten.relu_", [x]) === x;
 * ```
 */
export function callOperator(
  name: string,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> = {},
): unknown {
  writer.clear();
  writer.values(args, (at) => `argument ${at} of ${name}`);
  const named = Object.entries(kwargs);
  writer.word(named.length);
  for (const [key, value] of named) {
    writer.text(key);
    writer.value(value, () => `argument \`${key}\` of ${name}`);
  }
  const reader = readerOf(call((engine) => engine.call_operator(name, writer.finish())));
  const isSelf = reader.word() === 1;
  const targets = isSelf ? [selfOf(name, args, kwargs)] : outOf(kwargs);
  if (targets !== undefined) {
    for (const target of targets) updateTensor(target, reader.tensorView());
    return targets.length === 1 ? targets[0] : targets;
  }
  const results: unknown[] = [];
  while (!reader.isDone) results.push(reader.value());
  return results.length > 1 ? results : (results[0] ?? null);
}

/** The tensor that an operator works on. */
function selfOf(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): Tensor {
  for (const it of [args[0], kwargs["self"], kwargs["input"]]) if (it instanceof Tensor) return it;
  throw fxError("Internal", `${name} gave back an argument that is no tensor`);
}

/** The tensors that the results were written to, where the caller gave any. */
function outOf({ out }: Readonly<Record<string, unknown>>): readonly Tensor[] | undefined {
  if (out === undefined || out === null) return undefined;
  return (Array.isArray(out) ? out : [out]) as readonly Tensor[];
}
