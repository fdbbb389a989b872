/**
 * Attributes of modules, as values.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { isMember } from "../base/members.ts";
import type { Module } from "../nn/module.ts";

/** The module that holds what is at a dotted path, and its name there. */
export function holderOf(module: Module, path: string): [holder: Module, name: string] | undefined {
  if (module.attributes.has(path)) return [module, path];
  for (let at = path.indexOf("."); at >= 0; at = path.indexOf(".", at + 1)) {
    const child = module.attributes.get(path.slice(0, at));
    if (child?.kind !== "module") continue;
    const found = holderOf(child.module, path.slice(at + 1));
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * What a module has at a dotted path: a tensor, a module, or a plain property. It is read as code would read it, so that
 * a trace which goes on sees it.
 */
export function findAttributeValue(module: Module, path: string): unknown {
  const [holder, name] = holderOf(module, path) ?? [
    propertyHolder(module, path),
    path.slice(path.lastIndexOf(".") + 1),
  ];
  if (holder !== undefined) return Reflect.get(holder, name);
  throw fxError("AttributeMissing", `Node referenced nonexistent target ${missingPart(module, path)}`, {
    help: "add it to the module, or lint the graph with the module to find all that are missing",
  });
}

/** Whether a module has something at a dotted path. */
export function hasAttributeValue(module: Module, path: string): boolean {
  return (holderOf(module, path) ?? propertyHolder(module, path)) !== undefined;
}

/** The module in the tree that has the plain property at a dotted path, which it did not register. */
export function propertyHolder(module: Module, path: string): Module | undefined {
  const at = path.lastIndexOf(".");
  const name = path.slice(at + 1);
  const found = at < 0 ? ({ kind: "module", module } as const) : module.findAttribute(path.slice(0, at));
  if (found?.kind !== "module") return undefined;
  // What every object has leads to the constructors of JavaScript, which graphs must not reach.
  return isMember(name) && Object.hasOwn(found.module, name) ? found.module : undefined;
}

/** The path up to the first name that is not there. */
function missingPart(module: Module, path: string): string {
  const names = path.split(".");
  for (let count = 1; count < names.length; count++) {
    const part = names.slice(0, count).join(".");
    if (module.findAttribute(part) === undefined) return part;
  }
  return path;
}
