"""Times one workload of `npm run bench` on PyTorch, and prints JSON: the milliseconds of the shortest call, those until the first result,
and the most memory that the process had, in bytes. The first result goes to a file as float32.

    python benches/torchMeasure.py NAME eager|compile THREADS SECONDS OUTPUT
"""

import json
import resource
import sys
import time
import warnings

import torch

from models import made


def main():
    name, way, threads, seconds, output = sys.argv[1:]
    torch.set_num_threads(int(threads))
    module, inputs, *_ = made(name)
    start = time.perf_counter()
    with torch.inference_mode():
        run = torch.compile(module) if way == "compile" else module
        result = run(*inputs)
        load = time.perf_counter() - start
        with open(output, "wb") as file:
            file.write(result.float().numpy().tobytes())
        run(*inputs)
        shortest, n, end = float("inf"), 0, time.perf_counter() + float(seconds)
        while n < 5 or time.perf_counter() < end:
            begin = time.perf_counter()
            run(*inputs)
            shortest = min(shortest, time.perf_counter() - begin)
            n += 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"ms": shortest * 1e3, "load": load * 1e3, "memory": memory}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
