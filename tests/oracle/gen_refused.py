"""The dtypes that PyTorch's CPU refuses, of the operators of which gen_dtypes.py has no case, and which of them it refuses
where there is nothing to compute, too.

CALLS is what gen_degenerate.py wrote of many calls of each operator. Those that PyTorch answered are made again with their
tensors cast to each dtype, once as they are and once with no element. A dtype is refused where PyTorch says so of a call
and answers none. TABLE is crates/ops/src/core/refused.txt: rows that it has keep their dtypes, and what is refused without
elements follows them after a `/`.

usage: gen_refused.py CALLS TABLE
"""
import json
import os
import re
import signal
import sys
import warnings

import torch

from encoding import name_of, overload_of

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8,
    torch.bool, torch.complex64, torch.complex128,
]
GROUPS = {
    "halves": {"float16", "bfloat16"},
    "ints": {"int8", "int16", "int32", "int64", "uint8"},
    "complex": {"complex64", "complex128"},
}
# As in gen_dtypes.py: what PyTorch says of a dtype whatever else it is given. Numbers of all 64 bits are another kernel's.
OF_DTYPE = re.compile(
    r"(?<!bits_range_kernel_cpu)\" not implemented for '|is not implemented for complex|does not support (bool|complex) input|not supported for complex|nputs not supported"
    r"|only supports? (floating|real)|Expected a floating point|expected input to have floating point"
    r"|Low precision dtypes not supported|but got (BFloat16|Half)$|^the base given to|safely cast to passed dtype"
)
WHERE = ("index", "indices", "target")
N_CALLS = 16
PATIENCE = 60


def tensors_of(value):
    if isinstance(value, list):
        return [tensor for it in value for tensor in tensors_of(it)]
    return [value] if isinstance(value, dict) and "tensor" in value else []


def is_float(tensor):
    return "float" in tensor["tensor"] or "complex" in tensor["tensor"]


def has_complex(value):
    if isinstance(value, list):
        return any(map(has_complex, value))
    return isinstance(value, dict) and ("complex" in value or has_complex(value.get("fill")))


def asks_for_dtype(call):
    return any(isinstance(it, dict) and "dtype" in it for it in [*call["args"], *call["kwargs"].values()])


def read(value, dtype, is_data, is_empty):
    if isinstance(value, list):
        return [read(it, dtype, is_data, is_empty) for it in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        size = value["size"]
        if is_empty:
            size = [0, *size[1:]]
        if is_data(value):
            return torch.ones(size, dtype=dtype)
        return torch.full(size, read(value["fill"], dtype, is_data, False), dtype=getattr(torch, value["tensor"]))
    (kind, it), = value.items()
    return float(it) if kind == "float" else getattr(torch, it)


def answers(overload, calls):
    """For each dtype, with elements and without, how many calls are answered, and how many refused for their dtype."""
    for call in calls:
        names = [it.name for it in overload._schema.arguments]
        args = dict(zip(names, call["args"])) | call["kwargs"]
        data = [it for name, arg in args.items() if name not in WHERE for it in tensors_of(arg)]
        if any(map(is_float, data)):
            data = [it for it in data if is_float(it)]
        ids = {id(it) for it in data}
        if not ids:
            continue
        for is_empty in (False, True):
            if is_empty and any(it["size"] == [] for it in data):
                continue
            is_full = not is_empty and all(0 not in it["size"] for it in data)
            if not is_full and not is_empty:
                continue
            for dtype in DTYPES:
                try:
                    given = {name: read(arg, dtype, lambda it: id(it) in ids, is_empty) for name, arg in args.items()}
                except Exception:
                    # A fill that the dtype does not hold, which is none of the operator's.
                    continue
                try:
                    overload(**given)
                    yield name_of(dtype), is_empty, True
                except Exception as problem:  # Whatever PyTorch raises is its answer.
                    if OF_DTYPE.search(str(problem).split("\n")[0]):
                        yield name_of(dtype), is_empty, False


def in_child(overload, calls):
    """In a process of its own, since some calls end it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writing, "w") as file:
            for it in answers(overload, calls):
                file.write(json.dumps(it) + "\n")
                file.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        told = [json.loads(line) for line in file]
    os.waitpid(child, 0)
    return told


def words_of(dtypes):
    words, left = [], set(dtypes)
    for name, group in GROUPS.items():
        if group <= left:
            words.append(name)
            left -= group
    return words + sorted(left)


def main():
    by_op = {}
    for line in open(sys.argv[1]):
        call = json.loads(line)
        if "result" in call and not has_complex(call["args"]) and not has_complex(list(call["kwargs"].values())):
            by_op.setdefault(call["op"], []).append(call)
    table = {}
    for line in open(sys.argv[2]).read().splitlines():
        op, *words = line.split(" / ")[0].split(" ")
        table[op] = (words, [])
    for op, calls in sorted(by_op.items()):
        # What is computed in the dtype that is asked for takes tensors of any.
        calls = [it for it in calls if not asks_for_dtype(it)]
        if not calls:
            continue
        # Those with elements and without, and of them those with the fewest elements.
        calls = [it for it in calls if all(len(tensor["size"]) < 8 and max([0, *tensor["size"]]) < 64 for tensor in tensors_of(it["args"]))]
        calls.sort(key=lambda it: any(0 in tensor["size"] for tensor in tensors_of(it["args"])))
        told = in_child(overload_of(op), calls[:N_CALLS] if len(calls) <= N_CALLS else calls[: N_CALLS // 2] + calls[-N_CALLS // 2 :])
        refused = []
        for is_empty in (False, True):
            of = {(dtype, is_taken) for dtype, empty, is_taken in told if empty == is_empty}
            refused.append({dtype for dtype, is_taken in of if not is_taken and (dtype, True) not in of})
        full = words_of(refused[0]) if op not in table else table[op][0]
        known = {it for word in full for it in GROUPS.get(word, {word})}
        empty = words_of(refused[1] & known)
        if op in table or (full and not any(it.name == "dtype" for it in overload_of(op)._schema.arguments)):
            table[op] = (full, empty)
    with open(sys.argv[2], "w") as file:
        for op, (full, empty) in sorted(table.items()):
            file.write(" ".join([op, *full, *(["/", *empty] if empty else [])]) + "\n")


main()
