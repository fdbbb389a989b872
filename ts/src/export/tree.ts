/**
 * Nested inputs and outputs as flat lists and back: PyTorch's pytrees, for the containers that JavaScript has.
 *
 * Lists and deques are arrays, and tuples are what `tuple(a, b)` makes; dicts are plain objects or Maps; named tuples and dataclasses are objects with
 * their fields, or instances of the class that is registered under the name of the type. `None` is a leaf, and `null` or `undefined` in JavaScript.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { Tuple, ValueTuple } from "../base/values.ts";
import { containerName, containerNamed } from "../trace/containers.ts";
import type { TreeSpec } from "./program.ts";

/** What the containers of a program are made of. */
export interface TreeTypes {
  /** The fields of the named tuples, by the name of the type. */
  readonly namedtupleFields: ReadonlyMap<string, readonly string[]>;
  /** Whether a list is taken for a tuple, and a tuple for a list. */
  readonly areSequencesAlike?: boolean;
}

/** How many leaves a structure has. */
export function countLeaves(spec: TreeSpec): number {
  if (spec.type === undefined) return 1;
  return spec.children.reduce((sum, child) => sum + countLeaves(child), 0);
}

/**
 * The leaves of the arguments of a call: positional ones, then one trailing object with the keyword arguments where the
 * program has any.
 */
export function flattenCall(args: readonly unknown[], spec: TreeSpec, types: TreeTypes): unknown[] {
  const [positional, keyword] = spec.children;
  if (positional === undefined || keyword === undefined) {
    throw fxError("InputStructure", "the program does not say what its arguments are");
  }
  const nPositional = positional.children.length;
  const hasKeywords = keyword.children.length > 0;
  if (args.length !== nPositional + (hasKeywords ? 1 : 0)) {
    const keys = hasKeywords ? ` and an object with ${dictKeys(keyword).join(", ")}` : "";
    throw fxError("InputCount", `the program takes ${nPositional} arguments${keys}, and got ${args.length}`, {
      help: "pass them as the exported module's forward takes them",
    });
  }
  const leaves: unknown[] = [];
  positional.children.forEach((child, at) => flatten(args[at], child, types, `argument ${at}`, leaves));
  if (hasKeywords) flatten(args[nPositional], keyword, types, "the keyword arguments", leaves);
  return leaves;
}

/** The leaves of a value of this structure; as PyTorch's `tree_flatten_spec`, it takes a list for a tuple and the reverse. */
export function flattenTree(value: unknown, spec: TreeSpec, types: TreeTypes): unknown[] {
  const leaves: unknown[] = [];
  flatten(value, spec, { ...types, areSequencesAlike: true }, "the value", leaves);
  return leaves;
}

/** The nested value that these leaves are. */
export function unflatten(leaves: readonly unknown[], spec: TreeSpec, types: TreeTypes): unknown {
  let at = 0;
  const build = (part: TreeSpec): unknown => {
    if (part.type === undefined) return leaves[at++];
    const items = part.children.map(build);
    const own = containerNamed(part.type);
    if (own !== undefined) return own.unflatten(items, contextOf(part));
    if (part.type === "builtins.tuple") return ValueTuple.frozen(items);
    const keys = keysOf(part, types);
    if (keys === undefined) return items;
    if (keys.every((it) => typeof it === "string")) return objectOf(keys, items);
    return new Map(keys.map((key, position) => [key, items[position]]));
  };
  const value = build(spec);
  if (at !== leaves.length) {
    throw fxError("InputStructure", `the structure has ${at} values, and the program gives ${leaves.length}`);
  }
  return value;
}

function flatten(value: unknown, spec: TreeSpec, types: TreeTypes, place: string, leaves: unknown[]): void {
  if (spec.type === undefined) {
    leaves.push(value);
    return;
  }
  const own = containerNamed(spec.type);
  if (own !== undefined) {
    if (containerName(value) !== spec.type) throw mismatch(place, `a ${spec.type}`, value);
    const [parts, context] = own.flatten(value);
    if (JSON.stringify(context) !== JSON.stringify(contextOf(spec)) || parts.length !== spec.children.length) {
      throw mismatch(place, `a ${spec.type} of ${spec.context}`, `one of ${JSON.stringify(context ?? null)}`);
    }
    const names = own.names?.(context);
    spec.children.forEach((child, at) => flatten(parts[at], child, types, `${place}.${names?.[at] ?? at}`, leaves));
    return;
  }
  const keys = keysOf(spec, types);
  if (keys === undefined) {
    const wanted = spec.type === "builtins.tuple" ? "tuple" : "list";
    if (!Array.isArray(value)) throw mismatch(place, `a ${wanted} of ${spec.children.length}`, value);
    const found = value instanceof ValueTuple || value instanceof Tuple ? "tuple" : "list";
    if ((found !== wanted && types.areSequencesAlike !== true) || value.length !== spec.children.length) {
      throw mismatch(place, `a ${wanted} of ${spec.children.length}`, `a ${found} of ${value.length}`);
    }
    spec.children.forEach((child, at) => flatten(value[at], child, types, `${place}[${at}]`, leaves));
    return;
  }
  const entries = entriesOf(value);
  const wanted = `an object with ${keys.join(", ")}`;
  if (entries === undefined) throw mismatch(place, wanted, value);
  for (const key of entries.keys()) {
    if (!keys.includes(key)) throw mismatch(place, wanted, `one with ${String(key)}`);
  }
  spec.children.forEach((child, at) => {
    const key = keys[at];
    if (!entries.has(key)) throw mismatch(place, wanted, `one without ${String(key)}`);
    flatten(entries.get(key), child, types, `${place}.${String(key)}`, leaves);
  });
}

/** The keys of a container with names; undefined of one with positions. */
export function keysOf(spec: TreeSpec, types: TreeTypes): readonly unknown[] | undefined {
  switch (spec.type) {
    case "builtins.tuple":
    case "builtins.list":
    case "collections.deque":
      return undefined;
    case "builtins.dict":
    case "collections.OrderedDict":
    case "collections.defaultdict":
      return dictKeys(spec);
    case "collections.namedtuple":
      return types.namedtupleFields.get(contextText(spec)) ?? spec.children.map((_, at) => String(at));
    default:
      return dataclassFields(spec);
  }
}

function dictKeys(spec: TreeSpec): readonly unknown[] {
  const context = parseContext(spec);
  const keys = isRecord(context) ? context["dict_context"] : context;
  if (Array.isArray(keys) && keys.length === spec.children.length) return keys;
  throw fxError("InputStructure", `the keys of a ${spec.type} are not what its values need`);
}

/** The fields of a registered dataclass: `[[fields…], [fields that were None…]]`. */
function dataclassFields(spec: TreeSpec): readonly unknown[] {
  const context = parseContext(spec);
  const fields = Array.isArray(context) ? context[0] : undefined;
  if (Array.isArray(fields) && fields.length === spec.children.length) return fields;
  throw fxError("NotImplemented", `inputs and outputs of the type ${spec.type} are not implemented`, {
    help: "pass its parts as a tuple, a list or a dict when you export the program",
  });
}

function contextText(spec: TreeSpec): string {
  const context = parseContext(spec);
  return typeof context === "string" ? context : "";
}

/** The context of a registered container, as it was given; what is nothing was nothing. */
export function contextOf(spec: TreeSpec): unknown {
  return parseContext(spec) ?? undefined;
}

/** The context: JSON, or a string that is none, such as the name of a named tuple. */
function parseContext(spec: TreeSpec): unknown {
  const text = spec.context ?? "null";
  return text === "null" ? null : (parseJson(text) ?? text);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function entriesOf(value: unknown): ReadonlyMap<unknown, unknown> | undefined {
  if (value instanceof Map) return value;
  return isRecord(value) && !ArrayBuffer.isView(value) ? new Map(Object.entries(value)) : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object with these keys as its own, whatever they are called. */
function objectOf(keys: readonly unknown[], items: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(keys.map((key, at) => [key, items[at]]));
}

function mismatch(place: string, wanted: string, got: unknown): Error {
  const found = typeof got === "string" ? got : got === null ? "null" : Array.isArray(got) ? "a list" : typeof got;
  return fxError("InputStructure", `${place} should be ${wanted} and is ${found}`, {
    help: "pass inputs in the structure that the program was exported with: tuple(a, b) is a tuple, and [a, b] a list",
  });
}
