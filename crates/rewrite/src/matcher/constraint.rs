//! What a node of a pattern asks of what it stands for, beyond its place: a dtype, sizes, a value.

use super::equality::is_equal;
use serde::{Deserialize, Serialize};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::{Arg, Graph, Str, TensorMeta, Val};
use ts_rs::TS;

/// What is asked of what a node of the pattern stands for. What is not said is not asked.
///
/// Dtypes and sizes are those of the abstract values (`meta["val"]`), so that a node without one does not match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct Constraint {
    /// A tensor of one of these dtypes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Vec<String>>,
    /// A tensor of so many dimensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// A tensor of these sizes; null is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<Option<i64>>>,
    /// This literal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<ConstantValue>,
}

/// A literal that a [`Constraint`] asks for. As in Python, 1, 1.0 and `True` are equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(untagged)]
pub enum ConstantValue {
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(String),
}

impl Constraint {
    /// Refuses what no value can be.
    pub(super) fn check(&self) -> Result<()> {
        let is_unknown = |name: &&String| DType::from_name(name).is_none();
        match self.dtype.iter().flatten().find(is_unknown) {
            Some(name) => Err(Diagnostic::new(Code::InvalidOption, format!("there is no dtype `{name}`"))),
            None => Ok(()),
        }
    }

    /// What is asked and what is there instead, where the argument is not what is asked.
    pub(super) fn miss(&self, graph: &Graph, found: &Arg) -> Option<(String, String)> {
        if let Some(value) = &self.value {
            let wanted = match value {
                ConstantValue::Bool(it) => Arg::Bool(*it),
                ConstantValue::Int(it) => Arg::Int(*it),
                ConstantValue::Float(it) => Arg::Float(*it),
                ConstantValue::Str(it) => Arg::Str(Str::from(it.as_str())),
            };
            if !is_equal(&wanted, found) {
                return Some((format!("the value {}", graph.format_arg(&wanted)), graph.format_arg(found)));
            }
        }
        if self.dtype.is_none() && self.rank.is_none() && self.shape.is_none() {
            return None;
        }
        let meta = match found.as_node().map(|it| graph.node(it).meta.val.as_ref()) {
            Some(Some(Val::Tensor(meta))) => meta,
            Some(Some(_)) | None => return Some(("a tensor".to_owned(), graph.format_arg(found))),
            Some(None) => return Some(("a tensor".to_owned(), "a node of which no shape is known".to_owned())),
        };
        self.miss_of_tensor(meta)
    }

    fn miss_of_tensor(&self, meta: &TensorMeta) -> Option<(String, String)> {
        let dtype = meta.dtype.name();
        if self.dtype.as_ref().is_some_and(|wanted| !wanted.iter().any(|it| it == dtype)) {
            return Some((format!("a dtype of {:?}", self.dtype.as_deref().unwrap_or_default()), dtype.to_owned()));
        }
        let sizes = || meta.sizes.iter().map(ToString::to_string).collect::<Vec<String>>().join(", ");
        if self.rank.is_some_and(|it| it != meta.sizes.len()) {
            return Some((format!("{} dimensions", self.rank.unwrap_or_default()), format!("[{}]", sizes())));
        }
        let shape = self.shape.as_ref()?;
        let is_size =
            |(wanted, size): (&Option<i64>, &tracefx_sym::SymInt)| wanted.is_none_or(|it| size.as_int() == Some(it));
        if shape.len() == meta.sizes.len() && shape.iter().zip(&meta.sizes).all(is_size) {
            return None;
        }
        let wanted: Vec<String> = shape.iter().map(|it| it.map_or("?".to_owned(), |it| it.to_string())).collect();
        Some((format!("the sizes [{}]", wanted.join(", ")), format!("[{}]", sizes())))
    }
}
