/**
 * Programs that are traced.
 *
 * @module
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import {
  builtins,
  Ellipsis,
  F,
  float,
  Graph,
  GraphModule,
  math,
  Module,
  type Node,
  nn,
  operator,
  Parameter,
  PH,
  Proxy,
  proxyableClass,
  slice,
  symbolicTrace,
  tensor,
  type Tensor,
  torch,
  Tracer,
  Transformer,
  tuple,
  wrap,
} from "../../src/index.ts";
import { checked, filled, full, message, numbers, names, type Programs } from "./said.ts";

const { add, sub, neg, mul, floordiv, getitem, matmul } = operator;

const lifted = wrap(function lifted(a: readonly number[], b: number): number {
  return (a[0] as number) + (a[1] as number) + b;
});

const liftedLater = wrap(function lifted_later(a: number): number {
  return a + 1;
});

const withSubmodule = wrap(function with_submodule(x: Tensor, norm: nn.BatchNorm1d): Tensor {
  return norm(x);
});

/** `relu(x + 3.0)`. */
export class AddRelu extends Module {
  override forward(x: Tensor): Tensor {
    return torch.relu(add(x, float(3)));
  }
}

/** A layer, an addition and a limit. */
export class Affine extends Module {
  param = new Parameter(torch.rand([3, 4]));
  linear = new nn.Linear(4, 5);
  constructor() {
    super();
    filled(this);
  }
  override forward(x: Tensor): Tensor {
    return this.linear(add(x, this.param)).clamp({ min: float(0), max: float(1) });
  }
}

class Pair {
  readonly left: Tensor;
  readonly right: Tensor;
  constructor(left: Tensor, right: Tensor) {
    this.left = left;
    this.right = right;
  }
  add(other: Pair): Pair {
    return new Pair(add(this.left, other.left), add(this.right, other.right));
  }
  mul(other: Pair): Pair {
    return new Pair(mul(this.left, other.left), mul(this.right, other.right));
  }
}

const TracedPair = proxyableClass(Pair);

/** A tracer with leaves of one's own. */
export function leaves(isLeaf: (module: Module, path: string) => boolean): Tracer {
  return new (class extends Tracer {
    override isLeafModule(module: Module, path: string): boolean {
      return isLeaf(module, path);
    }
  })();
}

export const tracing: Programs = {
  test_graph_module(say) {
    class Sub extends Module {
      w = new Parameter(torch.rand([4, 3]));
      override forward(x: Tensor): Tensor {
        return add(this.w, x);
      }
    }
    class Whole extends Module {
      lin = new nn.Linear(4, 3);
      sub_mod = new Sub();
      w = new Parameter(torch.rand([3]));
      override forward(A: Tensor, B: Tensor, c: Tensor): Tensor {
        const t = add(torch.sigmoid(A), this.lin(c));
        const sum = add(sub(add(add(add(t, this.w), t), 1), A), floordiv(B, A));
        return this.sub_mod(add(add(sum, neg(A)), A.add(B, { alpha: 3 })));
      }
    }
    checked(say, filled(new Whole()), full(1, 4, 3), full(2, 4, 3), full(0, 4, 4));
    class Unpacking extends Module {
      override forward(A: Tensor): unknown {
        const [m, idx] = torch.max(A, 0);
        return tuple(add(m, 1), add(idx, 1));
      }
    }
    checked(
      say,
      new Unpacking(),
      tensor(
        [
          [1.5, 5],
          [4, 2],
        ],
        { dtype: "float32" },
      )
        .ceil()
        .sub(
          tensor([
            [1, 0],
            [0, 0],
          ]),
        ),
    );
  },
  test_fx_shifts(say) {
    checked(
      say,
      (x: Tensor) => tuple(operator.lshift(x, 3), operator.rshift(x, 3)),
      tensor([1, 16, 100], { dtype: "int64" }),
    );
  },
  test_fx_and_or(say) {
    checked(
      say,
      (x: Tensor) => tuple(operator.and_(x, x), operator.or_(x, x)),
      tensor([1, 16, 100], { dtype: "int64" }),
    );
  },
  test_dict(say) {
    class M extends Module {
      override forward(d: Record<string, Tensor>): unknown {
        const first = getitem(d, "3") as Tensor;
        return tuple(first.relu(), { "4": (getitem(d, "3") as Tensor).neg() });
      }
    }
    checked(say, new M(), { "3": tensor([1, -1], { dtype: "float32" }) });
  },
  test_matmul_tracing(say) {
    const held = tensor([1, 2, 3], { dtype: "float32" });
    checked(say, (x: Tensor) => matmul(x, held), full(1, 3));
    checked(say, (x: Tensor) => held.matmul(x), full(1, 3));
  },
  test_disallow_override(say) {
    class NoWrites extends Tracer {
      override createNode(...call: Parameters<Tracer["createNode"]>): Node {
        if (call[1].endsWith("_")) throw new Error("In-place operations are not supported");
        return super.createNode(...call);
      }
    }
    const method = (x: Tensor): Tensor => {
      x.add_(3);
      return x;
    };
    const fn = (x: Tensor): Tensor => {
      torch.log_(x);
      return x;
    };
    const argument = (x: Tensor): Tensor => {
      const y = torch.ones([3, 4]);
      y.add_(x);
      return x;
    };
    for (const it of [method, fn, argument]) say(message(() => new NoWrites().trace(it)));
  },
  test_leaf_module(say) {
    class M extends Module {
      relu = new nn.ReLU();
      override forward(x: Tensor): Tensor {
        return this.relu(x);
      }
    }
    say(leaves(() => false).trace(new M()));
  },
  test_wrap(say) {
    const gm = checked(
      say,
      (y: number) => add(add(lifted(tuple(4, y) as never, 3), lifted([3, 4], 5)), lifted(tuple(y, y) as never, y)),
      2,
    );
    say(symbolicTrace(gm).graph);
  },
  test_wrapped_via_decorator(say) {
    const gm = checked(say, (y: number) => liftedLater(y), 0);
    const transformed = new Transformer(gm).transform();
    say(transformed.graph);
    say(transformed.forward(0));
    say(symbolicTrace(gm).graph);
  },
  test_wrap_with_submodule(say) {
    class M extends Module {
      norm = new nn.BatchNorm1d(2, { affine: false });
      override forward(x: Tensor): Tensor {
        return withSubmodule(x, this.norm);
      }
    }
    checked(say, new M().eval(), numbers(3, 2));
  },
  test_graph_edit_with_proxy(say) {
    const { graph } = symbolicTrace((a: number, b: number) => add(a, b));
    const edited = new Graph();
    const t = new Proxy(edited.graphCopy(graph) as Node);
    edited.output((add(t, t) as typeof t).node);
    const gm = new GraphModule({}, edited);
    gm.graph.lint();
    say(gm.graph);
    say(gm.forward(3, 4));
  },
  test_graph_unique_names_manual(say) {
    const graph = new Graph();
    const a = graph.createNode("placeholder", "x");
    const b = graph.createNode("call_module", "linear_mod", [a], {}, "foo_1_1");
    const c = graph.createNode("get_attr", "y_attr", [], {}, "foo_1");
    graph.output(graph.createNode("call_function", operator.add, [b, c]));
    const other = new Graph();
    other.graphCopy(graph);
    say(names(graph.nodes));
    say(names(other.nodes));
  },
  test_unpack(say) {
    const f = (a: readonly Tensor[], b: Tensor): Tensor => {
      const [c, d] = a as readonly [Tensor, Tensor];
      return add(add(c, d), b);
    };
    checked(say, f, [full(1, 1), full(1, 1)], full(1, 1));
  },
  test_reserved_getattr(say) {
    say(symbolicTrace((a: { foo: { bar: { baz: unknown } } }) => a.foo.bar.baz).graph);
  },
  test_tensor_attribute(say) {
    class M extends Module {
      tensor = numbers(3, 4);
      override forward(x: Tensor): Tensor {
        return F.linear(x, this.tensor);
      }
    }
    class Outer extends Module {
      ta = new M();
      override forward(x: Tensor): Tensor {
        return F.linear(x, this.ta.tensor);
      }
    }
    checked(say, new M(), numbers(2, 4));
    checked(say, new Outer(), numbers(2, 4));
  },
  test_tensor_attribute_coalseced(say) {
    const [val, val2] = [tensor(5, { dtype: "int64" }), tensor(5, { dtype: "int64" })];
    checked(say, (x: Tensor) => add(add(x, val), val), 1);
    checked(
      say,
      (x: Tensor) => {
        const inside = tensor(5, { dtype: "int64" });
        return add(add(x, inside), val2);
      },
      1,
    );
  },
  test_symbolic_trace_sequential(say) {
    class Neg extends Module {
      override forward(x: Tensor): Tensor {
        return torch.neg(x);
      }
    }
    checked(say, new nn.Sequential(new Neg(), new Neg(), new Neg()), numbers(3));
  },
  test_tensor_constant(say) {
    checked(say, (x: Tensor) => F.linear(x, torch.zeros([3, 4])), numbers(2, 4));
  },
  test_unpack_errors(say) {
    class Taking extends Module {
      override forward(_a: Tensor, _b: Tensor): Tensor {
        return torch.zeros([3, 4]);
      }
    }
    class Unpacks extends Module {
      sa = new Taking();
      override forward(x: Tensor): Tensor {
        return this.sa(...(x as unknown as readonly [Tensor, Tensor]));
      }
    }
    say(message(() => symbolicTrace(new Unpacks())));
  },
  test_pretty_print_targets(say) {
    say(symbolicTrace((x: { foo: Tensor; bar: Tensor }) => torch.add(add(x.foo, x.bar), float(3))).graph);
  },
  test_pretty_print_node(say) {
    class M extends Module {
      param = new Parameter(torch.rand([3, 4]));
      linear = new nn.Linear(4, 5);
      override forward(x: Tensor, y = 2): Tensor {
        const sum = add(getitem(x, y) as Tensor, this.param);
        return this.linear(sum).clamp({ min: float(0), max: float(1) });
      }
    }
    for (const node of symbolicTrace(new M()).graph.nodes) say(node.formatNode());
  },
  test_torch_fx_len(say) {
    checked(say, (x: Tensor) => builtins.len(x), numbers(3, 4));
    const held = [3, 4, 5];
    checked(say, (x: Tensor) => add(x, held.length), numbers(3));
  },
  test_torch_fx_getattr(say) {
    const f = (x: Tensor): unknown => builtins.getattr(x, "nonexistent_attr", tensor([2, 3], { dtype: "float32" }));
    checked(say, f, numbers(3));
  },
  test_sqrt(say) {
    checked(say, (x: Tensor) => math.sqrt(x.size(0)), full(0, 9));
    checked(say, (x: Tensor) => add(add(x, math.sqrt(4)), math.sqrt(9)), full(0, 2));
  },
  test_torch_custom_ops(say) {
    const f = (a: Tensor): Tensor => {
      const b = torch.ops.aten.sigmoid(a) as Tensor;
      const c = torch.ops.aten.cat([a, b]) as Tensor;
      return torch.ops.aten.cat(tuple(c, c)) as Tensor;
    };
    const gm = checked(say, f, full(0, 2));
    say(new GraphModule({}, gm.graph).forward(full(0, 2)));
  },
  test_pretty_print_graph(say) {
    say(symbolicTrace((x: Tensor) => torch.squeeze(add(x, float(3)), { dim: 2 })).graph);
  },
  test_custom_proxy_type(say) {
    const gm = symbolicTrace((x: Pair, y: Pair) => x.add(y).mul(x));
    say(gm.graph);
    const out = gm.forward(new Pair(numbers(3), numbers(3)), new Pair(full(1, 3), full(1, 3))) as Pair;
    say([out.left, out.right]);
  },
  test_custom_proxy_dynamic_value(say) {
    const gm = symbolicTrace((x: Pair, y: Tensor) => x.add(new TracedPair(y, y)).mul(x));
    say(gm.graph);
    const out = gm.forward(new Pair(numbers(3), numbers(3)), full(1, 3)) as Pair;
    say([out.left, out.right]);
  },
  test_return_tuple(say) {
    checked(say, (x: Tensor) => tuple(x, add(x, x)), full(1, 1));
  },
  test_nonetype_annotation(say) {
    say(message(() => symbolicTrace(new nn.EmbeddingBag(3, 4))));
    say(symbolicTrace(new nn.Sequential(new nn.EmbeddingBag(3, 4))).graph);
  },
  test_symbolic_trace_assert(say) {
    const gm = symbolicTrace((x: Tensor) => {
      torch._assert(operator.gt(x.shape[1] as number, 4), "assert_foobar");
      return x;
    });
    say(gm.graph);
    say((gm.forward(full(0, 1, 5)) as Tensor).shape[1]);
    say(message(() => gm.forward(full(0, 4, 3))));
  },
  test_trace_fn_constant(say) {
    const held = numbers(3);
    checked(say, (x: Tensor) => held.add(x), full(1, 3));
  },
  test_layout(say) {
    const f = (x: Tensor): Tensor => torch.emptyLike(x, { layout: torch.strided, pinMemory: false }).fill_(0);
    checked(say, f, numbers(3));
  },
  test_ellipsis(say) {
    const f = (x: Tensor, y: Tensor): Tensor =>
      add(x, getitem(y, tuple(slice(null, null), slice(1, 3), Ellipsis)) as Tensor);
    checked(say, f, full(1, 2, 2, 2), numbers(2, 4, 2));
  },
  test_inf_nan(say) {
    const f = (x: Tensor): unknown => tuple(add(x, Infinity), add(x, -Infinity), add(x, Number.NaN));
    checked(say, f, full(1, 2));
  },
  test_inf_nan_kwds(say) {
    const graph = new Graph();
    const x = graph.createNode("placeholder", "x");
    const b = graph.createNode("call_function", operator.add, [x, Infinity], {}, "inf");
    const c = graph.createNode("call_function", operator.add, [x, Number.NaN], {}, "nan");
    graph.output(tuple(b, c));
    const gm = new GraphModule({}, graph);
    say(gm.graph);
    say(gm.forward(full(1, 2)));
  },
  test_trace_function(say) {
    checked(say, (x: Tensor, y: Tensor) => add(torch.relu(x), y), numbers(3), full(1, 3));
  },
  test_trace_dict_proxy_keys(say) {
    class Taking extends Module {
      override forward(d: unknown): unknown {
        return d;
      }
    }
    class Calling extends Module {
      m = new Taking();
      override forward(x: Tensor): unknown {
        return this.m(new Map([[x, x]]));
      }
    }
    const tracer = leaves((module) => module instanceof Taking);
    tracer.checkSources = false;
    say(message(() => tracer.trace(new Calling())));
  },
  test_direct_param_use(say) {
    class Inner extends Module {
      b = new Parameter(torch.rand([4, 3]));
      override forward(_x: Tensor): Tensor {
        return this.b;
      }
    }
    class Outer extends Module {
      a = new Inner();
      override forward(x: Tensor): unknown {
        void x;
        return tuple(this.a.b, this.a.b.t(), this.a.b.view(12));
      }
    }
    say(symbolicTrace(new Outer()).graph);
  },
  test_default_args(say) {
    const one = (y = 1): number => y;
    const two = (y = 1, z = 2): number => add(y, z) as number;
    const mixed = (x: number, y = 1): number => add(x, y) as number;
    for (const [f, calls] of [
      [one, [[], [3]]],
      [two, [[], [3], [3, 4]]],
      [mixed, [[2], [2, 3]]],
    ] as const) {
      const gm = symbolicTrace(f as never);
      say(gm.graph);
      for (const given of calls) say(gm.forward(...given));
    }
  },
  test_string_literal_return(say) {
    checked(say, () => "foo");
  },
  test_snake_case(say) {
    class M extends Module {
      activations = new nn.ModuleDict({
        snake_case: new nn.ReLU(),
        PascalCase: new nn.LeakyReLU(),
        ALL_CAPS: new nn.PReLU(),
      });
      override forward(x: Tensor): unknown {
        return ["snake_case", "PascalCase", "ALL_CAPS"].map((it) => this.activations.get(it)(x) as Tensor);
      }
    }
    say(symbolicTrace(new M()).graph);
  },
  test_partial_trace(say) {
    const f = (x: number, y: boolean): number => {
      if (y) return mul(2, x) as number;
      return x;
    };
    for (const value of [true, false]) {
      const gm = symbolicTrace(f, { concreteArgs: { y: value } });
      say(gm.graph);
      say(gm.forward(3, value));
      say(message(() => gm.forward(3, !value)).split(" ")[0]);
    }
  },
  test_throw_out_variant(say) {
    const tracer = new Tracer();
    tracer.checkMutableOperations = true;
    const f = (x: Tensor): Tensor => {
      const y = torch.randLike(x);
      torch.sigmoid(x, { out: y });
      return y;
    };
    say(message(() => tracer.trace(f)).split("(")[0]);
  },
  test_tracing_graphmodules_as_leaf_submodules(say) {
    class Double extends Module {
      override forward(t: Tensor): Tensor {
        return add(t, t);
      }
    }
    class M extends Module {
      a: Module;
      b: Module;
      constructor(a: Module, b: Module) {
        super();
        this.a = a;
        this.b = b;
      }
      override forward(t: Tensor): Tensor {
        return add(this.a(t) as Tensor, this.b(t) as Tensor);
      }
    }
    for (const tracer of [leaves(() => true), leaves((_, path) => !path.includes("b"))]) {
      const m = new M(symbolicTrace(new Double()), new Double());
      const gm = new GraphModule(m, tracer.trace(m));
      say(gm.graph);
      say([...gm.namedChildren().keys()].toSorted());
      say(gm.forward(full(1, 2)));
    }
  },
  test_getitem(say) {
    class M extends Module {
      declare pe: Tensor;
      constructor() {
        super();
        this.registerBuffer("pe", numbers(4, 4));
      }
      override forward(x: Tensor): Tensor {
        return (getitem(this.pe, 2) as Tensor).add(x);
      }
    }
    checked(say, new M(), full(0, 4));
  },
  test_fn_type_annotations_dict(say) {
    const f = (p: readonly [Tensor, Tensor], z: Tensor): unknown => ({ a: add(add(p[0], p[1]), z) });
    checked(say, f, [full(1, 2), full(1, 2)], full(1, 2));
  },
  test_control_flow_error(say) {
    const f = (x: Tensor): unknown => {
      for (const it of x) torch.relu(it);
      return x;
    };
    say(message(() => symbolicTrace(f)));
    say(message(() => symbolicTrace((x: Tensor) => Number(x.sum()))).split(" ")[0]);
  },
  test_nested_modules_twice(say) {
    class M extends Module {
      act = new nn.ReLU();
      again = this.act;
      override forward(x: Tensor): Tensor {
        return add(this.again(this.act(x)), this.act(x));
      }
    }
    checked(say, new M(), numbers(3));
  },
  test_retrace(say) {
    const gm = symbolicTrace(new Affine());
    say(symbolicTrace(gm).graph);
    class Around extends Module {
      inner: Module;
      constructor(inner: Module) {
        super();
        this.inner = inner;
      }
      override forward(x: Tensor): Tensor {
        return torch.neg(this.inner(x) as Tensor);
      }
    }
    checked(say, new Around(gm), numbers(3, 4));
  },
  test_pytree(say) {
    const total = (x: readonly Tensor[]): unknown => x.reduce((sum: unknown, it) => add(sum as Tensor, it), 0);
    const dictTotal = (x: Record<string, Tensor>): unknown => {
      let out: unknown = 0;
      for (const it of Object.values(x)) out = add(out as Tensor, it);
      return out;
    };
    const mapped = (x: Record<string, readonly Tensor[]>): unknown =>
      Object.fromEntries(Object.entries(x).map(([key, items]) => [key, Array.from(items, (it) => add(it, 1))]));
    const dictAdd = (x: { a: Tensor; z: readonly Tensor[] }): unknown => add(x.a, total(x.z) as Tensor);
    const one = full(1, 2);
    for (const [f, inputs, given] of [
      [total, [PH, PH, PH], [one, one, one]],
      [total, [], []],
      [dictTotal, { a: PH, b: PH, c: PH }, { a: one, b: one, c: one }],
      [mapped, { a: tuple(PH, PH), b: [PH], c: [] }, { a: tuple(one as never, one as never), b: [one], c: [] }],
      [dictAdd, { a: PH, z: tuple(PH, PH, PH) }, { a: one, z: tuple(one as never, one as never, one as never) }],
      [dictAdd, { a: PH, z: [] }, { a: one, z: [] }],
    ] as const) {
      const gm = symbolicTrace(f as never, { concreteArgs: { x: inputs as never } });
      say(gm.graph.nodes.map((it) => it.op));
      say(gm.forward(given));
    }
  },
  test_pytree_concrete(say) {
    const f = (b: boolean, a: { a: Tensor; z: Tensor }): Tensor => {
      if (b) return a.a;
      return a.z;
    };
    const gm = symbolicTrace(f as never, { concreteArgs: { a: { a: PH, z: PH }, b: true } as never });
    say(gm.graph.nodes.map((it) => it.op));
    say(gm.forward(true, { a: full(1, 2), z: full(0, 2) }));
  },
  test_param_shape_const(say) {
    class M extends Module {
      param: Parameter;
      constructor(shape: readonly number[]) {
        super();
        this.param = new Parameter(torch.ones(shape));
      }
      override forward(x: Tensor): Tensor {
        return (this.param.shape[0] as number) < 3 ? torch.mm(x, this.param) : torch.relu(x);
      }
    }
    class Size extends M {
      override forward(x: Tensor): Tensor {
        return (this.param.size()[0] as number) < 3 ? torch.mm(x, this.param) : torch.relu(x);
      }
    }
    class Dim extends M {
      override forward(x: Tensor): Tensor {
        return this.param.dim() === 2 ? torch.mm(x, this.param) : torch.relu(x);
      }
    }
    class Numel extends M {
      override forward(x: Tensor): Tensor {
        return this.param.numel() < 10 ? torch.mm(x, this.param) : torch.relu(x);
      }
    }
    for (const Class of [M, Size, Dim, Numel]) {
      for (const shape of [
        [2, 2],
        [4, 4],
      ]) {
        say(new Tracer({ paramShapesConstant: true }).trace(new Class(shape)));
      }
    }
  },
};
