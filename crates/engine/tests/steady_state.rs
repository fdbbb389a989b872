//! A run like the one before takes no memory for tensors: what is computed lies where it lay, and what is given where the caller has it.
//!
//! A test of its own binary, because it counts every allocation of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use tracefx_core::{DType, Tensor};
use tracefx_engine::{Library, Runner};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, TensorKind};
use tracefx_ops::Value;

struct Counting;

/// What is smaller is no tensor of these programs, but a list of them, what sizes are compared with, or a block of a kernel.
const SMALL: usize = 1 << 14;

static LARGE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came; counting does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= SMALL {
            LARGE.fetch_add(layout.size(), Ordering::Relaxed);
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes of the allocations of a call that may be tensors.
fn counted<R>(call: impl FnOnce() -> R) -> usize {
    let before = LARGE.load(Ordering::Relaxed);
    drop(call());
    LARGE.load(Ordering::Relaxed) - before
}

fn tensor(sizes: &[usize]) -> Tensor {
    let n = sizes.iter().product();
    let data: Vec<f32> = (0..n).map(|it: usize| (it * 7 % 11) as f32 * 0.03 - 0.1).collect();
    Tensor::from_slice(&data, sizes).unwrap()
}

/// A graph and its weights.
#[derive(Default)]
struct Net {
    graph: Graph,
    weights: Vec<Tensor>,
}

impl Net {
    fn aten(&mut self, op: &str, args: Vec<Arg>) -> NodeId {
        self.graph.call_function(&format!("torch.ops.aten.{op}"), args, vec![])
    }

    fn weight(&mut self, sizes: &[usize]) -> Arg {
        self.weights.push(tensor(sizes));
        self.graph.get_attr(&format!("w{}", self.weights.len() - 1)).into()
    }

    /// Blocks of convolutions with what follows them, products, a normalisation, attention and a concatenation.
    fn block(&mut self, x: NodeId) -> NodeId {
        let ints = |it: &[i64]| Arg::List(it.iter().copied().map(Arg::Int).collect());
        let (weight, bias) = (self.weight(&[16, 16, 3, 3]), self.weight(&[16]));
        let y = self.aten("conv2d.default", vec![x.into(), weight, bias, ints(&[1, 1]), ints(&[1, 1])]);
        let y = self.aten("relu.default", vec![y.into()]);
        let y = self.aten("add.Tensor", vec![y.into(), x.into()]);
        let rows = self.aten("view.default", vec![y.into(), ints(&[1, 4, 256, 64])]);
        let (weight, bias) = (self.weight(&[64, 64]), self.weight(&[64]));
        let rows = self.aten("linear.default", vec![rows.into(), weight, bias]);
        let rows = self.aten("gelu.default", vec![rows.into()]);
        let scale = self.weight(&[64]);
        let rows = self.aten("layer_norm.default", vec![rows.into(), ints(&[64]), scale]);
        let args = vec![rows.into(), rows.into(), rows.into()];
        let seen = self.aten("scaled_dot_product_attention.default", args);
        let halves = [0, 32].map(|from| {
            let args = vec![seen.into(), Arg::Int(3), Arg::Int(from), Arg::Int(from + 32)];
            Arg::Node(self.aten("slice.Tensor", args))
        });
        let turned = self.aten("cat.default", vec![Arg::List(halves.into_iter().rev().collect()), Arg::Int(-1)]);
        let images = self.aten("view.default", vec![turned.into(), ints(&[16, 64, 64])]);
        // Parts that loops make in their places.
        let parts = [(0, "exp.default"), (8, "tanh.default")].map(|(from, op)| {
            let part = vec![images.into(), Arg::Int(0), Arg::Int(from), Arg::Int(from + 8)];
            let part = self.aten("slice.Tensor", part);
            Arg::Node(self.aten(op, vec![part.into()]))
        });
        let joined = self.aten("cat.default", vec![Arg::List(parts.to_vec()), Arg::Int(0)]);
        self.aten("view.default", vec![joined.into(), ints(&[1, 16, 64, 64])])
    }

    fn finish(mut self, output: NodeId, input: &Tensor) -> Runner {
        self.graph.output(output.into());
        let mut module = GraphModule::new(self.graph);
        for (at, tensor) in self.weights.into_iter().enumerate() {
            let weight = Attribute::Tensor { tensor, kind: TensorKind::Parameter };
            module.set_attribute(format!("w{at}").as_str(), weight);
        }
        Runner::new(&Library::default().export(&module, &[Value::Tensor(input.clone())]).unwrap()).unwrap()
    }
}

#[test]
fn a_run_like_the_one_before_takes_no_memory_for_tensors() {
    let input = tensor(&[1, 16, 64, 64]);
    let runner = |n_blocks: usize| {
        let mut net = Net::default();
        let mut y = net.graph.placeholder("x");
        for _ in 0..n_blocks {
            y = net.block(y);
        }
        net.finish(y, &input)
    };
    let inputs = [Value::Tensor(input.clone())];
    let output = Tensor::zeros(DType::Float32, &[1, 16, 64, 64]).unwrap();
    for n_blocks in [1, 4] {
        let runner = runner(n_blocks);
        let into = || runner.run_into(&inputs, std::slice::from_ref(&output)).unwrap();
        for _ in 0..3 {
            into();
            runner.run(&inputs).unwrap();
        }
        // What a run gives lies in the memory of what the run before gave, which is gone.
        assert_eq!((counted(into), counted(|| runner.run(&inputs).unwrap())), (0, 0), "{n_blocks} blocks");
    }
}
