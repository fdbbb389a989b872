/**
 * Graph modules of operators as programs, which the engine runs whole.
 *
 * @module
 */
import { checkGraphModule } from "../rewrite/checks.ts";
import { fxError, GraphError } from "../base/errors.ts";
import { type Arg, isInt, isNode, tuple } from "../graph/args.ts";
import { CodeGen } from "../graph/codegen/codegen.ts";
import { kindOfExpression } from "../graph/expression.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { SymExpr } from "../graph/val.ts";
import { Dict, Float, List, Tuple } from "../base/values.ts";
import type { Attribute } from "../nn/module.ts";
import { ExportedProgram } from "./exportedProgram.ts";
import type { Constant, ProgramParts, StateEntry, TreeSpec } from "./program.ts";
import { type Argument, GraphSignature, type InputSpec, type OutputSpec } from "./signature.ts";

type TensorAttribute = Exclude<Attribute, { readonly kind: "module" }>;

/** The schema that such a program is in, as PyTorch counts them. */
const SCHEMA = [8, 20] as const;

const LEAF: TreeSpec = { type: undefined, context: undefined, children: [] };

/**
 * A graph module as an exported program. Every call in its graph must be one of an operator (`torch.ops.…`) or
 * `operator.getitem`, and all inputs tensors, or ints that are symbols as `meta.val`; parameters, buffers and constants become inputs of the program, as
 * `torch.export` has them.
 *
 * `programOf(gm).toFxg()` is a file that the command and Rust run; `programOf(gm).module()` holds a copy of the state. To run a graph module fast, whatever
 * it calls, there is {@link compile}.
 *
 * @example
 * ```ts
 * using run = programOf(gm).module();
 * const logits = run(image);
 * ```
 */
export function programOf(module: GraphModule): ExportedProgram {
  return new ExportedProgram(partsOf(module));
}

/** The parts of {@link programOf}. */
export function partsOf(module: GraphModule): ProgramParts {
  checkGraphModule("programOf", module);
  const { graph } = module;
  refuseOthers(graph);
  const lifted = new Lifted(module);
  const copies = new Map<Node, Arg>();
  for (const node of graph.findNodes({ op: "get_attr" })) copies.set(node, lifted.input(node));
  const inputs = graph.findNodes({ op: "placeholder" });
  for (const node of inputs) copies.set(node, lifted.userInput(node));
  const result = lifted.graph.graphCopy(graph, copies);
  const leaves: Arg[] = [];
  const outSpec = flatten(result ?? null, leaves);
  lifted.graph.output(tuple(...leaves));
  return {
    graphModule: GraphModule.ofGraph(lifted.graph),
    graphSignature: new GraphSignature(lifted.inputSpecs, leaves.map(outputSpec)),
    state: lifted.state,
    opaqueState: new Map(),
    constants: lifted.constants,
    rangeConstraints: new Map(),
    moduleCallGraph: [{ fqn: "", signature: callSignature(inputs, outSpec) }],
    verifiers: ["TRAINING"],
    guards: [],
    exampleInputs: undefined,
    opsetVersion: new Map(),
    schemaVersion: SCHEMA,
    torchVersion: "",
    namedtupleFields: new Map(),
    extraFiles: new Map(),
  };
}

/** The graph of the program, and what becomes an input of it. */
class Lifted {
  readonly graph = new Graph();
  readonly inputSpecs: InputSpec[] = [];
  readonly state = new Map<string, StateEntry>();
  readonly constants = new Map<string, Constant>();
  readonly #module: GraphModule;
  readonly #inputs = new Map<string, Node>();

  constructor(module: GraphModule) {
    this.#module = module;
  }

  /** The input for an attribute, one for each path. */
  input({ name, target }: Node): Node {
    const known = this.#inputs.get(target);
    if (known !== undefined) return known;
    const attribute = this.#module.findAttribute(target);
    if (attribute === undefined || attribute.kind === "module") {
      throw fxError("AttributeMissing", `there is no tensor \`${target}\``, { node: name });
    }
    const prefix = { parameter: "p", buffer: "b", constant: "c" }[attribute.kind];
    const node = this.graph.placeholder(`${prefix}_${target.replaceAll(".", "_")}`);
    this.#inputs.set(target, node);
    this.#specify(node, target, attribute);
    return node;
  }

  userInput({ target, meta }: Node): Node {
    const node = this.graph.placeholder(target);
    for (const [key, value] of meta) node.meta.set(key, value);
    this.inputSpecs.push({ kind: "USER_INPUT", arg: argumentOf(node), target: undefined, persistent: undefined });
    return node;
  }

  #specify(node: Node, target: string, attribute: TensorAttribute): void {
    const { tensor } = attribute;
    const arg = argumentOf(node);
    if (attribute.kind === "constant") {
      this.inputSpecs.push({ kind: "CONSTANT_TENSOR", arg, target, persistent: undefined });
      this.constants.set(target, { kind: "tensor", tensor });
      return;
    }
    const isParameter = attribute.kind === "parameter";
    const persistent = attribute.kind === "buffer" ? attribute.persistent !== false : undefined;
    this.inputSpecs.push({ kind: isParameter ? "PARAMETER" : "BUFFER", arg, target, persistent });
    if (persistent === false) this.constants.set(target, { kind: "tensor", tensor });
    else this.state.set(target, { tensor, isParameter, requiresGrad: tensor.requiresGrad });
  }
}

/** Refuses everything in the graph that no program has, all of it at once. */
function refuseOthers(graph: Graph): void {
  const { codegen } = graph;
  if (codegen.processInputs !== CodeGen.prototype.processInputs || graph.outputNode() === undefined) {
    throw fxError("GraphArgument", "a program has an output, and inputs that are not nested", {
      help: "gm.forward(...) runs any graph",
    });
  }
  const [first, ...others] = Array.from(graph.nodes).flatMap((node) => {
    const why = obstacleOf(node);
    return why === undefined ? [] : [{ node, why }];
  });
  if (first === undefined) return;
  throw new GraphError("GraphArgument", `the node ${first.why}, and a program has operators only`, {
    node: first.node.name,
    notes: others.map(({ node, why }) => `%${node.name} ${why}`),
    help: "gm.forward(...) runs any graph; torch.export gives graphs of operators",
  });
}

function obstacleOf({ op, target, args }: Node): string | undefined {
  switch (op) {
    case "placeholder":
      return target.startsWith("*") || args.length > 0 ? "is an input that may be left out" : undefined;
    case "call_function":
      return target.startsWith("torch.ops.") || target === "operator.getitem" ? undefined : `calls ${target}`;
    case "call_method":
      return `calls the method ${target}`;
    case "call_module":
      return `calls the module ${target}`;
    case "get_attr":
    case "output":
      return undefined;
  }
}

function argumentOf({ name, meta }: Node): Argument {
  const val = meta.get("val");
  const isSymInt = val instanceof SymExpr && kindOfExpression(val) === "int";
  return { type: isSymInt ? "symInt" : "tensor", name };
}

function outputSpec(leaf: Arg): OutputSpec {
  return { kind: "USER_OUTPUT", arg: isNode(leaf) ? argumentOf(leaf) : constantOf(leaf), target: undefined };
}

/** An output that is not computed. */
function constantOf(value: Arg): Argument {
  const constant = { type: "constant", name: "" } as const;
  if (value === null) return { ...constant, value: { type: "None" } };
  if (typeof value === "boolean") return { ...constant, value: { type: "bool", value } };
  if (typeof value === "string") return { ...constant, value: { type: "str", value } };
  if (value instanceof Float) return { ...constant, value: { type: "float", value: value.value } };
  if (typeof value === "bigint") return { ...constant, value: { type: "int", value } };
  if (typeof value === "number") return { ...constant, value: { type: isInt(value) ? "int" : "float", value } };
  throw fxError("GraphArgument", "a program gives tensors, numbers, texts and None, in lists, tuples and dicts");
}

/** The leaves of an output, and its structure. */
function flatten(value: Arg, leaves: Arg[]): TreeSpec {
  const each = (it: Arg): TreeSpec => flatten(it, leaves);
  if (value instanceof List) return { type: "builtins.list", context: "null", children: Array.from(value, each) };
  if (value instanceof Tuple) return { type: "builtins.tuple", context: "null", children: Array.from(value, each) };
  if (value instanceof Dict) {
    const children = Array.from(value.values(), each);
    return { type: "builtins.dict", context: JSON.stringify([...value.keys()]), children };
  }
  leaves.push(value);
  return LEAF;
}

function callSignature(inputs: readonly Node[], outSpec: TreeSpec) {
  const args: TreeSpec = { type: "builtins.tuple", context: "null", children: inputs.map(() => LEAF) };
  const kwargs: TreeSpec = { type: "builtins.dict", context: "[]", children: [] };
  return {
    inputs: [],
    outputs: [],
    inSpec: { type: "builtins.tuple", context: "null", children: [args, kwargs] },
    outSpec,
    forwardArgNames: inputs.map(({ target }) => target),
  };
}
