/**
 * Targets: what nodes act on, by name.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";

/** A function that graphs know by a name, such as `torch.relu`. */
export interface NamedTarget {
  /** The qualified name. */
  readonly target: string;
}

/** The target as nodes hold it: of a function its name, and of anything else the string. */
export function targetOf(target: string | NamedTarget): string {
  if (typeof target === "string") return target;
  const name: unknown = typeof target === "function" || typeof target === "object" ? target?.target : undefined;
  if (typeof name === "string") return name;
  throw fxError("GraphArgument", `a target is a name or a function that has one, not ${kindOf(target)}`, {
    help: "name a function by its qualified name, such as torch.ops.aten.relu.default; wrap gives yours a name",
  });
}

function kindOf(value: unknown): string {
  return typeof value === "function" ? `the function ${value.name}` : `a value of type ${typeof value}`;
}
