//! Several processes on one file, some of which are killed. Each is this test binary, told by its environment what to do.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use rusqlite::Connection;
use weft_tuner::database::{Claim, Database, DatabaseError, Method};

use crate::sample::{choice, folder, measured, task};

const FILE: &str = "WEFT_TEST_DATABASE";
const WORKER: &str = "WEFT_TEST_WORKER";
const PROCESSES: usize = 4;
const THREADS: usize = 2;
const TRIALS: usize = 400;

/// Runs one of the parts below as a process of its own.
fn spawn(part: &str, path: &Path, worker: usize) -> Child {
    let mut command = part_of(&env::current_exe().unwrap(), &format!("processes::{part}"), path);
    command.env(WORKER, worker.to_string()).stdout(Stdio::piped()).spawn().unwrap()
}

/// A command that runs a part of a test on a file.
pub(crate) fn part_of(binary: &Path, part: &str, path: &Path) -> Command {
    let mut command = Command::new(binary);
    command.args(["--exact", part, "--ignored", "--nocapture"]).env(FILE, path);
    command
}

/// The file that a part is to work on; `None` where it is not run by its test.
pub(crate) fn file() -> Option<PathBuf> {
    env::var_os(FILE).map(PathBuf::from)
}

/// What a part was told: the file, and which of several it is.
fn told() -> Option<(PathBuf, usize)> {
    Some((file()?, env::var(WORKER).ok()?.parse().ok()?))
}

fn is_whole(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

#[test]
#[ignore = "a part of another test, which runs it as a process"]
fn writes_many() {
    let Some((path, worker)) = told() else { return };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let path = &path;
            scope.spawn(move || {
                let database = Database::open(path).unwrap();
                for trial in 0..TRIALS {
                    let candidate = format!("{worker} {thread} {trial}");
                    let task = task(&format!("conv {}", trial % 7), 8);
                    assert_eq!(database.start_trial(&task, &candidate).unwrap(), Claim::Ours);
                    let record = measured(trial as u64, Method::Screened);
                    database.record_trial(&task, &candidate, &record).unwrap();
                }
            });
        }
    });
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let (_folder, path) = folder();
    // The file is made by whoever is first.
    let children: Vec<Child> =
        (0..PROCESSES).map(|worker| spawn("writes_many", &path, worker)).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let database = Database::open(&path).unwrap();
    let known: Vec<_> = (0..7)
        .flat_map(|name| database.known_trials(&task(&format!("conv {name}"), 8)).unwrap())
        .collect();
    assert_eq!(known.len(), PROCESSES * THREADS * TRIALS);
    assert!(known.iter().all(|trial| trial.record.is_some() && trial.crashes == 0));
    is_whole(&path);
}

#[test]
#[ignore = "a part of another test, which runs it as a process"]
fn says_what_it_has_written() {
    let Some((path, worker)) = told() else { return };
    let database = Database::open(&path).unwrap();
    let mut out = std::io::stdout();
    for trial in 0.. {
        let candidate = format!("{worker} {trial}");
        let conv = task("conv", 8);
        database.start_trial(&conv, &candidate).unwrap();
        database.record_trial(&conv, &candidate, &measured(trial, Method::Alone)).unwrap();
        database.record_choice(&task(&candidate, 8), &choice(&candidate, 5)).unwrap();
        writeln!(out, "written {candidate}").unwrap();
    }
}

#[test]
fn a_process_that_is_killed_loses_at_most_what_it_was_at() {
    const ROUNDS: usize = 20;
    let (_folder, path) = folder();
    let mut written: Vec<String> = Vec::new();
    for round in 0..ROUNDS {
        let mut children =
            [0, 1].map(|part| spawn("says_what_it_has_written", &path, 2 * round + part));
        let mut lines = Vec::new();
        for child in &mut children {
            let mut reader =
                BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
            let is_written = |line: &String| line.starts_with("written ");
            // Somewhere in the middle, at another place each time.
            lines.extend(reader.by_ref().filter(is_written).take(1 + 7 * round));
            child.kill().unwrap();
            lines.extend(reader.filter(is_written));
        }
        for mut child in children {
            child.wait().unwrap();
        }
        // The last line may be cut short; a candidate that it names by mistake was written all the same.
        written.extend(lines.iter().map(|line| line["written ".len()..].to_string()));
        is_whole(&path);
    }
    let database = Database::open(&path).unwrap();
    let known = database.known_trials(&task("conv", 8)).unwrap();
    let recorded = |candidate: &String| {
        known.iter().any(|trial| trial.candidate == *candidate && trial.record.is_some())
    };
    assert!(written.len() > 2 * ROUNDS);
    for candidate in &written {
        assert!(recorded(candidate), "trial {candidate}");
        let picked = database.recorded_choice(&task(candidate, 8)).unwrap();
        assert_eq!(picked, Some(choice(candidate, 5)));
    }
    let lost = known.iter().filter(|trial| trial.record.is_none()).count();
    assert!(lost <= 2 * ROUNDS, "{lost} trials were under way when {ROUNDS} pairs were killed");
    assert!(known.iter().all(|trial| trial.crashes <= 1 && !trial.is_banned()));
}

#[test]
#[ignore = "a part of another test, which runs it as a process"]
fn is_killed_in_a_trial() {
    let Some(path) = file() else { return };
    let database = Database::open(&path).unwrap();
    let claim = database.start_trial(&task("conv", 8), "a").unwrap();
    writeln!(std::io::stdout(), "claim {claim:?}").unwrap();
    loop {
        thread::park();
    }
}

/// The claim that a process got, which goes on to try the candidate.
fn claim(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines
        .filter_map(|line| line.split_once("claim ").map(|(_, claim)| claim.to_string()))
        .next()
        .unwrap()
}

#[test]
fn a_candidate_that_ends_two_processes_is_banned() -> Result<(), DatabaseError> {
    let (_folder, path) = folder();
    let conv = task("conv", 8);
    let database = Database::open(&path)?;
    for crashes in 1..=2 {
        let mut child = spawn("is_killed_in_a_trial", &path, 0);
        assert_eq!(claim(&mut child), "Ours");
        assert_eq!(database.start_trial(&conv, "a")?, Claim::Elsewhere);
        assert_eq!(database.settle()?, 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(database.settle()?, 1);
        let known = database.known_trials(&conv)?.remove(0);
        assert_eq!((known.crashes, known.is_banned()), (crashes, crashes == 2));
    }
    let mut child = spawn("is_killed_in_a_trial", &path, 0);
    assert_eq!(claim(&mut child), "Banned");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(database.settle()?, 0);
    Ok(())
}

#[test]
fn a_trial_that_ends_well_forgives_the_crash_before() -> Result<(), DatabaseError> {
    let (_folder, path) = folder();
    let conv = task("conv", 8);
    let mut child = spawn("is_killed_in_a_trial", &path, 0);
    claim(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let database = Database::open(&path)?;
    let crashes = |database: &Database| database.known_trials(&conv).map(|known| known[0].crashes);
    assert_eq!(crashes(&database)?, 1, "opening the database sees it");
    database.start_trial(&conv, "a")?;
    database.withdraw_trial(&conv, "a")?;
    assert_eq!(crashes(&database)?, 1, "it was not tried to the end");
    database.start_trial(&conv, "a")?;
    database.record_trial(&conv, "a", &measured(5, Method::Alone))?;
    assert_eq!(crashes(&database)?, 0);
    Ok(())
}
