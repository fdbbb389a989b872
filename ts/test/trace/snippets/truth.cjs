// What asks whether a traced value is true.
const { Module, Parameter, tensor } = require("tracefx");
const { refused, recorded } = require("outcomes");

const branch = refused("TraceControlFlow", "torch.where");
const loop = refused("TraceControlFlow", "whileLoop");
const predicate = refused("TraceControlFlow", "known when tracing");

class Gate extends Module {
  weight = new Parameter(tensor([1.5, 2.5]));
  bias = null;

  forward(x) {
    if (this.training) return x.mul(this.weight);
    return this.bias ? x.add(this.bias) : x;
  }
}

class Chooses extends Module {
  weight = new Parameter(tensor([1.5, 2.5]));

  forward(x) {
    if (this.weight.sum().gt(0)) return x; // ✗
    return x.neg();
  }
}

class Requires extends Module {
  weight = new Parameter(tensor([1.5, 2.5]));

  forward(x) {
    if (this.weight.requiresGrad) return x; // ✗
    return x.neg();
  }
}

module.exports = {
  "if on an input": [(x) => {
    if (x) return x.relu(); // ✗
    return x;
  }, branch],
  "if on a result": [(x) => {
    const y = x.sum();
    if (y) return x; // ✗
    return y;
  }, branch],
  "if on a method's result": [(x) => {
    if (x.gt(0).all()) return x; // ✗
    return x.neg();
  }, branch],
  "else if": [(x, n) => {
    if (n === 1) return x;
    else if (x.any()) return x.neg(); // ✗
    return x;
  }, branch, { n: 2 }],
  "if on a plain argument": [(x, flag) => {
    if (flag) return x.relu();
    return x;
  }, recorded("relu = x.relu(); return relu"), { flag: true }],
  "if on a plain argument, the other way": [(x, flag) => {
    if (flag) return x.relu();
    return x;
  }, recorded("return x"), { flag: false }],
  "if on a constant": [(x) => {
    if (1 > 2) return x;
    return x.neg();
  }, recorded("neg = x.neg(); return neg")],
  "if on an array of traced values": [(x) => {
    const all = [];
    for (let i = 0; i < 2; i++) all.push(x.select(0, i));
    if (all.length > 1) return all;
    return x;
  }, recorded("select = x.select(0, 0); select_1 = x.select(0, 1); return [select, select_1]")],
  "if on a part of an object": [(x) => {
    const state = { x, isReady: true };
    if (state.isReady) return state.x;
    return x.neg();
  }, recorded("return x")],
  "if on a traced part of an object": [(x) => {
    const state = { x, isReady: x.any() };
    if (state.isReady) return state.x; // ✗
    return x.neg();
  }, branch],
  "?:": [(x) => (x ? 1 : 2), branch], // ✗
  "?: with two traced results": [(x, y) =>
    x.sum().lt(0) // ✗
      ? x : y, branch],
  "?: on a plain argument": [(x, n) => (n > 1 ? x.neg() : x), recorded("neg = x.neg(); return neg"), { n: 2 }],
  "&&": [(x, y) => x && y, branch], // ✗
  "|| for a default": [(x, y) => x || y, branch], // ✗
  "&& in a test": [(x, n) => {
    if (n === 1 && x) return x.neg(); // ✗
    return x;
  }, branch, { n: 1 }],
  "&& behind a plain value that is false": [(x, flag) => {
    const y = flag && x;
    return y === false ? x.neg() : x;
  }, refused("TraceControlFlow", "x.eq"), { flag: false }, { plugin: "neg = x.neg(); return neg" }],
  "!": [(x) => !x, branch], // ✗
  "!!": [(x) => [!!x], branch], // ✗
  "! on a plain argument": [(x, flag) => (!flag ? x : x.neg()), recorded("neg = x.neg(); return neg"), { flag: true }],
  "while": [(x) => {
    let y = x;
    while (y.gt(1).any()) y = y.div(2); // ✗
    return y;
  }, loop],
  "do while": [(x) => {
    let y = x;
    do y = y.div(2);
    while (y.any()); // ✗
    return y;
  }, loop],
  "for with a traced test": [(x) => {
    let y = x;
    for (; y.any(); ) y = y.div(2); // ✗
    return y;
  }, loop],
  "for that counts": [(x) => {
    let y = x;
    for (let i = 0; i < 2; i++) y = y.relu();
    return y;
  }, recorded("relu = x.relu(); relu_1 = relu.relu(); return relu_1")],
  "while that counts": [(x) => {
    let [y, i] = [x, 0];
    while (i < 2) {
      y = y.neg();
      i += 1;
    }
    return y;
  }, recorded("neg = x.neg(); neg_1 = neg.neg(); return neg_1")],
  "a loop that a traced value leaves": [(x) => {
    let y = x;
    outer: for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 3; j++) {
        if (y.any()) break outer; // ✗
        y = y.neg();
      }
    }
    return y;
  }, branch],
  "a loop that a count leaves": [(x) => {
    let y = x;
    outer: for (let i = 0; i < 3; i++) {
      for (;;) {
        y = y.neg();
        if (i === 1) break outer;
        continue outer;
      }
    }
    return y;
  }, recorded("neg = x.neg(); neg_1 = neg.neg(); return neg_1")],
  "&&=": [(x, y) => {
    let z = x;
    z &&= y; // ✗
    return z;
  }, branch],
  "||=": [(x, y) => {
    let z = x;
    z ||= y; // ✗
    return z;
  }, branch],
  "||= on a part": [(x, y) => {
    const o = { z: x };
    o.z ||= y; // ✗
    return o.z;
  }, branch],
  "Boolean()": [(x) => (Boolean(x) ? x : x.neg()), branch], // ✗
  "filter by Boolean": [(x, y) => [x, y].filter(Boolean), predicate], // ✗
  "filter by a traced value": [(x, y) => [x, y].filter((it) => it.any()), predicate], // ✗
  "filter of plain values": [(x) => [1, 2, 3].filter((i) => i > 1).map((i) => x.mul(i)), recorded("mul = x.mul(2); mul_1 = x.mul(3); return [mul, mul_1]")],
  "some": [(x) => [x].some((it) => it.any()), predicate], // ✗
  "every": [(x) => [0, 1].every((i) => x.select(0, i)), predicate], // ✗
  "find": [(x, y) => [x, y].find((it) => it), predicate], // ✗
  "findIndex": [(x, y) => [x, y].findIndex((it) => it.any()), predicate], // ✗
  "console.assert": [(x) => {
    console.assert(x.all(), "not all"); // ✗
    return x;
  }, refused("TraceControlFlow", "torch._assert")],
  "a guard": [(x) => {
    if (x === undefined) throw new Error("x is missing");
    return x.neg();
  }, recorded("neg = x.neg(); return neg")],
  "settings and members of a module": [new Gate(), recorded("weight = self.weight; mul = x.mul(weight); return mul")],
  "if on what is computed from a parameter": [new Chooses(), branch],
  "if on an attribute of a parameter": [new Requires(), branch],
  "in a closure": [(x) => {
    const choose = (y) => (y ? y : x); // ✗
    return choose(x.neg());
  }, branch],
  "in a local function": [(x) => {
    function choose(y) {
      if (y) return y; // ✗
      return x;
    }
    return choose(x.neg());
  }, branch],
  "in a callback": [(x) => [x, x.neg()].map((y) => (y ? 1 : 2)), branch], // ✗
  "in a recursion": [(x) => {
    const halve = (y) => (y.gt(1) ? halve(y.div(2)) : y); // ✗
    return halve(x);
  }, branch],
  "a recursion that counts": [(x) => {
    const times = (y, n) => (n === 0 ? y : times(y.neg(), n - 1));
    return times(x, 2);
  }, recorded("neg = x.neg(); neg_1 = neg.neg(); return neg_1")],
};
