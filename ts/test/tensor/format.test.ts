import { describe, expect, test } from "vitest";
import type { DType } from "../../../bindings/dtypes.ts";
import { tensorFromBytes } from "../../src/tensor/construct.ts";
import { cases } from "./corpus.ts";

interface Case {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: number[];
  readonly bytes: string;
  readonly text: string;
}

describe("str(tensor) as PyTorch prints it", () => {
  test.each(cases<Case>("print"))("$name", ({ dtype, shape, bytes, text }) => {
    expect(tensorFromBytes(Buffer.from(bytes, "base64"), dtype, shape).toString()).toBe(text);
  });
});
