"""Files of torch.save. usage: python tests/oracle/gen_checkpoints.py OUT

state_dict.pt   torch.save(module.state_dict()) of Sequential(Linear(2, 3), BatchNorm1d(3, affine=False))
training.pt     nested: a state dict, an epoch, lists, tuples, sizes, dtypes, shared tensors, views, parameters
set.pt          a set
module.pt       a whole module, whose class is not made
legacy.pt       the format before PyTorch 1.6
cycle.pt        a list that holds itself
shared.pt       30 lists, each of which holds the next one twice
"""
import pathlib
import sys

import torch
from torch import nn

OUT = pathlib.Path(sys.argv[1])
OUT.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3, affine=False))
torch.save(model.state_dict(), OUT / "state_dict.pt")
base = torch.arange(6, dtype=torch.float64).reshape(2, 3)
torch.save(
    {
        "state_dict": model.state_dict(),
        "epoch": 7,
        "loss": 0.25,
        "best": None,
        "done": False,
        "name": "net",
        "sizes": torch.Size([2, 3]),
        "steps": [1, (2, 3.5)],
        "dtype": torch.float16,
        3: "three",
        "base": base,
        "column": base[:, 1],
        "half": torch.tensor([1.5, -2.0], dtype=torch.float16),
        "parameter": nn.Parameter(torch.tensor([2.5]), requires_grad=False),
    },
    OUT / "training.pt",
)
torch.save({5}, OUT / "set.pt")
torch.save(nn.Linear(1, 1), OUT / "module.pt")
torch.save({"a": torch.ones(1)}, OUT / "legacy.pt", _use_new_zipfile_serialization=False)
cycle = []
cycle.append(cycle)
torch.save(cycle, OUT / "cycle.pt")
shared = [0]
for _ in range(30):
    shared = [shared, shared]
torch.save(shared, OUT / "shared.pt")
