//! Elements at places that a tensor of indices or a mask gives, read, written or accumulated.

use crate::OpDef;

pub(crate) mod advanced;
pub(crate) mod decompose;
pub(crate) mod embedding_backward;
pub(crate) mod embedding_bag;
pub(crate) mod embedding_gradient;
pub(crate) mod gather;
pub(crate) mod gradient;
pub(crate) mod nonzero;
pub(crate) mod scatter;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] = &[
    ("index/advanced", advanced::OPS),
    ("index/embedding_backward", embedding_backward::OPS),
    ("index/embedding_bag", embedding_bag::OPS),
    ("index/gather", gather::OPS),
    ("index/nonzero", nonzero::OPS),
    ("index/scatter", scatter::OPS),
];
