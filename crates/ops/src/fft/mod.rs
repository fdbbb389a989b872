//! Fourier transforms.

use crate::OpDef;

pub(crate) mod gradient;
pub(crate) mod stft;
pub(crate) mod transforms;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] = &[("fft/stft", stft::OPS), ("fft/transforms", transforms::OPS)];
