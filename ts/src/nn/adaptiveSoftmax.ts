/**
 * The adaptive softmax: for very many classes of very different frequency.
 *
 * @module
 */
import { checkList } from "../base/given.ts";
import { isSame, listText } from "../base/sizes.ts";
import { callOperator } from "../engine/dispatch.ts";
import { float } from "../base/values.ts";
import { tensor } from "../tensor/construct.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type Arguments, bind, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { ModuleList, Sequential } from "./container.ts";
import { Linear } from "./linear.ts";
import { Module } from "./module.ts";
import { numberOf, type Scalar } from "./sizes.ts";
import { badInput, rankOf } from "./state.ts";

/** How an {@link AdaptiveLogSoftmaxWithLoss} is made. */
export interface AdaptiveLogSoftmaxOptions extends FactoryOptions {
  /** The size of each input sample. */
  readonly inFeatures?: number;
  /** The number of classes, the frequent ones first. */
  readonly nClasses?: number;
  /** Where the clusters of classes end, but for the last one. */
  readonly cutoffs?: readonly number[];
  /** By how much each cluster's projection is smaller than that of the one before; 4.0 by default. */
  readonly divValue?: Scalar;
  /** Whether the head has a bias; `false` by default. */
  readonly headBias?: boolean;
}

/** The log probabilities of the targets, and the loss. */
export interface AdaptiveLogSoftmaxOutput {
  readonly output: Tensor;
  readonly loss: Tensor;
}

/**
 * A softmax in clusters. What it computes depends on the values of its input, so a trace takes it for a leaf, as in
 * PyTorch.
 */
export class AdaptiveLogSoftmaxWithLoss extends Module {
  static override readonly forwardSignature: string = "(input_, target_)";
  readonly inFeatures: number;
  readonly nClasses: number;
  readonly cutoffs: readonly number[];
  readonly divValue: Scalar;
  readonly headBias: boolean;
  readonly shortlistSize: number;
  readonly nClusters: number;
  readonly headSize: number;
  declare head: Linear;
  declare tail: ModuleList;

  constructor(
    ...given: Arguments<
      [inFeatures: number, nClasses: number, cutoffs: readonly number[]],
      [divValue: Scalar, headBias: boolean],
      AdaptiveLogSoftmaxOptions
    >
  ) {
    super();
    const names = ["inFeatures", "nClasses", "cutoffs"] as const;
    const defaults = { divValue: float(4), headBias: false, ...FACTORY };
    const it = bind<AdaptiveLogSoftmaxOptions>("AdaptiveLogSoftmaxWithLoss", given, names, defaults);
    const { inFeatures, nClasses, cutoffs, dtype } = it;
    checkList("AdaptiveLogSoftmaxWithLoss", "cutoffs", cutoffs);
    if (cutoffs.length === 0) throw badInput("cutoffs should be a sequence of length larger than 0");
    const isRising = cutoffs.every((cutoff, at) => Number.isInteger(cutoff) && cutoff > (cutoffs[at - 1] ?? 0));
    if (!isRising || (cutoffs.at(-1) as number) > nClasses - 1) {
      throw badInput(
        "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 and n_classes-1",
      );
    }
    this.inFeatures = inFeatures;
    this.nClasses = nClasses;
    this.cutoffs = [...cutoffs, nClasses];
    this.divValue = it.divValue;
    this.headBias = it.headBias;
    this.shortlistSize = cutoffs[0] as number;
    this.nClusters = cutoffs.length;
    this.headSize = this.shortlistSize + this.nClusters;
    this.head = new Linear(inFeatures, this.headSize, { bias: it.headBias, dtype });
    this.tail = new ModuleList();
    for (let cluster = 0; cluster < this.nClusters; cluster++) {
      const hidden = Math.floor(inFeatures / numberOf(it.divValue) ** (cluster + 1));
      const size = (this.cutoffs[cluster + 1] as number) - (this.cutoffs[cluster] as number);
      const options = { bias: false, dtype };
      this.tail.append(new Sequential(new Linear(inFeatures, hidden, options), new Linear(hidden, size, options)));
    }
  }

  /** Draws the parameters anew. */
  resetParameters(): void {
    for (const module of this.modules()) if (module instanceof Linear) module.resetParameters();
  }

  override forward(input: Tensor, target: Tensor): AdaptiveLogSoftmaxOutput {
    const isBatched = checkRanks(input, target, rankOf(this, target));
    const samples = isBatched ? input : input.unsqueeze(0);
    const classes = [(isBatched ? target : target.unsqueeze(0)).toArray()].flat(2).map(Number);
    const wrong = classes.find((it) => it < 0 || it >= this.nClasses);
    if (wrong !== undefined) {
      throw badInput(`Target values should be in [0, ${this.nClasses - 1}], but the value ${wrong} was found`);
    }
    const clusters = classes.map((it) => this.cutoffs.findIndex((cutoff) => it < cutoff));
    // The head tells a class of the shortlist, or a cluster.
    const heads = classes.map((it, row) => (clusters[row] === 0 ? it : this.shortlistSize + Number(clusters[row]) - 1));
    let output = pick(logSoftmax(this.head.forward(samples)), heads);
    for (let cluster = 1; cluster <= this.nClusters; cluster++) {
      const rows = clusters.flatMap((it, row) => (it === cluster ? [row] : []));
      if (rows.length === 0) continue;
      const index = tensor(rows, { dtype: "int64" });
      const scores = this.clusterOutput(cluster, callOperator("aten.index_select", [samples, 0, index]) as Tensor);
      const first = this.cutoffs[cluster - 1] as number;
      const inside = pick(
        logSoftmax(scores),
        rows.map((row) => (classes[row] as number) - first),
      );
      output = callOperator("aten.index_add", [output, 0, index, inside]) as Tensor;
    }
    const loss = callOperator("aten.mean", [callOperator("aten.neg", [output])]) as Tensor;
    return { output: isBatched ? output : output.squeeze(0), loss };
  }

  /** The log probabilities of all classes. */
  logProb(input: Tensor): Tensor {
    const head = logSoftmax(this.head.forward(input));
    const parts = [columns(head, 0, this.shortlistSize)];
    for (let cluster = 1; cluster <= this.nClusters; cluster++) {
      const at = this.shortlistSize + cluster - 1;
      const inside = logSoftmax(this.clusterOutput(cluster, input));
      parts.push(callOperator("aten.add", [inside, columns(head, at, at + 1)]) as Tensor);
    }
    return callOperator("aten.cat", [parts, 1]) as Tensor;
  }

  /** The most probable class of each sample. */
  predict(input: Tensor): Tensor {
    const best = callOperator("aten.argmax", [this.head.forward(input), 1]);
    const isCluster = callOperator("aten.ge", [best, this.shortlistSize]);
    const ofAll = callOperator("aten.argmax", [this.logProb(input), 1]);
    return callOperator("aten.where", [isCluster, ofAll, best]) as Tensor;
  }

  private clusterOutput(cluster: number, input: Tensor): Tensor {
    return this.tail.at(cluster - 1).call(input) as Tensor;
  }
}

function checkRanks(input: Tensor, target: Tensor, rank: number): boolean {
  if (rank > 1) throw badInput("0D or 1D target tensor expected, multi-target not supported");
  if (rank === 1 && !isSame(input.shape[0], target.shape[0])) {
    throw badInput("Input and target should have the same size in the batch dimension.");
  }
  if (input.shape.length !== rank + 1) {
    const what = `${rank}D target tensor expects ${rank + 1}D input tensors`;
    throw badInput(`${what}, but found inputs with size torch.Size([${listText(input.shape)}])`);
  }
  return rank === 1;
}

function logSoftmax(scores: Tensor): Tensor {
  return callOperator("aten.log_softmax", [scores, 1]) as Tensor;
}

function columns(matrix: Tensor, start: number, end: number): Tensor {
  return callOperator("aten.slice", [matrix, 1, start, end]) as Tensor;
}

/** One element of each row. */
function pick(rows: Tensor, places: readonly number[]): Tensor {
  const index = tensor(
    places.map((it) => [it]),
    { dtype: "int64" },
  );
  return (callOperator("aten.gather", [rows, 1, index]) as Tensor).squeeze(1);
}

markBuiltin({ AdaptiveLogSoftmaxWithLoss });
