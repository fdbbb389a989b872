/** What the cases of `tests/oracle/gen_export.py` are made of. */
import { type DynamicShapes, type nn, type Tensor, torch } from "../../src/index.ts";

/** A module with the inputs that it was exported with. */
export interface Case {
  readonly module: () => nn.Module;
  readonly args: () => unknown[];
  readonly kwargs?: () => Record<string, unknown>;
  readonly train?: boolean;
  readonly dynamicShapes?: DynamicShapes;
}

export const zeros = (...sizes: number[]): Tensor => torch.zeros(sizes);
export const ints = (...sizes: number[]): Tensor => torch.zeros(sizes, { dtype: "int64" });

export type OfOne = (x: Tensor) => unknown;
export type OfTwo = (x: Tensor, y: Tensor) => unknown;

/** A module of layers of `nn`, given tensors. */
export function layer(module: () => nn.Module, ...args: (() => unknown)[]): Case {
  return { module, args: () => args.map((it) => it()) };
}

export function modes(name: string, module: () => nn.Module, x: () => Tensor): Record<string, Case> {
  const one = { module, args: () => [x()] };
  return { [`${name}_train`]: { ...one, train: true }, [`${name}_eval`]: { ...one, train: false } };
}
