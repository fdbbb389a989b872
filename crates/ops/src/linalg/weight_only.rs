//! Products whose weights are integers, as models with weight-only quantization call them: packed for a product once, and numbers in its registers.

use crate::index::gather::wrong_dtype;
use crate::{Args, OpDef, Output, Tol, contiguous};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor", int8_product)
        .no_gradient()
        .doc("The product of a matrix and the transpose of int8 rows, each with a scale: `self @ (mat2 * scales[:, None]).T`.")
        // Integers are a hundred times what their sums come to; PyTorch's own test takes a mean error of 1e-3.
        .tolerance(Tol::Scaled(10.0)),
    OpDef::new(
        "aten::_weight_int4pack_mm(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
        int4_product,
    )
    .no_gradient()
    .doc(
        "The product of a matrix and the transpose of rows of int4 as CUDA packs them, each group of a row with a scale and an addend: \
         `self @ ((mat2 - 8) * qScaleAndZeros[g, :, 0] + qScaleAndZeros[g, :, 1]).T`.",
    )
    .tolerance(Tol::Default),
    OpDef::new("aten::_convert_weight_to_int4pack(Tensor self, int innerKTiles) -> Tensor", int4_pack)
        .no_gradient()
        .doc("Rows of int4, two in a byte with the first in the upper bits, packed for `_weight_int4pack_mm` as on CUDA."),
];

type Meta<'a> = Args<'a, TensorMeta>;

/// The argument at `index`, which PyTorch calls `name`, with so many dimensions.
fn ranked<'a>(args: &'a Meta<'_>, index: usize, name: &str, rank: usize) -> Result<&'a TensorMeta> {
    let it = args.tensor(index)?;
    if it.sizes.len() != rank {
        return Err(args.bad_shape(format!("{name} must be a {rank}D tensor")));
    }
    Ok(it)
}

fn check_dtype(args: &Meta<'_>, it: &TensorMeta, name: &str, wanted: DType) -> Result<()> {
    if it.dtype == wanted {
        return Ok(());
    }
    Err(wrong_dtype(args, format!("expected {name} to be {}, got {}", wanted.name(), it.dtype)))
}

/// The rows of numbers.
fn rows<'a>(args: &'a Meta<'_>) -> Result<&'a TensorMeta> {
    let it = ranked(args, 0, "x", 2)?;
    match it.dtype {
        DType::Float32 | DType::Float16 | DType::BFloat16 => Ok(it),
        other => Err(wrong_dtype(args, format!("expected x to be f32/f16/bf16, got {other}"))),
    }
}

/// Scales are of the dtype of the rows, as PyTorch's kernels read them.
fn check_scales(args: &Meta<'_>, scales: &TensorMeta, rows: &TensorMeta, name: &str) -> Result<()> {
    if scales.dtype == rows.dtype {
        return Ok(());
    }
    Err(wrong_dtype(args, format!("expected {name} to be {} as x is, got {}", rows.dtype.name(), scales.dtype)))
}

fn int8_product(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (x, w, scales) = (rows(args)?, ranked(args, 1, "w", 2)?, args.tensor(2)?);
    check_dtype(args, w, "w", DType::Int8)?;
    if !args.same(&w.sizes[1], &x.sizes[1]) {
        let what = format!("expected w.size(1) ({}) == x.size(1) ({})", w.sizes[1], x.sizes[1]);
        return Err(args.bad_shape(what));
    }
    if scales.sizes.len() != 1 || !args.same(&scales.sizes[0], &w.sizes[0]) {
        let sizes: Vec<String> = scales.sizes.iter().map(SymInt::to_string).collect();
        let what = format!(
            "expected q_scales to be 1D with size {}, got shape torch.Size([{}])",
            w.sizes[0],
            sizes.join(", ")
        );
        return Err(args.bad_shape(what));
    }
    check_scales(args, scales, x, "q_scales")?;
    Ok(contiguous(x.dtype, vec![x.sizes[0].clone(), w.sizes[0].clone()]))
}

fn int4_product(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (x, w, group, numbers) = (rows(args)?, ranked(args, 1, "w", 4)?, args.int(2)?, args.tensor(3)?);
    check_dtype(args, w, "w", DType::Int32)?;
    // The checks of `_weight_int4pack_mm_cuda`.
    let words = w.sizes[3].as_int().filter(|it| matches!(it, 1 | 2 | 4));
    let Some(words) = words.filter(|_| w.sizes[2].as_int() == Some(32)) else {
        return Err(args.bad_shape(
            "expected w to be [n / 8, k / (innerKTiles * 16), 32, innerKTiles / 2] of 2, 4 or 8 innerKTiles",
        ));
    };
    if !matches!(group, 32 | 64 | 128 | 256) {
        return Err(args.invalid(format!("expected qGroupSize to be 32, 64, 128 or 256, got {group}")));
    }
    let (n, k) = (&w.sizes[0] * 8, &w.sizes[1] * (32 * words));
    if !args.same(&k, &x.sizes[1]) {
        return Err(args.bad_shape(format!("expected w to have {} rows of x, got {k}", x.sizes[1])));
    }
    let is_whole = k.as_int().is_none_or(|it| it % group == 0);
    let fits = |it: &[SymInt]| match it {
        [groups, columns, two] => args.same(&(groups * group), &k) && args.same(columns, &n) && two.as_int() == Some(2),
        _ => false,
    };
    if !is_whole || !fits(&numbers.sizes) {
        let what =
            format!("expected qScaleAndZeros to be [k / qGroupSize, n, 2] of k {k}, n {n} and qGroupSize {group}");
        return Err(args.bad_shape(what));
    }
    check_scales(args, numbers, x, "qScaleAndZeros")?;
    Ok(contiguous(x.dtype, vec![x.sizes[0].clone(), n]))
}

fn int4_pack(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (w, tiles) = (ranked(args, 0, "w", 2)?, args.int(1)?);
    check_dtype(args, w, "w", DType::UInt8)?;
    if !matches!(tiles, 2 | 4 | 8) {
        return Err(args.invalid(format!("expected innerKTiles to be 2, 4 or 8, got {tiles}")));
    }
    let (n, k) = (&w.sizes[0], &w.sizes[1] * 2);
    let (n_tiles, k_tiles) = (n.floor_div(&SymInt::from(8)), k.floor_div(&SymInt::from(tiles * 16)));
    if !args.same(&(&n_tiles * 8), n) || !args.same(&(&k_tiles * (tiles * 16)), &k) {
        let what = format!("expected n ({n}) to be a multiple of 8, and k ({k}) one of innerKTiles * 16");
        return Err(args.bad_shape(what));
    }
    Ok(contiguous(DType::Int32, vec![n_tiles, k_tiles, SymInt::from(32), SymInt::from(tiles / 2)]))
}
