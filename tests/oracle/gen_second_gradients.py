"""Second gradients where formulas choose, meet zeros or leave what they are defined for: `fixtures/second-gradients/cases.jsonl`.

Each line is a call of an operator on float64, the gradients of its result times 1, 2, 3… (`weights`: times these), and the gradients of
the sum of those times 1, 1.5, 2…. What has no gradient in PyTorch has zeros here. Numbers that are not finite are texts.

usage: gen_second_gradients.py OUT.jsonl (torch 2.13.0)
"""
import json
import math
import sys

import torch

INF = math.inf
aten = torch.ops.aten


def column(*numbers): return torch.tensor(numbers, dtype=torch.float64)


CASES = [
    (aten.pow.Tensor_Tensor, [column(0, 0, 0, 0, 2, -1, 0), column(0, 1, 2, 3, 0, 2, -1)]),
    *((aten.pow.Tensor_Scalar, [column(0, 1, -2), exponent]) for exponent in (0, 1, 2, 3, 1.5, 0.5, -1)),
    *((aten.pow.Scalar, [base, column(0, 1, 2)]) for base in (0.0, 2.0)),
    (aten.sinc.default, [column(0, 0.5, 1, -0.25)]),
    *((aten.cumprod.default, [it, 0]) for it in (column(2, 0, 3, 4), column(2, 0, 0, 4), column(1, 2, 3), column(0, 0, 0))),
    (aten.cumprod.default, [column([1, 0, 3], [2, 0, 0], [1, 2, 3]), 1]),
    *((aten.prod.default, [it]) for it in (column(1, 2, 3), column(1, 0, 3), column(0, 2, 0), column(0, 0, 0), column(5))),
    (aten.prod.dim_int, [column([1, 0, 3], [2, 0, 0], [1, 2, 3]), 1]),
    (aten.xlogy.Tensor, [column(0, 0, 1, 2), column(0, 1, 2, 0.5)]),
    (aten.xlogy.Scalar_Other, [column(0, 1), 2.0]),
    (aten.xlogy.Scalar_Self, [0.0, column(0, 1)]),
    (aten.special_xlog1py.default, [column(0, 0, 1), column(0, -1, 2)]),
    *((aten.linalg_vector_norm.default, [column(0, 0), order]) for order in (1, 2, 3, 1.5, INF, 0)),
    *((aten.linalg_vector_norm.default, [column(0, -1, 2), order]) for order in (0.5, 1, 1.5, 2, 3, INF, -INF)),
    (aten.linalg_vector_norm.default, [column([0, 0], [3, 4]), 2, [1]]),
    (aten.norm.Scalar, [column(0, 0)]),
    (aten.norm.ScalarOpt_dim, [column([0, 0], [3, 4]), 2, [1]]),
    (aten.dist.default, [column(0, 1), column(0, 1)]),
    (aten.sqrt.default, [column(0, 4)]),
    (aten.sqrt.default, [column(0, 4)], column(0, 0)),
    (aten.rsqrt.default, [column(0, 4)]),
    (aten.abs.default, [column(0, -2)]),
    (aten.hypot.default, [column(0, 3), column(0, 4)]),
    (aten.atan2.default, [column(0, 3), column(0, 4)]),
    (aten.logsumexp.default, [column(-INF, 1), [0]]),
    (aten.amax.default, [column(1, 1, 0), [0]]),
    (aten.maximum.default, [column(1, 2), column(1, 3)]),
    (aten.relu.default, [column(0, 3)]),
    (aten.elu.default, [column(0, -0.25)]),
    (aten.celu.default, [column(0, -0.25)]),
    (aten.softplus.default, [column(0, 30)]),
    (aten.i0.default, [column(0, 1)]),
    (aten.special_i1.default, [column(0, 1)]),
    (aten.special_i0e.default, [column(0, 1)]),
    (aten.special_i1e.default, [column(0, 1)]),
    (aten.special_entr.default, [column(0, 1)]),
    (aten.std.correction, [column(1, 1), [0]]),
    (aten.var.correction, [column(1, 1), [0]]),
    (aten.cosine_similarity.default, [column(0, 0), column(0, 1), 0]),
    (aten._pack_padded_sequence.default, [column([[0], [1]], [[2], [3]], [[4], [5]]), torch.tensor([3, 2]), False]),
    (aten._pad_packed_sequence.default, [column([0], [1], [2], [3], [4]), torch.tensor([2, 2, 1]), False, 0.0, 3]),
]


def dense(grad, like): return torch.zeros_like(like) if grad is None else grad.detach() + torch.zeros_like(like)


def gradients(of, tensors):
    if not of.requires_grad: return [torch.zeros_like(it) for it in tensors]
    return torch.autograd.grad(of, tensors, create_graph=True, allow_unused=True)


def numbers(size, first, step): return (torch.arange(math.prod(size), dtype=torch.float64) * step + first).reshape(size)


def told(op, args, weights=None):
    args = [it.clone().requires_grad_() if isinstance(it, torch.Tensor) and it.is_floating_point() else it for it in args]
    wanted = [it for it in args if isinstance(it, torch.Tensor) and it.is_floating_point()]
    result = op(*args)
    result = result[0] if isinstance(result, tuple) else result
    given = numbers(result.shape, 1, 1) if weights is None else weights
    first = gradients((result * given).sum(), wanted)
    parts = [it for it in first if it is not None and it.requires_grad]
    total = sum(((it * numbers(it.shape, 1, 0.5)).sum() for it in parts), torch.zeros(()))
    second = gradients(total, wanted)
    row = {"op": str(op), "args": [encode(it) for it in args], "first": [encode(dense(a, b)) for a, b in zip(first, wanted)]}
    row["second"] = [encode(dense(a, b)) for a, b in zip(second, wanted)]
    return {**row, **({} if weights is None else {"weights": encode(weights)})}


def encode(it):
    if isinstance(it, torch.Tensor):
        return {"size": list(it.shape), "data": [encode(x) for x in it.detach().flatten().tolist()], "dtype": str(it.dtype)[6:]}
    if isinstance(it, list): return [encode(x) for x in it]
    return str(it) if isinstance(it, float) and not math.isfinite(it) else it


lines = [json.dumps(told(*it)) for it in CASES]
with open(sys.argv[1], "w") as file:
    file.write("\n".join(lines) + "\n")
print(len(lines))
