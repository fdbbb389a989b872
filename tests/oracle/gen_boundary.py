"""Records where torch.fx moves values that are no tensors between the parts of a splitter.

usage: python tests/oracle/gen_boundary.py OUT      (needs torch 2.15)

OUT/boundary.jsonl: {nodes, parts, moved}. `nodes` are {inputs, tensor} with inputs by number, where 0 is the input of the graph
and node n the number n + 1; `parts` are {is_acc, nodes} before, and `moved` the sorted nodes of each part after
move_non_tensor_nodes_on_boundary.
"""
import contextlib
import io
import json
import pathlib
import random
import sys

import torch
from torch.fx import Graph
from torch.fx.passes.split_utils import move_non_tensor_nodes_on_boundary
from torch.fx.passes.splitter_base import Subgraph


def case(rng):
    n = rng.randrange(4, 14)
    nodes = [{"inputs": sorted({rng.randrange(max(0, i - 4), i + 1) for _ in range(rng.choice([1, 1, 2]))}),
              "tensor": rng.random() < 0.4} for i in range(n)]
    graph = Graph()
    values = [graph.placeholder("x")]
    for it in nodes:
        values.append(graph.call_function(torch.relu, tuple(values[at] for at in it["inputs"])))
        values[-1].meta["type"] = torch.Tensor if it["tensor"] else int
    graph.output(values[-1])
    cuts = sorted(rng.sample(range(1, n), rng.randrange(1, min(4, n))))
    bounds = list(zip([0] + cuts, cuts + [n]))
    first = rng.random() < 0.7
    parts = [{"is_acc": (at % 2 == 0) == first, "nodes": list(range(start + 1, end + 1))}
             for at, (start, end) in enumerate(bounds)]
    subgraphs = [Subgraph(is_acc=it["is_acc"], nodes=[values[at] for at in it["nodes"]]) for it in parts]
    with contextlib.redirect_stdout(io.StringIO()):
        move_non_tensor_nodes_on_boundary(subgraphs)
    moved = [sorted(values.index(it) for it in part.nodes) for part in subgraphs]
    return {"nodes": nodes, "parts": parts, "moved": moved}


def main(out):
    rng = random.Random(62)
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    with (out / "boundary.jsonl").open("w") as file:
        for _ in range(250):
            print(json.dumps(case(rng), separators=(",", ":")), file=file)


if __name__ == "__main__":
    main(sys.argv[1])
