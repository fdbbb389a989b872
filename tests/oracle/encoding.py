"""How recorded calls are written: values as JSON, the data of tensors apart."""
import math

import torch

KINDS = (torch.dtype, torch.layout, torch.memory_format)


def encode(value, keep):
    """A value as JSON. `keep` is given the data of each tensor, from its first element to its last, and says its key."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        if value._is_zerotensor():
            value = torch.zeros(value.shape, dtype=value.dtype)
        n = 0 if value.numel() == 0 else 1 + sum((s - 1) * d for s, d in zip(value.shape, value.stride()))
        flat = torch.as_strided(value, (n,), (1,), value.storage_offset()).clone()
        key = keep(torch.view_as_real(flat) if value.is_complex() else flat)
        res = {"tensor": key, "dtype": name_of(value.dtype), "size": list(value.shape)}
        if not value.is_contiguous():
            res["stride"] = list(value.stride())
        return res
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"int": str(value)} if abs(value) > 2**53 else {"int": value}
    if isinstance(value, float):
        return {"float": value if math.isfinite(value) else repr(value)}
    for kind in KINDS:
        if isinstance(value, kind):
            return {kind.__name__: name_of(value)}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, (list, tuple)):
        return [encode(it, keep) for it in value]
    raise NotImplementedError(type(value))


def decode(value, data_of):
    """The value that is written so; `data_of` gives the flat data of a key."""
    if isinstance(value, list):
        return [decode(it, data_of) for it in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        flat = data_of(value["tensor"])
        if getattr(torch, value["dtype"]).is_complex:
            flat = torch.view_as_complex(flat.contiguous())
        if "stride" in value:
            return flat.as_strided(value["size"], value["stride"])
        return flat.reshape(value["size"])
    (kind, it), = value.items()
    read = {"int": int, "float": float, "device": torch.device}
    return read.get(kind, lambda name: getattr(torch, name))(it)


def overload_of(name):
    """The operator of a qualified name."""
    found = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    return found


def name_of(it):
    """A dtype, layout or memory format without `torch.`."""
    return str(it).removeprefix("torch.")


def scalar_of(value):
    """A number, dtype, layout or memory format of a call that is written without data."""
    (kind, it), = value.items()
    if kind == "float":
        return float(it)
    if kind == "complex":
        return complex(*map(float, it))
    return getattr(torch, it)


def tell(result):
    """What a result is, without its elements: dtype, sizes and strides of tensors, in lists as they come."""
    if isinstance(result, torch.Tensor):
        return [name_of(result.dtype), list(result.shape), list(result.stride())]
    if isinstance(result, (list, tuple)):
        return {"list": [tell(it) for it in result]}
    return type(result).__name__ if not isinstance(result, torch.dtype) else "dtype"
