/**
 * Python's built-in functions that make a value of one type of another.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { type ArgInput, slice as makeSlice } from "../graph/args.ts";
import { Complex, type Float, ValueTuple } from "../base/values.ts";
import { truthOf } from "./richCompare.ts";
import { itemsOf, noNumber } from "./iterate.ts";
import { type PythonNumber, scalarOf, toFloat, valueOf } from "./numbers.ts";
import { combine } from "./binaryOps.ts";
import { wholeOf } from "./realNumbers.ts";
import { readFloat, readInt } from "./rounding.ts";
import { entriesOf, indexOf, isDict } from "./sequences.ts";
import { defineFunction } from "./table.ts";
import { pythonRepr, pythonText } from "./text.ts";

const ONE = { signature: "(x, /)" };

const TWO = { signature: "(x, y, /)" };

/**
 * The value as an int: a float loses its fraction, a text is read.
 *
 * @example
 * ```ts
 * builtins.int("ff", 16); // 255
 * ```
 */
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

/**
 * The value as a float; a text is read.
 *
 * @example
 * ```ts
 * builtins.float(1); // float(1)
 * ```
 */
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

/**
 * The complex number of a real and an imaginary part.
 *
 * @example
 * ```ts
 * builtins.complex(1, 2); // complex(1, 2)
 * ```
 */
export const complex = defineFunction(
  "builtins.complex",
  (re: unknown = 0, im: unknown = 0): Complex => {
    const [a, b] = [requireScalar("complex()", re), requireScalar("complex()", im)];
    const turned = combine("mul", valueOf(b), new Complex(0, 1)) as Complex;
    return combine("add", new Complex(0, 0), combine("add", valueOf(a), turned)) as Complex;
  },
  TWO,
);

/**
 * Whether the value counts as true.
 *
 * @example
 * ```ts
 * builtins.bool([]); // false
 * ```
 */
export const bool = defineFunction("builtins.bool", (value: unknown = false): boolean => truthOf(value), ONE);

/**
 * The text of a value, as Python prints it.
 *
 * @example
 * ```ts
 * builtins.str(1e16); // "10000000000000000"
 * ```
 */
export const str = defineFunction("builtins.str", (value: unknown = ""): string => pythonText(value), ONE);

/**
 * The text of a value, as Python writes it.
 *
 * @example
 * ```ts
 * builtins.repr("a"); // "'a'"
 * ```
 */
export const repr = defineFunction("builtins.repr", (value: unknown): string => pythonRepr(value), ONE);

/**
 * The items as a list.
 *
 * @example
 * ```ts
 * builtins.list("ab"); // ["a", "b"]
 * ```
 */
export const list = defineFunction(
  "builtins.list",
  (items: unknown = []): readonly unknown[] => [...itemsOf(items)],
  ONE,
);

/**
 * The items as a tuple.
 *
 * @example
 * ```ts
 * builtins.tuple([1, 2]); // tuple(1, 2)
 * ```
 */
export const tuple = defineFunction("builtins.tuple", (items: unknown = []) => ValueTuple.frozen(itemsOf(items)), ONE);

/**
 * The pairs, or another dict, as a dict.
 *
 * @example
 * ```ts
 * builtins.dict([["a", 1]]); // { a: 1 }
 * ```
 */
export const dict = defineFunction(
  "builtins.dict",
  (items: unknown = {}): Record<string, unknown> => {
    const pairs = isDict(items) ? entriesOf(items) : itemsOf(items).map((pair) => itemsOf(pair) as [unknown, unknown]);
    return Object.fromEntries(pairs.map(([key, value]) => [String(key), value]));
  },
  ONE,
);

/**
 * A slice: `slice(stop)`, `slice(start, stop)` or `slice(start, stop, step)`.
 *
 * @example
 * ```ts
 * builtins.slice(1, 5); // slice(1, 5)
 * ```
 */
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

function requireScalar(what: string, value: unknown): PythonNumber {
  const number = scalarOf(value);
  if (number !== undefined) return number;
  throw noNumber(what, value);
}

function read<T>(number: T | undefined, what: string, text: string): T {
  if (number !== undefined) return number;
  throw fxError("InvalidArgument", `${pythonRepr(text)} does not write ${what}`);
}
