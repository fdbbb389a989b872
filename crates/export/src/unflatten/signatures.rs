//! Which calls of modules keep the signature that they had.

use crate::{Argument, CallSignature, ModuleCallEntry};
use std::collections::HashMap;
use tracefx_ir::{NodeId, Str};

/// The signatures to be preserved, and the nodes of the flat graph by the names that they are called by there.
pub(super) struct Signatures<'a> {
    by_call: HashMap<&'a str, &'a CallSignature>,
    names: HashMap<Str, NodeId>,
}

impl<'a> Signatures<'a> {
    pub(super) fn new(calls: &'a [ModuleCallEntry], names: HashMap<Str, NodeId>) -> Self {
        let calls = calls.iter().filter(|it| !it.fqn.is_empty());
        let by_call = calls.filter_map(|it| Some((&*it.fqn, it.signature.as_ref()?))).collect();
        Signatures { by_call, names }
    }

    /// The signature of a call: `fc@1`.
    pub(super) fn of_call(&self, name: &str) -> Option<&'a CallSignature> {
        self.by_call.get(name).copied()
    }

    pub(super) fn node(&self, arg: &Argument) -> Option<NodeId> {
        self.names.get(arg.name()).copied()
    }
}
