import { describe, expect, test } from "vitest";
import { type DType, symbolicTrace, type Tensor, torch } from "../../src/index.ts";
import { thrown } from "../thrown.ts";

/** What PyTorch says: bits, eps, max, min, tiny, resolution, dtype. */
const FLOATS: readonly (readonly [DType, readonly (number | DType)[]])[] = [
  [
    "float64",
    [
      64,
      2.220446049250313e-16,
      1.7976931348623157e308,
      -1.7976931348623157e308,
      2.2250738585072014e-308,
      1e-15,
      "float64",
    ],
  ],
  [
    "float32",
    [32, 1.1920928955078125e-7, 3.4028234663852886e38, -3.4028234663852886e38, 1.1754943508222875e-38, 1e-6, "float32"],
  ],
  ["float16", [16, 0.0009765625, 65504, -65504, 6.103515625e-5, 0.001, "float16"]],
  [
    "bfloat16",
    [16, 0.0078125, 3.3895313892515355e38, -3.3895313892515355e38, 1.1754943508222875e-38, 0.01, "bfloat16"],
  ],
  [
    "complex64",
    [32, 1.1920928955078125e-7, 3.4028234663852886e38, -3.4028234663852886e38, 1.1754943508222875e-38, 1e-6, "float32"],
  ],
  [
    "complex128",
    [
      64,
      2.220446049250313e-16,
      1.7976931348623157e308,
      -1.7976931348623157e308,
      2.2250738585072014e-308,
      1e-15,
      "float64",
    ],
  ],
  ["float8_e4m3fn", [8, 0.125, 448, -448, 0.015625, 1, "float8_e4m3fn"]],
  ["float8_e5m2", [8, 0.25, 57344, -57344, 6.103515625e-5, 1, "float8_e5m2"]],
  ["float8_e4m3fnuz", [8, 0.125, 240, -240, 0.0078125, 1, "float8_e4m3fnuz"]],
  ["float8_e5m2fnuz", [8, 0.25, 57344, -57344, 3.0517578125e-5, 1, "float8_e5m2fnuz"]],
  ["float8_e8m0fnu", [8, 1, 1.7014118346046923e38, 5.877471754111438e-39, 5.877471754111438e-39, 1, "float8_e8m0fnu"]],
];

describe("finfo", () => {
  test.each(FLOATS)("of %s is PyTorch's", (dtype, want) => {
    const it = torch.finfo(dtype);
    expect([it.bits, it.eps, it.max, it.min, it.tiny, it.resolution, it.dtype]).toEqual(want);
    expect(it.smallestNormal).toBe(it.tiny);
  });

  test("is of float32 where nothing else is said, and takes constants", () => {
    expect(torch.finfo()).toEqual(torch.finfo(torch.float32));
  });

  test("refuses integers and traced values", () => {
    expect(thrown(() => torch.finfo(torch.int8)).kind).toBe("DTypeMismatch");
    expect(thrown(() => symbolicTrace((x: Tensor) => x.add(torch.finfo(x.dtype).eps))).message).toContain(
      "torch.finfo() takes a dtype",
    );
  });
});

describe("iinfo", () => {
  test.each([
    ["uint8", 8, 255, 0],
    ["int8", 8, 127, -128],
    ["uint16", 16, 65535, 0],
    ["int16", 16, 32767, -32768],
    ["uint32", 32, 4294967295, 0],
    ["int32", 32, 2147483647, -2147483648],
    ["uint64", 64, 18446744073709551615n, 0n],
    ["int64", 64, 9223372036854775807n, -9223372036854775808n],
  ] as const)("of %s is PyTorch's", (dtype, bits, max, min) => {
    expect(torch.iinfo(dtype)).toEqual({ dtype, bits, max, min });
  });

  test("refuses everything else", () => {
    expect(thrown(() => torch.iinfo(torch.bool)).message).toContain("torch.bool is not supported by torch.iinfo");
    expect(thrown(() => torch.iinfo(torch.float32)).help).toContain("torch.finfo");
  });
});
