//! More places around a tensor, or fewer.

use bytemuck::{Pod, Zeroable};
use weft_ir::operators::layout::PadMode;
use weft_ir::strides;

use super::divider::Divider;
use super::flat::flat_launch;
use super::widening::{element_name, widening};
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str =
    concat!(include_str!("../../kernels/divider.cuh"), include_str!("../../kernels/pad.cu"));

#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Axis {
    size: Divider,
    before: i32,
    first: i32,
    kept: i32,
    stride: i32,
}

/// One axis of the tensor, and the places to add before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PaddedAxis {
    size: usize,
    before: i64,
    after: i64,
}

impl PaddedAxis {
    fn padded(self) -> usize {
        (self.size as i64 + self.before + self.after) as usize
    }

    fn is_plain(self) -> bool {
        self.before == 0 && self.after == 0
    }
}

/// A tensor to be padded.
#[derive(Clone, Debug)]
pub(crate) struct Padding {
    mode: PadMode,
    storage: Storage,
    axes: Vec<PaddedAxis>,
}

impl Padding {
    /// `None` where nothing of the tensor is left along an axis, or the result is empty.
    pub(crate) fn new(
        mode: PadMode,
        storage: Storage,
        shape: &[usize],
        amounts: &[(i64, i64)],
    ) -> Option<Self> {
        let mut axes: Vec<PaddedAxis> = Vec::with_capacity(shape.len());
        for (&size, &(before, after)) in shape.iter().zip(amounts) {
            let axis = PaddedAxis { size, before, after };
            let kept = size as i64 + before.min(0) + after.min(0);
            if kept <= 0 {
                return None;
            }
            match axes.last_mut() {
                Some(outside) if outside.is_plain() && axis.is_plain() => outside.size *= size,
                _ => axes.push(axis),
            }
        }
        (!axes.is_empty()).then_some(Self { mode, storage, axes })
    }

    /// The launch; `fill` is one element of the constant, as its bytes lie in memory.
    pub(crate) fn launch(&self, fill: &[u8], from: Argument, to: Argument) -> Launch {
        let width = match self.axes.last() {
            Some(inner) if inner.is_plain() => widening(self.storage, [inner.size]),
            _ => 1,
        };
        let mut wide = self.axes.clone();
        if let Some(inner) = wide.last_mut().filter(|_| width > 1) {
            inner.size /= width;
        }
        let sizes: Vec<usize> = wide.iter().map(|axis| axis.size).collect();
        let axes: Vec<Axis> = wide
            .iter()
            .zip(strides(&sizes))
            .rev()
            .map(|(axis, stride)| Axis {
                size: Divider::new(axis.padded()),
                before: axis.before.max(0) as i32,
                first: (-axis.before).max(0) as i32,
                kept: (axis.size as i64 + axis.before.min(0) + axis.after.min(0)) as i32,
                stride: stride as i32,
            })
            .collect();
        let count = wide.iter().map(|axis| axis.padded()).product();
        let arguments = vec![
            from,
            to,
            Argument::Bytes(bytemuck::cast_slice(&axes).to_vec()),
            Argument::Bytes(fill.repeat(width)),
            Argument::u32(count),
        ];
        let source = source(self.mode, axes.len(), width * self.storage.size_bytes());
        flat_launch(source, count, arguments)
    }
}

fn source(mode: PadMode, rank: usize, element_bytes: usize) -> KernelSource {
    let mode = match mode {
        PadMode::Constant => "MODE_CONSTANT",
        PadMode::Edge => "MODE_EDGE",
        PadMode::Reflect => "MODE_REFLECT",
        PadMode::Wrap => "MODE_WRAP",
    };
    let defines = vec![
        ("MODE", mode.to_string()),
        ("RANK", rank.to_string()),
        ("ELEMENT", element_name(element_bytes).to_string()),
    ];
    KernelSource::new("pad.cu", TEXT, "pad", defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    vec![
        source(PadMode::Constant, 4, 16),
        source(PadMode::Edge, 2, 2),
        source(PadMode::Reflect, 3, 4),
        source(PadMode::Wrap, 1, 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(shape: &[usize], amounts: &[(i64, i64)]) -> (Vec<Axis>, Launch) {
        let padding = Padding::new(PadMode::Constant, Storage::F16, shape, amounts).unwrap();
        let launch = padding.launch(&[1, 2], Argument::Input(0), Argument::Output(0));
        let Argument::Bytes(axes) = &launch.arguments[2] else { panic!("{launch:?}") };
        (bytemuck::pod_collect_to_vec(axes), launch)
    }

    #[test]
    fn axes_without_new_places_merge_and_widen() {
        let (axes, launch) = launch(&[2, 4, 5, 24], &[(0, 0), (1, 1), (0, 0), (0, 0)]);
        assert_eq!(axes.len(), 3);
        assert_eq!((axes[0].kept, axes[0].stride), (15, 1));
        assert_eq!((axes[1].before, axes[1].kept, axes[1].stride), (1, 4, 15));
        let Argument::Bytes(fill) = &launch.arguments[3] else { panic!("{launch:?}") };
        assert_eq!(fill, &[1, 2].repeat(8));
    }

    #[test]
    fn negative_amounts_drop_places() {
        let (axes, _) = launch(&[7], &[(-2, 3)]);
        let expected = Axis { size: Divider::new(8), before: 0, first: 2, kept: 5, stride: 1 };
        assert_eq!(axes, [expected]);
        assert!(Padding::new(PadMode::Edge, Storage::F16, &[3], &[(-2, -1)]).is_none());
    }
}
