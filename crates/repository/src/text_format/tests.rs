use proptest::prelude::*;

use super::*;

/// A tree on one line, so that it can be compared at a glance.
fn shown(message: &Message) -> String {
    let value = |located: &Located| match &located.value {
        Value::Text(text) => format!("{text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Word(word) => word.clone(),
        Value::Message(message) => format!("{{{}}}", shown(message)),
    };
    let field = |field: &Field| {
        let values: Vec<String> = field.values.iter().map(value).collect();
        format!("{}={}", field.name, values.join("|"))
    };
    message.fields.iter().map(field).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_form_of_the_format_is_read() {
    for (text, tree) in [
        ("", ""),
        ("# only a comment", ""),
        ("\u{feff}a: 1", "a=1"),
        ("a: 1 b: -2, c: - # sign\n 3; d: 0x1F e: 017", "a=1 b=-2 c=-3 d=31 e=15"),
        (
            "a: 1.5 b: .5 c: 2. d: 1e3 e: -1E-2 f: 3f g: 18446744073709551616",
            "a=1.5 b=0.5 c=2.0 d=1000.0 e=-0.01 f=3.0 g=1.8446744073709552e19",
        ),
        (
            "a: 18446744073709551615 b: -9223372036854775808",
            "a=18446744073709551615 b=-9223372036854775808",
        ),
        ("a: true b: TYPE_FP32 c: inf d: -inf", "a=true b=TYPE_FP32 c=inf d=-inf"),
        ("a { b: 1 } c: { d: 2 } e < f: 3 >", "a={b=1} c={d=2} e={f=3}"),
        ("a {} b <> c: []", "a={} b={} c="),
        ("a: [1, 2 , 3] b [ { c: 1 }, < c: 2 > ]", "a=1|2|3 b={c=1}|{c=2}"),
        ("a: 1 a: 2", "a=1 a=2"),
        ("a:\"x\"b:'y'", "a=\"x\" b=\"y\""),
        ("a: 'one ' \"two\" # and\n 'three'", "a=\"one twothree\""),
        (r#"a: "\n\t\\\"\'\?\x41\101\u00e9\U0001F980""#, "a=\"\\n\\t\\\\\\\"'?AAé🦀\""),
        (r#"a: "\xc3\xa9" b: "é # no comment""#, "a=\"é\" b=\"é # no comment\""),
        ("a\r\n:\r\n1", "a=1"),
    ] {
        assert_eq!(parse(text).map(|message| shown(&message)), Ok(tree.to_string()), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (text, line, says) in [
        ("a: 1\nb 2", 2, "':' is missing behind 'b'"),
        ("a [1]", 1, "':' is missing behind 'a'"),
        ("a: {\n b: 1\n", 1, "no '}'"),
        ("a: {\n b: 1\n>", 3, "'>'"),
        ("a: [1,\n2", 2, "',' or ']' is expected, not the end of the file"),
        ("a: [1 2]", 1, "not 2"),
        ("a: [1,]", 1, "a value is expected, not ']'"),
        ("a:\n\n}", 3, "not '}'"),
        ("a: 'x\ny'", 1, "does not end on its line"),
        ("a: 'x", 1, "does not end"),
        ("\n\na: '\\q'", 3, "escape"),
        ("a: '\\400'", 1, "escape"),
        ("a: '\\x'", 1, "escape"),
        ("a: '\\u12'", 1, "escape"),
        ("a: '\\ud800'", 1, "escape"),
        ("a: '\\xff'", 1, "not UTF-8"),
        ("a: 08", 1, "'08' is no number"),
        ("a: 10x", 1, "'10x' is no number"),
        ("a: 1.2.3", 1, "'1.2.3' is no number"),
        ("a:1.b:2", 1, "'1.b' is no number"),
        ("a: 0x", 1, "'0x' is no number"),
        ("a: 1e999", 1, "'1e999' is no number"),
        ("a: -x", 1, "behind '-'"),
        ("[a.b]: 1", 1, "extensions"),
        ("a: 1,, b: 2", 1, "a field's name is expected, not ','"),
        ("größe: 1", 1, ""),
        ("\u{7}", 1, "'\\u{7}'"),
        ("a", 1, "not the end of the file"),
    ] {
        let problem = parse(text).expect_err(text);
        assert_eq!(problem.line, line, "{text}: {}", problem.what);
        assert!(problem.what.contains(says), "{text}: {}", problem.what);
    }
}

#[test]
fn lines_of_fields_and_values_are_kept() {
    let message = parse("# first\na:\n  [1,\n   2]\n\nb { c: 1 }").unwrap();
    assert_eq!(message.fields[0].line, 2);
    let lines: Vec<usize> = message.fields[0].values.iter().map(|value| value.line).collect();
    assert_eq!(lines, [3, 4]);
    assert_eq!(message.fields[1].line, 6);
}

#[test]
fn depth_is_limited_and_not_by_the_stack() {
    let nested = |depth: usize| format!("{}{}", "a{".repeat(depth), "}".repeat(depth));
    assert!(parse(&nested(32)).is_ok());
    assert!(parse(&nested(33)).unwrap_err().what.contains("deep"));
    assert!(parse(&"a{".repeat(1_000_000)).unwrap_err().what.contains("deep"));
    assert!(parse(&"a:[".repeat(1_000_000)).is_err());
    assert!(parse(&format!("a:{}1", "-".repeat(1_000_000))).is_err());
}

/// Texts made of the marks that mean something, so that many of them come far.
fn plausible() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "a", ":", "{", "}", "<", ">", "[", "]", ",", ";", "-", "1", "0x", "1.5e", "'", "\"", "\\",
        "#", "\n", " ", "é", "\u{0}", "name", "true", "'x'", "dims", ".",
    ]);
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn plausible_texts_are_read_or_refused_on_a_line_that_exists(text in plausible()) {
        if let Err(problem) = parse(&text) {
            prop_assert!((1..=text.split('\n').count()).contains(&problem.line));
        }
    }

    #[test]
    fn what_is_written_is_read_back(
        words in prop::collection::vec(("[a-z_][a-z0-9_]{0,8}", any::<i64>(), any::<Vec<u8>>()), 0..8),
    ) {
        let mut text = String::new();
        let mut expected = Vec::new();
        for (name, number, bytes) in &words {
            let valid = String::from_utf8_lossy(bytes).into_owned();
            let escaped: String = valid.bytes().map(|byte| format!("\\{byte:03o}")).collect();
            text += &format!("{name}: {number} # note\n{name} {{ text: \"{escaped}\" }}\n");
            expected.push(format!("{name}={number} {name}={{text={valid:?}}}"));
        }
        prop_assert_eq!(shown(&parse(&text).unwrap()), expected.join(" "));
    }
}
