//! Which device runs which part.

use super::{Device, Partition, SizedGraph, failed};
use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_core::{Code, Diagnostic, Result};

/// Refuses devices that have one number, which PyTorch takes for one.
pub(super) fn check_devices(devices: &[Device]) -> Result<()> {
    let mut seen = FxHashSet::default();
    match devices.iter().find(|it| !seen.insert(it.logical_id)) {
        Some(twice) => {
            let what = format!("two devices have the logical id {}", twice.logical_id);
            Err(Diagnostic::new(Code::InvalidOption, what).help("give each device a number of its own"))
        }
        None => Ok(()),
    }
}

/// Devices for parts that have none yet, each time the one with the least memory left that holds the part:
/// `get_device_to_partitions_mapping`. Gives nothing where a part does not fit.
pub(super) fn place(graph: &SizedGraph<'_>, partitions: &[&Partition], devices: &[Device]) -> Option<Vec<Vec<i64>>> {
    let mut placed: Vec<Placed> = devices
        .iter()
        .map(|it| Placed { id: it.logical_id, left: i128::from(it.available_mem_bytes), has: None })
        .collect();
    for partition in partitions {
        for device in placed.iter_mut().filter(|it| partition.logical_device_ids.contains(&it.id)) {
            device.left -= i128::from(partition.used_mem_bytes);
            device.add(graph, partition);
        }
    }
    let mut res = Vec::with_capacity(partitions.len());
    for partition in partitions {
        if !partition.logical_device_ids.is_empty() {
            res.push(partition.logical_device_ids.clone());
            continue;
        }
        placed.sort_by_key(|it| it.left);
        let (device, extra) = placed.iter_mut().find_map(|it| {
            let extra = it.extra_size_of(graph, partition);
            (i128::from(extra) < it.left).then_some((it, extra))
        })?;
        device.left -= i128::from(extra);
        device.add(graph, partition);
        res.push(vec![device.id]);
    }
    Some(res)
}

/// A device, and what it has.
struct Placed {
    id: i64,
    left: i128,
    /// For each node whether the device has it.
    has: Option<Vec<bool>>,
}

impl Placed {
    fn add(&mut self, graph: &SizedGraph<'_>, partition: &Partition) {
        let has = self.has.get_or_insert_with(|| vec![false; graph.len()]);
        partition.nodes.iter().for_each(|&it| has[it] = true);
    }

    /// What a part needs beside what is there.
    fn extra_size_of(&self, graph: &SizedGraph<'_>, partition: &Partition) -> u64 {
        let Some(has) = &self.has else { return partition.used_mem_bytes };
        let extra = |&node: &usize| graph.get_extra_size_of(node, |it| has[it] || partition.nodes.contains(&it));
        partition.nodes.iter().map(extra).sum()
    }
}

/// Gives parts the devices that no part has, as often as they hold all parts: `saturate_host`.
pub(super) fn saturate_host(partitions: &mut [Partition], devices: &[Device]) -> Result<()> {
    let by_id: FxHashMap<i64, usize> = devices.iter().enumerate().map(|(at, it)| (it.logical_id, at)).collect();
    let mut used = vec![0_u64; devices.len()];
    let mut parts_on: Vec<Vec<usize>> = vec![Vec::new(); devices.len()];
    for (part, partition) in partitions.iter().enumerate() {
        for id in &partition.logical_device_ids {
            let &device = by_id.get(id).ok_or_else(|| {
                let what = format!("partition {} is for the device {id}, which is not there", partition.id);
                Diagnostic::new(Code::InvalidOption, what)
            })?;
            used[device] = used[device].saturating_add(partition.used_mem_bytes);
            parts_on[device].push(part);
        }
    }
    let homeless = partitions.iter().filter(|it| it.logical_device_ids.is_empty()).count();
    if homeless > 0 {
        return Err(failed(format!("Expect no_device_partitions has 0 device, but get {homeless}")));
    }
    let busy: Vec<usize> = (0..devices.len()).filter(|&it| !parts_on[it].is_empty()).collect();
    // What is left, the least memory first: of two that are alike the first one.
    let mut idle: Vec<usize> = (0..devices.len()).filter(|&it| parts_on[it].is_empty()).collect();
    idle.sort_by_key(|&it| devices[it].available_mem_bytes);
    let mut copies: Vec<(usize, usize)> = Vec::new();
    'rounds: while idle.len() >= busy.len() {
        let mut round = Vec::with_capacity(busy.len());
        for &device in &busy {
            let Some(at) = idle.iter().position(|&it| devices[it].available_mem_bytes >= used[device]) else {
                break 'rounds;
            };
            round.push((idle.remove(at), device));
        }
        copies.append(&mut round);
    }
    for (copy, device) in copies {
        parts_on[device].iter().for_each(|&it| partitions[it].logical_device_ids.push(devices[copy].logical_id));
    }
    Ok(())
}
