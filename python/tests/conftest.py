"""The recorded programs of tests/fixtures, whose format tests/oracle/README.md describes."""

import json
import pathlib
import struct

import numpy
import pytest

FIXTURES = pathlib.Path(__file__).parents[2] / "tests" / "fixtures"
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"}


def arrays(path):
    """The tensors of a `.safetensors` file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    res = {}
    for name, it in header.items():
        start, end = it["data_offsets"]
        array = numpy.frombuffer(data[8 + length + start : 8 + length + end], dtype=DTYPES[it["dtype"]])
        res[name] = array.reshape(it["shape"]).copy()
    return res


@pytest.fixture
def folder():
    """The folder of a recorded program."""
    return lambda name: FIXTURES / "programs" / name


@pytest.fixture
def digits(folder):
    """A convolutional network, an input of it and PyTorch's answer."""
    here = folder("digits_cnn")
    return here / "model.pt2", arrays(here / "inputs.safetensors")["in0"], arrays(here / "expected.safetensors")["out0"]
