/**
 * Which nodes may write to what they take, or switch how others compute, so that no sort moves them past others. What is not
 * known not to write counts as writing.
 *
 * @module
 */
import { IN_PLACE_OPERATORS, SWITCHES, WRITING_OPERATORS } from "../../../bindings/effects.ts";
import type { Module } from "../nn/module.ts";
import { hasGraph } from "./deadCode.ts";
import type { Node } from "./node.ts";

const SWITCHING: ReadonlySet<string> = new Set(SWITCHES);

const CHANGING: ReadonlySet<string> = new Set([...IN_PLACE_OPERATORS, "operator.setitem"]);

/** Overloads that write to an argument without being called `out`. */
const OUT_OVERLOAD = /^out$|_out$|^out_/;

/** Whether this is the name of what writes to its first argument: `relu_`, and not `__and__`. */
export function isInPlaceName(name: string): boolean {
  return name.endsWith("_") && !name.endsWith("__");
}

/** Whether PyTorch's rules for names tell that an operator writes to an argument. */
export function showsItWrites(name: string, overload: string): boolean {
  return isInPlaceName(name) || OUT_OVERLOAD.test(overload);
}

/** Whether a node switches autocast, gradients or vmap for all that comes after it. */
export function isSwitch(node: Node): boolean {
  return node.op === "call_function" && SWITCHING.has(node.target);
}

/** Whether a node may write to what it takes. */
export function mayWrite(node: Node): boolean {
  switch (node.op) {
    case "call_function":
      return functionWrites(node);
    case "call_method":
      return isInPlaceName(node.target);
    case "call_module": {
      const found = node.graph.owningModule?.findAttribute(node.target);
      return found?.kind === "module" && moduleWrites(found.module);
    }
    case "placeholder":
    case "get_attr":
    case "output":
      return false;
  }
}

function functionWrites(node: Node): boolean {
  const { target } = node;
  if (target.startsWith("torch.ops.")) return operatorWrites(node, target.slice("torch.ops.".length));
  // `operator.and_` is named so since Python has a word `and`.
  if (target.startsWith("operator.")) return CHANGING.has(target);
  if (isInPlaceName(target)) return true;
  // The last argument of many functions of torch.nn.functional says whether they write to the first.
  if (target.startsWith("torch.nn.functional.") && node.args.includes(true)) return true;
  const { out, inplace } = node.kwargs;
  return (out !== undefined && out !== null) || inplace === true;
}

function operatorWrites(node: Node, operator: string): boolean {
  const [namespace = "", name = "", overload = ""] = operator.split(".");
  if (namespace === "higher_order") return node.allInputNodes.some(isWritingGraph);
  const training = WRITING_OPERATORS[operator];
  if (training !== undefined) return (node.args[training] ?? node.kwargs["training"]) !== false;
  return showsItWrites(name, overload) || !PURE_NAMESPACES.has(namespace);
}

/** Namespaces whose operators tell by their names whether they write. */
const PURE_NAMESPACES: ReadonlySet<string> = new Set(["aten", "prims"]);

/** Whether this is a graph that a higher-order operator calls, and something in it writes. */
function isWritingGraph(input: Node): boolean {
  if (input.op !== "get_attr") return false;
  const found = input.graph.owningModule?.findAttribute(input.target);
  return found?.kind === "module" && moduleWrites(found.module);
}

function moduleWrites(module: Module): boolean {
  return module
    .modules()
    .some(
      (it) => ("inplace" in it && it.inplace === true) || (hasGraph(it) && it.graph.nodes.toArray().some(mayWrite)),
    );
}
