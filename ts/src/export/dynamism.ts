/**
 * Which sizes differ between examples: `torch.fx.experimental._dynamism`.
 *
 * @module
 */
import { checkGiven, checkList, checkText } from "../base/given.ts";
import { isOptions } from "../base/naming.ts";
import { Float } from "../base/values.ts";
import { Module } from "../nn/module.ts";
import { Tensor } from "../tensor/tensor.ts";

/** A module as nested objects: what it holds by name, its tensors under `_parameters` and its modules under `_modules`. */
export interface NestedModule {
  readonly [name: string]: unknown;
  readonly _parameters: Readonly<Record<string, Tensor>>;
  readonly _modules: Readonly<Record<string, NestedModule>>;
}

/**
 * The source of a value with attributes as items: `normalize_source_name`.
 *
 * @example
 * ```ts
 * normalizeSourceName("L['self'].linear.weight"); // "L['self']['linear']['weight']"
 * ```
 */
export function normalizeSourceName(name: string): string {
  checkText("normalizeSourceName", "the source", name);
  return name.replaceAll(/\.([a-zA-Z_]\w*)/g, "['$1']");
}

/**
 * What a module and those within it hold, as nested objects: `module_to_nested_dict`.
 *
 * @example
 * ```ts
 * moduleToNestedDict(model)._modules["linear"]?._parameters["weight"];
 * ```
 */
export function moduleToNestedDict(module: Module): NestedModule {
  checkGiven("moduleToNestedDict", (module as unknown) instanceof Module, "a module");
  const own = new Map<string, unknown>();
  for (const [name, it] of Object.entries(module))
    if (typeof it === "number" || it instanceof Tensor) own.set(name, it);
  const parameters: Record<string, Tensor> = {};
  const modules: Record<string, NestedModule> = {};
  for (const [name, attribute] of module.attributes) {
    if (attribute.kind === "module") modules[name] = moduleToNestedDict(attribute.module);
    else {
      parameters[name] = attribute.tensor;
      own.set(name, attribute.tensor);
    }
  }
  const named = [...own].filter(([name]) => !name.startsWith("_")).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return { _parameters: parameters, _modules: modules, ...Object.fromEntries(named) };
}

/**
 * For each value of several calls, by its source, which of its sizes differ between them; of numbers, whether they do:
 * `track_dynamism_across_examples`. A call is an object of its arguments by name, with the module under `self`.
 *
 * @example
 * ```ts
 * trackDynamismAcrossExamples([{ x: torch.ones([2, 3]) }, { x: torch.ones([4, 3]) }]); // { x: { "L['x']": [true, false] } }
 * ```
 */
export function trackDynamismAcrossExamples(
  examples: readonly Readonly<Record<string, unknown>>[],
): Record<string, Record<string, boolean[]>> {
  checkList("trackDynamismAcrossExamples", "the examples", examples);
  const seen = new Map<string, { readonly root: string; readonly sizes: Set<number>[] }>();
  const visit = (root: string, source: string, value: unknown): void => {
    const sizes = sizesOf(value);
    if (sizes === undefined) {
      for (const [key, item] of itemsOf(value)) visit(root, `${source}[${key}]`, item);
      return;
    }
    const known = seen.get(source) ?? { root, sizes: [] };
    seen.set(source, known);
    for (const [at, size] of sizes.entries()) (known.sizes[at] ??= new Set()).add(size);
  };
  for (const example of examples) {
    checkGiven("trackDynamismAcrossExamples", isOptions(example), "objects of arguments by name");
    for (const [name, value] of Object.entries(example)) {
      visit(name, `L['${name}']`, value instanceof Module ? moduleToNestedDict(value) : value);
    }
  }
  const res: Record<string, Record<string, boolean[]>> = {};
  for (const [source, { root, sizes }] of seen) {
    res[root] ??= {};
    res[root][source] = sizes.map((it) => it.size > 1);
  }
  return res;
}

function sizesOf(value: unknown): readonly number[] | undefined {
  if (value instanceof Tensor) return value.shape;
  if (value instanceof Float) return [value.value];
  return typeof value === "number" ? [value] : undefined;
}

function itemsOf(value: unknown): Iterable<readonly [key: string, item: unknown]> {
  if (Array.isArray(value)) return (value as unknown[]).map((it, at) => [String(at), it] as const);
  const entries =
    value instanceof Map ? [...(value as Map<unknown, unknown>)] : isOptions(value) ? Object.entries(value) : [];
  return entries.map(([key, it]) => [`'${String(key)}'`, it] as const);
}
