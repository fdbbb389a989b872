//! Fused steps of compiled plans: convolutions of channels-last images and products of matrices in float32, whose weights are
//! packed once, with bias, batch normalisation, residual and activation behind them; convolutions of integers of eight bits; poolings,
//! gathers, attention, normalisations and loops.
//!
//! What is made once of the parameters of a step is a kernel of one of the families here; which one it is, their shapes decide.

mod attention;
mod bands;
mod convolution;
mod depthwise;
mod direct;
mod epilogue;
mod norm;
mod padding;
mod pool;
mod product;
mod quantized;
#[cfg(test)]
mod tests;
mod winograd;

use crate::fused::convolution::ConvolutionKernel;
use crate::fused::epilogue::Tail;
use crate::fused::product::{NarrowProduct, ProductKernel};
use crate::fused::quantized::QuantizedKernel;
use crate::gemm::narrow::NarrowRhs;
use crate::gemm::quantized::QuantizedRhs;
use crate::index::gather::{Wrap, select};
use crate::loops;
use crate::numeric::dense::{self, Dense};
use crate::numeric::isa::Level;
use tracefx_core::{DType, Diagnostic, Element, Result, Tensor, bf16, f16};
use tracefx_exec::{Executor, PreparedFused};
use tracefx_plan::{DequantizedProduct, Epilogue, Fused, Product};

/// What a step stays.
const SAME: &str = "a step is run as what it was prepared as";

/// Packs the parameters of a step.
///
/// # Errors
/// `NotImplemented` for other dtypes than float32, of products, attention and normalisations also than float16 and bfloat16, of poolings than
/// integers of eight bits; gathers and loops take any. `OutOfMemory`.
pub(crate) fn prepare(step: &Fused<Tensor>, executor: Executor<'_>) -> Result<Box<PreparedFused>> {
    // The dtypes of these are those of a valid plan.
    let is_of_any = matches!(
        step,
        Fused::Gather(_) | Fused::Loop(_) | Fused::QuantizedConvolution(_) | Fused::DequantizedProduct(_)
    );
    // Which scores count, a mask may say in bools.
    let mask = if let Fused::Attention(it) = step { it.mask.as_ref() } else { None };
    let is_bool = |it: &Tensor| mask.is_some_and(|mask| std::ptr::eq(mask, it)) && it.dtype() == DType::Bool;
    let dtype = match step {
        Fused::Pool(it) if matches!(it.input.dtype(), DType::Int8 | DType::UInt8) => it.input.dtype(),
        other => other.float_dtype(Tensor::dtype),
    };
    let is_other = |it: &&Tensor| !is_of_any && it.dtype() != dtype && !is_bool(it);
    if let Some(it) = step.inputs().into_iter().chain(step.results()).find(is_other) {
        return Err(Diagnostic::unsupported_dtype(it.dtype(), step.name()));
    }
    match step {
        Fused::Loop(_) => loops::prepare(step, executor),
        Fused::Norm(_) => Ok(Box::new(|step| {
            let Fused::Norm(it) = step else { unreachable!("{SAME}") };
            norm::norm(it)
        })),
        Fused::Pool(_) => Ok(Box::new(|step| {
            let Fused::Pool(it) = step else { unreachable!("{SAME}") };
            pool::pool(it)
        })),
        Fused::Gather(_) => Ok(Box::new(|step| {
            let Fused::Gather(it) = step else { unreachable!("{SAME}") };
            let wrap = if it.is_wrapped { Wrap::Yes } else { Wrap::No };
            select(&it.input, it.dim, &it.index, wrap, &it.result).map_err(|problem| problem.op(&*it.op))
        })),
        Fused::Attention(_) => Ok(Box::new(|step| {
            let Fused::Attention(it) = step else { unreachable!("{SAME}") };
            attention::attention(it)
        })),
        Fused::Convolution(it) => {
            let kernel = ConvolutionKernel::new(it)?;
            Ok(Box::new(move |step| {
                let Fused::Convolution(it) = step else { unreachable!("{SAME}") };
                let epilogue = &it.layers.last().expect(SAME).epilogue;
                let scale = it.scale.as_ref().map(Dense::new).transpose()?;
                let scale = scale.as_ref().map(|it| it.read::<f32>());
                run(&it.input, epilogue, &it.result, |input, tail, out| kernel.run(input, scale.as_deref(), tail, out))
            }))
        }
        Fused::QuantizedConvolution(it) => {
            let kernel = QuantizedKernel::new(it)?;
            Ok(Box::new(move |step| {
                let Fused::QuantizedConvolution(it) = step else { unreachable!("{SAME}") };
                kernel.run(it)
            }))
        }
        Fused::DequantizedProduct(it) => {
            let kernel = NarrowProduct::dequantizing(it, Level::of_fast_steps())?;
            Ok(Box::new(move |step| {
                let Fused::DequantizedProduct(it) = step else { unreachable!("{SAME}") };
                run_dequantized(&kernel, &it.product)
            }))
        }
        Fused::Product(it) if dtype == DType::Float16 => narrow_product::<f16>(it),
        Fused::Product(it) if dtype == DType::BFloat16 => narrow_product::<bf16>(it),
        Fused::Product(it) => {
            let kernel = ProductKernel::new(it)?;
            Ok(Box::new(move |step| {
                let Fused::Product(it) = step else { unreachable!("{SAME}") };
                run(&it.lhs, &it.epilogue, &it.result, |lhs, tail, out| kernel.run(lhs, tail, out))
            }))
        }
    }
}

fn narrow_product<S: Element>(step: &Product<Tensor>) -> Result<Box<PreparedFused>> {
    let kernel = NarrowProduct::<NarrowRhs<S>>::new(step)?;
    Ok(Box::new(move |step| {
        let Fused::Product(it) = step else { unreachable!("{SAME}") };
        kernel.run::<S>(it)
    }))
}

/// Writes the result of a product whose right side are integers: what the operators are that take integers.
///
/// # Errors
/// As [`prepare`].
pub(crate) fn dequantized_product(step: &DequantizedProduct<Tensor>) -> Result<()> {
    prepared_dequantized_product(step)?(&step.product)
}

/// What [`dequantized_product`] does to any rows.
///
/// # Errors
/// As [`prepare`].
pub(crate) fn prepared_dequantized_product(
    step: &DequantizedProduct<Tensor>,
) -> Result<impl Fn(&Product<Tensor>) -> Result<()> + Send + Sync + use<>> {
    let kernel = NarrowProduct::dequantizing(step, Level::best())?;
    Ok(move |step: &Product<Tensor>| run_dequantized(&kernel, step))
}

fn run_dequantized(kernel: &NarrowProduct<QuantizedRhs>, step: &Product<Tensor>) -> Result<()> {
    match step.lhs.dtype() {
        DType::Float32 => kernel.run::<f32>(step),
        DType::Float16 => kernel.run::<f16>(step),
        DType::BFloat16 => kernel.run::<bf16>(step),
        other => Err(Diagnostic::unsupported_dtype(other, "dequantized_product")),
    }
}

/// Gives the elements of the tensors that a run reads and writes to `body`.
fn run(
    input: &Tensor,
    epilogue: &Epilogue<Tensor>,
    result: &Tensor,
    body: impl FnOnce(&[f32], Tail<'_>, &mut [f32]) -> Result<()>,
) -> Result<()> {
    let (input, residual) = (Dense::new(input)?, epilogue.residual.as_ref().map(Dense::new).transpose()?);
    let residual = residual.as_ref().map(|it| it.read::<f32>());
    let n_channels = result.sizes().last().copied().unwrap_or(1);
    let tail = Tail::new(residual.as_deref(), n_channels, epilogue.activation);
    dense::fill(result, |out| body(&input.read::<f32>(), tail, out))
}
