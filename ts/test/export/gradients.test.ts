/**
 * Gradients of functions of one operator, against what `torch.autograd.grad` gave for it: `tests/oracle/gen_gradients.py`. Changes
 * (`jvp`) are held to them: what a change of the arguments does to the results is what the gradients say of it.
 */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { decode } from "../../../tests/conformance/values.mjs";
import { callOperator } from "../../src/engine/dispatch.ts";
import { func, FxError, init, readSafetensors, Tensor, torch } from "../../src/index.ts";

beforeAll(() => init());

type Json = null | boolean | string | number | Json[] | { [key: string]: Json };

interface Case {
  readonly op: string;
  readonly args: Json[];
  readonly kwargs: { [key: string]: Json };
  readonly grads: Json[];
  readonly result: Json[];
}

const FOLDER = new URL("../../../tests/fixtures/gradients/", import.meta.url);
const cases = readFileSync(new URL("cases.jsonl", FOLDER), "utf8").trimEnd().split("\n");
const first = new Map(
  cases
    .map((it) => JSON.parse(it) as Case)
    .toReversed()
    .map((it) => [it.op, it]),
);

/** Gradients that differ, as `crates/cpu/tests/it/gradients.rs` has them: of what is not read, and of what lies twice in memory. */
const DIFFERENT = new Set([
  "aten.cholesky_solve.default",
  "aten.cholesky_inverse.default",
  "aten.as_strided_scatter.default",
]);

/** A recorded value; tensors are stored flat. */
function valueOf(it: Json, tensors: ReadonlyMap<string, Tensor>): unknown {
  const value = decode(it, tensors) as unknown;
  const record = typeof it === "object" && it !== null && !Array.isArray(it) ? it : {};
  const size = record["size"] as number[] | undefined;
  if (!(value instanceof Tensor) || !Array.isArray(size)) return value;
  const isInParts = String(record["dtype"]).startsWith("complex") && !value.isComplex();
  if (isInParts) return torch.viewAsComplex(value.reshape([...size, 2]));
  return value.ndim === size.length ? value : value.reshape(size);
}

/** The formulas of second derivatives that are not there are refused by name. */
function unlessMissing<T>(body: () => T): T | undefined {
  try {
    return body();
  } catch (error) {
    if (error instanceof FxError && error.kind === "NotImplemented") return undefined;
    throw error;
  }
}

function isSame(x: number, y: number): boolean {
  return (Number.isNaN(x) && Number.isNaN(y)) || Math.abs(x - y) <= 1e-3 * (1 + Math.abs(y));
}

/** The parts of complex numbers are numbers of their own: what gradients are of. */
function partsOf(it: Tensor): Tensor {
  return it.isComplex() ? torch.viewAsReal(it.resolveConj()) : it;
}

function isNear(a: Tensor, b: Tensor): boolean {
  if (a.dtype !== b.dtype) return false;
  const [got, wanted] = [partsOf(a).toFloat32Array(), partsOf(b).toFloat32Array()];
  if (got.length !== wanted.length) return false;
  return got.every((it, at) => it === wanted[at] || isSame(it, wanted[at] as number));
}

function inner(a: readonly (Tensor | null)[], b: readonly Tensor[]): number {
  return a.reduce(
    (sum, it, at) =>
      sum +
      (it === null
        ? 0
        : Number(
            partsOf(it)
              .mul(partsOf(b[at] as Tensor))
              .sum()
              .item(),
          )),
    0,
  );
}

/** Results that have gradients. */
function floatsOf(value: unknown): unknown[] {
  const results = Array.isArray(value) ? (value as unknown[]) : [value];
  return results.filter((it) => it instanceof Tensor && (it.isFloatingPoint() || it.isComplex()));
}

const counts = { gradients: 0, changes: 0 };

describe("gradients of operators", () => {
  const { tensors } = readSafetensors(readFileSync(new URL("cases.safetensors", FOLDER)));
  const compared = [...first].filter(([op]) => !DIFFERENT.has(op) && !/_\.\w+$/.test(op));
  test.each(compared)("%s", (op, { args, kwargs, grads, result }) => {
    const given = args.map((it) => valueOf(it, tensors));
    const named = Object.fromEntries(Object.entries(kwargs).map(([key, it]) => [key, valueOf(it, tensors)]));
    const cotangents = grads.map((it) => valueOf(it, tensors));
    const wanted = result.map((it) => valueOf(it, tensors));
    const places = given.flatMap((it, at) => (it instanceof Tensor && wanted[at] instanceof Tensor ? [at] : []));
    const areGiven = cotangents.every((it) => it instanceof Tensor);
    if (!areGiven || places.length === 0) return;
    const f = (...leaves: unknown[]): unknown => {
      const value = callOperator(
        op,
        given.map((it, at) => (places.includes(at) ? leaves[places.indexOf(at)] : it)),
        named,
      );
      return floatsOf(value).slice(0, cotangents.length);
    };
    const primals = places.map((at) => given[at] as Tensor);
    const pulled = unlessMissing(() => {
      const [outputs, pullBack] = func.vjp(f as never, primals);
      return (outputs as unknown[]).length === cotangents.length ? pullBack(cotangents) : undefined;
    });
    if (pulled === undefined) return;
    counts.gradients += 1;
    for (const [at, place] of places.entries()) {
      const [got, expected] = [pulled[at], wanted[place]] as [Tensor, Tensor];
      expect(isNear(got, expected), `argument ${place}: ${String(got)} instead of ${String(expected)}`).toBe(true);
    }
    const tangents = primals.map((it) => torch.fullLike(it, 0.5));
    const pushed = unlessMissing(() => func.jvp(f as never, primals, tangents)[1] as Tensor[]);
    if (pushed === undefined) return;
    counts.changes += 1;
    const [change, said] = [inner(pushed, cotangents as Tensor[]), inner(pulled as Tensor[], tangents)];
    if (!Number.isFinite(change) || !Number.isFinite(said)) return;
    expect(Math.abs(change - said), `${change} instead of ${said}`).toBeLessThanOrEqual(1e-3 * (1 + Math.abs(said)));
  });

  test("are many", () => {
    expect(counts).toEqual({ gradients: 456, changes: 448 });
  });
});
