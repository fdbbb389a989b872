"""What the rest of torch.fx.experimental and torch.export answers: `fixtures/fx/experimental.json`, and a program that calls an operator
that writes on a copy: `fixtures/fx/functional.pt2`.

`ts/test/export/lazyExport.test.ts`, `ts/test/export/shapeEnvironment.test.ts`, `ts/test/export/shapeSolving.test.ts`, `ts/test/passes/metaTracer.test.ts`, `ts/test/passes/swapModules.test.ts`, `ts/test/plugin/assertions.test.ts`, `ts/test/trace/checkpoint.test.ts` and `ts/test/types/rules.test.ts` have the same programs in
TypeScript. Lines are graphs, answers and first lines of errors.

usage: gen_experimental.py OUT.json FUNCTIONAL.pt2 (torch 2.13.0)
"""
import itertools
import json
import math
import re
import sys
import warnings

import sympy
import torch
import torch.nn as nn
from torch.export import Dim, export
from torch.export._swap import _swap_modules
from torch.export.experimental import _ExportPackage, _sticky_export
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
from torch.fx.experimental.rewriter import RewritingTracer
from torch.fx.experimental.symbolic_shapes import (
    CallMethodKey, ConvertIntKey, DimConstraints, DimDynamic, DivideByKey, ShapeEnv, StatelessSymbolicContext, bind_symbols,
    eval_guards, fx_placeholder_vals,
)
from torch.fx.experimental.unify_refinements import infer_symbolic_types
from torch.fx.tensor_type import Dyn, TensorType
from torch._dynamo.source import ConstantSource, LocalSource, TensorProperty, TensorPropertySource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint
from torch.utils._sympy.functions import Mod

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


def symbols_of_inputs(env, *inputs):
    mode = FakeTensorMode(shape_env=env)
    # A tensor that was met before has the symbols that it had.
    return [
        mode.from_tensor(value.detach(), source=ConstantSource(f"x{at}"), symbolic_context=StatelessSymbolicContext(sizes, strides))
        for at, (value, sizes, strides) in enumerate(inputs)
    ]


@case
def bounds_of_expressions(say):
    env = ShapeEnv()
    (x,) = symbols_of_inputs(env, (torch.ones(6, 5), [DimDynamic.DYNAMIC] * 2, None))
    a, b = x.shape
    bool(a <= 10)
    u = env.create_unbacked_symint()
    torch._check(u >= 1)
    torch._check(u <= 7)
    sizes = [a, b, u, a * 2 + 1, a * b, a * u, a // 2, (b + 3) % 4, torch.sym_max(a, u), torch.sym_min(a, b), u - a, a - a * 3]
    for it in [*sizes, (a * b) // u, -(a // 3), b % 2]:
        bounds = env.bound_sympy(it.node.expr)
        say([bounds.lower, bounds.upper])


@case
def symbolic_contexts(say):
    D = DimDynamic
    matrix, spaced = torch.ones(4, 3), torch.ones(8, 6).as_strided((4, 2), (12, 3))
    inputs = [
        (matrix, [D.UNBACKED, D.STATIC], None), (matrix, [D.UNBACKED, D.DYNAMIC], None), (matrix, [D.STATIC, D.UNBACKED], None),
        (torch.ones(4, 4), [D.DUCK] * 2, None), (torch.ones(4, 1), [D.UNBACKED] * 2, None), (torch.ones(4, 5).t(), [D.UNBACKED] * 2, None),
        (matrix, [D.DYNAMIC] * 2, [D.DYNAMIC] * 2), (matrix, [D.STATIC] * 2, [D.DYNAMIC] * 2), (matrix, [D.STATIC] * 2, [D.DUCK] * 2),
        (spaced, [D.DYNAMIC] * 2, None), (spaced, [D.DYNAMIC] * 2, [D.DUCK, D.DYNAMIC]), (spaced, [D.STATIC] * 2, None),
        (torch.ones(8, 6).as_strided((4, 6), (12, 1)), [D.UNBACKED] * 2, None), (torch.ones(20)[12:], [D.DYNAMIC], None),
    ]
    # Symbols of examples have other names here and there, and are numbered in the order in which they are met.
    names = {}
    for it in symbols_of_inputs(ShapeEnv(), *inputs):
        met = lambda found: found.group() if found.group()[0] == "u" else names.setdefault(found.group(), f"s{len(names)}")
        say(re.sub(r"\b[su]\d+", met, f"{tuple(it.shape)} {it.stride()} {it.storage_offset()}"))
    say(message(lambda: StatelessSymbolicContext([D.STATIC], [D.STATIC])) != "taken")


@case
def guards_as_text(say):
    def f(x, y):
        if x.shape[0] > 3: return x.sin() + y
        return x.cos() + y

    vals = fx_placeholder_vals(make_fx(f, tracing_mode="symbolic")(torch.ones(4, 3), torch.ones(4, 1)))
    env = vals[0].fake_mode.shape_env
    for ignore_static in (True, False):
        code = env.produce_guards_expression(vals, ignore_static=ignore_static)
        say(code)
        for a, b in [((5, 3), (5, 1)), ((2, 3), (2, 1)), ((5, 3), (6, 1)), ((5, 7), (5, 1)), ((5, 3), (5, 2))]:
            say(env.evaluate_guards_expression(code, [torch.ones(a), torch.ones(b)]))
    say(env.evaluate_guards_expression("L['t0'].size()[0] % 2 == 0 or L['t1'] > 3", [torch.ones(3), 4]))


@case
def solved_constraints(say):
    def solved(sizes, conditions):
        names = ["dx", "dy"]
        symbols = [sympy.Symbol(f"s{at}", positive=True, integer=True) for at in range(2)]
        sources = [TensorPropertySource(LocalSource("x"), TensorProperty.SIZE, at) for at in range(2)]
        constraints = DimConstraints(
            {it: [source] for it, source in zip(symbols, sources)}, {it: sympy.Integer(size) for it, size in zip(symbols, sizes)},
            set(symbols), {source.name: name for name, source in zip(names, sources)},
        )
        say([constraints.add(it) for it in conditions(*symbols)])
        constraints.solve()
        forced = constraints.forced_specializations()
        say([f"{name}: {forced[name]}" for name in sorted(forced)])
        dims = {"x": {at: Dim(name) for at, name in enumerate(names)}}
        say(constraints.prettify_results(None, dims, None, forced))

    solved([6, 5], lambda a, b: [a >= 4, a <= 9, sympy.Eq(b, 5)])
    solved([6, 5], lambda a, b: [sympy.Eq(Mod(a, 2), 0)])
    solved([6, 5], lambda a, b: [sympy.Eq(2 * a + b, 17), sympy.Eq(b, 5)])
    solved([7, 5], lambda a, b: [sympy.Eq(Mod(a + 1, 4), 0), a > 2])
    solved([6, 5], lambda a, b: [a > 0])


@case
def deferred_guards(say):
    def exported(x, y, dims, forward):
        M = type("M", (nn.Module,), {"forward": lambda self, x, y: forward(x, y)})
        x, y = x.clone(), y.clone()
        shapes = {"x": {0: dims[0]}, "y": {0: dims[1]}}
        try: res = export(M(), (x, y), dynamic_shapes=shapes, strict=False, prefer_deferred_runtime_asserts_over_guards=True)
        except Exception as error: return say(str(error).strip().split("\n\n")[0])
        checks = [it.args[1] for it in res.graph.nodes if "_assert_scalar" in str(it.target)]
        say([re.sub(r" on node .*", "", it) for it in checks])
        say([f"{it.lower} {it.upper}" for it in res.range_constraints.values()])

    named, dynamic = [Dim("dx"), Dim("dy")], [Dim.DYNAMIC, Dim.DYNAMIC]
    x = torch.ones(4, 3)
    exported(torch.ones(2, 3), torch.ones(6), named, lambda x, y: x.reshape(-1) + y)
    exported(x, x, named, lambda x, y: x + y)
    exported(x, x, named, lambda x, y: (x.sin() if x.shape[0] > 3 else x, y))
    exported(x, x, dynamic, lambda x, y: (x.sin() if x.shape[0] > 3 else x, y))
    exported(x, x, named, lambda x, y: (x.sin() if x.shape[0] + y.shape[0] > 3 else x, y))
    exported(x, x, dynamic, lambda x, y: (x.sin() if x.shape[0] * y.shape[0] != 5 else x, y))
    exported(x, x, named, lambda x, y: (x.sin() if x.shape[0] * y.shape[0] != 5 else x, y))
    exported(x, x, named, lambda x, y: (x.sin() if x.shape[0] % 2 == 0 else x, y))


@case
def assertions_of_python(say):
    def summed(x):
        assert x.sum() > 0, "a sum above zero"
        assert x.min() > -9
        return x.relu()

    say(RewritingTracer().trace(summed))


def numbers(*sizes): return (torch.arange(math.prod(sizes)).reshape(sizes) % 5 - 2) / 2


class Doubles(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), float(by)))

    def forward(self, x): return x * self.weight


class Pair(nn.Module):
    def forward(self, xs, *, k): return {"a": xs[0] + k, "b": [xs[1] * k]}


class Joined(nn.Module):
    def forward(self, d): return d["a"] - d["b"][0]


class Chained(nn.Module):
    def __init__(self):
        super().__init__()
        self.foo = Doubles(2)
        self.bar = Doubles(3)

    def forward(self, x): return self.bar(self.foo(x))


class Apart(nn.Module):
    def __init__(self):
        super().__init__()
        self.foo = Doubles(2)
        self.bar = Doubles(3)

    def forward(self, x, y): return self.bar(self.foo(x).relu() + y)


class Structured(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pair()
        self.joined = Joined()

    def forward(self, x, y): return self.joined(self.pair((x, y), k=x)), {"y": y}


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = Chained()

    def forward(self, x, *, z): return self.m(x) + z


class Repeated(nn.Module):
    def __init__(self):
        super().__init__()
        self.foo = Doubles(2)

    def forward(self, x): return self.foo(self.foo(x).relu())


@case
def swapped_modules(say):
    def swapped(model, args, modules, preserved, kwargs={}):
        program = export(model, args, kwargs, preserve_module_call_signature=preserved, strict=False)
        unlifted = program.module(check_guards=False)
        program.module = lambda: unlifted
        res = _swap_modules(program, modules)
        say(res.graph)
        say(res(*args, **kwargs))

    x, y = numbers(2, 3), numbers(2, 3) + 1
    swapped(Chained(), (x,), {"foo": Doubles(5)}, ("foo",))
    swapped(Chained(), (x,), {"foo": Doubles(5), "bar": Doubles(7)}, ("foo", "bar"))
    swapped(Apart(), (x, y), {"foo": Doubles(5)}, ("foo",))
    swapped(Apart(), (x, y), {"bar": Doubles(5), "foo": Doubles(7)}, ("foo", "bar"))
    swapped(Structured(), (x, y), {"pair": Pair()}, ("pair", "joined"))
    swapped(Structured(), (x, y), {"joined": Joined()}, ("joined",))
    swapped(Structured(), (x, y), {"pair": Pair(), "joined": Joined()}, ("pair", "joined"))
    swapped(Nested(), (x,), {"m.bar": Doubles(5)}, ("m.bar",), {"z": y})
    say(message(lambda: swapped(Repeated(), (x,), {"foo": Doubles(5)}, ("foo",))))


@case
def export_package(say):
    def fn(x): return x + 1

    package = _ExportPackage()
    exporter = package._exporter("fn", fn)
    say(exporter(numbers(2)))
    say(message(lambda: exporter(numbers(2))).replace(str(fn), "fn"))
    say([len(package.methods["fn"].fallbacks), len(package.methods["fn"].overloads)])

    def short(x): assert x.shape[0] <= 3

    def long(x):
        assert x.shape[0] > 3
        return {"args": ({0: Dim("n", min=4)},)}

    package = _ExportPackage()
    exporter = package._exporter("double", fn, fallback="error")._define_overload("short", short)._define_overload("long", long)
    for size in (2, 5, 7): say(exporter(numbers(size)))
    say([name for name, _ in package._method_overloads])
    for _, program in package._method_overloads: say(program.graph)
    say(message(lambda: exporter(numbers(3))) != "taken")
    say(message(lambda: exporter._define_overload("short", short)))
    say(message(lambda: exporter._define_overload("2", short)))
    refusing = package._exporter("none", fn, fallback="error")
    say(message(lambda: refusing(numbers(2))).replace(str(fn), "fn"))
    say(message(lambda: package._exporter("none", fn, fallback="twice")(numbers(2))))
    say(list(package.methods))
    module = package._exporter("module", Doubles(2))
    say(module(numbers(2, 3)))
    say(package.methods["module"].fallbacks[0].graph)


@case
def sticky_export(say):
    model = Doubles(2)
    model.forward = _sticky_export(model.forward)
    say(model(numbers(2, 3)))
    first = model.forward._exported_artifact
    say(first.graph)
    say(model(numbers(4, 3)))
    say(model.forward._exported_artifact is first)
    model = Doubles(2)
    model.forward = _sticky_export(model.forward, lambda x: {"x": {0: Dim.DYNAMIC}})
    say(model(numbers(2, 3)))
    say(model.forward._exported_artifact(numbers(4, 3)))
    model = Doubles(2)
    model.forward = _sticky_export(model.forward, lambda x: {"y": {0: Dim.DYNAMIC}})
    wrapper = model.forward
    say(message(lambda: model(numbers(2, 3))) != "taken")
    say(model.forward is wrapper)


@case
def checkpointed(say):
    weight = numbers(3, 3) + 1

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Doubles(2)

        def forward(self, x):
            return checkpoint(lambda it: self.inner(it).relu(), x, use_reentrant=False) + 1

    def f(x, w): return checkpoint(lambda x, w: torch.sin(x @ w), x, w, use_reentrant=False).sum()

    def scaled(x, *, scale): return x * scale

    say(export(Layer(), (numbers(2, 3),), strict=False).graph)
    say(torch.fx.symbolic_trace(Layer()).graph)
    say(torch.fx.symbolic_trace(f).graph)
    for pre_dispatch in (False, True): say(make_fx(f, pre_dispatch=pre_dispatch)(numbers(2, 3), weight).graph)
    say(torch.func.vmap(f)(torch.stack([numbers(2, 3), numbers(2, 3) + 1]), torch.stack([weight, weight * 2])))
    for use_reentrant in (False, True):
        x, w = numbers(2, 3).requires_grad_(), (numbers(3, 3) + 1).requires_grad_()
        y = checkpoint(lambda x, w: torch.sin(x @ w), x, w, use_reentrant=use_reentrant, preserve_rng_state=False).sum()
        say([it.detach() for it in (y, *torch.autograd.grad(y, [x, w]))] if not use_reentrant else (y.backward(), x.grad, w.grad)[1:])
    say(checkpoint(scaled, numbers(2), use_reentrant=False, scale=3))
    say(message(lambda: checkpoint(scaled, numbers(2), use_reentrant=True, scale=3)))
    say(message(lambda: checkpoint(scaled, numbers(2), use_reentrant=True, debug=True)))


write(sys.argv[1])
