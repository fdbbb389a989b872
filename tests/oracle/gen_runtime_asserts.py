"""Records what torch.fx.passes.runtime_assert makes of small graphs whose sizes the data decides.

    python tests/oracle/gen_runtime_asserts.py

Writes tests/fixtures/passes/runtime_asserts.jsonl: for each case the graph before, what its ShapeEnv knows, and the graph after.
"""

import json
from pathlib import Path

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.runtime_assert import insert_deferred_runtime_asserts

OUT = Path(__file__).parent.parent / "fixtures" / "passes" / "runtime_asserts.jsonl"


def bounded(x):
    n = x.sum().item()
    torch._check(n >= 2)
    torch._check(n <= 7)
    return torch.zeros(n)


def at_least(x):
    n = x.sum().item()
    torch._check(n >= 3)
    return x + n


def sum_of_two(x, y):
    a, b = x.sum().item(), y.sum().item()
    torch._check(a + b == 10)
    return x + a, y + b


def product_and_rest(x):
    n = x.sum().item()
    torch._check(n * 3 <= 30)
    torch._check(n % 2 == 0)
    torch._check(n // 2 != 4)
    return x + n


def beside_a_size(x, y):
    n = y.sum().item()
    torch._check(n <= x.shape[0])
    return x + n


def nonzero(x):
    found = x.nonzero()
    torch._check(found.shape[0] <= 5)
    return found + 1


def unchecked(x):
    return x.sin().cos()


def size_of_an_intermediate(x, y):
    z = torch.cat([x, x])
    return y.new_zeros(z.shape[0], y.shape[0])


def twice_the_same(x, y):
    a, b = x.sum().item(), y.sum().item()
    torch._check(a < b)
    torch._check(a < b)
    return x + a + b


def maximum(x, y):
    a, b = x.sum().item(), y.sum().item()
    torch._check(torch.sym_max(a, b) < 9)
    return x + a + b


def two_variables(x, y):
    a, b = x.sum().item(), y.sum().item()
    torch._check(2 * a + 3 * b - 1 > 0)
    torch._check(a * b <= 100)
    return x + a + b


N, M = torch.tensor([1, 3]), torch.tensor([2, 4])
CASES = [
    (bounded, (N,)),
    (at_least, (N,)),
    (sum_of_two, (N, M)),
    (product_and_rest, (N,)),
    (beside_a_size, (torch.ones(5), N)),
    (nonzero, (torch.ones(5),)),
    (unchecked, (torch.ones(3, 4),)),
    (size_of_an_intermediate, (torch.ones(3), torch.ones(5))),
    (twice_the_same, (N, M)),
    (maximum, (N, M)),
    (two_variables, (N, M)),
]


def arg(value):
    if isinstance(value, torch.fx.Node):
        return {"node": value.name}
    if isinstance(value, (list, tuple)):
        return [arg(it) for it in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def val(value):
    if isinstance(value, torch.Tensor):
        return {
            "sizes": [str(it) for it in value.size()],
            "strides": [str(it) for it in value.stride()],
            "offset": str(value.storage_offset()),
        }
    if isinstance(value, torch.SymInt):
        return {"int": str(value.node.expr)}
    if isinstance(value, torch.SymBool):
        return {"bool": str(value.node.expr)}
    return None


def target(node):
    if node.op != "call_function":
        return node.target
    if isinstance(node.target, torch._ops.OpOverload):
        return "torch.ops." + str(node.target)
    module = node.target.__module__
    return f"{'operator' if module == '_operator' else module}.{node.target.__name__}"


def nodes(graph):
    return [
        {
            "op": it.op,
            "name": it.name,
            "target": target(it),
            "args": arg(it.args),
            "kwargs": {key: arg(value) for key, value in it.kwargs.items()},
            "val": val(it.meta.get("val")),
        }
        for it in graph.nodes
    ]


def case(function, inputs):
    module = make_fx(function, tracing_mode="symbolic")(*inputs)
    env = module.shape_env
    # The names of nodes that tracing made and erased again are free in a copy.
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    module = torch.fx.GraphModule(module, graph)
    before = nodes(graph)
    asserts = [str(it.expr) for group in env.deferred_runtime_asserts.values() for it in group]
    bound = lambda it: int(it) if it.is_Integer else None
    ranges = {str(key): [bound(it.lower), bound(it.upper)] for key, it in env.var_to_range.items() if str(key)[0] == "u"}
    insert_deferred_runtime_asserts(module, env, function.__name__, export=True)
    after = nodes(module.graph)
    return {"name": function.__name__, "asserts": asserts, "ranges": ranges, "before": before, "after": after}


OUT.parent.mkdir(parents=True, exist_ok=True)
cases = [case(function, inputs) for function, inputs in CASES]
OUT.write_text("".join(json.dumps(it) + "\n" for it in cases))
