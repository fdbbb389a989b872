//! What kernels of fused steps have made of weights, for all plans of a program: a weight is packed once, whatever sizes come.

use crate::{Executor, PrepareFused, PreparedFused};
use rustc_hash::FxHashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tracefx_core::{Result, Storage, Tensor};
use tracefx_plan::Fused;

/// What was made of weights, as long as a plan with memory has it. A clone shares it.
#[derive(Clone, Default)]
pub struct Preparations(Arc<Mutex<FxHashMap<String, Weak<Preparation>>>>);

/// What runs a fused step while its parameters are as they were.
pub(super) struct Preparation {
    run: Box<PreparedFused>,
    /// The memory of the parameters, and the versions that they had.
    of: Vec<(Storage, u64)>,
}

impl Preparations {
    /// What runs this step: what there is, or something new.
    ///
    /// # Errors
    /// What `prepare` refuses.
    pub(super) fn prepared(
        &self,
        prepare: PrepareFused,
        step: &Fused<Tensor>,
        executor: Executor<'_>,
    ) -> Result<Arc<Preparation>> {
        // What is not made of parameters may be made of anything else: of which tensors share memory.
        if step.parameters().next().is_none() {
            return Ok(Arc::new(Preparation { run: prepare(step, executor)?, of: Vec::new() }));
        }
        let key = key_of(step);
        let known = self.lock().get(&key).and_then(Weak::upgrade).filter(|it| it.is_of(step));
        if let Some(known) = known {
            return Ok(known);
        }
        let of = step.parameters().map(|it| (it.storage().clone(), it.storage().version())).collect();
        let made = Arc::new(Preparation { run: prepare(step, executor)?, of });
        let mut all = self.lock();
        // What nobody has any more is looked for now and then.
        if all.len().is_power_of_two() {
            all.retain(|_, it| it.strong_count() > 0);
        }
        all.insert(key, Arc::downgrade(&made));
        Ok(made)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<String, Weak<Preparation>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Preparation {
    /// Whether it was made of the parameters of this step as they are.
    pub(super) fn is_of(&self, step: &Fused<Tensor>) -> bool {
        let is_same = |(it, (storage, version)): (&Tensor, &(Storage, u64))| {
            it.storage().is_same(storage) && it.storage().version() == *version
        };
        step.parameters().zip(&self.of).all(is_same)
    }

    /// Runs the step.
    pub(super) fn run(&self, step: &Fused<Tensor>) -> Result<()> {
        (self.run)(step)
    }
}

/// What a preparation depends on: where the parameters are, and the sizes of all else; but a weight of a product, or of a convolution of
/// integers, is packed alike for any number of rows or images.
fn key_of(step: &Fused<Tensor>) -> String {
    let parameters: Vec<&Tensor> = step.parameters().collect();
    let is_product = matches!(step, Fused::Product(_) | Fused::DequantizedProduct(_) | Fused::QuantizedConvolution(_));
    let described = step.try_map(&mut |it| {
        let is_parameter = parameters.iter().any(|parameter| std::ptr::eq(*parameter, it));
        Ok::<_, Infallible>(match is_parameter {
            true => {
                format!("{} {:?} {} {:?} {:?}", it.storage().id(), it.dtype(), it.offset(), it.sizes(), it.strides())
            }
            false if is_product => format!("{:?}", it.dtype()),
            false => format!("{:?} {:?} {:?}", it.dtype(), it.sizes(), it.strides()),
        })
    });
    match described {
        Ok(described) => format!("{described:?}"),
    }
}

impl fmt::Debug for Preparations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lock().keys()).finish()
    }
}

impl fmt::Debug for Preparation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preparation").field("of", &self.of).finish_non_exhaustive()
    }
}
