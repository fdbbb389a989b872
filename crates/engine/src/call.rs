use tracefx_core::{Result, Tensor};
use tracefx_exec::{Called, Executor};
use tracefx_ir::Str;
use tracefx_ops::{Value, registry};

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
    Executor::new(registry(), tracefx_cpu::kernels()).call_python(name, args, kwargs)
}
