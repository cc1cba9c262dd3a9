//! A product in words, as choices know it.

use std::fmt;

use super::problem::{GemmProblem, Image, Left};

/// All that a candidate's time depends on, apart from the precision and the partition.
impl fmt::Display for GemmProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { m, n, k, stack, .. } = *self;
        match self.left {
            Left::Matrix { stride } => {
                if stack > 1 {
                    write!(f, "{stack} x ")?;
                }
                write!(f, "product {m}x{n}x{k}")?;
                if stride != k {
                    write!(f, ", rows {stride} apart")?;
                }
            }
            Left::Image(image) => self.image(f, &image)?,
        }
        let right = self.right;
        if right.by_rows {
            write!(f, ", right by rows {} apart", right.stride)?;
        } else if right.stride != k {
            write!(f, ", filters {} apart", right.stride)?;
        }
        if !right.is_weights {
            write!(f, ", right computed")?;
        }
        if stack > 1 {
            let [left, right, output] = self.stack_steps;
            write!(f, ", steps {left} {right} {output}")?;
        }
        if self.bias.is_some() {
            write!(f, ", bias")?;
        }
        if self.has_residual {
            write!(f, ", residual")?;
        }
        match self.activation {
            Some(activation) => write!(f, ", {activation:?}"),
            None => Ok(()),
        }
    }
}

impl GemmProblem {
    fn image(&self, f: &mut fmt::Formatter<'_>, image: &Image) -> fmt::Result {
        let Image { size, channels, output, kernel, strides, dilations, pads_begin } = image;
        let images = self.m / (output[0] * output[1]).max(1);
        let [height, width] = size;
        write!(f, "conv {images}x{height}x{width}x{channels} -> ")?;
        write!(f, "{}x{}x{}, {}x{}", output[0], output[1], self.n, kernel[0], kernel[1])?;
        let pair = |values: &[usize; 2]| match values {
            [first, second] if first == second => first.to_string(),
            [first, second] => format!("{first}x{second}"),
        };
        write!(f, ", stride {}, pad {}", pair(strides), pair(pads_begin))?;
        if *dilations != [1, 1] {
            write!(f, ", dilation {}", pair(dilations))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::Right;
    use super::*;
    use crate::{Precision, Storage};

    #[test]
    fn problems_with_other_work_have_other_words() {
        let image = Image {
            size: [56, 56],
            channels: 64,
            output: [28, 28],
            kernel: [3, 3],
            strides: [2, 2],
            dilations: [1, 1],
            pads_begin: [1, 1],
        };
        let conv = GemmProblem {
            m: 8 * 784,
            n: 128,
            k: 576,
            stack: 1,
            stack_steps: [0; 3],
            left: Left::Image(image),
            right: Right { by_rows: false, stride: 576, is_weights: true },
            bias: Some(Storage::F32),
            has_residual: false,
            activation: Some(weft_ir::Activation::Relu),
            precision: Precision::F16,
        };
        assert_eq!(
            conv.to_string(),
            "conv 8x56x56x64 -> 28x28x128, 3x3, stride 2, pad 1, bias, Relu"
        );
        let matrix = GemmProblem { left: Left::Matrix { stride: 576 }, ..conv.clone() };
        assert_eq!(matrix.to_string(), "product 6272x128x576, bias, Relu");
        let others = [
            GemmProblem { has_residual: true, ..matrix.clone() },
            GemmProblem { bias: None, ..matrix.clone() },
            GemmProblem { activation: None, ..matrix.clone() },
            GemmProblem { left: Left::Matrix { stride: 640 }, ..matrix.clone() },
            GemmProblem { stack: 2, stack_steps: [9, 0, 9], ..matrix.clone() },
            GemmProblem { right: Right { by_rows: true, ..matrix.right }, ..matrix.clone() },
            GemmProblem { right: Right { is_weights: false, ..matrix.right }, ..matrix.clone() },
            GemmProblem { right: Right { stride: 640, ..matrix.right }, ..matrix.clone() },
        ];
        let mut texts: Vec<String> = others.iter().map(ToString::to_string).collect();
        texts.push(matrix.to_string());
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), others.len() + 1, "{texts:?}");
    }
}
