"""Records what torch.export makes of modules of every kind: graphs, signatures and call graphs.

    python tests/oracle/gen_export.py        (needs torch 2.13)

Writes tests/fixtures/export/cases.jsonl, and tests/fixtures/export/sizes.jsonl: the same modules where every size may be
dynamic (Dim.AUTO). ts/test/export/modules.ts has them in TypeScript, by the same names.
"""

import json
import re
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.export import Dim

OUT = Path(__file__).parent.parent / "fixtures" / "export"
CASES = {}


def case(*args, kwargs=None, train=True, name=None, **options):
    def register(make):
        CASES[name or make.__name__] = (make, args, kwargs or {}, train, options)
        return make

    return register


def zeros(*sizes, dtype=torch.float32):
    return torch.zeros(sizes, dtype=dtype)


def ints(*sizes):
    return torch.zeros(sizes, dtype=torch.int64)


class Function(nn.Module):
    """A module of a function, which its class is named after."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def function(*args, **options):
    def register(fn):
        case(*args, **options, name=fn.__name__)(lambda: Function(fn) if fn.__code__.co_argcount == 1 else Pair(fn))
        return fn

    return register


class Pair(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x, y)


@case(zeros(2, 3), [zeros(2, 3), zeros(3)], {"a": zeros(3), "b-c": (zeros(1),)})
class containers(nn.Module):
    def forward(self, x, ys, options):
        return {"sum": x + ys[0], "list": [ys[1] * 2, (options["a"], options["b-c"][0])], "none": None}


@case(zeros(2), 3, 0.5, True, "mean", None, kwargs={"scale": zeros(2), "offset": 2})
class constant_inputs(nn.Module):
    def forward(self, x, n, ratio, flag, mode, nothing, *, scale, offset):
        y = x * n + ratio if flag else x
        y = y.mean() if mode == "mean" else y
        return (y * scale + offset, n, mode)


@case(zeros(2), zeros(2), zeros(2))
class rest(nn.Module):
    def forward(self, x, *others):
        return x + others[0] * others[1]


@case(zeros(2), zeros(2))
class clashing_names(nn.Module):
    def __init__(self):
        super().__init__()
        self.mul = nn.Parameter(torch.ones(2))
        self.register_buffer("x", torch.ones(2))

    def forward(self, mul, p_mul):
        return mul * self.mul + p_mul * self.x


@case(zeros(2, 4))
class containers_of_modules(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4, bias=False)])
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Sequential(nn.Linear(4, 2), nn.Tanh())})
        self.scales = nn.ParameterList([torch.ones(4), torch.ones(4)])
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        for layer, scale in zip(self.layers, self.scales):
            x = layer(x).relu() * scale
        return self.heads["a"](x), self.heads["b"](x)


@case(zeros(2, 4))
class tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.seen.add_(1)
        return self.lin(x) + self.seen


@case(zeros(2, 4))
class called_twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.other = Block()

    def forward(self, x):
        return self.other(self.block(self.block(x)))


@case(zeros(2))
class assigned_buffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(2))

    def forward(self, x):
        self.state = self.state + x
        return self.state * 2


@case(zeros(2))
class constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Module()
        self.inner.table = torch.ones(2)

    def forward(self, x):
        one = torch.tensor(1.5)
        return x + self.inner.table + one, self.inner.table * torch.tensor([1, 2])


@case(zeros(2, 4))
class unused_values(nn.Module):
    def forward(self, x):
        x.sin()
        y = x.detach()
        z = x.detach() + 1
        torch.tensor([1.0])
        return z.cos()


@case(zeros(2, 4))
class returns_inputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x, self.w, x


for training in (True, False):
    mode = "train" if training else "eval"
    case(zeros(2, 4), train=training, name=f"dropout_{mode}")(lambda: nn.Sequential(nn.Dropout(0.3), nn.Linear(4, 4)))
    case(zeros(2, 3, 5, 5), train=training, name=f"norms_{mode}")(
        lambda: nn.Sequential(nn.BatchNorm2d(3), nn.GroupNorm(3, 3), nn.InstanceNorm2d(3, affine=True, track_running_stats=True))
    )
    case(zeros(2, 5, 8), train=training, name=f"encoder_layer_{mode}")(
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    )

case(zeros(5, 2, 4))(type("lstm", (), {"__new__": lambda cls: nn.LSTM(4, 3, 2)}))
case(zeros(2, 5, 4), (zeros(2, 2, 3), zeros(2, 2, 3)), name="lstm_with_state")(
    lambda: nn.LSTM(4, 3, bidirectional=True, batch_first=True)
)
case(zeros(5, 2, 4), name="gru")(lambda: nn.GRU(4, 3))
case(zeros(5, 2, 4), name="rnn")(lambda: nn.RNN(4, 3, nonlinearity="relu"))
case(zeros(2, 4), name="lstm_cell")(lambda: nn.LSTMCell(4, 3))
case(zeros(2, 4), zeros(2, 3), name="gru_cell")(lambda: nn.GRUCell(4, 3))
case(zeros(5, 2, 8), zeros(5, 2, 8), zeros(5, 2, 8), name="attention")(lambda: nn.MultiheadAttention(8, 2))
case(zeros(2, 5, 8), zeros(2, 5, 8), zeros(2, 5, 8), kwargs={"need_weights": False}, name="attention_without_weights")(
    lambda: nn.MultiheadAttention(8, 2, batch_first=True)
)
case(ints(2, 3), name="embedding")(lambda: nn.Embedding(10, 4, padding_idx=0))
case(ints(2, 3), name="embedding_bag")(lambda: nn.EmbeddingBag(10, 4, mode="sum"))
case(zeros(2, 4, 9), name="conv1d")(lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2, bias=False))
case(zeros(1, 2, 4, 4), name="conv_same")(lambda: nn.Conv2d(2, 2, 3, padding="same"))
case(zeros(1, 2, 4, 4), name="conv_circular")(lambda: nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular"))
case(zeros(1, 2, 4, 4), name="conv_transposed")(lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1))
case(zeros(1, 2, 8, 8), name="pools")(
    lambda: nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2, 1), nn.AdaptiveMaxPool2d(1), nn.Flatten())
)
case(zeros(2, 4), name="activations")(
    lambda: nn.Sequential(
        nn.SiLU(), nn.GELU("tanh"), nn.ELU(), nn.LeakyReLU(0.1), nn.Hardtanh(), nn.PReLU(), nn.Softplus(), nn.Mish(),
        nn.Hardswish(), nn.LogSigmoid(), nn.Softmax(-1), nn.ReLU6(), nn.SELU(), nn.Sigmoid(), nn.GLU(), nn.ReLU(inplace=True),
    )
)
case(zeros(3, 5), ints(3), name="cross_entropy")(lambda: nn.CrossEntropyLoss(label_smoothing=0.1))
case(zeros(3, 5), zeros(3, 5), name="mse")(lambda: nn.MSELoss())
case(zeros(3), zeros(3), name="bce")(lambda: nn.BCEWithLogitsLoss())
case(zeros(3), zeros(3), name="huber")(lambda: nn.SmoothL1Loss(reduction="sum"))
case(zeros(3, 5), zeros(3, 5), name="kl")(lambda: nn.KLDivLoss(reduction="batchmean"))


@function(zeros(2, 4))
def scalars(x):
    return x - 1, 1 - x, 2 / x, x / 2, x**2, 2**x, x // 2, x % 3, -x, abs(x), x * 0.5, x + True


@function(zeros(2, 4), zeros(2, 4))
def comparisons(x, y):
    return x < y, x >= 1, x == y, x != 0.5, (x > 0) & (y > 0), (x > 0) | (y > 0), ~(x > 0), torch.logical_xor(x, y), torch.isnan(x)


@function(zeros(2, 3, 4))
def views(x):
    parts = torch.stack([x[0], x[1]], dim=1)
    return (
        x.permute(2, 0, 1), x.transpose(0, -1), x.mT, parts, x.unsqueeze(1).expand(2, 5, 3, 4), x.squeeze(), x.narrow(1, 0, 2),
        x.unflatten(2, (2, 2)), x.flatten(1), x.reshape(6, -1), x.view(2, -1), x.unfold(2, 2, 1), x.movedim(0, 2),
        torch.cat((x, x), 1), x.contiguous(), x.transpose(0, 1).contiguous(), x.repeat(1, 2, 1), torch.flip(x, [0, 1]), x.roll(1, 0),
        x.diagonal(0, 1, 2), torch.atleast_1d(x), x.view_as(x), x.expand_as(x), x.swapaxes(0, 1), x.tile((2, 1)),
    )


@function(zeros(4, 6))
def parts(x):
    a, b = x.split([2, 4], 1)
    c, d, e = x.chunk(3, dim=1)
    rows = x.unbind()
    return a, b, c * d, e, rows[1], torch.tensor_split(x, 2)[0]


@function(zeros(4, 5), ints(3))
def indexing(x, i):
    return (
        x[0], x[-1], x[1:3], x[::2, 1:], x[..., 0], x[None], x[:, None, 2], x[i], x[:, i], x[[0, 1]], x[i, i], x[1:, i],
        x.index_select(1, i), x.gather(0, i.unsqueeze(0)),
    )


@function(zeros(4, 5), ints(3))
def assignments(x, i):
    y = x.clone()
    y[0] = 1.0
    y[:, 1] = x[:, 0]
    y[i] = 0.5
    y[1:3, 2:] += 1
    y.masked_fill_(y > 2, 0.0)
    y.index_add_(0, i, x[:3])
    y.zero_()
    y.copy_(x)
    z = torch.zeros_like(x)
    z.fill_(3).relu_()
    z.unsqueeze_(0)
    return y, z, z.add_(1).t_ if False else z


@function(zeros(2, 3, 4))
def reductions(x):
    values, indices = x.max(1)
    return (
        x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean(-1), x.var(1), x.std(), x.amax(1), values, indices, x.argmax(-1),
        x.prod(0), x.any(), x.all(2), x.norm(), x.logsumexp(1), x.cumsum(0), torch.topk(x, 2).indices, x.sort(descending=True)[0],
        x.median(), x.softmax(0), x.log_softmax(-1), torch.var_mean(x, 0)[1], x.sum(dtype=torch.float64), x.nansum(0), x.count_nonzero(),
    )


@function(zeros(2, 3, 4), zeros(2, 4, 3))
def products(x, y):
    return (
        x @ y, torch.bmm(x, y), torch.einsum("bij,bjk->bik", x, y), torch.baddbmm(torch.zeros(3), x, y), x[0].mm(y[0]),
        torch.addmm(x[0][:, :3], x[0], y[0], beta=0.5), torch.outer(x[0, 0], y[0, 0]), x[0, 0].dot(x[0, 1]), torch.tensordot(x[0], y[0], 1),
        F.linear(x, y[0].t()), F.bilinear(x[0], x[0], y[:, :, :1].expand(2, 4, 4)), torch.cdist(x, x), torch.matmul(x, y[0]),
    )


@function(zeros(2, 4))
def dtypes(x):
    return (
        x.to(torch.float64), x.float(), x.half(), x.long(), x.bool(), x.to(torch.float32), x.to("cpu"), x.type_as(x.double()),
        x.to(dtype=torch.int32, copy=True), x.int().float(), (x > 0).to(x.dtype),
    )


@function(zeros(2, 4))
def factories(x):
    return (
        torch.zeros(2, 3), torch.ones(3, dtype=torch.int64), torch.full((2,), 1.5), torch.arange(4), torch.arange(0, 1, 0.25), torch.eye(3),
        torch.linspace(0, 1, 5), torch.empty(2).fill_(1), torch.zeros_like(x), torch.full_like(x, 2), x.new_zeros(3), x.new_ones((2, 2)),
        torch.tril(torch.ones(3, 3)), torch.triu(torch.ones(3, 3), diagonal=1), x.new_full((2,), 3.0), torch.ones(x.shape[0], x.shape[1] * 2),
        torch.scalar_tensor(2.0), torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[0],
    )


@function(zeros(2, 4))
def randoms(x):
    return torch.rand(2), torch.randn(2, 3), torch.rand_like(x), torch.randint(0, 5, (2,)), torch.bernoulli(x), F.dropout(x, 0.5), torch.randperm(4), x.normal_()


@function(zeros(1, 2, 4, 4))
def pads(x):
    return (
        F.pad(x, (1, 2)), F.pad(x, (1, 1, 1, 1), "reflect"), F.pad(x, (1, 1, 2, 2), mode="replicate"), F.pad(x, (1, 1, 1, 1), mode="circular"),
        F.pad(x, (0, 1), value=2.0), F.pad(x, (-1, 0)),
    )


@function(zeros(1, 2, 4, 4))
def interpolations(x):
    return (
        F.interpolate(x, scale_factor=2), F.interpolate(x, size=(8, 6), mode="bilinear"), F.interpolate(x, size=8, mode="bicubic", align_corners=True),
        F.interpolate(x, scale_factor=0.5, mode="area"), F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2), F.interpolate(x, size=3, mode="nearest-exact"),
    )


@function(zeros(2, 4), zeros(2, 4))
def functions(x, y):
    return (
        torch.where(x > 0, x, y), torch.where(x > 0, 1.0, y), torch.clamp(x, 0, 1), x.clamp(min=0.5), torch.maximum(x, y), torch.lerp(x, y, 0.3),
        torch.addcmul(x, x, y, value=2), F.cosine_similarity(x, y), F.normalize(x), torch.atan2(x, y), x.sign(), torch.rsqrt(x), x.pow(y),
        F.one_hot(torch.zeros(3, dtype=torch.int64), 4), torch.cumprod(x, 1), F.layer_norm(x, (4,)), F.rms_norm(x, (4,)), x.exp().log1p(),
        torch.nan_to_num(x), torch.sigmoid(x), F.scaled_dot_product_attention(x[None], y[None], y[None], is_causal=True), torch.add(x, y, alpha=2),
    )


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.lin.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
        self.lin.register_forward_hook(lambda module, args, output: output + 1)
        self.register_forward_hook(lambda module, args, output: output.relu())

    def forward(self, x):
        return self.lin(x)


case(zeros(2, 4), name="hooks")(Hooked)


class PatchEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(3, 8, 4, stride=4)
        self.cls = nn.Parameter(torch.zeros(1, 1, 8))
        self.pos = nn.Parameter(torch.zeros(1, 5, 8))
        self.blocks = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True), nn.LayerNorm(8))

    def forward(self, x):
        x = self.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.blocks(x)[:, 0]


case(zeros(2, 3, 8, 8), train=False, name="vit")(PatchEmbedding)


class CausalAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(16, 8)
        self.wpe = nn.Embedding(8, 8)
        self.attn = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8), persistent=False)

    def forward(self, ids):
        b, t = ids.shape
        x = self.wte(ids) + self.wpe(torch.arange(0, t, dtype=torch.long))
        q, k, v = self.attn(x).split(8, dim=2)
        q, k, v = (it.view(b, t, 2, 4).transpose(1, 2) for it in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * 0.5
        att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")).softmax(-1)
        y = (att @ v).transpose(1, 2).contiguous().view(b, t, 8)
        return self.out(y) @ self.wte.weight.t()


case(ints(2, 5), train=False, name="gpt")(CausalAttention)


class Conditional(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("b", torch.ones(4))

    def forward(self, x, y):
        def on_true(it):
            return self.lin(it) + y, it.sin()

        def on_false(it):
            return it + self.b, it.cos()

        a, b = torch.cond(x.sum() > 0, on_true, on_false, (x,))
        return a * b


case(zeros(2, 4), zeros(2, 4), name="cond")(Conditional)


@function(zeros(2, 4))
def nested_cond(x):
    def inner(it):
        return torch.cond(it.max() > 1, lambda a: a.sin(), lambda a: a.tan(), (it,))

    return torch.cond(x.sum() > 0, inner, lambda a: a.cos(), (x,))


@function(zeros(3, 4), zeros(4))
def mapped(x, y):
    return torch._higher_order_ops.map(lambda row, other: row + other, x, y)


@function(zeros(4), zeros(3, 4))
def scanned(x, y):
    def step(carried, row):
        following = carried + row
        return following, following * 2

    return torch._higher_order_ops.scan(step, x, y)


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, i, x):
        return torch._higher_order_ops.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, self.lin(x)), (i, x))


case(ints(), zeros(4), name="while_loop")(Loop)


BATCH = Dim("batch", min=2, max=64)


@function(zeros(4, 4), dynamic_shapes=({0: BATCH},))
def dynamic_size(x):
    return x.sum() + x.shape[0], x * x.size(0)


@function(zeros(4, 4), dynamic_shapes=({0: BATCH},))
def dynamic_views(x):
    n = x.shape[0]
    return x.view(n, 2, 2).reshape(n * 2, 2), torch.zeros(n, 3), n, torch.arange(n), x.expand(3, n, 4), x.flatten()


@function(zeros(4, 4), zeros(4, 4), dynamic_shapes=({0: BATCH}, {0: BATCH}))
def dynamic_pair(x, y):
    return torch.cat([x, y]).sum(0) + (x @ y.t()).sum()


@function(zeros(4, 5), dynamic_shapes=({0: BATCH, 1: Dim("length", min=2, max=8)},))
def dynamic_tokens(x):
    n, t = x.shape
    return torch.arange(t), x[:, -1:], x.view(n * t), x.softmax(-1).mean(1)


@function(zeros(4, 5), dynamic_shapes=({0: Dim("batch", min=3, max=64), 1: Dim("length", min=3, max=8)},))
def dynamic_indices(x):
    n, t = x.shape
    return x[: n - 1, None, ..., 1:], x[..., t - 1], x[n - 1, : t - 1], torch.arange(80)[n:]


@function(zeros(4))
def item(x):
    n = x.sum().int().item()
    torch._check(n >= 2)
    torch._check(n <= 9)
    return torch.zeros(n) + n


@function(zeros(4, 3))
def picked(x):
    return x.nonzero() * 2, x[x > 0], torch.masked_select(x, x < 0)


@function(zeros(4))
def picked_and_checked(x):
    y = x.nonzero()
    torch._check(y.shape[0] >= 2)
    torch._check(y.shape[0] <= 3)
    return y.sum(0), y.shape[0]


@function(zeros(4, 3), dynamic_shapes=({0: Dim("a", min=2, max=7), 1: Dim("b", max=5)},))
def picked_dynamic(x):
    return x.nonzero(), torch.masked_select(x, x > 0)


case(zeros(2, 3, 8, 8), train=False, name="vit_dynamic", dynamic_shapes=({0: BATCH},))(PatchEmbedding)
case(ints(2, 5), train=False, name="gpt_dynamic", dynamic_shapes=({0: BATCH, 1: Dim("length", min=2, max=7)},))(CausalAttention)
case(zeros(5, 3, 4), name="lstm_dynamic", dynamic_shapes=({1: BATCH},))(lambda: nn.LSTM(4, 3))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 2, 1, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.inner = nn.Conv2d(4, 4, 3, 1, 1)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        x = F.max_pool2d(self.bn(self.conv(x)).relu(), 3, 2, 1)
        x = torch.relu_(self.inner(x) + x)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


case(zeros(2, 3, 16, 16), train=False, name="resnet_dynamic", dynamic_shapes=({0: BATCH},))(Residual)


def graphs_in(module):
    inner = [(name, it) for name, it in module.named_modules() if name and isinstance(it, torch.fx.GraphModule)]
    return {name: str(it.graph) for name, it in inner}


def spec_text(spec):
    return str(spec).replace("\n", "").replace("  ", "")


def ranges_of(ep):
    known = " ".join(str(node.meta.get("val")) for node in ep.graph.nodes)
    return {
        str(symbol): [str(range.lower), str(range.upper)]
        for symbol, range in ep.range_constraints.items()
        if re.search(rf"\b{symbol}\b", known)
    }


def every_size(it):
    if isinstance(it, torch.Tensor):
        return {dim: Dim.AUTO for dim, size in enumerate(it.shape) if size > 1} or None
    if isinstance(it, (tuple, list)):
        return type(it)(every_size(item) for item in it)
    if isinstance(it, dict):
        return {key: every_size(item) for key, item in it.items()}
    return None


def record_sizes(name):
    make, args, _, train, _ = CASES[name]
    sizes = tuple(every_size(it) for it in args)
    ep = torch.export.export(make().train(train), args, dynamic_shapes=sizes)
    return {"name": name, "graph": str(ep.graph), "ranges": ranges_of(ep)}


def record(name):
    make, args, kwargs, train, options = CASES[name]
    module = make().train(train)
    ep = torch.export.export(module, args, kwargs, **options)
    signature = ep.module_call_graph[0].signature
    return {
        "name": name,
        "graph": str(ep.graph),
        "graphs": graphs_in(ep.graph_module),
        "signature": str(ep.graph_signature),
        "in_spec": spec_text(signature.in_spec),
        "out_spec": spec_text(signature.out_spec),
        "modules": [it.fqn for it in ep.module_call_graph],
        "state": list(ep.state_dict),
        "ranges": ranges_of(ep),
        "constants": list(ep.constants),
    }


def main():
    assert torch.__version__.startswith("2.13"), torch.__version__
    # The corpus was recorded without the library, whose flag is an argument of the norms.
    torch.backends.cudnn.enabled = False
    OUT.mkdir(parents=True, exist_ok=True)
    # The arguments of `rest` are one of its forward.
    by_size = [name for name, (_, _, kwargs, _, options) in CASES.items() if not (options or kwargs) and name != "rest"]
    for file_name, names, make in [("cases", CASES, record), ("sizes", by_size, record_sizes)]:
        with (OUT / f"{file_name}.jsonl").open("w") as file:
            for name in names:
                file.write(json.dumps(make(name)) + "\n")
        print(len(names), file_name)


if __name__ == "__main__":
    main()
