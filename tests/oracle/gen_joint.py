"""Training graphs: what torch.export.experimental._export_forward_backward makes of programs, and the digits.

Writes OUT/NAME: `model.pt2`, the program before; `joint.txt`, the joint graph; `numbers.safetensors`, the inputs
(`in0`…), the results without gradients (`out0`…), the gradients of parameters and of inputs (`grad.NAME`), buffers and
inputs after the call where it changes them (`buffer.NAME`, `input.NAME`), all by eager PyTorch; `meta.json`, the kinds
and targets of the results, or what PyTorch says where it refuses. OUT/digits: scikit-learn's digits, a network with
its first weights, and the accuracy that PyTorch trains it to. OUT/optim.json: steps of torch.optim.

usage: gen_joint.py OUT DIGITS_CSV_GZ   (torch 2.15; the file is sklearn/datasets/data/digits.csv.gz)
"""
import copy
import gzip
import json
import os
import sys
import warnings
import zlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file
from torch.export import Dim
from torch.export.experimental import _export_forward_backward

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
OUT = sys.argv[1]
CASES = {}


def case(**options):
    def note(make):
        CASES[make.__name__] = (make, options)
        return make

    return note


class Module(nn.Module):
    """A module of these parts with this forward."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.run = forward
        for name, part in parts.items():
            if isinstance(part, torch.Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *args):
        return self.run(self, *args)


def weight(*sizes):
    return nn.Parameter(torch.randn(*sizes))


@case()
def mlp():
    def forward(s, x, t):
        return F.cross_entropy(s.b(torch.tanh(s.a(x))), t)
    return Module(forward, a=nn.Linear(6, 8), b=nn.Linear(8, 3)), (torch.randn(5, 6), torch.tensor([0, 1, 2, 1, 0]))


@case()
def conv_bn_train():
    def forward(s, x):
        y = F.max_pool2d(F.relu(s.bn(s.conv(x))), 2)
        return (y * y).mean(), y.detach().sum()
    return Module(forward, conv=nn.Conv2d(2, 3, 3, padding=1), bn=nn.BatchNorm2d(3)), (torch.randn(2, 2, 6, 6),)


@case(dialect="ATEN")
def conv_bn_train_aten():
    def forward(s, x):
        return s.bn(s.conv(x)).pow(2).mean()
    return Module(forward, conv=nn.Conv1d(2, 3, 2), bn=nn.BatchNorm1d(3)), (torch.randn(4, 2, 5),)


@case()
def transformer_block():
    def forward(s, x):
        b, t, c = x.shape
        q, k, v = s.qkv(s.norm1(x)).split(c, dim=-1)
        q, k, v = (it.view(b, t, 2, c // 2).transpose(1, 2) for it in (q, k, v))
        x = x + s.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))
        x = x + s.down(F.gelu(s.up(s.norm2(x))))
        return x.square().mean()
    parts = dict(norm1=nn.LayerNorm(8), norm2=nn.LayerNorm(8), qkv=nn.Linear(8, 24), proj=nn.Linear(8, 8))
    return Module(forward, up=nn.Linear(8, 16), down=nn.Linear(16, 8), **parts), (torch.randn(2, 3, 8),)


@case()
def attention_by_hand():
    def forward(s, x):
        y = s.norm(x)
        y = torch.softmax(s.q(y) @ s.k(y).transpose(-2, -1) / 2.0, dim=-1) @ y
        return torch.logsumexp(y.flatten(1), dim=1).sum()
    return Module(forward, norm=nn.GroupNorm(2, 4), q=nn.Linear(4, 4), k=nn.Linear(4, 4)), (torch.randn(2, 4, 4),)


@case()
def embedding_cross_entropy():
    def forward(s, ids, t):
        return F.cross_entropy(s.head(s.table(ids).mean(1)), t, label_smoothing=0.1)
    module = Module(forward, table=nn.Embedding(7, 4, padding_idx=0), head=nn.Linear(4, 5))
    return module, (torch.tensor([[1, 2, 0], [3, 2, 6]]), torch.tensor([4, 2]))


@case()
def lstm_cell_unrolled():
    def forward(s, x):
        h, c = torch.zeros(2, 4), torch.zeros(2, 4)
        for step in x.unbind(1):
            h, c = s.cell(step, (h, c))
        return (h * c).sum()
    return Module(forward, cell=nn.LSTMCell(3, 4)), (torch.randn(2, 3, 3),)


@case()
def lstm_layer():
    def forward(s, x):
        return s.lstm(x)[0].pow(2).sum()
    return Module(forward, lstm=nn.LSTM(3, 4, batch_first=True, num_layers=2, bidirectional=True)), (torch.randn(2, 3, 3),)


@case()
def dropout_zero():
    def forward(s, x):
        return F.dropout(s.l(x), 0.0).sum()
    return Module(forward, l=nn.Linear(3, 2)), (torch.randn(4, 3),)


@case()
def dropout_all():
    def forward(s, x):
        y = s.l(x)
        return (F.dropout(y, 1.0) + y).square().sum()
    return Module(forward, l=nn.Linear(3, 2)), (torch.randn(4, 3),)


@case()
def tied_weights():
    def forward(s, x):
        return s.b(s.a(x).tanh()).sum()
    module = Module(forward, a=nn.Linear(3, 3), b=nn.Linear(3, 3))
    module.b.weight = module.a.weight
    return module, (torch.randn(2, 3),)


@case()
def broadcasting():
    def forward(s, x):
        y = x * s.row + s.column
        return torch.where(y > 0, y / s.one, s.row).sum() + s.one.squeeze()
    return Module(forward, row=weight(4), column=weight(3, 1), one=weight(1, 1, 1)), (torch.randn(2, 3, 4),)


@case()
def indexing():
    def forward(s, x, i):
        y = s.w[i] * s.w[1:3].mean() + x.gather(1, i[:, None].expand(-1, 4) % 3)
        y = torch.cat([y, s.w[:, ::2].repeat(1, 2)], dim=0)
        return (y.index_select(0, torch.tensor([0, 0, 3])) ** 3).sum() + y.max(1).values.sum() + s.w.topk(2).values.sum()
    return Module(forward, w=weight(5, 4)), (torch.randn(3, 4), torch.tensor([4, 0, 4]))


@case()
def no_grad_part():
    def forward(s, x):
        y = s.a(x)
        with torch.no_grad():
            z = y.exp() + s.a.bias.reshape(-1)
            with torch.enable_grad():
                w = y.sin()
        return (y * z + w).mean(), z
    return Module(forward, a=nn.Linear(3, 3)), (torch.randn(2, 3),)


@case()
def detached_part():
    def forward(s, x):
        y = s.a(x)
        return (y.detach() * y).mean(), y.argmax(1), y.detach()
    return Module(forward, a=nn.Linear(3, 3)), (torch.randn(2, 3),)


@case(index=1)
def input_gradients():
    def forward(s, x, y):
        z = (x * y).sigmoid()
        return z.detach(), (z * s.scale).sum(), z.detach() > 0.5
    return Module(forward, scale=weight(1)), (torch.randn(2, 3, requires_grad=True), torch.randn(2, 3))


@case()
def writes_in_place():
    def forward(s, x):
        y = s.a(x)
        y[:, 0] = 0.0
        y[:, 1].mul_(s.scale)
        z = torch.zeros(2, 3)
        z.add_(y).mul_(2.0)
        v = z.view(-1)
        v[2:4] += 1.0
        return (z.exp() * y).sum()
    return Module(forward, a=nn.Linear(3, 3), scale=weight(())), (torch.randn(2, 3),)


@case()
def writes_to_an_input():
    def forward(s, x, seen):
        y = s.a(x)
        seen.add_(y.detach())
        s.steps += 1
        return (y * y).sum() / (s.steps + 1)
    return Module(forward, a=nn.Linear(3, 3), steps=torch.tensor(1.0)), (torch.randn(2, 3), torch.zeros(2, 3))


@case()
def several_dtypes():
    def forward(s, x):
        y = s.wide * x + s.narrow.float() @ x
        return (y.to(torch.bfloat16).float() + s.wide.float()).sum() + s.frozen.sum()
    wide, narrow = nn.Parameter(torch.randn(3, 3, dtype=torch.float64)), nn.Parameter(torch.randn(3, 3).half())
    frozen = nn.Parameter(torch.randn(3), requires_grad=False)
    return Module(forward, wide=wide, narrow=narrow, frozen=frozen), (torch.randn(3, 3),)


class Dynamic(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x, t):
        y = self.norm(F.relu(self.a(x)))
        y = torch.cat([y, y.flip(0)], dim=1).view(x.shape[0], 2, 8).mean(1)
        return F.cross_entropy(self.b(y), t) + y.var(0).sum()


@case(dynamic=({0: Dim("batch", min=2, max=64)}, {0: Dim("batch", min=2, max=64)}))
def dynamic_batch():
    return Dynamic(), (torch.randn(5, 6), torch.tensor([0, 1, 2, 1, 0]))


@case()
def convolutions():
    def forward(s, x):
        y = F.avg_pool2d(F.silu(s.depthwise(x)), 2)
        y = F.interpolate(s.transposed(y), scale_factor=2, mode="bilinear")
        return F.mse_loss(F.adaptive_avg_pool2d(y, 2), torch.ones(1, 3, 2, 2))
    parts = dict(depthwise=nn.Conv2d(4, 4, 3, groups=4, padding=1), transposed=nn.ConvTranspose2d(4, 3, 2, stride=2))
    return Module(forward, **parts), (torch.randn(1, 4, 6, 6),)


@case()
def cond_closed():
    def forward(s, x):
        return torch.cond(x.sum() > 0, lambda x: (x @ s.w).sin(), lambda x: s.a(x).cos(), (x,)).sum()
    return Module(forward, w=weight(4, 4), a=nn.Linear(4, 4)), (torch.randn(4, 4),)


@case()
def cond_two_results():
    def forward(s, x):
        y = s.a(x)
        a, b = torch.cond(x.sum() > 0, lambda x, y: (x * y, y.exp()), lambda x, y: (x.sin(), x * 2 + s.w), (x, y))
        return (a * b).sum()
    return Module(forward, w=weight(4, 4), a=nn.Linear(4, 4)), (torch.randn(4, 4),)


@case()
def cond_unused_result():
    def forward(s, x):
        y = s.a(x)
        a, b = torch.cond(x.sum() > 0, lambda x, y: (x * y, y.exp()), lambda x, y: (x.sin(), x * 2 + s.w), (x, y))
        return a.sum(), b.detach()
    return Module(forward, w=weight(4, 4), a=nn.Linear(4, 4)), (torch.randn(4, 4),)


@case()
def cond_nested():
    def forward(s, x):
        def inner(y):
            return torch.cond(y.mean() > 0, lambda y: y * s.w, lambda y: y.tanh(), (y,))
        return torch.cond(x.sum() > 0, inner, lambda y: y.sin(), (s.a(x),)).sum()
    return Module(forward, w=weight(4, 4), a=nn.Linear(4, 4)), (torch.randn(4, 4).abs(),)


@case()
def cond_constant():
    def forward(s, x):
        return (torch.cond(x.sum() > 0, lambda y: y * 3, lambda y: torch.ones(4, 4), (s.a(x),)) * s.w).sum()
    return Module(forward, w=weight(4, 4), a=nn.Linear(4, 4)), (torch.randn(4, 4).abs(),)


@case()
def cond_no_grad_part():
    def forward(s, x):
        def frozen(y):
            with torch.no_grad():
                z = y.sin()
            return y * z
        return torch.cond(x.sum() > 0, frozen, lambda y: y * s.w, (s.a(x),)).sum()
    return Module(forward, w=weight(4, 4), a=nn.Linear(4, 4)), (torch.randn(4, 4).abs(),)


@case()
def cond_of_a_gradient():
    def forward(s, x):
        y = s.a(x)
        z = torch.cond(y.sum() > 0, lambda y: y + s.w, lambda y: y - torch.softmax(s.w, -1), (y,))
        return torch.cond(z.sum() > 0, lambda y, z: y * z, lambda y, z: (y / 2).exp() * z, (y, z)).sum()
    return Module(forward, w=weight(4, 4), a=nn.Linear(4, 4)), (torch.randn(4, 4),)


@case()
def cond_of_an_input():
    def forward(s, x, n):
        a = torch.cond(n.sum() > 3, lambda x, n: x * n, lambda x, n: x.exp(), (x, n))
        return a.sum(), n + 1
    return Module(forward), (torch.randn(3, requires_grad=True), torch.tensor([1, 2, 3]))


@case()
def map_rows():
    def forward(s, x):
        return torch._higher_order_ops.map(lambda row, w: (row @ w).sin(), s.a(x), s.w).sum()
    return Module(forward, w=weight(4, 4), a=nn.Linear(4, 4)), (torch.randn(3, 4),)


@case()
def map_of_an_input():
    def forward(s, x):
        a, b = torch._higher_order_ops.map(lambda row: (row * s.w, (row @ s.k).exp()), x)
        return a.sum() + b.mean()
    return Module(forward, w=weight(4), k=weight(4, 4)), (torch.randn(3, 4),)


@case()
def refused_two_outputs():
    def forward(s, x):
        y = s.a(x)
        return y.sum(), x, y
    return Module(forward, a=nn.Linear(3, 3)), (torch.randn(2, 3),)


@case()
def refused_vector():
    return Module(lambda s, x: s.a(x), a=nn.Linear(3, 3)), (torch.randn(2, 3),)


@case()
def refused_detached():
    return Module(lambda s, x: (s.a(x).sum().detach(), x), a=nn.Linear(3, 3)), (torch.randn(2, 3),)


@case(index=1)
def refused_integer():
    return Module(lambda s, x: (x.sum(), x.argmax()), a=nn.Linear(3, 3)), (torch.randn(2, 3),)


@case(index=5)
def refused_index():
    return Module(lambda s, x: (x.sum(), x), a=nn.Linear(3, 3)), (torch.randn(2, 3),)


@case()
def refused_unused():
    return Module(lambda s, x: s.a(x).sum(), a=nn.Linear(3, 3), b=nn.Linear(3, 3)), (torch.randn(2, 3),)


@case()
def refused_written_parameter():
    def forward(s, x):
        with torch.no_grad():
            s.w.mul_(0.5)
        return (x * s.w).sum()
    return Module(forward, w=weight(3)), (torch.randn(2, 3),)


def leaves(value):
    return [it for part in value for it in leaves(part)] if isinstance(value, (list, tuple)) else [value]


def record(name, make, options):
    torch.manual_seed(zlib.crc32(name.encode()))
    module, args = make()
    program = torch.export.export(module, args, dynamic_shapes=options.get("dynamic"))
    if options.get("dialect") == "ATEN":
        program = program.run_decompositions()
    folder = os.path.join(OUT, name)
    os.makedirs(folder, exist_ok=True)
    torch.export.save(program, os.path.join(folder, "model.pt2"))
    index = options.get("index", 0)
    n_written = sum(it.kind.name.endswith("MUTATION") for it in program.graph_signature.output_specs)
    meta = {"torch": torch.__version__, "joint_loss_index": index + n_written}
    try:
        joint = _export_forward_backward(copy.deepcopy(program), index + n_written)
    except (RuntimeError, AssertionError, IndexError) as problem:
        joint, meta["refused"] = None, str(problem).split("\n\nfw_metadata")[0].strip()
    if joint is None and name != "tied_weights":
        with open(os.path.join(folder, "meta.json"), "w") as file:
            json.dump(meta, file, indent=1)
        return
    numbers = {f"in{at}": it.detach().clone() for at, it in enumerate(args)}
    held = dict(module.named_parameters()) | dict(module.named_buffers())
    given = [it.detach().clone().requires_grad_(it.requires_grad) for it in args]
    before = {key: it.detach().clone() for key, it in module.named_buffers()}
    results = leaves(module(*given))
    results[index].backward()
    numbers |= {f"out{at}": it.detach() for at, it in enumerate(results)}
    nodes = {it.name: it for it in program.graph.nodes}
    parameters = dict(module.named_parameters(remove_duplicate=False))
    for spec in program.graph_signature.input_specs:
        # Of a tensor with two names, the graph reads one.
        if spec.kind.name == "PARAMETER" and nodes[spec.arg.name].users and parameters[spec.target].grad is not None:
            numbers[f"grad.{spec.target}"] = parameters[spec.target].grad
    numbers |= {f"buffer.{key}": held[key].detach() for key, it in before.items() if not torch.equal(it, held[key])}
    for spec, old, new in zip(program.graph_signature.user_inputs, args, given):
        if new.grad is not None:
            numbers[f"grad.{spec}"] = new.grad
        if not torch.equal(old, new):
            numbers[f"input.{spec}"] = new.detach()
    save_file({key: it.contiguous().clone() for key, it in numbers.items()}, os.path.join(folder, "numbers.safetensors"))
    if joint is not None:
        users = iter([it for it, value in zip(program.graph_signature.user_inputs, args) if value.requires_grad])
        # PyTorch names inputs by a name that the graph does not have (arg2_1).
        targets = [next(users) if it.kind.name == "GRADIENT_TO_USER_INPUT" else it.target for it in joint.graph_signature.output_specs]
        meta["outputs"] = [[it.kind.name, target] for it, target in zip(joint.graph_signature.output_specs, targets)]
        graphs = [(path, it) for path, it in joint.graph_module.named_modules() if path and hasattr(it, "graph")]
        if graphs:
            meta["graphs"] = {path: str(it.graph) for path, it in graphs}
        with open(os.path.join(folder, "joint.txt"), "w") as file:
            file.write(f"{joint.graph}\n")
    with open(os.path.join(folder, "meta.json"), "w") as file:
        json.dump(meta, file, indent=1)


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.head = nn.Linear(128, 10)

    def logits(self, images):
        return self.head(F.max_pool2d(F.relu(self.bn(self.conv(images))), 2).flatten(1))

    def forward(self, images, labels):
        logits = self.logits(images)
        return F.cross_entropy(logits, labels), logits.detach()


class Evaluated(nn.Module):
    """The same network for images alone, by its running statistics."""

    def __init__(self, trained):
        super().__init__()
        self.conv, self.bn, self.head = trained.conv, trained.bn, trained.head

    def forward(self, images):
        return Digits.logits(self, images)


OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
}
N_EPOCHS, BATCH = 4, 50


def digits(path):
    """A network, its first weights, and the accuracy to which PyTorch trains it from there in the same order of images."""
    folder = os.path.join(OUT, "digits")
    os.makedirs(folder, exist_ok=True)
    rows = torch.tensor([[int(float(it)) for it in line.split(b",")] for line in gzip.open(path)])
    images, labels = rows[:, :64].reshape(-1, 1, 8, 8).to(torch.uint8), rows[:, 64].to(torch.uint8)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(7))
    train, test = order[:1400], order[1400:]
    save_file({"images": images[train].contiguous(), "labels": labels[train].contiguous()}, os.path.join(folder, "train.safetensors"))
    # The test images are those of programs/_digits.
    scaled = images.float() / 16
    torch.manual_seed(7)
    first = Digits()
    batch = Dim("batch", min=2, max=1024)
    args = (scaled[train[:BATCH]], labels[train[:BATCH]].long())
    program = torch.export.export(first, args, dynamic_shapes=({0: batch}, {0: batch}))
    torch.export.save(program, os.path.join(folder, "model.pt2"))
    evaluated = Evaluated(copy.deepcopy(first).eval())
    torch.export.save(torch.export.export(evaluated, args[:1], dynamic_shapes=({0: batch},)), os.path.join(folder, "eval.pt2"))
    accuracy = {}
    for name, make in OPTIMIZERS.items():
        module = copy.deepcopy(first)
        optimizer = make(module.parameters())
        losses = []
        for _ in range(N_EPOCHS):
            for start in range(0, len(train), BATCH):
                part = train[start:start + BATCH]
                optimizer.zero_grad()
                loss, _ = module(scaled[part], labels[part].long())
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        module.eval()
        with torch.no_grad():
            right = module.logits(scaled[test]).argmax(1) == labels[test]
        accuracy[name] = {"accuracy": right.float().mean().item(), "losses": losses[:8] + losses[-1:]}
    with open(os.path.join(folder, "meta.json"), "w") as file:
        json.dump({"torch": torch.__version__, "epochs": N_EPOCHS, "batch": BATCH, "optimizers": accuracy}, file, indent=1)


STEPS = [
    ("SGD", dict(lr=0.1)),
    ("SGD", dict(lr=0.1, momentum=0.9)),
    ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.05)),
    ("SGD", dict(lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.01)),
    ("SGD", dict(lr=0.1, maximize=True)),
    ("SGD", dict(lr=0.1, momentum=0.7, nesterov=True, weight_decay=0.03, maximize=True)),
    ("Adam", dict()),
    ("Adam", dict(lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
    ("Adam", dict(lr=0.02, amsgrad=True)),
    ("Adam", dict(lr=0.02, maximize=True)),
    ("Adam", dict(lr=0.03, weight_decay=0.1, amsgrad=True, maximize=True)),
    ("AdamW", dict()),
    ("AdamW", dict(lr=0.05, betas=(0.8, 0.95), weight_decay=0.2, amsgrad=True)),
    ("AdamW", dict(lr=0.04, maximize=True)),
]


def listed_state(optimizer):
    """The state dict with lists for tensors."""
    found = optimizer.state_dict()
    return {
        "state": {key: {name: it.tolist() for name, it in state.items() if it is not None} for key, state in found["state"].items()},
        "param_groups": found["param_groups"],
    }


def steps():
    """Parameters before and after each of a few steps with these gradients; one parameter misses a gradient once. The state
    dict is that after two of them."""
    torch.manual_seed(3)
    start = [torch.randn(2, 3), torch.randn(4)]
    gradients = [[torch.randn(2, 3), torch.randn(4)] for _ in range(4)]
    gradients[1][1] = None
    cases = []
    for name, options in STEPS:
        parameters = [nn.Parameter(it.clone()) for it in start]
        optimizer = getattr(torch.optim, name)(parameters, **options)
        after = []
        for position, step in enumerate(gradients):
            if position == 2:
                state = listed_state(optimizer)
            for parameter, gradient in zip(parameters, step):
                parameter.grad = gradient
            optimizer.step()
            after.append([it.detach().tolist() for it in parameters])
        cases.append({"optimizer": name, "options": options, "after": after, "state": state})
    listed = [[None if it is None else it.tolist() for it in step] for step in gradients]
    refused = []
    for name, options in [("SGD", dict(lr=-1.0)), ("SGD", dict(momentum=-0.1)), ("SGD", dict(weight_decay=-0.1)),
                          ("SGD", dict(lr=0.1, nesterov=True)), ("Adam", dict(betas=(1.0, 0.9))), ("Adam", dict(betas=(0.9, 1.5))),
                          ("AdamW", dict(eps=-1.0)), ("Adam", dict(lr=-1.0)), ("Adam", dict(weight_decay=-1.0))]:
        try:
            getattr(torch.optim, name)([nn.Parameter(torch.ones(1))], **options)
        except ValueError as problem:
            refused.append({"optimizer": name, "options": options, "says": str(problem)})
    with open(os.path.join(OUT, "optim.json"), "w") as file:
        json.dump({"torch": torch.__version__, "start": [it.tolist() for it in start], "gradients": listed, "cases": cases, "refused": refused}, file)


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    for name, (make, options) in CASES.items():
        record(name, make, options)
    digits(sys.argv[2])
    steps()
