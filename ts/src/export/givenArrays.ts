/**
 * Arrays in the place of tensors: where a signature says that a tensor stands, an array of numbers can be nothing else.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import { SymExpr, TensorMeta } from "../graph/val.ts";
import { holdsBits, type TensorInput, tensorOf } from "../tensor/construct.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { treeFlatten, treeMap } from "../trace/pytree.ts";

/** A typed array, or nested arrays of numbers. */
export type GivenArray = ArrayBufferView | readonly TensorInput[];

/** Whether a leaf of the inputs is an array. */
export function isGivenArray(value: unknown): value is GivenArray {
  return Array.isArray(value) || ArrayBuffer.isView(value);
}

/**
 * The tensor that an array stands for, as an input of which this is known: nested arrays have its dtype where it holds
 * their elements, and a typed array, whose dtype is its own, has its sizes. What does not fit is made as it is given, and
 * refused by the program as any other tensor.
 */
export function givenTensor(array: GivenArray, known: unknown, place: string): Tensor {
  if (!(known instanceof TensorMeta)) return tensorOf(array as TensorInput);
  if (!Array.isArray(array)) {
    const view = array as ArrayBufferView;
    const { dtype } = tensorOf(view as TensorInput);
    const options = holdsBits(dtype, known.dtype) ? { dtype: known.dtype } : {};
    const { length } = view as unknown as ArrayLike<number>;
    return tensorOf(view as TensorInput, { ...options, shape: sizesOf(length, known.sizes, place) });
  }
  const plain = tensorOf(array as TensorInput);
  const holds = plain.numel() === 0 || HOLDS[DTYPES[plain.dtype].kind].includes(DTYPES[known.dtype].kind);
  return holds && plain.dtype !== known.dtype ? tensorOf(array as TensorInput, { dtype: known.dtype }) : plain;
}

/** The inputs with a tensor for each typed array. Nested arrays are lists of numbers there, as they are in PyTorch. */
export function withTensors<T>(inputs: T): T {
  if (!treeFlatten(inputs)[0].some((it) => ArrayBuffer.isView(it))) return inputs;
  return treeMap((it) => (ArrayBuffer.isView(it) ? tensorOf(it as TensorInput) : it), inputs) as T;
}

type Kind = (typeof DTYPES)[DType]["kind"];

/** The kinds of dtypes that hold what each kind does. */
const HOLDS: Readonly<Record<Kind, readonly Kind[]>> = {
  bool: ["bool"],
  int: ["int", "float", "complex"],
  float: ["float", "complex"],
  complex: ["complex"],
};

/** The sizes that so many elements have, of which at most one is open. */
function sizesOf(length: number, sizes: TensorMeta["sizes"], place: string): number[] {
  const isOpen = (size: (typeof sizes)[number]): boolean => size instanceof SymExpr;
  const nOpen = sizes.filter(isOpen).length;
  if (sizes.length === 1 && nOpen === 1) return [length];
  if (nOpen > 1) {
    throw fxError(
      "InputShape",
      `${place} is a typed array, and more than one of its sizes [${sizes.join(", ")}] is open`,
      {
        help: "give a tensor: tensor(array, { shape: [...] })",
      },
    );
  }
  const others = sizes.reduce<number>((product, size) => (isOpen(size) ? product : product * Number(size)), 1);
  const fits = nOpen === 0 ? length === others : others > 0 && length % others === 0;
  if (!fits) {
    throw fxError("InputShape", `${place} has ${length} elements, which do not make the shape [${sizes.join(", ")}]`, {
      help: "give as many elements as the sizes say, or a tensor with sizes of its own",
    });
  }
  return sizes.map((size) => (isOpen(size) ? length / others : Number(size)));
}
