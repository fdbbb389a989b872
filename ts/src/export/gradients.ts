/**
 * Gradients of functions: `torch.func.grad`, `vjp`, `jvp` and what is made of them.
 *
 * A function is traced, the engine makes the joint graph of it and its gradients, and that is run: on tensors, or in a trace
 * around, which records it.
 *
 * @module
 */
import { type DType, DTYPES } from "../../../bindings/dtypes.ts";
import { FxError, fxError } from "../base/errors.ts";
import { checkFunction, checkGiven, checkList, checkOptions } from "../base/given.ts";
import { callOperator, inferOperator } from "../engine/dispatch.ts";
import { isNode, tuple } from "../graph/args.ts";
import type { Node } from "../graph/node.ts";
import { TensorMeta } from "../graph/val.ts";
import { Tensor } from "../tensor/tensor.ts";
import { PARTS } from "../torch/info.ts";
import { type PytreeSpec, treeFlatten, treeUnflatten } from "../trace/pytree.ts";
import { checkInsteadOf, ofPackage } from "../trace/subgraph.ts";
import { type ClosedFunction, closed, compositeOperators, inputsOf, metaOf } from "./closedFunction.ts";
import { isDynamic } from "./knownParts.ts";
import { evaluate } from "./evaluateNodes.ts";
import { refuseInputWrites } from "./inputWrites.ts";
import type { ExportedProgram } from "./exportedProgram.ts";
import { typeName } from "./moduleInputs.ts";
import { programOfValues } from "./singleCall.ts";

type AnyFunction = (...args: never[]) => unknown;

/** Which arguments {@link grad} is about. */
export interface GradOptions {
  /** The places of the arguments, the first by default. With an array, the gradients are an array. */
  readonly argnums?: number | readonly number[];
  /** Whether the function gives an array of its output and of something else, which is given back. */
  readonly hasAux?: boolean;
}

/** The gradient of what nothing depends on. */
class Unreached {
  readonly input: Node;

  constructor(input: Node) {
    this.input = input;
  }
}

/** What of a function was differentiated. */
interface Joint {
  readonly program: ExportedProgram;
  /** What is known of it: inputs that are arguments or surroundings. */
  readonly known: Map<Node, unknown>;
  /** The inputs for what gradients of results are multiplied with. */
  readonly cotangents: readonly Node[];
  readonly results: readonly unknown[];
  /** The gradient of each wanted leaf. */
  readonly gradients: readonly (Node | Unreached)[];
  readonly outSpec: PytreeSpec;
}

/**
 * The gradient of a function that gives one number: `torch.func.grad`. It may be taken again, inside of other transforms, and within
 * `makeFx`.
 *
 * @example
 * ```ts
 * func.grad((x: Tensor) => x.sin().sum())(x); // x.cos()
 * func.grad(func.grad((x: Tensor) => x.mul(x).mul(x)))(tensor(2.5));
 * ```
 */
export function grad<A extends readonly unknown[]>(
  f: (...args: A) => unknown,
  options: GradOptions = {},
): (...args: A) => unknown {
  checkFunction("grad", "f", f);
  const both = gradAndValue(f, options);
  return ofPackage((...args: A) => {
    const [gradients, value] = both(...args);
    return options.hasAux === true ? [gradients, (value as readonly unknown[])[1]] : gradients;
  });
}

/**
 * The gradient of a function that gives one number, and that number: `torch.func.grad_and_value`.
 *
 * @example
 * ```ts
 * const [gradient, loss] = func.gradAndValue((w: Tensor) => F.mseLoss(x.matmul(w), y))(w);
 * ```
 */
export function gradAndValue<A extends readonly unknown[]>(
  f: (...args: A) => unknown,
  options: GradOptions = {},
): (...args: A) => [gradients: unknown, value: unknown] {
  checkFunction("gradAndValue", "f", f);
  checkOptions("gradAndValue", options, ["argnums", "hasAux"]);
  const { argnums = 0, hasAux = false } = options;
  return ofPackage((...args: A): [unknown, unknown] => {
    const places = placesOf(argnums, args.length);
    const call = flatCall(args, places);
    const run = (...given: unknown[]): unknown => {
      const result = untyped(f)(...given);
      return [checkedScalar(hasAux ? outputOf(result) : result), hasAux ? (result as readonly unknown[])[1] : null];
    };
    checkInsteadOf(run, f);
    const joint = differentiated(run, call, false);
    const values = valuesOf(joint, joint.known, [...joint.results, ...joint.gradients]);
    const [value, aux] = treeUnflatten(values.slice(0, joint.results.length), joint.outSpec) as [unknown, unknown];
    const gradients = call.gradients(values.slice(joint.results.length));
    const asked = typeof argnums === "number" ? gradients[0] : gradients;
    return [asked, hasAux ? [value, aux] : value];
  });
}

/** How {@link vjp} takes the function. */
export interface VjpOptions {
  /** Whether the function gives an array of its output and of something else, which is given back. */
  readonly hasAux?: boolean;
}

/**
 * What a function gives, and a function that takes gradients of that to gradients of the arguments: `torch.func.vjp`. It gives an array
 * with one item for each argument.
 *
 * @example
 * ```ts
 * const [y, pullBack] = func.vjp((x: Tensor) => x.sin(), [x]);
 * const [gradient] = pullBack(torch.onesLike(y));
 * ```
 */
export function vjp(
  f: AnyFunction,
  primals: readonly unknown[],
  options: VjpOptions = {},
): [output: unknown, pullBack: (cotangents: unknown) => unknown[], aux?: unknown] {
  checkFunction("vjp", "f", f);
  checkGiven("vjp", Array.isArray(primals), "an array of arguments behind the function");
  checkOptions("vjp", options, ["hasAux"]);
  return pulledBack(f, primals, [...primals.keys()], options.hasAux);
}

/** What {@link vjp} gives, with gradients of the arguments at these places alone. */
function pulledBack(
  f: AnyFunction,
  args: readonly unknown[],
  places: readonly number[],
  hasAux = false,
): [output: unknown, pullBack: (cotangents: unknown) => unknown[], aux?: unknown] {
  const call = flatCall(args, places);
  let auxSpec: PytreeSpec | undefined;
  let nOutputs = 0;
  const run = (...given: unknown[]): unknown => {
    const result = untyped(f)(...given);
    if (!hasAux) return result;
    const [output, aux] = [outputOf(result), (result as readonly unknown[])[1]];
    auxSpec = treeFlatten(aux)[1];
    nOutputs = treeFlatten(output)[0].length;
    return [output, aux];
  };
  checkInsteadOf(run, f);
  const joint = differentiated(run, call, true, () => (hasAux ? nOutputs : undefined));
  const results = valuesOf(joint, joint.known, joint.results);
  const whole = treeUnflatten(results, joint.outSpec);
  const output = hasAux ? (whole as readonly unknown[])[0] : whole;
  const [leaves, outSpec] = treeFlatten(output);
  const pullBack = ofPackage((cotangents: unknown): unknown[] => {
    const [given, spec] = treeFlatten(cotangents);
    if (!sameStructure(spec, outSpec)) {
      throw fxError(
        "InputStructure",
        `Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. cotangents: ${spec}, primal output: ${outSpec}`,
      );
    }
    for (const [at, it] of given.entries()) checkCotangent(at, it, leaves[at]);
    const known = new Map(joint.known);
    for (const [at, node] of joint.cotangents.entries()) known.set(node, callOperator("aten.contiguous", [given[at]]));
    return call.gradients(valuesOf(joint, known, joint.gradients));
  });
  return auxSpec === undefined ? [output, pullBack] : [output, pullBack, (whole as readonly unknown[])[1]];
}

/**
 * What a function gives, and how that changes where its arguments change by `tangents`: `torch.func.jvp`. It is the gradient of
 * {@link vjp} in what that takes, so that it needs second derivatives where PyTorch goes forward once.
 *
 * @example
 * ```ts
 * const [y, change] = func.jvp((x: Tensor) => x.sin(), [x], [torch.onesLike(x)]);
 * ```
 */
export function jvp(
  f: AnyFunction,
  primals: readonly unknown[],
  tangents: readonly unknown[],
): [output: unknown, tangents: unknown] {
  checkFunction("jvp", "f", f);
  const tupled = "E.g. it should be valid to call f(*primals).";
  if (!Array.isArray(primals)) {
    throw fxError("InputStructure", `jvp(f, primals, tangents): Expected primals to be a tuple. ${tupled}`);
  }
  const [given, spec] = treeFlatten(primals);
  const [changes, changeSpec] = treeFlatten(tangents);
  if (!sameStructure(spec, changeSpec)) {
    throw fxError(
      "InputStructure",
      `jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure ${spec} and tangents with structure ${changeSpec}`,
    );
  }
  for (const [at, it] of changes.entries()) checkTangent(it, given[at]);
  return pushed(f, primals, [...primals.keys()], tangents);
}

/** What {@link jvp} gives, where the arguments at these places change. */
function pushed(
  f: AnyFunction,
  args: readonly unknown[],
  places: readonly number[],
  tangents: readonly unknown[],
): [output: unknown, tangents: unknown] {
  const [output, pullBack] = pulledBack(f, args, places);
  const [leaves, outSpec] = treeFlatten(output);
  // Pulling back is linear, so its gradient is the same everywhere; at zeros, formulas with a logarithm of the cotangent (logcumsumexp) give NaN.
  const ones = leaves.map((it) => callOperator("aten.ones_like", [it]));
  const back = ofPackage((...cotangents: never[]) => pullBack(treeUnflatten(cotangents, outSpec)));
  const [, push] = vjp(back, ones);
  return [output, treeUnflatten(push(complexTangents(tangents, args, places)), outSpec)];
}

/** The tangents, those of complex arguments as complex numbers: a real one has no imaginary part. */
function complexTangents(tangents: readonly unknown[], args: readonly unknown[], places: readonly number[]): unknown[] {
  const primals = treeFlatten(places.map((place) => args[place]))[0];
  const [leaves, spec] = treeFlatten([...tangents]);
  const same = leaves.map((it, at) => {
    const primal = primals[at];
    if (!(primal instanceof Tensor && it instanceof Tensor) || !isComplex(primal.dtype) || isComplex(it.dtype))
      return it;
    return callOperator("aten._to_copy", [it], { dtype: primal.dtype });
  });
  return treeUnflatten(same, spec) as unknown[];
}

/** Which argument {@link jacrev} and {@link jacfwd} are about. */
export interface JacobianOptions {
  /** The place of the argument, the first by default. */
  readonly argnums?: number;
}

/**
 * The derivative of each element of a tensor by each element of an argument, one row of the result at a time: `torch.func.jacrev`. Its
 * sizes are those of the result and then those of the argument.
 *
 * @example
 * ```ts
 * func.jacrev((x: Tensor) => x.sin())(x); // x.cos() on the diagonal
 * ```
 */
export function jacrev<A extends readonly unknown[]>(
  f: (...args: A) => Tensor,
  options: JacobianOptions = {},
): (...args: A) => Tensor {
  checkFunction("jacrev", "f", f);
  checkOptions("jacrev", options, ["argnums"]);
  const { argnums = 0 } = options;
  checkOneArgument("jacrev", argnums);
  return ofPackage((...args: A) => {
    const places = placesOf(argnums, args.length);
    const input = realTensor("jacrev", "argument", args[places[0] as number]);
    const [result, pullBack] = pulledBack(f, args, places);
    const output = realTensor("jacrev", "result", result);
    const rows = unitsLike(output).map((unit) => pullBack(unit)[0] as Tensor);
    return stacked(rows, 0, [...output.shape, ...input.shape], input);
  });
}

/**
 * The derivative of each element of a tensor by each element of an argument, one column at a time: `torch.func.jacfwd`.
 *
 * @example
 * ```ts
 * func.jacfwd((x: Tensor) => x.sin())(x);
 * ```
 */
export function jacfwd<A extends readonly unknown[]>(
  f: (...args: A) => Tensor,
  options: JacobianOptions = {},
): (...args: A) => Tensor {
  checkFunction("jacfwd", "f", f);
  checkOptions("jacfwd", options, ["argnums"]);
  const { argnums = 0 } = options;
  checkOneArgument("jacfwd", argnums);
  return ofPackage((...args: A) => {
    const places = placesOf(argnums, args.length);
    const input = realTensor("jacfwd", "argument", args[places[0] as number]);
    const output = realTensor("jacfwd", "result", pulledBack(f, args, places)[0]);
    const columns = unitsLike(input).map((unit) => pushed(f, args, places, [unit])[1] as Tensor);
    return stacked(columns, -1, [...output.shape, ...input.shape], output);
  });
}

/**
 * The second derivatives of a function that gives one number: `torch.func.hessian`.
 *
 * @example
 * ```ts
 * func.hessian((x: Tensor) => x.mul(x).sum())(x); // 2 on the diagonal
 * ```
 */
export function hessian<A extends readonly unknown[]>(
  f: (...args: A) => Tensor,
  options: JacobianOptions = {},
): (...args: A) => Tensor {
  checkFunction("hessian", "f", f);
  checkOptions("hessian", options, ["argnums"]);
  return jacfwd(jacrev(f, options), options);
}

/** A call on the leaves of its arguments. */
interface FlatCall {
  readonly leaves: readonly unknown[];
  /** The leaves that are differentiated by. */
  readonly wanted: readonly number[];
  arguments(leaves: readonly unknown[]): unknown[];
  /** What the arguments that are differentiated by have for gradients. */
  gradients(ofWanted: readonly unknown[]): unknown[];
}

function flatCall(args: readonly unknown[], places: readonly number[]): FlatCall {
  const trees = args.map((it) => treeFlatten(it));
  const starts: number[] = [];
  let count = 0;
  for (const [leaves] of trees) {
    starts.push(count);
    count += leaves.length;
  }
  const leaves = trees.flatMap(([it]) => it);
  const wanted = places.flatMap((place) => (trees[place]?.[0] ?? []).map((_, at) => (starts[place] ?? 0) + at));
  for (const at of wanted) {
    const leaf = leaves[at];
    if (!(leaf instanceof Tensor))
      throw fxError("InputType", `Thing passed to transform API must be Tensor, got ${typeName(leaf)}`);
  }
  return {
    leaves,
    wanted,
    arguments: (given) =>
      trees.map(([it, spec], at) => treeUnflatten(given.slice(starts[at], (starts[at] ?? 0) + it.length), spec)),
    gradients(ofWanted) {
      let at = 0;
      return places.map((place) => {
        const [it, spec] = trees[place] as (typeof trees)[number];
        at += it.length;
        return treeUnflatten(ofWanted.slice(at - it.length, at), spec);
      });
    },
  };
}

/** Differentiates a function: by its result, which is the first leaf, or by what cotangents make of its first results. */
function differentiated(
  run: (...leaves: unknown[]) => unknown,
  call: FlatCall,
  hasCotangents: boolean,
  countOutputs: () => number | undefined = () => undefined,
): Joint {
  const wanted = new Set(call.wanted);
  const fn = closed(run, call.leaves, { isWanted: (at) => wanted.has(at), argumentsOf: (it) => call.arguments(it) });
  refuseInputWrites(fn.graph, (node, input) => writeRefused(fn, node, input));
  const nOutputs = countOutputs() ?? fn.results.length;
  const { graph } = fn;
  const output = graph.outputNode() as Node;
  const outputs = hasCotangents ? fn.results.slice(0, nOutputs) : [];
  for (const it of outputs) {
    if (!isNode(it)) {
      throw fxError(
        "InputType",
        `vjp(f, *primals): Expected f(*primals) to return only tensors, got unsupported type ${typeName(it)}`,
      );
    }
    checkOutput((it.meta.get("val") as TensorMeta).dtype);
  }
  const cotangents = outputs.map((it, at) => cotangentOf(fn, it as Node, at));
  const loss = hasCotangents ? weightedSum(fn, outputs as readonly Node[], cotangents) : (fn.results[0] as Node);
  const detached = graph.insertingBefore(output, () =>
    fn.results.map((it) => (isNode(it) ? callOn(fn, "torch.ops.aten.detach.default", [it], it) : it)),
  );
  const nodes = detached.filter((it): it is Node => isNode(it));
  output.args = [tuple(loss, ...nodes)];
  const places = tensorPlaces(call.leaves);
  const { joint, unreached } = jointOf(fn, [loss, ...nodes]);
  const known = new Map<Node, unknown>();
  const inputs = inputsOf(joint);
  const before = graph.findNodes({ op: "placeholder" });
  const now = (node: Node): Node => inputs[before.indexOf(node)] as Node;
  for (const [at, node] of fn.inputs.entries()) known.set(now(node), call.leaves[places[at] as number]);
  for (const [node, tensor] of fn.free) known.set(now(node), tensor);
  const given = (joint.graph.outputNode()?.args[0] ?? []) as unknown as readonly unknown[];
  const specs = joint.graphSignature.outputSpecs;
  const gradientOf = (at: number): Node | Unreached => {
    const input = fn.inputs[places.indexOf(at)] as Node;
    if (unreached.has(input.name)) return new Unreached(now(input));
    const place = specs.findIndex((it) => it.kind === "GRADIENT_TO_USER_INPUT" && it.target === input.name);
    return given[place] as Node;
  };
  const results = given.filter((_, at) => /^(?:USER|LOSS)_OUTPUT$/.test(specs[at]?.kind ?? "")).slice(1);
  let at = 0;
  return {
    program: joint,
    known,
    cotangents: cotangents.map(now),
    results: detached.map((it) => (isNode(it) ? results[at++] : it)),
    gradients: call.wanted.map(gradientOf),
    outSpec: fn.outSpec,
  };
}

function tensorPlaces(leaves: readonly unknown[]): number[] {
  return leaves.flatMap((it, at) => (it instanceof Tensor ? [at] : []));
}

/** The joint program, and the inputs that the loss does not depend on. */
function jointOf(fn: ClosedFunction, results: readonly Node[]): { joint: ExportedProgram; unreached: Set<string> } {
  const unreached = new Set<string>();
  const table = compositeOperators();
  for (;;) {
    const program = programOfValues(fn.module, results);
    try {
      return { joint: program.exportForwardBackward({ jointLossIndex: 0, table }), unreached };
    } catch (error) {
      if (!(error instanceof FxError) || error.kind !== "InvalidArgument") throw error;
      const wanted = fn.inputs.filter((it) => (it.meta.get("val") as TensorMeta).requiresGrad);
      const without = error.reason.startsWith("Found a parameter")
        ? wanted.filter((it) => it.name === error.node)
        : wanted;
      if (without.length === 0 || (without === wanted && !/requires? (?:no )?grad/i.test(error.reason))) {
        if (wanted.length > 0) throw error;
        return { joint: program.runDecompositions(table), unreached };
      }
      for (const it of without) {
        unreached.add(it.name);
        it.meta.set("val", new TensorMeta({ ...(it.meta.get("val") as TensorMeta), requiresGrad: false }));
      }
      if (without.length === wanted.length)
        return { joint: programOfValues(fn.module, results).runDecompositions(table), unreached };
    }
  }
}

/** An input that is contiguous, as `pulledBack` gives it: what is formed is of this layout alone, and results may have any. */
function cotangentOf({ graph }: ClosedFunction, result: Node, at: number): Node {
  const last = graph.findNodes({ op: "placeholder" }).at(-1) as Node;
  const node = graph.insertingAfter(last, () => graph.placeholder(`cotangent_${at}`));
  const meta = result.meta.get("val") as TensorMeta;
  const { strides } = inferOperator("aten.empty", [meta.sizes], { dtype: meta.dtype }) as TensorMeta;
  node.meta.set("val", new TensorMeta({ ...meta, strides, storageOffset: 0, requiresGrad: false }));
  return node;
}

/**
 * The sum of results times cotangents, whose gradients are those that the cotangents make. Of complex numbers it is the real part of results
 * times conjugates: a gradient is the conjugate of Wirtinger's derivative.
 */
function weightedSum(fn: ClosedFunction, results: readonly Node[], cotangents: readonly Node[]): Node {
  const output = fn.graph.outputNode() as Node;
  return fn.graph.insertingBefore(output, () => {
    const sums = results.map((it, at) => {
      const cotangent = cotangents[at] as Node;
      const { dtype } = it.meta.get("val") as TensorMeta;
      const weight = isComplex(dtype) ? callOn(fn, "torch.ops.aten._conj.default", [cotangent], cotangent) : cotangent;
      const product = callOn(fn, "torch.ops.aten.mul.Tensor", [it, weight], it);
      const sum = callOn(fn, "torch.ops.aten.sum.default", [product], it, []);
      if (!isComplex(dtype)) return sum;
      const real = callOn(fn, "torch.ops.aten.real.default", [sum], sum);
      real.meta.set("val", new TensorMeta({ ...(sum.meta.get("val") as TensorMeta), dtype: PARTS[dtype] ?? dtype }));
      return real;
    });
    return sums.reduce((sum, it) => callOn(fn, "torch.ops.aten.add.Tensor", [sum, it], it));
  });
}

/** Writes that gradients are taken through are lost where they go to arguments and surroundings. */
function writeRefused({ free, inputs }: ClosedFunction, node: Node, input: Node): FxError {
  const op = node.target.slice("torch.ops.".length);
  const [namespace = "", packet = "", overload = ""] = op.split(".");
  const operator = `${namespace}::${packet}${overload === "default" ? "" : `.${overload}`}`;
  const isLeaf = inputs.includes(input) && (input.meta.get("val") as TensorMeta).requiresGrad;
  if (isLeaf) {
    return fxError("InvalidArgument", "a leaf Variable that requires grad is being used in an in-place operation.", {
      op,
      help: "write to a clone()",
    });
  }
  if (free.has(input)) {
    return fxError(
      "InvalidArgument",
      `During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation (${operator}) that would mutate a captured Tensor. This is not supported; please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs.`,
      { op },
    );
  }
  return fxError("NotImplemented", "gradients of a function that writes to its arguments", {
    op,
    help: "return the new value from the function, and write it to the argument outside; or write to a clone()",
  });
}

function checkOutput(dtype: DType): void {
  if (isFloat(dtype)) return;
  throw fxError(
    "InputType",
    `vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype torch.${dtype}`,
  );
}

function isFloat(dtype: DType): boolean {
  return DTYPES[dtype].kind === "float" || isComplex(dtype);
}

function isComplex(dtype: DType): boolean {
  return DTYPES[dtype].kind === "complex";
}

/** A call that gives what another node does, or a number of its dtype. */
function callOn(
  { graph }: ClosedFunction,
  target: string,
  args: readonly Node[],
  like: Node,
  sizes?: readonly number[],
): Node {
  const node = graph.callFunction(target, [...args]);
  const meta = like.meta.get("val") as TensorMeta;
  node.meta.set("val", sizes === undefined ? meta : new TensorMeta({ ...meta, sizes, strides: [] }));
  return node;
}

function valuesOf(joint: Joint, known: Map<Node, unknown>, asked: readonly unknown[]): unknown[] {
  const { graphModule } = joint.program;
  evaluate(
    graphModule.graph,
    graphModule,
    asked.filter((it): it is Node => isNode(it)),
    known,
  );
  return asked.map((it) => {
    if (isNode(it)) return known.get(it);
    return it instanceof Unreached ? callOperator("aten.zeros_like", [known.get(it.input)]) : it;
  });
}

function placesOf(argnums: number | readonly number[], count: number): number[] {
  if (typeof argnums !== "number") checkList("grad", "argnums", argnums);
  const places = (typeof argnums === "number" ? [argnums] : [...argnums]).map((it) => {
    if (!Number.isInteger(it) || it >= count || it < -count) {
      throw fxError("IndexOutOfRange", `Got argnum=${it}, but only ${count} positional inputs`);
    }
    return it < 0 ? it + count : it;
  });
  if (new Set(places).size < places.length) {
    const given = (argnums as readonly number[]).join(", ");
    throw fxError("InvalidArgument", `argnums elements must be unique, got (${given})`);
  }
  return places;
}

function checkOneArgument(what: string, argnums: unknown): void {
  if (typeof argnums === "number") return;
  throw fxError("NotImplemented", `${what} of several arguments`, {
    help: `${what} of each, with a number as argnums`,
  });
}

/** One tensor, since structures would have a Jacobian for each of theirs, and of real numbers, as PyTorch asks. */
function realTensor(what: string, place: "argument" | "result", value: unknown): Tensor {
  if (!(value instanceof Tensor)) {
    throw fxError("NotImplemented", `${what} where the ${place} is no tensor, but ${typeName(value)}`, {
      help: "one tensor in, and one out; func.vjp takes structures",
    });
  }
  if (!isComplex(value.dtype)) return value;
  const all = place === "argument" ? "inputs" : "outputs";
  throw fxError(
    "InputType",
    `${what}: Expected all ${all} to be real but received complex tensor at flattened input idx: 0`,
  );
}

function outputOf(result: unknown): unknown {
  if (Array.isArray(result) && result.length === 2) return result[0] as unknown;
  throw fxError(
    "InputStructure",
    "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True",
  );
}

function checkedScalar(value: unknown): unknown {
  if (!(value instanceof Tensor)) {
    throw fxError(
      "InputType",
      `grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got ${typeName(value)}`,
    );
  }
  if (value.ndim === 0) {
    if (!isComplex(value.dtype)) return value;
    const what = `grad can be implicitly created only for real scalar outputs but got torch.${value.dtype}`;
    throw fxError("InputType", what, { help: "give the real part, the imaginary part or the absolute value" });
  }
  throw fxError(
    "InputShape",
    `grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with ${value.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?`,
  );
}

function checkCotangent(at: number, given: unknown, output: unknown): void {
  checkCotangentShape(at, given, output);
  if (!(given instanceof Tensor && output instanceof Tensor) || given.dtype === output.dtype) return;
  if (!isComplex(given.dtype) && !isComplex(output.dtype)) return;
  throw fxError(
    "InputType",
    `For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[${at}] has a dtype of torch.${given.dtype} and output[${at}] has a dtype of torch.${output.dtype}.`,
  );
}

/** Sizes that are not known are compared where the program runs. */
function checkCotangentShape(at: number, given: unknown, output: unknown): void {
  const shapes = [given, output].map((it) => (it instanceof Tensor ? metaOf(it).sizes : undefined));
  const [has, wants] = shapes;
  const isSame =
    has?.length === wants?.length &&
    has?.every((it, dim) => it === wants?.[dim] || isDynamic(it) || isDynamic(wants?.[dim]));
  if (isSame === true) return;
  const [got, wanted] = shapes.map((it) => (it === undefined ? "nothing" : `[${it.join(", ")}]`));
  throw fxError(
    "InputShape",
    `Mismatch in shape: grad_output[${at}] has a shape of torch.Size(${got}) and output[${at}] has a shape of torch.Size(${wanted}).`,
  );
}

function checkTangent(tangent: unknown, primal: unknown): void {
  if (!(tangent instanceof Tensor)) {
    throw fxError(
      "InputType",
      `jvp(f, primals, tangents): Expected tangents to only contain Tensors, got ${typeName(tangent)}`,
    );
  }
  if (!(primal instanceof Tensor)) {
    throw fxError(
      "InputType",
      `jvp(f, primals, tangents): Expected primals to only contain Tensors, got ${typeName(primal)}`,
    );
  }
  if (!isFloat(tangent.dtype)) {
    throw fxError("InputType", `Expected tangent to be floating point or complex, but got: torch.${tangent.dtype}`);
  }
  const [has, wants] = [tangent, primal].map((it) => `[${it.shape.join(", ")}]`);
  if (has === wants) return;
  throw fxError(
    "InputShape",
    `Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is of size ${wants} while the given forward gradient is of size ${has}.`,
  );
}

/** A list stands for a tuple. */
function sameStructure(a: PytreeSpec, b: PytreeSpec): boolean {
  return `${a}`.replaceAll("tuple(", "list(") === `${b}`.replaceAll("tuple(", "list(");
}

function untyped(f: AnyFunction): (...args: unknown[]) => unknown {
  return f as unknown as (...args: unknown[]) => unknown;
}

/** Tensors of a tensor's sizes with one 1, in the order of its elements. */
function unitsLike(tensor: Tensor): Tensor[] {
  const count = tensor.numel();
  const options = { dtype: tensor.dtype };
  const rows = callOperator("aten.eye", [count], options) as Tensor;
  return Array.from(
    { length: count },
    (_, at) => callOperator("aten.reshape", [callOperator("aten.select", [rows, 0, at]), [...tensor.shape]]) as Tensor,
  );
}

/** One tensor of these sizes; where there is no part, one like another. */
function stacked(parts: readonly Tensor[], dim: number, sizes: readonly number[], like: Tensor): Tensor {
  if (parts.length === 0) return callOperator("aten.new_zeros", [like, [...sizes]]) as Tensor;
  return callOperator("aten.reshape", [callOperator("aten.stack", [[...parts], dim]), [...sizes]]) as Tensor;
}
