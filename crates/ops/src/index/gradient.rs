//! Gradients of what reads and writes by indices.

use crate::core::gradients::{Backward, Expr};
use tracefx_core::Result;
use tracefx_sym::SymInt;

type Formulas = Result<Vec<Expr>>;

/// Zeros of the sizes of the first argument.
fn zeros(it: &Backward<'_>) -> Result<Expr> {
    Ok(Expr::aten("new_zeros", [it.grad(), it.sizes(0)?.into()]))
}

pub(crate) fn gather(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("scatter_add", [zeros(it)?, it.arg(1), it.arg(2), it.grad()])])
}

pub(crate) fn index_select(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("index_add", [zeros(it)?, it.arg(1), it.arg(2), it.grad()])])
}

pub(crate) fn index(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("index_put", [zeros(it)?, it.arg(1), it.grad(), true.into()])])
}

pub(crate) fn index_put(it: &Backward<'_>) -> Formulas {
    let grad = it.grad();
    let of_self = match it.args.bool(3)? {
        true => grad.clone(),
        false => Expr::aten("index_put", [grad.clone(), it.arg(1), it.arg(2).zeros_like()]),
    };
    Ok(vec![of_self, Expr::none(), Expr::aten("index.Tensor", [grad, it.arg(1)])])
}

/// What is read of a gradient at the indices, with zeros for the rest of a larger source.
fn gathered(it: &Backward<'_>, grad: &Expr) -> Result<Expr> {
    let read = Expr::aten("gather", [grad.clone(), it.arg(1), it.arg(2)]);
    let (index, source) = (it.sizes(2)?, it.sizes(3)?);
    if index == source {
        return Ok(read);
    }
    let rest = |(index, source): (&SymInt, &SymInt)| [SymInt::from(0), source - index];
    let pad: Vec<SymInt> = index.iter().zip(source).rev().flat_map(rest).collect();
    Ok(Expr::aten("constant_pad_nd", [read, pad[..].into()]))
}

/// The gradient where nothing was written.
fn kept(it: &Backward<'_>, grad: &Expr) -> Expr {
    Expr::aten("scatter.value", [grad.clone(), it.arg(1), it.arg(2), 0.into()])
}

pub(crate) fn scatter(it: &Backward<'_>) -> Formulas {
    Ok(vec![kept(it, &it.grad()), Expr::none(), Expr::none(), gathered(it, &it.grad())?])
}

pub(crate) fn scatter_value(it: &Backward<'_>) -> Formulas {
    Ok(vec![kept(it, &it.grad())])
}

pub(crate) fn scatter_add(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad(), Expr::none(), Expr::none(), gathered(it, &it.grad())?])
}

/// What is read for a source; a number takes one place.
fn of_source(it: &Backward<'_>) -> Result<Expr> {
    let sizes = it.sizes(3)?;
    let index = if sizes.is_empty() { it.arg(2).reshape(&[]) } else { it.arg(2) };
    let read = Expr::aten("index_select", [it.grad(), it.arg(1), index]);
    Ok(if sizes.is_empty() { read.reshape(&[]) } else { read.expand(sizes) })
}

pub(crate) fn index_add(it: &Backward<'_>) -> Formulas {
    let alpha = it.args.scalar(4)?;
    Ok(vec![it.grad(), Expr::none(), Expr::none(), of_source(it)?.times(alpha)])
}

pub(crate) fn index_copy(it: &Backward<'_>) -> Formulas {
    let rest = Expr::aten("index_fill.int_Scalar", [it.grad(), it.arg(1), it.arg(2), 0.into()]);
    Ok(vec![rest, Expr::none(), Expr::none(), of_source(it)?])
}

/// A value for many places gets the sum over them, each counted once.
pub(crate) fn index_fill(it: &Backward<'_>) -> Formulas {
    let filled =
        |base: Expr, value: i64| Expr::aten("index_fill.int_Scalar", [base, it.arg(1), it.arg(2), value.into()]);
    let rest = filled(it.grad(), 0);
    let is_filled = filled(it.grad().zeros_like(), 1);
    Ok(vec![rest, Expr::none(), Expr::none(), it.grad().where_else_zero(&is_filled).sum()])
}

pub(crate) fn put(it: &Backward<'_>) -> Formulas {
    let grad = it.grad();
    let of_self = match it.args.bool(3)? {
        true => grad.clone(),
        false => Expr::aten("put", [grad.clone(), it.arg(1), it.arg(2).zeros_like()]),
    };
    let source = Expr::aten("take", [grad, it.arg(1)]).reshape(it.sizes(2)?);
    Ok(vec![of_self, Expr::none(), source])
}

/// How a reduction by indices reads, adds, and reduces.
struct Places<'a> {
    read: &'a dyn Fn(&Expr) -> Expr,
    add: &'a dyn Fn(&Expr, &Expr) -> Expr,
    reduce: &'a dyn Fn(&Expr, &Expr) -> Expr,
    erase: &'a dyn Fn(&Expr) -> Expr,
}

/// The gradients of both sources of a reduction by indices.
fn reduced(it: &Backward<'_>, reduction: &str, includes_self: bool, places: &Places<'_>) -> Formulas {
    let (grad, this, source, result) = (it.grad(), it.arg(0), it.arg(3), it.result(0));
    let (of_self, of_source) = match reduction {
        "sum" => (grad.clone(), (places.read)(&grad)),
        "mean" => {
            let start = if includes_self { grad.ones_like() } else { grad.zeros_like() };
            let count = (places.add)(&start, &source.ones_like());
            let count = count.masked_fill(&count.eq(0), 1.0);
            (&grad / &count, (places.read)(&grad) / (places.read)(&count))
        }
        "prod" => {
            // An element that is zero gets the product of the others, if no other of its place is zero too.
            let own = this.masked_fill(&this.eq(0), 1.0);
            let of_self = &grad * (places.reduce)(&own, &source) / &own;
            let is_zero = source.eq(0);
            let n_zeros = (places.read)(&(places.add)(&this.zeros_like(), &as_number(&is_zero, &source)));
            let is_only = Expr::aten("logical_and", [is_zero.clone(), n_zeros.eq(1)]);
            let others = (places.reduce)(&this, &source.masked_fill(&is_only, 1.0));
            let quotient = (places.read)(&(&grad * &result)) / source.masked_fill(&is_zero, 1.0);
            (of_self, (places.read)(&(&grad * others)).where_else(&is_only, &quotient))
        }
        "amax" | "amin" => {
            let (own, other) = (this.eq(&result), source.eq((places.read)(&result)));
            let n = (places.add)(&as_number(&own, &this), &as_number(&other, &source));
            let share = &grad / n;
            (&share * own, (places.read)(&share) * other)
        }
        other => {
            return Err(it.args.unsupported(format!("the gradient of the reduction {other} is not implemented")));
        }
    };
    let of_self = if includes_self { of_self } else { (places.erase)(&of_self) };
    Ok(vec![of_self, Expr::none(), Expr::none(), of_source])
}

/// A mask as numbers of the kind of another tensor.
fn as_number(mask: &Expr, like: &Expr) -> Expr {
    like.ones_like().where_else_zero(mask)
}

pub(crate) fn scatter_reduce(it: &Backward<'_>) -> Formulas {
    let place = |base: &Expr, source: &Expr| [base.clone(), it.arg(1), it.arg(2), source.clone()];
    let (reduction, includes_self) = (it.arg(4), it.args.values[5].clone());
    let source_sizes = it.sizes(3)?;
    if it.sizes(2)? != source_sizes {
        return Err(it.args.unsupported("the gradient of a reduction of a part of the source is not implemented"));
    }
    reduced(
        it,
        it.args.str(4)?,
        it.args.bool(5)?,
        &Places {
            read: &|from| Expr::aten("gather", [from.clone(), it.arg(1), it.arg(2)]),
            add: &|base, source| Expr::aten("scatter_add", place(base, source)),
            reduce: &|base, source| {
                let args = place(base, source).into_iter().chain([reduction.clone()]);
                Expr::aten_with("scatter_reduce.two", args, &[("include_self", includes_self.clone())])
            },
            erase: &|from| kept(it, from),
        },
    )
}

pub(crate) fn index_reduce(it: &Backward<'_>) -> Formulas {
    let place = |base: &Expr, source: &Expr| [base.clone(), it.arg(1), it.arg(2), source.clone()];
    let (reduction, includes_self) = (it.arg(4), it.args.values[5].clone());
    reduced(
        it,
        it.args.str(4)?,
        it.args.bool(5)?,
        &Places {
            read: &|from| Expr::aten("index_select", [from.clone(), it.arg(1), it.arg(2)]),
            add: &|base, source| Expr::aten("index_add", place(base, source)),
            reduce: &|base, source| {
                let args = place(base, source).into_iter().chain([reduction.clone()]);
                Expr::aten_with("index_reduce", args, &[("include_self", includes_self.clone())])
            },
            erase: &|from| Expr::aten("index_fill.int_Scalar", [from.clone(), it.arg(1), it.arg(2), 0.into()]),
        },
    )
}
