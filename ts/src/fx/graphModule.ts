/**
 * A graph and what its nodes refer to: `torch.fx.GraphModule`.
 *
 * This folder runs graph modules, node by node. How one comes to be is decided above: by a trace, a file or a pass.
 *
 * @module
 */
import { checkGiven, checkPath } from "../base/given.ts";
import { fxError } from "../base/errors.ts";
import { answerMembersOf } from "../base/pythonNames.ts";
import { holderOf, propertyHolder } from "../graph/attribute.ts";
import { Interpreter } from "./interpreter.ts";
import { BEGIN_COPY, deepCopy } from "../nn/deepCopy.ts";
import { type Attribute, checkModule, Module } from "../nn/module.ts";
import { Parameter } from "../nn/parameter.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { AnnotationOptions } from "../graph/codegen/annotations.ts";
import type { GeneratedCode } from "../graph/codegen/generate.ts";
import { Graph } from "../graph/graph.ts";
import { GraphHooks } from "../graph/hooks.ts";
import { placeKeywords } from "../graph/keywords.ts";
import { Namespace } from "../graph/namespace.ts";
import { formatReadable } from "../graph/readable.ts";

/** What the nodes of a graph refer to: a module to take it from, or modules and tensors by dotted path. */
export type Root = Module | { readonly [path: string]: Module | Tensor };

/**
 * A graph and the attributes that its `get_attr` and `call_module` nodes refer to. It is a module itself: calling its
 * `forward` runs the graph.
 *
 * Of a root module it takes, by reference, what the graph refers to, and nothing else. Of an object of modules and tensors
 * it takes what is named there; without an entry for a node it refuses.
 *
 * @example
 * ```ts
 * const graph = new Graph();
 * const x = graph.placeholder("x");
 * graph.output(graph.callFunction("torch.add", [x, graph.getAttr("weight")]));
 * const gm = new GraphModule({ weight: new Parameter(tensor([1, 2])) }, graph);
 * gm.forward(tensor([1, 1])); // tensor([2, 3])
 * ```
 */
export class GraphModule extends Module {
  /** Made when somebody asks for it: a module that only holds others has no need of one. */
  #graph: Graph | undefined;
  /** Free-form notes about the module. */
  readonly meta: Map<string, unknown> = new Map();
  #className: string;

  /** What is told about edits of whichever graph the module owns. */
  readonly graphHooks: GraphHooks = new GraphHooks();

  constructor(root: Root = {}, graph?: Graph, className = "GraphModule") {
    super();
    this.#graph = graph;
    this.#className = className;
    if (root instanceof Module) {
      this.training = root.training;
      if (root instanceof GraphModule) for (const [key, value] of root.meta) this.meta.set(key, value);
    }
    if (graph === undefined) return;
    checkGiven("GraphModule", graph instanceof Graph, "a Graph");
    const paths = new Set<string>();
    for (const { op, target } of graph.nodes) if (op === "get_attr" || op === "call_module") paths.add(target);
    const [sources, holders] = [new Map<string, Module | undefined>(), new Map<string, Module>()];
    if (root instanceof Module) {
      // In the order of the nodes, as torch.fx has it: a module takes the place of one that was made for what is in it.
      const find = (path: string): Attribute | undefined => attributeAt(root, path, sources);
      for (const path of paths) this.#adopt(root, path, find, holders);
    } else {
      // Shallow paths first, so that a module is there before something is put into it.
      const byDepth: string[][] = [];
      for (const path of paths) (byDepth[depthOf(path)] ??= []).push(path);
      for (const same of byDepth) for (const path of same ?? []) this.#adopt(root, path, undefined, holders);
    }
    graph.owningModule = this;
  }

  /** The graph. A graph that is assigned is owned by this module from then on. */
  get graph(): Graph {
    return this.#graph ?? this.#own(new Graph());
  }

  set graph(graph: Graph) {
    this.#own(graph);
  }

  /** A module around this graph, whose attributes are put into it afterwards. */
  static ofGraph(graph: Graph, className?: string): GraphModule {
    const res = new GraphModule({}, undefined, className);
    res.graph = graph;
    return res;
  }

  /** The class name, as printed. */
  override get className(): string {
    return this.#className;
  }

  override set className(name: string) {
    this.#className = name;
  }

  /**
   * A module of its own with copies of the graph, of all that it refers to and of what its `meta` holds; see
   * {@link deepCopy}. As after `copy.deepcopy` of torch.fx, the `meta` of the nodes hold the same values as before, and the
   * names of nodes that are gone are free again.
   *
   * @example
   * ```ts
   * const edited = gm.clone();
   * edited.graph.eliminateDeadCode();
   * ```
   */
  clone(): this {
    return deepCopy(this);
  }

  /** For {@link deepCopy}. */
  [BEGIN_COPY](): GraphModule {
    const graph = this.graph.clone();
    graph.setNames(Namespace.of(Array.from(graph.nodes, (it) => it.name)));
    const res = Reflect.construct(GraphModule, [{}, new Graph(), this.#className], this.constructor) as GraphModule;
    res.graph = graph;
    res.graphHooks.addAll(this.graphHooks);
    return res;
  }

  /**
   * The generated code of the graph. There is nothing that could be stale: a module always runs its graph as it is, so
   * edits need no call of this, unlike in FX.
   */
  recompile(): GeneratedCode {
    return this.graph.generateCode();
  }

  /** The graph as readable JavaScript. It is there to read; running it is an import of its own. */
  get code(): string {
    return this.graph.generateCode().source;
  }

  /**
   * Prints the code of this module and of the graphs inside it, with what is known of each value, and gives it back.
   *
   * @example
   * ```ts
   * gm.printReadable({ includeStride: true, colored: true });
   * ```
   */
  printReadable(options?: AnnotationOptions): string {
    const text = formatReadable(this, options);
    // oxlint-disable-next-line no-console -- printing is what it is for
    console.log(text);
    return text;
  }

  /** The tree of modules and the code: PyTorch's `str(graph_module)`. */
  override toString(): string {
    return `${super.toString()}\n\n${this.code}\n// To see more debug info, please use \`graphModule.printReadable()\``;
  }

  /**
   * Runs the graph on these inputs. Inputs may be given by name, in an object at the end: `gm.forward(x, { scale: 2 })`.
   */
  override forward(...args: readonly unknown[]): unknown {
    return new Interpreter(this).runWith(placeKeywords(this.graph, args));
  }

  /**
   * Puts a module at a dotted path, with empty modules above it where there are none. Returns `false`, as FX does, where
   * something on the way is a tensor.
   */
  addSubmodule(path: string, module: Module): boolean {
    checkPath("addSubmodule", path);
    checkModule("addSubmodule", module);
    const names = path.split(".");
    const last = names.pop() as string;
    let { attributes } = this;
    for (const name of names) {
      const existing = attributes.get(name) ?? { kind: "module", module: new GraphModule() };
      if (existing.kind !== "module") return false;
      attributes.set(name, existing);
      ({ attributes } = existing.module);
    }
    attributes.set(last, { kind: "module", module });
    return true;
  }

  /** Removes the module at a dotted path; `false` where there is none. Nodes that refer to it are the caller's to mend. */
  deleteSubmodule(path: string): boolean {
    checkPath("deleteSubmodule", path);
    const [holder, name] = holderOf(this, path) ?? [];
    if (holder === undefined || name === undefined || holder.attributes.get(name)?.kind !== "module") return false;
    return holder.attributes.delete(name);
  }

  /**
   * Removes the modules that no node of the graph refers to. Modules above a used one stay, modules inside a called one
   * too, and tensors are left alone.
   */
  deleteAllUnusedSubmodules(): void {
    const used = new Set<string>();
    const called = new Set<string>();
    for (const { op, target } of this.graph.nodes) {
      if (op !== "call_module" && op !== "get_attr") continue;
      for (const path of withParents(target)) used.add(path);
      if (op === "call_module") called.add(target);
    }
    for (const [holderPath, holder] of this.graphModules()) {
      for (const [name, { kind }] of holder.attributes) {
        const path = holderPath === "" ? name : `${holderPath}.${name}`;
        const isUsed = used.has(path) || withParents(path).some((it) => called.has(it));
        if (kind === "module" && !isUsed) holder.attributes.delete(name);
      }
    }
  }

  /** The modules with graphs and their dotted paths, this one first with an empty path, parents before children. */
  graphModules(): [path: string, module: GraphModule][] {
    const res: [string, GraphModule][] = [["", this]];
    for (const [path, module] of res) {
      for (const [name, attribute] of module.attributes) {
        if (attribute.kind !== "module" || !(attribute.module instanceof GraphModule)) continue;
        res.push([path === "" ? name : `${path}.${name}`, attribute.module]);
      }
    }
    return res;
  }

  #own(graph: Graph): Graph {
    this.#graph = graph;
    graph.owningModule = this;
    return graph;
  }

  #adopt(
    root: Root,
    path: string,
    find: ((path: string) => Attribute | undefined) | undefined,
    holders: Map<string, Module>,
  ): void {
    const attribute = root instanceof Module ? (find?.(path) ?? plainTensor(root, path)) : given(root, path);
    const at = path.lastIndexOf(".");
    const name = path.slice(at + 1);
    const property = attribute === undefined && root instanceof Module ? propertyHolder(root, path) : undefined;
    if (attribute === undefined && property === undefined) {
      throw fxError("AttributeMissing", `a node refers to \`${path}\`, and the root has nothing of that name`, {
        help: root instanceof Module ? "add it to the root module" : "add an entry of that name to the object",
      });
    }
    const holder = at < 0 ? this : this.#holder(path.slice(0, at), holders);
    if (attribute !== undefined) {
      const before = holder.attributes.get(name);
      if (before === undefined || (before.kind === "module" && attribute.kind === "module")) {
        holder.attributes.set(name, attribute);
        // What was put into the one that stood there before is in this one.
        if (before !== undefined) forgetBelow(holders, path);
      }
    } else if (property !== undefined) {
      if (name in holder) {
        throw fxError("GraphArgument", `the property \`${path}\` of the root is called as a member of GraphModule is`, {
          help: "give the property of the root another name",
        });
      }
      Reflect.set(holder, name, Reflect.get(property, name));
    }
  }

  /** The module at a dotted path, where something is put: a new one, where there is none. */
  #holder(path: string, holders: Map<string, Module>): Module {
    let holder = holders.get(path);
    if (holder === undefined) {
      if (this.findAttribute(path) === undefined) this.addSubmodule(path, new GraphModule());
      holder = this.getSubmodule(path);
      holders.set(path, holder);
    }
    return holder;
  }
}

answerMembersOf(GraphModule);

/** The attribute at a dotted path, as `findAttribute` finds it; the modules on the way are looked for once. */
function attributeAt(root: Module, path: string, modules: Map<string, Module | undefined>): Attribute | undefined {
  const at = path.lastIndexOf(".");
  if (at < 0 || root.attributes.has(path)) return root.findAttribute(path);
  const parent = path.slice(0, at);
  if (!modules.has(parent)) {
    const found = root.findAttribute(parent);
    modules.set(parent, found?.kind === "module" ? found.module : undefined);
  }
  return modules.get(parent)?.attributes.get(path.slice(at + 1)) ?? root.findAttribute(path);
}

/** Forgets the modules at a path and below it. */
function forgetBelow(holders: Map<string, Module>, path: string): void {
  for (const it of holders.keys()) if (it === path || it.startsWith(`${path}.`)) holders.delete(it);
}

function depthOf(path: string): number {
  let depth = 0;
  for (let at = path.indexOf("."); at >= 0; at = path.indexOf(".", at + 1)) depth++;
  return depth;
}

function given(root: { readonly [path: string]: Module | Tensor }, path: string): Attribute | undefined {
  const value = Object.hasOwn(root, path) ? root[path] : undefined;
  return value === undefined ? undefined : attributeOf(value);
}

/** A tensor that a module holds without having registered it. */
function plainTensor(root: Module, path: string): Attribute | undefined {
  const at = path.lastIndexOf(".");
  const holder = at < 0 ? root : root.findAttribute(path.slice(0, at));
  const module = holder instanceof Module ? holder : holder?.kind === "module" ? holder.module : undefined;
  const value: unknown = module === undefined ? undefined : Reflect.get(module, path.slice(at + 1));
  return value instanceof Tensor ? { kind: "buffer", tensor: value } : undefined;
}

function attributeOf(value: Module | Tensor): Attribute {
  if (value instanceof Module) return { kind: "module", module: value };
  return { kind: value instanceof Parameter ? "parameter" : "buffer", tensor: value };
}

/** `a.b.c` with the paths above it: `a`, `a.b`, `a.b.c`. */
function withParents(path: string): string[] {
  const parts = path.split(".");
  return parts.map((_, at) => parts.slice(0, at + 1).join("."));
}
