"""What run_decompositions makes of programs by tables with functions: `fixtures/decompositions/tables.json`, lines by program.

`ts/test/export/decompTable.test.ts` has the same programs in TypeScript.

usage: gen_decomp_table.py OUT.json (torch 2.13.0)
"""
import json
import sys
import warnings

import torch
import torch.nn.functional as F
from torch.export import default_decompositions, export

warnings.filterwarnings("ignore")
aten = torch.ops.aten
CASES = {}


def case(fn):
    lines = []
    fn(lambda it: lines.append(str(it)))
    CASES[fn.__name__] = lines


def program(forward, *args):
    M = type("M", (torch.nn.Module,), {"forward": lambda self, x: forward(x)})
    return export(M(), args, strict=False)


def told(say, table, forward, *args):
    ep = program(forward, *args).run_decompositions(table)
    say(ep.graph)
    say(ep.module()(*args))


x = torch.tensor([[-1.0, 0.5, 2.0]])


@case
def one_function(say):
    table = default_decompositions()
    table[aten.silu.default] = lambda x: x * torch.sigmoid(x)
    told(say, table, lambda x: F.silu(x) + 1, x)


@case
def a_function_of_a_composite(say):
    table = default_decompositions()
    table[aten.linear.default] = lambda x, w, b=None: torch.matmul(x, w.t())
    told(say, table, lambda x: F.linear(x, x), x)


@case
def what_comes_of_others(say):
    table = default_decompositions()
    table[aten.addmm.default] = lambda b, x, y: torch.mm(x, y) + b
    told(say, table, lambda x: F.linear(x, x, x[:, :1].reshape(1)), x)


@case
def several_results(say):
    table = default_decompositions()
    table[aten.max.dim] = lambda x, dim: (torch.amax(x, dim), torch.argmax(x, dim))
    told(say, table, lambda x: torch.max(x, 1)[0] + 1, x)


@case
def an_operator_that_stays(say):
    table = default_decompositions()
    del table[aten.linear.default]
    told(say, table, lambda x: F.linear(x, x), x)
    say([aten.linear.default in table, aten.silu.default in table])
    other = table.copy()
    other.pop(aten.silu.default)
    say([aten.silu.default in other, aten.silu.default in table, len(table) - len(other)])
    other.update({aten.silu.default: torch.sigmoid})
    say(other[aten.silu.default] is torch.sigmoid)


with open(sys.argv[1], "w") as file:
    json.dump(CASES, file, indent=1)
    file.write("\n")
print(len(CASES), "programs")
