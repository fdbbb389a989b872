import { beforeAll, describe, expect, test } from "vitest";
// oxlint-disable-next-line import/no-unassigned-import -- puts the functions of torch into the table
import "../../src/install.ts";
import { init } from "../../src/engine/engine.ts";
import type { FxError } from "../../src/base/errors.ts";
import * as operator from "../../src/functions/operator.ts";
import type { GraphModule } from "../../src/fx/graphModule.ts";
import { Transformer } from "../../src/trace/transformer.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { cond, map, scan, whileLoop } from "../../src/trace/controlFlow.ts";
import { symbolicTrace } from "../../src/trace/tracer.ts";
import { GraphAppendingTracer, Proxy } from "../../src/trace/tracerBase.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

const { add, sub, mul, gt, lt, neg, getitem } = operator;
const f = (...values: number[]): Tensor => tensor(values, { dtype: "float32" });
const array = (value: unknown): unknown => (Array.isArray(value) ? value.map(array) : (value as Tensor).toArray());
const isPositive = (x: Tensor): Tensor => gt(getitem(x, 0), 0) as Tensor;

/** The lines of a graph and of those inside it. */
function shown(gm: GraphModule): string {
  return gm
    .graphModules()
    .map(([path, { graph }]) => `${path === "" ? "root" : path}: ${graph}`)
    .join("\n");
}

class Branches extends Module {
  weight = new Parameter(f(10, 20));
  override forward(x: Tensor, y: Tensor): unknown {
    return cond(
      isPositive(x),
      (it) => [add(it, y), mul(it, this.weight)],
      (it) => [sub(it, 1), sub(it, y)],
      [x],
    );
  }
}

class Doubling extends Module {
  override forward(steps: Tensor, x: Tensor): unknown {
    return whileLoop(
      (left) => gt(getitem(left, 0), 0) as Tensor,
      (left, value) => [sub(left, 1) as Tensor, mul(value, 2) as Tensor],
      [steps, x],
    );
  }
}

/** What a trace of a scan with this function is refused with. */
function scanRefusal(combine: (sum: Tensor, x: Tensor) => readonly [Tensor, Tensor]): FxError {
  return thrown(() => symbolicTrace((xs: Tensor, start: Tensor) => scan(combine, start, xs)));
}

describe("cond", () => {
  test("is recorded as torch.export records it: free values and parameters are operands of both branches", () => {
    expect(shown(symbolicTrace(new Branches()))).toMatchInlineSnapshot(`
      "root: graph():
          %x : [num_users=2] = placeholder[target=x]
          %y : [num_users=1] = placeholder[target=y]
          %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%x, 0), kwargs = {})
          %gt : [num_users=1] = call_function[target=operator.gt](args = (%getitem, 0), kwargs = {})
          %weight : [num_users=1] = get_attr[target=weight]
          %true_graph_0 : [num_users=1] = get_attr[target=true_graph_0]
          %false_graph_0 : [num_users=1] = get_attr[target=false_graph_0]
          %cond : [num_users=2] = call_function[target=torch.ops.higher_order.cond](args = (%gt, %true_graph_0, %false_graph_0, (%x, %y, %weight)), kwargs = {})
          %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%cond, 0), kwargs = {})
          %getitem_2 : [num_users=1] = call_function[target=operator.getitem](args = (%cond, 1), kwargs = {})
          return [getitem_1, getitem_2]
      true_graph_0: graph():
          %x : [num_users=2] = placeholder[target=x]
          %y : [num_users=1] = placeholder[target=y]
          %weight : [num_users=1] = placeholder[target=weight]
          %add : [num_users=1] = call_function[target=operator.add](args = (%x, %y), kwargs = {})
          %mul : [num_users=1] = call_function[target=operator.mul](args = (%x, %weight), kwargs = {})
          return (add, mul)
      false_graph_0: graph():
          %x : [num_users=2] = placeholder[target=x]
          %y : [num_users=1] = placeholder[target=y]
          %weight : [num_users=0] = placeholder[target=weight]
          %sub : [num_users=1] = call_function[target=operator.sub](args = (%x, 1), kwargs = {})
          %sub_1 : [num_users=1] = call_function[target=operator.sub](args = (%x, %y), kwargs = {})
          return (sub, sub_1)"
    `);
  });

  test("runs the branch that is taken, eagerly and in the graph, and again after a retrace and a transformer", () => {
    const net = new Branches();
    const gm = symbolicTrace(net);
    const expected = {
      up: [
        [4, 6],
        [10, 40],
      ],
      down: [
        [-2, -3],
        [-4, -6],
      ],
    };
    for (const it of [net, gm, symbolicTrace(gm), new Transformer(gm).transform()]) {
      expect(array(it.forward(f(1, 2) as never, f(3, 4) as never))).toEqual(expected.up);
      expect(array(it.forward(f(-1, -2) as never, f(3, 4) as never))).toEqual(expected.down);
    }
  });

  test("leaves the module that is traced as it was", () => {
    const net = new Branches();
    symbolicTrace(net);
    expect([...net.attributes.keys()]).toEqual(["weight"]);
  });

  test("a predicate that is known decides at once", () => {
    const gm = symbolicTrace(
      (x: Tensor, flag: boolean) =>
        cond(
          flag,
          (it) => it,
          (it) => neg(it) as Tensor,
          [x],
        ),
      {
        concreteArgs: { flag: false },
      },
    );
    expect(gm.graph.findNodes({ op: "call_function", target: neg })).toHaveLength(1);
  });

  test("a predicate that is a tensor of the module is read when the graph runs", () => {
    class Switch extends Module {
      constructor() {
        super();
        this.registerBuffer("isOn", tensor(true));
      }
      override forward(x: Tensor): Tensor {
        const isOn = Reflect.get(this, "isOn") as Tensor;
        return cond(
          isOn,
          (it) => neg(it) as Tensor,
          (it) => it,
          [x],
        );
      }
    }
    const gm = symbolicTrace(new Switch());
    expect(array(gm.forward(f(1)))).toEqual([-1]);
    gm.attributes.set("isOn", { kind: "buffer", tensor: tensor(false) });
    expect(array(gm.forward(f(1)))).toEqual([1]);
  });

  test("works in a branch, and a value used in both is an operand once", () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => {
      const shifted = add(x, y) as Tensor;
      return cond(
        isPositive(x),
        () =>
          cond(
            isPositive(y),
            () => neg(shifted) as Tensor,
            () => y,
          ),
        () => shifted,
      );
    });
    expect(shown(gm)).toMatchInlineSnapshot(`
      "root: graph():
          %x : [num_users=2] = placeholder[target=x]
          %y : [num_users=2] = placeholder[target=y]
          %add : [num_users=1] = call_function[target=operator.add](args = (%x, %y), kwargs = {})
          %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%x, 0), kwargs = {})
          %gt : [num_users=1] = call_function[target=operator.gt](args = (%getitem, 0), kwargs = {})
          %true_graph_1 : [num_users=1] = get_attr[target=true_graph_1]
          %false_graph_1 : [num_users=1] = get_attr[target=false_graph_1]
          %cond : [num_users=1] = call_function[target=torch.ops.higher_order.cond](args = (%gt, %true_graph_1, %false_graph_1, (%y, %add)), kwargs = {})
          %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%cond, 0), kwargs = {})
          return getitem_1
      true_graph_1: graph():
          %y : [num_users=2] = placeholder[target=y]
          %add : [num_users=1] = placeholder[target=add]
          %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%y, 0), kwargs = {})
          %gt : [num_users=1] = call_function[target=operator.gt](args = (%getitem, 0), kwargs = {})
          %true_graph_0 : [num_users=1] = get_attr[target=true_graph_0]
          %false_graph_0 : [num_users=1] = get_attr[target=false_graph_0]
          %cond : [num_users=1] = call_function[target=torch.ops.higher_order.cond](args = (%gt, %true_graph_0, %false_graph_0, (%add, %y)), kwargs = {})
          %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%cond, 0), kwargs = {})
          return (getitem_1,)
      false_graph_1: graph():
          %y : [num_users=0] = placeholder[target=y]
          %add : [num_users=1] = placeholder[target=add]
          return (add,)
      true_graph_1.true_graph_0: graph():
          %add : [num_users=1] = placeholder[target=add]
          %y : [num_users=0] = placeholder[target=y]
          %neg : [num_users=1] = call_function[target=operator.neg](args = (%add,), kwargs = {})
          return (neg,)
      true_graph_1.false_graph_0: graph():
          %add : [num_users=0] = placeholder[target=add]
          %y : [num_users=1] = placeholder[target=y]
          return (y,)"
    `);
    expect(array(gm.forward(f(1), f(2)))).toEqual([-3]);
    expect(array(gm.forward(f(1), f(-2)))).toEqual([-2]);
    expect(array(gm.forward(f(-1), f(2)))).toEqual([1]);
  });

  test("an attribute that is first used in a branch is there outside of it too", () => {
    const gm = symbolicTrace((x: Tensor) => {
      const { shape } = x;
      const inside = cond(
        isPositive(x),
        () => add(x, shape[0] as number),
        () => x,
      );
      return [inside, shape[0]];
    });
    expect(gm.graph.problems()).toEqual([]);
    expect(array((gm.forward(f(1, 2)) as unknown[])[0])).toEqual([3, 4]);
  });

  test("refuses branches of different structure, and values that leave a branch another way", () => {
    const error = thrown(() =>
      symbolicTrace((x: Tensor) =>
        cond(
          isPositive(x),
          () => [x] as unknown,
          () => x,
        ),
      ),
    );
    expect(error.reason).toContain("different structures: list(*) and *");
    const leak = thrown(() =>
      symbolicTrace((x: Tensor) => {
        const kept: Tensor[] = [];
        cond(
          isPositive(x),
          () => (kept[0] = neg(x) as Tensor),
          () => x,
        );
        return kept[0];
      }),
    );
    expect(leak.kind).toBe("TraceUnsupported");
    expect(leak.reason).toContain("branch that has ended");
  });

  test("refuses predicates that are no booleans, and tracers that own no module", () => {
    expect(
      thrown(() =>
        cond(
          f(1),
          (x) => x,
          (x) => x,
          [f(1)],
        ),
      ).reason,
    ).toContain("a float32 tensor of shape [1]");
    const graph = symbolicTrace((x: Tensor) => x).graph;
    const x = new Proxy([...graph.nodes][0] as never, new GraphAppendingTracer(graph));
    expect(
      thrown(() =>
        cond(
          x,
          () => x,
          () => x,
        ),
      ).help,
    ).toContain("symbolicTrace");
  });

  test("TR-24: the operator itself takes graphs and no functions", () => {
    const gm = symbolicTrace(new Branches());
    const call = gm.graph.findNodes({ op: "call_function", target: "torch.ops.higher_order.cond" })[0];
    expect(call?.args).toHaveLength(4);
    expect(call?.stackTrace ?? call?.meta.get("stack_trace")).toContain("controlFlow.test.ts");
  });
});

describe("whileLoop", () => {
  test("is recorded as torch.export records it", () => {
    expect(shown(symbolicTrace(new Doubling()))).toMatchInlineSnapshot(`
      "root: graph():
          %steps : [num_users=1] = placeholder[target=steps]
          %x : [num_users=1] = placeholder[target=x]
          %while_loop_cond_graph_0 : [num_users=1] = get_attr[target=while_loop_cond_graph_0]
          %while_loop_body_graph_0 : [num_users=1] = get_attr[target=while_loop_body_graph_0]
          %while_loop : [num_users=2] = call_function[target=torch.ops.higher_order.while_loop](args = (%while_loop_cond_graph_0, %while_loop_body_graph_0, (%steps, %x), ()), kwargs = {})
          %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%while_loop, 0), kwargs = {})
          %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%while_loop, 1), kwargs = {})
          return [getitem, getitem_1]
      while_loop_cond_graph_0: graph():
          %steps : [num_users=1] = placeholder[target=steps]
          %x : [num_users=0] = placeholder[target=x]
          %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%steps, 0), kwargs = {})
          %gt : [num_users=1] = call_function[target=operator.gt](args = (%getitem, 0), kwargs = {})
          return gt
      while_loop_body_graph_0: graph():
          %steps : [num_users=1] = placeholder[target=steps]
          %x : [num_users=1] = placeholder[target=x]
          %sub : [num_users=1] = call_function[target=operator.sub](args = (%steps, 1), kwargs = {})
          %mul : [num_users=1] = call_function[target=operator.mul](args = (%x, 2), kwargs = {})
          return (sub, mul)"
    `);
  });

  test("runs while its condition holds", () => {
    const net = new Doubling();
    for (const it of [net, symbolicTrace(net)]) {
      expect(array(it.forward(f(3) as never, f(1, 2) as never))).toEqual([[0], [8, 16]]);
      expect(array(it.forward(f(0) as never, f(1, 2) as never))).toEqual([[0], [1, 2]]);
    }
  });

  test("refuses a body that gives something else than it takes, and a loop without end", () => {
    const error = thrown(() =>
      symbolicTrace((x: Tensor) =>
        whileLoop(
          (it) => lt(getitem(it, 0), 3) as Tensor,
          (it) => [it, it] as never,
          [x],
        ),
      ),
    );
    expect(error.reason).toContain("carries list(*) and gives list(*, *)");
    const eager = thrown(() =>
      whileLoop(
        (_x: Tensor) => true,
        (_x: Tensor) => [],
        [f(1)],
      ),
    );
    expect(eager.reason).toBe("the body carries 1 values and gives 0");
    expect(
      thrown(() =>
        whileLoop(
          (_n: number) => true,
          (n: number) => [n],
          [1],
        ),
      ).kind,
    ).toBe("LimitExceeded");
  });
});

const rows = (xs: { a: Tensor }, bias: Tensor): unknown => {
  const scale = neg(bias) as Tensor;
  return map((row, by) => ({ sum: add(row.a, by), scaled: mul(row.a, scale) }), xs, bias);
};

describe("map", () => {
  test("is recorded as torch.export records it, and stacks", () => {
    const gm = symbolicTrace((a: Tensor, bias: Tensor) => rows({ a }, bias));
    expect(shown(gm)).toMatchInlineSnapshot(`
      "root: graph():
          %a : [num_users=1] = placeholder[target=a]
          %bias : [num_users=2] = placeholder[target=bias]
          %neg : [num_users=1] = call_function[target=operator.neg](args = (%bias,), kwargs = {})
          %body_graph_0 : [num_users=1] = get_attr[target=body_graph_0]
          %map_impl : [num_users=2] = call_function[target=torch.ops.higher_order.map_impl](args = (%body_graph_0, [%a], [%bias, %neg]), kwargs = {})
          %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%map_impl, 0), kwargs = {})
          %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%map_impl, 1), kwargs = {})
          return {'sum': getitem, 'scaled': getitem_1}
      body_graph_0: graph():
          %a : [num_users=2] = placeholder[target=a]
          %bias : [num_users=1] = placeholder[target=bias]
          %neg : [num_users=1] = placeholder[target=neg]
          %add : [num_users=1] = call_function[target=operator.add](args = (%a, %bias), kwargs = {})
          %mul : [num_users=1] = call_function[target=operator.mul](args = (%a, %neg), kwargs = {})
          return (add, mul)"
    `);
    const a = tensor([
      [1.5, 2],
      [3, 4],
    ]);
    for (const it of [rows({ a }, f(1, 2)), gm.forward(a, f(1, 2))] as { sum: Tensor; scaled: Tensor }[]) {
      expect(array(it.sum)).toEqual([
        [2.5, 4],
        [4, 6],
      ]);
      expect(array(it.scaled)).toEqual([
        [-1.5, -4],
        [-3, -8],
      ]);
    }
  });

  test("refuses tensors of different lengths", () => {
    const error = thrown(() => map(([a]) => a, [f(1, 2), f(1)]));
    expect(error.reason).toBe("xs should be tensors with equal leading sizes above zero, which are 2, 1");
  });
});

const cumulative = (xs: Tensor, start: Tensor, scale: Tensor): unknown =>
  scan(
    (sum: Tensor, x: Tensor) => {
      const next = add(sum, x) as Tensor;
      return [next, [mul(next, scale)]];
    },
    start,
    xs,
  );

describe("scan", () => {
  test("is recorded as torch.export records it, and carries on", () => {
    const gm = symbolicTrace(cumulative);
    expect(shown(gm)).toMatchInlineSnapshot(`
      "root: graph():
          %xs : [num_users=1] = placeholder[target=xs]
          %start : [num_users=1] = placeholder[target=start]
          %scale : [num_users=1] = placeholder[target=scale]
          %scan_combine_graph_0 : [num_users=1] = get_attr[target=scan_combine_graph_0]
          %scan : [num_users=2] = call_function[target=torch.ops.higher_order.scan](args = (%scan_combine_graph_0, [%start], [%xs], (%scale,)), kwargs = {})
          %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%scan, 0), kwargs = {})
          %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%scan, 1), kwargs = {})
          return [getitem, [getitem_1]]
      scan_combine_graph_0: graph():
          %start : [num_users=1] = placeholder[target=start]
          %xs : [num_users=1] = placeholder[target=xs]
          %scale : [num_users=1] = placeholder[target=scale]
          %add : [num_users=2] = call_function[target=operator.add](args = (%start, %xs), kwargs = {})
          %mul : [num_users=1] = call_function[target=operator.mul](args = (%add, %scale), kwargs = {})
          return [add, mul]"
    `);
    const xs = tensor([[1.5], [2], [3]]);
    for (const it of [cumulative(xs, f(0), f(10)), gm.forward(xs, f(0), f(10))]) {
      expect(array(it)).toEqual([[6.5], [[[15], [35], [65]]]]);
    }
  });

  test("refuses what gives no pair, or carries something else on", () => {
    expect(scanRefusal((sum) => [sum] as never).reason).toContain("combine of scan gives list(*)");
    expect(scanRefusal((sum, x) => [[sum, x], x] as never).reason).toContain("combine of scan carries");
    expect(thrown(() => scan(() => 1 as never, f(1), f(1))).help).toBe("return [carry, y]");
  });
});

/** A condition that does not hold. */
const never = (it: Tensor): Tensor => lt(getitem(it, 0), -1) as Tensor;

/** A running sum. */
const running = (sum: Tensor, x: Tensor): readonly [Tensor, Tensor] => {
  const next = add(sum, x) as Tensor;
  return [next, mul(next, 1) as Tensor];
};

describe("scan along another dimension, and backwards", () => {
  const xs = tensor([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  // As PyTorch 2.13 gives them: scan(f, init, xs, dim=…, reverse=…).
  const recorded: readonly (readonly [object, readonly number[], unknown, unknown])[] = [
    [
      {},
      [0, 0, 0],
      [5, 7, 9],
      [
        [1, 2, 3],
        [5, 7, 9],
      ],
    ],
    [
      { reverse: true },
      [0, 0, 0],
      [5, 7, 9],
      [
        [5, 7, 9],
        [4, 5, 6],
      ],
    ],
    [
      { dim: 1 },
      [0, 0],
      [6, 15],
      [
        [1, 3, 6],
        [4, 9, 15],
      ],
    ],
    [
      { dim: -1, reverse: true },
      [0, 0],
      [6, 15],
      [
        [6, 5, 3],
        [15, 11, 6],
      ],
    ],
  ];

  test.each(recorded)("%j", (options, zeros, carry, outputs) => {
    const first = tensor(zeros);
    expect(array(scan(running, first, xs, options))).toEqual([carry, outputs]);
    if ("dim" in options && options.dim === -1) return;
    const gm = symbolicTrace((start: Tensor, it: Tensor) => scan(running, start, it, options));
    expect(array(gm.forward(first, xs))).toEqual([carry, outputs]);
  });

  test("outputs without such a dimension stay stacked along the first", () => {
    const [, sums] = scan(
      (sum: Tensor, x: Tensor) => [add(sum, x), getitem(x, 0)] as [Tensor, Tensor],
      tensor([0, 0]),
      xs,
      {
        dim: 1,
      },
    );
    expect(sums.toArray()).toEqual([1, 2, 3]);
  });

  test("refuses what is no dimension and no option", () => {
    expect(thrown(() => scan(running, tensor([0, 0, 0]), xs, { dim: 2 } as object)).reason).toBe(
      "the dimension 2 of a scan is out of range for tensors of rank 2",
    );
    expect(thrown(() => scan(running, tensor([0, 0, 0]), xs, { dim: 0.5 } as object)).reason).toBe(
      "Dim must be an int, but got 0.5",
    );
    expect(thrown(() => scan(running, tensor([0, 0, 0]), xs, { reverse: 1 } as object)).reason).toBe(
      "Reverse must be a bool, but got number",
    );
    expect(thrown(() => scan(running, tensor([0, 0, 0]), xs, { dims: 1 } as object)).help).toContain(
      "did you mean `dim`?",
    );
    expect(
      thrown(() => symbolicTrace((start: Tensor, it: Tensor) => scan(running, start, it, { dim: -1 }))).reason,
    ).toContain("the rank is not known");
  });

  test("nothing to go along gives what was carried", () => {
    expect(scan(running as never, xs, [])).toEqual([xs, []]);
  });
});

test("control flow refuses what is no function and no list of operands", () => {
  const x = tensor([1]);
  const refusals = [
    () => cond(true, 5 as never, (it: Tensor) => it, [x]),
    () => cond(true, (it: Tensor) => it, undefined as never, [x]),
    () =>
      cond(
        true,
        (it: Tensor) => it,
        (it: Tensor) => it,
        x as never,
      ),
    () => whileLoop({} as never, (it: Tensor) => [it], [x]),
    () => whileLoop(never, null as unknown as (it: Tensor) => [Tensor], [x]),
    () => whileLoop(never, (it: Tensor) => [it], x as never),
    () => map("f" as never, x),
    () => scan(undefined as never, x, x),
  ];
  for (const refusal of refusals) expect(thrown(refusal).kind).toBe("InvalidArgument");
});
