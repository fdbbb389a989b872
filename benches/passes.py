"""torch.fx's passes on synthetic graphs: the median milliseconds of each, after a warm-up, as a JSON object.

The graphs are those of crates/engine/benches/passes.rs. Garbage is collected before each clock starts.
"""

import gc
import json
import statistics
import sys
import time

import torch
from torch import fx
from torch.fx.passes.dialect.common.cse_pass import CSEPass
from torch.fx.passes.fake_tensor_prop import FakeTensorProp
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import create_op_support
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.split_module import split_module
from torch.fx.passes.tools_common import legalize_graph
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

CYCLE = [torch.relu, torch.neg, torch.sigmoid, torch.tanh, torch.abs]
OTHERS = [torch.neg, torch.sigmoid, torch.tanh, torch.abs, torch.neg, torch.sin, torch.cos, torch.exp]


def owned(graph):
    return fx.GraphModule(torch.nn.Module(), graph)


def chain(n, is_dead=False):
    graph = fx.Graph()
    x = last = graph.placeholder("x")
    for at in range(n):
        last = graph.call_function(CYCLE[at % 5], (last,))
    graph.output(x if is_dead else last)
    return owned(graph)


def duplicates(n):
    graph = fx.Graph()
    last = graph.placeholder("x")
    for _ in range(n // 4):
        a = graph.call_function(torch.ops.aten.sin.default, (last,))
        b = graph.call_function(torch.ops.aten.sin.default, (last,))
        both = graph.call_function(torch.ops.aten.add.Tensor, (a, b))
        last = graph.call_function(torch.ops.aten.neg.default, (both,))
    graph.output(last)
    return owned(graph)


def patterns(n):
    graph = fx.Graph()
    x = last = graph.placeholder("x")
    for _ in range(n // 10):
        last = graph.call_function(torch.relu, (graph.call_function(torch.add, (last, x)),))
        for other in OTHERS:
            last = graph.call_function(other, (last,))
    graph.output(last)
    return owned(graph)


def pattern(a, b):
    return torch.relu(torch.add(a, b))


def replacement(a, b):
    return torch.mul(a, b)


PATTERN = fx.symbolic_trace(pattern).graph


def split(module):
    place = {node: at for at, node in enumerate(module.graph.nodes)}
    return split_module(module, module, lambda node: place[node] * 4 // len(place))


def propose(module):
    place = {node: at for at, node in enumerate(module.graph.nodes)}
    support = create_op_support(lambda _, node: node.op == "call_function" and place[node] % 5 != 0)
    return CapabilityBasedPartitioner(module, support).propose_partitions()


BENCHES = {
    "dce.nothing_dead": (chain, lambda it: it.graph.eliminate_dead_code(), 10**5),
    "dce.all_dead_chain": (lambda n: chain(n, True), lambda it: it.graph.eliminate_dead_code(), 10**5),
    "cse.half_duplicates": (duplicates, lambda it: CSEPass()(it), 10**5),
    "replace_pattern.n/10_matches": (patterns, lambda it: fx.replace_pattern(it, pattern, replacement), 10**4),
    "subgraph_matcher.n/10_matches": (patterns, lambda it: SubgraphMatcher(PATTERN).match(it.graph), 10**4),
    "split_module.4_parts": (chain, split, 10**5),
    "fake_tensor_prop": (chain, lambda it: FakeTensorProp(it).propagate(torch.ones(1)), 10**4),
    "shape_prop": (chain, lambda it: ShapeProp(it).propagate(torch.ones(1)), 10**5),
    "legalize_graph": (chain, legalize_graph, 10**5),
    "partitioner.propose": (chain, propose, 10**3),
}


def measure(make, run, n):
    run(make(n))
    times = []
    begin = time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < 2 and len(times) < 50):
        module = make(n)
        gc.collect()
        start = time.perf_counter()
        run(module)
        times.append(time.perf_counter() - start)
    return round(statistics.median(times) * 1e3, 3)


picked = sys.argv[1:]
times = {}
with torch.no_grad():
    for name, (make, run, largest) in BENCHES.items():
        if picked and not any(part in name for part in picked):
            continue
        for n in (10**3, 10**4, 10**5):
            if n <= largest:
                times[f"{name}/{n}"] = measure(make, run, n)
print(json.dumps(times))
