//! The memory that is one executable's own: its inputs, its outputs, and the words that its launches count in.

use std::sync::Arc;

use crate::driver::{Context, CudaError, DeviceBuffer, PinnedBuffer};
use crate::plan::ExecutionPlan;
use crate::plan::place::{Bases, COUNTER_BYTES};
use crate::plan::placement::ALIGNMENT_BYTES;

/// Buffers that lie one after the other, on the device and, in the same order, on the host; for several entries, those of
/// one after those of the other.
pub(crate) struct Staged {
    pub(crate) device: DeviceBuffer,
    pub(crate) offsets: Vec<usize>,
    /// Of one entry.
    pub(crate) size_bytes: usize,
}

impl Staged {
    fn new(
        context: &Arc<Context>,
        sizes: impl Iterator<Item = usize>,
        entries: usize,
    ) -> Result<Self, CudaError> {
        let (offsets, size_bytes) = offsets(sizes);
        Ok(Self { device: DeviceBuffer::new(context, size_bytes * entries)?, offsets, size_bytes })
    }

    fn addresses(&self) -> Vec<u64> {
        self.offsets.iter().map(|&offset| self.device.address() + offset as u64).collect()
    }
}

/// Where buffers of these sizes start, and how much they take together.
fn offsets(sizes: impl Iterator<Item = usize>) -> (Vec<usize>, usize) {
    let mut end = 0;
    let mut offsets = Vec::new();
    for size in sizes {
        offsets.push(end);
        end += size.next_multiple_of(ALIGNMENT_BYTES);
    }
    (offsets, end)
}

/// The memory of one executable, for one entry or several.
pub(crate) struct IoMemory {
    pub(crate) inputs: Staged,
    pub(crate) outputs: Staged,
    counters: DeviceBuffer,
    pub(crate) faults: FaultWords,
}

impl IoMemory {
    pub(crate) fn new(
        context: &Arc<Context>,
        plan: &ExecutionPlan,
        entries: usize,
    ) -> Result<Self, CudaError> {
        let input_sizes = plan
            .inputs
            .iter()
            .map(|input| input.uploaded.as_ref().map_or(0, |value| value.size_bytes()));
        let output_sizes = plan.output_buffers.iter().map(|value| value.size_bytes());
        Ok(Self {
            inputs: Staged::new(context, input_sizes, entries)?,
            outputs: Staged::new(context, output_sizes, entries)?,
            counters: DeviceBuffer::zeroed(context, plan.counter_count * COUNTER_BYTES * entries)?,
            faults: FaultWords::new(context, entries)?,
        })
    }

    /// What it takes on the device.
    pub(crate) fn size_bytes(&self) -> usize {
        let both = self.inputs.device.size_bytes() + self.outputs.device.size_bytes();
        both + self.counters.size_bytes()
    }

    /// The addresses that the plan's places stand for, the first entry's, with the arena at `arena`.
    pub(crate) fn bases(&self, arena: u64) -> Bases {
        Bases {
            arena,
            inputs: self.inputs.addresses(),
            outputs: self.outputs.addresses(),
            counters: self.counters.address(),
            fault: self.faults.address(),
        }
    }
}

/// Words of the host, one for each entry, that kernels write where they meet input that they cannot compute with.
pub(crate) struct FaultWords {
    words: PinnedBuffer,
    count: usize,
}

impl FaultWords {
    pub(crate) fn new(context: &Arc<Context>, count: usize) -> Result<Self, CudaError> {
        Ok(Self { words: PinnedBuffer::new(context, count * size_of::<u32>())?, count })
    }

    /// Pinned memory has one address for host and device.
    pub(crate) fn address(&self) -> u64 {
        self.word(0) as u64
    }

    /// What a kernel that has ended has written of an entry; zero where none did.
    pub(crate) fn get(&self, entry: usize) -> u32 {
        // SAFETY: the word lies in the buffer, and the driver aligns that to more than a word. The GPU may write it at
        // any time, which is why the read is volatile.
        unsafe { self.word(entry).read_volatile() }
    }

    /// Makes the words zero before a run.
    pub(crate) fn clear(&self) {
        for entry in (0..self.count).filter(|&entry| self.get(entry) != 0) {
            // SAFETY: as in `get`; all access from this process is through volatile reads and writes of one word.
            unsafe { self.word(entry).write_volatile(0) };
        }
    }

    fn word(&self, entry: usize) -> *mut u32 {
        assert!(entry < self.count, "there is a word for each of {} entries", self.count);
        self.words.as_ptr().cast_mut().cast::<u32>().wrapping_add(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::offsets;

    #[test]
    fn buffers_lie_apart_and_aligned() {
        assert_eq!(offsets([1, 256, 0, 257].into_iter()), (vec![0, 256, 512, 512], 1024));
        assert_eq!(offsets(std::iter::empty()), (vec![], 0));
    }
}
