"""Prints programs of any version as today's PyTorch loads them: loaded.txt beside each model.pt2 below DIR.
usage: python gen_loaded.py DIR      (torch 2.15.0; it cannot load the `cond` programs of 2.6)"""
import pathlib, sys
import torch

for path in sorted(pathlib.Path(sys.argv[1]).rglob("model.pt2")):
    try:
        program = torch.export.load(path)
    except Exception as error:
        print(f"{path}: {type(error).__name__}")
        continue
    (path.parent / "loaded.txt").write_text(str(program.graph_module.graph))
