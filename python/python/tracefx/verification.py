"""Whether a program runs in the browser, and how far its numbers are from PyTorch's."""

from __future__ import annotations

import copy
import dataclasses
import io
import types
from typing import Any, Dict, List, Optional, Tuple

from tracefx._tracefx import ExportedProgram, Tensor, load
from tracefx.errors import FxError, InputError

# A module of WebAssembly addresses so much memory.
_MEMORY = 1 << 32


@dataclasses.dataclass(frozen=True)
class Verification:
    """What :func:`verify` found. It is true where the program runs, and prints as one line."""

    runs: bool
    """Whether the program runs in the browser: the engine there has the same operators as here."""
    operators: int
    """How many different operators it calls."""
    weight_bytes: int
    """The bytes of its parameters, buffers and constants."""
    missing: Tuple[Tuple[str, int], ...]
    """The operators that are missing, and how many nodes call each."""
    problem: Optional[str]
    """Why it does not run, where no operator is missing."""
    largest_difference: Optional[float]
    """The largest difference of a number from PyTorch's; None where nothing was compared."""
    relative_difference: Optional[float]
    """The same as a part of the largest value of its output."""

    def __bool__(self) -> bool:
        return self.runs

    def __str__(self) -> str:
        if self.missing:
            n = len(self.missing)
            told = ", ".join(f"{target} ({count} node{'s' if count > 1 else ''})" for target, count in self.missing)
            return f"does not run in the browser: {n} operator{'s are' if n > 1 else ' is'} missing: {told}"
        if not self.runs:
            return f"does not run in the browser: {self.problem}"
        text = f"runs in the browser: {self.operators} operators, {_size(self.weight_bytes)} of weights"
        if self.largest_difference is None or self.relative_difference is None:
            return f"{text}; not compared with PyTorch"
        if self.largest_difference == 0:
            return f"{text}; the same numbers as PyTorch"
        relative = f"{self.relative_difference:.1e} of the largest value"
        return f"{text}; largest difference from PyTorch {self.largest_difference:.1e}, {relative}"


def verify(program: Any, *args: Any, **kwargs: Any) -> Verification:
    """Says whether a program runs in the browser, what is missing, and how far its numbers are from PyTorch's.

    ``program`` is a ``torch.export.ExportedProgram``, a program of tracefx, a path or bytes. The inputs are those of a call; without
    any, the example inputs that it was exported with are taken. Inputs that the program does not take are an exception. Numbers are
    compared where PyTorch's program is given.
    """
    is_theirs = type(program).__module__.partition(".")[0] == "torch" and hasattr(program, "graph_signature")
    theirs = program if is_theirs else None
    ours = program if isinstance(program, ExportedProgram) else load(_saved(theirs) if theirs is not None else program)
    report = ours.inspect()
    weight_bytes = sum(it["bytes"] for it in report["sizes"])
    found = {
        "operators": len(report["ops"]),
        "weight_bytes": weight_bytes,
        "missing": tuple((it["target"], it["count"]) for it in report["ops"] if it["support"] == "missing"),
    }
    refused = dict(found, runs=False, largest_difference=None, relative_difference=None)
    if found["missing"] or report["obstacle"] is not None:
        return Verification(**refused, problem=report["obstacle"])
    if weight_bytes >= _MEMORY:
        what = f"{_size(weight_bytes)} of weights do not fit into the {_size(_MEMORY)} that WebAssembly addresses"
        return Verification(**refused, problem=what)
    if not args and not kwargs:
        args, kwargs = _examples(theirs if theirs is not None else ours)
    differences = None
    if args or kwargs or not _user_inputs(report):
        try:
            args_here, kwargs_here = _copied(args, kwargs)
            given = ours.module()(*args_here, **kwargs_here)
        except InputError:
            # The call is wrong, not the program.
            raise
        except FxError as problem:
            return Verification(**refused, problem=str(problem))
        if theirs is not None:
            differences = _compared(_leaves(given), _leaves(_answer(theirs, args, kwargs)))
            if isinstance(differences, str):
                return Verification(**refused, problem=differences)
    absolute, relative = differences or (None, None)
    return Verification(**found, runs=True, problem=None, largest_difference=absolute, relative_difference=relative)


def _user_inputs(report: Dict[str, Any]) -> List[str]:
    """The names of the user's inputs."""
    return [it["name"] for it in report["inputs"] if it["kind"] == "USER_INPUT"]


def _saved(program: Any) -> bytes:
    import torch

    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def _examples(program: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    return program.example_inputs or ((), {})


def _answer(program: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    import torch

    args, kwargs = _copied(args, kwargs)
    with torch.no_grad():
        return program.module()(*args, **kwargs)


def _copied(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Copies of the inputs, which a program may write to."""
    # PyTorch refuses to copy tensors that it computed with gradients.
    computed = [it for it in _leaves((args, kwargs)) if getattr(it, "requires_grad", False)]
    return copy.deepcopy((args, kwargs), {id(it): it.detach().clone() for it in computed})


def _leaves(value: Any) -> List[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for it in value for leaf in _leaves(it)]
    if isinstance(value, dict):
        return [leaf for it in value.values() for leaf in _leaves(it)]
    if isinstance(value, types.SimpleNamespace):
        return _leaves(vars(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [leaf for it in dataclasses.fields(value) for leaf in _leaves(getattr(value, it.name))]
    return [] if value is None else [value]


def _compared(given: List[Any], expected: List[Any]) -> Any:
    """The largest differences, or what differs beside numbers."""
    import torch

    if len(given) != len(expected):
        return f"it gives {len(given)} values, and PyTorch {len(expected)}"
    absolute = relative = 0.0
    for at, (ours, theirs) in enumerate(zip(given, expected)):
        if not isinstance(ours, Tensor) or not isinstance(theirs, torch.Tensor):
            if type(ours) is not type(theirs) or ours != theirs:
                return f"its output {at} is {ours!r}, and PyTorch's {theirs!r}"
            continue
        ours, theirs = torch.from_dlpack(ours), theirs.detach().cpu()
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            what = f"{theirs.dtype} of the sizes {list(theirs.shape)}"
            return f"its output {at} is {ours.dtype} of the sizes {list(ours.shape)}, and PyTorch's {what}"
        wide = torch.complex128 if theirs.is_complex() else torch.float64
        ours, theirs = ours.to(wide), theirs.to(wide)
        same = (ours == theirs) | (ours.isnan() & theirs.isnan())
        difference = torch.where(same, 0.0, (ours - theirs).abs())
        if difference.numel() == 0:
            continue
        largest = difference.max().item()
        scale = theirs.abs().nan_to_num(0.0, 0.0, 0.0).max().item()
        absolute = _larger(absolute, largest)
        relative = _larger(relative, largest / scale if scale > 0 else largest)
    return absolute, relative


def _larger(first: float, second: float) -> float:
    """The larger one; NaN, where one of both is a number and the other is not, is the largest of all."""
    return second if second != second or second > first else first


def _size(n_bytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"
