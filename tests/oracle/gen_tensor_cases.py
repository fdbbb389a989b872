"""Tensors as PyTorch prints and converts them. usage: python tests/oracle/gen_tensor_cases.py OUT

print.jsonl    {"name", "dtype", "shape", "bytes": base64 of the elements, "text": str(tensor)}
convert.jsonl  {"dtype", "values": [float64 as hex], "bits": [the bits of each value in the dtype]}
decode.jsonl   {"dtype", "bits": [...], "values": [float64 as hex]}
infer.jsonl    {"data": what torch.tensor is given, "dtype"?, and "result": {"dtype", "shape", "bytes"} or "error": type}
"""
import base64
import json
import pathlib
import random
import struct
import sys

import torch

OUT = pathlib.Path(sys.argv[1])
OUT.mkdir(parents=True, exist_ok=True)
inf, nan = float("inf"), float("nan")
SMALL = [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]


def name(dtype):
    return str(dtype).removeprefix("torch.")


def raw(t):
    return base64.b64encode(bytes(t.contiguous().reshape(-1).view(torch.uint8).tolist())).decode() if t.numel() else ""


def lines(file, rows):
    (OUT / file).write_text("".join(json.dumps(it) + "\n" for it in rows))


def printed():
    cases = {}
    torch.manual_seed(0)
    t = torch.tensor
    for dtype in [torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64, torch.uint64]:
        cases[f"int_{name(dtype)}"] = t([[1, 2, 30], [4, 5, 100]], dtype=dtype)
    cases["int_negative"] = t([-1, 10, -100, 9223372036854775807, -9223372036854775808])
    cases["uint64_large"] = t([18446744073709551615, 1], dtype=torch.uint64)
    cases["bool"] = t([[True, False], [False, True]])
    cases["bool_scalar"] = t(True)
    for dtype in [torch.float16, torch.bfloat16, torch.float32, torch.float64]:
        cases[f"float_{name(dtype)}"] = t([[1.0, -2.5, 3.14159265], [0.1, 100, 1e-3]], dtype=dtype)
        cases[f"whole_{name(dtype)}"] = t([1.0, -2.0, 30.0], dtype=dtype)
    floats = {
        "scalar": 1.5, "scalar_whole": -3.0, "zero": 0.0, "negative_zero": -0.0, "scalar_sci": 1e-7, "scalar_nan": nan,
        "whole_sci": [1.0, 1e5], "sci_small": [1e-5, 1.0], "sci_ratio": [0.001, 1.5], "ratio_1000": [0.001, 1.0],
        "large": [123456789.0, 1.0], "1e8": [1e8, 1e8 - 8], "1e9": [1e9], "specials": [inf, -inf, nan, 1.0],
        "specials_fraction": [inf, nan, 0.5], "only_specials": [nan, inf, 0.0], "signed_zeros": [0.0, -0.0, 1.5],
        "tie_even": [100005.0, 100015.0, 1.0], "tie_fixed": [0.03125, 0.09375, 0.15625], "tiny": [1e-45, 1e-38],
        "huge": [3.4e38, 1.0], "negative": [-0.5, -10.25], "exponent_3": [1e-30, 1e30],
        "almost_whole": [0.99999, 1.99999],
    }
    for key, value in floats.items():
        cases[f"f32_{key}"] = t(value, dtype=torch.float32)
    cases["f64_exponent_3"] = t([1e-200, 1e200], dtype=torch.float64)
    cases["f64_ties"] = t([0.00005, 0.00015, 2.00005, 0.5], dtype=torch.float64)
    cases["f64_whole_large"] = t([1e22, 1e22], dtype=torch.float64)
    cases["f64_scalar_whole_large"] = t(12345678.0, dtype=torch.float64)
    cases["complex64"] = t([[1 + 2j, -1.5 - 0.25j]])
    cases["complex128"] = t([1j, complex(-0.0, -0.0), complex(nan, inf)], dtype=torch.complex128)
    cases["complex_scalar"] = t(1.5 - 2j)
    cases["complex32"] = t([1 + 2j, 0.5 - 1j], dtype=torch.complex64).to(torch.complex32)
    for dtype in SMALL[2:]:
        cases[f"float_{name(dtype)}"] = t([0.5, 1.5, -2.0]).to(dtype)
    cases["e8m0"] = t([127, 128, 120], dtype=torch.uint8).view(torch.float8_e8m0fnu)
    for shape in [[0], [0, 3], [2, 0], [1, 0, 4]]:
        cases[f"empty_{'x'.join(map(str, shape))}"] = torch.zeros(shape)
        cases[f"empty_int_{'x'.join(map(str, shape))}"] = torch.zeros(shape, dtype=torch.int64)
    cases["empty_half"] = torch.zeros([0], dtype=torch.float16)
    cases["vector_wraps"] = torch.arange(40, dtype=torch.float32) / 7
    cases["int_wraps"] = torch.arange(100) * 37
    cases["matrix_wraps"] = torch.arange(60).reshape(2, 30) * 1.5
    cases["deep"] = torch.arange(16, dtype=torch.float32).reshape(2, 2, 2, 2)
    cases["three"] = torch.arange(12).reshape(2, 3, 2)
    cases["size_1000"] = torch.arange(1000, dtype=torch.float32)
    cases["size_1001"] = torch.arange(1001, dtype=torch.float32)
    cases["summary_matrix"] = torch.randn(40, 50)
    cases["summary_narrow"] = torch.randn(600, 2)
    cases["summary_wide"] = torch.arange(2000).reshape(2, 1000)
    cases["summary_deep"] = torch.randn(10, 11, 12)
    cases["summary_bool"] = torch.arange(1200) % 3 == 0
    cases["summary_complex"] = torch.complex(torch.arange(1001.0), torch.arange(1001.0) * -0.5)
    cases["summary_hides_the_large"] = torch.cat([torch.ones(500), torch.tensor([1e9]), torch.ones(600)])
    cases["suffix_on_a_new_line"] = torch.arange(10, dtype=torch.float64) + 0.123
    cases["suffix_fits"] = torch.arange(7, dtype=torch.float64) + 0.123
    for i in range(24):
        r = random.Random(i)
        shape = [r.randint(1, 6) for _ in range(r.randint(1, 3))]
        dtype = r.choice([torch.float32, torch.float64, torch.float16, torch.bfloat16])
        scale = r.choice([1, 1, 10, 1e4, 1e-3, 1e8])
        cases[f"random_{i}"] = (torch.randn(shape, dtype=torch.float64) * scale).to(dtype)
    return [{"name": k, "dtype": name(v.dtype), "shape": list(v.shape), "bytes": raw(v), "text": str(v)} for k, v in cases.items()]


def hexed(values):
    return [struct.pack(">d", v).hex() for v in values]


def unsigned(t):
    size = t.element_size()
    return [it & (2 ** (8 * size) - 1) for it in t.view({1: torch.uint8, 2: torch.int16}[size]).tolist()]


def conversions():
    rng = random.Random(7)
    values = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 65504.0, 65519.9, 65520.0, 2049.0, 2051.0, 6e-8, 3e-8, 2.9e-8, 448.0, 464.0, 464.1, 480.0,
              -465.0, 240.0, 248.0, 247.9, 57344.0, 61440.0, 61439.9, 1e-3, 2**-9, 2**-10, 1.5 * 2**-10, 2**-133, 3.4e38, 1e300, -1e300, 1e-320]
    values += [rng.choice([-1, 1]) * 2 ** rng.uniform(-30, 20) for _ in range(300)]
    values += [rng.randint(-600, 600) / 2 ** rng.randint(0, 12) for _ in range(300)]
    for dtype in SMALL:
        yield {"dtype": name(dtype), "values": hexed(values), "bits": unsigned(torch.tensor(values, dtype=torch.float64).to(torch.float32).to(dtype))}


def decodings():
    for dtype in SMALL + [torch.float8_e8m0fnu]:
        wide = dtype in SMALL[:2]
        bits = sorted({b for base in range(0, 65536, 512) for b in (base, base + 1, base + 255)} | {0x7C00, 0xFC00, 0x7C01, 0x7F80, 0xFF81}) if wide else list(range(256))
        t = torch.tensor(bits, dtype=torch.int32).to(torch.int16 if wide else torch.uint8).view(dtype)
        yield {"dtype": name(dtype), "bits": bits, "values": hexed(t.to(torch.float64 if wide else torch.float32).double().tolist())}


def inferred():
    data = [1, -1, True, 1.5, [], [[]], [[], []], [1, 2], [[1, 2], [3, 4]], [1, 2.5], [True, False], [True, 2], [True, 0.5],
            [[1], [2, 3]], [1, [2]], [[1, 2], 3], [[[1]], [[2, 3]]]]
    dtyped = [(1.9, "int64"), (-1.9, "int32"), ([300], "uint8"), ([-1], "uint8"), ([128], "int8"), ([255], "uint8"), ([1, 0, 5], "bool"),
              ([0.5, 0.0], "bool"), ([1, 2], "float16"), ([1.1], "bfloat16"), ([True], "float64"), ([1, 2], "complex64")]
    for it, dtype in [(it, None) for it in data] + dtyped:
        row = {"data": it} if dtype is None else {"data": it, "dtype": dtype}
        try:
            t = torch.tensor(it, dtype=None if dtype is None else getattr(torch, dtype))
            row["result"] = {"dtype": name(t.dtype), "shape": list(t.shape), "bytes": raw(t)}
        except Exception as e:  # noqa: BLE001
            row["error"] = type(e).__name__
        yield row


lines("print.jsonl", printed())
lines("convert.jsonl", conversions())
lines("decode.jsonl", decodings())
lines("infer.jsonl", inferred())
(OUT / "meta.json").write_text(json.dumps({"torch": torch.__version__}) + "\n")
