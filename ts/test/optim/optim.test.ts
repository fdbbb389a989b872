/** Steps of the optimizers beside those of torch.optim. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { init, optim, type Tensor, tensor } from "../../src/index.ts";
import { thrown } from "../thrown.ts";

await init();

type Options = Record<string, unknown>;
interface Recorded {
  start: unknown[];
  gradients: (unknown | null)[][];
  cases: { optimizer: "SGD" | "Adam" | "AdamW"; options: Options; after: unknown[][] }[];
  refused: { optimizer: "SGD" | "Adam" | "AdamW"; options: Options; says: string }[];
}
const recorded = JSON.parse(
  readFileSync(new URL("../../../tests/fixtures/joint/optim.json", import.meta.url), "utf8"),
) as Recorded;

const OPTIMIZERS = { SGD: optim.SGD, Adam: optim.Adam, AdamW: optim.AdamW };

const make = (values: unknown): Tensor => tensor(values as number[], { dtype: "float32" });

/** The options by the names of TypeScript. */
function named({ weight_decay: weightDecay, ...rest }: Options): Options {
  return weightDecay === undefined ? rest : { ...rest, weightDecay };
}

describe("optimizers", () => {
  test.each(recorded.cases)("$optimizer $options", ({ optimizer, options, after }) => {
    const parameters = recorded.start.map(make);
    const made = new OPTIMIZERS[optimizer](parameters, named(options));
    for (const [step, gradients] of recorded.gradients.entries()) {
      for (const [index, gradient] of gradients.entries()) {
        (parameters[index] as Tensor).grad = gradient === null ? null : make(gradient);
      }
      made.step();
      for (const [index, parameter] of parameters.entries()) {
        const want = make((after[step] as unknown[])[index]);
        expect(parameter.sub(want).abs().max().item()).toBeLessThan(2e-6);
      }
    }
    made.zeroGrad();
    expect(parameters.map((parameter) => parameter.grad)).toEqual(parameters.map(() => null));
  });

  test.each(recorded.refused)("$optimizer refuses $options", ({ optimizer, options, says }) => {
    const problem = thrown(() => new OPTIMIZERS[optimizer]([make([1])], named(options)));
    expect(problem.message).toContain(says);
  });

  test("takes groups with options of their own, and pairs with names", () => {
    const [a, b] = [make([1]), make([1])];
    const sgd = new optim.SGD([{ params: [a] }, { params: [b], lr: 1 }], { lr: 0.5 });
    for (const parameter of [a, b]) parameter.grad = make([1]);
    sgd.step();
    expect([a.item(), b.item()]).toEqual([0.5, 0]);
    expect(new optim.SGD([["a", a]] as const).paramGroups[0]?.params).toEqual([a]);
    expect(() => new optim.SGD([])).toThrow("optimizer got an empty parameter list");
    expect(() => new optim.SGD([{ params: [a] }, { params: [a] }])).toThrow("more than one parameter group");
  });

  test("refuses a gradient that does not fit", () => {
    const parameter = make([1, 2]);
    expect(() => (parameter.grad = make([1]))).toThrow("assigned grad has data of a different size");
    expect(() => (parameter.grad = tensor([1, 2], { dtype: "int64" }))).toThrow("different type");
  });
});
