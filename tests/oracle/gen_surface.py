"""Where PyTorch offers each overload of its operators in Python: as functions, methods or properties.

A line is an overload and its places: `torch`, `special`, `linalg`, `fft` and `nn` (`torch._C._nn`) for functions, `method`
for methods of tensors, and `out` where the packet has overloads that write to `out=`. Overloads without a place are left
out, and so are names that begin with an underscore, and what Python wraps in a function of its own.

usage: gen_surface.py OUT.txt
"""
import sys
from pathlib import Path

import torch
import torchgen
from torchgen.gen import parse_native_yaml
from torchgen.model import Variant
from torchgen.packaged.autograd.gen_python_functions import should_generate_py_binding

native = Path(torchgen.__file__).parent / "packaged/ATen/native"
functions = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml")).native_functions
MODULES = {"special": torch._C._special, "linalg": torch._C._linalg, "fft": torch._C._fft, "nn": torch._C._nn}
# Bindings that are written by hand in C++.
BY_HAND = {"contiguous": ["method"], "copy_": ["method"], "nonzero": ["torch", "method"]}

# What needs no operator is written in TypeScript.
IN_TYPESCRIPT = {"resize_", "resize_as_", "is_complex", "is_floating_point", "is_signed", "result_type", "promote_types", "can_cast"}

outs = {f.func.name.name.base for f in functions if f.func.arguments.out}


def is_native(place, name):
    return type(getattr(place, name, None)).__name__ in ("builtin_function_or_method", "method_descriptor")


lines = []
for f in functions:
    name, overload = str(f.func.name.name), f.func.name.overload_name or "default"
    if f.func.arguments.out or name.startswith("_") or name in IN_TYPESCRIPT: continue
    places = BY_HAND.get(name, []) if overload == "default" else []
    if should_generate_py_binding(f):
        module = f.python_module
        if module: places = [module] if module in MODULES and is_native(MODULES[module], name) else []
        else:
            if Variant.function in f.variants and is_native(torch, name): places = places + ["torch"]
            if Variant.method in f.variants and is_native(torch.Tensor, name): places = places + ["method"]
    if not places: continue
    has_out = f.func.name.name.base in outs and not name.endswith("_") and places != ["method"]
    lines.append(" ".join([f"{name}.{overload}", *places, *(["out"] if has_out else [])]))
Path(sys.argv[1]).write_text("\n".join(sorted(lines)) + "\n")
