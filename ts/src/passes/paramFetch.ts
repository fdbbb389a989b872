/**
 * What a backend needs to know of modules: `torch.fx.passes.param_fetch`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { builtinNameOf } from "../nn/builtin.ts";
import { Module } from "../nn/module.ts";
import { checkGraphModule } from "../rewrite/checks.ts";

/** What a module has for a backend, by PyTorch's names, and `name`, its type. */
export type LoweringAttrs = Readonly<Record<string, unknown>>;

const BOOK: Readonly<Record<string, readonly string[]>> = {
  Linear: ["weight", "bias"],
  Conv2d: ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"],
  BatchNorm2d: ["weight", "bias", "running_mean", "running_var", "eps"],
  AdaptiveAvgPool2d: [],
  MaxPool2d: ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
  ReLU: ["inplace"],
};

/**
 * What a backend needs to know of a module of `torch.nn`: `extract_attrs_for_lowering`.
 *
 * @example
 * ```ts
 * extractAttrsForLowering(new nn.Conv2d(3, 8, 3)).stride; // [1, 1]
 * ```
 */
export function extractAttrsForLowering(module: Module): LoweringAttrs {
  if (!(module instanceof Module)) {
    throw fxError("InvalidArgument", "extractAttrsForLowering takes a module", {
      help: `the modules that it knows are ${Object.keys(BOOK).join(", ")}`,
    });
  }
  const name = builtinNameOf(module.constructor);
  const fields = name === undefined ? undefined : BOOK[name];
  if (name === undefined || fields === undefined) {
    throw fxError("NotImplemented", `${module.className} is not in the module_fetch_book yet`, {
      help: `the modules in it are ${Object.keys(BOOK).join(", ")}`,
    });
  }
  const properties = module as unknown as Readonly<Record<string, unknown>>;
  const named = fields.map((field) => [field, properties[field in module ? field : camelCase(field)] ?? null] as const);
  return { name: `torch.nn.${name}`, ...Object.fromEntries(named) };
}

/**
 * Notes about each call of a leaf module what a backend needs to know of it, as `meta.attrs_for_lowering`:
 * `lift_lowering_attrs_to_nodes`.
 *
 * @example
 * ```ts
 * liftLoweringAttrsToNodes(gm);
 * ```
 */
export function liftLoweringAttrsToNodes(gm: GraphModule): void {
  checkGraphModule("liftLoweringAttrsToNodes", gm);
  for (const node of gm.graph.findNodes({ op: "call_module" })) {
    const called = gm.getSubmodule(node.target);
    if (called instanceof GraphModule) liftLoweringAttrsToNodes(called);
    else node.meta.set("attrs_for_lowering", extractAttrsForLowering(called));
  }
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
