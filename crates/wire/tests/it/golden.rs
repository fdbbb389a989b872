//! The golden files, which TypeScript reads and writes as well. `TRACEFX_UPDATE=1 cargo test -p tracefx-wire` writes
//! them again.

use crate::cases::{self, Case, Content};
use std::fmt::Write;
use std::path::PathBuf;
use tracefx_ir::{Attribute, Graph, GraphModule};
use tracefx_wire::{
    Limits, Outline, decode_graph, decode_module, decode_program, encode_graph, encode_module, encode_program,
    program_storages, storages,
};

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../tests/golden/wire", name].iter().collect()
}

fn encoded(case: &Case) -> Vec<u8> {
    match &case.content {
        Content::Graph(graph) => encode_graph(graph, &case.options),
        Content::Module(module) => encode_module(module, &case.options),
        Content::Program(program) => encode_program(program, &case.options),
    }
    .unwrap()
}

/// What a file holds, to be read: the sections, and the graphs as PyTorch prints them.
fn listing(file: &[u8], modules: &[(String, Option<&GraphModule>, &Graph)]) -> String {
    let outline = Outline::read(file, &Limits::default()).unwrap();
    let checksum = if outline.has_checksum { ", checksum" } else { "" };
    let mut out = format!("version {}.{}{checksum}\n", outline.version.0, outline.version.1);
    for section in &outline.sections {
        writeln!(out, "{} at {}: {} bytes", section.tag().unwrap(), section.offset, section.len).unwrap();
    }
    for (path, module, graph) in modules {
        if let Some(module) = module {
            writeln!(out, "\n{} `{path}`", module.class_name).unwrap();
            for (name, attribute) in &module.attributes {
                match attribute {
                    Attribute::Tensor { tensor, kind } => {
                        let (sizes, strides) = (tensor.sizes(), tensor.strides());
                        let view = format!("{sizes:?} strides {strides:?} offset {}", tensor.offset());
                        writeln!(out, "  {name}: {kind:?} {} {view}", tensor.dtype().name()).unwrap();
                    }
                    Attribute::Fake { .. } => panic!("a file has its tensors"),
                    Attribute::Module(_) => writeln!(out, "  {name}: Module").unwrap(),
                }
            }
        }
        writeln!(out, "\n{graph}").unwrap();
    }
    out
}

fn modules_of(module: &GraphModule) -> Vec<(String, Option<&GraphModule>, &Graph)> {
    module.modules().into_iter().map(|(path, it)| (path, Some(it), &it.graph)).collect()
}

#[test]
fn golden_files_are_what_is_written() {
    for case in cases::all() {
        let file = encoded(&case);
        let text = match &case.content {
            Content::Graph(graph) => listing(&file, &[(String::new(), None, graph)]),
            Content::Module(module) => listing(&file, &modules_of(module)),
            Content::Program(program) => listing(&file, &modules_of(&program.module)),
        };
        let (bytes_path, text_path) = (path(&format!("{}.fxg", case.name)), path(&format!("{}.txt", case.name)));
        if std::env::var_os("TRACEFX_UPDATE").is_some() {
            std::fs::write(&bytes_path, &file).unwrap();
            std::fs::write(&text_path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(text_path).unwrap(), text, "{}", case.name);
        assert!(std::fs::read(bytes_path).unwrap() == file, "{}: the bytes differ", case.name);
    }
}

#[test]
fn golden_files_are_written_as_they_were_read() {
    for case in cases::all() {
        let file = std::fs::read(path(&format!("{}.fxg", case.name))).unwrap();
        let limits = Limits::default();
        let (again, printed) = match &case.content {
            Content::Graph(graph) => {
                let read = decode_graph(&file, &limits).unwrap();
                (encode_graph(&read, &case.options).unwrap(), (read.to_string(), graph.to_string()))
            }
            Content::Module(module) => {
                let weights = if case.options.weights { vec![] } else { storages(module).unwrap() };
                let read = decode_module(&file, &weights, &limits).unwrap();
                (encode_module(&read, &case.options).unwrap(), (read.graph.to_string(), module.graph.to_string()))
            }
            Content::Program(program) => {
                let weights = if case.options.weights { vec![] } else { program_storages(program).unwrap() };
                let read = decode_program(&file, &weights, &limits).unwrap();
                (encode_program(&read, &case.options).unwrap(), (cases::describe(&read), cases::describe(program)))
            }
        };
        assert_eq!(printed.0, printed.1, "{}", case.name);
        assert!(again == file, "{}: the bytes differ", case.name);
    }
}
