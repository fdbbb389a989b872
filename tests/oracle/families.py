"""Exports model families of torchvision and transformers, each in a small form, runs them in tracefx, and writes the table of them.

    python tests/oracle/families.py FOLDER [--only NAME] [--table]

FOLDER/NAME is a recorded program as `gen_fixtures.py` writes it, or `refused.txt` says why there is none. What is there
is left as it is. With --table, all programs run in both engines, as they are, decomposed, and saved and loaded by PyTorch, and
docs/model-families.md is written of what comes of it. Needs torch 2.13.0, torchvision 0.28.0, transformers 5.24.0, and the
package and the command of this repository (`npm start`).
"""

import argparse
import json
import multiprocessing
import re
import resource
import subprocess
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import fixture_common  # noqa: E402
import torch  # noqa: E402
from model_families import FAMILIES  # noqa: E402

SECONDS = 60
ROOT = Path(__file__).resolve().parents[2]

# The columns of the table, and what the runner of conformance is told for each.
RUNS = {
    "native": ["--engine", "native"],
    "WebAssembly": ["--engine", "wasm"],
    "decomposed": ["--engine", "native", "--decompose"],
    "saved": ["--engine", "native", "--resave-to"],
}


def export(name, folder):
    """Records a family, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    try:
        torch.manual_seed(fixture_common.seed_for(name))
        spec = FAMILIES[name]()
        fixture_common.build(name, {**spec, "loose_mut": True}, folder, "families", want_core_hist=False)
    except BaseException as error:
        refuse(folder / name, error)


def refuse(folder, error):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pt2").unlink(missing_ok=True)
    (folder / "refused.txt").write_text("".join(traceback.format_exception(error)))


def record(folder, only):
    """Records what is not there yet, each family for no longer than a minute of the processor."""
    fork = multiprocessing.get_context("fork")
    for name in FAMILIES:
        there = any((folder / name / it).exists() for it in ("meta.json", "refused.txt"))
        if there or only not in name:
            continue
        child = fork.Process(target=export, args=(name, folder))
        child.start()
        child.join()
        if child.exitcode != 0:
            refuse(folder / name, TimeoutError(f"more than {SECONDS} s of the processor"))
        refused = folder / name / "refused.txt"
        print(name, refused.read_text().strip().splitlines()[-1][:200] if refused.exists() else "", flush=True)


def run(folder):
    """What comes of each program in each way, by way and name."""
    found = {}
    for way, options in RUNS.items():
        report = folder / f"{way}.json"
        keep = [folder / "saved"] if options[-1] == "--resave-to" else []
        command = ["npm", "run", "-s", "conformance", "--", "programs", folder, *options, *keep, "--report", report]
        subprocess.run(command, cwd=ROOT, check=False)
        found[way] = results(report)
    report = folder / "loaded.json"
    command = [sys.executable, ROOT / "tests/oracle/check_saved.py", folder / "saved", folder, "--report", report]
    subprocess.run([*command, "--import", "transformers.integrations.moe"], check=False)
    return found | {"loaded by PyTorch": results(report)}


def results(report):
    return {it["name"]: it for it in json.loads(report.read_text())["results"]}


HEAD = """# Model families

Families of models of torchvision and of Hugging Face's transformers, each exported by PyTorch in one small form with seeded
weights, and what tracefx makes of the program: run by the native command and by WebAssembly, run after `run_decompositions`,
saved as `.pt2` and opened again, and that file loaded and run by PyTorch. Each run gives PyTorch's numbers, within eight times
the error of PyTorch itself, which a run in float64 tells (RAFT, which has none, within 1e-4); the last column is how far an output
of the first two runs lies from them at most.

This file is written by `python tests/oracle/families.py FOLDER --table`, which needs PyTorch.

"""


def write_table(folder, found):
    names = sorted(it for it in FAMILIES if it in found["native"])
    ways = list(found)
    counts = [f"{sum(is_passed(found[way], it) for it in names)} {way}" for way in ways]
    lines = [f"PyTorch exports {len(names)} families. Of these pass: {', '.join(counts)}.", ""]
    lines += [f"| family | nodes | {' | '.join(ways)} | largest deviation |", f"|---|--:|{'---|' * len(ways)}--:|"]
    for name in names:
        nodes = json.loads((folder / name / "meta.json").read_text())["nodes"]
        marks = ["✓" if is_passed(found[way], name) else "✗" for way in ways]
        largest = max(found[way].get(name, {}).get("largest", 0) for way in ("native", "WebAssembly"))
        lines.append(f"| {name.replace('_', ' ', 1)} | {nodes} | {' | '.join(marks)} | {largest:.1e} |")
    refused = sorted(it for it in FAMILIES if is_refused(folder / it))
    if refused:
        lines += ["", "PyTorch refuses to export these:", "", "| family | what it says |", "|---|---|"]
        lines += [f"| {it.replace('_', ' ', 1)} | {message(folder / it)} |" for it in refused]
    (ROOT / "docs/model-families.md").write_text(HEAD + "\n".join(lines) + "\n")


def is_refused(folder):
    """Whether the export failed: a form that does not run by itself either says nothing of it."""
    file = folder / "refused.txt"
    return file.exists() and "torch/export/__init__.py" in file.read_text()


def is_passed(results, name):
    return results.get(name, {}).get("status") == "passed"


def message(folder):
    """The line of an error that says what it is, as a cell of a table."""
    text = (folder / "refused.txt").read_text()
    errors = [it for it in text.splitlines() if re.match(r"[A-Za-z_][\w.]*: ", it)] or text.splitlines()
    kind, _, what = errors[-1].partition(":")
    return f"{kind.split('.')[-1]}:{what}"[:160].replace("|", "\\|").replace("<", "&lt;")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    record(options.folder, options.only)
    if options.table:
        write_table(options.folder, run(options.folder.resolve()))


if __name__ == "__main__":
    main()
