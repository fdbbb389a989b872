/**
 * Single calls of operators as programs, which the engine decomposes.
 *
 * @module
 */
import type { ResolvedCall } from "../engine/dispatch.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { type ArgInput, tuple } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { SymExpr, TensorMeta, type Val, ValSequence } from "../graph/val.ts";
import { Tensor } from "../tensor/tensor.ts";
import { argumentOf } from "./arguments.ts";
import { ExportedProgram } from "./exportedProgram.ts";
import type { ProgramParts, RangeConstraint } from "./program.ts";
import { mapValues } from "./recordedCall.ts";
import { type Argument, GraphSignature } from "./signature.ts";

/** A call without its operator: a graph of what that is written in, and the values that are its inputs. */
export interface WrittenOut {
  readonly graph: Graph;
  readonly values: readonly unknown[];
  /** What the operator gives, or the items of it. */
  readonly results: readonly Node[];
  /** What is written into inputs, by their places. */
  readonly writes: readonly { readonly input: number; readonly value: Node }[];
  /** Whether the results are the items of what the operator gives. */
  readonly givesItems: boolean;
}

/** What an operator is written in, for these arguments. `val` says what it gives, and `valOf` what is known of a tensor. */
export function writtenOut(call: ResolvedCall, val: Val, valOf: (tensor: Tensor) => Val): WrittenOut {
  const target = `torch.ops.${call.name}`;
  const { graph, values, results, givesItems } = graphOfCall(call, val, valOf);
  const program = programOfValues(GraphModule.ofGraph(graph), results);
  const names = graph.findNodes({ op: "placeholder" }).map((it) => it.name);
  const decomposed = program.runDecompositions(new Set([target]));
  const nodes = (decomposed.graph.outputNode()?.args[0] ?? []) as readonly Node[];
  const specs = decomposed.graphSignature.outputSpecs;
  return {
    graph: decomposed.graph,
    values,
    results: nodes.filter((_, at) => specs[at]?.kind === "USER_OUTPUT"),
    writes: specs.flatMap((it, at) =>
      it.kind === "USER_INPUT_MUTATION"
        ? [{ input: names.indexOf(it.target as string), value: nodes[at] as Node }]
        : [],
    ),
    givesItems,
  };
}

/** A graph on tensors and sizes as a program, without a module around. The results are nodes. */
export function programOfValues(graphModule: GraphModule, results: readonly Node[]): ExportedProgram {
  const inputs = graphModule.graph.findNodes({ op: "placeholder" });
  return new ExportedProgram({
    ...bareParts(),
    graphModule,
    graphSignature: new GraphSignature(
      inputs.map((it) => ({ kind: "USER_INPUT", arg: argument(it), target: undefined, persistent: undefined })),
      results.map((it) => ({ kind: "USER_OUTPUT", arg: argument(it), target: undefined })),
    ),
    rangeConstraints: rangesOf(inputs),
  });
}

function argument({ name, meta }: Node): Argument {
  return argumentOf(name, meta.get("val") as Val);
}

function graphOfCall({ name, args, kwargs }: ResolvedCall, val: Val, valOf: (tensor: Tensor) => Val) {
  const graph = new Graph();
  const values: unknown[] = [];
  const inputs = new Map<unknown, Node>();
  const asArg = (value: unknown): ArgInput => {
    if (Array.isArray(value)) return value.map(asArg) as ArgInput;
    if (!(value instanceof Tensor || value instanceof SymExpr)) return value as ArgInput;
    const key = value instanceof SymExpr ? value.srepr : value;
    let node = inputs.get(key);
    if (node === undefined) {
      node = graph.placeholder(`arg${values.length}`);
      node.meta.set("val", value instanceof Tensor ? valOf(value) : value);
      inputs.set(key, node);
      values.push(value);
    }
    return node;
  };
  const positional = args.map(asArg);
  const node = graph.callFunction(
    `torch.ops.${name}`,
    positional,
    mapValues(kwargs, asArg) as Record<string, ArgInput>,
  );
  node.meta.set("val", val);
  const givesItems = val instanceof ValSequence;
  const results = givesItems ? val.items.map((it, at) => itemOf(graph, node, at, it)) : [node];
  graph.output(tuple(...results));
  return { graph, values, results, givesItems };
}

function itemOf(graph: Graph, node: Node, at: number, val: Val): Node {
  const item = graph.callFunction("operator.getitem", [node, at]);
  item.meta.set("val", val);
  return item;
}

/** The symbols of sizes. They are 2 at least, since smaller sizes are numbers. */
function rangesOf(nodes: readonly Node[]): Map<string, RangeConstraint> {
  const res = new Map<string, RangeConstraint>();
  for (const { meta } of nodes) {
    const val = meta.get("val");
    const sizes = val instanceof TensorMeta ? [...val.sizes, ...val.strides] : [val];
    for (const size of sizes) {
      if (!(size instanceof SymExpr)) continue;
      for (const [, name = ""] of size.srepr.matchAll(/Symbol\('(s\w+)'/g)) res.set(name, SIZE);
    }
  }
  return res;
}

const SIZE: RangeConstraint = {
  assumptions: { integer: true, positive: true, nonnegative: true, real: true },
  min: 2,
  max: undefined,
};

/** What a program has besides its graph. */
function bareParts(): Omit<ProgramParts, "graphModule" | "graphSignature" | "rangeConstraints"> {
  return {
    state: new Map(),
    opaqueState: new Map(),
    constants: new Map(),
    moduleCallGraph: [{ fqn: "", signature: undefined }],
    verifiers: ["TRAINING"],
    guards: [],
    exampleInputs: undefined,
    opsetVersion: new Map([["aten", 10]]),
    schemaVersion: [8, 20],
    torchVersion: "2.13.0",
    namedtupleFields: new Map(),
    extraFiles: new Map(),
  };
}
