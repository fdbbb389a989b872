//! What a kernel is, and the table that finds it by the operator's name. The kernels are in the crate of their backend.

use crate::{Executor, Target};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;
use tracefx_core::{Result, Tensor};
use tracefx_ops::{Args, Value};
use tracefx_plan::Fused;

/// What computes an operator.
#[derive(Clone, Copy, Debug)]
pub enum Kernel {
    /// Fills tensors that were allocated by the shape rule, one per new result, lists flattened. They are of their own
    /// storage, row-major, and hold zeros.
    Fill(fn(&Args<'_, Tensor>, &[Tensor]) -> Result<()>),
    /// Fills tensors as [`Kernel::Fill`] does, and writes every element: what they hold before is not zeros but anything.
    Overwrite(fn(&Args<'_, Tensor>, &[Tensor]) -> Result<()>),
    /// Fills tensors as [`Kernel::Overwrite`] does, and can make something of arguments that are the same in every call: the panels
    /// of a weight.
    Prepare {
        /// Fills the tensors.
        fill: fn(&Args<'_, Tensor>, &[Tensor]) -> Result<()>,
        /// Makes what fills them in all calls with the same arguments at the positions that are told to be constant; nothing
        /// where that would not be faster.
        prepare: Prepare,
    },
    /// Fills its one result as [`Kernel::Overwrite`] does with the elements of its first argument, some of which it changes; or changes
    /// only those, in the place where they are.
    Update {
        /// Fills the result.
        fill: fn(&Args<'_, Tensor>, &[Tensor]) -> Result<()>,
        /// Changes the elements of a tensor that holds those of the first argument: it is that argument, or its copy. It may have any
        /// strides, as long as no two elements lie in one place, and no other argument looks at its memory. What is refused is
        /// refused before an element is changed.
        update: fn(&Args<'_, Tensor>, &Tensor) -> Result<()>,
    },
    /// Computes each element of its one result from the elements at the same place: fills a tensor as [`Kernel::Overwrite`] does, or gives its
    /// function.
    Pointwise(fn(&Args<'_, Tensor>, Target<'_>) -> Result<()>),
    /// Makes the results itself, because their sizes or values follow from the data.
    Make(fn(&Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>>),
}

impl Kernel {
    /// Fills the results.
    ///
    /// # Errors
    /// What the kernel refuses; `NotImplemented` of one that makes its results itself.
    pub(crate) fn fill(&self, args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
        match (self, results) {
            (Kernel::Fill(fill) | Kernel::Overwrite(fill), _) => fill(args, results),
            (Kernel::Prepare { fill, .. } | Kernel::Update { fill, .. }, _) => fill(args, results),
            (Kernel::Pointwise(compute), [result]) => compute(args, Target::Tensor(result)),
            (Kernel::Pointwise(_) | Kernel::Make(_), _) => {
                Err(args.unsupported(format!("the kernel of {} does not fill these results", args.op.name)))
            }
        }
    }
}

/// What makes a [`Prepared`] of a call, if that is faster.
pub type Prepare = fn(&Args<'_, Tensor>, &dyn Fn(usize) -> bool) -> Result<Option<Box<Prepared>>>;

/// What fills the results of a call, some of whose arguments are known to it.
pub type Prepared = dyn Fn(&Args<'_, Tensor>, &[Tensor]) -> Result<()> + Send + Sync;

/// What makes a [`PreparedFused`] of a fused step with the tensors of a run. It reads the parameters of the step
/// ([`Fused::parameters`]), and is asked again when one of them has changed. The operators of a loop are those of the executor.
pub type PrepareFused = fn(&Fused<Tensor>, Executor<'_>) -> Result<Box<PreparedFused>>;

/// What runs a fused step whose parameters are as they were.
pub type PreparedFused = dyn Fn(&Fused<Tensor>) -> Result<()> + Send + Sync;

/// What computes a custom operator: any function that gives the results, one per result of the schema. Arguments that the
/// schema marks as mutated it writes to. The executor checks what it gives.
pub type HostKernel = dyn Fn(&Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> + Send + Sync;

/// The kernels of a backend, by the name of the operator. A clone shares them with the original until one of both gets
/// another.
#[derive(Clone, Default)]
pub struct Kernels {
    table: Arc<FxHashMap<&'static str, Kernel>>,
    host: Arc<FxHashMap<String, Arc<HostKernel>>>,
    fused: Option<PrepareFused>,
}

impl Kernels {
    /// The kernels of these tables.
    ///
    /// # Panics
    /// When an operator stands twice.
    pub fn new(tables: &[&[(&'static str, Kernel)]]) -> Self {
        let mut table = FxHashMap::default();
        for &(op, kernel) in tables.iter().copied().flatten() {
            assert!(table.insert(op, kernel).is_none(), "{op} has two kernels");
        }
        Kernels { table: Arc::new(table), host: Arc::default(), fused: None }
    }

    /// These kernels with that of fused steps.
    pub fn with_fused(self, prepare: PrepareFused) -> Self {
        Kernels { fused: Some(prepare), ..self }
    }

    /// What runs fused steps. A backend without it runs plans without them.
    pub fn fused(&self) -> Option<PrepareFused> {
        self.fused
    }

    /// Gives a custom operator its kernel, in the place of one that it may have had.
    pub fn insert(
        &mut self,
        op: impl Into<String>,
        kernel: impl Fn(&Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> + Send + Sync + 'static,
    ) {
        Arc::make_mut(&mut self.host).insert(op.into(), Arc::new(kernel));
    }

    /// Takes the kernel of a custom operator away.
    pub fn remove(&mut self, op: &str) {
        Arc::make_mut(&mut self.host).remove(op);
    }

    /// The kernel of this custom operator.
    pub fn host(&self, op: &str) -> Option<&HostKernel> {
        self.host.get(op).map(|it| &**it)
    }

    /// The kernel of this operator.
    pub fn get(&self, op: &str) -> Option<Kernel> {
        self.table.get(op).copied()
    }

    /// These kernels without that of one operator, which is left to its decomposition.
    pub fn without(&self, op: &str) -> Self {
        let mut res = self.clone();
        Arc::make_mut(&mut res.table).remove(op);
        res
    }

    /// The names of the operators that have a kernel, sorted.
    pub fn names(&self) -> Vec<&'static str> {
        let mut res: Vec<_> = self.table.keys().copied().collect();
        res.sort_unstable();
        res
    }
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernels").field("table", &self.names()).field("host", &self.host.keys()).finish()
    }
}
