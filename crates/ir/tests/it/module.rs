use tracefx_core::{Code, DType, Tensor};
use tracefx_ir::{Attribute, Graph, GraphModule, TensorKind};

fn tensor() -> Attribute {
    let tensor = Tensor::zeros(DType::Float32, &[1]).expect("it is small");
    Attribute::Tensor { tensor, kind: TensorKind::Buffer }
}

/// `inner.leaf` is a tensor, and so is `a.b`, under a name with a dot; `inner.deep` is a module.
fn module() -> GraphModule {
    let mut inner = GraphModule::new(Graph::new());
    inner.attributes.insert("leaf".into(), tensor());
    inner.attributes.insert("deep".into(), Attribute::Module(Box::new(GraphModule::new(Graph::new()))));
    let mut owner = GraphModule::new(Graph::new());
    owner.attributes.insert("inner".into(), Attribute::Module(Box::new(inner)));
    owner.attributes.insert("a.b".into(), tensor());
    owner
}

#[test]
fn attributes_are_found_through_modules_and_by_names_with_dots() {
    let owner = module();
    for path in ["inner", "inner.leaf", "inner.deep", "a.b"] {
        assert!(owner.attribute(path).is_ok(), "{path}");
    }
    for path in ["", "a", "leaf", "inner.", "inner.none", "inner.leaf.more", "a.b.c"] {
        assert_eq!(owner.attribute(path).map(|_| ()).map_err(|it| it.code()), Err(Code::AttributeMissing), "{path}");
    }
}

#[test]
fn a_tensor_is_not_a_module() {
    let owner = module();
    assert!(owner.submodule("inner.deep").is_ok());
    assert_eq!(owner.submodule("inner.leaf").map(|_| ()).map_err(|it| it.code()), Err(Code::AttributeMissing));
}

#[test]
fn modules_come_with_their_paths_parents_first() {
    let owner = module();
    let paths: Vec<String> = owner.modules().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["", "inner", "inner.deep"]);
}

#[test]
fn an_attribute_is_put_into_modules_that_are_made_for_it() {
    let mut owner = module();
    owner.set_attribute("inner.more", tensor());
    owner.set_attribute("new.deeper.leaf", tensor());
    owner.set_attribute("inner.leaf.under", tensor());
    for path in ["inner.deep", "inner.more", "new.deeper.leaf", "inner.leaf.under"] {
        assert!(owner.attribute(path).is_ok(), "{path}");
    }
    assert_eq!(&*owner.submodule("new.deeper").expect("it was made").class_name, "Module");
}
