/**
 * Transformers: interpreters whose values are traced, so that running a graph records another one,
 * `torch.fx.Transformer`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { answerMembersOf } from "../base/pythonNames.ts";
import { checkArguments, checkList, checkPath, checkText } from "../base/given.ts";
import type { CallArguments } from "../base/naming.ts";
import type { Arg } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { preserveNodeMeta } from "../graph/traceback.ts";
import type { Attribute, Module } from "../nn/module.ts";
import { observeModules } from "../nn/observe.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { TracerBase } from "./tracerBase.ts";
import { Interpreter } from "../fx/interpreter.ts";

/** Records into a new graph, with tensors and modules by their paths in a module. */
class TransformerTracer extends TracerBase {
  readonly graph = new Graph();
  /** Tensors that are none of the module's, by the path that they get in the new one. */
  readonly constants = new Map<string, Attribute>();
  readonly #root: Module;
  #tensorPaths: Map<Tensor, string> | undefined;

  constructor(root: Module) {
    super();
    this.#root = root;
  }

  protected override createTensorArg(tensor: Tensor): Arg {
    this.#tensorPaths ??= pathsOfTensors(this.#root);
    let path = this.#tensorPaths.get(tensor);
    if (path === undefined) {
      path = this.#freePath();
      this.#tensorPaths.set(tensor, path);
      this.constants.set(path, { kind: "constant", tensor });
    }
    return this.createNode("get_attr", path, [], {});
  }

  protected override createModuleArg(module: Module): Arg {
    for (const [path, it] of this.#root.namedModules()) {
      if (it === module && path !== "") return this.createNode("get_attr", path, [], {});
    }
    return super.createModuleArg(module);
  }

  #freePath(): string {
    for (let count = 0; ; count++) {
      const path = `_tensor_constant${count}`;
      if (!this.constants.has(path) && this.#root.findAttribute(path) === undefined) return path;
    }
  }
}

/** The first path of each tensor of a module. */
function pathsOfTensors(root: Module): Map<Tensor, string> {
  const res = new Map<Tensor, string>();
  for (const [path, module] of root.namedModules()) {
    for (const [name, attribute] of module.attributes) {
      if (attribute.kind === "module" || res.has(attribute.tensor)) continue;
      res.set(attribute.tensor, path === "" ? name : `${path}.${name}`);
    }
  }
  return res;
}

/**
 * Makes a new module by running a graph on traced values. What a subclass calls in place of a node is recorded in its
 * place; what is not overridden is recorded as it was. Names are given anew, as in FX; notes about where a node comes from
 * are kept, and so are inputs that nothing uses.
 *
 * @example
 * ```ts
 * class NegSigmSwap extends Transformer {
 *   override callFunction(target: string, args: readonly unknown[], kwargs: Record<string, unknown>): unknown {
 *     return super.callFunction(target === "torch.sigmoid" ? "torch.neg" : target, args, kwargs);
 *   }
 *   override callMethod(target: string, args: readonly unknown[], kwargs: Record<string, unknown>): unknown {
 *     return super.callMethod(target === "neg" ? "sigmoid" : target, args, kwargs);
 *   }
 * }
 * const transformed = new NegSigmSwap(symbolicTrace((x: Tensor) => torch.sigmoid(x).neg())).transform();
 * ```
 */
export class Transformer extends Interpreter {
  /** What records the new graph. */
  readonly tracer: TracerBase;
  readonly #tracer: TransformerTracer;

  constructor(module: GraphModule) {
    super(module);
    this.#tracer = new TransformerTracer(module);
    this.#tracer.graph.setCodegen(module.graph.codegen);
    this.tracer = this.#tracer;
  }

  /** The graph that is recorded. */
  get newGraph(): Graph {
    return this.#tracer.graph;
  }

  /** Runs the graph on traced values, and gives a module with what was recorded and the attributes that it uses. */
  transform(): GraphModule {
    if (this.newGraph.nodes.length > 0) {
      throw fxError("GraphArgument", "the transformer has transformed its module already", {
        help: "make another one of the module",
      });
    }
    // A trace that is going on must not see the modules that this run reads.
    const result = observeModules(undefined, () =>
      preserveNodeMeta(() => this.runWith([], { enableIoProcessing: false })),
    );
    const output = this.graph.outputNode();
    if (output !== undefined) {
      const node = this.newGraph.output(this.#tracer.createArg(result));
      for (const [key, value] of output.meta) node.meta.set(key, value);
    }
    return this.#moduleOf(this.newGraph);
  }

  /** Records an input. */
  override placeholder(target: string, args: readonly unknown[], _kwargs: CallArguments["kwargs"]): unknown {
    checkText("placeholder", "the input", target, "its name: node.target");
    checkList("placeholder", "args", args);
    const [initial] = args;
    const value = initial === undefined ? undefined : this.#tracer.createArg(initial);
    return this.tracer.proxy(this.newGraph.placeholder(target, undefined, value));
  }

  /** Records the reading of an attribute. */
  override getAttr(target: string, args: readonly unknown[], kwargs: CallArguments["kwargs"]): unknown {
    checkPath("getAttr", target);
    checkArguments("getAttr", args, kwargs);
    return this.tracer.createProxy("get_attr", target, args, kwargs);
  }

  /** Records a call of a function, also where none of its arguments is traced. */
  override callFunction(target: string, args: readonly unknown[], kwargs: CallArguments["kwargs"]): unknown {
    checkArguments("callFunction", args, kwargs);
    return this.tracer.createProxy("call_function", target, args, kwargs);
  }

  /** Records a call of a module; to look into it, run it on the arguments instead. */
  override callModule(target: string, args: readonly unknown[], kwargs: CallArguments["kwargs"]): unknown {
    checkPath("callModule", target);
    checkArguments("callModule", args, kwargs);
    this.fetchAttr(target);
    return this.tracer.createProxy("call_module", target, args, kwargs);
  }

  #moduleOf(graph: Graph): GraphModule {
    const { attributes } = this.module;
    const { constants } = this.#tracer;
    // A new module takes its attributes from the old one, which is lent the constants for that long.
    for (const [path, constant] of constants) attributes.set(path, constant);
    try {
      return new GraphModule(this.module, graph);
    } finally {
      for (const path of constants.keys()) attributes.delete(path);
    }
  }
}

answerMembersOf(Transformer);
