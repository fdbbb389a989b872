//! The graphs, modules and programs of the golden files.

mod program;

use tracefx_core::{Complex64, DType, Device, Layout, MemoryFormat, Storage, Tensor};
use tracefx_export::ExportedProgram;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, InsertPoint, Opcode, Str, TensorKind, TensorMeta, Val};
use tracefx_sym::{Parser, SymBool, SymFloat, SymInt};
use tracefx_wire::{MAX_DEPTH, Options};

/// All that is in a program, but for the names that its graph no longer has.
pub(crate) fn describe(program: &ExportedProgram) -> String {
    let rest = ExportedProgram { module: GraphModule::new(Graph::new()), ..program.clone() };
    format!("{}\n{rest:#?}", program.module.graph)
}

/// What a golden file holds.
pub(crate) enum Content {
    Graph(Graph),
    Module(GraphModule),
    Program(Box<ExportedProgram>),
}

/// A golden file: its name, what it holds and how it is written.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) content: Content,
    pub(crate) options: Options,
}

/// Every golden file.
pub(crate) fn all() -> Vec<Case> {
    let graph = |name, graph, options| Case { name, content: Content::Graph(graph), options };
    let module = |name, module, options| Case { name, content: Content::Module(module), options };
    vec![
        graph("empty", Graph::new(), Options::FILE),
        graph("args", args(), Options::FILE),
        graph("nan", nan(), Options::FILE),
        graph("deep", deep(MAX_DEPTH), Options::FILE),
        graph("names", names(), Options::CALL),
        graph("names_forgotten", names(), Options::FILE),
        graph("meta", meta(), Options::FILE),
        module("module", nested_modules(), Options::FILE),
        module("module_dense", dense_module(), Options::FILE),
        module("module_beside", nested_modules(), Options::CALL),
        Case { name: "program", content: Content::Program(Box::new(program::small())), options: Options::FILE },
        Case { name: "program_beside", content: Content::Program(Box::new(program::small())), options: Options::CALL },
    ]
}

fn call(graph: &mut Graph, target: &str, args: Vec<Arg>) -> tracefx_ir::NodeId {
    graph.call_function(target, args, vec![])
}

/// An argument of every kind, with the values that are easily lost.
pub(crate) fn args() -> Graph {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let with_default = graph.create_node(Opcode::Placeholder, "scale", vec![Arg::Float(1.0)], vec![], None).unwrap();
    graph.set_type(x, Some("torch.Tensor".into())).unwrap();
    let weight = graph.get_attr("layer.weight");
    let ints = [0, 1, -1, 9_007_199_254_740_991, 9_007_199_254_740_992, -9_007_199_254_740_993, i64::MAX, i64::MIN];
    call(&mut graph, "ints", ints.into_iter().map(Arg::Int).collect());
    let floats = [0.0, -0.0, 1.0, 0.1, 5e-324, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    call(&mut graph, "floats", floats.into_iter().map(Arg::Float).collect());
    let complex = [(1.0, -0.0), (f64::NAN, f64::INFINITY)];
    call(&mut graph, "complex", complex.into_iter().map(|(re, im)| Arg::Complex(Complex64 { re, im })).collect());
    call(&mut graph, "flags", vec![Arg::None, Arg::Ellipsis, Arg::Bool(true), Arg::Bool(false)]);
    call(&mut graph, "dtypes", DType::ALL.iter().copied().map(Arg::DType).collect());
    call(&mut graph, "layouts", Layout::ALL.iter().copied().map(Arg::Layout).collect());
    call(&mut graph, "memory_formats", MemoryFormat::ALL.iter().copied().map(Arg::MemoryFormat).collect());
    let devices = ["cpu", "cuda:1", "meta", "cuda:0"].map(|it| Arg::Device(it.parse::<Device>().unwrap()));
    call(&mut graph, "devices", devices.to_vec());
    let texts = ["", "x", "\0\n\"'\\", "größe", "重み", "😀", "\u{2028}", "__proto__"];
    call(&mut graph, "texts", texts.into_iter().map(Arg::str).collect());
    call(
        &mut graph,
        "containers",
        vec![
            Arg::List(vec![]),
            Arg::Tuple(vec![]),
            Arg::Dict(vec![]),
            Arg::List(vec![Arg::Node(x), Arg::Tuple(vec![Arg::Node(weight)])]),
            Arg::Dict(vec![
                ("__proto__".into(), Arg::Int(1)),
                ("constructor".into(), Arg::Node(with_default)),
                ("10".into(), Arg::Int(2)),
                ("9".into(), Arg::None),
                ("".into(), Arg::Op("torch.ops.aten.add.Tensor".into())),
            ]),
            Arg::Slice(Box::new([Arg::None, Arg::Node(x), Arg::Int(-1)])),
        ],
    );
    let kwargs: Vec<(Str, Arg)> = [("toString", Arg::None), ("__proto__", Arg::Node(x)), ("größe", Arg::Int(1))]
        .map(|(key, value)| (key.into(), value))
        .to_vec();
    graph.call_function("torch.ops.aten.add.Tensor", vec![Arg::Node(x), Arg::Node(x)], kwargs);
    graph.create_node(Opcode::CallMethod, "relu_", vec![Arg::Node(x)], vec![], None).unwrap();
    graph.create_node(Opcode::CallModule, "layer", vec![Arg::Node(x)], vec![], None).unwrap();
    let unicode = graph.create_named_node(Opcode::CallFunction, "f", vec![], vec![], "größe.😀").unwrap();
    graph.create_named_node(Opcode::CallFunction, "f", vec![Arg::Node(unicode)], vec![], "__proto__").unwrap();
    let output = graph.output(Arg::Tuple(vec![Arg::Node(unicode), Arg::None]));
    graph.set_type(output, Some("tuple[Tensor, None]".into())).unwrap();
    graph
}

/// Floats whose bits say more than `nan`.
pub(crate) fn nan() -> Graph {
    let mut graph = Graph::new();
    let bits = [0x7ff8_0000_0000_0000, 0xfff8_0000_0000_0000, 0x7ff8_0000_0000_beef, 0x7ff0_0000_0000_0001, u64::MAX];
    let mut args: Vec<Arg> = bits.into_iter().map(|it| Arg::Float(f64::from_bits(it))).collect();
    args.push(Arg::Complex(Complex64 { re: f64::from_bits(bits[2]), im: 0.5 }));
    call(&mut graph, "floats", args);
    graph
}

/// An argument that is nested to this depth.
pub(crate) fn deep(levels: usize) -> Graph {
    let mut graph = Graph::new();
    let arg = (1..levels).fold(Arg::Int(1), |inner, level| match level % 3 {
        0 => Arg::List(vec![inner]),
        1 => Arg::Tuple(vec![inner]),
        _ => Arg::Dict(vec![("k".into(), inner)]),
    });
    call(&mut graph, "f", vec![arg]);
    graph
}

/// A graph that remembers the names of nodes that were erased, and names that were asked for.
pub(crate) fn names() -> Graph {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    for name in ["add", "add", "add_7", "add", "Ünïcode", "z", "a"] {
        graph.create_node(Opcode::CallFunction, "f", vec![Arg::Node(x)], vec![], Some(name)).unwrap();
    }
    graph.create_named_node(Opcode::CallFunction, "f", vec![], vec![], "\u{ff5e}").unwrap();
    graph.create_named_node(Opcode::CallFunction, "f", vec![], vec![], "😀").unwrap();
    for name in ["add_1", "z", "a", "\u{ff5e}", "😀"] {
        let node = graph.find(name).unwrap();
        graph.erase_node(node).unwrap();
    }
    // Nodes are written in their order, not in the order in which they were made.
    graph.set_insert_point(InsertPoint::After(x)).unwrap();
    call(&mut graph, "torch.ops.aten.add.Tensor", vec![Arg::Node(x)]);
    graph
}

/// Abstract values of every kind, and notes.
pub(crate) fn meta() -> Graph {
    let mut graph = Graph::new();
    let mut parser = Parser::default();
    let s0 = parser.parse_int("Symbol('s0', positive=True, integer=True)").unwrap();
    let half = parser.parse_float("Rational(1, 2)").unwrap();
    let x = graph.placeholder("x");
    let contiguous = TensorMeta::contiguous(DType::Float32, vec![s0.clone(), SymInt::from(3), &s0 * 2 + 1]);
    let strided = TensorMeta {
        dtype: DType::BFloat16,
        sizes: vec![s0.clone(), SymInt::from(i64::MAX)],
        strides: vec![SymInt::from(-1), s0.clone()],
        storage_offset: s0.floor_div(&2.into()),
        device: "cuda:1".parse().unwrap(),
        layout: Layout::SparseCsr,
        requires_grad: true,
    };
    graph.meta_mut(x).val = Some(Val::Tensor(contiguous));
    graph.meta_mut(x).entries.insert("stack_trace".into(), "File \"m.py\", line 3, in forward\n".into());
    graph.meta_mut(x).entries.insert("custom".into(), "".into());
    let plain = call(&mut graph, "f", vec![Arg::Node(x)]);
    let noted = call(&mut graph, "f", vec![Arg::Node(plain)]);
    let items = vec![
        Val::None,
        Val::Tensor(strided),
        Val::Int(SymInt::from(7)),
        Val::Int(&s0 + 1),
        Val::Float(SymFloat::from(-0.0)),
        Val::Float(half),
        Val::Bool(SymBool::Const(true)),
        Val::Bool(SymBool::gt(&s0, &4.into())),
        Val::Seq { items: vec![], is_tuple: true },
    ];
    graph.meta_mut(noted).val = Some(Val::Seq { items, is_tuple: false });
    let entries = [("custom", ""), ("__proto__", "größe"), ("stack_trace", "File \"m.py\", line 3, in forward\n")];
    graph.meta_mut(noted).entries.extend(entries.map(|(key, text)| (Str::from(key), Str::from(text))));
    graph.output(Arg::Node(noted));
    graph
}

/// Modules in modules, with tensors that share storages.
pub(crate) fn nested_modules() -> GraphModule {
    let tensor = |tensor: Tensor, kind| Attribute::Tensor { tensor, kind };
    let weight = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let transposed = weight.permuted(&[1, 0]);
    let row = weight.as_strided(&[3], &[1], 3).unwrap();
    let broadcast = weight.as_strided(&[4, 2], &[0, 1], 1).unwrap();
    let empty = Tensor::from_slice::<i64>(&[], &[0, 5]).unwrap();
    let scalar = Tensor::from_slice(&[i64::MIN], &[]).unwrap();
    // A storage that is longer than what looks at it, and of no whole number of words.
    let odd = Storage::from_bytes(&(0..=70).collect::<Vec<u8>>()).unwrap();
    let odd = Tensor::view_of(odd, DType::UInt8, &[5], &[2], 3).unwrap();

    let leaf = |class_name: &str, target: &str| {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let y = call(&mut graph, target, vec![Arg::Node(x)]);
        graph.output(Arg::Tuple(vec![Arg::Node(y)]));
        GraphModule { class_name: class_name.into(), ..GraphModule::new(graph) }
    };
    let mut inner = leaf("Inner", "torch.ops.aten.relu.default");
    inner.attributes.insert("row".into(), tensor(row, TensorKind::Buffer));
    inner.attributes.insert("body".into(), Attribute::Module(Box::new(leaf("Body", "torch.neg"))));
    inner.attributes.insert("empty".into(), tensor(empty, TensorKind::Constant));

    let mut root = leaf("Root", "torch.ops.aten.gelu.default");
    root.meta.insert("export_root".into(), "größe".into());
    root.attributes.insert("weight".into(), tensor(weight, TensorKind::Parameter));
    root.attributes.insert("first".into(), Attribute::Module(Box::new(inner)));
    root.attributes.insert("tied.weight".into(), tensor(transposed, TensorKind::Parameter));
    root.attributes.insert("__proto__".into(), tensor(scalar, TensorKind::Constant));
    root.attributes.insert("second".into(), Attribute::Module(Box::new(leaf("Second", "torch.sin"))));
    root.attributes.insert("broadcast".into(), tensor(broadcast, TensorKind::Buffer));
    root.attributes.insert("odd".into(), tensor(odd, TensorKind::Buffer));
    let graph = &mut root.graph;
    let output = graph.output_node().unwrap();
    graph.set_insert_point(InsertPoint::Before(output)).unwrap();
    let weight = graph.get_attr("weight");
    graph.create_node(Opcode::CallModule, "first", vec![Arg::Node(weight)], vec![], None).unwrap();
    graph.set_insert_point(InsertPoint::End).unwrap();
    root
}

/// A module whose tensors are what TypeScript has: row-major, each with a storage of its own or the same tensor twice.
pub(crate) fn dense_module() -> GraphModule {
    let mut graph = Graph::new();
    let weight = graph.get_attr("weight");
    graph.output(Arg::Node(weight));
    let mut module = GraphModule { class_name: "Dense".into(), ..GraphModule::new(graph) };
    let weight = Tensor::from_slice(&[1.0f32, f32::from_bits(0x7fc0_beef), -0.0], &[1, 3]).unwrap();
    let tensors = [
        ("weight", weight.clone(), TensorKind::Parameter),
        ("tied", weight, TensorKind::Parameter),
        ("empty", Tensor::from_slice::<f64>(&[], &[2, 0]).unwrap(), TensorKind::Buffer),
        ("steps", Tensor::from_slice(&[i64::MAX], &[]).unwrap(), TensorKind::Constant),
    ];
    for (name, tensor, kind) in tensors {
        module.attributes.insert(name.into(), Attribute::Tensor { tensor, kind });
    }
    module
}
