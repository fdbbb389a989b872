//! Convolutions whose groups read one channel: each result is a short sum of shifted images, without a product. Which
//! convolutions these are is for [`forward`](super::forward) to say.

use crate::conv::im2col::Layout;
use crate::conv::shape::{Shape, volume};
use crate::gemm::GemmElement;
use crate::numeric::isa::{Isa, Level, Work};
use crate::numeric::{parallel, scratch};
use tracefx_core::Result;
use tracefx_core::allocate::with_room;

/// The points of a row that are summed up together: the most, and how many where fewer are left.
const WIDE: usize = 32;
const MIDDLE: usize = 16;
const NARROW: usize = 8;

/// Convolves all items and channels, which are `shape.n_in == 1` to a group.
pub(super) fn depthwise<T: GemmElement>(
    level: Level,
    shape: &Shape,
    layout: Layout,
    [input, weight, bias]: [&[T]; 3],
    out: &mut [T],
) -> Result<()> {
    let (n_points, n_taps) = (volume(shape.points), volume(shape.kernel));
    let mut taps = with_room(n_taps)?;
    shape.taps(|_, at| taps.push(layout.tap(shape, at)));
    let (taps, n_channel) = (&*taps, shape.n_out * n_points);
    let together = (parallel::GRAIN / (n_channel * n_taps)).max(1);
    parallel::try_parts_mut(out, together * n_channel, |first, out| {
        let images = input.chunks_exact(volume(shape.image)).enumerate().skip(first / n_channel);
        // A strip at the end of the last row reads what follows it.
        scratch::with::<T, _>(layout.plane() + WIDE, |plane| {
            for ((channel, image), out) in images.zip(out.chunks_exact_mut(n_channel)) {
                layout.arrange(shape, image, &mut plane[..layout.plane()]);
                for (at, out) in out.chunks_exact_mut(n_points).enumerate() {
                    let filter = channel % shape.groups * shape.n_out + at;
                    let weight = &weight[filter * n_taps..][..n_taps];
                    let bias = bias.get(filter).copied().unwrap_or(T::ZERO);
                    level.run(Channel { shape, layout, plane, taps, weight, bias, out });
                }
            }
            Ok(())
        })
    })
}

/// One filter over one channel.
struct Channel<'a, T> {
    shape: &'a Shape,
    layout: Layout,
    plane: &'a [T],
    taps: &'a [usize],
    weight: &'a [T],
    bias: T,
    out: &'a mut [T],
}

impl<T: GemmElement> Work for Channel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        let width = self.shape.points[2];
        for row in 0..self.shape.points[0] * self.shape.points[1] {
            let (start, mut x) = (self.layout.point_row(self.shape, row), 0);
            while x + WIDE <= width {
                self.strip::<I, WIDE>(start + x, row * width + x, WIDE);
                x += WIDE;
            }
            while x + NARROW < width {
                self.strip::<I, MIDDLE>(start + x, row * width + x, MIDDLE.min(width - x));
                x += MIDDLE;
            }
            if x < width {
                self.strip::<I, NARROW>(start + x, row * width + x, width - x);
            }
        }
    }
}

impl<T: GemmElement> Channel<'_, T> {
    #[inline(always)]
    fn strip<I: Isa, const N: usize>(&mut self, from: usize, to: usize, n: usize) {
        let mut sums = [self.bias; N];
        for (&tap, &weight) in self.taps.iter().zip(self.weight) {
            let from = &self.plane[from + tap..][..N];
            for j in 0..N {
                sums[j] = weight.mul_add::<I>(from[j], sums[j]);
            }
        }
        match self.out[to..].first_chunk_mut::<N>() {
            Some(to) if n == N => *to = sums,
            _ => self.out[to..][..n].copy_from_slice(&sums[..n]),
        }
    }
}
