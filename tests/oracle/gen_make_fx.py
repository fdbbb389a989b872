"""What make_fx and torch.func answer: `fixtures/make-fx/programs.json`, lines by program.

`ts/test/export/makeFxPrograms.ts` has the same programs in TypeScript. A line is a graph, a value or the first line of an error.
Programs of `NUMBERS` tell what functions of torch.func give; their graphs hold formulas of C++, and are not recorded.

usage: gen_make_fx.py OUT.json (torch 2.13.0)
"""
import json
import math
import sys
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._decomp import get_decompositions
from torch._higher_order_ops.associative_scan import associative_scan
from torch.fx.experimental.proxy_tensor import (
    DecompositionInterpreter,
    get_isolated_graphmodule,
    get_proxy_mode,
    make_fx,
    selective_decompose,
)
from torch.func import functional_call, grad, grad_and_value, jacfwd, jacrev, jvp, vjp, vmap, hessian, linearize

warnings.filterwarnings("ignore")
torch.manual_seed(0)
CASES = {}
aten = torch.ops.aten


def case(fn):
    lines = []
    fn(lambda it: lines.append(text(it)))
    CASES[fn.__name__] = lines


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


def filled(module):
    at = 0
    for it in list(module.parameters()) + [b for b in module.buffers() if b.is_floating_point()]:
        it.data.copy_((torch.arange(it.numel()).reshape(it.shape) % 7 + at % 3 - 2) / 4)
        at += 1
    return module


def numbers(*sizes): return (torch.arange(math.prod(sizes)).reshape(sizes) % 5 - 2) / 2


def told(say, fn, *args, table=None, **options):
    gm = make_fx(fn, decomposition_table=table, **options)(*args)
    say(gm.graph)
    say(gm(*args))
    return gm


@case
def pointwise(say): told(say, lambda x: x.sin() + x.cos() * 2, numbers(2, 3))


@case
def two_inputs(say):
    def f(x, y): return torch.add(x, y, alpha=2), x - y

    told(say, f, numbers(2, 3), numbers(3))


@case
def linear(say):
    def f(x, weight, bias): return F.linear(x, weight, bias)

    told(say, f, numbers(2, 3), numbers(4, 3), numbers(4))


@case
def linear_of_three_dimensions(say):
    def f(x, weight): return F.linear(x, weight)

    told(say, f, numbers(2, 2, 3), numbers(4, 3))


@case
def matmul(say):
    def f(x, y): return torch.matmul(x, y)

    told(say, f, numbers(2, 3), numbers(3, 4))
    told(say, f, numbers(2, 2, 3), numbers(2, 3, 2))
    told(say, f, numbers(3), numbers(3))


@case
def pre_dispatch(say):
    def f(x, weight, bias): return F.linear(x, weight, bias).relu()

    told(say, f, numbers(2, 3), numbers(4, 3), numbers(4), pre_dispatch=True)


@case
def pre_dispatch_no_grad(say):
    def f(x):
        with torch.no_grad():
            y = x.sin()
        return y + x

    told(say, f, numbers(2), pre_dispatch=True)


@case
def in_place(say):
    def f(x):
        y = x.clone()
        y.add_(1)
        y.mul_(x)
        return y

    told(say, f, numbers(3))


@case
def writes_to_an_input(say):
    def f(x):
        x.add_(1)
        return x.sum()

    gm = make_fx(f)(numbers(3))
    say(gm.graph)


@case
def views(say):
    def f(x): return x.view(-1).reshape(3, 2).transpose(0, 1)[0].unsqueeze(0)

    told(say, f, numbers(2, 3))


@case
def indexing(say):
    def f(x, i): return x[:, 1:], x[..., None], x[i], x[1]

    told(say, f, numbers(3, 3), torch.tensor([2, 0]))


@case
def factories(say):
    def f(x): return x + torch.ones(3), torch.zeros_like(x), torch.arange(3), torch.full((2,), 0.5)

    told(say, f, numbers(3))


@case
def a_constant(say):
    def f(x): return x * torch.tensor([1.0, 2.0, 3.0])

    told(say, f, numbers(3))


@case
def a_captured_tensor(say):
    weight = numbers(3)

    def f(x): return x * weight + weight

    told(say, f, numbers(3))


@case
def a_captured_parameter(say):
    weight = nn.Parameter(numbers(3))

    def f(x): return (x * weight).sum() + weight

    told(say, f, numbers(3))


@case
def a_module(say):
    model = filled(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
    told(say, model, numbers(2, 3))


@case
def a_module_with_its_state(say):
    model = filled(nn.Linear(3, 2))

    def f(params, x): return functional_call(model, params, (x,))

    told(say, f, dict(model.named_parameters()), numbers(2, 3))


@case
def nested_inputs(say):
    def f(inputs, scale): return {"sum": inputs[0] + inputs[1]["b"], "scaled": [inputs[0] * scale]}

    told(say, f, [numbers(2), {"b": numbers(2)}], numbers(2))


@case
def a_number_among_the_inputs(say):
    def f(x, n): return x * n + n

    told(say, f, numbers(2), 3)


@case
def results_that_are_no_tensors(say):
    def f(x): return x + 1, 3, None, "text"

    told(say, f, numbers(2))


@case
def several_results(say):
    def f(x):
        values, indices = torch.max(x, 1)
        a, b = torch.split(x, 2, dim=1)
        return values, indices, a * b

    told(say, f, numbers(2, 4))


@case
def unused_calls(say):
    def f(x):
        x.sin()
        torch.ones(2)
        return x.cos()

    told(say, f, numbers(2))


@case
def a_table(say):
    def f(x): return torch.sigmoid(x) + 1

    def sigmoid(x): return torch.reciprocal(torch.add(torch.exp(torch.neg(x)), 1))

    told(say, f, numbers(3), table={aten.sigmoid.default: sigmoid})


@case
def a_table_of_composites(say):
    def f(x): return F.gelu(x), F.silu(x)

    def silu(x): return x * torch.sigmoid(x)

    told(say, f, numbers(3), table={aten.silu.default: silu})


@case
def a_table_that_declines(say):
    def addmm(bias, x, y, *, beta=1, alpha=1):
        if x.shape[0] > 2: return NotImplemented
        return torch.add(torch.mm(x, y), bias)

    def f(x, weight, bias): return F.linear(x, weight, bias)

    told(say, f, numbers(2, 3), numbers(4, 3), numbers(4), table={aten.addmm.default: addmm})
    told(say, f, numbers(3, 3), numbers(4, 3), numbers(4), table={aten.addmm.default: addmm})


@case
def softmax(say):
    def f(x): return F.softmax(x, -1), F.log_softmax(x, 0)

    told(say, f, numbers(2, 3))


@case
def losses(say):
    def f(x, y): return F.mse_loss(x, y), F.l1_loss(x, y), F.binary_cross_entropy_with_logits(x, y)

    told(say, f, numbers(2, 3), torch.ones(2, 3))


@case
def cross_entropy(say):
    def f(x, y): return F.cross_entropy(x, y)

    told(say, f, numbers(2, 3), torch.tensor([0, 2]))


@case
def norms(say):
    def f(x, w, b): return F.layer_norm(x, (4,), w, b), F.group_norm(x, 2, w, b)

    told(say, f, numbers(2, 4), numbers(4), numbers(4) + 1)


@case
def convolution(say):
    def f(x, w): return F.max_pool2d(F.conv2d(x, w, padding=1), 2)

    told(say, f, numbers(1, 1, 4, 4), numbers(2, 1, 3, 3))


@case
def dropout_in_eval(say):
    def f(x): return F.dropout(x, 0.5, training=False) + 1

    told(say, f, numbers(2))


@case
def embedding(say):
    def f(i, w): return F.embedding(i, w)

    told(say, f, torch.tensor([1, 0]), numbers(3, 2))


@case
def einsum(say):
    def f(x, y): return torch.einsum("ij,jk->ik", x, y)

    told(say, f, numbers(2, 3), numbers(3, 2))


@case
def fake(say):
    def f(x, weight): return F.linear(x, weight).relu()

    told(say, f, numbers(2, 3), numbers(4, 3), tracing_mode="fake")


@case
def fake_with_a_constant(say):
    def f(x): return x + torch.tensor([1.0, 2.0])

    told(say, f, numbers(2), tracing_mode="fake")


@case
def symbolic(say):
    def f(x): return x.view(x.shape[0] * x.shape[1])

    told(say, f, numbers(2, 3), tracing_mode="symbolic")


@case
def symbolic_of_equal_sizes(say):
    def f(x, y): return torch.mm(x, y).new_zeros(x.shape[0] + y.shape[1])

    told(say, f, numbers(3, 4), numbers(4, 3), tracing_mode="symbolic")


@case
def symbolic_decisions(say):
    def f(x):
        if x.shape[0] > 2: return x.sin()
        return x.cos()

    told(say, f, numbers(3), tracing_mode="symbolic")
    told(say, f, numbers(2), tracing_mode="symbolic")


@case
def symbolic_with_one(say):
    def f(x): return x.expand(x.shape[0], 3).sum(0)

    told(say, f, numbers(4, 1), tracing_mode="symbolic")


@case
def symbolic_linear(say):
    def f(x, weight, bias): return F.linear(x, weight, bias)

    told(say, f, numbers(2, 3), numbers(4, 3), numbers(4), tracing_mode="symbolic")


@case
def item_is_refused(say):
    def f(x): return x * x.sum().item()

    say(message(lambda: make_fx(f)(numbers(2))))


@case
def data_decides(say):
    def f(x): return x.sin() if x.sum() > 0 else x.cos()

    say(message(lambda: make_fx(f)(numbers(2))))
    say(message(lambda: make_fx(f, tracing_mode="fake")(numbers(2))))


@case
def item_of_a_constant(say):
    def f(x): return x * torch.tensor(2.0).item()

    told(say, f, numbers(2))


@case
def modes(say):
    say(message(lambda: make_fx(torch.sin, tracing_mode="other")(numbers(2))))


@case
def decomposing_a_graph(say):
    def f(x): return torch.sigmoid(x).cos()

    gm = torch.fx.symbolic_trace(f)

    def sigmoid(x): return torch.reciprocal(torch.add(torch.exp(torch.neg(x)), 1))

    again = make_fx(lambda x: torch.fx.Interpreter(gm).run(x), decomposition_table={aten.sigmoid.default: sigmoid})(numbers(2))
    say(again.graph)


@case
def decomposition_interpreter(say):
    def sigmoid(x): return torch.reciprocal(torch.add(torch.exp(torch.neg(x)), 1))

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(numbers(2))

        def forward(self, x): return torch.sigmoid(x * self.weight)

    gm = torch.fx.symbolic_trace(M())
    graph = torch.fx.Graph()
    say(DecompositionInterpreter(gm, graph, {aten.sigmoid.default: sigmoid}).run(numbers(2)))
    say(graph)


@case
def decompositions_of_a_region(say):
    from torch.fx.experimental.proxy_tensor import decompose

    def silu(x): return x * torch.sigmoid(x)

    def f(x):
        with decompose({aten.silu.default: silu}):
            y = F.silu(x)
        return F.silu(y)

    told(say, f, numbers(2))
    say(message(lambda: decompose({}).__enter__()))


@case
def a_graph_traced_again(say):
    gm = make_fx(lambda x: F.linear(x, x) + 1, pre_dispatch=True)(numbers(2, 2))
    say(gm.graph)
    told(say, gm, numbers(2, 2))


@case
def isolated(say):
    gm = get_isolated_graphmodule(lambda x, y: x.sin() + y, (numbers(2), numbers(2)), {})
    say(gm.graph)
    say(get_proxy_mode())


@case
def selectively(say):
    def f(x, weight): return F.linear(x, weight).relu()

    gm = make_fx(f, pre_dispatch=True)(numbers(2, 3), numbers(4, 3))
    say(gm.graph)
    said = selective_decompose(
        gm, numbers(2, 3), numbers(4, 3), decomposition={}, should_decompose=lambda node: True, trace_joint_graph=False
    )
    say(said.graph)
    said = selective_decompose(
        gm, numbers(2, 3), numbers(4, 3), decomposition={}, should_decompose=lambda node: "relu" in str(node.target),
        trace_joint_graph=False,
    )
    say(said.graph)


@case
def vmap_of_pointwise(say):
    told(say, lambda x: vmap(lambda it: it.sin() * 2 + 1)(x), numbers(3, 2))


@case
def vmap_of_two(say):
    told(say, lambda x, y: vmap(lambda a, b: a * b)(x, y), numbers(3, 2), numbers(3, 2))


@case
def vmap_of_one_of_two(say):
    told(say, lambda x, y: vmap(lambda a, b: a * b, in_dims=(0, None))(x, y), numbers(3, 2), numbers(2))


@case
def vmap_dims(say):
    told(say, lambda x: vmap(lambda a: a.exp(), in_dims=1, out_dims=1)(x), numbers(2, 3))


@case
def vmap_nested(say):
    told(say, lambda x: vmap(vmap(lambda a: a.cos() + 1))(x), numbers(2, 3))


# What is not recorded as a graph, since formulas are those of C++.


def square_sum(x): return (x * x).sum()


@case
def numbers_of_grad(say):
    x = numbers(4)
    for fn in [square_sum, lambda x: x.sin().sum(), lambda x: (x.exp() * x).sum(), lambda x: F.softmax(x, 0)[0], lambda x: x.prod(), lambda x: torch.logsumexp(x, 0)]:
        say(grad(fn)(x))
        say(make_fx(grad(fn))(x)(x))


@case
def numbers_of_grad_and_value(say):
    say(list(grad_and_value(square_sum)(numbers(3))))
    say(list(grad_and_value(lambda x: ((x * x).sum(), x.sin()), has_aux=True)(numbers(3))))
    say(list(grad(lambda x: ((x * x).sum(), x.sin()), has_aux=True)(numbers(3))))


@case
def numbers_of_argnums(say):
    f = lambda x, y: (x * y * y).sum()
    say(grad(f, argnums=1)(numbers(3), numbers(3) + 1))
    say(list(grad(f, argnums=(0, 1))(numbers(3), numbers(3) + 1)))


@case
def numbers_of_second_gradients(say):
    x = numbers(3)
    say(grad(lambda x: grad(lambda y: (y * y * y).sum())(x).sum())(x))
    say(grad(lambda x: grad(lambda y: (y * x * y).sum())(x).sum())(x))
    say(grad(grad(lambda x: x.sin()))(torch.tensor(0.5)))
    say(grad(grad(grad(lambda x: x * x * x)))(torch.tensor(0.5)))


@case
def numbers_of_vjp(say):
    out, fn = vjp(lambda x: x.sin(), numbers(3))
    say(out); say(list(fn(torch.ones(3)))); say(list(fn(numbers(3))))
    out, fn = vjp(lambda x, y: (x * y, x.sum()), numbers(3), numbers(3) + 1)
    say(list(out)); say(list(fn((torch.ones(3), torch.tensor(2.0)))))


@case
def numbers_of_jvp(say):
    say(list(jvp(lambda x: x.sin() * x, (numbers(3),), (torch.ones(3),))))
    say(list(jvp(lambda x, y: x * y, (numbers(3), numbers(3) + 1), (torch.ones(3), numbers(3)))))
    say(list(jvp(lambda x: F.softmax(x, 0), (numbers(3),), (numbers(3),))))
    say(list(jvp(lambda x, w: x @ w, (numbers(2, 3), numbers(3, 2)), (torch.ones(2, 3), numbers(3, 2)))))


@case
def numbers_of_jacobians(say):
    say(jacrev(lambda x: x.sin())(numbers(3)))
    say(jacfwd(lambda x: x.sin())(numbers(3)))
    say(jacrev(lambda x: x[:2] * x[2])(numbers(3)))
    say(jacfwd(lambda x: x[:2] * x[2])(numbers(3)))
    say(hessian(lambda x: (x * x * x).sum() + x[0] * x[1])(numbers(3)))


@case
def numbers_of_vmap(say):
    say(vmap(torch.dot)(numbers(3, 2), numbers(3, 2)))
    say(vmap(torch.mm)(numbers(3, 2, 2), numbers(3, 2, 2)))
    say(vmap(lambda x: x.sum())(numbers(3, 2)))
    say(vmap(lambda x, y: x @ y, in_dims=(0, None))(numbers(3, 2), numbers(2, 4)))
    say(vmap(lambda x: {"a": x * 2, "b": [x.sum()]})(numbers(2, 2)))
    say(vmap(lambda d: d["x"] + 1, in_dims=({"x": 1},))({"x": numbers(2, 3)}))
    say(vmap(lambda x: F.softmax(x, 0))(numbers(2, 3)))
    say(vmap(lambda x: x.sum(), chunk_size=2)(numbers(5, 2)))
    say(vmap(lambda x: x + 1, in_dims=-1, out_dims=-1)(numbers(2, 3)))


@case
def numbers_of_gradients_of_examples(say):
    model = filled(nn.Linear(2, 1))
    params = dict(model.named_parameters())

    def loss(params, x, y): return F.mse_loss(functional_call(model, params, (x,)), y)

    say(grad(loss)(params, numbers(3, 2), numbers(3, 1)))
    say(vmap(grad(loss), in_dims=(None, 0, 0))(params, numbers(3, 2), numbers(3, 1)))


@case
def refusals_of_vmap(say):
    say(message(lambda: vmap(lambda x: x, in_dims=(0, 0))(numbers(2))))
    say(message(lambda: vmap(lambda x, y: x + y)(numbers(2), numbers(3))))
    say(message(lambda: vmap(lambda x: x)(3)))
    say(message(lambda: vmap(lambda x: x, in_dims=None)(numbers(2))))
    say(message(lambda: vmap(lambda x: x, in_dims=2)(numbers(2))))
    say(message(lambda: vmap(lambda x: 3)(numbers(2))))
    say(message(lambda: vmap(lambda x: x, out_dims=(0, 0))(numbers(2))))
    say(message(lambda: vmap(lambda: 3)()))


@case
def refusals_of_grad(say):
    say(message(lambda: grad(lambda x: x * 2)(numbers(2))))
    say(message(lambda: grad(lambda x: 3.0)(numbers(2))))
    say(message(lambda: grad(square_sum, argnums=1)(numbers(2))))
    say(message(lambda: grad(square_sum)(3.0)))
    say(message(lambda: grad(lambda x: x.sum(), has_aux=True)(numbers(2))))
    say(message(lambda: jvp(square_sum, numbers(2), numbers(2))))
    say(message(lambda: jvp(square_sum, (numbers(2),), (numbers(2), numbers(2)))))
    say(message(lambda: jvp(square_sum, (numbers(2),), (numbers(3),))))
    say(message(lambda: vjp(lambda x: x.sin(), numbers(2))[1](numbers(3))))


def decayed(a, b): return a * 0.5 + b


def joined(a, b): return a[0] * b[0], a[1] * b[0] + b[1]


def scanned(*args, **kwargs): return associative_scan(*args, combine_mode="generic", **kwargs)


@case
def associative_scans(say):
    for n in (1, 2, 3, 5, 8): told(say, lambda x: scanned(decayed, x, 0), numbers(n, 2))


@case
def associative_scan_of_leaves(say):
    told(say, lambda x, y: scanned(joined, (x, y), 1, reverse=True), numbers(2, 3), numbers(2, 3) + 1)


@case
def numbers_of_associative_scans(say):
    def bits(x): return [x.view(torch.int32).sum(), x.view(torch.int32)[-1]]

    for n in (1, 2, 3, 5, 7, 8, 1000):
        x = torch.sin(torch.arange(n) % 97 * 0.7)
        x = torch.round(x * 1000) / 1000
        for reverse in (False, True): say(bits(scanned(torch.add, x, 0, reverse=reverse)))
        say([bits(it) for it in scanned(joined, (x, x * 3), -1)])
    say(scanned(torch.mm, numbers(5, 2, 2) + 1, 0))
    say(scanned(lambda a, b: {"x": a["x"] * b["x"]}, {"x": numbers(2, 3) + 2}, 1))


@case
def refusals_of_associative_scan(say):
    say(message(lambda: scanned(decayed, numbers(0, 2), 0)))
    say(message(lambda: scanned(decayed, (numbers(2, 2), numbers(2)), 1)))
    say(message(lambda: scanned(decayed, [], 0)))
    say(message(lambda: scanned(decayed, numbers(2), 0, reverse=2)))


with open(sys.argv[1], "w") as file:
    json.dump(CASES, file, indent=1)
    file.write("\n")
print(len(CASES), "programs")
