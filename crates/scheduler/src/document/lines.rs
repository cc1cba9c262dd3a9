//! Lines of a text by the place of their bytes.

/// Where each line of a text begins.
pub(super) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let after_breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Self { starts: std::iter::once(0).chain(after_breaks.map(|(at, _)| at + 1)).collect() }
    }

    /// The line of a byte, counted from 1.
    pub(super) fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset)
    }
}
