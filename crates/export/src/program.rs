//! What an exported program consists of: the graph module, signature, state, constants and ranges. What it can do is in the
//! files named after the method.

use crate::{Argument, GraphSignature, TreeSpec};
use indexmap::IndexMap;
use std::sync::Arc;
use tracefx_core::{Diagnostic, Tensor};
use tracefx_ir::{GraphModule, Str};
use tracefx_sym::{Symbol, ValueRange};

/// The version of PyTorch's schema that programs made here are in.
pub const SCHEMA_VERSION: (i64, i64) = (8, 20);

/// A parameter or persistent buffer.
#[derive(Clone, Debug)]
pub struct StateEntry {
    /// The tensor. Entries may share a storage: tied weights do.
    pub tensor: Tensor,
    /// Whether it is a parameter.
    pub is_parameter: bool,
    /// Whether gradients flow to it.
    pub requires_grad: bool,
}

/// Something that the program holds besides its state.
#[derive(Clone, Debug)]
pub enum Constant {
    /// A lifted tensor or a buffer that is not saved with the module.
    Tensor(Tensor),
    /// A custom object, kept as the bytes of its pickle, which nothing here ever runs.
    CustomObj(Arc<Vec<u8>>),
}

/// The signature of a module whose calls are to be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSignature {
    /// What goes in, by the names of graph values; empty for the root.
    pub inputs: Vec<Argument>,
    /// What comes out, by the names of graph values; empty for the root.
    pub outputs: Vec<Argument>,
    /// The structure of `(args, kwargs)`.
    pub in_spec: TreeSpec,
    /// The structure of the result.
    pub out_spec: TreeSpec,
    /// The names of the positional and keyword parameters of `forward`.
    pub forward_arg_names: Option<Vec<Str>>,
}

impl CallSignature {
    /// The signature of a root that takes these arguments by position, and gives so many results in a tuple; a single one
    /// as it is.
    pub fn flat(args: &[&str], n_results: usize) -> Self {
        let leaves = |n: usize| vec![TreeSpec::LEAF; n];
        let kwargs = TreeSpec { ty: Some("builtins.dict".into()), context: Some("[]".into()), children: Vec::new() };
        CallSignature {
            inputs: Vec::new(),
            outputs: Vec::new(),
            in_spec: TreeSpec::tuple(vec![TreeSpec::tuple(leaves(args.len())), kwargs]),
            out_spec: if n_results == 1 { TreeSpec::LEAF } else { TreeSpec::tuple(leaves(n_results)) },
            forward_arg_names: Some(args.iter().map(|it| Str::from(*it)).collect()),
        }
    }
}

/// One module that the traced code called.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleCallEntry {
    /// The qualified name; empty for the root. A second call is `name@1`.
    pub fqn: Str,
    /// The signature, where it is kept.
    pub signature: Option<CallSignature>,
}

/// A program as `torch.export` gives it. See the crate's documentation.
#[derive(Clone, Debug)]
pub struct ExportedProgram {
    /// The graph, and the sub-graphs that it refers to.
    pub module: GraphModule,
    /// What the inputs and outputs of the graph are.
    pub signature: GraphSignature,
    /// Parameters and persistent buffers by qualified name, those that the graph does not use included.
    pub state_dict: IndexMap<Str, StateEntry>,
    /// Entries of the state that only Python can make again (tensor subclasses), as the bytes of their pickles.
    pub opaque_state: IndexMap<Str, Arc<Vec<u8>>>,
    /// Lifted constants, buffers that are not saved, and custom objects, by qualified name.
    pub constants: IndexMap<Str, Constant>,
    /// The values that the symbols of the sizes may have.
    pub range_constraints: IndexMap<Symbol, ValueRange>,
    /// The root first, then the modules that the traced code called.
    pub module_call_graph: Vec<ModuleCallEntry>,
    /// The dialects that the graph was checked against: `TRAINING` or `ATEN`; no name means `ATEN`.
    pub verifiers: Vec<Str>,
    /// Conditions on the inputs as Python expressions.
    pub guards: Vec<Str>,
    /// The inputs that the program was exported with, flattened; `None` where the file has none or they cannot be read
    /// without running code.
    pub example_inputs: Option<Vec<tracefx_ops::Value<Tensor>>>,
    /// The versions of the operator sets.
    pub opset_version: IndexMap<Str, i64>,
    /// Major and minor version of the schema that the program was written in.
    pub schema_version: (i64, i64),
    /// The PyTorch that wrote it.
    pub torch_version: Str,
    /// The fields of the named tuples among inputs and outputs, by the name of the type.
    pub namedtuple_fields: IndexMap<Str, Vec<Str>>,
    /// Texts that the user saved beside the program.
    pub extra_files: IndexMap<Str, Str>,
    /// What could not be read and is not needed to run the program, such as example inputs of an unknown class.
    pub warnings: Vec<Diagnostic>,
}

impl ExportedProgram {
    /// A program without state, to put the other parts into. [`ExportedProgram::checked`] does what PyTorch's constructor does
    /// with all of them.
    pub fn new(module: GraphModule, signature: GraphSignature) -> Self {
        ExportedProgram {
            module,
            signature,
            state_dict: IndexMap::new(),
            opaque_state: IndexMap::new(),
            constants: IndexMap::new(),
            range_constraints: IndexMap::new(),
            module_call_graph: Vec::new(),
            verifiers: Vec::new(),
            guards: Vec::new(),
            example_inputs: None,
            opset_version: IndexMap::new(),
            schema_version: SCHEMA_VERSION,
            torch_version: "".into(),
            namedtuple_fields: IndexMap::new(),
            extra_files: IndexMap::new(),
            warnings: Vec::new(),
        }
    }

    /// The structure of `(args, kwargs)`, where the program has one.
    pub fn in_spec(&self) -> Option<&TreeSpec> {
        self.root_signature().map(|it| &it.in_spec)
    }

    /// The structure of the result, where the program has one.
    pub fn out_spec(&self) -> Option<&TreeSpec> {
        self.root_signature().map(|it| &it.out_spec)
    }

    /// The names of the positional and keyword parameters of `forward`, where the program has them.
    pub fn forward_arg_names(&self) -> Option<&[Str]> {
        self.root_signature().and_then(|it| it.forward_arg_names.as_deref())
    }

    /// The tensor of a parameter, buffer or constant.
    pub fn tensor(&self, fqn: &str) -> Option<&Tensor> {
        match (self.state_dict.get(fqn), self.constants.get(fqn)) {
            (Some(entry), _) => Some(&entry.tensor),
            (None, Some(Constant::Tensor(tensor))) => Some(tensor),
            (None, Some(Constant::CustomObj(_)) | None) => None,
        }
    }

    fn root_signature(&self) -> Option<&CallSignature> {
        self.module_call_graph.iter().find(|it| it.fqn.is_empty()).and_then(|it| it.signature.as_ref())
    }
}
