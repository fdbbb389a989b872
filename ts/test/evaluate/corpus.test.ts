/** The recorded graphs that run, as generated code and as compiled modules. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { build } from "../../../tests/conformance/graphs/corpus.mjs";
import type { EncodedGraph } from "../../../tests/conformance/graphs/corpus.mjs";
import { evaluateCode } from "../../src/evaluate/evaluateCode.ts";
import { init } from "../../src/engine/engine.ts";
import { compile } from "../../src/export/compile.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { loadGraphModule, saveGraphModule } from "../../src/save/graphModule.ts";
import { tensorFromBytes } from "../../src/tensor/construct.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { isForbidden } from "./forbidden.ts";

beforeAll(() => init());

interface Case {
  readonly name: string;
  readonly before: EncodedGraph;
  readonly options: { readonly inputs?: readonly { readonly shape: number[]; readonly v: number[] }[] };
  readonly output?: unknown;
}

const file = new URL("../../../tests/fixtures/graphs/interpreter.jsonl", import.meta.url);
const cases = readFileSync(file, "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Case)
  .filter(({ output }) => output !== undefined);

function inputsOf({ inputs = [] }: Case["options"]): Tensor[] {
  return inputs.map(({ shape, v }) => tensorFromBytes(new Uint8Array(Float32Array.from(v).buffer), "float32", shape));
}

/** A result with arrays in the places of tensors. */
function plain(value: unknown): unknown {
  if (value instanceof Tensor) return { dtype: value.dtype, shape: value.shape, elements: value.toArray() };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, plain(it)]));
}

describe.skipIf(isForbidden)("generated code gives what the interpreter gives", () => {
  test.each(cases)("$name", ({ before, options }) => {
    const gm = GraphModule.ofGraph(build(before));
    expect(plain(evaluateCode(gm)(...inputsOf(options)))).toEqual(plain(gm.forward(...inputsOf(options))));
  });
});

describe("a compiled module gives the same", () => {
  test.each(cases)("$name", ({ before, options }) => {
    const gm = GraphModule.ofGraph(build(before));
    using run = compile(gm, { precision: "strict" });
    expect(plain(run(...inputsOf(options)))).toEqual(plain(gm.forward(...inputsOf(options))));
  });
});

describe("what was saved and loaded gives the same", () => {
  test.each(cases)("$name", ({ before, options }) => {
    const gm = GraphModule.ofGraph(build(before));
    const again = loadGraphModule(saveGraphModule(gm));
    expect(plain(again.forward(...inputsOf(options)))).toEqual(plain(gm.forward(...inputsOf(options))));
  });
});

test("there are as many cases as were recorded", () => {
  expect(cases.length).toBe(32);
});
