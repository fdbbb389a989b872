//! [`TranslationValidator`]: whether the guards that were kept imply those that were asked for, as
//! `torch.fx.experimental.validator` has it.

use crate::{Comparison, Formula, Int, Model, Problem, Solver, Verdict};
use std::collections::BTreeMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_sym::{Expr, Func, IntFactor, ShapeEnv, SymBool, SymInt, Symbol, Value, ValueRange};

/// Checks that guards say what they should: whenever the target expressions hold, the source expressions hold, too.
///
/// ```
/// use tracefx_sym::{Parser, ShapeEnv, Symbol, ValueRange};
/// use tracefx_types::{TranslationValidator, Validation};
/// let mut parser = Parser::default();
/// let mut validator = TranslationValidator::default();
/// for name in ["s0", "s1"] {
///     validator.add_var(&Symbol::size(name), ValueRange::at_least(2));
/// }
/// validator.add_source_expr(parser.parse_bool("Mod(s0, 2) == 0")?)?;
/// validator.add_target_expr(parser.parse_bool("s0 == 2*s1")?)?;
/// assert_eq!(validator.validate()?, Validation::Valid);
/// validator.add_source_expr(parser.parse_bool("s1 < 10")?)?;
/// let refusal = validator.validate().unwrap_err();
/// assert!(refusal.to_string().contains("failed source expression: s1 < 10"));
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TranslationValidator {
    vars: BTreeMap<String, ValueRange>,
    assertions: Vec<SymBool>,
    source: Vec<SymBool>,
    target: Vec<SymBool>,
}

/// What a validation found, where it found no failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validation {
    /// The target implies the source.
    Valid,
    /// The solver does not know, for this reason.
    Unknown(String),
}

/// Sizes under which the target holds and the source does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Counterexample {
    /// The sizes by name.
    pub model: BTreeMap<String, i64>,
    /// The source expressions that do not hold.
    pub failed_source_exprs: Vec<SymBool>,
}

impl TranslationValidator {
    /// A validator of the symbols of an environment, in their ranges.
    pub fn of_env(env: &ShapeEnv) -> Self {
        let mut res = Self::default();
        env.ranges().for_each(|(symbol, _)| res.add_var(symbol, env.range(symbol)));
        res
    }

    /// Adds a symbol with its range.
    pub fn add_var(&mut self, symbol: &Symbol, range: ValueRange) {
        self.vars.insert(symbol.name().to_string(), range);
    }

    /// Adds what is asked for.
    ///
    /// # Errors
    /// `VerifyFailed` where a symbol was not added.
    pub fn add_source_expr(&mut self, expr: SymBool) -> Result<()> {
        self.check_free_symbols(&expr)?;
        self.source.push(expr);
        Ok(())
    }

    /// Adds what is checked when the program runs.
    ///
    /// # Errors
    /// `VerifyFailed` where a symbol was not added.
    pub fn add_target_expr(&mut self, expr: SymBool) -> Result<()> {
        self.check_free_symbols(&expr)?;
        self.target.push(expr);
        Ok(())
    }

    /// Adds what holds anyway.
    ///
    /// # Errors
    /// `VerifyFailed` where a symbol was not added.
    pub fn add_assertion(&mut self, expr: SymBool) -> Result<()> {
        self.check_free_symbols(&expr)?;
        self.assertions.push(expr);
        Ok(())
    }

    fn check_free_symbols(&self, expr: &SymBool) -> Result<()> {
        let unknown = |it: &Symbol| !self.vars.contains_key(it.name());
        match Expr::Bool(expr.clone()).symbols().into_iter().find(unknown) {
            Some(it) => Err(Diagnostic::new(Code::VerifyFailed, format!("the symbol {it} of {expr} was not added"))
                .help("add it with its range before an expression has it")),
            None => Ok(()),
        }
    }

    /// The question whether the target can hold where the source does not. It cannot be solved if the guards are valid.
    pub fn problem(&self) -> Problem {
        let mut translation = Translation::default();
        let mut all = Vec::new();
        for (name, range) in &self.vars {
            let var = translation.var(name.clone());
            let bound = |a, b| Formula::Compare(Comparison::Le, a, b);
            all.extend(range.min.map(|it| bound(Int::Const(it), var.clone())));
            all.extend(range.max.map(|it| bound(var, Int::Const(it))));
        }
        all.extend(self.assertions.iter().chain(&self.target).map(|it| translation.bool(it)));
        let source = self.source.iter().map(|it| translation.bool(it)).collect();
        all.push(Formula::Not(Box::new(Formula::And(source))));
        all.append(&mut translation.definitions);
        Problem::of_ints(translation.names, Formula::And(all))
    }

    /// Checks the guards.
    ///
    /// # Errors
    /// `VerifyFailed` with sizes under which they fail, and the source expressions that do not hold for them.
    pub fn validate(&self) -> Result<Validation> {
        self.answered(self.problem().solve())
    }

    /// Checks the guards, and asks the other solver where the own one does not know.
    ///
    /// # Errors
    /// As [`TranslationValidator::validate`], and what the other solver refuses.
    pub fn validate_with(&self, other: &dyn Solver) -> Result<Validation> {
        self.answered(self.problem().solve_with(other)?)
    }

    fn answered(&self, verdict: Verdict) -> Result<Validation> {
        if self.source.is_empty() || self.target.is_empty() {
            return Ok(Validation::Valid);
        }
        match verdict {
            Verdict::Unsat => Ok(Validation::Valid),
            Verdict::Unknown(reason) => Ok(Validation::Unknown(reason)),
            Verdict::Sat(model) => match self.counterexample(model) {
                Some(it) => Err(self.failure(&it)),
                // The solver was told less than the expressions say.
                None => Ok(Validation::Unknown("the sizes that were found are none that the guards tell apart".into())),
            },
        }
    }

    /// The model as a counterexample, if it is one.
    fn counterexample(&self, model: Model) -> Option<Counterexample> {
        let model: BTreeMap<String, i64> =
            model.ints.into_iter().filter(|(name, _)| self.vars.contains_key(name)).collect();
        let holds = |it: &SymBool| it.eval(&|symbol| model.get(symbol.name()).map(|it| Value::Int(*it))).ok();
        let holds_before = self.assertions.iter().chain(&self.target).all(|it| holds(it) == Some(true));
        let failed: Vec<SymBool> = self.source.iter().filter(|it| holds(it) == Some(false)).cloned().collect();
        (holds_before && !failed.is_empty()).then_some(Counterexample { model, failed_source_exprs: failed })
    }

    fn failure(&self, it: &Counterexample) -> Diagnostic {
        let mut res = Diagnostic::new(Code::VerifyFailed, "translation validation failed");
        for (name, value) in &it.model {
            res = res.note(format!("model: {name} = {value}"));
        }
        for expr in &self.target {
            res = res.note(format!("target expression: {expr}"));
        }
        for expr in &it.failed_source_exprs {
            res = res.note(format!("failed source expression: {expr}"));
        }
        res.help("for these sizes the checks that were kept pass, and what they stand for does not hold")
    }
}

/// One of the guards, each a source and its target in the order in which they were added, up to which they fail to validate,
/// while those before it do not; with the failure. Nothing where all of them validate, or nobody knows. It is found by
/// bisection, and need not be the first where the guards fail, validate and fail again.
///
/// ```
/// use tracefx_sym::{Parser, ShapeEnv, Symbol, ValueRange};
/// use tracefx_types::{TranslationValidator, bisect};
/// let mut env = ShapeEnv::new();
/// env.constrain(&Symbol::size("s0"), ValueRange::at_least(1)).unwrap();
/// let mut parser = Parser::default();
/// let mut guard = |it| parser.parse_bool(it);
/// let guards = [(guard("s0 > 1")?, guard("s0 >= 2")?), (guard("s0 < 9")?, guard("s0 <= 9")?)];
/// let (at, failure) = bisect(&TranslationValidator::of_env(&env), &guards)?.unwrap();
/// assert_eq!((at, failure.notes()[0].as_str()), (1, "model: s0 = 9"));
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `VerifyFailed` where a symbol was not added.
pub fn bisect(validator: &TranslationValidator, guards: &[(SymBool, SymBool)]) -> Result<Option<(usize, Diagnostic)>> {
    let failure_of = |n: usize| {
        let mut validator = validator.clone();
        for (source, target) in &guards[..n] {
            validator.add_source_expr(source.clone())?;
            validator.add_target_expr(target.clone())?;
        }
        Ok::<_, Diagnostic>(validator.validate().err())
    };
    let Some(mut failure) = failure_of(guards.len())? else { return Ok(None) };
    // The first `passing` guards validate, the first `failing` do not.
    let (mut passing, mut failing) = (0, guards.len());
    while passing + 1 < failing {
        let middle = passing.midpoint(failing);
        match failure_of(middle)? {
            Some(it) => (failing, failure) = (middle, it),
            None => passing = middle,
        }
    }
    Ok(Some((failing - 1, failure)))
}

/// Expressions as formulas. What has no counterpart is a variable of its own, so that less is known.
#[derive(Default)]
struct Translation {
    names: Vec<String>,
    /// What holds of the variables that stand for extrema.
    definitions: Vec<Formula>,
}

impl Translation {
    fn var(&mut self, name: String) -> Int {
        let at = self.names.iter().position(|it| *it == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        Int::Var(at)
    }

    fn opaque(&mut self, text: &dyn std::fmt::Display) -> Int {
        self.var(format!("({text})"))
    }

    /// The larger or smaller one of two, as a variable that is one of them: the search tries which of them it is, where the
    /// bounds of an extremum of unbounded sizes would say nothing.
    fn extremum(&mut self, name: &str, a: Int, b: Int) -> Int {
        let n_names = self.names.len();
        let var = self.opaque(&format!("{name}({a:?}, {b:?})"));
        if self.names.len() > n_names {
            let (low, high) = if name == "Max" { (&b, &a) } else { (&a, &b) };
            let le = |a: &Int, b: &Int| Formula::Compare(Comparison::Le, a.clone(), b.clone());
            let eq = |a: &Int| Formula::Compare(Comparison::Eq, var.clone(), a.clone());
            let first = Formula::And(vec![le(low, high), eq(&a)]);
            self.definitions.push(Formula::Or(vec![first, Formula::And(vec![le(high, low), eq(&b)])]));
        }
        var
    }

    fn bool(&mut self, expr: &SymBool) -> Formula {
        let SymBool::Call(call) = expr else {
            return match expr.as_bool() {
                Some(it) => Formula::Const(it),
                None => self.opaque_bool(expr),
            };
        };
        match (call.func(), call.args()) {
            (Func::And, args) => Formula::And(args.iter().map(|it| self.condition(it)).collect()),
            (Func::Or, args) => Formula::Or(args.iter().map(|it| self.condition(it)).collect()),
            (Func::Not, [it]) => Formula::Not(Box::new(self.condition(it))),
            (func, [Expr::Int(a), Expr::Int(b)]) => {
                let (a, b) = (self.int(a), self.int(b));
                match func {
                    Func::Eq => Formula::Compare(Comparison::Eq, a, b),
                    Func::Ne => Formula::Not(Box::new(Formula::Compare(Comparison::Eq, a, b))),
                    Func::Lt => Formula::Compare(Comparison::Lt, a, b),
                    Func::Le => Formula::Compare(Comparison::Le, a, b),
                    Func::Gt => Formula::Compare(Comparison::Lt, b, a),
                    Func::Ge => Formula::Compare(Comparison::Le, b, a),
                    _ => self.opaque_bool(expr),
                }
            }
            _ => self.opaque_bool(expr),
        }
    }

    fn condition(&mut self, expr: &Expr) -> Formula {
        match expr {
            Expr::Bool(it) => self.bool(it),
            Expr::Int(_) | Expr::Float(_) => {
                let var = self.opaque(expr);
                Formula::Compare(Comparison::Eq, var, Int::Const(1))
            }
        }
    }

    fn opaque_bool(&mut self, expr: &SymBool) -> Formula {
        let var = self.opaque(expr);
        Formula::Compare(Comparison::Eq, var, Int::Const(1))
    }

    fn int(&mut self, int: &SymInt) -> Int {
        if int.invalid().is_some() {
            return self.opaque(int);
        }
        let summands = int.summands();
        let terms = summands.into_iter().map(|it| {
            let mut factors = vec![Int::Const(it.coefficient)];
            for (factor, power) in it.factors {
                let factor = self.factor(factor);
                factors.extend(std::iter::repeat_n(factor, power as usize));
            }
            Int::Mul(factors)
        });
        Int::Add(terms.collect())
    }

    fn factor(&mut self, factor: IntFactor) -> Int {
        let (func, args) = match factor {
            IntFactor::Symbol(it) => return self.var(it.name().to_string()),
            IntFactor::Call(func, args) => (func, args),
        };
        let mut ints = Vec::with_capacity(args.len());
        for arg in &args {
            let Expr::Int(it) = arg else { return self.opaque(&format!("{func:?}{args:?}")) };
            ints.push(self.int(it));
        }
        let mut ints = ints.into_iter().map(Box::new);
        let mut two = |of: fn(Box<Int>, Box<Int>) -> Int| Some(of(ints.next()?, ints.next()?));
        let res = match func {
            Func::FloorDiv | Func::CleanDiv => two(Int::Div),
            Func::Mod | Func::PythonMod => two(Int::Mod),
            Func::Identity => ints.next().map(|it| *it),
            Func::ModularIndexing => two(Int::Div).and_then(|it| ints.next().map(|by| Int::Mod(Box::new(it), by))),
            Func::Max => ints.map(|it| *it).reduce(|a, b| self.extremum("Max", a, b)),
            Func::Min => ints.map(|it| *it).reduce(|a, b| self.extremum("Min", a, b)),
            _ => None,
        };
        res.unwrap_or_else(|| self.opaque(&format!("{func:?}{args:?}")))
    }
}
