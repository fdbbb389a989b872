//! Copies and conversions of whole tensors, and filling with one value. How a number converts is for `tracefx-core` to say.

use crate::numeric::dispatch::with_element;
use crate::numeric::map::{cast_into, convert};
use crate::numeric::strided_copy::{Offsets, gather_places};
use tracefx_core::allocate::collected;
use tracefx_core::{DType, Dims, Result, Scalar, Tensor, float8_from_f32, float8_to_f32};
use tracefx_exec::{Kernel, Target};
use tracefx_ops::Operand;

/// The result is the first argument, copied or converted.
const COPY: Kernel = Kernel::Pointwise(|args, out| match out {
    Target::Tensor(out) => convert_into(args.tensor(0)?, out),
    Target::Function(_) => convert(args.tensor(0)?, out),
});

/// The result is full of the second argument.
const FILL: Kernel = Kernel::Overwrite(|args, outs| match args.operand(1)? {
    Operand::Scalar(value) => fill_with(&outs[0], value),
    Operand::Tensor(value) => fill_with(&outs[0], value.item()?),
});

/// New results hold zeros already.
pub(crate) const ZEROS: Kernel = Kernel::Fill(|_, _| Ok(()));

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._to_copy.default", COPY),
    ("aten.to.dtype", COPY),
    ("aten.to.dtype_layout", COPY),
    ("aten.to.device", COPY),
    ("aten.to.other", COPY),
    ("aten.type_as.default", COPY),
    ("aten.clone.default", COPY),
    ("aten.contiguous.default", COPY),
    ("aten.copy.default", Kernel::Overwrite(|args, outs| convert_into(args.tensor(1)?, &outs[0]))),
    ("aten.lift_fresh_copy.default", COPY),
    ("aten.alias_copy.default", COPY),
    ("aten.detach_copy.default", COPY),
    ("aten.fill.Scalar", FILL),
    ("aten.fill.Tensor", FILL),
    ("aten.zero.default", ZEROS),
    // The shape rule has held all there is to hold.
    ("aten._assert_tensor_metadata.default", ZEROS),
];

/// Fills a new, row-major result with the elements of a tensor that broadcasts to it.
fn convert_into(tensor: &Tensor, out: &Tensor) -> Result<()> {
    if tensor.dtype() != out.dtype() {
        return match (tensor.dtype().is_float8(), out.dtype().is_float8()) {
            (false, false) => cast_into(tensor, out),
            (true, _) => convert_into(&decoded(tensor)?, out),
            (false, true) => encode_into(tensor, out),
        };
    }
    let lead = out.rank() - tensor.rank();
    let stride = |dim: usize| match dim.checked_sub(lead) {
        Some(own) if tensor.sizes()[own] == out.sizes()[dim] => tensor.strides()[own],
        Some(_) | None => 0,
    };
    let strides: Dims = (0..out.rank()).map(stride).collect();
    gather_places(tensor, &Offsets::new(tensor.offset(), &strides), out);
    Ok(())
}

/// Floats of eight bits as numbers to compute with.
fn decoded(tensor: &Tensor) -> Result<Tensor> {
    let (dtype, dense) = (tensor.dtype(), tensor.compact_copy()?);
    let storage = dense.storage().read();
    let codes = &storage.elements::<u8>()[dense.offset()..dense.offset() + dense.numel()];
    let numbers: Vec<f32> = collected(codes.iter().map(|it| float8_to_f32(dtype, *it)))?;
    Tensor::from_slice(&numbers, tensor.sizes())
}

/// As PyTorch does it, by way of float32.
fn encode_into(tensor: &Tensor, out: &Tensor) -> Result<()> {
    let numbers = Tensor::zeros(DType::Float32, out.sizes())?;
    convert_into(tensor, &numbers)?;
    let codes = numbers.to_vec::<f32>()?.into_iter().map(|it| float8_from_f32(out.dtype(), it));
    out.storage().write()?.elements_mut::<u8>().iter_mut().zip(codes).for_each(|(it, code)| *it = code);
    Ok(())
}

/// Fills a new result with one value.
pub(crate) fn fill_with(out: &Tensor, value: Scalar) -> Result<()> {
    if out.dtype().is_float8() {
        let code = float8_from_f32(out.dtype(), value.to_f64() as f32);
        out.storage().write()?.elements_mut::<u8>()[..out.numel()].fill(code);
        return Ok(());
    }
    with_element!(out.dtype(), "filling", T => {
        out.storage().write()?.elements_mut::<T>()[..out.numel()].fill(tracefx_core::Element::from_scalar(value));
        Ok(())
    })
}
