//! What follows the sums of a fused step. Bias and batch normalisation are folded into the weight and into what the sums
//! start from; the residual and the activation are applied to the results that were just computed.

use crate::gemm;
use crate::gemm::Start;
use crate::gemm::output_view::BlockRows;
use crate::numeric::activation::Activation as _;
use crate::numeric::elementary::Elementary;
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::map::cast;
use crate::numeric::number::Real;
use tracefx_core::allocate::collected;
use tracefx_core::{DType, Result, Tensor};
use tracefx_plan::{Activation, Epilogue};

/// Bias and batch normalisation as a factor and an addend of each channel.
pub(super) struct Folded {
    scale: Option<Vec<f64>>,
    bias: Option<Vec<f32>>,
}

impl Folded {
    /// Folds them in float64.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn new(epilogue: &Epilogue<Tensor>) -> Result<Self> {
        let numbers = |it: &Option<Tensor>| it.as_ref().map(|it| cast(it, DType::Float32)?.to_vec::<f32>()).transpose();
        let bias = numbers(&epilogue.bias)?;
        let Some(norm) = &epilogue.norm else { return Ok(Folded { scale: None, bias }) };
        let (weight, shift) = (numbers(&norm.weight)?, numbers(&norm.bias)?);
        let (mean, var) = (norm.mean.to_vec::<f32>()?, norm.var.to_vec::<f32>()?);
        let at = |it: &Option<Vec<f32>>, channel: usize| it.as_ref().map(|it| f64::from(it[channel]));
        let scale = |channel: usize| at(&weight, channel).unwrap_or(1.0) / (f64::from(var[channel]) + norm.eps).sqrt();
        let addend = |channel: usize| {
            let before = at(&bias, channel).unwrap_or(0.0) - f64::from(mean[channel]);
            (before * scale(channel) + at(&shift, channel).unwrap_or(0.0)) as f32
        };
        let bias = collected((0..mean.len()).map(addend))?;
        Ok(Folded { scale: Some(collected((0..mean.len()).map(scale))?), bias: Some(bias) })
    }

    /// An element of the weight with the factor of its channel.
    pub(super) fn scaled(&self, weight: f32, channel: usize) -> f32 {
        self.scale.as_ref().map_or(weight, |it| (f64::from(weight) * it[channel]) as f32)
    }

    /// What the sums of a channel start from.
    pub(super) fn bias(&self, channel: usize) -> f32 {
        self.bias.as_ref().map_or(0.0, |it| it[channel])
    }

    /// What the sums of some channels from `first` on start from; zeros where there are no more.
    #[inline(always)]
    pub(super) fn channels<const N: usize>(&self, first: usize) -> [f32; N] {
        let mut res = [0.0; N];
        let bias = self.bias.as_deref().unwrap_or_default();
        res.iter_mut().zip(bias.iter().skip(first)).for_each(|(to, from)| *to = *from);
        res
    }

    /// What the sums of all channels from `first` on start from.
    pub(super) fn start(&self, first: usize) -> Start<'_, f32> {
        self.bias.as_ref().map_or(Start::Zero, |it| Start::Columns(&it[first..]))
    }
}

/// The residual and the activation of a run. Rows are points, and columns are channels.
#[derive(Clone, Copy)]
pub(super) struct Tail<'a> {
    residual: Option<&'a [f32]>,
    n_channels: usize,
    min: f32,
    max: f32,
    /// What is no clamp within numbers takes more instructions.
    late: Activation,
}

impl<'a> Tail<'a> {
    pub(super) fn new(residual: Option<&'a [f32]>, n_channels: usize, activation: Activation) -> Self {
        let (min, max, late) = match activation {
            Activation::Clamp { min, max } if !min.is_nan() && !max.is_nan() => (min, max, Activation::Identity),
            other => (f32::NEG_INFINITY, f32::INFINITY, other),
        };
        Tail { residual, n_channels, min, max, late }
    }

    /// The channels of a point.
    pub(super) fn n_channels(&self) -> usize {
        self.n_channels
    }

    /// That of the points from `point` and the channels from `channel` on.
    pub(super) fn from(self, point: usize, channel: usize) -> Self {
        Tail { residual: self.residual.map(|it| &it[point * self.n_channels + channel..]), ..self }
    }
}

impl gemm::blocked::Epilogue<f32> for Tail<'_> {
    #[inline(always)]
    fn apply<const N: usize>(&self, point: usize, channel: usize, sums: [f32; N]) -> [f32; N] {
        // Loops, since functions of arrays are not always inlined.
        let mut res = sums;
        if let Some(residual) = self.residual {
            let residual = residual[point * self.n_channels + channel..].first_chunk::<N>();
            let residual = *residual.expect("the residual is like the result");
            for at in 0..N {
                res[at] += residual[at];
            }
        }
        for it in &mut res {
            *it = it.clamped(self.min, self.max);
        }
        res
    }

    #[inline]
    fn finish(&self, rows: BlockRows<'_, f32>) {
        if self.is_unfinished() {
            isa::run(Activate { activation: self.late, rows });
        }
    }

    #[inline(always)]
    fn is_unfinished(&self) -> bool {
        self.late != Activation::Identity
    }
}

struct Activate<'a> {
    activation: Activation,
    rows: BlockRows<'a, f32>,
}

impl Work for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let rows = self.rows;
        match self.activation {
            Activation::Identity => {}
            Activation::Clamp { min, max } => each::<I>(rows, |it| it.larger(min).smaller(max)),
            Activation::LeakyRelu(slope) => each::<I>(rows, |it| it.leaky_relu(slope)),
            Activation::Sigmoid => each::<I>(rows, Elementary::sigmoid::<I>),
            Activation::Silu => each::<I>(rows, |it| it.silu::<I>()),
            Activation::HardSigmoid => each::<I>(rows, |it| it.hard_sigmoid()),
            Activation::HardSwish => each::<I>(rows, |it| it.hard_swish()),
            Activation::Tanh => each::<I>(rows, Elementary::tanh::<I>),
            Activation::Gelu => each::<I>(rows, |it| it.gelu::<I>()),
            Activation::GeluTanh => each::<I>(rows, |it| it.gelu_tanh::<I>()),
        }
    }
}

/// Changes all elements. Where vectors are wide, the loop that a compiler makes of a short row takes too few of them at a time.
#[inline(always)]
fn each<I: Isa>(rows: BlockRows<'_, f32>, function: impl Fn(f32) -> f32) {
    const WIDE: usize = 16;
    for row in rows {
        if I::WIDTH == WIDE * size_of::<f32>() {
            let (vectors, rest) = row.as_chunks_mut::<WIDE>();
            for vector in vectors {
                let mut res = *vector;
                res.iter_mut().for_each(|it| *it = function(*it));
                *vector = res;
            }
            rest.iter_mut().for_each(|it| *it = function(*it));
        } else {
            row.iter_mut().for_each(|it| *it = function(*it));
        }
    }
}
