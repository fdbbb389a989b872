//! Tensors and other values on their way in and out.

use crate::Refusal;
use tracefx_core::{Code, DType, Diagnostic, Scalar, Storage, Tensor, contiguous_strides};
use tracefx_ops::Value;
use wasm_bindgen::prelude::wasm_bindgen;

/// A tensor in the engine's memory. JavaScript frees it.
#[wasm_bindgen]
pub struct EngineTensor(pub(crate) Tensor);

#[wasm_bindgen]
impl EngineTensor {
    /// A row-major tensor with a copy of these bytes.
    ///
    /// # Errors
    /// `InvalidOption` for an unknown dtype, `ViewOutOfBounds` where the bytes are fewer than the sizes say.
    #[wasm_bindgen(constructor)]
    pub fn new(dtype: &str, sizes: &[u32], bytes: &[u8]) -> Result<EngineTensor, Refusal> {
        let dtype = DType::from_name(dtype)
            .ok_or_else(|| Diagnostic::new(Code::InvalidOption, format!("there is no dtype {dtype}")))?;
        let sizes: Vec<usize> = sizes.iter().map(|&it| it as usize).collect();
        let storage = Storage::from_bytes(bytes)?;
        Ok(EngineTensor(Tensor::view_of(storage, dtype, &sizes, &contiguous_strides(&sizes), 0)?))
    }

    /// PyTorch's name of the dtype, without `torch.`.
    pub fn dtype(&self) -> String {
        self.0.dtype().name().to_owned()
    }

    /// The sizes.
    pub fn sizes(&self) -> Vec<u32> {
        // An address has 32 bits here, so a size has no more.
        self.0.sizes().iter().map(|&it| it as u32).collect()
    }

    /// The strides, in elements.
    pub fn strides(&self) -> Vec<u32> {
        self.0.strides().iter().map(|&it| it as u32).collect()
    }

    /// The position of the first element in the storage, in elements.
    pub fn offset(&self) -> usize {
        self.0.offset()
    }

    /// A number that two tensors share exactly when they share a storage.
    pub fn storage_id(&self) -> usize {
        self.0.storage().id()
    }

    /// The bytes of the storage.
    pub fn storage_bytes(&self) -> usize {
        self.0.storage().len()
    }

    /// The bytes of the elements.
    pub fn byte_length(&self) -> usize {
        self.0.numel() * self.0.dtype().size()
    }

    /// The elements in row-major order, as bytes.
    ///
    /// # Errors
    /// `OutOfMemory` where a copy cannot be allocated.
    pub fn read(&self) -> Result<Vec<u8>, Refusal> {
        Ok(self.0.to_bytes()?)
    }
}

/// A list of values: the inputs or outputs of a call.
#[wasm_bindgen]
#[derive(Default)]
pub struct Values(pub(crate) Vec<Value<Tensor>>);

#[wasm_bindgen]
impl Values {
    /// No values.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Values {
        Values::default()
    }

    /// Appends a tensor, which stays usable and shares its memory.
    pub fn push_tensor(&mut self, tensor: &EngineTensor) {
        self.0.push(Value::Tensor(tensor.0.clone()));
    }

    /// Appends an int.
    pub fn push_int(&mut self, value: i64) {
        self.0.push(Value::int(value));
    }

    /// Appends a float.
    pub fn push_float(&mut self, value: f64) {
        self.0.push(Value::Float(value));
    }

    /// Appends a bool.
    pub fn push_bool(&mut self, value: bool) {
        self.0.push(Value::Bool(value));
    }

    /// Appends a string.
    pub fn push_str(&mut self, value: &str) {
        self.0.push(Value::Str(value.into()));
    }

    /// Appends `None`.
    pub fn push_none(&mut self) {
        self.0.push(Value::None);
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the value at this position is: `Tensor`, `int`, `float`, `bool`, `str`, `None` or another Python type.
    ///
    /// # Errors
    /// `IndexOutOfRange` where there is none.
    pub fn kind(&self, index: usize) -> Result<String, Refusal> {
        Ok(self.at(index)?.kind_name().to_owned())
    }

    /// The tensor at this position.
    ///
    /// # Errors
    /// `InputType` where the value is something else.
    pub fn tensor(&self, index: usize) -> Result<EngineTensor, Refusal> {
        match self.at(index)? {
            Value::Tensor(tensor) => Ok(EngineTensor(tensor.clone())),
            other => Err(wrong_kind(other, "Tensor")),
        }
    }

    /// The int at this position.
    ///
    /// # Errors
    /// `InputType` where the value is something else.
    pub fn int(&self, index: usize) -> Result<i64, Refusal> {
        match self.scalar(index)? {
            Scalar::Int(it) => Ok(it),
            Scalar::Bool(_) | Scalar::Float(_) | Scalar::Complex(_) => Err(wrong_kind(self.at(index)?, "int")),
        }
    }

    /// The float at this position.
    ///
    /// # Errors
    /// `InputType` where the value is something else.
    pub fn float(&self, index: usize) -> Result<f64, Refusal> {
        match self.scalar(index)? {
            Scalar::Float(it) => Ok(it),
            Scalar::Bool(_) | Scalar::Int(_) | Scalar::Complex(_) => Err(wrong_kind(self.at(index)?, "float")),
        }
    }

    /// The bool at this position.
    ///
    /// # Errors
    /// `InputType` where the value is something else.
    pub fn bool(&self, index: usize) -> Result<bool, Refusal> {
        match self.scalar(index)? {
            Scalar::Bool(it) => Ok(it),
            Scalar::Int(_) | Scalar::Float(_) | Scalar::Complex(_) => Err(wrong_kind(self.at(index)?, "bool")),
        }
    }

    /// The string at this position.
    ///
    /// # Errors
    /// `InputType` where the value is something else.
    pub fn str(&self, index: usize) -> Result<String, Refusal> {
        match self.at(index)? {
            Value::Str(it) => Ok(it.to_string()),
            other => Err(wrong_kind(other, "str")),
        }
    }

    fn at(&self, index: usize) -> Result<&Value<Tensor>, Refusal> {
        self.0.get(index).ok_or_else(|| {
            Diagnostic::new(Code::IndexOutOfRange, format!("there is no value {index}: there are {}", self.0.len()))
                .into()
        })
    }

    fn scalar(&self, index: usize) -> Result<Scalar, Refusal> {
        let value = self.at(index)?;
        value.as_scalar().ok_or_else(|| wrong_kind(value, "number"))
    }
}

fn wrong_kind(value: &Value<Tensor>, expected: &str) -> Refusal {
    Diagnostic::new(Code::InputType, format!("the value is a {} and not a {expected}", value.kind_name())).into()
}
