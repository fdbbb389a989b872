//! What gradients have to know of a graph that it does not say itself: where none flows.

use super::functional::Functional;
use super::recorder::Recorder;
use std::collections::{HashMap, HashSet};
use tracefx_ir::{NodeId, Str};

/// What was written while no gradient flows, by the names of the nodes.
#[derive(Default)]
pub(super) struct NoGrad {
    /// The nodes that were written under `torch.no_grad()`.
    pub(super) frozen: HashSet<Str>,
    /// The nodes that others take the place of where no gradient flows.
    pub(super) hidden_writes: Vec<Str>,
    /// The same of its sub-graphs.
    pub(super) graphs: HashMap<Str, NoGrad>,
}

impl NoGrad {
    /// The nodes of the graph that was written.
    pub(super) fn of(functional: &mut Functional<'_>, graphs: HashMap<Str, NoGrad>) -> NoGrad {
        let frozen = functional.recorder.take_frozen();
        let hidden_writes = std::mem::take(&mut functional.hidden_writes);
        let name = |recorder: &Recorder, it: &NodeId| recorder.name(*it);
        let recorder = &functional.recorder;
        NoGrad {
            frozen: frozen.iter().map(|it| name(recorder, it)).collect(),
            hidden_writes: hidden_writes.iter().map(|it| name(recorder, it)).collect(),
            graphs,
        }
    }
}
