//! What a user says of the sizes of all inputs: `dynamic_shapes`, set beside the inputs.

use super::{Dim, DimSpec, SessionInput};
use std::collections::BTreeMap;
use std::fmt;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::Value;
use tracefx_sym::SymInt;

/// Which sizes of the inputs are dynamic: `dynamic_shapes` of `torch.export.export`.
///
/// ```
/// use tracefx_export::{Dim, DimSpec, DynamicShapes, ShapeSpec};
/// use tracefx_sym::ValueRange;
///
/// let batch = Dim::new("batch", ValueRange::between(1, 64));
/// let shapes = DynamicShapes::named([
///     ("image", ShapeSpec::at([(0, batch.clone().into())])),
///     ("pairs", ShapeSpec::Dims(vec![(batch * 2).into(), DimSpec::AUTO])),
///     ("mean", ShapeSpec::None),
/// ]);
/// assert_eq!(shapes.to_string(), "{'image': {0: Dim('batch', min=1, max=64)}, 'pairs': [2*batch, DimHint(AUTO)], 'mean': None}");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DynamicShapes {
    /// Nothing is said, and all sizes are those of the examples.
    #[default]
    Static,
    /// By the names of all inputs.
    Named(Vec<(Str, ShapeSpec)>),
    /// In the order of the inputs.
    Positional(Vec<ShapeSpec>),
}

/// What is said of one input.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ShapeSpec {
    /// Nothing: it is as in the example.
    #[default]
    None,
    /// Of a tensor, something for each dimension.
    Dims(Vec<DimSpec>),
    /// Of a tensor, something for the dimensions with these numbers.
    At(BTreeMap<i64, DimSpec>),
    /// Of an int.
    Value(DimSpec),
    /// Of a list of inputs, something for each of them.
    Items(Vec<ShapeSpec>),
}

impl DynamicShapes {
    /// By the names of all inputs.
    pub fn named<'a>(specs: impl IntoIterator<Item = (&'a str, ShapeSpec)>) -> Self {
        DynamicShapes::Named(specs.into_iter().map(|(name, it)| (name.into(), it)).collect())
    }

    /// The inputs with what is said of each, lists of inputs one by one: what a [`ShapeSession`](super::ShapeSession) begins
    /// with.
    ///
    /// # Errors
    /// `DynamicShapes`, in PyTorch's words, where this has another structure than the inputs, or says of one what it cannot be.
    pub fn session_inputs(&self, names: &[Str], values: &[Value<TensorMeta>]) -> Result<Vec<SessionInput>> {
        let specs = self.by_input(names)?;
        let mut resolver = Resolver::default();
        for (at, (name, value)) in names.iter().zip(values).enumerate() {
            let path = match self {
                DynamicShapes::Positional(_) => format!("[{at}]"),
                DynamicShapes::Static | DynamicShapes::Named(_) => format!("['{name}']"),
            };
            let spec = specs.as_ref().map(|it| it[at]);
            resolver.visit(value, spec, format!("L['{name}']"), &path)?;
        }
        Ok(resolver.inputs)
    }

    /// What is said of each input; nothing where nothing is said of any.
    fn by_input(&self, names: &[Str]) -> Result<Option<Vec<&ShapeSpec>>> {
        match self {
            DynamicShapes::Static => Ok(None),
            DynamicShapes::Named(specs) if specs.is_empty() => Ok(None),
            DynamicShapes::Positional(specs) if specs.is_empty() => Ok(None),
            DynamicShapes::Positional(specs) if specs.len() == names.len() => Ok(Some(specs.iter().collect())),
            DynamicShapes::Positional(specs) => {
                let (n, n_given) = (names.len(), specs.len());
                Err(mismatch(format!("`inputs` has {n} elements, but `dynamic_shapes` has {n_given} elements")))
            }
            DynamicShapes::Named(specs) => {
                let of = |name: &Str| specs.iter().find(|(it, _)| it == name).map(|(_, it)| it);
                let found: Option<Vec<&ShapeSpec>> = names.iter().map(of).collect();
                let is_same = specs.len() == names.len();
                if let Some(found) = found.filter(|_| is_same) {
                    return Ok(Some(found));
                }
                let keys = specs.iter().map(|(it, _)| it);
                Err(wrong(format!(
                    "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {} of \
                     `inputs`, but here they are {}. Alternatively, you could also ignore arg names entirely and specify \
                     `dynamic_shapes` as a list/tuple matching `inputs`.",
                    texts(names.iter()),
                    texts(keys)
                )))
            }
        }
    }
}

impl ShapeSpec {
    /// Of a tensor, something for the dimensions with these numbers.
    pub fn at(dims: impl IntoIterator<Item = (i64, DimSpec)>) -> Self {
        ShapeSpec::At(dims.into_iter().collect())
    }
}

#[derive(Default)]
struct Resolver {
    inputs: Vec<SessionInput>,
    /// The dimensions by their names.
    known: BTreeMap<String, Dim>,
}

impl Resolver {
    fn visit(&mut self, value: &Value<TensorMeta>, spec: Option<&ShapeSpec>, source: String, path: &str) -> Result<()> {
        if let Value::List(items) = value {
            let specs = spec.map(|it| items_of(it, items.len(), path)).transpose()?;
            for (at, item) in items.iter().enumerate() {
                let spec = specs.map(|it| &it[at]);
                self.visit(item, spec, format!("{source}[{at}]"), &format!("{path}[{at}]"))?;
            }
            return Ok(());
        }
        let dims = match (spec, value) {
            (None | Some(ShapeSpec::None), _) => Vec::new(),
            (Some(spec), Value::Tensor(meta)) => self.dims(&meta.sizes, spec, path)?,
            (Some(spec), value) => vec![number(value, spec, path)?],
        };
        self.inputs.push(SessionInput { source, value: value.clone(), dims });
        Ok(())
    }

    fn dims(&mut self, sizes: &[SymInt], spec: &ShapeSpec, path: &str) -> Result<Vec<DimSpec>> {
        let place = format!("specified at `dynamic_shapes{path}`");
        let shape = || sizes.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ");
        let dims = match spec {
            ShapeSpec::Dims(dims) if dims.len() == sizes.len() => dims.clone(),
            ShapeSpec::Dims(dims) => {
                return Err(wrong(format!(
                    "Expected dynamic shape spec {spec} {place} to have the same length as the actual tensor shape \
                     torch.Size([{}]) (expected {}, but got {} instead)",
                    shape(),
                    sizes.len(),
                    dims.len()
                )));
            }
            ShapeSpec::At(given) => {
                let mut dims = vec![DimSpec::Static; sizes.len()];
                for (at, it) in given {
                    let dim = usize::try_from(*at).ok().and_then(|it| dims.get_mut(it)).ok_or_else(|| {
                        wrong(format!("there is no dimension {at} in the input tensor shape [{}], {place}", shape()))
                    })?;
                    *dim = it.clone();
                }
                dims
            }
            ShapeSpec::None | ShapeSpec::Value(_) | ShapeSpec::Items(_) => {
                return Err(wrong(format!(
                    "Unexpected input tensor shape {spec} {place} (expected either a list/tuple of dimensions, or a dict \
                     mapping indices to dimensions, where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or \
                     Dim.DYNAMIC)"
                )));
            }
        };
        dims.iter().try_for_each(|it| self.check_bounds(it))?;
        Ok(dims)
    }

    /// Dimensions of one name are one.
    fn check_bounds(&mut self, spec: &DimSpec) -> Result<()> {
        let DimSpec::Named(dim) = spec else { return Ok(()) };
        let root = Dim { factor: 1, offset: 0, ..dim.clone() };
        match self.known.get(&dim.name) {
            Some(known) if known.range != root.range => Err(wrong(format!(
                "Found different definitions {known} and {root} for the same symbolic dimension {dim}!"
            ))),
            Some(_) => Ok(()),
            None => {
                self.known.insert(dim.name.clone(), root);
                Ok(())
            }
        }
    }
}

/// What is said of the items of a list.
fn items_of<'a>(spec: &'a ShapeSpec, n: usize, path: &str) -> Result<&'a [ShapeSpec]> {
    let (input, shapes) = (format!("`inputs{path}`"), format!("`dynamic_shapes{path}`"));
    match spec {
        ShapeSpec::Items(specs) if specs.len() == n => Ok(specs),
        ShapeSpec::Items(specs) => {
            let n_given = specs.len();
            Err(mismatch(format!("{input} has {n} elements, but {shapes} has {n_given} elements")))
        }
        ShapeSpec::At(_) => Err(mismatch(format!("{input} is a <class 'list'>, but {shapes} is a <class 'dict'>"))),
        ShapeSpec::None | ShapeSpec::Dims(_) | ShapeSpec::Value(_) => {
            Err(mismatch(format!("{input} is a <class 'list'>, but {shapes} is not")))
        }
    }
}

/// What is said of an input that is no tensor.
fn number(value: &Value<TensorMeta>, spec: &ShapeSpec, path: &str) -> Result<DimSpec> {
    let ty = match value {
        Value::Int(_) => "int",
        Value::Bool(_) => "bool",
        Value::Float(_) => "float",
        Value::Str(_) => "str",
        Value::None => "NoneType",
        other => other.kind_name(),
    };
    match (value, spec) {
        (Value::Int(_), ShapeSpec::Value(DimSpec::Named(_))) => Err(wrong(
            "Unable to specify input integers as dynamic through named Dims. Please use Dim.AUTO/DYNAMIC instead."
                .to_string(),
        )),
        (Value::Int(_), ShapeSpec::Value(dim)) => Ok(dim.clone()),
        (_, _) => Err(wrong(format!(
            "Cannot associate shape {spec} specified at `dynamic_shapes{path}` to non-tensor type <class '{ty}'> at \
             `inputs{path}` (expected None)"
        ))),
    }
}

impl fmt::Display for DynamicShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DynamicShapes::Static => write!(f, "None"),
            DynamicShapes::Named(specs) => {
                let specs: Vec<String> = specs.iter().map(|(name, it)| format!("'{name}': {it}")).collect();
                write!(f, "{{{}}}", specs.join(", "))
            }
            DynamicShapes::Positional(specs) => write!(f, "[{}]", joined(specs)),
        }
    }
}

/// As Python shows it.
impl fmt::Display for ShapeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShapeSpec::None => write!(f, "None"),
            ShapeSpec::Dims(dims) => write!(f, "[{}]", joined(dims)),
            ShapeSpec::At(dims) => {
                let dims: Vec<String> = dims.iter().map(|(at, it)| format!("{at}: {it}")).collect();
                write!(f, "{{{}}}", dims.join(", "))
            }
            ShapeSpec::Value(dim) => write!(f, "{dim}"),
            ShapeSpec::Items(specs) => write!(f, "[{}]", joined(specs)),
        }
    }
}

fn joined<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn texts<'a>(names: impl Iterator<Item = &'a Str>) -> String {
    format!("[{}]", names.map(|it| format!("'{it}'")).collect::<Vec<_>>().join(", "))
}

fn mismatch(what: String) -> Diagnostic {
    wrong(format!("Detected mismatch between the structure of `inputs` and `dynamic_shapes`: {what}"))
}

fn wrong(what: String) -> Diagnostic {
    Diagnostic::new(Code::DynamicShapes, what)
        .help("give the dynamic shapes the structure of the inputs, with something for each dimension of each tensor")
}
