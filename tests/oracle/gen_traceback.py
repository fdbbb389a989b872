"""What torch.fx.traceback notes about nodes: `fixtures/fx/traceback.json`, lines by program.

`ts/test/fx/traceback.test.ts` has the same programs in TypeScript. Numbers of graphs are counted from 0 in the order in which they are said.

usage: gen_traceback.py OUT.json (torch 2.13.0)
"""
import copy
import json
import re
import sys
import warnings

import torch
import torch.fx as fx
import torch.nn as nn
from torch.fx import traceback as tb
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import NodeSource, NodeSourceAction

warnings.filterwarnings("ignore")
CASES = {}


def case(fn):
    graphs = {}

    def text(it):
        if isinstance(it, str):
            return re.sub(r"(graph_id'?[=:] ?)(\d{6,})", lambda m: m[1] + str(graphs.setdefault(m[2], len(graphs))), it)
        if isinstance(it, dict): return "{" + ", ".join(f"{k}: {text(v)}" for k, v in it.items()) + "}"
        if isinstance(it, (tuple, list)): return "[" + ", ".join(text(x) for x in it) + "]"
        if isinstance(it, int) and it > 99999 and not isinstance(it, bool): return str(graphs.setdefault(str(it), len(graphs)))
        return text(str(it)) if not isinstance(it, (int, type(None))) else str(it)

    lines = []
    fn(lambda it: lines.append(text(it)))
    CASES[fn.__name__] = lines


def customs(gm): return [[n.name, n.meta.get("custom")] for n in gm.graph.nodes]
def sources(gm): return [[n.name, [s.print_readable() for s in n.meta.get("from_node", [])]] for n in gm.graph.nodes]


class M(nn.Module):
    def forward(self, x):
        with tb.annotate({"stage": 1}):
            y = x + 1
            with tb.annotate({"tag": "inner", "stage": 2}):
                y = y * 2
            y = y.sin()
        return y.cos()


@case
def annotations_of_export(say):
    say(customs(torch.export.export(M(), (torch.ones(2),), strict=False).graph_module))


@case
def annotations_of_make_fx(say):
    say(customs(make_fx(lambda x: M()(x))(torch.ones(2))))
    with tb.preserve_node_meta():
        say(customs(make_fx(lambda x: M()(x))(torch.ones(2))))


@case
def annotations_of_symbolic_trace(say):
    say(customs(fx.symbolic_trace(M())))
    with tb.preserve_node_meta():
        say(customs(fx.symbolic_trace(M())))


@case
def annotated_functions(say):
    @tb.annotate_fn({"pp_stage": 1})
    def f(x): return x + 1

    class N(nn.Module):
        def forward(self, x): return f(x).sin()

    say(customs(torch.export.export(N(), (torch.ones(2),), strict=False).graph_module))


@case
def current_meta(say):
    say(tb.has_preserved_node_meta()); say(tb.get_current_meta())
    with tb.preserve_node_meta():
        say(tb.has_preserved_node_meta())
        tb.set_stack_trace(["line one\n", "line two\n"])
        say(tb.format_stack()); say(tb.get_current_meta())
        with tb.annotate({"a": 1}): say(tb.get_current_meta())
        with tb.preserve_node_meta(False):
            say(tb.has_preserved_node_meta())
            tb.set_stack_trace(["another"])
        say(tb.get_current_meta())
        tb.set_stack_trace([])
        say(tb.format_stack()); say(tb.get_current_meta())
    say(tb.get_current_meta())


@case
def meta_of_a_node(say):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.relu, (x,))
    with tb.set_current_meta(node, "a_pass"): say(tb.get_current_meta())
    with tb.preserve_node_meta():
        with tb.set_current_meta(x, "a_pass"): say(tb.get_current_meta())
        node.meta["custom"] = {"k": 1}
        with tb.set_current_meta(node, "a_pass"):
            say(sorted(tb.get_current_meta())); say(tb.get_current_meta()["custom"])
            say(tb.get_current_meta()["from_node"][0].print_readable())
    say(tb.get_current_replay_node())
    with tb.set_current_replay_node(node): say(tb.get_current_replay_node())
    say(tb.get_current_replay_node())


@case
def node_sources(say):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.relu, (x,))
    first = NodeSource(node, "first", NodeSourceAction.CREATE)
    say(first.print_readable()); say(first.to_dict()); say([first.name, first.target, first.pass_name])
    node.meta["from_node"] = [first]
    second = NodeSource(node, "second", [NodeSourceAction.REPLACE, NodeSourceAction.CREATE])
    say(second.print_readable()); say(second.to_dict())
    say(second == NodeSource(node, "second", [NodeSourceAction.REPLACE, NodeSourceAction.CREATE])); say(second == first)
    say(NodeSource._from_dict(second.to_dict()) == second)
    none = NodeSource(None, "nothing")
    say(none.print_readable()); say(none.to_dict())
    say(tb.get_graph_provenance_json(graph))


@case
def interpreters(say):
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    for n in gm.graph.nodes: n.meta["custom"] = {"of": n.name}
    with tb.preserve_node_meta():
        traced = make_fx(lambda x: fx.Interpreter(gm).run(x))(torch.ones(2))
    say(customs(traced)); say(sources(traced))
    again = make_fx(lambda x: fx.Interpreter(traced).run(x))(torch.ones(2))
    say(customs(again)); say(sources(again))
    with tb.preserve_node_meta():
        again = make_fx(lambda x: fx.Interpreter(traced).run(x))(torch.ones(2))
    say(sources(again)); say(tb.get_graph_provenance_json(again.graph))


@case
def transformers(say):
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    for n in gm.graph.nodes: n.meta["custom"] = {"of": n.name}
    res = fx.Transformer(gm).transform()
    say(customs(res)); say(sources(res))


@case
def copies(say):
    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    for n in gm.graph.nodes: n.meta["from_node"] = [NodeSource(n, "made", NodeSourceAction.CREATE)]
    say(sources(copy.deepcopy(gm)))
    new = fx.Graph(); new.output(new.graph_copy(gm.graph, {}))
    say(sources(fx.GraphModule({}, new)))


@case
def programs(say):
    class N(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x): return self.linear(x).relu()

    ep = torch.export.export(N(), (torch.ones(1, 2),), strict=False)
    say(sources(ep.graph_module))
    say(sources(ep.module()))
    say(sources(ep.run_decompositions().graph_module))


with open(sys.argv[1], "w") as file:
    json.dump(CASES, file, indent=1)
    file.write("\n")
print(len(CASES), "programs")
