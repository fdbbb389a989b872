//! Pooling with windows whose distances are a fraction: each plane has random ones of its own.

use crate::image::pooling_gradient;
use crate::{Args, OpDef, Output};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor \
         random_samples) -> (Tensor, Tensor)",
        |args| pool(args, 2),
    )
    .vjp(pooling_gradient::fractional_max_pool2d)
    .doc("The largest element of each window, and where in its plane it stands."),
    OpDef::new(
        "aten::fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor \
         random_samples) -> (Tensor, Tensor)",
        |args| pool(args, 3),
    )
    .vjp(pooling_gradient::fractional_max_pool3d)
    .doc("The largest element of each window, and where in its volume it stands."),
];

fn pool(args: &Args<'_, TensorMeta>, n_dims: usize) -> Result<Vec<Output>> {
    let (input, samples) = (args.tensor(0)?, args.tensor(3)?);
    let (kernel, output) = (args.ints(1)?, args.ints(2)?);
    let name = &args.op.schema.name;
    let rank = input.sizes.len();
    if !(n_dims + 1..=n_dims + 2).contains(&rank) {
        return Err(args.bad_shape(format!(
            "{name}: input needs {} or {} dimensions but has {rank}",
            n_dims + 1,
            n_dims + 2
        )));
    }
    if !input.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(input.dtype, &args.op.name));
    }
    if kernel.len() != n_dims || output.len() != n_dims {
        return Err(args.invalid(format!("{name}: kernel_size and output_size must be a single int, or {n_dims} ints")));
    }
    if samples.dtype != input.dtype {
        let what = "Expect _random_samples to have the same dtype as input";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let (lead, spatial) = input.sizes.split_at(rank - n_dims);
    for (dim, size) in spatial.iter().enumerate() {
        let (kernel, output) = (kernel[dim], output[dim]);
        if kernel <= 0 || output <= 0 || args.less(size, &SymInt::from(output + kernel - 1)) {
            return Err(args.bad_shape(format!(
                "{name}: a window of {kernel} and {output} results do not fit a dimension of size {size}"
            )));
        }
    }
    let mut expected = if lead.len() == 1 { vec![SymInt::ONE] } else { Vec::new() };
    expected.extend(lead.iter().cloned().chain([SymInt::from(n_dims as i64)]));
    if samples.sizes.len() != 3 || samples.sizes.iter().zip(&expected).any(|(a, b)| args.less(a, b)) {
        return Err(args.bad_shape(format!("{name}: expect _random_samples to have a size of at least {expected:?}")));
    }
    let sizes: Vec<SymInt> = lead.iter().cloned().chain(output.iter().map(|&it| it.into())).collect();
    let tensor = |dtype: DType| Output::Tensor(TensorMeta::contiguous(dtype, sizes.clone()));
    Ok(vec![tensor(input.dtype), tensor(DType::Int64)])
}
