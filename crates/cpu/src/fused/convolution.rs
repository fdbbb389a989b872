//! Convolutions of channels-last images: their geometry, and which of the algorithms computes them.

use crate::fused::bands::Bands;
use crate::fused::depthwise::Depthwise;
use crate::fused::direct::Direct;
use crate::fused::epilogue::{Folded, Tail};
use crate::fused::winograd::Winograd;
use tracefx_core::allocate::collected;
use tracefx_core::{Result, Tensor};
use tracefx_plan::{Convolution, ConvolutionLayer, Window};

/// A convolution with its filters packed, or several.
pub(super) enum ConvolutionKernel {
    Bands(Box<Bands>),
    Depthwise(Depthwise),
    Direct(Direct, Folded),
    Winograd(Winograd, Folded),
}

impl ConvolutionKernel {
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn new(step: &Convolution<Tensor>) -> Result<Self> {
        let images = four(step.input.sizes());
        let [layer] = &step.layers[..] else {
            return Ok(ConvolutionKernel::Bands(Box::new(Bands::new(images, &step.layers)?)));
        };
        let geometry = Geometry::new(images, four(layer.weight.sizes()), layer.window());
        let (folded, weight) = folded_weight(layer)?;
        Ok(if Depthwise::is_for(&geometry) {
            ConvolutionKernel::Depthwise(Depthwise::new(geometry, &weight, &folded)?)
        } else if Winograd::is_for(&geometry) {
            ConvolutionKernel::Winograd(Winograd::new(geometry, &weight)?, folded)
        } else {
            ConvolutionKernel::Direct(Direct::new(geometry, &weight)?, folded)
        })
    }

    /// Convolves images, whose channels are multiplied by those of `scale` before where a step has one.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run(&self, input: &[f32], scale: Option<&[f32]>, tail: Tail<'_>, out: &mut [f32]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        match self {
            ConvolutionKernel::Bands(it) => it.run(input, tail, out),
            ConvolutionKernel::Depthwise(it) => it.run(input, tail, out),
            ConvolutionKernel::Direct(it, folded) => match scale {
                Some(scale) => it.run_scaled(input, scale, folded, tail, out),
                None => it.run(input, folded, tail, out),
            },
            ConvolutionKernel::Winograd(it, folded) => it.run(input, folded, tail, out),
        }
    }
}

/// The filters of a convolution with the factors that follow folded into them, row-major, and what is left of these.
pub(super) fn folded_weight(layer: &ConvolutionLayer<Tensor>) -> Result<(Folded, Vec<f32>)> {
    let folded = Folded::new(&layer.epilogue)?;
    let filter: usize = layer.weight.sizes()[1..].iter().product();
    let weight = layer.weight.to_vec::<f32>()?;
    let weight = collected(weight.iter().enumerate().map(|(at, &it)| folded.scaled(it, at / filter)))?;
    Ok((folded, weight))
}

pub(super) fn four(sizes: &[usize]) -> [usize; 4] {
    sizes.try_into().expect("a plan convolves images and filters of four dimensions")
}

/// The sizes of a convolution. Those of height stand before those of width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) n_images: usize,
    pub(super) image: [usize; 2],
    pub(super) channels: usize,
    pub(super) filters: usize,
    pub(super) groups: usize,
    pub(super) kernel: [usize; 2],
    pub(super) stride: [usize; 2],
    pub(super) padding: [usize; 2],
    pub(super) dilation: [usize; 2],
    pub(super) points: [usize; 2],
}

impl Geometry {
    /// That of a convolution of images `[N, H, W, C]` with filters `[O, C / groups, KH, KW]`.
    pub(super) fn new(images: [usize; 4], weight: [usize; 4], window: Window) -> Self {
        let result = window.result_sizes(images, weight).expect("a plan's convolutions fit");
        let points = [result[1], result[2]];
        // The stride of one point is the distance to none.
        let stride = [0, 1].map(|dim| if points[dim] == 1 { 1 } else { window.stride[dim] });
        Geometry {
            n_images: images[0],
            image: [images[1], images[2]],
            channels: images[3],
            filters: weight[0],
            groups: window.groups,
            kernel: [weight[2], weight[3]],
            stride,
            padding: window.padding,
            dilation: window.dilation,
            points,
        }
    }

    /// The channels that a filter reads.
    pub(super) fn n_in(&self) -> usize {
        self.channels / self.groups
    }

    /// The filters of a group.
    pub(super) fn n_out(&self) -> usize {
        self.filters / self.groups
    }

    pub(super) fn n_taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// The points of an image.
    pub(super) fn n_points(&self) -> usize {
        self.points[0] * self.points[1]
    }

    /// The elements of an image.
    pub(super) fn image_len(&self) -> usize {
        self.image[0] * self.image[1] * self.channels
    }

    /// Whether each patch is the point itself.
    pub(super) fn is_pointwise(&self) -> bool {
        self.kernel == [1; 2] && self.padding == [0; 2] && self.points == self.image
    }

    /// The image of a point of all, and its place there.
    pub(super) fn point(&self, at: usize) -> (usize, [usize; 2]) {
        let (image, at) = (at / self.n_points(), at % self.n_points());
        (image, [at / self.points[1], at % self.points[1]])
    }

    /// The places from the first tap of a point to its last one.
    pub(super) fn span(&self, dim: usize) -> usize {
        (self.kernel[dim] - 1) * self.dilation[dim] + 1
    }

    /// The places of the padded image that some tap of some point sees.
    pub(super) fn reach(&self, dim: usize) -> Option<usize> {
        let points = self.points[dim].checked_sub(1)?.checked_mul(self.stride[dim])?;
        points.checked_add(self.kernel[dim].checked_sub(1)?.checked_mul(self.dilation[dim])?)?.checked_add(1)
    }

    /// The pixel of all images that a tap of a point sees, or nothing in the padding.
    pub(super) fn pixel(&self, point: usize, tap: usize) -> Option<usize> {
        let (image, point) = self.point(point);
        let taps = [tap / self.kernel[1], tap % self.kernel[1]];
        let place = |dim: usize| {
            let place = point[dim] * self.stride[dim] + taps[dim] * self.dilation[dim];
            place.checked_sub(self.padding[dim]).filter(|&it| it < self.image[dim])
        };
        Some((image * self.image[0] + place(0)?) * self.image[1] + place(1)?)
    }
}
