//! Owns the geometry of a two-dimensional convolution.

/// Why a convolution cannot be prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvError {
    /// A size, stride, dilation or group is zero.
    #[error("convolution with a {what} of zero")]
    Zero {
        /// Which one.
        what: &'static str,
    },
    /// The groups do not divide the channels.
    #[error("{group} groups do not divide {channels_in} input and {channels_out} output channels")]
    Group {
        /// Groups.
        group: usize,
        /// Input channels.
        channels_in: usize,
        /// Output channels.
        channels_out: usize,
    },
    /// The kernel is larger than the padded input.
    #[error("a kernel of extent {kernel} does not fit a padded input of size {padded}")]
    Kernel {
        /// The extent of the dilated kernel.
        kernel: usize,
        /// The size of the padded input along the same axis.
        padded: usize,
    },
    /// A size does not fit the address space.
    #[error("convolution sizes overflow")]
    Overflow,
    /// A slice has another length than the geometry asks for.
    #[error("{what} has {given} elements, not {expected}")]
    Length {
        /// Which slice.
        what: &'static str,
        /// Its length.
        given: usize,
        /// The length that the geometry asks for.
        expected: usize,
    },
    /// The algorithm cannot compute this convolution.
    #[error("{algorithm} cannot compute this convolution")]
    Unsupported {
        /// The algorithm's name.
        algorithm: &'static str,
    },
    /// Memory for constants is exhausted.
    #[error(transparent)]
    Allocation(#[from] crate::AllocationError),
    /// The weights could not be packed.
    #[error(transparent)]
    Pack(#[from] crate::gemm::PackError),
}

/// A two-dimensional convolution: sizes, and how the kernel moves. Pairs are height, width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvProblem {
    /// Images.
    pub batch: usize,
    /// Rows of an input image.
    pub height: usize,
    /// Columns of an input image.
    pub width: usize,
    /// Channels of the input.
    pub channels_in: usize,
    /// Channels of the output.
    pub channels_out: usize,
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// Input pixels between neighbouring output pixels.
    pub strides: [usize; 2],
    /// Input pixels between neighbouring kernel elements.
    pub dilations: [usize; 2],
    /// Zeros above and left of the image.
    pub pads_begin: [usize; 2],
    /// Zeros below and right of the image.
    pub pads_end: [usize; 2],
    /// Parts into which the channels are split; output channels see only the input channels of their part.
    pub group: usize,
}

/// A problem whose sizes are known to be consistent and not to overflow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Geometry {
    pub(crate) problem: ConvProblem,
    pub(crate) output_height: usize,
    pub(crate) output_width: usize,
    pub(crate) input_elements: usize,
    pub(crate) output_elements: usize,
    pub(crate) weight_elements: usize,
}

/// The product of all factors, if it can be the number of elements of a slice of `f32`.
fn elements(factors: &[usize]) -> Result<usize, ConvError> {
    factors
        .iter()
        .try_fold(1usize, |product, &factor| product.checked_mul(factor))
        .filter(|&product| product <= isize::MAX as usize / 64)
        .ok_or(ConvError::Overflow)
}

impl ConvProblem {
    /// The sizes of the padded input and of the output along an axis.
    fn axis(&self, axis: usize, size: usize) -> Result<(usize, usize), ConvError> {
        if self.strides[axis] > i32::MAX as usize || self.dilations[axis] > i32::MAX as usize {
            return Err(ConvError::Overflow);
        }
        let extent = (self.kernel[axis] - 1)
            .checked_mul(self.dilations[axis])
            .and_then(|reach| reach.checked_add(1))
            .ok_or(ConvError::Overflow)?;
        let padded = size
            .checked_add(self.pads_begin[axis])
            .and_then(|sum| sum.checked_add(self.pads_end[axis]))
            .ok_or(ConvError::Overflow)?;
        let room =
            padded.checked_sub(extent).ok_or(ConvError::Kernel { kernel: extent, padded })?;
        Ok((padded, room / self.strides[axis] + 1))
    }

    /// Rows and columns of the output.
    pub fn output_size(&self) -> Result<[usize; 2], ConvError> {
        let geometry = self.geometry()?;
        Ok([geometry.output_height, geometry.output_width])
    }

    /// Floating-point operations of the direct computation: a multiplication and an addition per product.
    pub fn flops(&self) -> Result<u64, ConvError> {
        let geometry = self.geometry()?;
        let per_output = 2 * (geometry.weight_elements / self.channels_out) as u64;
        per_output.checked_mul(geometry.output_elements as u64).ok_or(ConvError::Overflow)
    }

    /// Whether every output channel sees just the input channel with its number.
    pub(crate) fn is_depthwise(&self) -> bool {
        self.group == self.channels_in && self.group == self.channels_out
    }

    pub(crate) fn geometry(&self) -> Result<Geometry, ConvError> {
        let positive = [
            ("batch", self.batch),
            ("height", self.height),
            ("width", self.width),
            ("number of input channels", self.channels_in),
            ("number of output channels", self.channels_out),
            ("kernel height", self.kernel[0]),
            ("kernel width", self.kernel[1]),
            ("vertical stride", self.strides[0]),
            ("horizontal stride", self.strides[1]),
            ("vertical dilation", self.dilations[0]),
            ("horizontal dilation", self.dilations[1]),
            ("number of groups", self.group),
        ];
        if let Some(&(what, _)) = positive.iter().find(|(_, size)| *size == 0) {
            return Err(ConvError::Zero { what });
        }
        if !self.channels_in.is_multiple_of(self.group)
            || !self.channels_out.is_multiple_of(self.group)
        {
            return Err(ConvError::Group {
                group: self.group,
                channels_in: self.channels_in,
                channels_out: self.channels_out,
            });
        }
        let (padded_height, output_height) = self.axis(0, self.height)?;
        let (padded_width, output_width) = self.axis(1, self.width)?;
        // Kernels compute positions in the padded image, so these must be representable too.
        elements(&[self.batch, padded_height, padded_width, self.channels_in])?;
        let [kernel_height, kernel_width] = self.kernel;
        Ok(Geometry {
            problem: *self,
            output_height,
            output_width,
            input_elements: elements(&[self.batch, self.height, self.width, self.channels_in])?,
            output_elements: elements(&[
                self.batch,
                output_height,
                output_width,
                self.channels_out,
            ])?,
            weight_elements: elements(&[
                self.channels_out,
                self.channels_in / self.group,
                kernel_height,
                kernel_width,
            ])?,
        })
    }
}

/// Fails unless a slice has the expected length.
pub(crate) fn check_length(
    what: &'static str,
    slice: &[f32],
    expected: usize,
) -> Result<(), ConvError> {
    let given = slice.len();
    if given == expected { Ok(()) } else { Err(ConvError::Length { what, given, expected }) }
}

impl Geometry {
    /// Fails unless there is one bias per output channel.
    pub(crate) fn check_bias(&self, bias: &[f32]) -> Result<(), ConvError> {
        check_length("the bias", bias, self.problem.channels_out)
    }

    /// Panics unless the activations have the right lengths; a mistake here is the caller's, not the model's.
    pub(crate) fn assert_activations(&self, input: usize, output: usize, residual: Option<usize>) {
        assert_eq!(input, self.input_elements, "length of a convolution's input");
        assert_eq!(output, self.output_elements, "length of a convolution's output");
        if let Some(residual) = residual {
            assert_eq!(residual, self.output_elements, "length of a convolution's residual");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: ConvProblem = ConvProblem {
        batch: 2,
        height: 9,
        width: 7,
        channels_in: 4,
        channels_out: 6,
        kernel: [3, 3],
        strides: [2, 1],
        dilations: [1, 2],
        pads_begin: [1, 0],
        pads_end: [1, 1],
        group: 2,
    };

    #[test]
    fn sizes_follow_the_standard() {
        assert_eq!(PLAIN.output_size(), Ok([5, 4]));
        assert_eq!(PLAIN.flops(), Ok(2 * 2 * 9 * (2 * 5 * 4 * 6)));
    }

    #[test]
    fn hostile_sizes_are_refused() {
        let zero = |what| Err(ConvError::Zero { what });
        let cases = [
            (ConvProblem { group: 0, ..PLAIN }, zero("number of groups")),
            (ConvProblem { strides: [0, 1], ..PLAIN }, zero("vertical stride")),
            (
                ConvProblem { group: 4, ..PLAIN },
                Err(ConvError::Group { group: 4, channels_in: 4, channels_out: 6 }),
            ),
            (
                ConvProblem { kernel: [12, 3], ..PLAIN },
                Err(ConvError::Kernel { kernel: 12, padded: 11 }),
            ),
            (ConvProblem { batch: usize::MAX / 8, ..PLAIN }, Err(ConvError::Overflow)),
            (ConvProblem { pads_end: [usize::MAX, 0], ..PLAIN }, Err(ConvError::Overflow)),
            (ConvProblem { dilations: [usize::MAX, 1], ..PLAIN }, Err(ConvError::Overflow)),
        ];
        for (problem, expected) in cases {
            assert_eq!(problem.output_size(), expected, "{problem:?}");
        }
    }
}
