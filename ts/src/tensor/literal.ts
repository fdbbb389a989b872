/**
 * Who sees that a tensor is made of numbers in the source: a tracer that works with values, since such a tensor is a constant
 * of its graph.
 *
 * @module
 */
import type { Tensor } from "./tensor.ts";

/** What a tensor of the user's numbers is made into; one that an index is made of is not detached. */
export type LiteralObserver = (made: Tensor, isDetached: boolean) => Tensor;

let observer: LiteralObserver | undefined;

/** Runs `body` while `next` sees what is made. */
export function observeLiterals<T>(next: LiteralObserver | undefined, body: () => T): T {
  const outer = observer;
  observer = next;
  try {
    return body();
  } finally {
    observer = outer;
  }
}

/** What the user gets for a tensor that was made of numbers. */
export function literal(made: Tensor, { isDetached = true }: { readonly isDetached?: boolean } = {}): Tensor {
  return observer === undefined ? made : observer(made, isDetached);
}
