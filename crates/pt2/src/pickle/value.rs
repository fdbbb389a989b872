//! What a pickle describes, as one list of values.

use super::machine::Machine;
use crate::Limits;
use tracefx_core::Result;

/// A value of a [`Pickle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(super) u32);

/// One value; its parts are ids of the same pickle.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Python's `None`.
    None,
    /// A `bool`.
    Bool(bool),
    /// An `int` that fits 64 bits.
    Int(i64),
    /// An `int` that does not, as little-endian two's complement.
    BigInt(Box<[u8]>),
    /// A `float`.
    Float(f64),
    /// A `str`.
    Str(Box<str>),
    /// `bytes` or a `bytearray`.
    Bytes(Box<[u8]>),
    /// A `list`.
    List(Vec<ValueId>),
    /// A `tuple`.
    Tuple(Box<[ValueId]>),
    /// A `dict`, its keys as written: a later pair replaces an earlier one of the same key.
    Dict(Vec<(ValueId, ValueId)>),
    /// A `set` or `frozenset`.
    Set(Vec<ValueId>),
    /// The name of a class or function, which stays a name.
    Global(Box<Global>),
    /// A persistent id, which the file around the pickle resolves.
    Persistent(ValueId),
    /// What would have been the result of a call.
    Object(Box<Object>),
}

/// The name of a class or function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// The module, such as `torch._utils`.
    pub module: Box<str>,
    /// The qualified name in it, such as `_rebuild_tensor_v2`.
    pub name: Box<str>,
}

/// How an object would have been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// `callable(*args)`.
    Call,
    /// `callable.__new__(callable, *args)`.
    New,
}

/// A call that was not made, and what was to be done with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// How it would have been made.
    pub kind: ObjectKind,
    /// What would have been called.
    pub callable: ValueId,
    /// The positional arguments, a tuple.
    pub args: ValueId,
    /// The keyword arguments, a dict, where there are any.
    pub kwargs: Option<ValueId>,
    /// Its state (`__setstate__` or `__dict__`).
    pub state: Option<ValueId>,
    /// What would have been appended.
    pub items: Vec<ValueId>,
    /// What would have been set by key.
    pub pairs: Vec<(ValueId, ValueId)>,
}

/// What a pickle describes.
///
/// ```
/// use tracefx_pt2::{Limits, pickle::{Pickle, Value}};
/// // pickle.dumps((True, "a"), 2)
/// let pickle = Pickle::read(b"\x80\x02\x88X\x01\x00\x00\x00a\x86.", &Limits::default()).unwrap();
/// let Value::Tuple(items) = pickle.get(pickle.root()) else { panic!() };
/// assert_eq!(pickle.get(items[0]), &Value::Bool(true));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pickle {
    pub(super) values: Vec<Value>,
    pub(super) root: ValueId,
}

impl Pickle {
    /// Reads a pickle of protocol 2 to 5.
    ///
    /// # Errors
    /// `PickleMalformed` for bytes that are not a pickle, `PickleForbidden` for an instruction that has no place in
    /// data, `LimitExceeded` for one that is too large.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Self> {
        Machine::new(bytes, limits).run()
    }

    /// The value that the pickle stands for.
    pub fn root(&self) -> ValueId {
        self.root
    }

    /// A value.
    ///
    /// # Panics
    /// When the id is of another pickle.
    pub fn get(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// Every value, in the order of creation: the callable and the arguments of an object come before it.
    pub fn values(&self) -> impl Iterator<Item = (ValueId, &Value)> {
        self.values.iter().enumerate().map(|(at, value)| (ValueId(at as u32), value))
    }

    /// The text of a string.
    pub fn as_str(&self, id: ValueId) -> Option<&str> {
        if let Value::Str(text) = self.get(id) { Some(text) } else { None }
    }

    /// The number of an `int` that fits 64 bits.
    pub fn as_int(&self, id: ValueId) -> Option<i64> {
        if let Value::Int(it) = self.get(id) { Some(*it) } else { None }
    }

    /// The items of a tuple.
    pub fn as_tuple(&self, id: ValueId) -> Option<&[ValueId]> {
        if let Value::Tuple(items) = self.get(id) { Some(items) } else { None }
    }

    /// The module and name of a global.
    pub fn as_global(&self, id: ValueId) -> Option<(&str, &str)> {
        if let Value::Global(it) = self.get(id) { Some((&it.module, &it.name)) } else { None }
    }

    /// The object, its callable's module and its name.
    pub fn as_object(&self, id: ValueId) -> Option<(&Object, &str, &str)> {
        let Value::Object(object) = self.get(id) else { return None };
        let (module, name) = self.as_global(object.callable)?;
        Some((object, module, name))
    }

    /// The pairs of a `dict` or `collections.OrderedDict`, in order.
    pub fn as_mapping(&self, id: ValueId) -> Option<&[(ValueId, ValueId)]> {
        match self.get(id) {
            Value::Dict(pairs) => Some(pairs),
            Value::Object(object) => {
                (self.as_global(object.callable) == Some(("collections", "OrderedDict"))).then_some(&object.pairs[..])
            }
            _ => None,
        }
    }
}
