/**
 * What control flow does with values: the meaning that the engine gives it too.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type PytreeSpec, treeFlatten, treeUnflatten } from "./pytree.ts";
import { isTraced, WITHOUT_ELEMENTS } from "../record/record.ts";
import { traceError } from "../record/stack.ts";

/** A function of values. */
export type Call = (...args: unknown[]) => unknown;

/** How many steps nested loops take together at most: a graph must not be able to keep its reader for ever. */
const MAX_LOOP_STEPS = 2 ** 20;
/** How many loops are running, one in the other, and the steps that they took. */
let loops = 0;
let steps = 0;

/** Runs a loop, which is told to count its steps. */
function counting<T>(operator: string, loop: (step: () => void) => T): T {
  if (loops === 0) steps = 0;
  loops++;
  try {
    return loop(() => {
      steps++;
      if (steps <= MAX_LOOP_STEPS) return;
      throw fxError("LimitExceeded", `the loops took ${MAX_LOOP_STEPS} steps and did not end`, {
        op: `higher_order.${operator}`,
        help: "look at the condition of the loop",
      });
    });
  } finally {
    loops--;
  }
}

/** One of two functions. */
export function runCond(predicate: unknown, onTrue: Call, onFalse: Call, operands: readonly unknown[]): unknown {
  return truth(predicate, "cond") ? onTrue(...operands) : onFalse(...operands);
}

/** A loop over carried values. */
export function runWhileLoop(
  condition: Call,
  body: Call,
  carried: readonly unknown[],
  additional: readonly unknown[],
): readonly unknown[] {
  return counting("while_loop", (step) => {
    let values = carried;
    while (truth(condition(...values, ...additional), "while_loop")) {
      step();
      const next = body(...values, ...additional);
      if (!Array.isArray(next) || next.length !== values.length) {
        const found = Array.isArray(next) ? `${next.length}` : "something else";
        throw refused("while_loop", `the body carries ${values.length} values and gives ${found}`);
      }
      values = next as unknown[];
    }
    return values;
  });
}

/** A function on each slice, the results stacked. */
export function runMap(fn: Call, xs: unknown, args: readonly unknown[]): unknown {
  return counting("map_impl", (step) => {
    const rows = slicesOf(xs, "map").map((x) => {
      step();
      return fn(x, ...args);
    });
    return stacked(rows, "map");
  });
}

/** A function on each slice and a value that is carried on. */
export function runScan(combine: Call, init: unknown, xs: unknown): [carry: unknown, outputs: unknown] {
  return counting("scan", (step) => {
    let carry = init;
    const rows = slicesOf(xs, "scan").map((x) => {
      step();
      const result = combine(carry, x);
      if (!Array.isArray(result) || result.length !== 2) {
        throw refused("scan", "combine gives no pair of a carried value and an output", "return [carry, y]");
      }
      const [next, output] = result as [unknown, unknown];
      carry = next;
      return output;
    });
    return [carry, stacked(rows, "scan")];
  });
}

function truth(value: unknown, name: string): boolean {
  if (isTraced(value) || (value instanceof Tensor && WITHOUT_ELEMENTS in value)) {
    throw traceError("TraceControlFlow", `the condition of ${name} is traced, and none of the values around it is`, {
      help: "give the traced values as operands",
    });
  }
  if (typeof value === "boolean") return value;
  if (Array.isArray(value) && value.length === 1) return truth(value[0], name);
  if (value instanceof Tensor && value.dtype === "bool" && value.numel() === 1) return Boolean(value.item());
  const found = value instanceof Tensor ? `a ${value.dtype} tensor of shape [${value.shape.join(", ")}]` : typeof value;
  throw refused(name, `the predicate should be a bool and is ${found}`, "compare, as in torch.gt(x.sum(), 0)");
}

/** The container for each step, its tensors sliced along the first dimension. */
function slicesOf(xs: unknown, name: string): unknown[] {
  const [leaves, spec] = treeFlatten(xs);
  const sizes = leaves.map((it) => (it instanceof Tensor ? it.shape[0] : undefined));
  const [count] = sizes;
  if (count === undefined || count === 0 || sizes.some((it) => it !== count)) {
    const found = sizes.map((it) => it ?? "none").join(", ");
    throw refused(name, `xs should be tensors with equal leading sizes above zero, which are ${found}`);
  }
  const at = (index: number): unknown =>
    treeUnflatten(
      leaves.map((it) => callOperator("aten.select.int", [it, 0, index])),
      spec,
    );
  return Array.from({ length: count }, (_, index) => at(index));
}

/** Containers of tensors as one container of the tensors stacked. */
function stacked(rows: readonly unknown[], name: string): unknown {
  const flat = rows.map((it) => treeFlatten(it));
  const [, spec] = flat[0] as [unknown[], PytreeSpec];
  const other = flat.find(([, it]) => !it.equals(spec));
  if (other !== undefined) throw refused(name, `one step gives ${spec} and another ${other[1]}`);
  const columns = Array.from({ length: spec.numLeaves }, (_, column) => flat.map(([leaves]) => leaves[column]));
  return treeUnflatten(
    columns.map((column) => callOperator("aten.stack", [column, 0])),
    spec,
  );
}

/** The refusal of a call of control flow. */
export function refused(name: string, reason: string, help?: string): FxError {
  return fxError("SchemaMismatch", reason, { op: `higher_order.${name}`, help });
}
