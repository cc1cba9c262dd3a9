//! Batches of images with channels: how their shapes split, and where one channel of one image lies.

use crate::error::OperatorError;

/// The parts of an image tensor's shape; `T` is a dimension, known or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageShape<T> {
    pub(crate) batch: T,
    pub(crate) channels: T,
    pub(crate) spatial: Vec<T>,
    /// The channels stand after the spatial axes instead of before them.
    pub(crate) channels_last: bool,
}

impl<T: Copy> ImageShape<T> {
    /// Splits a shape, which must have a spatial axis.
    pub(crate) fn split(shape: &[T], channels_last: bool) -> Result<Self, OperatorError> {
        match *shape {
            [batch, ref spatial @ .., channels] if channels_last && !spatial.is_empty() => {
                Ok(Self { batch, channels, spatial: spatial.to_vec(), channels_last })
            }
            [batch, channels, ref spatial @ ..] if !channels_last && !spatial.is_empty() => {
                Ok(Self { batch, channels, spatial: spatial.to_vec(), channels_last })
            }
            _ => Err(OperatorError::Invalid(format!("images of rank {}", shape.len()))),
        }
    }

    /// The shape put together again.
    pub(crate) fn joined(&self) -> Vec<T> {
        let mut shape = vec![self.batch];
        if self.channels_last {
            shape.extend_from_slice(&self.spatial);
            shape.push(self.channels);
        } else {
            shape.push(self.channels);
            shape.extend_from_slice(&self.spatial);
        }
        shape
    }
}

impl ImageShape<usize> {
    /// Elements of one channel of one image. Only for shapes of tensors that exist, whose sizes cannot overflow.
    pub(crate) fn positions(&self) -> usize {
        self.spatial.iter().product()
    }

    /// Where one channel of one image lies.
    pub(crate) fn plane(&self, image: usize, channel: usize) -> Plane {
        let positions = self.positions();
        if self.channels_last {
            Plane { start: image * positions * self.channels + channel, step: self.channels }
        } else {
            Plane { start: (image * self.channels + channel) * positions, step: 1 }
        }
    }

    /// Every channel of every image.
    pub(crate) fn planes(&self) -> impl Iterator<Item = Plane> + '_ {
        let images = (0..self.batch).flat_map(|image| (0..self.channels).map(move |c| (image, c)));
        images.map(|(image, channel)| self.plane(image, channel))
    }
}

/// One channel of one image: position `p` lies at `start + p * step`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plane {
    pub(crate) start: usize,
    pub(crate) step: usize,
}

impl Plane {
    /// Where a position lies.
    pub(crate) fn at(self, position: usize) -> usize {
        self.start + position * self.step
    }
}

/// Whether images permuted like this have their channels last, given where they were; `None` where neither holds.
pub(crate) fn channels_last_after(channels_last: bool, permutation: &[usize]) -> Option<bool> {
    let rank = permutation.len();
    if rank < 3 {
        return None;
    }
    let to_last: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    let to_first: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    match channels_last {
        false if permutation == to_last => Some(true),
        true if permutation == to_first => Some(false),
        _ if permutation.iter().copied().eq(0..rank) => Some(channels_last),
        _ => None,
    }
}
