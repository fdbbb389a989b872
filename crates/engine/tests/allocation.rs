//! Memory that is refused is an error: recorded programs are read, made ready, run, changed by each pass and written, and
//! again for each allocation of that with the one refused. What comes is `OutOfMemory` or the right answer, never the end of
//! the process.
//!
//! A test of its own binary, because its allocator refuses.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a process tells where it is")]

#[path = "it/corpus/mod.rs"]
mod corpus;
#[path = "it/each_pass/mod.rs"]
mod each_pass;
#[path = "../../cpu/tests/refusing/mod.rs"]
mod refusing;

use refusing::{Work, check_all, refuse_each};
use sha2::{Digest, Sha256};
use std::io::Cursor;
use std::rc::Rc;
use tracefx_core::allocate::Written;
use tracefx_core::{Diagnostic, Tensor};
use tracefx_engine::{
    Library, Limits, Opening, PassCall, Runner, SaveOptions, host_pass, open, read_tensors, save, write_tensors,
};
use tracefx_export::{ExportedProgram, default_decompositions};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, TensorKind};
use tracefx_ops::{Value, registry};
use tracefx_rewrite::{ConstantFoldOptions, PassResult, constant_fold, fuse};

/// What lists may hold for each node, in bytes: a node has 300, a pass may make as many again and more, and a list that grew
/// is twice as long as it need be.
const OF_A_NODE: usize = 2048;

/// The inputs that a program was exported with, with elements that nobody else writes to.
fn inputs(program: &ExportedProgram) -> Vec<Value<Tensor>> {
    let own = |it: &Tensor| {
        let storage = it.storage().lazy_clone();
        Tensor::view_of(storage, it.dtype(), it.sizes(), it.strides(), it.offset()).unwrap()
    };
    program.example_inputs.iter().flatten().map(|it| it.map(&mut |it| own(it))).collect()
}

fn bytes(values: &[Value<Tensor>]) -> Vec<u8> {
    let mut res = Vec::new();
    values.iter().for_each(|it| it.for_each_tensor(&mut |it| res.extend(it.to_bytes().unwrap())));
    res
}

fn fxg(program: &ExportedProgram) -> Result<Vec<u8>, Diagnostic> {
    tracefx_wire::encode_program(program, &tracefx_wire::Options::FILE)
}

fn pt2(program: &ExportedProgram) -> Result<Vec<u8>, Diagnostic> {
    let mut res = Written::default();
    save(program, &SaveOptions::default(), &mut res)?;
    Ok(res.0)
}

/// What is done with a program, by name.
fn works_of(name: &str, archive: Vec<u8>) -> Vec<Work<'static>> {
    let Ok(program) = open(&archive, &Limits::default()) else { return Vec::new() };
    let (program, archive) = (Rc::new(program), Rc::new(archive));
    let lists = OF_A_NODE * program.module.modules().iter().map(|(_, it)| it.graph.len()).sum::<usize>();
    let mut res = Vec::new();
    let mut push = |what: &str, check: Box<dyn Fn() -> Result<(), String>>| {
        res.push(Work { name: format!("{name}: {what}"), lists, check });
    };
    let text = |it: &ExportedProgram| it.to_string().into_bytes();
    let file = fxg(&program).ok().map(Rc::new);
    let it = Rc::clone(&archive);
    push("open .pt2", Box::new(move || refuse_each(&|| (), &|()| open(&it, &Limits::default()), &text)));
    let it = Rc::clone(&archive);
    let streamed = move |(): ()| Opening::read(&mut Cursor::new(&it[..]), &Limits::default());
    push("stream .pt2", Box::new(move || refuse_each(&|| (), &streamed, &text)));
    let it = Rc::clone(&archive);
    let checked = move |(): ()| {
        let mut opening = Opening::new(it.len() as u64, &Limits::default(), Some(Sha256::digest(&it[..]).into()));
        while let Some(wanted) = opening.next_request() {
            opening.feed(wanted.id, &it[wanted.range.start as usize..wanted.range.end as usize])?;
        }
        opening.finish()
    };
    push("stream with SHA-256", Box::new(move || refuse_each(&|| (), &checked, &text)));
    if let Some(file) = file {
        push("open .fxg", Box::new(move || refuse_each(&|| (), &|()| open(&file, &Limits::default()), &text)));
    }
    let it = Rc::clone(&program);
    push("write .fxg", Box::new(move || refuse_each(&|| (), &|()| fxg(&it), &Vec::clone)));
    let it = Rc::clone(&program);
    push("write .pt2", Box::new(move || refuse_each(&|| (), &|()| pt2(&it), &Vec::clone)));
    let tensors: Vec<(String, Tensor)> =
        program.state_dict.iter().map(|(name, it)| (name.to_string(), it.tensor.clone())).collect();
    if let Ok(file) = write_tensors(&tensors) {
        push("write .safetensors", Box::new(move || refuse_each(&|| (), &|()| write_tensors(&tensors), &Vec::clone)));
        let told =
            |it: &Vec<(String, Tensor)>| bytes(&it.iter().map(|it| Value::Tensor(it.1.clone())).collect::<Vec<_>>());
        push("read .safetensors", Box::new(move || refuse_each(&|| (), &|()| read_tensors(&file), &told)));
    }
    let it = Rc::clone(&program);
    let run = move |inputs: Vec<Value<Tensor>>| Runner::new(&it)?.run(&inputs);
    let it = Rc::clone(&program);
    push("run", Box::new(move || refuse_each(&|| inputs(&it), &run, &|it| bytes(it))));
    let it = Rc::clone(&program);
    let decompose = move |(): ()| it.run_decompositions(&default_decompositions());
    push("run_decompositions", Box::new(move || refuse_each(&|| (), &decompose, &text)));
    type Lifted = fn(&mut GraphModule) -> Result<PassResult, Diagnostic>;
    let lifted: [(&str, Lifted); 2] = [
        ("fuse", |module| fuse(module, Library::default().executor())),
        ("fold", |module| constant_fold(module, Library::default().executor(), ConstantFoldOptions::default())),
    ];
    for (what, pass) in lifted {
        let it = Rc::clone(&program);
        let run = move |mut it: ExportedProgram| {
            it.with_lifted_state(registry(), &pass)?;
            Ok(it)
        };
        push(what, Box::new(move || refuse_each(&|| (*it).clone(), &run, &text)));
    }
    let Ok(module) = program.module() else { return res };
    let module = Rc::new(module);
    for (pass, options) in each_pass::with_options(module.graph.len()) {
        let it = Rc::clone(&module);
        let run = move |mut module: GraphModule| {
            let call = &mut PassCall {
                library: &Library::default(),
                module: &mut module,
                others: &[],
                options: options.clone(),
            };
            (host_pass(pass)?.run)(call)?;
            Ok(module)
        };
        let told = |it: &GraphModule| it.graph.to_string().into_bytes();
        push(pass, Box::new(move || refuse_each(&|| (*it).clone(), &run, &told)));
    }
    res
}

/// A program whose weights and values are longer than those that are recorded: a convolution with its normalization, and
/// products that are merged.
fn long() -> Vec<u8> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let mut module_tensors: Vec<(&str, Vec<usize>)> = Vec::new();
    let mut read = |graph: &mut Graph, name: &'static str, sizes: &[usize]| {
        module_tensors.push((name, sizes.to_vec()));
        graph.get_attr(name)
    };
    let weight = read(&mut graph, "weight", &[192, 192, 1, 1]);
    let call = |graph: &mut Graph, name: &str, args: Vec<Arg>| {
        graph.call_function(&format!("torch.ops.aten.{name}"), args, vec![])
    };
    let conv = call(&mut graph, "conv2d.default", vec![x.into(), weight.into()]);
    let parameters = ["scale", "shift", "mean", "variance"].map(|it| Arg::Node(read(&mut graph, it, &[192])));
    let mut args = vec![Arg::Node(conv)];
    args.extend(parameters);
    args.extend([Arg::Bool(false), Arg::Float(0.1), Arg::Float(1e-5), Arg::Bool(false)]);
    let norm = call(&mut graph, "batch_norm.default", args);
    let relu = call(&mut graph, "relu_.default", vec![norm.into()]);
    let flat = call(&mut graph, "flatten.using_ints", vec![relu.into(), Arg::Int(2)]);
    let factors = ["left", "right"].map(|it| Arg::Node(read(&mut graph, it, &[64, 256])));
    let products = factors.map(|it| Arg::Node(call(&mut graph, "matmul.default", vec![flat.into(), it])));
    let constant = read(&mut graph, "constant", &[192, 256]);
    let folded = call(&mut graph, "exp.default", vec![constant.into()]);
    let sum = call(&mut graph, "add.Tensor", vec![products[0].clone(), folded.into()]);
    let sorted = call(&mut graph, "sort.default", vec![sum.into()]);
    let sorted = graph.call_function("operator.getitem", vec![sorted.into(), Arg::Int(0)], vec![]);
    graph.output(Arg::Tuple(vec![sorted.into(), products[1].clone()]));
    let mut module = GraphModule::new(graph);
    for (name, sizes) in module_tensors {
        let tensor = tensor(&sizes);
        module.set_attribute(name, Attribute::Tensor { tensor, kind: TensorKind::Parameter });
    }
    let mut program = Library::default().export(&module, &[Value::Tensor(tensor(&[2, 192, 8, 8]))]).unwrap();
    program.example_inputs = Some(vec![Value::Tensor(tensor(&[2, 192, 8, 8]))]);
    pt2(&program).unwrap()
}

fn tensor(sizes: &[usize]) -> Tensor {
    let n = sizes.iter().product();
    let data: Vec<f32> = (0..n).map(|it: usize| 0.1 + (it * 7 % 11) as f32 * 0.3).collect();
    Tensor::from_slice(&data, sizes).unwrap()
}

#[test]
fn an_allocation_of_a_program_that_is_refused_is_an_error_and_not_the_end() {
    let works = || {
        let mut res = works_of("long", long());
        for folder in corpus::folders() {
            let name = folder.file_name().unwrap().to_string_lossy().to_string();
            res.extend(works_of(&name, std::fs::read(folder.join("model.pt2")).unwrap()));
        }
        res
    };
    let (n_works, n_refused) =
        check_all("an_allocation_of_a_program_that_is_refused_is_an_error_and_not_the_end", &works);
    println!("{n_works} works, {n_refused} allocations refused");
    assert!(n_works > 600 && n_refused > 140, "{n_works} works, {n_refused} allocations refused");
}
