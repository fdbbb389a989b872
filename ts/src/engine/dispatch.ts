/**
 * Operators, called one at a time on the engine.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import { isOptions } from "../base/naming.ts";
import { nameResults } from "../base/results.ts";
import { checkList } from "../base/given.ts";
import { TensorMeta } from "../graph/val.ts";
import { tensorVal } from "./tensorMetadata.ts";
import { relieveMemory } from "../tensor/storage.ts";
import { Tensor } from "../tensor/tensor.ts";
import { call } from "./engine.ts";
import { autocastDtype } from "./modes.ts";
import { currentRecorder } from "./recorder.ts";
import { moveToEngine, readerOf, updateTensor } from "./tensors.ts";
import { ValueWriter } from "./values.ts";

/** The words of the call that is being written; a call is read before the next one begins. */
const writer = new ValueWriter(moveToEngine);

/**
 * Calls an operator at once: `aten.add`, whose overload is found by the arguments as PyTorch's functions find it, or
 * `aten.add.Tensor`. Keyword arguments have PyTorch's names.
 *
 * Whole numbers are ints and other numbers floats, `float(1)` is the float 1.0, and an array is a list. One result is
 * given as it is, several as an array (by name too, where they have names), none as null. What works in place, and what writes to `out`, gives back the very
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
  const recorder = currentRecorder();
  if (recorder !== undefined) return recorder.callOperator(name, args, kwargs);
  if (known !== undefined && (args.some(isKnown) || Object.values(kwargs).some(isKnown))) {
    return known(inferOperator(name, args, kwargs));
  }
  relieveMemory();
  writeCall(name, args, kwargs);
  const reader = readerOf(call((engine) => engine.call_operator(name, writer.finish(), autocastDtype())));
  const isSelf = reader.word() === 1;
  const targets = isSelf ? [selfOf(name, args, kwargs)] : outOf(kwargs);
  if (targets !== undefined) {
    for (const target of targets) updateTensor(target, reader.tensorView());
    return targets.length === 1 ? targets[0] : nameResults(name, [...targets]);
  }
  const results: unknown[] = [];
  while (!reader.isDone) results.push(reader.value());
  return results.length > 1 ? nameResults(name, results) : (results[0] ?? null);
}

/**
 * What is known of the results of an operator without calling it: `callOperator` on what is known of its arguments,
 * as PyTorch's fake tensors do it. Tensors among the arguments stand for what is known of them, and are neither read nor
 * written; several results are an array. What only the data can tell, such as how many elements are not zero, is a new
 * symbol.
 *
 * @example
 * ```ts
 * inferOperator("aten.mm", [tensor([[1, 2, 3]]), tensor([[1], [2], [3]])]).sizes; // [1, 1]
 * ```
 */
export function inferOperator(
  name: string,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> = {},
): unknown {
  checkCall("inferOperator", name, args, kwargs);
  const known = Object.entries(kwargs).map(([key, value]) => [key, withoutData(value)]);
  writeCall(name, args.map(withoutData), Object.fromEntries(known));
  const reader = readerOf(call((engine) => engine.infer_operator(name, writer.finish(), autocastDtype())));
  const results: unknown[] = [];
  while (!reader.isDone) results.push(reader.value());
  return results.length > 1 ? results : (results[0] ?? null);
}

/** What {@link callOperator} gives for tensors without data; undefined while they are refused. */
let known: ((value: unknown) => unknown) | undefined;

/** Lets {@link callOperator} take tensors without data while `body` runs: then it infers, and `wrap` makes the results. */
export function inferring<T>(wrap: (value: unknown) => unknown, body: () => T): T {
  const outer = known;
  known = wrap;
  try {
    return body();
  } finally {
    known = outer;
  }
}

/** The call of an operator as a graph has it. */
export interface ResolvedCall {
  /** The overload, such as `aten.add.Tensor`. */
  readonly name: string;
  /** For each result the position of the argument that it is, if it is one. */
  readonly givenBack: readonly (number | undefined)[];
  readonly args: readonly unknown[];
  readonly kwargs: Readonly<Record<string, unknown>>;
}

/**
 * The overload that a call is for, and its arguments as that takes them, without those that are the defaults and without
 * `out`, which may ask for a dtype. Tensors
 * among the arguments are the caller's own, of which `knownOf` says what is known; numbers that are symbolic are
 * expressions.
 */
export function resolveOperator(
  name: string,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>>,
  knownOf: (tensor: Tensor) => TensorMeta,
): ResolvedCall {
  const tensors: Tensor[] = [];
  const places = new ValueWriter((tensor) => tensors.push(tensor) - 1);
  writeCall(name, args, kwargs, places);
  for (const tensor of tensors) places.value(knownOf(tensor), () => name);
  const words = call((engine) => engine.resolve_operator(name, places.finish()));
  const reader = readerOf(words, (place) => tensors[place] as Tensor);
  const overload = reader.value() as string;
  const givenBack = Array.from({ length: reader.word() }, () => {
    const place = reader.word();
    return place === 0 ? undefined : place - 1;
  });
  const positional = Array.from({ length: reader.word() }, () => reader.value());
  const named = Array.from({ length: reader.word() }, () => [reader.value() as string, reader.value()] as const);
  return { name: overload, givenBack, args: positional, kwargs: Object.fromEntries(named) };
}

function isKnown(value: unknown): boolean {
  return value instanceof TensorMeta || (Array.isArray(value) && value.some(isKnown));
}

/**
 * The gradients of the arguments of an operator, one per argument of its schema and null where none flows, from the
 * gradients of its results: what `torch.autograd.grad` gives for one call. The operator is called for it; what works in
 * place is called as its functional counterpart.
 *
 * @example
 * ```ts
 * differentiateOperator("aten.square", [tensor([3, 4])], [tensor([1, 1])]); // [tensor([6., 8.])]
 * ```
 */
export function differentiateOperator(
  name: string,
  args: readonly unknown[],
  grads: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> = {},
): unknown[] {
  checkCall("differentiateOperator", name, args, kwargs);
  checkList("differentiateOperator", "grads", grads);
  writeCall(name, args, kwargs);
  for (const [at, grad] of grads.entries()) writer.value(grad, () => `gradient ${at} of ${name}`);
  const reader = readerOf(call((engine) => engine.differentiate_operator(name, writer.finish())));
  const results: unknown[] = [];
  while (!reader.isDone) results.push(reader.value());
  return results;
}

/** How near a result of this dtype must be to PyTorch's: `|a - b| <= atol + rtol * |b|`. */
export function operatorTolerance(name: string, dtype: DType): { readonly rtol: number; readonly atol: number } {
  checkName("operatorTolerance", name);
  if (!Object.hasOwn(DTYPES, dtype)) {
    throw fxError("InputType", `there is no dtype \`${String(dtype)}\``, {
      help: `one of ${Object.keys(DTYPES).join(", ")}`,
    });
  }
  const [rtol, atol] = call((engine) => engine.operator_tolerance(name, DTYPES[dtype].id));
  return { rtol: rtol as number, atol: atol as number };
}

function checkName(what: string, name: unknown): void {
  if (typeof name === "string") return;
  throw fxError("InvalidArgument", `${what} takes the name of an operator, and is given ${typeof name}`, {
    help: `${what}("aten.add.Tensor", …)`,
  });
}

/** Refuses what would break inside: the engine takes texts and lists at their word. */
function checkCall(what: string, name: unknown, args: unknown, kwargs: unknown): void {
  checkName(what, name);
  checkList(what, "args", args);
  if (!isOptions(kwargs)) throw fxError("InvalidArgument", `${what} takes an object as kwargs`);
}

function writeCall(
  name: string,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>>,
  words: ValueWriter = writer,
): void {
  words.clear();
  words.values(args, (at) => `argument ${at} of ${name}`);
  const named = Object.entries(kwargs);
  words.word(named.length);
  for (const [key, value] of named) {
    words.text(key);
    words.value(value, () => `argument \`${key}\` of ${name}`);
  }
}

function withoutData(value: unknown): unknown {
  if (value instanceof Tensor) return tensorVal(value);
  return Array.isArray(value) ? value.map(withoutData) : value;
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
