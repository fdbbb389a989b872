//! One call of an operator: its arguments by the names of the schema, and what is known of its results.

use crate::graph::{Dim, GraphBuilder, X};
use crate::translate::Translator;
use std::ops::Deref;
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Result, Scalar};
use tracefx_ir::{Arg, Node, TensorMeta, Val};
use tracefx_ops::{Default, Operand, Schema, TypeOf, Value, promote};
use tracefx_sym::SymInt;

/// A tensor, or a number that only a run tells, as a value of the ONNX graph.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) x: X,
    pub(crate) sizes: Vec<SymInt>,
    /// Whether Python sees a number: an int is an int64 without dimensions, a float a float64.
    pub(crate) is_number: bool,
}

impl Deref for Tensor {
    type Target = X;

    fn deref(&self) -> &X {
        &self.x
    }
}

impl TypeOf for Tensor {
    fn dtype(&self) -> DType {
        self.x.dtype
    }

    fn rank(&self) -> usize {
        self.sizes.len()
    }

    fn is_empty(&self) -> bool {
        self.sizes.iter().any(|it| *it == 0)
    }
}

impl Tensor {
    pub(crate) fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// A size that is known.
    pub(crate) fn size(&self, dim: usize) -> Result<i64> {
        self.sizes[dim].as_int().ok_or_else(|| dynamic("the size of its input"))
    }

    /// The sizes, where all are known.
    pub(crate) fn known_sizes(&self) -> Result<Vec<i64>> {
        (0..self.rank()).map(|dim| self.size(dim)).collect()
    }
}

/// The refusal of something that is only known when the model runs.
pub(crate) fn dynamic(what: &str) -> Diagnostic {
    Diagnostic::new(Code::NotImplemented, format!("{what} is dynamic, and its translation to ONNX needs a number"))
        .help("export the program with this size fixed")
}

/// The most elements that a translation lists: a file may name sizes of any number.
const MOST_LISTED: i64 = 1 << 26;

/// Refuses to list the elements of a tensor of these sizes where they are too many, or negative.
pub(crate) fn check_listed(sizes: &[i64]) -> Result<()> {
    // A walk over rows without elements takes time, too.
    let n = sizes.iter().try_fold(1i64, |n, &it| n.checked_mul(it.max(1)).filter(|_| it >= 0));
    if n.is_some_and(|it| it <= MOST_LISTED) {
        return Ok(());
    }
    let what = format!("the translation lists the elements of a tensor of {sizes:?}, and makes at most {MOST_LISTED}");
    Err(Diagnostic::new(Code::LimitExceeded, what).help("make these sizes smaller"))
}

/// A number that has to be positive, such as a stride.
pub(crate) fn positive(name: &str, it: i64) -> Result<i64> {
    if it > 0 {
        return Ok(it);
    }
    let what = format!("argument `{name}` should be positive but is {it}");
    Err(invalid(what))
}

/// The refusal of an argument that makes no sense.
pub(crate) fn invalid(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::InvalidArgument, what).help("export the program again, or mend this call")
}

/// The refusal of what ONNX cannot say.
pub(crate) fn unsupported(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::NotImplemented, what).help("rewrite this part of the model before the export")
}

/// What a call gives: a value for each result, where it can be told.
pub(crate) struct Results(pub(crate) Vec<Option<X>>);

impl From<X> for Results {
    fn from(it: X) -> Self {
        Results(vec![Some(it)])
    }
}

/// A call that is translated.
pub(crate) struct Call<'a, 'g> {
    pub(crate) translator: &'a mut Translator<'g>,
    pub(crate) node: &'g Node,
    pub(crate) schema: Option<&'static Schema>,
    /// Which results are used.
    pub(crate) used: Vec<bool>,
}

impl Call<'_, '_> {
    /// The graph to add to.
    pub(crate) fn g(&mut self) -> &mut GraphBuilder {
        &mut self.translator.builder
    }

    /// An argument; its default where it is not given.
    pub(crate) fn arg(&self, name: &str) -> Result<Value<Tensor>> {
        let schema = self.schema.expect("operators with arguments by name have a schema");
        let position = schema.args.iter().position(|it| it.name == name);
        let position = position.unwrap_or_else(|| panic!("{schema} has no argument {name}"));
        let given = self.node.args().get(position).or_else(|| self.node.kwarg(name));
        if let Some(given) = given {
            return self.translator.value(given);
        }
        Ok(match &schema.args[position].default {
            None | Some(Default::None | Default::Name(_)) => Value::None,
            Some(Default::Bool(it)) => Value::Bool(*it),
            Some(Default::Int(it)) => Value::int(*it),
            Some(Default::Float(it)) => Value::Float(*it),
            Some(Default::Str(it)) => Value::Str(it.as_str().into()),
            Some(Default::Ints(it)) => Value::ints(it),
        })
    }

    fn wrong(&self, name: &str, wanted: &str, got: &Value<Tensor>) -> Diagnostic {
        let what = format!("argument `{name}` should be {wanted} but is {}", got.kind_name());
        let help = self.schema.map_or(String::new(), |it| format!("the schema is {it}"));
        Diagnostic::new(Code::SchemaMismatch, what).help(help)
    }

    pub(crate) fn tensor(&self, name: &str) -> Result<Tensor> {
        match self.arg(name)? {
            Value::Tensor(it) => Ok(it),
            other => Err(self.wrong(name, "a tensor", &other)),
        }
    }

    pub(crate) fn opt_tensor(&self, name: &str) -> Result<Option<Tensor>> {
        Ok(if let Value::Tensor(it) = self.arg(name)? { Some(it) } else { None })
    }

    /// The tensors of a list; `None` where the list has that.
    pub(crate) fn tensors(&self, name: &str) -> Result<Vec<Option<Tensor>>> {
        match self.arg(name)? {
            Value::List(items) => {
                Ok(items.into_iter().map(|it| if let Value::Tensor(it) = it { Some(it) } else { None }).collect())
            }
            other => Err(self.wrong(name, "a list of tensors", &other)),
        }
    }

    /// A tensor or number as this dtype.
    pub(crate) fn operand(&mut self, name: &str, dtype: DType) -> Result<X> {
        match self.arg(name)? {
            Value::Tensor(it) => self.g().cast(&it, dtype),
            other => match other.as_scalar() {
                Some(scalar) => self.g().scalar(scalar, dtype),
                None => Err(self.wrong(name, "a tensor or number", &other)),
            },
        }
    }

    /// An int that is known.
    pub(crate) fn int(&self, name: &str) -> Result<i64> {
        match self.arg(name)? {
            Value::Int(it) => it.as_int().ok_or_else(|| dynamic(&format!("`{name}`"))),
            Value::Bool(it) => Ok(it.into()),
            Value::Tensor(_) => Err(dynamic(&format!("`{name}`"))),
            other => Err(self.wrong(name, "an int", &other)),
        }
    }

    pub(crate) fn opt_int(&self, name: &str) -> Result<Option<i64>> {
        if matches!(self.arg(name)?, Value::None) { Ok(None) } else { self.int(name).map(Some) }
    }

    /// Ints that are known; none where the argument is `None`.
    pub(crate) fn ints(&self, name: &str) -> Result<Vec<i64>> {
        match self.arg(name)? {
            Value::None => Ok(Vec::new()),
            Value::List(items) => {
                let int = |it: &Value<Tensor>| it.as_scalar().map(Scalar::to_i64).ok_or_else(|| dynamic(name));
                items.iter().map(int).collect()
            }
            other => Ok(vec![other.as_scalar().map(Scalar::to_i64).ok_or_else(|| dynamic(name))?]),
        }
    }

    /// A list of ints for each of so many dimensions, as PyTorch repeats a single one.
    pub(crate) fn spatial(&self, name: &str, n: usize) -> Result<Vec<i64>> {
        let values = self.ints(name)?;
        Ok(if values.len() == 1 { vec![values[0]; n] } else { values })
    }

    pub(crate) fn bool(&self, name: &str) -> Result<bool> {
        Ok(self.arg(name)?.as_scalar().is_some_and(|it| it.to_i64() != 0))
    }

    pub(crate) fn float(&self, name: &str) -> Result<f64> {
        let value = self.arg(name)?;
        value.as_scalar().map(Scalar::to_f64).ok_or_else(|| self.wrong(name, "a number", &value))
    }

    pub(crate) fn opt_float(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.arg(name)?.as_scalar().map(Scalar::to_f64))
    }

    pub(crate) fn str(&self, name: &str) -> Result<Option<String>> {
        Ok(if let Value::Str(it) = self.arg(name)? { Some(it.to_string()) } else { None })
    }

    /// A size, an index: an int that may be dynamic.
    pub(crate) fn dim_of(&mut self, value: &Value<Tensor>) -> Result<Dim> {
        match value {
            Value::Tensor(it) => Ok(Dim::Value(self.g().as_vector(it)?)),
            other => other.as_scalar().map(|it| Dim::Known(it.to_i64())).ok_or_else(|| dynamic("a size")),
        }
    }

    pub(crate) fn dim_arg(&mut self, name: &str) -> Result<Option<Dim>> {
        let value = self.arg(name)?;
        if matches!(value, Value::None) { Ok(None) } else { self.dim_of(&value).map(Some) }
    }

    pub(crate) fn dims(&mut self, name: &str) -> Result<Vec<Dim>> {
        match self.arg(name)? {
            Value::List(items) => items.iter().map(|it| self.dim_of(it)).collect(),
            other => Ok(vec![self.dim_of(&other)?]),
        }
    }

    /// A dimension, counted from the front.
    pub(crate) fn dim(&self, name: &str, rank: usize) -> Result<i64> {
        wrap(self.int(name)?, rank)
    }

    /// The dimensions of a reduction: all where none are given.
    pub(crate) fn reduced(&self, name: &str, rank: usize) -> Result<Vec<i64>> {
        let dims = self.ints(name)?;
        if dims.is_empty() {
            return Ok((0..rank as i64).collect());
        }
        if rank == 0 {
            return Ok(Vec::new());
        }
        dims.iter().map(|&it| wrap(it, rank)).collect()
    }

    /// The dtype that PyTorch computes tensors and numbers of these names in.
    pub(crate) fn promoted(&self, names: &[&str]) -> Result<DType> {
        let values = names.iter().map(|it| self.arg(it)).collect::<Result<Vec<_>>>()?;
        let operand = |value: &'_ Value<Tensor>| -> Option<Scalar> {
            match value {
                Value::Tensor(it) if it.is_number => Some(match it.x.dtype.kind() {
                    DTypeKind::Bool => Scalar::Bool(true),
                    DTypeKind::Int => Scalar::Int(0),
                    DTypeKind::Float | DTypeKind::Complex => Scalar::Float(0.0),
                }),
                other => other.as_scalar(),
            }
        };
        let operands: Vec<Operand<'_, Tensor>> = values
            .iter()
            .filter_map(|it| match (operand(it), it) {
                (Some(scalar), _) => Some(Operand::Scalar(scalar)),
                (None, Value::Tensor(tensor)) => Some(Operand::Tensor(tensor)),
                (None, _) => None,
            })
            .collect();
        Ok(promote(&operands))
    }

    /// What is known of a result.
    pub(crate) fn result(&self, index: usize) -> Result<TensorMeta> {
        let val = match self.node.meta.val.as_ref() {
            Some(Val::Seq { items, .. }) => items.get(index),
            val => val,
        };
        match val {
            Some(Val::Tensor(it)) => Ok(it.clone()),
            Some(Val::Int(_)) => Ok(TensorMeta::contiguous(DType::Int64, Vec::new())),
            Some(Val::Float(_)) => Ok(TensorMeta::contiguous(DType::Float64, Vec::new())),
            Some(Val::Bool(_)) => Ok(TensorMeta::contiguous(DType::Bool, Vec::new())),
            Some(Val::Seq { .. } | Val::None) | None => Err(unknown()),
        }
    }

    /// The dtype of the first result.
    pub(crate) fn dtype(&self) -> Result<DType> {
        self.result(0).map(|it| it.dtype)
    }

    /// A size of a value: a number where it is known, and else asked of the value.
    pub(crate) fn size_of(&mut self, tensor: &Tensor, dim: usize) -> Dim {
        match tensor.sizes[dim].as_int() {
            Some(it) => Dim::Known(it),
            None => Dim::Value(self.g().size_of(&tensor.x, dim as i64)),
        }
    }

    /// All sizes of a value.
    pub(crate) fn sizes_of(&mut self, tensor: &Tensor) -> Vec<Dim> {
        (0..tensor.rank()).map(|dim| self.size_of(tensor, dim)).collect()
    }

    /// The sizes of a value, as a tensor.
    pub(crate) fn shape_of(&mut self, tensor: &Tensor) -> Result<X> {
        match tensor.known_sizes() {
            Ok(sizes) => self.g().vector(&sizes),
            Err(_) => Ok(self.g().shape_of(&tensor.x)),
        }
    }

    /// A constant of this dtype.
    pub(crate) fn number(&mut self, value: f64, dtype: DType) -> Result<X> {
        self.g().number(value, dtype)
    }

    /// An argument of a higher-order operator as it stands.
    pub(crate) fn raw_arg(&self, position: usize) -> Option<&Arg> {
        self.node.args().get(position)
    }
}

/// The refusal of a node of which nothing is noted.
pub(crate) fn unknown() -> Diagnostic {
    Diagnostic::new(Code::GraphInvalid, "nothing is noted of the dtype and sizes of this node")
        .help("export the program again after an edit, or propagate shapes through it")
}

/// A dimension, counted from the front.
pub(crate) fn wrap(dim: i64, rank: usize) -> Result<i64> {
    let n = rank.max(1) as i64;
    if (-n..n).contains(&dim) {
        return Ok(if dim < 0 { dim + n } else { dim });
    }
    Err(Diagnostic::new(Code::IndexOutOfRange, format!("there is no dimension {dim} of {rank}")))
}
