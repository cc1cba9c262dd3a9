//! Files with bytes that changed on disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use weft_device::KernelChoices;
use weft_tuner::choices::Choices;
use weft_tuner::database::{Database, DatabaseError, Method, Outcome, TrialRecord};

use crate::sample::{choice, folder, measured, operator, platform, task};

const OPERATORS: usize = 40;
const SIZES: [usize; 3] = [4, 16, 64];
const ROUNDS: u64 = 400;

fn name(index: usize) -> String {
    format!("conv {index}")
}

fn fill(path: &Path) -> Database {
    let database = Database::open(path).unwrap();
    for index in 0..OPERATORS {
        for size in SIZES {
            let task = task(&name(index), size);
            let picked = format!("for {} at {size}", name(index));
            database.record_trial(&task, &picked, &measured(5, Method::Alone)).unwrap();
            let wrong = TrialRecord::now(Outcome::Wrong { error: 1.0 }, Method::Alone, &[2.0]);
            database.record_trial(&task, "wrong", &wrong).unwrap();
            database.record_choice(&task, &choice(&picked, 5)).unwrap();
        }
    }
    database
}

/// Reads, writes and exports a damaged file: whatever comes of it is an error, or what was written.
fn use_it(path: &Path) -> Result<(), DatabaseError> {
    let database = Database::open_read_only(path)?;
    let choices = Choices::load(&database, &platform("here"))?;
    for index in 0..OPERATORS {
        for size in SIZES {
            if let Some(candidate) = choices.choice(&operator(&name(index)), size) {
                let written = format!("for {} at ", name(index));
                let at = candidate.strip_prefix(&written).expect("a candidate of this operator");
                assert!(SIZES.contains(&at.parse().unwrap()), "{candidate}");
            }
        }
    }
    assert!(choices.choice(&operator("never tuned"), 16).is_none());
    for other in ["there", "herd", "Here"] {
        assert!(Choices::load(&database, &platform(other))?.is_empty());
    }
    database.measured_trials(&platform("here"))?;
    database.summaries()?;
    database.export(io::sink())?;
    drop(database);
    let database = Database::open(path)?;
    database.start_trial(&task(&name(3), 4), "more")?;
    database.record_trial(&task(&name(3), 4), "more", &measured(6, Method::Alone))?;
    database.check()
}

/// Changes some bytes of a file.
fn damage(bytes: &mut [u8], random: &mut SmallRng) {
    for _ in 0..random.random_range(1..6) {
        let place = random.random_range(0..bytes.len());
        match random.random_range(0..3) {
            0 => bytes[place] ^= 1 << random.random_range(0..8),
            1 => bytes[place] = random.random(),
            _ => {
                let end = (place + 512).min(bytes.len());
                bytes[place..end].fill(0);
            }
        }
    }
}

fn log_of(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

#[test]
fn bytes_that_changed_never_name_a_kernel_that_was_not_picked() {
    let (_folder, path) = folder();
    drop(fill(&path));
    let whole = fs::read(&path).unwrap();
    let (_damaged_folder, damaged) = folder();
    let mut found = 0;
    for round in 0..ROUNDS {
        let mut random = SmallRng::seed_from_u64(round);
        let mut bytes = whole.clone();
        damage(&mut bytes, &mut random);
        if round % 10 == 0 {
            bytes.truncate(random.random_range(0..bytes.len()));
        }
        for file in [&damaged, &log_of(&damaged), &damaged.with_extension("db-shm")] {
            let _ = fs::remove_file(file);
        }
        fs::write(&damaged, &bytes).unwrap();
        found += usize::from(use_it(&damaged).is_err());
    }
    // Much of a file is empty space, where a change harms nothing.
    assert!(found as u64 > ROUNDS / 2, "{found} of {ROUNDS} were found to be damaged");
}

#[test]
fn a_log_that_changed_loses_what_came_last_and_invents_nothing() {
    let (_folder, path) = folder();
    let database = fill(&path);
    let (whole, log) = (fs::read(&path).unwrap(), fs::read(log_of(&path)).unwrap());
    assert!(log.len() > 4096, "the log is not empty while the database is open");
    drop(database);
    let (_damaged_folder, damaged) = folder();
    for round in 0..ROUNDS / 4 {
        let mut random = SmallRng::seed_from_u64(round);
        let mut bytes = log.clone();
        damage(&mut bytes, &mut random);
        let _ = fs::remove_file(damaged.with_extension("db-shm"));
        fs::write(&damaged, &whole).unwrap();
        fs::write(log_of(&damaged), &bytes).unwrap();
        let _ = use_it(&damaged);
    }
}

#[test]
fn a_damaged_file_is_left_as_it_is() {
    let (_folder, path) = folder();
    drop(fill(&path));
    let mut bytes = fs::read(&path).unwrap();
    // Everything behind the first page.
    bytes[4096..].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    let error = use_it(&path).unwrap_err();
    assert!(matches!(error, DatabaseError::Damaged { .. }), "{error}");
    let opened = Database::open(&path);
    if let Ok(database) = opened {
        let record = measured(5, Method::Alone);
        let result = database.record_trial(&task(&name(3), 4), "more", &record);
        assert!(matches!(result, Err(DatabaseError::Damaged { .. })), "{result:?}");
    }
    assert!(fs::read(&path).unwrap() == bytes);
}
