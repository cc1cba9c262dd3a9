//! One of the processes that tune.

use std::io::Write;
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use weft_tuner::database::Database;
use weft_tuner::report::SizeReport;
use weft_tuner::session::{Assignment, Part, Stop, tune};
use weft_tuner::{Recorder, experience};

use super::check::Check;
use super::message::Message;
use super::options::{Options, Role};
use super::watching::{Watchdog, Watching};
use crate::device::OpenDevice;

/// Somebody has asked for an end.
static STOP: Stop = Stop::new();

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    let mut start = Instant::now();
    let role = options.as_worker.context("this process is no worker")?;
    let database = Database::open(&options.database()?)?;
    let device = options.device.open_to_tune(role.shard.count)?;
    stop_when_asked()?;
    let otherwise = match device {
        OpenDevice::Cpu(_) => 1,
        OpenDevice::Cuda(_) => device.size_of(&device.units()),
    };
    for size in device.chosen_sizes(&options.cores, &options.sms, otherwise)? {
        let report = tune_size(options, role, &device, &database, size, start)
            .with_context(|| format!("for partitions of {size} {}", device.counted_in()))?;
        tell(&Message::Size(report));
        start = Instant::now();
    }
    drop(database);
    tell(&Message::Done);
    // What is on a device goes with the process, sooner than piece by piece.
    std::process::exit(0)
}

/// Says something to the process that started this one; where that is gone, nobody waits for the session.
pub(super) fn tell(message: &Message) {
    if let Ok(line) = serde_json::to_string(message) {
        let mut output = std::io::stdout().lock();
        if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
            STOP.ask();
        }
    }
}

/// Ends the session, not the process, when somebody interrupts it.
fn stop_when_asked() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            STOP.ask();
        }
    });
    Ok(())
}

fn tune_size(
    options: &Options,
    role: Role,
    device: &OpenDevice,
    database: &Database,
    size: usize,
    start: Instant,
) -> Result<SizeReport> {
    let tunable = device.as_tunable();
    let platform = tunable.platform();
    let selection = options.selection();
    let mut tasks = selection.tasks(device, size)?;
    if role.part == Part::Screening {
        tasks = role.shard.of(tasks).collect();
    }
    let recorder = Recorder::new(database, &platform, size, &tasks);
    recorder.recall(&mut tasks)?;
    let experience = experience(database, &platform)?;
    let assignment = Assignment { size, tasks: &tasks, experience: &experience };
    let watchdog = Watchdog::default();
    let watching = Watching { recorder: &recorder, tasks: &tasks, size, watchdog: &watchdog };
    let session = options.session(role);
    let prepare_s = start.elapsed().as_secs_f64();
    let checks = role.part != Part::Screening;
    let (mut outcome, prepared) = std::thread::scope(|scope| {
        let guard = watchdog.guard();
        scope.spawn(|| {
            watchdog.watch(options.limit, |task, candidate| {
                let _ = recorder.hung(&tasks, task, candidate);
            })
        });
        // Cores have time for it while a GPU tries candidates, and none where they do so themselves.
        let is_beside = checks && matches!(device, OpenDevice::Cuda(_));
        let prepared = is_beside.then(|| scope.spawn(|| Check::prepare(&selection, device, size)));
        let outcome = tune(tunable, assignment, &session, &watching, &STOP);
        drop(guard);
        let prepared =
            prepared.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        outcome.map(|outcome| (outcome, prepared))
    })?;
    let mut models = Vec::new();
    let check_start = Instant::now();
    if checks && !STOP.is_asked() {
        let check = prepared.unwrap_or_else(|| Check::prepare(&selection, device, size))?;
        let elsewhere = recorder.elsewhere(&tasks)?;
        let taken = check.take_better(&tasks, &mut outcome.choices, &elsewhere)?;
        let (reports, given_up) = check.run(&tasks, &mut outcome.choices)?;
        for task in taken.into_iter().chain(given_up) {
            if let Some(choice) = &outcome.choices[task] {
                recorder.chosen(&tasks, task, choice)?;
            }
        }
        models = reports;
    }
    let check_s = check_start.elapsed().as_secs_f64();
    let found = SizeReport::of(size, &tasks, &outcome);
    Ok(SizeReport { prepare_s, models, check_s, total_s: found.total_s + check_s, ..found })
}
