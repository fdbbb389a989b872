//! Calls of an operator as programs, which are run by a plan: what the interpreter gives of them, to the bit where precision is
//! strict. Passes of the compiler see the operator alone, or between pointwise operators that change nothing.

use crate::recorded::arg;
use std::sync::Arc;
use tracefx_compile::{Precision, compile};
use tracefx_core::{Code, DType, Diagnostic, Tensor, with_default_generator};
use tracefx_exec::{BoundPlan, Executor, Interpreter, LOOP_STEPS, plan};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Str, TensorKind, TensorMeta};
use tracefx_ops::{Op, Propagation, Symbols, Value, registry};
use tracefx_plan::TensorView;

/// The arguments of a call, by place and by name.
pub(crate) type Call = (Vec<Value<Tensor>>, Vec<(Str, Value<Tensor>)>);

/// Operators whose results lie in memory as the rule says, by a plan, and as the decomposition leaves them, by the interpreter:
/// where the kernel lacks the dtype.
const BY_DECOMPOSITION: &[&str] = &["aten.native_dropout_backward.default"];

/// What a call gives, or why it is refused.
pub(crate) type Given = Result<Vec<Value<Tensor>>, Diagnostic>;

/// How a call is run by a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) precision: Precision,
    /// Whether all tensors but the first are of the program, as weights are.
    pub(crate) has_weights: bool,
    /// Whether the operator stands between others.
    pub(crate) is_surrounded: bool,
}

impl Planned {
    /// Those that differ in what passes see.
    pub(crate) fn all() -> [Planned; 4] {
        [
            (Precision::Strict, false, false),
            (Precision::Strict, true, true),
            (Precision::Fast, true, false),
            (Precision::Fast, true, true),
        ]
        .map(|(precision, has_weights, is_surrounded)| Planned { precision, has_weights, is_surrounded })
    }

    /// What a plan gives of the call, or refuses; or how that differs from what the interpreter does.
    pub(crate) fn run(self, op: &Op, call: &dyn Fn() -> Call) -> Result<Given, String> {
        // Both ways draw the same numbers.
        let generator = with_default_generator(|it| it.state());
        let seeded = || with_default_generator(|it| it.set_state(&generator).unwrap());
        let executor = Executor::new(registry(), tracefx_cpu::kernels());
        let [mine, yours] = [0, 1].map(|_| Program::of(self, op, &call()));
        let metas: Vec<_> = yours.inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
        seeded();
        let wanted = Interpreter::new(&mine.module, executor).run(&mine.inputs);
        let traced = match (plan(&yours.module, &metas, registry(), tracefx_cpu::kernels()), &wanted) {
            (Ok(traced), _) => traced,
            // What the plan refuses the interpreter runs.
            (Err(problem), Ok(_)) if !matches!(problem.code(), Code::NotImplemented | Code::LimitExceeded) => {
                return Err(format!("a plan refuses this: {problem}"));
            }
            (Err(_), _) => return Ok(wanted.map(|it| vec![it])),
        };
        let compiled = compile(traced, registry(), tracefx_cpu::kernels(), self.precision);
        compiled.validate().map_err(|it| format!("{it}\n{compiled}"))?;
        // Of sizes that the data decides a rule does not always know the order of strides.
        let is_decided = !self.is_surrounded || compiled.tensors.iter().all(TensorView::is_known);
        let has_strides = is_decided && !BY_DECOMPOSITION.contains(&&*op.name);
        let mut bound =
            BoundPlan::new(Arc::new(compiled), registry(), tracefx_cpu::kernels()).map_err(|it| it.to_string())?;
        seeded();
        let given = bound.run(executor, &yours.inputs, LOOP_STEPS, &mut |_, _| Ok(()));
        let is_strict = self.precision == Precision::Strict;
        match (&given, &wanted) {
            (Ok(given), Ok(wanted)) => {
                let (given, wanted) = (yours.with(given), mine.with(wanted));
                let compared = |it: &Told| {
                    (it.sizes.clone(), has_strides.then(|| it.strides.clone()), is_strict.then(|| it.elements.clone()))
                };
                if given.iter().map(compared).ne(wanted.iter().map(compared)) {
                    return Err(format!("a plan gives\n{given:?}\nand not\n{wanted:?}\n{}", bound.plan()));
                }
            }
            (Err(given), Err(wanted)) if given.code() == wanted.code() => {}
            (given, wanted) => return Err(format!("{given:?} and {wanted:?}\n{}", bound.plan())),
        }
        Ok(given.map(|it| vec![it]))
    }
}

/// A program with one call in it, and what it is run on.
struct Program {
    module: GraphModule,
    inputs: Vec<Value<Tensor>>,
}

impl Program {
    fn of(how: Planned, op: &Op, (args, kwargs): &Call) -> Program {
        let mut writing = Writing { how, graph: Graph::new(), inputs: Vec::new(), weights: Vec::new() };
        let nodes: Vec<Arg> = args.iter().map(|it| writing.arg(it)).collect();
        let named: Vec<_> = kwargs.iter().map(|(name, it)| (Str::clone(name), writing.arg(it))).collect();
        let call = writing.graph.call_function(&format!("torch.ops.{}", op.name), nodes, named);
        let output = writing.output(call, op, &(args.clone(), kwargs.clone()));
        writing.graph.output(output);
        let mut module = GraphModule::new(writing.graph);
        for (at, tensor) in writing.weights.into_iter().enumerate() {
            let weight = Attribute::Tensor { tensor, kind: TensorKind::Buffer };
            module.attributes.insert(format!("w{at}").into(), weight);
        }
        Program { module, inputs: writing.inputs }
    }

    /// What is told of a result and of all that the program was run on.
    fn with(&self, result: &Value<Tensor>) -> Vec<Told> {
        let weight = |it: &Attribute| match it {
            Attribute::Tensor { tensor, .. } => Some(Value::Tensor(tensor.clone())),
            Attribute::Fake { .. } | Attribute::Module(_) => None,
        };
        let weights = self.module.attributes.values().filter_map(weight);
        let mut told = vec![Told { sizes: format!("{:?}", result.map(&mut |_| ())), ..Told::default() }];
        for value in [result.clone()].into_iter().chain(self.inputs.iter().cloned()).chain(weights) {
            value.for_each_tensor(&mut |it| told.push(Told::of(it)));
        }
        told
    }
}

/// A tensor, or what is none.
#[derive(Clone, Debug, Default)]
struct Told {
    sizes: String,
    strides: String,
    elements: Vec<u8>,
}

impl Told {
    fn of(tensor: &Tensor) -> Told {
        let sizes = format!("{:?} {:?}", tensor.dtype(), tensor.sizes());
        // Of nothing it does not matter where it lies.
        if tensor.numel() == 0 {
            return Told { sizes, ..Told::default() };
        }
        Told {
            sizes,
            strides: format!("{:?} from {}", tensor.strides(), tensor.offset()),
            elements: tensor.to_bytes().unwrap(),
        }
    }
}

/// A program that is being written.
struct Writing {
    how: Planned,
    graph: Graph,
    inputs: Vec<Value<Tensor>>,
    weights: Vec<Tensor>,
}

impl Writing {
    fn arg(&mut self, value: &Value<Tensor>) -> Arg {
        arg(value, &mut |tensor| {
            let node = if self.how.has_weights && !self.inputs.is_empty() {
                self.weights.push(tensor.clone());
                self.graph.get_attr(&format!("w{}", self.weights.len() - 1))
            } else {
                self.inputs.push(Value::Tensor(tensor.clone()));
                self.graph.placeholder(&format!("x{}", self.inputs.len() - 1))
            };
            self.same(node, tensor.dtype()).into()
        })
    }

    /// The same numbers, by pointwise operators where the call is surrounded.
    fn same(&mut self, node: NodeId, dtype: DType) -> NodeId {
        let mut aten = |op: &str, args| self.graph.call_function(&format!("torch.ops.aten.{op}.default"), args, vec![]);
        match dtype {
            _ if !self.how.is_surrounded => node,
            DType::Float32 | DType::Float64 | DType::Float16 | DType::BFloat16 => {
                aten("clamp", vec![node.into(), Arg::Float(f64::NEG_INFINITY), Arg::Float(f64::INFINITY)])
            }
            DType::Int64 | DType::Int32 | DType::Int16 | DType::Int8 | DType::UInt8 => {
                let negated = aten("neg", vec![node.into()]);
                aten("neg", vec![negated.into()])
            }
            _ => node,
        }
    }

    /// What the program gives: the results of the call, each behind a pointwise operator where all of them are tensors.
    fn output(&mut self, call: NodeId, op: &Op, (args, kwargs): &Call) -> Arg {
        let symbols = Symbols::default();
        let meta = |it: &Value<Tensor>| it.map(&mut TensorMeta::of);
        let args: Vec<_> = args.iter().map(meta).collect();
        let kwargs: Vec<_> = kwargs.iter().map(|(name, it)| (Str::clone(name), meta(it))).collect();
        let known = Propagation::new(registry(), &symbols).call(&op.name, &args, &kwargs).unwrap_or_default();
        let dtype = |it: &Value<TensorMeta>| if let Value::Tensor(it) = it { Some(it.dtype) } else { None };
        match known.iter().map(dtype).collect::<Option<Vec<_>>>().as_deref() {
            Some([dtype]) => self.same(call, *dtype).into(),
            Some(dtypes) if dtypes.len() > 1 && self.how.is_surrounded => {
                let item = |(at, dtype): (usize, &DType)| {
                    let args = vec![call.into(), Arg::Int(at as i64)];
                    let item = self.graph.call_function("operator.getitem", args, vec![]);
                    self.same(item, *dtype).into()
                };
                Arg::Tuple(dtypes.iter().enumerate().map(item).collect())
            }
            _ => call.into(),
        }
    }
}
