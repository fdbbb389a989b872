/**
 * Taking and changing items, of Python's module `operator`.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../base/errors.ts";
import type { NamedTarget } from "../graph/target.ts";
import { getItem, type IndexedValue, setItem } from "./indexing.ts";
import { Tensor } from "../tensor/tensor.ts";
import { equal, truthOf } from "./richCompare.ts";
import { kindOf } from "../base/members.ts";
import { scalarOf, valueOf } from "./numbers.ts";
import { concatenated, equated } from "./binaryOps.ts";
import { deleteItemOf, entriesOf, isDict, isTuple, itemOf, setItemOf } from "./sequences.ts";
import { defineFunction } from "./table.ts";

const TWO = { signature: "(a, b, /)" };

/** `container[key]`. */
export interface GetItem extends NamedTarget {
  (tensor: Tensor, index: unknown): Tensor;
  <T>(items: readonly T[], index: number): T;
  (container: unknown, key: unknown): unknown;
}

/**
 * `container[key]`: a part of a tensor, an item of a list, a tuple or a text by its position, which is negative from the end,
 * several of them by `slice(1, 5)`, or a value of a dict by its key.
 *
 * @example
 * ```ts
 * operator.getitem(x, tuple(0, slice(1, null))); // x[0, 1:]
 * operator.getitem([10, 11, 12], -1); // 12
 * ```
 */
export const getitem = defineFunction(
  "operator.getitem",
  (container: unknown, key: unknown): unknown => {
    if (container instanceof Tensor) return getItem(container, key);
    const found = itemOf(container, key);
    if (found !== undefined) return found.item;
    throw fxError("InvalidArgument", `${kindOf(container)} has no items to take`);
  },
  TWO,
) as GetItem;

/**
 * `container[key] = value`: writes to a part of a tensor, or to an item of a list or a dict.
 *
 * @example
 * ```ts
 * operator.setitem(x, 0, 1); // x[0] = 1
 * ```
 */
export const setitem = defineFunction(
  "operator.setitem",
  (container: unknown, key: unknown, value: unknown): null => {
    if (container instanceof Tensor) setItem(container, key, value as IndexedValue);
    else if (!setItemOf(container, key, value)) {
      throw fxError("InvalidArgument", `${kindOf(container)} does not support item assignment`);
    }
    return null;
  },
  { signature: "(a, b, c, /)" },
);

/**
 * `del container[key]`.
 *
 * @example
 * ```ts
 * operator.delitem(items, 0); // del items[0]
 * ```
 */
export const delitem = defineFunction(
  "operator.delitem",
  (container: unknown, key: unknown): null => {
    if (deleteItemOf(container, key)) return null;
    throw fxError("InvalidArgument", `${kindOf(container)} does not support item deletion`);
  },
  TWO,
);

/**
 * `item in container`: among the items of a list or a tuple, the keys of a dict, the parts of a text, or the elements of a tensor.
 *
 * @example
 * ```ts
 * operator.contains([1, 2], 2); // true
 * ```
 */
export const contains = defineFunction(
  "operator.contains",
  (container: unknown, item: unknown): boolean => {
    if (container instanceof Tensor) {
      return truthOf(callOperator("aten.any", [callOperator("aten.eq", [container, item])]));
    }
    if (typeof container === "string" && typeof item === "string") return container.includes(item);
    if (Array.isArray(container)) return container.some((it) => truthOf(equated("eq", it, item)));
    if (isDict(container)) {
      if (isDict(item) || (Array.isArray(item) && !isTuple(item))) {
        throw fxError("InvalidArgument", `${kindOf(item)} cannot be a key of a dict`);
      }
      return entriesOf(container).some(([key]) => equal(key, item));
    }
    throw fxError("InvalidArgument", `${kindOf(container)} is no container`);
  },
  TWO,
);

/**
 * One text, list or tuple after the other.
 *
 * @example
 * ```ts
 * operator.concat([1], [2]); // [1, 2]
 * ```
 */
export const concat = defineFunction(
  "operator.concat",
  (left: unknown, right: unknown): unknown => {
    const res = concatenated(left, right);
    if (res !== undefined) return res;
    throw fxError("InvalidArgument", `${kindOf(left)} and ${kindOf(right)} cannot be concatenated`);
  },
  TWO,
);

/**
 * The value as an int: a tensor of one int, an int or a boolean.
 *
 * @example
 * ```ts
 * operator.index(tensor(3)); // 3
 * ```
 */
export const index = defineFunction(
  "operator.index",
  (value: unknown): number | bigint => {
    const number = scalarOf(value);
    if (typeof number === "bigint") return valueOf(number) as number | bigint;
    throw fxError("InvalidArgument", `${kindOf(value)} cannot be interpreted as an int`);
  },
  { signature: "(a, /)" },
);
