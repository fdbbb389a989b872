"""Numbers that do not fit the dtype of the tensors beside them: which operators refuse them.

Every overload that takes tensors and a number is called with tensors of ones of each dtype and with VALUES. A line is
written for each overload, number and dtype where some call is answered: the values that PyTorch refuses.

usage: gen_number_limits.py OUT_DIR
"""
import json
import os
import pathlib
import re
import sys
import warnings

import torch

from encoding import name_of, overload_of

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
VALUES = [1, 300, -3, -130, -300, 70000, -70000, 1500000000, 1099511627776, 1e39, -1e39]
# The ranks of tensors of what takes no others, by the beginning of the name.
RANKS = {"aten.addmm.": (2, 2, 2), "aten.addmv.": (1, 2, 1), "aten.baddbmm.": (3, 3, 3), "aten.addbmm.": (2, 3, 3)}
# What makes tensors of numbers alone, as many as they say, and polynomials of a degree, which take as long as it says.
LEFT_OUT = ("arange", "range", "linspace", "logspace", "polynomial")


def value_of(arg, rank, dtype, name, number):
    kind = str(arg.type)
    if arg.name == name:
        return number if dtype.is_floating_point or abs(number) > 2**62 else int(number)
    if kind == "Tensor":
        return torch.ones([2] * rank, dtype=torch.bool if arg.name in ("mask", "condition") else torch.int64 if arg.name == "index" else dtype)
    if arg.has_default_value():
        return arg.default_value
    return {"number": 1, "float": 1.0, "int": 0, "bool": False, "List[int]": [2]}.get(kind)


def is_refused(overload, dtype, name, number):
    args, kwargs = [], {}
    ranks = next((it for key, it in RANKS.items() if str(overload).startswith(key)), ())
    for turn, arg in enumerate(overload._schema.arguments):
        value = value_of(arg, ranks[turn] if turn < len(ranks) else 1, dtype, name, number)
        (kwargs.__setitem__(arg.name, value) if arg.kwarg_only else args.append(value))
    try:
        overload(*args, **kwargs)
    except Exception:  # Whatever PyTorch raises is its answer.
        return True
    return False


sources = pathlib.Path(__file__).resolve().parent.parent.parent / "crates/ops/src"
schemas = re.findall(r'"aten::(\w+)(?:\.(\w+))?\(', "".join(it.read_text() for it in sources.rglob("*.rs")))
lines = []
for op in sorted({f"aten.{name}.{overload or 'default'}" for name, overload in schemas}):
    try:
        overload = overload_of(op)
    except AttributeError:
        continue
    arguments = overload._schema.arguments
    if any(arg.is_out or arg.alias_info for arg in arguments) or any(it in op for it in LEFT_OUT) or "Tensor" not in map(lambda it: str(it.type), arguments):
        continue
    for arg in arguments:
        if str(arg.type) not in ("number", "Optional[number]"):
            continue
        for dtype in DTYPES:
            refused = [it for it in VALUES if is_refused(overload, dtype, arg.name, it)]
            if len(refused) < len(VALUES):
                lines.append({"op": op, "number": arg.name, "dtype": name_of(dtype), "refused": refused})
os.makedirs(sys.argv[1], exist_ok=True)
with open(os.path.join(sys.argv[1], "limits.jsonl"), "w") as file:
    file.writelines(json.dumps(it, separators=(",", ":")) + "\n" for it in lines)
print(len(lines), "rows of", len({it["op"] for it in lines}), "operators")
