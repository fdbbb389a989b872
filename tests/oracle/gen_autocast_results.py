"""The dtypes that operators give under autocast: the recorded calls again, within torch.autocast("cpu").

Writes OUT: for each file of recorded calls a list, with the dtypes of the results of each call, one by one, or null where
the call is left out: where it is refused, has no float tensor among its arguments, or writes to one.

usage: gen_autocast_results.py OUT.json OPCASES OPCALLS   (torch 2.15)
"""
import json
import pathlib
import sys
import warnings

import torch
from safetensors import safe_open
from torch.utils._pytree import tree_leaves

from encoding import decode, name_of, overload_of

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
CAST = (torch.float32, torch.float16, torch.bfloat16)


def dtypes_of(case, data_of):
    if case.get("error") is not None:
        return None
    try:
        overload = overload_of(case["op"])
    except AttributeError:
        return None
    if overload._schema.is_mutable:
        return None
    args = decode(case["args"], data_of)
    kwargs = {key: decode(it, data_of) for key, it in case["kwargs"].items()}
    if not any(isinstance(it, torch.Tensor) and it.dtype in CAST for it in tree_leaves((args, kwargs))):
        return None
    torch.manual_seed(0)
    try:
        with torch.autocast("cpu"):
            results = overload(*args, **kwargs)
    except (RuntimeError, NotImplementedError, ValueError, IndexError):
        return None
    return [name_of(it.dtype) if isinstance(it, torch.Tensor) else None for it in tree_leaves(results)]


found = {}
for folder in map(pathlib.Path, sys.argv[2:]):
    for file in sorted(folder.glob("*.jsonl")):
        with safe_open(file.with_suffix(".safetensors"), "pt") as tensors:
            cases = [dtypes_of(json.loads(line), tensors.get_tensor) for line in file.open()]
        if any(cases):
            found[file.stem] = cases
with open(sys.argv[1], "w") as out:
    lines = (f"{json.dumps(name)}: {json.dumps(cases)}" for name, cases in found.items())
    out.write("{\n" + ",\n".join(lines) + "\n}\n")
print(sum(it is not None for cases in found.values() for it in cases), "calls")
