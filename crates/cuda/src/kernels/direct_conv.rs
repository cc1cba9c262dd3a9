//! Convolution by its definition, plain or transposed: for every case that no faster kernel computes.

use bytemuck::{Pod, Zeroable, bytes_of};
use weft_ir::Activation;
use weft_ir::operators::convolution::AxisWindow;

use super::activation::{ActivationParameters, activation};
use super::divider::Divider;
use super::flat::flat_launch;
use super::widening::widening;
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str = concat!(
    include_str!("../../kernels/divider.cuh"),
    include_str!("../../kernels/direct_conv.cu")
);

/// The most filters that one thread sums.
const MAX_FILTERS: usize = 8;

/// One spatial axis: where the elements of a window lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Axis {
    input: i32,
    kernel: i32,
    stride: i32,
    dilation: i32,
    pad: i32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Problem {
    pieces: Divider,
    columns: Divider,
    rows: Divider,
    slices: Divider,
    axes: [Axis; 3],
    channels: i32,
    filters: i32,
    groups: i32,
    weight_steps: [i32; 4],
    activation: ActivationParameters,
}

/// How the weights lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WeightOrder {
    /// By tap, then by channel of the group, then by filter: the form that [`by_tap`] gives.
    ByTap,
    /// As the operator takes them.
    AsGiven,
}

/// A convolution of images with groups of channels.
#[derive(Clone, Debug)]
pub(crate) struct DirectConv {
    pub(crate) storage: Storage,
    pub(crate) images: usize,
    /// One to three. Those of a transposed convolution are its adjoint's: `input` is what it writes.
    pub(crate) windows: Vec<AxisWindow>,
    pub(crate) is_transposed: bool,
    pub(crate) channels_last: bool,
    pub(crate) groups: usize,
    /// Of one group.
    pub(crate) channels: usize,
    /// Of one group.
    pub(crate) filters: usize,
    pub(crate) weight_order: WeightOrder,
    /// How the bias is stored; `None` where there is none.
    pub(crate) bias: Option<Storage>,
    pub(crate) has_residual: bool,
    pub(crate) activation: Option<Activation>,
}

/// The operands of a launch, in the kernel's order.
#[derive(Clone, Debug)]
pub(crate) struct DirectOperands {
    pub(crate) input: Argument,
    pub(crate) weights: Argument,
    pub(crate) bias: Argument,
    pub(crate) residual: Argument,
    pub(crate) output: Argument,
}

const NO_AXIS: Axis = Axis { input: 1, kernel: 1, stride: 1, dilation: 1, pad: 0 };

/// Weights as the operator takes them, brought into [`WeightOrder::ByTap`].
pub(crate) fn by_tap(conv: &DirectConv, weights: &[f32]) -> impl Iterator<Item = f32> {
    let &DirectConv { groups, channels, filters, is_transposed, .. } = conv;
    let taps = conv.taps();
    let place = move |tap: usize, channel: usize, filter: usize| {
        let (group, own) = (filter / filters, filter % filters);
        match is_transposed {
            true => ((group * channels + channel) * filters + own) * taps + tap,
            false => (filter * channels + channel) * taps + tap,
        }
    };
    let filters = move |(tap, channel)| (0..groups * filters).map(move |f| place(tap, channel, f));
    let by_channel = move |tap| (0..channels).map(move |channel| (tap, channel));
    (0..taps).flat_map(by_channel).flat_map(filters).map(|place| weights[place])
}

impl DirectConv {
    fn taps(&self) -> usize {
        self.windows.iter().map(|window| window.kernel).product()
    }

    /// The spatial sizes of the output.
    fn output_sizes(&self) -> [usize; 3] {
        let mut sizes = [1; 3];
        for (size, window) in sizes[3 - self.windows.len()..].iter_mut().zip(&self.windows) {
            *size = if self.is_transposed { window.input } else { window.output };
        }
        sizes
    }

    fn axes(&self) -> [Axis; 3] {
        let mut axes = [NO_AXIS; 3];
        for (axis, window) in axes[3 - self.windows.len()..].iter_mut().zip(&self.windows) {
            let input = if self.is_transposed { window.output } else { window.input };
            *axis = Axis {
                input: input as i32,
                kernel: window.kernel as i32,
                stride: window.stride as i32,
                dilation: window.dilation as i32,
                pad: window.pad_begin as i32,
            };
        }
        axes
    }

    /// True where there is a kernel.
    pub(crate) fn supports(&self) -> bool {
        let reach = |window: &AxisWindow| {
            let sizes = [window.input, window.output].into_iter().max().unwrap_or(0);
            sizes * window.stride + window.kernel * window.dilation + window.pad_begin
        };
        let weights = self.groups * self.filters * self.channels * self.taps();
        self.storage.is_float()
            && (1..=3).contains(&self.windows.len())
            && weights < 1 << 31
            && self.windows.iter().all(|window| reach(window) < 1 << 30)
    }

    /// How many filters a thread sums: as many as their weights lie together.
    fn filters_per_thread(&self) -> usize {
        match self.weight_order {
            WeightOrder::AsGiven => 1,
            WeightOrder::ByTap => widening(self.storage, [self.filters]).min(MAX_FILTERS),
        }
    }

    fn channels_at_once(&self) -> usize {
        if self.channels_last { widening(self.storage, [self.channels]) } else { 1 }
    }

    /// From one group, filter, channel and tap to the next.
    fn weight_steps(&self) -> [usize; 4] {
        let taps = self.taps();
        let &Self { groups, channels, filters, .. } = self;
        match (self.weight_order, self.is_transposed) {
            (WeightOrder::ByTap, _) => [filters, 1, groups * filters, channels * groups * filters],
            (WeightOrder::AsGiven, false) => [filters * channels * taps, channels * taps, taps, 1],
            (WeightOrder::AsGiven, true) => [channels * filters * taps, taps, filters * taps, 1],
        }
    }

    /// The launch; `None` where the output is empty.
    pub(crate) fn launch(&self, operands: DirectOperands) -> Option<Launch> {
        let per_thread = self.filters_per_thread();
        let pieces = self.groups * self.filters / per_thread;
        let sizes = self.output_sizes();
        let count = self.images * pieces * sizes.iter().product::<usize>();
        if count == 0 {
            return None;
        }
        let problem = Problem {
            pieces: Divider::new(pieces),
            columns: Divider::new(sizes[2]),
            rows: Divider::new(sizes[1]),
            slices: Divider::new(sizes[0]),
            axes: self.axes(),
            channels: self.channels as i32,
            filters: self.filters as i32,
            groups: self.groups as i32,
            weight_steps: self.weight_steps().map(|step| step as i32),
            activation: activation(self.activation).1,
        };
        let DirectOperands { input, weights, bias, residual, output } = operands;
        let problem = Argument::Bytes(bytes_of(&problem).to_vec());
        let arguments = vec![input, weights, bias, residual, output, problem, Argument::u32(count)];
        Some(flat_launch(self.source(), count, arguments))
    }

    fn source(&self) -> KernelSource {
        let flag = |is_set: bool| u8::from(is_set).to_string();
        let bias = self.bias.unwrap_or(self.storage);
        let defines = vec![
            ("STORAGE", self.storage.cuda_name().to_string()),
            ("BIAS", bias.cuda_name().to_string()),
            ("HAS_BIAS", flag(self.bias.is_some())),
            ("HAS_RESIDUAL", flag(self.has_residual)),
            ("ACTIVATION", activation(self.activation).0.to_string()),
            ("TRANSPOSED", flag(self.is_transposed)),
            ("FILTERS", self.filters_per_thread().to_string()),
            ("CHANNELS", self.channels_at_once().to_string()),
            ("CHANNELS_LAST", flag(self.channels_last)),
        ];
        KernelSource::new("direct_conv.cu", TEXT, "direct_conv", defines)
    }
}

fn example() -> DirectConv {
    let window = AxisWindow {
        input: 20,
        kernel: 3,
        stride: 2,
        dilation: 1,
        pad_begin: 1,
        pad_end: 1,
        output: 10,
    };
    DirectConv {
        storage: Storage::F16,
        images: 2,
        windows: vec![window; 2],
        is_transposed: false,
        channels_last: true,
        groups: 4,
        channels: 8,
        filters: 8,
        weight_order: WeightOrder::ByTap,
        bias: Some(Storage::F32),
        has_residual: true,
        activation: Some(Activation::Silu),
    }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let plain = example();
    let first = DirectConv { channels_last: false, storage: Storage::Bf16, ..plain.clone() };
    let transposed = DirectConv { is_transposed: true, bias: None, filters: 3, ..plain.clone() };
    let (weight_order, bias) = (WeightOrder::AsGiven, Some(Storage::F32));
    let given = DirectConv { weight_order, bias, storage: Storage::F32, ..first.clone() };
    [plain, first, transposed, given].iter().map(DirectConv::source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_by_tap_lie_where_the_steps_say() {
        for is_transposed in [false, true] {
            let conv =
                DirectConv { is_transposed, groups: 2, channels: 3, filters: 5, ..example() };
            let given = DirectConv { weight_order: WeightOrder::AsGiven, ..conv.clone() };
            let count = 2 * 3 * 5 * conv.taps();
            let weights: Vec<f32> = (0..count).map(|place| place as f32).collect();
            let turned: Vec<f32> = by_tap(&conv, &weights).collect();
            assert_eq!(turned.len(), count);
            let place = |steps: [usize; 4], at: [usize; 4]| -> usize {
                steps.iter().zip(at).map(|(step, index)| step * index).sum()
            };
            for group in 0..2 {
                for (filter, channel, tap) in
                    (0..5).flat_map(|f| (0..3).flat_map(move |c| (0..9).map(move |t| (f, c, t))))
                {
                    let at = [group, filter, channel, tap];
                    let original = weights[place(given.weight_steps(), at)];
                    assert_eq!(turned[place(conv.weight_steps(), at)], original);
                }
            }
        }
    }

    #[test]
    fn a_thread_sums_filters_whose_weights_lie_together() {
        assert_eq!(example().filters_per_thread(), 8);
        assert_eq!(DirectConv { filters: 6, ..example() }.filters_per_thread(), 2);
        let given = DirectConv { weight_order: WeightOrder::AsGiven, ..example() };
        assert_eq!(given.filters_per_thread(), 1);
        assert_eq!(DirectConv { channels_last: false, ..example() }.channels_at_once(), 1);
    }

    #[test]
    fn an_output_without_elements_is_not_launched() {
        let operands = DirectOperands {
            input: Argument::Null,
            weights: Argument::Null,
            bias: Argument::Null,
            residual: Argument::Null,
            output: Argument::Null,
        };
        assert!(example().launch(operands.clone()).is_some());
        assert!(DirectConv { images: 0, ..example() }.launch(operands).is_none());
        let huge = AxisWindow { stride: 1 << 30, ..example().windows[0] };
        assert!(!DirectConv { windows: vec![huge], ..example() }.supports());
    }
}
