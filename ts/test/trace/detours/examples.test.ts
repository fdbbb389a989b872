/** Ways to a function that no reading of sources from the entry finds, each by itself. */
import { beforeAll, describe, expect, test } from "vitest";
import { init } from "../../../src/index.ts";
import { exportOutcome, load, type Loading, type Make, traceOutcome } from "./programs.ts";

beforeAll(async () => void (await init()));

const DECIDES = "(v) => (v.shape[0] === 4 ? v : v.neg())";

/** What stands around the class, what it has, and what its `forward` gives. */
const EXAMPLES: Readonly<Record<string, readonly [around: string, members: string, gives: string]>> = {
  "a closure from a factory": [`const makeDecider = () => ${DECIDES};`, "", "makeDecider()(x)"],
  "a method of a new object": [
    `class Act { constructor(k) { this.k = k; } apply(v) { return (${DECIDES})(v); } }`,
    "",
    "new Act(1).apply(x)",
  ],
  "a registry": [`const registry = new Map([["a", ${DECIDES}]]);`, "", 'registry.get("a")(x)'],
  "an element of an array": [`const f = ${DECIDES};`, "", "[f][0](x)"],
  bind: [`const f = ${DECIDES};`, "", "f.bind(null)(x)"],
  "a proxy": [`const f = ${DECIDES};`, "", "new Proxy(f, {})(x)"],
  compose: [
    "const compose = (...fns) => (v) => fns.reduce((it, fn) => fn(it), v);",
    "",
    "compose((v) => v.relu(), (v) => (v.sum() ? v : v.neg()))(x)",
  ],
  "this[k]": ["", `k = "go"; go(v) { return (${DECIDES})(v); }`, "this[this.k](x)"],
  "a method that the constructor binds": [
    "",
    `constructor() { super(); this.act = this.go.bind(this); } go(v) { return (${DECIDES})(v); }`,
    "this.act(x)",
  ],
  "a field that holds a Map of functions": ["", `acts = new Map([["a", ${DECIDES}]]);`, 'this.acts.get("a")(x)'],
  "a getter that returns a function": ["", `get act() { return ${DECIDES}; }`, "this.act(x)"],
  "this.constructor": ["", `static f(v) { return (${DECIDES})(v); }`, "this.constructor.f(x)"],
  "a method under a symbol": ['const GO = Symbol("go");', `[GO](v) { return (${DECIDES})(v); }`, "this[GO](x)"],
  "an accessor that decides": [
    `class Holder { constructor(v) { this.v = v; } get out() { return (${DECIDES})(this.v); } }`,
    "",
    "new Holder(x).out",
  ],
  "an accessor that takes": [
    `class Holder { set in(v) { this.out = (${DECIDES})(v); } }`,
    "",
    "(() => { const it = new Holder(); it.in = x; return it.out; })()",
  ],
};

function made([around, members, gives]: readonly [string, string, string], loading: Loading): Make {
  const source = `(() => {\n${around}\nreturn class Net extends nn.Module {\n${members}\nforward(x) {\nreturn ${gives};\n}\n};\n})()`;
  return load([source], loading)[0] as Make;
}

describe.each(Object.entries(EXAMPLES))("%s", (_, example) => {
  test("is refused or told, with its line", () => {
    for (const loading of ["readable", "unreadable"] as const) {
      const { kind, text } = traceOutcome(made(example, loading), true);
      expect(kind, text).toMatch(/^(?:refused|told)$/);
      expect(text).toMatch(/:\d+:\d+\)|\(line \d+/);
    }
  });

  test("is refused where nothing may be left unread", () => {
    for (const loading of ["readable", "unreadable"] as const)
      expect(traceOutcome(made(example, loading), "strict").kind).toBe("refused");
  });

  test("is refused where the plugin looks at the decision", () => {
    expect(traceOutcome(made(example, "instrumented"), true).kind).toBe("refused");
  });

  test("is exported right, refused or told", () => {
    for (const isDynamic of [false, true])
      expect(exportOutcome(made(example, "readable"), true, isDynamic).kind).not.toBe("wrong");
  });
});

describe("a condition on what a WeakMap has of a traced value", () => {
  const seen = ["const seen = new WeakMap();", "", "(seen.get(x) ? x : x.neg())"] as const;
  const held = ["", "seen = new WeakMap();", "(this.seen.get(x) ? x : x.neg())"] as const;

  test.each([seen, held])("%s", (...example) => {
    for (const loading of ["readable", "unreadable", "instrumented"] as const) {
      expect(traceOutcome(made(example, loading), true).kind).toBe("refused");
      expect(exportOutcome(made(example, loading), true, false).kind).toBe("refused");
    }
  });
});

test("a function without parameters that reads `arguments` is refused", () => {
  const [Net] = load(["class extends nn.Module { forward() { return arguments[0].relu(); } }"], "readable");
  const { kind, text } = traceOutcome(Net as Make, true);
  expect(kind).toBe("refused");
  expect(text).toContain("has no parameters");
});

test("a refusal that the user's code catches is one all the same", () => {
  const around = `const f = ${DECIDES}; const g = (v) => { try { return f(v); } catch { return v.relu(); } };`;
  for (const checkSources of [true, "strict"] as const)
    expect(traceOutcome(made([around, "", "g(x)"], "readable"), checkSources).kind).toBe("refused");
});
