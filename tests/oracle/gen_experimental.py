"""What the rest of torch.fx.experimental and torch.export answers: `fixtures/fx/experimental.json`, and a program that calls an operator
that writes on a copy: `fixtures/fx/functional.pt2`.

`ts/test/export/shapeEnvironment.test.ts`, `ts/test/passes/metaTracer.test.ts` and `ts/test/types/rules.test.ts` have the same programs in
TypeScript. Lines are graphs, answers and first lines of errors.

usage: gen_experimental.py OUT.json FUNCTIONAL.pt2 (torch 2.13.0)
"""
import itertools
import json
import sys
import warnings

import torch
import torch.nn as nn
from torch.export import export
from torch.export._remove_auto_functionalized_pass import unsafe_remove_auto_functionalized_pass
from torch.fx.experimental.dynamic_spec import (
    STATIC, DictSpec, IntVar, ObjectSpec, ParamsSpec, SeqSpec, ShapesSpec, ShapeVar, TensorSpec,
)
from torch.fx.experimental.graph_gradual_typechecker import (
    GraphTypeChecker, register_algebraic_expressions_inference_rule, register_inference_rule, register_refinement_rule,
)
from torch.fx.experimental.meta_tracer import symbolic_trace as meta_symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.recording import replay_shape_env_events
from torch.fx.experimental.refinement_types import Equality
from torch.fx.experimental.symbolic_shapes import (
    CallMethodKey, ConvertIntKey, DivideByKey, ShapeEnv, StatelessSymbolicContext, DimDynamic, bind_symbols, eval_guards,
)
from torch.fx.experimental.unify_refinements import infer_symbolic_types
from torch.fx.tensor_type import Dyn, TensorType
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from said import case, message, program, write

warnings.filterwarnings("ignore")


@case
def guards_of_make_fx(say):
    def f(x, y):
        if x.shape[0] > 3: return x.sin() + y
        return x.cos() + y

    gm = make_fx(f, tracing_mode="symbolic")(torch.ones(4, 3), torch.ones(4, 1))
    for a, b in [((5, 3), (5, 1)), ((2, 3), (2, 1)), ((5, 3), (6, 1)), ((5, 7), (5, 1)), ((5, 3), (5, 2))]:
        say([eval_guards(gm, torch.ones(a), torch.ones(b)), eval_guards(gm, torch.ones(a), torch.ones(b), ignore_static=False)])
    say(sorted(bind_symbols(gm, torch.ones(5, 3), torch.ones(5, 1)).values()))
    say(message(lambda: bind_symbols(gm, torch.ones(5, 3), torch.ones(6, 1))) != "taken")


@case
def bindings_of_data(say):
    def told(forward, x):
        for node in program(forward, x).graph.nodes:
            bindings = node.meta.get("unbacked_bindings")
            if bindings: say([[pytree.keystr(path) for path in bindings.values()]])

    told(lambda x: x.nonzero(), torch.tensor([1.0, 0.0]))
    told(lambda x: torch.zeros(x.item()), torch.tensor(3))
    told(lambda x: torch.unique(x, return_inverse=True), torch.tensor([1.0, 1.0]))
    say([str(CallMethodKey("size")), str(ConvertIntKey()), str(DivideByKey(3)), DivideByKey(3).get(7)])
    say(list(CallMethodKey("size").get(torch.ones(2, 3))))


@case
def functions_of_sizes(say):
    def forward(x):
        n = x.shape[0]
        half = n / 2
        # The verifier refuses `n ^ 3`.
        return (x.sum() + n * 0, abs(3 - n), n << 2, n >> 1, round(half), torch.sym_sum([n, n, 3]), n & 6, 5 | n, (n | 3) - (n & 3), n & -3, n & 0b110101)

    ep = program(forward, torch.ones(5))
    for size in [2, 3, 5, 7, 8, 61]: say([int(it) for it in ep.module()(torch.ones(size))[1:]])


def environment():
    env = ShapeEnv(should_record_events=True)
    mode = FakeTensorMode(shape_env=env)
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC])
    return env, mode.from_tensor(torch.ones(4), source=ConstantSource("x"), symbolic_context=context)


@case
def contexts(say):
    env, x = environment()
    with env.suppress_guards(): say(bool(x.shape[0] > 3))
    say(len(env.guards))
    say(bool(x.shape[0] > 3))
    say(len(env.guards))

    def attempt():
        with env.error_on_new_guards(): bool(x.shape[0] > 2 + 1 and x.shape[0] < 9)

    say(message(attempt) != "taken")
    say(len(env.guards))
    env.freeze()
    say(bool(x.shape[0] < 9))
    u = env.create_unbacked_symint()
    say([env.is_unbacked_symint(u.node.expr), env.is_unbacked_symint(x.shape[0].node.expr)])
    say([str(u), str(env.create_unbacked_symbool()), type(env.create_unbacked_symfloat()).__name__])


@case
def events(say):
    env, x = environment()
    bool(x.shape[0] > 3)
    again = replay_shape_env_events(env.events)
    say(message(lambda: again.check_equal(env)))
    bool(x.shape[0] < 9)
    say(message(lambda: again.check_equal(env)))


@case
def traces_that_know_shapes(say):
    def told(fn, **meta): say(meta_symbolic_trace(fn, meta_args=meta).graph)
    meta = lambda *sizes: torch.ones(sizes, device="meta")
    told(lambda x: torch.flatten(x, 1) if x.dim() > 2 else x, x=meta(2, 3, 4))
    told(lambda x: x.view(x.shape[0], -1) * x.size(1), x=meta(2, 3, 4))
    told(lambda x, y: torch.cat([x, y], 1).relu().reshape(-1) if x.shape[0] == y.shape[0] else x, x=meta(2, 3), y=meta(2, 5))

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 5)

        def forward(self, x):
            y = self.linear(x)
            return nn.ReLU()(y) if y.shape[-1] == 5 else y

    gm = meta_symbolic_trace(M().to("meta"), meta_args={"x": meta(2, 3)})
    say(gm.graph)
    say([name for name, _ in gm.named_children()])


def sorted_rows(x): return torch.sort(x, 1)[0]
def doubled(x): return torch.cat([x, x], 0)


torch.fx.wrap("sorted_rows")
torch.fx.wrap("doubled")


@register_inference_rule(sorted_rows)
def sorted_type(n):
    n.type = n.args[0].type
    return n.type


@register_refinement_rule(sorted_rows)
def sorted_equal(n): return [Equality(n.args[0].type.dims[0], n.type.dims[0]), Equality(n.args[0].type.dims[1], n.type.dims[1])]


@register_inference_rule(doubled)
def doubled_type(n):
    n.type = TensorType((Dyn, n.args[0].type.dims[1]))
    return n.type


@register_algebraic_expressions_inference_rule(doubled)
def doubled_sizes(n):
    n.type = TensorType((2 * n.args[0].type.dims[0], n.type.dims[1]))
    return n.type


@case
def rules_of_types(say):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 5)

        def forward(self, x): return self.linear(sorted_rows(x))

    def told(gm, type):
        for node in gm.graph.nodes:
            if node.op == "placeholder": node.type = type
        GraphTypeChecker({}, gm).type_check()
        say([str(node.type) for node in gm.graph.nodes])
        infer_symbolic_types(gm)
        say([str(node.type) for node in gm.graph.nodes if node.op != "output"])

    told(torch.fx.symbolic_trace(M()), TensorType((Dyn, 3)))
    gm = torch.fx.symbolic_trace(lambda x: doubled(sorted_rows(x)))
    told(gm, TensorType((Dyn, 3)))
    say(message(lambda: register_inference_rule(doubled)(doubled_type)) != "taken")


@case
def writes_of_programs(say):
    @torch.library.custom_op("fxtest::accum_", mutates_args=("acc",))
    def accum_(acc: torch.Tensor, x: torch.Tensor) -> None: acc.add_(x)

    @accum_.register_fake
    def _(acc, x): return None

    @torch.library.custom_op("fxtest::count_", mutates_args=("acc",))
    def count_(acc: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        acc.add_(x)
        return x.sum()

    @count_.register_fake
    def _(acc, x): return x.new_empty(())

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.b = nn.Buffer(torch.zeros(3))

        def forward(self, x):
            y = x.clone()
            torch.ops.fxtest.accum_(y, x)
            torch.ops.fxtest.accum_(self.b, x[0])
            return y * 2

    class Viewed(nn.Module):
        def forward(self, x):
            y = x.clone()
            n = torch.ops.fxtest.count_(y[0], x[1])
            return y + n

    for module in [M(), Viewed()]:
        ep = export(module, (torch.ones(2, 3),)).run_decompositions({})
        if isinstance(module, Viewed): torch.export.save(ep, sys.argv[2])
        unsafe_remove_auto_functionalized_pass(ep)
        say([str(node.target) for node in ep.graph.nodes if node.op == "call_function"])
        say([[it.kind.name, it.target] for it in ep.graph_signature.output_specs])


@case
def specifications(say):
    IntVar._uid_counter = itertools.count()
    a, b, n = ShapeVar("a", max=64), ShapeVar("b"), IntVar("n", min=-3, optimization_hint=5)
    for it in [a, n, IntVar()]: say(it); say(json.dumps(it.to_jsonable()))
    tensor = TensorSpec([a * 2 + 1, 10, STATIC, b])
    nested = DictSpec({"x": tensor, "y": ObjectSpec({"weight": SeqSpec([tensor, None, 1])})})
    params = ParamsSpec({"x": tensor, "n": n, "*args": [tensor, None], "**kwargs": {"k": nested}})
    spec = ShapesSpec(params, assumptions=[a + b > 10])
    for it in [tensor, nested, params, spec]: say(it)
    for it in [tensor, nested]: say(json.dumps(it.to_jsonable(), default=lambda it: str(it)))
    say(message(lambda: ShapeVar("a", min=-1)))
    say(message(lambda: TensorSpec(["x"])) != "taken")
    say(message(lambda: ParamsSpec({"*others": None})))
    say(message(lambda: ShapesSpec(assumptions=[True])) != "taken")
    say(message(lambda: bool(a > 3)) != "taken")


write(sys.argv[1])
