//! Devices that keep a program's own tensors from run to run: who else reads them sees them as they are.

use std::sync::Arc;
use tracefx_core::{Code, Result, Tensor};
use tracefx_engine::{Library, Mode, Runner};
use tracefx_exec::{Accelerator, Memory, Placement, PlanDevice};
use tracefx_export::ExportedProgram;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, TensorKind};
use tracefx_ops::{Registry, Value};
use tracefx_plan::{Buffer, BufferId, Plan};

/// A device that has the kernels do everything, on what it keeps: between runs, memory has what it had before.
#[derive(Debug)]
struct Keeping;

#[derive(Debug)]
struct KeptPlan(Vec<(BufferId, Option<Vec<u8>>)>);

impl KeptPlan {
    /// Exchanges what is kept with what is in memory.
    fn exchange(&mut self, memory: &mut Memory<'_>) -> Result<()> {
        for (buffer, kept) in &mut self.0 {
            let storage = memory(*buffer)?;
            let in_memory = storage.read().bytes().to_vec();
            if let Some(kept) = kept.replace(in_memory) {
                storage.write()?.bytes_mut().copy_from_slice(&kept);
            }
        }
        Ok(())
    }
}

impl Accelerator for Keeping {
    fn name(&self) -> String {
        "a device that keeps".to_owned()
    }

    fn prepare(&self, plan: &Plan, _: &Registry) -> Result<Option<Box<dyn PlanDevice>>> {
        let constants = (0..).zip(&plan.buffers).filter(|(_, it)| matches!(it, Buffer::Constant(_)));
        Ok(Some(Box::new(KeptPlan(constants.map(|(at, _)| (BufferId(at), None)).collect()))))
    }

    fn placements(&self, plan: &Plan, _: &Registry) -> Vec<Placement> {
        vec![Placement::default(); plan.steps.len()]
    }

    fn keeps_state(&self) -> bool {
        true
    }
}

impl PlanDevice for KeptPlan {
    fn begin(&mut self, memory: &mut Memory<'_>) -> Result<()> {
        self.exchange(memory)
    }

    fn step(&mut self, _: usize, _: &mut Memory<'_>) -> Result<bool> {
        Ok(false)
    }

    fn end(&mut self, memory: &mut Memory<'_>) -> Result<()> {
        self.exchange(memory)
    }

    fn keeps_state(&self) -> bool {
        true
    }

    fn release(&mut self, memory: &mut Memory<'_>) -> Result<()> {
        self.exchange(memory)?;
        self.0.iter_mut().for_each(|it| it.1 = None);
        Ok(())
    }
}

/// `count.add_(1)`, and the sum of the count and `x`.
fn program(x: &Value<Tensor>) -> ExportedProgram {
    let mut graph = Graph::new();
    let input = graph.placeholder("x");
    let count = graph.get_attr("count");
    let more = graph.call_function("torch.ops.aten.add_.Scalar", vec![count.into(), Arg::Int(1)], vec![]);
    let sum = graph.call_function("torch.ops.aten.add.Tensor", vec![more.into(), input.into()], vec![]);
    graph.output(sum.into());
    let mut module = GraphModule::new(graph);
    let tensor = Tensor::from_slice(&[0f32], &[1]).unwrap();
    module.set_attribute("count", Attribute::Tensor { tensor, kind: TensorKind::Buffer });
    Library::default().export(&module, std::slice::from_ref(x)).unwrap()
}

fn first(value: &Tensor) -> f32 {
    value.to_vec::<f32>().unwrap()[0]
}

fn counted(runner: &Runner, x: &Value<Tensor>) -> f32 {
    let Value::Tensor(sum) = &runner.run(std::slice::from_ref(x)).unwrap()[0] else { panic!("a sum is a tensor") };
    first(sum)
}

fn in_memory(runner: &Runner) -> f32 {
    first(runner.state().next().unwrap().1)
}

/// Zeros that lie in rows and in columns: inputs of two plans.
fn zeros() -> [Value<Tensor>; 2] {
    let rows = Tensor::from_slice(&[0f32; 6], &[2, 3]).unwrap();
    let columns = rows.as_strided(&[2, 3], &[1, 2], 0).unwrap();
    [rows, columns].map(Value::Tensor)
}

#[test]
fn another_plan_and_the_interpreter_go_on_from_what_a_device_keeps() {
    let [rows, columns] = zeros();
    let runner = Runner::new(&program(&rows)).unwrap().with_accelerator(Arc::new(Keeping));
    assert_eq!([counted(&runner, &rows), counted(&runner, &rows), in_memory(&runner)], [1.0, 2.0, 0.0]);
    assert_eq!([counted(&runner, &columns), counted(&runner, &rows)], [3.0, 4.0]);
    runner.plan(std::slice::from_ref(&rows)).unwrap();
    assert!(runner.profile(std::slice::from_ref(&rows), 2).is_ok());
    assert_eq!(counted(&runner, &rows), 8.0);
    runner.synchronize().unwrap();
    assert_eq!(in_memory(&runner), 8.0);
    assert_eq!(counted(&runner, &columns), 9.0);
    let interpreted = runner.with_mode(Mode::Interpret);
    assert_eq!([counted(&interpreted, &rows), in_memory(&interpreted)], [10.0, 10.0]);
}

#[test]
fn who_shares_the_tensors_sees_them_after_each_run() {
    let [rows, _] = zeros();
    let program = program(&rows);
    let device = || Runner::new(&program).unwrap().with_accelerator(Arc::new(Keeping)).with_shared_state().unwrap();
    let (first_one, second) = (device(), device());
    assert_eq!([counted(&first_one, &rows), counted(&second, &rows), counted(&first_one, &rows)], [1.0, 2.0, 3.0]);
    assert_eq!(first(&program.state_dict["count"].tensor), 3.0);
}

#[test]
fn a_run_within_a_run_is_refused_and_does_not_wait_for_itself() {
    let [rows, _] = zeros();
    let runner = Runner::new(&program(&rows)).unwrap().with_accelerator(Arc::new(Keeping));
    assert_eq!(counted(&runner, &rows), 1.0);
    let mut codes = Vec::new();
    let within = runner.run_watched(std::slice::from_ref(&rows), &mut |_, _| {
        codes.extend(runner.synchronize().err().map(|it| it.code()));
        codes.extend(runner.run(std::slice::from_ref(&rows)).err().map(|it| it.code()));
        Ok(())
    });
    assert!(within.is_ok() && !codes.is_empty() && codes.iter().all(|it| *it == Code::DeviceFailed), "{codes:?}");
    assert_eq!(counted(&runner, &rows), 3.0);
}
