/**
 * The state of a module by dotted path: `state_dict` and `load_state_dict`.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../base/errors.ts";
import { Tensor } from "../tensor/tensor.ts";
import { onEngine } from "./deferred.ts";
import type { Attribute, Module } from "./module.ts";
import { Parameter } from "./parameter.ts";
import { checkOptions } from "../base/given.ts";

/** Tensors by dotted path. */
export type StateSource = ReadonlyMap<unknown, unknown> | Readonly<Record<string, unknown>>;

/** How a state dict is loaded. */
export interface LoadStateOptions {
  /** Whether every name must be there, and no other; `true` by default. */
  readonly strict?: boolean;
  /** Whether the module takes the tensors themselves, with their dtypes, and copies nothing; `false` by default. */
  readonly assign?: boolean;
}

/** What {@link Module.loadStateDict} found. */
export interface LoadResult {
  /** The names that the module has and the state dict has not. */
  readonly missingKeys: readonly string[];
  /** The names that the state dict has and the module has not. */
  readonly unexpectedKeys: readonly string[];
}

type Held = Attribute & { readonly tensor: Tensor };

/** A tensor of the state dict and its place in the module. */
interface Place {
  readonly module: Module;
  readonly name: string;
  readonly held: Held;
  readonly value: Tensor;
}

/** The tensors of a module that belong to its state, and those of its sub-modules. */
export function stateOf(module: Module, prefix: string, state: Map<string, Tensor> = new Map()): Map<string, Tensor> {
  for (const [name, { tensor }] of ownState(module)) state.set(prefix + name, tensor);
  for (const [name, it] of module.attributes) {
    if (it.kind === "module") stateOf(it.module, `${prefix}${name}.`, state);
  }
  return state;
}

/** Copies a state into a module; all or nothing. */
export function loadState(module: Module, source: StateSource, options: LoadStateOptions): LoadResult {
  checkOptions("loadStateDict", options, ["strict", "assign"]);
  const { strict = true, assign = false } = options;
  if (typeof source !== "object" || source === null || source instanceof Tensor) {
    throw fxError("InputType", `Expected state_dict to be dict-like, got ${typeof source}.`, {
      help: "give a Map or an object of tensors by name, such as readSafetensors(bytes).tensors",
    });
  }
  const entries: [unknown, unknown][] = source instanceof Map ? [...source] : Object.entries(source);
  const state = new Map(entries.map(([name, value]) => [String(name), value]));
  const places: Place[] = [];
  const problems: string[] = [];
  const missingKeys: string[] = [];
  const expected = new Set<string>();
  const visit = (holder: Module, prefix: string): void => {
    problems.push(...holder.prepareState(state, prefix));
    for (const [name, held] of ownState(holder)) {
      const key = prefix + name;
      expected.add(key);
      const value = state.get(key);
      if (!state.has(key)) missingKeys.push(key);
      else if (!(value instanceof Tensor)) problems.push(notTensor(key, value));
      else {
        const fitting = fitted(value, held.tensor);
        if (fitting === undefined) problems.push(sizeMismatch(key, value, held.tensor));
        else places.push({ module: holder, name, held, value: fitting });
      }
    }
    for (const [name, it] of holder.attributes) if (it.kind === "module") visit(it.module, `${prefix}${name}.`);
  };
  visit(module, "");
  const unexpectedKeys = [...state.keys()].filter((key) => !expected.has(key));
  if (strict) {
    if (unexpectedKeys.length > 0) problems.unshift(`Unexpected key(s) in state_dict: ${quoted(unexpectedKeys)}. `);
    if (missingKeys.length > 0) problems.unshift(`Missing key(s) in state_dict: ${quoted(missingKeys)}. `);
  }
  if (problems.length > 0) {
    const reason = `Error(s) in loading state_dict for ${module.className}:\n\t${problems.join("\n\t")}`;
    throw fxError("StateMismatch", reason, {
      help: "nothing was loaded; { strict: false } takes what fits by name, and sizes must fit always",
    });
  }
  for (const place of places) put(place, assign);
  return { missingKeys, unexpectedKeys };
}

/** The parameters of a module itself, and then its persistent buffers. */
function ownState(module: Module): [string, Held][] {
  const all = [...module.attributes];
  const parameters = all.filter((it): it is [string, Held] => it[1].kind === "parameter");
  const buffers = all.filter((it): it is [string, Held] => it[1].kind === "buffer" && it[1].persistent !== false);
  return [...parameters, ...buffers];
}

function put({ module, name, held, value }: Place, assign: boolean): void {
  if (!assign) {
    const { tensor } = held;
    onEngine(() => callOperator("aten.copy_", [tensor, value]));
    return;
  }
  if (held.kind !== "parameter") {
    module.attributes.set(name, { ...held, tensor: value } as Attribute);
    return;
  }
  const { requiresGrad } = held.tensor;
  const tensor =
    value instanceof Parameter ? value.requiresGrad_(requiresGrad) : new Parameter(value, { requiresGrad });
  module.attributes.set(name, { kind: "parameter", tensor });
}

/** The tensor, where it is of the size of the one in the module; one element may stand for a number. */
function fitted(value: Tensor, held: Tensor): Tensor | undefined {
  if (value.shape.join() === held.shape.join()) return value;
  const isNumber = held.shape.length === 0 && value.shape.length === 1 && value.shape[0] === 1;
  return isNumber ? (callOperator("aten.reshape", [value, []]) as Tensor) : undefined;
}

function sizeMismatch(key: string, value: Tensor, held: Tensor): string {
  const [given, wanted] = [value, held].map((it) => `torch.Size([${it.shape.join(", ")}])`);
  return `size mismatch for ${key}: copying a param with shape ${given} from checkpoint, the shape in current model is ${wanted}.`;
}

function notTensor(key: string, value: unknown): string {
  const what = `expected torch.Tensor or Tensor-like object from checkpoint but received ${typeof value}`;
  return `While copying the parameter named "${key}", ${what}`;
}

function quoted(keys: readonly string[]): string {
  return keys.map((key) => `"${key}"`).join(", ");
}
