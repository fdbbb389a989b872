//! Control flow: branches become `If`, loops `Loop`. Their graphs see the values around them.

use super::Rows;
use crate::call::{Call, Results, Tensor, unsupported};
use crate::graph::{X, graph, int};
use crate::model::value_info;
use crate::proto::GraphProto;
use tracefx_core::{DType, Result, Scalar};
use tracefx_ir::{Arg, GraphModule, Opcode};
use tracefx_ops::Value;
use tracefx_sym::SymInt;

pub(super) const OPS: Rows = &[
    ("higher_order.cond", cond),
    ("higher_order.invoke_subgraph", invoke),
    ("higher_order.map_impl", map),
    ("higher_order.scan", scan),
    ("higher_order.while_loop", while_loop),
    ("higher_order.wrap_with_set_grad_enabled", without_gradients),
];

/// The sub-graph that an argument names.
fn sub_graph<'g>(c: &Call<'_, 'g>, at: usize) -> Result<&'g GraphModule> {
    let module: &'g GraphModule = c.translator.module;
    let node = c.raw_arg(at).and_then(Arg::as_node).map(|it| module.graph.node(it));
    match node {
        Some(node) if node.op() == Opcode::GetAttr => module.submodule(node.target()),
        _ => Err(unsupported("a sub-graph of control flow is no part of the module")),
    }
}

/// The values of a list among the arguments.
fn operands(c: &Call<'_, '_>, at: usize) -> Result<Vec<Value<Tensor>>> {
    match c.raw_arg(at).map(|it| c.translator.value(it)).transpose()? {
        Some(Value::List(items)) => Ok(items),
        Some(single) => Ok(vec![single]),
        None => Ok(Vec::new()),
    }
}

/// A value as one of the graph: numbers become constants.
fn as_x(c: &mut Call<'_, '_>, value: &Value<Tensor>) -> Result<X> {
    match value {
        Value::Tensor(it) => Ok(it.x.clone()),
        other => match other.as_scalar() {
            Some(it @ Scalar::Float(_)) => c.g().scalar(it, DType::Float64),
            Some(it) => c.g().scalar(it, it.default_dtype()),
            None => Err(unsupported("a value of control flow is no tensor and no number")),
        },
    }
}

fn cond(c: &mut Call<'_, '_>) -> Result<Results> {
    let condition = c.raw_arg(0).map(|it| c.translator.value(it)).transpose()?.unwrap_or(Value::None);
    let condition = as_x(c, &condition)?;
    let condition = c.g().cast(&condition, DType::Bool)?;
    let condition = c.g().reshape(&condition, &[])?;
    let inputs = operands(c, 3)?;
    let mut dtypes = Vec::new();
    let mut branches = Vec::new();
    for (name, at) in [("then_branch", 1), ("else_branch", 2)] {
        let module = sub_graph(c, at)?;
        let mut found = Vec::new();
        let branch = c.translator.sub_graph(name, module, &inputs, &mut |translator, results| {
            found = results_of(translator, &results)?;
            Ok(found.clone())
        })?;
        dtypes = found.iter().map(|it| it.dtype).collect();
        branches.push(graph(name, branch));
    }
    let results = c.g().node("If", &[Some(&condition)], branches, &dtypes);
    Ok(Results(results.into_iter().map(Some).collect()))
}

/// The results of a sub-graph as values of the graph.
fn results_of(translator: &mut crate::translate::Translator<'_>, results: &[Value<Tensor>]) -> Result<Vec<X>> {
    let one = |it: &Value<Tensor>| match (it, it.as_scalar()) {
        (Value::Tensor(it), _) => Ok(it.x.clone()),
        (_, Some(it @ Scalar::Float(_))) => translator.builder.scalar(it, DType::Float64),
        (_, Some(it)) => translator.builder.scalar(it, it.default_dtype()),
        (_, None) => Err(unsupported("a result of control flow is no tensor and no number")),
    };
    results.iter().map(one).collect()
}

/// A sub-graph that is called once is part of the graph.
fn invoke(c: &mut Call<'_, '_>) -> Result<Results> {
    let module = sub_graph(c, 0)?;
    let inputs: Vec<Value<Tensor>> =
        c.node.args()[2.min(c.node.args().len())..].iter().map(|it| c.translator.value(it)).collect::<Result<_>>()?;
    inlined(c, module, &inputs)
}

/// A model has no gradients.
fn without_gradients(c: &mut Call<'_, '_>) -> Result<Results> {
    let module = sub_graph(c, 1)?;
    let inputs: Vec<Value<Tensor>> =
        c.node.args()[2..].iter().map(|it| c.translator.value(it)).collect::<Result<_>>()?;
    inlined(c, module, &inputs)
}

fn inlined<'g>(c: &mut Call<'_, 'g>, module: &'g GraphModule, inputs: &[Value<Tensor>]) -> Result<Results> {
    let results = c.translator.inline(module, inputs)?;
    let results = results_of(c.translator, &results)?;
    Ok(Results(results.into_iter().map(Some).collect()))
}

/// The body of a loop: of the number of the iteration and the state, whether it goes on, the new state, and what is collected.
type Body<'a, 'g> = dyn FnMut(&mut Call<'_, 'g>, &X, &[X]) -> Result<(Option<X>, Vec<X>, Vec<X>)> + 'a;

/// A step of a loop of our own: of the state, whether it goes on, and the new one.
type Step<'a, 'g> = dyn FnMut(&mut Call<'_, 'g>, &[X]) -> Result<(X, Vec<X>)> + 'a;

/// A `Loop`: `body` takes the number of the iteration and the state, and gives whether it goes on, the new state, and what is
/// collected. Gives the last state, then the collections.
fn looped<'g>(
    c: &mut Call<'_, 'g>,
    n: Option<&X>,
    first: Option<&X>,
    initial: &[X],
    body: &mut Body<'_, 'g>,
) -> Result<Vec<X>> {
    let outer = std::mem::take(&mut c.g().nodes);
    let (place, notes) = (c.g().place.clone(), c.g().notes.clone());
    let g = c.g();
    let iteration = X { name: g.fresh(&format!("{place}/iteration")), dtype: DType::Int64 };
    let before = X { name: g.fresh(&format!("{place}/condition")), dtype: DType::Bool };
    let states: Vec<X> =
        initial.iter().map(|it| X { name: g.fresh(&format!("{place}/state")), dtype: it.dtype }).collect();
    let (goes_on, new, collected) = body(c, &iteration, &states)?;
    let g = c.g();
    (g.place, g.notes) = (place, notes);
    let goes_on = goes_on.unwrap_or_else(|| before.clone());
    let mut output = Vec::new();
    for it in std::iter::once(&goes_on).chain(&new).chain(&collected) {
        let copy = g.raw("Identity", &[it], Vec::new(), it.dtype);
        output.push(value_info(&copy, None)?);
    }
    let scalar: &[SymInt] = &[];
    let mut input = vec![value_info(&iteration, Some(scalar))?, value_info(&before, Some(scalar))?];
    for it in &states {
        input.push(value_info(it, None)?);
    }
    let node = std::mem::replace(&mut g.nodes, outer);
    let body = GraphProto { node, name: "body".to_string(), input, output, ..GraphProto::default() };
    // A loop that nothing asks goes on.
    let yes = g.scalar(Scalar::Bool(true), DType::Bool)?;
    let first = first.or(Some(&yes));
    let all: Vec<Option<&X>> = [n, first].into_iter().chain(initial.iter().map(Some)).collect();
    let dtypes: Vec<DType> = new.iter().chain(&collected).map(|it| it.dtype).collect();
    Ok(g.node("Loop", &all, vec![graph("body", body)], &dtypes))
}

/// A loop of our own, until a step says that it is over.
pub(super) fn repeat_while<'g>(c: &mut Call<'_, 'g>, initial: &[X], step: &mut Step<'_, 'g>) -> Result<Vec<X>> {
    let yes = c.g().scalar(Scalar::Bool(true), DType::Bool)?;
    looped(c, None, Some(&yes), initial, &mut |c, _, state| {
        let (goes_on, new) = step(c, state)?;
        Ok((Some(goes_on), new, Vec::new()))
    })
}

/// The value of another with the same sizes.
fn like(x: &X, of: &Value<Tensor>) -> Value<Tensor> {
    let (sizes, is_number) = match of {
        Value::Tensor(it) => (it.sizes.clone(), it.is_number),
        _ => (Vec::new(), true),
    };
    Value::Tensor(Tensor { x: x.clone(), sizes, is_number })
}

/// The condition is asked before the loop, and at the end of each iteration.
fn while_loop<'g>(c: &mut Call<'_, 'g>) -> Result<Results> {
    let (condition, body) = (sub_graph(c, 0)?, sub_graph(c, 1)?);
    let (carried, others) = (operands(c, 2)?, operands(c, 3)?);
    let initial = carried.iter().map(|it| as_x(c, it)).collect::<Result<Vec<_>>>()?;
    let asked = |c: &mut Call<'_, 'g>, state: &[Value<Tensor>]| -> Result<X> {
        let inputs: Vec<_> = state.iter().chain(&others).cloned().collect();
        let results = c.translator.inline(condition, &inputs)?;
        let goes_on = results_of(c.translator, &results)?.remove(0);
        let goes_on = c.g().cast(&goes_on, DType::Bool)?;
        c.g().reshape(&goes_on, &[])
    };
    let first = asked(c, &carried)?;
    let results = looped(c, None, Some(&first), &initial, &mut |c, _, state| {
        let state: Vec<_> = state.iter().zip(&carried).map(|(x, it)| like(x, it)).collect();
        let inputs: Vec<_> = state.iter().chain(&others).cloned().collect();
        let new = c.translator.inline(body, &inputs)?;
        let new = results_of(c.translator, &new)?;
        let again: Vec<_> = new.iter().zip(&carried).map(|(x, it)| like(x, it)).collect();
        Ok((Some(asked(c, &again)?), new, Vec::new()))
    })?;
    Ok(Results(results.into_iter().map(Some).collect()))
}

/// The elements of the first dimension, one by one.
fn element(c: &mut Call<'_, '_>, of: &Value<Tensor>, at: &X) -> Result<Value<Tensor>> {
    let Value::Tensor(it) = of else { return Err(unsupported("a scan over what is no tensor")) };
    let x = c.g().raw("Gather", &[&it.x, at], vec![int("axis", 0)], it.x.dtype);
    Ok(Value::Tensor(Tensor { x, sizes: it.sizes[1..].to_vec(), is_number: false }))
}

fn over<'g>(
    c: &mut Call<'_, 'g>,
    body: usize,
    initial: &[Value<Tensor>],
    xs: &[Value<Tensor>],
    others: &[Value<Tensor>],
) -> Result<Results> {
    let module = sub_graph(c, body)?;
    let Some(Value::Tensor(first)) = xs.first() else { return Err(unsupported("a scan over nothing")) };
    let n = c.g().size_of(&first.x, 0);
    let n = c.g().reshape(&n, &[])?;
    let carried = initial.iter().map(|it| as_x(c, it)).collect::<Result<Vec<_>>>()?;
    let results = looped(c, Some(&n), None, &carried, &mut |c, iteration, state| {
        let state = state.iter().zip(initial).map(|(x, it)| like(x, it));
        let mut inputs: Vec<Value<Tensor>> = state.collect();
        for it in xs {
            inputs.push(element(c, it, iteration)?);
        }
        inputs.extend(others.iter().cloned());
        let results = c.translator.inline(module, &inputs)?;
        let mut new = results_of(c.translator, &results)?;
        let collected = new.split_off(initial.len());
        let yes = c.g().scalar(Scalar::Bool(true), DType::Bool)?;
        Ok((Some(yes), new, collected))
    })?;
    Ok(Results(results.into_iter().map(Some).collect()))
}

fn scan(c: &mut Call<'_, '_>) -> Result<Results> {
    let (initial, xs, others) = (operands(c, 1)?, operands(c, 2)?, operands(c, 3)?);
    over(c, 0, &initial, &xs, &others)
}

fn map(c: &mut Call<'_, '_>) -> Result<Results> {
    let (xs, others) = (operands(c, 1)?, operands(c, 2)?);
    over(c, 0, &[], &xs, &others)
}
