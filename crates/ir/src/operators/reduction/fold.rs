//! Folding a tensor's elements along any of its axes, in plain loops.

/// `prepare` of every element, combined along `axes`; what is left stands in row-major order.
/// `count` is how many elements are left.
pub(super) fn fold_axes<S: Copy, T: Copy>(
    shape: &[usize],
    axes: &[usize],
    count: usize,
    elements: &[S],
    prepare: impl Fn(S) -> T,
    initial: T,
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    if elements.is_empty() {
        return vec![initial; count];
    }
    let mut groups = groups(shape, axes);
    let Some(last) = groups.iter().rposition(|group| group.reduced) else {
        return elements.iter().map(|&element| prepare(element)).collect();
    };
    let mut folded = fold_group(&groups, last, elements, prepare, initial, &combine);
    groups.remove(last);
    while let Some(last) = groups.iter().rposition(|group| group.reduced) {
        folded = fold_group(&groups, last, &folded, |element| element, initial, &combine);
        groups.remove(last);
    }
    folded
}

/// Neighbouring axes that are all reduced or all kept, seen as one.
struct Group {
    size: usize,
    reduced: bool,
}

fn groups(shape: &[usize], axes: &[usize]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
        let reduced = axes.contains(&axis);
        match groups.last_mut() {
            Some(group) if group.reduced == reduced => group.size *= size,
            _ => groups.push(Group { size, reduced }),
        }
    }
    groups
}

fn fold_group<S: Copy, T: Copy>(
    groups: &[Group],
    index: usize,
    elements: &[S],
    prepare: impl Fn(S) -> T,
    initial: T,
    combine: &impl Fn(T, T) -> T,
) -> Vec<T> {
    let along = groups[index].size;
    let after: usize = groups[index + 1..].iter().map(|group| group.size).product();
    if after == 1 {
        let fold = |line: &[S]| {
            line.iter().fold(initial, |so_far, &element| combine(so_far, prepare(element)))
        };
        return elements.chunks_exact(along).map(fold).collect();
    }
    let mut folded = vec![initial; elements.len() / along];
    for (block, row) in elements.chunks_exact(along * after).zip(folded.chunks_exact_mut(after)) {
        for line in block.chunks_exact(after) {
            for (so_far, &element) in row.iter_mut().zip(line) {
                *so_far = combine(*so_far, prepare(element));
            }
        }
    }
    folded
}
