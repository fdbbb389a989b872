/**
 * The graph: an ordered list of nodes, `torch.fx.Graph`.
 *
 * This folder builds, walks, edits, checks and prints graphs, and needs no WebAssembly. What a node means and who runs it is
 * not known here: a target is a qualified name.
 *
 * @module
 */
import { isObject } from "../base/objects.ts";
import { GraphError, fxError, type FxError } from "../base/errors.ts";
import { hasAttributeValue } from "./attribute.ts";
import type { Module } from "../nn/module.ts";
import { type Arg, type ArgInput, checkNode, type KwargsInput, NO_KWARGS } from "./args.ts";
import { CodeGen, type BodyTransformer } from "./codegen/codegen.ts";
import { generateCode, type CodeOptions, type GeneratedCode } from "./codegen/generate.ts";
import { cloneInto, copyInto, inlineInto, type CopiedOutput } from "./copy.ts";
import { eliminateDeadCode } from "./deadCode.ts";
import { EditableGraph } from "./editableGraph.ts";
import { findProblems } from "./lint.ts";
import { Node } from "./node.ts";
import type { Opcode } from "../base/opcode.ts";
import { formatGraph, formatTabular, tabularRows } from "./print.ts";
import { answeringPythonNames, answerMembersOf, checkOverriding } from "../base/pythonNames.ts";
import { isOutermost, showThemselves } from "../base/inspect.ts";
import { createSizeNode, createStorageOffsetNode, createStrideNode, materializeSymints } from "./symints.ts";
import type { NamedTarget } from "./target.ts";
import type { SymInt } from "./val.ts";
import { checkFunction, checkGiven, checkList, checkOptions, checkPath } from "../base/given.ts";

/** How {@link Graph.graphCopy} copies. */
export interface CopyOptions {
  /** Whether to give back the output node of the source too, with what it returns. */
  readonly returnOutputNode?: boolean;
}

/**
 * An ordered list of nodes. All edits go through the graph or its nodes, so that `users` and the order always agree with
 * the arguments.
 *
 * @example
 * ```ts
 * const graph = new Graph();
 * const x = graph.placeholder("x");
 * const relu = graph.callFunction("torch.ops.aten.relu.default", [x]);
 * graph.output(tuple(relu));
 * console.log(`${graph}`);
 * ```
 */
export class Graph extends EditableGraph {
  #codegen = new CodeGen();
  #bodyTransformer: BodyTransformer | undefined;

  /** Makes an input. */
  placeholder(name: string, type?: string, defaultValue?: ArgInput): Node {
    return this.createNode(
      "placeholder",
      name,
      defaultValue === undefined ? [] : [defaultValue],
      NO_KWARGS,
      name,
      type,
    );
  }

  /** Makes a node that reads an attribute of the module; warns where the owning module has no such attribute. */
  getAttr(path: string, type?: string): Node {
    checkPath("getAttr", path);
    if (this.owningModule !== undefined && !hasAttributeValue(this.owningModule, path)) {
      // oxlint-disable-next-line no-console -- FX warns too: the attribute may well be added later
      console.warn(`get_attr: the module that owns the graph has no attribute ${path}; add it before the graph runs`);
    }
    return this.createNode("get_attr", path, [], NO_KWARGS, undefined, type);
  }

  /** Makes a call of a function or operator, by its qualified name or the function itself. */
  callFunction(
    target: string | NamedTarget,
    args: readonly ArgInput[] = [],
    kwargs: KwargsInput = NO_KWARGS,
    type?: string,
  ): Node {
    return this.createNode("call_function", target, args, kwargs, undefined, type);
  }

  /** Makes a call of a method of the first argument. */
  callMethod(method: string, args: readonly ArgInput[] = [], kwargs: KwargsInput = NO_KWARGS, type?: string): Node {
    return this.createNode("call_method", method, args, kwargs, undefined, type);
  }

  /** Makes a call of a sub-module, by its path. */
  callModule(path: string, args: readonly ArgInput[] = [], kwargs: KwargsInput = NO_KWARGS, type?: string): Node {
    return this.createNode("call_module", path, args, kwargs, undefined, type);
  }

  /** Makes the output. */
  output(result: ArgInput, type?: string): Node {
    return this.createNode("output", "output", [result], {}, undefined, type);
  }

  /**
   * Copies all nodes of another graph but its output, and returns what that output returns, in terms of this graph; on
   * request with the output node itself. Nodes that `valMap` knows are not copied, and the others are added to it.
   *
   * @example
   * ```ts
   * const result = graph.graphCopy(other, new Map([[otherInput, x]]));
   * ```
   */
  graphCopy(graph: Graph, valMap?: Map<Node, Arg>, options?: { readonly returnOutputNode?: false }): Arg | undefined;
  graphCopy(graph: Graph, valMap: Map<Node, Arg>, options: { readonly returnOutputNode: true }): CopiedOutput;
  graphCopy(graph: Graph, valMap: Map<Node, Arg> = new Map(), options: CopyOptions = {}): Arg | CopiedOutput {
    checkOptions("graphCopy", options, ["returnOutputNode"]);
    const { returnOutputNode = false } = options;
    checkGraph("graphCopy", graph);
    checkGiven("graphCopy", valMap instanceof Map, "a Map from nodes to values as valMap");
    const copied = copyInto(this, graph, valMap);
    return returnOutputNode ? copied : copied?.[0];
  }

  /**
   * Puts another graph in the place of a call: copies it to the insertion point with these values for its inputs, in
   * order, and returns what it returns. An input that is not given takes its default.
   *
   * @example
   * ```ts
   * const result = graph.insertingBefore(call, () => graph.inlineGraph(callee, call.args));
   * ```
   */
  inlineGraph(graph: Graph, inputs: readonly ArgInput[]): Arg | undefined {
    checkGraph("inlineGraph", graph);
    checkList("inlineGraph", "inputs", inputs);
    return inlineInto(this, graph, inputs);
  }

  /** A graph of its own with the same nodes, names, users and hooks. Meta values are shared, their maps are not. */
  clone(): Graph {
    return cloneInto(new Graph(), this);
  }

  /** Makes a node for `tensor.size(dim)`, with what is known of it. */
  createSizeNode(tensor: Node, dim: number): Node {
    checkNode("createSizeNode", tensor);
    return createSizeNode(this, tensor, dim);
  }

  /** Makes a node for `tensor.stride(dim)`, with what is known of it. */
  createStrideNode(tensor: Node, dim: number): Node {
    checkNode("createStrideNode", tensor);
    return createStrideNode(this, tensor, dim);
  }

  /** Makes a node for `tensor.storage_offset()`, with what is known of it. */
  createStorageOffsetNode(tensor: Node): Node {
    checkNode("createStorageOffsetNode", tensor);
    return createStorageOffsetNode(this, tensor);
  }

  /**
   * Makes nodes for sizes as they are known now, from the inputs whose sizes their symbols are: an edit that changes the
   * layout of a tensor later does not change them. Shared parts are computed once, and plain numbers come back as they are.
   *
   * @example
   * ```ts
   * const { strides } = x.meta.get("val") as TensorMeta;
   * const nodes = graph.insertingBefore(output, () => graph.materializeSymints(strides));
   * ```
   */
  materializeSymints(values: readonly SymInt[]): (Node | number | bigint)[] {
    checkList("materializeSymints", "values", values);
    return materializeSymints(this, values);
  }

  /**
   * Makes a node for a size as it is known now: {@link Graph.materializeSymints} of one.
   *
   * @example
   * ```ts
   * const rows = graph.insertingBefore(output, () => graph.materializeSymint(sizes[0]));
   * ```
   */
  materializeSymint(value: SymInt): Node | number | bigint {
    return this.materializeSymints([value])[0] as Node | number | bigint;
  }

  /**
   * Erases the nodes that nothing uses and that are not impure, from the end to the beginning, and returns whether
   * anything changed. Another predicate replaces the rule wholly, as in FX: unused inputs go unless it holds on to them.
   * The graphs that `get_attr` nodes refer to, in the module that owns this one, lose their dead code too. Throws where
   * the graph is not well formed.
   *
   * @example
   * ```ts
   * graph.eliminateDeadCode((node) => node.isImpure() || node.target === "builtins.print");
   * ```
   */
  eliminateDeadCode(isImpure: (node: Node) => boolean = (node) => node.isImpure()): boolean {
    checkFunction("eliminateDeadCode", "isImpure", isImpure);
    return eliminateDeadCode(this, isImpure);
  }

  /**
   * Throws where the graph is not well formed: the first problem is the error, the others are its notes. With a module,
   * the attributes and modules that nodes refer to must be there; unless another is given, that is the owning module.
   */
  lint(owner: Module | undefined = this.owningModule): void {
    const [first, ...others] = findProblems(this, owner, "lint");
    if (first === undefined) return;
    const notes = others.map((it) => `%${it.node}: ${it.reason}`);
    throw new GraphError(first.kind, first.reason, {
      ...(first.node === undefined ? {} : { node: first.node }),
      notes,
    });
  }

  /** Everything that {@link Graph.lint} would complain of. */
  problems(owner: Module | undefined = this.owningModule): FxError[] {
    return findProblems(this, owner, "problems");
  }

  /** How the function around generated code looks. */
  get codegen(): CodeGen {
    return this.#codegen;
  }

  /** Generates code as this says from now on, with an unchanged body, and takes inputs and gives outputs as it says. */
  setCodegen(codegen: CodeGen): void {
    checkGiven(
      "setCodegen",
      codegen instanceof CodeGen,
      "a CodeGen",
      "new CodeGen() is the one that graphs begin with",
    );
    checkOverriding(codegen, CodeGen);
    this.#codegen = codegen;
    this.#bodyTransformer = undefined;
  }

  /** What changes the body of generated code; see {@link Graph.onGenerateCode}. */
  get bodyTransformer(): BodyTransformer | undefined {
    return this.#bodyTransformer;
  }

  /**
   * Has the body of generated code changed by the function that `make` gives, which is told the one that does so now, to
   * call it or not. Disposing what is returned brings that one back.
   *
   * @example
   * ```ts
   * graph.onGenerateCode((current) => (body) => [{ text: "debugger;" }, ...(current?.(body) ?? body)]);
   * ```
   */
  onGenerateCode(make: (current: BodyTransformer | undefined) => BodyTransformer): Disposable {
    checkFunction("onGenerateCode", "make", make);
    const previous = this.#bodyTransformer;
    const transformer = make(previous);
    if (transformer !== undefined) checkFunction("onGenerateCode", "what `make` gives", transformer);
    this.#bodyTransformer = transformer;
    return { [Symbol.dispose]: () => void (this.#bodyTransformer = previous) };
  }

  /** The inputs of the graph, of what its code is called with. */
  processInputs(...inputs: readonly unknown[]): readonly unknown[] {
    return this.#codegen.processInputs(...inputs);
  }

  /** What the code of the graph gives, of the output of the graph. */
  processOutputs(output: unknown): unknown {
    return this.#codegen.processOutputs(output);
  }

  /** JavaScript that computes what the graph does: `torch.fx.Graph.python_code`. */
  generateCode(options?: CodeOptions): GeneratedCode {
    return generateCode(this, options);
  }

  /** Prints a table of the nodes. */
  printTabular(): void {
    // oxlint-disable-next-line no-console -- printing is what it is for
    console.log(formatTabular(this));
  }

  /** The rows of {@link Graph.printTabular}: opcode, name, target, args and kwargs of each node. */
  tabular(): string[][] {
    return tabularRows(this);
  }

  /** PyTorch's `str(graph)`. */
  override toString(): string {
    return formatGraph(this);
  }

  /** What Node's console shows: the text of the graph, and inside of other values how many nodes it has. */
  [Symbol.for("nodejs.util.inspect.custom")](depth: number, options: { readonly depth?: number | null }): string {
    return isOutermost(depth, options) ? this.toString() : `Graph(${this.nodes.length} nodes)`;
  }

  protected override newNode(op: Opcode, target: string, name: string): Node {
    return new Node(this, op, target, name);
  }
}

Object.setPrototypeOf(
  EditableGraph.prototype,
  answeringPythonNames("a Graph", {
    advice: { python_code: "`graph.generateCode()` gives JavaScript, and `gm.code` its text" },
  }),
);
showThemselves(Graph);
answerMembersOf(Graph);

/**
 * Refuses what is no graph, such as the module that has one.
 *
 * @example
 * ```ts
 * checkGraph("getSourcePartitions", graph);
 * ```
 */
export function checkGraph(what: string, graph: Graph): void {
  if (graph instanceof Graph) return;
  const help = isObject(graph) && "graphHooks" in graph ? "give the graph of the module: gm.graph" : undefined;
  throw fxError("InvalidArgument", `${what} takes a Graph`, { help });
}
