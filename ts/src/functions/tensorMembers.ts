/**
 * The members of tensors that are not operators themselves: conversions, indexing, and changes of shape in place. They
 * are put on the prototype, so that `tensor.ts` does not need the engine.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { CONVERSIONS } from "../../../bindings/members.ts";
import { callOperator } from "../engine/dispatch.ts";
import { resizeTensor } from "../engine/tensors.ts";
import { fxError } from "../base/errors.ts";
import { splitArguments } from "../base/naming.ts";
import {
  device,
  DeviceArg,
  DTypeArg,
  type MemoryFormatArg,
  type MemoryFormatName,
  ValueTuple,
} from "../base/values.ts";
import { type Recorder, recorderOf } from "../record/record.ts";
import { enter, isEntryWanted, leave } from "../record/stack.ts";
import { getItem, type IndexedValue, type IndexPart, setItem } from "./indexing.ts";
import { answerMembersOf, refusePythonName } from "../base/pythonNames.ts";
import { checkShape, Tensor } from "../tensor/tensor.ts";
import { unknownOption } from "../base/given.ts";
import { broughtToGpu, type GivenGpu, type GpuTensor } from "../tensor/gpuTensor.ts";

/** How {@link TensorMembers.to} converts. */
export interface ToOptions {
  readonly dtype?: DType | DTypeArg | undefined;
  readonly device?: string | DeviceArg | undefined;
  readonly copy?: boolean;
  readonly nonBlocking?: boolean;
  readonly memoryFormat?: MemoryFormatArg | MemoryFormatName;
}

/** Members of tensors that are written by hand. */
export interface TensorMembers extends Iterable<Tensor> {
  /** The tensor with its dimensions the other way round. */
  readonly T: Tensor;
  /** The tensor with its last two dimensions exchanged. */
  readonly mT: Tensor;
  /** The conjugate of the tensor with its last two dimensions exchanged. */
  readonly mH: Tensor;
  /** The conjugate of the matrix with its dimensions exchanged. */
  readonly H: Tensor;
  /** The real parts: a view, or the tensor itself where it has no other. */
  readonly real: Tensor;
  /** The imaginary parts, as a view. */
  readonly imag: Tensor;

  /** The part at this position of the first dimension; negative positions count from the end. */
  [position: number]: Tensor;

  /**
   * A part of the tensor, as Python's `x[...]`: positions, `slice(1, 5)`, `Ellipsis`, null for a new dimension, and arrays
   * or tensors of positions or masks. Positions and slices give views, which share the memory.
   *
   * @example
   * ```ts
   * x.get(0, slice(1, null)); // x[0, 1:]
   * x.get(Ellipsis, null, mask); // x[..., None, mask]
   * ```
   */
  get(...index: IndexPart[]): Tensor;
  /**
   * Writes to a part of the tensor, as Python's `x[...] = value`. An index of several parts is `tuple(...)`.
   *
   * @example
   * ```ts
   * x.set(0, 1.5); // x[0] = 1.5
   * x.set(tuple(slice(0, 2), mask), y); // x[0:2, mask] = y
   * ```
   */
  set(index: unknown, value: IndexedValue): void;

  /** The tensor in another dtype or memory format; itself where it has that already. */
  to(options: ToOptions): Tensor;
  /** Promises the tensor on a GPU, where modules with `device: "gpu"` take it as it is; it is to stay as it is until then. */
  to(device: "gpu" | GivenGpu): Promise<GpuTensor>;
  to(dtype: DType | DTypeArg, options?: ToOptions): Tensor;
  to(device: string | DeviceArg, dtype?: DType | DTypeArg | null, options?: ToOptions): Tensor;
  to(other: Tensor, options?: ToOptions): Tensor;
  /** The tensor on the CPU: itself. */
  cpu(): Tensor;
  /** The tensor as `float32`. */
  float(): Tensor;
  /** The tensor as `float64`. */
  double(): Tensor;
  /** The tensor as `float16`. */
  half(): Tensor;
  /** The tensor as `bfloat16`. */
  bfloat16(): Tensor;
  /** The tensor as `int64`. */
  long(): Tensor;
  /** The tensor as `int32`. */
  int(): Tensor;
  /** The tensor as `int16`. */
  short(): Tensor;
  /** The tensor as `int8`. */
  char(): Tensor;
  /** The tensor as `uint8`. */
  byte(): Tensor;
  /** The tensor as `bool`. */
  bool(): Tensor;
  /** The tensor as `complex64`. */
  cfloat(): Tensor;
  /** The tensor as `complex128`. */
  cdouble(): Tensor;

  /** Makes the tensor show other sizes of its memory, which grows where it is too short; new elements are zero. */
  resize_(...sizes: number[] | [sizes: readonly number[]]): this;
  /** Makes the tensor as large as another one. */
  resizeAs_(other: Tensor): this;
}

type Method = (self: Tensor, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>) => unknown;

/** Puts a method on tensors by PyTorch's name. A call with a traced value among its arguments is recorded. */
export function defineMethod(spelling: string, name: string, run: Method): void {
  const method = {
    [spelling](this: Tensor, ...given: unknown[]): unknown {
      const recorder = recorderOf(given);
      const { args, kwargs } = splitArguments(given);
      if (recorder === undefined && !isEntryWanted()) return run(this, args, kwargs);
      if (recorder === undefined) return entered(method[spelling] as AnyFunction, () => run(this, args, kwargs));
      return recorded(recorder, method[spelling] as AnyFunction, "call_method", name, [this, ...args], kwargs);
    },
  };
  defineMember(spelling, { value: method[spelling], writable: true });
}

type AnyFunction = (...args: never[]) => unknown;

/** Records a call; stacks begin below the function that the user called. */
function recorded(recorder: Recorder, by: AnyFunction, ...call: Parameters<Recorder["createProxy"]>): unknown {
  return entered(by, () => recorder.createProxy(...call));
}

function entered(by: AnyFunction, body: () => unknown): unknown {
  const outer = enter(by);
  try {
    return body();
  } finally {
    leave(outer);
  }
}

/** Puts a member on tensors, unless the class has it. */
export function defineMember(spelling: string | symbol, descriptor: PropertyDescriptor): void {
  if (Object.hasOwn(Tensor.prototype, spelling)) {
    throw fxError("Internal", `tensors have two members ${String(spelling)}`);
  }
  Object.defineProperty(Tensor.prototype, spelling, { configurable: true, ...descriptor });
}

const TO_OPTIONS: readonly string[] = ["dtype", "device", "copy", "nonBlocking", "memoryFormat"];

function to(self: Tensor, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
  const { device: place, ...rest } = kwargs;
  const named: Record<string, unknown> = { ...rest };
  const [first, second, ...more] = args;
  if (place !== undefined) checkDevice(place);
  if (first instanceof Tensor) named["dtype"] = first.dtype;
  else if (isDType(first)) named["dtype"] = first;
  else if (first !== undefined && first !== null) {
    checkDevice(first);
    if (second !== undefined && second !== null) named["dtype"] = second;
  }
  const flags = isDType(first) || first instanceof Tensor ? args.slice(1) : more;
  // After the dtype, Python has `non_blocking` and `copy`.
  const [, copy = named["copy"]] = flags;
  const { dtype, memory_format = null, non_blocking = false, copy: __, ...unknown } = named;
  const [stray] = Object.keys(unknown);
  if (stray !== undefined) throw unknownOption("to", stray, TO_OPTIONS);
  const where = place ?? (isDType(first) || first instanceof Tensor ? undefined : first);
  const [isAsynchronous, isCopied] = [flags[0] ?? non_blocking, copy ?? false];
  if (where === undefined || where === null) {
    return callOperator("aten.to.dtype", [self, dtype ?? self.dtype, isAsynchronous, isCopied], { memory_format });
  }
  const target = typeof where === "string" ? device(where) : where;
  if (dtype !== undefined) {
    return callOperator("aten.to.device", [self, target, dtype, isAsynchronous, isCopied], { memory_format });
  }
  const options = { dtype: self.dtype, layout: self.layout, device: target };
  return callOperator("aten.to.dtype_layout", [self], {
    ...options,
    non_blocking: isAsynchronous,
    copy: isCopied,
    memory_format,
  });
}

function isDType(value: unknown): boolean {
  if (value instanceof DTypeArg) return true;
  return typeof value === "string" && Object.hasOwn(DTYPES, value);
}

/** Refuses every device but the CPU. */
function checkDevice(value: unknown): void {
  const place = typeof value === "string" ? device(value) : value;
  if (place instanceof DeviceArg && place.type === "cpu") return;
  const what =
    place instanceof DeviceArg ? `there is no device ${place.toString()}` : "to() takes a dtype, a device or a tensor";
  throw fxError(place instanceof DeviceArg ? "NotImplemented" : "InputType", what, {
    help: 'tensors are on the CPU; for programs, await x.to("gpu")',
  });
}

function resize(self: Tensor, args: readonly unknown[]): Tensor {
  const sizes = (Array.isArray(args[0]) ? args[0] : args) as readonly number[];
  checkShape(sizes);
  resizeTensor(self, sizes);
  return self;
}

/** Puts these members on tensors; the package does so once. */
export function installMembers(): void {
  for (const [name, dtype] of Object.entries(CONVERSIONS)) {
    defineMethod(name, name, (self) => callOperator("aten.to.dtype", [self, dtype]));
  }
  defineMethod("to", "to", (self, args, kwargs) => broughtToGpu(self, args) ?? to(self, args, kwargs));
  defineMethod("cpu", "cpu", (self) => to(self, ["cpu"], {}));
  defineMethod("resize_", "resize_", resize);
  defineMethod("resizeAs_", "resize_as_", (self, [other]) => {
    if (!(other instanceof Tensor)) throw fxError("InvalidArgument", "resizeAs_ takes a tensor");
    return resize(self, [other.shape]);
  });
  defineMember("get", { value: get, writable: true });
  defineMember("set", { value: set, writable: true });
  defineMember(Symbol.iterator, { value: iterate, writable: true });
  Object.setPrototypeOf(Tensor.prototype, positions);
  answerMembersOf(Tensor);
}

function get(this: Tensor, ...parts: unknown[]): unknown {
  const index = parts.length === 1 ? parts[0] : ValueTuple.frozen(parts);
  const recorder = recorderOf(parts);
  if (recorder === undefined) return getItem(this, index);
  return recorded(recorder, get, "call_function", "operator.getitem", [this, index], {});
}

function set(this: Tensor, index: unknown, value: unknown): void {
  const recorder = recorderOf([index, value]);
  if (recorder === undefined) setItem(this, index, value as IndexedValue);
  else recorded(recorder, set, "call_function", "operator.setitem", [this, index, value], {});
}

function* iterate(this: Tensor): Generator<Tensor> {
  if (this.ndim === 0) {
    throw fxError("InputShape", "iteration over a 0-d tensor", { help: "item() gives its only element" });
  }
  for (let at = 0; at < (this.shape[0] as number); at++) yield getItem(this, at);
}

const POSITION = /^(?:0|-?[1-9]\d*)$/;

/** What tensors of Python have, and what does it here. */
const ADVICE = {
  numpy: "`x.data` has the elements in a typed array, and `x.toArray()` in nested arrays",
  cuda: '`await x.to("gpu")` has a copy on the GPU, which modules with `device: "gpu"` take',
};

/** The end of the chain of prototypes, which only properties reach that tensors do not have: `x[0]` and `x[-1]`. */
const positions: object = new Proxy(Object.create(Object.prototype) as object, {
  get(target, key, receiver: unknown) {
    if (typeof key === "string" && receiver instanceof Tensor && POSITION.test(key))
      return getItem(receiver, Number(key));
    refusePythonName("a Tensor", key, receiver as object, { advice: ADVICE });
    return Reflect.get(target, key, receiver) as unknown;
  },
  set(target, key, value: unknown, receiver: unknown) {
    if (typeof key === "string" && receiver instanceof Tensor && POSITION.test(key)) {
      setItem(receiver, Number(key), value as IndexedValue);
      return true;
    }
    return Reflect.set(target, key, value, receiver);
  },
});
