import { describe, expect, test } from "vitest";
import { decodeFloat, encodeFloat, type SmallFloat } from "../../src/tensor/floats.ts";
import { cases, float64 } from "./corpus.ts";

interface Case {
  readonly dtype: SmallFloat;
  readonly values: string[];
  readonly bits: number[];
}

const hex = (bits: number): string => `0x${bits.toString(16)}`;

describe("small floats as PyTorch converts them", () => {
  test.each(cases<Case>("convert"))("to $dtype", ({ dtype, values, bits }) => {
    const wanted = values.map((it, at) => `${float64(it)} ${shown(dtype, bits[at] as number)}`);
    expect(values.map((it) => `${float64(it)} ${shown(dtype, encodeFloat(dtype, float64(it)))}`)).toEqual(wanted);
  });

  test.each(cases<Case>("decode"))("from $dtype", ({ dtype, values, bits }) => {
    expect(bits.map((it) => [hex(it), decodeFloat(dtype, it)])).toEqual(
      bits.map((it, at) => [hex(it), float64(values[at] as string)]),
    );
  });

  test.each([
    ["float16", 2 ** 16],
    ["bfloat16", 2 ** 16],
    ["float8_e4m3fn", 256],
    ["float8_e5m2", 256],
    ["float8_e4m3fnuz", 256],
    ["float8_e5m2fnuz", 256],
  ] as const)("all bits of %s that are a number come back", (dtype, count) => {
    for (let bits = 0; bits < count; bits++) {
      const value = decodeFloat(dtype, bits);
      if (Number.isNaN(encodeFloat(dtype, value)) || (!Number.isNaN(value) && encodeFloat(dtype, value) !== bits)) {
        expect.unreachable(`${hex(bits)} is ${value}, which is ${hex(encodeFloat(dtype, value))}`);
      }
    }
  });

  test("numbers are not converted to a scale", () => {
    expect(() => encodeFloat("float8_e8m0fnu", 2)).toThrow(expect.objectContaining({ kind: "NotImplemented" }));
  });
});

/** Bits, or that they are a NaN: which NaN depends on the processor. */
function shown(dtype: SmallFloat, bits: number): string {
  return Number.isNaN(decodeFloat(dtype, bits)) ? "nan" : hex(bits);
}
