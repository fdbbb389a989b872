//! Calls of the kernels of custom operators. They are not the engine's own, so that what they give is checked before
//! anything goes on with it.

use crate::HostKernel;
use crate::without_data::without_data;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_ir::TensorMeta;
use tracefx_ops::{Args, Infer, Value};

/// Calls a kernel.
///
/// # Errors
/// What the kernel refuses. `SchemaMismatch` where it gives other results than the schema says; `ShapeMismatch` or
/// `DTypeMismatch` where they are not what the shape rule promised; `InvalidArgument` where a result shares its storage
/// with an argument or another result, though the schema does not say so.
pub(crate) fn call(kernel: &HostKernel, args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let promised = match args.op.def.infer {
        Infer::Rule(rule) if args.op.has_shape_rule() => {
            let metas = without_data(args)?;
            Some(rule(&metas)?.iter().map(|it| it.value(&metas)).collect::<Vec<_>>())
        }
        Infer::Rule(_) | Infer::InPlaceOf(_) | Infer::Composite => None,
    };
    let results = args.op.check_results(kernel(args)?, "the kernel")?;
    for (at, (result, promised)) in results.iter().zip(promised.iter().flatten()).enumerate() {
        check_promise(args, at, result, promised)?;
    }
    check_storages(args, &results)?;
    Ok(results)
}

/// The error about a custom operator that nothing computes.
pub(crate) fn missing(args: &Args<'_, Tensor>) -> Diagnostic {
    args.unsupported(format!("the operator {} has no kernel", args.op.name))
        .help("give it one: Library::implement in Rust, torch.library.impl in TypeScript")
}

fn check_promise(
    args: &Args<'_, Tensor>,
    at: usize,
    result: &Value<Tensor>,
    promised: &Value<TensorMeta>,
) -> Result<()> {
    let refuse = |code: Code, gives: String, said: String| {
        let what =
            format!("the kernel of {} gives {gives} as result {at}, and its shape rule says {said}", args.op.name);
        Err(Diagnostic::new(code, what).op(&*args.op.name))
    };
    match (result, promised) {
        (Value::Tensor(result), Value::Tensor(meta)) => {
            if result.dtype() != meta.dtype {
                return refuse(Code::DTypeMismatch, result.dtype().name().into(), meta.dtype.name().into());
            }
            // What only the data tells is a symbol in the promise.
            let fits = |(size, promised): (&usize, &tracefx_sym::SymInt)| {
                promised.as_int().is_none_or(|it| usize::try_from(it) == Ok(*size))
            };
            if result.rank() != meta.sizes.len() || !result.sizes().iter().zip(&meta.sizes).all(fits) {
                let (gives, said) = (format!("sizes {:?}", result.sizes()), format!("{:?}", meta.sizes));
                return refuse(Code::ShapeMismatch, gives, said);
            }
            Ok(())
        }
        (Value::List(results), Value::List(promised)) if results.len() == promised.len() => {
            results.iter().zip(promised).try_for_each(|(result, promised)| check_promise(args, at, result, promised))
        }
        (Value::Tensor(_) | Value::List(_), _) | (_, Value::Tensor(_) | Value::List(_)) => {
            refuse(Code::SchemaMismatch, result.kind_name().into(), promised.kind_name().into())
        }
        // A number follows from the data as well.
        (_, _) => Ok(()),
    }
}

/// Refuses results that share a storage where the schema does not say so: whoever reads the program takes them apart.
fn check_storages(args: &Args<'_, Tensor>, results: &[Value<Tensor>]) -> Result<()> {
    let mut taken = Vec::new();
    args.values.iter().for_each(|it| it.for_each_tensor(&mut |it| taken.push(it)));
    for (at, (result, spec)) in results.iter().zip(&args.op.schema.returns).enumerate() {
        let mut own = Vec::new();
        result.for_each_tensor(&mut |it| own.push(it));
        let shares = |it: &&Tensor| it.numel() > 0 && taken.iter().any(|other| other.storage().is_same(it.storage()));
        if !spec.is_alias && own.iter().any(shares) {
            let what = format!(
                "result {at} of {} is an argument or another result, or looks at the storage of one",
                args.op.name
            );
            return Err(Diagnostic::new(Code::InvalidArgument, what)
                .op(&*args.op.name)
                .help("clone it, or mark it in the schema: Tensor(a) x -> Tensor(a)"));
        }
        taken.extend(own);
    }
    Ok(())
}
