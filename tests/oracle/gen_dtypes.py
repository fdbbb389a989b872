"""Operators by dtype: which of them PyTorch's CPU takes, and what it computes or says.

From recorded cases (gen_opcases.py, gen_opcalls.py) the smallest ones of each overload are called again with their
tensors cast to each dtype, with special values, empty and with no dimension. Tensors that say where (indices, masks)
keep their dtype. Operators that draw, and results that differ from run to run, are left out.

One file is written per dtype, in the format of gen_opcases.py, with the smallest case of each overload; and
`refused.txt`, the dtypes that PyTorch has no kernel for, by overload: where up to N cases agree that it says so. It is
crates/ops/src/core/refused.txt.

With `--add`, OUT_DIR keeps what it has, and gets the operators that it lacks; then `refused.txt` holds these alone.

usage: gen_dtypes.py OUT_DIR CASES_DIR... [--cases N] [--only NAME] [--add]
"""

import argparse
import json
import math
import os
import pickle
import re
import signal
import warnings

import torch
from safetensors.torch import load_file, save_file
from torch.utils._pytree import tree_flatten, tree_map

import encoding
from encoding import decode, name_of, overload_of

parser = argparse.ArgumentParser()
parser.add_argument("out")
parser.add_argument("dirs", nargs="+")
parser.add_argument("--cases", type=int, default=4)
parser.add_argument("--only", default="")
parser.add_argument("--add", action="store_true")
options = parser.parse_args()

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
DTYPES = [*FLOATS, *INTS, torch.bool, torch.complex64, torch.complex128]
MAX_NUMEL = 160
# What PyTorch says of a dtype whatever else it is given.
OF_DTYPE = re.compile(
    r"\" not implemented for '|does not support (bool|complex) input|not supported for complex|nputs not supported"
    r"|only supports? (floating|real)|Expected a floating point|expected input to have floating point"
    r"|Low precision dtypes not supported|but got (BFloat16|Half)$|^the base given to|safely cast to passed dtype"
)
# Whose special values depend on the order of sums or on the library behind them.
PLAIN_ONLY = re.compile(
    r"aten\.(fmod\.Scalar|isclose|triplet|_?cdist|embedding_renorm|special_(ndtr|i0e|zeta)|.*batch_norm"
    r"|special_(bessel|modified_bessel|scaled_modified|airy|chebyshev|shifted_chebyshev|hermite|laguerre|legendre)|.*igamma|special_gammainc|mode|unique_dim|var_mean|_?linalg_|_?fft_|_?conv|.*(svd|cholesky|slogdet|logdet|matrix_exp|pinverse|nuclear_norm|lu_|lstm|gru|rnn))"
)
# Results that hold what was in memory before, and questions about how tensors lie in memory.
LEFT_OUT = ("empty", "resize", "new_empty", "is_pinned", "sym_stride", "rand", "dropout", "rrelu", "_assert", "sym_storage_offset", "result_type")


def encode(value, tensors):
    def keep(flat):
        # Equal data is written once.
        key = (flat.dtype, flat.view(torch.uint8).numpy().tobytes()) if flat.numel() > 0 else (flat.dtype, b"")
        if key not in tensors:
            tensors[key] = (f"t{1 + max((int(name[1:]) for name, _ in tensors.values()), default=-1)}", flat)
        return tensors[key][0]

    return encoding.encode(tree_map(without_gaps, value), keep)


def without_gaps(value):
    """A tensor that lies row by row where it would be written with many gaps."""
    if not isinstance(value, torch.Tensor) or value.numel() == 0:
        return value
    span = 1 + sum((s - 1) * d for s, d in zip(value.shape, value.stride()))
    return value.contiguous() if span > 4 * value.numel() else value


def arguments(case, tensors):
    return decode(case["args"], tensors.get), {key: decode(it, tensors.get) for key, it in case["kwargs"].items()}


def cast(tensor, dtype):
    """The values of a tensor, spread so that they differ in ints too."""
    real = tensor.real if tensor.is_complex() else tensor
    if dtype.is_complex:
        return tensor.to(dtype) if tensor.is_complex() else torch.complex(real.double(), real.double().flip(0) / 2 if real.dim() else real.double() / 2).to(dtype)
    if dtype == torch.bool:
        return real > 0
    if dtype.is_floating_point:
        return real.to(dtype)
    if real.is_floating_point():
        real = (real.double().nan_to_num(0, 9, -9) * 3).round().clamp(-100, 100)
    return (real.double().abs() if dtype == torch.uint8 else real).to(dtype)


def special(tensor, dtype, turn):
    """A tensor of this size with the values that are easily wrong."""
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        values = [math.nan, math.inf, -math.inf, -0.0, 0.0, info.smallest_normal / 4, info.max, 1.0, -1.0, 0.5, -2.5]
    else:
        info = torch.iinfo(dtype)
        values = [info.min, info.max, 0, 1, info.max - 1, 2, 7]
        values = values if dtype == torch.uint8 else [*values, -1, -7, info.min + 1, -3]
    pool = torch.tensor(values, dtype=dtype)
    at = (torch.arange(tensor.numel()) * (turn + 1) + turn) % len(values)
    return pool[at].reshape(tensor.shape)


def is_data(args):
    """Which tensors are cast: the floats, or else those of the dtype that most of them have."""
    dtypes = [it.dtype for it in tree_flatten(args)[0] if isinstance(it, torch.Tensor)]
    if any(it.is_floating_point or it.is_complex for it in dtypes):
        return lambda it: it.dtype.is_floating_point or it.dtype.is_complex
    first = max(dtypes, key=lambda it: (dtypes.count(it), it != torch.bool))
    return lambda it: it.dtype == first


def replaced(args, make):
    wanted, seen = is_data(args), []

    def one(value):
        if not isinstance(value, torch.Tensor) or not wanted(value):
            return value
        seen.append(value)
        return make(value, len(seen) - 1)

    return tree_map(one, args)


def variants(op, args, dtype):
    yield "", replaced(args, lambda it, _: cast(it, dtype))
    if dtype != torch.bool and not dtype.is_complex and not PLAIN_ONLY.match(op):
        yield "special", replaced(args, lambda it, turn: special(it, dtype, turn))
    if dtype in (torch.float32, torch.int64):
        yield "empty", replaced(args, lambda it, _: cast(it, dtype)[:0] if it.dim() else cast(it, dtype))
        yield "0-d", replaced(args, lambda it, _: cast(it, dtype).flatten()[0] if it.numel() else cast(it, dtype))


def copies(args):
    return tree_map(lambda it: it.clone() if isinstance(it, torch.Tensor) else it, args)


def is_same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(is_same, a, b))
    return a == b or (a != a and b != b)


def call(overload, args):
    positional, named = copies(args)
    try:
        return overload(*positional, **named), None
    except Exception as problem:  # Whatever PyTorch raises is its answer.
        return None, {"type": type(problem).__name__, "message": str(problem).split("\n")[0][:200]}


def is_of_dtype(error, args):
    if error is None:
        return False
    if "can't be cast to the desired output type" in error["message"]:
        return not any(isinstance(it, float) for it in tree_flatten(args)[0])
    return OF_DTYPE.search(error["message"]) is not None


def record(cases, tensors):
    """The cases of one overload, each with its variants: pairs of a dtype and what is written."""
    overload = overload_of(cases[0]["op"])
    if torch.Tag.nondeterministic_seeded in overload.tags:
        return
    for number, case in enumerate(cases):
        # As lists of ints are no pytrees of tensors, they stay.
        base = arguments(case, tensors)
        if not any(isinstance(it, torch.Tensor) for it in tree_flatten(base)[0]):
            continue
        for dtype in DTYPES:
            is_taken = True
            for kind, args in variants(case["op"], base, dtype):
                # Where there is nothing to compute, PyTorch does not notice that it has no kernel.
                if kind != "" and (number > 0 or not is_taken):
                    continue
                result, error = call(overload, args)
                is_taken = is_taken and error is None
                again = call(overload, args)
                if error is None and (again[1] is not None or not is_same(result, again[0])):
                    continue
                yield name_of(dtype), kind, number == 0, args, result, error


def chosen(path, tensors):
    """The smallest cases, of different kinds of arguments, by overload."""
    by_op = {}
    with open(path) as file:
        for line in file:
            case = json.loads(line)
            if case.get("result") is not None and "seed" not in case and not any(it in case["op"] for it in LEFT_OUT):
                by_op.setdefault(case["op"], []).append(case)
    for cases in by_op.values():
        sized = []
        for at, case in enumerate(cases):
            flat = tree_flatten(arguments(case, tensors))[0]
            sizes = [it.numel() for it in flat if isinstance(it, torch.Tensor)]
            if sizes and sum(sizes) <= MAX_NUMEL:
                # A case with nothing in it says little of a dtype.
                if min(sizes) > 0 or not sized:
                    sized.append((min(sizes) == 0, max(sizes) < 4, sum(sizes), at, case))
        sized.sort(key=lambda it: it[:4])
        picked, kinds = [], set()
        for *_, case in sized:
            kind = json.dumps([[type(it).__name__, "tensor" in it if isinstance(it, dict) else it] for it in case["args"]]) + str(sorted(case["kwargs"]))
            if kind not in kinds:
                kinds.add(kind)
                picked.append(case)
        if picked:
            yield picked[: options.cases], cases


def in_child(cases, tensors):
    """Records in a process of its own: what some operators do to dtypes that nobody gave them ends the process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(120)
        with os.fdopen(write, "wb") as file:
            try:
                for it in record(cases, tensors):
                    pickle.dump(it, file)
                    file.flush()
            except Exception as problem:
                print(cases[0]["op"], type(problem).__name__, problem, flush=True)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        try:
            while True:
                yield pickle.load(file)
        except EOFError:
            pass
    _, status = os.waitpid(child, 0)
    if status != 0:
        print(cases[0]["op"], "ended with", status, flush=True)


def file_of(dtype):
    """What is written for a dtype: lines, and tensors by their data."""
    path = os.path.join(options.out, f"{dtype}.jsonl")
    if not options.add or not os.path.exists(path):
        return [], {}
    with open(path) as file:
        lines = file.read().splitlines()
    # Under their names, so that no new tensor takes the name of an old one.
    return lines, {name: (name, flat) for name, flat in load_file(path.replace(".jsonl", ".safetensors")).items()}


files = {name_of(it): file_of(name_of(it)) for it in DTYPES}
known = {json.loads(line)["op"] for lines, _ in files.values() for line in lines}
refused = {}
for directory in options.dirs:
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".jsonl") or options.only not in name:
            continue
        path = os.path.join(directory, name)
        stored = load_file(path.removesuffix(".jsonl") + ".safetensors")
        for cases, every in chosen(path, stored):
            op = cases[0]["op"]
            if op in refused or op in known:
                continue
            refused[op], taken = set(), set()
            # What an older PyTorch computed stays.
            taken |= {it["dtype"] for case in every for it in case["args"][:1] if isinstance(it, dict) and "tensor" in it}
            recorded = list(in_child(cases, stored))
            for dtype, kind, _, args, _, error in recorded:
                if kind == "":
                    (refused[op] if is_of_dtype(error, args) else taken).add(dtype)
            refused[op] -= taken
            for dtype, _, is_kept, args, result, error in recorded:
                # Where PyTorch has several kernels, some know fewer dtypes; that is no property of the operator.
                if not is_kept or (is_of_dtype(error, args) and dtype not in refused[op]):
                    continue
                lines, tensors = files[dtype]
                try:
                    written = {"op": op, "args": encode(args[0], tensors), "kwargs": {k: encode(v, tensors) for k, v in args[1].items()}}
                    written |= {"result": encode(result, tensors)} if error is None else {"error": error}
                except NotImplementedError:
                    continue
                lines.append(json.dumps(written, separators=(",", ":")))

os.makedirs(options.out, exist_ok=True)
for dtype, (lines, tensors) in files.items():
    with open(os.path.join(options.out, f"{dtype}.jsonl"), "w") as file:
        file.writelines(f"{it}\n" for it in lines)
    save_file(dict(tensors.values()), os.path.join(options.out, f"{dtype}.safetensors"))
    print(dtype, len(lines), "cases")
GROUPS = {
    "halves": {"float16", "bfloat16"},
    "ints": {name_of(it) for it in INTS},
    "complex": {"complex64", "complex128"},
}
with open(os.path.join(options.out, "refused.txt"), "w") as file:
    for op in sorted(it for it in refused if refused[it]):
        words, left = [], refused[op]
        for name, group in GROUPS.items():
            if group <= left:
                words.append(name)
                left = left - group
        file.write(" ".join([op, *words, *sorted(left)]) + "\n")
