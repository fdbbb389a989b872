//! Random networks by their compiled plans: what plans give is what the interpreter gives, to the bit or up to rounding; sizes,
//! strides and dtypes, and which tensors share memory, exactly; and so is what is left in inputs and weights, call after call.
//!
//! How far rounding goes is measured: the interpreter runs the network again with noise as large as the rounding of each product
//! and each sum may be, and what that moves a result by, rounding may move it by.

pub mod growing;
mod network;

use network::{Choices, Network, noise};
use std::sync::Arc;
use tracefx_compile::{Precision, compile};
use tracefx_core::{DType, Diagnostic, Storage, Tensor, with_default_generator};
use tracefx_cpu::kernels;
use tracefx_exec::{Accelerator, BoundPlan, Executor, Interpreter, LOOP_STEPS, Preparations, fits, plan};
use tracefx_ir::{Attribute, GraphModule, TensorMeta};
use tracefx_ops::{Value, registry};
use tracefx_plan::Plan;

/// How many times as far as noise a result may be moved by rounding.
const SAFETY: f64 = 16.0;

/// The inputs of a network: two images, a matrix, integers.
struct Inputs<'a> {
    bytes: &'a [u8],
    /// Whether they are those of the second set of sizes.
    is_other: bool,
}

impl Inputs<'_> {
    fn make(&self, seed: usize) -> Vec<Tensor> {
        let mut choices = Choices::new(self.bytes);
        let channels = choices.of(&[3, 4, 1, 8, 6, 2, 16, 32]);
        let [mut n, mut h, mut w] =
            [[2, 1, 3, 2, 0, 1], [5, 1, 4, 7, 13, 2], [5, 1, 6, 2, 12, 3]].map(|it| choices.of(&it));
        let more = [1, choices.below(3), choices.below(3)];
        if self.is_other {
            (n, h, w) = (n + more[0], h + more[1], w + more[2]);
        }
        let dtype = match choices.below(16) {
            14 => DType::Float64,
            15 => DType::Float16,
            _ => DType::Float32,
        };
        let (is_same, are_strided) = (choices.rarely(), choices.below(4));
        let image = |seed| {
            let image = noise(seed, &[n, channels, h, w]);
            strided(&cast(&if self.has_specials() { with_specials(&image) } else { image }, dtype), are_strided)
        };
        let first = image(seed);
        let second = if is_same { first.clone() } else { image(seed + 1) };
        let ints: Vec<i64> = (0..w as i64).map(|it| it % 3 - 1).collect();
        let ints = Tensor::from_slice(&ints, &[w]).unwrap();
        vec![first, second, strided(&noise(seed + 2, &[3, w]), are_strided), ints]
    }

    /// Whether some of the numbers are infinite, or none.
    fn has_specials(&self) -> bool {
        self.bytes.last().is_some_and(|it| it % 8 == 7)
    }

    fn values(&self, seed: usize) -> Vec<Value<Tensor>> {
        self.make(seed).into_iter().map(Value::Tensor).collect()
    }
}

fn executor() -> Executor<'static> {
    Executor::new(registry(), kernels())
}

fn cast(tensor: &Tensor, dtype: DType) -> Tensor {
    let dtype = [("dtype".into(), Value::DType(dtype))];
    let made = executor().call("aten._to_copy.default", &[Value::Tensor(tensor.clone())], &dtype);
    match made.unwrap().swap_remove(0) {
        Value::Tensor(it) => it,
        other => panic!("a copy is a {}", other.kind_name()),
    }
}

fn with_specials(tensor: &Tensor) -> Tensor {
    let mut data = tensor.to_vec::<f32>().unwrap();
    let n = data.len();
    let specials = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    for (at, special) in specials.into_iter().enumerate().filter(|_| n > 8) {
        data[(at * 2 + 1) * n / 6] = special;
    }
    Tensor::from_slice(&data, tensor.sizes()).unwrap()
}

/// The same elements: as they are, with the dimensions in the order of channels-last images, or with gaps.
fn strided(tensor: &Tensor, how: usize) -> Tensor {
    let rank = tensor.rank();
    let order: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    let back: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    match how {
        2 => tensor.permuted(&order).compact_copy().unwrap().permuted(&back),
        3 => {
            let dense = tensor.compact_copy().unwrap();
            let size = tensor.dtype().size();
            let mut bytes = vec![0; size];
            dense.storage().read().bytes().chunks(size).for_each(|it| bytes.extend([it, it].concat()));
            let strides: Vec<usize> = dense.strides().iter().map(|it| 2 * it).collect();
            let storage = Storage::from_bytes(&bytes).unwrap();
            Tensor::view_of(storage, tensor.dtype(), tensor.sizes(), &strides, 1).unwrap()
        }
        _ => tensor.clone(),
    }
}

fn weights(module: &GraphModule) -> Vec<Value<Tensor>> {
    let tensors = module.attributes.iter().filter(|(name, _)| name.starts_with('w'));
    let tensors =
        tensors.filter_map(|(_, it)| if let Attribute::Tensor { tensor, .. } = it { Some(tensor) } else { None });
    tensors.cloned().map(Value::Tensor).collect()
}

fn tensors(values: &[Value<Tensor>]) -> Vec<Tensor> {
    let mut res = Vec::new();
    values.iter().for_each(|it| it.for_each_tensor(&mut |it| res.push(it.clone())));
    res
}

/// How each tensor lies in memory, and the first one that lies in the same.
fn layouts(tensors: &[Tensor]) -> Vec<String> {
    let first = |tensor: &Tensor| tensors.iter().position(|it| it.storage().is_same(tensor.storage()));
    let layout =
        |it: &Tensor| format!("{:?} {:?} {:?} {} {:?}", it.dtype(), it.sizes(), it.strides(), it.offset(), first(it));
    tensors.iter().map(layout).collect()
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    cast(tensor, DType::Float64).to_vec().unwrap()
}

/// How far two tensors are from each other, where both are numbers that are not too large to tell.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let apart = |(a, b): (&f64, &f64)| if a == b || a.is_nan() && b.is_nan() { 0.0 } else { (a - b).abs() };
    a.iter().zip(b).map(apart).fold(0.0, |max: f64, it| if it.is_nan() { f64::INFINITY } else { max.max(it) })
}

/// Which of two numbers are the same where their distance is not asked for.
fn kind(it: f64) -> (bool, bool, bool) {
    (it.is_nan(), it == f64::INFINITY, it == f64::NEG_INFINITY)
}

/// What is compared of numbers.
#[derive(Clone, Copy, Debug)]
enum Compared {
    /// The numbers.
    Exactly,
    /// The numbers, up to noise and to this part of the largest.
    Rounded(f64),
    /// Which are infinite, and which are none.
    Kinds,
}

/// What the interpreter gives and leaves, and that with noise.
struct Expected {
    exact: Vec<Tensor>,
    noisy: Vec<Vec<Tensor>>,
    compared: Compared,
}

impl Expected {
    /// What is wrong with these tensors.
    fn refuse(&self, given: &[Tensor]) -> Option<String> {
        let (given_layouts, layouts) = (layouts(given), layouts(&self.exact));
        if given_layouts != layouts {
            return Some(format!("{given_layouts:?}\nand not\n{layouts:?}"));
        }
        given.iter().enumerate().find_map(|(at, given)| {
            let (given, wanted) = (numbers(given), numbers(&self.exact[at]));
            let is_close = match self.compared {
                Compared::Exactly => distance(&given, &wanted) == 0.0,
                Compared::Kinds => given.iter().map(|it| kind(*it)).eq(wanted.iter().map(|it| kind(*it))),
                Compared::Rounded(part) => {
                    let moved = self.noisy.iter().map(|it| distance(&numbers(&it[at]), &wanted)).fold(0.0, f64::max);
                    let largest = wanted.iter().fold(0.0f64, |max, it| max.max(it.abs()));
                    // What is too large is not told from what has overflowed.
                    let is_told = largest < 1e30 && moved.is_finite() && wanted.iter().all(|it| it.is_finite());
                    // Sums of what cancels out are small beside their terms.
                    distance(&given, &wanted) <= SAFETY * moved + part * largest.max(0.01) || !is_told
                }
            };
            let worst = given.iter().zip(&wanted).filter(|(a, b)| a != b).take(5).collect::<Vec<_>>();
            (!is_close).then(|| format!("tensor {at}, {:?}: {worst:?}", self.compared))
        })
    }
}

/// Halves all elements of the first weights, as training would change them.
fn train(module: &GraphModule) {
    let is_float = |it: &Value<Tensor>| matches!(it, Value::Tensor(it) if it.dtype().is_float());
    for weight in weights(module).into_iter().filter(is_float).take(2) {
        executor().call("aten.mul_.Scalar", &[weight, Value::Float(0.5)], &[]).unwrap();
    }
}

/// Whether a plan is what its bytes say, and its outline, too.
fn comes_back(plan: &Plan) -> Result<(), String> {
    let problem = |it: Diagnostic| it.to_string();
    let bytes = plan.to_bytes().map_err(problem)?;
    let again = Plan::from_bytes(&bytes).map_err(problem)?;
    let outline = plan.to_outline().map_err(problem)?;
    let seen = Plan::from_outline(&outline).map_err(problem)?;
    let is_same = again.to_string() == plan.to_string() && seen.to_string() == plan.to_string();
    if !is_same || again.to_bytes().map_err(problem)? != bytes {
        return Err("the plan does not come back as it was".to_owned());
    }
    Ok(())
}

/// A network, by bytes that choose what it is.
#[derive(Clone, Debug)]
pub struct Case {
    /// What its plans may change in the numbers.
    pub precision: Precision,
    /// They choose the inputs.
    pub sizes: Vec<u8>,
    /// They choose a step each, and its arguments.
    pub steps: Vec<Vec<u8>>,
    /// They choose what is given.
    pub outputs: Vec<u8>,
}

impl Case {
    /// Runs the network by plans for two sets of sizes, each twice, with other weights in between.
    ///
    /// # Errors
    /// How a plan differs from the interpreter.
    pub fn check(&self) -> Result<(), String> {
        self.check_on(None)
    }

    /// The compiled plan for the first set of sizes; nothing where there is none.
    pub(crate) fn plan(&self) -> Option<Plan> {
        let inputs = Inputs { bytes: &self.sizes, is_other: false };
        let mut network = Network::new(&inputs.make(0), None, !inputs.has_specials());
        self.steps.iter().for_each(|it| network.grow(it));
        let metas: Vec<_> = inputs.values(0).iter().map(|it| it.map(&mut TensorMeta::of)).collect();
        let traced = plan(&network.finish(&self.outputs), &metas, registry(), kernels()).ok()?;
        Some(compile(traced, registry(), kernels(), self.precision))
    }

    /// As [`Case::check`], with a device that does the steps that it can, and rounds its own way. What is infinite, or no number, is not for it.
    ///
    /// # Errors
    /// As there, and what the device refuses.
    pub fn check_on(&self, accelerator: Option<&dyn Accelerator>) -> Result<(), String> {
        let inputs = [false, true].map(|is_other| Inputs { bytes: &self.sizes, is_other });
        if accelerator.is_some() && inputs[0].has_specials() {
            return Ok(());
        }
        let first = inputs[0].make(0);
        let build = |noise: Option<usize>| {
            let mut network = Network::new(&first, noise, !inputs[0].has_specials());
            self.steps.iter().for_each(|it| network.grow(it));
            (network.has_halves, network.finish(&self.outputs))
        };
        let (has_halves, mine) = build(None);
        let (_, yours) = build(None);
        let compared = match self.precision {
            Precision::Strict if accelerator.is_none() => Compared::Exactly,
            _ if accelerator.is_some() => Compared::Rounded(if has_halves { 1.0 / 64.0 } else { 1e-4 }),
            _ if inputs[0].has_specials() => Compared::Kinds,
            _ => Compared::Rounded(if has_halves { 1.0 / 64.0 } else { 1e-5 }),
        };
        let seeds = if matches!(compared, Compared::Rounded(_)) { &[1, 2][..] } else { &[] };
        let noisy: Vec<_> = seeds.iter().map(|seed| build(Some(*seed)).1).collect();
        let preparations = Preparations::default();
        let mut bound: Vec<Option<BoundPlan>> = Vec::new();
        for inputs in &inputs {
            let metas: Vec<_> = inputs.values(0).iter().map(|it| it.map(&mut TensorMeta::of)).collect();
            let traced = match plan(&yours, &metas, registry(), kernels()) {
                Ok(traced) => traced,
                // A plan refuses what the interpreter refuses, and nothing else of these operators.
                Err(problem) => {
                    let again = build(None).1;
                    if Interpreter::new(&again, executor()).run(&inputs.values(0)).is_ok() {
                        return Err(format!("{problem}\n{}", mine.graph));
                    }
                    bound.push(None);
                    continue;
                }
            };
            let mut compiled = compile(traced.clone(), registry(), kernels(), self.precision);
            // What is written early must be alone.
            if !fits(&compiled, &inputs.values(0)) {
                compiled = traced;
            }
            compiled.validate().map_err(|problem| format!("{problem}\n{}\n{compiled}", mine.graph))?;
            comes_back(&compiled).map_err(|problem| format!("{problem}\n{}\n{compiled}", mine.graph))?;
            let device = accelerator.map(|it| it.prepare(&compiled, registry())).transpose();
            let made = BoundPlan::sharing(Arc::new(compiled), registry(), kernels(), &preparations);
            let made = device.and_then(|device| Ok(made?.with_device(device.flatten())));
            bound.push(Some(made.map_err(|problem| format!("{problem}\n{}", mine.graph))?));
        }
        for (seed, which) in [(0, 0), (7, 1), (20, 0), (40, 1)] {
            let Some(bound) = &mut bound[which] else { continue };
            let draw = || with_default_generator(|it| it.manual_seed(seed as u64));
            let all = |module: &GraphModule, given: Vec<Value<Tensor>>, result: Value<Tensor>| {
                tensors(&[vec![result], given, weights(module)].concat())
            };
            let run = |module: &GraphModule| {
                let given = inputs[which].values(seed);
                draw();
                let result = Interpreter::new(module, executor()).run(&given)?;
                Ok::<_, Diagnostic>(all(module, given, result))
            };
            let given = inputs[which].values(seed);
            draw();
            let problem = match (bound.run(executor(), &given, LOOP_STEPS, &mut |_, _| Ok(())), run(&mine)) {
                (Ok(result), Ok(exact)) => match noisy.iter().map(run).collect::<Result<Vec<_>, _>>() {
                    Ok(noisy) => Expected { exact, noisy, compared }.refuse(&all(&yours, given, result)),
                    // What noise is added to may lie in another order than without, so that a view is taken of it that
                    // does not fit other sizes: then nobody knows how far rounding goes.
                    Err(_) => None,
                },
                (Err(result), Err(wanted)) if result.to_string() == wanted.to_string() => None,
                (result, wanted) => Some(format!("{result:?} and {wanted:?}")),
            };
            if let Some(problem) = problem {
                return Err(format!("{problem}\n{}\n{}", mine.graph, bound.plan()));
            }
            if seed == 7 {
                [&mine, &yours].into_iter().chain(&noisy).for_each(train);
            }
        }
        Ok(())
    }
}
