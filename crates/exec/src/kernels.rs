use rustc_hash::FxHashMap;
use tracefx_core::{Result, Tensor};
use tracefx_ops::{Args, Value};

/// What computes an operator.
#[derive(Clone, Copy, Debug)]
pub enum Kernel {
    /// Fills tensors that were allocated by the shape rule, one per new result, lists flattened. They are of their own
    /// storage, row-major, and hold zeros.
    Fill(fn(&Args<'_, Tensor>, &[Tensor]) -> Result<()>),
    /// Fills tensors as [`Kernel::Fill`] does, and writes every element: what they hold before is not zeros but anything.
    Overwrite(fn(&Args<'_, Tensor>, &[Tensor]) -> Result<()>),
    /// Makes the results itself, because their sizes or values follow from the data.
    Make(fn(&Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>>),
}

/// The kernels of a backend, by the name of the operator.
#[derive(Clone, Debug, Default)]
pub struct Kernels {
    table: FxHashMap<&'static str, Kernel>,
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
        Kernels { table }
    }

    /// The kernel of this operator.
    pub fn get(&self, op: &str) -> Option<Kernel> {
        self.table.get(op).copied()
    }

    /// These kernels without that of one operator, which is left to its decomposition.
    pub fn without(&self, op: &str) -> Self {
        let mut res = self.clone();
        res.table.remove(op);
        res
    }

    /// The names of the operators that have a kernel, sorted.
    pub fn names(&self) -> Vec<&'static str> {
        let mut res: Vec<_> = self.table.keys().copied().collect();
        res.sort_unstable();
        res
    }
}
