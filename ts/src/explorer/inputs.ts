/**
 * What a program is run on: inputs that are given, and random ones for the others.
 *
 * @module
 */
import { fxError, type FxError } from "../base/errors.ts";
import { checkGiven } from "../base/given.ts";
import type { ExportedProgram } from "../export/exportedProgram.ts";
import type { RangeConstraint } from "../export/program.ts";
import type { ConstantValue } from "../export/signature.ts";
import { parseExpression } from "../graph/expression.ts";
import { type Node, notesOf } from "../graph/node.ts";
import { formatSymInt } from "../graph/shapes.ts";
import { SymExpr, type SymInt, TensorMeta } from "../graph/val.ts";
import { type DType, DTYPES } from "../../../bindings/dtypes.ts";
import { tensorOf } from "../tensor/construct.ts";
import { readSafetensors } from "../tensor/safetensors.ts";
import { Tensor } from "../tensor/tensor.ts";
import { spell } from "./spelling.ts";

/** An input that users give. */
export interface InputSlot {
  readonly name: string;
  readonly node: Node;
  /** What is known of it: of a tensor, its dtype and sizes. */
  readonly val: unknown;
  /** The same as text, such as `f32[1, 3, s77]`. */
  readonly text: string;
  /** What the program was exported for, where that is no tensor and no number. */
  readonly constant: ConstantValue | undefined;
}

/** The inputs that users give, in order. */
export function inputSlots(program: ExportedProgram): InputSlot[] {
  const placeholders = program.graph.findNodes({ op: "placeholder" });
  return program.graphSignature.inputSpecs.flatMap(({ kind, arg }, at): InputSlot[] => {
    const node = placeholders[at];
    if (kind !== "USER_INPUT" || node === undefined) return [];
    const constant = arg.type === "constant" ? arg.value : undefined;
    return [{ name: node.name, node, val: notesOf(node)?.get("val"), text: spell(node), constant }];
  });
}

/**
 * Random inputs for a program: tensors of its dtypes and sizes. Symbolic sizes are within their ranges, floats are from the normal
 * distribution, and whole numbers are 0 or 1. The same seed gives the same inputs.
 */
export function randomInputs(program: ExportedProgram, seed = 0): unknown[] {
  return filledInputs(program, new Map(), seed);
}

/**
 * Inputs of which some are given, by the names of their placeholders; the others are random, with the sizes that those have which are given.
 * Floats of another width become those of the program, and so do whole numbers.
 *
 * @example
 * ```ts
 * import { filledInputs, runProgram } from "tracefx/explorer";
 *
 * runProgram(program, filledInputs(program, new Map([["x", readNpy(bytes)]])));
 * ```
 *
 * @throws `InputShape` and `InputType` where one does not fit, `InputCount` for a name that no input has.
 */
export function filledInputs(program: ExportedProgram, given: ReadonlyMap<string, unknown>, seed = 0): unknown[] {
  checkGiven("filledInputs", given instanceof Map, "a Map of values by the names of inputs");
  const slots = inputSlots(program);
  for (const name of given.keys()) {
    if (slots.some((it) => it.name === name)) continue;
    const names = slots.map((it) => it.name).join(", ");
    throw fxError("InputCount", `the program has no input \`${name}\``, { help: `its inputs are ${names}` });
  }
  const sizes = new Sizes(program.rangeConstraints);
  const random = new Random(seed);
  const fitted = new Map<string, unknown>();
  for (const it of slots) if (given.has(it.name)) fitted.set(it.name, sizes.fit(it, given.get(it.name)));
  return slots.map((it) => {
    if (fitted.has(it.name)) return fitted.get(it.name);
    return it.constant === undefined ? randomValue(it, sizes, random) : constantOf(it.constant);
  });
}

/**
 * The inputs of a program that a `.safetensors` file has: by the names of its placeholders, or as `in0`, `in1` and so on.
 *
 * @throws `ArchiveError` where the file cannot be read, `InputCount` where it does not have all of them.
 */
export function inputsOf(program: ExportedProgram, file: ArrayBuffer): unknown[] {
  const { tensors } = readSafetensors(file);
  const slots = inputSlots(program);
  const found = inputsAmong(slots, tensors);
  const missing = slots.find((it) => it.constant === undefined && !found.has(it.name));
  if (missing === undefined) return filledInputs(program, found);
  throw fxError("InputCount", `the file has no input \`${missing.name}\``, {
    help: `it has ${[...tensors.keys()].join(", ")}; name them as the placeholders, or in0, in1 and so on`,
  });
}

/** The inputs that named tensors are for: by their names, or as `in0`, `arr_0` and so on. */
export function inputsAmong(slots: readonly InputSlot[], tensors: ReadonlyMap<string, Tensor>): Map<string, Tensor> {
  const res = new Map<string, Tensor>();
  for (const [at, { name, constant }] of slots.entries()) {
    const found = tensors.get(name) ?? tensors.get(`in${at}`) ?? tensors.get(`arr_${at}`);
    if (found !== undefined && constant === undefined) res.set(name, found);
  }
  return res;
}

function constantOf(value: ConstantValue): unknown {
  return value.type === "None" ? null : value.value;
}

/** Where symbols may have any value, they have this one. */
const SIZE = 4;

/** The sizes that symbols have in a run. */
class Sizes {
  readonly #ranges: ReadonlyMap<string, RangeConstraint>;
  readonly #known = new Map<string, number>();

  constructor(ranges: ReadonlyMap<string, RangeConstraint>) {
    this.#ranges = ranges;
  }

  /** A size: of a symbol that has none yet, one within its range. */
  of(size: SymInt, name: string): number {
    if (!(size instanceof SymExpr)) return Number(size);
    const symbol = symbolOf(size);
    if (symbol === undefined) {
      throw fxError("InputShape", `a size of the input is an expression, ${formatSymInt(size)}`, {
        node: name,
        help: "give inputs of sizes that agree with each other",
      });
    }
    const { min, max } = this.#ranges.get(symbol) ?? {};
    const chosen = Math.min(Number(max ?? Number.POSITIVE_INFINITY), Math.max(Number(min ?? 0), SIZE));
    return this.#known.get(symbol) ?? chosen;
  }

  /** What is given for an input, in the input's own dtype; symbols have its sizes from then on. */
  fit(slot: InputSlot, value: unknown): unknown {
    const { name, val } = slot;
    if (val === undefined) return value;
    if (!(val instanceof TensorMeta)) {
      // A number is a tensor of one element in a file.
      const number = value instanceof Tensor ? value.item() : value;
      if (val instanceof SymExpr && typeof number === "number") this.#take(slot, val, number, "the number");
      return number;
    }
    if (!(value instanceof Tensor)) throw refusal("InputType", slot, "it is no tensor");
    if (value.shape.length !== val.sizes.length) throw refusal("InputShape", slot, `it is ${shapeText(value)}`);
    for (const [at, size] of val.sizes.entries()) this.#take(slot, size, value.shape[at] as number, shapeText(value));
    if (value.dtype === val.dtype) return value;
    const [from, to] = [kindOf(value.dtype), kindOf(val.dtype)];
    if (from !== to) throw refusal("InputType", slot, `\`${name}\` got ${value.dtype}`);
    const fitted = value.to(val.dtype);
    if (to === "whole" && !haveSameNumbers(fitted, value)) {
      throw refusal("InputType", slot, `a number of it does not fit into ${val.dtype}`);
    }
    return fitted;
  }

  #take(slot: InputSlot, size: SymInt, given: number, told: string): void {
    const symbol = size instanceof SymExpr ? symbolOf(size) : undefined;
    if (size instanceof SymExpr && symbol === undefined) return;
    if (symbol === undefined) {
      if (Number(size) !== given) throw refusal("InputShape", slot, `it is ${told}`);
      return;
    }
    const { min, max } = this.#ranges.get(symbol) ?? {};
    const known = this.#known.get(symbol);
    if (known !== undefined && known !== given) {
      throw refusal("InputShape", slot, `${symbol} is ${known} in another input, and ${given} in this one`);
    }
    if (given < Number(min ?? 0) || given > Number(max ?? Number.POSITIVE_INFINITY)) {
      const most = max === undefined ? "∞" : String(max);
      throw refusal("InputShape", slot, `${symbol} is ${given}, and may be ${min ?? 0} … ${most}`);
    }
    this.#known.set(symbol, given);
  }
}

/** The symbol that a size is; undefined of an expression. */
function symbolOf(size: SymExpr): string | undefined {
  const expression = parseExpression(size);
  return expression.kind === "symbol" ? expression.name : undefined;
}

function refusal(kind: "InputShape" | "InputType", { name, text }: InputSlot, why: string): FxError {
  return fxError(kind, `the input \`${name}\` is ${text}: ${why}`, { node: name });
}

function shapeText({ dtype, shape }: Tensor): string {
  return `${DTYPES[dtype].short}[${shape.join(", ")}]`;
}

/** Numbers of one kind become one another; truth values are whole numbers. */
function kindOf(dtype: DType): string {
  const { kind } = DTYPES[dtype];
  return kind === "float" || kind === "complex" ? kind : "whole";
}

/** Whether two tensors of one shape hold the same whole numbers. */
function haveSameNumbers(first: Tensor, second: Tensor): boolean {
  const [left, right] = [first.data, second.data];
  for (const [at, it] of left.entries()) if (BigInt(it) !== BigInt(right[at] as number | bigint)) return false;
  return true;
}

function randomValue({ name, val }: InputSlot, sizes: Sizes, random: Random): unknown {
  if (val instanceof SymExpr) return sizes.of(val, name);
  if (!(val instanceof TensorMeta)) return val;
  const shape = val.sizes.map((it) => sizes.of(it, name));
  const n = shape.reduce((product, size) => product * size, 1);
  const isFloat = DTYPES[val.dtype].kind === "float";
  const elements = Float32Array.from({ length: n }, () => (isFloat ? random.normal() : Math.floor(2 * random.next())));
  return tensorOf(elements, { shape, dtype: val.dtype });
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
