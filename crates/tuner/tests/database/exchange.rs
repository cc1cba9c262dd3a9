//! Exports and imports.

use proptest::prelude::*;
use weft_tuner::database::{Database, DatabaseError, Merged, Method, Outcome, TrialRecord};

use crate::sample::{choice, folder, measured, task};
use crate::worlds::{content, database, world};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_exported_is_imported_as_it_was(entries in world()) {
        let (_folder, original) = database(&entries);
        let text = content(&original);
        let (_copy_folder, copy) = database(&[]);
        let merged = copy.import(text.as_bytes()).unwrap();
        prop_assert_eq!(merged.read, merged.taken);
        prop_assert_eq!(content(&copy), text);
    }

    #[test]
    fn text_that_was_damaged_is_refused_or_understood(
        entries in world(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut text = content(&database(&entries).1).into_bytes();
        let place = place.index(text.len());
        text[place] = byte;
        let (_folder, own) = database(&[]);
        match own.import(&*text) {
            Ok(_) => own.check().unwrap(),
            Err(DatabaseError::Import { line, .. }) => {
                let lines = text.iter().filter(|&&byte| byte == b'\n').count() + 1;
                prop_assert!((1..=lines).contains(&line));
                prop_assert!(content(&own).contains("\"records\":0"));
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}

fn sample() -> (tempfile::TempDir, Database) {
    let (folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let mut record = measured(5, Method::Alone);
    record.recorded_unix_ms = 1_700_000_000_000;
    database.record_trial(&task("conv", 8), "a", &record).unwrap();
    record.outcome = Outcome::Wrong { error: f64::NAN };
    database.record_trial(&task("conv", 8), "b", &record).unwrap();
    database.record_choice(&task("conv", 8), &choice("a", 5)).unwrap();
    (folder, database)
}

const EXPORT: &str = concat!(
    r#"{"weft_tuning_export":1,"records":3}"#,
    "\n",
    r#"{"trial":{"task":{"chip":"here","driver":"580.1","kernels":"k1","operator":"conv","precision":"f16","#,
    r#""partition_size":8},"candidate":"a","method":"alone","outcome":{"measured":{"time_ns":5000,"spread":0.02,"#,
    r#""interference":1.01}},"features":[1.0,5.0],"recorded_unix_ms":1700000000000}}"#,
    "\n",
    r#"{"trial":{"task":{"chip":"here","driver":"580.1","kernels":"k1","operator":"conv","precision":"f16","#,
    r#""partition_size":8},"candidate":"b","method":"alone","outcome":{"wrong":{"error":null}},"#,
    r#""features":[1.0,5.0],"recorded_unix_ms":1700000000000}}"#,
    "\n",
    r#"{"choice":{"task":{"chip":"here","driver":"580.1","kernels":"k1","operator":"conv","precision":"f16","#,
    r#""partition_size":8},"candidate":"a","time_ns":5000,"untuned_candidate":"plain","untuned_time_ns":10000,"#,
    r#""trials":12,"recorded_unix_ms":1700000000000}}"#,
    "\n",
);

#[test]
fn the_form_of_an_export_does_not_change_unnoticed() {
    assert_eq!(content(&sample().1), EXPORT);
}

#[test]
fn an_import_keeps_what_is_worth_more() {
    let (_folder, database) = sample();
    assert_eq!(database.import(EXPORT.as_bytes()).unwrap(), Merged { read: 3, taken: 0 });
    let mut later = choice("b", 5);
    later.recorded_unix_ms += 1;
    database.record_choice(&task("conv", 8), &later).unwrap();
    database.import(EXPORT.as_bytes()).unwrap();
    assert_eq!(database.recorded_choice(&task("conv", 8)).unwrap(), Some(later));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let lines: Vec<&str> = EXPORT.lines().collect();
    let with = |number: usize, line: &str| {
        let mut lines = lines.clone();
        lines[number - 1] = line;
        lines.join("\n")
    };
    let changed = |number: usize, from: &str, to: &str| {
        assert!(lines[number - 1].contains(from));
        with(number, &lines[number - 1].replace(from, to))
    };
    let long = format!("\"{}\"", "x".repeat(20_000));
    let features = format!("[{}1]", "1,".repeat(5000));
    let cases = [
        (String::new(), 1, "not an export"),
        ("hello\n".into(), 1, "not an export"),
        (lines[1..].join("\n"), 1, "not an export"),
        (changed(1, ":1", ":3"), 1, "version 3"),
        (changed(1, "3}", "3000000000}"), 1, "3000000000 records are more than"),
        (changed(1, "3}", "2}"), 4, "says it has 2 records"),
        (changed(1, "3}", "4}"), 4, "ends after 3 of 4 records"),
        (lines[..3].join("\n"), 3, "ends after 2 of 3 records"),
        (with(3, ""), 3, "EOF"),
        (with(3, "{"), 3, "EOF"),
        (with(3, "\u{feff}{}"), 3, "expected value"),
        (with(3, &"[".repeat(10_000)), 3, "column 1"),
        (with(3, &" ".repeat(2 << 20)), 3, "more than the 1048576 bytes"),
        (with(3, r#"{"song":{}}"#), 3, "unknown variant `song`"),
        (changed(3, "\"method\":\"alone\",", ""), 3, "missing field `method`"),
        (changed(3, "alone", "guessed"), 3, "'guessed' is no way"),
        (changed(3, "\"method\"", "\"more\":1,\"method\""), 3, "unknown field `more`"),
        (changed(3, "\"method\"", "\"method\":\"alone\",\"method\""), 3, "duplicate field"),
        (changed(2, ":8}", ":0}"), 2, "size 0"),
        (changed(2, ":8}", ":-8}"), 2, "invalid value"),
        (changed(2, ":8}", ":1e3}"), 2, "invalid type"),
        (changed(2, "5000", "99999999999999999999999"), 2, "at column"),
        (changed(4, "\"a\"", &long), 4, "the candidate has 20000 bytes"),
        (changed(2, "[1.0,5.0]", &features), 2, "5001 features"),
    ];
    for (text, line, what) in cases {
        let (_folder, path) = folder();
        let database = Database::open(&path).unwrap();
        let error = database.import(text.as_bytes()).unwrap_err();
        let start: String = text.chars().take(300).collect();
        let DatabaseError::Import { line: found, what: said } = &error else { panic!("{error}") };
        assert!(*found == line && said.contains(what), "{start}\n{error}");
        assert!(error.to_string().contains("nothing was imported"));
        assert!(content(&database).contains("\"records\":0"));
    }
    let (_folder, database) = sample();
    let error =
        database.import(&b"{\"weft_tuning_export\":1,\"records\":1}\n\"\xff\"\n"[..]).unwrap_err();
    assert!(matches!(error, DatabaseError::Import { line: 2, .. }), "{error}");
}

#[test]
fn an_export_that_cannot_be_written_says_so() {
    struct Broken;
    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let result = sample().1.export(Broken);
    assert!(matches!(result, Err(DatabaseError::Export(_))), "{result:?}");
}

#[test]
fn times_past_what_the_database_holds_are_cut() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    let time = std::time::Duration::MAX;
    let measurement = weft_device::Measurement { time, spread: 0.0, interference: 1.0 };
    let mut record = TrialRecord::now(Outcome::Measured(measurement), Method::Alone, &[]);
    record.recorded_unix_ms = u64::MAX;
    database.record_trial(&task("conv", 8), "a", &record).unwrap();
    database.record_choice(&task("conv", 8), &choice("a", u64::MAX / 1000)).unwrap();
    let text = content(&database);
    assert_eq!(text.matches(&i64::MAX.to_string()).count(), 4, "{text}");
}
