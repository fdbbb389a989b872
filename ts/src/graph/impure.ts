/**
 * Which nodes do something besides giving a value, so that dead-code elimination keeps them: FX's `Node.is_impure`.
 *
 * The rule is FX's, told by the names of targets: PyTorch's operators that write to an argument end in `_` or have an `out`
 * overload. What FX itself takes for pure although it is not (`operator.iadd`, the method `add_`, `print`) is pure here.
 *
 * @module
 */
import type { Module } from "../nn/module.ts";
import type { Node } from "./node.ts";
import { targetOf, type NamedTarget } from "./target.ts";

const EFFECTS = new Set([
  "operator.setitem",
  "torch._assert",
  "torch._assert_async",
  "torch._C._set_grad_enabled",
  "torch.amp._enter_autocast",
  "torch.amp._exit_autocast",
  "torch.amp.autocast_mode._enter_autocast",
  "torch.amp.autocast_mode._exit_autocast",
]);

/** Functions of the module `torch` that draw from the global random generator. */
const RANDOM_FUNCTIONS: ReadonlySet<string> = new Set(
  ["bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like"]
    .concat(["randn", "randn_like", "randperm"])
    .map((name) => `torch.${name}`),
);

/** Operators, by namespace and name without the overload, that have effects which the name does not show. */
const EFFECT_OPERATORS: ReadonlySet<string> = new Set([
  "aten._assert_async",
  "aten._assert_scalar",
  "aten._assert_tensor_metadata",
  "aten.sym_constrain_range",
  "aten.sym_constrain_range_for_size",
  "profiler._record_function_enter",
  "profiler._record_function_enter_new",
  "profiler._record_function_exit",
]);

/** Operators of `aten` that draw from a random generator. */
const RANDOM_OPERATORS: ReadonlySet<string> = new Set(
  ["alpha_dropout", "bernoulli", "binomial", "dropout", "feature_alpha_dropout", "feature_dropout", "gru", "lstm"]
    .concat(["multinomial", "native_dropout", "normal", "normal_functional", "poisson", "rand", "rand_like", "randint"])
    .concat(["randint_like", "randn", "randn_like", "random", "randperm", "rnn_relu", "rnn_tanh", "rrelu", "uniform"])
    .concat(["cauchy", "exponential", "geometric", "log_normal", "scaled_dot_product_attention", "_standard_gamma"])
    .concat(["rrelu_with_noise_functional", "_sample_dirichlet", "_scaled_dot_product_flash_attention_for_cpu"])
    .map((name) => `aten.${name}`),
);

/** Overloads that write to an argument without being called `out`. */
const OUT_OVERLOAD = /^out$|_out$|^out_/;

/**
 * Says of a function that it does something besides giving a value, so that dead-code elimination keeps its calls:
 * `torch.fx.has_side_effect`. Gives the function back.
 *
 * @example
 * ```ts
 * hasSideEffect("builtins.print");
 * ```
 */
export function hasSideEffect<T extends string | NamedTarget>(target: T): T {
  EFFECTS.add(targetOf(target));
  return target;
}

/** FX's `node.is_impure()`. A called module is impure where the owner's module of that path says so. */
export function isImpureNode(node: Node, owner: Module | undefined, impureRandom: boolean): boolean {
  switch (node.op) {
    case "placeholder":
    case "output":
      return true;
    case "call_function":
      return isImpureFunction(node.target, impureRandom);
    case "call_module": {
      const attribute = owner?.findAttribute(node.target);
      return attribute?.kind === "module" && attribute.module.isImpure;
    }
    case "get_attr":
    case "call_method":
      return false;
  }
}

function isImpureFunction(target: string, impureRandom: boolean): boolean {
  if (EFFECTS.has(target)) return true;
  if (!target.startsWith("torch.ops.")) return impureRandom && RANDOM_FUNCTIONS.has(target);
  const [, , namespace = "", name = "", overload] = target.split(".");
  const packet = `${namespace}.${name}`;
  if (EFFECT_OPERATORS.has(packet)) return true;
  // FX looks a packet's schema up under `default`, which operators with named overloads do not have.
  if (overload === undefined) return false;
  const isInPlace = name.endsWith("_") && !name.endsWith("__");
  return isInPlace || OUT_OVERLOAD.test(overload) || (impureRandom && RANDOM_OPERATORS.has(packet));
}
