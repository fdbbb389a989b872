/**
 * The operator cases that PyTorch recorded, called as users call them: `torch.add(x, y)` and `x.add(y)`. How near the
 * results must be is decided in Rust, where the same cases run with the tolerance of each operator; here it is enough that
 * the call reaches the operator with the arguments that were given.
 */
import { readdirSync, readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { FUNCTIONS } from "../../../bindings/functions.ts";
import { METHODS, SELF_POSITIONS } from "../../../bindings/methods.ts";
import { decode } from "../../../tests/conformance/values.mjs";
import { camelCase } from "../../src/base/naming.ts";
import { FxError, init, readSafetensors, Tensor, torch } from "../../src/index.ts";

beforeAll(() => init());

type Json = null | boolean | string | number | Json[] | { [key: string]: Json };

interface Case {
  readonly op: string;
  readonly args: Json[];
  readonly kwargs: { [key: string]: Json };
  readonly result: Json;
  readonly error?: string | null;
}

type AnyFunction = (...args: unknown[]) => unknown;

/** Operators whose results are of chance, or of memory that nobody wrote. */
const NOT_COMPARED =
  /^aten\.(empty|new_empty|empty_like|bernoulli|rand|normal|uniform|dropout|rrelu|alpha_dropout|native_dropout)/;

/** In half precision PyTorch gives NaN where the exponential of a matrix is a number. */
const BETTER_HERE = /^aten\.(linalg_)?matrix_exp\.default$/;

const folder = new URL("../../../tests/fixtures/opcases/", import.meta.url);
const names = readdirSync(folder).filter((it) => it.endsWith(".jsonl"));

/** Where a packet is offered: functions by namespace, and methods. */
function routes(
  op: string,
  isMethod: boolean,
): readonly (readonly [route: string, call: (args: unknown[]) => unknown])[] {
  const packet = op.split(".")[1] as string;
  const res: (readonly [string, (args: unknown[]) => unknown])[] = [];
  const spaces = { torch, special: torch.special, linalg: torch.linalg, fft: torch.fft, nn: torch._C._nn };
  for (const [space, prefix] of [
    ["torch", ""],
    ["special", "special_"],
    ["linalg", "linalg_"],
    ["fft", "fft_"],
    ["nn", ""],
  ] as const) {
    if (!packet.startsWith(prefix)) continue;
    const name = packet.slice(prefix.length);
    if (!FUNCTIONS[space].includes(name)) continue;
    const call = (spaces[space] as unknown as Record<string, AnyFunction>)[camelCase(name)];
    res.push([`${space}.${name}`, (args) => (call as AnyFunction)(...args)]);
  }
  if (isMethod && METHODS.includes(packet)) {
    res.push([
      `Tensor.${packet}`,
      (args) => {
        const at = SELF_POSITIONS[packet] ?? 0;
        const method = Reflect.get(args[at] as Tensor, camelCase(packet)) as AnyFunction;
        return method.apply(args[at], args.toSpliced(at, 1));
      },
    ]);
  }
  return res;
}

/** Whether two results are the same but for rounding. */
function isClose(got: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return Array.isArray(got) && got.length === wanted.length && wanted.every((it, at) => isClose(got[at], it));
  }
  if (wanted instanceof Tensor) {
    if (!(got instanceof Tensor) || got.dtype !== wanted.dtype || got.shape.join() !== wanted.shape.join())
      return false;
    if (!got.isFloatingPoint()) return got.data.toString() === wanted.data.toString();
    const [a, b] = [got.toFloat32Array(), wanted.toFloat32Array()];
    const bound = got.itemsize === 2 ? 0.05 : 1e-3;
    return a.every((it, at) => isNear(it, b[at] as number, bound));
  }
  if (wanted !== null && typeof wanted === "object" && "value" in wanted)
    return isNear(got as number, wanted.value as number, 1e-6);
  return got === wanted;
}

function isNear(got: number, wanted: number, bound: number): boolean {
  return Object.is(got, wanted) || got === wanted || Math.abs(got - wanted) <= bound * (1 + Math.abs(wanted));
}

function show(it: unknown): string {
  return Array.isArray(it) ? `[${it.map(show).join(", ")}]` : String(it);
}

let compared = 0;

describe("recorded operator cases, called as users call them", () => {
  test.each(names)("%s", (name) => {
    const cases = readFileSync(new URL(name, folder), "utf8").trimEnd().split("\n");
    const op = (JSON.parse(cases[0] as string) as Case).op;
    if (NOT_COMPARED.test(op)) return;
    const { tensors } = readSafetensors(readFileSync(new URL(name.replace(/jsonl$/, "safetensors"), folder)));
    for (const line of cases) {
      const recorded = JSON.parse(line) as Case;
      if (recorded.error !== undefined && recorded.error !== null) continue;
      if (BETTER_HERE.test(op) && line.includes('float16"')) continue;
      const first = decode(recorded.args[0] ?? null, tensors);
      for (const [route, call] of routes(op, first instanceof Tensor)) {
        const args = recorded.args.map((it) => decode(it, tensors));
        const options = Object.entries(recorded.kwargs).map(
          ([key, it]) => [camelCase(key), decode(it, tensors)] as const,
        );
        if (options.length > 0) args.push(Object.fromEntries(options));
        let got: unknown;
        try {
          got = call(args);
        } catch (error) {
          if (error instanceof FxError && error.kind === "NotImplemented") continue;
          throw new Error(`${route} refuses ${line}\n${String(error)}`, { cause: error });
        }
        compared += 1;
        const wanted = decode(recorded.result, tensors);
        expect(isClose(got, wanted), `${route} of ${line}\ngave ${show(got)}\nnot ${show(wanted)}`).toBe(true);
      }
    }
  });

  test("are many", () => {
    expect(compared).toBeGreaterThan(9000);
  });
});
