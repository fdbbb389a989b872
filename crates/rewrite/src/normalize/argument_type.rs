//! Types of arguments, as far as overloads are told apart by them.

use serde::{Deserialize, Deserializer, de};
use tracefx_ir::{Arg, Graph, Val};
use tracefx_ops::ArgType;

/// The type of an argument, where overloads must be told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentType {
    /// A tensor.
    Tensor,
    /// An int.
    Int,
    /// A float.
    Float,
    /// A bool, which is an int as well.
    Bool,
    /// A complex number.
    Complex,
    /// A string.
    Str,
    /// `None`.
    None,
    /// A dtype, which counts as an int as well.
    DType,
    /// A device.
    Device,
    /// A layout.
    Layout,
    /// A memory format.
    MemoryFormat,
    /// A list or tuple of one type.
    List(Box<ArgumentType>),
    /// What nothing is known of. No parameter takes it.
    Unknown,
}

impl ArgumentType {
    /// The type of this name: one of Python's, with `[]` after it for a list.
    pub fn from_name(name: &str) -> Option<Self> {
        if let Some(inner) = name.strip_suffix("[]") {
            return Some(ArgumentType::List(Box::new(ArgumentType::from_name(inner)?)));
        }
        Some(match name {
            "Tensor" => ArgumentType::Tensor,
            "int" => ArgumentType::Int,
            "float" => ArgumentType::Float,
            "bool" => ArgumentType::Bool,
            "complex" => ArgumentType::Complex,
            "str" => ArgumentType::Str,
            "None" => ArgumentType::None,
            "dtype" => ArgumentType::DType,
            "device" => ArgumentType::Device,
            "layout" => ArgumentType::Layout,
            "memory_format" => ArgumentType::MemoryFormat,
            _ => return None,
        })
    }

    /// The type of an argument of a graph; that of a node is known from its value or its annotation.
    pub fn of(arg: &Arg, graph: &Graph) -> Self {
        match arg {
            Arg::None => ArgumentType::None,
            Arg::Bool(_) => ArgumentType::Bool,
            Arg::Int(_) => ArgumentType::Int,
            Arg::Float(_) => ArgumentType::Float,
            Arg::Complex(_) => ArgumentType::Complex,
            Arg::Str(_) => ArgumentType::Str,
            Arg::DType(_) => ArgumentType::DType,
            Arg::Device(_) => ArgumentType::Device,
            Arg::Layout(_) => ArgumentType::Layout,
            Arg::MemoryFormat(_) => ArgumentType::MemoryFormat,
            Arg::Node(it) => {
                let node = graph.node(*it);
                match &node.meta.val {
                    Some(val) => of_val(val),
                    None => node.ty().map_or(ArgumentType::Unknown, |it| of_annotation(it)),
                }
            }
            Arg::List(items) | Arg::Tuple(items) => list(items.iter().map(|it| ArgumentType::of(it, graph))),
            Arg::Ellipsis | Arg::Op(_) | Arg::Dict(_) | Arg::Slice(_) => ArgumentType::Unknown,
        }
    }

    /// Whether a parameter of this type takes an argument of that one: `torch.fx.operator_schemas.type_matches`.
    pub(super) fn fits(&self, ty: &ArgType) -> bool {
        use ArgumentType::{Bool, Complex, DType, Device, Float, Int, List, None, Str, Tensor};
        match ty {
            ArgType::Optional(inner) => *self == None || self.fits(inner),
            ArgType::List(inner, _) => match self {
                // An int is promoted to a list of one.
                Int => **inner == ArgType::Int,
                List(items) => !matches!(**inner, ArgType::Optional(_)) && **items != DType && items.fits(inner),
                _ => false,
            },
            ArgType::Tensor => *self == Tensor,
            ArgType::Float => *self == Float,
            ArgType::Bool => *self == Bool,
            ArgType::Complex => *self == Complex,
            ArgType::Str => *self == Str,
            ArgType::Device => *self == Device,
            // For TorchScript dtypes, layouts and memory formats are ints; of the three, PyTorch takes a dtype for one.
            ArgType::Int | ArgType::DType | ArgType::Layout | ArgType::MemoryFormat => {
                matches!(self, Int | Bool | DType)
            }
            ArgType::Scalar => matches!(self, Int | Float | Bool | Complex),
            ArgType::Any | ArgType::Generator => false,
        }
    }
}

fn of_val(val: &Val) -> ArgumentType {
    match val {
        Val::None => ArgumentType::None,
        Val::Tensor(_) => ArgumentType::Tensor,
        Val::Int(_) => ArgumentType::Int,
        Val::Float(_) => ArgumentType::Float,
        Val::Bool(_) => ArgumentType::Bool,
        Val::Seq { items, .. } => list(items.iter().map(of_val)),
    }
}

fn of_annotation(text: &str) -> ArgumentType {
    ArgumentType::from_name(text.strip_prefix("torch.").unwrap_or(text)).unwrap_or(ArgumentType::Unknown)
}

/// The type of a list of items of these types: of the widest of them, as a bool is an int as well.
/// `torch.fx.operator_schemas.create_type_hint`.
fn list(mut items: impl Iterator<Item = ArgumentType>) -> ArgumentType {
    let Some(first) = items.next() else { return ArgumentType::Unknown };
    let widest = items.try_fold(first, |widest, it| match (&widest, &it) {
        (ArgumentType::Int, ArgumentType::Bool) => Some(widest),
        (ArgumentType::Bool, ArgumentType::Int) => Some(it),
        _ => (widest == it).then_some(widest),
    });
    widest.map_or(ArgumentType::Unknown, |it| ArgumentType::List(Box::new(it)))
}

impl<'de> Deserialize<'de> for ArgumentType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        ArgumentType::from_name(&name).ok_or_else(|| de::Error::custom(format!("`{name}` is no type of an argument")))
    }
}
