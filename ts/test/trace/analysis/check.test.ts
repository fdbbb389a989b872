import { runInThisContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { analyseFunction } from "../../../src/trace/analysis/analysis.ts";
import { type CheckOptions, checkFunction } from "../../../src/trace/analysis/check.ts";

/** A function of plain JavaScript, as the run time sees it. The functions here are read, and never run. */
function read(source: string): Function {
  return runInThisContext(`(${source})`);
}

/** What is found: `kind construct`, a note with `?`, an unchecked call as `call name`. */
function found(fn: Function, options: CheckOptions = {}): string[] {
  const { findings, notes, unchecked } = checkFunction(fn, options);
  return [
    ...findings.map(({ at }) => `${at.kind} ${at.construct}`),
    ...notes.map(({ at }) => `${at.kind}? ${at.construct}`),
    ...unchecked.map(({ at }) => `call ${at.callee}`),
  ];
}

const FOUND: [name: string, source: string, ...expected: string[]][] = [
  ["if", "(x) => { if (x) return 1; return 2; }", "test if"],
  ["if on a method's result", "(x) => { if (x.sum().item()) return 1; return 2; }", "test if"],
  ["if on what torch gives", "(x) => { if (torch.any(x)) return 1; return 2; }", "test if"],
  [
    "else if",
    "(x, n = 1) => { if (n === 3) return 1; else if (x.any()) return 2; return 3; }",
    "comparison ===",
    "test if",
  ],
  ["?:", "(x) => x ? 1 : 2", "test ?:"],
  ["&&", "(x, y) => x && y", "test &&"],
  ["||", "(x, y) => x || y", "test ||"],
  ["!", "(x) => !x", "test !"],
  ["!!", "(x) => !!x", "test !"],
  ["while", "(x) => { let y = x; while (y.any()) y = y.relu(); return y; }", "loop while"],
  ["do while", "(x) => { let y = x; do y = y.relu(); while (y.any()); return y; }", "loop do while"],
  ["for", "(x) => { for (let y = x; y.any(); y = y.relu()) ; return x; }", "loop for"],
  ["===", "(x, y) => torch.where(x === y, x, y)", "comparison ==="],
  ["!==", "(x) => x.dim() !== 4", "comparison !=="],
  ["== to a number", "(x) => x.size(0) == 4", "comparison =="],
  ["!=", "(x, y) => x != y", "comparison !="],
  ["switch", "(x) => { switch (x.dim()) { case 3: return x; default: return x.relu(); } }", "switch switch"],
  ["case", "(x, n) => { switch (n) { case x.dim(): return x; default: return 1; } }", "switch switch", "switch case"],
  ["typeof", '(x) => typeof x === "number"', "typeof typeof"],
  ["instanceof", "(x) => x instanceof Tensor", "instanceof instanceof"],
  ["Array.isArray", "(x) => Array.isArray(x) ? x[0] : x", "instanceof Array.isArray"],
  ["Object.is", "(x, y) => Object.is(x, y)", "comparison Object.is"],
  ["Boolean", "(x) => Boolean(x)", "test Boolean"],
  ["filter by Boolean", "(x, y) => [x, y].filter(Boolean)", "predicate filter"],
  ["filter", "(x, y) => [x, y].filter((it) => it.any())", "predicate predicate"],
  ["filter with a body", "(x) => [x].filter((it) => { return it.any(); })", "predicate predicate"],
  ["some", "(x) => [x].some((it) => it)", "predicate predicate"],
  ["every", "(x) => [1, 2].every((i) => x.select(i))", "predicate predicate"],
  ["find", "(x) => [x].find((it) => it.any())", "predicate predicate"],
  ["console.assert", "(x) => { console.assert(x); return x; }", "assertion console.assert"],
  ["&&=", "(x, y) => { let z = x; z &&= y; return z; }", "test &&="],
  ["||=", "(x, y) => { let z = x; z ||= y; return z; }", "test ||="],
  ["includes", "(x) => [2, 3].includes(x.dim())", "membership includes"],
  ["indexOf", "(x, y) => [x, y].indexOf(x)", "membership indexOf"],
  ["a set", "(x, y) => (/* @__PURE__ */ new Set([x, y])).size", "membership Set"],
  ["a set's has", "(x) => (/* @__PURE__ */ new Set([1])).has(x)", "membership has"],
  ["a map's key", "(x) => (/* @__PURE__ */ new Map()).set(x, 1)", "membership set"],
  ["a map of the module", "function(x) { return this.cache.get(x); }", "membership get"],
  ["Number.isNaN", "(x) => Number.isNaN(x) ? 1 : 2", "number Number.isNaN"],
  ["try", "(x) => { try { return x.relu(); } catch { return x; } }", "swallow catch"],
  ["async", "async (x) => x", "async async"],
  ["a generator", "function* (x) { yield x; }", "generator generator"],
  ["?? on a parameter that may be null", "(x, y = null) => y ?? x", "nullish ??"],
  ["?. on a parameter that may be null", "(x, y = null) => [x, y?.relu()]", "nullish ?."],
  ["=== null on a parameter that may be null", "(x, y = null) => y === null ? x : y", "nullish ==="],
  ["!= undefined", "(x, y = void 0) => y != void 0 ? x : y", "nullish !="],
  ["??=", "(x, y = null) => { let z = y; z ??= x; return z; }", "nullish ??="],
  ["an attribute that may be null", "(x) => x.grad === null ? 1 : 2", "absent ==="],
  ["a default of a part", "({ a = 1 }) => a", "default ="],
  ["a default of an element", "([a, b = 1]) => [a, b]", "default ="],
  ["the count of the arguments", "function(x) { return arguments.length > 1 ? x : 1; }", "arguments arguments"],
  ["new Array", "(n) => new Array(n).fill(0)", "length Array"],
  ["a member of the module", "function(x) { this.last = x; return x; }", "state ="],
  ["through a variable", "(x) => { const y = x; const z = y.relu(); if (z) return 1; return 2; }", "test if"],
  ["through destructuring", "(x) => { const [a] = x; return a ? 1 : 2; }", "test ?:"],
  ["through an object", "(x) => { const o = { x, n: 1 }; return o.n ? o.x ? 1 : 2 : 3; }", "test ?:"],
  ["through an array", "(x) => { const o = []; o.push(x); return o[0] ? 1 : 2; }", "test ?:"],
  ["through a closure", "(x) => { const f = () => x; return f() ? 1 : 2; }", "test ?:"],
  ["in a closure", "(x) => { const f = (y) => y ? 1 : 2; return f(x); }", "test ?:"],
  ["in a local function", "(x) => { function f(y) { return y ? 1 : 2; } return f(x); }", "test ?:"],
  ["through a map", "(x) => [x].map((it) => it.relu()).map((it) => it ? 1 : 2)", "test ?:"],
  ["through reduce", "(x) => [x].reduce((a, b) => a ? b : a)", "test ?:"],
  [
    "through a loop",
    "(x) => { let y = null; for (const i of [1, 2]) { if (y) return i; y = x; } return y; }",
    "test if",
  ],
  ["through a loop over an array", "(x) => { for (const y of [x, x.relu()]) if (y) return 1; return 2; }", "test if"],
  ["through rest", "(x, ...more) => more[0] ? x : 1", "test ?:"],
  ["through a default", "(x, y = x) => y ? 1 : 2", "test ?:"],
  ["an unknown function", "(x) => helper(x)", "call helper"],
  ["the result of an unknown function", "(x) => helper(x) ? 1 : 2", "test ?:", "call helper"],
  ["a method of a class", "(x) => { class A { f(y) { return y ? 1 : 2; } } return new A().f(x); }", "test ?:"],
  [
    "a static method of a class",
    "(x) => { const A = class { static f = (y) => y ? 1 : 2; }; return A.f(x); }",
    "test ?:",
  ],
  ["a constructor", "(x) => { class A { constructor(y) { this.v = y ? 1 : 2; } } return new A(x).v; }", "test ?:"],
  [
    "a field of a class",
    "(x) => { class A { constructor(y) { this.v = y; } f() { return this.v ? 1 : 2; } } return new A(x).f(); }",
    "test ?:",
  ],
  ["a function that compares", "(x, y) => [x, y].sort((a, b) => a === b ? 0 : 1)", "comparison ==="],
  ["a method of an object", "(x) => { const o = { x, f() { return this.x ? 1 : 2; } }; return o.f(); }", "test ?:"],
  ["a getter of an object", "(x) => { const o = { x, get f() { return this.x; } }; return o.f ? 1 : 2; }", "test ?:"],
  ["this of a call", "(x) => { function f() { return this ? 1 : 2; } return f.call(x); }", "test ?:"],
  ["this of a bound function", "(x) => { function f() { return this === 1; } return f.bind(x)(); }", "comparison ==="],
  ["an unknown callback", "(x) => [x].map(helper)", "call helper"],
  ["an unknown predicate", "(x) => [x].filter(helper)", "predicate filter", "call helper"],
  ["the result of an unknown callback", "(x) => [x].map(helper)[0] ? 1 : 2", "test ?:", "call helper"],
  ["an unknown tag", "(x) => helper`${x}`", "call helper"],
  ["random numbers", "(x) => x.mul(Math.random())", "random? Math.random"],
  ["random numbers of the global object", "(x) => x.mul(globalThis.Math.random())", "random? Math.random"],
  ["random bytes", "(x) => crypto.getRandomValues(new Uint8Array(4))", "random? crypto.getRandomValues"],
  ["random names", "(x) => [x, crypto.randomUUID()]", "random? crypto.randomUUID"],
  ["the time", "(x) => x.mul(Date.now())", "clock? Date.now"],
  ["the time of a run", "(x) => x.mul(globalThis.performance.now())", "clock? performance.now"],
  ["the date", "(x) => x.mul(new Date().getHours())", "clock? Date"],
  ["the date as a text", "(x) => [x, Date()]", "clock? Date"],
  ["a date that is given", "(x) => [x, new Date(2020, 1, 1)]"],
  ["a counter", "(x) => { count++; return x.mul(count); }", "counter? ++"],
  ["a counter that is read", "(x) => x.mul(--count)", "counter? --"],
  ["a counter of the module", "function (x) { this.steps += 1; return x.mul(this.steps); }", "counter? +="],
  ["a counter that is written out", "function (x) { this.steps = this.steps + 1; return x; }", "counter? ="],
  ["a counter of an object", "(x) => { stats.calls[0]++; return x; }", "counter? ++"],
  ["a counter in a callback", "(x) => [1, 2].map((it) => { total += it; return x.mul(total); })", "counter? +="],
  ["a variable outside that is changed", "(x) => { last = 3; return x; }", "counter? ="],
  [
    "counters of its own",
    "(x) => { let n = 0; for (let i = 0; i < 3; i++) n += i; [1].forEach((it) => { n += it; }); return x.mul(n); }",
  ],
  [
    "counters of its own objects",
    "(x) => { const o = { n: 0 }; o.n++; class A { n = 0; f() { return this.n++; } } return [x, new A().f()]; }",
  ],
  ["settings of the module", "function (x) { this.last = 3; this.cache ??= new Map(); return x; }"],
];

const SEEN: [name: string, source: string, ...expected: string[]][] = [
  ["in", "(x, y) => x in y", "key in", "keys in"],
  ["a computed key", "(x) => [1, 2][x]", "key [ ]"],
  ["Object.keys", "(x) => Object.keys(x).length", "keys Object.keys"],
  ["for in", "(x) => { for (const k in x) return k; return x; }", "keys for in"],
  ["object spread", "(x) => ({ ...x })", "keys ..."],
  ["object rest", "({ a, ...rest }) => [a, rest]", "keys ..."],
  ["JSON.stringify", "(x) => JSON.stringify({ x })", "serialise JSON.stringify"],
  ["+", "(x, y) => x + y", "operator +"],
  ["-", "(x) => -x", "operator -"],
  ["<", "(x) => { if (x < 1) return x; return 1; }", "operator <"],
  ["+=", "(x, y) => { let z = x; z += y; return z; }", "operator +="],
  ["++", "(x) => { x++; return x; }", "operator ++"],
  ["an operator on a parameter of the module", "function (x) { return x.mul(this.scale * 2); }", "operator *"],
  ["for of", "(x) => { for (const y of x) return y; return x; }", "iteration for of"],
  ["spread", "(x) => torch.cat([...x])", "iteration ..."],
  ["spread arguments", "(x) => torch.cat(...x)", "iteration ..."],
  ["rest of elements", "(x) => { const [a, ...b] = x; return [a, b]; }", "iteration ..."],
  ["Array.from", "(x) => Array.from(x)", "iteration Array.from"],
  ["length", "(x) => x.length", "size length"],
  ["a template", "(x) => `${x}`", "string ${ }"],
  ["String", "(x) => String(x)", "string String"],
  ["join", "(x) => [x].join()", "string join"],
  ["Math.max", "(x) => Math.max(x, 1)", "string Math.max"],
  ["Number", "(x) => Number(x)", "string Number"],
  ["an assignment to a part", "(x) => { x.a = 1; return x; }", "write ="],
  ["delete", "(x) => { delete x.a; return x; }", "write delete"],
];

const CLEAN: [name: string, source: string][] = [
  ["a flag of the module", "function(x) { if (this.training) return x.relu(); return x; }"],
  [
    "an optional part of the module",
    "function(x) { if (this.downsample !== void 0) return this.downsample.forward(x); return x; }",
  ],
  ["the truth of a part of the module", "function(x) { return this.bias ? x.add(this.bias) : x; }"],
  ["an optional call of a part", "function(x) { return this.norm?.forward?.(x) ?? x; }"],
  ["a loop over parts", "function(x) { let y = x; for (const layer of this.layers) y = layer.forward(y); return y; }"],
  ["a loop that counts", "(x) => { let y = x; for (let i = 0; i < 3; i++) y = y.relu(); return y; }"],
  [
    "a loop over an array's length",
    "function(x) { let y = x; for (let i = 0; i < this.layers.length; i++) y = this.layers[i].forward(y); return y; }",
  ],
  ["destructuring of a result", "(x) => { const [a, b] = torch.split(x, 2); return torch.cat([a, b]); }"],
  ["an array's length", "(x) => { const o = []; o.push(x); return o.length > 0 ? torch.cat(o) : x; }"],
  ["reduce over layers", "function(x) { return this.layers.reduce((y, layer) => layer.forward(y), x); }"],
  ["null of a value that is not null", "(x) => x === null ? 1 : 2"],
  ["a guard", '(x) => { if (x === void 0) throw new Error("x is missing"); return x; }'],
  [
    "a variable that starts as null",
    "function(x) { let y = null; for (const layer of this.layers) y = y === null ? layer.forward(x) : y.add(layer.forward(x)); return y; }",
  ],
  ["a configuration", 'function(x) { return this.config.act === "relu" ? x.relu() : x; }'],
  ["a setting outside of the function", '(x) => config.act === "relu" ? x.relu() : x'],
  ["?? on what is there", "(x) => x ?? 1"],
  [
    "a try that throws again",
    '(x) => { try { return x.relu(); } catch (error) { throw new Error("no", { cause: error }); } }',
  ],
  ["try and finally", "(x) => { try { return x.relu(); } finally { config.depth(); } }"],
  ["a plain object", "(x) => { const o = { x, n: 1 }; return o.n === 1 ? o.x : x; }"],
  ["a switch on a setting", 'function(x) { switch (this.mode) { case "a": return x; default: return x.relu(); } }'],
  ["instanceof Proxy", "(x) => x instanceof Proxy"],
  [
    "entries of an object of layers",
    "function(x) { let y = x; for (const [, layer] of Object.entries(this.layers)) y = layer.forward(y); return y; }",
  ],
  [
    "filter of layers",
    "function(x) { return this.layers.filter((layer) => layer.enabled).reduce((y, layer) => layer.forward(y), x); }",
  ],
  ["console.log", "(x) => { console.log(x); return x; }"],
  [
    "destructured parts of the module",
    "function(x) { const { weight, bias } = this; return bias ? torch.linear(x, weight, bias) : torch.linear(x, weight); }",
  ],
];

describe("what is found", () => {
  it.each(FOUND)("%s", (_, source, ...expected) => {
    expect(found(read(source))).toEqual(expected);
  });
});

describe("what a traced value refuses by itself", () => {
  it.each(SEEN)("%s", (_, source, ...expected) => {
    const fn = read(source);
    const analysis = analyseFunction(fn);
    const findings = typeof analysis === "string" ? [] : analysis.findings;
    expect(findings.map(({ kind, construct }) => `${kind} ${construct}`)).toEqual(expected);
    expect(found(fn)).toEqual([]);
  });
});

describe("what is ordinary code", () => {
  it.each(CLEAN)("%s", (_, source) => {
    expect(found(read(source))).toEqual([]);
  });
});

const isTraced = (path: readonly string[]): boolean => path[0] === "weight";

describe("what counts for one trace", () => {
  it("is not what is given as a plain value", () => {
    const fn = read('(x, mode) => { if (mode === "relu") return x.relu(); return x; }');
    expect(found(fn)).toEqual(["comparison ==="]);
    expect(found(fn, { concrete: new Set(["mode"]) })).toEqual([]);
  });

  it("is not whether a value is there that is known to be there", () => {
    const fn = read("(x, mask = null) => mask === null ? x : x.mul(mask)");
    expect(found(fn)).toEqual(["nullish ==="]);
    expect(found(fn, { given: new Set(["mask"]) })).toEqual([]);
  });

  it("is what stands in a structure, and not the structure", () => {
    const fn = read("({ x, mask = null }) => mask === null ? x.any() ? 1 : 2 : mask");
    expect(found(fn)).toEqual(["default =", "absent ===", "test ?:"]);
    const structured = new Set(["arg0"]);
    expect(found(fn, { structured })).toEqual(["test ?:"]);
  });

  it("is what is computed from the parameters of the module", () => {
    const test = read("function (x) { if (this.weight.sum()) return x; return 1; }");
    expect(found(test)).toEqual([]);
    expect(found(test, { isTraced })).toEqual(["test if"]);
    const presence = read("function (x) { if (this.weight) return x; return 1; }");
    expect(found(presence, { isTraced })).toEqual([]);
    const attribute = read("function (x) { if (this.weight.requiresGrad) return x; return 1; }");
    expect(found(attribute, { isTraced })).toEqual(["test if"]);
  });

  it("is what the methods of the module do with what they are given", () => {
    const helper = read("function (x, n) { if (n === 1) return 1; return x ? n : 2; }");
    const fn = read("function (x) { return this.helper(x, 1); }");
    const methods = ({ path }: { path: readonly string[] }) => (path.join() === "helper" ? [{ fn: helper }] : []);
    expect(found(fn, { methods })).toEqual(["test ?:"]);
  });

  it("is what methods give", () => {
    const plain = read("function (x) { return 3; }");
    const same = read("function (x) { return x; }");
    const fn = read("function (x) { return this.helper(x) === 3 ? 1 : 2; }");
    expect(found(fn, { methods: () => [{ fn: plain }] })).toEqual([]);
    expect(found(fn, { methods: () => [{ fn: same }] })).toEqual(["comparison ==="]);
  });

  it("ends for methods that call themselves", () => {
    const methods = () => [{ fn }];
    const fn = read("function (x) { return this.again(x) ? 1 : 2; }");
    expect(found(fn, { methods })).toEqual(["test ?:"]);
  });

  it("is what any of the functions does that a call may reach", () => {
    const [plain, asks] = [read("(x) => x.relu()"), read("(x, flag) => flag ? x : 2")];
    const fn = read("function (x) { return this.steps[this.at](x); }");
    expect(found(fn, { methods: () => [{ fn: plain }, { fn: asks }] })).toEqual([]);
    expect(found(fn, { methods: () => [{ fn: plain }, { fn: asks, isIndirect: true }] })).toEqual(["test ?:"]);
  });
});

describe("places", () => {
  it("count from the function's own text", () => {
    const { findings } = checkFunction(read("(x) => {\n  if (x.any()) return 1;\n  return 2;\n}"));
    expect(findings.map(({ at }) => at)).toMatchObject([
      { line: 2, column: 7, endLine: 2, endColumn: 14, snippet: "x.any()" },
    ]);
    const first = checkFunction(read("(x) => x ? 1 : 2"));
    expect(first.findings.map(({ at }) => at)).toMatchObject([{ line: 1, column: 8 }]);
  });
});

describe("hostile code", () => {
  it("ends for paths that never do", () => {
    expect(
      found(read("function (x) { let p = this; while (p.next !== null) p = p.next; return p.forward(x); }")),
    ).toEqual([]);
    expect(found(read("(x) => { let o = {}; for (const k of [1]) o = { o, x }; return o.o.o.o.x ? 1 : 2; }"))).toEqual([
      "test ?:",
    ]);
  });

  it("ends for deep code", () => {
    const deep = `(x) => ${"(".repeat(200)}x${" ? 1 : 2)".repeat(200)}`;
    expect(found(read(deep)).length).toBeGreaterThan(0);
  });

  it("with names of Object.prototype is read like any other", () => {
    expect(
      found(read("(constructor, __proto__) => { const o = { toString: constructor }; return o.toString ? 1 : 2; }")),
    ).toEqual(["test ?:"]);
    expect(found(read("(x) => hasOwnProperty(x)"))).toEqual(["call hasOwnProperty"]);
  });
});
