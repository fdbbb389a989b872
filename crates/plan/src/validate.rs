//! What every plan holds to, so that whoever runs one need not look: it is asked of a plan that comes from a file.

use crate::{Action, Buffer, Operand, Plan, Step, TensorId};
use tracefx_core::{Code, Diagnostic, Result};

impl Plan {
    /// Checks the plan.
    ///
    /// # Errors
    /// `GraphInvalid` where a tensor or a buffer is named that is not there; where a step reads memory of the plan that no
    /// step has written; where a call gives a tensor that is not row-major, does not begin its buffer, or is memory of the
    /// program; where a copy converts or stays in its buffer; where what it gives is memory of its own. `ViewOutOfBounds` where a tensor leaves its constant.
    pub fn validate(&self) -> Result<()> {
        let mut written = vec![false; self.buffers.len()];
        for (at, view) in self.tensors.iter().enumerate() {
            let buffer = self.buffers.get(view.buffer.0 as usize);
            let Some(buffer) = buffer else {
                return Err(invalid(format!("%{at} looks at the buffer {}, which is not there", view.buffer.0)));
            };
            if view.sizes.len() != view.strides.len() {
                return Err(invalid(format!("%{at} has other sizes than strides")));
            }
            if !view.is_known() {
                continue;
            }
            let span = view.known().and_then(|it| it.span(view.dtype));
            let span = span.ok_or_else(|| invalid(format!("%{at} has no number of bytes")))?;
            if let Buffer::Constant(storage) = buffer
                && span > storage.len()
            {
                let what = format!("%{at} leaves its constant of {} bytes", storage.len());
                return Err(Diagnostic::new(Code::ViewOutOfBounds, what));
            }
        }
        for (written, buffer) in written.iter_mut().zip(&self.buffers) {
            *written = matches!(buffer, Buffer::Input(_) | Buffer::Constant(_));
        }
        self.inputs.iter().try_for_each(|it| self.exists(it))?;
        for step in &self.steps {
            self.check_step(step, &mut written).map_err(|problem| problem.node(&*step.node))?;
        }
        self.exists(&self.output)?;
        self.is_written(&self.output, &written)?;
        let is_given = |id: TensorId| !matches!(self.buffer(self.tensor(id).buffer), Buffer::Scratch);
        self.all(&self.output, &is_given, "is memory of the plan, and cannot be given away")
    }

    fn check_step(&self, step: &Step, written: &mut [bool]) -> Result<()> {
        match &step.action {
            Action::Call { args, results, .. } => {
                args.iter().chain(results).try_for_each(|it| self.exists(it))?;
                args.iter().try_for_each(|it| self.is_written(it, written))?;
                let mut wrong = None;
                results.iter().for_each(|it| {
                    it.for_each_tensor(&mut |id| {
                        let view = self.tensor(id);
                        let is_own =
                            matches!(self.buffer(view.buffer), Buffer::Scratch | Buffer::Result | Buffer::Made);
                        let begins = view.offset.as_int() == Some(0);
                        if !is_own || !begins || view.known().is_some_and(|it| !it.is_row_major()) {
                            wrong = Some(id);
                        }
                        written[view.buffer.0 as usize] = true;
                    });
                });
                wrong.map_or(Ok(()), |id| Err(invalid(format!("a call gives %{}, which is no new tensor", id.0))))
            }
            Action::Copy { from, to } => {
                [from, to].into_iter().try_for_each(|it| self.exists(&Operand::Tensor(*it)))?;
                self.is_written(&Operand::Tensor(*from), written)?;
                let (source, target) = (self.tensor(*from), self.tensor(*to));
                if source.dtype != target.dtype || source.buffer == target.buffer {
                    return Err(invalid(format!("%{} cannot be copied to %{}", from.0, to.0)));
                }
                written[target.buffer.0 as usize] = true;
                Ok(())
            }
            Action::ControlFlow { operands, plans, results, .. } => {
                operands.iter().chain([results]).try_for_each(|it| self.exists(it))?;
                operands.iter().try_for_each(|it| self.is_written(it, written))?;
                plans.iter().try_for_each(Plan::validate)?;
                if let Some(stray) = operands.iter().find(|it| matches!(it, Operand::Plan(at) if *at >= plans.len())) {
                    return Err(invalid(format!("{stray:?} is not there")));
                }
                results.for_each_tensor(&mut |id| written[self.tensor(id).buffer.0 as usize] = true);
                Ok(())
            }
        }
    }

    fn exists(&self, operand: &Operand) -> Result<()> {
        self.all(operand, &|id| (id.0 as usize) < self.tensors.len(), "is not there")
    }

    fn is_written(&self, operand: &Operand, written: &[bool]) -> Result<()> {
        self.all(operand, &|id| written[self.tensor(id).buffer.0 as usize], "is read before it is written")
    }

    fn all(&self, operand: &Operand, holds: &dyn Fn(TensorId) -> bool, else_it: &str) -> Result<()> {
        let mut wrong = None;
        operand.for_each_tensor(&mut |id| wrong = wrong.or(Some(id).filter(|&it| !holds(it))));
        wrong.map_or(Ok(()), |id| Err(invalid(format!("the tensor %{} {else_it}", id.0))))
    }
}

fn invalid(what: String) -> Diagnostic {
    Diagnostic::new(Code::GraphInvalid, what)
}
