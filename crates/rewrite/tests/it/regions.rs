//! Regions without gradients as graphs: `grad_nested` of `tests/fixtures/export/calls.jsonl`, which PyTorch made.

use tracefx_core::{DType, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId};
use tracefx_rewrite::{replace_autocast_with_hop, replace_set_grad_with_hop};

fn set_grad(graph: &mut Graph, is_enabled: bool) {
    graph.call_function("torch._C._set_grad_enabled", vec![Arg::Bool(is_enabled)], vec![]);
}

fn call(graph: &mut Graph, name: &str, args: &[Arg]) -> NodeId {
    let target = format!("torch.ops.aten.{name}");
    let name = name.split('.').next();
    graph.create_node(tracefx_ir::Opcode::CallFunction, &target, args.to_vec(), vec![], name).unwrap()
}

fn grad_nested() -> GraphModule {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    set_grad(&mut graph, false);
    set_grad(&mut graph, true);
    set_grad(&mut graph, false);
    let a = call(&mut graph, "mul.Tensor", &[x.into(), Arg::Int(2)]);
    set_grad(&mut graph, true);
    let b = call(&mut graph, "mul.Tensor", &[a.into(), Arg::Int(3)]);
    set_grad(&mut graph, false);
    let c = call(&mut graph, "add.Tensor", &[b.into(), a.into()]);
    // As a context, `set_grad_enabled` is set when it is made and when it is entered.
    set_grad(&mut graph, true);
    set_grad(&mut graph, true);
    set_grad(&mut graph, true);
    let d = call(&mut graph, "sin.default", &[c.into()]);
    set_grad(&mut graph, true);
    set_grad(&mut graph, false);
    let e = call(&mut graph, "add.Tensor", &[d.into(), x.into()]);
    graph.output(Arg::Tuple(vec![e.into()]));
    GraphModule::new(graph)
}

#[test]
fn regions_without_gradients_become_the_graphs_of_pytorch() -> Result<()> {
    let mut module = grad_nested();
    assert!(replace_set_grad_with_hop(&mut module, tracefx_ops::registry())?.modified);
    assert_eq!(module.graph.lint(Some(&module)), []);
    assert_eq!(
        module.graph.to_string(),
        "graph():
    %x : [num_users=2] = placeholder[target=x]
    %submod_11 : [num_users=1] = get_attr[target=submod_1]
    %wrap_with_set_grad_enabled : [num_users=0] = call_function[target=torch.ops.higher_order.wrap_with_set_grad_enabled](args = (False, %submod_11), kwargs = {})
    %submod_12 : [num_users=1] = get_attr[target=submod_3]
    %mul : [num_users=1] = call_function[target=torch.ops.higher_order.wrap_with_set_grad_enabled](args = (False, %submod_12, %x), kwargs = {})
    %getitem : [num_users=2] = call_function[target=operator.getitem](args = (%mul, 0), kwargs = {})
    %mul_1 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%getitem, 3), kwargs = {})
    %submod_13 : [num_users=1] = get_attr[target=submod_5]
    %add : [num_users=1] = call_function[target=torch.ops.higher_order.wrap_with_set_grad_enabled](args = (False, %submod_13, %mul_1, %getitem), kwargs = {})
    %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%add, 0), kwargs = {})
    %sin : [num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%getitem_1,), kwargs = {})
    %submod_14 : [num_users=1] = get_attr[target=submod_10]
    %add_1 : [num_users=1] = call_function[target=torch.ops.higher_order.wrap_with_set_grad_enabled](args = (False, %submod_14, %sin, %x), kwargs = {})
    %getitem_2 : [num_users=1] = call_function[target=operator.getitem](args = (%add_1, 0), kwargs = {})
    return (getitem_2,)"
    );
    let names: Vec<&str> = module.attributes.keys().map(|it| &**it).collect();
    assert_eq!(names, ["submod_1", "submod_3", "submod_5", "submod_10"]);
    assert_eq!(module.submodule("submod_1")?.graph.to_string(), "graph():\n    return ()");
    assert!(!replace_set_grad_with_hop(&mut module, tracefx_ops::registry())?.modified);
    Ok(())
}

#[test]
fn autocast_within_autocast_is_a_graph_of_the_graph() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let args = |is_enabled| vec![Arg::str("cpu"), Arg::DType(DType::BFloat16), Arg::Bool(is_enabled), Arg::Bool(false)];
    let outer = graph.call_function("torch.amp.autocast_mode._enter_autocast", args(true), vec![]);
    let product = call(&mut graph, "mul.Tensor", &[x.into(), x.into()]);
    let inner = graph.call_function("torch.amp.autocast_mode._enter_autocast", args(false), vec![]);
    let sum = call(&mut graph, "add.Tensor", &[product.into(), x.into()]);
    graph.call_function("torch.amp.autocast_mode._exit_autocast", vec![inner.into()], vec![]);
    graph.call_function("torch.amp.autocast_mode._exit_autocast", vec![outer.into()], vec![]);
    let neg = call(&mut graph, "neg.default", &[sum.into()]);
    graph.output(Arg::Tuple(vec![neg.into()]));
    let mut module = GraphModule::new(graph);
    assert!(replace_autocast_with_hop(&mut module, tracefx_ops::registry())?.modified);
    assert_eq!(module.graph.lint(Some(&module)), []);
    let Some(Attribute::Module(region)) = module.attributes.get("submod_1") else { panic!("{:?}", module.attributes) };
    assert!(matches!(region.attributes.get("submod_1"), Some(Attribute::Module(_))));
    for (_, it) in module.modules() {
        assert!(!it.graph.to_string().contains("autocast_mode"), "{}", it.graph);
    }
    Ok(())
}

/// PyTorch takes a region that calls control flow for none, since the graphs of that are read first.
#[test]
fn control_flow_belongs_to_its_region() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    set_grad(&mut graph, false);
    let (yes, no) = (graph.get_attr("true_graph_0"), graph.get_attr("false_graph_0"));
    let args = vec![Arg::Bool(true), yes.into(), no.into(), Arg::Tuple(vec![x.into()])];
    let cond = graph.call_function("torch.ops.higher_order.cond", args, vec![]);
    let chosen = graph.call_function("operator.getitem", vec![cond.into(), Arg::Int(0)], vec![]);
    set_grad(&mut graph, true);
    graph.output(Arg::Tuple(vec![chosen.into()]));
    let mut module = GraphModule::new(graph);
    for name in ["true_graph_0", "false_graph_0"] {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let sin = call(&mut graph, "sin.default", &[x.into()]);
        graph.output(Arg::Tuple(vec![sin.into()]));
        module.attributes.insert(name.into(), Attribute::Module(Box::new(GraphModule::new(graph))));
    }
    assert!(replace_set_grad_with_hop(&mut module, tracefx_ops::registry())?.modified);
    assert_eq!(module.graph.lint(Some(&module)), []);
    assert!(module.graph.to_string().contains("wrap_with_set_grad_enabled"), "{}", module.graph);
    let Some(Attribute::Module(region)) = module.attributes.get("submod_1") else { panic!("{:?}", module.attributes) };
    assert!(region.graph.to_string().contains("higher_order.cond"), "{}", region.graph);
    assert!(!region.graph.to_string().contains("_set_grad_enabled]"), "{}", region.graph);
    Ok(())
}
