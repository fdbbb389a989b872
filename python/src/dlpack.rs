//! DLPack: tensors of other libraries as they lie in memory, and ours for them. The layout of the structures is that of version 1.1 of
//! its header.

use crate::errors::{OrRaise, refused};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::Arc;
use tracefx::core::Storage;
use tracefx::{Code, DType, Tensor};

/// The kind and the number of the CPU.
pub(crate) const CPU: (i32, i32) = (1, 0);
/// Memory of the CPU that a GPU may read.
const PINNED: i32 = 3;

const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const VERSIONED_NAME: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

#[repr(C)]
struct DLDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    dtype: DLDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct DLManagedTensor {
    tensor: DLTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

#[repr(C)]
struct DLManagedTensorVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
    tensor: DLTensor,
}

const DTYPES: &[(DType, u8, u8)] = &[
    (DType::Int8, 0, 8),
    (DType::Int16, 0, 16),
    (DType::Int32, 0, 32),
    (DType::Int64, 0, 64),
    (DType::UInt8, 1, 8),
    (DType::UInt16, 1, 16),
    (DType::UInt32, 1, 32),
    (DType::UInt64, 1, 64),
    (DType::Float16, 2, 16),
    (DType::Float32, 2, 32),
    (DType::Float64, 2, 64),
    (DType::BFloat16, 4, 16),
    (DType::Complex32, 5, 32),
    (DType::Complex64, 5, 64),
    (DType::Complex128, 5, 128),
    (DType::Bool, 6, 8),
    (DType::Float8E4M3FN, 10, 8),
    (DType::Float8E4M3FNUZ, 11, 8),
    (DType::Float8E5M2, 12, 8),
    (DType::Float8E5M2FNUZ, 13, 8),
    (DType::Float8E8M0FNU, 14, 8),
];

/// A structure of another library, which is let go when nobody looks at its memory any more.
enum Managed {
    Plain(NonNull<DLManagedTensor>),
    Versioned(NonNull<DLManagedTensorVersioned>),
}

/// The memory of a tensor of another library.
struct Memory {
    managed: Managed,
    start: *mut u8,
    len: usize,
}

// SAFETY: DLPack lets any thread read the memory and call the deleter. Python's libraries take the interpreter's lock in theirs.
unsafe impl Send for Memory {}
// SAFETY: as above; what is shared is read alone.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.managed {
            // SAFETY: the structure came out of a capsule that is marked as used, so that this is its only owner.
            Managed::Plain(it) => unsafe {
                if let Some(deleter) = it.as_ref().deleter {
                    deleter(it.as_ptr());
                }
            },
            // SAFETY: as above.
            Managed::Versioned(it) => unsafe {
                if let Some(deleter) = it.as_ref().deleter {
                    deleter(it.as_ptr());
                }
            },
        }
    }
}

/// Who reads the memory.
struct Reader(Arc<Memory>);

impl AsRef<[u8]> for Reader {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the library says that these bytes are the elements of a tensor and lives until the deleter is called. Whoever
        // writes to an input while a program runs has a race, as with every library that lets go of the interpreter's lock.
        unsafe { std::slice::from_raw_parts(self.0.start, self.0.len) }
    }
}

/// A tensor of another library: the engine's view of it, and what is to be done where the program writes to it.
pub(crate) struct Imported {
    pub(crate) tensor: Tensor,
    memory: Arc<Memory>,
    version: u64,
    is_read_only: bool,
}

impl Imported {
    /// Writes what a program has written to its input into the memory that it came from.
    pub(crate) fn write_back(&self, py: Python<'_>) -> PyResult<()> {
        if self.tensor.storage().version() == self.version {
            return Ok(());
        }
        if self.is_read_only {
            let help = "give a writable array, or a copy of it";
            return Err(refused(
                py,
                Code::InvalidArgument,
                "the program writes to an input that is not writable",
                help,
            ));
        }
        let guard = self.tensor.storage().read();
        let (bytes, size) = (guard.bytes(), self.tensor.dtype().size());
        for at in self.tensor.offsets().map(|it| it * size) {
            if at + size <= self.memory.len.min(bytes.len()) {
                // SAFETY: the element lies in the memory of the other tensor, which is writable, and does not overlap the engine's.
                unsafe { std::ptr::copy_nonoverlapping(bytes[at..].as_ptr(), self.memory.start.add(at), size) };
            }
        }
        Ok(())
    }
}

/// Whether other libraries can read the object by DLPack.
pub(crate) fn is_exporter(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.hasattr("__dlpack__")
}

/// The tensor of another library, as it lies in memory.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Imported> {
    let py = object.py();
    // PyTorch refuses to tell the device of a tensor without data.
    let device = object.call_method0("__dlpack_device__").and_then(|it| it.extract::<(i32, i32)>());
    if !device.is_ok_and(|(kind, _)| kind == CPU.0 || kind == PINNED) {
        return Err(refused(py, Code::InputType, "a tensor is not on the CPU", "call its method cpu()"));
    }
    let (capsule, is_copy) = capsule_of(object)?;
    let valid = |name: &CStr| capsule.is_valid_checked(Some(name));
    let (managed, tensor, is_read_only) = if valid(VERSIONED_NAME) {
        let it = capsule.pointer_checked(Some(VERSIONED_NAME))?.cast::<DLManagedTensorVersioned>();
        // SAFETY: a capsule of this name holds such a structure, whose first field says how the rest is read.
        let whole = unsafe { it.as_ref() };
        if whole.major != 1 {
            return Err(PyBufferError::new_err(format!("DLPack {} is not known here", whole.major)));
        }
        (Managed::Versioned(it), &whole.tensor, whole.flags & READ_ONLY != 0)
    } else if valid(NAME) {
        let it = capsule.pointer_checked(Some(NAME))?.cast::<DLManagedTensor>();
        // SAFETY: a capsule of this name holds such a structure.
        (Managed::Plain(it), unsafe { &it.as_ref().tensor }, false)
    } else {
        return Err(PyTypeError::new_err("__dlpack__ gave no capsule of DLPack"));
    };
    let view = View::read(py, tensor)?;
    let memory = Arc::new(Memory { managed, start: view.start, len: view.len });
    let used = if matches!(memory.managed, Managed::Versioned(_)) { VERSIONED_USED } else { USED };
    // SAFETY: the capsule is one, and the name lives for ever.
    unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) };
    let tensor = view.tensor(&memory).or_raise(py)?;
    let version = tensor.storage().version();
    Ok(Imported { tensor, memory, version, is_read_only: is_read_only || is_copy || view.is_reversed() })
}

/// The capsule of an object, and whether it is of a copy: where the object cannot say that it is not to be written to.
fn capsule_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyCapsule>, bool)> {
    let py = object.py();
    // PyTorch gives out no tensor that gradients flow to.
    let has_gradient = object.getattr("requires_grad").is_ok_and(|it| it.is_truthy().unwrap_or(false));
    let object = if has_gradient { object.call_method0("detach")? } else { object.clone() };
    let options = PyDict::new(py);
    options.set_item("max_version", (1, 1))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0("__dlpack__"),
        other => other,
    };
    let (capsule, is_copy) = match capsule {
        Err(error) if error.is_instance_of::<PyBufferError>(py) && object.hasattr("__array_interface__")? => {
            (object.call_method0("copy")?.call_method0("__dlpack__"), true)
        }
        other => (other, false),
    };
    let capsule = capsule.map_err(|error| match error.is_instance_of::<PyBufferError>(py) {
        true => {
            let what = format!("{} cannot be read: {}", object.get_type(), error.value(py));
            refused(
                py,
                Code::InputType,
                what,
                "convert it to a dense array of numbers, such as array.astype(\"float32\")",
            )
        }
        false => error,
    })?;
    Ok((capsule.cast_into::<PyCapsule>()?, is_copy))
}

/// What a structure of DLPack says of its tensor.
struct View {
    dtype: DType,
    sizes: Vec<usize>,
    /// In elements.
    strides: Vec<isize>,
    /// The first byte of its memory, and how many there are.
    start: *mut u8,
    len: usize,
    /// Where in these the first element is, in elements.
    first: usize,
}

impl View {
    fn read(py: Python<'_>, tensor: &DLTensor) -> PyResult<Self> {
        let DLDataType { code, bits, lanes } = tensor.dtype;
        let dtype = DTYPES.iter().find(|it| (it.1, it.2, 1) == (code, bits, lanes)).map(|it| it.0);
        let dtype = dtype.ok_or_else(|| {
            let what = format!("DLPack's type {code} of {bits} bits and {lanes} lanes is no dtype of PyTorch");
            refused(py, Code::InputType, what, "convert the tensor")
        })?;
        let rank = usize::try_from(tensor.ndim).unwrap_or(0);
        let numbers = |it: *mut i64| {
            // SAFETY: DLPack says that there are as many numbers as dimensions.
            if rank == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(it, rank) } }
        };
        let sizes: Vec<usize> = numbers(tensor.shape).iter().map(|&it| usize::try_from(it).unwrap_or(0)).collect();
        let strides = match tensor.strides.is_null() {
            true => tracefx::core::contiguous_strides(&sizes).iter().map(|&it| it as isize).collect(),
            false => numbers(tensor.strides).iter().map(|&it| it as isize).collect::<Vec<_>>(),
        };
        if sizes.contains(&0) {
            let start = NonNull::<u128>::dangling().as_ptr().cast();
            return Ok(View { dtype, sizes, strides, start, len: 0, first: 0 });
        }
        let ends = |keep: fn(isize) -> bool| {
            let reach = sizes.iter().zip(&strides).filter(|(_, stride)| keep(**stride));
            reach.map(|(size, stride)| (size - 1) * stride.unsigned_abs()).sum::<usize>()
        };
        let (before, behind) = (ends(|it| it < 0), ends(|it| it > 0));
        let (size, offset) = (dtype.size(), tensor.byte_offset as usize);
        // SAFETY: the elements of a tensor lie in one allocation.
        let start = unsafe { tensor.data.cast::<u8>().add(offset).sub(before * size) };
        Ok(View { dtype, sizes, strides, start, len: (before + behind + 1) * size, first: before })
    }

    /// Whether it runs backwards along an axis, which the engine's tensors do not.
    fn is_reversed(&self) -> bool {
        self.sizes.iter().zip(&self.strides).any(|(&size, &stride)| size > 1 && stride < 0)
    }

    fn tensor(&self, memory: &Arc<Memory>) -> tracefx::Result<Tensor> {
        if self.len == 0 {
            return Tensor::zeros(self.dtype, &self.sizes);
        }
        let reader = Reader(Arc::clone(memory));
        if !self.is_reversed() {
            let strides: Vec<usize> = self.strides.iter().map(|it| it.unsigned_abs()).collect();
            return Tensor::view_of(Storage::from_owner(reader)?, self.dtype, &self.sizes, &strides, self.first);
        }
        // Mirrored, element by element.
        let (bytes, size) = (reader.as_ref(), self.dtype.size());
        let res = Tensor::unfilled(self.dtype, &self.sizes)?;
        let mut guard = res.storage().write()?;
        let mut index = vec![0usize; self.sizes.len()];
        for element in guard.bytes_mut().chunks_exact_mut(size) {
            let moved: isize = index.iter().zip(&self.strides).map(|(&at, stride)| at as isize * stride).sum();
            let at = self.first.wrapping_add_signed(moved) * size;
            element.copy_from_slice(&bytes[at..at + size]);
            for (at, &n) in index.iter_mut().zip(&self.sizes).rev() {
                *at += 1;
                if *at < n {
                    break;
                }
                *at = 0;
            }
        }
        drop(guard);
        Ok(res)
    }
}

/// A structure of ours with what it points to.
struct Exported<M> {
    managed: M,
    _tensor: Tensor,
    _shape: Box<[i64]>,
    _strides: Box<[i64]>,
}

/// A capsule over the memory of a tensor.
pub(crate) fn export<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    is_versioned: bool,
    is_copied: bool,
) -> PyResult<Bound<'py, PyAny>> {
    // Who has a lazy clone to himself has its memory as it is: whoever writes to the tensor writes to a copy.
    let storage = tensor.storage().lazy_clone();
    let kept =
        Tensor::view_of(storage, tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.offset()).or_raise(py)?;
    let numbers = |it: &[usize]| it.iter().map(|&it| it as i64).collect::<Box<[i64]>>();
    let (mut shape, mut strides) = (numbers(kept.sizes()), numbers(kept.strides()));
    let (_, code, bits) = DTYPES.iter().find(|it| it.0 == kept.dtype()).expect("every dtype has a row");
    let start = kept.storage().read().bytes().as_ptr();
    let described = DLTensor {
        data: start.wrapping_add(kept.offset() * kept.dtype().size()).cast_mut().cast(),
        device_type: CPU.0,
        device_id: CPU.1,
        ndim: kept.rank() as i32,
        dtype: DLDataType { code: *code, bits: *bits, lanes: 1 },
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let null = std::ptr::null_mut();
    if is_versioned {
        let flags = if is_copied { IS_COPIED } else { READ_ONLY };
        let deleter = Some(let_go_versioned as unsafe extern "C" fn(_));
        let managed = DLManagedTensorVersioned { major: 1, minor: 1, context: null, deleter, flags, tensor: described };
        let exported = Box::into_raw(Box::new(Exported { managed, _tensor: kept, _shape: shape, _strides: strides }));
        // SAFETY: the box was just made.
        let managed = unsafe {
            (*exported).managed.context = exported.cast();
            NonNull::from(&mut (*exported).managed).cast()
        };
        // SAFETY: the structure lives until its deleter is called, by who takes it out or by the capsule.
        unsafe { PyCapsule::new_with_pointer_and_destructor(py, managed, VERSIONED_NAME, Some(drop_versioned)) }
    } else {
        let deleter = Some(let_go as unsafe extern "C" fn(_));
        let managed = DLManagedTensor { tensor: described, context: null, deleter };
        let exported = Box::into_raw(Box::new(Exported { managed, _tensor: kept, _shape: shape, _strides: strides }));
        // SAFETY: the box was just made.
        let managed = unsafe {
            (*exported).managed.context = exported.cast();
            NonNull::from(&mut (*exported).managed).cast()
        };
        // SAFETY: as above.
        unsafe { PyCapsule::new_with_pointer_and_destructor(py, managed, NAME, Some(drop_plain)) }
    }
    .map(Bound::into_any)
}

unsafe extern "C" fn let_go(it: *mut DLManagedTensor) {
    // SAFETY: the context is the box that `export` made, and a deleter is called once.
    drop(unsafe { Box::from_raw((*it).context.cast::<Exported<DLManagedTensor>>()) });
}

unsafe extern "C" fn let_go_versioned(it: *mut DLManagedTensorVersioned) {
    // SAFETY: as above.
    drop(unsafe { Box::from_raw((*it).context.cast::<Exported<DLManagedTensorVersioned>>()) });
}

/// Lets go of what nobody took out of the capsule: it has its first name still.
unsafe extern "C" fn drop_plain(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is the one that `export` made.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            let_go(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED_NAME.as_ptr()) == 1 {
            let_go_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED_NAME.as_ptr()).cast());
        }
    }
}
