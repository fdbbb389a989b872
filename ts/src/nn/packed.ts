/**
 * Sequences of different lengths in one tensor: `torch.nn.utils.rnn`.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { tensor } from "../tensor/construct.ts";
import { Tensor } from "../tensor/tensor.ts";
import { pass } from "../record/stack.ts";
import { badInput } from "./state.ts";
import { checkGiven, checkList, checkOptions } from "../base/given.ts";

/** The elements of all sequences, step by step: what {@link packPaddedSequence} makes and recurrent layers take. */
export class PackedSequence {
  /** The elements of the first step of all sequences, then those of the second step of the sequences that have one… */
  readonly data: Tensor;
  /** How many sequences have each step. */
  readonly batchSizes: Tensor;
  /** Which sequence of the original batch stands at each place, where they were sorted. */
  readonly sortedIndices: Tensor | null;
  /** The place of each sequence of the original batch. */
  readonly unsortedIndices: Tensor | null;

  constructor(data: Tensor, batchSizes: Tensor, sortedIndices: Tensor | null = null) {
    this.data = data;
    this.batchSizes = batchSizes;
    this.sortedIndices = sortedIndices;
    this.unsortedIndices = sortedIndices === null ? null : (callOperator("aten.argsort", [sortedIndices]) as Tensor);
  }

  /** The same sequences with other elements. */
  withData(data: Tensor): PackedSequence {
    return new PackedSequence(data, this.batchSizes, this.sortedIndices);
  }
}

/** How sequences lie in a padded tensor. */
export interface PaddedOptions {
  /** Whether the batch is the first dimension and the sequence the second; `false` by default. */
  readonly batchFirst?: boolean;
}

/** How sequences are packed. */
export interface PackOptions extends PaddedOptions {
  /** Whether the sequences come longest first; otherwise they are sorted. `true` by default. */
  readonly enforceSorted?: boolean;
}

/**
 * Packs padded sequences of these lengths.
 *
 * @example
 * ```ts
 * const packed = packPaddedSequence(x, [5, 3, 2], { batchFirst: true });
 * const [output] = lstm.forward(packed);
 * const [padded, lengths] = padPackedSequence(output, { batchFirst: true });
 * ```
 */
export function packPaddedSequence(
  input: Tensor,
  lengths: Tensor | readonly number[],
  options: PackOptions = {},
): PackedSequence {
  checkGiven("packPaddedSequence", input instanceof Tensor, "a tensor of padded sequences");
  checkLengths("packPaddedSequence", lengths);
  checkOptions("packPaddedSequence", options, ["batchFirst", "enforceSorted"]);
  const { batchFirst = false, enforceSorted = true } = options;
  pass(packPaddedSequence);
  const given = lengths instanceof Tensor ? lengths : tensor(lengths, { dtype: "int64" });
  if (enforceSorted) return packed(input, given, batchFirst, null);
  const [sorted, indices] = callOperator("aten.sort", [given, -1, true]) as [Tensor, Tensor];
  const inOrder = callOperator("aten.index_select", [input, batchFirst ? 0 : 1, indices]) as Tensor;
  return packed(inOrder, sorted, batchFirst, indices);
}

/** Packs sequences. */
export function packSequence(
  sequences: readonly Tensor[],
  options: Pick<PackOptions, "enforceSorted"> = {},
): PackedSequence {
  checkSequences("packSequence", sequences);
  checkOptions("packSequence", options, ["enforceSorted"]);
  const { enforceSorted = true } = options;
  pass(packSequence);
  const lengths = sequences.map(({ shape }) => shape[0] ?? 0);
  return packPaddedSequence(padSequence(sequences), lengths, { enforceSorted });
}

/** How sequences are padded. */
export interface PadOptions extends PaddedOptions {
  /** What stands behind the end of the shorter sequences; 0.0 by default. */
  readonly paddingValue?: number;
}

/** One tensor of sequences, the shorter of which are padded. */
export function padSequence(
  sequences: readonly Tensor[],
  options: PadOptions & { readonly paddingSide?: "left" | "right" } = {},
): Tensor {
  checkSequences("padSequence", sequences);
  checkOptions("padSequence", options, ["batchFirst", "paddingValue", "paddingSide"]);
  const { batchFirst = false, paddingValue = 0, paddingSide = "right" } = options;
  pass(padSequence);
  return callOperator("aten.pad_sequence", [sequences, batchFirst, paddingValue, paddingSide]) as Tensor;
}

/** The padded sequences that {@link packPaddedSequence} packed, and their lengths. */
export function padPackedSequence(
  sequence: PackedSequence,
  options: PadOptions & { readonly totalLength?: number | null } = {},
): readonly [padded: Tensor, lengths: Tensor] {
  checkGiven("padPackedSequence", sequence instanceof PackedSequence, "a PackedSequence");
  const { data, batchSizes, unsortedIndices } = sequence;
  checkOptions("padPackedSequence", options, ["batchFirst", "paddingValue", "totalLength"]);
  const { batchFirst = false, paddingValue = 0, totalLength = null } = options;
  pass(padPackedSequence);
  const longest = batchSizes.shape[0] as number;
  if (totalLength !== null && totalLength < longest) {
    const got = `total_length=${totalLength} and max sequence length being ${longest}`;
    throw badInput(`Expected total_length to be at least the length of the longest sequence in input, but got ${got}`);
  }
  const args = [data, batchSizes, batchFirst, paddingValue, totalLength ?? longest];
  const [padded, lengths] = callOperator("aten._pad_packed_sequence", args) as [Tensor, Tensor];
  if (unsortedIndices === null) return [padded, lengths];
  return [
    callOperator("aten.index_select", [padded, batchFirst ? 0 : 1, unsortedIndices]) as Tensor,
    callOperator("aten.index_select", [lengths, 0, unsortedIndices]) as Tensor,
  ];
}

/** The sequences of a padded tensor. */
export function unpadSequence(
  padded: Tensor,
  lengths: Tensor | readonly number[],
  options: PaddedOptions = {},
): Tensor[] {
  checkGiven("unpadSequence", padded instanceof Tensor, "a tensor of padded sequences");
  checkLengths("unpadSequence", lengths);
  checkOptions("unpadSequence", options, ["batchFirst"]);
  const { batchFirst = false } = options;
  pass(unpadSequence);
  const counts = lengths instanceof Tensor ? (lengths.toArray() as readonly number[]) : lengths;
  return counts.map((length, at) => {
    const whole = callOperator("aten.select", [padded, batchFirst ? 0 : 1, at]);
    return callOperator("aten.slice", [whole, 0, 0, Number(length)]) as Tensor;
  });
}

/** The sequences of a packed one. */
export function unpackSequence(sequence: PackedSequence): Tensor[] {
  pass(unpackSequence);
  return unpadSequence(...padPackedSequence(sequence));
}

function checkSequences(what: string, sequences: readonly Tensor[]): void {
  checkList(what, "sequences", sequences);
  const areTensors = sequences.every((it) => it instanceof Tensor);
  checkGiven(what, areTensors, "a list of tensors");
}

function checkLengths(what: string, lengths: Tensor | readonly number[]): void {
  checkGiven(what, lengths instanceof Tensor || Array.isArray(lengths), "the lengths as a tensor or a list");
}

function packed(input: Tensor, lengths: Tensor, batchFirst: boolean, indices: Tensor | null): PackedSequence {
  const [data, sizes] = callOperator("aten._pack_padded_sequence", [input, lengths, batchFirst]) as [Tensor, Tensor];
  return new PackedSequence(data, sizes, indices);
}
