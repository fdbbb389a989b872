//! The ranges of sizes and symbols that a program is exported with.

use super::finish::Outcome;
use super::{DimSpec, Dimension, SessionInput, ShapeSession, violation};
use tracefx_core::Result;
use tracefx_sym::{ShapeEnv, SymInt, Symbol, SymbolKind, ValueRange};

impl ShapeSession {
    /// The values that sizes of inputs may have: those that the user said, and else those that guards leave.
    ///
    /// # Errors
    /// `ConstraintViolation` where the user said a range of a size whose range was to be found, and that is another one.
    pub(super) fn range_constraints(&self, outcome: &Outcome) -> Result<Vec<(SymInt, ValueRange)>> {
        let env = self.symbols.env();
        let mut res: Vec<(SymInt, ValueRange)> = Vec::new();
        let mut conflicts: Vec<String> = Vec::new();
        for (it, expr) in self.dimensions.iter().zip(&outcome.exprs) {
            let traced = expr.as_int().map_or_else(|| env.bounds(expr), ValueRange::exactly);
            let said = match &it.spec {
                DimSpec::Named(dim) => dim.own_range()?,
                DimSpec::Static | DimSpec::Size(_) => traced,
                DimSpec::Auto(range) | DimSpec::Dynamic(range) => {
                    let path = path_of(&self.inputs[it.input], it.dim);
                    let user = range.intersect(&ValueRange::at_least(0));
                    let both = traced.intersect(&user).intersect(&ValueRange::at_least(0));
                    conflicts.extend(conflict(it, range, traced, both, &path));
                    both
                }
            };
            if expr.is_symbolic() {
                let said = said.intersect(&ValueRange::at_least(0));
                match res.iter_mut().find(|(other, _)| other == expr) {
                    Some((_, range)) => *range = range.intersect(&said),
                    None => res.push((expr.clone(), said)),
                }
            }
        }
        if !conflicts.is_empty() {
            let what =
                "Found the following conflicts between user-specified ranges and inferred ranges from model tracing:";
            return Err(violation(format!("{what}\n{}", conflicts.join("\n"))));
        }
        add_symbols(&mut res, &env);
        Ok(res)
    }
}

/// Adds the symbols in expressions that have a range, and those that the data decides.
fn add_symbols(ranges: &mut Vec<(SymInt, ValueRange)>, env: &ShapeEnv) {
    let inner: Vec<Symbol> = ranges.iter().flat_map(|(it, _)| it.symbols()).collect();
    let unbacked = env.ranges().map(|(it, _)| it.clone()).filter(|it| it.kind() == SymbolKind::Unbacked);
    for symbol in inner.into_iter().chain(unbacked) {
        let range = env.declared_range(&symbol).unwrap_or_default();
        let expr = SymInt::from(symbol);
        if !ranges.iter().any(|(it, _)| *it == expr) {
            ranges.push((expr, range));
        }
    }
}

/// Why the range of a hint does not go with what was found, if it does not.
fn conflict(it: &Dimension, said: &ValueRange, traced: ValueRange, both: ValueRange, path: &str) -> Option<String> {
    let bound = |it: Option<i64>| it.map_or("None".to_string(), |it| it.to_string());
    let (min, max) = (bound(said.min), bound(said.max));
    if both.is_empty() {
        let end = |it: Option<i64>, other: &str| it.map_or(other.to_string(), |it| it.to_string());
        let (low, high) = (end(traced.min, "-int_oo"), end(traced.max, "int_oo"));
        return Some(format!(
            "- Received user-specified min/max range of [{min}, {max}], conflicting with the inferred min/max range of \
             [{low}, {high}], for {path}."
        ));
    }
    let is_single = |it: ValueRange| it.min.is_some() && it.min == it.max;
    if !matches!(it.spec, DimSpec::Dynamic(_)) || !is_single(both) {
        return None;
    }
    let received = format!("- Received user-specified dim hint Dim.DYNAMIC(min={min}, max={max})");
    if is_single(traced) && matches!(it.value, 0 | 1) {
        return Some(format!(
            "{received}, but export 0/1 specialized due to hint of {} for dimension {path}.",
            it.value
        ));
    }
    let size = bound(both.min);
    Some(format!("{received}, but tracing inferred a static shape of {size} for dimension {path}."))
}

/// How PyTorch names the input in a path: `inputs['x'].shape[0]`.
fn path_of(input: &SessionInput, dim: Option<usize>) -> String {
    let path = input.source.strip_prefix('L').unwrap_or(&input.source);
    dim.map_or_else(|| format!("inputs{path}"), |dim| format!("inputs{path}.shape[{dim}]"))
}
