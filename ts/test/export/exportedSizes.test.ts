/** Modules of every kind, exported with sizes that may all be dynamic: `tests/oracle/gen_export.py` recorded what PyTorch makes of it. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { Dim, exportProgram, init, Tensor } from "../../src/index.ts";
import { CASES, type Case } from "./modules.ts";

interface Recorded {
  readonly name: string;
  readonly graph: string;
  readonly ranges: Readonly<Record<string, readonly [string, string]>>;
}

const file = new URL("../../../tests/fixtures/export/sizes.jsonl", import.meta.url);
const recorded = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Recorded);

/** Where the graph is another one, with the reason. The ranges are PyTorch's there, too, unless they are said to be others. */
const OTHERWISE: Readonly<Record<string, string>> = {
  attention: "takes a size from the key where PyTorch takes the same one from the value",
  embedding_bag: "multiplies sizes where PyTorch asks for numel()",
  indexing: "leaves out x[:] of a dynamic size, which PyTorch keeps as a slice",
  assignments: "as indexing",
  products: "as indexing",
  encoder_layer_train: "orders the factors of sizes otherwise",
  encoder_layer_eval: "as above",
  vit: "orders the factors of sizes otherwise",
};

/** Where sizes are allowed that PyTorch refuses, with the reason. */
const WIDER: Readonly<Record<string, string>> = {
  assignments: "PyTorch takes x[1:3, 2:] of one column for another layout, and asks for two",
  products: "PyTorch asks for at most 25 rows, for which cdist has another kernel",
  lstm: "PyTorch makes a number of the steps of recurrent layers",
  lstm_with_state: "as lstm",
  gru: "as lstm",
  rnn: "as lstm",
};

beforeAll(async () => void (await init()));

/** Every size above one may be dynamic. */
function everySize(value: unknown): unknown {
  if (value instanceof Tensor) {
    return Object.fromEntries(value.shape.flatMap((size, dim) => (size > 1 ? [[dim, Dim.AUTO]] : [])));
  }
  if (Array.isArray(value)) return value.map(everySize);
  if (typeof value !== "object" || value === null) return null;
  return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, everySize(it)]));
}

/** Nodes by their places: those that compute sizes are counted otherwise. */
function numbered(graph: string): string {
  const names = [...graph.matchAll(/^ +%(\w+) :/gm)].map(([, name]) => name as string);
  return graph.replace(/\b[a-z_]\w*\b/gi, (it) => (names.includes(it) ? `n${names.indexOf(it)}` : it));
}

describe("EP, DS: modules are exported with dynamic sizes as PyTorch exports them", () => {
  test.each(recorded)("$name", ({ name, graph, ranges }) => {
    const { module, args, train = true } = CASES[name] as Case;
    const inputs = args();
    const program = exportProgram(module().train(train), inputs, {}, { dynamicShapes: inputs.map(everySize) as never });
    const found = numbered(`${program.graph}`);
    if (name in OTHERWISE) expect(found, "it is not otherwise any more").not.toBe(numbered(graph));
    else expect(found).toBe(numbered(graph));
    const bounds = [...program.rangeConstraints].map(([symbol, { min, max }]) => [
      symbol,
      [String(min ?? "-int_oo"), String(max ?? "int_oo")],
    ]);
    if (name in WIDER) expect(Object.fromEntries(bounds)).not.toEqual(ranges);
    else expect(Object.fromEntries(bounds)).toEqual(ranges);
  });
});
