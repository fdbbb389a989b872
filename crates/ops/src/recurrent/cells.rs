//! Recurrent layers: LSTM, GRU and plain cells, unrolled over time into products and activations.
//!
//! Follows aten/src/ATen/native/RNN.cpp. Each step is a few operators, so that layers over a number of steps that is not known
//! stay whole.

use crate::core::decompositions::{Call, tensor_of};
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// Errors of one step go into the next.
pub(crate) const TOLERANCE: Tol = Tol::Scaled(4.0);

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite(
        "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float \
             dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
        lstm,
    )
    .uncomposed(lstm_over_steps)
    .doc("Layers of long short-term memory over a sequence: the outputs, the last hidden states and the last cells.")
    .tags(Tags::RANDOM)
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float \
             dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        gru,
    )
    .uncomposed(gru_over_steps)
    .doc("Layers of gated recurrent units over a sequence: the outputs and the last hidden states.")
    .tags(Tags::RANDOM)
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float \
             dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        rnn_tanh,
    )
    .uncomposed(rnn_over_steps)
    .doc("Recurrent layers with tanh over a sequence: the outputs and the last hidden states.")
    .tags(Tags::RANDOM)
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float \
             dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        rnn_relu,
    )
    .uncomposed(rnn_over_steps)
    .doc("Recurrent layers with ReLU over a sequence: the outputs and the last hidden states.")
    .tags(Tags::RANDOM)
    .tolerance(TOLERANCE),
    OpDef::composite(
        "aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? \
             b_hh=None) -> (Tensor, Tensor)",
        lstm_cell,
    )
    .doc("One step of long short-term memory: the hidden state and the cell."),
    OpDef::composite(
        "aten::gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? \
             b_hh=None) -> Tensor",
        gru_cell,
    )
    .doc("One step of a gated recurrent unit."),
    OpDef::composite(
        "aten::rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? \
             b_hh=None) -> Tensor",
        rnn_tanh_cell,
    )
    .doc("One step of a recurrent layer with tanh."),
    OpDef::composite(
        "aten::rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? \
             b_hh=None) -> Tensor",
        rnn_relu_cell,
    )
    .doc("One step of a recurrent layer with ReLU."),
];

/// What one step does with the products of input and state.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

/// Weights and biases of one direction of one layer.
#[derive(Clone)]
pub(crate) struct Params {
    pub(crate) w_ih: Traced,
    w_hh: Traced,
    pub(crate) b_ih: Traced,
    b_hh: Traced,
    /// The projection of the hidden state, of LSTMs that have one.
    w_hr: Option<Traced>,
}

impl Params {
    fn of_cell(args: &Call<'_>) -> Self {
        let [w_ih, w_hh, b_ih, b_hh] = [2, 3, 4, 5].map(|index| args.values[index].clone());
        Params { w_ih, w_hh, b_ih, b_hh, w_hr: None }
    }
}

/// The hidden state, and the cell of an LSTM.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) hidden: Traced,
    pub(crate) cell: Option<Traced>,
}

fn sigmoid(cx: &mut Cx<'_>, value: &Traced) -> Result<Traced> {
    cx.aten("sigmoid", [value])
}

fn tanh(cx: &mut Cx<'_>, value: &Traced) -> Result<Traced> {
    cx.aten("tanh", [value])
}

fn add(cx: &mut Cx<'_>, a: &Traced, b: &Traced) -> Result<Traced> {
    cx.aten("add.Tensor", [a, b])
}

fn multiply(cx: &mut Cx<'_>, a: &Traced, b: &Traced) -> Result<Traced> {
    cx.aten("mul.Tensor", [a, b])
}

/// A tensor in equal parts along its last dimension.
fn parts(cx: &mut Cx<'_>, value: &Traced, n: usize) -> Result<Vec<Traced>> {
    let results = cx.aten_all("chunk", [value, &Value::int(n as i64), &Value::int(-1)], &[])?;
    match results.into_iter().next() {
        Some(Value::List(parts)) if parts.len() == n => Ok(parts),
        _ => {
            let what = format!("the weights of a cell must be for {n} gates of the same size");
            Err(Diagnostic::new(Code::ShapeMismatch, what))
        }
    }
}

/// One step, of which the input has been multiplied with its weight already.
pub(crate) fn step(cx: &mut Cx<'_>, cell: Cell, input: Traced, state: &State, params: &Params) -> Result<State> {
    let recurrent = cx.aten("linear", [&state.hidden, &params.w_hh, &params.b_hh])?;
    let hidden = match cell {
        Cell::Tanh | Cell::Relu => {
            let sum = add(cx, &recurrent, &input)?;
            let op = if cell == Cell::Tanh { "tanh" } else { "relu" };
            cx.aten(op, [&sum])?
        }
        Cell::Gru => {
            let (input, recurrent) = (parts(cx, &input, 3)?, parts(cx, &recurrent, 3)?);
            let [reset, update] = [0, 1].map(|at| add(cx, &recurrent[at], &input[at]));
            let (reset, update) = (sigmoid(cx, &reset?)?, sigmoid(cx, &update?)?);
            let remembered = multiply(cx, &recurrent[2], &reset)?;
            let new = add(cx, &input[2], &remembered)?;
            let new = tanh(cx, &new)?;
            let difference = cx.aten("sub.Tensor", [&state.hidden, &new])?;
            let kept = multiply(cx, &difference, &update)?;
            add(cx, &kept, &new)?
        }
        Cell::Lstm => {
            let gates = add(cx, &recurrent, &input)?;
            let gates = parts(cx, &gates, 4)?;
            let (enter, forget) = (sigmoid(cx, &gates[0])?, sigmoid(cx, &gates[1])?);
            let (candidate, leave) = (tanh(cx, &gates[2])?, sigmoid(cx, &gates[3])?);
            let old = state.cell.clone().unwrap_or(Value::None);
            let kept = multiply(cx, &forget, &old)?;
            let new = multiply(cx, &enter, &candidate)?;
            let memory = add(cx, &kept, &new)?;
            let seen = tanh(cx, &memory)?;
            let mut hidden = multiply(cx, &leave, &seen)?;
            if let Some(projection) = &params.w_hr {
                hidden = cx.aten("linear", [&hidden, projection])?;
            }
            return Ok(State { hidden, cell: Some(memory) });
        }
    };
    Ok(State { hidden, cell: None })
}

fn cell_step(cx: &mut Cx<'_>, args: &Call<'_>, cell: Cell, state: State) -> Result<State> {
    let params = Params::of_cell(args);
    let input = cx.aten("linear", [&args.values[0], &params.w_ih, &params.b_ih])?;
    step(cx, cell, input, &state, &params)
}

fn lstm_cell(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [hidden, cell] = args.tensors(1)?[..] else {
        return Err(args.invalid("lstm_cell expects two hidden states"));
    };
    let state = State { hidden: (*hidden).into(), cell: Some((*cell).into()) };
    let state = cell_step(cx, args, Cell::Lstm, state)?;
    Ok([Some(state.hidden), state.cell].into_iter().flatten().collect())
}

fn single_state(args: &Call<'_>) -> State {
    State { hidden: args.values[1].clone(), cell: None }
}

fn gru_cell(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![cell_step(cx, args, Cell::Gru, single_state(args))?.hidden])
}

fn rnn_tanh_cell(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![cell_step(cx, args, Cell::Tanh, single_state(args))?.hidden])
}

fn rnn_relu_cell(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![cell_step(cx, args, Cell::Relu, single_state(args))?.hidden])
}

fn lstm(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [hidden, cells] = args.tensors(1)?[..] else {
        return Err(args.invalid("lstm expects two hidden states"));
    };
    layers(cx, args, Cell::Lstm, &(*hidden).into(), Some((*cells).into()))
}

fn gru(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    layers(cx, args, Cell::Gru, &args.values[1], None)
}

fn rnn_tanh(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    layers(cx, args, Cell::Tanh, &args.values[1], None)
}

fn rnn_relu(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    layers(cx, args, Cell::Relu, &args.values[1], None)
}

/// The parameters of each direction of each layer, which stand at `at` in the schema.
pub(crate) fn gather_params(args: &Call<'_>, at: usize, has_projection: bool, n: usize) -> Result<Vec<Params>> {
    let has_biases = args.bool(at + 1)?;
    let tensors = args.tensors(at)?;
    let per_layer = 2 + if has_biases { 2 } else { 0 } + has_projection as usize;
    if n.checked_mul(per_layer) != Some(tensors.len()) {
        return Err(args.invalid(format!("got {} parameters, expected {n} times {per_layer}", tensors.len())));
    }
    let params = tensors.chunks(per_layer).map(|it| {
        let at = |index: usize| Traced::from(*it[index]);
        let bias = |index: usize| if has_biases { at(index) } else { Value::None };
        Params {
            w_ih: at(0),
            w_hh: at(1),
            b_ih: bias(2),
            b_hh: bias(3),
            w_hr: has_projection.then(|| at(per_layer - 1)),
        }
    });
    Ok(params.collect())
}

/// What layers give where the number of steps is not known: the outputs, and each last state. The sizes have to agree as the
/// steps need it.
fn over_any_number_of_steps(args: &Args<'_, TensorMeta>, n_gates: i64) -> Result<Vec<Output>> {
    let (input, params) = (args.tensor(0)?, args.tensors(2)?);
    let states = if let Value::List(_) = args.values[1] { args.tensors(1)? } else { vec![args.tensor(1)?] };
    let (has_biases, is_batch_first) = (args.bool(3)?, args.bool(8)?);
    let n_directions = if args.bool(7)? { 2 } else { 1 };
    let n = args.int(4)?.saturating_mul(n_directions);
    let widths: Vec<SymInt> = states.iter().filter_map(|it| it.sizes.last().cloned()).collect();
    let ([first, second, width], Some(hidden), Some(cell)) = (&input.sizes[..], widths.first(), widths.last()) else {
        return Err(args.bad_shape("recurrent layers take an input and states of 3 dimensions"));
    };
    let (steps, batch) = if is_batch_first { (second, first) } else { (first, second) };
    let fit = |what: &str, tensor: &TensorMeta, sizes: Vec<SymInt>| {
        let fits = args.same_all(&tensor.sizes, &sizes);
        let what = || format!("{what} should be of sizes {sizes:?}, and is of {:?}", tensor.sizes);
        if fits { Ok(()) } else { Err(args.bad_shape(what())) }
    };
    let mut results = Vec::new();
    for (state, width) in states.iter().zip(&widths) {
        let sizes = vec![n.into(), batch.clone(), width.clone()];
        fit("a hidden state", state, sizes.clone())?;
        results.push(Output::Tensor(TensorMeta::contiguous(state.dtype, sizes)));
    }
    let n_params = if has_biases { 4 } else { 2 };
    let has_projection = Some(params.len() as i64) == n.checked_mul(n_params + 1);
    if !(has_projection || Some(params.len() as i64) == n.checked_mul(n_params) && args.same(hidden, cell)) {
        return Err(args.invalid(format!("got {} parameters, expected {n} times {n_params}", params.len())));
    }
    let gates = cell.clone() * n_gates;
    let per_layer = params.len() / usize::try_from(n).unwrap_or(0).max(1);
    for (at, params) in params.chunks(per_layer.max(1)).enumerate() {
        let width = if (at as i64) < n_directions { width.clone() } else { hidden.clone() * n_directions };
        let mut sizes = vec![vec![gates.clone(), width], vec![gates.clone(), hidden.clone()]];
        sizes.resize(n_params as usize, vec![gates.clone()]);
        sizes.extend(has_projection.then(|| vec![hidden.clone(), cell.clone()]));
        params.iter().zip(sizes).try_for_each(|(param, sizes)| fit("a parameter", param, sizes))?;
    }
    let mut output =
        TensorMeta::contiguous(input.dtype, vec![steps.clone(), batch.clone(), hidden.clone() * n_directions]);
    if is_batch_first {
        output.sizes.swap(0, 1);
        output.strides.swap(0, 1);
    }
    results.insert(0, Output::Tensor(output));
    Ok(results)
}

fn lstm_over_steps(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    over_any_number_of_steps(args, 4)
}

fn gru_over_steps(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    over_any_number_of_steps(args, 3)
}

fn rnn_over_steps(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    over_any_number_of_steps(args, 1)
}

fn layers(cx: &mut Cx<'_>, args: &Call<'_>, cell: Cell, hidden: &Traced, cells: Option<Traced>) -> Result<Vec<Traced>> {
    let (n_layers, is_bidirectional, is_batch_first) = (args.int(4)?, args.bool(7)?, args.bool(8)?);
    let steps_at = if is_batch_first { 1 } else { 0 };
    let Some(n_steps) = cx.meta(tensor_of(&args.values[0])).sizes.get(steps_at).and_then(|it| it.as_int()) else {
        return Err(args
            .unsupported("a recurrent layer over a number of steps that is not known")
            .help("export the program for a static number of steps"));
    };
    let dropout = if args.bool(6)? { args.float(5)? } else { 0.0 };
    let n_directions = if is_bidirectional { 2 } else { 1 };
    let n = usize::try_from(n_layers).unwrap_or(0).saturating_mul(n_directions);
    let size_of = |cx: &Cx<'_>, it: &Traced| cx.meta(tensor_of(it)).sizes.last().cloned();
    let has_projection = cells.as_ref().is_some_and(|it| size_of(cx, it) != size_of(cx, hidden));
    let params = gather_params(args, 2, has_projection, n)?;
    let swap = |cx: &mut Cx<'_>, it: Traced| cx.aten("transpose.int", [&it, &Value::int(0), &Value::int(1)]);
    let mut input = args.values[0].clone();
    if is_batch_first {
        input = swap(cx, input)?;
    }
    let (mut last_hidden, mut last_cells) = (Vec::new(), Vec::new());
    for (layer, params) in params.chunks(n_directions).enumerate() {
        let mut directions = Vec::new();
        for (direction, params) in params.iter().enumerate() {
            let at = Value::int((layer * n_directions + direction) as i64);
            let pick = |cx: &mut Cx<'_>, it: &Traced| cx.aten("select.int", [it, &Value::int(0), &at]);
            let mut state =
                State { hidden: pick(cx, hidden)?, cell: cells.as_ref().map(|it| pick(cx, it)).transpose()? };
            let products = cx.aten("linear", [&input, &params.w_ih, &params.b_ih])?;
            let mut outputs = Vec::new();
            for step_at in 0..n_steps {
                let time = if direction == 0 { step_at } else { n_steps - 1 - step_at };
                let product = cx.aten("select.int", [&products, &Value::int(0), &Value::int(time)])?;
                state = step(cx, cell, product, &state, params)?;
                outputs.push(state.hidden.clone());
            }
            if direction == 1 {
                outputs.reverse();
            }
            directions.push(cx.aten("stack", [&Value::List(outputs), &Value::int(0)])?);
            last_hidden.push(state.hidden);
            last_cells.extend(state.cell);
        }
        input = match directions.len() {
            1 => directions.remove(0),
            _ => cx.aten("cat", [&Value::List(directions), &Value::int(-1)])?,
        };
        if dropout > 0.0 && (layer as i64) < n_layers - 1 {
            input = cx.aten("dropout", [&input, &Value::Float(dropout), &Value::Bool(true)])?;
        }
    }
    if is_batch_first {
        input = swap(cx, input)?;
    }
    let mut results = vec![input, cx.aten("stack", [&Value::List(last_hidden), &Value::int(0)])?];
    if !last_cells.is_empty() {
        results.push(cx.aten("stack", [&Value::List(last_cells), &Value::int(0)])?);
    }
    Ok(results)
}
