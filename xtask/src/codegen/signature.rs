//! Typed signatures of operators: one TypeScript overload for each number of positional arguments that a call may have.

use super::surface::Packet;
use std::fmt::Write;
use tracefx_ops::{ArgSpec, ArgType, Op, ReturnSpec};

/// Words of JavaScript that no parameter can be called.
const RESERVED: &[&str] = &["function", "in", "var", "with", "default", "new", "this", "delete", "case"];

/// Whether the first argument is the tensor that the method is of.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// A function: the first argument is called `input`.
    Function,
    /// A method of the first argument.
    Method,
}

/// The members of an interface: each packet with its documentation and its overloads.
pub(super) fn members(packets: &[Packet], prefix: &str, kind: Kind) -> String {
    let mut out = String::new();
    for packet in packets {
        let name = camel_case(packet.name.strip_prefix(prefix).unwrap_or(&packet.name));
        let mut signatures: Vec<String> = Vec::new();
        for op in &packet.overloads {
            for signature in signatures_of(op, packet.has_out && kind == Kind::Function, kind) {
                if !signatures.contains(&signature) {
                    signatures.push(signature);
                }
            }
        }
        let doc = packet.overloads.iter().map(|op| op.def.doc).find(|it| !it.is_empty()).unwrap_or_default();
        if !doc.is_empty() {
            writeln!(out, "  /** {} */", doc.replace("*/", "* /")).expect("writing to a string succeeds");
        }
        for signature in signatures {
            writeln!(out, "  {name}{signature};").expect("writing to a string succeeds");
        }
    }
    out
}

/// The names of packets without their prefix, as one text.
pub(super) fn names(packets: &[Packet], prefix: &str) -> String {
    packets.iter().map(|it| it.name.strip_prefix(prefix).unwrap_or(&it.name)).collect::<Vec<_>>().join(" ")
}

/// JavaScript's spelling of a name of PyTorch, as `functions/naming.ts` has it.
pub(super) fn camel_case(name: &str) -> String {
    let mut out = String::new();
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let follows = out.chars().last().is_some_and(|it| it.is_ascii_alphanumeric());
        match chars.peek() {
            Some(next) if c == '_' && follows && next.is_ascii_lowercase() => {
                out.extend(next.to_uppercase());
                chars.next();
            }
            _ => out.push(c),
        }
    }
    out
}

fn signatures_of(op: &Op, has_out: bool, kind: Kind) -> Vec<String> {
    let self_at = (kind == Kind::Method).then(|| self_position(op));
    // A number has no methods.
    if self_at.is_some_and(|at| op.schema.args.get(at).is_some_and(|it| *plain(&it.ty) == ArgType::Scalar)) {
        return Vec::new();
    }
    let specs = op.schema.args.iter().enumerate().filter(|(at, _)| Some(*at) != self_at).map(|(_, it)| it);
    let specs: Vec<&ArgSpec> = specs.filter(|it| !matches!(plain(&it.ty), ArgType::Generator)).collect();
    let (positional, keyword): (Vec<&ArgSpec>, Vec<&ArgSpec>) = specs.into_iter().partition(|it| !it.is_kwarg_only);
    // Tensors come first and by position; what follows may be given by name, whether it must be given or not.
    let n_first = positional.iter().take_while(|it| it.default.is_none() && it.ty == ArgType::Tensor).count();
    let takes_numbers = op.takes_numbers_as_tensors();
    let returns = returned(op, kind);
    let mut res = Vec::new();
    for n in n_first..=positional.len() {
        let mut options: Vec<String> =
            positional[n..].iter().chain(&keyword).map(|spec| option(spec, takes_numbers)).collect();
        if keyword.iter().any(|it| it.name == "pin_memory") {
            options.push("requiresGrad?: boolean".to_string());
        }
        if has_out {
            options.push(format!("out?: {}", out_type(op)));
        }
        let mut parameters: Vec<String> = positional[..n].iter().map(|spec| parameter(spec, takes_numbers)).collect();
        // Options that must be given leave nothing to be left out.
        let needs_options = positional[n..].iter().chain(&keyword).any(|it| it.default.is_none());
        if !options.is_empty() {
            let mark = if needs_options { "" } else { "?" };
            parameters.push(format!("options{mark}: {{ {} }}", options.join("; ")));
        }
        res.push(format!("({}): {returns}", parameters.join(", ")));
    }
    if let ([only], true) = (positional.as_slice(), takes_sizes(&positional)) {
        let mut options: Vec<String> = keyword.iter().map(|spec| option(spec, takes_numbers)).collect();
        if keyword.iter().any(|it| it.name == "pin_memory") {
            options.push("requiresGrad?: boolean".to_string());
        }
        let name = camel_case(&only.name);
        res.push(if options.is_empty() {
            format!("(...{name}: Int[]): {returns}")
        } else {
            format!("(...{name}: [...Int[], options: {{ {} }}] | Int[]): {returns}", options.join("; "))
        });
    }
    res
}

/// Which argument the tensor is whose method an operator is: the one called `self`, as a rule the first.
pub(super) fn self_position(op: &Op) -> usize {
    op.schema.args.iter().position(|it| it.name == "self").unwrap_or(0)
}

/// Whether the sizes may be given one by one.
fn takes_sizes(positional: &[&ArgSpec]) -> bool {
    matches!(positional, [only] if matches!(&only.ty, ArgType::List(inner, None) if **inner == ArgType::Int))
}

fn parameter(spec: &ArgSpec, takes_numbers: bool) -> String {
    let name = if spec.name == "self" { "input".to_string() } else { camel_case(&spec.name) };
    let mark = if RESERVED.contains(&name.as_str()) { "_" } else { "" };
    format!("{name}{mark}: {}", type_of(&spec.ty, takes_numbers))
}

fn option(spec: &ArgSpec, takes_numbers: bool) -> String {
    let mark = if spec.default.is_none() { "" } else { "?" };
    format!("{}{mark}: {}", camel_case(&spec.name), type_of(&spec.ty, takes_numbers))
}

fn plain(ty: &ArgType) -> &ArgType {
    match ty {
        ArgType::Optional(inner) => plain(inner),
        other => other,
    }
}

/// What a caller may give.
fn type_of(ty: &ArgType, takes_numbers: bool) -> String {
    match ty {
        ArgType::Tensor if takes_numbers => "Tensor | Scalar".to_string(),
        ArgType::Tensor => "Tensor".to_string(),
        ArgType::Int => "Int".to_string(),
        ArgType::Float => "Real".to_string(),
        ArgType::Bool => "boolean".to_string(),
        ArgType::Scalar | ArgType::Complex => "Scalar".to_string(),
        ArgType::Str => "string".to_string(),
        ArgType::DType => "DTypeLike".to_string(),
        ArgType::Layout => "LayoutLike".to_string(),
        ArgType::Device => "DeviceLike".to_string(),
        ArgType::MemoryFormat => "MemoryFormatLike".to_string(),
        ArgType::Generator | ArgType::Any => "unknown".to_string(),
        ArgType::Optional(inner) => format!("{} | null", type_of(inner, takes_numbers)),
        ArgType::List(inner, size) => {
            let inner = type_of(inner, false);
            let list =
                if inner.contains('|') { format!("readonly ({inner})[]") } else { format!("readonly {inner}[]") };
            if size.is_some() { format!("{inner} | {list}") } else { list }
        }
    }
}

fn returned(op: &Op, kind: Kind) -> String {
    if op.returns_self() && kind == Kind::Method {
        return "this".to_string();
    }
    match op.schema.returns.as_slice() {
        [] => "null".to_string(),
        [only] => result_type(&only.ty),
        several => {
            let item = |(at, it): (usize, &ReturnSpec)| {
                let name = if it.name.is_empty() { format!("result{at}") } else { camel_case(&it.name) };
                format!("{name}: {}", result_type(&it.ty))
            };
            let items = format!("[{}]", several.iter().enumerate().map(item).collect::<Vec<_>>().join(", "));
            if several.iter().any(|it| it.name.is_empty()) {
                return items;
            }
            let names = several.iter().map(|it| format!("{}: {}", camel_case(&it.name), result_type(&it.ty)));
            format!("NamedResults<{items}, {{ {} }}>", names.collect::<Vec<_>>().join("; "))
        }
    }
}

/// What an operator gives back.
fn result_type(ty: &ArgType) -> String {
    match ty {
        ArgType::Tensor => "Tensor".to_string(),
        ArgType::Int | ArgType::Float => "number".to_string(),
        ArgType::Bool => "boolean".to_string(),
        ArgType::Scalar | ArgType::Complex => "import(\"../ts/src/tensor/elements.ts\").Element".to_string(),
        ArgType::Str => "string".to_string(),
        ArgType::List(inner, _) => format!("{}[]", result_type(inner)),
        ArgType::Optional(inner) => format!("{} | null", result_type(inner)),
        ArgType::DType
        | ArgType::Layout
        | ArgType::Device
        | ArgType::MemoryFormat
        | ArgType::Generator
        | ArgType::Any => "unknown".to_string(),
    }
}

fn out_type(op: &Op) -> String {
    match op.schema.returns.len() {
        0 | 1 => "Tensor".to_string(),
        n => format!("[{}]", vec!["Tensor"; n].join(", ")),
    }
}
