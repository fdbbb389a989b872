/**
 * Programs that are exported.
 *
 * @module
 */
// oxlint-disable unicorn/consistent-function-scoping, no-shadow -- each program is read by itself
import {
  cond,
  Dim,
  type ExportedProgram,
  type ExportOptions,
  exportProgram,
  F,
  findSymbolBindingFxNodes,
  float,
  freeSymbols,
  freeUnbackedSymbols,
  fxPlaceholderTargets,
  fxPlaceholderVals,
  type GraphModule,
  hasFreeSymbols,
  hasFreeUnbackedSymbols,
  hasSymbolicSizesStrides,
  isAccessorNode,
  isConcreteInt,
  isSymbolBindingFxNode,
  isSymbolic,
  Module,
  nn,
  operator,
  Parameter,
  slice,
  SymExpr,
  tensor,
  type Tensor,
  TensorMeta,
  torch,
  tuple,
  type Val,
} from "../../src/index.ts";
import { filled, full, message, numbers, type Programs, type Say } from "./said.ts";

const { add, getitem, mul, sub } = operator;
const ones = (...sizes: number[]): Tensor => full(1, ...sizes);

/** Exports a module and says what came of it. */
function told(
  say: Say,
  module: Module,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> = {},
  options: ExportOptions = {},
): ExportedProgram {
  const program = exportProgram(module as never, args as never, kwargs, options);
  say(program.graph);
  say(String(program.graphSignature).trim());
  const ranges = [...program.rangeConstraints.values()];
  if (ranges.length > 0) say(ranges.map(({ min, max }) => `${min}..${max ?? "int_oo"}`).toSorted());
  const given = Object.keys(kwargs).length > 0 ? [...args, kwargs] : args;
  say(program.module()(...given));
  return program;
}

function sayChildren(say: Say, program: ExportedProgram): void {
  for (const [name, child] of program.graphModule.namedChildren()) say(`${name}: ${(child as GraphModule).graph}`);
}

class Linear extends Module {
  linear = new nn.Linear(4, 3);
  constructor() {
    super();
    filled(this);
  }
  override forward(x: Tensor): Tensor {
    return torch.relu(this.linear(x));
  }
}

export const exported: Programs = {
  test_basic(say) {
    class M extends Module {
      override forward(x: readonly Tensor[], y: Tensor): Tensor {
        return add(x[0] as Tensor, y);
      }
    }
    told(say, new M(), [[ones(1, 3)], ones(1, 3)]);
  },
  test_simple_module(say) {
    const program = told(say, new Linear(), [numbers(2, 4)]);
    say([...program.stateDict.keys()]);
    say(Array.from(program.namedParameters(), ([name]) => name));
  },
  test_buffer_util(say) {
    class M extends Module {
      declare kept: Tensor;
      declare dropped: Tensor;
      constructor() {
        super();
        this.registerBuffer("kept", ones(2));
        this.registerBuffer("dropped", full(2, 2), { persistent: false });
      }
      override forward(x: Tensor): Tensor {
        return add(add(x, this.kept), this.dropped);
      }
    }
    const program = told(say, new M(), [ones(2)]);
    say([...program.stateDict.keys()]);
    say(Array.from(program.namedBuffers(), ([name]) => name));
    say([...program.constants.keys()]);
  },
  test_buffer_mutation(say) {
    class M extends Module {
      declare count: Tensor;
      constructor() {
        super();
        this.registerBuffer("count", torch.zeros([1]));
      }
      override forward(x: Tensor): Tensor {
        this.count.add_(1);
        return add(x, this.count);
      }
    }
    const program = told(say, new M(), [ones(1)]);
    const core = program.runDecompositions();
    say(core.graph);
    say(String(core.graphSignature).trim());
    const module = program.module();
    module(ones(1));
    say(module(ones(1)));
  },
  test_input_mutation(say) {
    class M extends Module {
      override forward(x: Tensor, y: Tensor): Tensor {
        x.add_(y);
        return mul(x, 2);
      }
    }
    say(told(say, new M(), [ones(2), ones(2)]).runDecompositions().graph);
  },
  test_tied_weights(say) {
    class M extends Module {
      a = new nn.Linear(2, 2);
      b = new nn.Linear(2, 2);
      constructor() {
        super();
        this.b.weight = this.a.weight;
        filled(this);
      }
      override forward(x: Tensor): Tensor {
        return this.b(this.a(x));
      }
    }
    say([...told(say, new M(), [numbers(1, 2)]).stateDict.keys()]);
  },
  test_placeholder_naming_collisions(say) {
    class M extends Module {
      x = new Parameter(ones(2));
      override forward(p_x: Tensor, x: Tensor): Tensor {
        return add(add(p_x, this.x), x);
      }
    }
    told(say, new M(), [ones(2), ones(2)]);
    class Call extends Module {
      override forward(add: Tensor, mul: Tensor): Tensor {
        return torch.mul(torch.add(add, mul), mul);
      }
    }
    told(say, new Call(), [ones(2), ones(2)]);
  },
  test_placeholder_naming_order(say) {
    class M extends Module {
      override forward(x: { a: Tensor }, y: readonly [Tensor, Tensor], z: Tensor): Tensor {
        return add(add(add(x.a, y[0]), y[1]), z);
      }
    }
    told(say, new M(), [{ a: ones(2) }, tuple(ones(2) as never, ones(2) as never), ones(2)]);
  },
  test_constant_output(say) {
    class M extends Module {
      override forward(x: Tensor): unknown {
        return tuple(add(x, 1), 3, null, "text", 2.5, true);
      }
    }
    told(say, new M(), [ones(2)]);
  },
  test_nested_outputs(say) {
    class M extends Module {
      override forward(x: Tensor): unknown {
        return { a: add(x, 1), b: [mul(x, 2), tuple(x, sub(x, 1))] };
      }
    }
    told(say, new M(), [ones(2)]);
  },
  test_none_input(say) {
    class M extends Module {
      override forward(x: Tensor, y: Tensor | null): Tensor {
        return y === null ? add(x, 1) : add(x, y);
      }
    }
    told(say, new M(), [ones(2), null]);
  },
  test_primitive_inputs(say) {
    class M extends Module {
      override forward(x: Tensor, n: number, f: number, b: boolean): Tensor {
        return b ? add(mul(x, n), f) : x;
      }
    }
    const program = told(say, new M(), [ones(2), 3, 0.5, true]);
    say(message(() => program.module()(ones(2), 4, 0.5, true)).split(",")[0]);
  },
  test_kwargs(say) {
    class M extends Module {
      override forward(x: Tensor, { scale, shift = null }: { scale: Tensor; shift?: Tensor | null }): Tensor {
        return add(mul(x, scale), shift ?? 0);
      }
    }
    const program = told(say, new M(), [ones(2)], { scale: full(2, 2), shift: ones(2) });
    say(program.module()(ones(2), { shift: ones(2), scale: full(3, 2) }));
  },
  test_tensor_constant(say) {
    const held = tensor([1, 2], { dtype: "float32" });
    class M extends Module {
      override forward(x: Tensor): Tensor {
        return add(add(x, held), tensor([3, 4], { dtype: "float32" }));
      }
    }
    say([...told(say, new M(), [ones(2)]).constants.keys()]);
  },
  test_lifted_attribute_constant(say) {
    class M extends Module {
      held = tensor([1, 2], { dtype: "float32" });
      override forward(x: Tensor): Tensor {
        return add(x, this.held);
      }
    }
    const program = told(say, new M(), [ones(2)]);
    say([...program.constants.keys()]);
    say([...program.stateDict.keys()]);
  },
  test_dynamic_batch(say) {
    const batch = Dim("batch", { min: 2, max: 16 });
    const program = told(say, new Linear(), [numbers(3, 4)], {}, { dynamicShapes: { x: { 0: batch } } });
    const module = program.module();
    say([...(module(numbers(5, 4)) as Tensor).shape]);
    say(message(() => module(numbers(20, 4))));
    say(message(() => module(numbers(3, 5))).split(",")[0]);
  },
  test_dynamic_view(say) {
    class M extends Module {
      override forward(x: Tensor): Tensor {
        return x.view(mul(x.shape[0] as number, 2) as number, -1).sum(1);
      }
    }
    told(say, new M(), [numbers(3, 4)], {}, { dynamicShapes: { x: { 0: Dim("n") } } });
  },
  test_dynamic_two_inputs(say) {
    const n = Dim("n");
    class M extends Module {
      override forward(x: Tensor, y: Tensor): Tensor {
        return add(torch.cat([x, y]), x.shape[0] as number);
      }
    }
    const program = told(say, new M(), [ones(3), ones(3)], {}, { dynamicShapes: [{ 0: n }, { 0: n }] });
    say(message(() => program.module()(ones(3), ones(4))));
  },
  test_derived_dim(say) {
    const n = Dim("n", { min: 3, max: 8 });
    class M extends Module {
      override forward(x: Tensor, y: Tensor): Tensor {
        return add(x, getitem(y, slice(1, null)) as Tensor);
      }
    }
    const program = told(say, new M(), [ones(4), ones(5)], {}, { dynamicShapes: [{ 0: n }, { 0: n.add(1) }] });
    say(message(() => program.module()(ones(4), ones(6))));
  },
  test_dim_auto(say) {
    class M extends Module {
      override forward(x: Tensor, y: Tensor): Tensor {
        return add(x.reshape(-1), y);
      }
    }
    told(say, new M(), [ones(3, 2), ones(6)], {}, { dynamicShapes: [{ 0: Dim.AUTO }, { 0: Dim.AUTO }] });
  },
  test_specialized_dim_error(say) {
    class M extends Module {
      override forward(x: Tensor): Tensor {
        return x.reshape(3, 2);
      }
    }
    say(message(() => exportProgram(new M(), [ones(3, 2)], {}, { dynamicShapes: [{ 0: Dim("n") }] })));
  },
  test_mismatched_dynamic_shapes(say) {
    class M extends Module {
      override forward(x: readonly Tensor[], y: Tensor): Tensor {
        return add(x[0] as Tensor, y);
      }
    }
    const args = [[ones(2)], ones(2)] as const;
    const n = (): ReturnType<typeof Dim> => Dim("n");
    for (const dynamicShapes of [{ x: [{ 0: n() }] }, [[{ 0: n() }]], { x: { 0: n() }, y: null }, { z: null }]) {
      say(message(() => exportProgram(new M(), args as never, {}, { dynamicShapes: dynamicShapes as never })));
    }
  },
  test_unbacked_item(say) {
    class M extends Module {
      override forward(x: Tensor): Tensor {
        const n = x.item() as number;
        torch._check(operator.ge(n, 2));
        torch._check(operator.lt(n, 10));
        return torch.ones([n]);
      }
    }
    const program = told(say, new M(), [tensor(4, { dtype: "int64" })]);
    say(message(() => program.module()(tensor(1, { dtype: "int64" }))));
  },
  test_cond(say) {
    class M extends Module {
      override forward(x: Tensor): unknown {
        return cond(
          operator.gt(x.sum(), 0) as unknown as Tensor,
          (it) => add(it as Tensor, 1),
          (it) => sub(it as Tensor, 1),
          [x],
        );
      }
    }
    const program = told(say, new M(), [ones(2)]);
    say(program.module()(ones(2).neg()));
    sayChildren(say, program);
  },
  test_multiple_returns(say) {
    class M extends Module {
      override forward(x: Tensor): unknown {
        const [values, indices] = torch.max(x, 1);
        const [first, second] = torch.split(x, 2, 1) as unknown as readonly [Tensor, Tensor];
        return tuple(values, indices, add(first, second));
      }
    }
    told(say, new M(), [numbers(2, 4)]);
  },
  test_inplace_functional(say) {
    class M extends Module {
      override forward(x: Tensor): Tensor {
        const y = x.clone();
        y.mul_(2).relu_();
        operator.setitem(y, 0, float(3));
        return y;
      }
    }
    say(told(say, new M(), [numbers(4)]).runDecompositions().graph);
  },
  test_layers(say) {
    class M extends Module {
      net = new nn.Sequential(
        new nn.Conv2d(1, 2, 3),
        new nn.BatchNorm2d(2),
        new nn.ReLU(),
        new nn.MaxPool2d(2),
        new nn.Flatten(),
      );
      override forward(x: Tensor): Tensor {
        return this.net(x);
      }
    }
    const module = filled(new M());
    module.getBuffer("net.1.running_var").fill_(1);
    told(say, module.eval(), [numbers(1, 1, 6, 6)]);
    const program = exportProgram(module.train(), [numbers(2, 1, 6, 6)]);
    say(program.graph);
    say(String(program.graphSignature).trim());
  },
  test_embedding_and_norm(say) {
    class M extends Module {
      embed = new nn.Embedding(5, 4);
      norm = new nn.LayerNorm(4);
      override forward(ids: Tensor): Tensor {
        return F.gelu(this.norm(this.embed(ids)));
      }
    }
    const program = told(say, filled(new M()), [tensor([0, 3, 1], { dtype: "int64" })]);
    say(program.runDecompositions().graph);
  },
  test_attention(say) {
    class M extends Module {
      override forward(q: Tensor, k: Tensor, v: Tensor): Tensor {
        return F.scaledDotProductAttention(q, k, v, { isCausal: true });
      }
    }
    told(say, new M(), [numbers(1, 1, 3, 2), numbers(1, 1, 3, 2), numbers(1, 1, 3, 2)]);
  },
  test_no_grad(say) {
    class M extends Module {
      override forward(x: Tensor): Tensor {
        const y = torch.noGrad(() => add(x, 1));
        return mul(y, 2);
      }
    }
    sayChildren(say, told(say, new M(), [ones(2)]));
  },
  test_shared_submodule(say) {
    class M extends Module {
      act = new nn.Linear(2, 2);
      again = this.act;
      override forward(x: Tensor): Tensor {
        return this.again(this.act(x));
      }
    }
    say([...told(say, filled(new M()), [numbers(1, 2)]).stateDict.keys()]);
  },
  test_retrace(say) {
    const program = exportProgram(new Linear(), [numbers(2, 4)]);
    told(say, program.unlift(), [numbers(2, 4)]);
  },
  test_unused_inputs(say) {
    class M extends Module {
      unused = new Parameter(ones(2));
      linear = new nn.Linear(2, 2);
      override forward(x: Tensor, y: Tensor): Tensor {
        void y;
        return add(x, 1);
      }
    }
    told(say, new M(), [ones(2), ones(3)]);
  },
  test_output_is_input(say) {
    class M extends Module {
      p = new Parameter(ones(2));
      declare b: Tensor;
      constructor() {
        super();
        this.registerBuffer("b", ones(2));
      }
      override forward(x: Tensor): unknown {
        return tuple(x, this.p, this.b, x);
      }
    }
    told(say, new M(), [ones(2)]);
  },
  test_empty_forward(say) {
    class M extends Module {
      override forward(): Tensor {
        return add(torch.ones([2]), 1);
      }
    }
    told(say, new M(), []);
  },
  test_dtype_promotion(say) {
    class M extends Module {
      override forward(x: Tensor, y: Tensor): unknown {
        return tuple(add(x, y), operator.truediv(x, 2), y.to(torch.float16), operator.gt(x, 1) as unknown as Tensor);
      }
    }
    told(say, new M(), [tensor([1, 2], { dtype: "int64" }), tensor([0.5, 1.5], { dtype: "float32" })]);
  },
  test_args_type_checked(say) {
    const module = exportProgram(new Linear(), [numbers(2, 4)]).module();
    for (const args of [[], [numbers(2, 4), numbers(2, 4)], [[numbers(2, 4)]]]) {
      say(
        message(() => module(...args))
          .split(".")[0]
          ?.slice(0, 60),
      );
    }
  },
  test_python_assert(say) {
    class M extends Module {
      override forward(x: Tensor): Tensor {
        if (x.shape[0] !== 3) throw new Error("three rows");
        torch._check(operator.gt(x.shape[1] as number, 1));
        return add(x, 1);
      }
    }
    told(say, new M(), [ones(3, 2)]);
  },
  test_loop_unrolled(say) {
    class M extends Module {
      layers = new nn.ModuleList(Array.from({ length: 3 }, () => new nn.Linear(2, 2)));
      override forward(x: Tensor): Tensor {
        let res = x;
        for (const layer of this.layers) res = torch.tanh(layer(res) as Tensor);
        return res;
      }
    }
    told(say, filled(new M()), [numbers(1, 2)]);
  },
  test_decompositions(say) {
    class M extends Module {
      override forward(x: Tensor): unknown {
        return tuple(F.softmax(x, -1), F.elu(x), F.silu(x), x.std(), F.logSoftmax(x, 0));
      }
    }
    const program = told(say, new M(), [numbers(2, 2)]);
    say(program.runDecompositions().graph);
    say(program.runDecompositions(new Set()).graph);
  },
  test_symbols(say) {
    class Sized extends Module {
      override forward(x: Tensor, y: Tensor): unknown {
        const rows = x.shape[0] as number;
        return tuple(add(x.view(mul(rows, 2) as number, -1), 1), mul(y, x.shape[0] as number), y.sum());
      }
    }
    class Counted extends Module {
      override forward(x: Tensor): unknown {
        const n = x.item() as number;
        torch._check(operator.ge(n, 2));
        return tuple(torch.ones([n]), torch.zeros([3]));
      }
    }
    const n = Dim("n");
    for (const [module, args, dynamicShapes] of [
      [new Sized(), [ones(3, 4), ones(3)], [{ 0: n }, { 0: n }]],
      [new Counted(), [tensor(4, { dtype: "int64" })], undefined],
      [new Linear(), [numbers(2, 4)], undefined],
    ] as const) {
      const options = dynamicShapes === undefined ? {} : { dynamicShapes };
      const { graphModule } = exportProgram(module as never, args as never, {}, options);
      for (const node of graphModule.graph.nodes) {
        const val = node.meta.get("val") as Val | undefined;
        if (val === undefined || (val instanceof SymExpr && /^operator\.(?:ge|le)$/.test(node.target))) continue;
        const [all, unbacked] = [freeSymbols(val), freeUnbackedSymbols(val)];
        say([
          [...all].toSorted(),
          hasFreeSymbols(val),
          [...unbacked].toSorted(),
          hasFreeUnbackedSymbols(val),
          isSymbolBindingFxNode(node),
          isAccessorNode(node),
        ]);
        if (val instanceof TensorMeta) say(hasSymbolicSizesStrides(val));
        else if (val instanceof SymExpr) say([isSymbolic(val), isConcreteInt(val)]);
      }
      say(new Map(Array.from(findSymbolBindingFxNodes(graphModule.graph), ([symbol, { name }]) => [symbol, name])));
      say(fxPlaceholderTargets(graphModule));
      say(fxPlaceholderVals(graphModule).length);
    }
  },
};
