// What functions are, call and catch.
const { Module, Parameter, TraceError, cond, map, scan, tensor, torch, whileLoop } = require("tracefx");
const { helper, kind, pure } = require("./helper");
const { refused, recorded } = require("outcomes");

const unsupported = refused("TraceUnsupported", "");

class Helps extends Module {
  scale(x, n) {
    return n === 1 ? x : x.mul(n);
  }

  choose(x, n) {
    if (n === 1) return x; // ✗
    return x.mul(2);
  }

  forward(x) {
    return this.scale(x, 3);
  }
}

class Chooses extends Helps {
  forward(x) {
    return this.choose(x, x.dim());
  }
}

class Above extends Module {
  forward(x) {
    return x.any() ? x : x.neg(); // ✗
  }
}

class Below extends Above {
  forward(x) {
    return super.forward(x);
  }
}

class Inner extends Module {
  inner = new Above();

  forward(x) {
    return this.inner.forward(x);
  }
}

class Getter extends Module {
  get isWide() {
    return 3 > 2;
  }

  forward(x) {
    return this.isWide ? x.neg() : x;
  }
}

class Computed extends Module {
  weight = new Parameter(tensor([1.5, 2.5]));

  get isLarge() {
    return this.weight.sum().gt(1);
  }

  forward(x) {
    return this.isLarge ? x : x.neg(); // ✗
  }
}

class Decides extends Module {
  weight = new Parameter(tensor([1.5, 2.5]));

  get scale() {
    return this.weight.sum() ? this.weight : 1; // ✗
  }

  forward(x) {
    return x.mul(this.scale);
  }
}

class Hooked extends Module {
  inner = new Helps();

  constructor() {
    super();
    this.inner.registerForwardHook((_module, _args, output) => (output.any() ? output : undefined));
  }

  forward(x) {
    return this.inner.forward(x);
  }
}

class HookedPlainly extends Module {
  inner = new Helps();

  constructor() {
    super();
    this.inner.registerForwardPreHook((module, [x]) => (module.training ? [x.neg()] : undefined));
  }

  forward(x) {
    return this.inner.forward(x);
  }
}

class Field extends Module {
  forward = (x) => (x ? 1 : 2); // ✗
}

module.exports = {
  "an async function": [async (x) => x, unsupported],
  "a generator": [function* (x) { yield x; }, unsupported],
  "a local generator": [(x) => {
    function* parts() {
      yield x;
      yield x.neg();
    }
    return [...parts()];
  }, recorded("neg = x.neg(); return [x, neg]")],
  "try and catch": [(x) => {
    try { // ✗
      return x.relu();
    } catch {
      return x;
    }
  }, unsupported],
  "catch that throws again": [(x) => {
    try {
      return x.relu();
    } catch (error) {
      throw new Error("no relu", { cause: error });
    }
  }, recorded("relu = x.relu(); return relu")],
  "catch that lets the tracer's errors through": [(x) => {
    try {
      return x.relu();
    } catch (error) {
      if (error instanceof TraceError) throw error;
      return x;
    }
  }, recorded("relu = x.relu(); return relu")],
  "catch around plain code": [(x) => {
    let n = 1;
    try {
      n = JSON.parse("2");
    } catch {
      n = 3;
    }
    return x.mul(n);
  }, recorded("mul = x.mul(2); return mul")],
  "finally": [(x) => {
    let y = x;
    try {
      y = y.relu();
    } finally {
      y = y.neg();
    }
    return y;
  }, recorded("relu = x.relu(); neg = relu.neg(); return neg")],
  "the count of the arguments": [function (x) {
    return arguments.length > 1 ? x : x.neg(); // ✗
  }, refused("TraceControlFlow", "concreteArgs")],
  "a bound function, whose source nobody sees": [((x) => x).bind(null), unsupported],
  "a default that is a tensor": [(x, y = x) => x.add(y), recorded("add = x.add(y); return add")],
  "cond": [(x) => cond(x.sum().gt(0), (y) => y.neg(), (y) => y.relu(), [x]), recorded("sum_1 = x.sum(); gt = sum_1.gt(0); true_graph_0 = self.true_graph_0; false_graph_0 = self.false_graph_0; cond = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x,)); getitem = operator.getitem(cond, 0); return getitem")],
  "cond with a test in a branch": [(x) => cond(x.sum().gt(0), (y) => (y ? y : x), (y) => y.relu(), [x]), refused("TraceControlFlow", "torch.where")], // ✗
  "whileLoop": [(x) => whileLoop((y) => y.sum().gt(1), (y) => [y.div(2)], [x]), recorded("while_loop_cond_graph_0 = self.while_loop_cond_graph_0; while_loop_body_graph_0 = self.while_loop_body_graph_0; while_loop = torch.ops.higher_order.while_loop(while_loop_cond_graph_0, while_loop_body_graph_0, (x,), ()); getitem = operator.getitem(while_loop, 0); return [getitem]")],
  "map and scan": [(x) => {
    const doubled = map((row) => row.mul(2), x);
    const [sum] = scan((carry, row) => [carry.add(row), row.neg()], x.select(0, 0), doubled);
    return sum;
  }, recorded("body_graph_0 = self.body_graph_0; map_impl = torch.ops.higher_order.map_impl(body_graph_0, [x], []); getitem = operator.getitem(map_impl, 0); select = x.select(0, 0); scan_combine_graph_0 = self.scan_combine_graph_0; scan = torch.ops.higher_order.scan(scan_combine_graph_0, [select], [getitem], ()); getitem_1 = operator.getitem(scan, 0); getitem_2 = operator.getitem(scan, 1); return getitem_1")],
  "torch.where": [(x) => torch.where(torch.gt(x, 0), x, x.neg()), recorded("gt = torch.gt(x, 0); neg = x.neg(); where = torch.where(gt, x, neg); return where")],
  "a random number": [(x) => {
    const p = Math.random();
    return p > 2 ? x : x.neg();
  }, recorded("neg = x.neg(); return neg", { warns: "Math.random()" })],
  "a method that decides by a plain value": [new Helps(), recorded("mul = x.mul(3); return mul")],
  "a method that decides by a traced value": [new Chooses(), refused("TraceControlFlow", "x.eq")],
  "the method of the base class": [new Below(), refused("TraceControlFlow", "torch.where")],
  "a part of the module": [new Inner(), refused("TraceControlFlow", "torch.where")],
  "a getter of the module": [new Getter(), recorded("neg = x.neg(); return neg")],
  "a getter that gives a traced value": [new Computed(), refused("TraceControlFlow", "torch.where")],
  "a getter that decides something": [new Decides(), refused("TraceControlFlow", "torch.where")],
  "a hook that decides something": [new Hooked(), refused("TraceControlFlow", "torch.where")],
  "a hook that decides by a setting": [new HookedPlainly(), recorded("neg = x.neg(); mul = neg.mul(3); return mul")],
  "forward as a field": [new Field(), refused("TraceControlFlow", "torch.where")],
  "a function of another file": [(x) => helper(x), refused("TraceControlFlow", "torch.where")],
  "a function of another file, which decides nothing": [(x) => pure(x), recorded("neg = x.neg(); return neg")],
  "a function of another file, which records nothing": [(x) => x.add(kind(x)), recorded("add = x.add(2); return add", { warns: "kind", isBlind: true })],
  "the truth of what a function of another file gives": [(x) => (pure(x) ? 1 : 2), refused("TraceControlFlow", "torch.where")], // ✗
};
