/** A classifier of sequences: two layers of long short-term memory, and a head for what they know at the end. */
import { init, nn, slice, type Tensor } from "tracefx";

/** How a {@link SequenceClassifier} is made. */
export interface SequenceClassifierOptions {
  /** The size of one step; 64 by default. */
  readonly inputSize?: number;
  /** The size of the hidden state; 128 by default. */
  readonly hiddenSize?: number;
  /** The number of classes; 10 by default. */
  readonly numClasses?: number;
}

/** A classifier of sequences of any length, with the batch as the first dimension. */
export class SequenceClassifier extends nn.Module {
  lstm: nn.LSTM;
  head: nn.Linear;

  constructor({ inputSize = 64, hiddenSize = 128, numClasses = 10 }: SequenceClassifierOptions = {}) {
    super();
    this.lstm = new nn.LSTM(inputSize, hiddenSize, { numLayers: 2, batchFirst: true });
    this.head = new nn.Linear(hiddenSize, numClasses);
  }

  override forward(x: Tensor): Tensor {
    const [output] = this.lstm.forward(x);
    return this.head.forward(output.get(slice(null), -1));
  }
}

/** Two layers of 128. */
export function lstm(options?: SequenceClassifierOptions): SequenceClassifier {
  return new SequenceClassifier(options);
}

await init();
