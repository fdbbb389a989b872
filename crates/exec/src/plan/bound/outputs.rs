//! Results that a run writes to tensors that there are.

use super::BoundPlan;
use std::mem::take;
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_plan::{Buffer, TensorId};

impl BoundPlan {
    /// Puts results where these tensors are, if they can be there.
    pub(super) fn place_outputs(&mut self, outputs: Option<&[Tensor]>) -> Result<()> {
        let Some(outputs) = outputs else { return Ok(()) };
        let mut ids = Vec::new();
        self.plan.output.for_each_tensor(&mut |it| ids.push(it));
        check_output_count(ids.len(), outputs)?;
        let known = ids.iter().map(|it| self.plan.tensor(*it)).zip(outputs);
        let mut places = Vec::new();
        for (at, (view, output)) in known.enumerate() {
            let Some(extent) = view.known() else { continue };
            check_output(at, (view.dtype, &extent.sizes), output)?;
            let buffer = view.buffer.0 as usize;
            // What a step reads before it is written is zero, and zeros are not written.
            let is_own = matches!(self.plan.buffers[buffer], Buffer::Result) && self.is_overwritten[buffer];
            let is_whole = extent.is_row_major() && extent.span(view.dtype) == self.sizes[buffer];
            let lies_so = extent.offset == 0 && output.offset() == 0 && extent.strides[..] == *output.strides();
            if is_own && is_whole && lies_so && output.numel() > 0 {
                places.push((buffer, output.storage()));
            }
        }
        // Lazy clones keep what they have.
        places.iter().try_for_each(|(_, storage)| storage.write().map(drop))?;
        for (buffer, storage) in places {
            if !self.placed.iter().any(|(it, _)| *it == buffer) {
                let own = self.storages[buffer].replace(storage.clone());
                self.placed.push((buffer, own));
                self.forget_tensors(buffer);
            }
        }
        Ok(())
    }

    /// Puts results where they are without tensors for them.
    pub(super) fn take_outputs_back(&mut self) {
        for (buffer, own) in take(&mut self.placed) {
            self.storages[buffer] = own;
            self.forget_tensors(buffer);
        }
    }

    fn forget_tensors(&mut self, buffer: usize) {
        let views = self.tensors.iter_mut().zip(&self.plan.tensors);
        views.filter(|(_, view)| view.buffer.0 as usize == buffer).for_each(|(tensor, _)| *tensor = None);
    }

    /// Whether a step reads or writes a result that this run writes to a tensor that there is.
    pub(super) fn touches_placed(&self, at: usize) -> bool {
        let mut touches = false;
        if !self.placed.is_empty() {
            let buffer = |it: TensorId| self.plan.tensor(it).buffer.0 as usize;
            self.plan.steps[at].action.for_each_tensor(&mut |it| touches |= self.is_placed(buffer(it)));
        }
        touches
    }

    pub(super) fn is_placed(&self, buffer: usize) -> bool {
        self.placed.iter().any(|(it, _)| *it == buffer)
    }
}

/// Checks that there is a tensor for each that a program gives.
///
/// # Errors
/// `InvalidArgument` where there is not.
pub fn check_output_count(n_tensors: usize, outputs: &[Tensor]) -> Result<()> {
    if outputs.len() == n_tensors {
        return Ok(());
    }
    let what = format!("the program gives {n_tensors} tensors, and there are {} outputs", outputs.len());
    Err(Diagnostic::new(Code::InvalidArgument, what).help("give a tensor for each that the program gives"))
}

/// Checks a tensor that is to become what a program gives, the tensor of this number.
///
/// # Errors
/// `InvalidArgument` where it is of another dtype or of other sizes.
pub fn check_output(at: usize, (dtype, sizes): (DType, &[usize]), output: &Tensor) -> Result<()> {
    if output.dtype() == dtype && output.sizes() == sizes {
        return Ok(());
    }
    let (wanted, given) = (dtype.name(), output.dtype().name());
    let what = format!("the output {at} is {wanted}{sizes:?}, and is to be written to {given}{:?}", output.sizes());
    Err(Diagnostic::new(Code::InvalidArgument, what).help("give a tensor of the same dtype and sizes as the output"))
}
