"""Records which files PyTorch's loader refuses, of recorded archives that were changed in one place.

usage: python tests/oracle/gen_files.py

Writes tests/fixtures/files:
- `fields.jsonl`: for each field of the JSON documents, at its first place in the archives of `PROGRAMS`, a letter for each of
  `VALUES` that it was replaced by (the last letter: the field was left out): `a` accepted, `r` refused, `-` nothing was changed.
- `arguments.jsonl`: edits of the arguments of one call, and the call as PyTorch loads it, or its error.
- `entries.jsonl`: edits of the entries of the zip file, and the verdict.

crates/pt2/tests/it/hostile/files.rs makes the same edits.
"""
import copy, io, json, pathlib, typing, warnings, zipfile

import torch
from torch._export.serde import schema

ROOT = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
PROGRAMS = [
    "cond_simple", "tied_and_views", "dyn_derived__core", "outputs_misc", "symint_inputs", "unbacked_item", "nested_io",
    "input_mutation__core", "while_loop_hop",
]
DOCUMENTS = [
    "models/model.json", "data/weights/model_weights_config.json", "data/constants/model_constants_config.json",
]
VALUES = [None, True, 0, 7, -1, 2**62, 2**63, 1.5, "text", "7", [], {}, [7]]
LEFT_OUT = object()

FIELDS = {
    name
    for cls in vars(schema).values()
    if isinstance(cls, type)
    for name in typing.get_type_hints(cls, include_extras=True)
} | {"config"}


def read(name):
    with zipfile.ZipFile(ROOT / "programs" / name / "model.pt2") as archive:
        return [(it.filename, archive.read(it)) for it in archive.infolist()]


def write(entries):
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        warnings.simplefilter("ignore")  # names that are there twice
        for name, data in entries:
            archive.writestr(name, data)
    out.seek(0)
    return out


def load(entries):
    """The program, or the exception of PyTorch's loader."""
    try:
        return torch.export.load(write(entries))
    except Exception as error:
        while error.__cause__ is not None:
            error = error.__cause__
        return error


def with_document(entries, document, value):
    return [(name, json.dumps(value) if name.endswith(document) else data) for name, data in entries]


def places(value, at=(), kind=()):
    yield at, "/".join(kind)
    if isinstance(value, dict):
        for key, it in value.items():
            yield from places(it, (*at, key), (*kind, key if key in FIELDS else "*"))
    elif isinstance(value, list):
        for key, it in enumerate(value):
            yield from places(it, (*at, key), (*kind, "*"))


def changed(document, at, value):
    document = copy.deepcopy(document)
    if not at:
        return document if value is LEFT_OUT else value
    owner = document
    for key in at[:-1]:
        owner = owner[key]
    if value is LEFT_OUT:
        del owner[at[-1]]
    else:
        owner[at[-1]] = value
    return document


def fields():
    seen = set()
    for name in PROGRAMS:
        entries = read(name)
        for document in DOCUMENTS:
            text = next((data for entry, data in entries if entry.endswith(document)), None)
            if text is None:
                continue
            original = json.loads(text)
            for at, kind in places(original):
                # A sub-graph has the fields of the graph.
                short = kind.rsplit("as_graph/graph/", 1)[-1] if "as_graph/graph/" in kind else kind
                short = short.removeprefix("graph_module/graph/")
                if (document, short) in seen:
                    continue
                seen.add((document, short))
                verdicts = ""
                for value in [*VALUES, LEFT_OUT]:
                    new = changed(original, at, value)
                    if json.dumps(new) == json.dumps(original):
                        verdicts += "-"
                        continue
                    loaded = load(with_document(entries, document, new))
                    verdicts += "r" if isinstance(loaded, Exception) else "a"
                pointer = "".join("/" + str(it).replace("~", "~0").replace("/", "~1") for it in at)
                yield {"program": name, "document": document, "at": pointer, "verdicts": verdicts}


def arguments():
    """Edits of the inputs of a call: `order` of those that are there, then by position `name`, `kind`; `drop`."""
    calls = [
        ("python_names", "torch.ops.aten.sub.Tensor"),
        ("python_names", "torch.ops.aten.add.Tensor"),
        ("outputs_misc", "torch.ops.aten.max.dim"),
        ("linalg_ops__core", "torch.ops.aten.permute.default"),
        ("digits_cnn", "torch.ops.aten.conv2d.default"),
        ("digits_cnn", "torch.ops.aten.linear.default"),
        ("digits_cnn", "torch.ops.aten.max_pool2d.default"),
        ("conv_bn_relu_train", "torch.ops.aten.batch_norm.default"),
        ("while_loop_hop", "torch.ops.higher_order.while_loop"),
        ("symint_inputs", "_operator.add"),
        ("symint_inputs", "_operator.mul"),
    ]
    for program, target in calls:
        entries = read(program)
        original = json.loads(next(data for name, data in entries if name.endswith(DOCUMENTS[0])))
        nodes = original["graph_module"]["graph"]["nodes"]
        at = next((at for at, it in enumerate(nodes) if it["target"] == target), None)
        if at is None:
            print(f"{program} has no {target}")
            continue
        n = len(nodes[at]["inputs"])
        edits = [{"order": list(reversed(range(n)))}]
        edits += [{"name": [i, name]} for i in range(n) for name in ("nobody", "", nodes[at]["inputs"][n - 1 - i]["name"])]
        edits += [{"kind": [i, kind]} for i in range(n) for kind in (0, 1, 2)]
        edits += [{"drop": i} for i in range(n)]
        edits += [{"kind": [0, 2], "order": list(reversed(range(n)))}]
        for edit in edits:
            document = copy.deepcopy(original)
            inputs = document["graph_module"]["graph"]["nodes"][at]["inputs"]
            for key in ("name", "kind"):
                if key in edit:
                    inputs[edit[key][0]][key] = edit[key][1]
            if "order" in edit:
                inputs[:] = [inputs[i] for i in edit["order"]]
            if "drop" in edit:
                del inputs[edit["drop"]]
            loaded = load(with_document(entries, DOCUMENTS[0], document))
            row = {"program": program, "target": target, **edit}
            if isinstance(loaded, Exception):
                row["error"] = type(loaded).__name__
            else:
                node = next(
                    it for it in loaded.graph.nodes
                    if it.op == "call_function" and it._pretty_print_target(it.target) in (target, target.replace("_operator", "operator"))
                )
                row["call"] = node.format_node()
            yield row


def entries():
    """Edits of the entries: `truncate`, `extend`, `duplicate`, `respell`, `remove`, `empty`."""
    for program in ("tied_and_views", "cond_simple"):
        original = read(program)
        for at, (name, data) in enumerate(original):
            upper = "/".join([*name.split("/")[:-1], name.split("/")[-1].upper()])
            edits = {
                "shorter by 1": [*original[:at], (name, data[:-1]), *original[at + 1:]],
                "longer by 1": [*original[:at], (name, data + b"\0"), *original[at + 1:]],
                "longer by 4": [*original[:at], (name, data + b"\0" * 4), *original[at + 1:]],
                "empty": [*original[:at], (name, b""), *original[at + 1:]],
                "twice": [*original, (name, data)],
                "twice in another case": [*original, (upper, data)],
                "in another case": [*original[:at], (upper, data), *original[at + 1:]],
                "left out": [*original[:at], *original[at + 1:]],
            }
            for edit, changed_entries in edits.items():
                if edit == "shorter by 1" and not data:
                    continue
                loaded = load(changed_entries)
                verdict = {"error": type(loaded).__name__} if isinstance(loaded, Exception) else {"accepted": True}
                yield {"program": program, "entry": name, "edit": edit, **verdict}


def main():
    folder = ROOT / "files"
    folder.mkdir(exist_ok=True)
    for kind in (arguments, entries, fields):
        text = "".join(json.dumps(row) + "\n" for row in kind())
        (folder / f"{kind.__name__}.jsonl").write_text(text)
        print(kind.__name__, text.count("\n"))


main()
