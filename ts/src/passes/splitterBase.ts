/**
 * Splitting a graph into what an accelerator runs and what the CPU runs: `torch.fx.passes.splitter_base`.
 *
 * @module
 */
import { SPLITTER_OPTIONS, type SplitterOptions, type SubgraphsAnswer } from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { ShapeProp } from "./shapeProp.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkSupport, type OperatorSupportBase, supportedNodes } from "./operatorSupport.ts";
import { splitByTags } from "./splitModule.ts";
import { isNodeOutputTensor } from "./toolsCommon.ts";
import { checkFunction, checkIterable, checkList, checkOptions } from "../base/given.ts";
import { checkNode } from "../graph/args.ts";
import { deepCopy } from "../nn/deepCopy.ts";
import { checkModule, type Module } from "../nn/module.ts";
import { noGrad } from "../torch/contexts.ts";

/** How a {@link Splitter} splits graphs. */
export interface SplitterSettings extends Partial<SplitterOptions> {
  /** The largest number of parts; without it there may be any number. */
  readonly maxAccSplits?: number;
  /** Whether a part with one result gives a tuple of it. */
  readonly returnTuple?: boolean;
}

/** A part. */
export interface SplitterSubgraph {
  /** Its tag, which is the name of its module. */
  readonly tag: string;
  /** Whether the accelerator runs it. */
  readonly isAcc: boolean;
  /** The nodes. */
  readonly nodes: readonly Node[];
}

/** Why a node is, or is not, for the accelerator. */
export interface NodeEvent {
  /** The node. */
  readonly node: Node;
  /** What happened, in torch.fx's words. */
  readonly desc: string;
  /** The node because of which it did. */
  readonly dep: Node | undefined;
}

/**
 * What happened to nodes while a graph was split, and why: `torch.fx.passes.splitter_base.NodeEventTracker`.
 *
 * @example
 * ```ts
 * splitter.tracker.printNode("add_1", { recursive: true }); // add_1: acc_del|user_needs_non_tensor relu
 * ```
 */
export class NodeEventTracker {
  readonly #events: NodeEvent[] = [];
  readonly #byNode = new Map<string, NodeEvent[]>();

  /** The events, in order. */
  get events(): readonly NodeEvent[] {
    return this.#events;
  }

  /** Adds an event: to which node it happened, what, and because of which other one. */
  add(node: Node, desc: string, dep?: Node): void {
    checkNode("add", node);
    const event = { node, desc, dep };
    this.#events.push(event);
    const events = this.#byNode.get(node.name);
    if (events === undefined) this.#byNode.set(node.name, [event]);
    else events.push(event);
  }

  /** Prints the events of a node, on request with those of the nodes that caused them. */
  printNode(name: string, options: PrintEventsOptions = {}): void {
    checkOptions("printNode", options, ["recursive", "tab", "writer"]);
    const { recursive = false, tab = "", writer = print } = options;
    checkFunction("printNode", "writer", writer);
    this.#print(name, recursive ? new Set() : undefined, tab, writer);
  }

  /** Prints the events of a node and of its causes, where `path` has the nodes that lead to it. */
  #print(name: string, path: Set<string> | undefined, tab: string, writer: (line: string) => void): void {
    path?.add(name);
    for (const event of this.#byNode.get(name) ?? []) {
      writer(`${tab}${eventText(event)}`);
      // Nodes may cause each other, or themselves, as PyTorch's tracker does not expect.
      const isFollowed = path !== undefined && event.dep !== undefined && !path.has(event.dep.name);
      if (isFollowed) this.#print(event.dep.name, path, `| ${tab}`, writer);
    }
    path?.delete(name);
  }

  /** The texts of the events by the names of the nodes. */
  toDict(): Map<string, string[]> {
    return new Map(Array.from(this.#byNode, ([name, events]) => [name, events.map(eventText)]));
  }

  /** Prints all events, node by node. */
  printAll(writer: (line: string) => void = print): void {
    checkFunction("printAll", "writer", writer);
    for (const name of this.#byNode.keys()) {
      writer(`Node: ${name}:`);
      this.printNode(name, { tab: "  ", writer });
    }
  }

  /** The events as JSON: what PyTorch notes in its trace. */
  dump(): string {
    return JSON.stringify(Object.fromEntries(this.toDict()));
  }
}

/** How {@link NodeEventTracker.printNode} prints. */
export interface PrintEventsOptions {
  /** Whether the events of the nodes follow that caused these. */
  readonly recursive?: boolean;
  /** What stands before each line. */
  readonly tab?: string;
  /** Takes the lines; by default the console. */
  readonly writer?: (line: string) => void;
}

function print(line: string): void {
  // oxlint-disable-next-line no-console -- printing is what it is for
  console.log(line);
}

/** `add: acc_del|user_needs_non_tensor relu`: the node, what happened, and the cause, which is `#` where it is the node. */
function eventText({ node, desc, dep }: NodeEvent): string {
  return `${node.name}: ${desc} ${dep?.name ?? "#"}`;
}

/** How {@link generateInputsForSubmodules} keeps the inputs. */
export interface GenerateInputsOptions {
  /** Whether copies are kept, of inputs that the model writes to later. */
  readonly deepcopy?: boolean;
}

/**
 * What the sub-modules of these names are called with when the model is: `generate_inputs_for_submodules`. Of a module that
 * stands under two names, the first one is told, and of one that is called twice the last call.
 *
 * @example
 * ```ts
 * const inputs = generateInputsForSubmodules(split, [x], ["_run_on_acc_0"]);
 * split.getSubmodule("_run_on_acc_0").call(...(inputs.get("_run_on_acc_0") ?? []));
 * ```
 */
export function generateInputsForSubmodules(
  model: Module,
  inputs: readonly unknown[],
  targetSubmodules: Iterable<string>,
  options: GenerateInputsOptions = {},
): Map<string, readonly unknown[]> {
  checkModule("generateInputsForSubmodules", model);
  checkList("generateInputsForSubmodules", "inputs", inputs);
  checkIterable("generateInputsForSubmodules", "targetSubmodules", targetSubmodules);
  checkOptions("generateInputsForSubmodules", options, ["deepcopy"]);
  const { deepcopy = false } = options;
  const wanted = new Set(targetSubmodules);
  const res = new Map<string, readonly unknown[]>();
  const handles = [...model.namedModules()]
    .filter(([name]) => wanted.has(name))
    .map(([name, module]) =>
      module.registerForwardPreHook((_, args) => void res.set(name, deepcopy ? deepCopy(args) : args)),
    );
  try {
    noGrad(() => model.call(...inputs));
  } finally {
    for (const it of handles) it.remove();
  }
  return res;
}

/**
 * Splits a module into parts that an accelerator runs, `_run_on_acc_0` and so on, and parts that the CPU runs. Values that
 * are no tensors stay on one side. The sample inputs tell which values are tensors.
 *
 * @example
 * ```ts
 * const splitter = new Splitter(gm, [x], support, { minAccModuleSize: 2 });
 * const split = splitter.split();
 * split.getSubmodule("_run_on_acc_0");
 * ```
 */
export class Splitter {
  readonly module: GraphModule;
  /** The parts, in the order in which they run. */
  readonly subgraphs: readonly SplitterSubgraph[];
  /** What happened to each node. */
  readonly tracker: NodeEventTracker = new NodeEventTracker();
  readonly #settings: SplitterSettings;

  constructor(
    module: GraphModule,
    sampleInput: readonly unknown[],
    operatorSupport: OperatorSupportBase,
    settings: SplitterSettings = {},
  ) {
    checkGraphModule("Splitter", module);
    checkList("Splitter", "sampleInput", sampleInput);
    checkSupport("Splitter", operatorSupport);
    checkOptions("Splitter", settings, [...SPLITTER_OPTIONS, "maxAccSplits", "returnTuple"]);
    this.module = module;
    this.#settings = settings;
    new ShapeProp(module).propagate(...sampleInput);
    const { maxAccSplits: _, returnTuple: __, ...options } = settings;
    const isSupported = supportedNodes(module, operatorSupport);
    const isTensor = Array.from(module.graph.nodes, isNodeOutputTensor);
    const { answer, before } = runPass<SubgraphsAnswer, GraphModule>(module, "find_subgraphs", {
      options: { isSupported, isTensor, options },
    });
    const at = (place: number): Node => before[place] as Node;
    this.subgraphs = answer.subgraphs.map(({ nodes, ...rest }) => ({ ...rest, nodes: nodes.map(at) }));
    for (const { node, desc, dep } of answer.events)
      this.tracker.add(at(node), desc, dep === null ? undefined : at(dep));
  }

  /** What happened to each node, in order. */
  get events(): readonly NodeEvent[] {
    return this.tracker.events;
  }

  /** The name of the part that each node is in, by the name of the node. */
  getNodeSubmoduleMap(): Map<string, string> {
    return new Map(this.subgraphs.flatMap(({ tag, nodes }) => nodes.map((it) => [it.name, tag] as const)));
  }

  /** The module that calls the parts. The module that was given stays as it is. */
  split(): GraphModule {
    const { maxAccSplits = 0, returnTuple = false } = this.#settings;
    if (maxAccSplits > 0 && this.subgraphs.length > maxAccSplits) {
      const count = this.subgraphs.length;
      throw fxError("PassFailed", `cannot fulfill the limit of ${maxAccSplits} parts: there are ${count}`, {
        help: "allow more parts, or raise minAccModuleSize",
      });
    }
    const tags = new Map(this.subgraphs.flatMap(({ tag, nodes }) => nodes.map((it) => [it, tag] as const)));
    const names = this.subgraphs.map(({ tag }) => tag);
    return splitByTags(this.module, names, tags, { returnTuple });
  }
}
