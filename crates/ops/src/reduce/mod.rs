//! Results that are made of many elements each: reductions, scans, softmax, counts, differences of neighbours.

use crate::OpDef;

pub(crate) mod decompose;
pub(crate) mod diff_trapz;
pub(crate) mod gradient;
pub(crate) mod histogram;
pub(crate) mod numerical_gradient;
pub(crate) mod predicates;
pub(crate) mod reduction;
pub(crate) mod scan;
pub(crate) mod scan_gradient;
pub(crate) mod segment;
pub(crate) mod softmax;
pub(crate) mod softmax_backward;
pub(crate) mod statistics;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] = &[
    ("reduce/diff_trapz", diff_trapz::OPS),
    ("reduce/histogram", histogram::OPS),
    ("reduce/numerical_gradient", numerical_gradient::OPS),
    ("reduce/predicates", predicates::OPS),
    ("reduce/reduction", reduction::OPS),
    ("reduce/scan", scan::OPS),
    ("reduce/segment", segment::OPS),
    ("reduce/softmax", softmax::OPS),
    ("reduce/softmax_backward", softmax_backward::OPS),
    ("reduce/statistics", statistics::OPS),
];
