//! What every plan holds to, so that whoever runs one need not look: it is asked of a plan that comes from a file.

use crate::{
    Action, Attention, Buffer, BufferId, Dequantization, Epilogue, FLOATS, Fused, Gather, IntegerLayout, Loop, Operand,
    Plan, PoolReduction, Product, QuantizedConvolution, Step, TensorId, TensorView,
};
use std::ops::RangeInclusive;
use tracefx_core::{Code, DType, Diagnostic, Dims, Result, Storage};

impl Plan {
    /// Checks the plan.
    ///
    /// # Errors
    /// `GraphInvalid` where a tensor or a buffer is named that is not there; where a step reads memory of the plan that no
    /// step has written; where a call gives a tensor that is not row-major, does not begin its buffer, or is memory of the
    /// program; where an update is not of a tensor whose elements have places of their own; where the tensors of a fused step are not of its dtype, which is float32 of most, or of sizes that do not fit; where a loop
    /// reads a register that is not filled, or what it writes elsewhere; where a copy converts or stays in its buffer; where what it gives is memory of its own. `ViewOutOfBounds` where a tensor leaves its constant.
    pub fn validate(&self) -> Result<()> {
        self.validate_for(&Storage::len)
    }

    /// The same where `n_bytes` says how long a storage of the program is.
    pub(crate) fn validate_for(&self, n_bytes: &dyn Fn(&Storage) -> usize) -> Result<()> {
        let mut written = vec![false; self.buffers.len()];
        for (at, view) in self.tensors.iter().enumerate() {
            let buffer = self.buffers.get(view.buffer.0 as usize);
            let Some(buffer) = buffer else {
                return Err(invalid(format!("%{at} looks at the buffer {}, which is not there", view.buffer.0)));
            };
            if view.sizes.len() != view.strides.len() {
                return Err(invalid(format!("%{at} has other sizes than strides")));
            }
            if !view.is_known() {
                continue;
            }
            let span = view.known().and_then(|it| it.span(view.dtype));
            let span = span.ok_or_else(|| invalid(format!("%{at} has no number of bytes")))?;
            if let Buffer::Constant(storage) = buffer
                && span > n_bytes(storage)
            {
                let what = format!("%{at} leaves its constant of {} bytes", n_bytes(storage));
                return Err(Diagnostic::new(Code::ViewOutOfBounds, what));
            }
        }
        for (written, buffer) in written.iter_mut().zip(&self.buffers) {
            *written = matches!(buffer, Buffer::Input(_) | Buffer::Constant(_));
        }
        self.inputs.iter().try_for_each(|it| self.exists(it))?;
        if self.alone.iter().any(|it| !written.get(it.0 as usize).is_some_and(|it| *it)) {
            return Err(invalid("memory of the plan is alone anyway".to_owned()));
        }
        for step in &self.steps {
            self.check_step(step, &mut written, n_bytes).map_err(|problem| problem.node(&*step.node))?;
        }
        self.exists(&self.output)?;
        self.is_written(&self.output, &written)?;
        let is_given = |id: TensorId| !matches!(self.buffer(self.tensor(id).buffer), Buffer::Scratch);
        self.all(&self.output, &is_given, "is memory of the plan, and cannot be given away")
    }

    fn check_step(&self, step: &Step, written: &mut [bool], n_bytes: &dyn Fn(&Storage) -> usize) -> Result<()> {
        match &step.action {
            Action::Call { args, results, .. } => {
                args.iter().chain(results).try_for_each(|it| self.exists(it))?;
                args.iter().try_for_each(|it| self.is_written(it, written))?;
                let mut wrong = None;
                // A kernel holds its arguments while it writes its results.
                let mut taken: Vec<BufferId> = Vec::new();
                args.iter().for_each(|it| it.for_each_tensor(&mut |id| taken.push(self.tensor(id).buffer)));
                results.iter().for_each(|it| {
                    it.for_each_tensor(&mut |id| {
                        let view = self.tensor(id);
                        let is_shared = taken.contains(&view.buffer);
                        taken.push(view.buffer);
                        let is_own =
                            matches!(self.buffer(view.buffer), Buffer::Scratch | Buffer::Result | Buffer::Made);
                        let begins = view.offset.as_int() == Some(0);
                        if !is_own || is_shared || !begins || view.known().is_some_and(|it| !it.is_row_major()) {
                            wrong = Some(id);
                        }
                        written[view.buffer.0 as usize] = true;
                    });
                });
                wrong.map_or(Ok(()), |id| Err(invalid(format!("a call gives %{}, which is no new tensor", id.0))))
            }
            Action::Update { args, .. } => {
                args.iter().try_for_each(|it| self.exists(it))?;
                args.iter().try_for_each(|it| self.is_written(it, written))?;
                let is_apart = |id: TensorId| self.tensor(id).known().is_some_and(|it| it.is_apart());
                match args.first() {
                    Some(Operand::Tensor(id)) if is_apart(*id) => Ok(()),
                    other => Err(invalid(format!("{other:?} is updated, and is no tensor of places of their own"))),
                }
            }
            Action::Fused(fused) => {
                let all = fused.inputs().into_iter().chain(fused.results());
                all.copied().map(Operand::Tensor).try_for_each(|it| self.exists(&it))?;
                let inputs = fused.inputs().into_iter().copied().map(Operand::Tensor);
                inputs.clone().try_for_each(|it| self.is_written(&it, written))?;
                self.check_fused(fused)?;
                fused.results().iter().for_each(|it| written[self.tensor(**it).buffer.0 as usize] = true);
                Ok(())
            }
            Action::Copy { from, to } => {
                [from, to].into_iter().try_for_each(|it| self.exists(&Operand::Tensor(*it)))?;
                self.is_written(&Operand::Tensor(*from), written)?;
                let (source, target) = (self.tensor(*from), self.tensor(*to));
                if source.dtype != target.dtype || source.buffer == target.buffer {
                    return Err(invalid(format!("%{} cannot be copied to %{}", from.0, to.0)));
                }
                written[target.buffer.0 as usize] = true;
                Ok(())
            }
            Action::ControlFlow { operands, plans, results, .. } => {
                operands.iter().chain([results]).try_for_each(|it| self.exists(it))?;
                operands.iter().try_for_each(|it| self.is_written(it, written))?;
                plans.iter().try_for_each(|it| it.validate_for(n_bytes))?;
                if let Some(stray) = operands.iter().find(|it| matches!(it, Operand::Plan(at) if *at >= plans.len())) {
                    return Err(invalid(format!("{stray:?} is not there")));
                }
                results.for_each_tensor(&mut |id| written[self.tensor(id).buffer.0 as usize] = true);
                Ok(())
            }
        }
    }

    /// What a fused step computes goes by the sizes of its tensors, which are numbers.
    fn check_fused(&self, fused: &Fused<TensorId>) -> Result<()> {
        let dtype = fused.float_dtype(|it| self.tensor(*it).dtype);
        let sizes = |id: TensorId| -> Result<Dims> {
            let view = self.tensor(id);
            let extent = view.known().filter(|_| view.dtype == dtype);
            let what = || invalid(format!("%{} is not of {}, or the data decides its sizes", id.0, dtype.name()));
            extent.map(|it| it.sizes).ok_or_else(what)
        };
        let whole = |id: TensorId| match self.tensor(id).known() {
            Some(extent) if extent.is_row_major() => Ok(extent.sizes),
            _ => Err(invalid(format!("%{} is not row-major", id.0))),
        };
        let check_channels = |epilogue: &Epilogue<TensorId>, n_channels: usize| {
            epilogue.parameters().try_for_each(|&id| match sizes(id)? {
                sizes if sizes[..] == [n_channels] => Ok(()),
                sizes => Err(invalid(format!("%{} is {sizes:?}, and there are {n_channels} channels", id.0))),
            })
        };
        let none = Epilogue::none();
        let (wanted, epilogue, result) = match fused {
            Fused::Pool(it) => {
                let ([n, h, w, c], [_, oh, ow, _]) = (rank4(&whole(it.input)?)?, rank4(&whole(it.result)?)?);
                // Every window begins in the image or in the padding before it, as with `ceil_mode`, and has an element of the image.
                let fits = |dim: usize, image: usize, n_windows: usize| {
                    let first = (n_windows.checked_sub(1)?).checked_mul(it.stride[dim])?;
                    let reach = it.kernel[dim].checked_sub(1)?.checked_mul(it.dilation[dim])?;
                    let is_inside = first < image.checked_add(it.padding[dim])? && reach >= it.padding[dim];
                    (is_inside && it.dilation[dim] > 0 && reach.checked_add(first).is_some()).then_some(())
                };
                let fits = fits(0, h, oh).and(fits(1, w, ow));
                fits.ok_or_else(|| invalid("a pooling's sizes do not fit".to_owned()))?;
                let [input, result] = [it.input, it.result].map(|it| self.tensor(it).dtype);
                let is_integer = it.reduction == PoolReduction::Max && integers(input).is_some();
                if input != result || !(is_integer || input == DType::Float32) {
                    return Err(invalid(format!("a pooling of {} to {}", input.name(), result.name())));
                }
                (Dims::from_slice(&[n, oh, ow, c]), &none, it.result)
            }
            Fused::Convolution(it) => {
                let mut images = rank4(&whole(it.input)?)?;
                sizes(it.result)?;
                let (last, inner) = it.layers.split_last().ok_or_else(|| invalid("no convolution".to_owned()))?;
                if let Some(id) = it.scale {
                    let is_alone = inner.is_empty() && last.is_pointwise(&sizes(last.weight)?);
                    sizes(id)?;
                    if !is_alone || whole(id)?[..] != [images[0], 1, 1, images[3]] {
                        return Err(invalid(format!("%{} is no scale of a pointwise convolution", id.0)));
                    }
                }
                for layer in &it.layers {
                    let fits = layer.result_sizes(images, rank4(&sizes(layer.weight)?)?);
                    images = fits.ok_or_else(|| invalid("a convolution's sizes do not fit".to_owned()))?;
                }
                for layer in inner {
                    if layer.epilogue.residual.is_some() {
                        return Err(invalid("a residual is added between convolutions".to_owned()));
                    }
                    check_channels(&layer.epilogue, sizes(layer.weight)?[0])?;
                }
                (Dims::from_slice(&images), &last.epilogue, it.result)
            }
            Fused::Product(it) => {
                let (lhs, rhs) = (whole(it.lhs)?, sizes(it.rhs)?);
                sizes(it.result)?;
                match (&lhs[..], &rhs[..]) {
                    (&[m, k], &[n_rows, n]) if k == n_rows => (Dims::from_slice(&[m, n]), &it.epilogue, it.result),
                    _ => return Err(invalid(format!("a product of {lhs:?} and {rhs:?}"))),
                }
            }
            Fused::DequantizedProduct(it) => {
                let Product { lhs, rhs, epilogue, result } = &it.product;
                let lhs = whole(*lhs)?;
                sizes(it.product.lhs)?;
                sizes(*result)?;
                let [k, n] = self.check_dequantization(*rhs, &it.dequantization)?;
                match lhs[..] {
                    [m, n_terms] if n_terms == k => (Dims::from_slice(&[m, n]), epilogue, *result),
                    _ => return Err(invalid(format!("a product of {lhs:?} and {:?}", [k, n]))),
                }
            }
            Fused::Norm(it) => {
                let input = whole(it.input)?;
                let [_, n] = input[..] else { return Err(invalid(format!("{input:?} are not rows"))) };
                for id in it.weight.iter().chain(&it.bias).copied() {
                    let sizes = sizes(id)?;
                    if sizes[..] != [n] {
                        return Err(invalid(format!("%{} is {sizes:?}, and rows have {n} elements", id.0)));
                    }
                }
                sizes(it.input)?;
                sizes(it.result)?;
                (input, &none, it.result)
            }
            Fused::QuantizedConvolution(it) => (self.check_quantized(it)?, &none, it.result),
            Fused::Loop(it) => return self.check_loop(it),
            Fused::Gather(it) => {
                self.check_gather(it)?;
                return self.writes_apart(fused, it.result);
            }
            Fused::Attention(it) => {
                self.check_attention(it, &sizes)?;
                return self.writes_apart(fused, it.result);
            }
        };
        let sizes_of_result = whole(result)?;
        if sizes_of_result != wanted {
            return Err(invalid(format!("a step gives {wanted:?}, and %{} is {sizes_of_result:?}", result.0)));
        }
        let begins = self.tensor(result).offset.as_int() == Some(0);
        if !begins || !self.is_own(result) {
            return Err(invalid(format!("a step gives %{}, which is no new tensor", result.0)));
        }
        self.writes_apart(fused, result)?;
        check_channels(epilogue, wanted[wanted.len() - 1])?;
        match epilogue.residual {
            Some(id) if whole(id)? != wanted => Err(invalid(format!("the residual %{} is not like the result", id.0))),
            _ => Ok(()),
        }
    }

    /// Whether a tensor is memory of the plan or of a run.
    fn is_own(&self, id: TensorId) -> bool {
        matches!(self.buffer(self.tensor(id).buffer), Buffer::Scratch | Buffer::Result)
    }

    fn writes_apart(&self, fused: &Fused<TensorId>, result: TensorId) -> Result<()> {
        let buffer = self.tensor(result).buffer;
        if fused.inputs().iter().any(|it| self.tensor(**it).buffer == buffer) {
            return Err(invalid(format!("a step writes %{}, whose memory it reads", result.0)));
        }
        Ok(())
    }

    /// The sizes of the result.
    fn check_quantized(&self, it: &QuantizedConvolution<TensorId>) -> Result<Dims> {
        let sizes = |id: TensorId| {
            let what = || invalid(format!("the data decides the sizes of %{}", id.0));
            self.tensor(id).known().map(|it| it.sizes).ok_or_else(what)
        };
        let dtype = |id: TensorId| self.tensor(id).dtype;
        let is_row_major = |id: TensorId| self.tensor(id).known().is_some_and(|it| it.is_row_major());
        let weight = rank4(&sizes(it.weight)?)?;
        let result = it.window.result_sizes(rank4(&sizes(it.input)?)?, weight);
        let result = result.ok_or_else(|| invalid("a convolution's sizes do not fit".to_owned()))?;
        let n_terms = weight[1..].iter().try_fold(1usize, |n, it| n.checked_mul(*it));
        if n_terms.is_none_or(|it| it > QuantizedConvolution::<TensorId>::MOST_TERMS) {
            return Err(invalid(format!("filters of {weight:?} have sums beyond int32")));
        }
        let is_zero = |id: TensorId, zero: i32| integers(dtype(id)).is_some_and(|it| it.contains(&zero));
        if !is_zero(it.input, it.zero_point) || !is_row_major(it.input) || dtype(it.weight) != DType::Int8 {
            return Err(invalid(format!("%{} and %{} are no images and filters of 8 bits", it.input.0, it.weight.0)));
        }
        for (numbers, wanted) in
            [(it.weight_zero_points, DType::Int64), (it.scales, DType::Float32), (it.bias, DType::Float32)]
        {
            if let Some(id) = numbers
                && (dtype(id) != wanted || sizes(id)?[..] != [weight[0]])
            {
                return Err(invalid(format!("%{} is not a number for each of {} filters", id.0, weight[0])));
            }
        }
        if let Some(residual) = &it.residual {
            let id = residual.tensor;
            if !is_zero(id, residual.zero_point) || !is_row_major(id) || sizes(id)?[..] != result {
                return Err(invalid(format!("the residual %{} is not like the result", id.0)));
            }
        }
        let range = match it.rounding {
            Some(_) => integers(dtype(it.result)),
            None => (dtype(it.result) == DType::Float32).then_some(0..=0),
        };
        let range = range.ok_or_else(|| invalid(format!("%{} cannot be the result", it.result.0)))?;
        let ranges = it.rounding.iter().map(|it| (it, range.clone())).chain(it.inner.iter().map(|it| (it, -128..=255)));
        for (rounding, range) in ranges {
            let are_inside = [rounding.zero_point, rounding.min, rounding.max].iter().all(|it| range.contains(it));
            let is_scale = rounding.scale.is_finite() && rounding.scale > 0.0;
            if !are_inside || rounding.min > rounding.max || !is_scale {
                return Err(invalid(format!("{rounding} are no integers of {range:?}")));
            }
        }
        if it.limits.iter().any(|it| it.is_nan()) || it.limits[0] > it.limits[1] {
            return Err(invalid(format!("{:?} are no limits", it.limits)));
        }
        Ok(Dims::from_slice(&result))
    }

    /// The rows and columns of what integers stand for.
    fn check_dequantization(&self, integers: TensorId, it: &Dequantization<TensorId>) -> Result<[usize; 2]> {
        let view = self.tensor(integers);
        let columns = view.known().filter(|extent| {
            let is_placed = it.layout == IntegerLayout::Bytes || extent.is_row_major();
            // As many as there is memory for.
            it.layout.is_of(view.dtype) && is_placed && extent.is_apart()
        });
        let columns = columns.and_then(|extent| it.layout.columns(&extent.sizes));
        let what = || invalid(format!("%{} has no integers that lie as {:?}", integers.0, it.layout));
        let [k, n] = columns.ok_or_else(what)?;
        let n_groups = k.checked_div(it.group_size).filter(|_| k % it.group_size == 0);
        let what = || invalid(format!("{k} rows have no groups of {}", it.group_size));
        let n_groups = n_groups.ok_or_else(what)?;
        if !it.scale.is_finite() {
            return Err(invalid(format!("{} is no scale", it.scale)));
        }
        let are_floats = |dtype: DType| FLOATS.contains(&dtype);
        let are_zeros = |dtype: DType| are_floats(dtype) || dtype.is_int();
        let numbers: [(_, &dyn Fn(DType) -> bool); 3] =
            [(it.scales, &are_floats), (it.zero_points, &are_zeros), (it.shifts, &are_floats)];
        for (id, is_of) in numbers.into_iter().filter_map(|(id, is_of)| Some((id?, is_of))) {
            let view = self.tensor(id);
            if !is_of(view.dtype) || view.known().is_none_or(|it| it.sizes[..] != [n_groups, n]) {
                let what = format!("%{} is not a number for each of {n_groups} groups of {n} columns", id.0);
                return Err(invalid(what));
            }
        }
        Ok([k, n])
    }

    fn check_attention(&self, it: &Attention<TensorId>, sizes: &dyn Fn(TensorId) -> Result<Dims>) -> Result<()> {
        let (query, key, value) = (sizes(it.query)?, sizes(it.key)?, sizes(it.value)?);
        let ([batch @ .., l, e], [.., s, _], [.., n]) = (&query[..], &key[..], &value[..]) else {
            return Err(invalid(format!("{query:?} are not the sizes of attention")));
        };
        let is = |sizes: &[usize], rows: usize, columns: usize| {
            let lead = sizes.strip_prefix(batch);
            lead.is_some_and(|it| *it == [rows, columns])
        };
        let result = sizes(it.result)?;
        if !is(&key, *s, *e) || !is(&value, *s, *n) || !is(&result, *l, *n) {
            let what = format!("attention of {query:?}, {key:?} and {value:?} gives {result:?}");
            return Err(invalid(what));
        }
        // Strides of zero can make many of a few elements.
        let mut counted = query.iter().copied().chain([*s, (*e).max(*n)]);
        let n_products = counted.try_fold(1usize, |n, it| n.checked_mul(it.max(1)));
        if n_products.is_none_or(|it| it > isize::MAX as usize) {
            return Err(invalid(format!("attention of {query:?} and {key:?} has no number of multiplications")));
        }
        if let Some(mask) = it.mask {
            let view = self.tensor(mask);
            let is_mask = view.dtype == self.tensor(it.query).dtype || view.dtype == DType::Bool;
            if !is_mask || !view.known().is_some_and(|extent| is(&extent.sizes, *l, *s)) {
                return Err(invalid(format!("%{} is no mask of scores of {batch:?}, {l} by {s}", mask.0)));
            }
        }
        let is_apart = self.tensor(it.result).known().is_some_and(|it| it.is_apart());
        if !is_apart || !self.is_own(it.result) {
            return Err(invalid(format!("attention gives %{}, which is no new tensor", it.result.0)));
        }
        Ok(())
    }

    fn check_gather(&self, it: &Gather<TensorId>) -> Result<()> {
        let [input, index, result] = [it.input, it.index, it.result].map(|it| self.tensor(it));
        let known = |view: &TensorView| view.known().map(|it| it.sizes);
        let wanted =
            known(input).zip(known(index)).filter(|(input, _)| it.dim < input.len()).map(|(mut input, index)| {
                let rest = input.drain(it.dim..).skip(1).collect::<Dims>();
                input.into_iter().chain(index).chain(rest).collect::<Dims>()
            });
        let is_index = matches!(index.dtype, DType::Int32 | DType::Int64);
        let is_whole = result.known().is_some_and(|it| it.is_row_major() && Some(it.sizes) == wanted);
        if !is_index || !is_whole || input.dtype != result.dtype || !self.is_own(it.result) {
            let what = format!("%{} is not what %{} has at the positions %{}", it.result.0, it.input.0, it.index.0);
            return Err(invalid(what));
        }
        Ok(())
    }

    /// A loop may write where it reads the same elements.
    fn check_loop(&self, it: &Loop<TensorId>) -> Result<()> {
        let known = |id: TensorId| {
            let what = || invalid(format!("the data decides where %{} is", id.0));
            self.tensor(id).known().ok_or_else(what)
        };
        it.dtypes(&|id| self.tensor(*id).dtype)?;
        for &id in &it.inputs {
            let own = known(id)?.sizes;
            let lead = it.sizes.len().checked_sub(own.len());
            let broadcasts =
                |lead: usize| own.iter().zip(&it.sizes[lead..]).all(|(own, size)| own == size || *own == 1);
            if !lead.is_some_and(broadcasts) {
                return Err(invalid(format!("%{} is {own:?} in a loop over {:?}", id.0, it.sizes)));
            }
        }
        // Two inputs may be one memory, which is not written twice at a time.
        if it.outputs.iter().filter(|(_, id)| !self.is_own(*id)).count() > 1 {
            return Err(invalid("a loop writes to two tensors that are not its own".to_owned()));
        }
        for (at, &(_, id)) in it.outputs.iter().enumerate() {
            let (view, extent) = (self.tensor(id), known(id)?);
            if extent.sizes != it.sizes || !extent.is_row_major() {
                return Err(invalid(format!("%{} is no row-major tensor of {:?}", id.0, it.sizes)));
            }
            let is_elsewhere = |other: &TensorView| other.buffer != view.buffer;
            let is_apart = it.inputs.iter().all(|it| is_elsewhere(self.tensor(*it)) || self.tensor(*it) == view);
            if !is_apart || !it.outputs[..at].iter().all(|(_, it)| is_elsewhere(self.tensor(*it))) {
                return Err(invalid(format!("a step writes %{}, whose memory it uses in another way", id.0)));
            }
        }
        Ok(())
    }

    fn exists(&self, operand: &Operand) -> Result<()> {
        self.all(operand, &|id| (id.0 as usize) < self.tensors.len(), "is not there")
    }

    fn is_written(&self, operand: &Operand, written: &[bool]) -> Result<()> {
        self.all(operand, &|id| written[self.tensor(id).buffer.0 as usize], "is read before it is written")
    }

    fn all(&self, operand: &Operand, holds: &dyn Fn(TensorId) -> bool, else_it: &str) -> Result<()> {
        let mut wrong = None;
        operand.for_each_tensor(&mut |id| wrong = wrong.or(Some(id).filter(|&it| !holds(it))));
        wrong.map_or(Ok(()), |id| Err(invalid(format!("the tensor %{} {else_it}", id.0))))
    }
}

/// The integers of a dtype of eight bits.
fn integers(dtype: DType) -> Option<RangeInclusive<i32>> {
    match dtype {
        DType::Int8 => Some(-128..=127),
        DType::UInt8 => Some(0..=255),
        _ => None,
    }
}

fn rank4(sizes: &[usize]) -> Result<[usize; 4]> {
    sizes.try_into().map_err(|_| invalid(format!("{sizes:?} are not the sizes of a convolution")))
}

fn invalid(what: String) -> Diagnostic {
    Diagnostic::new(Code::GraphInvalid, what)
}

#[cfg(test)]
mod tests {
    use crate::{Action, Buffer, Operand, Plan, TensorView};
    use tracefx_core::DType;

    /// A plan with a call that is given `args` of the tensors and gives `results` of them, each of a buffer of its own but for the last, which is
    /// in that of the first.
    fn call(args: &[u32], results: &[u32]) -> Plan {
        let mut plan = Plan::default();
        let input = plan.add_buffer(Buffer::Input(0));
        let made = [Buffer::Result, Buffer::Result].map(|it| plan.add_buffer(it));
        for buffer in [input, made[0], made[1], made[0]] {
            plan.add_tensor(TensorView::row_major(buffer, DType::Float32, &[2.into()]));
        }
        let tensors = |ids: &[u32]| ids.iter().map(|it| Operand::Tensor(crate::TensorId(*it))).collect::<Vec<_>>();
        plan.inputs = tensors(&[0]);
        plan.push("first", Action::call("aten.relu.default", tensors(&[0]), tensors(&[1])));
        plan.push("second", Action::call("aten.frexp.Tensor", tensors(args), tensors(results)));
        plan
    }

    #[test]
    fn a_call_gives_new_memory_alone() {
        assert!(call(&[1], &[2]).validate().is_ok());
        // A kernel would wait for itself.
        for (args, results) in [(&[1][..], &[3][..]), (&[1], &[1]), (&[0], &[2, 2]), (&[0], &[1, 3])] {
            let problem = call(args, results).validate().unwrap_err();
            assert!(problem.message().ends_with("which is no new tensor"), "{problem}");
        }
    }
}
