/**
 * Masks of attention, and the shapes that go together.
 *
 * @module
 */
import { isSame, textOf } from "../../base/sizes.ts";
import type { DType } from "../../../../bindings/dtypes.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, atenWith, isFloat, refuse, shapeIs, tupleText } from "./aten.ts";

/**
 * A mask as numbers to be added, of the dtype `target`: `true` becomes minus infinity. A mask of floats stays.
 *
 * @example
 * ```ts
 * canonicalMask(tensor([false, true]), "key_padding_mask", "float32"); // [0, -inf]
 * ```
 */
export function canonicalMask(mask: Tensor | null, name: string, target: DType): Tensor | null {
  if (mask === null || isFloat(mask)) return mask;
  if (mask.dtype !== "bool") {
    throw refuse(
      "DTypeMismatch",
      `only bool and floating types of ${name} are supported`,
      `${name} is ${mask.dtype}: compare it, torch.ne(mask, 0)`,
    );
  }
  return aten("masked_fill", atenWith({ dtype: target }, "zeros_like", mask), mask, Number.NEGATIVE_INFINITY);
}

/** Checks that query, key, value and masks have dimensions that go together; gives whether there is a batch. */
export function checkShapes(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  keyPaddingMask: Tensor | null,
  attnMask: Tensor | null,
  numHeads: number,
): boolean {
  const dims = query.shape.length;
  if (dims !== 2 && dims !== 3) {
    throw refuse(
      "ShapeMismatch",
      `query should be unbatched 2D or batched 3D tensor but received ${dims}-D query tensor`,
    );
  }
  const kind = dims === 3 ? "batched (3-D)" : "unbatched (2-D)";
  if (key.shape.length !== dims || value.shape.length !== dims) {
    throw refuse(
      "ShapeMismatch",
      `For ${kind} \`query\`, expected \`key\` and \`value\` to be ${dims}-D but found ${key.shape.length}-D and ${value.shape.length}-D tensors respectively`,
    );
  }
  if (keyPaddingMask !== null && keyPaddingMask.shape.length !== dims - 1) {
    throw refuse(
      "ShapeMismatch",
      `For ${kind} \`query\`, expected \`key_padding_mask\` to be \`None\` or ${dims - 1}-D but found ${keyPaddingMask.shape.length}-D tensor instead`,
    );
  }
  if (attnMask === null) return dims === 3;
  if (attnMask.shape.length !== 2 && attnMask.shape.length !== 3) {
    throw refuse(
      "ShapeMismatch",
      `For ${kind} \`query\`, expected \`attn_mask\` to be \`None\`, 2-D or 3-D but found ${attnMask.shape.length}-D tensor instead`,
    );
  }
  const wanted = [numHeads, query.shape[0] as number, key.shape[0] as number];
  if (dims === 2 && attnMask.shape.length === 3 && !shapeIs(attnMask, wanted)) {
    const reason = `Expected \`attn_mask\` shape to be ${tupleText(wanted)} but got ${tupleText(attnMask.shape)}`;
    throw refuse("ShapeMismatch", reason);
  }
  return dims === 3;
}

/** Checks that a mask of keys has one number for each key of each element of the batch. */
export function checkKeyPaddingMask(mask: Tensor, sources: number, batch: number): void {
  for (const [dim, wanted] of [batch, sources].entries()) {
    if (isSame(mask.shape[dim], wanted)) continue;
    const [expected, got] = [textOf(wanted), textOf(mask.shape[dim])];
    throw refuse("ShapeMismatch", `Expected key_padded_mask.shape[${dim}] to be ${expected}, but got ${got}`);
  }
}
