//! Passes of modules on programs, whose parameters are inputs of the graph.

use crate::{Argument, Constant, ExportedProgram, InputKind, InputSpec, OutputKind, use_equal};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::HashMap;
use tracefx_core::{Diagnostic, Result, Tensor};
use tracefx_exec::note_values;
use tracefx_ir::{Attribute, Graph, GraphModule, InsertPoint, NodeId, Opcode, Str, TensorKind};
use tracefx_ops::Registry;
use tracefx_rewrite::PassResult;

impl ExportedProgram {
    /// Runs a pass on the graph as if the parameters, buffers and constants were attributes: those that the program
    /// does not write to. What stays of them is inputs again, and new attributes become constants of the program. What new nodes give is
    /// noted ([`ExportedProgram::note_values`]). The program is as it was where the pass fails.
    ///
    /// # Errors
    /// What the pass refuses.
    ///
    /// # Example
    /// ```
    /// use tracefx_rewrite::{PassResult, fuse};
    ///
    /// # fn run(mut program: tracefx_export::ExportedProgram, executor: tracefx_exec::Executor<'_>) -> tracefx_core::Result<()> {
    /// let registry = executor.registry();
    /// let PassResult { left_out, .. } = program.with_lifted_state(registry, &|module| fuse(module, executor))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_lifted_state(
        &mut self,
        registry: &Registry,
        pass: &dyn Fn(&mut GraphModule) -> Result<PassResult>,
    ) -> Result<PassResult> {
        let mut module = self.module.clone();
        let inputs: Vec<NodeId> =
            module.graph.nodes().filter(|&it| module.graph.node(it).op() == Opcode::Placeholder).collect();
        let first_input =
            inputs.iter().zip(&self.signature.input_specs).find(|(_, it)| it.kind == InputKind::UserInput);
        let first_input = first_input.map(|(it, _)| *it);
        let lifted = read_attributes(self, &mut module, &inputs)?;
        let result = pass(&mut module)?;
        if !result.modified {
            return Ok(result);
        }

        let reads: Vec<NodeId> =
            module.graph.nodes().filter(|&it| module.graph.node(it).op() == Opcode::GetAttr).collect();
        let mut added: Vec<(InputSpec, Constant)> = Vec::new();
        let mut taken: FxHashSet<Str> = self.constants.keys().chain(self.state_dict.keys()).cloned().collect();
        let mut inputs: HashMap<NodeId, NodeId> = HashMap::new();
        for read in reads {
            let target = module.graph.node(read).target().clone();
            let input = match lifted.get(&target) {
                Some(input) => *input,
                None if self.module.attributes.contains_key(&target) => continue,
                None => {
                    let Ok(Attribute::Tensor { tensor, .. }) = module.attribute(&target) else { continue };
                    let fqn = free_name(&taken, &target);
                    let constant = Constant::Tensor(tensor.clone());
                    let (input, spec) = add_input(&mut module.graph, read, &fqn, first_input)?;
                    added.push((spec, constant));
                    taken.insert(fqn);
                    input
                }
            };
            inputs.insert(read, input);
        }
        use_equal(&mut module.graph, &inputs)?;
        inputs.keys().try_for_each(|&it| module.graph.erase_node(it))?;
        module.attributes.retain(|name, _| self.module.attributes.contains_key(name));
        let specs = &mut self.signature.input_specs;
        let at = specs.iter().position(|it| it.kind == InputKind::UserInput).unwrap_or(specs.len());
        specs.splice(at..at, added.iter().map(|(spec, _)| spec.clone()));
        let named = added.into_iter().filter_map(|(spec, constant)| Some((spec.target?, constant)));
        self.constants.extend(named);
        self.module = module;
        // What a node refuses is told where the program is validated or saved.
        self.note_values(registry);
        Ok(result)
    }

    /// Notes what nodes give of which nothing is noted, as passes leave those that they add or change; what is noted already
    /// stays. Gives what nodes refused. No file is written without these notes.
    pub fn note_values(&mut self, registry: &Registry) -> Vec<Diagnostic> {
        note_values(&mut self.module, registry, self.range_constraints.clone())
    }
}

/// Makes attributes of what the program holds, and reads of them for the users of the inputs. Gives their names and inputs.
fn read_attributes(
    program: &ExportedProgram,
    module: &mut GraphModule,
    inputs: &[NodeId],
) -> Result<FxHashMap<Str, NodeId>> {
    let writes = [OutputKind::BufferMutation, OutputKind::ParameterMutation];
    let outputs = program.signature.output_specs.iter().filter(|it| writes.contains(&it.kind));
    let written: FxHashSet<&Str> = outputs.filter_map(|it| it.target.as_ref()).collect();
    let first = module.graph.nodes().find(|&it| module.graph.node(it).op() != Opcode::Placeholder);
    let before = module.graph.set_insert_point(first.map_or(InsertPoint::End, InsertPoint::Before))?;
    let (mut res, mut reads) = (FxHashMap::default(), HashMap::new());
    for (&input, spec) in inputs.iter().zip(&program.signature.input_specs) {
        let Some((fqn, tensor)) = state_of(program, spec).filter(|(fqn, _)| !written.contains(fqn)) else { continue };
        let mut name: Str = fqn.replace('.', "_").into();
        while module.attributes.contains_key(&name) {
            name = format!("{name}_").into();
        }
        let kind = if spec.kind == InputKind::Parameter { TensorKind::Parameter } else { TensorKind::Buffer };
        module.attributes.insert(name.clone(), Attribute::Tensor { tensor: tensor.clone(), kind });
        let read = module.graph.get_attr(&name);
        *module.graph.meta_mut(read) = module.graph.node(input).meta.clone();
        reads.insert(input, read);
        res.insert(name, input);
    }
    module.graph.set_insert_point(before)?;
    use_equal(&mut module.graph, &reads)?;
    Ok(res)
}

fn state_of<'a>(program: &'a ExportedProgram, spec: &'a InputSpec) -> Option<(&'a Str, &'a Tensor)> {
    match spec.kind {
        InputKind::Parameter | InputKind::Buffer | InputKind::ConstantTensor => {
            let fqn = spec.target.as_ref()?;
            Some((fqn, program.tensor(fqn)?))
        }
        InputKind::UserInput | InputKind::CustomObj | InputKind::Token => None,
    }
}

/// An input for a constant, before those of the user, as PyTorch names it.
fn add_input(graph: &mut Graph, read: NodeId, fqn: &str, first: Option<NodeId>) -> Result<(NodeId, InputSpec)> {
    let anchor = first.or_else(|| graph.nodes().find(|&it| graph.node(it).op() != Opcode::Placeholder));
    let before = graph.set_insert_point(anchor.map_or(InsertPoint::End, InsertPoint::Before))?;
    let input = graph.placeholder(&format!("c_{fqn}"));
    *graph.meta_mut(input) = graph.node(read).meta.clone();
    graph.set_insert_point(before)?;
    let arg = Argument::Tensor(graph.node(input).name().clone());
    Ok((input, InputSpec { kind: InputKind::ConstantTensor, arg, target: Some(fqn.into()), persistent: None }))
}

fn free_name(taken: &FxHashSet<Str>, name: &str) -> Str {
    let mut res: Str = name.into();
    let mut number = 0;
    while taken.contains(&res) {
        number += 1;
        res = format!("{name}_{number}").into();
    }
    res
}
