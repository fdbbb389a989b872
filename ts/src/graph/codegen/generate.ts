/**
 * JavaScript for a graph.
 *
 * Each node is one statement. A value is released in the statement that uses it last, by setting its variable to null, so
 * that generated code holds no more tensors than the interpreter. Types are comments.
 *
 * The code is for reading, for `evaluateCode` and for `toFolder`; it is never evaluated by anything else.
 *
 * @module
 */
import { fxError } from "../../base/errors.ts";
import type { Arg } from "../args.ts";
import type { Graph } from "../graph.ts";
import { lastUses } from "../lastUse.ts";
import type { Node } from "../node.ts";
import { ANNOTATIONS, Annotator, type AnnotationOptions } from "./annotations.ts";
import type { CodeLine, Parameter } from "./codegen.ts";
import {
  writeArg,
  writeAttribute,
  writeFunctionCall,
  writeMethodCall,
  writeModuleCall,
  type Scope,
} from "./expressions.ts";
import { CodeNames, type CodeGlobal } from "./globals.ts";
import { commentText, isIdentifier } from "./text.ts";
import { checkOptions } from "../../base/given.ts";

/** How code is generated. */
export interface CodeOptions {
  /** A function on its own, or a method of a class or an object. */
  readonly form?: "function" | "method";
  /** Shapes and dtypes as far as they are known, and where in the traced code each node comes from. */
  readonly verbose?: AnnotationOptions | undefined;
}

/** Generated code, and what it takes to run it. */
export interface GeneratedCode {
  /** One function, `function forward(x) { … }`, whose `this` is the module. */
  readonly source: string;
  /** What the free names of the source stand for. */
  readonly globals: ReadonlyMap<string, CodeGlobal>;
  /** The node that each line computes; the first line is 1. */
  readonly lineMap: ReadonlyMap<number, Node>;
}

/** Code for a graph: `torch.fx.Graph.python_code`. */
export function generateCode(graph: Graph, options: CodeOptions = {}): GeneratedCode {
  checkOptions("generateCode", options, ["form", "verbose"]);
  const { form = "function", verbose } = options;
  if (verbose !== undefined) checkOptions("verbose", verbose, ANNOTATIONS);
  const { codegen } = graph;
  if (!isIdentifier(codegen.functionName)) {
    throw fxError("InvalidOption", "the name of a generated function is an identifier", { help: "forward" });
  }
  const body = new Body(graph, verbose);
  const lines = graph.bodyTransformer?.(body.lines) ?? body.lines;
  const head = codegen.genFnDef({
    keyword: form === "function" ? "function " : "",
    parameters: body.parameters,
    returns: body.returns,
    isExpanded: verbose?.expandedDef ?? false,
    newName: (name) => body.newName(name),
  });
  const lineMap = new Map<number, Node>();
  lines.forEach(({ node }, at) => {
    if (node !== undefined) lineMap.set(head.length + 1 + at, node);
  });
  const text = [...head, ...lines.map((it) => (it.text === "" ? "" : `  ${it.text}`)), "}"];
  return { source: `${text.join("\n")}\n`, globals: body.globals, lineMap };
}

/** The lines of a function, and what its head needs to know of them. */
class Body {
  readonly parameters: Parameter[] = [];
  readonly lines: CodeLine[] = [];
  returns = "";
  #rest: Node | undefined;
  readonly #scope: Scope;
  readonly #annotator: Annotator;
  readonly #released: ReadonlyMap<Node, readonly Node[]>;

  constructor(graph: Graph, verbose: AnnotationOptions | undefined) {
    const names = new CodeNames(graph.codegen.additionalGlobals());
    const locals = localNames(graph, names);
    this.#scope = { names, local: (node) => locals.get(node) ?? names.create(node.name), owner: graph.owningModule };
    this.#annotator = new Annotator(verbose);
    this.#released = lastUses(graph);
    for (const node of graph.nodes) {
      for (const text of this.#annotator.origin(node)) this.lines.push({ text });
      this.#write(node, graph);
    }
    if (graph.outputNode() === undefined) this.lines.push({ text: "return null;" });
  }

  newName(name: string): string {
    return this.#scope.names.create(name);
  }

  get globals(): ReadonlyMap<string, CodeGlobal> {
    return this.#scope.names.globals();
  }

  #write(node: Node, graph: Graph): void {
    const scope = this.#scope;
    switch (node.op) {
      case "placeholder":
        this.#parameter(node);
        return;
      case "output":
        this.returns = this.#annotator.type(node);
        this.#push(node, graph.codegen.generateOutput(node.args[0] ?? null, this.#writer));
        return;
      case "call_function":
        this.#assign(node, writeFunctionCall(node, scope));
        return;
      case "call_method":
        this.#assign(node, writeMethodCall(node, scope));
        return;
      case "call_module":
        this.#assign(node, writeModuleCall(node, scope));
        return;
      case "get_attr":
        this.#assign(node, writeAttribute(node.target, scope));
        return;
    }
  }

  readonly #writer = (arg: Arg): string => writeArg(arg, this.#scope);

  #parameter(node: Node): void {
    const name = this.#scope.local(node);
    const type = this.#annotator.type(node);
    const [initial] = node.args;
    const isOptions = node.target.startsWith("**");
    const isRest = !isOptions && node.target.startsWith("*");
    const empty = isOptions ? "{}" : isRest ? "[]" : undefined;
    const value = initial === undefined ? empty : this.#writer(initial);
    if (this.#rest !== undefined) {
      // As in the interpreter, `*rest` takes all the inputs that there are, and leaves none.
      if (value === undefined) throw behindRest(node, this.#rest);
      this.#push(node, `let ${name}${type} = ${value};`);
    } else if (isRest) {
      this.#rest = node;
      this.parameters.push({ name, declaration: `...${name}${type}` });
    } else {
      this.parameters.push({ name, declaration: `${name}${type}${value === undefined ? "" : ` = ${value}`}` });
    }
  }

  #assign(node: Node, expression: string): void {
    const released = [...(this.#released.get(node) ?? []), ...(node.users.size === 0 ? [node] : [])];
    const freed = released.map((it) => `${this.#scope.local(it)} = `).join("");
    const value = `let ${this.#scope.local(node)}${this.#annotator.type(node)} = ${expression};`;
    this.#push(node, freed === "" ? value : `${value}  ${this.#annotator.dim(`${freed}null;`)}`);
  }

  #push(node: Node, text: string): void {
    this.lines.push({ text, node });
  }
}

/** The variable of each node: its name, where a variable may have it. */
function localNames(graph: Graph, names: CodeNames): Map<Node, string> {
  const res = new Map<Node, string>();
  for (const node of graph.nodes) if (names.reserve(node.name)) res.set(node, node.name);
  for (const node of graph.nodes) if (!res.has(node)) res.set(node, names.create(node.name));
  return res;
}

function behindRest(node: Node, rest: Node) {
  return fxError("GraphInvalid", `the input ${commentText(node.target)} can get no value`, {
    node: node.name,
    help: `give it a default, or move it before %${rest.name}, which takes all inputs that are left`,
  });
}
