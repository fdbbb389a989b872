/**
 * Programs after PyTorch's own tests of torch.fx, and what PyTorch 2.13 answers to them: `tests/oracle/gen_ported.py` has the same
 * ones in Python. Cases are called as the tests that they follow.
 */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { graphs } from "./graphs.ts";
import { modules } from "./modules.ts";
import { passes } from "./passes.ts";
import { text } from "./said.ts";
import { init } from "../../src/index.ts";
import { tracing } from "./tracing.ts";

beforeAll(() => init());

const RECORDED = JSON.parse(
  readFileSync(new URL("../../../tests/fixtures/ported/fx.json", import.meta.url), "utf8"),
) as Readonly<Record<string, readonly string[]>>;

const PROGRAMS = { ...tracing, ...graphs, ...modules, ...passes };

/** Where lines differ, by their place. `docs/compat.md` tells why. */
const DIFFERENT: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  // Messages say what there is in JavaScript.
  test_unpack_errors: { 0: "Proxy object cannot be iterated: how many items it has is not known while it is traced" },
  test_control_flow_error: {
    0: "Proxy object cannot be iterated: how many items it has is not known while it is traced",
    1: "Proxy(sum_1)",
  },
  test_no_mutation: { 0: "Cannot" },
  test_lint_unknown: { 0: "a node refers to `missing`, and the root has nothing of that name" },
  test_pass_manager: { 7: "pass schedule constraint violated: second stands" },
  // Users are a set, where PyTorch has a dict.
  test_erase_node_error: {
    0: "Tried to erase Node x but it still had 1 users in the graph: {add}!",
    1: "Tried to erase Node add but it still had 1 users in the graph: {relu}!",
    2: "Tried to erase Node relu but it still had 1 users in the graph: {output}!",
  },
  // An argument of another graph is refused where it is given.
  test_copy_no_remap: { 1: "node", 2: "node", 3: "node" },
};

describe("as PyTorch answers:", () => {
  test.each(Object.keys(RECORDED))("%s", (name) => {
    const lines: string[] = [];
    PROGRAMS[name]?.((it) => void lines.push(text(it)));
    const ours = DIFFERENT[name] ?? {};
    expect(lines).toEqual(RECORDED[name]?.map((line, at) => ours[at] ?? line));
  });

  test("every program is recorded", () => {
    expect(Object.keys(PROGRAMS).toSorted()).toEqual(Object.keys(RECORDED).toSorted());
  });
});
