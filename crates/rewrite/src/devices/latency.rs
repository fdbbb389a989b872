//! How long nodes, parts and transfers between them take, and with them a whole graph.

use super::placement::place;
use super::{Device, Links, Partition, PartitionerConfig, SizedGraph};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tracefx_core::{Code, Diagnostic, Result};

/// How long a node takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeLatency {
    /// Because of memory.
    pub mem_latency_sec: f64,
    /// Because of what is computed.
    pub computer_latency_sec: f64,
}

/// How long a part takes: that of its longest path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ts_rs::TS)]
#[serde(rename_all = "camelCase")]
pub struct PartitionLatency {
    /// The sum along the path because of memory.
    pub mem_latency_sec: f64,
    /// The sum along the path because of what is computed.
    pub computer_latency_sec: f64,
    /// The sum along the path of the larger of both.
    pub overall_latency_sec: f64,
}

/// How long a graph takes that is in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphLatency {
    /// How long each part takes.
    pub partitions: Vec<PartitionLatency>,
    /// How long each part and each of its children need to pass values: `(parent, child, seconds)`.
    pub links: Vec<(usize, usize, f64)>,
    /// How long the longest path of parts takes.
    pub latency_sec: f64,
}

/// How long a part takes: `get_latency_of_one_partition`. Of paths that take the same the first in the order of the graph
/// counts. `latencies` are by place, of all calls of the part. O(n log n), where PyTorch walks all paths.
pub fn get_latency_of_one_partition(
    graph: &SizedGraph<'_>,
    partition: &Partition,
    latencies: &[NodeLatency],
) -> PartitionLatency {
    let calls: Vec<usize> = partition.calls(graph).collect();
    let at = |node: &usize| calls.binary_search(node).ok();
    let own = |it: usize| latencies[it].computer_latency_sec.max(latencies[it].mem_latency_sec);
    // The time up to the end of each call.
    let mut ends: Vec<f64> = Vec::with_capacity(calls.len());
    for &node in &calls {
        let before = graph.inputs(node).iter().filter_map(at).map(|it| ends[it]).fold(0.0, f64::max);
        ends.push(before + own(node));
    }
    let longest = ends.iter().copied().fold(0.0, f64::max);
    // Whether each call is on a path that takes the longest, and the call after it there.
    let mut next: Vec<Option<Option<usize>>> = vec![None; calls.len()];
    for here in (0..calls.len()).rev() {
        let users = || graph.users(calls[here]).iter().filter_map(at);
        let goes_on = users().find(|&it| next[it].is_some() && ends[here] + own(calls[it]) == ends[it]);
        if goes_on.is_some() || (ends[here] == longest && users().next().is_none()) {
            next[here] = Some(goes_on);
        }
    }
    let is_top = |it: &usize| graph.inputs(calls[*it]).iter().all(|input| at(input).is_none());
    let mut on_path = (0..calls.len()).find(|it| is_top(it) && next[*it].is_some() && longest > 0.0);
    let mut res = PartitionLatency::default();
    while let Some(here) = on_path {
        res.mem_latency_sec += latencies[calls[here]].mem_latency_sec;
        res.computer_latency_sec += latencies[calls[here]].computer_latency_sec;
        res.overall_latency_sec += own(calls[here]);
        on_path = next[here].flatten();
    }
    res
}

/// How long two parts need to pass values: `get_comm_latency_between`. Nothing where they are on the same devices. As in
/// PyTorch an input of the graph that both have counts.
pub fn get_comm_latency_between(
    graph: &SizedGraph<'_>,
    parent: &Partition,
    child: &Partition,
    transfer_rate_bytes_per_sec: f64,
) -> f64 {
    if is_together(&parent.logical_device_ids, &child.logical_device_ids) {
        return 0.0;
    }
    let inputs = child.nodes.iter().flat_map(|&it| graph.inputs(it));
    let mut passed: Vec<usize> = inputs.copied().filter(|it| parent.nodes.contains(it)).collect();
    passed.sort_unstable();
    passed.dedup();
    passed.iter().map(|&it| graph.output_size(it)).sum::<u64>() as f64 / transfer_rate_bytes_per_sec
}

/// How long a graph takes that is in parts: `get_latency_of_partitioned_graph`, with `get_partition_to_latency_mapping`.
///
/// # Errors
/// `InvalidOption` where the latency of a call is not known, or the rate is not positive; `PartitionCycle` where parts use
/// each other in a circle.
pub fn get_latency_of_partitioned_graph(
    graph: &SizedGraph<'_>,
    partitions: &[Partition],
    config: &PartitionerConfig,
) -> Result<GraphLatency> {
    let costs = Costs::new(graph, config)?;
    let partitions: Vec<&Partition> = partitions.iter().collect();
    let links = Links::of(graph, &partitions);
    let own: Vec<PartitionLatency> =
        partitions.iter().map(|it| get_latency_of_one_partition(graph, it, &costs.latencies)).collect();
    let ids: Vec<&[i64]> = partitions.iter().map(|it| &it.logical_device_ids[..]).collect();
    let comm = costs.comm_latencies(&partitions, &ids, &links);
    let overall: Vec<f64> = own.iter().map(|it| it.overall_latency_sec).collect();
    let latency_sec = longest(&links, &overall, &comm).ok_or_else(|| {
        Diagnostic::new(Code::PartitionCycle, "the partitions use each other in a circle")
            .help("move the nodes on the circle to one partition")
    })?;
    let pairs = links.children.iter().zip(&comm).enumerate().flat_map(|(parent, (children, comm))| {
        children.iter().zip(comm).map(move |(&child, &seconds)| (parent, child, seconds))
    });
    Ok(GraphLatency { partitions: own, links: pairs.collect(), latency_sec })
}

fn is_together(parent: &[i64], child: &[i64]) -> bool {
    !parent.is_empty() && parent == child
}

/// The time of the longest path of parts; nothing where they use each other in a circle.
fn longest(links: &Links, own: &[f64], comm: &[Vec<f64>]) -> Option<f64> {
    let mut starts = vec![0.0_f64; own.len()];
    let mut res = 0.0_f64;
    for &partition in links.order.as_ref()? {
        let end = starts[partition] + own[partition];
        res = res.max(end);
        for (&child, &seconds) in links.children[partition].iter().zip(&comm[partition]) {
            starts[child] = starts[child].max(end + seconds);
        }
    }
    Some(res)
}

/// What the modes that try changes ask: what it would cost.
pub(super) struct Costs<'a> {
    pub(super) graph: &'a SizedGraph<'a>,
    latencies: Vec<NodeLatency>,
    transfer_rate: f64,
    limit: u64,
    looked_at: u64,
}

impl<'a> Costs<'a> {
    /// # Errors
    /// `InvalidOption` where the latency of a call is not known, or the rate is not positive.
    pub(super) fn new(graph: &'a SizedGraph<'a>, config: &PartitionerConfig) -> Result<Self> {
        let transfer_rate = config.transfer_rate_bytes_per_sec;
        if !(transfer_rate > 0.0 && transfer_rate.is_finite()) {
            let what = format!("transferRateBytesPerSec is {transfer_rate}, and no positive number");
            return Err(Diagnostic::new(Code::InvalidOption, what)
                .help("say how many bytes go from device to device in a second"));
        }
        let latency = |place: usize| {
            let given = config.node_to_latency_mapping.get(place).copied().flatten();
            let is_time = |it: f64| it.is_finite() && it >= 0.0;
            match given {
                Some(it) if is_time(it.mem_latency_sec) && is_time(it.computer_latency_sec) => Ok(it),
                None if !graph.is_call(place) => Ok(NodeLatency::default()),
                Some(_) | None => {
                    let what = match given {
                        Some(_) => format!("the latencies of {} are not numbers of seconds", graph.name(place)),
                        None => format!("nodeToLatencyMapping has no latency for {}", graph.name(place)),
                    };
                    Err(Diagnostic::new(Code::InvalidOption, what).node(graph.name(place)))
                }
            }
        };
        let latencies = (0..graph.len()).map(latency).collect::<Result<_>>()?;
        Ok(Costs { graph, latencies, transfer_rate, limit: config.limit, looked_at: 0 })
    }

    /// What these parts cost on these devices; nothing where they use each other in a circle.
    ///
    /// # Errors
    /// `LimitExceeded` where too much was looked at.
    pub(super) fn cost(&mut self, partitions: &[&Partition], ids: &[&[i64]]) -> Result<Option<f64>> {
        self.look()?;
        let links = Links::of(self.graph, partitions);
        Ok(self.cost_with(partitions, ids, &links))
    }

    /// What these parts cost when they are placed anew, and where; nothing where they use each other in a circle or do not fit.
    ///
    /// # Errors
    /// `LimitExceeded` where too much was looked at.
    pub(super) fn try_out(&mut self, partitions: &[&Partition], devices: &[Device]) -> Result<Option<f64>> {
        self.look()?;
        let links = Links::of(self.graph, partitions);
        if links.order.is_none() {
            return Ok(None);
        }
        let Some(ids) = place(self.graph, partitions, devices) else { return Ok(None) };
        let ids: Vec<&[i64]> = ids.iter().map(Vec::as_slice).collect();
        Ok(self.cost_with(partitions, &ids, &links))
    }

    fn cost_with(&self, partitions: &[&Partition], ids: &[&[i64]], links: &Links) -> Option<f64> {
        let overall =
            |it: &&Partition| get_latency_of_one_partition(self.graph, it, &self.latencies).overall_latency_sec;
        let own: Vec<f64> = partitions.iter().map(overall).collect();
        longest(links, &own, &self.comm_latencies(partitions, ids, links))
    }

    fn look(&mut self) -> Result<()> {
        self.looked_at = self.looked_at.saturating_add(self.graph.work());
        if self.looked_at <= self.limit {
            return Ok(());
        }
        let what = format!("the search for partitions looked at more than {} nodes and arguments", self.limit);
        Err(Diagnostic::new(Code::LimitExceeded, what).help("raise `limit`, or partition by size"))
    }

    /// For each part and each of its children how long passing values takes: [`get_comm_latency_between`] of all in one walk.
    fn comm_latencies(&self, partitions: &[&Partition], ids: &[&[i64]], links: &Links) -> Vec<Vec<f64>> {
        let mut owner = vec![None; self.graph.len()];
        for (place, partition) in partitions.iter().enumerate() {
            partition.calls(self.graph).for_each(|it| owner[it] = Some(place));
        }
        let mut seconds: FxHashMap<(usize, usize), f64> = FxHashMap::default();
        let mut passed: Vec<usize> = Vec::new();
        for (child, partition) in partitions.iter().enumerate() {
            let parents = &links.parents[child];
            let mut bytes: FxHashMap<usize, u64> = parents.iter().map(|&it| (it, 0)).collect();
            passed.clear();
            passed.extend(partition.nodes.iter().flat_map(|&it| self.graph.inputs(it)));
            passed.sort_unstable();
            passed.dedup();
            for &value in &passed {
                let size = self.graph.output_size(value);
                if self.graph.is_call(value) {
                    if let Some(bytes) = owner[value].and_then(|it| bytes.get_mut(&it)) {
                        *bytes += size;
                    }
                } else {
                    let shared = parents.iter().filter(|&&it| partitions[it].nodes.contains(&value));
                    shared.for_each(|it| *bytes.entry(*it).or_default() += size);
                }
            }
            for (parent, bytes) in bytes {
                let is_free = is_together(ids[parent], ids[child]);
                seconds.insert((parent, child), if is_free { 0.0 } else { bytes as f64 / self.transfer_rate });
            }
        }
        let of = |(parent, children): (usize, &Vec<usize>)| {
            children.iter().map(|&child| seconds.get(&(parent, child)).copied().unwrap_or_default()).collect()
        };
        links.children.iter().enumerate().map(of).collect()
    }
}
