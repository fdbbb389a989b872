"""Records which nodes torch finds to come from one call of a function or module.

usage: python tests/oracle/gen_sources.py OUT      (torch 2.15)

OUT/cases.jsonl: {name, nodes, wanted, partitions, connected}. `nodes` are {name, op, args, meta}, where `args` are the names
of the nodes that are arguments themselves, and `meta` has the texts of source_fn_stack, torch_fn and nn_module_stack as a
.pt2 file has them. `wanted` are sources by their names in such texts; `partitions` are [source, [{nodes, input_nodes,
output_nodes, params}]]; `connected` are the pairs of partitions, numbered through, of which the second uses the first.
"""
import json
import operator
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
from torch import nn
from torch._export.serde.serialize import GraphModuleSerializer
from torch.fx import Node
from torch.fx.passes.utils.source_matcher_utils import check_subgraphs_connected, get_source_partitions

KEYS = ("source_fn_stack", "torch_fn", "nn_module_stack")
F = nn.functional


class Shared(nn.Module):
    """One layer called twice, and its weight used by a function."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 3)

    def forward(self, x):
        y = F.relu(self.a(x))
        return self.b(y) + self.b(y * 2), F.linear(y, self.b.weight)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2))
        self.more = nn.ModuleList([nn.Conv2d(3, 3, 3, padding=1) for _ in range(2)])

    def forward(self, x):
        x = self.layers(x)
        for layer in self.more:
            x = torch.cat([layer(x), F.gelu(x)], 1)[:, :3]
        return F.layer_norm(x, x.shape[-1:])


MODELS = {"shared": (Shared, (2, 3)), "convolutions": (Convolutions, (1, 1, 12, 12))}
WANTED = [
    nn.Linear, F.linear, torch._C._nn.linear, F.relu, nn.Conv2d, nn.BatchNorm2d, nn.ReLU, nn.MaxPool2d, torch.cat, F.gelu,
    torch._C._nn.gelu, F.layer_norm, operator.mul, operator.add, "linear", "relu", "conv2d", "cat", "add", "no_such_source",
]


def texts(serializer, node):
    return {key: it for key, it in serializer.serialize_metadata(node).items() if key in KEYS}


def record(name, program, module):
    serializer = GraphModuleSerializer(program.graph_signature, program.module_call_graph)
    text = lambda it: it if isinstance(it, str) else serializer.serialize_operator(it)
    graph = module.graph
    names = lambda nodes: [it.name for it in nodes]
    nodes = [
        {"name": it.name, "op": it.op, "args": names(a for a in it.args if isinstance(a, Node)),
         "uses": names(it.all_input_nodes), "meta": texts(serializer, it)}
        for it in graph.nodes
    ]
    found = get_source_partitions(graph, WANTED)
    told = lambda it: {key: names(getattr(it, key)) for key in ("nodes", "input_nodes", "output_nodes", "params")}
    flat = [it for partitions in found.values() for it in partitions]
    pairs = [(a, b) for a in range(len(flat)) for b in range(len(flat)) if check_subgraphs_connected(flat[a], flat[b])]
    return {
        "name": name, "nodes": nodes, "wanted": [text(it) for it in WANTED],
        "partitions": [[text(source), [told(it) for it in partitions]] for source, partitions in found.items()],
        "connected": pairs,
    }


def cases():
    for name, (model, sizes) in MODELS.items():
        for strict in (True, False):
            torch.manual_seed(0)
            program = torch.export.export(model().eval(), (torch.randn(sizes),), strict=strict)
            kind = "strict" if strict else "traced"
            yield record(f"{name}, {kind}", program, program.graph_module)
            core = program.run_decompositions()
            yield record(f"{name}, {kind}, core operators", core, core.graph_module)
            # With the parameters as attributes.
            yield record(f"{name}, {kind}, module", core, core.module())


out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
lines = [json.dumps(it) for it in cases()]
(out / "cases.jsonl").write_text("\n".join(lines) + "\n")
print(len(lines), "cases")
