/**
 * Checks that a graph makes while it runs, and PyTorch's functions of sizes.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { truthOf } from "./richCompare.ts";
import { summands } from "./sequences.ts";
import { float, int, max, min, sum } from "./builtins.ts";
import { sqrt } from "./math.ts";
import { SymbolicNumber } from "../base/symbolic.ts";
import { defineFunction } from "./table.ts";

/**
 * Refuses to go on where the condition does not hold: `torch._assert`. Traced, the check becomes part of the graph.
 *
 * @example
 * ```ts
 * torch._assert(operator.eq(x.size(0), 8), "a batch of 8");
 * ```
 */
export const assert = defineFunction(
  "torch._assert",
  (condition: unknown, message: string): null => {
    if (truthOf(condition)) return null;
    throw fxError("AssertionFailed", message === "" ? "a check of the graph does not hold" : message);
  },
  { signature: "(condition, message)" },
);

/**
 * Takes a condition to hold: `torch._check`. A program that is exported refuses inputs for which it does not; where nothing is
 * exported it is an assertion.
 *
 * @example
 * ```ts
 * torch._check(operator.le(x.size(0), 8), () => "at most 8");
 * ```
 */
export const check = defineFunction(
  "torch._check",
  (condition: unknown, message?: string | (() => string)): void => {
    const text = typeof message === "function" ? message() : message;
    if (condition instanceof SymbolicNumber) condition.check(text ?? "");
    else if (!truthOf(condition)) throw fxError("AssertionFailed", text ?? "Expected cond to be True, but got False");
  },
  { signature: "(cond, message=None)" },
);

/**
 * A size as an int.
 *
 * @example
 * ```ts
 * torch.symInt(2.5); // 2
 * ```
 */
export const symInt = defineFunction("torch.sym_int", (a: unknown) => int(a), { signature: "(a)" });
/**
 * A size as a float.
 *
 * @example
 * ```ts
 * torch.symFloat(2); // float(2)
 * ```
 */
export const symFloat = defineFunction("torch.sym_float", (a: unknown) => float(a), { signature: "(a)" });
/**
 * Whether a condition does not hold.
 *
 * @example
 * ```ts
 * torch.symNot(false); // true
 * ```
 */
export const symNot = defineFunction("torch.sym_not", (a: unknown) => !truthOf(a), { signature: "(a)" });
/**
 * The greater of two sizes.
 *
 * @example
 * ```ts
 * torch.symMax(2, 3); // 3
 * ```
 */
export const symMax = defineFunction("torch.sym_max", (a: unknown, b: unknown) => max(a, b), { signature: "(a, b)" });
/**
 * The lesser of two sizes.
 *
 * @example
 * ```ts
 * torch.symMin(2, 3); // 2
 * ```
 */
export const symMin = defineFunction("torch.sym_min", (a: unknown, b: unknown) => min(a, b), { signature: "(a, b)" });
/**
 * The sum of sizes, which are given one by one, or as an array.
 *
 * @example
 * ```ts
 * torch.symSum([1, 2, 3]); // 6
 * torch.symSum(1, 2, 3); // 6
 * ```
 */
export const symSum = defineFunction("torch.sym_sum", (...args: readonly unknown[]) => sum(summands(args)), {
  signature: "(*args)",
});

/**
 * One of two values, as a condition says.
 *
 * @example
 * ```ts
 * torch.symIte(true, 1, 2); // 1
 * ```
 */
export const symIte = defineFunction(
  "torch.sym_ite",
  (condition: unknown, then: unknown, otherwise: unknown) => (truthOf(condition) ? then : otherwise),
  { signature: "(b, t, f)" },
);
/**
 * The square root of a size.
 *
 * @example
 * ```ts
 * torch._symSqrt(9); // float(3)
 * ```
 */
export const _symSqrt = defineFunction("torch._sym_sqrt", (a: unknown) => sqrt(a as number), { signature: "(a)" });
