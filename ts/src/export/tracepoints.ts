/**
 * The calls of modules whose signature is preserved: `_export_tracepoint` nodes while a module is recorded, and then the
 * signatures, as PyTorch's `CollectTracepointsPass` makes them.
 *
 * @module
 */
import { type FxError, fxError } from "../base/errors.ts";
import { type Arg, isNode } from "../graph/args.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { TensorMeta } from "../graph/val.ts";
import { Float } from "../base/values.ts";
import type { Module } from "../nn/module.ts";
import { Tensor } from "../tensor/tensor.ts";
import { treeFlatten, treeUnflatten } from "../trace/pytree.ts";
import { ofPackage } from "../trace/subgraph.ts";
import { constantOf } from "./arguments.ts";
import { graphsOf } from "./exportPasses.ts";
import { callArguments } from "./moduleInputs.ts";
import type { CallSignature, TreeSpec } from "./program.ts";
import type { Argument } from "./signature.ts";
import { TracedNumber } from "./traced.ts";
import { callSpec, treeSpec } from "./treeSpecs.ts";

const TRACEPOINT = "torch.ops.higher_order._export_tracepoint";

/** The modules around a node, outermost first: from keys, which tell calls apart, to paths and classes. */
type ModuleStack = ReadonlyMap<string, readonly [path: string, type: string]>;

type Kind = "module_call_inputs" | "module_call_outputs";

/** Who writes the nodes. */
export interface TracepointRecorder {
  /** Records that these values pass a point, and gives them back as they come out of it. */
  passTracepoint(target: string, values: readonly unknown[], notes: Readonly<Record<string, string>>): unknown[];
}

/** The structures of what a module takes and gives. */
interface CallSpecs {
  readonly inSpec: TreeSpec;
  readonly outSpec: TreeSpec;
}

/** A signature that is being collected. */
interface Collected extends CallSpecs {
  readonly inputs: Argument[];
  readonly outputs: Argument[];
}

/** The modules whose signature is preserved, and how they are called. */
export class Tracepoints {
  readonly #root: Module;
  readonly #paths: readonly string[];
  readonly #specs = new Map<string, CallSpecs>();

  constructor(root: Module, paths: Iterable<string>) {
    this.#root = root;
    this.#paths = [...new Set(paths)];
    for (const path of this.#paths) if (path === "") throw fxError("InvalidOption", "path must not be empty");
  }

  /** Runs `body`, in which calls of the modules pass a point before them and one behind them. */
  within<T>(recorder: TracepointRecorder, body: () => T): T {
    const handles = this.#paths.flatMap((path) => this.#hook(path, this.#root.getSubmodule(path), recorder));
    try {
      return body();
    } finally {
      for (const handle of handles) handle.remove();
    }
  }

  /**
   * The signatures of the calls that were recorded, by the names of the calls: `layer`, `layer@1`. The points are taken out of
   * the graphs, and values go straight through.
   */
  collect(module: GraphModule): Map<string, CallSignature> {
    const res = new Map<string, Collected>();
    for (const [path, specs] of this.#specs) res.set(path, { ...specs, inputs: [], outputs: [] });
    if (this.#paths.length === 0) return new Map();
    for (const { graph } of graphsOf(module)) {
      const calls = graph.nodes.toArray().filter((it) => it.op === "call_function");
      leaveModules(calls, "module_call_outputs");
      leaveModules(calls.toReversed(), "module_call_inputs");
    }
    for (const { graph } of graphsOf(module)) {
      for (const point of graph.findNodes({ op: "call_function", target: TRACEPOINT })) {
        collectPoint(point, res);
        graph.eraseNodes([...point.users]);
        graph.eraseNode(point);
      }
    }
    return new Map([...res].map(([fqn, it]) => [fqn, { ...it, forwardArgNames: undefined }]));
  }

  #hook(path: string, module: Module, recorder: TracepointRecorder): readonly { remove(): void }[] {
    const pass = (values: readonly unknown[], kind: Kind): unknown[] => {
      for (const value of values) checkLeaf(value, path);
      return recorder.passTracepoint(TRACEPOINT, values, { kind, path });
    };
    const before = (_module: Module, given: readonly unknown[]): unknown[] => {
      const { args, kwargs } = callArguments(module, given);
      const [leaves, spec] = treeFlatten([args, kwargs]);
      const [own, named] = treeUnflatten(pass(leaves, "module_call_inputs"), spec) as [unknown[], object];
      return Object.keys(named).length === 0 ? own : [...own, named];
    };
    const behind = (_module: Module, given: readonly unknown[], result: unknown): unknown => {
      const { args, kwargs } = callArguments(module, given);
      const [leaves, spec] = treeFlatten(result);
      const inSpec = callSpec(treeFlatten(args)[1], treeFlatten(kwargs)[1]);
      this.#note(path, { inSpec, outSpec: treeSpec(spec) });
      return treeUnflatten(pass(leaves, "module_call_outputs"), spec);
    };
    return [module.registerForwardPreHook(ofPackage(before)), module.registerForwardHook(ofPackage(behind))];
  }

  #note(path: string, specs: CallSpecs): void {
    const known = this.#specs.get(path);
    for (const key of ["inSpec", "outSpec"] as const) {
      if (known === undefined || JSON.stringify(known[key]) === JSON.stringify(specs[key])) continue;
      throw fxError("NotImplemented", `${key} mismatch for ${path}: its calls are structured in two ways`, {
        help: "call the module in one way, or do not preserve its signature",
      });
    }
    this.#specs.set(path, specs);
  }
}

/** Notes what passes a point, and lets what uses it use what comes in. */
function collectPoint(point: Node, signatures: Map<string, Collected>): void {
  const stack = moduleStackOf(point);
  const [key, [fqn]] = [...stack].at(-1) ?? ["", [""]];
  const suffix = key.includes("@") ? `@${key.split("@").at(-1)}` : "";
  const [path, call] = [`${String(point.kwargs["path"])}${suffix}`, `${fqn}${suffix}`];
  const first = signatures.get(fqn);
  if (!signatures.has(call) && first !== undefined) signatures.set(call, { ...first, inputs: [], outputs: [] });
  const isInput = point.kwargs["kind"] === "module_call_inputs";
  for (const [index, arg] of point.args.entries()) {
    const signature = signatures.get(path);
    // A module of several names passes a point for each of them, and belongs to the one that it was called by.
    if (call === path && signature !== undefined)
      (isInput ? signature.inputs : signature.outputs).push(argumentOf(arg));
    if (!isNode(arg)) continue;
    const item = [...point.users].find((it) => it.args[1] === index);
    const users = [...(item?.users ?? [])].map((it) => [it, it.meta.get("val")] as const);
    item?.replaceAllUsesWith(arg);
    // It is the same value, so what is known of its users is still true.
    for (const [user, val] of users) if (val !== undefined) user.meta.set("val", val);
  }
}

function argumentOf(arg: Arg): Argument {
  if (!isNode(arg)) return constantOf("", arg);
  if (arg.meta.get("val") instanceof TensorMeta) return { type: "tensor", name: arg.name };
  throw symbolic();
}

/** Takes nodes between a point and its call out of the module: hooks made them. */
function leaveModules(calls: readonly Node[], kind: Kind): void {
  let around: ModuleStack | undefined;
  for (const node of calls) {
    if (node.target === TRACEPOINT) {
      around = node.kwargs["kind"] === kind ? moduleStackOf(node) : undefined;
      continue;
    }
    const stack = moduleStackOf(node);
    if (around !== undefined && isSame(stack, around))
      node.meta.set("nn_module_stack", new Map([...stack].slice(0, -1)));
    else around = undefined;
  }
}

/** The modules around a node; empty where nothing is noted. */
function moduleStackOf(node: Node): ModuleStack {
  const note = node.meta.get("nn_module_stack");
  return note instanceof Map ? (note as ModuleStack) : new Map();
}

function isSame(a: ModuleStack, b: ModuleStack): boolean {
  return JSON.stringify([...a]) === JSON.stringify([...b]);
}

function checkLeaf(value: unknown, path: string): void {
  if (value instanceof TracedNumber) throw symbolic();
  const isPlain = value === null || ["number", "bigint", "boolean", "string"].includes(typeof value);
  if (isPlain || value instanceof Tensor || value instanceof Float) return;
  const what = `Only Tensors or scalars are supported as pytree flattened inputs, got: ${String(value)}`;
  throw fxError("InputType", `${what} at ${path}`, { help: "do not preserve the signature of this module" });
}

function symbolic(): FxError {
  return fxError("NotImplemented", "Symint input is not implemented yet for submodule call signature.", {
    help: "let the module read the size of a tensor, or do not preserve its signature",
  });
}
