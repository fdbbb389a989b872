//! Kernels that pick elements by position.

use crate::strided::{Axis, Places, gather_places};
use tracefx_core::{Code, Diagnostic, Element, Result, Tensor, contiguous_strides, with_element};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, normalize_dim};

pub(crate) const KERNELS: &[(&str, Kernel)] =
    &[("aten.embedding.default", Kernel::Fill(embedding)), ("aten.index_select.default", Kernel::Fill(index_select))];

/// The numbers of an integer tensor, in row-major order.
pub(crate) fn indices(tensor: &Tensor) -> Result<Vec<i64>> {
    with_element!(tensor.dtype(), T => {
        Ok(tensor.to_vec::<T>()?.into_iter().map(|it| it.to_scalar().to_i64()).collect())
    }, else Err(Diagnostic::unsupported_dtype(tensor.dtype(), "an index")))
}

/// The places of these positions of a dimension; they count from its front.
fn places(args: &Args<'_, Tensor>, index: &[i64], size: usize, stride: usize) -> Result<Vec<usize>> {
    let place = |&it: &i64| match usize::try_from(it) {
        Ok(it) if it < size => Ok(it * stride),
        _ => {
            let what = format!("index out of range in self: {it} is not in [0, {size})");
            Err(Diagnostic::new(Code::IndexOutOfRange, what).op(&*args.op.name))
        }
    };
    index.iter().map(place).collect()
}

fn index_select(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, index) = (args.tensor(0)?, indices(args.tensor(2)?)?);
    let dim = normalize_dim(args, args.int(1)?, base.rank())?;
    let mut elements = Places::of(base);
    let (size, stride) = if base.rank() == 0 { (1, 0) } else { (base.sizes()[dim], base.strides()[dim]) };
    let places = places(args, &index, size, stride)?;
    if let Some(axis) = elements.axes.get_mut(dim) {
        *axis = Axis::At(places);
    }
    gather_places(base, &elements, &results[0]);
    Ok(())
}

fn embedding(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let weight = args.tensor(0)?;
    let places = places(args, &indices(args.tensor(1)?)?, weight.sizes()[0], weight.strides()[0])?;
    let sizes = [places.len(), weight.sizes()[1]];
    let table = results[0].as_strided(&sizes, &contiguous_strides(&sizes), 0)?;
    let axes = vec![Axis::At(places), Axis::Step(weight.strides()[1])];
    gather_places(weight, &Places { start: weight.offset(), axes }, &table);
    Ok(())
}
