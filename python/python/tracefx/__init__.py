"""torch.fx and torch.export without PyTorch: open, inspect, edit, run, save and verify exported programs.

>>> import tracefx
>>> program = tracefx.load("model.pt2")       # no code of the file is run
>>> print(program.graph)                      # as PyTorch prints it
>>> logits = program.run(image)               # NumPy, PyTorch, whatever has DLPack
>>> print(tracefx.verify(program, image))     # whether it runs in the browser, in one line
"""

from tracefx import errors
from tracefx._tracefx import (
    Constant,
    ExportedProgram,
    Graph,
    GraphSignature,
    InputSpec,
    Module,
    Node,
    OutputSpec,
    Tensor,
    TensorMeta,
    __version__,
    get_num_threads,
    load,
    set_num_threads,
)
from tracefx.errors import FxError
from tracefx.verification import Verification, verify

__all__ = [
    "Constant",
    "ExportedProgram",
    "FxError",
    "Graph",
    "GraphSignature",
    "InputSpec",
    "Module",
    "Node",
    "OutputSpec",
    "Tensor",
    "TensorMeta",
    "Verification",
    "__version__",
    "errors",
    "get_num_threads",
    "load",
    "set_num_threads",
    "verify",
]
