import { describe, expect, test } from "vitest";
import type { ErrorName } from "../../src/bindings/errors.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/graph/module.ts";
import { Module } from "../../src/nn/module.ts";
import { tensor } from "../../src/tensor/construct.ts";
import { build, cases, type EncodedGraph } from "./corpus.ts";

interface Case {
  readonly name: string;
  readonly before: EncodedGraph;
  readonly modules?: { readonly [path: string]: { readonly missing?: true; readonly kind?: string } };
  readonly options: { readonly at?: "construction" };
  readonly ok?: true;
  readonly error?: { readonly msg: string };
}

/** Cases that lint cannot meet here, because an earlier check refuses what they build; the reason, and how it is told. */
const REFUSED_EARLIER: ReadonlyMap<string, readonly [body: () => unknown, kind: ErrorName]> = new Map([
  // An argument of another graph is refused where it is given.
  [
    "argument_of_another_graph",
    [() => new Graph().callFunction("torch.relu", [new Graph().placeholder("y")]), "NodeForeign"],
  ],
  // A name that is taken is refused where it is given.
  [
    "two_nodes_with_one_name",
    [
      () => {
        const graph = new Graph();
        graph.placeholder("neg");
        graph.createNamedNode("call_function", "torch.neg", [], {}, "neg");
      },
      "GraphInvalid",
    ],
  ],
  // A target is a name, so a function can be neither given nor missing; anything but a string is refused.
  [
    "call_method_with_function_target",
    [() => new Graph().callMethod((() => undefined) as unknown as string, []), "GraphArgument"],
  ],
  // The attributes are looked for by lint, with the module, and not when the module is made.
  ["graph_module_root_has_no_such_attribute", [() => lintModule("nope.deeper"), "AttributeMissing"]],
  ["graph_module_dict_root_has_no_such_key", [() => lintModule("nope"), "AttributeMissing"]],
  // Python's list is refused where a tuple is due; an array is both here, so anything but an array is refused.
  ["args_not_a_tuple", [() => new Graph().callFunction("torch.relu", "x" as unknown as []), "GraphArgument"]],
]);

/** PyTorch refuses a string as the target of a function; here the string is the function's name. */
const NOT_APPLICABLE: ReadonlySet<string> = new Set(["call_function_with_string_target"]);

function lintModule(path: string): void {
  const graph = new Graph();
  graph.callModule(path, [graph.placeholder("x")]);
  graph.lint(GraphModule.ofGraph(graph));
}

function ownerOf({ modules = {} }: Case, graph: Graph): GraphModule {
  const owner = GraphModule.ofGraph(graph);
  for (const [path, { missing, kind }] of Object.entries(modules)) {
    if (missing === true) continue;
    if (kind === "Parameter") owner.attributes.set(path, { kind: "parameter", tensor: tensor([1]) });
    else owner.attributes.set(path, { kind: "module", module: new Module() });
  }
  return owner;
}

describe("what PyTorch's lint says", () => {
  test.each(cases<Case>("lint").filter(({ name }) => !NOT_APPLICABLE.has(name)))("$name", (it) => {
    const earlier = REFUSED_EARLIER.get(it.name);
    if (earlier !== undefined) {
      const [body, kind] = earlier;
      expect(body).toThrow(expect.objectContaining({ kind }));
      return;
    }
    const graph = build(it.before);
    const problems = graph.problems(ownerOf(it, graph));
    const [first] = it.error?.msg.split("\n") ?? [];
    if (first === undefined) expect(problems).toEqual([]);
    else if (first.startsWith("Argument")) expect(problems[0]?.reason).toBe(first);
    else expect(problems[0]).toMatchObject({ kind: "AttributeMissing", node: it.before.nodes[problemAt(it)]?.name });
  });
});

/** The node that a message about an attribute names. */
function problemAt({ before, error }: Case): number {
  const name = /^Node (\S+) target/.exec(error?.msg ?? "")?.[1];
  return before.nodes.findIndex((it) => it.name === name);
}

describe("lint", () => {
  test("reports every problem, the first as the error and the others as notes", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const first = graph.callFunction("torch.neg", [x]);
    const second = graph.callFunction("torch.abs", [first]);
    const third = graph.callFunction("torch.add", [second, { alpha: [first] }]);
    graph.output(third);
    x.prepend(third);
    expect(graph.problems().map((it) => it.node)).toEqual(["add", "add"]);
    expect(() => graph.lint()).toThrow(
      expect.objectContaining({
        code: "FX0201",
        node: "add",
        reason: expect.stringContaining("Argument 'abs_1' of Node 'add' was used before it has been defined!"),
        notes: [expect.stringContaining("Argument 'neg' of Node 'add'")],
      }),
    );
  });

  test("finds attributes through sub-modules, and names with dots whole", () => {
    const graph = new Graph();
    graph.getAttr("inner.leaf");
    graph.getAttr("a.b");
    const inner = new GraphModule();
    const owner = GraphModule.ofGraph(graph);
    const leaf = { kind: "module", module: new Module() } as const;
    expect(graph.problems(owner)).toHaveLength(2);
    inner.attributes.set("leaf", leaf);
    owner.attributes.set("inner", { kind: "module", module: inner });
    owner.attributes.set("a.b", leaf);
    expect(graph.problems(owner)).toEqual([]);
    expect(owner.graphModules()).toEqual([
      ["", owner],
      ["inner", inner],
    ]);
  });

  test("does not mistake JavaScript's own properties for attributes", () => {
    const graph = new Graph();
    graph.getAttr("constructor");
    graph.getAttr("__proto__.toString");
    expect(graph.problems(GraphModule.ofGraph(graph)).map((it) => it.node)).toEqual([
      "constructor",
      "__proto___to_string",
    ]);
  });
});
