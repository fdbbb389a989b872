"""What torch.export.draft_export reports: `fixtures/export/draft.json`, lines by program.

`ts/test/export/draftExport.test.ts` has the same programs in TypeScript. A line is a failure (its type, the expression or operator, the
result), or what the program gives.

usage: gen_draft_export.py OUT.json (torch 2.13.0)
"""
import json
import logging
import sys
import warnings

import torch
import torch.nn as nn
from torch.export import Dim, draft_export

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
CASES = {}


def case(fn):
    lines = []
    fn(lambda it: lines.append(str(it)))
    CASES[fn.__name__] = lines


def told(say, forward, *args, dims=None):
    M = type("M", (nn.Module,), {"forward": lambda self, x: forward(x)})
    ep = draft_export(M(), args, dynamic_shapes=dims)
    say(ep._report.successful())
    for it in ep._report.failures:
        say(f"{it.failure_type} {it.data.get('op') or it.data.get('expr')} {it.data.get('result')} {it.data.get('occurrences')}")
    say(ep.module()(*args))


@case
def nothing(say): told(say, lambda x: x.sin(), torch.ones(2), dims={"x": {0: Dim("n")}})


@case
def decision_on_an_item(say):
    told(say, lambda x: x.float().sin() if x.item() == 3 else x.float().cos(), torch.tensor(3))
    told(say, lambda x: x.float().sin() if x.item() > 3 else x.float().cos(), torch.tensor(3))


@case
def decision_on_a_count(say):
    def forward(x):
        if x.nonzero().shape[0] > 2: return x.sin()
        return x.cos()

    told(say, forward, torch.tensor([1.0, 0.0, 2.0]))


@case
def two_decisions(say):
    def forward(x):
        n = x.item()
        if n > 2:
            if n < 9: return torch.ones(4)
        return torch.zeros(4)

    told(say, forward, torch.tensor(3))


@case
def sizes_that_are_not_so(say):
    told(say, lambda x: x.sin() if x.shape[0] > 2 else x.cos(), torch.ones(4), dims={"x": {0: Dim("n")}})
    told(say, lambda x: x.sin() if x.shape[0] == 4 else x.cos(), torch.ones(4), dims={"x": {0: Dim("n")}})


@case
def no_fake(say):
    torch.library.define("draft_test::f", "(Tensor x) -> Tensor")
    torch.library.impl("draft_test::f", "CPU", lambda x: x + 1)
    told(say, lambda x: torch.ops.draft_test.f(x).sin(), torch.ones(2))


@case
def a_wrong_fake(say):
    torch.library.define("draft_test::g", "(Tensor x) -> Tensor")
    torch.library.impl("draft_test::g", "CPU", lambda x: torch.cat([x, x]))
    torch.library.register_fake("draft_test::g")(lambda x: torch.empty_like(x))
    told(say, lambda x: torch.ops.draft_test.g(x).sin(), torch.ones(2))


with open(sys.argv[1], "w") as file:
    json.dump(CASES, file, indent=1)
    file.write("\n")
print(len(CASES), "programs")
