/**
 * Which functions change an argument, for tracers that record functional code only.
 *
 * @module
 */
import type { ArgInput } from "../graph/args.ts";
import { isInPlaceName, showsItWrites } from "../graph/effects.ts";
import { traceError } from "../record/stack.ts";

/** Refuses a call of a function of PyTorch's that changes an argument: one in place, or one that is given `out`. */
export function checkFunctional(target: string, kwargs: Readonly<Record<string, ArgInput>>): void {
  const operation = mutableOperation(target, (kwargs["out"] ?? null) !== null);
  if (operation === undefined) return;
  throw traceError("TraceUnsupported", `Tried to trace mutable operation ${operation}`, {
    help: "the tracer records functional code only (checkMutableOperations): call the function that gives its result",
  });
}

/** The name of the operator, as FX tells it, where it changes an argument. */
function mutableOperation(target: string, hasOut: boolean): string | undefined {
  const parts = target.split(".");
  if (parts[0] !== "torch") return undefined;
  const [, ops, namespace = "", name = "", overload = ""] = parts;
  if (ops === "ops") {
    return showsItWrites(name, overload) ? `${namespace}::${name}.${overload}` : undefined;
  }
  const last = parts.at(-1) ?? "";
  // The functions of torch.nn.functional are Python, which FX does not look into.
  if (parts.length > 2 && !parts.includes("_C")) return undefined;
  if (hasOut) return `aten::${last}.out`;
  return isInPlaceName(last) ? `aten::${last}` : undefined;
}
