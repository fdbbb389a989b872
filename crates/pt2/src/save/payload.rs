//! The tensors of a program: one entry for each storage, and how each tensor looks at it.

use super::{graph, invalid, unsavable};
use crate::LoadOptions;
use crate::schema::PayloadMeta;
use crate::torch_save::TorchSave;
use indexmap::IndexMap;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use tracefx_core::{DType, Diagnostic, Result, Storage, Tensor};
use tracefx_export::{Constant, ExportedProgram, InputKind, InputSpec};
use tracefx_ir::{Opcode, TensorMeta, Val};

/// Where payloads lie.
#[derive(Clone, Copy)]
pub(super) enum Folder {
    Weights,
    Constants,
}

impl Folder {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Folder::Weights => "weights",
            Folder::Constants => "constants",
        }
    }
}

/// What lies in one folder.
pub(super) struct Payloads {
    /// The entries by name.
    pub(super) entries: Vec<(String, Payload<'static>)>,
    /// What there is by the name of the weight or constant.
    pub(super) config: IndexMap<String, PayloadMeta>,
}

/// The bytes of one entry.
pub(crate) enum Payload<'a> {
    /// A storage, as much of it as makes whole elements.
    Storage(Storage, DType),
    /// The bytes of a pickle, which the program has.
    Pickle(Arc<Vec<u8>>),
    /// Bytes that were made for the entry.
    Bytes(Cow<'a, [u8]>),
}

impl Payload<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Payload::Storage(storage, dtype) => storage.len() / dtype.size() * dtype.size(),
            Payload::Pickle(bytes) => bytes.len(),
            Payload::Bytes(bytes) => bytes.len(),
        }
    }

    /// Calls with the bytes, which are not copied.
    pub(super) fn with_bytes<T>(&self, body: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Payload::Storage(storage, _) => body(&storage.read().bytes()[..self.len()]),
            Payload::Pickle(bytes) => body(bytes),
            Payload::Bytes(bytes) => body(bytes),
        }
    }
}

/// What the signature and the graph say of a weight or constant.
struct Place<'a> {
    spec: &'a InputSpec,
    meta: Option<&'a TensorMeta>,
}

impl Payloads {
    /// The state.
    pub(super) fn weights(program: &ExportedProgram) -> Result<Self> {
        let places = places(program);
        let mut payloads = Writer::new("weight_");
        // Pickles come first, as in PyTorch's files.
        for (name, bytes) in &program.opaque_state {
            let place = places.get(&**name);
            let is_param = place.is_some_and(|it| it.spec.kind == InputKind::Parameter);
            payloads.pickle(name, bytes, "weight_", is_param, place)?;
        }
        for (name, entry) in &program.state_dict {
            let place = places.get(&**name);
            payloads.tensor(name, &entry.tensor, entry.is_parameter, entry.requires_grad, place)?;
        }
        Ok(payloads.payloads)
    }

    /// The constants, and the buffers that are not saved with the module.
    pub(super) fn constants(program: &ExportedProgram) -> Result<Self> {
        let places = places(program);
        let mut payloads = Writer::new("tensor_");
        for (name, constant) in &program.constants {
            let place = places.get(&**name);
            match constant {
                Constant::Tensor(tensor) => {
                    let requires_grad = place.and_then(|it| it.meta).is_some_and(|it| it.requires_grad);
                    payloads.tensor(name, tensor, false, requires_grad, place)?;
                }
                Constant::CustomObj(bytes) => {
                    let is_tensor = place.is_some_and(|it| it.spec.kind != InputKind::CustomObj);
                    // How an object was pickled is told by the name of its entry.
                    let prefix = match (is_tensor, bytes.starts_with(b"PK")) {
                        (true, _) => "tensor_",
                        (false, true) => "custom_obj_",
                        (false, false) => "opaque_obj_",
                    };
                    payloads.pickle(name, bytes, prefix, false, place)?;
                }
            }
        }
        Ok(payloads.payloads)
    }
}

struct Writer {
    payloads: Payloads,
    prefix: &'static str,
    /// The entry of each storage by what it is seen as: PyTorch reads an entry as elements of one dtype.
    storages: HashMap<(usize, DType), String>,
    counts: HashMap<&'static str, usize>,
}

impl Writer {
    fn new(prefix: &'static str) -> Self {
        let payloads = Payloads { entries: Vec::new(), config: IndexMap::new() };
        Writer { payloads, prefix, storages: HashMap::new(), counts: HashMap::new() }
    }

    fn tensor(
        &mut self,
        name: &str,
        tensor: &Tensor,
        is_param: bool,
        requires_grad: bool,
        place: Option<&Place<'_>>,
    ) -> Result<()> {
        let key = (tensor.storage().id(), tensor.dtype());
        let path_name = match self.storages.get(&key) {
            Some(known) => known.clone(),
            None => {
                let path_name = self.add(self.prefix, Payload::Storage(tensor.storage().clone(), tensor.dtype()));
                self.storages.insert(key, path_name.clone());
                path_name
            }
        };
        let device = place.and_then(|it| it.meta).map(|it| it.device.clone());
        let known = TensorMeta::of(tensor);
        let meta = TensorMeta { requires_grad, device: device.unwrap_or(known.device.clone()), ..known };
        let tensor_meta = Some(graph::tensor_meta(&meta)?);
        let meta = PayloadMeta { path_name, is_param, use_pickle: false, tensor_meta };
        self.describe(name, meta)
    }

    fn pickle(
        &mut self,
        name: &str,
        bytes: &Arc<Vec<u8>>,
        prefix: &'static str,
        is_param: bool,
        place: Option<&Place<'_>>,
    ) -> Result<()> {
        if is_mapping(bytes, name) {
            return Err(unsavable(format!(
                "`{name}` cannot be cut out of the pickle that it shares with the whole state"
            ))
            .help("save the program again with PyTorch 2.9 or later, which writes an entry for each weight"));
        }
        let path_name = self.add(prefix, Payload::Pickle(Arc::clone(bytes)));
        let tensor_meta = place.and_then(|it| it.meta).map(graph::tensor_meta).transpose()?;
        self.describe(name, PayloadMeta { path_name, is_param, use_pickle: true, tensor_meta })
    }

    fn describe(&mut self, name: &str, meta: PayloadMeta) -> Result<()> {
        if self.payloads.config.insert(name.to_string(), meta).is_some() {
            return Err(invalid(format!("the state has `{name}` twice")));
        }
        Ok(())
    }

    fn add(&mut self, prefix: &'static str, payload: Payload<'static>) -> String {
        let count = self.counts.entry(prefix).or_default();
        let name = format!("{prefix}{count}");
        *count += 1;
        self.payloads.entries.push((name.clone(), payload));
        name
    }
}

/// Files of PyTorch up to 2.8 have one pickle for all, of which each object that is not rebuilt keeps the whole.
fn is_mapping(bytes: &[u8], name: &str) -> bool {
    let saved = bytes.starts_with(b"PK").then(|| TorchSave::read(bytes, &LoadOptions::default()));
    let Some(Ok(saved)) = saved else { return false };
    let pairs: Result<_, Diagnostic> = saved.mapping(saved.pickle().root());
    pairs.is_ok_and(|pairs: Vec<_>| pairs.iter().any(|(key, _)| *key == name))
}

/// What the signature and the graph say, by the name of the weight or constant.
fn places(program: &ExportedProgram) -> HashMap<&str, Place<'_>> {
    let graph = &program.module.graph;
    let placeholders = graph.nodes().map(|it| graph.node(it)).filter(|it| it.op() == Opcode::Placeholder);
    let mut places = HashMap::new();
    for (placeholder, spec) in placeholders.zip(&program.signature.input_specs) {
        let meta = match &placeholder.meta.val {
            Some(Val::Tensor(meta)) => Some(meta),
            _ => None,
        };
        if let Some(target) = &spec.target {
            places.entry(&**target).or_insert(Place { spec, meta });
        }
    }
    places
}
