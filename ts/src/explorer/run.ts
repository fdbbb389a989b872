/**
 * Runs a program node by node, and tells of each value what it is like and how long it took.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkList } from "../base/given.ts";
import { isObject } from "../base/objects.ts";
import type { ExampleInputs, ExportedProgram } from "../export/exportedProgram.ts";
import type { PlanReport } from "../export/programModule.ts";
import type { ConstantValue } from "../export/signature.ts";
import { unflatten } from "../export/tree.ts";
import type { RangeConstraint } from "../export/program.ts";
import { inputWrites } from "../export/inputWrites.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Graph } from "../graph/graph.ts";
import { Interpreter } from "../fx/interpreter.ts";
import { parseExpression } from "../graph/expression.ts";
import { type Node, notesOf } from "../graph/node.ts";
import { formatSymInt } from "../graph/shapes.ts";
import { SymExpr, type SymInt, TensorMeta } from "../graph/val.ts";
import { DTYPES } from "../../../bindings/dtypes.ts";
import { tensorOf } from "../tensor/construct.ts";
import { readSafetensors } from "../tensor/safetensors.ts";
import { Tensor } from "../tensor/tensor.ts";
import { elementsOf, type Statistics, statisticsOfElements } from "./statistics.ts";

/** What a run told of the value of a node. */
export interface NodeRun {
  readonly milliseconds: number;
  /** The dtype and sizes of a tensor; of anything else, what it is. */
  readonly value: string;
  /** What the elements of a tensor are like, or of the tensors of a list together; undefined of other values and of complex numbers. */
  readonly statistics: Statistics | undefined;
  /** Elements at equal distances, 256 at most of each tensor, by which runs are compared; and numbers that are no tensors. */
  readonly sample: Float64Array;
}

/** What a run told, by the names of the program's nodes, in the order in which they ran. */
export type ProgramRun = ReadonlyMap<string, NodeRun>;

const MOST_SAMPLES = 256;

/**
 * Runs a program on inputs: those that its placeholders take, as {@link randomInputs} makes them, or without any those that it was
 * exported with. Neither the program nor the inputs are changed: the run writes to copies.
 *
 * @example
 * ```ts
 * import { runProgram } from "tracefx/explorer";
 *
 * for (const [name, { statistics }] of runProgram(program)) if (statistics?.nans) console.log(name);
 * ```
 */
export function runProgram(program: ExportedProgram, inputs?: readonly unknown[]): ProgramRun {
  if (inputs !== undefined) checkList("runProgram", "inputs", inputs);
  return recorded(program, inputs, () => exampleCall(program));
}

/**
 * Runs two programs that are compared, on the same inputs: without any, those that the first was exported with, or the second where the first
 * was saved without.
 */
export function runPrograms(
  first: ExportedProgram,
  second: ExportedProgram,
  inputs?: readonly unknown[],
): [first: ProgramRun, second: ProgramRun] {
  const call = (): unknown[] => exampleCall(first.exampleInputs === null ? second : first);
  return [recorded(first, inputs, call), recorded(second, inputs, call)];
}

function recorded(
  program: ExportedProgram,
  inputs: readonly unknown[] | undefined,
  call: () => readonly unknown[],
): ProgramRun {
  using interpreter = new Recorder(program.unlift());
  if (inputs === undefined) interpreter.run(...call());
  else interpreter.runWith(inputs, { enableIoProcessing: false });
  return interpreter.record;
}

/**
 * What the steps of a compiled plan of the program take: time, bytes and FLOPs. The inputs are those of {@link runProgram}.
 *
 * @example
 * ```ts
 * import { profileProgram } from "tracefx/explorer";
 *
 * console.log(String(profileProgram(program)));
 * ```
 */
export function profileProgram(program: ExportedProgram, inputs?: readonly unknown[]): PlanReport {
  if (inputs !== undefined) checkList("profileProgram", "inputs", inputs);
  const { inSpec } = program.callSpec;
  let args = inputs ?? exampleCall(program);
  if (inputs !== undefined && inSpec !== null) {
    args = callOf(unflatten(inputs, inSpec, { namedtupleFields: new Map() }) as ExampleInputs);
  }
  using model = program.module();
  using copies = new Copies();
  const isWritten = writesTo(program.unlift().graph).size > 0;
  return model.profile((isWritten ? copies.of(args) : args) as readonly unknown[]);
}

function exampleCall(program: ExportedProgram): unknown[] {
  if (program.exampleInputs !== null) return callOf(program.exampleInputs);
  throw fxError("InputCount", "the program was saved without example inputs", {
    help: "give inputs: randomInputs(program)",
  });
}

/** Positional arguments, and one object of the others where there are any. */
function callOf([args, kwargs]: ExampleInputs): unknown[] {
  return [...args, ...(Object.keys(kwargs).length > 0 ? [kwargs] : [])];
}

class Recorder extends Interpreter implements Disposable {
  readonly record = new Map<string, NodeRun>();
  readonly #written: ReadonlySet<Node>;
  readonly #copies = new Copies();

  constructor(graphModule: GraphModule) {
    super(graphModule, { disposeValues: true });
    this.#written = writesTo(graphModule.graph);
  }

  override runNode(node: Node): unknown {
    const start = performance.now();
    let value = super.runNode(node);
    const milliseconds = performance.now() - start;
    if (this.#written.has(node)) value = this.#copies.of(value);
    this.record.set(node.name, { milliseconds, ...told(value) });
    return value;
  }

  [Symbol.dispose](): void {
    this.#copies[Symbol.dispose]();
  }
}

/** The tensors that a run writes to in place of those that it was given; one that is given twice has one copy. */
class Copies implements Disposable {
  readonly #copies = new Map<Tensor, Tensor>();

  /** What is given to a run in place of a value: tensors in lists and objects are copies, too. */
  of(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((it) => this.of(it));
    if (!(value instanceof Tensor)) {
      const isPlain = isObject(value) && Object.getPrototypeOf(value) === Object.prototype;
      return isPlain ? Object.fromEntries(Object.entries(value).map(([key, it]) => [key, this.of(it)])) : value;
    }
    const copy = this.#copies.get(value) ?? value.clone();
    this.#copies.set(value, copy);
    return copy;
  }

  [Symbol.dispose](): void {
    for (const copy of this.#copies.values()) copy.dispose();
  }
}

/** The inputs and attributes that a graph may write to. A graph that others call as a part of it may write to all that it is given. */
function writesTo(graph: Graph): ReadonlySet<Node> {
  const kinds = ["placeholder", "get_attr"] as const;
  const isOpaque = graph.nodes.some((it) => it.target.startsWith("torch.ops.higher_order.wrap_with_"));
  if (isOpaque) return new Set(graph.nodes.filter((it) => kinds.some((kind) => kind === it.op)));
  return new Set(Array.from(inputWrites(graph, kinds), ([, input]) => input));
}

function told(value: unknown): Omit<NodeRun, "milliseconds"> {
  const elements: (Float32Array | Float64Array)[] = [];
  const samples: number[] = [];
  const visit = (it: unknown): void => {
    if (Array.isArray(it)) for (const item of it) visit(item);
    else if (typeof it === "number" || typeof it === "bigint" || typeof it === "boolean") samples.push(Number(it));
    if (!(it instanceof Tensor)) return;
    const own = elementsOf(it);
    if (own === undefined) return;
    elements.push(own);
    const n = Math.min(own.length, MOST_SAMPLES);
    for (let at = 0; at < n; at++) samples.push(own[Math.floor((at * own.length) / n)] as number);
  };
  visit(value);
  return {
    value: textOf(value),
    statistics: elements.length === 0 ? undefined : statisticsOfElements(joined(elements)),
    sample: Float64Array.from(samples),
  };
}

function joined(parts: readonly (Float32Array | Float64Array)[]): Float32Array | Float64Array {
  const [first] = parts;
  if (first !== undefined && parts.length === 1) return first;
  const res = new Float64Array(parts.reduce((n, it) => n + it.length, 0));
  let at = 0;
  for (const it of parts) {
    res.set(it, at);
    at += it.length;
  }
  return res;
}

function textOf(value: unknown): string {
  if (value instanceof Tensor) return `${DTYPES[value.dtype].short}[${value.shape.join(", ")}]`;
  if (Array.isArray(value)) return `${value.length} values`;
  return value === null ? "None" : typeof value === "object" ? value.constructor.name : `${value as number}`;
}

/** Where symbols may have any value, they have this one. */
const SIZE = 4;

/**
 * Random inputs for a program: tensors of its dtypes and sizes. Symbolic sizes are within their ranges, floats are from the normal
 * distribution, and whole numbers are 0 or 1. The same seed gives the same inputs.
 */
export function randomInputs(program: ExportedProgram, seed = 0): unknown[] {
  const random = new Random(seed);
  const placeholders = program.graph.findNodes({ op: "placeholder" });
  return program.graphSignature.inputSpecs.flatMap((spec, at) => {
    const node = placeholders[at];
    if (spec.kind !== "USER_INPUT" || node === undefined) return [];
    if (spec.arg.type === "constant") return [constantOf(spec.arg.value)];
    return [randomValue(notesOf(node)?.get("val"), node, program.rangeConstraints, random)];
  });
}

/**
 * The inputs of a program that a `.safetensors` file has: by the names of its placeholders, or as `in0`, `in1` and so on.
 *
 * @throws `ArchiveError` where the file cannot be read, `InputCount` where it does not have all of them.
 */
export function inputsOf(program: ExportedProgram, file: ArrayBuffer): unknown[] {
  const { tensors } = readSafetensors(file);
  const specs = program.graphSignature.inputSpecs.filter((it) => it.kind === "USER_INPUT");
  return specs.map(({ arg }, at) => {
    if (arg.type === "constant") return constantOf(arg.value);
    const found = tensors.get(arg.name) ?? tensors.get(`in${at}`);
    // A number is a tensor of one element in the file.
    if (found !== undefined) return arg.type === "tensor" ? found : found.item();
    throw fxError("InputCount", `the file has no input \`${arg.name}\``, {
      help: `it has ${[...tensors.keys()].join(", ")}; name them as the placeholders, or in0, in1 and so on`,
    });
  });
}

function constantOf(value: ConstantValue): unknown {
  return value.type === "None" ? null : value.value;
}

function randomValue(val: unknown, node: Node, ranges: ReadonlyMap<string, RangeConstraint>, random: Random): unknown {
  if (val instanceof SymExpr) return sizeOf(val, node, ranges);
  if (!(val instanceof TensorMeta)) return val;
  const shape = val.sizes.map((it) => sizeOf(it, node, ranges));
  const n = shape.reduce((product, size) => product * size, 1);
  const isFloat = DTYPES[val.dtype].kind === "float";
  const elements = Float32Array.from({ length: n }, () => (isFloat ? random.normal() : Math.floor(2 * random.next())));
  return tensorOf(elements, { shape, dtype: val.dtype });
}

function sizeOf(size: SymInt, node: Node, ranges: ReadonlyMap<string, RangeConstraint>): number {
  if (!(size instanceof SymExpr)) return Number(size);
  const expression = parseExpression(size);
  if (expression.kind !== "symbol") {
    throw fxError("InputShape", `a size of the input is an expression, ${formatSymInt(size)}`, {
      node: node.name,
      help: "give inputs of sizes that agree with each other",
    });
  }
  const { min, max } = ranges.get(expression.name) ?? {};
  return Math.min(Number(max ?? Number.POSITIVE_INFINITY), Math.max(Number(min ?? 0), SIZE));
}

/** Random numbers of a seed: a 32-bit counter, mixed (`splitmix32`). */
class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** From 0 on, below 1. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let it = this.#state ^ (this.#state >>> 16);
    it = Math.imul(it, 0x21f0aaad);
    it = Math.imul(it ^ (it >>> 15), 0x735a2d97);
    return ((it ^ (it >>> 15)) >>> 0) / 2 ** 32;
  }

  /** Of the normal distribution, by Box and Muller's formula. */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }
}
