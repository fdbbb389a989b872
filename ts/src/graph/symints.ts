/**
 * Nodes that compute sizes: of a tensor as it is, or of the symbols that a size is made of.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { type Expression, type Linear, linearOf, parseExpression } from "./expression.ts";
import type { Graph } from "./graph.ts";
import type { Node } from "./node.ts";
import { SymExpr, type SymInt, TensorMeta, type Val, ValSequence } from "./val.ts";

/** Makes a node for `tensor.size(dim)`: `torch.fx.Graph.create_size_node`. Its known value comes from the tensor's. */
export function createSizeNode(graph: Graph, tensor: Node, dim: number): Node {
  return query(graph, "torch.ops.aten.sym_size.int", tensor, dim, (it) => it.sizes);
}

/** Makes a node for `tensor.stride(dim)`: `torch.fx.Graph.create_stride_node`. */
export function createStrideNode(graph: Graph, tensor: Node, dim: number): Node {
  return query(graph, "torch.ops.aten.sym_stride.int", tensor, dim, (it) => it.strides);
}

/** Makes a node for `tensor.storage_offset()`: `torch.fx.Graph.create_storage_offset_node`. */
export function createStorageOffsetNode(graph: Graph, tensor: Node): Node {
  const node = graph.callFunction("torch.ops.aten.sym_storage_offset.default", [tensor]);
  const known = knownTensor(tensor);
  if (known !== undefined) node.meta.set(known.key, known.meta.storageOffset);
  return node;
}

/** Makes nodes for sizes, of the nodes whose values their symbols are: `torch.fx.Graph.materialize_symints`. */
export function materializeSymints(graph: Graph, values: readonly SymInt[]): (Node | number | bigint)[] {
  const materializer = new Materializer(graph);
  return values.map((value) => {
    if (!(value instanceof SymExpr)) return value;
    const made = materializer.make(parseExpression(value));
    if (typeof made !== "object") return made;
    noteValue(made, value);
    return made;
  });
}

/** Where the value of a symbol comes from. */
type Source =
  | { readonly kind: "value"; readonly node: Node }
  | { readonly kind: "item"; readonly node: Node; readonly index: number }
  /** The size is the symbol times `factor`, plus `offset`. */
  | {
      readonly kind: "size";
      readonly node: Node;
      readonly dim: number;
      readonly factor: number;
      readonly offset: number;
    };

/** The function of each operation that a size may have. */
const FUNCTIONS: ReadonlyMap<string, string> = new Map([
  ["Add", "operator.add"],
  ["Mul", "operator.mul"],
  ["Pow", "operator.pow"],
  ["PowByNatural", "operator.pow"],
  ["FloorDiv", "operator.floordiv"],
  ["CleanDiv", "operator.floordiv"],
  ["Mod", "operator.mod"],
  ["PythonMod", "operator.mod"],
  ["Max", "torch.sym_max"],
  ["Min", "torch.sym_min"],
  ["Abs", "operator.abs"],
  ["ToFloat", "torch.sym_float"],
  ["IntTrueDiv", "operator.truediv"],
  ["FloatTrueDiv", "operator.truediv"],
  ["floor", "math.floor"],
  ["FloorToInt", "math.floor"],
  ["ceiling", "math.ceil"],
  ["CeilToInt", "math.ceil"],
  ["Equality", "operator.eq"],
  ["Unequality", "operator.ne"],
  ["StrictLessThan", "operator.lt"],
  ["LessThan", "operator.le"],
  ["StrictGreaterThan", "operator.gt"],
  ["GreaterThan", "operator.ge"],
  ["Not", "torch.sym_not"],
  ["And", "operator.and_"],
  ["Or", "operator.or_"],
]);

/** What an expression is where its symbols have these values; undefined where one has none, or nothing computes it. */
export function valueOfExpression(
  expression: Expression,
  symbols: ReadonlyMap<string, unknown>,
  call: (target: string, args: readonly unknown[]) => unknown,
): unknown {
  if (expression.kind === "symbol") return symbols.get(expression.name);
  if (expression.kind === "number") {
    return expression.text === "True" || expression.text === "False"
      ? expression.text === "True"
      : numberOf(expression.text);
  }
  const target = FUNCTIONS.get(expression.name);
  const args = expression.args.map((it) => valueOfExpression(it, symbols, call));
  if (target === undefined || args.includes(undefined)) return undefined;
  const [first, second, ...others] = args;
  if (second === undefined) return call(target, [first]);
  return others.reduce((res, it) => call(target, [res, it]), call(target, [first, second]));
}

class Materializer {
  readonly #graph: Graph;
  readonly #sources = new Map<string, Source>();
  /** What was made, by the text of its expression. */
  readonly #made = new Map<string, Node | number>();

  constructor(graph: Graph) {
    this.#graph = graph;
    const nodes = [...graph.nodes];
    const inputs = nodes.filter((it) => it.op === "placeholder");
    // An input has its sizes whatever happens; other nodes only give what no input has.
    for (const isPlain of [true, false]) for (const node of inputs) this.#note(node, isPlain);
    for (const node of nodes) if (node.op !== "placeholder") this.#note(node, false);
  }

  make(expression: Expression): Node | number {
    if (expression.kind === "number") return numberOf(expression.text);
    const known = this.#made.get(expression.srepr);
    if (known !== undefined) return known;
    const made = expression.kind === "symbol" ? this.#symbol(expression) : this.#call(expression);
    this.#made.set(expression.srepr, made);
    return made;
  }

  /** Notes the symbols that a node gives; `isPlain` says whether only those that it gives by themselves. */
  #note(node: Node, isPlain: boolean): void {
    const known = knownValue(node);
    const offer = (value: unknown, source: (linear: Linear) => Source | undefined): void => {
      const linear = value instanceof SymExpr ? linearOf(parseExpression(value)) : undefined;
      const isByItself = linear?.factor === 1 && linear.offset === 0;
      if (linear === undefined || linear.factor < 1 || (isPlain && !isByItself) || this.#sources.has(linear.name))
        return;
      const found = source(linear);
      if (found !== undefined) this.#sources.set(linear.name, found);
    };
    offer(known, alone({ kind: "value", node }));
    if (known instanceof ValSequence) {
      for (const [index, it] of known.items.entries()) offer(it, alone({ kind: "item", node, index }));
    }
    if (!(known instanceof TensorMeta)) return;
    for (const [dim, size] of known.sizes.entries()) {
      offer(size, ({ factor, offset }) => ({ kind: "size", node, dim, factor, offset }));
    }
  }

  #symbol({ name, srepr }: Expression & { kind: "symbol" }): Node {
    const source = this.#sources.get(name);
    if (source === undefined) {
      throw fxError("GraphInvalid", `no node of the graph has the value of the symbol ${name}`, {
        help: "the val of an input must have the symbol as a size, or be it",
      });
    }
    const graph = this.#graph;
    switch (source.kind) {
      case "value":
        return source.node;
      case "item":
        return graph.callFunction("operator.getitem", [source.node, source.index]);
      case "size": {
        const size = createSizeNode(graph, source.node, source.dim);
        const { factor, offset } = source;
        const product = offset === 0 ? size : graph.callFunction("operator.sub", [size, offset]);
        const symbol = factor === 1 ? product : graph.callFunction("operator.floordiv", [product, factor]);
        if (symbol !== size) noteValue(symbol, new SymExpr(srepr));
        return symbol;
      }
    }
  }

  #call({ name, args, srepr }: Expression & { kind: "call" }): Node | number {
    const target = FUNCTIONS.get(name);
    if (target === undefined) {
      throw fxError("NotImplemented", `the operation ${name} in a size has no function`, { notes: [srepr] });
    }
    // As sympy orders the arguments of a sum: the number comes first.
    const ordered =
      name === "Add" ? args.toSorted((a, b) => Number(b.kind === "number") - Number(a.kind === "number")) : args;
    const [first, ...rest] = ordered.map((it) => this.make(it));
    if (first === undefined) throw fxError("ExpressionMalformed", `the operation ${name} has nothing to work on`);
    const graph = this.#graph;
    if (rest.length === 0) return graph.callFunction(target, [first]);
    const made = rest.reduce((sum, it) => graph.callFunction(target, [sum, it]), first);
    if (typeof made === "object") noteValue(made, new SymExpr(srepr));
    return made;
  }
}

/** The source of a symbol that is a value by itself. */
function alone(source: Source): (linear: Linear) => Source | undefined {
  return ({ factor, offset }) => (factor === 1 && offset === 0 ? source : undefined);
}

function query(
  graph: Graph,
  target: string,
  tensor: Node,
  dim: number,
  read: (meta: TensorMeta) => readonly SymInt[],
): Node {
  const known = knownTensor(tensor);
  const values = known === undefined ? undefined : read(known.meta);
  const at = values !== undefined && dim < 0 ? dim + values.length : dim;
  if (!Number.isInteger(dim) || (values !== undefined && (at < 0 || at >= values.length))) {
    throw fxError("IndexOutOfRange", `there is no dimension ${dim}`, { node: tensor.name });
  }
  const node = graph.callFunction(target, [tensor, dim]);
  const value = values?.[at];
  if (known !== undefined && value !== undefined) node.meta.set(known.key, value);
  return node;
}

/** What is known of a tensor, and where it is noted: PyTorch's exported graphs and those of its compiler differ in that. */
function knownTensor(node: Node): { readonly key: string; readonly meta: TensorMeta } | undefined {
  for (const key of ["val", "example_value"]) {
    const meta = node.meta.get(key);
    if (meta instanceof TensorMeta) return { key, meta };
  }
  return undefined;
}

function knownValue(node: Node): Val | undefined {
  return (node.meta.get("val") ?? node.meta.get("example_value")) as Val | undefined;
}

/** Notes the value of a node that was made here, under both names where its inputs have both. */
function noteValue(node: Node, value: SymExpr): void {
  if (!node.meta.has("val")) node.meta.set("val", value);
  if (node.allInputNodes.some((it) => it.meta.has("example_value"))) node.meta.set("example_value", value);
}

function numberOf(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw fxError("NotImplemented", `the number ${text} in a size is no whole number`);
}
