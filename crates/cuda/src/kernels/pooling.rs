//! Windows over images, each reduced to one element per channel.

use bytemuck::{Pod, Zeroable, bytes_of};
use weft_ir::operators::convolution::AxisWindow;

use super::divider::Divider;
use super::flat::flat_launch;
use super::widening::widening;
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str = concat!(
    include_str!("../../kernels/divider.cuh"),
    include_str!("../../kernels/packed.cuh"),
    include_str!("../../kernels/pooling.cu")
);

/// The most elements of a window: its loops are unrolled.
const MAX_WINDOW: usize = 256;

/// How a window is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolingMode {
    Max,
    /// Padding does not count.
    Average,
    /// Padding counts as zeros.
    AverageWithPadding,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Shape {
    channels: Divider,
    columns: Divider,
    rows: Divider,
    slices: Divider,
    input_slices: u32,
    input_rows: u32,
    input_columns: u32,
}

/// Windows over channels-last images. Channels-first ones are images of one channel, as many as there are channels.
#[derive(Clone, Debug)]
pub(crate) struct Pooling {
    pub(crate) mode: PoolingMode,
    pub(crate) storage: Storage,
    pub(crate) images: usize,
    pub(crate) channels: usize,
    /// One to three, the innermost last.
    pub(crate) windows: Vec<AxisWindow>,
}

/// An axis that is not there.
const NO_AXIS: AxisWindow =
    AxisWindow { input: 1, kernel: 1, stride: 1, dilation: 1, pad_begin: 0, pad_end: 0, output: 1 };

impl Pooling {
    /// True where there is a kernel.
    pub(crate) fn supports(&self) -> bool {
        let taps: usize = self.windows.iter().map(|window| window.kernel).product();
        self.storage.is_float()
            && (1..=3).contains(&self.windows.len())
            && taps <= MAX_WINDOW
            && self.windows.iter().all(|window| {
                let reach = window.output * window.stride + window.kernel * window.dilation;
                reach + window.pad_end < 1 << 30
            })
    }

    fn axes(&self) -> [AxisWindow; 3] {
        let mut axes = [NO_AXIS; 3];
        axes[3 - self.windows.len()..].copy_from_slice(&self.windows);
        axes
    }

    /// The launch; `None` where the output is empty.
    pub(crate) fn launch(&self, from: Argument, to: Argument) -> Option<Launch> {
        let axes = self.axes();
        let positions: usize = axes.iter().map(|axis| axis.output).product();
        let width = widening(self.storage, [self.channels]);
        let count = self.images * positions * (self.channels / width);
        if count == 0 {
            return None;
        }
        let shape = Shape {
            channels: Divider::new(self.channels / width),
            columns: Divider::new(axes[2].output),
            rows: Divider::new(axes[1].output),
            slices: Divider::new(axes[0].output),
            input_slices: axes[0].input as u32,
            input_rows: axes[1].input as u32,
            input_columns: axes[2].input as u32,
        };
        let arguments =
            vec![from, to, Argument::Bytes(bytes_of(&shape).to_vec()), Argument::u32(count)];
        Some(flat_launch(self.source(width), count, arguments))
    }

    fn source(&self, width: usize) -> KernelSource {
        let mode = match self.mode {
            PoolingMode::Max => "MODE_MAX",
            PoolingMode::Average => "MODE_AVERAGE",
            PoolingMode::AverageWithPadding => "MODE_AVERAGE_WITH_PADDING",
        };
        let mut defines = vec![
            ("STORAGE", self.storage.cuda_name().to_string()),
            ("MODE", mode.to_string()),
            ("WIDTH", width.to_string()),
        ];
        const NAMES: [[&str; 5]; 3] = [
            ["KERNEL_DEPTH", "STRIDE_DEPTH", "DILATION_DEPTH", "PAD_DEPTH", "PADDED_DEPTH"],
            ["KERNEL_HEIGHT", "STRIDE_HEIGHT", "DILATION_HEIGHT", "PAD_HEIGHT", "PADDED_HEIGHT"],
            ["KERNEL_WIDTH", "STRIDE_WIDTH", "DILATION_WIDTH", "PAD_WIDTH", "PADDED_WIDTH"],
        ];
        for (names, axis) in NAMES.into_iter().zip(self.axes()) {
            let AxisWindow { kernel, stride, dilation, pad_begin, pad_end, .. } = axis;
            let values = [kernel, stride, dilation, pad_begin, pad_end];
            defines.extend(names.into_iter().zip(values.map(|value| value.to_string())));
        }
        KernelSource::new("pooling.cu", TEXT, "pooling", defines)
    }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let window = |kernel, stride, pad| AxisWindow {
        input: 20,
        kernel,
        stride,
        dilation: 1,
        pad_begin: pad,
        pad_end: pad,
        output: 10,
    };
    let pooling =
        |mode, storage, channels, windows| Pooling { mode, storage, images: 1, channels, windows };
    let all = [
        pooling(PoolingMode::Max, Storage::F16, 64, vec![window(3, 2, 1); 2]),
        pooling(PoolingMode::Average, Storage::F32, 3, vec![window(2, 2, 0); 3]),
        pooling(PoolingMode::AverageWithPadding, Storage::Bf16, 1, vec![window(5, 1, 2)]),
    ];
    let launch = |pooling: &Pooling| pooling.launch(Argument::Input(0), Argument::Output(0));
    all.iter().filter_map(launch).map(|launch| launch.source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooling(channels: usize, windows: Vec<AxisWindow>) -> Pooling {
        Pooling { mode: PoolingMode::Max, storage: Storage::F16, images: 2, channels, windows }
    }

    #[test]
    fn one_thread_reduces_as_many_channels_as_one_load_holds() {
        let window = AxisWindow { input: 8, kernel: 2, stride: 2, output: 4, ..NO_AXIS };
        let threads = |channels| {
            let launch = pooling(channels, vec![window; 2]);
            let launch = launch.launch(Argument::Input(0), Argument::Output(0)).unwrap();
            let Argument::Bytes(count) = &launch.arguments[3] else { panic!("{launch:?}") };
            u32::from_ne_bytes(count[..].try_into().unwrap())
        };
        assert_eq!(threads(64), 2 * 4 * 4 * 8);
        assert_eq!(threads(3), 2 * 4 * 4 * 3);
    }

    #[test]
    fn windows_that_are_too_large_are_refused() {
        let window = |kernel| AxisWindow { input: 100, kernel, output: 1, ..NO_AXIS };
        assert!(pooling(8, vec![window(3); 2]).supports());
        assert!(!pooling(8, vec![window(100); 2]).supports());
        assert!(!pooling(8, vec![]).supports());
        assert!(!pooling(8, vec![window(1); 4]).supports());
    }
}
