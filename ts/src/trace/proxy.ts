/**
 * Traced values: `torch.fx.Proxy`.
 *
 * A traced value stands for a tensor, or anything else, that is known only when the graph runs. Whatever is done with it
 * becomes a node. What JavaScript lets it see and a graph cannot hold (arithmetic with `+`, a text of it, its length) it
 * refuses, naming the line; what JavaScript does not let it see (`if (x)`, `x === y`) is found in the source instead.
 *
 * @module
 */
import { shownBy } from "../base/inspect.ts";
import { pythonName, splitArguments } from "../base/naming.ts";
import type { Node } from "../graph/node.ts";
import { Tensor } from "../tensor/tensor.ts";
import { isTraced, RECORDER } from "../record/record.ts";
import { enter, leave, traceError } from "../record/stack.ts";
import type { TracerBase } from "./tracerBase.ts";

/** A traced value. It has every attribute and every method: using one records it. */
export type TracedValue = Tensor & {
  /** The node that gives the value. */
  readonly node: Node;
  /** What records the uses of the value. */
  readonly tracer: TracerBase;
  /** Records a call of the value. */
  (...args: unknown[]): TracedValue;
};

/** What is behind a traced value. */
interface State {
  readonly tracer: TracerBase;
  /** Made when it is first asked for, where the value is an attribute of another one. */
  node: Node | undefined;
  /** The value that this one is an attribute of. */
  readonly root: TracedValue | undefined;
  readonly attribute: string;
  /** What is known of the value although it is traced: the shape of a parameter. `"untold"` refuses what it would tell. */
  known: Tensor | "untold" | undefined;
  /** Which of its members that tells. */
  readonly members: ReadonlySet<string>;
}

interface Target {
  (): void;
  state: State;
  [INSPECT]: () => string;
}

const STATE = Symbol("state");
const INSPECT: unique symbol = Symbol.for("nodejs.util.inspect.custom") as never;

/** Puts a traced value around a node; `known` tells what these members are. */
export function proxyOf(
  node: Node,
  tracer: TracerBase,
  known?: Tensor | "untold",
  members: ReadonlySet<string> = SHAPE_MEMBERS,
): TracedValue {
  return wrap({ tracer, node, root: undefined, attribute: "", known, members });
}

/** Whether this is a traced value. */
export function isProxy(value: unknown): value is TracedValue {
  return isTraced(value);
}

/** The node of a traced value; an attribute's is made when it is first asked for. */
export function nodeOf(proxy: TracedValue): Node {
  const state = stateOf(proxy);
  const { node, root, tracer } = state;
  // An attribute that was first used in a branch is read again outside of it.
  if (node !== undefined && (root === undefined || tracer.reaches(node))) return node;
  const attribute = tracer.createProxy("call_function", "builtins.getattr", [root, state.attribute], {});
  return (state.node = nodeOf(attribute));
}

/**
 * Whether a traced value may stand for null: an input whose default is null, or an attribute, of which nobody knows
 * what it is.
 */
export function standsForNull(proxy: TracedValue): boolean {
  const { node } = stateOf(proxy);
  return node === undefined || (node.op === "placeholder" && node.args.length > 0 && node.args[0] === null);
}

/** Says what a traced value is known to be, from here on. */
export function tell(proxy: TracedValue, known: Tensor): void {
  stateOf(proxy).known = known;
}

function stateOf(proxy: TracedValue): State {
  return Reflect.get(proxy, STATE) as State;
}

function wrap(state: State): TracedValue {
  const target = (() => undefined) as unknown as Target;
  target.state = state;
  // Node looks at what is behind a JavaScript Proxy to find out how it prints.
  target[INSPECT] = inspect;
  return behind(target);
}

/** The traced value in front of this; each is as good as another. */
function behind(target: Target): TracedValue {
  return new globalThis.Proxy(target, HANDLER) as unknown as TracedValue;
}

function inspect(this: Target | TracedValue): string {
  return describe(isProxy(this) ? stateOf(this) : this.state);
}

function describe(state: State): string {
  if (state.node !== undefined) return `Proxy(${state.node.name})`;
  return `${describe(stateOf(state.root as TracedValue))}.${state.attribute}`;
}

/** What a parameter knows of itself while its shape is a constant. */
const SHAPE_MEMBERS: ReadonlySet<string> = new Set(["shape", "size", "dim", "ndim", "numel", "nelement"]);

/** What a traced value knows of itself where shapes are computed as it is traced. */
export const META_MEMBERS: ReadonlySet<string> = new Set([...SHAPE_MEMBERS, "dtype"]);

/** Whether a parameter knows this of itself while its shape is a constant. */
export function isShapeMember(name: string): boolean {
  return SHAPE_MEMBERS.has(name);
}

/** Operators and what to write for them. */
const COERCION_HELP =
  "JavaScript's operators cannot be recorded: write torch.add(x, y), x.mul(2) or operator.sub(x, y), or let the build plugin rewrite them (tracefx/plugin, operators: true)";

const HANDLER: ProxyHandler<Target> = {
  get({ state }, key, receiver) {
    if (typeof key === "symbol") return symbolMember(state, key, receiver as TracedValue);
    switch (key) {
      case "node":
        return nodeOf(receiver as TracedValue);
      case "tracer":
        return state.tracer;
      case "then":
        // A traced value is no promise, so awaiting it gives it back.
        return undefined;
      case "constructor":
        return Tensor;
      case "length":
        throw traceError("TraceIteration", `the length of ${describe(state)} is not known while it is traced`, {
          help: "read a size, x.size(0) or x.shape[0], and use it in operators; or wrap a function that takes the length",
        });
      case "toJSON":
      case "toString":
      case "valueOf":
      case "toLocaleString":
        throw coerced(state, "text", "its elements are known only when the graph runs");
      case "data":
        throw coerced(state, "a typed array", "its elements are known only when the graph runs");
    }
    if (/^\d+$/.test(key)) {
      return recorded(HANDLER.get, state.tracer, "call_function", "operator.getitem", [receiver, Number(key)], {});
    }
    if (state.known === "untold" && state.members.has(key)) {
      throw traceError(
        "TraceUnsupported",
        `\`${key}\` of ${describe(state)} is not known: nothing told the shape of the value`,
        {
          help: "give the inputs that it is computed of as metaArgs; what could not be computed was warned of",
        },
      );
    }
    if (typeof state.known === "object" && state.members.has(key)) {
      const member: unknown = Reflect.get(state.known, key);
      return typeof member === "function" ? member.bind(state.known) : member;
    }
    const root = receiver as TracedValue;
    return wrap({
      tracer: state.tracer,
      node: undefined,
      root,
      attribute: pythonName(key),
      known: undefined,
      members: SHAPE_MEMBERS,
    });
  },
  apply({ state }, _self, given: unknown[]) {
    const { args, kwargs } = splitArguments(given);
    if (state.root !== undefined && state.node === undefined) {
      return recorded(HANDLER.apply, state.tracer, "call_method", state.attribute, [state.root, ...args], kwargs);
    }
    const self = proxyOf(state.node as Node, state.tracer);
    return recorded(HANDLER.apply, state.tracer, "call_method", "__call__", [self, ...args], kwargs);
  },
  set({ state }, key) {
    const isItem = typeof key === "string" && /^\d+$/.test(key);
    throw traceError(
      "TraceUnsupported",
      isItem
        ? "'Proxy' object does not support item assignment"
        : `\`${String(key)}\` of ${describe(state)} is assigned`,
      {
        help: isItem
          ? "write operator.setitem(x, 0, value), which is recorded, or torch.selectScatter(x, value, 0, 0), which changes nothing in place"
          : "an assignment to an attribute of a traced value cannot be recorded; call a method that makes the change, such as x.copy_(value)",
      },
    );
  },
  has({ state }) {
    throw traceError("TraceIteration", `what is in ${describe(state)} is not known while it is traced`, {
      help: "compare with operators that are recorded, such as torch.eq(x, value).any()",
    });
  },
  deleteProperty({ state }, key) {
    throw traceError("TraceUnsupported", `\`${String(key)}\` of ${describe(state)} is deleted`);
  },
  defineProperty({ state }, key) {
    throw traceError("TraceUnsupported", `\`${String(key)}\` of ${describe(state)} is defined`);
  },
  ownKeys(target) {
    return [...target.state.tracer.keys(behind(target))];
  },
  getOwnPropertyDescriptor(target, key) {
    const isKey = typeof key === "string" && target.state.tracer.keys(behind(target)).includes(key);
    return isKey ? { value: undefined, writable: true, enumerable: true, configurable: true } : undefined;
  },
  construct({ state }) {
    throw traceError("TraceUnsupported", `${describe(state)} is called with new`);
  },
  getPrototypeOf() {
    return Tensor.prototype;
  },
  setPrototypeOf({ state }) {
    throw traceError("TraceUnsupported", `the prototype of ${describe(state)} is changed`);
  },
};

/** Records a call that the user's code made through the function `by`. */
function recorded(by: unknown, tracer: TracerBase, ...call: Parameters<TracerBase["createProxy"]>): TracedValue {
  const outer = enter(by as () => void);
  try {
    return tracer.createProxy(...call);
  } finally {
    leave(outer);
  }
}

function symbolMember(state: State, key: symbol, receiver: TracedValue): unknown {
  switch (key) {
    case RECORDER:
      return state.tracer;
    case STATE:
      return state;
    case Symbol.iterator:
      return () => state.tracer.iter(receiver);
    case Symbol.asyncIterator:
      throw traceError("TraceIteration", `${describe(state)} cannot be iterated, and not asynchronously either`);
    case Symbol.toPrimitive:
      return (hint: string) => {
        if (hint === "string") throw coerced(state, "a string", "its text is known only when the graph runs");
        throw coerced(state, "a number", "its value is known only when the graph runs", COERCION_HELP);
      };
    case INSPECT:
      return shownBy(() => describe(state));
    case Symbol.toStringTag:
      return "Proxy";
    default:
      return undefined;
  }
}

function coerced(state: State, what: string, why: string, help?: string) {
  const reason = `${describe(state)} is traced and cannot become ${what}: ${why}`;
  return traceError("TraceCoercion", reason, {
    help:
      help ?? "console.log(x) prints the traced value itself; to see its elements run the graph with an Interpreter",
  });
}
