//! `run_decompositions`: the program in terms of fewer operators, without writes.
//!
//! The graph is run with a builder in the place of kernels. [`Functional`](functional::Functional) turns writes into new
//! values and decomposes operators; the [`Recorder`](recorder::Recorder) writes the calls that are left.

mod auto_functionalized;
mod decomposer;
mod functional;
mod functionalize;
mod higher_order_call;
mod higher_order_gradients;
mod joint;
mod no_grad;
pub(crate) mod recorder;
mod table;
mod taped;
mod vmap;

pub use functionalize::{Remove, functionalize};
pub use table::{DecompositionTable, default_decompositions};

use crate::{Argument, ExportedProgram, InputKind, OutputKind, OutputSpec};
use decomposer::{Decomposer, Inputs};
use functional::Functional;
use std::collections::{HashMap, HashSet};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, GraphModule, NodeId, Str, Val};
use tracefx_ops::{Propagation, TensorRef, Traced, Value};

impl ExportedProgram {
    /// The same program with the operators of a table decomposed, until none of them is left:
    /// `ExportedProgram.run_decompositions()`.
    ///
    /// With [`default_decompositions`] what remains are core ATen operators, those that PyTorch has no decomposition of,
    /// and control flow, whose graphs are decomposed as well. Writes become new values: what the program writes to
    /// buffers, parameters and the user's inputs is returned, and the signature says so. Nodes keep the stack trace and the
    /// modules of the node that they come from. What the signatures of preserved calls name stays, under its new name, used or
    /// not. The parameters, buffers and constants are shared with this program.
    ///
    /// # Errors
    /// `NotImplemented` for operators that are not known, and for writes that cannot be made values; `GraphInvalid` where
    /// the graph and its signature do not fit each other; else what a shape rule refuses.
    pub fn run_decompositions(&self, table: &DecompositionTable) -> Result<ExportedProgram> {
        let symbols = self.symbols()?;
        let mut functional = Functional::new(table, Propagation::new(table.registry(), &symbols));
        let mut decomposer = Decomposer::new(&mut functional);
        decomposer.watched = self.preserved_values().map(|it| it.name().clone()).collect();
        let (module, results, inputs) = decomposer.graph(&self.module)?;
        let followed = decomposer.followed;
        let (returned, output_specs) = self.returned(&mut functional, results, &inputs)?;
        let mut res = self.clone();
        res.rename_preserved(&followed, &functional);
        res.module = finished(functional, module, returned, &followed)?;
        res.signature.output_specs = output_specs;
        res.verifiers = vec!["ATEN".into()];
        Ok(res)
    }

    /// What the signatures of preserved calls name.
    fn preserved_values(&self) -> impl Iterator<Item = &Argument> {
        let signatures = self.module_call_graph.iter().filter_map(|it| it.signature.as_ref());
        signatures.flat_map(|it| it.inputs.iter().chain(&it.outputs))
    }

    /// Gives the values of preserved calls the names that they have now.
    fn rename_preserved(&mut self, followed: &HashMap<Str, NodeId>, functional: &Functional<'_>) {
        let signatures = self.module_call_graph.iter_mut().filter_map(|it| it.signature.as_mut());
        for arg in signatures.flat_map(|it| it.inputs.iter_mut().chain(&mut it.outputs)) {
            if let Some(node) = followed.get(arg.name()) {
                *arg = arg.renamed(functional.recorder.name(*node));
            }
        }
    }

    /// What the new graph returns: first what was written to the inputs, then the results of the old one.
    fn returned(
        &self,
        functional: &mut Functional<'_>,
        results: Vec<Traced>,
        inputs: &Inputs,
    ) -> Result<(Vec<Arg>, Vec<OutputSpec>)> {
        let specs = &self.signature.output_specs;
        if results.len() != specs.len() || inputs.len() != self.signature.input_specs.len() {
            let what = format!("the graph returns {} values and its signature {}", results.len(), specs.len());
            return Err(Diagnostic::new(Code::GraphInvalid, what));
        }
        let mut kept = Vec::new();
        for (result, spec) in results.into_iter().zip(specs) {
            match (self.written_input(spec, inputs), &result) {
                (Some(target), Value::Tensor(_)) => {
                    if let Value::Tensor(value) = functional.current(&result)? {
                        functional.replace(target, value)?;
                    }
                }
                (_, _) => kept.push((result, spec)),
            }
        }
        let (mut returned, mut output_specs) = (Vec::new(), Vec::new());
        for ((name, input), spec) in inputs.iter().zip(&self.signature.input_specs) {
            let Value::Tensor(tensor) = input else { continue };
            if !functional.is_written(*tensor) {
                continue;
            }
            let (kind, target) = match spec.kind {
                InputKind::Buffer => (OutputKind::BufferMutation, spec.target.clone()),
                InputKind::Parameter => (OutputKind::ParameterMutation, spec.target.clone()),
                InputKind::UserInput => (OutputKind::UserInputMutation, Some(name.clone())),
                InputKind::ConstantTensor | InputKind::CustomObj | InputKind::Token => {
                    let what = format!("the program writes to its {} `{name}`", spec.kind.name());
                    return Err(Diagnostic::new(Code::NotImplemented, what).node(&**name));
                }
            };
            let arg = result_arg(functional, input)?;
            let name = node_name(functional, &arg);
            returned.push(arg);
            output_specs.push(OutputSpec { kind, arg: Argument::Tensor(name), target });
        }
        for (result, spec) in kept {
            let arg = result_arg(functional, &result)?;
            let argument = match &arg {
                Arg::Node(_) => spec.arg.renamed(node_name(functional, &arg)),
                _ => spec.arg.clone(),
            };
            returned.push(arg);
            output_specs.push(OutputSpec { arg: argument, ..spec.clone() });
        }
        Ok((returned, output_specs))
    }

    /// The input that a result of the graph is written back to.
    fn written_input(&self, spec: &OutputSpec, inputs: &Inputs) -> Option<TensorRef> {
        let target = spec.target.as_ref()?;
        let is_it = |(input, (name, _)): &(&crate::InputSpec, &(Str, Traced))| match spec.kind {
            OutputKind::BufferMutation | OutputKind::ParameterMutation => input.target.as_ref() == Some(target),
            OutputKind::UserInputMutation => name == target,
            OutputKind::UserOutput
            | OutputKind::LossOutput
            | OutputKind::GradientToParameter
            | OutputKind::GradientToUserInput
            | OutputKind::Token => false,
        };
        match self.signature.input_specs.iter().zip(inputs).find(is_it)?.1.1 {
            Value::Tensor(it) => Some(it),
            _ => None,
        }
    }
}

/// The gradients of tensors.
type Gradients = HashMap<TensorRef, TensorRef>;

fn result_arg(functional: &mut Functional<'_>, result: &Traced) -> Result<Arg> {
    let current = functional.current(result)?;
    functional.recorder.arg(&current)
}

fn node_name(functional: &Functional<'_>, arg: &Arg) -> Str {
    arg.as_node().map_or_else(|| "".into(), |it| functional.recorder.name(it))
}

/// Writes the output, and drops what nothing uses, but for what is to be followed.
fn finished(
    functional: Functional<'_>,
    mut module: GraphModule,
    returned: Vec<Arg>,
    followed: &HashMap<Str, NodeId>,
) -> Result<GraphModule> {
    let registry = functional.shapes.registry();
    let mut graph = functional.recorder.finish();
    let vals = returned.iter().map(|it| it.as_node().and_then(|it| graph.node(it).meta.val.clone()));
    let items = vals.map(|it| it.unwrap_or(Val::None)).collect();
    let output = graph.output(Arg::Tuple(returned));
    graph.meta_mut(output).val = Some(Val::Seq { items, is_tuple: true });
    let kept: HashSet<Str> = followed.values().map(|it| graph.node(*it).name().clone()).collect();
    graph.eliminate_dead_code(&|_, node| recorder::is_impure(node, registry) || kept.contains(node.name()))?;
    module.graph = graph.compacted();
    Ok(module)
}
