/**
 * Composite operators as PyTorch writes them in others, where what the engine writes them in gives the same by other operators.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { mul } from "../functions/operator.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** One of them; undefined for arguments that the engine's does. */
type Composite = (...args: never[]) => unknown;

/** Composite operators by the name of the overload. */
export const COMPOSITES: ReadonlyMap<string, Composite> = new Map<string, Composite>([
  ["aten.linear.default", linear],
  ["aten.matmul.default", matmul],
  ["aten.broadcast_tensors.default", broadcastTensors],
  ["aten.item.default", (self: Tensor) => called("_local_scalar_dense", self)],
]);

function called(name: string, ...args: readonly unknown[]): unknown {
  return callOperator(`aten.${name}`, args);
}

function linear(input: Tensor, weight: Tensor, bias: Tensor | null = null): unknown {
  if (weight.ndim !== 2) return undefined;
  const transposed = called("t", weight) as Tensor;
  if (bias === null) return called("matmul", input, transposed);
  if (input.ndim === 2) return called("addmm", bias, input, transposed);
  if (input.ndim < 3 || !input.isContiguous() || bias.ndim !== 1) {
    return called("add", called("matmul", input, transposed), bias);
  }
  const sizes = input.shape;
  const flat = called("view", input, [product(sizes.slice(0, -1)), sizes.at(-1)]);
  return called("view", called("addmm", bias, flat, transposed), [...sizes.slice(0, -1), weight.shape[0]]);
}

function matmul(self: Tensor, other: Tensor): unknown {
  if (self.ndim === 1 && other.ndim === 1) return called("dot", self, other);
  if (self.ndim === 2 && other.ndim === 1) return called("mv", self, other);
  if (self.ndim === 1 && other.ndim === 2) {
    return called("squeeze_", called("mm", called("unsqueeze", self, 0), other), 0);
  }
  if (self.ndim === 2 && other.ndim === 2) return called("mm", self, other);
  if (self.ndim >= 3 && (other.ndim === 1 || other.ndim === 2) && self.isContiguous()) {
    const sizes = self.shape;
    const folded = called("view", self, [product(sizes.slice(0, -1)), sizes.at(-1)]);
    const result = called(other.ndim === 2 ? "mm" : "mv", folded, other);
    return called("_unsafe_view", result, [...sizes.slice(0, -1), ...other.shape.slice(1)]);
  }
  if (self.ndim < 3 || other.ndim !== self.ndim) return undefined;
  const batch = self.shape.slice(0, -2);
  // Where sizes are broadcast, what comes out is not those of the first operand.
  if (batch.some((it, at) => it !== other.shape[at])) return undefined;
  const stacked = [self, other].map((it) => {
    const matrix = it.shape.slice(-2);
    return called("reshape", called("expand", it, [...batch, ...matrix]), [product(batch), ...matrix]);
  });
  return called("_unsafe_view", called("bmm", ...stacked), [...batch, self.shape.at(-2), other.shape.at(-1)]);
}

function broadcastTensors(tensors: readonly Tensor[]): unknown {
  const [first] = tensors;
  const areEqual = tensors.every(
    (it) => it.ndim === first?.ndim && it.shape.every((size, at) => size === first.shape[at]),
  );
  return areEqual ? [...tensors] : undefined;
}

/** The product of sizes, some of which may be symbolic. */
function product(sizes: readonly unknown[]): unknown {
  const [first = 1, ...others] = sizes;
  return others.reduce((res, it) => mul(res as number, it as number), first);
}
