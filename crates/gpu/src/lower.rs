//! Lowering: each step of a plan becomes dispatches, or stays on the CPU for a reason.

use crate::DeviceBufferId;
use crate::memory::{Candidates, Temporary, assign, cross};
use crate::program::{Check, Condition, Dispatch, Limits, ModuleId, Program, Promise, Reason, Work, words};
use crate::shader::{Kind, Shader, View, WORKGROUP};
use crate::steps;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tracefx_core::{Code, DType, Dims, contiguous_strides};
use tracefx_plan::{Action, Plan, TensorId};

/// The program of a device for a plan. `may_write` says of an operator whether it may write to its arguments.
pub fn lower(plan: &Plan, limits: &Limits, may_write: &dyn Fn(&str) -> bool) -> Program {
    let mut lowering = Lowering {
        plan,
        limits: *limits,
        candidates: Candidates::of(plan, limits),
        temporaries: Vec::new(),
        modules: FxHashMap::default(),
        program: Program::default(),
        step: 0,
    };
    let mut works = Vec::new();
    for (at, step) in plan.steps.iter().enumerate() {
        lowering.step = at;
        let n_checks = lowering.program.checks.len();
        let lowered = if !has_tensors(&step.action) {
            Err(NO_TENSOR.into())
        } else if is_overlapping(plan, &step.action) {
            Err("memory that is read and written at other places".into())
        } else {
            steps::lower(&mut lowering, &step.action)
        };
        works.push(match lowered {
            Ok(dispatches) => Work::Device(dispatches),
            Err(reason) => {
                lowering.program.checks.truncate(n_checks);
                Work::Cpu(reason)
            }
        });
    }
    let Lowering { candidates, temporaries, mut program, .. } = lowering;
    if program.checks.is_empty() {
        program.check_buffer = None;
    }
    cross(plan, works, &mut program, may_write);
    assign(plan, &candidates, &temporaries, &mut program);
    program
}

/// Why the CPU does what has nothing to do with tensors, such as an assertion of a size.
const NO_TENSOR: &str = "numbers alone";

fn has_tensors(action: &Action) -> bool {
    let mut res = matches!(action, Action::ControlFlow { .. });
    action.for_each_tensor(&mut |_| res = true);
    res
}

/// Whether a step reads other elements of the memory that it writes. Invocations have no order, so that they would see some of them as they were.
fn is_overlapping(plan: &Plan, action: &Action) -> bool {
    let buffer = |it: TensorId| plan.tensor(it).buffer;
    match action {
        Action::Copy { from, to } => buffer(*from) == buffer(*to),
        Action::Update { args, .. } => {
            let mut target = None;
            args.iter().take(1).for_each(|it| it.for_each_tensor(&mut |it| target = Some(buffer(it))));
            let mut res = false;
            args.iter().skip(1).for_each(|it| it.for_each_tensor(&mut |it| res |= Some(buffer(it)) == target));
            res
        }
        Action::Call { .. } | Action::Fused(_) | Action::ControlFlow { .. } => false,
    }
}

/// A program that grows.
pub(crate) struct Lowering<'a> {
    pub(crate) plan: &'a Plan,
    limits: Limits,
    candidates: Candidates,
    temporaries: Vec<Temporary>,
    modules: FxHashMap<String, ModuleId>,
    program: Program,
    step: usize,
}

/// What a step is lowered to.
pub(crate) type Lowered = Result<Vec<Dispatch>, Reason>;

impl Lowering<'_> {
    /// A tensor whose elements the device can move.
    pub(crate) fn movable(&self, id: TensorId) -> Result<View, Reason> {
        let view = self.plan.tensor(id);
        let place = self.candidates.places[view.buffer.0 as usize].as_ref().map_err(Clone::clone)?;
        let extent = view.known().ok_or("sizes that the data decides")?;
        let n = extent.sizes.iter().try_fold(1usize, |n, it| n.checked_mul(*it)).filter(|it| *it <= i32::MAX as usize);
        n.ok_or("more elements than a device numbers")?;
        words(view.dtype).ok_or_else(|| Reason::from(format!("elements of {}", view.dtype.name())))?;
        Ok(View {
            buffer: place.buffer,
            is_packed: place.is_packed,
            is_half: place.is_packed && view.dtype == DType::Float16 && self.limits.has_f16,
            dtype: view.dtype,
            sizes: extent.sizes,
            strides: extent.strides,
            offset: extent.offset,
        })
    }

    /// A tensor that the device can compute with, and how registers hold it.
    pub(crate) fn view(&self, id: TensorId) -> Result<(View, Kind), Reason> {
        let view = self.movable(id)?;
        let kind = Kind::of(view.dtype).ok_or_else(|| Reason::from(format!("numbers of {}", view.dtype.name())))?;
        Ok((view, kind))
    }

    /// A tensor of float32, or of the narrower floats.
    pub(crate) fn floats(&self, id: TensorId) -> Result<View, Reason> {
        match self.view(id)? {
            (view, Kind::Float) => Ok(view),
            (view, _) => Err(format!("numbers of {}", view.dtype.name()).into()),
        }
    }

    /// The number of a promise, and the name of the buffer of checks.
    fn promise(&mut self, shader: &mut Shader, promise: Promise) -> (usize, String) {
        let buffer = *self.program.check_buffer.get_or_insert_with(|| {
            self.temporaries.push(Temporary { n_bytes: 0 });
            DeviceBufferId((self.plan.buffers.len() + self.temporaries.len() - 1) as u32)
        });
        self.program.checks.push(promise);
        let temporary = buffer.0 as usize - self.plan.buffers.len();
        self.temporaries[temporary].n_bytes = 12 * self.program.checks.len() as u64;
        (self.program.checks.len() - 1, shader.checks(buffer))
    }

    /// A check of positions, of which the body calls the one of this number, `position{at}(value)`: the value as a number from zero on.
    pub(crate) fn check(&mut self, shader: &mut Shader, check: Check) -> usize {
        let (size, is_wrapped) = (check.size, check.is_wrapped);
        let (at, name) = self.promise(shader, Promise::Position(check));
        let wrapped = if is_wrapped {
            format!("    if (bitcast<i32>(value.y) < 0i) {{ it = long_add(value, vec2<u32>({size}u, 0u)); }}\n")
        } else {
            String::new()
        };
        // A value of which the high word is not zero is negative or large.
        shader.globals.push_str(&format!(
            "fn position{at}(value: vec2<u32>) -> u32 {{
    var it = value;
{wrapped}    if (it.y == 0u && it.x < {size}u) {{ return it.x; }}
    if (atomicExchange(&{name}[{first}u], 1u) == 0u) {{
        atomicStore(&{name}[{second}u], value.x);
        atomicStore(&{name}[{third}u], value.y);
    }}
    return 0u;
}}
",
            first = 3 * at,
            second = 3 * at + 1,
            third = 3 * at + 2,
        ));
        at
    }

    /// The statement that refuses the run, with this code and message.
    pub(crate) fn refusal(&mut self, shader: &mut Shader, op: &str, code: Code, message: &str) -> String {
        let condition = Condition { node: self.node(), op: Arc::from(op), code, message: Arc::from(message) };
        let (at, name) = self.promise(shader, Promise::Condition(condition));
        format!("atomicStore(&{name}[{}u], 1u);", 3 * at)
    }

    /// A buffer for what the dispatches of this step have between them.
    fn temporary(&mut self, n_bytes: u64) -> Result<DeviceBufferId, Reason> {
        if n_bytes > self.limits.buffer_bytes {
            return Err(format!("a buffer of {n_bytes} bytes").into());
        }
        self.temporaries.push(Temporary { n_bytes });
        Ok(DeviceBufferId((self.plan.buffers.len() + self.temporaries.len() - 1) as u32))
    }

    /// A row-major tensor in a temporary buffer.
    pub(crate) fn scratch(&mut self, dtype: DType, sizes: &[usize]) -> Result<View, Reason> {
        let n_elements = sizes.iter().try_fold(1usize, |n, it| n.checked_mul(*it)).ok_or("too many elements")?;
        let n_words = words(dtype).ok_or_else(|| Reason::from(format!("elements of {}", dtype.name())))?;
        let buffer = self.temporary((n_elements as u64).saturating_mul(4 * n_words as u64))?;
        let (sizes, strides) = (Dims::from_slice(sizes), contiguous_strides(sizes));
        Ok(View { buffer, is_packed: false, is_half: false, dtype, sizes, strides, offset: 0 })
    }

    /// A module of the device without a text.
    pub(crate) fn shader(&self) -> Shader {
        Shader::new(self.limits.has_subgroups)
    }

    /// Whether all of these dtypes are numbers of 16 bits that the device has.
    pub(crate) fn are_halves(&self, dtypes: &[DType]) -> bool {
        self.limits.has_f16 && dtypes.iter().all(|it| *it == DType::Float16)
    }

    /// The most workgroups in a dimension.
    pub(crate) fn most_workgroups(&self) -> usize {
        self.limits.workgroups as usize
    }

    /// The node that the step is from.
    pub(crate) fn node(&self) -> Arc<str> {
        Arc::clone(&self.plan.steps[self.step].node)
    }

    /// A run of a module with workgroups of these sizes, in so many of them.
    pub(crate) fn dispatch(
        &mut self,
        shader: Shader,
        workgroup: [u32; 3],
        workgroups: [u32; 3],
    ) -> Result<Dispatch, Reason> {
        if workgroups.iter().any(|it| *it > self.limits.workgroups) {
            return Err(format!("{workgroups:?} workgroups").into());
        }
        let (bindings, text) = shader.finish(workgroup);
        // What one dispatch writes, it has under one name.
        let is_second = |at: usize| {
            let before = bindings[..at].iter().find(|it| it.buffer == bindings[at].buffer);
            before.is_some_and(|it| it.is_written || bindings[at].is_written)
        };
        if (0..bindings.len()).any(is_second) {
            return Err("memory that is read and written as two dtypes".into());
        }
        if bindings.len() > self.limits.bindings {
            return Err(format!("{} tensors at once", bindings.len()).into());
        }
        let next = ModuleId(self.program.modules.len() as u32);
        let module = *self.modules.entry(text).or_insert_with_key(|text| {
            self.program.modules.push(text.clone());
            next
        });
        Ok(Dispatch { module, bindings, workgroups })
    }

    /// A run of a module for each number `i` below `n`. Nothing where there is none.
    pub(crate) fn for_each(&mut self, n: usize, body: impl FnOnce(&mut Shader)) -> Lowered {
        self.try_for_each(n, |_, shader| {
            body(shader);
            Ok(())
        })
    }

    /// As [`Lowering::for_each`], with a body that may find that it is not for the device.
    pub(crate) fn try_for_each(
        &mut self,
        n: usize,
        body: impl FnOnce(&mut Self, &mut Shader) -> Result<(), Reason>,
    ) -> Lowered {
        if n == 0 {
            return Ok(Vec::new());
        }
        let mut shader = self.shader();
        let n = u32::try_from(n).ok().filter(|it| *it <= i32::MAX as u32);
        let n = n.ok_or("more elements than a device numbers")?;
        let (x, y) = self.grid(n.div_ceil(WORKGROUP));
        let group = if y > 1 { format!("(group.x + group.y * {x}u)") } else { "group.x".to_owned() };
        shader.line(format!("let i = {group} * {WORKGROUP}u + local.x;"));
        shader.line(format!("if (i >= {n}u) {{ return; }}"));
        body(self, &mut shader)?;
        Ok(vec![self.dispatch(shader, [WORKGROUP, 1, 1], [x, y, 1])?])
    }

    /// A run of a module with one workgroup of `size` invocations for each number `row` below `n`, in which `local.x` is the number of the
    /// invocation.
    pub(crate) fn for_each_row(
        &mut self,
        n: usize,
        size: u32,
        body: impl FnOnce(&mut Self, &mut Shader) -> Result<(), Reason>,
    ) -> Lowered {
        if n == 0 {
            return Ok(Vec::new());
        }
        let mut shader = self.shader();
        let (x, y) = self.grid(u32::try_from(n).map_err(|_| "more rows than a device numbers")?);
        let row = if y > 1 { format!("group.x + group.y * {x}u") } else { "group.x".to_owned() };
        shader.line(format!("let row = {row};"));
        shader.line(format!("if (row >= {n}u) {{ return; }}"));
        body(self, &mut shader)?;
        Ok(vec![self.dispatch(shader, [size, 1, 1], [x, y, 1])?])
    }

    /// So many workgroups in two dimensions.
    fn grid(&self, n: u32) -> (u32, u32) {
        let x = n.min(self.limits.workgroups).max(1);
        (x, n.div_ceil(x).max(1))
    }
}
