/** Ways to a function that no reading of sources from the entry finds, each by itself. */
import { beforeAll, describe, expect, test, vi } from "vitest";
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
  "a getter of a prototype": [
    `const proto = { get out() { return (${DECIDES})(this.v); } };`,
    "",
    "Object.assign(Object.create(proto), { v: x }).out",
  ],
  "a getter that is described": [
    `function Act(v) { this.v = v; }
Object.defineProperty(Act.prototype, "out", { get() { return this.v ? this.v.relu() : this.v.neg(); } });`,
    "",
    "new Act(x).out",
  ],
  "a prototype's method without arguments": [
    `function Act() {} Act.prototype.go = function () { return (${DECIDES})(this.v); };`,
    "",
    "Object.assign(new Act(), { v: x }).go()",
  ],
  "what a base class makes of its arguments": [
    `class Base { constructor(v) { this.v = v; } get out() { return (${DECIDES})(this.v); } }`,
    "",
    "new (class extends Base { constructor(v) { super(v); } })(x).out",
  ],
  "a base class without a constructor in between": [
    `class Base { constructor(v) { this.v = v; } get out() { return (${DECIDES})(this.v); } }`,
    "",
    "new (class extends Base {})(x).out",
  ],
  "an object outside that is given it": [
    `class Holder { get out() { return (${DECIDES})(this.v); } } const holder = new Holder();`,
    "",
    "Object.assign(holder, { v: x }).out",
  ],
  "a setter by Reflect.set": [
    `class Holder { set v(v) { this.out = (${DECIDES})(v); } }`,
    "",
    '(() => { const it = new Holder(); Reflect.set(it, "v", x); return it.out; })()',
  ],
  "prototypes in a ring of reads": [
    `const f = ${DECIDES};`,
    "",
    "(() => { const a = { v: x }; const b = { __proto__: a, get out() { return f(this.v); } }; return b.out; })()",
  ],
  "an iterator of a prototype": [
    `const proto = { *[Symbol.iterator]() { yield (${DECIDES})(this.v); } };`,
    "",
    "[...Object.assign(Object.create(proto), { v: x })][0]",
  ],
  "a text of an object": [
    `const proto = { toString() { this.out = (${DECIDES})(this.v); return "a"; } };`,
    "",
    "(() => { const it = Object.assign(Object.create(proto), { v: x }); void `${it}`; return it.out; })()",
  ],
  "a generator that is sent it": [
    `function* decider() { let v = yield; while (true) v = yield (${DECIDES})(v); }`,
    "",
    "(() => { const it = decider(); it.next(); return it.next(x).value; })()",
  ],
  "a generator that was given it before it is sent something": [
    `function* decider(v) { yield; yield (${DECIDES})(v); }`,
    "",
    "(() => { const it = decider(x); it.next(); return it.next(1).value; })()",
  ],
  "a generator that is thrown it": [
    `function* decider() { let out; while (true) { try { out = yield out; } catch (v) { out = (${DECIDES})(v); } } }`,
    "",
    "(() => { const it = decider(); it.next(); return it.throw(x).value; })()",
  ],
  "a Map of the module": [
    "",
    "cache = new Map();",
    `(() => { this.cache.set("k", x); return (${DECIDES})(this.cache.get("k")); })()`,
  ],
  "an array of the module": [
    "",
    "list = [];",
    "(() => { this.list.push(x); return this.list.pop().sum() ? x : x.neg(); })()",
  ],
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

describe("an asynchronous function", () => {
  const asynchronous: Readonly<Record<string, string>> = {
    "in one": `const run = (v) => { let out; void (async () => { out = (${DECIDES})(v); })(); return out; };`,
    "in a generator": `const run = (v) => { let out; void (async function* () { out = (${DECIDES})(v); })().next(); return out; };`,
  };

  test.each(Object.entries(asynchronous))("is refused or told, and leaves no promise behind: %s", async (_, around) => {
    const rejected = vi.fn<(reason: unknown) => void>();
    process.on("unhandledRejection", rejected);
    try {
      for (const loading of ["readable", "unreadable"] as const) {
        expect(traceOutcome(made([around, "", "run(x)"], loading), true).kind).toMatch(/^(?:refused|told)$/);
        expect(traceOutcome(made([around, "", "run(x)"], loading), "strict").kind).toBe("refused");
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
      expect(rejected).not.toHaveBeenCalled();
    } finally {
      process.off("unhandledRejection", rejected);
    }
  });
});

describe("objects whose prototypes decide nothing are recorded without a word", () => {
  const PLAIN: Readonly<Record<string, readonly [string, string, string]>> = {
    "an object without a prototype": ["", "", "Object.assign(Object.create(null), { v: x }).v.relu()"],
    "a getter of a prototype": [
      "const proto = { scale: 2, get out() { return this.v.mul(this.scale); } };",
      "",
      "Object.assign(Object.create(proto), { v: x }).out",
    ],
    "a class whose methods make objects of it": [
      `class Point { constructor(x, y) { this.x = x; this.y = y; }
plus(o) { return new Point(this.x.add(o.x), this.y.add(o.y)); } get norm() { return this.x.mul(this.y); } }`,
      "",
      "new Point(x, x).plus(new Point(x, x)).norm",
    ],
    "a class and the one that it extends": [
      `class Base { constructor(v) { this.v = v; } get out() { return this.v.relu(); } }
class Act extends Base { constructor(v) { super(v); this.w = v; } get out() { return super.out.add(this.w); } }`,
      "",
      "new Act(x).out",
    ],
    "a class of the language": ["", "", "new (class extends Map { v = x; })().v.relu()"],
    "a getter that looks at a setting of the module": [
      "",
      "scale = 2; get scaled() { return (v) => (this.scale === 2 ? v.relu() : v.neg()); }",
      "this.scaled(x)",
    ],
    "a generator that is sent a setting": [
      "function* steps(v) { let scale = yield; while (true) scale = yield v.mul(scale); }",
      "",
      "(() => { const it = steps(x); it.next(); return it.next(2).value; })()",
    ],
    "a variable of a function that is running": [
      "const twice = (v) => { let out; [1].forEach(() => { out = v.mul(2); }); return out; };",
      "",
      "twice(x)",
    ],
  };

  test.each(Object.entries(PLAIN))("%s", (_, example) => {
    expect(traceOutcome(made(example, "readable"), "strict")).toEqual({ kind: "right", text: "" });
  });
});
