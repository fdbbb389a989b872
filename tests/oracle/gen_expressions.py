"""Makes crates/sym/tests/fixtures: expressions and guards of archives, and random expressions, beside what Python prints.
usage: python gen_expressions.py DIR...      (DIR: folders of programs, searched for model.pt2; torch 2.13.0)"""
import ast, json, pathlib, random, sys, zipfile
import sympy
from torch.utils._sympy.functions import FloorDiv, IntTrueDiv, Max, Min, Mod

OUT = pathlib.Path(__file__).parents[2] / "crates/sym/tests/fixtures"
FUNCTIONS = {it.__name__: it for it in (FloorDiv, IntTrueDiv, Max, Min, Mod)}
FURTHER_GUARDS = [
    "L['a'][0]['k'].size()[1] <= 1024",
    "not (L['n'] == 3 or L['m'] == 4)",
    "2 ** L['n'] <= 1024 and (L['n'] == 2 or L['m'] > -3)",
    "L['x'].size()[0] - (L['y'].size()[0] - 1) == min(L['x'].stride()[0], 4)",
    "(L['n'] + 1) * -2 < L['m'] <= 3",
    "L['flag'] == True",
    "L['x'].storage_offset() % 16 == 0",
    "(-L['n']) ** 2 >= -(L['m'] ** 2)",
]


class InputsByName(ast.NodeTransformer):
    """L['x'] as x, which is how PyTorch shows a guard that failed."""

    def visit_Subscript(self, node):
        self.generic_visit(node)
        is_input = isinstance(node.value, ast.Name) and node.value.id == "L"
        return ast.Name(node.slice.value) if is_input else node


def expr_strs(value):
    if isinstance(value, dict):
        if isinstance(value.get("expr_str"), str):
            yield value["expr_str"]
        for item in value.values():
            yield from expr_strs(item)
    elif isinstance(value, list):
        for item in value:
            yield from expr_strs(item)


def of_archives(roots):
    expressions, guards = set(), set()
    for path in (it for root in roots for it in pathlib.Path(root).rglob("model.pt2")):
        archive = zipfile.ZipFile(path)
        for name in archive.namelist():
            if name.endswith(".json") and ("/models/" in name or "serialized_exported_program" in name):
                program = json.loads(archive.read(name))
                expressions.update(expr_strs(program))
                guards.update(program.get("guards_code") or [])
    return sorted(expressions), sorted(guards)


def written(depth):
    if depth == 0 or random.random() < 0.12:
        return random.choice(["s0", "s1", "s10", "u0", str(random.randint(1, 9))])
    a, b = written(depth - 1), written(depth - 1)
    operator = random.choice(["+", "+", "-", "*", "*", "FloorDiv", "Mod", "Max", "Min", "**"])
    if operator == "FloorDiv":
        return f"FloorDiv({a}, {random.choice([b, str(random.randint(2, 6))])})"
    if operator == "Mod":
        return f"Mod({a}, {random.randint(2, 6)})"
    if operator in ("Max", "Min"):
        return f"{operator}({a}, {b})"
    return f"({a})**2" if operator == "**" else f"({a} {operator} {b})"


def is_comparable(expr):
    """Whether all of it is expanded, as canonical polynomials are, and no divisor of a quotient may be negative: there
    PyTorch's rule (a//b)//c == a//(b*c) does not hold."""
    parts = [it for it in sympy.preorder_traversal(expr)]
    expanded = all(sympy.expand(it) == it for it in parts if it.is_Add or it.is_Mul or it.is_Pow)
    whole = not any(it.is_Rational and not it.is_Integer or it.is_Pow and it.exp.is_negative for it in parts)
    signs = all(it.args[1].is_positive for it in parts if isinstance(it, FloorDiv))
    # PyTorch does not divide s0**2 by s0.
    coprime = all(sympy.gcd(*it.args) == 1 for it in parts if isinstance(it, FloorDiv))
    # PyTorch also factors a Max of several Mins.
    flat = not any(isinstance(it, (Max, Min)) and any(arg.has(Max, Min) for arg in it.args) for it in parts)
    return expanded and whole and signs and coprime and flat and bool(expr.free_symbols)


def random_rows(n):
    random.seed(7)
    sizes = {name: sympy.Symbol(name, positive=True, integer=True) for name in ("s0", "s1", "s10")}
    names = {**FUNCTIONS, **sizes, "u0": sympy.Symbol("u0", integer=True)}
    rows = {}
    while len(rows) < n:
        text = written(random.choice([2, 3, 3, 4]))
        if len(text) > 110:
            continue
        try:
            expr = sympy.sympify(eval(text, {}, names))
        except (ZeroDivisionError, AssertionError):
            continue
        if is_comparable(expr):
            rows[text] = str(expr)
    return rows.items()


def write(name, rows):
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / name).write_text("".join(f"{left}\t{right}\n" for left, right in rows))


expressions, guards = of_archives(sys.argv[1:])
write("expressions.tsv", [(it, sympy.sympify(it, locals=FUNCTIONS)) for it in expressions])
shown = lambda code: ast.unparse(InputsByName().visit(ast.parse(code, mode="eval")))
write("guards.tsv", [(it, shown(it)) for it in guards + FURTHER_GUARDS])
write("sympy.tsv", random_rows(250))
