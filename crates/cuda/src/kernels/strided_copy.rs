//! A view of a tensor, copied to a dense one.

use bytemuck::{Pod, Zeroable};

use super::divider::Divider;
use super::flat::flat_launch;
use super::view::View;
use super::widening::{element_name, widening};
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str = concat!(
    include_str!("../../kernels/divider.cuh"),
    include_str!("../../kernels/strided_copy.cu")
);

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Axis {
    size: Divider,
    stride: i32,
}

/// The launch that writes the elements of a view one after the other. The view is not empty.
pub(crate) fn strided_copy_launch(
    view: &View,
    storage: Storage,
    from: Argument,
    to: Argument,
) -> Launch {
    let view = view.merged();
    let width = width(&view, storage);
    let wide = widened(&view, width);
    let axes: Vec<Axis> = wide
        .axes
        .iter()
        .rev()
        .map(|axis| Axis { size: Divider::new(axis.size), stride: axis.stride as i32 })
        .collect();
    let arguments = vec![
        from,
        to,
        Argument::Bytes(bytemuck::cast_slice(&axes).to_vec()),
        Argument::u32(wide.offset),
        Argument::u32(wide.len()),
    ];
    flat_launch(source(axes.len(), width * storage.size_bytes()), wide.len(), arguments)
}

/// How many neighbours move as one: such as lie together on both sides.
fn width(view: &View, storage: Storage) -> usize {
    match view.axes.split_last() {
        Some((inner, outer)) if inner.stride == 1 => {
            let strides = outer.iter().map(|axis| axis.stride.unsigned_abs());
            widening(storage, strides.chain([view.offset, inner.size]))
        }
        _ => 1,
    }
}

/// The view in elements of `width` neighbours.
fn widened(view: &View, width: usize) -> View {
    let mut wide = view.clone();
    let Some((inner, outer)) = wide.axes.split_last_mut() else { return wide };
    if width > 1 {
        inner.size /= width;
        wide.offset /= width;
        outer.iter_mut().for_each(|axis| axis.stride /= width as isize);
    }
    wide
}

fn source(rank: usize, element_bytes: usize) -> KernelSource {
    let defines =
        vec![("RANK", rank.to_string()), ("ELEMENT", element_name(element_bytes).to_string())];
    KernelSource::new("strided_copy.cu", TEXT, "strided_copy", defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    vec![source(1, 16), source(2, 4), source(3, 8), source(4, 1), source(5, 2)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::view::tests::places;
    use proptest::prelude::*;

    #[test]
    fn neighbours_move_together_where_they_can() {
        let heads = View::whole(&[1, 128, 12, 64]).permuted(&[0, 2, 1, 3]).merged();
        assert_eq!(width(&heads, Storage::F16), 8);
        let odd = View::whole(&[4, 7]).sliced(0, 1, 2, 2).merged();
        assert_eq!(width(&odd, Storage::F16), 1);
        let shifted = View::whole(&[4, 8]).sliced(1, 4, 1, 4).merged();
        assert_eq!(width(&shifted, Storage::F16), 4);
        let turned = View::whole(&[8, 16]).permuted(&[1, 0]).merged();
        assert_eq!(width(&turned, Storage::F16), 1);
    }

    proptest! {
        #[test]
        fn wide_elements_cover_the_view(
            shape in prop::collection::vec(prop::sample::select(vec![1usize, 2, 3, 4, 8]), 1..4),
            start in 0usize..8,
            axis in any::<prop::sample::Index>(),
        ) {
            let axis = axis.index(shape.len());
            let start = start % shape[axis];
            let view = View::whole(&shape).sliced(axis, start, 1, shape[axis] - start);
            for storage in [Storage::F16, Storage::F32, Storage::U8] {
                let merged = view.merged();
                let width = width(&merged, storage);
                let wide = places(&widened(&merged, width)).into_iter();
                let narrow = wide.flat_map(|place| place * width..(place + 1) * width);
                prop_assert_eq!(narrow.collect::<Vec<_>>(), places(&view));
            }
        }
    }
}
