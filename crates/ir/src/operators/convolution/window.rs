//! The window that convolutions and pools slide over spatial axes, and the size of what it leaves.

use crate::attribute::Attributes;
use crate::error::OperatorError;

/// No window parameter or spatial dimension may exceed this, so that sums and products of them fit in 64 bits.
pub(super) const MAX_SIZE: usize = 1 << 31;

/// How far the input is extended at both ends of each spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Padding {
    /// By given amounts per axis; empty lists stand for no padding.
    Explicit {
        /// Before the first element of each axis.
        begin: Vec<usize>,
        /// After the last element of each axis.
        end: Vec<usize>,
    },
    /// So that the output is the input divided by the stride, rounded up; an odd element goes to the end.
    SameUpper,
    /// The same; an odd element goes to the beginning.
    SameLower,
    /// Not at all.
    Valid,
}

impl Padding {
    /// No padding.
    pub fn none() -> Self {
        Padding::Explicit { begin: Vec::new(), end: Vec::new() }
    }

    /// The padding that `auto_pad` and `pads` ask for.
    pub(super) fn from_attributes(attributes: &Attributes) -> Result<Self, OperatorError> {
        match attributes.string_or("auto_pad", "NOTSET")? {
            "NOTSET" | "" => {
                let pads = sizes(attributes, "pads", 0)?.unwrap_or_default();
                if pads.len() % 2 != 0 {
                    return Err(problem("pads", format!("{pads:?} has an odd length")));
                }
                let (begin, end) = pads.split_at(pads.len() / 2);
                Ok(Padding::Explicit { begin: begin.to_vec(), end: end.to_vec() })
            }
            "SAME_UPPER" => Ok(Padding::SameUpper),
            "SAME_LOWER" => Ok(Padding::SameLower),
            "VALID" => Ok(Padding::Valid),
            other => Err(problem("auto_pad", format!("'{other}' is unknown"))),
        }
    }
}

fn problem(name: &str, problem: String) -> OperatorError {
    OperatorError::Attribute { name: name.into(), problem }
}

/// A list of sizes from attributes, none of which is below `least`.
pub(super) fn sizes(
    attributes: &Attributes,
    name: &str,
    least: usize,
) -> Result<Option<Vec<usize>>, OperatorError> {
    let Some(given) = attributes.ints(name)? else { return Ok(None) };
    let size = |&size: &i64| {
        usize::try_from(size)
            .ok()
            .filter(|size| (least..=MAX_SIZE).contains(size))
            .ok_or_else(|| problem(name, format!("{given:?} is out of range")))
    };
    given.iter().map(size).collect::<Result<_, _>>().map(Some)
}

/// How a window moves; what it spans, its kernel, is known only where it is applied.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Steps between windows per axis; empty where all are 1.
    pub strides: &'a [usize],
    /// Steps between the elements of a window per axis; empty where all are 1.
    pub dilations: &'a [usize],
    /// How the input is extended.
    pub padding: &'a Padding,
    /// A last window that reaches past the padding counts too, unless it would start there.
    pub ceil_mode: bool,
}

/// A window along one axis with everything resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisWindow {
    /// Input elements along the axis.
    pub input: usize,
    /// Elements of the window.
    pub kernel: usize,
    /// Steps between windows.
    pub stride: usize,
    /// Steps between the elements of a window.
    pub dilation: usize,
    /// Padding before the first input element.
    pub pad_begin: usize,
    /// Padding after the last input element.
    pub pad_end: usize,
    /// Number of windows: output elements along the axis.
    pub output: usize,
}

impl AxisWindow {
    /// Where element `tap` of window `output` lies in the input; `None` in the padding.
    pub fn source(&self, output: usize, tap: usize) -> Option<usize> {
        (output * self.stride + tap * self.dilation)
            .checked_sub(self.pad_begin)
            .filter(|&position| position < self.input)
    }

    /// Elements that window `output` has within the input and its padding.
    pub fn taps_in_padded(&self, output: usize) -> usize {
        let padded = self.pad_begin + self.input + self.pad_end;
        let room = padded.saturating_sub(output * self.stride);
        room.div_ceil(self.dilation).min(self.kernel)
    }
}

/// One entry of a list that may be empty for the default on every axis.
pub(super) fn entry(
    list: &[usize],
    axis: usize,
    rank: usize,
    default: usize,
) -> Result<usize, OperatorError> {
    match list.get(axis) {
        _ if list.is_empty() => Ok(default),
        Some(&entry) if list.len() == rank => Ok(entry),
        _ => Err(OperatorError::Invalid(format!(
            "window parameters {list:?} for {rank} spatial axes"
        ))),
    }
}

impl Window<'_> {
    /// The window along one of `rank` spatial axes.
    pub fn axis(
        &self,
        axis: usize,
        rank: usize,
        input: usize,
        kernel: usize,
    ) -> Result<AxisWindow, OperatorError> {
        let stride = entry(self.strides, axis, rank, 1)?;
        let dilation = entry(self.dilations, axis, rank, 1)?;
        if ![input, kernel, stride, dilation].iter().all(|&size| size <= MAX_SIZE)
            || [kernel, stride, dilation].contains(&0)
        {
            return Err(OperatorError::Invalid(format!(
                "no window of {kernel} elements, stride {stride} and dilation {dilation} on {input}"
            )));
        }
        let extent = dilation * (kernel - 1) + 1;
        let same = input.div_ceil(stride);
        let total = (same.saturating_sub(1) * stride + extent).saturating_sub(input);
        let (pad_begin, pad_end) = match self.padding {
            Padding::Explicit { begin, end } => {
                (entry(begin, axis, rank, 0)?, entry(end, axis, rank, 0)?)
            }
            Padding::SameUpper => (total / 2, total - total / 2),
            Padding::SameLower => (total - total / 2, total / 2),
            Padding::Valid => (0, 0),
        };
        let output = match self.padding {
            Padding::SameUpper | Padding::SameLower => same,
            _ => {
                let padded = pad_begin + input + pad_end;
                let room = padded.checked_sub(extent).ok_or_else(|| {
                    OperatorError::Invalid(format!(
                        "a window that spans {extent} elements on an axis of {padded}"
                    ))
                })?;
                let last = if self.ceil_mode { room.div_ceil(stride) } else { room / stride };
                let starts_past_end = last > 0 && last * stride >= input + pad_begin;
                if self.ceil_mode && starts_past_end { last } else { last + 1 }
            }
        };
        Ok(AxisWindow { input, kernel, stride, dilation, pad_begin, pad_end, output })
    }

    /// The windows along all spatial axes.
    pub fn axes(
        &self,
        input: &[usize],
        kernel: &[usize],
    ) -> Result<Vec<AxisWindow>, OperatorError> {
        if input.len() != kernel.len() {
            return Err(OperatorError::Shapes { left: input.to_vec(), right: kernel.to_vec() });
        }
        let rank = input.len();
        (0..rank).map(|axis| self.axis(axis, rank, input[axis], kernel[axis])).collect()
    }

    /// The output's spatial dimensions, where what they follow from is known.
    pub fn output_dimensions(
        &self,
        input: &[Option<usize>],
        kernel: &[Option<usize>],
    ) -> Result<Vec<Option<usize>>, OperatorError> {
        let rank = input.len();
        let along = |axis: usize| match (input[axis], kernel.get(axis).copied().flatten()) {
            (Some(input), Some(kernel)) => {
                self.axis(axis, rank, input, kernel).map(|window| Some(window.output))
            }
            _ => Ok(None),
        };
        (0..rank).map(along).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_sizes_and_pads_follow_the_standard() {
        let pads = |begin, end| Padding::Explicit { begin: vec![begin], end: vec![end] };
        // input, kernel, stride, dilation, padding, ceil; pads and output, or a refusal
        let cases = [
            (7, 3, 2, 1, pads(0, 0), false, Some((0, 0, 3))),
            (8, 3, 2, 1, pads(0, 0), false, Some((0, 0, 3))),
            (8, 3, 2, 1, pads(0, 0), true, Some((0, 0, 4))),
            (2, 1, 2, 1, pads(0, 0), true, Some((0, 0, 1))),
            (5, 3, 3, 1, pads(1, 1), true, Some((1, 1, 2))),
            (4, 2, 4, 1, pads(0, 1), true, Some((0, 1, 1))),
            (5, 3, 1, 2, pads(0, 0), false, Some((0, 0, 1))),
            (5, 2, 2, 1, Padding::SameUpper, false, Some((0, 1, 3))),
            (5, 2, 2, 1, Padding::SameLower, false, Some((1, 0, 3))),
            (5, 1, 3, 1, Padding::SameUpper, false, Some((0, 0, 2))),
            (5, 3, 2, 1, Padding::Valid, false, Some((0, 0, 2))),
            (2, 3, 1, 1, pads(0, 0), false, None),
            (2, 0, 1, 1, pads(0, 0), false, None),
            (2, 1, 0, 1, pads(0, 0), false, None),
            (usize::MAX, 1, 1, 1, pads(0, 0), false, None),
        ];
        for (input, kernel, stride, dilation, padding, ceil_mode, expected) in cases {
            let (strides, dilations) = ([stride], [dilation]);
            let window =
                Window { strides: &strides, dilations: &dilations, padding: &padding, ceil_mode };
            let made = window.axis(0, 1, input, kernel).ok();
            let made = made.map(|window| (window.pad_begin, window.pad_end, window.output));
            assert_eq!(made, expected, "{input} {kernel} {stride} {dilation} {padding:?}");
        }
    }

    #[test]
    fn attributes_out_of_range_are_refused() {
        for (name, values) in
            [("pads", vec![-1, 0]), ("pads", vec![1, 1, 1]), ("pads", vec![i64::MAX, 0])]
        {
            let attributes = Attributes::new().with(name, values);
            assert!(Padding::from_attributes(&attributes).is_err());
        }
        let attributes = Attributes::new().with("strides", vec![1, 0]);
        assert!(sizes(&attributes, "strides", 1).is_err());
    }
}
