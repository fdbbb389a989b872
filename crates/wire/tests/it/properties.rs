//! What holds for every graph, and for every file that is accepted.

use crate::cases::{self, Content};
use proptest::collection::vec;
use proptest::prelude::*;
use tracefx_core::{Complex64, DType, Device, Layout, MemoryFormat};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode, Str};
use tracefx_wire::format::{CHECKSUM_AT, MINOR, Tag};
use tracefx_wire::{
    Limits, Options, Outline, decode_graph, decode_module, decode_program, encode_graph, encode_module, encode_program,
    program_storages, storages,
};

/// An argument whose nodes are numbers, to be taken modulo the number of nodes that are there.
fn any_arg() -> impl Strategy<Value = (Arg, Vec<usize>)> {
    let leaf = prop_oneof![
        Just(Arg::None),
        Just(Arg::Ellipsis),
        any::<bool>().prop_map(Arg::Bool),
        any::<i64>().prop_map(Arg::Int),
        any::<u64>().prop_map(|bits| Arg::Float(f64::from_bits(bits))),
        (any::<f64>(), any::<f64>()).prop_map(|(re, im)| Arg::Complex(Complex64 { re, im })),
        any::<String>().prop_map(|text| Arg::str(&text)),
        (0..DType::ALL.len()).prop_map(|at| Arg::DType(DType::ALL[at])),
        (0..Layout::ALL.len()).prop_map(|at| Arg::Layout(Layout::ALL[at])),
        (0..MemoryFormat::ALL.len()).prop_map(|at| Arg::MemoryFormat(MemoryFormat::ALL[at])),
        proptest::option::of(0i64..1 << 31).prop_map(|index| Arg::Device(Device { kind: "cuda".into(), index })),
        any::<String>().prop_map(|text| Arg::Op(text.into())),
    ];
    let tree = leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Arg::List),
            vec(inner.clone(), 0..5).prop_map(Arg::Tuple),
            vec((any::<String>(), inner.clone()), 0..4).prop_map(|entries| Arg::Dict(distinct(entries))),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(start, stop, step)| Arg::Slice(Box::new([start, stop, step]))),
        ]
    });
    (tree, vec(any::<usize>(), 0..3))
}

fn distinct(entries: Vec<(String, Arg)>) -> Vec<(Str, Arg)> {
    let mut res: Vec<(Str, Arg)> = Vec::new();
    for (key, value) in entries {
        if res.iter().all(|(it, _)| **it != *key) {
            res.push((key.into(), value));
        }
    }
    res
}

#[derive(Clone, Debug)]
struct Step {
    op: usize,
    target: String,
    name: Option<String>,
    args: Vec<(Arg, Vec<usize>)>,
    kwargs: Vec<(String, (Arg, Vec<usize>))>,
    note: Option<(String, String)>,
    /// Where the node goes, and whether one that nothing uses is erased.
    place: Option<usize>,
    erases: bool,
}

prop_compose! {
    fn any_step()(
        op in 0..6usize,
        target in any::<String>(),
        name in proptest::option::of("[a-z_]{0,4}[0-9]{0,2}|.{1,3}"),
        args in vec(any_arg(), 0..4),
        kwargs in vec(("[a-z_]{1,3}|__proto__", any_arg()), 0..3),
        note in proptest::option::of(("[a-z]{1,2}", any::<String>())),
        place in proptest::option::of(any::<usize>()),
        erases in any::<bool>(),
    ) -> Step {
        Step { op, target, name, args, kwargs, note, place, erases }
    }
}

/// A graph with a history: nodes are made in any order and erased again.
fn build(steps: Vec<Step>) -> Graph {
    let mut graph = Graph::new();
    for step in steps {
        // A node may use those before its place alone.
        let nodes: Vec<NodeId> = graph.nodes().collect();
        let before = step.place.map_or(nodes.len(), |place| if nodes.is_empty() { 0 } else { place % nodes.len() });
        let point = match before < nodes.len() {
            true => tracefx_ir::InsertPoint::Before(nodes[before]),
            false => tracefx_ir::InsertPoint::End,
        };
        graph.set_insert_point(point).unwrap();
        let bind = |(arg, uses): (Arg, Vec<usize>)| match before {
            0 => arg,
            _ => Arg::List(uses.iter().map(|at| Arg::Node(nodes[at % before])).chain(std::iter::once(arg)).collect()),
        };
        let args = step.args.into_iter().map(bind).collect();
        let kwargs = step.kwargs.into_iter().map(|(key, value)| (key, bind(value))).collect();
        let op = Opcode::ALL[step.op];
        let node = graph.create_node(op, &step.target, args, distinct(kwargs), step.name.as_deref()).unwrap();
        if let Some((key, text)) = step.note {
            graph.meta_mut(node).entries.insert(key.into(), text.into());
        }
        let unused = graph.nodes().find(|&it| step.erases && graph.users(it).is_empty());
        if let Some(unused) = unused {
            graph.erase_node(unused).unwrap();
        }
    }
    graph
}

proptest! {
    #[test]
    fn a_graph_is_read_as_it_was(steps in vec(any_step(), 0..12)) {
        let graph = build(steps);
        for options in [Options::FILE, Options::CALL] {
            let file = encode_graph(&graph, &options).unwrap();
            let read = decode_graph(&file, &Limits::default()).unwrap();
            prop_assert_eq!(read.to_string(), graph.to_string());
            prop_assert_eq!(encode_graph(&read, &options).unwrap(), file);
        }
    }

    #[test]
    fn bytes_do_not_depend_on_the_history_of_edits(steps in vec(any_step(), 0..12)) {
        let graph = build(steps);
        let file = encode_graph(&graph, &Options::FILE).unwrap();
        prop_assert_eq!(encode_graph(&graph.compacted(), &Options::FILE).unwrap(), file);
    }

    #[test]
    fn names_go_on_as_they_would_have(steps in vec(any_step(), 0..12), wanted in vec("[a-z_]{0,3}[0-9]{0,2}", 1..20)) {
        let mut graph = build(steps);
        let file = encode_graph(&graph, &Options::CALL).unwrap();
        let mut read = decode_graph(&file, &Limits::default()).unwrap();
        for name in wanted {
            let made = [&mut graph, &mut read].map(|it| {
                it.set_insert_point(tracefx_ir::InsertPoint::End).unwrap();
                let node = it.create_node(Opcode::CallFunction, "f", vec![], vec![], Some(&name)).unwrap();
                it.node(node).name().to_string()
            });
            prop_assert_eq!(&made[0], &made[1]);
        }
    }
}

/// A golden file without its checksum, so that changes of it are looked at.
fn unchecked(case: &cases::Case) -> Vec<u8> {
    let options = Options { checksum: false, ..case.options };
    match &case.content {
        Content::Graph(graph) => encode_graph(graph, &options),
        Content::Module(module) => encode_module(module, &options),
        Content::Program(program) => encode_program(program, &options),
    }
    .unwrap()
}

/// Reads a file that may be damaged; what is accepted must be written as it was. Returns whether it was accepted.
fn accepts(case: &cases::Case, file: &[u8]) -> bool {
    let limits = Limits::default();
    let options = Options { checksum: false, ..case.options };
    let beside = |all| if case.options.weights { vec![] } else { all };
    let again = match &case.content {
        Content::Graph(_) => decode_graph(file, &limits).map(|it| encode_graph(&it, &options)),
        Content::Module(module) => {
            let weights = beside(storages(module).unwrap());
            decode_module(file, &weights, &limits).map(|it| encode_module(&it, &options))
        }
        Content::Program(program) => {
            let weights = beside(program_storages(program).unwrap());
            decode_program(file, &weights, &limits).map(|it| encode_program(&it, &options))
        }
    };
    let Ok(again) = again else { return false };
    let outline = Outline::read(file, &limits).unwrap();
    // A section that became unknown is skipped, and a newer minor version is not what is written.
    let is_comparable = outline.version.1 == MINOR && outline.sections.iter().all(|it| it.tag().is_some());
    if is_comparable {
        assert!(again.unwrap() == file, "{}: what was accepted is written in another way", case.name);
    }
    true
}

#[test]
fn a_file_that_was_cut_is_refused() {
    for case in cases::all() {
        let file = unchecked(&case);
        assert!(accepts(&case, &file));
        for len in 0..file.len() {
            assert!(!accepts(&case, &file[..len]), "{} of {len} bytes", case.name);
        }
    }
}

/// Which flips of a bit are accepted, byte by byte; bytes of which none is are left out.
fn accepted_flips(case: &cases::Case) -> String {
    let mut file = unchecked(case);
    let mut line = case.name.to_string();
    for at in 0..file.len() {
        let mut accepted = 0u8;
        for bit in 0..8 {
            file[at] ^= 1 << bit;
            accepted |= u8::from(accepts(case, &file)) << bit;
            file[at] ^= 1 << bit;
        }
        if accepted != 0 {
            line += &format!(" {at}:{accepted:02x}");
        }
    }
    line + "\n"
}

/// TypeScript reads the same table: two readers that disagree about a file are two programs in one file.
#[test]
fn a_flipped_bit_is_refused_or_says_something_else() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/wire/flips.txt");
    let flips: String = cases::all().iter().map(accepted_flips).collect();
    if std::env::var_os("TRACEFX_UPDATE").is_some() {
        std::fs::write(path, &flips).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == flips, "other damaged files are accepted than before");
}

#[test]
fn a_word_of_ones_or_zeros_is_refused_or_says_something_else() {
    for case in cases::all() {
        let file = unchecked(&case);
        for at in (0..file.len() - 3).step_by(4) {
            for value in [0u32, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
                let mut changed = file.clone();
                changed[at..at + 4].copy_from_slice(&value.to_le_bytes());
                accepts(&case, &changed);
            }
        }
    }
}

#[test]
fn the_checksum_sees_every_bit() {
    let mut module = GraphModule::new(cases::args());
    module.class_name = "Checked".into();
    let mut file = encode_module(&module, &Options::FILE).unwrap();
    assert_ne!(&file[CHECKSUM_AT..CHECKSUM_AT + 4], [0; 4]);
    for bit in 0..8 * file.len() {
        file[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_module(&file, &[], &Limits::default()).is_err(), "bit {bit}");
        file[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn sections_that_are_unknown_and_not_critical_are_skipped() {
    let graph = cases::args();
    let file = encode_graph(&graph, &Options { checksum: false, ..Options::FILE }).unwrap();
    // The same file with one more section at the end: table entries move everything by 24 bytes.
    let mut outline = Outline::read(&file, &Limits::default()).unwrap();
    let tables: Vec<&[u8]> = outline.sections.iter().map(|it| &file[it.offset..it.offset + it.len]).collect();
    let mut bytes = file[..32].to_vec();
    bytes[8..12].copy_from_slice(&(outline.sections.len() as u32 + 1).to_le_bytes());
    let mut offset = 32 + 24 * (outline.sections.len() + 1);
    let new = b"more than this version knows";
    outline.sections.push(tracefx_wire::Section {
        code: u32::from_le_bytes(*b"NEWS"),
        flags: 0,
        offset: 0,
        len: new.len(),
    });
    let mut body = vec![0; offset];
    for (at, section) in outline.sections.iter().enumerate() {
        offset = offset.next_multiple_of(8);
        bytes.extend(section.code.to_le_bytes());
        bytes.extend(section.flags.to_le_bytes());
        bytes.extend((offset as u64).to_le_bytes());
        bytes.extend((section.len as u64).to_le_bytes());
        body.resize(offset, 0);
        body.extend_from_slice(tables.get(at).unwrap_or(&&new[..]));
        offset += section.len;
    }
    body[..bytes.len()].copy_from_slice(&bytes);
    let len = body.len() as u64;
    body[16..24].copy_from_slice(&len.to_le_bytes());
    assert_eq!(decode_graph(&body, &Limits::default()).unwrap().to_string(), graph.to_string());
    assert!(Outline::read(&body, &Limits::default()).unwrap().sections.iter().any(|it| it.tag() != Some(Tag::Strs)));
}
