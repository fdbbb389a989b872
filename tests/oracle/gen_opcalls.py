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

import encoding
from encoding import overload_of

torch.set_num_threads(1)
aten = torch.ops.aten
cases, tensors = [], {}
# The dtypes that operators give back as numbers.
SCALAR_TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64, torch.complex32, torch.complex64, torch.complex128, torch.bool]


def keep(flat):
    tensors[f"t{len(tensors)}"] = flat
    return f"t{len(tensors) - 1}"


def encode(value):
    return encoding.encode(value, keep)


def case(op, *args, seed=0, **kwargs):
    namespace, name = op.split(":") if ":" in op else ("aten", op)
    overload = overload_of(f"{namespace}.{name}")
    encoded = {"op": f"{namespace}.{name}", "args": encode(args), "kwargs": {k: encode(v) for k, v in kwargs.items()}}
    # Without a seed, nothing is drawn, and the tests may call with other strides.
    if seed != 0:
        encoded["seed"] = seed
    torch.manual_seed(seed)
    try:
        result = overload(*args, **kwargs)
        if name.startswith(("result_type", "promote_types")):
            result = SCALAR_TYPES[result]
        encoded["result"] = encode(result)
    except (RuntimeError, IndexError, TypeError) as problem:
        encoded["error"] = str(problem).splitlines()[0]
    cases.append(encoded)


FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def empty(*size, dtype=torch.float32):
    return torch.zeros(size, dtype=dtype)


def complex_numbers():
    ends = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.5, -0.5, -30.0, 800.0]
    x = torch.tensor([complex(a, b) for a in ends for b in ends] + [0.99999 + 1e-6j, 1e200 + 1e200j, 1e300 - 1e10j, -1e-200 + 1e-200j])
    y = torch.complex(torch.randn(3, 5), torch.randn(3, 5))
    for name in ("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "asin",
                 "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "sinc", "conj_physical", "abs", "nan_to_num"):
        case(f"{name}.default", x.to(torch.complex128))
        case(f"{name}.default", y)
        case(f"{name}.default", y.t())
    bases = torch.tensor([0j, 1 + 0j, -1 + 0j, 2 - 3j, 0.5j, complex(math.inf), complex(math.nan)], dtype=torch.complex128)
    powers = torch.tensor([0j, 1 + 0j, 2 + 0j, -1 + 0j, 0.5 + 0j, 1j, 1 - 2j], dtype=torch.complex128)
    case("pow.Tensor_Tensor", bases[1:5, None], powers)
    for power in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5):
        case("pow.Tensor_Scalar", bases, power)
        case("pow.Tensor_Scalar", y, power)
    for base in (1, 2, -1.5):
        case("pow.Scalar", base, powers)
    for order in (0, 1, 2, 3, 0.5, math.inf, -math.inf):
        case("linalg_vector_norm.default", y, order, [1])
    for name in ("var", "std"):
        case(f"{name}.correction", y, [0], correction=0)
        case(f"{name}.correction", y, [0, 1])
        case(f"{name}_mean.correction", y.t(), [0], keepdim=True)
    for equal_nan in (True, False):
        case("isclose.default", x, x.clone(), 1e-5, 1e-8, equal_nan)
        case("isclose.default", y, y + 1e-6j, 1e-5, 1e-8, equal_nan)
    for weight in (0.3, 0.8):
        case("lerp.Scalar", y, y * 2j, weight)
    case("lerp.Tensor", y, y * 2j, y - 1)
    case("addcdiv.default", y, y * 2j, y - 1, value=-1.5)


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
        for name in "i0 special_i0e special_i1 special_i1e special_ndtr special_log_ndtr special_entr special_spherical_bessel_j0".split():
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


def matrices():
    """Complex matrices, reflections, and other forms of factorisations."""
    for dtype in (torch.complex64, torch.complex128, torch.float32):
        a, wide, tall = torch.randn(2, 4, 4, dtype=dtype), torch.randn(3, 5, dtype=dtype), torch.randn(5, 3, dtype=dtype)
        b = torch.randn(2, 4, 3, dtype=dtype)
        for name in ("linalg_det", "linalg_slogdet", "logdet", "linalg_inv"):
            case(f"{name}.default", a)
        case("linalg_solve.default", a, b)
        case("linalg_solve.default", a, torch.randn(2, 3, 4, dtype=dtype), left=False)
        positive = a @ a.mH + torch.eye(4)
        for upper in (False, True):
            case("linalg_cholesky.default", positive, upper=upper)
            triangle = torch.linalg.cholesky(positive, upper=upper)
            case("cholesky_solve.default", b, triangle, upper)
            case("cholesky_inverse.default", triangle, upper)
            case("linalg_solve_triangular.default", triangle, b, upper=upper)
        factors, pivots = torch.linalg.lu_factor(a)
        for adjoint in (False, True):
            case("linalg_lu_solve.default", factors, pivots, b, adjoint=adjoint)
            case("linalg_lu_solve.default", factors, pivots, b.mT.contiguous(), left=False, adjoint=adjoint)
        case("lu_solve.default", b, factors, pivots)
        case("linalg_lu_solve.default", factors[:1], pivots[:1], b)
        for m in (a, wide, tall):
            case("linalg_lu_factor.default", m)
            case("linalg_qr.default", m)
            case("geqrf.default", m)
            case("linalg_svdvals.default", m)
            case("linalg_pinv.atol_rtol_tensor", m, rtol=torch.tensor(1e-3))
            case("linalg_pinv.rcond_tensor", m, torch.tensor(1e-3))
            case("linalg_matrix_rank.tol_tensor", m, torch.tensor(2.0))
            case("linalg_matrix_rank.atol_rtol_tensor", m, atol=torch.tensor(2.0))
        reflections, tau = torch.geqrf(tall)
        case("linalg_householder_product.default", reflections, tau)
        case("linalg_householder_product.default", reflections, tau[:2])
        case("orgqr.default", reflections, tau)
        for transpose in (False, True):
            case("ormqr.default", reflections, tau, torch.randn(5, 2, dtype=dtype), True, transpose)
            case("ormqr.default", reflections, tau, torch.randn(2, 5, dtype=dtype), False, transpose)
        for triangle in ("L", "U"):
            case("linalg_eigvalsh.default", a, triangle)
        case("linalg_matrix_exp.default", a / 4)
    case("linalg_householder_product.default", wide, tau)
    case("linalg_householder_product.default", reflections, tau[None])
    case("ormqr.default", reflections, tau, torch.randn(4, 2))
    case("linalg_lu_solve.default", factors, pivots.long(), b)
    case("linalg_lu_solve.default", factors, pivots[:1], b)


def gradients():
    """Slopes, segments and histograms."""
    x = torch.randn(4, 5)
    for order in (1, 2):
        case("gradient.scalarint", x, spacing=0.5, dim=-1, edge_order=order)
        case("gradient.scalararray", x, spacing=2, dim=[1, 0], edge_order=order)
        case("gradient.array", x, dim=[0], edge_order=order)
        case("gradient.scalarrayint", x, spacing=[2.0, 0.5], edge_order=order)
        points = [torch.tensor([0.0, 1.0, 3.0, 3.5]), torch.tensor([-1.0, 0.0, 0.5, 2.0, 5.0])]
        case("gradient.tensorarrayint", x, spacing=points, edge_order=order)
        case("gradient.tensorarray", x, spacing=points[1:], dim=[1], edge_order=order)
    case("gradient.scalarint", x, edge_order=3)
    case("gradient.scalarint", x[:1])
    case("gradient.scalarrayint", x, spacing=[1.0])
    case("gradient.array", x, dim=[0, 0])
    data = torch.randn(6, 3)
    for reduce in ("sum", "mean", "prod", "max", "min"):
        case("segment_reduce.default", data, reduce, lengths=torch.tensor([2, 0, 3, 1]), initial=1)
        case("segment_reduce.default", data, reduce, offsets=torch.tensor([0, 2, 2, 5, 6]))
        case("segment_reduce.default", data.T.contiguous(), reduce, lengths=torch.tensor([[2, 4], [6, 0], [1, 5]]), axis=1)
    case("segment_reduce.default", data, "sum", lengths=torch.tensor([2, 2]))
    case("segment_reduce.default", data, "sum", lengths=torch.tensor([2, 5, -1]))
    case("segment_reduce.default", data, "sum")
    case("segment_reduce.default", data, "half", lengths=torch.tensor([6]))
    points = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 2.0, math.nan, 3.0])
    edges = torch.tensor([0.0, 0.5, 1.5, 2.0])
    for weight in (None, torch.rand(8)):
        for density in (False, True):
            case("histogram.bin_ct", points, 4, range=[0.0, 2.0], weight=weight, density=density)
            case("histogram.bins_tensor", points, edges, weight=weight, density=density)
            case("histogramdd.default", points.reshape(4, 2), [2, 3], [0.0, 2.0, 0.5, 3.0], None if weight is None else weight[:4], density)
    case("histogramdd.int_bins", points.reshape(4, 2), 2, [0.0, 2.0, 0.5, 3.0])
    case("histogramdd.TensorList_bins", points.reshape(4, 2), [edges, edges])
    case("histogram.bin_ct", torch.tensor([]), 3)
    case("histogram.bin_ct", torch.ones(3), 3)
    case("histogram.bin_ct", points, 3)
    case("histogram.bins_tensor", points, edges.flip(0))


def equations():
    """Least squares, tensors as matrices, and conditions."""
    for dtype in (torch.float32, torch.float64, torch.complex64):
        a, tall = torch.randn(2, 4, 4, dtype=dtype), torch.randn(5, 3, dtype=dtype)
        for driver in (None, "gels", "gelsy", "gelsd", "gelss"):
            case("linalg_lstsq.default", tall, torch.randn(5, 2, dtype=dtype), driver=driver)
            case("linalg_lstsq.default", tall.mT.contiguous(), torch.randn(3, 2, dtype=dtype), driver=driver)
            case("linalg_lstsq.default", a, torch.randn(2, 4, 1, dtype=dtype), driver=driver)
        case("linalg_lstsq.default", torch.cat([tall, tall[:, :1]], 1), torch.randn(5, 2, dtype=dtype))
        for p in (None, 2, -2, 1, -1, math.inf, -math.inf):
            case("linalg_cond.default", a, p)
        case("linalg_cond.default", tall)
        for p in ("fro", "nuc"):
            case("linalg_cond.p_str", a, p)
        case("linalg_tensorinv.default", torch.randn(2, 3, 6, dtype=dtype))
        case("linalg_tensorinv.default", torch.randn(6, 2, 3, dtype=dtype), 1)
        case("linalg_tensorsolve.default", torch.randn(2, 3, 6, dtype=dtype), torch.randn(2, 3, dtype=dtype))
        case("linalg_tensorsolve.default", torch.randn(6, 2, 3, dtype=dtype), torch.randn(2, 3, dtype=dtype), [0])
    case("linalg_cond.default", torch.tensor([[1.0, 1.0], [1.0, 1.0]]), 1)
    case("linalg_cond.default", torch.randn(0, 3, 3), 1)
    case("linalg_cond.default", tall, 1)
    case("linalg_tensorinv.default", torch.randn(2, 3, 5))
    case("linalg_lstsq.default", tall, torch.randn(4, 2, dtype=dtype))
    case("linalg_lstsq.default", tall, torch.randn(5, 2, dtype=dtype), driver="half")
    case("linalg_eigvals.default", torch.tensor([[1.0, 2.0], [0.0, 3.0]]))
    case("linalg_eigvals.default", torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
    case("linalg_eig.default", torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
    case("linalg_eig.default", torch.tensor([[0.0, 1.0], [math.nan, 0.0]]))


def stretches():
    """Fourier transforms of short stretches, and quantised numbers."""
    for signal in (torch.randn(40), torch.randn(2, 40, dtype=torch.float64)):
        dtype = signal.dtype
        for window in (None, torch.hann_window(8, dtype=dtype)):
            for options in ({}, {"hop_length": 3}, {"normalized": True}, {"onesided": False}):
                spectrum = torch.stft(signal, 8, window=window, return_complex=True, **options)
                case("stft.center", signal, 8, window=window, return_complex=True, **options)
                case("stft.default", signal, 8, window=window, return_complex=False, **options)
                case("istft.default", spectrum, 8, window=window, **options)
        short = torch.hann_window(5, dtype=dtype) + 0.1
        case("stft.center", signal, 8, 2, 5, short, pad_mode="constant", return_complex=True)
        spectrum = torch.stft(signal, 8, 2, 5, short, return_complex=True)
        for length in (None, 33, 50):
            case("istft.default", spectrum, 8, 2, 5, short, length=length)
        spectrum = torch.stft(signal, 8, 2, onesided=False, return_complex=True)
        case("istft.default", spectrum, 8, 2, onesided=False, return_complex=True)
    case("stft.center", torch.complex(signal, signal), 8, return_complex=True)
    case("stft.center", signal, 8)
    case("stft.center", signal, 8, 0, return_complex=True)
    case("stft.center", signal, 8, 2, 9, return_complex=True)
    case("stft.default", signal, 41, return_complex=True)
    case("stft.center", signal, 8, 2, 4, short, return_complex=True)
    case("istft.default", signal, 8)
    case("istft.default", spectrum, 8, 9)
    case("istft.default", torch.stft(signal, 8, 4, window=torch.hann_window(8, dtype=dtype), return_complex=True), 8, 4, window=torch.hann_window(8, dtype=dtype), center=False)


def quantized():
    """Numbers as integers with a scale."""
    from torch.ao.quantization.fx import _decomposed  # noqa: F401 (it defines the operators)

    q = "quantized_decomposed:"
    x = torch.randn(3, 8) * 3
    for dtype, low, high in ((torch.int8, -128, 127), (torch.uint8, 0, 255), (torch.int16, -1000, 1000)):
        for input in (x, x.half()):
            case(q + "quantize_per_tensor.default", input, 0.05, 3, low, high, dtype)
        scale, zero = torch.tensor([0.05]), torch.tensor([3])
        case(q + "quantize_per_tensor.tensor", x, scale, zero, low, high, dtype)
        whole = torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.05, 3, low, high, dtype)
        for out in (None, torch.float16):
            case(q + "dequantize_per_tensor.default", whole, 0.05, 3, low, high, dtype, out_dtype=out)
        case(q + "dequantize_per_tensor.tensor", whole, scale, zero, low, high, dtype)
        for axis, n in ((0, 3), (1, 8)):
            scales, zeros = torch.rand(n) / 9 + 0.01, torch.arange(n)
            case(q + "quantize_per_channel.default", x, scales, zeros, axis, low, high, dtype)
            case(q + "dequantize_per_channel.default", whole, scales, zeros, axis, low, high, dtype)
            case(q + "dequantize_per_channel.default", whole, scales, None, axis, low, high, dtype)
        scales, zeros = torch.rand(3, 1) / 9 + 0.01, torch.arange(3)[:, None]
        case(q + "quantize_per_token.default", x, scales, zeros, low, high, dtype)
        case(q + "dequantize_per_token.default", whole, scales, zeros, low, high, dtype, torch.float32)
        scales, zeros = torch.rand(3, 2) / 9 + 0.01, torch.arange(6).reshape(3, 2)
        case(q + "quantize_per_channel_group.default", x, scales, zeros, low, high, dtype, 4)
        case(q + "dequantize_per_channel_group.default", whole, scales, zeros, low, high, dtype, 4, torch.float32)
    case(q + "choose_qparams_per_token.default", x, torch.int8)
    case(q + "choose_qparams_per_token.default", x.half(), torch.int8)
    case(q + "choose_qparams_per_token_asymmetric.default", x, torch.int8)
    case(q + "_choose_qparams_per_token_asymmetric_impl.default", x, torch.int8)


def dtypes():
    """Questions about dtypes."""
    x, one = torch.ones(2, dtype=torch.int8), torch.tensor(1.5, dtype=torch.float64)
    case("result_type.Tensor", x, one)
    case("result_type.Tensor", one, x.float())
    case("result_type.Scalar", x, 2.0)
    case("result_type.Scalar", x, 300)
    case("result_type.Scalar_Tensor", True, x)
    case("result_type.Scalar_Scalar", 1, 2.0)
    for a, b in ((torch.uint8, torch.int8), (torch.float16, torch.bfloat16), (torch.int64, torch.float16), (torch.bool, torch.uint8), (torch.complex64, torch.float64)):
        case("promote_types.default", a, b)
        case("can_cast.default", a, b)
        case("can_cast.default", b, a)


def dropout():
    """The gradient of dropout from its mask: of all dtypes, broadcast, laid out in other ways, and empty."""
    mask = torch.tensor([[True, False, True], [False, True, True]])
    for dtype in (*FLOATS, torch.complex64, torch.int64, torch.bool):
        case("native_dropout_backward.default", torch.randn(2, 3).mul(5).to(dtype), mask, 1.25)
    grad = torch.randn(2, 3)
    # Where the mask is wider than the gradient, PyTorch's decomposition does not promote as its kernel does.
    for dtype in (torch.float32, torch.uint8):
        case("native_dropout_backward.default", grad, mask.to(dtype), 2.0)
    case("native_dropout_backward.default", grad, mask[:, :1], 2.0)
    case("native_dropout_backward.default", grad[0], mask, 2.0)
    case("native_dropout_backward.default", grad, torch.ones(4, dtype=torch.bool), 2.0)
    case("native_dropout_backward.default", torch.tensor([1.0, -2.0, math.nan, math.inf]), torch.tensor([True, False, True, False]), 0.0)
    case("native_dropout_backward.default", torch.tensor(3.0), torch.tensor(True), 0.5)
    case("native_dropout_backward.default", empty(0, 3), torch.zeros(0, 3, dtype=torch.bool), 2.0)
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    case("native_dropout_backward.default", image, image > 0, 2.0)
    case("native_dropout_backward.default", image, (image > 0).contiguous(), 2.0)


def polynomials():
    """Orthogonal polynomials, and functions of Bessel and Airy."""
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([-1.0, -0.6, 0.0, 0.3, 0.5, 1.0, 1.2, math.nan], dtype=dtype)
        n = torch.tensor([-1.0, 0.0, 1.0, 2.0, 5.0, 11.0], dtype=dtype)[:, None]
        for kind in "tuvw":
            for name in ("chebyshev", "shifted_chebyshev"):
                case(f"special_{name}_polynomial_{kind}.default", x, n)
                case(f"special_{name}_polynomial_{kind}.n_scalar", x, 3)
                case(f"special_{name}_polynomial_{kind}.x_scalar", 0.7, n)
        for name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"):
            case(f"special_{name}.default", x, n)
            case(f"special_{name}.n_scalar", x, 3)
            case(f"special_{name}.x_scalar", 0.7, n)
        x = torch.tensor([-3.0, 0.0, 1e-3, 0.4, 1.0, 1.99, 2.0, 2.01, 5.0, 7.5, 30.0, 150.0, math.nan], dtype=dtype)
        for name in ("modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"):
            case(f"special_{name}.default", x[:-2] if "modified_bessel_i" in name else x)
        for name in ("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"):
            case(f"special_{name}.default", x)
        case("special_airy_ai.default", torch.tensor([-20.0, -8.1, -7.9, -3.0, -0.5, 0.0, 0.5, 1.9, 2.1, 9.0, 50.0, math.inf], dtype=dtype))


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


def backward():
    """The ATen operators of the backward pass that PyTorch's operator tests record in float32 alone: other dtypes,
    channels-last and empty tensors, and special values."""
    last = lambda it: it.to(memory_format=torch.channels_last)
    last3d = lambda it: it.to(memory_format=torch.channels_last_3d)
    for dtype in FLOATS:
        special = torch.tensor([-3.5, -3.0, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 3.0, 4.0, math.inf, -math.inf, math.nan])
        # Enough of them that PyTorch's vectorised loops see the special values.
        x, g = torch.cat([special, torch.randn(50)]).to(dtype), torch.randn(64).to(dtype)
        for name in ("sigmoid", "tanh", "silu", "mish", "hardsigmoid", "gelu", "logit"):
            case(f"{name}_backward.default", g, x)
        # Of a NaN, the vectorised loops of these say something else than the scalar ones.
        plain = torch.where(x.isnan(), 0.75, x)
        case("hardswish_backward.default", g, plain)
        case("gelu_backward.default", g, x, approximate="tanh")
        case("logit_backward.default", g, x, 0.3)
        case("threshold_backward.default", g, x, 0.5)
        case("hardtanh_backward.default", g, plain, -1, 1)
        case("elu_backward.default", g, 1.5, 0.7, 0.3, False, plain)
        case("elu_backward.default", g, 1.5, 0.7, 0.3, True, plain)
        case("elu_backward.default", g, -1.5, 0.7, 0.3, True, plain)
        case("softplus_backward.default", g, x, 2, 1.5)
        case("softshrink_backward.default", g, plain, 0.5)
        case("hardshrink_backward.default", g, plain, 0.5)
        case("leaky_relu_backward.default", g, x, 0.1, False)
        case("leaky_relu_backward.default", g, x, -0.1, True)
        out, buffer = aten.log_sigmoid_forward(x[14:])
        case("log_sigmoid_backward.default", g[14:], x[14:], buffer)
        case("_prelu_kernel_backward.default", g.view(2, 4, 8), x.view(2, 4, 8), torch.rand(4, 1).to(dtype))
        case("glu_backward.default", torch.randn(2, 3, 2).to(dtype), torch.randn(2, 6, 2).to(dtype), 1)
        for training in (True, False):
            case("rrelu_with_noise_backward.default", g, x, torch.rand(64).to(dtype), 0.1, 0.4, training, False)
        y, target = torch.rand(3, 4).to(dtype), torch.rand(3, 4).to(dtype)
        for reduction in (0, 1, 2):
            up = torch.randn((3, 4) if reduction == 0 else ()).to(dtype)
            case("mse_loss_backward.default", up, y, target, reduction)
            case("smooth_l1_loss_backward.default", up, y, target, reduction, 0.3)
            case("smooth_l1_loss_backward.default", up, y, target, reduction, 0.0)
            case("huber_loss_backward.default", up, y, target, reduction, 0.3)
            if dtype.itemsize > 2:
                case("soft_margin_loss_backward.default", up, y, target.round() * 2 - 1, reduction)
                case("binary_cross_entropy_backward.default", up, y, target, None, reduction)
                case("binary_cross_entropy_backward.default", up, y, target, torch.rand(4).to(dtype), reduction)
            classes, up = torch.tensor([2, 0, -100]), torch.randn((3,) if reduction == 0 else ()).to(dtype)
            total = torch.tensor(2.0, dtype=dtype)
            case("nll_loss_backward.default", up, y, classes, None, reduction, -100, total)
            case("nll_loss_backward.default", up, y, classes, torch.rand(4).to(dtype), reduction, -100, total)
            case("multi_margin_loss_backward.default", up, y, torch.tensor([2, 0, 3]), 2, 0.5, torch.rand(4).to(dtype), reduction)
            labels = torch.tensor([[1, 2, -1, 0], [0, -1, -1, -1], [-1, 0, 0, 0]])
            is_target = aten.multilabel_margin_loss_forward(y.float(), labels, 0)[1].to(dtype)
            case("multilabel_margin_loss_backward.default", up, y, labels, reduction, is_target)
            up = torch.randn((2, 2, 3) if reduction == 0 else ()).to(dtype)
            pixels = torch.randint(0, 4, (2, 2, 3))
            case("nll_loss2d_backward.default", up, torch.randn(2, 4, 2, 3).to(dtype), pixels, None, reduction, 1, total)
        for dim in (0, 1, -1):
            y, up = torch.randn(3, 4, 5).to(dtype), torch.randn(3, 4, 5).to(dtype)
            case("_softmax_backward_data.default", up, y.softmax(dim), dim, dtype)
            case("_log_softmax_backward_data.default", up, y.log_softmax(dim), dim, dtype)
        x, up = last(torch.randn(2, 6, 3, 4)).to(dtype), torch.randn(2, 6, 3, 4).to(dtype)
        is_half = dtype.itemsize == 2
        # Of half types, PyTorch rounds some sums on the way.
        for weight in () if is_half else (torch.rand(6), None):
            weight = weight if weight is None else weight.to(dtype)
            _, mean, inverse = aten.native_group_norm(x, weight, None, 2, 6, 12, 3, 1e-5)
            case("native_group_norm_backward.default", up, x, mean, inverse, weight, 2, 6, 12, 3, [True, True, True])
            _, mean, inverse = aten.native_batch_norm(x, weight, None, None, None, True, 0.1, 1e-5)
            running = torch.randn(6).to(dtype), torch.rand(6).to(dtype)
            for training in (True, False):
                case("native_batch_norm_backward.default", up, x, weight, *running, mean, inverse, training, 1e-5, [True, True, training])
            weight = None if weight is None else torch.rand(3, 4).to(dtype)
            _, mean, inverse = aten.native_layer_norm(x, [3, 4], weight, weight, 1e-5)
            case("native_layer_norm_backward.default", up, x, [3, 4], mean, inverse, weight, weight, [True, weight is not None, weight is not None])
        if not is_half:
            case("batch_norm_backward.default", up, x, torch.rand(6).to(dtype), None, None, torch.randn(6).to(dtype), torch.rand(6).to(dtype), True, 1e-5, [True, True, True], torch.zeros(0))
        none = torch.zeros(0, 6).to(dtype)
        case("native_layer_norm_backward.default", none, none, [6], torch.zeros(0, 1).to(dtype), torch.zeros(0, 1).to(dtype), torch.ones(6).to(dtype), torch.ones(6).to(dtype), [True, True, True])
        case("select_backward.default", torch.randn(2, 3).to(dtype), [2, 4, 3], 1, -2)
        case("slice_backward.default", torch.randn(2, 3).to(dtype), [2, 9], -1, 1, 9223372036854775807, 3)
        case("diagonal_backward.default", torch.randn(3, 2).to(dtype), [3, 3, 4], 2, 1, 2)
        case("unfold_backward.default", torch.randn(3, 4, 3).to(dtype), [9, 4], 0, 3, 3)
        case("unfold_backward.default", torch.randn(4, 4, 3).to(dtype), [9, 4], 0, 3, 2)
        case("masked_scatter_backward.default", torch.randn(2, 3).to(dtype), torch.tensor([True, False, True]), [5])
        for name, padding, shape in (("1d", [2, 1], (2, 3, 4)), ("2d", [1, 2, 0, 1], (2, 3, 4, 4)), ("3d", [1, 0, 1, 2, 0, 1], (1, 2, 3, 4, 3))):
            for kind in ("reflection", "replication"):
                base = torch.randn(shape).to(dtype)
                base = last(base) if base.dim() == 4 else base
                up = getattr(aten, f"{kind}_pad{name}")(base, padding)
                case(f"{kind}_pad{name}_backward.default", torch.randn_like(up), base, padding)
                case(f"{kind}_pad{name}_backward.default", torch.randn_like(up)[:0], base[:0], padding)
        for name, sizes in (("nearest1d", [5]), ("_nearest_exact1d", [5]), ("linear1d", [5]), ("nearest2d", [5, 3]), ("_nearest_exact2d", [5, 3]), ("bilinear2d", [5, 3]), ("bicubic2d", [5, 3]), ("nearest3d", [2, 5, 3]), ("_nearest_exact3d", [2, 5, 3]), ("trilinear3d", [2, 5, 3])):
            name = f"_upsample{name}" if name[0] == "_" else f"upsample_{name}"
            up = torch.randn([2, 2] + sizes).to(dtype)
            for batch in (2, 0):
                for corners in ([True], [False]) if "linear" in name or "cubic" in name else ([],):
                    case(f"{name}_backward.default", up[:batch], sizes, [batch, 2] + [3, 4, 2][: len(sizes)], *corners)
        for name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
            for sizes in ([7, 3], [2, 9]):
                case(f"{name}_backward.default", torch.randn([2, 2] + sizes).to(dtype), sizes, [2, 2, 4, 5], False)
        case("upsample_bilinear2d_backward.default", last(torch.randn(2, 3, 4, 5)).to(dtype), [4, 5], [2, 3, 2, 3], False, 2.0, 1.7)
        x, grid, up = torch.randn(2, 2, 4, 3), torch.rand(2, 3, 2, 2) * 2.6 - 1.3, torch.randn(2, 2, 3, 2)
        for mode in () if is_half else (0, 1, 2):
            for padding in (0, 1, 2):
                for corners in (True, False):
                    case("grid_sampler_2d_backward.default", up.to(dtype), x.to(dtype), grid.to(dtype), mode, padding, corners, [True, True])
        if not is_half:
            case("grid_sampler_2d_backward.default", up.to(dtype), x.to(dtype), grid.to(dtype), 0, 0, True, [False, True])
        x, grid, up = torch.randn(2, 2, 4, 3, 2), torch.rand(2, 2, 2, 1, 3) * 2.6 - 1.3, torch.randn(2, 2, 2, 2, 1)
        for mode in () if is_half else (0, 1):
            for padding in (0, 1, 2):
                case("grid_sampler_3d_backward.default", up.to(dtype), x.to(dtype), grid.to(dtype), mode, padding, mode == 1, [True, True])
        x, x3d = last(torch.randn(2, 2, 6, 5)).to(dtype), last3d(torch.randn(1, 2, 4, 5, 4)).to(dtype)
        up, where = aten.adaptive_max_pool2d(x, [3, 2])
        case("adaptive_max_pool2d_backward.default", up, x, where)
        up, where = aten.adaptive_max_pool3d(x3d, [3, 2, 2])
        case("adaptive_max_pool3d_backward.default", up, x3d, where)
        up, where = aten.fractional_max_pool2d(x, [2, 2], [3, 2], torch.rand(2, 2, 2).to(dtype))
        case("fractional_max_pool2d_backward.default", up, x, [2, 2], [3, 2], where)
        up, where = aten.fractional_max_pool3d(x3d, [2, 2, 2], [2, 2, 2], torch.rand(1, 2, 3).to(dtype))
        case("fractional_max_pool3d_backward.default", up, x3d, [2, 2, 2], [2, 2, 2], where)
        rows = torch.tensor([[0, 2, 2], [4, 1, 2]])
        for by_frequency in (False, not is_half):
            case("embedding_dense_backward.default", torch.randn(2, 3, 4).to(dtype), rows, 5, 1, by_frequency)
        case("embedding_backward.default", torch.randn(2, 3, 4).to(dtype), rows.int(), 5, -1, False, False)
        lengths = torch.tensor([2, 0, 3])
        data = torch.tensor([1.5, -2.0, 0.0, 3.0, 3.0]).to(dtype)
        for reduce in ("sum", "mean", "max", "min", "prod"):
            for initial in (None, 2):
                res = aten.segment_reduce(data, reduce, lengths=lengths, initial=initial)
                case("segment_reduce.default", data, reduce, lengths=lengths, initial=initial)
                case("segment_reduce.default", data, reduce, offsets=torch.tensor([0, 1, 5]), initial=initial)
                # Positive, for PyTorch does not share a negative gradient among equal extremes.
                case("_segment_reduce_backward.default", torch.rand(3).to(dtype), res, data, reduce, lengths=lengths, initial=initial)
    weight, rows, starts = torch.randn(6, 3), torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2, 2, 4])
    for dtype in (torch.float32, torch.float64):
        for mode in (0, 1, 2):
            for padding in (-1, 4):
                table = weight.to(dtype)
                _, bag, sizes, maxima = aten._embedding_bag(table, rows, starts, False, mode, False, None, False, padding)
                up = torch.randn(4, 3, dtype=dtype)
                for by_frequency in (False, mode != 2):
                    case("_embedding_bag_backward.default", up, rows, starts, bag, sizes, maxima, 6, by_frequency, mode, False, None, padding)
                bag = torch.tensor([0, 0, 2, 2, 3, 3])
                case("_embedding_bag_dense_backward.default", up, rows, bag, sizes, maxima, 6, False, mode, None, padding)
        case("_embedding_bag_per_sample_weights_backward.default", up, weight.to(dtype), rows, starts, bag, 0, 4)
        near = torch.tensor([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [0.5, 1.0, -1.0], [3.0, 1.5, 2.0]], dtype=dtype)
        for p in (0.0, 0.7, 1.0, 1.5, 2.0, 3.0, math.inf):
            case("_cdist_backward.default", torch.randn(2, 4, 4, dtype=dtype), near, near.expand(2, 4, 3), p, torch.cdist(near, near.expand(2, 4, 3), p))
            case("_pdist_backward.default", torch.randn(6, dtype=dtype), near, p, torch.pdist(near, p))
    for dtype in (torch.complex64, torch.complex128):
        x, up = torch.randn(4, dtype=dtype), torch.randn(4, dtype=dtype)
        case("sigmoid_backward.default", up, x)
        case("tanh_backward.default", up, x)
        case("reflection_pad1d_backward.default", torch.randn(2, 7, dtype=dtype), torch.randn(2, 4, dtype=dtype), [2, 1])
    for dtype in INTS:
        case("threshold_backward.default", torch.tensor([1, 2, 3], dtype=dtype), torch.tensor([0, 1, 2], dtype=dtype), 1)
        case("select_backward.default", torch.tensor([1, 2, 3], dtype=dtype), [3, 2], 1, 0)
        case("embedding_dense_backward.default", torch.ones(3, 2, dtype=dtype), torch.tensor([0, 3, 0]), 4, -1, False)


def mixed():
    """Losses of tensors of two dtypes, draws of complex numbers, and norms of matrices of half types."""
    dtypes = [*FLOATS, torch.int64, torch.bool]
    for op in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "hinge_embedding_loss",
               "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"):
        for own in dtypes:
            for other in dtypes:
                if own != other:
                    case(f"{op}.default", torch.rand(3).round().to(own) if not own.is_floating_point else torch.rand(3).to(own), torch.rand(3).round().to(other))
    for dtype in (torch.complex64, torch.complex128):
        turned = empty(4, 5, dtype=dtype).t()
        for n in (3, 8, 21):
            case("randn.default", [n], dtype=dtype, seed=n)
            case("rand.default", [n], dtype=dtype, seed=n)
            case("normal_.default", empty(n, dtype=dtype), 3.0, 0.1, seed=n)
            case("uniform_.default", empty(n, dtype=dtype), -0.7, 1.3, seed=n)
            case("normal.float_float", 0.0, 2.0, [n], dtype=dtype, seed=n)
            case("normal.Tensor_float", torch.full((n,), 1 - 2j, dtype=dtype), 2.0, seed=n)
        for op in ("randn_like.default", "rand_like.default", "normal_.default", "uniform_.default"):
            case(op, turned, seed=7)
        case("silu.default", torch.randn(2, 9, dtype=dtype))
    for dtype in INTS:
        case("dropout.default", torch.ones(3, dtype=dtype), 1.0, True)
    for dtype in FLOATS:
        for order in ("fro", "nuc", 1, -1, 2, math.inf):
            case("linalg_matrix_norm.str_ord" if isinstance(order, str) else "linalg_matrix_norm.default", torch.randn(2, 3).to(dtype), order)
    for dtype in (None, torch.complex64, torch.complex128, torch.float32):
        for n in (0, 1, 2, 5, 8):
            case("linspace.Tensor_Tensor", torch.tensor(0.0), torch.tensor(1 + 2j), n, dtype=dtype)
            case("linspace.Tensor_Scalar", torch.tensor(-1.5j), 2, n, dtype=dtype)
        case("linspace.Tensor_Scalar", torch.tensor(1 + 1j), 4.0, 5, dtype=dtype)


def int4_words(w, tiles):
    """`matrix_to_m16n8k16_Bint4_layout` of aten/src/ATen/native/cuda/int4mm.cu, which PyTorch has for CUDA alone."""
    n, k = w.shape[0], w.shape[1] * 2
    lane, pair = torch.arange(32), torch.arange(tiles // 2)
    out = torch.zeros(n // 8, k // (tiles * 16), 32, tiles // 2, dtype=torch.int64)
    for tile in range(n // 8):
        for outer in range(k // (tiles * 16)):
            base = (outer * tiles + 2 * pair) * 8
            rows = (tile * 8 + lane // 4)[:, None]
            v = [w[rows, base[None] + (lane % 4)[:, None] + 4 * i].to(torch.int64) for i in range(4)]
            low, high = [it & 15 for it in v], [it >> 4 for it in v]
            out[tile, outer] = sum(it << (4 * at) for at, it in enumerate(high + low))
    return torch.where(out >= 2**31, out - 2**32, out).to(torch.int32)


def int4_numbers(words, n, k):
    """The integers of words, `[n, k]`."""
    tiles = words.shape[3] * 2
    codes = torch.arange(n * k, dtype=torch.int64)
    # What stands where, eight bits of the places at a time: the way back of the function above.
    res = torch.zeros(n * k, dtype=torch.int64)
    for at in range(0, 32, 4):
        part = int4_words(((codes >> at & 15).view(n, k)[:, ::2] << 4 | (codes >> at & 15).view(n, k)[:, 1::2]).to(torch.uint8), tiles)
        res += sum(((part.to(torch.int64) >> (4 * it)) & 15).unsqueeze(-1) * torch.nn.functional.one_hot(torch.tensor(it), 8) for it in range(8)).flatten() << at
    flat = torch.stack([words.to(torch.int64) >> (4 * it) & 15 for it in range(8)], -1).flatten()
    out = torch.empty(n * k, dtype=torch.int64)
    out[res] = flat
    return out.view(n, k)


def int4_product(x, words, group, numbers):
    """`tinygemm_m16n8k16_chunk_kernel` of the same file: weights are rounded to the dtype, sums are of float32."""
    n, k = words.shape[0] * 8, x.shape[1]
    q = (int4_numbers(words, n, k) - 8).to(torch.float32)
    scale, zero = (numbers[:, :, it].float().repeat_interleave(group, 0).t() for it in (0, 1))
    return (x.float() @ (q * scale + zero).to(x.dtype).float().t()).to(x.dtype)


def weight_only():
    """Products whose weights are integers."""
    library = torch.library.Library("aten", "IMPL")
    library.impl("_convert_weight_to_int4pack", int4_words, "CPU")
    library.impl("_weight_int4pack_mm", int4_product, "CPU")
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for m, n, k in ((1, 32, 64), (3, 8, 32), (5, 64, 96), (17, 48, 320), (2, 7, 9), (0, 8, 32), (2, 0, 32), (2, 3, 0), (4, 33, 300)):
            x, w = torch.randn(m, k).to(dtype), torch.randint(-128, 128, (n, k), dtype=torch.int8)
            # Of bfloat16, PyTorch's kernel reads beyond other sizes than these.
            if dtype != torch.bfloat16 or n % 16 == 0 and k % 32 == 0 and m * n > 0:
                case("_weight_int8pack_mm.default", x, w, (torch.rand(n) * 0.02).to(dtype))
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for tiles, group, (m, n, k) in ((2, 32, (1, 8, 32)), (2, 32, (3, 16, 96)), (4, 64, (5, 24, 128)), (8, 128, (4, 8, 256)), (8, 256, (17, 16, 256))):
            w = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8)
            case("_convert_weight_to_int4pack.default", w, tiles)
            numbers = torch.stack([torch.rand(k // group, n) * 0.1, torch.randn(k // group, n) * 0.1], -1).to(dtype)
            case("_weight_int4pack_mm.default", torch.randn(m, k).to(dtype), int4_words(w, tiles), group, numbers)
    x, w = torch.randn(2, 32), torch.zeros(16, 32, dtype=torch.int8)
    for args in ((x[0], w, torch.ones(16)), (x.double(), w, torch.ones(16)), (x, w.to(torch.int16), torch.ones(16)), (x, w[0], torch.ones(16)), (x, w[:, :31], torch.ones(16)),
                 (x, w, torch.ones(15)), (x, w, torch.ones(16, 1)), (x, w, torch.ones(16, dtype=torch.bfloat16))):
        case("_weight_int8pack_mm.default", *args)


for record in (complex_numbers, random, ctc, packed, names, special, made, linalg, matrices, gradients, equations, stretches, quantized, dtypes, dropout, polynomials, spectral, fourier, backward, mixed, weight_only):
    cases.clear()
    tensors.clear()
    torch.manual_seed(0)
    record()
    with open(os.path.join(sys.argv[1], f"{record.__name__}.jsonl"), "w") as file:
        file.writelines(json.dumps(it) + "\n" for it in cases)
    save_file(tensors, os.path.join(sys.argv[1], f"{record.__name__}.safetensors"))
    print(record.__name__, len(cases), "cases")
