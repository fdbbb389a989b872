"""To which dtype PyTorch's autocast of the CPU casts the arguments of each operator: crates/ops/src/core/autocast.txt.

Which operators it knows is asked of the dispatcher; the two short lists are those of aten/src/ATen/autocast_mode.cpp.

usage: gen_autocast.py OUT.txt
"""
import sys

import torch

LOW = set(
    "_addmm_activation _convolution _native_multi_head_attention addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc "
    "conv_transpose1d conv_transpose2d conv_transpose3d linalg_vecdot linear matmul mkldnn_rnn_layer mm prelu "
    "scaled_dot_product_attention".split()
)
WIDEST = {"cat", "index_copy", "stack"}

names = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCPU")
with open(sys.argv[1], "w") as out:
    for name in sorted(it.removeprefix("aten::") for it in names if it.startswith("aten::")):
        packet, _, overload = name.partition(".")
        how = "low" if packet in LOW else "widest" if packet in WIDEST else "float32"
        out.write(f"aten.{packet}.{overload or 'default'} {how}\n")
