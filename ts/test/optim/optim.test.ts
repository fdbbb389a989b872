/** Steps of the optimizers beside those of torch.optim. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { init, optim, type Tensor, tensor } from "../../src/index.ts";
import { thrown } from "../thrown.ts";

await init();

type Options = Record<string, unknown>;
interface Saved {
  state: Record<string, Record<string, unknown>>;
  param_groups: Options[];
}
interface Recorded {
  start: unknown[];
  gradients: (unknown | null)[][];
  cases: { optimizer: "SGD" | "Adam" | "AdamW"; options: Options; after: unknown[][]; state: Saved }[];
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

/** The tensors of a recorded state. */
function tensors(values: Record<string, unknown>): Map<string, Tensor> {
  return new Map(Object.entries(values).map(([name, value]) => [name, make(value)]));
}

/** Takes the recorded steps from one to another. */
function train(made: { step(): void }, parameters: readonly Tensor[], from: number, to: number): void {
  for (const gradients of recorded.gradients.slice(from, to)) {
    for (const [index, gradient] of gradients.entries()) {
      (parameters[index] as Tensor).grad = gradient === null ? null : make(gradient);
    }
    made.step();
  }
}

/** Takes a step along the parameters themselves. */
function stepped(sgd: optim.SGD): optim.SGD {
  for (const group of sgd.paramGroups) for (const it of group.params) it.grad = it.clone();
  sgd.step();
  return sgd;
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

  test.each(recorded.cases)("$optimizer $options is saved as PyTorch saves it, and goes on", (recording) => {
    const { optimizer, options, after, state } = recording;
    const parameters = recorded.start.map(make);
    const interrupted = new OPTIMIZERS[optimizer](parameters, named(options));
    train(interrupted, parameters, 0, 2);
    const found = interrupted.stateDict();
    expect(Object.keys(found.state)).toEqual(Object.keys(state.state));
    for (const [index, values] of Object.entries(state.state)) {
      expect(Object.keys(found.state[Number(index)] ?? {})).toEqual(Object.keys(values));
      for (const [name, want] of Object.entries(values)) {
        const value = found.state[Number(index)]?.[name] as Tensor;
        expect(value.sub(make(want)).abs().max().item()).toBeLessThan(1e-6);
      }
    }
    // What PyTorch has beyond these says how it computes.
    expect(state.param_groups).toMatchObject(found.param_groups);

    // Another optimizer goes on from there to the same numbers, as from what PyTorch saved, which a checkpoint has in Maps.
    const recordedState = new Map<string, unknown>([
      ["state", new Map(Object.entries(state.state).map(([key, values]) => [Number(key), tensors(values)]))],
      ["param_groups", state.param_groups.map((group) => new Map(Object.entries(group)))],
    ]);
    const resumed = [recordedState, found].map((dict) => {
      const copies = parameters.map((it) => it.clone());
      const made = new OPTIMIZERS[optimizer](copies);
      made.loadStateDict(dict);
      train(made, copies, 2, 4);
      for (const [index, parameter] of copies.entries()) {
        const want = make((after[3] as unknown[])[index]);
        expect(parameter.sub(want).abs().max().item()).toBeLessThan(2e-6);
      }
      return copies.map((it) => it.tolist());
    });
    train(interrupted, parameters, 2, 4);
    expect(resumed[1]).toEqual(parameters.map((it) => it.tolist()));
  });

  test("a state dict that does not fit is refused, and changes nothing", () => {
    const of = (...groups: number[][]): optim.SGD =>
      new optim.SGD(
        groups.map((sizes) => ({ params: sizes.map((n) => make(Array.from({ length: n }, () => 1))) })),
        { lr: 0.5, momentum: 0.9 },
      );
    const saved = stepped(of([1, 2])).stateDict();
    const other = stepped(of([1, 3]));
    const before = JSON.stringify(other.stateDict());
    expect(() => of([1], [2]).loadStateDict(saved)).toThrow(
      "loaded state dict has a different number of parameter groups",
    );
    expect(() => of([1]).loadStateDict(saved)).toThrow(
      "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    );
    expect(() => other.loadStateDict(saved)).toThrow(
      "`momentum_buffer` of the state dict has the sizes [2], and its parameter [3]",
    );
    expect(JSON.stringify(other.stateDict())).toBe(before);
    expect(() =>
      other.loadStateDict({ ...saved, param_groups: [{ ...saved.param_groups[0], lr: -1, params: [0, 1] }] }),
    ).toThrow("Invalid learning rate: -1.0");
    const decoupled = new optim.AdamW([make([1])]).stateDict().param_groups[0];
    const adam = new optim.Adam([make([1])]);
    const asPython = { ...decoupled, decoupled_weight_decay: true, params: [0] };
    expect(() => adam.loadStateDict({ state: {}, param_groups: [asPython] })).toThrow("sets `decoupled_weight_decay`");
    expect(() => adam.loadStateDict(new Map())).toThrow("no list `param_groups`");
    const lost = { state: { 0: { exp_avg: make([1]) } }, param_groups: adam.stateDict().param_groups };
    expect(() => adam.loadStateDict(lost)).toThrow("no number `step`");
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
