//! [`Type`]: what is known of a value's shape, and how two such types compare.

use std::fmt;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_sym::{Parser, SymInt, Symbol};

/// One dimension of a [`Type::Tensor`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Nothing is known of it.
    Dyn,
    /// Its size.
    Size(i64),
    /// An unknown that stands for the same size wherever it appears; inference makes them.
    Var(u32),
    /// A size in terms of others.
    Expr(SymInt),
}

/// What is known of a value: `torch.fx.tensor_type`. It is what a node's annotation says, in PyTorch's notation.
///
/// ```
/// use tracefx_types::{Dim, Type, is_consistent, is_more_precise};
/// let image: Type = "TensorType[(1, 3, Dyn, Dyn)]".parse().unwrap();
/// let square = Type::tensor([Dim::Size(1), Dim::Size(3), Dim::Size(8), Dim::Size(8)]);
/// assert!(is_consistent(&image, &square));
/// assert!(is_more_precise(&square, &image) && !is_more_precise(&image, &square));
/// assert_eq!(image.to_string(), "TensorType[(1, 3, Dyn, Dyn)]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Nothing is known of it.
    Dyn,
    /// An integer.
    Int,
    /// A tensor of these dimensions.
    Tensor(Vec<Dim>),
    /// An unknown type.
    Var(u32),
    /// The types of several values.
    Seq(Vec<Type>),
    /// An annotation that is none of these; it is kept and says nothing.
    Other(String),
}

impl Type {
    /// A tensor of these dimensions.
    pub fn tensor(dims: impl Into<Vec<Dim>>) -> Self {
        Type::Tensor(dims.into())
    }

    /// The dimensions, of a tensor.
    pub fn dims(&self) -> Option<&[Dim]> {
        match self {
            Type::Tensor(dims) => Some(dims),
            Type::Dyn | Type::Int | Type::Var(_) | Type::Seq(_) | Type::Other(_) => None,
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Dyn => f.write_str("Dyn"),
            Dim::Size(it) => it.fmt(f),
            Dim::Var(it) => write!(f, "~{it}"),
            Dim::Expr(it) => it.fmt(f),
        }
    }
}

fn write_tuple<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    f.write_str("(")?;
    for (at, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if at > 0 { ", " } else { "" })?;
    }
    f.write_str(if items.len() == 1 { ",)" } else { ")" })
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn => f.write_str("Dyn"),
            Type::Int => f.write_str("int"),
            Type::Var(it) => write!(f, "~{it}"),
            Type::Tensor(dims) => {
                f.write_str("TensorType[")?;
                write_tuple(f, dims)?;
                f.write_str("]")
            }
            Type::Seq(items) => write_tuple(f, items),
            Type::Other(it) => f.write_str(it),
        }
    }
}

impl std::str::FromStr for Type {
    type Err = Diagnostic;

    /// Reads an annotation. What is no type of this module is [`Type::Other`].
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let inner = text.strip_prefix("TensorType").map(|it| unwrapped(unwrapped(it)));
        match (text, inner) {
            ("Dyn", _) => Ok(Type::Dyn),
            ("int", _) => Ok(Type::Int),
            (_, None) => match text.strip_prefix('~').and_then(|it| it.parse().ok()) {
                Some(var) => Ok(Type::Var(var)),
                None => Ok(Type::Other(text.to_string())),
            },
            (_, Some(inner)) => {
                let dims = inner.split(',').map(str::trim).filter(|it| !it.is_empty()).map(dim);
                Ok(Type::Tensor(dims.collect::<Result<_>>()?))
            }
        }
    }
}

fn dim(text: &str) -> Result<Dim> {
    let refuse = || {
        Diagnostic::new(Code::TypeInconsistent, format!("`{text}` is no dimension of a TensorType"))
            .help("a dimension is a number or Dyn, as in TensorType[(1, 3, Dyn)]")
    };
    let var = text.strip_prefix('~').and_then(|it| it.parse().ok());
    match (text, var) {
        ("Dyn", _) => Ok(Dim::Dyn),
        (_, Some(var)) => Ok(Dim::Var(var)),
        (_, None) => expression(text).map(|it| it.as_int().map_or_else(|| Dim::Expr(it), Dim::Size)).ok_or_else(refuse),
    }
}

/// Reads a size in terms of variables. Their names are no names of the grammar, so they have others while it is read.
fn expression(text: &str) -> Option<SymInt> {
    let read = Parser::default().parse_int(&text.replace('~', "variable_")).ok()?;
    let rename = |it: &Symbol| {
        let var = it.name().strip_prefix("variable_")?;
        Some(SymInt::from(Symbol::integer(format!("~{var}"))))
    };
    Some(read.substitute(&rename))
}

/// The text without the brackets around it, if it has some.
fn unwrapped(text: &str) -> &str {
    let text = text.trim();
    let inner = |open, close| text.strip_prefix(open).and_then(|it| it.strip_suffix(close));
    inner('[', ']').or_else(|| inner('(', ')')).unwrap_or(text).trim()
}

fn dims_consistent(a: &Dim, b: &Dim) -> bool {
    a == b || matches!(a, Dim::Dyn | Dim::Var(_)) || matches!(b, Dim::Dyn | Dim::Var(_))
}

/// Whether two types may be types of one value. The relation is reflexive and symmetric, and not transitive.
pub fn is_consistent(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Var(_), _) | (_, Type::Dyn | Type::Var(_)) => true,
        (Type::Tensor(a), Type::Tensor(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| dims_consistent(a, b)),
        (Type::Tensor(_) | Type::Int | Type::Seq(_) | Type::Other(_), _) => a == b,
    }
}

/// Whether one dimension may stand for another: [`is_consistent`] of dimensions.
pub fn is_consistent_dim(a: &Dim, b: &Dim) -> bool {
    dims_consistent(a, b)
}

fn dim_more_precise(a: &Dim, b: &Dim) -> bool {
    a == b || *b == Dim::Dyn
}

/// Whether `a` says at least as much as `b`. The relation is reflexive and transitive.
pub fn is_more_precise(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (_, Type::Dyn) => true,
        (Type::Tensor(a), Type::Tensor(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| dim_more_precise(a, b))
        }
        (Type::Dyn | Type::Tensor(_) | Type::Int | Type::Var(_) | Type::Seq(_) | Type::Other(_), _) => a == b,
    }
}

/// The type that says what both say.
///
/// ```
/// use tracefx_types::{Type, get_greatest_upper_bound};
/// let (a, b): (Type, Type) = ("TensorType[(2, Dyn)]".parse()?, "TensorType[(Dyn, 3)]".parse()?);
/// assert_eq!(get_greatest_upper_bound(&a, &b)?.to_string(), "TensorType[(2, 3)]");
/// assert!(get_greatest_upper_bound(&a, &"TensorType[(4, 3)]".parse()?).is_err());
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `TypeInconsistent` where no value has both types.
pub fn get_greatest_upper_bound(a: &Type, b: &Type) -> Result<Type> {
    match (a, b) {
        (Type::Dyn, other) | (other, Type::Dyn) => Ok(other.clone()),
        (Type::Tensor(x), Type::Tensor(y)) if is_consistent(a, b) => {
            let both = x.iter().zip(y).map(|(x, y)| if dim_more_precise(x, y) { x } else { y });
            Ok(Type::Tensor(both.cloned().collect()))
        }
        (Type::Int | Type::Tensor(_) | Type::Var(_) | Type::Seq(_) | Type::Other(_), _) => {
            Err(inconsistent(format!("Inconsistent types {a}, {b}")))
        }
    }
}

/// The two types as broadcasting makes them: of one length, with each 1 replaced by what it is broadcast to.
///
/// ```
/// use tracefx_types::{Type, broadcast_types};
/// let (a, b): (Type, Type) = ("TensorType[(2, 1, Dyn)]".parse()?, "TensorType[(3, 4)]".parse()?);
/// let (a, b) = broadcast_types(&a, &b)?;
/// assert_eq!([a.to_string(), b.to_string()], ["TensorType[(2, 3, Dyn)]", "TensorType[(2, 3, 4)]"]);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `TypeInconsistent` where one of them is no tensor.
pub fn broadcast_types(a: &Type, b: &Type) -> Result<(Type, Type)> {
    match (a, b) {
        (Type::Dyn | Type::Var(_), _) | (_, Type::Dyn | Type::Var(_)) => Ok((a.clone(), b.clone())),
        (Type::Tensor(x), Type::Tensor(y)) => {
            let n_dims = x.len().max(y.len());
            let pad = |dims: &[Dim]| {
                let mut res = vec![Dim::Size(1); n_dims - dims.len()];
                res.extend_from_slice(dims);
                res
            };
            let (mut x, mut y) = (pad(x), pad(y));
            for (x, y) in x.iter_mut().zip(&mut y) {
                if *x == Dim::Size(1) {
                    x.clone_from(y);
                } else if *y == Dim::Size(1) {
                    y.clone_from(x);
                }
            }
            Ok((Type::Tensor(x), Type::Tensor(y)))
        }
        (Type::Tensor(_) | Type::Int | Type::Seq(_) | Type::Other(_), _) => {
            Err(inconsistent(format!("Cannot broadcast types {a} and {b}")))
        }
    }
}

/// The type as one of a tensor of so many dimensions.
///
/// ```
/// use tracefx_types::{Type, expand_to_tensor_dim};
/// assert_eq!(expand_to_tensor_dim(&Type::Dyn, 2)?.to_string(), "TensorType[(Dyn, Dyn)]");
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `TypeInconsistent` where it is one of another rank, or of no tensor.
pub fn expand_to_tensor_dim(ty: &Type, n_dims: usize) -> Result<Type> {
    match ty {
        Type::Dyn => Ok(Type::Tensor(vec![Dim::Dyn; n_dims])),
        Type::Tensor(dims) if dims.len() == n_dims => Ok(ty.clone()),
        Type::Tensor(dims) => Err(inconsistent(format!(
            "Cannot extend tensor. Tensor {ty} has rank {}. It should have rank {n_dims}",
            dims.len()
        ))),
        Type::Int | Type::Var(_) | Type::Seq(_) | Type::Other(_) => {
            Err(inconsistent(format!("Cannot match the type {ty}")))
        }
    }
}

pub(crate) fn inconsistent(message: String) -> Diagnostic {
    Diagnostic::new(Code::TypeInconsistent, message)
}
