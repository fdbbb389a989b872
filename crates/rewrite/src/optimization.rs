//! A module made faster for inference: `torch.fx.experimental.optimization`.

use crate::{
    ConstantFoldOptions, DeadCodeOptions, PassResult, constant_fold, eliminate_dead_code, fuse_batch_norm,
    linear_permute_fusion,
};
use tracefx_core::Result;
use tracefx_exec::Executor;
use tracefx_ir::GraphModule;

/// Fuses a module for inference: batch normalizations are taken into the layers before them, linear layers give their result
/// swapped where it is used so, and the new weights are computed. What is dead goes first, where anything is fused. Of what
/// stays, the result says why. `torch.fx.experimental.optimization.fuse`, on operators.
///
/// # Errors
/// As [`constant_fold`].
pub fn fuse(module: &mut GraphModule, executor: Executor<'_>) -> Result<PassResult> {
    let mut changed = module.clone();
    let registry = executor.registry();
    let dead = DeadCodeOptions { strict: true, ..DeadCodeOptions::default() };
    eliminate_dead_code(&mut changed, registry, &dead)?;
    let mut res = fuse_batch_norm(&mut changed, registry)?;
    let swapped = linear_permute_fusion(&mut changed, registry)?;
    res.modified |= swapped.modified;
    res.left_out.extend(swapped.left_out);
    if res.modified {
        constant_fold(&mut changed, executor, ConstantFoldOptions::default())?;
        *module = changed;
    }
    Ok(res)
}
