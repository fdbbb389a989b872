//! Operators that other libraries register beside PyTorch's own: a row of [`EXTENSIONS`] for each.
//!
//! torchao keeps its quantisation whole in exported programs (`torchao::quantize_affine`), transformers its mixture of experts
//! (`transformers::grouped_mm_fallback`), and torchvision what detectors do with boxes (`torchvision::nms`). A row is a schema,
//! as the library registers it, and what the operator is: a function that makes the results of other operators, from which
//! shapes, gradients and decomposed programs follow, or a shape rule and a kernel.

mod torchao;
mod torchvision;
mod transformers;

use crate::Library;
use tracefx_core::{DType, Result, Tensor};
use tracefx_ir::TensorMeta;
use tracefx_ops::{Args, CustomOp, Cx, Output, TensorRef, Traced, Value};
use tracefx_sym::SymInt;

/// An operator of another library.
pub struct Extension {
    /// Its schema, as the library registers it.
    pub schema: &'static str,
    /// What it is.
    pub body: Body,
}

/// What an operator of another library is.
pub enum Body {
    /// It is made of other operators, and decomposed programs do not contain it.
    Composite(fn(&mut Cx<'_>, &Args<'_, TensorRef>) -> Result<Vec<Traced>>),
    /// It is computed as a whole, and stays in decomposed programs, as in those of PyTorch.
    Whole {
        /// What the results are, without data.
        shape: fn(&Args<'_, TensorMeta>) -> Result<Vec<Output>>,
        /// The results.
        kernel: fn(&Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>>,
    },
}

/// The operators of other libraries that programs may call.
pub const EXTENSIONS: &[Extension] = &[
    Extension {
        schema: "torchao::quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType output_dtype, Scalar? quant_min=None, Scalar? quant_max=None) -> Tensor",
        body: Body::Composite(torchao::quantize_affine),
    },
    Extension {
        schema: "torchao::dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType input_dtype, Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor",
        body: Body::Composite(torchao::dequantize_affine),
    },
    Extension {
        schema: "torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType target_dtype, Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, ScalarType? scale_dtype=None, ScalarType? zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)",
        body: Body::Composite(torchao::choose_qparams_affine),
    },
    Extension {
        schema: "torchao::choose_scale_float8(Tensor tensor, SymInt[] block_size, ScalarType float8_dtype=24, ScalarType scale_dtype=6, float? hp_value_lb=None, float? hp_value_ub=None) -> Tensor",
        body: Body::Composite(torchao::choose_scale_float8),
    },
    Extension {
        schema: "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
        body: Body::Composite(transformers::grouped_mm),
    },
    Extension {
        schema: "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
        body: Body::Whole { shape: torchvision::nms_shape, kernel: torchvision::nms },
    },
    Extension {
        schema: "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
        body: Body::Whole { shape: torchvision::roi_align_shape, kernel: torchvision::roi_align },
    },
    Extension {
        schema: "torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
        body: Body::Whole { shape: torchvision::roi_pool_shape, kernel: torchvision::roi_pool },
    },
    Extension {
        schema: "torchvision::ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)",
        body: Body::Whole { shape: torchvision::ps_roi_align_shape, kernel: torchvision::ps_roi_align },
    },
    Extension {
        schema: "torchvision::ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
        body: Body::Whole { shape: torchvision::ps_roi_pool_shape, kernel: torchvision::ps_roi_pool },
    },
    Extension {
        schema: "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
        body: Body::Whole { shape: torchvision::deform_conv2d_shape, kernel: torchvision::deform_conv2d },
    },
];

impl Library {
    /// The operators of tracefx, and those of other libraries that it knows ([`EXTENSIONS`]). A program of torchao,
    /// torchvision or transformers runs in it.
    ///
    /// ```
    /// use tracefx_engine::Library;
    /// assert!(Library::extended().registry().get("torchao.quantize_affine.default").is_some());
    /// ```
    ///
    /// # Panics
    /// Never: the schemas of the table are read by a test.
    pub fn extended() -> Self {
        let mut library = Library::default();
        for Extension { schema, body } in EXTENSIONS {
            let op = CustomOp::new(schema).expect("the schemas of the table are schemas");
            let (op, kernel) = match *body {
                Body::Composite(decompose) => (op.decompose(decompose), None),
                Body::Whole { shape, kernel } => (op.shape(shape), Some(kernel)),
            };
            let name = op.name();
            library.define(op).expect("no operator of the table is one of PyTorch");
            if let Some(kernel) = kernel {
                library.implement(&name, kernel).expect("it is defined");
            }
        }
        library
    }
}

/// A call of an operator while a program is decomposed.
type Call<'a> = Args<'a, TensorRef>;

fn at(args: &Call<'_>, name: &str) -> Traced {
    args.position(name).map_or(Value::None, |it| args.values[it].clone())
}

fn dtype_at(args: &Call<'_>, name: &str) -> Option<DType> {
    if let Value::DType(it) = at(args, name) { Some(it) } else { None }
}

fn tensor(args: &Call<'_>, it: &Traced) -> Result<TensorRef> {
    match it {
        Value::Tensor(it) => Ok(*it),
        other => Err(args.invalid(format!("a {} in the place of a tensor", other.kind_name()))),
    }
}

fn dims(sizes: &[SymInt]) -> Traced {
    Value::List(sizes.iter().cloned().map(Value::Int).collect())
}
