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
}
