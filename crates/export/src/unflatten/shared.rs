//! Calls that do the same become calls of one module, and modules get the order that they had.

use super::outline::{Outlined, accessor, call_name};
use super::tree::{ModuleId, Tree};
use indexmap::{IndexMap, map::Entry};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, Opcode, Str};

/// Merges calls of one module whose graphs are equal. Gives the names of calls that are gone.
pub(super) fn merge_calls(outlined: &mut Outlined) -> Result<HashSet<String>> {
    let Outlined { tree, calls, .. } = outlined;
    let mut redirected = HashSet::new();
    for calls in calls.values() {
        // What the calls so far do: the first call of each name.
        let mut seen: HashMap<String, IndexMap<Str, usize>> = HashMap::new();
        for (at, call) in calls.iter().enumerate() {
            let same = seen.entry(dump(&tree.modules[call.module].graph)).or_default();
            let target = accessor(&call.parent_fqn, &call.name())?;
            // As in PyTorch, the first call under another name lends its module, unless one of this name came before it.
            let other = same.iter().map(|(fqn, at)| (fqn, *at)).next();
            if let Some((fqn, first)) = other
                && *fqn != call.fqn
            {
                set(tree, call.parent, &target, Some(calls[first].module));
            }
            match same.entry(call.fqn.clone()) {
                Entry::Occupied(first) => {
                    set(tree, call.parent, &target, None);
                    let first = &calls[*first.get()];
                    let name = accessor(&call.parent_fqn, &call_name(&first.fqn, first.n_calls))?;
                    tree.modules[call.parent].graph.set_target(call.node, &name)?;
                    redirected.insert(call.name());
                }
                Entry::Vacant(first) => drop(first.insert(at)),
            }
        }
    }
    Ok(redirected)
}

/// Puts a module at a path, or takes it away.
fn set(tree: &mut Tree, from: ModuleId, path: &str, module: Option<ModuleId>) {
    let (holder, name) = path.rsplit_once('.').map_or(("", path), |it| it);
    let Some(holder) = tree.find(from, holder) else { return };
    match module {
        Some(module) => drop(tree.children_of(holder).insert(name.into(), module)),
        None => drop(tree.children_of(holder).shift_remove(name)),
    }
}

/// What a graph does, whatever its nodes are called.
fn dump(graph: &Graph) -> String {
    let mut positions = vec![0; graph.id_bound()];
    let mut res = String::new();
    for (at, id) in graph.nodes().enumerate() {
        positions[id.index()] = at;
        let node = graph.node(id);
        let target = if matches!(node.op(), Opcode::CallFunction | Opcode::GetAttr) { &**node.target() } else { "" };
        let text = |arg: &Arg| {
            let numbered = arg.map_nodes(&mut |it| Arg::Str(format!("%{}", positions[it.index()]).into()));
            graph.repr_arg(&numbered)
        };
        let args = node.args().iter().map(text);
        let kwargs = node.kwargs().iter().map(|(key, it)| format!("{key}={}", text(it)));
        let args: Vec<String> = args.chain(kwargs).collect();
        writeln!(res, "{}[{target}]({})", node.op(), args.join(", ")).expect("a String takes everything");
    }
    res
}

/// Adds the modules that nothing calls, and sorts all by where the traced code had them.
pub(super) fn reorder(tree: &mut Tree, fqns: &[Str]) -> Result<()> {
    for fqn in fqns.iter().filter(|it| !it.is_empty()) {
        if tree.find(0, fqn).is_none() {
            let (holder, name) = tree.holder(0, fqn, &mut |tree, _| tree.add("Module", None));
            let made = tree.add("Module", None);
            tree.children_of(holder).insert(name.into(), made);
        }
    }
    let mut order: HashMap<String, usize> = HashMap::new();
    for fqn in fqns {
        let at = order.len();
        order.entry(fqn.to_string()).or_insert(at);
    }
    let paths = tree.paths()?;
    for (path, _) in &paths {
        let at = order.len();
        order.entry(path.clone()).or_insert(at);
    }
    let mut is_sorted = HashSet::new();
    for (path, module) in paths {
        if !is_sorted.insert(tree.modules[module].children) {
            continue;
        }
        // The calls of one module have the place of the module.
        let prefix = match path.split('@').next() {
            Some("") | None => String::new(),
            Some(it) => format!("{it}."),
        };
        let place = |name: &str| {
            let fqn = format!("{prefix}{name}");
            let base = fqn.split('@').next().unwrap_or(&fqn);
            order.get(&fqn).or_else(|| order.get(base)).copied().unwrap_or(order.len())
        };
        tree.children_of(module).sort_by_key(|name, _| place(name));
    }
    Ok(())
}
