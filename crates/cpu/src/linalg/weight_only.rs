//! Kernels of products whose weights are integers: those of the fused step that such a product is in a compiled plan.

use crate::fused;
use crate::numeric::dense;
use tracefx_core::{Result, Tensor};
use tracefx_exec::{Kernel, Prepared};
use tracefx_ops::Args;
use tracefx_plan::{Dequantization, DequantizedProduct, Epilogue, Int4Tiles, IntegerLayout, Product};

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    (
        "aten._weight_int8pack_mm.default",
        Kernel::Prepare {
            fill: |args, out| int8(args, &out[0]).and_then(|it| fused::dequantized_product(&it)),
            prepare: |args, is_constant| {
                if [1, 2].into_iter().all(is_constant) { prepare(args, int8) } else { Ok(None) }
            },
        },
    ),
    (
        "aten._weight_int4pack_mm.default",
        Kernel::Prepare {
            fill: |args, out| int4(args, &out[0]).and_then(|it| fused::dequantized_product(&it)),
            prepare: |args, is_constant| {
                if [1, 3].into_iter().all(is_constant) { prepare(args, int4) } else { Ok(None) }
            },
        },
    ),
    ("aten._convert_weight_to_int4pack.default", Kernel::Fill(int4_pack)),
];

/// What an operator computes.
type Step = fn(&Args<'_, Tensor>, &Tensor) -> Result<DequantizedProduct<Tensor>>;

fn int8(args: &Args<'_, Tensor>, out: &Tensor) -> Result<DequantizedProduct<Tensor>> {
    let (mat2, scales) = (args.tensor(1)?, args.tensor(2)?);
    let scales = scales.as_strided(&[1, scales.numel()], &[0, scales.strides()[0]], scales.offset())?;
    let dequantization = Dequantization {
        layout: IntegerLayout::Bytes,
        group_size: mat2.sizes()[1].max(1),
        zero_point: 0,
        scale: 1.0,
        scales: Some(scales),
        zero_points: None,
        shifts: None,
        is_rounded: false,
    };
    step(args, mat2.permuted(&[1, 0]), dequantization, out)
}

fn int4(args: &Args<'_, Tensor>, out: &Tensor) -> Result<DequantizedProduct<Tensor>> {
    let (mat2, numbers) = (args.tensor(1)?.contiguous()?, args.tensor(3)?);
    let part = |at: usize| {
        let (sizes, strides) = (&numbers.sizes()[..2], &numbers.strides()[..2]);
        numbers.as_strided(sizes, strides, numbers.offset() + at * numbers.strides()[2])
    };
    let dequantization = Dequantization {
        layout: IntegerLayout::Int4Tiles,
        group_size: usize::try_from(args.int(2)?).unwrap_or(1),
        zero_point: 8,
        scale: 1.0,
        scales: Some(part(0)?),
        zero_points: None,
        shifts: Some(part(1)?),
        is_rounded: true,
    };
    step(args, mat2, dequantization, out)
}

fn step(
    args: &Args<'_, Tensor>,
    rhs: Tensor,
    dequantization: Dequantization<Tensor>,
    out: &Tensor,
) -> Result<DequantizedProduct<Tensor>> {
    let product = Product { lhs: args.tensor(0)?.clone(), rhs, epilogue: Epilogue::none(), result: out.clone() };
    Ok(DequantizedProduct { product, dequantization })
}

fn prepare(args: &Args<'_, Tensor>, of: Step) -> Result<Option<Box<Prepared>>> {
    // What is laid out is of the weight alone.
    let m = args.tensor(0)?.sizes()[0];
    let columns = args.tensor(1)?;
    let n = if columns.rank() == 4 { columns.sizes()[0] * 8 } else { columns.sizes()[0] };
    let out = Tensor::unfilled(args.tensor(0)?.dtype(), &[m, n])?;
    let run = fused::prepared_dequantized_product(&of(args, &out)?)?;
    Ok(Some(Box::new(move |args, out| run(&of(args, &out[0])?.product))))
}

fn int4_pack(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let bytes = args.tensor(0)?.to_vec::<u8>()?;
    let n_bytes = args.tensor(0)?.sizes()[1];
    let Some(tiles) = Int4Tiles::of(out[0].sizes()) else { unreachable!("the shape rule gives tiles") };
    dense::fill::<i32, _>(&out[0], |words| {
        words.fill(0);
        for (at, pair) in bytes.iter().enumerate() {
            let (row, byte) = (at / n_bytes, at % n_bytes);
            for (k, it) in [(2 * byte, pair >> 4), (2 * byte + 1, pair & 15)] {
                let (word, below) = tiles.place(k, row);
                words[word] |= i32::from(it) << below;
            }
        }
        Ok(())
    })
}
