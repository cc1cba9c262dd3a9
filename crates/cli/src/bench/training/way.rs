//! The ways in which inference and training can be together.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    InferenceAlone,
    TrainingAlone,
    /// Inference in the share that it has beside training, without it.
    InferenceAloneInShare,
    /// Nobody says anything: threads share cores, processes take turns on a GPU.
    Free,
    /// Under one MPS service, without shares.
    PlainMps,
    /// Training in its share by `weft run`, at low priority, beside inference that may have the whole device.
    TrainingBounded,
    /// Each in its share by `weft run`, training at low priority.
    Bounded,
}

impl Way {
    /// Those that a device has, in the order of the table.
    pub(super) fn all(is_on_gpu: bool) -> &'static [Self] {
        use Way::*;
        match is_on_gpu {
            true => &[
                InferenceAlone,
                TrainingAlone,
                InferenceAloneInShare,
                Free,
                PlainMps,
                TrainingBounded,
                Bounded,
            ],
            false => &[InferenceAlone, TrainingAlone, InferenceAloneInShare, Free, Bounded],
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::InferenceAlone => "inference alone",
            Self::TrainingAlone => "training alone",
            Self::InferenceAloneInShare => "inference alone, in its share",
            Self::Free => "both, left to themselves",
            Self::PlainMps => "both, MPS without shares",
            Self::TrainingBounded => "both, only training bounded",
            Self::Bounded => "both, by weft run",
        }
    }

    pub(super) fn infers(self) -> bool {
        self != Self::TrainingAlone
    }

    pub(super) fn trains(self) -> bool {
        !matches!(self, Self::InferenceAlone | Self::InferenceAloneInShare)
    }

    /// True where `weft run` starts them.
    pub(super) fn is_bounded(self) -> bool {
        matches!(self, Self::InferenceAloneInShare | Self::TrainingBounded | Self::Bounded)
    }
}
