/**
 * Numbers and strings as Python's `repr` writes them.
 *
 * @module
 */

/**
 * A float: the shortest digits that read back to the same number.
 *
 * @example
 * ```ts
 * pythonFloat(1); // "1.0"
 * pythonFloat(1e-5); // "1e-05"
 * ```
 */
export function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const [mantissa, power] = value.toExponential().split("e") as [string, string];
  const exponent = Number(power);
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const digits = mantissa.replace(/[-.]/g, "");
  if (exponent < -4 || exponent >= 16) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
    return `${sign}${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}

/** A complex number: `(1+2j)`, or `2j` where the real part is positive zero. */
export function pythonComplex(re: number, im: number): string {
  const imaginary = complexPart(im);
  if (Object.is(re, 0)) return `${imaginary}j`;
  return `(${complexPart(re)}${imaginary.startsWith("-") ? "" : "+"}${imaginary}j)`;
}

/** A string: single quotes, or double quotes where the text has single quotes and no double ones. */
export function pythonString(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let res = quote;
  for (const char of text) res += escaped(char, quote);
  return res + quote;
}

function complexPart(value: number): string {
  return pythonFloat(value).replace(/\.0$/, "");
}

function escaped(char: string, quote: string): string {
  const code = char.codePointAt(0) as number;
  if (char === "\\" || char === quote) return `\\${char}`;
  if (char === "\n") return "\\n";
  if (char === "\r") return "\\r";
  if (char === "\t") return "\\t";
  // Python's `str.isprintable`: neither of Unicode's "other" nor a separator, except the space.
  if (char === " " || !/[\p{C}\p{Z}]/u.test(char)) return char;
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}
