//! A few planes as one of pixels, such as the channels of an image: transpositions too narrow for tiles.

use bytemuck::bytes_of;

use super::divider::Divider;
use super::flat::flat_launch;
use super::transpose::{Transposition, moved_types};
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str = concat!(
    include_str!("../../kernels/conversion.cuh"),
    include_str!("../../kernels/divider.cuh"),
    include_str!("../../kernels/interleave.cu")
);

/// Neighbours of each plane that a thread moves.
const PIXELS: usize = 4;

/// The most planes that are few.
const MAX_PLANES: usize = 4;

/// The launch of a transposition that brings a few planes together, from the first operand to the second; `None` where it
/// does not, or where loads of neighbours do not fit.
pub(super) fn interleaving(
    transposition: &Transposition,
    from: Storage,
    to: Storage,
    operands: &[Argument; 2],
) -> Option<Launch> {
    let Transposition { offset, outer, across, across_stride, inner } = transposition;
    let plane_stride = inner.stride as usize;
    let distances = outer.iter().flat_map(|(axis, to_stride)| [axis.stride as usize, *to_stride]);
    let fits = inner.size <= MAX_PLANES
        && *across_stride == inner.size
        && [*offset, *across, plane_stride]
            .into_iter()
            .chain(distances)
            .all(|distance| distance.is_multiple_of(PIXELS));
    if !fits {
        return None;
    }
    let mut shape = transposition.outer_axes();
    shape.extend_from_slice(bytes_of(&Divider::new(across / PIXELS)));
    shape.extend_from_slice(&(plane_stride as u32).to_ne_bytes());
    let pieces = outer.iter().map(|(axis, _)| axis.size).product::<usize>() * (across / PIXELS);
    let [source, target] = operands.clone();
    let arguments =
        vec![source, target, Argument::Bytes(shape), Argument::u32(*offset), Argument::u32(pieces)];
    Some(flat_launch(kernel(from, to, outer.len(), inner.size), pieces, arguments))
}

fn kernel(from: Storage, to: Storage, outer_rank: usize, planes: usize) -> KernelSource {
    let [from, to] = moved_types(from, to);
    let defines = vec![
        from,
        to,
        ("OUTER_RANK", outer_rank.to_string()),
        ("PIXELS", PIXELS.to_string()),
        ("PLANES", planes.to_string()),
    ];
    KernelSource::new("interleave.cu", TEXT, "interleave", defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    vec![
        kernel(Storage::F32, Storage::F16, 1, 3),
        kernel(Storage::F16, Storage::F16, 0, 4),
        kernel(Storage::I64, Storage::I64, 2, 2),
        kernel(Storage::Bool, Storage::Bool, 1, 3),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::view::View;

    fn template(shape: &[usize], permutation: &[usize]) -> &'static str {
        let view = View::whole(shape).permuted(permutation);
        let transposition = Transposition::of(&view).unwrap();
        let (source, target) = (Argument::Input(0), Argument::Output(0));
        transposition.launch(Storage::F32, Storage::F16, source, target).source.template
    }

    #[test]
    fn a_few_planes_whose_neighbours_can_be_loaded_together_are_interleaved() {
        assert_eq!(template(&[2, 3, 224, 224], &[0, 2, 3, 1]), "interleave.cu");
        assert_eq!(template(&[4, 60], &[1, 0]), "interleave.cu");
        assert_eq!(template(&[2, 3, 9, 7], &[0, 2, 3, 1]), "transpose.cu");
        assert_eq!(template(&[2, 5, 8, 8], &[0, 2, 3, 1]), "transpose.cu");
        // The other way round the source is contiguous along the short axis.
        assert_eq!(template(&[2, 8, 8, 4], &[0, 3, 1, 2]), "transpose.cu");
    }

    #[test]
    fn threads_cover_every_pixel() {
        let view = View::whole(&[2, 3, 10, 14]).permuted(&[0, 2, 3, 1]);
        let transposition = Transposition::of(&view).unwrap();
        let operands = [Argument::Null, Argument::Null];
        let launch = interleaving(&transposition, Storage::F32, Storage::F16, &operands).unwrap();
        assert!(launch.grid[0] as usize * launch.threads as usize * PIXELS >= 2 * 10 * 14);
    }
}
