"""Writes the overloads that torch.fx looks at when it normalizes a call, and what it makes of calls.

    python tests/oracle/gen_normalization.py schemas > crates/rewrite/src/normalize/schemas.txt
    python tests/oracle/gen_normalization.py calls > tests/fixtures/normalize/calls.jsonl
    python tests/oracle/gen_normalization.py types > tests/fixtures/normalize/types.json

torch.fx binds a call against every overload that TorchScript knows, in its order: also those on Python's numbers and
lists, and those that write to `out=`, of which no operator of the registry is made. Which operators the registry has is
read from `bindings/schemas.ts`. A line of `schemas.txt` is `NAMES: OVERLOAD | OVERLOAD …`; the names are those of
operators, or of Python functions (`math.ceil`, `torch.nonzero`) for which there is no operator of that name. An overload
is one of those below; a function without any is left alone.

    Tensor               one of the registry
    out=Tensor+out       the overload `out`, which has the parameters of `Tensor`, and `out` by keyword
    int(int a, int b)    any other; types are without what they alias

With `out=`, a tensor's dtype, layout, device and pinning are not given. An operator that has no line has the overloads of
the registry, in their order.

A line of `calls.jsonl` has functions, by the place where they are, and calls of which torch.fx says the same for all of
them. A call is `[args, kwargs, answers]`: `$x` is a node, `{"float": …}` a float. The answers are those of
0 normalize_function without types, 1 with the types of the arguments (a node is a tensor), 2 NormalizeArgs where no node
has a type, 3 NormalizeArgs where the node has the type of a tensor; a single answer is the answer of all. An answer is
the names of the parameters in their order, `name=default` of one that was not given; null where the call is left alone,
`ambiguous`, or the class of the error. With positional arguments kept (normalize_to_only_use_kwargs=False) the answer is
the same but for the first of them standing by position, of which this script makes sure.

`types.json` says of each type that a parameter of the registry's operators has which types of arguments match it.
"""

import builtins
import collections
import inspect
import json
import math
import operator
import re
import sys
import types
import warnings

import torch
import torch.nn.functional as F
from torch._jit_internal import boolean_dispatched
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.normalize import NormalizeArgs
from torch.fx.node import map_aggregate, _get_qualified_name
from torch.fx.operator_schemas import create_type_hint, get_signature_for_torch_op, normalize_function, type_matches
from torch.jit._builtins import _find_builtin

warnings.filterwarnings("ignore")

# Where a tensor's place and kind are told; with `out=` it is there already.
OPTIONS = ("dtype", "layout", "device", "pin_memory")


def registry():
    """The overloads of the registry by operator, in its order."""
    text = re.search(r"SCHEMAS = `\n(.*?)\n`", open("bindings/schemas.ts").read(), re.S)[1]
    known = {}
    for line in re.split(r"\n(?! )", text):
        name, overload = re.match(r"(\w+)(?:\.(\w+))?\(", line).groups()
        known.setdefault(name, []).append(overload or "default")
    return known


def schemas_of(name):
    return torch._C._jit_get_schemas_for_operator(f"aten::{name}")


def overload_of(schema):
    return schema.overload_name or "default"


def python_functions():
    """The functions that are called otherwise than their operators, by qualified name, with the operator."""
    named = ((f"math.{name}", _find_builtin(it)) for name, it in vars(math).items() if isinstance(it, types.BuiltinFunctionType))
    res = {name: it.removeprefix("aten::") for name, it in named if it is not None}
    for name in registry():
        function = getattr(torch, name, None)
        if isinstance(function, types.BuiltinFunctionType) and _get_qualified_name(function) != f"torch.{name}":
            res[_get_qualified_name(function)] = name
    return res


def parameters(schema, is_out=False):
    shape = [(it.name, it.type.annotation_str, it.kwarg_only, repr(it.default_value) if it.has_default_value() else None) for it in schema.arguments if not it.is_out]
    names = [it[0] for it in shape]
    if is_out and "layout" in names:
        shape = [it for it in shape if it[0] not in OPTIONS]
    return shape


def text_of(schema):
    name, rest = re.match(r"(.*?)\((.*)\) ->", str(schema).removeprefix("aten::")).groups()
    rest = re.sub(r"\([a-z]!?(\|[a-z])*( -> \*)?\)", "", rest)
    # No argument has a type that matches these.
    rest = re.sub(r"Dict\(\w+, \w+\)|\bAnyEnumType\b|\bt\b(?=[ \[])", "Any", rest)
    # Where there are any number of arguments, none of them is a parameter.
    rest = rest.removesuffix(", ...")
    return f"{overload_of(schema)}({rest})"


def items(name, known):
    """The overloads of an operator as a line says them."""
    schemas = schemas_of(name)
    res = []
    for schema in schemas:
        out = [it.name for it in schema.arguments if it.is_out]
        bases = [it for it in schemas if parameters(it, True) == parameters(schema) and not any(arg.is_out for arg in it.arguments) and overload_of(it) in known]
        assert out == [it.name for it in schema.arguments][len(schema.arguments) - len(out):], schema
        if overload_of(schema) in known:
            res.append(overload_of(schema))
        elif out and bases:
            written = [it.name + ("[]" if str(it.type).startswith("List") else "") for it in schema.arguments if it.is_out]
            res.append(f"{overload_of(schema)}={overload_of(bases[0])}+{','.join(written)}")
        else:
            res.append(text_of(schema))
    return tuple(res)


def has_any(function):
    """Whether a function whose flag decides between two takes any arguments in both."""
    sides = boolean_dispatched[function]
    return all(str(inspect.signature(sides[it])) == "(*args, **kwargs)" for it in ("if_true", "if_false"))


def write_schemas():
    known = registry()
    lines = collections.defaultdict(list)
    for name, overloads in known.items():
        line = items(name, overloads)
        if list(line) != overloads:
            lines[line].append(name)
    for name, of in python_functions().items():
        # Whose name is another one takes nothing over from the registry.
        lines[items(of, known.get(of, []) if name.endswith(f".{of}") else [])].append(name)
    # Its own signatures are not given out, so it is left alone.
    assert get_signature_for_torch_op(torch.nonzero) is None
    lines[()].append("torch.nonzero")
    for name, it in vars(torch.functional).items():
        # A flag decides between two functions of any arguments.
        if inspect.isfunction(it) and it in boolean_dispatched and has_any(it):
            lines[()].append(_get_qualified_name(it))
    for line, names in sorted(lines.items(), key=lambda it: min(it[1])):
        print(f"{' '.join(sorted(names))}: {' | '.join(line)}".rstrip())


def functions():
    """The functions that can be in a graph, by qualified name."""
    known = registry()
    res = {}
    for module in (torch, torch._C._nn, torch._C._linalg, torch._C._fft, torch._C._special):
        for name, it in vars(module).items():
            if isinstance(it, types.BuiltinFunctionType) and name in known and _find_builtin(it):
                res[_get_qualified_name(it)] = it
    for name in known:
        packet = getattr(torch.ops.aten, name)
        res[f"torch.ops.aten.{name}"] = packet
        for overload in packet.overloads():
            schema = getattr(packet, overload)._schema
            if overload not in known[name] and not any(it.is_out for it in schema.arguments):
                res[f"torch.ops.aten.{name}.{overload}"] = getattr(packet, overload)
    for module in (F, torch.functional):
        for name, it in vars(module).items():
            if inspect.isfunction(it) and not name.startswith("_") and name not in ("boolean_dispatch", "overload") and it.__module__ in (module.__name__, "torch._jit_internal"):
                res[_get_qualified_name(it)] = it
    for module in (operator, math):
        for name, it in vars(module).items():
            if isinstance(it, types.BuiltinFunctionType) and not name.startswith("_"):
                # Python keeps its own operators in `_operator`.
                res[f"{module.__name__}.{name}"] = it
    for name in ("getattr", "len", "round", "abs", "divmod", "max", "min", "pow", "sum"):
        res[f"builtins.{name}"] = getattr(builtins, name)
    return res


class Calls:
    """Calls of one function, with nodes of one graph as tensors."""

    def __init__(self):
        self.graph = Graph()
        self.nodes = [self.graph.placeholder(name) for name in "xyzuvw"]

    def sample(self, ty, at, is_alternative):
        """An argument for a parameter of this type."""
        ty = ty.removeprefix("Optional[").removesuffix("]") if ty.startswith("Optional[") else ty
        node = self.nodes[at % len(self.nodes)]
        if ty.startswith("List["):
            item = self.sample(ty[5:-1], at, False)
            if is_alternative and ty == "List[int]":
                return 2
            return [item, True] if is_alternative and ty[5:-1] == "number" else [item, item]
        if is_alternative and ty in ("int", "number"):
            return {"int": True, "number": 0.5}[ty]
        return {"Tensor": node, "int": 1, "float": 0.5, "bool": True, "number": 2, "str": "sum", "Device": torch.device("cpu"), "complex": 1j}.get(ty)

    def of_schema(self, schema):
        """Ways to call an overload: what is needed, and all, by position and by keyword."""
        args = list(schema.arguments)
        values = [self.sample(it.type.annotation_str, at, False) for at, it in enumerate(args)]
        others = [self.sample(it.type.annotation_str, at, True) for at, it in enumerate(args)]
        names = ["input" if it.name == "self" else it.name for it in args]
        n_positional = sum(not it.kwarg_only for it in args)
        needed = [at for at, it in enumerate(args) if not it.has_default_value()]
        first = sum(at < n_positional for at in needed)
        by_name = {names[at]: values[at] for at in needed if at >= n_positional}
        yield tuple(values[:first]), by_name
        yield (), {names[at]: values[at] for at in needed}
        yield tuple(others[:n_positional]), by_name
        yield tuple(values[:1]), {names[at]: values[at] for at in needed if at > 0}

    def of_signature(self, signature):
        names = [it.name for it in signature.parameters.values() if it.kind in (it.POSITIONAL_OR_KEYWORD, it.KEYWORD_ONLY)]
        needed = [it.name for it in signature.parameters.values() if it.default is it.empty and it.name in names]
        values = {name: self.nodes[at % len(self.nodes)] for at, name in enumerate(names)}
        yield tuple(values[it] for it in needed), {}
        yield (), {it: values[it] for it in needed}
        yield (self.nodes[0],), {"nothing": 1}


def type_of(value):
    return torch.Tensor if isinstance(value, Node) else type(value)


def answer(body, args, kwargs):
    """What a call becomes, as text."""
    try:
        res = body(True)
        kept = body(False)
    except RuntimeError as error:
        assert "ambiguous" in str(error), error
        return "ambiguous"
    except TypeError as error:
        return type(error).__name__
    if res is None:
        assert kept is None
        return None
    new_args, new_kwargs = res
    assert new_args == ()
    values = list(new_kwargs.items())
    assert list(kept[0]) == [it for _, it in values[: len(args)]] and list(kept[1].items()) == values[len(args):], (args, kwargs, kept)
    parts = []
    for at, (name, value) in enumerate(values):
        if at < len(args):
            assert value is args[at] or value == args[at]
            parts.append(name)
        elif name in kwargs:
            assert value is kwargs[name] or value == kwargs[name]
            parts.append(name)
        else:
            parts.append(f"{name}={json.dumps(encode(value), separators=(',', ':'))}")
    return ";".join(parts)


def of_pass(function, args, kwargs, has_type):
    graph = Graph()
    known = {}

    def own(node):
        if node not in known:
            known[node] = graph.placeholder(node.name)
        return known[node]

    own_args, own_kwargs = (torch.fx.node.map_arg(it, own) for it in (args, kwargs))
    node = graph.call_function(function, own_args, own_kwargs)
    if has_type:
        node.meta["type"] = torch.Tensor
    graph.output(node)
    module = GraphModule(torch.nn.Module(), graph)
    back = {it.name: key for key, it in known.items()}

    def body(only_kwargs):
        out = NormalizeArgs(module, only_kwargs).transform()
        found = next(it for it in out.graph.nodes if it.op == "call_function")
        found_args, found_kwargs = (torch.fx.node.map_arg(it, lambda node: back[node.name]) for it in (found.args, found.kwargs))
        is_same = len(found_args) == len(args) and list(found_kwargs.items()) == list(kwargs.items())
        seen[only_kwargs] = is_same
        return found_args, found_kwargs

    seen = {}
    try:
        first = body(True)
        body(False)
    except TypeError as error:
        return type(error).__name__
    # A call that needs nothing is the same normalized and left alone.
    if seen[True] and (args or all(seen.values())):
        return None
    del first
    return answer(body, args, kwargs)


def encode(value):
    if isinstance(value, Node):
        return f"${value.name}"
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, tuple):
        return {"tuple": [encode(it) for it in value]}
    if isinstance(value, list):
        return [encode(it) for it in value]
    raise ValueError(value)


def record(function, calls):
    seen = {}
    for args, kwargs in calls:
        key = json.dumps([encode(list(args)), {name: encode(it) for name, it in kwargs.items()}])
        if key in seen:
            continue
        arg_types = tuple(create_type_hint(it) for it in map_aggregate(args, type_of))
        kwarg_types = {name: create_type_hint(map_aggregate(it, type_of)) for name, it in kwargs.items()}
        answers = [
            answer(lambda only: normalize_function(function, args, kwargs, normalize_to_only_use_kwargs=only), args, kwargs),
            answer(lambda only: normalize_function(function, args, kwargs, arg_types, kwarg_types, only), args, kwargs),
            of_pass(function, args, kwargs, False),
            of_pass(function, args, kwargs, True),
        ]
        seen[key] = answers[:1] if all(it == answers[0] for it in answers) else answers
    return [[*json.loads(key), answers] for key, answers in seen.items()]


def calls_of(function):
    made = Calls()
    x = made.nodes[0]
    if isinstance(function, types.FunctionType):
        try:
            dispatched = boolean_dispatched.get(function)
            signature = inspect.signature(dispatched["if_true"] if dispatched else function)
        except ValueError:
            return []
        return list(made.of_signature(signature))
    if isinstance(function, torch._ops.OpOverload):
        schemas = [function._schema]
    elif isinstance(function, torch._ops.OpOverloadPacket):
        schemas = [it._schema for it in function.op_overloads()]
    else:
        _, schemas = get_signature_for_torch_op(function, return_schemas=True)
    if not schemas:
        return [((x, 1), {}), ((1, 2), {})]
    if isinstance(function, torch._ops.OpOverload):
        return list(made.of_schema(schemas[0]))[:1]
    # The first overload in every way, the others once.
    first, *rest = schemas
    return list(made.of_schema(first)) + [it for schema in rest for it in list(made.of_schema(schema))[:1]]


def write_calls():
    lines = collections.defaultdict(list)
    for name, function in functions().items():
        calls = record(function, calls_of(function))
        if calls:
            lines[json.dumps(calls, separators=(",", ":"))].append(name)
    for calls, names in sorted(lines.items(), key=lambda it: min(it[1])):
        places = collections.defaultdict(list)
        for name in sorted(names):
            # Of an overload the operator's name goes with it.
            place, own = re.match(r"(torch\.ops\.aten|.*(?=\.))\.(.*)", name).groups()
            places[place].append(own)
        print(json.dumps({"functions": places, "calls": json.loads(calls)}, separators=(",", ":")))


def write_types():
    arguments = {"Tensor": torch.Tensor, "int": int, "float": float, "bool": bool, "complex": complex, "str": str, "None": type(None)}
    lists = {f"{name}[]": list[it] for name, it in arguments.items()} | {f"tuple[{name}]": tuple[it, ...] for name, it in arguments.items()}
    arguments |= {"dtype": torch.dtype, "device": torch.device, "layout": torch.layout, "memory_format": torch.memory_format}
    arguments |= lists
    res = {}
    for name in registry():
        for schema in schemas_of(name):
            annotations = get_signature_for_torch_op(getattr(getattr(torch.ops.aten, name), overload_of(schema)))[0].parameters.values()
            for argument, it in zip(schema.arguments, annotations):
                written = re.search(rf"(?:^|, |\()([^,(]*) {argument.name}(?=[,=)])", re.sub(r"\([a-z]!?( -> \*)?\)", "", str(schema)))[1]
                if not written.startswith(("Dict", "AnyEnum", "t")):
                    res[written] = [name for name, ty in arguments.items() if type_matches(it.annotation, ty)]
    print("{" + ",\n".join(f"{json.dumps(ty)}: {json.dumps(res[ty])}" for ty in sorted(res)) + "}")


if __name__ == "__main__":
    # Of graphs only the nodes are asked; a call with the keyword `from` has no code in Python.
    GraphModule.recompile = lambda self: None
    {"schemas": write_schemas, "calls": write_calls, "types": write_types}[sys.argv[1]]()
