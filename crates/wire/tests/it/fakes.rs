//! Tensors whose data is elsewhere: they cross in calls, and no file has them.

use tracefx_core::{Code, DType};
use tracefx_ir::{Attribute, FakeTensor, Graph, GraphModule, TensorKind, TensorMeta};
use tracefx_wire::{Limits, Options, decode_module, encode_edits, encode_module};

fn module() -> GraphModule {
    let mut graph = Graph::new();
    let weight = graph.get_attr("weight");
    graph.output(weight.into());
    let mut module = GraphModule::new(graph);
    let meta = TensorMeta::contiguous(DType::BFloat16, vec![2.into(), 3.into()]);
    let tensor = FakeTensor { meta, id: 7 };
    module.attributes.insert("weight".into(), Attribute::Fake { tensor, kind: TensorKind::Buffer });
    module
}

#[test]
fn a_call_carries_them() {
    let bytes = encode_module(&module(), &Options::CALL).unwrap();
    let read = decode_module(&bytes, &[], &Limits::default()).unwrap();
    let Some(Attribute::Fake { tensor, kind: TensorKind::Buffer }) = read.attributes.get("weight") else {
        panic!("a fake buffer: {:?}", read.attributes)
    };
    assert_eq!((tensor.id, tensor.meta.dtype, tensor.meta.sizes.len()), (7, DType::BFloat16, 2));
    assert_eq!(encode_module(&read, &Options::CALL).unwrap(), bytes);
}

#[test]
fn a_file_refuses_them() {
    let refused = encode_module(&module(), &Options::FILE).unwrap_err();
    assert_eq!(refused.code(), Code::GraphArgument);
    assert!(refused.message().contains("`weight`"), "{refused}");
}

#[test]
fn an_edit_script_of_nothing_keeps_all_nodes_in_one_step() {
    let (mut long, mut short) = (module(), module());
    for module in [&mut long, &mut short] {
        module.graph = Graph::new();
    }
    let x = long.graph.placeholder("x");
    (0..1000).for_each(|_| {
        long.graph.call_function("torch.neg", vec![x.into()], vec![]);
    });
    short.graph.placeholder("x");
    let len = |module: &mut GraphModule| {
        module.graph.track(0, 0);
        encode_edits(module).unwrap().0.len()
    };
    assert_eq!(len(&mut long), len(&mut short));
}
