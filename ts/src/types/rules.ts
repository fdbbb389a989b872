/**
 * Rules of one's own for gradual types: the registries of `torch.fx.experimental.graph_gradual_typechecker`.
 *
 * The engine checks a graph in which nodes with such rules are inputs: what they give is what their rules say.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkFunction, checkGiven } from "../base/given.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { type Arg, argValue, isNode } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { type NamedTarget, targetOf } from "../graph/target.ts";
import { Module } from "../nn/module.ts";
import * as nn from "../nn/index.ts";
import type { Inputs } from "../trace/inputs.ts";
import { type Traceable, Tracer } from "../trace/tracer.ts";
import { checkType, type GradualType, type TensorDim, TensorType } from "./tensorType.ts";
import { reify, unify, Var } from "./unification.ts";

/** What a rule is for: a function, by itself or its qualified name, or a class of modules. */
export type RuleTarget = string | NamedTarget | (abstract new (...args: never) => Module);

/** Says the type of a node, of which the types of arguments are known; `module` is the one that is called. */
export type InferenceRule = (node: Node, module: Module | undefined) => GradualType;

/** Says which dimensions of a node and of its arguments are the same size: pairs of FX's `Equality`. */
export type RefinementRule = (
  node: Node,
  module: Module | undefined,
) => readonly (readonly [lhs: TensorDim, rhs: TensorDim])[];

/** What PyTorch has rules of refinement for, and the engine, too. */
const REFINED: readonly unknown[] = [
  "torch.add",
  "operator.add",
  "torch.flatten",
  nn.Conv2d,
  nn.Linear,
  nn.ReLU,
  nn.BatchNorm2d,
  nn.MaxPool2d,
  nn.AdaptiveAvgPool2d,
];

/** What the engine has rules for, by what they are called with: nobody can register others. */
const KNOWN: Readonly<Record<"inference" | "refinement" | "algebraic", ReadonlySet<unknown>>> = {
  inference: new Set([...REFINED, "torch.transpose", "torch.reshape", "builtins.getattr"]),
  refinement: new Set(REFINED),
  algebraic: new Set([nn.Conv2d]),
};

const inference = new Map<unknown, InferenceRule>();
const refinement = new Map<unknown, RefinementRule>();
const algebraic = new Map<unknown, InferenceRule>();
const transformation = new Map<unknown, TransformationRule>();

/**
 * A rule for {@link GraphTypeChecker}: `register_inference_rule`. In constraints the nodes that it is for are unknowns of the type
 * that they are annotated with.
 *
 * @example
 * ```ts
 * registerInferenceRule(sorted, (node) => TensorType.parse((node.args[0] as Node).type) ?? Dyn);
 * ```
 */
export function registerInferenceRule(target: RuleTarget, rule: InferenceRule): void {
  register("registerInferenceRule", inference, KNOWN.inference, target, rule);
}

/**
 * A rule for {@link inferSymbolicTypes}, by which dimensions are equal: `register_refinement_rule`. The nodes have a rule of
 * inference, too.
 *
 * @example
 * ```ts
 * registerRefinementRule(sorted, (node) => [[dimsOf(node.args[0])[0], dimsOf(node)[0]]]);
 * ```
 */
export function registerRefinementRule(target: RuleTarget, rule: RefinementRule): void {
  register("registerRefinementRule", refinement, KNOWN.refinement, target, rule);
}

/**
 * A rule for {@link inferSymbolicTypes} that says the type in terms of the sizes that go in:
 * `register_algebraic_expressions_inference_rule`. The nodes have a rule of inference, too.
 *
 * @example
 * ```ts
 * registerAlgebraicExpressionsInferenceRule(doubled, (node) => new TensorType([`2*${dimsOf(node.args[0])[0]}`]));
 * ```
 */
export function registerAlgebraicExpressionsInferenceRule(target: RuleTarget, rule: InferenceRule): void {
  register("registerAlgebraicExpressionsInferenceRule", algebraic, KNOWN.algebraic, target, rule);
}

/** Does to shapes what a function does, in terms of functions that constraints are known of. */
export type TransformationRule = (...args: never[]) => unknown;

/**
 * What a function asks of shapes, for {@link transformAllConstraints}: `register_transformation_rule`. PyTorch's rule turns a constraint of
 * one's own into others; here a function is written in terms of those that have constraints, which stand in its place. It is given the
 * arguments of the node, and traced.
 *
 * @example
 * ```ts
 * const fused = wrap((x: Tensor) => …, "my.fused");
 * registerTransformationRule(fused, (x: Tensor) => torch.flatten(x, 1));
 * ```
 */
export function registerTransformationRule(target: RuleTarget, rule: TransformationRule): void {
  register("registerTransformationRule", transformation, KNOWN.inference, target, rule);
}

function register<T>(
  what: string,
  rules: Map<unknown, T>,
  known: ReadonlySet<unknown>,
  target: RuleTarget,
  rule: T,
): void {
  const isClass = typeof target === "function" && target.prototype instanceof Module;
  const key = isClass ? target : targetOf(target as string | NamedTarget);
  checkFunction(what, "the rule", rule);
  if (rules.has(key) || known.has(key)) {
    throw fxError("InvalidArgument", `a rule is registered already for ${isClass ? target.name : String(key)}`);
  }
  rules.set(key, rule);
}

/** A graph module in the place of another one, of which a pass may see the nodes without rules of their own. */
export interface Ruled {
  readonly module: GraphModule;
  /** The copy of each node. */
  readonly copies: ReadonlyMap<Node, Node>;
}

/** Whether a node of this graph has a rule of its own. */
export function hasOwnRules(gm: GraphModule): boolean {
  return inference.size > 0 && Array.from(gm.graph.nodes).some((it) => ruleOf(inference, gm, it) !== undefined);
}

/** The module with inputs for nodes with rules of their own, which have the types that these are annotated with. */
export function withoutOwnNodes(gm: GraphModule): Ruled {
  const steps = new Steps(gm);
  for (const node of gm.graph.nodes) steps.add(node);
  return steps;
}

/** Whether a node of this graph is written in terms of others in constraints. */
export function hasOwnConstraints(gm: GraphModule): boolean {
  return (
    transformation.size > 0 && Array.from(gm.graph.nodes).some((it) => ruleOf(transformation, gm, it) !== undefined)
  );
}

/** {@link withoutOwnNodes}, where nodes that are written in terms of others are these. */
export function withConstraints(gm: GraphModule): Ruled {
  const steps = new Steps(gm);
  for (const node of gm.graph.nodes) {
    const rule = ruleOf(transformation, gm, node);
    if (rule === undefined) steps.add(node);
    else steps.inline(node, rule);
  }
  return steps;
}

/** Checks such a module step by step: what comes before a node with a rule is known when the rule is asked. */
export function checkOwnNodes(gm: GraphModule, check: (module: GraphModule) => void): void {
  const before = new Map(Array.from(gm.graph.nodes, (it) => [it, it.type]));
  try {
    const steps = new Steps(gm);
    for (const node of gm.graph.nodes) {
      const rule = ruleOf(inference, gm, node);
      if (rule !== undefined) {
        check(steps.module);
        copyTypes(steps);
        const type = rule(node, moduleOf(gm, node));
        checkType(`the rule of %${node.name}`, type);
        node.type = String(type);
      }
      steps.add(node);
    }
    check(steps.module);
    copyTypes(steps);
  } catch (error) {
    for (const [node, type] of before) node.type = type;
    throw error;
  }
}

/** Infers the types of such a module: `infer` does it for nodes without rules, and what rules say is added. */
export function inferOwnNodes(gm: GraphModule, infer: (module: GraphModule) => void): void {
  const steps = withoutOwnNodes(gm);
  infer(steps.module);
  copyTypes(steps);
  const equalities = Array.from(gm.graph.nodes).flatMap((it) => [
    ...(ruleOf(refinement, gm, it)?.(it, moduleOf(gm, it)) ?? []),
  ]);
  substitute(gm, solved(equalities));
  for (const node of gm.graph.nodes) {
    const said = ruleOf(algebraic, gm, node)?.(node, moduleOf(gm, node));
    if (said === undefined) continue;
    checkType(`the rule of %${node.name}`, said);
    const known = TensorType.parse(node.type);
    if (said instanceof TensorType && known instanceof TensorType) substitute(gm, namedIn(known, said));
    node.type = String(said);
  }
}

/** The copy of a module that grows node by node. */
class Steps implements Ruled {
  readonly module: GraphModule;
  readonly copies = new Map<Node, Node>();
  readonly #gm: GraphModule;

  constructor(gm: GraphModule) {
    this.#gm = gm;
    this.module = new GraphModule({}, new Graph(), gm.className);
    for (const [name, attribute] of gm.attributes) this.module.attributes.set(name, attribute);
  }

  add(node: Node): void {
    const { graph } = this.module;
    const isOwn = ruleOf(inference, this.#gm, node) !== undefined;
    const copy = isOwn ? graph.placeholder(node.name) : graph.nodeCopy(node, (it) => this.copies.get(it) as Node);
    copy.type = node.type;
    this.copies.set(node, copy);
  }

  /** Puts what a rule does in the place of a node. */
  inline(node: Node, rule: TransformationRule): void {
    if (Object.keys(node.kwargs).length > 0) {
      throw fxError("NotImplemented", `the rule of %${node.name} takes arguments by their places`, { node: node.name });
    }
    const tracer = new RuleTracer(node.args);
    const graph = tracer.trace(rule as Traceable);
    const inner = new Map(tracer.inputs.map(([input, arg]) => [input, this.copies.get(arg) as Node]));
    const result = resultOf(graph, node);
    for (const it of graph.nodes) {
      if (it.op === "placeholder" || it.op === "output") continue;
      const copy = this.module.graph.nodeCopy(it, (arg) => inner.get(arg) as Node);
      if (it === result) copy.type = node.type;
      inner.set(it, copy);
    }
    this.copies.set(node, inner.get(result) as Node);
  }
}

/** Traces a rule with the arguments of a call: nodes are inputs, and everything else is as it is. */
class RuleTracer extends Tracer {
  /** The inputs with the nodes that they stand for. */
  readonly inputs: (readonly [input: Node, arg: Node])[] = [];
  readonly #args: readonly Arg[];

  constructor(args: readonly Arg[]) {
    super();
    this.#args = args;
  }

  protected override createInputs(): Inputs {
    const inputOf = (arg: Node): unknown => {
      const input = this.createProxy("placeholder", `arg_${this.inputs.length}`, [], {});
      this.inputs.push([input.node, arg]);
      return input;
    };
    const values = this.#args.map((it) => argValue(it, inputOf));
    return { run: (fn) => fn(...values), finish: () => {} };
  }
}

/** The node that a rule gives for a call. */
function resultOf(graph: Graph, node: Node): Node {
  const result = graph.outputNode()?.args[0];
  if (isNode(result)) return result;
  throw fxError("GraphInvalid", `the rule of %${node.name} gives no tensor`, { node: node.name });
}

function copyTypes({ copies }: Ruled): void {
  for (const [node, copy] of copies) node.type = copy.type;
}

function ruleOf<T>(rules: ReadonlyMap<unknown, T>, gm: GraphModule, node: Node): T | undefined {
  if (node.op === "call_function") return rules.get(node.target);
  const module = moduleOf(gm, node);
  return module === undefined ? undefined : rules.get(module.constructor);
}

function moduleOf(gm: GraphModule, node: Node): Module | undefined {
  return node.op === "call_module" ? gm.getSubmodule(node.target) : undefined;
}

const VARIABLE = /~\d+/g;

/** A dimension as unification knows it. */
function term(dim: TensorDim): unknown {
  return typeof dim === "string" && /^~\d+$/.test(dim) ? new Var(dim.slice(1)) : dim;
}

/** What unknown dimensions are, by these equalities. */
function solved(equalities: readonly (readonly [TensorDim, TensorDim])[]): (dim: string) => TensorDim {
  checkGiven("the rule", equalities.every(Array.isArray), "pairs of dimensions");
  const [lhs, rhs] = [0, 1].map((side) => equalities.map((it) => term(it[side] as TensorDim)));
  const found = unify(lhs, rhs);
  if (!found) {
    const said = equalities.map((it) => it.join(" = ")).join(", ");
    throw fxError("TypeInconsistent", `rules of refinement contradict each other, or the graph: ${said}`);
  }
  return (dim) => {
    const known = reify(term(dim), found);
    return known instanceof Var ? `~${String(known.token)}` : (known as TensorDim);
  };
}

/** The dimensions that were unknown, as the second type says them. */
function namedIn(known: TensorType, said: TensorType): (dim: string) => TensorDim {
  return (dim) => said.dims[known.dims.indexOf(dim)] ?? dim;
}

/** Writes what unknown dimensions are into all types. */
function substitute(gm: GraphModule, valueOf: (dim: string) => TensorDim): void {
  for (const node of gm.graph.nodes) {
    node.type = node.type?.replaceAll(VARIABLE, (dim) => String(valueOf(dim)));
  }
}
