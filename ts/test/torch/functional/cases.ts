import { readFileSync } from "node:fs";
import type { DType } from "../../../../bindings/dtypes.ts";
import { camelCase } from "../../../src/base/naming.ts";
import { dtype, float, ValueTuple } from "../../../src/base/values.ts";
import { tensorFromBytes } from "../../../src/tensor/construct.ts";
import { Tensor } from "../../../src/tensor/tensor.ts";
import * as F from "../../../src/torch/functional/index.ts";

/** A value of a case, as `tests/oracle/gen_functional.py` writes it. */
export type Encoded =
  | null
  | boolean
  | number
  | string
  | readonly Encoded[]
  | { readonly tensor: DType; readonly shape: number[]; readonly data: string }
  | { readonly float: string }
  | { readonly dtype: DType }
  | { readonly tuple: readonly Encoded[] };

/** A call of a function of `torch.nn.functional`, and what PyTorch gives. */
export interface Case {
  readonly fn: string;
  readonly args: readonly Encoded[];
  readonly kwargs: Readonly<Record<string, Encoded>>;
  /** What the random numbers of the call start with. */
  readonly seed?: number;
  readonly result?: Encoded;
  readonly error?: { readonly type: string; readonly message: string };
  /** The first argument after the call, where it changed. */
  readonly after?: Encoded;
  /** The second and the third argument after the call, where they changed. */
  readonly after1?: Encoded;
  readonly after2?: Encoded;
  /** What torch.fx prints of the node that it records. */
  readonly recorded?: string;
}

/** All cases. */
export const CASES: readonly Case[] = readFileSync(
  new URL("../../../../tests/fixtures/functional/cases.jsonl", import.meta.url),
  "utf8",
)
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Case);

/** The value, with each tensor as `wrap` makes it. */
export function decode(value: Encoded, wrap: (tensor: Tensor) => unknown = (it) => it): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((it) => decode(it as Encoded, wrap));
  if ("tensor" in value) {
    return wrap(tensorFromBytes(Buffer.from(value.data, "base64"), value.tensor, value.shape));
  }
  if ("float" in value) return float(Number(value.float.replace("inf", "Infinity")));
  if ("dtype" in value) return dtype(value.dtype);
  if ("tuple" in value) return ValueTuple.frozen(value.tuple.map((it) => decode(it, wrap)));
  throw new Error("no value of a case");
}

/** Calls the function of a case with these arguments. */
export function callCase({ fn, kwargs }: Case, args: readonly unknown[], wrap?: (tensor: Tensor) => unknown): unknown {
  const functions = F as unknown as Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;
  const options = Object.entries(kwargs).map(([name, value]) => [camelCase(name), decode(value, wrap)]);
  const call = functions[camelCase(fn)];
  if (call === undefined) throw new Error(`there is no F.${camelCase(fn)}`);
  return options.length === 0 ? call(...args) : call(...args, Object.fromEntries(options));
}

/** How far elements may be apart, relatively and absolutely. */
const TOLERANCES: Partial<Record<DType, readonly [number, number]>> = {
  float64: [1e-7, 1e-7],
  float32: [1.3e-6, 1e-5],
  float16: [1e-3, 1e-3],
  bfloat16: [1.6e-2, 1e-5],
};

/** What is wrong with a result; `undefined` where nothing is. */
export function difference(actual: unknown, expected: unknown): string | undefined {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return `${String(actual)} has other items`;
    for (const [at, it] of expected.entries()) {
      const found = difference(actual[at], it);
      if (found !== undefined) return `item ${at}: ${found}`;
    }
    return undefined;
  }
  if (!(expected instanceof Tensor))
    return Object.is(actual, expected) ? undefined : `${String(actual)} is another value`;
  if (!(actual instanceof Tensor)) return `${String(actual)} is no tensor`;
  const [kind, wanted] = [actual, expected].map((it) => `${it.dtype}[${it.shape.join(", ")}]`);
  if (kind !== wanted) return `${kind} instead of ${wanted}`;
  const [relative, absolute] = TOLERANCES[expected.dtype] ?? [0, 0];
  const [left, right] = [actual, expected].map((it) => [it.toArray()].flat(64 as 1).map(Number));
  for (const [at, it] of (right as number[]).entries()) {
    const found = (left as number[])[at] as number;
    const isClose = Object.is(found, it) || found === it || Math.abs(found - it) <= absolute + relative * Math.abs(it);
    if (!isClose) return `element ${at} is ${found} instead of ${it}`;
  }
  return undefined;
}
