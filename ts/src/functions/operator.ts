/**
 * Python's module `operator`: its operators as functions, which a trace records.
 *
 * JavaScript has no operators of tensors and no way to see its own, so these are the way to write `x + y` or `x[0]` where the
 * values are traced. With plain values they are Python's operators and not JavaScript's: `floordiv(-7, 2)` is -4,
 * `add([1], [2])` is `[1, 2]`, and `truediv(4, 2)` the float 2.0.
 *
 * @example
 * ```ts
 * import { operator } from "tracefx";
 * symbolicTrace((x: Tensor) => operator.add(operator.getitem(x, 0), 1));
 * ```
 * @module
 */
import { addResolver, functionNamed, isDefined } from "./table.ts";

export * from "./arithmetic.ts";
export * from "./comparison.ts";
export * from "./inPlace.ts";
export * from "./items.ts";

// Python's own name of the module, which some graphs have.
addResolver((target) => {
  const [, name] = /^_operator\.(\w+)$/.exec(target) ?? [];
  if (name === undefined || !isDefined(`operator.${name}`)) return undefined;
  return functionNamed(`operator.${name}`);
});
