//! Owns the resizing of images with channels last: each pixel a blend of at most two rows and two columns.

use crate::simd::Simd;
use crate::{SharedOutput, SimdTask, Worker};

/// Where an output row or column comes from: `(1 - weight) * low + weight * high`. Nearest has a weight of zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResizeTap {
    /// A row or column of the input.
    pub low: usize,
    /// Another one; not used if the weight is zero.
    pub high: usize,
    /// The share of `high`.
    pub weight: f32,
}

/// A row or column that the input does not have, or sizes that overflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot resize images of {height} by {width} by {channels}: a tap lies outside, or a size overflows"
)]
pub struct ResizeError {
    /// Rows of the input.
    pub height: usize,
    /// Columns of the input.
    pub width: usize,
    /// Channels.
    pub channels: usize,
}

/// Resizing of images of one size.
#[derive(Debug, Clone)]
pub struct Resize {
    height: usize,
    width: usize,
    channels: usize,
    rows: Vec<ResizeTap>,
    columns: Vec<ResizeTap>,
}

impl Resize {
    /// Prepares the kernel; there is a tap for every output row and every output column.
    pub fn new(
        height: usize,
        width: usize,
        channels: usize,
        rows: Vec<ResizeTap>,
        columns: Vec<ResizeTap>,
    ) -> Result<Self, ResizeError> {
        let is_inside = |taps: &[ResizeTap], size: usize| {
            taps.iter().all(|tap| tap.low < size && (tap.high < size || tap.weight == 0.0))
        };
        let fits = |a: usize, b: usize| {
            a.checked_mul(b).and_then(|area| area.checked_mul(channels)).is_some()
        };
        if !is_inside(&rows, height)
            || !is_inside(&columns, width)
            || !fits(height, width)
            || !fits(rows.len(), columns.len())
        {
            return Err(ResizeError { height, width, channels });
        }
        Ok(Self { height, width, channels, rows, columns })
    }

    /// Resizes all images of `input`.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    ///
    /// # Panics
    ///
    /// If the slices are not the same number of whole images.
    pub unsafe fn run(&self, worker: &Worker, input: &[f32], output: SharedOutput<f32>) {
        let image = self.height * self.width * self.channels;
        let batch = input.len().checked_div(image).unwrap_or(0);
        assert_eq!(batch * image, input.len(), "images to resize");
        let row_elements = self.columns.len() * self.channels;
        let expected = batch.checked_mul(self.rows.len()).and_then(|n| n.checked_mul(row_elements));
        assert_eq!(expected, Some(output.len()), "resized images");
        worker.parallel(batch * self.rows.len(), |row| {
            // SAFETY: rows do not overlap, and the caller keeps everyone else away.
            let output = unsafe { output.slice_mut(row * row_elements, row_elements) };
            let start = row / self.rows.len() * image;
            let tap = self.rows[row % self.rows.len()];
            worker.isa().run(Row {
                resize: self,
                image: &input[start..start + image],
                tap,
                output,
            });
        });
    }
}

/// One row of the output.
struct Row<'a> {
    resize: &'a Resize,
    image: &'a [f32],
    tap: ResizeTap,
    output: &'a mut [f32],
}

impl SimdTask for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Resize { width, channels, columns, .. } = self.resize;
        if *channels == 0 {
            return;
        }
        let pixel = |row: usize, column: usize| {
            let start = (row * width + column) * channels;
            &self.image[start..start + channels]
        };
        let down = self.tap;
        for (target, across) in self.output.chunks_exact_mut(*channels).zip(columns) {
            if down.weight == 0.0 && across.weight == 0.0 {
                target.copy_from_slice(pixel(down.low, across.low));
                continue;
            }
            let high_row = if down.weight == 0.0 { down.low } else { down.high };
            let high_column = if across.weight == 0.0 { across.low } else { across.high };
            let corners = [
                pixel(down.low, across.low),
                pixel(down.low, high_column),
                pixel(high_row, across.low),
                pixel(high_row, high_column),
            ];
            let (x, y) = (simd.splat(across.weight), simd.splat(down.weight));
            for channel in (0..*channels).step_by(S::LANES) {
                let top_left = simd.load_slice(&corners[0][channel..]);
                let top_right = simd.load_slice(&corners[1][channel..]);
                let bottom_left = simd.load_slice(&corners[2][channel..]);
                let bottom_right = simd.load_slice(&corners[3][channel..]);
                let top = simd.fma(simd.sub(top_right, top_left), x, top_left);
                let bottom = simd.fma(simd.sub(bottom_right, bottom_left), x, bottom_left);
                let value = simd.fma(simd.sub(bottom, top), y, top);
                simd.store_slice(&mut target[channel..], value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, run_on, supported_isas, values};

    #[test]
    fn nearest_and_bilinear() {
        let tap = |low, high, weight| ResizeTap { low, high, weight };
        let nearest = vec![tap(0, 0, 0.0), tap(0, 9, 0.0), tap(1, 0, 0.0), tap(2, 0, 0.0)];
        let bilinear = vec![tap(0, 1, 0.25), tap(1, 2, 0.75), tap(2, 2, 0.5), tap(1, 0, 0.0)];
        for channels in [1, 7, 33] {
            let input = values(2 * 3 * 3 * channels, 1);
            for (rows, columns) in
                [(&nearest, &nearest), (&bilinear, &nearest), (&bilinear, &bilinear)]
            {
                let mut expected = Vec::new();
                for index in 0..2 * rows.len() * columns.len() * channels {
                    let across = columns[index / channels % columns.len()];
                    let down = rows[index / channels / columns.len() % rows.len()];
                    let image = index / channels / columns.len() / rows.len();
                    let at = |y: usize, x: usize| {
                        if y > 2 || x > 2 {
                            return 0.0;
                        }
                        let place = ((image * 3 + y) * 3 + x) * channels + index % channels;
                        f64::from(input[place])
                    };
                    let (x, y) = (f64::from(across.weight), f64::from(down.weight));
                    expected.push(
                        at(down.low, across.low) * (1.0 - x) * (1.0 - y)
                            + at(down.low, across.high) * x * (1.0 - y)
                            + at(down.high, across.low) * (1.0 - x) * y
                            + at(down.high, across.high) * x * y,
                    );
                }
                let resize = Resize::new(3, 3, channels, rows.clone(), columns.clone()).unwrap();
                for isa in supported_isas() {
                    let output = run_on(isa, expected.len(), |worker, output| {
                        // SAFETY: every worker of the pool runs this.
                        unsafe { resize.run(worker, &input, output) };
                    });
                    assert_close(&output, &expected, 1e-6, &format!("{isa:?} {channels}"));
                }
            }
        }
        assert!(Resize::new(3, 3, 1, vec![tap(3, 0, 0.0)], vec![]).is_err());
        assert!(Resize::new(3, 3, 1, vec![tap(0, 3, 0.5)], vec![]).is_err());
    }
}
