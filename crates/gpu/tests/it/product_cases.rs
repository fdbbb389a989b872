//! Products whose right side are integers.

use super::Arg::{Int, Tensor};
use super::{Build, Call};
use tracefx_core::DType::{self, BFloat16, Float16, Float32, Int8, Int32, Int64, UInt8};
use tracefx_core::Tensor as Values;
use tracefx_plan::{Activation, Dequantization, DequantizedProduct, Epilogue, IntegerLayout, Plan, Product};

/// Calls of operators, of tensors that a run is given.
pub(crate) const PRODUCT_CALLS: &[Call] = &[
    (
        "aten._weight_int8pack_mm.default",
        &[Tensor(Float32, &[3, 40]), Tensor(Int8, &[24, 40]), Tensor(Float32, &[24])],
        &[(Float32, &[3, 24])],
    ),
    (
        "aten._weight_int8pack_mm.default",
        &[Tensor(BFloat16, &[9, 33]), Tensor(Int8, &[7, 33]), Tensor(BFloat16, &[7])],
        &[(BFloat16, &[9, 7])],
    ),
    (
        "aten._weight_int4pack_mm.default",
        &[Tensor(Float16, &[2, 64]), Tensor(Int32, &[2, 1, 32, 2]), Int(32), Tensor(Float16, &[2, 16, 2])],
        &[(Float16, &[2, 16])],
    ),
    (
        "aten._weight_int4pack_mm.default",
        &[Tensor(Float32, &[7, 128]), Tensor(Int32, &[3, 4, 32, 1]), Int(64), Tensor(Float32, &[2, 24, 2])],
        &[(Float32, &[7, 24])],
    ),
];

/// Plans of one product each, of integers of the program: few rows and many, of all layouts, dtypes and numbers.
pub(crate) fn dequantized() -> Vec<(&'static str, Plan)> {
    let mut plans = Vec::new();
    for (dtype, sizes, group_size) in [
        (Float32, [1, 96, 70], 96),
        (BFloat16, [3, 96, 131], 32),
        (Float16, [70, 90, 67], 15),
        (Float32, [6, 40, 9], 8),
        (Float32, [130, 64, 129], 1),
    ] {
        for (integers, is_turned) in [(Int8, true), (UInt8, false)] {
            plans.push(("a product of bytes", bytes(dtype, sizes, group_size, integers, is_turned)));
        }
    }
    for (dtype, m, sizes, group_size) in
        [(Float32, 1, [3, 2, 32, 1], 32), (BFloat16, 4, [2, 1, 32, 4], 64), (Float16, 19, [9, 3, 32, 2], 192)]
    {
        plans.push(("a product of tiles", tiles(dtype, m, sizes, group_size)));
    }
    plans
}

fn bytes(dtype: DType, [m, k, n]: [i64; 3], group_size: i64, integers: DType, is_turned: bool) -> Plan {
    let mut build = Build::default();
    let all: Vec<u8> = (0..k * n).map(|it| (it * 37 + it / 5) as u8).collect();
    let sizes = if is_turned { [n, k] } else { [k, n] };
    let made = Values::from_slice(&all, &sizes.map(|it| it as usize)).unwrap();
    let strides = if is_turned { [k as usize, 1] } else { [n as usize, 1] };
    let made = Values::view_of(made.storage().clone(), integers, &sizes.map(|it| it as usize), &strides, 0).unwrap();
    let mut rhs = build.constant(&made);
    if is_turned {
        let mut view = build.plan.tensor(rhs).clone();
        view.sizes.reverse();
        view.strides.reverse();
        rhs = build.plan.add_tensor(view);
    }
    let groups = [k / group_size, n];
    let is_even = k / group_size % 2 == 0;
    let dequantization = Dequantization {
        layout: IntegerLayout::Bytes,
        group_size: group_size as usize,
        zero_point: 3,
        scale: 0.125,
        scales: is_even.then(|| build.input(dtype, &groups)),
        zero_points: Some(build.strided([Int8, Int32, Int64][(n % 3) as usize], &groups, &[0, 1])),
        shifts: None,
        is_rounded: dtype == BFloat16,
    };
    product(build, [m, k, n], dtype, rhs, dequantization)
}

fn tiles(dtype: DType, m: i64, sizes: [i64; 4], group_size: i64) -> Plan {
    let mut build = Build::default();
    let words: Vec<i32> = (0..sizes.iter().product()).map(|it: i64| (it as i32).wrapping_mul(-1_640_531_527)).collect();
    let rhs = build.constant(&Values::from_slice(&words, &sizes.map(|it| it as usize)).unwrap());
    let [k, n] = [sizes[1] * 32 * sizes[3], sizes[0] * 8];
    let groups = [k / group_size, n];
    let dequantization = Dequantization {
        layout: IntegerLayout::Int4Tiles,
        group_size: group_size as usize,
        zero_point: 8,
        scale: 1.0,
        scales: Some(build.strided(dtype, &groups, &[2 * n, 2])),
        zero_points: None,
        shifts: Some(build.strided(dtype, &groups, &[1, 0])),
        is_rounded: dtype == Float16,
    };
    product(build, [m, k, n], dtype, rhs, dequantization)
}

fn product(
    mut build: Build,
    [m, k, n]: [i64; 3],
    dtype: DType,
    rhs: tracefx_plan::TensorId,
    dequantization: Dequantization<tracefx_plan::TensorId>,
) -> Plan {
    let lhs = build.input(dtype, &[m, k]);
    let (bias, residual) = (Some(build.input(dtype, &[n])), Some(build.input(dtype, &[m, n])));
    let epilogue = Epilogue { bias, norm: None, residual, activation: Activation::Silu };
    let result = build.result(dtype, &[m, n]);
    build.fused(DequantizedProduct { product: Product { lhs, rhs, epilogue, result }, dequantization }.into());
    build.finish()
}
