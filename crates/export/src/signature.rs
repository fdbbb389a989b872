//! What each input and output of a program's graph is for: a parameter, a buffer, the user's, the new value of something.

use std::fmt;
use tracefx_core::python_float;
use tracefx_ir::{Str, python_string};
use tracefx_ops::Value;

/// What stands in a place of the signature.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A tensor, by the name of its node.
    Tensor(Str),
    /// A symbolic int, by the name of its node.
    SymInt(Str),
    /// A symbolic float, by the name of its node.
    SymFloat(Str),
    /// A symbolic bool, by the name of its node.
    SymBool(Str),
    /// A custom object, by the name of its node and its class.
    CustomObj {
        /// The name of the node.
        name: Str,
        /// The qualified name of the class.
        class_fqn: Str,
    },
    /// An effect token, by the name of its node.
    Token(Str),
    /// A value that was fixed when the program was exported; the name is empty for an output.
    Constant {
        /// The name of the node.
        name: Str,
        /// The value.
        value: ConstantValue,
    },
}

impl Argument {
    /// The name of the node; empty for a constant output.
    pub fn name(&self) -> &Str {
        match self {
            Argument::Tensor(name)
            | Argument::SymInt(name)
            | Argument::SymFloat(name)
            | Argument::SymBool(name)
            | Argument::Token(name)
            | Argument::CustomObj { name, .. }
            | Argument::Constant { name, .. } => name,
        }
    }

    /// The name of PyTorch's class.
    pub const fn class_name(&self) -> &'static str {
        match self {
            Argument::Tensor(_) => "TensorArgument",
            Argument::SymInt(_) => "SymIntArgument",
            Argument::SymFloat(_) => "SymFloatArgument",
            Argument::SymBool(_) => "SymBoolArgument",
            Argument::CustomObj { .. } => "CustomObjArgument",
            Argument::Token(_) => "TokenArgument",
            Argument::Constant { .. } => "ConstantArgument",
        }
    }

    /// The same kind of argument under another name.
    pub fn renamed(&self, name: Str) -> Argument {
        match self {
            Argument::Tensor(_) => Argument::Tensor(name),
            Argument::SymInt(_) => Argument::SymInt(name),
            Argument::SymFloat(_) => Argument::SymFloat(name),
            Argument::SymBool(_) => Argument::SymBool(name),
            Argument::Token(_) => Argument::Token(name),
            Argument::CustomObj { class_fqn, .. } => Argument::CustomObj { name, class_fqn: class_fqn.clone() },
            Argument::Constant { value, .. } => Argument::Constant { name, value: value.clone() },
        }
    }
}

impl fmt::Display for Argument {
    /// Python's `repr`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(name={}", self.class_name(), python_string(self.name()))?;
        match self {
            Argument::CustomObj { class_fqn, .. } => {
                write!(f, ", class_fqn={}, fake_val=None", python_string(class_fqn))?;
            }
            Argument::Constant { value, .. } => write!(f, ", value={value}")?,
            Argument::Tensor(_)
            | Argument::SymInt(_)
            | Argument::SymFloat(_)
            | Argument::SymBool(_)
            | Argument::Token(_) => {}
        }
        f.write_str(")")
    }
}

/// A Python value that an input or output is fixed to.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstantValue {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(Str),
}

impl ConstantValue {
    /// The same as an argument of a run.
    pub fn to_value<T>(&self) -> Value<T> {
        match self {
            ConstantValue::None => Value::None,
            ConstantValue::Bool(it) => Value::Bool(*it),
            ConstantValue::Int(it) => Value::int(*it),
            ConstantValue::Float(it) => Value::Float(*it),
            ConstantValue::Str(it) => Value::Str(it.clone()),
        }
    }
}

impl fmt::Display for ConstantValue {
    /// Python's `repr`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConstantValue::None => f.write_str("None"),
            ConstantValue::Bool(it) => f.write_str(if *it { "True" } else { "False" }),
            ConstantValue::Int(it) => write!(f, "{it}"),
            ConstantValue::Float(it) => f.write_str(&python_float(*it)),
            ConstantValue::Str(it) => f.write_str(&python_string(it)),
        }
    }
}

macro_rules! kinds {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// Every kind, in PyTorch's order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// PyTorch's name.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// The kind of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.name() == name)
            }
        }
    };
}

kinds! {
    /// What an input of the graph is: `torch.export.graph_signature.InputKind`.
    InputKind {
        /// An input of the user.
        UserInput = "USER_INPUT",
        /// A parameter.
        Parameter = "PARAMETER",
        /// A buffer.
        Buffer = "BUFFER",
        /// A tensor that the traced code made or closed over.
        ConstantTensor = "CONSTANT_TENSOR",
        /// A custom object.
        CustomObj = "CUSTOM_OBJ",
        /// An effect token.
        Token = "TOKEN",
    }
}

kinds! {
    /// What an output of the graph is: `torch.export.graph_signature.OutputKind`.
    OutputKind {
        /// An output of the user.
        UserOutput = "USER_OUTPUT",
        /// The loss of a training graph.
        LossOutput = "LOSS_OUTPUT",
        /// The new value of a buffer.
        BufferMutation = "BUFFER_MUTATION",
        /// The new value of a parameter.
        ParameterMutation = "PARAMETER_MUTATION",
        /// The gradient of a parameter.
        GradientToParameter = "GRADIENT_TO_PARAMETER",
        /// The gradient of an input.
        GradientToUserInput = "GRADIENT_TO_USER_INPUT",
        /// The new value of an input.
        UserInputMutation = "USER_INPUT_MUTATION",
        /// An effect token.
        Token = "TOKEN",
    }
}

impl OutputKind {
    /// Whether a call gives this output; new values of buffers, parameters and inputs are written back instead.
    pub const fn is_result(self) -> bool {
        match self {
            OutputKind::UserOutput
            | OutputKind::LossOutput
            | OutputKind::GradientToParameter
            | OutputKind::GradientToUserInput => true,
            OutputKind::BufferMutation
            | OutputKind::ParameterMutation
            | OutputKind::UserInputMutation
            | OutputKind::Token => false,
        }
    }
}

/// One input of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// What it is.
    pub kind: InputKind,
    /// What stands there.
    pub arg: Argument,
    /// The qualified name of the parameter, buffer, constant or object.
    pub target: Option<Str>,
    /// Of a buffer, whether it is saved with the module.
    pub persistent: Option<bool>,
}

/// One output of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSpec {
    /// What it is.
    pub kind: OutputKind,
    /// What stands there.
    pub arg: Argument,
    /// What it belongs to: the buffer or parameter that changes or that a gradient is of, or the user's input.
    pub target: Option<Str>,
}

/// What the inputs and outputs of the graph are: `torch.export.graph_signature.ExportGraphSignature`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphSignature {
    /// One per placeholder, in order.
    pub input_specs: Vec<InputSpec>,
    /// One per result of the graph, in order.
    pub output_specs: Vec<OutputSpec>,
}

impl GraphSignature {
    /// The inputs of the user, in order.
    pub fn user_inputs(&self) -> impl Iterator<Item = &InputSpec> {
        self.inputs_of(InputKind::UserInput)
    }

    /// The outputs of the user, in order; a loss is one of them.
    pub fn user_outputs(&self) -> impl Iterator<Item = &OutputSpec> {
        self.output_specs.iter().filter(|it| matches!(it.kind, OutputKind::UserOutput | OutputKind::LossOutput))
    }

    /// The inputs of this kind, in order.
    pub fn inputs_of(&self, kind: InputKind) -> impl Iterator<Item = &InputSpec> {
        self.input_specs.iter().filter(move |it| it.kind == kind)
    }
}
