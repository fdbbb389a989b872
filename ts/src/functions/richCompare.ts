/**
 * Python's comparisons and truth of values that are no tensors.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { Complex, DeviceArg, DTypeArg, LayoutArg, MemoryFormatArg, Slice } from "../base/values.ts";
import { Tensor } from "../tensor/tensor.ts";
import { compareNumbers, equalNumbers, numberOf } from "./numbers.ts";
import { entriesOf, isDict, isTuple } from "./sequences.ts";

/** Containers nested deeper than this hold themselves. */
const MAX_DEPTH = 500;

/** Python's `left == right`. */
export function equal(left: unknown, right: unknown, depth = 0): boolean {
  if (left === right) return true;
  if (depth > MAX_DEPTH) throw fxError("InvalidArgument", `containers are nested deeper than ${MAX_DEPTH} levels`);
  const [a, b] = [numberOf(left), numberOf(right)];
  if (a !== undefined && b !== undefined) return equalNumbers(a, b);
  if (Array.isArray(left) && Array.isArray(right)) {
    if (isTuple(left) !== isTuple(right) || left.length !== right.length) return false;
    return left.every((it, at) => equal(it, right[at], depth + 1));
  }
  if (isDict(left) && isDict(right)) {
    const [mine, theirs] = [entriesOf(left), new Map(entriesOf(right))];
    return (
      mine.length === theirs.size && mine.every(([key, it]) => theirs.has(key) && equal(it, theirs.get(key), depth + 1))
    );
  }
  if (left instanceof Slice && right instanceof Slice) {
    return equal([left.start, left.stop, left.step], [right.start, right.stop, right.step], depth + 1);
  }
  for (const kind of [DTypeArg, DeviceArg, LayoutArg, MemoryFormatArg]) {
    if (left instanceof kind && right instanceof kind) return left.toString() === right.toString();
  }
  return false;
}

/** The order of two values: negative, zero or positive, or NaN; undefined where Python has none. */
export function compare(left: unknown, right: unknown, depth = 0): number | undefined {
  const [a, b] = [numberOf(left), numberOf(right)];
  if (a !== undefined && b !== undefined) {
    return a instanceof Complex || b instanceof Complex ? undefined : compareNumbers(a, b);
  }
  if (typeof left === "string" && typeof right === "string") return compareTexts(left, right);
  if (!Array.isArray(left) || !Array.isArray(right) || isTuple(left) !== isTuple(right)) return undefined;
  if (depth > MAX_DEPTH) throw fxError("InvalidArgument", `containers are nested deeper than ${MAX_DEPTH} levels`);
  const at = left.findIndex((it, index) => index >= right.length || !equal(it, right[index], depth + 1));
  if (at < 0 || at >= right.length) return left.length - right.length;
  return compare(left[at], right[at], depth + 1);
}

/** Python compares texts by characters, JavaScript by halves of them. */
function compareTexts(left: string, right: string): number {
  const [a, b] = [[...left], [...right]];
  const at = a.findIndex((it, index) => it !== b[index]);
  if (at < 0 || at >= b.length) return a.length - b.length;
  return (a[at]?.codePointAt(0) ?? 0) - (b[at]?.codePointAt(0) ?? 0);
}

/** Python's `bool(value)`. */
export function truthOf(value: unknown): boolean {
  if (value instanceof Tensor) {
    const count = value.shape.reduce((product, size) => product * size, 1);
    if (count === 1) return truthOf(value.item());
    const values = count === 0 ? "no values" : "more than one value";
    throw fxError("InvalidArgument", `Boolean value of Tensor with ${values} is ambiguous`, {
      help: "take torch.any(x) or torch.all(x)",
    });
  }
  const number = numberOf(value);
  if (number instanceof Complex) return number.re !== 0 || number.im !== 0;
  // NaN is true, unlike in JavaScript.
  if (number !== undefined) return number !== 0n && number !== 0;
  if (typeof value === "string" || Array.isArray(value)) return value.length > 0;
  if (isDict(value)) return entriesOf(value).length > 0;
  return value !== null && value !== undefined;
}
