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
