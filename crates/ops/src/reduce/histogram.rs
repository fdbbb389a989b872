//! Histograms of points of several dimensions.

use crate::core::decompositions::{Call, tensor_of};
use crate::index::gather::wrong_dtype;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, contiguous};
use tracefx_core::{DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? \
             weight=None, bool density=False) -> Tensor[]",
        bin_edges,
    )
    .tolerance(Tol::Default)
    .doc("The bounds of so many equal bins for each dimension, over a range or over all points."),
    OpDef::new(
        "aten::_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? \
             weight=None, bool density=False) -> Tensor",
        from_bin_tensors,
    )
    .tolerance(Tol::Default)
    .doc(
        "How many points, or what weight of them, lies between these bounds of bins; as a \
             density where that is asked for.",
    ),
    composite(
        "aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, \
             Tensor? weight=None, bool density=False) -> Tensor",
        |cx, args| {
            let edges = edges(cx, args, &args.values[0], &args.values[1])?;
            Ok(vec![counts(cx, args, &args.values[0], &edges)?])
        },
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("How many points lie in each of so many equal bins."),
    composite(
        "aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? \
             weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
        |cx, args| {
            let points = column(cx, args)?;
            let edges = edges(cx, args, &points, &Value::ints(&[args.int(1)?]))?;
            let hist = counts(cx, args, &points, &edges)?;
            let Value::List(mut edges) = edges else { unreachable!("there is a list of bounds") };
            Ok(vec![hist, edges.swap_remove(0)])
        },
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("How many elements lie in each of so many equal bins, and their bounds."),
    composite(
        "aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool \
             density=False) -> (Tensor hist, Tensor bin_edges)",
        |cx, args| {
            let (points, edges) = (column(cx, args)?, args.values[1].clone());
            let hist = counts(cx, args, &points, &Value::List(vec![edges.clone()]))?;
            Ok(vec![hist, cx.aten("clone", [&edges])?])
        },
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("How many elements lie between these bounds, and the bounds."),
    composite(
        "aten::histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, \
             bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        |cx, args| {
            let edges = edges(cx, args, &args.values[0], &args.values[1])?;
            Ok(vec![counts(cx, args, &args.values[0], &edges)?, edges])
        },
    )
    .doc("How many points lie in each of so many equal bins of each dimension, and their bounds."),
    composite(
        "aten::histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? \
             weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        |cx, args| {
            let n_dims = cx.meta(*args.tensor(0)?).sizes.last().and_then(SymInt::as_int).unwrap_or(0);
            let n_dims = usize::try_from(n_dims).unwrap_or(0);
            let mut bins = Vec::new();
            bins.try_reserve_exact(n_dims).map_err(|_| Diagnostic::out_of_memory(n_dims))?;
            bins.resize(n_dims, args.values[1].clone());
            let edges = edges(cx, args, &args.values[0], &Value::List(bins))?;
            Ok(vec![counts(cx, args, &args.values[0], &edges)?, edges])
        },
    )
    .doc("How many points lie in each of so many equal bins of each dimension, and their bounds."),
    composite(
        "aten::histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, \
             Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
        |cx, args| {
            let edges = args.values[1].clone();
            Ok(vec![counts(cx, args, &args.values[0], &edges)?, edges])
        },
    )
    .doc("How many points lie between these bounds of each dimension, and the bounds."),
];

type Meta<'a> = Args<'a, TensorMeta>;
const fn composite(schema: &'static str, decompose: crate::Decompose) -> OpDef {
    OpDef::composite(schema, decompose).tolerance(Tol::Default)
}

/// The number of dimensions of the points, after what is common to all histograms is checked.
fn n_dims(args: &Meta<'_>) -> Result<usize> {
    let this = args.tensor(0)?;
    if !matches!(this.dtype, DType::Float32 | DType::Float64) {
        return Err(wrong_dtype(args, format!("\"histogram_cpu\" not implemented for '{}'", this.dtype)));
    }
    let Some((last, lead)) = this.sizes.split_last().filter(|(_, it)| !it.is_empty()) else {
        return Err(args.bad_shape("torch.histogramdd: input tensor should have at least 2 dimensions"));
    };
    if let Some(weight) = args.position("weight").map_or(Ok(None), |it| args.opt_tensor(it))? {
        if weight.dtype != this.dtype {
            let what = "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should \
             have the same dtype";
            return Err(wrong_dtype(args, what));
        }
        if !args.agree(&weight.sizes, lead) {
            return Err(args.bad_shape(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the \
             input tensor excluding its innermost dimension",
            ));
        }
    }
    last.as_int()
        .and_then(|it| usize::try_from(it).ok())
        .ok_or_else(|| args.unsupported("a histogram of points whose number of dimensions is not known"))
}

fn bin_edges(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (n, bins) = (n_dims(args)?, args.ints(1)?);
    if bins.len() != n {
        return Err(
            args.bad_shape("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
        );
    }
    if let Some(range) = args.opt_floats(2)?
        && range.len() != 2 * n
    {
        let what = format!(
            "torch.histogramdd: for a {n}-dimensional histogram range should have {} elements, but \
             got {}",
            2 * n,
            range.len()
        );
        return Err(args.invalid(what));
    }
    if bins.iter().any(|it| *it < 1) {
        return Err(args.invalid("torch.histogramdd(): bins must be > 0"));
    }
    let dtype = args.tensor(0)?.dtype;
    Ok(vec![Output::List(bins.iter().flat_map(|it| contiguous(dtype, vec![SymInt::from(*it) + 1])).collect())])
}

fn from_bin_tensors(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (n, bins, dtype) = (n_dims(args)?, args.tensors(1)?, args.tensor(0)?.dtype);
    if bins.len() != n {
        return Err(
            args.bad_shape("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
        );
    }
    let mut sizes = Vec::new();
    for (at, bins) in bins.iter().enumerate() {
        if bins.dtype != dtype {
            let what = format!("torch.histogramdd: input tensor and bins[{at}] should have the same dtype");
            return Err(wrong_dtype(args, what));
        }
        let [n_edges] = &bins.sizes[..] else {
            let what = format!(
                "torch.histogramdd: bins tensor should have one dimension, but got {} dimensions in the \
             bins tensor for dimension {at}",
                bins.sizes.len()
            );
            return Err(args.bad_shape(what));
        };
        if *n_edges == 0 {
            let what = format!(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in \
             the bins tensor for dimension {at}"
            );
            return Err(args.bad_shape(what));
        }
        sizes.push(n_edges - 1);
    }
    Ok(contiguous(dtype, sizes))
}

/// The elements as points of one dimension.
fn column(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Traced> {
    let n: SymInt = cx.meta(*args.tensor(0)?).sizes.iter().product();
    cx.aten("reshape", [&args.values[0], &Value::List(vec![Value::Int(n), Value::int(1)])])
}

fn edges(cx: &mut Cx<'_>, args: &Call<'_>, points: &Traced, bins: &Traced) -> Result<Traced> {
    let range = args.position("range").map_or(Value::None, |it| args.values[it].clone());
    cx.aten_with("_histogramdd_bin_edges", [points, bins], &[("range", range)])
}

fn counts(cx: &mut Cx<'_>, args: &Call<'_>, points: &Traced, edges: &Traced) -> Result<Traced> {
    let at = |name: &str| args.position(name).map_or(Value::None, |it| args.values[it].clone());
    let mut weight = at("weight");
    // Weights of single elements may have any shape.
    if matches!(weight, Value::Tensor(_)) && args.op.schema.name == "histogram" {
        let n = cx.meta(tensor_of(points)).sizes[0].clone();
        weight = cx.aten("reshape", [&weight, &Value::List(vec![Value::Int(n)])])?;
    }
    let options = [("weight", weight), ("density", at("density"))];
    cx.aten_with("_histogramdd_from_bin_tensors", [points, edges], &options)
}
