//! Formulas that are calls of operators when they are asked for, so that gradients which nobody wants are not computed.

use crate::{Cx, TensorRef, Traced, Value};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use tracefx_core::{Code, Complex64, Diagnostic, MemoryFormat, Result, Scalar};
use tracefx_sym::SymInt;

/// A formula over the tensors of a call: a tree of operator calls that have not been made yet.
///
/// It lets the gradient of an operator be written as in a book, `grad * x.cos()`, and a gradient that nobody asks for is
/// never computed. Cloning shares: a part that stands in several places is computed once.
#[derive(Clone, Debug)]
pub struct Expr(Rc<Node>);

#[derive(Debug)]
enum Node {
    Value(Traced),
    List(Vec<Expr>),
    Aten {
        op: &'static str,
        args: Vec<Expr>,
        kwargs: Vec<(&'static str, Traced)>,
    },
    /// A call by a qualified name.
    Call {
        op: String,
        args: Vec<Expr>,
    },
    /// Another result of a call than the first.
    Result(Expr, usize),
    /// An item of a list.
    Item(Expr, usize),
    /// The complex conjugate; a real tensor itself.
    Conj(Expr),
    /// A gradient that is not implemented.
    Missing(String),
}

/// The values that parts of formulas have. The formulas must live as long: their parts are known by where they lie.
#[derive(Default)]
pub(super) struct Memo(FxHashMap<*const Node, Vec<Traced>>);

impl Expr {
    /// No tensor: no gradient flows.
    pub fn none() -> Self {
        Value::None.into()
    }

    /// A list of tensors.
    pub fn list(items: impl IntoIterator<Item = Expr>) -> Self {
        Expr(Rc::new(Node::List(items.into_iter().collect())))
    }

    /// The first result of a call of an operator of ATen: `mul.Tensor`, or `exp` for `exp.default`.
    pub fn aten(op: &'static str, args: impl IntoIterator<Item = Expr>) -> Self {
        Expr::aten_with(op, args, &[])
    }

    /// The first result of a call of an operator of ATen, with keyword arguments.
    pub fn aten_with(
        op: &'static str,
        args: impl IntoIterator<Item = Expr>,
        kwargs: &[(&'static str, Traced)],
    ) -> Self {
        Expr(Rc::new(Node::Aten { op, args: args.into_iter().collect(), kwargs: kwargs.to_vec() }))
    }

    /// The first result of a call of an operator by its qualified name, `aten.exp.default`.
    pub fn call(op: impl Into<String>, args: impl IntoIterator<Item = Expr>) -> Self {
        Expr(Rc::new(Node::Call { op: op.into(), args: args.into_iter().collect() }))
    }

    /// Another result of the call whose first result this is.
    #[must_use]
    pub fn result(&self, index: usize) -> Self {
        Expr(Rc::new(Node::Result(self.clone(), index)))
    }

    /// An item of the list that this is; no tensor where it has none there.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        Expr(Rc::new(Node::Item(self.clone(), index)))
    }

    /// A gradient that is not implemented: asking for it says so.
    pub(super) fn missing(what: String) -> Self {
        Expr(Rc::new(Node::Missing(what)))
    }

    /// The number that this is, where it is one.
    pub fn number(&self) -> Option<Scalar> {
        match &*self.0 {
            Node::Value(value) => value.as_scalar(),
            Node::List(_)
            | Node::Aten { .. }
            | Node::Call { .. }
            | Node::Result(..)
            | Node::Item(..)
            | Node::Conj(_)
            | Node::Missing(_) => None,
        }
    }

    /// The items of a list; none of anything else.
    pub(super) fn items(&self) -> &[Expr] {
        match &*self.0 {
            Node::List(items) => items,
            Node::Value(_)
            | Node::Aten { .. }
            | Node::Call { .. }
            | Node::Result(..)
            | Node::Item(..)
            | Node::Conj(_)
            | Node::Missing(_) => &[],
        }
    }

    /// The complex conjugate; a real tensor itself.
    #[must_use]
    pub fn conj(&self) -> Self {
        match self.number() {
            Some(Scalar::Complex(it)) => Scalar::Complex(Complex64 { re: it.re, im: -it.im }).into(),
            Some(Scalar::Bool(_) | Scalar::Int(_) | Scalar::Float(_)) => self.clone(),
            None => Expr(Rc::new(Node::Conj(self.clone()))),
        }
    }

    /// Makes the calls of several formulas, each part once.
    pub(crate) fn compute<const N: usize>(formulas: [Expr; N], cx: &mut Cx<'_>) -> Result<[Traced; N]> {
        let mut memo = Memo::default();
        let mut values = [const { Value::None }; N];
        for (value, formula) in values.iter_mut().zip(&formulas) {
            *value = formula.eval(cx, &mut memo)?;
        }
        Ok(values)
    }

    /// Makes the calls, those that are not in `memo` yet.
    pub(super) fn eval(&self, cx: &mut Cx<'_>, memo: &mut Memo) -> Result<Traced> {
        Ok(self.eval_all(cx, memo)?.into_iter().next().unwrap_or(Value::None))
    }

    fn eval_all(&self, cx: &mut Cx<'_>, memo: &mut Memo) -> Result<Vec<Traced>> {
        if let Some(values) = memo.0.get(&Rc::as_ptr(&self.0)) {
            return Ok(values.clone());
        }
        let values = match &*self.0 {
            Node::Value(value) => return Ok(vec![value.clone()]),
            Node::List(items) => vec![Value::List(eval_each(items, cx, memo)?)],
            Node::Aten { op, args, kwargs } => {
                let args = eval_each(args, cx, memo)?;
                cx.aten_all(op, &args, kwargs)?
            }
            Node::Call { op, args } => {
                let args = eval_each(args, cx, memo)?;
                cx.call(op, &args, &[])?
            }
            Node::Result(call, index) => vec![call.eval_all(cx, memo)?.swap_remove(*index)],
            Node::Item(list, index) => match list.eval(cx, memo)? {
                Value::List(items) => vec![items.get(*index).cloned().unwrap_or(Value::None)],
                _ => vec![Value::None],
            },
            Node::Conj(it) => {
                let value = it.eval(cx, memo)?;
                match value {
                    Value::Tensor(tensor) if cx.meta(tensor).dtype.is_complex() => {
                        vec![cx.aten("conj_physical", [&value])?]
                    }
                    real => vec![real],
                }
            }
            Node::Missing(what) => return Err(Diagnostic::new(Code::NotImplemented, what.clone())),
        };
        memo.0.insert(Rc::as_ptr(&self.0), values.clone());
        Ok(values)
    }
}

fn eval_each(formulas: &[Expr], cx: &mut Cx<'_>, memo: &mut Memo) -> Result<Vec<Traced>> {
    formulas.iter().map(|it| it.eval(cx, memo)).collect()
}

impl From<Traced> for Expr {
    fn from(value: Traced) -> Self {
        Expr(Rc::new(Node::Value(value)))
    }
}

impl From<TensorRef> for Expr {
    fn from(tensor: TensorRef) -> Self {
        Traced::from(tensor).into()
    }
}

impl From<Scalar> for Expr {
    fn from(number: Scalar) -> Self {
        Traced::from(number).into()
    }
}

impl From<f64> for Expr {
    fn from(number: f64) -> Self {
        Traced::Float(number).into()
    }
}

impl From<i64> for Expr {
    fn from(number: i64) -> Self {
        Traced::int(number).into()
    }
}

impl From<bool> for Expr {
    fn from(value: bool) -> Self {
        Traced::Bool(value).into()
    }
}

impl From<&SymInt> for Expr {
    fn from(value: &SymInt) -> Self {
        Traced::Int(value.clone()).into()
    }
}

impl From<&[i64]> for Expr {
    fn from(values: &[i64]) -> Self {
        Traced::ints(values).into()
    }
}

impl From<&[SymInt]> for Expr {
    fn from(values: &[SymInt]) -> Self {
        Traced::List(values.iter().cloned().map(Value::Int).collect()).into()
    }
}

impl From<&Expr> for Expr {
    fn from(it: &Expr) -> Self {
        it.clone()
    }
}

/// `a + b` and the like, for formulas, references to them, and numbers on either side.
macro_rules! arithmetic {
    ($($trait:ident $method:ident $op:literal $reversed:expr;)*) => {$(
        impl<T: Into<Expr>> std::ops::$trait<T> for Expr {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                Expr::aten($op, [self, other.into()])
            }
        }
        impl<T: Into<Expr>> std::ops::$trait<T> for &Expr {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                Expr::aten($op, [self.clone(), other.into()])
            }
        }
        impl std::ops::$trait<Expr> for f64 {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                $reversed(self, other)
            }
        }
        impl std::ops::$trait<&Expr> for f64 {
            type Output = Expr;
            fn $method(self, other: &Expr) -> Expr {
                $reversed(self, other.clone())
            }
        }
    )*};
}

arithmetic! {
    Add add "add.Tensor" |number, it: Expr| it + number;
    Sub sub "sub.Tensor" |number: f64, it: Expr| Expr::aten("rsub.Scalar", [it, number.into()]);
    Mul mul "mul.Tensor" |number, it: Expr| it * number;
    Div div "div.Tensor" |number, it: Expr| it.unary("reciprocal") * number;
}

impl std::ops::Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        self.unary("neg")
    }
}

impl std::ops::Neg for &Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        self.unary("neg")
    }
}

/// The operators that formulas use most, by their names.
macro_rules! unary {
    ($($name:ident)*) => {$(
        #[doc = concat!("`aten.", stringify!($name), "` of this.")]
        #[must_use]
        pub fn $name(&self) -> Expr {
            self.unary(stringify!($name))
        }
    )*};
}

/// Comparisons with a tensor or a number.
macro_rules! compare {
    ($($name:ident)*) => {$(
        #[doc = concat!("`aten.", stringify!($name), "` of this and another.")]
        #[must_use]
        pub fn $name(&self, other: impl Into<Expr>) -> Expr {
            let other = other.into();
            let op = match other.number() {
                Some(_) => concat!(stringify!($name), ".Scalar"),
                None => concat!(stringify!($name), ".Tensor"),
            };
            Expr::aten(op, [self.clone(), other])
        }
    )*};
}

impl Expr {
    unary! {
        abs acos cos cosh digamma erf exp imag isnan log logical_not reciprocal real rsqrt sgn sign sigmoid sin sinh sqrt
        square tan tanh sum zeros_like ones_like bitwise_not
    }

    compare! { eq ne lt le gt ge }

    /// An operator of one tensor.
    #[must_use]
    pub fn unary(&self, op: &'static str) -> Expr {
        Expr::aten(op, [self.clone()])
    }

    /// This to a power.
    #[must_use]
    pub fn pow(&self, exponent: impl Into<Expr>) -> Expr {
        let exponent = exponent.into();
        let op = if exponent.number().is_some() { "pow.Tensor_Scalar" } else { "pow.Tensor_Tensor" };
        Expr::aten(op, [self.clone(), exponent])
    }

    /// This times a number, which is often one.
    #[must_use]
    pub fn times(&self, number: Scalar) -> Expr {
        if number.to_complex() == Scalar::Int(1).to_complex() { self.clone() } else { self * number }
    }

    /// This where the mask is not set, and a number elsewhere.
    #[must_use]
    pub fn masked_fill(&self, mask: &Expr, number: impl Into<Expr>) -> Expr {
        Expr::aten("masked_fill.Scalar", [self.clone(), mask.clone(), number.into()])
    }

    /// This where the mask is set, and zero elsewhere, whatever it is there.
    #[must_use]
    pub fn where_else_zero(&self, mask: &Expr) -> Expr {
        self.masked_fill(&mask.logical_not(), 0.0)
    }

    /// This times a slope, and zero where the mask is set, whatever either is there: the slope is masked too, since the gradient in this
    /// is multiplied with it.
    #[must_use]
    pub fn times_unless(&self, mask: &Expr, slope: &Expr) -> Expr {
        self.masked_fill(mask, 0.0) * slope.masked_fill(mask, 0.0)
    }

    /// `self` where the mask is set, `other` elsewhere.
    #[must_use]
    pub fn where_else(&self, mask: &Expr, other: &Expr) -> Expr {
        Expr::aten("where.self", [mask.clone(), self.clone(), other.clone()])
    }

    /// The sum over these dimensions, of which size one remains where `keepdim` says so.
    #[must_use]
    pub fn sum_dims(&self, dims: &[i64], keepdim: bool) -> Expr {
        Expr::aten("sum.dim_IntList", [self.clone(), dims.into(), keepdim.into()])
    }

    /// The matrix product.
    #[must_use]
    pub fn matmul(&self, other: &Expr) -> Expr {
        Expr::aten("matmul", [self.clone(), other.clone()])
    }

    /// The two dimensions the other way round.
    #[must_use]
    pub fn transpose(&self, a: i64, b: i64) -> Expr {
        Expr::aten("transpose.int", [self.clone(), a.into(), b.into()])
    }

    /// The conjugate transpose of the last two dimensions.
    #[must_use]
    pub fn adjoint(&self) -> Expr {
        self.transpose(-2, -1).conj()
    }

    /// Repeated without a copy to these sizes.
    #[must_use]
    pub fn expand(&self, sizes: &[SymInt]) -> Expr {
        Expr::aten("expand", [self.clone(), sizes.into()])
    }

    /// The same elements in these sizes.
    #[must_use]
    pub fn reshape(&self, sizes: &[SymInt]) -> Expr {
        Expr::aten("reshape", [self.clone(), sizes.into()])
    }

    /// With a dimension of size one put in.
    #[must_use]
    pub fn unsqueeze(&self, dim: i64) -> Expr {
        Expr::aten("unsqueeze", [self.clone(), dim.into()])
    }

    /// Without this dimension of size one.
    #[must_use]
    pub fn squeeze(&self, dim: i64) -> Expr {
        Expr::aten("squeeze.dim", [self.clone(), dim.into()])
    }

    /// One slice of a dimension.
    #[must_use]
    pub fn narrow(&self, dim: i64, start: impl Into<Expr>, end: impl Into<Expr>) -> Expr {
        Expr::aten("slice.Tensor", [self.clone(), dim.into(), start.into(), end.into()])
    }

    /// Row-major in memory, copied where it is not.
    #[must_use]
    pub fn contiguous(&self) -> Expr {
        let format = Value::MemoryFormat(MemoryFormat::Contiguous);
        Expr::aten_with("clone", [self.clone()], &[("memory_format", format)])
    }
}
