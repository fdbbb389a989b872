//! The devices that plans run on.

use tracefx_core::{Code, Diagnostic, Result};
use tracefx_engine::{Mode, Precision, Runner};

/// The runner with its plans on the device of this name.
///
/// # Errors
/// `InvalidOption` where there is no such device, or the runner is one whose results it would change; what the GPU refuses.
pub(crate) fn on_device(runner: Runner, name: &str) -> Result<Runner> {
    match name {
        "cpu" => Ok(runner),
        "gpu" if runner.mode() == Mode::Interpret || runner.precision() == Precision::Strict => {
            let what = "a GPU runs plans, in the precision fast: its sums have other orders";
            Err(Diagnostic::new(Code::InvalidOption, what).help("leave out --mode and --precision, or --device"))
        }
        "gpu" => on_gpu(runner),
        _ => Err(Diagnostic::new(Code::InvalidOption, format!("there is no device {name}")).help("it is cpu or gpu")),
    }
}

/// The GPU that plans run on: its name, and whether it is a processor that does the work of one.
///
/// # Errors
/// `DeviceMissing` where there is none.
#[cfg(feature = "gpu")]
pub(crate) fn gpu_of_machine() -> Result<(String, bool)> {
    let gpu = tracefx_wgpu::Gpu::open()?;
    Ok((gpu.name(), gpu.is_software()))
}

#[cfg(feature = "gpu")]
fn on_gpu(runner: Runner) -> Result<Runner> {
    use std::sync::{Arc, Mutex, PoisonError};
    use tracefx_wgpu::Gpu;
    /// A session opens it once, and again where it was lost.
    static GPU: Mutex<Option<Gpu>> = Mutex::new(None);
    let mut known = GPU.lock().unwrap_or_else(PoisonError::into_inner);
    let gpu = match known.as_ref().filter(|it| !it.is_lost()) {
        Some(gpu) => gpu.clone(),
        None => known.insert(Gpu::open()?.keeping_state()).clone(),
    };
    Ok(runner.with_accelerator(Arc::new(gpu)))
}

#[cfg(not(feature = "gpu"))]
pub(crate) fn gpu_of_machine() -> Result<(String, bool)> {
    Err(without_gpu())
}

#[cfg(not(feature = "gpu"))]
fn on_gpu(_: Runner) -> Result<Runner> {
    Err(without_gpu())
}

#[cfg(not(feature = "gpu"))]
fn without_gpu() -> Diagnostic {
    let what = "this command was built without support for GPUs";
    Diagnostic::new(Code::DeviceMissing, what).help("build it with the feature gpu")
}
