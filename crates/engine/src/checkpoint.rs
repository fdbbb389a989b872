//! Reads files of `torch.save`: which classes become plain values, and which are refused. The pickle is run by `pt2`, as
//! data.

use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_ops::Value;
use tracefx_pt2::pickle::{Value as Pickled, ValueId};
use tracefx_pt2::torch_save::TorchSave;
use tracefx_pt2::{Limits, LoadOptions};

/// Values that are written more often than this, on average, are shared to make the result large.
const MAX_SHARING: u64 = 16;
/// Values nested deeper than this hold themselves.
const MAX_DEPTH: usize = 60;

/// Reads a file of `torch.save`: tensors, numbers, texts, and lists, tuples, sets and dicts of them. No code of the file is
/// run, and nothing is made of any other class.
///
/// A container is a list that begins with its kind: `"list"`, `"tuple"` or `"set"` and the items, `"dict"` and each key
/// before its value, `"parameter"` with the tensor and whether it wants gradients.
///
/// # Errors
/// `ArchiveWrongKind` for a file of PyTorch before 1.6, `PickleForbidden` for an object of a class, by its name; else what
/// the archive or the pickle is refused for.
pub fn read_checkpoint(bytes: &[u8], limits: &Limits) -> Result<Value<Tensor>> {
    if !bytes.starts_with(b"PK") {
        return Err(not_zipped(bytes));
    }
    let saved = TorchSave::read(bytes, &LoadOptions { limits: limits.clone(), ..Default::default() })?;
    let root = saved.pickle().root();
    // What is shared is written as often as it is referred to, which a hostile file could make very often.
    let left = 1_000 + MAX_SHARING * saved.pickle().values().count() as u64;
    Writer { saved: &saved, left: left.min(limits.pickle_values) }.value(root, 0)
}

fn not_zipped(bytes: &[u8]) -> Diagnostic {
    // A pickle of the magic number 0x1950a86a20f9469cfc6c, in protocol 2.
    if bytes.starts_with(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.") {
        return Diagnostic::new(Code::ArchiveWrongKind, "this is a file of torch.save as PyTorch wrote it before 1.6")
            .help("load it in PyTorch and save it again with torch.save, or as .safetensors");
    }
    Diagnostic::new(Code::ArchiveWrongKind, "the bytes are not a file of torch.save: they are no zip file")
        .help("read .safetensors files with readSafetensors")
}

struct Writer<'a> {
    saved: &'a TorchSave,
    left: u64,
}

impl Writer<'_> {
    fn value(&mut self, id: ValueId, depth: usize) -> Result<Value<Tensor>> {
        self.left = self.left.checked_sub(1).ok_or_else(|| too_large("has too many values"))?;
        if depth > MAX_DEPTH {
            return Err(too_large("is nested too deeply, or holds itself"));
        }
        if self.saved.is_tensor(id) {
            let it = self.saved.tensor(id)?;
            let tensor = Value::Tensor(it.tensor.clone());
            return Ok(match it.is_parameter {
                true => Value::List(vec![kind("parameter"), tensor, Value::Bool(it.requires_grad)]),
                false => tensor,
            });
        }
        let pickle = self.saved.pickle();
        if let Some(pairs) = pickle.as_mapping(id) {
            return self.list("dict", pairs.iter().flat_map(|&(key, value)| [key, value]), depth);
        }
        match pickle.get(id) {
            Pickled::None => Ok(Value::None),
            Pickled::Bool(it) => Ok(Value::Bool(*it)),
            Pickled::Int(it) => Ok(Value::int(*it)),
            Pickled::Float(it) => Ok(Value::Float(*it)),
            Pickled::Str(it) => Ok(Value::Str((&**it).into())),
            Pickled::List(items) => self.list("list", items.iter().copied(), depth),
            Pickled::Tuple(items) => self.list("tuple", items.iter().copied(), depth),
            Pickled::Set(items) => self.list("set", items.iter().copied(), depth),
            Pickled::Object(_) => self.object(id, depth),
            Pickled::Global(it) => match (&*it.module, DType::from_name(&it.name)) {
                ("torch", Some(dtype)) => Ok(Value::DType(dtype)),
                _ => Err(forbidden(&it.module, &it.name)),
            },
            Pickled::BigInt(_) => {
                Err(Diagnostic::new(Code::NotImplemented, "an int of the file has more than 64 bits"))
            }
            Pickled::Bytes(_) => Err(Diagnostic::new(Code::NotImplemented, "the file holds bytes outside of tensors")),
            Pickled::Persistent(_) => Err(Diagnostic::new(Code::NotImplemented, "the file holds a storage by itself")
                .help("save the tensors that look at it")),
            Pickled::Dict(_) => Err(Diagnostic::new(Code::Internal, "a dict is no mapping")),
        }
    }

    /// A call that stands for a plain value: `torch.Size((2, 3))`, which is a tuple, or `set([1])`.
    fn object(&mut self, id: ValueId, depth: usize) -> Result<Value<Tensor>> {
        let pickle = self.saved.pickle();
        let Some((object, module, name)) = pickle.as_object(id) else {
            return Err(Diagnostic::new(Code::PickleForbidden, "the file calls what is no class or function by name"));
        };
        match (module, name, pickle.as_tuple(object.args)) {
            ("torch", "Size", Some([sizes])) => self.value(*sizes, depth),
            // Protocol 2 calls the class by its name in Python 2.
            ("__builtin__" | "builtins", "set" | "frozenset", Some([items])) => match pickle.get(*items) {
                Pickled::List(items) => self.list("set", items.iter().copied(), depth),
                _ => Err(forbidden(module, name)),
            },
            _ => Err(forbidden(module, name)),
        }
    }

    fn list(&mut self, name: &str, items: impl Iterator<Item = ValueId>, depth: usize) -> Result<Value<Tensor>> {
        let mut res = vec![kind(name)];
        for item in items {
            res.push(self.value(item, depth + 1)?);
        }
        Ok(Value::List(res))
    }
}

fn kind(name: &str) -> Value<Tensor> {
    Value::Str(name.into())
}

fn forbidden(module: &str, name: &str) -> Diagnostic {
    Diagnostic::new(Code::PickleForbidden, format!("the file holds an object of {module}.{name}, which is not made"))
        .note("tensors, numbers, texts and containers of them are read")
        .help("save the state dict alone: torch.save(model.state_dict(), file)")
}

fn too_large(what: &str) -> Diagnostic {
    Diagnostic::new(Code::LimitExceeded, format!("the checkpoint {what}"))
}
