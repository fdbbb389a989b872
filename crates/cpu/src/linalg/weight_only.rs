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
    if mat2.rank() != 2 || scales.rank() != 1 {
        return Err(args.bad_shape(FIT));
    }
    // Columns of no rows have no group.
    let n_rows = mat2.sizes()[1];
    let scales = scales.as_strided(&[n_rows.min(1), scales.numel()], &[0, scales.strides()[0]], scales.offset())?;
    step(args, mat2.permuted(&[1, 0]), Dequantization::of_int8_columns(n_rows, scales), out)
}

fn int4(args: &Args<'_, Tensor>, out: &Tensor) -> Result<DequantizedProduct<Tensor>> {
    let (mat2, group, numbers) = (args.tensor(1)?.contiguous()?, args.int(2)?, args.tensor(3)?);
    if numbers.rank() != 3 || numbers.sizes()[2] != 2 {
        return Err(args.bad_shape(FIT));
    }
    let part = |at: usize| {
        let (sizes, strides) = (&numbers.sizes()[..2], &numbers.strides()[..2]);
        numbers.as_strided(sizes, strides, numbers.offset() + at * numbers.strides()[2])
    };
    let group = usize::try_from(group).map_err(|_| args.bad_shape(FIT))?;
    step(args, mat2, Dequantization::of_int4_tiles(group, part(0)?, part(1)?), out)
}

/// What the shape rule has seen, where it was asked: a plan of a file has calls that it was not.
const FIT: &str = "the sizes of the weight, its scales and the rows do not fit";

fn step(
    args: &Args<'_, Tensor>,
    rhs: Tensor,
    dequantization: Dequantization<Tensor>,
    out: &Tensor,
) -> Result<DequantizedProduct<Tensor>> {
    let lhs = args.tensor(0)?.clone();
    let columns = dequantization.columns(rhs.sizes(), Tensor::sizes);
    let fits = columns.is_some_and(|[k, n]| {
        let is_of = dequantization.layout.is_of(rhs.dtype());
        is_of && lhs.rank() == 2 && lhs.sizes()[1] == k && *out.sizes() == [lhs.sizes()[0], n]
    });
    if !fits {
        return Err(args.bad_shape(FIT));
    }
    let product = Product { lhs, rhs, epilogue: Epilogue::none(), result: out.clone() };
    Ok(DequantizedProduct { product, dequantization })
}

fn prepare(args: &Args<'_, Tensor>, of: Step) -> Result<Option<Box<Prepared>>> {
    let (lhs, columns) = (args.tensor(0)?, args.tensor(1)?);
    let (Some(&m), Some(&n)) = (lhs.sizes().first(), columns.sizes().first()) else { return Ok(None) };
    let n = if columns.rank() == 4 { n * 8 } else { n };
    // What is laid out is of the weight alone.
    let run = fused::prepared_dequantized_product(&of(args, &Tensor::unfilled(lhs.dtype(), &[m, n])?)?)?;
    Ok(Some(Box::new(move |args, out| run(&of(args, &out[0])?.product))))
}

fn int4_pack(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let bytes = args.tensor(0)?.to_vec::<u8>()?;
    let &[n, n_bytes] = args.tensor(0)?.sizes() else { return Err(args.bad_shape(FIT)) };
    let is_of = IntegerLayout::Int4Tiles.columns(out[0].sizes()) == Some([2 * n_bytes, n]);
    let Some(tiles) = Int4Tiles::of(out[0].sizes()).filter(|_| is_of) else { return Err(args.bad_shape(FIT)) };
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
