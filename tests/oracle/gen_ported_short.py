"""What torch.export, make_fx and torch.fx answer to short functions after those of PyTorch's own tests: `fixtures/ported/short.json`.

Cases are called as the tests that they follow (test/export/test_export.py, test/test_proxy_tensor.py, test/test_fx.py); the functions are
our own. `ts/test/ported/short.ts` has the same ones in TypeScript. Lines are graphs, and what they give.

usage: gen_ported_short.py OUT.json (torch 2.13.0)
"""
import json
import math
import operator
import sys
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.export import Dim, export
from torch.fx.experimental.proxy_tensor import make_fx

warnings.filterwarnings("ignore")
CASES = {}


def text(it):
    if isinstance(it, str): return it
    if isinstance(it, torch.Tensor): return str(it.detach())
    if isinstance(it, (tuple, list)): return "[" + ", ".join(text(x) for x in it) + "]"
    if isinstance(it, dict): return "{" + ", ".join(f"{k}: {text(v)}" for k, v in it.items()) + "}"
    return str(it)


def message(body):
    try: body()
    except Exception as error: return str(error).strip().split("\n")[0]
    return "taken"


def numbers(*sizes): return (torch.arange(math.prod(sizes)).reshape(sizes) % 5 - 2) / 2
def ones(*sizes): return torch.ones(sizes)


def note(name, *lines):
    assert name not in CASES, name
    CASES[name] = [text(it) for it in lines]


def exported(name, fn, *args, dims=None):
    n = len(args)
    if n == 1: M = type("M", (nn.Module,), {"forward": lambda self, x: fn(x)})
    elif n == 2: M = type("M", (nn.Module,), {"forward": lambda self, x, y: fn(x, y)})
    else: M = type("M", (nn.Module,), {"forward": lambda self, x, y, z: fn(x, y, z)})
    ep = export(M(), args, dynamic_shapes=dims, strict=False)
    note(name, ep.graph, ep.module()(*args))


def made(name, fn, *args, **options):
    gm = make_fx(fn, **options)(*args)
    note(name, gm.graph, gm(*args))


def traced(name, fn, *args):
    gm = torch.fx.symbolic_trace(fn)
    note(name, gm.graph, gm(*args))


N = Dim("n")
x23, x3 = numbers(2, 3), numbers(3)

# torch.export
exported("test_no_tensor_computation", lambda x, y: y, x3, x23)
exported("test_no_tensor_computation_2", lambda x, y: (x, 3), x3, x23)
exported("test_multidimensional_slicing", lambda x: x[0:1, 1:3], x23)
exported("test_slice_nn_module_stack", lambda x: x[1:].relu(), x23)
exported("test_operator_aten_tensor_mode_variant", lambda x: torch.div(x, 2, rounding_mode="floor"), x23)
exported("test_device_to_static", lambda x: x.to("cpu"), x3)
exported("test_float_conversion", lambda x: x.float(), x3)
exported("test_float_conversion_from_int", lambda x: x.float(), torch.tensor([1, 2]))
exported("test_device_to_dynamic", lambda x: x.to(torch.float64), x3)
exported("test_sequential_slicing", lambda x: x[1:][:1][:, 2], x23)
exported("test_int_list_output", lambda x: (x.sin(), [1, 2]), x3)
exported("test_none_output", lambda x: (x.sin(), None), x3)
exported("test_keep_composite_ops_linear", lambda x, w: F.linear(x, w), x23, numbers(4, 3))
exported("test_keep_composite_ops_conv", lambda x, w: F.conv1d(x, w), numbers(1, 1, 5), numbers(1, 1, 2))
exported("test_non_strict_dynamic_shapes", lambda x: x + x.shape[0], x23, dims={"x": {0: N}})
exported("test_dynamic_sum", lambda x: x.sum(0) * x.shape[0], x23, dims={"x": {0: N}})
exported("test_reshape_view_helper", lambda x: x.reshape(-1), x23, dims={"x": {0: N}})
exported("test_flatten_dynamic", lambda x: x.flatten(), x23, dims={"x": {0: N}})
exported("test_stack_dynamic", lambda x: torch.stack([x, x]), x23, dims={"x": {0: N}})
exported("test_cat_dynamic", lambda x, y: torch.cat([x, y]), x23, numbers(4, 3), dims={"x": {0: N}, "y": {0: Dim("m")}})
exported("test_arange_dynamic", lambda x: torch.arange(x.shape[0]) + x[:, 0], x23, dims={"x": {0: N}})
exported("test_repeat_dynamic", lambda x: x.repeat(2, 1), x23, dims={"x": {0: N}})
exported("test_expand_dynamic", lambda x: x.sum(0).expand(x.shape[0], 3), x23, dims={"x": {0: N}})
exported("test_mean_dynamic", lambda x: x.mean(1), x23, dims={"x": {0: N}})
exported("test_unsqueeze_dynamic", lambda x: x.unsqueeze(1) * x, x23, dims={"x": {0: N}})
exported("test_matmul_dynamic", lambda x, y: x @ y, x23, numbers(3, 2), dims={"x": {0: N}, "y": None})
exported("test_split_sizes", lambda x: torch.split(x, [1, 2], dim=1), x23)
exported("test_chunk", lambda x: torch.chunk(x, 2), numbers(4, 2))
exported("test_unbind", lambda x: x.unbind(0)[1], x23)
exported("test_topk", lambda x: torch.topk(x, 2), numbers(5))
exported("test_max_pool2d", lambda x: F.max_pool2d(x, 2), numbers(1, 1, 4, 4))
exported("test_avg_pool2d", lambda x: F.avg_pool2d(x, 2), numbers(1, 1, 4, 4))
exported("test_interpolate", lambda x: F.interpolate(x, scale_factor=2), numbers(1, 1, 2, 2))
exported("test_pad", lambda x: F.pad(x, (1, 1)), x23)
exported("test_where_op", lambda x, y: torch.where(x > 0, x, y), x23, ones(2, 3))
exported("test_masked_fill", lambda x: x.masked_fill(x > 0, 0.0), x23)
exported("test_index_put", lambda x, y: torch.index_put(x, (torch.tensor([0]),), y), x3, ones(1))
exported("test_gather", lambda x, y: torch.gather(x, 1, y), x23, torch.tensor([[0], [2]]))
exported("test_cumsum", lambda x: x.cumsum(0), x23)
exported("test_argmax", lambda x: x.argmax(1), x23)
exported("test_clamp", lambda x: x.clamp(-0.5, 0.5), x23)
exported("test_norm", lambda x: torch.linalg.vector_norm(x), x23)
exported("test_baddbmm", lambda x, y, z: torch.baddbmm(x, y, z), numbers(1, 2, 2), numbers(1, 2, 3), numbers(1, 3, 2))
exported("test_einsum", lambda x, y: torch.einsum("ij,kj->ik", x, y), x23, numbers(4, 3))
exported("test_triu", lambda x: torch.triu(x), numbers(3, 3))
exported("test_logical_ops", lambda x, y: torch.logical_and(x > 0, y > 0), x23, ones(2, 3))
exported("test_bitwise_ops", lambda x, y: (x & y) | (x ^ y), torch.tensor([1, 2]), torch.tensor([3, 1]))
exported("test_integer_division", lambda x: x // 2, torch.tensor([5, -3]))
exported("test_remainder", lambda x: x % 2, torch.tensor([5, -3]))
exported("test_pow", lambda x: x ** 2 + 2 ** x, x3)
exported("test_rsub", lambda x: 1 - x, x3)
exported("test_new_factories", lambda x: (x.new_ones(2), x.new_zeros(2), x.new_full((2,), 3.0)), x3)
exported("test_like_factories", lambda x: (torch.ones_like(x), torch.full_like(x, 2.0)), x3)
exported("test_item_of_constant", lambda x: x * 2.5, x3)
exported("test_one_hot", lambda x: F.one_hot(x, 3), torch.tensor([0, 2]))
exported("test_sort", lambda x: torch.sort(x, descending=True), numbers(4))
exported("test_roll", lambda x: torch.roll(x, 1, 0), x23)
exported("test_permute", lambda x: x.permute(1, 0).contiguous(), x23)
exported("test_movedim", lambda x: torch.movedim(x, 0, 1), x23)
exported("test_outer", lambda x, y: torch.outer(x, y), x3, ones(2))
exported("test_gelu", lambda x: F.gelu(x, approximate="tanh"), x3)
exported("test_leaky_relu", lambda x: F.leaky_relu(x, 0.2), x3)
exported("test_softplus", lambda x: F.softplus(x), x3)
exported("test_layer_norm", lambda x: F.layer_norm(x, (3,)), x23)
exported("test_mse_loss", lambda x, y: F.mse_loss(x, y), x23, ones(2, 3))
exported("test_cross_entropy", lambda x, y: F.cross_entropy(x, y), x23, torch.tensor([0, 2]))
exported("test_scatter", lambda x, y: torch.scatter(x, 1, torch.tensor([[0], [1]]), y), x23, ones(2, 1))
exported("test_index_select", lambda x, y: torch.index_select(x, 1, y), x23, torch.tensor([2, 0]))
exported("test_diagonal", lambda x: torch.diagonal(x), numbers(3, 3))
exported("test_flip", lambda x: torch.flip(x, [0]), x23)
exported("test_addmm", lambda x, y, z: torch.addmm(x, y, z, beta=2, alpha=0.5), numbers(2, 2), x23, numbers(3, 2))
exported("test_var", lambda x: (x.var(1), x.std(0)), x23)
exported("test_amax", lambda x: (x.amax(1), x.amin(0)), x23)
exported("test_prod", lambda x: x.prod(1), x23)
exported("test_all_any", lambda x: ((x > 0).all(), (x > 0).any()), x23)
exported("test_isfinite", lambda x: torch.isfinite(x), x3)
exported("test_lerp", lambda x, y: torch.lerp(x, y, 0.25), x3, ones(3))
exported("test_logsumexp", lambda x: torch.logsumexp(x, 1), x23)

# make_fx
made("test_make_fx_simple", lambda x: torch.sin(x), x3)
made("test_make_fx_jit", lambda x: torch.sin(x).cos().sum(), x3)
made("test_scalar_device", lambda x: x + 3, x3)
made("test_isolated_graphmodule_of_where", lambda x: torch.where(x > 0, x, 0.0), x3)
made("test_inplace_metadata", lambda x: x.clone().unsqueeze_(-1), x3)
made("test_constant_proxy_tensor", lambda x: x + torch.tensor([1.0, 2.0, 3.0]).sum(), x3)
made("test_empty_like_doesnt_burn_in_defaults", lambda x: torch.empty_like(x).fill_(1), x3)
made("test_make_fx_reentrant_view", lambda x: x.view(3, 1).squeeze(), x3)
made("test_make_fx_overloads", lambda x: x.cos() + x.sum(dim=0), x3)
made("test_val_metadata_mutation", lambda x: x.clone().t_(), x23)
made("test_strides", lambda x: x.t().contiguous(), x23)
made("test_dropout_is_not_recorded", lambda x: F.dropout(x, 0.3, False), x3)
made("test_batch_norm_eval", lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3)), x23)
made("test_pre_dispatch_linear", lambda a, b, c: F.linear(a, b, c), x23, numbers(4, 3), numbers(4), pre_dispatch=True)
made("test_pre_dispatch_functionalization_view", lambda x: x.reshape(-1).view(3, 2), x23, pre_dispatch=True)
made("test_symbolic_repeat", lambda x: x.repeat(1, 2), x23, tracing_mode="symbolic")
made("test_binary_broadcast", lambda a, b: a * b, numbers(4, 1), numbers(1, 3), tracing_mode="symbolic")
made("test_unary", lambda x: x.cos().relu(), x23, tracing_mode="symbolic")
made("test_multiply_shape", lambda x: torch.empty(x.shape[0] * 2).fill_(1), x3, tracing_mode="symbolic")
made("test_neg_shape", lambda x: torch.zeros(-x.shape[0] + 10), x3, tracing_mode="symbolic")
made("test_reshape_divisibility", lambda x: x.reshape(x.shape[0] * 3, 1), x23, tracing_mode="symbolic")

# torch.fx
traced("test_fx_shifts_of_tensors", lambda x: (x << 1) + (x >> 1), torch.tensor([4, 6]))
traced("test_nested_tuples", lambda x: ((x, x + 1), [x * 2]), x3)
traced("test_slices_of_slices", lambda x: x[0:2][1][::2], x23)
traced("test_reverse_operators", lambda x: (1 + x, 2 - x, 3 * x, 4 / (x + 5)), x3)
traced("test_comparison_chain", lambda x: torch.logical_and(x >= 0, x <= 1), x3)
traced("test_methods_with_keywords", lambda x: x.sum(dim=1, keepdim=True).clamp(min=0), x23)
traced("test_einsum_equation", lambda x: torch.einsum("ij->ji", x), x23)
traced("test_cat_of_list", lambda x: torch.cat([x, x * 2], dim=0), x23)
traced("test_stack_of_tuple", lambda x: torch.stack((x, x), dim=1), x23)
traced("test_shape_is_recorded", lambda x: x.view(x.shape[1], x.size(0)), x23)
traced("test_unused_results", lambda x: (x.relu(), x + 1)[1], x3)
traced("test_functional_with_defaults", lambda x: F.softmax(x, dim=1), x23)
traced("test_math_functions", lambda x: x * math.sqrt(4), x3)
traced("test_operators_by_name", lambda x: operator.add(operator.neg(x), 1), x3)
traced("test_item_of_max", lambda x: torch.max(x, 1)[0], x23)
traced("test_named_results", lambda x: torch.topk(x, 2, dim=1)[1], x23)

with open(sys.argv[1], "w") as file:
    json.dump(CASES, file, indent=1)
    file.write("\n")
print(len(CASES), "programs")
