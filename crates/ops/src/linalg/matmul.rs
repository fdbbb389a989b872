//! Products of matrices and vectors.

use crate::core::elementwise::{check_all_fit, check_numbers};
use crate::linalg::matmul_gradient;
use crate::reduce;
use crate::{Args, OpDef, Output, Tags, Tol, broadcast, contiguous};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

use crate::linalg::matmul_composite::linear_as_matmul;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::mm(Tensor self, Tensor mat2) -> Tensor", mm)
        .vjp(matmul_gradient::mm)
        .doc("The product of two matrices.")
        .tags(Tags::CORE)
        .tolerance(Tol::Default),
    OpDef::new("aten::bmm(Tensor self, Tensor mat2) -> Tensor", bmm)
        .vjp(matmul_gradient::bmm)
        .doc("The products of two batches of matrices.")
        .tags(Tags::CORE)
        .tolerance(Tol::Default),
    OpDef::new("aten::mv(Tensor self, Tensor vec) -> Tensor", mv)
        .decompose(reduce::decompose::mv)
        .vjp(matmul_gradient::mv)
        .doc("The product of a matrix and a vector.")
        .tolerance(Tol::Default),
    OpDef::new("aten::dot(Tensor self, Tensor tensor) -> Tensor", dot)
        .decompose(reduce::decompose::dot)
        .vjp(matmul_gradient::dot)
        .doc("The inner product of two vectors.")
        .tags(Tags::COMMUTATIVE)
        .tolerance(Tol::Default),
    OpDef::new("aten::vdot(Tensor self, Tensor other) -> Tensor", dot)
        .decompose(reduce::decompose::vdot)
        .vjp(matmul_gradient::vdot)
        .doc("The inner product of two vectors, the first one conjugated.")
        .tolerance(Tol::Default),
    OpDef::new("aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addmm)
        .vjp(matmul_gradient::addmm)
        .doc("`beta * self + alpha * mat1 @ mat2`; where beta is zero, self does not count.")
        .tags(Tags::CORE)
        .tolerance(Tol::Default)
        .in_place(&["addmm_"]),
    OpDef::new(
        "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        baddbmm,
    )
    .decompose(reduce::decompose::baddbmm)
    .vjp(matmul_gradient::baddbmm)
    .doc("`beta * self + alpha * batch1 @ batch2` for batches of matrices.")
    .tolerance(Tol::Default)
    .in_place(&["baddbmm_"]),
    OpDef::new(
        "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        addbmm,
    )
    .vjp(matmul_gradient::addbmm)
    .doc("`beta * self + alpha * sum(batch1 @ batch2)` over the batch.")
    // A sum of sums, in which large products cancel.
    .tolerance(Tol::Scaled(10.0))
    .in_place(&["addbmm_"]),
    OpDef::new("aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", addmv)
        .vjp(matmul_gradient::addmv)
        .doc("`beta * self + alpha * mat @ vec`.")
        .tolerance(Tol::Default)
        .in_place(&["addmv_"]),
    OpDef::new("aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", linear)
        .doc("`input @ weight.T + bias`, where the weight is a matrix or a vector.")
        .decompose(linear_as_matmul)
        .tolerance(Tol::Default),
];

type Meta<'a> = Args<'a, TensorMeta>;

fn list(sizes: &[SymInt]) -> String {
    let items: Vec<_> = sizes.iter().map(SymInt::to_string).collect();
    items.join("x")
}

/// The operand of this rank at this position.
fn ranked<'a>(args: &'a Meta<'_>, index: usize, rank: usize, what: &str) -> Result<&'a TensorMeta> {
    let tensor = args.tensor(index)?;
    if tensor.sizes.len() != rank {
        let name = &args.op.schema.args[index].name;
        return Err(args.bad_shape(format!("{name} must be a {what}, got {}-D tensor", tensor.sizes.len())));
    }
    Ok(tensor)
}

fn same_dtype(args: &Meta<'_>, a: &TensorMeta, b: &TensorMeta) -> Result<()> {
    if a.dtype == b.dtype {
        return Ok(());
    }
    let what = format!("expected m1 and m2 to have the same dtype, but got: {} != {}", a.dtype.name(), b.dtype.name());
    Err(tracefx_core::Diagnostic::new(tracefx_core::Code::DTypeMismatch, what).op(&*args.op.name))
}

fn product_sizes(args: &Meta<'_>, a: &TensorMeta, b: &TensorMeta) -> Result<Vec<SymInt>> {
    same_dtype(args, a, b)?;
    if !args.same(&a.sizes[1], &b.sizes[0]) {
        let (a, b) = (list(&a.sizes), list(&b.sizes));
        return Err(args.bad_shape(format!("mat1 and mat2 shapes cannot be multiplied ({a} and {b})")));
    }
    Ok(vec![a.sizes[0].clone(), b.sizes[1].clone()])
}

fn batch_product_sizes(args: &Meta<'_>, at: usize) -> Result<Vec<SymInt>> {
    let (a, b) = (ranked(args, at, 3, "3D tensor")?, ranked(args, at + 1, 3, "3D tensor")?);
    same_dtype(args, a, b)?;
    if !args.same(&a.sizes[0], &b.sizes[0]) || !args.same(&a.sizes[2], &b.sizes[1]) {
        return Err(args.bad_shape(format!(
            "expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}]",
            a.sizes[0], a.sizes[2], b.sizes[0], b.sizes[1]
        )));
    }
    Ok(vec![a.sizes[0].clone(), a.sizes[1].clone(), b.sizes[2].clone()])
}

/// The result of an operator with an addend, which broadcasts to the sizes of the product.
fn scaled(args: &Meta<'_>, sizes: Vec<SymInt>) -> Result<Vec<Output>> {
    let addend = args.tensor(0)?;
    same_dtype(args, addend, args.tensor(1)?)?;
    check_numbers(args, addend.dtype)?;
    if addend.sizes.len() > sizes.len() || broadcast(args, &addend.sizes, &sizes)? != sizes {
        let (addend, sizes) = (list(&addend.sizes), list(&sizes));
        return Err(args.bad_shape(format!("an addend of sizes {addend} does not expand to {sizes}")));
    }
    Ok(contiguous(addend.dtype, sizes))
}

fn mm(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (a, b) = (ranked(args, 0, 2, "matrix")?, ranked(args, 1, 2, "matrix")?);
    Ok(contiguous(a.dtype, product_sizes(args, a, b)?))
}

fn bmm(args: &Meta<'_>) -> Result<Vec<Output>> {
    Ok(contiguous(args.tensor(0)?.dtype, batch_product_sizes(args, 0)?))
}

fn matrix_vector(args: &Meta<'_>, at: usize) -> Result<Vec<SymInt>> {
    let (matrix, vector) = (ranked(args, at, 2, "matrix")?, ranked(args, at + 1, 1, "vector")?);
    same_dtype(args, matrix, vector)?;
    if !args.same(&matrix.sizes[1], &vector.sizes[0]) {
        let (a, b) = (list(&matrix.sizes), list(&vector.sizes));
        return Err(args.bad_shape(format!("size mismatch, got input ({a}), vec ({b})")));
    }
    Ok(vec![matrix.sizes[0].clone()])
}

fn mv(args: &Meta<'_>) -> Result<Vec<Output>> {
    Ok(contiguous(args.tensor(0)?.dtype, matrix_vector(args, 0)?))
}

fn addmv(args: &Meta<'_>) -> Result<Vec<Output>> {
    check_all_fit(args, args.tensor(0)?.dtype)?;
    scaled(args, matrix_vector(args, 1)?)
}

fn dot(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (a, b) = (args.tensor(0)?, args.tensor(1)?);
    if a.sizes.len() != 1 || b.sizes.len() != 1 {
        let what = format!("1D tensors expected, but got {}D and {}D tensors", a.sizes.len(), b.sizes.len());
        return Err(args.bad_shape(what));
    }
    if a.dtype != b.dtype {
        let what = format!(
            "dot : expected both vectors to have same dtype, but found {} and {}",
            a.dtype.name(),
            b.dtype.name()
        );
        return Err(tracefx_core::Diagnostic::new(tracefx_core::Code::DTypeMismatch, what));
    }
    if !args.same(&a.sizes[0], &b.sizes[0]) {
        return Err(args.bad_shape(format!(
            "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of elements",
            a.sizes[0], b.sizes[0]
        )));
    }
    Ok(contiguous(a.dtype, Vec::new()))
}

fn addmm(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (a, b) = (ranked(args, 1, 2, "matrix")?, ranked(args, 2, 2, "matrix")?);
    scaled(args, product_sizes(args, a, b)?)
}

fn baddbmm(args: &Meta<'_>) -> Result<Vec<Output>> {
    scaled(args, batch_product_sizes(args, 1)?)
}

fn addbmm(args: &Meta<'_>) -> Result<Vec<Output>> {
    scaled(args, batch_product_sizes(args, 1)?[1..].to_vec())
}

fn linear(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (input, weight) = (args.tensor(0)?, args.tensor(1)?);
    same_dtype(args, input, weight)?;
    let (Some((last, lead)), 1 | 2) = (input.sizes.split_last(), weight.sizes.len()) else {
        let what = "both arguments to linear need to be at least 1D, and the weight at most 2D";
        return Err(args.bad_shape(format!("{what}, but they are {}D and {}D", input.sizes.len(), weight.sizes.len())));
    };
    if !args.same(last, &weight.sizes[weight.sizes.len() - 1]) {
        let (a, b) = (list(&input.sizes), list(&weight.sizes));
        return Err(args.bad_shape(format!("input and weight.T shapes cannot be multiplied ({a} and {b})")));
    }
    let mut sizes = lead.to_vec();
    sizes.extend_from_slice(&weight.sizes[..weight.sizes.len() - 1]);
    if let Some(bias) = args.opt_tensor(2)? {
        same_dtype(args, input, bias)?;
        if bias.sizes.len() > sizes.len() || broadcast(args, &bias.sizes, &sizes)? != sizes {
            let (bias, sizes) = (list(&bias.sizes), list(&sizes));
            return Err(args.bad_shape(format!("a bias of sizes {bias} does not expand to {sizes}")));
        }
    }
    Ok(contiguous(input.dtype, sizes))
}
