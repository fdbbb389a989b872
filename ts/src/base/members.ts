/**
 * The members of a value that graphs may name, and what messages call a value.
 *
 * @module
 */
import { isObject } from "./objects.ts";
import { List } from "./values.ts";
import { camelCase } from "./naming.ts";

/** What leads from a value to its class, and from there to code made of strings. */
const HIDDEN: ReadonlySet<string> = new Set(
  Object.getOwnPropertyNames(Object.prototype).concat("prototype", "arguments", "caller", "callee"),
);

/** Whether graphs may name this member of a value: everything but what every object of JavaScript has. */
export function isMember(name: string): boolean {
  return !HIDDEN.has(name) && !HIDDEN.has(camelCase(name));
}

/**
 * A property of a value, by PyTorch's name or JavaScript's spelling of it. A graph is data, which may come from anywhere,
 * so what leads to the constructors of JavaScript is not there.
 */
export function memberOf(self: unknown, name: string): unknown {
  if (self === null || self === undefined || !isMember(name)) return undefined;
  const object = Object(self) as object;
  if (Reflect.has(object, name)) return Reflect.get(object, name, self);
  return Reflect.get(object, camelCase(name), self);
}

/** What a value is, for messages. */
export function kindOf(value: unknown): string {
  if (value === null) return "None";
  if (Array.isArray(value)) return Object.isFrozen(value) && !(value instanceof List) ? "a tuple" : "a list";
  if (!isObject(value)) return `a ${typeof value}`;
  const name: unknown = (value as { constructor?: { name?: unknown } }).constructor?.name;
  return typeof name === "string" && name !== "" ? `a ${name}` : "an object";
}
