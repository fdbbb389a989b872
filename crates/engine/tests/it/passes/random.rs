//! Random modules of operators, with what makes passes wrong: views, writes in place, equal calls, dead code, attributes,
//! several results of one call, sub-graphs and several outputs.

use proptest::prelude::*;
use tracefx_core::{DType, Tensor};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, TensorKind, TensorMeta, Val};
use tracefx_ops::Value;

/// What one step of a module is made of: which kind of call, and on which values.
type Step = (u8, u8, u8);

/// Which kinds of steps there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    Allowed,
    /// Only operators write, and no method, no other function and no called graph; nothing else is called either.
    ByOperators,
    None,
}

/// Modules of up to 24 steps. Failing ones shrink to fewer steps and earlier values.
pub(crate) fn modules(writes: Writes) -> impl Strategy<Value = GraphModule> {
    prop::collection::vec(any::<Step>(), 1..24).prop_map(move |steps| Maker::default().make(&steps, writes))
}

/// The inputs of each such module.
pub(crate) fn inputs() -> Vec<Value<Tensor>> {
    let tensor = |scale: f32| {
        let data: Vec<f32> = (0..6).map(|it| (it as f32 - 2.5) * scale).collect();
        Value::Tensor(Tensor::from_slice(&data, &[2, 3]).unwrap())
    };
    vec![tensor(0.75), tensor(-1.25)]
}

#[derive(Default)]
struct Maker {
    graph: Graph,
    /// Values and their sizes.
    values: Vec<(NodeId, Vec<usize>)>,
}

impl Maker {
    fn make(mut self, steps: &[Step], writes: Writes) -> GraphModule {
        for name in ["x", "y"] {
            let input = self.graph.placeholder(name);
            let meta = TensorMeta::contiguous(DType::Float32, vec![2.into(), 3.into()]);
            self.graph.meta_mut(input).val = Some(Val::Tensor(meta));
            self.values.push((input, vec![2, 3]));
        }
        let weight = self.graph.get_attr("weight");
        self.values.push((weight, vec![2, 3]));
        for &step in steps {
            self.step(step, writes);
        }
        let results: Vec<Arg> = self.values.iter().rev().take(3).map(|(it, _)| Arg::Node(*it)).collect();
        self.graph.output(Arg::Tuple(vec![results[0].clone(), Arg::List(results[1..].to_vec())]));
        let mut module = GraphModule::new(self.graph);
        let tensor = Tensor::from_slice(&[0.5f32, -1.0, 2.0, 4.0, -0.25, 1.5], &[2, 3]).unwrap();
        module.attributes.insert("weight".into(), Attribute::Tensor { tensor, kind: TensorKind::Parameter });
        module.attributes.insert("inner".into(), Attribute::Module(Box::new(inner())));
        module.attributes.insert("writing".into(), Attribute::Module(Box::new(writing())));
        module
    }

    fn step(&mut self, (kind, a, b): Step, writes: Writes) {
        let (first, sizes) = self.values[usize::from(a) % self.values.len()].clone();
        let (second, other) = self.values[usize::from(b) % self.values.len()].clone();
        let is_same = sizes == other;
        match kind % 19 {
            0 if is_same => self.call("add.Tensor", vec![first.into(), second.into()], sizes),
            1 if is_same => self.call("mul.Tensor", vec![first.into(), second.into()], sizes),
            2 => self.call("relu.default", vec![first.into()], sizes),
            3 => self.call("sin.default", vec![first.into()], sizes),
            4 if sizes.len() == 2 => {
                let turned = sizes.iter().rev().copied().collect();
                self.call("transpose.int", vec![first.into(), Arg::Int(0), Arg::Int(1)], turned);
            }
            5 if sizes.len() > 1 => {
                self.call("select.int", vec![first.into(), Arg::Int(0), Arg::Int(0)], sizes[1..].to_vec());
            }
            6 if sizes.len() < 3 => {
                let longer = std::iter::once(1).chain(sizes).collect();
                self.call("unsqueeze.default", vec![first.into(), Arg::Int(0)], longer);
            }
            7 if writes != Writes::None => {
                self.call("add_.Scalar", vec![first.into(), Arg::Int(i64::from(b) + 1)], sizes);
            }
            8 if writes != Writes::None && is_same && first != second => {
                self.call("mul_.Tensor", vec![first.into(), second.into()], sizes);
            }
            9 => self.call("clone.default", vec![first.into()], sizes),
            10 if sizes[0] == 2 => {
                let parts = self.graph.call_function(
                    "torch.ops.aten.split.Tensor",
                    vec![first.into(), Arg::Int(1)],
                    vec![("dim".into(), Arg::Int(0))],
                );
                let part: Vec<usize> = std::iter::once(1).chain(sizes[1..].iter().copied()).collect();
                for index in 0..2 {
                    let args = vec![parts.into(), Arg::Int(index)];
                    let item = self.graph.call_function("operator.getitem", args, vec![]);
                    self.values.push((item, part.clone()));
                }
            }
            11 => self.call_graph("inner", first, sizes),
            // A view of what lies in order, and else a copy.
            12 => {
                let n_elements = sizes.iter().product();
                let args = vec![first.into(), Arg::List(vec![Arg::Int(-1)])];
                self.call("reshape.default", args, vec![n_elements]);
            }
            13 if writes == Writes::Allowed => {
                let (target, args) = [("torch.sin", vec![first.into()]), ("torch.ravel", vec![first.into()])]
                    [usize::from(b) % 2]
                    .clone();
                let sizes = if target == "torch.sin" { sizes } else { vec![sizes.iter().product()] };
                let node = self.graph.call_function(target, args, vec![]);
                self.values.push((node, sizes));
            }
            14 if writes == Writes::Allowed => {
                let node = match b % 3 {
                    0 => self.graph.create_node(Opcode::CallMethod, "relu_", vec![first.into()], vec![], None).unwrap(),
                    1 => self.graph.call_function("torch.neg_", vec![first.into()], vec![]),
                    _ => self.graph.call_function("operator.iadd", vec![first.into(), Arg::Int(1)], vec![]),
                };
                self.values.push((node, sizes));
            }
            15 if writes != Writes::None && is_same => {
                let out = vec![("out".into(), second.into())];
                let node = self.graph.call_function("torch.ops.aten.atan2.out", vec![first.into(), first.into()], out);
                self.values.push((node, sizes));
            }
            16 if writes == Writes::Allowed => self.call_graph("writing", first, sizes),
            17 => {
                let weight = self.graph.get_attr("weight");
                self.values.push((weight, vec![2, 3]));
            }
            _ => self.again(usize::from(a)),
        }
    }

    fn call(&mut self, op: &str, args: Vec<Arg>, sizes: Vec<usize>) {
        let node = self.graph.call_function(&format!("torch.ops.aten.{op}"), args, vec![]);
        self.values.push((node, sizes));
    }

    fn call_graph(&mut self, name: &str, on: NodeId, sizes: Vec<usize>) {
        let graph = self.graph.get_attr(name);
        let target = "torch.ops.higher_order.wrap_with_set_grad_enabled";
        let args = vec![Arg::Bool(false), graph.into(), on.into()];
        let called = self.graph.call_function(target, args, vec![]);
        let item = self.graph.call_function("operator.getitem", vec![called.into(), Arg::Int(0)], vec![]);
        self.values.push((item, sizes));
    }

    /// Makes a call once more.
    fn again(&mut self, at: usize) {
        let (node, sizes) = self.values[at % self.values.len()].clone();
        let node = self.graph.node(node).clone();
        if node.args().is_empty() {
            return;
        }
        let (args, kwargs) = (node.args().to_vec(), node.kwargs().to_vec());
        let again = self.graph.create_node(node.op(), node.target(), args, kwargs, None).unwrap();
        self.values.push((again, sizes));
    }
}

/// The graph that others call: `(sin(x) + sin(x),)`.
fn inner() -> GraphModule {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let sines = [0, 1].map(|_| graph.call_function("torch.ops.aten.sin.default", vec![x.into()], vec![]));
    graph.call_function("torch.ops.aten.relu.default", vec![x.into()], vec![]);
    let sum = graph.call_function("torch.ops.aten.add.Tensor", sines.map(Arg::Node).to_vec(), vec![]);
    graph.output(Arg::Tuple(vec![sum.into()]));
    GraphModule::new(graph)
}

/// A graph that writes to what it is given: `(add_(x, 1) * 1,)`.
fn writing() -> GraphModule {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let sum = graph.call_function("torch.ops.aten.add_.Scalar", vec![x.into(), Arg::Int(1)], vec![]);
    let product = graph.call_function("torch.ops.aten.mul.Scalar", vec![sum.into(), Arg::Int(1)], vec![]);
    graph.output(Arg::Tuple(vec![product.into()]));
    GraphModule::new(graph)
}
