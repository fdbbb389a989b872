//! Parts that fill one device after the other.

use super::placement::place;
use super::{Device, Partition, SizedGraph, failed, number};
use tracefx_core::{Diagnostic, Result};

/// `size_based_partition`: fills one device after the other, in the order of the graph. Calls for which no device is left are
/// parts of their own, and go where memory is left.
pub(super) fn partition(graph: &SizedGraph<'_>, devices: &[Device]) -> Result<Vec<Partition>> {
    let mut filled: Vec<Partition> = Vec::new();
    let mut single: Vec<Partition> = Vec::new();
    let mut is_free = vec![true; devices.len()];
    let mut left = 0;
    for node in graph.calls() {
        let extra = filled.last().map(|it| graph.get_extra_size_of(node, |input| it.nodes.contains(&input)));
        let fits = extra.is_some_and(|it| it <= left);
        if !single.is_empty() || (!fits && filled.len() == devices.len()) {
            single.push(Partition::of(graph, node));
            continue;
        }
        match extra.filter(|_| fits) {
            Some(extra) => left -= extra,
            None => {
                let needed = graph.get_extra_size_of(node, |_| false);
                let holds = |it: &usize| is_free[*it] && devices[*it].available_mem_bytes >= needed;
                let device = (0..devices.len()).find(holds).ok_or_else(|| too_large(graph, node, needed))?;
                is_free[device] = false;
                left = devices[device].available_mem_bytes - needed;
                let logical_device_ids = vec![devices[device].logical_id];
                filled.push(Partition { logical_device_ids, ..Partition::default() });
            }
        }
        if let Some(last) = filled.last_mut() {
            last.add_node(graph, node);
        }
    }
    let mut res = filled;
    res.append(&mut single);
    number(&mut res);
    let placed = place(graph, &res.iter().collect::<Vec<_>>(), devices).ok_or_else(no_mapping)?;
    res.iter_mut().zip(placed).for_each(|(partition, ids)| partition.logical_device_ids = ids);
    Ok(res)
}

pub(super) fn no_mapping() -> Diagnostic {
    failed("Cannot Get a Valid Partition to Logical Device Mapping")
        .help("give the devices more memory: the inputs of parts need some too")
}

fn too_large(graph: &SizedGraph<'_>, node: usize, needed: u64) -> Diagnostic {
    let name = graph.name(node);
    failed(format!("{name} is too large to fit any device"))
        .node(name)
        .help(format!("it needs {needed} bytes with its inputs, on a device that no other part has"))
}
