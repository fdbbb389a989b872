//! Conditions as PyTorch writes guards: Python, with the sources of sizes in the place of symbols.

use std::collections::BTreeMap;
use tracefx_sym::{Expr, Func, IntFactor, Summand, SymBool, SymInt, Symbol};

/// How tightly sympy says that the parts bind. A part in another is in parentheses unless it binds more tightly.
mod level {
    pub(super) const OR: u32 = 20;
    pub(super) const AND: u32 = 30;
    pub(super) const RELATION: u32 = 35;
    pub(super) const ADD: u32 = 40;
    pub(super) const MUL: u32 = 50;
    pub(super) const POW: u32 = 60;
    pub(super) const CALL: u32 = 70;
    pub(super) const ATOM: u32 = 1000;
}

/// Where symbols come from.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources(pub(super) BTreeMap<Symbol, String>);

type Text = (String, u32);

fn within((text, level): Text, outer: u32) -> String {
    if level <= outer { format!("({text})") } else { text }
}

fn joined(parts: impl IntoIterator<Item = Text>, separator: &str, level: u32) -> Text {
    let parts: Vec<String> = parts.into_iter().map(|it| within(it, level)).collect();
    (parts.join(separator), level)
}

impl Sources {
    /// The condition as Python code.
    pub(super) fn condition(&self, condition: &SymBool) -> String {
        self.bool(condition).0
    }

    /// `low <= source and source <= high`.
    pub(super) fn range(&self, symbol: &Symbol, min: Option<i64>, max: Option<i64>) -> String {
        let source = self.symbol(symbol);
        let end = |it: Option<i64>, other: &str| it.map_or(other.to_string(), |it| it.to_string());
        format!("{} <= {source} and {source} <= {}", end(min, "-IntInfinity()"), end(max, "IntInfinity()"))
    }

    fn symbol(&self, symbol: &Symbol) -> String {
        self.0.get(symbol).cloned().unwrap_or_else(|| symbol.to_string())
    }

    fn expr(&self, expr: &Expr) -> Text {
        match expr {
            Expr::Int(it) => self.int(it),
            Expr::Bool(it) => self.bool(it),
            Expr::Float(it) => (it.to_string(), level::ATOM),
        }
    }

    fn bool(&self, condition: &SymBool) -> Text {
        let SymBool::Call(call) = condition else { return (condition.to_string(), level::ATOM) };
        let args = || call.args().iter().map(|it| self.expr(it));
        let relation = |sign: &str, level: u32| {
            let parts: Vec<String> = args().map(|it| within(it, level)).collect();
            (parts.join(&format!(" {sign} ")), level)
        };
        match call.func() {
            // sympy has it that equalities bind as products do.
            Func::Eq => relation("==", level::MUL),
            Func::Ne => relation("!=", level::MUL),
            Func::Lt => relation("<", level::RELATION),
            Func::Le => relation("<=", level::RELATION),
            Func::Gt => relation(">", level::RELATION),
            Func::Ge => relation(">=", level::RELATION),
            Func::And => joined(args(), " and ", level::AND),
            Func::Or => joined(args(), " or ", level::OR),
            Func::Not => (format!("not ({})", args().map(|it| it.0).collect::<String>()), level::ATOM),
            _ => (condition.to_string(), level::ATOM),
        }
    }

    fn int(&self, int: &SymInt) -> Text {
        if let Some(it) = int.as_int() {
            return (it.to_string(), if it < 0 { level::ADD } else { level::ATOM });
        }
        let mut summands = int.summands();
        summands.sort_by_cached_key(order);
        match summands.as_slice() {
            [one] => self.summand(one),
            _ => joined(summands.iter().map(|it| self.summand(it)), " + ", level::ADD),
        }
    }

    fn summand(&self, summand: &Summand) -> Text {
        if summand.factors.is_empty() {
            return self.int(&SymInt::from(summand.coefficient));
        }
        let mut factors = summand.factors.clone();
        factors.sort_by_cached_key(|(it, power)| (rank(it, *power), name(it)));
        let mut parts: Vec<Text> = factors.iter().map(|(it, power)| self.power(it, *power)).collect();
        if summand.coefficient != 1 {
            parts.insert(0, self.int(&SymInt::from(summand.coefficient)));
        }
        let level = if summand.coefficient < 0 { level::ADD } else { level::MUL };
        if parts.len() == 1 { parts.swap_remove(0) } else { joined(parts, "*", level) }
    }

    fn power(&self, factor: &IntFactor, power: u32) -> Text {
        let base = match factor {
            IntFactor::Symbol(it) => (self.symbol(it), level::ATOM),
            IntFactor::Call(func, args) => self.call(*func, args),
        };
        if power == 1 {
            return base;
        }
        let (text, _) = joined((0..power).map(|_| base.clone()), "*", level::MUL);
        (text, level::POW)
    }

    fn call(&self, func: Func, args: &[Expr]) -> Text {
        let infix = |sign: &str| {
            let parts: Vec<String> = args.iter().map(|it| within(self.expr(it), level::ATOM - 1)).collect();
            (parts.join(sign), level::RELATION)
        };
        let function = |name: &str| {
            let parts: Vec<String> = args.iter().map(|it| self.expr(it).0).collect();
            (format!("{name}({})", parts.join(", ")), level::CALL)
        };
        match func {
            Func::FloorDiv | Func::CleanDiv => infix(" // "),
            Func::Mod | Func::PythonMod => infix(" % "),
            Func::Max => function("max"),
            Func::Min => function("min"),
            other => function(other.name()),
        }
    }
}

/// sympy's order of the parts of a sum: numbers, symbols, powers, products, functions.
fn order(summand: &Summand) -> (u8, Vec<String>) {
    let names = || summand.factors.iter().map(|(it, _)| name(it)).collect();
    match (summand.factors.as_slice(), summand.coefficient) {
        ([], _) => (0, Vec::new()),
        ([(factor, power)], 1) => (rank(factor, *power), names()),
        (_, _) => (3, names()),
    }
}

fn rank(factor: &IntFactor, power: u32) -> u8 {
    match factor {
        _ if power > 1 => 2,
        IntFactor::Symbol(_) => 1,
        IntFactor::Call(..) => 4,
    }
}

fn name(factor: &IntFactor) -> String {
    match factor {
        IntFactor::Symbol(it) => it.to_string(),
        IntFactor::Call(func, args) => format!("{}{args:?}", func.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_sym::Parser;

    #[track_caller]
    fn check(condition: &str, expected: &str) {
        let mut parser = Parser::default();
        let sources = Sources([(Symbol::size("s0"), "x".to_string()), (Symbol::size("s1"), "y".to_string())].into());
        let condition = parser.parse_bool(condition).unwrap();
        assert_eq!(sources.condition(&condition), expected);
    }

    #[test]
    fn conditions_are_written_as_pytorch_writes_them() {
        check("Eq(Mod(3*s0, 16), 0)", "((3*x) % 16) == 0");
        check("s1 + s0 <= 20", "x + y <= 20");
        check("s1 - 1 >= 2", "(-1) + y >= 2");
        check("Eq(s0, s1 - 1)", "x == ((-1) + y)");
        check("Eq(2*s0, s1)", "(2*x) == y");
        check("Ne(s0*s1, 12)", "(x*y) != 12");
        check("Ne(s0//4, 1)", "(x // 4) != 1");
    }
}
