/**
 * Symbolic tracing: `torch.fx.Tracer` and `symbolic_trace`.
 *
 * This folder decides how the user's code becomes a graph, and refuses what a trace cannot see (`analysis` reads sources).
 * Dynamic sizes are the exporter's.
 *
 * @module
 */
import { answerMembersOf, checkOverrides, checkOverriding } from "../base/pythonNames.ts";
import { type FxError, fxError } from "../base/errors.ts";
import { splitArguments } from "../base/naming.ts";
import type { Arg, ArgInput } from "../graph/args.ts";
import { checkGraph, Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { type Node, noteLater } from "../graph/node.ts";
import { preservedMeta } from "../graph/traceback.ts";
import type { Opcode } from "../base/opcode.ts";
import { hasBuiltinForward, isBuiltinModule } from "../nn/builtin.ts";
import { type Attribute, checkModule, hasHooks, hooksOf, Module, unboundForwardOf } from "../nn/module.ts";
import { type ModuleCall, type ModuleObserver, observeModules } from "../nn/observe.ts";
import { ValueTuple } from "../base/values.ts";
import { Tensor } from "../tensor/tensor.ts";
import { isProxy, isShapeMember, nodeOf, proxyOf, type TracedValue } from "./proxy.ts";
import { createInputs, type Inputs } from "./inputs.ts";
import { tracedFunction } from "./parameters.ts";
import type { ConcreteArgs } from "./placeholder.ts";
import { type FunctionPlace, Located, locate } from "../base/position.ts";
import { checkSource, type SourceNotes } from "./sourceCheck.ts";
import { treeFlatten } from "./pytree.ts";
import { moduleStack, ROOT_SCOPE, Scope, stacksAround } from "./scope.ts";
import {
  beginUserCode,
  endUserCode,
  type CapturedStack,
  currentStack,
  currentWatcher,
  stackText,
  traceError,
  withStacks,
  withUserCode,
} from "../record/stack.ts";
import { checkedFunction, Level, type Subgraph, type SubgraphCall } from "./subgraph.ts";
import { TracerBase } from "./tracerBase.ts";
import { watchers } from "./opaqueCalls.ts";
import { type VerifyInputs, verifyTrace } from "./verify.ts";
import { checkGiven, checkOptions, checkText } from "../base/given.ts";

/** What can be traced: a module, or a function. */
export type Traceable = Module | ((...args: never[]) => unknown);

/** How {@link Tracer.trace} traces. */
export interface TraceOptions {
  /** Values that are fixed while tracing, by the name of the parameter or in order. */
  readonly concreteArgs?: ConcreteArgs;
  /**
   * The module whose attributes the function uses: what is traced is then a function of the parts of a module, which it
   * reaches by `this` or as it likes. Without it, a function has no module.
   */
  readonly root?: Module;
  /** Python types of parameters by name, and of the result under `return`: types in TypeScript are gone when code runs. */
  readonly annotations?: Readonly<Record<string, string>>;
}

const TRACE_OPTIONS = ["concreteArgs", "root", "annotations"] as const;

/** How a {@link Tracer} is made. */
export interface TracerOptions {
  /** Whether the shapes of parameters are constants, so that control flow may depend on them. */
  readonly paramShapesConstant?: boolean;
}

/** Ends the run of a function whose place is looked for, at the first use of a module. */
const LOCATING: ModuleObserver = {
  callModule() {
    throw new Located();
  },
  getattr() {
    throw new Located();
  },
};

/**
 * Traces modules and functions. Subclasses override what is a leaf, how nodes are made, and so on.
 *
 * @example
 * ```ts
 * class Fine extends Tracer {
 *   override isLeafModule(module: Module, path: string): boolean {
 *     return module instanceof Attention || super.isLeafModule(module, path);
 *   }
 * }
 * const graph = new Fine().trace(model);
 * const gm = new GraphModule(model, graph);
 * ```
 */
export class Tracer extends TracerBase implements ModuleObserver {
  /** The graph that is recorded; a new one for each trace. */
  graph: Graph = new Graph();
  /** The module that is traced; an empty one for a function. */
  root: Module = new Module();
  /** Whether nodes note where in the user's source they were recorded. */
  recordStackTraces = true;
  /**
   * Whether the source of traced functions is checked for what a trace cannot see: `if (x)`, `x === y`. What can be read neither
   * before nor while it runs is told; under `"strict"`, and whatever else would be told, it is refused.
   */
  checkSources: boolean | "strict" = true;
  /** Whether reading a buffer is recorded as reading a parameter is. */
  proxyBufferAttributes = false;
  /** The method of the module that is traced. */
  tracedMethod = "forward";
  /** Whether a trace knows nothing of its values, not even their shapes. */
  get isSymbolic(): boolean {
    return true;
  }
  /** Whether the shapes of parameters are constants. */
  readonly paramShapesConstant: boolean;
  /** The path and class of the module in which each node was recorded. */
  readonly nodeNameToScope: Map<string, { readonly path: string; readonly type: string }> = new Map();

  /** What a trace added to the root: constants, and the graphs of control flow. */
  readonly added: Set<string> = new Set();

  /** Whether a function only runs to find out where it stands. */
  #isLocating = false;
  #level: Level;
  #paths: Map<Module, string> = new Map();
  /** The number with which the next fresh name is tried, by its prefix. */
  readonly #nextNumbers = new Map<string, number>();
  #tensorPaths: Map<Tensor, string> | undefined;
  #parameters = new Map<string, TracedValue>();
  #calls = new Map<string, number>();
  #scope: Scope = ROOT_SCOPE;

  constructor(options: TracerOptions = {}) {
    super();
    checkOverrides(new.target, Tracer);
    refuseAutowrap(options);
    checkOptions("Tracer", options, ["paramShapesConstant"]);
    const { paramShapesConstant = false } = options;
    this.#level = new Level(this.graph, undefined);
    this.paramShapesConstant = paramShapesConstant;
  }

  /** Whether a call of this module becomes one node: the modules of `nn` but the containers do. */
  isLeafModule(module: Module, _path: string): boolean {
    return isBuiltinModule(module);
  }

  /** The path of a module in the root. */
  pathOfModule(module: Module): string {
    const path = this.#paths.get(module);
    if (path !== undefined) return path;
    checkModule("pathOfModule", module);
    throw traceError(
      "TraceUnsupported",
      `a module of class ${module.className} is called and is not a sub-module of the root`,
      {
        help: "assign it to a public field of the module that calls it; private fields (#name) and closures are not seen",
      },
    );
  }

  /**
   * A name that begins so and that the root has nothing under: `prefix0`, or with the number after the last one that was given.
   *
   * @example
   * ```ts
   * tracer.root.registerBuffer(tracer.getFreshQualname("_buffer"), tensor([1]));
   * ```
   */
  getFreshQualname(prefix: string): string {
    checkText("getFreshQualname", "the prefix", prefix);
    const isFree = (name: string): boolean => this.root.findAttribute(name) === undefined && !(name in this.root);
    let count = isFree(`${prefix}0`) ? 0 : (this.#nextNumbers.get(prefix) ?? 0);
    while (!isFree(`${prefix}${count}`)) count++;
    this.#nextNumbers.set(prefix, count === 0 ? 0 : count + 1);
    return `${prefix}${count}`;
  }

  /** Records the call of a module: as one node where it is a leaf, else by running its `forward`. */
  callModule(called: ModuleCall): unknown {
    checkGiven("callModule", typeof called === "object" && called !== null, "an object with module, run and args");
    const { module, run, args: given } = called;
    const path = this.pathOfModule(module);
    const scope = this.#scope;
    const count = this.#calls.get(path) ?? 0;
    this.#calls.set(path, count + 1);
    try {
      const isLeaf = this.isLeafModule(module, path);
      const stack = isLeaf || !this.recordStackTraces ? undefined : currentStack();
      this.#scope = new Scope(path, module, count, scope, stack);
      if (!isLeaf) {
        const hooks = hasHooks(module) ? this.#checkHooks(module, given) : [];
        return this.#checked(unboundForwardOf(module), given, module, () => run(...given), hooks);
      }
      const { args, kwargs } = splitArguments(given, !isBuiltinModule(module));
      return this.createProxy("call_module", path, args, kwargs);
    } finally {
      this.#scope = scope;
    }
  }

  /** What reading an attribute of a module gives while it is traced: a recorded parameter, and buffers as they are. */
  getattr(_module: Module, _name: string, attribute: Attribute & { readonly tensor: Tensor }): unknown {
    const isGiven = typeof attribute === "object" && attribute !== null;
    checkGiven("getattr", isGiven, "an attribute behind the name", "module.getAttribute(name) gives it");
    const { kind, tensor } = attribute;
    const path = this.isRecorded(kind) ? this.#tensors.get(tensor) : undefined;
    if (path === undefined) return tensor;
    let proxy = this.#parameters.get(path);
    if (proxy === undefined) {
      const node = this.#readOutermost(path);
      proxy = this.paramShapesConstant && kind === "parameter" ? proxyOf(node, this, tensor) : this.proxy(node);
      this.#parameters.set(path, proxy);
    }
    return proxy;
  }

  /** Traces a module or a function into a graph. */
  trace(root: Traceable, options: TraceOptions = {}): Graph {
    checkOptions("trace", options, TRACE_OPTIONS);
    checkOverriding(this, Tracer);
    checkTraceable("trace", root);
    this.root = root instanceof Module ? root : (options.root ?? new Module());
    this.#enter(new Level(new Graph(), undefined));
    this.#index();
    const fn = tracedFunction(root, this.tracedMethod);
    const record = (): Graph => {
      const inputs = this.createInputs(root, options);
      const result = inputs.run((...args) => {
        const owner = root instanceof Module || options.root !== undefined ? this.root : undefined;
        const self = root instanceof Module ? root : options.root;
        return this.#checked(fn, args, owner, () => {
          beginUserCode();
          try {
            return fn.apply(self, args);
          } finally {
            endUserCode();
          }
        });
      });
      this.createNode("output", "output", [this.createArg(result)], {}, undefined, options.annotations?.["return"]);
      inputs.finish(this.graph);
      return this.graph;
    };
    const run = (): Graph => withStacks(this.recordStackTraces, () => withActive(this, record), this.stackFrames);
    return observeModules(this, run);
  }

  /**
   * Makes the inputs of the graph, one for each parameter in the source: FX's `create_args_for_root`. Subclasses may add inputs of
   * their own, or call the function with something else.
   *
   * @example
   * ```ts
   * class Noisy extends Tracer {
   *   protected override createInputs(root: Traceable, options: TraceOptions): Inputs {
   *     const inputs = super.createInputs(root, options);
   *     const noise = this.createProxy("placeholder", "noise", [], {});
   *     return { ...inputs, run: (fn) => inputs.run((x) => fn(torch.add(x as Tensor, noise))) };
   *   }
   * }
   * ```
   */
  protected createInputs(root: Traceable, options: TraceOptions): Inputs {
    return createInputs(this, root, this.tracedMethod, options);
  }

  /** Notes what is known of the input of a branch, given the value that it stands for. */
  protected noteInput(_input: Node, _value: unknown): void {}

  /** Traces a function into a graph of its own, in which what it uses of the graphs around are inputs too. */
  traceSubgraph(fn: (...args: unknown[]) => unknown, names: readonly string[], call: SubgraphCall): Subgraph {
    const outer = this.#level;
    const level = new Level(new Graph(), outer);
    this.#enter(level);
    try {
      const inputs = names.map((name) => this.createNode("placeholder", name, [], {}));
      for (const [at, input] of inputs.entries()) this.noteInput(input, call.values?.[at]);
      const args = call.arguments(inputs.map((it) => this.proxy(it)));
      const result = this.#checked(fn, args, undefined, () => {
        beginUserCode();
        try {
          return fn(...args);
        } finally {
          endUserCode();
        }
      });
      const [leaves, outSpec] = treeFlatten(result);
      const output = call.output === "value" ? result : call.output === "list" ? leaves : ValueTuple.frozen(leaves);
      this.createNode("output", "output", [this.createArg(output)], {});
      return { graph: level.graph, inputs, lifted: level.lifted, outSpec };
    } finally {
      this.#enter(outer);
    }
  }

  /** Adds a graph to the root, under a name with the next free number, and gives a node that refers to it. */
  addSubgraph(name: string, graph: Graph): Node {
    checkText("addSubgraph", "the name", name);
    checkGraph("addSubgraph", graph);
    const path = this.#add(name, { kind: "module", module: new GraphModule(this.root, graph, name) });
    return this.createNode("get_attr", path, [], {});
  }

  override createNode(
    op: Opcode,
    target: string,
    args: readonly ArgInput[],
    kwargs: Readonly<Record<string, ArgInput>>,
    name?: string,
    type?: string,
  ): Node {
    if (this.#isLocating) throw new Located();
    const node = super.createNode(op, target, args, kwargs, name, type);
    const stack = this.recordStackTraces && !isBoundary(op) ? currentStack() : undefined;
    const scope = this.#scope;
    const kept = preservedMeta() ?? [];
    noteLater(node, (meta) => {
      this.noteOrigin(meta, scope, stack);
      for (const [key, note] of kept) meta.set(key, note);
    });
    this.nodeNameToScope.set(node.name, scope);
    return node;
  }

  /** Notes where a node was recorded: in which modules, and by which line of the user's. */
  protected noteOrigin(meta: Map<string, unknown>, scope: Scope, stack: CapturedStack | undefined): void {
    if (scope !== ROOT_SCOPE) meta.set("nn_module_stack", moduleStack(scope));
    const text = stack === undefined ? "" : stackText(stacksAround(stack, scope));
    if (text !== "") meta.set("stack_trace", text);
  }

  protected override createTensorArg(tensor: Tensor): Arg {
    let path = this.pathOfTensor(tensor);
    if (path === undefined) {
      path = this.#add("_tensor_constant", { kind: "constant", tensor });
      this.#tensors.set(tensor, path);
    }
    return this.adopt(this.#readOutermost(path));
  }

  override reaches(node: Node): boolean {
    return this.#level.find(node.graph) !== undefined;
  }

  protected override adopt(node: Node): Node {
    if (node.graph === this.graph) return node;
    if (this.reaches(node)) return this.#level.lift(node);
    throw traceError("TraceUnsupported", `${node.name} is a value of another trace, or of a branch that has ended`, {
      help: "return a value from the branch, or from the function that is traced, instead of storing it elsewhere",
    });
  }

  /** The first path of a tensor in the root, if it is there. */
  protected pathOfTensor(tensor: Tensor): string | undefined {
    return this.#tensors.get(tensor);
  }

  /** Runs `body` while the outermost graph is recorded, of those of branches that are being traced. */
  protected inOutermost<T>(body: () => T): T {
    const inner = this.#level;
    let outermost = inner;
    while (outermost.outer !== undefined) outermost = outermost.outer;
    this.#enter(outermost);
    try {
      return body();
    } finally {
      this.#enter(inner);
    }
  }

  protected override createModuleArg(module: Module): Arg {
    return this.createNode("get_attr", this.pathOfModule(module), [], {});
  }

  #enter(level: Level): void {
    this.#level = level;
    this.graph = level.graph;
  }

  /** Reads an attribute of the root. A branch gets it as an operand, as it does in exported programs. */
  #readOutermost(path: string): Node {
    return this.inOutermost(() => this.createNode("get_attr", path, [], {}));
  }

  /** Adds something to the root, under a name with the next free number. */
  #add(name: string, attribute: Attribute): string {
    const path = this.getFreshQualname(name);
    this.root.attributes.set(path, attribute);
    this.added.add(path);
    return path;
  }

  /** Tells of something that may be wrong with the trace, once for each function; by default on the console. */
  protected warn(warning: FxError): void {
    // oxlint-disable-next-line no-console -- the trace goes on, and whoever traces has to look
    console.warn(warning.message);
  }

  /** Whether a value is one of those that a trace runs on. */
  isTracedValue(value: unknown): boolean {
    return isProxy(value);
  }

  /** The name of the node of a traced value; undefined for any other. */
  nameOf(value: unknown): string | undefined {
    return isProxy(value) ? nodeOf(value).name : undefined;
  }

  /** What stands for a slice of a value along its first dimension, where something is known of it. */
  sliceOf(_value: unknown): unknown {
    return undefined;
  }

  /** In the order of their first use. */
  orderFreeValues(used: readonly (readonly Node[])[]): Node[] {
    return [...new Set(used.flat())];
  }

  noteFreeValue(_input: Node, _value: Node): void {}

  /** How many frames of the user's stack are kept of a call; undefined for as few as will do. */
  protected get stackFrames(): number | undefined {
    return undefined;
  }

  /** The members of traced values that are known while tracing; undefined where none are. */
  protected get knownParts(): ReadonlySet<string> | undefined {
    return undefined;
  }

  /** Whether assignments to the module are looked at after the trace, so that they need not be refused. */
  protected get seesAssignments(): boolean {
    return false;
  }

  /** Whether reading an attribute of this kind gives a traced value. */
  protected isRecorded(kind: Attribute["kind"]): boolean {
    return kind === "parameter" || (kind === "buffer" && this.proxyBufferAttributes);
  }

  /** Runs a function of the user's, unless it decides something that the trace could not see. */
  #checked<T>(
    fn: Function,
    args: readonly unknown[],
    module: Module | undefined,
    run: () => T,
    hooks: readonly SourceNotes[] = [],
  ): T {
    // What is written here is not the user's.
    const isOurs = module instanceof GraphModule || (module !== undefined && hasBuiltinForward(module));
    if (isOurs && hooks.length === 0) return run();
    const notes = [...hooks, this.#checkSource(fn, args, module)].filter((it) => it !== undefined);
    // A function that is written in another one is a part of that one too.
    const around = module === undefined ? currentWatcher() : undefined;
    const all = [around, ...notes.map(({ calls }) => calls)].filter((it) => it !== undefined);
    const result = withUserCode(watchers(all), run);
    for (const warning of notes.flatMap((it) => it.warnings())) this.warn(warning);
    return result;
  }

  /** Hooks get the module, its arguments, and what it gives, which is traced if an argument is. */
  #checkHooks(module: Module, given: readonly unknown[]): SourceNotes[] {
    return [...hooksOf(module)].flatMap(
      (hook) => this.#checkSource(hook, [module, given, given.find(isProxy)], undefined, true) ?? [],
    );
  }

  #checkSource(
    ran: Function,
    args: readonly unknown[],
    module: Module | undefined,
    isHook = false,
  ): SourceNotes | undefined {
    const fn = checkedFunction(ran);
    if (fn === undefined || this.checkSources === false || module instanceof GraphModule) return undefined;
    if (module !== undefined && hasBuiltinForward(module)) return undefined;
    return checkSource(fn, args, {
      ...(module === undefined ? {} : { module }),
      isRecorded: (kind) => this.isRecorded(kind),
      isKnown: (part) => this.knownParts?.has(part) ?? (this.paramShapesConstant && isShapeMember(part)),
      isHook,
      isTracedValue: (value): value is TracedValue => this.isTracedValue(value),
      knownParts: this.knownParts,
      seesAssignments: this.seesAssignments,
      isLeaf: (inner) => this.isLeafModule(inner, this.#paths.get(inner) ?? ""),
      isStrict: this.checkSources === "strict",
      locate: () => this.#locate(fn, args, module),
    });
  }

  /** Where a function that is refused stands in its file. */
  #locate(fn: Function, args: readonly unknown[], module: Module | undefined): FunctionPlace | undefined {
    this.#isLocating = true;
    try {
      return observeModules(LOCATING, () => locate(fn, module, args));
    } finally {
      this.#isLocating = false;
    }
  }

  /** Notes where every module of the root is; of several paths the first. */
  #index(): void {
    this.#paths = new Map();
    this.#tensorPaths = undefined;
    this.#parameters.clear();
    this.#calls.clear();
    this.nodeNameToScope.clear();
    this.added.clear();
    for (const [path, module] of this.root.namedModules()) this.#paths.set(module, path);
  }

  /** Where every tensor of the root is; of several paths the first. Many traces never ask. */
  get #tensors(): Map<Tensor, string> {
    if (this.#tensorPaths !== undefined) return this.#tensorPaths;
    const res = new Map<Tensor, string>();
    for (const [module, path] of this.#paths) {
      const add = (name: string, tensor: Tensor): void => {
        if (!res.has(tensor)) res.set(tensor, path === "" ? name : `${path}.${name}`);
      };
      for (const [name, attribute] of module.attributes) if (attribute.kind !== "module") add(name, attribute.tensor);
      for (const [name, value] of Object.entries(module)) if (value instanceof Tensor) add(name, value);
    }
    return (this.#tensorPaths = res);
  }
}

answerMembersOf(Tracer);

/** What PyTorch's tracer replaces in the modules that are imported, which JavaScript does not let anybody do. */
function refuseAutowrap(options: object): void {
  const name = Object.keys(options ?? {}).find((it) => /^autowrap(?:_f|_m|F|M)/.test(it));
  if (name === undefined) return;
  throw fxError("InvalidOption", `Tracer has no option \`${name}\``, {
    help: "call what wrap(fn) gives, which records itself; `math` of this package does so anyway",
  });
}

let active: Tracer | undefined;

/**
 * Whether something is traced now, by `symbolicTrace` or by `exportProgram`: `torch.fx._symbolic_trace.is_fx_tracing`.
 *
 * @example
 * ```ts
 * const scale = isFxTracing() ? 1 : measured(x);
 * ```
 */
export function isFxTracing(): boolean {
  return active !== undefined;
}

/**
 * Whether something is traced now on values of which nothing is known, as `symbolicTrace` does and `exportProgram` does not:
 * `torch.fx._symbolic_trace.is_fx_symbolic_tracing`.
 *
 * @example
 * ```ts
 * if (!isFxSymbolicTracing()) console.log(x.shape);
 * ```
 */
export function isFxSymbolicTracing(): boolean {
  return active?.isSymbolic === true;
}

/** The tracer that traces now. */
export function activeTracer(): Tracer | undefined {
  return active;
}

function withActive<T>(tracer: Tracer, body: () => T): T {
  const outer = active;
  active = tracer;
  try {
    return body();
  } finally {
    active = outer;
  }
}

/** Whether a node stands for what comes in or goes out, which no line of the user's does. */
function isBoundary(op: Opcode): boolean {
  return op === "placeholder" || op === "output";
}

/** How {@link symbolicTrace} traces. */
export interface SymbolicTraceOptions extends TraceOptions {
  /** The tracer to use. */
  readonly tracer?: Tracer;
  /**
   * What happens where a function may decide something about a traced value and nobody could read it: `true` tells, once for each
   * function; `"strict"` refuses; `false` checks no source. By default as the tracer has it, which tells.
   */
  readonly checkSources?: boolean | "strict";
  /**
   * Inputs to run both on, the function and its graph; where they differ, the trace is refused. An array of arrays is
   * several sets of inputs. The module and the random numbers are left as they were.
   */
  readonly verify?: VerifyInputs;
}

function checkTraceable(what: string, root: unknown): void {
  if (typeof root === "function" || root instanceof Module) return;
  throw fxError("InvalidOption", `${what} takes a module or a function`);
}

/**
 * Traces a module or a function and gives a module that runs the graph: `torch.fx.symbolic_trace`.
 *
 * @example
 * ```ts
 * const gm = symbolicTrace(model);
 * console.log(`${gm.graph}`);
 * const fixed = symbolicTrace((x: Tensor, flag: boolean) => (flag ? x.relu() : x), { concreteArgs: { flag: true } });
 * ```
 */
export function symbolicTrace(root: Traceable, options: SymbolicTraceOptions = {}): GraphModule {
  checkOptions("symbolicTrace", options, [...TRACE_OPTIONS, "checkSources", "tracer", "verify"]);
  const { tracer = new Tracer(), verify, checkSources, ...rest } = options;
  checkTraceable("symbolicTrace", root);
  const { checkSources: outer } = tracer;
  tracer.checkSources = checkSources ?? outer;
  try {
    const graph = tracer.trace(root, rest);
    const name = root instanceof Module ? root.className : root.name || "GraphModule";
    const gm = new GraphModule(tracer.root, graph, name);
    if (verify !== undefined) verifyTrace(root, gm, verify);
    return gm;
  } finally {
    // What the trace added is now in the new module; the one that was traced is left as it was.
    for (const name of tracer.added) tracer.root.attributes.delete(name);
    tracer.checkSources = outer;
  }
}
