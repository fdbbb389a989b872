//! Where PyTorch offers which operators in Python, for those that the registry has.

use std::collections::BTreeMap;
use tracefx_ops::{Op, registry};

/// The table, recorded from PyTorch by `tests/oracle/gen_surface.py`.
const TABLE: &str = include_str!("surface.txt");

/// A function or method: its overloads in the order in which they are tried.
pub(super) struct Packet {
    /// PyTorch's name.
    pub(super) name: String,
    /// The overloads that are there.
    pub(super) overloads: Vec<&'static Op>,
    /// Whether it can write to `out=`.
    pub(super) has_out: bool,
}

/// The packets that PyTorch offers in a place, such as `torch` or `method`, by name.
pub(super) fn packets(place: &str) -> Vec<Packet> {
    let mut res: BTreeMap<&str, Packet> = BTreeMap::new();
    for line in TABLE.lines() {
        let mut words = line.split(' ');
        let overload = words.next().unwrap_or_default();
        let places: Vec<&str> = words.collect();
        let Some(op) = registry().get(&format!("aten.{overload}")) else { continue };
        if !places.contains(&place) {
            continue;
        }
        let name = op.schema.name.as_str();
        let packet =
            res.entry(name).or_insert_with(|| Packet { name: name.to_string(), overloads: Vec::new(), has_out: false });
        packet.overloads.push(op);
        packet.has_out |= places.contains(&"out");
    }
    let sorted = |mut packet: Packet| {
        let order = registry().overloads(&format!("aten.{}", packet.name)).unwrap_or_default();
        packet.overloads.sort_by_key(|op| order.iter().position(|it| it.name == op.name));
        packet
    };
    res.into_values().map(sorted).collect()
}

/// The name of a packet without the prefix of its namespace.
pub(super) fn unprefixed<'a>(packet: &'a Packet, prefix: &str) -> &'a str {
    packet.name.strip_prefix(prefix).unwrap_or(&packet.name)
}
