"""Operators called directly, for what PyTorch's operator tests leave out: random numbers above all.

The cases are written in the format of gen_opcases.py, one file per function below. A call that draws comes right
after `torch.manual_seed(seed)`, and the seed is one more key. PyTorch draws the same numbers on all processors, but for the
last bits of normally distributed ones; the cases were recorded on x86 with AVX2.

usage: gen_opcalls.py OUT_DIR
"""
import json
import math
import os
import sys

import torch
from safetensors.torch import save_file

torch.set_num_threads(1)
aten = torch.ops.aten
cases, tensors = [], {}


def encode(value):
    if isinstance(value, torch.Tensor):
        key = f"t{len(tensors)}"
        n = 0 if value.numel() == 0 else 1 + sum((s - 1) * d for s, d in zip(value.shape, value.stride()))
        res = {"tensor": key, "dtype": str(value.dtype)[6:], "size": list(value.shape)}
        flat = torch.as_strided(value, (n,), (1,), value.storage_offset()).clone()
        tensors[key] = torch.view_as_real(flat.resolve_conj()) if value.is_complex() else flat
        if not value.is_contiguous():
            res["stride"] = list(value.stride())
        return res
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"int": str(value)} if abs(value) > 2**53 else {"int": value}
    if isinstance(value, float):
        return {"float": value if math.isfinite(value) else repr(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)[6:]}
    if isinstance(value, torch.memory_format):
        return {"memory_format": str(value)[6:]}
    return [encode(it) for it in value]


def case(op, *args, seed=0, **kwargs):
    overload = aten
    for part in op.split("."):
        overload = getattr(overload, part)
    encoded = {"op": f"aten.{op}", "args": encode(args), "kwargs": {k: encode(v) for k, v in kwargs.items()}}
    # Without a seed, nothing is drawn, and the tests may call with other strides.
    if seed != 0:
        encoded["seed"] = seed
    torch.manual_seed(seed)
    try:
        result = overload(*args, **kwargs)
        encoded["result"] = encode(result)
    except (RuntimeError, IndexError, TypeError) as problem:
        encoded["error"] = str(problem).splitlines()[0]
    cases.append(encoded)


FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def empty(*size, dtype=torch.float32):
    return torch.zeros(size, dtype=dtype)


def random():
    for dtype in FLOATS:
        for n in (5, 16, 33):
            case("rand.default", [n], dtype=dtype, seed=n)
            case("randn.default", [n], dtype=dtype, seed=n)
            case("normal_.default", empty(n, dtype=dtype), 3.0, 0.1, seed=n + 1)
        case("uniform_.default", empty(3, 5, dtype=dtype), -0.7, 1.3, seed=2)
        case("exponential_.default", empty(9, dtype=dtype), 2.0, seed=2)
        case("cauchy_.default", empty(9, dtype=dtype), 1.0, 2.0, seed=2)
        case("log_normal_.default", empty(9, dtype=dtype), 0.5, 0.25, seed=2)
        case("geometric_.default", empty(9, dtype=dtype), 0.3, seed=2)
        case("random_.default", empty(9, dtype=dtype), seed=2)
        case("random_.from", empty(9, dtype=dtype), -(2**40) + 1, 2**60 + 1, seed=2)
        case("random_.to", empty(9, dtype=dtype), 100, seed=2)
        case("bernoulli.default", torch.rand(3, 5).to(dtype), seed=2)
        case("bernoulli_.float", empty(3, 5, dtype=dtype), 0.3, seed=2)
        case("bernoulli_.Tensor", empty(3, 5, dtype=dtype), torch.rand(5), seed=2)
        case("bernoulli_.Tensor", empty(3, 5, dtype=dtype), torch.rand(3, 1, dtype=torch.float64), seed=2)
        case("poisson.default", torch.tensor([0.0, 0.5, 3.0, 9.9, 10.0, 30.0, 200.0], dtype=dtype), seed=2)
        for train in (True, False):
            for op in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
                case(f"{op}.default", torch.randn(3, 4, 2).to(dtype), 0.4, train, seed=3)
            case("native_dropout.default", torch.randn(3, 4).to(dtype), 0.4, train, seed=3)
            case("rrelu.default", torch.randn(3, 4).to(dtype), 0.1, 0.4, train, seed=3)
            case("rrelu_with_noise_functional.default", torch.randn(3, 4).to(dtype), empty(3, 4, dtype=dtype), 0.1, 0.4, train, seed=3)
        weights = torch.tensor([[0.1, 10.0, 3.0, 0.0, 1.0], [2.0, 1.0, 1.0, 5.0, 1.0]], dtype=dtype)
        case("multinomial.default", weights, 4, False, seed=4)
        case("multinomial.default", weights, 1, False, seed=4)
        case("multinomial.default", weights[0], 12, True, seed=4)
        case("multinomial.default", weights, 7, True, seed=4)
    for dtype in INTS:
        case("randint.default", 100, [9], dtype=dtype, seed=5)
        case("randint.low", -20 if dtype != torch.uint8 else 20, 100, [9], dtype=dtype, seed=5)
        case("random_.default", empty(9, dtype=dtype), seed=5)
        case("random_.from", empty(9, dtype=dtype), 7, None, seed=5)
        case("geometric_.default", empty(9, dtype=dtype), 0.3, seed=5)
        case("bernoulli_.float", empty(9, dtype=dtype), 0.6, seed=5)
        case("randperm.default", 12, dtype=dtype, seed=5)
    case("random_.default", empty(9, dtype=torch.bool), seed=5)
    case("bernoulli_.float", empty(9, dtype=torch.bool), 0.6, seed=5)
    case("randint.low", -(2**62), 2**62, [9], seed=6)
    case("random_.from", empty(9, dtype=torch.int64), -(2**63), None, seed=6)
    case("random_.from", empty(9, dtype=torch.int64), 3, 3 + 2**28, seed=6)
    case("random_.from", empty(9, dtype=torch.int64), 3, 2 + 2**28, seed=6)
    case("randperm.default", 0, seed=6)
    case("randperm.default", 1, seed=6)
    case("randperm.default", 7, dtype=torch.float32, seed=6)
    # Numbers are drawn in the order of memory.
    turned = torch.zeros(5, 3, 4).permute(2, 0, 1)
    channels_last = torch.zeros(2, 3, 4, 2).to(memory_format=torch.channels_last)
    for like in (turned, channels_last, torch.zeros(6, 8)[:, ::2]):
        case("rand_like.default", like, seed=7)
        case("randn_like.default", like, seed=7)
        case("randn_like.default", like, memory_format=torch.contiguous_format, seed=7)
        case("randint_like.default", like, 1000, seed=7)
        case("randint_like.low_dtype", like, -5, 1000, dtype=torch.int32, seed=7)
        case("uniform_.default", like.clone(), seed=7)
        case("normal_.default", like.clone(), seed=7)
        case("bernoulli.p", like, 0.4, seed=7)
        case("dropout.default", like + 1, 0.4, True, seed=7)
    case("rand_like.default", torch.zeros(2, 3, 4, 2), memory_format=torch.channels_last, seed=7)
    case("normal.float_float", 1.5, 0.5, [7], seed=8)
    case("normal.float_float", 1.5, 0.5, [20], dtype=torch.float64, seed=8)
    case("normal.Tensor_float", torch.arange(18.0), 0.5, seed=8)
    case("normal.float_Tensor", 2.0, torch.arange(18.0), seed=8)
    case("normal.Tensor_Tensor", torch.arange(18.0), torch.rand(2, 1), seed=8)
    query, key, value = torch.randn(3, 1, 2, 4, 8).unbind(0)
    case("scaled_dot_product_attention.default", query, key, value, None, 0.3, False, seed=9)
    case("scaled_dot_product_attention.default", query, key, value, None, 0.3, True, seed=9)
    gru, lstm = torch.nn.GRU(3, 4, num_layers=2), torch.nn.LSTM(3, 4, num_layers=3, bidirectional=True)
    x = torch.randn(5, 2, 3)
    with torch.no_grad():
        params = [it.data for it in gru.parameters()]
        case("gru.input", x, torch.zeros(2, 2, 4), params, True, 2, 0.5, True, False, False, seed=9)
        params = [it.data for it in lstm.parameters()]
        case("lstm.input", x, [torch.zeros(6, 2, 4)] * 2, params, True, 3, 0.5, True, True, False, seed=9)
    case("dropout.default", torch.ones(4), 1.0, True)
    # What is refused.
    case("dropout.default", torch.ones(4), 1.5, True)
    case("feature_dropout.default", torch.ones(4), 0.5, True)
    case("uniform_.default", empty(3), 2.0, 1.0)
    case("normal_.default", empty(3), 0.0, -1.0)
    case("normal_.default", empty(3, dtype=torch.int64))
    case("uniform_.default", empty(3, dtype=torch.int64))
    case("exponential_.default", empty(3), 0.0)
    case("geometric_.default", empty(3), 1.0)
    case("log_normal_.default", empty(3), 0.0, 0.0)
    case("cauchy_.default", empty(3), 0.0, 0.0)
    case("bernoulli_.float", empty(3), 1.5)
    case("bernoulli.default", torch.full((3,), 2.0))
    case("poisson.default", torch.full((3,), -1.0))
    case("random_.from", empty(3), 5, 5)
    case("random_.from", empty(3, dtype=torch.uint8), 0, 300)
    case("randint.default", 0, [3])
    case("randint.default", 300, [3], dtype=torch.int8)
    case("randperm.default", -1)
    case("randperm.default", 300, dtype=torch.uint8)
    case("rand.default", [3], dtype=torch.int64)
    case("multinomial.default", torch.ones(3), 4, False)
    case("multinomial.default", torch.ones(3), 0, False)
    case("multinomial.default", torch.zeros(3), 1, False)
    case("multinomial.default", torch.tensor([1.0, -1.0]), 1, True)
    case("multinomial.default", torch.ones(3, dtype=torch.int64), 1, False)
    case("multinomial.default", torch.ones(1, 1, 3), 1, False)


def ctc():
    for dtype in (torch.float32, torch.float64):
        log_probs = torch.randn(7, 3, 5, dtype=dtype).log_softmax(2)
        targets = torch.randint(1, 5, (3, 4))
        targets[0, 1] = targets[0, 0]
        flat = torch.cat([targets[0, :4], targets[1, :2], targets[2, :3]])
        for reduction in (0, 1, 2):
            case("ctc_loss.IntList", log_probs, targets, [7, 6, 3], [4, 2, 3], 0, reduction, False)
            case("ctc_loss.Tensor", log_probs, flat, torch.tensor([7, 6, 3]), torch.tensor([4, 2, 3]), 0, reduction, True)
            case("ctc_loss.IntList", log_probs[:, 0], targets[0], [7], [4], 0, reduction, False)
        case("ctc_loss.IntList", log_probs, targets, [7, 2, 7], [4, 4, 0], 0, 0, False)
        case("ctc_loss.IntList", log_probs, targets, [7, 2, 7], [4, 4, 0], 0, 0, True)
        case("ctc_loss.IntList", log_probs, targets - 1, [7, 7, 7], [4, 2, 3], 4, 1, False)
        case("ctc_loss.IntList", log_probs, targets.int(), [7, 0, 7], [4, 2, 3], 0, 0, False)
        case("_ctc_loss.default", log_probs, targets, [7, 7, 7], [4, 4, 4])
    case("ctc_loss.IntList", log_probs, targets, [8, 7, 7], [4, 2, 3])
    case("ctc_loss.IntList", log_probs, targets, [7, 7], [4, 2, 3])
    case("ctc_loss.IntList", log_probs, targets, [7, 7, 7], [4, 2, 5])
    case("ctc_loss.IntList", log_probs, targets, [7, 7, 7], [4, 2, 3], 5)
    case("ctc_loss.IntList", log_probs.half(), targets, [7, 7, 7], [4, 2, 3])


def packed():
    lengths = torch.tensor([5, 3, 3, 1])
    for dtype in (torch.float32, torch.int64, torch.bfloat16):
        padded = torch.arange(60).reshape(5, 4, 3).to(dtype)
        case("_pack_padded_sequence.default", padded, lengths, False)
        case("_pack_padded_sequence.default", padded.transpose(0, 1), lengths, True)
        data, sizes = aten._pack_padded_sequence(padded, lengths, False)
        case("_pad_packed_sequence.default", data, sizes, False, 7, -1)
        case("_pad_packed_sequence.default", data, sizes, True, 0.5, 6)
    case("_pad_packed_sequence.default", data, sizes, True, 0, 4)
    case("_pack_padded_sequence.default", padded, torch.tensor([3, 5, 1, 1]), False)
    case("_pack_padded_sequence.default", padded, torch.tensor([5, 3, 1, 0]), False)
    case("_pack_padded_sequence.default", padded, torch.tensor([5, 3, 1]), False)
    data, sizes = aten._pack_padded_sequence(torch.randn(5, 4, 3), lengths, False)
    for bidirectional in (False, True):
        n = 2 * (2 if bidirectional else 1)
        for kind in ("RNN", "GRU", "LSTM"):
            layer = getattr(torch.nn, kind)(3, 4, num_layers=2, bidirectional=bidirectional)
            params = [it.data for it in layer.parameters()]
            states = torch.randn(2, n, 4, 4)
            state = [states[0], states[1]] if kind == "LSTM" else states[0]
            op = {"RNN": "rnn_tanh.data", "GRU": "gru.data", "LSTM": "lstm.data"}[kind]
            with torch.no_grad():
                case(op, data, sizes, state, params, True, 2, 0.0, False, bidirectional)
                case(op, data, sizes, state, params, True, 2, 0.5, True, bidirectional, seed=1)
    layer = torch.nn.LSTM(3, 4, proj_size=2, bias=False, bidirectional=True)
    params = [it.data for it in layer.parameters()]
    with torch.no_grad():
        case("lstm.data", data, sizes, [torch.randn(2, 4, 2), torch.randn(2, 4, 4)], params, False, 1, 0.0, False, True)
        case("rnn_relu.data", data, sizes, torch.randn(1, 4, 4), [it.data for it in torch.nn.RNN(3, 4).parameters()], True, 1, 0.0, False, False)


def names():
    """Other names of operators, views in place, questions, and complex numbers."""
    x, y = torch.rand(2, 3) * 0.9 + 0.05, torch.rand(3) + 0.5
    for name in ("absolute arccos arcsin arcsinh arctan arctanh fix negative special_digamma special_psi special_erf "
                 "special_erfc special_erfinv special_exp2 special_expit special_expm1 special_gammaln special_log1p "
                 "special_logit special_round special_sinc").split():
        case(f"{name}.default", x)
        if not name.startswith("special_"):
            case(f"{name}_.default", x.clone())
    case("arccosh.default", x + 1)
    case("arccosh_.default", x + 1)
    for name in ("arctan2.default", "arctan2_.default", "special_xlogy.default", "floor_divide_.Tensor", "pow_.Tensor"):
        case(name, x.clone(), y)
    for name in ("greater", "greater_equal", "less", "less_equal", "not_equal"):
        case(f"{name}_.Scalar", x.clone(), 0.5)
        case(f"{name}_.Tensor", x.clone(), x.flip(0))
    case("float_power_.Tensor", x.double(), y)
    case("addr_.default", x.clone(), y[:2], y)
    case("special_logsumexp.default", x, [1])
    case("special_round.default", x, decimals=2)
    case("special_xlogy.self_scalar", 2.0, x)
    case("special_xlogy.other_scalar", x, 3)
    case("swapaxes_.default", x.clone(), 0, 1)
    case("swapdims_.default", x.clone(), 0, -1)
    case("t_.default", x.clone())
    case("squeeze_.default", x[None, :, None].clone())
    case("squeeze_.dims", x[None, :, None].clone(), [0, 1])
    case("as_strided_.default", x.clone(), [2, 2], [1, 2], 1)
    for value in (torch.tensor(0.0), torch.tensor([[3]]), torch.tensor([]), torch.ones(2)):
        case("is_nonzero.default", value)
    case("is_same_size.default", x, x + 1)
    case("is_same_size.default", x, y)
    case("is_floating_point.default", x)
    case("is_complex.default", x)
    case("complex.default", x, y)
    case("polar.default", x, y)
    z = torch.complex(x, y.expand(2, 3) - 1)
    for name in ("angle", "conj_physical", "sgn", "isreal", "abs"):
        case(f"{name}.default", z)
    case("complex.default", x, y.double())
    case("conj_physical_.default", z.clone())
    for reduce in ("prod", "mean", "amax", "amin"):
        case("index_reduce_.default", x.clone(), 1, torch.tensor([0, 2, 0]), x + 1, reduce)
        case("index_reduce_.default", x.clone(), 1, torch.tensor([0, 2, 0]), x + 1, reduce, include_self=False)
    for wrap in (False, True):
        case("fill_diagonal_.default", torch.zeros(7, 3), 2, wrap)
    case("fill_diagonal_.default", torch.zeros(3, 3, 3), 2)
    case("fill_diagonal_.default", torch.zeros(3, 2, 3), 2)


def special():
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([-40.0, -3.7, -1.0, -0.3, 0.0, 1e-3, 0.4, 1.0, 7.5, 29.9, 30.1, 80.0, math.inf, math.nan], dtype=dtype)
        for name in "i0 special_i0e special_i1 special_i1e special_ndtr special_log_ndtr special_entr".split():
            case(f"{name}.default", x)
        case("special_erfcx.default", x[2:])
        case("special_ndtri.default", torch.tensor([0.0, 1e-30, 1e-7, 0.02, 0.3, 0.5, 0.7, 0.999, 1.0, -1.0], dtype=dtype))
        case("special_zeta.default", torch.tensor([1.0, 1.5, 3.0, 20.0, 0.5], dtype=dtype), torch.tensor([[0.3], [5.0], [-2.0]], dtype=dtype))
        case("special_zeta.self_scalar", 3.0, torch.tensor([0.1, 2.0], dtype=dtype))
        case("special_xlog1py.default", torch.tensor([0.0, 1.0, 2.0], dtype=dtype), torch.tensor([-1.0, -0.5, math.nan], dtype=dtype))
    case("special_i0.default", torch.arange(3))
    case("special_polygamma.default", 2, torch.tensor([0.5, 3.0]))
    case("special_multigammaln.default", torch.tensor([2.5, 3.0]), 3)
    case("special_gammainc.default", torch.tensor([0.5, 3.0, 50.0]), torch.tensor([2.0, 1.0, 60.0]))
    case("special_gammaincc.default", torch.tensor([0.5, 3.0, 50.0]), torch.tensor([2.0, 1.0, 60.0]))
    case("polygamma_.default", torch.tensor([0.5, 3.0]), 2)
    case("ldexp_.default", torch.tensor([0.5, 3.0]), torch.tensor([2, -1]))
    case("polygamma.default", -1, torch.tensor([0.5]))


def made():
    """New tensors, and elements put together."""
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        for n in (0, 1, 2, 8, 9):
            case(f"{name}_window.default", n)
            case(f"{name}_window.periodic", n, False, dtype=torch.float64)
    case("hamming_window.periodic_alpha", 7, True, 0.6)
    case("hamming_window.periodic_alpha_beta", 7, False, 0.6, 0.3)
    case("kaiser_window.beta", 7, False, 3.5)
    case("hann_window.default", -1)
    case("hann_window.default", 3, dtype=torch.int64)
    case("range.default", 1, 5)
    case("range.step", 0.5, 3.0, 0.75)
    case("range.step", 5, 1, -2, dtype=torch.int64)
    case("range.step", 5, 1, 2)
    for x in (torch.tensor([1.5, -2.0, 3.0]), torch.tensor([1, 2, 5], dtype=torch.int32)):
        case("linalg_vander.default", x)
        case("linalg_vander.default", x.expand(2, 3), N=5)
        case("vander.default", x)
        case("vander.default", x, 2, True)
    case("linalg_vander.default", x, N=1)
    sequences = [torch.arange(6.0).reshape(3, 2), torch.ones(1, 2), torch.zeros(0, 2)]
    for batch_first in (False, True):
        case("pad_sequence.default", sequences, batch_first)
        case("pad_sequence.default", sequences, batch_first, 0.5, "left")
    case("pad_sequence.default", [])


def linalg():
    for dtype in (torch.float32, torch.float64):
        a, wide, tall = torch.randn(2, 4, 4, dtype=dtype), torch.randn(3, 5, dtype=dtype), torch.randn(5, 3, dtype=dtype)
        for name in ("linalg_det", "det", "linalg_slogdet", "slogdet", "logdet", "linalg_inv", "inverse", "_linalg_det", "linalg_inv_ex"):
            case(f"{name}.default", a)
        singular = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]], dtype=dtype)
        case("linalg_inv.default", singular)
        for name in ("linalg_det", "linalg_slogdet"):
            case(f"{name}.default", torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=dtype))
        for b in (torch.randn(2, 4, 3, dtype=dtype), torch.randn(4, 2, dtype=dtype), torch.randn(2, 4, dtype=dtype), torch.randn(4, dtype=dtype)):
            case("linalg_solve.default", a, b)
        case("linalg_solve.default", a[0], torch.randn(2, 4, 3, dtype=dtype))
        case("linalg_solve.default", a, torch.randn(2, 3, 4, dtype=dtype), left=False)
        case("linalg_solve.default", singular, torch.ones(3, dtype=dtype))
        case("linalg_solve.default", a, torch.ones(3, 2, dtype=dtype))
        case("linalg_solve_ex.default", a, torch.randn(4, 2, dtype=dtype))
        for m in (a, wide, tall):
            case("linalg_lu_factor.default", m)
            case("linalg_lu.default", m)
            for mode in ("reduced", "complete", "r"):
                case("linalg_qr.default", m, mode)
        case("linalg_lu.default", a + 5 * torch.eye(4), pivot=False)
        positive = a @ a.mT + torch.eye(4)
        for upper in (False, True):
            case("linalg_cholesky.default", positive, upper=upper)
            triangle = torch.linalg.cholesky(positive, upper=upper)
            case("cholesky_solve.default", torch.randn(4, 2, dtype=dtype), triangle, upper)
            case("cholesky_inverse.default", triangle, upper)
            for left in (False, True):
                case("linalg_solve_triangular.default", triangle, torch.randn(2, 4, 4, dtype=dtype), upper=upper, left=left, unitriangular=left)
        case("linalg_cholesky.default", a)
        case("linalg_matrix_exp.default", a / 4)
        case("linalg_matrix_exp.default", torch.zeros(0, 0, dtype=dtype))
    case("linalg_inv.default", wide)
    case("linalg_inv.default", torch.ones(3))
    case("linalg_det.default", torch.ones(2, 2, dtype=torch.int64))
    case("linalg_qr.default", wide, "half")


def spectral():
    """What does not depend on the signs of singular vectors."""
    for dtype in (torch.float32, torch.float64):
        a, wide, tall = torch.randn(2, 4, 4, dtype=dtype), torch.randn(3, 5, dtype=dtype), torch.randn(5, 3, dtype=dtype)
        low = tall[:, :1] @ wide[:1, :4]
        for m in (a, wide, tall, low):
            case("linalg_svdvals.default", m)
            case("nuclear_norm.default", m)
            case("linalg_pinv.atol_rtol_float", m)
            case("linalg_pinv.atol_rtol_float", m, atol=0.5)
            case("linalg_matrix_rank.atol_rtol_float", m)
            case("linalg_matrix_rank.default", m, 1.0)
            for order in (2, -2, 1, -1, math.inf, -math.inf):
                case("linalg_matrix_norm.default", m, order)
            for order in ("fro", "nuc"):
                case("linalg_matrix_norm.str_ord", m, order, [-1, 0], True)
            case("linalg_norm.default", m)
        symmetric = a + a.mT
        for triangle in ("L", "U"):
            case("linalg_eigvalsh.default", symmetric, triangle)
            case("linalg_eigvalsh.default", a, triangle)
        case("linalg_norm.default", wide, 3.0, [1])
        case("linalg_norm.default", wide, 2)
        case("linalg_norm.ord_str", wide, "nuc")
        case("linalg_norm.default", a, 2)
        case("frobenius_norm.dim", a, [0, 2])
        case("nuclear_norm.dim", a, [0, 2], True)
        case("pinverse.default", tall)
        for dim in (0, 1, -1):
            case("norm_except_dim.default", a, 2, dim)
        case("_weight_norm.default", a, torch.rand(2, 1, 1, dtype=dtype))
        case("svd.default", wide, True, False)
    case("linalg_matrix_norm.default", wide, 3)
    case("linalg_matrix_norm.str_ord", wide, "max")
    case("linalg_eigvalsh.default", a, "X")
    case("linalg_svdvals.default", torch.ones(3))


def fourier():
    for dtype in (torch.float32, torch.float64):
        real = torch.randn(3, 8, 5, dtype=dtype)
        signal = torch.complex(real, torch.randn(3, 8, 5, dtype=dtype))
        for x in (real, signal):
            for name in ("fft", "ifft"):
                case(f"fft_{name}.default", x)
                case(f"fft_{name}.default", x, None, 1, "ortho")
                case(f"fft_{name}.default", x, 7, 0, "forward")
                case(f"fft_{name}.default", x, 3, 1, "backward")
                case(f"fft_{name}2.default", x)
                case(f"fft_{name}n.default", x)
                case(f"fft_{name}n.default", x, [4, -1], [0, 2], "ortho")
            for name in ("irfft", "hfft"):
                case(f"fft_{name}.default", x)
                case(f"fft_{name}.default", x, 9, 1, "ortho")
                case(f"fft_{name}.default", x, 4, 1, "forward")
                case(f"fft_{name}2.default", x)
                case(f"fft_{name}n.default", x, [4, 6])
            case("fft_fftshift.default", x)
            case("fft_ifftshift.default", x, [1, 2])
        for name in ("rfft", "ihfft"):
            case(f"fft_{name}.default", real)
            case(f"fft_{name}.default", real, 9, 1, "ortho")
            case(f"fft_{name}2.default", real, None, [-2, -1], "forward")
            case(f"fft_{name}n.default", real)
        for n in (5, 6):
            case("fft_fftfreq.default", n, 0.5, dtype=dtype)
            case("fft_rfftfreq.default", n, dtype=dtype)
    case("fft_fft.default", torch.arange(6))
    case("fft_fft.default", real, 0)
    case("fft_fft.default", real, None, 0, "half")
    case("fft_rfft.default", signal)
    case("fft_fft.default", real.half())
    case("fft_fftn.default", real, None, [0, 0])
    case("fft_fftfreq.default", 0)


for record in (random, ctc, packed, names, special, made, linalg, spectral, fourier):
    cases.clear()
    tensors.clear()
    torch.manual_seed(0)
    record()
    with open(os.path.join(sys.argv[1], f"{record.__name__}.jsonl"), "w") as file:
        file.writelines(json.dumps(it) + "\n" for it in cases)
    save_file(tensors, os.path.join(sys.argv[1], f"{record.__name__}.safetensors"))
    print(record.__name__, len(cases), "cases")
