//! Buffer planning: activations that never live at the same time share memory in one arena.

/// Where every buffer starts: wide enough for any vector load, and one cache line.
pub const BUFFER_ALIGNMENT_BYTES: usize = 64;

/// One buffer: how large it is, and the steps between which its content must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The size.
    pub size_bytes: usize,
    /// The step that writes it.
    pub first_step: usize,
    /// The last step that reads it; not before `first_step`.
    pub last_step: usize,
}

impl Lifetime {
    fn overlaps(&self, other: &Lifetime) -> bool {
        self.first_step <= other.last_step && other.first_step <= self.last_step
    }
}

/// Where each buffer lies in the arena.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferPlan {
    /// The start of each buffer, in the order given.
    pub offsets_bytes: Vec<usize>,
    /// The size of the arena.
    pub arena_bytes: usize,
}

/// Places the buffers, the largest first, each at the lowest offset that no buffer alive at the same time covers.
pub fn plan_buffers(lifetimes: &[Lifetime]) -> BufferPlan {
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    order.sort_by_key(|&index| {
        (std::cmp::Reverse(lifetimes[index].size_bytes), lifetimes[index].first_step)
    });
    let mut plan = BufferPlan { offsets_bytes: vec![0; lifetimes.len()], arena_bytes: 0 };
    // Placed buffers by offset, so that gaps are found in one walk.
    let mut placed: Vec<usize> = Vec::with_capacity(lifetimes.len());
    for index in order {
        let size = lifetimes[index].size_bytes.next_multiple_of(BUFFER_ALIGNMENT_BYTES);
        let mut offset = 0;
        for &other in placed.iter().filter(|&&other| lifetimes[other].overlaps(&lifetimes[index])) {
            if offset + size <= plan.offsets_bytes[other] {
                break;
            }
            let end = plan.offsets_bytes[other] + lifetimes[other].size_bytes;
            offset = offset.max(end.next_multiple_of(BUFFER_ALIGNMENT_BYTES));
        }
        plan.offsets_bytes[index] = offset;
        plan.arena_bytes = plan.arena_bytes.max(offset + size);
        let place = placed.partition_point(|&other| plan.offsets_bytes[other] <= offset);
        placed.insert(place, index);
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lifetime(size_bytes: usize, first_step: usize, last_step: usize) -> Lifetime {
        Lifetime { size_bytes, first_step, last_step }
    }

    #[test]
    fn a_chain_needs_only_two_buffers() {
        let chain: Vec<Lifetime> = (0..10).map(|step| lifetime(640, step, step + 1)).collect();
        assert_eq!(plan_buffers(&chain).arena_bytes, 2 * 640);
    }

    #[test]
    fn an_empty_plan_needs_nothing() {
        assert_eq!(plan_buffers(&[]), BufferPlan::default());
    }

    proptest! {
        #[test]
        fn buffers_alive_together_never_overlap(
            raw in prop::collection::vec((0usize..5000, 0usize..40, 0usize..10), 0..60)
        ) {
            let lifetimes: Vec<Lifetime> =
                raw.iter().map(|&(size, first, length)| lifetime(size, first, first + length)).collect();
            let plan = plan_buffers(&lifetimes);
            let span = |index: usize| {
                (plan.offsets_bytes[index], plan.offsets_bytes[index] + lifetimes[index].size_bytes)
            };
            for a in 0..lifetimes.len() {
                prop_assert_eq!(plan.offsets_bytes[a] % BUFFER_ALIGNMENT_BYTES, 0);
                prop_assert!(span(a).1 <= plan.arena_bytes);
                for b in 0..a {
                    let apart = span(a).1 <= span(b).0 || span(b).1 <= span(a).0;
                    prop_assert!(apart || !lifetimes[a].overlaps(&lifetimes[b]));
                }
            }
        }
    }
}
