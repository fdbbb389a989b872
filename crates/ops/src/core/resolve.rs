//! Which overload of a name a call is for, as PyTorch's Python functions decide it, and which arguments go by position.

use crate::{ArgSpec, ArgType, Args, Op, Registry, Value, bind};
use std::borrow::Cow;
use tracefx_core::{Code, DType, Device, Diagnostic, Layout, MemoryFormat, Result, Scalar};
use tracefx_ir::Str;

/// The operators whose tensors may be given as numbers in Python. Of all others, the overload for numbers is meant.
const NUMBERS_AS_TENSORS: &[&str] = &[
    "add",
    "add_",
    "sub",
    "sub_",
    "subtract",
    "subtract_",
    "mul",
    "mul_",
    "multiply",
    "multiply_",
    "div",
    "div_",
    "divide",
    "divide_",
    "true_divide",
    "true_divide_",
    "floor_divide",
    "floor_divide_",
    "copy",
    "copy_",
];

/// The names that Python takes for an argument beside its own, so that NumPy's calls work.
const ALIASES: &[(&str, &[&str])] =
    &[("self", &["input", "x", "a", "x1"]), ("dim", &["axis"]), ("keepdim", &["keepdims"]), ("other", &["x2"])];

impl Op {
    /// Whether Python takes numbers for the tensors of this operator.
    pub fn takes_numbers_as_tensors(&self) -> bool {
        self.schema.namespace == "aten" && NUMBERS_AS_TENSORS.contains(&self.schema.name.as_str())
    }
}

/// The number that a tensor without dimensions holds; `None` for other tensors.
pub type Item<'a, T> = &'a dyn Fn(&T) -> Option<Scalar>;

impl Registry {
    /// Finds the overload that these arguments are for, as PyTorch's Python functions do, and sorts them by its schema.
    ///
    /// `name` is a packet such as `aten.add`, whose overloads are tried in PyTorch's order (tensors before numbers), or
    /// one overload such as `aten.add.Tensor`. Beyond what [`bind`] takes, ints may be given one by one where a list of
    /// them is the last positional argument (`view(x, 2, 3)`), tensors without dimensions stand for numbers, names for
    /// dtypes and devices, and arguments have the names that Python gives them.
    ///
    /// # Errors
    /// `NotImplemented` where there is no such operator; `SchemaMismatch`, with PyTorch's text, where no overload fits.
    pub fn resolve<T: Clone>(
        &self,
        name: &str,
        args: &[Value<T>],
        kwargs: &[(Str, Value<T>)],
        item: Item<'_, T>,
    ) -> Result<Args<'_, T>> {
        let overloads = self.overloads(name)?;
        let mut misfits = Vec::new();
        for &op in &overloads {
            match (Call { op, args, kwargs, item }).fit() {
                Ok((args, kwargs)) => return Ok(Args::new(op, bind(op, &args, &kwargs)?)),
                Err(misfit) => misfits.push((op, misfit)),
            }
        }
        // One overload that takes so many arguments is the one that was meant, so its own complaint is told.
        let count = args.len() + kwargs.len();
        let is_alone = overloads.len() == 1;
        let mut plausible = misfits.iter().filter(|(op, _)| is_alone || plausible_counts(op).contains(&count));
        if let (Some((op, misfit)), None) = (plausible.next(), plausible.next()) {
            let what = format!("{}(){misfit}", op.schema.name);
            return Err(Diagnostic::new(Code::SchemaMismatch, what).help(format!("the schema is {}", op.schema)));
        }
        let head = format!("{}() received an invalid combination of arguments", overloads[0].schema.name);
        let what = format!("{head} - got ({}), but expected one of:", describe_call(args, kwargs));
        let refusal = Diagnostic::new(Code::SchemaMismatch, what);
        Err(overloads.iter().fold(refusal, |it, op| it.note(python_signature(op))))
    }
}

/// One attempt to call one overload.
struct Call<'a, T> {
    op: &'a Op,
    args: &'a [Value<T>],
    kwargs: &'a [(Str, Value<T>)],
    item: Item<'a, T>,
}

type Fitted<T> = (Vec<Value<T>>, Vec<(Str, Value<T>)>);

impl<T: Clone> Call<'_, T> {
    /// The arguments with the names and types of the schema, or why they do not fit, to be read after `name()`.
    fn fit(&self) -> Result<Fitted<T>, String> {
        let specs = &self.op.schema.args;
        let positional = self.gathered();
        let n_positional = self.op.schema.n_positional();
        if positional.len() > n_positional {
            let plural = if n_positional == 1 { "" } else { "s" };
            return Err(format!(
                " takes {n_positional} positional argument{plural} but {} were given",
                self.args.len()
            ));
        }
        let mut kwargs = Vec::new();
        for (key, value) in self.kwargs {
            let position = specs.iter().position(|it| is_called(&it.name, key));
            let Some(position) = position else { return Err(format!(" got an unexpected keyword argument '{key}'")) };
            if position < positional.len() || kwargs.iter().any(|(it, _): &(Str, _)| **it == *specs[position].name) {
                return Err(format!(" got multiple values for argument '{key}'"));
            }
            let value = self.convert(&specs[position].ty, value).ok_or_else(|| {
                format!(": argument '{key}' must be {}, not {}", type_name(&specs[position].ty), kind_name(value))
            })?;
            kwargs.push((Str::from(specs[position].name.as_str()), value));
        }
        let convert = |(position, value): (usize, &Value<T>)| {
            let spec = &specs[position];
            self.convert(&spec.ty, value).ok_or_else(|| {
                let (name, ty) = (python_name(&spec.name), type_name(&spec.ty));
                format!(": argument '{name}' (position {}) must be {ty}, not {}", position + 1, kind_name(value))
            })
        };
        let args = positional.iter().enumerate().map(convert).collect::<Result<Vec<_>, _>>()?;
        let is_given = |(position, spec): (usize, &ArgSpec)| {
            position < args.len() || !is_required(spec) || kwargs.iter().any(|(key, _)| **key == *spec.name)
        };
        let missing: Vec<String> = (specs.iter().enumerate().filter(|&it| !is_given(it)))
            .map(|(_, spec)| format!("\"{}\"", python_name(&spec.name)))
            .collect();
        if !missing.is_empty() {
            return Err(format!(" missing {} required positional arguments: {}", missing.len(), missing.join(", ")));
        }
        Ok((args, kwargs))
    }

    /// The positional arguments, with ints that were given one by one gathered into the list that they are meant for.
    fn gathered(&self) -> Cow<'_, [Value<T>]> {
        let specs = &self.op.schema.args;
        let n_positional = self.op.schema.n_positional();
        let Some(last) = n_positional.checked_sub(1) else { return Cow::Borrowed(self.args) };
        let takes_ints = matches!(&specs[last].ty, ArgType::List(inner, _) if **inner == ArgType::Int);
        // Methods and creation functions take them so: nothing but a tensor may stand before the list.
        let is_alone = last == 0 || (last == 1 && specs[0].ty == ArgType::Tensor);
        let is_int = |it: &Value<T>| match it {
            Value::Int(_) => true,
            Value::Tensor(it) => matches!((self.item)(it), Some(Scalar::Int(_))),
            _ => false,
        };
        let rest = self.args.get(last..).unwrap_or_default();
        if !takes_ints || !is_alone || rest.is_empty() || !rest.iter().all(is_int) {
            return Cow::Borrowed(self.args);
        }
        let mut res = self.args[..last].to_vec();
        res.push(Value::List(rest.to_vec()));
        Cow::Owned(res)
    }

    /// The value as this type, or `None` where Python does not take it for one.
    fn convert(&self, ty: &ArgType, value: &Value<T>) -> Option<Value<T>> {
        let number = || match value {
            Value::Tensor(it) => (self.item)(it).map(Value::from),
            _ if value.as_expr().is_some() || matches!(value, Value::Complex(_)) => Some(value.clone()),
            _ => None,
        };
        match (ty, value) {
            (ArgType::Optional(_), Value::None) => Some(Value::None),
            (ArgType::Optional(inner), _) => self.convert(inner, value),
            (ArgType::List(inner, _), Value::List(items)) => {
                items.iter().map(|it| self.convert(inner, it)).collect::<Option<_>>().map(Value::List)
            }
            (ArgType::List(inner, Some(_)), _) => self.convert(inner, value),
            (ArgType::List(_, None), _) => None,
            (ArgType::Any, _) => Some(value.clone()),
            (ArgType::Tensor, Value::Tensor(_)) => Some(value.clone()),
            (ArgType::Tensor, _) if self.op.takes_numbers_as_tensors() => number(),
            (ArgType::Scalar | ArgType::Complex, _) => number(),
            (ArgType::Float, _) => number().filter(|it| !matches!(it, Value::Complex(_))),
            (ArgType::Int, _) => number().filter(|it| matches!(it, Value::Int(_))),
            (ArgType::Bool, Value::Bool(_) | Value::SymBool(_)) | (ArgType::Str, Value::Str(_)) => Some(value.clone()),
            (ArgType::Bool, Value::Tensor(_)) => number().filter(|it| matches!(it, Value::Bool(_))),
            (ArgType::DType, Value::DType(_)) | (ArgType::Layout, Value::Layout(_)) => Some(value.clone()),
            (ArgType::Device, Value::Device(_)) | (ArgType::MemoryFormat, Value::MemoryFormat(_)) => {
                Some(value.clone())
            }
            (ArgType::DType, Value::Str(name)) => DType::from_name(name).map(Value::DType),
            (ArgType::Layout, Value::Str(name)) => Layout::from_name(name).map(Value::Layout),
            (ArgType::MemoryFormat, Value::Str(name)) => MemoryFormat::from_name(name).map(Value::MemoryFormat),
            (ArgType::Device, Value::Str(name)) => name.parse::<Device>().ok().map(Value::Device),
            (
                ArgType::Tensor
                | ArgType::Bool
                | ArgType::Str
                | ArgType::DType
                | ArgType::Layout
                | ArgType::Device
                | ArgType::MemoryFormat
                | ArgType::Generator,
                _,
            ) => None,
        }
    }
}

/// Sorts overloads of one name into the order in which PyTorch's argument parser tries them: by their text in C++, then so
/// that whatever would hide another one comes later. An overload for numbers goes where tensors may be numbers.
pub(crate) fn sort_overloads(overloads: &mut Vec<&Op>) {
    let is_hidden = |it: &&Op| it.schema.overload == "Scalar" && it.takes_numbers_as_tensors();
    // The only overload is there for whatever it takes.
    let has_others = overloads.iter().any(|it| !is_hidden(it));
    let mut rest: Vec<&Op> = overloads.drain(..).filter(|it| !has_others || !is_hidden(it)).collect();
    rest.sort_by_key(|it| cpp_signature(it));
    while !rest.is_empty() {
        // The relation is acyclic, so one of them is always free; the first is taken in any case.
        let is_free = |it: &&Op| !rest.iter().any(|other| comes_after(it, other));
        let free = rest.iter().position(is_free).unwrap_or_default();
        overloads.push(rest.remove(free));
    }
}

/// The arguments as PyTorch's generator of bindings prints them, as far as that decides an order.
fn cpp_signature(op: &Op) -> String {
    let mut res = String::new();
    for spec in &op.schema.args {
        if spec.is_kwarg_only && !res.contains('*') {
            res.push_str("*, ");
        }
        let default = if spec.default.is_some() { "=" } else { "" };
        res.push_str(&format!("{} {}{default}, ", cpp_type(&spec.ty), python_name(&spec.name)));
    }
    res
}

fn cpp_type(ty: &ArgType) -> String {
    match ty {
        ArgType::Int => "int64_t".to_string(),
        ArgType::Float => "double".to_string(),
        ArgType::Str => "c10::string_view".to_string(),
        ArgType::DType => "ScalarType".to_string(),
        ArgType::Optional(inner) => format!("{}?", cpp_type(inner)),
        ArgType::List(inner, size) => {
            let list = match **inner {
                ArgType::Int => "IntArrayRef".to_string(),
                ArgType::Float => "ArrayRef<double>".to_string(),
                ArgType::Tensor => "TensorList".to_string(),
                _ => format!("ArrayRef<{}>", cpp_type(inner)),
            };
            size.map_or(list.clone(), |size| format!("{list}[{size}]"))
        }
        ArgType::Tensor
        | ArgType::Bool
        | ArgType::Scalar
        | ArgType::Complex
        | ArgType::Layout
        | ArgType::Device
        | ArgType::MemoryFormat
        | ArgType::Generator
        | ArgType::Any => type_name(ty),
    }
}

/// Whether PyTorch tries `a` only after `b`: the same arguments, but numbers for tensors or lists for single values.
fn comes_after(a: &Op, b: &Op) -> bool {
    let (a, b) = (&a.schema.args, &b.schema.args);
    let pairs = || a.iter().zip(b).map(|(a, b)| (&a.ty, &b.ty));
    a.len() == b.len() && pairs().any(|(a, b)| a != b) && pairs().all(|(a, b)| a == b || is_wider(a, b))
}

fn is_wider(a: &ArgType, b: &ArgType) -> bool {
    match (a, b) {
        (ArgType::Optional(a), ArgType::Optional(b)) if **a == ArgType::Scalar => **b == ArgType::Tensor,
        (ArgType::Scalar | ArgType::Int, ArgType::Tensor) => true,
        (ArgType::List(a, None), ArgType::Optional(b)) => **a == ArgType::Int && **b == ArgType::Int,
        (ArgType::List(a, None), ArgType::Int) => **a == ArgType::Int,
        (ArgType::List(a, _), ArgType::List(b, _)) => **a == ArgType::Tensor && **b != ArgType::Tensor,
        _ => false,
    }
}

fn is_called(name: &str, key: &str) -> bool {
    name == key || ALIASES.iter().any(|(own, others)| *own == name && others.contains(&key))
}

fn is_required(spec: &ArgSpec) -> bool {
    spec.default.is_none()
}

fn plausible_counts(op: &Op) -> std::ops::RangeInclusive<usize> {
    op.schema.args.iter().filter(|it| is_required(it)).count()..=op.schema.args.len()
}

/// The name that Python's functions give to an argument.
fn python_name(name: &str) -> &str {
    if name == "self" { "input" } else { name }
}

fn kind_name<T>(value: &Value<T>) -> &'static str {
    if matches!(value, Value::None) { "NoneType" } else { value.kind_name() }
}

fn describe_call<T>(args: &[Value<T>], kwargs: &[(Str, Value<T>)]) -> String {
    let positional = args.iter().map(|it| kind_name(it).to_string());
    let named = kwargs.iter().map(|(key, it)| format!("{key}={}", kind_name(it)));
    positional.chain(named).collect::<Vec<_>>().join(", ")
}

/// The signature as PyTorch's Python errors print it.
fn python_signature(op: &Op) -> String {
    let mut parts = Vec::new();
    for spec in &op.schema.args {
        if spec.is_kwarg_only && !parts.iter().any(|it| it == "*") {
            parts.push("*".to_string());
        }
        let default = if is_required(spec) { "" } else { " = …" };
        parts.push(format!("{} {}{default}", type_name(&spec.ty), python_name(&spec.name)));
    }
    format!("({})", parts.join(", "))
}

/// What PyTorch's Python errors call a type.
fn type_name(ty: &ArgType) -> String {
    let name = match ty {
        ArgType::Tensor => "Tensor",
        ArgType::Int => "int",
        ArgType::Float => "float",
        ArgType::Bool => "bool",
        ArgType::Scalar => "Number",
        ArgType::Complex => "complex",
        ArgType::Str => "str",
        ArgType::DType => "torch.dtype",
        ArgType::Layout => "torch.layout",
        ArgType::Device => "torch.device",
        ArgType::MemoryFormat => "torch.memory_format",
        ArgType::Generator => "torch.Generator",
        ArgType::Any => "object",
        ArgType::Optional(inner) => return type_name(inner),
        ArgType::List(inner, _) => return format!("tuple of {}s", type_name(inner)),
    };
    name.to_string()
}
