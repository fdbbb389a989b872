/** Reads the tensors that PyTorch recorded. */
import { readFileSync } from "node:fs";

/** The cases of one kind; `T` is what a line holds. */
export function cases<T>(kind: string): T[] {
  const text = readFileSync(new URL(`../../../tests/fixtures/tensors/${kind}.jsonl`, import.meta.url), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);
}

/** A float64 written as its bytes in hexadecimal, most significant first. */
export function float64(hex: string): number {
  return Buffer.from(hex, "hex").readDoubleBE();
}
