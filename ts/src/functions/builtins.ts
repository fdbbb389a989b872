/**
 * Python's built-in functions, which a trace records.
 *
 * `getattr` is how graphs read an attribute of a value, such as a shape. The others are here for graphs that have them, and
 * for code that is traced and must know a length or a maximum only when the graph runs.
 *
 * @example
 * ```ts
 * import { builtins } from "tracefx";
 * builtins.getattr(x, "shape"); // what x.shape is when the graph runs
 * ```
 * @module
 */
import { isPlainFunction } from "../base/objects.ts";
import { checkGiven } from "../base/given.ts";
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../base/errors.ts";
import { Complex, dtype, DTypeArg, ValueTuple } from "../base/values.ts";
import { Tensor } from "../tensor/tensor.ts";
import { abs as absoluteOf, pow as powerOf } from "./arithmetic.ts";
import { truthOf } from "./richCompare.ts";
import { itemsOf, noNumber } from "./iterate.ts";
import { kindOf, memberOf } from "../base/members.ts";
import { isOptions } from "../base/naming.ts";
import { numberOf, valueOf } from "./numbers.ts";
import { combine, ordered } from "./binaryOps.ts";
import { wholeOf } from "./realNumbers.ts";
import { roundFloat, roundInt } from "./rounding.ts";
import { entriesOf, indexOf, isDict } from "./sequences.ts";
import { defineFunction } from "./table.ts";
import { pythonText } from "./text.ts";

export * from "./conversions.ts";

const ONE = { signature: "(x, /)" };

const TWO = { signature: "(x, y, /)" };

/**
 * An attribute of a value by Python's name, or the default where there is none. Of a tensor, what Python has: the shape is a
 * tuple, the dtype a dtype.
 *
 * @example
 * ```ts
 * builtins.getattr(x, "requires_grad", false);
 * ```
 */
export const getattr = defineFunction(
  "builtins.getattr",
  (self: unknown, name: string, ...absent: unknown[]) => {
    checkGiven("getattr", typeof name === "string", "the name of an attribute as text");
    const found = attributeOf(self, name);
    if (found !== undefined) return found;
    if (absent.length > 0) return absent[0];
    throw fxError("AttributeMissing", `${kindOf(self)} has no attribute \`${name}\``, {
      help: Array.isArray(self) ? "results without names are told apart by position: torch.stdMean(x)[0]" : undefined,
    });
  },
  { signature: "(object, name, default=None, /)" },
);

/**
 * Whether a value has an attribute of this name.
 *
 * @example
 * ```ts
 * builtins.hasattr(x, "shape"); // true
 * ```
 */
export const hasattr = defineFunction(
  "builtins.hasattr",
  (self: unknown, name: string): boolean => {
    checkGiven("hasattr", typeof name === "string", "the name of an attribute as text");
    return attributeOf(self, name) !== undefined;
  },
  TWO,
);

/**
 * The number of items, or the size of the first dimension of a tensor.
 *
 * @example
 * ```ts
 * builtins.len([1, 2]); // 2
 * ```
 */
export const len = defineFunction(
  "builtins.len",
  (value: unknown): number => {
    if (value instanceof Tensor) {
      const [length] = value.shape;
      if (length !== undefined) return length;
      throw fxError("InvalidArgument", "len() of a 0-d tensor");
    }
    if (isDict(value)) return entriesOf(value).length;
    return itemsOf(value).length;
  },
  ONE,
);

/**
 * The sum of the items, beginning with `start`.
 *
 * @example
 * ```ts
 * builtins.sum([1, 2], 3); // 6
 * ```
 */
export const sum = defineFunction(
  "builtins.sum",
  (items: unknown, start: unknown = 0): unknown =>
    itemsOf(items).reduce((total, it) => combine("add", total, it), start),
  TWO,
);

/**
 * The greatest of several values, or of the items of one.
 *
 * @example
 * ```ts
 * builtins.max(1, 5, 3); // 5
 * ```
 */
export const max = defineFunction("builtins.max", (...values: readonly unknown[]) => extreme("max", "gt", values));

/**
 * The least of several values, or of the items of one.
 *
 * @example
 * ```ts
 * builtins.min([4, 2]); // 2
 * ```
 */
export const min = defineFunction("builtins.min", (...values: readonly unknown[]) => extreme("min", "lt", values));

/**
 * Whether all items count as true.
 *
 * @example
 * ```ts
 * builtins.all([1, 0]); // false
 * ```
 */
export const all = defineFunction("builtins.all", (items: unknown): boolean => itemsOf(items).every(truthOf), ONE);

/**
 * Whether any item counts as true.
 *
 * @example
 * ```ts
 * builtins.any([1, 0]); // true
 * ```
 */
export const any = defineFunction("builtins.any", (items: unknown): boolean => itemsOf(items).some(truthOf), ONE);

/**
 * The absolute value.
 *
 * @example
 * ```ts
 * builtins.abs(-3); // 3
 * ```
 */
export const abs = defineFunction("builtins.abs", (value: unknown) => absoluteOf(value), ONE);

/**
 * `base ** exponent`, or its remainder by `modulus`.
 *
 * @example
 * ```ts
 * builtins.pow(2, 10, 1000); // 24
 * ```
 */
export const pow = defineFunction(
  "builtins.pow",
  (base: unknown, exponent: unknown, modulus: unknown = null) => {
    const res = powerOf(base, exponent);
    return modulus === null ? res : combine("mod", res, modulus);
  },
  { signature: "(base, exp, mod=None, /)" },
);

/**
 * `tuple(x // y, x % y)`.
 *
 * @example
 * ```ts
 * builtins.divmod(-7, 2); // tuple(-4, 1)
 * ```
 */
export const divmod = defineFunction(
  "builtins.divmod",
  (x: unknown, y: unknown) => ValueTuple.frozen([combine("floordiv", x, y), combine("mod", x, y)]),
  TWO,
);

/**
 * The nearest int, or the nearest number of so many digits; what is in the middle goes to the even one.
 *
 * @example
 * ```ts
 * builtins.round(2.5); // 2
 * builtins.round(2.675, 2); // 2.67
 * ```
 */
export const round = defineFunction(
  "builtins.round",
  (value: unknown, digits: unknown = null): unknown => {
    if (value instanceof Tensor)
      return callOperator("aten.round", [value], digits === null ? {} : { decimals: digits });
    const number = numberOf(value);
    if (number === undefined || number instanceof Complex) throw noNumber("round()", value);
    const places = digits === null ? 0 : indexOf(digits);
    if (places === undefined) throw noNumber("round()", digits);
    if (typeof number === "bigint") return valueOf(roundInt(number, places));
    if (digits === null) return valueOf(wholeOf(roundFloat(number, 0)));
    return valueOf(roundFloat(number, places));
  },
  TWO,
);

/** How {@link print} prints. */
export interface PrintOptions {
  /** What stands between the values; default a space. */
  readonly sep?: string | null;
  /** What stands after them; the end of the line, which the console always makes, is left out. */
  readonly end?: string | null;
}

/**
 * Prints values to the console, as Python prints them.
 *
 * @example
 * ```ts
 * builtins.print(x, { sep: ", " });
 * ```
 */
export const print = defineFunction("builtins.print", (...given: readonly unknown[]): null => {
  const last = given.at(-1);
  const options = isOptions(last) ? (last as PrintOptions) : undefined;
  const values = options === undefined ? given : given.slice(0, -1);
  const { sep, end } = options ?? {};
  const text = values.map(pythonText).join(sep ?? " ") + (end ?? "\n");
  // oxlint-disable-next-line no-console -- it is what the function is for
  console.log(text.replace(/\n$/, ""));
  return null;
});

/**
 * The ints of a range, as a list.
 *
 * @example
 * ```ts
 * builtins.range(1, 6, 2); // [1, 3, 5]
 * ```
 */
export const range = defineFunction(
  "builtins.range",
  (first: unknown, last?: unknown, by: unknown = 1): number[] => {
    const [start, stop, step] = (last === undefined ? [0, first, 1] : [first, last, by]).map(indexOf);
    if (start === undefined || stop === undefined || step === undefined) throw noNumber("range()", first);
    if (step === 0) throw fxError("InvalidArgument", "range() arg 3 must not be zero");
    const length = Math.max(0, Math.ceil((stop - start) / step));
    if (length > 2 ** 24) throw fxError("LimitExceeded", `a range of ${length} ints`);
    return Array.from({ length }, (_, at) => start + at * step);
  },
  { signature: "(start, stop=None, step=1, /)" },
);

/**
 * The items in order.
 *
 * @example
 * ```ts
 * builtins.sorted([3, 1, 2]); // [1, 2, 3]
 * ```
 */
export const sorted = defineFunction(
  "builtins.sorted",
  (items: unknown): readonly unknown[] => {
    return itemsOf(items).toSorted((a, b) => (isBefore(a, b) ? -1 : isBefore(b, a) ? 1 : 0));
  },
  ONE,
);

/**
 * The items from the last to the first, as a list.
 *
 * @example
 * ```ts
 * builtins.reversed([1, 2]); // [2, 1]
 * ```
 */
export const reversed = defineFunction("builtins.reversed", (items: unknown) => itemsOf(items).toReversed(), ONE);

/**
 * The pairs of a count and an item, as a list.
 *
 * @example
 * ```ts
 * builtins.enumerate(["a"]); // [tuple(0, "a")]
 * ```
 */
export const enumerate = defineFunction(
  "builtins.enumerate",
  (items: unknown, start: unknown = 0) => {
    const first = indexOf(start) ?? 0;
    return itemsOf(items).map((it, at) => ValueTuple.frozen([first + at, it]));
  },
  TWO,
);

/**
 * The tuples of the first, the second… items of all sequences, as a list.
 *
 * @example
 * ```ts
 * builtins.zip([1, 2], ["a", "b"]); // [tuple(1, "a"), tuple(2, "b")]
 * ```
 */
export const zip = defineFunction(
  "builtins.zip",
  (...sequences: readonly unknown[]) => {
    const columns = sequences.map(itemsOf);
    const length = Math.min(...columns.map((it) => it.length));
    return Array.from({ length: columns.length === 0 ? 0 : length }, (_, at) =>
      ValueTuple.frozen(columns.map((it) => it[at])),
    );
  },
  { signature: "(*sequences, /)" },
);

/** An attribute as Python has it; undefined where there is none. */
function attributeOf(self: unknown, name: string): unknown {
  const value = memberOf(self, name);
  // `values` is a result in Python, and must not become the function that JavaScript's arrays have.
  if (Array.isArray(self) && typeof value === "function") return undefined;
  if (self instanceof Tensor && name === "dtype") return dtype(self.dtype);
  if (self instanceof Complex && (name === "real" || name === "imag"))
    return valueOf(name === "real" ? self.re : self.im);
  if (self instanceof DTypeArg && name === "is_floating_point") return /float/.test(self.name);
  return isPlainFunction(value) && !("target" in value) ? (value.bind(self) as unknown) : value;
}

function extreme(name: "max" | "min", comparison: "gt" | "lt", given: readonly unknown[]): unknown {
  const last = given.at(-1);
  const options = given.length === 2 && isOptions(last) ? last : undefined;
  const values = options === undefined ? given : given.slice(0, -1);
  const items = values.length === 1 ? itemsOf(values[0]) : values;
  if (items.length > 0) return items.reduce((best, it) => (truthOf(ordered(comparison, it, best)) ? it : best));
  if (options !== undefined && "default" in options) return options["default"];
  throw fxError("InvalidArgument", `${name}() arg is an empty sequence`);
}

function isBefore(left: unknown, right: unknown): boolean {
  return truthOf(ordered("lt", left, right));
}
