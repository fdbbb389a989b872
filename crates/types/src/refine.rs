//! [`infer_symbolic_types`]: unknown dimensions as variables, those that must be equal as one.

use crate::check::{Types, argument, place};
use crate::unify::shorten;
use crate::{Dim, ModuleSpec, Modules, Substitution, Term, Type, broadcast_types, reify, unify_with};
use std::fmt;
use tracefx_core::Result;
use tracefx_ir::{Arg, GraphModule, Node, Opcode};
use tracefx_sym::{SymInt, Symbol};

/// Two dimensions that are the same size: `torch.fx.experimental.refinement_types.Equality`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equality {
    /// One dimension.
    pub lhs: Dim,
    /// The other.
    pub rhs: Dim,
}

impl fmt::Display for Equality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.lhs, self.rhs)
    }
}

/// Names each unknown dimension of the annotations, and says which of them are equal: `Refine`.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_types::{Modules, Refine, annotate};
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// annotate(&mut graph, x, &"TensorType[(Dyn, 2, 3)]".parse()?)?;
/// let y = graph.call_function("torch.flatten", vec![x.into(), Arg::Int(1)], vec![]);
/// annotate(&mut graph, y, &"TensorType[(Dyn, 6)]".parse()?)?;
/// graph.output(y.into());
/// let (gm, modules) = (GraphModule::new(graph), Modules::new());
/// let mut refine = Refine::new(&gm, &modules)?;
/// refine.refine();
/// assert_eq!(refine.constraints()[0].to_string(), "~0 = ~1");
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
#[derive(Debug)]
pub struct Refine<'a> {
    gm: &'a GraphModule,
    modules: &'a Modules,
    types: Types,
    constraints: Vec<Equality>,
    n_vars: u32,
}

impl<'a> Refine<'a> {
    /// Starts from the annotations of a graph that was checked.
    ///
    /// # Errors
    /// `TypeInconsistent` where an annotation is malformed.
    pub fn new(gm: &'a GraphModule, modules: &'a Modules) -> Result<Self> {
        Ok(Self::of_types(gm, modules, Types::of_annotations(&gm.graph)?))
    }

    fn of_types(gm: &'a GraphModule, modules: &'a Modules, types: Types) -> Self {
        Refine { gm, modules, types, constraints: Vec::new(), n_vars: 0 }
    }

    /// Names the unknown dimensions, and finds the equalities.
    pub fn refine(&mut self) {
        // The variables of an earlier pass keep their names.
        let known = self.gm.graph.nodes().filter_map(|id| largest_var(self.types.get(id))).max();
        self.n_vars = known.map_or(0, |it| it + 1);
        for id in self.gm.graph.nodes() {
            let node = self.gm.graph.node(id);
            if node.op() == Opcode::Output {
                let ty = node.args().first().map_or(Type::Dyn, |it| self.types.of_arg(it));
                self.types.set(id, ty);
                continue;
            }
            let ty = self.name_unknown(self.types.get(id).clone());
            self.types.set(id, ty);
            if matches!(node.op(), Opcode::CallFunction | Opcode::CallModule)
                && let Some(Arg::Node(input)) = argument(node, 0, "input")
            {
                let (input, output) = (self.types.get(*input), self.types.get(id));
                let found = self.equalities(node, input, output);
                self.constraints.extend(found);
            }
        }
    }

    /// The equalities that were found.
    pub fn constraints(&self) -> &[Equality] {
        &self.constraints
    }

    fn name_unknown(&mut self, ty: Type) -> Type {
        let mut fresh = || {
            self.n_vars += 1;
            self.n_vars - 1
        };
        match ty {
            Type::Dyn => Type::Var(fresh()),
            Type::Tensor(dims) => {
                let name = |it: Dim| if it == Dim::Dyn { Dim::Var(fresh()) } else { it };
                Type::Tensor(dims.into_iter().map(name).collect())
            }
            Type::Seq(items) => Type::Seq(items.into_iter().map(|it| self.name_unknown(it)).collect()),
            Type::Int | Type::Var(_) | Type::Other(_) => ty,
        }
    }

    fn equalities(&self, node: &Node, input: &Type, output: &Type) -> Vec<Equality> {
        let (Some(x), Some(y)) = (input.dims(), output.dims()) else { return Vec::new() };
        let first = |n: usize| pairs(x.iter().zip(y).take(n));
        match (node.op(), self.modules.get(&**node.target())) {
            (Opcode::CallModule, Some(module)) => match module {
                ModuleSpec::Conv2d { .. } | ModuleSpec::Linear { .. } => first(1),
                ModuleSpec::BatchNorm2d { .. } | ModuleSpec::ReLU {} => first(x.len()),
                ModuleSpec::MaxPool2d { .. } | ModuleSpec::AdaptiveAvgPool2d { .. } => {
                    // All but height and width, of images with a batch and without.
                    first(x.len().saturating_sub(2))
                }
                ModuleSpec::LayerNorm { .. } | ModuleSpec::Embedding { .. } | ModuleSpec::Dropout {} => Vec::new(),
            },
            (Opcode::CallFunction, _) => match &**node.target() {
                "torch.add" | "operator.add" => self.sum_equalities(node, y),
                "torch.flatten" => flatten_equalities(node, x, y),
                _ => Vec::new(),
            },
            (Opcode::CallModule | Opcode::CallMethod | Opcode::Placeholder | Opcode::GetAttr | Opcode::Output, _) => {
                Vec::new()
            }
        }
    }

    /// Dimensions in which both operands are the same variable are not broadcast. It takes an earlier pass to know that.
    fn sum_equalities(&self, node: &Node, output: &[Dim]) -> Vec<Equality> {
        let operand = |at, name| argument(node, at, name).and_then(Arg::as_node);
        let (Some(a), Some(b)) = (operand(0, "input"), operand(1, "other")) else { return Vec::new() };
        let Ok((Type::Tensor(a), Type::Tensor(b))) = broadcast_types(self.types.get(a), self.types.get(b)) else {
            return Vec::new();
        };
        let same = a.iter().zip(&b).zip(output).filter(|((a, b), _)| a == b);
        pairs(same.map(|((a, _), out)| (a, out)))
    }

    /// Replaces variables by what they are equal to. Equalities that contradict each other are left alone.
    fn substitute(&mut self) {
        let mut substitution = Substitution::default();
        for it in &self.constraints {
            unify_with(&term(&it.lhs), &term(&it.rhs), &mut substitution);
        }
        shorten(&mut substitution);
        for id in self.gm.graph.nodes() {
            let ty = solve(self.types.get(id), &substitution);
            self.types.set(id, ty);
        }
    }

    /// Sizes that windows give, in terms of the sizes that go in.
    fn symbolic_relations(&mut self) {
        for id in self.gm.graph.nodes() {
            let node = self.gm.graph.node(id);
            let ty = match (node.op(), node.args().first()) {
                (Opcode::Output, Some(arg)) => self.types.of_arg(arg),
                (
                    Opcode::Placeholder
                    | Opcode::GetAttr
                    | Opcode::CallFunction
                    | Opcode::CallMethod
                    | Opcode::CallModule
                    | Opcode::Output,
                    _,
                ) => symbols(self.types.get(id)),
            };
            self.types.set(id, ty);
            if let (Opcode::CallModule, Some(Arg::Node(input))) = (node.op(), node.args().first())
                && let Some(ModuleSpec::Conv2d { window, .. }) = self.modules.get(&**node.target())
                && let (Some([_, _, height, width]), Some([n, c, _, _])) =
                    (self.types.get(*input).dims(), self.types.get(id).dims())
            {
                let output = [n.clone(), c.clone(), window.out(height, 0), window.out(width, 1)];
                self.types.set(id, Type::tensor(output));
            }
        }
    }
}

/// Names the unknown dimensions of a graph that was checked, finds those that are equal, and writes the sizes that
/// convolutions give in terms of the sizes that go in: `torch.fx.experimental.unify_refinements.infer_symbolic_types`.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_types::{GraphTypeChecker, Modules, annotate, infer_symbolic_types};
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// annotate(&mut graph, x, &"TensorType[(Dyn, 2, 3)]".parse()?)?;
/// let y = graph.call_function("torch.flatten", vec![x.into(), Arg::Int(1)], vec![]);
/// graph.output(y.into());
/// let mut gm = GraphModule::new(graph);
/// GraphTypeChecker::new(&Modules::new()).type_check(&mut gm)?;
/// infer_symbolic_types(&mut gm, &Modules::new())?;
/// // What the batch is nobody knows, but it is the same before and after.
/// let ty = |node| gm.graph.node(node).ty().unwrap().to_string();
/// assert_eq!(ty(x).split(',').next(), ty(y).split(',').next());
/// assert!(ty(y).ends_with(", 6)]"));
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `TypeInconsistent` where an annotation is malformed.
pub fn infer_symbolic_types(gm: &mut GraphModule, modules: &Modules) -> Result<()> {
    let mut types = Types::of_annotations(&gm.graph)?;
    // The second pass finds what the first one made equal under a broadcast.
    for pass in 0..2 {
        let mut refine = Refine::of_types(gm, modules, types);
        refine.refine();
        refine.substitute();
        if pass == 1 {
            refine.symbolic_relations();
        }
        types = refine.types;
    }
    types.annotate(&mut gm.graph);
    Ok(())
}

/// The first pass of [`infer_symbolic_types`].
///
/// # Errors
/// `TypeInconsistent` where an annotation is malformed.
pub fn infer_symbolic_types_single_pass(gm: &mut GraphModule, modules: &Modules) -> Result<()> {
    let mut refine = Refine::new(gm, modules)?;
    refine.refine();
    refine.substitute();
    let types = refine.types;
    types.annotate(&mut gm.graph);
    Ok(())
}

fn flatten_equalities(node: &Node, x: &[Dim], y: &[Dim]) -> Vec<Equality> {
    let int = |at, name, default| if let Some(Arg::Int(it)) = argument(node, at, name) { *it } else { default };
    let from = place(int(1, "start_dim", 0), x.len());
    let to = place(int(2, "end_dim", -1), x.len());
    match (from, to) {
        (Some(from), Some(to)) if from <= to && y.len() + to == x.len() + from => {
            let before = x[..from].iter().zip(&y[..from]);
            pairs(before.chain(x[to + 1..].iter().zip(&y[from + 1..])))
        }
        (Some(_) | None, _) => Vec::new(),
    }
}

fn pairs<'d>(dims: impl Iterator<Item = (&'d Dim, &'d Dim)>) -> Vec<Equality> {
    dims.map(|(lhs, rhs)| Equality { lhs: lhs.clone(), rhs: rhs.clone() }).collect()
}

fn largest_var(ty: &Type) -> Option<u32> {
    match ty {
        Type::Var(it) => Some(*it),
        Type::Tensor(dims) => dims.iter().filter_map(|it| if let Dim::Var(it) = it { Some(*it) } else { None }).max(),
        Type::Seq(items) => items.iter().filter_map(largest_var).max(),
        Type::Dyn | Type::Int | Type::Other(_) => None,
    }
}

fn term(dim: &Dim) -> Term<Dim> {
    if let Dim::Var(it) = dim { Term::Var(*it) } else { Term::Atom(dim.clone()) }
}

fn solve(ty: &Type, substitution: &Substitution<Dim>) -> Type {
    match ty {
        Type::Tensor(dims) => {
            let solve = |it: &Dim| match reify(&term(it), substitution) {
                Term::Var(var) => Dim::Var(var),
                Term::Atom(dim) => dim,
                Term::Seq(_) => it.clone(),
            };
            Type::Tensor(dims.iter().map(solve).collect())
        }
        Type::Seq(items) => Type::Seq(items.iter().map(|it| solve(it, substitution)).collect()),
        Type::Dyn | Type::Int | Type::Var(_) | Type::Other(_) => ty.clone(),
    }
}

fn symbols(ty: &Type) -> Type {
    let symbol = |it: &Dim| match it {
        Dim::Var(var) => Dim::Expr(SymInt::from(Symbol::integer(format!("~{var}")))),
        Dim::Dyn | Dim::Size(_) | Dim::Expr(_) => it.clone(),
    };
    match ty {
        Type::Tensor(dims) => Type::Tensor(dims.iter().map(symbol).collect()),
        Type::Seq(items) => Type::Seq(items.iter().map(symbols).collect()),
        Type::Dyn | Type::Int | Type::Var(_) | Type::Other(_) => ty.clone(),
    }
}
