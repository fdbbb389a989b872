/** The rest of `torch.fx.operator_schemas`, against what PyTorch 2.13 answers for its functions and operators. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  checkForMutableOperation,
  type FxError,
  getSignatureForTorchOp,
  Graph,
  symbolicTrace,
  type Tensor,
  torch,
  Tracer,
  typeMatches,
} from "../../src/index.ts";
import { thrown } from "../thrown.ts";

function recorded<T>(name: string): T[] {
  const text = readFileSync(new URL(`../../../tests/fixtures/operator-schemas/${name}.jsonl`, import.meta.url), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as T);
}

/** Types of TorchScript that no argument of a graph has are not told apart. */
function plain(text: string): string {
  return text.replace(/enum\.Enum|~t|Dict\[[\w.]+, ~t\]/g, "Any");
}

interface Signatures {
  readonly target: string;
  readonly signatures: readonly string[];
}

interface Call {
  readonly target: string;
  readonly args: number;
  readonly kwargs: readonly string[];
  readonly refused: string | null;
}

describe("signatures", () => {
  test("are PyTorch's, of all functions that the registry has", () => {
    const known = recorded<Signatures>("signatures").filter((it) => getSignatureForTorchOp(it.target) !== undefined);
    expect(known).toHaveLength(1491);
    for (const { target, signatures } of known) {
      // The table has no `out` of it.
      if (target.endsWith(".native_dropout_backward")) continue;
      expect(getSignatureForTorchOp(target)?.map(String), target).toEqual(signatures.map(plain));
    }
  });

  test("tell parameters and what is written to", () => {
    const [first, , out] = getSignatureForTorchOp(torch.add) ?? [];
    expect(first?.parameters.map((it) => [it.name, it.type, it.kind])).toEqual([
      ["input", "Tensor", "positional-or-keyword"],
      ["other", "Tensor", "positional-or-keyword"],
      ["alpha", "Scalar", "keyword"],
    ]);
    expect([first?.isMutable, out?.isMutable]).toEqual([false, true]);
  });

  test("are not known of functions that Python has", () => {
    for (const target of ["torch.nn.functional.relu", "operator.add", "torch.no_such_function", "len"]) {
      expect(getSignatureForTorchOp(target), target).toBeUndefined();
    }
  });
});

describe("calls that write", () => {
  /** What `torch.ops.aten.sort.int` and its kin do to lists, the table does not say. */
  const UNTOLD = /^torch\.ops\.aten\.(sort\.(int|float|Tensor|bool|str|any)|native_dropout_backward)$/;

  test("are refused where PyTorch refuses them", () => {
    const calls = recorded<Call>("mutable").filter((it) => getSignatureForTorchOp(it.target) !== undefined);
    expect(calls.length).toBeGreaterThan(3500);
    for (const { target, args, kwargs, refused } of calls) {
      if (UNTOLD.test(target)) continue;
      let found: string | null = null;
      try {
        checkForMutableOperation(target, Array(args).fill(null), Object.fromEntries(kwargs.map((it) => [it, null])));
      } catch (error) {
        found = (error as FxError).reason.replace("Tried to trace mutable operation ", "");
      }
      expect(found, `${target} of ${args} arguments and ${kwargs.join(", ")}`).toBe(refused);
    }
  });

  test("are refused by tracers that ask for it", () => {
    const tracer = new Tracer();
    tracer.checkMutableOperations = true;
    expect(thrown(() => tracer.trace((x: Tensor) => torch.relu_(x))).reason).toBe(
      "Tried to trace mutable operation aten::relu_",
    );
    // Others record it.
    expect(String(symbolicTrace((x: Tensor) => torch.relu_(x)).graph)).toContain("torch.relu_");
    const graph = new Graph();
    const x = graph.placeholder("x");
    expect(() => checkForMutableOperation(torch.abs, [x], { out: x })).toThrow("aten::abs.out");
  });
});

test("types of parameters take arguments as in PyTorch", () => {
  for (const [type, argument, matches] of [
    ["Tensor?", "None", true],
    ["Tensor", "None", false],
    ["SymInt[]", "int", true],
    ["Tensor[]", "Tensor[]", true],
    ["Scalar", "str", false],
  ] as const) {
    expect(typeMatches(type, argument), `${type} ${argument}`).toBe(matches);
  }
});
