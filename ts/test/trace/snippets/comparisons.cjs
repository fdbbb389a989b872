// What compares traced values, asks what they are, or whether they are there.
const { Module, Proxy, tensor } = require("tracefx");
const { refused, recorded } = require("outcomes");

const compared = refused("TraceControlFlow", "x.eq");
const given = refused("TraceControlFlow", "concreteArgs");
const sought = refused("TraceControlFlow", "x.eq");

class Residual extends Module {
  downsample = null;

  forward(x) {
    const y = this.downsample === null ? x : this.downsample.forward(x);
    return y.add(x);
  }
}

class Masked extends Module {
  forward(x, mask = null) {
    if (mask !== null) return x.mul(mask); // ✗
    return x;
  }
}

class GivesMask extends Module {
  masked = new Masked();

  forward(x) {
    return this.masked.forward(x, x.gt(0));
  }
}

class GivesNone extends Module {
  masked = new Masked();

  forward(x) {
    return this.masked.forward(x);
  }
}

class Cached extends Module {
  cache = new Map();

  forward(x) {
    return this.cache.get(x); // ✗
  }
}

class Mode extends Module {
  mode = "relu";

  forward(x) {
    switch (this.mode) {
      case "relu":
        return x.relu();
      default:
        return x;
    }
  }
}

module.exports = {
  "===": [(x, y) => (x === y ? 1 : 2), compared], // ✗
  "!==": [(x) => (x.dim() !== 2 ? x : x.neg()), compared], // ✗
  "== of two traced values": [(x, y) => x == y, compared], // ✗
  "!= of a number": [(x) => x.size(0) != 2, compared], // ✗
  "=== of a part of the shape": [(x) => {
    if (x.shape[0] === 2) return x; // ✗
    return x.neg();
  }, compared],
  "=== of an argument that is no tensor": [(x, mode) => {
    if (mode === "neg") return x.neg(); // ✗
    return x;
  }, compared],
  "=== of a plain argument": [(x, mode) => {
    if (mode === "neg") return x.neg();
    return x;
  }, recorded("neg = x.neg(); return neg"), { mode: "neg" }],
  "Object.is": [(x, y) => Object.is(x, y), compared], // ✗
  "eq, which is recorded": [(x, y) => x.eq(y), recorded("eq = x.eq(y); return eq")],
  "switch": [(x) => {
    switch (x.dim()) { // ✗
      case 2:
        return x;
      default:
        return x.neg();
    }
  }, given],
  "case": [(x, n) => {
    switch (n) {
      case x.dim(): // ✗
        return x;
      default:
        return x.neg();
    }
  }, given, { n: 2 }],
  "switch (true)": [(x) => {
    switch (true) {
      case x.any(): // ✗
        return x;
      default:
        return x.neg();
    }
  }, given],
  "switch on a plain argument": [(x, n) => {
    switch (n) {
      case 1:
        x = x.neg();
      case 2:
        x = x.relu();
        break;
      default:
        x = x.abs();
    }
    return x;
  }, recorded("neg = x.neg(); relu = neg.relu(); return relu"), { n: 1 }],
  "switch on a setting of the module": [new Mode(), recorded("relu = x.relu(); return relu")],
  "typeof": [(x) => (typeof x === "number" ? x : x.neg()), given], // ✗
  "typeof of a plain argument": [(x, n) => (typeof n === "number" ? x.mul(n) : x), recorded("mul = x.mul(2); return mul"), { n: 2 }],
  "instanceof": [(x) => {
    if (x instanceof Array) return x; // ✗
    return x.neg();
  }, given],
  "instanceof Proxy": [(x) => (x instanceof Proxy ? x.neg() : x), recorded("neg = x.neg(); return neg", { isSymbolic: true })],
  "Array.isArray": [(x) => (Array.isArray(x) ? x[0] : x), given], // ✗
  "Array.isArray of an array": [(x) => {
    const all = [x, x.neg()];
    return Array.isArray(all) ? all[1] : all;
  }, recorded("neg = x.neg(); return neg")],
  "Object.hasOwn": [(x) => (Object.hasOwn(x, "grad") ? 1 : 2), given], // ✗
  "Object.getPrototypeOf": [(x) => Object.getPrototypeOf(x) === Array.prototype, given], // ✗
  "Number.isNaN": [(x) => (Number.isNaN(x) ? 1 : x), refused("TraceCoercion", "torch.isnan")], // ✗
  "Number.isInteger": [(x) => (Number.isInteger(x.size(0)) ? x : 1), refused("TraceCoercion", "torch.isnan")], // ✗
  "null of what is always there": [(x) => (x === null ? 1 : x.neg()), recorded("neg = x.neg(); return neg")],
  "null of what may be left out": [(x, mask = null) => (mask === null ? x : x.mul(mask)), given], // ✗
  "null of what is left out": [(x, mask = null) => (mask === null ? x : x.mul(mask)), recorded("return x"), { mask: null }],
  "== null of what may be left out": [(x, mask = undefined) => (mask == null ? x : x.mul(mask)), given], // ✗
  "null of what the caller gives": [new GivesMask(), recorded("gt = x.gt(0); mul = x.mul(gt); return mul")],
  "null of what the caller leaves out": [new GivesNone(), recorded("return x")],
  "null of what may be left out of a module": [new Masked(), given],
  "null of a part of the module": [new Residual(), recorded("add = x.add(x); return add")],
  "null of a variable": [(x) => {
    let sum = null;
    for (let i = 0; i < 2; i++) sum = sum === null ? x : sum.add(x);
    return sum;
  }, recorded("add = x.add(x); return add")],
  "null of an attribute": [(x) => (x.grad === null ? x : x.grad), given], // ✗
  "?? on what is always there": [(x, y) => (x ?? y).neg(), recorded("neg = x.neg(); return neg")],
  "?? on what may be left out": [(x, y = null) => (y ?? x).neg(), given], // ✗
  "?? on an attribute": [(x) => x.grad ?? x, given], // ✗
  "?. on what is always there": [(x) => x?.neg(), recorded("neg = x.neg(); return neg")],
  "?. on what may be left out": [(x, y = null) => [x, y?.neg()], given], // ✗
  "??=": [(x, y = null) => {
    let z = y;
    z ??= x; // ✗
    return z;
  }, given],
  "??= on a variable that is null": [(x) => {
    let z = null;
    z ??= x;
    return z.neg();
  }, recorded("neg = x.neg(); return neg")],
  "a default of a part": [(x) => {
    const { grad = x } = x; // ✗
    return grad;
  }, given],
  "a default of an element": [(x) => {
    const [a, b = a] = x.unbind(); // ✗
    return [a, b];
  }, given],
  "a default of a plain part": [(x) => {
    const { y = x.neg() } = { z: x };
    return y;
  }, recorded("neg = x.neg(); return neg")],
  "includes": [(x) => [1, 2].includes(x.dim()), sought], // ✗
  "includes of a plain argument": [(x, n) => ([1, 2].includes(n) ? x.neg() : x), recorded("neg = x.neg(); return neg"), { n: 2 }],
  "indexOf among traced values": [(x, y) => [x, y].indexOf(x), sought], // ✗
  "a set of traced values": [(x, y) => new Set([x, y]).size, sought], // ✗
  "has of a set": [(x) => new Set([1, 2]).has(x.dim()), sought], // ✗
  "a map with a traced key": [(x) => {
    const names = new Map();
    names.set(x, "x"); // ✗
    return names.size;
  }, sought],
  "get of a map": [(x) => new Map([[1, 2]]).get(x.dim()), sought], // ✗
  "a cache of the module": [new Cached(), sought],
  "a map of traced values by name": [(x) => {
    const named = new Map([["a", x], ["b", x.neg()]]);
    return named.get("b");
  }, recorded("neg = x.neg(); return neg")],
  "a concrete tensor": [(x) => {
    const mask = tensor([1, 0]);
    return mask === null ? x : x.mul(mask);
  }, recorded("_tensor_constant0 = self._tensor_constant0; mul = x.mul(_tensor_constant0); return mul")],
};
