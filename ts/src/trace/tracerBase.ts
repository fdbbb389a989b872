/**
 * What all tracers share: how a traced value becomes an argument, and a call a node.
 *
 * @module
 */
import { isCallableObject } from "../base/objects.ts";
import { answeringPythonNames } from "../base/pythonNames.ts";
import { checkArguments, checkGiven } from "../base/given.ts";
import type { CallArguments } from "../base/naming.ts";
import { isOptions } from "../base/naming.ts";
import { type Arg, type ArgInput, checkNode, freezeArg, isNode, type Kwargs, NO_KWARGS } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { preservedMeta } from "../graph/traceback.ts";
import type { Opcode } from "../base/opcode.ts";
import { Dict, List, OpArg, Slice, Tuple, ValueTuple } from "../base/values.ts";
import { Module } from "../nn/module.ts";
import { Tensor } from "../tensor/tensor.ts";
import { isProxy, nodeOf, proxyOf, type TracedValue } from "./proxy.ts";
import type { Recorder } from "../record/record.ts";
import { checkForMutableOperation } from "../fx/operatorSignatures.ts";
import { traceError } from "../record/stack.ts";
import { isWrapped } from "../functions/wrap.ts";

/** An argument that says itself what it is in a graph. */
interface CreatesArgument {
  __fx_create_arg__(tracer: TracerBase): ArgInput;
}

/** Containers nested deeper than this are taken for containers that hold themselves. */
const MAX_DEPTH = 500;

/** How many items an open-ended walk over a traced value gives before it is refused. */
const MAX_ITEMS = 256;

/**
 * Records calls into a graph: `torch.fx.proxy.TracerBase`. Subclasses override single steps.
 */
export abstract class TracerBase implements Recorder {
  /** The graph that is recorded into. */
  abstract readonly graph: Graph;

  /** Whether calls of functions that change an argument are refused. */
  checkMutableOperations = false;

  /** Makes the node of a call. */
  createNode(
    op: Opcode,
    target: string,
    args: readonly ArgInput[],
    kwargs: Readonly<Record<string, ArgInput>>,
    name?: string,
    type?: string,
  ): Node {
    if (op === "call_function" && this.checkMutableOperations) checkForMutableOperation(target, args, kwargs);
    const node = this.graph.createNode(op, target, args, kwargs, name, type);
    if (op === "call_function" && isWrapped(target)) node.meta.set("is_wrapped", true);
    for (const [key, note] of preservedMeta() ?? []) node.meta.set(key, note);
    return node;
  }

  /** Puts a traced value around a node. */
  proxy(node: Node): TracedValue {
    checkNode("proxy", node);
    return proxyOf(node, this);
  }

  /** Records a call, and gives the traced value of its result. */
  createProxy(
    op: Opcode,
    target: string,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    name?: string,
    type?: string,
  ): TracedValue {
    checkArguments("createProxy", args, kwargs);
    const { args: positional, kwargs: named } = this.createArguments({ args, kwargs });
    const node = this.createNode(op, target, positional, named, name, type);
    this.noteCall(node, args);
    return this.proxy(node);
  }

  /** Notes what is known of a call that was recorded, given its arguments as they were. */
  protected noteCall(_node: Node, _args: readonly unknown[]): void {}

  /** Whether the graph may use a node: one of its own, or of a graph around. */
  reaches(_node: Node): boolean {
    return true;
  }

  /** An argument as a node holds it. */
  createArg(value: unknown, depth = 0): Arg {
    switch (typeof value) {
      case "number":
      case "string":
      case "boolean":
      case "bigint":
        return freezeArg(value);
      case "undefined":
        return null;
      case "function":
        if (isProxy(value)) return this.adopt(nodeOf(value));
        if (isCallableObject(value)) return this.#createObject(value, depth);
        if ("target" in value && typeof value.target === "string") return new OpArg(value.target);
        throw unsupported(
          `the function ${value.name || "(anonymous)"}`,
          "register it with wrap, and pass what wrap gives back",
        );
      case "symbol":
        throw unsupported("a symbol");
      case "object":
        return value === null || isNode(value) ? value : this.#createObject(value, depth);
    }
  }

  /** The iterator of a traced value: it gives items one by one, for destructuring, and refuses to go on for ever. */
  *iter(proxy: TracedValue): Generator<TracedValue> {
    for (let index = 0; index < MAX_ITEMS; index++) {
      yield this.createProxy("call_function", "operator.getitem", [proxy, index], {});
    }
    throw traceError(
      "TraceIteration",
      "Proxy object cannot be iterated: how many items it has is not known while it is traced",
      {
        help: "take the items by destructuring, const [a, b] = x, or by index; loop over a number that is known, or over torch.unbind(x) in a wrapped function; map and scan loop inside the graph",
      },
    );
  }

  /** The keys of a traced value, for `{ ...x }` and `Object.keys(x)`. */
  keys(_proxy: TracedValue): readonly string[] {
    throw traceError("TraceIteration", "the keys of a traced value are not known while it is traced", {
      help: 'take the values by name: const { a, b } = x or x.get("a"); or say what the input holds with concreteArgs and PH',
    });
  }

  /** The truth of a traced value, for code that the build plugin has rewritten; an assertion has a message. */
  toBool(_proxy: TracedValue, construct?: string, _message?: string): boolean {
    const place = construct === undefined ? "" : `, as in \`${construct}\``;
    throw traceError(
      "TraceControlFlow",
      `symbolically traced variables cannot be used as inputs to control flow${place}`,
      {
        help: "write torch.where(condition, a, b) or cond(condition, f, g); or fix the value with concreteArgs",
      },
    );
  }

  protected createArguments({ args, kwargs }: CallArguments): { args: Tuple; kwargs: Kwargs } {
    const positional = Tuple.frozen(args.map((it) => this.createArg(it)));
    const keys = Object.keys(kwargs);
    if (keys.length === 0) return { args: positional, kwargs: NO_KWARGS };
    const named = Object.create(null) as Record<string, Arg>;
    for (const key of keys) named[key] = this.createArg(kwargs[key]);
    return { args: positional, kwargs: named };
  }

  /** The node by which the graph refers to the node of a traced value: itself, unless it is of a graph around. */
  protected adopt(node: Node): Node {
    return node;
  }

  /** The argument for a tensor that is no traced value; a tracer that knows a module refers to its attribute. */
  protected createTensorArg(tensor: Tensor): Arg {
    throw unsupported(
      `a tensor of shape [${tensor.shape.join(", ")}]`,
      "a tensor in a graph is an attribute of its module: assign it to the module and read it with graph.getAttr",
    );
  }

  /** The argument for a module. */
  protected createModuleArg(module: Module): Arg {
    throw unsupported(`a module of class ${module.className}`);
  }

  #createObject(value: object, depth: number): Arg {
    if (depth > MAX_DEPTH)
      throw unsupported("a container nested deeper than 500 levels", "check that it does not hold itself");
    const each = (it: unknown): Arg => this.createArg(it, depth + 1);
    if (value instanceof Tensor) return this.createTensorArg(value);
    if (value instanceof Tuple || value instanceof ValueTuple)
      return Tuple.frozen(Array.from(value as unknown[], each));
    if (Array.isArray(value)) return List.frozen(Array.from(value as unknown[], each));
    if (value instanceof Slice) return new Slice(each(value.start), each(value.stop), each(value.step));
    if (value instanceof Map) return this.#createDict(value, each);
    if (isOptions(value)) return this.#createDict(Object.entries(value), each);
    if (value instanceof Module) return this.createModuleArg(value);
    if ("__fx_create_arg__" in value && typeof value.__fx_create_arg__ === "function") {
      return freezeArg((value as CreatesArgument).__fx_create_arg__(this));
    }
    if (value instanceof Promise) {
      throw unsupported(
        "a promise",
        "a function that is traced must be synchronous: make it neither async nor a generator",
      );
    }
    try {
      return freezeArg(value as ArgInput);
    } catch (error) {
      const name: unknown = value.constructor?.name;
      throw unsupported(
        `an object of class ${String(name)}`,
        "pass its parts, or give it a method __fx_create_arg__(tracer)",
        error,
      );
    }
  }

  #createDict(entries: Iterable<readonly [unknown, unknown]>, each: (it: unknown) => Arg): Dict {
    return Dict.frozen(
      Array.from(entries, ([key, value]) => {
        if (isProxy(key)) {
          const reason = `Keys for dictionaries used as an argument cannot contain a Node. Got key: ${nodeOf(key).name}`;
          throw traceError("TraceUnsupported", reason);
        }
        if (typeof key !== "string")
          throw unsupported(`a dictionary with the key ${String(key)}`, "use strings as keys");
        return [key, each(value)] as const;
      }),
    );
  }
}

Object.setPrototypeOf(TracerBase.prototype, answeringPythonNames("a tracer"));

function unsupported(what: string, help?: string, cause?: unknown) {
  return traceError("TraceUnsupported", `argument of type: ${what} cannot be recorded`, {
    ...(help === undefined ? {} : { help }),
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Records what is done with its values at the end, or at the insertion point, of a graph that is there already. */
export class GraphAppendingTracer extends TracerBase {
  readonly graph: Graph;

  constructor(graph: Graph) {
    super();
    this.graph = graph;
  }
}

/** What appends to each graph: values of one graph go together. */
const appending = new WeakMap<Graph, GraphAppendingTracer>();

function appendingTo(graph: Graph): GraphAppendingTracer {
  let res = appending.get(graph);
  if (res === undefined) appending.set(graph, (res = new GraphAppendingTracer(graph)));
  return res;
}

interface ProxyConstructor {
  /** A traced value around a node; without a tracer its uses are appended to the node's graph. */
  new (node: Node, tracer?: TracerBase): TracedValue;
  [Symbol.hasInstance](value: unknown): boolean;
}

/** A traced value: what `new Proxy(node)` makes. */
export type Proxy = TracedValue;

/**
 * A traced value around a node: `torch.fx.Proxy`.
 *
 * @example
 * ```ts
 * const x = new Proxy(node);
 * const doubled = torch.mul(x, 2) as Proxy; // appends a node to node.graph
 * node.replaceAllUsesWith(doubled.node, { filter: (user) => user !== doubled.node });
 * ```
 */
export const Proxy: ProxyConstructor = Object.defineProperty(
  function construct(node: Node, tracer?: TracerBase) {
    checkGiven("Proxy", isNode(node), "a Node", "symbolicTrace makes traced values; take them as arguments");
    checkGiven("Proxy", tracer === undefined || tracer instanceof TracerBase, "a tracer behind the node");
    return (tracer ?? appendingTo(node.graph)).proxy(node);
  },
  Symbol.hasInstance,
  { value: isProxy },
) as unknown as ProxyConstructor;
