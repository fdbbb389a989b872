//! The bytes of nodes, and other targets for them: `torch.fx.passes.graph_manipulation`.

use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Node, NodeId, Opcode, TensorKind, TensorMeta, Val};

/// How many bytes a node needs: `torch.fx.passes.graph_manipulation.size_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeBytes {
    /// The bytes of the result.
    pub output_size: u64,
    /// The bytes of the result and of the parameters of the module that is called, all in the dtype of the result.
    pub total_size: u64,
}

/// The size of every node before the output, by the index of its id: `get_size_of_all_nodes`.
///
/// # Errors
/// As those of [`get_size_of_node`].
pub fn get_size_of_all_nodes(module: &GraphModule) -> Result<Vec<Option<SizeBytes>>> {
    get_size_of_all_nodes_with(module, &|_| None)
}

/// As [`get_size_of_all_nodes`], where `meta_of` may know more of the tensors of nodes than the graph does.
///
/// # Errors
/// As those of [`get_size_of_node`].
pub fn get_size_of_all_nodes_with<'a>(
    module: &'a GraphModule,
    meta_of: &dyn Fn(NodeId) -> Option<&'a TensorMeta>,
) -> Result<Vec<Option<SizeBytes>>> {
    let graph = &module.graph;
    let mut sizes = vec![None; graph.id_bound()];
    // A module that is called often is walked once.
    let mut parameters: FxHashMap<&str, Option<u64>> = FxHashMap::default();
    for id in graph.nodes().take_while(|&it| graph.node(it).op() != Opcode::Output) {
        let node = graph.node(id);
        let elements = match parameters.get(&**node.target()) {
            Some(&elements) if node.op() == Opcode::CallModule => elements,
            _ => {
                let elements = parameters_of(module, node)?;
                if node.op() == Opcode::CallModule {
                    parameters.insert(node.target(), elements);
                }
                elements
            }
        };
        let meta = meta_of(id).map_or_else(|| get_tensor_meta(node), Ok)?;
        sizes[id.index()] = Some(size_with(node, meta, elements)?);
    }
    Ok(sizes)
}

/// What is known of the tensor that a node gives: `get_tensor_meta`.
///
/// # Errors
/// `PassFailed` where nothing is known, or the node gives no single tensor.
pub fn get_tensor_meta(node: &Node) -> Result<&TensorMeta> {
    match &node.meta.val {
        Some(Val::Tensor(meta)) => Ok(meta),
        _ => {
            let what = format!("Node {} has no tensor metadata associated with it!", node.name());
            Err(Diagnostic::new(Code::PassFailed, what)
                .node(&**node.name())
                .help("Check that shape propagation has run."))
        }
    }
}

/// The size of a node: `get_size_of_node`. As in torch.fx, parameters are counted in elements of the dtype of the result.
///
/// # Errors
/// `PassFailed` where the node gives no tensor that is known, or one whose size is symbolic; `AttributeMissing` where the
/// module that it calls is not there.
pub fn get_size_of_node(module: &GraphModule, node: NodeId) -> Result<SizeBytes> {
    let node = module.graph.node(node);
    size_with(node, get_tensor_meta(node)?, parameters_of(module, node)?)
}

/// The number of elements of the parameters of the module that a node calls.
fn parameters_of(module: &GraphModule, node: &Node) -> Result<Option<u64>> {
    match node.op() {
        Opcode::CallModule => Ok(parameter_elements(module.submodule(node.target())?)),
        _ => Ok(Some(0)),
    }
}

/// The size of a node with such a value, whose module has so many elements in parameters.
fn size_with(node: &Node, meta: &TensorMeta, parameters: Option<u64>) -> Result<SizeBytes> {
    let output = elements_of(meta);
    let bytes = |elements: Option<u64>| elements?.checked_mul(meta.dtype.size() as u64);
    let total = output.zip(parameters).and_then(|(output, parameters)| output.checked_add(parameters));
    bytes(output).zip(bytes(total)).map(|(output_size, total_size)| SizeBytes { output_size, total_size }).ok_or_else(
        || {
            let what = format!("the size of {} is not a number of bytes that is known", node.name());
            Diagnostic::new(Code::PassFailed, what)
                .node(&**node.name())
                .help("give the sizes of the inputs numbers before sizes are asked for")
        },
    )
}

/// The number of elements, where it is a number.
fn elements_of(meta: &TensorMeta) -> Option<u64> {
    meta.sizes.iter().try_fold(1_u64, |all, it| all.checked_mul(u64::try_from(it.as_int()?).ok()?))
}

/// The number of elements of the parameters of a module and of those in it. Each counts once, as in `named_parameters`.
fn parameter_elements(module: &GraphModule) -> Option<u64> {
    let mut fakes = FxHashSet::default();
    let mut tensors = FxHashSet::default();
    let mut elements = 0_u64;
    let mut open = vec![module];
    while let Some(module) = open.pop() {
        for attribute in module.attributes.values() {
            let more = match attribute {
                Attribute::Module(child) => {
                    open.push(child);
                    0
                }
                Attribute::Fake { tensor, kind: TensorKind::Parameter } if fakes.insert(tensor.id) => {
                    elements_of(&tensor.meta)?
                }
                Attribute::Tensor { tensor, kind: TensorKind::Parameter } => {
                    let place = tensor.storage().id();
                    let is_new = tensors.insert((place, tensor.offset(), tensor.sizes(), tensor.strides()));
                    if is_new { tensor.numel() as u64 } else { 0 }
                }
                Attribute::Fake { .. } | Attribute::Tensor { .. } => 0,
            };
            elements = elements.checked_add(more)?;
        }
    }
    Some(elements)
}

/// Gives every node of this op and target another op and target, with its name and arguments:
/// `replace_target_nodes_with`. The graph is made anew; the new nodes keep the notes of those that they stand for, but not
/// their values, which the new target may change.
///
/// ```
/// use tracefx_ir::{Graph, GraphModule, Opcode};
/// use tracefx_rewrite::replace_target_nodes_with;
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let sum = graph.call_function("operator.add", vec![x.into(), x.into()], vec![]);
/// graph.output(sum.into());
/// let mut module = GraphModule::new(graph);
/// let (old, new) = ((Opcode::CallFunction, "operator.add"), (Opcode::CallMethod, "mul"));
/// replace_target_nodes_with(&mut module, old, new).unwrap();
/// assert_eq!(
///     module.graph.to_string(),
///     "graph():
///     %x : [num_users=1] = placeholder[target=x]
///     %add : [num_users=1] = call_method[target=mul](args = (%x, %x), kwargs = {})
///     return add"
/// );
/// ```
///
/// # Errors
/// `GraphInvalid` where a node is used before its definition.
pub fn replace_target_nodes_with(module: &mut GraphModule, old: (Opcode, &str), new: (Opcode, &str)) -> Result<()> {
    let old_graph = &module.graph;
    let mut graph = Graph::new();
    let mut copies: Vec<Option<NodeId>> = vec![None; old_graph.id_bound()];
    for id in old_graph.nodes() {
        let node = old_graph.node(id);
        if let Some(late) = node.all_input_nodes().into_iter().find(|it| copies[it.index()].is_none()) {
            let late = old_graph.node(late).name();
            let what = format!("{} uses {late} before its definition", node.name());
            return Err(Diagnostic::new(Code::GraphInvalid, what).node(&**node.name()));
        }
        let mut map = |it: NodeId| copies[it.index()].map_or(Arg::None, Arg::from);
        let copy = if (node.op(), &**node.target()) == old {
            let args = node.args().iter().map(|it| it.map_nodes(&mut map)).collect();
            let kwargs = node.kwargs().iter().map(|(key, it)| (key.clone(), it.map_nodes(&mut map))).collect();
            let copy = graph.create_node(new.0, new.1, args, kwargs, Some(node.name()))?;
            *graph.meta_mut(copy) = tracefx_ir::Meta { val: None, ..node.meta.clone() };
            copy
        } else {
            graph.node_copy(node, &mut map)?
        };
        copies[id.index()] = Some(copy);
    }
    module.graph = graph;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_core::{DType, Tensor};
    use tracefx_sym::SymInt;

    fn give(module: &mut GraphModule, node: NodeId, dtype: DType, sizes: &[i64]) {
        let sizes = sizes.iter().map(|&it| SymInt::from(it)).collect();
        module.graph.meta_mut(node).val = Some(Val::Tensor(TensorMeta::contiguous(dtype, sizes)));
    }

    /// `relu(linear(x))` with a linear whose weight is there twice, and a buffer.
    fn linear() -> (GraphModule, [NodeId; 4]) {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let call = graph.create_node(Opcode::CallModule, "net.linear", vec![x.into()], vec![], None).unwrap();
        let relu = graph.call_function("torch.relu", vec![call.into()], vec![]);
        let output = graph.output(relu.into());
        let mut module = GraphModule::new(graph);
        let weight = Tensor::zeros(DType::Float32, &[3, 4]).unwrap();
        let bias = Tensor::zeros(DType::Float32, &[3]).unwrap();
        let parameter = |it: &Tensor| Attribute::Tensor { tensor: it.clone(), kind: TensorKind::Parameter };
        module.set_attribute("net.linear.weight", parameter(&weight));
        module.set_attribute("net.linear.bias", parameter(&bias));
        module.set_attribute("net.linear.tied", parameter(&weight));
        module.set_attribute("net.linear.steps", Attribute::Tensor { tensor: bias, kind: TensorKind::Buffer });
        give(&mut module, x, DType::Float32, &[2, 4]);
        give(&mut module, call, DType::Float32, &[2, 3]);
        give(&mut module, relu, DType::Float64, &[2, 3]);
        (module, [x, call, relu, output])
    }

    #[test]
    fn a_module_counts_its_parameters_once_and_no_buffers() {
        let (module, nodes) = linear();
        let sizes = get_size_of_all_nodes(&module).unwrap();
        let size = |output_size, total_size| Some(SizeBytes { output_size, total_size });
        let expected = [size(32, 32), size(24, 84), size(48, 48), None];
        assert_eq!(nodes.map(|it| sizes[it.index()]), expected);
        assert_eq!(Some(get_size_of_node(&module, nodes[1]).unwrap()), expected[1]);
    }

    #[test]
    fn what_has_no_size_is_said() {
        let (mut module, [x, call, ..]) = linear();
        module.graph.meta_mut(x).val = None;
        let missing = get_size_of_all_nodes(&module).unwrap_err();
        assert_eq!(missing.message(), "Node x has no tensor metadata associated with it!");
        give(&mut module, x, DType::Float32, &[i64::MAX, i64::MAX]);
        assert_eq!(get_size_of_node(&module, x).unwrap_err().code(), Code::PassFailed);
        module.attributes.clear();
        assert_eq!(get_size_of_node(&module, call).unwrap_err().code(), Code::AttributeMissing);
    }

    #[test]
    fn only_nodes_of_the_op_and_target_get_another() {
        let (mut module, _) = linear();
        let old = (Opcode::CallFunction, "torch.relu");
        replace_target_nodes_with(&mut module, (Opcode::CallMethod, old.1), (Opcode::CallMethod, "neg")).unwrap();
        assert!(module.graph.to_string().contains("call_function[target=torch.relu]"));
        replace_target_nodes_with(&mut module, old, (Opcode::CallMethod, "relu_")).unwrap();
        assert!(module.graph.lint(Some(&module)).is_empty());
        let relu = module.graph.find("relu").unwrap();
        assert_eq!(module.graph.node(relu).op(), Opcode::CallMethod);
        assert!(module.graph.node(relu).meta.val.is_none());
        let call = module.graph.find("net_linear").unwrap();
        assert!(module.graph.node(call).meta.val.is_some());
    }
}
