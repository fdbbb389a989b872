//! Checks of sizes, on random modules that compute with sizes and with numbers that the data decides: a run goes through
//! where all that was to be checked holds, with the same results as before, and is refused where something does not.

use super::{lint, run};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use std::collections::BTreeMap;
use tracefx_core::{Code, DType, Result, Tensor};
use tracefx_engine::Library;
use tracefx_exec::Interpreter;
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode, TensorMeta, Val};
use tracefx_ops::Value;
use tracefx_rewrite::{DeferredAsserts, insert_deferred_runtime_asserts};
use tracefx_sym::{Expr, Func, SymInt, Symbol, ValueRange, call};

const ASSERT: &str = "torch.ops.aten._assert_scalar.default";
const RELATIONS: [(&str, Func); 5] = [
    ("operator.ge", Func::Ge),
    ("operator.le", Func::Le),
    ("operator.lt", Func::Lt),
    ("operator.gt", Func::Gt),
    ("operator.eq", Func::Eq),
];

/// One step: which kind of call, on which values, with which number.
type Step = (u8, Index, Index, i64);

/// A relation between two of the numbers of a graph, and how it is joined to the one before it.
type Wanted = (u8, Index, Index, u8);

/// A range whose ends may be missing.
type Range = (Option<i64>, Option<i64>);

#[derive(Clone, Debug)]
struct Case {
    steps: Vec<Step>,
    wanted: Vec<Wanted>,
    ranges: Vec<Range>,
    /// The first size of `x`, and the numbers that the graph reads.
    size: usize,
    data: [i64; 3],
}

/// Cases with their modules, of those in which no check fails for whatever data.
fn cases() -> impl Strategy<Value = (Case, GraphModule)> {
    let number = -1..5i64;
    let step = (any::<u8>(), any::<Index>(), any::<Index>(), number.clone());
    let wanted = (any::<u8>(), any::<Index>(), any::<Index>(), any::<u8>());
    let end = || prop::option::weighted(0.6, -1..5i64);
    let parts = (
        prop::collection::vec(step, 1..16),
        prop::collection::vec(wanted, 0..4),
        prop::collection::vec((end(), end()), 0..4),
        2usize..5,
        [number.clone(), number.clone(), number],
    );
    parts.prop_filter_map("a check never holds", |(steps, wanted, ranges, size, data)| {
        let case = Case { steps, wanted, ranges, size, data };
        case.module().map(|module| (case, module))
    })
}

fn symbol(name: &str) -> SymInt {
    SymInt::from(Symbol::from_name(name))
}

impl Case {
    fn module(&self) -> Option<GraphModule> {
        let mut graph = Graph::new();
        let [x, data] = ["x", "data"].map(|it| graph.placeholder(it));
        let meta = TensorMeta::contiguous(DType::Float32, vec![symbol("s0"), 3.into()]);
        graph.meta_mut(x).val = Some(Val::Tensor(meta));
        graph.meta_mut(data).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Int64, vec![3.into()])));
        let mut maker = Maker { graph, data, tensors: vec![x], ints: Vec::new() };
        self.steps.iter().for_each(|it| maker.step(it));
        let Maker { mut graph, tensors, ints, .. } = maker;
        let last = |of: &[NodeId]| Arg::List(of.iter().rev().take(3).map(|it| Arg::Node(*it)).collect());
        graph.output(Arg::Tuple(vec![last(&ints), last(&tensors)]));
        let mut module = GraphModule::new(graph);
        match run(&mut module, "FakeTensorProp", json!({})) {
            Ok(_) => Some(module),
            Err(problem) if problem.code() == Code::AssertionFailed => None,
            Err(problem) => panic!("{problem}\n{}", module.graph),
        }
    }

    fn known(&self, module: &GraphModule) -> DeferredAsserts {
        let values = module.graph.nodes().filter_map(|it| match &module.graph.node(it).meta.val {
            Some(Val::Int(int)) => Some(int.clone()),
            Some(_) | None => None,
        });
        let values: Vec<SymInt> = values.chain([symbol("s0"), 2.into()]).collect();
        let mut asserts = Vec::new();
        for (kind, a, b, join) in &self.wanted {
            let [a, b] = [a, b].map(|it| it.get(&values).clone().into());
            let mut assert = call(RELATIONS[usize::from(*kind) % 5].1, vec![a, b]).unwrap();
            if join % 4 == 1 {
                assert = call(Func::Not, vec![assert]).unwrap();
            }
            if let (2 | 3, Some(before)) = (join % 4, asserts.pop()) {
                let func = if join % 4 == 2 { Func::And } else { Func::Or };
                assert = call(func, vec![before, assert]).unwrap();
            }
            asserts.push(assert);
        }
        let condition = |it| match it {
            Expr::Bool(it) => it,
            Expr::Int(_) | Expr::Float(_) => panic!("relations are conditions"),
        };
        let asserts = asserts.into_iter().map(condition).collect();
        let ranges = self.ranges.iter().enumerate();
        let ranges = ranges.map(|(at, &(min, max))| (Symbol::from_name(format!("u{at}")), ValueRange { min, max }));
        DeferredAsserts { ranges: ranges.collect(), asserts }
    }

    fn run(&self, module: &GraphModule) -> Result<Value<Tensor>> {
        let data: Vec<f32> = (0..self.size * 3).map(|it| it as f32 % 4.0).collect();
        let inputs = [
            Value::Tensor(Tensor::from_slice(&data, &[self.size, 3]).unwrap()),
            Value::Tensor(Tensor::from_slice(&self.data, &[3]).unwrap()),
        ];
        Interpreter::new(module, Library::default().executor()).run(&inputs)
    }

    /// What the symbols are in this run, of a graph without its checks that gives everything.
    fn bindings(&self, module: &GraphModule) -> BTreeMap<Symbol, i64> {
        let mut open = module.clone();
        let graph = &mut open.graph;
        let nodes: Vec<NodeId> = graph.nodes().filter(|&it| graph.node(it).op() != Opcode::Output).collect();
        let (checks, values): (Vec<NodeId>, Vec<NodeId>) = nodes.into_iter().partition(|&it| is_check(graph, it));
        checks.into_iter().for_each(|it| graph.erase_node(it).unwrap());
        let output = graph.output_node().unwrap();
        graph.set_args(output, vec![Arg::List(values.iter().map(|it| Arg::Node(*it)).collect())]).unwrap();
        let Value::List(results) = self.run(&open).unwrap() else { panic!("the graph gives a list") };
        let mut res = BTreeMap::new();
        let mut bind = |expr: &SymInt, value: i64| {
            res.extend(expr.as_symbol().map(|it| (it.clone(), value)));
        };
        for (id, result) in values.into_iter().zip(results) {
            match (&open.graph.node(id).meta.val, result) {
                (Some(Val::Int(expr)), Value::Int(value)) => bind(expr, value.as_int().unwrap()),
                (Some(Val::Tensor(meta)), Value::Tensor(tensor)) => {
                    meta.sizes.iter().zip(tensor.sizes()).for_each(|(size, &value)| bind(size, value as i64));
                }
                (_, _) => {}
            }
        }
        res
    }
}

fn is_check(graph: &Graph, id: NodeId) -> bool {
    let target = graph.node(id).target();
    &**target == ASSERT || target.contains("sym_constrain_range")
}

struct Maker {
    graph: Graph,
    data: NodeId,
    tensors: Vec<NodeId>,
    ints: Vec<NodeId>,
}

impl Maker {
    fn step(&mut self, (kind, a, b, number): &Step) {
        let tensor = *a.get(&self.tensors);
        let one_of =
            |ints: &[NodeId], at: &Index| if ints.is_empty() { Arg::Int(*number) } else { (*at.get(ints)).into() };
        let (first, second) = (one_of(&self.ints, a), one_of(&self.ints, b));
        let number = Arg::Int(*number);
        let positive = |it: &Arg| Arg::Int(if let Arg::Int(it) = it { it.abs() + 1 } else { 1 });
        match kind % 14 {
            0 => self.tensor("relu.default", vec![tensor.into()]),
            1 => self.tensor("cat.default", vec![Arg::List(vec![tensor.into(), tensor.into()]), Arg::Int(0)]),
            2 => self.tensor("nonzero.default", vec![tensor.into()]),
            3 | 4 => self.int("torch.ops.aten.sym_size.int", vec![tensor.into(), Arg::Int(0)]),
            5 | 6 => {
                let place = a.index(3) as i64;
                let select = vec![self.data.into(), Arg::Int(0), Arg::Int(place)];
                let item = self.graph.call_function("torch.ops.aten.select.int", select, vec![]);
                self.int("torch.ops.aten.item.default", vec![item.into()]);
            }
            7 => self.int("operator.add", vec![first, second]),
            8 => self.int("operator.mul", vec![first, number]),
            9 => self.int("operator.floordiv", vec![first, positive(&number)]),
            10 => self.int(["torch.sym_max", "torch.sym_min"][a.index(2)], vec![first, second]),
            11 => self.int("operator.mod", vec![first, positive(&number)]),
            _ => {
                let relation = RELATIONS[a.index(5)].0;
                let right = if kind.is_multiple_of(2) { number } else { second };
                let condition = self.graph.call_function(relation, vec![first, right], vec![]);
                self.graph.call_function(ASSERT, vec![condition.into(), Arg::str("as the user says")], vec![]);
            }
        }
    }

    fn tensor(&mut self, op: &str, args: Vec<Arg>) {
        self.tensors.push(self.graph.call_function(&format!("torch.ops.aten.{op}"), args, vec![]));
    }

    fn int(&mut self, target: &str, args: Vec<Arg>) {
        self.ints.push(self.graph.call_function(target, args, vec![]));
    }
}

/// The numbers that a run gives, with the sizes of tensors, as text.
fn shown(value: &Value<Tensor>) -> String {
    match value {
        Value::List(items) => items.iter().map(|it| shown(it) + "; ").collect(),
        Value::Tensor(it) if it.dtype() == DType::Int64 => {
            format!("{:?} {:?}", it.sizes(), it.to_vec::<i64>().unwrap())
        }
        Value::Tensor(it) => format!("{:?} {:?}", it.sizes(), it.to_vec::<f32>().unwrap()),
        it => format!("{it:?}"),
    }
}

proptest! {
    #![proptest_config(super::config())]

    #[test]
    fn checks_refuse_what_does_not_hold_and_nothing_else((case, module) in cases()) {
        let known = case.known(&module);
        let mut changed = module.clone();
        let answer = insert_deferred_runtime_asserts(&mut changed, &known).unwrap();
        lint(&changed);
        let context = || format!("{:?} of\n{}made\n{}", known.asserts, module.graph, changed.graph);
        prop_assert!(answer.skipped.is_empty(), "{:?} skipped, {}", answer.skipped, context());

        let bindings = case.bindings(&module);
        let value_of = |it: &Symbol| bindings.get(it).copied().map(tracefx_sym::Value::Int);
        let are_in_range = known.ranges.iter().all(|(it, range)| bindings.get(it).is_none_or(|&it| range.contains(it)));
        let all_hold = are_in_range && known.asserts.iter().all(|it| it.eval(&value_of).unwrap());
        match (case.run(&module), case.run(&changed)) {
            (Ok(before), Ok(after)) => {
                prop_assert!(all_hold, "not refused, {}", context());
                prop_assert_eq!(shown(&after), shown(&before), "{}", context());
            }
            (Ok(_), Err(refusal)) => {
                prop_assert_eq!(refusal.code(), Code::AssertionFailed, "{}, {}", refusal, context());
                prop_assert!(!all_hold, "{refusal}, {}", context());
            }
            (Err(_), after) => prop_assert!(after.is_err(), "not refused, {}", context()),
        }
        let once = changed.graph.to_string();
        let again = insert_deferred_runtime_asserts(&mut changed, &known).unwrap();
        prop_assert_eq!((again.modified, changed.graph.to_string()), (false, once), "a second run, {:?}", known);
    }
}
