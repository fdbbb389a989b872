/** The recorded programs that the tests open. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { load } from "../../src/export/load.ts";
import type { ExportedProgram } from "../../src/export/exportedProgram.ts";
import { FxError } from "../../src/base/errors.ts";
import { readSafetensors } from "../../src/tensor/safetensors.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";

/** Where a file of a recorded program is. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../../../tests/fixtures/programs/${name}`, import.meta.url));
}

/** The bytes of a file of a recorded program. */
export function bytesOf(name: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(readFileSync(fixture(name)));
}

/** A recorded program. */
export async function open(name: string): Promise<ExportedProgram> {
  return await load(bytesOf(`${name}/model.pt2`));
}

/** The tensors of a file of a recorded program. */
export function tensorsOf(name: string): Map<string, Tensor> {
  return readSafetensors(bytesOf(name)).tensors;
}

/** What `body` refuses; anything else that it throws passes. */
export async function refusal(body: () => unknown): Promise<FxError> {
  try {
    await body();
  } catch (error) {
    if (error instanceof FxError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

/** The largest difference between two tensors of numbers. */
export function largestDifference(a: Tensor, b: Tensor): number {
  const [x, y] = [a.toFloat32Array(), b.toFloat32Array()];
  if (x.length !== y.length) return Number.POSITIVE_INFINITY;
  return x.reduce((most, it, at) => Math.max(most, Math.abs(it - (y[at] as number))), 0);
}
