"""What `x[index]` and `x[index] = value` are in PyTorch.

usage: gen_indexing.py OUT.jsonl
"""
import json, sys
import torch

M = torch.tensor([[True, False, True], [False, True, False]])
T = torch.tensor
E = ...
s = slice

# shape of torch.arange(...), index
GETS = [
    ([2, 3, 4], i) for i in [
        0, -1, (0,), (1, 2), (1, -1, 3), (0, 1, 2), s(0, 1), s(None), s(1, None), s(-1, None), s(0, 100), s(2, 1), (s(None), 1), (s(None), s(1, None), s(0, 4, 2)),
        E, (E, 0), (0, E), (0, E, 1), (E, s(0, 2)), (1, 1, 1, E), None, (None, 0), (0, None), (s(None), None, 1), (E, None), (None, E, None), True, False, (True, 0), (0, False),
        [0], [1, 0], [1, 0, 1], ([0, 1], [1, 2]), ([0, 1], s(None), [2, 3]), (s(None), [0, 2]), (s(None), [0, 2], [1, 3]), (0, [0, 2]), ([0, 1], 0, [1, 2]), ([[0], [1]], [0, 2]),
        (E, [0, 1]), (None, [1]), ([1], None, 0), T([1, 0]), T(1), T(-1), (T([0, 1]), T([1, 1])), (T(0), s(None), T([1, 2])), T([[0, 1]]), T([], dtype=torch.int64), [], T([1, 0], dtype=torch.int32),
        M, (M, 1), (M, s(1, 3)), (M, [0, 1, 2]), (M, None), (M, E), ([True, False],), (s(None), T([True, False, True])), (s(None), [True, False, True], s(0, 2)), (s(None), T([False, False, False])), (0, T([True, True, False]), E),
        T(True), T(False), (T(True), 0), (s(None), M[0], 2), (s(None), s(None), T([True, False, True, True])), torch.ones(2, 3, 4, dtype=torch.bool), T([1, 0], dtype=torch.uint8), (E, True), (0, True, [1, 2]),
        2, -3, (0, 3), (0, 0, 0, 0), (s(None),) * 4, [2], ([0, 1], [0, 1, 2]), (E, E), s(None, None, -1), T([True, False, True]), T(5), (M, 0, 0), T([1.5]), 1.5, "a",
    ]
] + [([], i) for i in [None, E, True, False, T(True), 0, s(None), [0]]] + [([0, 3], i) for i in [s(None), T([], dtype=torch.int64), (s(None), 1), 0, E]] + [([5], i) for i in [s(None, None, 2), s(1, 4, 2), s(-3, -1), T([True] * 5), [4, 0, 4]]]

SETS = [
    ([2, 3], i, v) for i, v in [
        (0, 7), (0, 7.5), ((0, 1), -1), (s(None), 9), (E, 9), ((s(None), 0), T([5, 6])), (0, T([7, 8, 9])), (0, T([[7, 8, 9]])), (0, T([[[1, 2, 3]]])), (None, 3), (M, 5), (M, T([1, 2, 3])), ([0, 1], T([[1, 1, 1], [2, 2, 2]])),
        (([0, 1], [1, 2]), T([8, 9])), ((s(None), [0, 2]), 4), (([1, 1], [0, 0]), T([3, 3])), (T([True, False]), T([5, 5, 5])), (True, 6), (False, 6), (T(True), 2), ((0, M[0]), T([4, 4])), (M, T([[1, 2, 3]])), (s(0, 0), 3),
        (0, T([1, 2])), (M, T([1, 2])), ((0, 3), 1), (0, T([1.5, 2.5, 3.5])), ([0], T([1.5])), ((s(None), s(None, None, 2)), T([[1, 2], [3, 4]])), (1, True),
    ]
]


def part(x):
    if x is E: return "..."
    if x is None or isinstance(x, (bool, int, float)): return x
    if isinstance(x, str): return {"str": x}
    if isinstance(x, slice): return {"slice": [x.start, x.stop, x.step]}
    if isinstance(x, torch.Tensor): return {"tensor": x.tolist(), "dtype": str(x.dtype)[6:]}
    return {"tuple" if isinstance(x, tuple) else "list": [part(it) for it in x] if isinstance(x, tuple) else x}


def base(shape):
    n = 1
    for size in shape: n *= size
    return torch.arange(n).reshape(shape)


with open(sys.argv[1], "w") as out:
    for shape, index in GETS:
        x = base(shape)
        case = {"shape": shape, "index": part(index)}
        try:
            y = x[index]
            case |= {"size": list(y.shape), "values": y.tolist(), "isView": y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() and y.numel() > 0, "stride": list(y.stride())}
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            case["error"] = str(error).split("\n")[0]
        out.write(json.dumps(case) + "\n")
    for shape, index, value in SETS:
        x = base(shape)
        case = {"shape": shape, "index": part(index), "value": part(value)}
        try:
            x[index] = value
            case["after"] = x.tolist()
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            case["error"] = str(error).split("\n")[0]
        out.write(json.dumps(case) + "\n")
