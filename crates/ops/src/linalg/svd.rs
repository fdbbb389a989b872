//! Eigenvalues of symmetric matrices, singular values, and what is made of them: norms, ranks, pseudo-inverses.
//!
//! The signs of vectors are free; they may be others than those of PyTorch.

use crate::core::decompositions::{Call, size_list};
use crate::core::infer::sized_dim;
use crate::linalg::factorisation_gradient;
use crate::linalg::triangular::{TOLERANCE, columns, firsts, least, shape, tensor};
use crate::{Args, Cx, OpDef, Output, Tags, Traced, Value, normalize_dim, real_of};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor \
         eigenvectors)",
        eigh,
    )
    .tolerance(TOLERANCE)
    .vjp(factorisation_gradient::eigh)
    .doc("The eigenvalues of symmetric matrices in rising order, and their vectors as columns."),
    composite(
        "aten::linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
        |cx, args| firsts(cx, args, "_linalg_eigh", 2),
    )
    .doc("The eigenvalues of symmetric matrices in rising order, and their vectors as columns."),
    composite("aten::linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor", |cx, args| {
        Ok(vec![cx.aten("_linalg_eigh", [&args.values[0], &args.values[1], &Value::Bool(false)])?])
    })
    .doc("The eigenvalues of symmetric matrices in rising order."),
    OpDef::new(
        "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> \
         (Tensor U, Tensor S, Tensor Vh)",
        svd,
    )
    .tolerance(TOLERANCE)
    .vjp(factorisation_gradient::svd)
    .doc("Orthogonal matrices around the singular values, which fall."),
    composite(
        "aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, \
         Tensor Vh)",
        |cx, args| decomposed(cx, &args.values[0], args.bool(1)?),
    )
    .doc("Orthogonal matrices around the singular values, which fall."),
    composite("aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", |cx, args| {
        Ok(vec![singular_values(cx, &args.values[0])?])
    })
    .doc("The singular values, which fall."),
    composite(
        "aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
        old_svd,
    )
    .doc("Orthogonal matrices around the singular values; the second one not transposed."),
    composite(
        "aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool \
         hermitian=False) -> Tensor",
        |cx, args| pseudo_inverse(cx, args, Bounds::given(args, 1, 2), args.bool(3)?),
    )
    .vjp(factorisation_gradient::pseudo_inverse)
    .doc("The pseudo-inverse of Moore and Penrose."),
    composite(
        "aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool \
         hermitian=False) -> Tensor",
        |cx, args| pseudo_inverse(cx, args, Bounds::given(args, 1, 2), args.bool(3)?),
    )
    .tags(Tags::NOT_DECOMPOSED)
    .vjp(factorisation_gradient::pseudo_inverse)
    .doc("The pseudo-inverse of Moore and Penrose."),
    composite(
        "aten::linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
        |cx, args| pseudo_inverse(cx, args, Bounds::relative(args), args.bool(2)?),
    )
    .vjp(factorisation_gradient::pseudo_inverse)
    .doc("The pseudo-inverse of Moore and Penrose."),
    composite("aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", |cx, args| {
        pseudo_inverse(cx, args, Bounds::relative(args), args.bool(2)?)
    })
    .vjp(factorisation_gradient::pseudo_inverse)
    .doc("The pseudo-inverse of Moore and Penrose."),
    composite("aten::pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor", |cx, args| {
        pseudo_inverse(cx, args, Bounds::relative(args), false)
    })
    .vjp(factorisation_gradient::pseudo_inverse)
    .doc("The pseudo-inverse of Moore and Penrose."),
    composite(
        "aten::linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool \
         hermitian=False) -> Tensor",
        |cx, args| rank(cx, args, Bounds::given(args, 1, 2), args.bool(3)?),
    )
    .doc("How many singular values are not nearly zero."),
    composite(
        "aten::linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool \
         hermitian=False) -> Tensor",
        |cx, args| rank(cx, args, Bounds::given(args, 1, 2), args.bool(3)?),
    )
    .doc("How many singular values are not nearly zero."),
    composite(
        "aten::linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
        |cx, args| {
            rank(cx, args, Bounds { absolute: args.values[1].clone(), relative: Value::Float(0.0) }, args.bool(2)?)
        },
    )
    .doc("How many singular values are greater than a bound."),
    composite("aten::linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", |cx, args| {
        rank(cx, args, Bounds { absolute: args.values[1].clone(), relative: Value::Float(0.0) }, args.bool(2)?)
    })
    .doc("How many singular values are greater than a bound."),
    composite(
        "aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, \
         ScalarType? dtype=None) -> Tensor",
        |cx, args| matrix_norm(cx, args, Norm::Number(args.float(1)?)),
    )
    .tags(Tags::OWN_DTYPE)
    .doc("The norm of matrices."),
    composite(
        "aten::linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, \
         *, ScalarType? dtype=None) -> Tensor",
        |cx, args| matrix_norm(cx, args, Norm::named(args)?),
    )
    .tags(Tags::OWN_DTYPE)
    .doc("The norm of matrices."),
    composite(
        "aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? \
         dtype=None) -> Tensor",
        norm,
    )
    .tags(Tags::OWN_DTYPE)
    .doc("The norm of vectors or matrices."),
    composite(
        "aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? \
         dtype=None) -> Tensor",
        norm,
    )
    .tags(Tags::OWN_DTYPE)
    .doc("The norm of matrices."),
    composite("aten::nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", |cx, args| {
        let call = [&args.values[0], &Value::Str("nuc".into()), &Value::ints(&[-2, -1]), &args.values[1]];
        Ok(vec![cx.aten("linalg_matrix_norm.str_ord", call)?])
    })
    .doc("The sum of the singular values."),
    composite("aten::nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", |cx, args| {
        let call = [&args.values[0], &Value::Str("nuc".into()), &args.values[1], &args.values[2]];
        Ok(vec![cx.aten("linalg_matrix_norm.str_ord", call)?])
    })
    .doc("The sum of the singular values."),
    composite("aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", |cx, args| {
        let call = [&args.values[0], &Value::Float(2.0), &args.values[1], &args.values[2]];
        Ok(vec![cx.aten("linalg_vector_norm", call)?])
    })
    .doc("The root of the sum of squares."),
    composite("aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", norm_except_dim)
        .doc("The norm over all dimensions but one."),
    composite("aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", |cx, args| {
        let [own, other] = [cx.meta(*args.tensor(0)?), cx.meta(*args.tensor(1)?)];
        if own.dtype != other.dtype {
            let what = format!("expected scalar type {} but found {}", own.dtype.cpp_name(), other.dtype.cpp_name());
            return Err(Diagnostic::new(Code::DTypeMismatch, what));
        }
        sized_dim(args, args.int(2)?, own.sizes.len())?;
        let [direction, length] = [0, 1].map(|index| cx.aten("contiguous", [&args.values[index]]));
        let (direction, length) = (direction?, length?);
        let norm = cx.aten("norm_except_dim", [&direction, &Value::int(2), &args.values[2]])?;
        let factor = cx.aten("div.Tensor", [&length, &norm])?;
        Ok(vec![cx.aten("mul.Tensor", [&direction, &factor])?])
    })
    .doc("A direction with the length that is given for each slice."),
];

type Meta<'a> = Args<'a, TensorMeta>;
const fn composite(schema: &'static str, decompose: crate::Decompose) -> OpDef {
    OpDef::composite(schema, decompose).tolerance(TOLERANCE)
}

fn eigh(args: &Meta<'_>) -> Result<Vec<Output>> {
    let meta = args.tensor(0)?;
    let (lead, n, _) = shape(args, meta, true)?;
    if !matches!(args.str(1)?, "L" | "U" | "l" | "u") {
        return Err(args.invalid(format!("Expected UPLO argument to be 'L' or 'U', but got {}", args.str(1)?)));
    }
    let vectors =
        if args.bool(2)? { columns(meta.dtype, &meta.sizes, &[]) } else { tensor(meta.dtype, &[], &[&SymInt::ZERO]) };
    Ok(vec![tensor(real_of(meta.dtype), &lead, &[&n]), vectors])
}

fn svd(args: &Meta<'_>) -> Result<Vec<Output>> {
    let meta = args.tensor(0)?;
    let (lead, rows, cols) = shape(args, meta, false)?;
    let n = least(&rows, &cols);
    let values = tensor(real_of(meta.dtype), &lead, &[&n]);
    if !args.bool(2)? {
        let none = || tensor(meta.dtype, &[], &[&SymInt::ZERO]);
        return Ok(vec![none(), values, none()]);
    }
    let (left, right) = if args.bool(1)? { (&rows, &cols) } else { (&n, &n) };
    Ok(vec![columns(meta.dtype, &lead, &[&rows, left]), values, columns(meta.dtype, &lead, &[right, &cols])])
}

fn decomposed(cx: &mut Cx<'_>, matrix: &Traced, is_full: bool) -> Result<Vec<Traced>> {
    cx.aten_all("_linalg_svd", [matrix, &Value::Bool(is_full), &Value::Bool(true)], &[])
}

fn singular_values(cx: &mut Cx<'_>, matrix: &Traced) -> Result<Traced> {
    let results = cx.aten_all("_linalg_svd", [matrix, &Value::Bool(false), &Value::Bool(false)], &[])?;
    Ok(results.into_iter().nth(1).unwrap_or(Value::None))
}

fn old_svd(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    if args.bool(2)? {
        let mut results = decomposed(cx, &this.into(), !args.bool(1)?)?;
        results[2] = cx.aten("mH", [&results[2]])?;
        return Ok(results);
    }
    let values = singular_values(cx, &this.into())?;
    let meta = cx.meta(this).clone();
    let (lead, [rows, cols]) = meta.sizes.split_at(meta.sizes.len() - 2) else {
        unreachable!("the singular values are those of matrices");
    };
    let mut zeros = |n: &SymInt| {
        let sizes = lead.iter().chain([n, n]).cloned().map(Value::Int).collect();
        cx.aten_with("zeros", [&Value::List(sizes)], &[("dtype", Value::DType(meta.dtype))])
    };
    let (left, right) = (zeros(rows)?, zeros(cols)?);
    Ok(vec![left, values, cx.aten("mT", [&right])?])
}

/// Below which singular values count as zero: numbers, tensors of one for each matrix, or nothing.
struct Bounds {
    absolute: Traced,
    /// A part of the greatest one.
    relative: Traced,
}

impl Bounds {
    fn given(args: &Call<'_>, absolute: usize, relative: usize) -> Self {
        Bounds { absolute: args.values[absolute].clone(), relative: args.values[relative].clone() }
    }

    fn relative(args: &Call<'_>) -> Self {
        Bounds { absolute: Value::Float(0.0), relative: args.values[1].clone() }
    }
}

/// Which singular values count, by these bounds.
fn bounded(cx: &mut Cx<'_>, args: &Call<'_>, values: &Traced, bounds: &Bounds) -> Result<Traced> {
    let meta = cx.meta(*args.tensor(0)?).clone();
    let epsilon = if real_of(meta.dtype) == DType::Float64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let sizes: Option<Vec<i64>> = meta.sizes.iter().rev().take(2).map(SymInt::as_int).collect();
    let Some(longest) = sizes.and_then(|it| it.into_iter().max()) else {
        return Err(args.unsupported("singular values of a matrix whose sizes are not known"));
    };
    let default = epsilon * longest as f64;
    // A relative bound is there by default unless an absolute one is given.
    let relative = match (&bounds.relative, &bounds.absolute) {
        (Value::None, Value::Tensor(_)) => {
            let is_given = cx.aten("gt.Scalar", [&bounds.absolute, &Value::int(0)])?;
            cx.aten("where.Scalar", [&is_given, &Value::Float(0.0), &Value::Float(default)])?
        }
        (Value::None, absolute) => {
            let is_given = absolute.as_scalar().is_some_and(|it| it.to_f64() > 0.0);
            Value::Float(if is_given { 0.0 } else { default })
        }
        (given, _) => given.clone(),
    };
    // A tensor has one number for each matrix.
    let along = |cx: &mut Cx<'_>, it: Traced| match it {
        Value::Tensor(_) => cx.aten("unsqueeze", [&it, &Value::int(-1)]),
        number => Ok(number),
    };
    let (relative, absolute) = (along(cx, relative)?, along(cx, bounds.absolute.clone())?);
    let largest = cx.aten("amax", [values, &Value::ints(&[-1]), &Value::Bool(true)])?;
    let bound = cx.aten("mul.Tensor", [&largest, &relative])?;
    let bound = match absolute {
        Value::Tensor(_) => cx.aten("maximum", [&bound, &absolute])?,
        Value::None => cx.aten("clamp_min", [&bound, &Value::Float(0.0)])?,
        number => cx.aten("clamp_min", [&bound, &number])?,
    };
    cx.aten("gt.Tensor", [values, &bound])
}

fn pseudo_inverse(cx: &mut Cx<'_>, args: &Call<'_>, bounds: Bounds, is_hermitian: bool) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let meta = cx.meta(this).clone();
    let is_empty = meta.sizes.contains(&SymInt::ZERO);
    shape(args, &meta, is_hermitian && !is_empty)?;
    let is_complex = |it: &Traced| matches!(it, Value::Tensor(it) if cx.meta(*it).dtype.is_complex());
    if let Some(name) = [(&bounds.absolute, "atol"), (&bounds.relative, "rcond")].iter().find(|it| is_complex(it.0)) {
        return Err(args.invalid(format!("torch.linalg.pinv: {} tensor of complex type is not supported.", name.1)));
    }
    if is_empty {
        let turned = cx.aten("mT", [&this.into()])?;
        return Ok(vec![cx.aten("zeros_like", [&turned])?]);
    }
    let results = decomposed(cx, &this.into(), false)?;
    let [left, values, right] = &results[..] else { unreachable!("there are three parts") };
    let counts = bounded(cx, args, values, &bounds)?;
    let inverse = cx.aten("reciprocal", [values])?;
    let zeros = cx.aten("zeros_like", [values])?;
    let inverse = cx.aten("where.self", [&counts, &inverse, &zeros])?;
    let inverse = cx.aten("unsqueeze", [&inverse, &Value::int(-2)])?;
    let right = cx.aten("mH", [right])?;
    let scaled = cx.aten("mul.Tensor", [&right, &inverse])?;
    let left = cx.aten("mH", [left])?;
    Ok(vec![cx.aten("matmul", [&scaled, &left])?])
}

fn rank(cx: &mut Cx<'_>, args: &Call<'_>, bounds: Bounds, is_hermitian: bool) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let meta = cx.meta(this).clone();
    // Without elements the rank is zero, of matrices of any dtype and form.
    if let [lead @ .., _, _] = &meta.sizes[..]
        && meta.sizes.contains(&SymInt::ZERO)
    {
        return Ok(vec![cx.aten_with("zeros", [&size_list(lead)], &[("dtype", Value::DType(DType::Int64))])?]);
    }
    shape(args, &meta, is_hermitian)?;
    let values = singular_values(cx, &this.into())?;
    let counts = bounded(cx, args, &values, &bounds)?;
    Ok(vec![cx.aten("sum.dim_IntList", [&counts, &Value::ints(&[-1])])?])
}

/// Which norm of matrices.
#[derive(Clone, Copy, PartialEq)]
enum Norm {
    Frobenius,
    Nuclear,
    /// Of the sums of columns (1), of rows (infinity), of singular values (2): the largest, or the least where negative.
    Number(f64),
}

impl Norm {
    fn named(args: &Call<'_>) -> Result<Self> {
        match args.str(1)? {
            "fro" => Ok(Norm::Frobenius),
            "nuc" => Ok(Norm::Nuclear),
            other => Err(args.invalid(format!("linalg.matrix_norm: Order {other} not supported."))),
        }
    }
}

fn matrix_norm(cx: &mut Cx<'_>, args: &Call<'_>, norm: Norm) -> Result<Vec<Traced>> {
    norm_of_matrices(cx, args, norm, args.ints(2)?)
}

fn norm_of_matrices(cx: &mut Cx<'_>, args: &Call<'_>, norm: Norm, dims: Vec<i64>) -> Result<Vec<Traced>> {
    let (mut this, keeps) = (args.values[0].clone(), args.bool(3)?);
    let meta = cx.meta(*args.tensor(0)?).clone();
    let rank = meta.sizes.len();
    if rank < 2 {
        return Err(args.bad_shape("linalg.matrix_norm: The input tensor A must have at least 2 dimensions."));
    }
    let [first, second] = dims[..] else {
        return Err(args.invalid(format!("linalg.matrix_norm: dim must be a 2-tuple. Got {dims:?}")));
    };
    let (row, col) = (normalize_dim(args, first, rank)?, normalize_dim(args, second, rank)?);
    if row == col {
        return Err(args.invalid(format!("linalg.matrix_norm: dims must be different. Got ({first}, {second})")));
    }
    if !meta.dtype.is_float() && !meta.dtype.is_complex() {
        let what = format!(
            "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {}",
            meta.dtype.name()
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if let Some(dtype) = args.opt_dtype(4)? {
        this = cx.aten_with("_to_copy", [&this], &[("dtype", Value::DType(dtype))])?;
    }
    let at = |dim: usize| Value::ints(&[dim as i64]);
    let extreme = |number: f64| if number > 0.0 { "amax" } else { "amin" };
    match norm {
        Norm::Frobenius => {
            let dims = Value::ints(&[row as i64, col as i64]);
            Ok(vec![cx.aten("linalg_vector_norm", [&this, &Value::Float(2.0), &dims, &Value::Bool(keeps)])?])
        }
        Norm::Number(number) if number.abs() == 1.0 || number.is_infinite() => {
            let (summed, left) = if number.is_infinite() { (col, row) } else { (row, col) };
            let sums = cx.aten("linalg_vector_norm", [&this, &Value::Float(1.0), &at(summed), &Value::Bool(true)])?;
            let mut res = cx.aten(extreme(number), [&sums, &at(left), &Value::Bool(true)])?;
            if !keeps {
                res = cx.aten("squeeze.dims", [&res, &Value::ints(&[row as i64, col as i64])])?;
            }
            Ok(vec![res])
        }
        Norm::Nuclear | Norm::Number(_) => {
            if !matches!(norm, Norm::Nuclear | Norm::Number(2.0 | -2.0)) {
                return Err(args.invalid("linalg.matrix_norm: Order not supported."));
            }
            let call = [&this, &Value::ints(&[row as i64, col as i64]), &Value::ints(&[-2, -1])];
            let moved = cx.aten("movedim.intlist", call)?;
            let values = singular_values(cx, &moved)?;
            let op = match norm {
                Norm::Number(number) => extreme(number),
                Norm::Nuclear | Norm::Frobenius => "sum.dim_IntList",
            };
            let mut res = cx.aten(op, [&values, &Value::ints(&[-1])])?;
            if keeps {
                for dim in [row.min(col), row.max(col)] {
                    res = cx.aten("unsqueeze", [&res, &Value::int(dim as i64)])?;
                }
            }
            Ok(vec![res])
        }
    }
}

/// Of vectors, unless two dimensions are named or the order is one of matrices.
fn norm(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let rank = cx.meta(this).sizes.len();
    let dims = if args.is_none(2) { None } else { Some(args.ints(2)?) };
    let is_named = matches!(args.values[1], Value::Str(_));
    let has_order = !args.is_none(1);
    if has_order
        && let Some(dims) = &dims
        && !(1..=2).contains(&dims.len())
    {
        return Err(
            args.invalid(format!("linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dims:?}"))
        );
    }
    if has_order && dims.is_none() && !(1..=2).contains(&rank) {
        return Err(args.bad_shape("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D."));
    }
    let n_dims = dims.as_ref().map_or(rank, Vec::len);
    if is_named || (has_order && n_dims == 2) {
        let order = if is_named { Norm::named(args)? } else { Norm::Number(args.float(1)?) };
        return norm_of_matrices(cx, args, order, dims.unwrap_or(vec![0, 1]));
    }
    let order = if has_order { args.float(1)? } else { 2.0 };
    let call = [&this.into(), &Value::Float(order), &args.values[2], &args.values[3]];
    let res = cx.aten_with("linalg_vector_norm", call, &[("dtype", args.values[4].clone())])?;
    Ok(vec![res])
}

fn norm_except_dim(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let (power, dim, rank) = (args.int(1)? as f64, args.int(2)?, cx.meta(this).sizes.len());
    if dim == -1 {
        return Ok(vec![cx.aten("linalg_vector_norm", [&this.into(), &Value::Float(power)])?]);
    }
    let dim = sized_dim(args, dim, rank)?;
    let others: Vec<i64> = (0..rank).filter(|it| *it != dim).map(|it| it as i64).collect();
    if others.is_empty() {
        // Of every number by itself.
        let apart = cx.aten("unsqueeze", [&this.into(), &Value::int(-1)])?;
        return Ok(vec![cx.aten("linalg_vector_norm", [&apart, &Value::Float(power), &Value::ints(&[-1])])?]);
    }
    let call = [&this.into(), &Value::Float(power), &Value::ints(&others), &Value::Bool(true)];
    let res = cx.aten("linalg_vector_norm", call)?;
    Ok(vec![res])
}
