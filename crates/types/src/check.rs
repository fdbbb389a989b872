//! [`GraphTypeChecker`]: the gradual type checker of `torch.fx.experimental.graph_gradual_typechecker`.

use crate::ty::inconsistent;
use crate::{
    Dim, ModuleSpec, Modules, Type, Window, broadcast_types, expand_to_tensor_dim, get_greatest_upper_bound,
    is_consistent, is_consistent_dim, is_more_precise,
};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Node, NodeId, Opcode, Str};
use tracefx_sym::SymInt;

/// How deep the type of several values is nested.
const MAX_NESTING: u32 = 64;

/// The types of a graph's nodes, by node.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_types::{GraphTypeChecker, Modules, Type, Types, annotate};
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// annotate(&mut graph, x, &"TensorType[(2, 3)]".parse()?)?;
/// let y = graph.call_function("torch.transpose", vec![x.into(), Arg::Int(0), Arg::Int(1)], vec![]);
/// graph.output(y.into());
/// assert_eq!(*Types::of_annotations(&graph)?.get(y), Type::Dyn);
/// // What follows, without annotating the graph.
/// let types = GraphTypeChecker::new(&Modules::new()).infer(&GraphModule::new(graph))?;
/// assert_eq!(types.get(y).to_string(), "TensorType[(3, 2)]");
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
#[derive(Clone, Debug)]
pub struct Types(Vec<Type>);

impl Types {
    /// The types that the nodes are annotated with; those without annotation are [`Type::Dyn`].
    ///
    /// # Errors
    /// `TypeInconsistent` where an annotation is malformed.
    pub fn of_annotations(graph: &Graph) -> Result<Self> {
        let mut types = vec![Type::Dyn; graph.id_bound()];
        for id in graph.nodes() {
            let node = graph.node(id);
            if let Some(ty) = node.ty() {
                types[id.index()] = ty.parse::<Type>().map_err(|it| it.node(&**node.name()))?;
            }
        }
        Ok(Types(types))
    }

    /// The type of a node.
    pub fn get(&self, node: NodeId) -> &Type {
        &self.0[node.index()]
    }

    pub(crate) fn set(&mut self, node: NodeId, ty: Type) {
        self.0[node.index()] = ty;
    }

    /// The type of an argument; of what is nested deeper than anybody reads nothing is said.
    pub(crate) fn of_arg(&self, arg: &Arg) -> Type {
        self.of_nested(arg, MAX_NESTING)
    }

    fn of_nested(&self, arg: &Arg, depth: u32) -> Type {
        match arg {
            Arg::Node(node) => self.get(*node).clone(),
            Arg::List(items) | Arg::Tuple(items) if depth > 0 => {
                Type::Seq(items.iter().map(|it| self.of_nested(it, depth - 1)).collect())
            }
            Arg::Dict(items) if depth > 0 => {
                Type::Seq(items.iter().map(|(_, it)| self.of_nested(it, depth - 1)).collect())
            }
            Arg::Int(_) => Type::Int,
            Arg::List(_)
            | Arg::Tuple(_)
            | Arg::Dict(_)
            | Arg::None
            | Arg::Ellipsis
            | Arg::Bool(_)
            | Arg::Float(_)
            | Arg::Complex(_)
            | Arg::Str(_)
            | Arg::DType(_)
            | Arg::Device(_)
            | Arg::Layout(_)
            | Arg::MemoryFormat(_)
            | Arg::Op(_)
            | Arg::Slice(_) => Type::Dyn,
        }
    }

    /// Annotates the nodes with their types.
    pub fn annotate(&self, graph: &mut Graph) {
        let ids: Vec<NodeId> = graph.nodes().collect();
        for id in ids {
            let text = Str::from(self.get(id).to_string());
            graph.set_type(id, Some(text)).expect("the node is of this graph");
        }
    }
}

/// Gives a node a type, as `torch.fx.annotate` does.
///
/// ```
/// use tracefx_ir::Graph;
/// use tracefx_types::{Type, annotate};
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// annotate(&mut graph, x, &"TensorType[(2, Dyn)]".parse()?)?;
/// assert!(annotate(&mut graph, x, &Type::Dyn).is_err());
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `TypeInconsistent` where it has one already.
pub fn annotate(graph: &mut Graph, node: NodeId, ty: &Type) -> Result<()> {
    if let Some(old) = graph.node(node).ty() {
        return Err(inconsistent(format!(
            "tried to annotate a value that already had a type on it: the existing type is {old} and the new type is {ty}"
        ))
        .node(&**graph.node(node).name())
        .help("annotate a value once, an input where it is declared"));
    }
    graph.set_type(node, Some(ty.to_string().into()))
}

/// Checks that the types of a graph's values fit together, and finds those that follow from others.
///
/// Types come from the nodes' annotations and go back there. A value without a type is [`Type::Dyn`], which fits
/// everything, so a graph can be typed little by little. It takes time linear in the graph.
///
/// Where torch.fx is wrong this is right: windows move by the stride of each dimension and fit into what goes in, a size that
/// an adaptive pool leaves open is the one that goes in, dimensions may be counted from the end, and a reshape of known sizes
/// has as many elements as its input.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_types::{GraphTypeChecker, Modules, annotate};
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// annotate(&mut graph, x, &"TensorType[(2, Dyn, 4)]".parse()?)?;
/// let y = graph.call_function("torch.flatten", vec![x.into(), Arg::Int(1)], vec![]);
/// graph.output(y.into());
/// let mut gm = GraphModule::new(graph);
/// GraphTypeChecker::new(&Modules::new()).type_check(&mut gm)?;
/// assert_eq!(&**gm.graph.node(y).ty().unwrap(), "TensorType[(2, Dyn)]");
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GraphTypeChecker<'a> {
    modules: &'a Modules,
}

impl<'a> GraphTypeChecker<'a> {
    /// A checker that knows these modules.
    pub fn new(modules: &'a Modules) -> Self {
        GraphTypeChecker { modules }
    }

    /// Checks the graph, and annotates every node with its type.
    ///
    /// # Errors
    /// `TypeInconsistent` where types do not fit, `NotImplemented` where there is no rule for a node. The graph has its
    /// old annotations then.
    pub fn type_check(&self, gm: &mut GraphModule) -> Result<()> {
        let types = self.infer(gm)?;
        types.annotate(&mut gm.graph);
        Ok(())
    }

    /// The types of all nodes.
    ///
    /// # Errors
    /// As [`GraphTypeChecker::type_check`].
    pub fn infer(&self, gm: &GraphModule) -> Result<Types> {
        let mut types = Types::of_annotations(&gm.graph)?;
        for id in gm.graph.nodes() {
            let mut cx = Rule { gm, types: &mut types, id, node: gm.graph.node(id) };
            cx.check(self.modules).map_err(|it| it.node(&**gm.graph.node(id).name()))?;
        }
        Ok(types)
    }
}

/// One node under its rule.
struct Rule<'a> {
    gm: &'a GraphModule,
    types: &'a mut Types,
    id: NodeId,
    node: &'a Node,
}

impl Rule<'_> {
    fn check(&mut self, modules: &Modules) -> Result<()> {
        match self.node.op() {
            Opcode::Placeholder => Ok(()),
            Opcode::GetAttr => {
                let sizes: Option<Vec<Dim>> = match self.gm.attribute(self.node.target())? {
                    Attribute::Tensor { tensor, .. } => {
                        Some(tensor.sizes().iter().map(|&it| Dim::Size(it as i64)).collect())
                    }
                    Attribute::Fake { tensor, .. } => Some(tensor.meta.sizes.iter().map(dim_of_size).collect()),
                    Attribute::Module(_) => None,
                };
                if let Some(sizes) = sizes {
                    self.types.set(self.id, Type::Tensor(sizes));
                }
                Ok(())
            }
            Opcode::CallFunction => self.call_function(),
            Opcode::CallModule => match modules.get(&**self.node.target()) {
                Some(module) => self.call_module(module),
                None => Err(self.no_rule("class of module")),
            },
            Opcode::CallMethod => Err(self.no_rule("method")),
            Opcode::Output => {
                let ty = self.node.args().first().map_or(Type::Dyn, |it| self.types.of_arg(it));
                self.types.set(self.id, ty);
                Ok(())
            }
        }
    }

    fn call_function(&mut self) -> Result<()> {
        match &**self.node.target() {
            "torch.add" | "operator.add" => self.add(),
            "torch.transpose" => self.transpose(),
            "torch.reshape" => self.reshape(),
            "torch.flatten" => {
                let (start, end) = (self.int_or(1, "start_dim", 0)?, self.int_or(2, "end_dim", -1)?);
                self.shape_rule(|dims| flatten(dims, start, end))
            }
            "getattr" | "builtins.getattr" => match self.node.args().get(1) {
                Some(Arg::Str(name)) if &**name == "shape" => {
                    self.types.set(self.id, Type::Dyn);
                    Ok(())
                }
                _ => Err(self.no_rule("attribute")),
            },
            _ => Err(self.no_rule("target")),
        }
    }

    fn call_module(&mut self, module: &ModuleSpec) -> Result<()> {
        match module {
            ModuleSpec::Conv2d { in_channels, out_channels, window } => {
                let input = expand_to_tensor_dim(self.input_type()?, 4)?;
                let own = expand_to_tensor_dim(self.own_type(), 4)?;
                let dims = input.dims().expect("it was made a tensor").to_vec();
                self.set_input(input)?;
                if !is_consistent_dim(&dims[1], &Dim::Size(*in_channels)) {
                    return Err(self.cannot_apply(*in_channels, &dims[1]));
                }
                let [height, width] = window.image(&dims[2], &dims[3])?;
                let output = Type::tensor([dims[0].clone(), Dim::Size(*out_channels), height, width]);
                self.types.set(self.id, get_greatest_upper_bound(&output, &own)?);
                Ok(())
            }
            ModuleSpec::BatchNorm2d { num_features } => {
                let input = expand_to_tensor_dim(self.input_type()?, 4)?;
                let own = expand_to_tensor_dim(self.own_type(), 4)?;
                let fits = |ty: &Type| ty.dims().is_some_and(|it| is_consistent_dim(&it[1], &Dim::Size(*num_features)));
                self.set_input(input.clone())?;
                if !(fits(&input) && fits(&own) && is_consistent(&input, &own)) {
                    let channels = input.dims().map_or(Dim::Dyn, |it| it[1].clone());
                    self.types.set(self.id, own);
                    return Err(self.cannot_apply(*num_features, &channels));
                }
                self.types.set(self.id, get_greatest_upper_bound(&input, &own)?);
                Ok(())
            }
            ModuleSpec::ReLU {} => self.shape_rule(|dims| Ok(dims.to_vec())),
            ModuleSpec::MaxPool2d { window } => self.shape_rule(|dims| {
                let mut res = dims.to_vec();
                let [.., height, width] = &mut res[..] else { return Err(wrong_rank(dims)) };
                [*height, *width] = window.image(height, width)?;
                if (3..=4).contains(&dims.len()) { Ok(res) } else { Err(wrong_rank(dims)) }
            }),
            ModuleSpec::AdaptiveAvgPool2d { output_size: [height, width] } => self.shape_rule(|dims| {
                let mut res = dims.to_vec();
                let (3..=4, [.., h, w]) = (dims.len(), &mut res[..]) else {
                    let got = Type::tensor(dims);
                    return Err(inconsistent(format!("Tensor ranks must be 3 or 4. Got {got}")));
                };
                let size = |it: Option<i64>, given: &Dim| it.map_or_else(|| given.clone(), Dim::Size);
                (*h, *w) = (size(*height, h), size(*width, w));
                Ok(res)
            }),
            ModuleSpec::Linear { in_features, out_features } => self.shape_rule(|dims| match dims {
                [_, .., last] if is_consistent_dim(last, &Dim::Size(*in_features)) => {
                    let mut res = dims.to_vec();
                    res[dims.len() - 1] = Dim::Size(*out_features);
                    Ok(res)
                }
                [_, .., last] => Err(inconsistent(format!("Inconsistent {in_features} and {last} in Linear"))),
                _ => Err(inconsistent(format!("Type {} must have rank 2 or more.", Type::tensor(dims)))),
            }),
            ModuleSpec::LayerNorm { .. } | ModuleSpec::Embedding { .. } | ModuleSpec::Dropout {} => {
                Err(self.no_rule("class of module"))
            }
        }
    }

    fn add(&mut self) -> Result<()> {
        let [a, b] = [(0, "input"), (1, "other")]
            .map(|(at, name)| argument(self.node, at, name).map_or(Type::Dyn, |it| self.types.of_arg(it)));
        let ty = match (&a, &b) {
            (Type::Int, Type::Tensor(_)) => b,
            (Type::Tensor(_), Type::Int) => a,
            (Type::Int, Type::Int) => Type::Int,
            (Type::Dyn | Type::Tensor(_) | Type::Int | Type::Var(_) | Type::Seq(_) | Type::Other(_), _) => {
                let (x, y) = broadcast_types(&a, &b)?;
                if !is_consistent(&x, &y) {
                    return Err(inconsistent(format!(
                        "Cannot add arguments {} ({a}) and {} ({b}) in node {}. Types should match",
                        self.arg_name(0),
                        self.arg_name(1),
                        self.node.name()
                    )));
                }
                // The less precise one: for [1, 2, Dyn] and [1, 2, 1] the sum is [1, 2, Dyn].
                if is_more_precise(&x, &y) { y } else { x }
            }
        };
        self.types.set(self.id, ty);
        Ok(())
    }

    fn transpose(&mut self) -> Result<()> {
        let input = self.input_type()?.clone();
        let (dim0, dim1) = (self.int(1, "dim0")?, self.int(2, "dim1")?);
        let Type::Tensor(mut dims) = input.clone() else {
            if input == Type::Dyn {
                self.types.set(self.id, Type::Dyn);
                return Ok(());
            }
            return Err(self.cannot_transpose(dim0, dim1, &input));
        };
        let (Some(a), Some(b)) = (place(dim0, dims.len()), place(dim1, dims.len())) else {
            return Err(self.cannot_transpose(dim0, dim1, &input));
        };
        dims.swap(a, b);
        self.types.set(self.id, get_greatest_upper_bound(self.own_type(), &Type::Tensor(dims))?);
        Ok(())
    }

    fn cannot_transpose(&self, dim0: i64, dim1: i64, ty: &Type) -> Diagnostic {
        inconsistent(format!("Cannot transpose {dim0} and {dim1} in type {ty} for node {}", self.node.name()))
    }

    fn reshape(&mut self) -> Result<()> {
        let input = self.input_type()?.clone();
        let Some(Arg::List(items) | Arg::Tuple(items)) = argument(self.node, 1, "shape") else {
            return Err(self.no_rule("shape"));
        };
        // A size that a node computes is as unknown as one that is left open.
        let size = |it: &Arg| match it {
            Arg::Int(it) => Ok(*it),
            Arg::Node(_) => Ok(-1),
            _ => Err(self.no_rule("shape")),
        };
        let sizes = items.iter().map(size).collect::<Result<Vec<i64>>>()?;
        let dims: Vec<Dim> = sizes.iter().map(|&it| if it == -1 { Dim::Dyn } else { Dim::Size(it) }).collect();
        let output = Type::Tensor(dims);
        let n_open = items.iter().filter(|it| matches!(it, Arg::Int(-1))).count();
        let are_sizes = n_open <= 1 && sizes.iter().all(|it| *it >= -1);
        let fits = match &input {
            _ if !are_sizes => false,
            Type::Dyn => true,
            Type::Tensor(dims) => {
                let is_known = |it: &Dim| matches!(it, Dim::Size(_));
                let known = product(dims.iter().filter_map(|it| if let Dim::Size(it) = it { Some(*it) } else { None }));
                let wanted = product(sizes.iter().copied().filter(|&it| it != -1));
                match (known, wanted) {
                    (Some(known), Some(wanted)) if dims.iter().all(is_known) && !sizes.contains(&-1) => known == wanted,
                    (Some(known), Some(wanted)) => divides(wanted, known) || divides(known, wanted),
                    (Some(_) | None, _) => false,
                }
            }
            Type::Int | Type::Var(_) | Type::Seq(_) | Type::Other(_) => false,
        };
        if !fits {
            let name = self.node.name();
            return Err(inconsistent(format!("Cannot reshape in node {name} from {input} to {output}")));
        }
        self.types.set(self.id, output);
        Ok(())
    }

    /// The rule of what maps a shape to a shape: an unknown input gets the rank of the result, if that is known.
    fn shape_rule(&mut self, output: impl Fn(&[Dim]) -> Result<Vec<Dim>>) -> Result<()> {
        if let (Type::Dyn, Some(own)) = (self.input_type()?, self.own_type().dims()) {
            self.set_input(Type::Tensor(vec![Dim::Dyn; own.len()]))?;
        }
        if let Some(dims) = self.input_type()?.dims() {
            let output = Type::Tensor(output(dims)?);
            self.types.set(self.id, get_greatest_upper_bound(&output, self.own_type())?);
        }
        Ok(())
    }

    fn own_type(&self) -> &Type {
        self.types.get(self.id)
    }

    fn input(&self) -> Result<NodeId> {
        argument(self.node, 0, "input").and_then(Arg::as_node).ok_or_else(|| self.no_rule("first argument"))
    }

    fn input_type(&self) -> Result<&Type> {
        Ok(self.types.get(self.input()?))
    }

    fn set_input(&mut self, ty: Type) -> Result<()> {
        let input = self.input()?;
        self.types.set(input, ty);
        Ok(())
    }

    fn int(&self, at: usize, name: &str) -> Result<i64> {
        match argument(self.node, at, name) {
            Some(Arg::Int(it)) => Ok(*it),
            _ => Err(self.no_rule(&format!("argument `{name}`"))),
        }
    }

    fn int_or(&self, at: usize, name: &str, default: i64) -> Result<i64> {
        if argument(self.node, at, name).is_some() { self.int(at, name) } else { Ok(default) }
    }

    fn arg_name(&self, at: usize) -> String {
        let node = self.node.args().get(at).and_then(Arg::as_node);
        node.map_or_else(|| "a constant".to_string(), |it| self.gm.graph.node(it).name().to_string())
    }

    fn cannot_apply(&self, expected: i64, got: &Dim) -> Diagnostic {
        let input = self.input_type().unwrap_or(&Type::Dyn);
        let (module, own, name) = (self.node.target(), self.own_type(), self.node.name());
        inconsistent(format!("Cannot apply {module} with input type {input} and existing type {own} on {name}"))
            .note(format!("it takes {expected} channels, in the second dimension, and gets {got}"))
    }

    fn no_rule(&self, what: &str) -> Diagnostic {
        let target = self.node.target();
        Diagnostic::new(Code::NotImplemented, format!("No inference rule registered for the {what} of {target}!")).help(
            "the checker knows the operators of torch.fx's: add, transpose, reshape, flatten, Conv2d, BatchNorm2d, \
                   ReLU, MaxPool2d, AdaptiveAvgPool2d and Linear",
        )
    }
}

impl Window {
    /// The height and width that come out.
    ///
    /// # Errors
    /// `TypeInconsistent` where the window is larger than what goes in.
    fn image(&self, height: &Dim, width: &Dim) -> Result<[Dim; 2]> {
        let out = [self.out(height, 0), self.out(width, 1)];
        for (at, (size, given)) in out.iter().zip([height, width]).enumerate() {
            if matches!(size, Dim::Size(..=0)) {
                let taps = self.dilation[at] * (self.kernel_size[at] - 1) + 1;
                let padding = self.padding[at];
                let name = ["height", "width"][at];
                return Err(inconsistent(format!(
                    "Cannot move a window over the {name} {given}: it is {taps} long, and there is a padding of {padding}"
                ))
                .help("a smaller kernel or dilation, or more padding, leaves at least one place for the window"));
            }
        }
        Ok(out)
    }

    /// The size that comes out of a window: `(size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1`.
    pub(crate) fn out(&self, size: &Dim, at: usize) -> Dim {
        let taken = SymInt::from(2 * self.padding[at] - self.dilation[at] * (self.kernel_size[at] - 1) - 1);
        let size = match size {
            Dim::Size(it) => SymInt::from(*it),
            Dim::Expr(it) => it.clone(),
            Dim::Dyn | Dim::Var(_) => return Dim::Dyn,
        };
        dim_of_size(&((size + taken).floor_div(&SymInt::from(self.stride[at])) + 1))
    }
}

fn dim_of_size(size: &SymInt) -> Dim {
    size.as_int().map_or_else(|| Dim::Expr(size.clone()), Dim::Size)
}

/// An argument by its place, or by its name.
pub(crate) fn argument<'a>(node: &'a Node, at: usize, name: &str) -> Option<&'a Arg> {
    node.args().get(at).or_else(|| node.kwarg(name))
}

/// The place of a dimension that may be counted from the end.
pub(crate) fn place(dim: i64, n_dims: usize) -> Option<usize> {
    let at = if dim < 0 { dim.checked_add(n_dims as i64)? } else { dim };
    usize::try_from(at).ok().filter(|&it| it < n_dims)
}

fn flatten(dims: &[Dim], start: i64, end: i64) -> Result<Vec<Dim>> {
    match (place(start, dims.len()), place(end, dims.len())) {
        (Some(from), Some(to)) if from <= to => {
            let size = |it: &Dim| if let Dim::Size(it) = it { Some(*it) } else { None };
            let sizes: Option<Vec<i64>> = dims[from..=to].iter().map(size).collect();
            let flat = match sizes.and_then(product) {
                Some(it) => Dim::Size(it),
                None if from == to => dims[from].clone(),
                None => Dim::Dyn,
            };
            Ok([&dims[..from], &[flat], &dims[to + 1..]].concat())
        }
        (Some(_) | None, _) => {
            let ty = Type::tensor(dims);
            Err(inconsistent(format!("Incompatible dimensions {start}, {end} in type {ty}")))
        }
    }
}

fn product(items: impl IntoIterator<Item = i64>) -> Option<i64> {
    items.into_iter().try_fold(1_i64, i64::checked_mul)
}

fn divides(a: i64, b: i64) -> bool {
    b.checked_rem(a).map_or(a == 0 && b == 0, |it| it == 0)
}

fn wrong_rank(dims: &[Dim]) -> Diagnostic {
    inconsistent(format!("Wrong size {} for MaxPool2d", Type::tensor(dims)))
}
