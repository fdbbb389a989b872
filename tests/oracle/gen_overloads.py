"""Which overload PyTorch's Python functions choose, and what they say when none fits.

Each case is a call by the name of a packet, with the overload that reaches the dispatcher first, or the error of the
argument parser. Tensors are given as dtype and sizes, methods are marked, because only they take sizes one by one.

usage: gen_overloads.py OUT.jsonl
"""
import json, sys, warnings
warnings.filterwarnings("ignore")
import torch
from torch.fx.experimental.proxy_tensor import make_fx

X, I, B, S, SI = torch.ones(2, 3), torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 3, dtype=torch.bool), torch.tensor(2.0), torch.tensor(1)
W, Q = torch.ones(2, 3, 4, 5), torch.ones(3, 3)
f = torch.float64

# name, arguments, keyword arguments; a name that begins with a dot is a method of the first argument.
CALLS = [
    ("add", [X, X]), ("add", [X, 1]), ("add", [X, 1.5]), ("add", [X, True]), ("add", [X, S]), ("add", [X, X], {"alpha": 2}),
    ("add", [X, "a"]), ("add", [X, None]), ("add", [X, X, X, X]), ("add", [X, X], {"beta": 1}), ("add", [X], {"other": 1}),
    ("add", [X, X], {"other": X}), ("add", [], {"input": X, "other": X}), ("add", [], {"x1": X, "x2": X}), (".add_", [X, 1]), ("sub", [X, 2]), ("mul", [X, 2]),
    ("div", [X, 2]), ("div", [X, X], {"rounding_mode": "floor"}), ("div", [X, 2], {"rounding_mode": None}), ("floor_divide", [X, 2]), ("true_divide", [X, 2]),
    ("eq", [X, 1]), ("eq", [X, X]), ("eq", [X, S]), ("ne", [X, 0.5]), ("lt", [X, True]), ("ge", [X, X]), (".eq_", [X, 1]),
    ("pow", [X, 2]), ("pow", [X, X]), ("pow", [2, X]), ("pow", [2, 3]), ("pow", [X, S]), ("float_power", [X, 2]), ("float_power", [2, X]),
    ("remainder", [X, 2]), ("remainder", [X, X]), ("remainder", [2, X]), ("fmod", [X, 2]), ("fmod", [X, X]), ("copysign", [X, 1.0]), ("copysign", [X, X]),
    ("bitwise_and", [I, 1]), ("bitwise_and", [I, I]), ("bitwise_and", [1, I]), ("bitwise_left_shift", [I, 1]), ("bitwise_left_shift", [1, I]),
    ("maximum", [X, X]), ("maximum", [X, 1]), ("max", [X]), ("max", [X, 1]), ("max", [X, X]), ("max", [X, 1, True]), ("max", [X], {"dim": 0, "keepdim": True}),
    ("max", [X], {"axis": 0}), ("max", [X, "a"]), ("min", [X, SI]), ("median", [X]), ("median", [X, 0]), ("mode", [X]), ("argmax", [X]), ("argmax", [X, 1]),
    ("sum", [X]), ("sum", [X, 1]), ("sum", [X, [0, 1]]), ("sum", [X], {"dtype": f}), ("sum", [X, 0], {"keepdim": True, "dtype": f}), ("sum", [X], {"axis": 0}),
    ("sum", [X], {"axis": 0, "keepdims": True}), ("sum", [X, True]), ("sum", [X, 1.0]), ("sum", [X], {"foo": 1}), ("sum", [1]), ("sum", []),
    ("mean", [X]), ("mean", [X, [0]]), ("mean", [X, 1], {"keepdim": True}), ("prod", [X]), ("prod", [X, 1]), ("any", [B]), ("any", [B, 1]), ("any", [B, [0, 1]]), ("all", [B]), ("all", [B, 0]),
    ("std", [X]), ("std", [X, True]), ("std", [X, 1]), ("std", [X, [0, 1]], {"correction": 0}), ("std", [X, 1, False]), ("var", [X], {"unbiased": False}), ("var_mean", [X, 1]),
    ("clamp", [X, 0, 1]), ("clamp", [X], {"min": 0}), ("clamp", [X, X, X]), ("clamp", [X], {"max": X}), ("clamp", [X, 0.5, None]), ("clamp", [X, S, S]), ("clamp", [X, X, 1]),
    ("clamp_min", [X, 0]), ("clamp_min", [X, X]), ("where", [B, X, X]), ("where", [B, 1, X]), ("where", [B, X, 1.0]), ("where", [B, 1, 2]), ("where", [B, X, "a"]),
    ("masked_fill", [X, B, 1]), ("masked_fill", [X, B, S]), (".fill_", [X, 1]), (".fill_", [X, S]), ("lerp", [X, X, 0.5]), ("lerp", [X, X, X]), ("addcmul", [X, X, X]), ("addcmul", [X, X, X], {"value": 2}),
    ("squeeze", [X]), ("squeeze", [X, 0]), ("squeeze", [X, [0, 1]]), ("unsqueeze", [X, 0]), ("unsqueeze", [X, 1.5]), ("unsqueeze", [X]), ("flatten", [W, 1]), ("flatten", [W]),
    ("transpose", [X, 0, 1]), ("t", [X]), (".t", [X]), (".view", [X, 3, 2]), (".view", [X, [3, 2]]), (".view", [X, -1]), (".view", [X, torch.int32]),
    (".reshape", [X, 3, 2]), (".reshape", [X, [6]]), ("reshape", [X, [6]]), (".permute", [X, 1, 0]), (".permute", [X, [1, 0]]), ("permute", [X, [1, 0]]), (".expand", [X, 4, 2, 3]), (".expand", [X, [4, 2, 3]]),
    (".repeat", [X, 2, 2]), (".tile", [X, 2, 2]), (".flip", [X, 0, 1]), ("flip", [X, [0]]), ("roll", [X, 1]), ("roll", [X, 1, 0]), ("roll", [X, [1, 1], [0, 1]]), ("movedim", [X, 0, 1]), ("movedim", [X, [0], [1]]),
    ("chunk", [X, 2, 1]), ("split_with_sizes", [X, [1, 2], 1]), ("tensor_split", [X, 2]), ("tensor_split", [X, [1], 1]), ("unbind", [X]), ("unbind", [X, 1]), ("select", [X, 0, 1]), ("narrow", [X, 1, 0, 2]), ("narrow", [X, 1, SI, 2]),
    ("cat", [[X, X]]), ("cat", [[X, X], 1]), ("cat", [[X, X]], {"dim": 1}), ("cat", [X]), ("stack", [[X, X]]), ("index_select", [X, 0, torch.tensor([0])]), ("gather", [X, 1, I]),
    (".scatter", [X, 1, I, X]), (".scatter", [X, 1, I, 1.0]), (".scatter", [X, 1, I, 1.0], {"reduce": "add"}), ("index_fill", [X, 0, torch.tensor([0]), 1]), ("index_fill", [X, 0, torch.tensor([0]), S]),
    ("full", [[2, 3], 1]), ("full", [[2], 1.5], {"dtype": f}), ("zeros", [2, 3]), ("zeros", [[2, 3]]), ("zeros", [2], {"dtype": f}), ("ones", [3]), ("arange", [3]), ("arange", [1, 3]), ("arange", [1, 3, 2]), ("arange", [0.5]), ("eye", [3]), ("eye", [3, 2]),
    ("linspace", [0, 1, 3]), ("linspace", [S, 1, 3]), ("zeros_like", [X]), ("full_like", [X, 2]), (".new_zeros", [X, 2, 3]), (".new_zeros", [X, [2, 3]]), (".new_full", [X, [2], 1]),
    ("softmax", [X, 1]), ("softmax", [X, 1], {"dtype": f}), ("softmax", [X]), ("cumsum", [X, 0]), ("sort", [X]), ("sort", [X, 0, True]), ("sort", [X], {"stable": True}), ("topk", [X, 2]), ("kthvalue", [X, 1]),
    ("round", [X]), ("round", [X], {"decimals": 2}), ("relu", [X]), ("relu", [1]), ("relu", []), ("relu", [X, X]), ("relu", [X], {"foo": 1}), ("relu", [X], {"input": X}), ("abs", ["a"]),
    ("mm", [X, Q]), ("matmul", [X, Q]), ("addmm", [X, X, Q]), ("addmm", [X, X, Q], {"beta": 2, "alpha": 0.5}), ("dot", [X, "a"]), ("conv2d", [W, torch.ones(3, 3, 1, 1)]), ("conv2d", [W, torch.ones(3, 3, 1, 1), None, 1, "same"]), ("conv2d", [W, torch.ones(3, 3, 1, 1), None, [1, 1], 0]),
    ("max_pool2d", [W, 2]), ("max_pool2d", [W, [2, 2], 1]), ("layer_norm", [X, [3]]), ("layer_norm", [X, 3]), ("dropout", [X, 0.5, False]), ("isclose", [X, X]), ("bucketize", [X, torch.arange(3)]), ("bucketize", [1, torch.arange(3)]),
    ("searchsorted", [torch.arange(3), 1]), ("repeat_interleave", [X, 2]), ("repeat_interleave", [torch.tensor([1, 2])]), ("repeat_interleave", [X, torch.tensor([1, 2]), 0]), (".type_as", [X, I]),
    ("index_add", [X, 0, torch.tensor([0, 1]), X]), ("diagonal", [X]), ("tril", [X]), ("tril", [X, 1]), ("meshgrid", [[torch.arange(2), torch.arange(3)]]), ("einsum", ["ij->ji", [X]]), (".copy_", [X, 1]), (".copy_", [X, I]), (".unflatten", [X, 1, [3, 1]]),
]


def encode(x):
    if isinstance(x, torch.Tensor):
        res = {"dtype": str(x.dtype)[6:], "size": list(x.shape)}
        return {"tensor": {**res, "item": encode(x.item())} if x.ndim == 0 else res}
    if isinstance(x, torch.dtype): return {"dtype": str(x)[6:]}
    if isinstance(x, (list, tuple)): return [encode(it) for it in x]
    if isinstance(x, float): return {"float": x}
    return x


def overload(function, args, kwargs):
    places = [i for i, it in enumerate(args) if isinstance(it, torch.Tensor)]
    def run(*tensors):
        full = list(args)
        for place, it in zip(places, tensors): full[place] = it
        return function(*full, **kwargs)
    graph = make_fx(run, pre_dispatch=True)(*[args[i].clone() for i in places]).graph
    return next((str(n.target) for n in graph.nodes if n.op == "call_function"), None)


def case(name, args, kwargs=None):
    kwargs = kwargs or {}
    function = getattr(torch.Tensor if name[0] == "." else torch, name.lstrip("."))
    res = {"name": f"aten.{name.lstrip('.')}", "args": encode(args), "kwargs": {k: encode(v) for k, v in kwargs.items()}}
    try:
        function(*[it.clone() if isinstance(it, torch.Tensor) else it for it in args], **kwargs)
    except TypeError as error:
        text = str(error).split("\n")[0]
        # A signature that is left alone is printed on the same line.
        return {**res, "error": text.split(", but expected")[0]}
    except RuntimeError as error:
        sys.exit(f"{name}: the arguments should fit the operator: {error}")
    try:
        found = overload(function, args, kwargs)
    except Exception as error:
        print("skipped:", name, type(error).__name__, str(error).split("\n")[0], file=sys.stderr)
        return None
    return {**res, "overload": found} if found and found.startswith("aten.") else print("no overload:", name, found, file=sys.stderr)


with open(sys.argv[1], "w") as out:
    for it in CALLS:
        found = case(*it)
        if found: out.write(json.dumps(found) + "\n")
