/** The commands that edit programs, patterns as text, and what is edited stays as it is. */
import { beforeAll, describe, expect, it } from "vitest";
import { completions, COMMANDS, runCommand } from "../../src/explorer/commands.ts";
import { History } from "../../src/explorer/history.ts";
import { parseArgument, parsePatterns } from "../../src/explorer/patternText.ts";
import { spell } from "../../src/explorer/spelling.ts";
import { DTypeArg, Float } from "../../src/base/values.ts";
import {
  type ExportedProgram,
  type GraphModule,
  init,
  load,
  save,
  symbolicTrace,
  type Tensor,
  torch,
} from "../../src/index.ts";
import { open } from "../export/fixtures.ts";

beforeAll(async () => {
  await init();
});

const names = ({ graph }: { readonly graph: ExportedProgram["graph"] }) => graph.nodes.map(({ name }) => name);
const targets = ({ graph }: { readonly graph: ExportedProgram["graph"] }) => graph.nodes.map(({ target }) => target);
const sizes = ({ graph }: ExportedProgram) =>
  graph.nodes.filter(({ op }) => op === "call_function").map((node) => spell(node));
const resolve = (name: string) => `torch.ops.aten.${name}.default`;

/** What the program gives for its example. */
const answerOf = (program: ExportedProgram) => {
  using model = program.module();
  return (model(...(program.exampleInputs?.[0] ?? [])) as Tensor).toFloat32Array();
};

describe("a command", () => {
  it("runs a pass, and leaves the program as it is", async () => {
    const program = await open("digits_cnn");
    const text = String(program.graph);
    const { source, told } = runCommand("pass fuseBatchNorm", program);
    expect(told).toBe("fuseBatchNorm changed the graph");
    expect(targets(source)).not.toContain("torch.ops.aten.batch_norm.default");
    const folded = runCommand("pass constantFold", source).source as ExportedProgram;
    expect(String(program.graph)).toBe(text);
    const [before, after] = [answerOf(program), answerOf(folded)];
    for (const [at, value] of after.entries()) expect(value).toBeCloseTo(before[at] as number, 4);
    expect(runCommand("pass CSEPass", program)).toEqual({ source: program, told: "CSEPass found nothing to do" });
    expect(targets(runCommand("pass runDecompositions", program).source)).not.toContain(
      "torch.ops.aten.linear.default",
    );
  });

  it("replaces a pattern, and the program is saved with it", async () => {
    const program = await open("digits_cnn");
    const { source, told } = runCommand("replace relu(x) with clamp_min(x, 0)", program);
    expect(told).toBe("replaced in 3 places");
    expect(targets(source).filter((target) => target === "torch.ops.aten.clamp_min.default").length).toBe(3);
    const again = await load(save(source as ExportedProgram));
    expect(answerOf(again)).toEqual(answerOf(program));
    expect(runCommand("replace tanh(x) with x", program)).toEqual({
      source: program,
      told: "the pattern stands nowhere",
    });
    const without = runCommand(
      "replace max_pool2d(relu(x), [2, 2], [2, 2]) with relu(max_pool2d(x, [2, 2], [2, 2]))",
      program,
    );
    expect(without.told).toBe("replaced in 2 places");
    expect(answerOf(without.source as ExportedProgram)).toEqual(answerOf(program));
  });

  it("edits single nodes", async () => {
    const program = await open("digits_cnn");
    const renamed = runCommand("rename relu first", program).source;
    expect(names(renamed)).toContain("first");
    expect(runCommand("rename relu a-b", program).told).toBe("relu is a_b");
    expect(() => runCommand("rename output a", program)).toThrow(/the output has no name/);
    expect(names(program)).toContain("relu");
    const bypassed = runCommand("uses dropout by flatten", program).source;
    expect(names(runCommand("erase dropout", bypassed).source)).not.toContain("dropout");
    expect(() => runCommand("erase dropout", program)).toThrow(/dropout/);
    const other = runCommand("argument dropout 1 0.25", program).source;
    const dropout = ({ graph }: typeof other) => graph.nodes.find(({ name }) => name === "dropout")?.args[1];
    expect([dropout(other), dropout(program)]).toEqual([0.25, 0.2]);
    expect(names(program)).toEqual(names(await open("digits_cnn")));
  });

  it("that changes sizes changes those of what is computed from them, or is refused by it", async () => {
    const program = await open("digits_cnn");
    const mean = runCommand("replace relu(x) with mean.dim(x, [0], True)", program).source as ExportedProgram;
    expect(sizes(program).at(-1)).toMatch(/^f32\[s\d+, 10\]$/);
    expect(sizes(mean).at(-1)).toBe("f32[1, 10]");
    expect(() => runCommand("argument conv2d 3 [2, 2]", program)).toThrow(/cannot be multiplied/);
    expect(() => runCommand("uses relu_1 by relu", program)).toThrow(/cannot be multiplied/);
  });

  it("edits graph modules, too", () => {
    const gm: GraphModule = symbolicTrace((x: Tensor) => torch.relu(torch.relu(x)));
    const { source, told } = runCommand("replace relu(relu(x)) with relu(x)", gm);
    expect([told, targets(source).filter((target) => target === "torch.relu").length]).toEqual([
      "replaced in 1 place",
      1,
    ]);
    expect(targets(gm).filter((target) => target === "torch.relu").length).toBe(2);
  });

  it.each([
    ["fly", "there is no command `fly`"],
    ["pass Nothing", "there is no pass `Nothing`"],
    ["pass constructor", "there is no pass `constructor`"],
    ["erase", "the command is not complete"],
    ["erase nothing", "there is no node `nothing`"],
    ["uses relu with relu_1", "the command is not complete"],
    ["replace relu(x)", "the command is not complete"],
    ["replace relu(x with x", "expected a comma or )"],
    ["replace relu(x) with y", "the pattern has no input `y`"],
    ["replace relu(x); alert(1) with x", "this is no name, number, text or sign"],
    ["replace x with relu(x)", "a pattern has a call"],
    ["argument relu 0 conv2d(1)", "an argument has no calls"],
  ])("that is wrong is refused: %s", async (text, why) => {
    const program = await open("digits_cnn");
    expect(() => runCommand(text, program)).toThrow(why);
  });

  it("is completed by commands, passes, operators and nodes", async () => {
    const program = await open("digits_cnn");
    const words = (text: string) => completions(text, program).map(({ word }) => word);
    expect(words("")).toEqual(COMMANDS.map(({ name }) => name));
    expect(words("pass fuse")).toEqual(["fuseBatchNorm"]);
    expect(completions("pass CSE", program)).toEqual([{ word: "CSEPass", about: "merge calls that compute the same" }]);
    expect(words("replace max")).toEqual(["max_pool2d"]);
    expect(words("erase conv")).toEqual(["conv2d", "conv2d_1"]);
    expect(words("uses conv2d ")).toEqual(["by"]);
    expect(words("erase p_")).toEqual([]);
    expect(words("fly ")).toEqual([]);
  });
});

describe("text of patterns", () => {
  it("has calls, names and literals", () => {
    const [pattern] = parsePatterns("add(x, mul(y, x), alpha=2)", "x", resolve);
    expect(pattern.nodes.map(({ name }) => name).slice(0, 2)).toEqual(["x", "y"]);
    expect(String(pattern)).toContain("torch.ops.aten.add.default](args = (%x, %mul_default), kwargs = {alpha: 2})");
    expect(parseArgument("[1, -2.0, 1e3, None, True, 'a', torch.float16, [], inf]", () => undefined)).toEqual([
      1,
      new Float(-2),
      new Float(1000),
      null,
      true,
      "a",
      new DTypeArg("float16"),
      [],
      Number.POSITIVE_INFINITY,
    ]);
    expect(parseArgument("0.5", () => undefined)).toBe(0.5);
    expect(parseArgument("-inf", () => undefined)).toBe(Number.NEGATIVE_INFINITY);
    for (const text of ["", "[1", "1 2", "f(", "(1)", "a.b"])
      expect(() => parseArgument(text, () => undefined)).toThrow(/at character/);
  });
});

describe("the history", () => {
  it("goes back and forth, and forgets what was undone when something else is done", () => {
    const history = new History<string>();
    history.note("a");
    history.note("b");
    expect([history.undo("c"), history.undo("b"), history.undo("a")]).toEqual(["b", "a", undefined]);
    expect(history.redo("a")).toBe("b");
    expect(history.states).toEqual(["a", "c"]);
    history.note("b");
    expect(history.redo("d")).toBeUndefined();
  });
});
