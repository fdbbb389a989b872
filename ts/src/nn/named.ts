/**
 * What modules hold, by dotted path.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Attribute, Module } from "./module.ts";
import { checkOptions } from "../base/given.ts";

/** How names are collected. */
export interface NamedOptions {
  /** What every path begins with. */
  readonly prefix?: string;
  /** Whether something that stands in two places is given once, under its first path. */
  readonly removeDuplicate?: boolean;
}

/** How tensors are collected. */
export interface NamedTensorOptions extends NamedOptions {
  /** Whether those of sub-modules are collected too. */
  readonly recurse?: boolean;
}

/** Modules nested deeper than this hold themselves. */
const MAX_DEPTH = 500;

/** All modules and their dotted paths, the root first, parents before children. */
export function namedModules(root: Module, options: NamedOptions): Map<string, Module> {
  checkOptions("namedModules", options, ["prefix", "removeDuplicate"]);
  const { prefix = "", removeDuplicate = true } = options;
  const res = new Map<string, Module>();
  const seen = new Set<Module>();
  const visit = (path: string, module: Module, depth: number): void => {
    if (removeDuplicate && seen.has(module)) return;
    if (depth > MAX_DEPTH) {
      throw fxError("LimitExceeded", `modules are nested deeper than ${MAX_DEPTH} levels`, {
        help: "check that no module holds itself",
      });
    }
    seen.add(module);
    res.set(path, module);
    for (const [name, attribute] of module.attributes) {
      if (attribute.kind === "module") visit(joined(path, name), attribute.module, depth + 1);
    }
  };
  visit(prefix, root, 0);
  return res;
}

/** The parameters or buffers of a module by dotted path. */
export function namedTensors(
  root: Module,
  kind: "parameter" | "buffer",
  options: NamedTensorOptions,
): Map<string, Tensor> {
  const what = kind === "parameter" ? "namedParameters" : "namedBuffers";
  checkOptions(what, options, ["prefix", "removeDuplicate", "recurse"]);
  const { prefix = "", recurse = true, removeDuplicate = true } = options;
  const res = new Map<string, Tensor>();
  const seen = new Set<Tensor>();
  const modules = recurse ? root.namedModules({ prefix, removeDuplicate }) : new Map([[prefix, root]]);
  for (const [path, module] of modules) {
    for (const [name, attribute] of module.attributes) {
      if (attribute.kind !== kind || (removeDuplicate && seen.has(attribute.tensor))) continue;
      seen.add(attribute.tensor);
      res.set(joined(path, name), attribute.tensor);
    }
  }
  return res;
}

/** PyTorch's `repr(module)`: the tree of modules. */
export function formatModule(module: Module): string {
  const extra = module.extraRepr();
  const children = Array.from(module.attributes)
    .filter((it): it is [string, Attribute & { kind: "module" }] => it[1].kind === "module")
    .map(([name, child]) => `(${name}): ${child.module.repr().replaceAll("\n", "\n  ")}`);
  const lines = [...(extra === "" ? [] : extra.split("\n")), ...children];
  if (children.length === 0 && lines.length <= 1) return `${module.className}(${extra})`;
  return `${module.className}(\n  ${lines.join("\n  ")}\n)`;
}

function joined(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
