//! Recurrent layers over packed sequences: each step has as many sequences as still go on.

use crate::core::decompositions::{Call, tensor_of};
use crate::recurrent::cells::{Cell, Params, State, TOLERANCE, gather_params, step};
use crate::{Cx, OpDef, Tags, Traced, Value};
use tracefx_core::Result;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite(
        "aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int \
         num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
        lstm,
    )
    .doc(
        "Layers of long short-term memory over packed sequences: the outputs, the last hidden states and the \
             last cells.",
    )
    .tags(Tags::RANDOM)
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int \
         num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        |cx, args| layers(cx, args, Cell::Gru, &args.values[2], None),
    )
    .doc("Layers of gated recurrent units over packed sequences: the outputs and the last hidden states.")
    .tags(Tags::RANDOM)
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int \
         num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        |cx, args| layers(cx, args, Cell::Tanh, &args.values[2], None),
    )
    .doc("Recurrent layers with tanh over packed sequences: the outputs and the last hidden states.")
    .tags(Tags::RANDOM)
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int \
         num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
        |cx, args| layers(cx, args, Cell::Relu, &args.values[2], None),
    )
    .doc("Recurrent layers with ReLU over packed sequences: the outputs and the last hidden states.")
    .tags(Tags::RANDOM)
    .tolerance(TOLERANCE),
];

fn lstm(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [hidden, cells] = args.tensors(2)?[..] else {
        return Err(args.invalid("lstm expects two hidden states"));
    };
    layers(cx, args, Cell::Lstm, &(*hidden).into(), Some((*cells).into()))
}

/// How many sequences each step has. The loop over the steps needs to know.
fn batch_sizes(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<i64>> {
    let unknown = || args.unsupported("a recurrent layer over packed sequences whose lengths are not known");
    let sizes = *args.tensor(1)?;
    let n_steps = match &cx.meta(sizes).sizes[..] {
        [n_steps] => n_steps.as_int().ok_or_else(unknown)?,
        _ => return Err(args.bad_shape("batch_sizes has one dimension")),
    };
    (0..n_steps)
        .map(|at| {
            let one = cx.aten("select.int", [&sizes.into(), &Value::int(0), &Value::int(at)])?;
            let Value::Int(it) = cx.aten("item", [&one])? else { return Err(unknown()) };
            it.as_int().ok_or_else(unknown)
        })
        .collect()
}

fn narrow(cx: &mut Cx<'_>, value: &Traced, start: i64, n: i64) -> Result<Traced> {
    cx.aten("narrow", [value, &Value::int(0), &Value::int(start), &Value::int(n)])
}

fn cat(cx: &mut Cx<'_>, parts: Vec<Traced>) -> Result<Traced> {
    cx.aten("cat", [&Value::List(parts), &Value::int(0)])
}

impl State {
    /// The same with `f` done to each part.
    fn map(&self, f: &mut dyn FnMut(&Traced) -> Result<Traced>) -> Result<State> {
        Ok(State { hidden: f(&self.hidden)?, cell: self.cell.as_ref().map(f).transpose()? })
    }
}

/// One direction of one layer: the outputs, and the last state of each sequence. Forward, sequences end one after the
/// other; backward they begin so.
fn direction(
    cx: &mut Cx<'_>,
    cell: Cell,
    products: &Traced,
    sizes: &[i64],
    initial: &State,
    params: &Params,
    is_backward: bool,
) -> Result<(Traced, State)> {
    let mut starts: Vec<i64> = sizes
        .iter()
        .scan(0, |start, &n| {
            *start += n;
            Some(*start - n)
        })
        .collect();
    let mut sizes = sizes.to_vec();
    if is_backward {
        starts.reverse();
        sizes.reverse();
    }
    let mut n = sizes.first().copied().unwrap_or(0);
    let mut state = initial.map(&mut |it| narrow(cx, it, 0, n))?;
    let (mut outputs, mut ended) = (Vec::new(), Vec::new());
    for (&start, &size) in starts.iter().zip(&sizes) {
        if size < n {
            ended.push(state.map(&mut |it| narrow(cx, it, size, n - size))?);
            state = state.map(&mut |it| narrow(cx, it, 0, size))?;
        } else if size > n {
            let begun = initial.map(&mut |it| narrow(cx, it, n, size - n))?;
            state = State {
                hidden: cat(cx, vec![state.hidden, begun.hidden])?,
                cell: match (state.cell, begun.cell) {
                    (Some(old), Some(new)) => Some(cat(cx, vec![old, new])?),
                    (old, _) => old,
                },
            };
        }
        n = size;
        let product = narrow(cx, products, start, size)?;
        state = step(cx, cell, product, &state, params)?;
        outputs.push(state.hidden.clone());
    }
    if is_backward {
        outputs.reverse();
    }
    ended.push(state);
    ended.reverse();
    let cells: Option<Vec<Traced>> = ended.iter().map(|it| it.cell.clone()).collect();
    let last = State {
        hidden: cat(cx, ended.into_iter().map(|it| it.hidden).collect())?,
        cell: cells.map(|it| cat(cx, it)).transpose()?,
    };
    Ok((cat(cx, outputs)?, last))
}

fn layers(cx: &mut Cx<'_>, args: &Call<'_>, cell: Cell, hidden: &Traced, cells: Option<Traced>) -> Result<Vec<Traced>> {
    let (n_layers, is_bidirectional) = (args.int(5)?, args.bool(8)?);
    let dropout = if args.bool(7)? { args.float(6)? } else { 0.0 };
    let n_directions = if is_bidirectional { 2 } else { 1 };
    let n = usize::try_from(n_layers).unwrap_or(0).saturating_mul(n_directions);
    let size_of = |cx: &Cx<'_>, it: &Traced| cx.meta(tensor_of(it)).sizes.last().cloned();
    let has_projection = cells.as_ref().is_some_and(|it| size_of(cx, it) != size_of(cx, hidden));
    let params = gather_params(args, 3, has_projection, n)?;
    let sizes = batch_sizes(cx, args)?;
    if sizes.is_empty() || !sizes.iter().rev().is_sorted() {
        return Err(args.invalid("batch_sizes falls from step to step, and there is at least one"));
    }
    let mut input = args.values[0].clone();
    let mut last = Vec::new();
    for (layer, params) in params.chunks(n_directions).enumerate() {
        let mut outputs = Vec::new();
        for (at, params) in params.iter().enumerate() {
            let index = Value::int((layer * n_directions + at) as i64);
            let mut pick = |it: &Traced| cx.aten("select.int", [it, &Value::int(0), &index]);
            let initial = State { hidden: pick(hidden)?, cell: cells.as_ref().map(pick).transpose()? };
            let products = cx.aten("linear", [&input, &params.w_ih, &params.b_ih])?;
            let (output, state) = direction(cx, cell, &products, &sizes, &initial, params, at == 1)?;
            outputs.push(output);
            last.push(state);
        }
        input = match outputs.len() {
            1 => outputs.remove(0),
            _ => cx.aten("cat", [&Value::List(outputs), &Value::int(-1)])?,
        };
        if dropout > 0.0 && (layer as i64) < n_layers - 1 {
            input = cx.aten("dropout", [&input, &Value::Float(dropout), &Value::Bool(true)])?;
        }
    }
    let cells: Option<Vec<Traced>> = last.iter().map(|it| it.cell.clone()).collect();
    let hidden = last.into_iter().map(|it| it.hidden).collect();
    let mut results = vec![input, cx.aten("stack", [&Value::List(hidden), &Value::int(0)])?];
    if let Some(cells) = cells {
        results.push(cx.aten("stack", [&Value::List(cells), &Value::int(0)])?);
    }
    Ok(results)
}
