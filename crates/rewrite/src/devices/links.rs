//! Which part uses what another one gives.

use super::{Partition, SizedGraph};

/// Which parts use what others give: `set_parents_and_children` and `get_bfs_level_partition`. Parts are known by their places.
/// Beyond PyTorch, what writes to memory that others use is taken for what gives them something.
#[derive(Clone, Debug)]
pub struct Links {
    /// For each part those that give it something.
    pub parents: Vec<Vec<usize>>,
    /// For each part those that it gives something.
    pub children: Vec<Vec<usize>>,
    /// The parts in an order in which they can run; none where they use each other in a circle.
    pub order: Option<Vec<usize>>,
}

impl Links {
    /// Finds how parts depend on each other. O(n log n).
    pub fn of(graph: &SizedGraph<'_>, partitions: &[&Partition]) -> Self {
        let mut owner = vec![None; graph.len()];
        for (place, partition) in partitions.iter().enumerate() {
            partition.calls(graph).for_each(|it| owner[it] = Some(place));
        }
        let mut children = vec![Vec::new(); partitions.len()];
        let mut parents = vec![Vec::new(); partitions.len()];
        for (place, partition) in partitions.iter().enumerate() {
            let later = partition.calls(graph).flat_map(|it| graph.users(it).iter().chain(graph.followers(it)));
            let users = later.filter_map(|&it| owner[it]);
            let mut others: Vec<usize> = users.filter(|&it| it != place).collect();
            others.sort_unstable();
            others.dedup();
            others.iter().for_each(|&it| parents[it].push(place));
            children[place] = others;
        }
        let order = sorted(&parents, &children);
        Links { parents, children, order }
    }

    /// The longest way to each part from one that has no parents: what `get_bfs_level_partition` leaves behind. PyTorch never
    /// ends where parts use each other in a circle; here those that it reaches have no level.
    pub fn bfs_levels(&self) -> Option<Vec<usize>> {
        let mut levels = vec![0; self.parents.len()];
        for &partition in self.order.as_ref()? {
            for &child in &self.children[partition] {
                levels[child] = levels[child].max(levels[partition] + 1);
            }
        }
        Some(levels)
    }
}

fn sorted(parents: &[Vec<usize>], children: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut waiting: Vec<usize> = parents.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..waiting.len()).filter(|&it| waiting[it] == 0).collect();
    let mut next = 0;
    while let Some(&partition) = order.get(next) {
        next += 1;
        for &child in &children[partition] {
            waiting[child] -= 1;
            if waiting[child] == 0 {
                order.push(child);
            }
        }
    }
    (order.len() == waiting.len()).then_some(order)
}
