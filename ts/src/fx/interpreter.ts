/**
 * The interpreter: runs a graph node by node, `torch.fx.Interpreter`.
 *
 * @module
 */
import { answeringPythonNames, checkOverrides, checkOverriding } from "../base/pythonNames.ts";
import { addContext, fxError } from "../base/errors.ts";
import { callMethod } from "../functions/methods.ts";
import { type CallArguments, joinArguments } from "../base/naming.ts";
import { callFunction } from "../functions/table.ts";
import { type Arg, argValue, checkNode, isNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import { lastUses } from "../graph/lastUse.ts";
import type { GraphModule } from "./graphModule.ts";
import type { Node } from "../graph/node.ts";
import { stateOf } from "../graph/nodeState.ts";
import { isBuiltinModule } from "../nn/builtin.ts";
import { Module } from "../nn/module.ts";
import { findAttributeValue } from "../graph/attribute.ts";
import { Ownership } from "./ownership.ts";
import { checkArguments, checkGiven, checkList, checkOptions, checkPath, checkText } from "../base/given.ts";
import { hasPreservedNodeMeta, setCurrentMeta } from "../graph/traceback.ts";
import { setRunning } from "./runningNode.ts";

/** How a graph is run. */
export interface InterpreterOptions {
  /** Whether a value is forgotten after its last use; by default it is. */
  readonly garbageCollectValues?: boolean;
  /**
   * Whether tensors that the run made and that nothing else can hold give their memory back at their last use. By default
   * they do, but for those that a method of a subclass saw, which may keep them: those of the nodes whose method it
   * overrides (`callFunction`, `callMethod`, `callModule`, `output`), all where it overrides `runNode` or what fetches the
   * arguments, and those that `env` knows when it is read. With `true` those are disposed of as well, as is right for a
   * subclass that looks at values and keeps none; with `false`, none are.
   */
  readonly disposeValues?: boolean;
  /** Another graph to run on the attributes of the module. */
  readonly graph?: Graph;
}

/** What watches a run. */
export interface RunWatch {
  /**
   * Stops the run before its next node. A run is not asynchronous, so that the signal is aborted before it, or by what the
   * run calls, such as `progress`.
   */
  readonly signal?: AbortSignal;
  /** Is told before each node how many were run, and how many there are. */
  readonly progress?: (done: number, total: number) => void;
}

/** How one run goes. */
export interface RunOptions extends RunWatch {
  /** Values of nodes that are known already: these nodes do not run. Nodes that only they need run all the same, as in FX. */
  readonly initialEnv?: ReadonlyMap<Node, unknown>;
  /**
   * Whether the code generator of the graph makes its inputs of the arguments, and what is given of its output, as it does
   * by default; otherwise the arguments are the inputs.
   */
  readonly enableIoProcessing?: boolean;
}

const RUN_OPTIONS = ["signal", "progress", "initialEnv", "enableIoProcessing"] as const;

/** What belongs to one run. */
interface Frame {
  readonly env: Map<Node, unknown>;
  readonly inputs: readonly unknown[];
  /** The position of the next input. */
  next: number;
  readonly watch?: RunWatch;
}

/** The methods that see the values of their nodes, by the kind of node. */
const METHOD_OF = {
  placeholder: "placeholder",
  get_attr: "getAttr",
  call_function: "callFunction",
  call_method: "callMethod",
  call_module: "callModule",
  output: "output",
} as const;

/** The methods that see the values of all nodes. */
const SEE_ALL = ["runNode", "fetchArgsKwargsFromEnv", "mapNodesToValues"] as const;

type Overridable = (typeof SEE_ALL)[number] | (typeof METHOD_OF)[keyof typeof METHOD_OF];

const NONE: Readonly<Record<string, unknown>> = Object.freeze(Object.create(null) as Record<string, unknown>);

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
  /** The module whose attributes the graph refers to. */
  readonly module: Module;
  /** The graph that is run. */
  readonly graph: Graph;
  /** Whether a value is forgotten after its last use. */
  readonly garbageCollectValues: boolean;
  readonly #disposeValues: boolean | "unseen";
  #ownership: Ownership | undefined;
  #frame: Frame = { env: new Map(), inputs: [], next: 0 };
  #isRunning = false;

  /** The graph may be left out where the module has one. */
  constructor(module: GraphModule | Module, options: InterpreterOptions = {}) {
    checkOverrides(new.target, Interpreter);
    checkOptions("Interpreter", options, ["garbageCollectValues", "disposeValues", "graph"]);
    const { garbageCollectValues = true, disposeValues, graph = graphOf(module) } = options;
    this.module = module;
    this.graph = graph;
    this.garbageCollectValues = garbageCollectValues;
    this.#disposeValues = garbageCollectValues && (disposeValues ?? (new.target === Interpreter || "unseen"));
  }

  /** The values that are known, by node: of the run that goes on, or of the last one. */
  get env(): Map<Node, unknown> {
    if (this.#disposeValues === "unseen") this.#ownership?.letGoAll();
    return this.#frame.env;
  }

  /**
   * Runs the graph on these inputs and gives what the output node gives. Inputs that are too many are not looked at. Where
   * the graph says so, the inputs are flattened and the output is unflattened; see {@link Graph.setCodegen}.
   */
  run(...args: readonly unknown[]): unknown {
    return this.runWith(args);
  }

  /**
   * Runs the graph on these inputs, with options.
   *
   * @example
   * ```ts
   * // Starts in the middle: with the value of one node.
   * interpreter.runWith([], { initialEnv: new Map([[hidden, tensor([1, 2])]]) });
   * ```
   */
  runWith(args: readonly unknown[], options: RunOptions = {}): unknown {
    checkOptions("runWith", options, RUN_OPTIONS);
    const { initialEnv, enableIoProcessing = true } = options;
    checkList("runWith", "args", args);
    checkOverriding(this, Interpreter);
    checkGiven(
      "runWith",
      initialEnv === undefined || initialEnv instanceof Map,
      "a Map from nodes to values as initialEnv",
    );
    const inputs = enableIoProcessing ? this.graph.processInputs(...args) : args;
    const output = this.#runFrame({ env: new Map(initialEnv), inputs, next: 0, watch: options });
    return enableIoProcessing ? this.graph.processOutputs(output) : output;
  }

  /**
   * Runs the graph on the inputs in an array, which is emptied, so that they are forgotten after their last use. There
   * must be one for each placeholder; otherwise the array stays as it is.
   */
  boxedRun(args: unknown[]): unknown {
    checkList("boxedRun", "args", args);
    const placeholders = this.graph.findNodes({ op: "placeholder" });
    if (args.length !== placeholders.length) {
      const detail = args.length > placeholders.length ? "extra arguments" : "missing arguments";
      throw fxError(
        "InputCount",
        `Interpreter.boxedRun expected ${placeholders.length} arguments for placeholders but received ${args.length} (${detail})`,
      );
    }
    const initialEnv = new Map<Node, unknown>(placeholders.map((node, at) => [node, args[at]]));
    args.length = 0;
    return this.graph.processOutputs(this.#runFrame({ env: initialEnv, inputs: [], next: 0 }));
  }

  /** Runs one node. */
  runNode(node: Node): unknown {
    checkNode("runNode", node);
    const { args, kwargs } = this.fetchArgsKwargsFromEnv(node);
    switch (node.op) {
      case "placeholder":
        return this.placeholder(node.target, args, kwargs);
      case "get_attr":
        return this.getAttr(node.target, args, kwargs);
      case "call_function":
        return this.callFunction(node.target, args, kwargs);
      case "call_method":
        return this.callMethod(node.target, args, kwargs);
      case "call_module":
        return this.callModule(node.target, args, kwargs);
      case "output":
        return this.output(node.target, args, kwargs);
    }
  }

  /** Takes the next input; for `*args` all that are left. An input that was not given has its default. */
  placeholder(target: string, args: readonly unknown[], _kwargs: CallArguments["kwargs"]): unknown {
    checkText("placeholder", "the input", target, "its name: node.target");
    checkList("placeholder", "args", args);
    const frame = this.#frame;
    if (target.startsWith("*") && !target.startsWith("**")) {
      const rest = frame.inputs.slice(frame.next);
      frame.next = frame.inputs.length;
      return rest;
    }
    if (frame.next < frame.inputs.length) {
      const value = frame.inputs[frame.next++];
      if (value !== undefined || args.length === 0) return value;
    }
    if (target.startsWith("**")) return {};
    if (args.length > 0) return args[0];
    throw missingInput(target);
  }

  /** Reads an attribute of the module. */
  getAttr(target: string, _args: readonly unknown[], _kwargs: CallArguments["kwargs"]): unknown {
    return this.fetchAttr(target);
  }

  /** Calls a function by its qualified name. */
  callFunction(target: string, args: readonly unknown[], kwargs: CallArguments["kwargs"]): unknown {
    checkArguments("callFunction", args, kwargs);
    return callFunction(target, { args, kwargs });
  }

  /** Calls a method of the first argument, by PyTorch's name. */
  callMethod(target: string, args: readonly unknown[], kwargs: CallArguments["kwargs"]): unknown {
    checkText("callMethod", "the method", target, "its name: node.target");
    checkArguments("callMethod", args, kwargs);
    return callMethod(target, args[0], { args: args.slice(1), kwargs });
  }

  /** Calls a sub-module. */
  callModule(target: string, args: readonly unknown[], kwargs: CallArguments["kwargs"]): unknown {
    checkPath("callModule", target);
    checkArguments("callModule", args, kwargs);
    const module = this.fetchAttr(target);
    if (!(module instanceof Module)) {
      throw fxError("AttributeMissing", `\`${target}\` is no module`, {
        help: "a call_module node needs a module at its path; get_attr reads a tensor",
      });
    }
    // The options of a module of the user's have the names that the trace saw.
    return module.call(...joinArguments({ args, kwargs }, !isBuiltinModule(module)));
  }

  /** Gives the result. */
  output(_target: string, args: readonly unknown[], _kwargs: CallArguments["kwargs"]): unknown {
    checkList("output", "args", args);
    return args[0];
  }

  /** The attribute of the module at a dotted path: a tensor, a module, or anything else that it has. */
  fetchAttr(target: string): unknown {
    checkPath("fetchAttr", target);
    return findAttributeValue(this.module, target);
  }

  /** The arguments of a node, as values. */
  fetchArgsKwargsFromEnv(node: Node): CallArguments {
    checkNode("fetchArgsKwargsFromEnv", node);
    const names = Object.keys(node.kwargs);
    const args: unknown[] = [];
    for (const it of node.args) args.push(this.mapNodesToValues(it, node));
    if (names.length === 0) return { args, kwargs: NONE };
    const kwargs = Object.create(null) as Record<string, unknown>;
    for (const name of names) kwargs[name] = this.mapNodesToValues(node.kwargs[name] as Arg, node);
    return { args, kwargs };
  }

  /** An argument of a node, with each node in it replaced by its value. */
  mapNodesToValues(arg: Arg, node: Node): unknown {
    return isNode(arg) ? this.#valueOf(arg, node) : argValue(arg, (it) => this.#valueOf(it, node));
  }

  #valueOf(input: Node, user: Node): unknown {
    const { env } = this.#frame;
    const value = env.get(input);
    if (value !== undefined || env.has(input)) return value;
    throw fxError("GraphInvalid", `Node ${user.name} referenced nonexistent value ${input.name}!`, {
      help: "lint the graph: a node must stand after the nodes that it uses",
    });
  }

  #runFrame(frame: Frame): unknown {
    const [outer, wasRunning, outerOwnership] = [this.#frame, this.#isRunning, this.#ownership];
    this.#frame = frame;
    this.#isRunning = true;
    try {
      return this.#runNodes();
    } finally {
      this.#isRunning = wasRunning;
      this.#ownership = outerOwnership;
      // A run inside a run, as a function of the graph may start it, must not change what the outer one knows.
      if (wasRunning) this.#frame = outer;
    }
  }

  #runNodes(): unknown {
    const { env, watch } = this.#frame;
    const total = watch?.progress === undefined ? 0 : this.graph.nodes.length;
    let done = 0;
    const releases = this.garbageCollectValues ? lastUses(this.graph) : undefined;
    const ownership = this.#disposeValues === false ? undefined : new Ownership(env, this.module);
    this.#ownership = ownership;
    const isSeen = this.#disposeValues === "unseen" ? this.#seenNodes() : undefined;
    const forget = (node: Node): void => {
      ownership?.forgot(env.get(node));
      env.delete(node);
    };
    for (const node of this.graph.nodes) {
      watch?.progress?.(done++, total);
      watch?.signal?.throwIfAborted();
      if (!env.has(node)) {
        const value = this.#runOrExplain(node);
        env.set(node, value);
        if (isSeen?.(node) === true) ownership?.showed(node, value);
        else ownership?.gave(node, value);
      }
      if (releases !== undefined) {
        for (const dead of releases.get(node) ?? []) forget(dead);
        if (!stateOf(node).isUsed() && node.op !== "output") forget(node);
      }
      if (node.op === "output") return env.get(node);
    }
    return null;
  }

  /** Which nodes hand their arguments or their value to a method of a subclass. */
  #seenNodes(): (node: Node) => boolean {
    const isOverridden = (name: Overridable): boolean => this[name] !== Interpreter.prototype[name];
    if (SEE_ALL.some(isOverridden)) return () => true;
    return (node) => isOverridden(METHOD_OF[node.op]);
  }

  #runOrExplain(node: Node): unknown {
    const outer = setRunning(node);
    try {
      if (!hasPreservedNodeMeta()) return this.runNode(node);
      return setCurrentMeta(node, `Interpreter_${this.constructor.name}`, () => this.runNode(node));
    } catch (error) {
      if (error instanceof Error) addContext(error, node.name, placeOf(node));
      throw error;
    } finally {
      setRunning(outer);
    }
  }
}

Object.setPrototypeOf(Interpreter.prototype, answeringPythonNames("an Interpreter"));

/** Where a node is: its line of the graph, and the user's line that made it where a trace noted it. */
export function placeOf(node: Node): string {
  const trace = node.stackTrace;
  return `While executing ${node.formatNode()}${trace === undefined ? "" : `\nOriginal traceback:\n${trace}`}`;
}

/** The refusal to run without an input. */
export function missingInput(target: string): Error {
  return fxError("InputCount", `Expected positional argument for parameter ${target}, but one was not passed in!`);
}

function graphOf(module: GraphModule | Module): Graph {
  if (!((module as unknown) instanceof Module)) {
    throw fxError("InvalidArgument", "an interpreter takes a GraphModule", {
      help: "symbolicTrace(module) makes one of a module or a function",
    });
  }
  if ("graph" in module) return module.graph;
  throw fxError("GraphArgument", `the module ${module.className} has no graph to run`, {
    help: "trace it, or say which graph is run on its attributes: new Interpreter(module, { graph })",
  });
}
