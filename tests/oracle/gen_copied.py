"""Records what `copy.deepcopy` of a GraphModule shares with the original, and what it makes anew.

    python tests/oracle/gen_copied.py > tests/fixtures/copied/module.json

The module has two linear layers with one weight, a graph module inside, a parameter and a buffer; each node and the module
hold the same list in their `meta`. `true` says that something is the same object in both.
"""

import copy
import json

import torch
from torch.fx import Graph, GraphModule


def linear(weight):
    res = torch.nn.Linear(2, 2, bias=False)
    res.weight = weight
    return res


weight = torch.nn.Parameter(torch.ones(2, 2))
inner_graph = Graph()
inner_graph.output(inner_graph.call_function(torch.relu, (inner_graph.placeholder("y"),)))
root = torch.nn.Module()
root.a, root.b = linear(weight), linear(weight)
root.inner = GraphModule(torch.nn.Module(), inner_graph)
root.w = torch.nn.Parameter(torch.ones(2))
root.register_buffer("buf", torch.zeros(2))

graph = Graph()
x = graph.placeholder("x", type_expr=int)
node = graph.call_module("inner", (graph.call_module("b", (graph.call_module("a", (x,)),)),))
node = graph.call_function(torch.add, (node, graph.get_attr("w")))
node = graph.call_function(torch.add, (node, graph.get_attr("buf")))
graph.erase_node(graph.call_function(torch.relu, (node,)))
graph.output(node)
gm = GraphModule(root, graph)
note = [1]
for it in gm.graph.nodes:
    it.meta["note"] = note
gm.meta["note"] = note
gm.inner.meta["note"] = note
gm.eval()
gm.a.train()
hook = lambda node: None
gm._register_create_node_hook(hook)

other = copy.deepcopy(gm)
nodes, others = list(gm.graph.nodes), list(other.graph.nodes)
print(json.dumps({
    "nodes": [it.name for it in others],
    "types": [it.type and it.type.__name__ for it in others],
    "node meta is shared": any(a.meta is b.meta for a, b in zip(nodes, others)),
    "values of node meta are shared": all(it.meta["note"] is note for it in others),
    "meta is shared": other.meta is gm.meta,
    "value of meta is shared": other.meta["note"] is note,
    "value of meta": other.meta["note"],
    "graph knows its module": other.graph.owning_module is other,
    "modules": {name: it.training for name, it in other.named_modules() if name},
    "a is shared": other.a is gm.a,
    "weight is shared": other.a.weight is gm.a.weight,
    "weights are tied": other.a.weight is other.b.weight,
    "parameters": [name for name, _ in other.named_parameters()],
    "buffers": [name for name, _ in other.named_buffers()],
    "buffer is shared": other.buf is gm.buf,
    "inner is shared": other.inner is gm.inner,
    "graph of inner is shared": other.inner.graph is gm.inner.graph,
    "graph of inner knows its module": other.inner.graph.owning_module is other.inner,
    "value of meta of inner is shared": other.inner.meta["note"] is note,
    "hooks": other._create_node_hooks == [hook],
    # The original gives `relu_1`, since a name is given once.
    "the name of another relu": other.graph.call_function(torch.relu, (others[0],)).name,
}, indent=1))
