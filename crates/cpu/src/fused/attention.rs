//! Attention whose operands and result lie as their neighbours have them.

use crate::attention::{Attend, Head, MaskOperand, matrix, unravel};
use crate::numeric::dense::written;
use crate::numeric::isa::Level;
use crate::numeric::strided::{Strided, try_fill_float};
use tracefx_core::{DType, Result, Tensor, contiguous_strides};
use tracefx_exec::assign;
use tracefx_plan::Attention;

/// # Errors
/// `OutOfMemory`.
pub(super) fn attention(it: &Attention<Tensor>) -> Result<()> {
    let (sizes, n_columns) = (it.result.sizes(), it.key.sizes()[it.key.rank() - 2]);
    if it.result.numel() == 0 {
        return Ok(());
    }
    let (batch, last) = sizes.split_at(sizes.len() - 2);
    let [query, key, value] = [&it.query, &it.key, &it.value].map(Strided::<f32>::expanded);
    let (query, key, value) = (query?, key?, value?);
    let mask = MaskOperand::<f32>::new(it.mask.as_ref())?;
    let mask = mask.as_ref().map(|it| it.expanded(&[batch, &[last[0], n_columns]].concat()));
    let head = |head: usize| {
        let index = unravel(head, batch);
        let of = |side| {
            let side: &Strided<'_, f32> = side;
            index.iter().zip(&side.strides).map(|(index, stride)| index * stride).sum()
        };
        Head {
            query: matrix(&query, of(&query)),
            key: matrix(&key, of(&key)),
            value: matrix(&value, of(&value)),
            mask: mask.as_ref().map(|it| it.matrix(&index)),
        }
    };
    let attend = Attend {
        level: Level::of_fast_steps(),
        n_columns,
        n_features: it.query.sizes()[it.query.rank() - 1],
        scale: it.scale as f32,
        masked: it.masked as f32,
        is_causal: it.is_causal,
        is_safe: it.is_safe,
        head: &head,
    };
    if it.result.dtype() != DType::Float32 {
        let own = Tensor::zeros(it.result.dtype(), sizes)?;
        try_fill_float(&own, |out| attend.run(out, sizes, &contiguous_strides(sizes), &mut []))?;
        return assign(&it.result, &own);
    }
    let mut guard = written(&it.result);
    attend.run(&mut guard.elements_mut::<f32>()[it.result.offset()..], sizes, it.result.strides(), &mut [])
}

#[cfg(test)]
mod tests {
    //! Attention gives what a plain loop in float64 says, on every instruction set.

    use crate::agreement::config;
    use crate::fused::prepare;
    use crate::numeric::isa::Level;
    use crate::numeric::map::cast;
    use proptest::prelude::*;
    use tracefx_core::{Bool8, DType, Tensor};
    use tracefx_plan::{Attention, Fused};

    /// Numbers that differ.
    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|at| ((at * 7 + seed * 13) as f32 * 0.37).sin() * 2.0).collect()
    }

    fn numbers_of(it: &Tensor) -> Vec<f32> {
        cast(it, DType::Float32).unwrap().to_vec().unwrap()
    }

    /// How a tensor of a batch of two dimensions, rows and columns lies in memory, from the outermost dimension on.
    const ORDERS: [[usize; 4]; 4] = [[0, 1, 2, 3], [0, 2, 1, 3], [1, 0, 3, 2], [2, 0, 1, 3]];

    /// A tensor of these numbers, whose dimensions lie in this order, not at the beginning of its storage.
    fn placed(data: &[f32], sizes: [usize; 4], order: [usize; 4], dtype: DType) -> Tensor {
        let mut strides = [0; 4];
        let mut next = 1;
        for dim in order.into_iter().rev() {
            strides[dim] = next;
            next *= sizes[dim].max(1) + 1;
        }
        let all = cast(&Tensor::from_slice(&vec![f32::NAN; next + 3], &[next + 3]).unwrap(), dtype).unwrap();
        let it = all.as_strided(&sizes, &strides, 3).unwrap();
        tracefx_exec::assign(&it, &cast(&Tensor::from_slice(data, &sizes).unwrap(), dtype).unwrap()).unwrap();
        it
    }

    #[derive(Clone, Copy, Debug)]
    enum Masked {
        Not,
        Added,
        Kept,
    }

    #[derive(Clone, Debug)]
    struct Case {
        dtype: DType,
        batch: [usize; 2],
        /// Whether the heads share keys and values.
        is_shared: bool,
        /// Rows, columns, features, values.
        sizes: [usize; 4],
        orders: [[usize; 4]; 4],
        masked: Masked,
        /// What a mask of bools adds.
        masked_score: f64,
        is_causal: bool,
        is_safe: bool,
    }

    impl Case {
        fn mask(&self, place: [usize; 4]) -> f64 {
            let at = place.iter().fold(0, |at, it| at * 31 + it);
            match self.masked {
                Masked::Not => 0.0,
                // The first row of the first head counts nothing.
                Masked::Kept if place[..3] == [0; 3] || at % 5 == 0 => self.masked_score,
                Masked::Added if place[..3] == [0; 3] || at % 5 == 0 => f64::NEG_INFINITY,
                Masked::Kept => 0.0,
                Masked::Added => f64::from((at as f32 * 0.7).cos()),
            }
        }

        fn step(&self) -> Attention<Tensor> {
            let ([b, h], [l, s, e, v]) = (self.batch, self.sizes);
            let shared = if self.is_shared { 1 } else { h };
            let side = |sizes: [usize; 4], at: usize| {
                let it = placed(&numbers(sizes.iter().product(), at), sizes, self.orders[at], self.dtype);
                let mut strides = it.strides().to_vec();
                if sizes[1] != h {
                    strides[1] = 0;
                }
                it.as_strided(&[b, h, sizes[2], sizes[3]], &strides, it.offset()).unwrap()
            };
            let places = (0..b * h * l * s).map(|at| [at / (h * l * s), at / (l * s) % h, at / s.max(1) % l, at % s]);
            let mask: Vec<f32> = places.map(|it| self.mask(it) as f32).collect();
            let mask = match self.masked {
                Masked::Not => None,
                Masked::Added => Some(cast(&Tensor::from_slice(&mask, &[b, h, l, s]).unwrap(), self.dtype).unwrap()),
                Masked::Kept => {
                    let kept: Vec<Bool8> = mask.iter().map(|it| Bool8::from(*it == 0.0)).collect();
                    Some(Tensor::from_slice(&kept, &[b, h, l, s]).unwrap())
                }
            };
            Attention {
                query: side([b, h, l, e], 0),
                key: side([b, shared, s, e], 1),
                value: side([b, shared, s, v], 2),
                mask,
                masked: self.masked_score,
                is_causal: self.is_causal,
                scale: 0.3,
                is_safe: self.is_safe,
                result: placed(&vec![f32::NAN; b * h * l * v], [b, h, l, v], self.orders[3], self.dtype),
            }
        }

        /// What the definition says.
        fn expected(&self, it: &Attention<Tensor>) -> Vec<f64> {
            let ([b, h], [l, s, e, v]) = (self.batch, self.sizes);
            let [query, key, value] = [&it.query, &it.key, &it.value].map(numbers_of);
            let rounded = |it: f64| {
                f64::from(numbers_of(&cast(&Tensor::from_slice(&[it as f32], &[1]).unwrap(), self.dtype).unwrap())[0])
            };
            let mut res = Vec::new();
            for (head, row) in (0..b * h).flat_map(|head| (0..l).map(move |row| (head, row))) {
                let score = |column: usize| {
                    let term = |at: usize| {
                        f64::from(query[(head * l + row) * e + at]) * f64::from(key[(head * s + column) * e + at])
                    };
                    let is_hidden = self.is_causal && column > row;
                    let mask = if is_hidden { f64::NEG_INFINITY } else { self.mask([head / h, head % h, row, column]) };
                    let mask = if matches!(self.masked, Masked::Added) { rounded(mask) } else { mask };
                    (0..e).map(term).sum::<f64>() * it.scale + mask
                };
                let scores: Vec<f64> = (0..s).map(score).collect();
                let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = scores.iter().map(|it| (it - max).exp()).sum();
                for at in 0..v {
                    let term = |column: usize| {
                        (scores[column] - max).exp() / sum * f64::from(value[(head * s + column) * v + at])
                    };
                    let is_zero = s == 0 || self.is_safe && max == f64::NEG_INFINITY;
                    res.push(if is_zero { 0.0 } else { (0..s).map(term).sum() });
                }
            }
            res
        }
    }

    fn case() -> impl Strategy<Value = Case> {
        let sizes = prop_oneof![
            4 => [0usize..8, 0usize..20, 0usize..9, 0usize..9],
            3 => [1usize..130, 1usize..90, 1usize..40, 1usize..40],
            1 => [49usize..120, 700usize..1500, 1usize..20, 1usize..20],
        ];
        let order = || prop::sample::select(&ORDERS[..]);
        let masked = prop::sample::select(vec![Masked::Not, Masked::Added, Masked::Kept]);
        let masked_score = prop::sample::select(vec![f64::NEG_INFINITY, f64::from(f32::MIN), -1.5]);
        let dtype = prop::sample::select(vec![DType::Float32, DType::Float32, DType::Float16, DType::BFloat16]);
        let options = ((any::<bool>(), dtype), (masked, masked_score), any::<bool>(), any::<bool>());
        ([0usize..3, 1usize..4], sizes, [order(), order(), order(), order()], options).prop_map(
            |(batch, sizes, orders, ((is_shared, dtype), (masked, masked_score), is_causal, is_safe))| Case {
                dtype,
                batch,
                is_shared,
                sizes,
                orders,
                masked,
                masked_score,
                is_causal,
                is_safe,
            },
        )
    }

    proptest! {
        #![proptest_config(config(64))]

        #[test]
        fn attention_is_what_the_plain_loop_says(case in case()) {
            let step = case.step();
            let want = case.expected(&step);
            let step = Fused::Attention(step);
            let run = || {
                prepare(&step, crate::executor()).unwrap()(&step).unwrap();
                numbers_of(step.results()[0])
            };
            let rounding = match case.dtype {
                DType::Float16 => 1e-3,
                DType::BFloat16 => 8e-3,
                _ => 0.0,
            };
            for (level, got) in Level::on_each(run) {
                prop_assert_eq!(got.len(), want.len());
                for (at, (&got, &want)) in got.iter().zip(&want).enumerate() {
                    let is_near = (f64::from(got) - want).abs() <= 2e-5 + want.abs() * rounding || got.is_nan() && want.is_nan();
                    prop_assert!(is_near, "{level:?}, element {at}: {got} is not {want}");
                }
            }
        }
    }

    #[test]
    fn threads_do_not_change_results() {
        let case = Case {
            dtype: DType::Float32,
            batch: [2, 3],
            is_shared: true,
            sizes: [130, 900, 20, 30],
            orders: [ORDERS[1]; 4],
            masked: Masked::Added,
            masked_score: f64::NEG_INFINITY,
            is_causal: true,
            is_safe: true,
        };
        let step = Fused::Attention(case.step());
        let of = |n_threads: usize| {
            crate::with_num_threads(n_threads, || prepare(&step, crate::executor()).unwrap()(&step).unwrap());
            step.results()[0].to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(4));
    }

    #[test]
    fn a_nan_stays_and_keys_behind_a_row_are_not_looked_at() {
        let case = Case {
            dtype: DType::Float32,
            batch: [1, 1],
            is_shared: false,
            sizes: [100, 100, 3, 4],
            orders: [ORDERS[0]; 4],
            masked: Masked::Not,
            masked_score: f64::NEG_INFINITY,
            is_causal: true,
            is_safe: true,
        };
        let mut key = numbers(300, 1);
        key[3 * 60] = f32::NAN;
        let step =
            Fused::Attention(Attention { key: placed(&key, [1, 1, 100, 3], ORDERS[0], DType::Float32), ..case.step() });
        prepare(&step, crate::executor()).unwrap()(&step).unwrap();
        let rows = step.results()[0].to_vec::<f32>().unwrap();
        for (row, values) in rows.chunks(4).enumerate() {
            assert!(values.iter().all(|it| it.is_nan() == (row >= 60)), "row {row}: {values:?}");
        }
    }
}
