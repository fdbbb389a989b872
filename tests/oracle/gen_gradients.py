"""PyTorch's own gradients: torch.autograd.grad of single operators, for crates/cpu/tests/it/gradients.rs.

The calls are those of gen_opcases.py (directories of them are the arguments), with floats widened to float64, and those
of the functions below: points where there is no derivative, mixed dtypes, broadcasting. Each line is a call with `grads`,
the incoming gradients, one per result of the schema, and `result`, the gradients of the arguments, one per argument of
the schema in its order (null where none flows). differentiable.json says of each operator whether any of its calls gave
a result with a gradient.

usage: gen_gradients.py OUT_DIR N_CASES OPCASES_DIR...   (at most N_CASES per operator, small ones first)

Where OUT_DIR has cases, they stay: those of the operators that they lack are written beside them, to more.jsonl.
"""
import glob
import json
import math
import os
import sys
import tempfile
import zlib

import torch
from safetensors.torch import load_file, save_file

import encoding
from encoding import decode, overload_of

torch.set_num_threads(1)
cases, tensors, differentiable = [], {}, {}
# Operators that have cases.
known = set()


def encode(value):
    """A value as JSON, with the data of tensors in the place of its key."""
    return encoding.encode(value, lambda flat: flat)


def each(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from each(item)


def replace(value, tensors_of):
    if isinstance(value, torch.Tensor):
        return tensors_of(value)
    if isinstance(value, (list, tuple)):
        return [replace(item, tensors_of) for item in value]
    return value


# Where singular values are zero or the matrix is not invertible, what PyTorch gives is one of many, or noise.
OF_FULL_RANK = ("svd", "nuclear_norm", "matrix_norm", "pinv", "slogdet", "logdet", "linalg_norm")


def is_of_full_rank(name, matrix):
    if not any(it in name for it in OF_FULL_RANK) or not is_float(matrix) or matrix.dim() < 2 or matrix.numel() == 0:
        return True
    return bool((torch.linalg.matrix_rank(matrix, rtol=1e-6) == min(matrix.shape[-2:])).all())


def is_float(it):
    return it.dtype.is_floating_point or it.dtype.is_complex


def case(name, *args, **kwargs):
    """Calls and differentiates. Gives back whether that is a case, and how large it is."""
    overload = overload_of(f"aten.{name}")
    schema = overload._schema
    if any(it.alias_info is not None and it.alias_info.is_write for it in schema.arguments):
        return None

    def leaf(it):
        return it.detach().requires_grad_() if is_float(it) else it

    if args and isinstance(args[0], torch.Tensor) and not is_of_full_rank(name, args[0]):
        return None
    args, kwargs = replace(args, leaf), {key: replace(it, leaf) for key, it in kwargs.items()}
    inputs = [it for it in each([args, list(kwargs.values())]) if it.requires_grad]
    torch.manual_seed(1)
    try:
        out = overload(*args, **kwargs)
    except Exception:
        return None
    full = f"aten.{name}"
    results = [out] if len(schema.returns) == 1 else list(out) if isinstance(out, (list, tuple)) else []
    outputs = [it for it in each(results) if it.requires_grad]
    differentiable.setdefault(full, False)
    if not outputs or not inputs:
        return None
    generator = torch.Generator().manual_seed(zlib.crc32(full.encode()))

    def incoming(it):
        if not it.requires_grad:
            return None
        return torch.randn(it.shape, dtype=it.dtype, generator=generator)

    grads = replace([it if isinstance(it, (torch.Tensor, list, tuple)) else None for it in results], incoming)
    try:
        with torch.autograd.set_multithreading_enabled(False):
            found = torch.autograd.grad(outputs, inputs, list(each(grads)), allow_unused=True)
    except Exception:
        return None
    differentiable[full] = True
    of = {id(it): grad for it, grad in zip(inputs, found)}

    def outgoing(value):
        if isinstance(value, torch.Tensor):
            grad = of.get(id(value))
            return None if grad is None else grad.contiguous()
        return [outgoing(it) for it in value] if isinstance(value, (list, tuple)) else None

    given = dict(zip([it.name for it in schema.arguments], args)) | kwargs
    result = [outgoing(given.get(it.name)) for it in schema.arguments]
    size = sum(it.numel() for it in each([inputs, [*each(results)]]))
    return size, {"op": full, "args": encode(args), "kwargs": {key: encode(it) for key, it in kwargs.items()},
                  "grads": encode(grads), "result": encode(result)}


def keyed(it):
    """The same with names for the data of tensors."""
    if isinstance(it, list):
        return [keyed(item) for item in it]
    if isinstance(it, dict):
        return {name: keyed(item) for name, item in it.items()}
    if isinstance(it, torch.Tensor):
        tensors[f"t{len(tensors)}"] = it
        return f"t{len(tensors) - 1}"
    return it


def add(found):
    if found is not None and found[1]["op"] not in known:
        cases.append(keyed(found[1]))


def of_lines(path, first, last):
    data_path = path.replace(".jsonl", ".safetensors")
    data = load_file(data_path) if os.path.exists(data_path) else {}
    widened = lambda key: data[key].double() if data[key].is_floating_point() else data[key]
    res = []
    for line in open(path).readlines()[first:last]:
        it = json.loads(line)
        if it.get("error") or it.get("seed"):
            continue
        try:
            args = [decode(arg, widened) for arg in it["args"]]
            kwargs = {key: decode(arg, widened) for key, arg in it["kwargs"].items()}
            found = case(it["op"].removeprefix("aten."), *args, **kwargs)
        except (AttributeError, KeyError, RuntimeError, TypeError):
            continue
        if found is not None:
            res.append(found)
    return res


def in_child(path, first, last):
    """What a child process finds: a few recorded views look past their data, and PyTorch falls over them."""
    with tempfile.NamedTemporaryFile() as file:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                torch.save((of_lines(path, first, last), differentiable), file)
                file.flush()
                status = 0
            except Exception as problem:
                print(path, problem)
            finally:
                sys.stdout.flush()
                os._exit(status)
        if os.waitpid(child, 0)[1] != 0:
            if last - first == 1:
                print("PyTorch fell over line", last, "of", path)
                return []
            middle = (first + last) // 2
            return in_child(path, first, middle) + in_child(path, middle, last)
        found, more = torch.load(file.name, weights_only=False)
        differentiable.update({op: is_any or differentiable.get(op, False) for op, is_any in more.items()})
        return found


def recorded(directory, n_cases):
    by_op = {}
    for path in sorted(glob.glob(os.path.join(directory, "*.jsonl"))):
        for found in in_child(path, 0, len(open(path).readlines())):
            by_op.setdefault(found[1]["op"], []).append(found)
    for op in sorted(by_op):
        # The smallest first, but for those of no elements, of which one is enough.
        ordered = sorted(by_op[op], key=lambda it: (it[0] == 0, it[0]))
        chosen, seen = [], set()
        for found in ordered:
            shape = json.dumps([found[1]["args"], found[1]["kwargs"]], default=lambda _: None)
            if n_cases >= 1000 or shape not in seen:
                seen.add(shape)
                chosen.append(found)
        small = [it for it in chosen if it[0] <= 400] or chosen[:1]
        for found in (chosen if n_cases >= 1000 else small[:n_cases]):
            add(found)


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, -0.5, math.inf, -math.inf, math.nan, 1e-300)


def points():
    """Unary operators at zero, at one, at the infinities and at NaN."""
    special = f64(*SPECIAL)
    for name in """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac
        lgamma log log10 log1p log2 logit neg rad2deg reciprocal relu round rsqrt sgn sigmoid sign sin sinc sinh special_i0e
        i0 special_i1 special_i1e special_entr special_erfcx special_log_ndtr special_ndtri sqrt square tan tanh trunc
        nan_to_num angle hardtanh hardsigmoid hardswish leaky_relu elu celu selu silu gelu mish softplus softshrink
        hardshrink log_sigmoid relu6 positive""".split():
        add(case(name + ".default", special))
    z = torch.complex(f64(0.0, 1.0, -1.0, 0.5, 0.0), f64(0.0, 0.0, 0.0, -2.0, 1.5))
    for name in "abs sgn angle sqrt log acosh asin square reciprocal sigmoid tanh exp neg real imag conj_physical".split():
        add(case(name + ".default", z))


def pairs():
    """Binary operators at ties and at zero, broadcast, of mixed dtypes, and with 0-d tensors."""
    a, b = f64(0.0, 1.0, -1.0, 2.0, 0.0, math.nan, 3.0, -0.0), f64(0.0, 1.0, 2.0, -1.0, 1.0, 1.0, math.nan, 0.0)
    for name in """add.Tensor sub.Tensor mul.Tensor div.Tensor rsub.Tensor maximum.default minimum.default fmax.default
        fmin.default atan2.default hypot.default pow.Tensor_Tensor remainder.Tensor fmod.Tensor copysign.Tensor
        logaddexp.default logaddexp2.default xlogy.Tensor special_xlog1py.default clamp_min.Tensor clamp_max.Tensor
        nextafter.default heaviside.default floor_divide.default float_power.Tensor_Tensor max.other min.other
        ldexp.Tensor""".split():
        add(case(name, a, b))
    for name in "add.Tensor sub.Tensor mul.Tensor div.Tensor maximum.default pow.Tensor_Tensor atan2.default".split():
        x = f64(1.0, 2.0, 3.0, 4.0, 5.0, 6.0).reshape(2, 3)
        add(case(name, x, f64(2.0, 3.0).reshape(2, 1)))
        add(case(name, x.reshape(2, 1, 3).expand(2, 4, 3), f64(1.5)[0]))
        add(case(name, f64(1.5)[0], f64(2.0)[0]))
        add(case(name, x.to(torch.float32), x))
        add(case(name, x.to(torch.float32), f64(2.0)[0]))
        add(case(name, torch.arange(1, 7).reshape(2, 3), x))
        add(case(name, x, torch.zeros(0, 1, 1, dtype=torch.float64)))
    z = torch.complex(f64(1.0, -1.0, 0.5), f64(0.5, 2.0, -2.0))
    for name in "add.Tensor sub.Tensor mul.Tensor div.Tensor pow.Tensor_Tensor".split():
        add(case(name, z, f64(2.0, 3.0, 0.5)))
        add(case(name, f64(2.0, 3.0, 0.5), z))
        add(case(name, z, z.conj()))
    for exponent in (0, 1, 2, 3, -1, 0.5, 2.5, -0.5, 0.0):
        add(case("pow.Tensor_Scalar", f64(0.0, 1.0, -1.0, 2.0, math.nan), exponent))
    for base in (0, 1, 2, -1, 0.5, 0.0):
        add(case("pow.Scalar", base, f64(0.0, 1.0, -1.0, 2.0, 0.5)))
    x = f64(-2.0, -1.0, 0.0, 1.0, 2.0, math.nan)
    for low, high in ((-1.0, 1.0), (None, 1.0), (-1.0, None), (1.0, -1.0)):
        add(case("clamp.default", x, low, high))
        add(case("clamp.Tensor", x, None if low is None else f64(low), None if high is None else f64(high)))
    add(case("clamp_min.default", x, -1))
    add(case("clamp_max.default", x, 1))
    add(case("hardtanh.default", x))
    add(case("threshold.default", x, 1.0, 5.0))
    add(case("where.self", torch.tensor([True, False, True]), f64(math.nan, 1.0, 2.0), f64(1.0, math.inf, 3.0)))
    add(case("where.ScalarOther", torch.tensor([True, False, True]), f64(math.nan, 1.0, 2.0), 3.0))
    add(case("lerp.Scalar", x, x + 1, 0.3))
    add(case("lerp.Tensor", x, x + 1, f64(0.7)))
    add(case("addcdiv.default", x, x + 1, f64(2.0), value=0.5))
    add(case("addcmul.default", x, x + 1, f64(2.0), value=0.5))


def reductions():
    """Reductions with ties, zeros and NaNs."""
    ties = f64(1.0, 3.0, 3.0, 0.0, 2.0, 3.0, -1.0, 0.0, 0.0).reshape(3, 3)
    empty = torch.zeros(0, 3, dtype=torch.float64)
    for name in "max min amax amin median nanmedian prod sum mean var std norm.Scalar logsumexp aminmax".split():
        overload = name if "." in name else name + ".default"
        extra = ([0, 1],) if name == "logsumexp" else ()
        add(case(overload, ties, *extra))
        add(case(overload, f64(2.0)[0], *([[0]] if extra else [])))
    for name in "max min median nanmedian mode cummax cummin".split():
        add(case(f"{name}.dim" if not name.startswith(("cum", "mode")) else f"{name}.default", ties, 1))
    for keepdim in (False, True):
        for name in "amax.default amin.default sum.dim_IntList mean.dim logsumexp.default var.dim std.dim".split():
            more = [True, keepdim] if name.startswith(("var", "std")) else [keepdim]
            add(case(name, ties, [1], *more))
            add(case(name, ties, [-2, 1], *more))
    for correction in (0, 1, 2, 0.5):
        add(case("var.correction", ties, [0], correction=correction))
        add(case("std.correction", ties, [1], correction=correction, keepdim=True))
        add(case("var_mean.correction", ties, [1], correction=correction))
        add(case("std_mean.correction", ties, None, correction=correction))
    add(case("std.default", f64(2.0, 2.0)))
    for x in (ties, f64(2.0, 3.0, 4.0, 5.0).reshape(2, 2), f64(0.0, 3.0, 4.0, 0.0).reshape(2, 2)):
        add(case("prod.default", x))
        add(case("prod.dim_int", x, 1))
        add(case("prod.dim_int", x, 0, True))
        add(case("cumprod.default", x, 1))
        add(case("cumsum.default", x, 0))
        add(case("logcumsumexp.default", x, 1))
    add(case("prod.default", empty))
    add(case("sum.default", empty))
    add(case("sum.default", ties.to(torch.float32), dtype=torch.float64))
    add(case("cumprod.default", torch.complex(ties, ties.t()), 0))
    add(case("prod.dim_int", torch.complex(ties, ties.t()), 0))
    with_zero = f64(0.0, 0.0, 0.0, 3.0, -4.0, 0.0, 1.0, 1.0, -1.0).reshape(3, 3)
    for order in (0, 1, 2, 3, 0.5, 1.5, math.inf, -math.inf, -1, -2):
        add(case("linalg_vector_norm.default", with_zero, order, [1]))
        add(case("linalg_vector_norm.default", with_zero, order))
        add(case("norm.ScalarOpt_dim", with_zero, order, [1], True))
    add(case("linalg_vector_norm.default", torch.complex(with_zero, with_zero.t()), 2, [1]))
    add(case("linalg_vector_norm.default", torch.complex(with_zero, with_zero.t()), 3, [1]))
    add(case("dist.default", with_zero, ties))
    for p in (0.0, 1.0, 2.0, 3.0, 0.5, math.inf):
        add(case("cdist.default", with_zero, ties, p, None))
        add(case("_pdist_forward.default", with_zero, p))


def without_tests():
    """Operators that PyTorch's tests reach by other names, or not at all."""
    x, y = f64(1.5, -2.0, 3.0, 0.25, 4.0, -0.5).reshape(2, 3), f64(0.5, 1.0, 2.0, -1.0, 3.0, 0.75).reshape(2, 3)
    z = torch.complex(x, y)
    for name in """contiguous clone lift_fresh_copy view_as_real _conj adjoint matrix_H conj""".split():
        add(case(name + ".default", z))
    add(case("contiguous.default", x.t()))
    add(case("view_as_complex.default", x.reshape(3, 2)))
    add(case("copy.default", x, y))
    add(case("copy.default", x, f64(2.0)))
    add(case("fill.Tensor", x, f64(2.0)[0]))
    add(case("zero.default", x))
    add(case("to.other", x.float(), y))
    add(case("type_as.default", x.float(), y))
    add(case("where.ScalarSelf", x > 0, 2.0, y))
    add(case("where.Scalar", x > 0, 2.0, 3.0))
    for name in "xlogy.Scalar_Other special_xlog1py.other_scalar float_power.Tensor_Scalar".split():
        add(case(name, x, 1.5))
    for name in "xlogy.Scalar_Self special_xlog1py.self_scalar float_power.Scalar remainder.Scalar_Tensor".split():
        add(case(name, 1.5, x.abs() + 0.5))
    add(case("remainder.Scalar", x, 1.5))
    add(case("norm.ScalarOpt_dtype", x, 2, dtype=torch.float64))
    add(case("norm.ScalarOpt_dim_dtype", x, 2, [1], True, dtype=torch.float64))
    add(case("unsafe_split_with_sizes.default", x, [1, 2], 1))
    add(case("_unsafe_index.Tensor", x, [None, torch.tensor([0, 2, 2])]))
    add(case("_unsafe_index_put.default", x, [torch.tensor([0, 1])], y, True))
    add(case("_fft_r2c.default", x, [1], 0, True))
    add(case("_fft_c2r.default", z, [1], 2, 4))
    add(case("_fft_c2c.default", z, [0, 1], 1, False))
    square = f64(4.0, 1.0, 0.5, 1.0, 3.0, -1.0, 0.5, -1.0, 5.0).reshape(3, 3)
    add(case("_linalg_eigh.default", square))
    add(case("linalg_eigh.default", square))
    add(case("_linalg_eigvals.default", square))
    add(case("linalg_cholesky_ex.default", square))
    add(case("_linalg_solve_ex.default", square, x.t()))
    add(case("linalg_pinv.default", x, 1e-12))
    add(case("linalg_pinv.rcond_tensor", x, torch.tensor(1e-12)))
    add(case("linalg_pinv.atol_rtol_tensor", x, atol=torch.tensor(1e-12), rtol=torch.tensor(1e-12)))
    add(case("linalg_matrix_power.default", square, 3))
    add(case("matrix_power.default", square, -2))
    add(case("linalg_multi_dot.default", [x, square, y.t()]))
    add(case("chain_matmul.default", [x, square, y.t()]))
    add(case("linalg_matmul.default", x, square))
    add(case("linalg_vecdot.default", x, y))
    add(case("linalg_diagonal.default", square))
    for name in "outer.default ger.default".split():
        add(case(name, x[0], y[1]))
    add(case("kron.default", x, y))
    image = torch.arange(2 * 3 * 4 * 5, dtype=torch.float64).reshape(2, 3, 4, 5).sin()
    weight, bias = f64(1.5, 0.5, -1.0), f64(0.5, 0.0, 2.0)
    add(case("_native_batch_norm_legit.no_stats", image, weight, bias, True, 0.1, 1e-5))
    for name in "bilinear2d bicubic2d".split():
        add(case(f"_upsample_{name}_aa.default", image, [3, 3], False))
        add(case(f"_upsample_{name}_aa.default", image, [6, 7], True))
        add(case(f"_upsample_{name}_aa.vec", image, [3, 3], False, None))
    add(case("affine_grid_generator.default", torch.stack([x, y]), [2, 1, 3, 4], False))
    add(case("native_channel_shuffle.default", image.reshape(1, 6, 4, 5), 3))
    add(case("_pad_circular.default", image, [1, 2, 0, 1]))
    for name in "moveaxis.int movedim.int swapaxes.default swapdims.default".split():
        add(case(name, image, 1, 3))
    add(case("moveaxis.intlist", image, [0, 1], [2, 0]))
    add(case("select_copy.int", x, 1, 2))
    add(case("slice_copy.Tensor", x, 1, 0, 3, 2))
    add(case("split_copy.Tensor", x, 2, 1))
    add(case("split.sizes", x, [1, 2], 1))
    add(case("squeeze_copy.dims", x.reshape(2, 1, 3), [1]))
    add(case("special_softmax.default", x, 1))
    add(case("special_log_softmax.default", x, 1))
    for name in "multiply.Tensor divide.Tensor subtract.Tensor true_divide.Tensor".split():
        add(case(name, x, y))
    for name in "multiply.Scalar divide.Scalar subtract.Scalar true_divide.Scalar".split():
        add(case(name, x, 1.5))
    add(case("divide.Tensor_mode", x, y, rounding_mode="floor"))
    add(case("divide.Scalar_mode", x, 1.5, rounding_mode="trunc"))
    add(case("clip.default", x, -1.0, 2.0))
    add(case("clip.Tensor", x, f64(-1.0)[0], f64(2.0)[0]))
    for name in "concat.default concatenate.default".split():
        add(case(name, [x, y], 1))
    add(case("row_stack.default", [x, y]))
    add(case("meshgrid.default", [x[0], y[1]]))
    add(case("kthvalue.values", x, 2, 1))
    add(case("nanquantile.default", x, f64(0.25)[0], 1))
    add(case("quantile.default", x, 0.25, 1))
    add(case("poisson_nll_loss.default", x, y, True, False, 1e-8, 1))
    target = torch.tensor([2, 0])
    add(case("nll_loss.default", x, target, None, 1, -100))
    add(case("nll_loss2d.default", image, torch.zeros(2, 4, 5, dtype=torch.int64) + 1, None, 1, -100))
    add(case("log_sigmoid_backward.default", x, y, torch.zeros(0, dtype=torch.float64)))
    add(case("native_dropout_backward.default", x, x > 0, 1.25))
    add(case("soft_margin_loss_backward.default", f64(1.0)[0], x, y.sign(), 1))
    add(case("_convolution.default", image, torch.ones(2, 3, 2, 2, dtype=torch.float64), None, [1, 1], [0, 0], [1, 1],
             False, [0, 0], 1, False, False, True, True))
    heads = image.reshape(2, 3, 4, 5)
    add(case("_scaled_dot_product_attention_math.default", heads, heads.cos(), heads.exp()))
    state, cell = f64(0.1, 0.2, -0.3, 0.4).reshape(2, 2), f64(1.0, -0.5, 0.25, 0.75).reshape(2, 2)
    for name, gates in (("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("lstm_cell", 4)):
        parts = [torch.linspace(-1, 1, n, dtype=torch.float64).cos() for n in (6 * gates, 4 * gates, 2 * gates, 2 * gates)]
        weights = [parts[0].reshape(2 * gates, 3), parts[1].reshape(2 * gates, 2), parts[2], parts[3]]
        add(case(f"{name}.default", x, [state, cell] if name == "lstm_cell" else state, *weights))
        layer = name.removesuffix("_cell")
        hidden = [state[None], cell[None]] if layer == "lstm" else state[None]
        add(case(f"{layer}.input", torch.stack([x, y]), hidden, weights, True, 1, 0.0, False, False, False))


OWN = (points, pairs, reductions, without_tests)

if __name__ == "__main__":
    out_dir, n_cases, directories = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    first = os.path.join(out_dir, "cases.jsonl")
    if os.path.exists(first):
        known.update(json.loads(line)["op"] for line in open(first))
    name = "more" if known else "cases"
    for function in OWN:
        function()
    for directory in directories:
        recorded(directory, n_cases)
    os.makedirs(out_dir, exist_ok=True)
    with open(os.path.join(out_dir, f"{name}.jsonl"), "w") as file:
        file.writelines(json.dumps(it) + "\n" for it in cases)
    save_file(tensors, os.path.join(out_dir, f"{name}.safetensors"))
    with open(os.path.join(out_dir, "differentiable.json"), "w") as file:
        json.dump(dict(sorted(differentiable.items())), file, indent=1)
        file.write("\n")
    print(len(cases), "cases of", len({it["op"] for it in cases}), "operators")
