//! Colours that people who see fewer of them can tell apart too; past the last they begin again.

/// A colour on paper and on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour {
    /// In a drawing.
    pub(crate) hex: &'static str,
    /// Its place among a terminal's 256.
    pub(crate) terminal: u8,
    /// Whether text on it is white.
    pub(crate) is_dark: bool,
}

/// How many there are.
pub(crate) const COUNT: usize = 7;

const COLOURS: [Colour; COUNT] = [
    Colour { hex: "#0072b2", terminal: 25, is_dark: true },
    Colour { hex: "#e69f00", terminal: 214, is_dark: false },
    Colour { hex: "#009e73", terminal: 36, is_dark: false },
    Colour { hex: "#cc79a7", terminal: 175, is_dark: false },
    Colour { hex: "#56b4e9", terminal: 117, is_dark: false },
    Colour { hex: "#d55e00", terminal: 166, is_dark: true },
    Colour { hex: "#777777", terminal: 243, is_dark: true },
];

pub(crate) fn colour(index: usize) -> Colour {
    COLOURS[index % COUNT]
}
