//! Attention: what is read and written where it lies, and what is left as it was.

use crate::reference::{Net, check, noise, snapshot};
use tracefx_compile::Precision;
use tracefx_core::{DType, Tensor};
use tracefx_ir::{Arg, NodeId};
use tracefx_plan::Plan;

const SDPA: &str = "torch.ops.aten.scaled_dot_product_attention.default";

fn ints(it: &[i64]) -> Arg {
    Arg::List(it.iter().copied().map(Arg::Int).collect())
}

/// `[2, 5, n * 4]` as heads of four features, `[2, n, 5, 4]`.
fn heads(net: &mut Net, x: NodeId, n: i64) -> NodeId {
    let x = net.aten("view.default", vec![x.into(), ints(&[2, 5, n, 4])]);
    net.aten("transpose.int", vec![x.into(), Arg::Int(1), Arg::Int(2)])
}

fn count(plan: &Plan, name: &str) -> usize {
    plan.to_string().matches(name).count()
}

#[test]
fn attention_between_products_copies_nothing() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let [query, key, value] = [0; 3].map(|_| {
        let weight = net.weight(&[12, 12]);
        let y = net.aten("linear.default", vec![x.into(), weight.into()]);
        heads(&mut net, y, 3)
    });
    let y = net.graph.call_function(SDPA, vec![query.into(), key.into(), value.into()], vec![]);
    let y = net.aten("transpose.int", vec![y.into(), Arg::Int(1), Arg::Int(2)]);
    let y = net.aten("reshape.default", vec![y.into(), ints(&[2, 5, 12])]);
    let weight = net.weight(&[12, 12]);
    let y = net.aten("linear.default", vec![y.into(), weight.into()]);
    let y = net.aten("add.Tensor", vec![x.into(), y.into()]);
    let plan = check(&net.finish(&[y]), &[noise(&[2, 5, 12], 0)], Precision::Fast);
    snapshot("attention_between_products_copies_nothing", &plan);
}

/// A result that is row-major is copied to where rows come first.
#[test]
fn a_result_is_written_where_it_is_copied_to() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let query = heads(&mut net, x, 3);
    let query = net.aten("clone.default", vec![query.into()]);
    let value = net.weight(&[2, 3, 5, 7]);
    let y = net.graph.call_function(SDPA, vec![query.into(), query.into(), value.into()], vec![]);
    let y = net.aten("transpose.int", vec![y.into(), Arg::Int(1), Arg::Int(2)]);
    let y = net.aten("reshape.default", vec![y.into(), ints(&[2, 5, 21])]);
    let y = net.aten("relu.default", vec![y.into()]);
    let plan = check(&net.finish(&[y]), &[noise(&[2, 5, 12], 0)], Precision::Fast);
    snapshot("a_result_is_written_where_it_is_copied_to", &plan);
}

#[test]
fn heads_of_a_group_share_keys_and_values() {
    let mut net = Net::new();
    let [x, y] = ["x", "y"].map(|it| net.graph.placeholder(it));
    let [query, key] = [(x, 6), (y, 2)].map(|(it, n)| heads(&mut net, it, n));
    let mask = net.weight(&[6, 5, 1]);
    let mut attend = |mask: Arg, is_causal: bool, scale: Arg| {
        let args = vec![query.into(), key.into(), key.into(), mask, Arg::Float(0.0), Arg::Bool(is_causal)];
        let named = vec![("scale".into(), scale), ("enable_gqa".into(), Arg::Bool(true))];
        net.graph.call_function(SDPA, args, named)
    };
    let causal = attend(Arg::None, true, Arg::Float(0.7));
    let masked = attend(mask.into(), false, Arg::None);
    let plan = check(&net.finish(&[causal, masked]), &[noise(&[2, 5, 24], 0), noise(&[2, 5, 8], 1)], Precision::Fast);
    snapshot("heads_of_a_group_share_keys_and_values", &plan);
}

#[test]
fn a_result_that_is_read_twice_is_copied() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let query = net.aten("clone.default", vec![x.into()]);
    let y = net.graph.call_function(SDPA, vec![query.into(), query.into(), query.into()], vec![]);
    let turned = net.aten("transpose.int", vec![y.into(), Arg::Int(0), Arg::Int(1)]);
    let copied = net.aten("clone.default", vec![turned.into()]);
    let contiguous = net.aten("contiguous.default", vec![turned.into()]);
    let sum = net.aten("sum.default", vec![y.into()]);
    let plan = check(&net.finish(&[copied, contiguous, sum]), &[noise(&[3, 5, 4], 0)], Precision::Fast);
    assert_eq!((count(&plan, "attention("), count(&plan, " <- ")), (1, 2), "{plan}");
}

#[test]
fn a_mask_of_bools_says_what_counts() {
    let mut net = Net::new();
    let [x, mask] = ["x", "mask"].map(|it| net.graph.placeholder(it));
    let mask = net.aten("gt.Scalar", vec![mask.into(), Arg::Float(0.0)]);
    let y = net.graph.call_function(SDPA, vec![x.into(), x.into(), x.into(), mask.into()], vec![]);
    let mask = Tensor::from_slice(&[1.0f32, -1.0, -1.0, -1.0], &[2, 2]).unwrap();
    let plan = check(&net.finish(&[y]), &[noise(&[4, 2, 5], 0), mask], Precision::Fast);
    assert_eq!(count(&plan, "mask="), 1, "{plan}");
}

/// `x` in another dtype.
fn cast(net: &mut Net, x: NodeId, dtype: DType) -> NodeId {
    net.aten("to.dtype", vec![x.into(), Arg::DType(dtype)])
}

#[test]
fn attention_of_halves_is_a_step_where_all_is_of_one_dtype() {
    for dtype in [DType::Float16, DType::BFloat16] {
        let mut net = Net::new();
        let [x, mask] = ["x", "mask"].map(|it| net.graph.placeholder(it));
        let (half, narrow) = (cast(&mut net, x, dtype), cast(&mut net, mask, dtype));
        let [query, key] = [6, 2].map(|n| {
            let it = net.aten("slice.Tensor", vec![half.into(), Arg::Int(2), Arg::Int(0), Arg::Int(n * 4)]);
            heads(&mut net, it, n)
        });
        let args = [query, key, key].map(Arg::from);
        let named = vec![("enable_gqa".into(), Arg::Bool(true))];
        let shared = net.graph.call_function(SDPA, args.to_vec(), named);
        let masked = [query, query, query, narrow].map(Arg::from);
        let masked = net.graph.call_function(SDPA, masked.to_vec(), vec![]);
        let outputs = [shared, masked].map(|it| cast(&mut net, it, DType::Float32));
        let plan = check(&net.finish(&outputs), &[noise(&[2, 5, 24], 0), noise(&[5, 5], 1)], Precision::Fast);
        assert_eq!(count(&plan, "attention("), 2, "{plan}");
    }
}

/// What is spelled out in halves rounds its scores, in part or altogether.
#[test]
fn attention_of_halves_that_is_spelled_out_is_none() {
    for value_dtype in [DType::Float32, DType::Float16] {
        let mut net = Net::new();
        let [x, mask] = ["x", "mask"].map(|it| net.graph.placeholder(it));
        let half = cast(&mut net, x, DType::Float16);
        let turned = net.aten("transpose.int", vec![half.into(), Arg::Int(1), Arg::Int(2)]);
        let scores = net.aten("bmm.default", vec![half.into(), turned.into()]);
        let mask = cast(&mut net, mask, value_dtype);
        let scores = net.aten("add.Tensor", vec![scores.into(), mask.into()]);
        let weights = net.aten("_softmax.default", vec![scores.into(), Arg::Int(-1), Arg::Bool(false)]);
        let value = cast(&mut net, x, value_dtype);
        let y = net.aten("bmm.default", vec![weights.into(), value.into()]);
        let y = cast(&mut net, y, DType::Float32);
        let plan = check(&net.finish(&[y]), &[noise(&[2, 5, 4], 0), noise(&[2, 5, 5], 1)], Precision::Fast);
        assert_eq!(count(&plan, "attention("), 0, "{plan}");
    }
}

#[test]
fn strict_precision_calls_the_operator() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let y = net.graph.call_function(SDPA, vec![x.into(), x.into(), x.into()], vec![]);
    let plan = check(&net.finish(&[y]), &[noise(&[2, 3, 5], 0)], Precision::Strict);
    assert_eq!(count(&plan, "aten.scaled_dot_product_attention.default("), 1, "{plan}");
}

/// `softmax(query @ key.T / 2 + mask) @ value` of three heads, each operator by itself, as `run_decompositions` leaves it.
fn spelled_out(net: &mut Net, x: NodeId, mask: Option<NodeId>) -> NodeId {
    let [query, key, value] = [0; 3].map(|_| heads(net, x, 3));
    let key = net.aten("transpose.int", vec![key.into(), Arg::Int(-2), Arg::Int(-1)]);
    let product = |net: &mut Net, lhs: NodeId, rhs: NodeId, sizes: [&[i64]; 3]| {
        let [lhs, rhs] = [(lhs, sizes[0]), (rhs, sizes[1])].map(|(it, sizes)| {
            let it = net.aten("clone.default", vec![it.into()]);
            net.aten("reshape.default", vec![it.into(), ints(sizes)])
        });
        let y = net.aten("bmm.default", vec![lhs.into(), rhs.into()]);
        net.aten("view.default", vec![y.into(), ints(sizes[2])])
    };
    let root = |net: &mut Net, it: NodeId| net.aten("mul.Scalar", vec![it.into(), Arg::Float(0.5f64.sqrt())]);
    let (query, key) = (root(net, query), root(net, key));
    let mut scores = product(net, query, key, [&[6, 5, 4], &[6, 4, 5], &[2, 3, 5, 5]]);
    if let Some(mask) = mask {
        scores = net.aten("add.Tensor", vec![scores.into(), mask.into()]);
    }
    let weights = net.aten("_softmax.default", vec![scores.into(), Arg::Int(-1), Arg::Bool(false)]);
    let y = product(net, weights, value, [&[6, 5, 5], &[6, 5, 4], &[2, 3, 5, 4]]);
    let y = net.aten("permute.default", vec![y.into(), ints(&[0, 2, 1, 3])]);
    let y = net.aten("clone.default", vec![y.into()]);
    net.aten("reshape.default", vec![y.into(), ints(&[2, 5, 12])])
}

#[test]
fn attention_that_is_spelled_out_is_one_step() {
    let mut net = Net::new();
    let [x, mask] = ["x", "mask"].map(|it| net.graph.placeholder(it));
    let plain = spelled_out(&mut net, x, None);
    let y = spelled_out(&mut net, plain, Some(mask));
    let weight = net.weight(&[12, 12]);
    let y = net.aten("linear.default", vec![y.into(), weight.into()]);
    let inputs = [noise(&[2, 5, 12], 0), noise(&[2, 1, 1, 5], 1)];
    let plan = check(&net.finish(&[y]), &inputs, Precision::Fast);
    snapshot("attention_that_is_spelled_out_is_one_step", &plan);
}

#[test]
fn a_decomposed_operator_is_one_step() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let [query, key, value] = [0; 3].map(|_| heads(&mut net, x, 3));
    let args = vec![query.into(), key.into(), value.into(), Arg::None, Arg::Float(0.0), Arg::Bool(false)];
    let y = net.aten("_scaled_dot_product_attention_math.default", args);
    let y = net.graph.call_function("operator.getitem", vec![y.into(), Arg::Int(0)], vec![]);
    let plan = check(&net.finish(&[y]), &[noise(&[2, 5, 12], 0)], Precision::Fast);
    snapshot("a_decomposed_operator_is_one_step", &plan);
}

/// Weights that the program gives are computed anyhow; a key that is written afterwards is read before.
#[test]
fn what_is_seen_or_written_in_between_stays_as_it_was() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let key = net.aten("transpose.int", vec![x.into(), Arg::Int(1), Arg::Int(2)]);
    let scores = net.aten("bmm.default", vec![x.into(), key.into()]);
    let weights = net.aten("_softmax.default", vec![scores.into(), Arg::Int(-1), Arg::Bool(false)]);
    let seen = net.aten("bmm.default", vec![weights.into(), x.into()]);
    let scores = net.aten("bmm.default", vec![x.into(), key.into()]);
    let hidden = net.aten("_softmax.default", vec![scores.into(), Arg::Int(-1), Arg::Bool(false)]);
    net.aten("mul_.Scalar", vec![x.into(), Arg::Float(0.9)]);
    let written = net.aten("bmm.default", vec![hidden.into(), x.into()]);
    let plan = check(&net.finish(&[seen, weights, written]), &[noise(&[2, 5, 4], 0)], Precision::Fast);
    assert_eq!(count(&plan, "attention("), 0, "{plan}");
}

/// As GPT-2 has it: scores that are divided by a tensor and replaced by the least number where they do not count.
#[test]
fn a_condition_of_scores_is_a_mask() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let ones = net.weight(&[5, 5]);
    let kept = net.aten("ge.Scalar", vec![ones.into(), Arg::Float(-0.3)]);
    let [query, key, value] = [0; 3].map(|_| heads(&mut net, x, 3));
    let key = net.aten("transpose.int", vec![key.into(), Arg::Int(-2), Arg::Int(-1)]);
    let scores = net.aten("matmul.default", vec![query.into(), key.into()]);
    let root = net.aten("full.default", vec![ints(&[]), Arg::Float(2.0)]);
    let scores = net.aten("div.Tensor", vec![scores.into(), root.into()]);
    let least = net.aten("full.default", vec![ints(&[]), Arg::Float(f64::from(f32::MIN))]);
    let scores = net.aten("where.self", vec![kept.into(), scores.into(), least.into()]);
    let weights = net.aten("softmax.int", vec![scores.into(), Arg::Int(-1)]);
    let y = net.aten("matmul.default", vec![weights.into(), value.into()]);
    let y = net.aten("permute.default", vec![y.into(), ints(&[0, 2, 1, 3])]);
    let y = net.aten("contiguous.default", vec![y.into()]);
    let y = net.aten("view.default", vec![y.into(), ints(&[2, 5, 12])]);
    let plan = check(&net.finish(&[y]), &[noise(&[2, 5, 12], 0)], Precision::Fast);
    snapshot("a_condition_of_scores_is_a_mask", &plan);
}

/// Scores or weights that are turned around between the products.
#[test]
fn turned_weights_are_no_attention() {
    for turned in 0..4 {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let turn = |net: &mut Net, it: NodeId, at: i32| match turned == at {
            true => net.aten("transpose.int", vec![it.into(), Arg::Int(1), Arg::Int(2)]),
            false => it,
        };
        let scores = net.aten("bmm.default", vec![x.into(), x.into()]);
        let scores = turn(&mut net, scores, 0);
        let scores = net.aten("mul.Scalar", vec![scores.into(), Arg::Float(0.5)]);
        let scores = turn(&mut net, scores, 1);
        let weights = net.aten("_softmax.default", vec![scores.into(), Arg::Int(-1), Arg::Bool(false)]);
        let weights = turn(&mut net, weights, 2);
        let y = net.aten("bmm.default", vec![weights.into(), x.into()]);
        let plan = check(&net.finish(&[y]), &[noise(&[2, 4, 4], 0)], Precision::Fast);
        assert_eq!(count(&plan, "attention("), usize::from(turned == 3), "{plan}");
    }
}

/// As `run_decompositions` leaves the product behind attention: rows first in memory, and one weight for each item of the batch.
#[test]
fn a_result_is_written_in_the_order_in_which_products_read_it() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let [query, key, value] = [0; 3].map(|_| heads(&mut net, x, 3));
    let y = net.graph.call_function(SDPA, vec![query.into(), key.into(), value.into()], vec![]);
    let y = net.aten("permute.default", vec![y.into(), ints(&[2, 0, 1, 3])]);
    let y = net.aten("contiguous.default", vec![y.into()]);
    let y = net.aten("view.default", vec![y.into(), ints(&[5, 2, 12])]);
    let y = net.aten("transpose.int", vec![y.into(), Arg::Int(0), Arg::Int(1)]);
    let weight = net.weight(&[12, 8]);
    let weight = net.aten("expand.default", vec![weight.into(), ints(&[2, 12, 8])]);
    let y = net.aten("bmm.default", vec![y.into(), weight.into()]);
    let y = net.aten("relu.default", vec![y.into()]);
    let plan = check(&net.finish(&[y]), &[noise(&[2, 5, 12], 0)], Precision::Fast);
    snapshot("a_result_is_written_in_the_order_in_which_products_read_it", &plan);
}
