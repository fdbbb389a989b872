/**
 * Calls of operators as an export records them.
 *
 * @module
 */
import { schemasOf } from "../functions/schemas.ts";
import { type Val, ValSequence } from "../graph/val.ts";
import { device, type MemoryFormatArg } from "../base/values.ts";
import { Tensor } from "../tensor/tensor.ts";
import { currentStack, stackText } from "../record/stack.ts";
import { TracedNumber } from "./traced.ts";

/** The user's line, for what errors say of guards. */
export function currentPlace(): string {
  return (stackText([currentStack()]).split("\n")[0] ?? "").replace(/^at /, "");
}

/** What an operator gave, as the note of a node. */
export function asVal(value: unknown, sequence: "list" | "tuple"): Val {
  if (!Array.isArray(value)) return value as Val;
  return new ValSequence(
    sequence,
    value.map((it) => asVal(it, "list")),
  );
}

/** An argument with expressions in the place of traced numbers. */
export function withoutTraced(value: unknown): unknown {
  if (value instanceof TracedNumber) return value.expr;
  return Array.isArray(value) ? value.map(withoutTraced) : value;
}

export function mapValues(
  values: Readonly<Record<string, unknown>>,
  map: (value: unknown) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]));
}

/** Whether Python's method gives the tensor back without calling an operator. */
export function isIdle(name: string, [self]: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): boolean {
  if (name !== "aten.contiguous" || !(self instanceof Tensor) || self.isDisposed) return false;
  const format = kwargs["memory_format"] as MemoryFormatArg | undefined;
  return self.isContiguous(format === undefined ? {} : { memoryFormat: format });
}

/** PyTorch's functions that make tensors say where, and that the memory is not pinned, whether asked to or not. */
export function withFactoryDefaults(
  called: string,
  overload: string,
  kwargs: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const [, packet = "", name = ""] = overload.split(".");
  // An overload that was called by its name is taken as it is.
  if (called === overload) return kwargs;
  const schema = schemasOf(packet).find((it) => (it.overload === "" ? "default" : it.overload) === name);
  if (schema === undefined || !schema.parameters.some((it) => it.name === "pin_memory")) return kwargs;
  const isFactory = !schema.parameters.some((it) => it.type === "Tensor");
  const given: Record<string, unknown> = { ...kwargs };
  if (isFactory) given["device"] ??= device("cpu");
  given["pin_memory"] ??= false;
  const order = schema.parameters.map((it) => it.name);
  return Object.fromEntries(Object.entries(given).toSorted(([a], [b]) => order.indexOf(a) - order.indexOf(b)));
}
