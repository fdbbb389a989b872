//! Fused steps as operators of ATen, and networks to compile. What the passes do is right if these give what the interpreter gives; what
//! kernels of fused steps give is tested with them.

use std::sync::Arc;
use tracefx_compile::{Precision, compile};
use tracefx_core::{DType, Result, Scalar, Tensor};
use tracefx_exec::{BoundPlan, Executor, Interpreter, Kernels, LOOP_STEPS, PreparedFused, assign, plan};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, TensorKind, TensorMeta};
use tracefx_ops::{Value, registry};
use tracefx_plan::{Activation, Epilogue, Fused, NormStatistic, Plan, PoolReduction};

type Values = Vec<Value<Tensor>>;

/// The kernels with fused steps that call operators.
pub(crate) fn kernels() -> Kernels {
    tracefx_cpu::kernels().clone().with_fused(|step, executor| match step {
        // Integers, which operators have no convolution of.
        Fused::QuantizedConvolution(_) | Fused::DequantizedProduct(_) => {
            tracefx_cpu::kernels().fused().unwrap()(step, executor)
        }
        Fused::Pool(it) if it.input.dtype() != DType::Float32 => {
            tracefx_cpu::kernels().fused().unwrap()(step, executor)
        }
        // Halves, which operators round one after the other.
        it if it.float_dtype(Tensor::dtype) != DType::Float32 => {
            tracefx_cpu::kernels().fused().unwrap()(step, executor)
        }
        _ => Ok(Box::new(run) as Box<PreparedFused>),
    })
}

fn aten(op: &str, args: Values) -> Result<Tensor> {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    // `approximate` is given by name.
    let is_named = |it: &Value<Tensor>| matches!(it, Value::Str(_));
    let named: Vec<_> = args.iter().filter(|it| is_named(it)).map(|it| ("approximate".into(), it.clone())).collect();
    let args: Values = args.into_iter().filter(|it| !is_named(it)).collect();
    let made = executor.call(&format!("aten.{op}"), &args, &named)?;
    let Some(Value::Tensor(made)) = made.into_iter().next() else { panic!("{op} gives no tensor") };
    Ok(made)
}

fn tensor(it: &Tensor) -> Value<Tensor> {
    Value::Tensor(it.clone())
}
fn optional(it: &Option<Tensor>) -> Value<Tensor> {
    it.as_ref().map_or(Value::None, tensor)
}
fn ints(it: [usize; 2]) -> Value<Tensor> {
    Value::List(it.map(|it| Value::int(it as i64)).to_vec())
}

fn run(step: &Fused<Tensor>) -> Result<()> {
    let images = |it: &Tensor| it.permuted(&[0, 3, 1, 2]);
    match step {
        Fused::Convolution(it) => {
            let mut made = images(&it.input);
            if let Some(scale) = &it.scale {
                made = aten("mul.Tensor", vec![tensor(&made), tensor(&images(scale))])?;
            }
            for layer in &it.layers {
                let epilogue = &layer.epilogue;
                let mut args = vec![tensor(&made), tensor(&layer.weight), optional(&epilogue.bias)];
                args.extend([layer.stride, layer.padding, layer.dilation].map(ints));
                args.extend([Value::Bool(false), ints([0, 0]), Value::int(layer.groups as i64)]);
                let residual = epilogue.residual.as_ref().map(images);
                made = follow(aten("convolution.default", args)?, &Epilogue { residual, ..epilogue.clone() })?;
            }
            assign(&images(&it.result), &made)
        }
        Fused::Product(it) => {
            let mut made = aten("mm.default", vec![tensor(&it.lhs), tensor(&it.rhs)])?;
            if let Some(bias) = &it.epilogue.bias {
                made = aten("add.Tensor", vec![tensor(&made), tensor(bias)])?;
            }
            assign(&it.result, &follow(made, &it.epilogue)?)
        }
        Fused::Attention(it) => {
            let query = aten("mul.Scalar", vec![tensor(&it.query), Value::Float(it.scale)])?;
            let key = aten("transpose.int", vec![tensor(&it.key), Value::int(-2), Value::int(-1)])?;
            let mut scores = aten("matmul.default", vec![tensor(&query), tensor(&key)])?;
            let hidden = |scores: &Tensor, kept: &Tensor, score: f64| {
                let hidden = aten("logical_not.default", vec![tensor(kept)])?;
                aten("masked_fill.Scalar", vec![tensor(scores), tensor(&hidden), Value::Float(score)])
            };
            scores = match &it.mask {
                Some(mask) if mask.dtype() == DType::Bool => hidden(&scores, mask, it.masked)?,
                Some(mask) => aten("add.Tensor", vec![tensor(&scores), tensor(mask)])?,
                None => scores,
            };
            if it.is_causal {
                let ones = aten("ones_like.default", vec![tensor(&scores)])?;
                scores = hidden(&scores, &aten("tril.default", vec![tensor(&ones)])?, f64::NEG_INFINITY)?;
            }
            let softmax = if it.is_safe { "_safe_softmax.default" } else { "softmax.int" };
            let weights = aten(softmax, vec![tensor(&scores), Value::int(-1)])?;
            assign(&it.result, &aten("matmul.default", vec![tensor(&weights), tensor(&it.value)])?)
        }
        Fused::Norm(it) => {
            let n = Value::List(vec![Value::int(it.input.sizes()[1] as i64)]);
            let (input, weight, eps) = (tensor(&it.input), optional(&it.weight), Value::Float(it.eps));
            let made = match it.statistic {
                NormStatistic::Variance => aten("layer_norm.default", vec![input, n, weight, optional(&it.bias), eps])?,
                NormStatistic::MeanSquare => aten("rms_norm.default", vec![input, n, weight, eps])?,
            };
            assign(&it.result, &made)
        }
        Fused::DequantizedProduct(_) | Fused::Gather(_) | Fused::Loop(_) | Fused::QuantizedConvolution(_) => {
            let prepare = tracefx_cpu::kernels().fused().unwrap();
            prepare(step, Executor::new(registry(), tracefx_cpu::kernels()))?(step)
        }
        Fused::Pool(it) => {
            // Only with `ceil_mode` there are more windows than fit.
            let fitting = |dim: usize| {
                let room = it.input.sizes()[dim + 1] + 2 * it.padding[dim];
                (room - it.dilation[dim] * (it.kernel[dim] - 1) - 1) / it.stride[dim] + 1
            };
            let is_ceil = Value::Bool((0..2).any(|dim| it.result.sizes()[dim + 1] != fitting(dim)));
            let mut args = vec![tensor(&images(&it.input))];
            args.extend([it.kernel, it.stride, it.padding].map(ints));
            let made = match it.reduction {
                PoolReduction::Max => {
                    args.extend([ints(it.dilation), is_ceil]);
                    aten("max_pool2d_with_indices.default", args)?
                }
                PoolReduction::Average { count_include_pad, divisor_override } => {
                    let divisor = divisor_override.map_or(Value::None, Value::int);
                    args.extend([is_ceil, Value::Bool(count_include_pad), divisor]);
                    aten("avg_pool2d.default", args)?
                }
            };
            assign(&images(&it.result), &made)
        }
    }
}

fn follow(mut made: Tensor, epilogue: &Epilogue<Tensor>) -> Result<Tensor> {
    if let Some(norm) = &epilogue.norm {
        let parameters = [optional(&norm.weight), optional(&norm.bias), tensor(&norm.mean), tensor(&norm.var)];
        let args = [tensor(&made)].into_iter().chain(parameters).chain([Value::Float(0.1), Value::Float(norm.eps)]);
        made = aten("_native_batch_norm_legit_no_training.default", args.collect())?;
    }
    if let Some(residual) = &epilogue.residual {
        made = aten("add.Tensor", vec![tensor(&made), tensor(residual)])?;
    }
    let number = |it: f32| Value::Float(f64::from(it));
    let (op, mut args) = match epilogue.activation {
        Activation::Identity => return Ok(made),
        Activation::Clamp { min, max } => ("clamp.default", vec![number(min), number(max)]),
        Activation::LeakyRelu(slope) => ("leaky_relu.default", vec![number(slope)]),
        Activation::Sigmoid => ("sigmoid.default", vec![]),
        Activation::Silu => ("silu.default", vec![]),
        Activation::HardSigmoid => ("hardsigmoid.default", vec![]),
        Activation::HardSwish => ("hardswish.default", vec![]),
        Activation::Tanh => ("tanh.default", vec![]),
        Activation::Gelu => ("gelu.default", vec![]),
        Activation::GeluTanh => ("gelu.default", vec![Value::Str("tanh".into())]),
    };
    args.insert(0, tensor(&made));
    aten(op, args)
}

/// A network that is being built: its graph, and its weights.
pub(crate) struct Net {
    pub(crate) graph: Graph,
    weights: Vec<(String, Tensor)>,
}

/// Numbers that look like noise, the same in each run.
pub(crate) fn noise(sizes: &[usize], seed: usize) -> Tensor {
    let n: usize = sizes.iter().product();
    let number = |at: usize| (((at * 7919 + seed * 104_729) % 10_007) as f32 / 10_007.0 - 0.5) * 2.0;
    Tensor::from_slice(&(0..n).map(number).collect::<Vec<_>>(), sizes).unwrap()
}

impl Net {
    pub(crate) fn new() -> Self {
        Net { graph: Graph::new(), weights: Vec::new() }
    }

    pub(crate) fn aten(&mut self, op: &str, args: Vec<Arg>) -> NodeId {
        self.graph.call_function(&format!("torch.ops.aten.{op}"), args, vec![])
    }

    pub(crate) fn weight(&mut self, sizes: &[usize]) -> NodeId {
        self.constant(noise(sizes, self.weights.len() + 1))
    }

    pub(crate) fn constant(&mut self, tensor: Tensor) -> NodeId {
        let name = format!("w{}", self.weights.len());
        self.weights.push((name.clone(), tensor));
        self.graph.get_attr(&name)
    }

    /// A convolution without bias: `[out, in / groups, kernel, kernel]`.
    pub(crate) fn conv(&mut self, x: NodeId, sizes: [usize; 3], stride: i64, groups: i64) -> NodeId {
        let [n_out, n_in, kernel] = sizes;
        let weight = self.weight(&[n_out, n_in, kernel, kernel]);
        let padding = kernel as i64 / 2;
        let pair = |it: i64| Arg::List(vec![Arg::Int(it); 2]);
        let options = vec![pair(stride), pair(padding), pair(1), Arg::Bool(false), pair(0), Arg::Int(groups)];
        let args = [x.into(), weight.into(), Arg::None].into_iter().chain(options).collect();
        self.aten("convolution.default", args)
    }

    pub(crate) fn norm(&mut self, x: NodeId, n: usize) -> NodeId {
        let parameters: Vec<NodeId> = (0..3).map(|_| self.weight(&[n])).collect();
        let ones = self.weight(&[n]);
        let var = self.weights.len() - 1;
        self.weights[var].1 = Tensor::full(DType::Float32, &[n], Scalar::Float(1.5)).unwrap();
        let args = [x].into_iter().chain(parameters).chain([ones]).map(Arg::from);
        let made = self.aten(
            "_native_batch_norm_legit_no_training.default",
            args.chain([Arg::Float(0.1), Arg::Float(1e-5)]).collect(),
        );
        self.graph.call_function("operator.getitem", vec![made.into(), Arg::Int(0)], vec![])
    }

    pub(crate) fn finish(mut self, outputs: &[NodeId]) -> GraphModule {
        self.graph.output(Arg::Tuple(outputs.iter().map(|it| (*it).into()).collect()));
        let mut module = GraphModule::new(self.graph);
        for (name, tensor) in self.weights {
            module.attributes.insert(name.into(), Attribute::Tensor { tensor, kind: TensorKind::Buffer });
        }
        module
    }
}

/// The compiled plan of a network, which gives twice what the interpreter gives, up to rounding; inputs are told afterwards alike.
pub(crate) fn check(module: &GraphModule, inputs: &[Tensor], precision: Precision) -> Plan {
    let kernels = kernels();
    let executor = Executor::new(registry(), &kernels);
    let metas: Vec<_> = inputs.iter().map(|it| Value::Tensor(TensorMeta::of(it))).collect();
    let copies = || inputs.iter().map(|it| Value::Tensor(it.compact_copy().unwrap())).collect::<Vec<_>>();
    let numbers = |it: &Tensor| it.to_vec::<f32>().unwrap();
    let traced = plan(module, &metas, registry(), &kernels).unwrap();
    let compiled = compile(traced, registry(), &kernels, precision);
    let mut bound = BoundPlan::new(Arc::new(compiled), registry(), &kernels).unwrap();
    for _ in 0..2 {
        let (own, theirs) = (copies(), copies());
        let given = bound.run(executor, &own, LOOP_STEPS, &mut |_, _| Ok(())).unwrap();
        let wanted = Interpreter::new(module, executor).run(&theirs).unwrap();
        let (mut given_all, mut wanted_all) = (own, theirs);
        given_all.push(given);
        wanted_all.push(wanted);
        let (mut got, mut want) = (Vec::new(), Vec::new());
        given_all.iter().for_each(|it| it.for_each_tensor(&mut |it| got.push(it.clone())));
        wanted_all.iter().for_each(|it| it.for_each_tensor(&mut |it| want.push(it.clone())));
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(&want) {
            assert_eq!((got.sizes(), got.strides()), (want.sizes(), want.strides()), "{}", bound.plan());
            for (got, want) in numbers(got).iter().zip(numbers(want)) {
                assert!((got - want).abs() <= 1e-4 * want.abs().max(1.0), "{got} {want}\n{}", bound.plan());
            }
        }
    }
    bound.plan().clone()
}

/// Compares a plan, or lines of several, with a file; `TRACEFX_UPDATE=1` writes it.
pub(crate) fn snapshot(name: &str, plan: &impl std::fmt::Display) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/plans/{name}.txt"));
    let text = format!("{plan}\n");
    if std::env::var_os("TRACEFX_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap().replace('\r', ""));
}
