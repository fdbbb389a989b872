//! What a signature says, looked at from the side that is asked for: the properties of `ExportGraphSignature`.

use crate::{Argument, GraphSignature, InputKind, InputSpec, OutputKind, OutputSpec};
use indexmap::IndexMap;
use std::fmt;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Node, Opcode, Str};

/// What a training graph gives besides the results: `torch.export.graph_signature.ExportBackwardSignature`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackwardSignature {
    /// From the names of outputs to the parameters whose gradients they are.
    pub gradients_to_parameters: IndexMap<Str, Str>,
    /// From the names of outputs to the user's inputs whose gradients they are.
    pub gradients_to_user_inputs: IndexMap<Str, Str>,
    /// The name of the loss.
    pub loss_output: Str,
}

/// The properties of PyTorch's class.
///
/// ```
/// use tracefx_export::{Argument, GraphSignature, InputKind, InputSpec};
///
/// let weight = InputSpec {
///     kind: InputKind::Parameter,
///     arg: Argument::Tensor("p_weight".into()),
///     target: Some("weight".into()),
///     persistent: None,
/// };
/// let mut signature = GraphSignature { input_specs: vec![weight], output_specs: vec![] };
/// assert_eq!(&*signature.inputs_to_parameters()["p_weight"], "weight");
///
/// signature.replace_all_uses("p_weight", "renamed");
/// assert_eq!(signature.input_specs[0].to_string(), "renamed: PARAMETER target='weight'");
/// ```
impl GraphSignature {
    /// The qualified names of the parameters, in order.
    pub fn parameters(&self) -> Vec<Str> {
        self.targets(InputKind::Parameter)
    }

    /// The qualified names of the buffers, in order.
    pub fn buffers(&self) -> Vec<Str> {
        self.targets(InputKind::Buffer)
    }

    /// The qualified names of the buffers that are not saved with the module, in order.
    pub fn non_persistent_buffers(&self) -> Vec<Str> {
        let specs = self.inputs_of(InputKind::Buffer).filter(|it| it.persistent == Some(false));
        specs.filter_map(|it| it.target.clone()).collect()
    }

    /// The qualified names of the lifted tensors, in order.
    pub fn lifted_tensor_constants(&self) -> Vec<Str> {
        self.targets(InputKind::ConstantTensor)
    }

    /// The qualified names of the custom objects, in order.
    pub fn lifted_custom_objs(&self) -> Vec<Str> {
        self.targets(InputKind::CustomObj)
    }

    /// From the names of inputs to the parameters that they are.
    pub fn inputs_to_parameters(&self) -> IndexMap<Str, Str> {
        self.inputs_to(InputKind::Parameter)
    }

    /// From the names of inputs to the buffers that they are.
    pub fn inputs_to_buffers(&self) -> IndexMap<Str, Str> {
        self.inputs_to(InputKind::Buffer)
    }

    /// From the names of inputs to the lifted tensors that they are.
    pub fn inputs_to_lifted_tensor_constants(&self) -> IndexMap<Str, Str> {
        self.inputs_to(InputKind::ConstantTensor)
    }

    /// From the names of inputs to the custom objects that they are.
    pub fn inputs_to_lifted_custom_objs(&self) -> IndexMap<Str, Str> {
        self.inputs_to(InputKind::CustomObj)
    }

    /// From the names of outputs to the buffers whose new values they are.
    pub fn buffers_to_mutate(&self) -> IndexMap<Str, Str> {
        self.outputs_to(OutputKind::BufferMutation)
    }

    /// From the names of outputs to the parameters whose new values they are.
    pub fn parameters_to_mutate(&self) -> IndexMap<Str, Str> {
        self.outputs_to(OutputKind::ParameterMutation)
    }

    /// From the names of outputs to the user's inputs whose new values they are.
    pub fn user_inputs_to_mutate(&self) -> IndexMap<Str, Str> {
        self.outputs_to(OutputKind::UserInputMutation)
    }

    /// The names of the effect tokens that go in, in order.
    pub fn input_tokens(&self) -> Vec<Str> {
        self.inputs_of(InputKind::Token).map(|it| it.arg.name().clone()).collect()
    }

    /// The names of the effect tokens that come out, in order.
    pub fn output_tokens(&self) -> Vec<Str> {
        let specs = self.output_specs.iter().filter(|it| it.kind == OutputKind::Token);
        specs.map(|it| it.arg.name().clone()).collect()
    }

    /// The loss and the gradients of a training graph; `None` where there is no loss.
    ///
    /// # Errors
    /// `SpecViolation` where there are two losses, or one of them is no tensor or a gradient is of nothing.
    pub fn backward_signature(&self) -> Result<Option<BackwardSignature>> {
        let (mut res, mut loss) = (BackwardSignature::default(), None);
        for spec in &self.output_specs {
            let kind = spec.kind.name();
            let gradients = match spec.kind {
                OutputKind::LossOutput => None,
                OutputKind::GradientToParameter => Some(&mut res.gradients_to_parameters),
                OutputKind::GradientToUserInput => Some(&mut res.gradients_to_user_inputs),
                OutputKind::UserOutput
                | OutputKind::BufferMutation
                | OutputKind::ParameterMutation
                | OutputKind::UserInputMutation
                | OutputKind::Token => continue,
            };
            let Argument::Tensor(name) = &spec.arg else {
                return Err(violation(format!("expected TensorArgument for {kind}, got {}", spec.arg.class_name())));
            };
            match (gradients, &spec.target) {
                (None, _) if loss.is_some() => return Err(violation("multiple LOSS_OUTPUT specs found".to_string())),
                (None, _) => loss = Some(name.clone()),
                (Some(gradients), Some(target)) => {
                    gradients.insert(name.clone(), target.clone());
                }
                (Some(_), None) => {
                    return Err(violation(format!("expected str target for {kind}, got <class 'NoneType'>")));
                }
            }
        }
        Ok(loss.map(|loss_output| BackwardSignature { loss_output, ..res }))
    }

    /// From the position of an output to the name of the token that asserts depend on. PyTorch has none any more, and
    /// keeps the name.
    pub fn assertion_dep_token(&self) -> Option<IndexMap<usize, Str>> {
        None
    }

    /// Calls a node by another name wherever the signature names it. Constants keep theirs, as in PyTorch.
    pub fn replace_all_uses(&mut self, old: &str, new: &str) {
        let args = self.output_specs.iter_mut().map(|it| &mut it.arg);
        for arg in args.chain(self.input_specs.iter_mut().map(|it| &mut it.arg)) {
            match arg {
                Argument::Tensor(name)
                | Argument::SymInt(name)
                | Argument::SymFloat(name)
                | Argument::SymBool(name)
                | Argument::Token(name)
                | Argument::CustomObj { name, .. }
                    if **name == *old =>
                {
                    *name = new.into();
                }
                Argument::Tensor(_)
                | Argument::SymInt(_)
                | Argument::SymFloat(_)
                | Argument::SymBool(_)
                | Argument::Token(_)
                | Argument::CustomObj { .. }
                | Argument::Constant { .. } => {}
            }
        }
    }

    /// What keeps the signature right while `user` gets `new` in the place of `old`: results that are replaced are
    /// followed, and inputs where that is asked for. PyTorch's `get_replace_hook`.
    pub fn replace_hook(&mut self, inputs: ReplaceInputs) -> impl FnMut(&Node, &str, &Node) + '_ {
        move |old, new, user| {
            let follows_input = inputs == ReplaceInputs::Yes && old.op() == Opcode::Placeholder;
            if user.op() == Opcode::Output || follows_input {
                self.replace_all_uses(old.name(), new);
            }
        }
    }

    fn targets(&self, kind: InputKind) -> Vec<Str> {
        self.inputs_of(kind).filter_map(|it| it.target.clone()).collect()
    }

    fn inputs_to(&self, kind: InputKind) -> IndexMap<Str, Str> {
        let is_named = |arg: &Argument| match (kind, arg) {
            (InputKind::CustomObj, Argument::CustomObj { .. }) => true,
            (_, arg) => matches!(arg, Argument::Tensor(_)),
        };
        let specs = self.inputs_of(kind).filter(|it| is_named(&it.arg));
        specs.filter_map(|it| Some((it.arg.name().clone(), it.target.clone()?))).collect()
    }

    fn outputs_to(&self, kind: OutputKind) -> IndexMap<Str, Str> {
        let specs = self.output_specs.iter().filter(|it| it.kind == kind && matches!(it.arg, Argument::Tensor(_)));
        specs.filter_map(|it| Some((it.arg.name().clone(), it.target.clone()?))).collect()
    }
}

/// Whether a [`GraphSignature::replace_hook`] follows inputs too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceInputs {
    /// Results alone.
    No,
    /// Results and inputs.
    Yes,
}

impl fmt::Display for InputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.arg.name(), self.kind.name())?;
        if let Some(target) = &self.target {
            write!(f, " target='{target}'")?;
        }
        match self.persistent {
            Some(true) => f.write_str(" persistent=True"),
            Some(false) => f.write_str(" persistent=False"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for OutputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.arg.name(), self.kind.name())?;
        self.target.as_ref().map_or(Ok(()), |target| write!(f, " target='{target}'"))
    }
}

impl fmt::Display for GraphSignature {
    /// PyTorch's `str(graph_signature)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |specs: Vec<String>| specs.join("\n");
        let inputs = lines(self.input_specs.iter().map(InputSpec::to_string).collect());
        let outputs = lines(self.output_specs.iter().map(OutputSpec::to_string).collect());
        write!(f, "\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n")
    }
}

fn violation(what: String) -> Diagnostic {
    Diagnostic::new(Code::SpecViolation, what)
}
