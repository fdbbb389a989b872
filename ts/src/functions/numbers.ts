/**
 * Python's arithmetic: ints of any size, floats and complex numbers, and which of them a result is.
 *
 * @module
 */
import { DTYPES } from "../../../bindings/dtypes.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { isInt } from "../graph/args.ts";
import { Complex, Float } from "../base/values.ts";
import { Tensor } from "../tensor/tensor.ts";

/** A number as Python sees it. Booleans are ints. */
export type PythonNumber = bigint | number | Complex;

/** A number of JavaScript as Python sees it: an int is a bigint and a float a number; undefined where it is no number. */
export function numberOf(value: unknown): PythonNumber | undefined {
  switch (typeof value) {
    case "boolean":
      return value ? 1n : 0n;
    case "bigint":
      return value;
    case "number":
      return isInt(value) ? BigInt(value) : value;
    default:
      if (value instanceof Float) return value.value;
      return value instanceof Complex ? value : undefined;
  }
}

/** A number, or the number that a tensor of one element holds; undefined where it is neither. */
export function scalarOf(value: unknown): PythonNumber | undefined {
  if (!(value instanceof Tensor)) return numberOf(value);
  const item = value.item();
  // A float that is whole is a float all the same.
  return DTYPES[value.dtype].kind === "float" ? (item as number) : numberOf(item);
}

/** A number of Python as JavaScript has it: a float that is whole is a `Float`, an int that is large a bigint. */
export function valueOf(number: PythonNumber): number | bigint | Float | Complex {
  if (typeof number === "bigint") {
    const small = Number(number);
    return Number.isSafeInteger(small) ? small : number;
  }
  return typeof number === "number" && isInt(number) ? new Float(number) : number;
}

/** The name of an operation of two numbers. */
export type BinaryName =
  | "add"
  | "sub"
  | "mul"
  | "truediv"
  | "floordiv"
  | "mod"
  | "pow"
  | "lshift"
  | "rshift"
  | "and_"
  | "or_"
  | "xor";

/** Ints have this many bits at most; PyTorch's have 64, and a graph must not be able to fill the memory. */
const MAX_BITS = 1 << 20;

/** The result of an operation of two numbers; undefined where Python has none, such as `1.5 << 2`. */
export function arithmetic(name: BinaryName, left: PythonNumber, right: PythonNumber): PythonNumber | undefined {
  if (typeof left === "bigint" && typeof right === "bigint") return ofInts(name, left, right);
  if (left instanceof Complex || right instanceof Complex) {
    const [a, b] = [toComplex(left), toComplex(right)];
    return a === undefined || b === undefined ? undefined : ofComplex(name, a, b);
  }
  return ofFloats(name, toFloat(left), toFloat(right));
}

function ofInts(name: BinaryName, a: bigint, b: bigint): PythonNumber {
  switch (name) {
    case "add":
      return a + b;
    case "sub":
      return a - b;
    case "mul":
      if (bits(a) + bits(b) > MAX_BITS) throw tooLarge("a product of so large ints");
      return a * b;
    case "truediv":
      return divide(a, b);
    case "floordiv":
      if (b === 0n) throw divisionByZero("integer division or modulo by zero");
      return (a - floorMod(a, b)) / b;
    case "mod":
      if (b === 0n) throw divisionByZero("integer modulo by zero");
      return floorMod(a, b);
    case "pow":
      if (b < 0n) return ofFloats("pow", toFloat(a), toFloat(b)) as number;
      if (bits(a) * Number(b) > MAX_BITS) throw tooLarge("a power of so large ints");
      return a ** b;
    case "lshift":
    case "rshift":
      if (b < 0n) throw fxError("InvalidArgument", "negative shift count");
      if (name === "rshift") return a >> b;
      if (a !== 0n && bits(a) + Number(b) > MAX_BITS) throw tooLarge("a shift so far");
      return a === 0n ? 0n : a << b;
    case "and_":
      return a & b;
    case "or_":
      return a | b;
    case "xor":
      return a ^ b;
  }
}

function ofFloats(name: BinaryName, a: number, b: number): PythonNumber | undefined {
  switch (name) {
    case "add":
      return a + b;
    case "sub":
      return a - b;
    case "mul":
      return a * b;
    case "truediv":
      if (b === 0) throw divisionByZero("float division by zero");
      return a / b;
    case "floordiv":
      if (b === 0) throw divisionByZero("float floor division by zero");
      return floorDivide(a, b);
    case "mod":
      if (b === 0) throw divisionByZero("float modulo");
      return floatMod(a, b);
    case "pow":
      return floatPower(a, b);
    case "lshift":
    case "rshift":
    case "and_":
    case "or_":
    case "xor":
      return undefined;
  }
}

function ofComplex(name: BinaryName, a: Complex, b: Complex): PythonNumber | undefined {
  switch (name) {
    case "add":
      return new Complex(a.re + b.re, a.im + b.im);
    case "sub":
      return new Complex(a.re - b.re, a.im - b.im);
    case "mul":
      return new Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    case "truediv":
      return complexQuotient(a, b);
    case "pow":
      return complexPower(a, b);
    case "floordiv":
    case "mod":
    case "lshift":
    case "rshift":
    case "and_":
    case "or_":
    case "xor":
      return undefined;
  }
}

/** `-number`. */
export function negative(number: PythonNumber): PythonNumber {
  return number instanceof Complex ? new Complex(-number.re, -number.im) : -number;
}

/** `abs(number)`. */
export function absolute(number: PythonNumber): PythonNumber {
  if (number instanceof Complex) return Math.hypot(number.re, number.im);
  if (typeof number === "bigint") return number < 0n ? -number : number;
  return Math.abs(number);
}

/** The order of two numbers: negative, zero or positive, or NaN where there is none. Ints and floats compare exactly. */
export function compareNumbers(left: bigint | number, right: bigint | number): number {
  if (left < right) return -1;
  if (left > right) return 1;
  // oxlint-disable-next-line eqeqeq -- an int and a float of one value are equal, and only == compares them exactly
  return left == right ? 0 : Number.NaN;
}

/** Whether two numbers are equal. */
export function equalNumbers(left: PythonNumber, right: PythonNumber): boolean {
  if (!(left instanceof Complex) && !(right instanceof Complex)) return compareNumbers(left, right) === 0;
  const parts = (it: PythonNumber) => (it instanceof Complex ? ([it.re, it.im] as const) : ([it, 0] as const));
  const [a, b] = [parts(left), parts(right)];
  return compareNumbers(a[0], b[0]) === 0 && compareNumbers(a[1], b[1]) === 0;
}

/** The remainder with the sign of the divisor. */
function floorMod(a: bigint, b: bigint): bigint {
  const rest = a % b;
  return rest !== 0n && rest < 0n !== b < 0n ? rest + b : rest;
}

function floatMod(a: number, b: number): number {
  const rest = a % b;
  if (rest !== 0) return rest < 0 !== b < 0 ? rest + b : rest;
  // A zero has the sign of the divisor.
  return b < 0 || Object.is(b, -0) ? -0 : 0;
}

function floorDivide(a: number, b: number): number {
  const rest = a % b;
  const quotient = (a - rest) / b - (rest !== 0 && rest < 0 !== b < 0 ? 1 : 0);
  if (quotient === 0) return a / b < 0 || Object.is(a / b, -0) ? -0 : 0;
  // The quotient is whole but for rounding.
  const floor = Math.floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

/** The quotient of two ints, rounded once. */
function divide(a: bigint, b: bigint): number {
  if (b === 0n) throw divisionByZero("division by zero");
  const [top, bottom] = [Number(a), Number(b)];
  if (Number.isSafeInteger(top) && Number.isSafeInteger(bottom)) return top / bottom;
  // 66 bits of the quotient, the last of which says whether there are more, round as all of them do.
  const [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  const shift = Math.max(0, 66 + bits(y) - bits(x));
  const scaled = x << BigInt(shift);
  const quotient = (scaled / y) | (scaled % y === 0n ? 0n : 1n);
  const res = Number(quotient) * 2 ** -(shift >> 1) * 2 ** -(shift - (shift >> 1));
  if (!Number.isFinite(res)) throw overflow("integer division result too large for a float");
  return a < 0n !== b < 0n ? -res : res;
}

function floatPower(a: number, b: number): PythonNumber {
  // Where JavaScript has NaN.
  if (a === 1 || (a === -1 && !Number.isFinite(b) && !Number.isNaN(b))) return 1;
  if (a === 0 && b < 0 && Number.isFinite(b)) throw divisionByZero("0.0 cannot be raised to a negative power");
  if (a < 0 && Number.isFinite(a) && Number.isFinite(b) && !Number.isInteger(b)) {
    return complexPower(new Complex(a, 0), new Complex(b, 0));
  }
  const res = a ** b;
  if (!Number.isFinite(res) && Number.isFinite(a) && Number.isFinite(b)) {
    throw overflow("(34, 'Numerical result out of range')");
  }
  return res;
}

function complexQuotient(a: Complex, b: Complex): Complex {
  if (b.re === 0 && b.im === 0) throw divisionByZero("complex division by zero");
  // Smith's method: the larger part of the divisor is divided by, so that nothing overflows.
  if (Math.abs(b.re) >= Math.abs(b.im)) {
    const ratio = b.im / b.re;
    const scale = b.re + b.im * ratio;
    return new Complex((a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale);
  }
  const ratio = b.re / b.im;
  const scale = b.re * ratio + b.im;
  return new Complex((a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale);
}

function complexPower(a: Complex, b: Complex): Complex {
  if (b.re === 0 && b.im === 0) return new Complex(1, 0);
  if (a.re === 0 && a.im === 0) {
    if (b.im !== 0 || b.re < 0) throw divisionByZero("0.0 to a negative or complex power");
    return new Complex(0, 0);
  }
  const length = Math.hypot(a.re, a.im);
  const angle = Math.atan2(a.im, a.re);
  const scale = length ** b.re * Math.exp(-angle * b.im);
  const phase = angle * b.re + Math.log(length) * b.im;
  const res = new Complex(scale * Math.cos(phase), scale * Math.sin(phase));
  const parts = [a.re, a.im, b.re, b.im];
  if (Number.isNaN(res.re) && !parts.some(Number.isNaN)) {
    throw fxError("InvalidArgument", "the complex power has no value");
  }
  return res;
}

/** The float of an int or a float. */
export function toFloat(number: bigint | number): number {
  const res = Number(number);
  if (typeof number === "bigint" && !Number.isFinite(res)) throw overflow("int too large to convert to float");
  return res;
}

function toComplex(number: PythonNumber): Complex | undefined {
  return number instanceof Complex ? number : new Complex(toFloat(number), 0);
}

/** How many bits an int has, without its sign. */
function bits(value: bigint): number {
  return (value < 0n ? -value : value).toString(16).length * 4;
}

function divisionByZero(reason: string): FxError {
  return fxError("InvalidArgument", reason, {
    help: "the divisor is a number of the graph: check where it comes from",
  });
}

function overflow(reason: string): FxError {
  return fxError("InvalidArgument", reason);
}

function tooLarge(what: string): FxError {
  return fxError("LimitExceeded", `${what} gives an int of more than ${MAX_BITS} bits`);
}
