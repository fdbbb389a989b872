"""What torch.export answers to programs after those of PyTorch's own tests: `fixtures/ported/export.json`, lines by case.

Cases are called as the tests that they follow (test/export/test_export.py); the programs are our own. `ts/test/ported/export.ts` has
the same ones in TypeScript. A line is a graph, a signature, ranges of sizes, what a program gives, or the first line of an error.

usage: gen_ported_export.py OUT.json (torch 2.13.0)
"""
import json
import math
import sys
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.export import Dim, export

warnings.filterwarnings("ignore")
torch.manual_seed(0)
CASES = {}


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
def ones(*sizes): return torch.ones(sizes)


def told(say, module, args, kwargs=None, **options):
    ep = export(module, args, kwargs, strict=False, **options)
    say(ep.graph); say(str(ep.graph_signature).strip())
    if ep.range_constraints: say(sorted(f"{it.lower}..{it.upper}" for it in ep.range_constraints.values()))
    say(ep.module()(*args, **(kwargs or {})))
    return ep


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        filled(self)

    def forward(self, x): return torch.relu(self.linear(x))


@case
def test_basic(say):
    class M(nn.Module):
        def forward(self, x, y): return x[0] + y

    told(say, M(), ([torch.ones(1, 3)], torch.ones(1, 3)))


@case
def test_simple_module(say):
    ep = told(say, Linear(), (numbers(2, 4),))
    say(list(ep.state_dict)); say([n for n, _ in ep.named_parameters()])


@case
def test_buffer_util(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.ones(2))
            self.register_buffer("dropped", torch.ones(2) * 2, persistent=False)

        def forward(self, x): return x + self.kept + self.dropped

    ep = told(say, M(), (ones(2),))
    say(list(ep.state_dict)); say([n for n, _ in ep.named_buffers()]); say(list(ep.constants))


@case
def test_buffer_mutation(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    ep = told(say, M(), (ones(1),))
    dec = ep.run_decompositions()
    say(dec.graph); say(str(dec.graph_signature).strip())
    m = ep.module(); m(ones(1)); say(m(ones(1)))


@case
def test_input_mutation(say):
    class M(nn.Module):
        def forward(self, x, y):
            x.add_(y)
            return x * 2

    ep = told(say, M(), (ones(2), ones(2)))
    say(ep.run_decompositions().graph)


@case
def test_tied_weights(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.b = nn.Linear(2, 2)
            self.b.weight = self.a.weight
            filled(self)

        def forward(self, x): return self.b(self.a(x))

    ep = told(say, M(), (numbers(1, 2),))
    say(list(ep.state_dict))


@case
def test_placeholder_naming_collisions(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.x = nn.Parameter(torch.ones(2))

        def forward(self, p_x, x): return p_x + self.x + x

    told(say, M(), (ones(2), ones(2)))

    class Call(nn.Module):
        def forward(self, add, mul): return torch.mul(torch.add(add, mul), mul)

    told(say, Call(), (ones(2), ones(2)))


@case
def test_placeholder_naming_order(say):
    class M(nn.Module):
        def forward(self, x, y, z): return x["a"] + y[0] + y[1] + z

    told(say, M(), ({"a": ones(2)}, (ones(2), ones(2)), ones(2)))


@case
def test_constant_output(say):
    class M(nn.Module):
        def forward(self, x): return x + 1, 3, None, "text", 2.5, True

    told(say, M(), (ones(2),))


@case
def test_nested_outputs(say):
    class M(nn.Module):
        def forward(self, x): return {"a": x + 1, "b": [x * 2, (x, x - 1)]}

    told(say, M(), (ones(2),))


@case
def test_none_input(say):
    class M(nn.Module):
        def forward(self, x, y): return x + 1 if y is None else x + y

    told(say, M(), (ones(2), None))


@case
def test_primitive_inputs(say):
    class M(nn.Module):
        def forward(self, x, n, f, b): return x * n + f if b else x

    ep = told(say, M(), (ones(2), 3, 0.5, True))
    say(message(lambda: ep.module()(ones(2), 4, 0.5, True)).split(",")[0])


@case
def test_kwargs(say):
    class M(nn.Module):
        def forward(self, x, *, scale, shift=None): return x * scale + (0 if shift is None else shift)

    ep = told(say, M(), (ones(2),), {"scale": ones(2) * 2, "shift": ones(2)})
    say(ep.module()(ones(2), shift=ones(2), scale=ones(2) * 3))


@case
def test_tensor_constant(say):
    held = torch.tensor([1.0, 2.0])

    class M(nn.Module):
        def forward(self, x): return x + held + torch.tensor([3.0, 4.0])

    ep = told(say, M(), (ones(2),))
    say(list(ep.constants))


@case
def test_lifted_attribute_constant(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.held = torch.tensor([1.0, 2.0])

        def forward(self, x): return x + self.held

    ep = told(say, M(), (ones(2),))
    say(list(ep.constants)); say(list(ep.state_dict))


@case
def test_dynamic_batch(say):
    batch = Dim("batch", min=2, max=16)
    ep = told(say, Linear(), (numbers(3, 4),), dynamic_shapes={"x": {0: batch}})
    m = ep.module()
    say(list(m(numbers(5, 4)).shape)); say(message(lambda: m(numbers(20, 4)))); say(message(lambda: m(numbers(3, 5))).split(",")[0])


@case
def test_dynamic_view(say):
    class M(nn.Module):
        def forward(self, x): return x.view(x.shape[0] * 2, -1).sum(1)

    told(say, M(), (numbers(3, 4),), dynamic_shapes={"x": {0: Dim("n")}})


@case
def test_dynamic_two_inputs(say):
    n = Dim("n")
    class M(nn.Module):
        def forward(self, x, y): return torch.cat([x, y]) + x.shape[0]

    ep = told(say, M(), (ones(3), ones(3)), dynamic_shapes=({0: n}, {0: n}))
    say(message(lambda: ep.module()(ones(3), ones(4))))


@case
def test_derived_dim(say):
    n = Dim("n", min=3, max=8)
    class M(nn.Module):
        def forward(self, x, y): return x + y[1:]

    ep = told(say, M(), (ones(4), ones(5)), dynamic_shapes=({0: n}, {0: n + 1}))
    say(message(lambda: ep.module()(ones(4), ones(6))))


@case
def test_dim_auto(say):
    class M(nn.Module):
        def forward(self, x, y): return x.reshape(-1) + y

    told(say, M(), (ones(3, 2), ones(6)), dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO}))


@case
def test_specialized_dim_error(say):
    class M(nn.Module):
        def forward(self, x): return x.reshape(3, 2)

    say(message(lambda: export(M(), (ones(3, 2),), strict=False, dynamic_shapes=({0: Dim("n")},))))


@case
def test_mismatched_dynamic_shapes(say):
    class M(nn.Module):
        def forward(self, x, y): return x[0] + y

    args = ([ones(2)], ones(2))
    for shapes in ({"x": [{0: Dim("n")}]}, ([{0: Dim("n")}],), {"x": {0: Dim("n")}, "y": None}, {"z": None}):
        say(message(lambda: export(M(), args, strict=False, dynamic_shapes=shapes)))


@case
def test_unbacked_item(say):
    class M(nn.Module):
        def forward(self, x):
            n = x.item()
            torch._check(n >= 2)
            torch._check(n < 10)
            return torch.ones(n)

    ep = told(say, M(), (torch.tensor(4),))
    say(message(lambda: ep.module()(torch.tensor(1))))


@case
def test_cond(say):
    class M(nn.Module):
        def forward(self, x): return torch.cond(x.sum() > 0, lambda it: it + 1, lambda it: it - 1, [x])

    ep = told(say, M(), (ones(2),))
    say(ep.module()(-ones(2)))
    for name, child in ep.graph_module.named_children(): say(f"{name}: {child.graph}")


@case
def test_multiple_returns(say):
    class M(nn.Module):
        def forward(self, x):
            values, indices = torch.max(x, 1)
            first, second = torch.split(x, 2, 1)
            return values, indices, first + second

    told(say, M(), (numbers(2, 4),))


@case
def test_inplace_functional(say):
    class M(nn.Module):
        def forward(self, x):
            y = x.clone()
            y.mul_(2).relu_()
            y[0] = 3.0
            return y

    ep = told(say, M(), (numbers(4),))
    say(ep.run_decompositions().graph)


@case
def test_layers(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
            filled(self)

        def forward(self, x): return self.net(x)

    m = M()
    m.net[1].running_var.fill_(1)
    told(say, m.eval(), (numbers(1, 1, 6, 6),))
    ep = export(m.train(), (numbers(2, 1, 6, 6),), strict=False)
    say(ep.graph); say(str(ep.graph_signature).strip())


@case
def test_embedding_and_norm(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.norm = nn.Embedding(5, 4), nn.LayerNorm(4)
            filled(self)

        def forward(self, ids): return F.gelu(self.norm(self.embed(ids)))

    ep = told(say, M(), (torch.tensor([0, 3, 1]),))
    say(ep.run_decompositions().graph)


@case
def test_attention(say):
    class M(nn.Module):
        def forward(self, q, k, v): return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    told(say, M(), (numbers(1, 1, 3, 2), numbers(1, 1, 3, 2), numbers(1, 1, 3, 2)))


@case
def test_no_grad(say):
    class M(nn.Module):
        def forward(self, x):
            with torch.no_grad(): y = x + 1
            return y * 2

    ep = told(say, M(), (ones(2),))
    for name, child in ep.graph_module.named_children(): say(f"{name}: {child.graph}")


@case
def test_shared_submodule(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.Linear(2, 2)
            self.again = self.act
            filled(self)

        def forward(self, x): return self.again(self.act(x))

    ep = told(say, M(), (numbers(1, 2),))
    say(list(ep.state_dict))


@case
def test_retrace(say):
    ep = export(Linear(), (numbers(2, 4),), strict=False)
    told(say, ep.module(), (numbers(2, 4),))


@case
def test_unused_inputs(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.unused = nn.Parameter(torch.ones(2))
            self.linear = nn.Linear(2, 2)

        def forward(self, x, y): return x + 1

    told(say, M(), (ones(2), ones(3)))


@case
def test_output_is_input(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(torch.ones(2))
            self.register_buffer("b", torch.ones(2))

        def forward(self, x): return x, self.p, self.b, x

    told(say, M(), (ones(2),))


@case
def test_empty_forward(say):
    class M(nn.Module):
        def forward(self): return torch.ones(2) + 1

    told(say, M(), ())


@case
def test_dtype_promotion(say):
    class M(nn.Module):
        def forward(self, x, y): return x + y, x / 2, y.to(torch.float16), x > 1

    told(say, M(), (torch.tensor([1, 2]), torch.tensor([0.5, 1.5])))


@case
def test_args_type_checked(say):
    m = export(Linear(), (numbers(2, 4),), strict=False).module()
    for args in ((), (numbers(2, 4), numbers(2, 4)), ([numbers(2, 4)],)): say(message(lambda: m(*args)).split(".")[0][:60])


@case
def test_python_assert(say):
    class M(nn.Module):
        def forward(self, x):
            assert x.shape[0] == 3
            torch._check(x.shape[1] > 1)
            return x + 1

    told(say, M(), (ones(3, 2),))


@case
def test_loop_unrolled(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
            filled(self)

        def forward(self, x):
            for layer in self.layers: x = torch.tanh(layer(x))
            return x

    told(say, M(), (numbers(1, 2),))


@case
def test_decompositions(say):
    class M(nn.Module):
        def forward(self, x): return F.softmax(x, -1), F.elu(x), F.silu(x), x.std(), F.log_softmax(x, 0)

    ep = told(say, M(), (numbers(2, 2),))
    say(ep.run_decompositions().graph); say(ep.run_decompositions({}).graph)


@case
def test_symbols(say):
    from torch.fx.experimental import symbolic_shapes as sym

    class Sized(nn.Module):
        def forward(self, x, y): return x.view(x.shape[0] * 2, -1) + 1, y * x.shape[0], y.sum()

    class Counted(nn.Module):
        def forward(self, x):
            n = x.item()
            torch._check(n >= 2)
            return torch.ones(n), torch.zeros(3)

    n = Dim("n")
    for module, args, shapes in ((Sized(), (ones(3, 4), ones(3)), ({0: n}, {0: n})), (Counted(), (torch.tensor(4),), None), (Linear(), (numbers(2, 4),), None)):
        graph = export(module, args, strict=False, dynamic_shapes=shapes).graph_module.graph
        for node in graph.nodes:
            val = node.meta.get("val")
            if val is None or isinstance(val, torch.SymBool): continue
            say([sorted(map(str, sym.free_symbols(val))), sym.has_free_symbols(val), sorted(map(str, sym.free_unbacked_symbols(val))), sym.has_free_unbacked_symbols(val), sym.is_symbol_binding_fx_node(node), sym.is_accessor_node(node)])
            if isinstance(val, torch.Tensor): say(sym.has_symbolic_sizes_strides(val))
            elif isinstance(val, torch.SymInt): say([sym.is_symbolic(val), sym.is_concrete_int(val)])
        say({k: v.name for k, v in sym.find_symbol_binding_fx_nodes(graph).items()})
        say(sym.fx_placeholder_targets(graph.owning_module)); say(len(sym.fx_placeholder_vals(graph.owning_module)))


json.dump(CASES, open(sys.argv[1], "w"), indent=1)
print(len(CASES), "cases", sum(map(len, CASES.values())), "lines")
