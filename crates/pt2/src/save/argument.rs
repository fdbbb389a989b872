//! What nodes take.

use super::graph::{Saver, Scope, Value};
use super::{invalid, unsavable};
use crate::program::TargetKind;
use crate::schema::{
    self, Argument, ArgumentKind, ComplexValue, Float, NamedArgument, OptionalTensorArgument, SymBoolArgument,
    SymFloatArgument, SymIntArgument, TensorArgument,
};
use tracefx_core::{Code, Device, Diagnostic, Result};
use tracefx_ir::{Arg, Node, NodeId, Str};
use tracefx_ops::ArgType;

impl<'a> Saver<'a> {
    /// The arguments of a call with the names of the parameters that they are for.
    pub(super) fn inputs(&mut self, scope: &Scope<'a>, id: NodeId, kind: TargetKind) -> Result<Vec<NamedArgument>> {
        let node = scope.graph.node(id);
        let registry = self.registry;
        let schema = match kind {
            TargetKind::Operator | TargetKind::SymOp => registry.get(node.target()).map(|it| &it.schema),
            TargetKind::HigherOrder | TargetKind::Function => None,
        };
        if kind == TargetKind::SymOp && !node.kwargs().is_empty() {
            return Err(unsavable("functions of numbers take no keyword arguments in PyTorch's files"));
        }
        let ty = |name: &str| schema.and_then(|it| it.args.iter().find(|it| it.name == name)).map(|it| &it.ty);
        let mut inputs = Vec::with_capacity(node.args().len() + node.kwargs().len());
        let names: Vec<String> = match (kind, schema) {
            (TargetKind::HigherOrder | TargetKind::Function, _) => vec![String::new(); node.args().len()],
            (_, Some(schema)) => schema.args.iter().filter(|it| !it.is_kwarg_only).map(|it| it.name.clone()).collect(),
            (TargetKind::SymOp, None) => (b'a'..=b'z').map(|it| char::from(it).to_string()).collect(),
            (TargetKind::Operator, None) => noted_names(node)?,
        };
        if names.len() < node.args().len() {
            let what =
                format!("the operator takes {} arguments by position, and gets {}", names.len(), node.args().len());
            return Err(Diagnostic::new(Code::SchemaMismatch, what));
        }
        for (name, arg) in names.into_iter().zip(node.args()) {
            let arg = self.argument(scope, arg, ty(&name))?;
            inputs.push(NamedArgument { name, arg, kind: Some(ArgumentKind::Positional) });
        }
        for (name, arg) in node.kwargs() {
            let is_known = schema.is_none_or(|it| it.args.iter().any(|it| it.name == **name));
            if !is_known {
                let what = format!("the operator has no parameter `{name}`");
                return Err(Diagnostic::new(Code::SchemaMismatch, what));
            }
            let arg = self.argument(scope, arg, ty(name))?;
            inputs.push(NamedArgument { name: name.to_string(), arg, kind: Some(ArgumentKind::Keyword) });
        }
        Ok(inputs)
    }

    /// One argument; the type of its parameter tells what an empty list holds.
    pub(super) fn argument(&mut self, scope: &Scope<'a>, arg: &Arg, ty: Option<&ArgType>) -> Result<Argument> {
        Ok(match arg {
            Arg::None => Argument::None(true),
            Arg::Bool(it) => Argument::Bool(*it),
            Arg::Int(it) => Argument::Int(*it),
            Arg::Float(it) => Argument::Float(Float(*it)),
            Arg::Complex(it) => Argument::Complex(ComplexValue { real: Float(it.re), imag: Float(it.im) }),
            // An operator that was not registered where the program was read.
            Arg::Str(it) if it.starts_with("torch.ops.") => Argument::Operator(it.to_string()),
            Arg::Str(it) => Argument::String(it.to_string()),
            Arg::DType(it) => Argument::ScalarType(schema::ScalarType(*it)),
            Arg::Device(it) => Argument::Device(device(it)),
            Arg::Layout(it) => Argument::Layout(schema::LayoutNumber(*it)),
            Arg::MemoryFormat(it) => Argument::MemoryFormat(schema::MemoryFormatNumber(*it)),
            Arg::Op(it) => Argument::Operator(it.to_string()),
            Arg::Node(id) => return self.reference(scope, *id),
            Arg::List(items) | Arg::Tuple(items) => list(scope, items, ty)?,
            Arg::Dict(items) => {
                let item = |(key, it): &(Str, Arg)| Ok((key.to_string(), self.argument(scope, it, None)?));
                Argument::StringToArgument(items.iter().map(item).collect::<Result<_>>()?)
            }
            Arg::Ellipsis => return Err(unsavable("PyTorch's files have no `...`")),
            Arg::Slice(_) => return Err(unsavable("PyTorch's files have no slices")),
        })
    }

    fn reference(&mut self, scope: &Scope<'a>, id: NodeId) -> Result<Argument> {
        Ok(match value(scope, id)? {
            Value::Tensor(name) => Argument::Tensor(TensorArgument { name: name.clone() }),
            Value::Int(name) => Argument::SymInt(SymIntArgument::Name(name.clone())),
            Value::Float(name) => Argument::SymFloat(SymFloatArgument::Name(name.clone())),
            Value::Bool(name) => Argument::SymBool(SymBoolArgument::Name(name.clone())),
            Value::Object(it) => Argument::CustomObj(it.clone()),
            Value::None => Argument::None(true),
            Value::Constant(it) => it.clone(),
            Value::Graph(name) => return self.subgraph(scope, name),
            Value::Parts => return Err(several(scope, id)),
        })
    }
}

/// A list. Which kind it is follows from its items, in the order in which PyTorch asks.
fn list(scope: &Scope<'_>, items: &[Arg], ty: Option<&ArgType>) -> Result<Argument> {
    if items.is_empty() {
        return Ok(empty(ty));
    }
    let mixed = || {
        unsavable("a list among the arguments has items that PyTorch's files cannot have in one list")
            .note(format!("it is {}", kinds(items)))
    };
    macro_rules! all {
        ($($pattern:pat => $value:expr),+) => {
            items.iter().map(|it| match it { $($pattern => Some($value),)+ _ => None }).collect::<Option<Vec<_>>>()
        };
    }
    macro_rules! try_all {
        ($make:path, $($pattern:pat => $value:expr),+) => {
            if let Some(found) = all!($($pattern => $value),+) { return Ok($make(found)); }
        };
    }
    try_all!(Argument::Bools, Arg::Bool(it) => *it);
    try_all!(Argument::Ints, Arg::Int(it) => *it);
    try_all!(Argument::Floats, Arg::Float(it) => Float(*it));
    try_all!(Argument::Strings, Arg::Str(it) => it.to_string());

    let mut values = Vec::new();
    for item in items {
        values.push(match item {
            Arg::Node(id) => match value(scope, *id)? {
                Value::Parts => return Err(several(scope, *id)),
                Value::Constant(it) => Item::Constant(it.clone()),
                it => Item::Value(it),
            },
            Arg::None => Item::Value(&Value::None),
            other => Item::Plain(other),
        });
    }
    macro_rules! try_values {
        ($make:path, $($pattern:pat => $value:expr),+) => {
            let found = values.iter().map(|it| match it { $($pattern => Some($value),)+ _ => None });
            if let Some(found) = found.collect::<Option<Vec<_>>>() { return Ok($make(found)); }
        };
    }
    try_values!(Argument::SymInts,
        Item::Value(Value::Int(it)) => SymIntArgument::Name(it.clone()),
        Item::Plain(Arg::Int(it)) | Item::Constant(Argument::Int(it)) => SymIntArgument::Int(*it));
    try_values!(Argument::SymFloats,
        Item::Value(Value::Float(it)) => SymFloatArgument::Name(it.clone()),
        Item::Plain(Arg::Float(it)) => SymFloatArgument::Float(Float(*it)),
        Item::Constant(Argument::Float(it)) => SymFloatArgument::Float(*it));
    try_values!(Argument::SymBools,
        Item::Value(Value::Bool(it)) => SymBoolArgument::Name(it.clone()),
        Item::Plain(Arg::Bool(it)) | Item::Constant(Argument::Bool(it)) => SymBoolArgument::Bool(*it));
    // Operands of higher-order operators may be numbers among tensors; all are referred to as tensors are.
    let named = |it: &Item<'_>| match it {
        Item::Value(Value::Tensor(it) | Value::Int(it) | Value::Float(it) | Value::Bool(it)) => {
            Some(TensorArgument { name: it.clone() })
        }
        Item::Value(Value::Object(it)) => Some(TensorArgument { name: it.name.clone() }),
        Item::Value(Value::None | Value::Parts | Value::Graph(_) | Value::Constant(_))
        | Item::Plain(_)
        | Item::Constant(_) => None,
    };
    if let Some(found) = values.iter().map(named).collect::<Option<Vec<_>>>() {
        return Ok(Argument::Tensors(found));
    }
    let optional = |it: &Item<'_>| match it {
        Item::Value(Value::None) => Some(OptionalTensorArgument::None(true)),
        other => named(other).map(OptionalTensorArgument::Tensor),
    };
    if let Some(found) = values.iter().map(optional).collect::<Option<Vec<_>>>() {
        return Ok(Argument::OptionalTensors(found));
    }
    nested(scope, items)?.ok_or_else(mixed)
}

/// A list of lists of one kind.
fn nested(scope: &Scope<'_>, items: &[Arg]) -> Result<Option<Argument>> {
    let mut lists = Vec::new();
    for item in items {
        let (Arg::List(inner) | Arg::Tuple(inner)) = item else { return Ok(None) };
        lists.push(list(scope, inner, None)?);
    }
    macro_rules! all {
        ($variant:ident) => {
            lists
                .iter()
                .map(|it| match it {
                    Argument::Tensors(it) if it.is_empty() => Some(Vec::new()),
                    Argument::$variant(it) => Some(it.clone()),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>()
        };
    }
    // The first kind is that of lists which are all empty, too.
    Ok(all!(Tensors)
        .map(Argument::NestedTensors)
        .or_else(|| all!(Ints).map(Argument::IntLists))
        .or_else(|| all!(Floats).map(Argument::FloatLists)))
}

enum Item<'a> {
    Value(&'a Value),
    Constant(Argument),
    Plain(&'a Arg),
}

fn empty(ty: Option<&ArgType>) -> Argument {
    let mut ty = ty;
    while let Some(ArgType::Optional(inner)) = ty {
        ty = Some(inner);
    }
    let Some(ArgType::List(item, _)) = ty else { return Argument::Tensors(Vec::new()) };
    let mut item = &**item;
    while let ArgType::Optional(inner) = item {
        item = inner;
    }
    match item {
        ArgType::Bool => Argument::Bools(Vec::new()),
        ArgType::Float => Argument::Floats(Vec::new()),
        ArgType::Str => Argument::Strings(Vec::new()),
        ArgType::Int | ArgType::Scalar => Argument::Ints(Vec::new()),
        _ => Argument::Tensors(Vec::new()),
    }
}

fn value<'s>(scope: &'s Scope<'_>, id: NodeId) -> Result<&'s Value> {
    scope.values.get(&id).ok_or_else(|| {
        let name = scope.graph.node(id).name();
        invalid(format!("the value `{name}` is used before it is computed, or is nothing"))
    })
}

fn several(scope: &Scope<'_>, id: NodeId) -> Diagnostic {
    let name = scope.graph.node(id).name();
    unsavable(format!("`{name}` has several values, and is used as one"))
        .help("take its parts with `operator.getitem`; PyTorch's files refer to those alone")
}

/// The names of the parameters of an operator that is not registered, as the file had them that it was read from.
fn noted_names(node: &Node) -> Result<Vec<String>> {
    if node.args().is_empty() {
        return Ok(Vec::new());
    }
    let noted = node.meta.get(crate::program::ARG_NAMES).and_then(|it| serde_json::from_str(it).ok());
    noted.ok_or_else(|| {
        unsavable("the operator is not registered, so the names of its parameters are not known")
            .help("define it first (torch.library in TypeScript, Library in Rust), or give all arguments by name")
    })
}

/// What the items of a list are, for a message.
fn kinds(items: &[Arg]) -> String {
    let mut text = format!("{items:?}");
    if text.len() > 200 {
        let end = (0..=200).rev().find(|&it| text.is_char_boundary(it)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

pub(super) fn device(device: &Device) -> schema::Device {
    schema::Device { kind: device.kind.to_string(), index: device.index }
}
