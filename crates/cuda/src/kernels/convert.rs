//! Elements of one storage type as those of another, in order.

use super::flat::flat_launch;
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str =
    concat!(include_str!("../../kernels/conversion.cuh"), include_str!("../../kernels/convert.cu"));

/// Bytes that one thread moves on the side of the larger type.
const BYTES_PER_THREAD: usize = 16;

/// The launch that converts `count` elements, as Cast means it; between equal types, a plain copy. Both sides are
/// aligned to 16 bytes, and there is at least one element.
pub(crate) fn convert_launch(
    from: Storage,
    to: Storage,
    count: usize,
    from_argument: Argument,
    to_argument: Argument,
) -> Launch {
    let arguments = vec![from_argument, to_argument, Argument::u32(count)];
    flat_launch(source(from, to), count.div_ceil(per_thread(from, to)), arguments)
}

fn per_thread(from: Storage, to: Storage) -> usize {
    BYTES_PER_THREAD / from.size_bytes().max(to.size_bytes())
}

fn source(from: Storage, to: Storage) -> KernelSource {
    let (from_name, to_name) = match from == to {
        true => (from.bits_name(), from.bits_name()),
        false => (from.cuda_name(), to.cuda_name()),
    };
    let defines = vec![
        ("FROM", from_name.to_string()),
        ("TO", to_name.to_string()),
        ("PER_THREAD", per_thread(from, to).to_string()),
    ];
    KernelSource::new("convert.cu", TEXT, "convert", defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let all = Storage::ALL;
    all.iter().flat_map(|&from| all.iter().map(move |&to| source(from, to))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_cover_every_element() {
        for (count, from, to) in [
            (1, Storage::F32, Storage::F16),
            (150_528, Storage::F32, Storage::F16),
            (513, Storage::Bool, Storage::I64),
            (1 << 31, Storage::U8, Storage::U8),
        ] {
            let launch = convert_launch(from, to, count, Argument::Input(0), Argument::Output(0));
            let covered = launch.grid[0] as usize * launch.threads as usize * per_thread(from, to);
            let per_block = launch.threads as usize * per_thread(from, to);
            assert!(covered >= count && covered - count < per_block, "{count} {from:?} {to:?}");
        }
    }

    #[test]
    fn equal_sizes_share_one_copy() {
        assert_eq!(source(Storage::F16, Storage::F16), source(Storage::Bf16, Storage::Bf16));
        assert_ne!(source(Storage::U8, Storage::I8), source(Storage::U8, Storage::U8));
    }
}
