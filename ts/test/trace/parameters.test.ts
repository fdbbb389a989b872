import { describe, expect, test } from "vitest";
import { float, tuple } from "../../src/index.ts";
import { formatArg } from "../../src/graph/print.ts";
import { freezeArg } from "../../src/graph/args.ts";
import { functionSignature } from "../../src/trace/analysis/signature.ts";

const torch = { float16: 0 };

/** The default of the first parameter, as a graph prints it. */
function defaultOf(fn: Function): string {
  const signature = functionSignature(fn);
  if (typeof signature === "string") return signature;
  const given = signature.params[0]?.default;
  if (given === undefined) return "none";
  return given.value === undefined ? `${given.isConstant}` : formatArg(freezeArg(given.value));
}

/** The properties that the first parameter takes, with their defaults. */
function propertiesOf(fn: Function): unknown {
  const signature = functionSignature(fn);
  if (typeof signature === "string") return signature;
  return signature.params[0]?.properties?.map((it) => [it.key, it.default?.value]);
}

describe("parameters", () => {
  test.each<[Function, string]>([
    [(x = float(2)) => x, "2.0"],
    [(x = -1.5e3) => x, "-1500"],
    [(x = 2n ** 3n) => x, "false"],
    [(x = -9007199254740993n) => x, "-9007199254740993"],
    [(x = [1, "two", [null]]) => x, "[1, two, [None]]"],
    [(x = tuple(1, float(2))) => x, "(1, 2.0)"],
    [(x = { a: 1, "b c": [true] }) => x, "{a: 1, b c: [True]}"],
    [(x = torch.float16) => x, "torch.float16"],
    [(x = -Infinity) => x, "-inf"],
    [(x = `text`) => x, "text"],
    [(x = undefined) => x, "true"],
    [(x = null) => x, "None"],
    [(x = [1, Math.random()]) => x, "false"],
    [(x = { ...torch }) => x, "false"],
    [(x = /a/) => x, "false"],
    [(x = !1) => x, "False"],
  ])("have the value of a default that is written out: %s", (fn, expected) => {
    expect(defaultOf(fn)).toBe(expected);
  });

  test("of an object pattern are its properties, where it names them all", () => {
    type Given = { alpha?: unknown; beta?: number; c?: number[]; d?: { e: number } };
    expect(
      propertiesOf(({ alpha, beta: b = 2, ["c"]: [c] = [3], d: { e } = { e: 4 } }: Given = {}) => [alpha, b, c, e]),
    ).toEqual([
      ["alpha", undefined],
      ["beta", 2],
      ["c", [3]],
      ["d", freezeArg({ e: 4 })],
    ]);
    expect(propertiesOf(({ a, ...rest }: Record<string, unknown>) => [a, rest])).toBeUndefined();
    expect(propertiesOf(({ [`${torch.float16}`]: a }: Record<string, unknown>) => a)).toBeUndefined();
    expect(propertiesOf(([a]: unknown[]) => a)).toBeUndefined();
  });
});
