//! What is checked of the inputs, in terms of the symbols of their sizes.

use super::{InputChecker, Kind};
use std::collections::BTreeSet;
use tracefx_sym::{Expr, InputProperty, InputSource, SymBool, SymInt, Symbol};

impl InputChecker {
    /// The symbols that the sizes of inputs, or inputs that are numbers, stand for.
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        let exprs = self.inputs.iter().flat_map(|it| match &it.kind {
            Kind::Tensor(Some((_, sizes))) => sizes.as_slice(),
            Kind::Int(Some(it)) => std::slice::from_ref(it),
            Kind::Tensor(None) | Kind::Int(None) | Kind::Float | Kind::Bool | Kind::Constant(_) => &[],
        });
        exprs.flat_map(|it| Expr::Int(it.clone()).symbols()).collect()
    }

    /// The guards in terms of symbols, but for those that look at strides, strings and the like.
    pub fn symbolic_guards(&self) -> Vec<SymBool> {
        self.guards.iter().filter_map(|it| it.symbolic(&|source| self.symbol_at(source)).ok()).collect()
    }

    fn symbol_at(&self, source: &InputSource) -> Option<Expr> {
        let input = &self.inputs[self.position(source)?];
        let size = |sizes: &[SymInt], dim: i64| {
            let at = if dim < 0 { dim.checked_add_unsigned(sizes.len() as u64)? } else { dim };
            sizes.get(usize::try_from(at).ok()?).cloned()
        };
        match (source.property, &input.kind) {
            (InputProperty::Size(dim), Kind::Tensor(Some((_, sizes)))) => size(sizes, dim).map(Expr::Int),
            (InputProperty::Value, Kind::Int(Some(it))) => Some(Expr::Int(it.clone())),
            (_, Kind::Tensor(_) | Kind::Int(_) | Kind::Float | Kind::Bool | Kind::Constant(_)) => None,
        }
    }
}
