//! Operators along one axis: each line of elements along it, one after the other.

/// Lets `function` change every line along the middle of `(before, along, after)` in place.
pub(super) fn for_each_line<T: Copy>(
    elements: &mut [T],
    (_, along, after): (usize, usize, usize),
    mut function: impl FnMut(&mut [T]),
) {
    if elements.is_empty() {
        return;
    }
    if after == 1 {
        elements.chunks_exact_mut(along).for_each(function);
        return;
    }
    let mut line = Vec::with_capacity(along);
    for block in elements.chunks_exact_mut(along * after) {
        for start in 0..after {
            line.clear();
            line.extend(block[start..].iter().step_by(after));
            function(&mut line);
            let places = block[start..].iter_mut().step_by(after);
            places.zip(&line).for_each(|(place, &element)| *place = element);
        }
    }
}
