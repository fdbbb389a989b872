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
import { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { type NamedTarget, targetOf } from "../graph/target.ts";
import { Module } from "../nn/module.ts";
import * as nn from "../nn/index.ts";
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
