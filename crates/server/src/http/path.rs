//! Paths, cut into segments that are matched and decoded one by one.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The most segments of any path that is served, and one more, so that a longer path matches none.
const MAX_SEGMENTS: usize = 10;

/// A path's segments, as they were sent.
pub(crate) struct Segments<'a> {
    segments: [&'a str; MAX_SEGMENTS],
    count: usize,
}

impl<'a> Segments<'a> {
    /// Cuts a path; a slash at its end means nothing.
    pub(crate) fn of(path: &'a str) -> Self {
        let mut segments = [""; MAX_SEGMENTS];
        let mut count = 0;
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        for (place, segment) in segments.iter_mut().zip(path.split('/')) {
            *place = segment;
            count += 1;
        }
        Self { segments, count }
    }

    /// The segments.
    pub(crate) fn as_slice(&self) -> &[&'a str] {
        &self.segments[..self.count]
    }
}

/// A segment as it was meant; what is not UTF-8 stays as it was sent, and is no name of anything.
pub(crate) fn decoded(segment: &str) -> Cow<'_, str> {
    percent_decode_str(segment).decode_utf8().unwrap_or(Cow::Borrowed(segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_and_decoded() {
        assert_eq!(Segments::of("/v2/models/a%2Fb/").as_slice(), ["v2", "models", "a%2Fb"]);
        assert_eq!(decoded("a%2Fb"), "a/b");
        assert_eq!(decoded("%FF"), "%FF");
        assert_eq!(Segments::of("").as_slice(), [""]);
        assert_eq!(Segments::of(&"/x".repeat(100)).as_slice().len(), MAX_SEGMENTS);
    }
}
