import { describe, expect, test } from "vitest";
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { LAYOUTS, MAX_DEPTH, MEMORY_FORMATS, OPCODES } from "../../../bindings/wire.ts";
import { type ArgInput, slice, tuple } from "../../src/graph/args.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { Module } from "../../src/nn/module.ts";
import type { Node } from "../../src/graph/node.ts";
import {
  Complex,
  DeviceArg,
  DTypeArg,
  Ellipsis,
  Float,
  float,
  LayoutArg,
  MemoryFormatArg,
  OpArg,
} from "../../src/base/values.ts";
import { decodeGraph, decodeModule, encodeGraph, encodeModule } from "../../src/wire/codec.ts";
import { CALL_OPTIONS } from "../../src/wire/options.ts";
import { Random } from "../graph/random.ts";
import { deep } from "./cases.ts";
import { thrown } from "../thrown.ts";

const TEXTS = ["", "x", "größe", "😀", "\u{ff5e}", "__proto__", "constructor", "toString", "then", "\0", "a.b", "10"];

function anyBits(random: Random): bigint {
  return (BigInt(Math.floor(random.next() * 2 ** 32)) << 32n) | BigInt(Math.floor(random.next() * 2 ** 32));
}

/** An argument of any kind over these nodes. */
function anyArg(random: Random, nodes: readonly Node[], depth = 0): ArgInput {
  const inner = (): ArgInput => anyArg(random, nodes, depth + 1);
  const several = (): ArgInput[] => Array.from({ length: random.below(4) }, inner);
  const text = (): string => random.pick(TEXTS);
  const leaves: (() => ArgInput)[] = [
    () => null,
    () => Ellipsis,
    () => random.next() < 0.5,
    () => random.below(1000) - 500,
    () => BigInt.asIntN(64, anyBits(random)),
    () => random.next() - 0.5,
    () => float(random.below(10)),
    () => Float.ofBits(anyBits(random)),
    () => Float.ofBits(0x7ff0000000000000n | (anyBits(random) >> 12n)),
    () => Complex.ofBits(anyBits(random), anyBits(random)),
    text,
    () => new DTypeArg(random.pick(Object.keys(DTYPES) as DType[])),
    () => new DeviceArg("cuda", random.next() < 0.5 ? undefined : random.below(8)),
    () => new LayoutArg(random.pick(LAYOUTS)),
    () => new MemoryFormatArg(random.pick(MEMORY_FORMATS)),
    () => new OpArg(text()),
    () => (nodes.length === 0 ? 0 : random.pick(nodes)),
  ];
  const containers: (() => ArgInput)[] = [
    several,
    () => tuple(...several()),
    () => new Map(several().map((it) => [text(), it])),
    () => slice(inner(), inner(), inner()),
  ];
  return random.pick(depth < 4 ? [...leaves, ...containers, ...containers] : leaves)();
}

/** A graph with a history: nodes are made in any place and erased again. */
function anyGraph(random: Random): Graph {
  const graph = new Graph();
  for (let step = random.below(12); step > 0; step--) {
    const nodes = [...graph.nodes];
    const before = random.below(nodes.length + 1);
    const usable = nodes.slice(0, before);
    const args = Array.from({ length: random.below(4) }, () => anyArg(random, usable));
    const kwargs = new Map(
      ["out", "__proto__", "größe"].slice(random.below(4)).map((key) => [key, anyArg(random, usable)]),
    );
    const name = random.pick([undefined, ...TEXTS, "add", "add_1", "add_9"]);
    const make = (): Node => graph.createNode(random.pick(OPCODES), random.pick(TEXTS), args, kwargs, name);
    const anchor = nodes[before];
    const node = anchor === undefined ? make() : graph.insertingBefore(anchor, make);
    if (random.next() < 0.3) node.meta.set(random.pick(TEXTS), random.pick(TEXTS));
    if (random.next() < 0.3) node.meta.set("val", random.pick([null, 3, 2.5, float(2), true, 2n ** 62n]));
    if (random.next() < 0.3) node.type = random.pick(TEXTS);
    const unused = [...graph.nodes].find((it) => it.users.size === 0);
    if (random.next() < 0.3 && unused !== undefined) graph.eraseNode(unused);
  }
  return graph;
}

describe.each(Array.from({ length: 60 }, (_, seed) => seed))("seed %i", (seed) => {
  test("a graph is read as it was", () => {
    const random = new Random(seed);
    for (let round = 0; round < 10; round++) {
      const graph = anyGraph(random);
      for (const options of [{}, CALL_OPTIONS]) {
        const file = encodeGraph(graph, options);
        const read = decodeGraph(file);
        expect(String(read)).toBe(String(graph));
        expect(Array.from(read.nodes, (it) => [...it.meta].toSorted())).toEqual(
          Array.from(graph.nodes, (it) => [...it.meta].toSorted()),
        );
        expect(encodeGraph(read, options)).toEqual(file);
      }
      expect(encodeGraph(graph.clone(), CALL_OPTIONS)).toEqual(encodeGraph(graph, CALL_OPTIONS));
    }
  });

  test("names go on as they would have", () => {
    const random = new Random(seed);
    const graph = anyGraph(random);
    const read = decodeGraph(encodeGraph(graph, CALL_OPTIONS));
    for (let round = 0; round < 20; round++) {
      const wanted = random.pick([...TEXTS, "add", "add_1", "add_3", "a_9"]);
      const [expected, made] = [graph, read].map((it) => it.createNode("call_function", "f", [], {}, wanted).name);
      expect(made).toBe(expected);
    }
  });
});

describe("what cannot be read is not written", () => {
  test("half of a character", () => {
    const graph = new Graph();
    graph.callFunction("f", ["ok", "\ud83d"]);
    const error = thrown(() => encodeGraph(graph));
    expect([error.kind, error.node]).toEqual(["GraphArgument", "f"]);
  });

  test("a node that is used before its definition", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const relu = graph.callFunction("torch.relu", [x]);
    graph.moveBefore(relu, x);
    const error = thrown(() => encodeGraph(graph));
    expect([error.kind, error.node, error.reason]).toEqual([
      "GraphInvalid",
      "relu",
      "Argument 'x' was used before it has been defined",
    ]);
  });

  test("an argument that is nested too deep", () => {
    expect(String(decodeGraph(encodeGraph(deep(MAX_DEPTH))))).toBe(String(deep(MAX_DEPTH)));
    expect(thrown(() => encodeGraph(deep(MAX_DEPTH + 1))).kind).toBe("LimitExceeded");
  });

  test("a device that no machine has", () => {
    for (const device of [new DeviceArg("a b"), new DeviceArg("cuda", -1), new DeviceArg("cuda", 1.5)]) {
      const graph = new Graph();
      graph.callFunction("f", [device]);
      expect(thrown(() => encodeGraph(graph)).kind).toBe("GraphArgument");
    }
  });

  test("a module without a graph, unless it is left out", () => {
    const module = new GraphModule();
    module.attributes.set("leaf", { kind: "module", module: new Module() });
    expect(thrown(() => encodeModule(module)).message).toContain("the module `leaf` has no graph");
    expect(decodeModule(encodeModule(module, { leafModules: "omit" }).bytes).attributes.size).toBe(0);
  });

  test("modules in modules without end", () => {
    const module = new GraphModule();
    module.attributes.set("self", { kind: "module", module });
    expect(thrown(() => encodeModule(module)).kind).toBe("LimitExceeded");
  });

  test("modules that stand in two places each", () => {
    // Each stands in the file once for each path to it: two at the first level, and 2^40 at the last.
    let module = new GraphModule();
    for (let level = 0; level < 40; level++) {
      const outer = new GraphModule();
      for (const name of ["a", "b"]) outer.attributes.set(name, { kind: "module", module });
      module = outer;
    }
    expect(thrown(() => encodeModule(module)).reason).toContain("65536 modules");
  });
});
