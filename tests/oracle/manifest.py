"""Lists every fixture with its origin in tests/fixtures/MANIFEST.json. usage: python tests/oracle/manifest.py"""
import hashlib, json, pathlib

root = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
SOURCES = {
    "programs": "tests/oracle/gen_fixtures.py",
    "programs-compat": "tests/oracle/gen_compat.py",
    "graphs": "tests/oracle/gen_graph_cases.py",
    "tensors": "tests/oracle/gen_tensor_cases.py",
    "functional": "tests/oracle/gen_functional.py",
    "python": "tests/oracle/gen_python.py",
    "opcases": "tests/oracle/gen_opcases.py",
    "overloads": "tests/oracle/gen_overloads.py",
    "indexing": "tests/oracle/gen_indexing.py",
    "normalize": "tests/oracle/gen_normalization.py",
    "copied": "tests/oracle/gen_copied.py",
    "opcalls": "tests/oracle/gen_opcalls.py",
    "numbers": "tests/oracle/gen_numbers.py",
    "number-limits": "tests/oracle/gen_number_limits.py",
    "degenerate": "tests/oracle/gen_degenerate.py",
    "strides": "tests/oracle/gen_strides.py",
    "out": "tests/oracle/gen_out.py",
    "gradients": "tests/oracle/gen_gradients.py",
    "transforms": "tests/oracle/gen_transforms.py",
    "second-gradients": "tests/oracle/gen_second_gradients.py",
    "joint": "tests/oracle/gen_joint.py",
    "dtypes": "tests/oracle/gen_dtypes.py",
    "autocast": "tests/oracle/gen_autocast_results.py",
    "modules": "tests/oracle/gen_modules.py",
    "api": "tests/oracle/gen_api.py",
    "fx": "tests/oracle/gen_fx_common.py",
    "ported": "tests/oracle/gen_ported.py",
    "make-fx": "tests/oracle/gen_make_fx.py",
    "operator-schemas": "tests/oracle/gen_operator_schemas.py",
    "checkpoints": "tests/oracle/gen_checkpoints.py",
    "models": "tests/oracle/gen_resnet.py",
    "small-models": "tests/oracle/gen_models.py",
    "decompositions": "tests/oracle/gen_decompositions.py",
    "files": "tests/oracle/gen_files.py",
    "extensions": "tests/oracle/gen_extensions.py",
    "float8": "tests/oracle/gen_float8.py",
    "types": "tests/oracle/gen_types.py",
    "passes": "tests/oracle/gen_runtime_asserts.py",
    "devices": "tests/oracle/gen_devices.py",
    "splitter": "tests/oracle/gen_boundary.py",
    "sources": "tests/oracle/gen_sources.py",
    "shapes": "tests/oracle/gen_dynamic_shapes.py",
    "export": "tests/oracle/gen_export.py",
    "exported": "tests/oracle/gen_verifier.py",
    "unflattened": "tests/oracle/gen_unflattened.py",
    "retraced": "tests/oracle/gen_retraced.py",
    "explorer": "tests/oracle/gen_int8.py",
}


def torch_version(path):
    # The newest of the files of some scripts were recorded on their own.
    if (path.parent.name, path.stem) in (("opcalls", "mixed"), ("gradients", "more"), ("gradients", "differentiable"), ("shapes", "decisions")):
        return "2.13.0+cu130"
    if path.parent.name in (
        "opcases", "decompositions", "float8", "export", "files", "extensions", "numbers", "retraced", "degenerate",
        "normalize", "number-limits", "strides", "copied", "api", "fx", "operator-schemas", "ported", "make-fx",
        "transforms", "explorer", "second-gradients",
    ):
        return "2.13.0+cu130"
    if path.parent.name in (
        "overloads", "indexing", "opcalls", "out", "dtypes", "gradients", "modules", "models", "checkpoints",
        "types", "passes", "devices", "splitter", "sources", "shapes", "autocast",
    ):
        return "2.15.0+cu132"
    meta = path.parent / "meta.json"
    return json.loads(meta.read_text()).get("torch") if meta.exists() else None


fixtures = {}
for path in sorted(p for kind in SOURCES for p in (root / kind).rglob("*") if p.is_file()):
    name = path.relative_to(root).as_posix()
    is_loaded = path.name == "loaded.txt"
    script = {"loaded.txt": "gen_loaded.py", "npy.json": "gen_npy.py"}.get(path.name)
    fixtures[name] = {
        "source": SOURCES[name.split("/")[0]] if script is None else f"tests/oracle/{script}",
        "torch": "2.15.0" if is_loaded else None if script == "gen_npy.py" else torch_version(path),
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
# Fixtures of other kinds keep their entries.
manifest = root / "MANIFEST.json"
old = json.loads(manifest.read_text()) if manifest.exists() else {}
kept = {name: it for name, it in old.items() if name.split("/")[0] not in SOURCES}
manifest.write_text(json.dumps(dict(sorted({**kept, **fixtures}.items())), indent=1) + "\n")
