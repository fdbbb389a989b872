"""Records what torch.export makes of modules whose call signatures are preserved, of contexts, and of `out=`.

    python tests/oracle/gen_export_calls.py        (torch 2.15)

Writes tests/fixtures/export/calls.jsonl. ts/test/export/calls.ts has the same modules in TypeScript, by the same names.
"""

import json

import torch
import torch.nn as nn

from gen_export import CASES, OUT, Function, Pair, case, function, record, spec_text, zeros

CASES.clear()
PRESERVED = {}


def preserving(*paths, **options):
    def register(make):
        PRESERVED[make.__name__] = paths
        return case(zeros(2, 4), preserve_module_call_signature=paths, **options)(make)

    return register


class Leaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, ys, *, other):
        h = self.fc(x + ys[0] * ys[1] + other)
        return {"a": h.sin(), "b": (h.cos(), x)}


@preserving("leaf")
class preserved_containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf, self.plain = Leaf(), nn.Linear(4, 4)

    def forward(self, x):
        y = self.leaf(x, [x + 1, x.sin()], other=x.cos())
        return self.plain(y["a"]) + y["b"][0], y["b"][1]


@preserving("leaf", "plain")
class preserved_twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf, self.plain = Leaf(), nn.Linear(4, 4)

    def forward(self, x):
        y = self.leaf(x, [x + 1, x.sin()], other=x.cos())
        z = self.leaf(self.plain(x), [x, x], other=x)
        return y["a"] + z["b"][0], y["b"][1], y["b"][0] + z["a"]


class Parts(nn.Module):
    def forward(self, x, n, flag, nothing):
        a, b = x.chunk(2, -1)
        return a * n, None, (b, 3)


class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = Parts()

    def forward(self, x):
        a, _, (b, n) = self.parts(x + 1, 2, True, None)
        return a * n + b


@preserving("around", "around.parts")
class preserved_nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.around = Around()

    def forward(self, x):
        return self.around(x) - 1, x.chunk(2, -1)[1]


@preserving("a", "b")
class preserved_aliases(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = self.a

    def forward(self, x):
        return self.b(self.a(x))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)
        x.mul_(2)
        return x + self.count


@preserving("counting")
class preserved_writes(nn.Module):
    def __init__(self):
        super().__init__()
        self.counting = Counting()

    def forward(self, x):
        y = x.clone()
        return self.counting(y), y


class Conditional(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda it: (it.sin(),), lambda it: (it.cos(),), (x,))[0]


@preserving("branch")
class preserved_branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = Conditional()

    def forward(self, x):
        return self.branch(x + 1) * 2


@preserving("leaf")
class preserved_hooks(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = nn.Linear(4, 4)
        self.leaf.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
        self.leaf.register_forward_hook(lambda module, args, output: output + 1)

    def forward(self, x):
        return self.leaf(x).relu()


@preserving("unused")
class preserved_unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(4, 4)

    def forward(self, x):
        return x + 1


@case(zeros(2, 4))
class no_grad(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        with torch.no_grad():
            z = y.sin()
            w = self.fc(z)
        return w + z


@case(zeros(2, 4))
class grad_nested(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            pass
        with torch.no_grad():
            a = x * 2
            with torch.enable_grad():
                b = a * 3
            c = b + a
        with torch.set_grad_enabled(True):
            d = c.sin()
        torch.set_grad_enabled(False)
        return d + x


@case(zeros(2, 4))
class grad_writes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean + torch.tensor([1.5, 2.5, 3.5, 4.5])


class Without(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    @torch.no_grad()
    def forward(self, x):
        return self.fc(x)


@case(zeros(2, 4))
class grad_in_module(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Without()

    def forward(self, x):
        return self.inner(x) + self.inner(x + 1)


@case(zeros(2, 4))
class autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.fc(x) + x
            y = y.softmax(-1)
        return y * 2


@case(zeros(2, 4))
class autocast_nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu"):
            y = x @ x.t()
            with torch.autocast("cpu", enabled=False):
                z = y.float() @ x
        with torch.no_grad():
            with torch.autocast("cpu", dtype=torch.float16):
                w = self.fc(x)
        return z, w, torch.cat([x, x])


@case(zeros(2, 4))
class autocast_composites(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))
        self.k = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x):
        with torch.autocast("cpu"):
            a = torch.einsum("bi,ij->bj", x, self.w)
            b = torch.linalg.multi_dot([x, self.w, self.w])
            c = torch.einsum("bi,bj->bij", x, x)
            d = torch.nn.functional.bilinear(x, x, self.k)
            e = torch.tensordot(x, self.w, dims=1)
            f = torch.nn.functional.cosine_similarity(a, b)
            g = torch.nn.functional.cross_entropy(a, x.argmax(1))
            h = torch.inner(x, self.w)
            i = torch.nn.functional.layer_norm(a, (4,))
            j = torch.cat([a, x])
        return a, b, c, d, e, f, g, h, i, j


@case(zeros(2, 4))
class autocast_within(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        with torch.autocast("cpu"):
            a = torch.einsum("bi,ij->bj", x, self.w)
            with torch.autocast("cpu", enabled=False):
                b = torch.einsum("bi,ij->bj", x, self.w)
                with torch.autocast("cpu", dtype=torch.float16):
                    c = torch.einsum("bi,ij->bj", b, self.w)
            with torch.autocast("cuda", enabled=False):
                d = torch.einsum("bi,ij->bj", b, self.w)
        with torch.autocast("cuda", enabled=False):
            e = torch.einsum("bi,ij->bj", x, self.w)
        return a, b, c, d, e


@function(zeros(2, 4), zeros(2, 4))
def out_arguments(x, y):
    a = torch.empty(2, 4)
    torch.add(x, y, out=a)
    b = torch.mul(a, 2, out=torch.empty(2, 4))
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
    torch.max(x, 1, out=(values, indices))
    return a, b, values, indices


def signature(entry):
    it = entry.signature
    return {
        "inputs": [str(arg) for arg in it.inputs],
        "outputs": [str(arg) for arg in it.outputs],
        "in_spec": spec_text(it.in_spec),
        "out_spec": spec_text(it.out_spec),
    }


def calls(name):
    make, args, kwargs, train, options = CASES[name]
    ep = torch.export.export(make().train(train), args, kwargs, **options)
    return {it.fqn: signature(it) for it in ep.module_call_graph if it.fqn and it.signature}


def dtypes(name):
    """What is known of the tensors, by the path of their graph and the name of their node."""
    make, args, kwargs, train, options = CASES[name]
    ep = torch.export.export(make().train(train), args, kwargs, **options)
    graphs = {path: it.graph for path, it in ep.graph_module.named_modules() if isinstance(it, torch.fx.GraphModule)}
    known = {path: {it.name: it.meta.get("val") for it in graph.nodes} for path, graph in graphs.items()}
    tensors = {path: {key: it for key, it in vals.items() if isinstance(it, torch.Tensor)} for path, vals in known.items()}
    return {path: {key: str(it.dtype)[6:] for key, it in vals.items()} for path, vals in tensors.items()}


def main():
    torch.backends.cudnn.enabled = False
    with (OUT / "calls.jsonl").open("w") as file:
        for name in CASES:
            torch.set_grad_enabled(True)
            it = {**record(name), "preserved": list(PRESERVED.get(name, ()))}
            torch.set_grad_enabled(True)
            file.write(json.dumps({**it, "calls": calls(name), "dtypes": dtypes(name)}) + "\n")
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
