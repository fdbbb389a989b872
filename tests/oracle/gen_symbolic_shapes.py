"""What functions of torch.fx.experimental.symbolic_shapes decide while a module is exported: `fixtures/shapes/decisions.json`.

`ts/test/export/symbolicShapes.test.ts` has the same programs in TypeScript. Lines are graphs, ranges, answers and first lines of errors.

usage: gen_symbolic_shapes.py OUT.json (torch 2.13.0)
"""
import json
import sys
import warnings

import torch
import torch.nn as nn
from torch.fx.experimental.symbolic_shapes import (
    constrain_range, expect_true, guard_bool, guard_int, guard_or_false, guard_or_true, guard_scalar, has_guarding_hint,
    has_static_value, is_concrete_bool, is_concrete_int, optimization_hint, statically_known_false, statically_known_true, sym_and,
    sym_eq, sym_or, guarding_hint_or_throw,
)

from said import case, message, program, write

warnings.filterwarnings("ignore")


def told(say, forward, *args, **kwargs):
    ep = program(forward, *args, **kwargs)
    say(ep.graph)
    say(sorted(f"{it.lower}..{it.upper}" for it in ep.range_constraints.values()))


@case
def guards_of_sizes(say):
    told(say, lambda x: x.sin() if guard_or_false(x.shape[0] > 2) else x.cos(), torch.ones(4))
    told(say, lambda x: x.sin() if guard_or_true(x.shape[0] < 3) else x.cos(), torch.ones(4))
    told(say, lambda x: x.sin() if guard_bool(x.shape[0] == 4) else x.cos(), torch.ones(4))


@case
def guards_of_data(say):
    told(say, lambda x: x.sin() if guard_or_false(x.item() == 1) else x.cos(), torch.tensor(1))
    told(say, lambda x: x.sin() if guard_or_true(x.item() == 1) else x.cos(), torch.tensor(1))
    say(message(lambda: program(lambda x: x.sin() if guard_bool(x.item() == 1) else x.cos(), torch.tensor(1))))


@case
def what_is_known(say):
    def forward(x):
        n = x.item()
        torch._check(n >= 2)
        say([statically_known_true(n >= 0), statically_known_true(n > 5), statically_known_false(n < 0), statically_known_false(n < 5)])
        say([guard_or_false(n >= 1), guard_or_true(n < 1)])
        say([has_static_value(n), has_static_value(3), has_guarding_hint(n), has_guarding_hint(3)])
        say([is_concrete_int(n), is_concrete_bool(n > 3), is_concrete_bool(True), optimization_hint(4)])
        say(message(lambda: guarding_hint_or_throw(n)))
        return x + n

    told(say, forward, torch.tensor(3))

    def forward(x):
        n = x.shape[0]
        say([has_static_value(n), has_static_value(x.shape[1]), has_guarding_hint(n), optimization_hint(n), guarding_hint_or_throw(n)])
        say([statically_known_true(n == 4), statically_known_true(x.shape[1] == 3)])
        return x + n

    told(say, forward, torch.ones(4, 3))


@case
def conditions(say):
    def forward(x):
        n = x.item()
        torch._check(sym_and(n >= 2, n <= 8))
        torch._check(sym_or(n == 3, n == 5))
        torch._check(sym_eq([n, 3], [n, 3]))
        say([sym_and(True, True), sym_or(False, False), sym_eq([1, 2], [1, 2]), sym_eq([1], [1, 2]), sym_eq((1, 2), [1, 3])])
        return x + n

    told(say, forward, torch.tensor(3))


@case
def specialized(say):
    told(say, lambda x: x * guard_int(x.shape[0]), torch.ones(4))
    told(say, lambda x: x * guard_scalar(x.shape[0] * 2), torch.ones(4))
    say([guard_int(3), guard_scalar(True), guard_bool(False)])
    say(message(lambda: program(lambda x: x * guard_int(x.item()), torch.tensor(3))))


@case
def assumed(say):
    def forward(x):
        n = x.item()
        expect_true(n >= 2)
        expect_true(n <= 9)
        return torch.ones(n)

    told(say, forward, torch.tensor(3))

    def forward(x):
        n = x.item()
        constrain_range(n, min=2, max=7)
        return torch.ones(n)

    told(say, forward, torch.tensor(3))


@case
def dynamism(say):
    from torch.fx.experimental._dynamism import module_to_nested_dict, normalize_source_name, track_dynamism_across_examples

    say(normalize_source_name("L['self'].linear.weight"))
    say(normalize_source_name("L['x']"))
    ones = torch.ones
    say(json.dumps(track_dynamism_across_examples([{"x": ones(2, 3)}, {"x": ones(4, 3)}])))
    say(json.dumps(track_dynamism_across_examples([{"x": [ones(2), {"k": 3}], "n": 4}, {"x": [ones(2), {"k": 5}], "n": 4}])))
    say(json.dumps(track_dynamism_across_examples([{"x": ones(2)}, {"x": ones(2, 3)}])))
    say(json.dumps(track_dynamism_across_examples([{"self": nn.Linear(2, 3), "x": 1.5}, {"self": nn.Linear(4, 3), "x": 2.5}])["x"]))

    class M(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.inner = nn.Module()
            self.inner.weight = nn.Parameter(ones(n))
            self.scale = n

    say(json.dumps(track_dynamism_across_examples([{"self": M(2)}, {"self": M(3)}])))
    found = module_to_nested_dict(M(2))
    say(sorted(found)); say(sorted(found["_modules"]["inner"]["_parameters"])); say(found["scale"])


write(sys.argv[1])
