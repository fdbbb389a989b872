/**
 * Traces that know the shapes of their values: `torch.fx.experimental.meta_tracer`, and `torch.fx.proxy.MetaProxy`.
 *
 * @module
 */
import { FxError, fxError } from "../base/errors.ts";
import { checkGiven, checkOptions } from "../base/given.ts";
import { isOptions } from "../base/naming.ts";
import type { Opcode } from "../base/opcode.ts";
import { answerMembersOf } from "../base/pythonNames.ts";
import type { DeviceArg } from "../base/values.ts";
import { callOperator } from "../engine/dispatch.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { type Arg, type ArgInput, isNode } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { isVal, SymExpr, TensorMeta, type Val } from "../graph/val.ts";
import { Module } from "../nn/module.ts";
import { runPass } from "../rewrite/bridge.ts";
import { Tensor } from "../tensor/tensor.ts";
import { isProxy, META_MEMBERS, nodeOf, proxyOf, tell, type TracedValue } from "../trace/proxy.ts";
import { Tracer, type TracerOptions } from "../trace/tracer.ts";
import { GraphAppendingTracer } from "../trace/tracerBase.ts";
import { propagateThroughLeaves } from "./leafGraphs.ts";

/** How a {@link MetaTracer} is made. */
export interface MetaTracerOptions extends TracerOptions {
  /** What is known of the inputs, by their names: tensors, of which the elements are not looked at, or what is known of them. */
  readonly metaArgs?: Readonly<Record<string, Tensor | TensorMeta>>;
}

/**
 * A tracer that computes shapes as it goes, so that `x.shape`, `x.size()`, `x.dim()` and `x.dtype` are what they are for these inputs,
 * and control flow may depend on them: `torch.fx.experimental.meta_tracer.MetaTracer`. Of a value of which nothing is known these
 * members are refused. Nodes note what is known as `meta.val`.
 *
 * @example
 * ```ts
 * const flat = (x: Tensor) => (x.dim() > 2 ? torch.flatten(x, 1) : x);
 * const gm = symbolicTrace(flat, { tracer: new MetaTracer({ metaArgs: { x: torch.ones(2, 3, 4) } }) });
 * ```
 */
export class MetaTracer extends Tracer {
  /** Whether a module that is no part of the root, and has no state, is added to it. */
  allowInsertStatelessMods = true;
  readonly #metaArgs: Readonly<Record<string, Tensor | TensorMeta>>;
  readonly #inserted = new Map<Module, string>();

  constructor(options: MetaTracerOptions = {}) {
    checkOptions("MetaTracer", options, ["paramShapesConstant", "metaArgs"]);
    const { metaArgs = {}, ...rest } = options;
    super(rest);
    const areKnown = isOptions(metaArgs) && Object.values(metaArgs).every(isKnown);
    checkGiven("MetaTracer", areKnown, "tensors by the names of inputs as metaArgs");
    this.#metaArgs = metaArgs;
  }

  override createNode(
    op: Opcode,
    target: string,
    args: readonly ArgInput[],
    kwargs: Readonly<Record<string, ArgInput>>,
    name?: string,
    type?: string,
  ): Node {
    const node = super.createNode(op, target, args, kwargs, name, type);
    const given = op === "placeholder" && Object.hasOwn(this.#metaArgs, target) ? this.#metaArgs[target] : undefined;
    if (given !== undefined) node.meta.set("val", given instanceof Tensor ? tensorVal(given) : given);
    else if (op !== "placeholder" && op !== "output") this.#compute(node);
    return node;
  }

  override proxy(node: Node): TracedValue {
    checkGiven("proxy", isNode(node), "a Node");
    return proxyOf(node, this, shapeOf(node.meta.get("val")) ?? "untold", META_MEMBERS);
  }

  /**
   * Says what a value is, of which nothing or something else is known: `MetaProxy.install_tensor_meta`. Its members tell it from here on,
   * and what is computed of it is known.
   *
   * @example
   * ```ts
   * const tracer = new MetaTracer();
   * const gm = symbolicTrace((x: Tensor) => {
   *   const y = mystery(x); // a function that was wrapped, of which nobody knows what it gives
   *   tracer.installTensorMeta(y, torch.ones(2, 3));
   *   return y.reshape([y.size(0), -1]);
   * }, { tracer });
   * ```
   */
  installTensorMeta(value: unknown, meta: Tensor | TensorMeta): void {
    checkGiven("installTensorMeta", isProxy(value), "a value of this trace");
    const traced = value as TracedValue;
    checkGiven("installTensorMeta", isKnown(meta), "a tensor, or what is known of one");
    const val = meta instanceof Tensor ? tensorVal(meta) : meta;
    const known = shapeOf(val);
    checkGiven("installTensorMeta", known !== undefined, "a tensor whose sizes are numbers");
    nodeOf(traced).meta.set("val", val);
    tell(traced, known as Tensor);
  }

  override pathOfModule(module: Module): string {
    const inserted = this.#inserted.get(module);
    if (inserted !== undefined && this.added.has(inserted)) return inserted;
    try {
      return super.pathOfModule(module);
    } catch (error) {
      if (!this.allowInsertStatelessMods || !(module instanceof Module) || hasState(module)) throw error;
      return this.#insert(module);
    }
  }

  protected override get knownParts(): ReadonlySet<string> {
    return META_MEMBERS;
  }

  #compute(node: Node): void {
    if (deviceOf(node) !== undefined) return;
    try {
      noteMeta(node, this.root);
    } catch (error) {
      if (!(error instanceof FxError)) throw error;
      const what = `could not compute metadata for ${node.op} target ${node.target}: ${error.reason}`;
      this.warn(fxError("NotImplemented", what, { node: node.name }));
    }
  }

  #insert(module: Module): string {
    const prefix = module.className.toLowerCase();
    let count = 0;
    while (this.root.findAttribute(`${prefix}_${count}`) !== undefined) count++;
    const path = `${prefix}_${count}`;
    this.root.attributes.set(path, { kind: "module", module });
    this.added.add(path);
    this.#inserted.set(module, path);
    return path;
  }
}

answerMembersOf(MetaTracer);

function isKnown(value: unknown): boolean {
  return value instanceof Tensor || value instanceof TensorMeta;
}

function hasState(module: Module): boolean {
  return Array.from(module.namedModules()).some(([, it]) =>
    [...it.attributes.values()].some(({ kind }) => kind !== "module"),
  );
}

/** Notes what a node gives, by what is known of its inputs. */
function noteMeta(node: Node, root: Module | undefined): void {
  if (node.op === "get_attr") {
    const attribute = root?.findAttribute(node.target);
    if (attribute !== undefined && attribute.kind !== "module") node.meta.set("val", tensorVal(attribute.tensor));
    return;
  }
  const graph = new Graph();
  const inputs = new Map<Node, Arg>();
  for (const input of node.allInputNodes) {
    const device = deviceOf(input);
    const copy = device ?? graph.placeholder(input.name);
    if (isNode(copy)) copy.meta.set("val", knownOf(input));
    inputs.set(input, copy);
  }
  const copy = graph.nodeCopy(node, (it) => inputs.get(it) as Arg);
  graph.output(copy);
  const single = new GraphModule(root ?? {}, graph);
  propagateThroughLeaves(single, (it) => void runPass(it, "FakeTensorProp", { notes: "inputs" }));
  const val = copy.meta.get("val");
  if (val !== undefined) node.meta.set("val", val);
}

/** The device that a node reads of a tensor. */
function deviceOf({ target, args }: Node): DeviceArg | undefined {
  const [tensor, name] = args;
  if (target !== "builtins.getattr" || name !== "device" || !isNode(tensor)) return undefined;
  const val = tensor.meta.get("val");
  return val instanceof TensorMeta ? val.device : undefined;
}

function knownOf({ name, meta }: Node): Val {
  const val = meta.get("val");
  if (isVal(val)) return val;
  throw fxError("NotImplemented", `nothing is known of %${name}`, { node: name });
}

/** A tensor of the shape and the dtype that are known, over one element. */
function shapeOf(val: unknown): Tensor | undefined {
  if (!(val instanceof TensorMeta) || val.sizes.some((it) => it instanceof SymExpr)) return undefined;
  const element = callOperator("aten.empty.memory_format", [[]], { dtype: val.dtype }) as Tensor;
  return callOperator("aten.expand", [element, val.sizes]) as Tensor;
}

/** Notes about each call what it gives. */
class MetaAppendingTracer extends GraphAppendingTracer {
  protected override noteCall(node: Node): void {
    noteMeta(node, this.graph.owningModule);
  }
}

interface MetaProxyConstructor {
  /** A traced value around a node that notes what is known of it as `meta.val`. */
  new (node: Node): TracedValue;
  [Symbol.hasInstance](value: unknown): boolean;
}

/**
 * A traced value whose uses are appended to the graph of its node with `meta.val`, by that of what they use: `torch.fx.proxy.MetaProxy`.
 *
 * @example
 * ```ts
 * const doubled = torch.mul(new MetaProxy(node), 2) as Proxy;
 * doubled.node.meta.get("val"); // a TensorMeta
 * ```
 */
export const MetaProxy: MetaProxyConstructor = Object.defineProperty(
  function construct(node: Node) {
    checkGiven("MetaProxy", isNode(node), "a Node");
    return new MetaAppendingTracer(node.graph).proxy(node);
  },
  Symbol.hasInstance,
  { value: (value: unknown) => isProxy(value) && value.tracer instanceof MetaAppendingTracer },
) as unknown as MetaProxyConstructor;
