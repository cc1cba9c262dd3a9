//! How much a database knows.

use weft_tuner::database::{
    Coverage, Database, Method, Outcome, PlatformSummary, TaskKey, TrialRecord,
};

use crate::sample::{choice, folder, measured, mix, platform, schedule, task};

#[test]
fn everything_is_counted_where_it_belongs() {
    let (_folder, path) = folder();
    let database = Database::open(&path).unwrap();
    assert_eq!(database.summaries().unwrap(), []);
    let record = |outcome| TrialRecord {
        recorded_unix_ms: 5,
        ..TrialRecord::now(outcome, Method::Alone, &[])
    };
    let conv = task("conv", 8);
    let there = TaskKey { platform: platform("there"), ..task("gemm", 4) };
    let measured = TrialRecord { recorded_unix_ms: 7, ..measured(5, Method::Screened) };
    for (task, candidate, record) in [
        (&conv, "a", &measured),
        (&conv, "b", &measured),
        (&task("conv", 16), "a", &measured),
        (&conv, "c", &record(Outcome::Wrong { error: 1.0 })),
        (&task("gemm", 8), "d", &record(Outcome::Failed("no".into()))),
        (&task("gemm", 8), "e", &record(Outcome::Hung)),
        (&there, "a", &measured),
    ] {
        database.record_trial(task, candidate, record).unwrap();
    }
    database.record_choice(&conv, &choice("a", 5)).unwrap();
    database.record_schedule(&mix("a+b", 8), &schedule("[]", 6)).unwrap();
    database.record_schedule(&mix("a+b", 4), &schedule("[]", 6)).unwrap();
    database.record_choice(&task("only chosen", 8), &choice("a", 5)).unwrap();
    let expected_here = PlatformSummary {
        platform: platform("here"),
        operators: 3,
        choices: 2,
        measured: 3,
        wrong: 1,
        failed: 1,
        hung: 1,
        crashed: 0,
        schedules: 2,
        newest_unix_ms: choice("a", 5).recorded_unix_ms,
    };
    let expected_there = PlatformSummary {
        platform: platform("there"),
        operators: 1,
        choices: 0,
        measured: 1,
        wrong: 0,
        failed: 0,
        hung: 0,
        crashed: 0,
        schedules: 0,
        newest_unix_ms: 7,
    };
    assert_eq!(database.summaries().unwrap(), [expected_here, expected_there]);
    let here =
        Coverage { choices_here: 2, choices_elsewhere: 0, trials_here: 6, trials_elsewhere: 1 };
    assert_eq!(database.coverage(&platform("here")).unwrap(), here);
    let nowhere =
        Coverage { choices_here: 0, choices_elsewhere: 2, trials_here: 0, trials_elsewhere: 7 };
    assert_eq!(database.coverage(&platform("nowhere")).unwrap(), nowhere);
    database.check().unwrap();
}
