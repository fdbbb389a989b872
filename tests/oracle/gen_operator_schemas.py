"""What torch.fx.operator_schemas says of PyTorch's functions: their signatures, and which calls write to an argument.

`signatures.jsonl`: a line is a function or operator by the name that graphs have for it, and the texts of its signatures, without
what they return. `mutable.jsonl`: a line is a function, how many arguments a call of it has by place and which by name, and the
overload that writes where check_for_mutable_operation refuses the call.

usage: gen_operator_schemas.py FOLDER (torch 2.13.0)
"""
import inspect
import json
import math
import sys
from pathlib import Path

import torch
from torch.fx.operator_schemas import check_for_mutable_operation, get_signature_for_torch_op

OUT = Path(sys.argv[1])
PLACES = {"torch": torch, "torch._C._nn": torch._C._nn, "math": math}
for it in ("special", "linalg", "fft"): PLACES[f"torch._C._{it}"] = getattr(torch._C, f"_{it}")


def functions():
    for place, module in PLACES.items():
        for name in sorted(dir(module)):
            it = getattr(module, name)
            if name.startswith("_") or not callable(it) or isinstance(it, type): continue
            yield f"{place}.{name}", it
    for name in sorted(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        yield f"torch.ops.aten.{name}", packet
        for overload in packet.overloads(): yield f"torch.ops.aten.{name}.{overload}", getattr(packet, overload)


def without_result(signature):
    return str(signature.replace(return_annotation=inspect.Signature.empty))


signatures, mutable = [], []
for target, function in functions():
    try: found, schemas = get_signature_for_torch_op(function, return_schemas=True)
    except Exception: continue
    if found is None: continue
    if schemas is None: schemas = []
    is_overload, is_packet = isinstance(function, torch._ops.OpOverload), isinstance(function, torch._ops.OpOverloadPacket)
    # The signatures of an operator are those of its overloads.
    if not is_overload: signatures.append({"target": target, "signatures": [without_result(it) for it in found]})
    seen = set()
    for signature in found if schemas and not is_packet else []:
        given = [p for p in signature.parameters.values() if p.kind != p.KEYWORD_ONLY]
        named = [p for p in signature.parameters.values() if p.kind == p.KEYWORD_ONLY]
        required = [p for p in given if p.default is p.empty]
        for positional in {len(required), len(given)}:
            kwargs = {p.name: None for p in named if p.default is p.empty}
            key = (positional, *sorted(kwargs))
            if key in seen: continue
            seen.add(key)
            try: check_for_mutable_operation(function, (None,) * positional, kwargs); refused = None
            except RuntimeError as error:
                refused = str(error).split("Tried to trace mutable operation ")[1].split("(")[0]
            mutable.append({"target": target, "args": positional, "kwargs": sorted(kwargs), "refused": refused})
for name, rows in (("signatures", signatures), ("mutable", mutable)):
    (OUT / f"{name}.jsonl").write_text("".join(json.dumps(it) + "\n" for it in rows))
    print(name, len(rows), sum(it.get("refused") is not None for it in rows))
