"""Makes the workloads of `npm run bench`: each one as a program of torch.export and as an ONNX model, with its inputs and
PyTorch's outputs. All numbers are seeded; nothing is downloaded.

    python benches/models.py OUT [NAME...]
"""

import json
import os
import struct
import sys
import warnings

import torch
from torch import nn

F = nn.functional


class Call(nn.Module):
    """A function as a module, with its weights."""

    def __init__(self, function, *weights):
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList(weights)

    def forward(self, *inputs):
        return self.function(*inputs, *self.weights)


def residual(n_in, n_out, stride):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(n_out)
            self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(n_out)
            short = stride == 1 and n_in == n_out
            self.shortcut = (
                nn.Identity()
                if short
                else nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))
            )

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)))
            return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))

    return Block()


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    n_in = 64
    for n_out in (64, 128, 256, 512):
        layers += [residual(n_in, n_out, 1 if n_in == n_out else 2), residual(n_out, n_out, 1)]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def inverted(n_in, n_out, stride, ratio):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            hidden = n_in * ratio
            layers = []
            if ratio != 1:
                layers += [nn.Conv2d(n_in, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()]
            layers += [nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False)]
            layers += [nn.BatchNorm2d(hidden), nn.ReLU6(), nn.Conv2d(hidden, n_out, 1, bias=False)]
            self.layers = nn.Sequential(*layers, nn.BatchNorm2d(n_out))

        def forward(self, x):
            y = self.layers(x)
            return x + y if stride == 1 and n_in == n_out else y

    return Block()


def mobilenet_v2():
    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    n_in = 32
    settings = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for ratio, n_out, n_blocks, stride in settings:
        for at in range(n_blocks):
            layers.append(inverted(n_in, n_out, stride if at == 0 else 1, ratio))
            n_in = n_out
    layers += [nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class Encoder(nn.Module):
    """One layer of a BERT as small as MiniLM."""

    def __init__(self, width=384, n_heads=12):
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        def heads(y):
            return y.view(*y.shape[:2], self.n_heads, -1).transpose(1, 2)

        y = F.scaled_dot_product_attention(heads(self.query(x)), heads(self.key(x)), heads(self.value(x)))
        x = self.norm1(x + self.output(y.transpose(1, 2).flatten(2)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


def conv(n_in, n_out, kernel, groups=1):
    return nn.Conv2d(n_in, n_out, kernel, padding=kernel // 2, groups=groups, bias=False)


def chain(x):
    return (torch.relu(x * 2 + 1) * x - 0.5).abs().add(0.25).sqrt()


def rand(*sizes):
    return torch.randn(*sizes)


# The model and its inputs.
WORKLOADS = {
    "mm512": lambda: (Call(torch.matmul), [rand(512, 512), rand(512, 512)]),
    "mm1024": lambda: (Call(torch.matmul), [rand(1024, 1024), rand(1024, 1024)]),
    "gemv4096": lambda: (Call(torch.matmul, rand(4096, 4096)), [rand(1, 4096)]),
    "conv1x1": lambda: (conv(64, 256, 1), [rand(1, 64, 56, 56)]),
    "conv3x3": lambda: (conv(64, 64, 3), [rand(1, 64, 56, 56)]),
    "dwconv3x3": lambda: (conv(96, 96, 3, 96), [rand(1, 96, 112, 112)]),
    "layernorm": lambda: (nn.LayerNorm(1024), [rand(1024, 1024)]),
    "softmax": lambda: (nn.Softmax(-1), [rand(1024, 1024)]),
    "gelu": lambda: (nn.GELU(), [rand(1024, 1024)]),
    "ewchain": lambda: (Call(chain), [rand(10_000_000)]),
    "resnet18": lambda: (resnet18(), [rand(1, 3, 224, 224)]),
    "mobilenet_v2": lambda: (mobilenet_v2(), [rand(1, 3, 224, 224)]),
    "encoder6": lambda: (nn.Sequential(*(Encoder() for _ in range(6))), [rand(1, 128, 384)]),
}


def save_tensors(path, tensors):
    """A .safetensors file of float32 tensors."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        begin = len(data)
        data += tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    out, *names = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    for name in names or WORKLOADS:
        torch.manual_seed(0)
        module, inputs = WORKLOADS[name]()
        for it in module.modules():
            # Statistics that are not those of a new module, so that folding them is real work.
            if isinstance(it, nn.BatchNorm2d):
                it.running_mean.normal_(0, 0.1)
                it.running_var.uniform_(0.8, 1.2)
        module = module.eval().requires_grad_(False)
        base = os.path.join(out, name)
        torch.export.save(torch.export.export(module, tuple(inputs)), base + ".pt2")
        names_of = [f"in{at}" for at in range(len(inputs))]
        torch.onnx.export(
            module, tuple(inputs), base + ".onnx", input_names=names_of, output_names=["out0"], dynamo=True,
            external_data=False, verbose=False,
        )
        save_tensors(base + ".inputs.safetensors", dict(zip(names_of, inputs)))
        save_tensors(base + ".expected.safetensors", {"out0": module(*inputs)})
        print(name, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
