import { beforeAll, describe, expect, test } from "vitest";
import { init } from "../../src/engine/engine.ts";
import { float, tuple } from "../../src/index.ts";
import { markBuiltin } from "../../src/nn/builtin.ts";
import { Module } from "../../src/nn/module.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { torch } from "../../src/torch.ts";
import { differenceOf } from "../../src/trace/difference.ts";
import { PH } from "../../src/trace/placeholder.ts";
import { symbolicTrace } from "../../src/trace/tracer.ts";
import { wrap } from "../../src/functions/wrap.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

const f = (...values: number[]): Tensor => tensor(values, { dtype: "float32" });

/** Keeps a running sum in a buffer, as a batch norm keeps its statistics. */
class Running extends Module {
  declare total: Tensor;
  constructor() {
    super();
    this.registerBuffer("total", f(0));
  }
  override forward(x: Tensor): Tensor {
    this.total.add_(x.sum());
    return torch.add(x, this.total);
  }
}

class Drops extends Module {
  override forward(x: Tensor): Tensor {
    return torch.mul(x, torch.rand(1));
  }
}

class Scale extends Module {
  readonly by: number;
  constructor(by: number) {
    super();
    this.by = by;
  }
  override forward(x: Tensor): Tensor {
    return torch.mul(x, this.by);
  }
}

markBuiltin({ Running, Drops, Scale });

class Net extends Module {
  running = new Running();
  drops = new Drops();
  scale = new Scale(2);
  override forward(x: Tensor): unknown {
    return { out: this.scale.forward(this.drops.forward(this.running.forward(x))) };
  }
}

describe("verify", () => {
  test("accepts a right trace, and leaves statistics and random numbers as they were", () => {
    const net = new Net();
    torch.manualSeed(7);
    const before = torch.getRngState().toArray();
    symbolicTrace(net, { verify: [f(1, 2)] });
    expect(net.running.total.toArray()).toEqual([0]);
    expect(torch.getRngState().toArray()).toEqual(before);
    symbolicTrace(net, { verify: [[f(1, 2)], [f(3)]] });
  });

  test("leaves inputs as they were, though the function changes them", () => {
    const x = f(1, 2);
    symbolicTrace((it: Tensor) => it.add_(1), { verify: [x] });
    expect(x.toArray()).toEqual([1, 2]);
  });

  test("takes nested inputs and fixed values as the function does", () => {
    symbolicTrace((x: { a: Tensor }, n: number) => tuple<unknown[]>(torch.mul(x.a, n), [n]), {
      concreteArgs: { x: { a: PH }, n: 3 },
      verify: [{ a: f(1) }, 3],
    });
  });

  test("refuses a trace that depends on a field that changes, and says which module is the first to differ", () => {
    class Drift extends Module {
      scale = new Scale(1);
      other = new Scale(3);
      calls = 0;
      override forward(x: Tensor): Tensor {
        this.calls += 1;
        return this.other.forward(this.scale.forward(torch.add(x, this.calls)));
      }
    }
    const error = thrown(() => symbolicTrace(new Drift(), { verify: [f(1, 2)] }));
    expect(error.kind).toBe("TraceMismatch");
    expect(error.reason).toBe(
      "the trace does not do what was traced: on the inputs, 2 of 2 elements differ, first element 0: 6 instead of 9",
    );
    expect(error.node).toBe("scale");
    expect(error.notes[0]).toBe("`scale` is the first module to differ");
    expect(error.notes[1]).toContain("verify.test.ts");
  });

  test("says where the graph calls another module", () => {
    class Turns extends Module {
      left = new Scale(1);
      right = new Scale(3);
      calls = 0;
      override forward(x: Tensor): Tensor {
        return (this.calls++ === 0 ? this.left : this.right).forward(x);
      }
    }
    const error = thrown(() => symbolicTrace(new Turns(), { verify: [f(1)] }));
    expect([error.node, error.notes[0]]).toEqual(["left", "the graph calls `left` where the module calls `right`"]);
  });

  test("of functions it names the node that gives the output, and the set of inputs", () => {
    let calls = 0;
    const count = wrap((x: Tensor): Tensor => torch.add(x, calls++), "test.verify.count");
    const error = thrown(() => symbolicTrace((x: Tensor) => [x.neg(), count(x)], { verify: [[f(1)], [f(2)]] }));
    expect(error.reason).toContain("on set 0 of inputs, output 1:");
    expect(error.node).toBe("count");
  });

  test("compares what the module holds afterwards", () => {
    class Counts extends Module {
      declare total: Tensor;
      constructor() {
        super();
        this.registerBuffer("total", f(0));
      }
      override forward(x: Tensor): Tensor {
        // The buffer is no traced value, so this happens while tracing and never in the graph.
        this.total.add_(1);
        return x;
      }
    }
    const error = thrown(() => symbolicTrace(new Counts(), { verify: [f(1)] }));
    expect(error.reason).toContain("`total` afterwards: 1 of 1 elements differ, first element 0: 1 instead of 2");
  });
});

describe("a difference", () => {
  test.each<[string, unknown, unknown, string | undefined]>([
    ["of structure", [f(1)], tuple<unknown[]>(f(1)), "it gives tuple(*) instead of list(*)"],
    ["of dtype", f(1), tensor([1]), "it gives a tensor of int64 [1] instead of float32 [1]"],
    ["of shape", f(1), tensor(1.5), "it gives a tensor of float32 [] instead of float32 [1]"],
    ["of one element", f(1, 2), f(1, 3), "1 of 2 elements differ, first element 1: 3 instead of 2"],
    ["within the tolerance", f(1), f(1.000001), undefined],
    ["of bits that stand for no number", f(Number.NaN), f(Number.NaN), undefined],
    [
      "of infinities",
      f(Infinity),
      f(-Infinity),
      "1 of 1 elements differ, first element 0: -Infinity instead of Infinity",
    ],
    ["of whole numbers", tensor([1n]), tensor([2n]), "1 of 1 elements differ, first element 0: 2 instead of 1"],
    ["of numbers that are none of a tensor", [1, "a"], [2, "a"], "output 0: it gives 2 instead of 1"],
    ["of a float and a number", float(1), 1, undefined],
    ["of None and nothing", null, undefined, undefined],
    ["of a tensor and a number", f(1), 1, "it gives 1 instead of a tensor of float32 [1]"],
  ])("%s", (_, expected, found, text) => {
    expect(differenceOf(expected, found)?.text).toBe(text);
  });
});
