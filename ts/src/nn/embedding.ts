/**
 * Vectors by number: `Embedding` and `EmbeddingBag`.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind, type Bound, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { initialise, onEngine } from "./deferred.ts";
import { normal_ } from "./init.ts";
import { Module } from "./module.ts";
import { Parameter } from "./parameter.ts";
import { fields, numberOf, type Scalar } from "./sizes.ts";
import { badInput, newParameter } from "./state.ts";
import { checkOptions } from "../base/given.ts";

/** What both layers have. */
interface TableOptions extends FactoryOptions {
  /** The number of vectors. */
  readonly numEmbeddings?: number;
  /** The size of each. */
  readonly embeddingDim?: number;
  /** The number of a vector that stands for nothing: it begins as zeros. */
  readonly paddingIdx?: number | null;
  /** Vectors that are longer are shortened to this length, in the weight itself. */
  readonly maxNorm?: Scalar | null;
  /** The degree of the norm by which length is measured; 2.0 by default. */
  readonly normType?: Scalar;
  /** Whether gradients are scaled by how often a number occurs; nothing here computes gradients. */
  readonly scaleGradByFreq?: boolean;
  /** Whether the gradient is sparse; nothing here computes gradients. */
  readonly sparse?: boolean;
  /** The vectors; drawn by default. */
  readonly _weight?: Tensor | null;
}

/** What both take of a table that is there already. */
const TABLE_OPTIONS = [
  "numEmbeddings",
  "embeddingDim",
  "paddingIdx",
  "maxNorm",
  "normType",
  "scaleGradByFreq",
  "sparse",
  "device",
  "dtype",
] as const;

/** How an {@link Embedding} is made. */
export interface EmbeddingOptions extends TableOptions {
  /** Whether no gradient is wanted. */
  readonly _freeze?: boolean;
}

/** How an {@link EmbeddingBag} is made. */
export interface EmbeddingBagOptions extends TableOptions {
  /** How the vectors of a bag become one; `mean` by default. */
  readonly mode?: "sum" | "mean" | "max";
  /** Whether the last offset is the end of the last bag; `false` by default. */
  readonly includeLastOffset?: boolean;
}

/** What both layers are. */
abstract class Table extends Module {
  readonly numEmbeddings: number;
  readonly embeddingDim: number;
  readonly paddingIdx: number | null;
  readonly maxNorm: Scalar | null;
  readonly normType: Scalar;
  readonly scaleGradByFreq: boolean;
  readonly sparse: boolean;
  declare weight: Parameter;

  protected constructor(it: Bound<TableOptions>, requiresGrad: boolean) {
    super();
    const { numEmbeddings, embeddingDim, paddingIdx, _weight } = it;
    if (paddingIdx !== null && (paddingIdx >= numEmbeddings || paddingIdx < -numEmbeddings) && paddingIdx !== 0) {
      const name = this instanceof Embedding ? "Padding_idx" : "padding_idx";
      throw badInput(`${name} must be within num_embeddings`);
    }
    this.numEmbeddings = numEmbeddings;
    this.embeddingDim = embeddingDim;
    this.paddingIdx = paddingIdx !== null && paddingIdx < 0 ? numEmbeddings + paddingIdx : paddingIdx;
    this.maxNorm = it.maxNorm;
    this.normType = it.normType;
    this.scaleGradByFreq = it.scaleGradByFreq;
    this.sparse = it.sparse;
    if (_weight === null) {
      this.weight = newParameter([numEmbeddings, embeddingDim], it, requiresGrad);
      initialise(this);
      return;
    }
    if (_weight.shape.join() !== `${numEmbeddings},${embeddingDim}`) {
      throw badInput("Shape of weight does not match num_embeddings and embedding_dim");
    }
    this.weight = new Parameter(_weight, { requiresGrad });
  }

  /** Draws the vectors anew. */
  resetParameters(): void {
    const { weight, paddingIdx } = this;
    normal_(weight);
    if (paddingIdx === null) return;
    onEngine(() => callOperator("aten.zero_", [callOperator("aten.select", [weight, 0, paddingIdx])]));
  }

  /** What is printed after the sizes, in PyTorch's order. */
  protected shownOptions(): Record<string, unknown> {
    const { maxNorm, normType, scaleGradByFreq } = this;
    const res: Record<string, unknown> = {};
    if (maxNorm !== null) res["max_norm"] = maxNorm;
    if (numberOf(normType) !== 2) res["norm_type"] = normType;
    if (scaleGradByFreq) res["scale_grad_by_freq"] = scaleGradByFreq;
    return res;
  }
}

const TABLE = { maxNorm: null, normType: float(2), scaleGradByFreq: false };

/**
 * A vector for each number: `(*)` to `(*, embeddingDim)`.
 *
 * @example
 * ```ts
 * const words = new Embedding(1000, 64, { paddingIdx: 0 });
 * words.forward(tensor([[1, 2], [3, 0]])).shape; // [2, 2, 64]
 * ```
 */
export class Embedding extends Table {
  constructor(
    ...given: Arguments<
      [numEmbeddings: number, embeddingDim: number],
      [
        paddingIdx: number | null,
        maxNorm: Scalar | null,
        normType: Scalar,
        scaleGradByFreq: boolean,
        sparse: boolean,
        _weight: Tensor | null,
        _freeze: boolean,
      ],
      EmbeddingOptions
    >
  ) {
    const it = bind<EmbeddingOptions>("Embedding", given, ["numEmbeddings", "embeddingDim"], {
      paddingIdx: null,
      ...TABLE,
      sparse: false,
      _weight: null,
      _freeze: false,
      ...FACTORY,
    });
    super(it, !it._freeze);
  }

  /** An embedding of these vectors, a row each, that are not to be learnt unless `freeze` is false. */
  static fromPretrained(
    embeddings: Tensor,
    given: Omit<EmbeddingOptions, "_weight" | "_freeze"> & { readonly freeze?: boolean } = {},
  ): Embedding {
    checkOptions("fromPretrained", given, [...TABLE_OPTIONS, "freeze"]);
    const { freeze = true, ...options } = given;
    const [numEmbeddings, embeddingDim] = rowsOf(embeddings);
    return new Embedding(numEmbeddings, embeddingDim, { ...options, _weight: embeddings, _freeze: freeze });
  }

  override forward(input: Tensor): Tensor {
    const { weight, paddingIdx, maxNorm, normType, scaleGradByFreq, sparse } = this;
    return F.embedding(input, weight, paddingIdx, maxNorm, normType, scaleGradByFreq, sparse);
  }

  override extraRepr(): string {
    const { paddingIdx, sparse } = this;
    const options = {
      ...(paddingIdx === null ? {} : { padding_idx: paddingIdx }),
      ...this.shownOptions(),
      ...(sparse ? { sparse } : {}),
    };
    return [`${this.numEmbeddings}, ${this.embeddingDim}`, fields(options)].filter((it) => it !== "").join(", ");
  }
}

/** What an {@link EmbeddingBag} may be called with besides numbers. */
export interface EmbeddingBagCallOptions {
  /** Where each bag begins, where the numbers have one dimension. */
  readonly offsets?: Tensor | null;
  /** A weight for each number. */
  readonly perSampleWeights?: Tensor | null;
}

/**
 * The sum, mean or maximum of the vectors of each bag of numbers: `(N, L)`, or `(L)` with `N` offsets, to
 * `(N, embeddingDim)`.
 */
export class EmbeddingBag extends Table {
  static override readonly forwardSignature: string = "(input, offsets=None, per_sample_weights=None)";
  readonly mode: "sum" | "mean" | "max";
  readonly includeLastOffset: boolean;

  constructor(
    ...given: Arguments<
      [numEmbeddings: number, embeddingDim: number],
      [
        maxNorm: Scalar | null,
        normType: Scalar,
        scaleGradByFreq: boolean,
        mode: "sum" | "mean" | "max",
        sparse: boolean,
        _weight: Tensor | null,
        includeLastOffset: boolean,
        paddingIdx: number | null,
      ],
      EmbeddingBagOptions
    >
  ) {
    const it = bind<EmbeddingBagOptions>("EmbeddingBag", given, ["numEmbeddings", "embeddingDim"], {
      ...TABLE,
      mode: "mean",
      sparse: false,
      _weight: null,
      includeLastOffset: false,
      paddingIdx: null,
      ...FACTORY,
    });
    super(it, true);
    this.mode = it.mode;
    this.includeLastOffset = it.includeLastOffset;
  }

  /** A layer of these vectors, a row each, that are not to be learnt unless `freeze` is false. */
  static fromPretrained(
    embeddings: Tensor,
    given: Omit<EmbeddingBagOptions, "_weight"> & { readonly freeze?: boolean } = {},
  ): EmbeddingBag {
    checkOptions("fromPretrained", given, [...TABLE_OPTIONS, "mode", "includeLastOffset", "freeze"]);
    const { freeze = true, ...options } = given;
    const [numEmbeddings, embeddingDim] = rowsOf(embeddings);
    const res = new EmbeddingBag(numEmbeddings, embeddingDim, { ...options, _weight: embeddings });
    res.weight.requiresGrad = !freeze;
    return res;
  }

  override forward(
    input: Tensor,
    offsets: Tensor | EmbeddingBagCallOptions | null = null,
    perSampleWeights: Tensor | EmbeddingBagCallOptions | null = null,
  ): Tensor {
    const { weight, maxNorm, normType, scaleGradByFreq, mode, sparse, includeLastOffset, paddingIdx } = this;
    return F.embeddingBag(
      input,
      weight,
      offsets as Tensor | null,
      maxNorm,
      normType,
      scaleGradByFreq,
      mode,
      sparse,
      perSampleWeights as Tensor | null,
      includeLastOffset,
      paddingIdx,
    );
  }

  override extraRepr(): string {
    const { paddingIdx } = this;
    const options = {
      ...this.shownOptions(),
      mode: `'${this.mode}'`,
      ...(paddingIdx === null ? {} : { padding_idx: paddingIdx }),
    };
    return `${this.numEmbeddings}, ${this.embeddingDim}, ${fields(options)}`;
  }
}

function rowsOf(embeddings: Tensor): [number, number] {
  const [rows, columns] = embeddings.shape;
  if (embeddings.shape.length === 2) return [rows as number, columns as number];
  throw badInput("Embeddings parameter is expected to be 2-dimensional");
}

markBuiltin({ Embedding, EmbeddingBag });
