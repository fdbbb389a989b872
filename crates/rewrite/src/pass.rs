//! What a pass is: a change of a module in place, with what it requires and ensures. Hosts call passes by name through `engine`.

use serde::Serialize;
use tracefx_core::Result;
use tracefx_ir::GraphModule;
use ts_rs::TS;

/// What a pass says of its run: `torch.fx.passes.infra.pass_base.PassResult`, without the module, which it changed in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct PassResult {
    /// Whether anything changed.
    pub modified: bool,
    /// What the pass looks for and left as it is, with the reason, from passes that say so.
    pub left_out: Vec<LeftOut>,
}

/// A node that a pass looks for and left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct LeftOut {
    /// Its name.
    pub node: String,
    /// Why it was left.
    pub reason: String,
}

impl PassResult {
    /// The result of a pass that left nothing out.
    pub fn new(modified: bool) -> Self {
        PassResult { modified, left_out: Vec::new() }
    }
}

/// A pass over a module: `torch.fx.passes.infra.pass_base.PassBase`.
pub trait Pass {
    /// The name, for errors and reports.
    fn name(&self) -> &str;

    /// Refuses a module on which the pass cannot run. Called before [`Pass::call`].
    ///
    /// # Errors
    /// What is wrong with the module.
    fn requires(&self, _: &GraphModule) -> Result<()> {
        Ok(())
    }

    /// Runs the pass.
    ///
    /// # Errors
    /// What the pass refuses; the module may have changed already.
    fn call(&self, module: &mut GraphModule) -> Result<PassResult>;

    /// Refuses a module that the pass should not have left behind. Called after [`Pass::call`].
    ///
    /// # Errors
    /// What is wrong with the module.
    fn ensures(&self, _: &GraphModule) -> Result<()> {
        Ok(())
    }

    /// Runs the pass between its checks: what calling a `PassBase` does.
    ///
    /// # Errors
    /// The first of [`Pass::requires`], [`Pass::call`] and [`Pass::ensures`].
    fn run(&self, module: &mut GraphModule) -> Result<PassResult> {
        self.requires(module)?;
        let result = self.call(module)?;
        self.ensures(module)?;
        Ok(result)
    }
}
