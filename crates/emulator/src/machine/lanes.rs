//! The values of a register in all lanes of a warp, as bits.

/// Threads of a warp.
pub(super) const LANES: usize = 32;

/// All of them.
pub(super) const ALL: u32 = u32::MAX;

/// One value for each lane.
pub(super) type Lanes = [u64; LANES];

/// The lanes of a mask.
pub(super) fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask & (1 << lane) != 0)
}

/// A mask of the lanes in which something holds.
pub(super) fn mask_of(mut holds: impl FnMut(usize) -> bool) -> u32 {
    (0..LANES).fold(0, |mask, lane| mask | u32::from(holds(lane)) << lane)
}
