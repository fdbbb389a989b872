//! A call of one operator by its name, on tensors that are there. Which overload is meant is decided by `ops`, and how it
//! is computed by `exec`.

use crate::Library;
use tracefx_core::{Result, Tensor};
use tracefx_exec::Called;
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::{Tol, Value};

/// Calls one operator on tensors, as PyTorch's Python functions do: `aten.add`, whose overload is found by the arguments,
/// or `aten.add.Tensor`.
///
/// # Errors
/// `NotImplemented` where there is no such operator, `SchemaMismatch` where the arguments fit none of its overloads; else
/// what the operator refuses.
///
/// ```
/// use tracefx_core::Tensor;
/// use tracefx_engine::call;
/// use tracefx_ops::Value;
///
/// let x = Value::Tensor(Tensor::from_slice(&[1.5f32, 2.0], &[2]).unwrap());
/// let called = call("aten.mul", &[x, Value::int(2)], Vec::new()).unwrap();
/// let [Value::Tensor(product)] = called.results.as_slice() else { panic!("one tensor") };
/// assert_eq!(product.to_vec::<f32>().unwrap(), [3.0, 4.0]);
/// ```
pub fn call(name: &str, args: &[Value<Tensor>], kwargs: Vec<(Str, Value<Tensor>)>) -> Result<Called> {
    Library::default().call(name, args, kwargs)
}

/// What is known of the results of a call, one per result of the schema, from what is known of its arguments: [`call`]
/// without data, as on PyTorch's fake tensors. What only the data can tell is a new symbol: `u0`, `u1`…
///
/// # Errors
/// As [`call`], and `NotImplemented` where the operator needs to know an unbacked size.
///
/// ```
/// use tracefx_core::DType;
/// use tracefx_engine::infer;
/// use tracefx_ir::TensorMeta;
/// use tracefx_ops::Value;
///
/// let x = TensorMeta::contiguous(DType::Int32, vec![2.into(), 3.into()]);
/// let results = infer("aten.sum", &[Value::Tensor(x)], &[]).unwrap();
/// assert_eq!(results, [Value::Tensor(TensorMeta::contiguous(DType::Int64, vec![]))]);
/// ```
pub fn infer(
    name: &str,
    args: &[Value<TensorMeta>],
    kwargs: &[(Str, Value<TensorMeta>)],
) -> Result<Vec<Value<TensorMeta>>> {
    Library::default().infer(name, args, kwargs)
}

/// How near the results of an operator must be to PyTorch's.
///
/// # Errors
/// `NotImplemented` where there is no such operator.
pub fn tolerance(name: &str) -> Result<Tol> {
    Library::default().tolerance(name)
}
