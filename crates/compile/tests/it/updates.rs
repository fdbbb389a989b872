//! Operators that change a part of a tensor in its place: what is copied and what is not, and that the bits stay.

use crate::reference::snapshot;
use std::sync::Arc;
use tracefx_compile::{Precision, compile};
use tracefx_core::{Code, DType, Tensor};
use tracefx_cpu::kernels;
use tracefx_exec::{BoundPlan, Executor, Interpreter, LOOP_STEPS, fits, plan as plan_of};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, TensorKind, TensorMeta};
use tracefx_ops::{Value, registry};
use tracefx_plan::{Action, Buffer, Plan};

fn aten(g: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    g.call_function(&format!("torch.ops.aten.{name}"), args, vec![])
}

fn executor() -> Executor<'static> {
    Executor::new(registry(), kernels())
}

fn noise(sizes: &[usize], seed: usize) -> Tensor {
    let number = |at: usize| ((at * 7919 + seed * 104_729) % 10_007) as f32 / 10_007.0 - 0.5;
    Tensor::from_slice(&(0..sizes.iter().product()).map(number).collect::<Vec<_>>(), sizes).unwrap()
}

fn cast(tensor: &Tensor, dtype: DType) -> Tensor {
    let dtype = [("dtype".into(), Value::DType(dtype))];
    let made = executor().call("aten._to_copy.default", &[Value::Tensor(tensor.clone())], &dtype).unwrap();
    let [Value::Tensor(made)] = &made[..] else { panic!("{made:?}") };
    made.clone()
}

fn positions(at: &[i64]) -> Tensor {
    Tensor::from_slice(at, &[at.len()]).unwrap()
}

/// A program: its inputs, and its buffers, which are new in each module.
struct Case<'a> {
    build: &'a dyn Fn(&mut Graph, &[NodeId]) -> Vec<NodeId>,
    inputs: &'a dyn Fn(usize) -> Vec<Tensor>,
    buffers: Vec<Tensor>,
    precision: Precision,
}

impl Case<'_> {
    fn module(&self) -> GraphModule {
        let mut g = Graph::new();
        let n_inputs = (self.inputs)(0).len();
        let mut nodes: Vec<NodeId> = (0..n_inputs).map(|it| g.placeholder(&format!("x{it}"))).collect();
        nodes.extend((0..self.buffers.len()).map(|it| g.get_attr(&format!("b{it}"))));
        let outputs = (self.build)(&mut g, &nodes);
        g.output(Arg::Tuple(outputs.into_iter().map(Arg::Node).collect()));
        let mut module = GraphModule::new(g);
        for (at, tensor) in self.buffers.iter().enumerate() {
            let attribute = Attribute::Tensor { tensor: own(tensor), kind: TensorKind::Buffer };
            module.attributes.insert(format!("b{at}").into(), attribute);
        }
        module
    }

    /// The compiled plan, which gives and leaves in three calls what the interpreter does.
    #[track_caller]
    fn check(&self) -> Plan {
        let (mine, yours) = (self.module(), self.module());
        let metas: Vec<_> = (self.inputs)(0).iter().map(|it| Value::Tensor(TensorMeta::of(it))).collect();
        let traced = plan_of(&yours, &metas, registry(), kernels()).unwrap();
        let compiled = compile(traced, registry(), kernels(), self.precision);
        compiled.validate().unwrap();
        let mut bound = BoundPlan::new(Arc::new(compiled.clone()), registry(), kernels()).unwrap();
        for call in 0..3 {
            let inputs = || (self.inputs)(call).iter().map(|it| Value::Tensor(own(it))).collect::<Vec<_>>();
            let (own, theirs) = (inputs(), inputs());
            let given = bound.run(executor(), &own, LOOP_STEPS, &mut |_, _| Ok(()));
            let wanted = Interpreter::new(&mine, executor()).run(&theirs);
            let all = |module: &GraphModule, inputs: Vec<Value<Tensor>>, result: Value<Tensor>| {
                let state = module.attributes.iter().filter_map(|(_, it)| match it {
                    Attribute::Tensor { tensor, .. } => Some(Value::Tensor(tensor.clone())),
                    Attribute::Fake { .. } | Attribute::Module(_) => None,
                });
                content(&[result].into_iter().chain(inputs).chain(state).collect::<Vec<_>>())
            };
            match (given, wanted) {
                (Ok(given), Ok(wanted)) => {
                    let is_same = all(&yours, own, given) == all(&mine, theirs, wanted);
                    assert!(is_same, "call {call}\n{compiled}");
                }
                (given, wanted) => {
                    assert_eq!(given.unwrap_err().to_string(), wanted.unwrap_err().to_string(), "{compiled}");
                    let is_same = all(&yours, own, Value::None) == all(&mine, theirs, Value::None);
                    assert!(is_same, "call {call}\n{compiled}");
                }
            }
        }
        compiled
    }
}

/// A copy that lies as the tensor does.
fn own(tensor: &Tensor) -> Tensor {
    let storage = tensor.storage().lazy_clone();
    Tensor::view_of(storage, tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.offset()).unwrap()
}

/// How each tensor lies, the first in the same memory, and its bytes.
fn content(values: &[Value<Tensor>]) -> Vec<(String, Vec<u8>)> {
    let mut tensors = Vec::new();
    values.iter().for_each(|it| it.for_each_tensor(&mut |it| tensors.push(it.clone())));
    let first = |it: &Tensor| tensors.iter().position(|other| other.storage().is_same(it.storage()));
    let content = |it: &Tensor| (format!("{it:?} {:?}", first(it)), it.to_bytes().unwrap());
    tensors.iter().map(content).collect()
}

/// How many steps write, or read to write anew, as many elements as a cache has.
fn n_copies(plan: &Plan, n: usize) -> usize {
    let is_copy = |action: &Action| {
        let mut writes = false;
        action.for_each_written(&mut |it| {
            writes |= plan.tensor(it).known().is_none_or(|it| it.sizes.iter().product::<usize>() >= n);
        });
        writes && !matches!(action, Action::Update { .. })
    };
    plan.steps.iter().filter(|it| is_copy(&it.action)).count()
}

const CACHE: [usize; 4] = [1, 3, 2048, 64];
const N: usize = 3 * 2048 * 64;

/// How a program writes new rows to a cache: gives the cache as it is then.
type Write = fn(&mut Graph, NodeId, NodeId, NodeId) -> NodeId;

fn index_copy(g: &mut Graph, cache: NodeId, at: NodeId, new: NodeId) -> NodeId {
    aten(g, "index_copy.default", vec![cache.into(), Arg::Int(2), at.into(), new.into()])
}

fn index_copy_(g: &mut Graph, cache: NodeId, at: NodeId, new: NodeId) -> NodeId {
    aten(g, "index_copy_.default", vec![cache.into(), Arg::Int(2), at.into(), new.into()])
}

fn index_put(g: &mut Graph, cache: NodeId, at: NodeId, new: NodeId) -> NodeId {
    let indices = Arg::List(vec![Arg::None, Arg::None, at.into()]);
    aten(g, "index_put.default", vec![cache.into(), indices, new.into()])
}

fn index_put_(g: &mut Graph, cache: NodeId, at: NodeId, new: NodeId) -> NodeId {
    let indices = Arg::List(vec![Arg::None, Arg::None, at.into()]);
    aten(g, "index_put_.default", vec![cache.into(), indices, new.into()])
}

fn scatter(g: &mut Graph, cache: NodeId, at: NodeId, new: NodeId) -> NodeId {
    let index = aten(g, "view.default", vec![at.into(), ints(&[1, 1, -1, 1])]);
    let index = aten(g, "expand.default", vec![index.into(), ints(&[1, 3, -1, 64])]);
    aten(g, "scatter.src", vec![cache.into(), Arg::Int(2), index.into(), new.into()])
}

/// `cache[:, :, 5] = new[:, :, 0]`, as functionalisation spells it.
fn select_scatter(g: &mut Graph, cache: NodeId, _: NodeId, new: NodeId) -> NodeId {
    let part = |g: &mut Graph, x: NodeId, dim: i64| {
        aten(g, "slice.Tensor", vec![x.into(), Arg::Int(dim), Arg::Int(0), Arg::Int(i64::MAX)])
    };
    let new = aten(g, "select.int", vec![new.into(), Arg::Int(2), Arg::Int(0)]);
    let first = part(g, cache, 0);
    let second = part(g, first, 1);
    let old = aten(g, "select.int", vec![second.into(), Arg::Int(2), Arg::Int(5)]);
    let row = aten(g, "copy.default", vec![old.into(), new.into()]);
    let made = aten(g, "select_scatter.default", vec![second.into(), row.into(), Arg::Int(2), Arg::Int(5)]);
    let back = |g: &mut Graph, base: NodeId, x: NodeId, dim: i64| {
        let args = vec![base.into(), x.into(), Arg::Int(dim), Arg::Int(0), Arg::Int(i64::MAX)];
        aten(g, "slice_scatter.default", args)
    };
    let made = back(g, first, made, 1);
    back(g, cache, made, 0)
}

/// The same as a program that is not functionalised spells it: `cache[:, :, 5:6] = new`.
fn slice_copy_(g: &mut Graph, cache: NodeId, _: NodeId, new: NodeId) -> NodeId {
    let part = aten(g, "slice.Tensor", vec![cache.into(), Arg::Int(2), Arg::Int(5), Arg::Int(6)]);
    aten(g, "copy_.default", vec![part.into(), new.into()]);
    cache
}

/// `cache[:, :, at:at + 1] = new` where the position is a number that the data decides.
fn item(g: &mut Graph, cache: NodeId, at: NodeId, new: NodeId) -> NodeId {
    let at = aten(g, "item.default", vec![at.into()]);
    let end = g.call_function("operator.add", vec![at.into(), Arg::Int(1)], vec![]);
    let args = vec![cache.into(), new.into(), Arg::Int(2), at.into(), end.into()];
    aten(g, "slice_scatter.default", args)
}

fn ints(it: &[i64]) -> Arg {
    Arg::List(it.iter().map(|it| Arg::Int(*it)).collect())
}

/// A step of decoding: new keys and values go to the caches, and a query attends to them.
fn decoding(g: &mut Graph, x: &[NodeId], write: Write) -> Vec<NodeId> {
    let [query, key, value, at, keys, values] = *x else { panic!("{x:?}") };
    let key = aten(g, "mul.Scalar", vec![key.into(), Arg::Float(0.5)]);
    let all_keys = write(g, keys, at, key);
    let all_values = write(g, values, at, value);
    let attended =
        aten(g, "scaled_dot_product_attention.default", vec![query.into(), all_keys.into(), all_values.into()]);
    for (cache, all) in [(keys, all_keys), (values, all_values)] {
        if cache != all {
            aten(g, "copy_.default", vec![cache.into(), all.into()]);
        }
    }
    vec![attended]
}

fn rows(seed: usize) -> Tensor {
    noise(&[1, 3, 1, 64], seed)
}

#[track_caller]
fn check_decoding(write: Write, precision: Precision) -> Plan {
    let given = |call: usize| {
        let mut res: Vec<Tensor> = (0..3).map(|it| rows(call * 3 + it)).collect();
        res.push(positions(&[[5, 2047, 5][call]]));
        res
    };
    let case = Case {
        build: &|g, x| decoding(g, x, write),
        inputs: &given,
        buffers: vec![noise(&CACHE, 7), noise(&CACHE, 8)],
        precision,
    };
    let plan = case.check();
    assert_eq!(n_copies(&plan, N), 0, "{plan}");
    let with_caches = |call: usize| [given(call), vec![noise(&CACHE, call), noise(&CACHE, call + 1)]].concat();
    let case = Case { inputs: &with_caches, buffers: vec![], ..case };
    let plan = case.check();
    assert_eq!(n_copies(&plan, N), 0, "{plan}");
    plan
}

#[test]
fn a_step_of_decoding_copies_nothing_of_a_cache() {
    let writes: [Write; 8] =
        [index_copy, index_copy_, index_put, index_put_, scatter, select_scatter, slice_copy_, item];
    for write in writes {
        check_decoding(write, Precision::Strict);
        check_decoding(write, Precision::Fast);
    }
    snapshot("a_step_of_decoding_copies_nothing_of_a_cache", &check_decoding(index_copy, Precision::Fast));
    snapshot("a_slice_that_is_written_back_is_a_copy", &check_decoding(select_scatter, Precision::Fast));
}

/// A program with a cache of halves and no attention: whatever else uses it.
#[track_caller]
fn check(build: &dyn Fn(&mut Graph, &[NodeId]) -> Vec<NodeId>, at: &[&[i64]; 3], n: usize) -> Plan {
    let inputs = |call: usize| {
        let new = noise(&[2, at[call].len(), 4], call + 3);
        vec![cast(&noise(&[2, 6, 4], call), DType::Float16), cast(&new, DType::Float16), positions(at[call])]
    };
    let case = Case { build, inputs: &inputs, buffers: vec![], precision: Precision::Strict };
    let plan = case.check();
    assert_eq!(n_copies(&plan, 48), n, "{plan}");
    plan
}

fn copied(g: &mut Graph, x: &[NodeId]) -> NodeId {
    aten(g, "index_copy.default", vec![x[0].into(), Arg::Int(1), x[2].into(), x[1].into()])
}

fn back(g: &mut Graph, x: &[NodeId], made: NodeId) {
    aten(g, "copy_.default", vec![x[0].into(), made.into()]);
}

fn sum(g: &mut Graph, x: NodeId) -> NodeId {
    aten(g, "sum.default", vec![x.into()])
}

const TWO: [&[i64]; 3] = [&[1, 4], &[5, 0], &[2, 2]];

#[test]
fn what_was_there_is_kept_where_it_is_read() {
    let after = |g: &mut Graph, x: &[NodeId]| {
        let made = copied(g, x);
        let (old, new) = (sum(g, x[0]), sum(g, made));
        back(g, x, made);
        vec![old, new]
    };
    check(&after, &TWO, 2);
    let before = |g: &mut Graph, x: &[NodeId]| {
        let old = sum(g, x[0]);
        let made = copied(g, x);
        let new = sum(g, made);
        back(g, x, made);
        vec![old, new]
    };
    check(&before, &TWO, 0);
    let written = |g: &mut Graph, x: &[NodeId]| {
        let made = copied(g, x);
        let part = aten(g, "select.int", vec![x[0].into(), Arg::Int(0), Arg::Int(0)]);
        aten(g, "zero_.default", vec![part.into()]);
        back(g, x, made);
        vec![sum(g, made)]
    };
    check(&written, &TWO, 2);
    // It is not written back at all.
    check(&|g, x| vec![copied(g, x)], &TWO, 1);
}

#[test]
fn what_is_given_has_memory_of_its_own() {
    let given = |g: &mut Graph, x: &[NodeId]| {
        let made = copied(g, x);
        back(g, x, made);
        vec![made]
    };
    check(&given, &TWO, 1);
    let changed = |g: &mut Graph, x: &[NodeId]| {
        let made = copied(g, x);
        back(g, x, made);
        aten(g, "zero_.default", vec![made.into()]);
        vec![sum(g, x[0]), sum(g, made)]
    };
    // What is written whole afterwards is not copied before.
    check(&changed, &TWO, 1);
    let cache = |g: &mut Graph, x: &[NodeId]| {
        let made = copied(g, x);
        back(g, x, made);
        vec![x[0]]
    };
    check(&cache, &TWO, 0);
}

#[test]
fn updates_follow_each_other() {
    let chain = |g: &mut Graph, x: &[NodeId]| {
        let mut made = copied(g, x);
        for op in ["index_copy.default", "index_add.default"] {
            made = aten(g, op, vec![made.into(), Arg::Int(1), x[2].into(), x[1].into()]);
        }
        back(g, x, made);
        vec![sum(g, made)]
    };
    check(&chain, &TWO, 0);
    // Memory of the plan is taken over by its last user.
    let own = |g: &mut Graph, x: &[NodeId]| {
        let own = aten(g, "relu.default", vec![x[0].into()]);
        vec![copied(g, &[own, x[1], x[2]])]
    };
    check(&own, &TWO, 1);
}

#[test]
fn layers_of_one_cache_are_written_where_they_are() {
    let build = |g: &mut Graph, x: &[NodeId]| {
        let (mut cache, mut sums) = (x[0], Vec::new());
        for layer in 0..2 {
            let args = |cache: NodeId| vec![cache.into(), Arg::Int(0), Arg::Int(layer)];
            let old = aten(g, "select.int", args(cache));
            let new = aten(g, "select.int", args(x[1]));
            let made = aten(g, "index_copy.default", vec![old.into(), Arg::Int(0), x[2].into(), new.into()]);
            let args = vec![cache.into(), made.into(), Arg::Int(0), Arg::Int(layer)];
            cache = aten(g, "select_scatter.default", args);
            // The layer as it was written, or as a part of the cache.
            let read =
                if layer == 0 { made } else { aten(g, "select.int", vec![cache.into(), Arg::Int(0), Arg::Int(1)]) };
            sums.push(sum(g, read));
        }
        back(g, x, cache);
        sums
    };
    let inputs =
        |call: usize| vec![noise(&[2, 600, 4], call), noise(&[2, 2, 4], call + 1), positions(&[call as i64, 599])];
    let case = Case { build: &build, inputs: &inputs, buffers: vec![], precision: Precision::Strict };
    let plan = case.check();
    assert_eq!(n_copies(&plan, 2400), 0, "{plan}");
}

#[test]
fn what_is_written_may_be_a_part_of_the_tensor() {
    let shifted = |g: &mut Graph, x: &[NodeId]| {
        let part = aten(g, "slice.Tensor", vec![x[0].into(), Arg::Int(1), Arg::Int(1), Arg::Int(3)]);
        let made = aten(g, "index_copy.default", vec![x[0].into(), Arg::Int(1), x[2].into(), part.into()]);
        back(g, x, made);
        vec![]
    };
    check(&shifted, &TWO, 0);
    let sliced = |g: &mut Graph, x: &[NodeId]| {
        let part = aten(g, "slice.Tensor", vec![x[0].into(), Arg::Int(1), Arg::Int(0), Arg::Int(5)]);
        let args = vec![x[0].into(), part.into(), Arg::Int(1), Arg::Int(1), Arg::Int(6)];
        let made = aten(g, "slice_scatter.default", args);
        back(g, x, made);
        vec![]
    };
    check(&sliced, &TWO, 0);
}

#[test]
fn indices_are_checked_before_anything_is_written() {
    let build = |g: &mut Graph, x: &[NodeId]| {
        let made = copied(g, x);
        back(g, x, made);
        vec![]
    };
    check(&build, &[&[0, 6], &[1, -1], &[7, 1]], 0);
    check(&build, &[&[], &[], &[]], 0);
    for accumulates in [false, true] {
        let put = |g: &mut Graph, x: &[NodeId]| {
            let indices = Arg::List(vec![Arg::None, x[2].into()]);
            let args = vec![x[0].into(), indices, x[1].into(), Arg::Bool(accumulates)];
            let made = aten(g, "index_put.default", args);
            back(g, x, made);
            vec![]
        };
        // Negative ones count from the end, and others may come twice.
        check(&put, &[&[-6, -1, 3], &[3, 3, 3], &[0, 0, 5]], 0);
        check(&put, &[&[5, -7], &[0, 6], &[2, -1]], 0);
        check(&put, &[&[], &[], &[]], 0);
    }
}

/// A kernel that leaves masks to the decomposition, which gives a new tensor.
#[test]
fn what_a_mask_selects_is_written_too() {
    let build = |g: &mut Graph, x: &[NodeId]| {
        let mask = aten(g, "gt.Scalar", vec![x[0].into(), Arg::Float(0.1)]);
        let value = aten(g, "select.int", vec![x[1].into(), Arg::Int(0), Arg::Int(0)]);
        let value = aten(g, "sum.default", vec![value.into()]);
        let args = vec![x[0].into(), Arg::List(vec![mask.into()]), value.into()];
        let made = aten(g, "index_put.default", args);
        back(g, x, made);
        // How many there are the data decides.
        let rows = aten(g, "nonzero.default", vec![x[2].into()]);
        let rows = aten(g, "select.int", vec![rows.into(), Arg::Int(1), Arg::Int(0)]);
        let args = vec![made.into(), Arg::Int(1), rows.into(), Arg::Int(3)];
        aten(g, "index_fill_.int_Scalar", args);
        vec![sum(g, x[0]), sum(g, made)]
    };
    // The mask, the copy that is written to on its own, and what has no number of elements.
    check(&build, &[&[1, 4], &[0, 1], &[0, 0]], 3);
}

#[test]
fn a_strided_tensor_is_updated_where_its_elements_are() {
    let turned = |g: &mut Graph, x: &[NodeId]| {
        let part = aten(g, "slice.Tensor", vec![x[0].into(), Arg::Int(2), Arg::Int(0), Arg::Int(4), Arg::Int(2)]);
        let new = aten(g, "slice.Tensor", vec![x[1].into(), Arg::Int(2), Arg::Int(1), Arg::Int(3)]);
        aten(g, "index_copy_.default", vec![part.into(), Arg::Int(1), x[2].into(), new.into()]);
        let indices = Arg::List(vec![Arg::None, x[2].into()]);
        aten(g, "index_put_.default", vec![part.into(), indices, new.into(), Arg::Bool(true)]);
        vec![sum(g, x[0])]
    };
    let plan = check(&turned, &TWO, 0);
    assert_eq!(plan.steps.iter().filter(|it| matches!(it.action, Action::Update { .. })).count(), 2, "{plan}");
}

#[test]
fn a_plan_that_writes_early_is_for_memory_of_its_own() {
    let build = |g: &mut Graph, x: &[NodeId]| {
        let made = copied(g, x);
        // The other input may be the cache itself.
        let other = sum(g, x[3]);
        back(g, x, made);
        vec![other, sum(g, made)]
    };
    let inputs = |call: usize| {
        let at = positions(&[call as i64, 3]);
        vec![noise(&[2, 6, 4], call), noise(&[2, 2, 4], call + 1), at, noise(&[2, 6, 4], call + 2)]
    };
    let case = Case { build: &build, inputs: &inputs, buffers: vec![], precision: Precision::Strict };
    let plan = case.check();
    assert_eq!((n_copies(&plan, 48), plan.alone.len()), (0, 1), "{plan}");
    assert!(matches!(plan.buffer(plan.alone[0]), Buffer::Input(0)));
    let mut values: Vec<_> = inputs(0).into_iter().map(Value::Tensor).collect();
    assert!(fits(&plan, &values));
    // Parts of one storage that do not meet are as good.
    let storage = noise(&[120], 0).storage().clone();
    let part = |offset: usize| {
        Value::Tensor(Tensor::view_of(storage.clone(), DType::Float32, &[2, 6, 4], &[24, 4, 1], offset).unwrap())
    };
    let at = |offset: usize| {
        let traced = inputs(0).into_iter().map(Value::Tensor).collect::<Vec<_>>();
        [vec![part(offset)], traced[1..3].to_vec(), vec![part(0)]].concat()
    };
    let case = |offset: usize| {
        let metas: Vec<_> = at(offset).iter().map(|it| it.map(&mut TensorMeta::of)).collect();
        let traced = plan_of(&case.module(), &metas, registry(), kernels()).unwrap();
        fits(&compile(traced, registry(), kernels(), Precision::Strict), &at(offset))
    };
    assert_eq!([0, 47, 48, 49].map(case), [false, false, true, true]);
    values[3] = values[0].clone();
    assert!(!fits(&plan, &values));
    let mut bound = BoundPlan::new(Arc::new(plan), registry(), kernels()).unwrap();
    let problem = bound.run(executor(), &values, LOOP_STEPS, &mut |_, _| Ok(())).unwrap_err();
    assert_eq!(problem.code(), Code::InputType);
}
