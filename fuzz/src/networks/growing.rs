//! Graphs that grow call by call, where operators take the arguments, for properties of random programs.

use tracefx_core::{DType, Tensor};
use tracefx_ir::{Arg, Graph, NodeId, TensorMeta};
use tracefx_ops::{Propagation, Symbols, Value, registry};

/// A node, and what is known of its tensor.
pub type Known = (NodeId, TensorMeta);

/// An argument, and what is known of it.
pub type Operand = (Arg, Value<TensorMeta>);

/// A graph that grows by the calls that its operators take.
pub struct Growing {
    /// The graph.
    pub graph: Graph,
    /// The tensors that later calls take.
    pub values: Vec<Known>,
}

impl Default for Growing {
    fn default() -> Self {
        Growing::new()
    }
}

impl Growing {
    /// An empty graph.
    pub fn new() -> Self {
        Growing { graph: Graph::new(), values: Vec::new() }
    }

    /// Adds an input like this tensor.
    pub fn placeholder(&mut self, name: &str, tensor: &Tensor) {
        let node = self.graph.placeholder(name);
        self.values.push((node, TensorMeta::of(tensor)));
    }

    /// A value: of many the last ones, so that chains become long.
    pub fn pick(&self, choice: u8) -> &Known {
        let n = self.values.len();
        &self.values[n - 1 - usize::from(choice) % n.min(9)]
    }

    /// Adds a call, and gives its tensors; of a list the first three. Nothing, if the operator does not take these arguments.
    pub fn call(&mut self, op: &str, args: &[Operand], kwargs: &[(&str, Operand)]) -> Option<Vec<Known>> {
        let name = format!("torch.ops.aten.{op}");
        let symbols = Symbols::default();
        let known: Vec<_> = args.iter().map(|(_, value)| value.clone()).collect();
        let known_by_name: Vec<_> = kwargs.iter().map(|(name, (_, value))| ((*name).into(), value.clone())).collect();
        let results = Propagation::new(registry(), &symbols).call(&name, &known, &known_by_name).ok()?;
        let args = args.iter().map(|(arg, _)| arg.clone()).collect();
        let kwargs = kwargs.iter().map(|(name, (arg, _))| ((*name).into(), arg.clone())).collect();
        let node = self.graph.call_function(&name, args, kwargs);
        let mut item =
            |at: usize| self.graph.call_function("operator.getitem", vec![node.into(), int(at as i64).0], vec![]);
        let items = match &results[..] {
            [Value::Tensor(meta)] => return Some(vec![(node, meta.clone())]),
            [Value::List(items)] => &items[..items.len().min(3)],
            several => several,
        };
        let tensors = items.iter().enumerate();
        let tensors = tensors.filter_map(|(at, it)| if let Value::Tensor(meta) = it { Some((at, meta)) } else { None });
        Some(tensors.map(|(at, meta)| (item(at), meta.clone())).collect())
    }
}

/// The sizes, all of which are numbers.
pub fn sizes(meta: &TensorMeta) -> Vec<usize> {
    meta.sizes.iter().map(|it| usize::try_from(it.as_int().unwrap()).unwrap()).collect()
}

/// How many elements there are.
pub fn numel(meta: &TensorMeta) -> usize {
    sizes(meta).iter().product()
}

/// A tensor as an argument.
pub fn tensor((node, meta): &Known) -> Operand {
    (Arg::Node(*node), Value::Tensor(meta.clone()))
}

/// A list of arguments.
pub fn list(items: Vec<Operand>) -> Operand {
    let (args, values) = items.into_iter().unzip();
    (Arg::List(args), Value::List(values))
}

/// An int.
pub fn int(it: i64) -> Operand {
    (Arg::Int(it), Value::int(it))
}

/// A list of ints.
pub fn ints(it: &[i64]) -> Operand {
    list(it.iter().map(|it| int(*it)).collect())
}

/// A float.
pub fn float(it: f64) -> Operand {
    (Arg::Float(it), Value::Float(it))
}

/// A bool.
pub fn boolean(it: bool) -> Operand {
    (Arg::Bool(it), Value::Bool(it))
}

/// `None`.
pub fn none() -> Operand {
    (Arg::None, Value::None)
}

/// A string.
pub fn string(it: &str) -> Operand {
    (Arg::str(it), Value::Str(it.into()))
}

/// A dtype.
pub fn dtype(it: DType) -> Operand {
    (Arg::DType(it), Value::DType(it))
}
