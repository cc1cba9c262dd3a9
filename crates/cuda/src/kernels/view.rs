//! Views: what operators that only move elements read, in the order in which they write it.

use weft_ir::strides;

/// One axis of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ViewAxis {
    pub(crate) size: usize,
    /// From one element to the next in the tensor; negative to go backwards, zero to repeat.
    pub(crate) stride: isize,
}

/// Elements of a dense tensor, in the order of the axes, the last of which runs fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// Where the first element lies.
    pub(crate) offset: usize,
    pub(crate) axes: Vec<ViewAxis>,
}

impl View {
    /// All of a tensor.
    pub(crate) fn whole(shape: &[usize]) -> Self {
        let axes = shape.iter().zip(strides(shape));
        let axis = |(&size, stride): (&usize, usize)| ViewAxis { size, stride: stride as isize };
        Self { offset: 0, axes: axes.map(axis).collect() }
    }

    /// The axes in another order: axis `i` is axis `permutation[i]` of this one.
    pub(crate) fn permuted(&self, permutation: &[usize]) -> Self {
        let axes = permutation.iter().map(|&axis| self.axes[axis]).collect();
        Self { offset: self.offset, axes }
    }

    /// From `start` on, `count` elements at distances of `step` along one axis; `count` is not zero.
    pub(crate) fn sliced(mut self, axis: usize, start: usize, step: i64, count: usize) -> Self {
        let stride = self.axes[axis].stride;
        self.offset = (self.offset as isize + start as isize * stride) as usize;
        // A step past the end is never taken, and its product could overflow.
        let stride = if count == 1 { 0 } else { stride * step as isize };
        self.axes[axis] = ViewAxis { size: count, stride };
        self
    }

    /// A tensor of shape `from` repeated along the axes where it is 1, to fill `to`.
    pub(crate) fn broadcast(from: &[usize], to: &[usize]) -> Self {
        let missing = to.len() - from.len();
        let own = Self::whole(from).axes;
        let axis = |(axis, &size): (usize, &usize)| match axis.checked_sub(missing) {
            Some(axis) if from[axis] == size => own[axis],
            _ => ViewAxis { size, stride: 0 },
        };
        Self { offset: 0, axes: to.iter().enumerate().map(axis).collect() }
    }

    /// A tensor repeated as a whole along each axis.
    pub(crate) fn tiled(shape: &[usize], repeats: &[usize]) -> Self {
        let own = Self::whole(shape).axes;
        let pair =
            |(&repeat, axis): (&usize, ViewAxis)| [ViewAxis { size: repeat, stride: 0 }, axis];
        Self { offset: 0, axes: repeats.iter().zip(own).flat_map(pair).collect() }
    }

    /// The same view with as few axes as will do; at least one.
    pub(crate) fn merged(&self) -> Self {
        let mut axes: Vec<ViewAxis> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().copied().filter(|axis| axis.size != 1) {
            match axes.last_mut() {
                Some(outside) if outside.stride == axis.size as isize * axis.stride => {
                    *outside = ViewAxis { size: outside.size * axis.size, stride: axis.stride };
                }
                _ => axes.push(axis),
            }
        }
        if axes.is_empty() {
            axes.push(ViewAxis { size: 1, stride: 1 });
        }
        Self { offset: self.offset, axes }
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        self.axes.iter().map(|axis| axis.size).product()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Where every element lies, in order.
    pub(crate) fn places(view: &View) -> Vec<usize> {
        let mut places = vec![view.offset as isize];
        for axis in &view.axes {
            let along =
                |place: isize| (0..axis.size as isize).map(move |i| place + i * axis.stride);
            places = places.into_iter().flat_map(along).collect();
        }
        places.into_iter().map(|place| usize::try_from(place).unwrap()).collect()
    }

    #[test]
    fn axes_that_run_on_merge() {
        let shape = [2, 3, 4, 5];
        assert_eq!(View::whole(&shape).merged().axes, [ViewAxis { size: 120, stride: 1 }]);
        let channels_last = View::whole(&shape).permuted(&[0, 2, 3, 1]).merged();
        let axis = |size, stride| ViewAxis { size, stride };
        assert_eq!(channels_last.axes, [axis(2, 60), axis(20, 1), axis(3, 20)]);
        let repeated = View::broadcast(&[1, 1, 5], &[2, 4, 5]).merged();
        assert_eq!(repeated.axes, [axis(8, 0), axis(5, 1)]);
        assert_eq!(View::whole(&[]).merged().axes, [axis(1, 1)]);
    }

    #[test]
    fn slices_may_run_backwards() {
        let view = View::whole(&[2, 5]).sliced(1, 4, -2, 3);
        assert_eq!(places(&view), [4, 2, 0, 9, 7, 5]);
    }

    #[test]
    fn tiles_repeat_the_whole() {
        assert_eq!(places(&View::tiled(&[2, 2], &[1, 2])), [0, 1, 0, 1, 2, 3, 2, 3]);
        assert_eq!(places(&View::tiled(&[2], &[3])), [0, 1, 0, 1, 0, 1]);
    }

    proptest! {
        #[test]
        fn merging_moves_nothing(
            shape in prop::collection::vec(1usize..5, 1..5),
            order in any::<prop::sample::Index>(),
            start in 0usize..3,
        ) {
            let mut permutation: Vec<usize> = (0..shape.len()).collect();
            permutation.rotate_left(order.index(shape.len()));
            let start = start.min(shape[0] - 1);
            let view = View::whole(&shape).sliced(0, start, 1, shape[0] - start);
            let view = view.permuted(&permutation);
            prop_assert_eq!(places(&view.merged()), places(&view));
        }
    }
}
