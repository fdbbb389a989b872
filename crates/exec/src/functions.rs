//! Functions and methods of Python as the operators that they are: what graphs that `torch.fx` traced call.

use crate::evaluate::{Evaluate, Kwargs, Results};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::{ATTRIBUTES, ArgType, CONVERSIONS, OPERATOR_PLACES, Op, Value};

/// The modules of functions of Python, most of which are operators of `aten` called by their names.
const PYTHON_PLACES: &[&str] = &["torch.nn.functional.", "torch.functional."];

/// Python's operators on tensors, by their names in `operator` where `aten` calls them something else.
const OPERATORS: &[(&str, &str)] = &[
    ("truediv", "div"),
    ("itruediv", "div_"),
    ("floordiv", "floor_divide"),
    ("ifloordiv", "floor_divide_"),
    ("mod", "remainder"),
    ("imod", "remainder_"),
    ("invert", "bitwise_not"),
    ("inv", "bitwise_not"),
    ("pos", "positive"),
    ("and_", "__and__"),
    ("or_", "__or__"),
    ("xor", "__xor__"),
    ("lshift", "__lshift__"),
    ("rshift", "__rshift__"),
    ("iand", "__iand__"),
    ("ior", "__ior__"),
    ("ixor", "__ixor__"),
    ("iadd", "add_"),
    ("isub", "sub_"),
    ("imul", "mul_"),
    ("ipow", "pow_"),
];

/// The functions of `torch.nn.functional` whose parameters stand in another order than those of the operator.
const NAMED: &[(&str, &[&str])] =
    &[("batch_norm", &["input", "running_mean", "running_var"]), ("embedding", &["indices", "weight"])];

/// Parameters of `torch.nn.functional` that change nothing: the norm of embeddings counts with `max_norm` only.
const IGNORED: &[&str] = &["_stacklevel", "norm_type"];

/// What a call of a function gives: of an operator, or of a function of Python that is one.
///
/// # Errors
/// `NotImplemented` where the function is no operator; else what the operator refuses.
pub(crate) fn call<E: Evaluate>(
    evaluate: E,
    name: &str,
    args: &[Value<E::Tensor>],
    kwargs: &Kwargs<E::Tensor>,
) -> Results<E::Tensor> {
    if name.starts_with("torch.ops.") {
        return evaluate.call_operator(name, args, kwargs);
    }
    let has_tensor = args.iter().any(|it| matches!(it, Value::Tensor(_)));
    if let Some(operator) = name.strip_prefix("operator.").filter(|_| has_tensor) {
        let found = OPERATORS.iter().find(|(it, _)| *it == operator).map_or(operator, |(_, it)| it);
        return match args {
            [number, Value::Tensor(tensor)] if !matches!(number, Value::Tensor(_)) => {
                reflected(evaluate, found, number, tensor, kwargs)
            }
            args => resolve(evaluate, found, args, kwargs),
        };
    }
    if evaluate.registry().get(name).is_some() {
        return evaluate.call_operator(name, args, kwargs);
    }
    if name == "builtins.getattr" {
        return attribute(evaluate, args).map(|it| vec![it]);
    }
    match PYTHON_PLACES.iter().chain(OPERATOR_PLACES).find_map(|it| name.strip_prefix(it)) {
        Some(function) if !function.contains('.') => resolve(evaluate, function, args, kwargs),
        Some(_) | None => evaluate.call_operator(name, args, kwargs),
    }
}

/// What a call of a method gives.
///
/// # Errors
/// As [`call`].
pub(crate) fn call_method<E: Evaluate>(
    evaluate: E,
    name: &str,
    args: &[Value<E::Tensor>],
    kwargs: &Kwargs<E::Tensor>,
) -> Results<E::Tensor> {
    let Some(Value::Tensor(this)) = args.first() else {
        let what = format!("the method {name} of a value that is no tensor is not implemented");
        return Err(Diagnostic::new(Code::NotImplemented, what));
    };
    let this = &evaluate.meta(this);
    match (name, args.get(1)) {
        ("size", None) => Ok(vec![sizes(this)]),
        ("size", Some(Value::Int(dim))) => {
            let dim = dim.as_int().unwrap_or_default();
            let n = this.sizes.len() as i64;
            let position = usize::try_from(if dim < 0 { dim + n } else { dim }).ok();
            let size = position.and_then(|it| this.sizes.get(it)).ok_or_else(|| {
                let what =
                    format!("Dimension out of range (expected to be in range of [{}, {}], but got {dim})", -n, n - 1);
                Diagnostic::new(Code::IndexOutOfRange, what)
            })?;
            Ok(vec![Value::Int(size.clone())])
        }
        ("dim" | "ndimension", None) => Ok(vec![Value::int(this.sizes.len() as i64)]),
        (_, second) => match CONVERSIONS.iter().find(|(it, _)| *it == name && second.is_none()) {
            Some((_, dtype)) => evaluate.call_operator("aten.to.dtype", &[args[0].clone(), Value::DType(*dtype)], &[]),
            None => resolve(evaluate, name, args, kwargs),
        },
    }
}

/// What a tensor makes of a number on its left: `Tensor.__rsub__` and its like.
fn reflected<E: Evaluate>(
    evaluate: E,
    operator: &str,
    number: &Value<E::Tensor>,
    tensor: &E::Tensor,
    kwargs: &Kwargs<E::Tensor>,
) -> Results<E::Tensor> {
    let tensor_first = [Value::Tensor(tensor.clone()), number.clone()];
    let mirrored = match operator {
        "add" | "mul" | "__and__" | "__or__" | "__xor__" | "eq" | "ne" => Some(operator),
        "lt" => Some("gt"),
        "le" => Some("ge"),
        "gt" => Some("lt"),
        "ge" => Some("le"),
        "sub" => Some("rsub"),
        _ => None,
    };
    match (mirrored, operator) {
        (Some(mirrored), _) => resolve(evaluate, mirrored, &tensor_first, kwargs),
        (None, "div") => {
            let reciprocal = resolve(evaluate, "reciprocal", &tensor_first[..1], &[])?.swap_remove(0);
            resolve(evaluate, "mul", &[reciprocal, number.clone()], kwargs)
        }
        (None, "pow" | "remainder") => {
            resolve(evaluate, operator, &[number.clone(), Value::Tensor(tensor.clone())], kwargs)
        }
        (None, _) => resolve(evaluate, operator, &evaluate.on_the_left(number, tensor)?, kwargs),
    }
}

fn attribute<E: Evaluate>(evaluate: E, args: &[Value<E::Tensor>]) -> Result<Value<E::Tensor>> {
    match args {
        [Value::Tensor(this), Value::Str(name)] => match &**name {
            "shape" => Ok(sizes(&evaluate.meta(this))),
            "ndim" => Ok(Value::int(evaluate.meta(this).sizes.len() as i64)),
            "dtype" => Ok(Value::DType(evaluate.meta(this).dtype)),
            "device" => Ok(Value::Device(evaluate.meta(this).device)),
            other => match ATTRIBUTES.iter().find(|(it, _)| *it == other) {
                Some((_, operator)) => evaluate
                    .call_operator(&format!("{operator}.default"), &args[..1], &[])
                    .map(|mut it| it.swap_remove(0)),
                None => Err(Diagnostic::new(
                    Code::NotImplemented,
                    format!("the attribute {other} of a tensor is not implemented"),
                )),
            },
        },
        _ => Err(Diagnostic::new(Code::NotImplemented, "getattr is implemented for attributes of tensors")),
    }
}

fn sizes<T>(this: &TensorMeta) -> Value<T> {
    Value::List(this.sizes.iter().cloned().map(Value::Int).collect())
}

/// Calls the overload of an operator of `aten` that takes these arguments.
fn resolve<E: Evaluate>(
    evaluate: E,
    name: &str,
    args: &[Value<E::Tensor>],
    kwargs: &Kwargs<E::Tensor>,
) -> Results<E::Tensor> {
    let (mut args, mut kwargs) = (args.to_vec(), kwargs.to_vec());
    let in_place = kwargs.iter().position(|(key, _)| &**key == "inplace").map(|at| kwargs.remove(at).1);
    let packet = match in_place {
        Some(Value::Bool(true)) => format!("aten.{name}_"),
        Some(_) | None => format!("aten.{name}"),
    };
    let overloads = evaluate.registry().overloads(&packet).map_err(|_| {
        Diagnostic::new(Code::NotImplemented, format!("the function {name} is no operator that is known"))
    })?;
    if let Some((_, names)) = NAMED.iter().find(|(it, _)| *it == name) {
        kwargs.splice(0..0, names.iter().map(|it| Str::from(*it)).zip(std::mem::take(&mut args)));
        kwargs
            .iter_mut()
            .filter(|(key, _)| &**key == "input" && name == "embedding")
            .for_each(|it| it.0 = "indices".into());
    }
    let takes = |key: &str| overloads.iter().any(|it| has_parameter(it, key));
    if takes("train") {
        kwargs.iter_mut().filter(|(key, _)| &**key == "training").for_each(|it| it.0 = "train".into());
    }
    // What is None is not given; what the operator does not know makes no difference where it is off.
    kwargs.retain(|(key, value)| {
        let is_off = matches!(value, Value::None | Value::Bool(false));
        !matches!(value, Value::None) && !IGNORED.contains(&&**key) && (takes(key) || !is_off)
    });
    if takes("cudnn_enabled") && name == "batch_norm" {
        kwargs.push(("cudnn_enabled".into(), Value::Bool(false)));
    }
    evaluate.call_overload(&packet, &args, &kwargs)
}

fn has_parameter(op: &Op, key: &str) -> bool {
    op.schema.args.iter().any(|it| it.name == key || (it.name == "self" && key == "input" && it.ty == ArgType::Tensor))
}

#[cfg(test)]
mod tests {
    use super::{ATTRIBUTES, CONVERSIONS};
    use crate::propagate;
    use tracefx_core::{Code, DType};
    use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, TensorMeta, Val};
    use tracefx_ops::{Propagation, Symbols, Value, registry};
    use tracefx_sym::{SymInt, Symbol};

    /// The sizes that a call on a tensor of `[s0, 3]` has, as text.
    fn sizes_of(build: impl FnOnce(&mut Graph, Arg) -> NodeId) -> Result<String, Code> {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let call = build(&mut graph, Arg::Node(x));
        graph.output(Arg::Node(call));
        let mut module = GraphModule::new(graph);
        let meta = TensorMeta::contiguous(DType::Float32, vec![SymInt::from(Symbol::size("s0")), 3.into()]);
        let symbols = Symbols::default();
        let shapes = Propagation::new(registry(), &symbols);
        propagate(&mut module, &[Value::Tensor(meta)], shapes).map_err(|it| it.code())?;
        Ok(match &module.graph.node(call).meta.val {
            Some(Val::Tensor(it)) => format!("{:?}", it.sizes),
            Some(Val::Int(it)) => it.to_string(),
            other => format!("{other:?}"),
        })
    }

    fn function(target: &'static str, rest: Vec<Arg>, kwargs: Vec<(&str, Arg)>) -> Result<String, Code> {
        sizes_of(|graph, x| {
            let kwargs = kwargs.into_iter().map(|(key, it)| (key.into(), it)).collect();
            graph.call_function(target, [x].into_iter().chain(rest).collect(), kwargs)
        })
    }

    #[test]
    fn functions_methods_and_operators_of_python_are_operators() {
        let s0_3 = Ok("[s0, 3]".to_owned());
        assert_eq!(function("torch.relu", vec![], vec![]), s0_3);
        assert_eq!(function("operator.add", vec![Arg::Int(1)], vec![]), s0_3);
        assert_eq!(function("torch.nn.functional.relu", vec![], vec![("inplace", Arg::Bool(false))]), s0_3);
        let softmax = vec![("dim", Arg::Int(1)), ("_stacklevel", Arg::Int(3)), ("dtype", Arg::None)];
        assert_eq!(function("torch.nn.functional.softmax", vec![], softmax), s0_3);
        let dropout = vec![("p", Arg::Float(0.5)), ("training", Arg::Bool(true)), ("inplace", Arg::Bool(false))];
        assert_eq!(function("torch.nn.functional.dropout", vec![], dropout), s0_3);
        let method = |name: &'static str, rest: Vec<Arg>| {
            sizes_of(|graph, x| {
                let args = [x].into_iter().chain(rest).collect();
                graph.create_node(Opcode::CallMethod, name, args, vec![], None).unwrap()
            })
        };
        assert_eq!(method("t", vec![]), Ok("[3, s0]".to_owned()));
        assert_eq!(method("unsqueeze", vec![Arg::Int(0)]), Ok("[1, s0, 3]".to_owned()));
        assert_eq!(method("size", vec![Arg::Int(0)]), Ok("s0".to_owned()));
        for (name, _) in CONVERSIONS {
            assert_eq!(method(name, vec![]), s0_3, "{name}");
        }
    }

    #[test]
    fn attributes_of_tensors_are_operators() {
        let attribute = |name: &'static str| {
            sizes_of(|graph, x| {
                // Only complex numbers have imaginary parts.
                let complex = graph.call_function("torch.complex", vec![x.clone(), x], vec![]);
                graph.call_function("builtins.getattr", vec![Arg::Node(complex), Arg::Str(name.into())], vec![])
            })
        };
        for (name, _) in ATTRIBUTES {
            let sizes = if matches!(*name, "real" | "imag") { "[s0, 3]" } else { "[3, s0]" };
            assert_eq!(attribute(name).as_deref(), Ok(sizes), "{name}");
        }
    }

    #[test]
    fn a_number_may_stand_on_the_left() {
        let sub = sizes_of(|graph, x| graph.call_function("operator.sub", vec![Arg::Int(1), x], vec![]));
        assert_eq!(sub, Ok("[s0, 3]".to_owned()));
    }

    #[test]
    fn a_module_without_a_graph_is_refused() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let call = graph.create_node(Opcode::CallModule, "linear", vec![Arg::Node(x)], vec![], None).unwrap();
        graph.output(Arg::Node(call));
        let mut module = GraphModule::new(graph);
        let leaf = GraphModule::new(Graph::new());
        module.attributes.insert("linear".into(), Attribute::Module(Box::new(leaf)));
        let symbols = Symbols::default();
        let problem = propagate(&mut module, &[Value::None], Propagation::new(registry(), &symbols)).unwrap_err();
        assert_eq!(problem.code(), Code::NotImplemented);
    }

    #[test]
    fn keyword_arguments_of_modules_go_to_the_inputs_of_these_names() {
        let mut inner = Graph::new();
        let [a, b] = ["a", "b"].map(|it| inner.placeholder(it));
        inner.set_args(b, vec![Arg::Int(1)]).unwrap();
        let last = inner.placeholder("last");
        let sum = inner.call_function("torch.add", vec![last.into(), a.into()], vec![]);
        inner.output(sum.into());
        let inner = Attribute::Module(Box::new(GraphModule::new(inner)));
        for (key, expected) in [("last", Ok("[s0, 3]".to_owned())), ("other", Err(Code::InputCount))] {
            let mut graph = Graph::new();
            let x = graph.placeholder("x");
            let kwargs = vec![(key.into(), x.into())];
            let call = graph.create_node(Opcode::CallModule, "inner", vec![Arg::Float(2.0)], kwargs, None).unwrap();
            graph.output(call.into());
            let mut module = GraphModule::new(graph);
            module.attributes.insert("inner".into(), inner.clone());
            let meta = TensorMeta::contiguous(DType::Float32, vec![SymInt::from(Symbol::size("s0")), 3.into()]);
            let symbols = Symbols::default();
            let given = propagate(&mut module, &[Value::Tensor(meta)], Propagation::new(registry(), &symbols));
            let sizes = given.map(|it| match it {
                Value::Tensor(it) => format!("{:?}", it.sizes),
                other => format!("{other:?}"),
            });
            assert_eq!(sizes.map_err(|it| it.code()), expected);
        }
    }

    #[test]
    fn what_is_no_operator_is_refused() {
        assert_eq!(function("my.own.function", vec![], vec![]), Err(Code::NotImplemented));
        assert_eq!(function("torch.no_such_function", vec![], vec![]), Err(Code::NotImplemented));
    }
}
