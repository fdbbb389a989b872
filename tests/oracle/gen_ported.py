"""What torch.fx answers to programs after those of PyTorch's own tests: `fixtures/ported/fx.json`, lines by case.

Cases are called as the tests that they follow (test_fx.py, test/fx); the programs are our own. `ts/test/ported` has the same ones
in TypeScript. A line is a graph, what a graph gives, or the first line of an error.

usage: gen_ported.py OUT.json (torch 2.13.0)
"""
import copy
import json
import math
import operator
import pickle
import sys
import warnings

import torch
import torch.fx as fx
import torch.nn as nn
import torch.nn.functional as F
from torch.fx import PH, Graph, GraphModule, Interpreter, Proxy, Tracer, Transformer, symbolic_trace, wrap
from torch.fx.experimental.const_fold import split_const_subgraphs
from torch.fx.passes.dialect.common.cse_pass import CSEPass
from torch.fx.passes.infra.pass_base import PassBase, PassResult
from torch.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper, this_before_that_pass_constraint
from torch.fx.experimental.normalize import NormalizeArgs, NormalizeOperators
from torch.fx.experimental.optimization import extract_subgraph, fuse, remove_dropout
from torch.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupport
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.split_utils import split_by_tags
from torch.fx.passes.splitter_base import _SplitterBase, _SplitterSettingBase
from torch.fx.passes.tools_common import legalize_graph, stable_topological_sort
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions
from torch.fx.passes.utils.source_matcher_utils import get_source_partitions
from torch.fx.passes.split_module import split_module
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher
from torch.fx.subgraph_rewriter import replace_pattern, replace_pattern_with_filters

warnings.filterwarnings("ignore")
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
    return str(it).replace("__main__.", "")


def message(body):
    try: body()
    except Exception as error: return str(error).strip().split("\n")[0].replace("__main__.", "")
    return "taken"


def filled(module):
    """The module with numbers that are easily said again."""
    at = 0
    for it in list(module.parameters()) + [b for b in module.buffers() if b.is_floating_point()]:
        it.data.copy_((torch.arange(it.numel()).reshape(it.shape) % 7 + at % 3 - 2) / 4)
        at += 1
    return module


def numbers(*sizes):
    return (torch.arange(math.prod(sizes)).reshape(sizes) % 5 - 2) / 2


def names(nodes): return [n.name for n in nodes]


def checked(say, root, *args):
    """The graph of a trace, and that it gives what the function gives."""
    gm = symbolic_trace(root)
    gm.graph.lint()
    say(gm.graph)
    say(gm(*args))
    return gm


# ------------------------------------------------------------------ test_fx.py: tracing
@wrap
def lifted(a, b): return a[0] + a[1] + b


def lifted_later(a): return a + 1


wrap("lifted_later")
wrap("len")
wrap("getattr")


@wrap
def with_submodule(x, norm): return norm(x)


class AddRelu(nn.Module):
    def forward(self, x): return torch.relu(x + 3.0)


class Affine(nn.Module):
    def __init__(self):
        super().__init__()
        self.param = nn.Parameter(torch.rand(3, 4))
        self.linear = nn.Linear(4, 5)
        filled(self)

    def forward(self, x): return self.linear(x + self.param).clamp(min=0.0, max=1.0)


@case
def test_graph_module(say):
    class Sub(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.rand(4, 3))

        def forward(self, x): return self.w + x

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 3)
            self.sub_mod = Sub()
            self.w = nn.Parameter(torch.rand(3))

        def forward(self, A, B, c):
            t = torch.sigmoid(A) + self.lin(c)
            return self.sub_mod(t + self.w + t + 1 - A + B // A + -A + A.add(B, alpha=3))

    checked(say, filled(Whole()), torch.ones(4, 3), torch.ones(4, 3) * 2, torch.zeros(4, 4))

    class Unpacking(nn.Module):
        def forward(self, A):
            m, idx = torch.max(A, 0)
            return m + 1, idx + 1

    checked(say, Unpacking(), torch.tensor([[1.0, 5.0], [4.0, 2.0]]))


@case
def test_fx_shifts(say):
    checked(say, lambda x: (x << 3, x >> 3), torch.tensor([1, 16, 100]))


@case
def test_fx_and_or(say):
    checked(say, lambda x: (x & x, x | x), torch.tensor([1, 16, 100]))


@case
def test_dict(say):
    class M(nn.Module):
        def forward(self, d): return d["3"].relu(), {"4": d["3"].neg()}

    checked(say, M(), {"3": torch.tensor([1.0, -1.0])})


@case
def test_matmul_tracing(say):
    const = torch.tensor([1.0, 2.0, 3.0])
    checked(say, lambda x: x @ const, torch.ones(3))
    checked(say, lambda x: const @ x, torch.ones(3))


@case
def test_disallow_override(say):
    class NoWrites(Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            called = target if isinstance(target, str) else torch.typename(target)
            if called[-1] == "_": raise RuntimeError("In-place operations are not supported")
            return super().create_node(kind, target, args, kwargs, name)

    def method(x):
        x.add_(3.0)
        return x

    def function(x):
        torch.log_(x)
        return x

    def argument(x):
        y = torch.ones(3, 4)
        y.add_(x)
        return x

    for it in (method, function, argument): say(message(lambda: NoWrites().trace(it)))


@case
def test_leaf_module(say):
    class NoLeaves(Tracer):
        def is_leaf_module(self, m, qualname): return False

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x): return self.relu(x)

    say(NoLeaves().trace(M()))


@case
def test_wrap(say):
    gm = checked(say, lambda y: lifted((4, y), 3) + lifted((3, 4), 5) + lifted((y, y), y), 2)
    say(symbolic_trace(gm).graph)


@case
def test_wrapped_via_decorator(say):
    gm = checked(say, lambda y: lifted_later(y), 0)
    transformed = Transformer(gm).transform()
    say(transformed.graph); say(transformed(0)); say(symbolic_trace(gm).graph)


@case
def test_wrap_with_submodule(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(2, affine=False)

        def forward(self, x): return with_submodule(x, self.norm)

    checked(say, M().eval(), numbers(3, 2))


@case
def test_graph_edit_with_proxy(say):
    g = symbolic_trace(lambda a, b: a + b).graph
    new = Graph()
    t = Proxy(new.graph_copy(g, {}))
    new.output((t + t).node)
    gm = GraphModule(nn.Module(), new)
    gm.graph.lint()
    say(gm.graph); say(gm(3, 4))


@case
def test_graph_unique_names_manual(say):
    graph = Graph()
    a = graph.create_node("placeholder", "x")
    b = graph.create_node("call_module", "linear_mod", args=(a,), name="foo_1_1")
    c = graph.create_node("get_attr", "y_attr", name="foo_1")
    graph.output(graph.create_node("call_function", operator.add, args=(b, c)))
    other = Graph()
    other.graph_copy(graph, {})
    say(names(graph.nodes)); say(names(other.nodes))


@case
def test_unpack(say):
    def f(a, b):
        c, d = a
        return c + d + b

    checked(say, f, (torch.ones(1), torch.ones(1)), torch.ones(1))


@case
def test_reserved_getattr(say):
    say(symbolic_trace(lambda a: a.foo.bar.baz).graph)


@case
def test_tensor_attribute(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.tensor = numbers(3, 4)

        def forward(self, x): return F.linear(x, self.tensor)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.ta = M()

        def forward(self, x): return F.linear(x, self.ta.tensor)

    checked(say, M(), numbers(2, 4)); checked(say, Outer(), numbers(2, 4))


@case
def test_tensor_attribute_coalseced(say):
    val, val2 = torch.tensor(5), torch.tensor(5)
    checked(say, lambda x: x + val + val, 1)

    def f(x):
        inside = torch.tensor(5)
        return x + inside + val2

    checked(say, f, 1)


@case
def test_symbolic_trace_sequential(say):
    class Neg(nn.Module):
        def forward(self, x): return torch.neg(x)

    checked(say, nn.Sequential(Neg(), Neg(), Neg()), numbers(3))


@case
def test_tensor_constant(say):
    checked(say, lambda x: F.linear(x, torch.zeros(3, 4)), numbers(2, 4))


@case
def test_unpack_errors(say):
    class Taking(nn.Module):
        def forward(self, a, b): return torch.zeros(3, 4)

    class Unpacks(nn.Module):
        def __init__(self):
            super().__init__()
            self.sa = Taking()

        def forward(self, x): return self.sa(*x)

    say(message(lambda: symbolic_trace(Unpacks())))


@case
def test_pretty_print_targets(say):
    say(symbolic_trace(lambda x: torch.add(x.foo + x.bar, 3.0)).graph)


@case
def test_pretty_print_node(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.param = nn.Parameter(torch.rand(3, 4))
            self.linear = nn.Linear(4, 5)

        def forward(self, x, y=2): return self.linear(x[y] + self.param).clamp(min=0.0, max=1.0)

    for node in symbolic_trace(M()).graph.nodes: say(node.format_node())


@case
def test_torch_fx_len(say):
    checked(say, lambda x: len(x), numbers(3, 4))
    held = [3, 4, 5]
    checked(say, lambda x: x + len(held), numbers(3))


@case
def test_torch_fx_getattr(say):
    checked(say, lambda x: getattr(x, "nonexistent_attr", torch.tensor([2.0, 3.0])), numbers(3))


@case
def test_sqrt(say):
    checked(say, lambda x: math.sqrt(x.size(0)), torch.zeros(9))
    checked(say, lambda x: x + math.sqrt(4) + math.sqrt(9), torch.zeros(2))


@case
def test_torch_custom_ops(say):
    def f(a):
        b = torch.ops.aten.sigmoid(a)
        c = torch.ops.aten.cat([a, b])
        return torch.ops.aten.cat((c, c))

    gm = checked(say, f, torch.zeros(2))
    say(GraphModule(nn.Module(), gm.graph)(torch.zeros(2)))


@case
def test_pretty_print_graph(say):
    say(symbolic_trace(lambda x: torch.squeeze(x + 3.0, dim=2)).graph)


class Pair(metaclass=fx.ProxyableClassMeta):
    def __init__(self, left, right): self.left, self.right = left, right
    def add(self, other): return Pair(self.left + other.left, self.right + other.right)
    def mul(self, other): return Pair(self.left * other.left, self.right * other.right)


@case
def test_custom_proxy_type(say):
    gm = symbolic_trace(lambda x, y: x.add(y).mul(x))
    say(gm.graph)
    out = gm(Pair(numbers(3), numbers(3)), Pair(torch.ones(3), torch.ones(3)))
    say([out.left, out.right])


@case
def test_custom_proxy_dynamic_value(say):
    gm = symbolic_trace(lambda x, y: x.add(Pair(y, y)).mul(x))
    say(gm.graph)
    out = gm(Pair(numbers(3), numbers(3)), torch.ones(3))
    say([out.left, out.right])


@case
def test_return_tuple(say):
    checked(say, lambda x: (x, x + x), torch.ones(1))


@case
def test_nonetype_annotation(say):
    say(message(lambda: symbolic_trace(nn.EmbeddingBag(3, 4))))
    say(symbolic_trace(nn.Sequential(nn.EmbeddingBag(3, 4))).graph)


@case
def test_symbolic_trace_assert(say):
    def f(x):
        torch._assert(x.shape[1] > 4, "assert_foobar")
        return x

    gm = symbolic_trace(f)
    say(gm.graph); say(gm(torch.zeros(1, 5)).shape[1]); say(message(lambda: gm(torch.zeros(4, 3))))


@case
def test_trace_fn_constant(say):
    held = numbers(3)
    checked(say, lambda x: held + x, torch.ones(3))


@case
def test_layout(say):
    checked(say, lambda x: torch.empty_like(x, layout=torch.strided, pin_memory=False).fill_(0), numbers(3))


@case
def test_ellipsis(say):
    checked(say, lambda x, y: x + y[:, 1:3, ...], torch.ones(2, 2, 2), numbers(2, 4, 2))


@case
def test_inf_nan(say):
    checked(say, lambda x: (x + float("inf"), x + float("-inf"), x + float("nan")), torch.ones(2))


@case
def test_inf_nan_kwds(say):
    graph = Graph()
    x = graph.create_node("placeholder", "x")
    b = graph.create_node("call_function", operator.add, (x, float("inf")), {}, name="inf")
    c = graph.create_node("call_function", operator.add, (x, float("nan")), {}, name="nan")
    graph.output((b, c))
    gm = GraphModule(nn.Module(), graph)
    say(gm.graph); say(gm(torch.ones(2)))


@case
def test_trace_function(say):
    checked(say, lambda x, y: torch.relu(x) + y, numbers(3), torch.ones(3))


@case
def test_trace_dict_proxy_keys(say):
    class Taking(nn.Module):
        def forward(self, d): return d

    class Calling(nn.Module):
        def __init__(self):
            super().__init__()
            self.m = Taking()

        def forward(self, x): return self.m({x: x})

    class LeafTracer(Tracer):
        def is_leaf_module(self, m, qualname): return isinstance(m, Taking)

    say(message(lambda: LeafTracer().trace(Calling())))


@case
def test_direct_param_use(say):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.b = nn.Parameter(torch.rand(4, 3))

        def forward(self, x): return self.b

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = Inner()

        def forward(self, x): return self.a.b, self.a.b.t(), self.a.b.view(12)

    say(symbolic_trace(Outer()).graph)


@case
def test_default_args(say):
    def one(y=1): return y
    def two(y=1, z=2): return y + z
    def mixed(x, y=1): return x + y
    for f, calls in ((one, ((), (3,))), (two, ((), (3,), (3, 4))), (mixed, ((2,), (2, 3)))):
        gm = symbolic_trace(f)
        say(gm.graph)
        for given in calls: say(gm(*given))


@case
def test_string_literal_return(say):
    checked(say, lambda: "foo")


@case
def test_snake_case(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.activations = nn.ModuleDict([["snake_case", nn.ReLU()], ["PascalCase", nn.LeakyReLU()], ["ALL_CAPS", nn.PReLU()]])

        def forward(self, x):
            return [self.activations[it](x) for it in ("snake_case", "PascalCase", "ALL_CAPS")]

    say(symbolic_trace(M()).graph)


@case
def test_partial_trace(say):
    def f(x, y):
        if y: return 2 * x
        return x

    for value in (True, False):
        gm = symbolic_trace(f, concrete_args={"y": value})
        say(gm.graph); say(gm(3, value)); say(message(lambda: gm(3, not value)).split(" ")[0])


@case
def test_throw_out_variant(say):
    class Functional(Tracer):
        check_mutable_operations = True

    def f(x):
        y = torch.rand_like(x)
        torch.sigmoid(x, out=y)
        return y

    say(message(lambda: Functional().trace(f)).split("(")[0])


@case
def test_tracing_graphmodules_as_leaf_submodules(say):
    class Double(nn.Module):
        def forward(self, t): return t + t

    class M(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.a, self.b = a, b

        def forward(self, t): return self.a(t) + self.b(t)

    class AllLeaves(Tracer):
        def is_leaf_module(self, m, qualname): return True

    class NotB(Tracer):
        def is_leaf_module(self, m, qualname): return "b" not in qualname

    for tracer in (AllLeaves(), NotB()):
        m = M(symbolic_trace(Double()), Double())
        gm = GraphModule(m, tracer.trace(m))
        say(gm.graph); say(sorted(name for name, _ in gm.named_children())); say(gm(torch.ones(2)))


@case
def test_getitem(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("pe", numbers(4, 4))

        def forward(self, x): return self.pe[2] + x

    checked(say, M(), torch.zeros(4))


@case
def test_fn_type_annotations_dict(say):
    checked(say, lambda p, z: {"a": p[0] + p[1] + z}, (torch.ones(2), torch.ones(2)), torch.ones(2))


@case
def test_control_flow_error(say):
    def f(x):
        for it in x: return it

    say(message(lambda: symbolic_trace(f)))
    say(message(lambda: symbolic_trace(lambda x: float(x.sum()))).split(" ")[0])


@case
def test_nested_modules_twice(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()
            self.again = self.act

        def forward(self, x): return self.again(self.act(x)) + self.act(x)

    checked(say, M(), numbers(3))


@case
def test_retrace(say):
    gm = symbolic_trace(Affine())
    say(symbolic_trace(gm).graph)
    class Around(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x): return torch.neg(self.inner(x))

    checked(say, Around(gm), numbers(3, 4))


# ------------------------------------------------------------------ test_fx.py: graphs
@case
def test_all_input_nodes(say):
    graph = Graph()
    a = graph.placeholder("x")
    b = graph.call_module("linear_mod", args=(a,))
    c = graph.get_attr("y_attr")
    d = graph.call_function(operator.add, args=(b, c))
    e = graph.call_function(torch.unsqueeze, args=(d, 0))
    graph.output(e)
    graph.lint()
    for it in (b, c, d, e): say(names(it.all_input_nodes))


@case
def test_graph_fns(say):
    g = Graph()
    a = g.placeholder("a")
    d = g.call_method("add", (g.call_module("linear", (a,)), g.get_attr("bias")))
    g.output(g.call_function(torch.neg, (d,)))
    mod = nn.Module()
    mod.linear, mod.bias = filled(nn.Linear(3, 4)), numbers(4)
    gm = GraphModule(mod, g)
    gm.graph.lint()
    say(gm.graph); say(gm(torch.ones(3)))


@case
def test_remove_uses(say):
    g = Graph()
    x = g.placeholder("x")
    relu = g.call_function(torch.relu, (x,))
    neg = g.call_function(torch.neg, (relu,))
    g.output(neg)
    neg.replace_all_uses_with(relu)
    g.erase_node(neg)
    say(names(relu.users)); say(g)


@case
def test_construct_root_dict(say):
    graph = Graph()
    a = graph.create_node("placeholder", "x")
    b = graph.create_node("call_module", "foo.bar.baz", args=(a,))
    c = graph.create_node("get_attr", "zip.zap.zam")
    graph.output(graph.create_node("call_function", operator.add, args=(b, c)))
    gm = GraphModule({"foo.bar.baz": filled(nn.Linear(3, 4)), "zip.zap.zam": numbers(4)}, graph)
    gm.graph.lint()
    say(gm.graph); say(gm(torch.ones(3))); say([name for name, _ in gm.named_modules()])


@case
def test_copy_no_remap(say):
    copied = Graph()
    for node in symbolic_trace(AddRelu()).graph.nodes: say(message(lambda: copied.node_copy(node)).split(" ")[0])


@case
def test_wrong_topo(say):
    graph = Graph()
    a = graph.create_node("placeholder", "x")
    b = graph.create_node("call_module", "foo.bar.baz", args=(a,))
    c = graph.create_node("get_attr", "zip.zap.zam")
    graph.output(graph.create_node("call_function", operator.add, args=(b, c)))
    nodes = list(graph.nodes)
    nodes[3].append(nodes[2])
    say(message(graph.lint))


@case
def test_typename_print(say):
    graph = Graph()
    x = graph.create_node("placeholder", "x")
    graph.output(graph.create_node("call_function", target=torch.relu, args=(x,), type_expr=torch.Tensor))
    say(graph)


@case
def test_deepcopy_recursion_depth(say):
    g = Graph()
    x = g.placeholder("x")
    for _ in range(1200): x = g.call_function(torch.relu, (x,))
    g.output(x)
    copied = copy.deepcopy(g)
    say(len(copied.nodes)); say(names(copied.nodes) == names(g.nodes)); say([names(n.users) for n in copied.nodes] == [names(n.users) for n in g.nodes])


def small():
    graph = Graph()
    x, y = graph.create_node("placeholder", "x"), graph.create_node("placeholder", "y")
    b = graph.create_node("call_function", target=torch.relu, args=(x,))
    graph.output(b)
    return graph, x, y, b


@case
def test_replace_input(say):
    graph, x, y, b = small()
    b.replace_input_with(x, y)
    say(graph); say([names(x.users), names(y.users)])


@case
def test_insertion_point(say):
    graph, x, y, b = small()
    with graph.inserting_before(b):
        neg = graph.call_function(torch.neg, args=(x,))
        b.args = (neg, *b.args[1:])
    graph.call_function(torch.abs, (x,))
    say(graph)


@case
def test_update_args_api(say):
    graph, x, y, b = small()
    b.update_arg(0, y); say(graph)
    b.update_kwarg("input", x); say(graph)
    b.insert_arg(0, x); say(graph)
    b.args = (); say(graph); say([names(x.users), names(y.users)])


@case
def test_move_before(say):
    graph, x, y, b = small()
    neg = graph.call_function(torch.neg, args=(x,))
    b.args = (neg,)
    b.prepend(neg); say(graph)
    b.prepend(b); x.append(b); say(names(graph.nodes)); say(len(graph.nodes))


@case
def test_erase_node_error(say):
    traced = symbolic_trace(AddRelu())
    for node in list(traced.graph.nodes): say(message(lambda: traced.graph.erase_node(node)))


@case
def test_find_uses(say):
    graph = Graph()
    x = Proxy(graph.placeholder("x"))
    y, z, u = torch.relu(x), x + x, torch.neg(x)
    graph.output((y + z + u).node)
    graph.lint()
    say(graph); say(names(x.node.users))


@case
def test_inline_graph(say):
    outer, inner = symbolic_trace(lambda x: torch.relu(x)), symbolic_trace(lambda x: torch.neg(x))
    combined = Graph()
    out = combined.graph_copy(outer.graph, {})
    combined.output(combined.graph_copy(inner.graph, {next(iter(inner.graph.nodes)): out}))
    say(combined); say(GraphModule(nn.Module(), combined)(numbers(3)))


@case
def test_multi_insert_point(say):
    graph = Graph()
    x = Proxy(graph.placeholder("x"))
    relu = torch.relu(x)
    with graph.inserting_before(relu.node): z = torch.tanh(torch.neg(x))
    graph.output((relu.node, z.node))
    graph.lint()
    say(graph)


@case
def test_reassign_args_kwargs_uses(say):
    graph = Graph()
    x, y = Proxy(graph.placeholder("x")), Proxy(graph.placeholder("y"))
    z = x + y
    zed = z + z + z
    graph.output(zed.node)
    zed.node.args = (zed.node.args[0], x.node); say(names(x.node.users))
    z.node.args = (y.node, y.node); say(names(x.node.users)); say(names(y.node.users)); say(graph)


@case
def test_no_mutation(say):
    graph, x, y, b = small()
    b.args = ([x, y],)
    def change(): b.args[0][0] = y
    say(message(change).split(" ")[0])


@case
def test_lint_unknown(say):
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("missing", (x,)))
    gm = nn.Module()
    say(message(lambda: GraphModule(gm, graph)))


@case
def test_node_order(say):
    graph, x, y, b = small()
    nodes = list(graph.nodes)
    say([a < c for a, c in zip(nodes, nodes[1:])]); say(names(sorted(reversed(nodes)))); say(names(reversed(graph.nodes)))
    say([b.next.name, b.prev.name]); say(graph.output_node().name)
    say([names(graph.find_nodes(op="placeholder")), names(graph.find_nodes(op="call_function", target=torch.relu))])


@case
def test_eliminate_dead_code(say):
    def dead(x):
        a = x + 1
        b = torch.relu(a)
        torch.neg(x)
        return x * 2

    gm = symbolic_trace(dead)
    say(gm.graph.eliminate_dead_code()); say(gm.graph); say(gm.graph.eliminate_dead_code())
    def effects(x, unused):
        torch._assert(x.sum() > 0, "positive")
        x.add_(1)
        torch.rand(3)
        return x

    gm = symbolic_trace(effects)
    say(gm.graph.eliminate_dead_code()); say(gm.graph)
    gm = symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    out = next(n for n in gm.graph.nodes if n.op == "output")
    out.args = (list(gm.graph.nodes)[1],)
    say(gm.graph.eliminate_dead_code()); say(gm.graph)
    say(symbolic_trace(dead).graph.eliminate_dead_code(is_impure_node=lambda n: n.target is torch.neg))


# ------------------------------------------------------------------ test_fx.py: running and modules
@case
def test_interpreter(say):
    gm = symbolic_trace(Affine())
    say(Interpreter(gm).run(numbers(3, 4)))
    class Counting(Interpreter):
        seen = []
        def run_node(self, n):
            self.seen.append(n.name)
            return super().run_node(n)

    it = Counting(gm)
    it.run(numbers(3, 4)); say(it.seen); say(names(it.env))
    it = Interpreter(gm, garbage_collect_values=False)
    it.run(numbers(3, 4)); say(names(it.env))


@case
def test_interpreter_onthefly_swap(say):
    gm = symbolic_trace(lambda x: torch.abs(x).neg())
    class Swap(Interpreter):
        def call_function(self, target, args, kwargs): return torch.neg(*args) if target == torch.abs else super().call_function(target, args, kwargs)
        def call_method(self, target, args, kwargs): return args[0].abs() if target == "neg" else super().call_method(target, args, kwargs)

    say(Swap(gm).run(numbers(4)))
    class SwapTransformer(Transformer):
        def call_function(self, target, args, kwargs): return torch.neg(*args) if target == torch.abs else super().call_function(target, args, kwargs)
        def call_method(self, target, args, kwargs): return args[0].abs() if target == "neg" else super().call_method(target, args, kwargs)

    new = SwapTransformer(gm).transform()
    say(new.graph); say(new(numbers(4)))


@case
def test_interpreter_partial_eval(say):
    gm = symbolic_trace(Affine())
    env = {n: numbers(3, 4) for n in gm.graph.nodes if n.target == "linear"}
    say(Interpreter(gm).run(numbers(3, 4), initial_env=env))


@case
def test_transformer_noop(say):
    gm = symbolic_trace(Affine())
    new = Transformer(gm).transform()
    say(new.graph); say(new(numbers(3, 4)))
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.param = nn.Parameter(torch.rand(3, 4))
            self.linear = nn.Linear(4, 5)
            filled(self)

        def forward(self, x):
            x = x + self.param
            return x, self.linear(x)

    new = Transformer(symbolic_trace(Two())).transform()
    say(new.graph); say(new(numbers(3, 4)))


@case
def test_example_shape_prop(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.attr = torch.randn(3, 4)
            self.submod = nn.Linear(4, 4)

        def forward(self, x): return torch.neg(self.submod(x.relu() + self.attr))

    gm = symbolic_trace(M())
    ShapeProp(gm).propagate(torch.rand(3, 4))
    for n in gm.graph.nodes:
        meta = n.meta["tensor_meta"]
        say([n.name, list(meta.shape), list(meta.stride), str(meta.dtype).split(".")[1], str(meta.memory_format).split(".")[1]])


@case
def test_shape_prop_layout(say):
    gm = symbolic_trace(nn.Sequential(nn.Conv2d(5, 5, 3)))
    for x in (torch.randn(2, 5, 8, 8), torch.randn(2, 5, 8, 8).contiguous(memory_format=torch.channels_last)):
        ShapeProp(gm).propagate(x)
        meta = next(iter(gm.graph.nodes)).meta["tensor_meta"]
        say([list(meta.shape), list(meta.stride), str(meta.memory_format).split(".")[1]])


@case
def test_shape_prop_aggregate(say):
    class Two(nn.Module):
        def forward(self, x): return 3, torch.sum(x)

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.rt = Two()

        def forward(self, x): return self.rt(x)

    class LeafTracer(Tracer):
        def is_leaf_module(self, m, qualname): return type(m) is Two

    m = M()
    gm = GraphModule(m, LeafTracer().trace(m))
    ShapeProp(gm).propagate(torch.rand(3, 4))
    meta = next(n for n in gm.graph.nodes if n.op == "call_module").meta["tensor_meta"]
    say(meta[0]); say(list(meta[1].shape))


@case
def test_empty_graph_codegen(say):
    say(GraphModule(nn.Module(), Graph())())


@case
def test_deepcopy_graphmodule_with_transform(say):
    traced = symbolic_trace(AddRelu())
    new = Graph()
    out = new.graph_copy(traced.graph, {})
    new.output(new.create_node("call_method", "neg", (out,), {}))
    transformed = GraphModule(traced, new)
    transformed.graph.lint()
    copied = copy.deepcopy(transformed)
    say(copied.graph); say(copied(numbers(3)))


@case
def test_deepcopy_with_submods_params(say):
    gm = symbolic_trace(Affine())
    copied = copy.deepcopy(gm)
    copied.graph.lint()
    say(copied.graph); say(copied.param is gm.param); say([name for name, _ in copied.named_parameters()]); say(copied(numbers(3, 4)))


@case
def test_module_deepcopy_edit_nodes(say):
    gm = symbolic_trace(lambda x: torch.relu(x))
    copied = copy.deepcopy(gm)
    for n in copied.graph.nodes:
        if n.target == torch.relu: n.target = torch.neg
    copied.recompile()
    say(gm(numbers(3))); say(copied(numbers(3))); say(copied.graph)


@case
def test_submodule_manipulation_API(say):
    class C(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(16, 33, 3)
            self.param = nn.Parameter(torch.rand(2, 3))

        def forward(self, x): return self.conv(torch.cat([self.param, x]))

    class B(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(100, 200)
            self.register_buffer("buf", torch.randn(2, 3))
            self.net_c = C()

        def forward(self, x): return self.linear(torch.cat([self.buf, self.net_c(x)]))

    class A(nn.Module):
        def __init__(self):
            super().__init__()
            self.net_b = B()
            self.param = nn.Parameter(torch.rand(2, 3))

        def forward(self, x): return self.net_b(x) + self.param

    a = symbolic_trace(A())
    say(a.add_submodule("net_b.net_c.dropout", nn.Dropout(0.2)))
    conv = [n for n in a.graph.nodes if n.target == "net_b.net_c.conv"][-1]
    with a.graph.inserting_before(conv): dropout = a.graph.call_module("net_b.net_c.dropout", args=conv.args)
    conv.replace_all_uses_with(dropout)
    a.graph.erase_node(conv)
    modules = lambda: [name for name, _ in a.named_modules()]
    say(modules()); say(a.delete_submodule("net_b.net_c.conv")); say(modules()); say(a.delete_submodule("net_b.net_c.conv"))
    for path in ("net_b.embedding", "net_b.net_c.embedding", "batch_norm_2d"): say(a.add_submodule(path, nn.ReLU()))
    a.delete_all_unused_submodules()
    say(modules()); say([name for name, _ in a.named_parameters()]); say([name for name, _ in a.named_buffers()])
    a.graph.lint()
    say(a.graph)


@case
def test_delete_unused_submodules_leaf(say):
    class Sub(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.relu = nn.Linear(2, 2), nn.ReLU()

        def forward(self, x): return self.relu(self.linear(x))

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.submod = Sub()

        def forward(self, x): return self.submod(x)

    class LeafTracer(Tracer):
        def is_leaf_module(self, m, qualname): return qualname == "submod"

    m = filled(M())
    gm = GraphModule(m, LeafTracer().trace(m))
    gm.delete_all_unused_submodules()
    say([name for name, _ in gm.named_modules()]); say(gm(numbers(1, 2)))


@case
def test_graph_module_init_buffer_param_copied(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("my_buff", numbers(3))
            self.my_param = nn.Parameter(torch.ones(3))

        def forward(self, x): return x + self.my_buff + self.my_param

    mod = M()
    traced = symbolic_trace(mod)
    for root in ({"my_buff": traced.my_buff, "my_param": traced.my_param}, mod):
        new = GraphModule(root, traced.graph)
        say([new.my_buff is traced.my_buff, new.my_param is traced.my_param, [n for n, _ in new.named_buffers()], [n for n, _ in new.named_parameters()]])
        say(new(torch.ones(3)))


@case
def test_pickle_graphmodule(say):
    gm = symbolic_trace(Affine())
    say(gm.graph); say(gm(numbers(3, 4)))


@case
def test_pytree(say):
    def total(x): return sum(x)
    def dict_total(x):
        out = 0
        for k, v in x.items(): out += v
        return out
    def mapped(x): return {k: [i + 1 for i in v] for k, v in x.items()}
    def dict_add(x): return x["a"] + sum(x["z"])
    ones = lambda it: torch.utils._pytree.tree_map(lambda leaf: torch.ones(2) if leaf == PH else leaf, it)
    for f, inputs in ((total, [PH, PH, PH]), (total, []), (dict_total, {"a": PH, "b": PH, "c": PH}), (mapped, {"a": (PH, PH), "b": [PH], "c": []}), (dict_add, {"a": PH, "z": (PH, PH, PH)}), (dict_add, {"a": PH, "z": []})):
        gm = symbolic_trace(f, concrete_args={"x": inputs})
        say([n.op for n in gm.graph.nodes]); say(gm(ones(inputs)))


@case
def test_pytree_concrete(say):
    def f(b, a):
        if b: return a["a"]
        return a["z"]

    gm = symbolic_trace(f, concrete_args={"a": {"a": PH, "z": PH}, "b": True})
    say([n.op for n in gm.graph.nodes]); say(gm(True, {"a": torch.ones(2), "z": torch.zeros(2)}))


# ------------------------------------------------------------------ test/fx: rewriting and passes
def replaced(say, f, pattern, replacement):
    gm = symbolic_trace(f)
    matches = replace_pattern(gm, pattern, replacement)
    gm.graph.lint()
    say(len(matches)); say(gm.graph)
    return gm


@case
def test_subgraph_rewriter_preserves_logic(say):
    replaced(say, lambda x: torch.neg(x) + torch.relu(x), lambda x: torch.neg(x) + torch.relu(x), lambda x: torch.neg(x) + torch.relu(x))


@case
def test_subgraph_rewriter_with_oneliner_pattern(say):
    replaced(say, lambda x: torch.neg(x) + torch.neg(x), lambda x: torch.neg(x), lambda x: torch.relu(x))


@case
def test_subgraph_rewriter_single_pattern_match(say):
    replaced(say, lambda x: torch.relu(torch.neg(x) + torch.relu(x)), lambda x: torch.neg(x) + torch.relu(x), lambda x: torch.relu(x))


@case
def test_subgraph_rewriter_multiple_pattern_match(say):
    def f(x, w1, w2):
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w1, w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    replaced(say, f, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b]))


@case
def test_subgraph_rewriter_graph_argument_order(say):
    replaced(say, lambda x, y: torch.mm(x, y), lambda x, y: torch.mm(x, y), lambda x, y: torch.mm(x, y))


@case
def test_subgraph_rewriter_correct_output_replacement(say):
    replaced(say, lambda x, y: torch.neg(y) + torch.relu(x), lambda x: torch.relu(x), lambda x: torch.neg(x))


@case
def test_subgraph_rewriter_traced_as_callable(say):
    class Neg(nn.Module):
        def forward(self, x): return torch.neg(x) + torch.relu(x)

    class Gelu(nn.Module):
        def forward(self, x): return F.gelu(x)

    replaced(say, lambda x: torch.neg(x) + torch.relu(x) + 1, symbolic_trace(Neg()), symbolic_trace(Gelu()))


@case
def test_subgraph_rewriter_pattern_is_entire_graph(say):
    replaced(say, lambda x: torch.add(torch.neg(x), torch.neg(x)), lambda x: torch.add(torch.neg(x), torch.neg(x)), lambda x: torch.sigmoid(x))


@case
def test_subgraph_rewriter_pattern_output_pattern_node_can_have_users(say):
    def f(x):
        y = torch.relu(x)
        return torch.neg(y) + torch.abs(y)

    replaced(say, f, lambda x: torch.relu(x), lambda x: torch.clamp(torch.relu(x), max=6))


@case
def test_subgraph_rewriter_internal_pattern_nodes_cannot_have_users(say):
    def f(x):
        y = torch.relu(x)
        return torch.neg(y) + torch.abs(y)

    replaced(say, f, lambda x: torch.neg(torch.relu(x)), lambda x: torch.sigmoid(x))


@case
def test_subgraph_rewriter_placeholder_matching(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.dtype = torch.float16

        def forward(self, x):
            x = x + 3
            x = x.dequantize()
            x = torch.sigmoid(x)
            return x.to(torch.float16)

    def pattern(x):
        x = x.dequantize()
        x = torch.sigmoid(x)
        return x.to(torch.float16)

    replaced(say, M(), pattern, lambda x: torch.sigmoid(x))


@case
def test_subgraph_rewriter_replaces_referenced_submodules(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.sigmoid = nn.Sigmoid()
            self.submod = nn.Sequential(nn.Tanh())

        def forward(self, x): return self.submod(self.sigmoid(x + 1))

    class Pattern(nn.Module):
        def __init__(self):
            super().__init__()
            self.sigmoid = nn.Sigmoid()
            self.submod = nn.Sequential(nn.Tanh())

        def forward(self, x): return self.submod(self.sigmoid(x))

    class Replacement(nn.Module):
        def __init__(self):
            super().__init__()
            self.tanh = nn.Tanh()

        def forward(self, x): return self.tanh(x)

    gm = replaced(say, M(), Pattern(), Replacement())
    say(sorted(name for name, _ in gm.named_modules()))


@case
def test_subgraph_rewriter_replace_consecutive_submodules(say):
    def f(x):
        x = torch.sigmoid(x)
        x = torch.sigmoid(x)
        return torch.sigmoid(x)

    replaced(say, f, lambda x: torch.sigmoid(x), lambda x: torch.exp(x))


@case
def test_subgraph_rewriter_call_method(say):
    replaced(say, lambda x: x.dequantize().sigmoid().to(torch.float16), lambda x: x.dequantize().sigmoid().to(torch.float16), lambda x: x.to(torch.float16))


@case
def test_subgraph_rewriter_nodes_with_kwargs(say):
    replaced(say, lambda a, b: torch.cat([a, b], dim=1), lambda a, b: torch.cat([a, b], dim=1), lambda a, b: torch.stack([a, b], dim=0))
    replaced(say, lambda a, b: torch.cat([a, b], dim=1), lambda a, b: torch.cat([a, b], dim=0), lambda a, b: torch.stack([a, b], dim=0))


@case
def test_subgraph_rewriter_with_filters(say):
    gm = symbolic_trace(lambda x: torch.relu(torch.neg(x)) + torch.relu(torch.neg(torch.abs(x))))
    ours = lambda match, original, pattern: match.placeholder_nodes[0].op == "placeholder"
    found = replace_pattern_with_filters(gm, lambda x: torch.relu(torch.neg(x)), lambda x: torch.sigmoid(x), [ours])
    say(len(found)); say(gm.graph); say([names(it.replacements) for it in found])


@case
def test_subgraph_rewriter_multiple_returns(say):
    def two(x):
        y = torch.relu(x)
        return torch.neg(y), torch.abs(y)

    def f(x):
        y = torch.relu(x)
        return torch.neg(y) + torch.abs(y)

    replaced(say, f, two, lambda x: (torch.sigmoid(x), torch.tanh(x)))


@case
def test_matcher_with_literals(say):
    gm = symbolic_trace(lambda x: torch.clamp(x, min=0, max=6) + torch.clamp(x, min=0, max=3))
    pattern = symbolic_trace(lambda x: torch.clamp(x, min=0, max=6))
    for ignore in (False, True):
        matches = SubgraphMatcher(pattern.graph, ignore_literals=ignore).match(gm.graph)
        say([sorted(n.name for n in m.nodes_map.values()) for m in matches])


@case
def test_matcher_split_to_users(say):
    gm = symbolic_trace(lambda x: torch.relu(torch.neg(x)) + torch.relu(torch.abs(x)))
    for f in (lambda x: torch.relu(x), lambda x: torch.relu(torch.neg(x)), lambda x, y: torch.relu(x) + torch.relu(y), lambda x: torch.tanh(x)):
        say([[n.name for n in m.returning_nodes] for m in SubgraphMatcher(symbolic_trace(f).graph).match(gm.graph)])


@case
def test_cse_pass(say):
    def many(x):
        a = torch.ops.aten.neg.default(x); b = torch.ops.aten.neg.default(x)
        c = torch.ops.aten.add.Tensor(a, b); d = torch.ops.aten.add.Tensor(b, a)
        return c, d, torch.ops.aten.add.Tensor(a, b)

    def rand(x): return torch.ops.aten.rand_like.default(x), torch.ops.aten.rand_like.default(x)
    def literal(x): return torch.ops.aten.add.Scalar(x, 1), torch.ops.aten.add.Scalar(x, 2), torch.ops.aten.add.Scalar(x, 1)
    for f in (many, rand, literal):
        res = CSEPass()(symbolic_trace(f))
        say(res.modified); say(res.graph_module.graph)


@case
def test_const_fold(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2) * 2)

        def forward(self, x): return x * (self.a + self.b).neg()

    folded = split_const_subgraphs(M())
    say(folded.graph); say(folded(torch.ones(2))); say(folded.graph); say([n for n, _ in folded.named_parameters()])
    nothing = split_const_subgraphs(symbolic_trace(lambda x: torch.relu(x)))
    say(nothing.graph)


@case
def test_split_module(say):
    gm = symbolic_trace(lambda x, y: torch.neg(torch.relu(x) + y) * torch.relu(x))
    at = {n: i for i, n in enumerate(n for n in gm.graph.nodes if n.op == "call_function")}
    for f in (lambda n: 0, lambda n: at[n] // 2, lambda n: at[n]):
        split = split_module(gm, gm, f)
        say(split.graph)
        for name, child in split.named_children(): say(f"{name}: {child.graph}")
        say(split(numbers(3), torch.ones(3)))


@case
def test_pass_manager(say):
    class Swap(PassBase):
        def __init__(self, old, new):
            super().__init__()
            self.old, self.new = old, new

        def call(self, gm):
            modified = False
            for n in gm.graph.nodes:
                if n.op == "call_function" and n.target == self.old: n.target, modified = self.new, True
            return PassResult(gm, modified)

    gm = symbolic_trace(lambda x: torch.neg(torch.abs(x)))
    for passes, steps in (([Swap(torch.abs, torch.relu)], 1), ([Swap(torch.relu, torch.exp), Swap(torch.neg, torch.relu)], 1), ([Swap(torch.relu, torch.exp), Swap(torch.neg, torch.relu)], 3)):
        res = PassManager(passes=passes, steps=steps)(copy.deepcopy(gm))
        say(res.modified); say(res.graph_module.graph)
    def check(module):
        if any(n.target == torch.exp for n in module.graph.nodes): raise RuntimeError("no exp")
    pm = PassManager(passes=[Swap(torch.neg, torch.exp)], run_checks_after_each_pass=True)
    pm.add_checks(check)
    say(message(lambda: pm(copy.deepcopy(gm))).split(":")[0])
    def first(m): return None
    def second(m): return None
    one, two = pass_result_wrapper(first), pass_result_wrapper(second)
    pm = PassManager(passes=[two, one], constraints=[this_before_that_pass_constraint(one, two)])
    pm.validate_constraints() if message(pm.validate_constraints) == "taken" else None
    say(message(pm.validate_constraints).split(".")[0].split(" at ")[0].replace("<function second", "second").replace("<function first", "first"))
    pm.solve_constraints()
    say([it.__name__ for it in pm.passes])


# ------------------------------------------------------------------ test_fx_experimental.py, test/fx
def parts(say, gm, split):
    say(split.graph)
    for name, child in split.named_children():
        if isinstance(child, GraphModule): say(f"{name}: {child.graph}")


@case
def test_fuse(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.lin, self.bn1 = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Linear(2, 2), nn.BatchNorm1d(2)

        def forward(self, x): return self.bn1(self.lin(self.bn(self.conv(x)).sum((2, 3))))

    m = filled(M()).eval()
    for bn in (m.bn, m.bn1): bn.running_var.fill_(1)
    fused = fuse(m)
    say(fused.graph); say(fused(numbers(1, 1, 2, 2))); say(sorted(n for n, _ in fused.named_modules()))


@case
def test_remove_dropout(say):
    gm = remove_dropout(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.ReLU(), nn.Dropout(0.1)))
    say(gm.graph)


@case
def test_extract_subgraph(say):
    gm = symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Tanh()))
    nodes = [n for n in gm.graph.nodes if n.op == "call_module"]
    part = extract_subgraph(gm, nodes[:2], [next(iter(gm.graph.nodes))], [nodes[1]])
    say(part.graph)


@case
def test_normalize_args(say):
    gm = symbolic_trace(lambda x, y: torch.add(F.relu(x), torch.max(y), alpha=2))
    say(NormalizeArgs(gm).transform().graph)
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 1, 1)

        def forward(self, x): return F.max_pool2d(self.conv(x), 2, stride=1)

    say(NormalizeArgs(symbolic_trace(M())).transform().graph)


@case
def test_normalize_operators(say):
    say(NormalizeOperators(symbolic_trace(lambda x, y: torch.add(x, y) + torch.mul(x, y) - torch.div(x, y))).transform().graph)


@case
def test_annotate_types_with_schema(say):
    gm = AnnotateTypesWithSchema(symbolic_trace(lambda x: torch.relu(torch.add(x, x)))).transform()
    say([str(n.type) for n in gm.graph.nodes if n.op == "call_function"])


@case
def test_split_by_tags(say):
    gm = symbolic_trace(lambda x, y: torch.neg(torch.relu(x) + y) * torch.abs(x))
    tags = {"relu": "a", "add": "a", "neg": "b", "abs_1": "a", "mul": "b"}
    for n in gm.graph.nodes:
        if n.name in tags: n.tag = tags[n.name]
    parts(say, gm, split_by_tags(gm, ["a", "b"]))


@case
def test_capability_partitioner(say):
    class Support(OperatorSupport):
        def is_node_supported(self, submodules, node): return node.op == "call_function" and node.target in (torch.relu, torch.neg, operator.add)

    def f(x, y):
        a = torch.relu(x); b = torch.neg(a); c = torch.abs(b); d = c + y
        return torch.relu(d), torch.neg(y)

    gm = symbolic_trace(f)
    pr = CapabilityBasedPartitioner(gm, Support(), allows_single_node_partition=True)
    found = pr.propose_partitions()
    say(sorted(sorted(n.name for n in p.nodes) for p in found))
    parts(say, gm, pr.fuse_partitions(found))
    pr = CapabilityBasedPartitioner(symbolic_trace(f), Support(), allows_single_node_partition=False)
    say(sorted(sorted(n.name for n in p.nodes) for p in pr.propose_partitions()))


@case
def test_fuse_by_partitions(say):
    gm = symbolic_trace(lambda x, y: torch.neg(torch.relu(x) + y) * torch.abs(x))
    by = {n.name: n for n in gm.graph.nodes}
    fused = fuse_by_partitions(gm, [{by["relu"]: None, by["add"]: None}, {by["neg"]: None, by["mul"]: None}])
    parts(say, gm, fused)
    gm = symbolic_trace(lambda x: torch.neg(torch.relu(torch.abs(x))))
    by = {n.name: n for n in gm.graph.nodes}
    say(message(lambda: fuse_by_partitions(gm, [{by["abs_1"]: None, by["neg"]: None}])))


@case
def test_legalize_graph(say):
    gm = symbolic_trace(lambda x: torch.neg(torch.relu(torch.abs(x))))
    nodes = list(gm.graph.nodes)
    nodes[3].append(nodes[1])
    say(message(gm.graph.lint)); say(legalize_graph(gm).graph)
    nodes = list(gm.graph.nodes)
    nodes[3].append(nodes[1])
    say(stable_topological_sort(gm).graph)


@case
def test_source_partitions(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.act = nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU()

        def forward(self, x): return torch.neg(self.b(self.act(self.a(x))))

    ep = torch.export.export(M(), (torch.ones(1, 2),))
    found = get_source_partitions(ep.graph, [nn.Linear, nn.ReLU, torch.neg])
    for key, partitions in found.items():
        say(key.__name__)
        for p in partitions: say([sorted(names(it)) for it in (p.nodes, p.input_nodes, p.output_nodes, p.params)])


@case
def test_node_hooks(say):
    gm = symbolic_trace(lambda x: torch.relu(x))
    lines = []
    create, erase = (lambda n: lines.append(f"create {n.name}")), (lambda n: lines.append(f"erase {n.name}"))
    replace = lambda old, new, user: lines.append(f"replace {old.name} {new} {user.name}")
    gm._register_create_node_hook(create); gm._register_erase_node_hook(erase); gm._register_replace_node_hook(replace)
    relu = [n for n in gm.graph.nodes if n.name == "relu"][0]
    with gm.graph.inserting_after(relu): neg = gm.graph.call_function(torch.neg, (relu,))
    relu.replace_all_uses_with(neg, delete_user_cb=lambda n: n is not neg)
    neg.replace_input_with(relu, relu.args[0])
    gm.graph.erase_node(relu)
    gm._unregister_create_node_hook(create)
    with gm.graph.inserting_after(neg): gm.graph.call_function(torch.abs, (neg,))
    say(lines); say(gm.graph)


@case
def test_interpreter_errors(say):
    gm = symbolic_trace(lambda x: torch.mm(torch.relu(x), x))
    say(message(lambda: Interpreter(gm).run(torch.ones(2, 3))).split(" (")[0])
    say(message(lambda: Interpreter(gm).run()).split(".")[0][:20])
    say(Interpreter(gm).boxed_run([torch.ones(2, 2)]))


@case
def test_const_fold_variants(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.ones(2))
            self.register_buffer("b", torch.ones(2) * 2)
            self.relu = nn.ReLU()

        def forward(self, x):
            folded = self.relu(self.a - self.b)
            return x + folded, x * (self.a + 1)

    gm = split_const_subgraphs(M())
    say(gm.graph); say(gm.const_subgraph_module.graph); say(gm(torch.ones(2)))
    gm = split_const_subgraphs(symbolic_trace(M()), skip_folding_node_fn=lambda n: n.target == operator.add)
    say(gm.graph); say(gm.const_subgraph_module.graph)
    class NoInput(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.ones(2))

        def forward(self): return self.a.neg()

    gm = split_const_subgraphs(NoInput())
    say(gm.graph); say(gm())


@case
def test_subgraph_rewriter_overlap(say):
    replaced(say, lambda x: torch.relu(torch.relu(torch.relu(x))), lambda x: torch.relu(torch.relu(x)), lambda x: torch.sigmoid(x))


@case
def test_subgraph_rewriter_callback(say):
    gm = symbolic_trace(lambda x: torch.clamp(torch.neg(x), min=0) + torch.clamp(torch.neg(x), min=1))
    def made(match, original, pattern):
        low = [n for n in match.nodes_map.values() if isinstance(n, fx.Node) and n.target is torch.clamp][0].kwargs["min"]
        return symbolic_trace(lambda x: torch.relu(x) if low == 0 else torch.sigmoid(x)).graph

    found = replace_pattern_with_filters(gm, lambda x: torch.clamp(torch.neg(x), min=0), None, ignore_literals=True, replacement_callback=made)
    say(len(found)); say(gm.graph)


@case
def test_subgraph_rewriter_unused_args(say):
    def f(x, y):
        t = torch.neg(x)
        return t + y, t

    replaced(say, f, lambda x: torch.neg(x), lambda x: torch.relu(x))
    replaced(say, lambda x, y, z: torch.addmm(x, y, z), lambda x, y, z: torch.addmm(x, y, z), lambda x, y, z: torch.add(x, torch.mm(y, z)))


@case
def test_matcher_multiple_outputs(say):
    def pattern(x, w):
        y = torch.mm(x, w)
        return torch.relu(y), torch.sigmoid(y)

    gm = symbolic_trace(lambda x, w: torch.relu(torch.mm(x, w)) + torch.sigmoid(torch.mm(x, w)))
    say(len(SubgraphMatcher(symbolic_trace(pattern).graph).match(gm.graph)))
    def shared(x, w):
        y = torch.mm(x, w)
        return torch.relu(y) + torch.sigmoid(y)

    found = SubgraphMatcher(symbolic_trace(pattern).graph).match(symbolic_trace(shared).graph)
    say([names(m.returning_nodes) for m in found]); say([names(m.placeholder_nodes) for m in found])


@case
def test_print_tabular_rows(say):
    for n in symbolic_trace(Affine()).graph.nodes: say([n.op, n.name, str(n.target), str(n.args), str(n.kwargs)])


@case
def test_minimizer_free_transformer(say):
    class Double(Transformer):
        def call_module(self, target, args, kwargs):
            return super().call_module(target, args, kwargs) * 2

    new = Double(symbolic_trace(Affine())).transform()
    say(new.graph); say(new(numbers(3, 4)))


@case
def test_graph_copy_into(say):
    a, b = symbolic_trace(lambda x: torch.relu(x) + 1).graph, symbolic_trace(lambda x: torch.neg(x)).graph
    g = Graph()
    x = g.placeholder("x")
    first = g.graph_copy(a, {next(iter(a.nodes)): x})
    second = g.graph_copy(a, {next(iter(a.nodes)): first})
    third = g.graph_copy(b, {next(iter(b.nodes)): second})
    g.output((third, first))
    say(g); say(GraphModule(nn.Module(), g)(numbers(3)))


@case
def test_splitter(say):
    class Support(OperatorSupport):
        def is_node_supported(self, submodules, node): return node.target in (torch.relu, torch.neg)

    class Plain(_SplitterBase):
        def __init__(self, module, sample, support, settings): super().__init__(module, sample, support, settings, non_acc_submodule_name="_run_on_cpu_")
        def _lower_model_to_backend(self, mod, inputs): return mod
        def _find_culprit(self, mod, inputs): return ""

    gm = symbolic_trace(lambda x: torch.abs(torch.neg(torch.relu(x))) + torch.relu(x))
    settings = _SplitterSettingBase(min_acc_module_size=1)
    splitter = Plain(gm, (numbers(3),), Support(), settings)
    parts(say, gm, splitter())


# ------------------------------------------------------------------ test_fx.py: what it has since
@case
def test_trace_multiple_funcs(say):
    class M(nn.Module):
        def forward(self, x, y): return x + y
        def minus(self, x, y): return x - y
        def twice(self, x): return self.minus(x, x) * 2

    class Other(Tracer):
        def __init__(self, name):
            super().__init__()
            self.traced_func_name = name

    for name in ("forward", "minus", "twice"): say(Other(name).trace(M()))
    say(message(lambda: Other("missing").trace(M())).split(" ")[0])


@case
def test_concrete_arg_none_assert(say):
    def f(x, val=None): return x if val is None else x + val

    gm = symbolic_trace(f, concrete_args={"val": None})
    say(gm.graph); say(gm(torch.ones(2), None)); say(message(lambda: gm(torch.ones(2), torch.ones(2))))


@case
def test_nn_module_stack(say):
    class Sub(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 1, 1)

        def forward(self, x): return self.conv(x) + 1

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.sub_mod = Sub()

        def forward(self, x): return self.sub_mod(x)

    for n in symbolic_trace(M()).graph.nodes: say([n.name, list(n.meta.get("nn_module_stack", {}))])


@case
def test_graph_copy_output_node(say):
    g = symbolic_trace(lambda x: (torch.relu(x), x)).graph
    new = Graph()
    value, node = new.graph_copy(g, {}, return_output_node=True)
    say([v.name for v in value]); say(node.name); say(new)


@case
def test_insert_arg(say):
    graph = Graph()
    x, y, z = graph.placeholder("x"), graph.placeholder("y"), graph.placeholder("z")
    out = graph.call_function(torch.cat, ((x, y),))
    say(message(lambda: out.insert_arg(3, z)))
    out.insert_arg(1, z); say(out.args); say([names(n.users) for n in (x, y, z)])
    out.insert_arg(2, {"a": [x, (y,)]}); say(out.args); say([names(n.users) for n in (x, y, z)])


@case
def test_rename(say):
    graph = Graph()
    x = graph.placeholder("x")
    a, b = graph.call_function(torch.relu, (x,)), graph.call_function(torch.relu, (x,))
    graph.output((a, b))
    a._rename("relu_1"); b._rename("x"); x._rename("input")
    say(names(graph.nodes)); say(graph.call_function(torch.relu, (x,)).name); say(graph)


@case
def test_namespace(say):
    graph = Graph()
    for name in ("a", "a", "a_1", "a", "a_01", "a", "1b", "sum", "for", "a b", "", "__x__", "A", "torch", "a_5", "a"):
        say(graph.create_node("placeholder", name or "empty", name=name or None).name)


@case
def test_output_lists(say):
    gm = symbolic_trace(lambda x: {"a": [x, None], "b": (1, 2.0, "s", True), "c": slice(None, 2), "d": torch.float32})
    say(gm.graph)


@case
def test_replace_all_uses_where(say):
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    a, b, c = graph.call_function(torch.neg, (x,)), graph.call_function(torch.abs, ([x],)), graph.call_function(torch.add, (x,), {"other": {"k": x}})
    graph.output((a, b, c, x))
    say(names(x.replace_all_uses_with(y, delete_user_cb=lambda n: n.op == "call_function"))); say(graph)
    say(names(y.replace_all_uses_with(x))); say(graph); say(names(x.users))


@case
def test_propagate_meta(say):
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    x.meta["note"] = 5
    graph.output(graph.call_function(torch.neg, (x,)))
    x.replace_all_uses_with(y, propagate_meta=True); say(y.meta["note"]); say(graph)
    say(message(lambda: y.replace_all_uses_with(x, propagate_meta=True)).split(" ")[0][:9])


@case
def test_custom_codegen(say):
    class ListCodeGen(fx.graph.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation, *args, **kwargs):
            return f"def forward(self, args_list):\n    {', '.join(free_vars[1:] if free_vars[:1] == ['self'] else free_vars)} = args_list"

        def process_inputs(self, *inputs): return inputs[0]

    gm = symbolic_trace(lambda a, b: a + b * 2)
    gm.graph.set_codegen(ListCodeGen()); gm.recompile()
    say(gm([torch.ones(2), torch.ones(2)])); say(Interpreter(gm).run([torch.ones(2), torch.ones(2)]))
    say(Transformer(gm).transform()([torch.ones(2), torch.ones(2)])); say(copy.deepcopy(gm)([torch.ones(2), torch.ones(2)]))


@case
def test_module_class_names(say):
    gm = symbolic_trace(Affine())
    say(type(gm).__name__); say(GraphModule(gm, gm.graph, "Renamed").__class__.__name__); say(symbolic_trace(lambda x: x).__class__.__name__.replace("<lambda>", "GraphModule"))
    say([n for n, _ in gm.named_children()]); say(gm.training); say(symbolic_trace(Affine().eval()).training)


@case
def test_in_place_recorded(say):
    def f(x):
        y = x.clone()
        y += 1
        y.mul_(2)
        y[0] = y.sum()
        return y

    say(message(lambda: symbolic_trace(f)).split("'")[1])
    def g(x):
        y = x.clone()
        y.add_(1).mul_(2)
        return y

    checked(say, g, numbers(3))


@case
def test_deep_nesting(say):
    checked(say, lambda x: [[[x[0][1], x[1]["k"]]], {"a": {"b": x[1]["k"] + 1}}], [[1, 2], {"k": torch.ones(1)}])


@case
def test_call_method_spellings(say):
    checked(say, lambda x: x.reshape(2, 2).transpose(0, 1).contiguous().unsqueeze(0).size(-1), numbers(4))
    checked(say, lambda x: x.mean(dim=0, keepdim=True).squeeze(), numbers(4))


# ------------------------------------------------------------------ test_fx_param_shape_control_flow.py
@case
def test_param_shape_const(say):
    class M(nn.Module):
        def __init__(self, shape):
            super().__init__()
            self.param = nn.Parameter(torch.ones(shape))

        def forward(self, x):
            if self.param.shape[0] < 3: return torch.mm(x, self.param)
            return torch.relu(x)

    class Size(M):
        def forward(self, x): return torch.mm(x, self.param) if self.param.size()[0] < 3 else torch.relu(x)

    class Dim(M):
        def forward(self, x): return torch.mm(x, self.param) if self.param.dim() == 2 else torch.relu(x)

    class Numel(M):
        def forward(self, x): return torch.mm(x, self.param) if self.param.numel() < 10 else torch.relu(x)

    for cls in (M, Size, Dim, Numel):
        for shape in ((2, 2), (4, 4)): say(Tracer(param_shapes_constant=True).trace(cls(shape)))


json.dump(CASES, open(sys.argv[1], "w"), indent=1)
print(len(CASES), "cases", sum(map(len, CASES.values())), "lines")
