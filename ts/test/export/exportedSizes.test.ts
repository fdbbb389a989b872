/** Modules of every kind, exported with sizes that may all be dynamic: `tests/oracle/gen_export.py` recorded what PyTorch makes of it. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { Dim, type ExportedProgram, exportProgram, init, nn, operator, Tensor, torch, tuple } from "../../src/index.ts";
import type { Case } from "./case.ts";
import { CASES } from "./cases.ts";

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
  picked: "PyTorch bounds what it knows no bound of by sys.maxsize - 1",
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

/** A program of a function of a matrix, both sizes of which are dynamic. */
function exported(forward: (x: Tensor) => unknown): ExportedProgram {
  class Asking extends nn.Module {
    override forward = forward;
  }
  const dynamicShapes = [{ 0: Dim("n", { min: 2 }), 1: Dim("m", { min: 2 }) }];
  return exportProgram(new Asking(), [torch.randn(3, 4)], {}, { dynamicShapes });
}

describe("DS: what is asked of a tensor is asked in the program, as PyTorch records it", () => {
  test("numel() of an input is sym_numel, and what follows from sizes of inputs is computed from them", () => {
    const program = exported((x) => tuple(x.add(x.numel()), x.reshape([torch.numel(x)]), x.stride(0), x.t().numel()));
    expect(numbered(`${program.graph}`)).toBe(
      numbered(`graph():
    %x : [num_users=5] = placeholder[target=x]
    %sym_size_int_2 : [num_users=1] = call_function[target=torch.ops.aten.sym_size.int](args = (%x, 1), kwargs = {})
    %sym_numel_default : [num_users=3] = call_function[target=torch.ops.aten.sym_numel.default](args = (%x,), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %sym_numel_default), kwargs = {})
    %reshape : [num_users=1] = call_function[target=torch.ops.aten.reshape.default](args = (%x, [%sym_numel_default]), kwargs = {})
    %t : [num_users=0] = call_function[target=torch.ops.aten.t.default](args = (%x,), kwargs = {})
    return (add, reshape, sym_size_int_2, sym_numel_default)`),
    );
  });

  test("the place of a view in its storage is known in a run", () => {
    const program = exported((x) => x.select(0, operator.sub(x.size(0), 1) as number).storageOffset());
    using run = program.module();
    expect(run(torch.zeros(5, 7))).toBe(28);
  });
});
