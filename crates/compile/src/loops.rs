//! Loops: pointwise operators that use each other's results are one step, which reads what they read once, and writes only what others
//! read. An operator by itself is a loop too, whose operands are looked at once, where a call looks at them in every run.
//!
//! A call joins the group of a step whose result it reads, where both have the same sizes. The group runs where its last member stood.
//! So nothing between its members may write what they read, nor read or write what they write. Every group saves the memory traffic of what only its members read.

use crate::uses::{Uses, any_within, within};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use tracefx_core::Dims;
use tracefx_exec::{Executor, Kernels, element_function};
use tracefx_ops::Registry;
use tracefx_plan::{
    Action, Argument, Buffer, BufferId, Extent, Fused, Instruction, Loop, Operand, Plan, Register, TensorId,
};

/// The operators that give the elements of their first argument, in its dtype unless they are asked for another.
pub(crate) const COPIES: [&str; 8] = [
    "aten._to_copy.default",
    "aten.alias_copy.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.detach_copy.default",
    "aten.lift_fresh_copy.default",
    "aten.to.dtype",
    "aten.to.dtype_layout",
];

/// The most steps of a group: the blocks of its registers shall stay in the cache.
const MAX_MEMBERS: usize = 64;
/// The most tensors that a group reads, each of which is a stream of memory.
const MAX_INPUTS: usize = 16;

/// Joins pointwise steps to loops.
pub(crate) fn fuse_loops(plan: &mut Plan, registry: &Registry, kernels: &Kernels) {
    let grouping = Grouping::new(plan, registry, kernels);
    let fused: Vec<_> = grouping.groups().into_iter().map(|it| (grouping.fused(&it), it)).collect();
    let mut is_kept = vec![true; plan.steps.len()];
    for (fused, group) in fused {
        group.iter().for_each(|it| is_kept[*it] = false);
        // Of a group whose results nobody reads nothing is left.
        if let (Some(&last), false) = (group.last(), fused.outputs.is_empty()) {
            is_kept[last] = true;
            plan.steps[last].action = Action::Fused(Fused::Loop(fused));
        }
    }
    let mut is_kept = is_kept.into_iter();
    plan.steps.retain(|_| is_kept.next().unwrap_or_default());
}

/// What a loop does in the place of a step.
struct Member {
    /// The call, where the number of a register is that of a tensor that is read. Nothing where the elements are written as they are.
    call: Option<Instruction>,
    /// The tensors that it reads.
    reads: Vec<TensorId>,
    /// The tensor that it writes.
    writes: TensorId,
    /// Its sizes.
    sizes: Dims,
}

impl Member {
    fn of(plan: &Plan, action: &Action, registry: &Registry, kernels: &Kernels) -> Option<Self> {
        let mut reads = Vec::new();
        let (call, writes) = match action {
            Action::Call { op, args, results } => {
                let [Operand::Tensor(result)] = results[..] else { return None };
                let argument = |it: &Operand| match it {
                    Operand::Tensor(id) => {
                        reads.push(*id);
                        Some(Argument::Register(Register(reads.len() as u32 - 1)))
                    }
                    other => Some(Argument::Value(other.clone())).filter(|_| other.is_plain()),
                };
                let args = args.iter().map(argument).collect::<Option<_>>()?;
                (Some(Instruction { op: op.clone(), args, dtype: plan.tensor(result).dtype }), result)
            }
            Action::Copy { from, to } => {
                reads.push(*from);
                (None, *to)
            }
            Action::Update { .. } | Action::Fused(_) | Action::ControlFlow { .. } => return None,
        };
        let is_new = matches!(plan.buffer(plan.tensor(writes).buffer), Buffer::Scratch | Buffer::Result);
        let target = plan.tensor(writes).known().filter(|it| is_new && it.is_row_major())?;
        let sources = reads.iter().map(|it| plan.tensor(*it).known()).collect::<Option<Vec<_>>>()?;
        if !sources.iter().all(|it| broadcasts(&it.sizes, &target.sizes)) {
            return None;
        }
        let dtypes: Vec<_> = reads.iter().map(|it| plan.tensor(*it).dtype).collect();
        let is_copy = |it: &Instruction| COPIES.contains(&&*it.op) && dtypes.first() == Some(&it.dtype);
        let call = call.filter(|it| !is_copy(it));
        let can_join = match &call {
            Some(call) => {
                // A tensor without dimensions takes part in promotion as a number does, which a register does not. A condition takes no part.
                let promoted = &dtypes[usize::from(call.op.starts_with("aten.where.")).min(dtypes.len())..];
                let is_promoted =
                    promoted.iter().any(|it| *it != promoted[0]) && sources.iter().any(|it| it.sizes.is_empty());
                !is_promoted && element_function(call, &dtypes, Executor::new(registry, kernels)).is_ok()
            }
            // What turns the order of the elements does so best by itself.
            None => sources.iter().all(Extent::is_row_major),
        };
        can_join.then_some(Member { call, reads, writes, sizes: target.sizes })
    }
}

/// Steps that are one. While it is one step, its `writes` and `inputs` are empty.
#[derive(Default)]
struct Group {
    /// The steps, in order.
    steps: Vec<usize>,
    /// What they write, by buffer.
    writes: FxHashMap<BufferId, TensorId>,
    /// The tensors that they read of memory.
    inputs: Vec<TensorId>,
}

/// The steps of a plan that can join, and who else reads and writes.
struct Grouping<'a> {
    plan: &'a Plan,
    uses: Uses,
    members: Vec<Option<Member>>,
}

impl<'a> Grouping<'a> {
    fn new(plan: &'a Plan, registry: &Registry, kernels: &Kernels) -> Self {
        let uses = Uses::of(plan, registry);
        let members = plan.steps.iter().map(|it| Member::of(plan, &it.action, registry, kernels)).collect();
        Grouping { plan, uses, members }
    }

    /// The groups, each in order: of several steps, or of an operator that reads what lies as its loop goes.
    fn groups(&self) -> Vec<Vec<usize>> {
        // The group of each step, and the groups: at first every step is a group of its own.
        let mut group_of: Vec<usize> = (0..self.members.len()).collect();
        let alone = |it: &usize| Group { steps: vec![*it], ..Group::default() };
        let mut groups: Vec<Group> = group_of.iter().map(alone).collect();
        for (at, member) in self.members.iter().enumerate() {
            let Some(member) = member else { continue };
            for &read in &member.reads {
                let Some(writer) = self.last_writer(read, at) else { continue };
                let (from, to) = (group_of[writer], group_of[at]);
                let is_alike = self.members[writer].as_ref().is_some_and(|it| it.sizes == member.sizes);
                if from == to || !is_alike {
                    continue;
                }
                let is_behind = groups[from].steps.last().is_some_and(|it| *it < at);
                if groups[to].steps == [at] && is_behind && groups[from].steps.len() > 1 {
                    let can_follow = self.can_follow(&groups[from], at);
                    debug_assert_eq!(can_follow, self.group([&groups[from].steps[..], &[at]].concat()).is_some());
                    if can_follow {
                        group_of[at] = from;
                        groups[to] = Group::default();
                        self.add(&mut groups[from], at);
                    }
                    continue;
                }
                let mut joined = [&groups[from].steps[..], &groups[to].steps[..]].concat();
                joined.sort_unstable();
                if let Some(joined) = self.group(joined) {
                    joined.steps.iter().for_each(|it| group_of[*it] = to);
                    groups[from] = Group::default();
                    groups[to] = joined;
                }
            }
        }
        let mut groups: Vec<Vec<usize>> = groups.into_iter().map(|it| it.steps).collect();
        groups.retain(|it| match it[..] {
            [only] => self.members[only].as_ref().is_some_and(|it| self.is_alone(it)),
            _ => !it.is_empty(),
        });
        groups
    }

    /// Whether an operator is a loop by itself. What turns the order of the elements, a kernel does best by itself.
    fn is_alone(&self, member: &Member) -> bool {
        let lies_along = |it: &TensorId| {
            let extent = self.plan.tensor(*it).known();
            extent.is_some_and(|it| it.strides.last().is_none_or(|last| *last <= 1) || it.sizes.last() == Some(&1))
        };
        member.call.is_some() && member.reads.iter().all(lies_along)
    }

    /// The last step before this one that writes to the memory of a tensor.
    fn last_writer(&self, tensor: TensorId, before: usize) -> Option<usize> {
        let writers = &self.uses.buffer(self.plan.tensor(tensor).buffer).writers;
        writers[..writers.partition_point(|it| *it < before)].last().copied()
    }

    /// These steps, in order, where they can be one.
    fn group(&self, steps: Vec<usize>) -> Option<Group> {
        let group = &steps[..];
        let last = group[group.len() - 1];
        if group.len() > MAX_MEMBERS {
            return None;
        }
        let any_between =
            |first: usize, steps: &[usize]| within(steps, first + 1..last).any(|it| group.binary_search(&it).is_err());
        // What several members write, each writes whole.
        let writes = self.writes(group)?;
        let holds = |at: usize| {
            let Some(member) = &self.members[at] else { return false };
            let written = self.uses.buffer(self.plan.tensor(member.writes).buffer);
            let is_unseen = !any_between(at, &written.readers) && !any_between(at, &written.writers);
            // It reads the same at the end of the group as where it stands, and what the group writes at the same places alone.
            let can_read = |read: &TensorId| {
                let view = self.plan.tensor(*read);
                !any_between(at, self.uses.writers(self.plan, view.buffer))
                    && writes.get(&view.buffer).is_none_or(|it| self.plan.tensor(*it) == view)
            };
            is_unseen && member.reads.iter().all(can_read)
        };
        let can_be = group.iter().all(|it| holds(*it));
        let inputs = self.inputs(group);
        (can_be && inputs.len() <= MAX_INPUTS).then_some(Group { steps, writes, inputs })
    }

    /// Whether a step behind a group can join it. What holds of the group between its steps goes on to hold.
    fn can_follow(&self, group: &Group, at: usize) -> bool {
        let (Some(member), Some(&last)) = (&self.members[at], group.steps.last()) else { return false };
        if group.steps.len() >= MAX_MEMBERS {
            return false;
        }
        let view = |id: TensorId| self.plan.tensor(id);
        let is_untouched = |steps: &[usize]| !any_within(steps, last + 1..at);
        let holds = |it: &Member| {
            let written = self.uses.buffer(view(it.writes).buffer);
            is_untouched(&written.readers)
                && is_untouched(&written.writers)
                && it.reads.iter().all(|it| is_untouched(self.uses.writers(self.plan, view(*it).buffer)))
        };
        // Between neighbours there is nothing.
        if last + 1 < at && !self.of_group(&group.steps).all(holds) {
            return false;
        }
        // What it writes and reads of what the group touches is in the same places.
        let is_alike = |it: TensorId, there: TensorId| view(it).buffer != view(there).buffer || view(it) == view(there);
        let written = view(member.writes).buffer;
        let is_whole = group.writes.get(&written).is_none_or(|it| is_alike(*it, member.writes));
        let readers = within(&self.uses.buffer(written).readers, group.steps[0]..at);
        let readers = readers.filter(|it| group.steps.binary_search(it).is_ok());
        let mut reads = readers.filter_map(|it| self.members[it].as_ref()).chain([member]).flat_map(|it| &it.reads);
        let can_read = |it: &TensorId| group.writes.get(&view(*it).buffer).is_none_or(|to| is_alike(*it, *to));
        let n_inputs = group.inputs.len() + self.new_inputs(group, member).count();
        is_whole
            && reads.all(|it| is_alike(*it, member.writes))
            && member.reads.iter().all(can_read)
            && n_inputs <= MAX_INPUTS
    }

    /// The tensors that a step behind a group would add to its inputs.
    fn new_inputs<'b>(&'b self, group: &'b Group, member: &'b Member) -> impl Iterator<Item = TensorId> {
        let is_new = move |at: usize, read: TensorId| {
            let view = self.plan.tensor(read);
            let mut known = group.inputs.iter().chain(&member.reads[..at]);
            !group.writes.contains_key(&view.buffer) && !known.any(|it| self.plan.tensor(*it) == view)
        };
        member.reads.iter().enumerate().filter(move |(at, read)| is_new(*at, **read)).map(|(_, read)| *read)
    }

    /// Adds a step that can follow a group.
    fn add(&self, group: &mut Group, at: usize) {
        let Some(member) = &self.members[at] else { return };
        let inputs: Vec<TensorId> = self.new_inputs(group, member).collect();
        group.inputs.extend(inputs);
        group.writes.entry(self.plan.tensor(member.writes).buffer).or_insert(member.writes);
        group.steps.push(at);
    }

    fn of_group(&self, group: &[usize]) -> impl Iterator<Item = &Member> {
        group.iter().filter_map(|it| self.members[*it].as_ref())
    }

    /// What a group writes, by buffer; nothing where it writes to two places of one.
    fn writes(&self, group: &[usize]) -> Option<FxHashMap<BufferId, TensorId>> {
        let mut writes = FxHashMap::default();
        for member in self.of_group(group) {
            let view = self.plan.tensor(member.writes);
            let first = *writes.entry(view.buffer).or_insert(member.writes);
            if self.plan.tensor(first) != view {
                return None;
            }
        }
        Some(writes)
    }

    /// The tensors that a group reads of memory: those that no member wrote before.
    fn inputs(&self, group: &[usize]) -> Vec<TensorId> {
        let mut inputs: Vec<TensorId> = Vec::new();
        let mut written = FxHashSet::default();
        for member in self.of_group(group) {
            for &read in &member.reads {
                let view = self.plan.tensor(read);
                if !written.contains(&view.buffer) && !inputs.iter().any(|it| self.plan.tensor(*it) == view) {
                    inputs.push(read);
                }
            }
            written.insert(self.plan.tensor(member.writes).buffer);
        }
        inputs
    }

    /// The loop of a group.
    fn fused(&self, group: &[usize]) -> Loop<TensorId> {
        let inputs = self.inputs(group);
        let mut code: Vec<Instruction> = Vec::new();
        // The register of what is in each buffer that a member wrote, and the tensor that it wrote.
        let mut written: BTreeMap<BufferId, (Register, TensorId)> = BTreeMap::new();
        let mut sizes = Dims::new();
        for member in self.of_group(group) {
            let register = |read: &TensorId| {
                let view = self.plan.tensor(*read);
                let input = || inputs.iter().position(|it| self.plan.tensor(*it) == view).unwrap_or_default();
                written.get(&view.buffer).map_or_else(|| Register(input() as u32), |(register, _)| *register)
            };
            let reads: Vec<Register> = member.reads.iter().map(register).collect();
            let result = match &member.call {
                Some(call) => {
                    let argument = |it: &Argument| match it {
                        Argument::Register(Register(at)) => Argument::Register(reads[*at as usize]),
                        Argument::Value(value) => Argument::Value(value.clone()),
                    };
                    code.push(Instruction { args: call.args.iter().map(argument).collect(), ..call.clone() });
                    Register((inputs.len() + code.len() - 1) as u32)
                }
                None => reads[0],
            };
            written.insert(self.plan.tensor(member.writes).buffer, (result, member.writes));
            sizes = member.sizes.clone();
        }
        let last = group[group.len() - 1];
        written.retain(|buffer, _| {
            let uses = self.uses.buffer(*buffer);
            uses.is_outer || uses.readers.iter().any(|it| *it > last)
        });
        Loop { sizes, inputs, code, outputs: written.into_values().collect() }
    }
}

/// Whether a tensor of these sizes is read as one of the others.
fn broadcasts(own: &[usize], sizes: &[usize]) -> bool {
    let lead = sizes.len().checked_sub(own.len());
    lead.is_some_and(|lead| own.iter().zip(&sizes[lead..]).all(|(own, size)| own == size || *own == 1))
}
