/**
 * Programs as graph modules that hold their state: what `ExportedProgram.module()` is in PyTorch.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { type Arg, isNode, tuple } from "../graph/args.ts";
import { PyTreeCodeGen } from "../graph/codegen/pytree.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { graphNumber, NodeSource } from "../graph/nodeSource.ts";
import { List, Tuple } from "../base/values.ts";
import { Parameter } from "../nn/parameter.ts";
import type { Attribute, Module } from "../nn/module.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { InputPacking, OutputPacking, type PackedParameter, type PackedPart } from "../trace/packing.ts";
import type { PytreeSpec } from "../trace/pytree.ts";
import { isTraced } from "../record/record.ts";
import { removeEffectTokens } from "./effectTokens.ts";
import { InputChecker } from "./inputChecker.ts";
import type { ExportedProgram } from "./exportedProgram.ts";
import type { CallSignature, ProgramParts } from "./program.ts";
import type { InputSpec, OutputSpec } from "./signature.ts";
import { flattenCall, type TreeTypes } from "./tree.ts";
import { pytreeSpec } from "./treeSpecs.ts";

/** The graph of a program with `get_attr` nodes for what is lifted; the module shares the tensors with the program. */
export function unlift(parts: ProgramParts, make: (parts: ProgramParts) => ExportedProgram): GraphModule {
  const { graphModule, graphSignature } = parts;
  const { inputSpecs, outputSpecs } = graphSignature;
  const graph = graphModule.graph.clone();
  // Names of nodes that the program has no more are free, as in PyTorch's copy.
  graph.renameAll(new Map());
  noteSources(graph, graphModule.graph);
  const inputs = graph.findNodes({ op: "placeholder" });
  if (inputs.length !== inputSpecs.length) {
    throw fxError("GraphInvalid", `the graph has ${inputs.length} inputs and its signature ${inputSpecs.length}`);
  }
  refuseOthers(parts);
  removeEffectTokens(graph);
  const res = new GraphModule({}, undefined, graphModule.className);
  for (const [key, value] of graphModule.meta) res.meta.set(key, value);
  copyAttributes(graphModule, res);
  const state = new HeldState(parts, res);
  const reads = new Map<string, Node>();
  for (const [at, spec] of inputSpecs.entries()) {
    const input = inputs[at] as Node;
    if (spec.kind === "USER_INPUT" || spec.kind === "TOKEN") continue;
    const fqn = spec.target ?? input.name;
    state.hold(fqn, spec, input);
    const read = graph.insertingBefore(input, () =>
      graph.createNode("get_attr", fqn, [], {}, fqn.replaceAll(".", "_")),
    );
    for (const [key, value] of input.meta) read.meta.set(key, value);
    read.meta.set("from_node", [new NodeSource(input, UNLIFTED, ["create", "replace"])]);
    useEqual(input, read);
    graph.eraseNode(input);
    reads.set(fqn, read);
  }
  lowerOutputs(graph, outputSpecs, reads);
  const output = graph.outputNode();
  output?.meta.set("from_node", [new NodeSource(output, UNLIFTED, ["create", "replace"])]);
  for (const [at, { kind }] of inputSpecs.entries()) if (kind === "TOKEN") graph.eraseNode(inputs[at] as Node);
  const signature = parts.moduleCallGraph.find((it) => it.fqn === "")?.signature;
  if (signature !== undefined) graph.setCodegen(codegenOf(signature, parts, new InputChecker(parts, make)));
  res.graph = graph;
  return res;
}

const MODULE = "ExportedProgram.module()";
const UNLIFTED = `${MODULE}.unlift()`;

/** Notes which node of a graph each node of its copy comes from. */
function noteSources(copy: Graph, graph: Graph): void {
  const nodes = Array.from(graph.nodes);
  for (const [at, node] of Array.from(copy.nodes).entries()) {
    node.meta.set("from_node", [new NodeSource(nodes[at] as Node, MODULE, "create")]);
  }
}

/**
 * Runs `body` while each call of a program notes where what is made of it comes from: the module of the program, whose graph is run to
 * decompose it, and the program.
 */
export function notingSources<T>(graph: Graph, body: () => T): T {
  const calls = graph.nodes.filter((it) => it.op === "call_function");
  const before = calls.map((it) => it.meta.get("from_node"));
  const unlifted = new Graph();
  for (const node of calls) {
    const { name, target } = node;
    const module = { name, target, graph_id: graphNumber(unlifted), pass_name: DECOMPOSED, action: "create" };
    const from = { ...module, from_node: [new NodeSource(node, MODULE, "create").toDict()] };
    node.meta.set("from_node", [NodeSource.fromDict(from)]);
  }
  try {
    return body();
  } finally {
    for (const [at, node] of calls.entries()) {
      if (before[at] === undefined) node.meta.delete("from_node");
      else node.meta.set("from_node", before[at]);
    }
  }
}

/** How PyTorch calls the run that decomposes a program. */
const DECOMPOSED = "Interpreter_PropagateUnbackedSymInts";

/** Makes the users of a node use another one that is equal, so that what is known of the users stays true. */
function useEqual(node: Node, equal: Node): void {
  for (const user of Array.from(node.users)) {
    const val = user.meta.get("val");
    user.replaceInputWith(node, equal);
    if (val !== undefined) user.meta.set("val", val);
  }
}

function refuseOthers({ graphSignature, opaqueState }: ProgramParts): void {
  for (const { kind, arg, target } of graphSignature.inputSpecs) {
    const fqn = target ?? arg.name;
    if (kind === "CUSTOM_OBJ" || opaqueState.has(fqn)) {
      throw fxError("NotImplemented", `\`${fqn}\` is an object that only Python can make again`, { node: arg.name });
    }
  }
}

/** The modules of the graphs that the graph calls are copies; the tensors are the same. */
function copyAttributes(from: Module, to: Module): void {
  for (const [name, attribute] of from.attributes) {
    const isGraph = attribute.kind === "module" && attribute.module instanceof GraphModule;
    to.attributes.set(
      name,
      isGraph ? { kind: "module", module: (attribute.module as GraphModule).clone() } : attribute,
    );
  }
}

/** The tensors of a program, as a module holds them. */
class HeldState {
  readonly #parts: ProgramParts;
  readonly #module: GraphModule;
  /** Weights that are tied are one parameter. */
  readonly #parameters = new Map<Tensor, Tensor>();

  constructor(parts: ProgramParts, module: GraphModule) {
    this.#parts = parts;
    this.#module = module;
  }

  /** Puts the tensor of an input into the module. */
  hold(fqn: string, spec: InputSpec, input: Node): void {
    if (this.#parts.graphModule.findAttribute(fqn) !== undefined) {
      throw fxError("GraphInvalid", `\`${fqn}\` is an attribute of the module and an input of the graph`);
    }
    const constant = this.#parts.constants.get(fqn);
    const tensor = this.#parts.state.get(fqn)?.tensor ?? (constant?.kind === "tensor" ? constant.tensor : undefined);
    if (tensor === undefined) {
      throw fxError("AttributeMissing", `the program holds no tensor for the ${spec.kind} \`${fqn}\``, {
        node: input.name,
      });
    }
    setTensor(this.#module, fqn, this.#attribute(fqn, tensor, spec));
  }

  #attribute(fqn: string, tensor: Tensor, { kind, persistent }: InputSpec): Attribute {
    if (kind === "BUFFER") return { kind: "buffer", tensor, ...(persistent === false ? { persistent } : {}) };
    if (kind !== "PARAMETER") return { kind: "constant", tensor };
    const requiresGrad = this.#parts.state.get(fqn)?.requiresGrad ?? tensor.requiresGrad;
    const known = this.#parameters.get(tensor);
    const parameter = known ?? (tensor instanceof Parameter ? tensor : new Parameter(tensor, { requiresGrad }));
    this.#parameters.set(tensor, parameter);
    return { kind: "parameter", tensor: parameter };
  }
}

/** Puts a tensor at a dotted path, with empty modules above it where there are none. */
function setTensor(root: GraphModule, path: string, attribute: Attribute): void {
  const at = path.lastIndexOf(".");
  const parent = path.slice(0, Math.max(at, 0));
  if (at > 0 && root.findAttribute(parent) === undefined) root.addSubmodule(parent, new GraphModule());
  const holder = at > 0 ? root.findAttribute(parent) : undefined;
  if (at > 0 && holder?.kind !== "module") {
    throw fxError("GraphInvalid", `\`${path}\` is inside \`${parent}\`, which is a tensor`);
  }
  const module = holder?.kind === "module" ? holder.module : root;
  module.attributes.set(path.slice(at + 1), attribute);
}

/** Writes new values of buffers, parameters and inputs back, and returns what is the user's alone. */
function lowerOutputs(graph: Graph, specs: readonly OutputSpec[], reads: ReadonlyMap<string, Node>): void {
  const output = graph.outputNode();
  if (output === undefined) throw fxError("GraphInvalid", "the graph has no output");
  const results = resultsOf(output);
  if (results.length !== specs.length) {
    throw fxError("GraphInvalid", `the graph returns ${results.length} values and its signature ${specs.length}`);
  }
  const kept: Arg[] = [];
  const written = new Map<Arg, Node>();
  for (const [at, { kind, target = "" }] of specs.entries()) {
    const result = results[at] as Arg;
    if (kind === "TOKEN") continue;
    if (!MUTATIONS.has(kind)) {
      kept.push(result);
      continue;
    }
    const destination = kind === "USER_INPUT_MUTATION" ? graph.find(target) : reads.get(target);
    if (destination === undefined) {
      throw fxError("GraphInvalid", `${kind} names \`${target}\`, which is no input`);
    }
    const copy = graph.insertingBefore(output, () =>
      graph.callFunction("torch.ops.aten.copy_.default", [destination, result]),
    );
    copy.meta.set("val", destination.meta.get("val"));
    written.set(result, copy);
  }
  // As in PyTorch, a new value that is the user's as well is given as what it was written to.
  const val = output.meta.get("val");
  output.args = [tuple(...kept.map((it) => (isNode(it) ? (written.get(it) ?? it) : it)))];
  if (written.size === 0 && val !== undefined) output.meta.set("val", val);
}

/** The outputs that are new values of what a program holds or is given. */
export const MUTATIONS: ReadonlySet<string> = new Set<OutputSpec["kind"]>([
  "BUFFER_MUTATION",
  "PARAMETER_MUTATION",
  "USER_INPUT_MUTATION",
]);

/** What an output node returns, one after the other. */
export function resultsOf(output: Node): readonly Arg[] {
  const [result] = output.args;
  if (result === undefined) return [];
  return result instanceof Tuple || result instanceof List ? [...result] : [result];
}

/** The inputs of a program in the structure that it was exported with, which are checked. */
class ProgramPacking extends InputPacking {
  readonly #signature: CallSignature;
  readonly #types: TreeTypes;
  readonly #checker: InputChecker;

  constructor(
    parameters: readonly PackedParameter[],
    signature: CallSignature,
    types: TreeTypes,
    checker: InputChecker,
  ) {
    super(parameters);
    this.#signature = signature;
    this.#types = types;
    this.#checker = checker;
  }

  override flatten(inputs: readonly unknown[]): readonly unknown[] {
    const leaves = inputs.some(isTraced)
      ? super.flatten(inputs)
      : flattenCall(inputs, this.#signature.inSpec, this.#types);
    this.#checker.check(leaves);
    return leaves;
  }
}

function part(name: string, spec: PytreeSpec): PackedPart {
  return { name, spec, isOptional: false };
}

function codegenOf(signature: CallSignature, parts: ProgramParts, checker: InputChecker): PyTreeCodeGen {
  const { inSpec, outSpec, forwardArgNames = [] } = signature;
  const [args, kwargs] = inSpec.children.map((it) => pytreeSpec(it, parts));
  const parameters = (args?.children ?? []).map((spec, at): PackedParameter => {
    const name = forwardArgNames[at] ?? `arg${at}`;
    return { kind: "single", name, parts: [part(name, spec)] };
  });
  const keys = (kwargs?.context ?? []) as readonly string[];
  if (kwargs !== undefined && kwargs.children.length > 0) {
    const options = kwargs.children.map((spec, at) => part(keys[at] ?? String(at), spec));
    parameters.push({ kind: "options", name: "kwargs", parts: options });
  }
  const packing = new ProgramPacking(parameters, signature, parts, checker);
  return new PyTreeCodeGen({
    origArgs: packing.names,
    inSpec: packing,
    outSpec: new OutputPacking(pytreeSpec(outSpec, parts)),
  });
}
