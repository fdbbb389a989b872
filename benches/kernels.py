"""Times of single kernels beside PyTorch's, each on one thread: the cases of kernels.json.

    python benches/kernels.py [NAME...]      # cases whose names contain one of these; all without
    python benches/kernels.py --before FILE  # also the ratio to an earlier run, whose times --save wrote
"""

import argparse
import json
import pathlib
import subprocess
import time

import torch

HERE = pathlib.Path(__file__).parent


def value(it):
    if isinstance(it, list):
        return [value(item) for item in it]
    if not isinstance(it, dict):
        return it
    below = it.get("below")
    if below == 1:
        tensor = torch.rand(it["sizes"])
    elif below:
        tensor = torch.randint(below, it["sizes"])
    else:
        tensor = torch.randn(it["sizes"])
    tensor = tensor.to(getattr(torch, it.get("dtype", str(tensor.dtype)[6:])))
    return tensor.permute(it["permute"]) if "permute" in it else tensor


def option(key, it):
    return {"dtype": lambda: getattr(torch, it), "memory_format": lambda: torch.contiguous_format}.get(key, lambda: it)()


def median(run):
    run()
    times, start = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - start < 0.2 and len(times) < 1000):
        before = time.perf_counter()
        run()
        times.append(time.perf_counter() - before)
    return sorted(times)[len(times) // 2] * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--save", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    command = ["cargo", "bench", "--quiet", "-p", "tracefx-cpu", "--bench", "kernels", "--", *options.names]
    ours = json.loads(subprocess.run(command, cwd=HERE, check=True, stdout=subprocess.PIPE).stdout)
    if options.save:
        options.save.write_text(json.dumps(ours))
    before = json.loads(options.before.read_text()) if options.before else {}
    print(f"{'case':26}{'tracefx us':>12}{'torch us':>12}{'ratio':>8}" + (f"{'before':>12}{'gain':>8}" if before else ""))
    for case in json.loads((HERE / "kernels.json").read_text()):
        if case["name"] not in ours:
            continue
        operator = torch.ops
        for part in case["op"].split("."):
            operator = getattr(operator, part)
        args = [value(it) for it in case["args"]]
        kwargs = {key: option(key, it) for key, it in case.get("kwargs", {}).items()}
        theirs, time_now = median(lambda: operator(*args, **kwargs)), ours[case["name"]]
        line = f"{case['name']:26}{time_now:12.1f}{theirs:12.1f}{time_now / theirs:8.2f}"
        if case["name"] in before:
            line += f"{before[case['name']]:12.1f}{before[case['name']] / time_now:8.2f}"
        print(line)


if __name__ == "__main__":
    main()
