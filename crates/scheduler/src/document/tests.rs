use super::*;

fn problems_of(text: &str) -> Vec<String> {
    let outcome = read(text, |mut root, problems| {
        let count = root.required("count", problems).and_then(|item| item.count(problems));
        let name = root.required("name", problems).and_then(|item| item.text(problems));
        let section = root.optional("table").and_then(|item| item.section(problems));
        if let Some(mut section) = section {
            let size = section.required("size", problems);
            size.and_then(|item| item.positive(problems));
            let open = section.optional("open");
            open.and_then(|item| item.flag(problems));
            section.close(problems);
        }
        root.close(problems);
        Some((count?, name?.to_string()))
    });
    outcome.map_or_else(
        |problems| problems.to_string().lines().map(str::to_string).collect(),
        |_| Vec::new(),
    )
}

#[test]
fn all_problems_are_found_at_once_and_in_order() {
    assert_eq!(
        problems_of("count = 0x10\nname = 'a'\n[table]\nsize = 1_000\nopen = true"),
        Vec::<String>::new()
    );
    let text = "nmae = 'a'\ncount = 0\n[table]\nsize = -2.5\n\n[tabel]\n";
    assert_eq!(
        problems_of(text),
        [
            "line 1: 'name' is missing",
            "line 1: unknown key 'nmae'; known are count, name, table",
            "line 2: 'count' must be a whole number of at least 1, not 0",
            "line 4: 'size' must be a number above 0, not -2.5",
            "line 6: unknown key 'tabel'",
        ]
    );
}

#[test]
fn values_of_another_kind_are_refused_by_line() {
    for (text, line, says) in [
        ("count = 1.5\nname = 'a'", 1, "not 1.5"),
        ("count = 4294967296\nname = 'a'", 1, "not 4294967296"),
        ("count = 1\nname = ''", 2, "not an empty text"),
        ("count = 1\nname = 3", 2, "not 3"),
        ("count = [1]\nname = 'a'", 1, "type array"),
        ("count = []\nname = 'a'", 1, "not an empty list"),
        ("count = 1\nname = 'a'\ntable = 1", 3, "a table"),
        ("count = 1\nname = 'a'\n[table]\nsize = inf", 4, "not inf"),
        ("count = 1\nname = 'a'\n[table]\nsize = nan", 4, "not nan"),
        ("count = 1\nname = 'a'\n[table]\n", 3, "'size' is missing"),
        ("count = 1\nname = 'a'\n[table]\nsize = 1\nopen = 1", 5, "true or false, not 1"),
        ("count = 1\nname = 'a'\n[table]\nsize = 1\nopen = 'true'", 5, "type string"),
        ("count = 1\nname = 'a'\n\ncount = 2", 4, "'count' is given twice"),
    ] {
        let found = problems_of(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(&format!("line {line}: ")), "{text}: {found:?}");
        assert!(found[0].contains(says), "{text}: {found:?}");
    }
}

#[test]
fn where_a_line_is_broken_nothing_is_guessed() {
    let found = problems_of("count = \nnmae = 'a'\nb c\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("line 1: ") && found[1].starts_with("line 3: "), "{found:?}");
}

#[test]
fn what_is_missing_in_an_entry_of_a_list_is_missing_where_the_entry_begins() {
    let missing = |text: &str| {
        let read: Result<(), Problems> = read(text, |mut root, problems| {
            let listed = root.required("entries", problems)?.list(problems)?;
            for entry in listed {
                let mut section = entry.section(problems)?;
                section.required("size", problems);
            }
            Some(())
        });
        read.unwrap_err().to_string()
    };
    let said = "line 3: 'size' is missing\nline 4: 'size' is missing";
    assert_eq!(missing("[[entries]]\nsize = 1\n[[entries]]\n[[entries]]\n"), said);
    assert_eq!(missing("entries = [\n  { size = 1 },\n  {},\n  {},\n]"), said);
}
