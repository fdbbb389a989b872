/**
 * Recurrent layers: `RNN`, `LSTM`, `GRU`.
 *
 * What they do depends on the shape of their input, so a trace takes them for leaves, as in PyTorch.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { areSame, isSame, listText, textOf } from "../base/sizes.ts";
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../base/errors.ts";
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type Arguments, bind, type Bound, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin, markShared } from "./builtin.ts";
import { initialise } from "./deferred.ts";
import { uniform_ } from "./init.ts";
import { Module } from "./module.ts";
import { PackedSequence } from "./packed.ts";
import { floatOf, numberOf, type Scalar, str } from "./sizes.ts";
import { badInput, newParameter, rankOf } from "./state.ts";

/** How a recurrent layer is made. */
export interface GRUOptions extends FactoryOptions {
  /** The size of each input sample. */
  readonly inputSize?: number;
  /** The size of the hidden state. */
  readonly hiddenSize?: number;
  /** The number of layers, each of which takes the output of the one before; 1 by default. */
  readonly numLayers?: number;
  /** Whether there are biases; `true` by default. */
  readonly bias?: boolean;
  /** Whether the batch is the first dimension and the sequence the second; `false` by default. */
  readonly batchFirst?: boolean;
  /** The probability of dropping outputs between layers; 0.0 by default. */
  readonly dropout?: Scalar;
  /** Whether there is a second layer that runs from the end; `false` by default. */
  readonly bidirectional?: boolean;
}

/** How an {@link RNN} is made. */
export interface RNNOptions extends GRUOptions {
  /** The activation; `tanh` by default. */
  readonly nonlinearity?: "tanh" | "relu";
}

/** How an {@link LSTM} is made. */
export interface LSTMOptions extends GRUOptions {
  /** The size that the hidden state is projected to; 0, the default, for none. */
  readonly projSize?: number;
}

type RNNMode = "RNN_TANH" | "RNN_RELU" | "LSTM" | "GRU";

const GATES: Record<RNNMode, number> = { RNN_TANH: 1, RNN_RELU: 1, GRU: 3, LSTM: 4 };
const OPERATORS: Record<RNNMode, string> = {
  RNN_TANH: "aten.rnn_tanh",
  RNN_RELU: "aten.rnn_relu",
  GRU: "aten.gru",
  LSTM: "aten.lstm",
};

/** An input as the operators take it. */
interface Batch {
  readonly data: Tensor;
  /** The number of sequences. */
  readonly size: number;
  /** The input where it was packed. */
  readonly packed: PackedSequence | null;
  /** Whether the input had a batch. */
  readonly isBatched: boolean;
}

/** What all recurrent layers are. */
export abstract class RNNBase extends Module {
  static override readonly forwardSignature: string = "(input, hx=None)";
  readonly mode: RNNMode;
  readonly inputSize: number;
  readonly hiddenSize: number;
  readonly numLayers: number;
  /** Whether there are biases; their names are `bias_ih_l0` and so on. */
  readonly bias: boolean;
  readonly batchFirst: boolean;
  readonly dropout: Scalar;
  readonly bidirectional: boolean;
  readonly projSize: number;

  protected constructor(mode: RNNMode, it: Bound<LSTMOptions>) {
    super();
    checkGiven("RNNBase", typeof it === "object" && it !== null, "the options of a subclass");
    check(it);
    this.mode = mode;
    this.inputSize = it.inputSize;
    this.hiddenSize = it.hiddenSize;
    this.numLayers = it.numLayers;
    this.bias = it.bias;
    this.batchFirst = it.batchFirst;
    this.dropout = floatOf(it.dropout);
    this.bidirectional = it.bidirectional;
    this.projSize = it.projSize;
    const gates = GATES[mode] * it.hiddenSize;
    const hidden = this.outputSize;
    for (const [at, names] of this.weightNames().entries()) {
      const input = at < this.numDirections ? it.inputSize : hidden * this.numDirections;
      for (const name of names) {
        const shape = name.startsWith("weight_ih")
          ? [gates, input]
          : name.startsWith("weight_hh")
            ? [gates, hidden]
            : name.startsWith("weight_hr")
              ? [it.projSize, it.hiddenSize]
              : [gates];
        this.registerParameter(name, newParameter(shape, it));
      }
    }
    initialise(this);
  }

  /** Draws the parameters anew. */
  resetParameters(): void {
    const bound = 1 / Math.sqrt(this.hiddenSize);
    for (const parameter of this.parameters()) uniform_(parameter, -bound, bound);
  }

  /** The parameters of each layer, those that run from the end after those that run from the start. */
  get allWeights(): Tensor[][] {
    return this.weightNames().map((names) => names.map((name) => Reflect.get(this, name) as Tensor));
  }

  override extraRepr(): string {
    const shown = [`${this.inputSize}, ${this.hiddenSize}`];
    if (this.projSize !== 0) shown.push(`proj_size=${this.projSize}`);
    if (this.numLayers !== 1) shown.push(`num_layers=${this.numLayers}`);
    if (!this.bias) shown.push("bias=False");
    if (this.batchFirst) shown.push("batch_first=True");
    if (numberOf(this.dropout) !== 0) shown.push(`dropout=${str(this.dropout)}`);
    if (this.bidirectional) shown.push("bidirectional=True");
    return shown.join(", ");
  }

  /** The size of what is given on: that of the hidden state, or of its projection. */
  protected get outputSize(): number {
    return this.projSize > 0 ? this.projSize : this.hiddenSize;
  }

  protected get numDirections(): number {
    return this.bidirectional ? 2 : 1;
  }

  /** The input with a batch, and how to bring back what was changed of it. */
  protected prepared(input: Tensor | PackedSequence): Batch {
    if (input instanceof PackedSequence) {
      this.checkInput(input.data, 2);
      return { data: input.data, size: Number(input.batchSizes.select(0, 0).item()), packed: input, isBatched: true };
    }
    const rank = rankOf(this, input);
    if (rank !== 2 && rank !== 3) {
      const [what, noun] = this.mode.startsWith("RNN") ? ["RNN", "D tensor instead"] : [this.mode, "D instead"];
      throw badInput(`${what}: Expected input to be 2D or 3D, got ${rank}${noun}`);
    }
    const data = rank === 3 ? input : input.unsqueeze(this.batchFirst ? 0 : 1);
    this.checkInput(data, 3);
    return { data, size: data.shape[this.batchFirst ? 0 : 1] as number, packed: null, isBatched: rank === 3 };
  }

  /** A hidden state of zeros. */
  protected noState({ data, size }: Batch, width: number): Tensor {
    const sizes = [this.numLayers * this.numDirections, size, width];
    return callOperator("aten.zeros", [sizes], { dtype: data.dtype }) as Tensor;
  }

  /** A given hidden state, with a batch in the order of the input. */
  protected stateOf(state: Tensor, batch: Batch, width: number, what: string): Tensor {
    const batched = batch.isBatched ? state : state.unsqueeze(1);
    const expected = [this.numLayers * this.numDirections, batch.size, width];
    if (!areSame(batched.shape, expected)) {
      throw fxError("ShapeMismatch", `Expected ${what} size (${listText(expected)}), got [${listText(batched.shape)}]`);
    }
    return permuted(batched, batch.packed?.sortedIndices ?? null);
  }

  /** Runs all layers. */
  protected run({ data, packed }: Batch, state: Tensor | readonly Tensor[]): Tensor[] {
    const { bias, numLayers, dropout, training, bidirectional, batchFirst } = this;
    const options = [this.allWeights.flat(), bias, numLayers, floatOf(dropout), training, bidirectional];
    const operator = OPERATORS[this.mode];
    return (
      packed === null
        ? callOperator(`${operator}.input`, [data, state, ...options, batchFirst])
        : callOperator(`${operator}.data`, [data, packed.batchSizes, state, ...options])
    ) as Tensor[];
  }

  /** The outputs as the input was. */
  protected outputOf(output: Tensor, { packed, isBatched }: Batch): Tensor | PackedSequence {
    if (packed !== null) return packed.withData(output);
    return isBatched ? output : output.squeeze(this.batchFirst ? 0 : 1);
  }

  /** The last states as the input was. */
  protected lastState(state: Tensor, { packed, isBatched }: Batch): Tensor {
    return permuted(isBatched ? state : state.squeeze(1), packed?.unsortedIndices ?? null);
  }

  private checkInput({ dtype, shape }: Tensor, rank: number): void {
    const [[first] = []] = this.allWeights;
    if (first !== undefined && dtype !== first.dtype) {
      throw fxError(
        "DTypeMismatch",
        `RNN input dtype (torch.${dtype}) does not match weight dtype (torch.${first.dtype})`,
        { help: "convert the input or the model" },
      );
    }
    if (shape.length !== rank) throw badInput(`input must have ${rank} dimensions, got ${shape.length}`);
    const width = shape.at(-1);
    if (isSame(width, this.inputSize)) return;
    throw fxError(
      "ShapeMismatch",
      `input.size(-1) must be equal to input_size. Expected ${this.inputSize}, got ${textOf(width)}`,
    );
  }

  private weightNames(): string[][] {
    const kinds = ["weight_ih", "weight_hh"];
    if (this.bias) kinds.push("bias_ih", "bias_hh");
    if (this.projSize > 0) kinds.push("weight_hr");
    const suffixes = this.bidirectional ? ["", "_reverse"] : [""];
    return Array.from({ length: this.numLayers }, (_, layer) => layer).flatMap((layer) =>
      suffixes.map((suffix) => kinds.map((kind) => `${kind}_l${layer}${suffix}`)),
    );
  }
}

/** What a recurrent layer with one state may be called with besides its input. */
export interface RecurrentCallOptions {
  /** The hidden state to begin with; zeros by default. */
  readonly hx?: Tensor | null;
}

/** What `RNN` and `GRU` are: layers with one state. */
abstract class SingleState extends RNNBase {
  /** The outputs of the last layer, and the last hidden states. */
  override forward(input: PackedSequence, hx?: Tensor | RecurrentCallOptions | null): readonly [PackedSequence, Tensor];
  override forward(input: Tensor, hx?: Tensor | RecurrentCallOptions | null): readonly [Tensor, Tensor];
  override forward(
    input: Tensor | PackedSequence,
    hx: Tensor | RecurrentCallOptions | null = null,
  ): readonly [Tensor | PackedSequence, Tensor] {
    const batch = this.prepared(input);
    const given = hx as Tensor | null;
    if (given !== null && given.shape.length !== (batch.isBatched ? 3 : 2)) {
      const [what, rank] = batch.isBatched ? ["batched 3-D", 3] : ["unbatched 2-D", 2];
      throw badInput(`For ${what} input, hx should also be ${rank}-D but got ${given.shape.length}-D tensor`);
    }
    const state =
      given === null ? this.noState(batch, this.hiddenSize) : this.stateOf(given, batch, this.hiddenSize, "hidden");
    const [output, hidden] = this.run(batch, state) as [Tensor, Tensor];
    return [this.outputOf(output, batch), this.lastState(hidden, batch)];
  }
}

const GRU_DEFAULTS = {
  bias: true,
  batchFirst: false,
  dropout: float(0),
  bidirectional: false,
  ...FACTORY,
};

/**
 * The layer of Elman: `(L, N, inputSize)`, or `(N, L, inputSize)` with `batchFirst`, to `hiddenSize` features and the last
 * state.
 */
export class RNN extends SingleState {
  readonly nonlinearity: "tanh" | "relu";

  constructor(
    ...given: Arguments<
      [inputSize: number, hiddenSize: number],
      [
        numLayers: number,
        nonlinearity: "tanh" | "relu",
        bias: boolean,
        batchFirst: boolean,
        dropout: Scalar,
        bidirectional: boolean,
      ],
      RNNOptions
    >
  ) {
    const defaults = { numLayers: 1, nonlinearity: "tanh" as const, ...GRU_DEFAULTS };
    const it = bind<RNNOptions>("RNN", given, ["inputSize", "hiddenSize"], defaults);
    if (it.nonlinearity !== "tanh" && it.nonlinearity !== "relu") {
      throw badInput(`Unknown nonlinearity '${String(it.nonlinearity)}'. Select from 'tanh' or 'relu'.`);
    }
    super(it.nonlinearity === "tanh" ? "RNN_TANH" : "RNN_RELU", { ...it, projSize: 0 });
    this.nonlinearity = it.nonlinearity;
  }
}

/**
 * Gated recurrent units: `(L, N, inputSize)`, or `(N, L, inputSize)` with `batchFirst`, to `hiddenSize` features and the last
 * state.
 */
export class GRU extends SingleState {
  constructor(
    ...given: Arguments<
      [inputSize: number, hiddenSize: number],
      [numLayers: number, bias: boolean, batchFirst: boolean, dropout: Scalar, bidirectional: boolean],
      GRUOptions
    >
  ) {
    const defaults = { numLayers: 1, ...GRU_DEFAULTS };
    super("GRU", { ...bind<GRUOptions>("GRU", given, ["inputSize", "hiddenSize"], defaults), projSize: 0 });
  }
}

/** What an {@link LSTM} or {@link LSTMCell} may be called with besides its input. */
export interface LSTMCallOptions {
  /** The hidden state and the cell state to begin with; zeros by default. */
  readonly hx?: readonly [Tensor, Tensor] | null;
}

/**
 * Long short-term memory: `(L, N, inputSize)`, or `(N, L, inputSize)` with `batchFirst`, to `hiddenSize` features and the
 * last state.
 *
 * @example
 * ```ts
 * const lstm = new LSTM(8, 16, { numLayers: 2, batchFirst: true });
 * const [output, [hidden, cell]] = lstm.forward(torch.zeros([1, 5, 8]));
 * output.shape; // [1, 5, 16]
 * ```
 */
export class LSTM extends RNNBase {
  constructor(
    ...given: Arguments<
      [inputSize: number, hiddenSize: number],
      [
        numLayers: number,
        bias: boolean,
        batchFirst: boolean,
        dropout: Scalar,
        bidirectional: boolean,
        projSize: number,
      ],
      LSTMOptions
    >
  ) {
    const { device, dtype, ...common } = GRU_DEFAULTS;
    const defaults = { numLayers: 1, ...common, projSize: 0, device, dtype };
    super("LSTM", bind<LSTMOptions>("LSTM", given, ["inputSize", "hiddenSize"], defaults));
  }

  /** The outputs of the last layer, and the last hidden and cell states. */
  override forward(
    input: PackedSequence,
    hx?: readonly [Tensor, Tensor] | LSTMCallOptions | null,
  ): readonly [output: PackedSequence, state: readonly [hidden: Tensor, cell: Tensor]];
  override forward(
    input: Tensor,
    hx?: readonly [Tensor, Tensor] | LSTMCallOptions | null,
  ): readonly [output: Tensor, state: readonly [hidden: Tensor, cell: Tensor]];
  override forward(
    input: Tensor | PackedSequence,
    hx: readonly [Tensor, Tensor] | LSTMCallOptions | null = null,
  ): readonly [output: Tensor | PackedSequence, state: readonly [hidden: Tensor, cell: Tensor]] {
    const batch = this.prepared(input);
    const given = hx as readonly [Tensor, Tensor] | null;
    if (given?.some((it) => it.shape.length !== (batch.isBatched ? 3 : 2))) {
      const [what, rank] = batch.isBatched ? ["batched 3-D", 3] : ["unbatched 2-D", 2];
      const got = given.map((it) => `${it.shape.length}-D`).join(", ");
      throw badInput(`For ${what} input, hx and cx should also be ${rank}-D but got (${got}) tensors`);
    }
    const state =
      given === null
        ? [this.noState(batch, this.outputSize), this.noState(batch, this.hiddenSize)]
        : [
            this.stateOf(given[0], batch, this.outputSize, "hidden[0]"),
            this.stateOf(given[1], batch, this.hiddenSize, "hidden[1]"),
          ];
    const [output, hidden, cell] = this.run(batch, state) as [Tensor, Tensor, Tensor];
    return [this.outputOf(output, batch), [this.lastState(hidden, batch), this.lastState(cell, batch)]];
  }
}

/** The sequences of a batch in another order. */
function permuted(state: Tensor, indices: Tensor | null): Tensor {
  return indices === null ? state : (callOperator("aten.index_select", [state, 1, indices]) as Tensor);
}

function check(it: Bound<LSTMOptions>): void {
  const dropout = it.dropout as unknown;
  const value = typeof dropout === "boolean" ? Number.NaN : numberOf(it.dropout);
  if (!(value >= 0 && value <= 1)) {
    throw badInput(
      "dropout should be a number in range [0, 1] representing the probability of an element being zeroed",
    );
  }
  for (const name of ["bias", "batchFirst"] as const) {
    if (typeof it[name] === "boolean") continue;
    throw badInput(`${name === "bias" ? name : "batch_first"} should be of type bool, got: ${typeof it[name]}`);
  }
  for (const name of ["inputSize", "hiddenSize"] as const) {
    const spelled = name === "inputSize" ? "input_size" : "hidden_size";
    if (!Number.isInteger(it[name])) throw badInput(`${spelled} should be of type int, got: ${typeof it[name]}`);
    if (it[name] <= 0) throw badInput(`${spelled} must be greater than zero`);
  }
  if (it.numLayers <= 0) throw badInput("num_layers must be greater than zero");
  if (it.projSize < 0) throw badInput("proj_size should be a positive integer or zero to disable projections");
  if (it.projSize >= it.hiddenSize) throw badInput("proj_size has to be smaller than hidden_size");
}

markShared(SingleState);
markBuiltin({ RNN, GRU, LSTM });
