//! Problems as SMT-LIB 2 text, for solvers such as Z3, and their answers.

use crate::{Comparison, Dim, DimPair, Formula, Int, Model, Problem, Solver, Type, TypeExpr, Verdict};
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
        }
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
        Ok(Verdict::of_smt_lib(&(self.0)(&problem.to_smt_lib())?))
    }
}

impl Verdict {
    /// What a solver printed for [`Problem::to_smt_lib`].
    ///
    /// ```
    /// use tracefx_types::Verdict;
    /// let Verdict::Sat(model) = Verdict::of_smt_lib("sat\n((define-fun s0 () Int (- 4)))") else { unreachable!() };
    /// assert_eq!(model.ints["s0"], -4);
    /// assert_eq!(Verdict::of_smt_lib("unsat\n"), Verdict::Unsat);
    /// ```
    pub fn of_smt_lib(answer: &str) -> Self {
        let (verdict, rest) = answer.trim().split_once(char::is_whitespace).unwrap_or((answer.trim(), ""));
        match verdict {
            "sat" => Verdict::Sat(model(rest)),
            "unsat" => Verdict::Unsat,
            other => Verdict::Unknown(format!("the solver says `{other}`")),
        }
    }
}

/// An expression of the language.
#[derive(Debug)]
enum Expression {
    Atom(String),
    List(Vec<Expression>),
}

/// What a model says of integers and types. What it says otherwise, with a `let` for instance, is left out.
fn model(text: &str) -> Model {
    let mut res = Model::default();
    let mut open = expressions(text);
    while let Some(it) = open.pop() {
        let Expression::List(items) = it else { continue };
        let [Expression::Atom(word), Expression::Atom(name), Expression::List(args), Expression::Atom(sort), value] =
            items.as_slice()
        else {
            open.extend(items);
            continue;
        };
        match (word.as_str(), args.is_empty(), sort.as_str()) {
            ("define-fun", true, "Int") => {
                res.ints.extend(integer(value).map(|it| (name.clone(), it)));
            }
            ("define-fun", true, "TensorType") => {
                res.types.extend(tensor_type(value).map(|it| (name.clone(), it)));
            }
            (_, _, _) => {}
        }
    }
    res
}

fn integer(value: &Expression) -> Option<i64> {
    match value {
        Expression::Atom(it) => it.parse().ok(),
        Expression::List(items) => match items.as_slice() {
            [Expression::Atom(minus), Expression::Atom(it)] if minus == "-" => format!("-{it}").parse().ok(),
            _ => None,
        },
    }
}

fn tensor_type(value: &Expression) -> Option<Type> {
    let items = match value {
        Expression::Atom(it) => return (it == "Dyn").then_some(Type::Dyn),
        Expression::List(items) => items,
    };
    let dim = |it: &Expression| {
        let Expression::List(parts) = it else { return None };
        let [_, kind, size] = parts.as_slice() else { return None };
        Some(if integer(kind)? == 0 { Dim::Dyn } else { Dim::Size(integer(size)?) })
    };
    Some(Type::Tensor(items.get(1..)?.iter().map(dim).collect::<Option<_>>()?))
}

/// Reads expressions; brackets that do not fit are passed over.
fn expressions(text: &str) -> Vec<Expression> {
    let mut levels = vec![Vec::new()];
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '(' => {
                levels.push(Vec::new());
                1
            }
            ')' => {
                if levels.len() > 1 {
                    let items = levels.pop().expect("there are several");
                    levels.last_mut().expect("there is one left").push(Expression::List(items));
                }
                1
            }
            '|' => {
                let end = rest[1..].find('|').map_or(rest.len(), |it| it + 2);
                let name = rest[..end].trim_matches('|').to_string();
                levels.last_mut().expect("there is one").push(Expression::Atom(name));
                end
            }
            _ => {
                let end = rest.find(|it: char| it.is_whitespace() || "()|".contains(it)).unwrap_or(rest.len());
                levels.last_mut().expect("there is one").push(Expression::Atom(rest[..end].to_string()));
                end
            }
        };
        rest = rest[end..].trim_start();
    }
    levels.swap_remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_read_as_z3_prints_it() {
        let text = "(\n (define-fun |t 0| () TensorType\n  (tensor2 (dim 1 2) (dim 0 9)))\n (define-fun t1 () TensorType\n Dyn)
            (define-fun s0 () Int\n (- 4)) (define-fun |Mod(s0, 2)| () Int 1) (define-fun f ((x!0 Int)) Int 3))";
        let Model { ints, types } = model(text);
        assert_eq!(ints.into_iter().collect::<Vec<_>>(), [("Mod(s0, 2)".to_string(), 1), ("s0".to_string(), -4)]);
        let types: Vec<String> = types.into_iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        assert_eq!(types, ["t 0: TensorType[(2, Dyn)]", "t1: Dyn"]);
    }

    #[test]
    fn text_that_is_no_model_says_nothing() {
        for text in ["", "))", "((((", "(define-fun |s0", "(define-fun s0 () Int (let ((a 1)) a))"] {
            assert_eq!(model(text), Model::default(), "{text}");
        }
    }
}
