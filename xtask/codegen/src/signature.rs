//! Typed signatures of operators: one TypeScript overload for each number of positional arguments that a call may have.

use super::surface::{Packet, unprefixed};
use super::{COLUMNS, filled};
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

/// The members of an interface, and the interfaces of their options.
pub(super) struct Members {
    /// The interfaces of options that signatures name, each with its documentation.
    pub(super) options: String,
    /// The members: each overload with its documentation and its signatures.
    pub(super) body: String,
}

/// The members of an interface whose operators have this prefix.
pub(super) fn members(packets: &[Packet], prefix: &str, kind: Kind) -> Members {
    let (mut options, mut body) = (String::new(), String::new());
    for packet in packets {
        let name = camel_case(unprefixed(packet, prefix));
        let mut known: Vec<String> = Vec::new();
        let mut overloads: Vec<Overload> = Vec::new();
        // What an overload without a description of its own does: PyTorch describes a function once.
        let doc = packet.overloads.iter().map(|op| op.def.doc).find(|it| !it.is_empty()).unwrap_or_default();
        for op in &packet.overloads {
            let all = signatures_of(op, packet.has_out && kind == Kind::Function, kind);
            let is_new: Vec<bool> = all.iter().map(|it| !known.contains(&it.in_full())).collect();
            known.extend(all.iter().map(Signature::in_full));
            if is_new.contains(&true) {
                overloads.push(Overload { op, all, is_new });
            }
        }
        let has_interface = |it: &Overload| it.added().any(|signature| signature.is_long(&name));
        let is_only_one = overloads.iter().filter(|it| has_interface(it)).count() == 1;
        for overload in &overloads {
            let interface = has_interface(overload).then(|| interface_name(overload.op, kind, is_only_one));
            // The first signature gives by name whatever can be.
            let every = &overload.all[0].options;
            if let Some(interface) = &interface {
                options += &declared(interface, overload.op, every);
            }
            let own = overload.op.def.doc;
            body += &documentation(if own.is_empty() { doc } else { own }, overload.op);
            body.extend(overload.added().map(|it| it.printed(&name, interface.as_deref(), every)));
        }
    }
    Members { options, body }
}

/// An overload that adds signatures to its packet.
struct Overload<'a> {
    op: &'a Op,
    all: Vec<Signature>,
    /// Which of them no earlier overload has.
    is_new: Vec<bool>,
}

impl Overload<'_> {
    fn added(&self) -> impl Iterator<Item = &Signature> {
        self.all.iter().zip(&self.is_new).filter(|(_, is_new)| **is_new).map(|(it, _)| it)
    }
}

/// JavaScript's spelling of a name of PyTorch, as `base/naming.ts` has it.
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

/// One way to call an operator: the first arguments by position and the others by name.
struct Signature {
    parameters: Vec<String>,
    /// The options by name, with the mark of what may be left out: `dim?`.
    options: Vec<(String, String)>,
    /// Whether one of the options must be given.
    needs_options: bool,
    /// The name of the sizes, where they are given one by one.
    sizes: Option<String>,
    returns: String,
}

impl Signature {
    /// The signature with these words for the options, in one line.
    fn in_a_line(&self, options: &str) -> String {
        format!("({}): {}", self.all_parameters(options).join(", "), self.returns)
    }

    /// The parameters, the options included.
    fn all_parameters(&self, options: &str) -> Vec<String> {
        let mut all = self.parameters.clone();
        match &self.sizes {
            Some(sizes) if self.options.is_empty() => all.push(format!("...{sizes}: Int[]")),
            Some(sizes) => all.push(format!("...{sizes}: [...Int[], options: {options}] | Int[]")),
            None if self.options.is_empty() => {}
            None => all.push(format!("options{}: {options}", if self.needs_options { "" } else { "?" })),
        }
        all
    }

    /// The options one by one.
    fn spelled_out(&self) -> String {
        let options: Vec<String> = self.options.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        format!("{{ {} }}", options.join("; "))
    }

    /// The signature without any name for its options, which tells it from others.
    fn in_full(&self) -> String {
        self.in_a_line(&self.spelled_out())
    }

    /// Whether the options do not fit in a line of their own.
    fn is_long(&self, name: &str) -> bool {
        let columns = |text: &str| text.chars().count();
        columns(name) + columns(&self.in_full()) + 3 > COLUMNS && self.options.len() > 2
    }

    /// The member, with a name for its options where they are many: all those of the interface, or those that are left.
    fn printed(&self, member: &str, interface: Option<&str>, all: &[(String, String)]) -> String {
        let full = format!("  {member}{};", self.in_full());
        if full.chars().count() <= COLUMNS {
            return format!("{full}\n");
        }
        let options = match interface {
            Some(interface) if self.options.len() > 2 => narrowed(interface, &self.options, all),
            _ => self.spelled_out(),
        };
        let short = format!("  {member}{};", self.in_a_line(&options));
        if short.chars().count() <= COLUMNS {
            return format!("{short}\n");
        }
        let parameters: String = self.all_parameters(&options).iter().map(|it| format!("    {it},\n")).collect();
        let last = format!("  ): {};", self.returns);
        let last = if last.chars().count() <= COLUMNS { last } else { broken(&last) };
        format!("  {member}(\n{parameters}{last}\n")
    }
}

/// The interface without the options that are given by position.
fn narrowed(interface: &str, left: &[(String, String)], all: &[(String, String)]) -> String {
    let named = |them: Vec<&(String, String)>| {
        them.iter().map(|(name, _)| format!("\"{}\"", name.trim_end_matches('?'))).collect::<Vec<_>>().join(" | ")
    };
    let gone: Vec<_> = all.iter().filter(|it| !left.contains(it)).collect();
    if gone.is_empty() {
        interface.to_string()
    } else if gone.len() <= left.len() {
        format!("Omit<{interface}, {}>", named(gone))
    } else {
        format!("Pick<{interface}, {}>", named(left.iter().collect()))
    }
}

/// The end of a signature whose result is too long for a line: `NamedResults` with one argument a line.
fn broken(last: &str) -> String {
    let open = last.find("NamedResults<[").map(|at| at + "NamedResults<".len());
    let split = last.find("], { ").map(|at| at + 1);
    match (open, split) {
        (Some(open), Some(split)) => {
            let close = last.len() - ">;".len();
            format!(
                "{}\n    {},\n    {}\n  {}",
                &last[..open],
                &last[open..split],
                &last[split + 2..close],
                &last[close..]
            )
        }
        _ => last.to_string(),
    }
}

/// The interface of the options of an overload: `LstmDataOptions`, or `SumOptions` where no other overload has one.
fn interface_name(op: &Op, kind: Kind, is_only_one: bool) -> String {
    let words = |text: &str| -> String {
        let mut out = String::new();
        for word in text.split('_').filter(|it| !it.is_empty()) {
            let (first, rest) = word.split_at(1);
            out += &first.to_uppercase();
            out += rest;
        }
        out
    };
    let overload =
        if is_only_one || op.schema.overload == "default" { String::new() } else { words(&op.schema.overload) };
    let in_place = if op.schema.name.ends_with('_') { "InPlace" } else { "" };
    let method = if kind == Kind::Method { "Method" } else { "" };
    format!("{}{overload}{in_place}{method}Options", words(&op.schema.name))
}

fn declared(name: &str, op: &Op, options: &[(String, String)]) -> String {
    let options: String = options.iter().map(|(name, ty)| format!("  {name}: {ty};\n")).collect();
    format!("\n/** The options of `{}`. */\nexport interface {name} {{\n{options}}}\n", op.name)
}

/// What an overload does, and its schema as ATen writes it.
fn documentation(doc: &str, op: &Op) -> String {
    let paragraph = |text: &str| filled(text.split(' '), "   * ");
    let schema = format!("`{}`", op.def.schema);
    if doc.is_empty() && schema.chars().count() + "  /**  */".len() <= COLUMNS {
        return format!("  /** {schema} */\n");
    }
    let doc = if doc.is_empty() { String::new() } else { paragraph(&doc.replace("*/", "* /")) + "   *\n" };
    format!("  /**\n{doc}{}   */\n", paragraph(&schema))
}

fn signatures_of(op: &Op, has_out: bool, kind: Kind) -> Vec<Signature> {
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
    let requires_grad = keyword.iter().any(|it| it.name == "pin_memory");
    let requires_grad = requires_grad.then(|| ("requiresGrad?".to_string(), "boolean".to_string()));
    let mut res = Vec::new();
    for n in n_first..=positional.len() {
        let mut options: Vec<(String, String)> =
            positional[n..].iter().chain(&keyword).map(|spec| option(spec, takes_numbers)).collect();
        options.extend(requires_grad.clone());
        if has_out {
            options.push(("out?".to_string(), out_type(op)));
        }
        res.push(Signature {
            parameters: positional[..n].iter().map(|spec| parameter(spec, takes_numbers)).collect(),
            // Options that must be given leave nothing to be left out.
            needs_options: positional[n..].iter().chain(&keyword).any(|it| it.default.is_none()),
            options,
            sizes: None,
            returns: returns.clone(),
        });
    }
    if let ([only], true) = (positional.as_slice(), takes_sizes(&positional)) {
        let mut options: Vec<(String, String)> = keyword.iter().map(|spec| option(spec, takes_numbers)).collect();
        options.extend(requires_grad);
        let sizes = Some(camel_case(&only.name));
        res.push(Signature { parameters: Vec::new(), needs_options: false, options, sizes, returns });
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

fn option(spec: &ArgSpec, takes_numbers: bool) -> (String, String) {
    let mark = if spec.default.is_none() { "" } else { "?" };
    (format!("{}{mark}", camel_case(&spec.name)), type_of(&spec.ty, takes_numbers))
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
