"""Records what PyTorch answers for a seeded ResNet-18, and its traced graph: tests/fixtures/models/resnet18.{json,txt}.

The modules and their names are torchvision's; the weights are what PyTorch draws after torch.manual_seed(0), so that no
file of weights is needed. Usage: python gen_resnet.py FIXTURES_DIR   (needs torch)
"""
import json
import sys
from pathlib import Path

import torch

from resnet import BasicBlock, ResNet

torch.manual_seed(0)
model = ResNet(BasicBlock, [2, 2, 2, 2]).eval()
x = torch.sin(torch.arange(3 * 224 * 224, dtype=torch.float32) * 0.01).reshape(1, 3, 224, 224)
with torch.no_grad():
    logits = model(x)[0]
out = Path(sys.argv[1]) / "models"
out.mkdir(exist_ok=True)
weights = {name: [it.flatten()[:4].tolist(), float(it.double().sum())] for name, it in model.state_dict().items()}
(out / "resnet18.json").write_text(json.dumps({"logits": logits.tolist(), "weights": weights}) + "\n")
(out / "resnet18.txt").write_text(str(torch.fx.symbolic_trace(model).graph) + "\n")
