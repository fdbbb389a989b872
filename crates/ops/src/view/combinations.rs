//! Elements and sequences put together: combinations, powers side by side, and sequences padded to one length.

use crate::core::decompositions::{Call, size_list};
use crate::{Cx, OpDef, Tol, Traced, Value, normalize_dim};
use tracefx_core::{DType, DTypeKind, Result};
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite("aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", combinations)
        .tolerance(Tol::Exact)
        .doc("All choices of `r` elements, in order."),
    OpDef::composite("aten::linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", linalg_vander)
        .doc("The powers of each element from zero on."),
    OpDef::composite("aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", vander)
        .doc("The powers of each element, the highest first."),
    OpDef::composite(
        "aten::pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str \
         padding_side=\"right\") -> Tensor",
        pad_sequence,
    )
    .tolerance(Tol::Exact)
    .doc("Sequences side by side, padded to the length of the longest."),
    OpDef::composite("aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", renorm)
        .doc("Each part along a dimension scaled down to a norm, where its own is larger.")
        .in_place(&["renorm_"]),
];

/// How many elements there are to choose from. The choices are listed while the call is made.
fn combinations(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (this, r, repeats) = (*args.tensor(0)?, args.int(1)?, args.bool(2)?);
    let [n] = &cx.meta(this).sizes[..] else {
        let rank = cx.meta(this).sizes.len();
        return Err(args.bad_shape(format!("Expect a 1D vector, but got shape with {rank} dimensions")));
    };
    let Some(n) = n.as_int() else {
        return Err(args.unsupported("combinations of a number of elements that is not known"));
    };
    let Ok(width) = usize::try_from(r) else {
        return Err(args.invalid(format!("Expect a non-negative number, but got {r}")));
    };
    if width == 0 {
        let dtype = cx.meta(this).dtype;
        return Ok(vec![cx.aten_with(
            "empty.memory_format",
            [&Value::ints(&[0])],
            &[("dtype", Value::DType(dtype))],
        )?]);
    }
    // A mask over the grid of all positions: each is greater than the one before, or not less where elements repeat.
    let positions = cx.aten("arange", [&Value::int(n)])?;
    let along = |cx: &mut Cx<'_>, what: &Traced, dim: usize| {
        let mut sizes = vec![1; width];
        sizes[dim] = n;
        let it = cx.aten("view", [what, &Value::ints(&sizes)])?;
        cx.aten("expand", [&it, &Value::ints(&vec![n; width])])
    };
    let grids = (0..width).map(|dim| along(cx, &positions, dim)).collect::<Result<Vec<_>>>()?;
    let bools = [("dtype", Value::DType(DType::Bool))];
    let mut mask = cx.aten_with("ones", [&Value::ints(&vec![n; width])], &bools)?;
    let op = if repeats { "le.Tensor" } else { "lt.Tensor" };
    for pair in grids.windows(2) {
        let rises = cx.aten(op, [&pair[0], &pair[1]])?;
        mask = cx.aten("logical_and", [&mask, &rises])?;
    }
    let chosen = (0..width).map(|dim| {
        let grid = along(cx, &this.into(), dim)?;
        cx.aten("masked_select", [&grid, &mask])
    });
    let chosen = chosen.collect::<Result<Vec<_>>>()?;
    Ok(vec![cx.aten("stack", [&Value::List(chosen), &Value::int(-1)])?])
}

fn linalg_vander(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let meta = cx.meta(this).clone();
    let (Some(n), false) = (meta.sizes.last(), meta.dtype == DType::Bool) else {
        return Err(args.bad_shape("linalg.vander: Expected a tensor of numbers with at least one dimension"));
    };
    let n = args.opt_sym_int(1)?.unwrap_or(n).clone();
    if n.as_int().is_some_and(|it| it <= 1) {
        return Err(args.invalid(format!("N must be greater than 1, but got {n}")));
    }
    let dtype = if meta.dtype.kind() == DTypeKind::Int { DType::Int64 } else { meta.dtype };
    let mut sizes = meta.sizes;
    sizes.push(SymInt::ONE);
    let ones = cx.aten_with("ones", [&size_list(&sizes)], &[("dtype", Value::DType(dtype))])?;
    if let Some(last) = sizes.last_mut() {
        *last = n - 1;
    }
    let column = cx.aten("unsqueeze", [&this.into(), &Value::int(-1)])?;
    let repeated = cx.aten("expand", [&column, &size_list(&sizes)])?;
    let powers = cx.aten("cumprod", [&repeated, &Value::int(-1)])?;
    Ok(vec![cx.aten("cat", [&Value::List(vec![ones, powers]), &Value::int(-1)])?])
}

fn vander(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let sizes = cx.meta(this).sizes.clone();
    let [n] = &sizes[..] else {
        return Err(args.bad_shape("x must be a one-dimensional tensor."));
    };
    let Some(n) = args.opt_int(1)?.or(n.as_int()) else {
        return Err(args.unsupported("as many powers as there are elements need a number of elements that is known"));
    };
    if n < 0 {
        return Err(args.invalid("N must be non-negative."));
    }
    let mut res = match n {
        0 | 1 => {
            let dtype = cx.meta(this).dtype;
            cx.aten_with("ones", [&size_list(&[sizes[0].clone(), SymInt::from(n)])], &[("dtype", Value::DType(dtype))])?
        }
        _ => cx.aten_with("linalg_vander", [&this.into()], &[("N", Value::int(n))])?,
    };
    if !args.bool(2)? {
        res = cx.aten("flip", [&res, &Value::ints(&[-1])])?;
    }
    Ok(vec![res])
}

fn pad_sequence(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (sequences, is_batch_first) = (args.tensors(0)?, args.bool(1)?);
    let is_left = match args.str(3)? {
        "left" => true,
        "right" => false,
        other => {
            return Err(args.invalid(format!("Expected padding_side to be one of left or right, but got {other}.")));
        }
    };
    let lengths: Option<Vec<i64>> = sequences.iter().map(|it| cx.meta(**it).sizes.first()?.as_int()).collect();
    let Some(lengths) = lengths else {
        return Err(args.unsupported("sequences of lengths that are not known"));
    };
    let Some(longest) = lengths.iter().max() else {
        return Err(args.invalid("received an empty list of sequences"));
    };
    // All become what the first one is.
    let dtype = cx.meta(*sequences[0]).dtype;
    let padded = sequences.iter().zip(&lengths).map(|(sequence, length)| {
        let meta = cx.meta(**sequence);
        let (rank, is_other) = (meta.sizes.len(), meta.dtype != dtype);
        let mut sequence = Traced::from(**sequence);
        if is_other {
            sequence = cx.aten_with("_to_copy", [&sequence], &[("dtype", Value::DType(dtype))])?;
        }
        let mut pads = vec![0; 2 * rank];
        pads[2 * rank - if is_left { 2 } else { 1 }] = longest - length;
        cx.aten("constant_pad_nd", [&sequence, &Value::ints(&pads), &args.values[2]])
    });
    let padded = padded.collect::<Result<Vec<_>>>()?;
    Ok(vec![cx.aten("stack", [&Value::List(padded), &Value::int(i64::from(!is_batch_first))])?])
}

fn renorm(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (this, p, largest) = (*args.tensor(0)?, args.float(1)?, args.float(3)?);
    let rank = cx.meta(this).sizes.len();
    if rank < 2 {
        return Err(args.bad_shape(format!("renorm: input needs at least 2 dimensions, got {rank} dimensions")));
    }
    if p <= 0.0 {
        return Err(args.invalid("renorm: non-positive-norm not supported"));
    }
    if largest < 0.0 {
        return Err(args.invalid(format!("renorm: expected maxnorm to be >= 0 but got {largest}")));
    }
    let dim = normalize_dim(args, args.int(2)?, rank)? as i64;
    let others: Vec<i64> = (0..rank as i64).filter(|it| *it != dim).collect();
    let call = [&this.into(), &Value::Float(p), &Value::ints(&others), &Value::Bool(true)];
    let norm = cx.aten("linalg_vector_norm", call)?;
    let raised = cx.aten("add.Scalar", [&norm, &Value::Float(1e-7)])?;
    let inverse = cx.aten("reciprocal", [&raised])?;
    let factor = cx.aten("mul.Scalar", [&inverse, &Value::Float(largest)])?;
    let is_large = cx.aten("gt.Scalar", [&norm, &Value::Float(largest)])?;
    let ones = cx.aten("ones_like", [&factor])?;
    let factor = cx.aten("where.self", [&is_large, &factor, &ones])?;
    let res = cx.aten("mul.Tensor", [&this.into(), &factor])?;
    Ok(vec![cx.aten("contiguous", [&res])?])
}
