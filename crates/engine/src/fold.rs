//! Constants computed once: the passes of `rewrite` that need numbers.

use crate::Library;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::Interpreter;
use tracefx_ir::{Attribute, GraphModule, Node, NodeId, TensorKind};
use tracefx_ops::Value;
use tracefx_rewrite::{
    ConstantRules, Constants, DeadCodeOptions, PassResult, eliminate_dead_code, fuse_batch_norm, linear_permute_fusion,
    take_constants,
};

/// Tells of a node whether it may be folded: inductor's `constraint_fn`.
pub type FoldConstraint<'a> = &'a dyn Fn(NodeId, &Node) -> bool;

/// What [`constant_fold`] folds.
#[derive(Clone, Copy, Default)]
pub struct ConstantFoldOptions<'a> {
    /// Which nodes may be folded; all where nothing is said.
    pub constraint: Option<FoldConstraint<'a>>,
    /// The most bytes of one tensor that is made.
    pub max_bytes: Option<u64>,
}

/// Computes what depends on the tensors of a module alone, and makes the graph read the results from new attributes:
/// inductor's `constant_fold`. What is random, writes, or is written to stays, and so do the old attributes that something
/// else reads. The module is as it was where this fails.
///
/// # Errors
/// What a node refuses that is computed, with its name.
///
/// # Example
/// ```
/// use tracefx_core::Tensor;
/// use tracefx_engine::{ConstantFoldOptions, Library, constant_fold};
/// use tracefx_ir::{Attribute, Graph, GraphModule, TensorKind};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let weight = graph.get_attr("weight");
/// let exp = graph.call_function("torch.ops.aten.exp.default", vec![weight.into()], vec![]);
/// let add = graph.call_function("torch.ops.aten.add.Tensor", vec![x.into(), exp.into()], vec![]);
/// graph.output(add.into());
/// let mut module = GraphModule::new(graph);
/// let tensor = Tensor::from_slice(&[0.0f32], &[1])?;
/// module.set_attribute("weight", Attribute::Tensor { tensor, kind: TensorKind::Parameter });
///
/// assert!(constant_fold(&mut module, &Library::default(), ConstantFoldOptions::default())?.modified);
/// let Attribute::Tensor { tensor, .. } = module.attribute("_frozen_param0")? else { panic!("a tensor") };
/// assert_eq!(tensor.to_vec::<f32>()?, [1.0]);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
pub fn constant_fold(
    module: &mut GraphModule,
    library: &Library,
    options: ConstantFoldOptions<'_>,
) -> Result<PassResult> {
    let mut changed = module.clone();
    let Some(constants) = take(&mut changed, library, options)? else { return Ok(PassResult::new(false)) };
    compute(&mut changed, library, &constants)?;
    *module = changed;
    Ok(PassResult::new(true))
}

/// Fuses a module for inference: batch normalizations are taken into the layers before them, linear layers give their result
/// swapped where it is used so, and the new weights are computed. What is dead goes first, where anything is fused. Of what
/// stays, the result says why. `torch.fx.experimental.optimization.fuse`, on operators.
///
/// # Errors
/// As [`constant_fold`].
pub fn fuse(module: &mut GraphModule, library: &Library) -> Result<PassResult> {
    let mut changed = module.clone();
    let registry = library.registry();
    let dead = DeadCodeOptions { strict: true, ..DeadCodeOptions::default() };
    eliminate_dead_code(&mut changed, registry, &dead)?;
    let mut res = fuse_batch_norm(&mut changed, registry)?;
    let swapped = linear_permute_fusion(&mut changed, registry)?;
    res.modified |= swapped.modified;
    res.left_out.extend(swapped.left_out);
    if res.modified {
        constant_fold(&mut changed, library, ConstantFoldOptions::default())?;
        *module = changed;
    }
    Ok(res)
}

/// Takes the constants out of a module, and leaves their values to be put there.
pub(crate) fn take(
    module: &mut GraphModule,
    library: &Library,
    options: ConstantFoldOptions<'_>,
) -> Result<Option<Constants>> {
    let rules = ConstantRules {
        registry: library.registry(),
        may_fold: options.constraint.unwrap_or(&|_, _| true),
        max_bytes: options.max_bytes,
    };
    take_constants(module, &rules)
}

/// Computes constants, and keeps them in the module.
pub(crate) fn compute(module: &mut GraphModule, library: &Library, constants: &Constants) -> Result<()> {
    let Value::List(results) = Interpreter::new(&constants.module, library.executor()).run(&[])? else {
        return Err(Diagnostic::new(Code::PassFailed, "the constant part gave no tuple"));
    };
    for (name, result) in constants.names.iter().zip(results) {
        let Value::Tensor(tensor) = result else {
            return Err(Diagnostic::new(Code::PassFailed, "a constant is no tensor").node(&**name));
        };
        module.set_attribute(name, Attribute::Tensor { tensor, kind: TensorKind::Buffer });
    }
    Ok(())
}
