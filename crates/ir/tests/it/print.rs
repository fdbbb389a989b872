use crate::corpus::{cases, text};
use tracefx_core::{Complex64, DType, Device, Layout, MemoryFormat};
use tracefx_ir::{Arg, Graph};
use tracefx_testing::build;

#[test]
fn graphs_print_as_pytorch_prints_them() {
    let mut left_out = Vec::new();
    for case in ["codegen", "symbolic_trace"].iter().flat_map(|it| cases(it)) {
        let Some(wanted) = case["graph_str"].as_str() else { continue };
        let encoded = if case["after"].is_object() { &case["after"] } else { &case["before"] };
        // Dicts have strings for keys here.
        if encoded.to_string().contains("{\"$d\":[[42,") {
            left_out.push(text(&case, "name").to_string());
            continue;
        }
        assert_eq!(build(encoded).to_string(), wanted, "{}", case["name"]);
    }
    assert_eq!(left_out, ["f_intkey"]);
}

#[test]
fn values_print_as_pythons_repr() {
    let mut graph = Graph::new();
    let x = Arg::Node(graph.placeholder("x"));
    let device = |kind: &'static str, index| Arg::Device(Device { kind: kind.into(), index });
    let values = vec![
        (Arg::Tuple(vec![x.clone()]), "(x,)"),
        (Arg::Tuple(vec![]), "()"),
        (Arg::List(vec![x.clone(), Arg::str("it's")]), "[x, \"it's\"]"),
        (Arg::Dict(vec![("a b".into(), Arg::Float(-0.0))]), "{'a b': -0.0}"),
        (Arg::Slice(Box::new([x, Arg::None, Arg::Int(-1)])), "slice(x, None, -1)"),
        (Arg::Ellipsis, "Ellipsis"),
        (Arg::Complex(Complex64 { re: 0.0, im: -2.0 }), "-2j"),
        (Arg::Complex(Complex64 { re: -0.0, im: 1.5 }), "(-0+1.5j)"),
        (Arg::DType(DType::Float32), "torch.float32"),
        (device("cuda", Some(1)), "device(type='cuda', index=1)"),
        (device("cpu", None), "device(type='cpu')"),
        (Arg::Layout(Layout::Strided), "torch.strided"),
        (Arg::MemoryFormat(MemoryFormat::ChannelsLast), "torch.channels_last"),
        (Arg::Op("torch.ops.aten.add.Tensor".into()), "<OpOverload(op='aten.add', overload='Tensor')>"),
        (Arg::Int(i64::MAX), "9223372036854775807"),
        (Arg::str("say \"hi\"\n\u{7}\u{2028}é\u{200b}"), "'say \"hi\"\\n\\x07\\u2028é\\u200b'"),
        (Arg::str("e\u{301} \u{10ffff}\u{a0}"), "'e\u{301} \\U0010ffff\\xa0'"),
    ];
    let (args, texts): (Vec<Arg>, Vec<&str>) = values.into_iter().unzip();
    graph.output(Arg::List(args));
    let printed = graph.to_string();
    assert_eq!(printed.lines().last().expect("an output"), format!("    return [{}]", texts.join(", ")));
}

#[test]
fn the_table_has_the_columns_of_print_tabular() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let alpha = vec![("alpha".into(), Arg::Int(2))];
    let add = graph.call_function("torch.ops.aten.add.Tensor", vec![Arg::Node(x), Arg::Int(1)], alpha);
    graph.output(Arg::Node(add));
    let rows: Vec<String> = graph.tabular().iter().map(|it| it.join(" | ")).collect();
    assert_eq!(
        rows,
        [
            "placeholder | x | x | () | {}",
            "call_function | add_tensor | aten.add.Tensor | (x, 1) | {'alpha': 2}",
            "output | output | output | (add_tensor,) | {}",
        ]
    );
}
