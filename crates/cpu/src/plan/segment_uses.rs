//! When values are written and read, seen from the segments that run chunk by chunk.

use std::collections::HashMap;
use std::ops::Range;

use weft_ir::ValueId;
use weft_ir::buffers::Lifetime;

use super::build::Draft;

/// Where a value is produced and last read.
#[derive(Clone, Copy)]
struct Use {
    first_step: usize,
    last_step: usize,
    /// Every step that reads it is in the segment that produces it.
    is_local: bool,
}

/// The uses of every value that a step produces.
pub(super) struct SegmentUses {
    uses: HashMap<ValueId, Use>,
    /// For each step, the segment it belongs to.
    segment_of: Vec<Range<usize>>,
}

impl SegmentUses {
    /// `root` maps a view to the value whose memory it is.
    pub(super) fn new(
        drafts: &[Draft],
        segments: &[(Range<usize>, usize)],
        root: impl Fn(ValueId) -> ValueId,
    ) -> Self {
        let mut segment_of = Vec::with_capacity(drafts.len());
        for (steps, chunks) in segments {
            // A segment of one chunk is a sequence of steps that each stand alone.
            let of = |step: usize| if *chunks > 1 { steps.clone() } else { step..step + 1 };
            segment_of.extend(steps.clone().map(of));
        }
        let mut uses: HashMap<ValueId, Use> = HashMap::new();
        for (step, draft) in drafts.iter().enumerate() {
            for &id in draft.inputs.iter().flatten() {
                if let Some(entry) = uses.get_mut(&root(id)) {
                    entry.last_step = step;
                    entry.is_local &= segment_of[step].contains(&entry.first_step);
                }
            }
            for &id in draft.outputs.iter().flatten() {
                let is_local = segment_of[step].len() > 1;
                uses.insert(id, Use { first_step: step, last_step: step, is_local });
            }
        }
        Self { uses, segment_of }
    }

    /// True where a value exists one chunk at a time.
    pub(super) fn is_local(&self, id: ValueId) -> bool {
        self.uses.get(&id).is_some_and(|entry| entry.is_local)
    }

    /// The step that makes a value, and the last that reads it.
    pub(super) fn span(&self, id: ValueId) -> Option<Range<usize>> {
        self.uses.get(&id).map(|entry| entry.first_step..entry.last_step)
    }

    /// From when to when a value of this size needs its memory. A value that crosses a segment's border needs it while
    /// any chunk of that segment runs.
    pub(super) fn lifetime(&self, id: ValueId, size_bytes: usize) -> Lifetime {
        let Some(&Use { first_step, last_step, is_local }) = self.uses.get(&id) else {
            return Lifetime { size_bytes, first_step: 0, last_step: self.segment_of.len() };
        };
        if is_local {
            return Lifetime { size_bytes, first_step, last_step };
        }
        let first_step = self.segment_of[first_step].start;
        let last_step = self.segment_of[last_step].end - 1;
        Lifetime { size_bytes, first_step, last_step: last_step.max(first_step) }
    }
}
