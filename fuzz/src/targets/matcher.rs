//! Any pattern is matched in any graph, explained, replaced and run as a rule, under all options, or refused with a typed
//! error: without a panic, within the budget of steps, and with graphs that keep their rules. What is refused changes nothing.
//!
//! The input is the options, and then a pattern, a replacement and a graph, each a number of inputs, a number of nodes, and
//! for each node what it calls and its arguments.

use tracefx_core::{Code, DType, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, TensorKind, TensorMeta, Val};
use tracefx_ops::registry;
use tracefx_rewrite::{
    ANY_OF, ConstantValue, Constraint, MatcherOptions, OPTIONAL, ReplaceOptions, Replacement, RewriteContext, Rule,
    RuleSet, SubgraphMatcher, SubgraphMatcherWithNameNodeMap, VerifyOptions, replace_pattern_with_filters,
};

/// What nodes call. Only patterns call the last two.
const TARGETS: &[(Opcode, &str)] = &[
    (Opcode::CallFunction, "torch.ops.aten.add.Tensor"),
    (Opcode::CallFunction, "torch.ops.aten.mul.Tensor"),
    (Opcode::CallFunction, "torch.ops.aten.relu.default"),
    (Opcode::CallFunction, "torch.ops.aten.relu_.default"),
    (Opcode::CallFunction, "operator.add"),
    (Opcode::CallFunction, "operator.getitem"),
    (Opcode::CallFunction, "torch.cat"),
    (Opcode::CallMethod, "mul"),
    (Opcode::CallModule, "module"),
    (Opcode::GetAttr, "weight"),
    (Opcode::GetAttr, "buffer"),
    (Opcode::CallFunction, ANY_OF),
    (Opcode::CallFunction, OPTIONAL),
];

pub(crate) fn check(input: &[u8]) {
    let mut bytes = Bytes(input);
    let (flags, more) = (bytes.next(), bytes.next());
    let [pattern, replacement, target] = [(8, 13), (6, 11), (48, 11)].map(|(most, kinds)| bytes.module(most, kinds));
    let options = options(&pattern, flags, more);
    let check = |result: Result<(), tracefx_core::Diagnostic>| {
        if let Err(problem) = result {
            let is_bug = matches!(problem.code(), Code::Internal | Code::OutOfMemory);
            assert!(!is_bug && !problem.message().is_empty(), "{problem}");
        }
    };
    check(SubgraphMatcher::new(&pattern, registry(), options.clone()).and_then(|matcher| {
        let matches = matcher.matches(&target)?;
        for found in &matches {
            let bound = found.nodes_map.values().chain(&found.placeholder_nodes).chain(&found.returning_nodes);
            bound.for_each(|it| it.for_each_node(&mut |node| assert!(target.graph.contains(node))));
        }
        matcher.explain(&target, registry()).map(drop)
    }));
    check(
        SubgraphMatcherWithNameNodeMap::new(&pattern, registry(), options.clone())
            .and_then(|it| it.matches(&target).map(drop)),
    );
    let verify = (more & 1 == 1).then(VerifyOptions::default);
    let options = ReplaceOptions { matching: options, keeps_submodules: more & 2 == 2, verify };
    let cx = RewriteContext::from(Executor::new(registry(), tracefx_cpu::kernels()));
    let mut changed = target.clone();
    let by = Replacement::Module(&replacement);
    let result = replace_pattern_with_filters(&mut changed, &pattern, by, &[], cx, &options);
    let is_same = changed.graph.to_string() == target.graph.to_string();
    assert!(result.is_ok() || is_same, "what is refused changes nothing\n{}\n{}", target.graph, changed.graph);
    well_formed(&changed);
    check(result.map(drop));
    let rule = Rule { name: "rule".into(), pattern, replacement, options };
    let mut changed = target.clone();
    check(RuleSet { rules: vec![rule.clone(), rule] }.run_to_fixpoint(&mut changed, cx, Some(20)).map(drop));
    well_formed(&changed);
}

fn well_formed(module: &GraphModule) {
    let problems = module.graph.lint(Some(module));
    assert!(problems.is_empty(), "{}\n{}", problems[0], module.graph);
}

fn options(pattern: &GraphModule, flags: u8, more: u8) -> MatcherOptions {
    let mut res = MatcherOptions {
        match_output: flags & 1 != 0,
        match_placeholder: flags & 2 != 0,
        remove_overlapping_matches: flags & 4 == 0,
        ignore_literals: flags & 8 != 0,
        commutative: flags & 16 != 0,
        associative: flags & 32 != 0,
        shared_wildcards: flags & 64 != 0,
        node_name_match: if flags & 128 != 0 { "add".to_owned() } else { String::new() },
        max_steps: Some(20_000),
        ..MatcherOptions::default()
    };
    let mut constraint = Constraint::default();
    match (more >> 2) % 4 {
        0 => return res,
        1 => constraint.rank = Some(1),
        2 => constraint.value = Some(ConstantValue::Int(1)),
        _ => constraint.dtype = Some(vec!["float32".to_owned()]),
    }
    let node = pattern.graph.nodes().nth(usize::from(more >> 4));
    res.constraints.extend(node.map(|it| (pattern.graph.node(it).name().to_string(), constraint)));
    res
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    fn module(&mut self, most: usize, n_kinds: usize) -> GraphModule {
        let mut graph = Graph::new();
        let mut nodes: Vec<NodeId> = Vec::new();
        for at in 0..self.next() % 4 {
            let input = graph.placeholder(&format!("x{at}"));
            let meta = TensorMeta::contiguous(DType::Float32, vec![3.into(); usize::from(at)]);
            graph.meta_mut(input).val = Some(Val::Tensor(meta));
            nodes.push(input);
        }
        for _ in 0..usize::from(self.next()) % (most + 1) {
            let (op, target) = TARGETS[usize::from(self.next()) % n_kinds];
            let (n_args, with_kwarg) = (self.next() % 4, self.next() % 8 == 1);
            let mut args: Vec<Arg> = (0..n_args).map(|_| self.arg(&nodes, 0)).collect();
            let mut kwargs = if with_kwarg { vec![("alpha".into(), self.arg(&nodes, 0))] } else { vec![] };
            if op == Opcode::GetAttr {
                args.clear();
                kwargs.clear();
            }
            nodes
                .push(graph.create_node(op, target, args, kwargs, None).expect("the arguments are nodes of the graph"));
        }
        let result = self.arg(&nodes, 0);
        graph.output(result);
        let mut res = GraphModule::new(graph);
        let tensor = Tensor::from_slice(&[1.0f32], &[1]).expect("one element");
        for (name, kind) in [("weight", TensorKind::Parameter), ("buffer", TensorKind::Buffer)] {
            res.attributes.insert(name.into(), Attribute::Tensor { tensor: tensor.clone(), kind });
        }
        res.attributes.insert("module".into(), Attribute::Module(Box::new(GraphModule::new(Graph::new()))));
        res
    }

    fn arg(&mut self, nodes: &[NodeId], depth: u8) -> Arg {
        let kind = self.next();
        let node = |at: u8| nodes.get(usize::from(at) % nodes.len().max(1)).map_or(Arg::None, |&it| Arg::Node(it));
        let mut items = |n: u8| (0..n % 4).map(|_| self.arg(nodes, depth + 1)).collect::<Vec<Arg>>();
        match kind % 16 {
            8 => Arg::Int(i64::from(kind / 16) - 2),
            9 => Arg::Float(f64::from(kind / 16)),
            10 => Arg::Bool(kind < 128),
            11 if depth < 3 => Arg::List(items(kind / 16)),
            12 if depth < 3 => Arg::Tuple(items(kind / 16)),
            13 if depth < 3 => {
                Arg::Dict(items(kind / 16).into_iter().zip(["a", "b", "c"]).map(|(it, key)| (key.into(), it)).collect())
            }
            14 if depth < 3 => Arg::Slice(Box::new([node(kind / 16), Arg::None, Arg::Int(1)])),
            15 => Arg::None,
            // Near nodes more often than those far away.
            near => {
                let last = nodes.len().saturating_sub(1 + usize::from(near) % nodes.len().max(1));
                nodes.get(last).map_or(Arg::None, |&it| Arg::Node(it))
            }
        }
    }
}
