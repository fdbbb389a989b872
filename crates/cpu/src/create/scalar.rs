//! Numbers out of tensors, and assertions about them. What the numbers mean to a graph is for the executor to say.

use tracefx_core::{Code, Diagnostic, Result, Scalar, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value};

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.item.default", Kernel::Make(item)),
    ("aten._local_scalar_dense.default", Kernel::Make(first_item)),
    (
        "aten._assert_async.default",
        Kernel::Fill(|args, _| assert(args, "Expected Tensor with single nonzero value, but got zero")),
    ),
    ("aten._assert_async.msg", Kernel::Fill(|args, _| assert(args, args.str(1)?))),
    ("aten._linalg_check_errors.default", Kernel::Fill(|args, _| check_factored(args))),
];

fn item(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    Ok(vec![args.tensor(0)?.item()?.into()])
}

fn first_item(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let tensor = args.tensor(0)?;
    Ok(vec![tensor.as_strided(&[], &[], tensor.offset())?.item()?.into()])
}

fn assert(args: &Args<'_, Tensor>, message: &str) -> Result<()> {
    let is_true = match args.tensor(0)?.item()? {
        Scalar::Bool(it) => it,
        Scalar::Int(it) => it != 0,
        Scalar::Float(it) => it != 0.0,
        Scalar::Complex(it) => it.re != 0.0 || it.im != 0.0,
    };
    if is_true { Ok(()) } else { Err(Diagnostic::new(Code::AssertionFailed, message)) }
}

/// Refuses the first matrix of a batch that could not be factored, in PyTorch's words for the function that factored it.
fn check_factored(args: &Args<'_, Tensor>) -> Result<()> {
    let infos = args.tensor(0)?.to_vec::<i32>()?;
    let Some((batch, info)) = infos.iter().enumerate().find(|(_, it)| **it != 0) else { return Ok(()) };
    let name = args.str(1)?;
    let place = if args.bool(2)? { String::new() } else { format!(": (Batch element {batch})") };
    let why = if *info < 0 {
        format!("Argument {} has illegal value.", -info)
    } else if name.contains("inv") {
        format!(
            "The diagonal element {info} is zero, the inversion could not be completed because the input matrix is singular."
        )
    } else if name.contains("solve") {
        "The solver failed because the input matrix is singular.".to_string()
    } else if name.contains("cholesky") {
        format!(
            "The factorization could not be completed because the input is not positive-definite (the leading minor of order {info} is not positive-definite)."
        )
    } else if name.contains("lstsq") {
        format!(
            "The least squares solution could not be computed because the input matrix does not have full rank (error code: {info})."
        )
    } else {
        format!(
            "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated values (error code: {info})."
        )
    };
    Err(Diagnostic::new(Code::InvalidArgument, format!("{name}{place}: {why}")))
}

#[cfg(test)]
mod tests {
    use tracefx_core::Tensor;
    use tracefx_ir::Str;
    use tracefx_ops::{Value, registry};

    #[test]
    fn what_could_not_be_factored_is_refused_in_the_words_of_its_function() {
        let check = |infos: &[i32], name: &str, is_matrix: bool| {
            let infos = Tensor::from_slice(infos, &[infos.len()]).unwrap();
            let args = [Value::Tensor(infos), Value::Str(name.into())];
            let kwargs = [(Str::from("is_matrix"), Value::Bool(is_matrix))];
            let executor = tracefx_exec::Executor::new(registry(), crate::kernels());
            let results = executor.call("aten._linalg_check_errors.default", &args, &kwargs);
            results.map_err(|problem| problem.message().to_string())
        };
        assert!(check(&[0, 0], "linalg.inv", false).unwrap().is_empty());
        let refused = check(&[0, 2], "linalg.inv", false).unwrap_err();
        assert!(refused.starts_with("linalg.inv: (Batch element 1): The diagonal element 2 is zero"), "{refused}");
        let refused = check(&[3], "linalg.cholesky", true).unwrap_err();
        assert!(refused.contains("the leading minor of order 3 is not positive-definite"), "{refused}");
    }
}
