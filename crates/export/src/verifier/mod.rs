//! Verifiers: the rules that a program keeps, as `torch._export.verifier` has them.
//!
//! A dialect is a verifier, not another kind of graph. All of them want calls of operators alone, known values and a
//! signature that fits; `ATEN` wants operators that write to nothing besides.

mod custom;
mod graph;
mod signature;

pub use custom::Verifier;

use crate::ExportedProgram;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ops::{Registry, registry};

/// The rules that a program is held to: the `dialect` of PyTorch's verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Operators that write to nothing: what `run_decompositions` gives.
    Aten,
    /// Operators that may write: what exporting gives.
    Training,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: &'static [Dialect] = &[Dialect::Aten, Dialect::Training];

    /// PyTorch's name.
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Aten => "ATEN",
            Dialect::Training => "TRAINING",
        }
    }

    /// The dialect of this name; no name is `ATEN`, as PyTorch's `load_verifier` has it.
    ///
    /// # Errors
    /// `InvalidOption` for any other name. PyTorch has other dialects where other packages register them.
    pub fn from_name(name: &str) -> Result<Self> {
        let name = if name.is_empty() { Dialect::Aten.name() } else { name };
        Self::ALL.iter().copied().find(|it| it.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|it| it.name()).collect();
            Diagnostic::new(Code::InvalidOption, format!("there is no verifier of the dialect '{name}'"))
                .help(format!("the dialects are {}", known.join(", ")))
        })
    }
}

impl ExportedProgram {
    /// The dialect of the first verifier: `ExportedProgram.dialect`.
    ///
    /// # Errors
    /// `InvalidOption` where there is no verifier of that name.
    pub fn dialect(&self) -> Result<Dialect> {
        Dialect::from_name(self.verifiers.first().map_or("", |it| &**it))
    }

    /// Holds the program to the rules of its verifiers: `ExportedProgram.validate()`.
    ///
    /// ```
    /// use tracefx_core::Code;
    /// # fn main() -> tracefx_core::Result<()> {
    /// # let mut graph = tracefx_ir::Graph::new();
    /// # graph.placeholder("x");
    /// # graph.output(tracefx_ir::Arg::Tuple(vec![]));
    /// let program = tracefx_export::ExportedProgram::new(
    ///     tracefx_ir::GraphModule::new(graph),
    ///     tracefx_export::GraphSignature::default(),
    /// );
    /// let problem = program.validate().unwrap_err();
    /// assert_eq!(problem.code(), Code::SpecViolation);
    /// assert!(problem.message().contains("Node.meta x is missing val field."));
    /// assert!(problem.notes()[0].contains("Number of graph inputs (1) does not match"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `SpecViolation`, or a code of [`Graph::lint`](tracefx_ir::Graph::lint), for the first rule that is broken, with
    /// PyTorch's text; the notes name the others. `InvalidOption` for a verifier that is not known.
    pub fn validate(&self) -> Result<()> {
        self.validate_in(registry())
    }

    /// As [`ExportedProgram::validate`], with operators of one's own. Of an operator that the registry does not have it is
    /// not known what it writes to, so it passes.
    ///
    /// # Errors
    /// As there.
    pub fn validate_in(&self, registry: &Registry) -> Result<()> {
        let mut names: Vec<&str> = self.verifiers.iter().map(|it| &**it).collect();
        if names.is_empty() {
            names.push(Dialect::Aten.name());
        }
        let mut problems: Vec<Diagnostic> = Vec::new();
        for name in names {
            let dialect = Dialect::from_name(name)?;
            for problem in graph::check(self, dialect, registry).into_iter().chain(signature::check(self)) {
                // Two verifiers find most things twice.
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
        let mut problems = problems.into_iter();
        let Some(first) = problems.next() else { return Ok(()) };
        Err(problems.fold(first, |first, it| first.note(it.message())))
    }
}

fn violation(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::SpecViolation, what)
}
