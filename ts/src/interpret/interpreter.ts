/**
 * The interpreter: runs a graph node by node, `torch.fx.Interpreter`.
 *
 * @module
 */
import { FxError, fxError } from "../errors.ts";
import { callFunction } from "../functions/table.ts";
import { callMethod } from "../functions/methods.ts";
import { type CallArguments, joinArguments } from "../functions/naming.ts";
import { type Arg, isNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import { lastUses } from "../graph/lastUse.ts";
import type { GraphModule } from "../graph/module.ts";
import type { Node } from "../graph/node.ts";
import { Dict, List, Slice, Tuple, ValueTuple } from "../graph/values.ts";
import { Module } from "../nn/module.ts";

/** How a graph is run. */
export interface InterpreterOptions {
  /** Whether a value is forgotten after its last use; by default it is. */
  readonly garbageCollectValues?: boolean;
  /** Another graph to run on the attributes of the module. */
  readonly graph?: Graph;
}

/**
 * Runs a graph node by node. Subclasses override what happens at each kind of node.
 *
 * @example
 * ```ts
 * class Shapes extends Interpreter {
 *   override runNode(node: Node): unknown {
 *     const value = super.runNode(node);
 *     if (value instanceof Tensor) console.log(node.name, value.shape);
 *     return value;
 *   }
 * }
 * new Shapes(gm).run(image);
 * ```
 */
export class Interpreter {
  /** The module whose graph is run. */
  readonly module: GraphModule;
  /** The graph that is run. */
  readonly graph: Graph;
  /** The values that are known, by node. */
  env: Map<Node, unknown> = new Map();
  /** Whether a value is forgotten after its last use. */
  readonly garbageCollectValues: boolean;
  #args: unknown[] = [];

  constructor(module: GraphModule, { garbageCollectValues = true, graph = module.graph }: InterpreterOptions = {}) {
    this.module = module;
    this.graph = graph;
    this.garbageCollectValues = garbageCollectValues;
  }

  /** Runs the graph on these inputs and gives what the output node gives. */
  run(...args: readonly unknown[]): unknown {
    this.#args = [...args];
    this.env = new Map();
    const released = this.garbageCollectValues ? lastUses(this.graph) : undefined;
    for (const node of this.graph.nodes) {
      const value = this.runNode(node);
      this.env.set(node, value);
      if (node.op === "output") return value;
      for (const dead of released?.get(node) ?? []) this.env.delete(dead);
    }
    return undefined;
  }

  /** Runs one node. */
  runNode(node: Node): unknown {
    try {
      const call = this.fetchArgsKwargsFromEnv(node);
      switch (node.op) {
        case "placeholder":
          return this.placeholder(node.target, call, node);
        case "get_attr":
          return this.getAttr(node.target);
        case "call_function":
          return this.callFunction(node.target, call);
        case "call_method":
          return this.callMethod(node.target, call);
        case "call_module":
          return this.callModule(node.target, call);
        case "output":
          return this.output(node.target, call);
      }
    } catch (error) {
      throw located(error, node);
    }
  }

  /** Takes the next input. */
  placeholder(target: string, { args }: CallArguments, _node: Node): unknown {
    if (target.startsWith("**")) return this.#args.shift() ?? {};
    if (target.startsWith("*")) return this.#args.splice(0);
    if (this.#args.length > 0) {
      const value = this.#args.shift();
      if (value !== undefined || args.length === 0) return value;
    }
    if (args.length > 0) return args[0];
    throw fxError("InputCount", `Expected positional argument for parameter ${target}, but one was not passed in!`);
  }

  /** Reads an attribute of the module. */
  getAttr(target: string): unknown {
    return this.fetchAttr(target);
  }

  /** Calls a function by its qualified name. */
  callFunction(target: string, call: CallArguments): unknown {
    return callFunction(target, call);
  }

  /** Calls a method of the first argument. */
  callMethod(target: string, { args, kwargs }: CallArguments): unknown {
    const [self, ...rest] = args;
    return callMethod(target, self, { args: rest, kwargs });
  }

  /** Calls a sub-module. */
  callModule(target: string, call: CallArguments): unknown {
    const module = this.fetchAttr(target);
    if (!(module instanceof Module)) throw fxError("AttributeMissing", `\`${target}\` is no module`);
    return module.call(...joinArguments(call));
  }

  /** Gives the result. */
  output(_target: string, { args }: CallArguments): unknown {
    return args[0];
  }

  /** The attribute at a dotted path. */
  fetchAttr(target: string): unknown {
    const found = this.module.findAttribute(target);
    if (found === undefined) throw fxError("AttributeMissing", `Node referenced nonexistent target ${target}`);
    return found.kind === "module" ? found.module : found.tensor;
  }

  /** The arguments of a node, as values. */
  fetchArgsKwargsFromEnv(node: Node): CallArguments {
    const kwargs: Record<string, unknown> = {};
    for (const name of Object.keys(node.kwargs)) kwargs[name] = this.mapNodesToValues(node.kwargs[name] as Arg, node);
    return { args: Array.from(node.args, (it) => this.mapNodesToValues(it, node)), kwargs };
  }

  /** An argument with each node replaced by its value. */
  mapNodesToValues(arg: Arg, node: Node): unknown {
    const each = (it: Arg): unknown => this.mapNodesToValues(it, node);
    if (isNode(arg)) {
      if (this.env.has(arg)) return this.env.get(arg);
      throw fxError("GraphInvalid", `Node ${node.name} referenced nonexistent value ${arg.name}!`, {
        help: "lint the graph: a node must stand after the nodes that it uses",
      });
    }
    if (arg instanceof Tuple) return ValueTuple.frozen(Array.from(arg, each));
    if (arg instanceof List) return Array.from(arg, each);
    if (arg instanceof Dict) return Object.fromEntries(Array.from(arg, ([key, value]) => [key, each(value)]));
    if (arg instanceof Slice) return new Slice(each(arg.start) as Arg, each(arg.stop) as Arg, each(arg.step) as Arg);
    return arg;
  }
}

/** The error with the node where it happened; an error that names a node already is left alone. */
function located(error: unknown, node: Node): unknown {
  const note = `While executing ${node.formatNode()}`;
  if (error instanceof FxError) {
    if (error.node !== undefined) return error;
    const { op, help } = error;
    return fxError(error.kind, error.reason, {
      node: node.name,
      notes: [...error.notes, note],
      cause: error,
      ...(op === undefined ? {} : { op }),
      ...(help === undefined ? {} : { help }),
    });
  }
  return error;
}
