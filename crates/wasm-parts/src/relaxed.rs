//! Products with relaxed SIMD: multiplications and additions that a host rounds as its processor does.
//!
//! These are all functions with such instructions, and stand in a crate that computes nothing else (`tracefx_cpu::use_relaxed_simd` says why).
//! `xtask/split` makes a part of the module of them, which hosts without relaxed SIMD do not load.

use core::arch::wasm32::{f32x4, f32x4_extract_lane, f32x4_relaxed_madd, f32x4_splat, v128};

/// The columns of a panel.
const N: usize = 8;

/// As [`tracefx_cpu::AddProducts`] says.
///
/// # Panics
/// Where the rows or the width are others than it says.
pub(crate) fn add_products(rows: &[&[f32]], panel: &[f32], sums: &mut [f32]) {
    relaxed(rows, panel, sums);
}

#[target_feature(enable = "relaxed-simd")]
#[inline(never)]
fn relaxed(rows: &[&[f32]], panel: &[f32], sums: &mut [f32]) {
    let panel = panel.as_chunks().0;
    match (rows, sums.len()) {
        (&[a, b, c, d], 32) => tile::<4, 2>([a, b, c, d], panel, sums),
        (&[a, b, c, d], 16) => tile::<4, 1>([a, b, c, d], panel, sums),
        (&[a], 8) => tile::<1, 2>([a], panel, sums),
        (&[a], 4) => tile::<1, 1>([a], panel, sums),
        _ => unreachable!("one or four rows, and four or eight columns"),
    }
}

/// Adds the products of `M` rows with the first `V` vectors of a panel.
#[target_feature(enable = "relaxed-simd")]
#[inline]
fn tile<const M: usize, const V: usize>(rows: [&[f32]; M], panel: &[[f32; N]], sums: &mut [f32]) {
    let mut rows = rows;
    for row in &mut rows {
        *row = &row[..panel.len()];
    }
    let mut totals = [[f32x4_splat(0.0); V]; M];
    for i in 0..M {
        for v in 0..V {
            totals[i][v] = vector(&sums[i * V * 4..], v);
        }
    }
    for (p, panel) in panel.iter().enumerate() {
        for i in 0..M {
            let factor = f32x4_splat(rows[i][p]);
            for v in 0..V {
                totals[i][v] = f32x4_relaxed_madd(factor, vector(panel, v), totals[i][v]);
            }
        }
    }
    let done = totals;
    for i in 0..M {
        for v in 0..V {
            let (total, to) = (done[i][v], &mut sums[(i * V + v) * 4..][..4]);
            to[0] = f32x4_extract_lane::<0>(total);
            to[1] = f32x4_extract_lane::<1>(total);
            to[2] = f32x4_extract_lane::<2>(total);
            to[3] = f32x4_extract_lane::<3>(total);
        }
    }
}

/// A vector of these elements.
#[inline(always)]
fn vector(of: &[f32], at: usize) -> v128 {
    let of = &of[at * 4..][..4];
    f32x4(of[0], of[1], of[2], of[3])
}
