/**
 * Short functions that are exported, traced below autograd, or traced by themselves.
 *
 * @module
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import {
  Dim,
  type DynamicShapes,
  exportProgram,
  F,
  float,
  makeFx,
  type MakeFxOptions,
  Module,
  operator,
  slice,
  symbolicTrace,
  tensor,
  type Tensor,
  torch,
  type Traceable,
  tuple,
} from "../../src/index.ts";
import { full, numbers, type Programs, type Say } from "./said.ts";

const { add, mod, mul, neg, sub } = operator;
const ones = (...sizes: number[]): Tensor => full(1, ...sizes);
const ints = (...values: number[]): Tensor => tensor(values);
const all = slice(null);
const x23 = (): Tensor => numbers(2, 3);
const x3 = (): Tensor => numbers(3);
const n = Dim("n");
const DYNAMIC: DynamicShapes = { x: { 0: n } };

// oxlint-disable-next-line typescript/no-explicit-any -- Python's functions take what they get
type Any = any;
type Fn = (...args: Any[]) => unknown;
type Program = (say: Say) => void;

function exported(fn: Fn, args: () => readonly unknown[], dynamicShapes: DynamicShapes = null): Program {
  class One extends Module {
    override forward(x: unknown): unknown {
      return fn(x);
    }
  }
  class Two extends Module {
    override forward(x: unknown, y: unknown): unknown {
      return fn(x, y);
    }
  }
  class Three extends Module {
    override forward(x: unknown, y: unknown, z: unknown): unknown {
      return fn(x, y, z);
    }
  }

  return (say) => {
    const given = args();
    const M = [One, Two, Three][given.length - 1] as typeof One;
    const program = exportProgram(new M(), given, {}, { dynamicShapes, verify: false });
    say(program.graph);
    say(program.module()(...given));
  };
}

function made(fn: Fn, args: () => readonly unknown[], options: MakeFxOptions = {}): Program {
  return (say) => {
    const given = args();
    const gm = makeFx(fn, options)(...given);
    say(gm.graph);
    say(gm.forward(...given));
  };
}

function traced(fn: Fn, args: () => readonly unknown[]): Program {
  return (say) => {
    const gm = symbolicTrace(fn as Traceable);
    say(gm.graph);
    say(gm.forward(...args()));
  };
}

const PRE_DISPATCH = { preDispatch: true };
const SYMBOLIC = { tracingMode: "symbolic" } as const;

export const short: Programs = {
  test_no_tensor_computation: exported(
    (_: Any, y: Any) => y,
    () => [x3(), x23()],
  ),
  test_no_tensor_computation_2: exported(
    (x: Any, _y: Any) => tuple(x, 3),
    () => [x3(), x23()],
  ),
  test_multidimensional_slicing: exported(
    (x: Any) => x.get(slice(0, 1), slice(1, 3)),
    () => [x23()],
  ),
  test_slice_nn_module_stack: exported(
    (x: Any) => x.get(slice(1, null)).relu(),
    () => [x23()],
  ),
  test_operator_aten_tensor_mode_variant: exported(
    (x: Any) => torch.div(x, 2, { roundingMode: "floor" }),
    () => [x23()],
  ),
  test_device_to_static: exported(
    (x: Any) => x.to("cpu"),
    () => [x3()],
  ),
  test_float_conversion: exported(
    (x: Any) => x.float(),
    () => [x3()],
  ),
  test_float_conversion_from_int: exported(
    (x: Any) => x.float(),
    () => [ints(1, 2)],
  ),
  test_device_to_dynamic: exported(
    (x: Any) => x.to("float64"),
    () => [x3()],
  ),
  test_sequential_slicing: exported(
    (x: Any) => x.get(slice(1, null)).get(slice(1)).get(all, 2),
    () => [x23()],
  ),
  test_int_list_output: exported(
    (x: Any) => tuple(x.sin(), [1, 2]),
    () => [x3()],
  ),
  test_none_output: exported(
    (x: Any) => tuple(x.sin(), null),
    () => [x3()],
  ),
  test_keep_composite_ops_linear: exported(
    (x: Any, w: Any) => F.linear(x, w),
    () => [x23(), numbers(4, 3)],
  ),
  test_keep_composite_ops_conv: exported(
    (x: Any, w: Any) => F.conv1d(x, w),
    () => [numbers(1, 1, 5), numbers(1, 1, 2)],
  ),
  test_non_strict_dynamic_shapes: exported(
    (x: Any) => x.add(x.size(0)),
    () => [x23()],
    DYNAMIC,
  ),
  test_dynamic_sum: exported(
    (x: Any) => x.sum(0).mul(x.size(0)),
    () => [x23()],
    DYNAMIC,
  ),
  test_reshape_view_helper: exported(
    (x: Any) => x.reshape([-1]),
    () => [x23()],
    DYNAMIC,
  ),
  test_flatten_dynamic: exported(
    (x: Any) => x.flatten(),
    () => [x23()],
    DYNAMIC,
  ),
  test_stack_dynamic: exported(
    (x: Any) => torch.stack([x, x]),
    () => [x23()],
    DYNAMIC,
  ),
  test_cat_dynamic: exported(
    (x: Any, y: Any) => torch.cat([x, y]),
    () => [x23(), numbers(4, 3)],
    {
      x: { 0: n },
      y: { 0: Dim("m") },
    },
  ),
  test_arange_dynamic: exported(
    (x: Any) => torch.arange(x.size(0)).add(x.get(all, 0)),
    () => [x23()],
    DYNAMIC,
  ),
  test_repeat_dynamic: exported(
    (x: Any) => x.repeat([2, 1]),
    () => [x23()],
    DYNAMIC,
  ),
  test_expand_dynamic: exported(
    (x: Any) => x.sum(0).expand([x.size(0), 3]),
    () => [x23()],
    DYNAMIC,
  ),
  test_mean_dynamic: exported(
    (x: Any) => x.mean(1),
    () => [x23()],
    DYNAMIC,
  ),
  test_unsqueeze_dynamic: exported(
    (x: Any) => x.unsqueeze(1).mul(x),
    () => [x23()],
    DYNAMIC,
  ),
  test_matmul_dynamic: exported(
    (x: Any, y: Any) => x.matmul(y),
    () => [x23(), numbers(3, 2)],
    { x: { 0: n }, y: null },
  ),
  test_split_sizes: exported(
    (x: Any) => torch.split(x, [1, 2], 1),
    () => [x23()],
  ),
  test_chunk: exported(
    (x: Any) => torch.chunk(x, 2),
    () => [numbers(4, 2)],
  ),
  test_unbind: exported(
    (x: Any) => x.unbind(0)[1],
    () => [x23()],
  ),
  test_topk: exported(
    (x: Any) => torch.topk(x, 2),
    () => [numbers(5)],
  ),
  test_max_pool2d: exported(
    (x: Any) => F.maxPool2d(x, 2),
    () => [numbers(1, 1, 4, 4)],
  ),
  test_avg_pool2d: exported(
    (x: Any) => F.avgPool2d(x, 2),
    () => [numbers(1, 1, 4, 4)],
  ),
  test_interpolate: exported(
    (x: Any) => F.interpolate(x, { scaleFactor: 2 }),
    () => [numbers(1, 1, 2, 2)],
  ),
  test_pad: exported(
    (x: Any) => F.pad(x, [1, 1]),
    () => [x23()],
  ),
  test_where_op: exported(
    (x: Any, y: Any) => torch.where(x.gt(0), x, y),
    () => [x23(), ones(2, 3)],
  ),
  test_masked_fill: exported(
    (x: Any) => x.maskedFill(x.gt(0), float(0)),
    () => [x23()],
  ),
  test_index_put: exported(
    (x: Any, y: Any) => torch.indexPut(x, [torch.tensor([0])], y),
    () => [x3(), ones(1)],
  ),
  test_gather: exported(
    (x: Any, y: Any) => torch.gather(x, 1, y),
    () => [x23(), tensor([[0], [2]])],
  ),
  test_cumsum: exported(
    (x: Any) => x.cumsum(0),
    () => [x23()],
  ),
  test_argmax: exported(
    (x: Any) => x.argmax(1),
    () => [x23()],
  ),
  test_clamp: exported(
    (x: Any) => x.clamp(-0.5, 0.5),
    () => [x23()],
  ),
  test_norm: exported(
    (x: Any) => torch.linalg.vectorNorm(x),
    () => [x23()],
  ),
  test_baddbmm: exported(
    (x: Any, y: Any, z: Any) => torch.baddbmm(x, y, z),
    () => [numbers(1, 2, 2), numbers(1, 2, 3), numbers(1, 3, 2)],
  ),
  test_einsum: exported(
    (x: Any, y: Any) => torch.einsum("ij,kj->ik", [x, y]),
    () => [x23(), numbers(4, 3)],
  ),
  test_triu: exported(
    (x: Any) => torch.triu(x),
    () => [numbers(3, 3)],
  ),
  test_logical_ops: exported(
    (x: Any, y: Any) => torch.logicalAnd(x.gt(0), y.gt(0)),
    () => [x23(), ones(2, 3)],
  ),
  test_bitwise_ops: exported(
    (x: Any, y: Any) => operator.or_(operator.and_(x, y), operator.xor(x, y)),
    () => [ints(1, 2), ints(3, 1)],
  ),
  test_integer_division: exported(
    (x: Any) => operator.floordiv(x, 2),
    () => [ints(5, -3)],
  ),
  test_remainder: exported(
    (x: Any) => mod(x, 2),
    () => [ints(5, -3)],
  ),
  test_pow: exported(
    (x: Any) => add(operator.pow(x, 2) as Any, operator.pow(2, x) as Any),
    () => [x3()],
  ),
  test_rsub: exported(
    (x: Any) => sub(1, x),
    () => [x3()],
  ),
  test_new_factories: exported(
    (x: Any) => tuple(x.newOnes([2]), x.newZeros([2]), x.newFull([2], float(3))),
    () => [x3()],
  ),
  test_like_factories: exported(
    (x: Any) => tuple(torch.onesLike(x), torch.fullLike(x, float(2))),
    () => [x3()],
  ),
  test_item_of_constant: exported(
    (x: Any) => x.mul(2.5),
    () => [x3()],
  ),
  test_one_hot: exported(
    (x: Any) => F.oneHot(x, 3),
    () => [ints(0, 2)],
  ),
  test_sort: exported(
    (x: Any) => torch.sort(x, { descending: true }),
    () => [numbers(4)],
  ),
  test_roll: exported(
    (x: Any) => torch.roll(x, 1, 0),
    () => [x23()],
  ),
  test_permute: exported(
    (x: Any) => x.permute([1, 0]).contiguous(),
    () => [x23()],
  ),
  test_movedim: exported(
    (x: Any) => torch.movedim(x, 0, 1),
    () => [x23()],
  ),
  test_outer: exported(
    (x: Any, y: Any) => torch.outer(x, y),
    () => [x3(), ones(2)],
  ),

  test_gelu: exported(
    (x: Any) => F.gelu(x, { approximate: "tanh" }),
    () => [x3()],
  ),
  test_leaky_relu: exported(
    (x: Any) => F.leakyRelu(x, 0.2),
    () => [x3()],
  ),
  test_softplus: exported(
    (x: Any) => F.softplus(x),
    () => [x3()],
  ),
  test_layer_norm: exported(
    (x: Any) => F.layerNorm(x, [3]),
    () => [x23()],
  ),
  test_mse_loss: exported(
    (x: Any, y: Any) => F.mseLoss(x, y),
    () => [x23(), ones(2, 3)],
  ),
  test_cross_entropy: exported(
    (x: Any, y: Any) => F.crossEntropy(x, y),
    () => [x23(), ints(0, 2)],
  ),
  test_scatter: exported(
    (x: Any, y: Any) => torch.scatter(x, 1, torch.tensor([[0], [1]]), y),
    () => [x23(), ones(2, 1)],
  ),
  test_index_select: exported(
    (x: Any, y: Any) => torch.indexSelect(x, 1, y),
    () => [x23(), ints(2, 0)],
  ),
  test_diagonal: exported(
    (x: Any) => torch.diagonal(x),
    () => [numbers(3, 3)],
  ),
  test_flip: exported(
    (x: Any) => torch.flip(x, [0]),
    () => [x23()],
  ),
  test_addmm: exported(
    (x: Any, y: Any, z: Any) => torch.addmm(x, y, z, { beta: 2, alpha: 0.5 }),
    () => [numbers(2, 2), x23(), numbers(3, 2)],
  ),
  test_var: exported(
    (x: Any) => tuple(x.var(1), x.std(0)),
    () => [x23()],
  ),
  test_amax: exported(
    (x: Any) => tuple(x.amax(1), x.amin(0)),
    () => [x23()],
  ),
  test_prod: exported(
    (x: Any) => x.prod(1),
    () => [x23()],
  ),
  test_all_any: exported(
    (x: Any) => tuple(x.gt(0).all(), x.gt(0).any()),
    () => [x23()],
  ),
  test_isfinite: exported(
    (x: Any) => torch.isfinite(x),
    () => [x3()],
  ),
  test_lerp: exported(
    (x: Any, y: Any) => torch.lerp(x, y, 0.25),
    () => [x3(), ones(3)],
  ),
  test_logsumexp: exported(
    (x: Any) => torch.logsumexp(x, 1),
    () => [x23()],
  ),

  test_make_fx_simple: made(
    (x: Any) => torch.sin(x),
    () => [x3()],
  ),
  test_make_fx_jit: made(
    (x: Any) => torch.sin(x).cos().sum(),
    () => [x3()],
  ),
  test_scalar_device: made(
    (x: Any) => x.add(3),
    () => [x3()],
  ),
  test_isolated_graphmodule_of_where: made(
    (x: Any) => torch.where(x.gt(0), x, float(0)),
    () => [x3()],
  ),
  test_inplace_metadata: made(
    (x: Any) => x.clone().unsqueeze_(-1),
    () => [x3()],
  ),
  test_constant_proxy_tensor: made(
    (x: Any) => x.add(torch.tensor([1, 2, 3], { dtype: "float32" }).sum()),
    () => [x3()],
  ),
  test_empty_like_doesnt_burn_in_defaults: made(
    (x: Any) => torch.emptyLike(x).fill_(1),
    () => [x3()],
  ),
  test_make_fx_reentrant_view: made(
    (x: Any) => x.view([3, 1]).squeeze(),
    () => [x3()],
  ),
  test_make_fx_overloads: made(
    (x: Any) => x.cos().add(x.sum({ dim: 0 })),
    () => [x3()],
  ),
  test_val_metadata_mutation: made(
    (x: Any) => x.clone().t_(),
    () => [x23()],
  ),
  test_strides: made(
    (x: Any) => x.t().contiguous(),
    () => [x23()],
  ),
  test_dropout_is_not_recorded: made(
    (x: Any) => F.dropout(x, 0.3, false),
    () => [x3()],
  ),
  test_batch_norm_eval: made(
    (x: Any) => F.batchNorm(x, torch.zeros([3]), torch.ones([3])),
    () => [x23()],
  ),
  test_pre_dispatch_linear: made(
    (a: Any, b: Any, c: Any) => F.linear(a, b, c),
    () => [x23(), numbers(4, 3), numbers(4)],
    PRE_DISPATCH,
  ),
  test_pre_dispatch_functionalization_view: made(
    (x: Any) => x.reshape([-1]).view([3, 2]),
    () => [x23()],
    PRE_DISPATCH,
  ),
  test_symbolic_repeat: made(
    (x: Any) => x.repeat([1, 2]),
    () => [x23()],
    SYMBOLIC,
  ),
  test_binary_broadcast: made(
    (a: Any, b: Any) => a.mul(b),
    () => [numbers(4, 1), numbers(1, 3)],
    SYMBOLIC,
  ),
  test_unary: made(
    (x: Any) => x.cos().relu(),
    () => [x23()],
    SYMBOLIC,
  ),
  test_multiply_shape: made(
    (x: Any) => torch.empty([mul(x.size(0), 2) as Any]).fill_(1),
    () => [x3()],
    SYMBOLIC,
  ),
  test_neg_shape: made(
    (x: Any) => torch.zeros([add(neg(x.size(0)), 10) as Any]),
    () => [x3()],
    SYMBOLIC,
  ),
  test_reshape_divisibility: made(
    (x: Any) => x.reshape([mul(x.size(0), 3), 1]),
    () => [x23()],
    SYMBOLIC,
  ),

  test_fx_shifts_of_tensors: traced(
    (x: Any) => add(operator.lshift(x, 1) as Any, operator.rshift(x, 1) as Any),
    () => [ints(4, 6)],
  ),
  test_nested_tuples: traced(
    (x: Any) => tuple(tuple(x, add(x, 1)), [mul(x, 2)]),
    () => [x3()],
  ),
  test_slices_of_slices: traced(
    (x: Any) => operator.getitem(operator.getitem(operator.getitem(x, slice(0, 2)), 1), slice(null, null, 2)),
    () => [x23()],
  ),
  test_reverse_operators: traced(
    (x: Any) => tuple(add(1, x), sub(2, x), mul(3, x), operator.truediv(4, add(x, 5))),
    () => [x3()],
  ),
  test_comparison_chain: traced(
    (x: Any) => torch.logicalAnd(operator.ge(x, 0) as Any, operator.le(x, 1) as Any),
    () => [x3()],
  ),
  test_methods_with_keywords: traced(
    (x: Any) => x.sum({ dim: 1, keepdim: true }).clamp({ min: 0 }),
    () => [x23()],
  ),
  test_einsum_equation: traced(
    (x: Any) => torch.einsum("ij->ji", x),
    () => [x23()],
  ),
  test_cat_of_list: traced(
    (x: Any) => torch.cat([x, mul(x, 2)], { dim: 0 }),
    () => [x23()],
  ),
  test_stack_of_tuple: traced(
    (x: Any) => torch.stack(tuple(x, x) as Any, { dim: 1 }),
    () => [x23()],
  ),
  test_shape_is_recorded: traced(
    (x: Any) => x.view(x.shape[1], x.size(0)),
    () => [x23()],
  ),
  test_unused_results: traced(
    (x: Any) => [x.relu(), add(x, 1)][1],
    () => [x3()],
  ),
  test_functional_with_defaults: traced(
    (x: Any) => F.softmax(x, { dim: 1 }),
    () => [x23()],
  ),
  test_math_functions: traced(
    (x: Any) => mul(x, float(Math.sqrt(4))),
    () => [x3()],
  ),
  test_operators_by_name: traced(
    (x: Any) => add(neg(x), 1),
    () => [x3()],
  ),
  test_item_of_max: traced(
    (x: Any) => operator.getitem(torch.max(x, 1) as Any, 0),
    () => [x23()],
  ),
  test_named_results: traced(
    (x: Any) => operator.getitem(torch.topk(x, 2, { dim: 1 }) as Any, 1),
    () => [x23()],
  ),
};
