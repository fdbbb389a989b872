//! Channels-last images with their padding, as far as taps see them.

use crate::fused::convolution::Geometry;
use crate::numeric::{parallel, scratch};
use tracefx_core::Result;

/// How padded images lie: `[N, height, width, C]`. The image begins where its padding ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaddedLayout {
    pub(super) height: usize,
    pub(super) width: usize,
}

impl PaddedLayout {
    /// The layout, or nothing where padding or stride would make it much larger than the image and the points.
    pub(super) fn of(it: &Geometry) -> Option<Self> {
        let [height, width] = [0, 1].map(|dim| it.reach(dim));
        let (height, width) = (height?, width?);
        let most = 16 * (it.image[0] * it.image[1] + it.points[0] * it.points[1] + 64);
        (height.checked_mul(width)? <= most).then_some(PaddedLayout { height, width })
    }

    /// The elements of an image.
    pub(super) fn len(&self, it: &Geometry) -> usize {
        self.height * self.width * it.channels
    }

    /// Gives `body` these images with their padding: as they lie, where they have none.
    ///
    /// # Errors
    /// `OutOfMemory`, and what `body` gives.
    pub(super) fn with<R>(&self, it: &Geometry, images: &[f32], body: impl FnOnce(&[f32]) -> Result<R>) -> Result<R> {
        if it.padding == [0; 2] && [self.height, self.width] == it.image {
            return body(images);
        }
        let n_images = images.len() / it.image_len();
        scratch::with::<f32, _>(n_images * self.len(it), |padded| {
            let row = self.width * it.channels;
            let together = parallel::whole_rows(row);
            parallel::parts_mut(padded, together, |first, rows| {
                rows.chunks_exact_mut(row)
                    .enumerate()
                    .for_each(|(at, to)| self.fill_row(it, images, first / row + at, to));
            });
            body(padded)
        })
    }

    fn fill_row(&self, it: &Geometry, images: &[f32], row: usize, to: &mut [f32]) {
        let [height, width] = it.image;
        let (image, y) = (row / self.height, row % self.height);
        let Some(y) = y.checked_sub(it.padding[0]).filter(|&it| it < height) else { return to.fill(0.0) };
        let from = &images[(image * height + y) * width * it.channels..][..width * it.channels];
        let (before, to) = to.split_at_mut((it.padding[1] * it.channels).min(to.len()));
        before.fill(0.0);
        let n = from.len().min(to.len());
        to[..n].copy_from_slice(&from[..n]);
        to[n..].fill(0.0);
    }
}
