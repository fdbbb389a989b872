//! Parts that swap calls as long as that makes the graph faster (Kernighan and Lin, "An efficient heuristic procedure for
//! partitioning graphs", 1970).

use super::latency::Costs;
use super::placement::place;
use super::{Device, Partition, number, size_based};
use tracefx_core::Result;

/// `kl_based_partition`: the parts by size, then for each call the swap with one call of another part, or the move there, that
/// costs least, if that is less than before. For n calls that is O(n²) tries.
///
/// PyTorch compares the cost of the move where it takes the best swap, makes swaps again and splits the module as it was
/// before; here what is found is what is done, and a part without calls is none.
pub(super) fn partition(costs: &mut Costs<'_>, devices: &[Device]) -> Result<Vec<Partition>> {
    let graph = costs.graph;
    let mut partitions = size_based::partition(graph, devices)?;
    let mut part_of = vec![0; graph.len()];
    for (part, partition) in partitions.iter().enumerate() {
        partition.calls(graph).for_each(|it| part_of[it] = part);
    }
    let ids: Vec<&[i64]> = partitions.iter().map(|it| &it.logical_device_ids[..]).collect();
    let mut least = costs.cost(&partitions.iter().collect::<Vec<_>>(), &ids)?.unwrap_or(f64::INFINITY);
    let is_placed: Vec<Vec<i64>> = partitions.iter_mut().map(|it| std::mem::take(&mut it.logical_device_ids)).collect();
    let mut is_swapped = false;
    for node in graph.calls() {
        let here = part_of[node];
        let mut best: Option<Swap> = None;
        for there in (0..partitions.len()).filter(|&it| it != here) {
            let others: Vec<Option<usize>> = partitions[there].calls(graph).map(Some).chain([None]).collect();
            for other in others {
                let mut swap =
                    Swap { there, other, here_is: partitions[here].clone(), there_is: partitions[there].clone() };
                swap.here_is.remove_node(graph, node);
                swap.there_is.add_node(graph, node);
                if let Some(other) = other {
                    swap.here_is.add_node(graph, other);
                    swap.there_is.remove_node(graph, other);
                }
                let mut tried: Vec<&Partition> = partitions.iter().collect();
                tried[here] = &swap.here_is;
                tried[there] = &swap.there_is;
                if let Some(cost) = costs.try_out(&tried, devices)?
                    && cost < least
                {
                    least = cost;
                    best = Some(swap);
                }
            }
        }
        if let Some(swap) = best {
            part_of[node] = swap.there;
            if let Some(other) = swap.other {
                part_of[other] = here;
            }
            partitions[here] = swap.here_is;
            partitions[swap.there] = swap.there_is;
            is_swapped = true;
        }
    }
    if !is_swapped {
        // The parts by size are where their search put them.
        partitions.iter_mut().zip(is_placed).for_each(|(partition, ids)| partition.logical_device_ids = ids);
        return Ok(partitions);
    }
    // A part whose calls have all moved needs no device.
    partitions.retain(|it| it.calls(graph).next().is_some());
    number(&mut partitions);
    let placed = place(graph, &partitions.iter().collect::<Vec<_>>(), devices).ok_or_else(size_based::no_mapping)?;
    partitions.iter_mut().zip(placed).for_each(|(partition, ids)| partition.logical_device_ids = ids);
    Ok(partitions)
}

/// What becomes of two parts when a call goes from one to another, and one from there comes back.
struct Swap {
    there: usize,
    other: Option<usize>,
    here_is: Partition,
    there_is: Partition,
}
