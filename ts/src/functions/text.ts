/**
 * Values as Python's `str` and `repr` write them, and texts with values in them.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { type ArgInput, freezeArg, isInt } from "../graph/args.ts";
import { repr } from "../graph/print.ts";
import { pythonFloat } from "../graph/python.ts";
import { OpArg } from "../base/values.ts";
import { Tensor } from "../tensor/tensor.ts";
import { kindOf } from "../base/members.ts";
import { numberOf, scalarOf, toFloat } from "./numbers.ts";
import { roundFloat } from "./rounding.ts";
import { entriesOf, isDict, isTuple } from "./sequences.ts";

/** Containers nested deeper than this hold themselves. */
const MAX_DEPTH = 500;
/** Texts are padded to this width at most; a graph must not be able to fill the memory. */
const MAX_WIDTH = 1 << 16;

/** Python's `repr(value)`. */
export function pythonRepr(value: unknown, depth = 0): string {
  const each = (it: unknown): string => pythonRepr(it, depth + 1);
  if (depth > MAX_DEPTH) return "...";
  if (Array.isArray(value)) {
    const items = Array.from(value as unknown[], each).join(", ");
    if (!isTuple(value)) return `[${items}]`;
    return value.length === 1 ? `(${items},)` : `(${items})`;
  }
  if (isDict(value)) {
    return `{${entriesOf(value)
      .map(([key, it]) => `${each(key)}: ${each(it)}`)
      .join(", ")}}`;
  }
  if (value instanceof Tensor) return String(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return isInt(value) ? BigInt(value).toString() : pythonFloat(value);
  if (typeof value === "object" || typeof value === "function" || value === undefined) {
    try {
      return repr(freezeArg(value as ArgInput));
    } catch {
      return `<${kindOf(value).replace(/^an? /, "")}>`;
    }
  }
  return typeof value === "symbol" ? String(value) : repr(freezeArg(value as ArgInput));
}

/** Python's `str(value)`. */
export function pythonText(value: unknown): string {
  if (typeof value === "string") return value;
  return value instanceof OpArg ? value.name : pythonRepr(value);
}

/** A place in a text for a value: a key, flags, width, precision and how the value is written. */
const PLACE = /%(?:\(([^)]*)\))?([-+ #0]*)(\d+|\*)?(?:\.(\d+|\*)?)?[hlL]?([\s\S]?)/g;

/** Python's `text % values`. */
export function formatted(text: string, values: unknown): string {
  const items: readonly unknown[] = isTuple(values) ? values : [values];
  let used = 0;
  const next = (): unknown => {
    if (used === items.length) throw fxError("InvalidArgument", "not enough arguments for format string");
    return items[used++];
  };
  let isNamed = false;
  const res = text.replace(PLACE, (place, key: string | undefined, flags: string, width, precision, kind: string) => {
    if (kind === "%") return "%";
    const size = width === "*" ? Number(next()) : Number(width ?? 0);
    const hasPrecision = place.includes(".");
    const digits = precision === "*" ? Number(next()) : hasPrecision ? Number(precision ?? 0) : undefined;
    if (size > MAX_WIDTH || (digits ?? 0) > MAX_WIDTH) throw fxError("LimitExceeded", `${place} is too wide`);
    isNamed ||= key !== undefined;
    const value = key === undefined ? next() : named(values, key);
    return padded(written(kind, value, flags, digits), size, flags, "diouxXeEfFgG".includes(kind));
  });
  // Python takes lists for mappings here.
  const isMapping = isDict(values) || (Array.isArray(values) && !isTuple(values));
  if (!isNamed && used < items.length && !isMapping) {
    throw fxError("InvalidArgument", "not all arguments converted during string formatting");
  }
  return res;
}

function named(values: unknown, key: string): unknown {
  if (!isDict(values)) throw fxError("InvalidArgument", "format requires a mapping");
  const found = entriesOf(values).find(([name]) => name === key);
  if (found === undefined) throw fxError("IndexOutOfRange", `the dict has no key "${key}"`);
  return found[1];
}

function written(kind: string, value: unknown, flags: string, digits: number | undefined): string {
  switch (kind) {
    case "s":
      return pythonText(value).slice(0, digits);
    case "r":
    case "a":
      return pythonRepr(value).slice(0, digits);
    case "c":
      return typeof value === "string" ? value : String.fromCodePoint(Number(whole(kind, value)));
    case "d":
    case "i":
    case "u":
      return signed(
        whole(kind, value)
          .toString()
          .padStart(digits ?? 0, "0"),
        flags,
      );
    case "o":
    case "x":
    case "X": {
      const number = whole(kind, value);
      const prefix = flags.includes("#") ? `0${kind}` : "";
      const text = (number < 0n ? -number : number).toString(kind === "o" ? 8 : 16).padStart(digits ?? 0, "0");
      return signed(`${number < 0n ? "-" : ""}${prefix}${kind === "X" ? text.toUpperCase() : text}`, flags);
    }
    case "e":
    case "E":
    case "f":
    case "F":
    case "g":
    case "G": {
      const text = floatText(kind.toLowerCase(), real(kind, value), digits ?? 6, flags.includes("#"));
      return signed(kind === kind.toUpperCase() ? text.toUpperCase() : text, flags);
    }
    default:
      throw fxError("InvalidArgument", `unsupported format character '${kind}'`);
  }
}

function floatText(kind: string, value: number, digits: number, isFull: boolean): string {
  if (!Number.isFinite(value)) return pythonFloat(value);
  if (kind === "f") return fixed(value, digits);
  if (kind === "e") return exponential(value, Math.min(digits, 100));
  const significant = Math.max(1, Math.min(digits, 100));
  const scientific = exponential(value, significant - 1);
  const power = Number(scientific.split("e")[1]);
  const isShort = power >= -4 && power < significant;
  const text = isShort ? fixed(value, significant - 1 - power) : scientific;
  if (isFull || !text.includes(".")) return text;
  return text.replace(/\.?0+(?=e|$)/, "");
}

/** `toFixed`, which gives up at numbers of 22 digits. */
function fixed(value: number, digits: number): string {
  // JavaScript rounds a half away from zero, Python to even.
  if (Math.abs(value) < 1e21) return roundFloat(value, digits).toFixed(Math.min(digits, 100));
  return `${BigInt(value)}${digits > 0 ? `.${"0".repeat(digits)}` : ""}`;
}

function exponential(value: number, digits: number): string {
  const power = Number(value.toExponential().split("e")[1]);
  const text = roundFloat(value, digits - power).toExponential(digits);
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}

function whole(kind: string, value: unknown): bigint {
  const number = numberOf(value);
  if (typeof number === "bigint") return number;
  if (typeof number === "number" && Number.isFinite(number) && "diu".includes(kind)) return BigInt(Math.trunc(number));
  throw fxError("InvalidArgument", `%${kind} format: an int is required, not ${kindOf(value)}`);
}

function real(kind: string, value: unknown): number {
  const number = scalarOf(value);
  if (typeof number === "bigint" || typeof number === "number") return toFloat(number);
  throw fxError("InvalidArgument", `%${kind} format: a number is required, not ${kindOf(value)}`);
}

function signed(text: string, flags: string): string {
  if (text.startsWith("-")) return text;
  return flags.includes("+") ? `+${text}` : flags.includes(" ") ? ` ${text}` : text;
}

function padded(text: string, width: number, flags: string, isNumber: boolean): string {
  if (flags.includes("-")) return text.padEnd(width);
  if (!isNumber || !flags.includes("0")) return text.padStart(width);
  const sign = /^[+\- ]?(?:0[xXo])?/.exec(text)?.[0] ?? "";
  return sign + text.slice(sign.length).padStart(width - sign.length, "0");
}
