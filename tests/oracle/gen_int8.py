"""Records the digits network with weights of eight bits. usage: python tests/oracle/gen_int8.py

Writes tests/fixtures/explorer/digits_int8.pt2: the recorded program `digits_cnn`, whose convolutions and linear layers keep their weights
as int8 with a scale for each channel. It is what the explorer's picture of a comparison compares with.
"""
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"


class Int8(nn.Module):
    def __init__(self, layer):
        super().__init__()
        weight = layer.weight.detach()
        scale = weight.abs().amax(dim=tuple(range(1, weight.ndim)), keepdim=True) / 127
        self.register_buffer("weight", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.bias = layer.bias

    def dequantized(self):
        return self.weight.to(self.scale.dtype) * self.scale


class Int8Conv2d(Int8):
    def forward(self, x):
        return F.conv2d(x, self.dequantized(), self.bias, padding=1)


class Int8Linear(Int8):
    def forward(self, x):
        return F.linear(x, self.dequantized(), self.bias)


program = torch.export.load(str(FIXTURES / "programs" / "digits_cnn" / "model.pt2"))
state = program.state_dict
sizes = {name: state[f"{name}.weight"].shape for name in ("0", "4", "10", "12")}
convolution = lambda it: nn.Conv2d(sizes[it][1], sizes[it][0], 3, padding=1)
linear = lambda it: nn.Linear(sizes[it][1], sizes[it][0])
model = nn.Sequential(
    convolution("0"), nn.BatchNorm2d(sizes["0"][0]), nn.ReLU(), nn.MaxPool2d(2),
    convolution("4"), nn.BatchNorm2d(sizes["4"][0]), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.2), linear("10"), nn.ReLU(), linear("12"),
).eval()  # fmt: skip
model.load_state_dict(state)
args = program.example_inputs[0]
expected = program.module()(*args)
torch.testing.assert_close(model(*args), expected)
for at, layer in enumerate(model):
    kind = {nn.Conv2d: Int8Conv2d, nn.Linear: Int8Linear}.get(type(layer))
    if kind is not None:
        model[at] = kind(layer)
print("largest difference of a logit:", (model(*args) - expected).abs().max().item())
out = FIXTURES / "explorer" / "digits_int8.pt2"
out.parent.mkdir(exist_ok=True)
exported = torch.export.export(model, args, dynamic_shapes=({0: torch.export.Dim("batch")},))
for node in exported.graph.nodes:
    # The stacks have paths of this machine.
    node.meta.pop("stack_trace", None)
torch.export.save(exported, str(out))
