//! Training graphs: the program, and behind it the gradients of its loss.
//!
//! It takes two runs. The first one decomposes what gradients do not see whole, and makes values of what is written, as
//! [`ExportedProgram::run_decompositions`] does. The second one runs that graph with a [`Tape`] over the builder, goes back
//! over the tape, and decomposes the operators of both ways. PyTorch has the same layers the other way round: it records
//! gradients above writes.

use super::decomposer::Decomposer;
use super::functional::Functional;
use super::no_grad::NoGrad;
use super::taped::Taped;
use super::{DecompositionTable, finished, node_name, result_arg};
use crate::{Argument, ExportedProgram, InputKind, OutputKind, OutputSpec};
use std::collections::HashMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, GraphModule, Str};
use tracefx_ops::{Builder, Op, Propagation, Registry, Tape, TensorRef, Traced, Value};
use tracefx_sym::SymInt;

/// What PyTorch says of a parameter that the loss does not depend on.
const NOT_REACHED: &str = "Found a parameter that did not receive a gradient.";

/// A program without writes, whose operators are those that gradients are recorded of.
struct Forward {
    module: GraphModule,
    specs: Vec<OutputSpec>,
    no_grad: NoGrad,
}

impl ExportedProgram {
    /// The joint program of a loss and its gradients: `torch.export.experimental._export_forward_backward(ep, index)`.
    ///
    /// `joint_loss_index` is the place of the loss among the results of the graph. What the program gives is followed by a
    /// gradient for each parameter and each of the user's inputs that requires one; the signature names them. What is written
    /// to buffers comes first, as in any program of the ATEN dialect, and the operators of the table are decomposed.
    ///
    /// ```
    /// use tracefx_core::DType;
    /// use tracefx_export::{
    ///     Argument, ExportedProgram, GraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, default_decompositions,
    /// };
    /// use tracefx_ir::{Arg, Graph, GraphModule, TensorMeta, Val};
    ///
    /// // x.sin().sum(), where the gradient of x is wanted.
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x");
    /// let meta = TensorMeta { requires_grad: true, ..TensorMeta::contiguous(DType::Float32, vec![3.into()]) };
    /// graph.meta_mut(x).val = Some(Val::Tensor(meta));
    /// let sin = graph.call_function("torch.ops.aten.sin.default", vec![Arg::Node(x)], vec![]);
    /// let sum = graph.call_function("torch.ops.aten.sum.default", vec![Arg::Node(sin)], vec![]);
    /// graph.output(Arg::Tuple(vec![Arg::Node(sum)]));
    /// let input = InputSpec { kind: InputKind::UserInput, arg: Argument::Tensor("x".into()), target: None, persistent: None };
    /// let output = OutputSpec { kind: OutputKind::UserOutput, arg: Argument::Tensor("sum_1".into()), target: None };
    /// let signature = GraphSignature { input_specs: vec![input], output_specs: vec![output] };
    /// let program = ExportedProgram::new(GraphModule::new(graph), signature);
    ///
    /// let joint = program.export_forward_backward(0, &default_decompositions())?;
    /// let kinds: Vec<OutputKind> = joint.signature.output_specs.iter().map(|it| it.kind).collect();
    /// assert_eq!(kinds, [OutputKind::LossOutput, OutputKind::GradientToUserInput]);
    /// assert!(joint.module.graph.to_string().contains("torch.ops.aten.cos.default"));
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// `IndexOutOfRange` where there is no such result; `InvalidArgument`, in PyTorch's words, where it is no scalar or depends
    /// on nothing that requires a gradient, where another result does, where a parameter does not, and where one is written to;
    /// `NotImplemented` where the gradient of an operator is missing, of `while_loop` and `scan` too; else what
    /// [`ExportedProgram::run_decompositions`] refuses.
    pub fn export_forward_backward(
        &self,
        joint_loss_index: usize,
        table: &DecompositionTable,
    ) -> Result<ExportedProgram> {
        let forward = self.forward(joint_loss_index, table.registry())?;
        let symbols = self.symbols()?;
        let functional = Functional::new(table, Propagation::new(table.registry(), &symbols));
        let mut joint = Taped::new(&forward.module, &forward.no_grad, functional);
        let inputs = Decomposer::new(joint.tape.builder()).inputs(&forward.module)?;
        let mut wanted = Vec::new();
        for ((name, input), spec) in inputs.iter().zip(&self.signature.input_specs) {
            let Value::Tensor(tensor) = input else { continue };
            if self.requires_grad(spec, joint.tape.meta(*tensor).requires_grad) {
                joint.tape.watch(*tensor);
                wanted.push((name.clone(), spec, *tensor));
            }
        }
        if let Some(written) =
            forward.specs.iter().find(|it| wanted.iter().any(|(name, spec, _)| is_write(it, name, spec)))
        {
            let what = "Found a graph input that requires gradients, and received a mutation. This is currently banned in \
                        the aot_export workflow.";
            let target = written.target.as_deref().unwrap_or("");
            return Err(Diagnostic::new(Code::InvalidArgument, what).node(target));
        }
        let inputs: Vec<Traced> = inputs.into_iter().map(|(_, it)| it).collect();
        let results = joint.run(&inputs)?;
        let loss = loss_of(&joint.tape, &forward.specs, &results, joint_loss_index)?;
        let functional = joint.tape.builder();
        functional.recorder.follow_none();
        let ones = functional.call("aten.ones_like.default", &[loss.into()], &[])?.swap_remove(0);
        let Value::Tensor(ones) = ones else { return Err(Diagnostic::new(Code::Internal, "ones_like gives a tensor")) };
        let gradients = joint.pull_back(&[(loss, ones)])?;
        let (module, mut functional) = (joint.module, joint.tape.into_builder());
        let (mut returned, mut output_specs) = (Vec::new(), Vec::new());
        for (result, spec) in results.iter().zip(&forward.specs) {
            let arg = result_arg(&mut functional, result)?;
            let argument = match &arg {
                Arg::Node(_) => spec.arg.renamed(node_name(&functional, &arg)),
                _ => spec.arg.clone(),
            };
            returned.push(arg);
            output_specs.push(OutputSpec { arg: argument, ..spec.clone() });
        }
        for (name, spec, tensor) in &wanted {
            let Some(gradient) = gradients.get(tensor) else {
                let reached = wanted.iter().filter(|(_, _, it)| gradients.contains_key(it));
                if reached.into_iter().any(|(_, it, _)| self.is_tied(spec.target.as_ref(), it.target.as_ref())) {
                    continue;
                }
                return Err(Diagnostic::new(Code::InvalidArgument, NOT_REACHED)
                    .node(&**name)
                    .help("let it require no gradient, or take it out of the module"));
            };
            let arg = result_arg(&mut functional, &(*gradient).into())?;
            let arg_name = node_name(&functional, &arg);
            returned.push(arg);
            let (kind, target) = match spec.kind {
                InputKind::Parameter => (OutputKind::GradientToParameter, spec.target.clone()),
                _ => (OutputKind::GradientToUserInput, Some(name.clone())),
            };
            output_specs.push(OutputSpec { kind, arg: Argument::Tensor(arg_name), target });
        }
        let mut res = self.clone();
        res.module = finished(functional, module, returned, &HashMap::new())?;
        res.signature.output_specs = output_specs;
        res.verifiers = vec!["ATEN".into()];
        Ok(res)
    }

    /// The first run.
    fn forward(&self, joint_loss_index: usize, registry: &Registry) -> Result<Forward> {
        let mut marked = self.clone();
        let specs = &mut marked.signature.output_specs;
        if specs.iter().any(|it| is_gradient(it.kind)) {
            let what = "the program has gradients among its results already";
            return Err(Diagnostic::new(Code::InvalidArgument, what));
        }
        if let Some(spec) = specs.get_mut(joint_loss_index).filter(|it| it.kind == OutputKind::UserOutput) {
            spec.kind = OutputKind::LossOutput;
        }
        let table = seen_by_gradients(registry)?;
        let symbols = self.symbols()?;
        let mut functional = Functional::new(&table, Propagation::new(registry, &symbols));
        let mut decomposer = Decomposer::new(&mut functional);
        let (mut module, results, inputs) = decomposer.graph(&self.module)?;
        let graphs = decomposer.no_grad;
        let (returned, specs) = marked.returned(&mut functional, results, &inputs)?;
        let no_grad = NoGrad::of(&mut functional, graphs);
        // Nothing is dropped, so that the nodes keep their places.
        module.graph = functional.recorder.finish();
        module.graph.output(Arg::Tuple(returned));
        Ok(Forward { module, specs, no_grad })
    }

    fn requires_grad(&self, spec: &crate::InputSpec, is_noted: bool) -> bool {
        match spec.kind {
            InputKind::Parameter => {
                let entry = spec.target.as_ref().and_then(|it| self.state_dict.get(it));
                entry.map_or(is_noted, |it| it.requires_grad)
            }
            InputKind::UserInput => is_noted,
            InputKind::Buffer | InputKind::ConstantTensor | InputKind::CustomObj | InputKind::Token => false,
        }
    }

    /// Whether two names are of one tensor.
    fn is_tied(&self, a: Option<&Str>, b: Option<&Str>) -> bool {
        let tensor = |it: Option<&Str>| self.tensor(it?);
        let (Some(a), Some(b)) = (tensor(a), tensor(b)) else { return false };
        let place =
            |it: &tracefx_core::Tensor| (it.storage().id(), it.offset(), it.sizes().to_vec(), it.strides().to_vec());
        place(a) == place(b)
    }
}

/// The loss, when all that PyTorch asks of results holds.
fn loss_of(
    tape: &Tape<'_, Functional<'_>>,
    specs: &[OutputSpec],
    results: &[Traced],
    joint_loss_index: usize,
) -> Result<TensorRef> {
    let refuse = |what: String| Err(Diagnostic::new(Code::InvalidArgument, what));
    let n_written = specs.iter().take_while(|it| is_of_write(it.kind)).count();
    let other = results
        .iter()
        .zip(specs)
        .skip(n_written)
        .position(|(result, spec)| spec.kind != OutputKind::LossOutput && tape.is_tracked(result));
    if let Some(index) = other {
        return refuse(format!(
            "Found an output of the forward that requires gradients, that was not the scalar loss.\nWe require all \
             outputs to the forward that are not the scalar loss to not require gradient,\nbecause we will only compute \
             a backward graph against the scalar loss.\nYou can fix this by calling .detach() on each of your forward \
             outputs that is not the loss.\nYou specified that output index {joint_loss_index} is the loss, but we \
             found that\nthe output at index {index} requires gradients."
        ));
    }
    let loss = results.iter().zip(specs).find(|(_, spec)| spec.kind == OutputKind::LossOutput);
    let Some((loss, _)) = loss else {
        let n_results = results.len();
        let what = format!("tuple index out of range: there is no result {joint_loss_index} of {n_results}");
        return Err(Diagnostic::new(Code::IndexOutOfRange, what));
    };
    let Value::Tensor(tensor) = *loss else {
        return refuse(format!("The output at index {joint_loss_index} was marked as the loss, but it is no tensor"));
    };
    if !tape.is_tracked(loss) {
        return refuse(format!(
            "The output at index {joint_loss_index} was marked as the loss, but it does not require gradients"
        ));
    }
    let sizes = &tape.meta(tensor).sizes;
    if sizes.iter().any(|it| *it != SymInt::ONE) {
        let shape: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        return refuse(format!(
            "We require the output marked as the loss (at index {joint_loss_index}) to be a scalar, but it has shape \
             torch.Size([{}])",
            shape.join(", ")
        ));
    }
    Ok(tensor)
}

/// The operators that are gone when PyTorch records gradients: those that are made of others, of which there is no gradient.
fn seen_by_gradients(registry: &Registry) -> Result<DecompositionTable> {
    let mut table = DecompositionTable::empty_of(registry);
    let is_gone = |op: &Op| {
        let is_composite = matches!(op.def.infer, tracefx_ops::Infer::Composite);
        op.def.decompose.is_some() && op.def.vjp.is_none() && (is_composite || op.is_decomposed())
    };
    for op in registry.ops().into_iter().filter(|it| is_gone(it)) {
        table.insert(&op.name)?;
    }
    Ok(table)
}

fn is_gradient(kind: OutputKind) -> bool {
    matches!(kind, OutputKind::GradientToParameter | OutputKind::GradientToUserInput)
}

fn is_of_write(kind: OutputKind) -> bool {
    matches!(kind, OutputKind::BufferMutation | OutputKind::ParameterMutation | OutputKind::UserInputMutation)
}

/// Whether this result is written to this input.
fn is_write(result: &OutputSpec, name: &Str, input: &crate::InputSpec) -> bool {
    match result.kind {
        OutputKind::ParameterMutation => result.target == input.target,
        OutputKind::UserInputMutation => result.target.as_ref() == Some(name),
        _ => false,
    }
}
