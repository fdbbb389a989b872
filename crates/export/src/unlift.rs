//! From a program to a module that holds its state: lifted inputs become attributes, and results that are new values are
//! written back. Lifting is in `lifted_state` and `lift_constants`.

use crate::tokens::remove_effect_tokens;
use crate::{Argument, Constant, ExportedProgram, InputKind, InputSpec, OutputKind};
use std::collections::HashMap;
use tracefx_core::{Code, Diagnostic, Result, Storage, Tensor};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, InsertPoint, NodeId, Opcode, TensorKind};
use tracefx_ops::{Registry, registry};

impl ExportedProgram {
    /// The program as a module that holds its state and takes the user's inputs alone: `ExportedProgram.module()`.
    ///
    /// Parameters, buffers and constants become attributes of the module, read by `get_attr` nodes. New values of
    /// buffers, parameters and inputs, which the graph returns, are written back by `copy_` nodes instead. Running the
    /// module does not change the program: the tensors are lazy clones, whose memory is copied when it is written to;
    /// entries that share a storage still do. Effect tokens are gone: the nodes of the module run in order without them.
    ///
    /// # Errors
    /// `AttributeMissing` where the signature names a tensor that the program does not hold, `GraphInvalid` where it does
    /// not fit the graph, `NotImplemented` for custom objects.
    pub fn module(&self) -> Result<GraphModule> {
        self.module_in(registry())
    }

    /// As [`ExportedProgram::module`], with operators of one's own.
    ///
    /// # Errors
    /// As there; `NotImplemented` where a call with a token is of an operator that the registry does not have.
    pub fn module_in(&self, registry: &Registry) -> Result<GraphModule> {
        let mut clones = LazyClones::default();
        self.module_with(registry, &mut |it| clones.of(it))
    }

    /// As [`ExportedProgram::module_in`], with the tensors of the program themselves: what a run writes to them, everybody sees who has
    /// them, and a run sees what others wrote.
    ///
    /// # Errors
    /// As there.
    pub fn module_sharing_state(&self, registry: &Registry) -> Result<GraphModule> {
        self.module_with(registry, &mut |it| Ok(it.clone()))
    }

    fn module_with(&self, registry: &Registry, held: &mut Held<'_>) -> Result<GraphModule> {
        let mut module = self.module.clone();
        let graph = &module.graph;
        let placeholders: Vec<NodeId> =
            graph.nodes().filter(|&it| graph.node(it).op() == Opcode::Placeholder).collect();
        let n_specs = self.signature.input_specs.len();
        if placeholders.len() != n_specs {
            let what = format!("the graph has {} inputs and its signature {n_specs}", placeholders.len());
            return Err(Diagnostic::new(Code::GraphInvalid, what));
        }
        remove_effect_tokens(&mut module.graph, registry)?;
        hold(&mut module, held)?;
        let mut reads: HashMap<NodeId, NodeId> = HashMap::new();
        for (&placeholder, spec) in placeholders.iter().zip(&self.signature.input_specs) {
            if !matches!(spec.kind, InputKind::UserInput | InputKind::Token) {
                if let Some(fqn) = spec.target.as_ref().filter(|it| self.module.attributes.contains_key(*it)) {
                    let what = format!("`{fqn}` is an attribute of the module and an input of the graph");
                    return Err(Diagnostic::new(Code::GraphInvalid, what));
                }
                reads.insert(placeholder, self.lower_input(&mut module, placeholder, spec, held)?);
            }
        }
        use_equal(&mut module.graph, &reads)?;
        for placeholder in placeholders.iter().filter(|it| reads.contains_key(it)) {
            module.graph.erase_node(*placeholder)?;
        }
        self.lower_outputs(&mut module)?;
        for (&placeholder, spec) in placeholders.iter().zip(&self.signature.input_specs) {
            if spec.kind == InputKind::Token {
                module.graph.erase_node(placeholder)?;
            }
        }
        Ok(module)
    }

    /// Why this program opens but does not run whatever its operators are: an input that nothing here can make.
    pub fn unsupported_input(&self) -> Option<Diagnostic> {
        let reason = |spec: &InputSpec| {
            let fqn = spec.target.as_ref().unwrap_or(spec.arg.name());
            self.unsupported(spec, fqn).map(|it| it.node(&**spec.arg.name()))
        };
        self.signature.input_specs.iter().find_map(reason)
    }

    fn unsupported(&self, spec: &InputSpec, fqn: &str) -> Option<Diagnostic> {
        if spec.kind == InputKind::CustomObj {
            let what = format!("running a program with a {} input (`{fqn}`) is not implemented", spec.kind.name());
            return Some(Diagnostic::new(Code::NotImplemented, what));
        }
        self.opaque_state.contains_key(fqn).then(|| {
            let what = format!("`{fqn}` is of a tensor subclass, which only Python can make again");
            let help = "run_decompositions() before torch.export.save makes plain tensors of it";
            Diagnostic::new(Code::NotImplemented, what).help(help)
        })
    }

    /// Makes an attribute of a lifted input, and the node that reads it.
    fn lower_input(
        &self,
        module: &mut GraphModule,
        placeholder: NodeId,
        spec: &InputSpec,
        held: &mut Held<'_>,
    ) -> Result<NodeId> {
        let name = module.graph.node(placeholder).name().clone();
        let fqn = spec.target.clone().unwrap_or_else(|| name.clone());
        let missing = || {
            let what = format!("the program holds no tensor for the {} `{fqn}`", spec.kind.name());
            Diagnostic::new(Code::AttributeMissing, what).node(&*name)
        };
        if let Some(problem) = self.unsupported(spec, &fqn) {
            return Err(problem.node(&*name));
        }
        let (tensor, kind) = match (spec.kind, self.state_dict.get(&fqn), self.constants.get(&fqn)) {
            (InputKind::Parameter, Some(entry), _) => (&entry.tensor, TensorKind::Parameter),
            (_, Some(entry), _) => (&entry.tensor, TensorKind::Buffer),
            (_, None, Some(Constant::Tensor(tensor))) => (tensor, TensorKind::Constant),
            (_, None, Some(Constant::CustomObj(_)) | None) => return Err(missing()),
        };
        if !module.attributes.contains_key(&fqn) {
            let tensor = held(tensor)?;
            module.attributes.insert(fqn.clone(), Attribute::Tensor { tensor, kind });
        }
        let graph = &mut module.graph;
        let before = graph.set_insert_point(InsertPoint::Before(placeholder))?;
        let attr = graph.create_node(Opcode::GetAttr, &fqn, Vec::new(), Vec::new(), Some(&fqn.replace('.', "_")))?;
        let meta = graph.node(placeholder).meta.clone();
        *graph.meta_mut(attr) = meta;
        graph.set_insert_point(before)?;
        Ok(attr)
    }

    /// Writes new values of buffers, parameters and inputs back, and returns what is the user's alone.
    fn lower_outputs(&self, module: &mut GraphModule) -> Result<()> {
        let graph = &mut module.graph;
        let invalid = |what: String| Diagnostic::new(Code::GraphInvalid, what);
        let output = graph.output_node().ok_or_else(|| invalid("the graph has no output".to_string()))?;
        let results = match graph.node(output).args().first() {
            Some(Arg::Tuple(items) | Arg::List(items)) => items.clone(),
            Some(other) => vec![other.clone()],
            None => Vec::new(),
        };
        let specs = &self.signature.output_specs;
        if results.len() != specs.len() {
            return Err(invalid(format!(
                "the graph returns {} values and its signature {}",
                results.len(),
                specs.len()
            )));
        }
        let (mut kept, mut copies) = (Vec::new(), Vec::new());
        for (result, spec) in results.into_iter().zip(specs) {
            let target = spec.target.as_deref();
            let destination = match spec.kind {
                OutputKind::BufferMutation | OutputKind::ParameterMutation => {
                    target.and_then(|fqn| graph.find_nodes(Opcode::GetAttr, fqn).next())
                }
                OutputKind::UserInputMutation => target.and_then(|name| graph.find(name)),
                OutputKind::UserOutput
                | OutputKind::LossOutput
                | OutputKind::GradientToParameter
                | OutputKind::GradientToUserInput => {
                    kept.push(result);
                    continue;
                }
                OutputKind::Token => continue,
            };
            let destination = destination.ok_or_else(|| {
                invalid(format!("{} names `{}`, which is no input", spec.kind.name(), target.unwrap_or("")))
            })?;
            let before = graph.set_insert_point(InsertPoint::Before(output))?;
            let args = vec![Arg::Node(destination), result.clone()];
            let copy =
                graph.create_node(Opcode::CallFunction, "torch.ops.aten.copy_.default", args, Vec::new(), None)?;
            copies.push((result, Arg::Node(copy)));
            graph.set_insert_point(before)?;
        }
        // As in PyTorch, a new value that is the user's as well is given as what it was written to.
        for result in &mut kept {
            if let Some((_, copy)) = copies.iter().find(|(value, _)| value == result) {
                *result = copy.clone();
            }
        }
        graph.set_args(output, vec![Arg::Tuple(kept)])
    }

    /// The user's inputs of constant value: the name of the input and the value that it must have.
    pub fn constant_inputs(&self) -> impl Iterator<Item = (&tracefx_ir::Str, &crate::ConstantValue)> {
        self.signature.user_inputs().filter_map(|spec| match &spec.arg {
            Argument::Constant { name, value } => Some((name, value)),
            Argument::Tensor(_)
            | Argument::SymInt(_)
            | Argument::SymFloat(_)
            | Argument::SymBool(_)
            | Argument::CustomObj { .. }
            | Argument::Token(_) => None,
        })
    }
}

/// Makes the users of these values use others that are equal, so that what is known of the users stays true.
///
/// # Errors
/// `NodeForeign` where a node is not of this graph.
pub fn use_equal(graph: &mut Graph, equals: &HashMap<NodeId, NodeId>) -> Result<()> {
    for id in graph.nodes().collect::<Vec<NodeId>>() {
        let node = graph.node(id);
        let mut is_user = false;
        node.for_each_input(&mut |it| is_user |= equals.contains_key(&it));
        if is_user {
            let mut map = |it| Arg::Node(equals.get(&it).copied().unwrap_or(it));
            let args = node.args().iter().map(|it| it.map_nodes(&mut map)).collect();
            let kwargs = node.kwargs().iter().map(|(key, it)| (key.clone(), it.map_nodes(&mut map))).collect();
            graph.set_equal_args(id, args, kwargs)?;
        }
    }
    Ok(())
}

/// What a module holds of a tensor of the program.
type Held<'a> = dyn FnMut(&Tensor) -> Result<Tensor> + 'a;

/// Puts what is held in the place of the tensors that a module and its sub-modules have already.
fn hold(module: &mut GraphModule, held: &mut Held<'_>) -> Result<()> {
    for attribute in module.attributes.values_mut() {
        match attribute {
            Attribute::Tensor { tensor, .. } => *tensor = held(tensor)?,
            Attribute::Fake { .. } => {}
            Attribute::Module(child) => hold(child, held)?,
        }
    }
    Ok(())
}

/// Lazy clones of storages, one per storage, so that views of one storage stay views of one.
#[derive(Default)]
pub(crate) struct LazyClones(HashMap<usize, Storage>);

impl LazyClones {
    pub(crate) fn of(&mut self, tensor: &Tensor) -> Result<Tensor> {
        let storage = self.0.entry(tensor.storage().id()).or_insert_with(|| tensor.storage().lazy_clone());
        Tensor::view_of(storage.clone(), tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.offset())
    }
}
