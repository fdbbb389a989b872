"""`out=` of operators that have a `dtype`: in which dtype they compute what it is to hold, and what they refuse.

One line a call, in the format of gen_opcases.py, of Python's function: its name is the operator's without an overload,
and `out` is a tensor without elements.

usage: gen_out.py OUT_DIR
"""
import json
import os
import sys
import warnings

import torch
from safetensors.torch import save_file

from encoding import encode

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
DTYPES = [torch.uint8, torch.int8, torch.int32, torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64]
# The dtypes of `out` with which a `dtype` is given, too.
GIVEN = (torch.float32, torch.float64, torch.int64)
INTS = torch.tensor([[3, 2000000000], [2000000000, 7], [2000000000, 11]], dtype=torch.int32)
FLOATS = torch.tensor([[0.1, 2.5], [3.25, 0.7], [300.0, 1.5]])
CALLS = {
    "sum": (torch.sum, [0]),
    "prod": (torch.prod, [0]),
    "nansum": (torch.nansum, [0]),
    "mean": (torch.mean, [0]),
    "nanmean": (torch.nanmean, [0]),
    "cumsum": (torch.cumsum, [0]),
    "cumprod": (torch.cumprod, [0]),
    "softmax": (torch.softmax, [0]),
    "log_softmax": (torch.log_softmax, [0]),
    "linalg_vector_norm": (torch.linalg.vector_norm, []),
    "linalg_matrix_norm": (torch.linalg.matrix_norm, ["fro"]),
    "linalg_norm": (torch.linalg.norm, []),
}
FACTORIES = {
    "zeros": (torch.zeros, [[3]]),
    "ones": (torch.ones, [[3]]),
    "full": (torch.full, [[3], 2.5]),
    "arange": (torch.arange, [0.5, 3.5, 1.25]),
    "linspace": (torch.linspace, [0.0, 10.0, 4]),
    "logspace": (torch.logspace, [0.0, 1.0, 4]),
    "range": (torch.range, [0.5, 3.0]),
    "eye": (torch.eye, [3]),
}
cases, tensors = [], {}


def keep(flat):
    tensors[f"t{len(tensors)}"] = flat
    return f"t{len(tensors) - 1}"


def case(op, function, args, out, dtype):
    kwargs = {"out": torch.empty(0, dtype=out)} | ({} if dtype is None else {"dtype": dtype})
    encoded = {"op": f"aten.{op}", "args": encode(args, keep), "kwargs": {k: encode(v, keep) for k, v in kwargs.items()}}
    try:
        encoded["result"] = encode(function(*args, **kwargs), keep)
    except (RuntimeError, TypeError) as problem:
        encoded["error"] = str(problem).splitlines()[0]
    cases.append(encoded)


for out in DTYPES:
    for dtype in (None, torch.float32, torch.int64) if out in GIVEN else (None,):
        for op, (function, args) in CALLS.items():
            for x in (INTS, FLOATS, FLOATS.to(torch.float16)):
                case(op, function, [x, *args], out, dtype)
        for op, (function, args) in FACTORIES.items():
            case(op, function, args, out, dtype)

with open(os.path.join(sys.argv[1], "out.jsonl"), "w") as file:
    file.writelines(json.dumps(it) + "\n" for it in cases)
save_file(tensors, os.path.join(sys.argv[1], "out.safetensors"))
print(len(cases), "cases")
