"""Records what torch.fx's gradual types say of small graphs, and what Z3 says of their constraints.

usage: python tests/oracle/gen_types.py OUT      (needs torch 2.15, sympy and z3-solver)

OUT/check.jsonl: {name, modules, nodes, types | error, symbolic?}. `nodes` are {name, op, target, args[, type]} with
values as in gen_graph_cases.py; `types` are the annotations after type_check, by node; `symbolic` those after
infer_symbolic_types, where a dimension that is an expression is {"at": {variable: value}, "is": value}.
OUT/constraints.jsonl: {name, modules, nodes, generated, n_vars, transformed, result, queries}: the constraints as torch
prints them and the number of variables after each step, the verdict of Z3 on them, and verdicts with a further
constraint that the type of a node is the one given.
OUT/check_windows.jsonl, OUT/constraints_windows.jsonl: the same of convolutions and pools with groups, with modes of padding, and
with empty sizes.
OUT/conditions.jsonl: {name, …, node, condition, negation}: evaluate_conditional_with_constraints.
OUT/validator.jsonl: {symbols, source, target, result}: TranslationValidator on guards.
"""
import hashlib
import itertools
import json
import operator
import pathlib
import random
import re
import sys
import warnings

warnings.filterwarnings("ignore")
import sympy
import torch
import z3
from torch import nn
from torch.fx import Graph, GraphModule
from torch.fx.experimental.graph_gradual_typechecker import GraphTypeChecker
from torch.fx.experimental.migrate_gradual_types import constraint_generator
from torch.fx.experimental.migrate_gradual_types.constraint_generator import ConstraintGenerator
from torch.fx.experimental.migrate_gradual_types.transform_to_z3 import (
    evaluate_conditional_with_constraints,
    iterate_till_fixed_point,
    transform_to_z3,
)
from torch.fx.experimental.migrate_gradual_types.z3_types import D, tensor_type
from torch.fx.experimental.unify_refinements import infer_symbolic_types
from torch.fx.experimental.validator import TranslationValidator, ValidationException
from torch.fx.tensor_type import Dyn, TensorType

FUNCTIONS = {
    f"torch.{name}": getattr(torch, name)
    for name in ("add", "transpose", "reshape", "flatten", "bmm", "cumsum", "full", "arange", "ne", "ones", "zeros")
}
FUNCTIONS |= {f"operator.{name}": getattr(operator, name) for name in ("add", "mul", "getitem", "gt", "lt", "eq", "ne")}
FUNCTIONS |= {f"torch.nn.functional.{name}": getattr(torch.nn.functional, name) for name in
              ("gelu", "dropout", "softmax", "layer_norm", "embedding")}
FUNCTIONS["torch.nn.functional.linear"] = torch._C._nn.linear
FUNCTIONS["builtins.getattr"] = getattr


def text_of(constraint):
    """What torch prints, with the dimensions of types always as a list."""
    text = re.sub(r"TensorType\[\(([^()]*?),?\)\]", r"TensorType[[\1]]", repr(constraint))
    return re.sub(r"TensorType\[torch.Size\(\[([^()]*?)\]\)\]", r"TensorType[[\1]]", text)


def pair(it):
    return list(it) if isinstance(it, tuple) else [it, it]


def window(m):
    return {name: pair(getattr(m, attr)) for name, attr in
            (("kernelSize", "kernel_size"), ("stride", "stride"), ("padding", "padding"), ("dilation", "dilation"))}


def spec(m):
    name = type(m).__name__
    fields = {
        "Conv2d": lambda: {"inChannels": m.in_channels, "outChannels": m.out_channels, "window": window(m)},
        "MaxPool2d": lambda: {"window": window(m)},
        "BatchNorm2d": lambda: {"numFeatures": m.num_features},
        "AdaptiveAvgPool2d": lambda: {"outputSize": pair(m.output_size)},
        "Linear": lambda: {"inFeatures": m.in_features, "outFeatures": m.out_features},
        "LayerNorm": lambda: {"normalizedShape": list(m.normalized_shape)},
        "Embedding": lambda: {"embeddingDim": m.embedding_dim},
        "ReLU": dict, "Dropout": dict,
    }[name]()
    return {"class": name, **fields}


def encode(it):
    if isinstance(it, torch.fx.Node):
        return {"$n": it.name}
    if isinstance(it, tuple):
        return {"$t": [encode(x) for x in it]}
    if isinstance(it, list):
        return [encode(x) for x in it]
    if isinstance(it, slice):
        return {"$s": [encode(it.start), encode(it.stop), encode(it.step)]}
    if isinstance(it, float):
        return {"$f": repr(it)}
    return it


def type_text(ty):
    """The notation of this project: dimensions are always a tuple."""
    if isinstance(ty, TensorType):
        return f"TensorType[{tuple(ty.dims)}]"
    return "int" if ty is int else str(ty)


class Build:
    """A graph under construction: calls give nodes, modules are named after their class."""

    def __init__(self):
        self.graph, self.root = Graph(), nn.Module()

    def input(self, name, ty=Dyn):
        node = self.graph.placeholder(name)
        node.type = ty
        return node

    def module(self, m, x, ty=None):
        name = f"m{len(self.root._modules)}"
        self.root.add_module(name, m)
        return self.typed(self.graph.call_module(name, (x,)), ty)

    def fn(self, name, *args, ty=None, **kwargs):
        return self.typed(self.graph.call_function(FUNCTIONS[name], args, kwargs), ty)

    def method(self, name, *args):
        return self.graph.call_method(name, args)

    def param(self, *size):
        name = f"w{len(self.root._parameters)}"
        self.root.register_parameter(name, nn.Parameter(torch.zeros(size)))
        return self.graph.get_attr(name)

    def typed(self, node, ty):
        if ty is not None:
            node.type = ty
        return node

    def done(self, out):
        self.graph.output(out)
        return GraphModule(self.root, self.graph)


def describe(name, gm):
    names = {id(f): n for n, f in FUNCTIONS.items()}
    nodes = []
    for n in gm.graph.nodes:
        target = names[id(n.target)] if n.op == "call_function" else n.target
        node = {"name": n.name, "op": n.op, "target": target, "args": [encode(a) for a in n.args]}
        if n.kwargs:
            node["kwargs"] = {k: encode(v) for k, v in n.kwargs.items()}
        if n.type is not None:
            node["type"] = type_text(n.type)
        nodes.append(node)
    modules = {n: spec(m) for n, m in gm.named_children() if n.startswith("m")}
    params = {n: list(p.shape) for n, p in gm.named_parameters() if "." not in n}
    return {"name": name, "modules": modules, "params": params, "nodes": nodes}


def T(*dims):
    return TensorType(dims)


def random_type(rng, rank=None, sizes=(1, 2, 3, 4), dyn=0.3, whole=0.1):
    if rng.random() < whole:
        return Dyn
    rank = rank or rng.randint(1, 4)
    return TensorType(tuple(Dyn if rng.random() < dyn else rng.choice(sizes) for _ in range(rank)))


def image(rng, channels=(3, 4)):
    if rng.random() < 0.1:
        return random_type(rng)
    d = lambda *s: Dyn if rng.random() < 0.3 else rng.choice(s)
    return T(d(1, 2), d(*channels), d(8, 9, 16), d(8, 11, 16))


def conv(rng, i=3, o=4):
    return nn.Conv2d(i, o, rng.choice((1, 2, 3, (3, 2))), stride=rng.choice((1, 2)), padding=rng.choice((0, 1, (1, 0))),
                     dilation=rng.choice((1, 1, 2)))


def pool(rng):
    k = rng.choice((2, 3))
    return pairs(nn.MaxPool2d(k, stride=rng.choice((1, 2)), padding=rng.choice((0, 1)), dilation=rng.choice((1, 1, 2))))


def pairs(m):
    """The module with pairs for its numbers, as torch prints them."""
    for name in ("kernel_size", "stride", "padding", "dilation"):
        setattr(m, name, tuple(pair(getattr(m, name))))
    return m


# ---- graphs that the checker knows ------------------------------------------------------------------------------

def add(rng, b):
    x = b.input("x", random_type(rng))
    near = x.type if rng.random() < 0.5 and x.type != Dyn else random_type(rng)
    if near != Dyn and rng.random() < 0.7:
        near = TensorType(tuple(rng.choice((d, d, 1, Dyn)) for d in near.dims[rng.choice((0, 0, len(near.dims) - 1)):]))
    y = b.input("y", near)
    return b.fn(rng.choice(("torch.add", "operator.add")), x, y)


def add_int(rng, b):
    return b.fn("operator.add", b.input("x", random_type(rng, whole=0)), b.input("y", int))


def transpose(rng, b):
    x = b.input("x", random_type(rng))
    return b.fn("torch.transpose", x, rng.randint(0, 3), rng.randint(0, 3),
                ty=random_type(rng) if rng.random() < 0.2 else None)


def reshape(rng, b):
    x = b.input("x", random_type(rng, sizes=(1, 2, 3, 4, 6)))
    if x.type != Dyn and Dyn not in x.type.dims and rng.random() < 0.6:
        n = 1
        for d in x.type.dims:
            n *= d
        target = rng.choice(([n], [1, n], [-1], [n, -1], [-1, n], [1, -1, n]))
    else:
        target = [rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.5:
            target[rng.randrange(len(target))] = -1
    return b.fn("torch.reshape", x, target)


def flatten(rng, b):
    x = b.input("x", random_type(rng))
    # Without a start torch.fx takes 1, and the operator 0.
    args = rng.choice(((1,), (1,), (0,), (1, 2), (2,), (0, 1), (0, -1), (1, -2)))
    return b.fn("torch.flatten", x, *args, ty=random_type(rng) if rng.random() < 0.2 else None)


def one_module(rng, b):
    x = b.input("x", image(rng))
    m = rng.choice((conv(rng), nn.BatchNorm2d(4), nn.ReLU(), pool(rng), nn.AdaptiveAvgPool2d(rng.choice((4, (5, 7), (6, None)))),
                    nn.Linear(16, 5)))
    return b.module(m, x, ty=image(rng, (4,)) if rng.random() < 0.25 else None)


def chain(rng, b):
    x = b.input("x", image(rng))
    y = b.module(conv(rng), x)
    y = b.module(nn.BatchNorm2d(rng.choice((4, 4, 4, 5))), y)
    y = b.module(nn.ReLU(), y)
    if rng.random() < 0.5:
        y = b.module(pool(rng), y)
    if rng.random() < 0.5:
        y = b.fn("torch.add", y, b.module(nn.ReLU(), y))
    if rng.random() < 0.6:
        y = b.module(nn.AdaptiveAvgPool2d(2), y)
        y = b.fn("torch.flatten", y, 1)
        y = b.module(nn.Linear(rng.choice((16, 16, 15)), 10), y)
    return y


def residual(rng, b):
    x = b.input("x", image(rng, (4,)))
    y = b.module(nn.Conv2d(4, 4, 3, padding=1), x)
    y = b.module(nn.BatchNorm2d(4), y)
    return b.fn("operator.add", y, x)


def weight(rng, b):
    return b.fn("torch.add", b.param(rng.choice((1, 2)), 3), b.input("x", random_type(rng, sizes=(1, 2, 3))))


def two_outputs(rng, b):
    x = b.input("x", image(rng, (4,)))
    return (b.module(nn.ReLU(), x), [b.module(nn.BatchNorm2d(4), x)])


CHECKED = (add, add, add_int, transpose, reshape, reshape, flatten, flatten, one_module, one_module, chain, chain, residual,
           weight, two_outputs)


def static_reshape_differs(gm):
    """torch.fx takes a reshape of 2 elements to 4; this project does not."""
    for n in gm.graph.nodes:
        if n.target is torch.reshape and isinstance(n.args[0].type, TensorType):
            dims = n.args[0].type.dims
            if Dyn not in dims and -1 not in n.args[1]:
                if torch.Size(dims).numel() != torch.Size(n.args[1]).numel():
                    return True
    return False


def symbolic_text(ty):
    if isinstance(ty, TensorType):
        dims = []
        for d in ty.dims:
            if isinstance(d, sympy.Expr) and not d.is_Integer:
                at = {str(s): 40 + int(str(s)[1:]) for s in d.free_symbols}
                value = d.subs({s: at[str(s)] for s in d.free_symbols})
                dims.append(str(d) if d.is_Symbol else {"at": at, "is": int(value)})
            else:
                dims.append(str(d))
        return dims
    if isinstance(ty, (tuple, list)):
        return [symbolic_text(t) for t in ty]
    return str(ty)


def check_case(name, build):
    b = Build()
    gm = b.done(build(b))
    case = describe(name, gm)
    if static_reshape_differs(gm):
        case["differs"] = "a reshape of known sizes has as many elements as its input"
    try:
        GraphTypeChecker({}, gm).type_check()
    except (TypeError, RuntimeError, AttributeError) as e:
        return {**case, "error": str(e).splitlines()[0]}
    out = lambda ty: type_text(ty) if not isinstance(ty, (tuple, list)) else [out(t) for t in ty]
    types = {n.name: out(n.type) for n in gm.graph.nodes}
    if any(isinstance(m, torch.nn.AdaptiveAvgPool2d) and None in pair(m.output_size) for m in gm.modules()):
        case["differs"] = "a size that an adaptive pool leaves open is the one that goes in"
    elif any("-" in str(it) for it in types.values()):
        case["differs"] = "a window fits into what goes in"
    case["types"] = types
    try:
        infer_symbolic_types(gm)
        case["symbolic"] = {n.name: symbolic_text(n.type) for n in gm.graph.nodes if n.op != "output"}
    except Exception:  # torch's inference has no answer for types that it cannot broadcast
        pass
    return case


# ---- constraints ------------------------------------------------------------------------------------------------

def c_linear(rng, b):
    return b.module(nn.Linear(rng.choice((3, 4)), 5), b.input("x", random_type(rng)))


def c_layer_norm(rng, b):
    if rng.random() < 0.5:
        return b.module(nn.LayerNorm([rng.choice((3, 4))]), b.input("x", random_type(rng)))
    return b.fn("torch.nn.functional.layer_norm", b.input("x", random_type(rng)), (rng.choice((3, 4)),))


def c_embedding(rng, b):
    return b.module(nn.Embedding(10, 6), b.input("x", random_type(rng)))


def c_embedding_functional(rng, b):
    return b.fn("torch.nn.functional.embedding", b.input("x", random_type(rng)), b.param(10, 6))


def c_linear_functional(rng, b):
    return b.fn("torch.nn.functional.linear", b.input("x", random_type(rng)), b.param(5, 4))


def c_bmm(rng, b):
    return b.fn("torch.bmm", b.input("x", random_type(rng, 3)), b.input("y", random_type(rng, rng.choice((3, 3, 2)))))


def c_view(rng, b):
    x = b.input("x", random_type(rng, sizes=(2, 3, 4, 6)))
    target = [rng.choice((2, 3, 4, 6)) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.5:
        target[rng.randrange(len(target))] = -1
    return b.method(rng.choice(("view", "reshape")), x, *target)


def c_size_view(rng, b):
    x = b.input("x", random_type(rng, sizes=(2, 3, 4), rank=rng.choice((2, 3))))
    n = b.method("size", x, rng.choice((0, 1, -1)))
    return b.method("view", x, n, -1)


def c_getitem(rng, b):
    x = b.input("x", random_type(rng))
    size = b.method("size", x)
    d = b.fn("operator.getitem", size, rng.choice((0, 1, -1, 3)))
    d = b.fn(rng.choice(("operator.add", "operator.mul")), d, rng.choice((1, 2)))
    return b.fn("torch.full", (d, 3), 1)


def c_getitem_tensor(rng, b):
    x = b.input("x", random_type(rng))
    index = rng.choice(((None, slice(None)), (slice(None), None), (None, None, slice(None))))
    return b.fn("operator.getitem", x, index)


def c_transpose(rng, b):
    return b.method("transpose", b.input("x", random_type(rng)), rng.choice((0, 1, 2)), rng.choice((0, 1, -1)))


def c_expand(rng, b):
    return b.method("expand", b.input("x", random_type(rng)), *(rng.choice((1, 2, 3)) for _ in range(rng.randint(1, 4))))


def c_index_select(rng, b):
    return b.method("index_select", b.input("x", random_type(rng)), rng.choice((0, 1, 2)), b.input("i", random_type(rng, 1)))


def c_arange(rng, b):
    n = b.method("size", b.input("x", random_type(rng)), 0)
    return b.fn("torch.arange", n)


def c_cumsum(rng, b):
    return b.fn("torch.cumsum", b.input("x", random_type(rng)), rng.choice((0, 1, 2)))


def c_dim(rng, b):
    x = b.input("x", random_type(rng))
    d = b.method("dim", x)
    return b.fn("torch.full", (d, 2), 1)


def c_same(rng, b):
    x = b.input("x", random_type(rng))
    y = b.fn("torch.nn.functional.gelu", x)
    y = b.module(nn.Dropout(), y)
    y = b.method("to", y, "float")
    return b.method("type_as", y, b.input("y", random_type(rng)))


def c_mul(rng, b):
    x = b.input("x", random_type(rng))
    return b.fn("operator.mul", b.fn("operator.add", x, 2), b.method("masked_fill_", b.input("y", random_type(rng)), x))


def c_reshape_add(rng, b):
    x, y = b.input("x", random_type(rng, sizes=(2, 3, 4))), b.input("y", random_type(rng, sizes=(1, 2, 3)))
    return b.fn("torch.add", b.fn("torch.reshape", x, [2, rng.choice((3, -1))]), y)


def c_compare(rng, b):
    return b.fn(rng.choice(("operator.gt", "operator.lt", "operator.eq")), b.input("x", random_type(rng)),
                b.input("y", random_type(rng)))


def c_module(rng, b):
    x = b.input("x", image(rng))
    m = rng.choice((conv(rng), nn.BatchNorm2d(4), nn.ReLU(), pool(rng), nn.AdaptiveAvgPool2d((5, 7))))
    return b.module(m, x)


def c_chain(rng, b):
    x = b.input("x", image(rng))
    y = b.module(nn.ReLU(), b.module(nn.BatchNorm2d(4), b.module(conv(rng), x)))
    if rng.random() < 0.5:
        y = b.module(pool(rng), y)
    y = b.module(nn.AdaptiveAvgPool2d((2, 2)), y)
    return b.module(nn.Linear(rng.choice((16, 15)), 10), b.fn("torch.flatten", y, 1))


def c_flatten(rng, b):
    return b.fn("torch.flatten", b.input("x", random_type(rng)), *rng.choice(((1,), (1,), (0,), (1, 2), (2,))))


def c_residual(rng, b):
    x = b.input("x", image(rng, (4,)))
    y = b.module(nn.Conv2d(4, 4, 3, padding=rng.choice((0, 1))), x)
    return b.fn("operator.add", y, x)


CONSTRAINED = (add, c_linear, c_layer_norm, c_embedding, c_embedding_functional, c_linear_functional, c_bmm, c_view,
               c_size_view, c_getitem, c_getitem_tensor, c_transpose, c_expand, c_index_select, c_arange, c_cumsum, c_dim,
               c_same, c_mul, c_reshape_add, c_compare, c_module, c_module, c_chain, c_flatten, c_residual)


def verdict(*formulas):
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(*formulas)
    return str(solver.check())


def as_z3(dims):
    if dims is None:
        return tensor_type.Dyn(z3.Const("dyn", z3.DeclareSort("Dyn")))
    make = (tensor_type.tensor1, tensor_type.tensor2, tensor_type.tensor3, tensor_type.tensor4)[len(dims) - 1]
    return make(*(D(1, d) for d in dims))


def constraint_case(name, build, rng):
    b = Build()
    gm = b.done(build(b))
    case = describe(name, gm)
    generator = ConstraintGenerator(gm)
    try:
        constraints, n_vars = generator.generate_constraints(0)
    except (AssertionError, NotImplementedError, RuntimeError, KeyError) as e:
        return {**case, "error": type(e).__name__}
    case |= {"generated": text_of(constraints), "n_generated": n_vars}
    constraints, n_vars = iterate_till_fixed_point(constraints, n_vars)
    text = text_of(constraints)
    case |= {"n_transformed": n_vars, "transformed": hashlib.sha256(text.encode()).hexdigest()}
    if len(text) < 3000:
        case["transformed_text"] = text
    formula, _ = transform_to_z3(constraints, n_vars, {})
    case["result"] = verdict(formula)
    out = generator.symbol_dict.get(next(reversed(gm.graph.nodes)).args[0])
    queries = []
    if case["result"] == "sat" and isinstance(out, constraint_generator.TVar):
        var = z3.Const(out.tvar, tensor_type)
        solver = z3.Solver()
        solver.add(formula)
        solver.check()
        tries = [None] + [[rng.choice((1, 2, 3, 4, 5, 6, 7)) for _ in range(r)] for r in (1, 2, 3, 4)]
        found = solver.model().eval(var, model_completion=True)
        if found.num_args() and found.decl().name() != "Dyn":
            sizes = [found.arg(i).arg(1).as_long() for i in range(found.num_args())]
            if max(sizes) < 10_000 and min(sizes) >= 0:
                tries += [sizes, sizes[:-1] + [sizes[-1] + 1]]
        queries = [{"dims": dims, "result": verdict(formula, var == as_z3(dims))} for dims in tries]
    return {**case, "output": getattr(out, "tvar", None), "queries": queries}


def condition_case(name, rng):
    b = Build()
    x = b.input("x", random_type(rng, sizes=(1, 2, 3, 4)))
    if rng.random() < 0.5:
        d = b.method("size", x, rng.choice((0, 1, -1)))
    else:
        d = b.fn("operator.getitem", b.method("size", x), rng.choice((0, 1, -1)))
    if rng.random() < 0.5:
        d = b.fn("operator.add", d, rng.choice((1, 2)))
    node = b.fn(rng.choice(("operator.gt", "operator.lt", "operator.eq")), d, rng.choice((0, 1, 2, 3, 5)))
    gm = GraphModule(b.root, b.graph)
    condition, negation = evaluate_conditional_with_constraints(gm, b.graph, node)
    return {**describe(name, gm), "node": node.name, "condition": str(condition), "negation": str(negation)}


# ---- windows ----------------------------------------------------------------------------------------------------

def window_cases():
    """Layers with groups, modes of padding and empty sizes, and the type that goes in."""
    yield "groups", nn.Conv2d(4, 6, 3, groups=2), T(2, 4, 9, 9)
    yield "groups_of_channels", nn.Conv2d(4, 6, 3, groups=2), T(2, 2, 9, 9)
    yield "depthwise", nn.Conv2d(4, 4, 3, groups=4, padding=1), T(Dyn, 4, Dyn, 8)
    for mode in ("reflect", "circular", "replicate"):
        yield mode, nn.Conv2d(3, 4, 3, padding=1, padding_mode=mode), T(2, 3, 8, 9)
        yield f"{mode}_dyn", nn.Conv2d(3, 4, 3, padding=(2, 1), padding_mode=mode), T(Dyn, 3, 8, Dyn)
    yield "one_place", nn.Conv2d(3, 4, 3), T(2, 3, 3, 3)
    yield "no_place", nn.Conv2d(3, 4, 3), T(2, 3, 2, 3)
    yield "far_too_large", nn.Conv2d(3, 4, 5), T(2, 3, 2, 8)
    yield "no_place_in_steps", nn.Conv2d(3, 4, 3, stride=4), T(2, 3, 2, 8)
    yield "pool_no_place", pairs(nn.MaxPool2d(3)), T(2, 3, 2, 8)
    yield "pool_no_place_in_steps", pairs(nn.MaxPool2d(4, stride=1)), T(2, 3, 3, 8)
    yield "no_images", nn.Conv2d(3, 4, 3, padding=1), T(0, 3, 8, 8)
    yield "no_rows", nn.Conv2d(3, 4, 3, padding=1), T(1, 3, 0, 8)
    yield "padded_rows", nn.Conv2d(3, 4, 3, padding=2), T(1, 3, 0, 8)
    yield "pool_no_images", pairs(nn.MaxPool2d(2)), T(0, 3, 4, 8)
    yield "pool_no_rows", pairs(nn.MaxPool2d(2)), T(1, 3, 0, 8)
    yield "norm_no_rows", nn.BatchNorm2d(4), T(1, 4, 0, 8)
    yield "adaptive_to_none", nn.AdaptiveAvgPool2d((0, 2)), T(1, 4, 3, 8)


def fits(m, ty):
    """Whether the window of a layer fits into each size that is known."""
    if not hasattr(m, "kernel_size"):
        return True
    sides = zip(ty.dims[2:], pair(m.kernel_size), pair(m.padding), pair(m.dilation))
    return all(size == Dyn or size + 2 * pad > dilation * (kernel - 1) for size, kernel, pad, dilation in sides)


def window_check(name, m, ty):
    case = check_case(name, lambda b: b.module(m, b.input("x", ty)))
    if not fits(m, ty) and "types" in case:
        case["differs"] = "a window fits into what goes in"
    case.pop("symbolic", None)
    return case


# ---- guards -----------------------------------------------------------------------------------------------------

def guard_cases(rng):
    relation = ("<", "<=", ">", ">=", "==", "!=")

    def term():
        a, c = rng.choice(("s0", "s1", "s2")), rng.randint(1, 6)
        return rng.choice((a, f"{a} + {c}", f"{c}*{a}", f"({a}//{c})", f"Mod({a}, {c})", f"{a}*{rng.choice(('s0', 's1'))}",
                           f"{a} - {rng.choice(('s1', 's2'))}", f"Max({a}, {c})", f"Min({a}, {c})"))

    def guard():
        return f"{term()} {rng.choice(relation)} {rng.choice((term(), str(rng.randint(0, 24))))}"

    fixed = [
        (["Mod(s0, 2) == 0"], ["s0 == 2*s1"]), (["Mod(s0, 2) == 0"], ["s0 == 2*s1 + 1"]),
        (["s0 < 20"], ["s0 <= s1", "s1 < 20"]), (["s0 < 19"], ["s0 <= s1", "s1 < 20"]),
        (["(s0//2) >= 2"], ["s0 >= 4"]), (["(s0//2) >= 3"], ["s0 >= 5"]),
        (["s0*s1 >= 4"], ["s0 >= 2", "s1 >= 2"]), (["s0 + s1 == s2"], ["s2 - s1 == s0"]),
        (["Mod(s0, 3) == 0"], ["Mod(s0, 6) == 0"]), (["Mod(s0, 6) == 0"], ["Mod(s0, 3) == 0"]),
        (["Max(s0, 4) == s0"], ["s0 > 4"]), (["Or(s0 == 3, s0 > 9)"], ["s0 > 10"]),
    ]
    for source, target in fixed + [([guard()], [guard() for _ in range(rng.randint(1, 3))]) for _ in range(160)]:
        yield source, target


def validator_case(source, target, rng):
    from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod

    names = [sympy.Symbol(n, integer=True, positive=True) for n in ("s0", "s1", "s2")]
    scope = {str(s): s for s in names} | {"Mod": Mod, "Max": Max, "Min": Min, "Or": sympy.Or, "Eq": sympy.Eq, "Ne": sympy.Ne}

    def read(text):
        text = text.replace("==", "=EQ=").replace("!=", "=NE=")
        for mark, f in (("=EQ=", sympy.Eq), ("=NE=", sympy.Ne)):
            if mark in text and not text.startswith("Or"):
                a, b = text.split(mark)
                return f(read(a), read(b), evaluate=False)
        text = text.replace("=EQ=", "==")
        if text.startswith("Or"):
            a, b = text[3:-1].split(", ")
            return sympy.Or(read(a), read(b))
        text = re.sub(r"\((s\d)//(\d)\)", r"FloorDiv(\1, \2)", text)
        return eval(text.strip(), {**scope, "FloorDiv": FloorDiv})

    validator = TranslationValidator()
    for s in names:
        validator.add_var(s, int)
        # The range of a size; positivity is an assertion that add_var makes of the assumptions.
        validator.add_assertion(sympy.And(s >= 1, s <= 64))
    try:
        for it in source:
            validator.add_source_expr(validator.to_z3_boolean_expr(read(it)))
        for it in target:
            validator.add_target_expr(read(it))
    except (AssertionError, TypeError, AttributeError):
        return None  # a guard that sympy decides at once
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(*validator._assertions, z3.Not(z3.And(*validator._source_exprs)), *validator._target_exprs)
    result = {"sat": "invalid", "unsat": "valid", "unknown": "unknown"}[str(solver.check())]
    return {"ranges": {str(s): [1, 64] for s in names}, "source": source, "target": target, "result": result}


def main(out):
    rng = random.Random(20)
    out.mkdir(parents=True, exist_ok=True)

    def write(name, cases):
        cases = [c for c in cases if c]
        (out / name).write_text("".join(json.dumps(c, separators=(",", ":")) + "\n" for c in cases))
        print(name, len(cases))

    write("check.jsonl", [check_case(f"{f.__name__}_{i}", lambda b, f=f: f(rng, b))
                          for i, f in enumerate(itertools.islice(itertools.cycle(CHECKED), 420))])
    write("constraints.jsonl", [constraint_case(f"{f.__name__}_{i}", lambda b, f=f: f(rng, b), rng)
                                for i, f in enumerate(itertools.islice(itertools.cycle(CONSTRAINED), 260))])
    windows = list(window_cases())
    write("check_windows.jsonl", [window_check(*it) for it in windows])
    write("constraints_windows.jsonl", [constraint_case(name, lambda b, m=m, ty=ty: b.module(m, b.input("x", ty)), random.Random(1))
                                        for name, m, ty in windows])
    write("conditions.jsonl", [condition_case(f"condition_{i}", rng) for i in range(40)])
    write("validator.jsonl", [validator_case(s, t, rng) for s, t in guard_cases(rng)])


main(pathlib.Path(sys.argv[1]))
