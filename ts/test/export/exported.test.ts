/** Modules of every kind, exported as PyTorch exports them: `tests/oracle/gen_export.py` recorded what it makes of them. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { exportProgram, GraphModule, init } from "../../src/index.ts";
import type { Case } from "./case.ts";
import { CASES } from "./cases.ts";

interface Recorded {
  readonly name: string;
  readonly graph: string;
  readonly graphs: Readonly<Record<string, string>>;
  readonly signature: string;
  readonly in_spec: string;
  readonly out_spec: string;
  readonly ranges: Readonly<Record<string, readonly [string, string]>>;
  readonly modules: readonly string[];
  readonly state: readonly string[];
  readonly constants: readonly string[];
}

const file = new URL("../../../tests/fixtures/export/cases.jsonl", import.meta.url);
const recorded = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Recorded);

beforeAll(async () => void (await init()));

function exported({ module, args, kwargs, train = true, dynamicShapes }: Case) {
  return exportProgram(module().train(train), args(), kwargs?.() ?? {}, { ...(dynamicShapes && { dynamicShapes }) });
}

/** PyTorch numbers these nodes as well as others that it asked whether a tensor is contiguous, and took out again. */
const RENUMBERED = ["vit_dynamic", "gpt_dynamic"];

/** A graph in which the nodes that compute sizes have numbers in their order. */
function renumbered(graph: string): string {
  const ofSizes = /%(\w+) : .*\[target=(?:torch\.ops\.aten\.sym_size\.int|operator\.(?!getitem)\w+)\]/g;
  const names = [...graph.matchAll(ofSizes)].map(([, name = ""]) => name);
  return graph.replaceAll(/%(\w+)/g, (text, name: string) => {
    return names.includes(name) ? `%size_${names.indexOf(name)}` : text;
  });
}

describe("EP: modules are exported as PyTorch exports them", () => {
  test.each(recorded)("$name", ({ name, graph, graphs, ranges, modules, state, constants }) => {
    const program = exported(CASES[name] as Case);
    const shown = RENUMBERED.includes(name) ? renumbered : String;
    expect(shown(`${program.graph}`)).toBe(shown(graph));
    const inner = [...program.graphModule.namedModules()].flatMap(([path, it]) =>
      path !== "" && it instanceof GraphModule ? [[path, `${it.graph}`] as const] : [],
    );
    expect(Object.fromEntries(inner)).toEqual(graphs);
    expect([...program.stateDict.keys()]).toEqual(state);
    expect([...program.constants.keys()]).toEqual(constants);
    const found = [...program.rangeConstraints].map(([symbol, { min, max }]) => [
      symbol,
      [String(min ?? "-int_oo"), String(max ?? "int_oo")],
    ]);
    expect(Object.fromEntries(found)).toEqual(ranges);
    expect(program.moduleCallGraph.map((it) => it.fqn)).toEqual(modules);
  });
});
