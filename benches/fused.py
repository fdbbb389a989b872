"""Times of fused steps beside ONNX Runtime's, each on one thread: the layers of fused.json with bias and ReLU.

    python benches/fused.py [NAME...]  # layers whose names contain one of these; all without

ONNX Runtime's time is that of its own Conv or Gemm node, without the change of layout that a network needs only once.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent


def model(case):
    rng = np.random.default_rng(0)
    numbers = lambda sizes: rng.standard_normal(sizes, dtype=np.float32)
    if "lhs" in case:
        sizes, weight = case["lhs"], numbers(case["rhs"])
        op, attributes, n_channels = "Gemm", {}, case["rhs"][1]
    else:
        n, h, w, c = case["input"]
        sizes, weight = [n, c, h, w], numbers(case["weight"])
        op, n_channels = "Conv", case["weight"][0]
        attributes = {"strides": [case["stride"]] * 2, "pads": [case["padding"]] * 4, "group": case["groups"]}
    nodes = [helper.make_node(op, ["x", "w", "b"], ["y"], **attributes), helper.make_node("Relu", ["y"], ["z"])]
    info = helper.make_tensor_value_info
    weights = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(numbers([n_channels]), "b")]
    graph = helper.make_graph(
        nodes, "layer", [info("x", TensorProto.FLOAT, sizes)], [info("z", TensorProto.FLOAT, None)], weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), numbers(sizes)


def onnxruntime(case):
    proto, x = model(case)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_profiling = True
    options.profile_file_prefix = os.path.join(tempfile.mkdtemp(), "profile")
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for _ in range(60):
        session.run(None, {"x": x})
    with open(session.end_profiling()) as file:
        events = json.load(file)
    is_layer = lambda it: it["name"].endswith("kernel_time") and it["args"].get("op_name") in LAYERS
    return statistics.median([it["dur"] for it in events if is_layer(it)][10:])


LAYERS = {"Conv", "FusedConv", "Gemm", "FusedGemm", "FusedMatMul"}


def flops(case):
    if "lhs" in case:
        return 2 * np.prod(case["lhs"]) * case["rhs"][1]
    points = [(case["input"][1 + dim] + 2 * case["padding"] - case["weight"][2 + dim]) // case["stride"] + 1 for dim in (0, 1)]
    return 2 * case["input"][0] * np.prod(points) * np.prod(case["weight"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--bench", nargs="*", default="cargo bench -q -p tracefx-cpu --bench fused --".split())
    args = parser.parse_args()
    env = {**os.environ, "TRACEFX_NUM_THREADS": "1"}
    cases = json.loads((HERE / "fused.json").read_text())
    print(f"{'':28} {'tracefx µs':>12} {'GFLOP/s':>8} {'ORT µs':>10} {'GFLOP/s':>8}  ratio")
    for case in cases:
        name = case["name"]
        if args.names and not any(it in name for it in args.names):
            continue
        ours = json.loads(subprocess.run([*args.bench, name], env=env, capture_output=True, check=True).stdout)[name]
        theirs = onnxruntime(case)
        rate = lambda us: flops(case) / us / 1e3
        print(f"{name:28} {ours:12.1f} {rate(ours):8.1f} {theirs:10.1f} {rate(theirs):8.1f} {ours / theirs:6.2f}", flush=True)


if __name__ == "__main__":
    main()
