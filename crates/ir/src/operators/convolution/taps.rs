//! Where the elements of each window lie in a plane: the table that convolutions and pools read their input by.

use std::ops::Range;

use super::window::AxisWindow;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::tensor::checked_count;

/// Numbers that a run of output positions should need at once.
const RUN_ENTRIES: usize = 1 << 18;

/// For each kernel element and each of a run of output positions, the input position; row-major in both.
pub(crate) struct Taps {
    sources: Vec<usize>,
    width: usize,
}

/// The input position of a tap in the padding.
pub(crate) const OUTSIDE: usize = usize::MAX;

impl Taps {
    /// The table for a run of output positions, counted row-major over the axes.
    pub(crate) fn new(axes: &[AxisWindow], positions: Range<usize>) -> Self {
        let width = positions.len();
        let kernel: usize = axes.iter().map(|axis| axis.kernel).product();
        let mut sources = vec![0; kernel * width];
        let mut below: (usize, usize) = (axes.iter().map(|axis| axis.output).product(), kernel);
        for axis in axes {
            below = (below.0 / axis.output.max(1), below.1 / axis.kernel);
            for tap in 0..kernel {
                let row = &mut sources[tap * width..][..width];
                let tap = tap / below.1 % axis.kernel;
                for (source, position) in row.iter_mut().zip(positions.clone()) {
                    let output = position / below.0 % axis.output;
                    *source = match axis.source(output, tap) {
                        Some(along) if *source != OUTSIDE => *source * axis.input + along,
                        _ => OUTSIDE,
                    };
                }
            }
        }
        Self { sources, width }
    }

    /// One row per kernel element: the input position, or [`OUTSIDE`], for each output position.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[usize]> {
        self.sources.chunks_exact(self.width.max(1))
    }
}

/// The output positions cut into runs, so short that `depth` numbers for each position of a run stay in cache.
/// The depth is at least that of a table of [`Taps`], the number of kernel elements.
pub(crate) fn runs(
    axes: &[AxisWindow],
    depth: usize,
) -> Result<impl Iterator<Item = Range<usize>> + use<>, OperatorError> {
    let output: Vec<usize> = axes.iter().map(|axis| axis.output).collect();
    let positions = checked_count(&output, DataType::U8)?;
    let length = (RUN_ENTRIES / depth.max(1)).clamp(1, 1024);
    Ok((0..positions).step_by(length).map(move |start| start..(start + length).min(positions)))
}

/// The number of kernel elements, refused where a table of them is too large.
pub(crate) fn kernel_count(axes: &[AxisWindow]) -> Result<usize, OperatorError> {
    let kernel: Vec<usize> = axes.iter().map(|axis| axis.kernel).collect();
    checked_count(&kernel, DataType::U64)
}
