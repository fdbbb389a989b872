/**
 * Values that a compiled module takes as constant, and compares in every call.
 *
 * @module
 */
import {
  Complex,
  DeviceArg,
  DTypeArg,
  EllipsisType,
  Float,
  LayoutArg,
  MemoryFormatArg,
  OpArg,
  Slice,
} from "../base/values.ts";
import type { TensorStorage } from "../tensor/storage.ts";
import { Tensor, tensorStorage } from "../tensor/tensor.ts";
import { type PytreeSpec, treeFlatten } from "../trace/pytree.ts";

/** Classes whose instances are frozen, and say all that they are in their fields. */
const VALUES = [Float, Complex, DTypeArg, DeviceArg, LayoutArg, MemoryFormatArg, EllipsisType, OpArg, Slice];

/** Whether a value stays as it is: it is no object, or one that nobody can change. */
export function isConstant(value: unknown): boolean {
  if (typeof value === "function") return false;
  return typeof value !== "object" || value === null || VALUES.some((it) => value instanceof it);
}

/** Whether two constants are one and the same to whatever computes with them. Others are the same only where they are one object. */
export function isSameConstant(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  const kind = VALUES.find((it) => a instanceof it);
  if (kind === undefined || !(b instanceof kind)) return false;
  // The bits of a complex number are a list.
  const [fields, others] = [a, b].map((it) => Object.values(it as object).flat());
  return fields?.every((it, at) => Object.is(it, others?.[at])) ?? false;
}

/** A value as it was, with what it holds: lists, objects and Maps may change while they stay the same. */
export class KnownValue {
  readonly #value: unknown;
  /** `undefined` for a value that holds nothing which could change. */
  readonly #parts:
    | {
        readonly leaves: readonly (readonly [leaf: unknown, storage: TensorStorage | undefined])[];
        readonly spec: PytreeSpec;
      }
    | undefined;

  constructor(value: unknown) {
    this.#value = value;
    if (isFixed(value)) return;
    const [leaves, spec] = treeFlatten(value);
    this.#parts = { leaves: leaves.map((it) => [it, storageOf(it)]), spec };
  }

  /** Whether this value is still the same. */
  isStill(value: unknown): boolean {
    if (this.#parts === undefined) return isSameConstant(value, this.#value);
    const { leaves, spec } = this.#parts;
    const [others, otherSpec] = treeFlatten(value);
    if (others.length !== leaves.length || !otherSpec.equals(spec)) return false;
    return leaves.every(([leaf, storage], at) => isSameConstant(others[at], leaf) && storageOf(others[at]) === storage);
  }
}

/** Whether a value and all that it holds stay as they are. */
function isFixed(value: unknown): boolean {
  return isConstant(value) || (Array.isArray(value) && Object.isFrozen(value) && value.every(isFixed));
}

function storageOf(value: unknown): TensorStorage | undefined {
  return value instanceof Tensor ? tensorStorage(value) : undefined;
}
