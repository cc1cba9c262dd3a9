use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn is_json(text: &str) -> bool {
    let mut cursor = Cursor::new(text);
    cursor.skip().and_then(|()| cursor.end()).is_ok()
}

/// Pieces that make up JSON, well formed and not.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    " ",
    "\n",
    "\u{1}",
    "true",
    "false",
    "null",
    "nul",
    "\"a\"",
    "\"\\n\"",
    "\"\\u00e4\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\\x\"",
    "0",
    "-0",
    "01",
    "-",
    "12",
    "1.",
    "1.5",
    ".5",
    "2e3",
    "2E-3",
    "2e",
    "NaN",
    "-Infinity",
    "ä",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_is_json_is_what_serde_json_takes(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..8),
        is_wrapped in any::<bool>(),
    ) {
        let text = pieces.concat();
        let text = if is_wrapped { format!("[{text}]") } else { text };
        let read = serde_json::from_str::<Value>(&text);
        // `2e312` is JSON that no `Value` holds: serde_json stops there and does not look at what follows.
        prop_assume!(!read.as_ref().is_err_and(|problem| problem.to_string().starts_with("number out of range")));
        prop_assert_eq!(is_json(&text), read.is_ok(), "{}", text);
    }

    #[test]
    fn texts_are_read_as_serde_json_reads_them(text in any::<String>()) {
        let written = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(Cursor::new(&written).text().unwrap(), text);
    }
}

#[test]
fn a_number_that_no_float_holds_is_json() {
    assert!(is_json("2e312"));
    assert!(is_json("[-2e312, 2e-312]"));
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(is_json(&nested(MAX_DEPTH)));
    assert!(!is_json(&nested(MAX_DEPTH + 1)));
    assert!(!is_json(&"[{\"a\":".repeat(1_000_000)));
}

#[test]
fn an_error_says_where() {
    let problem = Cursor::new("[1, }").skip().unwrap_err();
    assert_eq!(problem, "a number is missing at byte 4 of the JSON");
}
