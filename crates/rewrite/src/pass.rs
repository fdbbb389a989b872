use serde::Serialize;
use tracefx_core::Result;
use tracefx_ir::GraphModule;
use ts_rs::TS;

/// What a pass says of its run: `torch.fx.passes.infra.pass_base.PassResult`, without the module, which it changed in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, TS)]
pub struct PassResult {
    /// Whether anything changed.
    pub modified: bool,
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
