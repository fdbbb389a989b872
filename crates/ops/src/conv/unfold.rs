//! Patches of images as columns, and back.

use crate::conv::decompose;
use crate::view;
use crate::{Args, OpDef, Output, Tags, Tol, contiguous};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
        im2col,
    )
    .decompose(decompose::im2col)
    .vjp(view::gradient::im2col)
    .doc("The patches of an image, one column each."),
    OpDef::new(
        "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, \
             int[2] stride) -> Tensor",
        col2im,
    )
    .decompose(decompose::col2im)
    .tags(Tags::DECOMPOSED)
    .vjp(view::gradient::col2im)
    .doc("The image whose patches are these columns; where patches overlap, they are added up.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
];

/// Two ints of each of the four options, which start at `at`.
fn options(args: &Args<'_, TensorMeta>, at: usize) -> Result<[[i64; 2]; 4]> {
    let mut res = [[0; 2]; 4];
    for (index, (values, least)) in res.iter_mut().zip([1, 1, 0, 1]).enumerate() {
        let name = &args.op.schema.args[at + index].name;
        *values = match args.ints(at + index)?[..] {
            [one] => [one; 2],
            [height, width] => [height, width],
            _ => return Err(args.invalid(format!("It is expected {name} equals to 2"))),
        };
        if values.iter().any(|&it| it < least) {
            return Err(args.invalid(format!("{name} should be at least {least}, but got {values:?}")));
        }
    }
    Ok(res)
}

/// How many patches fit in each direction.
fn n_patches(args: &Args<'_, TensorMeta>, size: &[SymInt], options: [[i64; 2]; 4]) -> Result<SymInt> {
    let [kernel, dilation, padding, stride] = options;
    let count = |dim: usize| {
        let room = &size[dim] + (2 * padding[dim] - dilation[dim] * (kernel[dim] - 1) - 1);
        room.floor_div(&SymInt::from(stride[dim])) + 1
    };
    let (rows, columns) = (count(0), count(1));
    if [&rows, &columns].iter().any(|it| args.less(it, &SymInt::ONE)) {
        return Err(args.bad_shape(format!(
            "Given input with spatial size ({}, {}), kernel_size={kernel:?}, dilation={dilation:?}, padding={padding:?}, \
             calculated shape of the array of sliding blocks as ({rows}, {columns}), but its components must be at \
             least one.",
            size[0], size[1]
        )));
    }
    Ok(rows * columns)
}

/// The dimensions in front of the last `n`: none, or a batch.
fn lead<'a>(args: &Args<'_, TensorMeta>, sizes: &'a [SymInt], n: usize) -> Result<(&'a [SymInt], &'a [SymInt])> {
    match sizes.len().checked_sub(n) {
        Some(n_lead @ 0..=1) if !sizes[n_lead..].contains(&SymInt::from(0)) => Ok(sizes.split_at(n_lead)),
        _ => Err(args.bad_shape(format!(
            "Expected {n}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions",
            n + 1
        ))),
    }
}

fn im2col(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let input = args.tensor(0)?;
    let options = options(args, 1)?;
    let (batch, image) = lead(args, &input.sizes, 3)?;
    let n_rows = &image[0] * (options[0][0] * options[0][1]);
    let n_columns = n_patches(args, &image[1..], options)?;
    Ok(contiguous(input.dtype, [batch, &[n_rows, n_columns]].concat()))
}

fn col2im(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (input, size) = (args.tensor(0)?, args.sym_ints(1)?);
    let options = options(args, 2)?;
    if size.len() != 2 {
        return Err(args.invalid(format!("It is expected output_size equals to 2, but got size {}", size.len())));
    }
    let (batch, columns) = lead(args, &input.sizes, 2)?;
    let n_taps = options[0][0] * options[0][1];
    if args.differ(&columns[0].modulo(&n_taps.into()), &SymInt::ZERO) {
        return Err(args.bad_shape(format!(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got {} and \
                 {n_taps}",
            columns[0]
        )));
    }
    let n_columns = n_patches(args, &size, options)?;
    if n_columns != columns[1] {
        return Err(args.bad_shape(format!(
            "expected size of input's dimension 2 to match the calculated number of sliding blocks {n_columns}, but \
                 got {}",
            columns[1]
        )));
    }
    let n_channels = columns[0].floor_div(&SymInt::from(n_taps));
    Ok(contiguous(input.dtype, [batch, &[n_channels], &size].concat()))
}
