"""Numbers beside tensors of half precision: which operators round them to the dtype of the tensor first.

Every overload that takes a number, or that takes another tensor, for which a number or a tensor without dimensions may be
given, is called with numbers that neither float16 nor bfloat16 hold. A call is written where it tells: where the same
arguments in float32, with and without the number rounded, give results that differ in half precision.

usage: gen_numbers.py OUT_DIR
"""
import json
import os
import pathlib
import re
import sys
import warnings

import torch
from safetensors.torch import save_file

import encoding
from encoding import overload_of

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

NUMBERS = [0.1, 3.3337, -1.7, 0.70011, 1.0001, 7.7, 2049.3]
N_KEPT = 3
SIZES = [(64,), (8, 8), (2, 4, 8)]
# What draws, what makes tensors of numbers alone, and what goes through float32 sums that depend on the order of steps.
LEFT_OUT = ("empty", "rand", "arange", "range", "linspace", "logspace", "norm.", "_norm", "cdist", "pdist", "dist.", "renorm", "addmm", "addmv", "baddbmm", "addbmm", "cross_entropy_loss", "float_power")
tensors, lines = {}, []


def keep(flat):
    key = (flat.dtype, flat.view(torch.uint8).numpy().tobytes())
    return tensors.setdefault(key, (f"t{len(tensors)}", flat))[0]


def data(dtype, turn, is_positive, size):
    generator = torch.Generator().manual_seed(turn)
    near = torch.tensor(NUMBERS).to(dtype).double()
    step = near.abs() * torch.finfo(dtype).eps
    drawn = torch.rand(64 - 3 * len(NUMBERS), generator=generator).double() * 4 - 1.5
    values = torch.cat([near, near + step, near - step, drawn])[torch.randperm(64, generator=generator)]
    if is_positive:
        values = values.abs() * 0.2 + 0.05
    return values.to(dtype).reshape(size)


def arguments(schema, name, number, dtype, half, is_positive, size):
    args, kwargs = [], {}
    for turn, arg in enumerate(schema.arguments):
        kind = str(arg.type)
        if arg.name == name:
            value = number
        elif kind == "Tensor":
            value = data(half, turn, is_positive, size).to(dtype)
        elif arg.has_default_value():
            value = arg.default_value
        elif kind in ("number", "float"):
            value = 0.5
        else:
            value = {"int": 0, "bool": True, "List[int]": [0]}.get(kind)
        (kwargs.__setitem__(arg.name, value) if arg.kwarg_only else args.append(value))
    return args, kwargs


def call(overload, args, kwargs):
    """The tensors of the result, or nothing where PyTorch refuses."""
    args = [it.clone() if isinstance(it, torch.Tensor) else it for it in args]
    try:
        results = overload(*args, **kwargs)
    except Exception:  # Whatever PyTorch raises is its answer.
        return None
    return results if isinstance(results, torch.Tensor) else None


def differ(a, b):
    return not torch.equal(a.nan_to_num(9.125), b.nan_to_num(9.125))


def record(op):
    overload = overload_of(op)
    schema = overload._schema
    kinds = {arg.name: str(arg.type) for arg in schema.arguments}
    numbers = [it for it, kind in kinds.items() if kind in ("number", "Optional[number]", "float", "Optional[float]")]
    written = [arg.name for arg in schema.arguments if arg.alias_info is not None]
    others = [it for it, kind in kinds.items() if kind == "Tensor" and it not in written]
    others = others if list(kinds.values()).count("Tensor") > 1 and not any(schema.arguments[k].kwarg_only for k, it in enumerate(kinds) if it in written) else []
    for name, is_tensor in [(it, False) for it in numbers] + [(it, True) for it in others]:
        for half in (torch.float16, torch.bfloat16):
            n_kept = 0
            for number in NUMBERS:
                for size in SIZES:
                    for is_positive in (False, True):
                        made = (lambda it, dtype: torch.tensor(it, dtype=torch.float32)) if is_tensor else (lambda it, dtype: it)
                        rounded = float(torch.tensor(number, dtype=torch.float64).to(half))
                        at = (half, is_positive, size)
                        results = [call(overload, *arguments(schema, name, made(it, half), torch.float32, *at)) for it in (number, rounded)]
                        got_args = arguments(schema, name, made(number, half), half, *at)
                        got = call(overload, *got_args)
                        again = call(overload, *got_args)
                        if got is None or again is None or None in map(lambda it: it if it is None else 1, results) or differ(got, again):
                            continue
                        as_half = [it.to(half) if it.dtype == torch.float32 else it for it in results]
                        if not differ(*as_half) or n_kept == N_KEPT:
                            continue
                        n_kept += 1
                        args, kwargs = got_args
                        lines.append({"op": op, "number": name, "args": encoding.encode(args, keep), "kwargs": {k: encoding.encode(v, keep) for k, v in kwargs.items()}, "result": encoding.encode(got, keep)})


sources = pathlib.Path(__file__).resolve().parent.parent.parent / "crates/ops/src"
schemas = re.findall(r'"aten::(\w+)(?:\.(\w+))?\(', "".join(it.read_text() for it in sources.rglob("*.rs")))
for op in sorted({f"aten.{name}.{overload or 'default'}" for name, overload in schemas}):
    try:
        overload = overload_of(op)
    except AttributeError:
        continue
    if torch.Tag.nondeterministic_seeded not in overload.tags and not any(it in op for it in LEFT_OUT):
        record(op)
os.makedirs(sys.argv[1], exist_ok=True)
with open(os.path.join(sys.argv[1], "numbers.jsonl"), "w") as file:
    file.writelines(json.dumps(it, separators=(",", ":")) + "\n" for it in lines)
save_file(dict(tensors.values()), os.path.join(sys.argv[1], "numbers.safetensors"))
print(len(lines), "calls of", len({it["op"] for it in lines}), "operators")
