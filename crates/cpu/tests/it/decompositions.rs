//! Decompositions of data movement compute what the kernels compute.

use tracefx_core::{DType, Result, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::{Args, Builder, Cx, TensorRef, Traced, Value, bind, registry};

/// A builder that runs each call at once.
#[derive(Default)]
struct Eager(Vec<(Tensor, TensorMeta)>);

impl Eager {
    fn import(&mut self, value: &Value<Tensor>) -> Traced {
        let add = |it: &Tensor| {
            self.0.push((it.clone(), TensorMeta::of(it)));
            TensorRef(self.0.len() - 1)
        };
        value.map(&mut { add })
    }

    fn export(&self, value: &Traced) -> Value<Tensor> {
        value.map(&mut |it| self.0[it.0].0.clone())
    }
}

impl Builder for Eager {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        let args: Vec<_> = args.iter().map(|it| self.export(it)).collect();
        let kwargs: Vec<_> = kwargs.iter().map(|(key, it)| (Str::from(*key), self.export(it))).collect();
        let results = Executor::new(registry(), tracefx_cpu::kernels()).call(op, &args, &kwargs)?;
        Ok(results.iter().map(|it| self.import(it)).collect())
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        &self.0[tensor.0].1
    }
}

fn flat(values: &[Value<Tensor>]) -> Vec<(Vec<usize>, Vec<u8>)> {
    let one = |it: &Value<Tensor>| match it {
        Value::Tensor(it) => vec![(it.sizes().to_vec(), it.to_bytes().unwrap())],
        Value::List(items) => flat(items),
        other => panic!("a {}", other.kind_name()),
    };
    values.iter().flat_map(one).collect()
}

#[track_caller]
fn check(op: &str, args: &[Value<Tensor>]) {
    let by_kernel = Executor::new(registry(), tracefx_cpu::kernels()).call(op, args, &[]).unwrap();
    let op = registry().get(op).unwrap();
    let mut eager = Eager::default();
    let bound = bind(op, args, &[]).unwrap();
    let values = bound.iter().map(|it| eager.import(it)).collect();
    let decompose = op.def.decompose.expect("it has a decomposition");
    let results = decompose(&mut Cx::new(&mut eager), &Args::new(op, values)).unwrap();
    let results: Vec<_> = results.iter().map(|it| eager.export(it)).collect();
    assert_eq!(flat(&results), flat(&by_kernel), "{}", op.name);
}

fn numbers(sizes: &[usize]) -> Value<Tensor> {
    let values: Vec<f32> = (0..sizes.iter().product()).map(|it: usize| it as f32).collect();
    Value::Tensor(Tensor::from_slice(&values, sizes).unwrap())
}

fn index(values: &[i64]) -> Value<Tensor> {
    Value::Tensor(Tensor::from_slice(values, &[values.len()]).unwrap())
}

#[test]
fn decompositions_agree_with_kernels() {
    let (int, ints) = (Value::<Tensor>::int, Value::<Tensor>::ints);
    let image = || numbers(&[1, 2, 4, 3]);
    check("aten.transpose.int", &[image(), int(1), int(-1)]);
    check("aten.t.default", &[numbers(&[2, 3])]);
    check("aten.split.Tensor", &[numbers(&[5, 2]), int(2)]);
    check("aten.unbind.int", &[numbers(&[3, 2]), int(1)]);
    check("aten.reshape.default", &[image(), ints(&[3, 8])]);
    check("aten.roll.default", &[numbers(&[3, 4]), ints(&[1, -6]), ints(&[0, 1])]);
    check("aten.roll.default", &[numbers(&[3, 4]), ints(&[5])]);
    check("aten.take.default", &[numbers(&[3, 4]), index(&[7, -1])]);
    check("aten.index_add.default", &[numbers(&[3, 4]), int(1), index(&[0, 0]), numbers(&[3, 2])]);
    check("aten.index_copy.default", &[numbers(&[3, 4]), int(1), index(&[0, 3]), numbers(&[3, 2])]);
    check("aten.index_fill.int_Scalar", &[numbers(&[3, 4]), int(0), index(&[-1]), Value::Float(7.0)]);
    check("aten.reflection_pad2d.default", &[image(), ints(&[2, 1, 3, 0])]);
    check("aten.replication_pad2d.default", &[image(), ints(&[2, 1, 3, -1])]);
    check("aten._pad_circular.default", &[image(), ints(&[2, 1, 4, 0])]);
    let mask = Value::Tensor(Tensor::full(DType::Bool, &[2], tracefx_core::Scalar::Bool(true)).unwrap());
    let values = [numbers(&[2, 3]), Value::List(vec![mask]), numbers(&[2, 3]), Value::Bool(true)];
    check("aten.index_put.default", &values);
}
