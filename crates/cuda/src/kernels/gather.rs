//! Slices and single elements picked by indices.

use bytemuck::{Pod, Zeroable, bytes_of, cast_slice};
use weft_ir::axis::around_axis;
use weft_ir::strides;

use super::divider::Divider;
use super::flat::flat_launch;
use super::widening::{element_name, widening};
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str =
    concat!(include_str!("../../kernels/divider.cuh"), include_str!("../../kernels/gather.cu"));

#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct SliceShape {
    after: Divider,
    indices: Divider,
    along: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Axis {
    size: Divider,
    stride: u32,
}

/// Data, indices and the axis that they count along. Nothing is empty.
#[derive(Clone, Debug)]
pub(crate) struct Gathering {
    pub(crate) storage: Storage,
    pub(crate) shape: Vec<usize>,
    pub(crate) axis: usize,
    /// [`Storage::I64`] or [`Storage::I32`].
    pub(crate) index_storage: Storage,
    pub(crate) indices: Vec<usize>,
}

impl Gathering {
    /// True where there is a kernel.
    pub(crate) fn supports(&self) -> bool {
        matches!(self.index_storage, Storage::I64 | Storage::I32)
    }

    /// Slices: the axis becomes the axes of the indices.
    pub(crate) fn slices(&self, from: Argument, indices: Argument, to: Argument) -> Launch {
        let (before, along, after) = around_axis(&self.shape, self.axis);
        let width = widening(self.storage, [after]);
        let picked: usize = self.indices.iter().product();
        let shape = SliceShape {
            after: Divider::new(after / width),
            indices: Divider::new(picked),
            along: along as u32,
        };
        let count = before * picked * (after / width);
        let arguments = vec![
            from,
            indices,
            to,
            Argument::Bytes(bytes_of(&shape).to_vec()),
            Argument::u32(count),
            Argument::Fault,
        ];
        let source = self.source("gather", width, None);
        flat_launch(source, count, arguments)
    }

    /// Single elements: the result has the shape of the indices.
    pub(crate) fn elements(&self, from: Argument, indices: Argument, to: Argument) -> Launch {
        let own = strides(&self.shape);
        let axis = |axis: usize| Axis {
            size: Divider::new(self.indices[axis]),
            stride: if axis == self.axis { 0 } else { own[axis] as u32 },
        };
        let axes: Vec<Axis> = (0..self.indices.len()).rev().map(axis).collect();
        let count = self.indices.iter().product();
        let arguments = vec![
            from,
            indices,
            to,
            Argument::Bytes(cast_slice(&axes).to_vec()),
            Argument::u32(self.shape[self.axis]),
            Argument::u32(own[self.axis]),
            Argument::u32(count),
            Argument::Fault,
        ];
        flat_launch(self.source("gather_elements", 1, Some(axes.len())), count, arguments)
    }

    fn source(&self, entry: &'static str, width: usize, rank: Option<usize>) -> KernelSource {
        let mut defines = vec![
            ("ELEMENT", element_name(width * self.storage.size_bytes()).to_string()),
            ("INDEX", self.index_storage.cuda_name().to_string()),
        ];
        defines.extend(rank.map(|rank| ("RANK", rank.to_string())));
        KernelSource::new("gather.cu", TEXT, entry, defines)
    }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let gathering = Gathering {
        storage: Storage::F16,
        shape: vec![30_522, 768],
        axis: 0,
        index_storage: Storage::I64,
        indices: vec![1, 128],
    };
    let odd = Gathering { index_storage: Storage::I32, shape: vec![3, 7], ..gathering.clone() };
    let arguments = || (Argument::Input(0), Argument::Input(1), Argument::Output(0));
    let slices = |gathering: &Gathering| {
        let (from, indices, to) = arguments();
        gathering.slices(from, indices, to).source
    };
    let (from, indices, to) = arguments();
    vec![slices(&gathering), slices(&odd), odd.elements(from, indices, to).source]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_move_in_wide_elements() {
        let gathering = Gathering {
            storage: Storage::F16,
            shape: vec![5, 10, 24],
            axis: 1,
            index_storage: Storage::I64,
            indices: vec![2, 3],
        };
        let launch = gathering.slices(Argument::Input(0), Argument::Input(1), Argument::Output(0));
        let Argument::Bytes(shape) = &launch.arguments[3] else { panic!("{launch:?}") };
        let expected = SliceShape { after: Divider::new(3), indices: Divider::new(6), along: 10 };
        assert_eq!(bytemuck::pod_read_unaligned::<SliceShape>(shape), expected);
        assert!(matches!(launch.arguments[5], Argument::Fault));
    }

    #[test]
    fn indices_are_of_32_or_64_bits() {
        let gathering = |index_storage| Gathering {
            storage: Storage::F16,
            shape: vec![5],
            axis: 0,
            index_storage,
            indices: vec![2],
        };
        assert!(gathering(Storage::I64).supports() && gathering(Storage::I32).supports());
        assert!(!gathering(Storage::U8).supports());
    }
}
