//! The clock of a device: what the steps of a run take there, and how fast the device is at most.

use crate::gpu::Gpu;
use tracefx_core::Result;
use tracefx_exec::Peak;

/// Steps of a set: it has two times for each, and a device grants sets of 4,096.
const STEPS: usize = 2048;

/// Times the steps of a run.
pub(crate) struct Clock {
    gpu: Gpu,
    sets: Vec<wgpu::QuerySet>,
    n_steps: usize,
    resolved: wgpu::Buffer,
    staging: wgpu::Buffer,
}

impl Clock {
    /// A clock of a device that has one, for so many steps.
    pub(crate) fn new(gpu: &Gpu, n_steps: usize) -> Self {
        let device = &gpu.shared.device;
        let n_steps = n_steps.max(1);
        let set = |first: usize| {
            let count = 2 * STEPS.min(n_steps - first) as u32;
            device.create_query_set(&wgpu::QuerySetDescriptor { label: None, ty: wgpu::QueryType::Timestamp, count })
        };
        let sets = (0..n_steps).step_by(STEPS).map(set).collect();
        let buffer = |usage| {
            let size = 16 * n_steps as u64;
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let resolved = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        Clock { gpu: gpu.clone(), sets, n_steps, resolved, staging }
    }

    /// Where the times of a step are written.
    pub(crate) fn around(&self, step: usize) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let at = 2 * (step % STEPS) as u32;
        self.sets.get(step / STEPS).map(|query_set| wgpu::ComputePassTimestampWrites {
            query_set,
            beginning_of_pass_write_index: Some(at),
            end_of_pass_write_index: Some(at + 1),
        })
    }

    /// Milliseconds of each step, as they were written last.
    pub(crate) fn times(&self) -> Result<Vec<Option<f64>>> {
        let shared = &self.gpu.shared;
        let mut encoder = shared.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for (first, set) in (0..self.n_steps).step_by(STEPS).zip(&self.sets) {
            let count = 2 * STEPS.min(self.n_steps - first) as u32;
            encoder.resolve_query_set(set, 0..count, &self.resolved, 16 * first as u64);
        }
        let n_bytes = 16 * self.n_steps as u64;
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.staging, 0, n_bytes);
        shared.queue.submit([encoder.finish()]);
        let period = f64::from(shared.queue.get_timestamp_period());
        shared.read(&self.staging, n_bytes, |bytes| {
            let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(bytes);
            let time = |it: &[u64]| it[1].checked_sub(it[0]).map(|ticks| ticks as f64 * period / 1e6);
            Ok(ticks.chunks_exact(2).map(time).collect())
        })
    }
}

/// Invocations of a workgroup that is measured.
const WORKGROUP: u32 = 256;

/// Sixteen chains of multiplications and additions, which do not wait for each other.
const FLOPS: &str = "@group(0) @binding(0) var<storage, read_write> result: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = vec4<f32>(f32(id.x) * 1e-9f);
    var a = x; var b = x + 1f; var c = x + 2f; var d = x + 3f;
    for (var t = 0u; t < 1024u; t++) {
        a = fma(a, x, b); b = fma(b, x, c); c = fma(c, x, d); d = fma(d, x, a);
    }
    result[id.x] = a + b + c + d;
}";

const COPY: &str = "@group(0) @binding(0) var<storage, read_write> to: array<vec4<f32>>;
@group(0) @binding(1) var<storage> from_: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    to[id.x] = from_[id.x];
}";

/// Measures the device: the shortest of a few runs, which grow until they take long enough to be timed.
pub(crate) fn peak(gpu: &Gpu) -> Result<Option<Peak>> {
    if !gpu.shared.has_clock {
        return Ok(None);
    }
    let n_flops = f64::from(1024 * 32);
    let (flops, bytes) = (fastest(gpu, FLOPS, 1, n_flops)?, fastest(gpu, COPY, 2, 32.0)?);
    Ok(flops.zip(bytes).map(|(flops, bytes)| Peak { flops, bytes, is_software: gpu.is_software() }))
}

/// Workgroups that are measured at most: of a copy, 128 MiB, which every device has in a buffer.
const MOST_GROUPS: u32 = 32768;

/// Runs of a module take at least so many milliseconds, so that what a run costs by itself does not count.
const LONG_ENOUGH: f64 = 0.5;

/// The most amount in a second, of a module of which an invocation does so much; nothing where no time was told.
fn fastest(gpu: &Gpu, text: &str, n_buffers: usize, amount: f64) -> Result<Option<f64>> {
    let shared = &gpu.shared;
    let pipeline = shared.pipeline(text, (0..n_buffers).map(|it| it == 0).collect());
    let mut n_groups = 256u32;
    loop {
        let n = u64::from(n_groups * WORKGROUP);
        let buffers: Vec<wgpu::Buffer> = (0..n_buffers)
            .map(|_| {
                let usage = wgpu::BufferUsages::STORAGE;
                let size = 16 * n;
                shared.device.create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size,
                    usage,
                    mapped_at_creation: false,
                })
            })
            .collect();
        let numbered = (0u32..).zip(&buffers);
        let entries: Vec<_> =
            numbered.map(|(binding, it)| wgpu::BindGroupEntry { binding, resource: it.as_entire_binding() }).collect();
        let group = shared.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &entries,
        });
        let clock = Clock::new(gpu, 5);
        let mut encoder = shared.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for at in 0..5 {
            let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes: clock.around(at) };
            let mut pass = encoder.begin_compute_pass(&descriptor);
            pass.set_pipeline(&pipeline.pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(n_groups, 1, 1);
        }
        shared.queue.submit([encoder.finish()]);
        let times = clock.times()?.into_iter().flatten().filter(|it| *it > 0.0);
        let shortest = times.reduce(f64::min);
        if shortest.is_none_or(|it| it >= LONG_ENOUGH) || n_groups == MOST_GROUPS {
            return Ok(shortest.map(|it| amount * n as f64 / (it / 1e3)));
        }
        n_groups = (4 * n_groups).min(MOST_GROUPS);
    }
}
