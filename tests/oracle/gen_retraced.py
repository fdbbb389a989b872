"""Records what PyTorch makes of programs that it exports again.

For each program of tests/fixtures/programs with example inputs: the graph of `export(ep.module(), *ep.example_inputs)`, for the sizes of
the examples alone, or the first line of what is refused.

    python tests/oracle/gen_retraced.py tests/fixtures
"""
import json
import sys
import warnings
from pathlib import Path

import torch

warnings.filterwarnings("ignore")


def retraced(path):
    program = torch.export.load(path)
    args, kwargs = program.example_inputs
    again = torch.export.export(program.module(), args, kwargs)
    return {"graph": str(again.graph), "signature": str(again.graph_signature)}


def main(fixtures):
    res = {}
    for path in sorted((fixtures / "programs").glob("*/model.pt2")):
        name = path.parent.name
        try:
            res[name] = retraced(path)
        except Exception as problem:  # noqa: BLE001
            res[name] = {"error": type(problem).__name__, "message": str(problem).split("\n")[0]}
    text = json.dumps(res, indent=1, sort_keys=True)
    (fixtures / "retraced" / "graphs.json").write_text(text + "\n")


main(Path(sys.argv[1]))
