//! The order of tasks: as few changes between device and host as the dependencies allow.

use std::collections::BTreeSet;

use super::task::Side;

/// A permutation of the tasks in which each follows those it depends on. Where all are on one side, nothing moves.
pub(super) fn order(sides: &[Side], dependencies: &[Vec<usize>]) -> Vec<usize> {
    let from_device = alternate(sides, dependencies, Side::Device);
    let from_host = alternate(sides, dependencies, Side::Host);
    if changes(&from_host, sides) < changes(&from_device, sides) { from_host } else { from_device }
}

fn changes(order: &[usize], sides: &[Side]) -> usize {
    order.windows(2).filter(|pair| sides[pair[0]] != sides[pair[1]]).count()
}

/// Runs all that can run on one side, then all that can run on the other, and so on.
fn alternate(sides: &[Side], dependencies: &[Vec<usize>], first: Side) -> Vec<usize> {
    let mut waiting_for: Vec<usize> = dependencies.iter().map(Vec::len).collect();
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); sides.len()];
    for (task, needed) in dependencies.iter().enumerate() {
        needed.iter().for_each(|&needed| successors[needed].push(task));
    }
    let mut ready: [BTreeSet<usize>; 2] = Default::default();
    let slot = |side: Side| usize::from(side == Side::Host);
    for task in (0..sides.len()).filter(|&task| waiting_for[task] == 0) {
        ready[slot(sides[task])].insert(task);
    }
    let mut order = Vec::with_capacity(sides.len());
    let mut current = slot(first);
    while ready.iter().any(|side| !side.is_empty()) {
        while let Some(task) = ready[current].pop_first() {
            order.push(task);
            for &successor in &successors[task] {
                waiting_for[successor] -= 1;
                if waiting_for[successor] == 0 {
                    ready[slot(sides[successor])].insert(successor);
                }
            }
        }
        current = 1 - current;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const D: Side = Side::Device;
    const H: Side = Side::Host;

    #[test]
    fn tasks_of_one_side_stay_where_they_are() {
        let dependencies = vec![vec![], vec![], vec![0], vec![1, 2]];
        assert_eq!(order(&[D; 4], &dependencies), [0, 1, 2, 3]);
    }

    #[test]
    fn independent_tasks_of_a_side_are_gathered() {
        // Two chains of a host task between device tasks, one after the other in the graph.
        let sides = [D, H, D, D, H, D];
        let dependencies = vec![vec![], vec![0], vec![1], vec![], vec![3], vec![4]];
        assert_eq!(order(&sides, &dependencies), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn the_host_begins_where_that_saves_a_change() {
        let sides = [D, H, D];
        let dependencies = vec![vec![], vec![], vec![0, 1]];
        assert_eq!(order(&sides, &dependencies), [1, 0, 2]);
    }

    proptest! {
        #[test]
        fn every_task_runs_once_after_what_it_needs(
            raw in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<usize>(), 0..3)), 0..30)
        ) {
            let sides: Vec<Side> = raw.iter().map(|(host, _)| if *host { H } else { D }).collect();
            let dependencies: Vec<Vec<usize>> = raw
                .iter()
                .enumerate()
                .map(|(task, (_, needed))| {
                    let earlier: BTreeSet<usize> =
                        needed.iter().filter(|_| task > 0).map(|&needed| needed % task.max(1)).collect();
                    earlier.into_iter().collect()
                })
                .collect();
            let order = order(&sides, &dependencies);
            let mut position = vec![usize::MAX; sides.len()];
            order.iter().enumerate().for_each(|(place, &task)| position[task] = place);
            prop_assert!(position.iter().all(|&place| place != usize::MAX));
            prop_assert_eq!(order.len(), sides.len());
            for (task, needed) in dependencies.iter().enumerate() {
                prop_assert!(needed.iter().all(|&needed| position[needed] < position[task]));
            }
        }
    }
}
