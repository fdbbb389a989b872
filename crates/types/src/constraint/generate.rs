//! Constraints of a graph: one rule for each kind of node.

use super::{Constraint, Counter, DimTerm, MAX_TENSOR_RANK, Relation, TypeTerm, lower, transform};
use crate::check::Types;
use crate::{Dim, Formula, ModuleSpec, Modules, Problem, Type};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, GraphModule, Node, NodeId, Opcode};
use tracefx_sym::SymInt;

/// The variable of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// Of its type.
    Type(u32),
    /// Of its value, which is a size.
    Dim(u32),
}

/// Generates the constraints of a graph whose inputs are annotated: `ConstraintGenerator`.
///
/// ```
/// use tracefx_ir::{Graph, GraphModule};
/// use tracefx_types::{ConstraintGenerator, Modules, Verdict, annotate};
/// let mut graph = Graph::new();
/// let [x, y] = ["x", "y"].map(|it| graph.placeholder(it));
/// annotate(&mut graph, x, &"TensorType[(2, 3)]".parse()?)?;
/// annotate(&mut graph, y, &"TensorType[(2, 4)]".parse()?)?;
/// let sum = graph.call_function("torch.add", vec![x.into(), y.into()], vec![]);
/// graph.output(sum.into());
/// let gm = GraphModule::new(graph);
/// let constraints = ConstraintGenerator::new(&gm, &Modules::new()).generate()?.transformed()?;
/// assert_eq!(constraints.problem()?.solve(), Verdict::Unsat);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ConstraintGenerator<'a> {
    gm: &'a GraphModule,
    modules: &'a Modules,
}

/// Constraints, and the variables of the nodes that they are about.
#[derive(Clone, Debug)]
pub struct Constraints {
    /// All of them, as one conjunction.
    pub constraint: Constraint,
    symbols: Vec<Option<Symbol>>,
    counter: Counter,
}

impl Constraints {
    /// The variable of a node, if it has one.
    pub fn symbol(&self, node: NodeId) -> Option<Symbol> {
        self.symbols.get(node.index()).copied().flatten()
    }

    /// How many variables there are.
    pub fn n_vars(&self) -> u32 {
        self.counter.0
    }

    /// The constraints as equalities of types and relations of sizes: `iterate_till_fixed_point`.
    ///
    /// # Errors
    /// `LimitExceeded` where they are too many.
    pub fn transformed(mut self) -> Result<Self> {
        self.constraint = transform::until_fixed_point(self.constraint, &mut self.counter)?;
        Ok(self)
    }

    /// Adds that the type of a node is this one.
    ///
    /// # Errors
    /// `TypeInconsistent` where the node has no variable of a type, or the type is of more dimensions than are known.
    pub fn require(&mut self, node: NodeId, ty: &Type) -> Result<()> {
        let (Some(Symbol::Type(var)), Some(term)) = (self.symbol(node), term_of(ty)) else {
            return Err(Diagnostic::new(Code::TypeInconsistent, format!("the value cannot have the type {ty}")));
        };
        let constraint = std::mem::replace(&mut self.constraint, Constraint::True);
        self.constraint = Constraint::Conj(vec![constraint, Constraint::types(var, term)]);
        Ok(())
    }

    /// The constraints as a problem for a solver: `transform_to_z3`. They must be transformed.
    ///
    /// # Errors
    /// `NotImplemented` for what solvers are not told, `LimitExceeded` where it is too much.
    pub fn problem(&self) -> Result<Problem> {
        let mut lowering = lower::Lowering::default();
        let formula = lowering.formula(&self.constraint)?;
        Ok(lowering.problem(formula))
    }
}

/// A problem for solvers made of a whole graph: `transform_all_constraints`.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_types::{Modules, Verdict, annotate, transform_all_constraints};
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// annotate(&mut graph, x, &"TensorType[(2, 3)]".parse()?)?;
/// let y = graph.call_function("torch.reshape", vec![x.into(), Arg::List(vec![Arg::Int(6)])], vec![]);
/// graph.output(y.into());
/// let problem = transform_all_constraints(&GraphModule::new(graph), &Modules::new())?;
/// assert!(matches!(problem.solve(), Verdict::Sat(_)));
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `NotImplemented` where a node has no rule, `TypeInconsistent` where an annotation is malformed.
pub fn transform_all_constraints(gm: &GraphModule, modules: &Modules) -> Result<Problem> {
    ConstraintGenerator::new(gm, modules).generate()?.transformed()?.problem()
}

/// Whether a condition on sizes can hold, and whether it can fail, under the constraints of the nodes before it.
/// The problems are given to a solver of one's choice; the condition is the last node of the graph but for its output.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule, Opcode};
/// use tracefx_types::{Modules, Verdict, annotate, evaluate_conditional_with_constraints};
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// annotate(&mut graph, x, &"TensorType[(4, Dyn)]".parse()?)?;
/// let rows = graph.create_node(Opcode::CallMethod, "size", vec![x.into(), Arg::Int(0)], vec![], None)?;
/// let is_large = graph.call_function("operator.gt", vec![rows.into(), Arg::Int(2)], vec![]);
/// graph.output(is_large.into());
/// let gm = GraphModule::new(graph);
/// let [holds, fails] = evaluate_conditional_with_constraints(&gm, &Modules::new(), is_large)?;
/// assert!(matches!(holds.solve(), Verdict::Sat(_)));
/// assert_eq!(fails.solve(), Verdict::Unsat);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// As [`transform_all_constraints`], and `TypeInconsistent` where the last constraint is no condition.
pub fn evaluate_conditional_with_constraints(
    gm: &GraphModule,
    modules: &Modules,
    node: NodeId,
) -> Result<[Problem; 2]> {
    let mut generator = Generator::new(gm, modules)?;
    for id in gm.graph.nodes() {
        generator.node(id)?;
        if id == node {
            break;
        }
    }
    let Some(Constraint::Bool(_, condition)) = generator.out.pop() else {
        let name = &**gm.graph.node(node).name();
        let refusal = Diagnostic::new(Code::TypeInconsistent, format!("`{name}` is no condition on sizes"));
        return Err(refusal.node(name).help("a condition compares sizes, as in x.size(0) > 2"));
    };
    let mut counter = generator.counter;
    let rest = transform::until_fixed_point(Constraint::Conj(generator.out), &mut counter)?;
    let condition = transform::until_fixed_point(*condition, &mut counter)?;
    let mut lowering = lower::Lowering::default();
    let rest = lowering.formula(&rest)?;
    let condition = lowering.formula(&condition)?;
    let positive = Formula::And(vec![rest.clone(), condition.clone()]);
    let negative = Formula::And(vec![rest, Formula::Not(Box::new(condition))]);
    Ok([lowering.clone().problem(positive), lowering.problem(negative)])
}

impl<'a> ConstraintGenerator<'a> {
    /// A generator for this graph, whose modules are these.
    pub fn new(gm: &'a GraphModule, modules: &'a Modules) -> Self {
        ConstraintGenerator { gm, modules }
    }

    /// The constraints of all nodes.
    ///
    /// # Errors
    /// `NotImplemented` where a node has no rule, `TypeInconsistent` where an annotation is malformed.
    pub fn generate(&self) -> Result<Constraints> {
        let mut generator = Generator::new(self.gm, self.modules)?;
        for id in self.gm.graph.nodes() {
            generator.node(id)?;
        }
        let Generator { symbols, counter, out, .. } = generator;
        Ok(Constraints { constraint: Constraint::Conj(out), symbols, counter })
    }
}

pub(super) fn term_of(ty: &Type) -> Option<TypeTerm> {
    let dim = |it: &Dim| match it {
        Dim::Size(it) => DimTerm::Size(*it),
        Dim::Dyn | Dim::Var(_) | Dim::Expr(_) => DimTerm::Dyn,
    };
    match ty {
        Type::Tensor(dims) if (1..=MAX_TENSOR_RANK).contains(&dims.len()) => {
            Some(TypeTerm::Tensor(dims.iter().map(dim).collect()))
        }
        Type::Tensor(_) => None,
        Type::Dyn | Type::Int | Type::Var(_) | Type::Seq(_) | Type::Other(_) => Some(TypeTerm::Dyn),
    }
}

/// The constraints so far, and the variables that the nodes have.
pub(super) struct Generator<'a> {
    gm: &'a GraphModule,
    modules: &'a Modules,
    types: Types,
    symbols: Vec<Option<Symbol>>,
    pub(super) counter: Counter,
    pub(super) out: Vec<Constraint>,
}

impl<'a> Generator<'a> {
    fn new(gm: &'a GraphModule, modules: &'a Modules) -> Result<Self> {
        let types = Types::of_annotations(&gm.graph)?;
        let symbols = vec![None; gm.graph.id_bound()];
        Ok(Generator { gm, modules, types, symbols, counter: Counter::default(), out: Vec::new() })
    }

    fn node(&mut self, id: NodeId) -> Result<()> {
        let node = self.gm.graph.node(id);
        let res = match node.op() {
            Opcode::Placeholder => {
                let var = self.type_of(id);
                match term_of(self.types.get(id)) {
                    Some(ty) => {
                        self.out.push(Constraint::Type(ty, Relation::Precision, var.into()));
                        self.out.push(Constraint::RankLe(var, MAX_TENSOR_RANK));
                        Ok(())
                    }
                    None => Err(refuse(format!("the constraints know tensors of 1 to {MAX_TENSOR_RANK} dimensions"))),
                }
            }
            Opcode::GetAttr => {
                self.parameter(id, node);
                Ok(())
            }
            Opcode::CallFunction | Opcode::CallMethod => self.call(id, node),
            Opcode::CallModule => match self.modules.get(&**node.target()) {
                Some(module) => self.module(id, node, module),
                None => Err(refuse(format!("No inference rule registered for the class of module {}!", node.target()))),
            },
            Opcode::Output => Ok(()),
        };
        res.map_err(|it| it.node(&**node.name()))
    }

    fn parameter(&mut self, id: NodeId, node: &Node) {
        let sizes: Vec<i64> = match self.gm.attribute(node.target()) {
            Ok(Attribute::Tensor { tensor, .. }) => tensor.sizes().iter().map(|&it| it as i64).collect(),
            Ok(Attribute::Fake { tensor, .. }) => tensor.meta.sizes.iter().filter_map(SymInt::as_int).collect(),
            Ok(Attribute::Module(_)) | Err(_) => Vec::new(),
        };
        if !sizes.is_empty() {
            let var = self.type_of(id);
            let dims: Vec<DimTerm> = sizes.into_iter().map(DimTerm::Size).collect();
            self.out.push(Constraint::types(var, &dims));
        }
    }

    fn module(&mut self, id: NodeId, node: &Node, module: &ModuleSpec) -> Result<()> {
        match module {
            ModuleSpec::Conv2d { in_channels, out_channels, window } => {
                let res = self.type_of(id);
                let (input, dims) = self.matched(node)?;
                self.out.push(Constraint::Dim((*in_channels).into(), Relation::Consistency, dims[1].into()));
                self.out.push(Constraint::CalcConv { res, input, c_out: *out_channels, window: *window, dims });
                self.out.extend(Constraint::naturals(&dims));
            }
            ModuleSpec::MaxPool2d { window } => {
                let res = self.type_of(id);
                let (input, dims) = self.matched(node)?;
                self.out.push(Constraint::CalcMaxPool { res, input, window: *window, dims });
                self.out.extend(Constraint::naturals(&dims));
            }
            ModuleSpec::BatchNorm2d { .. } => {
                let res = self.type_of(id);
                let (input, dims) = self.matched(node)?;
                self.out.push(Constraint::types(input, res));
                self.out.extend(Constraint::naturals(&dims));
            }
            ModuleSpec::AdaptiveAvgPool2d { output_size: [height, width] } => {
                let res = self.type_of(id);
                let (_, dims) = self.matched(node)?;
                let size = |it: &Option<i64>, given| it.map_or(given, DimTerm::Size);
                let output = [dims[0], dims[1], size(height, dims[2]), size(width, dims[3])];
                self.out.push(Constraint::types(res, &output[..]));
                self.out.extend(Constraint::naturals(&dims));
            }
            ModuleSpec::Linear { in_features, out_features } => {
                self.linear(id, node, DimTerm::Size(*in_features), DimTerm::Size(*out_features))?;
            }
            ModuleSpec::LayerNorm { normalized_shape } => self.layer_norm(id, node, normalized_shape)?,
            ModuleSpec::Embedding { embedding_dim } => self.embedding(id, node, DimTerm::Size(*embedding_dim))?,
            ModuleSpec::ReLU {} | ModuleSpec::Dropout {} => self.same(id, node)?,
        }
        Ok(())
    }

    /// The input as a tensor of four dimensions, if it is known at all.
    fn matched(&mut self, node: &Node) -> Result<(u32, [DimTerm; 4])> {
        let input = self.type_arg(node, 0)?;
        let dims = self.counter.dims4();
        self.out.push(Constraint::Type(input.into(), Relation::Matching, (&dims[..]).into()));
        Ok((input, dims))
    }

    /// The result has the type of the input.
    pub(super) fn same(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let res = self.type_of(id);
        let input = self.type_arg(node, 0)?;
        self.out.push(Constraint::types(input, res));
        Ok(())
    }

    /// A new variable for the type of a node.
    pub(super) fn type_of(&mut self, id: NodeId) -> u32 {
        let var = self.counter.var();
        self.symbols[id.index()] = Some(Symbol::Type(var));
        var
    }

    /// A new variable for the size that a node is.
    pub(super) fn dim_of(&mut self, id: NodeId) -> DimTerm {
        let var = self.counter.var();
        self.symbols[id.index()] = Some(Symbol::Dim(var));
        DimTerm::Var(var)
    }

    /// Says that a node is a size, though it was taken for a tensor.
    pub(super) fn retype(&mut self, id: NodeId) -> DimTerm {
        self.dim_of(id)
    }

    pub(super) fn symbol(&self, node: NodeId) -> Result<Symbol> {
        self.symbols[node.index()].ok_or_else(|| refuse("an argument has no type that constraints speak of".into()))
    }

    pub(super) fn node_arg(node: &Node, at: usize) -> Result<NodeId> {
        node.args().get(at).and_then(Arg::as_node).ok_or_else(|| refuse(format!("argument {at} is no node")))
    }

    pub(super) fn type_arg(&self, node: &Node, at: usize) -> Result<u32> {
        match self.symbol(Self::node_arg(node, at)?)? {
            Symbol::Type(var) => Ok(var),
            Symbol::Dim(_) => Err(refuse(format!("argument {at} is a size, not a tensor"))),
        }
    }

    /// An argument that is a size: a number or a node.
    pub(super) fn size(&self, arg: &Arg) -> Result<DimTerm> {
        match arg {
            Arg::Int(it) => Ok(DimTerm::Size(*it)),
            Arg::Node(node) => match self.symbol(*node)? {
                Symbol::Dim(var) => Ok(DimTerm::Var(var)),
                Symbol::Type(_) => Err(refuse("a tensor stands where a size is expected".into())),
            },
            _ => Err(refuse("a size is a number or a node".into())),
        }
    }

    pub(super) fn int(node: &Node, at: usize, name: &str, default: Option<i64>) -> Result<i64> {
        match node.args().get(at).or_else(|| node.kwarg(name)) {
            Some(Arg::Int(it)) => Ok(*it),
            None if default.is_some() => Ok(default.expect("it is there")),
            Some(_) | None => Err(refuse(format!("argument {at} is no number"))),
        }
    }

    /// Both are unknown, or one of the others holds.
    pub(super) fn unknown_or(&mut self, pair: [Constraint; 2], others: Vec<Constraint>) {
        let both = Constraint::Conj(pair.into());
        self.out.push(Constraint::Disj(vec![both, Constraint::Disj(others)]));
    }
}

pub(super) fn refuse(message: String) -> Diagnostic {
    Diagnostic::new(Code::NotImplemented, message)
        .help("the constraints know the operators that those of torch.fx know, on tensors of 1 to 4 dimensions")
}
