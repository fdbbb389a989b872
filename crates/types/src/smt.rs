//! Problems as SMT-LIB 2 text, for solvers such as Z3, and their answers.

use crate::{Comparison, DimPair, Formula, Int, Model, Problem, Solver, TypeExpr, Verdict};
use std::fmt::Write;
use tracefx_core::Result;

const TYPES: &str = "(declare-datatypes ((Dim 0)) (((dim (kind Int) (size Int)))))
(declare-datatypes ((TensorType 0)) (((Dyn)
  (tensor1 (tensor1-0 Dim))
  (tensor2 (tensor2-0 Dim) (tensor2-1 Dim))
  (tensor3 (tensor3-0 Dim) (tensor3-1 Dim) (tensor3-2 Dim))
  (tensor4 (tensor4-0 Dim) (tensor4-1 Dim) (tensor4-2 Dim) (tensor4-3 Dim)))))
";

impl Problem {
    /// The problem as SMT-LIB 2: declarations, one assertion for each part, and the question.
    pub fn to_smt_lib(&self) -> String {
        let mut text = String::new();
        if !self.types.is_empty() {
            text.push_str(TYPES);
        }
        for (names, sort) in [(&self.ints, "Int"), (&self.types, "TensorType")] {
            names.iter().for_each(|it| declare(&mut text, it, sort));
        }
        let mut writer = Writer { problem: self, text };
        match &self.formula {
            Formula::And(items) => items.iter().for_each(|it| writer.assert(it)),
            other => writer.assert(other),
        }
        writer.text.push_str("(check-sat)\n(get-model)\n");
        writer.text
    }
}

fn declare(text: &mut String, name: &str, sort: &str) {
    writeln!(text, "(declare-const |{name}| {sort})").expect("a string takes what is written");
}

struct Writer<'a> {
    problem: &'a Problem,
    text: String,
}

impl Writer<'_> {
    fn assert(&mut self, formula: &Formula) {
        self.text.push_str("(assert ");
        self.formula(formula);
        self.text.push_str(")\n");
    }

    fn call<T>(&mut self, function: &str, items: impl IntoIterator<Item = T>, write: fn(&mut Self, T)) {
        self.text.push('(');
        self.text.push_str(function);
        for it in items {
            self.text.push(' ');
            write(self, it);
        }
        self.text.push(')');
    }

    fn formula(&mut self, formula: &Formula) {
        match formula {
            Formula::Const(it) => self.text.push_str(if *it { "true" } else { "false" }),
            // An operator takes at least one operand.
            Formula::And(items) if items.is_empty() => self.text.push_str("true"),
            Formula::Or(items) if items.is_empty() => self.text.push_str("false"),
            Formula::And(items) => self.call("and", items, Self::formula),
            Formula::Or(items) => self.call("or", items, Self::formula),
            Formula::Not(it) => self.call("not", [&**it], Self::formula),
            Formula::Compare(comparison, a, b) => {
                let name = match comparison {
                    Comparison::Eq => "=",
                    Comparison::Le => "<=",
                    Comparison::Lt => "<",
                };
                self.call(name, [a, b], Self::int);
            }
            Formula::SameType(a, b) => self.call("=", [a, b], Self::ty),
        }
    }

    fn int(&mut self, int: &Int) {
        match int {
            Int::Const(it) if *it < 0 => {
                write!(self.text, "(- {})", it.unsigned_abs()).expect("a string takes what is written");
            }
            Int::Const(it) => self.text.push_str(&it.to_string()),
            Int::Var(var) => self.name(&self.problem.ints[*var]),
            Int::Add(items) if items.is_empty() => self.text.push('0'),
            Int::Mul(items) if items.is_empty() => self.text.push('1'),
            Int::Add(items) if items.len() > 1 => self.call("+", items, Self::int),
            Int::Mul(items) if items.len() > 1 => self.call("*", items, Self::int),
            Int::Add(items) | Int::Mul(items) => self.int(&items[0]),
            // SMT-LIB's division and remainder are the same for positive divisors, which sizes are divided by.
            Int::Div(a, b) => self.call("div", [&**a, &**b], Self::int),
            Int::Mod(a, b) => self.call("mod", [&**a, &**b], Self::int),
            Int::Min(a, b) => self.choice("<=", a, b),
            Int::Max(a, b) => self.choice(">=", a, b),
        }
    }

    fn choice(&mut self, comparison: &str, a: &Int, b: &Int) {
        self.text.push_str("(ite ");
        self.call(comparison, [a, b], Self::int);
        self.text.push(' ');
        self.int(a);
        self.text.push(' ');
        self.int(b);
        self.text.push(')');
    }

    fn ty(&mut self, ty: &TypeExpr) {
        match ty {
            TypeExpr::Dyn => self.text.push_str("Dyn"),
            TypeExpr::Var(var) => self.name(&self.problem.types[*var]),
            TypeExpr::Tensor(dims) => self.call(&format!("tensor{}", dims.len()), dims, Self::dim),
        }
    }

    fn dim(&mut self, dim: &DimPair) {
        self.call("dim", [&dim.kind, &dim.size], Self::int);
    }

    fn name(&mut self, name: &str) {
        self.text.push('|');
        self.text.push_str(name);
        self.text.push('|');
    }
}

/// A solver that is given SMT-LIB 2 text and says what it printed: a process, or a library with such an entry.
///
/// ```
/// use tracefx_types::{Comparison, Formula, Int, Problem, SmtLib, Solver, Verdict};
/// let z3 = SmtLib(|text: &str| Ok("sat\n((define-fun s0 () Int 4))".to_string()));
/// let problem = Problem::of_ints(["s0"], Formula::Compare(Comparison::Lt, Int::Const(3), Int::Var(0)));
/// let Verdict::Sat(model) = z3.solve(&problem)? else { unreachable!() };
/// assert_eq!(model.ints["s0"], 4);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
pub struct SmtLib<F>(pub F);

impl<F: Fn(&str) -> Result<String>> Solver for SmtLib<F> {
    fn solve(&self, problem: &Problem) -> Result<Verdict> {
        let answer = (self.0)(&problem.to_smt_lib())?;
        let (verdict, rest) = answer.trim().split_once(char::is_whitespace).unwrap_or((answer.trim(), ""));
        Ok(match verdict {
            "sat" => Verdict::Sat(Model { ints: integers(rest), ..Model::default() }),
            "unsat" => Verdict::Unsat,
            other => Verdict::Unknown(format!("the solver says `{other}`")),
        })
    }
}

/// The integers of a model.
fn integers(model: &str) -> std::collections::BTreeMap<String, i64> {
    let spaced = model.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let value = |at: usize| match words.get(at)? {
        &"(" if words.get(at + 1) == Some(&"-") => words.get(at + 2)?.parse::<i64>().ok().map(|it| -it),
        it => it.parse().ok(),
    };
    let defined = words.windows(5).enumerate().filter(|(_, it)| it[0] == "define-fun" && it[2..5] == ["(", ")", "Int"]);
    defined.filter_map(|(at, it)| Some((it[1].trim_matches('|').to_string(), value(at + 5)?))).collect()
}
