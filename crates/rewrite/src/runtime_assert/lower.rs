//! Expressions of sizes as nodes.

use rustc_hash::FxHashMap;
use tracefx_ir::{Arg, Graph, Meta, NodeId, Val};
use tracefx_sym::{Expr, Func, IntFactor, Summand, SymBool, SymInt, call};

/// Makes nodes of expressions, each once.
#[derive(Default)]
pub(super) struct Lowering {
    /// The nodes that have the values of expressions, in their plain form.
    pub(super) nodes: FxHashMap<Expr, NodeId>,
    /// What new nodes are to say of themselves besides their values.
    pub(super) notes: Meta,
}

impl Lowering {
    /// The node of this expression's value, or the value where it is known.
    pub(super) fn get(&self, expr: &Expr) -> Option<NodeId> {
        self.nodes.get(&plain(expr)).copied()
    }

    /// Makes a node at the insert point.
    pub(super) fn emit(&self, graph: &mut Graph, target: &str, args: Vec<Arg>, val: Option<Val>) -> NodeId {
        let node = graph.call_function(target, args, vec![]);
        *graph.meta_mut(node) = Meta { val, ..self.notes.clone() };
        node
    }

    /// The value of an expression that [`is_lowered`], all of whose symbols have nodes.
    pub(super) fn lower(&mut self, graph: &mut Graph, expr: &Expr) -> Arg {
        if let Some(constant) = constant(expr) {
            return constant;
        }
        if let Some(node) = self.get(expr) {
            return node.into();
        }
        let node = match expr {
            Expr::Int(it) => self.lower_int(graph, it),
            Expr::Bool(SymBool::Call(it)) => self.lower_call(graph, it.func(), it.args(), expr),
            Expr::Bool(_) | Expr::Float(_) => unreachable!("only what can be lowered is asked for"),
        };
        self.nodes.insert(plain(expr), node);
        node.into()
    }

    fn lower_int(&mut self, graph: &mut Graph, int: &SymInt) -> NodeId {
        let mut summands = int.summands();
        match summands.as_slice() {
            [Summand { coefficient: 1, factors }] if factors.len() == 1 && factors[0].1 == 1 => match &factors[0].0 {
                IntFactor::Call(func, args) => self.lower_call(graph, *func, args, &Expr::Int(int.clone())),
                IntFactor::Symbol(it) => unreachable!("{it} has a node"),
            },
            [product] => self.lower_product(graph, product),
            _ => {
                // sympy has numbers first.
                summands.sort_by_key(|it| !it.factors.is_empty());
                let values: Vec<SymInt> = summands.iter().map(value_of_summand).collect();
                self.fold(graph, "operator.add", &values, &|a, b| a + b)
            }
        }
    }

    fn lower_product(&mut self, graph: &mut Graph, product: &Summand) -> NodeId {
        let powers = product.factors.iter().map(|(factor, power)| value_of_factor(factor).pow(*power));
        let coefficient = (product.coefficient != 1).then(|| SymInt::from(product.coefficient));
        let values: Vec<SymInt> = coefficient.into_iter().chain(powers).collect();
        if let ([value], [(factor, power)]) = (&*values, &*product.factors) {
            let base = self.lower(graph, &Expr::Int(value_of_factor(factor)));
            let args = vec![base, Arg::Int((*power).into())];
            return self.emit(graph, "operator.pow", args, Some(Val::Int(value.clone())));
        }
        self.fold(graph, "operator.mul", &values, &|a, b| a * b)
    }

    /// Puts several values together, two at a time.
    fn fold(
        &mut self,
        graph: &mut Graph,
        target: &str,
        values: &[SymInt],
        both: &dyn Fn(&SymInt, &SymInt) -> SymInt,
    ) -> NodeId {
        let mut value = values[0].clone();
        let mut res = self.lower(graph, &Expr::Int(value.clone()));
        for next in &values[1..] {
            value = both(&value, next);
            let so_far = Expr::Int(value.clone());
            if let Some(known) = self.get(&so_far) {
                res = known.into();
                continue;
            }
            let args = vec![res, self.lower(graph, &Expr::Int(next.clone()))];
            let node = self.emit(graph, target, args, Some(Val::Int(value.clone())));
            self.nodes.insert(so_far, node);
            res = node.into();
        }
        res.as_node().expect("two values or more were put together")
    }

    fn lower_call(&mut self, graph: &mut Graph, func: Func, args: &[Expr], whole: &Expr) -> NodeId {
        if let (Func::Ne, [Expr::Int(a), Expr::Int(b)]) = (func, args) {
            let equal = self.lower(graph, &Expr::Bool(SymBool::eq(a, b)));
            return self.emit(graph, "torch.sym_not", vec![equal], val_of(whole));
        }
        if let (Func::ModularIndexing, [Expr::Int(base), divisor, modulus]) = (func, args) {
            let quotient = divisor.as_int().map(|it| Expr::Int(base.floor_div(it))).expect("a divisor is an int");
            let args = vec![self.lower(graph, &quotient), self.lower(graph, modulus)];
            return self.emit(graph, "operator.mod", args, val_of(whole));
        }
        let mut lowered: Vec<Arg> = args.iter().map(|it| self.lower(graph, it)).collect();
        let (mut func, mut whole) = (func, whole.clone());
        // Python asks the right side where the left one is a plain number.
        if let (Some(other), [Arg::Int(_), Arg::Node(_)], [a, b]) = (flipped(func), &*lowered, args) {
            lowered.reverse();
            // An equation is the same both ways round, and some relations are decided one way round alone: the check is to be
            // found under what was asked for.
            let turned = call(other, vec![b.clone(), a.clone()]).ok().filter(|_| other != func);
            whole = turned.filter(|it| matches!(it, Expr::Bool(SymBool::Call(_)))).unwrap_or(whole);
            func = other;
        }
        let target = target_of(func).expect("only what can be lowered is asked for");
        let n_args = lowered.len();
        let mut rest = lowered.into_iter();
        if n_args < 3 || func == Func::Where {
            return self.emit(graph, target, rest.collect(), val_of(&whole));
        }
        // `and`, `or` and extrema take two.
        let mut exprs = args.iter();
        let (first, mut value) = (rest.next(), exprs.next().cloned());
        let mut res = first.expect("there are three");
        for (arg, expr) in rest.zip(exprs) {
            value = value.and_then(|it| call(func, vec![it, expr.clone()]).ok());
            if let Some(known) = value.as_ref().and_then(|it| self.get(it)) {
                res = known.into();
                continue;
            }
            let node = self.emit(graph, target, vec![res, arg], value.as_ref().and_then(val_of));
            self.nodes.extend(value.iter().map(|it| (plain(it), node)));
            res = node.into();
        }
        res.as_node().expect("three values were put together")
    }
}

/// Whether nodes can compute an expression.
pub(super) fn is_lowered(expr: &Expr) -> bool {
    match expr {
        Expr::Float(_) => false,
        Expr::Int(it) => {
            let factors = it.summands().into_iter().flat_map(|it| it.factors);
            it.invalid().is_none()
                && factors.map(|(factor, _)| factor).all(|factor| match factor {
                    IntFactor::Symbol(_) => true,
                    IntFactor::Call(func, args) => {
                        let is_known = target_of(func).is_some() || func == Func::ModularIndexing;
                        is_known && args.iter().all(is_lowered)
                    }
                })
        }
        Expr::Bool(SymBool::Const(_)) => true,
        Expr::Bool(SymBool::Invalid(_)) => false,
        Expr::Bool(SymBool::Call(it)) => {
            (it.func() == Func::Ne || target_of(it.func()).is_some()) && it.args().iter().all(is_lowered)
        }
    }
}

/// The same with the smaller side of a relation first, so that it is found however it was written.
pub(super) fn plain(expr: &Expr) -> Expr {
    let Expr::Bool(SymBool::Call(it)) = expr else { return expr.clone() };
    match (it.func(), it.args()) {
        (func @ (Func::Gt | Func::Ge), [a, b]) => {
            let turned = flipped(func).map(|other| call(other, vec![b.clone(), a.clone()]));
            turned.and_then(Result::ok).unwrap_or_else(|| expr.clone())
        }
        (_, _) => expr.clone(),
    }
}

/// The abstract value of a node that has this expression's value.
pub(super) fn val_of(expr: &Expr) -> Option<Val> {
    Some(match expr {
        Expr::Int(it) => Val::Int(it.clone()),
        Expr::Float(it) => Val::Float(it.clone()),
        Expr::Bool(it) => Val::Bool(it.clone()),
    })
}

fn constant(expr: &Expr) -> Option<Arg> {
    match expr {
        Expr::Int(it) => it.as_int().map(Arg::Int),
        Expr::Bool(it) => it.as_bool().map(Arg::Bool),
        Expr::Float(it) => it.as_float().map(Arg::Float),
    }
}

fn value_of_summand(summand: &Summand) -> SymInt {
    let powers = summand.factors.iter().map(|(factor, power)| value_of_factor(factor).pow(*power));
    powers.fold(SymInt::from(summand.coefficient), |product, it| product * it)
}

fn value_of_factor(factor: &IntFactor) -> SymInt {
    match factor {
        IntFactor::Symbol(it) => SymInt::from(it.clone()),
        IntFactor::Call(func, args) => match call(*func, args.clone()) {
            Ok(Expr::Int(it)) => it,
            Ok(_) | Err(_) => unreachable!("a factor of an int is an int"),
        },
    }
}

/// The relation that holds of the two sides the other way round.
fn flipped(func: Func) -> Option<Func> {
    match func {
        Func::Lt => Some(Func::Gt),
        Func::Le => Some(Func::Ge),
        Func::Gt => Some(Func::Lt),
        Func::Ge => Some(Func::Le),
        Func::Eq => Some(Func::Eq),
        _ => None,
    }
}

fn target_of(func: Func) -> Option<&'static str> {
    Some(match func {
        Func::FloorDiv | Func::CleanDiv => "operator.floordiv",
        Func::Mod | Func::PythonMod => "operator.mod",
        Func::Max => "torch.sym_max",
        Func::Min => "torch.sym_min",
        Func::Where => "torch.sym_ite",
        Func::Eq => "operator.eq",
        Func::Lt => "operator.lt",
        Func::Le => "operator.le",
        Func::Gt => "operator.gt",
        Func::Ge => "operator.ge",
        Func::And => "operator.and_",
        Func::Or => "operator.or_",
        Func::Not => "torch.sym_not",
        _ => return None,
    })
}
