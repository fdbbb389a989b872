//! A program as the modules that it was exported from: `torch.export.unflatten`.
//!
//! Nodes say which modules they come from (`nn_module_stack`). Each call of a module becomes a graph of its own, called by the
//! graph around it; parameters, buffers and constants go back into the modules that held them, and calls that do the same
//! share one module.
//!
//! Calls whose signature was to be preserved take and give what the module did, in its structure; others take the values that
//! they use, and give those that are used.

mod outline;
mod preserved;
mod shared;
mod signatures;
mod stack;
mod state;
mod tree;

use crate::tokens::remove_effect_tokens;
use crate::{ExportedProgram, GraphSignature, InputKind, OutputKind};
use std::collections::HashMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, InsertPoint, NodeId, Opcode, Str};
use tracefx_ops::{Registry, registry};
use tracefx_rewrite::{DeadCodeOptions, eliminate_dead_code};

impl ExportedProgram {
    /// The program as a module with the hierarchy of the one that was exported. Its graph takes the user's inputs, flattened,
    /// and gives the user's outputs, flattened; modules below it are called by `call_module` nodes, and hold copies of the
    /// tensors. A module that is called again and does something else then is there as `name@1`.
    ///
    /// ```
    /// use tracefx_export::{ExportedProgram, GraphSignature};
    /// # use tracefx_export::{Argument, InputKind, InputSpec, OutputKind, OutputSpec};
    /// use tracefx_ir::{Arg, Graph, GraphModule};
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x");
    /// let relu = graph.call_function("torch.ops.aten.relu.default", vec![Arg::Node(x)], vec![]);
    /// let stack = "L__self__,,Model;L__self___act,act,torch.nn.modules.activation.ReLU";
    /// graph.meta_mut(relu).entries.insert("nn_module_stack".into(), stack.into());
    /// graph.output(Arg::Tuple(vec![Arg::Node(relu)]));
    /// # let input_specs = vec![InputSpec { kind: InputKind::UserInput, arg: Argument::Tensor("x".into()), target: None, persistent: None }];
    /// # let output_specs = vec![OutputSpec { kind: OutputKind::UserOutput, arg: Argument::Tensor("relu_default".into()), target: None }];
    /// # let signature = GraphSignature { input_specs, output_specs };
    ///
    /// let module = ExportedProgram::new(GraphModule::new(graph), signature).unflatten()?;
    /// assert_eq!(
    ///     module.graph.to_string(),
    ///     "graph():
    ///     %x : [num_users=1] = placeholder[target=x]
    ///     %act : [num_users=1] = call_module[target=act](args = (%x,), kwargs = {})
    ///     return (act,)"
    /// );
    /// assert!(module.submodule("act")?.graph.find("relu_default").is_some());
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// `GraphInvalid` where nodes do not say which modules they come from, or the signature does not fit; `NotImplemented` for
    /// training graphs and custom objects; `LimitExceeded` where modules are nested very deep.
    pub fn unflatten(&self) -> Result<GraphModule> {
        self.unflatten_in(registry())
    }

    /// As [`ExportedProgram::unflatten`], with operators of one's own.
    ///
    /// # Errors
    /// As there.
    pub fn unflatten_in(&self, registry: &Registry) -> Result<GraphModule> {
        if self.signature.backward_signature()?.is_some() {
            return Err(Diagnostic::new(Code::NotImplemented, "Unflattening on JointExportModule NYI"));
        }
        let (module, signature) = self.without_tokens(registry)?;
        let (flat, names) = written_in_place(&module.graph, &signature)?;
        let stacks = stack::stacks_of(&flat)?;
        let signatures = signatures::Signatures::new(&self.module_call_graph, names);
        let mut outlined = outline::outline(&flat, &stacks, &signatures, registry)?;
        outlined.write_read_values()?;
        move_graphs(&module, &mut outlined)?;
        state::assign(self, &signature, &mut outlined.tree)?;
        let states = state::inputs_to_state(self, &signature)?;
        state::sink(&mut outlined.tree, 0, &states, &mut Vec::new(), &mut HashMap::new())?;
        let redirected = shared::merge_calls(&mut outlined)?;
        let fqns = self.module_call_graph.iter().map(|it| it.fqn.clone());
        let fqns: Vec<Str> = fqns.filter(|it| !it.contains('@') && !redirected.contains(&**it)).collect();
        shared::reorder(&mut outlined.tree, &fqns)?;
        outlined.tree.into_module()
    }

    /// The same program in terms of the modules of [`ExportedProgram::unflatten`], which hold the state: its graph takes the
    /// user's inputs alone. It runs as this one does, with the same checks. Calls that were to be preserved take the values that
    /// they use, as others do: the interpreter has no dicts.
    ///
    /// # Errors
    /// As there.
    pub fn unflattened(&self, registry: &Registry) -> Result<ExportedProgram> {
        let mut plain = self.clone();
        plain.module_call_graph.iter_mut().filter(|it| !it.fqn.is_empty()).for_each(|it| it.signature = None);
        plain.unflattened_as_preserved(registry)
    }

    /// As [`ExportedProgram::unflattened`], with the calls that were to be preserved: for a host that runs them.
    ///
    /// # Errors
    /// As there.
    pub fn unflattened_as_preserved(&self, registry: &Registry) -> Result<ExportedProgram> {
        let mut signature = self.signature.clone();
        signature.input_specs.retain(|it| it.kind == InputKind::UserInput);
        signature.output_specs.retain(|it| it.kind == OutputKind::UserOutput);
        let mut res = ExportedProgram { module: self.unflatten_in(registry)?, signature, ..self.clone() };
        let graph = &res.module.graph;
        let inputs = graph.nodes().filter(|it| graph.node(*it).op() == Opcode::Placeholder);
        for (spec, input) in res.signature.input_specs.iter_mut().zip(inputs) {
            spec.arg = spec.arg.renamed(graph.node(input).name().clone());
        }
        let (_, results) = results_of(graph, &res.signature)?;
        for (spec, result) in res.signature.output_specs.iter_mut().zip(results) {
            if let Arg::Node(node) = result {
                spec.arg = spec.arg.renamed(graph.node(node).name().clone());
            }
        }
        res.module_call_graph.truncate(1);
        res.state_dict.clear();
        res.constants.clear();
        Ok(res)
    }

    /// The module without effect tokens, and without what nothing uses, as PyTorch has it.
    fn without_tokens(&self, registry: &Registry) -> Result<(GraphModule, GraphSignature)> {
        let (mut module, mut signature) = (self.module.clone(), self.signature.clone());
        let graph = &mut module.graph;
        remove_effect_tokens(graph, registry)?;
        let (output, results) = results_of(graph, &signature)?;
        let kept = results.into_iter().zip(&signature.output_specs);
        let kept = kept.filter(|(_, spec)| spec.kind != OutputKind::Token).map(|(it, _)| it).collect();
        graph.set_args(output, vec![Arg::Tuple(kept)])?;
        eliminate_dead_code(&mut module, registry, &DeadCodeOptions::default())?;
        let graph = &mut module.graph;
        for spec in signature.input_specs.iter().filter(|it| it.kind == InputKind::Token) {
            graph.erase_node(graph.find(spec.arg.name()).ok_or_else(|| invalid("a token is no input"))?)?;
        }
        signature.input_specs.retain(|it| it.kind != InputKind::Token);
        signature.output_specs.retain(|it| it.kind != OutputKind::Token);
        Ok((module, signature))
    }
}

fn results_of(graph: &Graph, signature: &GraphSignature) -> Result<(NodeId, Vec<Arg>)> {
    let output = graph.output_node().ok_or_else(|| invalid("the graph has no output"))?;
    match graph.node(output).args() {
        [Arg::Tuple(items) | Arg::List(items)] if items.len() == signature.output_specs.len() => {
            Ok((output, items.clone()))
        }
        _ => Err(invalid("the results are not those of the signature")),
    }
}

/// A copy of the graph in which new values of buffers, parameters and inputs are written where they belong. Nodes with names
/// of Python's have others: `input` is `input_1`. Gives the nodes by their old names, too.
fn written_in_place(source: &Graph, signature: &GraphSignature) -> Result<(Graph, HashMap<Str, NodeId>)> {
    let mut graph = Graph::new();
    let mut copies = Vec::new();
    let result = graph.graph_copy(source, &mut copies)?;
    let copy_of = |it: NodeId| copies.get(it.index())?.as_ref()?.as_node();
    let names = source.nodes().filter_map(|it| Some((source.node(it).name().clone(), copy_of(it)?))).collect();
    let output = graph.output(result.ok_or_else(|| invalid("the graph has no output"))?);
    if let Some(it) = source.output_node() {
        *graph.meta_mut(output) = source.node(it).meta.clone();
    }
    let placeholders = graph.nodes().filter(|it| graph.node(*it).op() == Opcode::Placeholder);
    let named: Vec<_> = signature.input_specs.iter().zip(placeholders).collect();
    let inputs: HashMap<Str, NodeId> = named.iter().map(|(spec, node)| (spec.arg.name().clone(), *node)).collect();
    let is_state = |kind: InputKind| matches!(kind, InputKind::Buffer | InputKind::Parameter);
    let state = named.iter().filter(|(spec, _)| is_state(spec.kind));
    let state: HashMap<Str, NodeId> = state.filter_map(|(spec, node)| Some((spec.target.clone()?, *node))).collect();
    let (output, results) = results_of(&graph, signature)?;
    let mut kept = Vec::new();
    for (result, spec) in results.into_iter().zip(&signature.output_specs) {
        let target = spec.target.as_ref();
        let input = match spec.kind {
            OutputKind::BufferMutation | OutputKind::ParameterMutation => target.and_then(|it| state.get(it)),
            OutputKind::UserInputMutation => target.and_then(|it| inputs.get(it)),
            OutputKind::UserOutput
            | OutputKind::LossOutput
            | OutputKind::GradientToParameter
            | OutputKind::GradientToUserInput
            | OutputKind::Token => {
                kept.push(result);
                continue;
            }
        };
        let (Some(input), Arg::Node(value)) = (input, result) else {
            return Err(invalid("a new value is of no input, or is no value of the graph"));
        };
        write_back(&mut graph, *input, value)?;
    }
    graph.set_args(output, vec![Arg::Tuple(kept)])?;
    Ok((graph, names))
}

/// Gives the graphs that control flow calls to the modules that call it.
fn move_graphs(source: &GraphModule, outlined: &mut outline::Outlined) -> Result<()> {
    for (call, names) in &outlined.graphs {
        let Some(module) = outlined.tree.find(0, call) else { continue };
        for name in names {
            match source.attribute(name)? {
                Attribute::Module(graph) => {
                    let graph = outlined.tree.add_module((**graph).clone(), None);
                    outlined.tree.children_of(module).insert(name.clone(), graph);
                }
                tensor @ (Attribute::Tensor { .. } | Attribute::Fake { .. }) => {
                    outlined.tree.modules[module].attributes.insert(name.clone(), tensor.clone());
                }
            }
        }
    }
    Ok(())
}

/// Writes a value to an input right after it is there; what uses the value uses what was written.
fn write_back(graph: &mut Graph, input: NodeId, value: NodeId) -> Result<()> {
    let before = graph.set_insert_point(InsertPoint::After(value))?;
    let args = vec![Arg::Node(input), Arg::Node(value)];
    let copy = graph.create_node(Opcode::CallFunction, "torch.ops.aten.copy_.default", args, vec![], None)?;
    graph.set_insert_point(before)?;
    *graph.meta_mut(copy) = graph.node(value).meta.clone();
    graph.replace_all_uses_with(value, copy, &mut |_, user| user != copy)?;
    Ok(())
}

fn invalid(what: &str) -> Diagnostic {
    Diagnostic::new(Code::GraphInvalid, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Argument, InputSpec, OutputSpec};
    use tracefx_ops::CustomOp;

    /// That nothing uses what a call gives does not make it dead where it writes.
    #[test]
    fn calls_of_ones_own_that_write_stay() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let call = graph.call_function("torch.ops.mine.count.default", vec![x.into()], vec![]);
        graph.meta_mut(call).entries.insert("nn_module_stack".into(), "L__self__,,Model".into());
        graph.output(Arg::Tuple(vec![x.into()]));
        let arg = || Argument::Tensor("x".into());
        let input = InputSpec { kind: InputKind::UserInput, arg: arg(), target: None, persistent: None };
        let output = OutputSpec { kind: OutputKind::UserOutput, arg: arg(), target: None };
        let signature = GraphSignature { input_specs: vec![input], output_specs: vec![output] };
        let program = ExportedProgram::new(GraphModule::new(graph), signature);
        let mut operators = registry().clone();
        operators.define(CustomOp::new("mine::count(Tensor(a!) x) -> ()").unwrap()).unwrap();
        let module = program.unflatten_in(&operators).unwrap();
        assert_eq!(module.graph.find_nodes(Opcode::CallFunction, "torch.ops.mine.count.default").count(), 1);
    }
}
