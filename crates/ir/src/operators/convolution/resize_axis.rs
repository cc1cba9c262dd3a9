//! Resizing along one axis: where each output element samples the input, and with which weights.

use crate::error::OperatorError;

/// How an output coordinate becomes an input coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    TorchHalfPixel,
    AlignCorners,
    Asymmetric,
    /// Coordinates are of a region of the input; outside the input a given value is taken.
    CropAndResize,
}

/// Which of the two nearest elements is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Rounding {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
}

/// How input elements make an output element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interpolation {
    /// The nearest one is taken.
    Nearest(Rounding),
    /// The two nearest, by distance.
    Linear,
    /// The four nearest, by a cubic polynomial with this coefficient.
    Cubic(f32),
}

/// One axis to resize.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisResize {
    /// Which axis.
    pub axis: usize,
    /// Input elements along it.
    pub input: usize,
    /// Output elements along it.
    pub output: usize,
    /// Output elements per input element as stated, before rounding.
    pub scale: f64,
    /// Start and end of the region, in shares of the input.
    pub region: (f64, f64),
}

/// For each output element the input elements it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisSamples {
    /// Input elements per output element.
    pub taps: usize,
    /// Input positions, `taps` for each output element.
    pub sources: Vec<usize>,
    /// The weight of each of them.
    pub weights: Vec<f64>,
    /// Output elements that lie outside the input, where the mode has such.
    pub outside: Vec<bool>,
}

/// How samples are chosen and weighted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    pub(super) interpolation: Interpolation,
    pub(super) coordinates: Coordinates,
    /// The filter widens where the axis shrinks.
    pub(super) antialias: bool,
    /// Elements outside the input weigh nothing, instead of repeating the edge.
    pub(super) exclude_outside: bool,
}

impl AxisResize {
    /// True where the output is the input.
    pub fn is_identity(&self) -> bool {
        self.input == self.output && self.scale == 1.0 && self.region == (0.0, 1.0)
    }

    fn coordinate(&self, position: usize, mode: Coordinates) -> f64 {
        let position = position as f64;
        let input = self.input as f64;
        let width = self.scale * input;
        let half_pixel = (position + 0.5) / self.scale - 0.5;
        match mode {
            Coordinates::HalfPixel => half_pixel,
            Coordinates::HalfPixelSymmetric => {
                input / 2.0 * (1.0 - self.output as f64 / width) + half_pixel
            }
            Coordinates::TorchHalfPixel if self.output == 1 => 0.0,
            Coordinates::TorchHalfPixel => half_pixel,
            Coordinates::AlignCorners if self.output == 1 => 0.0,
            Coordinates::AlignCorners => position * (input - 1.0) / (width - 1.0),
            Coordinates::Asymmetric => position / self.scale,
            Coordinates::CropAndResize => {
                let (start, end) = self.region;
                let share = if self.output == 1 {
                    (start + end) / 2.0
                } else {
                    start + position * (end - start) / (width - 1.0)
                };
                share * (input - 1.0)
            }
        }
    }

    /// The samples of each output element.
    pub(super) fn samples(&self, sampling: Sampling) -> Result<AxisSamples, OperatorError> {
        if self.input == 0 && self.output > 0 {
            return Err(OperatorError::Invalid("an axis without elements cannot grow".into()));
        }
        let stretch = if sampling.antialias { self.scale.min(1.0) } else { 1.0 };
        let reach = match sampling.interpolation {
            Interpolation::Nearest(_) => 0.5,
            Interpolation::Linear => 1.0,
            Interpolation::Cubic(_) => 2.0,
        } / stretch;
        // A filter wider than the input on both sides adds nothing but repeats of the edges.
        let taps = (2.0 * reach).ceil().max(1.0);
        if taps * self.output as f64 > (1u64 << 28) as f64 {
            return Err(OperatorError::Invalid(format!(
                "resizing {} elements to {} takes too many samples",
                self.input, self.output
            )));
        }
        let taps = taps as usize;
        let mut samples = AxisSamples {
            taps,
            sources: Vec::with_capacity(taps * self.output),
            weights: Vec::with_capacity(taps * self.output),
            outside: Vec::new(),
        };
        let last = self.input.saturating_sub(1) as f64;
        for position in 0..self.output {
            let x = self.coordinate(position, sampling.coordinates);
            if sampling.coordinates == Coordinates::CropAndResize {
                samples.outside.push(!(0.0..=last).contains(&x));
            }
            let first = match sampling.interpolation {
                Interpolation::Nearest(rounding) => match rounding {
                    Rounding::PreferFloor => (x - 0.5).ceil(),
                    Rounding::PreferCeil => (x + 0.5).floor(),
                    Rounding::Floor => x.floor(),
                    Rounding::Ceil => x.ceil(),
                },
                _ => (x - reach).floor() + 1.0,
            };
            let start = samples.weights.len();
            for tap in 0..taps {
                let source = first + tap as f64;
                let inside = (0.0..=last).contains(&source);
                let weight = match sampling.interpolation {
                    Interpolation::Nearest(_) => 1.0,
                    _ if sampling.exclude_outside && !inside => 0.0,
                    Interpolation::Linear => (1.0 - ((source - x) * stretch).abs()).max(0.0),
                    Interpolation::Cubic(a) => cubic((source - x) * stretch, a.into()),
                };
                samples.sources.push(source.clamp(0.0, last) as usize);
                samples.weights.push(weight);
            }
            let weights = &mut samples.weights[start..];
            let total: f64 = weights.iter().sum();
            if total != 0.0 {
                weights.iter_mut().for_each(|weight| *weight /= total);
            }
        }
        Ok(samples)
    }
}

/// The weight of an element at a distance, by Keys' cubic convolution.
pub(super) fn cubic(distance: f64, a: f64) -> f64 {
    let x = distance.abs();
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}
