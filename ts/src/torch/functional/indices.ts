/**
 * Functions that give a tensor or, where `returnIndices` is set, a tensor and the places of its elements.
 *
 * PyTorch has two functions of each kind: one that decides by `returnIndices`, and one with `_with_indices` in its name,
 * under which it records calls that ask for the places.
 *
 * @module
 */
import type { BoundFunction, CallOf, PositionalOf } from "../../functions/bound.ts";
import { tuple } from "../../graph/args.ts";
import type { NamedTarget } from "../../graph/target.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { WithIndices } from "./aten.ts";
import { define, recordNamed } from "./define.ts";

/** A function of parameters `P`, then `returnIndices`, then `Q`, which gives the places of the elements where it is set. */
export interface IndexFunction<P extends readonly unknown[], O, Q extends readonly unknown[]> extends NamedTarget {
  (...args: [...PositionalOf<P>, options: O & { readonly returnIndices: true }]): WithIndices;
  (...args: CallOf<[...P, returnIndices: true, ...Q], O>): WithIndices;
  (...args: CallOf<[...P, returnIndices?: false, ...Q], O & { readonly returnIndices?: false }>): Tensor;
  (
    ...args: CallOf<[...P, returnIndices?: boolean, ...Q], O & { readonly returnIndices?: boolean }>
  ): Tensor | WithIndices;
}

/** The two functions of a kind. */
export interface IndexFunctions<P extends readonly unknown[], O, Q extends readonly unknown[]> {
  /** Gives the places where it is asked to. */
  readonly dispatched: IndexFunction<P, O, Q>;
  /** Always gives the places. */
  readonly withIndices: BoundFunction<[...P, returnIndices?: boolean, ...Q], O, WithIndices>;
}

/**
 * Defines the two functions of a kind. `pooled` gives both results; `values` the first one alone, where there is a cheaper
 * way to it.
 */
export function defineIndexed<P extends readonly unknown[], O, Q extends readonly unknown[] = []>(
  name: string,
  signature: string,
  pooled: (...args: Required<[...P, returnIndices?: boolean, ...Q]>) => readonly Tensor[],
  values: (...args: Required<[...P, returnIndices?: boolean, ...Q]>) => Tensor = (...args) =>
    pooled(...args)[0] as Tensor,
): IndexFunctions<P, O, Q> {
  type Parameters = [...P, returnIndices?: boolean, ...Q];
  const withIndices = `${name}_with_indices`;
  const both = (...args: Required<Parameters>): WithIndices => tuple(...pooled(...args)) as unknown as WithIndices;
  const flag = signature
    .slice(1)
    .split(", ")
    .findIndex((it) => it.startsWith("return_indices"));
  const dispatched = define<Parameters, O, Tensor | WithIndices>(
    name,
    signature,
    (...args) => (args[flag] === true ? both(...args) : values(...args)),
    recordNamed((bound) => (bound["return_indices"] === true ? withIndices : name)),
  );
  return {
    dispatched: dispatched as unknown as IndexFunction<P, O, Q>,
    withIndices: define<Parameters, O, WithIndices>(withIndices, signature, both),
  };
}
