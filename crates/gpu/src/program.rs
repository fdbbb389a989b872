//! The program of a device: what it does in the place of a plan's steps, as plain data, which any host of a GPU can execute.

use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use tracefx_core::{Code, DType, Diagnostic};
use tracefx_plan::BufferId;
use ts_rs::{Config, TS};

/// A number of a device's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct DeviceBufferId(pub u32);

/// A number of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ModuleId(pub u32);

/// A plan as a device executes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, TS)]
pub struct Program {
    /// The bytes of each buffer of the device.
    #[ts(type = "number[]")]
    pub buffers: Vec<u64>,
    /// Where the elements of each buffer of the plan are; nothing of those that are on the CPU alone.
    pub places: Vec<Option<Place>>,
    /// The modules, in WGSL. Each has one entry point, `main`, and its bindings in group 0.
    pub modules: Vec<String>,
    /// What is done for each step of the plan, in order.
    pub steps: Vec<DeviceStep>,
    /// The plan's buffers that come down at the end: results, and what the plan has changed of inputs and of the program.
    #[ts(type = "number[]")]
    pub outputs: Vec<BufferId>,
    /// The constants that the device reads before anything has written to them.
    #[ts(type = "number[]")]
    pub constants: Vec<BufferId>,
    /// Of those that come down at the end, what the plan has changed of the program's own memory and does not give: it may stay on the device
    /// from run to run. Nothing where the CPU does a step, which would have to see it.
    #[ts(type = "number[]")]
    pub kept: Vec<BufferId>,
    /// What the data can break. A shader that finds it broken writes to the buffer of checks.
    #[serde(serialize_with = "counted")]
    #[ts(type = "number")]
    pub checks: Vec<Promise>,
    /// The buffer of checks, three words for each: whether it is broken, and the two words of the value that breaks it.
    #[ts(type = "number | null")]
    pub check_buffer: Option<DeviceBufferId>,
}

/// The elements of a plan's buffer on the device, in the order of the plan's memory, so that offsets and strides are the same. An
/// element of up to four bytes is a word, or a part of one where they are packed; one of eight is two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
pub struct Place {
    /// The device's buffer.
    #[ts(type = "number")]
    pub buffer: DeviceBufferId,
    /// What the elements are.
    #[serde(serialize_with = "named")]
    #[ts(type = "DType")]
    pub dtype: DType,
    /// How many there are.
    pub n_elements: usize,
    /// Whether the bytes are those of the CPU, several elements to a word: of constants that nothing writes to on the device, and of memory of
    /// the plan in float16, where the device has such numbers.
    pub is_packed: bool,
}

impl Place {
    /// The bytes of the device that the elements take.
    pub fn n_bytes(&self) -> u64 {
        let n_elements = self.n_elements as u64;
        if self.is_packed {
            return (n_elements * self.dtype.size() as u64).next_multiple_of(4);
        }
        n_elements.saturating_mul(4 * words(self.dtype).unwrap_or(1) as u64)
    }
}

/// What is done for a step of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct DeviceStep {
    /// What comes down from the device before it.
    #[ts(type = "number[]")]
    pub downloads: Vec<BufferId>,
    /// What goes up to the device before it.
    #[ts(type = "number[]")]
    pub uploads: Vec<BufferId>,
    /// What is filled with zeros on the device before it.
    #[ts(type = "number[]")]
    pub clears: Vec<BufferId>,
    /// Who does its work.
    pub work: Work,
}

/// Who does the work of a step.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Work {
    /// The device, in this order.
    Device(Vec<Dispatch>),
    /// The CPU, for this reason.
    Cpu(#[ts(type = "string")] Reason),
}

/// Why a step is not the device's.
pub type Reason = Cow<'static, str>;

/// A run of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct Dispatch {
    /// The module.
    #[ts(type = "number")]
    pub module: ModuleId,
    /// The whole buffers that it is given, in the order of its bindings.
    pub bindings: Vec<Binding>,
    /// The numbers of workgroups.
    pub workgroups: [u32; 3],
}

/// A buffer that a module is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, TS)]
pub struct Binding {
    /// The buffer.
    #[ts(type = "number")]
    pub buffer: DeviceBufferId,
    /// Whether the module writes to it.
    pub is_written: bool,
}

/// A promise about the data that a shader looks after: the values of a tensor lie between zero and a size, or, where they are wrapped,
/// between that size below zero and it. A value that does not is counted as the nearest that does, and the check is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The node that the step is from.
    pub node: Arc<str>,
    /// The operator.
    pub op: Arc<str>,
    /// The dimension that the values are positions in.
    pub dim: usize,
    /// Its size.
    pub size: usize,
    /// Whether values below zero count from the end.
    pub is_wrapped: bool,
}

/// What must hold of the data: a divisor is not zero, or an assertion is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The node that the step is from.
    pub node: Arc<str>,
    /// The operator.
    pub op: Arc<str>,
    /// What a run is refused with where it does not hold.
    pub code: Code,
    /// The words of the CPU's kernel.
    pub message: Arc<str>,
}

/// What the data can break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Values are positions.
    Position(Check),
    /// A condition holds.
    Condition(Condition),
}

/// What a device can do at most; the least that WebGPU grants everywhere are the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Buffers of a module.
    pub bindings: usize,
    /// Bytes of a buffer.
    pub buffer_bytes: u64,
    /// Workgroups in a dimension.
    pub workgroups: u32,
    /// Whether it has numbers of 16 bits in registers and in buffers: `shader-f16` of WebGPU.
    pub has_f16: bool,
    /// Whether invocations of a subgroup can add up what they have, and tell which subgroup of their workgroup they are: `subgroups` of
    /// WebGPU with `subgroup_id` of WGSL.
    pub has_subgroups: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let (has_f16, has_subgroups) = (false, false);
        Limits { bindings: 8, buffer_bytes: 128 << 20, workgroups: 65535, has_f16, has_subgroups }
    }
}

/// The TypeScript of a program, with its documentation.
pub fn program_types() -> Vec<String> {
    fn declared<T: TS>(config: &Config) -> String {
        format!("{}export {}", T::docs().unwrap_or_default(), T::decl(config))
    }
    let config = Config::new().with_large_int("number");
    vec![
        declared::<Program>(&config),
        declared::<Place>(&config),
        declared::<DeviceStep>(&config),
        declared::<Work>(&config),
        declared::<Dispatch>(&config),
        declared::<Binding>(&config),
    ]
}

fn named<S: Serializer>(dtype: &DType, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(dtype.name())
}

fn counted<S: Serializer>(checks: &[Promise], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(checks.len() as u64)
}

impl Program {
    /// Refuses a run of which the data has broken a check, in the words of the CPU's kernels; the words are those of the buffer of checks.
    ///
    /// # Errors
    /// `IndexOutOfRange` where a value is no position, and the code of a condition that does not hold.
    pub fn check(&self, words: &[u32]) -> Result<(), Diagnostic> {
        let broken = words.chunks_exact(3).zip(&self.checks).find(|(it, _)| it[0] != 0);
        let Some((it, promise)) = broken else { return Ok(()) };
        let Check { node, op, dim, size, is_wrapped } = match promise {
            Promise::Position(check) => check,
            Promise::Condition(Condition { node, op, code, message }) => {
                return Err(Diagnostic::new(*code, &**message).op(&**op).node(&**node));
            }
        };
        let value = ((u64::from(it[2]) << 32) | u64::from(it[1])) as i64;
        let what = match is_wrapped {
            true => format!("index {value} is out of bounds for dimension {dim} with size {size}"),
            false => format!("index out of range in self: {value} is not in [0, {size})"),
        };
        Err(Diagnostic::new(Code::IndexOutOfRange, what).op(&**op).node(&**node))
    }

    /// How many steps the device does, and how many the CPU.
    pub fn count(&self) -> (usize, usize) {
        let n_device = self.steps.iter().filter(|it| matches!(it.work, Work::Device(_))).count();
        (n_device, self.steps.len() - n_device)
    }

    /// The bytes on the device of a buffer of the plan; nothing of one that is not there.
    pub fn bytes_of(&self, buffer: BufferId) -> u64 {
        self.places.get(buffer.0 as usize).copied().flatten().map_or(0, |it| it.n_bytes())
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            for (word, buffers) in [("down", &step.downloads), ("up", &step.uploads), ("clear", &step.clears)] {
                for buffer in buffers {
                    writeln!(f, "{word} buffer {}", buffer.0)?;
                }
            }
            match &step.work {
                Work::Cpu(reason) => writeln!(f, "step {at} on the CPU: {reason}")?,
                Work::Device(dispatches) => {
                    writeln!(f, "step {at}")?;
                    for it in dispatches {
                        let bindings: Vec<String> = it
                            .bindings
                            .iter()
                            .map(|it| format!("{}{}", it.buffer.0, if it.is_written { "!" } else { "" }))
                            .collect();
                        writeln!(f, "    module {} on {} in {:?}", it.module.0, bindings.join(" "), it.workgroups)?;
                    }
                }
            }
        }
        self.outputs.iter().try_for_each(|it| writeln!(f, "down buffer {}", it.0))
    }
}

/// How many words an element takes on the device; nothing where it cannot be there.
pub fn words(dtype: DType) -> Option<usize> {
    match dtype.size() {
        1 | 2 | 4 => Some(1),
        8 => Some(2),
        _ => None,
    }
}
