//! The inputs that a program was exported with: a file of `torch.save` with `(args, kwargs)`.

use super::payload::Payload;
use super::zip::Zip;
use crate::pickle::PickleWriter;
use crate::program::EXAMPLE_CLASSES;
use std::collections::HashMap;
use tracefx_core::allocate::with_room;
use tracefx_core::{DType, Result, Storage, Tensor};
use tracefx_export::{ExportedProgram, Key, TreeSpec};
use tracefx_ops::Value;

/// The file, or nothing where there are no example inputs or a pickle cannot have them; both are legal.
pub(super) fn write(program: &ExportedProgram) -> Result<Vec<u8>> {
    let (Some(leaves), Some(spec)) = (&program.example_inputs, program.in_spec()) else { return Ok(Vec::new()) };
    if spec.num_leaves() != leaves.len() {
        return Ok(Vec::new());
    }
    let classes = program.module.meta.get(EXAMPLE_CLASSES).and_then(|it| serde_json::from_str(it).ok());
    let mut writer = Writer {
        pickle: PickleWriter::new(),
        storages: Vec::new(),
        keys: HashMap::new(),
        classes: classes.unwrap_or_default(),
    };
    if !writer.tree(spec, &mut leaves.iter()) {
        return Ok(Vec::new());
    }
    let Writer { pickle, storages, .. } = writer;
    let mut zip = Zip::new("archive")?;
    zip.entry("data.pkl", Payload::Bytes(pickle.finish().into()))?;
    let mut add = |name: &str, bytes: &'static [u8]| zip.entry(name, Payload::Bytes(bytes.into()));
    add(".format_version", b"1")?;
    add(".storage_alignment", b"64")?;
    add("byteorder", b"little")?;
    add("version", b"3\n")?;
    for (key, storage) in storages.into_iter().enumerate() {
        zip.entry(&format!("data/{key}"), Payload::Storage(storage, DType::UInt8))?;
    }
    let mut pieces = zip.pieces()?;
    let mut bytes = with_room(usize::try_from(pieces.len()).unwrap_or(usize::MAX))?;
    while pieces.next(|it| bytes.extend_from_slice(it))?.is_some() {}
    Ok(bytes)
}

struct Writer {
    pickle: PickleWriter,
    storages: Vec<Storage>,
    /// The key of each storage by what it is seen as.
    keys: HashMap<(usize, Option<DType>), usize>,
    /// The module and name of each class by the name under which it is registered.
    classes: HashMap<String, (String, String)>,
}

impl Writer {
    /// Whether the structure and the values could be written.
    fn tree<'a>(&mut self, spec: &TreeSpec, leaves: &mut impl Iterator<Item = &'a Value<Tensor>>) -> bool {
        let Some(ty) = spec.ty.as_deref() else {
            return leaves.next().is_some_and(|it| self.leaf(it));
        };
        match ty {
            "builtins.tuple" => {
                self.pickle.mark();
                let all = spec.children.iter().all(|it| self.tree(it, leaves));
                self.pickle.tuple();
                all
            }
            "builtins.list" => {
                self.pickle.empty_list();
                self.pickle.mark();
                let all = spec.children.iter().all(|it| self.tree(it, leaves));
                self.pickle.appends();
                all
            }
            "builtins.dict" | "collections.OrderedDict" => {
                let Some(keys) = spec.keys() else { return false };
                if ty == "builtins.dict" {
                    self.pickle.empty_dict();
                } else {
                    self.pickle.call("collections", "OrderedDict", |it| it.mark());
                }
                self.pairs(&keys, spec, leaves)
            }
            // PyTorch imports what a pickle names, so a name that was not read from one is no good.
            ty => {
                let class = spec.class_name().and_then(|it| self.classes.get(it));
                let Some((module, name)) = class.filter(|(module, name)| !format!("{module}{name}").contains('\n'))
                else {
                    return false;
                };
                self.pickle.global(module, name);
                self.pickle.mark();
                if ty == "collections.namedtuple" {
                    let all = spec.children.iter().all(|it| self.tree(it, leaves));
                    self.pickle.tuple();
                    self.pickle.new_object();
                    return all;
                }
                self.pickle.tuple();
                self.pickle.new_object();
                let Some((fields, none_fields)) = spec.dataclass_fields() else { return false };
                self.pickle.empty_dict();
                let fields: Vec<Key> = fields.into_iter().map(Key::Str).collect();
                let all = self.pairs(&fields, spec, leaves);
                self.pickle.mark();
                for name in none_fields {
                    self.pickle.str(&name);
                    self.pickle.none();
                }
                self.pickle.set_items();
                self.pickle.build();
                all
            }
        }
    }

    fn pairs<'a>(
        &mut self,
        keys: &[Key],
        spec: &TreeSpec,
        leaves: &mut impl Iterator<Item = &'a Value<Tensor>>,
    ) -> bool {
        self.pickle.mark();
        let all = keys.len() == spec.children.len()
            && keys.iter().zip(&spec.children).all(|(key, child)| {
                match key {
                    Key::Str(it) => self.pickle.str(it),
                    Key::Int(it) => self.pickle.int(*it),
                }
                self.tree(child, leaves)
            });
        self.pickle.set_items();
        all
    }

    fn leaf(&mut self, value: &Value<Tensor>) -> bool {
        match value {
            Value::None => self.pickle.none(),
            Value::Bool(it) => self.pickle.bool(*it),
            Value::Int(it) => match it.as_int() {
                Some(known) => self.pickle.int(known),
                None => return false,
            },
            Value::Float(it) => self.pickle.float(*it),
            Value::Str(it) => self.pickle.str(it),
            Value::Tensor(it) => self.tensor(it),
            Value::SymBool(_)
            | Value::SymFloat(_)
            | Value::Complex(_)
            | Value::DType(_)
            | Value::Device(_)
            | Value::Layout(_)
            | Value::MemoryFormat(_)
            | Value::List(_) => return false,
        }
        true
    }

    fn tensor(&mut self, tensor: &Tensor) {
        let dtype = tensor.dtype();
        let class = storage_class(dtype);
        let key = *self.keys.entry((tensor.storage().id(), class.map(|_| dtype))).or_insert_with(|| {
            self.storages.push(tensor.storage().clone());
            self.storages.len() - 1
        });
        let numel = tensor.storage().len() / if class.is_some() { dtype.size() } else { 1 };
        let function = if class.is_some() { "_rebuild_tensor_v2" } else { "_rebuild_tensor_v3" };
        self.pickle.call("torch._utils", function, |pickle| {
            pickle.mark();
            pickle.mark();
            pickle.str("storage");
            match class {
                Some(class) => pickle.global("torch", class),
                None => pickle.global("torch.storage", "UntypedStorage"),
            }
            pickle.str(&key.to_string());
            pickle.str("cpu");
            pickle.int(numel as i64);
            pickle.tuple();
            pickle.persistent();
            pickle.int(tensor.offset() as i64);
            for dims in [tensor.sizes(), tensor.strides()] {
                pickle.mark();
                dims.iter().for_each(|&it| pickle.int(it as i64));
                pickle.tuple();
            }
            pickle.bool(false);
            pickle.call("collections", "OrderedDict", |it| it.mark());
            if class.is_none() {
                pickle.global("torch", dtype.name());
            }
        });
    }
}

/// The class of storages of this dtype; newer dtypes have none.
fn storage_class(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Float32 => "FloatStorage",
        DType::Float64 => "DoubleStorage",
        DType::Float16 => "HalfStorage",
        DType::BFloat16 => "BFloat16Storage",
        DType::Int64 => "LongStorage",
        DType::Int32 => "IntStorage",
        DType::Int16 => "ShortStorage",
        DType::Int8 => "CharStorage",
        DType::UInt8 => "ByteStorage",
        DType::Bool => "BoolStorage",
        DType::Complex64 => "ComplexFloatStorage",
        DType::Complex128 => "ComplexDoubleStorage",
        _ => return None,
    })
}
