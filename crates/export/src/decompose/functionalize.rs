//! `torch.func.functionalize`: a graph without writes, in the operators that it has.

use super::decomposer::Decomposer;
use super::functional::Functional;
use super::table::DecompositionTable;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, GraphModule, NodeId, Opcode};
use tracefx_ops::{Infer, Op, Propagation, Registry, Symbols, Traced, Value};

/// What [`functionalize`] takes out of a graph: `functionalize(f, remove=...)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remove {
    /// Writes; views stay.
    #[default]
    Mutations,
    /// Writes, and views as well: they become copies, such as `view_copy`.
    MutationsAndViews,
}

/// The same module without writes: `torch.func.functionalize`. Each operator in place becomes the functional one, whoever
/// looks at the same storage gets the new values by views taken again, and what was written to an input or to a tensor of
/// the module is copied into it at the end. Other operators stay as they are, and nothing is dropped.
///
/// The inputs must say what they are (`meta.val`).
///
/// # Errors
/// `PassFailed` where an input does not say what it is; `NotImplemented` for operators that are not known and writes that cannot be made values; else what a shape rule refuses.
pub fn functionalize(module: &GraphModule, registry: &Registry, remove: Remove) -> Result<GraphModule> {
    let mut nodes = module.graph.nodes().map(|it| module.graph.node(it));
    if let Some(input) = nodes.find(|it| it.op() == Opcode::Placeholder && it.meta.val.is_none()) {
        let what = format!("nothing is known of the input `{}`, on which the writes may depend", input.name());
        return Err(Diagnostic::new(Code::PassFailed, what)
            .node(&**input.name())
            .help("run FakeTensorProp or ShapeProp on the module first"));
    }
    let mut table = DecompositionTable::empty_of(registry);
    // As in PyTorch, where operators that are made of others are gone when writes are looked at, such as a `reshape`.
    let is_made_of_others = |it: &&Op| {
        it.def.decompose.is_some() && (matches!(it.def.infer, Infer::Composite) || it.def.write_back.is_none())
    };
    for op in registry.ops().into_iter().filter(|it| it.may_alias()).filter(is_made_of_others) {
        table.insert(&op.name)?;
    }
    let symbols = Symbols::default();
    let mut functional = Functional::new(&table, Propagation::new(registry, &symbols));
    functional.are_views_copied = remove == Remove::MutationsAndViews;
    let (mut res, results, inputs) = Decomposer::new(&mut functional).graph(module)?;
    let output = module.graph.output_node().map(|it| module.graph.node(it));
    let shape = output.and_then(|it| it.args().first()).unwrap_or(&Arg::None);
    let mut results = results.into_iter();
    let result = shaped(&mut functional, shape, &mut results)?;
    let new = functional.recorder.graph_mut();
    let placeholders: Vec<NodeId> = new.nodes().filter(|&it| new.node(it).op() == Opcode::Placeholder).collect();
    let inputs = placeholders.into_iter().zip(inputs.into_iter().map(|(_, input)| input));
    let held = std::mem::take(&mut functional.held).into_iter().map(|(_, node, value)| (node, value));
    for (target, value) in inputs.chain(held).collect::<Vec<_>>() {
        let Value::Tensor(tensor) = value else { continue };
        if functional.is_written(tensor) {
            let current = functional.current(&value)?;
            let args = vec![Arg::Node(target), functional.recorder.arg(&current)?];
            let val = functional.recorder.graph_mut().node(target).meta.val.clone();
            functional.recorder.copy("torch.ops.aten.copy_.default", args, Vec::new(), val)?;
        }
    }
    let mut graph = functional.recorder.finish();
    let new = graph.output(result);
    if let Some(node) = output {
        graph.meta_mut(new).entries = node.meta.entries.clone();
        graph.meta_mut(new).origin = node.meta.origin;
    }
    res.graph = graph.compacted();
    Ok(res)
}

/// What the graph returns, in the shape that the old one gave it.
fn shaped(functional: &mut Functional<'_>, shape: &Arg, results: &mut dyn Iterator<Item = Traced>) -> Result<Arg> {
    let items = |functional: &mut Functional<'_>, items: &[Arg], results: &mut dyn Iterator<Item = Traced>| {
        items.iter().map(|it| one(functional, it, results)).collect::<Result<Vec<_>>>()
    };
    match shape {
        Arg::List(it) => items(functional, it, results).map(Arg::List),
        Arg::Tuple(it) => items(functional, it, results).map(Arg::Tuple),
        _ => one(functional, shape, results),
    }
}

fn one(functional: &mut Functional<'_>, shape: &Arg, results: &mut dyn Iterator<Item = Traced>) -> Result<Arg> {
    let missing = || Diagnostic::new(Code::GraphInvalid, "the graph returns fewer values than its output has");
    let value = results.next().ok_or_else(missing)?;
    match (shape, &value) {
        (Arg::List(_) | Arg::Tuple(_), Value::List(items)) => shaped(functional, shape, &mut items.clone().into_iter()),
        (_, _) => {
            let current = functional.current(&value)?;
            functional.recorder.arg(&current)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_core::DType;
    use tracefx_ir::{Graph, TensorMeta, Val};
    use tracefx_ops::registry;

    fn module(val: Option<Val>) -> GraphModule {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        graph.meta_mut(x).val = val;
        let args = vec![Arg::Node(x), Arg::Int(1)];
        graph.call_function("torch.ops.aten.add_.Tensor", args, vec![]);
        graph.output(Arg::Node(x));
        GraphModule::new(graph)
    }

    #[test]
    fn what_was_written_to_an_input_is_copied_back() {
        let meta = TensorMeta::contiguous(DType::Float32, vec![2.into()]);
        let res = functionalize(&module(Some(Val::Tensor(meta))), registry(), Remove::Mutations).unwrap();
        assert_eq!(targets(&res), ["x", "torch.ops.aten.add.Tensor", "torch.ops.aten.copy_.default", "output"]);
        assert!(res.graph.lint(None).is_empty());
    }

    fn targets(module: &GraphModule) -> Vec<&str> {
        module.graph.nodes().map(|it| &**module.graph.node(it).target()).collect()
    }

    /// `add_(call(x), 1)`, of two by three numbers whose strides are given.
    fn written_through(target: &str, args: Vec<Arg>, strides: [i64; 2]) -> Result<GraphModule> {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let mut meta = TensorMeta::contiguous(DType::Float32, vec![2.into(), 3.into()]);
        meta.strides = strides.map(Into::into).to_vec();
        graph.meta_mut(x).val = Some(Val::Tensor(meta));
        let seen = graph.call_function(target, std::iter::once(x.into()).chain(args).collect(), vec![]);
        graph.call_function("torch.ops.aten.add_.Scalar", vec![seen.into(), Arg::Int(1)], vec![]);
        graph.output(seen.into());
        functionalize(&GraphModule::new(graph), registry(), Remove::Mutations)
    }

    #[test]
    fn a_write_through_a_reshape_is_one_to_what_it_looks_at_or_to_a_copy() {
        let written =
            |strides| written_through("torch.ops.aten.reshape.default", vec![Arg::List(vec![Arg::Int(6)])], strides);
        let (view, copy) = (written([3, 1]).unwrap(), written([1, 2]).unwrap());
        let aten = ["view.default", "add.Scalar", "view.default", "view.default", "copy_.default"];
        let aten = aten.map(|it| format!("torch.ops.aten.{it}"));
        assert_eq!(targets(&view)[1..6], aten);
        let aten = ["clone.default", "_unsafe_view.default", "add.Scalar"].map(|it| format!("torch.ops.aten.{it}"));
        assert_eq!(targets(&copy)[1..4], aten);
        assert_eq!(targets(&copy)[4], "output");
    }

    #[test]
    fn a_long_chain_of_views_is_kept_once() {
        const N: usize = 20_000;
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let meta = TensorMeta::contiguous(DType::Float32, vec![2.into()]);
        graph.meta_mut(x).val = Some(Val::Tensor(meta));
        let mut last = x;
        for _ in 0..N {
            last = graph.call_function("torch.ops.aten.alias.default", vec![last.into()], vec![]);
        }
        graph.output(last.into());
        let res = functionalize(&GraphModule::new(graph), registry(), Remove::Mutations).unwrap();
        assert_eq!(res.graph.len(), N + 2);
    }

    #[test]
    fn views_that_are_all_taken_again_end_at_a_limit() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let meta = TensorMeta::contiguous(DType::Float32, vec![2.into()]);
        graph.meta_mut(x).val = Some(Val::Tensor(meta));
        let mut views = vec![x];
        for _ in 0..200 {
            let last = views[views.len() - 1];
            views.push(graph.call_function("torch.ops.aten.alias.default", vec![last.into()], vec![]));
        }
        graph.call_function("torch.ops.aten.add_.Scalar", vec![x.into(), Arg::Int(1)], vec![]);
        graph.output(Arg::List(views.into_iter().map(Arg::Node).collect()));
        let problem = functionalize(&GraphModule::new(graph), registry(), Remove::Mutations).unwrap_err();
        assert_eq!(problem.code(), Code::LimitExceeded, "{problem}");
    }

    #[test]
    fn functions_that_may_give_views_are_refused() {
        let problem = written_through("torch.ravel", vec![], [3, 1]).unwrap_err();
        assert_eq!(problem.code(), Code::NotImplemented);
        assert_eq!(problem.message(), "decomposing torch.ravel, which is no operator, is not implemented for tensors");
    }

    #[test]
    fn an_input_of_which_nothing_is_known_is_refused() {
        let problem = functionalize(&module(None), registry(), Remove::Mutations).unwrap_err();
        assert_eq!(problem.code(), Code::PassFailed);
    }
}
