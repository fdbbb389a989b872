/**
 * Ways by which a traced value reaches a function that decides something about it, and what it decides: as JavaScript.
 *
 * @module
 */

/** A way from the `forward` of a module to a function. */
export interface Detour {
  /** What stands around the module, for a function that is written out; `n` makes its names its own. */
  readonly around?: (fn: string, n: number) => string;
  /** What the class of the module has; only the outermost of several ways has it. */
  readonly members?: (fn: string, n: number) => string;
  /** The call, with the expression of what is given. */
  readonly call: (given: string, n: number) => string;
}

const around = (text: (fn: string, n: number) => string, call: Detour["call"]): Detour => ({ around: text, call });
const members = (text: (fn: string, n: number) => string, call: Detour["call"]): Detour => ({ members: text, call });

/** The ways, by what they are called. */
export const DETOURS: Readonly<Record<string, Detour>> = {
  "a function by its name": around(
    (fn, n) => `const decide${n} = ${fn};`,
    (x, n) => `decide${n}(${x})`,
  ),
  "a declaration": around(
    (fn, n) => `function decide${n}(v) { return (${fn})(v); }`,
    (x, n) => `decide${n}(${x})`,
  ),
  "a closure from a factory": around(
    (fn, n) => `const makeDecider${n} = () => ${fn};`,
    (x, n) => `makeDecider${n}()(${x})`,
  ),
  "a closure over a setting": around(
    (fn, n) => `function make${n}(flag) { const inner = ${fn}; return (v) => (flag ? inner(v) : v); }
const made${n} = make${n}(true);`,
    (x, n) => `made${n}(${x})`,
  ),
  "a method of a new object": around(
    (fn, n) => `class Act${n} { constructor(k) { this.k = k; } apply(v) { return (${fn})(v); } }`,
    (x, n) => `new Act${n}(1).apply(${x})`,
  ),
  "a method that calls another": around(
    (fn, n) => `class Act${n} { run(v) { return this.go(v); } go(v) { return (${fn})(v); } }
const act${n} = new Act${n}();`,
    (x, n) => `act${n}.run(${x})`,
  ),
  "a method of the base class": around(
    (fn, n) => `class Base${n} { go(v) { return (${fn})(v); } }
class Act${n} extends Base${n} { go(v) { return super.go(v); } }`,
    (x, n) => `new Act${n}().go(${x})`,
  ),
  "a static method": around(
    (fn, n) => `class Act${n} { static go(v) { return (${fn})(v); } }`,
    (x, n) => `Act${n}.go(${x})`,
  ),
  "a private method": around(
    (fn, n) => `class Act${n} { #go(v) { return (${fn})(v); } run(v) { return this.#go(v); } }`,
    (x, n) => `new Act${n}().run(${x})`,
  ),
  "a computed method": around(
    (fn, n) => `class Act${n} { go(v) { return (${fn})(v); } run(v) { const k = "g" + "o"; return this[k](v); } }`,
    (x, n) => `new Act${n}().run(${x})`,
  ),
  "a registry": around(
    (fn, n) => `const registry${n} = new Map([["a", ${fn}]]);`,
    (x, n) => `registry${n}.get("a")(${x})`,
  ),
  "an object of functions": around(
    (fn, n) => `const acts${n} = { go: ${fn} };`,
    (x, n) => `acts${n}.go(${x})`,
  ),
  "an object of functions by a key": around(
    (fn, n) => `const acts${n} = { go: ${fn} }; const key${n} = "go";`,
    (x, n) => `acts${n}[key${n}](${x})`,
  ),
  "an element of an array": around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `[f${n}][0](${x})`,
  ),
  "an element of an array elsewhere": around(
    (fn, n) => `const list${n} = [${fn}];`,
    (x, n) => `list${n}[0](${x})`,
  ),
  "a conditional callee": around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `(${n} < 0 ? null : f${n})(${x})`,
  ),
  "a sequence": around(
    (fn, n) => `const acts${n} = { go: ${fn} };`,
    (x, n) => `(0, acts${n}.go)(${x})`,
  ),
  bind: around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `f${n}.bind(null)(${x})`,
  ),
  "bind with an argument": around(
    (fn, n) => `const f${n} = (k, v) => (${fn})(v); const bound${n} = f${n}.bind(null, 1);`,
    (x, n) => `bound${n}(${x})`,
  ),
  call: around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `f${n}.call(null, ${x})`,
  ),
  apply: around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `f${n}.apply(null, [${x}])`,
  ),
  "Reflect.apply": around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `Reflect.apply(f${n}, null, [${x}])`,
  ),
  "a proxy": around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `new Proxy(f${n}, {})(${x})`,
  ),
  "a proxy with a trap": around(
    (fn, n) => `const f${n} = new Proxy(${fn}, { apply: (target, self, args) => Reflect.apply(target, self, args) });`,
    (x, n) => `f${n}(${x})`,
  ),
  compose: around(
    (_, n) => `const compose${n} = (...fns) => (v) => fns.reduce((it, fn) => fn(it), v);`,
    (x, n) => `compose${n}((v) => v, FN${n})(${x})`,
  ),
  "compose elsewhere": around(
    (fn, n) => `const compose${n} = (...fns) => (v) => fns.reduce((it, fn) => fn(it), v);
const composed${n} = compose${n}((v) => v, ${fn});`,
    (x, n) => `composed${n}(${x})`,
  ),
  "a callback": around(
    (_, n) => `const using${n} = (fn, v) => fn(v);`,
    (x, n) => `using${n}(FN${n}, ${x})`,
  ),
  "map of an array": around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `[${x}].map(f${n})[0]`,
  ),
  "a getter that returns a function": around(
    (fn, n) => `const acts${n} = { get go() { return ${fn}; } };`,
    (x, n) => `acts${n}.go(${x})`,
  ),
  "a getter of an object that has the value": around(
    (fn, n) => `class Holder${n} { constructor(v) { this.v = v; } get out() { return (${fn})(this.v); } }`,
    (x, n) => `new Holder${n}(${x}).out`,
  ),
  "a setter": around(
    (fn, n) => `class Holder${n} { set in(v) { this.out = (${fn})(v); } }
const through${n} = (v) => { const it = new Holder${n}(); it.in = v; return it.out; };`,
    (x, n) => `through${n}(${x})`,
  ),
  "a constructor": around(
    (fn, n) => `class Holder${n} { constructor(v) { this.out = (${fn})(v); } }`,
    (x, n) => `new Holder${n}(${x}).out`,
  ),
  "a method under a symbol": around(
    (fn, n) => `const GO${n} = Symbol("go"); const acts${n} = { [GO${n}]: ${fn} };`,
    (x, n) => `acts${n}[GO${n}](${x})`,
  ),
  "a tagged template": around(
    (fn, n) => `const f${n} = (texts, v) => (${fn})(v);`,
    (x, n) => `f${n}\`\${${x}}\``,
  ),
  "an iterator": around(
    (fn, n) => `class Items${n} { constructor(v) { this.v = v; } *[Symbol.iterator]() { yield (${fn})(this.v); } }`,
    (x, n) => `[...new Items${n}(${x})][0]`,
  ),
  "a default of a parameter": around(
    (fn, n) => `const f${n} = ${fn}; const g${n} = (v, out = f${n}(v)) => out;`,
    (x, n) => `g${n}(${x})`,
  ),
  "a function of a function": around(
    (fn, n) => `const f${n} = (v) => () => (${fn})(v);`,
    (x, n) => `f${n}(${x})()`,
  ),
  "an object in between": around(
    (fn, n) => `const f${n} = ({ value }) => (${fn})(value);`,
    (x, n) => `f${n}({ value: ${x} })`,
  ),
  "rest parameters": around(
    (fn, n) => `const f${n} = (...all) => (${fn})(all[0]);`,
    (x, n) => `f${n}(${x})`,
  ),
  arguments: around(
    (fn, n) => `function f${n}() { return (${fn})(arguments[0]); }`,
    (x, n) => `f${n}(${x})`,
  ),
  recursion: around(
    (fn, n) => `function f${n}(v, k) { return k === 0 ? (${fn})(v) : f${n}(v, k - 1); }`,
    (x, n) => `f${n}(${x}, 2)`,
  ),
  "a function in a closure": around(
    (fn, n) => `const f${n} = (() => { const inner = ${fn}; return { out: { deep: { go: (v) => inner(v) } } }; })();`,
    (x, n) => `f${n}.out.deep.go(${x})`,
  ),
  "an optional call": around(
    (fn, n) => `const acts${n} = { go: ${fn} };`,
    (x, n) => `acts${n}.go?.(${x})`,
  ),
  "a generator that yields it": around(
    (fn, n) => `function* g${n}(v) { yield (${fn})(v); }`,
    (x, n) => `g${n}(${x}).next().value`,
  ),
  "a generator that is sent it": around(
    (fn, n) => `function* g${n}() { let v = yield; while (true) v = yield (${fn})(v); }
const send${n} = (v) => { const it = g${n}(); it.next(); return it.next(v).value; };`,
    (x, n) => `send${n}(${x})`,
  ),
  "a generator that forward sends it to": around(
    (fn, n) => `function* g${n}() { let v = yield; while (true) v = yield (${fn})(v); }`,
    (x, n) => `(() => { const it = g${n}(); it.next(); return it.next(${x}).value; })()`,
  ),
  "a generator in forward that is sent it": around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) =>
      `(() => { const it = (function* () { yield f${n}(yield); })(); it.next(); return it.next(${x}).value; })()`,
  ),
  "a generator behind yield*": around(
    (fn, n) => `function* g${n}() { const v = yield; yield (${fn})(v); }
function* all${n}() { yield* g${n}(); }`,
    (x, n) => `(() => { const it = all${n}(); it.next(); return it.next(${x}).value; })()`,
  ),
  "a loop over a generator": around(
    (fn, n) => `function* g${n}(v) { yield (${fn})(v); }
const last${n} = (v) => { let out; for (const it of g${n}(v)) out = it; return out; };`,
    (x, n) => `last${n}(${x})`,
  ),
  "an own iterator": around(
    (fn, n) => `const items${n} = (v) => ({ [Symbol.iterator]: () => [(${fn})(v)].values() });`,
    (x, n) => `(() => { const [out] = items${n}(${x}); return out; })()`,
  ),
  "Symbol.toPrimitive": around(
    (fn, n) =>
      `const box${n} = (v) => { let out; const o = { [Symbol.toPrimitive]() { out = (${fn})(v); return 1; } }; void +o; return out; };`,
    (x, n) => `box${n}(${x})`,
  ),
  valueOf: around(
    (fn, n) => `class V${n} { constructor(v) { this.v = v; } valueOf() { this.out = (${fn})(this.v); return 1; } }`,
    (x, n) => `(() => { const o = new V${n}(${x}); o > 0; return o.out; })()`,
  ),
  "a static block that keeps it": around(
    (fn, n) => `class S${n} { static table = new Map(); static { S${n}.table.set("a", ${fn}); } }`,
    (x, n) => `S${n}.table.get("a")(${x})`,
  ),
  "a static block": around(
    (fn, n) => `const s${n} = (v) => { class S { static out; static { S.out = (${fn})(v); } } return S.out; };`,
    (x, n) => `s${n}(${x})`,
  ),
  "the initialiser of a field": around(
    (fn, n) => `const s${n} = (v) => new (class { out = (${fn})(v); })().out;`,
    (x, n) => `s${n}(${x})`,
  ),
  "call of call": around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `Function.prototype.call.call(f${n}, null, ${x})`,
  ),
  "apply that is bound": around(
    (fn, n) => `const f${n} = Function.prototype.apply.bind(${fn}, null);`,
    (x, n) => `f${n}([${x}])`,
  ),
  "Reflect.construct": around(
    (fn, n) => `class C${n} { constructor(v) { this.out = (${fn})(v); } }`,
    (x, n) => `Reflect.construct(C${n}, [${x}]).out`,
  ),
  "a getter by destructuring": around(
    (fn, n) => `class G${n} { constructor(v) { this.v = v; } get out() { return (${fn})(this.v); } }`,
    (x, n) => `(({ out }) => out)(new G${n}(${x}))`,
  ),
  "a getter by Reflect.get": around(
    (fn, n) => `const proto${n} = { get out() { return (${fn})(this.v); } };`,
    (x, n) => `Reflect.get(proto${n}, "out", { v: ${x} })`,
  ),
  "a getter of a prototype": around(
    (fn, n) => `const proto${n} = { get out() { return (${fn})(this.v); } };`,
    (x, n) => `Object.assign(Object.create(proto${n}), { v: ${x} }).out`,
  ),
  "a getter of a prototype, elsewhere": around(
    (fn, n) => `const proto${n} = { get out() { return (${fn})(this.v); } };
const of${n} = (v) => Object.assign(Object.create(proto${n}), { v });`,
    (x, n) => `of${n}(${x}).out`,
  ),
  "a getter of a prototype that is set": around(
    (fn, n) => `class P${n} { get out() { return (${fn})(this.v); } }`,
    (x, n) => `Object.setPrototypeOf({ v: ${x} }, P${n}.prototype).out`,
  ),
  "a getter of __proto__": around(
    (fn, n) => `const proto${n} = { get out() { return (${fn})(this.v); } };`,
    (x, n) => `({ __proto__: proto${n}, v: ${x} }).out`,
  ),
  "a getter of a base class": around(
    (fn, n) => `class Base${n} { get out() { return (${fn})(this.v); } }`,
    (x, n) => `new (class extends Base${n} { v = ${x}; })().out`,
  ),
  "a setter of a prototype": around(
    (fn, n) => `const proto${n} = { set v(v) { this.out = (${fn})(v); } };`,
    (x, n) => `Object.assign(Object.create(proto${n}), { v: ${x} }).out`,
  ),
  "a method of a prototype": around(
    (fn, n) => `const base${n} = { go(v) { return (${fn})(v); } };`,
    (x, n) => `({ __proto__: base${n} }).go(${x})`,
  ),
  "a method of a prototype that has the value": around(
    (fn, n) => `const base${n} = { go() { return (${fn})(this.v); } };`,
    (x, n) => `({ __proto__: base${n}, v: ${x} }).go()`,
  ),
  "Object.defineProperty": around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `((v) => Object.defineProperty({}, "out", { get: () => f${n}(v) }).out)(${x})`,
  ),
  "Object.defineProperties": around(
    (fn, n) => `const of${n} = (v) => Object.defineProperties({}, { out: { get: () => (${fn})(v) } });`,
    (x, n) => `of${n}(${x}).out`,
  ),
  "the reviver of JSON.parse": around(
    (fn, n) =>
      `const f${n} = ${fn}; const r${n} = (v) => { let out; JSON.parse('{"a":1}', (k, it) => { if (k === "a") out = f${n}(v); return it; }); return out; };`,
    (x, n) => `r${n}(${x})`,
  ),
  toJSON: around(
    (fn, n) =>
      `const r${n} = (v) => { let out; JSON.stringify({ toJSON() { out = (${fn})(v); return 1; } }); return out; };`,
    (x, n) => `r${n}(${x})`,
  ),
  "a comparator": around(
    (fn, n) => `const r${n} = (v) => { let out; [1, 2].sort(() => { out = (${fn})(v); return 0; }); return out; };`,
    (x, n) => `r${n}(${x})`,
  ),
  "a replacer": around(
    (fn, n) =>
      `const r${n} = (v) => { let out; "a".replace("a", () => { out = (${fn})(v); return ""; }); return out; };`,
    (x, n) => `r${n}(${x})`,
  ),
  "forEach of a Map": around(
    (fn, n) =>
      `const f${n} = ${fn}; const r${n} = (v) => { let out; new Map([["a", v]]).forEach((it) => { out = f${n}(it); }); return out; };`,
    (x, n) => `r${n}(${x})`,
  ),
  "Array.from": around(
    (fn, n) => `const f${n} = ${fn};`,
    (x, n) => `Array.from({ length: 1 }, () => f${n}(${x}))[0]`,
  ),
  "a proxy that gives a function": around(
    (fn, n) => `const f${n} = ${fn}; const p${n} = new Proxy({}, { get: () => f${n} });`,
    (x, n) => `p${n}.anything(${x})`,
  ),
  "a proxy as a prototype": around(
    (fn, n) => `const f${n} = ${fn}; const p${n} = new Proxy({}, { get: () => f${n} });`,
    (x, n) => `Object.create(p${n}).anything(${x})`,
  ),
  "Symbol.hasInstance": around(
    (fn, n) =>
      `const f${n} = ${fn}; const h${n} = (v) => { let out; void ({} instanceof { [Symbol.hasInstance]() { out = f${n}(v); return true; } }); return out; };`,
    (x, n) => `h${n}(${x})`,
  ),
  "a cache of functions": around(
    (fn, n) =>
      `const cache${n} = new Map(); const f${n} = ${fn}; const m${n} = (v) => { if (!cache${n}.has("k")) cache${n}.set("k", f${n}); return cache${n}.get("k")(v); };`,
    (x, n) => `m${n}(${x})`,
  ),
  "this[k]": members(
    (fn, n) => `k${n} = "go${n}"; go${n}(v) { return (${fn})(v); }`,
    (x, n) => `this[this.k${n}](${x})`,
  ),
  "a method that is bound": members(
    (fn, n) => `act${n} = this.go${n}.bind(this); go${n}(v) { return (${fn})(v); }`,
    (x, n) => `this.act${n}(${x})`,
  ),
  "a method that is bound in forward": members(
    (fn, n) => `go${n}(v) { return (${fn})(v); }`,
    (x, n) => `this.go${n}.bind(this)(${x})`,
  ),
  "a field that holds a function": members(
    (fn, n) => `go${n} = ${fn};`,
    (x, n) => `this.go${n}(${x})`,
  ),
  "a field that holds a Map of functions": members(
    (fn, n) => `acts${n} = new Map([["a", ${fn}]]);`,
    (x, n) => `this.acts${n}.get("a")(${x})`,
  ),
  "a field that holds an array of functions": members(
    (fn, n) => `acts${n} = [${fn}];`,
    (x, n) => `this.acts${n}[0](${x})`,
  ),
  "a getter of the module that returns a function": members(
    (fn, n) => `get go${n}() { return ${fn}; }`,
    (x, n) => `this.go${n}(${x})`,
  ),
  "a method of the module that returns a function": members(
    (fn, n) => `pick${n}() { return ${fn}; }`,
    (x, n) => `this.pick${n}()(${x})`,
  ),
  "this.constructor": members(
    (fn, n) => `static go${n}(v) { return (${fn})(v); }`,
    (x, n) => `this.constructor.go${n}(${x})`,
  ),
  "a method of the module under a symbol": members(
    (fn, n) => `[Symbol.for("go${n}")](v) { return (${fn})(v); }`,
    (x, n) => `this[Symbol.for("go${n}")](${x})`,
  ),
  "a private method of the module": members(
    (fn, n) => `#go${n}(v) { return (${fn})(v); }`,
    (x, n) => `this.#go${n}(${x})`,
  ),
  "an accessor of the module": members(
    (fn, n) => `get fns${n}() { return { go: ${fn} }; }`,
    (x, n) => `this.fns${n}.go(${x})`,
  ),
};

/** What a function decides about its value, as the condition of one of two results. */
export const DECISIONS: Readonly<Record<string, string>> = {
  "the truth of a sum": "(v) => (v.sum() ? v.relu() : v.neg())",
  "an if": "(v) => { if (v.any()) return v.relu(); return v.neg(); }",
  "a size": "(v) => (v.shape[0] === 4 ? v.relu() : v.neg())",
  "not a size": "(v) => (v.size(0) !== 4 ? v.relu() : v.neg())",
  "the number of dimensions": "(v) => (v.dim() === 2 ? v.relu() : v.neg())",
  switch: "(v) => { switch (v.size(0)) { case 4: return v.relu(); default: return v.neg(); } }",
  includes: "(v) => ([4, 8].includes(v.shape[0]) ? v.relu() : v.neg())",
  "Set.has": "(v) => (new Set([4]).has(v.size(0)) ? v.relu() : v.neg())",
  "Map.get": "(v) => (new Map([[4, 1]]).get(v.size(0)) ? v.relu() : v.neg())",
  not: "(v) => (!v.sum() ? v.relu() : v.neg())",
  and: "(v) => (v.sum() && v.any() ? v.relu() : v.neg())",
  or: "(v) => (v.sum() || v.any() ? v.relu() : v.neg())",
  while: "(v) => { while (v.numel() === 12) return v.relu(); return v.neg(); }",
  filter: "(v) => ([v].filter((it) => it.any()).length === 1 ? v.relu() : v.neg())",
  some: "(v) => ([v].some((it) => it.size(0) === 4) ? v.relu() : v.neg())",
  "typeof a size": '(v) => (typeof v.shape[0] === "number" ? v.relu() : v.neg())',
  "Object.is": "(v) => (Object.is(v.size(0), 4) ? v.relu() : v.neg())",
  Boolean: "(v) => (Boolean(v.sum()) ? v.relu() : v.neg())",
  "Number.isInteger": "(v) => (Number.isInteger(v.size(0)) ? v.relu() : v.neg())",
  "Array.isArray": "(v) => (Array.isArray(v.shape) ? v.relu() : v.neg())",
  "the truth of the value itself": "(v) => (v ? v.relu() : v.neg())",
  "the type of the value itself": '(v) => (typeof v === "object" ? v.relu() : v.neg())',
  "a WeakMap's get": "(v) => (new WeakMap([[v, 1]]).get(v) ? v.relu() : v.neg())",
  "an assignment": "(v) => { let out = v.neg(); if (v.size(0) === 4) out = v.relu(); return out; }",
};

/** What is decided about elements, and not about sizes, which an export may know. */
const ABOUT_ELEMENTS: ReadonlySet<string> = new Set([
  "the truth of a sum",
  "an if",
  "not",
  "and",
  "or",
  "filter",
  "Boolean",
]);

/** Whether a decision is about elements, which no trace has. */
export function isAboutElements(name: string): boolean {
  return ABOUT_ELEMENTS.has(name);
}

/** Functions that decide nothing about a traced value, and what each of them is. */
export const PLAIN: Readonly<Record<string, string>> = {
  "a call": "(v) => v.relu()",
  "two calls": "(v) => torch.relu(v).add(1)",
  "a setting": '(v, mode = "a") => (mode === "a" ? v.relu() : v.neg())',
  "a loop": "(v) => { let out = v; for (let i = 0; i < 2; i++) out = out.add(i); return out; }",
};

/** The source of a class of a module that goes these ways, the outermost first. */
export function moduleSource(detours: readonly Detour[], fn: string): string {
  let [text, inner, held] = ["", fn, ""];
  for (let n = detours.length - 1; n >= 0; n--) {
    const detour = detours[n] as Detour;
    const written = inner;
    const body = detour.call(n === 0 ? "x" : "v", n).replaceAll(`FN${n}`, () => written);
    text += `${detour.around?.(written, n) ?? ""}\n`;
    held = detour.members?.(written, n) ?? "";
    inner = n === 0 ? body : `(v) => ${body}`;
  }
  return `(() => {\n${text}return class Net extends nn.Module {\n${held}\nforward(x) {\nreturn ${inner};\n}\n};\n})()`;
}
