/**
 * `torch`: the functions, dtypes and constants that PyTorch has under this name.
 *
 * @module
 */
// oxlint-disable-next-line import/no-unassigned-import -- puts members on tensors
import "./torch/install.ts";
import { getNumThreads, setNumThreads } from "./engine/engine.ts";
import { isTraced } from "./record/record.ts";
import type {
  FftFunctions,
  LinalgFunctions,
  NnFunctions,
  SpecialFunctions,
  TorchFunctions,
} from "../../bindings/functions.ts";
import * as checks from "./functions/checks.ts";
import { OPERATORS } from "./torch/operators.ts";
import type { NamedTarget } from "./graph/target.ts";
import {
  device,
  dtype,
  type DTypeArg,
  layout,
  type LayoutArg,
  memoryFormat,
  type MemoryFormatArg,
} from "./base/values.ts";
import * as library from "./library/library.ts";
import { tensor, type TensorInput, type TensorOptions } from "./tensor/construct.ts";
import { Tensor } from "./tensor/tensor.ts";
import { entering } from "./record/stack.ts";
import * as composed from "./torch/composed.ts";
import * as contexts from "./torch/contexts.ts";
import { finfo, iinfo } from "./torch/info.ts";
import { type Operators, ops } from "./torch/ops.ts";
import * as promotion from "./torch/promotion.ts";
import * as random from "./torch/random.ts";
import { checkGiven, checkOptions } from "./base/given.ts";
import { answeringPythonNames } from "./base/pythonNames.ts";

/** The dtypes as constants. */
const DTYPE_CONSTANTS = {
  bool: dtype("bool"),
  uint8: dtype("uint8"),
  int8: dtype("int8"),
  uint16: dtype("uint16"),
  int16: dtype("int16"),
  uint32: dtype("uint32"),
  int32: dtype("int32"),
  uint64: dtype("uint64"),
  int64: dtype("int64"),
  float8_e4m3fn: dtype("float8_e4m3fn"),
  float8_e5m2: dtype("float8_e5m2"),
  float8_e4m3fnuz: dtype("float8_e4m3fnuz"),
  float8_e5m2fnuz: dtype("float8_e5m2fnuz"),
  float8_e8m0fnu: dtype("float8_e8m0fnu"),
  float16: dtype("float16"),
  bfloat16: dtype("bfloat16"),
  float32: dtype("float32"),
  float64: dtype("float64"),
  complex32: dtype("complex32"),
  complex64: dtype("complex64"),
  complex128: dtype("complex128"),
  float: dtype("float32"),
  double: dtype("float64"),
  half: dtype("float16"),
  long: dtype("int64"),
  int: dtype("int32"),
  short: dtype("int16"),
  cfloat: dtype("complex64"),
  cdouble: dtype("complex128"),
  chalf: dtype("complex32"),
} as const satisfies Readonly<Record<string, DTypeArg>>;

/** The layouts and memory formats as constants. */
const FORMAT_CONSTANTS = {
  strided: layout("strided"),
  contiguousFormat: memoryFormat("contiguous_format"),
  channelsLast: memoryFormat("channels_last"),
  channelsLast_3d: memoryFormat("channels_last_3d"),
  preserveFormat: memoryFormat("preserve_format"),
} as const satisfies Readonly<Record<string, LayoutArg | MemoryFormatArg>>;

/** The functions of `torch` that PyTorch writes in Python. */
type ComposedFunctions = Omit<typeof composed, "installComposed">;

/** Functions that graphs refer to by their qualified names, which each has as its `target`. */
export type Named<T> = {
  readonly [K in keyof T]: T[K] extends (...args: never[]) => unknown ? T[K] & NamedTarget : T[K];
};

/** What PyTorch has under the name `torch`. */
export interface Torch
  extends Named<Omit<TorchFunctions, keyof ComposedFunctions>>,
    ComposedFunctions,
    Readonly<typeof DTYPE_CONSTANTS>,
    Readonly<typeof FORMAT_CONSTANTS> {
  /** A tensor with a copy of the data. */
  readonly tensor: typeof tensor;
  /** The data as a tensor: itself where it is one that has the dtype that was asked for. */
  asTensor(data: TensorInput | Tensor, options?: Pick<TensorOptions, "dtype">): Tensor;
  /** A device: the engine runs on `cpu`. */
  readonly device: typeof device;
  /** Whether a value is a tensor. */
  isTensor(value: unknown): value is Tensor;
  /** Whether the dtype of a tensor is one of the floats. */
  isFloatingPoint(input: Tensor): boolean;
  /** Whether the dtype of a tensor is one of the complex ones. */
  isComplex(input: Tensor): boolean;
  /** The number of elements of a tensor. */
  numel(input: Tensor): number;
  readonly promoteTypes: typeof promotion.promoteTypes;
  readonly resultType: typeof promotion.resultType;
  readonly canCast: typeof promotion.canCast;
  readonly finfo: typeof finfo;
  readonly iinfo: typeof iinfo;
  readonly noGrad: typeof contexts.noGrad;
  readonly enableGrad: typeof contexts.enableGrad;
  readonly setGradEnabled: typeof contexts.setGradEnabled;
  readonly isGradEnabled: typeof contexts.isGradEnabled;
  readonly autocast: typeof contexts.autocast;
  readonly isAutocastEnabled: typeof contexts.isAutocastEnabled;
  readonly getAutocastDtype: typeof contexts.getAutocastDtype;
  readonly manualSeed: typeof random.manualSeed;
  readonly seed: typeof random.seed;
  readonly initialSeed: typeof random.initialSeed;
  readonly getRngState: typeof random.getRngState;
  readonly setRngState: typeof random.setRngState;
  readonly getNumThreads: typeof getNumThreads;
  readonly setNumThreads: typeof setNumThreads;
  /** Refuses to go on where the condition does not hold; traced, the check becomes part of the graph. */
  readonly _assert: typeof checks.assert;
  /** Takes a condition on sizes to hold for all inputs of a program. */
  readonly _check: typeof checks.check;
  readonly symFloat: typeof checks.symFloat;
  readonly symInt: typeof checks.symInt;
  readonly symIte: typeof checks.symIte;
  readonly symMax: typeof checks.symMax;
  readonly symMin: typeof checks.symMin;
  readonly symNot: typeof checks.symNot;
  readonly symSum: typeof checks.symSum;
  readonly _symSqrt: typeof checks._symSqrt;
  /** Special functions. */
  readonly special: Named<SpecialFunctions>;
  /** Linear algebra. */
  readonly linalg: Named<LinalgFunctions>;
  /** Fourier transforms. */
  readonly fft: Named<FftFunctions>;
  /** What PyTorch keeps to itself, and `torch.nn.functional` is made of. */
  readonly _C: { readonly _nn: Named<NnFunctions> };
  /** Operators by their own names: `torch.ops.aten.add.Tensor(x, y)`. */
  readonly ops: Operators;
  /** Operators of your own. */
  readonly library: typeof library;
}

const { installComposed: _, ...composedFunctions } = composed;
const { assert: _assert, check: _check, ...sizeFunctions } = checks;

/** The argument, where it is a tensor or stands for one in a trace. */
function tensorGiven(what: string, input: Tensor): Tensor {
  checkGiven(what, input instanceof Tensor || isTraced(input), "a tensor");
  return input;
}

/**
 * What PyTorch has under this name, with JavaScript's spelling: `torch.logSoftmax`, and options in one object at the end.
 * Functions run at once on tensors, and record themselves on traced values.
 *
 * @example
 * ```ts
 * await init();
 * const x = torch.arange(6, { dtype: torch.float32 }).reshape(2, 3);
 * torch.softmax(x, 1).sum({ dim: 1, keepdim: true });
 * ```
 */
export const torch: Torch = Object.freeze({
  // Members that are missing are answered by the end of the prototypes.
  __proto__: answeringPythonNames("torch", {
    advice: {
      nn: 'import { nn } from "tracefx"',
      optim: 'import { optim } from "tracefx"',
      fx: 'import { symbolicTrace, Graph, GraphModule, Interpreter } from "tracefx"',
      export: 'import { exportProgram, Dim, load, save } from "tracefx"',
      compile: 'import { compile } from "tracefx"',
      load: 'import { load, loadCheckpoint } from "tracefx"',
      save: 'import { save } from "tracefx"',
      Tensor: 'import { Tensor } from "tracefx"',
      func: 'import { func } from "tracefx"',
      vmap: 'import { func } from "tracefx": func.vmap',
      cond: 'import { cond } from "tracefx"',
      while_loop: 'import { whileLoop } from "tracefx"',
      autograd:
        'import { func } from "tracefx": func.grad and func.vjp; trained programs are those of exportForwardBackward',
      utils: 'import { checkpoint, treeFlatten, treeMap } from "tracefx"',
      jit: 'import { symbolicTrace, exportProgram } from "tracefx"',
      get_default_dtype: "the default is float32, and each function takes another dtype",
    },
  }),
  ...OPERATORS.torch,
  ...composedFunctions,
  ...DTYPE_CONSTANTS,
  ...FORMAT_CONSTANTS,
  ...contexts,
  ...random,
  getNumThreads,
  setNumThreads,
  ...promotion,
  finfo,
  iinfo,
  ...sizeFunctions,
  _assert,
  _check,
  tensor,
  asTensor: entering((data: TensorInput | Tensor, options: Pick<TensorOptions, "dtype"> = {}): Tensor => {
    checkOptions("asTensor", options, ["dtype"]);
    if (!(data instanceof Tensor)) return tensor(data, options);
    return options.dtype === undefined ? data : data.to(options.dtype);
  }),
  device,
  isTensor: entering((value: unknown) => value instanceof Tensor) as Torch["isTensor"],
  isFloatingPoint: entering((input: Tensor): boolean => tensorGiven("isFloatingPoint", input).isFloatingPoint()),
  isComplex: entering((input: Tensor): boolean => tensorGiven("isComplex", input).isComplex()),
  numel: entering((input: Tensor): number => tensorGiven("numel", input).numel()),
  special: OPERATORS.special,
  linalg: OPERATORS.linalg,
  fft: OPERATORS.fft,
  _C: Object.freeze({ _nn: OPERATORS.nn }),
  ops,
  library,
}) as unknown as Torch;
