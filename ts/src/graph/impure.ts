/**
 * Which nodes do something besides giving a value, so that dead-code elimination keeps them: FX's `Node.is_impure`.
 *
 * The rule is FX's, told by the names of targets: PyTorch's operators that write to an argument end in `_` or have an `out`
 * overload. What FX itself takes for pure although it is not (`operator.iadd`, the method `add_`, `print`) is pure here.
 *
 * @module
 */
import {
  RANDOM_FUNCTIONS,
  RANDOM_OPERATORS,
  SIDE_EFFECT_FUNCTIONS,
  SIDE_EFFECT_OPERATORS,
} from "../../../bindings/effects.ts";
import type { Module } from "../nn/module.ts";
import type { Node } from "./node.ts";
import { targetOf, type NamedTarget } from "./target.ts";
import { showsItWrites } from "./effects.ts";

const EFFECTS = new Set(SIDE_EFFECT_FUNCTIONS);
const RANDOM = new Set(RANDOM_FUNCTIONS);

/** Operators, by namespace, name and overload, that have effects which the name does not show. */
const EFFECT_OPERATORS = new Set(SIDE_EFFECT_OPERATORS);
const DRAWING_OPERATORS = new Set(RANDOM_OPERATORS);

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
  judged.clear();
  return target;
}

/** FX's `node.is_impure()`. A called module is impure where the owner's module of that path says so. */
export function isImpureNode(node: Node, owner: Module | undefined, impureRandom: boolean): boolean {
  switch (node.op) {
    case "placeholder":
    case "output":
      return true;
    case "call_function":
      return impureRandom ? effectOf(node.target) !== "none" : effectOf(node.target) === "effect";
    case "call_module": {
      const attribute = owner?.findAttribute(node.target);
      return attribute?.kind === "module" && attribute.module.isImpure;
    }
    case "get_attr":
    case "call_method":
      return false;
  }
}

type Effect = "none" | "draw" | "effect";

/** What was found of functions; emptied before it fills the memory. */
const judged = new Map<string, Effect>();
const MAX_JUDGED = 10_000;

/** Whether a function has an effect, or draws from a random generator alone. */
function effectOf(target: string): Effect {
  let effect = judged.get(target);
  if (effect === undefined) {
    effect = isImpureFunction(target, false) ? "effect" : isImpureFunction(target, true) ? "draw" : "none";
    if (judged.size >= MAX_JUDGED) judged.clear();
    judged.set(target, effect);
  }
  return effect;
}

function isImpureFunction(target: string, impureRandom: boolean): boolean {
  if (EFFECTS.has(target)) return true;
  if (!target.startsWith("torch.ops.")) return impureRandom && RANDOM.has(target);
  const [, , namespace = "", name = "", overload] = target.split(".");
  // FX looks a packet's schema up under `default`, which operators with named overloads do not have.
  const operator = `${namespace}.${name}.${overload ?? "default"}`;
  if (EFFECT_OPERATORS.has(operator) || (impureRandom && DRAWING_OPERATORS.has(operator))) return true;
  return overload !== undefined && showsItWrites(name, overload);
}
