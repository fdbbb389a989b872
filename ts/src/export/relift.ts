/**
 * Graph modules that were made of programs, as programs again: what they hold becomes inputs.
 *
 * @module
 */
import { fxError, type FxError } from "../base/errors.ts";
import { type Arg, isNode, tuple } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { isVal } from "../graph/val.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import type { Attribute } from "../nn/module.ts";
import { argumentOf, constantOf } from "./arguments.ts";
import { copyInput, inputNamed, liftedName } from "./placeholderNames.ts";
import type { Constant, ProgramParts, StateEntry } from "./program.ts";
import { type Argument, GraphSignature, type InputKind, type InputSpec, type OutputSpec } from "./signature.ts";
import { MUTATIONS, resultsOf } from "./unlift.ts";

type TensorAttribute = Exclude<Attribute, { readonly kind: "module" }>;

/** What of a program the graph module changes. */
export interface Relifted {
  readonly graphModule: GraphModule;
  readonly graphSignature: GraphSignature;
  readonly state: Map<string, StateEntry>;
  readonly constants: Map<string, Constant>;
}

const KINDS = {
  parameter: ["PARAMETER", "p"],
  buffer: ["BUFFER", "b"],
  constant: ["CONSTANT_TENSOR", "c"],
} as const satisfies Record<TensorAttribute["kind"], readonly [InputKind, string]>;

/** The order of what is lifted. */
const LIFTED: readonly InputKind[] = ["PARAMETER", "BUFFER", "CONSTANT_TENSOR"];

/** What is lifted: its name in the module, and its input. */
interface Lifted {
  readonly target: string;
  readonly attribute: TensorAttribute;
  readonly input: Node;
  readonly spec: InputSpec;
}

/**
 * The graph of the module with an input for each tensor that it holds, in the order of the program, and new ones behind those of
 * their kind. The user's inputs and results are those of the program.
 */
export function relift(parts: ProgramParts, module: GraphModule): Relifted {
  const { graphSignature, verifiers } = parts;
  const graph = new Graph();
  const copies = new Map<Node, Arg>();
  const lifted = liftTensors(graph, module, graphSignature.inputSpecs, copies);
  const given = graphSignature.inputSpecs.filter((it) => it.kind === "USER_INPUT");
  const inputs = module.graph.findNodes({ op: "placeholder" }).map((node) => {
    const copy = copyInput(graph, node);
    copies.set(node, copy);
    return copy;
  });
  if (inputs.length !== given.length) throw changed("inputs", inputs.length, given.length);
  const result = graph.graphCopy(module.graph, copies);
  if (result === undefined) throw fxError("GraphInvalid", "the graph has no output");
  const output = graph.output(result);
  const userInputs = given.map((spec, at) => ({ ...spec, arg: renamed(spec.arg, (inputs[at] as Node).name) }));
  const destinations = new Map(lifted.map((it): [Node, Destination] => [it.input, destinationOf(it)]));
  for (const it of inputs) destinations.set(it, { kind: "USER_INPUT_MUTATION", target: it.name });
  const written = verifiers.includes("TRAINING") ? [] : takeWrites(graph, destinations);
  const specs = graphSignature.outputSpecs.filter((it) => !MUTATIONS.has(it.kind) && it.kind !== "TOKEN");
  const results = resultsOf(output).map((it) => written.find(({ copy }) => copy === it)?.value ?? it);
  if (results.length !== specs.length) throw changed("outputs", results.length, specs.length);
  output.args = [tuple(...written.map(({ value }) => value), ...results)];
  graph.eraseNodes(written.map(({ copy }) => copy));
  return {
    graphModule: moduleOf(graph, module),
    graphSignature: new GraphSignature(
      [...lifted.map(({ spec }) => spec), ...userInputs],
      [
        ...written.map(({ value, kind, target }): OutputSpec => ({ kind, arg: argOf(value), target })),
        ...specs.map((spec, at): OutputSpec => ({ ...spec, arg: argOf(results[at] as Arg) })),
      ],
    ),
    ...stateOf(parts, lifted),
  };
}

/** Makes inputs of the tensors of the module: those of the program, what else is registered, and what else the graph reads. */
function liftTensors(graph: Graph, module: GraphModule, specs: readonly InputSpec[], copies: Map<Node, Arg>): Lifted[] {
  const reads = new Map<string, Node[]>();
  for (const read of module.graph.findNodes({ op: "get_attr" })) {
    reads.set(read.target, [...(reads.get(read.target) ?? []), read]);
    if (module.findAttribute(read.target) !== undefined) continue;
    throw fxError("AttributeMissing", `there is no tensor \`${read.target}\``, { node: read.name });
  }
  const known = specs.flatMap(({ kind, target, arg }): [string, string][] =>
    LIFTED.includes(kind) && target !== undefined ? [[target, arg.name]] : [],
  );
  const names = new Map(known);
  const registered = [
    module.namedParameters({ removeDuplicate: false }),
    module.namedBuffers({ removeDuplicate: false }),
  ];
  const targets = new Set([...names.keys(), ...registered.flatMap((it) => [...it.keys()]), ...reads.keys()]);
  const held = [...targets].flatMap((target): { target: string; attribute: TensorAttribute }[] => {
    const attribute = module.findAttribute(target);
    return attribute === undefined || attribute.kind === "module" ? [] : [{ target, attribute }];
  });
  const order = ({ attribute }: (typeof held)[number]): number => LIFTED.indexOf(KINDS[attribute.kind][0]);
  return held
    .toSorted((a, b) => order(a) - order(b))
    .map(({ target, attribute }) => {
      const [kind, prefix] = KINDS[attribute.kind];
      const input = inputNamed(graph, names.get(target) ?? liftedName(prefix, target));
      const [read] = reads.get(target) ?? [];
      for (const [key, value] of read?.meta ?? []) input.meta.set(key, value);
      input.meta.set("val", tensorVal(attribute.tensor));
      for (const it of reads.get(target) ?? []) copies.set(it, input);
      const persistent = attribute.kind === "buffer" ? attribute.persistent !== false : undefined;
      return {
        target,
        attribute,
        input,
        spec: { kind, arg: { type: "tensor", name: input.name }, target, persistent },
      };
    });
}

/** What a value is written to. */
interface Destination {
  readonly kind: OutputSpec["kind"];
  readonly target: string;
}

function destinationOf({ attribute, target }: Lifted): Destination {
  return { kind: attribute.kind === "parameter" ? "PARAMETER_MUTATION" : "BUFFER_MUTATION", target };
}

/** The copies at the end of a graph into what it holds or is given, which a program without writes gives as results. */
function takeWrites(
  graph: Graph,
  destinations: ReadonlyMap<Node, Destination>,
): (Destination & { readonly copy: Node; readonly value: Arg })[] {
  const res: (Destination & { readonly copy: Node; readonly value: Arg })[] = [];
  for (const node of graph.nodes.reversed()) {
    if (node.op === "output") continue;
    const [into, value] = node.args;
    const destination = isNode(into) ? destinations.get(into) : undefined;
    if (node.target !== "torch.ops.aten.copy_.default" || destination === undefined || value === undefined) break;
    res.unshift({ ...destination, copy: node, value });
  }
  return res;
}

/** A module of the graph, with copies of the graphs that it calls. */
function moduleOf(graph: Graph, module: GraphModule): GraphModule {
  const res = GraphModule.ofGraph(graph, module.className);
  for (const [key, value] of module.meta) res.meta.set(key, value);
  for (const { target } of graph.findNodes({ op: "get_attr" })) {
    const found = module.findAttribute(target);
    if (found?.kind !== "module") continue;
    res.addSubmodule(target, found.module instanceof GraphModule ? found.module.clone() : found.module);
  }
  return res;
}

/** What the module holds, and what of the program's state its graph never had. */
function stateOf({ graphSignature, state, constants }: ProgramParts, lifted: readonly Lifted[]) {
  const wasLifted = new Set(graphSignature.inputSpecs.map(({ target }) => target));
  const res = {
    state: new Map([...state].filter(([fqn]) => !wasLifted.has(fqn))),
    constants: new Map([...constants].filter(([fqn]) => !wasLifted.has(fqn))),
  };
  for (const { target, attribute, spec } of lifted) {
    const { tensor } = attribute;
    const isParameter = spec.kind === "PARAMETER";
    if (isParameter || spec.persistent === true) {
      res.state.set(target, { tensor, isParameter, requiresGrad: tensor.requiresGrad });
    } else res.constants.set(target, { kind: "tensor", tensor });
  }
  return res;
}

/** Constants keep their names, as in PyTorch. */
function renamed(arg: Argument, name: string): Argument {
  return arg.type === "constant" ? arg : { ...arg, name };
}

function argOf(value: Arg): Argument {
  if (!isNode(value)) return constantOf("", value);
  const val = value.meta.get("val");
  return isVal(val) ? argumentOf(value.name, val) : { type: "tensor", name: value.name };
}

function changed(what: string, now: number, before: number): FxError {
  const text = `Number of ${what} changed after transformation: there are ${now}, and there were ${before}`;
  return fxError("PassFailed", text, {
    help: "a program that is lifted again keeps its inputs and results in their order",
  });
}
