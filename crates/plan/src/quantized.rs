//! Convolutions of integers of eight bits, which stand for numbers with a scale and the integer that is zero.

use crate::{Fused, Window};
use serde::{Deserialize, Serialize};

/// A convolution of channels-last images of 8-bit integers with int8 filters, whose sums are exact in int32, and what follows it.
///
/// Integers `q` stand for `(q - zero_point) * scale`. A sum of integers becomes a number: `x = sum * scale * scales[o] + bias[o]`.
/// It may be [rounded](Rounding) and become a number again; the residual is added, the limits are applied, and it is rounded to the result.
///
/// A product of a matrix with columns is one too: rows are images of one pixel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantizedConvolution<T> {
    /// The images, `[N, H, W, C]`, row-major, in int8 or uint8.
    pub input: T,
    /// The integer of the images that is zero.
    pub zero_point: i32,
    /// The filters, `[O, C / groups, KH, KW]` in int8, with any strides.
    pub weight: T,
    /// The integers of each filter that are zero, `[O]` in int64; zeros where there are none.
    pub weight_zero_points: Option<T>,
    /// What a filter looks at. Padding is zero, which is an integer of the images.
    pub window: Window,
    /// The factor of all sums.
    pub scale: f64,
    /// The factors of the sums of each filter, `[O]` in float32; one where there are none.
    pub scales: Option<T>,
    /// A number for each filter, `[O]` in float32.
    pub bias: Option<T>,
    /// The integers that the numbers become before the residual is added.
    pub inner: Option<Rounding>,
    /// What is added.
    pub residual: Option<QuantizedResidual<T>>,
    /// The lower and the upper limit of numbers, which may be infinite.
    pub limits: [f32; 2],
    /// The integers that the result is; nothing where it is numbers.
    pub rounding: Option<Rounding>,
    /// What it gives, `[N, OH, OW, O]`, row-major: in int8 or uint8, or numbers in float32.
    pub result: T,
}

/// How numbers become integers: `clamp(round(x / scale) + zero_point, min, max)`, where a half goes to the even neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounding {
    /// What one is.
    pub scale: f64,
    /// The integer that is zero.
    pub zero_point: i32,
    /// The least integer.
    pub min: i32,
    /// The largest one.
    pub max: i32,
}

/// A tensor like the result, in int8 or uint8, row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantizedResidual<T> {
    /// The integers.
    pub tensor: T,
    /// What one is.
    pub scale: f64,
    /// The integer that is zero.
    pub zero_point: i32,
}

impl<T> QuantizedConvolution<T> {
    /// The most products of a sum: so many of the largest ones are no more than int32 holds.
    pub const MOST_TERMS: usize = 1 << 15;

    /// The tensors that it reads, in the order of the fields.
    pub fn inputs(&self) -> impl Iterator<Item = &T> {
        let residual = self.residual.iter().map(|it| &it.tensor);
        [&self.input].into_iter().chain(self.parameters()).chain(residual)
    }

    /// The tensors of which something is made once.
    pub fn parameters(&self) -> impl Iterator<Item = &T> {
        [&self.weight].into_iter().chain(&self.weight_zero_points).chain(&self.scales).chain(&self.bias)
    }

    /// The same step on other tensors.
    ///
    /// # Errors
    /// The first that `tensor` gives.
    pub fn try_map<U, E>(&self, tensor: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<QuantizedConvolution<U>, E> {
        let input = tensor(&self.input)?;
        let weight = tensor(&self.weight)?;
        let [weight_zero_points, scales, bias] = {
            let mut optional = |it: &Option<T>| it.as_ref().map(&mut *tensor).transpose();
            [optional(&self.weight_zero_points)?, optional(&self.scales)?, optional(&self.bias)?]
        };
        let residual = match &self.residual {
            Some(it) => {
                Some(QuantizedResidual { tensor: tensor(&it.tensor)?, scale: it.scale, zero_point: it.zero_point })
            }
            None => None,
        };
        let &QuantizedConvolution { zero_point, window, scale, inner, limits, rounding, .. } = self;
        let result = tensor(&self.result)?;
        Ok(QuantizedConvolution {
            input,
            zero_point,
            weight,
            weight_zero_points,
            window,
            scale,
            scales,
            bias,
            inner,
            residual,
            limits,
            rounding,
            result,
        })
    }
}

impl<T> From<QuantizedConvolution<T>> for Fused<T> {
    fn from(step: QuantizedConvolution<T>) -> Self {
        Fused::QuantizedConvolution(Box::new(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Buffer, Operand, Plan, TensorId, TensorView};
    use tracefx_core::DType;

    type Step = QuantizedConvolution<TensorId>;

    /// A convolution of uint8 images with int8 filters, with all that may follow.
    fn plan(change: impl FnOnce(&mut Step, &mut Plan)) -> Plan {
        let mut plan = Plan::default();
        let tensors = [
            (DType::UInt8, &[1, 4, 4, 3][..]),
            (DType::UInt8, &[1, 5, 5, 3]),
            (DType::Int8, &[3, 3, 2, 2]),
            (DType::Int64, &[3]),
            (DType::Float32, &[3]),
            (DType::Int8, &[1, 4, 4, 3]),
        ];
        for (at, (dtype, sizes)) in tensors.into_iter().enumerate() {
            let buffer = if at == 0 { Buffer::Result } else { Buffer::Input(at as u32 - 1) };
            let buffer = plan.add_buffer(buffer);
            let sizes: Vec<tracefx_sym::SymInt> = sizes.iter().map(|it| (*it as i64).into()).collect();
            let id = plan.add_tensor(TensorView::row_major(buffer, dtype, &sizes));
            if at > 0 {
                plan.inputs.push(Operand::Tensor(id));
            }
        }
        plan.output = Operand::Tensor(TensorId(0));
        let [result, input, weight, zeros, numbers, residual] = [0, 1, 2, 3, 4, 5].map(TensorId);
        let mut step = QuantizedConvolution {
            input,
            zero_point: 3,
            weight,
            weight_zero_points: Some(zeros),
            window: Window { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 },
            scale: 0.5,
            scales: Some(numbers),
            bias: Some(numbers),
            inner: Some(Rounding { scale: 0.25, zero_point: -5, min: -128, max: 127 }),
            residual: Some(QuantizedResidual { tensor: residual, scale: 0.125, zero_point: 1 }),
            limits: [0.0, 6.0],
            rounding: Some(Rounding { scale: 0.1, zero_point: 7, min: 0, max: 255 }),
            result,
        };
        change(&mut step, &mut plan);
        plan.push("conv2d", Action::Fused(step.into()));
        plan
    }

    #[test]
    fn a_step_prints_what_it_takes() {
        let plan = plan(|_, _| {});
        plan.validate().unwrap();
        assert_eq!(
            plan.to_string().lines().nth(1).unwrap().trim(),
            "%0: u8[1, 4, 4, 3] = quantized_convolution(%1 - 3, %2, weight_zero_points=%3, stride=[1, 1], padding=[0, 0], \
             dilation=[1, 1], groups=1, scale=0.5, scales=%4, bias=%4, inner=x / 0.25 + -5 in -128..=127, \
             residual=(%5 - 1) * 0.125, limits=[0.0, 6.0], rounding=x / 0.1 + 7 in 0..=255)  # conv2d"
        );
    }

    #[test]
    fn steps_whose_tensors_do_not_fit_are_refused() {
        type Change = fn(&mut Step, &mut Plan);
        let cases: [(Change, &str); 10] = [
            (|it, _| it.window.groups = 2, "sizes do not fit"),
            (|it, _| it.zero_point = 256, "no images and filters of 8 bits"),
            (|it, _| it.input = it.weight, "sizes do not fit"),
            (|_, plan| plan.tensors[2].dtype = DType::UInt8, "no images and filters of 8 bits"),
            (|it, _| it.scales = it.weight_zero_points, "is not a number for each of 3 filters"),
            (|it, _| it.residual.as_mut().unwrap().zero_point = 128, "is not like the result"),
            (|it, _| it.rounding = None, "cannot be the result"),
            (|it, _| it.rounding.as_mut().unwrap().min = -1, "are no integers of 0..=255"),
            (|it, _| it.inner.as_mut().unwrap().scale = 0.0, "are no integers of -128..=255"),
            (|it, _| it.limits = [1.0, 0.0], "are no limits"),
        ];
        for (change, words) in cases {
            let problem = plan(change).validate().unwrap_err();
            assert!(problem.message().contains(words), "{problem:?}");
        }
    }
}
