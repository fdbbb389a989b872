/**
 * Tensors without data, which the fake implementations of operators are called with: PyTorch's `FakeTensor`.
 *
 * @module
 */
import { METHODS, SELF_POSITIONS } from "../../../bindings/methods.ts";
import { callOperator, inferring } from "../engine/dispatch.ts";
import { camelCase, splitArguments } from "../base/naming.ts";
import { type SymInt, TensorMeta } from "../graph/val.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import { Tensor } from "../tensor/tensor.ts";

/**
 * What is known of a tensor without its data, with the methods of a tensor: these say what is known of their results. Sizes
 * may be symbols.
 */
export class FakeTensor extends TensorMeta {
  /** The sizes. */
  get shape(): readonly SymInt[] {
    return this.sizes;
  }

  /** The number of dimensions. */
  get ndim(): number {
    return this.sizes.length;
  }

  /** The number of dimensions. */
  dim(): number {
    return this.sizes.length;
  }

  /** All sizes, or that of one dimension, which counts from the end where it is negative. */
  size(): readonly SymInt[];
  size(dim: number): SymInt | undefined;
  size(dim?: number): readonly SymInt[] | SymInt | undefined {
    return dim === undefined ? this.sizes : this.sizes.at(dim);
  }

  /** The strides in elements, or that of one dimension. */
  stride(): readonly SymInt[];
  stride(dim: number): SymInt | undefined;
  stride(dim?: number): readonly SymInt[] | SymInt | undefined {
    return dim === undefined ? this.strides : this.strides.at(dim);
  }
}

/** Puts the operators that are methods of tensors on those without data. */
export function installFakeMethods(): void {
  for (const name of METHODS) {
    const spelling = camelCase(name);
    if (Object.hasOwn(FakeTensor.prototype, spelling)) continue;
    const at = SELF_POSITIONS[name] ?? 0;
    const value = function (this: FakeTensor, ...given: unknown[]): unknown {
      const { args, kwargs } = splitArguments(given);
      return callOperator(`aten.${name}`, args.toSpliced(at, 0, this), kwargs);
    };
    Object.defineProperty(FakeTensor.prototype, spelling, { value, configurable: true, writable: true });
  }
}

/** Calls a fake implementation: operators that it calls with tensors without data say what is known of their results. */
export function underFakes<T>(body: () => T): T {
  return inferring(asFake, body);
}

/** A value with tensors without data that have the methods of tensors. */
export function asFake(value: unknown): unknown {
  if (value instanceof TensorMeta) return value instanceof FakeTensor ? value : new FakeTensor(value);
  return Array.isArray(value) ? value.map(asFake) : value;
}

/** A result of a fake implementation: of a tensor that it made with data, only what it is counts. */
export function withoutData(value: unknown): unknown {
  if (value instanceof Tensor) return tensorVal(value);
  return Array.isArray(value) ? value.map(withoutData) : value;
}
