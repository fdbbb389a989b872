import { expect, test } from "vitest";
import { callFunction, defineFunction } from "../../src/functions/table.ts";
import { defineBound } from "../../src/functions/bound.ts";
import { RECORDER, type Recorder } from "../../src/record/record.ts";

/** A traced value whose recorder gives back what it was told. */
function traced(): { value: never } {
  const recorder: Recorder = { createProxy: (op, target, args, kwargs) => ({ op, target, args, kwargs }) };
  return { value: Object.assign(() => undefined, { [RECORDER]: recorder }) as never };
}

const scale = defineBound<[input: number, by?: number, offset?: number], { by?: number; offset?: number }, number>(
  "test.scale",
  "(input, by=2, offset=0)",
  (input, by, offset) => input * by + offset,
);

test("options may take the place of any arguments on the right", () => {
  expect(scale(3)).toBe(6);
  expect(scale(3, 4, 1)).toBe(13);
  expect(scale(3, { offset: 1 })).toBe(7);
  expect(scale(3, 4, { offset: 1 })).toBe(13);
  expect(callFunction("test.scale", { args: [3], kwargs: { offset: 1 } })).toBe(7);
});

test("unknown options and missing arguments are refused by name", () => {
  // @ts-expect-error there is no such option
  expect(() => scale(3, { of: 1 })).toThrow("scale() got an unexpected keyword argument 'of'");
  // @ts-expect-error the input is missing
  expect(() => scale()).toThrow("scale() missing 1 required positional argument: 'input'");
});

test("a call is recorded as it was made, or as the function says", () => {
  const { value } = traced();
  expect(scale(value, { offset: 1 })).toEqual({
    op: "call_function",
    target: "test.scale",
    args: [value],
    kwargs: { offset: 1 },
  });
  const named = defineBound<[input: number, by?: number], object, unknown>("test.named", "(input, by=2)", () => 0, {
    record: (recorder, [input, by]) => recorder.createProxy("call_method", "mul", [input, by], {}),
  });
  expect(named(value)).toEqual({ op: "call_method", target: "mul", args: [value, 2], kwargs: {} });
});

test("a function without keyword arguments takes an object at the end as it is", () => {
  const second = defineFunction("test.second", (_: unknown, it: unknown) => it, { signature: "(a, b, /)" });
  const { value } = traced();
  expect(second(value, { key: 1 })).toMatchObject({ args: [value, { key: 1 }], kwargs: {} });
  expect(callFunction("test.second", { args: [1, { key: 1 }], kwargs: {} })).toEqual({ key: 1 });
  expect(() => callFunction("test.second", { args: [1], kwargs: { b: 1 } })).toThrow("takes no keyword arguments");
});

test("a dict at the end is not taken for options", () => {
  const given: unknown[] = [];
  const last = defineBound<[it: unknown], object, void>("test.dict", "(it)", (it) => void given.push(it));
  callFunction("test.dict", { args: [{ it: 1 }], kwargs: {} });
  last({ it: 2 }, {});
  expect(given).toEqual([{ it: 1 }, { it: 2 }]);
});
