import { describe, expect, test } from "vitest";
import { freezeArg, tuple } from "../../src/graph/args.ts";
import { dtype, float } from "../../src/base/values.ts";
import { bind, parseSignature } from "../../src/functions/signature.ts";

describe("reading a parameter list", () => {
  test("finds names, kinds and defaults", () => {
    expect(parseSignature("(a, b, /, c=1, *rest, d, e=None, **more)")).toEqual([
      { name: "a", kind: "positional", default: undefined },
      { name: "b", kind: "positional", default: undefined },
      { name: "c", kind: "positional-or-keyword", default: 1 },
      { name: "rest", kind: "rest", default: undefined },
      { name: "d", kind: "keyword", default: undefined },
      { name: "e", kind: "keyword", default: null },
      { name: "more", kind: "options", default: undefined },
    ]);
    expect(parseSignature("(*, eps=1e-05)")).toEqual([{ name: "eps", kind: "keyword", default: 1e-5 }]);
    expect(parseSignature("()")).toEqual([]);
  });

  test.each([
    ["None", null],
    ["True", true],
    ["False", false],
    ["-100", -100],
    ["2.0", float(2)],
    ["-1.0", float(-1)],
    ["0.3333333333333333", 1 / 3],
    ["1e-12", 1e-12],
    ["9007199254740993", 9007199254740993n],
    ["inf", Number.POSITIVE_INFINITY],
    ["-inf", Number.NEGATIVE_INFINITY],
    ["'mean'", "mean"],
    [String.raw`"it's \"x\""`, `it's "x"`],
    ["()", tuple()],
    ["(1, (2.0,))", tuple(1, tuple(float(2)))],
    ["[0, 1]", freezeArg([0, 1])],
    ["torch.bfloat16", dtype("bfloat16")],
  ])("reads the default %s", (text, value) => {
    const [parameter] = parseSignature(`(x=${text})`);
    expect(parameter?.default).toEqual(value);
  });

  test.each(["", "x", "(x", "(x))", "(1)", "(x=)", "(x=f())", "(/)", "(x: int)", "(x=$)", "(**a, b)"])(
    "refuses %j",
    (text) => {
      expect(() => parseSignature(text)).toThrow("is not a parameter list");
    },
  );
});

function bound(text: string, args: readonly unknown[], kwargs: Record<string, unknown> = {}): unknown[] {
  return bind(parseSignature(text), "f", { args, kwargs });
}

describe("binding arguments", () => {
  test("puts arguments in their places and fills in defaults", () => {
    expect(bound("(a, b=2, *, c=3)", [1])).toEqual([1, 2, 3]);
    expect(bound("(a, b=2, *, c=3)", [1], { c: 4 })).toEqual([1, 2, 4]);
    expect(bound("(a, b=2)", [], { b: 5, a: 1 })).toEqual([1, 5]);
    expect(bound("(a, b=2)", [1, null])).toEqual([1, null]);
    expect(bound("(a, b=2)", [1, undefined])).toEqual([1, 2]);
    expect(bound("(a, *rest)", [1, 2, 3])).toEqual([1, [2, 3]]);
    expect(bound("(a, /, **more)", [1], { a: 2, b: 3 })).toEqual([1, { a: 2, b: 3 }]);
  });

  test.each<[string, unknown[], Record<string, unknown>, string]>([
    ["(a, b)", [], {}, "f() missing 2 required positional arguments: 'a' and 'b'"],
    ["(a, b, c)", [], {}, "f() missing 3 required positional arguments: 'a', 'b', and 'c'"],
    ["(a, *, b)", [1], {}, "f() missing 1 required keyword-only argument: 'b'"],
    ["(a)", [1, 2], {}, "f() takes 1 positional argument but 2 were given"],
    ["(a, b=1)", [1, 2, 3], {}, "f() takes from 1 to 2 positional arguments but 3 were given"],
    ["()", [1], {}, "f() takes 0 positional arguments but 1 was given"],
    ["(a)", [1], { a: 2 }, "f() got multiple values for argument 'a'"],
    ["(a)", [1], { b: 2 }, "f() got an unexpected keyword argument 'b'"],
    ["(a, /)", [], { a: 2 }, "f() got an unexpected keyword argument 'a'"],
  ])("%s refuses %j %j", (text, args, kwargs, reason) => {
    expect(() => bound(text, args, kwargs)).toThrow(reason);
  });

  test("says which names there are", () => {
    expect(() => bound("(input, dim=None)", [1], { dims: 1 })).toThrow("it takes input, dim");
  });
});
