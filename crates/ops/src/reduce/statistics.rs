//! Counts, quantiles and covariances.

use crate::core::decompositions::{Call, tensor_of};
use crate::core::elementwise::operands;
use crate::sort;
use crate::{Args, Cx, OpDef, Operand, Output, Tags, Tol, Traced, Value, contiguous, normalize_dim};
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool \
         invert=False) -> Tensor",
        isin,
    )
    .decompose(sort::decompose::isin)
    .doc("Which elements are among others."),
    OpDef::new(
        "aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool \
         invert=False) -> Tensor",
        isin,
    )
    .decompose(sort::decompose::isin_scalar)
    .doc("Which elements equal a number."),
    OpDef::new(
        "aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool \
         invert=False) -> Tensor",
        isin,
    )
    .decompose(sort::decompose::isin_scalar)
    .doc("Whether a number is among elements."),
    OpDef::new("aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", bincount)
        .tolerance(Tol::Default)
        .tags(Tags::DATA_DEPENDENT_SHAPE)
        .doc("How often each number from zero on occurs, or the sum of its weights."),
    OpDef::new("aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc)
        .no_gradient()
        .doc("How many elements fall into each of so many equal parts of an interval."),
    OpDef::new(
        "aten::quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str \
         interpolation=\"linear\") -> Tensor",
        quantile,
    )
    .decompose(sort::decompose::quantile)
    .tolerance(Tol::Default)
    .doc("The elements below which these parts of all elements lie."),
    OpDef::new(
        "aten::quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str \
         interpolation=\"linear\") -> Tensor",
        quantile,
    )
    .decompose(sort::decompose::quantile)
    .tolerance(Tol::Default)
    .doc("The element below which this part of all elements lies."),
    OpDef::new(
        "aten::nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str \
         interpolation=\"linear\") -> Tensor",
        quantile,
    )
    .decompose(sort::decompose::quantile)
    .tolerance(Tol::Default)
    .doc("Quantiles of what is not NaN."),
    OpDef::new(
        "aten::nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str \
         interpolation=\"linear\") -> Tensor",
        quantile,
    )
    .decompose(sort::decompose::quantile)
    .tolerance(Tol::Default)
    .doc("A quantile of what is not NaN."),
    OpDef::composite(
        "aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
        cov,
    )
    .doc("The covariance of each two rows."),
    OpDef::composite("aten::corrcoef(Tensor self) -> Tensor", corrcoef).doc("The correlation of each two rows."),
];

type Meta<'a> = Args<'a, TensorMeta>;
fn isin(args: &Meta<'_>) -> Result<Vec<Output>> {
    let kind = |it: &Operand<'_, TensorMeta>| match it {
        Operand::Tensor(it) => it.dtype.kind(),
        Operand::Scalar(it) => it.kind(),
    };
    let both = operands(args, 0..2)?;
    if both.iter().any(|it| matches!(kind(it), DTypeKind::Complex | DTypeKind::Bool)) {
        let what = "Unsupported input type encountered for isin(): only numbers that have an order";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let sizes = match both[0] {
        Operand::Tensor(elements) => elements.sizes.clone(),
        Operand::Scalar(_) => Vec::new(),
    };
    Ok(contiguous(DType::Bool, sizes))
}

fn bincount(args: &Meta<'_>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    if this.dtype.kind() > DTypeKind::Int || this.dtype == DType::Bool {
        let what = format!("\"bincount_cpu\" not implemented for '{}'", this.dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if args.int(2)? < 0 {
        return Err(args.invalid("minlength should be >= 0"));
    }
    if this.sizes.len() != 1 {
        return Err(args.bad_shape("bincount only supports 1-d non-negative integral inputs."));
    }
    let weights = args.opt_tensor(1)?;
    if weights.is_some_and(|it| !args.agree(&it.sizes, &this.sizes)) {
        return Err(args.bad_shape("weights should be 1-d and have the same length as input"));
    }
    let dtype = match weights {
        None => DType::Int64,
        Some(it) if it.dtype == DType::Float32 => DType::Float32,
        Some(_) => DType::Float64,
    };
    Ok(vec![Output::unknown(dtype, vec![args.new_size()])])
}

fn histc(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (this, n_bins) = (args.tensor(0)?, args.int(1)?);
    if !this.dtype.is_float() {
        let what = format!("\"histogram_cpu\" not implemented for '{}'", this.dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if n_bins <= 0 {
        return Err(args.invalid(format!("torch.histc(): bins must be > 0, but got {n_bins}")));
    }
    Ok(contiguous(this.dtype, vec![n_bins.into()]))
}

fn quantile(args: &Meta<'_>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    let name = format!("{}()", args.op.schema.name);
    let mut leading = Vec::new();
    match args.operand(1)? {
        Operand::Scalar(q) => {
            if !(0.0..=1.0).contains(&q.to_f64()) {
                return Err(args.invalid(format!("{name} q must be in the range [0, 1] but got {}", q.to_f64())));
            }
        }
        Operand::Tensor(q) => {
            if q.sizes.len() > 1 {
                return Err(args.bad_shape(format!("{name} q must be a scalar or 1D tensor")));
            }
            if q.dtype != this.dtype {
                let what = format!("{name} q tensor must be same dtype as the input tensor");
                return Err(Diagnostic::new(Code::DTypeMismatch, what));
            }
            leading = q.sizes.clone();
        }
    }
    if this.sizes.contains(&SymInt::ZERO) {
        return Err(args.bad_shape(format!("{name} input tensor must be non-empty")));
    }
    if !matches!(this.dtype, DType::Float32 | DType::Float64) {
        let what = format!("{name} input tensor must be either float or double dtype");
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if !["linear", "lower", "higher", "midpoint", "nearest"].contains(&args.str(4)?) {
        let what = format!(
            "{name} interpolation must be one of linear, lower, higher, midpoint or nearest, but got {}",
            args.str(4)?
        );
        return Err(args.invalid(what));
    }
    let keeps = args.bool(3)?;
    let rest: Vec<SymInt> = match args.opt_int(2)? {
        None if keeps => vec![SymInt::ONE; this.sizes.len()],
        None => Vec::new(),
        Some(dim) => {
            let dim = normalize_dim(args, dim, this.sizes.len())?;
            let mut sizes = this.sizes.clone();
            if keeps && !sizes.is_empty() {
                sizes[dim] = SymInt::ONE;
            } else if !sizes.is_empty() {
                sizes.remove(dim);
            }
            sizes
        }
    };
    Ok(contiguous(this.dtype, [leading, rest].concat()))
}

/// Follows `cov` of aten/src/ATen/native/Correlation.cpp.
fn cov(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (this, correction) = (*args.tensor(0)?, args.int(1)?);
    let meta = cx.meta(this).clone();
    if meta.sizes.len() > 2 {
        let rank = meta.sizes.len();
        return Err(args.bad_shape(format!(
            "cov(): expected input to have two or fewer dimensions but got an input with {rank} dimensions"
        )));
    }
    if meta.dtype == DType::Bool {
        return Err(Diagnostic::new(Code::DTypeMismatch, "cov(): bool dtype is not supported for input"));
    }
    let mut rows = Traced::from(this);
    if meta.sizes.len() < 2 {
        rows = cx.aten("view", [&rows, &Value::ints(&[1, -1])])?;
    }
    let n = cx.meta(tensor_of(&rows)).sizes[1].clone();
    for (index, name) in [(2, "fweights"), (3, "aweights")] {
        if let Some(weights) = args.opt_tensor(index)? {
            check_weights(args, cx.meta(*weights), name, &n)?;
        }
    }
    let weights = match (args.opt_tensor(2)?, args.opt_tensor(3)?) {
        (Some(a), Some(b)) => Some(cx.aten("mul.Tensor", [&(*a).into(), &(*b).into()])?),
        (Some(one), None) | (None, Some(one)) => Some(Traced::from(*one)),
        (None, None) => None,
    };
    let weighted = |cx: &mut Cx<'_>, rows: &Traced| match &weights {
        Some(weights) => cx.aten("mul.Tensor", [rows, weights]),
        None => Ok(rows.clone()),
    };
    let dims = || Value::ints(&[1]);
    // The sum of the weights, and what is left of it after the correction.
    let (total, divisor) = match &weights {
        None => {
            let Some(n) = n.as_int() else {
                return Err(args.unsupported("a covariance over a number of observations that is not known"));
            };
            (Value::Float(n as f64), Value::Float((n - correction).max(0) as f64))
        }
        Some(weights) => {
            let total = cx.aten("sum", [weights])?;
            let mut taken = Value::int(correction);
            if let (Some(own), true) = (args.opt_tensor(3)?, correction != 0) {
                let squares = cx.aten("mul.Tensor", [weights, &(*own).into()])?;
                let sum = cx.aten("sum", [&squares])?;
                let mean = cx.aten("div.Tensor", [&sum, &total])?;
                taken = cx.aten("mul.Scalar", [&mean, &Value::int(correction)])?;
            }
            let op = if matches!(taken, Value::Tensor(_)) { "sub.Tensor" } else { "sub.Scalar" };
            let left = cx.aten(op, [&total, &taken])?;
            (total, cx.aten("clamp_min", [&left, &Value::int(0)])?)
        }
    };
    let divided = |cx: &mut Cx<'_>, value: Traced, by: Traced| {
        cx.aten(if matches!(by, Value::Tensor(_)) { "div.Tensor" } else { "div.Scalar" }, [&value, &by])
    };
    let sums = weighted(cx, &rows)?;
    let sums = cx.aten("sum.dim_IntList", [&sums, &dims()])?;
    let means = divided(cx, sums, total)?;
    let means = cx.aten("unsqueeze", [&means, &Value::int(1)])?;
    let centred = cx.aten("sub.Tensor", [&rows, &means])?;
    let other = weighted(cx, &centred)?;
    let other = cx.aten("mH", [&other])?;
    let product = cx.aten("matmul", [&centred, &other])?;
    let res = divided(cx, product, divisor)?;
    Ok(vec![cx.aten("squeeze", [&res])?])
}

fn check_weights(args: &Call<'_>, weights: &TensorMeta, name: &str, n: &SymInt) -> Result<()> {
    let fits = match name {
        "fweights" => weights.dtype.kind() == DTypeKind::Int,
        _ => weights.dtype.is_float(),
    };
    if !fits {
        let kind = if name == "fweights" { "integral" } else { "floating point" };
        return Err(Diagnostic::new(
            Code::DTypeMismatch,
            format!("cov(): expected {name} to have {kind} dtype but got {}", weights.dtype.name()),
        ));
    }
    if weights.sizes.len() > 1 {
        return Err(args.bad_shape(format!("cov(): expected {name} to have one or fewer dimensions")));
    }
    let n_weights: SymInt = weights.sizes.iter().product();
    if n_weights != *n {
        return Err(args.bad_shape(format!(
            "cov(): expected {name} to have the same numel as there are observations in the input but got \
             {n_weights} != {n}"
        )));
    }
    Ok(())
}

fn corrcoef(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let rank = cx.meta(this).sizes.len();
    if rank > 2 {
        return Err(args.bad_shape(format!(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with {rank} dimensions"
        )));
    }
    let cov = cx.aten("cov", [&this.into()])?;
    if cx.meta(tensor_of(&cov)).sizes.is_empty() {
        return Ok(vec![cx.aten("div.Tensor", [&cov, &cov])?]);
    }
    let mut variance = cx.aten("diagonal", [&cov])?;
    if cx.meta(tensor_of(&variance)).dtype.is_complex() {
        variance = cx.aten("real", [&variance])?;
    }
    let deviation = cx.aten("sqrt", [&variance])?;
    let column = cx.aten("unsqueeze", [&deviation, &Value::int(-1)])?;
    let res = cx.aten("div.Tensor", [&cov, &column])?;
    let res = cx.aten("div.Tensor", [&res, &deviation])?;
    if cx.meta(tensor_of(&res)).dtype.is_complex() {
        return Ok(vec![res]);
    }
    // Rounding may lead out of the range of correlations.
    Ok(vec![cx.aten("clamp", [&res, &Value::int(-1), &Value::int(1)])?])
}
