//! Refusals: the table of codes, from which TypeScript's errors are printed, and what a refusal says besides its code. Which
//! input is refused is decided where it is read.

use crate::DType;
use std::fmt;

/// The result of everything that can refuse its input.
pub type Result<T, E = Diagnostic> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident $id:literal $class:literal),+ $(,)?) => {
        /// What went wrong, as a stable code. The table of codes is this enum; TypeScript's is printed from it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$meta])* $variant),+ }

        impl Code {
            /// Every code, in declaration order.
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            /// The stable code, such as `FX0203`.
            pub const fn id(self) -> &'static str {
                match self { $(Code::$variant => $id),+ }
            }

            /// The name of this code.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => stringify!($variant)),+ }
            }

            /// The error class that carries this code in TypeScript.
            pub const fn class(self) -> &'static str {
                match self { $(Code::$variant => $class),+ }
            }
        }
    };
}

codes! {
    /// The bytes are not an archive, or end too early, or contradict themselves.
    ArchiveMalformed "FX0101" "ArchiveError",
    /// The archive is of a kind that holds no exported program.
    ArchiveWrongKind "FX0102" "ArchiveError",
    /// The checksum of an entry does not agree with its bytes.
    ArchiveChecksum "FX0103" "ArchiveError",
    /// A limit on untrusted input was reached; the message names the limit.
    LimitExceeded "FX0104" "ArchiveError",
    /// The program was written in a schema that this version does not read.
    SchemaVersion "FX0105" "ArchiveError",
    /// The program's JSON is not what the schema says.
    SchemaMalformed "FX0106" "ArchiveError",
    /// A pickle is malformed.
    PickleMalformed "FX0107" "ArchiveError",
    /// A pickle asks for something outside the allow-list; it was not run.
    PickleForbidden "FX0108" "ArchiveError",
    /// A symbolic expression is malformed.
    ExpressionMalformed "FX0109" "ArchiveError",
    /// A tensor's view leaves its storage.
    ViewOutOfBounds "FX0110" "ArchiveError",
    /// Compressed entries are refused unless they are allowed.
    ArchiveCompressed "FX0111" "ArchiveError",

    /// The graph breaks one of its rules: an argument from elsewhere, a use before the definition…
    GraphInvalid "FX0201" "GraphError",
    /// A node that still has users was to be erased.
    NodeHasUsers "FX0202" "GraphError",
    /// A node of another graph, or one that was erased, was used.
    NodeForeign "FX0203" "GraphError",
    /// A name refers to nothing.
    AttributeMissing "FX0204" "GraphError",
    /// A value of the wrong kind was given for a graph's part.
    GraphArgument "FX0205" "GraphError",
    /// The names or shapes in a state dict are not the ones of the module.
    StateMismatch "FX0206" "GraphError",
    /// An exported program breaks a rule of its dialect: PyTorch's `SpecViolationError`.
    SpecViolation "FX0207" "GraphError",

    /// The shapes do not fit the operator.
    ShapeMismatch "FX0301" "OperatorError",
    /// The dtypes do not fit the operator.
    DTypeMismatch "FX0302" "OperatorError",
    /// An argument does not fit the operator's schema.
    SchemaMismatch "FX0303" "OperatorError",
    /// An argument has the right type and a value that the operator refuses.
    InvalidArgument "FX0304" "OperatorError",
    /// An index lies outside its dimension.
    IndexOutOfRange "FX0305" "OperatorError",
    /// An assertion of the program itself does not hold.
    AssertionFailed "FX0306" "OperatorError",
    /// A function of an operator of one's own threw an error.
    KernelFailed "FX0307" "OperatorError",

    /// This operator, or this dtype or option of it, is not implemented.
    NotImplemented "FX0401" "NotImplementedError",

    /// The bytes are not in the tracefx format, or break its rules.
    WireMalformed "FX0501" "WireError",
    /// The bytes were written by a newer, incompatible version.
    WireVersion "FX0502" "WireError",

    /// An input of the program is missing, or there is one too many.
    InputCount "FX0601" "InputError",
    /// An input is of the wrong kind or dtype.
    InputType "FX0602" "InputError",
    /// An input's shape breaks a constraint of the program.
    InputShape "FX0603" "InputError",
    /// The inputs' structure is not the one that the program was exported with.
    InputStructure "FX0604" "InputError",
    /// A constant input has another value than the program was exported with.
    InputValue "FX0605" "InputError",

    /// A handle was used after it was disposed.
    Disposed "FX0701" "UsageError",
    /// An option is unknown or has a wrong value.
    InvalidOption "FX0702" "UsageError",
    /// A file or URL could not be read or written.
    Io "FX0703" "UsageError",
    /// The engine was used before it was loaded.
    NotLoaded "FX0704" "UsageError",
    /// Who had asked for it stopped it.
    Stopped "FX0705" "UsageError",
    /// There is no device of this kind.
    DeviceMissing "FX0706" "UsageError",
    /// The device was lost, or refused its work.
    DeviceFailed "FX0707" "UsageError",

    /// The control flow of a traced function depends on a traced value.
    TraceControlFlow "FX0801" "TraceError",
    /// A traced value is used where only a number, a string or another plain value can be.
    TraceCoercion "FX0802" "TraceError",
    /// A traced value is walked, measured or searched, and nobody knows how long it is.
    TraceIteration "FX0803" "TraceError",
    /// Something that a trace cannot record: an assignment to a traced value, an unknown module, an argument of a strange class.
    TraceUnsupported "FX0804" "TraceError",
    /// The traced program gives something else than the function that was traced.
    TraceMismatch "FX0805" "TraceError",

    /// What the user said of dynamic sizes is not what the module makes of them.
    ConstraintViolation "FX1101" "ExportError",
    /// The module asks of a size what only the data can tell.
    DataDependent "FX1102" "ExportError",
    /// What is said of dynamic sizes has another structure than the inputs, or says nothing of sizes.
    DynamicShapes "FX1103" "ExportError",

    /// A pattern cannot match anything: it is empty, or has nodes that its result does not need.
    PatternInvalid "FX1001" "RewriteError",
    /// A replacement does not fit its pattern: it takes other inputs, or gives another number of results.
    ReplacementInvalid "FX1002" "RewriteError",
    /// A partition of a graph would need its own result.
    PartitionCycle "FX1003" "RewriteError",
    /// A pass cannot run on the module, or broke what it promises.
    PassFailed "FX1004" "RewriteError",
    /// A replacement computes something else than what it stands for.
    VerifyFailed "FX1005" "RewriteError",
    /// The types of a graph's values do not fit together.
    TypeInconsistent "FX1006" "RewriteError",

    /// Memory ran out; the engine goes on.
    OutOfMemory "FX0901" "EngineError",
    /// The engine broke one of its own invariants. This is a bug of tracefx.
    Internal "FX0902" "EngineError",
}

/// A refusal: a stable code, what happened, where, and what to do.
///
/// ```
/// use tracefx_core::{Code, Diagnostic};
/// let it = Diagnostic::new(Code::ShapeMismatch, "mat1 is 2x3 but mat2 is 4x5").op("aten.mm.default").node("mm_1");
/// assert_eq!(it.to_string(), "FX0301: mat1 is 2x3 but mat2 is 4x5 (at %mm_1, aten.mm.default)");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic(Box<Parts>);

#[derive(Clone, Debug, PartialEq)]
struct Parts {
    code: Code,
    message: String,
    node: Option<String>,
    op: Option<String>,
    notes: Vec<String>,
    help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic with a message: lower case, no full stop at the end.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Diagnostic(Box::new(Parts {
            code,
            message: message.into(),
            node: None,
            op: None,
            notes: Vec::new(),
            help: None,
        }))
    }

    /// `OutOfMemory` for an allocation of this many bytes.
    pub fn out_of_memory(bytes: usize) -> Self {
        Self::new(Code::OutOfMemory, format!("could not allocate {bytes} bytes"))
    }

    /// `NotImplemented` for a dtype in an operation.
    #[cold]
    #[inline(never)]
    pub fn unsupported_dtype(dtype: DType, what: &str) -> Self {
        Self::new(Code::NotImplemented, format!("{what} is not implemented for {}", dtype.name()))
    }

    /// Names the node where it happened, unless one is named already.
    pub fn node(mut self, name: impl Into<String>) -> Self {
        self.0.node.get_or_insert_with(|| name.into());
        self
    }

    /// Names the operator, unless one is named already.
    pub fn op(mut self, name: impl Into<String>) -> Self {
        self.0.op.get_or_insert_with(|| name.into());
        self
    }

    /// Adds a line of context.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.0.notes.push(note.into());
        self
    }

    /// Says what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What happened.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The node where it happened.
    pub fn node_name(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// The operator where it happened.
    pub fn op_name(&self) -> Option<&str> {
        self.0.op.as_deref()
    }

    /// Lines of context.
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// What to do about it.
    pub fn help_text(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.id(), self.0.message)?;
        match (&self.0.node, &self.0.op) {
            (Some(node), Some(op)) => write!(f, " (at %{node}, {op})")?,
            (Some(node), None) => write!(f, " (at %{node})")?,
            (None, Some(op)) => write!(f, " (in {op})")?,
            (None, None) => {}
        }
        for note in &self.0.notes {
            write!(f, "\n  note: {note}")?;
        }
        if let Some(help) = &self.0.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}
