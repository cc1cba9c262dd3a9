//! Convolutions as cuDNN sees them: channels-last images, and the same padding on both sides.

use weft_ir::Activation;

use super::CallActivation;
use crate::Precision;
use crate::kernels::gemm::Image;

/// `output = activation(windows of the images * filters + bias + residual)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Convolution {
    pub(crate) images: usize,
    pub(crate) image: Image,
    pub(crate) filters: usize,
    pub(crate) has_residual: bool,
    pub(crate) is_relu: bool,
    pub(crate) algorithm: Algorithm,
    pub(crate) precision: Precision,
}

/// Those of cuDNN's algorithms that work on channels-last images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    ImplicitGemm,
    ImplicitPrecomputedGemm,
}

impl Algorithm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ImplicitGemm => "implicit_gemm",
            Self::ImplicitPrecomputedGemm => "implicit_precomp_gemm",
        }
    }
}

impl Convolution {
    /// The convolutions to choose from, one per algorithm; none where cuDNN would compute something else, or nothing.
    pub(crate) fn of(
        images: usize,
        image: Image,
        filters: usize,
        has_residual: bool,
        activation: Option<Activation>,
        precision: Precision,
    ) -> Vec<Self> {
        let is_relu = match CallActivation::of(activation) {
            Some(CallActivation::None) => false,
            Some(CallActivation::Relu) => true,
            Some(CallActivation::GeluTanh) | None => return Vec::new(),
        };
        let is_empty = images == 0 || filters == 0 || image.channels == 0;
        if is_empty || !has_even_padding(&image) || !is_within_32_bits(images, &image, filters) {
            return Vec::new();
        }
        let with = |algorithm| Self {
            images,
            image,
            filters,
            has_residual,
            is_relu,
            algorithm,
            precision,
        };
        // Without an activation cuDNN allows the first of them alone.
        let algorithms = [Algorithm::ImplicitPrecomputedGemm, Algorithm::ImplicitGemm];
        algorithms.into_iter().take(if is_relu { 2 } else { 1 }).map(with).collect()
    }
}

/// True where padding the end as the beginning gives the same number of windows, and so the same windows.
fn has_even_padding(image: &Image) -> bool {
    (0..2).all(|axis| {
        let padded = image.size[axis] + 2 * image.pads_begin[axis];
        let reach = (image.kernel[axis] - 1) * image.dilations[axis] + 1;
        let windows = padded.checked_sub(reach).map(|room| room / image.strides[axis] + 1);
        windows == Some(image.output[axis]) && image.output[axis] > 0
    })
}

/// True where every tensor has fewer elements than cuDNN counts.
fn is_within_32_bits(images: usize, image: &Image, filters: usize) -> bool {
    let product = |sizes: [usize; 4]| {
        sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size))
    };
    let [height, width] = image.size;
    let [rows, columns] = image.output;
    let [tall, wide] = image.kernel;
    [
        product([images, height, width, image.channels]),
        product([images, rows, columns, filters]),
        product([filters, tall, wide, image.channels]),
    ]
    .iter()
    .all(|count| count.is_some_and(|count| count <= i32::MAX as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(size: usize, kernel: usize, stride: usize, pads: [usize; 2]) -> Image {
        Image {
            size: [size; 2],
            channels: 8,
            output: [(size + pads[0] + pads[1] - kernel) / stride + 1; 2],
            kernel: [kernel; 2],
            strides: [stride; 2],
            dilations: [1; 2],
            pads_begin: [pads[0]; 2],
        }
    }

    fn algorithms(image: Image, activation: Option<Activation>) -> Vec<Algorithm> {
        let all = Convolution::of(2, image, 16, false, activation, Precision::F16);
        all.into_iter().map(|convolution| convolution.algorithm).collect()
    }

    #[test]
    fn padding_that_cudnn_cannot_say_is_refused() {
        for (image, is_taken) in [
            (image(14, 3, 1, [1, 1]), true),
            (image(224, 7, 2, [3, 3]), true),
            // The last window does not reach what is padded less.
            (image(224, 7, 2, [3, 2]), true),
            (image(224, 3, 2, [0, 1]), false),
            (image(14, 3, 1, [2, 0]), false),
        ] {
            assert_eq!(!algorithms(image, None).is_empty(), is_taken, "{image:?}");
        }
    }

    #[test]
    fn only_activations_that_cudnn_has_are_taken() {
        let image = image(14, 3, 1, [1, 1]);
        assert_eq!(algorithms(image, None), [Algorithm::ImplicitPrecomputedGemm]);
        assert_eq!(algorithms(image, Some(Activation::Relu)).len(), 2);
        for refused in [Activation::GeluTanh, Activation::Silu, Activation::HardSwish] {
            assert!(algorithms(image, Some(refused)).is_empty(), "{refused:?}");
        }
    }
}
