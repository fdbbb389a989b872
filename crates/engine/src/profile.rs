//! What a plan is made of, and what its steps cost: `tracefx explain` and `tracefx profile`.

use crate::inspect::section;
use crate::passes::declared;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tracefx_exec::{Peak, Placement};
use tracefx_plan::{Action, Buffer, BufferId, Fused, Operand, Plan, Step, TensorId};
use ts_rs::{Config, TS};

/// A plan as people read it.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct PlanReport {
    /// The steps, in order.
    pub steps: Vec<StepRow>,
    /// The bytes of parameters, buffers and constants that the steps read.
    pub constants: u64,
    /// Where what it gives comes from.
    pub results: StepSources,
    /// Milliseconds of a run, where it was timed.
    pub milliseconds: Option<f64>,
    /// The device beside the CPU, where there is one and it was timed.
    pub device: Option<DeviceReport>,
}

/// A device beside the CPU, as fast as it was measured to be.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct DeviceReport {
    /// Its name.
    pub name: String,
    /// Multiplications and additions of float32 in a second, at most; nothing of a device without a clock.
    pub flops: Option<f64>,
    /// Bytes in a second that a copy in its memory reads and writes; nothing of a device without a clock.
    pub bytes: Option<f64>,
    /// Whether it is a processor that does the work of the device: its times say nothing of devices.
    pub is_software: bool,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct StepRow {
    /// The node that it is from: of several, the last.
    pub node: String,
    /// The operator that it calls, or the name of a fused step.
    pub step: String,
    /// What it gives, such as `f32[1, 64, 56, 56]`.
    pub result: String,
    /// Where what it reads comes from.
    pub reads: StepSources,
    /// The bytes of all tensors that it reads and writes; those that the data decides are left out.
    pub bytes: u64,
    /// Multiplications and additions of a product or a convolution.
    pub flops: u64,
    /// Milliseconds, where it was timed: the shortest of the runs.
    pub milliseconds: Option<f64>,
    /// Who does it, where there is a device beside the CPU.
    pub placement: Option<StepPlacement>,
}

/// Where values come from, but for weights and constants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, TS)]
pub struct StepSources {
    /// The steps that wrote to their buffers, by their places in the plan.
    pub steps: Vec<u32>,
    /// The inputs whose memory they are in, by their places among all, lists flattened.
    pub inputs: Vec<u32>,
}

/// Who does a step, where there is a device beside the CPU.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct StepPlacement {
    /// Why the CPU does it; nothing where the device does.
    pub reason: Option<String>,
    /// Bytes that go up to the device before it.
    pub bytes_up: u64,
    /// Bytes that come down from the device before it.
    pub bytes_down: u64,
}

/// The TypeScript of a report, with its documentation.
pub fn plan_types() -> Vec<String> {
    let config = Config::new().with_large_int("number");
    vec![
        declared::<PlanReport>(&config),
        declared::<DeviceReport>(&config),
        declared::<StepRow>(&config),
        declared::<StepSources>(&config),
        declared::<StepPlacement>(&config),
    ]
}

impl PlanReport {
    /// What there is to say of a plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        let bytes = |id: TensorId| {
            let view = plan.tensor(id);
            view.known().map_or(0, |it| n_elements(&it.sizes).saturating_mul(view.dtype.size() as u64))
        };
        let mut read = BTreeMap::new();
        let mut writers = Writers::default();
        let row = |(at, step): (usize, &Step)| {
            let mut all = BTreeMap::new();
            step.action.for_each_tensor(&mut |id| {
                all.insert(id, bytes(id));
            });
            for (id, n) in &all {
                if let Buffer::Constant(_) = plan.buffer(plan.tensor(*id).buffer) {
                    read.insert(plan.tensor(*id).buffer, *n);
                }
            }
            if let Action::Update { args, .. } = &step.action {
                changed_alone(&mut all, args);
            }
            let mut tensors = Vec::new();
            step.action.for_each_read(&mut |id| tensors.push(id));
            let reads = writers.sources(plan, &tensors);
            let mut results = Vec::new();
            step.action.for_each_written(&mut |id| {
                let view = plan.tensor(id);
                writers.note(view.buffer, id, at);
                results.push(format!("{}{:?}", view.dtype.short_name(), view.sizes));
            });
            let name = match &step.action {
                Action::Call { op, .. } | Action::ControlFlow { op, .. } => op.to_string(),
                Action::Update { op, .. } => format!("{op} in place"),
                Action::Fused(Fused::Loop(it)) => match &it.code[..] {
                    [only] => format!("loop of {}", only.op),
                    code => format!("loop of {}", code.len()),
                },
                Action::Fused(fused) => fused.name().to_owned(),
                Action::Copy { .. } => "copy".to_owned(),
            };
            StepRow {
                node: step.node.to_string(),
                step: name,
                result: results.join(", "),
                reads,
                bytes: all.values().fold(0, |sum: u64, it| sum.saturating_add(*it)),
                flops: flops(plan, &step.action),
                milliseconds: None,
                placement: None,
            }
        };
        let steps = plan.steps.iter().enumerate().map(row).collect();
        let mut given = Vec::new();
        plan.output.for_each_tensor(&mut |id| given.push(id));
        PlanReport {
            steps,
            results: writers.sources(plan, &given),
            constants: read.values().fold(0, |sum: u64, it| sum.saturating_add(*it)),
            milliseconds: None,
            device: None,
        }
    }

    /// The same with the milliseconds of each step; those of steps that are not there are left out.
    #[must_use]
    pub fn with_times(mut self, milliseconds: &[f64]) -> Self {
        for (step, time) in self.steps.iter_mut().zip(milliseconds) {
            step.milliseconds = Some(*time);
        }
        self.milliseconds = Some(milliseconds.iter().sum());
        self
    }

    /// The same with who does each step; what is said of steps that are not there is left out.
    #[must_use]
    pub(crate) fn with_placements(mut self, placements: Vec<Placement>) -> Self {
        for (step, Placement { reason, bytes_up, bytes_down }) in self.steps.iter_mut().zip(placements) {
            step.placement = Some(StepPlacement { reason, bytes_up, bytes_down });
        }
        self
    }

    /// The same with the device that did steps, and how fast it is at most.
    #[must_use]
    pub(crate) fn with_device(mut self, name: String, peak: Option<Peak>) -> Self {
        let is_software = peak.is_some_and(|it| it.is_software);
        self.device =
            Some(DeviceReport { name, flops: peak.map(|it| it.flops), bytes: peak.map(|it| it.bytes), is_software });
        self
    }

    /// How many steps the device does, and what the others are for; nothing where there is none.
    fn placed(&self) -> Option<String> {
        let placements: Vec<&StepPlacement> = self.steps.iter().filter_map(|it| it.placement.as_ref()).collect();
        let n_cpu = placements.iter().filter(|it| it.reason.is_some()).count();
        let (up, down) = placements.iter().fold((0, 0), |sum, it| (sum.0 + it.bytes_up, sum.1 + it.bytes_down));
        (!placements.is_empty()).then(|| {
            let n_device = placements.len() - n_cpu;
            format!(
                "\n{n_device} steps on the device, {n_cpu} on the CPU; {up} bytes up, {down} bytes down between them"
            )
        })
    }

    /// The part of its fastest that the device reaches in a step: of its multiplications or of its memory, whichever is more. Nothing of
    /// a step of the CPU.
    fn of_peak(&self, step: &StepRow) -> Option<f64> {
        let DeviceReport { flops, bytes, .. } = self.device.as_ref()?;
        let seconds = step.milliseconds.filter(|it| *it > 0.0)? / 1e3;
        step.placement.as_ref().filter(|it| it.reason.is_none())?;
        let part = |amount: u64, peak: &Option<f64>| peak.map_or(0.0, |it| amount as f64 / seconds / it);
        Some(part(step.flops, flops).max(part(step.bytes, bytes))).filter(|_| flops.is_some() || bytes.is_some())
    }

    /// The steps as events of Chrome's trace format, which `chrome://tracing` and Perfetto open: a JSON object.
    pub fn chrome_trace(&self) -> String {
        let mut start = 0.0;
        let events: Vec<_> = (self.steps.iter())
            .map(|it| {
                let micros = it.milliseconds.unwrap_or_default() * 1e3;
                let begin = start;
                start += micros;
                serde_json::json!({
                    "name": it.step, "cat": "step", "ph": "X", "ts": begin, "dur": micros, "pid": 0, "tid": 0,
                    "args": { "node": it.node, "result": it.result, "bytes": it.bytes, "flops": it.flops },
                })
            })
            .collect();
        serde_json::json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string()
    }
}

/// The last step that wrote each tensor of a buffer: steps may write parts of one.
#[derive(Default)]
struct Writers(BTreeMap<BufferId, BTreeMap<TensorId, usize>>);

impl Writers {
    fn note(&mut self, buffer: BufferId, tensor: TensorId, step: usize) {
        self.0.entry(buffer).or_default().insert(tensor, step);
    }

    /// Where these tensors come from.
    fn sources(&self, plan: &Plan, tensors: &[TensorId]) -> StepSources {
        let (mut steps, mut inputs) = (BTreeSet::new(), BTreeSet::new());
        for &id in tensors {
            let buffer = plan.tensor(id).buffer;
            if let Buffer::Input(place) = plan.buffer(buffer) {
                inputs.insert(*place);
            }
            steps.extend(self.0.get(&buffer).into_iter().flat_map(|it| it.values()).map(|it| *it as u32));
        }
        StepSources { steps: steps.into_iter().collect(), inputs: inputs.into_iter().collect() }
    }
}

/// Of a tensor that is updated in its place no more counts than what the other arguments are large.
fn changed_alone(bytes: &mut BTreeMap<TensorId, u64>, args: &[Operand]) {
    let Some(Operand::Tensor(target)) = args.first() else { return };
    let others = bytes.iter().filter(|(id, _)| *id != target).fold(0, |sum: u64, it| sum.saturating_add(*it.1));
    bytes.entry(*target).and_modify(|it| *it = others.min(*it));
}

/// The number of elements; of an expanded tensor it may be beyond all bounds.
fn n_elements(sizes: &[usize]) -> u64 {
    sizes.iter().fold(1, |n: u64, it| n.saturating_mul(*it as u64))
}

/// The multiplications and additions of a product, by its sizes.
fn flops(plan: &Plan, action: &Action) -> u64 {
    let n = |id: TensorId| plan.tensor(id).known().map_or(0, |it| n_elements(&it.sizes));
    let twice = |a: u64, b: u64| a.saturating_mul(b).saturating_mul(2);
    let size = |id: TensorId, dim: usize| {
        plan.tensor(id).known().and_then(|it| it.sizes.get(dim).copied()).unwrap_or(0) as u64
    };
    match action {
        Action::Fused(Fused::Convolution(it)) => {
            let sizes = |id: TensorId| plan.tensor(id).known().and_then(|it| it.sizes[..].try_into().ok());
            let (mut images, mut res) = (sizes(it.input), 0u64);
            for layer in &it.layers {
                let weight: Option<[usize; 4]> = sizes(layer.weight);
                images = images.zip(weight).and_then(|(images, weight)| layer.result_sizes(images, weight));
                let n_points = images.map_or(0, |it| n_elements(&it));
                res = res.saturating_add(twice(n_points, n(layer.weight)) / size(layer.weight, 0).max(1));
            }
            res
        }
        Action::Fused(Fused::QuantizedConvolution(it)) => twice(n(it.result), n(it.weight)) / size(it.weight, 0).max(1),
        Action::Fused(Fused::Product(it)) => twice(n(it.result), size(it.lhs, 1)),
        Action::Fused(Fused::DequantizedProduct(it)) => twice(n(it.product.result), size(it.product.lhs, 1)),
        Action::Fused(Fused::Attention(it)) => {
            let rank = plan.tensor(it.key).sizes.len();
            let n_columns = size(it.key, rank.saturating_sub(2));
            twice(n(it.query), n_columns).saturating_add(twice(n(it.result), n_columns))
        }
        Action::Call { op, args, results } => {
            let tensor = |it: Option<&Operand>| if let Some(Operand::Tensor(id)) = it { Some(*id) } else { None };
            let (Some(result), Some(first), second) =
                (tensor(results.first()), tensor(args.first()), tensor(args.get(1)))
            else {
                return 0;
            };
            let depth = plan.tensor(first).known().and_then(|it| it.sizes.last().copied()).unwrap_or(0) as u64;
            match &**op {
                "aten.mm.default" | "aten.bmm.default" | "aten.matmul.default" | "aten.linear.default" => {
                    twice(n(result), depth)
                }
                "aten.addmm.default" => second.map_or(0, |it| twice(n(result), size(it, 1))),
                "aten.convolution.default" => second.map_or(0, |it| twice(n(result), n(it)) / size(it, 0).max(1)),
                _ => 0,
            }
        }
        Action::Fused(Fused::Gather(_) | Fused::Loop(_) | Fused::Norm(_) | Fused::Pool(_))
        | Action::Copy { .. }
        | Action::Update { .. }
        | Action::ControlFlow { .. } => 0,
    }
}

impl fmt::Display for DeviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.flops.zip(self.bytes) {
            Some((flops, bytes)) => {
                write!(f, ": at most {:.0} GFLOP/s and {:.0} GB/s, as measured now", flops / 1e9, bytes / 1e9)?;
            }
            None => {
                f.write_str(": it has no clock, so that the times of its steps are those until it was told of them")?
            }
        }
        f.write_str(if self.is_software {
            "\nit is a processor that does the work of a GPU: its times mean nothing for one"
        } else {
            ""
        })
    }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |amount: u64, milliseconds: f64| format!("{:.1}", amount as f64 / (milliseconds * 1e6).max(1e-9));
        match self.milliseconds {
            Some(all) => {
                let rows = self.steps.iter().enumerate().map(|(at, it)| {
                    let time = it.milliseconds.unwrap_or_default();
                    let flops = if it.flops == 0 { String::new() } else { rate(it.flops, time) };
                    let share = format!("{:.1}", 100.0 * time / all.max(1e-9));
                    let of_peak = self.of_peak(it).map_or_else(String::new, |it| format!("{:.0}", 100.0 * it));
                    let (time, bytes) = (format!("{time:.3}"), rate(it.bytes, time));
                    let (step, node, result) = (it.step.clone(), it.node.clone(), it.result.clone());
                    [at.to_string(), step, node, result, time, share, flops, bytes, of_peak]
                });
                let header = ["", "step", "node", "result", "ms", "%", "GFLOP/s", "GB/s", "% of peak"];
                let n_columns = if self.device.is_some() { 9 } else { 8 };
                let rows = rows.map(|it| it.into_iter().take(n_columns).collect::<Vec<_>>());
                section(f, "steps", &header[..n_columns], rows, &[0, 4, 5, 6, 7, 8])?;
                let mut sums: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
                for step in &self.steps {
                    let sum = sums.entry(&step.step).or_default();
                    *sum = (sum.0 + 1, sum.1 + step.milliseconds.unwrap_or_default());
                }
                let mut sums: Vec<_> = sums.into_iter().collect();
                sums.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
                let rows = sums.into_iter().map(|(step, (n, time))| {
                    let share = format!("{:.1}", 100.0 * time / all.max(1e-9));
                    [step.to_owned(), n.to_string(), format!("{time:.3}"), share]
                });
                section(f, "by kind", &["step", "steps", "ms", "%"], rows, &[1, 2, 3])?;
                write!(f, "{} steps in {all:.3} ms", self.steps.len())?;
                f.write_str(&self.placed().unwrap_or_default())?;
                match &self.device {
                    Some(device) => write!(f, "\n{device}"),
                    None => Ok(()),
                }
            }
            None => {
                let rows = self.steps.iter().enumerate().map(|(at, it)| {
                    let flops = if it.flops == 0 { String::new() } else { it.flops.to_string() };
                    let (step, node) = (it.step.clone(), it.node.clone());
                    [at.to_string(), step, node, it.result.clone(), it.bytes.to_string(), flops]
                });
                section(f, "steps", &["", "step", "node", "result", "bytes", "FLOPs"], rows, &[0, 4, 5])?;
                let on_cpu = self.steps.iter().enumerate().filter_map(|(at, it)| {
                    let StepPlacement { reason, bytes_up, bytes_down } = it.placement.as_ref()?;
                    let reason = reason.clone()?;
                    Some([at.to_string(), it.step.clone(), reason, bytes_up.to_string(), bytes_down.to_string()])
                });
                let on_cpu: Vec<_> = on_cpu.collect();
                if !on_cpu.is_empty() {
                    section(f, "on the CPU", &["", "step", "reason", "up", "down"], on_cpu.into_iter(), &[0, 3, 4])?;
                }
                let (bytes, flops) = self.steps.iter().fold((0, 0), |sum: (u64, u64), it| {
                    (sum.0.saturating_add(it.bytes), sum.1.saturating_add(it.flops))
                });
                write!(
                    f,
                    "{} steps: {bytes} bytes, {flops} FLOPs, {} bytes of parameters, buffers and constants",
                    self.steps.len(),
                    self.constants
                )?;
                f.write_str(&self.placed().unwrap_or_default())
            }
        }
    }
}

/// Times the steps of runs: what is told before each step, and what is kept of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepTimes {
    /// The shortest time of each step.
    shortest: Vec<f64>,
    /// The times of the run that goes on.
    current: Vec<f64>,
    /// The step that goes on, and when it began.
    running: Option<(usize, f64)>,
}

impl StepTimes {
    /// A step begins, or one of its loops goes on.
    pub(crate) fn begin(&mut self, step: usize, now: f64) {
        if self.running.is_some_and(|(running, _)| running == step) {
            return;
        }
        self.stop(now);
        self.running = Some((step, now));
    }

    fn stop(&mut self, now: f64) {
        if let Some((step, start)) = self.running.take() {
            self.current.resize(self.current.len().max(step + 1), 0.0);
            self.current[step] += now - start;
        }
    }

    /// The run has ended. What a device has timed of its steps counts in the place of how long they took to tell it, and not in that of the
    /// step of the CPU that waited for them.
    pub(crate) fn end(&mut self, now: f64, on_device: &[Option<f64>]) {
        self.stop(now);
        let mut current = std::mem::take(&mut self.current);
        let mut waited = 0.0;
        for (time, known) in current.iter_mut().zip(on_device) {
            match known {
                Some(known) => {
                    waited += known;
                    *time = *known;
                }
                None => *time = (*time - std::mem::take(&mut waited)).max(0.0),
            }
        }
        if self.shortest.is_empty() {
            self.shortest = current;
        } else {
            self.shortest.iter_mut().zip(current).for_each(|(shortest, it)| *shortest = shortest.min(it));
        }
    }

    /// The shortest time of each step.
    pub(crate) fn shortest(&self) -> &[f64] {
        &self.shortest
    }
}
