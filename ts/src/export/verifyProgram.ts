/**
 * Whether a program does with the example inputs what the module does.
 *
 * Both run once, from the same random numbers, and nothing of the module, the inputs or the random numbers is changed by it.
 * What JavaScript decided while the module was exported, and nobody could see, comes out here.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { withoutModes } from "../engine/modes.ts";
import { type OperatorRecorder, recordingOperators } from "../engine/recorder.ts";
import { layoutOf } from "../engine/tensors.ts";
import { FxError, fxError } from "../base/errors.ts";
import type { Module } from "../nn/module.ts";
import { Tensor } from "../tensor/tensor.ts";
import { getRngState, setRngState } from "../torch/random.ts";
import { type Difference, differenceOf } from "../trace/difference.ts";
import { type PytreeSpec, treeFlatten, treeMap } from "../trace/pytree.ts";
import type { ExportedProgram } from "./exportedProgram.ts";
import { StateGuard } from "./stateGuard.ts";

/** What a run came to. */
interface Outcome {
  readonly value: unknown;
  /** The buffers afterwards, by name. */
  readonly buffers: ReadonlyMap<string, Tensor>;
  /** The state of the random numbers afterwards. */
  readonly random: Tensor;
}

/** What an export knows of the call that was exported. */
interface VerifyOptions {
  /** The arguments, with an object of the keyword arguments at the end where there are any. */
  readonly given: readonly unknown[];
  /** How what the call gave is nested; a program gives its tuples as arrays. */
  readonly outSpec: PytreeSpec;
  /** What is told of a module that cannot be compared. */
  readonly warn: (warning: FxError) => void;
}

/**
 * Throws `TraceMismatch` where the program gives something else than the module, on the inputs of the call that was exported.
 * A module that does not run by itself cannot be compared, which `warn` is told.
 */
export function verifyProgram(module: Module, program: ExportedProgram, { given, outSpec, warn }: VerifyOptions): void {
  if (!isRunnable([...treeFlatten(given)[0], ...tensorsOf(module).values()])) return;
  const before = getRngState();
  let expected: Outcome;
  try {
    expected = runModule(module, given);
  } catch (error) {
    return warn(notCompared(error));
  } finally {
    setRngState(before);
  }
  try {
    const found = runProgram(program, given, expected.buffers.keys());
    const difference = structureDifference(expected.value, outSpec) ?? differenceFrom(expected, found, before);
    if (difference !== undefined) throw mismatch(difference);
  } finally {
    setRngState(before);
  }
}

/** Tensors without elements, and those that were given back, compute nothing. */
function isRunnable(leaves: readonly unknown[]): boolean {
  return leaves.every((it) => !(it instanceof Tensor) || !it.isDisposed);
}

function tensorsOf(module: Module): Map<string, Tensor> {
  return new Map([...module.namedParameters(), ...module.namedBuffers()]);
}

function runModule(module: Module, given: readonly unknown[]): Outcome {
  const state = new StateGuard(module);
  const kept = new KeptTensors(module, given);
  try {
    const run = (): unknown => module.call(...shared(given));
    const value = copied(recordingOperators(kept, () => withoutModes(run)));
    const buffers = new Map(Array.from(module.namedBuffers(), ([name, it]) => [name, copied(it) as Tensor]));
    return { value, buffers, random: getRngState() };
  } finally {
    state.restore();
    kept.restore();
  }
}

function runProgram(program: ExportedProgram, given: readonly unknown[], buffers: Iterable<string>): Outcome {
  const kept = new KeptTensors(undefined, given);
  // Node by node, as the module ran: a plan may round otherwise where it computes several operators in one go.
  using run = program.module({ mode: "interpret" });
  try {
    const value = copied(withoutModes(() => run(...shared(given))));
    return {
      value,
      buffers: new Map(Array.from(buffers, (name) => [name, run.getTensor(name)])),
      random: getRngState(),
    };
  } catch (error) {
    throw fxError("TraceMismatch", `the program does not run on the inputs of which it was made: ${reasonOf(error)}`);
  } finally {
    kept.restore();
  }
}

function structureDifference(value: unknown, outSpec: PytreeSpec): string | undefined {
  const [, spec] = treeFlatten(value);
  return spec.equals(outSpec) ? undefined : `it gives ${outSpec} instead of ${spec}`;
}

function differenceFrom(expected: Outcome, found: Outcome, before: Tensor): string | undefined {
  // Whoever draws other random numbers than the module gives others, of the same sizes.
  const isRandom = !isSame(before, expected.random) && !isSame(expected.random, found.random);
  const how = { numbers: !isRandom };
  const [leaves, others] = [treeFlatten(expected.value)[0], treeFlatten(found.value)[0]];
  const difference = differenceOf(leaves, others, how);
  if (difference !== undefined) return difference.text;
  for (const [name, tensor] of expected.buffers) {
    const changed: Difference | undefined = differenceOf(tensor, found.buffers.get(name), how);
    if (changed !== undefined) return `\`${name}\` afterwards: ${changed.text}`;
  }
  return undefined;
}

function isSame(a: Tensor, b: Tensor): boolean {
  return callOperator("aten.equal", [a, b]) === true;
}

/** Tensors as they were before a run: inputs and buffers, and parameters from when something is written to them. */
class KeptTensors implements OperatorRecorder {
  readonly #kept = new Map<Tensor, Tensor>();
  readonly #parameters: readonly Tensor[];

  constructor(module: Module | undefined, given: readonly unknown[]) {
    this.#parameters = module === undefined ? [] : [...module.namedParameters().values()];
    const buffers = module === undefined ? [] : module.namedBuffers().values();
    for (const it of [...buffers, ...treeFlatten(given)[0]]) if (it instanceof Tensor) this.#keep(it);
  }

  callOperator(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return recordingOperators(undefined, () => {
      const { out } = kwargs;
      if (WRITES.test(name)) this.#keepOwners(args.flat());
      else if (out !== undefined && out !== null) this.#keepOwners([out].flat());
      return callOperator(name, args, kwargs);
    });
  }

  /** Puts the elements back. */
  restore(): void {
    for (const [tensor, before] of this.#kept) if (!isExpanded(tensor)) callOperator("aten.copy_", [tensor, before]);
  }

  /** Keeps the parameters whose elements these tensors show. */
  #keepOwners(written: readonly unknown[]): void {
    const places = new Set(written.flatMap((it) => (it instanceof Tensor ? [layoutOf(it).storage] : [])));
    for (const it of this.#parameters) if (places.has(layoutOf(it).storage)) this.#keep(it);
  }

  #keep(tensor: Tensor): void {
    if (!this.#kept.has(tensor)) this.#kept.set(tensor, callOperator("aten.clone", [tensor]) as Tensor);
  }
}

/** Operators that work in place: `aten.add_`, `aten.add_.Tensor`. */
const WRITES = /[^_]_(?:\.\w+)?$/;

/** Whether several places of a tensor are one in memory: nobody can write to it. */
function isExpanded(tensor: Tensor): boolean {
  const strides = tensor.stride();
  return tensor.shape.some((size, dim) => size > 1 && strides[dim] === 0);
}

/** The same containers with tensors that show the same elements: what a run makes of their sizes, it makes of these. */
function shared(given: readonly unknown[]): unknown[] {
  const seen = new Map<unknown, Tensor>();
  return treeMap((it) => {
    if (!(it instanceof Tensor)) return it;
    const known = seen.get(it) ?? (callOperator("aten.alias", [it]) as Tensor);
    seen.set(it, known);
    return known;
  }, given) as unknown[];
}

/** The same containers with copies of the tensors. */
function copied(tree: unknown): unknown {
  return treeMap((it) => (it instanceof Tensor ? callOperator("aten.clone", [it]) : it), tree);
}

function reasonOf(error: unknown): string {
  if (error instanceof FxError) return `${error.code}: ${error.reason}`;
  return error instanceof Error ? error.message : String(error);
}

function notCompared(error: unknown): FxError {
  const reason = `the program was not compared with the module, which does not run by itself: ${reasonOf(error)}`;
  // Numbers of JavaScript have none of the methods that those of an export have.
  const help =
    error instanceof TypeError
      ? "write operator.mul(n, 2) for n.mul(2), which takes numbers of both kinds; or export with { verify: false }"
      : "give example inputs with which the module runs, or export with { verify: false }";
  return fxError("TraceMismatch", reason, { help });
}

function mismatch(text: string): FxError {
  return fxError("TraceMismatch", `the program does not do what the module does with the example inputs: ${text}`, {
    help: "look for what an export cannot see: a test on a size or an element (===, if, &&, ?:, switch, has), which guard(…), cond(…) or the build plugin decide; a number that changes from run to run; { verify: false } takes the program as it is",
  });
}
