//! The chip, and the share of it, that kernels are planned for.

/// What planning needs to know of the GPU and of the partition a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chip {
    /// Compute capability: 80 is 8.0, 90 is 9.0.
    pub capability: u32,
    /// SMs of the partition.
    pub sm_count: u32,
    /// Shared memory that one block may have, when it asks for it.
    pub shared_bytes_per_block: u32,
    /// Shared memory of one SM.
    pub shared_bytes_per_sm: u32,
    /// Size of the L2 cache.
    pub l2_bytes: u32,
}

impl Chip {
    /// An H200 with all its SMs: what plans are tested for where there is no GPU.
    pub const H200: Chip = Chip {
        capability: 90,
        sm_count: 132,
        shared_bytes_per_block: 227 << 10,
        shared_bytes_per_sm: 228 << 10,
        l2_bytes: 60 << 20,
    };

    /// The same chip with a partition of another size.
    pub fn with_sms(self, sm_count: u32) -> Self {
        Self { sm_count, ..self }
    }

    /// How many blocks one SM has at once, of so many threads with so many registers each and so much shared memory; zero where it
    /// cannot have one.
    pub(crate) fn blocks_per_sm(self, threads: u32, registers: u32, shared_bytes: u32) -> u32 {
        const THREADS_PER_SM: u32 = 2048;
        const REGISTERS_PER_SM: u32 = 65_536;
        // Of each block, for the system.
        const RESERVED_BYTES: u32 = 1024;
        let by_shared = self.shared_bytes_per_sm / (shared_bytes + RESERVED_BYTES);
        let by_registers = REGISTERS_PER_SM / (registers * threads).max(1);
        by_shared.min(by_registers).min(THREADS_PER_SM / threads.max(1))
    }

    /// Dynamic shared memory with which so many blocks have an SM each, where there are enough: the GPU may put two of them
    /// on one SM while others have none. Zero where some have to share.
    pub(crate) fn spreading_bytes(self, blocks: u32) -> u32 {
        if blocks <= self.sm_count { self.shared_bytes_per_sm / 2 } else { 0 }
    }

    /// True where a kernel can be split over a cluster of blocks, and start before its predecessor has ended.
    pub fn is_hopper_or_later(self) -> bool {
        self.capability >= 90
    }

    /// True where four warps can multiply together by `wgmma`, which later chips do not have.
    pub fn is_hopper(self) -> bool {
        self.capability == 90
    }

    /// The architecture that kernels are compiled for. `is_exact` asks for the instructions of this chip alone,
    /// such as `wgmma`.
    pub fn architecture(self, is_exact: bool) -> String {
        let suffix = if is_exact && self.is_hopper_or_later() { "a" } else { "" };
        format!("sm_{}{suffix}", self.capability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_block_takes_most_of_limits_how_many_there_are() {
        let blocks = |threads, registers, shared_bytes| {
            Chip::H200.blocks_per_sm(threads, registers, shared_bytes)
        };
        assert_eq!(blocks(1024, 1, 0), 2);
        assert_eq!(blocks(256, 90, 0), 2);
        assert_eq!(blocks(32, 16, 75 << 10), 3);
        assert_eq!(blocks(32, 16, 76 << 10), 2);
        assert_eq!(blocks(512, 255, 0), 0);
    }

    #[test]
    fn blocks_that_spread_have_an_sm_each() {
        let shared_bytes = Chip::H200.spreading_bytes(132);
        assert_eq!(Chip::H200.blocks_per_sm(32, 16, shared_bytes), 1);
        assert_eq!(Chip::H200.spreading_bytes(133), 0);
    }
}
