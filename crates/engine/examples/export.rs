//! Exports a module with a dynamic batch, changes its graph, decomposes it, runs it for two sizes, and saves it for PyTorch:
//! `cargo run -p tracefx-engine --example export -- model.pt2`.

use tracefx_core::{Diagnostic, Result, Tensor};
use tracefx_engine::Library;
use tracefx_export::{Dim, DynamicShapes, ExportedProgram, ShapeSpec, default_decompositions};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Opcode, TensorKind};
use tracefx_ops::Value;
use tracefx_sym::ValueRange;

/// `torch.relu(linear(x, self.weight, self.bias))`, as `torch.fx` traces it.
fn module() -> Result<GraphModule> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let [weight, bias] = ["weight", "bias"].map(|it| Arg::Node(graph.get_attr(it)));
    let linear = graph.call_function("torch._C._nn.linear", vec![x.into(), weight, bias], vec![]);
    let relu = graph.call_function("torch.relu", vec![linear.into()], vec![]);
    graph.output(relu.into());
    let mut module = GraphModule::new(graph);
    for (name, sizes) in [("weight", &[3, 4][..]), ("bias", &[3])] {
        let n: usize = sizes.iter().product();
        let values: Vec<f32> = (0..n).map(|it| it as f32 * 0.125 - 0.5).collect();
        let tensor = Tensor::from_slice(&values, sizes)?;
        module.set_attribute(name, Attribute::Tensor { tensor, kind: TensorKind::Parameter });
    }
    Ok(module)
}

fn rows(n: usize) -> Result<Value<Tensor>> {
    Tensor::from_slice(&vec![1.0f32; n * 4], &[n, 4]).map(Value::Tensor)
}

/// The same program with another operator in the place of each `relu`.
fn with_gelu(program: &ExportedProgram) -> Result<ExportedProgram> {
    let mut res = program.clone();
    let graph = &mut res.module.graph;
    let relus: Vec<_> = graph.find_nodes(Opcode::CallFunction, "torch.ops.aten.relu.default").collect();
    for relu in relus {
        graph.set_target(relu, "torch.ops.aten.gelu.default")?;
    }
    Ok(res)
}

/// Exports, changes, decomposes and runs; gives the program and what it prints.
pub(crate) fn run() -> Result<(ExportedProgram, String)> {
    let library = Library::default();
    let batch = Dim::new("batch", ValueRange::between(1, 64));
    let sizes = DynamicShapes::named([("x", ShapeSpec::at([(0, batch.into())]))]);
    let program = library.export_dynamic(&module()?, &[rows(2)?], &sizes)?;
    let program = with_gelu(&program)?.run_decompositions(&default_decompositions())?;
    let mut told = format!("{}\n", program.module.graph);
    let runner = library.runner(&program)?;
    for n in [3, 50] {
        let results = runner.run(&[rows(n)?])?;
        let [Value::Tensor(result)] = results.as_slice() else { continue };
        told += &format!("{n} rows give {:?}\n", result.sizes());
    }
    if let Err(refused) = runner.run(&[rows(65)?]) {
        told += &format!("65 rows: {}\n", refused.message());
    }
    Ok((program, told))
}

#[expect(clippy::print_stdout, reason = "an example tells what it did")]
fn main() -> Result<()> {
    let (program, told) = run()?;
    println!("{told}");
    let Some(path) = std::env::args().nth(1) else { return Ok(()) };
    let io = |problem: std::io::Error| Diagnostic::new(tracefx_core::Code::Internal, problem.to_string());
    tracefx_pt2::save(&program, &Default::default(), &mut std::fs::File::create(path).map_err(io)?)
}
