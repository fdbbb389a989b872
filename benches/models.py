"""Makes the workloads of `npm run bench`: each one as a program of torch.export and as an ONNX model, with its inputs and
PyTorch's outputs. All numbers are seeded; nothing is downloaded.

    python benches/models.py OUT [NAME...]
"""

import json
import os
import struct
import sys
import warnings
from dataclasses import replace

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


def bottleneck(n_in, width, stride):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            n_out = 4 * width
            layers = [nn.Conv2d(n_in, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            layers += [nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            self.layers = nn.Sequential(*layers, nn.Conv2d(width, n_out, 1, bias=False), nn.BatchNorm2d(n_out))
            self.shortcut = nn.Identity()
            if n_in != n_out or stride != 1:
                self.shortcut = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

        def forward(self, x):
            return F.relu(self.layers(x) + self.shortcut(x))

    return Block()


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    n_in = 64
    for width, n_blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for at in range(n_blocks):
            layers.append(bottleneck(n_in, width, 2 if at == 0 and width > 64 else 1))
            n_in = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Squeezed(nn.Module):
    """An inverted residual with squeeze and excitation, of EfficientNet."""

    def __init__(self, n_in, n_out, kernel, stride, ratio):
        super().__init__()
        hidden, squeezed = n_in * ratio, max(1, n_in // 4)
        layers = []
        if ratio != 1:
            layers += [nn.Conv2d(n_in, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.SiLU()]
        layers += [nn.Conv2d(hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False)]
        self.expand = nn.Sequential(*layers, nn.BatchNorm2d(hidden), nn.SiLU())
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(hidden, squeezed, 1), nn.SiLU(), nn.Conv2d(squeezed, hidden, 1), nn.Sigmoid()
        )
        self.project = nn.Sequential(nn.Conv2d(hidden, n_out, 1, bias=False), nn.BatchNorm2d(n_out))
        self.adds = stride == 1 and n_in == n_out

    def forward(self, x):
        y = self.expand(x)
        y = self.project(y * self.squeeze(y))
        return x + y if self.adds else y


def efficientnet_b0():
    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.SiLU()]
    n_in = 32
    settings = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5)]
    for ratio, n_out, n_blocks, stride, kernel in [*settings, (6, 320, 1, 1, 3)]:
        for at in range(n_blocks):
            layers.append(Squeezed(n_in, n_out, kernel, stride if at == 0 else 1, ratio))
            n_in = n_out
    layers += [nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.SiLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class Block(nn.Module):
    """One layer of a transformer that normalises before it attends, as those of ViT and GPT-2 do."""

    def __init__(self, width, n_heads, is_causal, approximate):
        super().__init__()
        self.n_heads, self.is_causal, self.approximate = n_heads, is_causal, approximate
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        def heads(y):
            return y.view(*y.shape[:2], self.n_heads, -1).transpose(1, 2)

        q, k, v = (heads(y) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        x = x + self.output(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate=self.approximate))


class ViT(nn.Module):
    """ViT-B/16."""

    def __init__(self, width=768):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, 12, False, "none") for _ in range(12)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class GPT2(nn.Module):
    """GPT-2 small."""

    def __init__(self, width=768, n_words=50257):
        super().__init__()
        self.words, self.positions = nn.Embedding(n_words, width), nn.Embedding(1024, width)
        nn.init.normal_(self.words.weight, std=0.02)
        self.blocks = nn.Sequential(*(Block(width, 12, True, "tanh") for _ in range(12)))
        self.norm = nn.LayerNorm(width)

    def forward(self, words):
        x = self.words(words) + self.positions(torch.arange(words.shape[1]))
        return F.linear(self.norm(self.blocks(x)), self.words.weight)


class GPT2Step(nn.Module):
    """One token of GPT-2 behind others, whose keys and values are in buffers of `n` positions, which the step writes to."""

    def __init__(self, gpt2, n, past):
        super().__init__()
        self.gpt2 = gpt2
        for at, cache in enumerate(past):
            self.register_buffer(f"cache{at}", F.pad(cache, (0, 0, 0, n - cache.shape[2])))

    def attend(self, at, q, k, v, position):
        keys, values = getattr(self, f"cache{2 * at}"), getattr(self, f"cache{2 * at + 1}")
        keys.index_copy_(2, position, k)
        values.index_copy_(2, position, v)
        mask = (torch.arange(keys.shape[2]) <= position)[None, None, None]
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)

    def forward(self, word, position):
        gpt2 = self.gpt2
        x = gpt2.words(word) + gpt2.positions(position)
        for at, block in enumerate(gpt2.blocks):
            q, k, v = (it.view(1, 1, block.n_heads, -1).transpose(1, 2) for it in block.qkv(block.norm1(x)).chunk(3, -1))
            y = self.attend(at, q, k, v, position)
            x = x + block.output(y.transpose(1, 2).flatten(2))
            x = x + block.down(F.gelu(block.up(block.norm2(x)), approximate=block.approximate))
        return F.linear(gpt2.norm(x), gpt2.words.weight)


class GPT2Past(GPT2Step):
    """The same as ONNX has it: keys and values are inputs, and results that are one position longer."""

    def __init__(self, gpt2):
        super().__init__(gpt2, 0, [])

    def attend(self, at, q, k, v, position):
        keys, values = (torch.cat(it, 2) for it in zip(self.past[2 * at : 2 * at + 2], (k, v)))
        self.present += [keys, values]
        return F.scaled_dot_product_attention(q, keys, values)

    def forward(self, word, position, *past):
        self.past, self.present = past, []
        logits = super().forward(word, position)
        return (logits, *self.present)


class LlamaBlock(nn.Module):
    """One layer of a Llama: rotated queries and keys, keys and values that heads share, gated units."""

    def __init__(self, width, n_heads, n_shared, hidden):
        super().__init__()
        self.size = width // n_heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.query, self.output = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, n_shared * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin):
        def heads(y):
            return y.view(*y.shape[:2], -1, self.size).transpose(1, 2)

        def rotated(y):
            first, second = y.chunk(2, -1)
            return y * cos + torch.cat([-second, first], -1) * sin

        y = self.norm1(x)
        q, k, v = rotated(heads(self.query(y))), rotated(heads(self.key(y))), heads(self.value(y))
        n_groups = q.shape[1] // k.shape[1]
        k, v = (it.repeat_interleave(n_groups, 1) for it in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """A Llama of 100 million parameters."""

    def __init__(self, width=768, n_layers=12, n_words=16000):
        super().__init__()
        self.words = nn.Embedding(n_words, width)
        nn.init.normal_(self.words.weight, std=0.02)
        self.blocks = nn.ModuleList(LlamaBlock(width, 12, 4, 2048) for _ in range(n_layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, n_words, bias=False)
        frequencies = 10000 ** (-torch.arange(0, 64, 2) / 64)
        angles = torch.arange(2048)[:, None] * frequencies
        self.register_buffer("cos", angles.cos().repeat(1, 2))
        self.register_buffer("sin", angles.sin().repeat(1, 2))

    def forward(self, words):
        x = self.words(words)
        cos, sin = self.cos[: words.shape[1]], self.sin[: words.shape[1]]
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


class Float16(nn.Module):
    """A model in float16, whose results are float32."""

    def __init__(self, model):
        super().__init__()
        self.model = model.half()

    def forward(self, x):
        return self.model(x).float()


class Encoder(nn.Module):
    """One layer of a BERT as small as MiniLM."""

    def __init__(self, width=384, n_heads=12):
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask=None):
        def heads(y):
            return y.view(*y.shape[:2], self.n_heads, -1).transpose(1, 2)

        y = F.scaled_dot_product_attention(heads(self.query(x)), heads(self.key(x)), heads(self.value(x)), mask)
        x = self.norm1(x + self.output(y.transpose(1, 2).flatten(2)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class MiniLM(nn.Module):
    """A sentence's embedding by MiniLM: of words, places and segments, six layers, and the mean over the words that are no padding."""

    def __init__(self, n_words=30522, n_places=512, width=384, n_layers=6):
        super().__init__()
        self.words, self.places, self.segments = (nn.Embedding(n, width) for n in (n_words, n_places, 2))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(Encoder(width) for _ in range(n_layers))

    def forward(self, words, segments, is_word):
        places = torch.arange(words.shape[1], device=words.device)
        x = self.norm(self.words(words) + self.places(places) + self.segments(segments))
        mask = is_word.bool()[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        weight = is_word[..., None].to(x.dtype)
        return F.normalize((x * weight).sum(1) / weight.sum(1).clamp(min=1e-9))


def prepared(module):
    """The module as it is run."""
    for it in module.modules():
        # Statistics that are not those of a new module, so that folding them is real work.
        if isinstance(it, nn.BatchNorm2d):
            it.running_mean.normal_(0, 0.1)
            it.running_var.uniform_(0.8, 1.2)
    return module.eval().requires_grad_(False)


def quantized(module, inputs):
    """The module as `convert_pt2e` makes it: uint8 between all operators, int8 filters with a scale for each. It takes torchao."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

    def unsigned(spec):
        # ONNX Runtime has no kernels for int8 between operators on x86-64.
        return replace(spec, dtype=torch.uint8, quant_min=0, quant_max=255)

    config = get_symmetric_quantization_config(is_per_channel=True)
    activations = {it: unsigned(getattr(config, it)) for it in ("input_activation", "output_activation")}
    quantizer = XNNPACKQuantizer().set_global(replace(config, **activations))
    module = prepare_pt2e(torch.export.export(prepared(module), tuple(inputs)).module(), quantizer)
    module(*inputs)
    module = convert_pt2e(module)
    used = {node.target for node in module.graph.nodes if node.op == "get_attr"}
    for name in [name for name, _ in module.named_parameters() if name not in used]:
        owner, _, name = name.rpartition(".")
        delattr(module.get_submodule(owner), name)
    return module, inputs


def conv(n_in, n_out, kernel, groups=1):
    return nn.Conv2d(n_in, n_out, kernel, padding=kernel // 2, groups=groups, bias=False)


def chain(x):
    return (torch.relu(x * 2 + 1) * x - 0.5).abs().add(0.25).sqrt()


def rand(*sizes):
    return torch.randn(*sizes)


def words(n, n_words):
    return torch.randint(n_words, (1, n))


def digits():
    """The network of the examples, which was trained on handwritten digits."""
    path = os.path.join(os.path.dirname(__file__), "../tests/fixtures/programs/digits_cnn/model.pt2")
    return torch.export.unflatten(torch.export.load(path))


def gpt2_step(n, at):
    """A token at position `at` of `n`."""
    gpt2 = GPT2()
    past = [rand(1, 12, at, 64) for _ in range(24)]
    inputs = [words(1, 50257), torch.tensor([at])]
    return GPT2Step(gpt2, n, past), inputs, GPT2Past(gpt2), [*inputs, *past]


# The model and its inputs; where ONNX has it otherwise, the model and the inputs of that too.
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
    "minilm": lambda: (MiniLM(), [words(128, 30522), torch.zeros(1, 128, dtype=torch.int64), (torch.arange(128) < 100).long()[None]]),
    "resnet50": lambda: (resnet50(), [rand(1, 3, 224, 224)]),
    "resnet50_int8": lambda: quantized(resnet50(), [rand(1, 3, 224, 224)]),
    "efficientnet_b0": lambda: (efficientnet_b0(), [rand(1, 3, 224, 224)]),
    "vit_b16": lambda: (ViT(), [rand(1, 3, 224, 224)]),
    "gpt2": lambda: (GPT2(), [words(64, 50257)]),
    "llama": lambda: (Llama(), [words(64, 16000)]),
    "llama16_step": lambda: (Float16(Llama()), [words(1, 16000)]),
    "digits": lambda: (digits(), [rand(1, 1, 8, 8)]),
    "digits397": lambda: (digits(), [rand(397, 1, 8, 8)]),
    "gpt2_step64": lambda: gpt2_step(128, 64),
    "gpt2_step1024": lambda: gpt2_step(1024, 1023),
}


def save_tensors(path, tensors):
    """A .safetensors file of float32 and int64 tensors."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        begin = len(data)
        data += tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def made(name):
    """The workload of this name: the model and its inputs, for PyTorch and for ONNX."""
    torch.manual_seed(0)
    module, inputs, *of_onnx = WORKLOADS[name]()
    of_onnx = of_onnx or [module, inputs]
    for it in (module, of_onnx[0]):
        # A quantised graph is ready.
        if not isinstance(it, torch.fx.GraphModule):
            prepared(it)
    return module, inputs, *of_onnx


def main():
    out, *names = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    for name in names or WORKLOADS:
        module, inputs, onnx_module, onnx_inputs = made(name)
        base = os.path.join(out, name)
        names_of = [f"in{at}" for at in range(len(onnx_inputs))]
        torch.export.save(torch.export.export(module, tuple(inputs)), base + ".pt2")
        torch.onnx.export(
            onnx_module, tuple(onnx_inputs), base + ".onnx", input_names=names_of, dynamo=True, external_data=False,
            output_names=[f"out{at}" for at in range(25 if onnx_module is not module else 1)], verbose=False,
        )
        save_tensors(base + ".inputs.safetensors", dict(zip(names_of, inputs)))
        if onnx_module is not module:
            save_tensors(base + ".onnx.inputs.safetensors", dict(zip(names_of, onnx_inputs)))
        save_tensors(base + ".expected.safetensors", {"out0": module(*inputs)})
        print(name, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
