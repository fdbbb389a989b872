"""Records what PyTorch's verifiers say of programs that were broken in one place.

usage: python tests/oracle/gen_verifier.py

Writes tests/fixtures/exported/verifier.json: a program of tests/fixtures/programs, the edits, and the message. The edits are the ones
of `EDITS`, which crates/pt2/tests/it/verifier.rs makes, too.
"""
import copy, json, operator, pathlib, re

import torch
from torch._export.verifier import load_verifier
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, SymIntArgument, TensorArgument

ROOT = pathlib.Path(__file__).resolve().parent.parent / "fixtures"


def node(ep, name):
    return next(it for it in ep.graph.nodes if it.name == name)


def set_output(ep, edit):
    out = list(ep.graph.nodes)[-1]
    items = list(out.args[0])
    edit(items)
    out.args = (tuple(items),)


def call(ep, target, *args):
    out = list(ep.graph.nodes)[-1]
    with ep.graph.inserting_before(out):
        return ep.graph.call_function(target, args)


FUNCTIONS = {
    "operator.getitem": operator.getitem,
    "operator.concat": operator.concat,
    "torch.ops.aten.relu_.default": torch.ops.aten.relu_.default,
    "torch.ops.aten.relu.default": torch.ops.aten.relu.default,
}

EDITS = {
    "drop_input": lambda ep, at: ep.graph_signature.input_specs.pop(at),
    "rename_input": lambda ep, at, name: setattr(ep.graph_signature.input_specs[at].arg, "name", name),
    "input_kind": lambda ep, at, kind: setattr(ep.graph_signature.input_specs[at], "kind", InputKind[kind]),
    "input_target": lambda ep, at, target: setattr(ep.graph_signature.input_specs[at], "target", target),
    "input_sym_int": lambda ep, at: setattr(
        ep.graph_signature.input_specs[at], "arg", SymIntArgument(ep.graph_signature.input_specs[at].arg.name)
    ),
    "persistent": lambda ep, at, flag: setattr(ep.graph_signature.input_specs[at], "persistent", flag),
    "drop_state": lambda ep, name: ep.state_dict.pop(name),
    "drop_constant": lambda ep, name: ep.constants.pop(name),
    "not_parameter": lambda ep, name: ep.state_dict.__setitem__(name, ep.state_dict[name].detach()),
    "drop_output": lambda ep, at: ep.graph_signature.output_specs.pop(at),
    "output_kind": lambda ep, at, kind: setattr(ep.graph_signature.output_specs[at], "kind", OutputKind[kind]),
    "output_target": lambda ep, at, target: setattr(ep.graph_signature.output_specs[at], "target", target),
    "rename_output": lambda ep, at, name: setattr(ep.graph_signature.output_specs[at].arg, "name", name),
    "swap_results": lambda ep, a, b: set_output(ep, lambda it: it.__setitem__(slice(None), swapped(it, a, b))),
    "constant_result": lambda ep, at, value: set_output(ep, lambda it: it.__setitem__(at, value)),
    "constant_output": lambda ep, at, value: setattr(
        ep.graph_signature.output_specs[at], "arg", ConstantArgument("", value)
    ),
    "dialect": lambda ep, name: setattr(ep, "_verifiers", [load_verifier(name)]),
    "call": lambda ep, target, arg: call(ep, FUNCTIONS[target], node(ep, arg)).meta.update(val=node(ep, arg).meta["val"]),
    "call_without_val": lambda ep, target, arg: call(ep, FUNCTIONS[target], node(ep, arg)),
    "call_method": lambda ep, target, arg: _method(ep, target, arg),
    "drop_val": lambda ep, name: node(ep, name).meta.pop("val"),
    "call_entry": lambda ep, side, name: getattr(ep.module_call_graph[0].signature, side).append(TensorArgument(name)),
}


def _method(ep, target, arg):
    out = list(ep.graph.nodes)[-1]
    with ep.graph.inserting_before(out):
        ep.graph.call_method(target, (node(ep, arg),))


def swapped(items, a, b):
    items = list(items)
    items[a], items[b] = items[b], items[a]
    return items


BN = "conv_bn_relu_train__core"
MUTATION = "input_mutation__core"
CONSTANT = "view_alias_mutation"


def cases():
    ep = load(BN)
    specs = ep.graph_signature.input_specs
    param = next(i for i, s in enumerate(specs) if s.kind == InputKind.PARAMETER)
    buffer = next(i for i, s in enumerate(specs) if s.kind == InputKind.BUFFER)
    user = next(i for i, s in enumerate(specs) if s.kind == InputKind.USER_INPUT)
    outs = ep.graph_signature.output_specs
    mutated = next(i for i, s in enumerate(outs) if s.kind == OutputKind.BUFFER_MUTATION)
    result = next(i for i, s in enumerate(outs) if s.kind == OutputKind.USER_OUTPUT)
    a_call = next(n for n in ep.graph.nodes if n.op == "call_function").name
    for edit in [
        ["drop_input", param],
        ["rename_input", param, "elsewhere"],
        ["input_sym_int", param],
        ["input_target", param, None],
        ["drop_state", specs[param].target],
        ["not_parameter", specs[param].target],
        ["input_sym_int", buffer],
        ["input_target", buffer, None],
        ["persistent", buffer, None],
        ["persistent", buffer, False],
        ["drop_state", specs[buffer].target],
        ["input_kind", param, "CONSTANT_TENSOR"],
        ["input_kind", param, "CUSTOM_OBJ"],
        ["input_kind", param, "TOKEN"],
        ["drop_output", result],
        ["output_target", mutated, "nowhere"],
        ["rename_output", mutated, "elsewhere"],
        ["output_kind", mutated, "PARAMETER_MUTATION"],
        ["output_kind", mutated, "USER_INPUT_MUTATION"],
        ["rename_output", result, "elsewhere"],
        ["swap_results", mutated, result],
        ["constant_result", result, 3],
        ["constant_output", result, None],
        ["call_entry", "inputs", "nowhere"],
        ["call_entry", "outputs", "nowhere"],
        ["call", "torch.ops.aten.relu_.default", a_call],
        ["call", "operator.concat", a_call],
        ["call_without_val", "torch.ops.aten.relu.default", a_call],
        ["call_method", "relu", a_call],
        ["drop_val", specs[user].arg.name],
        ["drop_val", a_call],
    ]:
        yield BN, [edit]
    yield BN, [["dialect", "TRAINING"], ["call", "torch.ops.aten.relu_.default", a_call]]
    ep = load(MUTATION)
    mutated = next(i for i, s in enumerate(ep.graph_signature.output_specs) if s.kind == OutputKind.USER_INPUT_MUTATION)
    yield MUTATION, [["output_target", mutated, "nowhere"]]
    ep = load("linalg_ops__core")
    yield "linalg_ops__core", []
    yield "conv_bn_relu_train", [["dialect", "ATEN"]]
    yield "conv_bn_relu_train", [["dialect", "TRAINING"]]


def load(name):
    return torch.export.load(ROOT / "programs" / name / "model.pt2")


def main():
    recorded = []
    for program, edits in cases():
        ep = load(program)
        for name, *args in edits:
            EDITS[name](ep, *args)
        try:
            ep.validate()
            error = None
        except Exception as problem:
            error = {"type": type(problem).__name__, "message": str(problem)}
        recorded.append({"program": program, "edits": edits, "error": error})
    out = ROOT / "exported" / "verifier.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text("[\n" + ",\n".join(json.dumps(it) for it in recorded) + "\n]\n")
    print(len(recorded), "cases")


main()
