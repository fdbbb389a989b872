"""Times workloads of `npm run bench` on a GPU beside PyTorch's CUDA, and prints a table: milliseconds of the shortest call.

    python benches/gpu.py [--eager] COMMAND FOLDER NAME...

COMMAND is the native `tracefx`. With `--eager`, nothing is compiled by PyTorch. The models are made in FOLDER, unless they are there. A *call* begins with the inputs in the memory of the CPU, and
ends with the results there; the ratio is that to PyTorch's faster one. *Steps* is the sum of what the GPU takes for the steps of the plan, by its own clock (`tracefx profile`), and *resident* a
call of PyTorch on tensors that stay on the GPU, until it has ended, launches included. The largest difference between the results and PyTorch's on the CPU is beside them.
Products and convolutions are in float32 on both sides, without TF32.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings

import torch

from models import WORKLOADS, made, save_tensors

SECONDS = 1.0


def shortest(body):
    """Milliseconds of the shortest call."""
    for _ in range(3):
        body()
    best, n, end = float("inf"), 0, time.perf_counter() + SECONDS
    while n < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        body()
        best = min(best, time.perf_counter() - begin)
        n += 1
    return best * 1e3


def ours(command, base):
    """Milliseconds of a call and of its steps, and the share of the steps that the GPU does."""
    line = [command, "run", base + ".pt2", "--inputs", base + ".inputs.safetensors", "--outputs", base + ".out.safetensors"]
    line += ["--device", "gpu", "--repeat", "100", "--json"]
    call = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)["milliseconds"]
    line = [command, "profile", base + ".pt2", "--inputs", base + ".inputs.safetensors", "--device", "gpu", "--json"]
    report = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    n_cpu = sum(it["placement"]["reason"] is not None for it in report["steps"])
    return call, report["milliseconds"], f"{len(report['steps'])}, {n_cpu} on the CPU"


def difference(base, expected):
    """The largest difference of the first result."""
    with open(base + ".out.safetensors", "rb") as file:
        data = file.read()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    begin, end = header["out0"]["data_offsets"]
    result = torch.frombuffer(bytearray(data[8 + n + begin : 8 + n + end]), dtype=torch.float32)
    return float((result - expected.flatten()).abs().max())


def theirs(module, inputs, is_compiled):
    """Milliseconds of PyTorch: a call and one on the GPU alone, eager and compiled."""
    times = []
    with torch.inference_mode(), torch.device("cuda"):
        module = module.cuda()
        for run in (module, torch.compile(module)) if is_compiled else (module,):
            def call():
                return run(*(it.cuda() for it in inputs)).cpu()

            there = [it.cuda() for it in inputs]

            def resident():
                run(*there)
                torch.cuda.synchronize()

            try:
                times += [shortest(call), shortest(resident)]
            except Exception as problem:  # What PyTorch does not compile is told, and the table goes on.
                print(f"{type(problem).__name__}: {str(problem)[:300]}", file=sys.stderr)
                times += [float("nan")] * 2
    return times + [float("nan")] * (4 - len(times))


def main():
    parser = argparse.ArgumentParser(description="Times workloads on a GPU beside PyTorch's CUDA.")
    parser.add_argument("--eager", action="store_true", help="compile nothing by PyTorch")
    parser.add_argument("command", help="the native tracefx")
    parser.add_argument("folder", help="where the models are, or are made")
    parser.add_argument("names", nargs="+", choices=sorted(WORKLOADS), metavar="NAME")
    options = parser.parse_args()
    command, folder, names = options.command, options.folder, options.names
    os.makedirs(folder, exist_ok=True)
    print(torch.cuda.get_device_name(0), "torch", torch.__version__)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    print("| workload | call | torch eager | torch.compile | ratio | steps | resident, eager | resident, compiled | steps of the plan | difference |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|---|--:|", flush=True)
    for name in names:
        module, inputs, *_ = made(name)
        base = os.path.join(folder, name)
        if not os.path.exists(base + ".pt2"):
            torch.export.save(torch.export.export(module, tuple(inputs)), base + ".pt2")
            save_tensors(base + ".inputs.safetensors", {f"in{at}": it for at, it in enumerate(inputs)})
        with torch.inference_mode():
            expected = module(*inputs).float()
        try:
            call, steps, n = ours(command, base)
            apart = difference(base, expected)
        except subprocess.CalledProcessError as problem:
            print(f"{name}: {problem.stderr[-600:]}", file=sys.stderr)
            call, steps, n, apart = float("nan"), float("nan"), "", float("nan")
        eager, eager_there, compiled, compiled_there = theirs(module, inputs, not options.eager)
        ratio = call / (eager if math.isnan(compiled) else min(eager, compiled))
        times = [f"{it:.3f}" for it in (call, eager, compiled)]
        there = [f"{it:.3f}" for it in (steps, eager_there, compiled_there)]
        print(f"| {name} | {' | '.join(times)} | {ratio:.2f} | {' | '.join(there)} | {n} | {apart:.1e} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
