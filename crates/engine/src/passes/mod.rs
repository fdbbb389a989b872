//! Passes by name, as hosts call them: options and answers are JSON, graphs are modules.

mod call;
mod constants;
mod devices;
mod local;
mod manipulation;
mod matching;
mod option_names;
mod partition;
mod types;

pub use call::{PassReply, PassRequest};

use crate::Library;
use option_names::option_names;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{GraphModule, NodeId};
use ts_rs::{Config, TS};

/// A pass that hosts call by name.
pub struct HostPass {
    /// The name.
    pub name: &'static str,
    /// Runs it and gives what it has to say.
    pub run: fn(&mut PassCall<'_>) -> Result<serde_json::Value>,
}

/// The options of a pass that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoOptions {}

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

/// Prints the TypeScript of an option or answer.
type Declare = fn(&Config) -> String;

/// The TypeScript of the options and answers of all passes, with their documentation.
pub fn pass_types() -> Vec<String> {
    let config = Config::new().with_large_int("number");
    let families = [
        constants::TYPES,
        devices::TYPES,
        local::TYPES,
        manipulation::TYPES,
        matching::TYPES,
        partition::TYPES,
        types::TYPES,
    ];
    families.into_iter().flatten().map(|it| it(&config)).collect()
}

/// The TypeScript of a type, with its documentation.
pub(crate) fn declared<T: TS>(config: &Config) -> String {
    format!("{}export {}", T::docs().unwrap_or_default(), T::decl(config))
}

/// The TypeScript of options, and of the list of their names, against which hosts check what they are given.
fn declared_with_names<T: TS + DeserializeOwned>(config: &Config) -> String {
    let name = T::ident(config);
    let mut constant = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !constant.is_empty() {
            constant.push('_');
        }
        constant.push(letter.to_ascii_uppercase());
    }
    let names: String = option_names::<T>().iter().map(|it| format!("  {it:?},\n")).collect();
    format!(
        "{}\n\n/**\n * The names of the options of {{@link {name}}}.\n */\nexport const {constant} = [\n{names}] as const \
         satisfies readonly (keyof {name})[];",
        declared::<T>(config)
    )
}

/// An answer as JSON.
fn answer(value: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(value)
        .map_err(|problem| Diagnostic::new(Code::Internal, format!("the answer has no JSON: {problem}")))
}

/// The pass of this name.
///
/// # Errors
/// `InvalidOption` where there is none.
pub fn host_pass(name: &str) -> Result<&'static HostPass> {
    let families = [
        constants::PASSES,
        devices::PASSES,
        local::PASSES,
        manipulation::PASSES,
        matching::PASSES,
        partition::PASSES,
        types::PASSES,
    ];
    families.into_iter().flatten().find(|it| it.name == name).ok_or_else(|| {
        Diagnostic::new(Code::InvalidOption, format!("there is no pass `{name}`"))
            .help("the names are those of torch.fx")
    })
}
