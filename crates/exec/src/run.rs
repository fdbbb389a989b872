//! One run of a program, whatever graphs are in its graphs: what it may take, and who watches it.

use crate::Executor;
use std::cell::{Cell, RefCell};
use tracefx_core::{Code, Diagnostic, Result};

/// What is told of a run: how many nodes of the outermost graph were run, and how many there are. It is asked before each of
/// them, and before each step of a loop. An error stops the run.
pub type Watch<'a> = dyn FnMut(usize, usize) -> Result<()> + 'a;

/// How many steps the loops of one run take together, unless the caller says otherwise.
pub const LOOP_STEPS: u64 = 1 << 20;

/// A run that goes on. Loops within loops take their steps from the same number, which would else be multiplied.
pub(crate) struct Run<'a> {
    watch: RefCell<&'a mut Watch<'a>>,
    /// How many nodes were run, of how many.
    at: Cell<(usize, usize)>,
    steps: Cell<u64>,
    loop_steps: u64,
}

impl<'a> Run<'a> {
    pub(crate) fn new(loop_steps: u64, watch: &'a mut Watch<'a>) -> Self {
        Run { watch: RefCell::new(watch), at: Cell::new((0, 0)), steps: Cell::new(0), loop_steps }
    }

    /// Before a node of the outermost graph.
    pub(crate) fn enter(&self, done: usize, all: usize) -> Result<()> {
        self.at.set((done, all));
        self.tell()
    }

    fn tell(&self) -> Result<()> {
        let (done, all) = self.at.get();
        (self.watch.borrow_mut())(done, all)
    }
}

/// What control flow asks before each step of a loop.
pub(crate) trait Steps {
    fn step(&self) -> Result<()>;
}

impl Steps for Run<'_> {
    fn step(&self) -> Result<()> {
        let steps = self.steps.get();
        if steps >= self.loop_steps {
            let limit = self.loop_steps;
            let what = format!("the loops of the run took {limit} steps, the limit `loop_steps`, and did not end");
            let help = "if you trust the program, run it with a larger limit `loop_steps`";
            return Err(Diagnostic::new(Code::LimitExceeded, what).help(help));
        }
        self.steps.set(steps + 1);
        self.tell()
    }
}

/// An operator that is called by itself is of no run, and has no loops.
impl Steps for () {
    fn step(&self) -> Result<()> {
        Ok(())
    }
}

/// An executor within a run.
#[derive(Clone, Copy)]
pub(crate) struct Running<'a> {
    pub(crate) executor: Executor<'a>,
    pub(crate) steps: &'a dyn Steps,
}
