"""What PyTorch's transforms of functions give for single operators: torch.func.jvp and torch.func.vmap, for tests/conformance/transforms.mjs.

The calls are those of gen_gradients.py, which has their gradients (`torch.func.vjp`). What has a gradient among the positional arguments is a primal; all else is as
it is.
The changes of a tensor are the numbers ((7*i) % 11 - 5) / 8 in the order of its elements, of complex ones with these as the imaginary part
too. An example of two is the tensor, and half of it. Each line names the file and the line of the call, and has what each transform gave:
`jvp` the changes of the floats among the results, `vmap` all tensors of them. A transform that PyTorch refuses is left out.

usage: gen_transforms.py OUT_DIR GRADIENTS_DIR N_CASES   (at most N_CASES calls of an operator; torch 2.13.0)
"""
import collections
import json
import os
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file, save_file

import encoding

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
out_dir, calls_dir, n_cases = sys.argv[1], sys.argv[2], int(sys.argv[3])
tensors, refused, given = {}, collections.Counter(), collections.Counter()


def keep(flat):
    tensors[f"t{len(tensors)}"] = flat
    return f"t{len(tensors) - 1}"


def each(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from each(item)


def primals_of(value, grad):
    """The tensors among arguments that have a gradient."""
    if isinstance(grad, torch.Tensor): return [value]
    if isinstance(grad, list): return [it for pair in zip(value, grad) for it in primals_of(*pair)]
    return []


def replaced(value, by):
    if isinstance(value, torch.Tensor): return next((new for old, new in by if old is value), value)
    if isinstance(value, (list, tuple)): return [replaced(it, by) for it in value]
    return value


def change_of(it):
    numbers = (torch.arange(it.numel()) * 7 % 11 - 5).to(torch.float64) / 8
    numbers = torch.complex(numbers, numbers) if it.is_complex() else numbers
    return numbers.reshape(it.shape).to(it.dtype)


def transforms(op, args, kwargs, grads):
    overload = encoding.overload_of(op)
    primals = [it for pair in zip(args, grads) for it in primals_of(*pair)]

    def function(is_wanted):
        def f(*new):
            by = list(zip(primals, new))
            result = overload(*replaced(args, by), **kwargs)
            return [it for it in each([result]) if is_wanted(it)]
        return f

    is_float = lambda it: it.dtype.is_floating_point or it.dtype.is_complex
    pairs = [torch.stack([it, it * 0.5]) for it in primals]
    return {
        "jvp": lambda: torch.func.jvp(function(is_float), tuple(primals), tuple(change_of(it) for it in primals))[1],
        "vmap": lambda: torch.func.vmap(function(lambda it: True))(*pairs),
    }


def found_of(op, args, kwargs, grads):
    """What each transform gave, or the text of its refusal."""
    res = {}
    for name, run in transforms(op, args, kwargs, grads).items():
        # Results on which nothing depends are told without data.
        dense = lambda it: torch.zeros(it.shape, dtype=it.dtype) if it._is_zerotensor() else it.detach().resolve_conj().resolve_neg()
        try: res[name] = [dense(it).contiguous() for it in run()]
        except Exception as error: res[name] = str(error)
    return res


def in_child(calls):
    """The same of several calls in a child process: PyTorch falls over a few of them."""
    with tempfile.NamedTemporaryFile() as file:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                torch.save([found_of(*call) for call in calls], file)
                file.flush()
                status = 0
            finally: os._exit(status)
        if os.waitpid(child, 0)[1] == 0: return torch.load(file.name)
    if len(calls) == 1: return [{"jvp": "PyTorch fell over it", "vmap": "PyTorch fell over it"}]
    middle = len(calls) // 2
    return in_child(calls[:middle]) + in_child(calls[middle:])


lines, calls, seen = [], [], collections.Counter()
for file in ("cases", "more"):
    data = load_file(os.path.join(calls_dir, f"{file}.safetensors"))
    for at, line in enumerate(open(os.path.join(calls_dir, f"{file}.jsonl"))):
        it = json.loads(line)
        decode = lambda value: encoding.decode(value, data.__getitem__)
        args, kwargs, grads = decode(it["args"]), {key: decode(value) for key, value in it["kwargs"].items()}, decode(it["result"])
        # What has no elements says little.
        if seen[it["op"]] >= n_cases or all(grad.numel() == 0 for grad in each(grads[:len(args)])): continue
        seen[it["op"]] += 1
        lines.append({"call": [file, at + 1], "op": it["op"]})
        calls.append((it["op"], args, kwargs, grads))

for at in range(0, len(calls), 32):
    for it, found in zip(lines[at:], in_child(calls[at:at + 32])):
        for name, value in found.items():
            counts = refused if isinstance(value, str) else given
            counts[name] += 1
            if counts is given: it[name] = encoding.encode(value, keep)
            else: print(it["op"], name, value.split("\n")[0][:120])

os.makedirs(out_dir, exist_ok=True)
with open(os.path.join(out_dir, "cases.jsonl"), "w") as file:
    for it in lines: file.write(json.dumps(it, separators=(",", ":")) + "\n")
save_file(tensors, os.path.join(out_dir, "cases.safetensors"))
print(len(seen), "operators,", len(lines), "calls; given:", dict(given), "refused:", dict(refused))
