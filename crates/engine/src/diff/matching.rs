//! Which nodes of two programs are one another.

use super::nodes::{Nodes, arguments};
use std::collections::HashMap;
use tracefx_ir::{NodeId, Opcode};

/// Nodes that are matched. Nodes of one operator are matched by their arguments, in the order of the programs; then by the inputs alone, and
/// then by name.
pub(super) struct Matching<'a> {
    before: &'a Nodes<'a>,
    after: &'a Nodes<'a>,
    /// Of the first program: its item of the second.
    matches: Vec<Option<usize>>,
    /// Of the second program: whether it is matched.
    taken: Vec<bool>,
}

impl<'a> Matching<'a> {
    pub(super) fn of(before: &'a Nodes<'a>, after: &'a Nodes<'a>) -> Self {
        let (matches, taken) = (vec![None; before.items.len()], vec![false; after.items.len()]);
        let mut res = Matching { before, after, matches, taken };
        let (mut by_arguments, mut by_inputs) = (Candidates::default(), Candidates::default());
        for at in 0..after.items.len() {
            by_arguments.add(res.key(at, Side::After), at);
            by_inputs.add(res.loose_key(at, Side::After), at);
        }
        for at in 0..before.items.len() {
            res.match_equal(at, &mut by_arguments);
        }
        // A node that has changed takes no other's equal; what uses it is equal once it is matched.
        let by_path: HashMap<&str, usize> =
            after.items.iter().enumerate().map(|(at, it)| (it.path.as_str(), at)).collect();
        for at in 0..before.items.len() {
            if res.matches[at].is_some() || res.match_equal(at, &mut by_arguments) {
                continue;
            }
            let named = by_path.get(before.items[at].path.as_str()).copied();
            let named = named.filter(|it| after.node(*it).op() == before.node(at).op() && !res.taken[*it]);
            let other = by_inputs.free(&res.loose_key(at, Side::Before), &res.taken).or(named);
            res.match_with(at, other);
        }
        res
    }

    pub(super) fn of_before(&self, at: usize) -> Option<usize> {
        self.matches[at]
    }

    pub(super) fn is_taken(&self, at: usize) -> bool {
        self.taken[at]
    }

    /// Whether two nodes that are matched differ.
    pub(super) fn differs(&self, at: usize, other: usize, symbols: &mut Renaming) -> bool {
        let (a, b) = (self.before.node(at), self.after.node(other));
        a.op() != b.op()
            || a.target() != b.target()
            || self.arguments(at, Side::Before) != self.arguments(other, Side::After)
            || !symbols.agree(&self.before.value(at), &self.after.value(other))
    }

    fn match_equal(&mut self, at: usize, candidates: &mut Candidates) -> bool {
        let other = candidates.free(&self.key(at, Side::Before), &self.taken);
        self.match_with(at, other)
    }

    fn match_with(&mut self, at: usize, other: Option<usize>) -> bool {
        self.matches[at] = other;
        other.inspect(|it| self.taken[*it] = true).is_some()
    }

    fn nodes(&self, side: Side) -> &'a Nodes<'a> {
        match side {
            Side::Before => self.before,
            Side::After => self.after,
        }
    }

    /// What stands for an input: the item of the second program; of the graph of a branch, its name.
    fn name_of(&self, at: usize, side: Side, input: NodeId) -> String {
        let nodes = self.nodes(side);
        let Some(item) = nodes.input(at, input) else { return format!("%{}", nodes.graph(at).node(input).target()) };
        match side {
            Side::Before => self.matches[item].map_or("%?".to_string(), |it| format!("%{it}")),
            Side::After => format!("%{item}"),
        }
    }

    fn arguments(&self, at: usize, side: Side) -> String {
        let nodes = self.nodes(side);
        arguments(nodes.graph(at), nodes.node(at), &|it| self.name_of(at, side, it))
    }

    /// An operator with its arguments. Inputs of the program and attributes are known by their names alone.
    fn key(&self, at: usize, side: Side) -> String {
        let node = self.nodes(side).node(at);
        let is_given = matches!(node.op(), Opcode::Placeholder | Opcode::GetAttr);
        let arguments = if is_given { String::new() } else { self.arguments(at, side) };
        format!("{} {} {arguments}", node.op(), node.target())
    }

    /// An operator with its inputs, without constants.
    fn loose_key(&self, at: usize, side: Side) -> String {
        let node = self.nodes(side).node(at);
        let inputs: Vec<String> = node.all_input_nodes().into_iter().map(|it| self.name_of(at, side, it)).collect();
        format!("{} {} {}", node.op(), node.target(), inputs.join(" "))
    }
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

/// Items by keys, in order.
#[derive(Default)]
struct Candidates(HashMap<String, (Vec<usize>, usize)>);

impl Candidates {
    fn add(&mut self, key: String, item: usize) {
        self.0.entry(key).or_default().0.push(item);
    }

    /// The first item of a key that is not taken.
    fn free(&mut self, key: &str, taken: &[bool]) -> Option<usize> {
        let (items, next) = self.0.get_mut(key)?;
        while items.get(*next).is_some_and(|it| taken[*it]) {
            *next += 1;
        }
        items.get(*next).copied()
    }
}

/// The symbols of one program by those of another.
#[derive(Default)]
pub(super) struct Renaming {
    to: HashMap<String, String>,
    from: HashMap<String, String>,
}

impl Renaming {
    /// Whether two values are the same but for the names of symbols, each of which always has one name in the other program.
    fn agree(&mut self, a: &str, b: &str) -> bool {
        let (a, b) = (words(a), words(b));
        let is_same = |(a, b): (&&str, &&str)| a == b || is_symbol(a) && is_symbol(b);
        if a.len() != b.len() || !a.iter().zip(&b).all(is_same) {
            return false;
        }
        for (name, other) in a.into_iter().zip(b).filter(|(name, _)| is_symbol(name)) {
            if self.to.get(name).is_some_and(|it| it != other) || self.from.get(other).is_some_and(|it| it != name) {
                return false;
            }
            self.to.insert(name.to_string(), other.to_string());
            self.from.insert(other.to_string(), name.to_string());
        }
        true
    }
}

/// The text in words, and what stands between them.
fn words(text: &str) -> Vec<&str> {
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let mut res = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|it| is_word(it) != is_word(first)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        res.push(word);
        rest = after;
    }
    res
}

/// The names that PyTorch gives to symbols: `s77`, `u0`, `zuf1`.
fn is_symbol(word: &str) -> bool {
    let digits = word.trim_start_matches(|it: char| !it.is_ascii_digit());
    let prefix = &word[..word.len() - digits.len()];
    ["s", "u", "zf", "zuf"].contains(&prefix) && !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_may_have_other_names_if_each_has_one() {
        let mut symbols = Renaming::default();
        assert!(symbols.agree("f32[s0, 2*s1]", "f32[s77, 2*u3]"));
        assert!(symbols.agree("f32[s1]", "f32[u3]"));
        assert!(!symbols.agree("f32[s1]", "f32[s77]"), "s1 is u3");
        assert!(!symbols.agree("f32[s5]", "f32[u3]"), "u3 is s1");
        assert!(!symbols.agree("f32[s0]", "f32[4]"));
        assert!(!symbols.agree("f32[4]", "f32[5]"));
        assert!(!symbols.agree("f32[zuf1, zfs1]", "f32[zuf2, zfs2]"), "zfs1 is no symbol");
    }
}
