//! Python for a graph, with what is known of each value: `GraphModule.print_readable`.

use super::origin;
use std::collections::HashMap;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Namespace, Node, NodeId, Opcode, Str, Val, python_string};

/// A module and the graphs inside it as Python, with shapes and dtypes, and the line of the traced code where each value
/// comes from.
///
/// ```
/// use tracefx_export::readable;
/// use tracefx_ir::{Arg, Graph, GraphModule};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let relu = graph.call_function("torch.ops.aten.relu.default", vec![Arg::Node(x)], vec![]);
/// graph.output(Arg::Tuple(vec![Arg::Node(relu)]));
/// assert_eq!(
///     readable(&GraphModule::new(graph), "Model"),
///     "class Model(torch.nn.Module):
///     def forward(self, x):
///         ## No stacktrace found for following nodes
///         relu_default = torch.ops.aten.relu.default(x);  x = None
///         return (relu_default,)
/// "
/// );
/// ```
pub fn readable(module: &GraphModule, name: &str) -> String {
    let mut res = String::new();
    let mut rest = vec![(name.to_string(), module, 0)];
    while let Some((name, module, depth)) = rest.pop() {
        res.push_str(if res.is_empty() { "" } else { "\n" });
        let mut lines = vec![format!("class {name}(torch.nn.Module):")];
        lines.extend(Function::of(&module.graph).lines().into_iter().map(|it| indented(&it, 1)));
        for line in lines {
            res.push_str(&indented(&line, depth));
            res.push('\n');
        }
        let children = module.attributes.iter().rev().filter_map(|(name, attribute)| match attribute {
            Attribute::Module(child) if !child.graph.is_empty() => Some((name.to_string(), &**child, depth + 1)),
            Attribute::Module(_) | Attribute::Tensor { .. } | Attribute::Fake { .. } => None,
        });
        rest.extend(children);
    }
    res
}

fn indented(line: &str, depth: usize) -> String {
    if line.is_empty() { String::new() } else { format!("{}{line}", "    ".repeat(depth)) }
}

/// The code of one graph.
struct Function<'a> {
    graph: &'a Graph,
    /// The variables of nodes and the globals of functions, which no variable may have for a name.
    names: Namespace,
    locals: Vec<Str>,
    globals: HashMap<Str, Str>,
    parameters: Vec<String>,
    body: Vec<String>,
}

impl<'a> Function<'a> {
    fn of(graph: &'a Graph) -> Self {
        Function {
            graph,
            names: Namespace::default(),
            locals: vec!["".into(); graph.id_bound()],
            globals: HashMap::new(),
            parameters: Vec::new(),
            body: Vec::new(),
        }
    }

    fn lines(mut self) -> Vec<String> {
        let released = last_uses(self.graph);
        let mut previous = String::new();
        for id in self.graph.nodes() {
            let node = self.graph.node(id);
            if !matches!(node.op(), Opcode::Placeholder | Opcode::Output) {
                let comment = origin::comment(&node.meta);
                if comment != previous {
                    if !self.body.is_empty() {
                        self.body.push(String::new());
                    }
                    self.body.push(comment.clone());
                    previous = comment;
                }
            }
            self.emit(id, &released[id.index()]);
        }
        if self.body.is_empty() {
            self.body.push("pass".to_string());
        }
        let mut res = vec![self.head()];
        res.extend(self.body.iter().map(|it| indented(it, 1)));
        res
    }

    fn head(&self) -> String {
        let has_self = self.parameters.first().is_some_and(|it| it == "self");
        let own = (!has_self).then(|| "self".to_string());
        let parameters: Vec<String> = own.into_iter().chain(self.parameters.iter().cloned()).collect();
        format!("def forward({}):", parameters.join(", "))
    }

    fn emit(&mut self, id: NodeId, released: &[NodeId]) {
        let node = self.graph.node(id);
        let target = &**node.target();
        let annotation = annotation(node);
        let global = (node.op() == Opcode::CallFunction && !is_operator(target)).then(|| self.global(target));
        let name = self.names.create_name(node.name());
        self.locals[id.index()] = name.clone();
        let value = match node.op() {
            Opcode::Placeholder => {
                let initial = node.args().first().map_or(String::new(), |it| format!(" = {}", self.arg(it)));
                self.parameters.push(format!("{target}{annotation}{initial}"));
                let raw = target.replace('*', "");
                if raw != *name {
                    self.body.push(format!("{name} = {raw}"));
                }
                return;
            }
            Opcode::Output => {
                let result = node.args().first().map_or("None".to_string(), |it| self.arg(it));
                self.body.push(format!("return {result}"));
                return;
            }
            Opcode::GetAttr => member("self", target),
            Opcode::CallModule => format!("{}({})", member("self", target), self.arguments(node.args(), node)),
            Opcode::CallMethod => {
                let (this, rest) = node.args().split_first().map_or((&Arg::None, &[][..]), |it| it);
                format!("{}({})", member(&self.arg(this), target), self.arguments(rest, node))
            }
            Opcode::CallFunction => self.call(node, global),
        };
        let unused = self.graph.users(id).is_empty().then(|| name.to_string());
        let freed: Vec<String> = released.iter().map(|it| self.locals[it.index()].to_string()).chain(unused).collect();
        let release = if freed.is_empty() { String::new() } else { format!(";  {} = None", freed.join(" = ")) };
        self.body.push(format!("{name}{annotation} = {value}{release}"));
    }

    fn call(&self, node: &Node, global: Option<Str>) -> String {
        let target = &**node.target();
        if let Some(written) = target.strip_prefix("operator.").and_then(|it| self.operator(it, node)) {
            return written;
        }
        if let ("builtins.getattr", [object, Arg::Str(name)]) = (target, node.args()) {
            return member(&self.arg(object), name);
        }
        format!("{}({})", global.as_deref().unwrap_or(target), self.arguments(node.args(), node))
    }

    /// Python's operators, written between what they are of.
    fn operator(&self, name: &str, node: &Node) -> Option<String> {
        let arg = |at: usize| node.args().get(at).map(|it| self.arg(it));
        if name == "getitem" {
            return Some(format!("{}[{}]", arg(0)?, arg(1)?));
        }
        if let Some((_, sign)) = UNARY.iter().find(|(it, _)| *it == name) {
            return Some(format!("{sign}{}", arg(0)?));
        }
        let (_, sign) = BINARY.iter().find(|(it, _)| *it == name)?;
        Some(format!("{} {sign} {}", arg(0)?, arg(1)?))
    }

    /// A function by its name: those of PyTorch and Python's builtins have their own, others a global of the module's.
    fn global(&mut self, target: &str) -> Str {
        if target.starts_with("torch.") {
            return target.into();
        }
        if let Some(builtin) = target.strip_prefix("builtins.") {
            return builtin.into();
        }
        // Python's module of operators is called `_operator`.
        let qualified = match target.strip_prefix("operator.") {
            Some(name) => format!("_operator.{name}"),
            None => target.to_string(),
        };
        let made = self.globals.entry(target.into());
        made.or_insert_with(|| self.names.create_name(&qualified)).clone()
    }

    fn arguments(&self, args: &[Arg], node: &Node) -> String {
        let args = args.iter().map(|it| self.arg(it));
        let kwargs = node.kwargs().iter().map(|(name, it)| format!("{name} = {}", self.arg(it)));
        args.chain(kwargs).collect::<Vec<_>>().join(", ")
    }

    fn arg(&self, arg: &Arg) -> String {
        let list = |items: &[Arg]| items.iter().map(|it| self.arg(it)).collect::<Vec<_>>().join(", ");
        match arg {
            Arg::Op(name) => name.to_string(),
            Arg::Node(node) => self.locals[node.index()].to_string(),
            Arg::Dict(items) => {
                let items = items.iter().map(|(key, it)| format!("{}: {}", python_string(key), self.arg(it)));
                format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
            }
            Arg::Tuple(items) if items.len() == 1 => format!("({},)", self.arg(&items[0])),
            Arg::Tuple(items) => format!("({})", list(items)),
            Arg::List(items) => format!("[{}]", list(items)),
            Arg::Slice(parts) => format!("slice({})", list(&parts[..])),
            Arg::None
            | Arg::Ellipsis
            | Arg::Bool(_)
            | Arg::Int(_)
            | Arg::Float(_)
            | Arg::Complex(_)
            | Arg::Str(_)
            | Arg::DType(_)
            | Arg::Device(_)
            | Arg::Layout(_)
            | Arg::MemoryFormat(_) => self.graph.repr_arg(arg),
        }
    }
}

/// Whether a function is one of Python's operators, which need no name.
fn is_operator(target: &str) -> bool {
    let is_it = |name: &str| name == "getitem" || UNARY.iter().chain(BINARY).any(|(it, _)| *it == name);
    target.strip_prefix("operator.").is_some_and(is_it)
}

const UNARY: &[(&str, &str)] = &[("pos", "+"), ("neg", "-"), ("invert", "~")];

const BINARY: &[(&str, &str)] = &[
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("gt", ">"),
    ("le", "<="),
    ("ge", ">="),
    ("add", "+"),
    ("sub", "-"),
    ("mul", "*"),
    ("floordiv", "//"),
    ("truediv", "/"),
    ("mod", "%"),
    ("pow", "**"),
    ("lshift", "<<"),
    ("rshift", ">>"),
    ("and_", "&"),
    ("or_", "|"),
    ("xor", "^"),
    ("matmul", "@"),
];

/// What is known of a value, as an annotation that is a string: valid Python whatever it says.
fn annotation(node: &Node) -> String {
    let known = match &node.meta.val {
        Some(Val::Tensor(meta)) => {
            let sizes: Vec<String> = meta.sizes.iter().map(|it| it.to_string()).collect();
            Some(format!("{}[{}]", meta.dtype.short_name(), sizes.join(", ")))
        }
        Some(Val::Int(it)) => it.as_int().is_none().then(|| format!("Sym({it})")),
        Some(Val::Float(it)) => it.as_float().is_none().then(|| format!("Sym({it})")),
        Some(Val::Bool(it)) => it.as_bool().is_none().then(|| format!("Sym({it})")),
        Some(Val::None | Val::Seq { .. }) | None => None,
    };
    match (known, node.ty()) {
        (Some(known), _) => format!(": \"{known}\""),
        (None, Some(ty)) => format!(" : {ty}"),
        (None, None) => String::new(),
    }
}

/// An attribute at a dotted path. Names that are no identifiers are asked for.
fn member(object: &str, path: &str) -> String {
    path.split('.').fold(object.to_string(), |object, name| {
        if is_identifier(name) { format!("{object}.{name}") } else { format!("getattr({object}, \"{name}\")") }
    })
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|it| it == '_' || it.is_alphabetic()) && chars.all(|it| it == '_' || it.is_alphanumeric())
}

/// The nodes whose values each node is the last to use, in the order of its arguments.
fn last_uses(graph: &Graph) -> Vec<Vec<NodeId>> {
    let mut released = vec![Vec::new(); graph.id_bound()];
    let mut is_used = vec![false; graph.id_bound()];
    for user in graph.nodes().rev() {
        for input in graph.node(user).all_input_nodes() {
            if !std::mem::replace(&mut is_used[input.index()], true) {
                released[user.index()].push(input);
            }
        }
    }
    released
}
