"""Records what torch.export.unflatten makes of programs.

usage: python tests/oracle/gen_unflattened.py

Makes tests/fixtures/unflattened/NAME/model.pt2 for the modules below, and writes tests/fixtures/unflattened/modules.json: of each of
them, and of each program in tests/fixtures/programs, the modules by their paths with their graphs, or the error.
"""
import contextlib, io, json, pathlib

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent / "fixtures"


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.outer = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Sequential(nn.Linear(4, 4), nn.Tanh())})

    def forward(self, x, y):
        h = self.inner(x)
        return self.outer["b"](self.outer["a"](h) + y), h


class Repeated(nn.Module):
    """One layer, called three times."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(self.fc(self.fc(x)).relu())


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, double):
        return self.fc(x) * 2 if double else self.fc(x)


class Different(nn.Module):
    """Two calls of one module that trace to different graphs."""

    def __init__(self):
        super().__init__()
        self.other = Other()

    def forward(self, x):
        return self.other(x, False) + self.other(x, True) + self.other(x, False)


class Aliased(nn.Module):
    """One module under two names."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.b = self.a
        self.c = nn.Linear(4, 4)
        self.c.weight = self.a[0].weight

    def forward(self, x):
        return self.a(x) + self.b(x + 1) + self.c(x)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("scratch", torch.ones(4), persistent=False)

    def forward(self, x):
        self.count.add_(1)
        return x * self.count + self.scratch


class Mutating(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Counter(), Counter()

    def forward(self, x):
        x.mul_(2)
        return self.second(self.first(x))


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(torch.rand(4)) for _ in range(3)])
        self.named = nn.ParameterDict({"p": nn.Parameter(torch.rand(4))})
        self.unused = nn.Linear(2, 2)

    def forward(self, x, unused):
        for it in self.parts:
            x = x * it
        return {"out": x + self.named["p"]}


class Constants(nn.Module):
    class Leaf(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.tensor([1.0, 2.0, 3.0, 4.0])

        def forward(self, x):
            return x * self.scale + torch.tensor(0.5)

    def __init__(self):
        super().__init__()
        self.leaf = self.Leaf()

    def forward(self, x):
        return self.leaf(x) - torch.tensor([1.0])


class Branch(nn.Module):
    class Leaf(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: self.fc(x), lambda x: x - 1, (x,))

    def __init__(self):
        super().__init__()
        self.leaf = self.Leaf()

    def forward(self, x):
        return self.leaf(x) * 2


class Several(nn.Module):
    """A module that gives several values, one of which is used far away."""

    class Leaf(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 8)

        def forward(self, x):
            a, b = self.fc(x).chunk(2, -1)
            return a, b

    class Deep(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.next = nn.Linear(4, 4) if depth == 0 else Several.Deep(depth - 1)
            self.depth = depth

        def forward(self, x, b):
            return self.next(x) + b if self.depth == 0 else self.next(x * 2, b)

    def __init__(self):
        super().__init__()
        self.leaf, self.deep = self.Leaf(), self.Deep(2)

    def forward(self, x):
        a, b = self.leaf(x)
        return self.deep(a, b), b


class Sized(nn.Module):
    """A symbolic size that several modules use."""

    class Leaf(nn.Module):
        def forward(self, x):
            return x.reshape(x.shape[0] * 2, -1) + x.shape[0]

    def __init__(self):
        super().__init__()
        self.a, self.b = self.Leaf(), self.Leaf()

    def forward(self, x):
        return self.a(x), self.b(x + x.shape[0])


class Nesting(nn.Module):
    """Called by keyword, with containers, twice with other values; gives a dict of what it got and of what it computed."""

    class Leaf(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, ys, scale=2.0, *, other=None):
            h = self.fc(x * scale + ys[0] * ys[1] + other)
            return {"a": h.sin(), "b": (h.cos(), x)}

    def __init__(self):
        super().__init__()
        self.leaf, self.plain = self.Leaf(), nn.Linear(4, 4)

    def forward(self, x):
        y = self.leaf(x, [x + 1, x.sin()], other=x.cos())
        z = self.leaf(self.plain(x), [x, x], other=x)
        return y["a"] + z["b"][0], y["b"][1], y["b"][0] + z["a"]


class Wrapped(nn.Module):
    """Preserved modules in a preserved one, one of which gets a value that it does not use."""

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, unused, flag):
            return self.fc(x), None, (unused, 3)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Wrapped.Inner()

        def forward(self, x):
            h, _, (unused, n) = self.inner(x + 1, x, True)
            return h * n + unused

    def __init__(self):
        super().__init__()
        self.outer = self.Outer()

    def forward(self, x):
        return self.outer(x) - 1


class Writing(nn.Module):
    """Preserved modules that write to buffers of theirs, and to what they get."""

    class Leaf(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count.add_(1)
            x.mul_(2)
            return x + self.count

    def __init__(self):
        super().__init__()
        self.leaf = self.Leaf()

    def forward(self, x):
        return self.leaf(x.clone())


PRESERVED = {
    "preserved_nesting": (Nesting, ["leaf"]),
    "preserved_both": (Nesting, ["leaf", "plain"]),
    "preserved_wrapped": (Wrapped, ["outer", "outer.inner"]),
    "preserved_repeated": (Repeated, ["fc"]),
    "preserved_different": (Different, ["other"]),
    "preserved_writing": (Writing, ["leaf"]),
    "preserved_branch": (Branch, ["leaf"]),
    "preserved_sized": (Sized, ["a"]),
}


def models():
    x = torch.arange(8.0).reshape(2, 4) / 8 - 0.3
    yield "nested", Nested(), (x, x + 1), None
    yield "repeated", Repeated(), (x,), None
    yield "different", Different(), (x,), None
    yield "aliased", Aliased(), (x,), None
    yield "mutating", Mutating(), (x,), None
    yield "listed", Listed(), (x, x), None
    yield "constants", Constants(), (x,), None
    yield "branch", Branch(), (x,), None
    yield "several", Several(), (x,), None
    yield "sized", Sized(), (x,), ({0: torch.export.Dim("n")},)
    for name, (make, _) in PRESERVED.items():
        yield name, make(), (x,), ({0: torch.export.Dim("n")},) if make is Sized else None


def modules_of(ep):
    with contextlib.redirect_stdout(io.StringIO()):
        unflattened = torch.export.unflatten(ep)
    described = []
    for path, module in unflattened.named_modules(remove_duplicate=False):
        graph = getattr(module, "graph", None)
        has_graph = isinstance(graph, torch.fx.Graph) and len(graph.nodes) > 0
        described.append([path, str(graph) if has_graph else None])
        # The calls of a preserved module that do different things; here each of them is a module of its own.
        for at, call in enumerate(getattr(module, "_call_modules", [])):
            described.append([f"{path}[{at}]", str(call.graph)])
    return described


def recorded(file):
    try:
        ep = torch.export.load(file)
    except Exception:
        return None
    try:
        return {"modules": modules_of(ep)}
    except Exception as problem:
        return {"error": {"type": type(problem).__name__, "message": str(problem)}}


def main():
    torch.manual_seed(0)
    out = ROOT / "unflattened"
    res = {}
    for name, model, args, shapes in models():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        _, preserved = PRESERVED.get(name, (None, ()))
        exported = torch.export.export(model, args, dynamic_shapes=shapes, preserve_module_call_signature=tuple(preserved))
        for suffix, ep in both(exported):
            file = folder / f"model{suffix}.pt2"
            torch.export.save(ep, file)
            res[f"unflattened/{name}/{file.name}"] = recorded(file)
    for file in sorted((ROOT / "programs").glob("*/model.pt2")):
        if (it := recorded(file)) is not None:
            res[str(file.relative_to(ROOT))] = it
    (out / "modules.json").write_text(json.dumps(res, indent=1) + "\n")
    failed = {name: it["error"] for name, it in res.items() if "error" in it}
    print(len(res), "programs,", failed)


def both(ep):
    yield "", ep
    try:
        yield "_core", ep.run_decompositions()
    except torch._export.verifier.SpecViolationError as problem:
        # PyTorch loses nodes that a preserved signature names.
        print("not decomposed:", problem)


main()
