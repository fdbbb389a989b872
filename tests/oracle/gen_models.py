"""Weights, inputs and PyTorch's numbers for the models of ts/examples/models: `npm run -s conformance -- models OUT`.

    python tests/oracle/gen_models.py OUT [--small]

OUT/NAME has `weights.safetensors`, the state dict; `meta.json`, how the model is made in TypeScript, which sizes of the example
are dynamic, what PyTorch says when it exports the module so, and the calls; `inputs.safetensors` and `expected.safetensors`,
with `_1` and so on for calls of other sizes. `meta.json` has sizes that the program refuses, too, with PyTorch's words. ResNet and ViT have torchvision's modules and names, the block of GPT-2 those of Hugging Face's
transformers. With --small, the widths are those of tests/fixtures/models. Tolerances are those of `fixture_common.py`: PyTorch's
own error, from a run in float64, eight times over. Needs torch 2.15 and safetensors.
"""

import argparse
import copy
import json
import math
import warnings
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.export import Dim

from resnet import BasicBlock, ResNet

# --- torchvision's ViT


class EncoderBlock(nn.Module):
    def __init__(self, num_heads, hidden_dim, mlp_dim):
        super().__init__()
        self.ln_1 = nn.LayerNorm(hidden_dim, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, batch_first=True)
        self.ln_2 = nn.LayerNorm(hidden_dim, eps=1e-6)
        layers = nn.Linear(hidden_dim, mlp_dim), nn.GELU(), nn.Dropout(0), nn.Linear(mlp_dim, hidden_dim), nn.Dropout(0)
        self.mlp = nn.Sequential(*layers)

    def forward(self, input):
        x = self.ln_1(input)
        x = self.self_attention(x, x, x, need_weights=False)[0] + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    def __init__(self, seq_length, num_layers, **options):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, seq_length, options["hidden_dim"]).normal_(std=0.02))
        blocks = {f"encoder_layer_{at}": EncoderBlock(**options) for at in range(num_layers)}
        self.layers = nn.Sequential()
        for name, block in blocks.items():
            self.layers.add_module(name, block)
        self.ln = nn.LayerNorm(options["hidden_dim"], eps=1e-6)

    def forward(self, input):
        return self.ln(self.layers(input + self.pos_embedding))


class VisionTransformer(nn.Module):
    def __init__(self, image_size=224, patch_size=16, num_layers=12, num_classes=1000, **given):
        super().__init__()
        options = {"num_heads": 3, "hidden_dim": 192, "mlp_dim": 768, **given}
        self.hidden_dim = options["hidden_dim"]
        self.n_patches = (image_size // patch_size) ** 2
        self.class_token = nn.Parameter(torch.zeros(1, 1, self.hidden_dim))
        self.conv_proj = nn.Conv2d(3, self.hidden_dim, patch_size, patch_size)
        self.encoder = Encoder(self.n_patches + 1, num_layers, **options)
        self.heads = nn.Sequential()
        self.heads.add_module("head", nn.Linear(self.hidden_dim, num_classes))

    def forward(self, x):
        n = x.shape[0]
        patches = self.conv_proj(x).reshape(n, self.hidden_dim, self.n_patches).permute(0, 2, 1)
        tokens = torch.cat([self.class_token.expand(n, -1, -1), patches], dim=1)
        return self.heads(self.encoder(tokens)[:, 0])


# --- Hugging Face's GPT-2


class Conv1D(nn.Module):
    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(torch.empty(nx, nf).normal_(std=0.02))
        self.bias = nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        size_out = x.size()[:-1] + (self.nf,)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size_out)


class NewGELUActivation(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class GPT2Attention(nn.Module):
    def __init__(self, n_embd, n_head, n_positions):
        super().__init__()
        self.n_embd, self.n_head = n_embd, n_head
        self.c_attn = Conv1D(3 * n_embd, n_embd)
        self.c_proj = Conv1D(n_embd, n_embd)
        mask = torch.tril(torch.ones(n_positions, n_positions, dtype=torch.bool))
        self.register_buffer("bias", mask.view(1, 1, n_positions, n_positions), persistent=False)

    def forward(self, x):
        batch, length, _ = x.shape
        parts = self.c_attn(x).split(self.n_embd, dim=2)
        query, key, value = (it.view(batch, length, self.n_head, -1).transpose(1, 2) for it in parts)
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.n_embd // self.n_head)
        weights = torch.where(self.bias[:, :, :length, :length], scores, torch.finfo(torch.float32).min).softmax(-1)
        merged = torch.matmul(weights, value).transpose(1, 2).contiguous()
        return self.c_proj(merged.view(batch, length, self.n_embd))


class GPT2MLP(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.c_fc = Conv1D(4 * n_embd, n_embd)
        self.c_proj = Conv1D(n_embd, 4 * n_embd)
        self.act = NewGELUActivation()

    def forward(self, x):
        return self.c_proj(self.act(self.c_fc(x)))


class GPT2Block(nn.Module):
    def __init__(self, n_embd=768, n_head=12, n_positions=1024):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, eps=1e-5)
        self.attn = GPT2Attention(n_embd, n_head, n_positions)
        self.ln_2 = nn.LayerNorm(n_embd, eps=1e-5)
        self.mlp = GPT2MLP(n_embd)

    def forward(self, x):
        x = self.attn(self.ln_1(x)) + x
        return x + self.mlp(self.ln_2(x))


class SequenceClassifier(nn.Module):
    def __init__(self, input_size=64, hidden_size=128, num_classes=10):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden_size, num_classes)

    def forward(self, x):
        output, _ = self.lstm(x)
        return self.head(output[:, -1])


def resnet18(num_classes=1000, width=64):
    return ResNet(BasicBlock, [2, 2, 2, 2], num_classes, width)


# --- The recipe

MODELS = {
    "resnet18": (resnet18, "resnet.ts"),
    "vitTi16": (VisionTransformer, "vit.ts"),
    "gpt2Block": (GPT2Block, "gpt2.ts"),
    "lstm": (SequenceClassifier, "lstm.ts"),
}

BATCH = ["batch", 1, 8]
# The options, the sizes of the example, what is dynamic by dimension, the sizes of further calls, and those that are refused.
FULL = {
    "resnet18": ({}, [2, 3, 224, 224], {0: BATCH}, [[1, 3, 224, 224], [3, 3, 224, 224], [5, 3, 224, 224]],
                 [[9, 3, 224, 224], [2, 3, 225, 224]]),
    "vitTi16": ({}, [2, 3, 224, 224], {0: BATCH}, [[1, 3, 224, 224], [3, 3, 224, 224], [5, 3, 224, 224]],
                [[9, 3, 224, 224], [2, 3, 224, 208]]),
    "gpt2Block": ({}, [2, 12, 768], {0: BATCH, 1: ["length", 1, 1024]}, [[1, 5, 768], [3, 64, 768], [5, 33, 768], [1, 300, 768]],
                  [[9, 12, 768], [2, 1025, 768], [2, 12, 767]]),
    "lstm": ({}, [2, 12, 64], {0: BATCH, 1: ["length", 1, 512]}, [[1, 5, 64], [3, 50, 64], [5, 1, 64], [8, 128, 64]],
             [[9, 12, 64], [2, 513, 64], [2, 12, 63]]),
}
SMALL = {
    "resnet18": ({"num_classes": 5, "width": 2}, [2, 3, 16, 16], {0: BATCH}, [[1, 3, 16, 16], [3, 3, 16, 16], [5, 3, 16, 16]],
                 [[9, 3, 16, 16], [2, 3, 17, 16]]),
    "vitTi16": ({"image_size": 8, "patch_size": 4, "num_layers": 2, "num_heads": 2, "hidden_dim": 12, "mlp_dim": 24, "num_classes": 5},
                [2, 3, 8, 8], {0: BATCH}, [[1, 3, 8, 8], [3, 3, 8, 8], [5, 3, 8, 8]], [[9, 3, 8, 8], [2, 3, 8, 12]]),
    "gpt2Block": ({"n_embd": 12, "n_head": 3, "n_positions": 16}, [2, 6, 12], {0: BATCH, 1: ["length", 1, 16]},
                  [[1, 3, 12], [3, 16, 12], [5, 7, 12], [1, 1, 12]], [[9, 6, 12], [2, 17, 12], [2, 6, 11]]),
    "lstm": ({"input_size": 5, "hidden_size": 8, "num_classes": 3}, [2, 6, 5], {0: BATCH, 1: ["length", 1, 32]},
             [[1, 3, 5], [3, 20, 5], [5, 1, 5]], [[9, 6, 5], [2, 33, 5], [2, 6, 4]]),
}


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(it.capitalize() for it in rest)


def seeded(model):
    """The model with statistics and biases that no layer begins with, so that each counts."""
    for name, it in model.named_buffers():
        if name.endswith("running_mean"):
            it.normal_(std=0.1)
        if name.endswith("running_var"):
            it.uniform_(0.5, 1.5)
    for name, it in model.named_parameters():
        if it.dim() == 1 or name.endswith("class_token"):
            it.data.add_(torch.empty_like(it).normal_(std=0.1))
    return model.eval()


class Untouched(nn.Module):
    """A module whose program checks nothing but what is said of its input."""

    def forward(self, x):
        return x.sin()


def exported(model, x, dynamic):
    shapes = {"x": {dim: Dim(name, min=low, max=high) for dim, (name, low, high) in dynamic.items()}}
    return torch.export.export(model, (x,), dynamic_shapes=shapes, strict=False)


def record(out, name, options, sizes, dynamic, others, refused):
    make, file = MODELS[name]
    torch.manual_seed(0)
    model = seeded(make(**options))
    inputs = [torch.randn(it) for it in [sizes, *others]]
    with torch.no_grad():
        outputs = [model(it) for it in inputs]
        exact = copy.deepcopy(model).double()
        error = max((exact(x.double()) - y.double()).abs().max().item() for x, y in zip(inputs, outputs))
    scale = max(it.abs().max().item() for it in outputs)
    tolerance = {"rtol": 1e-5, "atol": float(f"{max(4 * 2**-23 * scale, 8 * error):.2g}")}
    try:
        program, says = exported(model, inputs[0], dynamic), None
    except torch._dynamo.exc.UserError as problem:
        # The ranges of sizes are checked in the same way, whatever comes behind.
        program, says = exported(Untouched(), inputs[0], dynamic), str(problem).split("\n\nThe error above")[0]
    out = out / name
    out.mkdir(parents=True, exist_ok=True)
    save_file({key: it.contiguous() for key, it in model.state_dict().items()}, out / "weights.safetensors")
    for at, (x, y) in enumerate(zip(inputs, outputs)):
        suffix = f"_{at}" if at else ""
        save_file({"in0": x}, out / f"inputs{suffix}.safetensors")
        save_file({"out0": y.contiguous()}, out / f"expected{suffix}.safetensors")
    rejects = []
    for it in refused:
        try:
            program.module()(torch.zeros(it))
            message = None
        except AssertionError as problem:
            message = str(problem)
        rejects.append({"sizes": it, "torch_says": message})
    meta = {
        "torch": torch.__version__,
        "file": file,
        "make": name,
        "options": {camel(key): it for key, it in options.items()},
        "dynamic_shapes": {str(dim): {"name": it[0], "min": it[1], "max": it[2]} for dim, it in dynamic.items()},
        "refused_by_torch": says,
        "cases": [{"inputs": [{"kind": "tensor"}], "outputs": [{"kind": "tensor"}]} for _ in inputs],
        "rejects": rejects,
        "tolerance_per_output": [tolerance],
    }
    (out / "meta.json").write_text(json.dumps(meta) + "\n")
    print(f"{name}: {sum(it.numel() for it in model.parameters())} parameters, {len(inputs)} calls, {tolerance}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    assert torch.__version__.startswith("2.15"), torch.__version__
    warnings.filterwarnings("ignore")
    for name, it in (SMALL if options.small else FULL).items():
        record(options.out, name, *it)


if __name__ == "__main__":
    main()
