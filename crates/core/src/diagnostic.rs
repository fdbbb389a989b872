//! Refusals: the table of codes, from which TypeScript's errors are printed, and what a refusal says besides its code. Which
//! input is refused is decided where it is read.

use crate::DType;
use std::fmt;

/// The result of everything that can refuse its input.
pub type Result<T, E = Diagnostic> = std::result::Result<T, E>;

macro_rules! codes {
    ($(#[doc = $about:literal] $variant:ident $id:literal $class:literal $cause:literal $cure:literal),+ $(,)?) => {
        /// What went wrong, as a stable code. The table of codes is this enum; TypeScript's is printed from it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $about] $variant),+ }

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

            /// What it says, in a sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Code::$variant => $about.trim_ascii()),+ }
            }

            /// What most often leads to it.
            pub const fn cause(self) -> &'static str {
                match self { $(Code::$variant => $cause),+ }
            }

            /// What to do about it. A refusal often has a `help` that knows more.
            pub const fn cure(self) -> &'static str {
                match self { $(Code::$variant => $cure),+ }
            }
        }
    };
}

codes! {
    /// The bytes are not an archive, or end too early, or contradict themselves.
    ArchiveMalformed "FX0101" "ArchiveError"
        "A download that broke off, a file of another kind, or one that was changed by hand."
        "Fetch or save the file again. `torch.export.save` writes what is read here.",
    /// The archive is of a kind that holds no exported program.
    ArchiveWrongKind "FX0102" "ArchiveError"
        "A file of `torch.save`, TorchScript or AOTInductor holds weights or compiled code, and no exported program."
        "Export the model with `torch.export.export` and save it with `torch.export.save`. Weights alone: `loadCheckpoint`.",
    /// The checksum of an entry does not agree with its bytes.
    ArchiveChecksum "FX0103" "ArchiveError"
        "Bytes changed on the way, on a disk or in a cache."
        "Fetch the file again.",
    /// A limit on untrusted input was reached; the message names the limit.
    LimitExceeded "FX0104" "ArchiveError"
        "The file or the run is larger than it may be by default, or is made to use up memory."
        "If the file is trusted, raise the limit that the message names: `limits` in code, `--limit NAME=N` in the shell.",
    /// The program was written in a schema that this version does not read.
    SchemaVersion "FX0105" "ArchiveError"
        "A PyTorch older than 2.6, or newer than this version knows, wrote the program."
        "Export with PyTorch 2.6 or later, or update tracefx.",
    /// The program's JSON is not what the schema says.
    SchemaMalformed "FX0106" "ArchiveError"
        "Another program wrote the archive, or it was changed by hand."
        "Save the program again with `torch.export.save`. If PyTorch opens the file, please report it.",
    /// A pickle is malformed.
    PickleMalformed "FX0107" "ArchiveError"
        "The entry of a tensor or of the weights is damaged."
        "Save the file again.",
    /// A pickle asks for something outside the allow-list; it was not run.
    PickleForbidden "FX0108" "ArchiveError"
        "The pickle names a class or function that is not of tensors. Unpickling it in Python may run it."
        "Do not trust the file. If it is yours, save a state dict or an exported program, which are data alone.",
    /// A symbolic expression is malformed.
    ExpressionMalformed "FX0109" "ArchiveError"
        "A size or a guard has an operator that is not known here, or is damaged."
        "Export again. If PyTorch opens the file, please report the expression in the message.",
    /// A tensor's view leaves its storage.
    ViewOutOfBounds "FX0110" "ArchiveError"
        "The file is damaged, or is made to read memory of others."
        "Save the file again.",
    /// Compressed entries are refused unless they are allowed.
    ArchiveCompressed "FX0111" "ArchiveError"
        "A tool packed the archive again with compression. PyTorch stores its entries as they are."
        "Save with `torch.export.save`, or pack with `zip -0`. In Rust, `LoadOptions::allow_deflate` allows it.",

    /// The graph breaks one of its rules: an argument from elsewhere, a use before the definition…
    GraphInvalid "FX0201" "GraphError"
        "An edit left the graph in a state that no run can follow."
        "Call `graph.lint()` after each step of an edit; the first that throws is the one to mend.",
    /// A node that still has users was to be erased.
    NodeHasUsers "FX0202" "GraphError"
        "`eraseNode` was called while other nodes still use the value."
        "Call `node.replaceAllUsesWith(other)` first, or erase the users first.",
    /// A node of another graph, or one that was erased, was used.
    NodeForeign "FX0203" "GraphError"
        "A node was kept across a copy of the graph, or after it was erased."
        "Take the node from the graph that is edited: `graph.findNodes`, or the map that `graphCopy` fills.",
    /// A name refers to nothing.
    AttributeMissing "FX0204" "GraphError"
        "A `get_attr` or `call_module` node names something that the module does not have."
        "Check `node.target`, or add the attribute to the root of the graph module first.",
    /// A value of the wrong kind was given for a graph's part.
    GraphArgument "FX0205" "GraphError"
        "An argument of a node is no value that graphs hold."
        "Give nodes, numbers, strings, booleans, null, dtypes, devices, or lists, tuples and records of them.",
    /// The names or shapes in a state dict are not the ones of the module.
    StateMismatch "FX0206" "GraphError"
        "The checkpoint is of another model, or of another version of it."
        "Compare the names and shapes that the message lists with those of `stateDict()`.",
    /// An exported program breaks a rule of its dialect: PyTorch's `SpecViolationError`.
    SpecViolation "FX0207" "GraphError"
        "A pass made an operator or an argument that exported programs do not have."
        "Do the edit with operators of `torch.ops`, and call `program.validate()` after it.",

    /// The shapes do not fit the operator.
    ShapeMismatch "FX0301" "OperatorError"
        "The inputs have another size than the operator needs."
        "Compare the shapes in the message with those that `inspect` shows for the node.",
    /// The dtypes do not fit the operator.
    DTypeMismatch "FX0302" "OperatorError"
        "Two tensors have dtypes that do not go together, or the operator is not defined for the dtype."
        "Convert one of them: `x.to(\"float32\")`.",
    /// An argument does not fit the operator's schema.
    SchemaMismatch "FX0303" "OperatorError"
        "An argument has the wrong type, is missing, or is one too many."
        "Compare the call with the schema in the message. A whole number is an int: `float(1)` is 1.0.",
    /// An argument has the right type and a value that the operator refuses.
    InvalidArgument "FX0304" "OperatorError"
        "The value is outside of what the operator takes, such as a dimension that the tensor does not have."
        "Change the argument that the message names.",
    /// An index lies outside its dimension.
    IndexOutOfRange "FX0305" "OperatorError"
        "An index in the data is too large or negative: often a token that is not in the vocabulary."
        "Check the data that goes in. The message has the index and the size.",
    /// An assertion of the program itself does not hold.
    AssertionFailed "FX0306" "OperatorError"
        "The program holds an assertion of its author or of the exporter, and the data breaks it."
        "Give data that the assertion allows, or export without it.",
    /// A function of an operator of one's own threw an error.
    KernelFailed "FX0307" "OperatorError"
        "Your own function of an operator threw."
        "The error that it threw is the `cause`.",

    /// This operator, or this dtype or option of it, is not implemented.
    NotImplemented "FX0401" "NotImplementedError"
        "The program asks for an operator, a dtype or an option that is not there yet."
        "`tracefx inspect` lists what is missing. `--decompose` (`runDecompositions()`) often replaces it by operators that are there; an operator of your own is a `library.Library`.",

    /// The bytes are not in the tracefx format, or break its rules.
    WireMalformed "FX0501" "WireError"
        "The `.fxg` file broke off, or was changed."
        "Write it again: `npx tracefx convert model.pt2 model.fxg`.",
    /// The bytes were written by a newer, incompatible version.
    WireVersion "FX0502" "WireError"
        "A newer tracefx wrote the `.fxg` file."
        "Update tracefx, or write the file again from the `.pt2`.",

    /// An input of the program is missing, or there is one too many.
    InputCount "FX0601" "InputError"
        "The call has too few or too many arguments."
        "Compare the call with the signature that `inspect` shows.",
    /// An input is of the wrong kind or dtype.
    InputType "FX0602" "InputError"
        "An input has another dtype, or is no tensor where one is needed."
        "Convert it: `tensor(data, { dtype: \"float32\" })`. A JavaScript array of whole numbers becomes `int64`.",
    /// An input's shape breaks a constraint of the program.
    InputShape "FX0603" "InputError"
        "A size is not the one that the model was exported with. Sizes are fixed unless `dynamic_shapes` says otherwise."
        "Resize the input, or export with `dynamic_shapes` for the dimension that the message names.",
    /// The inputs' structure is not the one that the program was exported with.
    InputStructure "FX0604" "InputError"
        "The model was exported with a list, a tuple or a record where the call has something else."
        "Give the structure that the message shows. In JavaScript an array is a list, and `tuple(a, b)` a tuple.",
    /// A number, string or boolean among the inputs has a value that the program is not for.
    InputValue "FX0605" "InputError"
        "Numbers, strings and booleans among the inputs of an export are constants of the program. An int that `dynamic_shapes` leaves open has a range."
        "Give the value or a number of the range that the message names, or export again: with the other value, or with `Dim.DYNAMIC` for an int.",

    /// A handle was used after it was disposed.
    Disposed "FX0701" "UsageError"
        "A tensor, program or runner was used after `dispose()`, or after its `using` block ended."
        "Keep it until the last use, and copy results out before: `tensor.toArray()`.",
    /// An option is unknown or has a wrong value.
    InvalidOption "FX0702" "UsageError"
        "An option is misspelled, has a wrong value, or does not go with another one."
        "The help line of the message names the options that there are.",
    /// A file or URL could not be read or written.
    Io "FX0703" "UsageError"
        "The file or address is not there, or may not be read or written."
        "Check the path, or the address and its CORS headers.",
    /// The engine was used before it was loaded.
    NotLoaded "FX0704" "UsageError"
        "An operator ran, a module drew its parameters or a program was opened before the engine was there."
        "`await init()` once, before the first of these. Making tensors, tracing and editing do not need it.",
    /// Who had asked for it stopped it.
    Stopped "FX0705" "UsageError"
        "The function that watched the run ended it."
        "Nothing, if that was meant. What earlier nodes wrote to buffers stays.",
    /// There is no device of this kind.
    DeviceMissing "FX0706" "UsageError"
        "The machine or the browser has no GPU that programs may use."
        "Run on the CPU. `tracefx doctor` tells what is missing.",
    /// The device was lost, or refused its work.
    DeviceFailed "FX0707" "UsageError"
        "The driver was reset, the device ran out of memory, or it refused a program."
        "Make the runner again, with smaller batches if memory ran out; the CPU always serves.",

    /// The control flow of a traced function depends on a traced value.
    TraceControlFlow "FX0801" "TraceError"
        "`if (x)`, `x && y` or a loop depends on the data of a traced tensor."
        "Use `cond`, `whileLoop` or `torch.where`, or make the value constant with `concreteArgs`. docs/control-flow.md has each case.",
    /// A traced value is used where only a number, a string or another plain value can be.
    TraceCoercion "FX0802" "TraceError"
        "JavaScript turned a traced tensor into a number or a string: `x + 1`, `Math.max(x, 0)`, a template."
        "Write the operator as a call: `operator.add(x, 1)`, `torch.clamp`.",
    /// A traced value is walked, measured or searched, and nobody knows how long it is.
    TraceIteration "FX0803" "TraceError"
        "`for (const row of x)`, `[...x]` or `x.length` of a traced tensor."
        "Use `torch.unbind` with a known size, or index: `x.select(0, 0)`.",
    /// Something that a trace cannot record: an assignment to a traced value, an unknown module, an argument of a strange class.
    TraceUnsupported "FX0804" "TraceError"
        "The traced function changes a traced tensor from outside, or calls what is neither a function of the table nor a module."
        "Use a function of `torch`, or make yours a leaf with `wrap`.",
    /// The traced program gives something else than the function that was traced.
    TraceMismatch "FX0805" "TraceError"
        "The function gave another result when it was traced than when it ran: it depends on something that a trace does not see."
        "Make what it depends on an argument. The message names the first value that differs.",

    /// What the user said of dynamic sizes is not what the module makes of them.
    ConstraintViolation "FX1101" "ExportError"
        "A dimension was declared as dynamic, and the module makes it constant or ties it to another one."
        "Declare what the message suggests, such as `Dim(\"batch\", { max: 64 })`, or leave the dimension fixed.",
    /// The module asks of a size what only the data can tell.
    DataDependent "FX1102" "ExportError"
        "The module asks `if (x.item() > 0)` or makes a size of data."
        "Say what holds with `torch._check`, or write `cond`.",
    /// What is said of dynamic sizes has another structure than the inputs, or says nothing of sizes.
    DynamicShapes "FX1103" "ExportError"
        "`dynamicShapes` does not have one entry for each input, in the structure of the inputs."
        "Give one entry for each argument, `null` for those with fixed sizes.",

    /// A pattern cannot match anything: it is empty, or has nodes that its result does not need.
    PatternInvalid "FX1001" "RewriteError"
        "The pattern is empty, or has nodes that its result does not need."
        "Let the pattern return what its last node computes.",
    /// A replacement does not fit its pattern: it takes other inputs, or gives another number of results.
    ReplacementInvalid "FX1002" "RewriteError"
        "The replacement takes other inputs than the pattern, or gives another number of results."
        "Give both functions the same parameters and results.",
    /// A partition of a graph would need its own result.
    PartitionCycle "FX1003" "RewriteError"
        "A partition holds a node, and a node that needs its result by way of another partition."
        "Put the nodes between them in the same partition, or split it.",
    /// A pass cannot run on the module, or broke what it promises.
    PassFailed "FX1004" "RewriteError"
        "A pass cannot run on this module, or did something that it promises not to do."
        "The notes of the message say which check failed, and the `cause` what a pass of yours threw.",
    /// A replacement computes something else than what it stands for.
    VerifyFailed "FX1005" "RewriteError"
        "The replacement computes other numbers than the pattern."
        "The message has inputs for which they differ. Loosen the tolerance only if the difference is meant.",
    /// The types of a graph's values do not fit together.
    TypeInconsistent "FX1006" "RewriteError"
        "The annotations of the graph contradict each other."
        "Change the annotation of the node that the message names.",

    /// Memory ran out; the engine goes on.
    OutOfMemory "FX0901" "EngineError"
        "The model and its intermediate values are larger than the memory that there is: 4 GiB for WebAssembly."
        "Use smaller batches or weights of 16 or 8 bits, and `dispose()` of what is not needed. docs/running-and-memory.md has more.",
    /// The engine broke one of its own invariants. This is a bug of tracefx.
    Internal "FX0902" "EngineError"
        "This is a bug of tracefx."
        "Please report it with the message. The engine stays usable.",
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
