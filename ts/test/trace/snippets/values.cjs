// What needs the value, the length or the parts of a traced value.
const { Module, Parameter, tensor } = require("tracefx");
const { refused, recorded } = require("outcomes");

const number = refused("TraceCoercion", "operators: true");
const text = refused("TraceCoercion", "");
const walked = refused("TraceIteration", "");
const written = refused("TraceUnsupported", "");

class Scaled extends Module {
  scale = new Parameter(tensor([2.5, 3.5]));

  forward(x) {
    return x.mul(this.scale * 2); // ✗
  }
}

class Keeps extends Module {
  last = null;

  forward(x) {
    this.last = x; // ✗
    return x;
  }
}

class Stack extends Module {
  names = ["relu", "neg"];

  forward(x) {
    return this.names.reduce((y, name) => y[name](), x);
  }
}

let outside = null;

module.exports = {
  "+": [(x, y) => x + y, number, {}, { operators: "add = operator.add(x, y); return add" }], // ✗
  "+ of a number": [(x) => 1 + x, number, {}, { operators: "add = operator.add(1, x); return add" }], // ✗
  "-": [(x, y) => x - y, number, {}, { operators: "sub = operator.sub(x, y); return sub" }], // ✗
  "* and /": [(x, y) => (x * y) / 2, number, {}, { operators: "mul = operator.mul(x, y); truediv = operator.truediv(mul, 2); return truediv" }], // ✗
  "%": [(x) => x % 2, number, {}, { operators: "mod = operator.mod(x, 2); return mod" }], // ✗
  "**": [(x) => x ** 2, number, {}, { operators: "pow_1 = operator.pow(x, 2); return pow_1" }], // ✗
  "unary -": [(x) => -x, number, {}, { operators: "neg = operator.neg(x); return neg" }], // ✗
  "~": [(x) => ~x.gt(0), number, {}, { operators: "gt = x.gt(0); invert = operator.invert(gt); return invert" }], // ✗
  "<": [(x) => x < 1, number, {}, { operators: "lt = operator.lt(x, 1); return lt" }], // ✗
  "< in a test": [(x) => (x < 1 ? x : x.neg()), number], // ✗
  "& and |": [(x, y) => (x.gt(0) & y.gt(0)) | x.lt(0), number, {}, { operators: "gt = x.gt(0); gt_1 = y.gt(0); and_ = operator.and_(gt, gt_1); lt = x.lt(0); or_ = operator.or_(and_, lt); return or_" }], // ✗
  "+=": [(x, y) => {
    let z = x;
    z += y; // ✗
    return z;
  }, number, {}, { operators: "add = operator.add(x, y); return add" }],
  "+= on a part": [(x, y) => {
    const o = { z: x };
    o.z += y; // ✗
    return o.z;
  }, number, {}, { operators: "add = operator.add(x, y); return add" }],
  "++": [(x) => {
    let z = x;
    z++; // ✗
    return z;
  }, number],
  "an operator on plain numbers": [(x) => x.mul(2 * 3 - 1), recorded("mul = x.mul(5); return mul")],
  "an operator on a parameter of the module": [new Scaled(), number, {}, { operators: "scale = self.scale; mul = operator.mul(scale, 2); mul_1 = x.mul(mul); return mul_1" }],
  "a template": [(x) => `${x}`, text], // ✗
  "a text": [(x) => String(x), text], // ✗
  "a sum of text": [(x) => "x = " + x, number], // ✗
  "Number()": [(x) => Number(x.sum()), number], // ✗
  "Math.max": [(x) => Math.max(x, 1), number], // ✗
  "parseInt": [(x) => parseInt(x, 10), text], // ✗
  "isNaN": [(x) => isNaN(x), number], // ✗
  "toString": [(x) => x.toString(), text], // ✗
  "JSON.stringify": [(x) => JSON.stringify({ x }), text], // ✗
  "join": [(x) => [x, 1].join(), text], // ✗
  "a computed key": [(x) => [1, 2][x.dim()], text], // ✗
  "a key of an object": [(x) => ({ [x]: 1 }), text], // ✗
  "an index of a traced value": [(x) => x[0], recorded("getitem = operator.getitem(x, 0); return getitem")],
  "length": [(x) => x.length, walked], // ✗
  "a loop over the length": [(x) => {
    const all = [];
    for (let i = 0; i < x.length; i++) all.push(x[i]); // ✗
    return all;
  }, walked],
  "a loop over a size": [(x) => {
    const all = [];
    for (let i = 0; i < x.size(0); i++) all.push(x[i]); // ✗
    return all;
  }, number],
  "an array of a traced length": [(x) => new Array(x.size(0)).fill(0), refused("TraceIteration", "concreteArgs")], // ✗
  "Array.from with a traced length": [(x) => Array.from({ length: x.size(0) }, (_, i) => i), number], // ✗
  "for of": [(x) => {
    const all = [];
    for (const y of x) all.push(y); // ✗
    return all;
  }, walked],
  "spread": [(x) => [...x], walked], // ✗
  "spread arguments": [(x) => x.add(...x), walked], // ✗
  "the rest of the elements": [(x) => {
    const [a, ...b] = x; // ✗
    return [a, b];
  }, walked],
  "Array.from": [(x) => Array.from(x), walked], // ✗
  "map of a traced value, which is a method": [(x) => x.map((y) => y), written], // ✗
  "destructuring": [(x) => {
    const [a, , b] = x.unbind();
    return [b, a];
  }, recorded("unbind = x.unbind(); getitem = operator.getitem(unbind, 0); getitem_1 = operator.getitem(unbind, 1); getitem_2 = operator.getitem(unbind, 2); return [getitem_2, getitem]", { width: 3 })],
  "destructuring in a loop": [(x) => {
    let sum = x;
    for (const [a, n] of [[x.neg(), 1], [x.abs(), 2]]) sum = sum.add(a.mul(n));
    return sum;
  }, recorded("neg = x.neg(); abs_1 = x.abs(); mul = neg.mul(1); add = x.add(mul); mul_1 = abs_1.mul(2); add_1 = add.add(mul_1); return add_1")],
  "destructuring by name": [(x) => {
    const { shape } = x;
    return x.reshape(shape);
  }, recorded("getattr_1 = builtins.getattr(x, shape); reshape = x.reshape(getattr_1); return reshape")],
  "a result with parts": [(x) => ({ sum: x.sum(), all: [x, 1, null, "a"] }), recorded("sum_1 = x.sum(); return {sum: sum_1, all: [x, 1, None, a]}")],
  "spread of an array of traced values": [(x) => {
    const all = [x, x.neg()];
    return [...all, x];
  }, recorded("neg = x.neg(); return [x, neg, x]")],
  "spread of an object of traced values": [(x) => {
    const state = { a: x };
    return { ...state, b: x.neg() };
  }, recorded("neg = x.neg(); return {a: x, b: neg}")],
  "spread of a traced value into an object": [(x) => ({ ...x }), walked], // ✗
  "the rest of the parts": [(x) => {
    const { shape, ...rest } = x; // ✗
    return [shape, rest];
  }, walked],
  "Object.keys": [(x) => Object.keys(x), walked], // ✗
  "Object.entries of an object of traced values": [(x) => Object.entries({ a: x, b: x.neg() }).map(([name, y]) => [name, y]), recorded("neg = x.neg(); return [[a, x], [b, neg]]")],
  "for in": [(x) => {
    const names = [];
    for (const name in x) names.push(name); // ✗
    return names;
  }, walked],
  "in": [(x) => "shape" in x, walked], // ✗
  "a traced value in an object": [(x) => x in { a: 1 }, text], // ✗
  "an assignment to a part": [(x) => {
    x.grad = null; // ✗
    return x;
  }, written],
  "an assignment to an element": [(x) => {
    x[0] = 1; // ✗
    return x;
  }, written],
  "delete": [(x) => {
    delete x.grad; // ✗
    return x;
  }, written],
  "an assignment in the module": [new Keeps(), written],
  "an assignment outside of the function": [(x) => {
    outside = x;
    return x.neg();
  }, recorded("neg = x.neg(); return neg", { warns: "outside" })],
  "a call": [(x) => x(1), recorded("call = x.__call__(1); return call", { isSymbolic: true })],
  "reduce over the parts of a module": [new Stack(), recorded("relu = x.relu(); neg = relu.neg(); return neg")],
  "reduce over traced values": [(x) => [x, x.neg()].reduce((a, b) => a.add(b)), recorded("neg = x.neg(); add = x.add(neg); return add")],
  "sort of traced values": [(x, y) => [x, y].sort((a, b) => a - b), number], // ✗
  "console.log": [(x) => {
    console.debug(x);
    return x;
  }, recorded("return x")],
};
