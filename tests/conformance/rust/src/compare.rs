//! Comparing what a pass left with what was recorded.

use crate::case::Check;
use serde_json::Value;
use tracefx_ir::{Arg, Graph, NodeId};
use tracefx_testing::build;

/// Whether a graph is the one that was recorded, node by node, with users where they were recorded.
pub(crate) fn same_graph(got: &Graph, want: &Value, what: &str) -> Check {
    let expected = build(want);
    let (ours, theirs): (Vec<NodeId>, Vec<NodeId>) = (got.nodes().collect(), expected.nodes().collect());
    let differs = |why: String| Err(format!("{what}: {why}\ngot\n{got}\nwanted\n{expected}"));
    if ours.len() != theirs.len() {
        return differs(format!("{} nodes instead of {}", ours.len(), theirs.len()));
    }
    // Both sides in terms of places, since ids depend on the history of edits.
    let place = |ids: &[NodeId], id: NodeId| ids.iter().position(|&it| it == id);
    for (&a, &b) in ours.iter().zip(&theirs) {
        let (x, y) = (got.node(a), expected.node(b));
        if (x.name(), x.op(), x.target()) != (y.name(), y.op(), y.target()) {
            return differs(format!("{} {} {} instead of {}", x.name(), x.op(), x.target(), y.name()));
        }
        let ours_of = |it: &Arg| in_places(it, &|id| place(&ours, id));
        let theirs_of = |it: &Arg| in_places(it, &|id| place(&theirs, id));
        let args = x.args().iter().map(ours_of).eq(y.args().iter().map(theirs_of));
        let kwargs = x.kwargs().iter().map(|(key, it)| (key.clone(), ours_of(it)));
        let kwargs = kwargs.eq(y.kwargs().iter().map(|(key, it)| (key.clone(), theirs_of(it))));
        if !args || !kwargs {
            return differs(format!("the arguments of {}", x.name()));
        }
        if let Some(wanted) = want["users"].get(&**x.name()) {
            let users: Vec<&str> = got.users(a).iter().map(|it| &**got.node(it).name()).collect();
            if Value::from(users.clone()) != *wanted {
                return differs(format!("the users of {} are {users:?} instead of {wanted}", x.name()));
            }
        }
    }
    Ok(())
}

/// An argument as a text in which nodes are their places, and which tells -0.0 from 0.0 and takes NaN for itself.
pub(crate) fn in_places(arg: &Arg, place: &dyn Fn(NodeId) -> Option<usize>) -> String {
    let mut places = Vec::new();
    arg.for_each_node(&mut |it| places.push(place(it)));
    let shape = arg.map_nodes(&mut |_| Arg::Ellipsis);
    format!("{shape:?} {places:?}")
}
