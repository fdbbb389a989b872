"""Operators whose tensors lie in memory in other ways than row by row, and the strides that PyTorch gives the results.

The calls are those of fixtures/opcases, fixtures/opcalls and fixtures/degenerate that PyTorch answered, each with all its
tensors full of one number: turned around in memory, channels last, with gaps, expanded, and several ways in one call. The
results are written as gen_degenerate.py writes them.

usage: gen_strides.py FIXTURES OUT
"""
import json
import math
import os
import resource
import signal
import sys
import warnings
from pathlib import Path

import torch

from encoding import overload_of, scalar_of, tell

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
PATIENCE = 20
MEMORY = 8 << 30
MAX_ELEMENTS, MAX_DIMS, MAX_LENGTH = 600, 5, 420
# Of each operator, how many calls are laid out anew, and how many of those are kept.
N_CALLS, N_KEPT = 2, 5
# Calls of these look at what the tensors hold, which one number everywhere does not give.
OF_DATA = {"aten.gru.data", "aten.lstm.data", "aten.rnn_relu.data", "aten.rnn_tanh.data", "aten._pad_packed_sequence.default"}


def in_order(size, inner_first):
    stride, step = [0] * len(size), 1
    for dim in inner_first:
        stride[dim] = step
        step *= max(size[dim], 1)
    return stride


def row_major(size):
    return in_order(size, reversed(range(len(size))))


def turned_around(size):
    return in_order(size, range(len(size)))


def turned_inside(size):
    rank = len(size)
    return in_order(size, [rank - 2, rank - 1, *reversed(range(rank - 2))])


def channels_last(size):
    rank = len(size)
    return in_order(size, [1, *reversed(range(2, rank)), 0]) if rank in (4, 5) else row_major(size)


def with_gaps(size):
    return [2 * it for it in row_major(size)]


def expanded(size):
    return [0, *row_major(size[1:])]


# How the tensors lie: the first one, and those after it by turns.
LAYOUTS = [
    (turned_around, [turned_around]),
    (turned_around, [row_major]),
    (row_major, [turned_around]),
    (channels_last, [channels_last]),
    (turned_inside, [turned_inside]),
    (turned_around, [with_gaps, turned_inside]),
    (expanded, [turned_around]),
]


def converted(value):
    """A recorded argument as the calls of fixtures/degenerate have it, its data left out."""
    if isinstance(value, list):
        return [converted(it) for it in value]
    if isinstance(value, float):
        return {"float": repr(value)}
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return {"tensor": value.get("dtype", value["tensor"]), "size": value["size"]}
    (kind, it), = value.items()
    simple = {"int": int, "device": lambda _: None, "float": lambda it: {"float": str(it)}}
    return simple[kind](it) if kind in simple else value


def tensors_of(value):
    if isinstance(value, dict) and "tensor" not in value:
        return []
    if isinstance(value, dict):
        return [value]
    return [tensor for it in value for tensor in tensors_of(it)] if isinstance(value, list) else []


def all_tensors(call):
    return tensors_of([call["args"], list(call["kwargs"].values())])


def recorded(folder):
    by_op = {}
    files = [*sorted((folder / "opcases").glob("*.jsonl")), *sorted((folder / "opcalls").glob("*.jsonl"))]
    for file in [*files, folder / "degenerate" / "calls.jsonl"]:
        for line in file.read_text().splitlines():
            call = json.loads(line)
            if "result" not in call or "op" not in call or call["op"] in OF_DATA:
                continue
            kwargs = {key: converted(it) for key, it in call["kwargs"].items()}
            call = {"op": call["op"], "args": converted(call["args"]), "kwargs": kwargs}
            sizes = [it["size"] for it in all_tensors(call)]
            n_dims = max(map(len, sizes), default=0)
            if 2 <= n_dims <= MAX_DIMS and 0 < min(map(math.prod, sizes)) and max(map(math.prod, sizes)) <= MAX_ELEMENTS:
                by_op.setdefault(call["op"], []).append((-n_dims, call))
    return by_op


def filled(call, ints, floats):
    call = json.loads(json.dumps(call))
    for tensor in all_tensors(call):
        tensor["fill"] = floats if "float" in tensor["tensor"] or "complex" in tensor["tensor"] else ints
    return call


def laid_out(call, layout):
    call = json.loads(json.dumps(call))
    first, others = layout
    for at, tensor in enumerate(it for it in all_tensors(call) if len(it["size"]) > 1):
        stride = (first if at == 0 else others[at % len(others)])(tensor["size"])
        if stride != row_major(tensor["size"]):
            tensor["stride"] = stride
    return call


def read(value):
    if isinstance(value, list):
        return [read(it) for it in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        dtype, size = getattr(torch, value["tensor"]), value["size"]
        if "stride" not in value:
            return torch.full(size, value["fill"], dtype=dtype)
        span = 1 + sum((n - 1) * step for n, step in zip(size, value["stride"]))
        return torch.full([span], value["fill"], dtype=dtype).as_strided(size, value["stride"])
    return scalar_of(value)


def answer(call):
    torch.manual_seed(0)
    try:
        args, kwargs = read(call["args"]), {key: read(it) for key, it in call["kwargs"].items()}
        return tell(overload_of(call["op"])(*args, **kwargs))
    except Exception:
        # Calls that PyTorch refuses are in fixtures/degenerate.
        return None


def answered(calls):
    n_left, told, kinds = N_CALLS, set(), set()
    for _, call in sorted(calls, key=lambda it: it[0]):
        kind = json.dumps([[len(it["size"]) for it in all_tensors(call)], len(call["args"])])
        fills = (filled(call, *it) for it in ((0, 1), (1, 1), (0, 0)))
        call = next((it for it in fills if kind not in kinds and answer(it) is not None), None)
        if call is None:
            continue
        kinds.add(kind)
        for layout in LAYOUTS:
            laid = laid_out(call, layout)
            text = json.dumps(laid)
            if text in told or not any("stride" in it for it in all_tensors(laid)):
                continue
            told.add(text)
            result = answer(laid)
            if result is not None:
                yield laid | {"result": result}
        n_left -= 1
        if n_left == 0:
            return


def in_child(calls):
    """In a process of its own, since some calls end it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writing, "w") as file:
            for it in answered(calls):
                file.write(json.dumps(it, separators=(",", ":")) + "\n")
                file.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        told = file.readlines()
    os.waitpid(child, 0)
    return told


def main():
    with open(sys.argv[2], "w") as file:
        for _, calls in sorted(recorded(Path(sys.argv[1])).items()):
            file.writelines([it for it in in_child(calls) if len(it) < MAX_LENGTH][:N_KEPT])


main()
