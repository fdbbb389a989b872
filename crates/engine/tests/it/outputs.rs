//! Outputs that the caller gives: every recorded program writes to them what it gives without them, and what cannot be written to is
//! refused before the program runs.

use crate::plans::{content, copies, fixtures, recorded};
use tracefx_core::{Code, DType, Storage, Tensor};
use tracefx_engine::{Library, Mode, Precision, Runner};
use tracefx_ir::{Arg, Graph, GraphModule};
use tracefx_ops::Value;

fn tensors(values: &[Value<Tensor>]) -> Vec<Tensor> {
    let mut res = Vec::new();
    values.iter().for_each(|it| it.for_each_tensor(&mut |it| res.push(it.clone())));
    res
}

/// A tensor of the same sizes, of ones: as that lies, or with gaps and the dimensions the other way round.
fn like(tensor: &Tensor, is_strided: bool) -> Tensor {
    let fill = |n: usize| Storage::from_bytes(&vec![1; n]).unwrap();
    let (sizes, size) = (tensor.sizes(), tensor.dtype().size());
    if !is_strided {
        let storage = fill((tensor.numel() * size).max(1));
        return Tensor::view_of(storage, tensor.dtype(), sizes, tensor.strides(), 0)
            .unwrap_or_else(|_| like(tensor, true));
    }
    let mut strides = vec![0; sizes.len()];
    let mut step = 2;
    for dim in 0..sizes.len() {
        strides[dim] = step;
        step *= sizes[dim].max(1);
    }
    Tensor::view_of(fill((step + 3) * size), tensor.dtype(), sizes, &strides, 3).unwrap()
}

fn bytes(values: &[Value<Tensor>]) -> Vec<Vec<u8>> {
    tensors(values).iter().map(|it| it.to_bytes().unwrap()).collect()
}

#[test]
fn outputs_hold_what_the_program_gives() {
    let (mut n_outputs, mut n_in_place) = (0, 0);
    for folder in fixtures("programs") {
        let Some((program, calls)) = recorded(&folder) else { continue };
        for mode in [Mode::Plan, Mode::Interpret] {
            let runner = || Runner::new(&program).map(|it| it.with_mode(mode).with_precision(Precision::Strict));
            let (Ok(mine), Ok(yours)) = (runner(), runner()) else { continue };
            for (inputs, is_strided) in calls.iter().flat_map(|it| [(it, false), (it, true), (it, false)]) {
                let Ok(expected) = mine.run(&copies(inputs)) else { continue };
                let outputs: Vec<Tensor> = tensors(&expected).iter().map(|it| like(it, is_strided)).collect();
                let version = |it: &Tensor| it.storage().version();
                let before: Vec<u64> = outputs.iter().map(version).collect();
                let given = yours.run_into(&copies(inputs), &outputs).unwrap();
                assert_eq!(bytes(&given), bytes(&expected), "{}", folder.display());
                assert!(tensors(&given).iter().zip(&outputs).all(|(a, b)| a.is_same_view(b)));
                n_outputs += outputs.len();
                n_in_place += outputs.iter().zip(before).filter(|(it, before)| version(it) > *before).count();
                let state =
                    |it: &Runner| content(&it.state().map(|it| Value::Tensor(it.1.clone())).collect::<Vec<_>>());
                assert_eq!(state(&yours), state(&mine), "{}", folder.display());
            }
        }
    }
    assert!(n_outputs > 100 && n_in_place > 100, "{n_in_place} of {n_outputs} outputs are written to");
}

/// `(x * 2, x + y)`.
fn runner(inputs: &[Value<Tensor>]) -> Runner {
    let mut graph = Graph::new();
    let [x, y] = ["x", "y"].map(|it| graph.placeholder(it));
    let double = graph.call_function("torch.ops.aten.mul.Scalar", vec![x.into(), Arg::Int(2)], vec![]);
    let sum = graph.call_function("torch.ops.aten.add.Tensor", vec![x.into(), y.into()], vec![]);
    graph.output(Arg::Tuple(vec![double.into(), sum.into()]));
    let program = Library::default().export(&GraphModule::new(graph), inputs).unwrap();
    Runner::new(&program).unwrap()
}

fn ones(sizes: &[usize]) -> Tensor {
    Tensor::from_slice(&vec![1.0f32; sizes.iter().product()], sizes).unwrap()
}

#[test]
fn a_run_makes_no_outputs_where_there_are_some() {
    let inputs = [Value::Tensor(ones(&[2, 3])), Value::Tensor(ones(&[2, 3]))];
    let runner = runner(&inputs);
    let (first, second) = (ones(&[2, 3]), Tensor::zeros(DType::Float32, &[2, 3]).unwrap());
    let address = |it: &Tensor| it.storage().read().bytes().as_ptr();
    let before = [&first, &second].map(address);
    // What is a lazy clone of an output stays as it is.
    let clone = first.storage().lazy_clone();
    for call in 0..3 {
        let given = runner.run_into(&inputs, &[first.clone(), second.clone()]).unwrap();
        assert_eq!(given.len(), 2);
        assert_eq!((first.to_vec::<f32>().unwrap(), second.to_vec::<f32>().unwrap()), (vec![2.0; 6], vec![2.0; 6]));
        if call == 0 {
            first.storage().write().unwrap().bytes_mut().fill(0);
        }
    }
    assert_eq!(address(&second), before[1]);
    assert_eq!(clone.read().elements::<f32>(), [1.0; 6]);
    // The plan's own memory is not that of the outputs.
    let other = runner.run(&inputs).unwrap();
    assert!(tensors(&other).iter().all(|it| !it.storage().is_same(first.storage())));
}

#[test]
fn outputs_that_cannot_be_written_to_are_refused() {
    let x = ones(&[2, 3]);
    let inputs = [Value::Tensor(x.clone()), Value::Tensor(ones(&[2, 3]))];
    for mode in [Mode::Plan, Mode::Interpret] {
        let runner = runner(&inputs).with_mode(mode);
        let good = || ones(&[2, 3]);
        let one = good();
        let half = Tensor::zeros(DType::Float16, &[2, 3]).unwrap();
        let expanded = ones(&[1]).as_strided(&[2, 3], &[0, 0], 0).unwrap();
        let refused: [(&[Tensor], &str); 8] = [
            (&[], "2 tensors, and there are 0"),
            (&[good()], "2 tensors, and there are 1"),
            (&[good(), good(), good()], "2 tensors, and there are 3"),
            (&[good(), half], "the output 1"),
            (&[ones(&[3, 2]), good()], "the output 0"),
            (&[x.clone(), good()], "the output 0 shares memory"),
            (&[one.clone(), one], "the output 1 shares memory"),
            (&[expanded, good()], "the output 0 shares memory"),
        ];
        for (outputs, what) in refused {
            let problem = runner.run_into(&inputs, outputs).unwrap_err();
            assert_eq!(problem.code(), Code::InvalidArgument, "{problem}");
            assert!(problem.message().contains(what) && problem.help_text().is_some(), "{problem}");
        }
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0; 6]);
        // Another run is not disturbed.
        assert!(runner.run_into(&inputs, &[good(), good()]).is_ok());
    }
}
