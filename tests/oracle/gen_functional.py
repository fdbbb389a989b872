"""Calls every function of torch.nn.functional and records what it gives and what a trace records of it.

usage: python tests/oracle/gen_functional.py

functional/signatures.json has the parameter list of each function, null for those of C++, which do not tell.

Each line of functional/cases.jsonl is one call: {"fn", "args", "kwargs"} and {"result"} or {"error"}, {"after"} where
the call changes its first argument, and {"recorded"}, the node that torch.fx records. Values: {"tensor": dtype, "shape",
"data": base64}, {"float": text}, {"tuple": […]}, {"dtype": name}, plain int, bool, string, None and lists.
"""
import base64, inspect, json, math, pathlib, warnings

import torch
import torch.nn.functional as F
from torch.fx import Tracer

warnings.simplefilter("ignore")
out = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "functional"
f16, bf16, f32, f64, i64 = torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64
generator = torch.Generator().manual_seed(20)
cases = []


def rand(*shape, dtype=f32, low=0.0, high=1.0):
    return (torch.rand(shape, generator=generator, dtype=f64) * (high - low) + low).to(dtype)


def normal(*shape, dtype=f32, scale=1.0):
    return (torch.randn(shape, generator=generator, dtype=f64) * scale).to(dtype)


def ints(*shape, high, low=0):
    return torch.randint(low, high, shape, generator=generator)


def encode(value):
    if isinstance(value, torch.Tensor):
        value = value.detach().contiguous()
        raw = value.reshape(-1).view(torch.uint8) if value.numel() else value.new_empty(0, dtype=torch.uint8)
        data = base64.b64encode(bytes(raw.tolist())).decode()
        return {"tensor": str(value.dtype)[6:], "shape": list(value.shape), "data": data}
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        whole = math.isfinite(value) and value == int(value)
        return value if math.isfinite(value) and not whole else {"float": repr(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)[6:]}
    if isinstance(value, tuple):
        return {"tuple": [encode(it) for it in value]}
    if isinstance(value, list):
        return [encode(it) for it in value]
    raise TypeError(type(value))


def recorded(fn, args, kwargs):
    """The node that a trace has of the call, with the tensors as inputs in order."""
    tracer = Tracer()
    tracer.root, tracer.graph, tracer.tensor_attrs = torch.nn.Module(), torch.fx.Graph(tracer_cls=Tracer), {}
    count = 0

    def swap(value):
        nonlocal count
        if isinstance(value, torch.Tensor):
            count += 1
            return tracer.create_proxy("placeholder", f"x{count}", (), {})
        if isinstance(value, (tuple, list)):
            return type(value)(swap(it) for it in value)
        return value

    try:
        fn(*[swap(it) for it in args], **{key: swap(it) for key, it in kwargs.items()})
    except Exception:
        return None
    nodes = [it for it in tracer.graph.nodes if it.op != "placeholder"]
    return nodes[0].format_node() if len(nodes) == 1 else None


seen = set()


def call(name, *args, seed=None, **kwargs):
    fn = getattr(F, name)
    case = {"fn": name, "args": [encode(it) for it in args], "kwargs": {k: encode(it) for k, it in kwargs.items()}}
    if seed is not None:
        case["seed"] = seed
    shape = (name, len(args), *kwargs)
    if shape not in seen:
        seen.add(shape)
        node = recorded(fn, args, kwargs)
        # PyTorch 2.15 forgets the weight of a traced l1_loss.
        if node is not None and not (name == "l1_loss" and "weight" in kwargs):
            case["recorded"] = node
    if seed is not None:
        torch.manual_seed(seed)
    try:
        case["result"] = encode(fn(*args, **kwargs))
        if args and isinstance(args[0], torch.Tensor) and encode(args[0]) != case["args"][0]:
            case["after"] = encode(args[0])
        for at, it in enumerate(args[1:3], 1):
            if isinstance(it, torch.Tensor) and encode(it) != case["args"][at]:
                case[f"after{at}"] = encode(it)
    except Exception as error:
        case["error"] = {"type": type(error).__name__, "message": str(error)}
    cases.append(case)


def trace(name, *args, **kwargs):
    """A call of what no CPU computes: only its record is kept."""
    plain = [int(it.value) if type(it).__name__ in ("_ScalingType", "_SwizzleType") else it for it in args]
    case = {"fn": name, "args": [encode(it) for it in plain], "kwargs": {k: encode(it) for k, it in kwargs.items()}}
    case["recorded"] = recorded(getattr(F, name), args, kwargs)
    case["error"] = {"type": "NotImplementedError", "message": "the engine has no such operator"}
    cases.append(case)


def activations():
    x = torch.tensor([[-3.5, -1.0, -0.25, 0.0], [0.3, 0.5, 2.0, 7.25]])
    unary = "relu relu6 elu selu celu leaky_relu rrelu logsigmoid gelu hardshrink softshrink tanhshrink softsign softplus tanh sigmoid hardsigmoid silu mish hardswish hardtanh".split()
    for name in unary:
        for dtype in (f32, f64, bf16, f16):
            call(name, x.to(dtype))
        call(name, torch.tensor([-2, 0, 3, 8]))
        call(name, torch.empty(0))
    for name in "relu relu6 elu selu celu leaky_relu rrelu hardsigmoid silu mish hardswish hardtanh".split():
        call(name, x.clone(), inplace=True)
    for name in "relu_ elu_ selu_ celu_ leaky_relu_ rrelu_ hardtanh_".split():
        call(name, x.clone())
    for args in [(0.1, 20), (0.1, 20, True), (0, -1.5)]:
        call("threshold", x.clone(), *args)
    call("threshold_", x.clone(), 0.1, 20.0)
    call("threshold", torch.tensor([-1, 2, 5]), 2, 7)
    call("hardtanh", x, -2, 0.5)
    call("hardtanh", x, min_val=-2.0, max_val=0.5, inplace=False)
    call("hardtanh", x, 2.0, 1.0)
    call("hardtanh_", x.clone(), -0.5, 0.5)
    call("elu", x, 0.5)
    call("celu", x, alpha=2.0)
    call("leaky_relu", x, 0.2)
    call("leaky_relu", x, negative_slope=0.2, inplace=True)
    call("rrelu", x, 0.1, 0.3)
    call("rrelu", x, lower=0.1, upper=0.4, training=False)
    call("gelu", x, approximate="tanh")
    call("gelu", x, approximate="erf")
    call("hardshrink", x, 1.0)
    call("softshrink", x, lambd=1)
    call("softshrink", x, -1.0)
    call("softplus", x, 2, 5.0)
    call("prelu", x, torch.tensor([0.25]))
    call("prelu", x, torch.tensor([0.1, 0.2, 0.3, 0.4]))
    call("prelu", x, torch.tensor([0.1, 0.2, 0.3]))
    call("glu", x)
    call("glu", x, 0)
    call("glu", x, dim=-2)
    call("glu", torch.tensor(1.0))
    call("glu", rand(3, 3))
    for name in ("softmax", "softmin", "log_softmax"):
        call(name, x, -1)
        call(name, x, dim=0)
        call(name, x)
        call(name, rand(2, 3, 4))
        call(name, x, dim=1, dtype=f64)
        call(name, x.to(bf16), -1, dtype=f32)
        call(name, torch.tensor([1, 2, 3]), 0, dtype=f32)
        call(name, x, 2)
        call(name, torch.tensor(2.0))


def linear_maps():
    call("linear", rand(2, 3), rand(4, 3), rand(4))
    call("linear", rand(2, 5, 3), rand(4, 3))
    call("linear", rand(3), rand(4, 3), bias=rand(4))
    call("linear", rand(2, 3, dtype=f64), rand(4, 3, dtype=f64))
    call("linear", rand(2, 3), rand(4, 2))
    call("bilinear", rand(2, 3), rand(2, 4), rand(5, 3, 4), rand(5))
    call("bilinear", rand(2, 3), rand(2, 4), rand(5, 3, 4))
    call("conv1d", rand(2, 3, 7), rand(4, 3, 3), rand(4), 2, 1)
    call("conv1d", rand(2, 3, 7), rand(4, 3, 2), padding="same")
    call("conv2d", rand(1, 2, 5, 6), rand(4, 1, 3, 2), None, (2, 1), (1, 0), 1, 2)
    call("conv2d", rand(2, 5, 5), rand(3, 2, 3, 3), rand(3), stride=1, padding="valid", dilation=2)
    call("conv2d", rand(1, 2, 5, 5, dtype=f64), rand(3, 2, 1, 1, dtype=f64))
    call("conv2d", rand(1, 2, 5, 5), rand(3, 3, 1, 1))
    call("conv2d", rand(1, 2, 5, 5), rand(3, 2, 3, 3), padding="full")
    call("conv3d", rand(1, 2, 3, 4, 4), rand(3, 2, 2, 2, 2), rand(3), padding=1)
    call("conv_transpose1d", rand(1, 2, 4), rand(2, 3, 3), rand(3), 2, 1, 1)
    call("conv_transpose2d", rand(1, 2, 3, 4), rand(2, 3, 3, 2), None, stride=2, output_padding=1)
    call("conv_transpose2d", rand(1, 2, 3, 3), rand(2, 2, 2, 2), groups=2, dilation=2)
    call("conv_transpose3d", rand(1, 2, 2, 3, 3), rand(2, 1, 2, 2, 2), rand(1))
    call("conv_tbc", rand(5, 2, 3), rand(3, 3, 4), rand(4), 1)
    call("conv_tbc", rand(5, 2, 3), rand(2, 3, 4), rand(4))
    call("conv_tbc", rand(5, 3), rand(2, 3, 4), rand(4))


def normalisation():
    x = normal(3, 4, 5)
    mean, var, weight, bias = rand(4), rand(4, low=0.5), rand(4), rand(4)
    call("batch_norm", x, mean, var)
    call("batch_norm", x, mean, var, weight, bias, False, 0.1, 0.001)
    call("batch_norm", x, mean.clone(), var.clone(), weight, bias, training=True)
    call("batch_norm", x, None, None, training=True)
    call("batch_norm", x, mean.clone(), var.clone(), training=True, momentum=0.5)
    call("batch_norm", rand(1, 4), mean, var, training=True)
    call("batch_norm", x, mean, var, training=True, eps=0.0)
    call("batch_norm", x, mean, var, eps=-1.0)
    call("batch_norm", x, None, None)
    call("batch_norm", x.to(f64), mean.to(f64), var.to(f64))
    call("instance_norm", x)
    call("instance_norm", x, weight=weight, bias=bias, eps=0.01)
    call("instance_norm", x, mean.clone(), var.clone())
    call("instance_norm", x, mean, var, use_input_stats=False)
    call("instance_norm", rand(2, 4, 1))
    call("layer_norm", x, (5,))
    call("layer_norm", x, [4, 5], rand(4, 5), rand(4, 5), 0.001)
    call("layer_norm", x, (5,), weight=rand(5))
    call("layer_norm", x, (4,))
    call("layer_norm", x.to(bf16), (5,))
    call("rms_norm", x, (5,))
    call("rms_norm", x, (5,), rand(5), 0.01)
    call("group_norm", x, 2)
    call("group_norm", x, 4, weight, bias, 0.001)
    call("group_norm", rand(1, 4), 4)
    call("group_norm", rand(4), 2)
    call("group_norm", x, 3)
    call("local_response_norm", x, 2)
    call("local_response_norm", rand(2, 5, 3, 4), 3, 0.5, 0.5, 2.0)
    call("local_response_norm", rand(2, 5, 3, 2, 2), 2, alpha=0.1)
    call("local_response_norm", rand(2, 5), 2)
    call("local_response_norm", torch.empty(0, 3, 4), 2)
    call("normalize", x)
    call("normalize", x, 1.0, -1)
    call("normalize", x, p=2, dim=(1, 2))
    call("normalize", torch.zeros(2, 3), eps=0.5)
    call("normalize", rand(2, 3), out=torch.zeros(2, 3))


def pooling():
    one, two, three = normal(2, 3, 9), normal(2, 3, 6, 7), normal(1, 2, 5, 6, 4)
    for dims, x in (1, one), (2, two), (3, three):
        for name in (f"avg_pool{dims}d", f"max_pool{dims}d", f"max_pool{dims}d_with_indices"):
            call(name, x, 2)
            call(name, x[0], 2)
            call(name, x, 3, 2, 1)
            call(name, x, 3, stride=1, padding=1, ceil_mode=True)
            call(name, x.to(f64), 2)
        call(f"avg_pool{dims}d", x, 3, 2, 1, count_include_pad=False)
        call(f"avg_pool{dims}d", x, 2, padding=2)
        if dims > 1:
            call(f"avg_pool{dims}d", x, 2, divisor_override=3)
            call(f"avg_pool{dims}d", x, 2, divisor_override=0)
        call(f"max_pool{dims}d", x, 2, dilation=2, stride=1)
        call(f"max_pool{dims}d", x, 2, return_indices=True)
        call(f"max_pool{dims}d", x, 2, None, 0, 1, False, True)
        call(f"max_pool{dims}d", x, 2, return_indices=False)
        call(f"max_pool{dims}d", x, 2, padding=2)
        pooled, indices = getattr(F, f"max_pool{dims}d")(x, 2, return_indices=True)
        call(f"max_unpool{dims}d", pooled, indices, 2)
        call(f"max_unpool{dims}d", pooled, indices, 2, 2, 0, x.shape)
        call(f"max_unpool{dims}d", pooled, indices, 2, output_size=list(x.shape[2:]))
        call(f"max_unpool{dims}d", pooled, indices, 2, output_size=[40] * dims)
        call(f"max_unpool{dims}d", pooled, indices, 2, output_size=[4] * 5)
        for norm in (2, 1.0, 3.0, math.inf, -math.inf, 0):
            call(f"lp_pool{dims}d", x, norm, 2)
        call(f"lp_pool{dims}d", x, 2, 3, stride=1)
        call(f"lp_pool{dims}d", x, 2.0, 2, 2, True)
        for name in (f"adaptive_avg_pool{dims}d", f"adaptive_max_pool{dims}d", f"adaptive_max_pool{dims}d_with_indices"):
            call(name, x, 2)
            call(name, x[0], 3)
            call(name, x.to(f64), 1)
        call(f"adaptive_max_pool{dims}d", x, 2, True)
        call(f"adaptive_max_pool{dims}d", x, 2, return_indices=True)
    for name in ("adaptive_avg_pool2d", "adaptive_max_pool2d"):
        call(name, two, (None, 2))
        call(name, two, [3, None])
        call(name, rand(3), (2, 2))
    call("adaptive_avg_pool3d", three, (None, 2, None))
    samples = rand(2, 3, 2)
    call("fractional_max_pool2d", two, 2, 3, _random_samples=samples)
    call("fractional_max_pool2d", two, 2, (3, 2), None, True, samples)
    call("fractional_max_pool2d", two, 2, output_ratio=(0.5, 0.5), _random_samples=samples)
    call("fractional_max_pool2d", two, (2, 3), output_ratio=(0.5, 0.4), return_indices=True, _random_samples=samples)
    call("fractional_max_pool2d_with_indices", two, 2, 3, _random_samples=samples)
    call("fractional_max_pool2d", two, 2)
    call("fractional_max_pool3d", three, 2, 2, _random_samples=rand(1, 2, 3))
    call("fractional_max_pool3d", three, 2, output_ratio=0.5, _random_samples=rand(1, 2, 3))
    call("fractional_max_pool3d_with_indices", three, 2, (2, 3, 2), _random_samples=rand(1, 2, 3))
    call("fractional_max_pool3d", three, 2)


def dropouts():
    names = "dropout alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout".split()
    shapes = {"dropout1d": (2, 3, 4), "dropout2d": (2, 3, 4, 2), "dropout3d": (1, 2, 2, 2, 2)}
    for name in names:
        x = rand(*shapes.get(name, (2, 3)))
        call(name, x, 0.5, False)
        call(name, x, training=False)
        call(name, x, p=0.0, training=True)
        call(name, x, 1.0, True)
        call(name, x, 0.25, False, True)
        call(name, x, 1.5)
        call(name, x, -0.25)
    call("dropout1d", rand(2, 3), 0.5, False)
    call("dropout1d", rand(2), 0.5, False)
    call("dropout3d", rand(1, 2, 2, 2), 0.5, False, inplace=True)
    call("dropout2d", rand(3, 2, 2), 0.5, False)


def embeddings():
    table, tokens = normal(6, 4), ints(2, 3, high=6)
    call("embedding", tokens, table)
    call("embedding", tokens.int(), table.to(f64), padding_idx=-1)
    call("embedding", tokens, table, 2)
    call("embedding", tokens, table, padding_idx=6)
    call("embedding", tokens, table, padding_idx=-7)
    call("embedding", tokens, table.clone(), max_norm=1.0)
    call("embedding", tokens, table.clone(), None, 0.5, 1.0)
    call("embedding", torch.tensor([7]), table)
    for mode in ("sum", "mean", "max"):
        call("embedding_bag", tokens, table, mode=mode)
        call("embedding_bag", tokens.reshape(-1), table, torch.tensor([0, 2, 2]), mode=mode)
        call("embedding_bag", tokens.reshape(-1), table, torch.tensor([0, 4, 6]), mode=mode, include_last_offset=True)
        call("embedding_bag", tokens, table, mode=mode, padding_idx=int(tokens[0, 0]))
    call("embedding_bag", table, tokens)
    call("embedding_bag", tokens, table, mode="sum", per_sample_weights=rand(2, 3))
    call("embedding_bag", tokens, table, mode="mean", per_sample_weights=rand(2, 3))
    call("embedding_bag", tokens, table, mode="sum", per_sample_weights=rand(3, 2))
    call("embedding_bag", tokens, table.clone(), max_norm=1.0)
    call("embedding_bag", tokens, table, offsets=torch.tensor([0]))
    call("embedding_bag", tokens.reshape(-1), table)
    call("embedding_bag", tokens.reshape(-1), table, torch.tensor([[0]]))
    call("embedding_bag", tokens.reshape(1, 2, 3), table)
    call("embedding_bag", tokens, table[0])
    call("embedding_bag", tokens, table, mode="min")
    call("embedding_bag", tokens, table, mode="max", scale_grad_by_freq=True)
    call("embedding_bag", tokens, table, mode="max", sparse=True)
    call("one_hot", tokens)
    call("one_hot", torch.tensor([0, 2]), 4)
    call("one_hot", torch.tensor([0, 2]), num_classes=2)
    call("one_hot", torch.tensor([-1]))
    call("one_hot", torch.tensor([1.0]))


def losses():
    reductions = ("none", "mean", "sum")
    a, b = normal(3, 4), normal(3, 4)
    for name in "l1_loss mse_loss smooth_l1_loss huber_loss soft_margin_loss".split():
        target = torch.sign(b) if name == "soft_margin_loss" else b
        for reduction in reductions:
            call(name, a, target, reduction=reduction)
        call(name, a.to(f64), target.to(f64))
        call(name, a, target, reduction="max")
        if name != "huber_loss":
            call(name, a, target, size_average=False)
            call(name, a, target, reduce=False)
    for name in ("l1_loss", "mse_loss", "huber_loss"):
        for reduction in reductions:
            call(name, a, b, weight=rand(3, 4), reduction=reduction)
        call(name, a, b, weight=rand(4))
        call(name, a, b[0])
    call("smooth_l1_loss", a, b, beta=0.0)
    call("smooth_l1_loss", a, b, beta=0.5)
    call("smooth_l1_loss", a, b, beta=-1.0)
    call("huber_loss", a, b, "sum", 0.5)
    call("huber_loss", a, b, delta=0.0)
    counts = ints(3, 4, high=5).to(f32)
    for kwargs in ({}, {"log_input": False}, {"full": True}, {"eps": 0.1, "log_input": False}, {"reduction": "none"}, {"reduction": "x"}, {"size_average": False}):
        call("poisson_nll_loss", rand(3, 4), counts, **kwargs)
    for variance in (rand(3, 4), rand(3, 1), rand(3), 0.5, torch.zeros(3, 4)):
        call("gaussian_nll_loss", a, b, variance)
    for kwargs in ({"full": True}, {"eps": 0.5}, {"reduction": "none"}, {"reduction": "sum"}, {"reduction": "max"}):
        call("gaussian_nll_loss", a, b, rand(3, 4), **kwargs)
    call("gaussian_nll_loss", a, b, -rand(3, 4))
    call("gaussian_nll_loss", a, b, -1.0)
    call("gaussian_nll_loss", a, b, rand(2, 4))
    probabilities = torch.softmax(b, 1)
    for kwargs in ({}, {"reduction": "batchmean"}, {"reduction": "none"}, {"reduction": "sum"}, {"reduction": "max"}, {"size_average": False}):
        call("kl_div", a.log_softmax(1), probabilities, **kwargs)
    call("kl_div", a.log_softmax(1), probabilities.log(), log_target=True)
    classes, weight = ints(3, high=4), rand(4)
    for name, x in ("cross_entropy", a), ("nll_loss", a.log_softmax(1)):
        for reduction in reductions:
            call(name, x, classes, reduction=reduction)
            call(name, x, classes, weight, reduction=reduction, ignore_index=int(classes[0]))
        call(name, x[0], classes[0])
        call(name, x, classes, size_average=False)
        call(name, x, classes, reduction="x")
        call(name, rand(2, 3, 4), ints(2, 4, high=3))
        call(name, rand(2, 3, 4, 2), ints(2, 4, 2, high=3), reduction="none")
        call(name, x, torch.tensor([0, 1, 4]))
        call(name, x, classes[:2])
        call(name, x.to(f64), classes)
    for reduction in reductions:
        call("cross_entropy", a, classes, label_smoothing=0.25, reduction=reduction)
        call("cross_entropy", a, classes, weight, label_smoothing=0.25, reduction=reduction)
        call("cross_entropy", a, probabilities, weight, label_smoothing=0.1, reduction=reduction)
    call("cross_entropy", a, classes, label_smoothing=2.0)
    chances = torch.rand(3, 4, generator=generator)
    labels = (b > 0).to(f32)
    for reduction in reductions:
        call("binary_cross_entropy", chances, labels, reduction=reduction)
        call("binary_cross_entropy_with_logits", a, labels, reduction=reduction)
        call("multilabel_soft_margin_loss", a, labels, reduction=reduction)
        call("multilabel_margin_loss", a, torch.tensor([[3, 0, -1, 1], [1, -1, 0, 0], [2, 1, 3, 0]]), reduction=reduction)
        call("multi_margin_loss", a, classes, reduction=reduction)
        call("margin_ranking_loss", a, b, torch.sign(normal(3, 4)), 0.5, reduction=reduction)
        call("hinge_embedding_loss", a.abs(), torch.sign(b), reduction=reduction)
        call("cosine_embedding_loss", a, b, torch.tensor([1.0, -1.0, 1.0]), margin=0.1, reduction=reduction)
        call("triplet_margin_loss", a, b, normal(3, 4), reduction=reduction)
        call("triplet_margin_with_distance_loss", a, b, normal(3, 4), reduction=reduction)
    call("binary_cross_entropy", chances, labels, rand(4))
    call("binary_cross_entropy", chances, labels, reduce=False)
    call("binary_cross_entropy", chances, labels[0])
    call("binary_cross_entropy", a, labels)
    call("binary_cross_entropy", chances, labels + 1)
    call("binary_cross_entropy", torch.tensor([math.nan]), torch.tensor([0.5]))
    call("binary_cross_entropy_with_logits", a, labels, rand(4), pos_weight=rand(4))
    call("binary_cross_entropy_with_logits", a, labels[0])
    call("multilabel_soft_margin_loss", a, labels, rand(4))
    call("multilabel_soft_margin_loss", a, labels, reduction="x")
    call("multilabel_margin_loss", a, classes)
    call("multi_margin_loss", a, classes, 2, 0.5, rand(4))
    call("multi_margin_loss", a, classes, p=3)
    call("multi_margin_loss", a, classes, weight=rand(2, 2))
    call("margin_ranking_loss", a, b, torch.tensor([1.0]))
    call("hinge_embedding_loss", a, torch.sign(b), 0.5)
    call("triplet_margin_loss", a, b, normal(3, 4), 0.5, 1.0, 0.001, True)
    call("triplet_margin_loss", a, b, a, margin=0)
    call("triplet_margin_loss", a, b, a[0])
    call("triplet_margin_with_distance_loss", a, b, normal(3, 4), swap=True, margin=0.5)
    call("triplet_margin_with_distance_loss", a, b, a[0])
    call("triplet_margin_with_distance_loss", a, b, a, margin=-1.0)
    call("triplet_margin_with_distance_loss", a, b, a, reduction="max")
    log_probs = normal(6, 2, 4).log_softmax(2)
    targets, lengths = torch.tensor([[1, 2, 2], [3, 1, 0]]), (torch.tensor([6, 5]), torch.tensor([3, 2]))
    for reduction in reductions:
        call("ctc_loss", log_probs, targets, *lengths, reduction=reduction)
    call("ctc_loss", log_probs, torch.tensor([1, 2, 2, 3, 1]), *lengths)
    call("ctc_loss", log_probs, targets, [6, 5], [3, 2])
    call("ctc_loss", log_probs, targets, (2, 5), (3, 2), zero_infinity=True)
    call("ctc_loss", log_probs, targets, (2, 5), (3, 2), reduction="sum")
    call("ctc_loss", log_probs, targets, *lengths, blank=3)
    hidden, head = normal(5, 3), normal(4, 3)
    labels = ints(5, high=4)
    for kwargs in ({}, {"linear_bias": rand(4)}, {"weight": rand(4), "reduction": "sum"}, {"reduction": "none"}, {"label_smoothing": 0.2}, {"ignore_index": int(labels[0])}):
        call("linear_cross_entropy", hidden, head, labels, **kwargs)
    call("linear_cross_entropy", hidden[0], head, labels[0])
    call("linear_cross_entropy", hidden, normal(4, 2, 3), ints(5, 2, high=4), linear_bias=rand(4, 2))
    call("linear_cross_entropy", hidden, head, normal(5, 4).softmax(1))
    call("linear_cross_entropy", hidden, head, normal(5, 4).softmax(1), ignore_index=1)
    call("linear_cross_entropy", normal(1, 5, 3), head, labels)
    call("linear_cross_entropy", hidden, head[0], labels)
    call("linear_cross_entropy", hidden, normal(4, 2), labels)
    call("linear_cross_entropy", hidden, head, labels, linear_bias=rand(3))
    call("linear_cross_entropy", hidden[0], normal(4, 2, 3), labels)


def distances():
    a, b = normal(3, 4), normal(3, 4)
    call("cosine_similarity", a, b)
    call("cosine_similarity", a, b, 0, 0.1)
    call("cosine_similarity", a, b[0], dim=-1)
    call("pairwise_distance", a, b)
    call("pairwise_distance", a, b, 1.0, 0.1, True)
    call("pairwise_distance", a, b[0], p=math.inf)
    call("pdist", a)
    call("pdist", a, 1.0)
    call("pdist", a, p=0)
    call("pdist", a[0])


def images():
    x = normal(2, 3, 4, 5)
    for amounts, mode in [((1, 2), "constant"), ((1, 1, 2, 0), "reflect"), ((2, 1, 0, 1), "replicate"), ((1, 2, 3, 1), "circular")]:
        call("pad", x, amounts, mode)
        call("pad", x.to(f64), list(amounts), mode=mode)
    call("pad", x, (1, -1, 0, 2))
    call("pad", x, (1, 1, 1, 1, 1, 1), value=2.5)
    call("pad", torch.tensor([[1, 2]]), (1, 0), "constant", 7)
    call("pad", rand(2, 3, 4), (2, 1), "reflect")
    call("pad", rand(1, 2, 3, 3, 3), (1,) * 6, "replicate")
    call("pad", rand(1, 2, 3, 3, 3), (1,) * 6, "reflect")
    call("pad", x, (1, 2, 3))
    call("pad", x, (5, 5), "reflect")
    call("pad", x, (1, 1), "mirror")
    call("pad", x, (1, 1), "reflect", 2.0)
    call("pad", x, (-3, -3))
    spatial = {1: normal(1, 2, 6), 2: normal(1, 2, 5, 6), 3: normal(1, 2, 3, 4, 5)}
    modes = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}
    for dims, it in spatial.items():
        for mode in ["nearest", "nearest-exact", "area"] + modes[dims]:
            call("interpolate", it, 3, None, mode)
            call("interpolate", it, scale_factor=2, mode=mode)
            call("interpolate", it, scale_factor=(0.7,) * dims, mode=mode)
            call("interpolate", it, scale_factor=1.3, mode=mode, recompute_scale_factor=True)
            call("interpolate", it.to(f64), size=[7] * dims, mode=mode)
        for mode in modes[dims]:
            call("interpolate", it, 7, mode=mode, align_corners=True)
            call("interpolate", it, scale_factor=0.5, mode=mode, align_corners=False)
    for mode in ("bilinear", "bicubic"):
        call("interpolate", spatial[2], (2, 3), mode=mode, antialias=True)
        call("interpolate", spatial[2], scale_factor=0.6, mode=mode, antialias=True, align_corners=True)
    call("interpolate", spatial[2], (2, 3), mode="lanczos", antialias=True)
    call("interpolate", spatial[2].to(f64), 9, mode="lanczos", antialias=True)
    call("interpolate", spatial[2], scale_factor=(0.6, 1.5), mode="lanczos", antialias=True)
    call("interpolate", spatial[2], scale_factor=0.7, mode="lanczos", antialias=True, recompute_scale_factor=True)
    call("interpolate", spatial[2], (2, 3), mode="lanczos")
    call("interpolate", spatial[2], (2, 3), mode="lanczos", antialias=True, align_corners=True)
    for kwargs in (
        {"size": 2, "align_corners": True}, {"size": 2, "scale_factor": 2.0}, {}, {"size": (2,)}, {"scale_factor": (2.0,)},
        {"size": 3, "recompute_scale_factor": True}, {"size": 2, "antialias": True}, {"size": 2, "mode": "cubic"},
        {"size": 2, "mode": "linear"}, {"size": 2, "mode": "trilinear"},
    ):
        call("interpolate", spatial[2], **kwargs)
    call("interpolate", spatial[1], 2, mode="bilinear")
    call("interpolate", spatial[3], 2, mode="linear")
    call("interpolate", spatial[3], 2, mode="bicubic")
    call("interpolate", rand(2, 3), 2)
    call("upsample", spatial[2], scale_factor=2)
    call("upsample", spatial[2], (3, 4), mode="bilinear", align_corners=True)
    call("upsample_nearest", spatial[2], scale_factor=2)
    call("upsample_nearest", spatial[1], 4)
    call("upsample_bilinear", spatial[2], scale_factor=2)
    image, grid = normal(1, 2, 4, 5), rand(1, 3, 2, 2, low=-1.4, high=1.4)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (False, True):
                call("grid_sample", image, grid, mode, padding, corners)
    call("grid_sample", image, grid)
    call("grid_sample", normal(1, 2, 3, 3, 3), rand(1, 2, 2, 2, 3, low=-1.2, high=1.2), align_corners=True)
    call("grid_sample", image, grid, mode="cubic")
    call("grid_sample", image, grid, padding_mode="mirror")
    theta = normal(2, 2, 3)
    call("affine_grid", theta, (2, 3, 4, 5))
    call("affine_grid", theta, [2, 3, 4, 5], align_corners=True)
    call("affine_grid", normal(1, 3, 4), (1, 1, 2, 3, 2), False)
    call("affine_grid", theta.long(), (2, 3, 4, 5))
    call("affine_grid", theta, (2, 3, 4, 5, 6))
    call("affine_grid", normal(2, 3, 3), (2, 3, 4, 5))
    call("affine_grid", theta, (2, 3, 4))
    call("affine_grid", theta, (2, 3, 0, 5))
    call("unfold", x, 2)
    call("unfold", x, (2, 3), 1, (1, 0), stride=2)
    call("unfold", x[0], [3, 2], dilation=(1, 2))
    columns = F.unfold(x, (2, 3))
    call("fold", columns, (4, 5), (2, 3))
    call("fold", F.unfold(x, 2, padding=1, stride=2), (4, 5), 2, padding=1, stride=2)
    call("fold", columns, (4, 4), (2, 3))
    call("pixel_shuffle", rand(1, 8, 2, 3), 2)
    call("pixel_unshuffle", rand(1, 2, 4, 6), 2)
    call("pixel_shuffle", rand(1, 3, 2, 2), 2)
    call("channel_shuffle", rand(1, 6, 2, 2), 3)
    call("native_channel_shuffle", rand(1, 6, 2, 2), 2)


def scaled():
    a, b, one = normal(4, 4), normal(4, 4), torch.tensor(1.0)
    per_tensor, rows = F.ScalingType.TensorWise, F.ScalingType.RowWise
    trace("grouped_mm", a, b, offs=one)
    trace("scaled_mm", a, b, one, per_tensor, one, per_tensor)
    trace("scaled_mm", a, b, one, rows, one, rows, F.SwizzleType.NO_SWIZZLE, None, a, f32, use_fast_accum=True)
    trace("scaled_addmm", a, a, b, one, per_tensor, one, per_tensor, beta=0.5)
    trace("scaled_addmm_", a, a, b, one, per_tensor, one, per_tensor)
    trace("scaled_grouped_mm", a, b, one, rows, one, rows, offs=one)


def attention():
    q, k, v = normal(2, 2, 3, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 4)
    call("scaled_dot_product_attention", q, k, v)
    call("scaled_dot_product_attention", q, k, v, normal(3, 5))
    call("scaled_dot_product_attention", q, k, v, rand(2, 1, 3, 5) > 0.3)
    call("scaled_dot_product_attention", q, q, q, is_causal=True)
    call("scaled_dot_product_attention", q, k, v, None, 0.0, False, scale=0.5)
    call("scaled_dot_product_attention", normal(1, 4, 3, 2), normal(1, 2, 3, 2), normal(1, 2, 3, 2), enable_gqa=True)
    call("scaled_dot_product_attention", q.to(f64), k.to(f64), v.to(f64))
    E, heads, L, S, N = 4, 2, 3, 4, 2
    query, key, value = normal(L, N, E), normal(S, N, E), normal(S, N, E)
    weights = dict(in_w=normal(3 * E, E, scale=0.3), in_b=normal(3 * E, scale=0.3), out_w=normal(E, E, scale=0.3), out_b=normal(E))
    name = "multi_head_attention_forward"

    def attend(q, k, v, bias_k=None, bias_v=None, zero=False, in_w=weights["in_w"], in_b=weights["in_b"], heads=heads, dim=E, **kwargs):
        kwargs.setdefault("training", False)
        call(name, q, k, v, dim, heads, in_w, in_b, bias_k, bias_v, zero, 0.0, weights["out_w"], weights["out_b"], **kwargs)

    call(name, query, query, query, E, heads, weights["in_w"], weights["in_b"], None, None, False, 0.5, weights["out_w"], weights["out_b"], False)
    attend(query, query, query)
    attend(query, key, value)
    attend(query, key, key)
    attend(query[:, 0], key[:, 0], value[:, 0])
    attend(query, key, value, need_weights=False)
    attend(query[:, 0], key[:, 0], value[:, 0], need_weights=False)
    attend(query, key, value, average_attn_weights=False)
    attend(query, key, value, in_b=None)
    padding = torch.tensor([[False, True, False, False], [False, False, False, True]])
    attend(query, key, value, key_padding_mask=padding)
    attend(query, key, value, key_padding_mask=padding, need_weights=False)
    attend(query[:, 0], key[:, 0], value[:, 0], key_padding_mask=padding[0])
    causal = torch.triu(torch.ones(L, S, dtype=torch.bool), 1)
    attend(query, key, value, attn_mask=causal)
    attend(query, key, value, attn_mask=normal(L, S))
    attend(query, key, value, attn_mask=normal(N * heads, L, S))
    attend(query, key, value, attn_mask=normal(N * heads, L, S), need_weights=False)
    attend(query, key, value, attn_mask=causal, key_padding_mask=padding)
    attend(query, key, value, attn_mask=causal, key_padding_mask=padding, need_weights=False)
    square = torch.triu(torch.full((L, L), -math.inf), 1)
    attend(query, query, query, attn_mask=square, is_causal=True)
    attend(query, query, query, attn_mask=square, is_causal=True, need_weights=False)
    attend(query, key, value, bias_k=normal(1, 1, E), bias_v=normal(1, 1, E), attn_mask=causal, key_padding_mask=padding)
    attend(query, key, value, zero=True, attn_mask=causal, key_padding_mask=padding)
    attend(query, key, value, zero=True)
    attend(query, key, value, static_k=normal(N * heads, S, E // heads), static_v=normal(N * heads, S, E // heads))
    own = dict(in_w=None, use_separate_proj_weight=True, q_proj_weight=normal(E, E), k_proj_weight=normal(E, 3), v_proj_weight=normal(E, 2))
    attend(query, normal(S, N, 3), normal(S, N, 2), **own)
    attend(query, normal(S, N, 3), normal(S, N, 2), in_b=None, **own)
    attend(query, key, value, is_causal=True)
    attend(query, key, value, dim=6)
    attend(query, key, value, heads=3)
    attend(query, key, normal(S, N, 3))
    attend(query, key, value, in_w=None)
    attend(query, key, value, bias_k=normal(1, 1, E))
    attend(query, key, value, attn_mask=normal(S, L))
    attend(query, key, value, attn_mask=normal(3, L, S))
    attend(query, key, value, attn_mask=normal(S))
    attend(query, key, value, attn_mask=torch.ones(L, S, dtype=i64))
    attend(query, key, value, key_padding_mask=padding[0])
    attend(query, key[0], value[0])
    attend(query[0, 0], key, value)
    attend(query[:, 0], key[:, 0], value[:, 0], attn_mask=normal(3, L, S))
    attend(query, key, value, static_k=normal(3, S, 2))
    attend(query, normal(S, N, 3), normal(S, N, 2), **{**own, "q_proj_weight": None})
    attend(query, key, value, **own)


def random():
    x = normal(2, 3, 4)
    for name in "dropout alpha_dropout dropout1d feature_alpha_dropout".split():
        call(name, x, 0.4, True, seed=3)
        call(name, x.clone(), 0.4, True, True, seed=4)
        call(name, x.to(f64), training=True, seed=5)
    call("dropout1d", x[0], 0.4, True, seed=6)
    call("dropout2d", normal(2, 3, 2, 2), 0.4, True, seed=3)
    call("dropout2d", x, 0.4, True, seed=3)
    call("dropout3d", normal(2, 3, 1, 2, 2), 0.4, True, seed=3)
    call("dropout3d", normal(3, 1, 2, 2), 0.4, True, True, seed=3)
    call("rrelu", x, training=True, seed=3)
    call("rrelu", x.clone(), 0.1, 0.9, True, True, seed=4)
    call("rrelu_", x.clone(), training=True, seed=4)
    call("gumbel_softmax", x, seed=3)
    call("gumbel_softmax", x, 0.5, True, dim=1, seed=4)
    call("gumbel_softmax", x.to(f64), tau=2.0, seed=5)
    call("fractional_max_pool2d", normal(2, 2, 5, 6), 2, (3, 4), seed=3)
    call("fractional_max_pool2d", normal(2, 5, 6), 2, output_ratio=(0.5, 0.5), return_indices=True, seed=4)
    call("fractional_max_pool3d", normal(1, 2, 4, 5, 4), 2, 2, seed=3)
    q = normal(1, 2, 3, 4)
    call("scaled_dot_product_attention", q, q, q, None, 0.3, seed=3)
    w, b = normal(12, 4), normal(12)
    call("multi_head_attention_forward", x, x, x, 4, 2, w, b, None, None, False, 0.3, normal(4, 4), normal(4), seed=3)
    call("multi_head_attention_forward", x, x, x, 4, 2, w, b, None, None, False, 0.3, normal(4, 4), normal(4), need_weights=False, seed=3)


def signature(fn):
    """The parameter list without annotations; that of both functions where a flag chooses between two."""
    chosen = torch._jit_internal.boolean_dispatched.get(fn)
    try:
        found = inspect.signature(chosen["if_true"] if chosen else fn)
    except ValueError:
        return None
    bare = [it.replace(annotation=inspect.Parameter.empty) for it in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


# What the module imports, and checks that functions make for themselves.
NO_FUNCTIONS = {
    "Callable", "DType", "ScalingType", "SwizzleType", "Tensor", "assert_int_or_pair", "boolean_dispatch",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
}


if __name__ == "__main__":
    for family in (random, activations, linear_maps, normalisation, pooling, dropouts, embeddings, losses, distances, images, attention, scaled):
        family()
    out.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(case, separators=(",", ":")) for case in cases]
    (out / "cases.jsonl").write_text("\n".join(lines) + "\n")
    (out / "meta.json").write_text(json.dumps({"torch": torch.__version__.split("+")[0]}) + "\n")
    names = [it for it in dir(F) if it[0] != "_" and callable(getattr(F, it)) and it not in NO_FUNCTIONS]
    names = [it for it in names if getattr(getattr(F, it), "__module__", "") != "typing"]
    listed = {name: signature(getattr(F, name)) for name in names}
    (out / "signatures.json").write_text(json.dumps(listed, indent=1) + "\n")
    untested = sorted(set(names) - {case["fn"] for case in cases})
    print(len(cases), "cases,", sum("error" in case for case in cases), "errors; not called:", *untested)
