//! Parts that are joined as long as that makes the graph no slower.

use super::latency::Costs;
use super::placement::place;
use super::size_based::no_mapping;
use super::{Device, Links, Partition, number};
use tracefx_core::Result;

/// `cost_aware_partition`: every call by itself, then the two parts are joined that together cost least, as long as that is no
/// more than before. Of pairs that cost the same the last one is joined.
pub(super) fn partition(costs: &mut Costs<'_>, devices: &[Device]) -> Result<Vec<Partition>> {
    let graph = costs.graph;
    let mut partitions: Vec<Partition> = graph.calls().map(|it| Partition::of(graph, it)).collect();
    // As in PyTorch the first costs are those of parts on no device, and so are those of parts that do not all fit.
    let mut ids: Option<Vec<Vec<i64>>> = None;
    while let Some((first, second)) = best_pair(costs, &partitions, ids.as_deref(), devices)? {
        let joined = Partition::union(graph, &partitions[first], &partitions[second]);
        partitions.remove(second);
        partitions.remove(first);
        partitions.push(joined);
        ids = place(graph, &partitions.iter().collect::<Vec<_>>(), devices);
    }
    number(&mut partitions);
    let placed = place(graph, &partitions.iter().collect::<Vec<_>>(), devices).ok_or_else(no_mapping)?;
    partitions.iter_mut().zip(placed).for_each(|(partition, ids)| partition.logical_device_ids = ids);
    Ok(partitions)
}

/// The pair of parts that is best joined, if that costs no more than all as they are.
fn best_pair(
    costs: &mut Costs<'_>,
    partitions: &[Partition],
    ids: Option<&[Vec<i64>]>,
    devices: &[Device],
) -> Result<Option<(usize, usize)>> {
    let graph = costs.graph;
    let all: Vec<&Partition> = partitions.iter().collect();
    let ids: Vec<&[i64]> = (0..all.len()).map(|it| ids.map_or(&[][..], |ids| &ids[it])).collect();
    let mut least = costs.cost(&all, &ids)?.unwrap_or(f64::INFINITY);
    let links = Links::of(graph, &all);
    let Some(levels) = links.bfs_levels() else { return Ok(None) };
    let mut res = None;
    for first in 0..all.len() {
        for second in first + 1..all.len() {
            let is_linked = || links.parents[second].contains(&first) || links.children[second].contains(&first);
            if levels[first].abs_diff(levels[second]) > 1 && !is_linked() {
                continue;
            }
            let joined = Partition::union(graph, all[first], all[second]);
            let mut tried: Vec<&Partition> = all.clone();
            tried.remove(second);
            tried.remove(first);
            tried.push(&joined);
            if let Some(cost) = costs.try_out(&tried, devices)?
                && cost <= least
            {
                least = cost;
                res = Some((first, second));
            }
        }
    }
    Ok(res)
}
