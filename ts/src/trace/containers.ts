/**
 * The classes whose instances are containers, which `registerPytreeNode` was told of.
 *
 * They stand apart from {@link PytreeSpec} and what flattens values, so that a program is called without those.
 *
 * @module
 */

/** How the instances of a class are flattened and made again. */
export interface PytreeNodeType<T> {
  /** The parts, and what else it takes to make the container again: anything that `JSON.stringify` tells apart. */
  flatten(container: T): readonly [children: readonly unknown[], context: unknown];
  /** The container of these parts. */
  unflatten(children: readonly unknown[], context: unknown): T;
  /** What the parts are called, which the inputs of an exported program are named after; their places without it. */
  names?(context: unknown): readonly string[];
}

/** A class whose instances are containers. */
export interface Container extends PytreeNodeType<unknown> {
  readonly name: string;
}

const byPrototype = new Map<object, Container>();
const byName = new Map<string, Container>();

/** Makes the objects with this prototype containers. */
export function addContainer(prototype: object, container: Container): void {
  byPrototype.set(prototype, container);
  byName.set(container.name, container);
}

/** The class of the objects with this prototype. */
export function containerOf(prototype: object): Container | undefined {
  return byPrototype.get(prototype);
}

/** The class that is registered under a name, for programs, which have the names of types. */
export function containerNamed(name: string | undefined): Container | undefined {
  return name === undefined ? undefined : byName.get(name);
}

/** The name that the class of a container is registered under. */
export function containerName(value: unknown): string | undefined {
  return typeof value === "object" && value !== null
    ? containerOf(Object.getPrototypeOf(value) as object)?.name
    : undefined;
}
