//! One recorded case, and what is built of it.

use crate::compare::same_graph;
use serde_json::Value;
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_ir::{Attribute, Graph, GraphModule, TensorKind};
use tracefx_testing::build;

/// What a check finds: nothing, or what differs.
pub(crate) type Check = std::result::Result<(), String>;

/// A recorded case.
pub(crate) struct Case(Value);

impl Case {
    pub(crate) fn new(json: Value) -> Self {
        Case(json)
    }

    pub(crate) fn name(&self) -> &str {
        self.0["name"].as_str().unwrap_or_default()
    }

    /// A field, null where there is none.
    pub(crate) fn get(&self, field: &str) -> &Value {
        &self.0[field]
    }

    /// An option, null where there is none.
    pub(crate) fn option(&self, name: &str) -> &Value {
        &self.0["options"][name]
    }

    /// The module before the pass, with the attributes that were recorded.
    pub(crate) fn module(&self) -> GraphModule {
        let mut module = graphs_of(self.get("before"));
        for (path, about) in self.get("modules").as_object().into_iter().flatten() {
            if about["missing"] != Value::Bool(true) {
                module.set_attribute(path, attribute(about));
            }
        }
        module
    }
}

/// A module of the recorded graphs: one, or `main` with its children by their paths.
fn graphs_of(encoded: &Value) -> GraphModule {
    let main = &encoded["main"];
    if main.is_null() {
        return GraphModule::new(build(encoded));
    }
    let mut module = GraphModule::new(build(main));
    for (path, child) in children(encoded) {
        module.set_attribute(path, Attribute::Module(Box::new(GraphModule::new(build(child)))));
    }
    module
}

fn children(encoded: &Value) -> impl Iterator<Item = (&String, &Value)> {
    encoded.as_object().into_iter().flatten().filter(|(path, _)| *path != "main")
}

/// Whether a module has the recorded graphs: one, or `main` with its children by their paths.
pub(crate) fn same_graphs(module: &GraphModule, want: &Value) -> Check {
    if want["main"].is_null() {
        return same_graph(&module.graph, want, "after");
    }
    same_graph(&module.graph, &want["main"], "main")?;
    for (path, child) in children(want) {
        same_graph(&module.submodule(path).map_err(|it| it.to_string())?.graph, child, path)?;
    }
    Ok(())
}

/// Whether this was refused with this code.
pub(crate) fn refused<T>(result: Result<T>, code: Code) -> Check {
    match result {
        Ok(_) => Err("nothing was refused".to_owned()),
        Err(problem) if problem.code() == code => Ok(()),
        Err(problem) => Err(format!("refused with {problem}")),
    }
}

/// Whether a refusal is the one that was recorded: it has this code, and the first line of PyTorch's message.
pub(crate) fn same_error(case: &Case, problem: &Diagnostic, code: Code) -> Check {
    let recorded = case.get("error")["msg"].as_str().and_then(|it| it.lines().next());
    if problem.code() == code && recorded == Some(problem.message()) {
        return Ok(());
    }
    Err(format!("{problem} instead of {recorded:?}"))
}

/// Whether the modules that `is_made` holds of are those that were recorded.
pub(crate) fn submodules(case: &Case, module: &GraphModule, is_made: &dyn Fn(&str) -> bool) -> Check {
    let recorded = case.get("submodules").as_object().expect("sub-modules");
    for (name, graph) in recorded {
        same_graph(&module.submodule(name).map_err(|it| it.to_string())?.graph, graph, name)?;
    }
    let made = module.attributes.keys().filter(|it| is_made(it)).count();
    if made == recorded.len() { Ok(()) } else { Err(format!("{made} modules instead of {}", recorded.len())) }
}

/// A recorded parameter, tensor or module. Modules without a graph have an empty one, as hosts give them.
pub(crate) fn attribute(about: &Value) -> Attribute {
    let kind = about["kind"].as_str().expect("a kind");
    if kind != "Parameter" && kind != "Tensor" {
        let mut module = GraphModule::new(Graph::new());
        module.class_name = kind.into();
        if about["impure"] == Value::Bool(true) {
            module.meta.insert("is_impure".into(), "true".into());
        }
        return Attribute::Module(Box::new(module));
    }
    let sizes: Vec<usize> =
        about["shape"].as_array().expect("sizes").iter().map(|it| it.as_u64().expect("a size") as usize).collect();
    let dtype = DType::from_name(about["dtype"].as_str().expect("a dtype")).expect("a dtype");
    let tensor = Tensor::zeros(dtype, &sizes).expect("a small tensor");
    Attribute::Tensor { tensor, kind: if kind == "Parameter" { TensorKind::Parameter } else { TensorKind::Buffer } }
}
