//! Inputs from `.safetensors` files, and outputs to them, by the names of a program's signature.

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};
use tracefx_core::{Code, DType, Diagnostic, Result, Storage, Tensor, allocate, contiguous_strides};
use tracefx_export::{Argument, ExportedProgram};
use tracefx_ops::Value;

/// Values without structure: the inputs or outputs of a call, flattened.
pub type Values = Vec<Value<Tensor>>;

/// The user's inputs, flattened, from the bytes of a `.safetensors` file: `in0`, `in1`… by position, or the names of the
/// graph's inputs. Inputs that were fixed when the program was exported are filled in.
///
/// # Errors
/// `ArchiveMalformed` where the bytes are not such a file, `InputCount` where an input is missing or unknown.
pub fn read_inputs(program: &ExportedProgram, bytes: &[u8]) -> Result<Values> {
    let file = parse(bytes)?;
    let mut taken = Vec::new();
    let mut inputs = Vec::new();
    for (position, spec) in program.signature.user_inputs().enumerate() {
        let by_position = format!("in{position}");
        let name = spec.arg.name();
        let found = [by_position.as_str(), name].into_iter().find(|it| file.tensor(it).is_ok());
        inputs.push(match (found, &spec.arg) {
            (Some(found), Argument::SymInt(_) | Argument::SymFloat(_) | Argument::SymBool(_)) => {
                taken.push(found.to_string());
                tensor_of(&file, found)?.item()?.into()
            }
            (Some(found), _) => {
                taken.push(found.to_string());
                Value::Tensor(tensor_of(&file, found)?)
            }
            (None, Argument::Constant { value, .. }) => value.to_value(),
            (None, _) => {
                let names = names(&file).join(", ");
                return Err(Diagnostic::new(Code::InputCount, format!("input {position} (`{name}`) is missing"))
                    .note(format!("the file holds {names}"))
                    .help(format!("call it `{by_position}` or `{name}` in the file")));
            }
        });
    }
    match names(&file).into_iter().find(|it| !taken.iter().any(|name| name == it)) {
        Some(extra) => Err(Diagnostic::new(Code::InputCount, format!("the program has no input `{extra}`"))
            .help("tracefx inspect shows its inputs")),
        None => Ok(inputs),
    }
}

/// The bytes of a `.safetensors` file with the user's outputs as `out0`, `out1`…; outputs that are numbers become 0-d
/// tensors, and `None` is left out.
///
/// # Errors
/// `NotImplemented` for outputs that such a file cannot hold.
pub fn write_outputs(outputs: &[Value<Tensor>]) -> Result<Vec<u8>> {
    let mut entries = Vec::new();
    for (position, output) in outputs.iter().enumerate() {
        let tensor = match (output, output.as_scalar()) {
            (Value::Tensor(tensor), _) => tensor.clone(),
            (Value::None, _) => continue,
            (_, Some(scalar)) => {
                let dtype =
                    if scalar.default_dtype() == DType::Float32 { DType::Float64 } else { scalar.default_dtype() };
                Tensor::full(dtype, &[], scalar)?
            }
            (other, None) => {
                let what =
                    format!("output {position} is a {}, which a .safetensors file cannot hold", other.kind_name());
                return Err(Diagnostic::new(Code::NotImplemented, what));
            }
        };
        entries.push((format!("out{position}"), tensor));
    }
    write_tensors(&entries)
}

/// The tensors of a `.safetensors` file by name, in the order of their bytes.
///
/// # Errors
/// `ArchiveMalformed` where the bytes are not such a file.
pub fn read_tensors(bytes: &[u8]) -> Result<Vec<(String, Tensor)>> {
    let file = parse(bytes)?;
    names(&file).into_iter().map(|name| Ok((name.to_string(), tensor_of(&file, name)?))).collect()
}

/// The bytes of a `.safetensors` file with these tensors.
///
/// # Errors
/// `NotImplemented` for a dtype that such a file cannot hold, `OutOfMemory` where the bytes do not fit.
pub fn write_tensors(tensors: &[(String, Tensor)]) -> Result<Vec<u8>> {
    let failed = |problem: String| Diagnostic::new(Code::Internal, format!("writing tensors: {problem}"));
    let dtyped = tensors.iter().map(|it| Ok((dtype_to_file(it.1.dtype())?, it)));
    let mut sorted = dtyped.collect::<Result<Vec<_>>>()?;
    // As the crate's own `serialize` sorts them, whose buffer cannot be refused: the widest first, and then by name.
    sorted.sort_by(|(dtype, (name, _)), (other_dtype, (other, _))| other_dtype.cmp(dtype).then(name.cmp(other)));
    let (mut entries, mut end) = (Vec::new(), 0);
    for (dtype, (name, tensor)) in &sorted {
        let start = end;
        end += tensor.numel() * tensor.dtype().size();
        let shape = tensor.sizes().to_vec();
        entries.push((name.clone(), TensorInfo { dtype: *dtype, shape, data_offsets: (start, end) }));
    }
    let metadata = Metadata::new(None, entries).map_err(|problem| failed(problem.to_string()))?;
    let mut written = allocate::Written::default();
    serde_json::to_writer(&mut written, &metadata)
        .map_err(|problem| allocate::io_problem(problem.into(), |problem| failed(problem.to_string())))?;
    let mut header = written.0;
    let len = header.len().next_multiple_of(8);
    allocate::resize(&mut header, len, b' ')?;
    if len > MAX_HEADER {
        return Err(failed(SafeTensorError::HeaderTooLarge.to_string()));
    }
    let mut bytes = allocate::with_room(8 + header.len() + end)?;
    bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&header);
    for (_, (_, tensor)) in sorted {
        with_elements(tensor, |it| bytes.extend_from_slice(it))?;
    }
    Ok(bytes)
}

/// Gives the elements of a tensor, row-major, to who reads them.
///
/// # Errors
/// `OutOfMemory` where they lie otherwise in memory and cannot be copied.
pub(crate) fn with_elements<T>(tensor: &Tensor, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
    let (dense, size) = (tensor.contiguous()?, tensor.dtype().size());
    let guard = dense.storage().read();
    // An empty tensor may have any offset.
    let start = if dense.numel() == 0 { 0 } else { dense.offset() * size };
    Ok(read(&guard.bytes()[start..][..dense.numel() * size]))
}

/// The length of a header that the crate reads.
const MAX_HEADER: usize = 100_000_000;

fn parse(bytes: &[u8]) -> Result<SafeTensors<'_>> {
    SafeTensors::deserialize(bytes).map_err(|problem| {
        Diagnostic::new(Code::ArchiveMalformed, format!("this is not a .safetensors file: {problem}"))
    })
}

/// The names in a file, in the order of the bytes; the file itself has them in no order.
fn names<'a>(file: &'a SafeTensors<'_>) -> Vec<&'a str> {
    let mut tensors: Vec<_> = file.iter().map(|(name, it)| (it.data().as_ptr(), name)).collect();
    tensors.sort_unstable();
    tensors.into_iter().map(|it| it.1).collect()
}

fn tensor_of(file: &SafeTensors<'_>, name: &str) -> Result<Tensor> {
    let view = file.tensor(name).map_err(|problem| Diagnostic::new(Code::ArchiveMalformed, problem.to_string()))?;
    let dtype = DTYPES.iter().find(|(_, it)| *it == view.dtype()).map(|(dtype, _)| *dtype);
    let dtype = dtype.ok_or_else(|| {
        Diagnostic::new(
            Code::NotImplemented,
            format!("`{name}` is of dtype {:?}, which is not implemented", view.dtype()),
        )
    })?;
    let storage = Storage::from_bytes(view.data())?;
    Tensor::view_of(storage, dtype, view.shape(), &contiguous_strides(view.shape()), 0)
}

fn dtype_to_file(dtype: DType) -> Result<Dtype> {
    let found = DTYPES.iter().find(|(it, _)| *it == dtype).map(|(_, dtype)| *dtype);
    found.ok_or_else(|| Diagnostic::unsupported_dtype(dtype, "writing a .safetensors file"))
}

const DTYPES: &[(DType, Dtype)] = &[
    (DType::Bool, Dtype::BOOL),
    (DType::UInt8, Dtype::U8),
    (DType::Int8, Dtype::I8),
    (DType::UInt16, Dtype::U16),
    (DType::Int16, Dtype::I16),
    (DType::UInt32, Dtype::U32),
    (DType::Int32, Dtype::I32),
    (DType::UInt64, Dtype::U64),
    (DType::Int64, Dtype::I64),
    (DType::Float8E4M3FN, Dtype::F8_E4M3),
    (DType::Float8E5M2, Dtype::F8_E5M2),
    (DType::Float16, Dtype::F16),
    (DType::BFloat16, Dtype::BF16),
    (DType::Float32, Dtype::F32),
    (DType::Float64, Dtype::F64),
    (DType::Complex64, Dtype::C64),
];
