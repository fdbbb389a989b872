/** Layers of `nn`. */
import { nn, tuple } from "../../src/index.ts";
import { type Case, ints, layer, modes, zeros } from "./case.ts";

const { Sequential } = nn;

export const LAYERS: Readonly<Record<string, Case>> = {
  ...modes(
    "dropout",
    () => new Sequential(new nn.Dropout(0.3), new nn.Linear(4, 4)),
    () => zeros(2, 4),
  ),
  ...modes(
    "norms",
    () =>
      new Sequential(
        new nn.BatchNorm2d(3),
        new nn.GroupNorm(3, 3),
        new nn.InstanceNorm2d(3, { affine: true, trackRunningStats: true }),
      ),
    () => zeros(2, 3, 5, 5),
  ),
  ...modes(
    "encoder_layer",
    () => new nn.TransformerEncoderLayer(8, 2, 16, { dropout: 0.1, batchFirst: true }),
    () => zeros(2, 5, 8),
  ),
  lstm: layer(
    () => new nn.LSTM(4, 3, 2),
    () => zeros(5, 2, 4),
  ),
  lstm_with_state: layer(
    () => new nn.LSTM(4, 3, { bidirectional: true, batchFirst: true }),
    () => zeros(2, 5, 4),
    () => tuple(zeros(2, 2, 3), zeros(2, 2, 3)),
  ),
  gru: layer(
    () => new nn.GRU(4, 3),
    () => zeros(5, 2, 4),
  ),
  rnn: layer(
    () => new nn.RNN(4, 3, { nonlinearity: "relu" }),
    () => zeros(5, 2, 4),
  ),
  lstm_cell: layer(
    () => new nn.LSTMCell(4, 3),
    () => zeros(2, 4),
  ),
  gru_cell: layer(
    () => new nn.GRUCell(4, 3),
    () => zeros(2, 4),
    () => zeros(2, 3),
  ),
  attention: layer(
    () => new nn.MultiheadAttention(8, 2),
    () => zeros(5, 2, 8),
    () => zeros(5, 2, 8),
    () => zeros(5, 2, 8),
  ),
  attention_without_weights: {
    module: () => new nn.MultiheadAttention(8, 2, { batchFirst: true }),
    args: () => [zeros(2, 5, 8), zeros(2, 5, 8), zeros(2, 5, 8)],
    kwargs: () => ({ need_weights: false }),
  },
  embedding: layer(
    () => new nn.Embedding(10, 4, { paddingIdx: 0 }),
    () => ints(2, 3),
  ),
  embedding_bag: layer(
    () => new nn.EmbeddingBag(10, 4, { mode: "sum" }),
    () => ints(2, 3),
  ),
  conv1d: layer(
    () => new nn.Conv1d(4, 6, 3, { stride: 2, padding: 1, dilation: 2, groups: 2, bias: false }),
    () => zeros(2, 4, 9),
  ),
  conv_same: layer(
    () => new nn.Conv2d(2, 2, 3, { padding: "same" }),
    () => zeros(1, 2, 4, 4),
  ),
  conv_circular: layer(
    () => new nn.Conv2d(2, 2, 3, { padding: 1, paddingMode: "circular" }),
    () => zeros(1, 2, 4, 4),
  ),
  conv_transposed: layer(
    () => new nn.ConvTranspose2d(2, 3, 3, { stride: 2, outputPadding: 1 }),
    () => zeros(1, 2, 4, 4),
  ),
  pools: layer(
    () =>
      new Sequential(new nn.MaxPool2d(3, 2, 1), new nn.AvgPool2d(2, 1), new nn.AdaptiveMaxPool2d(1), new nn.Flatten()),
    () => zeros(1, 2, 8, 8),
  ),
  activations: layer(
    () =>
      new Sequential(
        new nn.SiLU(),
        new nn.GELU({ approximate: "tanh" }),
        new nn.ELU(),
        new nn.LeakyReLU(0.1),
        new nn.Hardtanh(),
        new nn.PReLU(),
        new nn.Softplus(),
        new nn.Mish(),
        new nn.Hardswish(),
        new nn.LogSigmoid(),
        new nn.Softmax(-1),
        new nn.ReLU6(),
        new nn.SELU(),
        new nn.Sigmoid(),
        new nn.GLU(),
        new nn.ReLU({ inplace: true }),
      ),
    () => zeros(2, 4),
  ),
  cross_entropy: layer(
    () => new nn.CrossEntropyLoss({ labelSmoothing: 0.1 }),
    () => zeros(3, 5),
    () => ints(3),
  ),
  mse: layer(
    () => new nn.MSELoss(),
    () => zeros(3, 5),
    () => zeros(3, 5),
  ),
  bce: layer(
    () => new nn.BCEWithLogitsLoss(),
    () => zeros(3),
    () => zeros(3),
  ),
  huber: layer(
    () => new nn.SmoothL1Loss({ reduction: "sum" }),
    () => zeros(3),
    () => zeros(3),
  ),
  kl: layer(
    () => new nn.KLDivLoss({ reduction: "batchmean" }),
    () => zeros(3, 5),
    () => zeros(3, 5),
  ),
};
