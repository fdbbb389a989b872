//! Batch normalizations taken into the layers before them: `torch.fx.experimental.optimization.fuse`, on operators.

use crate::constant_fold::constants_of;
use crate::fuser::replace_uses;
use crate::tensor_meta::{rank_of, tensor_meta_of};
use crate::write_order::WriteOrder;
use crate::{LeftOut, PassResult};
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
/// may use as before: fold constants afterwards to have them computed once. Of each normalization that stays, the result
/// says why.
///
/// With mean `m`, variance `v`, scale `w` and shift `b`, each channel is multiplied by `s = w / sqrt(v + eps)`, and the bias
/// becomes `(bias - m) * s + b`. A linear layer is fused where its result is known to have two dimensions (`meta.val`), since
/// otherwise its channels are not what is normalized. Transposed convolutions stay. A layer moves to its normalization, and
/// stays where something between them writes to what it takes. A second run changes nothing.
///
/// # Errors
/// None of a graph that is well formed.
pub fn fuse_batch_norm(module: &mut GraphModule, registry: &Registry) -> Result<PassResult> {
    let mut order = WriteOrder::of(module, registry);
    let mut is_constant = vec![false; module.graph.id_bound()];
    constants_of(module, &order, registry).into_iter().for_each(|it| is_constant[it.index()] = true);
    let nodes: Vec<NodeId> = module.graph.nodes().collect();
    let mut fused = Fused::default();
    let mut left_out = Vec::new();
    for id in nodes {
        // All that was made since is computed from constants.
        let is_constant = |it: NodeId| is_constant.get(it.index()).copied().unwrap_or(true);
        match pair_of(module, &fused, id, &is_constant, &order) {
            Found::Nothing => {}
            Found::LeftOut(reason) => left_out.push(LeftOut { node: module.graph.node(id).name().to_string(), reason }),
            Found::Pair(pair) => {
                order.moved(pair.layer, pair.norm);
                fuse(module, &mut fused, &pair)?;
            }
        }
    }
    Ok(PassResult { modified: fused.modified, left_out })
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

/// What a node is to the pass.
enum Found {
    /// No normalization.
    Nothing,
    /// A normalization that stays, and why.
    LeftOut(String),
    Pair(Box<Pair>),
}

fn pair_of(
    module: &GraphModule,
    fused: &Fused,
    norm: NodeId,
    is_constant: &dyn Fn(NodeId) -> bool,
    order: &WriteOrder,
) -> Found {
    let Some(kind) = find(module.graph.node(norm), NORMS, |it| it.0) else { return Found::Nothing };
    match checked_pair(module, fused, (norm, kind), is_constant, order) {
        Ok(pair) => Found::Pair(Box::new(pair)),
        Err(reason) => Found::LeftOut(reason),
    }
}

fn checked_pair(
    module: &GraphModule,
    fused: &Fused,
    (norm, (target, training, eps)): (NodeId, (&str, Option<usize>, usize)),
    is_constant: &dyn Fn(NodeId) -> bool,
    order: &WriteOrder,
) -> std::result::Result<Pair, String> {
    let graph = &module.graph;
    let name = |it: NodeId| graph.node(it).name();
    let node = graph.node(norm);
    let by_name = |id: NodeId| format!("`{}` has arguments by name: run NormalizeArgs first", name(id));
    if !node.kwargs().is_empty() {
        return Err(by_name(norm));
    }
    let ([Arg::Node(layer), scale, shift, mean, variance, ..], Some(eps)) = (node.args(), node.args().get(eps)) else {
        return Err("it lacks arguments".to_owned());
    };
    if training.is_some_and(|it| node.args().get(it) != Some(&Arg::Bool(false))) {
        return Err("it is in training: put the model into evaluation (`eval()`) before it is traced".to_owned());
    }
    let result = match target.ends_with(".batch_norm.default") {
        true => norm,
        false => only_item(module, norm).ok_or("not its first result alone is used")?,
    };
    let (layer, source) = (*layer, graph.node(*layer));
    let Some((_, kind)) = find(source, LAYERS, |it| it.0) else {
        return Err(format!("`{}`, which it normalizes, is no convolution, linear layer or addmm", name(layer)));
    };
    if graph.users(layer).len() != 1 {
        return Err(format!("something else uses `{}`, too", name(layer)));
    }
    if !source.kwargs().is_empty() {
        return Err(by_name(layer));
    }
    if source.target().contains(".convolution.") && source.args().get(6) != Some(&Arg::Bool(false)) {
        return Err(format!("`{}` is a transposed convolution", name(layer)));
    }
    let (weight, bias) = match kind {
        Layer::Addmm => (source.args().get(2), source.args().first()),
        Layer::Convolution | Layer::Linear => (source.args().get(1), source.args().get(2)),
    };
    let constant = |what: &str, arg: Option<&Arg>| {
        let id = arg.and_then(Arg::as_node).ok_or_else(|| format!("there is no {what}"))?;
        match is_constant(id) {
            true => Ok(id),
            false => Err(not_constant(module, order, what, id)),
        }
    };
    let optional = |what: &str, arg: Option<&Arg>| match arg {
        None | Some(Arg::None) => Ok(None),
        Some(_) => constant(what, arg).map(Some),
    };
    let weight = constant("the weight", weight)?;
    let weight_rank = fused.rank_of(module, weight).or_else(|| (kind != Layer::Convolution).then_some(2));
    let Some(weight_rank) = weight_rank.filter(|it| *it > 0) else {
        return Err(format!("the sizes of the weight `{}` are not known: propagate shapes first", name(weight)));
    };
    // The channels are the second dimension of what the layer gives, and the first of its weight.
    let rank = rank_of(module, layer);
    let fits = match kind {
        Layer::Convolution => rank.is_none_or(|it| it == weight_rank),
        Layer::Linear => rank == Some(2) && weight_rank == 2,
        Layer::Addmm => true,
    };
    if !fits {
        let what = match (kind, rank) {
            (Layer::Linear, None) => "is not known to have two dimensions: propagate shapes first",
            (Layer::Linear, Some(_)) => "has more than two dimensions",
            (Layer::Convolution | Layer::Addmm, _) => "has not the dimensions of the weight",
        };
        return Err(format!("what `{}` gives {what}", name(layer)));
    }
    let pair = Pair {
        layer,
        kind,
        weight,
        weight_rank,
        bias: optional("the bias", bias)?,
        norm,
        result,
        scale: optional("the scale", Some(scale))?,
        shift: optional("the shift", Some(shift))?,
        mean: constant("the mean", Some(mean))?,
        variance: constant("the variance", Some(variance))?,
        eps: eps.clone(),
    };
    match order.between(graph, layer, norm) {
        Some(it) if order.is_writer(it) => {
            Err(format!("`{}` writes to what `{}` takes, between them", name(it), name(layer)))
        }
        Some(it) => Err(format!("`{}` switches how `{}` computes, between them", name(it), name(layer))),
        None => Ok(pair),
    }
}

/// Why a parameter is no constant.
fn not_constant(module: &GraphModule, order: &WriteOrder, what: &str, id: NodeId) -> String {
    let node = module.graph.node(id);
    let why = match order.writers_of(id).next() {
        Some(it) => format!("is written to by `{}`", module.graph.node(it).name()),
        None if node.op() == Opcode::Placeholder => "is an input and no constant of the module".to_owned(),
        None => "is not computed from constants alone".to_owned(),
    };
    format!("{what} `{}` {why}", node.name())
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
