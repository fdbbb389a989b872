/**
 * Which tensors a run made itself and nothing else can hold, so that it may give their memory back at their last use.
 *
 * The engine's memory is not JavaScript's: a tensor that is only forgotten keeps it until the garbage collector runs,
 * which may be after the whole model did. Views share their storage by counting, so disposing a tensor harms no view of it.
 *
 * @module
 */
import { isObject } from "../base/objects.ts";
import { isOptions } from "../base/naming.ts";
import { isNode } from "../graph/args.ts";
import type { Node } from "../graph/node.ts";
import { stateOf } from "../graph/nodeState.ts";
import { Complex, DeviceArg, DTypeArg, Float, LayoutArg, MemoryFormatArg } from "../base/values.ts";
import { builtinNameOf } from "../nn/builtin.ts";
import { hasHooks, type Module } from "../nn/module.ts";
import { Parameter } from "../nn/parameter.ts";
import { Tensor } from "../tensor/tensor.ts";
import { isWrapped } from "../functions/wrap.ts";

/** The tensors of one run that are its own, each with the number of known values that hold it. */
export class Ownership {
  readonly #holders = new Map<Tensor, number>();
  readonly #env: ReadonlyMap<Node, unknown>;
  readonly #root: Module;

  /** `env` holds the values that are known, `root` the modules that are called. */
  constructor(env: ReadonlyMap<Node, unknown>, root: Module) {
    this.#env = env;
    this.#root = root;
  }

  /** Notes that the node gave this value. */
  gave(node: Node, value: unknown): void {
    switch (node.op) {
      case "placeholder":
      case "get_attr":
        return;
      case "output":
        return this.#hold(value);
      case "call_function":
      case "call_method":
      case "call_module":
        if (!this.#isSeenThrough(node, value) || !keepsNothing(node, this.#env, this.#root)) this.#letGo(node);
        else if (!readsWhatWasThere(node, this.#env)) this.#adopt(node, value);
        this.#hold(value);
    }
  }

  /** Notes that the node gave this value, and that its arguments and the value were seen by who may keep them. */
  showed(node: Node, value: unknown): void {
    this.#letGo(node);
    eachTensor(value, (tensor) => this.#holders.delete(tensor));
  }

  /** Takes all tensors for kept by somebody else. */
  letGoAll(): void {
    this.#holders.clear();
  }

  /** Notes that this value is forgotten, and disposes the tensors that only it held. */
  forgot(value: unknown): void {
    eachTensor(value, (tensor) => {
      const holders = this.#holders.get(tensor);
      if (holders === undefined) return;
      if (holders > 1) {
        this.#holders.set(tensor, holders - 1);
      } else {
        this.#holders.delete(tensor);
        tensor.dispose();
      }
    });
  }

  /** Whether nothing among the inputs and in the result may hold tensors out of sight: objects of a class, functions. */
  #isSeenThrough(node: Node, value: unknown): boolean {
    return isTransparent(value) && stateOf(node).inputs.every((input) => isTransparent(this.#env.get(input)));
  }

  /** Takes the tensors of a result that are none of its inputs for the run's own. */
  #adopt(node: Node, value: unknown): void {
    if (typeof value !== "object" || value === null) return;
    const inputs = new Set<Tensor>();
    for (const input of stateOf(node).inputs) {
      eachTensor(this.#env.get(input), (tensor) => inputs.add(tensor));
    }
    eachTensor(value, (tensor) => {
      if (!inputs.has(tensor) && !this.#holders.has(tensor)) this.#holders.set(tensor, 0);
    });
  }

  /** Takes the inputs for kept by somebody else, from now on. */
  #letGo(node: Node): void {
    for (const input of stateOf(node).inputs) {
      eachTensor(this.#env.get(input), (tensor) => this.#holders.delete(tensor));
    }
  }

  #hold(value: unknown): void {
    eachTensor(value, (tensor) => {
      const holders = this.#holders.get(tensor);
      if (holders !== undefined) this.#holders.set(tensor, holders + 1);
    });
  }
}

/** Values that hold no tensors. */
const PLAIN = [DTypeArg, DeviceArg, LayoutArg, MemoryFormatArg, Float, Complex];

/** Functions of the package; those of users have other names. */
const OWN_FUNCTIONS = /^(?:torch\.(?!ops\.)|torch\.ops\.(?:aten|prims)\.|operator\.getitem$|math\.)/;

/** Whether a call is known to keep none of its arguments, nor its result. */
function keepsNothing(node: Node, env: ReadonlyMap<Node, unknown>, root: Module): boolean {
  switch (node.op) {
    case "call_function":
      if (node.target === "builtins.getattr") return ofTensor(node, env);
      // `operator.setitem` and its like put values into the containers of others.
      if (node.target.startsWith("operator.") && node.target !== "operator.getitem") return onlyTensors(node, env);
      return isOwnTarget(node.target);
    case "call_method":
      return ofTensor(node, env);
    case "call_module": {
      const found = root.findAttribute(node.target);
      return found?.kind === "module" && found.module.modules().every(isPlainLayer);
    }
    default:
      return false;
  }
}

/** Whether the result may be something that was there before: an item of a container, a property. */
function readsWhatWasThere(node: Node, env: ReadonlyMap<Node, unknown>): boolean {
  return node.target === "builtins.getattr" || (node.target === "operator.getitem" && !ofTensor(node, env));
}

/** Whether a module is of a class of `torch.nn` itself, and no hook and no function of a user sees what it does. */
function isPlainLayer(module: Module): boolean {
  if (builtinNameOf(module.constructor) === undefined || hasHooks(module)) return false;
  // Some layers are made with a function: an activation, a distance.
  return Object.values(module).every((it) => typeof it !== "function" || isOwnFunction(it));
}

function isOwnFunction(value: object): boolean {
  return "target" in value && typeof value.target === "string" && isOwnTarget(value.target);
}

function isOwnTarget(target: string): boolean {
  return OWN_FUNCTIONS.test(target) && !isWrapped(target);
}

function onlyTensors(node: Node, env: ReadonlyMap<Node, unknown>): boolean {
  return stateOf(node).inputs.every((input) => {
    const value = env.get(input);
    return !isObject(value) || value instanceof Tensor;
  });
}

/** Whether the first argument is a tensor, and of no class of a user, whose methods may keep what they see. */
function ofTensor({ args }: Node, env: ReadonlyMap<Node, unknown>): boolean {
  const [self] = args;
  const value = isNode(self) ? env.get(self) : self;
  return value instanceof Tensor && (value.constructor === Tensor || value instanceof Parameter);
}

/** Containers deeper than this are not looked into; their tensors are left to the garbage collector. */
const MAX_DEPTH = 100;

function eachTensor(value: unknown, visit: (tensor: Tensor) => void, depth = 0): void {
  if (typeof value !== "object" || value === null) return;
  if (value instanceof Tensor) visit(value);
  else if (depth < MAX_DEPTH) for (const item of itemsOf(value)) eachTensor(item, visit, depth + 1);
}

function itemsOf(value: object): Iterable<unknown> {
  if (Array.isArray(value)) return value as unknown[];
  if (value instanceof Map) return value.values();
  return isOptions(value) ? Object.values(value) : [];
}

/** Whether all tensors in a value can be seen: a traced value or an object of some class may hold others. */
function isTransparent(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return typeof value !== "function";
  if (value instanceof Tensor || PLAIN.some((it) => value instanceof it)) return true;
  if (depth >= MAX_DEPTH || !(Array.isArray(value) || value instanceof Map || isOptions(value))) return false;
  for (const item of itemsOf(value)) if (!isTransparent(item, depth + 1)) return false;
  return true;
}
