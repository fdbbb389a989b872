//! The tensors of a program: its state and its constants, in any of the three containers.

use super::values::check_meta;
use crate::archive::{Archive, Container};
use crate::limits::Limits;
use crate::schema::{PayloadConfig, PayloadMeta, SymInt, TensorMeta};
use crate::torch_save::{SavedTensor, TorchSave};
use crate::{LoadOptions, pickle::ValueId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use tracefx_core::allocate::copied;
use tracefx_core::{Code, Diagnostic, Dims, Layout, Result, Storage, Tensor};

/// A weight or constant. A clone shares its bytes: a file may name one payload a thousand times.
#[derive(Clone)]
pub(super) enum Weight {
    /// A tensor.
    Tensor(SavedTensor),
    /// Something that only Python could make again: its pickle.
    Opaque(Arc<Vec<u8>>),
}

/// Whether the state is read, or the constants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    State,
    Constants,
}

/// Reads all weights, or all constants, of one program.
pub(super) fn read(
    archive: &Archive<'_>,
    program: &str,
    part: Part,
    options: &LoadOptions,
) -> Result<Vec<(String, Weight)>> {
    let folder = if part == Part::State { "weights" } else { "constants" };
    match archive.container() {
        Container::OldZip => {
            let name = if part == Part::State { "serialized_state_dict.pt" } else { "serialized_constants.pt" };
            pickled(&archive.read_in_root(name)?, options)
        }
        Container::PickledWeights => pickled(&archive.read_in_root(&format!("data/{folder}/{program}.pt"))?, options),
        Container::RawWeights => {
            let config = archive.text_in_root(&format!("data/{folder}/{program}_{folder}_config.json"))?;
            let config = PayloadConfig::from_json(&config, &options.limits)?;
            let mut reader = Raw { archive, folder, options, storages: HashMap::new(), pickles: HashMap::new() };
            let read = |(name, meta): (&String, &PayloadMeta)| {
                let weight = reader.weight(meta).map_err(|error| error.note(format!("while reading `{name}`")))?;
                Ok((name.clone(), weight))
            };
            config.config.iter().map(read).collect()
        }
    }
}

fn pickled(bytes: &[u8], options: &LoadOptions) -> Result<Vec<(String, Weight)>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let saved = TorchSave::read(bytes, options)?;
    // One value cannot be cut out of a pickle, so an object that is not rebuilt keeps all of it.
    let mut whole: Option<Arc<Vec<u8>>> = None;
    let weight = |(name, id): (&str, ValueId)| {
        let weight = if saved.is_tensor(id) {
            Weight::Tensor(saved.tensor(id)?.clone())
        } else {
            let known = whole.take().map_or_else(|| copied(bytes).map(Arc::new), Ok)?;
            Weight::Opaque(Arc::clone(whole.insert(known)))
        };
        Ok((name.to_string(), weight))
    };
    saved.mapping(saved.pickle().root())?.into_iter().map(weight).collect()
}

/// A reader of entries that hold one storage each.
struct Raw<'a, 'b> {
    archive: &'a Archive<'b>,
    folder: &'static str,
    options: &'a LoadOptions,
    /// Weights that name one entry share its bytes.
    storages: HashMap<String, Storage>,
    pickles: HashMap<String, Weight>,
}

impl Raw<'_, '_> {
    fn weight(&mut self, meta: &PayloadMeta) -> Result<Weight> {
        let path = format!("data/{}/{}", self.folder, meta.path_name);
        // Objects of other kinds are pickled, whatever their row says.
        let is_object = ["custom_obj_", "opaque_obj_"].iter().any(|it| meta.path_name.starts_with(it));
        if meta.tensor_meta.is_none() && !meta.use_pickle && !is_object {
            return Err(malformed("`tensor_meta` is null, but the weight is not pickled (`use_pickle`)"));
        }
        let Some(tensor_meta) = meta.tensor_meta.as_ref().filter(|_| !meta.use_pickle && !is_object) else {
            if let Some(known) = self.pickles.get(&meta.path_name) {
                return Ok(known.clone());
            }
            let weight = self.pickled(&path, meta)?;
            self.pickles.insert(meta.path_name.clone(), weight.clone());
            return Ok(weight);
        };
        check_meta(tensor_meta).map_err(malformed)?;
        if tensor_meta.layout.0 != Layout::Strided {
            let what = format!("weights of layout {} are not implemented", tensor_meta.layout.0);
            return Err(Diagnostic::new(Code::NotImplemented, what));
        }
        let storage = match self.storages.get(&meta.path_name) {
            Some(storage) => storage.clone(),
            None => {
                let storage = self.archive.storage_in_root(&path)?;
                let size = tensor_meta.dtype.0.size();
                if storage.len() % size != 0 {
                    let what = format!(
                        "entry {path:?} has {} bytes, which are no whole elements of {}, of {size} bytes each",
                        storage.len(),
                        tensor_meta.dtype.0
                    );
                    return Err(Diagnostic::new(Code::ArchiveMalformed, what));
                }
                self.storages.insert(meta.path_name.clone(), storage.clone());
                storage
            }
        };
        Ok(Weight::Tensor(SavedTensor {
            tensor: view(storage, tensor_meta, &self.options.limits)?,
            requires_grad: tensor_meta.requires_grad,
            is_parameter: meta.is_param,
        }))
    }

    /// A tensor subclass or another object of Python.
    fn pickled(&self, path: &str, meta: &PayloadMeta) -> Result<Weight> {
        let bytes = self.archive.read_in_root(path)?;
        let is_object = meta.tensor_meta.is_none();
        // A pickle of protocol 2 and later, as torch.save wrote before it wrote zip files.
        let is_saved = bytes.starts_with(b"PK") || bytes.starts_with(b"\x80");
        if meta.use_pickle && !is_object && !is_saved {
            let what = format!("entry {path:?} is to be a file of torch.save (`use_pickle`), and is not");
            return Err(Diagnostic::new(Code::ArchiveMalformed, what));
        }
        // A plain tensor may be pickled too; anything that is no file of torch.save has no tensors to rebuild.
        if meta.use_pickle && bytes.starts_with(b"PK") {
            let saved = TorchSave::read(&bytes, self.options)?;
            if let Ok(tensor) = saved.tensor(saved.pickle().root()) {
                return Ok(Weight::Tensor(tensor.clone()));
            }
        }
        let bytes = match bytes {
            Cow::Borrowed(it) => copied(it)?,
            Cow::Owned(it) => it,
        };
        Ok(Weight::Opaque(Arc::new(bytes)))
    }
}

fn view(storage: Storage, meta: &TensorMeta, limits: &Limits) -> Result<Tensor> {
    Limits::check("rank", limits.rank, meta.sizes.len() as u64)?;
    let dims = |them: &[SymInt]| them.iter().map(count).collect::<Result<Dims>>();
    let (sizes, strides, offset) = (dims(&meta.sizes)?, dims(&meta.strides)?, count(&meta.storage_offset)?);
    let was_saved = !storage.is_empty();
    Tensor::view_of(storage, meta.dtype.0, &sizes, &strides, offset).map_err(|error| {
        if was_saved {
            error
        } else {
            error.note("the entry is empty: the program may have been saved without weights")
        }
    })
}

fn malformed(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::SchemaMalformed, what)
}

fn count(value: &SymInt) -> Result<usize> {
    let wrong = |what: String| Diagnostic::new(Code::ViewOutOfBounds, what);
    match value {
        SymInt::Int(it) => {
            usize::try_from(*it).map_err(|_| wrong(format!("{it} is not a size, stride or offset of a weight")))
        }
        SymInt::Expr(it) => Err(wrong(format!("a weight has the symbolic size `{}`", it.expr_str))),
    }
}
