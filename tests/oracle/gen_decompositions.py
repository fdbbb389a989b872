"""Which operators of ATen PyTorch takes apart by default, one overload a line.

Those are the keys of torch.export.default_decompositions(), and operators that the dispatcher itself makes of others
(CompositeImplicitAutograd): the table leaves such of them out as may give an argument or a view of it, since none of
these can be kept whole. Operators in place and those with `out` are left out: a program is functional before the table is
asked. So are questions about sizes and dtypes: they are answered
without data and leave no node, or stay.

usage: gen_decompositions.py OUT.txt
"""
import sys

import torch
from torch.export.decomp_utils import PRESERVED_ATEN_CIA_OPS

table = torch.export.default_decompositions()
table.materialize()


def overloads():
    names = {it.name for it in torch._C._jit_get_all_schemas() if it.name.startswith("aten::")}
    for packet in (getattr(torch.ops.aten, it[6:], None) for it in names):
        if isinstance(packet, torch._ops.OpOverloadPacket):
            yield from (getattr(packet, it) for it in packet.overloads())


def is_composite(op):
    # TorchScript has operators that the dispatcher does not know.
    name, has_kernel = op.name(), torch._C._dispatch_has_kernel_for_dispatch_key
    return torch._C._dispatch_has_kernel(name) and has_kernel(name, "CompositeImplicitAutograd")


def is_answered_without_data(op):
    gives_tensors = any("Tensor" in str(it.type) for it in op._schema.returns)
    return not gives_tensors and torch.Tag.data_dependent_output not in op.tags


def is_taken_apart(op):
    return op in table or is_composite(op) and op not in PRESERVED_ATEN_CIA_OPS


with open(sys.argv[1], "w") as out:
    for op in sorted(overloads(), key=str):
        if is_taken_apart(op) and not op._schema.is_mutable and not is_answered_without_data(op):
            out.write(f"{op}\n")
