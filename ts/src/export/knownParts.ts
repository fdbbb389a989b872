/**
 * The members of traced tensors on which a module may decide.
 *
 * @module
 */
import { SymExpr, TensorMeta } from "../graph/val.ts";

/** What is known of a traced tensor whatever its sizes are. */
const KNOWN_PARTS: ReadonlySet<string> = new Set(
  "dtype device layout ndim dim ndimension requiresGrad isFloatingPoint isComplex isSigned itemsize elementSize".split(
    " ",
  ),
);

/** What is known of one with static sizes. */
const STATIC_PARTS: ReadonlySet<string> = new Set([
  ...KNOWN_PARTS,
  ..."shape size stride numel nelement nbytes storageOffset isContiguous".split(" "),
]);

/** Whether a value of the trace is a size that is not known, or has one. */
export function isDynamic(value: unknown): boolean {
  if (value instanceof TensorMeta) return value.sizes.some((it) => it instanceof SymExpr);
  return value instanceof SymExpr;
}

/** What is known while a module with dynamic sizes is exported, or with static ones. */
export function knownPartsOf(hasDynamicSizes: boolean): ReadonlySet<string> {
  return hasDynamicSizes ? KNOWN_PARTS : STATIC_PARTS;
}
