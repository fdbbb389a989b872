//! A plan on the GPU: its buffers, which stay from run to run, and its runs.

use crate::clock::Clock;
use crate::gpu::{Gpu, Pipeline};
use std::fmt;
use std::sync::Arc;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::{Memory, PlanDevice, lost_state, note_lost_state};
use tracefx_gpu::{Place, Program, Work, narrowed, widened};
use tracefx_plan::BufferId;

/// A dispatch with what it is given.
struct Ready {
    pipeline: Arc<Pipeline>,
    group: wgpu::BindGroup,
    workgroups: [u32; 3],
}

pub(crate) struct PlanOnGpu {
    gpu: Gpu,
    program: Program,
    buffers: Vec<wgpu::Buffer>,
    /// What is read of the device is copied here.
    staging: wgpu::Buffer,
    /// The dispatches of each step.
    steps: Vec<Vec<Ready>>,
    /// The versions of the constants that are on the device.
    versions: Vec<Option<u64>>,
    /// What stays on the device of what runs change of constants.
    kept: Vec<BufferId>,
    /// Whether constants have changed on the device since they came down last.
    is_ahead: bool,
    /// Whether the device was told steps of a run that has not ended: they may have changed constants there alone.
    is_dirty: bool,
    /// What is told the device with the next submission.
    encoder: Option<wgpu::CommandEncoder>,
    /// Steps that it is told before anything else.
    waiting: Vec<usize>,
    /// What times the steps.
    clock: Option<Clock>,
}

impl PlanOnGpu {
    pub(crate) fn new(gpu: Gpu, program: Program, keeps_state: bool) -> Result<Self> {
        let device = &gpu.shared.device;
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let buffer = |size: u64, usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: size.next_multiple_of(4),
                usage,
                mapped_at_creation: false,
            })
        };
        let buffers: Vec<wgpu::Buffer> = program.buffers.iter().map(|size| buffer(*size, usage)).collect();
        let read = program.outputs.iter().chain(program.steps.iter().flat_map(|it| &it.downloads));
        let read = read.map(|it| program.bytes_of(*it)).chain([12 * program.checks.len() as u64]);
        let staging = staging(device, read.max().unwrap_or(0).max(8));
        let mut steps = Vec::new();
        for step in &program.steps {
            let mut ready = Vec::new();
            if let Work::Device(dispatches) = &step.work {
                for it in dispatches {
                    let text = &program.modules[it.module.0 as usize];
                    let pipeline = gpu.shared.pipeline(text, it.bindings.iter().map(|it| it.is_written).collect());
                    let entry = |(at, it): (usize, &tracefx_gpu::Binding)| wgpu::BindGroupEntry {
                        binding: at as u32,
                        resource: buffers[it.buffer.0 as usize].as_entire_binding(),
                    };
                    let entries: Vec<_> = it.bindings.iter().enumerate().map(entry).collect();
                    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
                        label: None,
                        layout: &pipeline.layout,
                        entries: &entries,
                    });
                    ready.push(Ready { pipeline, group, workgroups: it.workgroups });
                }
            }
            steps.push(ready);
        }
        let versions = vec![None; program.constants.len()];
        let kept = if keeps_state { program.kept.clone() } else { Vec::new() };
        Ok(PlanOnGpu {
            gpu,
            program,
            buffers,
            staging,
            steps,
            versions,
            kept,
            is_ahead: false,
            is_dirty: false,
            encoder: None,
            waiting: Vec::new(),
            clock: None,
        })
    }

    fn place(&self, buffer: BufferId) -> Result<Place> {
        let place = self.program.places.get(buffer.0 as usize).copied().flatten();
        place.ok_or_else(|| Diagnostic::new(Code::Internal, "a buffer of the plan has no place on the GPU"))
    }

    /// What is told the device behind all steps until now.
    fn encoder(&mut self) -> &mut wgpu::CommandEncoder {
        self.flush();
        let device = &self.gpu.shared.device;
        self.encoder.get_or_insert_with(|| encoder(device))
    }

    fn submit(&mut self) {
        self.flush();
        if let Some(encoder) = self.encoder.take() {
            self.is_dirty = true;
            self.gpu.shared.queue.submit([encoder.finish()]);
        }
    }

    fn upload(&mut self, buffer: BufferId, memory: &mut Memory<'_>) -> Result<()> {
        let place = self.place(buffer)?;
        let n_bytes = place.n_elements * place.dtype.size();
        if n_bytes == 0 {
            return Ok(());
        }
        let storage = memory(buffer)?;
        let bytes = storage.read();
        let what = || Diagnostic::new(Code::InputType, "the plan was made for an input of more memory");
        let bytes = bytes.bytes().get(..n_bytes).ok_or_else(what)?;
        // What is written so comes before all that is submitted later.
        self.submit();
        let buffer = &self.buffers[place.buffer.0 as usize];
        if place.dtype.size() < 4 && !place.is_packed {
            let mut wide = vec![0; place.n_bytes() as usize];
            widened(bytes, place.dtype, &mut wide);
            self.gpu.shared.queue.write_buffer(buffer, 0, &wide);
            return Ok(());
        }
        // Words are written, of which the last one may be half empty.
        let (whole, rest) = bytes.split_at(bytes.len() / 4 * 4);
        self.gpu.shared.queue.write_buffer(buffer, 0, whole);
        if !rest.is_empty() {
            let mut word = [0; 4];
            word[..rest.len()].copy_from_slice(rest);
            self.gpu.shared.queue.write_buffer(buffer, whole.len() as u64, &word);
        }
        Ok(())
    }

    /// The first bytes of a buffer.
    fn read<T>(&mut self, buffer: usize, n_bytes: u64, body: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let (from, staging) = (self.buffers[buffer].clone(), self.staging.clone());
        self.encoder().copy_buffer_to_buffer(&from, 0, &staging, 0, n_bytes);
        self.submit();
        self.gpu.shared.read(&staging, n_bytes, body)
    }

    fn download(&mut self, buffer: BufferId, memory: &mut Memory<'_>) -> Result<()> {
        let place = self.place(buffer)?;
        let n_bytes = place.n_elements * place.dtype.size();
        if n_bytes == 0 {
            return Ok(());
        }
        let storage = memory(buffer)?;
        self.read(place.buffer.0 as usize, self.program.bytes_of(buffer), |wide| {
            let mut guard = storage.write()?;
            let what = || Diagnostic::new(Code::Internal, "memory of the plan is too short");
            let to = guard.bytes_mut().get_mut(..n_bytes).ok_or_else(what)?;
            match place.is_packed {
                true => to.copy_from_slice(&wide[..n_bytes]),
                false => narrowed(wide, place.dtype, to),
            }
            Ok(())
        })
    }

    /// Refuses what the data has broken, before anything of it is seen.
    fn check(&mut self) -> Result<()> {
        let Some(buffer) = self.program.check_buffer else { return Ok(()) };
        let n_bytes = 12 * self.program.checks.len() as u64;
        let words: Vec<u32> = self.read(buffer.0 as usize, n_bytes, |bytes| Ok(bytemuck::pod_collect_to_vec(bytes)))?;
        self.program.check(&words)
    }

    fn try_begin(&mut self, memory: &mut Memory<'_>) -> Result<()> {
        self.encoder = None;
        self.waiting.clear();
        if self.has_lost() {
            return Err(lost_state());
        }
        for (at, buffer) in self.program.constants.clone().into_iter().enumerate() {
            let version = memory(buffer)?.version();
            if self.versions[at] != Some(version) {
                self.versions[at] = None;
                self.upload(buffer, memory)?;
                self.versions[at] = Some(version);
            }
        }
        if let Some(checks) = self.program.check_buffer {
            // Not by a command, which what goes up first would have to wait for.
            let zeros = vec![0; 12 * self.program.checks.len()];
            self.gpu.shared.queue.write_buffer(&self.buffers[checks.0 as usize], 0, &zeros);
        }
        Ok(())
    }

    fn try_step(&mut self, at: usize, memory: &mut Memory<'_>) -> Result<bool> {
        let step = self.program.steps.get(at);
        let Some(step) = step else { return Ok(false) };
        let (downloads, uploads, clears) = (step.downloads.clone(), step.uploads.clone(), step.clears.clone());
        let is_device = matches!(step.work, Work::Device(_));
        if !downloads.is_empty() {
            self.check()?;
        }
        downloads.into_iter().try_for_each(|it| self.download(it, memory))?;
        uploads.into_iter().try_for_each(|it| self.upload(it, memory))?;
        for buffer in clears {
            let place = self.place(buffer)?;
            let buffer = self.buffers[place.buffer.0 as usize].clone();
            self.encoder().clear_buffer(&buffer, 0, None);
        }
        if !self.steps[at].is_empty() {
            if self.clock.is_some() {
                self.flush();
            }
            self.waiting.push(at);
        }
        Ok(is_device)
    }

    /// Tells the steps that wait for it, which are one pass.
    fn flush(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let Some(first) = waiting.first() else { return };
        let (steps, clock) = (std::mem::take(&mut self.steps), self.clock.take());
        let timestamp_writes = clock.as_ref().and_then(|it| it.around(*first));
        let device = &self.gpu.shared.device;
        let encoder = self.encoder.get_or_insert_with(|| encoder(device));
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
        for it in waiting.iter().flat_map(|at| &steps[*at]) {
            pass.set_pipeline(&it.pipeline.pipeline);
            pass.set_bind_group(0, &it.group, &[]);
            let [x, y, z] = it.workgroups;
            pass.dispatch_workgroups(x, y, z);
        }
        drop(pass);
        (self.steps, self.clock) = (steps, clock);
    }

    fn try_end(&mut self, memory: &mut Memory<'_>) -> Result<()> {
        self.check()?;
        for buffer in self.program.outputs.clone() {
            if !self.kept.contains(&buffer) {
                self.download(buffer, memory)?;
                self.note_version(buffer, memory)?;
            }
        }
        self.submit();
        self.is_ahead |= !self.kept.is_empty();
        self.is_dirty = false;
        Ok(())
    }

    /// A constant that came down is what is there.
    fn note_version(&mut self, buffer: BufferId, memory: &mut Memory<'_>) -> Result<()> {
        if let Some(at) = self.program.constants.iter().position(|it| *it == buffer) {
            self.versions[at] = Some(memory(buffer)?.version());
        }
        Ok(())
    }

    /// Trusts nothing that the device has of constants, where a run was told it and has not ended; says whether something is lost by that.
    fn has_lost(&mut self) -> bool {
        let is_dirty = std::mem::take(&mut self.is_dirty);
        if is_dirty {
            self.versions.fill(None);
        }
        is_dirty && std::mem::take(&mut self.is_ahead)
    }

    fn try_release(&mut self, memory: &mut Memory<'_>) -> Result<()> {
        if self.has_lost() {
            return Err(lost_state());
        }
        if !self.is_ahead {
            return Ok(());
        }
        for buffer in self.kept.clone() {
            let at = self.program.constants.iter().position(|it| *it == buffer);
            // What was written to memory meanwhile stays, and goes up before the next run.
            if at.and_then(|it| self.versions[it]) == Some(memory(buffer)?.version()) {
                self.download(buffer, memory)?;
                self.note_version(buffer, memory)?;
            }
        }
        self.submit();
        (self.is_dirty, self.is_ahead) = (false, false);
        Ok(())
    }

    /// Does something of a run, which tells what it has lost where it cannot go on.
    fn in_run<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let result = self.guarded(body);
        match result {
            Err(problem) if self.has_lost() => Err(note_lost_state(problem)),
            result => result,
        }
    }

    /// Does something with the device, and tells what it refuses.
    fn guarded<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let gpu = self.gpu.clone();
        let result = gpu.shared.guarded(|| body(self)).and_then(|it| it);
        if result.is_err() {
            // The other may be mapped.
            self.staging = staging(&self.gpu.shared.device, self.staging.size());
        }
        result
    }
}

fn encoder(device: &wgpu::Device) -> wgpu::CommandEncoder {
    device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
}

/// A buffer that the CPU reads.
fn staging(device: &wgpu::Device, size: u64) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: size.next_multiple_of(4),
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

impl PlanDevice for PlanOnGpu {
    fn begin(&mut self, memory: &mut Memory<'_>) -> Result<()> {
        self.guarded(|it| it.try_begin(memory))
    }

    fn step(&mut self, at: usize, memory: &mut Memory<'_>) -> Result<bool> {
        self.in_run(|it| it.try_step(at, memory))
    }

    fn end(&mut self, memory: &mut Memory<'_>) -> Result<()> {
        self.in_run(|it| it.try_end(memory))
    }

    fn keeps_state(&self) -> bool {
        !self.kept.is_empty()
    }

    fn release(&mut self, memory: &mut Memory<'_>) -> Result<()> {
        self.guarded(|it| it.try_release(memory))
    }

    fn set_timed(&mut self, is_timed: bool) {
        let is_timed = is_timed && self.gpu.shared.has_clock;
        let clock = is_timed.then(|| self.gpu.shared.guarded(|| Clock::new(&self.gpu, self.steps.len())));
        self.clock = clock.and_then(Result::ok);
    }

    fn step_times(&mut self) -> Vec<Option<f64>> {
        let is_done: Vec<bool> = self.steps.iter().map(|it| !it.is_empty()).collect();
        let times = self.clock.as_ref().map(|clock| self.gpu.shared.guarded(|| clock.times()));
        // Without them, the times are those until the steps were told.
        let times = times.and_then(|it| it.and_then(|it| it).ok()).unwrap_or_default();
        is_done.into_iter().zip(times).map(|(is_done, time)| time.filter(|_| is_done)).collect()
    }
}

impl fmt::Debug for PlanOnGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n_device, n_cpu) = self.program.count();
        f.debug_struct("PlanOnGpu").field("on_gpu", &n_device).field("on_cpu", &n_cpu).finish_non_exhaustive()
    }
}
