//! The gradients of normalisation, as formulas.

use crate::core::decompositions::{Call, computing, to_dtype, widened};
use crate::core::gradients::Expr;
use crate::core::memory_format::memory_format_of;
use crate::{Cx, Traced, Value};
use tracefx_core::{DType, MemoryFormat, Result};
use tracefx_sym::SymInt;

type Results = Result<Vec<Traced>>;

/// The gradients that the mask asks for, in these dtypes.
fn masked(cx: &mut Cx<'_>, args: &Call<'_>, mask: usize, formulas: [Option<Expr>; 3], dtypes: [DType; 3]) -> Results {
    let wanted = args.list(mask)?.to_vec();
    let formulas = std::array::from_fn(|at| match &formulas[at] {
        Some(it) if wanted.get(at) == Some(&Value::Bool(true)) => it.clone(),
        _ => Expr::none(),
    });
    let mut values = Expr::compute::<3>(formulas, cx)?;
    let input = cx.meta(*args.tensor(1)?);
    // The gradient of a layer norm is row-major, whatever the input is.
    let is_layer = args.op.schema.name == "native_layer_norm_backward";
    let format = if is_layer { MemoryFormat::Contiguous } else { memory_format_of(input) };
    if let Value::Tensor(_) = values[0] {
        let format = [("memory_format", Value::MemoryFormat(format))];
        values[0] = cx.aten_with("contiguous", [&values[0]], &format)?;
    }
    let pairs = values.into_iter().zip(dtypes);
    pairs
        .map(|(value, dtype)| match value {
            Value::Tensor(_) => to_dtype(cx, value, dtype),
            nothing => Ok(nothing),
        })
        .collect()
}

fn known(args: &Call<'_>, n: &SymInt) -> Result<i64> {
    let unknown = || args.unsupported("the decomposition of the gradient of a norm takes sizes that are known");
    n.as_int().filter(|it| *it > 0).ok_or_else(unknown)
}

fn dtype_of(cx: &Cx<'_>, args: &Call<'_>, index: usize, default: DType) -> Result<DType> {
    Ok(if args.is_none(index) { default } else { cx.meta(*args.tensor(index)?).dtype })
}

pub(crate) fn layer_norm(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let input = cx.meta(*args.tensor(1)?).clone();
    let rank = input.sizes.len();
    let axis = rank - args.list(2)?.len();
    let n = known(args, &input.sizes[axis..].iter().product())?;
    let n_rows: SymInt = input.sizes[..axis].iter().product();
    if !n_rows.is_symbolic() {
        known(args, &n_rows)?;
    }
    let (it, _) = widened(cx, args)?;
    let (grad, x, weight) = (&it[0], &it[1], &it[5]);
    // Of each row one mean, broadcast over the row.
    let missing = rank - cx.meta(*args.tensor(3)?).sizes.len();
    let wide = |it: &Expr| (0..missing).fold(it.clone(), |it, _| it.unsqueeze(-1));
    let (mean, rstd) = (wide(&it[3]), wide(&it[4]));
    let (outer, inner): (Vec<i64>, Vec<i64>) = (0..rank as i64).partition(|it| *it < axis as i64);
    let normal = (x - mean) * &rstd;
    let of_normal = if args.is_none(5) { grad.clone() } else { grad * weight };
    let a = &of_normal * n;
    let b = of_normal.sum_dims(&inner, true);
    let c = &normal * (&of_normal * &normal).sum_dims(&inner, true);
    let of_input = (rstd / n) * (a - b - c);
    let over_rows = |it: Expr| if outer.is_empty() { it } else { it.sum_dims(&outer, false) };
    let of_weight = (!args.is_none(5)).then(|| over_rows(grad * &normal));
    let of_bias = (!args.is_none(6)).then(|| match outer.is_empty() {
        true => grad.unary("clone"),
        false => over_rows(grad.clone()),
    });
    let dtypes = [input.dtype, dtype_of(cx, args, 5, input.dtype)?, dtype_of(cx, args, 6, input.dtype)?];
    masked(cx, args, 7, [Some(of_input), of_weight, of_bias], dtypes)
}

pub(crate) fn group_norm(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let input = cx.meta(*args.tensor(1)?).clone();
    let [rows, channels, area] = [5, 6, 7].map(|at| args.sym_int(at).cloned());
    let (rows, channels, area) = (rows?, channels?, area?);
    let groups = args.int(8)?;
    let members = known(args, &channels)? / groups;
    let s = 1.0 / (known(args, &area)? * members) as f64;
    let (it, _) = widened(cx, args)?;
    let (grad, x, mean, rstd) = (&it[0], &it[1], &it[2], &it[3]);
    let weight = (!args.is_none(4)).then_some(&it[4]);
    let (groups, members) = (SymInt::from(groups), SymInt::from(members));
    let of_channels = [rows.clone(), channels.clone(), area.clone()];
    let of_groups = [rows.clone(), groups.clone(), members.clone()];
    let whole = [rows, groups.clone(), members.clone(), area];
    // PyTorch views, which a gradient that lies otherwise in memory does not allow.
    let over_area = |it: Expr| it.reshape(&of_channels).sum_dims(&[2], false);
    let (ds, db) = (over_area(grad * x), over_area(grad.clone()));
    let over_group = |it: &Expr| {
        let it = weight.map_or_else(|| it.clone(), |weight| it * weight.unsqueeze(0));
        it.reshape(&of_groups).sum_dims(&[2], false)
    };
    let (ds_value, db_value) = (over_group(&ds), over_group(&db));
    let scale = match weight {
        Some(it) => it.reshape(&[SymInt::ONE, groups, members]),
        None => {
            let ones: Expr = (&[SymInt::ONE, groups, members][..]).into();
            Expr::aten_with("ones", [ones], &[("dtype", Value::DType(computing(input.dtype)))])
        }
    };
    let c1 = rstd.unsqueeze(-1) * scale;
    let c2 = (&db_value * mean - ds_value) * rstd * rstd * rstd * s;
    let c3 = -&c2 * mean - db_value * rstd * s;
    let over_whole = |it: &Expr| it.unsqueeze(-1).unsqueeze(-1);
    let of_input = grad.reshape(&whole) * c1.unsqueeze(-1) + x.reshape(&whole) * over_whole(&c2) + over_whole(&c3);
    let of_input = of_input.reshape(&input.sizes);
    let deviation = ds.reshape(&of_groups) - db.reshape(&of_groups) * mean.unsqueeze(-1);
    let of_weight = (deviation * rstd.unsqueeze(-1)).sum_dims(&[0], false).reshape(&[channels]);
    let of_bias = db.sum_dims(&[0], false);
    let dtype = dtype_of(cx, args, 4, input.dtype)?;
    masked(cx, args, 9, [Some(of_input), Some(of_weight), Some(of_bias)], [input.dtype, dtype, dtype])
}

pub(crate) fn batch_norm(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let input = cx.meta(*args.tensor(1)?).clone();
    let rank = input.sizes.len() as i64;
    let n = known(args, &input.sizes.iter().product())? / known(args, &input.sizes[1])?;
    let (is_training, eps) = (args.bool(7)?, args.float(8)?);
    let (it, _) = widened(cx, args)?;
    let (grad, x) = (&it[0], &it[1]);
    let (mean, rstd) = match is_training {
        true => (it[5].clone(), it[6].clone()),
        false => (it[3].clone(), (&it[4] + eps).rsqrt()),
    };
    let over_rows: Vec<i64> = (0..rank).filter(|it| *it != 1).collect();
    // One number of each channel, broadcast over the input.
    let wide = |it: Expr| over_rows.iter().fold(it, |it, dim| it.unsqueeze(*dim));
    let (mean, norm) = (wide(mean), 1.0 / n as f64);
    let sum = grad.sum_dims(&over_rows, false);
    let dot = (grad * (x - &mean)).sum_dims(&over_rows, false);
    let of_mean = wide(&sum * norm);
    let of_deviation = wide((&dot * norm) * (&rstd * &rstd));
    let scale = if args.is_none(2) { wide(rstd.clone()) * 1.0 } else { wide(&rstd * &it[2]) };
    let of_input = match is_training {
        true => (grad - (x - &mean) * of_deviation - of_mean) * scale,
        false => grad * scale,
    };
    let dtype = dtype_of(cx, args, 2, input.dtype)?;
    masked(cx, args, 9, [Some(of_input), Some(dot * rstd), Some(sum)], [input.dtype, dtype, dtype])
}
