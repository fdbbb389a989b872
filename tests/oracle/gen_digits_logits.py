"""Records what PyTorch answers for all test digits: tests/fixtures/programs/_digits/logits.safetensors.

Usage: python gen_digits_logits.py FIXTURES_DIR   (needs torch and safetensors)
"""
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

fixtures = Path(sys.argv[1])
program = torch.export.load(fixtures / "programs" / "digits_cnn" / "model.pt2")
images = load_file(fixtures / "programs" / "_digits" / "test.safetensors")["images"].float() / 16
with torch.no_grad():
    logits = program.module()(images.reshape(-1, 1, 8, 8))
save_file({"logits": logits.contiguous()}, fixtures / "programs" / "_digits" / "logits.safetensors")
print(logits.shape, logits.argmax(1)[:10].tolist())
