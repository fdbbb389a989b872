/**
 * Calls of a module with other parameters than its own: `torch.func.functional_call`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { Tensor } from "../tensor/tensor.ts";
import { pass } from "../record/stack.ts";
import { entriesOf } from "./container.ts";
import { type Attribute, Module } from "./module.ts";
import { holderOf } from "../graph/attribute.ts";
import { checkGiven, checkList, checkOptions } from "../base/given.ts";

/** How {@link functionalCall} takes the tensors. */
export interface FunctionalCallOptions {
  /** Whether a tensor also takes the place of those that are the same one in the module; `true` by default. */
  readonly tieWeights?: boolean;
  /** Whether all parameters and buffers must be given, and nothing else; `false` by default. */
  readonly strict?: boolean;
}

/**
 * Calls a module as if these tensors were its parameters and buffers. The module is as before afterwards.
 *
 * @example
 * ```ts
 * functionalCall(model, { "linear.weight": torch.zeros([3, 4]) }, [x]);
 * ```
 */
export function functionalCall(
  module: Module,
  tensors: ReadonlyMap<string, Tensor> | Readonly<Record<string, Tensor>>,
  args: readonly unknown[],
  options: FunctionalCallOptions = {},
): unknown {
  checkOptions("functionalCall", options, ["tieWeights", "strict"]);
  const { tieWeights = true, strict = false } = options;
  pass(functionalCall);
  checkGiven("functionalCall", module instanceof Module, "a module");
  checkGiven(
    "functionalCall",
    typeof tensors === "object" && tensors !== null,
    "a Map or an object of tensors by path",
  );
  checkList("functionalCall", "args", args);
  const given = new Map(entriesOf(tensors));
  const own = new Map([
    ...module.namedParameters({ removeDuplicate: false }),
    ...module.namedBuffers({ removeDuplicate: false }),
  ]);
  const unexpected = [...given.keys()].filter((path) => !own.has(path));
  const replaced = new Map<string, Tensor>(given);
  if (tieWeights) for (const [path, tensor] of given) tie(own, path, tensor, replaced);
  const missing = strict ? [...own.keys()].filter((path) => !replaced.has(path)) : [];
  if (unexpected.length > 0 || missing.length > 0) throw mismatch(module, unexpected, missing);
  const before: [Module, string, Attribute][] = [];
  try {
    for (const [path, tensor] of replaced) {
      const [holder, name] = holderOf(module, path) as [Module, string];
      const attribute = holder.attributes.get(name) as Attribute & { readonly tensor: Tensor };
      if (!(tensor instanceof Tensor)) throw fxError("InputType", `the value of \`${path}\` is not a tensor`);
      before.push([holder, name, attribute]);
      holder.attributes.set(name, { ...attribute, tensor } as Attribute);
    }
    return module.call(...args);
  } finally {
    for (const [holder, name, attribute] of before) holder.attributes.set(name, attribute);
  }
}

/** Takes the tensor for every path under which the module has what it has under `path`. */
function tie(own: ReadonlyMap<string, Tensor>, path: string, tensor: Tensor, replaced: Map<string, Tensor>): void {
  const tied = own.get(path);
  for (const [other, it] of own) {
    if (tied === undefined || it !== tied || other === path) continue;
    if ((replaced.get(other) ?? tensor) !== tensor) {
      throw fxError("StateMismatch", `\`${path}\` and \`${other}\` are one tensor in the module, and two were given`, {
        help: "give one of them, or { tieWeights: false }",
      });
    }
    replaced.set(other, tensor);
  }
}

function mismatch(module: Module, unexpected: readonly string[], missing: readonly string[]) {
  const problems: string[] = [];
  if (missing.length > 0) problems.push(`Missing key(s): ${quoted(missing)}.`);
  if (unexpected.length > 0) problems.push(`Unexpected key(s): ${quoted(unexpected)}.`);
  return fxError("StateMismatch", `Error(s) in calling ${module.className}:\n\t${problems.join("\n\t")}`);
}

function quoted(paths: readonly string[]): string {
  return paths.map((path) => `"${path}"`).join(", ");
}
