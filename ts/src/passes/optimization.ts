/**
 * Modules made ready for inference: `torch.fx.experimental.optimization`.
 *
 * @module
 */
import { checkNode } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Arg } from "../graph/args.ts";
import type { Node } from "../graph/node.ts";
import { BatchNorm1d, BatchNorm2d, BatchNorm3d } from "../nn/batchNorm.ts";
import { Conv1d, Conv2d, Conv3d } from "../nn/conv.ts";
import { deepCopy } from "../nn/deepCopy.ts";
import { Dropout } from "../nn/dropout.ts";
import { Linear } from "../nn/linear.ts";
import { checkModule, Module } from "../nn/module.ts";
import { fuseConvBnEval, fuseLinearBnEval } from "../nn/fusion.ts";
import { fxError } from "../base/errors.ts";
import { checkGiven, checkList, checkOptions } from "../base/given.ts";
import { symbolicTrace } from "../trace/tracer.ts";

/** How {@link fuse} goes about it. */
export interface FuseOptions {
  /** Whether the model itself is changed, and not a copy. */
  readonly inplace?: boolean;
  /** Whether a graph module is taken as it is, and not traced again. */
  readonly noTrace?: boolean;
}

type BatchNorm = BatchNorm1d | BatchNorm2d | BatchNorm3d;

/**
 * Takes batch normalizations into the convolutions and linear layers before them, for inference: `fuse`. The model must be
 * in evaluation mode. A layer that is called twice, or whose weights something else reads, stays as it is. As in PyTorch,
 * what a linear layer gives is taken to have two dimensions.
 *
 * @example
 * ```ts
 * const fused = fuse(model.eval());
 * ```
 */
export function fuse(model: Module, options: FuseOptions = {}): GraphModule {
  checkOptions("fuse", options, ["inplace", "noTrace"]);
  const { inplace = false, noTrace = false } = options;
  const own = inplace ? model : deepCopy(model);
  const gm = noTrace && own instanceof GraphModule ? own : symbolicTrace(own);
  const isShared = sharedModules(gm);
  for (const node of gm.graph.nodes) {
    const [first] = node.args;
    const before = isCall(first) ? first : undefined;
    if (before === undefined || !isCall(node) || before.users.size > 1 || isShared(before.target)) continue;
    const fused = fusedLayer(gm.getSubmodule(before.target), gm.getSubmodule(node.target));
    if (fused === undefined) continue;
    gm.setSubmodule(before.target, fused);
    node.replaceAllUsesWith(before);
    gm.graph.eraseNode(node);
  }
  // What was folded into another layer is called by nothing.
  gm.deleteAllUnusedSubmodules();
  return gm;
}

/** Says of the path of a module that is called whether something else calls it, too, or reads what it holds. */
function sharedModules(gm: GraphModule): (target: string) => boolean {
  const seen = new Set<string>();
  const shared = new Set<string>();
  for (const { op, target } of gm.graph.nodes) {
    if (op === "call_module") (seen.has(target) ? shared : seen).add(target);
    else if (op === "get_attr") shared.add(target.slice(0, Math.max(0, target.lastIndexOf("."))));
  }
  return (target) => shared.has(target);
}

function isCall(arg: Arg | Node | undefined): arg is Node {
  return arg !== undefined && arg !== null && typeof arg === "object" && "op" in arg && arg.op === "call_module";
}

/** The layer that does what these two do one after the other; `undefined` where they are no such pair. */
function fusedLayer(layer: Module, bn: Module): Module | undefined {
  const { constructor: first } = layer;
  const { constructor: second } = bn;
  const isConv =
    (first === Conv1d && second === BatchNorm1d) ||
    (first === Conv2d && second === BatchNorm2d) ||
    (first === Conv3d && second === BatchNorm3d);
  const isLinear = first === Linear && second === BatchNorm1d;
  if (!(isConv || isLinear) || !(bn as BatchNorm).trackRunningStats) return undefined;
  return isConv
    ? fuseConvBnEval(layer as Conv1d | Conv2d | Conv3d, bn as BatchNorm)
    : fuseLinearBnEval(layer as Linear, bn as BatchNorm1d);
}

/**
 * Whether a node calls a module of the last of these classes on what a module of the first gives: `matches_module_pattern`.
 * Classes that extend them are none of them.
 *
 * @example
 * ```ts
 * const modules = gm.namedModules();
 * const pairs = gm.graph.nodes.filter((it) => matchesModulePattern([nn.Linear, nn.ReLU], it, modules));
 * ```
 */
export function matchesModulePattern(
  pattern: readonly Function[],
  node: Node,
  modules: ReadonlyMap<string, Module>,
): boolean {
  checkList("matchesModulePattern", "pattern", pattern);
  checkNode("matchesModulePattern", node);
  const [input] = node.args;
  if (input === undefined) return false;
  // As `zip` does, a pattern of one class asks for that of the input, and what is behind the second is not asked for.
  return [input, node].slice(0, pattern.length).every((it, at) => {
    return isCall(it) && modules.get(it.target)?.constructor === pattern[at];
  });
}

/**
 * Puts another module in the place of the one that a node calls, where it is in the module and in the map of the names:
 * `replace_node_module`.
 *
 * @example
 * ```ts
 * const modules = gm.namedModules();
 * replaceNodeModule(node, modules, new nn.GELU());
 * ```
 */
export function replaceNodeModule(node: Node, modules: Map<string, Module>, newModule: Module): void {
  checkNode("replaceNodeModule", node);
  checkModule("replaceNodeModule", newModule);
  if (node.op !== "call_module") throw fxError("InvalidArgument", "the node calls no module", { node: node.name });
  const dot = node.target.lastIndexOf(".");
  const parent = modules.get(node.target.slice(0, Math.max(dot, 0)));
  if (parent === undefined) {
    throw fxError("AttributeMissing", `there is no module around \`${node.target}\``, { node: node.name });
  }
  modules.set(node.target, newModule);
  parent.attributes.set(node.target.slice(dot + 1), { kind: "module", module: newModule });
}

/**
 * The module without its dropouts: `remove_dropout`.
 *
 * @example
 * ```ts
 * const gm = removeDropout(model);
 * ```
 */
export function removeDropout(model: Module): GraphModule {
  const gm = symbolicTrace(model);
  for (const node of gm.graph.nodes) {
    const [input] = node.args;
    if (!isCall(node) || !(gm.getSubmodule(node.target) instanceof Dropout) || !isNodeArg(input)) continue;
    node.replaceAllUsesWith(input);
    gm.graph.eraseNode(node);
  }
  gm.deleteAllUnusedSubmodules();
  return gm;
}

function isNodeArg(arg: Arg | undefined): arg is Node {
  return arg !== undefined && arg !== null && typeof arg === "object" && "op" in arg && "users" in arg;
}

/**
 * A module of these nodes of a graph, which takes the inputs and gives a list of the outputs: `extract_subgraph`.
 *
 * @example
 * ```ts
 * const part = extractSubgraph(gm, [conv, relu], [x], [relu]);
 * ```
 */
export function extractSubgraph(
  original: Module,
  nodes: readonly Node[],
  inputs: readonly Node[],
  outputs: readonly Node[],
): GraphModule {
  checkGiven("extractSubgraph", original instanceof Module, "a module");
  for (const [argument, list] of Object.entries({ nodes, inputs, outputs })) {
    checkList("extractSubgraph", argument, list);
    for (const it of list) checkNode("extractSubgraph", it);
  }
  const graph = new Graph();
  const env = new Map(inputs.map((it) => [it, graph.placeholder(it.name)]));
  const mapped = (it: Node): Node => env.get(it) ?? it;
  for (const node of nodes) env.set(node, graph.nodeCopy(node, mapped));
  graph.output(outputs.map(mapped));
  graph.lint();
  return new GraphModule(original, graph);
}

/** What {@link optimizeForInference} does. */
export interface PassConfig {
  /** Whether batch normalizations are taken into the layers before them. */
  readonly convBnFuse?: boolean;
  /** Whether dropouts are taken out. */
  readonly removeDropout?: boolean;
}

/**
 * Fuses and cleans a model for inference: `optimize_for_inference`. There is no layout of MKL here, so that part of
 * PyTorch's has no counterpart.
 *
 * @example
 * ```ts
 * const fast = optimizeForInference(model.eval());
 * ```
 */
export function optimizeForInference(model: Module, config: PassConfig = {}): Module {
  checkOptions("optimizeForInference", config, ["convBnFuse", "removeDropout"]);
  const { convBnFuse = true, removeDropout: isDropoutRemoved = true } = config;
  const fused = convBnFuse ? fuse(model) : model;
  return isDropoutRemoved ? removeDropout(fused) : fused;
}
