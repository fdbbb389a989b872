//! PyTorch's pytrees: how nested inputs and outputs are flattened and put together again. Values are not looked at.

use serde_json::{Value as Json, json};
use tracefx_ir::Str;

/// The structure of nested inputs or outputs: PyTorch's pytree `TreeSpec`.
///
/// The type and its context are kept as PyTorch serialises them, so that structures of types that are not known here
/// (a registered dataclass, for one) survive.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeSpec {
    /// The container's type, such as `builtins.tuple`; `None` for a leaf.
    pub ty: Option<Str>,
    /// What the type needs besides the children, as JSON text: the keys of a dict, for one.
    pub context: Option<Str>,
    /// The children.
    pub children: Vec<TreeSpec>,
}

impl TreeSpec {
    /// One value.
    pub const LEAF: TreeSpec = TreeSpec { ty: None, context: None, children: Vec::new() };

    /// A tuple of these.
    pub fn tuple(children: Vec<TreeSpec>) -> Self {
        TreeSpec { ty: Some("builtins.tuple".into()), context: Some("null".into()), children }
    }

    /// A list of these.
    pub fn list(children: Vec<TreeSpec>) -> Self {
        TreeSpec { ty: Some("builtins.list".into()), context: Some("null".into()), children }
    }

    /// Whether this is one value.
    pub fn is_leaf(&self) -> bool {
        self.ty.is_none()
    }

    /// The number of values in it.
    pub fn num_leaves(&self) -> usize {
        let (mut n_leaves, mut rest) = (0, vec![self]);
        while let Some(spec) = rest.pop() {
            n_leaves += spec.is_leaf() as usize;
            rest.extend(&spec.children);
        }
        n_leaves
    }

    /// The structure as JSON: `type`, `context` and `children`.
    pub fn to_json(&self) -> Json {
        let children: Vec<Json> = self.children.iter().map(TreeSpec::to_json).collect();
        json!({ "type": self.ty.as_deref(), "context": self.context.as_deref(), "children": children })
    }

    /// The keys of a dict, in the order of its children; `None` for other things, and where the context cannot be read.
    pub fn keys(&self) -> Option<Vec<Key>> {
        let context = self.context.as_deref()?;
        let keys: Vec<Json> = match self.ty.as_deref()? {
            "builtins.dict" | "collections.OrderedDict" => serde_json::from_str(context).ok()?,
            "collections.defaultdict" => {
                let context: Json = serde_json::from_str(context).ok()?;
                context["dict_context"].as_array()?.clone()
            }
            _ => return None,
        };
        keys.iter()
            .map(|key| match key {
                Json::String(it) => Some(Key::Str(it.as_str().into())),
                Json::Number(it) => it.as_i64().map(Key::Int),
                Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
            })
            .collect()
    }

    /// The name under which the class of a named tuple or of another object is registered; `None` for Python's own
    /// containers and for leaves.
    pub fn class_name(&self) -> Option<&str> {
        match self.ty.as_deref()? {
            "collections.namedtuple" => self.context.as_deref(),
            ty if ty.starts_with("builtins.") || ty.starts_with("collections.") => None,
            ty => Some(ty),
        }
    }

    /// The fields of a registered dataclass, in the order of its children, and those that were None, which are no
    /// children; `None` for other things.
    pub fn dataclass_fields(&self) -> Option<(Vec<Str>, Vec<Str>)> {
        let [fields, none_fields]: [Vec<String>; 2] = serde_json::from_str(self.context.as_deref()?).ok()?;
        let names = |them: Vec<String>| them.into_iter().map(Into::into).collect();
        Some((names(fields), names(none_fields)))
    }
}

/// A key of a dict among inputs or outputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A string.
    Str(Str),
    /// An int.
    Int(i64),
}
