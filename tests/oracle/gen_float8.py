"""What PyTorch makes of floats of eight bits: the numbers that all 256 codes stand for, and the codes of numbers.

One line a dtype: its name, the codes as float32, and pairs of a float32 and its code; floats as eight digits of hex.

usage: gen_float8.py OUT.txt
"""
import sys

import torch

NAMES = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


def bits(floats):
    return [it & 0xFFFFFFFF for it in floats.view(torch.int32).tolist()]


torch.manual_seed(0)
with open(sys.argv[1], "w") as out:
    for name in NAMES:
        dtype = getattr(torch, name)
        numbers = torch.arange(256, dtype=torch.uint8).view(dtype).float()
        finite = numbers[numbers.isfinite()]
        ordered = finite.unique()
        halves = (ordered[1:].double() + ordered[:-1].double()).div(2).float()
        infinity = torch.tensor(float("inf"))
        beside = [torch.nextafter(it, side) for it in (ordered, halves) for side in (infinity, -infinity)]
        special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 3e38, -3e38, 1e-45, -1e-45])
        random = torch.randn(200) * 2.0 ** torch.randint(-20, 20, (200,))
        given = torch.cat([ordered, halves, *beside, special, random])
        codes = given.to(dtype).view(torch.uint8).tolist()
        pairs = " ".join(f"{a:08x}:{b:02x}" for a, b in zip(bits(given), codes))
        out.write(f"{name} {' '.join(f'{it:08x}' for it in bits(numbers))} {pairs}\n")
