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
import { flattenCall, unflatten } from "../export/tree.ts";
import { inputWrites } from "../export/inputWrites.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Graph } from "../graph/graph.ts";
import { Interpreter } from "../fx/interpreter.ts";
import type { Node } from "../graph/node.ts";
import { DTYPES } from "../../../bindings/dtypes.ts";
import { Tensor } from "../tensor/tensor.ts";
import { elementsOf, type Statistics, statisticsOfElements } from "./statistics.ts";

/** What a run told of the value of a node. */
export interface NodeRun {
  readonly milliseconds: number;
  /** The dtype and sizes of a tensor; of anything else, what it is. */
  readonly value: string;
  /** What the elements of a tensor are like, or of the tensors of a list together; undefined of other values and of complex numbers. */
  readonly statistics: Statistics | undefined;
  /**
   * The elements of a tensor; `dropped` when those of the values before were 32 million together; undefined of what is no tensor of real
   * numbers.
   */
  readonly elements: Elements | "dropped" | undefined;
  /** Elements at equal distances, 256 at most of each tensor, by which runs are compared; and numbers that are no tensors. */
  readonly sample: Float64Array;
}

/** The elements of a tensor, row-major. */
export interface Elements {
  readonly shape: readonly number[];
  readonly data: Float32Array | Float64Array;
}

/** What a run told, by the names of the program's nodes, in the order in which they ran. */
export type ProgramRun = ReadonlyMap<string, NodeRun>;

const MOST_SAMPLES = 256;
/** How many elements a run keeps at most, of all its values together. */
const MOST_KEPT = 32_000_000;

/**
 * Runs a program on inputs: those that its placeholders take, as `randomInputs` makes them, or without any those that it was
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
  const call = (): unknown[] => exampleCall(exampleOf(first, second));
  return [recorded(first, inputs, call), recorded(second, inputs, call)];
}

/**
 * The elements of the value of one node, by a run of its own: undefined where it gives no tensor of real numbers. The inputs are those of
 * {@link runProgram}.
 */
export function valueOf(program: ExportedProgram, name: string, inputs?: readonly unknown[]): Elements | undefined {
  const run = recorded(program, inputs, () => exampleCall(program), name);
  const elements = run.get(name)?.elements;
  return elements === "dropped" ? undefined : elements;
}

function recorded(
  program: ExportedProgram,
  inputs: readonly unknown[] | undefined,
  call: () => readonly unknown[],
  kept?: string,
): ProgramRun {
  using interpreter = new Recorder(program.unlift(), kept);
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

/** Which of two programs has the example that both are run on. */
export function exampleOf(first: ExportedProgram, second: ExportedProgram): ExportedProgram {
  return first.exampleInputs === null ? second : first;
}

/** The example inputs by the places of the inputs; undefined where there are none. */
export function exampleLeaves(program: ExportedProgram): unknown[] | undefined {
  const { inSpec } = program.callSpec;
  if (program.exampleInputs === null || inSpec === null) return undefined;
  return flattenCall(callOf(program.exampleInputs), inSpec, { namedtupleFields: new Map() });
}

/** What a call is given: positional arguments, and one object of the others where there are any. */
function callOf([args, kwargs]: ExampleInputs): unknown[] {
  return [...args, ...(Object.keys(kwargs).length > 0 ? [kwargs] : [])];
}

class Recorder extends Interpreter implements Disposable {
  readonly record = new Map<string, NodeRun>();
  readonly #written: ReadonlySet<Node>;
  readonly #copies = new Copies();
  /** The one node whose elements are kept, or all as long as there is room. */
  readonly #kept: string | undefined;
  #room = MOST_KEPT;

  constructor(graphModule: GraphModule, kept?: string) {
    super(graphModule, { disposeValues: true });
    this.#kept = kept;
    this.#written = writesTo(graphModule.graph);
  }

  override runNode(node: Node): unknown {
    const start = performance.now();
    let value = super.runNode(node);
    const milliseconds = performance.now() - start;
    if (this.#written.has(node)) value = this.#copies.of(value);
    if (this.#kept === undefined || this.#kept === node.name) {
      const { elements, ...rest } = told(value);
      const n = elements?.data.length ?? 0;
      const isKept = this.#kept !== undefined || n <= this.#room;
      if (isKept) this.#room -= n;
      this.record.set(node.name, { milliseconds, ...rest, elements: isKept ? elements : "dropped" });
    }
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

function told(
  value: unknown,
): Omit<NodeRun, "milliseconds" | "elements"> & { readonly elements: Elements | undefined } {
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
    elements:
      value instanceof Tensor && elements[0] !== undefined ? { shape: value.shape, data: elements[0] } : undefined,
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
