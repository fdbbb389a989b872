//! What decompositions share: the dtype that they compute in, numbers beside tensors, options of new tensors. They make the
//! calls that PyTorch's own make, so that decomposed programs look like PyTorch's; each is beside its operator's row.

use crate::core::gradients::Expr;
use crate::{Args, Cx, Operand, TensorRef, Traced, Value, promote, promote_types};
use tracefx_core::{DType, DTypeKind, Device, Layout, Result, Scalar};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The arguments of a call that is decomposed.
pub(crate) type Call<'a> = Args<'a, TensorRef>;

impl Cx<'_> {
    /// What is known of a value that is a tensor.
    pub(crate) fn meta_of(&self, value: &Traced) -> &TensorMeta {
        self.meta(tensor_of(value))
    }
}

/// The decomposition of an operator that is another name of one with the same arguments.
pub(crate) fn forward(cx: &mut Cx<'_>, args: &Call<'_>, op: &str) -> Result<Vec<Traced>> {
    let specs = args.op.schema.args.iter();
    let (named, positional): (Vec<_>, Vec<_>) = specs.zip(&args.values).partition(|(spec, _)| spec.is_kwarg_only);
    let named: Vec<_> = named.into_iter().map(|(spec, value)| (spec.name.as_str(), value.clone())).collect();
    Ok(vec![cx.aten_with(op, positional.into_iter().map(|(_, value)| value), &named)?])
}

/// Sizes as an argument.
pub(crate) fn size_list(sizes: &[SymInt]) -> Traced {
    Value::List(sizes.iter().cloned().map(Value::Int).collect())
}

/// The tensor that a call of an operator gave.
pub(crate) fn tensor_of(value: &Traced) -> TensorRef {
    match value {
        Value::Tensor(it) => *it,
        other => unreachable!("an operator of the registry gave a {} instead of a tensor", other.kind_name()),
    }
}

/// The dimension as an argument.
pub(crate) fn dim(dim: usize) -> Traced {
    Value::int(dim as i64)
}

/// The value in this dtype: itself where it has it already.
pub(crate) fn to_dtype(cx: &mut Cx<'_>, value: Traced, dtype: DType) -> Result<Traced> {
    if cx.meta_of(&value).dtype == dtype {
        return Ok(value);
    }
    cx.aten_with("_to_copy", [&value], &[("dtype", Value::DType(dtype))])
}

/// The dtype in which PyTorch computes on elements of this one.
pub(crate) fn computing(dtype: DType) -> DType {
    match dtype {
        DType::Float16 | DType::BFloat16 => DType::Float32,
        DType::Complex32 => DType::Complex64,
        other => other,
    }
}

/// What becomes of ints where an operator computes on elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ints {
    Stay,
    BecomeFloats,
}

/// Computes on the first `n` arguments in the dtype that PyTorch computes in, and rounds to the one that they promote to:
/// the wrapper of PyTorch's elementwise references.
pub(crate) fn promoted(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    n: usize,
    ints: Ints,
    compute: impl FnOnce(&mut Cx<'_>, &[Traced]) -> Result<Traced>,
) -> Result<Vec<Traced>> {
    let mut dtype = {
        let mut operands = Vec::new();
        for index in (0..n).filter(|&it| !args.is_none(it)) {
            operands.push(match args.operand(index)? {
                Operand::Tensor(it) => Operand::Tensor(cx.meta(*it)),
                Operand::Scalar(it) => Operand::Scalar(it),
            });
        }
        promote(&operands)
    };
    if ints == Ints::BecomeFloats && matches!(dtype.kind(), DTypeKind::Bool | DTypeKind::Int) {
        dtype = DType::Float32;
    }
    let mut values = args.values.clone();
    for value in &mut values[..n] {
        if let Value::Tensor(_) = value {
            *value = to_dtype(cx, value.clone(), computing(dtype))?;
        }
    }
    let res = compute(cx, &values)?;
    // The answer to a question has no precision.
    if cx.meta_of(&res).dtype != computing(dtype) {
        return Ok(vec![res]);
    }
    Ok(vec![to_dtype(cx, res, dtype)?])
}

/// The arguments as parts of formulas, and the dtype of the tensors among them: they come in the dtype that PyTorch
/// computes in.
pub(crate) fn widened(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<(Vec<Expr>, DType)> {
    let tensors = args.values.iter().filter_map(|it| match it {
        Value::Tensor(tensor) => Some(Operand::Tensor(cx.meta(*tensor))),
        _ => None,
    });
    let dtype = promote(&tensors.collect::<Vec<_>>());
    let wide = |it: &Traced| match it {
        Value::Tensor(_) => to_dtype(cx, it.clone(), computing(dtype)),
        other => Ok(other.clone()),
    };
    let values: Vec<Traced> = args.values.iter().map(wide).collect::<Result<_>>()?;
    Ok((values.into_iter().map(Expr::from).collect(), dtype))
}

/// Computes in float32 where the arguments are of half types, and rounds the result to the dtype it has without that:
/// `pw_cast_for_opmath` of torch/_decomp/decompositions.py.
pub(crate) fn in_float32(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    body: impl FnOnce(&mut Cx<'_>, &[Traced]) -> Result<Traced>,
) -> Result<Traced> {
    let mut values = args.values.clone();
    let mut narrow = None;
    for value in &mut values {
        let Value::Tensor(tensor) = value else { continue };
        let dtype = cx.meta(*tensor).dtype;
        if dtype.is_float() && dtype.size() == 2 {
            // Two kinds of half types meet in float32.
            narrow = Some(narrow.map_or(dtype, |it| promote_types(it, dtype)));
            *value = to_dtype(cx, value.clone(), DType::Float32)?;
        } else if dtype.is_float() {
            // With a wider float beside it, the result is wide too.
            return body(cx, &args.values);
        }
    }
    let res = body(cx, &values)?;
    match narrow {
        Some(narrow) => to_dtype(cx, res, narrow),
        None => Ok(res),
    }
}

/// Computes a formula over the arguments in the dtype that PyTorch computes in, and rounds to the one that the tensors
/// promote to: `pw_cast_for_opmath` of torch/_decomp/decompositions.py.
pub(crate) fn formula(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    of: impl FnOnce(&[Expr]) -> Result<Expr>,
) -> Result<Vec<Traced>> {
    let (values, dtype) = widened(cx, args)?;
    let [res] = Expr::compute([of(&values)?], cx)?;
    Ok(vec![to_dtype(cx, res, dtype)?])
}

/// A number as a tensor without dimensions, beside a tensor.
pub(crate) fn scalar_tensor(cx: &mut Cx<'_>, value: &Traced, dtype: DType) -> Result<Traced> {
    let device = Value::Device(Device::cpu());
    let options = [("dtype", Value::DType(dtype)), ("layout", Value::Layout(Layout::Strided)), ("device", device)];
    cx.aten_with("scalar_tensor", [value], &options)
}

/// `where`, of which numbers may be parts: in the dtype of the other part.
pub(crate) fn choose(cx: &mut Cx<'_>, condition: &Traced, yes: &Traced, no: &Traced) -> Result<Traced> {
    match (yes, no) {
        (Value::Tensor(_), Value::Tensor(_)) => cx.aten("where.self", [condition, yes, no]),
        (Value::Tensor(_), _) => {
            let dtype = with_number(cx.meta_of(yes), no);
            let no = scalar_tensor(cx, no, dtype)?;
            cx.aten("where.self", [condition, yes, &no])
        }
        (_, Value::Tensor(_)) => {
            let dtype = with_number(cx.meta_of(no), yes);
            let yes = scalar_tensor(cx, yes, dtype)?;
            cx.aten("where.self", [condition, &yes, no])
        }
        (_, _) => {
            let operands = [yes, no].map(|it| Operand::<TensorMeta>::Scalar(number(it)));
            let dtype = promote(&operands);
            let no = scalar_tensor(cx, no, dtype)?;
            let yes = scalar_tensor(cx, yes, dtype)?;
            cx.aten("where.self", [condition, &yes, &no])
        }
    }
}

/// The tensor with a number in some places, in its own dtype.
pub(crate) fn fill_places(cx: &mut Cx<'_>, x: &Traced, places: &Traced, value: &Traced) -> Result<Traced> {
    let dtype = cx.meta_of(x).dtype;
    let value = scalar_tensor(cx, value, dtype)?;
    cx.aten("where.self", [places, &value, x])
}

fn number(value: &Traced) -> Scalar {
    value.as_scalar().unwrap_or(Scalar::Int(0))
}

pub(crate) fn with_number(tensor: &TensorMeta, value: &Traced) -> DType {
    promote(&[Operand::Tensor(tensor), Operand::Scalar(number(value))])
}

/// The keyword arguments of a new tensor: as given, else those of a tensor or PyTorch's defaults.
pub(crate) fn options(args: &Call<'_>, dtype: DType, device: &Device) -> Vec<(&'static str, Traced)> {
    let given = |name: &str| args.position(name).map(|at| args.values[at].clone()).filter(|it| *it != Value::None);
    vec![
        ("dtype", given("dtype").unwrap_or(Value::DType(dtype))),
        ("layout", given("layout").unwrap_or(Value::Layout(Layout::Strided))),
        ("device", given("device").unwrap_or_else(|| Value::Device(device.clone()))),
        ("pin_memory", given("pin_memory").unwrap_or(Value::Bool(false))),
    ]
}

/// The ints from zero on.
pub(crate) fn arange(cx: &mut Cx<'_>, end: &SymInt, dtype: Option<DType>) -> Result<Traced> {
    let mut options = vec![
        ("layout", Value::Layout(Layout::Strided)),
        ("device", Value::Device(Device::cpu())),
        ("pin_memory", Value::Bool(false)),
    ];
    if let Some(dtype) = dtype {
        options.insert(0, ("dtype", Value::DType(dtype)));
    }
    cx.aten_with("arange.start_step", [&Value::int(0), &Value::Int(end.clone())], &options)
}
