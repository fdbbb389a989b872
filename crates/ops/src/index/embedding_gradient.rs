//! Gradients of tables of which rows are looked up.

use crate::core::gradients::{Backward, Expr};
use tracefx_core::Result;

type Formulas = Result<Vec<Expr>>;

pub(crate) fn embedding(it: &Backward<'_>) -> Formulas {
    let n_rows: Expr = (&it.sizes(0)?[0]).into();
    let call = [it.grad(), it.arg(1), n_rows, it.arg(2), it.arg(3)];
    Ok(vec![Expr::aten("embedding_dense_backward", call)])
}

pub(crate) fn embedding_bag(it: &Backward<'_>) -> Formulas {
    let n_rows: Expr = (&it.sizes(0)?[0]).into();
    let bags = [it.result(1), it.result(2), it.result(3)];
    // All gradients are dense.
    let options = [n_rows, it.arg(3), it.arg(4), false.into(), it.arg(6), it.arg(8)];
    let call = [it.grad(), it.arg(1), it.arg(2)].into_iter().chain(bags).chain(options);
    let table = Expr::aten("_embedding_bag_backward", call);
    let call = [it.grad(), it.arg(0), it.arg(1), it.arg(2), it.result(1), it.arg(4), it.arg(8)];
    let samples = Expr::aten("_embedding_bag_per_sample_weights_backward", call);
    let none = Expr::none;
    Ok(vec![table, none(), none(), none(), none(), none(), samples])
}
