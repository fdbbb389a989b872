"""Records calls of operators that libraries register beside PyTorch's own: torchao's and transformers'.

usage: python tests/oracle/gen_extensions.py

Writes tests/fixtures/extensions/calls.jsonl. Tensors stand in it as `{"dtype", "size", "data"}`. It needs torchao 0.18.0 and the
files of transformers 5.24.0, of which no module is imported.
"""
import ast, importlib.util, json, pathlib

import torch
import torchao.quantization.quant_primitives  # registers the operators

ROOT = pathlib.Path(__file__).resolve().parent.parent / "fixtures"


def encode(value):
    if isinstance(value, torch.Tensor):
        data = value.detach().to(torch.float64 if value.dtype.is_floating_point else torch.int64).flatten().tolist()
        return {"dtype": str(value.dtype).removeprefix("torch."), "size": list(value.shape), "data": data}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    return [encode(it) for it in value] if isinstance(value, (list, tuple)) else value


def quantized():
    ao = torch.ops.torchao
    blocks = [((4, 8), (4, 8)), ((4, 8), (1, 8)), ((4, 8), (1, 4)), ((4, 8), (2, 4)), ((2, 3, 6), (1, 1, 6))]
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for size, block in blocks:
            x = (torch.randn(size) * 3).to(dtype)
            for mapping in ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC"):
                for target, bounds in ((torch.int8, ()), (torch.uint8, ()), (torch.int8, (-8, 7))):
                    if mapping == "SYMMETRIC_NO_CLIPPING_ERR" and target == torch.uint8:
                        continue  # it divides by zero
                    args = [x, mapping, list(block), target, *bounds]
                    yield ao.choose_qparams_affine, args, {}
                    scale, zero = ao.choose_qparams_affine(*args)
                    yield ao.quantize_affine, [x, list(block), scale, zero, target, *bounds], {}
                    q = ao.quantize_affine(x, list(block), scale, zero, target, *bounds)
                    yield ao.dequantize_affine, [q, list(block), scale, zero, target, *bounds], {}
                    yield ao.dequantize_affine, [q, list(block), scale, None, target, *bounds], {"output_dtype": dtype}
            kwargs = {"eps": 1e-3, "scale_dtype": torch.float32, "zero_point_dtype": torch.int64, "keepdim": True}
            yield ao.choose_qparams_affine, [x, "ASYMMETRIC", list(block), torch.int8], kwargs
            yield ao.choose_scale_float8, [x, list(block)], {}
            yield ao.choose_scale_float8, [x, list(block), torch.float8_e5m2], {"hp_value_lb": 1.0, "hp_value_ub": 2.0}


def grouped():
    path = pathlib.Path(importlib.util.find_spec("transformers").submodule_search_locations[0]) / "integrations/moe.py"
    tree = ast.parse(path.read_text())
    wanted = [it for it in tree.body if isinstance(it, ast.FunctionDef) and it.name == "_grouped_mm_fallback"]
    scope = {"torch": torch}
    exec(compile(ast.Module(wanted, []), str(path), "exec"), scope)
    schema = "(Tensor input, Tensor weight, Tensor offs) -> Tensor"
    op = torch.library.custom_op("transformers::grouped_mm_fallback", scope["_grouped_mm_fallback"], mutates_args=(), schema=schema)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for offs in ([2, 5, 6], [0, 6, 6], [6, 6, 6], [0, 0, 0], [1, 3, 4]):
            for kind in (torch.int32, torch.int64):
                x, weight = torch.randn(6, 4).to(dtype), torch.randn(3, 4, 5).to(dtype)
                yield torch.ops.transformers.grouped_mm_fallback, [x, weight, torch.tensor(offs, dtype=kind)], {}


torch.manual_seed(19)
folder = ROOT / "extensions"
folder.mkdir(exist_ok=True)
lines = []
for op, args, kwargs in [*quantized(), *grouped()]:
    row = {"op": str(op).replace("OpOverloadPacket", "").strip(), "args": encode(args), "kwargs": {k: encode(v) for k, v in kwargs.items()}}
    try:
        row["result"] = encode(op(*args, **kwargs))
    except Exception as error:
        row["error"] = type(error).__name__
    lines.append(json.dumps(row))
(folder / "calls.jsonl").write_text("\n".join(lines) + "\n")
print(len(lines))
