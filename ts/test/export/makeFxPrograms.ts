/**
 * Programs that are traced below autograd; `tests/oracle/gen_make_fx.py` has the same ones in Python.
 *
 * @module
 */
// oxlint-disable unicorn/consistent-function-scoping, no-shadow -- each program is read by itself
import {
  associativeScan,
  decompose,
  DecompositionInterpreter,
  F,
  func,
  getIsolatedGraphmodule,
  Graph,
  type GraphModule,
  makeFx,
  type MakeFxOptions,
  Module,
  nn,
  Parameter,
  slice,
  Ellipsis,
  float,
  guard,
  operator,
  selectiveDecompose,
  symbolicTrace,
  Interpreter,
  tensor,
  type Tensor,
  torch,
  tuple,
} from "../../src/index.ts";
import { filled, full, message, numbers, type Programs, type Say } from "../ported/said.ts";

function told(say: Say, fn: (...args: never[]) => unknown, args: unknown[], options: MakeFxOptions = {}): GraphModule {
  const gm = makeFx(fn as (...args: unknown[]) => unknown, options)(...args);
  say(gm.graph);
  say(gm.forward(...args));
  return gm;
}

const { add, gt, mul } = operator;

const { grad, gradAndValue, hessian, jacfwd, jacrev, jvp, vjp, vmap } = func;
const squareSum = (x: Tensor): Tensor => x.mul(x).sum();

const linear = (x: Tensor, weight: Tensor, bias: Tensor): unknown => F.linear(x, weight, bias);
const operands = (): Tensor[] => [numbers(2, 3), numbers(4, 3), numbers(4)];
const sigmoid = (x: Tensor): unknown => torch.reciprocal(torch.add(torch.exp(torch.neg(x)), 1));

type Pair = readonly [Tensor, Tensor];
const decayed = (a: Tensor, b: Tensor): Tensor => a.mul(0.5).add(b);
const pair = (a: Tensor, b: Tensor): Pair => tuple(a, b) as unknown as Pair;
const joined = (a: Pair, b: Pair): Pair => pair(a[0].mul(b[0]), a[1].mul(b[0]).add(b[1]));

export const programs: Programs = {
  pointwise(say) {
    told(say, (x: Tensor) => torch.add(x.sin(), x.cos().mul(2)), [numbers(2, 3)]);
  },
  two_inputs(say) {
    told(say, (x: Tensor, y: Tensor) => tuple(torch.add(x, y, { alpha: 2 }), x.sub(y)), [numbers(2, 3), numbers(3)]);
  },
  linear(say) {
    told(say, linear, operands());
  },
  linear_of_three_dimensions(say) {
    told(say, (x: Tensor, weight: Tensor) => F.linear(x, weight), [numbers(2, 2, 3), numbers(4, 3)]);
  },
  matmul(say) {
    const f = (x: Tensor, y: Tensor): unknown => torch.matmul(x, y);
    told(say, f, [numbers(2, 3), numbers(3, 4)]);
    told(say, f, [numbers(2, 2, 3), numbers(2, 3, 2)]);
    told(say, f, [numbers(3), numbers(3)]);
  },
  pre_dispatch(say) {
    const f = (x: Tensor, weight: Tensor, bias: Tensor): unknown => F.linear(x, weight, bias).relu();
    told(say, f, operands(), { preDispatch: true });
  },
  pre_dispatch_no_grad(say) {
    const f = (x: Tensor): unknown =>
      torch.add(
        torch.noGrad(() => x.sin()),
        x,
      );
    told(say, f, [numbers(2)], { preDispatch: true });
  },
  in_place(say) {
    told(
      say,
      (x: Tensor) => {
        const y = x.clone();
        y.add_(1);
        y.mul_(x);
        return y;
      },
      [numbers(3)],
    );
  },
  writes_to_an_input(say) {
    const f = (x: Tensor): unknown => {
      x.add_(1);
      return x.sum();
    };
    say(makeFx(f)(numbers(3)).graph);
  },
  views(say) {
    told(say, (x: Tensor) => x.view([-1]).reshape([3, 2]).transpose(0, 1).get(0).unsqueeze(0), [numbers(2, 3)]);
  },
  indexing(say) {
    const f = (x: Tensor, i: Tensor): unknown =>
      tuple(x.get(slice(null), slice(1, null)), x.get(Ellipsis, null), x.get(i), x.get(1));
    told(say, f, [numbers(3, 3), tensor([2, 0])]);
  },
  factories(say) {
    const f = (x: Tensor): unknown =>
      tuple(x.add(torch.ones([3])), torch.zerosLike(x), torch.arange(3), torch.full([2], 0.5));
    told(say, f, [numbers(3)]);
  },
  a_constant(say) {
    told(say, (x: Tensor) => x.mul(torch.tensor([1, 2, 3], { dtype: "float32" })), [numbers(3)]);
  },
  a_captured_tensor(say) {
    const weight = numbers(3);
    told(say, (x: Tensor) => x.mul(weight).add(weight), [numbers(3)]);
  },
  a_captured_parameter(say) {
    const weight = new Parameter(numbers(3));
    told(say, (x: Tensor) => x.mul(weight).sum().add(weight), [numbers(3)]);
  },
  a_module(say) {
    const model = filled(new nn.Sequential(new nn.Linear(3, 4), new nn.ReLU(), new nn.Linear(4, 2)));
    const gm = makeFx(model as never)(numbers(2, 3) as never);
    say(gm.graph);
    say(gm.forward(numbers(2, 3)));
  },
  a_module_with_its_state(say) {
    const model = filled(new nn.Linear(3, 2));
    const f = (params: Record<string, Tensor>, x: Tensor): unknown => nn.functionalCall(model, params, [x]);
    told(say, f, [Object.fromEntries(model.namedParameters()), numbers(2, 3)]);
  },
  nested_inputs(say) {
    const f = (inputs: [Tensor, { b: Tensor }], scale: Tensor): unknown => ({
      sum: inputs[0].add(inputs[1].b),
      scaled: [inputs[0].mul(scale)],
    });
    told(say, f, [[numbers(2), { b: numbers(2) }], numbers(2)]);
  },
  a_number_among_the_inputs(say) {
    told(say, (x: Tensor, n: number) => x.mul(n).add(n), [numbers(2), 3]);
  },
  results_that_are_no_tensors(say) {
    told(say, (x: Tensor) => tuple(x.add(1) as never, 3, null, "text"), [numbers(2)]);
  },
  several_results(say) {
    const f = (x: Tensor): unknown => {
      const [values, indices] = torch.max(x, 1) as unknown as [Tensor, Tensor];
      const [a, b] = torch.split(x, 2, 1) as [Tensor, Tensor];
      return tuple(values as never, indices as never, a.mul(b) as never);
    };
    told(say, f, [numbers(2, 4)]);
  },
  unused_calls(say) {
    const f = (x: Tensor): unknown => {
      x.sin();
      torch.ones([2]);
      return x.cos();
    };
    told(say, f, [numbers(2)]);
  },
  a_table(say) {
    const decompositionTable = { "torch.ops.aten.sigmoid.default": sigmoid };
    told(say, (x: Tensor) => torch.sigmoid(x).add(1), [numbers(3)], { decompositionTable });
  },
  a_table_of_composites(say) {
    const silu = (x: Tensor): unknown => x.mul(torch.sigmoid(x));
    const decompositionTable = new Map([[torch.ops.aten.silu.default, silu]]) as never;
    told(say, (x: Tensor) => tuple(F.gelu(x), F.silu(x)), [numbers(3)], { decompositionTable });
  },
  a_table_that_declines(say) {
    const addmm = (bias: Tensor, x: Tensor, y: Tensor): unknown =>
      x.size(0) > 2 ? undefined : torch.add(torch.mm(x, y), bias);
    const decompositionTable = { "torch.ops.aten.addmm.default": addmm };
    told(say, linear, operands(), { decompositionTable });
    told(say, linear, [numbers(3, 3), numbers(4, 3), numbers(4)], { decompositionTable });
  },
  softmax(say) {
    told(say, (x: Tensor) => tuple(F.softmax(x, -1), F.logSoftmax(x, 0)), [numbers(2, 3)]);
  },
  losses(say) {
    const f = (x: Tensor, y: Tensor): unknown =>
      tuple(F.mseLoss(x, y), F.l1Loss(x, y), F.binaryCrossEntropyWithLogits(x, y));
    told(say, f, [numbers(2, 3), full(1, 2, 3)]);
  },
  cross_entropy(say) {
    told(say, (x: Tensor, y: Tensor) => F.crossEntropy(x, y), [numbers(2, 3), tensor([0, 2])]);
  },
  norms(say) {
    const f = (x: Tensor, w: Tensor, b: Tensor): unknown => tuple(F.layerNorm(x, [4], w, b), F.groupNorm(x, 2, w, b));
    told(say, f, [numbers(2, 4), numbers(4), numbers(4).add(1)]);
  },
  convolution(say) {
    const f = (x: Tensor, w: Tensor): unknown => F.maxPool2d(F.conv2d(x, w, null, 1, 1), 2);
    told(say, f, [numbers(1, 1, 4, 4), numbers(2, 1, 3, 3)]);
  },
  dropout_in_eval(say) {
    told(say, (x: Tensor) => F.dropout(x, 0.5, false).add(1), [numbers(2)]);
  },
  embedding(say) {
    told(say, (i: Tensor, w: Tensor) => F.embedding(i, w), [tensor([1, 0]), numbers(3, 2)]);
  },
  einsum(say) {
    told(say, (x: Tensor, y: Tensor) => torch.einsum("ij,jk->ik", [x, y]), [numbers(2, 3), numbers(3, 2)]);
  },
  fake(say) {
    const f = (x: Tensor, weight: Tensor): unknown => F.linear(x, weight).relu();
    told(say, f, [numbers(2, 3), numbers(4, 3)], { tracingMode: "fake" });
  },
  fake_with_a_constant(say) {
    const f = (x: Tensor): unknown => x.add(torch.tensor([1, 2], { dtype: "float32" }));
    told(say, f, [numbers(2)], { tracingMode: "fake" });
  },
  symbolic(say) {
    const f = (x: Tensor): unknown => x.view([mul(x.size(0), x.size(1))] as number[]);
    told(say, f, [numbers(2, 3)], { tracingMode: "symbolic" });
  },
  symbolic_of_equal_sizes(say) {
    const f = (x: Tensor, y: Tensor): unknown => torch.mm(x, y).newZeros([add(x.size(0), y.size(1))] as number[]);
    told(say, f, [numbers(3, 4), numbers(4, 3)], { tracingMode: "symbolic" });
  },
  symbolic_decisions(say) {
    const f = (x: Tensor): unknown => (guard(gt(x.size(0), 2)) ? x.sin() : x.cos());
    told(say, f, [numbers(3)], { tracingMode: "symbolic" });
    told(say, f, [numbers(2)], { tracingMode: "symbolic" });
  },
  symbolic_with_one(say) {
    told(say, (x: Tensor) => x.expand([x.size(0), 3]).sum({ dim: [0] }), [numbers(4, 1)], { tracingMode: "symbolic" });
  },
  symbolic_linear(say) {
    told(say, linear, operands(), { tracingMode: "symbolic" });
  },
  item_is_refused(say) {
    say(message(() => makeFx((x: Tensor) => x.mul(x.sum().item()))(numbers(2))));
  },
  data_decides(say) {
    const f = (x: Tensor): unknown => (guard(torch.gt(x.sum(), 0).item()) ? x.sin() : x.cos());
    say(message(() => makeFx(f)(numbers(2))));
    say(message(() => makeFx(f, { tracingMode: "fake" })(numbers(2))));
  },
  item_of_a_constant(say) {
    told(say, (x: Tensor) => x.mul(float(torch.tensor(float(2)).item() as number)), [numbers(2)]);
  },
  modes(say) {
    say(message(() => makeFx(sigmoid, { tracingMode: "other" as never })(numbers(2))));
  },
  decomposing_a_graph(say) {
    const gm = symbolicTrace((x: Tensor) => torch.sigmoid(x).cos());
    const decompositionTable = { "torch.ops.aten.sigmoid.default": sigmoid };
    say(makeFx((x: Tensor) => new Interpreter(gm).run(x), { decompositionTable })(numbers(2)).graph);
  },
  decomposition_interpreter(say) {
    class M extends Module {
      weight = new Parameter(numbers(2));
      override forward(x: Tensor): Tensor {
        return torch.sigmoid(x.mul(this.weight));
      }
    }
    const graph = new Graph();
    const decompositionTable = { "torch.ops.aten.sigmoid.default": sigmoid };
    say(new DecompositionInterpreter(symbolicTrace(new M()), graph, { decompositionTable }).run(numbers(2)));
    say(graph);
  },
  decompositions_of_a_region(say) {
    const silu = (x: Tensor): unknown => x.mul(torch.sigmoid(x));
    told(say, (x: Tensor) => F.silu(decompose({ "torch.ops.aten.silu.default": silu }, () => F.silu(x))), [numbers(2)]);
    say(message(() => decompose({}, () => 0)));
  },
  a_graph_traced_again(say) {
    const gm = makeFx((x: Tensor) => F.linear(x, x).add(1), { preDispatch: true })(numbers(2, 2));
    say(gm.graph);
    const again = makeFx(gm as never)(numbers(2, 2) as never);
    say(again.graph);
    say(again.forward(numbers(2, 2)));
  },
  isolated(say) {
    say(getIsolatedGraphmodule((x: Tensor, y: Tensor) => x.sin().add(y), [numbers(2), numbers(2)]).graph);
    say(null);
  },
  selectively(say) {
    const gm = makeFx((x: Tensor, weight: Tensor) => F.linear(x, weight).relu(), { preDispatch: true })(
      numbers(2, 3),
      numbers(4, 3),
    );
    say(gm.graph);
    const args = [numbers(2, 3), numbers(4, 3)];
    say(selectiveDecompose(gm, args, { shouldDecompose: () => true }).graph);
    say(selectiveDecompose(gm, args, { shouldDecompose: (node) => node.target.includes("relu") }).graph);
  },
  vmap_of_pointwise(say) {
    told(say, (x: Tensor) => vmap((it: Tensor) => it.sin().mul(2).add(1))(x), [numbers(3, 2)]);
  },
  vmap_of_two(say) {
    told(say, (x: Tensor, y: Tensor) => vmap((a: Tensor, b: Tensor) => a.mul(b))(x, y), [numbers(3, 2), numbers(3, 2)]);
  },
  vmap_of_one_of_two(say) {
    const f = (x: Tensor, y: Tensor): unknown => vmap((a: Tensor, b: Tensor) => a.mul(b), { inDims: [0, null] })(x, y);
    told(say, f, [numbers(3, 2), numbers(2)]);
  },
  vmap_dims(say) {
    told(say, (x: Tensor) => vmap((a: Tensor) => a.exp(), { inDims: 1, outDims: 1 })(x), [numbers(2, 3)]);
  },
  vmap_nested(say) {
    told(say, (x: Tensor) => vmap(vmap((a: Tensor) => a.cos().add(1)) as never)(x as never), [numbers(2, 3)]);
  },
  numbers_of_grad(say) {
    const x = numbers(4);
    const fns = [
      squareSum,
      (x: Tensor) => x.sin().sum(),
      (x: Tensor) => x.exp().mul(x).sum(),
      (x: Tensor) => F.softmax(x, 0).get(0),
      (x: Tensor) => x.prod(),
      (x: Tensor) => torch.logsumexp(x, 0),
    ];
    for (const fn of fns) {
      say(grad(fn)(x));
      say(makeFx(grad(fn))(x).forward(x));
    }
  },
  numbers_of_grad_and_value(say) {
    say(gradAndValue(squareSum)(numbers(3)));
    const f = (x: Tensor): unknown => [x.mul(x).sum(), x.sin()];
    say(gradAndValue(f, { hasAux: true })(numbers(3)));
    say(grad(f, { hasAux: true })(numbers(3)));
  },
  numbers_of_argnums(say) {
    const f = (x: Tensor, y: Tensor): unknown => x.mul(y).mul(y).sum();
    say(grad(f, { argnums: 1 })(numbers(3), numbers(3).add(1)));
    say(grad(f, { argnums: [0, 1] })(numbers(3), numbers(3).add(1)));
  },
  numbers_of_second_gradients(say) {
    const x = numbers(3);
    const sum = (it: unknown): Tensor => (it as Tensor).sum();
    say(grad((x: Tensor) => sum(grad((y: Tensor) => y.mul(y).mul(y).sum())(x)))(x));
    say(grad((x: Tensor) => sum(grad((y: Tensor) => y.mul(x).mul(y).sum())(x)))(x));
    say(grad(grad((x: Tensor) => x.sin()))(tensor(0.5)));
    say(grad(grad(grad((x: Tensor) => x.mul(x).mul(x))))(tensor(0.5)));
  },
  numbers_of_vjp(say) {
    const [out, fn] = vjp((x: Tensor) => x.sin(), [numbers(3)]);
    say(out);
    say(fn(full(1, 3)));
    say(fn(numbers(3)));
    const [outs, both] = vjp((x: Tensor, y: Tensor) => [x.mul(y), x.sum()], [numbers(3), numbers(3).add(1)]);
    say(outs);
    say(both([full(1, 3), tensor(float(2))]));
  },
  numbers_of_jvp(say) {
    say(jvp((x: Tensor) => x.sin().mul(x), [numbers(3)], [full(1, 3)]));
    say(jvp((x: Tensor, y: Tensor) => x.mul(y), [numbers(3), numbers(3).add(1)], [full(1, 3), numbers(3)]));
    say(jvp((x: Tensor) => F.softmax(x, 0), [numbers(3)], [numbers(3)]));
    say(jvp((x: Tensor, w: Tensor) => x.matmul(w), [numbers(2, 3), numbers(3, 2)], [full(1, 2, 3), numbers(3, 2)]));
  },
  numbers_of_jacobians(say) {
    const f = (x: Tensor): Tensor => x.get(slice(2)).mul(x.get(2));
    say(jacrev((x: Tensor) => x.sin())(numbers(3)));
    say(jacfwd((x: Tensor) => x.sin())(numbers(3)));
    say(jacrev(f)(numbers(3)));
    say(jacfwd(f)(numbers(3)));
    say(
      hessian((x: Tensor) =>
        x
          .mul(x)
          .mul(x)
          .sum()
          .add(x.get(0).mul(x.get(1))),
      )(numbers(3)),
    );
  },
  numbers_of_vmap(say) {
    say(vmap(torch.dot)(numbers(3, 2), numbers(3, 2)));
    say(vmap(torch.mm)(numbers(3, 2, 2), numbers(3, 2, 2)));
    say(vmap((x: Tensor) => x.sum())(numbers(3, 2)));
    say(vmap((x: Tensor, y: Tensor) => x.matmul(y), { inDims: [0, null] })(numbers(3, 2), numbers(2, 4)));
    say(vmap((x: Tensor) => ({ a: x.mul(2), b: [x.sum()] }))(numbers(2, 2)));
    say(vmap((d: { x: Tensor }) => d.x.add(1), { inDims: [{ x: 1 }] })({ x: numbers(2, 3) }));
    say(vmap((x: Tensor) => F.softmax(x, 0))(numbers(2, 3)));
    say(vmap((x: Tensor) => x.sum(), { chunkSize: 2 })(numbers(5, 2)));
    say(vmap((x: Tensor) => x.add(1), { inDims: -1, outDims: -1 })(numbers(2, 3)));
  },
  numbers_of_gradients_of_examples(say) {
    const model = filled(new nn.Linear(2, 1));
    const params = Object.fromEntries(model.namedParameters());
    const loss = (params: Record<string, Tensor>, x: Tensor, y: Tensor): unknown =>
      F.mseLoss(nn.functionalCall(model, params, [x]) as Tensor, y);
    say(grad(loss)(params, numbers(3, 2), numbers(3, 1)));
    say(vmap(grad(loss), { inDims: [null, 0, 0] })(params, numbers(3, 2), numbers(3, 1)));
  },
  refusals_of_vmap(say) {
    const anonymous = <F>(f: F): F => f;
    const f = anonymous((x: Tensor) => x);
    say(message(() => vmap(f, { inDims: [0, 0] })(numbers(2))));
    say(message(() => vmap(anonymous((x: Tensor, y: Tensor) => x.add(y)))(numbers(2), numbers(3))));
    say(message(() => vmap(f)(3 as never)));
    say(message(() => vmap(f, { inDims: null })(numbers(2))));
    say(message(() => vmap(f, { inDims: 2 })(numbers(2))));
    say(message(() => vmap(anonymous(() => 3) as (x: Tensor) => unknown)(numbers(2))));
    say(message(() => vmap(f, { outDims: [0, 0] })(numbers(2))));
    say(message(() => vmap(anonymous(() => 3))()));
  },
  refusals_of_grad(say) {
    say(message(() => grad((x: Tensor) => x.mul(2))(numbers(2))));
    say(message(() => grad((() => 3) as (x: Tensor) => unknown)(numbers(2))));
    say(message(() => grad(squareSum, { argnums: 1 })(numbers(2))));
    say(message(() => grad(squareSum)(3 as never)));
    say(message(() => grad((x: Tensor) => x.sum(), { hasAux: true })(numbers(2))));
    say(message(() => jvp(squareSum, numbers(2) as never, numbers(2) as never)));
    say(message(() => jvp(squareSum, [numbers(2)], [numbers(2), numbers(2)])));
    say(message(() => jvp(squareSum, [numbers(2)], [numbers(3)])));
    say(message(() => vjp((x: Tensor) => x.sin(), [numbers(2)])[1](numbers(3))));
  },
  associative_scans(say) {
    for (const n of [1, 2, 3, 5, 8]) told(say, (x: Tensor) => associativeScan(decayed, x, 0), [numbers(n, 2)]);
  },
  associative_scan_of_leaves(say) {
    const f = (x: Tensor, y: Tensor): unknown => associativeScan(joined, pair(x, y), 1, { reverse: true });
    told(say, f, [numbers(2, 3), torch.add(numbers(2, 3), 1)]);
  },
  numbers_of_associative_scans(say) {
    const bits = (x: Tensor): unknown => [x.view(torch.int32).sum(), x.view(torch.int32).get(-1)];
    for (const n of [1, 2, 3, 5, 7, 8, 1000]) {
      const rough = torch.sin(torch.arange(n).remainder(97).mul(0.7));
      const x = torch.round(rough.mul(1000)).div(1000);
      for (const reverse of [false, true]) say(bits(associativeScan(torch.add as typeof decayed, x, 0, { reverse })));
      say(associativeScan(joined, [x, x.mul(3)], -1).map(bits));
    }
    say(associativeScan(torch.mm as typeof decayed, numbers(5, 2, 2).add(1), 0));
    const product = (a: { x: Tensor }, b: { x: Tensor }): { x: Tensor } => ({ x: a.x.mul(b.x) });
    say(associativeScan(product, { x: numbers(2, 3).add(2) }, 1));
  },
  refusals_of_associative_scan(say) {
    say(message(() => associativeScan(decayed, numbers(0, 2), 0)));
    say(message(() => associativeScan(joined, [numbers(2, 2), numbers(2)], 1)));
    say(message(() => associativeScan(decayed, [] as never, 0)));
    say(message(() => associativeScan(decayed, numbers(2), 0, { reverse: 2 as never })));
  },
};
