/**
 * The results of operators that have names, as Python's `torch.return_types` do.
 *
 * @module
 */
import { RESULT_NAMES } from "../../../bindings/schemas.ts";
import { recordsOf } from "./records.ts";

/**
 * Several results of an operator: an array, which can be destructured, whose items have names too.
 *
 * @example
 * ```ts
 * const [values, indices] = x.max(1);
 * const { values, indices } = x.max(1);
 * ```
 */
export type NamedResults<Items extends readonly unknown[], Names> = Items & Readonly<Names>;

const namesOf: ReadonlyMap<string, readonly string[]> = new Map(
  recordsOf(RESULT_NAMES).map((record) => {
    const [operator = "", ...names] = record.split(" ");
    return [operator, names];
  }),
);

/**
 * Gives the results of an operator (`aten.max` or `aten.max.dim`) the names that its schema has for them. They are not
 * enumerable: the array compares, prints and is walked as any other.
 */
export function nameResults(operator: string, results: unknown[]): unknown[] {
  const names = namesOf.get(operator.split(".", 2).join("."));
  if (names?.length !== results.length) return results;
  for (const [at, name] of names.entries()) Object.defineProperty(results, name, { value: results[at] });
  return results;
}
