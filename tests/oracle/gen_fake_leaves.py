"""Records what torch.fx's FakeTensorProp says of modules whose path depends on their inputs.

usage: python tests/oracle/gen_fake_leaves.py OUT      (needs torch 2.15)

OUT/fake_leaves.jsonl: {module, args, kwargs, inputs, eval, outputs}: the module of torch.nn with the arguments of its
constructor, the sizes of its inputs, whether it is in evaluation, and what is known of its results: {dtype, size, stride}
or a list of them.
"""
import json
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.fake_tensor_prop import FakeTensorProp


SEQUENCE, BATCHED, SINGLE = [5, 2, 3], [2, 5, 3], [5, 3]
CASES = [
    (kind, [3, 4], kwargs, [size])
    for kind in ("LSTM", "GRU", "RNN")
    for kwargs, size in (({}, SEQUENCE), ({}, SINGLE), ({"batch_first": True}, BATCHED),
                         ({"num_layers": 2, "bidirectional": True}, SEQUENCE), ({"bias": False}, SEQUENCE))
]
CASES += [
    ("LSTM", [3, 4], {"proj_size": 2, "batch_first": True}, [BATCHED]),
    ("GRU", [3, 4], {}, [SEQUENCE, [1, 2, 4]]),
    ("RNN", [3, 4], {"nonlinearity": "relu"}, [SEQUENCE, [1, 2, 4]]),
    ("LSTMCell", [3, 4], {}, [[5, 3]]), ("GRUCell", [3, 4], {}, [[5, 3]]), ("RNNCell", [3, 4], {}, [[3]]),
    ("MultiheadAttention", [8, 2], {}, [[5, 2, 8]] * 3),
    ("MultiheadAttention", [8, 2], {"batch_first": True}, [[5, 2, 8], [5, 3, 8], [5, 3, 8]]),
    ("MultiheadAttention", [8, 2], {"kdim": 4, "vdim": 6}, [[5, 2, 8], [3, 2, 4], [3, 2, 6]]),
    ("MultiheadAttention", [8, 2], {}, [[5, 8]] * 3),
    ("InstanceNorm1d", [3], {}, [[2, 3, 4]]), ("InstanceNorm2d", [3], {"affine": True}, [[2, 3, 4, 5]]),
    ("InstanceNorm2d", [3], {"track_running_stats": True}, [[3, 4, 5]]),
    ("InstanceNorm3d", [3], {}, [[2, 3, 4, 5, 6]]),
    ("TransformerEncoderLayer", [8, 2], {"dim_feedforward": 16}, [[5, 2, 8]]),
    ("TransformerEncoderLayer", [8, 2], {"dim_feedforward": 16, "batch_first": True}, [[5, 2, 8]]),
    ("TransformerEncoderLayer", [8, 2], {"dim_feedforward": 16, "norm_first": True}, [[5, 8]]),
    ("TransformerDecoderLayer", [8, 2], {"dim_feedforward": 16}, [[5, 2, 8], [6, 2, 8]]),
    ("Transformer", [8, 2, 1, 1, 16], {}, [[5, 2, 8], [6, 2, 8]]),
    ("Transformer", [8, 2, 1, 1, 16], {"batch_first": True}, [[5, 2, 8], [5, 3, 8]]),
]


def known(value):
    if isinstance(value, torch.Tensor):
        return {"dtype": str(value.dtype).removeprefix("torch."), "size": list(value.shape), "stride": list(value.stride())}
    return [known(it) for it in value]


def record(name, args, kwargs, sizes, is_eval):
    root, graph = nn.Module(), torch.fx.Graph()
    root.leaf = getattr(nn, name)(*args, **kwargs)
    root.leaf.train(not is_eval)
    inputs = [graph.placeholder(f"x{at}") for at in range(len(sizes))]
    call = graph.call_module("leaf", tuple(inputs))
    graph.output(call)
    gm = torch.fx.GraphModule(root, graph)
    with torch.no_grad():
        FakeTensorProp(gm, FakeTensorMode(allow_non_fake_inputs=True)).propagate(*(torch.zeros(it) for it in sizes))
    return {"module": name, "args": args, "kwargs": kwargs, "inputs": sizes, "eval": is_eval,
            "outputs": known(call.meta["val"])}


def main(out):
    rows = [record(*case, is_eval) for case in CASES for is_eval in (False, True)]
    (out / "fake_leaves.jsonl").write_text("".join(json.dumps(it, separators=(",", ":")) + "\n" for it in rows))
    print(len(rows), "cases")


main(pathlib.Path(sys.argv[1]))
