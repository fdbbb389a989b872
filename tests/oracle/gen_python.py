"""Evaluates calls of Python's operator, math and builtins, and of operators on tensors.

usage: python tests/oracle/gen_python.py

Each line of python/calls.jsonl is {"target", "args", "kwargs"?} and {"result"} or {"error"}, and {"after"}, the first
argument after a call that changes it. Values are those of gen_functional.py, with {"complex": [re, im]}, {"dict": …},
{"slice": […]}, {"int": digits} for large ints and {"ellipsis": true}.
"""
import builtins, json, math, operator, pathlib

import torch

from gen_functional import encode as encode_tensor

out = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "python"
cases = []


def encode(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else {"int": str(value)}
    if isinstance(value, complex):
        return {"complex": [encode(value.real), encode(value.imag)]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(it)] for key, it in value.items()]}
    if isinstance(value, slice):
        return {"slice": [encode(value.start), encode(value.stop), encode(value.step)]}
    if value is ...:
        return {"ellipsis": True}
    if isinstance(value, torch.Size):
        return {"tuple": list(value)}
    if isinstance(value, tuple):
        return {"tuple": [encode(it) for it in value]}
    if isinstance(value, (list, range, zip, enumerate)) or type(value).__name__ == "list_reverseiterator":
        return [encode(it) for it in value]
    return encode_tensor(value)


def call(target, *args, **kwargs):
    module, name = target.split(".")
    fn = getattr({"operator": operator, "math": math, "builtins": builtins}[module], name)
    case = {"target": target, "args": [encode(it) for it in args]}
    if kwargs:
        case["kwargs"] = {key: encode(it) for key, it in kwargs.items()}
    try:
        case["result"] = encode(fn(*args, **kwargs))
        if args and encode(args[0]) != case["args"][0]:
            case["after"] = encode(args[0])
    except Exception as error:
        case["error"] = {"type": type(error).__name__, "message": str(error)}
    cases.append(case)


big = 2**70 + 3
numbers = [0, -7, 2, 0.5, -7.5, 2.0, -0.0, -math.inf, math.nan, True, big, 3 + 4j]
binary = "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor eq ne lt le gt ge".split()
for name in binary:
    for left in numbers:
        for right in numbers:
            if name in ("pow", "lshift") and right == big:
                continue
            call(f"operator.{name}", left, right)
for name in "neg pos abs invert inv not_ truth index".split():
    for it in [*numbers, "", "a", [], [0], (), (1,), {}, {"a": 1}, None]:
        call(f"operator.{name}", it)
sequences = [[1], [1, 2.0], (1,), (1, "b"), "", "äb", None, 2, 1.5, {"a": 1}]
for name in "add mul eq ne lt ge concat contains mod or_ sub".split():
    for left in sequences:
        for right in sequences:
            call(f"operator.{name}", left, right)
for name in "iadd imul ior isub imod iand itruediv ifloordiv ipow ilshift irshift ixor".split():
    for left, right in [([1], [2]), ([1], 2), ((1,), (2,)), ({"a": 1}, {"b": 2}), (6, 4), (6.5, 2), ("a", "b"), ([1], (2,))]:
        call(f"operator.{name}", left.copy() if isinstance(left, (list, dict)) else left, right)
for container in ([10, 11, 12, 13, 14], (10, 11, 12), "abcde", {"a": 1, "b": [2]}, 5, None):
    for key in (0, -1, 4, 5, -6, True, 1.0, "a", "z", None, slice(None), slice(1, 3), slice(None, None, -1), slice(-2, None), slice(4, 0, -2), slice(0, 10, 2), slice(3, 1), slice(None, None, 0)):
        call("operator.getitem", container, key)
for container, key, value in [([1, 2, 3], 1, 9), ([1, 2, 3], -1, 9), ([1, 2, 3], 3, 9), ((1,), 0, 9), ({"a": 1}, "b", 2), ([1, 2, 3, 4], slice(1, 3), [7, 8, 9]), ([1, 2, 3, 4], slice(None, None, 2), [7, 8]), ([1, 2, 3, 4], slice(None, None, 2), [7]), ("abc", 0, "d"), (3, 0, 1)]:
    call("operator.setitem", container, key, value)
for container, key in [([1, 2, 3], 1), ([1, 2, 3, 4], slice(None, None, 2)), ([1], 1), ((1,), 0), ({"a": 1, "b": 2}, "a"), ({"a": 1}, "z"), (3, 0)]:
    call("operator.delitem", container, key)
for left, right in [("%d items", 3), ("%5.2f|%-6s|%+d", (1.005, "ab", 7)), ("%x %X %o %#x", (255, 255, 8, 255)), ("%e %g %g %g", (12345.678, 0.00001234, 1e20, 100.0)), ("%s %r", ("a", "a")), ("%05d %05.1f", (42, -1.25)), ("%(a)s-%(b)03d", {"a": "x", "b": 7}), ("100%%", ()), ("%s", ((1, 2),)), ("%d", "x"), ("%s %s", "a"), ("a", 1), ("%s", [1, 2.0, None, "q"]), ("%.3s", "abcdef"), ("%c%c", (65, "b")), ("%q", 1), ("%(a)s", 3), ("%*d", (6, 42)), ("%G", 1e-10), ("%.0f", 2.5), ("%f", 1e22), ("%s", math.inf), ("%s", 1.0), ("%i", 3.9)]:
    call("operator.mod", left, right)
t, m, i = torch.tensor([[1.5, -2.0], [0.25, 4.0]]), torch.tensor([[True, False], [False, True]]), torch.tensor([[7, -7], [2, 5]])
for name in binary:
    for tensor in (t, i, m):
        for other in (2, 2.5, True, tensor, torch.tensor([1, 2])):
            if name in ("lshift", "rshift", "and_", "or_", "xor") and (tensor is t or isinstance(other, float)):
                continue
            call(f"operator.{name}", tensor, other)
            call(f"operator.{name}", other, tensor)
for name in "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift".split():
    tensor = i if name in ("iand", "ior", "ixor", "ilshift", "irshift") else t
    call(f"operator.{name}", tensor.clone(), 2)
    call(f"operator.{name}", tensor.clone(), tensor)
    call(f"operator.{name}", tensor.clone(), "a")
call("operator.iadd", 2, t)
call("operator.iadd", i.clone(), 1.5)
for left, right in [(t, t), (t, torch.tensor([1.0, 2.0])), (t, 2), (2, t), (t, torch.tensor([1.0, 2.0, 3.0]))]:
    call("operator.matmul", left, right)
    call("operator.imatmul", left, right)
for name in "neg pos abs invert not_ truth index".split():
    for tensor in (t, i, m, torch.tensor(3), torch.tensor(0.0), torch.tensor([]), torch.tensor([2])):
        call(f"operator.{name}", tensor)
x = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
for key in (0, -1, (0, 1), (slice(None), 1), (..., 0), (None, 0), slice(1, None), [0, 1], (slice(None), [2, 0]), torch.tensor([1]), x > 11, (0, slice(None, None, 2), slice(1, 3)), True, 5, (0, 0, 0, 0), (slice(None), None, ..., None)):
    call("operator.getitem", x, key)
    call("operator.setitem", x.clone(), key, 100)
call("operator.setitem", x.clone(), (0, 1), torch.tensor([1.0, 2.0, 3.0, 4.0]))
call("operator.setitem", x.clone(), 0, torch.zeros(5))
for other in (t, 1, None, "a", (1.5,)):
    call("operator.eq", t, other)
    call("operator.ne", other, t)
call("operator.contains", t, 1.5)
call("operator.contains", t, 9)
call("operator.contains", [t], 3)
for name in "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh fabs degrees radians erf erfc lgamma floor ceil trunc isnan isinf isfinite".split():
    for it in (0, 1, -1, 0.5, 2.0, 4, -2.5, 1e-10, 100, 1000, math.inf, -math.inf, math.nan, True, "a", 1j, torch.tensor(2.0), torch.tensor([1.0, 2.0])):
        # The integer functions take tensors here, which Python's do not.
        if not (isinstance(it, torch.Tensor) and name in ("floor", "ceil", "trunc")):
            call(f"math.{name}", it)
    if name in ("log", "log2", "log10", "floor", "isfinite"):
        call(f"math.{name}", 10**400)
for name in "pow atan2 fmod copysign".split():
    for a, b in [(2, 3), (2.5, -1), (0, 0), (0.0, -1.0), (-8, 1 / 3), (-1, math.inf), (1, math.nan), (-0.0, 1.0), (7, -3), (math.inf, 1), (1e300, 2)]:
        call(f"math.{name}", a, b)
for args in [(8, 2), (100, 10), (2.0, 0.5), (5, 1), (0, 2), (2, -1)]:
    call("math.log", *args)
for args in [(), (12,), (12, 18), (12, 18, -8), (0, 0), (1.5, 2), (0, 5)]:
    call("math.gcd", *args)
    call("math.lcm", *args)
for n in (0, 1, 15, 16, 17, 10**40, 2**2000 + 1, -1, 2.0):
    call("math.isqrt", n)
call("math.hypot", 3, 4)
call("math.hypot")
call("math.prod", [2, 3, 4])
call("math.prod", [2, 0.5], start=3)
call("math.prod", [])
for items in ([3, 1, 2], (2.5, 1), [], "hello", [True, 2], [[1], [0, 5]], torch.tensor([3.0, 1.0]), torch.tensor(1.0), 5, {"b": 1, "a": 2}):
    for name in "len sum max min any all list tuple sorted reversed enumerate".split():
        if isinstance(items, torch.Tensor) and name in ("sorted", "reversed", "list", "tuple", "enumerate") or name == "reversed" and not isinstance(items, list):
            continue
        call(f"builtins.{name}", items)
call("builtins.sum", [[1], [2]], [0])
call("builtins.sum", [1, 2.5], 3)
for args in [(1, 2), (2.0, 1), ("a", "b"), (1, "a"), (torch.tensor(1), torch.tensor(2)), (3, 3.0), ()]:
    call("builtins.max", *args)
    call("builtins.min", *args)
call("builtins.max", [], default=7)
for it in (0.5, 1.5, 2.5, -0.5, 2.675, 1e300, math.nan, math.inf, 7, -3, True, "a", torch.tensor([0.5, 1.5, 2.6])):
    call("builtins.round", it)
for it, digits in [(2.675, 2), (0.125, 2), (0.375, 2), (1234.5678, -2), (1250.0, -2), (1350, -2), (-1250, -2), (15, -1), (25, -1), (1e22, -22), (0.1, 20), (1.5, 0), (-2.5, 0), (5e-324, 3), (12345, -10), (99.5, -1), (95.0, -1), (85.00001, -1), (2.5, None), (7, 3)]:
    call("builtins.round", it, digits)
for it in (3.9, -3.9, 7, True, "42", " -0b1", "1_000", "x", math.inf, math.nan, torch.tensor(3.7), torch.tensor([1, 2]), None, 1j, 1e30):
    call("builtins.int", it)
    call("builtins.float", it)
    call("builtins.bool", it) if not (isinstance(it, torch.Tensor) and it.numel() > 1) else None
for args in [("ff", 16), ("101", 2), ("9", 8), ("z", 36)]:
    call("builtins.int", *args)
for it in ("1e5", "-inf", "NaN", ".5", "1.", "1e", "", "1_0.5"):
    call("builtins.float", it)
for args in [(1, 2), (1,), (1.5, -2.0), (1j, 1j)]:
    call("builtins.complex", *args)
for it in (1, 1.0, -0.0, 1e-5, 1e16, "a'b", None, True, [1, "a"], (1,), {"a": [1.0]}, 1j, slice(1, None), torch.float32, ..., torch.tensor([1.0, 2.0])):
    call("builtins.str", it)
    call("builtins.repr", it)
for args in [(5,), (1, 5), (5, 1, -2), (1, 5, 0), (0,), (1.5,)]:
    call("builtins.range", *args)
for args in [(7, 2), (-7, 2), (7.5, -2), (1, 0)]:
    call("builtins.divmod", *args)
for args in [(2, 10), (2, 10, 1000), (2, -1), (2.0, 3)]:
    call("builtins.pow", *args)
call("builtins.zip", [1, 2, 3], ("a", "b"))
call("builtins.zip")
call("builtins.dict", [("a", 1), ("b", 2)])
call("builtins.abs", -3)
call("builtins.abs", t)
for name in "shape dtype device ndim T mT H mH real requires_grad layout itemsize nbytes nothing".split():
    if name not in ("device", "layout"):
        call("builtins.getattr", t, name)
call("builtins.getattr", t, "nothing", 5)
call("builtins.getattr", 1j, "imag")
call("builtins.getattr", torch.float32, "is_floating_point")
call("builtins.hasattr", t, "shape")
call("builtins.hasattr", t, "nothing")

out.mkdir(parents=True, exist_ok=True)
(out / "calls.jsonl").write_text("\n".join(json.dumps(it, separators=(",", ":"), ensure_ascii=False) for it in cases) + "\n")
(out / "meta.json").write_text(json.dumps({"torch": torch.__version__.split("+")[0]}) + "\n")
print(len(cases), "calls,", sum("error" in it for it in cases), "errors")
