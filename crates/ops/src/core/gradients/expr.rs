//! Formulas that are calls of operators when they are asked for, so that gradients which nobody wants are not computed.

use crate::{Cx, TensorRef, Traced, Value};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
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
    Call {
        op: Cow<'static, str>,
        args: Vec<Expr>,
        kwargs: Vec<(&'static str, Traced)>,
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

    /// The first result of a call of this operator.
    pub fn call(op: impl Into<Cow<'static, str>>, args: impl IntoIterator<Item = Expr>) -> Self {
        Expr::call_with(op, args, &[])
    }

    /// The first result of a call of this operator, with keyword arguments.
    pub fn call_with(
        op: impl Into<Cow<'static, str>>,
        args: impl IntoIterator<Item = Expr>,
        kwargs: &[(&'static str, Traced)],
    ) -> Self {
        Expr(Rc::new(Node::Call { op: op.into(), args: args.into_iter().collect(), kwargs: kwargs.to_vec() }))
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
            Node::List(items) => {
                vec![Value::List(items.iter().map(|it| it.eval(cx, memo)).collect::<Result<_>>()?)]
            }
            Node::Call { op, args, kwargs } => {
                let args = args.iter().map(|it| it.eval(cx, memo)).collect::<Result<Vec<_>>>()?;
                cx.call(op, &args, kwargs)?
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
                Expr::call($op, [self, other.into()])
            }
        }
        impl<T: Into<Expr>> std::ops::$trait<T> for &Expr {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                Expr::call($op, [self.clone(), other.into()])
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
    Add add "aten.add.Tensor" |number, it: Expr| it + number;
    Sub sub "aten.sub.Tensor" |number: f64, it: Expr| Expr::call("aten.rsub.Scalar", [it, number.into()]);
    Mul mul "aten.mul.Tensor" |number, it: Expr| it * number;
    Div div "aten.div.Tensor" |number, it: Expr| it.unary("aten.reciprocal.default") * number;
}

impl std::ops::Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        self.unary("aten.neg.default")
    }
}

impl std::ops::Neg for &Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        self.unary("aten.neg.default")
    }
}

/// The operators that formulas use most, by their names.
macro_rules! unary {
    ($($name:ident)*) => {$(
        #[doc = concat!("`aten.", stringify!($name), "` of this.")]
        #[must_use]
        pub fn $name(&self) -> Expr {
            self.unary(concat!("aten.", stringify!($name), ".default"))
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
                Some(_) => concat!("aten.", stringify!($name), ".Scalar"),
                None => concat!("aten.", stringify!($name), ".Tensor"),
            };
            Expr::call(op, [self.clone(), other])
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
        Expr::call(op, [self.clone()])
    }

    /// This to a power.
    #[must_use]
    pub fn pow(&self, exponent: impl Into<Expr>) -> Expr {
        let exponent = exponent.into();
        let op = if exponent.number().is_some() { "aten.pow.Tensor_Scalar" } else { "aten.pow.Tensor_Tensor" };
        Expr::call(op, [self.clone(), exponent])
    }

    /// This times a number, which is often one.
    #[must_use]
    pub fn times(&self, number: Scalar) -> Expr {
        if number.to_complex() == Scalar::Int(1).to_complex() { self.clone() } else { self * number }
    }

    /// This where the mask is not set, and a number elsewhere.
    #[must_use]
    pub fn masked_fill(&self, mask: &Expr, number: impl Into<Expr>) -> Expr {
        Expr::call("aten.masked_fill.Scalar", [self.clone(), mask.clone(), number.into()])
    }

    /// This where the mask is set, and zero elsewhere, whatever it is there.
    #[must_use]
    pub fn where_else_zero(&self, mask: &Expr) -> Expr {
        self.masked_fill(&mask.logical_not(), 0.0)
    }

    /// `self` where the mask is set, `other` elsewhere.
    #[must_use]
    pub fn where_else(&self, mask: &Expr, other: &Expr) -> Expr {
        Expr::call("aten.where.self", [mask.clone(), self.clone(), other.clone()])
    }

    /// The sum over these dimensions, of which size one remains where `keepdim` says so.
    #[must_use]
    pub fn sum_dims(&self, dims: &[i64], keepdim: bool) -> Expr {
        Expr::call("aten.sum.dim_IntList", [self.clone(), dims.into(), keepdim.into()])
    }

    /// The matrix product.
    #[must_use]
    pub fn matmul(&self, other: &Expr) -> Expr {
        Expr::call("aten.matmul.default", [self.clone(), other.clone()])
    }

    /// The two dimensions the other way round.
    #[must_use]
    pub fn transpose(&self, a: i64, b: i64) -> Expr {
        Expr::call("aten.transpose.int", [self.clone(), a.into(), b.into()])
    }

    /// The conjugate transpose of the last two dimensions.
    #[must_use]
    pub fn adjoint(&self) -> Expr {
        self.transpose(-2, -1).conj()
    }

    /// Repeated without a copy to these sizes.
    #[must_use]
    pub fn expand(&self, sizes: &[SymInt]) -> Expr {
        Expr::call("aten.expand.default", [self.clone(), sizes.into()])
    }

    /// The same elements in these sizes.
    #[must_use]
    pub fn reshape(&self, sizes: &[SymInt]) -> Expr {
        Expr::call("aten.reshape.default", [self.clone(), sizes.into()])
    }

    /// With a dimension of size one put in.
    #[must_use]
    pub fn unsqueeze(&self, dim: i64) -> Expr {
        Expr::call("aten.unsqueeze.default", [self.clone(), dim.into()])
    }

    /// Without this dimension of size one.
    #[must_use]
    pub fn squeeze(&self, dim: i64) -> Expr {
        Expr::call("aten.squeeze.dim", [self.clone(), dim.into()])
    }

    /// One slice of a dimension.
    #[must_use]
    pub fn narrow(&self, dim: i64, start: impl Into<Expr>, end: impl Into<Expr>) -> Expr {
        Expr::call("aten.slice.Tensor", [self.clone(), dim.into(), start.into(), end.into()])
    }

    /// Row-major in memory, copied where it is not.
    #[must_use]
    pub fn contiguous(&self) -> Expr {
        let format = Value::MemoryFormat(MemoryFormat::Contiguous);
        Expr::call_with("aten.clone.default", [self.clone()], &[("memory_format", format)])
    }
}
