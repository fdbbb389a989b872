"""The public names of torch.fx and torch.export: what docs/api-coverage.md is counted over.

A line is a kind (`class`, `function`, `method`, `property` or `variable`), the module that defines the name, and the name.
Modules are read, and not run. A name is public where neither it nor its class begins with an underscore; modules with an
underscore count, since torch.fx offers much from such. Left out are loggers, type variables, PyTorch's own tests, and variables
that say whether a package is there.

usage: gen_api.py OUT.tsv
"""
import ast
import sys
from pathlib import Path

import torch

ROOT = Path(torch.__file__).parent
NOT_OFFERED = ("getLogger", "getArtifactLogger", "TypeVar", "ParamSpec", "TypeVarTuple")


def kind_of(function):
    decorators = [ast.unparse(it) for it in function.decorator_list]
    if any(it == "overload" or it.endswith(".overload") for it in decorators): return None
    if any(it.endswith((".setter", ".deleter")) for it in decorators): return None
    return "property" if any("property" in it for it in decorators) else "method"


def variables(statement):
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    made = statement.value.func if isinstance(statement.value, ast.Call) else None
    if made is not None and ast.unparse(made).split(".")[-1] in NOT_OFFERED: return
    for target in targets:
        for it in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(it, ast.Name): yield it.id


def flat(statements, in_branch=False):
    """Statements of a module with those of its branches, which define what needs a package that may not be there (z3)."""
    for it in statements:
        if isinstance(it, (ast.If, ast.Try)):
            yield from flat(it.body, True)
            yield from flat(it.orelse, True)
        elif not (in_branch and isinstance(it, (ast.Assign, ast.AnnAssign))): yield it


def names(tree):
    for it in flat(tree.body):
        if isinstance(it, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if kind_of(it) is not None: yield "function", it.name
        elif isinstance(it, ast.ClassDef):
            yield "class", it.name
            if it.name.startswith("_"): continue
            for member in it.body:
                if not isinstance(member, ast.FunctionDef) or member.name.startswith("_"): continue
                if (kind := kind_of(member)) is not None: yield kind, f"{it.name}.{member.name}"
        elif isinstance(it, (ast.Assign, ast.AnnAssign)):
            for name in variables(it): yield "variable", name


lines = {}
for package in ("fx", "export"):
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "tests" in parts or parts[1:2] == ("examples",): continue
        module = ".".join(("torch", *(parts[:-1] if parts[-1] == "__init__" else parts)))
        for kind, name in names(ast.parse(path.read_text())):
            if not name.startswith("_"): lines.setdefault((module, name), kind)
head = f"# torch {torch.__version__.split('+')[0]}, printed by tests/oracle/gen_api.py\n"
Path(sys.argv[1]).write_text(head + "".join(f"{kind}\t{module}\t{name}\n" for (module, name), kind in lines.items()))
