/** Exported programs, interpreted operator by operator. */
import { beforeAll, expect, test } from "vitest";
import { evaluateCode } from "../../src/evaluate/evaluateCode.ts";
import { compile, type ExportedProgram, init, Interpreter, Tensor } from "../../src/index.ts";
import { isForbidden } from "../evaluate/forbidden.ts";
import { largestDifference, open, tensorsOf } from "../export/fixtures.ts";

beforeAll(() => init());

/** Recorded programs whose inputs are tensors, and what PyTorch computes in another order in some of them. */
const PROGRAMS = [
  "cond_shape_nested",
  "cond_simple",
  "custom_metadata",
  "dataclass_io",
  "digits_cnn",
  "digits_cnn__core",
  "dyn_derived__core",
  "multi_model",
  "no_grad_hop",
  "python_names",
  "tied_and_views",
  "unbacked_item",
  "while_loop_hop",
];
const TOLERANCE = 2e-5;

function indexOf(key: string): number {
  return Number(/\d+/.exec(key)?.[0]);
}

/** The tensors of a file of inputs or outputs, `in0` first. */
function numbered(name: string): Tensor[] {
  return [...tensorsOf(name)].toSorted(([a], [b]) => indexOf(a) - indexOf(b)).map(([, it]) => it);
}

/** What the graph of a program is run on: its state, and the user's inputs. */
function inputsOf({ graphSignature, stateDict, constants }: ExportedProgram, given: readonly Tensor[]): unknown[] {
  const rest = [...given];
  return graphSignature.inputSpecs.map(({ kind, target = "" }) => {
    if (kind === "USER_INPUT") return rest.shift();
    const constant = constants.get(target);
    return stateDict.get(target) ?? (constant?.kind === "tensor" ? constant.tensor : undefined);
  });
}

test.each(PROGRAMS)("%s gives PyTorch's numbers", async (name) => {
  const program = await open(name);
  const expected = numbered(`${name}/expected.safetensors`);
  const check = (results: unknown): void => {
    const outputs = program.graphSignature.outputSpecs.flatMap(({ kind }, at) => {
      const value = (results as unknown[])[at];
      return kind === "USER_OUTPUT" && value instanceof Tensor ? [value] : [];
    });
    expect(outputs.length).toBe(expected.length);
    for (const [at, it] of outputs.entries()) {
      expect(largestDifference(it, expected[at] as Tensor)).toBeLessThanOrEqual(TOLERANCE);
    }
  };
  const inputs = inputsOf(program, numbered(`${name}/inputs.safetensors`));
  check(new Interpreter(program.graphModule).run(...inputs));
  if (!isForbidden) check(evaluateCode(program.graphModule)(...inputs));
  using compiled = compile(program.graphModule);
  check(compiled(...inputs));
});
