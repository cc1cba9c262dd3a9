//! Parts that lie one after the other in the rows of a whole: concatenation and splitting.

use bytemuck::bytes_of;

use super::divider::Divider;
use super::flat::flat_launch;
use super::widening::{element_name, widening};
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str =
    concat!(include_str!("../../kernels/divider.cuh"), include_str!("../../kernels/joined.cu"));

/// The most parts that one launch moves, as the template has them.
const MAX_PARTS: usize = 8;

/// Which way the elements go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The whole is made of the parts.
    Concatenating,
    /// The parts are taken from the whole.
    Splitting,
}

/// A whole of `rows` rows and its parts, each with its columns.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    pub(crate) direction: Direction,
    pub(crate) storage: Storage,
    pub(crate) rows: usize,
    /// The columns of each part and where it lies; [`Argument::Null`] for a part that is not written.
    pub(crate) parts: Vec<(usize, Argument)>,
    pub(crate) whole: Argument,
}

impl Joined {
    /// One launch for up to eight parts; none where there is nothing to move.
    pub(crate) fn launches(&self) -> Vec<Launch> {
        let width = widening(self.storage, self.parts.iter().map(|part| part.0));
        let whole: usize = self.parts.iter().map(|part| part.0 / width).sum();
        let parts: Vec<&(usize, Argument)> = self.parts.iter().filter(|part| part.0 > 0).collect();
        let mut first = 0;
        let mut launches = Vec::new();
        for group in parts.chunks(MAX_PARTS) {
            let ends: Vec<u32> = group
                .iter()
                .scan(0, |end, part| {
                    *end += (part.0 / width) as u32;
                    Some(*end)
                })
                .collect();
            let columns = ends.last().map_or(0, |&end| end as usize);
            let count = self.rows * columns;
            if count > 0 {
                let mut shape = bytes_of(&Divider::new(columns)).to_vec();
                shape.extend_from_slice(bytes_of(&[first as u32, whole as u32]));
                shape.extend_from_slice(bytemuck::cast_slice(&ends));
                let pointers = group.iter().map(|part| part.1.clone());
                let mut arguments =
                    vec![self.whole.clone(), Argument::Bytes(shape), Argument::u32(count)];
                arguments.extend(pointers.chain(std::iter::repeat(Argument::Null)).take(MAX_PARTS));
                let source = source(self.direction, width * self.storage.size_bytes(), group.len());
                launches.push(flat_launch(source, count, arguments));
            }
            first += columns;
        }
        launches
    }
}

fn source(direction: Direction, element_bytes: usize, parts: usize) -> KernelSource {
    let defines = vec![
        ("SPLITTING", u32::from(direction == Direction::Splitting).to_string()),
        ("ELEMENT", element_name(element_bytes).to_string()),
        ("PARTS", parts.to_string()),
    ];
    KernelSource::new("joined.cu", TEXT, "joined", defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    vec![
        source(Direction::Concatenating, 16, 2),
        source(Direction::Concatenating, 2, 8),
        source(Direction::Splitting, 16, 3),
        source(Direction::Splitting, 1, 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(rows: usize, columns: &[usize]) -> Joined {
        Joined {
            direction: Direction::Concatenating,
            storage: Storage::F16,
            rows,
            parts: columns.iter().map(|&size| (size, Argument::Null)).collect(),
            whole: Argument::Output(0),
        }
    }

    /// The fields of the kernel's `Joined` after the divider, and the count.
    fn numbers(launch: &Launch) -> (Vec<u32>, u32) {
        let [_, Argument::Bytes(shape), Argument::Bytes(count), ..] = &launch.arguments[..] else {
            panic!("{launch:?}");
        };
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(shape);
        (words[3..].to_vec(), u32::from_ne_bytes(count[..].try_into().unwrap()))
    }

    #[test]
    fn parts_move_in_as_wide_elements_as_all_of_them_allow() {
        let launches = joined(10, &[64, 0, 32]).launches();
        assert_eq!(launches.len(), 1);
        assert_eq!(numbers(&launches[0]), (vec![0, 12, 8, 12], 120));
        assert_eq!(numbers(&joined(10, &[64, 3]).launches()[0]), (vec![0, 67, 64, 67], 670));
    }

    #[test]
    fn many_parts_take_several_launches() {
        let launches = joined(5, &[8; 11]).launches();
        assert_eq!(launches.len(), 2);
        assert_eq!(numbers(&launches[0]), ([vec![0, 11], (1..=8).collect()].concat(), 40));
        assert_eq!(numbers(&launches[1]), (vec![8, 11, 1, 2, 3], 15));
        assert!(launches.iter().all(|launch| launch.arguments.len() == 3 + MAX_PARTS));
    }

    #[test]
    fn nothing_is_launched_for_nothing() {
        assert!(joined(0, &[4, 4]).launches().is_empty());
        assert!(joined(4, &[0]).launches().is_empty());
    }
}
