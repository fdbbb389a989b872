import { expect, test } from "vitest";
import { isMember, memberOf } from "../../src/base/members.ts";
import { callMethod } from "../../src/functions/methods.ts";

test("a graph reaches members by PyTorch's name or JavaScript's", () => {
  const value = { keepDim: 1, keep_all: 2, plus: (it: number) => it + 1 };
  expect([memberOf(value, "keep_dim"), memberOf(value, "keep_all"), memberOf(null, "x")]).toEqual([1, 2, undefined]);
  expect(callMethod("plus", value, { args: [1], kwargs: {} })).toBe(2);
});

test("a graph does not reach the constructors of JavaScript", () => {
  const hidden = [
    "constructor",
    "__proto__",
    "prototype",
    "__defineGetter__",
    "caller",
    "has_own_property",
    "value_of",
  ];
  for (const name of hidden) {
    expect(isMember(name), name).toBe(false);
    for (const value of [{}, [], () => 1, 1, "text"]) {
      expect(memberOf(value, name), name).toBe(undefined);
      expect(() => callMethod(name, value, { args: ["return 1"], kwargs: {} })).toThrow(
        expect.objectContaining({ kind: "AttributeMissing" }),
      );
    }
  }
});
