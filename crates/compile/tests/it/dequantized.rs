//! Products whose weights are integers of the program: which spellings become one step that reads the integers.

use crate::reference::{Net, check, noise, snapshot};
use proptest::prelude::*;
use tracefx_compile::Precision;
use tracefx_core::{DType, Tensor, bf16, f16};
use tracefx_ir::{Arg, NodeId};

fn ints(it: &[i64]) -> Arg {
    Arg::List(it.iter().map(|it| Arg::Int(*it)).collect())
}

impl Net {
    /// Integers of `-8..8`, or of all of int8.
    fn integers(&mut self, sizes: &[usize], is_narrow: bool) -> NodeId {
        let n: usize = sizes.iter().product();
        let number = |at: usize| if is_narrow { (at * 7 % 16) as i8 - 8 } else { (at * 89 % 256) as u8 as i8 };
        self.constant(Tensor::from_slice(&(0..n).map(number).collect::<Vec<_>>(), sizes).unwrap())
    }

    fn scales(&mut self, sizes: &[usize]) -> NodeId {
        let n: usize = sizes.iter().product();
        let scales: Vec<f32> = (0..n).map(|at| 0.004 + at as f32 * 2e-4).collect();
        self.constant(Tensor::from_slice(&scales, sizes).unwrap())
    }

    fn zeros(&mut self, sizes: &[usize]) -> NodeId {
        let n: usize = sizes.iter().product();
        let zeros: Vec<i64> = (0..n).map(|at| at as i64 % 5 - 2).collect();
        self.constant(Tensor::from_slice(&zeros, sizes).unwrap())
    }

    fn half_scales(&mut self, sizes: &[usize], dtype: DType) -> NodeId {
        let scales = (0..sizes.iter().product()).map(|at: usize| 0.3 + at as f32 * 0.07);
        self.constant(match dtype {
            DType::Float16 => Tensor::from_slice(&scales.map(f16::from_f32).collect::<Vec<_>>(), sizes).unwrap(),
            _ => Tensor::from_slice(&scales.map(bf16::from_f32).collect::<Vec<_>>(), sizes).unwrap(),
        })
    }

    fn decomposed(&mut self, op: &str, args: Vec<Arg>) -> NodeId {
        self.graph.call_function(&format!("torch.ops.quantized_decomposed.{op}.default"), args, vec![])
    }

    fn converted(&mut self, x: NodeId, dtype: DType) -> NodeId {
        let options = vec![("dtype".into(), Arg::DType(dtype))];
        self.graph.call_function("torch.ops.aten._to_copy.default", vec![x.into()], options)
    }

    fn linear(&mut self, x: NodeId, weight: NodeId) -> NodeId {
        let bias = self.weight(&[6]);
        self.aten("linear.default", vec![x.into(), weight.into(), bias.into()])
    }
}

const RANGE: [Arg; 3] = [Arg::Int(-128), Arg::Int(127), Arg::DType(DType::Int8)];

/// The plan of a net of rows of 32 numbers, with so many products of integers.
#[track_caller]
fn check_products(net: Net, outputs: &[NodeId], precision: Precision, n_products: usize) -> String {
    let plan = check(&net.finish(outputs), &[noise(&[2, 3, 32], 0)], precision);
    let text = plan.to_string();
    assert_eq!(text.matches("= dequantized_product(").count(), n_products, "{text}");
    text
}

/// A way to say what the numbers of six columns of 32 rows are.
type Spelling = fn(&mut Net) -> NodeId;

const SPELLINGS: [(&str, Spelling); 6] = [
    ("a scale for each column", |net| {
        let (w, scales, zeros) = (net.integers(&[6, 32], false), net.scales(&[6]), net.zeros(&[6]));
        let args = [w.into(), scales.into(), zeros.into(), Arg::Int(0)].into_iter().chain(RANGE).collect();
        net.decomposed("dequantize_per_channel", args)
    }),
    ("one scale", |net| {
        let w = net.integers(&[6, 32], false);
        let args = [w.into(), Arg::Float(0.01), Arg::Int(-3)].into_iter().chain(RANGE).collect();
        net.decomposed("dequantize_per_tensor", args)
    }),
    ("groups of rows", |net| {
        let (w, scales, zeros) = (net.integers(&[6, 32], true), net.scales(&[6, 2]), net.zeros(&[6, 2]));
        let options = [Arg::Int(16), Arg::DType(DType::Float32)];
        let args = [w.into(), scales.into(), zeros.into()].into_iter().chain(RANGE).chain(options).collect();
        net.decomposed("dequantize_per_channel_group", args)
    }),
    // As torchao's `dequantize_affine` is made of operators.
    ("blocks", |net| {
        let (w, scales, zeros) = (net.integers(&[6, 32], true), net.scales(&[6, 4, 1]), net.zeros(&[6, 4]));
        let w = net.aten("view.default", vec![w.into(), ints(&[6, 4, 8])]);
        let w = net.converted(w, DType::Float32);
        let zeros = net.converted(zeros, DType::Float32);
        let zeros = net.aten("view.default", vec![zeros.into(), ints(&[6, 4, 1])]);
        let w = net.aten("sub.Tensor", vec![w.into(), zeros.into()]);
        let w = net.aten("mul.Tensor", vec![w.into(), scales.into()]);
        net.aten("view.default", vec![w.into(), ints(&[6, 32])])
    }),
    ("a conversion", |net| {
        let w = net.integers(&[6, 32], false);
        net.converted(w, DType::Float32)
    }),
    ("factors before and behind a conversion", |net| {
        let (w, scales) = (net.integers(&[6, 32], false), net.scales(&[6, 1]));
        let w = net.converted(w, DType::Float32);
        let w = net.aten("mul.Tensor", vec![scales.into(), w.into()]);
        let w = net.aten("mul.Scalar", vec![w.into(), Arg::Float(0.5)]);
        net.converted(w, DType::Float32)
    }),
];

#[test]
fn weights_that_are_spelled_out_are_read_as_integers() {
    let mut texts = String::new();
    for (name, spelled) in SPELLINGS {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let weight = spelled(&mut net);
        let y = net.linear(x, weight);
        let y = net.aten("relu.default", vec![y.into()]);
        let text = check_products(net, &[y], Precision::Fast, 1);
        assert_eq!(text.matches("  # ").count(), 1, "{name}: {text}");
        let step = text.lines().find(|it| it.contains("= dequantized_product(")).unwrap();
        texts.push_str(&format!("{name}:\n{step}\n"));
    }
    snapshot("weights_that_are_spelled_out_are_read_as_integers", &texts);
}

#[test]
fn columns_may_lie_one_row_after_the_other() {
    for (at, (_, spelled)) in SPELLINGS.into_iter().enumerate() {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let x = net.aten("narrow.default", vec![x.into(), Arg::Int(2), Arg::Int(0), Arg::Int(6)]);
        let x = net.aten("contiguous.default", vec![x.into()]);
        let weight = spelled(&mut net);
        let y = net.aten("matmul.default", vec![x.into(), weight.into()]);
        // The numbers of the others are those of a row, or of a group of columns.
        let is_one = [1, 4].contains(&at);
        check_products(net, &[y], Precision::Fast, usize::from(is_one));
    }
}

#[test]
fn operators_of_packed_weights_are_products_of_integers() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.aten("view.default", vec![x.into(), ints(&[-1, 32])]);
    let (w, scales) = (net.integers(&[6, 32], false), net.scales(&[6]));
    let y = net.aten("_weight_int8pack_mm.default", vec![x.into(), w.into(), scales.into()]);
    let bias = net.weight(&[6]);
    let y = net.aten("add.Tensor", vec![y.into(), bias.into()]);
    let text = check_products(net, &[y], Precision::Fast, 1);
    assert_eq!(text.matches("  # ").count(), 1, "{text}");

    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let words: Vec<i32> = (0..2 * 2 * 32 * 2).map(|at: i32| at.wrapping_mul(-1_640_531_527)).collect();
    let words = net.constant(Tensor::from_slice(&words, &[2, 2, 32, 2]).unwrap());
    let numbers = net.weight(&[4, 16, 2]);
    let args = vec![x.into(), words.into(), Arg::Int(32), numbers.into()];
    let y = net.aten("_weight_int4pack_mm.default", args);
    let y = net.aten("gelu.default", vec![y.into()]);
    let text = check(&net.finish(&[y]), &[noise(&[3, 128], 0)], Precision::Fast).to_string();
    assert!(text.contains("layout=Int4Tiles, group_size=32, zero_point=8"), "{text}");
    assert_eq!(text.matches("  # ").count(), 1, "{text}");
}

#[test]
fn a_strict_plan_makes_numbers_first() {
    for (_, spelled) in SPELLINGS {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let weight = spelled(&mut net);
        let y = net.linear(x, weight);
        check_products(net, &[y], Precision::Strict, 0);
    }
}

#[test]
fn numbers_that_others_read_are_made_too() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let weight = SPELLINGS[0].1(&mut net);
    let y = net.linear(x, weight);
    let sum = net.aten("sum.default", vec![weight.into()]);
    check_products(net, &[y, sum], Precision::Fast, 1);
}

#[test]
fn what_is_no_group_of_rows_stays_numbers() {
    type Change = fn(&mut Net, NodeId) -> NodeId;
    let cases: [Change; 11] = [
        // A scale for each number, and one for each row, whose numbers take more memory than those of the weight.
        |net, w| {
            let scales = net.scales(&[6, 32]);
            net.aten("mul.Tensor", vec![w.into(), scales.into()])
        },
        |net, w| {
            let scales = net.scales(&[32]);
            net.aten("mul.Tensor", vec![w.into(), scales.into()])
        },
        // Scales and zeros that are rounded before.
        |net, w| {
            let scales = net.scales(&[6, 1]);
            let scales = net.converted(scales, DType::BFloat16);
            net.aten("mul.Tensor", vec![w.into(), scales.into()])
        },
        |net, w| {
            let zeros = net.scales(&[6, 1]);
            let zeros = net.converted(zeros, DType::Int32);
            net.aten("sub.Tensor", vec![w.into(), zeros.into()])
        },
        // Numbers that become integers, and factors that wrap.
        |net, w| {
            let w = net.aten("mul.Scalar", vec![w.into(), Arg::Float(0.3)]);
            let w = net.converted(w, DType::Int32);
            net.converted(w, DType::Float32)
        },
        |net, _| {
            let w = net.integers(&[6, 32], false);
            let w = net.aten("mul.Scalar", vec![w.into(), Arg::Int(3)]);
            net.converted(w, DType::Float32)
        },
        // Rows of a group that are not side by side.
        |net, w| {
            let scales = net.scales(&[6, 1, 8]);
            let w = net.aten("view.default", vec![w.into(), ints(&[6, 4, 8])]);
            let w = net.aten("mul.Tensor", vec![w.into(), scales.into()]);
            net.aten("view.default", vec![w.into(), ints(&[6, 32])])
        },
        // Groups that begin within a column.
        |net, w| {
            let scales = net.scales(&[4, 1]);
            let w = net.aten("view.default", vec![w.into(), ints(&[4, 48])]);
            let w = net.aten("mul.Tensor", vec![w.into(), scales.into()]);
            net.aten("view.default", vec![w.into(), ints(&[6, 32])])
        },
        // A sum, and a difference behind a factor.
        |net, w| net.aten("add.Scalar", vec![w.into(), Arg::Float(0.5)]),
        |net, w| {
            let w = net.aten("mul.Scalar", vec![w.into(), Arg::Float(0.5)]);
            net.aten("sub.Scalar", vec![w.into(), Arg::Int(3)])
        },
        |net, w| {
            let (a, b) = (net.scales(&[6, 1]), net.scales(&[32]));
            let w = net.aten("mul.Tensor", vec![w.into(), a.into()]);
            net.aten("mul.Tensor", vec![w.into(), b.into()])
        },
    ];
    for change in cases {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let w = net.integers(&[6, 32], false);
        let w = net.converted(w, DType::Float32);
        let w = change(&mut net, w);
        let y = net.linear(x, w);
        check_products(net, &[y], Precision::Fast, 0);
    }
}

/// A row for all columns is not the numbers of a weight.
#[test]
fn integers_that_are_repeated_stay_numbers() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let (w, scales) = (net.integers(&[1, 32], false), net.scales(&[6, 1]));
    let w = net.converted(w, DType::Float32);
    let w = net.aten("mul.Tensor", vec![w.into(), scales.into()]);
    let y = net.linear(x, w);
    check_products(net, &[y], Precision::Fast, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn views_and_broadcasts_give_what_the_interpreter_gives(
        parted in prop::sample::select(vec![
            vec![6i64, 32], vec![192], vec![2, 3, 32], vec![6, 2, 16], vec![12, 16], vec![3, 64], vec![6, 1, 32, 1], vec![24, 8],
        ]),
        kept in prop::collection::vec(any::<[bool; 2]>(), 4),
        lead in 0..3usize,
        is_turned: bool,
    ) {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let w = net.integers(&[6, 32], lead % 2 == 0);
        let w = net.aten("view.default", vec![w.into(), ints(&parted)]);
        let mut w = net.converted(w, DType::Float32);
        for (which, op) in ["sub.Tensor", "mul.Tensor"].into_iter().enumerate() {
            let sizes: Vec<usize> = parted.iter().zip(&kept).map(|(size, kept)| if kept[which] { *size as usize } else { 1 }).collect();
            let sizes = &sizes[(lead * which).min(sizes.len() - 1)..];
            let other = if which == 0 { net.zeros(sizes) } else { net.scales(sizes) };
            w = net.aten(op, vec![w.into(), other.into()]);
        }
        let y = if is_turned {
            let w = net.aten("view.default", vec![w.into(), ints(&[32, 6])]);
            net.aten("matmul.default", vec![x.into(), w.into()])
        } else {
            let w = net.aten("view.default", vec![w.into(), ints(&[6, 32])]);
            net.linear(x, w)
        };
        let text = check(&net.finish(&[y]), &[noise(&[2, 3, 32], 0)], Precision::Fast).to_string();
        // One number for all elements is one for any group.
        let is_one = kept.iter().take(parted.len()).all(|it| *it == [false; 2]);
        prop_assert!(!is_one || text.contains("= dequantized_product("), "{text}");
    }
}

/// A difference in eight bits is not that of the numbers.
#[test]
fn differences_that_wrap_stay_numbers() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let w = net.integers(&[6, 32], false);
    let zeros = net.constant(Tensor::from_slice(&[100i8, -100, 3, 90, -90, 0], &[6, 1]).unwrap());
    let w = net.aten("sub.Tensor", vec![w.into(), zeros.into()]);
    let w = net.converted(w, DType::Float32);
    let y = net.linear(x, w);
    check_products(net, &[y], Precision::Fast, 0);
}

/// What torchao's weights of int8 are exported as.
#[test]
fn factors_behind_a_product_of_integers_are_its_scales() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.aten("reshape.default", vec![x.into(), ints(&[-1, 32])]);
    let w = net.integers(&[6, 32], false);
    let w = net.aten("t.default", vec![w.into()]);
    let w = net.converted(w, DType::Float32);
    let y = net.aten("mm.default", vec![x.into(), w.into()]);
    let scales = net.scales(&[6]);
    let y = net.aten("mul.Tensor", vec![y.into(), scales.into()]);
    let y = net.aten("reshape.default", vec![y.into(), ints(&[2, 3, 6])]);
    let bias = net.weight(&[6]);
    let y = net.aten("add.Tensor", vec![y.into(), bias.into()]);
    let y = net.aten("silu.default", vec![y.into()]);
    let text = check_products(net, &[y], Precision::Fast, 1);
    assert_eq!(text.matches("  # ").count(), 1, "{text}");
}

/// What is written behind the factor is not what the product reads.
#[test]
fn rows_that_are_written_to_behind_the_factor_are_read_before() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let h = net.aten("reshape.default", vec![x.into(), ints(&[-1, 32])]);
    let h = net.aten("sin.default", vec![h.into()]);
    let w = net.integers(&[6, 32], false);
    let w = net.converted(w, DType::Float32);
    let w = net.aten("t.default", vec![w.into()]);
    let y = net.aten("mm.default", vec![h.into(), w.into()]);
    let scales = net.scales(&[6]);
    let y = net.aten("mul.Tensor", vec![y.into(), scales.into()]);
    let index = net.constant(Tensor::from_slice(&[1i64, 3], &[2]).unwrap());
    let rows = net.weight(&[2, 32]);
    let h = net.aten("index_copy.default", vec![h.into(), Arg::Int(0), index.into(), rows.into()]);
    let y = net.aten("relu.default", vec![y.into()]);
    let h = net.aten("sum.default", vec![h.into()]);
    check_products(net, &[y, h], Precision::Fast, 0);
}

/// Numbers of which all products and sums are numbers of float32: a number that is rounded elsewhere gives another one.
fn exact(sizes: &[usize]) -> Tensor {
    let n: usize = sizes.iter().product();
    let numbers: Vec<f32> = (0..n).map(|at| [0.5, -1.0, 0.25, 1.0, -0.5][at * 7 % 5]).collect();
    Tensor::from_slice(&numbers, sizes).unwrap()
}

#[test]
fn halves_are_rounded_where_the_program_rounds_them() {
    for dtype in [DType::Float16, DType::BFloat16] {
        // The numbers are rounded, and then multiplied.
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let x = net.converted(x, dtype);
        let (w, scales) = (net.integers(&[6, 32], false), net.half_scales(&[6, 1], dtype));
        let w = net.converted(w, dtype);
        let w = net.aten("mul.Tensor", vec![w.into(), scales.into()]);
        let y = net.aten("linear.default", vec![x.into(), w.into()]);
        let y = net.converted(y, DType::Float32);
        let text = check(&net.finish(&[y]), &[exact(&[2, 3, 32])], Precision::Fast).to_string();
        assert!(text.contains("= dequantized_product(") && text.contains("is_rounded=true"), "{text}");

        // Integers are numbers as they are.
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let x = net.converted(x, dtype);
        let x = net.aten("reshape.default", vec![x.into(), ints(&[-1, 32])]);
        let (w, scales) = (net.integers(&[6, 32], true), net.half_scales(&[6], dtype));
        let w = net.converted(w, dtype);
        let w = net.aten("t.default", vec![w.into()]);
        let y = net.aten("mm.default", vec![x.into(), w.into()]);
        let y = net.aten("mul.Tensor", vec![y.into(), scales.into()]);
        let y = net.converted(y, DType::Float32);
        let text = check(&net.finish(&[y]), &[exact(&[2, 3, 32])], Precision::Fast).to_string();
        assert!(text.contains("= dequantized_product(") && !text.contains("is_rounded"), "{text}");

        // Halves that become float32 have been rounded.
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let (w, scales) = (net.integers(&[6, 32], false), net.half_scales(&[6, 1], dtype));
        let w = net.converted(w, dtype);
        let w = net.aten("mul.Tensor", vec![w.into(), scales.into()]);
        let w = net.converted(w, DType::Float32);
        let y = net.linear(x, w);
        check_products(net, &[y], Precision::Fast, 0);
    }
}
