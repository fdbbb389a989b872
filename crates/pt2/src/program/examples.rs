use super::tree;
use crate::LoadOptions;
use crate::pickle::{Value as Pickled, ValueId};
use crate::torch_save::TorchSave;
use serde_json::Value as Json;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_export::TreeSpec;
use tracefx_ops::Value;

/// Reads the inputs that a program was exported with, flattened by the structure of its arguments.
pub(super) fn read(bytes: &[u8], spec: &TreeSpec, options: &LoadOptions) -> Result<Vec<Value<Tensor>>> {
    let saved = TorchSave::read(bytes, options)?;
    let mut leaves = Vec::new();
    flatten(&saved, saved.pickle().root(), spec, &mut leaves)?;
    Ok(leaves)
}

/// Walks the structure and the value together, so that the structure bounds the work whatever the pickle shares.
fn flatten(saved: &TorchSave, id: ValueId, spec: &TreeSpec, leaves: &mut Vec<Value<Tensor>>) -> Result<()> {
    let Some(ty) = spec.ty.as_deref() else {
        leaves.push(leaf(saved, id)?);
        return Ok(());
    };
    let parts = match ty {
        "builtins.tuple" | "builtins.list" => items(saved, id),
        "builtins.dict" | "collections.OrderedDict" => mapping(saved, id, spec),
        "collections.namedtuple" => saved.pickle().as_object(id).and_then(|(it, ..)| items(saved, it.args)),
        _ => attributes(saved, id, spec),
    };
    let parts = parts.filter(|it| it.len() == spec.children.len()).ok_or_else(|| {
        Diagnostic::new(Code::PickleMalformed, format!("an example input is not the {ty} that the program was given"))
    })?;
    parts.into_iter().zip(&spec.children).try_for_each(|(part, spec)| flatten(saved, part, spec, leaves))
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

fn items(saved: &TorchSave, id: ValueId) -> Option<Vec<ValueId>> {
    match saved.pickle().get(id) {
        Pickled::Tuple(items) => Some(items.to_vec()),
        Pickled::List(items) => Some(items.clone()),
        _ => None,
    }
}

fn mapping(saved: &TorchSave, id: ValueId, spec: &TreeSpec) -> Option<Vec<ValueId>> {
    let pickle = saved.pickle();
    let pairs = pickle.as_mapping(id)?;
    let is_key = |key: &Json, id: ValueId| match pickle.get(id) {
        Pickled::Str(it) => key.as_str() == Some(it),
        Pickled::Int(it) => key.as_i64() == Some(*it),
        _ => false,
    };
    let keys = tree::keys(spec)?;
    // The last pair of a key is the one that counts.
    let find = |key: &Json| pairs.iter().rev().find(|&&(it, _)| is_key(key, it)).map(|&(_, value)| value);
    keys.iter().map(find).collect()
}

/// The fields of a registered dataclass: its context is `[[fields…], [fields that were None…]]`.
fn attributes(saved: &TorchSave, id: ValueId, spec: &TreeSpec) -> Option<Vec<ValueId>> {
    let (object, ..) = saved.pickle().as_object(id)?;
    let state = saved.mapping(object.state?).ok()?;
    let (fields, _none): (Vec<String>, Vec<String>) = serde_json::from_str(spec.context.as_deref()?).ok()?;
    let find = |field: &String| state.iter().find(|(name, _)| name == field).map(|&(_, value)| value);
    fields.iter().map(find).collect()
}
