//! Passes by name, as hosts call them: options and answers are JSON, graphs are modules.

mod local;
mod matching;
mod partition;
mod types;

use crate::Library;
use serde::de::DeserializeOwned;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{GraphModule, NodeId};

/// A pass that hosts call by name.
pub struct HostPass {
    /// The name.
    pub name: &'static str,
    /// Runs it and gives what it has to say.
    pub run: fn(&mut PassCall<'_>) -> Result<serde_json::Value>,
}

/// One call of a pass.
pub struct PassCall<'a> {
    /// The operators.
    pub library: &'a Library,
    /// What is changed.
    pub module: &'a mut GraphModule,
    /// Patterns, replacements and what else the pass is given.
    pub others: &'a [GraphModule],
    /// The options, of which each pass knows the type.
    pub options: serde_json::Value,
}

impl PassCall<'_> {
    /// The options.
    ///
    /// # Errors
    /// `InvalidOption` where they are not what the pass takes.
    pub fn options<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&self.options)
            .map_err(|problem| Diagnostic::new(Code::InvalidOption, format!("the options are not right: {problem}")))
    }

    /// The nodes of the module, by the numbers under which hosts know them: their places before the pass.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.module.graph.nodes().collect()
    }
}

/// The pass of this name.
///
/// # Errors
/// `InvalidOption` where there is none.
pub fn host_pass(name: &str) -> Result<&'static HostPass> {
    let families = [local::PASSES, matching::PASSES, partition::PASSES, types::PASSES];
    families.into_iter().flatten().find(|it| it.name == name).ok_or_else(|| {
        Diagnostic::new(Code::InvalidOption, format!("there is no pass `{name}`"))
            .help("the names are those of torch.fx")
    })
}
