/**
 * Transforms of functions: `torch.func`.
 *
 * @module
 */
export {
  grad,
  gradAndValue,
  type GradOptions,
  hessian,
  jacfwd,
  type JacobianOptions,
  jacrev,
  jvp,
  vjp,
  type VjpOptions,
} from "./gradients.ts";
export { vmap, type VmapDims, type VmapOptions } from "./vmap.ts";
export { functionalCall, type FunctionalCallOptions } from "../nn/functionalCall.ts";
