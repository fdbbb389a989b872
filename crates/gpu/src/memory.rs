//! Which buffers of a plan are on the device, what crosses between it and the CPU, and which share memory there.

use crate::program::{DeviceStep, Limits, Place, Reason, Work, words};
use crate::{DeviceBufferId, Program};
use rustc_hash::FxHashMap;
use tracefx_core::DType;
use tracefx_plan::{Action, Buffer, BufferId, Lifetime, Plan, TensorId, assign_slots};

/// The buffers of a plan that may be on the device, and the number of each there while the plan is lowered.
pub(crate) struct Candidates {
    pub(crate) places: Vec<Result<Place, Reason>>,
}

impl Candidates {
    pub(crate) fn of(plan: &Plan, limits: &Limits) -> Self {
        let mut dtypes: Vec<Result<Option<DType>, Reason>> = vec![Ok(None); plan.buffers.len()];
        for view in &plan.tensors {
            let known = &mut dtypes[view.buffer.0 as usize];
            let Ok(before) = *known else { continue };
            *known = match before {
                None => Ok(Some(view.dtype)),
                Some(before) if before == view.dtype => Ok(Some(before)),
                // Elements of four bytes and more lie on the device as they lie in memory.
                Some(before) if before.size().min(view.dtype.size()) >= 4 => Ok(Some(DType::Float32)),
                Some(_) => Err("memory of several dtypes".into()),
            };
        }
        let sizes = plan.buffer_sizes();
        let written = written(plan);
        let place = |at: usize| {
            let dtype = dtypes[at].clone()?.ok_or("memory of no tensor")?;
            let size = sizes[at].ok_or("sizes that the data decides")?;
            if let Buffer::Made = plan.buffers[at] {
                return Err("memory that a kernel makes".into());
            }
            words(dtype).ok_or_else(|| Reason::from(format!("elements of {}", dtype.name())))?;
            let n_elements = size / dtype.size();
            let is_constant = matches!(plan.buffers[at], Buffer::Constant(_));
            // What is written needs words of its own, since invocations write their elements at the same time; but for numbers that the device
            // writes by themselves. What runs are given and give has words anywhere, for those who keep it on the device.
            let is_half = limits.has_f16 && dtype == DType::Float16 && matches!(plan.buffers[at], Buffer::Scratch);
            let is_packed = is_half || is_constant && !written[at] && dtype.size() < 4;
            let place = Place { buffer: DeviceBufferId(at as u32), dtype, n_elements, is_packed };
            if place.n_bytes() > limits.buffer_bytes || n_elements > i32::MAX as usize {
                return Err(format!("a buffer of {} bytes", place.n_bytes()).into());
            }
            Ok(place)
        };
        let mut places: Vec<Result<Place, Reason>> = (0..plan.buffers.len()).map(place).collect();
        let mut first: FxHashMap<usize, usize> = FxHashMap::default();
        for (at, buffer) in plan.buffers.iter().enumerate() {
            let Buffer::Constant(storage) = buffer else { continue };
            let same = *first.entry(storage.id()).or_insert(at);
            if same != at && (written[at] || written[same]) {
                places[at] = Err("memory that is written to under two names".into());
                places[same] = places[at].clone();
            }
        }
        Candidates { places }
    }
}

/// Whether each buffer is written to by a step.
fn written(plan: &Plan) -> Vec<bool> {
    let mut res = vec![false; plan.buffers.len()];
    for step in &plan.steps {
        step.action.for_each_written(&mut |it| res[plan.tensor(it).buffer.0 as usize] = true);
    }
    res
}

/// The storages of the program that a plan of control flow has, and those of them that it may write to: of calls, all that they have.
fn storages(plan: &Plan, all: &mut Vec<usize>, changed: &mut Vec<usize>) {
    let id = |it: BufferId| if let Buffer::Constant(it) = plan.buffer(it) { Some(it.id()) } else { None };
    all.extend((0..plan.buffers.len()).filter_map(|it| id(BufferId(it as u32))));
    for step in &plan.steps {
        let mut change = |it: TensorId| changed.extend(id(plan.tensor(it).buffer));
        match &step.action {
            Action::Call { .. } => step.action.for_each_tensor(&mut change),
            action => action.for_each_written(&mut change),
        }
        if let Action::ControlFlow { plans, .. } = &step.action {
            plans.iter().for_each(|it| storages(it, all, changed));
        }
    }
}

/// Where the content of a buffer is.
#[derive(Clone, Copy, Default)]
struct Content {
    is_on_cpu: bool,
    is_on_device: bool,
}

/// What crosses: for each step, where what it reads and writes has to be, by who does the work of the steps.
pub(crate) fn cross(plan: &Plan, works: Vec<Work>, program: &mut Program, may_write: &dyn Fn(&str) -> bool) {
    let sizes = plan.buffer_sizes();
    let content = |it: &Buffer| match it {
        Buffer::Input(_) => Content { is_on_cpu: true, is_on_device: false },
        // What the device reads of them goes up before the first step.
        Buffer::Constant(_) => Content { is_on_cpu: true, is_on_device: true },
        Buffer::Scratch | Buffer::Result | Buffer::Made => Content::default(),
    };
    let mut contents: Vec<Content> = plan.buffers.iter().map(content).collect();
    let mut is_written = vec![false; plan.buffers.len()];
    for (step, work) in plan.steps.iter().zip(works) {
        let (mut read, mut changed) = (Vec::new(), Vec::new());
        let add = |to: &mut Vec<usize>, it: TensorId| {
            let buffer = plan.tensor(it).buffer.0 as usize;
            if !to.contains(&buffer) {
                to.push(buffer);
            }
        };
        step.action.for_each_read(&mut |it| add(&mut read, it));
        step.action.for_each_written(&mut |it| add(&mut changed, it));
        if let Action::Call { op, .. } = &step.action
            && may_write(op)
        {
            step.action.for_each_read(&mut |it| add(&mut changed, it));
        }
        if let Action::ControlFlow { plans, .. } = &step.action {
            let (mut within, mut changed_within) = (Vec::new(), Vec::new());
            plans.iter().for_each(|it| storages(it, &mut within, &mut changed_within));
            for (buffer, it) in plan.buffers.iter().enumerate() {
                let Buffer::Constant(storage) = it else { continue };
                if within.contains(&storage.id()) && !read.contains(&buffer) {
                    read.push(buffer);
                }
                if changed_within.contains(&storage.id()) && !changed.contains(&buffer) {
                    changed.push(buffer);
                }
            }
        }
        let mut whole = Vec::new();
        step.action.for_each_written(&mut |it| {
            let view = plan.tensor(it);
            let buffer = view.buffer.0 as usize;
            let is_whole = view
                .known()
                .is_some_and(|it| it.is_row_major() && it.offset == 0 && it.span(view.dtype) == sizes[buffer]);
            if is_whole && !read.contains(&buffer) {
                whole.push(buffer);
            }
        });
        // Of what a step is given, the device may need no more than sizes.
        if let Work::Device(dispatches) = &work {
            let is_used = |it: &usize| {
                dispatches.iter().flat_map(|it| &it.bindings).any(|binding| binding.buffer.0 as usize == *it)
            };
            read.retain(is_used);
            changed.retain(is_used);
        }
        let is_device = matches!(work, Work::Device(_));
        let mut done = DeviceStep { downloads: Vec::new(), uploads: Vec::new(), clears: Vec::new(), work };
        let touched = read.iter().chain(changed.iter().filter(|it| !read.contains(it)));
        for &buffer in touched.filter(|it| !whole.contains(it)) {
            let (id, it) = (BufferId(buffer as u32), &mut contents[buffer]);
            match (is_device, it.is_on_cpu, it.is_on_device) {
                (true, true, false) => done.uploads.push(id),
                (true, false, false) if matches!(plan.buffers[buffer], Buffer::Result) => done.clears.push(id),
                (false, false, true) => done.downloads.push(id),
                (_, _, _) => {}
            }
            match is_device {
                true => it.is_on_device = true,
                false => it.is_on_cpu = true,
            }
        }
        for &buffer in &changed {
            contents[buffer] = Content { is_on_cpu: !is_device, is_on_device: is_device };
            is_written[buffer] = true;
        }
        program.steps.push(done);
    }
    go_up_early(&mut program.steps);
    let is_output = |at: usize| {
        let is_outer = !matches!(plan.buffers[at], Buffer::Scratch | Buffer::Made);
        is_outer && is_written[at] && contents[at].is_on_device && !contents[at].is_on_cpu
    };
    program.outputs = (0..plan.buffers.len()).filter(|it| is_output(*it)).map(|it| BufferId(it as u32)).collect();
}

/// Moves what goes up to behind the last step of the CPU before: the steps in between are the device's, and would have asked for it first if one
/// of them touched it. So all that they do is told the device at once.
fn go_up_early(steps: &mut [DeviceStep]) {
    let mut first = 0;
    for at in 0..steps.len() {
        if at > first {
            let uploads = std::mem::take(&mut steps[at].uploads);
            steps[first].uploads.extend(uploads);
        }
        if matches!(steps[at].work, Work::Cpu(_)) {
            first = at + 1;
        }
    }
}

/// A buffer that the dispatches of one step alone use.
pub(crate) struct Temporary {
    pub(crate) n_bytes: u64,
}

/// Gives the buffers of the device their numbers: each of the plan that it uses has one, or shares that of others which are needed at other times.
/// Until then, numbers are those of the plan, and temporary ones follow.
pub(crate) fn assign(plan: &Plan, candidates: &Candidates, temporaries: &[Temporary], program: &mut Program) {
    let n_plan = plan.buffers.len();
    let mut lives: Vec<Option<Lifetime>> = vec![None; n_plan + temporaries.len()];
    let bytes = |at: usize| match at.checked_sub(n_plan) {
        Some(temporary) => temporaries[temporary].n_bytes,
        None => candidates.places[at].as_ref().map_or(0, Place::n_bytes),
    };
    let mut touch = |at: usize, step: usize| {
        let size = bytes(at) as usize;
        let life = lives[at].get_or_insert(Lifetime { first: step, last: step, size });
        (life.first, life.last) = (life.first.min(step), life.last.max(step));
    };
    for (at, step) in program.steps.iter().enumerate() {
        let moved = step.downloads.iter().chain(&step.uploads).chain(&step.clears);
        moved.for_each(|it| touch(it.0 as usize, at));
        if let Work::Device(dispatches) = &step.work {
            let bindings = dispatches.iter().flat_map(|it| &it.bindings);
            bindings.for_each(|it| touch(it.buffer.0 as usize, at));
        }
    }
    let end = program.steps.len();
    program.outputs.iter().for_each(|it| touch(it.0 as usize, end));
    // What is noted of a check stays until the run has ended.
    program.check_buffer.iter().for_each(|it| [0, end].into_iter().for_each(|step| touch(it.0 as usize, step)));
    let is_shared = |at: usize| at >= n_plan || matches!(plan.buffers[at], Buffer::Scratch);
    let shared: Vec<usize> = (0..lives.len()).filter(|&it| lives[it].is_some() && is_shared(it)).collect();
    let slots = assign_slots(&shared.iter().filter_map(|&it| lives[it]).collect::<Vec<_>>());
    program.buffers = slots.sizes.iter().map(|&it| it as u64).collect();
    let mut numbers: Vec<Option<DeviceBufferId>> = vec![None; lives.len()];
    for (&at, slot) in shared.iter().zip(slots.of) {
        numbers[at] = Some(DeviceBufferId(slot as u32));
    }
    for at in (0..lives.len()).filter(|&it| lives[it].is_some() && !is_shared(it)) {
        numbers[at] = Some(DeviceBufferId(program.buffers.len() as u32));
        program.buffers.push(bytes(at));
    }
    // A binding of no bytes is none.
    program.buffers.iter_mut().for_each(|it| *it = (*it).max(8));
    program.places = (0..n_plan)
        .map(|at| {
            let place = candidates.places[at].as_ref().ok()?;
            Some(Place { buffer: numbers[at]?, ..*place })
        })
        .collect();
    let renumber = |it: &mut DeviceBufferId| *it = numbers[it.0 as usize].unwrap_or(*it);
    for step in &mut program.steps {
        if let Work::Device(dispatches) = &mut step.work {
            dispatches.iter_mut().flat_map(|it| &mut it.bindings).for_each(|it| renumber(&mut it.buffer));
        }
    }
    program.check_buffer.iter_mut().for_each(renumber);
    let is_read = |at: &usize| matches!(plan.buffers[*at], Buffer::Constant(_)) && program.places[*at].is_some();
    program.constants = (0..n_plan).filter(is_read).map(|it| BufferId(it as u32)).collect();
    if program.count().1 == 0 {
        let mut given = Vec::new();
        plan.output.for_each_tensor(&mut |it| given.push(plan.tensor(it).buffer));
        let is_kept = |it: &BufferId| program.constants.contains(it) && !given.contains(it);
        program.kept = program.outputs.iter().copied().filter(is_kept).collect();
    }
}
