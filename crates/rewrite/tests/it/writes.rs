//! What passes leave out because of a write: what the write could change, and nothing that comes before or after it.

use crate::build::module;
use tracefx_core::{DType, Tensor};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, TensorKind, TensorMeta, Val};
use tracefx_ops::registry;
use tracefx_rewrite::{CsePass, Pass, PassResult, fuse_batch_norm, linear_permute_fusion, merge_matmul};

fn aten(graph: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    graph.call_function(&format!("torch.ops.aten.{name}"), args, vec![])
}

fn write_to(graph: &mut Graph, name: &str, to: NodeId) {
    aten(graph, name, vec![to.into()]);
}

fn convolution(graph: &mut Graph, input: NodeId) -> NodeId {
    let weight = graph.get_attr("weight");
    aten(graph, "conv2d.default", vec![input.into(), weight.into()])
}

fn norm(graph: &mut Graph, input: NodeId) -> NodeId {
    let statistics = ["mean", "variance"].map(|it| Arg::Node(graph.get_attr(it)));
    let mut args = vec![input.into(), Arg::None, Arg::None];
    args.extend(statistics);
    args.extend([Arg::Bool(false), Arg::Float(0.1), Arg::Float(1e-5), Arg::Bool(false)]);
    aten(graph, "batch_norm.default", args)
}

fn with_parameters(mut module: GraphModule) -> GraphModule {
    for (name, sizes) in [("weight", &[2, 2, 1, 1][..]), ("mean", &[2]), ("variance", &[2])] {
        let tensor = Tensor::from_slice(&vec![1.0f32; sizes.iter().product()], sizes).unwrap();
        module.set_attribute(name, Attribute::Tensor { tensor, kind: TensorKind::Buffer });
    }
    module
}

fn count(module: &GraphModule, target: &str) -> usize {
    module.graph.find_nodes(Opcode::CallFunction, &format!("torch.ops.aten.{target}")).count()
}

fn reasons(result: &PassResult) -> Vec<&str> {
    result.left_out.iter().map(|it| &*it.reason).collect()
}

/// The block of a residual network, whose activations work in place.
#[test]
fn normalizations_are_fused_that_activations_in_place_follow() {
    let mut module = with_parameters(module(|graph| {
        let mut x = graph.placeholder("x");
        for _ in 0..2 {
            let first = convolution(graph, x);
            let first = norm(graph, first);
            let relu = aten(graph, "relu_.default", vec![first.into()]);
            let second = convolution(graph, relu);
            let second = norm(graph, second);
            let sum = aten(graph, "add_.Tensor", vec![second.into(), x.into()]);
            x = aten(graph, "relu_.default", vec![sum.into()]);
        }
        x.into()
    }));
    let result = fuse_batch_norm(&mut module, registry()).unwrap();
    assert_eq!((count(&module, "batch_norm.default"), reasons(&result)), (0, vec![]));
    assert!(result.modified && module.graph.lint(Some(&module)).is_empty());
    assert!(!fuse_batch_norm(&mut module, registry()).unwrap().modified);
}

#[test]
fn a_write_between_a_layer_and_its_normalization_keeps_them_apart() {
    let mut module = with_parameters(module(|graph| {
        let x = graph.placeholder("x");
        let layer = convolution(graph, x);
        let view = aten(graph, "detach.default", vec![x.into()]);
        aten(graph, "relu_.default", vec![view.into()]);
        norm(graph, layer).into()
    }));
    let result = fuse_batch_norm(&mut module, registry()).unwrap();
    assert_eq!(reasons(&result), ["`relu__default` writes to what `conv2d_default` takes, between them"]);
    assert_eq!((&*result.left_out[0].node, result.modified), ("batch_norm_default", false));
}

#[test]
fn a_switch_between_a_layer_and_its_normalization_keeps_them_apart() {
    let mut module = with_parameters(module(|graph| {
        let x = graph.placeholder("x");
        let names = ["mean", "variance"].map(|it| graph.get_attr(it));
        let layer = convolution(graph, x);
        graph.call_function("torch._C._set_grad_enabled", vec![Arg::Bool(false)], vec![]);
        let mut args = vec![layer.into(), Arg::None, Arg::None];
        args.extend(names.map(Arg::Node));
        args.extend([Arg::Bool(false), Arg::Float(0.1), Arg::Float(1e-5), Arg::Bool(false)]);
        aten(graph, "batch_norm.default", args).into()
    }));
    let result = fuse_batch_norm(&mut module, registry()).unwrap();
    assert_eq!(reasons(&result), ["`_set_grad_enabled` switches how `conv2d_default` computes, between them"]);
}

/// The same memory under another name, which a write reaches after the layer, and no longer after the normalization.
#[test]
fn a_write_to_tied_memory_is_one_to_a_parameter() {
    let build = |name: &'static str| {
        let mut module = with_parameters(module(|graph| {
            let x = graph.placeholder("x");
            let layer = convolution(graph, x);
            let tied = graph.get_attr(name);
            aten(graph, "relu_.default", vec![tied.into()]);
            norm(graph, layer).into()
        }));
        let Attribute::Tensor { tensor, .. } = module.attribute("weight").unwrap().clone() else { panic!() };
        module.set_attribute("tied", Attribute::Tensor { tensor, kind: TensorKind::Parameter });
        module.set_attribute(
            "other",
            Attribute::Tensor { tensor: Tensor::from_slice(&[1.0f32], &[1]).unwrap(), kind: TensorKind::Buffer },
        );
        fuse_batch_norm(&mut module, registry()).unwrap()
    };
    assert_eq!(reasons(&build("tied")), ["the weight `weight` is written to by `relu__default`"]);
    assert!(build("other").modified);
}

#[test]
fn a_normalization_says_why_it_stays() {
    let reason = |build: &dyn Fn(&mut Graph) -> NodeId| {
        let mut module = with_parameters(module(|graph| build(graph).into()));
        let result = fuse_batch_norm(&mut module, registry()).unwrap();
        assert!(!result.modified && result.left_out.len() == 1, "{}", module.graph);
        result.left_out[0].reason.clone()
    };
    let of_input = |graph: &mut Graph| {
        let x = graph.placeholder("x");
        norm(graph, x)
    };
    assert_eq!(reason(&of_input), "`x`, which it normalizes, is no convolution, linear layer or addmm");
    let in_training = |graph: &mut Graph| {
        let x = graph.placeholder("x");
        let layer = convolution(graph, x);
        let norm = norm(graph, layer);
        let mut args = graph.node(norm).args().to_vec();
        args[5] = Arg::Bool(true);
        graph.set_args(norm, args).unwrap();
        norm
    };
    assert_eq!(reason(&in_training), "it is in training: put the model into evaluation (`eval()`) before it is traced");
    let of_unknown_weight = |graph: &mut Graph| {
        let [x, weight] = ["x", "w"].map(|it| graph.placeholder(it));
        let layer = aten(graph, "conv2d.default", vec![x.into(), weight.into()]);
        norm(graph, layer)
    };
    assert_eq!(reason(&of_unknown_weight), "the weight `w` is an input and no constant of the module");
    let shared = |graph: &mut Graph| {
        let x = graph.placeholder("x");
        let layer = convolution(graph, x);
        let norm = norm(graph, layer);
        aten(graph, "add.Tensor", vec![norm.into(), layer.into()])
    };
    assert_eq!(reason(&shared), "something else uses `conv2d_default`, too");
    let linear = |graph: &mut Graph| {
        let x = graph.placeholder("x");
        let weight = graph.get_attr("weight");
        let layer = aten(graph, "linear.default", vec![x.into(), weight.into()]);
        norm(graph, layer)
    };
    assert_eq!(
        reason(&linear),
        "what `linear_default` gives is not known to have two dimensions: propagate shapes first"
    );
}

/// How many of two equal calls are left, of which the first comes after a write, and the second perhaps after another.
fn merged(between: bool, after: bool) -> usize {
    let mut module = module(|graph| {
        let x = graph.placeholder("x");
        write_to(graph, "relu_.default", x);
        let first = aten(graph, "sin.default", vec![x.into()]);
        if between {
            write_to(graph, "relu_.default", x);
        }
        let second = aten(graph, "sin.default", vec![x.into()]);
        write_to(graph, "relu_.default", x);
        if after {
            write_to(graph, "relu_.default", second);
        }
        Arg::Tuple(vec![first.into(), second.into()])
    });
    CsePass::new(registry()).call(&mut module).unwrap();
    count(&module, "sin.default")
}

#[test]
fn equal_calls_are_merged_unless_a_write_tells_them_apart() {
    assert_eq!(merged(false, false), 1);
    assert_eq!(merged(true, false), 2);
    assert_eq!(merged(false, true), 2);
}

/// Two attributes of one memory: what is written to one changes the other.
#[test]
fn calls_on_both_sides_of_a_write_to_tied_memory_are_not_merged() {
    let mut module = with_parameters(module(|graph| {
        let weight = graph.get_attr("weight");
        let first = aten(graph, "sin.default", vec![weight.into()]);
        let tied = graph.get_attr("tied");
        aten(graph, "relu_.default", vec![tied.into()]);
        let second = aten(graph, "sin.default", vec![weight.into()]);
        Arg::Tuple(vec![first.into(), second.into()])
    }));
    let Attribute::Tensor { tensor, .. } = module.attribute("weight").unwrap().clone() else { panic!() };
    module.set_attribute("tied", Attribute::Tensor { tensor, kind: TensorKind::Parameter });
    CsePass::new(registry()).call(&mut module).unwrap();
    assert_eq!(count(&module, "sin.default"), 2);
}

#[test]
fn views_of_what_was_written_to_before_are_merged() {
    let mut module = module(|graph| {
        let x = graph.placeholder("x");
        aten(graph, "relu_.default", vec![x.into()]);
        let views = [0, 1].map(|_| aten(graph, "t.default", vec![x.into()]));
        Arg::Tuple(views.map(Arg::Node).to_vec())
    });
    CsePass::new(registry()).call(&mut module).unwrap();
    assert_eq!(count(&module, "t.default"), 1);
}

/// How many products are left of two, with writes around them.
fn products(write: &str) -> (usize, PassResult) {
    let mut module = module(|graph| {
        let [a, b, w] = ["a", "b", "w"].map(|it| graph.placeholder(it));
        [a, b, w].into_iter().for_each(|it| write_to(graph, "relu_.default", it));
        let products = [a, b].map(|it| aten(graph, "mm.default", vec![it.into(), w.into()]));
        products.into_iter().for_each(|it| write_to(graph, write, it));
        aten(graph, "relu_.default", vec![a.into()]);
        Arg::Tuple(products.map(Arg::Node).to_vec())
    });
    let result = merge_matmul(&mut module, registry()).unwrap();
    (count(&module, "mm.default"), result)
}

#[test]
fn products_are_merged_with_writes_before_and_after_them() {
    let (n_left, result) = products("relu_.default");
    assert_eq!((n_left, reasons(&result)), (1, vec![]));
    // Both would be views of one memory, which neither may change.
    let (n_left, result) = products("t_.default");
    assert_eq!(
        (n_left, reasons(&result)),
        (
            2,
            vec![
                "`t__default` may change its sizes or its memory",
                "`t__default_1` may change its sizes or its memory",
            ]
        )
    );
}

/// Programs are refused in which the value of a node is not known.
#[test]
fn what_a_merged_product_is_made_of_is_known_where_the_products_are() {
    let meta = |rows: i64, columns: i64| TensorMeta::contiguous(DType::Float32, vec![rows.into(), columns.into()]);
    let mut module = module(|graph| {
        let [a, b, w] = ["a", "b", "w"].map(|it| graph.placeholder(it));
        let products = [a, b].map(|it| aten(graph, "mm.default", vec![it.into(), w.into()]));
        for (id, rows, columns) in [(a, 2, 4), (b, 5, 4), (w, 4, 3), (products[0], 2, 3), (products[1], 5, 3)] {
            graph.meta_mut(id).val = Some(Val::Tensor(meta(rows, columns)));
        }
        Arg::Tuple(products.map(Arg::Node).to_vec())
    });
    assert!(merge_matmul(&mut module, registry()).unwrap().modified);
    let val = |name: &str| module.graph.node(module.graph.find(name).unwrap()).meta.val.clone();
    let parts = [meta(2, 3), TensorMeta { storage_offset: 6.into(), ..meta(5, 3) }].map(Val::Tensor);
    assert_eq!((val("sym_size_int"), val("sym_size_int_1")), (Some(Val::Int(2.into())), Some(Val::Int(5.into()))));
    assert_eq!(
        (val("cat_default"), val("mm_default_2")),
        (Some(Val::Tensor(meta(7, 4))), Some(Val::Tensor(meta(7, 3))))
    );
    assert_eq!(val("split_with_sizes_default"), Some(Val::Seq { items: parts.to_vec(), is_tuple: false }));
    assert_eq!((val("getitem"), val("getitem_1")), (Some(parts[0].clone()), Some(parts[1].clone())));
}

#[test]
fn a_linear_layer_is_turned_whose_swapped_result_is_written_to() {
    let swapped = |then: &str, between: bool| {
        let mut module = with_parameters(module(|graph| {
            let x = graph.placeholder("x");
            let weight = graph.get_attr("weight");
            let layer = aten(graph, "linear.default", vec![x.into(), weight.into()]);
            if between {
                aten(graph, "relu_.default", vec![x.into()]);
            }
            let swap = aten(graph, "transpose.int", vec![layer.into(), Arg::Int(1), Arg::Int(2)]);
            let args = if then == "reshape.default" {
                vec![swap.into(), Arg::List(vec![Arg::Int(-1)])]
            } else {
                vec![swap.into()]
            };
            let then = aten(graph, then, args);
            aten(graph, "relu_.default", vec![then.into()]);
            Arg::Tuple(vec![swap.into(), then.into()])
        }));
        let meta = TensorMeta::contiguous(DType::Float32, vec![2.into(), 3.into(), 2.into()]);
        let linear = module.graph.find("linear_default").unwrap();
        for name in ["x", "linear_default"] {
            let id = module.graph.find(name).unwrap();
            module.graph.meta_mut(id).val = Some(Val::Tensor(meta.clone()));
        }
        let result = linear_permute_fusion(&mut module, registry()).unwrap();
        assert_eq!(result.modified, !module.graph.contains(linear));
        result
    };
    assert!(swapped("relu_.default", false).modified);
    assert_eq!(
        reasons(&swapped("relu_.default", true)),
        ["`relu__default` writes to what `linear_default` takes, or switches how it computes, between them"]
    );
    // A view of what lies in order, and else a copy, so that it sees the write or does not.
    assert_eq!(
        reasons(&swapped("reshape.default", false)),
        ["what is computed from it is a view or a copy by the order of memory, and written to"]
    );
}
