"""Degenerate calls of every operator: the dtypes, sizes and strides that PyTorch gives, or that it refuses.

The calls are those of crates/cpu/tests/degenerate.rs, which writes them:
`TRACEFX_WRITE_CALLS=calls.jsonl cargo test -p tracefx-cpu --test degenerate`. Each is made in a process of its own kind, with
little memory and little time, since some end it; those calls, and those of operators that draw or leave what they give
unset, are left out. The results are written as they come, one call a line.

usage: gen_degenerate.py CALLS OUT_DIR
"""
import json
import os
import resource
import select
import signal
import sys
import warnings

import torch

from encoding import overload_of, scalar_of, tell

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
PATIENCE = 5
MEMORY = 8 << 30
# What is kept of the calls of each operator: tensors of many dimensions make long lines.
N_KEPT, MAX_LENGTH = 10, 450


def read(value):
    if isinstance(value, list):
        return [read(it) for it in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        tensor = torch.full(value["size"], read(value["fill"]), dtype=getattr(torch, value["tensor"]))
        return tensor.as_strided(value["size"], value["stride"]) if "stride" in value else tensor
    return scalar_of(value)


def answer(call):
    try:
        overload = overload_of(call["op"])
    except AttributeError:
        return None
    try:
        args, kwargs = read(call["args"]), {key: read(it) for key, it in call["kwargs"].items()}
    except Exception:
        # A fill that the dtype does not hold, which is none of the operator's.
        return None
    try:
        return {"result": tell(overload(*args, **kwargs))}
    except Exception as problem:  # Whatever PyTorch raises is its answer.
        return {"error": str(problem).split("\n")[0][:120]}


def serve(lines, start, pipe):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.stderr = open(os.devnull, "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for at in range(start, len(lines)):
        torch.manual_seed(0)
        told = json.dumps([at, answer(json.loads(lines[at]))], separators=(",", ":"))
        os.write(pipe, (told + "\n").encode())
    os._exit(0)


def main():
    lines = open(sys.argv[1]).read().splitlines()
    answers, at, lost = {}, 0, 0
    while at < len(lines):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            serve(lines, at, writing)
        os.close(writing)
        rest = b""
        while True:
            ready, _, _ = select.select([reading], [], [], PATIENCE)
            chunk = os.read(reading, 1 << 16) if ready else b""
            if not chunk:
                break
            *done, rest = (rest + chunk).split(b"\n")
            for line in done:
                number, it = json.loads(line)
                answers[number] = it
                at = number + 1
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        if at < len(lines):
            lost += 1
            at += 1
    os.makedirs(sys.argv[2], exist_ok=True)
    n, of_op = 0, {}
    with open(os.path.join(sys.argv[2], "calls.jsonl"), "w") as file:
        for number, it in sorted(answers.items()):
            if it is None:
                continue
            call = json.loads(lines[number]) | it
            told = json.dumps(call, separators=(",", ":"))
            if len(told) < MAX_LENGTH and of_op.get(call["op"], 0) < N_KEPT:
                of_op[call["op"]] = of_op.get(call["op"], 0) + 1
                n += 1
                file.write(told + "\n")
    print(n, "calls,", lost, "ended the process or did not come back")


main()
