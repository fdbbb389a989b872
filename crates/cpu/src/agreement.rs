//! Operators give the same on every instruction set that the machine has, for strided inputs of all lengths, tails and
//! special numbers: to the last bit where no step is fused, and within a rounding of each term where products are summed
//! up. What the numbers have to be is for the tests of each family and the recorded cases.

use crate::numeric::isa::Level;
use crate::numeric::map::cast;
use proptest::prelude::*;
use tracefx_core::{Code, DType, Result, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::Str;
use tracefx_ops::{Value, registry};

/// As many cases as this in an ordinary run of proptest, which has 256, and in proportion where `PROPTEST_CASES` says another
/// number.
pub(crate) fn config(n_cases: u64) -> ProptestConfig {
    let config = ProptestConfig::default();
    let cases = (u64::from(config.cases) * n_cases).div_ceil(256);
    ProptestConfig { failure_persistence: None, cases: u32::try_from(cases).unwrap_or(u32::MAX), ..config }
}

type Arg = Value<Tensor>;

/// A call of an operator.
struct Call(&'static str, Vec<Arg>);

impl Call {
    /// How it is refused, for a call of integers that is to be refused.
    fn refusal(&self) -> Option<(Code, String)> {
        let Call(op, args) = self;
        let Value::Tensor(first) = args.first()? else { return None };
        let dtype = first.dtype();
        if dtype.is_float() {
            return None;
        }
        if let Some((_, code, words)) = REFUSED_IN_OTHER_WORDS.iter().find(|(it, ..)| it == op) {
            return Some((*code, format!("{words}{}", dtype.name())));
        }
        let name = op.split('.').nth(1)?;
        REFUSED
            .contains(op)
            .then(|| (Code::DTypeMismatch, format!("\"{name}\" not implemented for '{}'", dtype.cpp_name())))
    }
}

/// What each call gives on each level: the numbers of all its tensors, or its refusal.
fn results(calls: &[Call]) -> Vec<(Level, Vec<Result<Vec<f64>>>)> {
    let executor = Executor::new(registry(), crate::kernels());
    let numbers = |it: &Arg| match it {
        Value::Tensor(it) => cast(it, DType::Float64).unwrap().to_vec::<f64>().unwrap(),
        other => panic!("a {} is not compared", other.kind_name()),
    };
    let run = |Call(op, args): &Call| {
        let (args, kwargs): (&[Arg], &[(Str, Arg)]) = match (*op, args.split_last()) {
            ("aten._to_copy.default", Some((dtype, args))) => (args, &[("dtype".into(), dtype.clone())]),
            _ => (args, &[]),
        };
        Ok(executor.call(op, args, kwargs)?.iter().flat_map(numbers).collect())
    };
    Level::on_each(|| calls.iter().map(run).collect())
}

/// Compares with what the portable code gives; `allowed` is the error relative to a number, or to one if that is larger. A
/// call is refused on every level, and as [`Call::refusal`] says, or on none.
fn agree(calls: &[Call], allowed: f64) -> Result<(), TestCaseError> {
    let results = results(calls);
    let (_, portable) = &results[0];
    for (level, results) in &results {
        for ((call, got), want) in calls.iter().zip(results).zip(portable) {
            let Call(op, args) = call;
            let (got, want) = match (got, want, call.refusal()) {
                (Ok(got), Ok(want), None) => (got, want),
                (Err(problem), _, Some((code, words))) => {
                    let is_told = problem.code() == code && problem.message().contains(&words);
                    prop_assert!(is_told, "{op} on {level:?}: {problem:?} is not {code:?} with {words:?}");
                    continue;
                }
                (Err(problem), ..) => {
                    prop_assert!(false, "{op} on {level:?} is refused: {problem:?}, of {args:?}");
                    continue;
                }
                (Ok(_), ..) => {
                    prop_assert!(false, "{op} on {level:?} is taken where it is to be refused, of {args:?}");
                    continue;
                }
            };
            prop_assert_eq!(got.len(), want.len(), "{} on {:?}, of {:?}", op, level, args);
            for (got, want) in got.iter().zip(want) {
                let is_same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                let is_close = allowed > 0.0 && (got - want).abs() <= allowed * want.abs().max(1.0);
                prop_assert!(is_same || is_close, "{op} on {level:?}: {got:e} is not {want:e}, of {args:?}");
            }
        }
    }
    Ok(())
}

/// Operators that take no integers, as PyTorch's do not.
const REFUSED: &[&str] = &[
    "aten.gelu.default",
    "aten.silu.default",
    "aten.mish.default",
    "aten.elu.default",
    "aten.softplus.default",
    "aten.hardswish.default",
    "aten.var.correction",
    "aten.linalg_vector_norm.default",
    "aten._softmax.default",
    "aten._log_softmax.default",
    "aten._safe_softmax.default",
    "aten.native_layer_norm.default",
    "aten.rms_norm.default",
    "aten.native_group_norm.default",
    "aten._native_batch_norm_legit_no_training.default",
];

/// Others of them, with the code and the words up to the dtype.
const REFUSED_IN_OTHER_WORDS: &[(&str, Code, &str)] = &[
    (
        "aten.mean.dim",
        Code::DTypeMismatch,
        "could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got input: ",
    ),
    (
        "aten.scaled_dot_product_attention.default",
        Code::NotImplemented,
        "aten.scaled_dot_product_attention.default is not implemented for ",
    ),
];

const SPECIAL: [f32; 14] = [
    0.0,
    -0.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    1e-45,
    -1e-39,
    f32::MIN_POSITIVE,
    f32::MAX,
    -f32::MAX,
    88.8,
    -104.0,
    0.5,
    300.0,
];

/// Numbers of all sizes, of which the `n_special`-th ones are special.
fn numbers(n: usize, seed: u32, n_special: usize) -> Vec<f32> {
    let number = |at: usize| {
        let random = (at as u32).wrapping_add(seed).wrapping_mul(2_654_435_761);
        let special = (random >> 20) as usize;
        match special % n_special {
            0 => SPECIAL[special / n_special % SPECIAL.len()],
            _ => (random as f32 / (1u64 << 31) as f32 - 1.0) * [1.0, 0.01, 1.0, 9.0][special % 4],
        }
    };
    (0..n).map(number).collect()
}

/// A tensor in memory in the order of `keys`, with a gap between neighbours, from the second element of its storage on.
fn strided(numbers: impl Fn(usize) -> Vec<f32>, dtype: DType, sizes: &[usize], keys: [u8; 4], gap: usize) -> Tensor {
    let mut order: Vec<usize> = (0..sizes.len()).rev().collect();
    order.sort_by_key(|&dim| keys[dim]);
    let (mut strides, mut stride) = (vec![0; sizes.len()], gap);
    for dim in order {
        strides[dim] = stride;
        stride *= sizes[dim].max(1);
    }
    let flat = numbers(stride + 1);
    let flat = cast(&Tensor::from_slice(&flat, &[flat.len()]).unwrap(), dtype).unwrap();
    flat.as_strided(sizes, &strides, 1).unwrap()
}

fn keys() -> impl Strategy<Value = [u8; 4]> {
    prop_oneof![Just([0; 4]), any::<[u8; 4]>()]
}

const MAPS: &[&str] = &[
    "aten.exp.default",
    "aten.expm1.default",
    "aten.log.default",
    "aten.log1p.default",
    "aten.tanh.default",
    "aten.erf.default",
    "aten.sigmoid.default",
    "aten.sqrt.default",
    "aten.reciprocal.default",
    "aten.floor.default",
    "aten.round.default",
    "aten.sign.default",
    "aten.isnan.default",
    "aten.gelu.default",
    "aten.silu.default",
    "aten.mish.default",
    "aten.elu.default",
    "aten.softplus.default",
    "aten.relu.default",
    "aten.hardswish.default",
];

const PAIRS: &[&str] = &[
    "aten.add.Tensor",
    "aten.sub.Tensor",
    "aten.mul.Tensor",
    "aten.div.Tensor",
    "aten.maximum.default",
    "aten.minimum.default",
    "aten.fmax.default",
    "aten.copysign.Tensor",
    "aten.eq.Tensor",
    "aten.lt.Tensor",
    "aten.clamp.Tensor",
    "aten.where.self",
];

const OF_DIMS: &[&str] = &[
    "aten.sum.dim_IntList",
    "aten.mean.dim",
    "aten.var.correction",
    "aten.amax.default",
    "aten.amin.default",
    "aten.logsumexp.default",
    "aten.any.dims",
    "aten.count_nonzero.dim_IntList",
];

const DTYPES: [DType; 6] = [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int8, DType::Int64];

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn maps_agree(
        (outer, rows, columns) in (1..3usize, prop_oneof![0..4usize, Just(40)], prop_oneof![0..40usize, 250..300usize]),
        keys in [keys(), keys()],
        gaps in [1..3usize, 1..3usize],
        dtypes in [prop::sample::select(&DTYPES[..]), prop::sample::select(&DTYPES[..])],
        seed: u32,
    ) {
        let sizes = [outer, rows, columns];
        let tensor = |at: usize, sizes: &[usize]| {
            let numbers = |n| numbers(n, seed.wrapping_add(at as u32 * 77), 7);
            Value::Tensor(strided(numbers, dtypes[at], sizes, keys[at], gaps[at]))
        };
        let (x, y) = (tensor(0, &sizes), tensor(1, &sizes[1..]));
        let mut calls: Vec<Call> = MAPS.iter().map(|op| Call(op, vec![x.clone()])).collect();
        for op in PAIRS {
            calls.push(Call(op, match *op {
                "aten.clamp.Tensor" => vec![x.clone(), Value::None, y.clone()],
                "aten.where.self" => {
                    let is_less = Executor::new(registry(), crate::kernels()).call("aten.lt.Tensor", &[y.clone(), x.clone()], &[]);
                    vec![is_less.unwrap().remove(0), x.clone(), y.clone()]
                }
                _ => vec![x.clone(), y.clone()],
            }));
        }
        calls.extend(DTYPES.map(|dtype| Call("aten._to_copy.default", vec![x.clone(), Value::DType(dtype)])));
        agree(&calls, 0.0)?;
    }

    #[test]
    fn reductions_agree(
        (outer, rows, columns) in (1..3usize, 1..40usize, prop_oneof![1..40usize, 250..300usize]),
        keys in keys(),
        gap in 1..3usize,
        dtype in prop::sample::select(&DTYPES[..]),
        dim in 0..3i64,
        // Without a special number, sums are of all the others.
        n_special in prop_oneof![Just(7usize), Just(1 << 12)],
        seed: u32,
    ) {
        let sizes = [outer, rows, columns];
        let tensor = |sizes: &[usize], gap: usize| Value::Tensor(strided(|n| numbers(n, seed, n_special), dtype, sizes, keys, gap));
        let (x, weight) = (tensor(&sizes, gap), tensor(&sizes[2..], 1));
        let (dims, dim) = (Value::ints(&[dim]), Value::int(dim));
        let (last, eps) = (Value::ints(&[sizes[2] as i64]), Value::Float(1e-5));
        let image = tensor(&[sizes[0], 2, sizes[1], sizes[2]], gap);
        let mut calls = Vec::new();
        for op in OF_DIMS {
            calls.push(Call(op, vec![x.clone(), dims.clone()]));
        }
        calls.push(Call("aten.linalg_vector_norm.default", vec![x.clone(), Value::Float(2.0), dims.clone()]));
        calls.push(Call("aten.argmax.default", vec![x.clone(), dim.clone()]));
        for op in ["aten._softmax.default", "aten._log_softmax.default", "aten._safe_softmax.default"] {
            let rest = if op == "aten._safe_softmax.default" { Value::None } else { Value::Bool(false) };
            calls.push(Call(op, vec![x.clone(), dim.clone(), rest]));
        }
        calls.push(Call("aten.native_layer_norm.default", vec![x.clone(), last.clone(), weight.clone(), weight.clone(), eps.clone()]));
        calls.push(Call("aten.native_layer_norm.default", vec![x.clone(), last.clone(), Value::None, Value::None, eps.clone()]));
        calls.push(Call("aten.rms_norm.default", vec![x.clone(), last, weight]));
        calls.push(Call("aten.native_group_norm.default", vec![
            image.clone(), Value::None, Value::None, Value::int(sizes[0] as i64), Value::int(2),
            Value::int((sizes[1] * sizes[2]) as i64), Value::int(1), eps,
        ]));
        calls.push(Call("aten.max_pool2d_with_indices.default", vec![
            image, Value::ints(&[3, 2]), Value::ints(&[2, 1]), Value::ints(&[1, 1]),
        ]));
        agree(&calls, 0.0)?;
    }

    #[test]
    fn products_agree(
        (m, n, k) in (
            prop_oneof![1..5usize, 1..40usize, 100..130usize],
            prop_oneof![1..5usize, 1..70usize],
            prop_oneof![1..40usize, 250..300usize],
        ),
        keys in [keys(), keys()],
        gap in 1..3usize,
        dtype in prop::sample::select(&DTYPES[..]),
        n_special in prop_oneof![Just(1usize << 8), Just(1 << 12)],
        seed: u32,
    ) {
        // The largest numbers overflow in one order of a sum and not in another.
        let numbers = |n| numbers(n, seed, n_special).into_iter().map(|it| if it.is_finite() { it.clamp(-2.0, 2.0) } else { it }).collect();
        let tensor = |sizes: &[usize], keys, gap| Value::Tensor(strided(numbers, dtype, sizes, keys, gap));
        let (lhs, rhs) = (tensor(&[m, k], keys[0], gap), tensor(&[k, n], keys[1], gap));
        let (weight, bias) = (tensor(&[n, k], keys[1], 1), tensor(&[n], keys[1], gap));
        let heads = |rows: usize, columns: usize| tensor(&[1, 2, rows, columns], keys[0], 1);
        let attention = vec![heads(m, n), heads(k, n), heads(k, n)];
        let image = tensor(&[2, 3, n, m], keys[0], gap);
        let parameter = tensor(&[3], keys[0], gap);
        let normalised = vec![image, parameter.clone(), parameter.clone(), parameter, tensor(&[3], keys[0], 1), Value::Float(0.1), Value::Float(2.5)];
        let calls = [
            Call("aten.mm.default", vec![lhs.clone(), rhs.clone()]),
            Call("aten.addmm.default", vec![bias.clone(), lhs.clone(), rhs]),
            Call("aten.linear.default", vec![lhs, weight, bias]),
            Call("aten.scaled_dot_product_attention.default", attention),
            Call("aten._native_batch_norm_legit_no_training.default", normalised),
        ];
        // Up to 300 terms below four; half precision may round to the next number.
        agree(&calls, match dtype {
            DType::Float64 => 1e-12,
            DType::Float16 => 2e-3,
            DType::BFloat16 => 1.6e-2,
            DType::Int8 | DType::Int64 => 0.0,
            _ => 3e-4,
        })?;
    }

    #[test]
    fn convolutions_agree(
        image in (1..20i64, prop_oneof![1..20i64, 60..75i64]),
        kernel in (1..4i64, 1..4i64),
        stride in (1..3i64, 1..4i64),
        padding in (0..2i64, 0..3i64),
        dilation in (1..3i64, 1..3i64),
        (groups, n_in, n_out) in (1..4usize, 1..4usize, prop_oneof![1..4usize, 10..30usize]),
        dtype in prop::sample::select(&[DType::Float32, DType::Float64][..]),
        is_transposed: bool,
        keys in keys(),
        seed: u32,
    ) {
        let tensor = |sizes: &[usize]| Value::Tensor(strided(|n| numbers(n, seed, usize::MAX), dtype, sizes, keys, 1));
        // As small as they may be for a result of at least one element.
        let least = |kernel: i64, stride: i64, padding: i64, dilation: i64| {
            let reach = dilation * (kernel - 1) + 1;
            if is_transposed { 1 + ((2 * padding - reach + 1).max(0) + stride - 1) / stride } else { reach - 2 * padding }
        };
        let height = image.0.max(least(kernel.0, stride.0, padding.0, dilation.0)) as usize;
        let width = image.1.max(least(kernel.1, stride.1, padding.1, dilation.1)) as usize;
        let (kh, kw) = (kernel.0 as usize, kernel.1 as usize);
        let (first, second) = if is_transposed { (n_in * groups, n_out) } else { (n_out * groups, n_in) };
        let args = vec![
            tensor(&[2, n_in * groups, height, width]),
            tensor(&[first, second, kh, kw]),
            tensor(&[n_out * groups]),
            Value::ints(&[stride.0, stride.1]),
            Value::ints(&[padding.0, padding.1]),
            Value::ints(&[dilation.0, dilation.1]),
            Value::Bool(is_transposed),
            Value::ints(&[0, 0]),
            Value::int(groups as i64),
        ];
        agree(&[Call("aten.convolution.default", args)], if dtype == DType::Float32 { 1e-4 } else { 1e-12 })?;
    }
}
