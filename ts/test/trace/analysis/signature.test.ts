import { runInThisContext } from "node:vm";
import { describe, expect, it } from "vitest";
import type { Unparsed } from "../../../src/trace/analysis/parse.ts";
import { type FunctionSignature, functionSignature } from "../../../src/trace/analysis/signature.ts";

/** The parameters in one line each: `name`, `...name`, `{name}`, with ` = source` and `!` behind a constant default. */
function params(fn: Function): string {
  const signature = functionSignature(fn);
  if (typeof signature === "string") return signature;
  const lines = signature.params.map((param) => {
    const name = param.kind === "rest" ? `...${param.name}` : param.kind === "pattern" ? `{${param.name}}` : param.name;
    return param.default === undefined
      ? name
      : `${name} = ${param.default.source}${param.default.isConstant ? "!" : ""}`;
  });
  return lines.join(", ");
}

function flags(fn: Function): Unparsed | Omit<FunctionSignature, "params" | "readsArguments"> {
  const signature = functionSignature(fn);
  if (typeof signature === "string") return signature;
  const { isAsync, isGenerator, isMethod } = signature;
  return { isAsync, isGenerator, isMethod };
}

function reads(source: string): unknown {
  const signature = functionSignature(runInThisContext(`(${source})`) as Function);
  return typeof signature === "string" ? signature : signature.readsArguments;
}

const key = Symbol("key");

class Base {
  name() {
    return "every";
  }
}

class Every extends Base {
  static make(a: number) {
    return a;
  }
  field = (a: number, b = [1]) => [a, b];
  forward(x: number, y = null) {
    return [x, y];
  }
  async wait(x: number) {
    return x;
  }
  *parts(x: number) {
    yield x;
  }
  async *stream(x: number) {
    yield x;
  }
  [key](x: number) {
    return this.#hidden(x);
  }
  #hidden(x: number) {
    return super.name() + x;
  }
  get hidden() {
    return this.#hidden;
  }
  async(x: number) {
    return x;
  }
  get(x: number) {
    return x;
  }
  "quoted name"(x: number) {
    return x;
  }
}

const every = new Every();

const FUNCTIONS: [string, Function, string][] = [
  [
    "a function",
    function f(x: number, y: number) {
      return x + y;
    },
    "x, y",
  ],
  ["an arrow", (x: number) => x, "x"],
  ["an arrow without parameters", () => 1, ""],
  ["an async arrow", async (x: number) => x, "x"],
  [
    "a generator",
    function* f(x: number) {
      yield x;
    },
    "x",
  ],
  ["defaults", (x: number, y = -2, z = "s") => [x, y, z], 'x, y = -2!, z = "s"!'],
  ["a default that is computed", (x: number, y = x + 1) => y, "x, y = x + 1"],
  ["null and undefined", (x = null, y = undefined) => [x, y], "x = null!, y = undefined!"],
  ["rest", (x: number, ...more: number[]) => [x, more], "x, ...more"],
  ["patterns", ({ a }: { a: number }, [b]: number[]) => [a, b], "{arg0}, {arg1}"],
  ["a pattern with a default", ({ a } = { a: 1 }) => a, "{arg0} = { a: 1 }!"],
  ["a method", every.forward, "x, y = null!"],
  ["an async method", every.wait, "x"],
  ["a generator method", every.parts, "x"],
  ["an async generator method", every.stream, "x"],
  ["a method with a computed name", every[key], "x"],
  ["a private method", every.hidden, "x"],
  ["a method named async", every.async, "x"],
  ["a method named get", every.get, "x"],
  ["a method with a quoted name", every["quoted name"], "x"],
  ["a static method", Every.make, "a"],
  ["a field that is an arrow", every.field, "a, b = [1]!"],
  [
    "a method of an object",
    {
      forward(x: number) {
        return x;
      },
    }.forward,
    "x",
  ],
  ["a getter", Object.getOwnPropertyDescriptor(Every.prototype, "hidden")?.get ?? (() => 0), ""],
  [
    "comments and strings",
    function f(a: number /* , b */, c = "}, d") {
      return [a, c];
    },
    'a, c = "}, d"!',
  ],
  ["a built-in function", Math.max, "native"],
  ["a bound function", every.forward.bind(every), "native"],
  ["a class", Every, "class"],
];

describe("parameters", () => {
  it.each(FUNCTIONS)("%s", (_, fn, expected) => {
    expect(params(fn)).toBe(expected);
  });

  it("are read in sloppy code too", () => {
    const sloppy: unknown = runInThisContext("(function f(x) { with (x) { return y; } })");
    expect(params(sloppy as Function)).toBe("x");
  });
});

describe("constant defaults", () => {
  it.each<[Function, unknown]>([
    [(x = 1.5) => x, 1.5],
    [(x = -1n) => x, -1n],
    [(x = true) => x, true],
    [(x = null) => x, null],
    [(x = undefined) => x, undefined],
    [(x = "a\nb") => x, "a\nb"],
    [(x = Number.NEGATIVE_INFINITY) => x, "computed"],
    [(x = -Infinity) => x, Number.NEGATIVE_INFINITY],
    [(x = /a/) => x, "computed"],
    [(x = `a`) => x, "a"],
  ])("%s", (fn, value) => {
    const signature = functionSignature(fn);
    const found = typeof signature === "string" ? undefined : signature.params[0]?.default;
    expect(found?.isConstant ? found.value : "computed").toBe(value);
  });
});

describe("flags", () => {
  it("tell methods, async functions and generators apart", () => {
    expect(flags(every.forward)).toEqual({ isAsync: false, isGenerator: false, isMethod: true });
    expect(flags(every.stream)).toEqual({ isAsync: true, isGenerator: true, isMethod: true });
    expect(flags(async () => 1)).toEqual({ isAsync: true, isGenerator: false, isMethod: false });
  });

  it("tell who reads `arguments`, which arrow functions have from around them", () => {
    expect(reads("function () { return (() => arguments[0])(); }")).toBe(true);
    expect(reads("(it) => it.arguments")).toBe(false);
    expect(reads("function () { return function () { return arguments; }; }")).toBe(false);
  });

  it("are found once per function", () => {
    expect(functionSignature(every.forward)).toBe(functionSignature(every.forward));
  });
});
