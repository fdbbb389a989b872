"""An archive with two programs, as package_pt2 writes it: `fixtures/export/two.pt2`, and its names in `two.json`.

usage: gen_packages.py DIR (torch 2.13.0)
"""
import json
import pathlib
import sys
import zipfile

import torch
import torch.nn as nn
from torch.export.pt2_archive._package import load_pt2, package_pt2


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.linear.weight.data.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        self.linear.bias.data.copy_(torch.tensor([0.5, -0.5]))

    def forward(self, x): return self.linear(x)


class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))
        self.constant = torch.tensor([1.0, 1.0])

    def forward(self, x): return x * self.weight + self.constant


folder = pathlib.Path(sys.argv[1])
x = torch.ones(1, 2)
programs = {"first": torch.export.export(First(), (x,)), "second": torch.export.export(Second(), (x,))}
package_pt2(folder / "two.pt2", exported_programs=programs, extra_files={"note.txt": "hello"})
contents = load_pt2(folder / "two.pt2")
said = {
    "files": [it.filename.split("/", 1)[1] for it in zipfile.ZipFile(folder / "two.pt2").infolist()],
    "graphs": {name: str(it.graph) for name, it in contents.exported_programs.items()},
    "results": {name: str(it.module()(x).detach()) for name, it in contents.exported_programs.items()},
    "extra_files": contents.extra_files,
}
(folder / "two.json").write_text(json.dumps(said, indent=1) + "\n")
