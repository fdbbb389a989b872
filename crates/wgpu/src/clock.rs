//! The clock of a device: what the steps of a run take there, and how fast the device is at most.

use crate::gpu::Gpu;
use tracefx_core::Result;
use tracefx_exec::Peak;

/// Steps that one clock times: a set has two times for each, and a device grants sets of 4,096.
const MAX_STEPS: usize = 2048;

/// Times the steps of a run.
pub(crate) struct Clock {
    gpu: Gpu,
    set: wgpu::QuerySet,
    n_steps: usize,
    resolved: wgpu::Buffer,
    staging: wgpu::Buffer,
}

impl Clock {
    /// A clock of a device that has one, for so many steps.
    pub(crate) fn new(gpu: &Gpu, n_steps: usize) -> Self {
        let n_steps = n_steps.clamp(1, MAX_STEPS);
        let device = &gpu.shared.device;
        let set = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count: 2 * n_steps as u32,
        });
        let buffer = |usage| {
            let size = 16 * n_steps as u64;
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let resolved = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        Clock { gpu: gpu.clone(), set, n_steps, resolved, staging }
    }

    /// Where the times of a step are written; nothing of one beyond those that are timed.
    pub(crate) fn around(&self, step: usize) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        (step < self.n_steps).then(|| wgpu::ComputePassTimestampWrites {
            query_set: &self.set,
            beginning_of_pass_write_index: Some(2 * step as u32),
            end_of_pass_write_index: Some(2 * step as u32 + 1),
        })
    }

    /// Milliseconds of each step, as they were written last.
    pub(crate) fn times(&self) -> Result<Vec<Option<f64>>> {
        let (shared, n) = (&self.gpu.shared, 2 * self.n_steps as u32);
        let mut encoder = shared.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.resolve_query_set(&self.set, 0..n, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.staging, 0, 8 * u64::from(n));
        shared.queue.submit([encoder.finish()]);
        let period = f64::from(shared.queue.get_timestamp_period());
        shared.read(&self.staging, 8 * u64::from(n), |bytes| {
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
    let flops = fastest(gpu, FLOPS, 1, n_flops)?;
    let bytes = fastest(gpu, COPY, 2, 32.0)?;
    Ok(Some(Peak { flops, bytes, is_software: gpu.is_software() }))
}

/// Workgroups that are measured at most: of a copy, 128 MiB, which every device has in a buffer.
const MOST_GROUPS: u32 = 32768;

/// Runs of a module take at least so many milliseconds, so that what a run costs by itself does not count.
const LONG_ENOUGH: f64 = 0.5;

/// The most amount in a second, of a module of which an invocation does so much.
fn fastest(gpu: &Gpu, text: &str, n_buffers: usize, amount: f64) -> Result<f64> {
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
        let shortest = clock.times()?.into_iter().flatten().fold(f64::INFINITY, f64::min);
        if shortest >= LONG_ENOUGH || n_groups == MOST_GROUPS {
            return Ok(amount * n as f64 / (shortest.max(1e-6) / 1e3));
        }
        n_groups = (4 * n_groups).min(MOST_GROUPS);
    }
}
