"""What torch.fx answers to the small functions around its passes: `fixtures/fx/common.json`, a list of lines by case.

Cases have the names that `ts/test/passes/smallFunctions.test.ts` has for the same programs in TypeScript.

usage: gen_fx_common.py OUT.json (torch 2.13.0)
"""
import json
import sys

import torch
import torch.fx as fx
import torch.nn as nn
from torch.fx import Graph, GraphModule, Tracer, symbolic_trace
from torch.fx._symbolic_trace import is_fx_symbolic_tracing
from torch.fx._utils import first_call_function_nn_module_stack, get_node_context
from torch.fx.experimental.optimization import matches_module_pattern, replace_node_module
from torch.fx.passes import pass_manager as pm
from torch.fx.passes.split_module import split_module, split_module_simple
from torch.fx.passes.splitter_base import NodeEventTracker, generate_inputs_for_submodules
from torch.fx.passes.utils.common import compare_graphs, lift_subgraph_as_module

CASES = {}


def case(fn):
    lines = []
    fn(lines.append)
    CASES[fn.__name__] = lines


def refusal(body):
    try: body()
    except Exception as error: return str(error).split("\n")[0]
    return "taken"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        y = torch.relu(self.inner(self.first(x)))
        return torch.mul(y, self.scale), y


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def forward(self, x):
        y = torch.relu(self.inner(self.first(x)))
        return torch.mul(y, x), y


@case
def lifting(say):
    gm = symbolic_trace(Net())
    part = Graph()
    x = part.placeholder("x")
    y = part.call_module("inner.0", (x,))
    part.output(part.call_function(torch.mul, (y, part.get_attr("scale"))))
    module, mapping = lift_subgraph_as_module(gm, part, comp_name="part", class_name="Part")
    say(type(module).__name__); say(str(mapping)); say(str(module.graph))
    say(str([name for name, _ in module.named_modules()]))
    say(str([name for name, _ in module.named_parameters()]))
    say(str(module.inner.__getattr__("0") is gm.inner.__getattr__("0")))
    module, mapping = lift_subgraph_as_module(gm, part)
    say(type(module).__name__); say(str(mapping))


def pairs():
    def add(a, b): return torch.add(a, b)
    def added(b, a): return torch.add(a, b)
    def twice(a, b): return torch.add(a, b), torch.add(a, b)
    def once(a, b):
        c = torch.add(a, b)
        return c, c
    def chain(a, b): return torch.relu(torch.add(a, b))
    def other(a, b): return torch.relu(torch.sub(a, b))
    def more(a, b, c): return torch.add(a, b)
    def alpha(a, b): return torch.add(a, b, alpha=2)
    def alpha3(a, b): return torch.add(a, b, alpha=3)
    def unused(a, b): return a
    def second(a, b): return b
    return [add, added, twice, once, chain, other, more, alpha, alpha3, unused, second]


@case
def comparing(say):
    for left in pairs():
        for right in pairs():
            a, b = symbolic_trace(left).graph, symbolic_trace(right).graph
            try: say(f"{left.__name__} {right.__name__} {compare_graphs(a, b)}")
            except Exception as error: say(f"{left.__name__} {right.__name__} {type(error).__name__}")


@case
def legacy_passes(say):
    def double(x): return x * 2
    def increment(x): return x + 1
    def push(x): x.append(1); return len(x)
    manager = pm.PassManager([double, increment])
    say(str(manager(3)))
    manager.add_pass(double); say(str(manager(3)))
    manager.add_constraint(pm.this_before_that_pass_constraint(double, increment))
    say(refusal(lambda: manager(3)).replace(str(double), "double").replace(str(increment), "increment"))
    manager.remove_pass(["double"]); say(str(manager(3)))
    manager.replace_pass(increment, double); say(str(manager(3)))
    say(str(pm.PassManager.build_from_passlist([increment, increment])(0)))
    loop = pm.loop_pass(increment, n_iter=3)
    say(str(loop(0))); say(loop.__name__)
    say(str(pm.loop_pass(increment, predicate=lambda it: it < 10)(0)))
    for given in ({}, {"n_iter": 1, "predicate": lambda it: False}): say(refusal(lambda: pm.loop_pass(increment, **given)))
    say(refusal(lambda: pm.loop_pass(increment, n_iter=0)(1)))
    say(refusal(lambda: pm.loop_pass(increment, n_iter=-1)(1)))
    wrapped = pm.inplace_wrapper(push)
    say(str(wrapped([5]))); say(wrapped.__name__)
    order = pm.these_before_those_pass_constraint(double, increment)
    for passes in ([pm.loop_pass(increment, 3), pm.loop_pass(double, 2)], [pm.loop_pass(double, 2), pm.loop_pass(increment, 3)], [pm.inplace_wrapper(pm.loop_pass(increment, 1)), double]):
        found = refusal(lambda: pm.PassManager(passes, [order]).validate())
        for it in passes: found = found.replace(str(it), it.__name__)
        say(found)
    order = pm.this_before_that_pass_constraint(double, increment)
    say(refusal(lambda: pm.PassManager([pm.loop_pass(increment, 3), double], [order]).validate()))


@case
def fresh_names(say):
    tracer = Tracer()
    tracer.root = nn.Module()
    tracer.graph = Graph()
    for _ in range(2): say(tracer.get_fresh_qualname("_c"))
    tracer.root._c0 = torch.ones(1); say(tracer.get_fresh_qualname("_c"))
    tracer.root._c1 = torch.ones(1); say(tracer.get_fresh_qualname("_c"))
    say(tracer.get_fresh_qualname("_c"))
    tracer.root._c4 = torch.ones(1); say(tracer.get_fresh_qualname("_c")); say(tracer.get_fresh_qualname("_c"))
    del tracer.root._c0
    say(tracer.get_fresh_qualname("_c"))
    tracer.root._c0 = torch.ones(1); say(tracer.get_fresh_qualname("_c"))
    say(tracer.get_fresh_qualname("forwar"))
    tracer.root.other0 = 1; say(tracer.get_fresh_qualname("other"))


@case
def tracing(say):
    def look(x):
        say(str(is_fx_symbolic_tracing()))
        return x
    symbolic_trace(look)
    look(1)


@case
def simple_split(say):
    gm = symbolic_trace(Plain())
    calls = [n for n in gm.graph.nodes if n.op.startswith("call")]
    for parts in ([0, 0, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 2, 3, 4], [1, 1, 0, 0, 0]):
        split = split_module_simple(gm, dict(zip(calls, parts)), partition_affix="p" if parts[-1] == 4 else None)
        say(str(split.graph))
        for name, child in split.named_children():
            if isinstance(child, GraphModule): say(f"{name}: {child.graph}")


@case
def patterns(say):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.Linear(2, 2), nn.Tanh()))
    gm = symbolic_trace(model)
    modules = dict(gm.named_modules())
    for pattern in ([nn.Linear, nn.ReLU], [nn.Linear, nn.Tanh], [nn.Linear], [nn.ReLU, nn.Linear], [nn.Module, nn.ReLU], [nn.Linear, nn.ReLU, nn.Linear], []):
        say(str([n.name for n in gm.graph.nodes if matches_module_pattern(pattern, n, modules)]))
    node = next(n for n in gm.graph.nodes if n.target == "2.1")
    replace_node_module(node, modules, nn.GELU())
    say(str(gm.get_submodule("2.1"))); say(str(modules["2.1"])); say(str(gm.graph))


@case
def submodule_inputs(say):
    gm = symbolic_trace(Net())
    x = torch.zeros(1, 2)
    found = generate_inputs_for_submodules(gm, (x,), ["first", "inner.1", "nothing"])
    say(str({name: [tuple(it.shape) for it in given] for name, given in found.items()}))
    say(str(found["first"][0] is x))
    found = generate_inputs_for_submodules(gm, (x,), ["first"], deepcopy=True)
    say(str(found["first"][0] is x))
    say(str(len(gm.first._forward_pre_hooks)))
    say(str(generate_inputs_for_submodules(gm, (x,), [])))


@case
def events(say):
    graph = symbolic_trace(lambda x: torch.relu(torch.neg(torch.abs(x)))).graph
    x, a, b, c, _ = graph.nodes
    tracker = NodeEventTracker(0, "")
    tracker.add(a, "init_acc|callable_and_operator_supported")
    tracker.add(b, "acc_del|non_tensor_input", a)
    tracker.add(c, "acc_del|user_of", b)
    tracker.add(c, "cpu|again")
    tracker.print_all(say)
    tracker.print_node("relu", recursive=True, writer=say)
    tracker.print_node("relu", recursive=True, tab="|-", writer=say)
    tracker.print_node("nobody", writer=say)
    say(json.dumps(tracker.to_dict()))


@case
def contexts(say):
    gm = symbolic_trace(Net())
    nodes = list(gm.graph.nodes)
    for at, count in ((3, 2), (3, 1), (0, 1), (6, 4)): say(get_node_context(nodes[at], count))
    say(str(first_call_function_nn_module_stack(Graph())))


@case
def fusing_by_hand(say):
    from torch.fx.passes.utils.fuser_utils import erase_nodes, fuse_as_graphmodule, insert_subgm

    def fused(pick, **options):
        gm = symbolic_trace(lambda x, y: torch.neg(torch.relu(x) + y) * torch.abs(y))
        nodes = [it for it in gm.graph.nodes if it.name in pick]
        sub, inputs, outputs = fuse_as_graphmodule(gm, nodes, "fused_0", **options)
        say(str(sub.graph)); say(str([it.name for it in inputs])); say(str([it.name for it in outputs]))
        insert_subgm(gm, sub, inputs, outputs)
        erase_nodes(gm, nodes)
        gm.graph.lint()
        say(str(gm.graph))

    fused(["relu", "add"])
    fused(["relu", "add"], always_return_tuple=True)
    fused(["add", "abs_1", "neg"])
    gm = symbolic_trace(lambda x: torch.neg(torch.abs(torch.relu(x))))
    nodes = list(gm.graph.nodes)
    say(refusal(lambda: fuse_as_graphmodule(gm, [nodes[1], nodes[3]], "fused_0")))


@case
def unique_names(say):
    from torch.fx.experimental.const_fold import get_unique_attr_name_in_module

    gm = symbolic_trace(Net())
    for name in ["fresh", "first", "a.b-c", "1st", "scale", "first.weight"]: say(get_unique_attr_name_in_module(gm, name))
    gm.first_1 = nn.ReLU()
    say(get_unique_attr_name_in_module(gm, "first"))


json.dump(CASES, open(sys.argv[1], "w"), indent=1)
print({name: len(lines) for name, lines in CASES.items()})
