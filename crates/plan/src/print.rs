//! The text of a plan: one line a step, with the tensors that it gives, and the node that it is from.

use crate::{
    Action, Activation, Argument, Buffer, Dequantization, Epilogue, Fused, Loop, Operand, Plan, QuantizedConvolution,
    Register, Rounding, TensorId, TensorView, Window,
};
use std::fmt::{self, Display, Formatter, Write};
use tracefx_core::DType;
use tracefx_sym::Expr;

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.print(f, 0)
    }
}

type Print<'a> = dyn Fn(&mut Formatter<'_>, &Operand) -> fmt::Result + 'a;

impl Plan {
    /// Prints the plan, its lines so many levels deep.
    fn print(&self, f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = "    ".repeat(depth + 1);
        f.write_str("plan(")?;
        self.list(f, &self.inputs, &|f, it| self.typed(f, it))?;
        f.write_char(')')?;
        for (at, buffer) in self.alone.iter().enumerate() {
            f.write_str(if at == 0 { " alone " } else { ", " })?;
            let first = self.tensors.iter().position(|it| it.buffer == *buffer).unwrap_or_default();
            self.tensor_name(f, TensorId(first as u32))?;
        }
        f.write_char(':')?;
        for step in &self.steps {
            write!(f, "\n{indent}")?;
            match &step.action {
                Action::Call { op, args, results } => {
                    self.list(f, results, &|f, it| self.typed(f, it))?;
                    let equals = if results.is_empty() { "" } else { " = " };
                    write!(f, "{equals}{op}(")?;
                    self.list(f, args, &|f, it| self.operand(f, it))?;
                    f.write_char(')')?;
                }
                Action::Update { op, args } => {
                    self.list(f, &args[..args.len().min(1)], &|f, it| self.typed(f, it))?;
                    write!(f, " <- {op}(")?;
                    self.list(f, args, &|f, it| self.operand(f, it))?;
                    f.write_char(')')?;
                }
                Action::Fused(fused) => {
                    let results: Vec<_> = fused.results().into_iter().copied().map(Operand::Tensor).collect();
                    self.list(f, &results, &|f, it| self.typed(f, it))?;
                    write!(f, " = {}(", fused.name())?;
                    self.fused(f, fused)?;
                    f.write_char(')')?;
                }
                Action::Copy { from, to } => {
                    self.tensor_name(f, *to)?;
                    f.write_str(" <- ")?;
                    self.tensor_name(f, *from)?;
                }
                Action::ControlFlow { op, operands, results, .. } => {
                    self.typed(f, results)?;
                    write!(f, " = {op}(")?;
                    self.list(f, operands, &|f, it| self.operand(f, it))?;
                    f.write_char(')')?;
                }
            }
            write!(f, "  # {}", step.node)?;
            if let Action::ControlFlow { plans, .. } = &step.action {
                for (at, plan) in plans.iter().enumerate() {
                    write!(f, "\n{indent}plan {at} = ")?;
                    plan.print(f, depth + 1)?;
                }
            }
        }
        write!(f, "\n{indent}return ")?;
        match &self.output {
            Operand::List(items) => {
                f.write_char('(')?;
                self.list(f, items, &|f, it| self.operand(f, it))?;
                f.write_str(if items.len() == 1 { ",)" } else { ")" })
            }
            single => self.operand(f, single),
        }
    }

    fn fused(&self, f: &mut Formatter<'_>, fused: &Fused<TensorId>) -> fmt::Result {
        let epilogue = match fused {
            Fused::Convolution(it) => {
                self.tensor_name(f, it.input)?;
                self.named(f, "scale", &it.scale)?;
                for (at, layer) in it.layers.iter().enumerate() {
                    f.write_str(if at == 0 { ", " } else { "; " })?;
                    self.tensor_name(f, layer.weight)?;
                    write!(f, ", stride={:?}, padding={:?}", layer.stride, layer.padding)?;
                    write!(f, ", dilation={:?}, groups={}", layer.dilation, layer.groups)?;
                    self.epilogue(f, &layer.epilogue)?;
                }
                return Ok(());
            }
            Fused::Product(it) => {
                self.tensor_name(f, it.lhs)?;
                f.write_str(", ")?;
                self.tensor_name(f, it.rhs)?;
                &it.epilogue
            }
            Fused::Pool(it) => {
                self.tensor_name(f, it.input)?;
                write!(f, ", {:?}, kernel={:?}, stride={:?}", it.reduction, it.kernel, it.stride)?;
                return write!(f, ", padding={:?}, dilation={:?}", it.padding, it.dilation);
            }
            Fused::Gather(it) => {
                self.tensor_name(f, it.input)?;
                write!(f, ", dim={}, ", it.dim)?;
                self.tensor_name(f, it.index)?;
                return write!(f, ", is_wrapped={}", it.is_wrapped);
            }
            Fused::QuantizedConvolution(it) => return self.quantized(f, it),
            Fused::DequantizedProduct(it) => {
                self.tensor_name(f, it.product.lhs)?;
                f.write_str(", ")?;
                self.tensor_name(f, it.product.rhs)?;
                let Dequantization { layout, group_size, zero_point, scale, .. } = it.dequantization;
                write!(f, ", layout={layout:?}, group_size={group_size}, zero_point={zero_point}, scale={scale:?}")?;
                self.named(f, "scales", &it.dequantization.scales)?;
                self.named(f, "zero_points", &it.dequantization.zero_points)?;
                self.named(f, "shifts", &it.dequantization.shifts)?;
                if it.dequantization.is_rounded {
                    f.write_str(", is_rounded=true")?;
                }
                &it.product.epilogue
            }
            Fused::Loop(it) => return self.code(f, it),
            Fused::Norm(it) => {
                self.tensor_name(f, it.input)?;
                write!(f, ", {:?}", it.statistic)?;
                self.named(f, "weight", &it.weight)?;
                self.named(f, "bias", &it.bias)?;
                return write!(f, ", eps={:?}", it.eps);
            }
            Fused::Attention(it) => {
                for (at, id) in [it.query, it.key, it.value].into_iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    self.tensor_name(f, id)?;
                }
                self.named(f, "mask", &it.mask)?;
                if it.mask.is_some_and(|it| self.tensor(it).dtype == DType::Bool) {
                    write!(f, ", masked={:?}", it.masked)?;
                }
                write!(f, ", is_causal={}, scale={:?}", it.is_causal, it.scale)?;
                return write!(f, ", is_safe={}", it.is_safe);
            }
        };
        self.epilogue(f, epilogue)
    }

    fn quantized(&self, f: &mut Formatter<'_>, it: &QuantizedConvolution<TensorId>) -> fmt::Result {
        self.tensor_name(f, it.input)?;
        write!(f, " - {}, ", it.zero_point)?;
        self.tensor_name(f, it.weight)?;
        self.named(f, "weight_zero_points", &it.weight_zero_points)?;
        let Window { stride, padding, dilation, groups } = it.window;
        write!(f, ", stride={stride:?}, padding={padding:?}, dilation={dilation:?}, groups={groups}")?;
        write!(f, ", scale={:?}", it.scale)?;
        self.named(f, "scales", &it.scales)?;
        self.named(f, "bias", &it.bias)?;
        if let Some(rounding) = &it.inner {
            write!(f, ", inner={rounding}")?;
        }
        if let Some(residual) = &it.residual {
            f.write_str(", residual=(")?;
            self.tensor_name(f, residual.tensor)?;
            write!(f, " - {}) * {:?}", residual.zero_point, residual.scale)?;
        }
        if it.limits != [f32::NEG_INFINITY, f32::INFINITY] {
            write!(f, ", limits={:?}", it.limits)?;
        }
        it.rounding.iter().try_for_each(|it| write!(f, ", rounding={it}"))
    }

    fn epilogue(&self, f: &mut Formatter<'_>, epilogue: &Epilogue<TensorId>) -> fmt::Result {
        let mut named = |name: &str, tensor: &Option<TensorId>| self.named(f, name, tensor);
        named("bias", &epilogue.bias)?;
        if let Some(norm) = &epilogue.norm {
            named("norm_weight", &norm.weight)?;
            named("norm_bias", &norm.bias)?;
            named("mean", &Some(norm.mean))?;
            named("var", &Some(norm.var))?;
        }
        named("residual", &epilogue.residual)?;
        if epilogue.norm.is_some() || epilogue.activation != Activation::Identity {
            let eps = epilogue.norm.as_ref().map(|it| format!(", eps={:?}", it.eps)).unwrap_or_default();
            write!(f, "{eps}, activation={:?}", epilogue.activation)?;
        }
        Ok(())
    }

    fn named(&self, f: &mut Formatter<'_>, name: &str, tensor: &Option<TensorId>) -> fmt::Result {
        match tensor {
            Some(id) => {
                write!(f, ", {name}=")?;
                self.tensor_name(f, *id)
            }
            None => Ok(()),
        }
    }

    /// The instructions, one behind the other. A register is called by a letter, an input by its tensor.
    fn code(&self, f: &mut Formatter<'_>, it: &Loop<TensorId>) -> fmt::Result {
        let register = |f: &mut Formatter<'_>, Register(register): Register| match it.inputs.get(register as usize) {
            Some(input) => self.tensor_name(f, *input),
            None => letters(f, register as usize - it.inputs.len()),
        };
        write!(f, "{:?}", it.sizes)?;
        for (at, instruction) in it.code.iter().enumerate() {
            f.write_str(if at == 0 { ": " } else { "; " })?;
            letters(f, at)?;
            write!(f, " = {}(", instruction.op)?;
            for (at, argument) in instruction.args.iter().enumerate() {
                f.write_str(if at == 0 { "" } else { ", " })?;
                match argument {
                    Argument::Register(it) => register(f, *it)?,
                    Argument::Value(it) => self.operand(f, it)?,
                }
            }
            f.write_char(')')?;
        }
        for (stored, to) in &it.outputs {
            f.write_str("; store ")?;
            register(f, *stored)?;
            f.write_str(" -> ")?;
            self.tensor_name(f, *to)?;
        }
        Ok(())
    }

    fn list(&self, f: &mut Formatter<'_>, items: &[Operand], print: &Print<'_>) -> fmt::Result {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            print(f, item)?;
        }
        Ok(())
    }

    /// A constant is called `%c4`, every other tensor `%4`.
    fn tensor_name(&self, f: &mut Formatter<'_>, id: TensorId) -> fmt::Result {
        let is_constant = matches!(self.buffer(self.tensor(id).buffer), Buffer::Constant(_));
        write!(f, "%{}{}", if is_constant { "c" } else { "" }, id.0)
    }

    /// A tensor with its dtype and sizes, and with its strides where it is not row-major.
    fn typed(&self, f: &mut Formatter<'_>, operand: &Operand) -> fmt::Result {
        match operand {
            Operand::Tensor(id) => {
                let view = self.tensor(*id);
                self.tensor_name(f, *id)?;
                write!(f, ": {}{:?}", view.dtype.short_name(), view.sizes)?;
                let dense = TensorView::row_major(view.buffer, view.dtype, &view.sizes);
                let is_dense = view.known().map_or(view.strides == dense.strides, |it| it.is_row_major());
                if is_dense { Ok(()) } else { write!(f, " strides {:?}", view.strides) }
            }
            Operand::List(items) => {
                f.write_char('[')?;
                self.list(f, items, &|f, it| self.typed(f, it))?;
                f.write_char(']')
            }
            other => self.operand(f, other),
        }
    }

    fn operand(&self, f: &mut Formatter<'_>, operand: &Operand) -> fmt::Result {
        match operand {
            Operand::None => f.write_str("None"),
            Operand::Bool(it) => f.write_str(if *it { "True" } else { "False" }),
            Operand::Int(it) => write!(f, "{it}"),
            Operand::Float(it) => write!(f, "{it:?}"),
            Operand::Complex(it) => write!(f, "({:?}+{:?}j)", it.re, it.im),
            Operand::Str(it) => write!(f, "{it:?}"),
            Operand::DType(it) => write!(f, "{}", it.name()),
            Operand::Device(it) => write!(f, "{it}"),
            Operand::Layout(it) => write!(f, "{it:?}"),
            Operand::MemoryFormat(it) => write!(f, "{it:?}"),
            Operand::Expr(Expr::Int(it)) => write!(f, "{it}"),
            Operand::Expr(Expr::Float(it)) => write!(f, "{it}"),
            Operand::Expr(Expr::Bool(it)) => write!(f, "{it}"),
            Operand::Tensor(it) => self.tensor_name(f, *it),
            Operand::Plan(it) => write!(f, "plan {it}"),
            Operand::List(items) => {
                f.write_char('[')?;
                self.list(f, items, &|f, it| self.operand(f, it))?;
                f.write_char(']')
            }
        }
    }
}

/// As `x / scale + zero_point in min..=max`.
impl Display for Rounding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "x / {:?} + {} in {}..={}", self.scale, self.zero_point, self.min, self.max)
    }
}

/// The name of this number: `a` to `z`, then `aa`.
fn letters(f: &mut Formatter<'_>, number: usize) -> fmt::Result {
    if number >= 26 {
        letters(f, number / 26 - 1)?;
    }
    f.write_char((b'a' + (number % 26) as u8) as char)
}
