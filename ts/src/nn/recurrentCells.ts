/**
 * One step of a recurrent layer: `RNNCell`, `LSTMCell`, `GRUCell`.
 *
 * What they do depends on the shape of their input, so a trace takes them for leaves, as in PyTorch.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { callOperator } from "../engine/dispatch.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type Arguments, bind, type Bound, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { initialise } from "./deferred.ts";
import { uniform_ } from "./init.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";
import type { LSTMCallOptions, RecurrentCallOptions } from "./recurrent.ts";
import { badInput, newParameter, rankOf } from "./state.ts";

/** How a cell is made. */
export interface CellOptions extends FactoryOptions {
  /** The size of each input sample. */
  readonly inputSize?: number;
  /** The size of the hidden state. */
  readonly hiddenSize?: number;
  /** Whether there are biases; `true` by default. */
  readonly bias?: boolean;
}

/** How an {@link RNNCell} is made. */
export interface RNNCellOptions extends CellOptions {
  /** The activation; `tanh` by default. */
  readonly nonlinearity?: "tanh" | "relu";
}

type CellArguments = Arguments<[inputSize: number, hiddenSize: number], [bias: boolean], CellOptions>;

/** What all cells are. */
export abstract class RNNCellBase extends Module {
  static override readonly forwardSignature: string = "(input, hx=None)";
  readonly inputSize: number;
  readonly hiddenSize: number;
  /** Whether there are biases, `bias_ih` and `bias_hh`. */
  readonly bias: boolean;
  declare weight_ih: Parameter;
  declare weight_hh: Parameter;
  declare bias_ih: Parameter | null;
  declare bias_hh: Parameter | null;

  protected constructor(gates: number, it: Bound<CellOptions>) {
    super();
    checkGiven("RNNCellBase", typeof it === "object" && it !== null, "the options of a subclass");
    const { inputSize, hiddenSize, bias } = it;
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    this.bias = bias;
    this.weight_ih = newParameter([gates * hiddenSize, inputSize], it);
    this.weight_hh = newParameter([gates * hiddenSize, hiddenSize], it);
    this.bias_ih = bias ? newParameter([gates * hiddenSize], it) : null;
    this.bias_hh = bias ? newParameter([gates * hiddenSize], it) : null;
    initialise(this);
  }

  /** Draws the parameters anew. */
  resetParameters(): void {
    const bound = this.hiddenSize > 0 ? 1 / Math.sqrt(this.hiddenSize) : 0;
    for (const parameter of this.parameters()) uniform_(parameter, -bound, bound);
  }

  override extraRepr(): string {
    return `${this.inputSize}, ${this.hiddenSize}${this.bias ? "" : ", bias=False"}`;
  }

  /** One step of a cell with one state. */
  protected step(operator: string, input: Tensor, hx: Tensor | null): Tensor {
    const batch = this.batched(input);
    if (hx !== null) this.checkRank(hx, "hidden");
    const state = hx === null ? this.noState(batch) : batch === input ? hx : hx.unsqueeze(0);
    const res = callOperator(operator, [batch, state, ...this.weights()]) as Tensor;
    return batch === input ? res : res.squeeze(0);
  }

  /** The input with a batch. */
  protected batched(input: Tensor): Tensor {
    return this.checkRank(input, "input") === 2 ? input : input.unsqueeze(0);
  }

  protected checkRank(tensor: Tensor, what: string): number {
    const rank = rankOf(this, tensor);
    if (rank === 1 || rank === 2) return rank;
    throw badInput(`${this.className}: Expected ${what} to be 1D or 2D, got ${rank}D instead`);
  }

  protected noState(batch: Tensor): Tensor {
    return callOperator("aten.zeros", [[batch.shape[0], this.hiddenSize]], { dtype: batch.dtype }) as Tensor;
  }

  protected weights(): (Tensor | null)[] {
    return [this.weight_ih, this.weight_hh, this.bias_ih, this.bias_hh];
  }
}

/** One step of an {@link RNN}: `(N, inputSize)` to `(N, hiddenSize)`. */
export class RNNCell extends RNNCellBase {
  readonly nonlinearity: "tanh" | "relu";

  constructor(
    ...given: Arguments<
      [inputSize: number, hiddenSize: number],
      [bias: boolean, nonlinearity: "tanh" | "relu"],
      RNNCellOptions
    >
  ) {
    const defaults = { bias: true, nonlinearity: "tanh" as const, ...FACTORY };
    const it = bind<RNNCellOptions>("RNNCell", given, ["inputSize", "hiddenSize"], defaults);
    super(1, it);
    this.nonlinearity = it.nonlinearity;
  }

  /** The next hidden state. */
  override forward(input: Tensor, hx: Tensor | RecurrentCallOptions | null = null): Tensor {
    if (this.nonlinearity !== "tanh" && this.nonlinearity !== "relu") {
      throw badInput(`Unknown nonlinearity: ${String(this.nonlinearity)}`);
    }
    return this.step(`aten.rnn_${this.nonlinearity}_cell`, input, hx as Tensor | null);
  }

  override extraRepr(): string {
    const { nonlinearity } = this;
    return super.extraRepr() + (nonlinearity === "tanh" ? "" : `, nonlinearity=${nonlinearity}`);
  }
}

/** One step of a {@link GRU}: `(N, inputSize)` to `(N, hiddenSize)`. */
export class GRUCell extends RNNCellBase {
  constructor(...given: CellArguments) {
    super(3, bind<CellOptions>("GRUCell", given, ["inputSize", "hiddenSize"], { bias: true, ...FACTORY }));
  }

  /** The next hidden state. */
  override forward(input: Tensor, hx: Tensor | RecurrentCallOptions | null = null): Tensor {
    return this.step("aten.gru_cell", input, hx as Tensor | null);
  }
}

/** One step of an {@link LSTM}: `(N, inputSize)` to a hidden and a cell state `(N, hiddenSize)`. */
export class LSTMCell extends RNNCellBase {
  constructor(...given: CellArguments) {
    super(4, bind<CellOptions>("LSTMCell", given, ["inputSize", "hiddenSize"], { bias: true, ...FACTORY }));
  }

  /** The next hidden and cell states. */
  override forward(
    input: Tensor,
    hx: readonly [Tensor, Tensor] | LSTMCallOptions | null = null,
  ): readonly [hidden: Tensor, cell: Tensor] {
    const batch = this.batched(input);
    const given = hx as readonly [Tensor, Tensor] | null;
    for (const [at, it] of (given ?? []).entries()) this.checkRank(it, `hx[${at}]`);
    const isBatched = batch === input;
    const none = given === null ? this.noState(batch) : undefined;
    const state = given === null ? [none, none] : given.map((it) => (isBatched ? it : it.unsqueeze(0)));
    const [hidden, cell] = callOperator("aten.lstm_cell", [batch, state, ...this.weights()]) as [Tensor, Tensor];
    return isBatched ? [hidden, cell] : [hidden.squeeze(0), cell.squeeze(0)];
  }
}

markBuiltin({ RNNCell, GRUCell, LSTMCell });
