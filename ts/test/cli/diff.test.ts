/** `npx tracefx diff`: what it tells of two programs, and the exit code that scripts read. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { diffPrograms } from "../../src/cli/diff.ts";
import { main } from "../../src/cli/main.ts";
import { type ExportedProgram, exportProgram, init, load, nn, type Tensor, torch } from "../../src/index.ts";
import { fixture } from "../export/fixtures.ts";

const PROGRAM = fixture("digits_cnn/model.pt2");
const folder = mkdtempSync(join(tmpdir(), "tracefx-diff-"));

afterAll(() => rmSync(folder, { recursive: true }));
async function told(...args: string[]): Promise<readonly [code: number, stdout: string, stderr: string]> {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  const problem = vi.spyOn(console, "error").mockImplementation(() => {});
  const code = await main(args);
  const res = [code, log.mock.calls.flat().join("\n"), problem.mock.calls.flat().join("\n")] as const;
  vi.restoreAllMocks();
  return res;
}

class Net extends nn.Module {
  linear = new nn.Linear(2, 2);
  override forward(x: Tensor): Tensor {
    return this.linear(x).relu();
  }
}

async function exported(): Promise<ExportedProgram> {
  await init();
  torch.manualSeed(0);
  return exportProgram(new Net(), [torch.ones(1, 2)]);
}

test("a program and itself are the same", async () => {
  expect(await told("diff", PROGRAM, PROGRAM)).toEqual([0, "The programs are the same.", ""]);
  const [code, json] = await told("diff", PROGRAM, PROGRAM, "--json");
  expect([code, JSON.parse(json)]).toEqual([
    0,
    { is_same: true, graph: [], signature: [], constraints: [], tensors: [] },
  ]);
});

test("an operator in the place of another one is told as two lines, and gives 1", async () => {
  const program = await load(PROGRAM);
  for (const node of program.graph.findNodes({ op: "call_function", target: "torch.ops.aten.relu.default" })) {
    if (node.name === "relu_2") node.target = "torch.ops.aten.sigmoid.default";
  }
  const other = join(folder, "other.fxg");
  writeFileSync(other, program.toFxg());
  const [code, text] = await told("diff", PROGRAM, other);
  expect(code).toBe(1);
  const lines = text.split("\n");
  expect(lines.slice(0, 3)).toEqual([`--- ${PROGRAM}`, `+++ ${other}`, "@@ graph: 1 difference @@"]);
  expect(lines.slice(3).map((it) => it.slice(0, 11))).toEqual(["- %relu_2 :", "+ %relu_2 :"]);
  expect(lines[4]).toContain("aten.sigmoid.default](args = (%linear,), kwargs = {})");
});

test("nodes that one program alone has stand where it has them", async () => {
  const [before, after] = [await exported(), await exported()];
  const [relu] = after.graph.findNodes({ op: "call_function", target: "torch.ops.aten.relu.default" });
  if (relu === undefined) throw new Error("the program has a relu");
  after.graph.insertingAfter(relu, () => {
    const neg = after.graph.callFunction("torch.ops.aten.neg.default", [relu]);
    relu.replaceAllUsesWith(neg, { filter: (user) => user !== neg });
  });
  const { graph, isSame } = diffPrograms(before, after);
  expect(isSame).toBe(false);
  expect(graph[0]?.before).toBeUndefined();
  expect(graph[0]?.after).toContain("aten.neg.default");
  // Without the node, the result is another one.
  expect(graph[1]?.before).toContain("return");
  const { graph: back } = diffPrograms(after, before);
  expect(back.map((it) => Object.keys(it))).toEqual([["before"], ["before", "after"]]);
});

test("other names of nodes are no differences", async () => {
  const before = await exported();
  const gm = before.unlift();
  for (const node of gm.graph.nodes) if (node.op === "call_function") node.name = `${node.name}_again`;
  const after = before.relift(gm);
  expect(after.graphSignature.userOutputs).toEqual(["relu_again"]);
  expect(diffPrograms(before, after).isSame).toBe(true);
});

test("weights of other values, and of other shapes, are told by name", async () => {
  const [before, after] = [await exported(), await exported()];
  expect(diffPrograms(before, after).isSame).toBe(true);
  after.stateDict.get("linear.bias")?.add_(1);
  expect(diffPrograms(before, after)).toMatchObject({
    graph: [],
    tensors: [{ before: "linear.bias: float32[2]", after: "linear.bias: float32[2], of other values" }],
  });
});

test("names cannot write to the terminal", async () => {
  const program = await exported();
  const before = join(folder, "plain.fxg");
  writeFileSync(before, program.toFxg());
  program.constants.set("a\u001b[2J", { kind: "tensor", tensor: torch.ones(1) });
  const after = join(folder, "escape.fxg");
  writeFileSync(after, program.toFxg());
  const [code, text] = await told("diff", before, after);
  expect([code, text.split("\n").at(-1)]).toEqual([1, "+ a\\u{1b}[2J: float32[1]"]);

  const [, , problem] = await told("diff", before, join(folder, "gone\u001b[2J.fxg"));
  expect(problem).toContain("gone\\u{1b}[2J.fxg");
  expect(problem).not.toContain("\u001b[2J");
});

test("other ranges of symbols are told", async () => {
  const [before, after] = [await load(PROGRAM), await load(fixture("digits_cnn__core/model.pt2"))];
  for (const [name, range] of after.rangeConstraints) after.rangeConstraints.set(name, { ...range, max: 7 });
  const diff = diffPrograms(before, after);
  expect(diff.constraints).toEqual([{ before: "[1, 1024]", after: "[1, 7]" }]);
});

test("what cannot be read gives 2, as with diff", async () => {
  const [code, , problem] = await told("diff", PROGRAM, join(folder, "nothing.pt2"), "--json");
  expect(code).toBe(2);
  expect((JSON.parse(problem) as { error: { code: string } }).error.code).toBe("FX0703");
  expect((await told("diff", PROGRAM))[0]).toBe(2);
});
