"""Records what torch.fx's partitioner for several devices makes of small modules.

usage: python tests/oracle/gen_devices.py OUT      (needs torch 2.15)

OUT/devices.jsonl: {name, modules, nodes, config, error | partitions, dag, graph, latency?}. `modules` are {path: {class,
parameters}} with the shapes of float32 parameters; `nodes` are {name, op, target, args, shape, output_size, total_size}, where
an argument that is a name is {"node": name}. `config` is the configuration with a value by node for each mapping.
`partitions` are {id, nodes, used_mem_bytes, logical_device_ids} with nodes in the order of the graph; `dag` are {node, inputs,
outputs, logical_device_ids, size_bytes}; `graph` is the graph of the module with submodules as torch prints it. `latency` is
{partitions: [[mem, computer, overall]], graph}.

Three things are put right first, as docs/compat.md says: the Kernighan-Lin mode compares the cost of the swap that it takes, takes
the swap once, and splits by what it found, nodes in the order of the graph; and the outputs of a call in the dag are the items
that are taken of its result, or else the call.
"""
import contextlib
import inspect
import io
import json
import operator
import pathlib
import random
import sys
import types

import torch
from torch import nn
from torch.fx import Graph, GraphModule
from torch.fx.experimental import accelerator_partitioner
from torch.fx.experimental.partitioner_utils import (
    Device,
    get_latency_of_partitioned_graph,
    get_partition_to_latency_mapping,
    NodeLatency,
    PartitionerConfig,
    PartitionMode,
)
from torch.fx.passes.graph_manipulation import get_size_of_all_nodes

FUNCTIONS = {"torch.add": torch.add, "torch.relu": torch.relu, "operator.mul": operator.mul, "torch.sin": torch.sin}
CORRECTIONS = [
    ("p1_nodes = list(p1.nodes) + [None]", "p1_nodes = sorted(p1.nodes) + [None]"),
    ("return cost, node_pair", "return min_cost, node_pair"),
    (
        "            # Swap back and reset all partitions back to original\n",
        "            placed = self.placed\n",
    ),
    (
        "            reset_partition_device(self.partitions)\n"
        "            get_device_to_partitions_mapping(self.partitions, self.devices)\n"
        "            return cost\n",
        "            for p, ids in zip(self.partitions, placed):\n"
        "                p.logical_device_ids = list(ids)\n"
        "            return cost\n",
    ),
    (
        "        op_nodes = [\n",
        "        self.placed = [list(p.logical_device_ids) for p in self.partitions]\n        op_nodes = [\n",
    ),
    (
        "                reorganize_partitions(self.partitions)\n"
        "                get_device_to_partitions_mapping(self.partitions, self.devices)\n"
        "        reorganize_partitions",
        "                reorganize_partitions(self.partitions)\n"
        "                reset_partition_device(self.partitions)\n"
        "                get_device_to_partitions_mapping(self.partitions, self.devices)\n"
        "                self.placed = [list(p.logical_device_ids) for p in self.partitions]\n"
        "                self.node_to_partition = get_node_to_partition_mapping(self.partitions)\n"
        "                node_pair = []\n"
        "        reorganize_partitions",
    ),
]


def corrected():
    """The partitioner with the corrections."""
    source = inspect.getsource(accelerator_partitioner)
    for old, new in CORRECTIONS:
        assert source.count(old) == 1, (source.count(old), old)
        source = source.replace(old, new)
    module = types.ModuleType("corrected")
    exec(compile(source, "corrected", "exec"), module.__dict__)
    return module.Partitioner


class Table(nn.Module):
    """Modules by path."""


def module_of(kind, size):
    return nn.EmbeddingBag(size, 4) if kind == "EmbeddingBag" else nn.Linear(4, 4, bias=size % 2 == 0)


def chain(rng, n):
    return [("Linear" if i % 2 == 0 else "torch.relu", [i], i // 2) for i in range(n)]


def branches(rng, n):
    """Several chains from one input that are added."""
    res, ends = [], []
    for branch in range(3):
        last = 0
        for step in range(n // 3):
            res.append((rng.choice(["Linear", "torch.relu", "torch.sin"]), [last], branch * 7 + step))
            last = len(res)
        ends.append(last)
    res.append(("torch.add", ends[:2], 0))
    res.append(("operator.mul", [len(res), ends[2]], 0))
    return res


def tangle(rng, n):
    """Calls of any that came before."""
    res = []
    for i in range(n):
        kind = rng.choice(["Linear", "torch.relu", "torch.add", "operator.mul", "torch.sin"])
        count = 2 if kind in ("torch.add", "operator.mul") else 1
        near = lambda: rng.choice(range(max(0, i - 3), i + 1))
        res.append((kind, [near() for _ in range(count)], i))
    return res


def sparse(rng, n):
    """Embeddings between other calls."""
    res = []
    for i in range(n):
        kind = rng.choice(["EmbeddingBag", "EmbeddingBag", "Linear", "torch.relu", "torch.add"])
        at = [0] if kind == "EmbeddingBag" else [rng.choice(range(0, i + 1)) for _ in range(2 if kind == "torch.add" else 1)]
        res.append((kind, at, rng.choice([30, 50, 80])))
    return res


def build(calls):
    """A module of calls (kind, arguments by number, size), where 0 is the input, without running it."""
    root, graph, modules = Table(), Graph(), {}
    values = [graph.placeholder("x")]
    for at, (kind, args, size) in enumerate(calls):
        args = tuple(values[it] for it in args)
        if kind in FUNCTIONS:
            values.append(graph.call_function(FUNCTIONS[kind], args))
            continue
        path = f"m{at}"
        root.add_module(path, module_of(kind, size))
        parameters = [list(it.shape) for it in getattr(root, path).parameters()]
        modules[path] = {"class": kind, "parameters": parameters}
        values.append(graph.call_module(path, args))
    unused = [it for it in values if not it.users]
    graph.output(unused[0] if len(unused) == 1 else tuple(unused))
    module = GraphModule(root, graph)
    for node in module.graph.nodes:
        if node.op != "output":
            meta = torch.fx.passes.shape_prop._extract_tensor_metadata(torch.zeros(2, 4))
            node.meta["tensor_meta"] = meta
    return module, modules


def written(module):
    names = {it: key for key, it in FUNCTIONS.items()}
    get_size_of_all_nodes(module)
    res = []
    for node in module.graph.nodes:
        arg = lambda it: {"node": it.name} if isinstance(it, torch.fx.Node) else [arg(one) for one in it]
        one = {"name": node.name, "op": node.op, "target": names.get(node.target, node.target)}
        one["args"] = [arg(it) for it in node.args]
        if node.op != "output":
            one |= {"shape": list(node.meta["tensor_meta"].shape)}
            one |= {"output_size": node.size_bytes.output_size, "total_size": node.size_bytes.total_size}
        res.append(one)
    return res


def record(name, calls, devices, mode, rng, saturate=False, aot=None, partitioner=accelerator_partitioner.Partitioner):
    module, modules = build(calls)
    res = {"name": name, "modules": modules, "nodes": written(module)}
    nodes = [it for it in module.graph.nodes if it.op != "output"]
    op_nodes = [it for it in nodes if it.op != "placeholder"]
    latencies = {it: NodeLatency(rng.uniform(0, 3), rng.uniform(0, 3)) for it in op_nodes}
    rate = rng.choice([16.0, 64.0, 256.0])
    parts, ids = aot if aot else ([], {})
    config = PartitionerConfig(
        devices=[Device(f"dev_{at}", bytes_, at) for at, bytes_ in enumerate(devices)],
        mode=mode,
        transfer_rate_bytes_per_sec=rate,
        node_to_latency_mapping=latencies,
        node_to_partition_mapping=dict(zip(op_nodes, parts)),
        partition_to_logical_device_mapping={key: list(it) for key, it in ids.items()},
        saturate_host=saturate,
    )
    res["config"] = {
        "devices": [{"name": it.name, "availableMemBytes": it.available_mem_bytes, "logicalId": it.logical_id}
                    for it in config.devices],
        "mode": mode.name,
        "transferRateBytesPerSec": rate,
        "nodeToLatencyMapping": {
            it.name: {"memLatencySec": value.mem_latency_sec, "computerLatencySec": value.computer_latency_sec}
            for it, value in latencies.items()
        },
        "nodeToPartitionMapping": {it.name: part for it, part in zip(op_nodes, parts)},
        "partitionToLogicalDeviceMapping": [[key, it] for key, it in ids.items()],
        "saturateHost": saturate,
    }
    runner = partitioner()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            result = runner.partition_graph(module, module, config)
    except RuntimeError as error:
        return res | {"error": str(error)}
    if not all(it.logical_device_ids for it in runner.partitions):
        return res | {"error": "Cannot Get a Valid Partition to Logical Device Mapping"}
    accelerator_partitioner.reorganize_partitions(runner.partitions)
    res["partitions"] = [
        {"id": it.partition_id, "nodes": [one.name for one in sorted(it.nodes)],
         "used_mem_bytes": it.used_mem_bytes, "logical_device_ids": it.logical_device_ids}
        for it in runner.partitions
    ]
    items = lambda node: [it for it in node.users if it.target is operator.getitem] or [node]
    res["dag"] = [
        {"node": it.submodule_node.name, "inputs": [one.name for one in it.input_nodes],
         "outputs": [one.name for one in items(it.submodule_node)],
         "logical_device_ids": it.logical_device_ids, "size_bytes": it.size_bytes}
        for it in result.dag.nodes
    ]
    res["graph"] = str(result.module_with_submodules.graph)
    by_part = get_partition_to_latency_mapping(runner.partitions, latencies)
    total = get_latency_of_partitioned_graph(runner.partitions, by_part, rate)
    res["latency"] = {"partitions": [list(by_part[it]) for it in runner.partitions], "graph": total}
    return res


def cases():
    rng = random.Random(61)
    modes = PartitionMode
    total_of = lambda calls: sum(it["total_size"] for it in written(build(calls)[0]) if it["op"] != "output")
    shares = [[0.75, 0.75], [0.55, 0.55, 0.6], [0.9, 0.5, 0.3], [0.5, 0.95], [1.0], [0.45, 0.5, 0.4, 0.45], [0.55, 0.5]]
    for make in (chain, branches, tangle):
        for n in (6, 9):
            for index, share in enumerate(shares):
                calls = make(rng, n)
                devices = [int(total_of(calls) * it) for it in share]
                for mode in (modes.size_based, modes.cost_aware, modes.kl_based):
                    if n > 6 and mode is modes.cost_aware and make is tangle and index > 2:
                        continue
                    partitioner = corrected() if mode is modes.kl_based else accelerator_partitioner.Partitioner
                    yield record(f"{make.__name__}{n}_{index}_{mode.name}", calls, devices, mode, rng, partitioner=partitioner)
    for index in range(24):
        calls = [("EmbeddingBag", [0], 60)] + sparse(rng, 8)
        share, count = rng.choice([0.5, 0.65, 0.8]), rng.choice([2, 3, 4])
        yield record(f"sparse_{index}", calls, [int(total_of(calls) * share)] * count, modes.sparse_nn, rng)
    calls = sparse(rng, 6)
    yield record("sparse_uneven", calls, [int(total_of(calls) * it) for it in (0.7, 0.6)], modes.sparse_nn, rng)
    for index in range(6):
        calls = tangle(rng, 8)
        bounds = sorted(rng.sample(range(1, 8), 2))
        parts = [sum(at >= it for it in bounds) for at in range(8)]
        aot = (parts, {0: [0], 1: [1], 2: [0, 2]})
        yield record(f"aot_{index}", calls, [10_000] * 3, modes.aot_based, rng, aot=aot)
    for index, share in enumerate(([1.0, 1.1, 1.0], [0.6, 0.6, 0.7, 0.7, 0.6], [0.6, 0.6, 0.2, 0.7, 0.6, 0.9])):
        calls = chain(rng, 6)
        devices = [int(total_of(calls) * it) for it in share]
        yield record(f"saturate_{index}", calls, devices, modes.size_based, rng, saturate=True)
    yield record("no_devices", chain(rng, 2), [], modes.size_based, rng)
    yield record("no_operations", [], [100], modes.size_based, rng)
    yield record("too_small", chain(rng, 4), [10, 10], modes.size_based, rng)


def main(out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    with (out / "devices.jsonl").open("w") as file:
        for case in cases():
            print(json.dumps(case, separators=(",", ":")), file=file)


if __name__ == "__main__":
    main(sys.argv[1])
