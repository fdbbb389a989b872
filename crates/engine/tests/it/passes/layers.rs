//! Random modules of layers: linear layers, products of matrices and convolutions, batch normalizations of their results and
//! of others, swapped dimensions, weights that are shared, computed or written to, and a layer in a module of its own.

use super::random::Writes;
use proptest::prelude::*;
use tracefx_core::Tensor;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, TensorKind};

/// What one step of a module is made of: which kind of call, on which value, in which form.
type Step = (u8, u8, u8);

/// Modules of up to 12 steps, of the same inputs as [`super::random::modules`].
pub(crate) fn layered(writes: Writes) -> impl Strategy<Value = GraphModule> {
    prop::collection::vec(any::<Step>(), 1..12).prop_map(move |steps| {
        let maker = Maker { graph: Graph::new(), values: Vec::new(), attributes: Vec::new(), writes };
        maker.make(&steps)
    })
}

struct Maker {
    graph: Graph,
    /// Values and their sizes.
    values: Vec<(NodeId, Vec<usize>)>,
    /// Names and sizes of parameters, each of which may be read several times.
    attributes: Vec<(String, Vec<usize>)>,
    writes: Writes,
}

impl Maker {
    fn make(mut self, steps: &[Step]) -> GraphModule {
        for name in ["x", "y"] {
            let input = self.graph.placeholder(name);
            self.values.push((input, vec![2, 3]));
        }
        for &step in steps {
            self.step(step);
        }
        let is_unused = |it: &&(NodeId, Vec<usize>)| self.graph.users(it.0).is_empty();
        let unused = self.values.iter().rev().filter(is_unused).take(3);
        let results: Vec<Arg> = unused.map(|(it, _)| Arg::Node(*it)).collect();
        self.graph.output(Arg::Tuple(vec![results[0].clone(), Arg::List(results[1..].to_vec())]));
        let mut module = GraphModule::new(self.graph);
        for (name, sizes) in self.attributes {
            let tensor = parameter(&name, &sizes);
            module.set_attribute(&name, Attribute::Tensor { tensor, kind: TensorKind::Parameter });
        }
        module.set_attribute("layer", Attribute::Module(Box::new(layer())));
        module
    }

    fn step(&mut self, (kind, at, form): Step) {
        // Layers come one after the other more often than not.
        let place = if at < 160 { self.values.len() - 1 } else { usize::from(at) % self.values.len() };
        let (value, sizes) = self.values[place].clone();
        match kind % 16 {
            0 | 1 => self.linear(value, &sizes, form),
            2 | 3 if sizes.len() == 2 => {
                self.product(value, &sizes, form);
                let mut others = self.values.iter().filter(|it| it.0 != value && it.1 == sizes);
                if let Some((other, sizes)) = others.next_back().cloned() {
                    self.product(other, &sizes, form);
                }
            }
            4 if sizes.len() > 2 => self.convolution(value, &sizes, form),
            4..=7 if sizes.len() > 1 => {
                let (value, sizes) = self.layer(value, &sizes, at);
                self.normalize(value, sizes, form);
            }
            8 | 9 if sizes.len() > 1 => {
                let (value, sizes) = self.layer(value, &sizes, at);
                self.swap(value, sizes, form);
            }
            10 => {
                let n = sizes.iter().product::<usize>();
                if n.is_multiple_of(2) {
                    let forms: [&[usize]; 4] = [&[2, n / 2], &[n / 2, 2], &[2, 1, n / 2], &[2, n / 2, 1, 1]];
                    let sizes = forms[usize::from(form) % 4].to_vec();
                    self.call("reshape.default", vec![value.into(), ints(&sizes)], sizes);
                }
            }
            11 => self.call("relu.default", vec![value.into()], sizes),
            12 if self.writes == Writes::Allowed => {
                self.call("add_.Scalar", vec![value.into(), Arg::Int(1)], sizes);
            }
            13 if self.writes == Writes::Allowed && !self.attributes.is_empty() => {
                let (name, sizes) = self.attributes[usize::from(form) % self.attributes.len()].clone();
                let read = self.graph.get_attr(&name);
                self.call("mul_.Scalar", vec![read.into(), Arg::Float(1.5)], sizes);
            }
            14 if sizes == [2, 3] => {
                let args = vec![value.into()];
                let call = self.graph.create_node(Opcode::CallModule, "layer", args, vec![], None).unwrap();
                self.values.push((call, sizes));
            }
            _ => {
                let others = self.values.iter().filter(|it| it.1 == sizes);
                let others: Vec<NodeId> = others.map(|it| it.0).collect();
                let other = others[usize::from(form) % others.len()];
                self.call("add.Tensor", vec![value.into(), other.into()], sizes);
            }
        }
    }

    /// A layer that takes what a batch normalization or swap is of, where it does not take another value.
    fn layer(&mut self, value: NodeId, sizes: &[usize], form: u8) -> (NodeId, Vec<usize>) {
        match (form % 4, sizes.len()) {
            (0, _) => return (value, sizes.to_vec()),
            (1, 2) => self.product(value, sizes, form),
            (_, 3 | 4) if form.is_multiple_of(2) => self.convolution(value, sizes, form),
            (_, _) => self.linear(value, sizes, form),
        }
        self.values.pop().expect("a layer was made")
    }

    fn linear(&mut self, value: NodeId, sizes: &[usize], form: u8) {
        let (n_inputs, n_outputs) = (sizes[sizes.len() - 1], 2 + usize::from(form % 2));
        let weight = self.weight(&[n_outputs, n_inputs], form);
        let mut args = vec![value.into(), weight.into()];
        let mut kwargs = Vec::new();
        match form / 8 % 4 {
            0 => {}
            1 => args.push(Arg::None),
            2 => args.push(self.parameter("bias", &[n_outputs]).into()),
            _ => kwargs.push(("bias".into(), self.parameter("bias", &[n_outputs]).into())),
        }
        let sizes = [&sizes[..sizes.len() - 1], &[n_outputs]].concat();
        let node = self.graph.call_function("torch.ops.aten.linear.default", args, kwargs);
        self.values.push((node, sizes));
    }

    /// A product of matrices, of which some have a bias; the right-hand side is a weight or a value.
    fn product(&mut self, value: NodeId, sizes: &[usize], form: u8) {
        let matrices = self.values.iter().filter(|it| it.1.len() == 2 && it.1[0] == sizes[1]);
        let matrices: Vec<(NodeId, Vec<usize>)> = matrices.cloned().collect();
        let (right, n_outputs) = match matrices.first() {
            Some((right, right_sizes)) if form.is_multiple_of(3) => (*right, right_sizes[1]),
            Some(_) | None => {
                let n_outputs = 2 + usize::from(form % 2);
                (self.weight(&[sizes[1], n_outputs], form), n_outputs)
            }
        };
        let mut args = vec![value.into(), right.into()];
        let name = ["mm.default", "matmul.default", "mm.default", "addmm.default"][usize::from(form / 8 % 4)];
        if name == "addmm.default" {
            args.insert(0, self.parameter("bias", &[n_outputs]).into());
        }
        self.call(name, args, vec![sizes[0], n_outputs]);
    }

    fn convolution(&mut self, value: NodeId, sizes: &[usize], form: u8) {
        let (n_inputs, n_dims) = (sizes[1], sizes.len() - 2);
        let is_grouped = form.is_multiple_of(5);
        let n_outputs = if is_grouped { n_inputs } else { 2 + usize::from(form % 2) };
        let groups = if is_grouped { n_inputs } else { 1 };
        // One-wide windows keep the other sizes.
        let window = vec![1; n_dims];
        let (stride, padding) = (ints(&window), ints(&vec![0; n_dims]));
        let is_transposed = form / 8 % 8 == 7;
        let ends = if is_transposed { [n_inputs, n_outputs / groups] } else { [n_outputs, n_inputs / groups] };
        let weight = self.weight(&[&ends[..], &window[..]].concat(), form);
        let bias = if (form / 8).is_multiple_of(2) { Arg::None } else { self.parameter("bias", &[n_outputs]).into() };
        let mut args = vec![value.into(), weight.into(), bias];
        let name = match (is_transposed || (form / 16).is_multiple_of(2), n_dims) {
            (true, _) => {
                let transposed = Arg::Bool(is_transposed);
                let output_padding = padding.clone();
                args.extend([stride.clone(), padding, stride, transposed, output_padding, Arg::Int(groups as i64)]);
                "convolution.default"
            }
            (false, dims) => {
                if is_grouped {
                    args.extend([stride.clone(), padding, stride, Arg::Int(groups as i64)]);
                }
                if dims == 1 { "conv1d.default" } else { "conv2d.default" }
            }
        };
        let sizes = [&[sizes[0], n_outputs], &sizes[2..]].concat();
        self.call(name, args, sizes);
    }

    fn normalize(&mut self, value: NodeId, sizes: Vec<usize>, form: u8) {
        let channels = [sizes[1]];
        let optional = |it: &mut Self, name: &str, is_there: bool| {
            if is_there { it.parameter(name, &channels).into() } else { Arg::None }
        };
        let mut args = vec![Arg::Node(value)];
        args.extend([optional(self, "scale", !form.is_multiple_of(4)), optional(self, "shift", form % 8 != 1)]);
        args.extend(["mean", "variance"].map(|it| Arg::Node(self.parameter(it, &channels))));
        let (name, takes_training) = match form / 8 % 4 {
            0 | 1 => ("batch_norm.default", true),
            2 => ("native_batch_norm.default", true),
            _ => ("_native_batch_norm_legit_no_training.default", false),
        };
        if takes_training {
            args.push(Arg::Bool(form >= 224 && self.writes == Writes::Allowed));
        }
        args.extend([Arg::Float(0.1), Arg::Float(1e-3)]);
        if name == "batch_norm.default" {
            args.push(Arg::Bool(false));
            return self.call(name, args, sizes);
        }
        let norm = self.graph.call_function(&format!("torch.ops.aten.{name}"), args, vec![]);
        let item = self.graph.call_function("operator.getitem", vec![norm.into(), Arg::Int(0)], vec![]);
        self.values.push((item, sizes));
    }

    fn swap(&mut self, value: NodeId, mut sizes: Vec<usize>, form: u8) {
        let rank = sizes.len();
        // The last two dimensions as a rule.
        let [a, b] = if form.is_multiple_of(8) { [0, rank - 1] } else { [rank - 2, rank - 1] };
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(a, b);
        sizes.swap(a, b);
        let from_back = |dim: usize| Arg::Int(dim as i64 - rank as i64);
        match form / 8 % 4 {
            0 if rank == 2 => self.call("t.default", vec![value.into()], sizes),
            0 | 1 => self.call("permute.default", vec![value.into(), ints(&order)], sizes),
            2 => self.call("transpose.int", vec![value.into(), from_back(b), Arg::Int(a as i64)], sizes),
            _ => self.call("transpose.int", vec![value.into(), Arg::Int(a as i64), from_back(b)], sizes),
        }
    }

    fn call(&mut self, op: &str, args: Vec<Arg>, sizes: Vec<usize>) {
        let node = self.graph.call_function(&format!("torch.ops.aten.{op}"), args, vec![]);
        self.values.push((node, sizes));
    }

    /// A weight of these sizes: one of two, as it is or computed from it.
    fn weight(&mut self, sizes: &[usize], form: u8) -> NodeId {
        let weight = self.parameter(["weight", "other_weight"][usize::from(form / 32 % 2)], sizes);
        if form < 208 {
            return weight;
        }
        self.graph.call_function("torch.ops.aten.mul.Scalar", vec![weight.into(), Arg::Float(0.5)], vec![])
    }

    /// Reads a parameter.
    fn parameter(&mut self, name: &str, sizes: &[usize]) -> NodeId {
        let sizes_of_name: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        let name = format!("{name}_{}", sizes_of_name.join("_"));
        if !self.attributes.iter().any(|(it, _)| *it == name) {
            self.attributes.push((name.clone(), sizes.to_vec()));
        }
        self.graph.get_attr(&name)
    }
}

fn ints(items: &[usize]) -> Arg {
    Arg::List(items.iter().map(|it| Arg::Int(*it as i64)).collect())
}

/// Numbers that differ by name and place, from 0.25 to 1.25, so that a variance is one.
fn parameter(name: &str, sizes: &[usize]) -> Tensor {
    let start = name.bytes().map(usize::from).sum::<usize>();
    let data: Vec<f32> =
        (0..sizes.iter().product()).map(|at: usize| 0.25 + ((start + at * 7) % 11) as f32 * 0.1).collect();
    Tensor::from_slice(&data, sizes).unwrap()
}

/// A module that others call: a linear layer and the normalization of its result.
fn layer() -> GraphModule {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let weight = graph.get_attr("weight");
    let linear = graph.call_function("torch.ops.aten.linear.default", vec![x.into(), weight.into()], vec![]);
    let [mean, variance] = ["mean", "variance"].map(|it| graph.get_attr(it));
    let args = vec![
        linear.into(),
        Arg::None,
        Arg::None,
        mean.into(),
        variance.into(),
        Arg::Bool(false),
        Arg::Float(0.1),
        Arg::Float(1e-3),
        Arg::Bool(false),
    ];
    let norm = graph.call_function("torch.ops.aten.batch_norm.default", args, vec![]);
    graph.output(norm.into());
    let mut module = GraphModule::new(graph);
    for (name, sizes) in [("weight", &[3, 3][..]), ("mean", &[3]), ("variance", &[3])] {
        module.set_attribute(name, Attribute::Tensor { tensor: parameter(name, sizes), kind: TensorKind::Parameter });
    }
    module
}
