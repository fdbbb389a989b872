"""Exports recorded programs as ONNX models, and compares what ONNX Runtime makes of them with what PyTorch recorded.

    python tests/oracle/check_onnx.py FOLDER BINARY [--only NAME] [--keep DIR]
    python tests/oracle/check_onnx.py --calls DIR [--only NAME]

FOLDER has the recorded programs: folders with `model.pt2`, `meta.json`, inputs and expected outputs. BINARY is the native command
`tracefx`. Each program is exported with `tracefx onnx`, checked by `onnx.checker`, and run on the CPU for each recorded case; calls
of a sequence take the state that the last one gave. Outputs, written state and written inputs have to be those recorded, within the
recorded tolerances. It prints a line for each program, and the counts. It needs `onnx`, `onnxruntime` and `torch`.

With `--calls`, DIR has the recorded calls of single operators as models, which
`TRACEFX_ONNX_CALLS=DIR cargo test -p tracefx-onnx --test it recorded_calls` writes: it prints those that fail, and the counts by
operator.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
import onnxruntime
import torch

sys.path.insert(0, str(Path(__file__).parent))
from check_saved import EXACT, compare, read  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("binary", type=Path, nargs="?")
    parser.add_argument("--calls", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    if options.calls:
        return check_calls(options.calls, options.only)
    folders = [it.parent for it in sorted(options.folder.glob(f"*{options.only}*/model.pt2"))]
    counts = {"passed": 0, "failed": 0}
    with tempfile.TemporaryDirectory() as scratch:
        target = options.keep or Path(scratch)
        target.mkdir(parents=True, exist_ok=True)
        for folder in folders:
            try:
                n_nodes = check(folder, options.binary, target / f"{folder.name}.onnx")
                counts["passed"] += 1
                print(f"passed  {folder.name:40} {n_nodes:6} nodes", flush=True)
            except Exception as error:
                counts["failed"] += 1
                print(f"failed  {folder.name:40} {told(error)}", flush=True)
    print(", ".join(f"{n} {status}" for status, n in counts.items()))
    sys.exit(counts["failed"] > 0 or not folders)


def check_calls(folder, only):
    """Runs the models of single calls; random ones have other numbers."""
    counts, files = {}, {}
    for line in (folder / "calls.jsonl").read_text().splitlines():
        call = json.loads(line)
        op = call["op"]
        if only not in op or op.startswith(("aten.rand", "aten.bernoulli", "aten.empty")):
            continue
        passed, failed = counts.get(op, (0, 0))
        try:
            if call["data"] not in files:
                files[call["data"]] = read(Path(call["data"]))
            check_call(folder / call["file"], call, files[call["data"]])
            counts[op] = (passed + 1, failed)
        except Exception as error:
            counts[op] = (passed, failed + 1)
            print(f"failed  {op:40} {call['file']:12} {told(error)}", flush=True)
    for op, (passed, failed) in sorted(counts.items()):
        if failed:
            print(f"{op:40} {passed} passed, {failed} failed")
    print(f"{sum(it[0] for it in counts.values())} passed, {sum(it[1] for it in counts.values())} failed")
    sys.exit(any(it[1] for it in counts.values()) or not counts)


def check_call(file, call, data):
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    feeds = {it.name: to_ort(it.type, recorded(call["inputs"][int(it.name[1:])], data)) for it in session.get_inputs()}
    results = run(session, feeds)
    wanted, tolerances = call["result"], call["tolerance"]
    if isinstance(wanted, dict):
        wanted, tolerances = [wanted], [tolerances]
    for at, (got, it, tolerance) in enumerate(zip(results, wanted, tolerances, strict=True)):
        relative, absolute = tolerance
        compare(f"result {at}", got, recorded(it, data), {"rtol": relative, "atol": absolute})


def recorded(description, data):
    """A tensor of a call, as it lay in memory."""
    tensor = data[description["tensor"]]
    if "stride" in description and tensor.numel():
        return tensor.as_strided(description["size"], description["stride"], description.get("offset", 0))
    return tensor.reshape(description["size"])


def check(folder, binary, file):
    """Exports and runs one program; the number of the model's nodes."""
    done = subprocess.run([binary, "onnx", folder / "model.pt2", file], capture_output=True, text=True)
    if done.returncode != 0:
        raise Exception(done.stderr)
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    meta = json.loads((folder / "meta.json").read_text())
    state = {}
    for at, case in enumerate(meta["cases"]):
        suffix = f"_{at}" if at else ""
        inputs, expected = (read(folder / f"{name}{suffix}.safetensors") for name in ("inputs", "expected"))
        if not meta.get("sequence"):
            state = {}
        run_case(session, case, inputs, expected, meta["tolerance_per_output"], state)
    return len(model.graph.node)


def run_case(session, case, inputs, expected, tolerances, state):
    # Values that were fixed when the program was exported are no inputs. State that a call changes has a default.
    names = [it.name for it in session.get_inputs()]
    given = {it["name"]: value(it, inputs.get(f"in{i}")) for i, it in enumerate(case["inputs"])}
    if not set(names) <= set(given):
        given = dict(zip(names, [it for it in given.values() if it is not None], strict=True))
    feeds = given | state
    options = {it.name: to_ort(it.type, feeds[it.name]) for it in session.get_inputs()}
    options |= {it.name: to_ort(it.type, feeds[it.name]) for it in session.get_overridable_initializers() if it.name in feeds}
    outputs = session.get_outputs()
    results = dict(zip([it.name for it in outputs], run(session, options), strict=True))
    written = {name.removesuffix("_mutated"): it for name, it in results.items() if name.endswith("_mutated")}
    users = iter([it for name, it in results.items() if not name.endswith("_mutated")])
    for i, wanted in enumerate(case["outputs"]):
        if wanted["kind"] in ("none", "str"):
            continue
        got = next(users)
        if wanted["kind"] == "tensor":
            compare(f"output {i}", got, expected[f"out{i}"], tolerances[i] or EXACT)
        else:
            compare(f"output {i}", got.item(), number(wanted), EXACT)
    loosest = next((it for it in tolerances if it), EXACT)
    for key, wanted in expected.items():
        group, _, name = key.partition(".")
        if group == "input":
            name = case["inputs"][int(name)]["name"]
        if group in ("buffer", "param", "input"):
            compare(key, written[name], wanted, loosest)
    state.update({name: it for name, it in written.items() if name not in names})


def number(description):
    return float(description["value"]) if description["kind"] == "float" else description["value"]


def value(description, tensor):
    if description["kind"] in ("tensor", "none", "str"):
        return tensor
    return torch.tensor(number(description), dtype=torch.float64 if description["kind"] == "float" else None)


def to_ort(type_name, tensor):
    """A tensor for ONNX Runtime, by way of its bytes: numpy has no bfloat16."""
    kinds = {"tensor(bfloat16)": onnx.TensorProto.BFLOAT16}
    if type_name in kinds:
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(tensor.contiguous().view(torch.int16).numpy(), kinds[type_name])
    return onnxruntime.OrtValue.ortvalue_from_numpy(tensor.contiguous().numpy())


def run(session, feeds):
    names = [it.name for it in session.get_outputs()]
    results = session.run_with_ort_values(names, feeds)
    return [of_ort(it) for it in results]


def of_ort(it):
    if it.element_type() == onnx.TensorProto.BFLOAT16:
        return torch.utils.dlpack.from_dlpack(it._ortvalue.to_dlpack())
    return torch.from_numpy(it.numpy().copy())


def told(error):
    lines = [it.strip() for it in str(error).splitlines() if it.strip()]
    return f"{type(error).__name__}: {' | '.join(lines)[:300]}"


if __name__ == "__main__":
    main()
