//! Plans of one step each, of what has shaders: for the tests of the text, and for those of what it computes.

use tracefx_core::{DType, Dims, Tensor as Values};
use tracefx_plan::{
    Action, Activation, Argument, Attention, BatchNorm, Buffer, Convolution, ConvolutionLayer, Epilogue, Fused, Gather,
    Instruction, Loop, Norm, NormStatistic, Operand, Plan, Pool, PoolReduction, Product, QuantizedConvolution,
    QuantizedResidual, Register, Rounding, TensorId, TensorView, Window,
};
use tracefx_sym::SymInt;

#[path = "image_cases.rs"]
mod image_cases;
#[path = "product_cases.rs"]
mod product_cases;

pub(crate) use image_cases::IMAGE_CALLS;
pub(crate) use product_cases::{PRODUCT_CALLS, dequantized};

/// A plan that grows.
#[derive(Default)]
pub(crate) struct Build {
    pub(crate) plan: Plan,
    outputs: Vec<Operand>,
}

impl Build {
    /// An input, row-major.
    pub(crate) fn input(&mut self, dtype: DType, sizes: &[i64]) -> TensorId {
        let mut strides = vec![1; sizes.len()];
        for dim in (1..sizes.len()).rev() {
            strides[dim - 1] = strides[dim] * sizes[dim].max(1);
        }
        self.strided(dtype, sizes, &strides)
    }

    /// An input that lies so.
    pub(crate) fn strided(&mut self, dtype: DType, sizes: &[i64], strides: &[i64]) -> TensorId {
        let buffer = self.plan.add_buffer(Buffer::Input(self.plan.inputs.len() as u32));
        let ints = |it: &[i64]| it.iter().map(|it| SymInt::from(*it)).collect::<Vec<_>>();
        let view = TensorView { buffer, dtype, sizes: ints(sizes), strides: ints(strides), offset: SymInt::ZERO };
        let id = self.plan.add_tensor(view);
        self.plan.inputs.push(Operand::Tensor(id));
        id
    }

    /// Positions that the program knows.
    fn positions(&mut self, dtype: DType, values: &[i64]) -> TensorId {
        let sizes = [values.len()];
        let tensor = match dtype {
            Int32 => Values::from_slice(&values.iter().map(|it| *it as i32).collect::<Vec<_>>(), &sizes),
            _ => Values::from_slice(values, &sizes),
        };
        self.constant(&tensor.unwrap())
    }

    /// Matrices of the program that have an inverse: their diagonals are larger than what stands beside them.
    fn regular(&mut self, sizes: &[i64]) -> TensorId {
        let [.., rows, cols] = *sizes else { panic!("a matrix has two dimensions") };
        let n: i64 = sizes.iter().product();
        let number = |it: i64| {
            let is_diagonal = it / cols % rows == it % cols;
            (it * it * 31 + it * 17) as f32 % 19.0 / 10.0 - 1.0 + if is_diagonal { 4.0 } else { 0.0 }
        };
        let sizes: Vec<usize> = sizes.iter().map(|it| *it as usize).collect();
        self.constant(&Values::from_slice(&(0..n).map(number).collect::<Vec<_>>(), &sizes).unwrap())
    }

    /// A tensor of the program.
    pub(crate) fn constant(&mut self, tensor: &Values) -> TensorId {
        let buffer = self.plan.add_buffer(Buffer::Constant(tensor.storage().clone()));
        let sizes: Vec<SymInt> = tensor.sizes().iter().map(|it| SymInt::from(*it as i64)).collect();
        self.plan.add_tensor(TensorView::row_major(buffer, tensor.dtype(), &sizes))
    }

    /// A result, row-major.
    pub(crate) fn result(&mut self, dtype: DType, sizes: &[i64]) -> TensorId {
        let id = self.memory(Buffer::Result, dtype, sizes);
        self.outputs.push(Operand::Tensor(id));
        id
    }

    /// Memory of the plan.
    pub(crate) fn scratch(&mut self, dtype: DType, sizes: &[i64]) -> TensorId {
        self.memory(Buffer::Scratch, dtype, sizes)
    }

    fn memory(&mut self, buffer: Buffer, dtype: DType, sizes: &[i64]) -> TensorId {
        let buffer = self.plan.add_buffer(buffer);
        let sizes: Vec<SymInt> = sizes.iter().map(|it| SymInt::from(*it)).collect();
        self.plan.add_tensor(TensorView::row_major(buffer, dtype, &sizes))
    }

    /// Adds a fused step.
    pub(crate) fn fused(&mut self, step: Fused<TensorId>) {
        self.plan.push(step.name(), Action::Fused(step));
    }

    /// The plan.
    pub(crate) fn finish(mut self) -> Plan {
        self.plan.output = Operand::List(self.outputs);
        self.plan.validate().unwrap();
        self.plan
    }
}

use DType::{Bool, Complex64, Float16, Float32, Int32, Int64};

/// An argument of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    Tensor(DType, &'static [i64]),
    Int(i64),
    Float(f64),
    Bool(bool),
    Bools(&'static [bool]),
    Ints(&'static [i64]),
    /// Positions that the program knows, which are these.
    Known(DType, &'static [i64]),
    /// Matrices that have an inverse.
    Regular(&'static [i64]),
    Text(&'static str),
    /// Tensors of int64 in a list, of these sizes.
    Positions(&'static [&'static [i64]]),
    None,
}

use Arg::{Float, Int, Ints, None as Nothing, Positions, Tensor, Text};

/// A call: the operator, its arguments, and the dtypes and sizes of what it gives.
pub(crate) type Call = (&'static str, &'static [Arg], &'static [(DType, &'static [i64])]);

/// The plan of a call.
pub(crate) fn plan_of((op, args, results): Call) -> Plan {
    let mut build = Build::default();
    let args: Vec<Operand> = args
        .iter()
        .map(|it| match *it {
            Tensor(dtype, sizes) => Operand::Tensor(build.input(dtype, sizes)),
            Int(it) => Operand::Int(it),
            Float(it) => Operand::Float(it),
            Arg::Bool(it) => Operand::Bool(it),
            Ints(it) => Operand::List(it.iter().map(|it| Operand::Int(*it)).collect()),
            Arg::Bools(it) => Operand::List(it.iter().map(|it| Operand::Bool(*it)).collect()),
            Arg::Known(dtype, it) => Operand::Tensor(build.positions(dtype, it)),
            Arg::Regular(sizes) => Operand::Tensor(build.regular(sizes)),
            Text(it) => Operand::Str(it.into()),
            Positions(it) => Operand::List(it.iter().map(|sizes| Operand::Tensor(build.input(Int64, sizes))).collect()),
            Nothing => Operand::None,
        })
        .collect();
    let results: Vec<Operand> =
        results.iter().map(|(dtype, sizes)| Operand::Tensor(build.result(*dtype, sizes))).collect();
    build.plan.push("call", Action::call(op, args, results));
    build.finish()
}

const MATRIX: Arg = Tensor(Float32, &[37, 53]);
const HALVES: Arg = Tensor(Float16, &[5, 7]);
const LONGS: Arg = Tensor(Int64, &[5, 7]);
const INTS: Arg = Tensor(Int32, &[5, 7]);
const BOOLS: Arg = Tensor(Bool, &[5, 7]);
const F: &[(DType, &[i64])] = &[(Float32, &[37, 53])];
const H: &[(DType, &[i64])] = &[(Float16, &[5, 7])];
const L: &[(DType, &[i64])] = &[(Int64, &[5, 7])];
const I: &[(DType, &[i64])] = &[(Int32, &[5, 7])];
const COMPLEX: Arg = Tensor(Complex64, &[5, 7]);
const C: &[(DType, &[i64])] = &[(Complex64, &[5, 7])];
const L70: &[(DType, &[i64])] = &[(Int64, &[70])];
const B37: &[(DType, &[i64])] = &[(Bool, &[37, 53])];
const B: &[(DType, &[i64])] = &[(Bool, &[5, 7])];

/// Products of so many terms that workgroups share them.
pub(crate) const LONG_SUMS: &[Call] = &[
    // Columns beside each other, of few rows, of which several workgroups share the terms.
    ("aten.mm.default", &[Tensor(Float32, &[3, 400]), Tensor(Float32, &[400, 70])], &[(Float32, &[3, 70])]),
    // Tiles of which several workgroups share the terms, the last of them fewer.
    ("aten.mm.default", &[Tensor(Float32, &[40, 391]), Tensor(Float32, &[391, 21])], &[(Float32, &[40, 21])]),
    ("aten.bmm.default", &[Tensor(Float32, &[2, 17, 260]), Tensor(Float32, &[2, 260, 33])], &[(Float32, &[2, 17, 33])]),
];

/// Divisions by integers that the data tells, by the second argument.
pub(crate) const DIVISIONS: &[Call] = &[
    ("aten.div.Tensor_mode", &[LONGS, Tensor(Int64, &[7]), Text("floor")], L),
    ("aten.div.Tensor_mode", &[INTS, Tensor(Int32, &[5, 1]), Text("trunc")], I),
    ("aten.floor_divide.default", &[INTS, INTS], I),
    ("aten.remainder.Tensor", &[LONGS, LONGS], L),
    ("aten.remainder.Tensor", &[Tensor(DType::Int8, &[9]), Tensor(DType::Int8, &[9])], &[(DType::Int8, &[9])]),
    ("aten.fmod.Tensor", &[INTS, INTS], I),
    ("aten.fmod.Tensor", &[LONGS, Tensor(Int32, &[7])], L),
    ("aten.floor_divide.default", &[Tensor(DType::UInt8, &[9]), Tensor(DType::UInt8, &[9])], &[(DType::UInt8, &[9])]),
];

/// Assertions, which give nothing.
pub(crate) const ASSERTIONS: &[Call] = &[
    ("aten._assert_async.msg", &[Tensor(Bool, &[]), Text("it is false")], &[]),
    ("aten._assert_async.msg", &[Tensor(Int64, &[1]), Text("it is zero")], &[]),
    ("aten._assert_async.default", &[Tensor(Float32, &[])], &[]),
];

/// Calls of operators.
pub(crate) const CALLS: &[Call] = &[
    ("aten.exp.default", &[MATRIX], F),
    ("aten.exp2.default", &[MATRIX], F),
    ("aten.expm1.default", &[MATRIX], F),
    ("aten.log.default", &[MATRIX], F),
    ("aten.log1p.default", &[MATRIX], F),
    ("aten.log2.default", &[MATRIX], F),
    ("aten.sqrt.default", &[MATRIX], F),
    ("aten.rsqrt.default", &[MATRIX], F),
    ("aten.sin.default", &[MATRIX], F),
    ("aten.cos.default", &[MATRIX], F),
    ("aten.tan.default", &[MATRIX], F),
    ("aten.asin.default", &[MATRIX], F),
    ("aten.acos.default", &[MATRIX], F),
    ("aten.atan.default", &[MATRIX], F),
    ("aten.sinh.default", &[MATRIX], F),
    ("aten.cosh.default", &[MATRIX], F),
    ("aten.tanh.default", &[MATRIX], F),
    ("aten.asinh.default", &[MATRIX], F),
    ("aten.acosh.default", &[MATRIX], F),
    ("aten.atanh.default", &[MATRIX], F),
    ("aten.erf.default", &[MATRIX], F),
    ("aten.sigmoid.default", &[MATRIX], F),
    ("aten.silu.default", &[MATRIX], F),
    ("aten.mish.default", &[MATRIX], F),
    ("aten.gelu.default", &[MATRIX, Text("none")], F),
    ("aten.gelu.default", &[MATRIX, Text("tanh")], F),
    ("aten.elu.default", &[MATRIX, Float(1.5), Int(1), Int(1)], F),
    ("aten.celu.default", &[MATRIX, Float(1.5)], F),
    ("aten.softplus.default", &[MATRIX, Float(2.0), Float(1.0)], F),
    ("aten.log_sigmoid.default", &[MATRIX], F),
    ("aten.hardsigmoid.default", &[MATRIX], F),
    ("aten.hardswish.default", &[MATRIX], F),
    ("aten.hardtanh.default", &[MATRIX, Float(-0.5), Float(0.25)], F),
    ("aten.leaky_relu.default", &[MATRIX, Float(0.1)], F),
    ("aten.threshold.default", &[MATRIX, Float(0.1), Float(7.0)], F),
    ("aten.hardshrink.default", &[MATRIX, Float(0.5)], F),
    ("aten.nan_to_num.default", &[MATRIX, Nothing, Nothing, Nothing], F),
    ("aten.sign.default", &[MATRIX], F),
    ("aten.floor.default", &[MATRIX], F),
    ("aten.round.default", &[MATRIX], F),
    ("aten.round.decimals", &[MATRIX, Int(2)], F),
    ("aten.add.Tensor", &[MATRIX, Tensor(Float32, &[53]), Float(0.5)], F),
    ("aten.sub.Tensor", &[MATRIX, Tensor(Float32, &[37, 1]), Int(2)], F),
    ("aten.div.Tensor", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.div.Tensor_mode", &[MATRIX, Tensor(Float32, &[53]), Text("floor")], F),
    ("aten.div.Tensor_mode", &[MATRIX, Tensor(Float32, &[53]), Text("trunc")], F),
    ("aten.remainder.Tensor", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.fmod.Tensor", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.pow.Tensor_Tensor", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.pow.Tensor_Scalar", &[MATRIX, Int(3)], F),
    ("aten.pow.Scalar", &[Float(2.5), MATRIX], F),
    ("aten.atan2.default", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.hypot.default", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.copysign.Tensor", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.maximum.default", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.fmin.default", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.clamp.default", &[MATRIX, Nothing, Float(0.5)], F),
    ("aten.lerp.Scalar", &[MATRIX, Tensor(Float32, &[53]), Float(0.7)], F),
    ("aten.addcmul.default", &[MATRIX, MATRIX, Tensor(Float32, &[53]), Float(0.5)], F),
    ("aten.where.self", &[Tensor(Bool, &[53]), MATRIX, Tensor(Float32, &[37, 1])], F),
    ("aten.masked_fill.Scalar", &[MATRIX, Tensor(Bool, &[53]), Float(f64::NEG_INFINITY)], F),
    ("aten.mul.Tensor", &[HALVES, HALVES], H),
    ("aten.exp.default", &[HALVES], H),
    ("aten._to_copy.default", &[HALVES], &[(DType::BFloat16, &[5, 7])]),
    ("aten._to_copy.default", &[HALVES], &[(DType::UInt8, &[5, 7])]),
    ("aten._to_copy.default", &[LONGS], &[(Float32, &[5, 7])]),
    ("aten._to_copy.default", &[Tensor(Float32, &[5, 7])], L),
    ("aten._to_copy.default", &[INTS], &[(DType::Int8, &[5, 7])]),
    ("aten.add.Tensor", &[LONGS, LONGS, Int(3)], L),
    ("aten.sub.Tensor", &[LONGS, LONGS, Int(1)], L),
    ("aten.mul.Tensor", &[LONGS, LONGS], L),
    ("aten.mul.Scalar", &[LONGS, Int(-4_000_000_007)], L),
    ("aten.neg.default", &[LONGS], L),
    ("aten.abs.default", &[LONGS], L),
    ("aten.sign.default", &[LONGS], L),
    ("aten.maximum.default", &[LONGS, LONGS], L),
    ("aten.clamp.default", &[LONGS, Int(-3), Int(1 << 40)], L),
    ("aten.floor_divide.Scalar", &[LONGS, Int(-3)], L),
    ("aten.remainder.Scalar", &[LONGS, Int(5)], L),
    ("aten.fmod.Scalar", &[LONGS, Int(-5)], L),
    ("aten.div.Tensor", &[LONGS, LONGS], &[(Float32, &[5, 7])]),
    ("aten.bitwise_and.Tensor", &[LONGS, LONGS], L),
    ("aten.bitwise_not.default", &[LONGS], L),
    ("aten.__lshift__.Scalar", &[LONGS, Int(35)], L),
    ("aten.__rshift__.Scalar", &[LONGS, Int(3)], L),
    ("aten.eq.Tensor", &[LONGS, LONGS], B),
    ("aten.lt.Scalar", &[LONGS, Int(2)], B),
    ("aten.ge.Scalar", &[LONGS, Float(0.5)], B),
    ("aten.ne.Tensor", &[INTS, INTS], B),
    ("aten.remainder.Scalar", &[INTS, Int(-5)], I),
    ("aten.bitwise_xor.Tensor", &[INTS, INTS], I),
    ("aten.mul.Tensor", &[INTS, INTS], I),
    ("aten.logical_and.default", &[BOOLS, INTS], B),
    ("aten.logical_not.default", &[LONGS], B),
    ("aten.bitwise_or.Tensor", &[BOOLS, BOOLS], B),
    ("aten.isnan.default", &[Tensor(Float32, &[5, 7])], B),
    ("aten.gt.Tensor", &[Tensor(Float32, &[5, 7]), LONGS], B),
    // Special functions, and those of two numbers.
    ("aten.erfc.default", &[MATRIX], F),
    ("aten.erfc.default", &[HALVES], H),
    ("aten.erfinv.default", &[MATRIX], F),
    ("aten.lgamma.default", &[MATRIX], F),
    ("aten.lgamma.default", &[LONGS], &[(Float32, &[5, 7])]),
    ("aten.digamma.default", &[MATRIX], F),
    ("aten.i0.default", &[MATRIX], F),
    ("aten.i0.default", &[INTS], &[(Float32, &[5, 7])]),
    ("aten.special_i1.default", &[MATRIX], F),
    ("aten.logaddexp2.default", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.heaviside.default", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.heaviside.default", &[LONGS, LONGS], L),
    ("aten.heaviside.default", &[INTS, Tensor(Int32, &[7])], I),
    ("aten.nextafter.default", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.isclose.default", &[MATRIX, Tensor(Float32, &[53]), Float(0.5), Float(0.25), Arg::Bool(false)], B37),
    ("aten.gcd.default", &[LONGS, LONGS], L),
    ("aten.gcd.default", &[Tensor(DType::Int8, &[5, 7]), Tensor(DType::Int8, &[7])], &[(DType::Int8, &[5, 7])]),
    ("aten.lcm.default", &[LONGS, Tensor(Int64, &[7])], L),
    ("aten.lcm.default", &[INTS, Tensor(Int32, &[5, 1])], I),
    ("aten.bitwise_left_shift.Tensor", &[LONGS, LONGS], L),
    ("aten.bitwise_right_shift.Tensor", &[LONGS, LONGS], L),
    ("aten.bitwise_left_shift.Tensor", &[INTS, INTS], I),
    ("aten.bitwise_right_shift.Tensor", &[INTS, INTS], I),
    ("aten.__rshift__.Scalar", &[Tensor(DType::Int8, &[9]), Int(9)], &[(DType::Int8, &[9])]),
    ("aten.__lshift__.Scalar", &[Tensor(DType::UInt8, &[9]), Int(3)], &[(DType::UInt8, &[9])]),
    ("aten.pow.Scalar", &[Int(-3), LONGS], L),
    ("aten.pow.Tensor_Tensor", &[LONGS, LONGS], L),
    ("aten.pow.Tensor_Tensor", &[INTS, INTS], I),
    ("aten.pow.Tensor_Scalar", &[INTS, Int(7)], I),
    // New tensors.
    ("aten.eye.default", &[Int(5)], &[(Float32, &[5, 5])]),
    ("aten.eye.m", &[Int(3), Int(70)], &[(Int64, &[3, 70])]),
    ("aten.eye.m", &[Int(7), Int(2)], &[(Bool, &[7, 2])]),
    ("aten.linspace.default", &[Float(-1000.0), Float(1000.0), Int(101)], &[(Float32, &[101])]),
    ("aten.linspace.default", &[Int(3), Float(-0.1), Int(4)], &[(Float16, &[4])]),
    ("aten.linspace.default", &[Float(2.5), Float(7.0), Int(1)], &[(Float32, &[1])]),
    ("aten.logspace.default", &[Float(-2.0), Int(3), Int(77), Float(10.0)], &[(Float32, &[77])]),
    ("aten.hann_window.default", &[Int(20)], &[(Float32, &[20])]),
    ("aten.hann_window.periodic", &[Int(33), Arg::Bool(false)], &[(Float32, &[33])]),
    ("aten.hamming_window.periodic_alpha", &[Int(9), Arg::Bool(true), Float(0.6)], &[(Float32, &[9])]),
    ("aten.blackman_window.periodic", &[Int(70), Arg::Bool(false)], &[(DType::BFloat16, &[70])]),
    ("aten.bartlett_window.default", &[Int(7)], &[(Float32, &[7])]),
    ("aten.kaiser_window.beta", &[Int(31), Arg::Bool(false), Float(5.0)], &[(Float32, &[31])]),
    ("aten.kaiser_window.default", &[Int(1)], &[(Float32, &[1])]),
    ("aten.tril_indices.default", &[Int(5), Int(4), Int(-1)], &[(Int64, &[2, 10])]),
    ("aten.tril_indices.default", &[Int(3), Int(4), Int(9)], &[(Int32, &[2, 12])]),
    ("aten.triu_indices.default", &[Int(5), Int(4), Int(1)], &[(Int64, &[2, 6])]),
    ("aten.triu_indices.default", &[Int(9), Int(13), Int(-2)], &[(Int64, &[2, 96])]),
    // Unsigned integers.
    ("aten._to_copy.default", &[Tensor(DType::UInt16, &[70])], &[(Int32, &[70])]),
    ("aten._to_copy.default", &[LONGS], &[(DType::UInt16, &[5, 7])]),
    ("aten.mul.Tensor", &[Tensor(DType::UInt16, &[9]), Int(-3)], &[(DType::UInt16, &[9])]),
    ("aten._to_copy.default", &[Tensor(DType::UInt32, &[70])], L70),
    ("aten._to_copy.default", &[Tensor(DType::UInt32, &[70])], &[(Float32, &[70])]),
    ("aten._to_copy.default", &[Tensor(Float32, &[70])], &[(DType::UInt32, &[70])]),
    ("aten.add.Tensor", &[Tensor(DType::UInt32, &[70]), Int(4_294_967_295), Int(1)], &[(DType::UInt32, &[70])]),
    // Products of integers.
    ("aten.mm.default", &[INTS, Tensor(Int32, &[7, 9])], &[(Int32, &[5, 9])]),
    ("aten.mm.default", &[LONGS, Tensor(Int64, &[7, 3])], &[(Int64, &[5, 3])]),
    ("aten.bmm.default", &[Tensor(Int32, &[2, 3, 4]), Tensor(Int32, &[2, 4, 5])], &[(Int32, &[2, 3, 5])]),
    ("aten.mv.default", &[Tensor(DType::Int8, &[3, 40]), Tensor(DType::Int8, &[40])], &[(DType::Int8, &[3])]),
    ("aten.dot.default", &[Tensor(Int64, &[33]), Tensor(Int64, &[33])], &[(Int64, &[])]),
    ("aten.mm.default", &[Tensor(Int32, &[3, 0]), Tensor(Int32, &[0, 4])], &[(Int32, &[3, 4])]),
    // Complex numbers.
    ("aten.mul.Tensor", &[COMPLEX, Tensor(Complex64, &[7])], C),
    ("aten.mul.Tensor", &[COMPLEX, Tensor(Float32, &[5, 1])], C),
    ("aten.div.Tensor", &[COMPLEX, Tensor(Complex64, &[7])], C),
    ("aten.add.Tensor", &[COMPLEX, Tensor(Float32, &[7]), Int(3)], C),
    ("aten.rsub.Scalar", &[COMPLEX, Float(1.5), Int(1)], C),
    ("aten.neg.default", &[COMPLEX], C),
    ("aten.conj_physical.default", &[COMPLEX], C),
    ("aten.reciprocal.default", &[COMPLEX], C),
    ("aten.exp.default", &[COMPLEX], C),
    ("aten.log.default", &[COMPLEX], C),
    ("aten.sqrt.default", &[COMPLEX], C),
    ("aten.abs.default", &[COMPLEX], &[(Float32, &[5, 7])]),
    ("aten.isfinite.default", &[COMPLEX], B),
    ("aten.eq.Tensor", &[COMPLEX, COMPLEX], B),
    ("aten.where.self", &[BOOLS, COMPLEX, Tensor(Complex64, &[7])], C),
    ("aten._to_copy.default", &[LONGS], C),
    ("aten._to_copy.default", &[COMPLEX], &[(Float32, &[5, 7])]),
    // Reductions.
    ("aten.sum.default", &[MATRIX, Nothing], &[(Float32, &[])]),
    ("aten.sum.dim_IntList", &[MATRIX, Ints(&[0]), Arg::Bool(false), Nothing], &[(Float32, &[53])]),
    ("aten.sum.dim_IntList", &[MATRIX, Ints(&[1]), Arg::Bool(true), Nothing], &[(Float32, &[37, 1])]),
    ("aten.sum.dim_IntList", &[Tensor(Bool, &[3, 90]), Ints(&[-1]), Arg::Bool(false), Nothing], &[(Int64, &[3])]),
    ("aten.sum.default", &[LONGS, Nothing], &[(Int64, &[])]),
    ("aten.mean.dim", &[Tensor(Float32, &[3, 4, 5]), Ints(&[0, 2]), Arg::Bool(false), Nothing], &[(Float32, &[4])]),
    ("aten.mean.default", &[HALVES, Nothing], &[(Float16, &[])]),
    ("aten.amax.default", &[MATRIX, Ints(&[1]), Arg::Bool(false)], &[(Float32, &[37])]),
    ("aten.amin.default", &[LONGS, Ints(&[0]), Arg::Bool(false)], &[(Int64, &[7])]),
    ("aten.max.default", &[INTS], &[(Int32, &[])]),
    ("aten.prod.dim_int", &[Tensor(Float32, &[5, 7]), Int(1), Arg::Bool(false), Nothing], &[(Float32, &[5])]),
    ("aten.any.dim", &[BOOLS, Int(0), Arg::Bool(false)], &[(Bool, &[7])]),
    ("aten.all.default", &[BOOLS], &[(Bool, &[])]),
    ("aten.argmax.default", &[MATRIX, Int(1), Arg::Bool(false)], &[(Int64, &[37])]),
    ("aten.argmin.default", &[LONGS, Nothing, Arg::Bool(false)], &[(Int64, &[])]),
    ("aten.max.dim", &[MATRIX, Int(0), Arg::Bool(false)], &[(Float32, &[53]), (Int64, &[53])]),
    ("aten.linalg_vector_norm.default", &[MATRIX, Int(2), Ints(&[1]), Arg::Bool(false), Nothing], &[(Float32, &[37])]),
    (
        "aten.linalg_vector_norm.default",
        &[MATRIX, Float(3.0), Ints(&[0]), Arg::Bool(false), Nothing],
        &[(Float32, &[53])],
    ),
    ("aten.var.correction", &[MATRIX, Ints(&[1]), Int(1), Arg::Bool(false)], &[(Float32, &[37])]),
    ("aten._softmax.default", &[MATRIX, Int(1), Arg::Bool(false)], F),
    ("aten._softmax.default", &[MATRIX, Int(0), Arg::Bool(false)], F),
    ("aten._log_softmax.default", &[Tensor(Float32, &[2, 6, 3]), Int(1), Arg::Bool(false)], &[(Float32, &[2, 6, 3])]),
    ("aten.logsumexp.default", &[MATRIX, Ints(&[1]), Arg::Bool(false)], &[(Float32, &[37])]),
    ("aten.cumsum.default", &[MATRIX, Int(1), Nothing], F),
    ("aten.cumsum.default", &[BOOLS, Int(0), Nothing], L),
    ("aten.sort.default", &[MATRIX, Int(0), Arg::Bool(false)], &[(Float32, &[37, 53]), (Int64, &[37, 53])]),
    ("aten.sort.stable", &[LONGS, Arg::Bool(true), Int(1), Arg::Bool(true)], &[(Int64, &[5, 7]), (Int64, &[5, 7])]),
    (
        "aten.topk.default",
        &[MATRIX, Int(4), Int(1), Arg::Bool(true), Arg::Bool(true)],
        &[(Float32, &[37, 4]), (Int64, &[37, 4])],
    ),
    ("aten.sum.dim_IntList", &[Tensor(Float32, &[3, 0]), Ints(&[1]), Arg::Bool(false), Nothing], &[(Float32, &[3])]),
    ("aten.mm.default", &[Tensor(Float32, &[3, 0]), Tensor(Float32, &[0, 4])], &[(Float32, &[3, 4])]),
    // Products.
    ("aten.mm.default", &[MATRIX, Tensor(Float32, &[53, 70])], &[(Float32, &[37, 70])]),
    ("aten.mm.default", &[Tensor(Float32, &[2, 130]), Tensor(Float32, &[130, 9])], &[(Float32, &[2, 9])]),
    // The largest tiles.
    (
        "aten.bmm.default",
        &[Tensor(Float32, &[33, 130, 20]), Tensor(Float32, &[33, 20, 257])],
        &[(Float32, &[33, 130, 257])],
    ),
    ("aten.bmm.default", &[Tensor(Float32, &[3, 9, 17]), Tensor(Float32, &[3, 17, 10])], &[(Float32, &[3, 9, 10])]),
    ("aten.mv.default", &[MATRIX, Tensor(Float32, &[53])], &[(Float32, &[37])]),
    ("aten.dot.default", &[Tensor(Float32, &[53]), Tensor(Float32, &[53])], &[(Float32, &[])]),
    ("aten.linear.default", &[MATRIX, Tensor(Float32, &[11, 53]), Tensor(Float32, &[11])], &[(Float32, &[37, 11])]),
    (
        "aten.addmm.default",
        &[Tensor(Float32, &[8]), MATRIX, Tensor(Float32, &[53, 8]), Float(0.5), Int(2)],
        &[(Float32, &[37, 8])],
    ),
    (
        "aten.baddbmm.default",
        &[Tensor(Float32, &[2, 1, 6]), Tensor(Float32, &[2, 7, 5]), Tensor(Float32, &[2, 5, 6]), Int(1), Float(0.5)],
        &[(Float32, &[2, 7, 6])],
    ),
    // Convolutions.
    (
        "aten.convolution.default",
        &[
            Tensor(Float32, &[2, 4, 9, 8]),
            Tensor(Float32, &[6, 2, 3, 2]),
            Tensor(Float32, &[6]),
            Ints(&[2, 1]),
            Ints(&[1, 0]),
            Ints(&[1, 2]),
            Arg::Bool(false),
            Ints(&[0, 0]),
            Int(2),
        ],
        &[(Float32, &[2, 6, 5, 6])],
    ),
    (
        "aten.convolution.default",
        &[
            Tensor(Float32, &[2, 4, 5, 6]),
            Tensor(Float32, &[4, 3, 3, 2]),
            Nothing,
            Ints(&[2, 3]),
            Ints(&[1, 0]),
            Ints(&[1, 1]),
            Arg::Bool(true),
            Ints(&[1, 0]),
            Int(2),
        ],
        &[(Float32, &[2, 6, 10, 17])],
    ),
    (
        "aten.convolution.default",
        &[
            Tensor(Float32, &[2, 4, 11]),
            Tensor(Float32, &[5, 4, 3]),
            Nothing,
            Ints(&[1]),
            Ints(&[1]),
            Ints(&[1]),
            Arg::Bool(false),
            Ints(&[0]),
            Int(1),
        ],
        &[(Float32, &[2, 5, 11])],
    ),
    // Poolings and normalisations.
    (
        "aten.avg_pool2d.default",
        &[
            Tensor(Float32, &[2, 3, 7, 8]),
            Ints(&[3, 2]),
            Ints(&[2, 2]),
            Ints(&[1, 0]),
            Arg::Bool(false),
            Arg::Bool(true),
            Nothing,
        ],
        &[(Float32, &[2, 3, 4, 4])],
    ),
    (
        "aten.max_pool2d_with_indices.default",
        &[Tensor(Float32, &[2, 3, 7, 8]), Ints(&[3, 2]), Ints(&[2, 2]), Ints(&[1, 0]), Ints(&[1, 1]), Arg::Bool(false)],
        &[(Float32, &[2, 3, 4, 4]), (Int64, &[2, 3, 4, 4])],
    ),
    (
        "aten._adaptive_avg_pool2d.default",
        &[Tensor(Float32, &[2, 3, 7, 8]), Ints(&[3, 4])],
        &[(Float32, &[2, 3, 3, 4])],
    ),
    (
        "aten.native_group_norm.default",
        &[
            Tensor(Float32, &[2, 6, 4, 5]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Int(2),
            Int(6),
            Int(20),
            Int(3),
            Float(1e-5),
        ],
        &[(Float32, &[2, 6, 4, 5]), (Float32, &[2, 3]), (Float32, &[2, 3])],
    ),
    (
        "aten.native_layer_norm.default",
        &[Tensor(Float32, &[4, 50]), Ints(&[50]), Tensor(Float32, &[50]), Nothing, Float(1e-5)],
        &[(Float32, &[4, 50]), (Float32, &[4, 1]), (Float32, &[4, 1])],
    ),
    (
        "aten._native_batch_norm_legit_no_training.default",
        &[
            Tensor(Float32, &[2, 6, 4, 5]),
            Tensor(Float32, &[6]),
            Nothing,
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Float(0.1),
            Float(5.0),
        ],
        &[(Float32, &[2, 6, 4, 5]), (Float32, &[0]), (Float32, &[0])],
    ),
    (
        "aten._native_batch_norm_legit_functional.default",
        &[
            Tensor(Float32, &[2, 6, 4, 5]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Tensor(Float32, &[6]),
            Arg::Bool(true),
            Float(0.1),
            Float(1e-5),
        ],
        &[(Float32, &[2, 6, 4, 5]), (Float32, &[6]), (Float32, &[6]), (Float32, &[6]), (Float32, &[6])],
    ),
    (
        "aten._native_batch_norm_legit.no_stats",
        &[Tensor(Float32, &[2, 6, 4, 5]), Nothing, Tensor(Float32, &[6]), Arg::Bool(true), Float(0.1), Float(1e-5)],
        &[(Float32, &[2, 6, 4, 5]), (Float32, &[6]), (Float32, &[6])],
    ),
    // What moves elements.
    ("aten.slice_scatter.default", &[MATRIX, Tensor(Float32, &[37, 9]), Int(1), Int(2), Int(20), Int(2)], F),
    ("aten.index_put.default", &[MATRIX, Positions(&[&[3]]), Tensor(Float32, &[3, 53]), Arg::Bool(false)], F),
    ("aten.scatter_add.default", &[MATRIX, Int(0), Tensor(Int64, &[5, 50]), Tensor(Float32, &[6, 50])], F),
    ("aten.scatter.value", &[LONGS, Int(1), Tensor(Int64, &[5, 2]), Int(-7)], L),
    (
        "aten.scatter_reduce.two",
        &[MATRIX, Int(0), Tensor(Int64, &[9, 53]), Tensor(Float32, &[9, 53]), Text("mean"), Arg::Bool(true)],
        F,
    ),
    (
        "aten.scatter_reduce.two",
        &[MATRIX, Int(0), Tensor(Int64, &[9, 53]), Tensor(Float32, &[9, 53]), Text("amax"), Arg::Bool(false)],
        F,
    ),
    ("aten.index_put.default", &[MATRIX, Positions(&[&[2, 3]]), Tensor(Float32, &[53]), Arg::Bool(true)], F),
    ("aten.index_put.default", &[MATRIX, Positions(&[&[2, 3], &[3]]), Tensor(Float32, &[2, 3]), Arg::Bool(true)], F),
    ("aten.index_add.default", &[MATRIX, Int(1), Tensor(Int64, &[4]), Tensor(Float32, &[37, 4]), Float(0.5)], F),
    (
        "aten.index_add.default",
        &[Tensor(Int64, &[37, 7]), Int(-2), Tensor(Int64, &[3]), Tensor(Int64, &[3, 7]), Int(-2)],
        &[(Int64, &[37, 7])],
    ),
    ("aten.index_copy.default", &[HALVES, Int(0), Tensor(Int64, &[1]), Tensor(Float16, &[1, 7])], H),
    (
        "aten.index_fill.int_Scalar",
        &[Tensor(Float16, &[3, 9]), Int(1), Tensor(Int64, &[2]), Float(0.1)],
        &[(Float16, &[3, 9])],
    ),
    (
        "aten.index_fill.int_Scalar",
        &[Tensor(Int64, &[9, 2]), Int(0), Tensor(Int64, &[2]), Int(-9)],
        &[(Int64, &[9, 2])],
    ),
    ("aten.take.default", &[Tensor(Int64, &[37, 2]), Tensor(Int64, &[2, 3])], &[(Int64, &[2, 3])]),
    ("aten.select_scatter.default", &[MATRIX, Tensor(Float32, &[37]), Int(-1), Int(-3)], F),
    ("aten.diagonal_scatter.default", &[MATRIX, Tensor(Float32, &[35]), Int(-2), Int(0), Int(1)], F),
    ("aten.diagonal_scatter.default", &[LONGS, Tensor(Int64, &[4]), Int(3), Int(0), Int(1)], L),
    ("aten.masked_scatter.default", &[HALVES, BOOLS, Tensor(Float16, &[6, 7])], H),
    ("aten.nonzero_static.default", &[BOOLS, Int(40), Int(-1)], &[(Int64, &[40, 2])]),
    (
        "aten.searchsorted.Tensor",
        &[Tensor(Int64, &[7]), LONGS, Arg::Bool(true), Arg::Bool(false), Nothing, Nothing],
        &[(Int32, &[5, 7])],
    ),
    (
        "aten.searchsorted.Tensor",
        &[MATRIX, Tensor(Float32, &[37, 3]), Arg::Bool(false), Arg::Bool(false), Text("right"), Nothing],
        &[(Int64, &[37, 3])],
    ),
    ("aten.bucketize.Tensor", &[HALVES, Tensor(Float16, &[9]), Arg::Bool(false), Arg::Bool(true)], L),
    ("aten.isin.Tensor_Tensor", &[LONGS, Tensor(Int64, &[3]), Arg::Bool(false), Arg::Bool(true)], B),
    (
        "aten.isin.Tensor_Tensor",
        &[MATRIX, Tensor(Float32, &[2, 9]), Arg::Bool(false), Arg::Bool(false)],
        &[(Bool, &[37, 53])],
    ),
    ("aten.roll.default", &[LONGS, Ints(&[-3]), Ints(&[])], L),
    // What is ordered.
    ("aten.median.dim", &[MATRIX, Int(0), Arg::Bool(false)], &[(Float32, &[53]), (Int64, &[53])]),
    ("aten.median.default", &[LONGS], &[(Int64, &[])]),
    ("aten.nanmedian.dim", &[LONGS, Int(-1), Arg::Bool(true)], &[(Int64, &[5, 1]), (Int64, &[5, 1])]),
    ("aten.mode.default", &[INTS, Int(1), Arg::Bool(false)], &[(Int32, &[5]), (Int64, &[5])]),
    ("aten.kthvalue.default", &[MATRIX, Int(3), Int(1), Arg::Bool(false)], &[(Float32, &[37]), (Int64, &[37])]),
    ("aten.quantile.scalar", &[MATRIX, Float(0.3), Int(1), Arg::Bool(false), Text("linear")], &[(Float32, &[37])]),
    ("aten.quantile.scalar", &[MATRIX, Float(0.8), Nothing, Arg::Bool(false), Text("midpoint")], &[(Float32, &[])]),
    ("aten.logcumsumexp.default", &[MATRIX, Int(1)], F),
    ("aten.reflection_pad2d.default", &[Tensor(Float32, &[2, 4, 5]), Ints(&[2, 1, 3, 0])], &[(Float32, &[2, 7, 8])]),
    ("aten.replication_pad2d.default", &[Tensor(Float32, &[2, 4, 5]), Ints(&[2, 1, 3, 0])], &[(Float32, &[2, 7, 8])]),
    ("aten._pad_circular.default", &[Tensor(Int64, &[2, 4, 5]), Ints(&[2, 1, 3, 0])], &[(Int64, &[2, 7, 8])]),
    ("aten.cummax.default", &[MATRIX, Int(1)], &[(Float32, &[37, 53]), (Int64, &[37, 53])]),
    ("aten.cummin.default", &[LONGS, Int(0)], &[(Int64, &[5, 7]), (Int64, &[5, 7])]),
    ("aten.aminmax.default", &[MATRIX, Int(1), Arg::Bool(false)], &[(Float32, &[37]), (Float32, &[37])]),
    (
        "aten.std_mean.correction",
        &[MATRIX, Ints(&[0]), Int(1), Arg::Bool(false)],
        &[(Float32, &[53]), (Float32, &[53])],
    ),
    (
        "aten.addbmm.default",
        &[Tensor(Float32, &[6]), Tensor(Float32, &[3, 7, 5]), Tensor(Float32, &[3, 5, 6]), Int(1), Float(0.5)],
        &[(Float32, &[7, 6])],
    ),
    ("aten.logaddexp.default", &[MATRIX, Tensor(Float32, &[53])], F),
    ("aten.logit.default", &[MATRIX, Float(0.01)], F),
    ("aten.selu.default", &[MATRIX], F),
    ("aten.sinc.default", &[MATRIX], F),
    ("aten.sin.default", &[Tensor(Int64, &[5, 7])], &[(Float32, &[5, 7])]),
    ("aten.fmod.Scalar", &[Tensor(Int64, &[5, 7]), Float(0.7)], &[(Float32, &[5, 7])]),
    ("aten.constant_pad_nd.default", &[LONGS, Ints(&[1, 2, -1, 3]), Int(9)], &[(Int64, &[7, 10])]),
    ("aten.flip.default", &[MATRIX, Ints(&[0, -1])], F),
    ("aten.roll.default", &[BOOLS, Ints(&[2, -1]), Ints(&[0, 1])], B),
    ("aten.repeat.default", &[HALVES, Ints(&[2, 1, 3])], &[(Float16, &[2, 5, 21])]),
    ("aten.tril.default", &[MATRIX, Int(-1)], F),
    ("aten.triu.default", &[LONGS, Int(1)], L),
    ("aten.index_select.default", &[MATRIX, Int(1), Tensor(Int64, &[6])], &[(Float32, &[37, 6])]),
    (
        "aten.embedding.default",
        &[MATRIX, Tensor(Int64, &[2, 3]), Int(-1), Arg::Bool(false), Arg::Bool(false)],
        &[(Float32, &[2, 3, 53])],
    ),
    ("aten.gather.default", &[MATRIX, Int(0), Tensor(Int64, &[4, 53]), Arg::Bool(false)], &[(Float32, &[4, 53])]),
    ("aten.index.Tensor", &[MATRIX, Positions(&[&[4, 1], &[3]])], &[(Float32, &[4, 3])]),
    ("aten.full_like.default", &[HALVES, Float(0.1), Nothing, Nothing, Nothing, Nothing, Nothing], H),
    ("aten.arange.start_step", &[Int(3), Int(30), Int(4), Nothing, Nothing, Nothing, Nothing], &[(Int64, &[7])]),
];

/// Fused steps, by name.
pub(crate) fn fused() -> Vec<(&'static str, Plan)> {
    let mut plans = vec![
        ("a loop", code()),
        ("a copy", copy()),
        ("copies between steps", between()),
        ("a gather", gather(1, false, Int64)),
        ("a gather that wraps", gather(0, true, Int32)),
        ("layer norm", norm(NormStatistic::Variance)),
        ("rms norm", norm(NormStatistic::MeanSquare)),
        ("pool", pool(PoolReduction::Max)),
        ("average pool", pool(PoolReduction::Average { count_include_pad: true, divisor_override: None })),
        (
            "average pool of the image",
            pool(PoolReduction::Average { count_include_pad: false, divisor_override: None }),
        ),
        (
            "an average of an image",
            image_pool(PoolReduction::Average { count_include_pad: false, divisor_override: None }),
        ),
        ("the largest of an image", image_pool(PoolReduction::Max)),
        ("attention", attention(None, false, true)),
        ("causal attention", attention(None, true, true)),
        ("attention with a mask", attention(Some(Float32), false, false)),
        ("attention with a mask of bools", attention(Some(Bool), false, true)),
        ("attention of few keys", attention_of([5, 20, 12, 6], None, false, true)),
        ("causal attention of few keys", attention_of([6, 6, 5, 16], None, true, false)),
        ("a row of queries", attention_of([1, 200, 16, 16], None, false, false)),
        ("a row of queries with a mask of bools", attention_of([1, 300, 9, 130], Some(Bool), false, true)),
        ("a product of many terms", product([6, 400, 40], Activation::Silu)),
        ("a product of many terms and few rows", product([2, 700, 70], Activation::Gelu)),
        ("a depthwise convolution", convolution(&[(12, 12, 3)])),
        ("a convolution in groups", convolution(&[(10, 2, 3)])),
        ("a pointwise convolution", convolution(&[(10, 1, 1)])),
        ("an inverted residual", convolution(&[(24, 1, 1), (24, 24, 3), (8, 1, 1)])),
        ("a squeezed convolution", squeezed()),
        ("halves between steps", between_of_halves()),
        ("a convolution of integers", quantized()),
        ("a group norm of turned images", turned_norm()),
    ];
    let activations = [
        Activation::Identity,
        Activation::Clamp { min: 0.0, max: f32::INFINITY },
        Activation::Clamp { min: 0.0, max: 6.0 },
        Activation::LeakyRelu(0.1),
        Activation::Sigmoid,
        Activation::Silu,
        Activation::HardSigmoid,
        Activation::HardSwish,
        Activation::Tanh,
        Activation::Gelu,
        Activation::GeluTanh,
    ];
    plans.extend(activations.map(|it| ("a product", product([9, 33, 20], it))));
    plans.extend([[1, 100, 40], [70, 50, 65], [33, 7, 100]].map(|it| ("a product", product(it, Activation::Identity))));
    plans
}

fn code() -> Plan {
    let mut build = Build::default();
    let a = build.input(Float32, &[3, 4, 5]);
    let b = build.strided(Float32, &[4, 5], &[1, 4]);
    let c = build.input(Int64, &[3, 1, 5]);
    let (y, z) = (build.result(Float32, &[3, 4, 5]), build.result(Bool, &[3, 4, 5]));
    let register = |it| Argument::Register(Register(it));
    let instruction = |op: &str, args: Vec<Argument>, dtype| Instruction { op: op.into(), args, dtype };
    build.fused(Fused::Loop(Loop {
        sizes: Dims::from_slice(&[3, 4, 5]),
        inputs: vec![a, b, c],
        code: vec![
            instruction("aten.mul.Tensor", vec![register(0), register(1)], Float32),
            instruction("aten.add.Tensor", vec![register(3), register(2), Argument::Value(Operand::Int(2))], Float32),
            instruction("aten.gt.Scalar", vec![register(4), Argument::Value(Operand::Float(0.25))], Bool),
            instruction("aten.where.self", vec![register(5), register(4), register(0)], Float32),
        ],
        outputs: vec![(Register(6), y), (Register(5), z)],
    }));
    build.finish()
}

fn copy() -> Plan {
    let mut build = Build::default();
    let from = build.strided(Int64, &[4, 3], &[1, 5]);
    let whole = build.result(Int64, &[2, 4, 6]);
    let view = build.plan.tensor(whole).clone();
    let part = TensorView { sizes: vec![2.into(), 4.into(), 3.into()], offset: 2.into(), ..view };
    let to = build.plan.add_tensor(part);
    build.plan.push("copy", Action::Copy { from, to });
    build.finish()
}

/// Steps of the device around one of the CPU, in the same memory.
fn between() -> Plan {
    let mut build = Build::default();
    let x = build.input(Float32, &[6, 5]);
    let [a, b] = [0, 1].map(|_| build.scratch(Float32, &[6, 5]));
    let y = build.result(Float32, &[6, 5]);
    for (op, from, to) in
        [("aten.exp.default", x, a), ("aten.special_airy_ai.default", a, b), ("aten.neg.default", b, y)]
    {
        build.plan.push("call", Action::call(op, vec![Operand::Tensor(from)], vec![Operand::Tensor(to)]));
    }
    build.finish()
}

/// As [`between`], of an odd number of elements in float16.
fn between_of_halves() -> Plan {
    let mut build = Build::default();
    let x = build.input(Float16, &[5, 3]);
    let [a, b] = [0, 1].map(|_| build.scratch(Float16, &[5, 3]));
    let y = build.result(Float16, &[5, 3]);
    let one = |op: &str, from, to| Action::call(op, vec![Operand::Tensor(from)], vec![Operand::Tensor(to)]);
    build.plan.push("call", one("aten.exp.default", x, a));
    let args = vec![Operand::Tensor(a); 2];
    build.plan.push("call", Action::call("aten.igamma.default", args, vec![Operand::Tensor(b)]));
    build.plan.push("call", one("aten.neg.default", b, y));
    build.finish()
}

fn gather(dim: usize, is_wrapped: bool, dtype: DType) -> Plan {
    let mut build = Build::default();
    let (input, index) = (build.input(Float32, &[5, 6, 4]), build.input(dtype, &[2, 3]));
    let sizes: &[i64] = if dim == 0 { &[2, 3, 6, 4] } else { &[5, 2, 3, 4] };
    let result = build.result(Float32, sizes);
    let op = if is_wrapped { "aten.index.Tensor" } else { "aten.index_select.default" };
    build.fused(Fused::Gather(Gather { op: op.into(), input, dim, index, is_wrapped, result }));
    build.finish()
}

fn norm(statistic: NormStatistic) -> Plan {
    let mut build = Build::default();
    let input = build.input(Float32, &[7, 90]);
    let (weight, bias) = (Some(build.input(Float32, &[90])), Some(build.input(Float32, &[90])));
    let result = build.result(Float32, &[7, 90]);
    build.fused(Fused::Norm(Norm { input, statistic, weight, bias, eps: 1e-5, result }));
    build.finish()
}

fn pool(reduction: PoolReduction) -> Plan {
    pool_of([2, 7, 8, 5], [2, 4, 4, 5], ([3, 2], [2, 2]), reduction)
}

/// Windows of nearly the whole image, and of its padding.
fn image_pool(reduction: PoolReduction) -> Plan {
    pool_of([2, 12, 11, 5], [2, 2, 1, 5], ([11, 11], [2, 1]), reduction)
}

fn pool_of(from: [i64; 4], to: [i64; 4], (kernel, stride): ([usize; 2], [usize; 2]), reduction: PoolReduction) -> Plan {
    let mut build = Build::default();
    let (input, result) = (build.input(Float32, &from), build.result(Float32, &to));
    let (padding, dilation) = ([1, 0], [1, 1]);
    build.fused(Fused::Pool(Pool { input, kernel, stride, padding, dilation, reduction, result }));
    build.finish()
}

fn attention(mask: Option<DType>, is_causal: bool, is_safe: bool) -> Plan {
    attention_of([9, 80, 8, 70], mask, is_causal, is_safe)
}

/// Of so many rows of queries, keys, features and values.
fn attention_of([rows, keys, e, values]: [i64; 4], mask: Option<DType>, is_causal: bool, is_safe: bool) -> Plan {
    let mut build = Build::default();
    let query = build.input(Float32, &[2, 3, rows, e]);
    let key = build.strided(Float32, &[2, 3, keys, e], &[keys * e, 0, e, 1]);
    let value = build.strided(Float32, &[2, 3, keys, values], &[0, keys * values, 1, keys]);
    let mask = mask.map(|dtype| build.strided(dtype, &[2, 3, rows, keys], &[0, 0, keys, 1]));
    let result = build.result(Float32, &[2, 3, rows, values]);
    let (masked, scale) = (f64::NEG_INFINITY, 0.35);
    build.fused(Fused::Attention(Attention { query, key, value, mask, masked, is_causal, scale, is_safe, result }));
    build.finish()
}

/// Convolutions of `(filters, groups, side of the kernel)`.
fn convolution(layers: &[(i64, usize, i64)]) -> Plan {
    let mut build = Build::default();
    let mut channels = if layers.len() == 1 { 12 } else { 8 };
    if layers[0].1 == 2 {
        channels = 20;
    }
    let input = build.input(Float32, &[2, 6, 7, channels]);
    let mut made = Vec::new();
    for (at, &(filters, groups, side)) in layers.iter().enumerate() {
        let weight = build.input(Float32, &[filters, channels / groups as i64, side, side]);
        let mut per_channel = || Some(build.input(Float32, &[filters]));
        let mut epilogue = Epilogue { bias: per_channel(), ..Epilogue::none() };
        epilogue.activation = Activation::Clamp { min: 0.0, max: 6.0 };
        if at == 0 {
            let (weight, bias) = (per_channel(), per_channel());
            // Variances are not below zero.
            let (mean, var) = (per_channel().unwrap(), build.input(Float32, &[filters]));
            epilogue.norm = Some(BatchNorm { weight, bias, mean, var, eps: 5.0 });
        }
        if at + 1 == layers.len() {
            epilogue.residual = Some(build.input(Float32, &[2, 6, 7, filters]));
        }
        let padding = [side as usize / 2; 2];
        made.push(ConvolutionLayer { weight, stride: [1; 2], padding, dilation: [1; 2], groups, epilogue });
        channels = filters;
    }
    let result = build.result(Float32, &[2, 6, 7, channels]);
    build.fused(Fused::Convolution(Convolution { input, scale: None, layers: made, result }));
    build.finish()
}

fn squeezed() -> Plan {
    let mut build = Build::default();
    let (input, scale) = (build.input(Float32, &[2, 6, 7, 12]), Some(build.input(Float32, &[2, 1, 1, 12])));
    let (weight, result) = (build.input(Float32, &[9, 12, 1, 1]), build.result(Float32, &[2, 6, 7, 9]));
    let epilogue = Epilogue::none();
    let layer = ConvolutionLayer { weight, stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1, epilogue };
    build.fused(Fused::Convolution(Convolution { input, scale, layers: vec![layer], result }));
    build.finish()
}

fn product([m, k, n]: [i64; 3], activation: Activation) -> Plan {
    let mut build = Build::default();
    let lhs = build.input(Float32, &[m, k]);
    let rhs = build.strided(Float32, &[k, n], &[1, k]);
    let bias = Some(build.input(Float32, &[n]));
    let residual = Some(build.input(Float32, &[m, n]));
    let result = build.result(Float32, &[m, n]);
    let epilogue = Epilogue { bias, norm: None, residual, activation };
    build.fused(Fused::Product(Product { lhs, rhs, epilogue, result }));
    build.finish()
}

fn quantized() -> Plan {
    let mut build = Build::default();
    let (input, weight) = (build.input(DType::UInt8, &[2, 5, 6, 4]), build.input(DType::Int8, &[6, 2, 3, 3]));
    let (zeros, scales) = (build.input(Int64, &[6]), build.input(Float32, &[6]));
    let bias = Some(build.input(Float32, &[6]));
    let tensor = build.input(DType::Int8, &[2, 5, 6, 6]);
    let result = build.result(DType::UInt8, &[2, 5, 6, 6]);
    let step = QuantizedConvolution {
        input,
        zero_point: 3,
        weight,
        weight_zero_points: Some(zeros),
        window: Window { stride: [1; 2], padding: [1; 2], dilation: [1; 2], groups: 2 },
        scale: 0.5,
        scales: Some(scales),
        bias,
        inner: Some(Rounding { scale: 0.25, zero_point: -5, min: -128, max: 127 }),
        residual: Some(QuantizedResidual { tensor, scale: 0.125, zero_point: 1 }),
        limits: [0.0, 6.0],
        rounding: Some(Rounding { scale: 0.1, zero_point: 7, min: 0, max: 255 }),
        result,
    };
    build.fused(step.into());
    build.finish()
}

/// Images whose channels lie side by side.
fn turned_norm() -> Plan {
    let mut build = Build::default();
    let x = build.strided(Float32, &[2, 6, 4, 5], &[120, 1, 30, 6]);
    let numbers = [2, 6, 20, 3].map(Operand::Int);
    let args = [Operand::Tensor(x), Operand::None, Operand::None].into_iter().chain(numbers);
    let args = args.chain([Operand::Float(1e-5)]).collect();
    let results: [&[i64]; 3] = [&[2, 6, 4, 5], &[2, 3], &[2, 3]];
    let results = results.map(|sizes| Operand::Tensor(build.result(Float32, sizes))).to_vec();
    build.plan.push("norm", Action::call("aten.native_group_norm.default", args, results));
    build.finish()
}
