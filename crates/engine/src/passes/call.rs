//! A pass on modules that are bytes, and its answer as bytes.

use super::{PassCall, host_pass};
use crate::Library;
use tracefx_core::{Code, Diagnostic, Result, Storage};
use tracefx_ir::{Attribute, GraphModule};
use tracefx_wire::{Limits, decode_module, encode_edits};

/// A pass that a host asks for. Its modules have fakes in the place of tensors, and modules without nodes in the place of
/// those that have no graph. All nodes, and all modules, are numbered in the order in which they are given.
#[derive(Debug)]
pub struct PassRequest {
    module: GraphModule,
    others: Vec<GraphModule>,
    n_nodes: u32,
    n_modules: u32,
}

/// What a pass gives back.
#[derive(Debug)]
pub struct PassReply {
    /// What it has to say: JSON.
    pub answer: String,
    /// What became of the module, as an edit script.
    pub edits: Vec<u8>,
    /// The storages of tensors that are new, in the order of the script.
    pub storages: Vec<Storage>,
}

impl PassRequest {
    /// A request about this module.
    ///
    /// # Errors
    /// A code of the wire group where the bytes are damaged.
    pub fn new(module: &[u8]) -> Result<Self> {
        let mut res = PassRequest {
            module: GraphModule::new(tracefx_ir::Graph::new()),
            others: Vec::new(),
            n_nodes: 0,
            n_modules: 0,
        };
        res.module = res.read(module)?;
        Ok(res)
    }

    /// Adds a pattern, a replacement, or what else the pass takes.
    ///
    /// # Errors
    /// As [`PassRequest::new`].
    pub fn push(&mut self, module: &[u8]) -> Result<()> {
        let module = self.read(module)?;
        self.others.push(module);
        Ok(())
    }

    /// Runs a pass; `options` is JSON.
    ///
    /// # Errors
    /// `InvalidOption` where there is no such pass or option; else what the pass refuses.
    pub fn run(mut self, library: &Library, name: &str, options: &str) -> Result<PassReply> {
        let pass = host_pass(name)?;
        let options = serde_json::from_str(options)
            .map_err(|problem| Diagnostic::new(Code::InvalidOption, format!("the options are no JSON: {problem}")))?;
        let (module, others) = (&mut self.module, self.others.as_slice());
        let answer = (pass.run)(&mut PassCall { library, module, others, options })?.to_string();
        let (edits, storages) = encode_edits(&self.module)?;
        Ok(PassReply { answer, edits, storages })
    }

    fn read(&mut self, bytes: &[u8]) -> Result<GraphModule> {
        let mut module = decode_module(bytes, &[], &Limits::default())?;
        let mut level = vec![&mut module];
        // Breadth first, as the host numbers them.
        while !level.is_empty() {
            let mut next = Vec::new();
            for module in level {
                let n_nodes = module.graph.len() as u32;
                module.graph.track(self.n_modules, self.n_nodes);
                (self.n_modules, self.n_nodes) = (self.n_modules + 1, self.n_nodes + n_nodes);
                next.extend(module.attributes.values_mut().filter_map(|it| match it {
                    Attribute::Module(child) => Some(&mut **child),
                    Attribute::Tensor { .. } | Attribute::Fake { .. } => None,
                }));
            }
            level = next;
        }
        Ok(module)
    }
}
