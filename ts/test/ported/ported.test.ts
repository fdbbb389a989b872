/**
 * Programs after PyTorch's own tests of torch.fx and torch.export, and what PyTorch 2.13 answers to them: `tests/oracle/gen_ported.py`,
 * `gen_ported_export.py` and `gen_ported_short.py` have the same ones in Python. Cases are called as the tests that they follow.
 */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { experimental } from "./experimental.ts";
import { exported } from "./export.ts";
import { graphs } from "./graphs.ts";
import { modules } from "./modules.ts";
import { passes } from "./passes.ts";
import { type Programs, text } from "./said.ts";
import { init } from "../../src/index.ts";
import { short } from "./short.ts";
import { since } from "./since.ts";
import { tracing } from "./tracing.ts";

beforeAll(() => init());

interface Recorded {
  readonly [name: string]: readonly string[];
}

function recorded(file: string): Recorded {
  const url = new URL(`../../../tests/fixtures/ported/${file}.json`, import.meta.url);
  return JSON.parse(readFileSync(url, "utf8")) as Recorded;
}

/** Where lines differ, by their place: ours, or how it is made of PyTorch's. `docs/compat.md` tells why. */
interface Different {
  readonly [name: string]: Readonly<Record<number, string | ((line: string) => string)>>;
}

const DIFFERENT: Different = {
  // Messages say what there is in JavaScript.
  test_unpack_errors: { 0: "Proxy object cannot be iterated: how many items it has is not known while it is traced" },
  test_control_flow_error: {
    0: "Proxy object cannot be iterated: how many items it has is not known while it is traced",
    1: "Proxy(sum_1)",
  },
  test_no_mutation: { 0: "Cannot" },
  test_trace_multiple_funcs: { 3: "traced" },
  test_insert_arg: { 0: "insertArg index must be between 0 and 1, and is 3" },
  test_propagate_meta: { 2: "propagate" },
  test_lint_unknown: { 0: "a node refers to `missing`, and the root has nothing of that name" },
  test_pass_manager: { 7: "pass schedule constraint violated: second stands" },
  // Users are a set, where PyTorch has a dict.
  test_erase_node_error: {
    0: "Tried to erase Node x but it still had 1 users in the graph: {add}!",
    1: "Tried to erase Node add but it still had 1 users in the graph: {relu}!",
    2: "Tried to erase Node relu but it still had 1 users in the graph: {output}!",
  },
  // The pass edits in place, and nodes keep their names.
  test_normalize_operators: { 0: (line) => line.replaceAll("%truediv", "%div") },
  // A target is its qualified name.
  test_print_tabular_rows: { 2: (line) => line.replace("<built-in function add>", "operator.add") },
  // An argument of another graph is refused where it is given.
  test_copy_no_remap: { 1: "node", 2: "node", 3: "node" },
};

/** The same of programs that are exported. */
const DIFFERENT_EXPORTS: Different = {
  // What `module()` gives has a state of its own, and a call before left no trace.
  test_buffer_mutation: { 5: "tensor([3.])" },
  // Messages say what was given.
  test_primitive_inputs: { 3: "guard failed: n == 3" },
  test_dynamic_batch: {
    5: "guard failed: x.size()[0] <= 16, and it is 20",
    6: "guard failed: x.size()[1] == 4",
  },
  test_derived_dim: { 4: "guard failed: y.size()[0] == x.size()[0] + 1, and it is 6 instead of 5" },
  test_args_type_checked: {
    0: "the program takes 1 arguments, and got 0",
    1: "the program takes 1 arguments, and got 2",
    2: "a value of type object at [0] is not a number",
  },
  test_mismatched_dynamic_shapes: { 0: withoutLink, 3: withoutLink },
  // A size that two inputs share is read from the one that the code asked.
  test_dynamic_two_inputs: {
    0: (line) =>
      line
        .replace("%x : [num_users=1]", "%x : [num_users=2]")
        .replace("%y : [num_users=2]", "%y : [num_users=1]")
        .replace("(args = (%y, 0), kwargs", "(args = (%x, 0), kwargs")
        .replaceAll("sym_size_int_2", "sym_size_int_1"),
    4: "guard failed: y.size()[0] == x.size()[0], and it is 4 instead of 3",
  },
};

/** The same of short functions. */
const DIFFERENT_SHORT: Different = {
  // The whole of a dimension is itself, be it dynamic.
  test_arange_dynamic: { 0: (line) => line.replace(/\n.*%slice_1 .*/, "").replace("(%slice_1,", "(%x,") },
  // The operator that the other is decomposed to, which gives nothing for a way back.
  test_batch_norm_eval: {
    0: (line) =>
      line
        .replace(/\n.*%empty .*/, "")
        .replaceAll("native_batch_norm", "_native_batch_norm_legit_no_training")
        .replace("%ones, False, 0.1", "%ones, 0.1"),
  },
};

function withoutLink(line: string): string {
  return line.replace(/ For more information about this error.*/, "");
}

describe.each([
  ["torch.fx", { ...tracing, ...graphs, ...modules, ...passes, ...experimental, ...since }, recorded("fx"), DIFFERENT],
  ["torch.export", exported, recorded("export"), DIFFERENT_EXPORTS],
  ["short functions", short, recorded("short"), DIFFERENT_SHORT],
] as const)("as %s answers:", (_, programs: Programs, lines: Recorded, different) => {
  test.each(Object.keys(lines))("%s", (name) => {
    const said: string[] = [];
    programs[name]?.((it) => void said.push(text(it)));
    const expected = lines[name]?.map((line, at) => {
      const ours = different[name]?.[at] ?? line;
      return typeof ours === "function" ? ours(line) : ours;
    });
    expect(said).toEqual(expected);
  });

  test("every program is recorded", () => {
    expect(Object.keys(programs).toSorted()).toEqual(Object.keys(lines).toSorted());
  });
});

test("what differs is told in docs/compat.md", () => {
  const told = readFileSync(new URL("../../../docs/compat.md", import.meta.url), "utf8").split("### Ported tests")[1];
  const names = [DIFFERENT, DIFFERENT_EXPORTS, DIFFERENT_SHORT].flatMap((it) => Object.keys(it));
  expect([...(told?.matchAll(/`(test_\w+)`/g) ?? [])].map(([, name]) => name).toSorted()).toEqual(names.toSorted());
  expect(told).toContain(`these ${names.length} say otherwise`);
});
