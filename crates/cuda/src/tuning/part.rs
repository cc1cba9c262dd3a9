//! The part of a launch's work that falls to a part of the partition that it is for.

use crate::launch::Launch;

/// The launch with as many of its blocks as `sms` of `all_sms` SMs would compute of them, at least one cluster. What it
/// computes is right as far as it goes, and each SM has as much to do as in the whole launch.
pub(super) fn part_of(launch: &Launch, sms: u32, all_sms: u32) -> Launch {
    let launch = launch.staying_on(all_sms);
    let [x, y, z] = launch.grid;
    let wanted = (u64::from(x) * u64::from(z) * u64::from(sms)).div_ceil(u64::from(all_sms.max(1)));
    let wanted = wanted.clamp(1, u64::from(x) * u64::from(z).max(1));
    let width = u64::from(x.max(1));
    let grid = match wanted <= width {
        true => [wanted as u32, y, 1],
        false => [x, y, wanted.div_ceil(width) as u32],
    };
    Launch { grid, ..launch }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Argument, KernelSource};

    #[test]
    fn every_sm_keeps_its_blocks() {
        let part = |grid, sms, all| {
            let source = KernelSource::new("k.cu", "", "k", Vec::new());
            let cluster = [1; 3];
            let launch =
                Launch { source, grid, threads: 32, shared_bytes: 0, cluster, arguments: vec![] };
            part_of(&launch, sms, all).grid
        };
        assert_eq!(part([64, 1, 1], 8, 32), [16, 1, 1]);
        assert_eq!(part([64, 4, 1], 8, 32), [16, 4, 1], "a split sum stays whole");
        assert_eq!(part([3, 8, 1], 8, 132), [1, 8, 1]);
        assert_eq!(part([4, 1, 12], 8, 32), [4, 1, 3]);
        assert_eq!(part([7, 2, 3], 8, 8), [7, 2, 3]);
    }

    #[test]
    fn blocks_that_stay_keep_their_tiles() {
        let source = KernelSource { stays: true, ..KernelSource::new("k.cu", "", "k", Vec::new()) };
        let (cluster, arguments) = ([1; 3], vec![Argument::i32(0)]);
        let launch =
            Launch { source, grid: [200, 1, 1], threads: 32, shared_bytes: 0, cluster, arguments };
        let part = part_of(&launch, 8, 32);
        assert_eq!(part.grid, [8, 1, 1]);
        // Of 32 blocks, which is what there would be.
        let said = part.arguments.last();
        assert!(matches!(said, Some(Argument::Bytes(bytes)) if *bytes == 32i32.to_ne_bytes()));
    }
}
