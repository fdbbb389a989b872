"""Records what torch.export says of dynamic shapes: ranges, guards, and the texts of violations.

    python tests/oracle/gen_dynamic_shapes.py

Writes tests/fixtures/shapes/structure.jsonl, what is refused of the structure of `dynamic_shapes`, and dynamic_shapes.jsonl. A case is a function with its inputs and `dynamic_shapes`; beside it stand the
steps by which a session of shapes does the same (operators, conditions that the code branches on, checks), since its tests have
no tracer. Symbols in steps are named as PyTorch names them, by a hash of where the size comes from.
"""

import hashlib
import inspect
import json
import logging
import textwrap
import warnings
from pathlib import Path

import torch
from torch.export import Dim

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

OUT = Path(__file__).parent.parent / "fixtures" / "shapes" / "dynamic_shapes.jsonl"

taken = set()


def S(name, dim=None):
    """The symbol of a size; collisions are resolved in the order in which a case asks."""
    source = f"L['{name}']" if dim is None else f"L['{name}'].size()[{dim}]"
    return "s" + str(int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100)


def op(name, *args, out="out"):
    return {"infer": name, "args": list(args), "out": out}


def decide(expr, answer=True):
    return {"decide": expr, "answer": answer}


def check(expr, message=None):
    return {"check": expr, "message": message}


CASES = []


def case(inputs, shapes, steps):
    def note(f):
        CASES.append((f, inputs, shapes, steps))
        return f

    return note


ADD = [op("aten.add.Tensor", "$x", "$y")]
a, b, c = Dim("a"), Dim("b"), Dim("c")
x0, x1, y0, y1 = S("x", 0), S("x", 1), S("y", 0), S("y", 1)


@case({"x": (5, 3), "y": (5, 3)}, {"x": {0: a}, "y": {0: b}}, ADD)
def two_dims_are_equal(x, y):
    return x + y


@case({"x": (5, 3), "y": (5, 3)}, {"x": {0: a}, "y": {0: a}}, ADD)
def one_dim_of_two_inputs(x, y):
    return x + y


@case({"x": (5, 3), "y": (6, 3)}, {"x": {0: a}, "y": {0: a}}, [])
def inputs_differ_in_one_dim(x, y):
    return x.sin()


@case({"x": (5, 3), "y": (5, 3)}, {"x": {0: Dim("a", max=16)}, "y": {0: Dim("a", max=16)}}, ADD)
def a_range(x, y):
    return x + y


@case({"x": (5, 3), "y": (3,)}, {"x": {0: a, 1: b}, "y": None}, ADD)
def a_constant(x, y):
    return x + y


@case({"x": (5, 3), "y": (3,)}, {"x": {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}, "y": None}, ADD)
def a_hint_that_is_a_constant(x, y):
    return x + y


@case({"x": (5, 3), "y": (3,)}, {"x": {0: Dim.AUTO, 1: Dim.AUTO}, "y": None}, ADD)
def an_automatic_constant(x, y):
    return x + y


@case({"x": (5, 3), "y": (5, 3)}, {"x": {0: Dim.AUTO, 1: Dim.AUTO}, "y": {0: Dim.AUTO, 1: Dim.AUTO}}, ADD)
def automatic_sizes_are_equal(x, y):
    return x + y


@case({"x": (5, 3), "y": (5, 3)}, {"x": {0: Dim.DYNAMIC}, "y": {0: a}}, ADD)
def a_hint_beside_a_dim(x, y):
    return x + y


@case({"x": (5,)}, {"x": {0: a}}, [decide(f"{x0} <= 16")])
def an_upper_bound(x):
    return x.sin() if x.shape[0] <= 16 else x


@case({"x": (5,)}, {"x": {0: a}}, [decide(f"{x0} > 3")])
def a_lower_bound(x):
    return x.sin() if x.shape[0] > 3 else x


@case({"x": (5,)}, {"x": {0: Dim("a", min=3, max=64)}}, [decide(f"{x0} > 40", False)])
def a_bound_within_a_range(x):
    return x.sin() if x.shape[0] > 40 else x


@case({"x": (5,)}, {"x": {0: Dim("a", min=3, max=16)}}, [decide(f"{x0} <= 16"), decide(f"{x0} > 2")])
def bounds_that_hold(x):
    return x.sin() if x.shape[0] <= 16 and x.shape[0] > 2 else x


@case({"x": (5,)}, {"x": {0: Dim.AUTO}}, [decide(f"{x0} <= 16"), decide(f"{x0} > 3")])
def automatic_bounds(x):
    return x.sin() if x.shape[0] <= 16 and x.shape[0] > 3 else x


@case({"x": (5,)}, {"x": {0: a}}, [decide(f"Ne({x0}, 7)")])
def not_a_number(x):
    return x.sin() if x.shape[0] != 7 else x


@case({"x": (5,)}, {"x": {0: Dim.AUTO}}, [decide(f"Ne({x0}, 7)")])
def automatically_not_a_number(x):
    return x.sin() if x.shape[0] != 7 else x


@case({"x": (5,)}, {"x": {0: a}}, [decide(f"Eq({x0}, 5)")])
def a_number(x):
    return x.sin() if x.shape[0] == 5 else x


@case({"x": (8, 3)}, {"x": {0: a}}, [op("aten.view.default", "$x", [-1, 4, 3])])
def a_multiple(x):
    return x.view(-1, 4, 3)


@case({"x": (8, 3)}, {"x": {0: Dim("a", max=30)}}, [op("aten.view.default", "$x", [-1, 4, 3])])
def a_multiple_within_a_range(x):
    return x.view(-1, 4, 3)


@case({"x": (9,)}, {"x": {0: a}}, [decide(f"Eq(Mod({x0}, 4), 1)")])
def a_remainder(x):
    return x.sin() if x.shape[0] % 4 == 1 else x


@case({"x": (8, 3)}, {"x": {0: Dim.AUTO}}, [op("aten.view.default", "$x", [-1, 4, 3])])
def an_automatic_multiple(x):
    return x.view(-1, 4, 3)


@case({"x": (4,), "y": (8,)}, {"x": {0: a}, "y": {0: 2 * a}}, [op("aten.cat.default", ["$x", "$x"], out="z"), op("aten.add.Tensor", "$z", "$y")])
def a_derived_dim(x, y):
    return torch.cat([x, x]) + y


@case({"x": (4,), "y": (8,)}, {"x": {0: a}, "y": {0: b}}, [op("aten.cat.default", ["$x", "$x"], out="z"), op("aten.add.Tensor", "$z", "$y")])
def a_relation(x, y):
    return torch.cat([x, x]) + y


@case({"x": (4,), "y": (5,)}, {"x": {0: a}, "y": {0: a + 1}}, [op("aten.slice.Tensor", "$y", 0, 1, 9223372036854775807, out="z"), op("aten.add.Tensor", "$x", "$z")])
def one_more(x, y):
    return x + y[1:]


@case({"x": (4,), "y": (5,)}, {"x": {0: a}, "y": {0: b}}, [op("aten.slice.Tensor", "$y", 0, 1, 9223372036854775807, out="z"), op("aten.add.Tensor", "$x", "$z")])
def one_more_that_was_not_said(x, y):
    return x + y[1:]


@case({"x": (4,), "y": (6,)}, {"x": {0: a}, "y": {0: a + 1}}, [])
def inputs_that_are_no_derived_dim(x, y):
    return x.sin(), y.cos()


@case({"x": (4,), "y": (7,)}, {"x": {0: 2 * a}, "y": {0: 3 * a + 1}}, [])
def a_root_that_no_input_has(x, y):
    return x.sin(), y.cos()


@case({"x": (5,)}, {"x": {0: 2 * a}}, [])
def no_multiple_of_the_root(x):
    return x.sin()


@case({"x": (6, 2), "y": (12,)}, {"x": {0: Dim("a", min=2, max=32)}, "y": {0: Dim("a", min=2, max=32) + 6}}, [op("aten.view.default", "$x", [-1], out="z"), op("aten.add.Tensor", "$z", "$y")])
def two_equations(x, y):
    return x.reshape([-1]) + y


@case({"x": (5,)}, {"x": {0: Dim("a", min=8, max=16)}}, [])
def an_example_outside_of_the_range(x):
    return x.sin()


@case({"x": (1,)}, {"x": {0: a}}, [])
def an_example_of_one(x):
    return x.sin()


@case({"x": (1,)}, {"x": {0: Dim.DYNAMIC}}, [])
def a_hint_and_an_example_of_one(x):
    return x.sin()


@case({"x": (1, 0)}, {"x": {0: Dim.AUTO, 1: Dim.AUTO}}, [])
def automatic_zero_and_one(x):
    return x.sin()


@case({"x": (5,)}, {"x": {0: 4}}, [])
def another_int(x):
    return x.sin()


@case({"x": (5,)}, {"x": {0: 5}}, [])
def the_int(x):
    return x.sin()


@case({"x": (5, 4)}, {"x": {0: Dim.AUTO, 1: Dim.STATIC}}, [])
def automatic_and_static(x):
    return x.sin()


@case({"x": (5,)}, {"x": {0: Dim.AUTO(min=3, max=8)}}, [])
def an_automatic_range(x):
    return x.sin()


@case({"x": (5,)}, {"x": {0: Dim.DYNAMIC(min=3, max=8)}}, [decide(f"{x0} > 4")])
def a_hint_with_a_range(x):
    return x.sin() if x.shape[0] > 4 else x


@case({"x": (5,)}, {"x": {0: Dim.AUTO(max=8)}}, [decide(f"{x0} > 4"), decide(f"{x0} < 6")])
def a_range_of_one(x):
    return x.sin() if x.shape[0] > 4 and x.shape[0] < 6 else x


@case({"x": (12,)}, {"x": {0: Dim.AUTO(max=8)}}, [decide(f"{x0} > 10")])
def a_range_that_does_not_hold(x):
    return x.sin() if x.shape[0] > 10 else x


@case({"x": (5,), "n": 4}, {"x": {0: Dim.AUTO}, "n": Dim.DYNAMIC}, [op("aten.mul.Scalar", "$x", {"expr": S("n")})])
def an_int_input(x, n):
    return x * n


@case({"x": (5,), "n": 4}, {"x": None, "n": Dim.AUTO}, [decide(f"Eq({S('n')}, 4)")])
def an_automatic_int_that_is_a_constant(x, n):
    return x * 2 if n == 4 else x


@case({"x": (5,), "n": 4}, {"x": None, "n": Dim.DYNAMIC}, [decide(f"Eq({S('n')}, 4)")])
def an_int_that_is_a_constant(x, n):
    return x * 2 if n == 4 else x


@case({"x": (3, 4), "y": (4, 5)}, {"x": {0: a, 1: b}, "y": {0: c}}, [op("aten.mm.default", "$x", "$y")])
def inner_sizes(x, y):
    return x @ y


@case({"x": (3, 4), "y": (4, 5)}, {"x": {0: a, 1: b}, "y": None}, [op("aten.mm.default", "$x", "$y")])
def an_inner_size_that_is_a_constant(x, y):
    return x @ y


@case({"x": (3, 4), "y": (2, 4)}, {"x": {0: a, 1: b}, "y": {0: c, 1: b}}, [op("aten.cat.default", ["$x", "$y"])])
def joined(x, y):
    return torch.cat([x, y])


@case({"x": (3, 4), "y": (2, 4)}, {"x": {0: a, 1: b}, "y": {0: c, 1: Dim("d")}}, [op("aten.cat.default", ["$x", "$y"])])
def joined_beside_sizes_that_may_differ(x, y):
    return torch.cat([x, y])


@case({"x": (3,), "y": (4,)}, {"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}}, [decide(f"{x0} + {y0} <= 20")])
def a_guard_of_two_sizes(x, y):
    return (x.sin(), y) if x.shape[0] + y.shape[0] <= 20 else (x, y)


@case({"x": (3,), "y": (4,)}, {"x": {0: a}, "y": {0: b}}, [decide(f"{x0} < {y0}")])
def one_size_below_another(x, y):
    return (x.sin(), y) if x.shape[0] < y.shape[0] else (x, y)


@case({"x": (4,), "y": (4,)}, {"x": {0: a}, "y": {0: b}}, [decide(f"Ne({x0}*{y0}, 12)")])
def a_product(x, y):
    return (x.sin(), y) if x.shape[0] * y.shape[0] != 12 else (x, y)


@case({"x": (4, 6)}, {"x": {0: a, 1: b}}, [decide(f"Eq(Mod({x0}*{x1}, 8), 0)")])
def a_multiple_of_two_sizes(x):
    return x.sin() if (x.shape[0] * x.shape[1]) % 8 == 0 else x


@case({"x": (4, 4)}, {"x": {0: a, 1: b}}, [decide(f"Eq({x0}, {x1})")])
def a_square(x):
    return x.sin() if x.shape[0] == x.shape[1] else x


@case({"x": (4,), "y": (4,), "z": (4,)}, {"x": {0: a}, "y": {0: b}, "z": {0: c}}, [op("aten.add.Tensor", "$x", "$y", out="w"), op("aten.add.Tensor", "$w", "$z")])
def three_dims_are_equal(x, y, z):
    return x + y + z


@case({"x": (8,)}, {"x": {0: Dim("a", max=20)}}, [check(f"{x0} <= 16", "too long")])
def a_check_of_a_size(x):
    torch._check(x.shape[0] <= 16, lambda: "too long")
    return x.sin()


@case({"x": (3,), "y": (4,)}, {"x": {0: Dim("a", max=8)}, "y": {0: Dim("b", max=8)}}, [decide(f"{x0} + {y0} <= 20")])
def a_guard_that_follows_from_ranges(x, y):
    return (x.sin(), y) if x.shape[0] + y.shape[0] <= 20 else (x, y)


@case({"x": (6,)}, {"x": {0: a}}, [decide(f"{x0}//2 <= 10")])
def a_bound_of_a_half(x):
    return x.sin() if x.shape[0] // 2 <= 10 else x


@case({"x": ()}, {"x": {}}, [op("aten._local_scalar_dense.default", "#x", out="n"), decide("u0 > 3")])
def a_branch_on_data(x):
    n = x.item()
    return x.sin() if n > 3 else x


@case({"x": ()}, {"x": {}}, [op("aten._local_scalar_dense.default", "#x", out="n"), decide("Eq(u0, 3)")])
def an_equality_on_data(x):
    n = x.item()
    return x.sin() if n == 3 else x


@case({"x": ()}, {"x": {}}, [op("aten._local_scalar_dense.default", "#x", out="n"), check("u0 >= 2"), check("u0 <= 7"), decide("u0 < 10")])
def a_check_of_data(x):
    n = x.item()
    torch._check(n >= 2)
    torch._check(n <= 7)
    return torch.zeros(n) if n < 10 else x


@case({"x": (), "y": (5,)}, {"x": {}, "y": {0: a}}, [op("aten._local_scalar_dense.default", "#x", out="n"), check(f"u0 <= {y0}"), decide(f"u0 <= {y0}")])
def a_check_of_data_against_a_size(x, y):
    n = x.item()
    torch._check(n <= y.shape[0])
    return y.sin() if n <= y.shape[0] else y


def spec(dim):
    if isinstance(dim, int) or dim is None:
        return dim
    if isinstance(dim, torch.export.dynamic_shapes._DimHint):
        return {"hint": dim.type.name, "min": dim.min, "max": dim.max}
    root = getattr(dim, "root", dim)
    bounds = {"name": root.__name__, "min": root.min, "max": None if root.max == torch.utils._sympy.numbers.int_oo else root.max}
    if root is dim:
        return bounds
    offset = int(dim.fn(0))
    return bounds | {"factor": int(dim.fn(1)) - offset, "offset": offset}


def value(name, sizes, steps):
    if isinstance(sizes, int):
        return sizes
    whole = any(f"#{name}" in step.get("args", ()) for step in steps)
    return torch.ones(sizes, dtype=torch.int64) if whole else torch.ones(sizes)


def bound(it):
    return None if "oo" in str(it) else int(it)


def record(f, inputs, shapes, steps):
    values = {name: value(name, sizes, steps) for name, sizes in inputs.items()}
    module = torch.nn.Module()
    module.forward = f
    specs = {}
    for name, dims in shapes.items():
        n = 1 if isinstance(inputs[name], int) else len(inputs[name])
        dims = {0: dims} if isinstance(inputs[name], int) else dims or {}
        specs[name] = [spec(dims.get(i)) for i in range(n)]
    res = {
        "case": f.__name__,
        "source": textwrap.dedent("".join(it for it in inspect.getsourcelines(f)[0] if not it.startswith("@"))),
        "inputs": [
            {"name": name, "sizes": None if isinstance(sizes, int) else list(sizes), "value": sizes if isinstance(sizes, int) else None,
             "dtype": str(getattr(values[name], "dtype", "int")).removeprefix("torch."), "dims": specs[name]}
            for name, sizes in inputs.items()
        ],
        "steps": json.loads(json.dumps(steps).replace('"#', '"$')),
    }
    try:
        ep = torch.export.export(module, tuple(values.values()), dynamic_shapes=shapes)
    except Exception as error:
        return res | {"error": type(error).__name__, "message": str(error).split("\n\nUser stack:")[0].split("Caused by:")[0]}
    placeholders = [n for n in ep.graph.nodes if n.op == "placeholder"]
    sizes = [[str(s) for s in n.meta["val"].shape] if isinstance(n.meta["val"], torch.Tensor) else [str(n.meta["val"])] for n in placeholders]
    asserts = [str(n.args[1]) for n in ep.graph.nodes if n.target == torch.ops.aten._assert_scalar.default]
    ranges = {str(k): [bound(r.lower), bound(r.upper)] for k, r in ep.range_constraints.items()}
    return res | {"sizes": sizes, "ranges": ranges, "guards": ep._guards_code, "asserts": asserts}


t = {"tensor": [4, 3]}
hint = {"hint": "AUTO"}
STRUCTURES = [
    ({"x": t, "y": t}, {"x": [hint, None]}),
    ({"x": t, "y": t}, {"x": [hint, None], "z": None}),
    ({"x": {"k": t}}, {"k": [hint, None]}),
    ({"x": t, "y": t}, [[hint, None]]),
    ({"x": [t, t]}, {"x": None}),
    ({"x": [t, t]}, {"x": {"k": None}}),
    ({"x": [t, t]}, {"x": [None]}),
    ({"x": {"k": t}}, {"x": {"l": None}}),
    ({"x": [t, {"k": t}]}, {"x": [None, {"l": None}]}),
    ({"x": t}, {"x": [hint]}),
    ({"x": t}, {"x": [hint, "many"]}),
    ({"x": t}, {"x": {"#0": "many"}}),
    ({"x": t}, {"x": "many"}),
    ({"x": t}, {"x": [{"name": "a", "min": 0, "max": 8}, {"name": "a", "min": 0, "max": 9}]}),
    ({"x": t, "n": 3}, {"x": None, "n": {"name": "a", "min": 0, "max": 8}}),
    ({"x": t, "n": "text"}, {"x": None, "n": hint}),
    ({"x": t, "n": None}, {"x": None, "n": [hint]}),
]


def decode(it):
    """A tensor, a dimension, or what they are in; keys of dimensions begin with #."""
    if isinstance(it, dict):
        if "tensor" in it:
            return torch.ones(it["tensor"])
        if "hint" in it:
            return getattr(Dim, it["hint"])
        if "name" in it:
            return Dim(it["name"], min=it["min"], max=it["max"])
        return {int(k[1:]) if k.startswith("#") else k: decode(v) for k, v in it.items()}
    return [decode(v) for v in it] if isinstance(it, list) else it


def refused(inputs, shapes):
    module = torch.nn.Module()
    names = ", ".join(inputs)
    module.forward = eval(f"lambda {names}: ({names},)")
    try:
        torch.export.export(module, tuple(decode(it) for it in inputs.values()), dynamic_shapes=decode(shapes))
    except Exception as error:
        message = str(error).split("\nFor more information about this error")[0].split("\n\nThe error above")[0]
        return {"inputs": inputs, "shapes": shapes, "message": message}
    raise AssertionError((inputs, shapes))


OUT.parent.mkdir(exist_ok=True)
with (OUT.parent / "structure.jsonl").open("w") as out:
    for inputs, shapes in STRUCTURES:
        out.write(json.dumps(refused(inputs, shapes)) + "\n")
with OUT.open("w") as out:
    for f, inputs, shapes, steps in CASES:
        out.write(json.dumps(record(f, inputs, shapes, steps)) + "\n")
print(len(CASES), "cases")
