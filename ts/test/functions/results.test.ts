import { beforeAll, describe, expect, it } from "vitest";
import { symbolicTrace, type Tensor, tensor, torch } from "../../src/index.ts";
import { init } from "../../src/engine/engine.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

const x = () =>
  tensor([
    [1, 5, 2],
    [7, 3, 4],
  ]);

describe("results with names", () => {
  it("are read by position, by name and apart", () => {
    const result = x().max(1);
    expect(result.values.toArray()).toEqual([5, 7]);
    expect(result.indices.toArray()).toEqual([1, 0]);
    const [values, indices] = result;
    expect([values, indices]).toEqual([result.values, result.indices]);
    const { values: same } = torch.max(x(), 1);
    expect(same.toArray()).toEqual([5, 7]);
    expect([...result]).toHaveLength(2);
    expect(Object.keys(result)).toEqual(["0", "1"]);
  });

  it("have them where they are written to `out`", () => {
    const out: [Tensor, Tensor] = [torch.empty([0]), torch.empty([0], { dtype: "int64" })];
    const result = torch.sort(x(), { dim: 1, out });
    expect(result.values).toBe(out[0]);
    expect(result.indices.toArray()).toEqual([
      [0, 2, 1],
      [1, 2, 0],
    ]);
    expect("values" in out && typeof out.values).toBe("function");
  });

  it("have them in graphs, under Python's names", () => {
    const traced = symbolicTrace((input: Tensor) => {
      const { values, indices } = input.topk(2);
      return torch.add(values, indices);
    });
    expect(String(traced.graph)).toContain("call_function[target=builtins.getattr](args = (%topk, values)");
    expect((traced.forward(x()) as Tensor).toArray()).toEqual([
      [6, 4],
      [7, 6],
    ]);
  });

  it("have none where Python has none", () => {
    const traced = symbolicTrace((input: Tensor) => (torch.stdMean(input) as unknown as { values: Tensor }).values);
    const refused = thrown(() => traced.forward(tensor([1.5, 2])));
    expect([refused.kind, refused.help]).toEqual([
      "AttributeMissing",
      "results without names are told apart by position: torch.stdMean(x)[0]",
    ]);
  });
});
