//! Tensors that the graph reads from its module as inputs: `torch._export.passes.lift_constants_pass`.

use crate::unlift::use_equal;
use crate::{Argument, Constant, ExportedProgram, InputKind, InputSpec};
use std::collections::{HashMap, HashSet};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Attribute, GraphModule, InsertPoint, NodeId, Opcode, Str, TensorMeta, Val};

impl ExportedProgram {
    /// The program with an input of the graph for each tensor that the graph reads from its module, as passes leave them that
    /// fold constants: programs hold their tensors beside the graph. The inputs stand in front of the user's, in the order of
    /// the first reads; what nothing uses is dropped. [`ExportedProgram::module`] does the opposite.
    ///
    /// ```
    /// use tracefx_core::Tensor;
    /// use tracefx_export::{Constant, ExportedProgram, GraphSignature};
    /// use tracefx_ir::{Arg, Attribute, Graph, GraphModule, TensorKind};
    ///
    /// let mut graph = Graph::new();
    /// let table = graph.get_attr("folded.table");
    /// let relu = graph.call_function("torch.ops.aten.relu.default", vec![Arg::Node(table)], vec![]);
    /// graph.output(Arg::Tuple(vec![Arg::Node(relu)]));
    /// let mut module = GraphModule::new(graph);
    /// let tensor = Tensor::from_slice(&[1.0f32], &[1])?;
    /// module.set_attribute("folded.table", Attribute::Tensor { tensor, kind: TensorKind::Constant });
    /// let program = ExportedProgram::new(module, GraphSignature::default()).with_lifted_constants()?;
    /// assert_eq!(program.signature.input_specs[0].arg.name().to_string(), "c_folded_table");
    /// assert!(matches!(program.constants["folded.table"], Constant::Tensor(_)));
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// `GraphInvalid` where the graph and its signature do not fit; else as the edits of a graph.
    pub fn with_lifted_constants(&self) -> Result<Self> {
        let mut res = self.clone();
        let inputs: Vec<NodeId> = nodes_of(&res, Opcode::Placeholder);
        if inputs.len() != res.signature.input_specs.len() {
            return Err(Diagnostic::new(Code::GraphInvalid, "the inputs of the graph are not those of the signature"));
        }
        let first = res.signature.input_specs.iter().position(|it| it.kind == InputKind::UserInput);
        let anchor = first.map(|at| inputs[at]).or_else(|| {
            let graph = &res.module.graph;
            graph.nodes().find(|it| graph.node(*it).op() != Opcode::Placeholder)
        });
        let point = anchor.map_or(InsertPoint::End, InsertPoint::Before);
        let mut taken: HashSet<Str> = self.state_dict.keys().chain(self.constants.keys()).cloned().collect();
        let mut lifted: HashMap<Str, NodeId> = HashMap::new();
        let (mut specs, mut equals, mut reads) = (Vec::new(), HashMap::new(), Vec::new());
        for read in nodes_of(&res, Opcode::GetAttr) {
            let path = res.module.graph.node(read).target().clone();
            let Attribute::Tensor { tensor, .. } = res.module.attribute(&path)? else { continue };
            let tensor = tensor.clone();
            let graph = &mut res.module.graph;
            if !graph.users(read).is_empty() {
                let input = match lifted.get(&path) {
                    Some(known) => *known,
                    None => {
                        let before = graph.set_insert_point(point)?;
                        let input = graph.placeholder(&format!("c_{}", path.replace('.', "_")));
                        graph.set_insert_point(before)?;
                        let known = graph.node(read).meta.val.clone();
                        graph.meta_mut(input).val = Some(known.unwrap_or_else(|| Val::Tensor(TensorMeta::of(&tensor))));
                        let target = unused(&mut taken, &path);
                        let arg = Argument::Tensor(graph.node(input).name().clone());
                        let kind = InputKind::ConstantTensor;
                        specs.push(InputSpec { kind, arg, target: Some(target.clone()), persistent: None });
                        res.constants.insert(target, Constant::Tensor(tensor));
                        lifted.insert(path.clone(), input);
                        input
                    }
                };
                equals.insert(read, input);
            }
            reads.push(read);
        }
        use_equal(&mut res.module.graph, &equals)?;
        reads.into_iter().try_for_each(|read| res.module.graph.erase_node(read))?;
        lifted.keys().for_each(|path| take_out(&mut res.module, path));
        let at = first.unwrap_or(inputs.len());
        res.signature.input_specs.splice(at..at, specs);
        Ok(res)
    }
}

fn nodes_of(program: &ExportedProgram, op: Opcode) -> Vec<NodeId> {
    let graph = &program.module.graph;
    graph.nodes().filter(|it| graph.node(*it).op() == op).collect()
}

/// Takes an attribute out of the module that holds it.
fn take_out(module: &mut GraphModule, path: &str) {
    let (mut holder, mut rest) = (module, path);
    while !holder.attributes.contains_key(rest) {
        let Some((first, deeper)) = rest.split_once('.') else { return };
        let Some(Attribute::Module(inner)) = holder.attributes.get_mut(first) else { return };
        (holder, rest) = (inner, deeper);
    }
    holder.attributes.shift_remove(rest);
}

/// The name, or with a number behind it where the program holds something else under it.
fn unused(taken: &mut HashSet<Str>, path: &Str) -> Str {
    let numbered = (0..).map(|it| Str::from(format!("{path}_{it}")));
    let mut free = [path.clone()].into_iter().chain(numbered).skip_while(|it| taken.contains(it));
    let free = free.next().expect("there are more numbers than names");
    taken.insert(free.clone());
    free
}
