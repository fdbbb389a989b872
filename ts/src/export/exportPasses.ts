/**
 * What is done with an exported graph once it is recorded, as PyTorch does it: sizes get their last form, and are asserted
 * where they are unbacked.
 *
 * @module
 */
import { ASSERTED_CONVERSIONS } from "../../../bindings/effects.ts";
import { isNode } from "../graph/args.ts";
import { formatExpression } from "../graph/expression.ts";
import type { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { isVal, SymExpr, TensorMeta, type Val, ValSequence } from "../graph/val.ts";
import { DTypeArg } from "../base/values.ts";
import { insertDeferredRuntimeAsserts } from "../rewrite/enginePasses.ts";
import { runPass } from "../rewrite/bridge.ts";
import type { SessionResult } from "./shapes.ts";

/** Takes out copies without gradients that nothing uses. */
export function removeUnusedDetach(graph: Graph): void {
  for (const node of [...graph.nodes].toReversed()) {
    if (node.target === "torch.ops.aten.detach.default" && node.users.size === 0) graph.eraseNode(node);
  }
}

/** Puts the numbers and symbols into all notes that sizes turned out to be. */
export function replaceSizes(module: GraphModule, replace: SessionResult["replace"]): void {
  for (const { graph } of graphsOf(module)) {
    for (const node of graph.nodes) {
      const val = node.meta.get("val");
      if (isVal(val)) node.meta.set("val", withSizes(val, replace));
    }
  }
}

function withSizes(val: Val, replace: SessionResult["replace"]): Val {
  if (val instanceof SymExpr) return replace(val);
  if (val instanceof ValSequence)
    return new ValSequence(
      val.kind,
      val.items.map((it) => withSizes(it, replace)),
    );
  if (!(val instanceof TensorMeta)) return val;
  const { sizes, strides, storageOffset } = val;
  return new TensorMeta({
    ...val,
    sizes: sizes.map(replace),
    strides: strides.map(replace),
    storageOffset: replace(storageOffset),
  });
}

/** Asserts what the program has to assert of unbacked sizes. */
export function assertSizes(module: GraphModule, { rangeConstraints, assertions }: SessionResult): void {
  const hasSizes = graphsOf(module).some(({ graph }) =>
    Array.from(graph.nodes).some((it) => isSymbolic(it.meta.get("val"))),
  );
  if (!hasSizes) return;
  const read = graphsOf(module).flatMap(({ graph }) => graph.findNodes({ op: "call_function", target: SIZE }));
  const names = new Set(read.map((it) => it.name));
  const ranges = [...rangeConstraints].filter(([name]) => /^\w+$/.test(name));
  insertDeferredRuntimeAsserts(module, {
    ranges: Object.fromEntries(ranges.map(([name, { min, max }]) => [name, [bound(min), bound(max)]])),
    asserts: assertions.map(({ condition }) => formatExpression(condition)),
  });
  for (const { graph } of graphsOf(module)) nameSizes(graph, names);
}

const SIZE = "torch.ops.aten.sym_size.int";

/** Gives the nodes that read sizes of inputs, and those that code asked for, new names: PyTorch makes them anew, after all others. */
function nameSizes(graph: Graph, asked: ReadonlySet<string>): void {
  for (const node of graph.findNodes({ op: "call_function", target: SIZE })) {
    const [first] = node.args;
    if (!asked.has(node.name) && !(isNode(first) && first.op === "placeholder")) continue;
    node.rename(node.name === "sym_size_int" ? "sym_size_int_1" : "sym_size_int");
  }
}

function bound(value: number | bigint | undefined): number | null {
  return value === undefined ? null : Number(value);
}

function isSymbolic(val: unknown): boolean {
  return val instanceof SymExpr || (val instanceof TensorMeta && val.sizes.some((it) => it instanceof SymExpr));
}

/** A graph module and those that its graphs call. */
export function graphsOf(module: GraphModule): GraphModule[] {
  return [...module.namedModules().values()].filter((it) => it instanceof GraphModule);
}

/** What PyTorch notes of nodes that no module made. */
const NO_MODULE = "_empty_nn_module_stack_from_metadata_hook";

/** Says of the nodes that were added to the trace, such as the sizes of inputs, that they belong to no module. */
export function noteAdded(graph: Graph): void {
  for (const { op, meta } of graph.nodes) {
    if (op === "placeholder" || op === "output" || meta.has("nn_module_stack")) continue;
    meta.set("nn_module_stack", new Map([[NO_MODULE, [NO_MODULE, NO_MODULE]]]));
  }
}

/** What begins regions in which other modes hold. */
const MODES = [
  ["torch._C._set_grad_enabled", "replace_set_grad_with_hop"],
  ["torch.amp.autocast_mode._enter_autocast", "replace_autocast_with_hop"],
] as const;

/** Makes graphs of the regions without gradients, and then of those under autocast. The graph of the module is a new one then. */
export function replaceModes(module: GraphModule): void {
  for (const [begin, pass] of MODES) {
    const hasRegions = graphsOf(module).some(
      ({ graph }) => graph.findNodes({ op: "call_function", target: begin }).length > 0,
    );
    if (hasRegions) runPass(module, pass, { notes: true });
  }
}

/** The conversions in front of which PyTorch asserts what is converted. */
const CONVERSIONS: ReadonlySet<string> = new Set(ASSERTED_CONVERSIONS);

const ASSERTION = "torch.ops.aten._assert_tensor_metadata.default";

/** Asserts dtype, device and layout of what is converted: whether there is anything to do depends on them. */
export function assertConvertedTensors(graph: Graph): void {
  for (const node of Array.from(graph.nodes)) {
    const [converted] = node.args;
    if (!CONVERSIONS.has(node.target) || !isNode(converted)) continue;
    const val = converted.meta.get("val");
    if (!(val instanceof TensorMeta)) continue;
    // A graph that is exported again has the assertion already.
    const before = graph.nodeBefore(node);
    if (before?.target === ASSERTION && before.args[0] === converted) continue;
    const { dtype: name, device, layout } = val;
    const assertion = graph.insertingBefore(node, () =>
      graph.callFunction(ASSERTION, [converted], {
        dtype: new DTypeArg(name),
        device,
        layout,
      }),
    );
    for (const key of ["nn_module_stack", "stack_trace"]) {
      const note = node.meta.get(key);
      if (note !== undefined) assertion.meta.set(key, note);
    }
    assertion.meta.set("val", null);
  }
}
