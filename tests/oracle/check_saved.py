"""Loads archives that tracefx saved with PyTorch, and compares what comes of them with what PyTorch recorded.

    python tests/oracle/check_saved.py SAVED PROGRAMS [--only NAME] [--report FILE.json] [--import MODULE]

SAVED is what `npm run -s conformance -- programs PROGRAMS --resave-to SAVED` wrote, PROGRAMS the recorded programs: folders
with `model.pt2`, `meta.json`, inputs and expected outputs. Of each archive the printed graph must be that of the original
archive, loaded by the same PyTorch, and the outputs, written state and gradients must be those recorded. What this PyTorch
cannot do with the original archive either is told apart. The last line has the counts.

Programs that were exported by tracefx (`npm run -s conformance -- models MODELS --resave-to SAVED`, with what `gen_models.py`
recorded) have no original: of these, the outputs are compared for all recorded sizes, and what PyTorch says of sizes that are
refused.
"""

import argparse
import importlib
import json
import math
import sys
import types
import warnings
from collections import Counter
from pathlib import Path

import torch
import torch.utils._pytree as pytree
from torch.export.graph_signature import InputKind, OutputKind

# The module that registers the classes of inputs writes `.safetensors` files, too; nothing is written here.
sys.modules.setdefault("safetensors", types.ModuleType("safetensors"))
sys.modules.setdefault("safetensors.torch", types.SimpleNamespace(save_file=None))
sys.path.insert(0, str(Path(__file__).parent))
import fixture_common  # noqa: E402, F401

EXACT = {"rtol": 0.0, "atol": 0.0}


class Differs(Exception):
    """An archive means something else than the one it was made of."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("saved", type=Path)
    parser.add_argument("programs", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--report", type=Path, help="where to write what came of each archive")
    parser.add_argument("--import", dest="module", help="a module that registers operators of the programs")
    options = parser.parse_args()
    if options.module:
        importlib.import_module(options.module)
    warnings.filterwarnings("ignore")
    counts = Counter()
    results = []
    for folder in sorted(options.saved.iterdir()):
        if not (folder / "model.pt2").exists() or options.only not in folder.name:
            continue
        status, detail = check(folder / "model.pt2", options.programs / folder.name)
        counts[status] += 1
        results.append({"name": folder.name, "status": status, "detail": detail})
        if status != "passed":
            print(f"{status}  {folder.name}: {detail}", flush=True)
    if options.report:
        options.report.write_text(json.dumps({"results": results}, indent=1))
    print(", ".join(f"{counts[it]} {it}" for it in ("passed", "failed", "pytorch")))
    sys.exit(counts["failed"] > 0 or sum(counts.values()) == 0)


def check(saved, recorded):
    """What came of one archive: `pytorch` where this PyTorch refuses the original as well."""
    if not (recorded / "model.pt2").exists():
        return check_exported(saved, recorded)
    try:
        original = torch.export.load(recorded / "model.pt2")
        graph = str(original.graph)
    except Exception as error:
        return "pytorch", f"cannot load the original: {first_line(error)}"
    try:
        program = torch.export.load(saved)
        if str(program.graph) != graph:
            raise Differs(f"the graph differs: {difference(graph, str(program.graph))}")
        if str(program.graph_signature) != str(original.graph_signature):
            raise Differs("the signature differs")
        if str(program.range_constraints) != str(original.range_constraints):
            raise Differs(f"the ranges differ: {program.range_constraints} / {original.range_constraints}")
        if program.module_call_graph != original.module_call_graph:
            raise Differs("the calls of modules differ")
        if (program.example_inputs is None) != (original.example_inputs is None):
            raise Differs("the example inputs are lost")
        program.validate()
    except Exception as error:
        return "failed", first_line(error)
    try:
        run(original, recorded)
    except Exception as error:
        return "pytorch", f"cannot run the original: {first_line(error)}"
    try:
        run(program, recorded)
    except Exception as error:
        return "failed", first_line(error)
    return "passed", ""


def check_exported(saved, recorded):
    """What came of a program that was not PyTorch's, as it was exported and in terms of core operators."""
    for file in (saved, saved.parent / "decomposed.pt2"):
        try:
            program = torch.export.load(file)
            program.validate()
            run(program, recorded)
            for it in json.loads((recorded / "meta.json").read_text())["rejects"]:
                check_refused(program, it)
        except Exception as error:
            return "failed", f"{file.name}: {first_line(error)}"
    return "passed", ""


def check_refused(program, reject):
    says = None
    try:
        program.module()(torch.zeros(reject["sizes"]))
    except AssertionError as error:
        says = str(error)
    if says != reject["torch_says"]:
        raise Differs(f"an input of {reject['sizes']}: {says} instead of {reject['torch_says']}")


def run(program, recorded):
    meta = tensors_alone(recorded) | json.loads((recorded / "meta.json").read_text())
    gradients = read(recorded / "grads.safetensors")
    if any(it.kind in (OutputKind.GRADIENT_TO_PARAMETER, OutputKind.LOSS_OUTPUT) for it in program.graph_signature.output_specs):
        return run_joint(program, recorded, meta, gradients)
    module = program.module()
    for at, case in enumerate(meta["cases"]):
        if not meta.get("sequence"):
            module = program.module()
        inputs, expected = (read(recorded / f"{name}{f'_{at}' if at else ''}.safetensors") for name in ("inputs", "expected"))
        leaves = [leaf(it, inputs.get(f"in{i}")) for i, it in enumerate(case["inputs"])]
        args, kwargs = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
        results = pytree.tree_leaves(module(*args, **kwargs), is_leaf=lambda it: it is None)
        check_results(results, case, expected, meta["tolerance_per_output"])
        state = dict(module.state_dict()) | dict(module.named_buffers())
        loosest = next((it for it in meta["tolerance_per_output"] if it), EXACT)
        for key, wanted in expected.items():
            group, _, name = key.partition(".")
            if group in ("buffer", "param"):
                compare(key, state[name], wanted, loosest)
            if group == "input":
                compare(key, leaves[int(name)], wanted, loosest)


def tensors_alone(recorded):
    """The one case of a program that was recorded with its tensors and no more."""
    inputs, expected = read(recorded / "inputs.safetensors"), read(recorded / "expected.safetensors")
    outputs = [{"kind": "tensor"} for it in expected if it.startswith("out")]
    return {
        "cases": [{"inputs": [{"kind": "tensor"} for _ in inputs], "outputs": outputs}],
        "tolerance_per_output": [{"rtol": 1e-5, "atol": 1e-5} for _ in outputs],
    }


def run_joint(program, recorded, meta, gradients):
    """A graph of a training step: called as a graph, since a module of it would have no gradients."""
    inputs, expected = read(recorded / "inputs.safetensors"), read(recorded / "expected.safetensors")
    case = meta["cases"][0]
    users = iter([leaf(it, inputs.get(f"in{i}")) for i, it in enumerate(case["inputs"])])
    state = program.state_dict | program.constants
    args = [
        next(users) if it.kind == InputKind.USER_INPUT else state[it.target].detach()
        for it in program.graph_signature.input_specs
    ]
    with torch.no_grad():
        outputs = torch.fx.Interpreter(program.graph_module).run(*args)
    specs = list(zip(program.graph_signature.output_specs, outputs, strict=True))
    user = [it for spec, it in specs if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)]
    check_results(user, case, expected, meta["tolerance_per_output"])
    loosest = next((it for it in meta["tolerance_per_output"] if it), EXACT)
    for spec, it in specs:
        if spec.kind == OutputKind.GRADIENT_TO_PARAMETER and spec.target in gradients:
            compare(f"gradient of {spec.target}", it, gradients[spec.target], loosest)


def check_results(results, case, expected, tolerances):
    if len(results) != len(case["outputs"]):
        raise Differs(f"{len(results)} outputs instead of {len(case['outputs'])}")
    for i, (got, wanted) in enumerate(zip(results, case["outputs"], strict=True)):
        tensor = expected.get(f"out{i}")
        compare(f"output {i}", got, leaf(wanted, tensor), tolerances[i] or EXACT)


def leaf(description, tensor):
    """A recorded value. Floats that JSON does not have are strings."""
    kind = description["kind"]
    if kind == "tensor":
        stride = description.get("stride")
        if stride is None or list(tensor.stride()) == stride:
            return tensor
        laid_out = torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype)
        return tensor if any(it == 0 for it in stride) else laid_out.copy_(tensor)
    if kind == "none":
        return None
    return float(description["value"]) if kind == "float" else description["value"]


def compare(place, got, wanted, tolerance):
    if isinstance(wanted, torch.Tensor):
        if got.dtype != wanted.dtype or got.shape != wanted.shape:
            raise Differs(f"{place}: {got.dtype} {tuple(got.shape)} instead of {wanted.dtype} {tuple(wanted.shape)}")
        torch.testing.assert_close(got.detach(), wanted, equal_nan=True, msg=lambda it: f"{place}: {it}", **tolerance)
    elif isinstance(wanted, float):
        if not (math.isnan(wanted) and math.isnan(got)) and not math.isclose(float(got), wanted, rel_tol=1e-6):
            raise Differs(f"{place}: {got} instead of {wanted}")
    elif got != wanted:
        raise Differs(f"{place}: {got} instead of {wanted}")


DTYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "I32": torch.int32, "I64": torch.int64,
    "U16": torch.uint16, "U32": torch.uint32, "U64": torch.uint64, "F16": torch.float16, "BF16": torch.bfloat16,
    "F32": torch.float32, "F64": torch.float64, "C64": torch.complex64, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}


def read(file):
    """The tensors of a `.safetensors` file, without the package of that name."""
    if not file.exists():
        return {}
    data = bytearray(file.read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, it in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = it["data_offsets"]
        flat = torch.frombuffer(data[start + begin : start + end], dtype=torch.uint8) if end > begin else torch.empty(0, dtype=torch.uint8)
        tensors[name] = flat.clone().view(DTYPES[it["dtype"]]).reshape(it["shape"])
    return tensors


def difference(a, b):
    lines = zip(a.splitlines(), b.splitlines())
    return next((f"{is_} instead of {was}" for was, is_ in lines if was != is_), "the number of lines")


def first_line(error):
    lines = [it for it in str(error).strip().splitlines() if it.strip()]
    return f"{type(error).__name__}: {lines[0][:300] if lines else ''} … {lines[-1][:300] if len(lines) > 1 else ''}"


if __name__ == "__main__":
    main()
