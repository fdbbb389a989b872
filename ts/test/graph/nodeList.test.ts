import { expect, test } from "vitest";
import { Graph, type Node } from "../../src/index.ts";

function chain(): Graph {
  const graph = new Graph();
  const x = graph.placeholder("x");
  const relu = graph.callFunction("torch.relu", [x]);
  graph.output(graph.callFunction("torch.neg", [relu]));
  return graph;
}

const names = (nodes: readonly Node[]): string[] => nodes.map((it) => it.name);

test("the nodes answer as an array does", () => {
  const { nodes } = chain();
  expect(nodes.map((it, at) => `${at} ${it.name}`)).toEqual(["0 x", "1 relu", "2 neg", "3 output"]);
  expect(names(nodes.filter((it) => it.op === "call_function"))).toEqual(["relu", "neg"]);
  expect([nodes.at(0)?.name, nodes.at(-1)?.name, nodes.at(4)]).toEqual(["x", "output", undefined]);
  expect(nodes.find((it) => it.op === "call_function")?.name).toBe("relu");
  expect(nodes.findLast((it) => it.op === "call_function")?.name).toBe("neg");
  expect(nodes.find((it) => it.op === "call_module")).toBeUndefined();
  expect([nodes.some((it) => it.op === "output"), nodes.every((it) => it.op === "output")]).toEqual([true, false]);
  expect(names(nodes.slice(1, -1))).toEqual(["relu", "neg"]);
  const relu = nodes.at(1) as Node;
  expect([nodes.indexOf(relu), nodes.includes(relu)]).toEqual([1, true]);
  const other = chain().nodes.at(1) as Node;
  expect([nodes.indexOf(other), nodes.includes(other)]).toEqual([-1, false]);
});

test("they are told positions, as an array tells them", () => {
  const { nodes } = chain();
  const array = nodes.toArray();
  const tests = ["find", "findIndex", "findLast", "filter", "some", "every"] as const;
  for (const method of tests) {
    for (const limit of [0, 2, 9]) {
      const seen: [number[], number[]] = [[], []];
      const atLimit = (into: number[]) => (_: Node, index: number) => {
        into.push(index);
        return method === "every" ? index < limit : index === limit;
      };
      expect(nodes[method](atLimit(seen[0])), method).toEqual(array[method](atLimit(seen[1])));
      expect(seen[0], method).toEqual(seen[1]);
    }
  }
  expect(nodes.flatMap((node, at) => node.allInputNodes.map((it) => `${at} ${it.name}`))).toEqual([
    "1 x",
    "2 relu",
    "3 neg",
  ]);
  expect(nodes.flatMap((it) => it.name)).toEqual(["x", "relu", "neg", "output"]);
  expect(nodes.reduce((text, it, at) => `${text}${at}${it.name}`, "")).toBe("0x1relu2neg3output");
  expect(new Graph().nodes.reduce((sum) => sum + 1, 0)).toBe(0);
});

test("an edit while they are gone through is seen, as in a walk", () => {
  const graph = chain();
  const seen: string[] = [];
  graph.nodes.forEach((node, at) => {
    seen.push(`${at} ${node.name}`);
    if (node.name === "relu") graph.insertingAfter(node, () => graph.callFunction("torch.abs", [node]));
  });
  expect(seen).toEqual(["0 x", "1 relu", "2 abs_1", "3 neg", "4 output"]);
});

test("they print as Python prints a list of nodes", () => {
  expect(String(chain().nodes)).toBe("[x, relu, neg, output]");
  expect(String(new Graph().nodes)).toBe("[]");
});
