"""Writes the parameter lists and the types of results of PyTorch's functions and modules that are written in Python.

    python tests/oracle/gen_signatures.py > crates/rewrite/src/normalize/signatures.txt

A line is a qualified name, a parameter list without annotations, and the annotation of the result where there is one.
Of a module it is the name of its class and `.forward`. What PyTorch cannot tell by itself, because a flag decides between
two functions, is told where both have the same.
"""

import inspect
import sys

import torch
import torch.nn.functional
from torch._jit_internal import boolean_dispatched
from torch.fx.node import _get_qualified_name, _type_repr


def default(value):
    if isinstance(value, (type(None), bool, int, float, str, torch.dtype)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        inner = ", ".join(default(it) for it in value)
        return f"({inner},)" if isinstance(value, tuple) and len(value) == 1 else (f"({inner})" if isinstance(value, tuple) else f"[{inner}]")
    raise ValueError(value)


def parameters(signature):
    out, starred = [], False
    for it in signature.parameters.values():
        if it.name == "self":
            continue
        if it.kind is it.VAR_POSITIONAL:
            starred = True
        if it.kind is it.KEYWORD_ONLY and not starred:
            starred = True
            out.append("*")
        text = {it.VAR_POSITIONAL: "*", it.VAR_KEYWORD: "**"}.get(it.kind, "") + it.name
        out.append(text if it.default is it.empty else f"{text}={default(it.default)}")
    return f"({', '.join(out)})"


def result(signature):
    annotation = signature.return_annotation
    if annotation is signature.empty:
        return ""
    if isinstance(annotation, str):
        return f" -> {annotation}"
    return f" -> {_type_repr(annotation)}"


def line(name, function):
    dispatched = boolean_dispatched.get(function)
    if dispatched is not None:
        sides = [inspect.signature(dispatched[it]) for it in ("if_true", "if_false")]
        if sides[0].parameters != sides[1].parameters:
            return None
        same = sides[0].return_annotation == sides[1].return_annotation
        return f"{name} {parameters(sides[0])}{result(sides[0]) if same else ''}"
    try:
        signature = inspect.signature(inspect.unwrap(function))
        return f"{name} {parameters(signature)}{result(signature)}"
    except ValueError:
        return None


def functions():
    for module in (torch.nn.functional, torch.functional):
        for name, it in vars(module).items():
            is_own = getattr(it, "__module__", None) == module.__name__ or it in boolean_dispatched.keys() if callable(it) else False
            if inspect.isfunction(it) and is_own and not name.startswith("_"):
                yield _get_qualified_name(it), it


def modules():
    for name, it in vars(torch.nn).items():
        if inspect.isclass(it) and issubclass(it, torch.nn.Module) and inspect.isfunction(it.__dict__.get("forward", it.forward)):
            if it.forward is not torch.nn.Module.forward:
                yield f"{name}.forward", it.forward


lines = {line(name, it) for name, it in [*functions(), *modules()]} - {None}
sys.stdout.write("\n".join(sorted(lines)) + "\n")
