import { beforeAll, describe, expect, test } from "vitest";
import { FxError, init, nn, type Tensor, tensor, torch } from "../../src/index.ts";

beforeAll(() => init());

const { packPaddedSequence, packSequence, padPackedSequence, padSequence, unpackSequence } = nn.rnn;

describe("packed sequences", () => {
  test("are padded again as they were", () => {
    const x = tensor([
      [1, 2, 3],
      [4, 0, 0],
      [5, 6, 0],
    ]);
    const packed = packPaddedSequence(x, [3, 1, 2], { batchFirst: true, enforceSorted: false });
    expect(packed.data.toArray()).toEqual([1, 5, 4, 2, 6, 3]);
    expect(packed.batchSizes.toArray()).toEqual([3, 2, 1]);
    const [padded, lengths] = padPackedSequence(packed, { batchFirst: true, paddingValue: 9, totalLength: 4 });
    expect(padded.toArray()).toEqual([
      [1, 2, 3, 9],
      [4, 9, 9, 9],
      [5, 6, 9, 9],
    ]);
    expect(lengths.toArray()).toEqual([3, 1, 2]);
    expect(() => padPackedSequence(packed, { totalLength: 2 })).toThrow(FxError);
    expect(() => packPaddedSequence(x, [1, 3, 2], { batchFirst: true })).toThrow(FxError);
  });

  test("are made of sequences, and padded again", () => {
    const [a, b] = [tensor([1, 2]), tensor([3])];
    expect(padSequence([a, b], { batchFirst: true, paddingValue: 7 }).toArray()).toEqual([
      [1, 2],
      [3, 7],
    ]);
    expect(unpackSequence(packSequence([b, a], { enforceSorted: false })).map((it) => it.toArray())).toEqual([
      [3],
      [1, 2],
    ]);
  });

  for (const make of [
    () => new nn.RNN(2, 3, { nonlinearity: "relu", bidirectional: true }),
    () => new nn.GRU(2, 3, { numLayers: 2 }),
    () => new nn.LSTM(2, 3, { projSize: 2, bidirectional: true }),
  ]) {
    test(`run as each sequence by itself: ${make.toString()}`, () => {
      const layer = make() as nn.GRU;
      const sequences = [torch.randn([2, 2]), torch.randn([4, 2]), torch.randn([1, 2])];
      const [output, state] = layer.forward(packSequence(sequences, { enforceSorted: false }));
      const last = [state].flat() as Tensor[];
      for (const [at, it] of unpackSequence(output).entries()) {
        const [alone, stateAlone] = layer.forward(sequences[at] as Tensor);
        expect(torch.allclose(it, alone, { atol: 1e-6 })).toBe(true);
        const ends = [stateAlone].flat() as Tensor[];
        for (const [part, end] of ends.entries()) {
          expect(torch.allclose((last[part] as Tensor).select(1, at), end, { atol: 1e-6 })).toBe(true);
        }
      }
    });
  }
});
