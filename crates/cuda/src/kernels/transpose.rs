//! Two axes swapped through tiles in shared memory, so that both sides are read and written in long runs.

use bytemuck::{Pod, Zeroable, bytes_of};

use super::divider::Divider;
use super::interleave::interleaving;
use super::view::{View, ViewAxis};
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str = concat!(
    include_str!("../../kernels/conversion.cuh"),
    include_str!("../../kernels/divider.cuh"),
    include_str!("../../kernels/transpose.cu")
);

/// Threads of a block, as the template has them.
const THREADS: u32 = 256;
/// Elements of a tile.
const TILE_ELEMENTS: usize = 1024;
/// A tile's side along an axis that is long enough.
const TILE_SIDE: usize = 32;

/// An axis that stands outside, as kernels declare it.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct OuterAxis {
    size: Divider,
    from_stride: u32,
    to_stride: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Inner {
    tiles_across: Divider,
    tiles_inner: Divider,
    across: u32,
    inner: u32,
    inner_stride: u32,
    across_stride: u32,
}

/// A view whose innermost axis is not the one along which the tensor is contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transposition {
    pub(super) offset: usize,
    /// The rest, outermost first, each with its distance in the target.
    pub(super) outer: Vec<(ViewAxis, usize)>,
    /// Along it the tensor is contiguous, and the target's elements lie `across_stride` apart.
    pub(super) across: usize,
    pub(super) across_stride: usize,
    /// Along it the target is contiguous.
    pub(super) inner: ViewAxis,
}

impl Transposition {
    /// The view as a transposition; `None` where it is none, or one too small to gain from tiles.
    pub(crate) fn of(view: &View) -> Option<Self> {
        let view = view.merged();
        let (&inner, outer) = view.axes.split_last()?;
        let place = outer.iter().position(|axis| axis.stride == 1)?;
        let is_forward = outer.iter().all(|axis| axis.stride >= 0);
        if inner.stride <= 1 || outer[place].size < 4 || !is_forward {
            return None;
        }
        let sizes: Vec<usize> = view.axes.iter().map(|axis| axis.size).collect();
        let mut outer: Vec<(ViewAxis, usize)> =
            outer.iter().copied().zip(weft_ir::strides(&sizes)).collect();
        let (across, across_stride) = outer.remove(place);
        Some(Self { offset: view.offset, outer, across: across.size, across_stride, inner })
    }

    /// A tile's sides, across and along the innermost axis: long where the other axis is short.
    fn tile(&self) -> [usize; 2] {
        let side = |size: usize| size.next_power_of_two().min(TILE_SIDE);
        let (across, inner) = (side(self.across), side(self.inner.size));
        if across < inner {
            [across, TILE_ELEMENTS / across]
        } else {
            [TILE_ELEMENTS / inner, inner]
        }
    }

    /// The launch, which converts the elements on the way.
    pub(crate) fn launch(
        &self,
        from: Storage,
        to: Storage,
        source: Argument,
        target: Argument,
    ) -> Launch {
        let operands = [source, target];
        interleaving(self, from, to, &operands).unwrap_or_else(|| self.tiled(from, to, operands))
    }

    /// The axes that stand outside as kernels take them, the innermost first.
    pub(super) fn outer_axes(&self) -> Vec<u8> {
        let bytes = |(axis, to_stride): &(ViewAxis, usize)| {
            let axis = OuterAxis {
                size: Divider::new(axis.size),
                from_stride: axis.stride as u32,
                to_stride: *to_stride as u32,
            };
            bytes_of(&axis).to_vec()
        };
        match self.outer.is_empty() {
            true => bytes_of(&OuterAxis::default()).to_vec(),
            false => self.outer.iter().rev().flat_map(bytes).collect(),
        }
    }

    fn tiled(&self, from: Storage, to: Storage, [source, target]: [Argument; 2]) -> Launch {
        let tile = self.tile();
        let tiles = [self.across.div_ceil(tile[0]), self.inner.size.div_ceil(tile[1])];
        let mut shape = self.outer_axes();
        shape.extend_from_slice(bytes_of(&Inner {
            tiles_across: Divider::new(tiles[0]),
            tiles_inner: Divider::new(tiles[1]),
            across: self.across as u32,
            inner: self.inner.size as u32,
            inner_stride: self.inner.stride as u32,
            across_stride: self.across_stride as u32,
        }));
        let outer: usize = self.outer.iter().map(|(axis, _)| axis.size).product();
        Launch {
            source: kernel(from, to, self.outer.len(), tile),
            grid: [(outer * tiles[0] * tiles[1]) as u32, 1, 1],
            threads: THREADS,
            shared_bytes: 0,
            cluster: [1, 1, 1],
            arguments: vec![source, target, Argument::Bytes(shape), Argument::u32(self.offset)],
        }
    }
}

/// The types of elements that go from one storage to another: bits where they stay what they are.
pub(super) fn moved_types(from: Storage, to: Storage) -> [(&'static str, String); 2] {
    let (from, to) = match from == to {
        true => (from.bits_name(), to.bits_name()),
        false => (from.cuda_name(), to.cuda_name()),
    };
    [("FROM", from.to_string()), ("TO", to.to_string())]
}

fn kernel(from: Storage, to: Storage, outer_rank: usize, tile: [usize; 2]) -> KernelSource {
    let [from, to] = moved_types(from, to);
    let defines = vec![
        from,
        to,
        ("OUTER_RANK", outer_rank.to_string()),
        ("TILE_ACROSS", tile[0].to_string()),
        ("TILE_INNER", tile[1].to_string()),
    ];
    KernelSource::new("transpose.cu", TEXT, "transpose", defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    vec![
        kernel(Storage::F32, Storage::F16, 1, [256, 4]),
        kernel(Storage::F16, Storage::F16, 1, [32, 32]),
        kernel(Storage::Bf16, Storage::F32, 0, [4, 32]),
        kernel(Storage::I64, Storage::I64, 3, [32, 32]),
        kernel(Storage::Bool, Storage::Bool, 2, [32, 32]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::view::tests::places;
    use proptest::prelude::*;

    fn transposition(shape: &[usize], permutation: &[usize]) -> Option<Transposition> {
        Transposition::of(&View::whole(shape).permuted(permutation))
    }

    #[test]
    fn only_turned_axes_are_transpositions() {
        assert!(transposition(&[1, 3, 224, 224], &[0, 2, 3, 1]).is_some());
        assert!(transposition(&[2, 7, 7, 512], &[0, 3, 1, 2]).is_some());
        assert!(transposition(&[1, 128, 12, 64], &[0, 2, 1, 3]).is_none());
        assert!(transposition(&[6, 6], &[0, 1]).is_none());
        assert!(Transposition::of(&View::whole(&[4, 9]).sliced(1, 0, 2, 4)).is_none());
    }

    #[test]
    fn tiles_follow_the_shorter_axis() {
        let tile = |shape: &[usize], permutation: &[usize]| {
            transposition(shape, permutation).unwrap().tile()
        };
        assert_eq!(tile(&[1, 3, 224, 224], &[0, 2, 3, 1]), [256, 4]);
        assert_eq!(tile(&[1, 50176, 4], &[0, 2, 1]), [4, 256]);
        assert_eq!(tile(&[512, 512], &[1, 0]), [32, 32]);
    }

    proptest! {
        #[test]
        fn every_element_moves_to_its_place(
            shape in prop::collection::vec(1usize..7, 2..5),
            seed in any::<u64>(),
        ) {
            let mut permutation: Vec<usize> = (0..shape.len()).collect();
            permutation.sort_by_key(|&axis| seed.rotate_left(axis as u32 * 13) % 97);
            let view = View::whole(&shape).permuted(&permutation);
            let Some(turned) = Transposition::of(&view) else { return Ok(()) };
            let mut moved = vec![None; view.len()];
            let mut starts = vec![(turned.offset, 0)];
            for (axis, to_stride) in &turned.outer {
                let along = |(from, to): (usize, usize)| {
                    (0..axis.size).map(move |i| (from + i * axis.stride as usize, to + i * to_stride))
                };
                starts = starts.into_iter().flat_map(along).collect();
            }
            for (from, to) in starts {
                for across in 0..turned.across {
                    for inner in 0..turned.inner.size {
                        let to = to + across * turned.across_stride + inner;
                        let from = from + across + inner * turned.inner.stride as usize;
                        prop_assert_eq!(moved[to].replace(from), None);
                    }
                }
            }
            let expected: Vec<_> = places(&view).into_iter().map(Some).collect();
            prop_assert_eq!(moved, expected);
        }
    }
}
