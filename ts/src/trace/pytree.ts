/**
 * Nested containers as flat lists of leaves, and back: PyTorch's `torch.utils._pytree`.
 *
 * Containers are arrays, tuples, plain objects, Maps, and instances of the classes that {@link registerPytreeNode} was told
 * of. Everything else is a leaf, `null` and `undefined` too.
 *
 * @module
 */
import { fxError, type FxError } from "../base/errors.ts";
import { isOptions } from "../base/naming.ts";
import { Tuple, ValueTuple } from "../base/values.ts";
import { addContainer, type Container, containerNamed, containerOf, type PytreeNodeType } from "./containers.ts";
import { isTraced, recorderOf } from "../record/record.ts";
import { checkFunction, checkGiven, checkList, checkOptions } from "../base/given.ts";
import { pass } from "../record/stack.ts";

/** A kind of container. */
interface ContainerType extends Container {
  /** The keys by which parts are read of a traced container; without them it is none. */
  keys?(context: unknown, count: number): readonly (string | number)[];
  /** The same parts in the order of this context, of a container that need not be written in the same order. */
  reorder?(container: unknown, context: unknown): readonly unknown[] | undefined;
}

/** The structure of a nested container: what its leaves were taken out of. */
export class PytreeSpec {
  /** The kind of container; `undefined` for a leaf. */
  readonly type: string | undefined;
  /** What the kind needs besides the parts: the keys of an object. */
  readonly context: unknown;
  /** The structures of the parts. */
  readonly children: readonly PytreeSpec[];
  /** How many leaves there are. */
  readonly numLeaves: number;

  constructor(type: string | undefined, context: unknown, children: readonly PytreeSpec[]) {
    checkList("PytreeSpec", "children", children);
    this.type = type;
    this.context = context;
    this.children = children;
    this.numLeaves = type === undefined ? 1 : children.reduce((sum, it) => sum + it.numLeaves, 0);
  }

  /** Whether it is a leaf. */
  get isLeaf(): boolean {
    return this.type === undefined;
  }

  /** Whether another structure is the same: kinds, keys in order, and parts. */
  equals(other: PytreeSpec): boolean {
    return `${this}` === `${other}`;
  }

  /** The structure with `*` for leaves: `dict(["a"], *)`. */
  toString(): string {
    if (this.type === undefined) return "*";
    const context = this.context === undefined ? [] : [contextText(this.context)];
    return `${this.type}(${[...context, ...this.children].join(", ")})`;
  }
}

/** A context as text. The keys of a Map may be of the type bigint, for which JSON has nothing. */
function contextText(context: unknown): string {
  return JSON.stringify(context, (_, it: unknown) => (typeof it === "bigint" ? { bigint: `${it}` } : it));
}

const LEAF = new PytreeSpec(undefined, undefined, []);

/** Containers deeper than this are taken for containers that hold themselves. */
const MAX_DEPTH = 500;

const indices = (_: unknown, count: number): readonly number[] => Array.from({ length: count }, (_it, at) => at);

const LIST: ContainerType = {
  name: "list",
  flatten: (it) => [it as readonly unknown[], undefined],
  unflatten: (children) => [...children],
  keys: indices,
};

const TUPLE: ContainerType = {
  name: "tuple",
  flatten: (it) => [it as readonly unknown[], undefined],
  unflatten: (children) => ValueTuple.frozen(children),
  keys: indices,
};

const DICT: ContainerType = {
  name: "dict",
  flatten: (it) => [Object.values(it as object), Object.keys(it as object)],
  unflatten: (children, context) =>
    Object.fromEntries((context as readonly string[]).map((key, at) => [key, children[at]])),
  keys: (context) => context as readonly string[],
  reorder: (it, context) => byKeys(isOptions(it) ? new Map(Object.entries(it)) : it, context),
};

const MAP: ContainerType = {
  name: "Map",
  flatten: (it) => [[...(it as ReadonlyMap<unknown, unknown>).values()], [...(it as Map<unknown, unknown>).keys()]],
  unflatten: (children, context) =>
    new Map((context as readonly unknown[]).map((key, at) => [key, children[at]] as const)),
  keys: (context) => context as readonly string[],
  reorder: DICT.reorder as NonNullable<ContainerType["reorder"]>,
};

const builtin = new Map([LIST, TUPLE, DICT, MAP].map((it) => [it.name, it]));

/**
 * Makes the instances of a class containers, of this very class and not of its subclasses:
 * `torch.utils._pytree.register_pytree_node`.
 *
 * @example
 * ```ts
 * registerPytreeNode(Point, {
 *   flatten: ({ x, y }) => [[x, y], undefined],
 *   unflatten: ([x, y]) => new Point(x as Tensor, y as Tensor),
 * });
 * ```
 */
export function registerPytreeNode<T extends object>(
  container: abstract new (...args: never[]) => T,
  type: PytreeNodeType<T>,
  name: string = container?.name,
): void {
  checkFunction("registerPytreeNode", "container", container);
  checkGiven("registerPytreeNode", typeof type === "object" && type !== null, "an object with flatten and unflatten");
  const prototype = container.prototype as object;
  if (containerOf(prototype) !== undefined || typeNamed(name) !== undefined) {
    throw fxError("InvalidOption", `there is a container called ${name} already`, {
      help: "register a class once, and give classes of the same name another name: registerPytreeNode(C, type, name)",
    });
  }
  addContainer(prototype, { ...(type as PytreeNodeType<unknown>), name });
}

/** How a container is flattened. */
export interface TreeOptions {
  /** Whether a value is a leaf although it is a container. */
  readonly isLeaf?: (value: unknown) => boolean;
}

/**
 * The leaves of a nested container from left to right, and its structure.
 *
 * @example
 * ```ts
 * const [leaves, spec] = treeFlatten({ a: x, rest: [y, z] }); // [x, y, z]
 * treeUnflatten(leaves, spec); // { a: x, rest: [y, z] }
 * ```
 */
export function treeFlatten(tree: unknown, options: TreeOptions = {}): [leaves: unknown[], spec: PytreeSpec] {
  checkOptions("treeFlatten", options, ["isLeaf"]);
  const { isLeaf } = options;
  pass(treeFlatten);
  const leaves: unknown[] = [];
  const visit = (value: unknown, depth: number): PytreeSpec => {
    const type = isLeaf?.(value) === true ? undefined : typeOf(value);
    if (type === undefined) {
      leaves.push(value);
      return LEAF;
    }
    if (depth > MAX_DEPTH) throw tooDeep();
    const [children, context] = type.flatten(value);
    return new PytreeSpec(
      type.name,
      context,
      Array.from(children, (it) => visit(it, depth + 1)),
    );
  };
  const spec = visit(tree, 0);
  return [leaves, spec];
}

/** The nested container that these leaves are. */
export function treeUnflatten(leaves: readonly unknown[], spec: PytreeSpec): unknown {
  pass(treeUnflatten);
  checkList("treeUnflatten", "leaves", leaves);
  checkGiven("treeUnflatten", spec instanceof PytreeSpec, "a PytreeSpec", "treeFlatten(tree) gives one");
  if (leaves.length !== spec.numLeaves) {
    throw fxError("InputStructure", `the structure has ${spec.numLeaves} leaves, and there are ${leaves.length}`);
  }
  let at = 0;
  const build = ({ type, context, children }: PytreeSpec): unknown =>
    type === undefined ? leaves[at++] : registeredType(type).unflatten(children.map(build), context);
  return build(spec);
}

/** The container with each leaf replaced. */
export function treeMap(map: (leaf: unknown) => unknown, tree: unknown, options?: TreeOptions): unknown {
  pass(treeMap);
  checkFunction("treeMap", "map", map);
  const [leaves, spec] = treeFlatten(tree, options);
  return treeUnflatten(
    leaves.map((it) => map(it)),
    spec,
  );
}

/**
 * The leaves of a container that has this structure: FX's `tree_flatten_spec`. A list may come as a tuple and a dict in
 * any order of its keys. Parts of a traced value are read by their keys, which records them.
 */
export function treeFlattenSpec(tree: unknown, spec: PytreeSpec, place = "the input"): unknown[] {
  if (spec.type === undefined) return [tree];
  const parts = partsOf(tree, spec, registeredType(spec.type), place);
  return spec.children.flatMap((child, at) => treeFlattenSpec(parts[at], child, `part ${at} of ${place}`));
}

function partsOf(tree: unknown, spec: PytreeSpec, type: ContainerType, place: string): readonly unknown[] {
  const count = spec.children.length;
  if (isTraced(tree)) {
    const keys = type.keys?.(spec.context, count);
    if (keys === undefined) throw mismatch(place, spec, "a traced value");
    return keys.map((key) => recorderOf([tree])?.createProxy("call_function", "operator.getitem", [tree, key], {}));
  }
  const reordered = type.reorder?.(tree, spec.context);
  if (reordered !== undefined) return reordered;
  const found = typeOf(tree);
  const isSame = found === type || (Array.isArray(tree) && type.keys === indices);
  if (!isSame) throw mismatch(place, spec, found === undefined ? describe(tree) : `a ${found.name}`);
  const [children, context] = type.flatten(tree);
  if (children.length !== count) throw mismatch(place, spec, `one of ${children.length} parts`);
  if (contextText(context) !== contextText(spec.context)) throw mismatch(place, spec, contextText(context));
  return children;
}

/** The values of a Map by keys, where it has just these. */
function byKeys(tree: unknown, context: unknown): readonly unknown[] | undefined {
  const keys = context as readonly unknown[];
  if (!(tree instanceof Map) || tree.size !== keys.length) return undefined;
  return keys.every((it) => tree.has(it)) ? keys.map((it) => tree.get(it) as unknown) : undefined;
}

function typeOf(value: unknown): ContainerType | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (value instanceof ValueTuple || value instanceof Tuple) return TUPLE;
  if (Array.isArray(value)) return LIST;
  if (isOptions(value)) return DICT;
  if (value instanceof Map) return MAP;
  return containerOf(Object.getPrototypeOf(value) as object);
}

function typeNamed(name: string): ContainerType | undefined {
  return builtin.get(name) ?? containerNamed(name);
}

function registeredType(name: string): ContainerType {
  const type = typeNamed(name);
  if (type !== undefined) return type;
  throw fxError("InputStructure", `there is no container called ${name}`, {
    help: "register its class with registerPytreeNode before you use the structure",
  });
}

function describe(value: unknown): string {
  return value === null ? "null" : `a ${typeof value}`;
}

function mismatch(place: string, spec: PytreeSpec, found: string): FxError {
  return fxError("InputStructure", `${place} should be ${spec}, and is ${found}`, {
    help: "pass it in the structure that it was traced with",
  });
}

function tooDeep(): FxError {
  return fxError("InputStructure", `containers are nested deeper than ${MAX_DEPTH} levels`, {
    help: "check that none holds itself",
  });
}
