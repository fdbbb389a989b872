/** Every export, called with what it does not take: whatever is thrown is a refusal of ours, or says what it found. */
import { beforeAll, expect, test, vi } from "vitest";
import * as tracefx from "tracefx";
import { FxError, Graph, GraphModule, init, nn, tensor } from "tracefx";

beforeAll(() => init());

/** What is given in the place of an argument. */
const WRONG: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  "5": () => 5,
  text: () => "x",
  "{}": () => ({}),
  "[]": () => [],
  function: () => () => undefined,
  Module: () => new nn.Linear(2, 2),
  GraphModule: () => new GraphModule({}, new Graph()),
  Graph: () => new Graph(),
  Tensor: () => tensor([1, 2]),
};

/** What throws errors of JavaScript on purpose, or is no function to be called so. */
const OTHERS: Readonly<Record<string, string>> = {
  FxError: "an error itself, which takes what it is given",
};

const failures: string[] = [];
const pending: Promise<unknown>[] = [];

function attempt(name: string, fn: () => unknown): void {
  try {
    const result = fn();
    if (result instanceof Promise) pending.push(result.catch((error: unknown) => note(name, error)));
  } catch (error) {
    note(name, error);
  }
}

function note(name: string, error: unknown): void {
  if (error instanceof FxError && error.kind !== "Internal") return;
  failures.push(`${name}: ${String(error).split("\n")[0]}`);
}

test("wrong arguments are refused by name, and nothing breaks on them", { timeout: 120_000 }, async () => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  const { nn: layers, optim, F, math, operator, builtins, torch, unification } = tracefx;
  const spaces = {
    nn: layers,
    "nn.init": layers.init,
    "nn.rnn": layers.rnn,
    optim,
    F,
    math,
    operator,
    builtins,
    torch,
  };
  const inner = Object.entries({ ...spaces, unification, "torch.library": torch.library }).flatMap(([space, members]) =>
    Object.entries(members).map(([name, value]) => [`${space}.${name}`, value as unknown] as const),
  );
  for (const [name, value] of [...Object.entries(tracefx), ...inner]) {
    if (typeof value !== "function" || name in OTHERS || name.endsWith("Error") || name === "restart") continue;
    const isClass = /^class\b/.test(Function.prototype.toString.call(value));
    for (const [given, make] of Object.entries(WRONG)) {
      for (const count of [1, 3]) {
        const args = Array.from({ length: count }, make);
        attempt(`${name}(${given} × ${count})`, () =>
          isClass ? Reflect.construct(value, args) : (value as (...all: unknown[]) => unknown)(...args),
        );
      }
    }
  }
  await Promise.all(pending);
  vi.restoreAllMocks();
  expect(failures).toEqual([]);
});
