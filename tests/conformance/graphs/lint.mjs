/**
 * The kind `lint`: what is wrong with a graph.
 *
 * @module
 */
import { FxError, Graph, GraphModule, Module, Parameter, tensor } from "tracefx";
import { build, Difference, same } from "./corpus.mjs";

/**
 * @typedef {{ name: string, before: import("./corpus.mjs").EncodedGraph, options: { at?: "construction" },
 *   modules?: { readonly [path: string]: { missing?: true, kind?: string } }, ok?: true,
 *   error?: import("./corpus.mjs").RecordedError }} Case
 */

/**
 * Cases in which an earlier check refuses what they build, and how it is told.
 * @type {Readonly<Record<string, readonly [body: () => unknown, kind: string]>>}
 */
const REFUSED_EARLIER = {
  // An argument of another graph is refused where it is given.
  argument_of_another_graph: [
    () => new Graph().callFunction("torch.relu", [new Graph().placeholder("y")]),
    "NodeForeign",
  ],
  // A name that is taken is refused where it is given.
  two_nodes_with_one_name: [
    () => {
      const graph = new Graph();
      graph.placeholder("neg");
      graph.createNamedNode("call_function", "torch.neg", [], {}, "neg");
    },
    "GraphInvalid",
  ],
  call_method_with_function_target: [
    () => new Graph().callMethod(/** @type {any} */ (() => undefined), []),
    "GraphArgument",
  ],
  graph_module_root_has_no_such_attribute: [() => moduleOf("nope.deeper", new Module()), "AttributeMissing"],
  graph_module_dict_root_has_no_such_key: [() => moduleOf("nope", {}), "AttributeMissing"],
  // Python's list is refused where a tuple is due; an array is both here, so anything but an array is refused.
  args_not_a_tuple: [() => new Graph().callFunction("torch.relu", /** @type {any} */ ("x")), "GraphArgument"],
};

/** Lints. */
export function checkLint(/** @type {Case} */ it) {
  const earlier = REFUSED_EARLIER[it.name];
  if (earlier !== undefined) {
    const [body, kind] = earlier;
    same(kindOf(body), kind, "the refusal");
    return;
  }
  const graph = build(it.before);
  const problems = graph.problems(ownerOf(it));
  const [first] = it.error?.msg.split("\n") ?? [];
  if (first === undefined) {
    same(
      problems.map((problem) => problem.reason),
      [],
      "problems",
    );
  } else if (first.startsWith("Argument")) {
    same(problems[0]?.reason, first, "the first problem");
  } else {
    const name = /^Node (\S+) target/.exec(first)?.[1];
    same([problems[0]?.kind, problems[0]?.node], ["AttributeMissing", name], "the first problem");
  }
}

/** @type {(path: string, root: import("tracefx").Root) => GraphModule} */
function moduleOf(path, root) {
  const graph = new Graph();
  graph.callModule(path, [graph.placeholder("x")]);
  return new GraphModule(root, graph);
}

/** @type {(body: () => unknown) => string} */
function kindOf(body) {
  try {
    body();
  } catch (error) {
    if (error instanceof FxError) return error.kind;
    throw error;
  }
  throw new Difference("nothing was refused");
}

/** @type {(it: Case) => Module} */
function ownerOf({ modules = {} }) {
  const owner = new Module();
  for (const [path, { missing, kind }] of Object.entries(modules)) {
    if (missing === true) continue;
    if (kind === "Parameter") owner.registerParameter(path, new Parameter(tensor([0.5])));
    else owner.addModule(path, new Module());
  }
  return owner;
}
