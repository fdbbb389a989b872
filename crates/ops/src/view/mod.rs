//! Views, and copies of elements to other places.

use crate::OpDef;

pub(crate) mod alias;
pub(crate) mod atleast;
pub(crate) mod combinations;
pub(crate) mod concat;
pub(crate) mod copy;
pub(crate) mod decompose;
pub(crate) mod diagonal;
pub(crate) mod flip_roll;
pub(crate) mod gradient;
pub(crate) mod pad;
pub(crate) mod repeat;
pub(crate) mod reshape;
pub(crate) mod shuffle;
pub(crate) mod slice;
pub(crate) mod split;
pub(crate) mod strides;
pub(crate) mod view_copy;
pub(crate) mod view_in_place;
pub(crate) mod view_scatter;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] = &[
    ("view/alias", alias::OPS),
    ("view/atleast", atleast::OPS),
    ("view/combinations", combinations::OPS),
    ("view/concat", concat::OPS),
    ("view/copy", copy::OPS),
    ("view/diagonal", diagonal::OPS),
    ("view/flip_roll", flip_roll::OPS),
    ("view/pad", pad::OPS),
    ("view/repeat", repeat::OPS),
    ("view/reshape", reshape::OPS),
    ("view/shuffle", shuffle::OPS),
    ("view/slice", slice::OPS),
    ("view/split", split::OPS),
    ("view/strides", strides::OPS),
    ("view/view_copy", view_copy::OPS),
    ("view/view_in_place", view_in_place::OPS),
    ("view/view_scatter", view_scatter::OPS),
];
