import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { builtins, math, operator } from "../../src/index.ts";
import { init } from "../../src/engine/engine.ts";
import { FxError } from "../../src/base/errors.ts";
import { slice } from "../../src/graph/args.ts";
import { camelCase } from "../../src/base/naming.ts";
import { equal } from "../../src/functions/richCompare.ts";
import { pythonRepr } from "../../src/functions/text.ts";
import { callFunction } from "../../src/functions/table.ts";
import { Complex, Ellipsis, Float, type Slice, ValueTuple } from "../../src/base/values.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { decode as decodeTensor, difference, type Encoded } from "../torch/functional/cases.ts";

interface Call {
  readonly target: string;
  readonly args: readonly unknown[];
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: { readonly type: string; readonly message: string };
  readonly after?: unknown;
}

beforeAll(() => init());

const CALLS = readFileSync(new URL("../../../tests/fixtures/python/calls.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Call);

function decode(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decode);
  if (typeof value !== "object" || value === null) return value;
  const [[kind, it]] = Object.entries(value) as [[string, unknown]];
  switch (kind) {
    case "int":
      return BigInt(it as string);
    case "complex": {
      const [re, im] = (it as unknown[]).map((part) => Number(numberOf(decode(part)))) as [number, number];
      return new Complex(re, im);
    }
    case "dict":
      return Object.fromEntries((it as [string, unknown][]).map(([key, item]) => [key, decode(item)]));
    case "slice": {
      const [start, stop, step] = (it as unknown[]).map(decode) as [number, number, number];
      return slice(start, stop, step) satisfies Slice;
    }
    case "ellipsis":
      return Ellipsis;
    case "tuple":
      return ValueTuple.frozen((it as unknown[]).map(decode));
    default:
      return decodeTensor(value as Encoded);
  }
}

function numberOf(value: unknown): unknown {
  return value instanceof Float ? value.value : value;
}

/** Functions whose last digit is not the same in every library of mathematics. */
const ROUNDED = /^math\.|pow|complex/;

function isNear(left: number, right: number): boolean {
  return Math.abs(left - right) <= 1e-14 * Math.abs(right);
}

/** What is wrong with a result; `undefined` where nothing is. */
function wrong(target: string, actual: unknown, expected: unknown): string | undefined {
  if (expected instanceof Tensor) return difference(actual, expected);
  if (Array.isArray(expected) && expected.some((it) => it instanceof Tensor)) return difference(actual, expected);
  const [a, b] = [actual, expected].map(pythonRepr);
  if (a === b) return undefined;
  const [x, y] = [numberOf(actual), numberOf(expected)];
  if (typeof x === "number" && typeof y === "number" && ROUNDED.test(target) && isNear(x, y)) return undefined;
  if (actual instanceof Complex && expected instanceof Complex) {
    const size = Math.hypot(expected.re, expected.im);
    if (Math.hypot(actual.re - expected.re, actual.im - expected.im) <= 1e-13 * size) return undefined;
    if (equal(actual, expected)) return undefined;
  }
  return `gave ${a} instead of ${b}`;
}

/** What PyTorch has no kernels for, and the engine has; and where a tensor of Python is less than a number. */
const REFUSED_THERE = /not implemented for 'Bool'|doesn't define __round__/;

/** What is wrong with a call; `undefined` where nothing is. */
function problem({ target, args: encoded, kwargs = {}, ...expected }: Call): string | undefined {
  const args = encoded.map(decode);
  const options = Object.fromEntries(Object.entries(kwargs).map(([name, it]) => [name, decode(it)]));
  let result: unknown;
  try {
    result = callFunction(target, { args, kwargs: options });
  } catch (error) {
    if (!(error instanceof FxError) || error.kind === "Internal") return `threw ${String(error)}`;
    return expected.error === undefined ? `threw ${error.message}` : undefined;
  }
  if (expected.error !== undefined && REFUSED_THERE.test(expected.error.message)) return undefined;
  if (expected.error !== undefined) return `gave ${pythonRepr(result)} instead of ${expected.error.message}`;
  const found = wrong(target, result, decode(expected.result));
  if (found !== undefined || expected.after === undefined) return found;
  return wrong(target, args[0], decode(expected.after));
}

describe("calls give what Python gives", () => {
  const targets = [...new Set(CALLS.map((it) => it.target))];
  test.each(targets)("%s", (target) => {
    const problems = CALLS.filter((it) => it.target === target).flatMap((it) => {
      const found = problem(it);
      return found === undefined ? [] : [`${JSON.stringify([it.args, it.kwargs]).slice(0, 200)}: ${found}`];
    });
    expect(problems).toEqual([]);
  });
});

test("the functions are exported by their names", () => {
  const modules: Record<string, object> = { operator, math, builtins };
  for (const { target } of CALLS) {
    const [module = "", name = ""] = target.split(".");
    expect(modules[module], target).toHaveProperty(camelCase(name));
  }
});
