//! Puts parameters, buffers and constants back into the modules, and lets the graphs read them there.

use super::tree::{ModuleId, Tree, too_deep};
use crate::unlift::LazyClones;
use crate::{Constant, ExportedProgram, GraphSignature, InputKind, InputSpec};
use std::collections::{HashMap, HashSet};
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_ir::{Attribute, Graph, InsertPoint, NodeId, Opcode, Str, TensorKind};

/// Which tensor it is: two names of the same elements are two names of one tensor.
type TensorId = (usize, Vec<usize>, Vec<usize>, usize);

fn id_of(tensor: &Tensor) -> TensorId {
    (tensor.storage().id(), tensor.sizes().to_vec(), tensor.strides().to_vec(), tensor.offset())
}

/// Puts lazy clones of all tensors of the program into the modules that they belong to, those that the graph does not use, too.
pub(super) fn assign(program: &ExportedProgram, signature: &GraphSignature, tree: &mut Tree) -> Result<()> {
    let mut clones = LazyClones::default();
    let transient: HashSet<Str> = signature.non_persistent_buffers().into_iter().collect();
    let used = signature.parameters().into_iter().chain(signature.buffers());
    let names = used.chain(program.state_dict.keys().cloned()).chain(program.constants.keys().cloned());
    let mut is_assigned = HashSet::new();
    for name in names {
        if !is_assigned.insert(name.clone()) {
            continue;
        }
        let (tensor, kind) = match (program.state_dict.get(&name), program.constants.get(&name)) {
            (Some(entry), _) if entry.is_parameter => (&entry.tensor, TensorKind::Parameter),
            (Some(entry), _) if !transient.contains(&name) => (&entry.tensor, TensorKind::Buffer),
            (Some(entry), None) => (&entry.tensor, TensorKind::Constant),
            (_, Some(Constant::Tensor(tensor))) => (tensor, TensorKind::Constant),
            (None, Some(Constant::CustomObj(_)) | None) | (Some(_), Some(Constant::CustomObj(_))) => continue,
        };
        let tensor = clones.of(tensor)?;
        for (module, field) in places(tree, &name)? {
            tree.modules[module].attributes.insert(field.into(), Attribute::Tensor { tensor: tensor.clone(), kind });
        }
    }
    Ok(())
}

/// Where a tensor goes: the module of its name, and the other calls of the modules on the way.
fn places<'n>(tree: &mut Tree, name: &'n str) -> Result<Vec<(ModuleId, &'n str)>> {
    let (path, field) = name.rsplit_once('.').map_or(("", name), |it| it);
    let mut modules: Vec<ModuleId> = vec![0];
    for item in path.split('.').filter(|it| !it.is_empty()) {
        let mut next = Vec::new();
        for module in modules {
            if tree.child(module, item).is_none() {
                let made = tree.add("Module", None);
                tree.children_of(module).insert(item.into(), made);
            }
            for (name, child) in tree.children_of(module).iter() {
                if is_call_of(name, item) && !next.contains(child) {
                    next.push(*child);
                }
            }
        }
        modules = next;
        if modules.len() > 10_000 {
            return Err(too_deep());
        }
    }
    Ok(modules.into_iter().map(|it| (it, field)).collect())
}

fn is_call_of(name: &str, base: &str) -> bool {
    let Some(rest) = name.strip_prefix(base) else { return false };
    rest.is_empty()
        || rest.strip_prefix('@').is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
}

/// The inputs of the graph that are tensors of the program, each with all names that the tensor has.
pub(super) fn inputs_to_state(program: &ExportedProgram, signature: &GraphSignature) -> Result<HashMap<Str, Vec<Str>>> {
    let is_lifted = |it: &&InputSpec| !matches!(it.kind, InputKind::UserInput | InputKind::Token);
    let mut targets: HashMap<TensorId, Vec<Str>> = HashMap::new();
    let (mut inputs, mut named): (Vec<(Str, TensorId)>, HashSet<Str>) = (Vec::new(), HashSet::new());
    for spec in signature.input_specs.iter().filter(is_lifted) {
        let name = spec.arg.name();
        let target = spec.target.clone().unwrap_or_else(|| name.clone());
        let Some(tensor) = program.tensor(&target) else {
            let what = format!("the program holds no tensor for the {} `{target}`", spec.kind.name());
            return Err(Diagnostic::new(Code::NotImplemented, what).node(&**name));
        };
        let id = id_of(tensor);
        targets.entry(id.clone()).or_default().push(target.clone());
        inputs.push((name.clone(), id));
        named.insert(target);
    }
    let constants = program.constants.keys().chain(program.state_dict.keys());
    for name in constants.filter(|it| !named.contains(*it)) {
        let known = program.tensor(name).and_then(|it| targets.get_mut(&id_of(it)));
        if let Some(names) = known {
            names.push(name.clone());
        }
    }
    Ok(inputs.into_iter().map(|(name, id)| (name, targets[&id].clone())).collect())
}

/// Replaces inputs that are tensors of the module by reads of its attributes, from the innermost modules outwards, and takes
/// them out of the calls. Gives the names that each module lost to its callers.
pub(super) fn sink(
    tree: &mut Tree,
    module: ModuleId,
    states: &HashMap<Str, Vec<Str>>,
    scope: &mut Vec<Str>,
    removed: &mut HashMap<ModuleId, HashSet<Str>>,
) -> Result<()> {
    if removed.contains_key(&module) {
        return Ok(());
    }
    let children: Vec<(Str, ModuleId)> =
        tree.children_of(module).iter().map(|(name, it)| (name.clone(), *it)).collect();
    for (name, child) in &children {
        scope.push(name.split('@').next().unwrap_or(name).into());
        sink(tree, *child, states, scope, removed)?;
        scope.pop();
    }
    if tree.modules[module].graph.is_empty() {
        return Ok(());
    }
    drop_call_arguments(tree, module, removed)?;
    let graph = &tree.modules[module].graph;
    let inputs: Vec<NodeId> = graph.nodes().filter(|it| graph.node(*it).op() == Opcode::Placeholder).collect();
    let mut sunk = HashSet::new();
    let Some(last) = inputs.last().copied() else {
        removed.insert(module, sunk);
        return Ok(());
    };
    for input in inputs {
        let name = tree.modules[module].graph.node(input).name().clone();
        let Some(path) = states.get(&name).and_then(|names| names.iter().find_map(|it| below(it, scope))) else {
            continue;
        };
        if !holds(tree, module, path) {
            let what = format!("the module {} holds no tensor `{path}`", scope.join("."));
            return Err(Diagnostic::new(Code::AttributeMissing, what).node(&*name));
        }
        read_instead(&mut tree.modules[module].graph, input, last, path)?;
        sunk.insert(name);
    }
    removed.insert(module, sunk);
    Ok(())
}

fn drop_call_arguments(tree: &mut Tree, module: ModuleId, removed: &HashMap<ModuleId, HashSet<Str>>) -> Result<()> {
    let graph = &tree.modules[module].graph;
    let calls: Vec<NodeId> = graph.nodes().filter(|it| graph.node(*it).op() == Opcode::CallModule).collect();
    for call in calls {
        let graph = &tree.modules[module].graph;
        let called = tree.find(module, graph.node(call).target());
        let Some(lost) = called.and_then(|it| removed.get(&it)).filter(|it| !it.is_empty()) else { continue };
        let args = graph.node(call).args().iter();
        let is_lost = |it: &tracefx_ir::Arg| it.as_node().is_some_and(|it| lost.contains(graph.node(it).name()));
        let args = args.filter(|it| !is_lost(it)).cloned().collect();
        tree.modules[module].graph.set_args(call, args)?;
    }
    Ok(())
}

/// The part of a name below a module.
fn below<'n>(name: &'n str, scope: &[Str]) -> Option<&'n str> {
    scope.iter().try_fold(name, |rest, item| rest.strip_prefix(&**item)?.strip_prefix('.'))
}

fn holds(tree: &Tree, module: ModuleId, path: &str) -> bool {
    let (holder, field) = path.rsplit_once('.').map_or(("", path), |it| it);
    tree.find(module, holder).is_some_and(|it| tree.modules[it].attributes.contains_key(field))
}

fn read_instead(graph: &mut Graph, input: NodeId, last: NodeId, path: &str) -> Result<()> {
    if !graph.users(input).is_empty() {
        let before = graph.set_insert_point(InsertPoint::After(last))?;
        let read = graph.create_node(Opcode::GetAttr, path, vec![], vec![], None)?;
        graph.set_insert_point(before)?;
        *graph.meta_mut(read) = graph.node(input).meta.clone();
        graph.replace_all_uses_with(input, read, &mut |_, _| true)?;
    }
    graph.erase_node(input)
}
