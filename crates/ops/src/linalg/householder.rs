//! Orthogonal factorisations of matrices, and the reflections that they are made of.

use crate::linalg::factorisation_gradient;
use crate::linalg::triangular::{TOLERANCE, columns, firsts, least, shape, tensor};
use crate::{Args, OpDef, Output, Value};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)", qr)
        .tolerance(TOLERANCE)
        .vjp(factorisation_gradient::qr)
        .doc("A matrix with orthogonal columns times an upper triangle."),
    OpDef::composite("aten::qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", |cx, args| {
        let mode = if args.bool(1)? { "reduced" } else { "complete" };
        cx.aten_all("linalg_qr", [&args.values[0], &Value::Str(mode.into())], &[])
    })
    .tolerance(TOLERANCE)
    .doc("A matrix with orthogonal columns times an upper triangle."),
    OpDef::new("aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)", geqrf).tolerance(TOLERANCE).doc(
        "The upper triangle of an orthogonal factorisation, with the reflections that make it below the \
         diagonal and beside.",
    ),
    OpDef::new("aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor", product)
        .tolerance(TOLERANCE)
        .doc("The first columns of a product of reflections."),
    OpDef::composite("aten::orgqr(Tensor self, Tensor input2) -> Tensor", |cx, args| {
        firsts(cx, args, "linalg_householder_product", 1)
    })
    .tolerance(TOLERANCE)
    .doc("The first columns of a product of reflections."),
    OpDef::new(
        "aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
        ormqr,
    )
    .tolerance(TOLERANCE)
    .doc("A matrix times a product of reflections, from the left or from the right."),
];

type Meta<'a> = Args<'a, TensorMeta>;

fn qr(args: &Meta<'_>) -> Result<Vec<Output>> {
    let meta = args.tensor(0)?;
    let (lead, rows, cols) = shape(args, meta, false)?;
    let n = least(&rows, &cols);
    Ok(match args.str(1)? {
        "reduced" => vec![columns(meta.dtype, &lead, &[&rows, &n]), columns(meta.dtype, &lead, &[&n, &cols])],
        "complete" => vec![columns(meta.dtype, &lead, &[&rows, &rows]), columns(meta.dtype, &lead, &[&rows, &cols])],
        "r" => vec![tensor(meta.dtype, &[], &[&SymInt::ZERO]), columns(meta.dtype, &lead, &[&n, &cols])],
        other => {
            let what = format!(
                "qr received unrecognized mode '{other}' but expected one of 'reduced' (default), 'r', or 'complete'"
            );
            return Err(args.invalid(what));
        }
    })
}

fn geqrf(args: &Meta<'_>) -> Result<Vec<Output>> {
    let meta = args.tensor(0)?;
    let (lead, rows, cols) = shape(args, meta, false)?;
    let n = least(&rows, &cols);
    Ok(vec![columns(meta.dtype, &meta.sizes, &[]), tensor(meta.dtype, &lead, &[&n])])
}

/// The rows and columns of the reflections, and how many they are. The factors have the same sizes in front.
fn reflections(args: &Meta<'_>, name: &str) -> Result<(Vec<SymInt>, [SymInt; 3])> {
    let (input, factors) = (args.tensor(0)?, args.tensor(1)?);
    if input.sizes.len() < 2 {
        return Err(args.bad_shape(format!("{name}: input must have at least 2 dimensions.")));
    }
    let (lead, rows, cols) = shape(args, input, false)?;
    let Some((n, factors_lead)) = factors.sizes.split_last().filter(|(_, it)| it.len() == lead.len()) else {
        return Err(args.bad_shape(format!(
            "{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {} and input.ndim \
             is equal to {}",
            factors.sizes.len(),
            input.sizes.len()
        )));
    };
    if factors_lead != lead {
        return Err(args.bad_shape(format!("{name}: the batch dimensions of tau should be equal to those of input")));
    }
    check_dtype(args, name, "tau", 1)?;
    if args.less(&cols, n) {
        return Err(args.bad_shape(format!("{name}: tau.shape[-1] must be less than or equal to input.shape[-1]")));
    }
    Ok((lead, [rows, cols, n.clone()]))
}

fn check_dtype(args: &Meta<'_>, name: &str, what: &str, index: usize) -> Result<()> {
    let (own, other) = (args.tensor(0)?.dtype, args.tensor(index)?.dtype);
    if own == other {
        return Ok(());
    }
    let what = format!(
        "{name}: Expected input and {what} to have the same dtype, but input has dtype {own} and {what} has \
             dtype {other}"
    );
    Err(Diagnostic::new(Code::DTypeMismatch, what))
}

fn product(args: &Meta<'_>) -> Result<Vec<Output>> {
    let name = format!("torch.{}", args.op.schema.name.replace('_', "."));
    let (_, [rows, cols, _]) = reflections(args, &name)?;
    if args.less(&rows, &cols) {
        let what = format!("{name}: input.shape[-2] must be greater than or equal to input.shape[-1]");
        return Err(args.bad_shape(what));
    }
    let meta = args.tensor(0)?;
    Ok(vec![columns(meta.dtype, &meta.sizes, &[])])
}

fn ormqr(args: &Meta<'_>) -> Result<Vec<Output>> {
    let name = "torch.ormqr";
    let (lead, [rows, _, n]) = reflections(args, name)?;
    let other = args.tensor(2)?;
    let [other_lead @ .., other_rows, other_cols] = &other.sizes[..] else {
        return Err(args.bad_shape(format!("{name}: other must have at least 2 dimensions.")));
    };
    let (side, dim) = if args.bool(3)? { (other_rows, -2) } else { (other_cols, -1) };
    if args.less(side, &n) {
        return Err(
            args.bad_shape(format!("{name}: other.shape[{dim}] must be greater than or equal to tau.shape[-1]"))
        );
    }
    if args.differ(side, &rows) {
        return Err(args.bad_shape(format!("{name}: other.shape[{dim}] must be equal to input.shape[-2]")));
    }
    if other_lead != lead {
        return Err(args.bad_shape(format!("{name}: batch dimensions of other should be equal to input.shape[:-2]")));
    }
    check_dtype(args, name, "other", 2)?;
    Ok(vec![columns(other.dtype, &other.sizes, &[])])
}
