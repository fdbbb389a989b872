/**
 * The text form of graphs, exactly PyTorch's `str(graph)`.
 *
 * @module
 */
import { isInt, isNode, type Arg, type Kwargs } from "./args.ts";
import type { Graph } from "./graph.ts";
import type { Node } from "./node.ts";
import { formatTable } from "./textTable.ts";
import { pythonComplex, pythonFloat, pythonString } from "./python.ts";
import { formatTensorMeta } from "./shapes.ts";
import { TensorMeta } from "./val.ts";
import {
  Complex,
  DeviceArg,
  Dict,
  DTypeArg,
  EllipsisType,
  Float,
  LayoutArg,
  List,
  MemoryFormatArg,
  OpArg,
  Slice,
  Tuple,
} from "../base/values.ts";
import { checkOptions } from "../base/given.ts";

type Write = (arg: Arg) => string;

/** PyTorch's `str(graph)`. */
export function formatGraph(graph: Graph): string {
  return ["graph():", ...Array.from(graph.nodes, (it) => `    ${formatNode(it)}`)].join("\n");
}

/** How a node is printed. */
export interface FormatOptions {
  /** Whether a call has what is known of its tensor, `Tensor "f32[2][1]cpu"`, in place of its type. */
  readonly includeTensorMetadata?: boolean;
}

/** PyTorch's `node.format_node()`: one line of `str(graph)`. */
export function formatNode(node: Node, options: FormatOptions = {}): string {
  checkOptions("formatNode", options, ["includeTensorMetadata"]);
  const { includeTensorMetadata = false } = options;
  const [first] = node.args;
  if (node.op === "output") return `return ${first === undefined ? "" : str(first)}`;
  const isCall = node.op !== "placeholder" && node.op !== "get_attr";
  const known = includeTensorMetadata && isCall ? knownTensor(node) : undefined;
  const type = known ?? (node.type === undefined ? "" : `${node.type} `);
  const head = `%${node.name} : ${type}[num_users=${node.users.size}] = ${node.op}[target=${node.target}]`;
  switch (node.op) {
    case "placeholder":
      return first === undefined ? head : `${head}(default=${str(first)})`;
    case "get_attr":
      return head;
    case "call_function":
    case "call_method":
    case "call_module":
      return `${head}(args = ${sequence(node.args, formatArg)}, kwargs = ${formatDict(Object.entries(node.kwargs))})`;
  }
}

function knownTensor(node: Node): string | undefined {
  const val = node.meta.get("val") ?? node.meta.get("tensor_meta") ?? node.meta.get("example_value");
  if (!(val instanceof TensorMeta)) return undefined;
  const { dtype, sizes, strides, device } = formatTensorMeta(val);
  return `Tensor "${dtype}${sizes}${strides}${device}"`;
}

/** FX's `_format_arg`: containers item by item, nodes as `%name`, anything else as Python's `str`. */
export function formatArg(arg: Arg): string {
  if (isNode(arg)) return `%${arg.name}`;
  if (arg instanceof List || arg instanceof Tuple) return sequence(arg, formatArg);
  if (arg instanceof Dict) return formatDict([...arg]);
  return str(arg);
}

/** Python's `repr`, with nodes as their names. */
export function repr(arg: Arg): string {
  if (arg === null) return "None";
  if (typeof arg === "boolean") return arg ? "True" : "False";
  if (typeof arg === "bigint") return arg.toString();
  if (typeof arg === "number") return isInt(arg) ? arg.toString() : pythonFloat(arg);
  if (typeof arg === "string") return pythonString(arg);
  if (isNode(arg)) return arg.name;
  if (arg instanceof Float) return pythonFloat(arg.value);
  if (arg instanceof Complex) return pythonComplex(arg.re, arg.im);
  if (arg instanceof EllipsisType) return "Ellipsis";
  if (arg instanceof DTypeArg || arg instanceof LayoutArg || arg instanceof MemoryFormatArg) return arg.toString();
  if (arg instanceof DeviceArg) {
    return arg.index === undefined ? `device(type='${arg.type}')` : `device(type='${arg.type}', index=${arg.index})`;
  }
  if (arg instanceof OpArg) {
    const name = shortTarget(arg.name);
    const at = name.lastIndexOf(".");
    const [packet, overload] = at < 0 ? [name, "default"] : [name.slice(0, at), name.slice(at + 1)];
    return `<OpOverload(op='${packet}', overload='${overload}')>`;
  }
  if (arg instanceof Slice) return `slice(${repr(arg.start)}, ${repr(arg.stop)}, ${repr(arg.step)})`;
  if (arg instanceof Dict) return reprDict([...arg]);
  return sequence(arg, repr);
}

/** The rows of `graph.print_tabular()`: opcode, name, target, args and kwargs of each node. */
export function tabularRows(graph: Graph): string[][] {
  return Array.from(graph.nodes, (node) => [
    node.op,
    node.name,
    shortTarget(node.target),
    sequence(node.args, repr),
    reprDict(Object.entries<Arg>(node.kwargs satisfies Kwargs)),
  ]);
}

/** The table of `graph.print_tabular()`. */
export function formatTabular(graph: Graph): string {
  return formatTable(["opcode", "name", "target", "args", "kwargs"], tabularRows(graph));
}

/** Python's `str`: of a string the text itself, of a device and an operator its name, of anything else its `repr`. */
function str(arg: Arg): string {
  if (typeof arg === "string") return arg;
  if (arg instanceof DeviceArg) return arg.toString();
  if (arg instanceof OpArg) return shortTarget(arg.name);
  return repr(arg);
}

function shortTarget(name: string): string {
  return name.startsWith("torch.ops.") ? name.slice("torch.ops.".length) : name;
}

function sequence(items: List | Tuple, write: Write): string {
  const text = Array.from(items, write).join(", ");
  if (items instanceof List) return `[${text}]`;
  return items.length === 1 ? `(${text},)` : `(${text})`;
}

function formatDict(entries: readonly (readonly [string, Arg])[]): string {
  return `{${entries.map(([key, value]) => `${key}: ${formatArg(value)}`).join(", ")}}`;
}

function reprDict(entries: readonly (readonly [string, Arg])[]): string {
  return `{${entries.map(([key, value]) => `${pythonString(key)}: ${repr(value)}`).join(", ")}}`;
}
