//! The overloads that PyTorch binds a call against, in its order.
//!
//! They are more than the operators of the registry: `schemas.txt`, which `tests/oracle/gen_normalization.py` recorded and
//! explains, has those on Python's numbers and lists and those that write to `out=` as well. They are there to be told from
//! the others only; nothing is executed by them.

use super::signature::{Parameter, Signature, signature_of_schema, split};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use tracefx_ops::{ArgType, OPERATOR_PLACES, Op, Registry, Schema};

/// The overloads of operators as normalization has to know them, of which TypeScript has a copy.
pub const NORMALIZATION_SCHEMAS: &str = include_str!("schemas.txt");

/// What a tensor that is written to has already, so that it is not told.
const OPTIONS: &[&str] = &["dtype", "layout", "device", "pin_memory"];

/// An overload that a call may be a call of.
#[derive(Clone, Debug)]
pub(super) struct Overload {
    name: String,
    pub(super) signature: Signature,
    /// Its schema.
    pub(super) text: String,
    is_registered: bool,
}

impl Overload {
    fn of_op(op: &Op, this: &str) -> Self {
        Overload {
            name: op.schema.overload.clone(),
            signature: signature_of_schema(&op.schema, this),
            text: op.schema.to_string(),
            is_registered: true,
        }
    }

    fn of_text(text: &str, this: &str) -> Self {
        let schema = Schema::parse(&format!("{text} -> ()")).unwrap_or_else(|problem| panic!("{problem}"));
        let signature = signature_of_schema(&schema, this);
        Overload { name: schema.overload, signature, text: text.to_owned(), is_registered: false }
    }

    /// Whether functions of `torch` know the parameters by these names: not those of overloads on Python's own values.
    pub(super) fn is_callable_by_name(&self) -> bool {
        let is_tensor = |it: &Parameter| it.ty == Some(ArgType::Tensor);
        self.is_registered || self.signature.parameters.iter().any(is_tensor)
    }
}

/// The overloads that a function stands for: all of an operator, or the one that is named. `self` gets the name that is
/// given.
pub(super) fn overloads(registry: &Registry, target: &str, this: &str) -> Vec<Overload> {
    let Some(Callee { line, packet, overload, is_python }) = Callee::of(target) else { return Vec::new() };
    if let Some(op) = overload.and_then(|it| registry.get(&format!("{packet}.{it}"))) {
        return vec![Overload::of_op(op, this)];
    }
    let mut registered = registry.overloads(&packet).unwrap_or_default();
    let mut res = Vec::new();
    for item in line.split_terminator(" | ") {
        let name = item.split(['(', '=']).next().unwrap_or_default();
        if let Some(at) = registered.iter().position(|it| it.schema.overload == name) {
            res.push(Overload::of_op(registered.remove(at), this));
        } else if item.contains('(') {
            res.push(Overload::of_text(&format!("{}.{item}", packet.replace('.', "::")), this));
        } else if let Some((base, outputs)) = item.split_once('=').and_then(|(_, it)| it.split_once('+'))
            && let Some(base) = registry.get(&format!("{packet}.{base}"))
        {
            res.push(Overload::of_text(&writing(name, &base.schema, outputs), this));
        }
    }
    if !is_python {
        // What was defined by hand comes last.
        res.extend(registered.into_iter().map(|it| Overload::of_op(it, this)));
    }
    res.retain(|it| overload.is_none_or(|overload| it.name == overload));
    res
}

/// What a function calls.
struct Callee<'t> {
    /// Its line of the table; empty where it has the overloads of the registry.
    line: &'static str,
    /// The operator, such as `aten.add`.
    packet: String,
    overload: Option<&'t str>,
    /// Whether the line is that of the function itself.
    is_python: bool,
}

impl<'t> Callee<'t> {
    fn of(target: &'t str) -> Option<Self> {
        let line_of = |name: &str| table().get(name).copied();
        if let Some(name) = target.strip_prefix("torch.ops.") {
            let mut parts = name.splitn(3, '.');
            let (namespace, name) = (parts.next()?, parts.next()?);
            let line = if namespace == "aten" { line_of(name).unwrap_or_default() } else { "" };
            return Some(Callee {
                line,
                packet: format!("{namespace}.{name}"),
                overload: parts.next(),
                is_python: false,
            });
        }
        let (line, name, is_python) = match line_of(target) {
            Some(line) => (line, target.rsplit('.').next()?, true),
            None => {
                let name = OPERATOR_PLACES.iter().find_map(|it| target.strip_prefix(it))?;
                (line_of(name).unwrap_or_default(), name, false)
            }
        };
        // Only operators have overloads by name; `torch.nn.relu` is none.
        (!name.contains('.')).then(|| Callee { line, packet: format!("aten.{name}"), overload: None, is_python })
    }
}

/// The lines of the table by the names that they are for.
fn table() -> &'static FxHashMap<&'static str, &'static str> {
    static TABLE: OnceLock<FxHashMap<&'static str, &'static str>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let line = |it: &'static str| {
            let (names, overloads) = it.split_once(':').unwrap_or_else(|| panic!("the line `{it}` has no names"));
            names.split(' ').map(move |name| (name, overloads.trim()))
        };
        NORMALIZATION_SCHEMAS.lines().flat_map(line).collect()
    })
}

/// The schema of an overload that does what another one does and writes to tensors.
fn writing(name: &str, base: &Schema, outputs: &str) -> String {
    let text = base.to_string();
    let list = text.split_once('(').and_then(|(_, it)| it.rsplit_once(") -> ")).map_or("", |(it, _)| it);
    let mut parts = split(list);
    if base.args.iter().any(|it| it.name == "layout") {
        let name_of = |it: &str| it.split('=').next().and_then(|it| it.rsplit(' ').next()).map(str::to_owned);
        parts.retain(|it| name_of(it).is_none_or(|it| !OPTIONS.contains(&&*it)));
    }
    if !parts.contains(&"*") {
        parts.push("*");
    }
    let outputs: Vec<String> = outputs
        .split(',')
        .map(|it| it.strip_suffix("[]").map_or_else(|| format!("Tensor {it}"), |it| format!("Tensor[] {it}")))
        .collect();
    parts.extend(outputs.iter().map(String::as_str));
    format!("{}::{}.{name}({})", base.namespace, base.name, parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ops::registry;

    #[test]
    fn every_overload_of_the_table_is_understood() {
        for (name, line) in table() {
            let target = if name.contains('.') { (*name).to_owned() } else { format!("torch.ops.aten.{name}") };
            let found = overloads(registry(), &target, "self");
            let texts: Vec<&str> = found.iter().map(|it| &*it.text).collect();
            assert_eq!(found.len(), line.split_terminator(" | ").count(), "{name}: {texts:#?}");
        }
    }

    #[test]
    fn what_writes_is_not_told_the_place_of_its_tensor() {
        let found = overloads(registry(), "torch.zeros", "input");
        let texts: Vec<&str> = found.iter().map(|it| &*it.text).collect();
        assert!(texts.contains(&"aten::zeros.out(SymInt[] size, *, Tensor out)"), "{texts:#?}");
    }
}
