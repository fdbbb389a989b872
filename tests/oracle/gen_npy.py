"""Records `.npy` and `.npz` files of NumPy, and the arrays in them. usage: python tests/oracle/gen_npy.py

Writes tests/fixtures/tensors/npy.json: files in base64, by name. Of a `.npy` file `elements` are those of the array as it is
(little-endian, row-major) in base64; of a `.npz` file `arrays` are the same by name; `refused` are files that hold no numbers.
"""
import base64, io, json, pathlib

import numpy as np

OUT = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "tensors" / "npy.json"
NAMES = {"bool": "bool", **{it: it for it in "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()}}
NAMES |= {it: it for it in "float16 float32 float64 complex64 complex128".split()}


def text(data):
    return base64.b64encode(data).decode()


def file_of(save, *args, **kwargs):
    out = io.BytesIO()
    save(out, *args, **kwargs)
    return text(out.getvalue())


def told(array):
    little = array.astype(array.dtype.newbyteorder("<"))
    return {"dtype": array.dtype.name, "shape": list(array.shape), "elements": text(little.tobytes(order="C"))}


def written(array, version=None):
    save = np.save if version is None else lambda out, it: np.lib.format.write_array(out, it, version)
    return {"file": file_of(save, array), **told(array)}


numbers = np.random.default_rng(0).normal(0, 40, (2, 3, 4))
cases = {name: written(numbers.astype(name)) for name in NAMES}
cases |= {
    "scalar": written(np.array(1.5)),
    "empty": written(np.zeros((2, 0, 3), "float32")),
    "vector": written(np.arange(5)),
    # The header is as long as a multiple of 64 bytes, so that NumPy adds as many.
    "full line": written(np.zeros((1,) * 12 + (10, 10), "float32")),
    "fortran": written(np.asfortranarray(numbers.astype("float32"))),
    "big-endian": written(numbers.astype(">i4")),
    "big-endian complex": written(numbers.astype(">c8")),
    "version 2": written(numbers, (2, 0)),
    "version 3": written(numbers, (3, 0)),
}
arrays = {"x": numbers.astype("float32"), "ids": np.arange(6).reshape(2, 3), "noise": np.zeros((40, 40), "uint8")}
archives = {
    "stored": {"file": file_of(np.savez, **arrays), "arrays": {name: told(it) for name, it in arrays.items()}},
    "compressed": {
        "file": file_of(np.savez_compressed, numbers, **arrays),
        "arrays": {**{name: told(it) for name, it in arrays.items()}, "arr_0": told(numbers)},
    },
}
refused = {
    "objects": file_of(np.save, np.array([{}, None], dtype=object), allow_pickle=True),
    "texts": file_of(np.save, np.array(["a", "bc"])),
    "times": file_of(np.save, np.zeros(2, dtype="M8[ns]")),
    "records": file_of(np.save, np.zeros(2, dtype=[("a", "f4"), ("b", "i8")])),
}
OUT.write_text(json.dumps({"arrays": cases, "archives": archives, "refused": refused}, indent=1) + "\n")
