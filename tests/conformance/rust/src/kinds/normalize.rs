use crate::case::{Case, Check, refused};
use crate::compare::in_places;
use serde_json::Value;
use tracefx_core::Code;
use tracefx_ir::{Arg, Graph, NodeId};
use tracefx_ops::registry;
use tracefx_rewrite::{ArgumentType, ArgumentTypes, CallArguments, NormalizeOptions, Normalizer};
use tracefx_testing::{by_name, decode_args, decode_kwargs};

/// The functions whose cases were recorded with the types of their positional arguments.
const TYPED: &[&str] = &["torch.add", "torch.sum", "torch.flatten", "torch.clamp", "torch.topk"];

/// The arguments of a call in one form.
pub(crate) fn check(case: &Case) -> Check {
    let target = case.option("target").as_str().expect("a function");
    let mut graph = Graph::new();
    let (x, y) = (graph.placeholder("x"), graph.placeholder("y"));
    [x, y].into_iter().for_each(|it| graph.set_type(it, Some("torch.Tensor".into())).expect("it is there"));
    let find = by_name(&graph);
    let arguments = |call: &Value| (decode_args(&find, &call["args"]), decode_kwargs(&find, &call["kwargs"]));
    let (args, kwargs) = arguments(case.get("before"));
    let types = args.iter().map(|it| ArgumentType::of(it, &graph)).collect();
    let options = NormalizeOptions {
        only_kwargs: case.option("to_kwargs") == &Value::Bool(true),
        types: TYPED.contains(&target).then_some(ArgumentTypes { args: types, kwargs: Vec::new() }),
    };
    let call = CallArguments { args: &args, kwargs: &kwargs };
    let found = Normalizer::new(registry()).function(target, call, &options);
    if !case.get("error").is_null() {
        return refused(found, Code::SchemaMismatch);
    }
    let text = |args: &[Arg], kwargs: &[(tracefx_ir::Str, Arg)]| {
        let text = |it: &Arg| in_places(it, &|it: NodeId| Some(it.index()));
        let args: Vec<String> = args.iter().map(text).collect();
        let kwargs: Vec<String> = kwargs.iter().map(|(key, it)| format!("{key}={}", text(it))).collect();
        format!("{args:?} {kwargs:?}")
    };
    let got = found.map_err(|it| it.to_string())?.map(|it| text(&it.args, &it.kwargs));
    let want = Some(case.get("after")).filter(|it| !it.is_null()).map(|it| {
        let (args, kwargs) = arguments(it);
        text(&args, &kwargs)
    });
    if got == want { Ok(()) } else { Err(format!("{got:?} instead of {want:?}")) }
}
