//! Operators that JavaScript defines: `torch.library`.
//!
//! A function of JavaScript is a number here. [`Host::call`] is given the number and the words of the arguments (see
//! [`values`](crate::values)), and answers with a word: 0, and the words of the results follow; or 1, and the words of a
//! string do, which is the refusal that the function threw, as JSON. Whatever is asked for works on a copy of the library, so
//! that a function may call the engine again and define operators.

use crate::storages::Storages;
use crate::values::{Crossing, Reader, encode, encode_known};
use crate::{Refusal, refusal};
use std::cell::{Cell, RefCell};
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_engine::Library;
use tracefx_ir::TensorMeta;
use tracefx_ops::{Args, Backward, CustomOp, Expr, Output, Value};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    /// What calls the functions of JavaScript.
    #[derive(Clone)]
    pub type Host;

    /// Calls the function of this number.
    #[wasm_bindgen(method, catch)]
    fn call(this: &Host, number: u32, words: Vec<u32>) -> std::result::Result<Vec<u32>, JsValue>;
}

/// How deep calls of JavaScript's functions may lie in each other: the stack here is smaller than JavaScript's.
const MAX_DEPTH: u32 = 32;

thread_local! {
    static LIBRARY: RefCell<Library> = RefCell::new(Library::extended());
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// The operators as they are now.
pub(crate) fn library() -> Library {
    LIBRARY.with_borrow(Library::clone)
}

/// Says what calls the functions of JavaScript.
#[wasm_bindgen]
pub fn set_host(host: Host) {
    HOST.set(Some(host));
}

/// Defines an operator, in the place of one that was defined under its name before. `kernel`, `shape` and `backward` are
/// the numbers of its functions. The kernel is given the arguments of the schema and gives the results; `shape` the same
/// without data; `backward` the gradients of the results, the arguments and the results, each as a list, and gives a
/// gradient for each argument.
///
/// # Errors
/// `SchemaMismatch` where the text is no schema; `InvalidOption` where the operator is one of PyTorch's that the engine has.
#[wasm_bindgen]
pub fn define_operator(
    schema: &str,
    kernel: Option<u32>,
    shape: Option<u32>,
    backward: Option<u32>,
) -> Result<(), Refusal> {
    let mut op = CustomOp::new(schema)?;
    let name = op.name();
    if let Some(number) = shape {
        op = op.shape(move |args| infer(number, args));
    }
    let mut library = library();
    if let Some(number) = backward {
        let gradient = backward_of(&op)?;
        let backward = gradient.name();
        library.remove(&backward);
        library.define(gradient)?;
        library.implement(&backward, move |args| compute(number, args))?;
        op = op.vjp(move |it| Ok(formulas(&backward, it)));
    }
    library.remove(&name);
    library.define(op)?;
    if let Some(number) = kernel {
        library.implement(&name, move |args| compute(number, args))?;
    }
    LIBRARY.set(library);
    Ok(())
}

/// Defines an operator as [`define_operator`] does, that is made of others: of what a program does, whose bytes and storages
/// these are.
///
/// # Errors
/// As there, and a code of the wire group where the bytes break a rule.
#[wasm_bindgen]
pub fn define_composite_operator(schema: &str, bytes: &[u8], storages: &Storages) -> Result<(), Refusal> {
    let program = tracefx_wire::decode_program(bytes, &storages.0, &tracefx_wire::Limits::default())?;
    let mut library = library();
    library.remove(&CustomOp::new(schema)?.name());
    let body = program.module_in(library.registry())?;
    library.define_composite(schema, body)?;
    LIBRARY.set(library);
    Ok(())
}

/// Takes an operator out that was defined, and gives back whether there was one.
#[wasm_bindgen]
pub fn remove_operator(name: &str) -> bool {
    let mut library = library();
    let was_there = library.remove(name);
    LIBRARY.set(library);
    was_there
}

/// A call that is under way, for as long as this lives.
struct Depth;

impl Depth {
    fn enter() -> Result<Depth> {
        let depth = DEPTH.get();
        if depth >= MAX_DEPTH {
            let what =
                format!("functions of custom operators call each other deeper than {MAX_DEPTH}, the limit `depth`");
            return Err(Diagnostic::new(Code::LimitExceeded, what).help("look for an operator that calls itself"));
        }
        DEPTH.set(depth + 1);
        Ok(Depth)
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Calls a function of JavaScript with these arguments.
fn ask<T: Crossing>(number: u32, words: impl FnOnce() -> Result<Vec<u32>, Refusal>) -> Result<Vec<Value<T>>> {
    let _depth = Depth::enter()?;
    let broken = |what: &str| Diagnostic::new(Code::Internal, format!("a function of a custom operator {what}"));
    let host = HOST.with_borrow(Option::clone).ok_or_else(|| broken("has nobody who calls it"))?;
    // Tensors have handles from here on, which are JavaScript's.
    let answer = host.call(number, words()?).map_err(|_| broken("was called, and nobody caught what it threw"))?;
    match answer.split_first() {
        Some((0, results)) => Ok(Reader::new(results).rest()?),
        Some((_, problem)) => Err(refusal::of_json(&Reader::new(problem).text()?)),
        None => Err(broken("gave nothing")),
    }
}

fn compute(number: u32, args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let words = || {
        let mut words = Vec::new();
        encode(&args.values, &mut words)?;
        Ok(words)
    };
    ask(number, words).map_err(|problem| problem.op(&*args.op.name))
}

fn infer(number: u32, args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let results = ask(number, || Ok(encode_known(&args.values))).map_err(|problem| problem.op(&*args.op.name))?;
    if args.op.returns_self() {
        return Ok(vec![Output::Same(0)]);
    }
    if args.op.may_alias() {
        let what =
            "results that look at an argument are there for the first argument, which the operator writes to, alone";
        return Err(args.unsupported(what));
    }
    Ok(results.into_iter().map(output).collect())
}

fn output(value: Value<TensorMeta>) -> Output {
    match value {
        Value::Tensor(meta) => Output::Tensor(TensorMeta { storage_offset: 0.into(), ..meta }),
        Value::List(items) if items.iter().any(|it| matches!(it, Value::Tensor(_))) => {
            Output::List(items.into_iter().map(output).collect())
        }
        other => Output::Value(other),
    }
}

/// The operator that computes the gradients of another one. A gradient may be one of its arguments.
fn backward_of(op: &CustomOp) -> Result<CustomOp> {
    let schema = op.schema();
    let overload = if schema.overload == "default" { String::new() } else { format!(".{}", schema.overload) };
    let (namespace, name) = (&schema.namespace, &schema.name);
    let lists = "Any[] grads, Any[] inputs, Any[] results";
    CustomOp::new(&format!("{namespace}::{name}__backward{overload}({lists}) -> Any(a)[]"))
}

fn formulas(backward: &str, it: &Backward<'_>) -> Vec<Expr> {
    let (n_args, n_results) = (it.args.values.len(), it.op().schema.returns.len());
    let grads = Expr::list((0..n_results).map(|at| it.opt_grad(at).unwrap_or_else(Expr::none)));
    let (inputs, results) = (Expr::list((0..n_args).map(|at| it.arg(at))), (0..n_results).map(|at| it.result(at)));
    let gradients = Expr::call(backward, [grads, inputs, Expr::list(results)]);
    let of_arg = |(at, value): (usize, &tracefx_ops::Traced)| {
        let gradient = gradients.item(at);
        match value {
            Value::List(items) => Expr::list((0..items.len()).map(|it| gradient.item(it))),
            _ => gradient,
        }
    };
    it.args.values.iter().enumerate().map(of_arg).collect()
}
