//! Programs for tests, made of calls, and models as text.

use tracefx_core::DType;
use tracefx_export::{Argument, ExportedProgram, GraphSignature, InputKind, InputSpec, OutputKind, OutputSpec};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Str, TensorMeta, Val};
use tracefx_onnx::proto::{DimensionValue, GraphProto, ModelProto, ValueInfoProto};
use tracefx_sym::{SymInt, Symbol};

/// A graph under construction, with the values that are noted of its nodes.
pub(crate) struct Program {
    pub(crate) graph: Graph,
    inputs: Vec<NodeId>,
}

/// What is noted of a tensor.
pub(crate) fn tensor(dtype: DType, sizes: &[SymInt]) -> Val {
    Val::Tensor(TensorMeta::contiguous(dtype, sizes.to_vec()))
}

/// What is noted of a float32 tensor of known sizes.
pub(crate) fn floats(sizes: &[i64]) -> Val {
    tensor(DType::Float32, &sizes.iter().map(|&it| it.into()).collect::<Vec<_>>())
}

/// The symbol of a dynamic size.
pub(crate) fn symbol(name: &str) -> SymInt {
    SymInt::from(Symbol::size(name))
}

impl Program {
    pub(crate) fn new() -> Self {
        Program { graph: Graph::new(), inputs: Vec::new() }
    }

    pub(crate) fn input(&mut self, name: &str, val: Val) -> NodeId {
        let id = self.graph.placeholder(name);
        self.graph.meta_mut(id).val = Some(val);
        self.inputs.push(id);
        id
    }

    pub(crate) fn call(&mut self, op: &str, args: Vec<Arg>, kwargs: Vec<(Str, Arg)>, val: Val) -> NodeId {
        let target = if op.starts_with("aten.") || op.starts_with("higher_order.") {
            format!("torch.ops.{op}")
        } else {
            op.to_string()
        };
        let id = self.graph.call_function(&target, args, kwargs);
        self.graph.meta_mut(id).val = Some(val);
        id
    }

    /// The element of a call of several results.
    pub(crate) fn item(&mut self, of: NodeId, at: i64, val: Val) -> NodeId {
        self.call("operator.getitem", vec![of.into(), Arg::Int(at)], vec![], val)
    }

    /// The program of these results.
    pub(crate) fn finish(mut self, results: &[NodeId]) -> ExportedProgram {
        self.graph.output(Arg::Tuple(results.iter().map(|&it| it.into()).collect()));
        let argument = |it: NodeId| match &self.graph.node(it).meta.val {
            Some(Val::Int(_)) => Argument::SymInt(self.graph.node(it).name().clone()),
            Some(Val::Float(_)) => Argument::SymFloat(self.graph.node(it).name().clone()),
            Some(Val::Bool(_)) => Argument::SymBool(self.graph.node(it).name().clone()),
            _ => Argument::Tensor(self.graph.node(it).name().clone()),
        };
        let input =
            |it: &NodeId| InputSpec { kind: InputKind::UserInput, arg: argument(*it), target: None, persistent: None };
        let output = |it: &NodeId| OutputSpec { kind: OutputKind::UserOutput, arg: argument(*it), target: None };
        let signature = GraphSignature {
            input_specs: self.inputs.iter().map(input).collect(),
            output_specs: results.iter().map(output).collect(),
        };
        ExportedProgram::new(GraphModule::new(self.graph), signature)
    }
}

/// A model as people read it: inputs, constants, nodes, outputs.
pub(crate) fn text(model: &ModelProto) -> String {
    graph_text(model.graph.as_ref().expect("a model has a graph"), "")
}

fn graph_text(graph: &GraphProto, indent: &str) -> String {
    let mut res = String::new();
    for it in &graph.input {
        res += &format!("{indent}input {}\n", described(it));
    }
    for it in &graph.initializer {
        res += &format!(
            "{indent}{}: {} {:?} = {:?}\n",
            it.name,
            it.data_type,
            it.dims,
            numbers(it.data_type, &it.raw_data)
        );
    }
    for it in &graph.node {
        let attributes: Vec<String> = it
            .attribute
            .iter()
            .filter(|it| it.g.is_none())
            .map(|it| {
                let text = it.s.as_ref().map(|it| String::from_utf8_lossy(it).into_owned());
                let value = text.or(it.i.map(|it| it.to_string())).or(it.f.map(|it| it.to_string()));
                format!(" {}={}", it.name, value.unwrap_or_else(|| format!("{:?}", it.ints)))
            })
            .collect();
        res += &format!(
            "{indent}{} = {}({}){}\n",
            it.output.join(", "),
            it.op_type,
            it.input.join(", "),
            attributes.concat()
        );
        for (name, graph) in it.attribute.iter().filter_map(|it| Some((&it.name, it.g.as_ref()?))) {
            res += &format!("{indent}  {name}:\n{}", graph_text(graph, &format!("{indent}    ")));
        }
    }
    for it in &graph.output {
        res += &format!("{indent}output {}\n", described(it));
    }
    res
}

fn described(it: &ValueInfoProto) -> String {
    let tensor = it.r#type.as_ref().and_then(|it| it.tensor_type.as_ref()).expect("values are tensors");
    let dims = tensor.shape.as_ref().map(|shape| {
        let dim = |it: &Option<DimensionValue>| match it {
            Some(DimensionValue::DimValue(it)) => it.to_string(),
            Some(DimensionValue::DimParam(it)) => it.clone(),
            None => "?".to_string(),
        };
        shape.dim.iter().map(|it| dim(&it.value)).collect::<Vec<_>>().join(", ")
    });
    let dims = dims.map_or(String::new(), |it| format!(" [{it}]"));
    format!("{}: {}{dims}", it.name, tensor.elem_type)
}

/// The numbers of small constants.
fn numbers(data_type: i32, bytes: &[u8]) -> Vec<f64> {
    match data_type {
        1 => bytes.as_chunks().0.iter().map(|it| f64::from(f32::from_le_bytes(*it))).collect(),
        7 => bytes.as_chunks().0.iter().map(|it| i64::from_le_bytes(*it) as f64).collect(),
        _ => bytes.iter().map(|&it| f64::from(it)).collect(),
    }
}
