//! Normalisations of rows.

use crate::norm::normalise;
use crate::numeric::strided::{Strided, fill_float};
use tracefx_core::{Result, Tensor};
use tracefx_plan::Norm;

/// # Errors
/// `OutOfMemory` where halves cannot be widened.
pub(super) fn norm(it: &Norm<Tensor>) -> Result<()> {
    let n = it.input.sizes()[1];
    let input = Strided::<f32>::dense(&it.input)?;
    let weight = it.weight.as_ref().map(Strided::<f32>::dense).transpose()?;
    let bias = it.bias.as_ref().map(Strided::<f32>::dense).transpose()?;
    let (weight, bias) = (weight.as_ref().map(Strided::data), bias.as_ref().map(Strided::data));
    fill_float(&it.result, |out| normalise(out, input.data(), n, (it.statistic, it.eps), weight, bias))
}

#[cfg(test)]
mod tests {
    //! Normalisations give what plain loops in float64 say, on every instruction set.

    use crate::agreement::config;
    use crate::fused::prepare;
    use crate::numeric::isa::Level;
    use crate::numeric::map::cast;
    use proptest::prelude::*;
    use tracefx_core::{DType, Tensor};
    use tracefx_plan::{Fused, Norm, NormStatistic};

    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|at| ((at * 7 + seed * 13) as f32 * 0.37).sin() * 2.0 + 1.0).collect()
    }

    proptest! {
        #![proptest_config(config(64))]

        #[test]
        fn normalisations_are_what_the_plain_loop_says(
            m in 0usize..40,
            n in prop_oneof![0usize..50, 4000usize..9000],
            statistic in prop::sample::select(vec![NormStatistic::Variance, NormStatistic::MeanSquare]),
            parameters: [bool; 2],
            (dtype, rounding) in prop::sample::select(&[(DType::Float32, 0.0), (DType::Float16, 1e-3), (DType::BFloat16, 8e-3)][..]),
        ) {
            let m = if n > 50 { m / 8 } else { m };
            let tensor = |sizes: &[usize], seed: usize| {
                cast(&Tensor::from_slice(&numbers(sizes.iter().product(), seed), sizes).unwrap(), dtype).unwrap()
            };
            let tensors = [tensor(&[m, n], 1), tensor(&[n], 2), tensor(&[n], 3)];
            let data = tensors.each_ref().map(|it| cast(it, DType::Float32).unwrap().to_vec::<f32>().unwrap());
            let row = |at: usize| parameters[at - 1].then(|| tensors[at].clone());
            let step = Fused::Norm(Norm {
                input: tensors[0].clone(),
                statistic,
                weight: row(1),
                bias: row(2),
                eps: 1e-3,
                result: cast(&Tensor::from_slice(&vec![f32::NAN; m * n], &[m, n]).unwrap(), dtype).unwrap(),
            });
            let mut want = Vec::new();
            for row in data[0].chunks(n.max(1)) {
                let mean = row.iter().map(|it| f64::from(*it)).sum::<f64>() / n as f64;
                let mean = if statistic == NormStatistic::Variance { mean } else { 0.0 };
                let squares: f64 = row.iter().map(|it| (f64::from(*it) - mean).powi(2)).sum();
                let scale = 1.0 / (squares / n as f64 + 1e-3).sqrt();
                for (at, it) in row.iter().enumerate() {
                    let parameter = |which: usize, none: f64| if parameters[which - 1] { f64::from(data[which][at]) } else { none };
                    want.push((f64::from(*it) - mean) * scale * parameter(1, 1.0) + parameter(2, 0.0));
                }
            }
            let run = || {
                prepare(&step, crate::executor()).unwrap()(&step).unwrap();
                cast(step.results()[0], DType::Float32).unwrap().to_vec::<f32>().unwrap()
            };
            for (level, got) in Level::on_each(run) {
                prop_assert_eq!(got.len(), want.len());
                for (at, (&got, &want)) in got.iter().zip(&want).enumerate() {
                    prop_assert!((f64::from(got) - want).abs() <= 1e-5 + want.abs() * rounding, "{level:?}, element {at}: {got} is not {want}");
                }
            }
        }
    }
}
