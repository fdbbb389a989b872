//! Batch normalizations taken into the layers before them: `torch.fx.experimental.optimization.fuse`, on operators.

use crate::PassResult;
use crate::constant_fold::constants_of;
use crate::effects::Writes;
use crate::fuser::replace_uses;
use crate::tensor_meta::{rank_of, tensor_meta_of};
use rustc_hash::FxHashMap;
use tracefx_core::{DType, Result};
use tracefx_ir::{Arg, GraphModule, InsertPoint, Node, NodeId, Opcode};
use tracefx_ops::Registry;

/// What a layer does with its weight.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    /// The channels of the result are the first dimension of the weight.
    Convolution,
    /// As a convolution; the channels are the last dimension of the result.
    Linear,
    /// A bias, an input and a weight whose last dimension are the channels.
    Addmm,
}

const LAYERS: &[(&str, Layer)] = &[
    ("torch.ops.aten.conv1d.default", Layer::Convolution),
    ("torch.ops.aten.conv1d.padding", Layer::Convolution),
    ("torch.ops.aten.conv2d.default", Layer::Convolution),
    ("torch.ops.aten.conv2d.padding", Layer::Convolution),
    ("torch.ops.aten.conv3d.default", Layer::Convolution),
    ("torch.ops.aten.conv3d.padding", Layer::Convolution),
    ("torch.ops.aten.convolution.default", Layer::Convolution),
    ("torch.ops.aten.linear.default", Layer::Linear),
    ("torch.ops.aten.addmm.default", Layer::Addmm),
];

/// Batch normalizations, where their argument `training` is, and where `eps` is.
const NORMS: &[(&str, Option<usize>, usize)] = &[
    ("torch.ops.aten.batch_norm.default", Some(5), 7),
    ("torch.ops.aten.native_batch_norm.default", Some(5), 7),
    ("torch.ops.aten._native_batch_norm_legit_no_training.default", None, 6),
];

/// Takes batch normalizations in evaluation into the convolutions, linear layers and `addmm`s before them, where nothing else
/// uses these, and all parameters are constants. The new weights are computed in the graph, from the old ones, which others
/// may use as before: fold constants afterwards to have them computed once.
///
/// With mean `m`, variance `v`, scale `w` and shift `b`, each channel is multiplied by `s = w / sqrt(v + eps)`, and the bias
/// becomes `(bias - m) * s + b`. A linear layer is fused where its result is known to have two dimensions (`meta.val`), since
/// otherwise its channels are not what is normalized. Transposed convolutions stay. A second run changes nothing.
///
/// # Errors
/// None of a graph that is well formed.
pub fn fuse_batch_norm(module: &mut GraphModule, registry: &Registry) -> Result<PassResult> {
    let mut is_constant = vec![false; module.graph.id_bound()];
    constants_of(module, registry).into_iter().for_each(|it| is_constant[it.index()] = true);
    let disturbed = Writes::of(module, registry).map(|it| it.disturbed(&module.graph)).unwrap_or_default();
    let nodes: Vec<NodeId> = module.graph.nodes().collect();
    let mut fused = Fused::default();
    for id in nodes {
        // All that was made since is computed from constants.
        let is_constant = |it: NodeId| is_constant.get(it.index()).copied().unwrap_or(true);
        let Some(pair) = pair_of(module, &fused, id, &is_constant) else { continue };
        // The layer moves to the normalization, whose parameters may be read after it.
        if disturbed.contains(&pair.layer) {
            continue;
        }
        fuse(module, &mut fused, &pair)?;
    }
    Ok(PassResult { modified: fused.modified })
}

/// What was fused, so that a normalization of it is taken in too.
#[derive(Default)]
struct Fused {
    modified: bool,
    /// The dtypes of the weights and biases that were made.
    dtypes: FxHashMap<NodeId, DType>,
    /// The ranks of the weights that were made.
    ranks: FxHashMap<NodeId, usize>,
}

impl Fused {
    fn dtype_of(&self, module: &GraphModule, id: NodeId) -> Option<DType> {
        self.dtypes.get(&id).copied().or_else(|| tensor_meta_of(module, id).map(|it| it.dtype))
    }

    fn rank_of(&self, module: &GraphModule, id: NodeId) -> Option<usize> {
        self.ranks.get(&id).copied().or_else(|| rank_of(module, id))
    }
}

/// A layer, and the normalization of its result.
struct Pair {
    layer: NodeId,
    kind: Layer,
    weight: NodeId,
    weight_rank: usize,
    bias: Option<NodeId>,
    norm: NodeId,
    /// The normalized tensor: the normalization, or the first of its results.
    result: NodeId,
    scale: Option<NodeId>,
    shift: Option<NodeId>,
    mean: NodeId,
    variance: NodeId,
    eps: Arg,
}

fn pair_of(module: &GraphModule, fused: &Fused, norm: NodeId, is_constant: &dyn Fn(NodeId) -> bool) -> Option<Pair> {
    let graph = &module.graph;
    let node = graph.node(norm);
    let (target, training, eps) = find(node, NORMS, |it| it.0)?;
    let [Arg::Node(layer), scale, shift, mean, variance, ..] = node.args() else { return None };
    if training.is_some_and(|it| node.args().get(it) != Some(&Arg::Bool(false))) {
        return None;
    }
    let result = if target.ends_with(".batch_norm.default") { norm } else { only_item(module, norm)? };
    let source = graph.node(*layer);
    let (_, kind) = find(source, LAYERS, |it| it.0)?;
    if graph.users(*layer).len() != 1 || !source.kwargs().is_empty() || !node.kwargs().is_empty() {
        return None;
    }
    let is_transposed = source.target().contains(".convolution.") && source.args().get(6) != Some(&Arg::Bool(false));
    let [weight, bias] = match kind {
        Layer::Addmm => [source.args().get(2)?, source.args().first()?],
        Layer::Convolution | Layer::Linear => [source.args().get(1)?, source.args().get(2).unwrap_or(&Arg::None)],
    };
    let constant = |arg: &Arg| arg.as_node().filter(|&it| is_constant(it));
    let optional = |arg: &Arg| if *arg == Arg::None { Some(None) } else { constant(arg).map(Some) };
    let weight = constant(weight)?;
    let weight_rank = fused.rank_of(module, weight).unwrap_or(if kind == Layer::Convolution { 0 } else { 2 });
    let rank = rank_of(module, *layer);
    // The channels are the second dimension of what the layer gives, and the first of its weight.
    let fits = match kind {
        Layer::Convolution => rank.is_none_or(|it| it == weight_rank),
        Layer::Linear => rank == Some(2) && weight_rank == 2,
        Layer::Addmm => true,
    };
    let pair = Pair {
        layer: *layer,
        kind,
        weight,
        weight_rank,
        bias: optional(bias)?,
        norm,
        result,
        scale: optional(scale)?,
        shift: optional(shift)?,
        mean: constant(mean)?,
        variance: constant(variance)?,
        eps: node.args().get(eps)?.clone(),
    };
    (fits && !is_transposed && weight_rank > 0).then_some(pair)
}

/// The row of a table that a call is of.
fn find<T: Copy>(node: &Node, table: &[T], target_of: impl Fn(&T) -> &str) -> Option<T> {
    let is_call = node.op() == Opcode::CallFunction;
    table.iter().find(|it| is_call && target_of(it) == &**node.target()).copied()
}

/// The node that takes the first of several results, where nothing uses the others.
fn only_item(module: &GraphModule, norm: NodeId) -> Option<NodeId> {
    let graph = &module.graph;
    let is_item = |it: NodeId| &**graph.node(it).target() == "operator.getitem";
    let mut used = graph.users(norm).iter().filter(|&it| !is_item(it) || !graph.users(it).is_empty());
    let (item, None) = (used.next()?, used.next()) else { return None };
    (is_item(item) && graph.node(item).args().get(1) == Some(&Arg::Int(0))).then_some(item)
}

fn fuse(module: &mut GraphModule, fused: &mut Fused, pair: &Pair) -> Result<()> {
    let dtype_of = |id| fused.dtype_of(module, id);
    let dtype = dtype_of(pair.weight);
    let parameters = [Some(pair.weight), pair.bias, pair.scale, pair.shift, Some(pair.mean), Some(pair.variance)];
    let is_mixed = parameters.into_iter().flatten().any(|it| dtype_of(it) != dtype);
    let cast = dtype.filter(|_| is_mixed);
    let graph = &mut module.graph;
    let before = graph.set_insert_point(InsertPoint::Before(pair.norm))?;
    let mut call = |name: &str, args: Vec<Arg>| -> Arg {
        graph.call_function(&format!("torch.ops.aten.{name}"), args, vec![]).into()
    };
    let widened = call("add.Scalar", vec![pair.variance.into(), pair.eps.clone()]);
    let mut factor = call("rsqrt.default", vec![widened]);
    if let Some(scale) = pair.scale {
        factor = call("mul.Tensor", vec![scale.into(), factor]);
    }
    let by_channel = match pair.kind {
        Layer::Addmm => factor.clone(),
        Layer::Convolution | Layer::Linear => {
            let mut sizes = vec![Arg::Int(1); pair.weight_rank];
            sizes[0] = Arg::Int(-1);
            call("reshape.default", vec![factor.clone(), Arg::List(sizes)])
        }
    };
    let mut weight = call("mul.Tensor", vec![pair.weight.into(), by_channel]);
    let centred = match pair.bias {
        Some(bias) => call("sub.Tensor", vec![bias.into(), pair.mean.into()]),
        None => call("neg.default", vec![pair.mean.into()]),
    };
    let mut bias = call("mul.Tensor", vec![centred, factor]);
    if let Some(shift) = pair.shift {
        bias = call("add.Tensor", vec![bias, shift.into()]);
    }
    if let Some(dtype) = cast {
        [weight, bias] = [weight, bias].map(|it| call("to.dtype", vec![it, Arg::DType(dtype)]));
    }
    graph.set_insert_point(before)?;
    fused.modified = true;
    let made = [&weight, &bias].into_iter().filter_map(Arg::as_node);
    fused.dtypes.extend(made.zip(dtype.into_iter().cycle()));
    fused.ranks.extend(weight.as_node().map(|it| (it, pair.weight_rank)));

    let mut args = graph.node(pair.layer).args().to_vec();
    if pair.kind == Layer::Addmm {
        (args[0], args[2]) = (bias, weight);
    } else {
        args.resize(args.len().max(3), Arg::None);
        (args[1], args[2]) = (weight, bias);
    }
    graph.move_before(pair.layer, pair.norm)?;
    graph.set_equal_args(pair.layer, args, vec![])?;
    replace_uses(graph, &FxHashMap::from_iter([(pair.result, pair.layer)]), &|_| true)?;
    if pair.result != pair.norm {
        let items: Vec<NodeId> = graph.users(pair.norm).iter().collect();
        items.into_iter().try_for_each(|it| graph.erase_node(it))?;
    }
    graph.erase_node(pair.norm)
}
