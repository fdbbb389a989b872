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
import { callOperator } from "../engine/dispatch.ts";
import { fxError, type FxError } from "../errors.ts";
import { type ArgInput, slice as makeSlice } from "../graph/args.ts";
import { Complex, device, dtype, DTypeArg, type Float, ValueTuple } from "../graph/values.ts";
import { Tensor } from "../tensor/tensor.ts";
import { truthOf } from "./compare.ts";
import { wholeOf } from "./math.ts";
import { kindOf, memberOf } from "./methods.ts";
import { isOptions } from "./naming.ts";
import { numberOf, type PythonNumber, scalarOf, toFloat, valueOf } from "./numbers.ts";
import { abs as absoluteOf, pow as powerOf } from "./operator.ts";
import { combine, ordered } from "./operands.ts";
import { readFloat, readInt, roundFloat, roundInt } from "./rounding.ts";
import { entriesOf, indexOf, isDict } from "./sequences.ts";
import { defineFunction } from "./table.ts";
import { pythonRepr, pythonText } from "./text.ts";

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
    const found = attributeOf(self, name);
    if (found !== undefined) return found;
    if (absent.length > 0) return absent[0];
    throw fxError("AttributeMissing", `${kindOf(self)} has no attribute \`${name}\``);
  },
  { signature: "(object, name, default=None, /)" },
);

/** Whether a value has an attribute of this name. */
export const hasattr = defineFunction(
  "builtins.hasattr",
  (self: unknown, name: string): boolean => attributeOf(self, name) !== undefined,
  TWO,
);

/** The number of items, or the size of the first dimension of a tensor. */
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

/** The sum of the items, beginning with `start`. */
export const sum = defineFunction(
  "builtins.sum",
  (items: unknown, start: unknown = 0): unknown =>
    itemsOf(items).reduce((total, it) => combine("add", total, it), start),
  TWO,
);

/** The greatest of several values, or of the items of one. */
export const max = defineFunction("builtins.max", (...values: readonly unknown[]) => extreme("max", "gt", values));
/** The least of several values, or of the items of one. */
export const min = defineFunction("builtins.min", (...values: readonly unknown[]) => extreme("min", "lt", values));

/** Whether all items count as true. */
export const all = defineFunction("builtins.all", (items: unknown): boolean => itemsOf(items).every(truthOf), ONE);
/** Whether any item counts as true. */
export const any = defineFunction("builtins.any", (items: unknown): boolean => itemsOf(items).some(truthOf), ONE);

/** The absolute value. */
export const abs = defineFunction("builtins.abs", (value: unknown) => absoluteOf(value), ONE);

/** `base ** exponent`, or its remainder by `modulus`. */
export const pow = defineFunction(
  "builtins.pow",
  (base: unknown, exponent: unknown, modulus: unknown = null) => {
    const res = powerOf(base, exponent);
    return modulus === null ? res : combine("mod", res, modulus);
  },
  { signature: "(base, exp, mod=None, /)" },
);

/** `tuple(x // y, x % y)`. */
export const divmod = defineFunction(
  "builtins.divmod",
  (x: unknown, y: unknown) => ValueTuple.frozen([combine("floordiv", x, y), combine("mod", x, y)]),
  TWO,
);

/** The nearest int, or the nearest number of so many digits; what is in the middle goes to the even one. */
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

/** The value as an int: a float loses its fraction, a text is read. */
export const int = defineFunction(
  "builtins.int",
  (value: unknown = 0, base: unknown = 10): number | bigint => {
    if (typeof value === "string")
      return valueOf(read(readInt(value, indexOf(base) ?? 10), `an int of base ${pythonText(base)}`, value)) as
        | number
        | bigint;
    const number = requireScalar("int()", value);
    if (number instanceof Complex) throw noNumber("int()", value);
    return valueOf(typeof number === "bigint" ? number : wholeOf(Math.trunc(number))) as number | bigint;
  },
  TWO,
);

/** The value as a float; a text is read. */
export const float = defineFunction(
  "builtins.float",
  (value: unknown = 0): number | Float => {
    if (typeof value === "string") return valueOf(read(readFloat(value), "a float", value)) as number | Float;
    const number = requireScalar("float()", value);
    if (number instanceof Complex) throw noNumber("float()", value);
    return valueOf(toFloat(number)) as number | Float;
  },
  ONE,
);

/** The complex number of a real and an imaginary part. */
export const complex = defineFunction(
  "builtins.complex",
  (re: unknown = 0, im: unknown = 0): Complex => {
    const [a, b] = [requireScalar("complex()", re), requireScalar("complex()", im)];
    const turned = combine("mul", valueOf(b), new Complex(0, 1)) as Complex;
    return combine("add", new Complex(0, 0), combine("add", valueOf(a), turned)) as Complex;
  },
  TWO,
);

/** Whether the value counts as true. */
export const bool = defineFunction("builtins.bool", (value: unknown = false): boolean => truthOf(value), ONE);

/** The text of a value, as Python prints it. */
export const str = defineFunction("builtins.str", (value: unknown = ""): string => pythonText(value), ONE);
/** The text of a value, as Python writes it. */
export const repr = defineFunction("builtins.repr", (value: unknown): string => pythonRepr(value), ONE);

/** How {@link print} prints. */
export interface PrintOptions {
  /** What stands between the values; default a space. */
  readonly sep?: string | null;
  /** What stands after them; the end of the line, which the console always makes, is left out. */
  readonly end?: string | null;
}

/** Prints values to the console, as Python prints them. */
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

/** The items as a list. */
export const list = defineFunction(
  "builtins.list",
  (items: unknown = []): readonly unknown[] => [...itemsOf(items)],
  ONE,
);
/** The items as a tuple. */
export const tuple = defineFunction("builtins.tuple", (items: unknown = []) => ValueTuple.frozen(itemsOf(items)), ONE);
/** The pairs, or another dict, as a dict. */
export const dict = defineFunction(
  "builtins.dict",
  (items: unknown = {}): Record<string, unknown> => {
    const pairs = isDict(items) ? entriesOf(items) : itemsOf(items).map((pair) => itemsOf(pair) as [unknown, unknown]);
    return Object.fromEntries(pairs.map(([key, value]) => [String(key), value]));
  },
  ONE,
);
/** A slice: `slice(stop)`, `slice(start, stop)` or `slice(start, stop, step)`. */
export const slice = defineFunction(
  "builtins.slice",
  (first: unknown, ...rest: readonly unknown[]) => {
    const [stop, step = null] = rest;
    return stop === undefined
      ? makeSlice(first as ArgInput)
      : makeSlice(first as ArgInput, stop as ArgInput, step as ArgInput);
  },
  { signature: "(start, stop=None, step=None, /)" },
);
/** The ints of a range, as a list. */
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

/** The items in order. */
export const sorted = defineFunction(
  "builtins.sorted",
  (items: unknown): readonly unknown[] => {
    return itemsOf(items).toSorted((a, b) => (isBefore(a, b) ? -1 : isBefore(b, a) ? 1 : 0));
  },
  ONE,
);
/** The items from the last to the first, as a list. */
export const reversed = defineFunction("builtins.reversed", (items: unknown) => itemsOf(items).toReversed(), ONE);
/** The pairs of a count and an item, as a list. */
export const enumerate = defineFunction(
  "builtins.enumerate",
  (items: unknown, start: unknown = 0) => {
    const first = indexOf(start) ?? 0;
    return itemsOf(items).map((it, at) => ValueTuple.frozen([first + at, it]));
  },
  TWO,
);
/** The tuples of the first, the second… items of all sequences, as a list. */
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
  if (self instanceof Tensor) {
    if (name === "shape") return ValueTuple.frozen(self.shape);
    if (name === "dtype") return dtype(self.dtype);
    if (name === "device" && value === undefined) return device("cpu");
  }
  if (self instanceof Complex && (name === "real" || name === "imag"))
    return valueOf(name === "real" ? self.re : self.im);
  if (self instanceof DTypeArg && name === "is_floating_point") return /float/.test(self.name);
  return typeof value === "function" && !("target" in value) ? (value.bind(self) as unknown) : value;
}

/** The items of a sequence, the keys of a dict, or the parts of a tensor along its first dimension. */
function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value as readonly unknown[];
  if (typeof value === "string") return [...value];
  if (isDict(value)) return entriesOf(value).map(([key]) => key);
  if (value instanceof Tensor && value.shape.length > 0) {
    const parts: unknown = callOperator("aten.unbind", [value]);
    return Array.isArray(parts) ? (parts as readonly unknown[]) : [parts];
  }
  throw fxError("InvalidArgument", `${kindOf(value)} has no items to go through`);
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

function requireScalar(what: string, value: unknown): PythonNumber {
  const number = scalarOf(value);
  if (number !== undefined) return number;
  throw noNumber(what, value);
}

function read<T>(number: T | undefined, what: string, text: string): T {
  if (number !== undefined) return number;
  throw fxError("InvalidArgument", `${pythonRepr(text)} does not write ${what}`);
}

function isBefore(left: unknown, right: unknown): boolean {
  return truthOf(ordered("lt", left, right));
}

function noNumber(what: string, value: unknown): FxError {
  return fxError("InvalidArgument", `${what} argument must be a number, not ${kindOf(value)}`);
}
