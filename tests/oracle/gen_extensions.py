"""Records calls of operators that libraries register beside PyTorch's own: torchao's and transformers'.

usage: python tests/oracle/gen_extensions.py [torchvision]

Writes tests/fixtures/extensions/calls.jsonl, or torchvision.jsonl. Tensors stand in it as `{"dtype", "size", "data"}`, numbers
that are not finite as text. It needs torchao 0.18.0 and the files of transformers 5.24.0, of which no module is imported, or
torchvision 0.28.0.
"""
import ast, importlib, importlib.util, json, math, pathlib, sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent / "fixtures"


def encode(value):
    if isinstance(value, torch.Tensor):
        data = value.detach().to(torch.float64 if value.dtype.is_floating_point else torch.int64).flatten().tolist()
        data = [it if math.isfinite(it) else str(it) for it in data]
        return {"dtype": str(value.dtype).removeprefix("torch."), "size": list(value.shape), "data": data}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    return [encode(it) for it in value] if isinstance(value, (list, tuple)) else value


def quantized():
    importlib.import_module("torchao.quantization.quant_primitives")  # registers the operators
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


def boxes(n, dtype, far=20.0):
    corners = torch.rand(n, 2) * far
    return short(torch.cat([corners, corners + torch.rand(n, 2) * 12], 1)).to(dtype)


def short(x):
    """The same tensor of numbers that are short as text."""
    return torch.round(x * 64) / 64


def detections():
    importlib.import_module("torchvision")
    ops = torch.ops.torchvision
    for dtype in (torch.float32, torch.float64):
        for n in (0, 1, 12, 40):
            for threshold in (0.0, 0.3, 0.7):
                yield ops.nms, [boxes(n, dtype, 8.0), short(torch.rand(n)).to(dtype), threshold], {}
        ties = torch.tensor([0.5, 0.9, 0.5, 0.9, 0.1], dtype=dtype)
        yield ops.nms, [boxes(5, dtype, 4.0), ties, 0.2], {}
        x = short(torch.randn(2, 2, 8, 9)).to(dtype)
        rois = torch.cat([torch.tensor([[0.0], [1.0], [1.0], [0.0]], dtype=dtype), boxes(4, dtype)], 1)
        for scale in (1.0, 0.25):
            for ratio in (2, 0, -1):
                for aligned in (True, False):
                    yield ops.roi_align, [x, rois, scale, 3, 2, ratio, aligned], {}
        yield ops.roi_align, [x, rois[:0], 1.0, 2, 2, 2, True], {}
        for stride, pad, dilation, groups, offset_groups in ((1, 1, 1, 1, 1), (2, 1, 1, 2, 2), (1, 0, 2, 1, 4)):
            x, weight = short(torch.randn(2, 4, 5, 6)).to(dtype), short(torch.randn(6, 4 // groups, 3, 3)).to(dtype)
            h, w = ((it + 2 * pad - 2 * dilation - 1) // stride + 1 for it in (5, 6))
            offset = short(torch.randn(2, 18 * offset_groups, h, w)).to(dtype)
            mask, bias = short(torch.rand(2, 9 * offset_groups, h, w)).to(dtype), short(torch.randn(6)).to(dtype)
            sizes = [stride, stride, pad, pad, dilation, dilation, groups, offset_groups]
            yield ops.deform_conv2d, [x, weight, offset, mask, bias, *sizes, True], {}
            yield ops.deform_conv2d, [x, weight, offset, torch.zeros(2, 1).to(dtype), bias, *sizes, False], {}
            yield ops.deform_conv2d, [x, weight, offset[:, :2], mask, bias, *sizes, True], {}
            yield ops.deform_conv2d, [x, weight, offset, mask[:, :2], bias, *sizes, True], {}
    yield ops.nms, [torch.rand(3, 5), torch.rand(3), 0.5], {}
    yield ops.nms, [torch.rand(3, 4), torch.rand(2), 0.5], {}
    yield ops.roi_align, [torch.rand(1, 1, 4, 4), torch.rand(2, 4), 1.0, 2, 2, 2, True], {}
    yield from regions(ops)


def regions(ops):
    """Pooling of boxes that lie inside of the picture, across its edge, outside of it, and that are inverted or of no size."""
    corners = [[1.0, 1.0, 6.5, 5.0], [0.5, 1.5, 2.5, 3.5], [-3.0, -2.0, 4.0, 12.0], [30.0, 30.0, 40.0, 40.0],
               [-9.0, -9.0, -5.0, -5.0], [5.0, 6.0, 2.0, 3.0], [3.0, 3.0, 3.0, 3.0], [0.0, 0.0, 9.0, 8.0]]
    for dtype in (torch.float16, torch.float32, torch.float64):
        x = short(torch.randn(2, 6, 6, 7)).to(dtype)
        rois = torch.tensor([[float(at % 2), *it] for at, it in enumerate(corners)], dtype=dtype)
        yield ops.roi_align, [x, rois, 0.7, 2, 3, -1, True], {}
        for scale, rows, columns in ((1.0, 2, 3), (0.7, 2, 3), (0.7, 1, 1), (1.0, 3, 1)):
            yield ops.roi_pool, [x[:, :2], rois, scale, rows, columns], {}
            yield ops.ps_roi_pool, [x, rois, scale, rows, columns], {}
            for ratio in (2, -1):
                yield ops.ps_roi_align, [x, rois, scale, rows, columns, ratio], {}
        yield ops.roi_pool, [x[:, :1], rois[:0], 1.0, 2, 2], {}
        yield ops.ps_roi_pool, [x[:, :2], rois[:0], 1.0, 2, 1], {}
        yield ops.ps_roi_align, [x[:, :2], rois[:0], 1.0, 2, 1, 2], {}
    x, rois = short(torch.randn(1, 4, 5, 5)), torch.tensor([[0.0, 0.0, 0.0, 3.0, 3.0]])
    yield ops.roi_pool, [x, rois, 1.0, 0, 2], {}
    pools = [(ops.roi_pool, []), (ops.ps_roi_pool, []), (ops.ps_roi_align, [2])]
    for op, rest in pools:
        yield op, [x[0], rois, 1.0, 2, 2, *rest], {}
        yield op, [x, rois.double(), 1.0, 2, 2, *rest], {}
        yield op, [x.int(), rois.int(), 1.0, 2, 2, *rest], {}
        yield op, [x.bfloat16(), rois.bfloat16(), 1.0, 2, 2, *rest], {}
    for op, rest in pools[1:]:
        yield op, [x, rois[:, :4], 1.0, 2, 2, *rest], {}
        yield op, [x, rois, 1.0, 3, 1, *rest], {}
    x[0, 0], x[0, 1] = math.nan, -math.inf
    yield ops.roi_pool, [x, rois, 1.0, 2, 2], {}
    yield ops.ps_roi_pool, [x, rois, 1.0, 2, 2], {}


torch.manual_seed(19)
folder = ROOT / "extensions"
folder.mkdir(exist_ok=True)
lines = []
vision = sys.argv[1:] == ["torchvision"]
for op, args, kwargs in detections() if vision else [*quantized(), *grouped()]:
    row = {"op": str(op).replace("OpOverloadPacket", "").strip(), "args": encode(args), "kwargs": {k: encode(v) for k, v in kwargs.items()}}
    try:
        row["result"] = encode(op(*args, **kwargs))
    except Exception as error:
        row["error"] = type(error).__name__
    lines.append(json.dumps(row))
(folder / ("torchvision.jsonl" if vision else "calls.jsonl")).write_text("\n".join(lines) + "\n")
print(len(lines))
