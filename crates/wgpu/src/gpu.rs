//! The adapter and its device: what they can do, what was compiled for them, and what they refuse.

use crate::clock::peak;
use crate::run::PlanOnGpu;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::{Accelerator, Peak, Placement, PlanDevice};
use tracefx_gpu::{ENABLE_SUBGROUPS, Limits, Program, Work, lower};
use tracefx_ops::{Op, Registry};
use tracefx_plan::Plan;

/// What takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A GPU. A clone shares it.
#[derive(Clone)]
pub struct Gpu {
    pub(crate) shared: Arc<Shared>,
    keeps_state: bool,
}

pub(crate) struct Shared {
    info: wgpu::AdapterInfo,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    limits: Limits,
    /// Whether the device has a clock.
    pub(crate) has_clock: bool,
    pipelines: Mutex<FxHashMap<PipelineKey, Arc<Pipeline>>>,
    /// Why the device was lost.
    lost: Arc<Mutex<Option<String>>>,
}

/// The text of a module, and which of its bindings it writes to.
type PipelineKey = (String, Vec<bool>);

/// A module that is compiled.
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

impl Gpu {
    /// Opens the fastest adapter that there is, which may be a processor that does the work of one.
    ///
    /// # Errors
    /// `DeviceMissing` where there is none; `DeviceFailed` where it has no device to give.
    pub fn open() -> Result<Self> {
        let backends = wgpu::Backends::PRIMARY;
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..wgpu::RequestAdapterOptions::default()
        };
        let adapter = pollster::block_on(instance.request_adapter(&options)).map_err(|problem| {
            Diagnostic::new(Code::DeviceMissing, format!("there is no GPU: {problem}")).help(
                "install a driver of Vulkan, such as mesa-vulkan-drivers, which has one for machines without a GPU, or run on the CPU",
            )
        })?;
        let offered = adapter.limits();
        let required_limits = wgpu::Limits {
            max_buffer_size: offered.max_buffer_size,
            max_storage_buffer_binding_size: offered.max_storage_buffer_binding_size,
            max_storage_buffers_per_shader_stage: offered.max_storage_buffers_per_shader_stage.min(24),
            ..wgpu::Limits::default()
        };
        let wanted = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::SHADER_F16 | wgpu::Features::SUBGROUP;
        let required_features = adapter.features() & wanted;
        let limits = Limits {
            bindings: required_limits.max_storage_buffers_per_shader_stage as usize,
            buffer_bytes: required_limits.max_storage_buffer_binding_size.min(required_limits.max_buffer_size),
            workgroups: required_limits.max_compute_workgroups_per_dimension,
            has_f16: required_features.contains(wgpu::Features::SHADER_F16),
            has_subgroups: required_features.contains(wgpu::Features::SUBGROUP),
        };
        let descriptor =
            wgpu::DeviceDescriptor { required_features, required_limits, ..wgpu::DeviceDescriptor::default() };
        let device = pollster::block_on(adapter.request_device(&descriptor));
        let (device, queue) = device.map_err(|problem| failed(&problem.to_string()))?;
        let lost = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&lost);
        device.set_device_lost_callback(move |_, why| {
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        });
        // What nobody asked for is found by whoever asks next.
        let noted = Arc::clone(&lost);
        device.on_uncaptured_error(Arc::new(move |problem: wgpu::Error| {
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem.to_string());
        }));
        let info = adapter.get_info();
        let has_clock = required_features.contains(wgpu::Features::TIMESTAMP_QUERY);
        let shared = Shared { info, device, queue, limits, has_clock, pipelines: Mutex::default(), lost };
        Ok(Gpu { shared: Arc::new(shared), keeps_state: false })
    }

    /// The same, with what runs change of a program's own tensors, such as a cache of keys and values, staying on the device, for plans that
    /// it does whole: `tracefx_engine::Runner::synchronize` brings it down.
    #[must_use]
    pub fn keeping_state(mut self) -> Self {
        self.keeps_state = true;
        self
    }

    /// What it is called, and the interface that leads to it.
    pub fn name(&self) -> String {
        format!("{} ({})", self.shared.info.name, self.shared.info.backend)
    }

    /// Whether it is a processor that does the work of a GPU, whose times mean nothing.
    pub fn is_software(&self) -> bool {
        self.shared.info.device_type == wgpu::DeviceType::Cpu
    }

    /// Whether it does no more work: who opens it again gets another device.
    pub fn is_lost(&self) -> bool {
        self.shared.check_lost().is_err()
    }

    /// What it can do at most.
    pub fn limits(&self) -> Limits {
        self.shared.limits
    }

    /// The program that it executes for a plan.
    pub fn program(&self, plan: &Plan, registry: &Registry) -> Program {
        lower(plan, &self.shared.limits, &|op| registry.get(op).is_none_or(Op::may_write))
    }
}

impl Accelerator for Gpu {
    fn name(&self) -> String {
        Gpu::name(self)
    }

    fn prepare(&self, plan: &Plan, registry: &Registry) -> Result<Option<Box<dyn PlanDevice>>> {
        let program = self.program(plan, registry);
        if program.count().0 == 0 {
            return Ok(None);
        }
        let on_gpu = self.shared.guarded(|| PlanOnGpu::new(self.clone(), program, self.keeps_state))??;
        Ok(Some(Box::new(on_gpu)))
    }

    fn placements(&self, plan: &Plan, registry: &Registry) -> Vec<Placement> {
        let program = self.program(plan, registry);
        let placement = |step: &tracefx_gpu::DeviceStep| {
            let bytes = |buffers: &[tracefx_plan::BufferId]| buffers.iter().map(|it| program.bytes_of(*it)).sum();
            let reason = match &step.work {
                Work::Device(_) => None,
                Work::Cpu(reason) => Some(reason.to_string()),
            };
            Placement { reason, bytes_up: bytes(&step.uploads), bytes_down: bytes(&step.downloads) }
        };
        program.steps.iter().map(placement).collect()
    }

    fn keeps_state(&self) -> bool {
        self.keeps_state
    }

    fn peak(&self) -> Result<Option<Peak>> {
        self.shared.guarded(|| peak(self))?
    }
}

impl Shared {
    /// Does something with the device, and tells what it refuses.
    ///
    /// # Errors
    /// `OutOfMemory`; `DeviceFailed` where it was lost, or finds something invalid.
    pub(crate) fn guarded<T>(&self, body: impl FnOnce() -> T) -> Result<T> {
        let filters = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory];
        let scopes = filters.map(|it| self.device.push_error_scope(it));
        let result = body();
        let mut problems = scopes.into_iter().rev().filter_map(|it| pollster::block_on(it.pop()));
        match problems.next() {
            Some(problem) => {
                // Every scope is left, the outermost last.
                problems.for_each(drop);
                Err(refused(&problem))
            }
            None => self.check_lost().map(|()| result),
        }
    }

    fn check_lost(&self) -> Result<()> {
        match &*self.lost.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(why) => Err(failed(&format!("it was lost: {why}"))),
            None => Ok(()),
        }
    }

    /// Waits for the device, and reads the first bytes of a buffer that can be mapped.
    pub(crate) fn read<T>(
        &self,
        staging: &wgpu::Buffer,
        n_bytes: u64,
        body: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let (sender, receiver) = mpsc::channel();
        staging.map_async(wgpu::MapMode::Read, 0..n_bytes, move |result| _ = sender.send(result));
        let poll = wgpu::PollType::Wait { submission_index: None, timeout: Some(TIMEOUT) };
        self.device.poll(poll).map_err(|problem| failed(&problem.to_string()))?;
        let mapped = receiver.recv().map_err(|_| failed("it answers no more"))?;
        mapped.map_err(|problem| failed(&problem.to_string()))?;
        let range = staging.get_mapped_range(0..n_bytes).map_err(|problem| failed(&problem.to_string()))?;
        let result = body(&range);
        drop(range);
        staging.unmap();
        result
    }

    /// A module as a pipeline, compiled once.
    pub(crate) fn pipeline(&self, text: &str, is_written: Vec<bool>) -> Arc<Pipeline> {
        let key = (text.to_owned(), is_written);
        let mut known = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = known.get(&key) {
            return Arc::clone(pipeline);
        }
        let entry = |(at, is_written): (usize, &bool)| wgpu::BindGroupLayoutEntry {
            binding: at as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only: !is_written },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let entries: Vec<_> = key.1.iter().enumerate().map(entry).collect();
        let layout =
            self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let text = key.0.replacen(ENABLE_SUBGROUPS, "", 1);
        let descriptor = wgpu::ShaderModuleDescriptor { label: None, source: wgpu::ShaderSource::Wgsl(text.into()) };
        // A counter in each loop keeps drivers from unrolling it.
        let checks = wgpu::ShaderRuntimeChecks { force_loop_bounding: false, ..wgpu::ShaderRuntimeChecks::checked() };
        // SAFETY: the text is printed by the crate `gpu` from a plan, and each of its loops counts to a size that stands in the text, or
        // halves what is left. Accesses to memory and divisions keep their checks.
        let module = unsafe { self.device.create_shader_module_trusted(descriptor, checks) };
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let made = Arc::new(Pipeline { pipeline, layout });
        known.insert(key, Arc::clone(&made));
        made
    }
}

fn refused(problem: &wgpu::Error) -> Diagnostic {
    match problem {
        wgpu::Error::OutOfMemory { .. } => {
            Diagnostic::new(Code::OutOfMemory, "the GPU has no memory left").help("run on the CPU, or a smaller batch")
        }
        wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. } => failed(description),
    }
}

/// The refusal of a device.
pub(crate) fn failed(why: &str) -> Diagnostic {
    Diagnostic::new(Code::DeviceFailed, format!("the GPU failed: {why}")).help("open it again, or run on the CPU")
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gpu").field(&self.shared.info.name).finish()
    }
}
