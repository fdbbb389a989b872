/**
 * Python's lists, tuples, dicts, strings and slices, as JavaScript has them here: arrays, tuples, objects and maps,
 * strings, and `slice`.
 *
 * @module
 */
import { isObject } from "../base/objects.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { List, Slice, ValueTuple } from "../base/values.ts";
import { kindOf } from "../base/members.ts";
import { isOptions } from "../base/naming.ts";
import { numberOf } from "./numbers.ts";

/** Whether this is a tuple and no list: what nobody can change, such as the shape of a tensor. */
export function isTuple(value: unknown): value is ValueTuple<unknown> {
  return Array.isArray(value) && Object.isFrozen(value) && !(value instanceof List);
}

/** Whether this is a dict: an object literal or a map. */
export function isDict(value: unknown): value is Readonly<Record<string, unknown>> | ReadonlyMap<unknown, unknown> {
  return value instanceof Map || isOptions(value);
}

/** The items in the kind of sequence that `like` is. */
export function sequenceLike(like: readonly unknown[], items: readonly unknown[]): readonly unknown[] {
  return isTuple(like) ? ValueTuple.frozen(items) : items;
}

/** The keys and values of a dict. */
export function entriesOf(
  dict: Readonly<Record<string, unknown>> | ReadonlyMap<unknown, unknown>,
): [unknown, unknown][] {
  return dict instanceof Map ? [...(dict as ReadonlyMap<unknown, unknown>)] : Object.entries(dict);
}

/** An int that is an index: `undefined` where the value is none. */
export function indexOf(value: unknown): number | undefined {
  const number = numberOf(value);
  return typeof number === "bigint" ? Number(number) : undefined;
}

/** Python's `self[key]` of a container; undefined where `self` is none. */
export function itemOf(self: unknown, key: unknown): { readonly item: unknown } | undefined {
  if (typeof self === "string") {
    // Python counts characters, not the halves of them.
    const characters = [...self];
    if (key instanceof Slice)
      return {
        item: positionsOf(key, characters.length)
          .map((at) => characters[at])
          .join(""),
      };
    return { item: characters[position(key, characters.length, "string")] };
  }
  if (Array.isArray(self)) {
    const items: readonly unknown[] = self;
    if (key instanceof Slice) {
      return {
        item: sequenceLike(
          items,
          positionsOf(key, items.length).map((at) => items[at]),
        ),
      };
    }
    return { item: items[position(key, items.length, isTuple(items) ? "tuple" : "list")] };
  }
  if (isModuleWithItems(self) && !(key instanceof Slice)) return { item: self.at(position(key, self.length, "list")) };
  if (!isDict(self)) return undefined;
  const found = entriesOf(self).find(([name]) => name === key);
  if (found === undefined) throw missingKey(key);
  return { item: found[1] };
}

/** A list of modules or of parameters, which folded graphs take items of. */
function isModuleWithItems(value: unknown): value is { readonly length: number; at(index: number): unknown } {
  if (!isObject(value) || !("attributes" in value)) return false;
  return "at" in value && typeof value.at === "function" && "length" in value && typeof value.length === "number";
}

/** Python's `self[key] = value` of a container; whether `self` is one. */
export function setItemOf(self: unknown, key: unknown, value: unknown): boolean {
  if (isTuple(self) || typeof self === "string") {
    throw fxError("InvalidArgument", `${kindOf(self)} does not support item assignment`, {
      help: "a list, which is an array here, does",
    });
  }
  if (Array.isArray(self)) {
    if (key instanceof Slice) assignSlice(self, key, value);
    else self[position(key, self.length, "list assignment")] = value;
    return true;
  }
  if (self instanceof Map) {
    self.set(key, value);
    return true;
  }
  if (!isOptions(self)) return false;
  // Defined, not assigned, so that a key called __proto__ is a key like any other.
  Object.defineProperty(self, String(key), { value, enumerable: true, writable: true, configurable: true });
  return true;
}

/** Python's `del self[key]` of a container; whether `self` is one. */
export function deleteItemOf(self: unknown, key: unknown): boolean {
  if (isTuple(self)) throw fxError("InvalidArgument", "a tuple does not support item deletion");
  if (Array.isArray(self)) {
    const dead = key instanceof Slice ? positionsOf(key, self.length) : [position(key, self.length, "list assignment")];
    for (const at of dead.toSorted((a, b) => b - a)) self.splice(at, 1);
    return true;
  }
  if (!isDict(self)) return false;
  if (!entriesOf(self).some(([name]) => name === key)) throw missingKey(key);
  return self instanceof Map ? self.delete(key) : Reflect.deleteProperty(self, String(key));
}

function assignSlice(self: unknown[], key: Slice, value: unknown): void {
  if (!Array.isArray(value)) throw fxError("InvalidArgument", "can only assign an iterable");
  const items: readonly unknown[] = value;
  const { start, stop, step } = rangeOf(key, self.length);
  if (step === 1) {
    self.splice(start, Math.max(0, stop - start), ...items);
    return;
  }
  const places = positionsOf(key, self.length);
  if (places.length !== items.length) {
    const sizes = `attempt to assign sequence of size ${items.length} to extended slice of size ${places.length}`;
    throw fxError("InvalidArgument", sizes);
  }
  for (const [at, place] of places.entries()) self[place] = items[at];
}

/** The positions that a slice of a sequence of this length has, in order. */
export function positionsOf(slice: Slice, length: number): number[] {
  const { start, stop, step } = rangeOf(slice, length);
  const count = Math.max(0, Math.ceil((stop - start) / step));
  return Array.from({ length: count }, (_, at) => start + at * step);
}

/** Python's `slice.indices(length)`. */
function rangeOf(slice: Slice, length: number): { start: number; stop: number; step: number } {
  const step = slice.step === null ? 1 : bound(slice.step);
  if (step === 0) throw fxError("InvalidArgument", "slice step cannot be zero");
  const [first, last] = step > 0 ? [0, length] : [-1, length - 1];
  const place = (part: unknown, absent: number): number => {
    if (part === null) return absent;
    const at = bound(part);
    return Math.min(Math.max(at < 0 ? at + length : at, first), last);
  };
  return { start: place(slice.start, step > 0 ? first : last), stop: place(slice.stop, step > 0 ? last : first), step };
}

function bound(part: unknown): number {
  const at = indexOf(part);
  if (at !== undefined) return at;
  throw fxError("InvalidArgument", `slice indices must be ints or None, not ${kindOf(part)}`);
}

function position(key: unknown, length: number, what: string): number {
  const at = indexOf(key);
  if (at === undefined) {
    throw fxError("InvalidArgument", `${what} indices must be ints or slices, not ${kindOf(key)}`);
  }
  if (at >= -length && at < length) return at < 0 ? at + length : at;
  throw fxError("IndexOutOfRange", `${what} index out of range`, {
    help: `the index is ${at} and the length ${length}`,
  });
}

function missingKey(key: unknown): FxError {
  return fxError("IndexOutOfRange", `the dict has no key ${JSON.stringify(key)}`);
}

/** What `torch.sym_sum` sums. */
export function summands(args: readonly unknown[]): readonly unknown[] {
  const [first] = args;
  return args.length === 1 && Array.isArray(first) ? first : args;
}
