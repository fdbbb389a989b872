//! Puts another activation into a program, runs it in four threads, and saves it for PyTorch: `cargo run --example edit -- out.pt2`.

use tracefx::prelude::*;

/// `torch.relu(x * 2)`, exported.
fn program() -> tracefx::Result<ExportedProgram> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let doubled = graph.call_function("operator.mul", vec![x.into(), Arg::Int(2)], vec![]);
    let relu = graph.call_function("torch.relu", vec![doubled.into()], vec![]);
    graph.output(relu.into());
    Library::default().export(&GraphModule::new(graph), &[Value::Tensor(Tensor::zeros(DType::Float32, &[3])?)])
}

/// The same program with the sigmoid in the place of each `relu`.
fn with_sigmoid(mut program: ExportedProgram) -> tracefx::Result<ExportedProgram> {
    let graph = &mut program.module.graph;
    let relus: Vec<NodeId> = graph.find_nodes(Opcode::CallFunction, "torch.ops.aten.relu.default").collect();
    for relu in relus {
        graph.set_target(relu, "torch.ops.aten.sigmoid.default")?;
    }
    Library::default().settle(&program)
}

/// What four threads get that call one runner.
fn called(program: &ExportedProgram) -> tracefx::Result<Vec<Vec<f32>>> {
    let runner = Runner::new(program)?;
    std::thread::scope(|scope| {
        let call = |n: usize| {
            let runner = &runner;
            move || {
                let x = Tensor::from_slice(&[n as f32, -(n as f32), 0.0], &[3])?;
                match runner.run(&[Value::Tensor(x)])?.as_slice() {
                    [Value::Tensor(y)] => y.to_vec(),
                    _ => Err(Diagnostic::new(Code::Internal, "the program gives one tensor")),
                }
            }
        };
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(call(n))).collect();
        threads.into_iter().map(|it| it.join().expect("a call does not panic")).collect()
    })
}

/// Edits and runs; gives the program and what it prints.
pub(crate) fn run() -> tracefx::Result<(ExportedProgram, Vec<Vec<f32>>)> {
    let program = with_sigmoid(program()?)?;
    let results = called(&program)?;
    Ok((program, results))
}

#[expect(clippy::print_stdout, reason = "an example tells what it did")]
fn main() -> tracefx::Result<()> {
    let (program, results) = run()?;
    println!("{}\n{results:?}", program.module.graph);
    let Some(path) = std::env::args_os().nth(1) else { return Ok(()) };
    save_to(&program, path.as_ref(), &SaveOptions::default())?;
    Ok(())
}
