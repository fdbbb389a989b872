//! The example inputs of a program, by its tree spec.

use crate::LoadOptions;
use crate::pickle::{Value as Pickled, ValueId};
use crate::torch_save::TorchSave;
use indexmap::IndexMap;
use std::collections::HashMap;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_export::{Key, TreeSpec};
use tracefx_ops::Value;

/// The key of the note of a module whose example inputs have objects: the module and name of each class by the name under
/// which it is registered, a JSON object. Nothing else knows them when the program is saved.
pub(crate) const EXAMPLE_CLASSES: &str = "example_classes";

/// The inputs that a program was exported with.
#[derive(Default)]
pub(super) struct Examples {
    /// The values, flattened by the structure of its arguments.
    pub(super) leaves: Vec<Value<Tensor>>,
    /// The module and name of each class among them by the name under which it is registered.
    pub(super) classes: IndexMap<String, (String, String)>,
}

/// Reads the inputs that a program was exported with.
pub(super) fn read(bytes: &[u8], spec: &TreeSpec, options: &LoadOptions) -> Result<Examples> {
    let saved = TorchSave::read(bytes, options)?;
    let mut examples = Examples::default();
    flatten(&saved, saved.pickle().root(), spec, &mut examples)?;
    Ok(examples)
}

/// Walks the structure and the value together. A pickle can share one large value among many places, so the work at a
/// place must not be more than the structure has children there.
fn flatten(saved: &TorchSave, id: ValueId, spec: &TreeSpec, examples: &mut Examples) -> Result<()> {
    let Some(ty) = spec.ty.as_deref() else {
        examples.leaves.push(leaf(saved, id)?);
        return Ok(());
    };
    let n = spec.children.len();
    let parts = match ty {
        "builtins.tuple" | "builtins.list" => items(saved, id, n),
        "builtins.dict" | "collections.OrderedDict" => mapping(saved, id, &spec.keys().unwrap_or_default()),
        "collections.namedtuple" => saved.pickle().as_object(id).and_then(|(it, ..)| items(saved, it.args, n)),
        _ => attributes(saved, id, spec),
    };
    let parts = parts.filter(|it| it.len() == n).ok_or_else(|| {
        Diagnostic::new(Code::PickleMalformed, format!("an example input is not the {ty} that the program was given"))
    })?;
    if let (Some(registered), Some((_, module, name))) = (spec.class_name(), saved.pickle().as_object(id)) {
        examples.classes.insert(registered.to_string(), (module.to_string(), name.to_string()));
    }
    parts.into_iter().zip(&spec.children).try_for_each(|(part, spec)| flatten(saved, part, spec, examples))
}

fn leaf(saved: &TorchSave, id: ValueId) -> Result<Value<Tensor>> {
    Ok(match saved.pickle().get(id) {
        Pickled::None => Value::None,
        Pickled::Bool(it) => Value::Bool(*it),
        Pickled::Int(it) => Value::int(*it),
        Pickled::Float(it) => Value::Float(*it),
        Pickled::Str(it) => Value::Str((&**it).into()),
        Pickled::BigInt(_)
        | Pickled::Bytes(_)
        | Pickled::List(_)
        | Pickled::Tuple(_)
        | Pickled::Dict(_)
        | Pickled::Set(_)
        | Pickled::Global(_)
        | Pickled::Persistent(_)
        | Pickled::Object(_) => Value::Tensor(saved.tensor(id)?.tensor.clone()),
    })
}

/// The items of a tuple or list of this length.
fn items(saved: &TorchSave, id: ValueId, len: usize) -> Option<Vec<ValueId>> {
    match saved.pickle().get(id) {
        Pickled::Tuple(items) if items.len() == len => Some(items.to_vec()),
        Pickled::List(items) if items.len() == len => Some(items.clone()),
        _ => None,
    }
}

/// The values of a dict that has these keys and no others, in the order of the keys.
fn mapping(saved: &TorchSave, id: ValueId, keys: &[Key]) -> Option<Vec<ValueId>> {
    let pickle = saved.pickle();
    let pairs = pickle.as_mapping(id).filter(|it| it.len() == keys.len())?;
    let (mut by_name, mut by_number) = (HashMap::new(), HashMap::new());
    for &(key, value) in pairs {
        match pickle.get(key) {
            Pickled::Str(it) => by_name.insert(&**it, value),
            Pickled::Int(it) => by_number.insert(*it, value),
            _ => return None,
        };
    }
    let find = |key: &Key| match key {
        Key::Str(it) => by_name.get(&**it),
        Key::Int(it) => by_number.get(it),
    };
    keys.iter().map(|key| find(key).copied()).collect()
}

/// The fields of a registered dataclass.
fn attributes(saved: &TorchSave, id: ValueId, spec: &TreeSpec) -> Option<Vec<ValueId>> {
    let (object, ..) = saved.pickle().as_object(id)?;
    let (fields, none_fields) = spec.dataclass_fields()?;
    let names: Vec<Key> = fields.iter().chain(&none_fields).map(|it| Key::Str(it.clone())).collect();
    let mut values = mapping(saved, object.state?, &names)?;
    values.truncate(fields.len());
    Some(values)
}
