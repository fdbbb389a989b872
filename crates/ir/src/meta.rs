//! What is noted about nodes: abstract values, and the texts that PyTorch serialises. Who notes them is the passes' matter.

use crate::Str;
use indexmap::IndexMap;
use tracefx_core::{DType, Device, Layout, Tensor};
use tracefx_sym::{Expr, SymBool, SymFloat, SymInt, Symbol};

/// What is known of a tensor without its data. Sizes, strides and the offset are in elements and may be symbolic.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMeta {
    /// The dtype of the elements.
    pub dtype: DType,
    /// The sizes.
    pub sizes: Vec<SymInt>,
    /// The strides.
    pub strides: Vec<SymInt>,
    /// The position of the first element in its storage.
    pub storage_offset: SymInt,
    /// Where the tensor lives.
    pub device: Device,
    /// How it is stored.
    pub layout: Layout,
    /// Whether gradients flow to it.
    pub requires_grad: bool,
}

impl TensorMeta {
    /// What is known of a tensor that is there.
    pub fn of(tensor: &Tensor) -> Self {
        let dims = |it: &[usize]| it.iter().map(|&it| SymInt::from(it as i64)).collect();
        TensorMeta {
            dtype: tensor.dtype(),
            sizes: dims(tensor.sizes()),
            strides: dims(tensor.strides()),
            storage_offset: SymInt::from(tensor.offset() as i64),
            device: Device::cpu(),
            layout: Layout::Strided,
            requires_grad: false,
        }
    }

    /// A row-major tensor on the CPU.
    pub fn contiguous(dtype: DType, sizes: Vec<SymInt>) -> Self {
        let mut strides = vec![SymInt::from(1); sizes.len()];
        for dim in (1..sizes.len()).rev() {
            strides[dim - 1] = &strides[dim] * sizes[dim].max(&SymInt::from(1));
        }
        TensorMeta {
            dtype,
            sizes,
            strides,
            storage_offset: SymInt::from(0),
            device: Device::cpu(),
            layout: Layout::Strided,
            requires_grad: false,
        }
    }
}

/// The abstract value of a node: what FX keeps as `meta["val"]`.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    /// No value.
    None,
    /// A tensor without its data.
    Tensor(TensorMeta),
    /// An int, perhaps symbolic.
    Int(SymInt),
    /// A float, perhaps symbolic.
    Float(SymFloat),
    /// A bool, perhaps symbolic.
    Bool(SymBool),
    /// Several values; the flag says whether they are a tuple or a list.
    Seq {
        /// The values.
        items: Vec<Val>,
        /// Whether they are a tuple.
        is_tuple: bool,
    },
}

impl Val {
    /// Visits the symbols of sizes, strides, offsets and numbers, some of them more than once.
    pub fn for_each_symbol(&self, visit: &mut dyn FnMut(&Symbol)) {
        match self {
            Val::Tensor(meta) => {
                let dims = meta.sizes.iter().chain(&meta.strides).chain([&meta.storage_offset]);
                dims.filter(|it| it.is_symbolic()).for_each(|it| it.symbols().iter().for_each(&mut *visit));
            }
            Val::Int(it) => it.symbols().iter().for_each(visit),
            Val::Float(it) => Expr::Float(it.clone()).symbols().iter().for_each(visit),
            Val::Bool(it) => Expr::Bool(it.clone()).symbols().iter().for_each(visit),
            Val::Seq { items, .. } => items.iter().for_each(|it| it.for_each_symbol(visit)),
            Val::None => {}
        }
    }
}

/// What passes and the exporter have noted about a node.
///
/// `val` is typed; the other entries (`stack_trace`, `nn_module_stack`, `source_fn_stack`, `torch_fn`, `from_node`,
/// `custom`…) are kept as the strings that PyTorch serialises, so that saving gives back what was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// The abstract value; an edit of the node's arguments invalidates it.
    pub val: Option<Val>,
    /// The other entries, in order.
    pub entries: IndexMap<Str, Str>,
    /// The node that the notes are from, by its number among those that the host gave. It goes along wherever the notes are
    /// copied, so that the host, which has notes that it did not give, can copy its own.
    pub origin: Option<u32>,
}

impl Meta {
    /// The entry of this key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(|it| &**it)
    }
}
