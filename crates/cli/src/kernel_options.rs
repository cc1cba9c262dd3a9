//! How a GPU's kernels are chosen, as asked for on the command line.

use clap::{Args, ValueEnum};
use weft_cuda::{Choice, CudaOptions};

/// Options of commands that measure.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct KernelOptions {
    /// How a GPU's kernels are chosen: as estimated, or as measured on the partition, which takes longer to prepare
    /// [default: measured]
    #[arg(long, value_enum)]
    choice: Option<ChoiceName>,
    /// Choose among Weft's own kernels alone, not those of cuBLASLt and cuDNN
    #[arg(long)]
    no_libraries: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ChoiceName {
    Estimated,
    #[default]
    Measured,
}

impl KernelOptions {
    /// True where something was asked for.
    pub(crate) fn is_given(self) -> bool {
        self.choice.is_some() || self.no_libraries
    }

    /// The same options of a GPU with what was asked for.
    pub(crate) fn applied_to(self, options: CudaOptions) -> CudaOptions {
        let choice = match self.name() {
            ChoiceName::Estimated => Choice::Estimated,
            ChoiceName::Measured => Choice::Measured,
        };
        CudaOptions { choice, uses_libraries: !self.no_libraries, ..options }
    }

    /// How kernels are chosen, in a word.
    pub(crate) fn choice(self) -> &'static str {
        match self.name() {
            ChoiceName::Estimated => "estimated",
            ChoiceName::Measured => "measured",
        }
    }

    /// Tells what was found with these kernels from what was found with others.
    pub(crate) fn mark(self) -> &'static str {
        match (self.name(), self.no_libraries) {
            (ChoiceName::Measured, false) => "measured",
            (ChoiceName::Measured, true) => "measured-own",
            (ChoiceName::Estimated, _) => "estimated",
        }
    }

    /// Which kernels a choice is among, in words.
    pub(crate) fn among(self) -> &'static str {
        match (self.name(), self.no_libraries) {
            (ChoiceName::Measured, false) => "those of cuBLASLt and cuDNN among them",
            (ChoiceName::Measured, true) | (ChoiceName::Estimated, _) => "Weft's own alone",
        }
    }

    fn name(self) -> ChoiceName {
        self.choice.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_measured_unless_asked_otherwise() {
        let options = KernelOptions::default();
        assert!(!options.is_given());
        let cuda = options.applied_to(CudaOptions::default());
        assert_eq!((cuda.choice, cuda.uses_libraries), (Choice::Measured, true));
        let quick = KernelOptions { choice: Some(ChoiceName::Estimated), no_libraries: true };
        assert!(quick.is_given());
        let cuda = quick.applied_to(CudaOptions::default());
        assert_eq!((cuda.choice, cuda.uses_libraries), (Choice::Estimated, false));
    }
}
