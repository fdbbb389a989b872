/**
 * What PyTorch's dispatcher says of operators and the rows of ours do not tell: which are written in terms of others, so that
 * nothing below autograd sees them, and which work element by element.
 *
 * @module
 */

/** Operators that are `CompositeImplicitAutograd`: all overloads of a name, or the one behind a dot. */
const COMPOSITES = `
__and__ __or__ __xor__ _lu_with_info _pad_circular _pad_packed_sequence _scaled_dot_product_attention_math
_upsample_bicubic2d_aa.vec _upsample_bilinear2d_aa.vec _upsample_nearest_exact1d.vec
_upsample_nearest_exact2d.vec _upsample_nearest_exact3d.vec _weight_norm absolute adaptive_avg_pool1d
adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adjoint alpha_dropout arccos arccosh arcsin
arcsinh arctan arctan2 arctanh argsort argwhere atleast_1d atleast_2d atleast_3d avg_pool1d batch_norm
bilinear broadcast_tensors broadcast_to cartesian_prod cdist chain_matmul chunk clip column_stack combinations
concat concatenate conj conj_physical contiguous conv1d conv2d conv3d conv_transpose1d conv_transpose2d
conv_transpose3d corrcoef cosine_embedding_loss cosine_similarity cov cross cross_entropy_loss ctc_loss
cumulative_trapezoid det diag diagflat diff divide dropout dsplit dstack einsum embedding_backward
embedding_bag expand_as feature_alpha_dropout feature_dropout fft_fft fft_fft2 fft_fftn fft_fftshift fft_hfft
fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft
fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn fix flatten fliplr flipud float_power frobenius_norm ger
gradient greater greater_equal grid_sampler group_norm gru gru_cell hinge_embedding_loss histogramdd hsplit
hstack imag inner instance_norm inverse isclose isfinite isreal istft item kl_div kron l1_loss layer_norm less
less_equal linalg_cholesky linalg_cond linalg_det linalg_diagonal linalg_eigh linalg_eigvals linalg_eigvalsh
linalg_inv linalg_lu_factor linalg_matmul linalg_matrix_norm linalg_matrix_power linalg_matrix_rank
linalg_multi_dot linalg_norm linalg_pinv.atol_rtol_float linalg_pinv.rcond_tensor linalg_pinv.default
linalg_slogdet linalg_solve linalg_solve_ex linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve
linalg_vander linalg_vecdot linear log_sigmoid log_softmax logdet lstm lstm_cell lu_solve mH mT
margin_ranking_loss matmul matrix_H matrix_exp matrix_power max.other max_pool1d max_pool1d_with_indices
max_pool2d max_pool3d meshgrid min.other mish_backward moveaxis movedim msort multilabel_margin_loss multiply
nanmean nanquantile narrow native_channel_shuffle negative nll_loss nll_loss2d nll_loss_nd nonzero_numpy
norm_except_dim not_equal nuclear_norm numpy_T one_hot orgqr outer pad pad_sequence pairwise_distance pdist
pinverse poisson_nll_loss positive prelu qr quantile ravel real relu6
repeat_interleave.self_Tensor repeat_interleave.self_int reshape reshape_as resolve_conj resolve_neg rms_norm
rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell row_stack rrelu scaled_dot_product_attention selu silu_backward
slogdet softmax special_digamma special_erf special_erfc special_erfinv special_exp2 special_expit
special_expm1 special_gammainc special_gammaincc special_gammaln special_i0 special_log1p special_log_softmax
special_logit special_logsumexp special_multigammaln special_ndtr special_polygamma special_psi special_round
special_sinc special_softmax special_xlogy split.sizes square std.dim std.default
std_mean.dim std_mean.default stft subtract sum_to_size svd swapaxes swapdims take_along_dim tensor_split
tensordot tile to trapezoid trapz triplet_margin_loss true_divide type_as unflatten unsafe_chunk
upsample_bicubic2d.vec upsample_linear1d.vec upsample_nearest1d.vec upsample_nearest3d.vec
upsample_trilinear3d.vec vander var.dim var.default var_mean.dim var_mean.default view_as vsplit vstack
where.ScalarSelf where.ScalarOther where.Scalar
`;

/** Operators that have the tag `pointwise`; those that work in place are called as these with an underscore. */
const POINTWISE = `
__ilshift__ __ixor__ __lshift__ __rshift__ __xor__ abs acos acosh add addcdiv addcmul angle asin asinh atan
atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu
clamp clamp_max clamp_min clip clone conj_physical copysign cos cosh deg2rad digamma div elu eq equal erf erfc
erfinv exp exp2 expm1 float_power floor fmax fmin fmod frac frexp gcd ge gelu gelu_backward gt hardshrink
hardsigmoid hardtanh heaviside hypot i0 igamma igammac isfinite isinf isnan isneginf isposinf lcm ldexp le
leaky_relu lerp lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
logical_xor logit logit_backward lt masked_fill max maximum min minimum mish mul mvlgamma nan_to_num
native_dropout_backward ne neg nextafter polygamma positive pow rad2deg reciprocal relu relu6 remainder round
rrelu rsqrt rsub selu sgn sigmoid sigmoid_backward sign signbit silu silu_backward sin sinc sinh softplus
softshrink special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
special_chebyshev_polynomial_w special_entr special_erfcx special_hermite_polynomial_h
special_hermite_polynomial_he special_i0e special_i1 special_i1e special_laguerre_polynomial_l
special_legendre_polynomial_p special_log_ndtr special_modified_bessel_i0 special_modified_bessel_i1
special_modified_bessel_k0 special_modified_bessel_k1 special_ndtri special_scaled_modified_bessel_k0
special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t
special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
special_shifted_chebyshev_polynomial_w special_spherical_bessel_j0 special_xlog1py special_zeta sqrt square
sub tan tanh tanh_backward threshold threshold_backward true_divide trunc where xlogy
`;

const composites = new Set(COMPOSITES.trim().split(/\s+/));
const pointwise = new Set(POINTWISE.trim().split(/\s+/));

/** Whether an overload, such as `aten.linear.default`, is written in terms of other operators. */
export function isComposite(name: string): boolean {
  const [namespace, packet = "", overload = ""] = name.split(".");
  return namespace === "aten" && (composites.has(packet) || composites.has(`${packet}.${overload}`));
}

/** Whether an overload works element by element. */
export function isPointwise(name: string): boolean {
  const [namespace, packet = "", overload = ""] = name.split(".");
  if (namespace !== "aten" || overload === "dim" || (overload === "default" && /^(?:max|min)$/.test(packet)))
    return false;
  return pointwise.has(packet) || (packet.endsWith("_") && pointwise.has(packet.slice(0, -1)));
}
