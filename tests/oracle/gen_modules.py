"""Modules of torch.nn: how they print, what they begin with, and a sample of the recorded calls.

usage: python tests/oracle/gen_modules.py OUT [RECORDED]

made.jsonl     {"module", "args", "kwargs", "text": str(module), "state": {name: {"dtype", "size", "sha256"}}}, after
               torch.manual_seed(0); or "error": the message with which PyTorch refuses the arguments
classes.json   {name: the class as programs name it, with its module} of the modules of torch.nn.modules
init.jsonl     {"function", "size", "dtype", "args", "kwargs", "sha256"} of torch.nn.init, after torch.manual_seed(0)
cases.jsonl, tensors.safetensors   some of the calls recorded from PyTorch's own module tests in the folder RECORDED, which
               has cases.jsonl and tensors.safetensors

Values: {"int"}, {"float"}, {"tuple": [...]}, {"list": [...]}, {"dtype"}, plain bool, string and null. sha256: of the bytes,
little-endian and row-major, 16 digits.
"""
import hashlib
import json
import pathlib
import re
import sys
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
OUT = pathlib.Path(sys.argv[1])
OUT.mkdir(parents=True, exist_ok=True)


def encode(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"int": value}
    if isinstance(value, float):
        return {"float": value}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    return {type(value).__name__: [encode(it) for it in value]}


def digest(tensor):
    data = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return hashlib.sha256(data).hexdigest()[:16]


MADE = []


def case(name, *args, **kwargs):
    MADE.append((name, args, kwargs))


case("Identity")
case("Linear", 5, 3)
case("Linear", 5, 3, bias=False)
case("Linear", 40, 30, dtype=torch.float64)
case("Linear", 5, 4, dtype=torch.float16)
case("Linear", 0, 3)
case("Bilinear", 3, 4, 5)
case("Bilinear", 3, 4, 5, bias=False)
case("Bilinear", 0, 4, 5)
for d, size in ((1, 5), (2, 4), (3, 3)):
    case(f"Conv{d}d", 4, 6, 3)
    case(f"Conv{d}d", 4, 6, 3, stride=2, padding=1, groups=2, bias=False)
    case(f"Conv{d}d", 4, 6, 3, padding="same", dilation=2, padding_mode="reflect")
    case(f"Conv{d}d", 4, 6, (size,) * d, padding=(1,) * d, padding_mode="circular")
    case(f"Conv{d}d", 4, 6, 3, padding="valid")
    case(f"Conv{d}d", 4, 6, 3, padding="same", stride=2)
    case(f"Conv{d}d", 4, 6, 3, groups=3)
    case(f"Conv{d}d", 4, 6, 3, groups=0)
    case(f"Conv{d}d", 3, 4, 3, groups=3)
    case(f"ConvTranspose{d}d", 4, 6, 3)
    case(f"ConvTranspose{d}d", 4, 6, 3, 2, 1, 1, 2, False, 2)
    case(f"BatchNorm{d}d", 7)
    case(f"BatchNorm{d}d", 7, eps=0.5, momentum=None, affine=False)
    case(f"BatchNorm{d}d", 7, 1e-3, 0.2, True, False)
    case(f"BatchNorm{d}d", 7, bias=False, dtype=torch.float64)
    case(f"InstanceNorm{d}d", 7)
    case(f"InstanceNorm{d}d", 7, affine=True, track_running_stats=True)
    case(f"MaxPool{d}d", 3)
    case(f"MaxPool{d}d", (3,) * d, stride=2, padding=1, dilation=2, ceil_mode=True, return_indices=True)
    case(f"MaxPool{d}d", [3] * d)
    case(f"MaxUnpool{d}d", 2)
    case(f"MaxUnpool{d}d", 2, stride=3, padding=1)
    case(f"AvgPool{d}d", 2)
    case(f"AvgPool{d}d", (2,) * d, 3, 1, True, False)
    case(f"LPPool{d}d", 2, 3)
    case(f"LPPool{d}d", 1.5, 3, stride=2, ceil_mode=True)
    case(f"LPPool{d}d", 0, 3)
    case(f"AdaptiveAvgPool{d}d", 4)
    case(f"AdaptiveMaxPool{d}d", 4, True)
    for kind in ("Reflection", "Replication", "Circular", "Zero"):
        case(f"{kind}Pad{d}d", 2)
        case(f"{kind}Pad{d}d", tuple(range(1, 2 * d + 1)))
    case(f"ConstantPad{d}d", 2, 3.5)
    case(f"ConstantPad{d}d", 2, 3)
    case(f"Dropout{d}d")
case("AdaptiveAvgPool2d", (None, 7))
case("AvgPool2d", 2, divisor_override=3)
case("FractionalMaxPool2d", 2, output_ratio=0.5)
case("FractionalMaxPool2d", 2)
case("FractionalMaxPool2d", 2, output_ratio=1.5)
case("FractionalMaxPool2d", 2, 3, 0.5)
case("FractionalMaxPool3d", 2, output_size=3)
case("FractionalMaxPool3d", 0, output_size=3)
case("Conv2d", 4, 6, (3, 5), stride=(2, 1), padding=(4, 2), dilation=(3, 1))
case("Conv2d", 4, 6, 3, padding="full")
case("Conv2d", 4, 6, 3, padding_mode="mirror")
case("Conv2d", 4, 6, 3, dtype=torch.bfloat16)
for name in ("Dropout", "AlphaDropout", "FeatureAlphaDropout"):
    case(name)
    case(name, 0.25, True)
    case(name, 1)
    case(name, 1.5)
case("LayerNorm", 5)
case("LayerNorm", (3, 5), eps=1e-6, bias=False)
case("LayerNorm", [3, 5], elementwise_affine=False)
case("RMSNorm", (3, 5))
case("RMSNorm", 5, 1e-6, False)
case("GroupNorm", 2, 6)
case("GroupNorm", 2, 6, affine=False)
case("GroupNorm", 2, 6, bias=False)
case("GroupNorm", 4, 6)
case("LocalResponseNorm", 3)
case("LocalResponseNorm", 3, 2e-4, 0.5, 2)
for name in ("ReLU", "ReLU6", "SiLU", "Mish", "SELU", "Hardsigmoid", "Hardswish"):
    case(name)
    case(name, True)
    case(name, inplace=True)
for name in ("Sigmoid", "Tanh", "LogSigmoid", "Softsign", "Tanhshrink", "Softmax2d"):
    case(name)
case("Threshold", 0.1, 20)
case("Threshold", 1.0, 20.0, True)
case("RReLU")
case("RReLU", 0.1, 0.3, True)
case("Hardtanh")
case("Hardtanh", -2, 2.5, True)
case("Hardtanh", 2, 1)
for name in ("ELU", "CELU"):
    case(name)
    case(name, 2)
    case(name, 0.5, True)
case("LeakyReLU")
case("LeakyReLU", 0.2, inplace=True)
case("GELU")
case("GELU", "tanh")
case("Hardshrink")
case("Hardshrink", 1)
case("Softshrink")
case("Softshrink", 1.0)
case("Softplus")
case("Softplus", 2, 10)
case("PReLU")
case("PReLU", 3, 0.5)
for name in ("Softmax", "Softmin", "LogSoftmax"):
    case(name)
    case(name, dim=-1)
case("GLU")
case("GLU", 1)
case("Flatten")
case("Flatten", 0, 2)
case("Unflatten", 1, (2, 3))
case("Unflatten", -1, [2, 3])
case("PixelShuffle", 3)
case("PixelUnshuffle", 3)
case("ChannelShuffle", 2)
case("Unfold", 3)
case("Unfold", (2, 3), 2, 1, 2)
case("Fold", (4, 5), (2, 2))
case("Upsample", 4)
case("Upsample", scale_factor=2)
case("Upsample", scale_factor=(2, 3), mode="bilinear", align_corners=True)
case("Upsample", (3, 4), mode="nearest-exact")
case("UpsamplingNearest2d", scale_factor=2)
case("UpsamplingBilinear2d", (4, 4))
case("PairwiseDistance")
case("CosineSimilarity", 0)
case("Embedding", 10, 3)
case("Embedding", 10, 3, padding_idx=-2)
case("Embedding", 10, 3, 0, 1.0, 1.0, True, True)
case("Embedding", 10, 3, max_norm=2, norm_type=3)
case("Embedding", 10, 3, 10)
case("Embedding", 5, 3, dtype=torch.float64)
case("EmbeddingBag", 10, 3)
case("EmbeddingBag", 10, 3, mode="sum", padding_idx=1, max_norm=1.5, include_last_offset=True)
case("EmbeddingBag", 10, 3, padding_idx=-11)
for name in ("L1Loss", "MSELoss", "SoftMarginLoss", "MultiLabelMarginLoss", "SmoothL1Loss", "KLDivLoss", "BCELoss"):
    case(name)
    case(name, reduction="sum")
for name in ("HuberLoss", "PoissonNLLLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "CosineEmbeddingLoss", "NLLLoss"):
    case(name)
for name in ("MarginRankingLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "CTCLoss", "CrossEntropyLoss"):
    case(name)
for name in ("BCEWithLogitsLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss"):
    case(name)
case("TripletMarginLoss", 0)
case("MultiMarginLoss", 3)
case("LinearCrossEntropyLoss", 5, 3)
case("LinearCrossEntropyLoss", 5, 3, out_features=(2,), bias=True, reduction="sum", ignore_index=1, label_smoothing=0.1)
case("LinearCrossEntropyLoss", 5, 3, label_smoothing=2.0)
case("AdaptiveLogSoftmaxWithLoss", 16, 20, [4, 10, 15], 2.0)
case("AdaptiveLogSoftmaxWithLoss", 16, 20, [4, 10, 25])
case("AdaptiveLogSoftmaxWithLoss", 16, 20, [])
for name in ("RNN", "LSTM", "GRU"):
    case(name, 4, 5)
    case(name, 4, 5, num_layers=2, bias=False, batch_first=True, dropout=0.5, bidirectional=True)
    case(name, 4, 0)
    case(name, 4, 5, dropout=2.0)
    case(f"{name}Cell", 4, 5)
    case(f"{name}Cell", 4, 5, bias=False)
case("RNN", 4, 5, 1, "relu")
case("RNN", 4, 5, nonlinearity="sigmoid")
case("LSTM", 4, 5, 2, proj_size=3)
case("LSTM", 4, 5, proj_size=5)
case("RNNCell", 4, 5, True, "relu")
case("MultiheadAttention", 8, 2)
case("MultiheadAttention", 8, 2, bias=False, add_zero_attn=True)
case("MultiheadAttention", 8, 2, 0.1, True, True, False, 5, 6, True)
case("MultiheadAttention", 8, 3)
case("MultiheadAttention", 0, 3)
case("TransformerEncoderLayer", 8, 2, 16)
case("TransformerEncoderLayer", 8, 2, 16, 0.0, "gelu", 1e-6, True, True, False)
case("TransformerEncoderLayer", 8, 2, 16, activation="tanh")
case("TransformerDecoderLayer", 8, 2, 16)
case("Transformer", 8, 2, 2, 3, 16)
case("Transformer", 8, 2, 1, 1, 16, batch_first=True, norm_first=True, bias=False)

with open(OUT / "made.jsonl", "w") as file:
    for name, args, kwargs in MADE:
        line = {"module": name, "args": encode(args)["tuple"], "kwargs": {k: encode(v) for k, v in kwargs.items()}}
        torch.manual_seed(0)
        try:
            module = getattr(nn, name)(*args, **kwargs)
        except Exception as error:
            # The order of a set is by chance.
            in_order = lambda it: "{" + ", ".join(sorted(it[1].split(", "))) + "}"
            line["error"] = re.sub(r"\{('[^}]*)\}", in_order, str(error))
        else:
            line["text"] = str(module)
            line["state"] = {
                key: {"dtype": str(t.dtype).removeprefix("torch."), "size": list(t.shape), "sha256": digest(t)}
                for key, t in module.state_dict().items()
            }
        file.write(json.dumps(line) + "\n")

INIT = [
    ("uniform_", (7, 9), (), {}),
    ("uniform_", (5,), (-2.0, 3.0), {}),
    ("normal_", (7, 9), (), {}),
    ("normal_", (3, 4), (1.5, 0.25), {}),
    ("trunc_normal_", (20, 30), (), {}),
    ("trunc_normal_", (20, 30), (0.0, 0.02), {}),
    ("trunc_normal_", (20, 30), (0.0, 1.0, 1.5, 4.0), {}),
    ("constant_", (3, 4), (0.3,), {}),
    ("ones_", (3, 4), (), {}),
    ("zeros_", (3, 4), (), {}),
    ("eye_", (3, 5), (), {}),
    ("dirac_", (4, 3, 3), (), {}),
    ("dirac_", (6, 2, 3, 5), (2,), {}),
    ("dirac_", (2, 2, 1, 2, 3), (), {}),
    ("xavier_uniform_", (6, 5, 3, 3), (), {}),
    ("xavier_uniform_", (6, 5), (2.5,), {}),
    ("xavier_normal_", (6, 5), (), {}),
    ("kaiming_uniform_", (6, 5, 3), (), {}),
    ("kaiming_uniform_", (6, 5), (), {"mode": "fan_out", "nonlinearity": "relu"}),
    ("kaiming_normal_", (64, 3, 7, 7), (), {"mode": "fan_out", "nonlinearity": "relu"}),
    ("kaiming_normal_", (6, 5), (), {"a": 0.1, "nonlinearity": "leaky_relu"}),
    ("sparse_", (10, 7), (0.3,), {}),
]
with open(OUT / "init.jsonl", "w") as file:
    for function, size, args, kwargs in INIT:
        # Many numbers of a normal distribution in float64 depend on the last bit of the host's logarithm and cosine.
        is_exact = "normal" not in function and function != "sparse_"
        for dtype in (torch.float32, torch.float64) if is_exact else (torch.float32,):
            torch.manual_seed(0)
            tensor = getattr(nn.init, function)(torch.empty(size, dtype=dtype), *args, **kwargs)
            line = {"function": function, "size": size, "dtype": str(dtype).removeprefix("torch.")}
            line |= {"args": encode(args)["tuple"], "kwargs": {k: encode(v) for k, v in kwargs.items()}}
            file.write(json.dumps({**line, "sha256": digest(tensor)}) + "\n")

classes = {}
for path, file in sorted(sys.modules.items()):
    if path.startswith("torch.nn.modules."):
        own = [it for it in vars(file).values() if isinstance(it, type) and it.__module__ == path]
        classes |= {it.__name__: f"{path}.{it.__qualname__}" for it in own if issubclass(it, nn.Module)}
(OUT / "classes.json").write_text(json.dumps(dict(sorted(classes.items())), indent=1) + "\n")

if len(sys.argv) > 2:
    from safetensors.torch import load_file, save_file

    recorded = pathlib.Path(sys.argv[2])
    by_module = {}
    for line in (recorded / "cases.jsonl").read_text().splitlines():
        by_module.setdefault(json.loads(line)["module"], []).append(line)
    # The shortest and the longest of each module, and one with a state that changes.
    lines = []
    for all_lines in by_module.values():
        ordered = sorted(all_lines, key=len)
        changing = [it for it in ordered if "state_after" in it][:1]
        lines += dict.fromkeys([ordered[0], ordered[-1], *changing])
    tensors = load_file(recorded / "tensors.safetensors")
    text = "\n".join(lines) + "\n"
    (OUT / "cases.jsonl").write_text(text)
    used = set(re.findall(r'"tensor": ?"([^"]+)"', text))
    save_file({key: it for key, it in tensors.items() if key in used}, OUT / "tensors.safetensors")
