//! What would mend violations: PyTorch's `prettify_results`.

use super::Dim;
use std::collections::{BTreeMap, BTreeSet};
use tracefx_sym::{IntFactor, SymInt, Symbol, ValueRange};

/// What guards say of a dimension with a name.
#[derive(Clone, Debug, Default)]
pub(super) struct Suggestion {
    equal: Option<SymInt>,
    min: Option<i64>,
    /// `i64::MAX` is shown as no end.
    max: Option<i64>,
}

impl Suggestion {
    pub(super) fn exactly(value: i64) -> Self {
        Suggestion::equal(value.into())
    }

    pub(super) fn equal(expr: SymInt) -> Self {
        Suggestion { equal: Some(expr), ..Suggestion::default() }
    }

    pub(super) fn between(min: Option<i64>, max: Option<i64>) -> Self {
        Suggestion { min, max, ..Suggestion::default() }
    }

    fn has_range(&self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    /// The symbol that it is derived of, with what it is multiplied by and what is added.
    fn derived(&self) -> Option<(Symbol, i64, i64)> {
        let (mut found, mut rest) = (None, 0);
        for summand in self.equal.as_ref()?.summands() {
            match summand.factors.as_slice() {
                [] => rest = summand.coefficient,
                [(IntFactor::Symbol(it), 1)] if found.is_none() => found = Some((it.clone(), summand.coefficient)),
                _ => return None,
            }
        }
        let (symbol, factor) = found?;
        Some((symbol, factor, rest))
    }
}

/// The suggestions by names of dimensions.
#[derive(Debug, Default)]
pub(super) struct Fixes {
    dims: BTreeMap<String, Dim>,
    results: BTreeMap<String, Suggestion>,
    /// Names and the sources that they are of, in the order of the inputs.
    pub(super) order: Vec<(String, String)>,
}

impl Fixes {
    /// Notes the dimensions that the user named.
    pub(super) fn know<'a>(&mut self, dims: impl Iterator<Item = &'a Dim>) {
        for dim in dims {
            self.dims.insert(dim.display_name(), dim.clone());
            self.dims.insert(dim.name.clone(), Dim::new(&dim.name, dim.range));
        }
    }

    /// Adds to what is said of a dimension.
    pub(super) fn suggest(&mut self, name: &str, new: Suggestion) {
        let known = self.results.entry(name.to_string()).or_default();
        known.equal = new.equal.or(known.equal.take());
        known.min = new.min.or(known.min);
        known.max = new.max.or(known.max);
    }

    /// The text behind the violations; empty where nothing is to be suggested.
    pub(super) fn text(mut self) -> String {
        let introduced = self.introduce_roots();
        self.settle_roots(&introduced);
        let (mut ranges, mut others) = (Vec::new(), Vec::new());
        let mut names: Vec<&String> = self.results.keys().collect();
        names.sort_by_cached_key(|name| {
            let by_source = |text: String, (name, source): &(String, String)| text.replace(name.as_str(), source);
            self.order.iter().fold((*name).clone(), by_source)
        });
        for name in names {
            let it = &self.results[name];
            if let Some(equal) = &it.equal {
                if equal.as_int().is_some() || it.derived().is_some() {
                    others.push(format!("{name} = {equal}"));
                }
                continue;
            }
            let min = it.min.filter(|it| *it != 2).map(|it| format!(", min={it}"));
            let max = it.max.map(|it| if it == i64::MAX { ", max=oo".to_string() } else { format!(", max={it}") });
            ranges.push(format!("{name} = Dim('{name}'{}{})", min.unwrap_or_default(), max.unwrap_or_default()));
        }
        ranges.extend(others);
        if ranges.is_empty() { String::new() } else { format!("\nSuggested fixes:\n  {}", ranges.join("\n  ")) }
    }

    /// A multiple of something new, as `dx = 4*_dx`, takes over the range, and what was derived of the old root.
    fn introduce_roots(&mut self) -> BTreeMap<String, String> {
        let mut introduced = BTreeMap::new();
        for (name, it) in self.results.clone() {
            let Some((root, factor, rest)) = it.derived() else { continue };
            if self.dims.contains_key(root.name()) {
                continue;
            }
            let ceil = |it: i64| -(-it).div_euclid(factor);
            let min = ceil(it.min.unwrap_or(2).saturating_sub(rest));
            let max = it.max.map_or(i64::MAX, |it| it.saturating_sub(rest).div_euclid(factor));
            let range = ValueRange::between(min, max);
            self.results.insert(root.name().to_string(), Suggestion::between(range.min, range.max));
            self.dims.insert(root.name().to_string(), Dim::new(root.name(), range));
            introduced.insert(root.name().to_string(), name.clone());
            self.results.insert(name, Suggestion { min: None, max: None, ..it });
        }
        for old in introduced.values() {
            let Some(new) = self.results.get(old).and_then(|it| it.equal.clone()) else { continue };
            for it in self.results.values_mut() {
                if let Some((symbol, ..)) = it.derived()
                    && symbol.name() == old
                {
                    it.equal =
                        it.equal.take().map(|it| it.substitute(&|other| (*other == symbol).then(|| new.clone())));
                }
            }
        }
        introduced
    }

    /// Of roots only what changed is left, and of derived dimensions nothing: their roots say it.
    fn settle_roots(&mut self, introduced: &BTreeMap<String, String>) {
        let mut roots = BTreeSet::new();
        for (name, it) in &self.results {
            let Some(dim) = self.dims.get(name) else { continue };
            if !dim.is_derived() && it.has_range() {
                roots.insert(name.clone());
            } else if let Some((root, ..)) = it.derived() {
                roots.insert(root.name().to_string());
            }
        }
        roots.retain(|it| !introduced.contains_key(it));
        let mut changed: Vec<(String, Suggestion)> = Vec::new();
        for root in &roots {
            let found = match self.results.get(root) {
                Some(it) if it.has_range() || it.equal.as_ref().is_some_and(|it| it.as_int().is_some()) => {
                    Some(it.clone())
                }
                Some(_) | None => self.swapped(root),
            };
            changed.extend(found.filter(|it| !self.is_unchanged(root, it)).map(|it| (root.clone(), it)));
        }
        let dims = &self.dims;
        self.results.retain(|name, _| dims.get(name).is_none_or(|it| !it.is_derived() && !roots.contains(name)));
        self.results.extend(changed);
    }

    /// What a dimension that is derived of this root says of it.
    fn swapped(&self, root: &str) -> Option<Suggestion> {
        self.results.iter().find_map(|(name, it)| {
            let dim = self.dims.get(name).filter(|it| it.is_derived() && it.name == root)?;
            it.has_range().then_some(())?;
            let of = |it: Option<i64>| it.and_then(|it| dim.root_value(it));
            Some(Suggestion::between(of(it.min), of(it.max)))
        })
    }

    fn is_unchanged(&self, name: &str, it: &Suggestion) -> bool {
        let Some(dim) = self.dims.get(name).filter(|dim| !dim.is_derived() && it.has_range()) else { return false };
        let (min, said) = (it.min.unwrap_or(2), dim.range.min.unwrap_or(0));
        (said < 2 && min == 2 || said == min) && dim.range.max == it.max
    }
}
