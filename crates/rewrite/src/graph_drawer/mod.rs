//! Drawings of graphs: `torch.fx.passes.graph_drawer`.

mod dot;

pub use dot::DotGraph;

use dot::record_text;
use indexmap::IndexMap;
use md5::{Digest, Md5};
use rustc_hash::FxHashSet;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Node, NodeId, Opcode, TensorKind, TensorMeta, Val};

/// What a drawing shows.
#[derive(Clone, Debug)]
pub struct DrawOptions {
    /// Whether `get_attr` nodes are left out.
    pub ignore_getattr: bool,
    /// Whether the parameters and buffers of called modules are left out.
    pub ignore_parameters_and_buffers: bool,
    /// Whether arguments that are nodes are left out of the boxes: arrows show them.
    pub skip_node_names_in_args: bool,
    /// Whether boxes say where in the traced code a node comes from.
    pub parse_stack_trace: bool,
    /// The shape of the boxes, by Graphviz's names.
    pub dot_graph_shape: String,
}

impl Default for DrawOptions {
    fn default() -> Self {
        DrawOptions {
            ignore_getattr: false,
            ignore_parameters_and_buffers: false,
            skip_node_names_in_args: true,
            parse_stack_trace: false,
            dot_graph_shape: "record".into(),
        }
    }
}

/// The colours of functions and methods; the name of a target chooses one.
const TARGET_COLORS: [&str; 16] = [
    "CadetBlue1",
    "Coral",
    "DarkOliveGreen1",
    "DarkSeaGreen1",
    "GhostWhite",
    "Khaki1",
    "LavenderBlush1",
    "LightSkyBlue",
    "MistyRose1",
    "MistyRose2",
    "PaleTurquoise2",
    "PeachPuff1",
    "Salmon",
    "Thistle1",
    "Thistle3",
    "Wheat1",
];

/// How many items of a list a box shows.
const MAX_ITEMS: usize = 8;

/// Draws the graph of a module, and those of the graph modules that it calls, with PyTorch's boxes and colours:
/// `torch.fx.passes.graph_drawer.FxGraphDrawer`. Boxes show what is known of tensors. TypeScript draws the same text.
///
/// ```
/// use tracefx_ir::{Graph, GraphModule};
/// use tracefx_rewrite::{DrawOptions, FxGraphDrawer};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// graph.output(x.into());
/// let drawer = FxGraphDrawer::new(&GraphModule::new(graph), "identity", &DrawOptions::default()).unwrap();
/// assert!(drawer.get_dot_graph(None).unwrap().to_string().starts_with("digraph \"identity\" {"));
/// ```
#[derive(Clone, Debug)]
pub struct FxGraphDrawer {
    name: String,
    graphs: IndexMap<String, DotGraph>,
}

impl FxGraphDrawer {
    /// Draws a module under a name.
    ///
    /// # Errors
    /// `AttributeMissing` where a module that is called is not there.
    pub fn new(module: &GraphModule, name: &str, options: &DrawOptions) -> Result<Self> {
        let mut graphs = IndexMap::from([(name.to_string(), draw(module, name, options)?)]);
        for node in module.graph.nodes().map(|it| module.graph.node(it)).filter(|it| it.op() == Opcode::CallModule) {
            let called = module.submodule(node.target())?;
            let path = format!("{name}_{}", node.target());
            if !called.graph.is_empty() && !graphs.contains_key(&path) {
                graphs.insert(path.clone(), draw(called, &path, options)?);
            }
        }
        Ok(FxGraphDrawer { name: name.into(), graphs })
    }

    /// The drawing of the module, or of a graph module that it calls, by its path.
    ///
    /// # Errors
    /// `AttributeMissing` where the graph calls no such graph module.
    pub fn get_dot_graph(&self, submodule: Option<&str>) -> Result<&DotGraph> {
        let path = submodule.map_or_else(|| self.name.clone(), |it| format!("{}_{it}", self.name));
        self.graphs.get(&path).ok_or_else(|| {
            let what = format!("the graph calls no graph module `{}`", submodule.unwrap_or_default());
            let names: Vec<&str> = self.graphs.keys().map(String::as_str).collect();
            Diagnostic::new(Code::AttributeMissing, what).help(format!("there are drawings of {}", names.join(", ")))
        })
    }

    /// All drawings by name: the module's own, and `name_path` for each graph module that it calls.
    pub fn get_all_dot_graphs(&self) -> &IndexMap<String, DotGraph> {
        &self.graphs
    }
}

fn draw(module: &GraphModule, name: &str, options: &DrawOptions) -> Result<DotGraph> {
    let graph = &module.graph;
    let mut res = DotGraph::new(name);
    let is_drawn = |it: &NodeId| !options.ignore_getattr || graph.node(*it).op() != Opcode::GetAttr;
    for id in graph.nodes().filter(is_drawn) {
        let node = graph.node(id);
        let called = match node.op() {
            Opcode::CallModule => Some(module.submodule(node.target())?),
            _ => None,
        };
        let label = label(graph, id, called, options);
        res.add_node(node.name(), attributes(label, color_of(node), options));
        if let Some(called) = called.filter(|it| !options.ignore_parameters_and_buffers && it.graph.is_empty()) {
            draw_state(&mut res, node.name(), called, options);
        }
    }
    for id in graph.nodes().filter(is_drawn) {
        graph.users(id).iter().for_each(|user| res.add_edge(graph.node(id).name(), graph.node(user).name()));
    }
    Ok(res)
}

fn attributes(label: String, color: &str, options: &DrawOptions) -> Vec<(&'static str, String)> {
    vec![
        ("label", label),
        ("shape", options.dot_graph_shape.clone()),
        ("fillcolor", color.into()),
        ("style", "filled,rounded".into()),
        ("fontcolor", "#000000".into()),
    ]
}

fn color_of(node: &Node) -> &'static str {
    match node.op() {
        Opcode::Placeholder => "AliceBlue",
        Opcode::CallModule => "LemonChiffon1",
        Opcode::GetAttr => "LightGrey",
        Opcode::Output => "PowderBlue",
        // PyTorch takes the first 32 bits of the digest, of which 16 colours need the last digit.
        Opcode::CallFunction | Opcode::CallMethod => {
            TARGET_COLORS[usize::from(Md5::digest(node.target().as_bytes())[3] % 16)]
        }
    }
}

fn label(graph: &Graph, id: NodeId, called: Option<&GraphModule>, options: &DrawOptions) -> String {
    let node = graph.node(id);
    let mut fields = vec![format!("name=%{}", record_text(node.name())), format!("op_code={}\\n", node.op().name())];
    match called {
        None => {
            fields.push(format!("target={}\\n", record_text(node.target())));
            let args = node.args().iter().map(|it| short_arg(graph, it)).collect();
            fields.extend(arguments("args=(", ")", args, options));
            let kwargs = node.kwargs().iter().map(|(key, it)| format!("{key}: {}", short_arg(graph, it))).collect();
            fields.extend(arguments("kwargs={", "}", kwargs, options));
            fields.push(format!("num_users={}\\n", graph.users(id).len()));
        }
        // What a module says of itself is known to Python and TypeScript only.
        Some(called) => fields.extend([format!("{}\\n", record_text(&called.class_name)), "\\n".into()]),
    }
    if let Some(val) = &node.meta.val {
        meta_fields(val, &mut fields);
    }
    let frame = node.meta.get("stack_trace").and_then(|it| it.lines().next()).filter(|_| options.parse_stack_trace);
    fields.extend(frame.map(|it| format!("file={}\\n", record_text(it))));
    format!("{{{}}}", fields.join("|"))
}

fn arguments(head: &str, tail: &str, mut texts: Vec<String>, options: &DrawOptions) -> Option<String> {
    texts.retain(|it| !options.skip_node_names_in_args || !it.contains('%'));
    let shown: Vec<String> = texts.iter().map(|it| record_text(it)).collect();
    let (head, tail) = (record_text(head), record_text(tail));
    match &shown[..] {
        [] => None,
        [one] => Some(format!("{head}{one},{tail}")),
        many => Some(format!("{head}\\l{},\\n{tail}\\l", many.join(",\\n"))),
    }
}

/// An argument, with the first items of long lists.
fn short_arg(graph: &Graph, arg: &Arg) -> String {
    let (items, [open, close]) = match arg {
        Arg::List(items) => (&items[..], ["[", "]"]),
        Arg::Tuple(items) => (&items[..], ["(", ")"]),
        _ => return graph.format_arg(arg),
    };
    if items.len() <= MAX_ITEMS {
        return graph.format_arg(arg);
    }
    let shown: Vec<String> = items[..MAX_ITEMS].iter().map(|it| graph.format_arg(it)).collect();
    format!("{open}{}, ...{close}", shown.join(", "))
}

/// The parameters and then the buffers of a called module, each in a box.
fn draw_state(graph: &mut DotGraph, name: &str, module: &GraphModule, options: &DrawOptions) {
    for (wanted, kind) in [(TensorKind::Parameter, "parameter"), (TensorKind::Buffer, "buffer")] {
        let mut fakes = FxHashSet::default();
        let mut tensors = FxHashSet::default();
        for (path, holder) in module.modules() {
            for (key, attribute) in &holder.attributes {
                let (meta, of, is_new) = match attribute {
                    Attribute::Module(_) => continue,
                    Attribute::Fake { tensor, kind } => (tensor.meta.clone(), kind, fakes.insert(tensor.id)),
                    Attribute::Tensor { tensor, kind } => {
                        let place = (tensor.storage().id(), tensor.offset(), tensor.sizes(), tensor.strides());
                        (TensorMeta::of(tensor), kind, tensors.insert(place))
                    }
                };
                let is_wanted = *of == wanted || (wanted == TensorKind::Buffer && *of == TensorKind::Constant);
                if !is_wanted || !is_new {
                    continue;
                }
                let dot = if path.is_empty() { "" } else { "." };
                let full = format!("{name}.{path}{dot}{key}");
                let sizes: Vec<String> = meta.sizes.iter().map(ToString::to_string).collect();
                let dtype = meta.dtype.name();
                let text = record_text(&full);
                let label = format!("{{{text}|op_code=get_{kind}\\l|torch.{dtype}[{}]\\n}}", sizes.join(", "));
                graph.add_node(&full, attributes(label, "Salmon", options));
                graph.add_edge(&full, name);
            }
        }
    }
}

/// What is known of the tensors of a value.
fn meta_fields(val: &Val, fields: &mut Vec<String>) {
    let mut open = vec![val];
    while let Some(val) = open.pop() {
        match val {
            Val::Tensor(meta) => {
                let tuple = |it: &[tracefx_sym::SymInt]| {
                    let items: Vec<String> = it.iter().map(ToString::to_string).collect();
                    let comma = if items.len() == 1 { "," } else { "" };
                    record_text(&format!("({}{comma})", items.join(", ")))
                };
                let gradients = if meta.requires_grad { "True" } else { "False" };
                fields.extend([
                    format!("dtype=torch.{}\\n", meta.dtype.name()),
                    format!("shape={}\\n", tuple(&meta.sizes)),
                    format!("requires_grad={gradients}\\n"),
                    format!("stride={}\\n", tuple(&meta.strides)),
                ]);
            }
            Val::Seq { items, .. } => open.extend(items.iter().rev()),
            Val::None | Val::Int(_) | Val::Float(_) | Val::Bool(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_core::DType;
    use tracefx_ir::FakeTensor;

    /// A module with a node of each kind: `ts/test/draw/drawer.test.ts` draws the same one.
    fn shared() -> GraphModule {
        let meta = |sizes: &[i64]| TensorMeta::contiguous(DType::Float32, sizes.iter().map(|&it| it.into()).collect());
        let mut inner = Graph::new();
        let y = inner.placeholder("y");
        inner.output(y.into());
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        graph.meta_mut(x).entries.insert("stack_trace".into(), "at forward (model.ts:3:5)\nat main".into());
        let shifted = graph.create_node(Opcode::CallModule, "shift", vec![x.into()], vec![], None).unwrap();
        let part = graph.create_node(Opcode::CallModule, "part", vec![shifted.into()], vec![], None).unwrap();
        let weight = graph.get_attr("shift.weight");
        let limits = vec![("min".into(), Arg::Int(0)), ("max".into(), weight.into())];
        let clamp = graph.create_node(Opcode::CallMethod, "clamp", vec![part.into()], limits, None).unwrap();
        let nine = Arg::List((0..9).map(Arg::Int).collect());
        let args = vec![clamp.into(), Arg::Int(1), Arg::str("a|b"), nine];
        let call = graph.call_function("torch.testing.plus_one", args, vec![]);
        graph.output(Arg::List([call.into()].into_iter().collect()));
        let mut module = GraphModule::new(graph);
        let mut shift = GraphModule::new(Graph::new());
        shift.class_name = "Shift".into();
        let weight = FakeTensor { meta: meta(&[1]), id: 1 };
        shift.set_attribute("weight", Attribute::Fake { tensor: weight, kind: TensorKind::Parameter });
        module.set_attribute("shift", Attribute::Module(Box::new(shift)));
        let mut part = GraphModule::new(inner);
        part.class_name = "Part".into();
        module.set_attribute("part", Attribute::Module(Box::new(part)));
        module
    }

    #[test]
    fn a_drawing_is_the_one_of_typescript() {
        let golden = |name: &str| {
            let path = format!("{}/../../tests/golden/draw/{name}.dot", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_to_string(path).expect("a drawing")
        };
        let options = DrawOptions { parse_stack_trace: true, ..DrawOptions::default() };
        let drawer = FxGraphDrawer::new(&shared(), "shared", &options).unwrap();
        assert_eq!(drawer.get_dot_graph(None).unwrap().to_string(), golden("shared"));
        assert_eq!(drawer.get_dot_graph(Some("part")).unwrap().to_string(), golden("part"));
        assert_eq!(drawer.get_all_dot_graphs().len(), 2);
        assert_eq!(drawer.get_dot_graph(Some("none")).unwrap_err().code(), Code::AttributeMissing);
        let options =
            DrawOptions { ignore_getattr: true, ignore_parameters_and_buffers: true, ..DrawOptions::default() };
        let text = FxGraphDrawer::new(&shared(), "shared", &options).unwrap().get_dot_graph(None).unwrap().to_string();
        assert!(!text.contains("weight\" ["), "{text}");
    }

    #[test]
    fn a_drawing_shows_what_is_known_of_tensors() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let meta = TensorMeta::contiguous(DType::Float64, vec![2.into()]);
        let items = vec![Val::Tensor(meta), Val::None];
        graph.meta_mut(x).val = Some(Val::Seq { items, is_tuple: true });
        let drawer = FxGraphDrawer::new(&GraphModule::new(graph), "g", &DrawOptions::default()).unwrap();
        let text = drawer.get_dot_graph(None).unwrap().to_string();
        let shape = "|dtype=torch.float64\\n|shape=(2,)\\n|requires_grad=False\\n|stride=(1,)\\n}";
        assert!(text.contains(shape), "{text}");
    }
}
