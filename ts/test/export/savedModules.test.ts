/** Modules of every kind, exported here, saved and loaded: nothing that a program says is lost. */
import { beforeAll, describe, expect, test } from "vitest";
import { exportProgram, init, load, save, unflatten } from "../../src/index.ts";
import { CASES } from "./cases.ts";

beforeAll(async () => void (await init()));

/** PyTorch's format has lists alone, which its reader and ours take for the arguments of control flow. */
function listed(text: string): string {
  const isOne = /torch\.ops\.higher_order\.|^ *return /;
  return text
    .split("\n")
    .map((line) => (isOne.test(line) ? withLists(line) : line))
    .join("\n");
}

function withLists(line: string): string {
  return line.replace(/(?<![\w.])\(/g, "[").replace(/,?\)(?=[,;)\]]|$)/g, "]");
}

const NOTES = ["nn_module_stack", "torch_fn", "stack_trace"];

describe("EP, SV: exported modules are saved whole", () => {
  test.each(Object.entries(CASES))("%s", async (_, { module, args, kwargs, train = true, dynamicShapes }) => {
    const options = dynamicShapes === undefined ? {} : { dynamicShapes };
    const program = exportProgram(module().train(train), args(), kwargs?.() ?? {}, options);
    const again = await load(save(program));
    expect(listed(String(again))).toBe(listed(String(program)));
    const notes = ({ graph }: typeof program) =>
      Array.from(graph.nodes, ({ name, meta }) => [name, ...NOTES.map((it) => meta.get(it))]);
    expect(notes(again)).toEqual(notes(program));
    expect(again.moduleCallGraph).toEqual(program.moduleCallGraph);
    expect([...again.rangeConstraints]).toEqual([...program.rangeConstraints]);
  });
});

describe("EP: exported modules are unflattened", () => {
  test.each(Object.entries(CASES))("%s", (_, { module, args, kwargs, train = true, dynamicShapes }) => {
    const options = dynamicShapes === undefined ? {} : { dynamicShapes };
    const program = exportProgram(module().train(train), args(), kwargs?.() ?? {}, options);
    const modules = unflatten(program);
    const wanted = program.moduleCallGraph.map((it) => it.fqn).filter((it) => it !== "");
    expect([...modules.graphModule.namedModules()].map(([path]) => path)).toEqual(expect.arrayContaining(wanted));
  });
});
