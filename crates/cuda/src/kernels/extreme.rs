//! Where the largest or smallest element along an axis stands.

use super::flat::{FLAT_THREADS, flat_launch};
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str =
    concat!(include_str!("../../kernels/conversion.cuh"), include_str!("../../kernels/extreme.cu"));

/// Lines along the middle axis of `[outer, along, inner]`, none of which is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extreme {
    pub(crate) storage: Storage,
    /// The largest rather than the smallest.
    pub(crate) is_largest: bool,
    /// Of equal elements the last counts rather than the first.
    pub(crate) is_last: bool,
    pub(crate) outer: usize,
    pub(crate) along: usize,
    pub(crate) inner: usize,
}

impl Extreme {
    /// True where there is a kernel.
    pub(crate) fn supports(&self) -> bool {
        self.storage != Storage::Bool && self.along < 1 << 31
    }

    /// The launch.
    pub(crate) fn launch(&self, from: Argument, to: Argument) -> Launch {
        let mut arguments = vec![from, to, Argument::u32(self.outer), Argument::u32(self.along)];
        if self.inner == 1 {
            let work = self.outer.div_ceil(FLAT_THREADS as usize / 32) * FLAT_THREADS as usize;
            return flat_launch(self.source("extreme_rows"), work, arguments);
        }
        arguments.push(Argument::u32(self.inner));
        flat_launch(self.source("extreme_strided"), self.outer * self.inner, arguments)
    }

    fn source(&self, entry: &'static str) -> KernelSource {
        let number = match self.storage {
            storage if storage.is_float() => Storage::F32,
            Storage::I64 => Storage::I64,
            _ => Storage::I32,
        };
        let defines = vec![
            ("FROM", self.storage.cuda_name().to_string()),
            ("NUMBER", number.cuda_name().to_string()),
            ("LARGEST", u8::from(self.is_largest).to_string()),
            ("LAST", u8::from(self.is_last).to_string()),
        ];
        KernelSource::new("extreme.cu", TEXT, entry, defines)
    }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let sample = |storage, is_largest, inner| {
        let extreme =
            Extreme { storage, is_largest, is_last: !is_largest, outer: 3, along: 9, inner };
        extreme.launch(Argument::Input(0), Argument::Output(0)).source
    };
    vec![
        sample(Storage::F16, true, 1),
        sample(Storage::I64, false, 4),
        sample(Storage::U8, true, 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_warp_or_a_thread() {
        let extreme = |outer, inner| {
            let (is_largest, is_last) = (true, false);
            let extreme =
                Extreme { storage: Storage::F16, is_largest, is_last, outer, along: 5, inner };
            assert!(extreme.supports());
            extreme.launch(Argument::Input(0), Argument::Output(0)).grid[0]
        };
        assert_eq!((extreme(4, 1), extreme(5, 1)), (1, 2));
        assert_eq!((extreme(4, 32), extreme(4, 33)), (1, 2));
    }
}
