/**
 * The base class of modules: `torch.nn.Module`.
 *
 * Every instance is behind a JavaScript Proxy. It registers parameters, buffers and sub-modules where they are assigned,
 * as Python's `__setattr__` does, and it is how a trace notices that a module is called or a parameter is read.
 *
 * This folder has what modules hold and compute. How one is traced, run as a graph or saved is decided above.
 *
 * @module
 */
import { showThemselves } from "../base/inspect.ts";
import { CALLABLE_OBJECT, isPlainFunction } from "../base/objects.ts";
import { answeringPythonNames, checkMethod, checkOverrides } from "../base/pythonNames.ts";
import type { DType } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import { isOptions, splitArguments } from "../base/naming.ts";
import { bind as bindCall, parseSignature, type Signature } from "../functions/signature.ts";
import { Tensor } from "../tensor/tensor.ts";
import { beginUserCode, endUserCode, enterHere, leave } from "../record/stack.ts";
import { AttributeMap } from "./attributeMap.ts";
import { builtinNameOf, forwardSignatureOf } from "./builtin.ts";
import { type DTypeArg, dtypeName } from "../base/values.ts";
import { convertModule } from "./convert.ts";
import { formatModule, namedModules, type NamedOptions, namedTensors, type NamedTensorOptions } from "./named.ts";
import { holderOf } from "../graph/attribute.ts";
import { currentObserver } from "./observe.ts";
import { checkOnCpu, Parameter } from "./parameter.ts";
import { type LoadResult, loadState, type LoadStateOptions, stateOf, type StateSource } from "./stateDict.ts";
import { checkFunction, checkGiven, checkNames, checkOptions, checkPath } from "../base/given.ts";

/** Something that a module holds under a name. */
export type Attribute =
  | { readonly kind: "parameter" | "constant"; readonly tensor: Tensor }
  | {
      readonly kind: "buffer";
      readonly tensor: Tensor;
      /** `false` for a buffer that the state dict leaves out. */
      readonly persistent?: boolean;
    }
  | { readonly kind: "module"; readonly module: Module };

/** Removes what was registered. */
export interface Handle extends Disposable {
  remove(): void;
}

/** Sees the arguments before `forward`, and replaces them where it gives an array. */
export type ForwardPreHook = (module: Module, args: readonly unknown[]) => readonly unknown[] | undefined | void;
/** Sees the arguments and the output after `forward`, and replaces the output where it gives another one. */
export type ForwardHook = (module: Module, args: readonly unknown[], output: unknown) => unknown;

/** How {@link Module.registerBuffer} registers. */
export interface BufferOptions {
  /** Whether the state dict has it; by default it does. */
  readonly persistent?: boolean;
}

type Forward = (...args: unknown[]) => unknown;

/** What a module has besides its attributes; behind the Proxy, where subclasses cannot collide with it. */
interface Inside {
  /** The Proxy. */
  readonly self: Module;
  readonly dispatch: Forward;
  preHooks: Set<ForwardPreHook> | undefined;
  hooks: Set<ForwardHook> | undefined;
}

/** Under this key the Proxy of a module gives what is behind it. */
const RAW: unique symbol = Symbol("raw");

let insideOf: (module: Module) => Inside;

function rawOf(module: Module): Module {
  return (module as { readonly [RAW]?: Module })[RAW] ?? module;
}

/** Whether hooks see the calls of this module. */
export function hasHooks(module: Module): boolean {
  const { preHooks, hooks } = insideOf(module);
  return (preHooks?.size ?? 0) + (hooks?.size ?? 0) > 0;
}

/** The hooks of a module, which a trace runs as it runs `forward`. */
export function hooksOf(module: Module): ReadonlySet<ForwardPreHook | ForwardHook> {
  const { preHooks, hooks } = insideOf(module);
  return new Set([...(preHooks ?? []), ...(hooks ?? [])]);
}

/** Adds the hooks of one module to another. */
export function copyHooks(from: Module, to: Module): void {
  const { preHooks, hooks } = insideOf(from);
  for (const hook of preHooks ?? []) to.registerForwardPreHook(hook);
  for (const hook of hooks ?? []) to.registerForwardHook(hook);
}

/** The function `forward` of the class, without hooks and unseen by a trace. */
export function forwardOf(module: Module): Forward {
  return (...args) => callForward(module, args);
}

function callForward(module: Module, args: readonly unknown[]): unknown {
  // Only options need it, so that calls without them cost nothing.
  const signature = isOptions(args.at(-1)) ? forwardSignatureOf(module) : undefined;
  const given =
    signature === undefined ? args : bindCall(parsed(signature), `${module.className}.forward`, splitArguments(args));
  const forward = unboundForwardOf(module);
  beginUserCode();
  try {
    return Reflect.apply(forward, module, given) as unknown;
  } finally {
    endUserCode();
  }
}

/** The function `forward` as the class has it, whose source a trace reads. */
export function unboundForwardOf(module: Module): Forward {
  return Reflect.get(rawOf(module), "forward", module) as Forward;
}

const signatures = new Map<string, Signature>();

/** A parameter list, read once. */
function parsed(text: string): Signature {
  const known = signatures.get(text) ?? parseSignature(text);
  signatures.set(text, known);
  return known;
}

/** A call of the module itself: `net(x)`. */
function called(raw: Module, _: unknown, args: readonly unknown[]): unknown {
  const outer = enterHere(called);
  try {
    return callModule(insideOf(raw).self, args);
  } finally {
    leave(outer);
  }
}

const HANDLER: ProxyHandler<Module> = {
  apply: called,
  get(raw, key, receiver) {
    if (typeof key === "string") {
      const attribute = raw.attributes.get(key);
      if (attribute !== undefined) {
        if (attribute.kind === "module") return attribute.module;
        const observer = currentObserver();
        return observer === undefined ? attribute.tensor : observer.getattr(receiver as Module, key, attribute);
      }
      if (key === "forward") return insideOf(raw).dispatch;
    } else if (key === RAW) {
      return raw;
    }
    return Reflect.get(raw, key, receiver);
  },
  has(raw, key) {
    return (typeof key === "string" && raw.attributes.has(key)) || Reflect.has(raw, key);
  },
  defineProperty(raw, key, descriptor) {
    if (key === "attributes") throw attributesTaken();
    if (typeof key === "string" && "value" in descriptor) {
      if (isPlainFunction(descriptor.value)) checkMethod(key, raw.constructor.name, Module);
      if (register(raw, key, descriptor.value)) return true;
    }
    return Reflect.defineProperty(raw, key, descriptor);
  },
  deleteProperty(raw, key) {
    if (key === "attributes") throw attributesTaken();
    if (typeof key === "string" && raw.attributes.delete(key)) return true;
    return Reflect.deleteProperty(raw, key);
  },
};

/** Everything that a module holds is in its `attributes`, so no field may take their place. */
function attributesTaken() {
  return fxError("GraphArgument", "the attribute `attributes` exists already: it is what every module registers in", {
    help: "give the field another name",
  });
}

/** Takes an assignment for a registration where it is one. */
function register(raw: Module, name: string, value: unknown): boolean {
  if (value instanceof Parameter) return put(raw, name, { kind: "parameter", tensor: value });
  if (value instanceof Module) return put(raw, name, { kind: "module", module: value });
  const existing = raw.attributes.get(name);
  if (existing === undefined) return false;
  if (value === null || value === undefined) {
    raw.attributes.delete(name);
    return false;
  }
  if (existing.kind !== "module" && existing.kind !== "parameter" && value instanceof Tensor) {
    return put(raw, name, { ...existing, tensor: value });
  }
  const wanted = { parameter: "a Parameter", module: "a Module", buffer: "a Tensor", constant: "a Tensor" };
  throw fxError("GraphArgument", `cannot assign this value as the ${existing.kind} \`${name}\``, {
    help: `assign ${wanted[existing.kind]} or null`,
  });
}

function put(raw: Module, name: string, attribute: Attribute): true {
  // A declared field may have made a property of that name already.
  if (Object.hasOwn(raw, name)) Reflect.deleteProperty(raw, name);
  raw.attributes.set(name, attribute);
  return true;
}

/** Refuses what a class without a constructor of its own is made with: nothing would look at it. */
function checkNoArguments(what: string, given: readonly unknown[]): void {
  const [first] = given;
  if (given.length === 1 && isOptions(first)) return checkNames(what, first, []);
  throw fxError("InvalidOption", `${what} takes no arguments, and is given ${given.length}`, {
    help: "write a constructor that takes them, and calls super()",
  });
}

/** What a module is called with: what its `forward` takes, and anything where its class is not known. */
// oxlint-disable-next-line typescript/no-explicit-any -- of modules whose class is not known, only `any` leaves every class one of them
type Given<F extends (...args: never[]) => unknown> = never[] extends Parameters<F> ? any[] : Parameters<F>;

/** What modules are before they have fields: functions, so that they can be called, with nothing of their own. */
// oxlint-disable-next-line typescript/no-extraneous-class -- only a constructor can give a class another object to put its fields on
class Callable {
  constructor() {
    // oxlint-disable-next-line unicorn/consistent-function-scoping -- each module is one of its own
    const res = (): void => undefined;
    for (const name of ["name", "length"]) Reflect.deleteProperty(res, name);
    Reflect.setPrototypeOf(res, new.target.prototype);
    // oxlint-disable-next-line no-constructor-return -- the fields of the class below are made on what is returned
    return res as unknown as this;
  }
}

/**
 * The base class of modules. A subclass assigns its parameters and sub-modules in fields or in its constructor and writes
 * `forward`; calling `forward` runs the hooks too, and is what a trace records.
 *
 * @example
 * ```ts
 * class Net extends Module {
 *   linear = new Linear(4, 3);
 *   forward(x: Tensor): Tensor {
 *     return this.linear.forward(x).relu();
 *   }
 * }
 * const net = new Net();
 * [...net.namedParameters().keys()]; // ["linear.weight", "linear.bias"]
 * ```
 */
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging -- a module is a function, which a class cannot declare
export interface Module {
  (...args: Given<this["forward"]>): ReturnType<this["forward"]>;
}

/** Modules of PyTorch, by their members; what a call does is told above. */
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging -- as above
export class Module extends Callable {
  static {
    insideOf = (module) => rawOf(module).#inside;
  }

  /** It is of what is behind the Proxy, since the Proxy is made after it. */
  readonly #inside: Inside;
  /**
   * The parameter list of `forward` as Python writes it: `(input, hx=None)`. Where a class has one, its modules take a
   * trailing object of options, as Python's take keyword arguments, and `forward` finds every argument in its place;
   * otherwise options are an argument like any other.
   */
  static readonly forwardSignature: string | undefined = undefined;

  /** Says that a module is an object, although it can be called. */
  get [CALLABLE_OBJECT](): true {
    return true;
  }

  /** Parameters, buffers, constants and sub-modules by name, in the order in which they were registered. */
  readonly attributes: Map<string, Attribute> = new AttributeMap();
  /** Whether the module is in training mode; see {@link Module.train}. */
  training = true;

  constructor(...given: readonly []) {
    super();
    checkOverrides(new.target, Module);
    if (given.length > 0) checkNoArguments(builtinNameOf(new.target) ?? new.target.name, given);
    const self = new globalThis.Proxy<Module>(this, HANDLER);
    const dispatch: Forward = (...args) => {
      const outer = enterHere(dispatch);
      try {
        return callModule(self, args);
      } finally {
        leave(outer);
      }
    };
    this.#inside = { self, dispatch, preHooks: undefined, hooks: undefined };
    // Fields of subclasses are defined on what a base constructor returns, so the handler sees them all.
    return self;
  }

  /** Computes the output. Subclasses override it. */
  forward(..._args: never[]): unknown {
    throw fxError("NotImplemented", `Module [${this.className}] is missing the required "forward" function`);
  }

  /** Calls the module with any arguments; `forward` is the same with the types of the subclass. */
  call(...args: readonly unknown[]): unknown {
    const outer = enterHere(Module.prototype.call);
    try {
      return callModule(this, args);
    } finally {
      leave(outer);
    }
  }

  /** Whether a call does something besides giving a value, so that dead-code elimination keeps it: FX's `_is_impure`. */
  get isImpure(): boolean {
    return false;
  }

  /** The name of the class, as printed. */
  get className(): string {
    return builtinNameOf(this.constructor) ?? this.constructor.name;
  }

  /** What stands between the parentheses when the module is printed: `in_features=4, out_features=3`. */
  extraRepr(): string {
    return "";
  }

  /** Registers a parameter; `null` for one that is left out. */
  registerParameter(name: string, parameter: Parameter | null): void {
    checkFree(this, name, "parameter");
    if (parameter === null) Object.assign(this, { [name]: null });
    else if (parameter instanceof Parameter) put(rawOf(this), name, { kind: "parameter", tensor: parameter });
    else
      throw fxError("GraphArgument", `the parameter \`${name}\` is not a Parameter`, { help: "new Parameter(tensor)" });
  }

  /** Registers a buffer: a tensor that belongs to the state and is no parameter; `null` for one that is left out. */
  registerBuffer(name: string, buffer: Tensor | null, options: BufferOptions = {}): void {
    checkOptions("registerBuffer", options, ["persistent"]);
    const { persistent = true } = options;
    checkFree(this, name, "buffer");
    if (buffer !== null && !(buffer instanceof Tensor)) {
      throw fxError("GraphArgument", `the buffer \`${name}\` is not a Tensor`, { help: "give a tensor, or null" });
    }
    if (buffer !== null) checkOnCpu(`the buffer \`${name}\``, buffer);
    if (buffer === null) Object.assign(this, { [name]: null });
    else put(rawOf(this), name, { kind: "buffer", tensor: buffer, ...(persistent ? {} : { persistent }) });
  }

  /** Registers a sub-module: `torch.nn.Module.add_module`. */
  addModule(name: string, module: Module): void {
    checkModule("addModule", module);
    checkFree(this, name, "module");
    put(rawOf(this), name, { kind: "module", module });
  }

  /** Registers a sub-module: `torch.nn.Module.register_module`, the same as {@link Module.addModule}. */
  registerModule(name: string, module: Module): void {
    this.addModule(name, module);
  }

  /** Puts a module at a dotted path, whose last name may be new unless `strict`. */
  setSubmodule(path: string, module: Module, options: { readonly strict?: boolean } = {}): void {
    checkOptions("setSubmodule", options, ["strict"]);
    const { strict = false } = options;
    checkPath("setSubmodule", path);
    checkModule("setSubmodule", module);
    if (path === "") throw fxError("GraphArgument", "Cannot set the submodule without a target name!");
    const dot = path.lastIndexOf(".");
    const [parent, name] = [this.getSubmodule(path.slice(0, Math.max(dot, 0))), path.slice(dot + 1)];
    const existing = parent.attributes.get(name);
    if (strict && existing === undefined) {
      throw fxError("AttributeMissing", `${parent.className} has no attribute \`${name}\``);
    }
    if (existing !== undefined && existing.kind !== "module") {
      throw fxError("AttributeMissing", `\`${name}\` is not an nn.Module`);
    }
    if (existing === undefined) parent.addModule(name, module);
    else parent.attributes.set(name, { kind: "module", module });
  }

  /** The attribute at a dotted path, if there is one. A name that itself has dots is found whole first. */
  findAttribute(path: string): Attribute | undefined {
    checkPath("findAttribute", path);
    const [holder, name] = holderOf(this, path) ?? [];
    return name === undefined ? undefined : holder?.attributes.get(name);
  }

  /** The attribute at a dotted path. */
  getAttribute(path: string): Attribute {
    checkPath("getAttribute", path);
    const found = this.findAttribute(path);
    if (found !== undefined) return found;
    throw fxError("AttributeMissing", `the module has no attribute \`${path}\``, {
      help: "add it to the module before a node refers to it",
    });
  }

  /** The sub-module at a dotted path; the empty path is this module. */
  getSubmodule(path: string): Module {
    checkPath("getSubmodule", path);
    if (path === "") return this;
    const found = this.getAttribute(path);
    if (found.kind === "module") return found.module;
    throw fxError("AttributeMissing", `\`${path}\` is a tensor, not a module`);
  }

  /** The parameter at a dotted path. */
  getParameter(path: string): Tensor {
    checkPath("getParameter", path);
    const found = this.getAttribute(path);
    if (found.kind === "parameter") return found.tensor;
    throw fxError("AttributeMissing", `\`${path}\` is a ${found.kind}, not a parameter`);
  }

  /** The buffer at a dotted path. */
  getBuffer(path: string): Tensor {
    checkPath("getBuffer", path);
    const found = this.getAttribute(path);
    if (found.kind === "buffer") return found.tensor;
    throw fxError("AttributeMissing", `\`${path}\` is a ${found.kind}, not a buffer`);
  }

  /** The parameter, buffer or constant at a dotted path. */
  getTensor(path: string): Tensor {
    checkPath("getTensor", path);
    const found = this.getAttribute(path);
    if (found.kind !== "module") return found.tensor;
    throw fxError("AttributeMissing", `\`${path}\` is a module, not a tensor`);
  }

  /** All modules and their dotted paths, this one first with an empty path, parents before children. */
  namedModules(options: NamedOptions = {}): Map<string, Module> {
    return namedModules(this, options);
  }

  /** The direct sub-modules by name, each once. */
  namedChildren(): Map<string, Module> {
    const res = new Map<string, Module>();
    const seen = new Set<Module>();
    for (const [name, attribute] of this.attributes) {
      if (attribute.kind !== "module" || seen.has(attribute.module)) continue;
      seen.add(attribute.module);
      res.set(name, attribute.module);
    }
    return res;
  }

  /** The parameters by dotted path, each once. */
  namedParameters(options: NamedTensorOptions = {}): Map<string, Tensor> {
    return namedTensors(this, "parameter", options);
  }

  /** The buffers by dotted path, each once. */
  namedBuffers(options: NamedTensorOptions = {}): Map<string, Tensor> {
    return namedTensors(this, "buffer", options);
  }

  /** All modules, this one first, each once. */
  modules(): Module[] {
    return [...this.namedModules().values()];
  }

  /** The direct sub-modules, each once. */
  children(): Module[] {
    return [...this.namedChildren().values()];
  }

  /** The parameters, each once. */
  parameters(): Tensor[] {
    return [...this.namedParameters().values()];
  }

  /** The buffers, each once. */
  buffers(): Tensor[] {
    return [...this.namedBuffers().values()];
  }

  /** Calls `visit` with every sub-module and then with this module, as initialisation does. */
  apply(visit: (module: Module) => void): this {
    checkFunction("apply", "visit", visit);
    for (const child of this.children()) child.apply(visit);
    visit(this);
    return this;
  }

  /** Sets training mode here and in all sub-modules: dropout drops, batch norms use and update statistics. */
  train(mode = true): this {
    checkGiven("train", typeof mode === "boolean", "true or false", "train(false) is eval()");
    this.training = mode;
    for (const child of this.children()) child.train(mode);
    return this;
  }

  /** Sets evaluation mode: `train(false)`. */
  eval(): this {
    return this.train(false);
  }

  /** Notes for all parameters whether gradients are wanted; nothing here computes gradients. */
  requiresGrad_(requiresGrad = true): this {
    for (const parameter of this.parameters()) parameter.requiresGrad = requiresGrad;
    return this;
  }

  /**
   * The parameters and the persistent buffers by dotted path, those of a module before those of its sub-modules. They are
   * the tensors themselves: what is written to them is written to the module.
   */
  stateDict(options: { readonly prefix?: string } = {}): Map<string, Tensor> {
    checkOptions("stateDict", options, ["prefix"]);
    const { prefix = "" } = options;
    return stateOf(this, prefix);
  }

  /**
   * Copies tensors into the parameters and buffers of their names. Nothing is changed where anything does not fit; the
   * error names all that is missing, unexpected or of another size.
   *
   * @example
   * ```ts
   * model.loadStateDict(readSafetensors(bytes).tensors);
   * model.loadStateDict(await loadCheckpoint("resnet18.pth"), { strict: false }).missingKeys;
   * ```
   */
  loadStateDict(state: StateSource, options: LoadStateOptions = {}): LoadResult {
    return loadState(this, state, options);
  }

  /**
   * Mends a state dict of another version before the module takes from it what begins with `prefix`, and says what is
   * wrong with it.
   */
  prepareState(_state: Map<string, unknown>, _prefix: string): readonly string[] {
    return [];
  }

  /** Converts the parameters and buffers of floats, here and in all sub-modules. */
  to(dtype: DType | DTypeArg): this {
    convertModule(this, dtypeName(dtype));
    return this;
  }

  /** `to("float32")`. */
  float(): this {
    return this.to("float32");
  }

  /** `to("float64")`. */
  double(): this {
    return this.to("float64");
  }

  /** `to("float16")`. */
  half(): this {
    return this.to("float16");
  }

  /** `to("bfloat16")`. */
  bfloat16(): this {
    return this.to("bfloat16");
  }

  /** Calls `hook` before each `forward`. */
  registerForwardPreHook(hook: ForwardPreHook): Handle {
    checkFunction("registerForwardPreHook", "the hook", hook);
    const inside = insideOf(this);
    inside.preHooks ??= new Set();
    return handleOf(inside.preHooks, hook);
  }

  /** Calls `hook` after each `forward`. */
  registerForwardHook(hook: ForwardHook): Handle {
    checkFunction("registerForwardHook", "the hook", hook);
    const inside = insideOf(this);
    inside.hooks ??= new Set();
    return handleOf(inside.hooks, hook);
  }

  /** PyTorch's `repr(module)`: the tree of modules. */
  repr(): string {
    return formatModule(this);
  }

  /** PyTorch's `str(module)`. */
  override toString(): string {
    return this.repr();
  }

  /** What Node prints for the module. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

Object.setPrototypeOf(
  Module.prototype,
  answeringPythonNames((module) => (module as Module).className, {
    advice: {
      cuda: 'there is one device, the CPU; a program runs on a GPU by program.module({ device: "gpu" })',
      to_folder: 'import { toFolder } from "tracefx/node"',
    },
  }),
);
showThemselves(Module);

/** Calls a module from code of this package: what is recorded was called where that code was. */
export function callFromInside(module: Module, ...args: readonly unknown[]): unknown {
  return callModule(module, args);
}

function callModule(module: Module, args: readonly unknown[]): unknown {
  const observer = currentObserver();
  if (observer === undefined) return runWithHooks(module, args);
  return observer.callModule({ module, run: (...given) => runWithHooks(module, given), args });
}

function runWithHooks(module: Module, args: readonly unknown[]): unknown {
  const { preHooks, hooks } = insideOf(module);
  let inputs = args;
  for (const hook of preHooks ?? []) inputs = hook(module, inputs) ?? inputs;
  let output = callForward(module, inputs);
  for (const hook of hooks ?? []) output = hook(module, inputs, output) ?? output;
  return output;
}

function handleOf<T>(hooks: Set<T>, hook: T): Handle {
  hooks.add(hook);
  const remove = (): void => void hooks.delete(hook);
  return { remove, [Symbol.dispose]: remove };
}

/** Refuses what is no module. */
export function checkModule(what: string, module: unknown): void {
  checkGiven(what, module instanceof Module, "a Module", "an instance of a class that extends nn.Module");
}

function checkFree(module: Module, name: string, what: string): void {
  if (typeof name !== "string") throw fxError("GraphArgument", `the name of a ${what} is a string`);
  if (name === "") throw fxError("GraphArgument", `the name of a ${what} cannot be the empty string`);
  if (name.includes(".")) throw fxError("GraphArgument", `the name of a ${what} cannot contain ".": ${name}`);
  const existing = rawOf(module).attributes.get(name)?.kind;
  if (existing === what) return;
  if (existing !== undefined || (name in module && (Reflect.get(module, name) ?? undefined) !== undefined)) {
    throw fxError("GraphArgument", `the attribute \`${name}\` exists already`, { help: "choose another name" });
  }
}
