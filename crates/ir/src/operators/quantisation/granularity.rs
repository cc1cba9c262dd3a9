//! Granularity: which scale belongs to which element.

use crate::axis::normalise_axis;
use crate::error::OperatorError;
use crate::tensor::element_count;

/// How scales map onto elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Granularity {
    /// One scale for all.
    PerTensor,
    /// One scale per index of an axis.
    PerAxis { along: usize, after: usize },
    /// One scale per `size` neighbours along an axis.
    Blocked { size: usize, blocks: usize, along: usize, after: usize },
}

impl Granularity {
    /// The granularity that scales of shape `scale` have on elements of shape `shape`.
    pub(super) fn new(
        shape: &[usize],
        scale: &[usize],
        axis: i64,
        block_size: usize,
    ) -> Result<Self, OperatorError> {
        if element_count(scale) == Some(1) && block_size == 0 {
            return Ok(Self::PerTensor);
        }
        let refuse = || OperatorError::Shapes { left: shape.to_vec(), right: scale.to_vec() };
        // Of a vector there is only one axis to choose, whatever the default says.
        let axis = if shape.len() == 1 { 0 } else { normalise_axis(axis, shape.len())? };
        let along = shape[axis];
        let after = element_count(&shape[axis + 1..]).ok_or_else(refuse)?;
        if block_size == 0 {
            if scale != [along] {
                return Err(refuse());
            }
            return Ok(Self::PerAxis { along, after });
        }
        let blocks = along.div_ceil(block_size);
        let mut expected = shape.to_vec();
        expected[axis] = blocks;
        if scale != expected {
            return Err(refuse());
        }
        Ok(Self::Blocked { size: block_size, blocks, along, after })
    }

    /// The scale of the element at a place in row-major order.
    pub(super) fn scale_of(self, place: usize) -> usize {
        match self {
            Self::PerTensor => 0,
            Self::PerAxis { along, after } => place / after % along,
            Self::Blocked { size, blocks, along, after } => {
                let (line, inner) = (place / after, place % after);
                (line / along * blocks + line % along / size) * after + inner
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_element_finds_its_scale() {
        let places = |shape: &[usize], scale: &[usize], axis, block| {
            let granularity = Granularity::new(shape, scale, axis, block).ok()?;
            Some((0..shape.iter().product()).map(|i| granularity.scale_of(i)).collect::<Vec<_>>())
        };
        assert_eq!(places(&[2, 2], &[1], 1, 0), Some(vec![0, 0, 0, 0]));
        assert_eq!(places(&[2, 2], &[2], 0, 0), Some(vec![0, 0, 1, 1]));
        assert_eq!(places(&[2, 2], &[2], -1, 0), Some(vec![0, 1, 0, 1]));
        assert_eq!(places(&[3], &[3], 1, 0), Some(vec![0, 1, 2]));
        // A last block may be shorter.
        assert_eq!(places(&[2, 3], &[2, 2], 1, 2), Some(vec![0, 0, 1, 2, 2, 3]));
        assert_eq!(places(&[3, 2], &[2, 2], 0, 2), Some(vec![0, 1, 0, 1, 2, 3]));
        for (scale, axis, block) in
            [(&[3][..], 1, 0), (&[2], 2, 0), (&[1, 2], 1, 2), (&[2, 2], 0, 0), (&[], 1, 2)]
        {
            assert_eq!(places(&[2, 2], scale, axis, block), None, "{scale:?}");
        }
    }
}
