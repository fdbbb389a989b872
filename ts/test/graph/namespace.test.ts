import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ILLEGAL_NAMES } from "../../src/bindings/names.ts";
import { Graph } from "../../src/graph/graph.ts";
import { Namespace } from "../../src/graph/namespace.ts";
import type { Opcode } from "../../src/graph/node.ts";
import { build, cases, type EncodedGraph } from "./corpus.ts";

interface Case {
  readonly name: string;
  readonly pass: string;
  readonly options: { readonly existing?: string[] };
  readonly before: unknown;
  readonly after: string | string[];
}

/** The names that a case gives. */
function answer({ pass, options, before }: Case): string | string[] {
  switch (pass) {
    case "_Namespace.create_name":
      return createNames(before as (string | [string, number])[]);
    case "Graph.create_node names": {
      const graph = new Graph();
      return (before as [Opcode, string, string | null][]).map(
        ([op, target, name]) => graph.createNode(op, target, [], {}, name ?? undefined).name,
      );
    }
    case "Graph": {
      const graph = new Graph();
      const x = graph.placeholder("x");
      return [0, 1, 2].map(() => {
        const node = graph.callFunction("torch.neg", [x]);
        graph.eraseNode(node);
        return node.name;
      });
    }
    case "graph_copy": {
      const graph = new Graph();
      for (const name of options.existing ?? []) graph.placeholder(name);
      graph.graphCopy(build(before as EncodedGraph));
      return Array.from(graph.nodes, (node) => node.name);
    }
    case "deepcopy":
      return Array.from(build(before as EncodedGraph).clone().nodes, (node) => node.name);
    case "deepcopy+create_node": {
      const graph = recreated(before as EncodedGraph).clone();
      return graph.callFunction("torch.neg", [graph.first ?? null]).name;
    }
    default:
      throw new Error(`unknown pass ${pass}`);
  }
}

/** Candidates come alone, or with an object that keeps the name it was given first, as FX's `obj` argument does. */
function createNames(candidates: (string | [string, number])[]): string[] {
  const names = new Namespace();
  const given = new Map<number, string>();
  return candidates.map((it) => {
    if (typeof it === "string") return names.createName(it);
    const [candidate, object] = it;
    const name = given.get(object) ?? names.createName(candidate);
    given.set(object, name);
    return name;
  });
}

/** The graph as PyTorch made it: through the namespace, which then knows the suffixes. */
function recreated(encoded: EncodedGraph): Graph {
  const graph = new Graph();
  graph.graphCopy(build(encoded));
  return graph;
}

/**
 * Where PyTorch is wrong: it takes `None` for a free name, because the object that it keeps for the name `None` is what
 * stands for "no object". Code generated from such a graph does not parse.
 */
const CORRECTED: ReadonlyMap<string, (after: string[]) => string[]> = new Map([
  ["keywords", (after) => after.map((name) => (name === "None" ? "None_1" : name))],
]);

describe("names that PyTorch gives", () => {
  test.each(cases<Case>("namespace"))("$name", (it) => {
    const corrected = CORRECTED.get(it.name);
    expect(answer(it)).toEqual(corrected === undefined ? it.after : corrected(it.after as string[]));
  });

  test("avoids the names that PyTorch avoids", () => {
    const recorded = new URL("../../../tests/fixtures/graphs/illegal_names.json", import.meta.url);
    expect([...ILLEGAL_NAMES].toSorted()).toEqual(JSON.parse(readFileSync(recorded, "utf8")));
  });
});

describe("Namespace", () => {
  test("gives ten thousand clashing names without searching from the beginning each time", () => {
    const names = new Namespace();
    const given = Array.from({ length: 10_000 }, () => names.createName("add_1"));
    expect(new Set(given).size).toBe(10_000);
    expect(given.at(-1)).toBe("add_10000");
  });

  test("treats names of JavaScript's own as ordinary", () => {
    const names = new Namespace();
    const wanted = ["__proto__", "constructor", "hasOwnProperty", "__proto__", "toString"];
    expect(wanted.map((it) => names.createName(it))).toEqual([
      "__proto__",
      "constructor",
      "hasOwnProperty",
      "__proto___1",
      "toString",
    ]);
  });

  test("keeps a suffix of too many digits as part of the name", () => {
    const names = new Namespace();
    const long = `a_${"9".repeat(50)}`;
    expect([names.createName(long), names.createName(long)]).toEqual([long, `${long}_1`]);
  });
});
