//! Calls of operators on images; of losses, distances and transforms; and of small matrices.

use super::Arg::{Bool, Bools, Float, Int, Ints, Known, None as Nothing, Regular, Tensor, Text};
use super::Call;
use tracefx_core::DType::{BFloat16, Complex64, Float16, Float32, Int32, Int64};

const IMAGES: &[i64] = &[2, 3, 4, 5];
const LARGER: &[i64] = &[2, 3, 7, 9];
const PIXELS: super::Arg = Tensor(Float32, IMAGES);

/// Calls of operators.
pub(crate) const IMAGE_CALLS: &[Call] = &[
    // Other sizes.
    (
        "aten.upsample_bilinear2d.default",
        &[Tensor(Float32, &[2, 3, 4, 5]), Ints(&[7, 9]), Bool(false), Nothing, Nothing],
        &[(Float32, &[2, 3, 7, 9])],
    ),
    (
        "aten.upsample_bilinear2d.default",
        &[Tensor(Float32, &[2, 3, 4, 5]), Ints(&[7, 9]), Bool(true), Nothing, Nothing],
        &[(Float32, &[2, 3, 7, 9])],
    ),
    (
        "aten.upsample_nearest2d.default",
        &[Tensor(Float32, &[2, 3, 4, 5]), Ints(&[8, 10]), Float(2.0), Float(2.0)],
        &[(Float32, &[2, 3, 8, 10])],
    ),
    ("aten.upsample_nearest1d.default", &[Tensor(Int32, &[2, 3, 5]), Ints(&[8]), Nothing], &[(Int32, &[2, 3, 8])]),
    (
        "aten.upsample_nearest1d.default",
        &[Tensor(Float16, &[2, 3, 7]), Ints(&[4]), Float(0.6)],
        &[(Float16, &[2, 3, 4])],
    ),
    (
        "aten.upsample_nearest3d.default",
        &[Tensor(Float32, &[1, 2, 3, 4, 5]), Ints(&[3, 8, 7]), Nothing, Nothing, Nothing],
        &[(Float32, &[1, 2, 3, 8, 7])],
    ),
    ("aten._upsample_nearest_exact2d.default", &[PIXELS, Ints(&[7, 9]), Nothing, Float(1.9)], &[(Float32, LARGER)]),
    (
        "aten._upsample_nearest_exact1d.default",
        &[Tensor(Int64, &[2, 3, 7]), Ints(&[5]), Nothing],
        &[(Int64, &[2, 3, 5])],
    ),
    (
        "aten.upsample_linear1d.default",
        &[Tensor(Float32, &[2, 3, 5]), Ints(&[8]), Bool(false), Float(1.7)],
        &[(Float32, &[2, 3, 8])],
    ),
    (
        "aten.upsample_linear1d.default",
        &[Tensor(BFloat16, &[2, 3, 5]), Ints(&[8]), Bool(true), Nothing],
        &[(BFloat16, &[2, 3, 8])],
    ),
    (
        "aten.upsample_trilinear3d.default",
        &[Tensor(Float32, &[1, 2, 3, 4, 5]), Ints(&[4, 4, 7]), Bool(false), Nothing, Nothing, Nothing],
        &[(Float32, &[1, 2, 4, 4, 7])],
    ),
    ("aten.upsample_bicubic2d.default", &[PIXELS, Ints(&[7, 9]), Bool(false), Nothing, Nothing], &[(Float32, LARGER)]),
    (
        "aten.upsample_bicubic2d.default",
        &[PIXELS, Ints(&[3, 9]), Bool(true), Nothing, Nothing],
        &[(Float32, &[2, 3, 3, 9])],
    ),
    (
        "aten._upsample_bilinear2d_aa.default",
        &[Tensor(Float32, &[2, 3, 17, 9]), Ints(&[5, 12]), Bool(false), Nothing, Nothing],
        &[(Float32, &[2, 3, 5, 12])],
    ),
    (
        "aten._upsample_bilinear2d_aa.default",
        &[Tensor(Float16, &[2, 3, 17, 9]), Ints(&[5, 4]), Bool(true), Nothing, Nothing],
        &[(Float16, &[2, 3, 5, 4])],
    ),
    (
        "aten._upsample_bicubic2d_aa.default",
        &[Tensor(Float32, &[2, 3, 17, 9]), Ints(&[5, 12]), Bool(false), Nothing, Float(1.3)],
        &[(Float32, &[2, 3, 5, 12])],
    ),
    // Grids.
    (
        "aten.grid_sampler_2d.default",
        &[PIXELS, Tensor(Float32, &[2, 6, 7, 2]), Int(0), Int(0), Bool(false)],
        &[(Float32, &[2, 3, 6, 7])],
    ),
    (
        "aten.grid_sampler_2d.default",
        &[PIXELS, Tensor(Float32, &[2, 6, 7, 2]), Int(0), Int(1), Bool(true)],
        &[(Float32, &[2, 3, 6, 7])],
    ),
    (
        "aten.grid_sampler_2d.default",
        &[PIXELS, Tensor(Float32, &[2, 6, 7, 2]), Int(0), Int(2), Bool(false)],
        &[(Float32, &[2, 3, 6, 7])],
    ),
    (
        "aten.grid_sampler_2d.default",
        &[PIXELS, Tensor(Float32, &[2, 6, 7, 2]), Int(1), Int(0), Bool(true)],
        &[(Float32, &[2, 3, 6, 7])],
    ),
    (
        "aten.grid_sampler_2d.default",
        &[PIXELS, Tensor(Float32, &[2, 6, 7, 2]), Int(1), Int(2), Bool(false)],
        &[(Float32, &[2, 3, 6, 7])],
    ),
    (
        "aten.grid_sampler_2d.default",
        &[PIXELS, Tensor(Float32, &[2, 6, 7, 2]), Int(2), Int(0), Bool(true)],
        &[(Float32, &[2, 3, 6, 7])],
    ),
    (
        "aten.grid_sampler_2d.default",
        &[PIXELS, Tensor(Float32, &[2, 6, 7, 2]), Int(2), Int(1), Bool(false)],
        &[(Float32, &[2, 3, 6, 7])],
    ),
    (
        "aten.grid_sampler_2d.default",
        &[PIXELS, Tensor(Float32, &[2, 6, 7, 2]), Int(2), Int(2), Bool(true)],
        &[(Float32, &[2, 3, 6, 7])],
    ),
    (
        "aten.grid_sampler_3d.default",
        &[Tensor(Float32, &[2, 3, 4, 5, 3]), Tensor(Float32, &[2, 3, 2, 4, 3]), Int(0), Int(2), Bool(true)],
        &[(Float32, &[2, 3, 3, 2, 4])],
    ),
    (
        "aten.affine_grid_generator.default",
        &[Tensor(Float32, &[2, 2, 3]), Ints(&[2, 3, 5, 1]), Bool(false)],
        &[(Float32, &[2, 5, 1, 2])],
    ),
    (
        "aten.affine_grid_generator.default",
        &[Tensor(Float16, &[2, 3, 4]), Ints(&[2, 3, 5, 4, 3]), Bool(true)],
        &[(Float16, &[2, 5, 4, 3, 3])],
    ),
    // Poolings and patches.
    (
        "aten.adaptive_max_pool2d.default",
        &[Tensor(Float32, &[2, 3, 7, 8]), Ints(&[3, 5])],
        &[(Float32, &[2, 3, 3, 5]), (Int64, &[2, 3, 3, 5])],
    ),
    (
        "aten.adaptive_max_pool3d.default",
        &[Tensor(Int64, &[3, 4, 7, 8]), Ints(&[3, 5, 2])],
        &[(Int64, &[3, 3, 5, 2]), (Int64, &[3, 3, 5, 2])],
    ),
    (
        "aten.adaptive_max_pool2d.default",
        &[Tensor(BFloat16, &[3, 7, 8]), Ints(&[9, 2])],
        &[(BFloat16, &[3, 9, 2]), (Int64, &[3, 9, 2])],
    ),
    (
        "aten.avg_pool2d_backward.default",
        &[
            Tensor(Float32, &[2, 3, 4, 4]),
            Tensor(Float32, &[2, 3, 7, 8]),
            Ints(&[3, 2]),
            Ints(&[2, 2]),
            Ints(&[1, 0]),
            Bool(false),
            Bool(true),
            Nothing,
        ],
        &[(Float32, &[2, 3, 7, 8])],
    ),
    (
        "aten.avg_pool2d_backward.default",
        &[
            Tensor(Float16, &[2, 3, 6, 6]),
            Tensor(Float16, &[2, 3, 7, 8]),
            Ints(&[4, 3]),
            Ints(&[1, 1]),
            Ints(&[1, 0]),
            Bool(false),
            Bool(false),
            Nothing,
        ],
        &[(Float16, &[2, 3, 7, 8])],
    ),
    (
        "aten.avg_pool3d_backward.default",
        &[
            Tensor(Float32, &[2, 2, 3, 2]),
            Tensor(Float32, &[2, 5, 6, 4]),
            Ints(&[2]),
            Ints(&[]),
            Ints(&[0]),
            Bool(false),
            Bool(true),
            Int(3),
        ],
        &[(Float32, &[2, 5, 6, 4])],
    ),
    (
        "aten._adaptive_avg_pool2d_backward.default",
        &[Tensor(Float32, &[2, 3, 3, 9]), Tensor(Float32, &[2, 3, 7, 5])],
        &[(Float32, &[2, 3, 7, 5])],
    ),
    (
        "aten.max_unpool2d.default",
        &[Tensor(Float32, &[2, 3, 3]), Tensor(Int64, &[2, 3, 3]), Ints(&[5, 8])],
        &[(Float32, &[2, 5, 8])],
    ),
    (
        "aten.max_unpool3d.default",
        &[
            Tensor(Int64, &[1, 2, 1, 3, 3]),
            Tensor(Int64, &[1, 2, 1, 3, 3]),
            Ints(&[2, 5, 4]),
            Ints(&[1, 1, 1]),
            Ints(&[0, 0, 0]),
        ],
        &[(Int64, &[1, 2, 2, 5, 4])],
    ),
    (
        "aten.im2col.default",
        &[Tensor(Float32, &[2, 3, 7, 8]), Ints(&[3, 2]), Ints(&[2, 1]), Ints(&[1, 2]), Ints(&[1, 3])],
        &[(Float32, &[2, 18, 20])],
    ),
    (
        "aten.im2col.default",
        &[Tensor(super::DType::Bool, &[3, 4, 5]), Ints(&[2, 2]), Ints(&[1, 1]), Ints(&[1, 0]), Ints(&[2, 1])],
        &[(super::DType::Bool, &[12, 12])],
    ),
    (
        "aten.col2im.default",
        &[Tensor(Float32, &[2, 18, 20]), Ints(&[7, 8]), Ints(&[3, 2]), Ints(&[2, 1]), Ints(&[1, 2]), Ints(&[1, 3])],
        &[(Float32, &[2, 3, 7, 8])],
    ),
    (
        "aten.col2im.default",
        &[Tensor(Float16, &[12, 12]), Ints(&[4, 5]), Ints(&[2, 2]), Ints(&[1, 1]), Ints(&[1, 0]), Ints(&[2, 1])],
        &[(Float16, &[3, 4, 5])],
    ),
    // Normalisations that change their statistics.
    (
        "aten._native_batch_norm_legit.default",
        &[
            Tensor(Float32, &[2, 6, 4, 5]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Bool(true),
            Float(0.1),
            Float(1e-5),
        ],
        &[(Float32, &[2, 6, 4, 5]), (Float32, &[6]), (Float32, &[6])],
    ),
    (
        "aten._native_batch_norm_legit.default",
        &[
            Tensor(Float32, &[2, 6, 4, 5]),
            Tensor(Float32, &[6]),
            Nothing,
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Bool(false),
            Float(0.1),
            Float(5.0),
        ],
        &[(Float32, &[2, 6, 4, 5]), (Float32, &[0]), (Float32, &[0])],
    ),
    (
        "aten.native_batch_norm.default",
        &[
            Tensor(Float32, &[2, 6, 4, 5]),
            Nothing,
            Tensor(Float32, &[6]),
            Nothing,
            Nothing,
            Bool(true),
            Float(0.1),
            Float(1e-5),
        ],
        &[(Float32, &[2, 6, 4, 5]), (Float32, &[6]), (Float32, &[6])],
    ),
    (
        "aten._batch_norm_with_update.default",
        &[
            Tensor(Float32, &[2, 6, 4, 5]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Float(0.2),
            Float(1e-5),
        ],
        &[(Float32, &[2, 6, 4, 5]), (Float32, &[6]), (Float32, &[6]), (super::DType::UInt8, &[0])],
    ),
    (
        "aten._batch_norm_no_update.default",
        &[
            Tensor(Float32, &[2, 6, 4, 5]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Float(0.2),
            Float(5.0),
        ],
        &[(Float32, &[2, 6, 4, 5]), (Float32, &[0]), (Float32, &[0]), (super::DType::UInt8, &[0])],
    ),
    // Losses: the positions are below seven.
    (
        "aten.nll_loss_forward.default",
        &[Tensor(Float32, &[80, 7]), Tensor(Int64, &[80]), Tensor(Float32, &[7]), Int(1), Int(3)],
        &[(Float32, &[]), (Float32, &[])],
    ),
    (
        "aten.nll_loss_forward.default",
        &[Tensor(Float16, &[9, 7]), Tensor(Int64, &[9]), Nothing, Int(2), Int(-100)],
        &[(Float16, &[]), (Float16, &[])],
    ),
    (
        "aten.nll_loss_forward.default",
        &[Tensor(Float32, &[9, 7]), Tensor(Int64, &[9]), Tensor(Float32, &[7]), Int(0), Int(-100)],
        &[(Float32, &[9]), (Float32, &[])],
    ),
    (
        "aten.nll_loss2d_forward.default",
        &[Tensor(Float32, &[2, 7, 3, 4]), Tensor(Int64, &[2, 3, 4]), Tensor(Float32, &[7]), Int(1), Int(2)],
        &[(Float32, &[]), (Float32, &[])],
    ),
    (
        "aten.multi_margin_loss.default",
        &[Tensor(Float32, &[80, 7]), Tensor(Int64, &[80]), Int(1), Float(0.7), Tensor(Float32, &[7]), Int(1)],
        &[(Float32, &[])],
    ),
    (
        "aten.multi_margin_loss.default",
        &[Tensor(Float32, &[9, 7]), Tensor(Int64, &[9]), Int(2), Int(1), Nothing, Int(0)],
        &[(Float32, &[9])],
    ),
    (
        "aten.multi_margin_loss.default",
        &[Tensor(Float16, &[7]), Tensor(Int64, &[]), Int(1), Int(1), Nothing, Int(2)],
        &[(Float16, &[])],
    ),
    // Distances and products of rows.
    (
        "aten._cdist_forward.default",
        &[Tensor(Float32, &[2, 1, 5, 9]), Tensor(Float32, &[3, 4, 9]), Float(2.0), Nothing],
        &[(Float32, &[2, 3, 5, 4])],
    ),
    (
        "aten._cdist_forward.default",
        &[Tensor(Float32, &[5, 9]), Tensor(Float32, &[4, 9]), Float(0.0), Nothing],
        &[(Float32, &[5, 4])],
    ),
    (
        "aten._cdist_forward.default",
        &[Tensor(Float32, &[5, 9]), Tensor(Float32, &[4, 9]), Float(3.5), Nothing],
        &[(Float32, &[5, 4])],
    ),
    (
        "aten._cdist_forward.default",
        &[Tensor(Float16, &[5, 9]), Tensor(Float16, &[4, 9]), Float(1.0), Nothing],
        &[(Float16, &[5, 4])],
    ),
    ("aten._pdist_forward.default", &[Tensor(Float32, &[6, 9]), Float(2.0)], &[(Float32, &[15])]),
    ("aten._pdist_forward.default", &[Tensor(Float32, &[6, 9]), Float(f64::INFINITY)], &[(Float32, &[15])]),
    (
        "aten.linalg_cross.default",
        &[Tensor(Float32, &[4, 3, 5]), Tensor(Float32, &[1, 3, 5]), Int(1)],
        &[(Float32, &[4, 3, 5])],
    ),
    ("aten.linalg_cross.default", &[Tensor(Int64, &[4, 3]), Tensor(Int64, &[4, 3]), Int(-1)], &[(Int64, &[4, 3])]),
    (
        "aten.linalg_cross.default",
        &[Tensor(BFloat16, &[3, 5]), Tensor(BFloat16, &[3, 5]), Int(0)],
        &[(BFloat16, &[3, 5])],
    ),
    ("aten.vdot.default", &[Tensor(Float32, &[53]), Tensor(Float32, &[53])], &[(Float32, &[])]),
    // Bags of rows.
    (
        "aten._embedding_bag_forward_only.default",
        &[
            Tensor(Float32, &[37, 6]),
            Tensor(Int64, &[23]),
            Known(Int64, &[0, 4, 4, 9]),
            Bool(false),
            Int(0),
            Bool(false),
            Tensor(Float32, &[23]),
            Bool(false),
            Int(-1),
        ],
        &[(Float32, &[4, 6]), (Int64, &[0]), (Int64, &[4]), (Int64, &[4])],
    ),
    (
        "aten._embedding_bag_forward_only.default",
        &[
            Tensor(Float16, &[37, 6]),
            Tensor(Int32, &[23]),
            Known(Int32, &[0, 4, 5, 20]),
            Bool(false),
            Int(1),
            Bool(false),
            Nothing,
            Bool(true),
            Int(7),
        ],
        &[(Float16, &[3, 6]), (Int32, &[23]), (Int32, &[3]), (Int32, &[3])],
    ),
    (
        "aten._embedding_bag_forward_only.default",
        &[
            Tensor(Float32, &[37, 6]),
            Tensor(Int64, &[23]),
            Known(Int64, &[0, 4, 5, 9]),
            Bool(false),
            Int(2),
            Bool(false),
            Nothing,
            Bool(false),
            Int(-1),
        ],
        &[(Float32, &[4, 6]), (Int64, &[23]), (Int64, &[4]), (Int64, &[4, 6])],
    ),
    // Gradients of convolutions.
    (
        "aten.convolution_backward.default",
        &[
            Tensor(Float32, &[2, 6, 5, 6]),
            Tensor(Float32, &[2, 4, 9, 8]),
            Tensor(Float32, &[6, 2, 3, 2]),
            Ints(&[6]),
            Ints(&[2, 1]),
            Ints(&[1, 0]),
            Ints(&[1, 2]),
            Bool(false),
            Ints(&[0, 0]),
            Int(2),
            Bools(&[true, true, true]),
        ],
        &[(Float32, &[2, 4, 9, 8]), (Float32, &[6, 2, 3, 2]), (Float32, &[6])],
    ),
    (
        "aten.convolution_backward.default",
        &[
            Tensor(Float32, &[2, 6, 10, 17]),
            Tensor(Float32, &[2, 4, 5, 6]),
            Tensor(Float32, &[4, 3, 3, 2]),
            Ints(&[6]),
            Ints(&[2, 3]),
            Ints(&[1, 0]),
            Ints(&[1, 1]),
            Bool(true),
            Ints(&[1, 0]),
            Int(2),
            Bools(&[true, true, true]),
        ],
        &[(Float32, &[2, 4, 5, 6]), (Float32, &[4, 3, 3, 2]), (Float32, &[6])],
    ),
    (
        "aten.convolution_backward.default",
        &[
            Tensor(Float16, &[2, 5, 11]),
            Tensor(Float16, &[2, 4, 11]),
            Tensor(Float16, &[5, 4, 3]),
            Ints(&[5]),
            Ints(&[1]),
            Ints(&[1]),
            Ints(&[1]),
            Bool(false),
            Ints(&[0]),
            Int(1),
            Bools(&[false, true, true]),
        ],
        &[(Float16, &[5, 4, 3]), (Float16, &[5])],
    ),
    // Fourier transforms.
    ("aten._fft_r2c.default", &[Tensor(Float32, &[3, 50]), Ints(&[1]), Int(0), Bool(true)], &[(Complex64, &[3, 26])]),
    (
        "aten._fft_r2c.default",
        &[Tensor(Float32, &[5, 3, 8]), Ints(&[2, 0]), Int(1), Bool(true)],
        &[(Complex64, &[3, 3, 8])],
    ),
    (
        "aten._fft_c2c.default",
        &[Tensor(Complex64, &[4, 3, 16]), Ints(&[0, 2]), Int(2), Bool(false)],
        &[(Complex64, &[4, 3, 16])],
    ),
    ("aten._fft_c2c.default", &[Tensor(Complex64, &[512]), Ints(&[0]), Int(1), Bool(true)], &[(Complex64, &[512])]),
    (
        "aten._fft_c2r.default",
        &[Tensor(Complex64, &[3, 4, 8]), Ints(&[0, 2]), Int(2), Int(14)],
        &[(Float32, &[3, 4, 14])],
    ),
    ("aten._fft_c2r.default", &[Tensor(Complex64, &[5, 3]), Ints(&[0]), Int(0), Int(13)], &[(Float32, &[13, 3])]),
    ("aten._fft_c2r.default", &[Tensor(Complex64, &[5, 3]), Ints(&[0]), Int(0), Int(7)], &[(Float32, &[7, 3])]),
    // Factorisations.
    ("aten._linalg_det.default", &[Regular(&[3, 4, 4])], &[(Float32, &[3]), (Float32, &[3, 4, 4]), (Int32, &[3, 4])]),
    (
        "aten._linalg_slogdet.default",
        &[Regular(&[5, 5])],
        &[(Float32, &[]), (Float32, &[]), (Float32, &[5, 5]), (Int32, &[5])],
    ),
    ("aten.linalg_inv_ex.default", &[Regular(&[2, 3, 3]), Bool(false)], &[(Float32, &[2, 3, 3]), (Int32, &[2])]),
    (
        "aten._linalg_solve_ex.default",
        &[Regular(&[2, 3, 3]), Tensor(Float32, &[3, 4]), Bool(true), Bool(false)],
        &[(Float32, &[2, 3, 4]), (Float32, &[2, 3, 3]), (Int32, &[2, 3]), (Int32, &[2])],
    ),
    (
        "aten._linalg_solve_ex.default",
        &[Regular(&[3, 3]), Tensor(Float32, &[4, 3]), Bool(false), Bool(false)],
        &[(Float32, &[4, 3]), (Float32, &[3, 3]), (Int32, &[3]), (Int32, &[])],
    ),
    (
        "aten._linalg_solve_ex.default",
        &[Regular(&[3, 3]), Tensor(Float32, &[3]), Bool(true), Bool(false)],
        &[(Float32, &[3]), (Float32, &[3, 3]), (Int32, &[3]), (Int32, &[])],
    ),
    (
        "aten.linalg_cholesky_ex.default",
        &[Regular(&[3, 4, 4]), Bool(true), Bool(false)],
        &[(Float32, &[3, 4, 4]), (Int32, &[3])],
    ),
    (
        "aten.linalg_cholesky_ex.default",
        &[Tensor(Float32, &[9, 1, 1]), Bool(true), Bool(false)],
        &[(Float32, &[9, 1, 1]), (Int32, &[9])],
    ),
    (
        "aten.linalg_solve_triangular.default",
        &[Regular(&[2, 3, 3]), Tensor(Float32, &[3, 4]), Bool(true), Bool(true), Bool(false)],
        &[(Float32, &[2, 3, 4])],
    ),
    (
        "aten.linalg_solve_triangular.default",
        &[Regular(&[3, 3]), Tensor(Float32, &[4, 3]), Bool(true), Bool(false), Bool(true)],
        &[(Float32, &[4, 3])],
    ),
    // Eigenvalues and singular values.
    (
        "aten._linalg_eigh.default",
        &[Regular(&[2, 5, 5]), Text("L"), Bool(false)],
        &[(Float32, &[2, 5]), (Float32, &[0])],
    ),
    ("aten._linalg_eigh.default", &[Regular(&[4, 4]), Text("U"), Bool(false)], &[(Float32, &[4]), (Float32, &[0])]),
    (
        "aten._linalg_svd.default",
        &[Regular(&[2, 3, 5]), Bool(false), Bool(false), Nothing],
        &[(Float32, &[0]), (Float32, &[2, 3]), (Float32, &[0])],
    ),
    (
        "aten._linalg_svd.default",
        &[Regular(&[7, 4]), Bool(false), Bool(false), Nothing],
        &[(Float32, &[0]), (Float32, &[4]), (Float32, &[0])],
    ),
];
