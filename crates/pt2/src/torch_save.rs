//! Files of `torch.save`: a pickle in a zip file, with the bytes of its tensors beside it.
//!
//! Programs carry them for example inputs, for tensor subclasses and, up to PyTorch 2.8, for all weights. Only tensors
//! are rebuilt, by the handful of functions that PyTorch names for that; every other object stays the description that
//! [`Pickle`] gives.

use crate::LoadOptions;
use crate::archive::check_byteorder;
use crate::limits::Limits;
use crate::pickle::{Pickle, Value, ValueId};
use crate::zip::Zip;
use std::collections::HashMap;
use tracefx_core::{Code, DType, Diagnostic, Dims, Result, Storage, Tensor};

/// A file of `torch.save`, with its tensors rebuilt.
///
/// ```no_run
/// use tracefx_pt2::{LoadOptions, torch_save::TorchSave};
/// let bytes = std::fs::read("state_dict.pt").unwrap();
/// let saved = TorchSave::read(&bytes, &LoadOptions::default()).unwrap();
/// for (name, value) in saved.mapping(saved.pickle().root()).unwrap() {
///     println!("{name}: {:?}", saved.tensor(value).unwrap().tensor);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct TorchSave {
    pickle: Pickle,
    tensors: HashMap<ValueId, SavedTensor>,
}

/// A tensor of a `torch.save` file.
#[derive(Clone, Debug)]
pub struct SavedTensor {
    /// The tensor; tensors of one file share storages as they did when saved.
    pub tensor: Tensor,
    /// Whether it asked for gradients.
    pub requires_grad: bool,
    /// Whether it was a `torch.nn.Parameter`.
    pub is_parameter: bool,
}

impl TorchSave {
    /// Reads a file of `torch.save`.
    ///
    /// # Errors
    /// Those of [`crate::Archive::open`] and [`Pickle::read`]; `ViewOutOfBounds` for a tensor that leaves its storage.
    pub fn read(bytes: &[u8], options: &LoadOptions) -> Result<Self> {
        let zip = Zip::open(bytes, options)?;
        let root = zip.names().next().and_then(|name| name.split_once('/')).map_or("", |(root, _)| root);
        let byteorder = format!("{root}/byteorder");
        if zip.contains(&byteorder) {
            check_byteorder(&String::from_utf8_lossy(&zip.read(&byteorder)?))?;
        }
        let pickle = Pickle::read(&zip.read(&format!("{root}/data.pkl"))?, &options.limits)?;
        let mut rebuilder =
            Rebuilder { zip: &zip, root, pickle: &pickle, rank: options.limits.rank, storages: HashMap::new() };
        let mut tensors: HashMap<ValueId, SavedTensor> = HashMap::new();
        // The arguments of a call come before it, so that one pass in order finds every tensor that another needs.
        for (id, _) in pickle.values() {
            if let Some(tensor) = rebuilder.rebuild(id, &tensors)? {
                tensors.insert(id, tensor);
            }
        }
        Ok(TorchSave { pickle, tensors })
    }

    /// The values of the file.
    pub fn pickle(&self) -> &Pickle {
        &self.pickle
    }

    /// The tensor that a value stands for.
    ///
    /// # Errors
    /// `PickleForbidden` for an object of a class that is not rebuilt, `PickleMalformed` for any other value.
    pub fn tensor(&self, id: ValueId) -> Result<&SavedTensor> {
        self.tensors.get(&id).ok_or_else(|| match self.pickle.as_object(id) {
            Some((_, module, name)) => Diagnostic::new(
                Code::PickleForbidden,
                format!("the pickle asks for {module}.{name}; it was not called"),
            )
            .note("only plain tensors and parameters are rebuilt from pickles"),
            None => Diagnostic::new(Code::PickleMalformed, "a tensor was expected in the pickle"),
        })
    }

    /// Whether the value is a tensor that was rebuilt.
    pub fn is_tensor(&self, id: ValueId) -> bool {
        self.tensors.contains_key(&id)
    }

    /// The pairs of a `dict` with string keys.
    ///
    /// # Errors
    /// `PickleMalformed` when the value is not such a dict.
    pub fn mapping(&self, id: ValueId) -> Result<Vec<(&str, ValueId)>> {
        let pairs = self.pickle.as_mapping(id).ok_or_else(|| malformed("a dict was expected in the pickle"))?;
        let named = pairs.iter().map(|&(key, value)| Some((self.pickle.as_str(key)?, value)));
        named.collect::<Option<_>>().ok_or_else(|| malformed("a key of the dict is not a string"))
    }
}

struct Rebuilder<'a> {
    zip: &'a Zip<'a>,
    root: &'a str,
    pickle: &'a Pickle,
    rank: u64,
    storages: HashMap<&'a str, Storage>,
}

/// What a persistent id of PyTorch names: bytes, and the dtype of a typed storage.
struct TypedStorage {
    storage: Storage,
    dtype: Option<DType>,
}

impl<'a> Rebuilder<'a> {
    /// The tensor of a value, where the value is a call of a function that makes tensors.
    fn rebuild(&mut self, id: ValueId, done: &HashMap<ValueId, SavedTensor>) -> Result<Option<SavedTensor>> {
        let Some((object, "torch._utils", name)) = self.pickle.as_object(id) else { return Ok(None) };
        let args = self.pickle.as_tuple(object.args).unwrap_or_default();
        let res = match (name, args) {
            ("_rebuild_tensor_v2", [storage, offset, sizes, strides, requires_grad, _hooks, metadata @ ..]) => {
                self.refuse_metadata(metadata)?;
                let TypedStorage { storage, dtype } = self.storage(*storage)?;
                let dtype = dtype.ok_or_else(|| malformed("a tensor of an untyped storage has no dtype"))?;
                self.tensor(storage, dtype, *offset, *sizes, *strides, *requires_grad)?
            }
            ("_rebuild_tensor_v3", [storage, offset, sizes, strides, requires_grad, _hooks, dtype, metadata @ ..]) => {
                self.refuse_metadata(metadata)?;
                let named = self.pickle.as_global(*dtype).filter(|(module, _)| *module == "torch");
                let dtype = named.and_then(|(_, name)| DType::from_name(name));
                let dtype = dtype.ok_or_else(|| malformed("the dtype of a tensor is unknown"))?;
                let TypedStorage { storage, .. } = self.storage(*storage)?;
                self.tensor(storage, dtype, *offset, *sizes, *strides, *requires_grad)?
            }
            ("_rebuild_parameter", [data, requires_grad, _hooks])
            | ("_rebuild_parameter_with_state", [data, requires_grad, _hooks, _]) => {
                // A parameter around an object that was not rebuilt is not rebuilt either.
                let Some(data) = done.get(data) else { return Ok(None) };
                SavedTensor {
                    tensor: data.tensor.clone(),
                    requires_grad: self.flag(*requires_grad)?,
                    is_parameter: true,
                }
            }
            (
                "_rebuild_tensor_v2" | "_rebuild_tensor_v3" | "_rebuild_parameter" | "_rebuild_parameter_with_state",
                _,
            ) => return Err(malformed(format!("torch._utils.{name} has {} arguments", args.len()))),
            _ => return Ok(None),
        };
        Ok(Some(res))
    }

    fn tensor(
        &self,
        storage: Storage,
        dtype: DType,
        offset: ValueId,
        sizes: ValueId,
        strides: ValueId,
        requires_grad: ValueId,
    ) -> Result<SavedTensor> {
        let (sizes, strides, offset) = (self.dims(sizes)?, self.dims(strides)?, self.count(offset)?);
        Ok(SavedTensor {
            tensor: Tensor::view_of(storage, dtype, &sizes, &strides, offset)?,
            requires_grad: self.flag(requires_grad)?,
            is_parameter: false,
        })
    }

    fn refuse_metadata(&self, metadata: &[ValueId]) -> Result<()> {
        let is_empty = metadata.iter().all(|&id| match self.pickle.get(id) {
            Value::None => true,
            _ => self.pickle.as_mapping(id).is_some_and(<[_]>::is_empty),
        });
        if is_empty {
            return Ok(());
        }
        Err(Diagnostic::new(Code::NotImplemented, "tensors with metadata (conjugate or negative views) are not read")
            .help("save a materialised tensor (resolve_conj, resolve_neg)"))
    }

    fn storage(&mut self, id: ValueId) -> Result<TypedStorage> {
        let wrong = || malformed("a persistent id does not name a storage");
        let Value::Persistent(id) = self.pickle.get(id) else { return Err(wrong()) };
        let parts = self.pickle.as_tuple(*id).ok_or_else(wrong)?;
        let &[tag, class, key, _location, numel] = parts else { return Err(wrong()) };
        let (Some("storage"), Some((module, class)), Some(key)) =
            (self.pickle.as_str(tag), self.pickle.as_global(class), self.pickle.as_str(key))
        else {
            return Err(wrong());
        };
        let dtype = match (module, class) {
            ("torch.storage", "UntypedStorage") => None,
            ("torch", _) => Some(storage_dtype(class).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        };
        let numel = self.count(numel)?;
        let storage = match self.storages.get(key) {
            Some(storage) => storage.clone(),
            None => {
                let storage = Storage::from_bytes(&self.zip.read(&format!("{}/data/{key}", self.root))?)?;
                self.storages.insert(key, storage.clone());
                storage
            }
        };
        if numel.checked_mul(dtype.map_or(1, DType::size)) != Some(storage.len()) {
            return Err(Diagnostic::new(
                Code::ViewOutOfBounds,
                format!("storage {key:?} states {numel} elements, but has {} bytes", storage.len()),
            ));
        }
        Ok(TypedStorage { storage, dtype })
    }

    fn dims(&self, id: ValueId) -> Result<Dims> {
        // `torch.Size(...)` is a call around the tuple.
        let id = match self.pickle.as_object(id) {
            Some((object, "torch", "Size")) => self.pickle.as_tuple(object.args).and_then(|it| it.first().copied()),
            _ => Some(id),
        };
        let items = id.and_then(|id| self.pickle.as_tuple(id)).ok_or_else(|| malformed("sizes are not a tuple"))?;
        Limits::check("rank", self.rank, items.len() as u64)?;
        items.iter().map(|&it| self.count(it)).collect()
    }

    fn count(&self, id: ValueId) -> Result<usize> {
        let number = self.pickle.as_int(id).ok_or_else(|| malformed("a size, stride or offset is not an int"))?;
        usize::try_from(number)
            .map_err(|_| Diagnostic::new(Code::ViewOutOfBounds, format!("{number} is not a size, stride or offset")))
    }

    fn flag(&self, id: ValueId) -> Result<bool> {
        match self.pickle.get(id) {
            Value::Bool(it) => Ok(*it),
            _ => Err(malformed("requires_grad is not a bool")),
        }
    }
}

fn storage_dtype(class: &str) -> Option<DType> {
    Some(match class {
        "FloatStorage" => DType::Float32,
        "DoubleStorage" => DType::Float64,
        "HalfStorage" => DType::Float16,
        "BFloat16Storage" => DType::BFloat16,
        "LongStorage" => DType::Int64,
        "IntStorage" => DType::Int32,
        "ShortStorage" => DType::Int16,
        "CharStorage" => DType::Int8,
        "ByteStorage" => DType::UInt8,
        "BoolStorage" => DType::Bool,
        "ComplexFloatStorage" => DType::Complex64,
        "ComplexDoubleStorage" => DType::Complex128,
        _ => return None,
    })
}

fn malformed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::PickleMalformed, message)
}
