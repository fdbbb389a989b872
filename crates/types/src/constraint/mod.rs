//! Constraints on types, generated from a graph and transformed until they are equalities of types and relations of sizes:
//! `torch.fx.experimental.migrate_gradual_types`.
//!
//! They print as torch.fx prints them, variables numbered alike.

mod broadcast;
mod generate;
mod generate_functions;
mod lower;
mod reshape;
mod transform;

pub use generate::{
    ConstraintGenerator, Constraints, Symbol, evaluate_conditional_with_constraints, transform_all_constraints,
};

use crate::Window;
use std::fmt;

/// The largest rank of a tensor that the constraints know.
pub const MAX_TENSOR_RANK: usize = 4;

/// A dimension in a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DimTerm {
    /// Nothing is known of it.
    Dyn,
    /// A size.
    Size(i64),
    /// A dimension variable.
    Var(u32),
}

/// A type in a constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeTerm {
    /// Nothing is known of it.
    Dyn,
    /// A tensor variable.
    Var(u32),
    /// A tensor of these dimensions.
    Tensor(Vec<DimTerm>),
}

/// An expression of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeTerm {
    /// A dimension.
    Dim(DimTerm),
    /// The product of dimensions.
    Prod(Vec<DimTerm>),
    /// Two expressions under `+`, `-`, `*`, `/` or `%`.
    Binary(Arithmetic, Box<SizeTerm>, Box<SizeTerm>),
}

/// What an expression of sizes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`, rounded down.
    Div,
    /// `%`
    Mod,
}

/// A relation of dimensions or types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are the same.
    Eq,
    /// They are not the same.
    Ne,
    /// `≤`
    Le,
    /// `<`
    Lt,
    /// `>`
    Gt,
    /// One value may have both.
    Consistency,
    /// The first says at most as much as the second.
    Precision,
    /// The first is a tensor of the dimensions of the second, or all are unknown.
    Matching,
}

/// A constraint on the variables of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// Nothing is required.
    True,
    /// It cannot hold.
    False,
    /// All of them hold.
    Conj(Vec<Constraint>),
    /// One of them holds.
    Disj(Vec<Constraint>),
    /// A relation of types.
    Type(TypeTerm, Relation, TypeTerm),
    /// The rank of a tensor is at most this.
    RankLe(u32, usize),
    /// A relation of sizes.
    Dim(SizeTerm, Relation, SizeTerm),
    /// A boolean variable says whether the constraint holds.
    Bool(u32, Box<Constraint>),
    /// `res` is the most precise type that both say.
    TGreatestUpperBound {
        /// The result.
        res: u32,
        /// Both types.
        rhs: [u32; 2],
    },
    /// `res` is the most precise dimension that both say.
    DGreatestUpperBound {
        /// The result.
        res: DimTerm,
        /// Both dimensions.
        rhs: [DimTerm; 2],
    },
    /// The tensor has as many elements as the shape.
    CanReshape {
        /// The tensor.
        src: u32,
        /// The shape.
        target: Vec<DimTerm>,
    },
    /// A tensor of this rank with one dimension replaced.
    IndexSelect {
        /// The rank.
        tensor_size: usize,
        /// The tensor.
        input: u32,
        /// The dimension that is put in.
        dim_replace: DimTerm,
        /// Where it is put in.
        index: i64,
        /// The result.
        output: u32,
    },
    /// A tensor of this rank with two dimensions swapped.
    Transpose {
        /// The rank.
        tensor_size: usize,
        /// The tensor.
        input: u32,
        /// The dimensions.
        index: [i64; 2],
        /// The result.
        output: u32,
    },
    /// One dimension of a tensor of this rank.
    GetItem {
        /// The rank.
        tensor_size: usize,
        /// Which dimension.
        index: i64,
        /// The dimension.
        res: DimTerm,
        /// The tensor.
        input: u32,
    },
    /// A tensor of this rank indexed with `None` (true) and `:` (false).
    GetItemTensor {
        /// The rank.
        tensor_size: usize,
        /// The index.
        index: Vec<bool>,
        /// The result.
        res: u32,
        /// The tensor.
        input: u32,
    },
    /// A convolution.
    CalcConv {
        /// The result.
        res: u32,
        /// The tensor.
        input: u32,
        /// The channels that come out.
        c_out: i64,
        /// The window.
        window: Window,
        /// The dimensions of the tensor.
        dims: [DimTerm; 4],
    },
    /// A pooling.
    CalcMaxPool {
        /// The result.
        res: u32,
        /// The tensor.
        input: u32,
        /// The window.
        window: Window,
        /// The dimensions of the tensor.
        dims: [DimTerm; 4],
    },
    /// Two tensors broadcast against each other.
    ApplyBroadcasting {
        /// The results.
        res: [u32; 2],
        /// The tensors.
        input: [u32; 2],
    },
    /// A tensor with dimensions `start..end` as one.
    CalcProduct {
        /// The first of them.
        start: usize,
        /// The end of them.
        end: usize,
        /// The result.
        flattened: u32,
        /// All dimensions.
        dims: Vec<DimTerm>,
    },
}

impl From<DimTerm> for SizeTerm {
    fn from(dim: DimTerm) -> Self {
        SizeTerm::Dim(dim)
    }
}

impl From<i64> for SizeTerm {
    fn from(size: i64) -> Self {
        SizeTerm::Dim(DimTerm::Size(size))
    }
}

impl SizeTerm {
    fn binary(op: Arithmetic, a: impl Into<SizeTerm>, b: impl Into<SizeTerm>) -> Self {
        SizeTerm::Binary(op, Box::new(a.into()), Box::new(b.into()))
    }
}

impl Constraint {
    fn types(a: impl Into<TypeTerm>, b: impl Into<TypeTerm>) -> Self {
        Constraint::Type(a.into(), Relation::Eq, b.into())
    }

    fn eq(a: impl Into<SizeTerm>, b: impl Into<SizeTerm>) -> Self {
        Constraint::Dim(a.into(), Relation::Eq, b.into())
    }

    fn ne(a: impl Into<SizeTerm>, b: impl Into<SizeTerm>) -> Self {
        Constraint::Dim(a.into(), Relation::Ne, b.into())
    }

    fn le(a: impl Into<SizeTerm>, b: impl Into<SizeTerm>) -> Self {
        Constraint::Dim(a.into(), Relation::Le, b.into())
    }

    fn naturals(dims: &[DimTerm]) -> impl Iterator<Item = Constraint> + '_ {
        dims.iter().map(|it| Constraint::le(0, *it))
    }

    fn of_bool(it: bool) -> Self {
        if it { Constraint::True } else { Constraint::False }
    }
}

impl From<u32> for TypeTerm {
    fn from(var: u32) -> Self {
        TypeTerm::Var(var)
    }
}

impl From<&[DimTerm]> for TypeTerm {
    fn from(dims: &[DimTerm]) -> Self {
        TypeTerm::Tensor(dims.to_vec())
    }
}

impl From<&Vec<DimTerm>> for TypeTerm {
    fn from(dims: &Vec<DimTerm>) -> Self {
        TypeTerm::Tensor(dims.clone())
    }
}

/// Numbers the variables of all kinds, as torch.fx does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter(u32);

impl Counter {
    fn var(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }

    fn dim(&mut self) -> DimTerm {
        DimTerm::Var(self.var())
    }

    fn dims(&mut self, n: usize) -> Vec<DimTerm> {
        (0..n).map(|_| self.dim()).collect()
    }

    fn dims4(&mut self) -> [DimTerm; 4] {
        [self.dim(), self.dim(), self.dim(), self.dim()]
    }
}

fn joined<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for DimTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DimTerm::Dyn => f.write_str("Dyn"),
            DimTerm::Size(it) => it.fmt(f),
            DimTerm::Var(it) => write!(f, "DV({it})"),
        }
    }
}

impl fmt::Display for TypeTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeTerm::Dyn => f.write_str("Dyn"),
            TypeTerm::Var(it) => write!(f, "TV({it})"),
            TypeTerm::Tensor(dims) => write!(f, "TensorType[[{}]]", joined(dims)),
        }
    }
}

impl fmt::Display for SizeTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeTerm::Dim(it) => it.fmt(f),
            SizeTerm::Prod(dims) => write!(f, "Product([{}])", joined(dims)),
            SizeTerm::Binary(op, a, b) => write!(f, "({a} {op} {b})"),
        }
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arithmetic::Add => "+",
            Arithmetic::Sub => "-",
            Arithmetic::Mul => "*",
            Arithmetic::Div => "/",
            Arithmetic::Mod => "%",
        })
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Relation::Eq => "=",
            Relation::Ne => "!=",
            Relation::Le => "\u{2264}",
            Relation::Lt => "<",
            Relation::Gt => ">",
            Relation::Consistency => "~",
            Relation::Precision => "\u{2291}",
            Relation::Matching => "\u{22b3}",
        })
    }
}

struct Pair([i64; 2]);

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.0[0], self.0[1])
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constraint::True => f.write_str("True"),
            Constraint::False => f.write_str("False"),
            Constraint::Conj(items) => write!(f, "And([{}])", joined(items)),
            Constraint::Disj(items) => write!(f, "Or([{}])", joined(items)),
            Constraint::Type(a, op, b) => write!(f, "({a} {op} {b})"),
            Constraint::RankLe(var, rank) => write!(f, "(TV({var}) \u{2264} {rank})"),
            Constraint::Dim(a, op, b) => write!(f, "({a} {op} {b})"),
            Constraint::Bool(var, it) => write!(f, "(BV({var}) = {it})"),
            Constraint::TGreatestUpperBound { res, rhs: [a, b] } => write!(f, "TV({res}) = TV({a})\u{2294}*TV({b})"),
            Constraint::DGreatestUpperBound { res, rhs: [a, b] } => write!(f, "{res} = {a}\u{2294}{b}"),
            Constraint::CanReshape { src, target } => {
                write!(f, "can-reshape(TV({src}), TensorType[[{}]])", joined(target))
            }
            Constraint::IndexSelect { tensor_size, input, dim_replace, index, output } => {
                write!(
                    f,
                    " TV({output}) = IndexSelect(TV({input}), tensor_size: {tensor_size}, {dim_replace}, {index})"
                )
            }
            Constraint::Transpose { tensor_size, input, index: [a, b], output } => {
                write!(f, " TV({output}) = Transpose(TV({input}), tensor_size: {tensor_size}, {a}, {b})")
            }
            Constraint::GetItem { tensor_size, index, res, input } => {
                write!(f, " {res} = GetItem(TV({input}), tensor_size: {tensor_size}, {index})")
            }
            Constraint::GetItemTensor { tensor_size, index, res, input } => {
                let text = |it: &bool| if *it { "None" } else { "slice(None, None, None)" };
                let index = index.iter().map(text).collect::<Vec<_>>().join(", ");
                write!(f, " TV({res}) = GetItemT(TV({input}), tensor_size: {tensor_size}, ({index}))")
            }
            Constraint::CalcConv { res, input, c_out, window, .. } => {
                let [kernel, padding, stride, dilation] = window_pairs(window);
                write!(f, "TV({res}) = calc-conv(TV({input}), {c_out}, {kernel}, {padding}, {stride}, {dilation})")
            }
            Constraint::CalcMaxPool { res, input, window, .. } => {
                let [kernel, padding, stride, dilation] = window_pairs(window);
                write!(f, "TV({res}) = calc-maxpool(TV({input}),  {kernel}, {padding}, {stride}, {dilation})")
            }
            Constraint::ApplyBroadcasting { res: [a, b], input: [x, y] } => {
                write!(f, "TV({a}), TV({b}) = apply-broadcasting(TV({x}), TV({y}))")
            }
            Constraint::CalcProduct { start, end, flattened, dims } => {
                write!(f, "TV({flattened}) = CalcProduct({start}, {end}, [{}])", joined(dims))
            }
        }
    }
}

fn window_pairs(window: &Window) -> [Pair; 4] {
    [Pair(window.kernel_size), Pair(window.padding), Pair(window.stride), Pair(window.dilation)]
}
