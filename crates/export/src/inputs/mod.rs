//! Checking the inputs of a call against what the program was exported for.

mod constant;
mod paths;
mod symbolic;

use crate::{Argument, ConstantValue, ExportedProgram};
use paths::InputPath;
use std::collections::BTreeMap;
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_ir::{Opcode, Val};
use tracefx_ops::Value;
use tracefx_sym::{
    Equation, Guard, GuardError, InputProperty, InputSource, InputValue, Limits, Parser, ShapeEnv, SymInt, Symbol,
    ValueRange, Violation, solve,
};

/// What the user inputs of a program have to be. It is made once for a program and checks every call.
///
/// It refuses what PyTorch refuses: a wrong number of inputs, a constant with another value, a size that is not the one
/// that was exported, or not in its range, or not equal to the size that it shares a symbol with, and guards that do not
/// hold. It also refuses wrong kinds, dtypes and ranks, which PyTorch leaves to the first operator that minds. Like
/// PyTorch, it lets a size of 0 or 1 pass where the range begins at 2: such ranges say that the program was not
/// specialised to these sizes, and not that it cannot run with them.
#[derive(Clone, Debug)]
pub struct InputChecker {
    inputs: Vec<Expected>,
    env: ShapeEnv,
    /// Ranges of expressions, such as `2*s0`.
    derived_ranges: Vec<(SymInt, ValueRange)>,
    guards: Vec<Guard>,
}

/// What one input has to be.
#[derive(Clone, Debug)]
struct Expected {
    path: InputPath,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// A tensor; nothing more is known of it where the program has no meta.
    Tensor(Option<(DType, Vec<SymInt>)>),
    Int(Option<SymInt>),
    Float,
    Bool,
    Constant(ConstantValue),
}

/// What a size equation is about: the input, and its dimension if it is a tensor.
#[derive(Clone, Copy)]
struct Place {
    input: usize,
    dim: Option<usize>,
}

/// Everything that is wrong with the inputs of one call.
#[derive(Default)]
struct Problems(Vec<(Code, String)>);

impl InputChecker {
    /// Reads the constraints of a program.
    ///
    /// # Errors
    /// `ExpressionMalformed` where a guard or range cannot be read, for then it cannot be checked; `GraphInvalid` where
    /// the signature names an input that the graph does not have, or a range is empty; `NotImplemented` for custom
    /// objects among the user inputs.
    pub fn new(program: &ExportedProgram) -> Result<Self> {
        let paths = paths::of_inputs(program);
        let mut inputs = Vec::with_capacity(paths.len());
        for (path, spec) in paths.into_iter().zip(program.signature.user_inputs()) {
            let kind = expected_kind(program, &spec.arg)?;
            inputs.push(Expected { path, kind });
        }
        let limits = Limits::default();
        let guards = program.guards.iter().map(|code| Guard::parse(code, &limits)).collect::<Result<_>>()?;
        let mut checker = InputChecker { inputs, env: ShapeEnv::new(), derived_ranges: Vec::new(), guards };
        let mut parser = Parser::default();
        for (symbol, range) in &program.range_constraints {
            let range = enforced(*range);
            match parser.parse(symbol.name())?.as_int() {
                Some(expr) if expr.as_symbol().is_some() => {
                    let added = checker.env.constrain(symbol, range);
                    added.map_err(|it| Diagnostic::new(Code::GraphInvalid, it.to_string()))?;
                }
                Some(expr) => checker.derived_ranges.push((expr.clone(), range)),
                // The range of a float, which no input has.
                None => {}
            }
        }
        Ok(checker)
    }

    /// Checks the user inputs, flattened, and gives back the values of the symbols.
    ///
    /// # Errors
    /// `InputCount`, `InputType`, `InputShape`, `InputValue` or `InputStructure` for the first thing that is wrong; the
    /// notes name the others.
    pub fn check(&self, inputs: &[Value<Tensor>]) -> Result<BTreeMap<Symbol, i64>> {
        if inputs.len() != self.inputs.len() {
            return Err(self.wrong_count(inputs.len()));
        }
        let mut problems = Problems::default();
        let (mut equations, mut places) = (Vec::new(), Vec::new());
        for (input, (expected, given)) in self.inputs.iter().zip(inputs).enumerate() {
            expected.check(given, &mut problems, &mut |dim, expr, value| {
                equations.push(Equation { expr: expr.clone(), value });
                places.push(Place { input, dim });
            });
        }
        let solution = solve(&equations, &self.env);
        for violation in &solution.violations {
            let message = self.violation(violation, &equations, &places, &solution.bindings);
            problems.0.push((code_of(places[violation.equation()]), message));
        }
        // Guards and derived ranges are about the same sizes: they say something new only where the sizes fit so far.
        if problems.0.is_empty() {
            self.check_derived_ranges(&solution.bindings, &mut problems);
            self.check_guards(inputs, &mut problems);
        }
        problems.into_result().map(|()| solution.bindings)
    }

    fn wrong_count(&self, given: usize) -> Diagnostic {
        let names: Vec<String> = self.inputs.iter().map(|it| it.path.to_string()).collect();
        let plural = if names.len() == 1 { "" } else { "s" };
        let what = format!("the program takes {} input{plural} and was given {given}", names.len());
        let diagnostic = Diagnostic::new(Code::InputCount, what);
        if names.is_empty() {
            diagnostic
        } else {
            diagnostic.help(format!("pass, in this order: {}", names.join(", ")))
        }
    }

    /// How PyTorch writes the size or number at a place.
    fn source(&self, place: Place) -> String {
        let path = &self.inputs[place.input].path;
        match place.dim {
            Some(dim) => format!("{path}.size()[{dim}]"),
            None => path.to_string(),
        }
    }

    fn violation(
        &self,
        violation: &Violation,
        equations: &[Equation],
        places: &[Place],
        bindings: &BTreeMap<Symbol, i64>,
    ) -> String {
        let at = violation.equation();
        let (source, Equation { expr, value }) = (self.source(places[at]), &equations[at]);
        match violation {
            Violation::Mismatch { expected, because, .. } if because.is_empty() => {
                format!("guard failed: {source} == {expected}, and it is {value}")
            }
            Violation::Mismatch { expected, because, .. } => {
                // The sizes that the symbols are from stand in their places, as in PyTorch's own guards.
                let origin_of = |symbol: &Symbol| {
                    let (_, from) = because.iter().find(|(it, _)| it == symbol)?;
                    (equations[*from].expr.as_symbol() == Some(symbol)).then(|| self.source(places[*from]))
                };
                let shown = expr.substitute(&|symbol| origin_of(symbol).map(|it| Symbol::size(it).into()));
                let given: Vec<String> = because
                    .iter()
                    .filter(|(symbol, _)| origin_of(symbol).is_none())
                    .filter_map(|(symbol, _)| Some(format!(" with {symbol} = {}", bindings.get(symbol)?)))
                    .collect();
                format!("guard failed: {source} == {shown}{}, and it is {value} instead of {expected}", given.concat())
            }
            Violation::NotDivisible { symbol, .. } => {
                format!("guard failed: {source} == {expr}, and no integer {symbol} makes that {value}")
            }
            Violation::OutOfRange { symbol, value: found, range, .. } => {
                let derived = if expr.as_symbol() == Some(symbol) {
                    String::new()
                } else {
                    format!(", as {source} == {expr} == {value}")
                };
                let subject = if derived.is_empty() { source } else { symbol.to_string() };
                format!("guard failed: {}, and it is {found}{derived}", bound(&subject, *range, *found))
            }
            Violation::Undefined { error, .. } => format!("guard failed: {source} == {expr}: {error}"),
        }
    }

    fn check_derived_ranges(&self, bindings: &BTreeMap<Symbol, i64>, problems: &mut Problems) {
        for (expr, range) in &self.derived_ranges {
            // A range of a symbol that no input has is the program's own affair.
            if let Ok(value) = expr.eval(&|symbol| bindings.get(symbol).copied())
                && !range.contains(value)
            {
                let message = format!("guard failed: {}, and it is {value}", bound(&expr.to_string(), *range, value));
                problems.0.push((Code::InputShape, message));
            }
        }
    }

    fn check_guards(&self, inputs: &[Value<Tensor>], problems: &mut Problems) {
        for guard in &self.guards {
            match guard.holds(&|source| self.answer(source, inputs)) {
                Ok(true) => {}
                Ok(false) => {
                    let mut values = Vec::new();
                    guard.visit_sources(&mut |source| {
                        let value = match self.answer(source, inputs) {
                            Some(InputValue::Int(it)) => format!("{source} is {it}"),
                            Some(InputValue::Float(it)) => format!("{source} is {it}"),
                            Some(InputValue::Bool(it)) => format!("{source} is {it}"),
                            Some(InputValue::Str(it)) => format!("{source} is {it:?}"),
                            Some(InputValue::None) | None => format!("{source} is None"),
                        };
                        if !values.contains(&value) {
                            values.push(value);
                        }
                    });
                    problems.0.push((Code::InputShape, format!("guard failed: {guard}, and {}", values.join(", "))));
                }
                Err(error @ GuardError::Missing(_)) => {
                    problems.0.push((Code::InputStructure, format!("guard failed: {guard}: {error}")));
                }
                Err(error @ (GuardError::Eval(_) | GuardError::Kind(_))) => {
                    problems.0.push((Code::InputShape, format!("guard failed: {guard}: {error}")));
                }
            }
        }
    }

    /// Which input a guard looks at.
    fn position(&self, source: &InputSource) -> Option<usize> {
        let find = |is_meant: fn(&InputPath, &InputSource) -> bool| {
            self.inputs.iter().position(|it| is_meant(&it.path, source))
        };
        find(InputPath::is_source).or_else(|| find(InputPath::is_part_of_rest))
    }

    /// What the inputs have where a guard looks.
    fn answer(&self, source: &InputSource, inputs: &[Value<Tensor>]) -> Option<InputValue> {
        let at = self.position(source)?;
        let dim = |values: &[usize], dim: i64| {
            let at = if dim < 0 { dim.checked_add_unsigned(values.len() as u64)? } else { dim };
            let value = values.get(usize::try_from(at).ok()?)?;
            i64::try_from(*value).ok().map(InputValue::Int)
        };
        match (source.property, inputs.get(at)?) {
            (InputProperty::Size(at), Value::Tensor(it)) => dim(it.sizes(), at),
            (InputProperty::Stride(at), Value::Tensor(it)) => dim(it.strides(), at),
            (InputProperty::StorageOffset, Value::Tensor(it)) => i64::try_from(it.offset()).ok().map(InputValue::Int),
            (InputProperty::Value, Value::Int(it)) => it.as_int().map(InputValue::Int),
            (InputProperty::Value, Value::Float(it)) => Some(InputValue::Float(*it)),
            (InputProperty::Value, Value::Bool(it)) => Some(InputValue::Bool(*it)),
            (InputProperty::Value, Value::Str(it)) => Some(InputValue::Str(it.to_string())),
            (InputProperty::Value, Value::None) => Some(InputValue::None),
            (_, _) => None,
        }
    }
}

/// The part of a range that inputs are held to.
fn enforced(range: ValueRange) -> ValueRange {
    // Sizes of 0 and 1 are what exporting specialises to: a range from 2 only says that this was not done.
    ValueRange { min: range.min.filter(|it| *it > 2), max: range.max }
}

/// The end of the range that a value breaks, as PyTorch writes it.
fn bound(subject: &str, range: ValueRange, value: i64) -> String {
    match (range.min, range.max) {
        (Some(min), _) if value < min => format!("{subject} >= {min}"),
        (_, Some(max)) => format!("{subject} <= {max}"),
        (_, None) => format!("{subject} in {range}"),
    }
}

fn code_of(place: Place) -> Code {
    if place.dim.is_some() { Code::InputShape } else { Code::InputValue }
}

fn expected_kind(program: &ExportedProgram, arg: &Argument) -> Result<Kind> {
    let val = || -> Result<Option<&Val>> {
        let graph = &program.module.graph;
        match graph.find(arg.name()) {
            Some(node) if graph.node(node).op() == Opcode::Placeholder => Ok(graph.node(node).meta.val.as_ref()),
            Some(_) | None => {
                let what = format!("the signature names the input `{}`, which the graph does not have", arg.name());
                Err(Diagnostic::new(Code::GraphInvalid, what))
            }
        }
    };
    Ok(match arg {
        Argument::Tensor(_) => Kind::Tensor(match val()? {
            Some(Val::Tensor(meta)) => Some((meta.dtype, meta.sizes.clone())),
            Some(_) | None => None,
        }),
        Argument::SymInt(_) => Kind::Int(match val()? {
            Some(Val::Int(expr)) => Some(expr.clone()),
            Some(_) | None => None,
        }),
        Argument::SymFloat(_) => Kind::Float,
        Argument::SymBool(_) => Kind::Bool,
        Argument::Constant { value, .. } => Kind::Constant(value.clone()),
        Argument::CustomObj { name, .. } | Argument::Token(name) => {
            let what = format!("the user input `{name}` is a custom object, which is not implemented");
            return Err(Diagnostic::new(Code::NotImplemented, what).node(&**name));
        }
    })
}

impl Expected {
    /// Checks what can be said of one input alone; sizes go to `equation`.
    fn check(
        &self,
        given: &Value<Tensor>,
        problems: &mut Problems,
        equation: &mut dyn FnMut(Option<usize>, &SymInt, i64),
    ) {
        let path = &self.path;
        let mut wrong_kind = |wanted: &str| {
            let message =
                format!("the input {path} is of type {}, and the program takes {wanted} there", given.kind_name());
            problems.0.push((Code::InputType, message));
        };
        match (&self.kind, given) {
            (Kind::Tensor(meta), Value::Tensor(tensor)) => {
                let Some((dtype, sizes)) = meta else { return };
                if tensor.dtype() != *dtype {
                    let (given, wanted) = (tensor.dtype().name(), dtype.name());
                    let message =
                        format!("the input {path} is of dtype {given}, and the program was exported for {wanted}");
                    problems.0.push((Code::InputType, message));
                }
                if tensor.sizes().len() != sizes.len() {
                    let (given, wanted) = (tensor.sizes().len(), sizes.len());
                    let message = format!(
                        "the input {path} has {given} dimensions, and the program was exported for {wanted}: {sizes:?}"
                    );
                    problems.0.push((Code::InputShape, message));
                    return;
                }
                for (dim, (expr, size)) in sizes.iter().zip(tensor.sizes()).enumerate() {
                    equation(Some(dim), expr, *size as i64);
                }
            }
            (Kind::Tensor(_), _) => wrong_kind("Tensor"),
            (Kind::Int(expr), Value::Int(given)) => match (expr, given.as_int()) {
                (Some(expr), Some(value)) => equation(None, expr, value),
                (None, Some(_)) => {}
                (_, None) => wrong_kind("int"),
            },
            (Kind::Int(_), _) => wrong_kind("int"),
            (Kind::Float, Value::Float(_) | Value::Int(_)) | (Kind::Bool, Value::Bool(_)) => {}
            (Kind::Float, _) => wrong_kind("float"),
            (Kind::Bool, _) => wrong_kind("bool"),
            (Kind::Constant(wanted), given) => {
                if !constant::is_same(wanted, given) {
                    let given = constant::text_of_value(given);
                    let message = format!(
                        "guard failed: {path} == {wanted}, and it is {given}; the program was exported with this constant"
                    );
                    problems.0.push((Code::InputValue, message));
                }
            }
        }
    }
}

impl Problems {
    fn into_result(self) -> Result<()> {
        let mut problems = self.0.into_iter();
        let Some((code, message)) = problems.next() else { return Ok(()) };
        let mut diagnostic = Diagnostic::new(code, message);
        for (_, message) in problems {
            diagnostic = diagnostic.note(message);
        }
        Err(diagnostic.help(match code {
            Code::InputType => {
                "convert the input to that dtype (whole numbers are int64 by themselves), or export the program again"
            }
            Code::InputShape => "pass sizes that the program allows, or export it again with other dynamic shapes",
            _ => "pass what the program was exported with, or export it again",
        }))
    }
}
