"""What recorders of lines share: a case is a function that says lines, which are texts of what PyTorch answers."""
import json

from torch import nn
from torch.export import Dim, export

CASES = {}


def text(it):
    if isinstance(it, (tuple, list)): return "[" + ", ".join(text(x) for x in it) + "]"
    return str(it)


def case(fn):
    """Records a case, under the name of its function."""
    lines = []
    fn(lambda it: lines.append(text(it)))
    CASES[fn.__name__] = lines


def message(body):
    """The first line of what a call raises, or that it is taken."""
    try: body()
    except Exception as error: return str(error).strip().split("\n")[0]
    return "taken"


def program(forward, *args, dims=Dim.AUTO):
    """A function of `x` as a program, whose first size is dynamic."""
    M = type("M", (nn.Module,), {"forward": lambda self, x: forward(x)})
    return export(M(), args, dynamic_shapes={"x": {0: dims}} if args[0].dim() > 0 else None, strict=False)


def write(path):
    """Writes what was recorded."""
    with open(path, "w") as file:
        json.dump(CASES, file, indent=1)
        file.write("\n")
    print(len(CASES), "programs")
