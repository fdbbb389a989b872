/**
 * What is different between two results, within the tolerance of their dtype.
 *
 * @module
 */
import { isObject, isPlainFunction } from "../base/objects.ts";
import type { DType } from "../../../bindings/dtypes.ts";
import { callOperator } from "../engine/dispatch.ts";
import { Complex, Float } from "../base/values.ts";
import type { Element } from "../tensor/elements.ts";
import { Tensor } from "../tensor/tensor.ts";
import { treeFlatten } from "./pytree.ts";

/** A difference. */
export interface Difference {
  /** The leaf where it is, counted from the left; `undefined` where the containers differ. */
  readonly leaf: number | undefined;
  readonly text: string;
}

/** The tolerances of `torch.testing.assert_close`; other dtypes must be the same. */
const TOLERANCES: Partial<Record<DType, readonly [relative: number, absolute: number]>> = {
  float16: [1e-3, 1e-5],
  bfloat16: [1.6e-2, 1e-5],
  float32: [1.3e-6, 1e-5],
  float64: [1e-7, 1e-7],
  complex32: [1e-3, 1e-5],
  complex64: [1.3e-6, 1e-5],
  complex128: [1e-7, 1e-7],
};

/** The first difference between two results: in structure, dtype, shape or, unless they are left out, numbers. */
export function differenceOf(
  expected: unknown,
  found: unknown,
  { numbers = true }: { readonly numbers?: boolean } = {},
): Difference | undefined {
  const [wanted, spec] = treeFlatten(expected);
  const [got, other] = treeFlatten(found);
  if (!spec.equals(other)) return { leaf: undefined, text: `it gives ${other} instead of ${spec}` };
  for (const [leaf, value] of wanted.entries()) {
    const text = leafDifference(value, got[leaf], numbers);
    if (text !== undefined) return { leaf, text: wanted.length === 1 ? text : `output ${leaf}: ${text}` };
  }
  return undefined;
}

function leafDifference(expected: unknown, found: unknown, numbers: boolean): string | undefined {
  if (!numbers && isNumber(expected) && isNumber(found)) return undefined;
  if (!(expected instanceof Tensor) || !(found instanceof Tensor)) {
    const isSame =
      isNumber(expected) && isNumber(found)
        ? isClose(valueOf(expected), valueOf(found), "float64")
        : equal(expected, found);
    return isSame ? undefined : `it gives ${kindOf(found)} instead of ${kindOf(expected)}`;
  }
  const [wanted, got] = [describe(expected), describe(found)];
  if (wanted !== got) return `it gives a tensor of ${got} instead of ${wanted}`;
  // Most are the very same, which is found out without a list of all elements.
  if (!numbers || callOperator("aten.equal", [expected, found]) === true) return undefined;
  const [a, b] = [elementsOf(expected), elementsOf(found)];
  const at = a.findIndex((it, index) => !isCloseElement(it, b[index] as Element, expected.dtype));
  if (at < 0) return undefined;
  const count = a.filter((it, index) => !isCloseElement(it, b[index] as Element, expected.dtype)).length;
  return `${count} of ${a.length} elements differ, first element ${at}: ${spelled(b[at])} instead of ${spelled(a[at])}`;
}

function describe(tensor: Tensor): string {
  return `${tensor.dtype} [${tensor.shape.join(", ")}]`;
}

function elementsOf(tensor: Tensor): Element[] {
  const all: unknown = tensor.toArray();
  return Array.isArray(all) ? (all.flat(Number.POSITIVE_INFINITY) as Element[]) : [all as Element];
}

function isCloseElement(a: Element, b: Element, dtype: DType): boolean {
  if (a instanceof Complex && b instanceof Complex) return isClose(a.re, b.re, dtype) && isClose(a.im, b.im, dtype);
  return typeof a === "number" && typeof b === "number" ? isClose(a, b, dtype) : a === b;
}

function isClose(a: number, b: number, dtype: DType): boolean {
  if (a === b || (Number.isNaN(a) && Number.isNaN(b))) return true;
  if (!Number.isFinite(a) || !Number.isFinite(b)) return false;
  const [relative, absolute] = TOLERANCES[dtype] ?? [0, 0];
  return Math.abs(a - b) <= absolute + relative * Math.abs(a);
}

function isNumber(value: unknown): value is number | Float {
  return typeof value === "number" || value instanceof Float;
}

function valueOf(value: number | Float): number {
  return typeof value === "number" ? value : value.value;
}

/** Whether two leaves that are no tensors are the same; of functions and objects, all that can be said is that they are. */
function equal(a: unknown, b: unknown): boolean {
  return a === b || (a ?? null) === (b ?? null) || (isOpaque(a) && isOpaque(b) && `${kindOf(a)}` === kindOf(b));
}

function isOpaque(value: unknown): boolean {
  return isObject(value);
}

function kindOf(value: unknown): string {
  if (value instanceof Tensor) return `a tensor of ${describe(value)}`;
  if (isObject(value)) return `an object of class ${value.constructor.name}`;
  return isPlainFunction(value) ? "a function" : spelled(value);
}

function spelled(value: unknown): string {
  if (value instanceof Complex) return `${value.re} + ${value.im}j`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
