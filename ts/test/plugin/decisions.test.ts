/** Whatever JavaScript decides while a module is exported is right, a guard of the program, or refused. */
import { runInThisContext } from "node:vm";
import { beforeAll, describe, expect, test } from "vitest";
import { Dim, exportProgram, FxError, init, nn, type ProgramModule, Tensor, torch } from "../../src/index.ts";
import { rewrite } from "../../src/plugin/rewrite.ts";
import { __tracefx } from "../../src/trace/checked.ts";
import { ABOUT_ELEMENTS, ABOUT_SIZES, IN_A_METHOD, IN_FORWARD } from "./decisions.ts";

beforeAll(async () => void (await init()));

type Make = new () => nn.Module;

const RUNTIME = { __tracefx };

/** The class of a module, as it is written or as the plugin rewrites it. */
function made(source: string, plugin?: { readonly operators: boolean }): Make {
  const written = `module.exports = ${source};`;
  const code = plugin === undefined ? written : (rewrite(written, plugin)?.code ?? written);
  const module: { exports?: unknown } = {};
  const run: unknown = runInThisContext(`(function (module, require, nn, Tensor) {${code}\n})`);
  (run as (...given: unknown[]) => void)(module, () => RUNTIME, nn, Tensor);
  return module.exports as Make;
}

/** Inputs of other sizes and elements. */
const OTHERS: readonly (readonly [number, number, number])[] = [
  [4, 3, 1],
  [7, 3, 1],
  [4, 5, 2],
  [3, 3, 0],
  [2, 7, 1],
];

const isExample = (n: number, m: number): boolean => n === 4 && m === 3;

/** What an export comes to: `told` where it is refused, `right` where the program is, else what it is wrong for. */
function outcome(Wanted: Make, Traced: Make, inputs = OTHERS): string {
  const dynamicShapes = { x: { 0: Dim("n", { min: 2, max: 64 }), 1: Dim("m", { min: 2, max: 64 }) } };
  const auto = { x: { 0: Dim.AUTO, 1: Dim.AUTO } };
  let told = 0;
  for (const shapes of [dynamicShapes, auto]) {
    let program: ProgramModule;
    try {
      program = exportProgram(new Traced(), [torch.ones(4, 3)], {}, { dynamicShapes: shapes }).module();
    } catch (error) {
      if (!(error instanceof FxError)) throw error;
      told++;
      continue;
    }
    using run = program;
    for (const [n, m, element] of inputs) {
      const x = torch.full([n, m], element, { dtype: "float32" });
      let got: Tensor;
      try {
        got = run(x) as Tensor;
      } catch (error) {
        // The program says that it was not made for these.
        if (error instanceof FxError && /^FX060[0-9]/.test(error.code) && !isExample(n, m)) continue;
        throw error;
      }
      const want = new Wanted().call(x) as Tensor;
      if (!torch.equal(got, want)) return `wrong for ${n} by ${m} of ${element}`;
    }
  }
  return told === 2 ? "told" : "right";
}

const ALL = Object.entries({ ...ABOUT_SIZES, ...ABOUT_ELEMENTS });

/** What is refused of sizes although the example would tell: texts, keys, and what holds numbers by identity. */
const TOLD_OF_SIZES = [
  "case of a size",
  "Set.add",
  "a set of sizes",
  "a set of parts",
  "Map.set",
  "a map of sizes",
  "the length of an array",
  "JSON.stringify of the shape",
  "JSON.stringify of a tensor",
  "the text of the shape",
  "the text of a size",
  "a template",
  "a key",
  "x.toString()",
  "String(x)",
  "a template of a tensor",
  "Math.max",
  // Guards know whole numbers only.
  "/",
];

/** What is refused unless operators are recorded. */
const TOLD_OF_OPERATORS = ["<", ">=", "%", "+"];

/** What is known of elements without knowing them. */
const KNOWN_OF_ELEMENTS = ["typeof item()"];

const PLACES = [
  ["in forward", IN_FORWARD],
  ["in a method of an object that is reached through a value", IN_A_METHOD],
] as const;

describe.each(PLACES)("as it is, %s", (_, write) => {
  test.each(ALL)("%s: never wrong for the example", (_name, expression) => {
    const source = write(expression);
    expect(outcome(made(source), made(source), [[4, 3, 1]])).toMatch(/^(?:told|right)$/);
  });
});

describe.each(PLACES)("as the plugin rewrites it, %s", (place, write) => {
  describe.each([false, true])("with operators: %s", (operators) => {
    test.each(ALL)("%s", (name, expression) => {
      const source = write(expression);
      const found = outcome(made(source), made(source, { operators }));
      const isTold =
        TOLD_OF_SIZES.includes(name) ||
        (!operators && TOLD_OF_OPERATORS.includes(name)) ||
        (name in ABOUT_ELEMENTS && !KNOWN_OF_ELEMENTS.includes(name)) ||
        // The check of sources takes the part of a shape for one that may be left out.
        (name === "a default" && place === "in forward");
      expect(found).toBe(isTold ? "told" : "right");
    });
  });
});
